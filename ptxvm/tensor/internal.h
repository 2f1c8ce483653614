/* What the files of the tensor-core model share: the rows of the table, number formats, and the matrices of
 * one instruction after its fragments are taken apart. docs/tensor-cores.md explains the model. */
#ifndef PTXVM_TENSOR_INTERNAL_H
#define PTXVM_TENSOR_INTERNAL_H

#include "ptxvm/tensor.h"

#define WARP_LANES   32
#define PART_COLUMNS 8 /* every instruction is worked in parts of 8 columns of B */

/* A floating-point input format: where it sits in its container and what its bits mean. */
typedef struct tensor_format {
    pvm_type type;
    int container, shift; /* bits an element takes in a register, and the bits below it there */
    int mantissa, exponent, bias;
    int32_t special; /* magnitudes from here up are Inf or NaN; above every magnitude where there are none */
    int32_t nan;     /* magnitudes from here up are NaN */
} tensor_format;

/* How an instruction is computed. */
typedef enum {
    METHOD_FDPA,       /* fused dot-product-adds of L products, chained in k */
    METHOD_FP8_BY_F16, /* the assembler's expansion: two f16 operations from +0, then an IEEE addition of c */
    METHOD_QUADS,      /* m8n8k4 as a tensor instruction: four 8x8x4 products by FDPA */
    METHOD_QUADS_FMA,  /* m8n8k4 as scalar f32 instructions */
    METHOD_SCALED,     /* mxf8f6f4: FDPA whose exponents include the scales' */
    METHOD_SCALED_FP4, /* mxf4, mxf4nvf4: exact sums of 16, then aligned */
    METHOD_INTEGER,
    METHOD_BITS,
    METHOD_F64
} tensor_method;

/* Which inputs a row of the table is for. */
typedef enum {
    INPUT_F16,
    INPUT_BF16,
    INPUT_TF32,
    INPUT_WMMA_TF32,
    INPUT_QUADS,
    INPUT_WGMMA_F16, /* and bf16 */
    INPUT_WGMMA_TF32,
    INPUT_WGMMA_FP8,
    INPUT_FP8,
    INPUT_F8F6F4, /* some operand of 6 or 4 bits */
    INPUT_MXF8F6F4,
    INPUT_MXF4,
    INPUT_TCGEN05_F16, /* and bf16 */
    INPUT_TCGEN05_TF32,
    INPUT_TCGEN05_F8F6F4,
    INPUT_TCGEN05_MXF8F6F4,
    INPUT_TCGEN05_MXF4,
    INPUT_TCGEN05_I8,
    INPUT_INTEGER,
    INPUT_BITS,
    INPUT_F64
} tensor_input;

typedef struct tensor_model {
    uint32_t sms; /* bits of the SMs it is for */
    tensor_input input;
    int k; /* only for this K; 0: any */
    tensor_method method;
    int length;                 /* L: products in one operation */
    int fraction;               /* F: bits kept below the largest exponent */
    int zero_exp32, zero_exp16; /* e_zero for f32 and f16 results */
    bool short_f32;             /* f32 results keep 13 bits of mantissa */
    tensor_standing standing;
    const char *row;
} tensor_model;

/* One chain of operations, with everything the arithmetic needs. */
typedef struct tensor_dot {
    const tensor_format *a, *b;
    int length, fraction, zero_exp;
    bool f16;       /* c, d and what passes between operations are f16; else f32 */
    bool short_f32; /* round toward zero to 13 bits of mantissa */
} tensor_dot;

/* Rows of a, columns of b and their scales, as raw bits without container or padding. */
enum {
    MAX_A = 1024, /* m16 x k64 */
    MAX_B = 512,  /* k64 x n8, k16 x n32 */
    MAX_C = 256,
    MAX_K = 64
};

typedef struct tensor_matrices {
    _Alignas(32) uint32_t a[MAX_A]; /* [m][k] */
    _Alignas(32) uint32_t b[MAX_B]; /* [n / 8][k][8] */
    _Alignas(32) uint32_t c[MAX_C]; /* [n / 8][m][8]; f16 in the low half, and the result in the same place */
} tensor_matrices;

/* Scales of a block-scaled instruction, as raw bytes: of row m or column n, for each block of k. */
typedef struct tensor_scales {
    uint8_t a[16][4], b[PART_COLUMNS][4];
} tensor_scales;

