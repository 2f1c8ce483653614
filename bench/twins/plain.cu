/* The dequantize kernel of any format, as plainly as CUDA C allows: each thread takes elements one by one, wherever their codes,
 * scales and zeros lie. The same entry, parameters, launch and bits as the kernel itself (docs/numerics.md, with
 * --fmad=false). bench/twins/plain.c derives the macros from the kernel's row and settings:
 *
 *     BITS, CODE                    of a code; 1 offset, 2 unsigned, 3 two's complement; 0: a float of
 *     EXPONENT, FRACTION, BIAS      so many bits; NANS: 0 none, 1 all ones, 2 as IEEE 754 has them
 *     LAYOUT                        0 bytes, 1 words down columns, 2 words along rows; NIBBLE_HIGH
 *     GROUPS, GROUP_SIZE            1 flat, 2 along rows, 3 down columns
 *     SCALE                         0 F32, 1 F16, 2 BF16, 3 E4M3, 4 E8M0; GLOBAL: there is one over them
 *     ZERO                          0 none, 1 U8, 2 I8, 3 F32, 4 packed; MINUS_ONE, WRAPS; MINIMUM: added last
 *     DATA                          0 F32, 1 F16, 2 BF16
 *     MATRIX                        the parameters are rows and columns, not n
 *     Q4_K                          blocks, and nothing of the above but DATA */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ inline float from_bits(u32 bits)
{
    return __int_as_float((int)bits);
}

