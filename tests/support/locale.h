/* A locale with a decimal comma for the duration of a test. */
#ifndef QDNN_TEST_LOCALE_H
#define QDNN_TEST_LOCALE_H

#include <stdbool.h>

/* One that the machine has, or else one created for the test. Returns false if neither is possible. */
bool comma_locale_begin(void);
void comma_locale_end(void); /* back to the C locale */

#endif
