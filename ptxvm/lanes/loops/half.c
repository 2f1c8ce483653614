/* f16, bf16 and pairs of them: add sub mul fma neg abs min max.
 *
 * Sums and products are taken in f32 and rounded again: harmless, because 24 bits are at least twice 11 (or
 * 8) and two more (products are even exact in f32, save for those of bf16 that fall below its range, where
 * they are not near a tie). fma is taken in f64, where the product is exact. Of f16 the sum is exact too
 * wherever the result is in range; of bf16, whose exponents reach much further, the sum is rounded to odd,
 * which keeps the last rounding honest. */
#include "convert.h"

typedef struct half_mods {
    bool ftz, sat, relu, oob;
} half_mods;

static inline half_mods mods_of(const ptx_inst *inst)
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

static inline float saturate(float x, const half_mods m)
{
    return m.sat ? (x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f) : m.relu && x <= 0.0f ? 0.0f : x;
}

static inline float sum_F16(double product, double c)
{
    return f32_odd_of_f64(product + c);
}

/* product + c rounded to odd; the error of the sum tells which way it was rounded (always to nearest here).
 */
static inline float sum_BF16(double product, double c)
{
    const double sum = product + c, back = sum - product;
    const double error = (product - (sum - back)) + (c - back);
    const bool inexact = error < 0 || error > 0; /* neither when the sum is infinite: the error is NaN */
    const bool too_large = (error < 0) != (sum < 0);
    uint64_t u = bits_of_f64(sum);
    u -= inexact && too_large;
    u |= inexact;
    return f32_odd_of_f64(f64_of_bits(u));
}

#define widen_F16(h)  f32_of_f16(h)
#define widen_BF16(h) f32_of_bf16(h)
#define round_F16(x)  f16_of_f32(x)
#define round_BF16(x) bf16_of_f32(x)
#define flush_F16     flush_f16
#define flush_BF16    flush_bf16

/* What a tensor copy puts beyond the bounds of a tensor; .oob makes the result zero where a factor is this
 * NaN. The ISA does not tell its bits; they were measured and published by others. */
#define OOB_NAN   0x7FF7
#define is_oob(h) (((h)&0x7FFF) == OOB_NAN)

#define HALF_FN2(name, F, n, ...)                                                                            \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        uint16_t *d = LANE_OUT(uint16_t, 0);                                                                 \
        const uint16_t *pa = LANE_IN(uint16_t, 0), *pb = LANE_IN(uint16_t, 1);                               \
        const half_mods m = mods_of(inst);                                                                   \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            const float a = widen_##F(flush_##F(pa[i], m.ftz)), b = widen_##F(flush_##F(pb[i], m.ftz));      \
            d[i] = flush_##F(round_##F(saturate(__VA_ARGS__, m)), m.ftz);                                    \
        }                                                                                                    \
    }
/* The sum may be -0 or a tiny negative number: relu and sat look at it before it is rounded, which changes
 * nothing. */
#define HALF_FN3(name, F, n)                                                                                 \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        uint16_t *d = LANE_OUT(uint16_t, 0);                                                                 \
        const uint16_t *pa = LANE_IN(uint16_t, 0), *pb = LANE_IN(uint16_t, 1), *pc = LANE_IN(uint16_t, 2);   \
        const half_mods m = mods_of(inst);                                                                   \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            const double a = widen_##F(flush_##F(pa[i], m.ftz)), b = widen_##F(flush_##F(pb[i], m.ftz));     \
            const double c = widen_##F(flush_##F(pc[i], m.ftz));                                             \
            const uint16_t r = flush_##F(round_##F(saturate(sum_##F(a * b, c), m)), m.ftz);                  \
            d[i] = m.oob && (is_oob(pa[i]) || is_oob(pb[i])) ? 0 : r;                                        \
        }                                                                                                    \
    }

#define HALVES(X, ...)                                                                                       \
    X(F16, F16, WARP, __VA_ARGS__)                                                                           \
    X(F16X2, F16, 2 * WARP, __VA_ARGS__)                                                                     \
    X(BF16, BF16, WARP, __VA_ARGS__)                                                                         \
    X(BF16X2, BF16, 2 * WARP, __VA_ARGS__)

#define DEFINE2(T, F, n, op, ...) HALF_FN2(lane_##op##_##T, F, n, __VA_ARGS__)
#define DEFINE3(T, F, n, op, ...) HALF_FN3(lane_##op##_##T, F, n)
#define H2(op, ...)               HALVES(DEFINE2, op, __VA_ARGS__)
#define H3(op, ...)               HALVES(DEFINE3, op, __VA_ARGS__)
#include "half.def"
#undef H2
#undef H3

/* Signs, as bits. */
#define DEFINE_SIGNS(T, F, n, ...)                                                                           \
    LANE_FN1(lane_neg_##T, n, uint16_t, uint16_t, flush_##F(a, has_ftz(inst)) ^ 0x8000)                      \
    LANE_FN1(lane_abs_##T, n, uint16_t, uint16_t, flush_##F(a, has_ftz(inst)) & 0x7FFF)
HALVES(DEFINE_SIGNS, )

/* min, max: as for f32 (real.c), in which the order of the widened numbers is the same. */
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
            const uint16_t fa = flush_##F(pa[i], ftz), fb = flush_##F(pb[i], ftz);                           \
            const uint16_t a = fa & kept, b = fb & kept;                                                     \
            const uint16_t r = extreme(a, b, widen_##F(a), widen_##F(b), is_max, nan);                       \
            d[i] = is_nan(widen_##F(r)) ? 0x7FFF : r | ((fa ^ fb) & signs);                                  \
        }                                                                                                    \
    }
HALVES(DEFINE_EXTREME, )

#define HALF_ANY         (V_FTZ | V_SAT | V_RELU | V_OOB)
#define EXTREME_ANY      (V_FTZ | V_NAN | V_XORSIGN | V_ABS)
#define ROW(T, F, n, op) {OP_##op, T_##T, 0, 0, 0, HALF_ANY, lane_##op##_##T},
#define H2(op, ...)      HALVES(ROW, op)
#define H3(op, ...)      HALVES(ROW, op)
#define OTHER_ROWS(T, F, n, ...)                                                                             \
    {OP_neg, T_##T, 0, 0, 0, V_FTZ, lane_neg_##T}, {OP_abs, T_##T, 0, 0, 0, V_FTZ, lane_abs_##T},            \
        {OP_min, T_##T, 0, 0, 0, EXTREME_ANY, lane_extreme_##T},                                             \
        {OP_max, T_##T, 0, 0, 0, EXTREME_ANY, lane_extreme_##T},

static const lane_row rows[] = {
#include "half.def"
    HALVES(OTHER_ROWS, )};

const lane_table LANE_LEVEL(lanes_half) = {rows, sizeof rows / sizeof *rows};
