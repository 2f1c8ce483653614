/* What the tensor cores of each SM compute, to the bit: mma.sync, wmma, wgmma and the layouts of their fragments.
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

/* Resolves an mma, wmma.mma or wgmma.mma_async for the emulated SM. Returns false if the instruction is none of them.
 * run() (not of wgmma: see tensor_multiply) takes
 * the registers of each fragment in the order written, each as 32 consecutive lanes of the width of its
 * operand type; scale: {a scale, byte id a, thread id a, b scale, byte id b, thread id b} of a block-scaled
 * mma, else null: the scales are 32 bits wide, the ids 16 bits. d may be the same registers as a, b or c. */
bool tensor_find(const pvm_inst *inst, pvm_target device, tensor_op *op);

/* The same for tcgen05.mma, by its .kind and its instruction descriptor. m is 16, as for wgmma: larger ones are worked
 * in strips of 16 rows. */
typedef struct tensor_tcgen05 {
    unsigned kind; /* M_kind__f16 ... */
    pvm_type dtype, atype, btype;
    int n, scales;
    bool satfinite, scale_ue4m3;
    bool is_pair;     /* .cta_group::2 */
    bool is_modified; /* by scale-input-d, .ashift ...: nobody has published what these do to rounding */
} tensor_tcgen05;
bool tensor_find_tcgen05(const tensor_tcgen05 *what, pvm_target device, tensor_op *op);

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

/* wgmma.mma_async: the 16 rows of D of one warp, for matrices that are not in fragments: a[16][depth],
 * b[n / 8][depth][8] and c[n / 8][16][8], which becomes d. Elements are raw bits, f16 accumulators in the low half;
 * depth is k or, for single bits, k / 32 words. */
enum { TENSOR_GROUP_DEPTH = 32, TENSOR_GROUP_COLUMNS = 256 };
void tensor_multiply(const tensor_op *op, uint32_t *a, uint32_t *b, uint32_t *c);
int tensor_depth(const tensor_op *op);
/* The same with block scales: those of row i and of column j along k, as many as op->scales. */
void tensor_multiply_scaled(const tensor_op *op, const uint32_t *a, const uint32_t *b, uint32_t *c,
                            const uint8_t (*scale_a)[4], const uint8_t (*scale_b)[4]);
/* The elements of 32 bits of memory of a or b, and how many they are. */
int tensor_unpack(const tensor_op *op, pvm_type type, uint32_t word, uint32_t elements[8]);
/* A result in f32 or f16 (its bits), times 2^-shift; what is lost below the least number is cut off. */
uint32_t tensor_scaled_down(pvm_type type, uint32_t bits, int shift);
/* The bit that negates an element. */
uint32_t tensor_sign_bit(pvm_type type);
/* a's registers, and c's and d's, each of 32 lanes, from and to such a matrix. */
void tensor_gather_a(const tensor_op *op, uint32_t *to, const void *const *a);
void tensor_gather_c(const tensor_op *op, uint32_t *to, const void *const *c);
void tensor_scatter_d(const tensor_op *op, const uint32_t *from, void *const *d);

#endif
