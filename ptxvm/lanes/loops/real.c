/* f32 and f64: add sub mul fma mad div rcp sqrt abs neg copysign min max testp; pairs of f32; f32 with f16 or
 * bf16. */
#include "real.h"

enum { V_FTZ_NAN = V_FTZ | V_NAN };

/* type, flags, ftz, sat */
#define ARITHMETIC(X, ...)                                                                                   \
    X(F32, NONE, 0, 0, __VA_ARGS__)                                                                          \
    X(F32, FTZ, 1, 0, __VA_ARGS__)                                                                           \
    X(F32, SAT, 0, 1, __VA_ARGS__)                                                                           \
    X(F32, FTZ_SAT, 1, 1, __VA_ARGS__)                                                                       \
    X(F32X2, NONE, 0, 0, __VA_ARGS__)                                                                        \
    X(F32X2, FTZ, 1, 0, __VA_ARGS__)                                                                         \
    X(F64, NONE, 0, 0, __VA_ARGS__)
#define PLAIN(X, ...)                                                                                        \
    X(F32, NONE, 0, 0, __VA_ARGS__) X(F32, FTZ, 1, 0, __VA_ARGS__) X(F64, NONE, 0, 0, __VA_ARGS__)

#define fused(a, b, c) _Generic((a), float : fmaf, double : fma)(a, b, c)
#define root(a)        _Generic((a), float : sqrtf, double : sqrt)(a)

#define REAL_FN(name, T, n, n_src, ftz, sat, ...)                                                            \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        T *d = LANE_OUT(T, 0);                                                                               \
        const T *pa = LANE_IN(T, 0), *pb = (n_src) > 1 ? LANE_IN(T, 1) : pa;                                 \
        const T *pc = (n_src) > 2 ? LANE_IN(T, 2) : pa;                                                      \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            const T a = flush(pa[i], ftz), b = flush(pb[i], ftz), c = flush(pc[i], ftz);                     \
            (void)b, (void)c;                                                                                \
            d[i] = finish(payload((T)(__VA_ARGS__), a, b, c), ftz, sat);                                     \
        }                                                                                                    \
    }

