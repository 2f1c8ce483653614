/* The host reference: each operation in plain C, correct to the bit. docs/numerics.md is its contract.
 *
 * Kernels are compared with it, so it is written to be read, not to be fast. Results do not depend on the
 * caller's floating-point environment (rounding mode, flush-to-zero), which is the same after a call. An invalid spec is a bug in the
 * caller: it is reported on stderr and the program aborts; ref_is_legal tells beforehand. */
#ifndef QDNN_HOST_REF_H
#define QDNN_HOST_REF_H

#include "qdnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group's scale is never below this / qmax, unless the spec sets another floor. */
#define REF_DEFAULT_FLOOR 1e-12f

/* Every NaN that an operation writes. */
#define REF_NAN_F32 UINT32_C(0x7FFFFFFF)
#define REF_NAN_F16 UINT16_C(0x7FFF) /* bf16 too */

/* How a tensor is quantized: the public attributes of the same names, with defaults resolved. The tensor is a
 * matrix of rows by columns; its plain values are stored row by row. A flat tensor is one row. A member that
 * is 0 is at its default; `data`, `storage`, `group_size` and `floor` have none. docs/formats.md shows each
 * choice in bytes. */
typedef struct {
    qdnnDataType_t data; /* of plain values: F32, F16, BF16, F64 */

    /* Codes. */
    qdnnBlockFormat_t block; /* not NONE: it determines everything below */
    qdnnDataType_t storage;  /* I4, I8, U8, NF4, FP4, F8E4M3, F8E5M2; F32, F16, BF16: plain, without scales */
    int bits;                /* of integer codes, 2 to 6 or 8; 0: the storage's width */
    qdnnCodeKind_t code;
    qdnnLayout_t layout;
    qdnnNibbleOrder_t nibble_order; /* of 4-bit codes in bytes */

    /* Groups: which elements share a scale. */
    qdnnGroups_t groups;
    int64_t group_size; /* along the direction of groups; at least 1, may exceed the tensor */
    /* Across that direction, for 2-D blocks: rows of groups along rows, columns of groups down columns. 0
     * means 1. */
    int64_t group_rows;
    /* Flat groups: element i is in group (i / group_size) mod channels. 0: in group i / group_size. */
    int64_t channels;
    bool group_index; /* groups down columns: g_idx[k] is the group of row k */

    /* Scales. */
    qdnnScaleOrder_t scale_order;
    qdnnScaleSwizzle_t scale_swizzle; /* of the array in its own order: [rows, groups] or the transpose */
    bool no_scale;                    /* every scale is 1, and there is no array of them */
    qdnnScaleType_t scale;
    bool nested;      /* scales are bytes: map[byte] * nested_scale[group / 256] + nested_offset */
    int global_scale; /* E4M3 scales; 1: one f32 multiplies all of them; 2: it is stored as its reciprocal */
    qdnnMxRounding_t mx_rounding; /* of E8M0 scales */
    float floor;                  /* finite, not negative; NF4 and bitsandbytes' FP4: 0 allows a scale of 0 */

    /* Zeros and minima, one per scale. */
    qdnnZeroKind_t zero_kind;
    qdnnDataType_t zero; /* U8, I8, U32, I32, F32, F16, BF16; minima F32, F16, BF16 */
    /* Zeros are encoded like codes, in u32 words along the columns (groups along rows: along the rows; flat
     * groups: along the groups). */
    bool zero_packed;
    bool zero_minus_one; /* stored integer zeros are smaller by 1 */
    bool zero_wraps;     /* of those, the largest code means 0, not 2^bits */
    qdnnRange_t range;

    qdnnRounding_t rounding; /* of integer codes; zero points always round ties to even */
    qdnnDivision_t division; /* of codes; scales and zero points always divide */
} ref_quant_spec;

