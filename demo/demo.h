/* The parts of the demo. Each prints its part and says whether it worked. */
#ifndef QDNN_DEMO_H
#define QDNN_DEMO_H

#include <stdbool.h>

bool show_on_ptxvm(void);

#endif
