/* Block-scaled mma: mxf8f6f4 by the common operation with the scales' exponents added, mxf4 and mxf4nvf4 by
 * their own. */
#include <string.h>

#include "internal.h"

/* mxf8f6f4: one scale 2^(v - 127) for each row of a and column of b; 255 is NaN. */
static void multiply_scaled(const tensor_op *op, const uint32_t *a, const uint32_t *b, uint32_t *c,
                            const tensor_scales *scales)
{
    int row_exp[16], column_exp[PART_COLUMNS];
    const tensor_dot dot = tensor_dot_of(op, false);
    for (int i = 0; i < op->m; i++)
        row_exp[i] = scales->a[i][0] - 127;
    for (int j = 0; j < PART_COLUMNS; j++)
        column_exp[j] = scales->b[j][0] - 127;
    tensor_dots_of(op)(&dot, op->m, 1, op->k, a, b, c, row_exp, column_exp);
    for (int i = 0; i < op->m * PART_COLUMNS; i++)
        if (scales->a[i / PART_COLUMNS][0] == 0xFF || scales->b[i % PART_COLUMNS][0] == 0xFF)
            c[i] = F32_NAN;
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

/* Twice the value of an e2m1, and -1 where its sign is set. 16 bits hold every sum of 16 products. */
typedef struct fp4_halves {
    int16_t value[16 * 64], sign[16 * 64];
} fp4_halves;

static void take_halves(const uint32_t *bits, int n, fp4_halves *to)
{
    static const int8_t halves[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    for (int i = 0; i < n; i++) {
        to->value[i] = halves[bits[i]];
        to->sign[i] = bits[i] & 8 ? -1 : 0;
    }
}

/* A row of a times 8 columns over one group of 16: the sums, in quarters; not 0 where some product is not 0;
 * -1 where all products have a negative sign. */
typedef struct fp4_sums {
    int16_t sum[PART_COLUMNS], some[PART_COLUMNS], negative[PART_COLUMNS];
} fp4_sums;

static void sum_group(const fp4_halves *a, int a_at, const fp4_halves *b, int b_at, fp4_sums *s)
{
    for (int j = 0; j < PART_COLUMNS; j++)
        s->sum[j] = s->some[j] = 0, s->negative[j] = -1;
    for (int k = 0; k < FP4_GROUP; k++)
        for (int j = 0; j < PART_COLUMNS; j++) {
            const int at = b_at + k * PART_COLUMNS + j;
            const int16_t product = (int16_t)(a->value[a_at + k] * b->value[at]);
            s->sum[j] = (int16_t)(s->sum[j] + product);
            s->some[j] |= product;
            s->negative[j] &= a->sign[a_at + k] ^ b->sign[at];
        }
}

/* A group with its scales: an addend significand * 2^(exp - 8). */
typedef struct fp4_group {
    bool is_nan, is_zero, is_negative_zero;
    int64_t significand;
    int exp;
} fp4_group;

static fp4_group scale_group(const fp4_sums *s, int column, fp4_scale a, fp4_scale b)
{
    const bool zero = !s->some[column] || a.significand == 0 || b.significand == 0;
    return (fp4_group){a.is_nan || b.is_nan, zero, zero && s->negative[column],
                       (int64_t)s->sum[column] * a.significand * b.significand, a.exp + b.exp};
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

/* One row of the result. */
static void fuse_row(const tensor_op *op, int row, const fp4_halves *a, const fp4_halves *b,
                     const tensor_scales *scales, uint32_t *c)
{
    fp4_sums sums[FP4_GROUPS];
    for (int g = 0; g < FP4_GROUPS; g++)
        sum_group(a, row * op->k + g * FP4_GROUP, b, g * FP4_GROUP * PART_COLUMNS, &sums[g]);
    for (int j = 0; j < PART_COLUMNS; j++) {
        fp4_group group[FP4_GROUPS];
        for (int g = 0; g < FP4_GROUPS; g++) {
            const int block = g * op->scales / FP4_GROUPS;
            group[g] = scale_group(&sums[g], j, read_scale(op, scales->a[row][block]),
                                   read_scale(op, scales->b[j][block]));
        }
        c[j] = fuse_groups(op->model, group, c[j]);
    }
}

static void multiply_scaled_fp4(const tensor_op *op, const uint32_t *a, const uint32_t *b, uint32_t *c,
                                const tensor_scales *scales)
{
    fp4_halves rows, columns;
    take_halves(a, op->m * op->k, &rows);
    take_halves(b, op->k * PART_COLUMNS, &columns);
    for (int i = 0; i < op->m; i++)
        fuse_row(op, i, &rows, &columns, scales, c + i * PART_COLUMNS);
}

/* ---- From and to fragments, and for matrices that come from elsewhere ---- */

typedef void multiply_fn(const tensor_op *op, const uint32_t *a, const uint32_t *b, uint32_t *c,
                         const tensor_scales *scales);

static void run(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                const void *const *c, const void *const *scale, multiply_fn *multiply)
{
    tensor_matrices x;
    tensor_scales scales;
    tensor_gather(op, &x, a, b, c);
    tensor_gather_scales(op, &scales, scale);
    multiply(op, x.a, x.b, x.c, &scales);
    tensor_scatter(op, &x, d);
}

void tensor_run_scaled(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                       const void *const *c, const void *const *scale)
{
    run(op, d, a, b, c, scale, multiply_scaled);
}

void tensor_run_scaled_fp4(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                           const void *const *c, const void *const *scale)
{
    run(op, d, a, b, c, scale, multiply_scaled_fp4);
}

void tensor_multiply_scaled(const tensor_op *op, const uint32_t *a, const uint32_t *b, uint32_t *c,
                            const uint8_t (*scale_a)[4], const uint8_t (*scale_b)[4])
{
    multiply_fn *multiply = op->model->method == METHOD_SCALED ? multiply_scaled : multiply_scaled_fp4;
    tensor_scales scales;
    memcpy(scales.a, scale_a, sizeof scales.a);
    for (int part = 0; part < op->n / PART_COLUMNS; part++) {
        memcpy(scales.b, scale_b + part * PART_COLUMNS, sizeof scales.b);
        multiply(op, a, b + part * op->k * PART_COLUMNS, c + part * op->m * PART_COLUMNS, &scales);
    }
}