/* The arrays of a quantized tensor. Those that the spec does not use are ignored. */
typedef struct {
    void *codes;                /* or blocks */
    void *scale;                /* of type spec.scale; bytes if scales are nested */
    void *zero;                 /* zeros or minima */
    float *global_scale;        /* one */
    const int32_t *group_index; /* [rows]; out of range: the row has a NaN scale */
    const float *nested_map;    /* [256] */
    float *nested_scale;        /* one per 256 scales */
    const float *nested_offset; /* one */
} ref_arrays;

/* The size in bytes of each array of a rows x columns tensor; 0 if there is none. */
typedef struct {
    int64_t codes, scale, zero, global_scale, group_index, nested_map, nested_scale, nested_offset;
} ref_sizes;
ref_sizes ref_sizes_of(const ref_quant_spec *spec, int64_t rows, int64_t columns);

/* Whether the operation below of that name has a reference for such a tensor. If not, `reason` receives the
 * rule that the spec violates. The library accepts and refuses the same. */
typedef enum { REF_SCALE, REF_QUANTIZE, REF_DEQUANTIZE } ref_operation;
bool ref_is_legal(ref_operation operation, const ref_quant_spec *spec, int64_t rows, int64_t columns,
                  char *reason, size_t size);

/* The number of scales, without padding. */
int64_t ref_group_count(const ref_quant_spec *spec, int64_t rows, int64_t columns);

/* The value of one element, in f32, each step rounded once as defined in docs/numerics.md. */
float ref_decode(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in, int64_t row,
                 int64_t column);

/* Writes rows x columns elements of type spec->data. */
void ref_dequantize(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in, void *y);

/* The same for selected rows, in the order of the list: y has `count` rows. An index out of range gives
 * NaN. */
void ref_dequantize_rows(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in,
                         const int32_t *index, int64_t count, void *y);

/* Converts codes from one layout, nibble order and kind to another; `to` has the same storage and bits.
 * Between two's complement and the other kinds the highest bit changes. */
void ref_repack(const ref_quant_spec *from, const ref_quant_spec *to, int64_t rows, int64_t columns,
                const void *codes, void *repacked);

/* Writes the scales of x, and the zeros and the global scale if the spec has them; padding of scales is 0.
 * Nested scales are encoded with the map and offset in `out`. Not for blocks, which are quantized in one
 * step. */
void ref_scale(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
               const ref_arrays *out);

/* Writes the codes, using scales, zeros and global scale as stored, however they were computed. (bitsandbytes
 * computes codes before it nests the scales: to get its bytes, quantize without `nested`.) Blocks are written
 * as a whole. */
void ref_quantize(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
                  const ref_arrays *io);

/* Conversions: widening is exact, narrowing rounds to nearest even and overflows to infinity; NaNs become
 * canonical. */
float ref_f32_from_bits(uint32_t bits);
uint32_t ref_f32_to_bits(float x);
float ref_f16_to_f32(uint16_t bits);
uint16_t ref_f32_to_f16(float x);
float ref_bf16_to_f32(uint16_t bits);
uint16_t ref_f32_to_bf16(float x);

/* The floats of 4, 6 and 8 bits. Narrowing rounds to nearest even and saturates at the largest finite number;
 * a NaN becomes 7F, or 0 if the type has none. */
typedef enum { REF_E4M3, REF_E5M2, REF_E2M3, REF_E3M2, REF_E2M1 } ref_minifloat;
float ref_minifloat_to_f32(ref_minifloat type, unsigned code);
unsigned ref_f32_to_minifloat(ref_minifloat type, float x);
float ref_minifloat_largest(ref_minifloat type);
float ref_e8m0_to_f32(uint8_t code); /* 2^(code - 127); 255 is NaN */

/* Elements of an array of F32, F16, BF16, F64, U8, I8, U32 or I32, at any alignment. Loading F64 and wide
 * integers rounds to nearest even; storing rounds as above; values stored as integers must be integers within
 * range. */
size_t ref_scalar_size(qdnnDataType_t type);
qdnnDataType_t ref_scale_data_type(qdnnScaleType_t type); /* of F32, F16 and BF16 scales */
float ref_scalar_load(qdnnDataType_t type, const void *array, int64_t index);
void ref_scalar_store(qdnnDataType_t type, void *array, int64_t index, float value);

