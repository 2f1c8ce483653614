/* f16, bf16 and pairs of them: add sub mul fma neg abs min max.
 *
 * Sums and products are computed in f32 and rounded again: harmless, because 24 bits are at least twice 11 (or
 * 8) plus two (products are even exact in f32, except for those of bf16 that fall below its range, where they
 * are not near a tie). The sum in fma is rounded to odd, so that the last rounding is correct; it is computed
 * in f32 for f16, and in f64 for bf16, whose products exceed the range of f32.
 *
 * An instruction is a few passes over small arrays: widen, operate, round. Each is a plain loop that can be
 * vectorized. */
#include "convert.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

typedef struct half_mods {
    bool ftz, sat, relu, oob;
} half_mods;

static inline half_mods mods_of(const pvm_inst *inst)
{
    return (half_mods){has_ftz(inst), has_sat(inst), inst->mod[S_RELU] == M_relu, inst->mod[S_OOB] == M_oob};
}

static inline uint16_t flush_f16(uint16_t h, bool ftz)
{
    return ftz && !(h & 0x7C00) ? h & 0x8000 : h;
}

/* bf16 has no .ftz. */
static inline uint16_t flush_bf16(uint16_t h, __attribute__((unused)) bool ftz)
{
    return h;
}

/* ---- passes ---- */

enum { MOST = 2 * WARP };
typedef float numbers[MOST] __attribute__((aligned(64)));

/* A NaN may keep its payload here: the final result is canonical. */
static void widen_F16(float *out, const uint16_t *in, int n)
{
#ifdef __F16C__
    for (int i = 0; i < n; i += 8)
        _mm256_store_ps(out + i, _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(in + i))));
#else
    LANE_FOR(n)
    out[i] = f32_of_f16(in[i]);
#endif
}

static void widen_BF16(float *out, const uint16_t *in, int n)
{
    LANE_FOR(n)
    out[i] = f32_of_bits((uint32_t)in[i] << 16);
}

static void round_F16(uint16_t *out, const float *in, int n)
{
#ifdef __F16C__
    for (int i = 0; i < n; i += 8) {
        const __m256 x = _mm256_load_ps(in + i);
        const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        const __m128i mask = _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256(nan, 1));
        const __m128i h = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_store_si128((__m128i *)(out + i), _mm_blendv_epi8(h, _mm_set1_epi16(0x7FFF), mask));
    }
#else
    LANE_FOR(n)
    out[i] = f16_of_f32(in[i]);
#endif
}

static void round_BF16(uint16_t *out, const float *in, int n)
{
    LANE_FOR(n)
    out[i] = bf16_of_f32(in[i]);
}

static void flush_all(uint16_t *out, const uint16_t *in, int n)
{
    LANE_FOR(n)
    out[i] = flush_f16(in[i], true);
}

