/* f16 and bf16 with their modifiers, the video instructions, and the functions that a GPU approximates. */
#include "test_lanes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS(name) lanes_check_rows(name, (int)(sizeof name / sizeof *name))

/* clang-format off */
static const lanes_row halves[] = {
    {"add.f16", "h:hh", {0x4000}, {0x3C00, 0x3C00}},
    {"add.rn.f16", "h:hh", {0x7C00}, {0x7BFF, 0x7BFF}},
    {"add.f16", "h:hh", {0x7FFF}, {0x7C00, 0xFC00}},
    {"add.f16", "h:hh", {0x0002}, {0x0001, 0x0001}},
    {"add.ftz.f16", "h:hh", {0x0000}, {0x0001, 0x0001}},
    {"add.sat.f16", "h:hh", {0x3C00}, {0x3C00, 0x3C00}},
    {"add.sat.f16", "h:hh", {0x0000}, {0x7E00, 0x3C00}},
    {"sub.ftz.sat.f16", "h:hh", {0x0000}, {0x3C00, 0x4000}},
    {"sub.f16x2", "w:ww", {0x3C00BC00}, {0x40003C00, 0x3C004000}},
    {"mul.f16x2", "w:ww", {0x46004000}, {0x42003C00, 0x40004000}},
    {"mul.ftz.f16", "h:hh", {0x8000}, {0x0400, 0xB800}},
    {"add.bf16", "h:hh", {0x4000}, {0x3F80, 0x3F80}},
    {"sub.bf16x2", "w:ww", {0x3F80BF80}, {0x40003F80, 0x3F804000}},
    {"mul.rn.bf16x2", "w:ww", {0x40C04000}, {0x40403F80, 0x40004000}},
    {"fma.rn.f16", "h:hhh", {0x4500}, {0x4000, 0x4000, 0x3C00}},
    {"fma.rn.sat.f16", "h:hhh", {0x3C00}, {0x4000, 0x4000, 0x3C00}},
    {"fma.rn.relu.f16", "h:hhh", {0x0000}, {0xC000, 0x4000, 0x3C00}},
    {"fma.rn.relu.f16", "h:hhh", {0x7FFF}, {0x7E00, 0x4000, 0x3C00}},
    {"fma.rn.relu.f16", "h:hhh", {0x0000}, {0x8000, 0x4000, 0x8000}},
    {"fma.rn.ftz.f16", "h:hhh", {0x0000}, {0x0001, 0x3C00, 0x0000}},
    {"fma.rn.ftz.relu.f16x2", "w:www", {0x45000000}, {0x4000C000, 0x40004000, 0x3C003C00}},
    {"fma.rn.bf16", "h:hhh", {0x40A0}, {0x4000, 0x4000, 0x3F80}},
    {"fma.rn.relu.bf16x2", "w:www", {0x40A00000}, {0x4000C000, 0x40004000, 0x3F803F80}},
    {"fma.rn.bf16", "h:hhh", {0x7F80}, {0x7F7F, 0x4000, 0x3F80}},
    {"fma.rn.oob.f16", "h:hhh", {0x0000}, {0x7FF7, 0x4000, 0x3C00}},
    {"fma.rn.oob.f16", "h:hhh", {0x7FFF}, {0x7FFF, 0x4000, 0x3C00}},
    {"fma.rn.oob.relu.bf16x2", "w:www", {0x40A00000}, {0x40003F80, 0x4000FFF7, 0x3F803F80}},
    {"neg.f16", "h:h", {0x8000}, {0x0000}},
    {"neg.ftz.f16", "h:h", {0x8000}, {0x0001}},
    {"neg.bf16x2", "w:w", {0xBF803F80}, {0x3F80BF80}},
    {"abs.f16x2", "w:w", {0x3C003C00}, {0xBC003C00}},
    {"abs.ftz.f16", "h:h", {0x0000}, {0x8001}},
    {"abs.bf16", "h:h", {0x3F80}, {0xBF80}},
    {"abs.f16", "h:h", {0x7FFF}, {0xFC01}},
    {"neg.f16x2", "w:w", {0xFC007FFF}, {0x7C007E00}},
    {"neg.bf16x2", "w:w", {0x7FFFFF80}, {0xFFC07F80}},
    {"min.f16", "h:hh", {0x8000}, {0x0000, 0x8000}},
    {"max.f16", "h:hh", {0x0000}, {0x8000, 0x0000}},
    {"min.f16", "h:hh", {0x3C00}, {0x7E00, 0x3C00}},
    {"min.f16", "h:hh", {0x7FFF}, {0x7E00, 0xFE00}},
    {"max.NaN.f16", "h:hh", {0x7FFF}, {0x3C00, 0x7E00}},
    {"min.ftz.f16", "h:hh", {0x0000}, {0x0001, 0x3C00}},
    {"min.xorsign.abs.f16x2", "w:ww", {0xBC003C00}, {0xBC003C00, 0x40004000}},
    {"max.NaN.xorsign.abs.bf16", "h:hh", {0xC000}, {0xBF80, 0x4000}},
    {"max.bf16x2", "w:ww", {0x40003F80}, {0x3F803F80, 0x4000BF80}},
    {"min.NaN.bf16", "h:hh", {0x7FFF}, {0x7FC0, 0x3F80}},
    {"ex2.approx.f16", "h:h", {0x4000}, {0x3C00}},
    {"ex2.approx.f16x2", "w:w", {0x3C003800}, {0x8000BC00}},
    {"ex2.approx.ftz.bf16", "h:h", {0x3F80}, {0x0001}},
    {"ex2.approx.ftz.bf16", "h:h", {0x0000}, {0xC300}},
    {"ex2.approx.ftz.bf16x2", "w:w", {0x40003F00}, {0x3F80BF80}},
    {"tanh.approx.f16", "h:h", {0x3C00}, {0x7C00}},
    {"tanh.approx.f16x2", "w:w", {0x3C008001}, {0x50008001}},
    {"tanh.approx.bf16", "h:h", {0xBF80}, {0xFF80}},
    {"tanh.approx.bf16x2", "w:w", {0x7FFF0000}, {0x7FC00000}},
};