/* The range that a stored scale is clamped to: the smallest positive and the largest finite value of the
 * type. */
float ref_scalar_smallest(qdnnDataType_t type);
float ref_scalar_largest(qdnnDataType_t type);

/* Elementary functions: fixed sequences of f32 operations (docs/numerics.md), so that the bits are the same
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
    int64_t outputs; /* of the weights: N; for gated pairs 2N, first a, then b, and y = act(a) * b */
    bool k_rows;     /* the weights are [K, outputs]; else [outputs, K] */
    ref_quant_spec weights;
    qdnnDataType_t x, y;        /* F32, F16, BF16; in mode tensor x may also be F8E4M3 or F8E5M2 */
    int64_t x_stride, y_stride; /* elements from one row to the next */
    qdnnAlpha_t alpha;
    float alpha_number;
    qdnnDataType_t bias; /* if there is one */
    qdnnActivation_t activation;
    bool gated;
    int64_t experts; /* not 0: the weights are a stack, and each row of y selects one of them */
    int64_t slots;   /* rows of y for each row of x: row m of y is that of row m / slots; 0 counts as 1 */
} ref_product;

/* Members that are null are omitted from the formula. */
typedef struct {
    const void *x;
    ref_arrays weights;
    const float *alpha;          /* one, or one per output of each expert */
    const float *addend;         /* [m, outputs], added before the bias; or null */
    const void *bias;            /* one per output of each expert; or null */
    const void *residual;        /* like y; or null */
    const int32_t *expert_index; /* [m]; out of range: a row of NaN */
    const float *row_weight;     /* [m]; or null */
    void *y;
    const float *x_scale; /* one per row of x: S is first multiplied by it; or null */
} ref_product_arrays;

/* In mode exact. */
void ref_product_exact(const ref_product *p, const ref_product_arrays *a);

/* The sum of x[k] * w[k], or of x[k] if w is null: 32 lanes with chunks of 8, then a tree. Never -0. */
float ref_exact_sum(const float *x, const float *w, int64_t n);

/* Norms of packed rows (docs/numerics.md, "Operations on rows"). A type of 0 means that there is no such array. */
typedef struct {
    int64_t columns;
    bool is_layer;         /* layer norm; else RMS norm */
    bool plus_one;         /* the factor is 1 + weight */
    qdnnDataType_t x, y;   /* F32, F16, BF16, as the others */
    qdnnDataType_t weight; /* [columns] */
    qdnnDataType_t bias;   /* [columns] */
    qdnnDataType_t sum;    /* of the residual, and of x + residual, which is written */
    float eps;
} ref_norm_spec;
typedef struct {
    const void *x, *weight, *bias, *residual;
    void *sum, *y;
} ref_norm_arrays;
void ref_norm(const ref_norm_spec *spec, int64_t rows, const ref_norm_arrays *a);

/* Operations on each element. The second input is an array like x, one row, a number, or a part of each row of x, which
 * then has 2 * columns. */
typedef enum { REF_ADD, REF_MUL, REF_FUNCTION, REF_GATED } ref_pointwise_kind;
typedef enum {
    REF_B_NONE,
    REF_B_SAME,
    REF_B_ROW,
    REF_B_NUMBER,
    REF_B_SECOND_HALF,
    REF_B_FIRST_HALF,
    REF_B_INTERLEAVED
} ref_pointwise_b;
typedef struct {
    int64_t columns; /* of the result */
    ref_pointwise_kind kind;
    qdnnActivation_t function; /* of FUNCTION and GATED */
    ref_pointwise_b b;
    float number, limit, factor;
    qdnnDataType_t x, b_type, y;
} ref_pointwise_spec;
void ref_pointwise(const ref_pointwise_spec *spec, int64_t rows, const void *x, const void *b, void *y);