static void clamp_numbers(float *x, int n, const half_mods m)
{
    if (m.sat)
        LANE_FOR(n)
    x[i] = x[i] > 0.0f ? (x[i] < 1.0f ? x[i] : 1.0f) : 0.0f;
    if (m.relu)
        LANE_FOR(n)
    x[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

/* Loads one source as numbers. */
#define TAKE(F, out, k, n, m)                                                                                \
    do {                                                                                                     \
        const uint16_t *in = LANE_IN(uint16_t, k);                                                           \
        uint16_t flushed[MOST] __attribute__((aligned(64)));                                                 \
        if ((m).ftz)                                                                                         \
            flush_all(flushed, in, n);                                                                       \
        widen_##F(out, (m).ftz ? flushed : in, n);                                                           \
    } while (0)

/* Stores the numbers as result; relu and sat are applied before rounding, which makes no difference. */
#define GIVE(F, x, n, m)                                                                                     \
    do {                                                                                                     \
        clamp_numbers(x, n, m);                                                                              \
        round_##F(LANE_OUT(uint16_t, 0), x, n);                                                              \
        if ((m).ftz)                                                                                         \
            flush_all(LANE_OUT(uint16_t, 0), LANE_OUT(uint16_t, 0), n);                                      \
    } while (0)

/* ---- a * b + c, rounded to odd ---- */

/* The error of a rounded sum shows its direction (always to nearest here); if the sum is infinite, it is NaN,
 * which counts as no error. */
static inline float odd_sum_f32(float p, float c)
{
    const float sum = p + c, back = sum - p, error = (p - (sum - back)) + (c - back);
    const uint32_t inexact = (error < 0) | (error > 0), too_large = (error < 0) != (sum < 0);
    return f32_of_bits((bits_of_f32(sum) - (inexact & too_large)) | inexact);
}

static inline double odd_sum_f64(double p, double c)
{
    const double sum = p + c, back = sum - p, error = (p - (sum - back)) + (c - back);
    const uint64_t inexact = (error < 0) | (error > 0), too_large = (error < 0) != (sum < 0);
    return f64_of_bits((bits_of_f64(sum) - (inexact & too_large)) | inexact);
}

static void fuse_F16(float *x, const float *a, const float *b, const float *c, int n)
{
    LANE_FOR(n)
    x[i] = odd_sum_f32(a[i] * b[i], c[i]);
}

static void fuse_BF16(float *x, const float *a, const float *b, const float *c, int n)
{
    LANE_FOR(n)
    x[i] = f32_odd_of_f64(odd_sum_f64((double)a[i] * (double)b[i], (double)c[i]));
}

/* The value that a tensor copy writes beyond the bounds of a tensor; .oob makes the result zero if a factor
 * is this NaN. The ISA does not specify its bits; they were measured and published by others. */
#define OOB_NAN 0x7FF7

static void clear_oob(uint16_t *d, const uint16_t *a, const uint16_t *b, int n)
{
    for (int i = 0; i < n; i++)
        d[i] = (a[i] & 0x7FFF) == OOB_NAN || (b[i] & 0x7FFF) == OOB_NAN ? 0 : d[i];
}

#define HALF_FN2(name, F, n, ...)                                                                            \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        const half_mods m = mods_of(inst);                                                                   \
        numbers pa, pb, x;                                                                                   \
        TAKE(F, pa, 0, n, m);                                                                                \
        TAKE(F, pb, 1, n, m);                                                                                \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            const float a = pa[i], b = pb[i];                                                                \
            x[i] = __VA_ARGS__;                                                                              \
        }                                                                                                    \
        GIVE(F, x, n, m);                                                                                    \
    }
#define HALF_FN3(name, F, n)                                                                                 \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        const half_mods m = mods_of(inst);                                                                   \
        numbers a, b, c, x;                                                                                  \
        uint16_t factors[2][MOST];                                                                           \
        TAKE(F, a, 0, n, m);                                                                                 \
        TAKE(F, b, 1, n, m);                                                                                 \
        TAKE(F, c, 2, n, m);                                                                                 \
        for (int k = 0; m.oob && k < 2; k++) /* before the result overwrites them */                         \
            memcpy(factors[k], src[k], (n) * sizeof(uint16_t));                                              \
        fuse_##F(x, a, b, c, n);                                                                             \
        GIVE(F, x, n, m);                                                                                    \
        if (m.oob)                                                                                           \
            clear_oob(LANE_OUT(uint16_t, 0), factors[0], factors[1], n);                                     \
    }

#define HALVES(X, ...)                                                                                       \
    X(F16, F16, WARP, __VA_ARGS__)                                                                           \
    X(F16X2, F16, 2 * WARP, __VA_ARGS__)                                                                     \
    X(BF16, BF16, WARP, __VA_ARGS__)                                                                         \
    X(BF16X2, BF16, 2 * WARP, __VA_ARGS__)

#define DEFINE2(T, F, n, op, ...) HALF_FN2(lane_##op##_##T, F, n, __VA_ARGS__)
#define DEFINE3(T, F, n, op)      HALF_FN3(lane_##op##_##T, F, n)
#define H2(op, ...)               HALVES(DEFINE2, op, __VA_ARGS__)
#define H3(op)                    HALVES(DEFINE3, op)
#include "half.def"
#undef H2
#undef H3

