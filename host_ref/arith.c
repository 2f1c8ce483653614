/* Small steps that several operations share, and the way out for a wrong spec. */
#include "host_ref/internal.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void require(bool ok, const char *rule, ...)
{
    if (ok)
        return;
    va_list arguments;
    va_start(arguments, rule);
    fprintf(stderr, "host_ref: ");
    vfprintf(stderr, rule, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

float larger(float a, float b)
{
    return a > b ? a : b;
}

float clamp(float x, float low, float high)
{
    if (!(x > low))
        return low;
    return x < high ? x : high;
}

float finite(float x)
{
    if (isinf(x))
        return x > 0.0f ? FLT_MAX : -FLT_MAX;
    return x;
}

/* Truncation and the difference are exact, so a tie is seen as exactly one half. */
float round_ties_away(float x)
{
    float whole = truncf(x);
    if (x - whole >= 0.5f)
        return whole + 1.0f;
    if (x - whole <= -0.5f)
        return whole - 1.0f;
    return whole;
}

float round_integral(float x, qdnnRounding_t rounding)
{
    return rounding == QDNN_ROUND_TIES_AWAY ? round_ties_away(x) : rintf(x);
}

int64_t ceil_div(int64_t count, int64_t size)
{
    return count / size + (count % size != 0);
}
