/* Integers of every width: arithmetic, division, shifts, comparisons, conversions, and tricks with bits. */
#include "functions.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

/* Wraps: the arithmetic is done in u64, which does, and cut down to the type. */
#define ARITHMETIC(T)                                                                                        \
    u64 arithmetic_##T(u64 a, u64 b)                                                                         \
    {                                                                                                        \
        T x = (T)a, y = (T)b;                                                                                \
        T sum = (T)((u64)x + (u64)y), difference = (T)((u64)x - (u64)y), product = (T)((u64)x * (u64)y);     \
        T negated = (T)(0 - (u64)x), mad = (T)((u64)x * (u64)y + (u64)sum);                                  \
        u64 h = mix(mix((u64)sum, (u64)difference), (u64)product);                                           \
        return mix(mix(h, (u64)negated), (u64)mad);                                                          \
    }

#define DIVIDE_UNSIGNED(T)                                                                                   \
    u64 divide_##T(u64 a, u64 b)                                                                             \
    {                                                                                                        \
        T x = (T)a, y = (T)b;                                                                                \
        if (y == 0)                                                                                          \
            y = 7;                                                                                           \
        u64 h = mix((u64)(T)(x / y), (u64)(T)(x % y));                                                       \
        h = mix(mix(h, (u64)(x / 10)), (u64)(x % 10));                                                       \
        return mix(mix(h, (u64)(x / 16)), (u64)(x % 16));                                                    \
    }

/* The most negative number divided by -1 has no answer in C. */
#define DIVIDE_SIGNED(T)                                                                                     \
    u64 divide_##T(u64 a, u64 b)                                                                             \
    {                                                                                                        \
        T x = (T)a, y = (T)b;                                                                                \
        if (y == 0 || y == -1)                                                                               \
            y = 7;                                                                                           \
        u64 h = mix((u64)(T)(x / y), (u64)(T)(x % y));                                                       \
        h = mix(mix(h, (u64)(x / 10)), (u64)(x % 10));                                                       \
        return mix(mix(h, (u64)(x / 16)), (u64)(x % 16));                                                    \
    }

#define SHIFTS(T)                                                                                            \
    u64 shifts_##T(u64 a, u64 b)                                                                             \
    {                                                                                                        \
        T x = (T)a;                                                                                          \
        unsigned by = (unsigned)b % (8 * sizeof(T));                                                         \
        u64 h = mix((u64)(T)((u64)x << by), (u64)(T)(x >> by));                                              \
        h = mix(mix(h, (u64)(T)(x >> 1)), (u64)(T)((u64)x << 3));                                            \
        return mix(mix(h, (u64)(T)(x & (T)b)), (u64)(T)((x | (T)b) ^ ~x));                                   \
    }

#define COMPARE(T)                                                                                           \
    u64 compare_##T(u64 a, u64 b)                                                                            \
    {                                                                                                        \
        T x = (T)a, y = (T)b;                                                                                \
        u64 flags = (u64)(x < y) | (u64)(x <= y) << 1 | (u64)(x > y) << 2 | (u64)(x >= y) << 3;              \
        flags |= (u64)(x == y) << 4 | (u64)(x != y) << 5 | (u64)!x << 6 | (u64)(x && y) << 7;                \
        T least = x < y ? x : y, most = x > y ? x : y;                                                       \
        return mix(mix(flags, (u64)least), (u64)most);                                                       \
    }

/* What the value is as every other type. */
#define CONVERT(T)                                                                                           \
    u64 convert_##T(u64 a, u64 b)                                                                            \
    {                                                                                                        \
        T x = (T)(a + b);                                                                                    \
        u64 h = mix(mix((u64)(u8)x, (u64)(u16)x), mix((u64)(u32)x, (u64)x));                                 \
        h = mix(mix(h, (u64)(s8)x), mix((u64)(s16)x, (u64)(s32)x));                                          \
        return mix(mix(h, f32_bits((float)x)), f64_bits((double)x));                                         \
    }

