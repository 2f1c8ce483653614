/* The host reference: each operation in plain C, right to the bit. docs/numerics.md is its contract in words.
 *
 * It is the answer that kernels are compared with, so it is written to be read, not to be fast. A wrong spec
 * is a defect of the caller: it is named on stderr and the program aborts. */
#ifndef QDNN_HOST_REF_H
#define QDNN_HOST_REF_H

#include "qdnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group's scale is never below this / qmax, unless the spec says otherwise. */
#define REF_DEFAULT_FLOOR 1e-12f

/* Every NaN that an operation writes. */
#define REF_NAN_F32 UINT32_C(0x7FFFFFFF)
#define REF_NAN_F16 UINT16_C(0x7FFF) /* bf16 too */

/* How a tensor is quantized; the public attributes of the same names, resolved. The tensor is a matrix of rows
 * by columns; its plain values lie row by row. A flat tensor is one row. A member that is 0 is at its default;
 * `data`, `storage`, `group_size` and `floor` have none. docs/formats.md shows what each choice means in bytes. */
typedef struct {
    qdnnDataType_t data; /* of plain values: F32, F16, BF16, F64 */

    /* Codes. */
    qdnnBlockFormat_t block; /* not NONE: all that follows is decided by it */
    qdnnDataType_t storage;  /* I4, I8, U8, NF4, FP4, F8E4M3, F8E5M2; F32, F16, BF16: plain, without scales */
    int bits;                /* of integer codes, 2 to 8; 0: as many as the storage has */
    qdnnCodeKind_t code;
    qdnnLayout_t layout;
    qdnnNibbleOrder_t nibble_order; /* of 4-bit codes in bytes */

    /* Groups: which elements share a scale. */
    qdnnGroups_t groups;
    int64_t group_size; /* along the groups' direction; at least 1, may exceed the tensor */
    /* Across it, for 2-D blocks: rows of groups along rows, columns of groups down columns. 0: 1. */
    int64_t group_rows;
    /* Flat groups: element i is in group (i / group_size) mod channels. 0: in group i / group_size. */
    int64_t channels;
    bool group_index; /* groups down columns: g_idx[k] is the group of row k */

    /* Scales. */
    qdnnScaleOrder_t scale_order;
    qdnnScaleSwizzle_t scale_swizzle; /* of the array in its order: [rows, groups], or what it is */
    bool no_scale;                    /* every scale is 1, and there is no array of them */
    qdnnScaleType_t scale;
    bool nested;      /* scales are bytes: map[byte] * nested_scale[group / 256] + nested_offset */
    int global_scale; /* E4M3 scales; 1: one f32 over all of them; 2: it is stored as its reciprocal */
    qdnnMxRounding_t mx_rounding; /* of E8M0 scales */
    float floor;                  /* finite, not negative; NF4 and FP4 of bitsandbytes: 0 lets a scale be 0 */

    /* Zeros and minima: one for each scale. */
    qdnnZeroKind_t zero_kind;
    qdnnDataType_t zero; /* U8, I8, U32, I32, F32, F16, BF16; minima F32, F16, BF16 */
    /* Zeros are coded as codes are, in u32 words along the columns (groups along rows: along the rows; flat
     * groups: along the groups). */
    bool zero_packed;
    bool zero_minus_one; /* stored integer zeros are 1 less */
    bool zero_wraps;     /* of those, the largest code stands for 0, not for 2^bits */
    qdnnRange_t range;

    qdnnRounding_t rounding; /* of integer codes; zero points always round ties to even */
    qdnnDivision_t division; /* of codes; scales and zero points always divide */
} ref_quant_spec;

/* The arrays of a quantized tensor. Those that the spec does not ask for are not looked at. */
typedef struct {
    void *codes;                /* or blocks */
    void *scale;                /* of type spec.scale; bytes where scales are nested */
    void *zero;                 /* zeros or minima */
    float *global_scale;        /* one */
    const int32_t *group_index; /* [rows]; out of range: the row has a NaN scale */
    const float *nested_map;    /* [256] */
    float *nested_scale;        /* one for every 256 scales */
    const float *nested_offset; /* one */
} ref_arrays;

/* How many bytes each array of a rows x columns tensor takes; 0 where there is none. */
typedef struct {
    int64_t codes, scale, zero, global_scale, group_index, nested_map, nested_scale, nested_offset;
} ref_sizes;
ref_sizes ref_sizes_of(const ref_quant_spec *spec, int64_t rows, int64_t columns);

