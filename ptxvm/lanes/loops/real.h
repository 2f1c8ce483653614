/* What f32 and f64 instructions do before and after the operation itself: subnormal numbers flushed, results
 * saturated, NaNs made canonical. */
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
    if (sat) /* also makes +0 of NaN and of -0 */
        x = x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
    x = flush_f32(x, ftz);
    return x != x ? f32_of_bits(F32_NAN) : x;
}

static inline double finish_f64(double x, __attribute__((unused)) bool ftz, bool sat)
{
    if (sat)
        x = x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
    return x != x ? f64_of_bits(F64_NAN) : x;
}

#define flush(x, ftz)       _Generic((x), float : flush_f32, double : flush_f64)(x, ftz)
#define finish(x, ftz, sat) _Generic((x), float : finish_f32, double : finish_f64)(x, ftz, sat)

#endif
