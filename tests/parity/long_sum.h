/* Launches of long_sum without the library: through the public API a list of 300 numbers takes a tensor of a million elements. */
#ifndef QDNN_TEST_PARITY_LONG_SUM_H
#define QDNN_TEST_PARITY_LONG_SUM_H

#include "kernels/kernels.h"
#include "device/machine.h"

/* Lists of every length that a line of the kernel distinguishes, each sum compared with host_ref. The specification is that of
 * lsq_backward. */
void long_sum_lists(machine *vm, const kernel_spec *spec);

#endif