/* Rope (docs/numerics.md): rows of heads, `gap` elements between the tokens of x. A section of 0 pairs does not exist; one section:
 * all pairs have the same position. positions: [tokens, sections], or with section_stride that far from section to section. */
typedef struct {
    int64_t head, heads, gap;
    int64_t first, size; /* elements that are rotated */
    bool neighbours, interleaved;
    int64_t section[4], section_stride;
    int64_t positions; /* rows of the tables */
    qdnnDataType_t x, y;
} ref_rope_spec;
void ref_rope(const ref_rope_spec *spec, int64_t tokens, const float *cos, const float *sin,
              const int32_t *position, const void *x, void *y);

/* The tables of rope: the frequency of pair i, and rows first, first + 1 ... of the tables. Null arrays: none. */
typedef enum { REF_ROPE_NO_RULE, REF_ROPE_LINEAR, REF_ROPE_LLAMA3, REF_ROPE_YARN } ref_rope_rule;
typedef struct {
    int64_t rotary;
    double base;
    const float *frequencies, *divisors;
    ref_rope_rule rule;
    double factor, low, high; /* LLAMA3: the two factors; YARN: betaFast and betaSlow */
    bool is_exact;            /* YARN: ends that are not rounded */
    int64_t length;           /* originalPositions */
    float attention_factor;   /* 0: 1, or that of YARN */
} ref_rope_tables_spec;
float ref_rope_frequency(const ref_rope_tables_spec *spec, int64_t i);
void ref_rope_tables(const ref_rope_tables_spec *spec, int64_t first, int64_t positions, float *cos,
                     float *sin);

/* The keys or values of a KV cache; strides in elements. */
typedef enum { REF_KV_BY_TOKEN, REF_KV_BY_GROUP, REF_KV_BY_HEAD, REF_KV_BY_CACHE } ref_kv_scales;
typedef struct {
    int64_t pages, page_slots, heads, head_size;
    int64_t page_stride, slot_stride, head_stride;
    qdnnDataType_t type;  /* 0: quantized */
    ref_quant_spec quant; /* of a head; data: the type of what is written */
    ref_kv_scales scales;
    bool by_head;
} ref_kv_spec;
/* Bytes of the array and of its scales. */
int64_t ref_kv_bytes(const ref_kv_spec *spec);
int64_t ref_kv_scale_bytes(const ref_kv_spec *spec);
/* Writes a head, of type quant.data, into a slot; nothing if there is no such slot. */
void ref_kv_write(const ref_kv_spec *spec, int64_t slot, int64_t head, const void *x, void *array,
                  void *scale);
/* Reads a head as f32: what attention computes with. */
void ref_kv_read(const ref_kv_spec *spec, int64_t slot, int64_t head, const void *array, const void *scale,
                 float *x);
/* The slot of key `index` of a sequence; table_pages 0: contiguous. -1: none. */
int64_t ref_kv_slot(const ref_kv_spec *spec, const int32_t *page_table, int64_t table_pages, int64_t sequence,
                    int64_t index);

/* Operations for training. Element i is in group (i / group_size) mod channels; channels 0: in group i /
 * group_size. */
typedef struct {
    int bits; /* 8, 4, 2 */
    int64_t group_size, channels;
    qdnnRounding_t rounding; /* public descriptors default to TIES_AWAY */
    qdnnScaleMode_t mode;    /* of fake quantization */
    float decay;             /* of EMA */
    qdnnBackward_t backward;
    bool gradient_factor; /* LSQ: dscale is multiplied by 1 / sqrt(count * qmax) */
} ref_train_spec;

/* The number of scales (or states) of n elements. */
int64_t ref_train_groups(const ref_train_spec *spec, int64_t n);

/* EMA updates the state; FIXED reads it; BATCH ignores it. */
void ref_fake_quantize(const ref_train_spec *spec, int64_t n, const float *x, float *state, float *y);
/* The state is that after the forward pass. IDENTITY uses neither x nor the state. */
void ref_fake_quantize_backward(const ref_train_spec *spec, int64_t n, const float *x, const float *state,
                                const float *dy, float *dx);