#define EVERY(T, DIVIDE) ARITHMETIC(T) DIVIDE(T) SHIFTS(T) COMPARE(T) CONVERT(T)
EVERY(u8, DIVIDE_UNSIGNED)
EVERY(u16, DIVIDE_UNSIGNED)
EVERY(u32, DIVIDE_UNSIGNED)
EVERY(u64, DIVIDE_UNSIGNED)
EVERY(s8, DIVIDE_SIGNED)
EVERY(s16, DIVIDE_SIGNED)
EVERY(s32, DIVIDE_SIGNED)
EVERY(s64, DIVIDE_SIGNED)

u64 multiply_high_u64(u64 a, u64 b)
{
    return (u64)((u128)a * b >> 64);
}

u64 multiply_high_s64(u64 a, u64 b)
{
    return (u64)((s128)(s64)a * (s64)b >> 64);
}

u64 multiply_high_u32(u64 a, u64 b)
{
    return (u64)(u32)a * (u32)b >> 32 | (u64)((s64)(s32)a * (s32)b >> 32) << 32;
}

u64 add_u128(u64 a, u64 b)
{
    u128 x = (u128)a << 64 | b, y = (u128)b << 64 | ~a;
    u128 sum = x + y, difference = x - y;
    return mix(mix((u64)sum, (u64)(sum >> 64)), mix((u64)difference, (u64)(difference >> 64)));
}

u64 shift_u128(u64 a, u64 b)
{
    u128 x = (u128)a << 64 | b;
    unsigned by = (unsigned)(a ^ b) % 128;
    u128 left = x << by, right = x >> by;
    s128 arithmetic = (s128)x >> by;
    u64 h = mix(mix((u64)left, (u64)(left >> 64)), mix((u64)right, (u64)(right >> 64)));
    return mix(h, mix((u64)arithmetic, (u64)(arithmetic >> 64)));
}

u64 multiply_u128(u64 a, u64 b)
{
    u128 x = (u128)a * b, y = x * x + (x >> 7);
    return mix((u64)y, (u64)(y >> 64));
}

u64 compare_u128(u64 a, u64 b)
{
    u128 x = (u128)a << 64 | b, y = (u128)b << 64 | a;
    s128 sx = (s128)x, sy = (s128)y;
    return (u64)(x < y) | (u64)(x == y) << 1 | (u64)(sx < sy) << 2 | (u64)(sx >= sy) << 3;
}

/* By 1 to 63: clang 14 leaves the amount of a 64-bit rotation as it is, and shl of PTX clamps it. */
u64 rotate(u64 a, u64 b)
{
    unsigned k = (unsigned)b % 32, n = (unsigned)b % 63 + 1;
    u32 x = (u32)a;
    u64 h = mix(x << k | x >> (-k & 31), a << n | a >> (64 - n));
    return mix(h, mix(x << 7 | x >> 25, a << 13 | a >> 51));
}

u64 count_bits(u64 a, u64 b)
{
    u64 h = mix((u64)__builtin_popcount((u32)a), (u64)__builtin_popcountll(b));
    h = mix(h, (u64)__builtin_clz((u32)a | 1) << 8 | (u64)__builtin_ctz((u32)a | 0x80000000u));
    return mix(h, (u64)__builtin_clzll(b | 1) << 8 | (u64)__builtin_ctzll(b | 1ull << 63));
}

u64 swap_bytes(u64 a, u64 b)
{
    return mix(mix(__builtin_bswap16((u16)a), __builtin_bswap32((u32)a)), __builtin_bswap64(b));
}

static u64 reverse_bits(u64 x)
{
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0F0F0F0F0F0F0F0Fu) | (x & 0x0F0F0F0F0F0F0F0Fu) << 4;
    return __builtin_bswap64(x);
}

u64 reverse(u64 a, u64 b)
{
    return mix(reverse_bits(a), reverse_bits(b) >> 32);
}

