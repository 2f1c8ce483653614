/* Shared by all files of lane loops: the C type of each PTX type, how to write a loop that the compiler
 * vectorizes, and bit casts.
 *
 * The files here are compiled with -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv
 * -fno-strict-aliasing and nothing that lets the compiler change a result. Rounding modes other than nearest
 * are the processor's, switched by the caller before the function runs, so no code moves across the switch;
 * without constant operands nothing is folded at compile time either. */
#ifndef PTXVM_LANES_LOOPS_H
#define PTXVM_LANES_LOOPS_H

#include "ptxvm/lanes/table.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define LANE_PASTE_(a, b) a##_##b
#define LANE_PASTE(a, b)  LANE_PASTE_(a, b)
#define LANE_LEVEL(name)  LANE_PASTE(name, LANES_LEVEL) /* lanes_real_v3: LANES_LEVEL is set by the build */

typedef uint8_t t_U8, t_B8;
typedef int8_t t_S8;
typedef uint16_t t_U16, t_B16, t_F16, t_BF16;
typedef int16_t t_S16;
typedef uint32_t t_U32, t_B32, t_TF32;
typedef int32_t t_S32;
typedef uint64_t t_U64, t_B64;
typedef int64_t t_S64;
typedef float t_F32;
typedef double t_F64;
/* Packed types: twice as many elements, each of half the size. */
typedef float t_F32X2;
typedef uint16_t t_U16X2, t_F16X2, t_BF16X2;
typedef int16_t t_S16X2;
typedef uint8_t t_U8X4; /* four */
typedef int8_t t_S8X4;

enum {
    n_U8 = WARP,
    n_S8 = WARP,
    n_B8 = WARP,
    n_U16 = WARP,
    n_S16 = WARP,
    n_B16 = WARP,
    n_F16 = WARP,
    n_BF16 = WARP,
    n_U32 = WARP,
    n_S32 = WARP,
    n_B32 = WARP,
    n_F32 = WARP,
    n_U64 = WARP,
    n_S64 = WARP,
    n_B64 = WARP,
    n_F64 = WARP,
    n_U16X2 = 2 * WARP,
    n_S16X2 = 2 * WARP,
    n_U8X4 = 4 * WARP,
    n_S8X4 = 4 * WARP,
    n_F16X2 = 2 * WARP,
    n_BF16X2 = 2 * WARP,
    n_F32X2 = 2 * WARP
};

/* A loop whose result may be the same register as a source: element i is read before it is written, and no
 * other element. */
#ifdef __clang__
#define LANE_VECTORISE _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define LANE_VECTORISE _Pragma("GCC ivdep")
#endif
#define LANE_FOR(n) LANE_VECTORISE for (int i = 0; i < (n); i++)

#define LANE_ARGS      void *const *dst, const void *const *src, __attribute__((unused)) const pvm_inst *inst
#define LANE_OUT(T, k) ((T *)__builtin_assume_aligned(dst[k], 64))
#define LANE_IN(T, k)  ((const T *)__builtin_assume_aligned(src[k], 64))
#define LANE_MASK(k)   (*(const uint32_t *)src[k])

/* The four shapes of a lane function; the expression uses a, b, c, e and `inst`. */
#define LANE_FN1(name, n, D, A, ...)                                                                         \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        D *d = LANE_OUT(D, 0);                                                                               \
        const A *pa = LANE_IN(A, 0);                                                                         \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            A a = pa[i];                                                                                     \
            d[i] = (D)(__VA_ARGS__);                                                                         \
        }                                                                                                    \
    }
#define LANE_FN2(name, n, D, A, B, ...)                                                                      \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        D *d = LANE_OUT(D, 0);                                                                               \
        const A *pa = LANE_IN(A, 0);                                                                         \
        const B *pb = LANE_IN(B, 1);                                                                         \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            A a = pa[i];                                                                                     \
            B b = pb[i];                                                                                     \
            d[i] = (D)(__VA_ARGS__);                                                                         \
        }                                                                                                    \
    }
#define LANE_FN3(name, n, D, A, B, C, ...)                                                                   \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        D *d = LANE_OUT(D, 0);                                                                               \
        const A *pa = LANE_IN(A, 0);                                                                         \
        const B *pb = LANE_IN(B, 1);                                                                         \
        const C *pc = LANE_IN(C, 2);                                                                         \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            A a = pa[i];                                                                                     \
            B b = pb[i];                                                                                     \
            C c = pc[i];                                                                                     \
            d[i] = (D)(__VA_ARGS__);                                                                         \
        }                                                                                                    \
    }
#define LANE_FN4(name, n, D, A, B, C, E, ...)                                                                \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        D *d = LANE_OUT(D, 0);                                                                               \
        const A *pa = LANE_IN(A, 0);                                                                         \
        const B *pb = LANE_IN(B, 1);                                                                         \
        const C *pc = LANE_IN(C, 2);                                                                         \
        const E *pe = LANE_IN(E, 3);                                                                         \
        LANE_FOR(n)                                                                                          \
        {                                                                                                    \
            A a = pa[i];                                                                                     \
            B b = pb[i];                                                                                     \
            C c = pc[i];                                                                                     \
            E e = pe[i];                                                                                     \
            d[i] = (D)(__VA_ARGS__);                                                                         \
        }                                                                                                    \
    }

/* Bit i of a mask, as a table: `mask & lane_bit[i]` is one vector operation, `mask >> i` needs AVX2. */
static const uint32_t lane_bit[WARP] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

static inline uint32_t bits_of_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float f32_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t bits_of_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double f64_of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#endif
