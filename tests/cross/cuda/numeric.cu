/* Numbers: integer intrinsics, packed bytes, dot products, every rounding of f32 and f64, f16 and bf16. n =
 * 4,096 words, taken in pairs: x is word i, y the next one. */
#include "common.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define X in[global_index()]
#define Y in[(global_index() + 1) % n]

__device__ inline u32 mix(u32 h, u32 x)
{
    h = (h ^ x) * 0x9E3779B1u;
    return h ^ h >> 15;
}

__device__ inline u32 mix(u32 h, u64 x)
{
    return mix(mix(h, (u32)x), (u32)(x >> 32));
}

KERNEL integer_intrinsics(u32 *out, const u32 *in, u32 n)
{
    u32 x = X, y = Y, h = 0;
    u64 wide = (u64)x << 32 | y, other = (u64)y << 32 | x;
    h = mix(h, (u32)__mulhi((int)x, (int)y));
    h = mix(h, __umulhi(x, y));
    h = mix(h, __umul64hi(wide, other));
    h = mix(h, (u64)__mul64hi((long long)wide, (long long)other));
    h = mix(h, (u32)__mul24((int)x, (int)y));
    h = mix(h, __umul24(x, y));
    h = mix(h, __brev(x));
    h = mix(h, (u64)__brevll(wide));
    h = mix(h, (u32)__clz((int)x) + 64 * (u32)__clzll((long long)wide));
    h = mix(h, (u32)__popc(x) + 64 * (u32)__popcll(wide));
    h = mix(h, (u32)__ffs((int)x) + 64 * (u32)__ffsll((long long)wide));
    h = mix(h, __byte_perm(x, y, x >> 3));
    h = mix(h, __funnelshift_l(x, y, x) + __funnelshift_r(x, y, y));
    h = mix(h, __funnelshift_lc(x, y, x & 63) + __funnelshift_rc(x, y, y & 63));
    h = mix(h, __sad((int)x, (int)y, 5) + __usad(x, y, 9));
    h = mix(h, (u32)__hadd((int)x, (int)y) + (u32)__rhadd((int)x, (int)y));
    out[global_index()] = mix(h, __uhadd(x, y) + __urhadd(x, y));
}

KERNEL packed_bytes(u32 *out, const u32 *in, u32 n)
{
    u32 x = X, y = Y, h = 0;
    h = mix(h, __vadd4(x, y));
    h = mix(h, __vsub4(x, y));
    h = mix(h, __vabsdiffu4(x, y));
    h = mix(h, __vmaxu4(x, y));
    h = mix(h, __vmins4(x, y));
    h = mix(h, __vavgu4(x, y));
    h = mix(h, __vcmpgtu4(x, y));
    h = mix(h, __vaddus4(x, y));
    h = mix(h, __vsadu4(x, y));
    h = mix(h, __vadd2(x, y));
    h = mix(h, __vmaxs2(x, y));
    h = mix(h, __vsubss2(x, y));
    out[global_index()] = h;
}

KERNEL dot_products(u32 *out, const u32 *in, u32 n)
{
    u32 x = X, y = Y, h = 0;
    h = mix(h, (u32)__dp4a((int)x, (int)y, 1000));
    h = mix(h, __dp4a(x, y, 1000u));
    h = mix(h, (u32)__dp2a_lo((int)x, (int)y, -7));
    h = mix(h, __dp2a_hi(x, y, 7u));
    out[global_index()] = h;
}

/* Any bits as numbers; all NaNs count as the same. */
__device__ inline u32 bits(float x)
{
    return x != x ? 0x7FC00000u : __float_as_uint(x);
}

__device__ inline u64 bits(double x)
{
    return x != x ? 0x7FF8000000000000ull : (u64)__double_as_longlong(x);
}