/* Bits of a to the places that b names, and back. */
u64 deposit_bits(u64 a, u64 b)
{
    u64 result = 0, source = a;
    for (u64 mask = b; mask; mask &= mask - 1, source >>= 1)
        if (source & 1)
            result |= mask & -mask;
    return result;
}

u64 extract_bits(u64 a, u64 b)
{
    u64 result = 0;
    int n = 0;
    for (u64 mask = b; mask; mask &= mask - 1, n++)
        result |= (u64)((a & (mask & -mask)) != 0) << n;
    return result;
}

u64 bit_field(u64 a, u64 b)
{
    unsigned start = (unsigned)b % 56, length = (unsigned)(b >> 8) % 8 + 1;
    u64 mask = ((1ull << length) - 1) << start;
    u64 sign = a << (64 - start - length);
    return mix(mix(a >> start & ((1u << length) - 1), (a & ~mask) | (b << start & mask)),
               (u64)((s64)sign >> (64 - length)));
}

u64 gray_code(u64 a, u64 b)
{
    u64 gray = a ^ a >> 1, back = gray;
    for (int k = 1; k < 64; k *= 2)
        back ^= back >> k;
    return mix(gray, back ^ b);
}

u64 interleave(u64 a, u64 b)
{
    u64 result = 0;
    for (int i = 0; i < 32; i++)
        result |= (a >> i & 1) << 2 * i | (b >> i & 1) << (2 * i + 1);
    return result;
}

u64 average(u64 a, u64 b)
{
    s32 x = (s32)a, y = (s32)b;
    s32 distance = x > y ? (s32)((u32)x - (u32)y) : (s32)((u32)y - (u32)x);
    return mix(mix((a & b) + ((a ^ b) >> 1), (u64)(u32)distance), (u64)(((s64)x + y) / 2));
}

u64 saturate(u64 a, u64 b)
{
    s32 sum, product;
    int over = __builtin_add_overflow((s32)a, (s32)b, &sum),
        more = __builtin_mul_overflow((s32)a, (s32)b, &product);
    u64 wide, borrow;
    int carry = __builtin_add_overflow(a, b, &wide), less = __builtin_sub_overflow(a, b, &borrow);
    u64 h = mix(over ? ((s32)a < 0 ? 0x80000000u : 0x7FFFFFFFu) : (u32)sum, (u64)(more ? 77 : product));
    return mix(mix(h, carry ? ~0ull : wide), less ? 0 : borrow);
}

u64 gcd(u64 a, u64 b)
{
    while (b) {
        u64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

u64 binary_gcd(u64 a, u64 b)
{
    if (a == 0 || b == 0)
        return a | b;
    int shift = __builtin_ctzll(a | b);
    a >>= __builtin_ctzll(a);
    do {
        b >>= __builtin_ctzll(b);
        if (a > b) {
            u64 t = a;
            a = b;
            b = t;
        }
        b -= a;
    } while (b);
    return a << shift;
}

u64 power_modulo(u64 a, u64 b)
{
    u64 modulus = (a >> 33) + 3, base = (u32)a % modulus, result = 1;
    for (u32 e = (u32)b; e; e >>= 1) {
        if (e & 1)
            result = result * base % modulus;
        base = base * base % modulus;
    }
    return result;
}

u64 square_root(u64 a, u64 b)
{
    u64 x = a ^ b, root = 0;
    for (u64 bit = 1ull << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= x)
            root |= bit;
    return root;
}

u64 is_prime(u64 a, u64 b)
{
    u32 n = (u32)(a ^ b) % 20000;
    if (n < 2)
        return 0;
    for (u32 d = 2; d * d <= n; d++)
        if (n % d == 0)
            return d;
    return 1;
}

u64 collatz(u64 a, u64 b)
{
    u64 n = (a ^ b) % 1000 + 1, steps = 0;
    while (n != 1 && steps < 1000) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}
