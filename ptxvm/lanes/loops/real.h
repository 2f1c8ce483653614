/* What f32 and f64 instructions do before and after the operation itself: flush subnormal numbers, saturate
 * results, make NaNs canonical (f32) or take them from the sources (f64). */
#ifndef PTXVM_LANES_REAL_H
#define PTXVM_LANES_REAL_H

#include "formats.h"

static inline float flush_f32(float x, bool ftz)
{
    const uint32_t u = bits_of_f32(x);
    return ftz && !(u & F32_INF) ? f32_of_bits(u & 0x80000000) : x;
}

static inline double flush_f64(double x, __attribute__((unused)) bool ftz)
{
    return x;
}

static inline float finish_f32(float x, bool ftz, bool sat)
{
    if (sat) /* also turns NaN and -0 into +0 */
        x = x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
    x = flush_f32(x, ftz);
    return x != x ? f32_of_bits(F32_NAN) : x;
}

static inline double finish_f64(double x, __attribute__((unused)) bool ftz, bool sat)
{
    if (sat)
        x = x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
    return x;
}

static inline double quiet_f64(double nan)
{
    return f64_of_bits(bits_of_f64(nan) | F64_QUIET);
}

/* The NaN of a result. f64 keeps the payload of the first source that is a NaN (PTX ISA, floating-point
 * instructions), like the division of ptxas; processors differ here, so it is explicit. */
static inline double payload_f64(double x, double a, double b, double c)
{
    const double source = is_nan(a) ? a : is_nan(b) ? b : c;
    const double nan = is_nan(source) ? quiet_f64(source) : f64_of_bits(F64_NAN);
    return is_nan(x) ? nan : x;
}

static inline float payload_f32(float x, __attribute__((unused)) float a, __attribute__((unused)) float b,
                                __attribute__((unused)) float c)
{
    return x;
}

#define flush(x, ftz)       _Generic((x), float : flush_f32, double : flush_f64)(x, ftz)
#define finish(x, ftz, sat) _Generic((x), float : finish_f32, double : finish_f64)(x, ftz, sat)
#define payload(x, a, b, c) _Generic((x), float : payload_f32, double : payload_f64)(x, a, b, c)

#endif
