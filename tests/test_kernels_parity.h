/* Running the text of a kernel on ptxvm against host_ref; the text may be ours or a twin's. */
#ifndef QDNN_TEST_KERNELS_PARITY_H
#define QDNN_TEST_KERNELS_PARITY_H

#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"

/* Every kind of data with one text: a kernel is specialised to its settings, not to n. `round` turns through
 * counts and alignments. */
void parity_run(ptxvm *vm, const kernel_row *row, const kernel_spec *spec, const char *ptx, int round);

#endif
