/* The functions that a GPU only approximates: rsqrt sin cos lg2 ex2 tanh, and the coarse rcp and rsqrt of
 * f64. Here the result is correctly rounded.
 *
 * A function of the C library in f64 is accurate to about one unit in its last place. If both ends of that
 * interval round to the same f32 (f16, bf16), that is the result; if they do not, long double decides, whose
 * error is a thousand times smaller and far below the closest that any f32 argument comes to a tie. rsqrt
 * decides its close cases in integers. */
#include "convert.h"

typedef double wide_fn(double);
typedef long double wider_fn(long double);

/* The ends of the interval: 2^-50 in either direction is at least four units in the last place of an f64. */
#define BELOW(x) ((x) * (1 - 0x1p-50))
#define ABOVE(x) ((x) * (1 + 0x1p-50))

static float to_f32(double x, wide_fn *f, wider_fn *exact)
{
    const double y = f(x);
    const float low = (float)BELOW(y), high = (float)ABOVE(y);
    return low == high || is_nan(y) ? (float)y : (float)exact(x);
}

/* long double to f32 rounded to odd, for a second rounding to 16 bits. */
static float f32_odd_of_long(long double y)
{
    const float near = (float)y;
    uint32_t u = bits_of_f32(near);
    u -= fabsl((long double)near) > fabsl(y);
    u |= (long double)near != y;
    return is_nan(y) ? near : f32_of_bits(u);
}

#define SHORT_FN(F)                                                                                          \
    static uint16_t to_##F(double x, wide_fn *f, wider_fn *exact)                                            \
    {                                                                                                        \
        const double y = f(x);                                                                               \
        const uint16_t low = F##_of_f32(f32_odd_of_f64(BELOW(y)));                                           \
        const uint16_t high = F##_of_f32(f32_odd_of_f64(ABOVE(y)));                                          \
        return low == high ? low : F##_of_f32(f32_odd_of_long(exact(x)));                                    \
    }
SHORT_FN(f16)
SHORT_FN(bf16)

/* 1 / sqrt(x) of a positive normal or subnormal f32. The nearest f64 decides unless it is close to the
 * midpoint m of two f32: then x m^2 is compared with 1, which is exact: x has 24 bits and m 25. */
static float rsqrt_f32(float x)
{
    const double y = 1 / sqrt((double)x);
    const float low = (float)BELOW(y), high = (float)ABOVE(y);
    if (low == high || !(x > 0) || isinf(x))
        return (float)y;
    int ex, em;
    const double middle = ((double)low + (double)high) / 2;
    const uint64_t sx = (uint64_t)ldexp(frexp(x, &ex), 24), sm = (uint64_t)ldexp(frexp(middle, &em), 25);
    const unsigned __int128 product =
        (unsigned __int128)(sm * sm) * sx; /* x m^2 = product * 2^(ex + 2 em - 74) */
    const unsigned __int128 one = (unsigned __int128)1 << (74 - ex - 2 * em);
    return product < one ? high : low; /* x m^2 < 1: the root is above m. A tie is impossible: m is odd. */
}

static double rsqrt_of(double x)
{
    return 1 / sqrt(x);
}

/* The coarse f64 forms use the upper half of the source and produce the upper half of the result, here
 * rounded to nearest. They are the only f64 instructions that drop the payload of a NaN. */
#define COARSE_NAN ((uint64_t)F32_NAN << 32)

static double upper_half(double x)
{
    const uint64_t u = bits_of_f64(x);
    if (is_nan(x))
        return f64_of_bits(COARSE_NAN);
    return f64_of_bits((u + 0x7FFFFFFF + (u >> 32 & 1)) & ~(uint64_t)UINT32_MAX);
}

static double flush_tiny(double x)
{
    return fabs(x) < DBL_MIN ? copysign(0, x) : x;
}

static double coarse(double x, wide_fn *f)
{
    const double upper = f64_of_bits(bits_of_f64(x) & ~(uint64_t)UINT32_MAX);
    return upper_half(flush_tiny(f(flush_tiny(upper))));
}

static double reciprocal(double x)
{
    return 1 / x;
}

