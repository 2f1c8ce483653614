/* Many dot products at once: the rows of A against 8 columns of B, one row at a time, every step on vectors
 * of the 8 columns. Where a number is Inf or NaN, or the sign of a zero is in doubt, the row is done again by
 * number.c, one element at a time.
 *
 * All of it is integer: |product| * 2^F < 2^(F + 2) <= 2^27, so 8 of them and c fit 32 bits; longer
 * operations add such partial sums in f64, exactly. The vectors are the compilers' own extension, lowered to
 * whatever the target has; the same source is compiled for the baseline and for AVX2. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define INLINE   static inline __attribute__((always_inline))
#define N        PART_COLUMNS
#define ZERO_EXP (-4096) /* of a zero: below everything, so that it never is the largest */
#define BLOCK    8       /* products whose sum fits 32 bits */

#define VECTOR(type, count) type __attribute__((vector_size(sizeof(type) * (count)), may_alias))
typedef VECTOR(int32_t, N) columns;
typedef VECTOR(uint32_t, N) columns_u;
typedef VECTOR(int32_t, N / 2) half_columns;
typedef VECTOR(uint64_t, N / 2) half_wide;
typedef VECTOR(double, N / 2) half_f64;

/* Numbers taken apart: magnitude of the significand, sign as 0 or -1, exponent. */
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

INLINE bool any(const columns *mask)
{
    uint64_t word[N / 2];
    memcpy(word, mask, sizeof word);
    return (word[0] | word[1] | word[2] | word[3]) != 0;
}

/* n numbers (a multiple of 8) from raw bits, magnitudes shifted left; returns whether one of them is Inf or
 * NaN. */
INLINE bool decode(const tensor_format *f, const uint32_t *raw, int n, int left, parts to)
{
    const int mantissa = f->mantissa, top = f->mantissa + f->exponent;
    const int32_t magnitude_mask = (int32_t)((1u << top) - 1), fraction_mask = (1 << mantissa) - 1;
    columns special = {0};
    for (int i = 0; i < n; i += N) {
        const columns_u whole = *(const columns_u *)(raw + i);
        const columns bits = (columns)whole & magnitude_mask, field = bits >> mantissa;
        const columns subnormal = field == 0, zero = bits == 0;
        special |= bits >= f->special;
        *(columns *)(to.magnitude + i) = ((bits & fraction_mask) | (~subnormal & 1 << mantissa)) << left;
        *(columns *)(to.sign + i) = -(columns)(whole >> top & 1u);
        *(columns *)(to.exp + i) = ((field - subnormal - f->bias) & ~zero) | (zero & ZERO_EXP);
    }
    return any(&special);
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
    const columns *b_exp = (const columns *)b.exp;
    columns even = *(const columns *)c.exp, odd = (columns){0} + dot->zero_exp;
    for (int k = 0; k < n; k += 2) { /* n is even: two chains that do not wait for each other */
        const columns exp0 = b_exp[k] + a.exp[k], exp1 = b_exp[k + 1] + a.exp[k + 1];
        keep_larger(&even, &exp0);
        keep_larger(&odd, &exp1);
    }
    keep_larger(&even, &odd);
    *top = even;
}

/* The sums of n products and c, each cut at 2^(top - F): whole numbers, exact in f64. */
INLINE void sum_products(int c_right, int n, parts a, parts b, parts c, const columns *top, half_f64 *total)
{
    const columns *b_magnitude = (const columns *)b.magnitude, *b_sign = (const columns *)b.sign;
    const columns *b_exp = (const columns *)b.exp;
    const columns c_shift = *top - *(const columns *)c.exp + c_right;
    columns sum = {0};
    add_shifted(&sum, (const columns *)c.magnitude, (const columns *)c.sign, &c_shift);
    total[0] = total[1] = (half_f64){0};
    for (int k0 = 0; k0 < n; k0 += BLOCK) {
        for (int k = k0; k < n && k < k0 + BLOCK; k++) {
            const columns magnitude = b_magnitude[k] * a.magnitude[k], sign = b_sign[k] ^ a.sign[k];
            const columns shift = *top - a.exp[k] - b_exp[k];
            add_shifted(&sum, &magnitude, &sign, &shift);
        }
        for (int h = 0; h < 2; h++)
            total[h] += __builtin_convertvector(((const half_columns *)&sum)[h], half_f64);
        sum = (columns){0};
    }
}

/* total * 2^(top - F), exact in f64, and its bits. */
INLINE void scaled_bits(const half_f64 *total, const half_columns *top, int fraction, half_wide *bits)
{
    const half_wide power = __builtin_convertvector(*top + (1023 - fraction), half_wide) << 52;
    *bits = (half_wide)(*total * (half_f64)power);
}

/* f64 bits to f32 toward zero; *doubt where the result is not a normal number. Zero is +0. */
INLINE void narrow_f32(const half_wide *bits, bool short_f32, half_wide *narrow, half_wide *doubt)
{
    const half_wide field = *bits >> 52 & 0x7FF, zero = (half_wide)((*bits << 1) == 0);
    const uint64_t keep = short_f32 ? 0x7FFFFC00 : 0x7FFFFFFF;
    *doubt |= (half_wide)((field - 897 > 1150 - 897) & ~zero);
    *narrow = ((((*bits >> 29) - (896ull << 23)) & keep) | (*bits >> 32 & 0x80000000u)) & ~zero;
}