static const lanes_row functions[] = {
    {"sin.approx.f32", "w:w", {0x80000000}, {0x80000000}},
    {"sin.approx.f32", "w:w", {0x7FFFFFFF}, {0x7F800000}},
    {"sin.approx.f32", "w:w", {0x00000001}, {0x00000001}},
    {"sin.approx.ftz.f32", "w:w", {0x80000000}, {0x80000001}},
    {"cos.approx.f32", "w:w", {0x3F800000}, {0}},
    {"cos.approx.ftz.f32", "w:w", {0x3F0A5140}, {0x3F800000}},
    {"lg2.approx.f32", "w:w", {0xFF800000}, {0}},
    {"lg2.approx.f32", "w:w", {0x7FFFFFFF}, {0xBF800000}},
    {"lg2.approx.f32", "w:w", {0xC3150000}, {0x00000001}},
    {"lg2.approx.ftz.f32", "w:w", {0xFF800000}, {0x00000001}},
    {"lg2.approx.f32", "w:w", {0x7F800000}, {0x7F800000}},
    {"ex2.approx.f32", "w:w", {0x40800000}, {0x40000000}},
    {"ex2.approx.f32", "w:w", {0x00000001}, {0xC3150000}},
    {"ex2.approx.ftz.f32", "w:w", {0}, {0xC3150000}},
    {"ex2.approx.f32", "w:w", {0x7F800000}, {0x43000000}},
    {"ex2.approx.f32", "w:w", {0}, {0xFF800000}},
    {"ex2.approx.f32", "w:w", {0x3FB504F3}, {0x3F000000}},
    {"tanh.approx.f32", "w:w", {0xBF800000}, {0xFF800000}},
    {"tanh.approx.f32", "w:w", {0x3F42F7D6}, {0x3F800000}},
    {"rsqrt.approx.f32", "w:w", {0x3F000000}, {0x40800000}},
    {"rsqrt.approx.f32", "w:w", {0x7F800000}, {0}},
    {"rsqrt.approx.f32", "w:w", {0xFF800000}, {0x80000000}},
    {"rsqrt.approx.f32", "w:w", {0x7FFFFFFF}, {0xBF800000}},
    {"rsqrt.approx.f32", "w:w", {0}, {0x7F800000}},
    {"rsqrt.approx.ftz.f32", "w:w", {0x7F800000}, {1}},
    {"rsqrt.approx.f32", "w:w", {0x64B504F3}, {1}},
    {"rsqrt.approx.f64", "d:d", {0x3FE0000000000000}, {0x4010000000000000}},
    {"rsqrt.approx.ftz.f64", "d:d", {0x3FE6A09E00000000}, {0x4000000000000000}},
    {"rcp.approx.ftz.f64", "d:d", {0x3FD5555500000000}, {0x4008000000000000}},
    {"rcp.approx.ftz.f64", "d:d", {0xFFF0000000000000}, {0x8000000000000001}},
    {"rcp.approx.ftz.f64", "d:d", {0x7FFFFFFF00000000}, {0x7FF8000000000000}},
    {"rcp.approx.ftz.f64", "d:d", {0}, {0x7FF0000000000000}},
};

