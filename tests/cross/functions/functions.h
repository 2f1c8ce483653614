/* Plain C that both the host's compiler and clang's nvptx target compile: what runs on ptxvm must give the
 * same numbers.
 *
 * No library, no undefined behaviour, and nothing that the two machines may do differently: NaN payloads are
 * ignored, and floating-point values are converted to integers only within their range. */
#ifndef QDNN_CROSS_FUNCTIONS_H
#define QDNN_CROSS_FUNCTIONS_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

/* Every function under test takes two numbers and returns one. */
#define FUNCTION(file, name) u64 name(u64 a, u64 b);
#include "functions.def"
#undef FUNCTION

#define NOINLINE __attribute__((noinline))

/* Folds a value into a result, so that one number stands for many. */
static inline u64 mix(u64 so_far, u64 value)
{
    u64 h = (so_far ^ value) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* Bits of a number; all NaNs are one. */
static inline u32 f32_bits(float x)
{
    union {
        float f;
        u32 u;
    } v = {.f = x};
    return x != x ? 0x7FC00000u : v.u;
}

static inline u64 f64_bits(double x)
{
    union {
        double f;
        u64 u;
    } v = {.f = x};
    return x != x ? 0x7FF8000000000000u : v.u;
}

static inline float f32_of(u32 bits)
{
    union {
        u32 u;
        float f;
    } v = {.u = bits};
    return v.f;
}

static inline double f64_of(u64 bits)
{
    union {
        u64 u;
        double f;
    } v = {.u = bits};
    return v.f;
}

#endif