void ref_lsq(const ref_train_spec *spec, int64_t n, const float *x, const float *scale, float *y);
void ref_lsq_backward(const ref_train_spec *spec, int64_t n, const float *x, const float *scale,
                      const float *dy, float *dx, float *dscale);

/* Mode tensor: what tensor cores compute (docs/numerics.md). All SMs of a family give the same bits. */
typedef enum {
    REF_TENSOR_SM75,  /* 75 */
    REF_TENSOR_SM80,  /* 80, 86, 87, 88, 89 */
    REF_TENSOR_SM90,  /* 90 */
    REF_TENSOR_SM100, /* 100, 103, 110 */
    REF_TENSOR_SM120, /* 120, 121 */
    REF_TENSOR_FAMILIES
} ref_tensor_family;
ref_tensor_family ref_tensor_family_of(int sm);

/* Whether an SM has its own instruction for two inputs of that type: F16, BF16, F8E4M3, F8E5M2. */
bool ref_tensor_has(int sm, qdnnDataType_t type);

/* How well the model of the SM is confirmed: compared with results of such a GPU, stated by others who did
 * that, or taken from the most similar SM. */
typedef enum { REF_STANDING_MEASURED, REF_STANDING_PUBLISHED, REF_STANDING_ASSUMED } ref_standing;
ref_standing ref_tensor_standing(int sm, qdnnDataType_t type);

/* The k of a strip; each strip is summed separately. */
enum { REF_TENSOR_STRIP = 512 };

/* The k of one instruction; and one instruction: c plus the sum of a[i] * b[i], i < k, as rounded by the
 * hardware; missing elements are zeros. Both types are F16, both BF16, or each is F8E4M3 or F8E5M2. */
int ref_tensor_depth(ref_tensor_family family, qdnnDataType_t type);
float ref_tensor_mma(ref_tensor_family family, qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type,
                     const void *b, int64_t k, float c);
/* One element of wgmma.mma_async (sm_90a) with f32 results: c plus the sum of a[i] * b[i] over its whole k, which is
 * ref_tensor_wgmma_depth. Both types are F16, both BF16, both F32 (taken as TF32: the low 13 bits are dropped), or each
 * is F8E4M3 or F8E5M2. Compared with results of GPUs for FP8 with c = 0; otherwise stated by others. No product of the
 * library uses it yet. */
int ref_tensor_wgmma_depth(qdnnDataType_t type);
float ref_tensor_wgmma(qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type, const void *b, float c);
/* One element of tcgen05.mma (sm_100a and its kin) with f32 results; no product of the library uses it yet. First: 16
 * elements of F16 or BF16, or 8 of F32 (as TF32). f8f6f4: 32 codes, each in the low bits of its byte; with scales, those
 * of a and b in E8M0, it is mxf8f6f4. fp4: 64 codes of E2M1, with 2 or 4 scales of each along k, in E8M0 or UE4M3. The
 * first two are stated by others; E3M2, E2M3, scales, and pairs of blocks are assumed to be as on sm_120. Integers are
 * exact. */
float ref_tensor_tcgen05(qdnnDataType_t type, const void *a, const void *b, float c);
float ref_tensor_tcgen05_f8f6f4(ref_minifloat a_type, const uint8_t *a, ref_minifloat b_type,
                                const uint8_t *b, const uint8_t *scales, float c);
float ref_tensor_tcgen05_fp4(const uint8_t *a, const uint8_t *b, int scales, bool ue4m3,
                             const uint8_t *a_scale, const uint8_t *b_scale, float c);
/* S of mode tensor: strips of instructions, added in order. */
float ref_tensor_sum(ref_tensor_family family, qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type,
                     const void *b, int64_t k);

/* Converts codes to the order that tensor cores consume, and back; n columns and k rows of a product, stored
 * as [n, k] or, with k_rows, as [k, n]. */
int64_t ref_prepacked_bytes(const ref_quant_spec *spec, int64_t n, int64_t k);
void ref_prepack(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool k_rows, const void *codes,
                 void *packed);
