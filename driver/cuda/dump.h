/* QDNN_DUMP_DIR: every text that is emitted for a device is also written to a folder, to be looked at. */
#ifndef QDNN_DRIVER_DUMP_H
#define QDNN_DRIVER_DUMP_H

#include "kernels/kernels.h"

/* Writes DIR/quantize_nf4_sm_90_f16_f32_g64.ptx, where the variable is set. A file that cannot be written is
 * a warning in the log. */
void dump_ptx(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const char *ptx);

#endif