/* How many scales there are, without padding. */
int64_t ref_group_count(const ref_quant_spec *spec, int64_t rows, int64_t columns);

/* The value of one element, in f32, each step rounded once as docs/numerics.md writes it. */
float ref_decode(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in, int64_t row,
                 int64_t column);

/* Writes rows x columns elements of type spec->data. */
void ref_dequantize(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in, void *y);

/* The same for the rows that a list names, in its order: y has `count` rows. A number that is no row gives NaN. */
void ref_dequantize_rows(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in,
                         const int32_t *index, int64_t count, void *y);

/* Codes in one layout, nibble order and kind become codes in another; `to` has the same storage and bits. Between two's
 * complement and the other kinds the highest bit changes. */
void ref_repack(const ref_quant_spec *from, const ref_quant_spec *to, int64_t rows, int64_t columns, const void *codes,
                void *repacked);

/* Writes the scales of x, and the zeros and the global scale where there are such; padding of scales as 0.
 * Nested scales are encoded with the map and offset that `out` brings. Not for blocks, which are quantized in
 * one step. */
void ref_scale(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
               const ref_arrays *out);

/* Writes the codes; scales, zeros and global scale are taken as stored, whoever made them. (bitsandbytes makes
 * codes from scales that are not yet nested: quantize without `nested` for its bytes.) Blocks are written whole. */
void ref_quantize(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
                  const ref_arrays *io);

/* Conversions: widening is exact, narrowing rounds to nearest even and overflows to infinity; NaNs come out
 * canonical. */
float ref_f32_from_bits(uint32_t bits);
uint32_t ref_f32_to_bits(float x);
float ref_f16_to_f32(uint16_t bits);
uint16_t ref_f32_to_f16(float x);
float ref_bf16_to_f32(uint16_t bits);
uint16_t ref_f32_to_bf16(float x);

/* The floats of 4, 6 and 8 bits. Narrowing rounds to nearest even and saturates at the largest finite number; a
 * NaN becomes 7F, or 0 where the type has none. */
typedef enum { REF_E4M3, REF_E5M2, REF_E2M3, REF_E3M2, REF_E2M1 } ref_minifloat;
float ref_minifloat_to_f32(ref_minifloat type, unsigned code);
unsigned ref_f32_to_minifloat(ref_minifloat type, float x);
float ref_minifloat_largest(ref_minifloat type);
float ref_e8m0_to_f32(uint8_t code); /* 2^(code - 127); 255 is NaN */

/* Elements of an array of F32, F16, BF16, F64, U8, I8, U32 or I32, at any alignment. Loading F64 and wide integers
 * rounds to nearest even; storing rounds as above; integer types take integers of their range. */
size_t ref_scalar_size(qdnnDataType_t type);
qdnnDataType_t ref_scale_data_type(qdnnScaleType_t type); /* of F32, F16 and BF16 scales */
float ref_scalar_load(qdnnDataType_t type, const void *array, int64_t index);
void ref_scalar_store(qdnnDataType_t type, void *array, int64_t index, float value);

/* The range that a stored scale is clamped to: the smallest positive and the largest finite value of the
 * type. */
float ref_scalar_smallest(qdnnDataType_t type);
float ref_scalar_largest(qdnnDataType_t type);

/* Elementary functions: written sequences of f32 operations (docs/numerics.md), so that they have one answer
 * everywhere. A NaN gives REF_NAN_F32. */
float ref_exp(float x);
float ref_tanh(float x);
float ref_erf(float x);
float ref_sigmoid(float x);
float ref_silu(float x);
float ref_gelu_tanh(float x);
float ref_gelu_erf(float x);

/* Products, y = out(act(alpha ((x W) x_scale) + bias) + residual). */
typedef struct {
    int64_t m, k;
    int64_t outputs; /* of the weights: N; of gated pairs 2N, a first, then b, and y = act(a) * b */
    bool k_rows;     /* the weights are [K, outputs]; else [outputs, K] */
    ref_quant_spec weights;
    qdnnDataType_t x, y;        /* F32, F16, BF16; x in mode tensor F8E4M3 and F8E5M2, too */
    int64_t x_stride, y_stride; /* elements from a row to the next */
    qdnnAlpha_t alpha;
    float alpha_number;
    qdnnDataType_t bias; /* where there is one */
    qdnnActivation_t activation;
    bool gated;
    int64_t experts; /* not 0: the weights are a stack, of which each row of x names one */
} ref_product;