void ref_unpack(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool k_rows, const void *packed,
                void *codes);

/* A product in mode tensor: x is F16 or BF16, and the weights are rounded to its type. */
void ref_product_tensor(const ref_product *p, const ref_product_arrays *a, ref_tensor_family family);
/* The same for an SM. x may be FP8, with FP8 weights without scales: with FP8 instructions on sm_89, 120 and
 * 121, with f16 instructions elsewhere. */
void ref_product_tensor_on(const ref_product *p, const ref_product_arrays *a, int sm);

/* The long sum of docs/numerics.md: of a[i] * b[i], or of a[i] if b is null. */
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
int32_t ref_integer_code(qdnnDataType_t type, const void *codes, int64_t columns, int64_t row,
                         int64_t column);

/* The sum over k of (x - x_zero) * (w - w_zero). */
int32_t ref_integer_sum(const ref_integer_spec *spec, const void *x, const void *w, int64_t m, int64_t n);
int32_t ref_int4_dot(int64_t k, const void *a, const void *b);
/* (f32(sum) * first) * second */
float ref_integer_scaled(int32_t sum, float first, float second);

/* How a sum becomes a code. */
typedef struct {
    qdnnDataType_t y; /* I8, U8; I32: the sums themselves */
    float multiplier;
    const float *multipliers; /* one per column; null: multiplier */
    int32_t y_zero;
    qdnnRounding_t rounding;
} ref_requantize_spec;
int32_t ref_requantized(int32_t sum, float multiplier, const ref_requantize_spec *spec);

/* y = [m, n]. bias may be null. */
void ref_integer_matmul(const ref_integer_spec *spec, const ref_requantize_spec *requantize, const void *x,
                        const void *w, const int32_t *bias, void *y);

/* One sum of w4a8: f32 sums over groups along k, in strips; scale is [n, groups]. */
float ref_w4a8_sum(const ref_integer_spec *spec, int64_t group_size, qdnnScaleType_t type, const void *x,
                   const void *w, const void *scale, int64_t m, int64_t n);

/* The scales of a product: one per row of x; one per column of w, or per group along k. */
typedef struct {
    const float *x;
    const void *w;      /* f32 [n]; with groups [n, groups], of the type below */
    int64_t group_size; /* 0: one per column */
    qdnnScaleType_t type;
    bool w_first; /* (f32(sum) * w) * x */
} ref_integer_scales;

/* Scaled results. Of `law` alpha, alpha_number, bias, activation, gated, experts, slots and y are used, and of the arrays alpha,
 * bias, residual, expert_index, row_weight and y. n is the number of outputs of w, of one expert's in a stack. */
void ref_integer_product(const ref_integer_spec *spec, const ref_integer_scales *scales,
                         const ref_product *law, const void *x, const void *w,
                         const ref_product_arrays *arrays);

/* The `top` largest of a row in descending order; equal ones by index, NaNs last. */
void ref_top(int64_t count, const float *scores, int64_t top, float *best, int32_t *index);

/* Pairs are height, width. x is [images, channels, height, width], w [outputs, channels / groups, window];
 * nhwc: the channels come last in both, and in y. */
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

/* ---- Softmax, selection and copies (docs/numerics.md). The functions work on one row; copies on a tensor. ---- */

typedef struct {
    qdnnDataType_t x, y; /* F32, F16, BF16 */
    float scale;
    qdnnDataType_t mask; /* the same types */
} ref_softmax_spec;
/* mask [n], slope and sink (one number each) may be null. */
void ref_softmax(const ref_softmax_spec *spec, int64_t n, const void *x, const void *mask, const float *slope,
                 const float *sink, void *y);

/* The k largest in descending order, and their places: equal ones by place, NaN last. */
enum { REF_TOP_MAX = 1024 };
void ref_top_k(qdnnDataType_t type, const void *x, int64_t n, int64_t k, void *best, int32_t *index);