#define R1(op, modes, ...) modes(DEFINE_REAL, op, 1, __VA_ARGS__)
#define R2(op, modes, ...) modes(DEFINE_REAL, op, 2, __VA_ARGS__)
#define R3(op, modes, ...) modes(DEFINE_REAL, op, 3, __VA_ARGS__)
#define DEFINE_REAL(T, flags, ftz, sat, op, n_src, ...)                                                      \
    REAL_FN(lane_##op##_##T##_##flags, t_##T, n_##T, n_src, ftz, sat, __VA_ARGS__)
#include "real.def"
#undef R1
#undef R2
#undef R3

/* div.approx multiplies by the reciprocal of b, which is 0 if |b| is above 2^126 (PTX ISA, div), as if b were
 * infinite: the quotient is 0, or NaN if a is infinite. */
#define DEFINE_QUOTIENT(flags, ftz)                                                                          \
    REAL_FN(lane_div_approx_F32_##flags, float, WARP, 2, ftz, 0,                                             \
            a / (fabsf(b) > 0x1p126f ? copysignf(INFINITY, b) : b))
#define QUOTIENTS(X) X(NONE, 0) X(FTZ, 1)
QUOTIENTS(DEFINE_QUOTIENT)

/* Sign operations, on bits. abs and neg are sums with zero on a GPU, so an f32 NaN becomes canonical;
 * copysign is a logic operation there, and keeps it. */
#define SIGN_OF(x) _Generic((x), uint32_t : 0x80000000u, uint64_t : 0x8000000000000000u)
LANE_FN1(lane_abs_F32, WARP, float, float, finish_f32(fabsf(a), false, false))
LANE_FN1(lane_neg_F32, WARP, float, float, finish_f32(-a, false, false))
LANE_FN1(lane_abs_F32_FTZ, WARP, float, float, finish_f32(fabsf(a), true, false))
LANE_FN1(lane_neg_F32_FTZ, WARP, float, float, finish_f32(-a, true, false))
LANE_FN1(lane_abs_F64, WARP, uint64_t, uint64_t, a & ~SIGN_OF(a))
LANE_FN1(lane_neg_F64, WARP, uint64_t, uint64_t, a ^ SIGN_OF(a))
LANE_FN2(lane_copysign_F32, WARP, uint32_t, uint32_t, uint32_t, (a & SIGN_OF(a)) | (b & ~SIGN_OF(b)))
LANE_FN2(lane_copysign_F64, WARP, uint64_t, uint64_t, uint64_t, (a & SIGN_OF(a)) | (b & ~SIGN_OF(b)))

/* min, max: -0 is below +0; the result is the number if one source is NaN, unless .NaN is written. Of two
 * NaNs f64 gives the second, made quiet, like the instructions of ptxas. */
#define EXTREME_FN(T, U, bits_of, of_bits, nan)                                                              \
    static inline T extreme_##T(T a, T b, bool is_max, bool nan_wins)                                        \
    {                                                                                                        \
        const bool first = is_max ? a > b : a < b;                                                           \
        const U both =                                                                                       \
            is_max ? bits_of(a) & bits_of(b) : bits_of(a) | bits_of(b); /* equal: only zeros differ */       \
        T r = a == b ? of_bits(both) : first ? a : b;                                                        \
        r = is_nan(a) ? b : is_nan(b) ? a : r;                                                               \
        return (is_nan(a) && is_nan(b)) || (nan_wins && (is_nan(a) || is_nan(b))) ? (nan) : r;               \
    }
EXTREME_FN(float, uint32_t, bits_of_f32, f32_of_bits, f32_of_bits(F32_NAN))
EXTREME_FN(double, uint64_t, bits_of_f64, f64_of_bits, quiet_f64(b))

#define EXTREMES(X) X(NONE, 0, 0) X(FTZ, 1, 0) X(NAN, 0, 1) X(FTZ_NAN, 1, 1)
#define DEFINE_EXTREME(flags, ftz, nan)                                                                      \
    LANE_FN2(lane_min_F32_##flags, WARP, float, float, float,                                                \
             extreme_float(flush(a, ftz), flush(b, ftz), false, nan))                                        \
    LANE_FN2(lane_max_F32_##flags, WARP, float, float, float,                                                \
             extreme_float(flush(a, ftz), flush(b, ftz), true, nan))
EXTREMES(DEFINE_EXTREME)
LANE_FN2(lane_min_F64, WARP, double, double, double, extreme_double(a, b, false, false))
LANE_FN2(lane_max_F64, WARP, double, double, double, extreme_double(a, b, true, false))

/* The forms with .xorsign.abs, .abs and three sources. */
static void lane_extreme_F32(LANE_ARGS)
{
    const bool is_max = inst->op == OP_max, nan = inst->mod[S_NAN] != 0, ftz = inst->mod[S_FTZ] != 0;
    const bool absolute = inst->mod[S_ABS] != 0, xorsign = inst->mod[S_XORSIGN] != 0;
    const bool of_three = inst->n_operands - inst->n_results == 3;
    float *d = LANE_OUT(float, 0);
    const float *pa = LANE_IN(float, 0), *pb = LANE_IN(float, 1), *pc = of_three ? LANE_IN(float, 2) : pb;
    for (int i = 0; i < WARP; i++) {
        const float a = flush(pa[i], ftz), b = flush(pb[i], ftz), c = flush(pc[i], ftz);
        const uint32_t sign = xorsign ? (bits_of_f32(a) ^ bits_of_f32(b)) & 0x80000000 : 0;
        float r = extreme_float(absolute ? fabsf(a) : a, absolute ? fabsf(b) : b, is_max, nan);
        if (of_three)
            r = extreme_float(r, absolute ? fabsf(c) : c, is_max, nan);
        d[i] = is_nan(r) ? r : f32_of_bits(bits_of_f32(r) | sign);
    }
}

/* f32 with a narrower source, which is widened exactly: add and sub have it first, fma has two. */
#define MIXED_FNS(T, widen)                                                                                  \
    LANE_FN2(lane_add_F32_##T##_NONE, WARP, float, uint16_t, float, finish_f32(widen(a) + b, 0, 0))          \
    LANE_FN2(lane_add_F32_##T##_SAT, WARP, float, uint16_t, float, finish_f32(widen(a) + b, 0, 1))           \
    LANE_FN2(lane_sub_F32_##T##_NONE, WARP, float, uint16_t, float, finish_f32(widen(a) - b, 0, 0))          \
    LANE_FN2(lane_sub_F32_##T##_SAT, WARP, float, uint16_t, float, finish_f32(widen(a) - b, 0, 1))           \
    LANE_FN3(lane_fma_F32_##T##_NONE, WARP, float, uint16_t, uint16_t, float,                                \
             finish_f32(fmaf(widen(a), widen(b), c), 0, 0))                                                  \
    LANE_FN3(lane_fma_F32_##T##_SAT, WARP, float, uint16_t, uint16_t, float,                                 \
             finish_f32(fmaf(widen(a), widen(b), c), 0, 1))
MIXED_FNS(F16, f32_of_f16)
MIXED_FNS(BF16, f32_of_bf16)

/* testp: the class of a number, from its bits without sign. Zero counts as normal (PTX ISA, testp). */
#define TESTS(X, T, U, inf, smallest)                                                                        \
    X(finite, T, U, inf, a < inf)                                                                            \
    X(infinite, T, U, inf, a == inf)                                                                         \
    X(number, T, U, inf, a <= inf)                                                                           \
    X(notanumber, T, U, inf, a > inf)                                                                        \
    X(normal, T, U, inf, a == 0 || (a < inf && a >= smallest))                                               \
    X(subnormal, T, U, inf, a != 0 && a < smallest)
#define DEFINE_TEST(kind, T, U, inf, ...)                                                                    \
    static void lane_testp_##kind##_##T(LANE_ARGS)                                                           \
    {                                                                                                        \
        const U *pa = LANE_IN(U, 0);                                                                         \
        uint32_t mask = 0;                                                                                   \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const U a = pa[i] & ~SIGN_OF(pa[i]);                                                             \
            mask |= (__VA_ARGS__) ? lane_bit[i] : 0;                                                         \
        }                                                                                                    \
        *(uint32_t *)dst[0] = mask;                                                                          \
    }
#define TESTS_F32(X) TESTS(X, F32, uint32_t, 0x7F800000u, 0x00800000u)
#define TESTS_F64(X) TESTS(X, F64, uint64_t, 0x7FF0000000000000u, 0x0010000000000000u)
TESTS_F32(DEFINE_TEST)
TESTS_F64(DEFINE_TEST)

#define R1(op, modes, ...)               modes(REAL_ROW, op)
#define R2                               R1
#define R3                               R1
#define REAL_ROW(T, flags, ftz, sat, op) {OP_##op, T_##T, 0, 0, V_##flags, 0, lane_##op##_##T##_##flags},
#define TEST_ROW(kind, T, U, inf, ...)   {OP_testp, T_##T, 0, M_##kind, 0, 0, lane_testp_##kind##_##T},
#define EXTREME_ROW(flags, ftz, nan)                                                                         \
    {OP_min, T_F32, 0, 0, V_##flags, 0, lane_min_F32_##flags},                                               \
        {OP_max, T_F32, 0, 0, V_##flags, 0, lane_max_F32_##flags},
#define MIXED_ROWS(op, T)                                                                                    \
    {OP_##op, T_F32, T_##T, 0, 0, 0, lane_##op##_F32_##T##_NONE},                                            \
        {OP_##op, T_F32, T_##T, 0, V_SAT, 0, lane_##op##_F32_##T##_SAT},
#define QUOTIENT_ROW(flags, ftz)                                                                             \
    {OP_div, T_F32, 0, M_full, V_##flags, 0, lane_div_F32_##flags},                                          \
        {OP_div, T_F32, 0, M_approx, V_##flags, 0, lane_div_approx_F32_##flags},
#define EXTREME_ANY (V_FTZ | V_NAN | V_XORSIGN | V_ABS | V_THREE)

static const lane_row rows[] = {
#include "real.def"
    QUOTIENTS(QUOTIENT_ROW) EXTREMES(EXTREME_ROW) TESTS_F32(TEST_ROW) TESTS_F64(TEST_ROW) /**/
    {OP_min, T_F32, 0, 0, 0, EXTREME_ANY, lane_extreme_F32},
    {OP_max, T_F32, 0, 0, 0, EXTREME_ANY, lane_extreme_F32},
    {OP_min, T_F64, 0, 0, 0, 0, lane_min_F64},
    {OP_max, T_F64, 0, 0, 0, 0, lane_max_F64},
    {OP_abs, T_F32, 0, 0, 0, 0, lane_abs_F32},
    {OP_abs, T_F32, 0, 0, V_FTZ, 0, lane_abs_F32_FTZ},
    {OP_abs, T_F64, 0, 0, 0, 0, lane_abs_F64},
    {OP_neg, T_F32, 0, 0, 0, 0, lane_neg_F32},
    {OP_neg, T_F32, 0, 0, V_FTZ, 0, lane_neg_F32_FTZ},
    {OP_neg, T_F64, 0, 0, 0, 0, lane_neg_F64},
    {OP_copysign, T_F32, 0, 0, 0, 0, lane_copysign_F32},
    {OP_copysign, T_F64, 0, 0, 0, 0, lane_copysign_F64},
    MIXED_ROWS(add, F16) MIXED_ROWS(sub, F16) MIXED_ROWS(fma, F16) /**/
    MIXED_ROWS(add, BF16) MIXED_ROWS(sub, BF16) MIXED_ROWS(fma, BF16)};

const lane_table LANE_LEVEL(lanes_real) = {rows, sizeof rows / sizeof *rows};