/* Members that may be null are left out of the formula then. */
typedef struct {
    const void *x;
    ref_arrays weights;
    const float *alpha;          /* one, or one for each output of each expert */
    const float *addend;         /* [m, outputs], added before the bias; or null */
    const void *bias;            /* one for each output of each expert; or null */
    const void *residual;        /* as y; or null */
    const int32_t *expert_index; /* [m]; out of range: a row of NaN */
    const float *row_weight;     /* [m]; or null */
    void *y;
    const float *x_scale;        /* [m]: S is multiplied by it first of all; or null */
} ref_product_arrays;

/* In mode exact. */
void ref_product_exact(const ref_product *p, const ref_product_arrays *a);

/* The sum of x[k] * w[k], or of x[k] where w is null: 32 lanes of chunks of 8, and a tree. Never -0. */
float ref_exact_sum(const float *x, const float *w, int64_t n);

/* Training-time operations. Element i is in group (i / group_size) mod channels; channels 0: in i / group_size. */
typedef struct {
    int bits; /* 8, 4, 2 */
    int64_t group_size, channels;
    qdnnRounding_t rounding; /* public descriptors say TIES_AWAY unless told otherwise */
    qdnnScaleMode_t mode;    /* of fake quantization */
    float decay;             /* of EMA */
    qdnnBackward_t backward;
    bool gradient_factor; /* LSQ: dscale is multiplied by 1 / sqrt(count * qmax) */
} ref_train_spec;

/* How many scales (or states) n elements have. */
int64_t ref_train_groups(const ref_train_spec *spec, int64_t n);

/* EMA updates the state; FIXED reads it; BATCH does not look at it. */
void ref_fake_quantize(const ref_train_spec *spec, int64_t n, const float *x, float *state, float *y);
/* The state is that after the forward. IDENTITY looks at neither x nor state. */
void ref_fake_quantize_backward(const ref_train_spec *spec, int64_t n, const float *x, const float *state,
                                const float *dy, float *dx);
void ref_lsq(const ref_train_spec *spec, int64_t n, const float *x, const float *scale, float *y);
void ref_lsq_backward(const ref_train_spec *spec, int64_t n, const float *x, const float *scale,
                      const float *dy, float *dx, float *dscale);

/* Mode tensor: what tensor cores compute (docs/numerics.md). The SMs of a family give the same bits. */
typedef enum {
    REF_TENSOR_SM75,  /* 75 */
    REF_TENSOR_SM80,  /* 80, 86, 87, 88, 89 */
    REF_TENSOR_SM90,  /* 90 */
    REF_TENSOR_SM100, /* 100, 103, 110 */
    REF_TENSOR_SM120, /* 120, 121 */
    REF_TENSOR_FAMILIES
} ref_tensor_family;
ref_tensor_family ref_tensor_family_of(int sm);

/* Whether an SM has an instruction of its own for two inputs of that type: F16, BF16, F8E4M3, F8E5M2. */
bool ref_tensor_has(int sm, qdnnDataType_t type);

/* How sure it is that the SM computes this: compared with results of such a GPU, stated by others who did that, or taken
 * from the SM's nearest relative. */
typedef enum { REF_STANDING_MEASURED, REF_STANDING_PUBLISHED, REF_STANDING_ASSUMED } ref_standing;
ref_standing ref_tensor_standing(int sm, qdnnDataType_t type);

/* Strips of k that are summed each by itself. */
enum { REF_TENSOR_STRIP = 512 };

/* The k of one instruction, and one instruction: c + the sum of a[i] * b[i], i < k, as the hardware rounds it; what is
 * missing of its k is zeros. Both types F16, both BF16, or each one of F8E4M3 and F8E5M2. */
int ref_tensor_depth(ref_tensor_family family, qdnnDataType_t type);
float ref_tensor_mma(ref_tensor_family family, qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type,
                     const void *b, int64_t k, float c);
/* S of mode tensor: strips of instructions, joined in order. */
float ref_tensor_sum(ref_tensor_family family, qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type,
                     const void *b, int64_t k);

/* Codes in the order in which tensor cores take them, and back; n columns and k rows of a product, which the matrix has as
 * [n, k] or, with k_rows, as [k, n]. */
