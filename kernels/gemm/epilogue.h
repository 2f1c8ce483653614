/* The law of every product, once its sum is there: the scale of x, alpha, what is added, bias, activation, gate, residual, the row's
 * weight, and one rounding to the type of y. The sums of all modes end here. */
#ifndef QDNN_KERNELS_EPILOGUE_H
#define QDNN_KERNELS_EPILOGUE_H

#include "kernels/gemm/gemm.h"

typedef struct epilogue {
    const kernel_spec *spec;
    const gemm_args *args;
    ptx_val alpha; /* f32: one for all columns; else empty */
    ptx_val first;   /* u64: index in y of an element of the row, where the kernel has computed it; else empty */
    int behind;      /* elements from there to y[m, n] */
    bool keeps_zero; /* the sums are complete: a -0 stays */
} epilogue;

/* What there is one of is loaded here. */
epilogue epilogue_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args);

/* Completes and stores y[m, n] (u64 both) from its sum; of a gated pair, `sums` are those of a and b. Called by the
 * threads that have such an element. A kernel that computes a grouped product gives the expert (u64) too. */
void epilogue_store(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n, const ptx_val *sums,
                    ptx_val expert);

/* The same without the store: f32, not yet rounded to the type of y. For kernels that store several neighbours at once. */
ptx_val epilogue_value(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n, const ptx_val *sums,
                       ptx_val expert);

/* relu of an f32: NaN stays, -0 becomes +0. */
ptx_val emit_relu(ptx_builder *b, ptx_val x);

#endif
