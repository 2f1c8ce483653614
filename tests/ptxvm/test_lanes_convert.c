/* cvt between integers and f32, f64 in every rounding mode, against plain C; the other conversions against
 * values worked out from the ISA. */
#include "test_lanes.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS(name) lanes_check_rows(name, (int)(sizeof name / sizeof *name))

static const char *const integers[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
static const char widths[] = "bbhhwwdd";
static const int bit_counts[] = {8, 8, 16, 16, 32, 32, 64, 64};

static const struct {
    const char *text, *integral;
    int mode;
} modes[] = {{"rn", "rni", FE_TONEAREST},
             {"rz", "rzi", FE_TOWARDZERO},
             {"rm", "rmi", FE_DOWNWARD},
             {"rp", "rpi", FE_UPWARD}};

static __int128 integer_value(int which, uint64_t bits)
{
    const uint64_t ones = bit_counts[which] == 64 ? UINT64_MAX : ((uint64_t)1 << bit_counts[which]) - 1;
    const __int128 x = bits & ones;
    return which % 2 && x >> (bit_counts[which] - 1) ? x - ((__int128)1 << bit_counts[which]) : x;
}

static uint64_t random_integer(uint64_t *seed)
{
    const uint64_t r = lanes_random(seed);
    const int shift = (int)(r >> 58);
    const uint64_t edge = ((uint64_t)1 << shift) + lanes_random(seed) % 5 - 2;
    return r & 1 ? lanes_random(seed) >> shift : r & 2 ? edge : 0 - edge;
}

/* ---- integers among themselves ---- */

static int pair_count(void)
{
    return 64 * 2;
}

static void pair_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s%s", integers[index / 16], integers[index / 2 % 8], index % 2 ? "_sat" : "");
}

static uint64_t converted(int to, __int128 x, bool sat)
{
    const int bits = bit_counts[to];
    const __int128 low = to % 2 ? -((__int128)1 << (bits - 1)) : 0,
                   high = ((__int128)1 << (bits - to % 2)) - 1;
    if (sat)
        x = x < low ? low : x > high ? high : x;
    return (uint64_t)x & (bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1);
}

TEST_EACH(LanesConvert, IntegerToInteger, pair_count, pair_name)
{
    const int to = index / 16, from = index / 2 % 8;
    char mnemonic[32], shape[4] = {widths[to], ':', widths[from], 0};
    snprintf(mnemonic, sizeof mnemonic, "cvt%s.%s.%s", index % 2 ? ".sat" : "", integers[to], integers[from]);
    uint64_t seed = (uint64_t)index;
    lanes_inst li;
    REQUIRE(lanes_make(&li, mnemonic, shape));
    for (int round = 0; round < 8; round++)
        for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
            uint64_t in[WARP];
            for (int lane = 0; lane < WARP; lane++)
                lanes_put(li.s[0], shape[2], lane, in[lane] = random_integer(&seed));
            REQUIRE(lanes_execute(&li, level));
            for (int lane = 0; lane < WARP; lane++)
                CHECK_EQ_U64(lanes_get(li.d[0], shape[0], lane),
                             converted(to, integer_value(from, in[lane]), index % 2));
        }
}

/* ---- integer to f32 and f64 ---- */

static int real_count(void)
{
    return 8 * 2 * 4;
}

static void real_name(int index, char *text, size_t size)
{
    snprintf(text, size, "f%d_%s_%s", index % 2 ? 64 : 32, modes[index / 2 % 4].text, integers[index / 8]);
}

/* One lane at a time, from 64-bit integers: no vector code, one rounding by the processor. */
static uint64_t real_of(bool wide, bool is_signed, volatile uint64_t bits, int mode)
{
    if (!bits) /* clang's code for unsigned numbers makes -0 of it when rounding down */
        return 0;
    uint64_t u = 0;
    fesetround(mode);
    if (wide) {
        volatile double x = is_signed ? (double)(int64_t)bits : (double)bits;
        double y = x;
        memcpy(&u, &y, 8);
    } else {
        volatile float x = is_signed ? (float)(int64_t)bits : (float)bits;
        float y = x;
        memcpy(&u, &y, 4);
    }
    fesetround(FE_TONEAREST);
    return u;
}

