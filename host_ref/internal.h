/* Shared by the files of host_ref. Each section is implemented by the file that it names. Names begin with
 * hr_, because users link host_ref into their own programs. */
#ifndef QDNN_HOST_REF_INTERNAL_H
#define QDNN_HOST_REF_INTERNAL_H

#include "host_ref/arith.h"
#include "host_ref/host_ref.h"

/* ---- The public functions without a change of the floating-point environment: host_ref calls these ---- */

#define F(type, name, params, args) type hr_##name params;
#define V(name, params, args)       void hr_##name params;
#include "host_ref/entries.def"
#undef F
#undef V

/* ---- scalar.c ---- */

float hr_canonical(float x); /* every NaN becomes REF_NAN_F32 */

/* ---- codec.c: the meaning of codes ---- */

typedef enum { CODEC_INTEGER, CODEC_TABLE, CODEC_FLOAT } codec_family;

typedef struct codec {
    qdnnDataType_t storage;
    qdnnCodeKind_t kind;
    codec_family family;
    int bits;
    float low, high; /* integers: the smallest and the largest number */
    float top;       /* the number that a group's absmax maps to, if there is no zero */
    /* For E8M0 scales: top is in [2^emax, 2^(emax + 1)); numbers have so many bits after the leading one. */
    int emax, mantissa_bits;
    bool has_nan;
    float (*decode)(const struct codec *codec, unsigned code);
    /* The code of the nearest number. Integers: v is integral and within [low, high]. */
    unsigned (*encode)(const struct codec *codec, float v);
} codec;

/* The rule that a spec violates, for the caller to show. */
typedef struct {
    char *text;
    size_t size;
} hr_reason;
enum { HR_REASON_BYTES = 160 };

/* The codec of a spec that is neither plain nor blocks; false, with the rule, if no row of the table matches. */
bool hr_codec_of(const ref_quant_spec *spec, codec *out, const hr_reason *why);

/* The index of the nearest of `count` ascending entries; on a midpoint, the lower one. */
unsigned hr_nearest_entry(const float *entries, unsigned count, float v);

/* ---- spec.c: a validated spec, with its defaults filled in ---- */

/* If `ok` is false, prints the violated rule and aborts. (A macro, so that the rule's arguments cost nothing if it holds: rules
 * are checked for every element.) */
#define hr_require(ok, ...) ((ok) ? (void)0 : hr_refuse(__VA_ARGS__))
_Noreturn void hr_refuse(const char *rule, ...) __attribute__((format(printf, 1, 2)));

/* Writes a violated rule, and returns false; and a rule of a function that returns whether all hold and has `why`. */
bool hr_deny(const hr_reason *why, const char *rule, ...) __attribute__((format(printf, 2, 3)));
#define HR_RULE(ok, ...)                                                                                     \
    do {                                                                                                     \
        if (!(ok))                                                                                           \
            return hr_deny(why, __VA_ARGS__);                                                                \
    } while (0)

typedef struct {
    ref_quant_spec spec; /* bits, code, groups and group_rows are never 0 or DEFAULT */
    codec codec;
    bool plain; /* values are stored unquantized */
    int64_t rows, columns;
    int64_t lines, groups; /* groups.c */
} tensor;

bool hr_data_is_legal(const ref_quant_spec *spec, const hr_reason *why);
bool hr_shape_is_legal(int64_t rows, int64_t columns, const hr_reason *why);
/* Aborts if the spec is not legal. */
tensor hr_tensor_of(const ref_quant_spec *spec, int64_t rows, int64_t columns);

/* ---- layout.c: where codes are stored ---- */

/* A stream of u32 words (little-endian): word w is at index `first + w * stride` of an array. A code takes
 * `bits` bits of the stream starting at bit `bit`, lowest first. */
typedef struct {
    int64_t first, stride, bit;
} code_place;

code_place hr_place_of_code(const tensor *t, int64_t row, int64_t column);
int64_t hr_code_bytes(const tensor *t);
unsigned hr_get_code(const void *array, code_place place, int bits);
void hr_put_code(void *array, code_place place, int bits, unsigned code);
/* The bit of a column's nibble in AWQ's row of words. */
int64_t hr_awq_bit(int64_t column);
bool hr_layout_is_known(qdnnLayout_t layout);
qdnnGroups_t hr_default_groups(qdnnLayout_t layout);

