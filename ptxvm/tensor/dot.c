/* Many dot products at once: the rows of A against 8 columns of B, one row at a time, every step on vectors
 * of the 8 columns. Where a number is Inf or NaN, or the sign of a zero is in doubt, the row is done again by
 * number.c, one element at a time.
 *
 * All of it is integer: |product| * 2^F < 2^(F + 2) <= 2^27, so 8 of them and c fit 32 bits; longer
 * operations add such partial sums in 64 bits. The vectors are the compilers' own extension, lowered to
 * whatever the target has; the same source is compiled for the baseline and for AVX2. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define INLINE   static inline __attribute__((always_inline))
#define N        PART_COLUMNS
#define ZERO_EXP (-4096) /* of a zero: below everything, so that it never is the largest */
#define BLOCK    8       /* products whose sum fits 32 bits */

typedef int32_t columns __attribute__((vector_size(4 * N), may_alias));
typedef uint32_t columns_u __attribute__((vector_size(4 * N), may_alias));

/* Numbers taken apart: magnitude of the significand, sign as 0 or -1, exponent. The vectors of b are read
 * from it. */
typedef struct parts {
    int32_t *magnitude, *sign, *exp;
} parts;

#define PARTS(name, count)                                                                                   \
    _Alignas(32) int32_t name##_magnitude[count];                                                            \
    _Alignas(32) int32_t name##_sign[count];                                                                 \
    _Alignas(32) int32_t name##_exp[count];                                                                  \
    const parts name = {name##_magnitude, name##_sign, name##_exp}

INLINE parts parts_at(parts p, int at)
{
    return (parts){p.magnitude + at, p.sign + at, p.exp + at};
}

/* n numbers from raw bits, magnitudes already shifted left; returns whether one of them is Inf or NaN. */
INLINE bool decode(const tensor_format *f, const uint32_t *restrict raw, int n, int left, parts to)
{
    const int mantissa = f->mantissa, bias = f->bias, top = f->mantissa + f->exponent;
    const uint32_t field_mask = (1u << f->exponent) - 1, fraction_mask = (1u << mantissa) - 1;
    const uint32_t first_special = f->special;
    int32_t *restrict magnitude = to.magnitude, *restrict sign = to.sign, *restrict exp = to.exp;
    uint32_t special = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t bits = raw[i] & ((1u << top) - 1);
        const int32_t field = (int32_t)(raw[i] >> mantissa & field_mask);
        special |= bits >= first_special;
        magnitude[i] = (int32_t)(((raw[i] & fraction_mask) | (field ? 1u << mantissa : 0u)) << left);
        sign[i] = -(int32_t)(raw[i] >> top & 1);
        exp[i] = bits ? (field ? field : 1) - bias : ZERO_EXP;
    }
    return special != 0;
}

INLINE void keep_larger(columns *top, const columns *exp)
{
    const columns larger = *exp > *top;
    *top = (*exp & larger) | (*top & ~larger);
}

/* sum += magnitude / 2^right toward zero, negated where sign is -1. right >= 0, and from 31 on nothing is
 * left. */
INLINE void add_shifted(columns *sum, const columns *magnitude, const columns *sign, const columns *right)
{
    const columns count = (*right | (*right > 31)) & 31;
    const columns kept = (columns)((columns_u)*magnitude >> (columns_u)count);
    *sum += (kept ^ *sign) - *sign;
}

/* The largest exponent of n products and c; never below e_zero, which is what the zeros among them have. */
INLINE void largest_exponent(const tensor_dot *dot, int n, parts a, parts b, parts c, columns *top)
{
    const columns zero = (columns){0} + dot->zero_exp;
    const columns *b_exp = (const columns *)b.exp;
    columns even = *(const columns *)c.exp,
            odd = zero; /* n is even: two chains that do not wait for each other */
    for (int k = 0; k < n; k += 2) {
        const columns exp0 = b_exp[k] + a.exp[k], exp1 = b_exp[k + 1] + a.exp[k + 1];
        keep_larger(&even, &exp0);
        keep_larger(&odd, &exp1);
    }
    keep_larger(&even, &odd);
    *top = even;
}