TEST_EACH(LanesConvert, IntegerToReal, real_count, real_name)
{
    const int from = index / 8, mode = index / 2 % 4;
    const bool wide = index % 2;
    char mnemonic[32], shape[4] = {wide ? 'd' : 'w', ':', widths[from], 0};
    snprintf(mnemonic, sizeof mnemonic, "cvt.%s.%s.%s", modes[mode].text, wide ? "f64" : "f32",
             integers[from]);
    uint64_t seed = 40 + (uint64_t)index;
    lanes_inst li;
    REQUIRE(lanes_make(&li, mnemonic, shape));
    for (int round = 0; round < 30; round++)
        for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
            uint64_t in[WARP];
            for (int lane = 0; lane < WARP; lane++)
                lanes_put(li.s[0], shape[2], lane, in[lane] = lane ? random_integer(&seed) : 0);
            REQUIRE(lanes_execute(&li, level));
            for (int lane = 0; lane < WARP; lane++)
                CHECK_EQ_U64(
                    lanes_get(li.d[0], shape[0], lane),
                    real_of(wide, from % 2, (uint64_t)integer_value(from, in[lane]), modes[mode].mode));
        }
}

/* ---- f32, f64, f16, bf16 to integer ---- */

static const char *const reals[] = {"f32", "f64", "f16", "bf16"};
static const char real_widths[] = "wdhh";

static int whole_count(void)
{
    return 4 * 4 * 8;
}

static void whole_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_%s", integers[index % 8], modes[index / 8 % 4].integral, reals[index / 32]);
}

static long double real_value(int which, uint64_t bits)
{
    double d;
    float f;
    uint32_t u = (uint32_t)bits;
    const uint32_t h = u & 0x7FFF, sign = u & 0x8000;
    switch (which) {
    case 0:
        memcpy(&f, &u, 4);
        return f;
    case 1:
        memcpy(&d, &bits, 8);
        return d;
    case 2:
        d = h > 0x7C00    ? (double)NAN
            : h == 0x7C00 ? (double)INFINITY
            : h < 0x400   ? ldexp(h, -24)
                          : ldexp(1024 + (h & 1023), (int)(h >> 10) - 25);
        return sign ? -d : d;
    default:
        u <<= 16;
        memcpy(&f, &u, 4);
        return f;
    }
}

static uint64_t whole_of(int from, int to, uint64_t bits, int mode)
{
    const long double x = real_value(from, bits);
    const int n = bit_counts[to];
    if (isnan(x))
        return from == 1 || n == 64 ? (uint64_t)1 << (n - 1) : 0;
    const long double r = mode == 0 ? rintl(x) : mode == 1 ? truncl(x) : mode == 2 ? floorl(x) : ceill(x);
    const long double low = to % 2 ? -ldexpl(1, n - 1) : 0, high = ldexpl(1, n - to % 2) - 1;
    const uint64_t ones = n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
    const long double clamped = r < low ? low : r > high ? high : r;
    return (clamped < 0 ? 0 - (uint64_t)-clamped : (uint64_t)clamped) & ones;
}

static uint64_t random_real(int which, uint64_t *seed)
{
    const uint64_t r = lanes_random(seed);
    float f = (float)(int64_t)(r >> (r & 63)) / (r & 64 ? 4.0f : 1.0f);
    double d = (double)(int64_t)(r >> (r & 63)) / (r & 64 ? 4.0 : 1.0);
    uint64_t u = 0;
    if (r >> 60 < 8)
        return lanes_random_float(seed, which == 0 ? 32 : which == 1 ? 64 : 16);
    if (which == 1)
        memcpy(&u, &d, 8);
    else
        memcpy(&u, &f, 4);
    return which == 3 ? u >> 16 : which == 2 ? r & 0xFFFF : u;
}

