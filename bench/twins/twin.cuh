/* What the CUDA C twins share. A twin is a qdnn kernel as one would write it for NVRTC: the same entry,
 * parameters, launch and, with
 * --fmad=false, the same bits (docs/numerics.md). It is specialised as ours is, by macros:
 *
 *     FORMAT_INT4 | FORMAT_INT4_ZP | FORMAT_NF4   which format
 *     DATA, SCALE, ZERO                           F32, F16, BF16, U8: the types in memory
 *     GROUP_SIZE                                  consecutive elements that share a scale
 *     CHANNELS                                    0, or how many groups take turns over the tensor
 *     LANES                                       threads that share a group in the scale kernel
 *     NIBBLE_HIGH, TIES_AWAY, RECIPROCAL          0 or 1
 *     FLOOR_BITS                                  of the least range, as f32
 *
 * No header of the toolkit is needed: NVRTC has nothing to read but this. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define F32  0
#define F16  1
#define BF16 2
#define U8   3

#define BLOCK          256
#define TILE           4096 /* elements of a block in quantize and dequantize */
#define LARGEST_FINITE __int_as_float(0x7F7FFFFF)

/* ---- elements ---- */

template <int type> struct element;
template <> struct element<F32> {
    typedef float memory;
    static constexpr u32 smallest = 0x00000001, largest = 0x7F7FFFFF;
};
template <> struct element<F16> {
    typedef u16 memory;
    static constexpr u32 smallest = 0x33800000, largest = 0x477FE000;
};
template <> struct element<BF16> {
    typedef u16 memory;
    static constexpr u32 smallest = 0x00010000, largest = 0x7F7F0000;
};
template <> struct element<U8> {
    typedef u8 memory;
};

template <int type> __device__ inline float widen(typename element<type>::memory x)
{
    if constexpr (type == F16) {
        float y;
        asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
        return y;
    } else if constexpr (type == BF16) {
        return __int_as_float((int)((u32)x << 16));
    } else {
        return (float)x;
    }
}

/* To nearest even; a NaN becomes 7FFF. sm_75 has no instruction for bf16, so that is integer arithmetic. */
template <int type> __device__ inline typename element<type>::memory narrow(float x)
{
    if constexpr (type == F16) {
        u16 y;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    } else if constexpr (type == BF16) {
        u32 bits = (u32)__float_as_int(x);
        u32 rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        return (u16)(x != x ? 0x7FFF : rounded);
    } else if constexpr (type == U8) {
        return (u8)(u32)x;
    } else {
        return x;
    }
}

typedef element<DATA>::memory data_t;
typedef element<SCALE>::memory scale_t;
typedef element<ZERO>::memory zero_t;

/* 16 bytes at once. */
constexpr int chunk = 16 / (int)sizeof(data_t);
struct alignas(16) data_chunk {
    data_t at[chunk];
};

/* The codes of a chunk: 2 or 4 bytes. */
template <int bytes> struct word;
template <> struct word<2> {
    typedef u16 type;
};
template <> struct word<4> {
    typedef u32 type;
};
typedef word<chunk / 2>::type code_word;

__device__ inline bool aligned(const void *pointer, u64 bytes)
{
    return (u64)pointer % bytes == 0;
}

/* ---- rounding ---- */

__device__ inline float round_even(float x)
{
    float y;
    asm("cvt.rni.f32.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Truncation and the difference are exact, so a tie is seen as one half. */
__device__ inline float round_away(float x)
{
    float whole;
    asm("cvt.rzi.f32.f32 %0, %1;" : "=f"(whole) : "f"(x));
    float rest = x - whole;
    return rest >= 0.5f ? whole + 1.0f : rest <= -0.5f ? whole - 1.0f : whole;
}

__device__ inline float round_code(float x)
{
    return TIES_AWAY ? round_away(x) : round_even(x);
}

/* A NaN gives low. */
__device__ inline float clamp(float x, float low, float high)
{
    return fminf(fmaxf(x, low), high);
}

/* ---- codes ---- */

struct group_values {
    float scale, reciprocal, zero;
};

/* A chunk lies within one group. */
constexpr bool one_group = CHANNELS == 1 || GROUP_SIZE % chunk == 0;

__device__ inline u64 group_of(u64 element)
{
    return CHANNELS ? element / GROUP_SIZE % (CHANNELS ? CHANNELS : 1) : element / GROUP_SIZE;
}

__device__ inline group_values load_group(const scale_t *scale, const zero_t *zero, u64 group)
{
    group_values g;
    g.scale = widen<SCALE>(scale[group]);
    g.reciprocal = RECIPROCAL ? 1.0f / g.scale : 0.0f;
#ifdef FORMAT_INT4_ZP
    g.zero = widen<ZERO>(zero[group]);
#else
    g.zero = 0.0f;
#endif
    return g;
}

__constant__ u32 nf4_bits[16] = {0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F,
                                 0xBDBA7871, 0x00000000, 0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A,
                                 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000};

__device__ inline u32 encode(float v, const group_values &g)
{
#if defined(FORMAT_INT4)
    return (u32)(int)(clamp(round_code(v), -8.0f, 7.0f) + 8.0f);
#elif defined(FORMAT_INT4_ZP)
    float q = ZERO == U8 ? round_code(v) + g.zero : round_code(v + g.zero); /* a float zero may be fractional */
    return (u32)(int)round_even(clamp(q, 0.0f, 15.0f));
#else
    u32 code = 0;
    const u32 midpoints[15] = {0xBF591CD8, 0xBF1C5270, 0xBEEB8480, 0xBEADEA76, 0xBE703CEC,
                               0xBE0D38BC, 0xBD3A7871, 0x3D22FAFF, 0x3DF64862, 0x3E5067E0,
                               0x3E9582D4, 0x3EC753F9, 0x3F006D04, 0x3F248DAF, 0x3F5C89DA};
#pragma unroll
    for (int i = 0; i < 15; i++)
        code += __int_as_float((int)midpoints[i]) < v;
    return code;
#endif
}

/* An infinity counts as the largest finite number; a quotient that is NaN as 0. */
__device__ inline u32 encode_element(data_t x, const group_values &g)
{
    float value = widen<DATA>(x);
    if (value == value)
        value = clamp(value, -LARGEST_FINITE, LARGEST_FINITE);
    float v = RECIPROCAL ? value * g.reciprocal : value / g.scale;
    return encode(v == v ? v : 0.0f, g);
}

__device__ inline float decode(u32 code, const group_values &g, const float *table)
{
#if defined(FORMAT_INT4)
    return (float)((int)code - 8);
#elif defined(FORMAT_INT4_ZP)
    return (float)(int)code - g.zero;
#else
    return table[code];
#endif
}

__device__ inline u32 nibble_shift(u64 element)
{
    return 4 * (u32)((element ^ NIBBLE_HIGH) & 1);
}
