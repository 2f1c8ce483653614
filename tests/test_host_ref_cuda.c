/* The conversions of the host reference against the host versions in CUDA's own headers, where the toolkit is
 * found: every 16-bit input, and a dense sample of f32. */
#include "test_host_ref.h"

#ifdef QDNN_CUDA_HEADERS
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>

static unsigned cuda_e4m3(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

static unsigned cuda_e5m2(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
}

static unsigned cuda_e2m3(float x)
{
    return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest);
}

static unsigned cuda_e3m2(float x)
{
    return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest);
}

static unsigned cuda_e2m1(float x)
{
    return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
}

/* Back, as the bits of an f16. */

static unsigned half_of_e4m3(unsigned code)
{
    return __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, __NV_E4M3).x;
}

static unsigned half_of_e5m2(unsigned code)
{
    return __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, __NV_E5M2).x;
}

static unsigned half_of_e2m3(unsigned code)
{
    return __nv_cvt_fp6_to_halfraw((__nv_fp6_storage_t)code, __NV_E2M3).x;
}

static unsigned half_of_e3m2(unsigned code)
{
    return __nv_cvt_fp6_to_halfraw((__nv_fp6_storage_t)code, __NV_E3M2).x;
}

static unsigned half_of_e2m1(unsigned code)
{
    return __nv_cvt_fp4_to_halfraw((__nv_fp4_storage_t)code, __NV_E2M1).x;
}

static const struct {
    const char *name;
    ref_minifloat type;
    unsigned codes;
    bool has_nan; /* CUDA saturates the NaN of the others; the contract makes it 0 */
    unsigned (*narrow)(float);
    unsigned (*widen)(unsigned);
} types[] = {
    {"e4m3", REF_E4M3, 256, true, cuda_e4m3, half_of_e4m3},
    {"e5m2", REF_E5M2, 256, true, cuda_e5m2, half_of_e5m2},
    {"e2m3", REF_E2M3, 64, false, cuda_e2m3, half_of_e2m3},
    {"e3m2", REF_E3M2, 64, false, cuda_e3m2, half_of_e3m2},
    {"e2m1", REF_E2M1, 16, false, cuda_e2m1, half_of_e2m1},
};

static void check_narrow(int index, float x)
{
    if (isnan(x) && !types[index].has_nan)
        return;
    unsigned ours = ref_f32_to_minifloat(types[index].type, x), theirs = types[index].narrow(x);
    if (ours != theirs)
        FAIL("%s of %a is %02X, expected %02X", types[index].name, (double)x, ours, theirs);
}

TEST_ROWS(HostRefCuda, NarrowsEverySixteenBitInput, types)
{
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        check_narrow(index, ref_f16_to_f32((uint16_t)bits));
        check_narrow(index, ref_bf16_to_f32((uint16_t)bits));
    }
}

/* Every exponent and sign with mantissas around every tie of a short format, then random bits. */
TEST_ROWS(HostRefCuda, NarrowsADenseSampleOfFloats, types)
{
    static const uint32_t around[] = {0, 1, 0x1FFFF, 0x20000, 0x20001, 0x3FFFF};
    for (uint32_t upper = 0; upper < 1u << 14; upper++)
        for (int i = 0; i < 6; i++)
            check_narrow(index, ref_f32_from_bits(upper << 18 | around[i]));
    uint32_t state = 1;
    for (int i = 0; i < 1 << 20; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t mixed = state ^ state >> 15;
        check_narrow(index, ref_f32_from_bits(mixed));
    }
}

TEST_ROWS(HostRefCuda, WidensEveryCode, types)
{
    for (unsigned code = 0; code < types[index].codes; code++) {
        float theirs = ref_f16_to_f32((uint16_t)types[index].widen(code));
        CHECK_EQ_F32(ref_minifloat_to_f32(types[index].type, code), theirs);
    }
}

/* Rounded towards zero it is the floor of MX scales: the exponent of a power of two and of what lies above it. */
TEST_CASE(HostRefCuda, PowersOfTwo)
{
    for (unsigned code = 0; code < 255; code++) {
        float value = ref_e8m0_to_f32((uint8_t)code);
        CHECK_EQ_U32(__nv_cvt_float_to_e8m0(value, __NV_NOSAT, cudaRoundZero), code);
        CHECK_EQ_U32(__nv_cvt_float_to_e8m0(nextafterf(value, INFINITY), __NV_NOSAT, cudaRoundZero), code);
    }
}
#else
TEST_CASE(HostRefCuda, Headers)
{
    SKIP("CUDA's headers were not found when this was built");
}
#endif