/* ---- groups.c: which elements share a scale, and where it is stored ---- */

/* The groups of a line cover one row (groups along rows), one column (groups down columns) or, with
 * group_rows, a band of several; flat groups have one line. */
typedef struct {
    int64_t line, group;
} group_place;

/* The group of a row whose group_index is out of range: its scale is NaN, its zero 0. */
enum { NO_GROUP = -1 };

int64_t hr_flat_or_lined_groups(const ref_quant_spec *spec, int64_t rows, int64_t columns, int64_t *lines);
group_place hr_group_of(const tensor *t, const ref_arrays *in, int64_t row, int64_t column);
int64_t hr_group_total(const tensor *t);
int64_t hr_group_number(const tensor *t,
                        group_place place); /* its index in [lines, groups] or the transpose */
group_place hr_group_numbered(const tensor *t, int64_t number);
int64_t hr_scale_slot(const tensor *t, int64_t number); /* its index in memory: the same, or swizzled */
int64_t hr_scale_slots(const tensor *t);                /* with padding */

/* ---- scales.c: scales, zeros and the global scale as stored ---- */

int64_t hr_scale_size(const tensor *t);
float hr_load_global(const tensor *t, const ref_arrays *in);
float hr_load_scale(const tensor *t, const ref_arrays *in, group_place place);
float hr_load_zero(const tensor *t, const ref_arrays *in, group_place place);
/* Both round to the stored type. scales[number] are the scales of all groups. */
void hr_store_scales(const tensor *t, const ref_arrays *out, const float *scales);
void hr_store_zero(const tensor *t, const ref_arrays *out, group_place place, float zero);
int64_t hr_zero_bytes(const tensor *t);
bool hr_zero_is_float(const ref_quant_spec *spec);

/* ---- range.c: how scales and zeros are computed ---- */

/* The smallest and largest value of a group, ignoring NaN; lo > hi if there is none. */
typedef struct {
    float lo, hi;
} group_range;

float hr_global_from(const tensor *t, float absmax); /* as stored */
float hr_scale_from(const tensor *t, group_range range, float global);
float hr_zero_from(const tensor *t, group_range range, float scale);
float hr_absmax_of(group_range range);

/* ---- quant.c ---- */

/* x / scale, by the spec's kind of division. */
float hr_quotient(const tensor *t, float x, float scale);
/* An element of what is no block. */
float hr_decode_at(const tensor *t, const ref_arrays *in, int64_t row, int64_t column);

/* ---- product.c ---- */

/* A mode: the sum of n products x[k] * w[k] in its order, and the rounding of decoded weights before it (null: none). */
typedef struct {
    float (*sum)(const void *user, const float *x, const float *w, int64_t n);
    void (*round)(const void *user, float *w, int64_t n);
    const void *user;
} hr_mode;
/* tensor_core.c: an element of x, which may be FP8. */
float hr_input_load(qdnnDataType_t type, const void *array, int64_t index);
/* A product with such sums; the weights are decoded to f32. */
void hr_product(const ref_product *p, const ref_product_arrays *a, hr_mode mode);
/* The row of x that belongs to a row of y, and a row of y that has no expert. */
int64_t hr_product_x_row(const ref_product *p, int64_t m);
void hr_product_row_of_nan(const ref_product *p, const ref_product_arrays *a, int64_t m);
/* From the sums of y[m, n] (two for a gated pair: a and b) to the element, as in every product. */
void hr_product_finish(const ref_product *p, const ref_product_arrays *a, int64_t expert, int64_t m,
                       int64_t n, const float sums[2]);

/* ---- blocks.c ---- */

bool hr_blocks_are_legal(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool encodes,
                         const hr_reason *why);
int64_t hr_block_array_bytes(const ref_quant_spec *spec, int64_t rows, int64_t columns);
float hr_block_decode_one(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *blocks,
                          int64_t row, int64_t column);
void hr_block_quantize_all(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
                           void *blocks);
void hr_block_dequantize_all(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *blocks,
                             void *y);

#endif