TEST_EACH(LanesConvert, RealToInteger, whole_count, whole_name)
{
    const int to = index % 8, mode = index / 8 % 4, from = index / 32;
    char mnemonic[32], shape[4] = {widths[to], ':', real_widths[from], 0};
    snprintf(mnemonic, sizeof mnemonic, "cvt.%s.%s.%s", modes[mode].integral, integers[to], reals[from]);
    uint64_t seed = 300 + (uint64_t)index;
    lanes_inst li;
    REQUIRE(lanes_make(&li, mnemonic, shape));
    for (int round = 0; round < 30; round++)
        for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
            uint64_t in[WARP];
            for (int lane = 0; lane < WARP; lane++)
                lanes_put(li.s[0], shape[2], lane, in[lane] = random_real(from, &seed));
            REQUIRE(lanes_execute(&li, level));
            for (int lane = 0; lane < WARP; lane++) {
                const uint64_t got = lanes_get(li.d[0], shape[0], lane),
                               want = whole_of(from, to, in[lane], mode);
                if (got != want)
                    FAIL("%llx gives %llx, not %llx", (unsigned long long)in[lane], (unsigned long long)got,
                         (unsigned long long)want);
            }
        }
}

/* clang-format off */
static const lanes_row rows[] = {
    {"cvt.f32.f32", "w:w", {0xFFC00001}, {0xFFC00001}},
    {"cvt.ftz.f32.f32", "w:w", {0x7FFFFFFF}, {0xFFC00001}},
    {"cvt.ftz.f32.bf16", "w:h", {0x7FFFFFFF}, {0x7FC0}},
    {"cvt.ftz.f32.f32", "w:w", {0x80000000}, {0x80000001}},
    {"cvt.sat.f32.f32", "w:w", {0x3F800000}, {0x40000000}},
    {"cvt.sat.f32.f32", "w:w", {0}, {0xBF800000}},
    {"cvt.sat.f32.f32", "w:w", {0}, {0x7FC00000}},
    {"cvt.rni.f32.f32", "w:w", {0x40000000}, {0x40200000}},
    {"cvt.rni.f32.f32", "w:w", {0x80000000}, {0xBF000000}},
    {"cvt.rmi.f32.f32", "w:w", {0xC0400000}, {0xC0200000}},
    {"cvt.rmi.f32.f32", "w:w", {0x00000000}, {0x3F000000}},
    {"cvt.rpi.f32.f32", "w:w", {0x3F800000}, {0x00000001}},
    {"cvt.rpi.ftz.f32.f32", "w:w", {0}, {0x00000001}},
    {"cvt.rzi.f32.f32", "w:w", {0x80000000}, {0xBF7FFFFF}},
    {"cvt.f64.f32", "d:w", {0x7FF8000020000000}, {0x7FC00001}},
    {"cvt.f64.f32", "d:w", {0xFFF8000020000000}, {0xFF800001}},
    {"cvt.rni.f64.f64", "d:d", {0xFFF8000000000012}, {0xFFF0000000000012}},
    {"cvt.sat.f64.f32", "d:w", {0}, {0x7FC00001}},
    {"cvt.rzi.f64.f64", "d:d", {0xC000000000000000}, {0xC004000000000000}},
    {"cvt.rni.f64.f64", "d:d", {0x4330000000000001}, {0x4330000000000001}},
    {"cvt.rn.f32.f64", "w:d", {0x7F800000}, {0x47EFFFFFF0000000}},
    {"cvt.rz.f32.f64", "w:d", {0x7F7FFFFF}, {0x47EFFFFFF0000000}},
    {"cvt.rp.f32.f64", "w:d", {0x00000001}, {0x0000000000000001}},
    {"cvt.rp.ftz.f32.f64", "w:d", {0x00000000}, {0x0000000000000001}},
    {"cvt.f64.f32", "d:w", {0x36A0000000000000}, {0x00000001}},
    {"cvt.ftz.f64.f32", "d:w", {0x8000000000000000}, {0x80000001}},
    {"cvt.sat.f64.f32", "d:w", {0x3FF0000000000000}, {0x7F800000}},
    {"cvt.rpi.s32.f32", "w:w", {1}, {0x00000001}},
    {"cvt.rpi.ftz.s32.f32", "w:w", {0}, {0x00000001}},
    {"cvt.rn.sat.f32.u32", "w:w", {0x3F800000}, {7}},
    {"cvt.rn.sat.f32.s32", "w:w", {0}, {0xFFFFFFFF}},
    {"cvt.f16.f16", "h:h", {0x7FFF}, {0xFC01}},
    {"cvt.sat.f16.f16", "h:h", {0x3C00}, {0x4000}},
    {"cvt.rni.f16.f16", "h:h", {0x4000}, {0x4100}},
    {"cvt.rpi.f16.f16", "h:h", {0x3C00}, {0x0001}},
    {"cvt.rmi.bf16.bf16", "h:h", {0xC040}, {0xC020}},
    {"cvt.rn.sat.f16.f32", "h:w", {0x3C00}, {0x40000000}},
    {"cvt.rp.f16.f32", "h:w", {0x0001}, {0x00000001}},
    {"cvt.rp.ftz.f16.f32", "h:w", {0x0000}, {0x00000001}},
    {"cvt.rz.f16.f32", "h:w", {0x7BFF}, {0x7F7FFFFF}},
    {"cvt.rm.f16.f32", "h:w", {0xFC00}, {0xFF7FFFFF}},
    {"cvt.sat.f32.f16", "w:h", {0}, {0x7E00}},
    /* a goes to the upper half */
    {"cvt.rn.f16x2.f32", "w:ww", {0x3C004000}, {0x3F800000, 0x40000000}},
    {"cvt.rn.relu.bf16x2.f32", "w:ww", {0x00004000}, {0xBF800000, 0x40000000}},
    {"cvt.rn.satfinite.e4m3x2.f32", "h:ww", {0x7EFE}, {0x43E80000, 0xFF800000}},
    {"cvt.rn.satfinite.e5m2x2.f32", "h:ww", {0x7B7F}, {0x47700000, 0x7FC00000}},
    {"cvt.rn.satfinite.e2m1x2.f32", "b:ww", {0x72}, {0x7FC00000, 0x3F800000}},
    {"cvt.rn.satfinite.e2m3x2.f32", "h:ww", {0x1F08}, {0x41000000, 0x3F800000}},
    {"cvt.rn.satfinite.e3m2x2.f32", "h:ww", {0x3F0C}, {0xC2000000, 0x3F800000}},
    {"cvt.rn.satfinite.e4m3x2.f16x2", "h:w", {0x3840}, {0x3C004000}},
    {"cvt.rn.satfinite.relu.e5m2x2.f16x2", "h:w", {0x0040}, {0xBC004000}},
    {"cvt.rn.satfinite.e5m2x2.f16x2", "h:w", {0x7BFB}, {0x7BFFFC00}},
    {"cvt.rn.f16x2.e4m3x2", "w:h", {0x3C007FFF}, {0x387F}},
    {"cvt.rz.ue8m0x2.f32", "h:ww", {0x7F80}, {0x3FFFFFFF, 0x40400000}},
    {"cvt.rp.ue8m0x2.f32", "h:ww", {0x8081}, {0x3FFFFFFF, 0x40400000}},
    {"cvt.rp.ue8m0x2.f32", "h:ww", {0x0001}, {0x00400000, 0x00400001}},
    {"cvt.rz.ue8m0x2.f32", "h:ww", {0xFF80}, {0x7F800000, 0xC0000000}},
    {"cvt.rp.satfinite.ue8m0x2.f32", "h:ww", {0xFEFF}, {0x7F7FFFFF, 0x7FC00000}},
    {"cvt.rp.satfinite.ue8m0x2.bf16x2", "h:w", {0xFE80}, {0x7F803F81}},
    {"cvt.rn.bf16x2.ue8m0x2", "w:h", {0x7FFF0040}, {0xFF00}},
    {"cvt.rn.bf16x2.ue8m0x2", "w:h", {0x3F807F00}, {0x7FFE}},
    /* To bf16, exact: 448 and -2^-9; inf and NaN of e5m2; 28 and -0.0625; 7.5 and -0.125; 6 and -0.5. */
    {"cvt.rn.bf16x2.e4m3x2", "w:h", {0x43E0BB00}, {0x7E81}},
    {"cvt.rn.bf16x2.e4m3x2", "w:h", {0x7FFF8000}, {0xFF80}},
    {"cvt.rn.bf16x2.e5m2x2", "w:h", {0x7F807FFF}, {0x7C7F}},
    {"cvt.rn.bf16x2.e5m2x2", "w:h", {0xFF803780}, {0xFC01}},
    {"cvt.rn.satfinite.bf16x2.e5m2x2", "w:h", {0x7F7FFF7F}, {0x7CFC}},
    {"cvt.rn.relu.bf16x2.e5m2x2", "w:h", {0x7F800000}, {0x7CFC}},
    {"cvt.rn.bf16x2.e3m2x2", "w:h", {0x41E0BD80}, {0x1F21}},
    {"cvt.rn.bf16x2.e2m3x2", "w:h", {0x40F0BE00}, {0x1F21}},
    {"cvt.rn.bf16x2.e2m1x2", "w:b", {0x40C0BF00}, {0x79}},
    {"cvt.rn.relu.bf16x2.e2m1x2", "w:b", {0x40C00000}, {0x79}},
    /* 127/64, -2; 1/64, -1/64. */
    {"cvt.rn.bf16x2.s2f6x2", "w:h", {0x3FFEC000}, {0x7F80}},
    {"cvt.rn.relu.bf16x2.s2f6x2", "w:h", {0x3C800000}, {0x01FF}},
    /* Times 2^6: integers; each half by its own power; overflow, subnormal results with one rounding, NaN. */
    {"cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.s2f6x2", "w:hh", {0x42FEC300}, {0x7F80, 0x8585}},
    {"cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2", "w:hh", {0x40003F00}, {0x3838, 0x807E}},
    {"cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2", "w:hh", {0x7F80FF80}, {0x7EFE, 0xFEFE}},
    {"cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.e4m3x2", "w:hh", {0x7F7FFF7F}, {0x7EFE, 0xFEFE}},
    {"cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2", "w:hh", {0x7FFF0000}, {0x3801, 0xFF00}},
    {"cvt.rn.scaled::n2::ue8m0.bf16x2.e5m2x2", "w:hh", {0x00408040}, {0x3CBC, 0x0000}},
    {"cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2", "w:hh", {0x00020001}, {0x0201, 0x0000}},
    {"cvt.rn.scaled::n2::ue8m0.bf16x2.e5m2x2", "w:hh", {0x00020001}, {0x2625, 0x0000}},
    {"cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2", "w:hh", {0x003F8080}, {0x3F80, 0x0000}},
    {"cvt.rn.relu.scaled::n2::ue8m0.bf16x2.e2m1x2", "w:bh", {0x41400000}, {0x7F, 0x8080}},
    /* From bf16 and f16. */
    {"cvt.rn.satfinite.e4m3x2.bf16x2", "h:w", {0x7EBA}, {0x43E8BFA0}},
    {"cvt.rn.satfinite.relu.e5m2x2.bf16x2", "h:w", {0x3C00}, {0x3F80BF80}},
    {"cvt.rn.satfinite.e2m1x2.bf16x2", "b:w", {0x7A}, {0x4200BF80}},
    {"cvt.rn.satfinite.e2m3x2.f16x2", "h:w", {0x1F28}, {0x7C00BC00}},
    {"cvt.rn.satfinite.e3m2x2.f16x2", "h:w", {0x1F2C}, {0x7BFFBC00}},
    {"cvt.rn.satfinite.e3m2x2.bf16x2", "h:w", {0x1F2C}, {0x7F80BF80}},
    {"cvt.rna.tf32.f32", "w:w", {0x3F802000}, {0x3F801000}},
    {"cvt.rn.tf32.f32", "w:w", {0x3F800000}, {0x3F801000}},
    {"cvt.rn.relu.tf32.f32", "w:w", {0}, {0xBF800000}},
    {"cvt.rna.satfinite.tf32.f32", "w:w", {0x7F7FE000}, {0x7F800000}},
    /* Stochastic: up where the random bits and the discarded bits carry. f16: 13 of each. */
    {"cvt.rs.f16x2.f32", "w:www", {0x3C003C01}, {0x3F800001, 0x3F800001, 0x1FFE1FFF}},
    {"cvt.rs.f16x2.f32", "w:www", {0x3C003C00}, {0x3F800000, 0x3F800000, 0xFFFFFFFF}},
    {"cvt.rs.f16x2.f32", "w:www", {0x3C013C00}, {0x3F801000, 0x3F801000, 0x10000FFF}},
    {"cvt.rs.relu.f16x2.f32", "w:www", {0x00003C00}, {0xBF801000, 0x3F801000, 0x10000FFF}},
    {"cvt.rs.bf16x2.f32", "w:www", {0x3F813F80}, {0x3F808000, 0x3F808000, 0x80007FFF}},
    {"cvt.rs.satfinite.bf16x2.f32", "w:www", {0x7F7F7F7F}, {0x7F7FFFFF, 0x7F7FFFFF, 0xFFFF0000}},
    {"cvt.rs.satfinite.e4m3x4.f32", "w:wwwww", {0x39393838},
     {0x3F880000, 0x3F880000, 0x3F880000, 0x3F880000, 0x80007FFF}},
    {"cvt.rs.satfinite.e4m3x4.f32", "w:wwwww", {0x7EFE387F},
     {0x7F800000, 0xFF800000, 0x3F800000, 0x7FC00000, 0}},
    {"cvt.rs.satfinite.relu.e5m2x4.f32", "w:wwwww", {0x3D003C3C},
     {0x3F900000, 0xBF900000, 0x3F900000, 0x3F800000, 0x80007FFF}},
    {"cvt.rs.satfinite.e3m2x4.f32", "w:wwwww", {0x0D2D0C0C},
     {0x3F900000, 0xBF900000, 0x3F900000, 0x3F800000, 0x80007FFF}},
    {"cvt.rs.satfinite.e2m3x4.f32", "w:wwwww", {0x09290808},
     {0x3F880000, 0xBF880000, 0x3F880000, 0x3F800000, 0x80007FFF}},
    {"cvt.rs.satfinite.e2m1x4.f32", "h:wwwww", {0x3322},
     {0x3FA00000, 0x3FA00000, 0x3F800000, 0x3FA00000, 0x80000000}},
    {"cvt.pack.sat.u16.s32", "w:ww", {0xFFFF0000}, {0x7FFFFFFF, 0xFFFFFFFF}},
    {"cvt.pack.sat.s16.s32", "w:ww", {0x7FFF8000}, {0x7FFFFFFF, 0x80000000}},
    {"cvt.pack.sat.u8.s32.b32", "w:www", {0x5678FF00}, {300, 0xFFFFFFFF, 0x12345678}},
    {"cvt.pack.sat.s8.s32.b32", "w:www", {0x56787F80}, {300, 0xFFFFFF00, 0x12345678}},
    {"cvt.pack.sat.u4.s32.b32", "w:www", {0x345678F3}, {16, 3, 0x12345678}},
    {"cvt.pack.sat.s4.s32.b32", "w:www", {0x3456787F}, {9, 0xFFFFFFFF, 0x12345678}},
    {"cvt.pack.sat.u2.s32.b32", "w:www", {0x2345678D}, {3, 1, 0x12345678}},
    {"cvt.pack.sat.s2.s32.b32", "w:www", {0x23456786}, {1, 0xFFFFFFF0, 0x12345678}},
};
/* clang-format on */

TEST_CASE(LanesConvert, ValuesFromTheIsa)
{
    ROWS(rows);
}