/* f64 bits to f16, nearest-even. */
INLINE void narrow_f16(const half_wide *bits, half_wide *narrow, half_wide *doubt)
{
    const half_wide magnitude = *bits << 1 >> 1, zero = (half_wide)(magnitude == 0);
    const half_wide rounded = ((magnitude + 0x1FFFFFFFFFF + (magnitude >> 42 & 1)) >> 42) - (1008 << 10);
    *doubt |= (half_wide)(((magnitude >> 52) < 1009) | (rounded >= 0x7C00)) & ~zero;
    *narrow = ((rounded & 0x7FFF) | (*bits >> 48 & 0x8000)) & ~zero;
}

/* The sums to results; one at a time where one of them is subnormal or too large. */
INLINE void round_row(const tensor_dot *dot, bool f16, const half_f64 *total, const columns *top, uint32_t *c)
{
    half_wide narrow[2], doubt = {0};
    for (int h = 0; h < 2; h++) {
        half_wide bits;
        scaled_bits(&total[h], (const half_columns *)top + h, dot->fraction, &bits);
        if (f16)
            narrow_f16(&bits, &narrow[h], &doubt);
        else
            narrow_f32(&bits, dot->short_f32, &narrow[h], &doubt);
        *(half_columns *)(c + h * (N / 2)) = __builtin_convertvector(narrow[h], half_columns);
    }
    if (any((const columns *)&doubt))
        for (int j = 0; j < N; j++)
            c[j] = tensor_round((int64_t)total[j / (N / 2)][j % (N / 2)], (*top)[j] - dot->fraction, f16,
                                dot->short_f32);
}

/* One row against 8 columns, c becoming the result; false where number.c must do it. */
INLINE bool fast_row(const tensor_dot *dot, bool f16, const tensor_format *c_format, int k, parts a, parts b,
                     uint32_t *c)
{
    const int c_left = dot->fraction - c_format->mantissa;
    const int32_t negative_zero = f16 ? 0x8000 : INT32_MIN;
    PARTS(addend, N);
    for (int i = 0; i < k; i += dot->length) {
        const int n = k - i < dot->length ? k - i : dot->length;
        const columns in_doubt =
            *(const columns *)c == negative_zero; /* -0 if all other addends are -0 too */
        half_f64 total[2];
        columns top;
        if (decode(c_format, c, N, c_left > 0 ? c_left : 0, addend) || any(&in_doubt))
            return false;
        largest_exponent(dot, n, parts_at(a, i), parts_at(b, i * N), addend, &top);
        sum_products(c_left < 0 ? -c_left : 0, n, parts_at(a, i), parts_at(b, i * N), addend, &top, total);
        round_row(dot, f16, total, &top, c);
    }
    return true;
}

INLINE void add_exponent(int32_t *exp, int n, int stride, int add)
{
    for (int i = 0; i < n; i++)
        exp[i * stride] += add;
}

static bool has_special(const tensor_format *f, const uint32_t *raw, int n)
{
    const uint32_t mask = (1u << (f->mantissa + f->exponent)) - 1;
    for (int i = 0; i < n; i++)
        if ((int32_t)(raw[i] & mask) >= f->special)
            return true;
    return false;
}

INLINE void dots(const tensor_dot *dot, bool f16, int m, int n_parts, int k, const uint32_t *a_raw,
                 const uint32_t *b_raw, uint32_t *c, const int *row_exp, const int *column_exp)
{
    PARTS(a, MAX_A);
    PARTS(b, MAX_K * N);
    const tensor_format *c_format = tensor_format_of(f16 ? T_F16 : T_F32, false);
    const int left = dot->fraction - dot->a->mantissa - dot->b->mantissa;
    const bool a_special = decode(dot->a, a_raw, m * k, left, a);
    for (int i = 0; row_exp && i < m; i++)
        add_exponent(a.exp + i * k, k, 1, row_exp[i]);
    for (int part = 0; part < n_parts; part++, b_raw += k * N) {
        const bool b_special = decode(dot->b, b_raw, k * N, 0, b);
        for (int j = 0; column_exp && j < N; j++)
            add_exponent(b.exp + j, k, N, column_exp[j]);
        for (int i = 0; i < m; i++, c += N) {
            _Alignas(32) uint32_t row[N];
            memcpy(row, c, sizeof row);
            if (!b_special && !(a_special && has_special(dot->a, a_raw + i * k, k)) &&
                fast_row(dot, f16, c_format, k, parts_at(a, i * k), b, row))
                memcpy(c, row, sizeof row);
            else
                for (int j = 0; j < N; j++)
                    c[j] = tensor_dot_one(dot, k, a_raw + i * k, b_raw + j, N, c[j],
                                          (row_exp ? row_exp[i] : 0) + (column_exp ? column_exp[j] : 0));
        }
    }
}

#if defined(__x86_64__)
#define V3 __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#else
#define V3
#endif

void tensor_dots_baseline(const tensor_dot *dot, int m, int parts, int k, const uint32_t *a,
                          const uint32_t *b, uint32_t *c, const int *row_exp, const int *column_exp)
{
    if (dot->f16)
        dots(dot, true, m, parts, k, a, b, c, row_exp, column_exp);
    else
        dots(dot, false, m, parts, k, a, b, c, row_exp, column_exp);
}

V3 void tensor_dots_v3(const tensor_dot *dot, int m, int parts, int k, const uint32_t *a, const uint32_t *b,
                       uint32_t *c, const int *row_exp, const int *column_exp)
{
    if (dot->f16)
        dots(dot, true, m, parts, k, a, b, c, row_exp, column_exp);
    else
        dots(dot, false, m, parts, k, a, b, c, row_exp, column_exp);
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