/* The sums of n products and c, each cut at 2^(top - F). */
INLINE void sum_products(int c_right, int n, parts a, parts b, parts c, const columns *top, int64_t *total)
{
    const columns *b_magnitude = (const columns *)b.magnitude, *b_sign = (const columns *)b.sign;
    const columns *b_exp = (const columns *)b.exp;
    const columns c_shift = *top - *(const columns *)c.exp + c_right;
    columns sum = {0};
    add_shifted(&sum, (const columns *)c.magnitude, (const columns *)c.sign, &c_shift);
    for (int j = 0; j < N; j++)
        total[j] = 0;
    for (int k0 = 0; k0 < n; k0 += BLOCK) {
        for (int k = k0; k < n && k < k0 + BLOCK; k++) {
            const columns magnitude = b_magnitude[k] * a.magnitude[k], sign = b_sign[k] ^ a.sign[k];
            const columns shift = *top - a.exp[k] - b_exp[k];
            add_shifted(&sum, &magnitude, &sign, &shift);
        }
        for (int j = 0; j < N; j++)
            total[j] += sum[j];
        sum = (columns){0};
    }
}

/* One row against 8 columns, c becoming the result; false where number.c must do it. */
INLINE bool fast_row(const tensor_dot *dot, bool f16, const tensor_format *c_format, int k, parts a, parts b,
                     uint32_t *c)
{
    const int c_left = dot->fraction - c_format->mantissa;
    const uint32_t negative_zero = f16 ? 0x8000u : 0x80000000u;
    PARTS(addend, N);
    for (int i = 0; i < k; i += dot->length) {
        const int n = k - i < dot->length ? k - i : dot->length;
        int64_t total[N];
        columns top;
        bool doubt = decode(c_format, c, N, c_left > 0 ? c_left : 0, addend);
        largest_exponent(dot, n, parts_at(a, i), parts_at(b, i * N), addend, &top);
        sum_products(c_left < 0 ? -c_left : 0, n, parts_at(a, i), parts_at(b, i * N), addend, &top, total);
        for (int j = 0; j < N; j++) {
            doubt |= total[j] == 0 && c[j] == negative_zero;
            c[j] = tensor_round(total[j], top[j] - dot->fraction, f16, dot->short_f32);
        }
        if (doubt)
            return false;
    }
    return true;
}

INLINE void add_exponent(int32_t *exp, int n, int stride, int add)
{
    for (int i = 0; i < n; i++)
        exp[i * stride] += add;
}

INLINE void dots(const tensor_dot *dot, int m, int n_parts, int k, const uint32_t *a_raw,
                 const uint32_t *b_raw, uint32_t *c, const int *row_exp, const int *column_exp)
{
    PARTS(a, MAX_A);
    PARTS(b, MAX_K * N);
    bool a_special[32];
    const tensor_format *c_format = tensor_format_of(dot->f16 ? T_F16 : T_F32, false);
    const int left = dot->fraction - dot->a->mantissa - dot->b->mantissa;
    for (int i = 0; i < m; i++) {
        a_special[i] = decode(dot->a, a_raw + i * k, k, left, parts_at(a, i * k));
        if (row_exp)
            add_exponent(a.exp + i * k, k, 1, row_exp[i]);
    }
    for (int part = 0; part < n_parts; part++, b_raw += k * N) {
        const bool b_special = decode(dot->b, b_raw, k * N, 0, b);
        for (int j = 0; column_exp && j < N; j++)
            add_exponent(b.exp + j, k, N, column_exp[j]);
        for (int i = 0; i < m; i++, c += N) {
            uint32_t row[N];
            memcpy(row, c, sizeof row);
            const parts a_row = parts_at(a, i * k);
            if (!a_special[i] && !b_special &&
                (dot->f16 ? fast_row(dot, true, c_format, k, a_row, b, row)
                          : fast_row(dot, false, c_format, k, a_row, b, row)))
                memcpy(c, row, sizeof row);
            else
                for (int j = 0; j < N; j++)
                    c[j] = tensor_dot_one(dot, k, a_raw + i * k, b_raw + j, N, c[j],
                                          (row_exp ? row_exp[i] : 0) + (column_exp ? column_exp[j] : 0));
        }
    }
}

void tensor_dots_baseline(const tensor_dot *dot, int m, int parts, int k, const uint32_t *a,
                          const uint32_t *b, uint32_t *c, const int *row_exp, const int *column_exp)
{
    dots(dot, m, parts, k, a, b, c, row_exp, column_exp);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2,lzcnt")))
#endif
void tensor_dots_v3(const tensor_dot *dot, int m, int parts, int k, const uint32_t *a, const uint32_t *b, uint32_t *c,
                    const int *row_exp, const int *column_exp)
{
    dots(dot, m, parts, k, a, b, c, row_exp, column_exp);
}

/* What this processor can run; PTXVM_LANES=baseline forces the baseline, as for the lane loops. */
tensor_dots_fn *tensor_dots_best(void)
{
    const char *forced = getenv("PTXVM_LANES");
    if (forced && strcmp(forced, "baseline") == 0)
        return tensor_dots_baseline;
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        return tensor_dots_baseline;
#endif
    return tensor_dots_v3;
}
