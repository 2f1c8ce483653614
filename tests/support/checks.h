/* ptxvm's checks, as tests of our own kernels use them. */
#ifndef QDNN_TEST_CHECKS_H
#define QDNN_TEST_CHECKS_H

#include "ptxvm/ptxvm.h"

/* Our kernels store each byte once: a second thread that stores it too, even with the same value, has taken another's
 * work. */
enum { EVERY_CHECK = PTXVM_CHECK_ALL | PTXVM_CHECK_SAME };

#endif