/* number.c */
const tensor_format *tensor_format_of(pvm_type type, bool packed4);
uint32_t tensor_dot_one(const tensor_dot *dot, int k, const uint32_t *a, const uint32_t *b, int b_stride,
                        uint32_t c, int scale_exp);
float tensor_f16_to_f32(uint32_t bits);
uint32_t tensor_f32_to_f16(float value);
uint32_t tensor_add_f16(uint32_t a, uint32_t b);
float tensor_f32_from_bits(uint32_t bits);
uint32_t tensor_f32_bits(float value); /* NaN becomes the canonical 0x7FFFFFFF */

#define F32_NAN 0x7FFFFFFFu
#define F16_NAN 0x7FFFu

/* sum * 2^exp as f16 (nearest-even) or f32 (toward zero), bits; what is too large becomes Inf either way. */
static inline uint32_t tensor_round(int64_t sum, int exp, bool f16, bool short_f32)
{
    const int mantissa = f16 ? 10 : 23, emin = f16 ? -14 : -126, emax = f16 ? 15 : 127;
    const uint32_t sign = sum < 0 ? (f16 ? 0x8000u : 0x80000000u) : 0;
    const uint32_t inf = f16 ? 0x7C00u : 0x7F800000u;
    uint64_t magnitude = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
    if (magnitude == 0)
        return 0;
    int top = 63 - __builtin_clzll(magnitude) + exp;
    if (top > emax)
        return sign | inf;
    if (top < emin)
        top = emin;
    const int drop = top - mantissa - exp;
    uint64_t kept = drop <= 0 ? magnitude << -drop : drop < 64 ? magnitude >> drop : 0;
    if (f16 && drop > 0 && drop < 64) {
        const uint64_t rest = magnitude & ((1ull << drop) - 1), half = 1ull << (drop - 1);
        kept += rest > half || (rest == half && (kept & 1));
    }
    uint32_t bits = ((uint32_t)(top - emin) << mantissa) + (uint32_t)kept;
    if (short_f32 && !f16)
        bits &= ~0x3FFu;
    return sign | (bits < inf ? bits : inf);
}

/* dot.c: c[n / 8 parts][m][8] becomes the result. row_exp and column_exp are the scales' exponents, or null.
 */
typedef void tensor_dots_fn(const tensor_dot *dot, int m, int parts, int k, const uint32_t *a,
                            const uint32_t *b, uint32_t *c, const int *row_exp, const int *column_exp);
tensor_dots_fn tensor_dots_baseline, tensor_dots_v3;
tensor_dots_fn *tensor_dots_best(void);

/* layout.c */
void tensor_gather(const tensor_op *op, tensor_matrices *x, const void *const *a, const void *const *b,
                   const void *const *c);
void tensor_scatter(const tensor_op *op, const tensor_matrices *x, void *const *d);
void tensor_gather_quad(const tensor_op *op, int quad, tensor_matrices *x, const void *const *a,
                        const void *const *b, const void *const *c);
void tensor_scatter_quad(const tensor_op *op, int quad, const tensor_matrices *x, void *const *d);
void tensor_gather_scales(const tensor_op *op, tensor_scales *scales, const void *const *scale);
/* Two's complement of s8 and s4 elements in the low bits; one row of integers times 8 columns; one of bits. */
void tensor_sign_extend(pvm_type type, uint32_t *x, int n);
void tensor_integer_row(bool satfinite, int k, const uint32_t *a, const uint32_t *b, uint32_t *c);
void tensor_bits_row(bool is_and, int words, const uint32_t *a, const uint32_t *b, uint32_t *c);
/* How many bits of a register one element of a or b takes. */
int tensor_container_bits(const tensor_op *op, pvm_type type);

/* run_float.c: the row's arithmetic, and the build of the loops that the op chose */
tensor_dot tensor_dot_of(const tensor_op *op, bool f16);
tensor_dots_fn *tensor_dots_of(const tensor_op *op);

/* run_*.c, one for each method */
typedef void tensor_run_fn(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                           const void *const *c, const void *const *scale);
tensor_run_fn tensor_run_fdpa, tensor_run_fp8_by_f16, tensor_run_quads, tensor_run_quads_fma,
    tensor_run_scaled, tensor_run_scaled_fp4, tensor_run_integer, tensor_run_bits, tensor_run_f64;

#endif