typedef struct {
    qdnnDataType_t logits; /* F32, F16, BF16 */
    int64_t experts, slots;
    qdnnScores_t scores;
    int64_t groups, top_groups; /* 1, 1: all experts may be chosen */
    qdnnGroupScore_t group_score;
    bool renormalize;
    float epsilon, factor;
} ref_route_spec;
/* bias [experts] may be null; expert and weight are [slots]. */
void ref_route(const ref_route_spec *spec, const void *logits, const float *bias, int32_t *expert,
               float *weight);

typedef struct {
    qdnnDataType_t x, y; /* F32, F16, BF16; the residual is of type y */
    int64_t slots;
} ref_combine_spec;
/* x is [slots, n], weight [slots]; the residual may be null. */
void ref_combine(const ref_combine_spec *spec, int64_t n, const void *x, const float *weight,
                 const void *residual, void *y);

/* The settings of a row: those of qdnnSampling_t. */
typedef struct {
    float temperature, top_p, min_p;
    int32_t top_k;
    float repetition, frequency, presence;
} ref_sampling;
enum { REF_SAMPLE_SEGMENT = 1024 };
/* The token chosen. counts [n] may be null. */
int32_t ref_sample(const ref_sampling *sampling, qdnnDataType_t type, const void *logits, int64_t n,
                   const int32_t *counts, uint64_t seed, uint64_t step);
/* Philox4x32-10. */
void ref_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4]);

/* One element: y[y_index] = x[x_index]. F32, F16, BF16, F64, F8E4M3, F8E5M2; equal types, of any kind: the bytes. */
void ref_convert(qdnnDataType_t from, const void *x, int64_t x_index, qdnnDataType_t to, void *y,
                 int64_t y_index);
/* All elements of a tensor; strides count elements. */
enum { REF_COPY_DIMS = 8 };
typedef struct {
    qdnnDataType_t x, y;
    int rank;
    int64_t dims[REF_COPY_DIMS], x_strides[REF_COPY_DIMS], y_strides[REF_COPY_DIMS];
} ref_copy_spec;
void ref_copy(const ref_copy_spec *spec, const void *x, void *y);
/* Rows by index; strides count elements, and those of the table are x_stride for a gather, y_stride for a scatter. */
typedef struct {
    qdnnDataType_t x, y;
    int64_t columns, table_rows, x_stride, y_stride;
} ref_rows_spec;
void ref_gather(const ref_rows_spec *spec, int64_t rows, const void *table, const int64_t *index, void *y);
void ref_scatter(const ref_rows_spec *spec, int64_t rows, const void *x, const int64_t *index, void *table);

/* ---- Attention (docs/numerics.md): one head of one query ---- */

typedef struct {
    qdnnDataType_t x, y; /* of the query and the result: F32, F16, BF16; mode tensor: x F16 or BF16 */
    int64_t d, dv;       /* elements of a key and of a value */
    float scale, cap;    /* cap 0: none */
    qdnnDataType_t mask; /* of the mask, if there is one */
    bool alibi;          /* slope * (key - last) is added instead of a mask */
} ref_attention_spec;
typedef struct {
    const void *q;       /* [d] */
    const float *keys;   /* key j begins at keys + j * key_stride: as dequantize to f32 writes it */
    const float *values; /* likewise; may be the keys */
    int64_t key_stride, value_stride;
    int64_t first, last;       /* the keys that the query sees; none if last < first */
    const bool *absent;        /* [last + 1]: keys that do not exist; may be null */
    const void *mask;          /* [last + 1]; may be null */
    const float *slope, *sink; /* one number each; may be null */
} ref_attention_row;
void ref_attention(const ref_attention_spec *spec, const ref_attention_row *row, void *y);
void ref_attention_tensor(const ref_attention_spec *spec, const ref_attention_row *row,
                          ref_tensor_family family, void *y);
/* e^x for x <= 0, to be rounded to 16 bits. */
float ref_exp16(float x);

#ifdef __cplusplus
}
#endif
#endif
