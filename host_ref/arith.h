/* Small steps of f32 arithmetic shared by several operations. */
#ifndef QDNN_HOST_REF_ARITH_H
#define QDNN_HOST_REF_ARITH_H

#include "qdnn/types.h"

#include <float.h>
#include <math.h>

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

/* A NaN gives low. */
static inline float clamp(float x, float low, float high)
{
    if (!(x > low))
        return low;
    return x < high ? x : high;
}

/* Infinities become the largest finite numbers; a NaN stays. */
static inline float saturated(float x)
{
    if (isinf(x))
        return x > 0.0f ? FLT_MAX : -FLT_MAX;
    return x;
}

/* Truncation and the difference are exact, so a tie shows up as exactly one half. */
static inline float round_ties_away(float x)
{
    float whole = truncf(x);
    if (x - whole >= 0.5f)
        return whole + 1.0f;
    if (x - whole <= -0.5f)
        return whole - 1.0f;
    return whole;
}

static inline float round_integral(float x, qdnnRounding_t rounding)
{
    return rounding == QDNN_ROUND_TIES_AWAY ? round_ties_away(x) : rintf(x);
}

static inline int64_t ceil_div(int64_t count, int64_t size)
{
    return count / size + (count % size != 0);
}

#endif
