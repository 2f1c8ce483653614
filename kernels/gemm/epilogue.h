/* What every product does with its sum: the scale of x, alpha, the addend, bias, activation, gate,
 * residual, the row's weight, and one rounding to the type of y. All modes end here. */
#ifndef QDNN_KERNELS_EPILOGUE_H
#define QDNN_KERNELS_EPILOGUE_H

#include "kernels/gemm/gemm.h"

typedef struct epilogue {
    const kernel_spec *spec;
    const gemm_args *args;
    ptx_val alpha;   /* f32: the same for all columns; else empty */
    ptx_val first;   /* u64: index in y of an element of the row, if the kernel has it already; else empty */
    int behind;      /* elements from there to y[m, n] */
    bool keeps_zero; /* the sums are complete: a -0 stays */
} epilogue;

/* Loads what is the same for all elements. */
epilogue epilogue_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args);

/* Completes and stores y[m, n] (u64 both) from its sum; of a gated pair, `sums` are those of a and b.
 * Called only by threads whose element exists. Kernels for grouped products pass the expert (u64), too. */
void epilogue_store(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n, const ptx_val *sums,
                    ptx_val expert);

/* The same without the store: f32, not yet rounded to the type of y. For kernels that store several neighbours at once. */
ptx_val epilogue_value(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n, const ptx_val *sums,
                       ptx_val expert);

/* relu of an f32: NaN stays, -0 becomes +0. */
ptx_val emit_relu(ptx_builder *b, ptx_val x);

#endif
