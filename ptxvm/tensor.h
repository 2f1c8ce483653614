/* What the tensor cores of each SM compute, to the bit: mma.sync, wmma and the layouts of their fragments.
 * docs/tensor-cores.md tells how well each row is confirmed. */
#ifndef PTXVM_TENSOR_H
#define PTXVM_TENSOR_H

#include "isa.h"
#include "module.h"

typedef enum {
    TENSOR_MEASURED,  /* compared with vectors from real silicon */
    TENSOR_PUBLISHED, /* stated by a public bit-accurate model, not confirmed by vectors */
    TENSOR_ASSUMED,   /* taken from the most similar hardware */
    TENSOR_EXACT      /* integers: no rounding involved */
} tensor_standing;

struct tensor_model;

/* How one mma or wmma.mma instruction runs on one SM, resolved once. */
typedef struct tensor_op {
    void (*run)(const struct tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                const void *const *c, const void *const *scale);
    const struct tensor_model *model; /* row of the table of models */
    tensor_standing standing;
    const char *row; /* the row's name for reports: "sm_90 f16 k16" */
    int m, n, k;
    pvm_type dtype, atype, btype, ctype;
    bool a_col, b_row; /* layouts of a and b if they differ from row.col */
    bool satfinite;    /* integers: the result is clamped, once, at the end of the instruction */
    bool is_and;       /* b1: .and.popc, else .xor.popc */
    bool scale_ue4m3;  /* block-scaled: ue4m3 scales, else ue8m0 */
    int scales;        /* block-scaled: scales of one row of a along k (.scale_vec), else 0 */
    bool wide;         /* use the loops compiled for AVX2 */
    const pvm_inst *inst;
} tensor_op;

/* Resolves an mma or wmma.mma for the emulated SM. Returns false if the instruction is neither. run() takes
 * the registers of each fragment in the order written, each as 32 consecutive lanes of the width of its
 * operand type; scale: {a scale, byte id a, thread id a, b scale, byte id b, thread id b} of a block-scaled
 * mma, else null: the scales are 32 bits wide, the ids 16 bits. d may be the same registers as a, b or c. */
bool tensor_find(const pvm_inst *inst, pvm_target device, tensor_op *op);

/* "m16n8k16" and similar, from the value of S_SHAPE. */
bool tensor_shape_of(unsigned mod, int *m, int *n, int *k);

/* wmma fragments: the matrix element that register `reg` of lane `lane` holds in its `part`-th piece (0 for
 * 32-bit and wider elements, else counted from the low bits). wmma.load, wmma.store and wmma.mma agree on it.
 * Returns false if the fragment has no such register. */
typedef struct tensor_element {
    int row, col;
} tensor_element;
bool tensor_wmma_element(const pvm_inst *inst, int lane, int reg, int part, tensor_element *element);

/* The same for mma fragments 'a', 'b', 'c' ('d' is 'c'): used by tests that fill a whole fragment. */
tensor_element tensor_mma_element(const tensor_op *op, char fragment, int lane, int reg, int part);

/* movmatrix.sync.aligned.m8n8.trans.b16. */
void tensor_movmatrix(uint32_t d[32], const uint32_t a[32]);

/* One fused dot-product-add by a model of TENSOR_CORES: values as raw bits of `type`, c and the result as raw
 * bits of `acc` (T_F32 or T_F16). For rows that no mma.sync reaches (wgmma). */
typedef enum {
    TENSOR_ROW_WGMMA_SM90_FP8,
    TENSOR_ROW_WGMMA_SM90_F16,
    TENSOR_ROW_WGMMA_SM90_TF32
} tensor_wgmma_row;
uint32_t tensor_wgmma_dot(tensor_wgmma_row row, pvm_type type, pvm_type acc, const uint32_t *a,
                          const uint32_t *b, int k, uint32_t c);

#endif
