/* A locale with a decimal comma for the time of a test. */
#ifndef QDNN_TEST_LOCALE_H
#define QDNN_TEST_LOCALE_H

#include <stdbool.h>

/* One of the machine's own, else one made for the test. False: neither can be had. */
bool comma_locale_begin(void);
void comma_locale_end(void); /* the C locale again */

#endif
