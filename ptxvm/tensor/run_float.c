/* Floating-point mma and wmma: fragments to matrices, dot products by the model's row, and back. */
#include <math.h>
#include <string.h>

#include "internal.h"

static tensor_dot dot_of(const tensor_op *op, bool f16)
{
    const tensor_model *row = op->model;
    return (tensor_dot){
        .a = tensor_format_of(op->atype, false),
        .b = tensor_format_of(op->btype, false),
        .length = row->length,
        .fraction = row->fraction,
        .zero_exp = f16 ? row->zero_exp16 : row->zero_exp32,
        .f16 = f16,
        .short_f32 = row->short_f32,
    };
}

static tensor_dots_fn *dots_of(const tensor_op *op)
{
    return op->wide ? tensor_dots_v3 : tensor_dots_baseline;
}

/* Where c and d differ (f16 m8n8k4 and wmma), the assembler widens an f16 c to f32, runs the f32 instruction,
 * and rounds its result for an f16 d. */
static void widen_c(const tensor_op *op, uint32_t *c, int n)
{
    for (int i = 0; op->ctype == T_F16 && op->dtype != T_F16 && i < n; i++)
        c[i] = tensor_f32_bits(tensor_f16_to_f32(c[i]));
}

static void narrow_d(const tensor_op *op, uint32_t *d, int n)
{
    for (int i = 0; op->dtype == T_F16 && op->ctype != T_F16 && i < n; i++)
        d[i] = tensor_f32_to_f16(tensor_f32_from_bits(d[i]));
}

/* .satfinite, which wmma of f16 had up to ISA 6.4: Inf becomes the largest finite number. */
static void make_finite(const tensor_op *op, uint32_t *d, int n)
{
    const uint32_t inf = op->dtype == T_F16 ? 0x7C00u : 0x7F800000u,
                   sign = op->dtype == T_F16 ? 0x8000u : 0x80000000u;
    for (int i = 0; op->satfinite && i < n; i++)
        if ((d[i] & ~sign) == inf)
            d[i]--;
}

static bool in_f16(const tensor_op *op)
{
    return op->dtype == T_F16 && op->ctype == T_F16;
}

void tensor_run_fdpa(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                     const void *const *c, const void *const *scale)
{
    (void)scale;
    tensor_matrices x;
    const tensor_dot dot = dot_of(op, in_f16(op));
    tensor_gather(op, &x, a, b, c);
    widen_c(op, x.c, op->m * op->n);
    dots_of(op)(&dot, op->m, op->n / PART_COLUMNS, op->k, x.a, x.b, x.c, NULL, NULL);
    narrow_d(op, x.c, op->m * op->n);
    make_finite(op, x.c, op->m * op->n);
    tensor_scatter(op, &x, d);
}

/* fp8 to f16, exactly. e5m2 is the upper half of an f16. */
static uint32_t fp8_to_f16(ptx_type type, uint32_t bits)
{
    if (type == T_E5M2)
        return bits << 8;
    const uint32_t sign = (bits & 0x80) << 8, magnitude = bits & 0x7F;
    if (magnitude == 0x7F)
        return F16_NAN;
    if (magnitude >= 8) /* normal: the exponent's bias grows from 7 to 15 */
        return sign | ((magnitude << 7) + (8u << 10));
    return sign | tensor_round(magnitude, -9, true, false);
}

/* Elements whose k % 4 is 0 or 1 go first, in order, then the others: what the two f16 instructions take. */
static int k_in_order(int k, int at)
{
    const int half = k / 2, i = at % half;
    return i / 2 * 4 + i % 2 + (at < half ? 0 : 2);
}

static void reorder_by_f16(const tensor_op *op, tensor_matrices *x)
{
    const int k = op->k;
    uint32_t a[16 * 32], b[32 * PART_COLUMNS];
    for (int i = 0; i < op->m * k; i++)
        a[i] = fp8_to_f16(op->atype, x->a[i / k * k + k_in_order(k, i % k)]);
    for (int i = 0; i < k * PART_COLUMNS; i++)
        b[i] = fp8_to_f16(op->btype, x->b[k_in_order(k, i / PART_COLUMNS) * PART_COLUMNS + i % PART_COLUMNS]);
    memcpy(x->a, a, sizeof *a * (size_t)(op->m * k));
    memcpy(x->b, b, sizeof *b * (size_t)(k * PART_COLUMNS));
}