static const lanes_row video[] = {
    {"vadd.s32.s32.s32", "w:ww", {3}, {1, 2}},
    {"vadd.u32.u32.u32.sat", "w:ww", {0xFFFFFFFF}, {0xFFFFFFFF, 2}},
    {"vadd.s32.u32.u32.sat", "w:ww", {0x7FFFFFFF}, {0xFFFFFFFF, 2}},
    {"vadd.s32.s32.u32.A:b1.B:h1", "w:ww", {0x11}, {0x0000FF00, 0x00120000}},
    {"vsub.s32.u32.u32", "w:ww", {0xFFFFFFFF}, {1, 2}},
    {"vsub.u32.u32.u32.sat", "w:ww", {0}, {1, 2}},
    {"vabsdiff.u32.s32.s32", "w:ww", {3}, {0xFFFFFFFF, 2}},
    {"vabsdiff.u32.s32.s32.add", "w:www", {13}, {0xFFFFFFFF, 2, 10}},
    {"vmin.s32.s32.s32", "w:ww", {0xFFFFFFFF}, {0xFFFFFFFF, 2}},
    {"vmax.s32.u32.s32.max", "w:www", {7}, {3, 2, 7}},
    {"vmin.s32.s32.s32.min", "w:www", {0xFFFFFFF0}, {0xFFFFFFFF, 2, 0xFFFFFFF0}},
    {"vadd.s32.s32.s32.sat.D:b2", "w:www", {0x117F3344}, {0x7F, 1, 0x11223344}},
    {"vadd.u32.u32.u32.D:h1", "w:www", {0x00033344}, {1, 2, 0x11223344}},
    {"vsub.u32.u32.u32.sat.D:h0", "w:www", {0x11220000}, {1, 2, 0x11223344}},
    {"vshl.u32.u32.u32.clamp", "w:ww", {0}, {1, 40}},
    {"vshl.u32.u32.u32.wrap", "w:ww", {0x100}, {1, 40}},
    {"vshl.u32.u32.u32.sat.clamp", "w:ww", {0xFFFFFFFF}, {1, 40}},
    {"vshl.s32.s32.u32.sat.clamp", "w:ww", {0x80000000}, {0xFFFFFFFF, 33}},
    /* 34 bits are kept, the uppermost as the sign */
    {"vshl.s32.s32.u32.sat.clamp", "w:ww", {0x7FFFFFFF}, {0x40000000, 2}},
    {"vshl.s32.s32.u32.sat.clamp", "w:ww", {0x80000000}, {0x40000000, 3}},
    {"vshl.s32.s32.u32.sat.clamp", "w:ww", {0}, {0x40000000, 4}},
    {"vshl.u32.u32.u32.sat.clamp", "w:ww", {0}, {3, 32}},
    {"vshr.s32.s32.u32.clamp", "w:ww", {0xFFFFFFFF}, {0x80000000, 99}},
    {"vshr.u32.u32.u32.wrap.B:b0", "w:ww", {0x40000000}, {0x80000000, 0xFF21}},
    {"vshr.u32.u32.u32.clamp.add", "w:www", {9}, {0x80, 4, 1}},
    {"vmad.u32.u32.u32", "w:www", {7}, {2, 3, 1}},
    {"vmad.s32.s32.u32.sat", "w:www", {0x80000000}, {0x80000000, 3, 1}},
    {"vmad.u32.u32.u32.sat", "w:www", {0xFFFFFFFF}, {0x80000000, 3, 1}},
    {"vmad.u32.u32.u32.po", "w:www", {8}, {2, 3, 1}},
    {"vmad.u32.u32.u32.po.shr7", "w:www", {1}, {127, 1, 0}},
    {"vmad.s32.s32.s32.shr15", "w:www", {0xFFFFFFFF}, {0xFFFFFFFF, 1, 0}},
    {"vmad.s32.u32.u32.N:a", "w:www", {0xFFFFFFFB}, {2, 3, 1}},
    {"vmad.s32.u32.u32.N:c", "w:www", {5}, {2, 3, 1}},
    {"vmad.s32.s32.u32.A:h1.B:b3", "w:www", {0xFFFFFFFD}, {0xFFFF0000, 0x04000000, 1}},
    {"vset.u32.u32.lt", "w:ww", {1}, {1, 2}},
    {"vset.s32.u32.lt", "w:ww", {1}, {0xFFFFFFFF, 0}},
    {"vset.u32.u32.ne.add", "w:www", {6}, {1, 2, 5}},
    {"vset.u32.u32.ge.D:b1", "w:www", {0xFFFF00FF}, {1, 2, 0xFFFFFFFF}},
    {"vadd2.u32.u32.u32", "w:www", {0x00030003}, {0x00010002, 0x00020001, 0}},
    {"vadd2.s32.s32.s32.sat", "w:www", {0x7FFF8000}, {0x7FFF8000, 0x0001FFFF, 0}},
    {"vsub2.s32.s32.s32.sat.D:h0", "w:www", {0x12340001}, {0x00010003, 0x00010002, 0x12345678}},
    {"vadd2.u32.u32.u32.A:h00.B:h22", "w:www", {0x00030003}, {0x00990001, 0x00990002, 0}},
    {"vmin2.s32.u32.u32.add.D:h10.A:h00.B:h22", "w:www", {12}, {0x00990001, 0x00990002, 10}},
    {"vavrg2.u32.u32.u32", "w:www", {0x00020002}, {0x00010002, 0x00020001, 0}},
    {"vavrg2.s32.s32.s32", "w:www", {0x0000FFFE}, {0xFFFFFFFE, 0x0001FFFF, 0}},
    {"vabsdiff2.u32.s32.s32.add", "w:www", {13}, {0xFFFF0001, 0x00010002, 10}},
    {"vmax2.s32.s32.s32", "w:www", {0x00010002}, {0xFFFF0002, 0x0001FFFF, 0}},
    {"vset2.u32.u32.lt", "w:www", {0x00000001}, {0x00020001, 0x00010002, 0}},
    {"vset2.s32.s32.lt.add", "w:www", {11}, {0x00020001, 0x00010002, 10}},
    {"vadd4.u32.u32.u32", "w:www", {0x05050505}, {0x01020304, 0x04030201, 0}},
    {"vadd4.u32.u32.u32.sat", "w:www", {0xFF000002}, {0xFF000001, 0x01000001, 0}},
    {"vsub4.s32.s32.s32.sat.D:b20", "w:www", {0xAA80CC7F}, {0x0080007F, 0x000100FF, 0xAABBCCDD}},
    {"vadd4.u32.u32.u32.A:b7610.B:b0000", "w:www", {0x15142200}, {0x44332200, 0x15140000, 0}},
    {"vavrg4.s32.s32.s32", "w:www", {0x000000FE}, {0xFFFFFFFF, 0x010101FE, 0}},
    {"vabsdiff4.u32.u32.u32.add", "w:www", {10}, {0x01020304, 0x04030201, 2}},
    {"vmin4.u32.u32.u32", "w:www", {0x01020201}, {0x01020304, 0x04030201, 0}},
    {"vmax4.s32.s32.s32", "w:www", {0x01020304}, {0x010203FF, 0xFFFFFF04, 0}},
    {"vset4.u32.u32.gt", "w:www", {0x00000101}, {0x01020304, 0x04030201, 0}},
    {"vset4.s32.s32.ne.add.D:b10", "w:www", {2}, {0x01020304, 0x04030201, 0}},
};
/* clang-format on */

