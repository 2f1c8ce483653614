/* Kernels for ptxas. */
#ifndef QDNN_TEST_KERNELS_PTXAS_H
#define QDNN_TEST_KERNELS_PTXAS_H

#include "kernels/kernels.h"
#include "support/assemble.h"

/* Emits a kernel and adds its text; its settings are the note. */
void assembly_add_kernel(assembly *a, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm);

#endif
