/* exp, exp16, tanh, erf, sigmoid, silu and both forms of gelu as f32 instructions; docs/numerics.md defines the
 * sequences. They contain no branches, and need no setup and no memory. */
#ifndef QDNN_KERNELS_FUNCTIONS_H
#define QDNN_KERNELS_FUNCTIONS_H

#include "ptxgen/ptx.h"

/* f(x) for an f32 x, bit for bit the same as ref_exp, ref_tanh ... */
ptx_val emit_exp(ptx_builder *b, ptx_val x);
/* e^x for x <= 0, as accurate as results of 16 bits need it; x must not be NaN. */
ptx_val emit_exp16(ptx_builder *b, ptx_val x);
ptx_val emit_tanh(ptx_builder *b, ptx_val x);
ptx_val emit_erf(ptx_builder *b, ptx_val x);
ptx_val emit_sigmoid(ptx_builder *b, ptx_val x);
ptx_val emit_silu(ptx_builder *b, ptx_val x);
ptx_val emit_gelu_tanh(ptx_builder *b, ptx_val x);
ptx_val emit_gelu_erf(ptx_builder *b, ptx_val x);

#endif