void tensor_run_fp8_by_f16(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                           const void *const *c, const void *const *scale)
{
    (void)scale;
    tensor_matrices x;
    uint32_t addend[16 * PART_COLUMNS];
    const int n = op->m * op->n;
    const bool f16 = in_f16(op);
    tensor_dot dot = dot_of(op, f16);
    dot.a = dot.b = tensor_format_of(T_F16, false);
    dot.length = op->k / 2;
    tensor_gather(op, &x, a, b, c);
    memcpy(addend, x.c, sizeof *addend * (size_t)n);
    memset(x.c, 0, sizeof *x.c * (size_t)n);
    reorder_by_f16(op, &x);
    dots_of(op)(&dot, op->m, 1, op->k, x.a, x.b, x.c, NULL, NULL);
    for (int i = 0; i < n; i++)
        x.c[i] = f16 ? tensor_add_f16(x.c[i], addend[i])
                     : tensor_f32_bits(tensor_f32_from_bits(x.c[i]) + tensor_f32_from_bits(addend[i]));
    tensor_scatter(op, &x, d);
}

/* d may be the registers of a, b or c: every quad pair is read before any is written. */
static void run_quads(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                      const void *const *c, void (*multiply)(const tensor_op *op, tensor_matrices *x))
{
    tensor_matrices x[4];
    for (int quad = 0; quad < 4; quad++) {
        tensor_gather_quad(op, quad, &x[quad], a, b, c);
        multiply(op, &x[quad]);
    }
    for (int quad = 0; quad < 4; quad++)
        tensor_scatter_quad(op, quad, &x[quad], d);
}

static void multiply_quad(const tensor_op *op, tensor_matrices *x)
{
    const tensor_dot dot = dot_of(op, in_f16(op));
    widen_c(op, x->c, 64);
    dots_of(op)(&dot, 8, 1, 4, x->a, x->b, x->c, NULL, NULL);
    narrow_d(op, x->c, 64);
}

void tensor_run_quads(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                      const void *const *c, const void *const *scale)
{
    (void)scale;
    run_quads(op, d, a, b, c, multiply_quad);
}

/* What the assembler writes for m8n8k4 from sm_80 on. f32: c + fma chain over k from +0. f16: in f32, (c +
 * pair k 0-1)
 * + pair k 2-3, a pair being an exact product and one fma; then rounded to f16. */
static uint32_t scalar_dot(const tensor_op *op, const float *a, const float *b, uint32_t c)
{
    const float addend = op->ctype == T_F16 ? tensor_f16_to_f32(c) : tensor_f32_from_bits(c);
    if (op->dtype == T_F16)
        return tensor_f32_to_f16((addend + fmaf(a[1], b[1], a[0] * b[0])) + fmaf(a[3], b[3], a[2] * b[2]));
    float sum = 0;
    for (int k = 0; k < 4; k++)
        sum = fmaf(a[k], b[k], sum);
    return tensor_f32_bits(addend + sum);
}

static void multiply_quad_scalar(const tensor_op *op, tensor_matrices *x)
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            float a[4], b[4];
            for (int k = 0; k < 4; k++) {
                a[k] = tensor_f16_to_f32(x->a[i * 4 + k]);
                b[k] = tensor_f16_to_f32(x->b[k * 8 + j]);
            }
            x->c[i * 8 + j] = scalar_dot(op, a, b, x->c[i * 8 + j]);
        }
}

void tensor_run_quads_fma(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                          const void *const *c, const void *const *scale)
{
    (void)scale;
    run_quads(op, d, a, b, c, multiply_quad_scalar);
}

/* mxf8f6f4: one scale 2^(v - 127) for each row of a and column of b; 255 is NaN. */
void tensor_run_scaled(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                       const void *const *c, const void *const *scale)
{
    tensor_matrices x;
    tensor_scales scales;
    int row_exp[16], column_exp[PART_COLUMNS];
    const tensor_dot dot = dot_of(op, false);
    tensor_gather(op, &x, a, b, c);
    tensor_gather_scales(op, &scales, scale);
    for (int i = 0; i < op->m; i++)
        row_exp[i] = scales.a[i][0] - 127;
    for (int j = 0; j < PART_COLUMNS; j++)
        column_exp[j] = scales.b[j][0] - 127;
    dots_of(op)(&dot, op->m, 1, op->k, x.a, x.b, x.c, row_exp, column_exp);
    for (int i = 0; i < op->m * PART_COLUMNS; i++)
        if (scales.a[i / PART_COLUMNS][0] == 0xFF || scales.b[i % PART_COLUMNS][0] == 0xFF)
            x.c[i] = F32_NAN;
    tensor_scatter(op, &x, d);
}

enum { FP4_GROUP = 16, FP4_GROUPS = 4 };