TEST_CASE(LanesHalf, ValuesFromTheIsa)
{
    ROWS(halves);
}

TEST_CASE(LanesApprox, SpecialValues)
{
    ROWS(functions);
}

TEST_CASE(LanesVideo, ValuesFromTheIsa)
{
    ROWS(video);
}

/* ---- the functions, against long double over many arguments ---- */

static long double reciprocal_root(long double x)
{
    return 1 / sqrtl(x);
}

static const struct {
    const char *name;
    long double (*f)(long double);
} exact[] = {{"sin", sinl},  {"cos", cosl},   {"lg2", log2l},
             {"ex2", exp2l}, {"tanh", tanhl}, {"rsqrt", reciprocal_root}};

TEST_ROWS(LanesApprox, RoundsCorrectly, exact)
{
    char mnemonic[24];
    snprintf(mnemonic, sizeof mnemonic, "%s.approx.f32", exact[index].name);
    lanes_inst li;
    REQUIRE(lanes_make(&li, mnemonic, "w:w"));
    CHECK(lanes_find(&li.inst, LANES_BASELINE).inexact);
    uint64_t seed = 60 + (uint64_t)index;
    for (int round = 0; round < 400; round++) {
        uint32_t in[WARP];
        for (int lane = 0; lane < WARP; lane++) {
            in[lane] = (uint32_t)lanes_random_float(&seed, 32);
            lanes_put(li.s[0], 'w', lane, in[lane]);
        }
        REQUIRE(lanes_execute(&li, lanes_best_level()));
        for (int lane = 0; lane < WARP; lane++) {
            float x;
            memcpy(&x, &in[lane], 4);
            const float y = (float)exact[index].f(x);
            uint32_t want;
            memcpy(&want, &y, 4);
            CHECK_EQ_U32((uint32_t)lanes_get(li.d[0], 'w', lane), y != y ? 0x7FFFFFFF : want);
        }
    }
}

