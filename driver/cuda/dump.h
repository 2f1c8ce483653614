/* QDNN_DUMP_DIR: PTX emitted for a device is also written to a folder, for inspection. */
#ifndef QDNN_DRIVER_DUMP_H
#define QDNN_DRIVER_DUMP_H

#include "kernels/kernels.h"

/* Writes DIR/quantize_nf4_sm_90_f16_f32_g64.ptx if the variable is set. A file that cannot be written is
 * logged as a warning. */
void dump_ptx(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const char *ptx);

#endif