#define ROUNDED_F32(mode)                                                                                    \
    h = mix(mix(h, bits(__fadd_##mode(a, b))), bits(__fsub_##mode(a, b)));                                   \
    h = mix(mix(h, bits(__fmul_##mode(a, b))), bits(__fmaf_##mode(a, b, c)));                                \
    h = mix(mix(h, bits(__fdiv_##mode(a, b))), bits(__fsqrt_##mode(c)));                                     \
    h = mix(h, bits(__frcp_##mode(a)))

KERNEL rounded_f32(u32 *out, const u32 *in, u32 n)
{
    float a = __uint_as_float(X), b = __uint_as_float(Y), c = __uint_as_float(X ^ Y >> 1);
    u32 h = 0;
    ROUNDED_F32(rn);
    ROUNDED_F32(rz);
    ROUNDED_F32(ru);
    ROUNDED_F32(rd);
    out[global_index()] = h;
}

#define ROUNDED_F64(mode)                                                                                    \
    h = mix(mix(h, bits(__dadd_##mode(a, b))), bits(__dmul_##mode(a, b)));                                   \
    h = mix(mix(h, bits(__fma_##mode(a, b, c))), bits(__ddiv_##mode(a, b)));                                 \
    h = mix(mix(h, bits(__dsqrt_##mode(c))), bits(__drcp_##mode(a)))

KERNEL rounded_f64(u32 *out, const u32 *in, u32 n)
{
    u32 x = X, y = Y;
    double a = __longlong_as_double((long long)((u64)x << 32 | y)),
           b = __longlong_as_double((long long)((u64)y << 32 | x)),
           c = __longlong_as_double((long long)((u64)(x ^ y >> 1) << 32 | 1));
    u32 h = 0;
    ROUNDED_F64(rn);
    ROUNDED_F64(rz);
    ROUNDED_F64(ru);
    ROUNDED_F64(rd);
    out[global_index()] = h;
}

#define CONVERTED(mode)                                                                                      \
    h = mix(mix(h, (u32)__float2int_##mode(a)), __float2uint_##mode(a));                                     \
    h = mix(mix(h, (u64)__float2ll_##mode(a)), (u64)__double2ll_##mode(d));                                  \
    h = mix(mix(h, (u32)__double2int_##mode(d)), bits(__double2float_##mode(d)));                            \
    h = mix(mix(h, bits(__int2float_##mode((int)x))), bits(__ull2float_##mode(wide)));                       \
    h = mix(h, bits(__ll2double_##mode((long long)wide)))

/* NaN is left out: other tests cover it. */
KERNEL converted(u32 *out, const u32 *in, u32 n)
{
    u32 x = X, y = Y, h = 0;
    u64 wide = (u64)x << 32 | y;
    float a = __uint_as_float(x);
    double d = __longlong_as_double((long long)wide);
    a = a != a ? 0.0f : a;
    d = d != d ? 0.0 : d;
    CONVERTED(rn);
    CONVERTED(rz);
    CONVERTED(ru);
    CONVERTED(rd);
    out[global_index()] = h;
}

/* Two numbers of a magnitude between 2^-8 and 2^8, so that sums and products are exact in f64. */
__device__ inline float moderate(u32 x)
{
    return (float)((int)(x >> 20) - 2048) * (1.0f / 16.0f);
}

KERNEL half_arithmetic(u32 *out, const u32 *in, u32 n)
{
    __half a = __float2half(moderate(X)), b = __float2half(moderate(Y)), c = __float2half(moderate(X * 77));
    u32 h = 0;
#define TAKE(x) h = mix(h, (u32)__half_as_ushort(x))
    TAKE(__hadd_rn(a, b));
    TAKE(__hsub_rn(a, b));
    TAKE(__hmul_rn(a, b));
    TAKE(__hfma(a, b, c));
    TAKE(__hfma_sat(a, b, c));
    TAKE(__hneg(a));
    TAKE(__habs(b));
    TAKE(__hmin(a, b));
    TAKE(__hmax(a, b));
    TAKE(__float2half_rz(moderate(X) * 1.0009f));
    TAKE(__float2half_ru(moderate(X) * 1.0009f));
    TAKE(__float2half_rd(moderate(X) * 1.0009f));
    h = mix(h, (u32)__hlt(a, b) + 2 * (u32)__heq(a, b) + 4 * (u32)__hge(a, b));
    h = mix(h, (u32)__half2int_rn(a) + (u32)__half2int_rz(b));
    __half2 p = __halves2half2(a, b), q = __halves2half2(b, c), r = __hfma2(p, q, __halves2half2(c, a));
    TAKE(__low2half(r));
    TAKE(__high2half(r));
    out[global_index()] = h;
#undef TAKE
}

KERNEL bfloat_arithmetic(u32 *out, const u32 *in, u32 n)
{
    __nv_bfloat16 a = __float2bfloat16_rn(moderate(X)), b = __float2bfloat16_rn(moderate(Y));
    u32 h = 0;
#define TAKE(x) h = mix(h, (u32)__bfloat16_as_ushort(x))
    TAKE(__hadd_rn(a, b));
    TAKE(__hsub_rn(a, b));
    TAKE(__hmul_rn(a, b));
    TAKE(__hneg(a));
    TAKE(__hmax(a, b));
    TAKE(__float2bfloat16_rz(moderate(X) * 1.003f));
    TAKE(__float2bfloat16_ru(moderate(X) * 1.003f));
    TAKE(__float2bfloat16_rd(moderate(X) * 1.003f));
    h = mix(h, __float_as_uint(__bfloat162float(a) + __bfloat162float(b)));
    out[global_index()] = h;
#undef TAKE
}

/* Functions of the mathematical library, which NVRTC brings as code: f32 in the first half of n/2, f64 in the
 * second. */
KERNEL library(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), which = i % 8;
    float x = moderate(in[i]) / 16.0f, y = 0;
    double d = (double)x + (double)in[i] * 1e-12, e = 0;
    switch (which) {
    case 0:
        y = sinf(x), e = sin(d);
        break;
    case 1:
        y = cosf(x), e = cos(d);
        break;
    case 2:
        y = expf(x), e = exp(d);
        break;
    case 3:
        y = logf(fabsf(x) + 1e-3f), e = log(fabs(d) + 1e-3);
        break;
    case 4:
        y = atanf(x), e = atan(d);
        break;
    case 5:
        y = cbrtf(x), e = cbrt(d);
        break;
    case 6:
        y = powf(fabsf(x) + 0.5f, 1.7f), e = pow(fabs(d) + 0.5, 1.7);
        break;
    default:
        y = tanhf(x), e = erf(d);
    }
    if (i < 1024) {
        out[i] = __float_as_uint(y);
        out[1024 + 2 * i] = (u32)__double_as_longlong(e);
        out[1024 + 2 * i + 1] = (u32)(__double_as_longlong(e) >> 32);
    }
}