int64_t ref_prepacked_bytes(const ref_quant_spec *spec, int64_t n, int64_t k);
void ref_prepack(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool k_rows, const void *codes, void *packed);
void ref_unpack(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool k_rows, const void *packed, void *codes);

/* A product in mode tensor: x is F16 or BF16, and the weights are rounded to its type. */
void ref_product_tensor(const ref_product *p, const ref_product_arrays *a, ref_tensor_family family);
/* The same on an SM. x may be FP8, with weights in FP8 without scales: by instructions for FP8 on sm_89, 120 and 121, by those
 * for f16 elsewhere. */
void ref_product_tensor_on(const ref_product *p, const ref_product_arrays *a, int sm);

/* The sum of a[i] * b[i], or of a[i] where b is null, in the written order. */
float ref_long_sum(const float *a, const float *b, int64_t n);

/* Integer products (docs/numerics.md). Codes are I8, U8 or I4: two's complement nibbles in rows of u32 words, the low
 * nibble first, each row padded to whole words. Sums are int32 and wrap. */
typedef struct {
    int64_t m, n, k;
    qdnnDataType_t x; /* [m, k]: I8, U8 or I4 */
    qdnnDataType_t w; /* I8, U8 or I4 */
    bool w_is_kn;     /* w is [k, n]; else [n, k] */
    int32_t x_zero, w_zero;
} ref_integer_spec;

int64_t ref_integer_row_bytes(qdnnDataType_t type, int64_t columns);
int32_t ref_integer_code(qdnnDataType_t type, const void *codes, int64_t columns, int64_t row, int64_t column);

/* The sum over k of (x - x_zero) * (w - w_zero). */
int32_t ref_integer_sum(const ref_integer_spec *spec, const void *x, const void *w, int64_t m, int64_t n);
int32_t ref_int4_dot(int64_t k, const void *a, const void *b);
/* (f32(sum) * first) * second */
float ref_integer_scaled(int32_t sum, float first, float second);

/* How a sum becomes a code. */
typedef struct {
    qdnnDataType_t y; /* I8, U8; I32: the sums themselves */
    float multiplier;
    const float *multipliers; /* one for each column; null: multiplier */
    int32_t y_zero;
    qdnnRounding_t rounding;
} ref_requantize_spec;
int32_t ref_requantized(int32_t sum, float multiplier, const ref_requantize_spec *spec);

/* y = [m, n]. A null bias is none. */
void ref_integer_matmul(const ref_integer_spec *spec, const ref_requantize_spec *requantize, const void *x,
                        const void *w, const int32_t *bias, void *y);

/* One sum of w4a8: f32 sums over groups along k, in strips; scale is [n, groups]. */
float ref_w4a8_sum(const ref_integer_spec *spec, int64_t group_size, qdnnScaleType_t type, const void *x,
                   const void *w, const void *scale, int64_t m, int64_t n);

/* The scales of a product: x has one for each row; w one for each column, or for each group along k. */
typedef struct {
    const float *x;
    const void *w;       /* f32 [n]; of groups [n, groups], of the type below */
    int64_t group_size;  /* 0: one for each column */
    qdnnScaleType_t type;
    bool w_first; /* (f32(sum) * w) * x */
} ref_integer_scales;

/* Scaled results. Of the law alpha, alpha_number, bias, activation and y count, of the arrays alpha, bias, residual and y. */
void ref_integer_product(const ref_integer_spec *spec, const ref_integer_scales *scales, const ref_product *law,
                         const void *x, const void *w, const ref_product_arrays *arrays);

/* The `top` largest of a row in descending order; equal ones by their places, NaNs last. */
void ref_top(int64_t count, const float *scores, int64_t top, float *best, int32_t *index);

/* Pairs are height, width. x is [images, channels, height, width], w [outputs, channels / groups, window]; nhwc: the
 * channels come last in both, and in y. */
typedef struct {
    qdnnDataType_t x; /* I8, U8; w is I8 */
    bool nhwc;
    int64_t images, channels, height, width, outputs, groups;
    int64_t window[2], stride[2], padding[2], dilation[2];
    int32_t x_zero, w_zero;
} ref_conv_spec;
int64_t ref_conv_output(int64_t size, int64_t window, int64_t stride, int64_t padding, int64_t dilation);
void ref_integer_conv2d(const ref_conv_spec *spec, const ref_requantize_spec *requantize, const void *x,
                        const void *w, const int32_t *bias, void *y);

#ifdef __cplusplus
}
#endif
#endif