/* Those of f16 and bf16, over every input. */
static const char *const short_functions[] = {"ex2.approx.f16", "tanh.approx.f16", "ex2.approx.ftz.bf16",
                                              "tanh.approx.bf16"};

static int short_count(void)
{
    return 4;
}

static void short_name(int index, char *text, size_t size)
{
    static const char *const names[] = {"ex2_f16", "tanh_f16", "ex2_bf16", "tanh_bf16"};
    snprintf(text, size, "%s", names[index]);
}

static long double short_value(int index, uint32_t h)
{
    const int mantissa = index < 2 ? 10 : 7, bias = index < 2 ? 15 : 127, top = index < 2 ? 31 : 255;
    const int exponent = (int)(h >> mantissa) & top;
    const long double m = h & ((1u << mantissa) - 1), sign = h & 0x8000 ? -1 : 1;
    if (exponent == top)
        return m != 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpl(m + (1u << mantissa), exponent - bias - mantissa)
                            : ldexpl(m, 1 - bias - mantissa));
}

/* A result is right if the exact value lies between the middles to its neighbours. */
static bool is_nearest(int index, uint32_t got, long double y)
{
    if (isnan(y))
        return got == 0x7FFF;
    const long double here = short_value(index, got & 0x7FFF), up = short_value(index, (got & 0x7FFF) + 1);
    const long double down = got & 0x7FFF ? short_value(index, (got & 0x7FFF) - 1) : 0;
    if (isinf(here))
        return fabsl(y) >= (index < 2 ? 65520.0L : ldexpl(511, 119));
    return fabsl(y) >= (down + here) / 2 && fabsl(y) <= (here + up) / 2 && !signbit(y) == !(got >> 15);
}

TEST_EACH(LanesApprox, ShortFormatsOverEveryInput, short_count, short_name)
{
    lanes_inst li;
    REQUIRE(lanes_make(&li, short_functions[index], "h:h"));
    for (uint32_t first = 0; first < 65536; first += WARP) {
        for (int lane = 0; lane < WARP; lane++)
            lanes_put(li.s[0], 'h', lane, first + (uint32_t)lane);
        REQUIRE(lanes_execute(&li, LANES_BASELINE));
        for (int lane = 0; lane < WARP; lane++) {
            const long double x = short_value(index, first + (uint32_t)lane);
            long double y = index % 2 ? tanhl(x) : exp2l(x);
            if (index == 2 && fabsl(y) < 0x1p-126L)
                y = 0;
            const uint32_t got = (uint32_t)lanes_get(li.d[0], 'h', lane);
            if (!is_nearest(index, got, y))
                FAIL("%04x gives %04x, not %Lg", first + (uint32_t)lane, got, y);
        }
    }
}