__device__ inline float from_f16(u16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

__device__ inline void store(void *y, u64 i, float x)
{
#if DATA == 0
    ((float *)y)[i] = x;
#elif DATA == 1
    u16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    ((u16 *)y)[i] = half;
#else
    u32 bits = (u32)__float_as_int(x);
    ((u16 *)y)[i] = (u16)(x != x ? 0x7FFF : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
#endif
}

/* A float of few bits: an integer times a power of two, exactly. */
__device__ inline float small_float(u32 code, u32 exponent_bits, u32 fraction_bits, int bias, int nans)
{
    u32 fraction = code & ((1u << fraction_bits) - 1), exponent = code >> fraction_bits & ((1u << exponent_bits) - 1);
    u32 magnitude = code & ((1u << (exponent_bits + fraction_bits)) - 1), sign = code >> (exponent_bits + fraction_bits) & 1;
    u32 all = (1u << (exponent_bits + fraction_bits)) - 1, top = (1u << exponent_bits) - 1;
    if ((nans == 1 && magnitude == all) || (nans == 2 && exponent == top && fraction))
        return from_bits(0x7FFFFFFF);
    if (nans == 2 && exponent == top)
        return from_bits(sign << 31 | 0x7F800000);
    int power = (exponent ? (int)exponent : 1) - bias - (int)fraction_bits;
    float value = (float)(exponent ? fraction | 1u << fraction_bits : fraction) * from_bits((u32)(127 + power) << 23);
    return sign ? -value : value;
}

#ifdef Q4_K

__device__ inline float element(const u8 *blocks, u64 i)
{
    const u8 *block = blocks + i / 256 * 144, *q = block + 4;
    u32 e = (u32)(i % 256), j = e / 32;
    u32 sc = j < 4 ? q[j] & 63 : (q[j + 4] & 15) | (q[j - 4] >> 6) << 4;
    u32 m = j < 4 ? q[j + 4] & 63 : q[j + 4] >> 4 | (q[j] >> 6) << 4;
    u32 code = block[16 + e / 64 * 32 + e % 32] >> (e / 32 % 2 * 4) & 15;
    float d = from_f16((u16)(block[0] | block[1] << 8)), least = from_f16((u16)(block[2] | block[3] << 8));
    return d * (float)sc * (float)code - least * (float)m;
}

extern "C" __global__ void ENTRY(const u8 *blocks, void *y, u64 n)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        store(y, i, element(blocks, i));
}

#else

/* The bits from `bit` on, which may reach into a second word that lies `stride` words further. */
__device__ inline u32 bits_of_words(const u32 *words, u64 bit, u64 stride)
{
    u32 shift = (u32)(bit % 32), low = words[bit / 32 * stride] >> shift;
    if (shift + BITS > 32)
        low |= words[(bit / 32 + 1) * stride] << (32 - shift);
    return low & ((1u << BITS) - 1);
}

__device__ inline u32 code_at(const void *codes, u64 row, u64 column, u64 columns)
{
#if LAYOUT == 1
    return bits_of_words((const u32 *)codes + column, row * BITS, columns);
#elif LAYOUT == 2
    return bits_of_words((const u32 *)codes + row * ((columns * BITS + 31) / 32), column * BITS, 1);
#else
    u64 bit = ((row * columns + column) ^ NIBBLE_HIGH) * BITS;
    const u8 *at = (const u8 *)codes + bit / 8;
    u32 shift = (u32)(bit % 8), low = at[0];
    if (shift + BITS > 8)
        low |= (u32)at[1] << 8;
    return low >> shift & ((1u << BITS) - 1);
#endif
}

constexpr int half = 1 << (BITS - 1);

__device__ inline float number_of(u32 code)
{
#if CODE == 0
    return small_float(code, EXPONENT, FRACTION, BIAS, NANS);
#else
    return (float)((int)(CODE == 3 ? code ^ half : code) - (CODE == 2 ? 0 : half));
#endif
}

__device__ inline float scale_at(const void *scale, u64 i)
{
#if SCALE == 0
    return ((const float *)scale)[i];
#elif SCALE == 1
    return from_f16(((const u16 *)scale)[i]);
#elif SCALE == 2
    return from_bits((u32)((const u16 *)scale)[i] << 16);
#elif SCALE == 3
    return small_float(((const u8 *)scale)[i], 4, 3, 7, 1);
#else
    u32 e = ((const u8 *)scale)[i];
    return from_bits(e == 255 ? 0x7FFFFFFF : e ? e << 23 : 0x00400000);
#endif
}

/* Of group i; packed ones lie along the columns of their row of groups. */
__device__ inline float zero_at(const void *zero, u64 i, u64 group, u64 column, u64 columns)
{
#if ZERO == 0
    return 0;
#else
#if ZERO == 1
    float stored = ((const u8 *)zero)[i];
#elif ZERO == 2
    float stored = ((const signed char *)zero)[i];
#elif ZERO == 3
    float stored = ((const float *)zero)[i];
#else
    float stored = number_of(bits_of_words((const u32 *)zero + group * ((columns * BITS + 31) / 32), column * BITS, 1));
#endif
    if (WRAPS && stored == (float)((1 << BITS) - 1))
        return 0;
    return MINUS_ONE ? stored + 1.0f : stored;
#endif
}

struct arguments {
    const void *codes, *scale, *zero;
    const float *global;
    u64 columns;
};

__device__ inline float element(const arguments &a, u64 row, u64 column)
{
    u64 group = GROUPS == 1   ? (row * a.columns + column) / GROUP_SIZE
                : GROUPS == 2 ? column / GROUP_SIZE
                              : row / GROUP_SIZE;
    u64 i = GROUPS == 1   ? group
            : GROUPS == 2 ? row * ((a.columns + GROUP_SIZE - 1) / GROUP_SIZE) + group
                          : group * a.columns + column;
    float x = number_of(code_at(a.codes, row, column, a.columns)), zero = zero_at(a.zero, i, group, column, a.columns);
    if (ZERO && !MINIMUM)
        x = x - zero;
    x = x * scale_at(a.scale, i);
    if (GLOBAL)
        x = x * *a.global;
    return MINIMUM ? x + zero : x;
}

extern "C" __global__ void ENTRY(const void *codes, const void *scale,
#if ZERO
                                 const void *zero,
#endif
#if GLOBAL
                                 const float *global,
#endif
                                 void *y,
#if MATRIX
                                 u64 rows, u64 columns)
#else
                                 u64 n)
#endif
{
#if !ZERO
    const void *zero = nullptr;
#endif
#if !GLOBAL
    const float *global = nullptr;
#endif
#if !MATRIX
    const u64 rows = 1, columns = n;
#endif
    const arguments a = {codes, scale, zero, global, columns};
    u64 blocks = (u64)gridDim.x * gridDim.y, block = (u64)blockIdx.y * gridDim.x + blockIdx.x;
    for (u64 i = block * blockDim.x + threadIdx.x; i < rows * columns; i += blocks * blockDim.x)
        store(y, i, element(a, i / columns, i % columns));
}

#endif
