/* The fp8, fp6, fp4 and ue8m0 conversions against the host versions in CUDA's own headers, where the toolkit
 * is found. (Those of cuda_fp16.h and cuda_bf16.h are C++ only; f16 and bf16 are held against the model of
 * test_lanes_formats.c.) */
#include "test_lanes.h"

#ifdef QDNN_CUDA_HEADERS
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>

#include <string.h>

static float f32_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* Both elements by the header; a is the upper one. */
static uint32_t e4m3(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

static uint32_t e5m2(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
}

static uint32_t e3m2(float x)
{
    return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest);
}

static uint32_t e2m3(float x)
{
    return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest);
}

static uint32_t e2m1(float x)
{
    return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
}

static uint32_t ue8m0_rz(float x)
{
    return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundZero);
}

static uint32_t ue8m0_rp(float x)
{
    return __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundPosInf);
}

static uint32_t ue8m0_rp_finite(float x)
{
    return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
}

static const struct {
    const char *mnemonic;
    uint32_t (*one)(float);
    char width;
    int shift;
} encoders[] = {
    {"cvt.rn.satfinite.e4m3x2.f32", e4m3, 'h', 8}, {"cvt.rn.satfinite.e5m2x2.f32", e5m2, 'h', 8},
    {"cvt.rn.satfinite.e3m2x2.f32", e3m2, 'h', 8}, {"cvt.rn.satfinite.e2m3x2.f32", e2m3, 'h', 8},
    {"cvt.rn.satfinite.e2m1x2.f32", e2m1, 'b', 4}, {"cvt.rz.ue8m0x2.f32", ue8m0_rz, 'h', 8},
    {"cvt.rp.ue8m0x2.f32", ue8m0_rp, 'h', 8},      {"cvt.rp.satfinite.ue8m0x2.f32", ue8m0_rp_finite, 'h', 8},
};

/* A dense sample of the f32: every exponent and sign with the mantissas around every tie of a short format,
 * then random ones. */
static uint32_t sample(uint32_t i, uint64_t *seed)
{
    if (i < 1u << 17)
        return (i >> 8) << 23 | (i & 31) << 18 |
               (i >> 5 & 7 ? (i >> 5 & 1 ? 1u : 0x3FFFFu) & (0u - (i >> 6 & 1)) : 0);
    return (uint32_t)lanes_random_float(seed, 32);
}

static void check_encoder(int which)
{
    const char shape[] = {encoders[which].width, ':', 'w', 'w', 0};
    lanes_inst li;
    REQUIRE(lanes_make(&li, encoders[which].mnemonic, shape));
    uint64_t seed = (uint64_t)which;
    uint32_t in[WARP + 1] = {0};
    for (uint32_t first = 0; first < 3u << 16; first += WARP) {
        for (uint32_t lane = 0; lane < WARP; lane++) {
            in[lane] = sample(first + lane, &seed);
            lanes_put(li.s[0], 'w', (int)lane, in[lane]);
            lanes_put(li.s[1], 'w', (int)lane, in[lane] ^ 0x80000000);
        }
        REQUIRE(lanes_execute(&li, lanes_best_level()));
        for (int lane = 0; lane < WARP; lane++) {
            const uint32_t want = encoders[which].one(f32_of(in[lane])) << encoders[which].shift |
                                  encoders[which].one(f32_of(in[lane] ^ 0x80000000));
            const uint64_t got = lanes_get(li.d[0], shape[0], lane);
            if (got != want)
                FAIL("%s of %08x is %llx, not %x", encoders[which].mnemonic, in[lane],
                     (unsigned long long)got, want);
        }
    }
}

TEST_CASE(LanesCuda, EncodesAsTheHeadersDo)
{
    for (int i = 0; i < (int)(sizeof encoders / sizeof *encoders); i++)
        check_encoder(i);
}

static uint32_t half_of(int kind, uint32_t code)
{
    switch (kind) {
    case 0:
        return __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, __NV_E4M3).x;
    case 1:
        return __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, __NV_E5M2).x;
    case 2:
        return __nv_cvt_fp6_to_halfraw((__nv_fp6_storage_t)code, __NV_E3M2).x;
    case 3:
        return __nv_cvt_fp6_to_halfraw((__nv_fp6_storage_t)code, __NV_E2M3).x;
    case 4:
        return __nv_cvt_fp4_to_halfraw((__nv_fp4_storage_t)code, __NV_E2M1).x;
    default:
        return __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)code).x;
    }
}

TEST_CASE(LanesCuda, DecodesAsTheHeadersDo)
{
    static const char *const decoders[] = {"cvt.rn.f16x2.e4m3x2", "cvt.rn.f16x2.e5m2x2",
                                           "cvt.rn.f16x2.e3m2x2", "cvt.rn.f16x2.e2m3x2",
                                           "cvt.rn.f16x2.e2m1x2", "cvt.rn.bf16x2.ue8m0x2"};
    for (int kind = 0; kind < 6; kind++) {
        const int bits = kind == 4 ? 4 : kind == 2 || kind == 3 ? 6 : 8, place = kind == 4 ? 4 : 8;
        lanes_inst li;
        REQUIRE(lanes_make(&li, decoders[kind], kind == 4 ? "w:b" : "w:h"));
        for (uint32_t code = 0; code < 1u << bits; code++) {
            const uint32_t other = (1u << bits) - 1 - code;
            lanes_put(li.s[0], kind == 4 ? 'b' : 'h', 3, code << place | other);
            REQUIRE(lanes_execute(&li, lanes_best_level()));
            CHECK_EQ_U32((uint32_t)lanes_get(li.d[0], 'w', 3),
                         half_of(kind, code) << 16 | half_of(kind, other));
        }
    }
}
#else
TEST_CASE(LanesCuda, EncodesAsTheHeadersDo)
{
    SKIP("no CUDA headers were found");
}
#endif