/* A scale: significand * 2^(exp - 3), or NaN. ue4m3 has no sign (the bit is ignored) and keeps subnormals. */
typedef struct fp4_scale {
    bool is_nan;
    int significand, exp;
} fp4_scale;

static fp4_scale read_scale(const tensor_op *op, uint8_t bits)
{
    if (!op->scale_ue4m3)
        return (fp4_scale){bits == 0xFF, 8, bits - 127};
    const int field = bits >> 3 & 15, fraction = bits & 7;
    return (fp4_scale){(bits & 0x7F) == 0x7F, field ? fraction | 8 : fraction, (field ? field : 1) - 7};
}

/* Twice the value of an e2m1. */
static int e2m1_halves(uint32_t bits)
{
    static const int8_t halves[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    return bits & 8 ? -halves[bits & 7] : halves[bits & 7];
}

/* One group of 16 products with its scales: an addend significand * 2^(exp - 8). */
typedef struct fp4_group {
    bool is_nan, is_zero, is_negative_zero;
    int64_t significand;
    int exp;
} fp4_group;

static fp4_group sum_group(const tensor_op *op, const uint32_t *a, const uint32_t *b, uint8_t a_scale,
                           uint8_t b_scale)
{
    const fp4_scale sa = read_scale(op, a_scale), sb = read_scale(op, b_scale);
    int sum = 0;
    bool all_zero = true, all_negative = true;
    for (int k = 0; k < FP4_GROUP; k++) {
        const uint32_t y = b[k * PART_COLUMNS];
        const int product = e2m1_halves(a[k]) * e2m1_halves(y);
        sum += product;
        all_zero &= product == 0;
        all_negative &= (a[k] ^ y) >> 3 & 1;
    }
    const bool zero = all_zero || sa.significand == 0 || sb.significand == 0;
    return (fp4_group){sa.is_nan || sb.is_nan, zero, zero && all_negative,
                       (int64_t)sum * sa.significand * sb.significand, sa.exp + sb.exp};
}

static int64_t cut(int64_t value, int left, int right)
{
    const int64_t magnitude = (value < 0 ? -value : value) << left;
    const int64_t kept = right < 63 ? magnitude >> right : 0;
    return value < 0 ? -kept : kept;
}

/* Four groups and c, aligned to the largest exponent with F bits below it, each cut toward zero. */
static uint32_t fuse_groups(const tensor_model *row, const fp4_group *group, uint32_t c)
{
    const int field = c >> 23 & 0xFF;
    const int64_t fraction = (c & 0x7FFFFF) | (field ? 1 << 23 : 0),
                  significand = c >> 31 ? -fraction : fraction;
    const int c_exp = (field ? field : 1) - 127;
    bool nan = field == 0xFF && (c & 0x7FFFFF), all_negative_zero = c == 0x80000000u;
    int top = significand && c_exp > row->zero_exp32 ? c_exp : row->zero_exp32;
    for (int g = 0; g < FP4_GROUPS; g++) {
        nan |= group[g].is_nan;
        all_negative_zero &= group[g].is_negative_zero;
        if (!group[g].is_zero && group[g].exp > top)
            top = group[g].exp;
    }
    if (nan)
        return F32_NAN;
    if (field == 0xFF || all_negative_zero)
        return c;
    int64_t sum = significand ? cut(significand, row->fraction - 23, top - c_exp) : 0;
    for (int g = 0; g < FP4_GROUPS; g++)
        if (!group[g].is_zero)
            sum += cut(group[g].significand, row->fraction - 8, top - group[g].exp);
    return tensor_round(sum, top - row->fraction, false, false);
}

void tensor_run_scaled_fp4(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                           const void *const *c, const void *const *scale)
{
    tensor_matrices x;
    tensor_scales scales;
    tensor_gather(op, &x, a, b, c);
    tensor_gather_scales(op, &scales, scale);
    for (int i = 0; i < op->m; i++)
        for (int j = 0; j < PART_COLUMNS; j++) {
            fp4_group group[FP4_GROUPS];
            for (int g = 0; g < FP4_GROUPS; g++)
                group[g] = sum_group(
                    op, x.a + i * op->k + g * FP4_GROUP, x.b + g * FP4_GROUP * PART_COLUMNS + j,
                    scales.a[i][g * op->scales / FP4_GROUPS], scales.b[j][g * op->scales / FP4_GROUPS]);
            x.c[i * PART_COLUMNS + j] = fuse_groups(op->model, group, x.c[i * PART_COLUMNS + j]);
        }
    tensor_scatter(op, &x, d);
}