/* rsqrt.approx.f64 keeps all bits: rounded from long double. */
static double rsqrt_f64(double x)
{
    return (double)(1 / sqrtl((long double)x));
}

LANE_FN1(lane_rcp_F64_FTZ, WARP, double, double, coarse(a, reciprocal))
LANE_FN1(lane_rsqrt_F64_FTZ, WARP, double, double, coarse(a, rsqrt_of))
LANE_FN1(lane_rsqrt_F64, WARP, double, double, payload_f64(rsqrt_f64(a), a, a, a))
LANE_FN1(lane_rsqrt_F32, WARP, float, float, finish_f32(rsqrt_f32(a), false, false))
LANE_FN1(lane_rsqrt_F32_FTZ, WARP, float, float, finish_f32(rsqrt_f32(flush_f32(a, true)), true, false))

/* The others use the C library. */
#define FUNCTIONS(X)                                                                                         \
    X(sin, sin, sinl) X(cos, cos, cosl) X(lg2, log2, log2l) X(ex2, exp2, exp2l) X(tanh, tanh, tanhl)
#define DEFINE_F32(op, f, exact)                                                                             \
    LANE_FN1(lane_##op##_F32, WARP, float, float, finish_f32(to_f32(a, f, exact), false, false))             \
    LANE_FN1(lane_##op##_F32_FTZ, WARP, float, float,                                                        \
             finish_f32(to_f32(flush_f32(a, true), f, exact), true, false))
FUNCTIONS(DEFINE_F32)

#define SHORTS(X)                                                                                            \
    X(ex2, F16, f16, WARP, exp2, exp2l)                                                                      \
    X(ex2, F16X2, f16, 2 * WARP, exp2, exp2l)                                                                \
    X(ex2, BF16, bf16, WARP, exp2, exp2l)                                                                    \
    X(ex2, BF16X2, bf16, 2 * WARP, exp2, exp2l)                                                              \
    X(tanh, F16, f16, WARP, tanh, tanhl)                                                                     \
    X(tanh, F16X2, f16, 2 * WARP, tanh, tanhl)                                                               \
    X(tanh, BF16, bf16, WARP, tanh, tanhl)                                                                   \
    X(tanh, BF16X2, bf16, 2 * WARP, tanh, tanhl)
/* Only ex2.bf16 is written with .ftz: subnormal inputs and results count as zero. */
static inline uint16_t flush_short(uint16_t h, bool ftz)
{
    return ftz && !(h & 0x7F80) ? h & 0x8000 : h;
}
#define DEFINE_SHORT(op, T, F, n, f, exact)                                                                  \
    LANE_FN1(lane_##op##_##T, n, uint16_t, uint16_t,                                                         \
             flush_short(to_##F(f32_of_##F(flush_short(a, has_ftz(inst))), f, exact), has_ftz(inst)))
SHORTS(DEFINE_SHORT)

#define ROW_F32(op, f, exact)                                                                                \
    {OP_##op, T_F32, 0, 0, 0, 0, lane_##op##_F32}, {OP_##op, T_F32, 0, 0, V_FTZ, 0, lane_##op##_F32_FTZ},
#define ROW_SHORT(op, T, F, n, f, exact) {OP_##op, T_##T, 0, 0, 0, V_FTZ, lane_##op##_##T},

static const lane_row rows[] = {
    FUNCTIONS(ROW_F32) SHORTS(ROW_SHORT) /**/
    {OP_rsqrt, T_F32, 0, 0, 0, 0, lane_rsqrt_F32},
    {OP_rsqrt, T_F32, 0, 0, V_FTZ, 0, lane_rsqrt_F32_FTZ},
    {OP_rsqrt, T_F64, 0, 0, 0, 0, lane_rsqrt_F64},
    {OP_rsqrt, T_F64, 0, 0, V_FTZ, 0, lane_rsqrt_F64_FTZ},
    {OP_rcp, T_F64, 0, 0, V_FTZ, 0, lane_rcp_F64_FTZ},
};

const lane_table LANE_LEVEL(lanes_approx) = {rows, sizeof rows / sizeof *rows};