#define flush_one_F16  flush_f16
#define flush_one_BF16 flush_bf16
#define number_F16     f32_of_f16
#define number_BF16    f32_of_bf16

/* Signs, as bits; a NaN becomes canonical, because on a GPU these are sums with zero. */
#define inf_F16         0x7C00
#define inf_BF16        0x7F80
#define canonical(F, h) (((h)&0x7FFF) > inf_##F ? 0x7FFF : (h))
#define DEFINE_SIGNS(T, F, n, ...)                                                                           \
    LANE_FN1(lane_neg_##T, n, uint16_t, uint16_t, canonical(F, flush_one_##F(a, has_ftz(inst)) ^ 0x8000))    \
    LANE_FN1(lane_abs_##T, n, uint16_t, uint16_t, canonical(F, flush_one_##F(a, has_ftz(inst)) & 0x7FFF))
HALVES(DEFINE_SIGNS, )

/* min, max: as for f32 (real.c), where the widened numbers have the same order. */
static inline uint16_t extreme(uint16_t ha, uint16_t hb, float a, float b, bool is_max, bool nan_wins)
{
    const bool nan_a = is_nan(a), nan_b = is_nan(b), first = is_max ? a > b : a < b;
    const uint16_t both = is_max ? ha & hb : ha | hb;
    const uint16_t number = a == b ? both : first ? ha : hb;
    const uint16_t other = nan_a ? hb : nan_b ? ha : number;
    return (nan_a && nan_b) || (nan_wins && (nan_a || nan_b)) ? 0x7FFF : other;
}

#define DEFINE_EXTREME(T, F, n, ...)                                                                         \
    static void lane_extreme_##T(LANE_ARGS)                                                                  \
    {                                                                                                        \
        uint16_t *d = LANE_OUT(uint16_t, 0);                                                                 \
        const uint16_t *pa = LANE_IN(uint16_t, 0), *pb = LANE_IN(uint16_t, 1);                               \
        const bool is_max = inst->op == OP_max, nan = inst->mod[S_NAN] != 0, ftz = has_ftz(inst);            \
        const uint16_t kept = inst->mod[S_ABS] ? 0x7FFF : 0xFFFF, signs = inst->mod[S_XORSIGN] ? 0x8000 : 0; \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            const uint16_t fa = flush_one_##F(pa[i], ftz), fb = flush_one_##F(pb[i], ftz);                   \
            const uint16_t a = fa & kept, b = fb & kept;                                                     \
            const uint16_t r = extreme(a, b, number_##F(a), number_##F(b), is_max, nan);                     \
            d[i] = is_nan(number_##F(r)) ? 0x7FFF : r | ((fa ^ fb) & signs);                                 \
        }                                                                                                    \
    }
HALVES(DEFINE_EXTREME, )

#define HALF_ANY         (V_FTZ | V_SAT | V_RELU | V_OOB)
#define EXTREME_ANY      (V_FTZ | V_NAN | V_XORSIGN | V_ABS)
#define ROW(T, F, n, op) {OP_##op, T_##T, 0, 0, 0, HALF_ANY, lane_##op##_##T},
#define H2(op, ...)      HALVES(ROW, op)
#define H3(op)           HALVES(ROW, op)
#define OTHER_ROWS(T, F, n, ...)                                                                             \
    {OP_neg, T_##T, 0, 0, 0, V_FTZ, lane_neg_##T}, {OP_abs, T_##T, 0, 0, 0, V_FTZ, lane_abs_##T},            \
        {OP_min, T_##T, 0, 0, 0, EXTREME_ANY, lane_extreme_##T},                                             \
        {OP_max, T_##T, 0, 0, 0, EXTREME_ANY, lane_extreme_##T},

static const lane_row rows[] = {
#include "half.def"
    HALVES(OTHER_ROWS, )};

const lane_table LANE_LEVEL(lanes_half) = {rows, sizeof rows / sizeof *rows};
