/* f32 and f64: the basic operations against the C compiler's arithmetic in all four rounding modes, the rest
 * against values worked out from the PTX ISA. */
#include "test_lanes.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS(name) lanes_check_rows(name, (int)(sizeof name / sizeof *name))

static const struct {
    const char *text;
    int mode;
} modes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

static uint32_t bits32(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return x != x ? 0x7FFFFFFF : u;
}

static float float32(uint64_t bits)
{
    uint32_t u = (uint32_t)bits;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static uint64_t bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static double float64(uint64_t u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

/* The same operation as the C compiler does it. The operands are volatile: it must happen at run time, in the
 * mode of the moment. */
#define C_OPS(X) X(add, 2, a + b) X(sub, 2, a - b) X(mul, 2, a *b) X(div, 2, a / b) X(rcp, 1, 1 / a)
#define DEFINE(name, n, e)                                                                                   \
    static float c_##name##_f32(volatile float a, volatile float b, volatile float c)                        \
    {                                                                                                        \
        (void)b, (void)c;                                                                                    \
        return e;                                                                                            \
    }                                                                                                        \
    static double c_##name##_f64(volatile double a, volatile double b, volatile double c)                    \
    {                                                                                                        \
        (void)b, (void)c;                                                                                    \
        return e;                                                                                            \
    }
C_OPS(DEFINE)
static float c_fma_f32(volatile float a, volatile float b, volatile float c)
{
    return fmaf(a, b, c);
}
static double c_fma_f64(volatile double a, volatile double b, volatile double c)
{
    return fma(a, b, c);
}
static float c_sqrt_f32(volatile float a, volatile float b, volatile float c)
{
    (void)b, (void)c;
    return sqrtf(a);
}
static double c_sqrt_f64(volatile double a, volatile double b, volatile double c)
{
    (void)b, (void)c;
    return sqrt(a);
}

static const struct {
    const char *name;
    int n_sources;
    float (*f32)(volatile float, volatile float, volatile float);
    double (*f64)(volatile double, volatile double, volatile double);
} ops[] = {
#define ROW(name, n, e) {#name, n, c_##name##_f32, c_##name##_f64},
    C_OPS(ROW){"fma", 3, c_fma_f32, c_fma_f64},
    {"sqrt", 1, c_sqrt_f32, c_sqrt_f64},
};
enum { N_OPS = sizeof ops / sizeof *ops, ROUNDS = 60 };

static int case_count(void)
{
    return N_OPS * 4 * 3;
}

/* index: operation, mode, and f32, f32.ftz or f64 */
static void case_name(int index, char *text, size_t size)
{
    static const char *const kinds[] = {"f32", "ftz_f32", "f64"};
    snprintf(text, size, "%s_%s_%s", ops[index / 12].name, modes[index / 3 % 4].text, kinds[index % 3]);
}

static float flushed(float x, bool ftz)
{
    return ftz && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* A NaN is that of the first source that is one, made quiet. */
static uint64_t expected_f64(int op, const uint64_t *in)
{
    const double y = ops[op].f64(float64(in[0]), float64(in[1]), float64(in[2]));
    for (int k = 0; k < ops[op].n_sources; k++)
        if (isnan(float64(in[k])))
            return in[k] | 0x0008000000000000;
    return isnan(y) ? 0xFFF8000000000000 : bits64(y);
}

static uint64_t expected(int index, const uint64_t *in)
{
    const int op = index / 12, kind = index % 3;
    if (kind == 2)
        return expected_f64(op, in);
    const bool ftz = kind == 1;
    return bits32(flushed(
        ops[op].f32(flushed(float32(in[0]), ftz), flushed(float32(in[1]), ftz), flushed(float32(in[2]), ftz)),
        ftz));
}

static void check_round(int index, lanes_inst *li, lanes_level level, uint64_t *seed)
{
    const bool wide = index % 3 == 2;
    uint64_t in[WARP][3];
    for (int lane = 0; lane < WARP; lane++)
        for (int k = 0; k < 3; k++) {
            in[lane][k] = lanes_random_float(seed, wide ? 64 : 32);
            if (k < li->n_sources)
                lanes_put(li->s[k], li->source[k], lane, in[lane][k]);
        }
    if (!lanes_execute(li, level))
        return;
    for (int lane = 0; lane < WARP; lane++) {
        fesetround(modes[index / 3 % 4].mode);
        uint64_t want = expected(index, in[lane]);
        fesetround(FE_TONEAREST);
        uint64_t got = lanes_get(li->d[0], li->result[0], lane);
        if (got != want)
            FAIL("%llx, %llx, %llx gives %llx, not %llx", (unsigned long long)in[lane][0],
                 (unsigned long long)in[lane][1], (unsigned long long)in[lane][2], (unsigned long long)got,
                 (unsigned long long)want);
    }
}

TEST_EACH(LanesReal, AsTheCompilerDoesIt, case_count, case_name)
{
    static const char *const shapes[2][3] = {{"w:w", "w:ww", "w:www"}, {"d:d", "d:dd", "d:ddd"}};
    const int op = index / 12, kind = index % 3;
    char mnemonic[40];
    snprintf(mnemonic, sizeof mnemonic, "%s.%s%s.%s", ops[op].name, modes[index / 3 % 4].text,
             kind == 1 ? ".ftz" : "", kind == 2 ? "f64" : "f32");
    uint64_t seed = 1000 + (uint64_t)index;
    for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
        lanes_inst li;
        REQUIRE(lanes_make(&li, mnemonic, shapes[kind == 2][ops[op].n_sources - 1]));
        for (int round = 0; round < ROUNDS; round++)
            check_round(index, &li, level, &seed);
    }
}

/* clang-format off */
static const lanes_row real_rows[] = {
    {"add.f32", "w:ww", {0x7FFFFFFF}, {0x7F800000, 0xFF800000}},
    {"add.f32", "w:ww", {0x7FFFFFFF}, {0x7F800001, 0x3F800000}},
    {"add.rm.f32", "w:ww", {0x80000000}, {0x3F800000, 0xBF800000}},
    {"add.sat.f32", "w:ww", {0x3F800000}, {0x3F800000, 0x3F800000}},
    {"add.sat.f32", "w:ww", {0}, {0xBF800000, 0}},
    {"add.sat.f32", "w:ww", {0}, {0x7FC00000, 0}},
    {"add.sat.f32", "w:ww", {0}, {0x80000000, 0x80000000}},
    {"add.ftz.f32", "w:ww", {0x80000000}, {0x80000001, 0x80000001}},
    {"mul.rn.ftz.sat.f32", "w:ww", {0}, {0x00800000, 0x3F000000}},
    {"mul.f64", "d:dd", {0xFFF8000000000000}, {0x7FF0000000000000, 0}},
    {"add.f64", "d:dd", {0x7FF8000000000012}, {0x3FF0000000000000, 0x7FF0000000000012}},
    {"add.f64", "d:dd", {0xFFF8000000000034}, {0xFFF8000000000034, 0x7FF0000000000012}},
    {"fma.rn.f64", "d:ddd", {0x7FF8000000000056}, {0x7FF0000000000000, 0, 0x7FF8000000000056}},
    {"sqrt.rn.f64", "d:d", {0xFFF8000000000000}, {0xBFF0000000000000}},
    {"rsqrt.approx.f64", "d:d", {0x7FF8000000000012}, {0x7FF8000000000012}},
    {"rcp.approx.ftz.f64", "d:d", {0x7FFFFFFF00000000}, {0x7FF8000000000012}},
    {"fma.rn.sat.f32", "w:www", {0x3F000000}, {0x3F000000, 0x3F800000, 0}},
    {"mad.rn.f32", "w:www", {0x40400000}, {0x3F800000, 0x40000000, 0x3F800000}},
    {"add.rn.f32x2", "d:dd", {0x4040000040000000}, {0x400000003F800000, 0x3F8000003F800000}},
    {"sub.rz.ftz.f32x2", "d:dd", {0x000000003F800000}, {0x0000000140000000, 0x000000003F800000}},
    {"mul.f32x2", "d:dd", {0x7FFFFFFF40800000}, {0x7F80000040000000, 0x0000000040000000}},
    {"fma.rp.f32x2", "d:ddd", {0x4040000040A00000},
     {0x3F80000040000000, 0x4000000040000000, 0x3F8000003F800000}},
    {"add.rn.f32.f16", "w:hw", {0x40000000}, {0x3C00, 0x3F800000}},
    {"add.rz.sat.f32.bf16", "w:hw", {0x3F800000}, {0x3F80, 0x3F800000}},
    {"sub.rn.f32.bf16", "w:hw", {0xBF800000}, {0x3F80, 0x40000000}},
    {"sub.rn.f32.f16", "w:hw", {0x33800000}, {0x0001, 0}},
    {"fma.rn.f32.f16", "w:hhw", {0x40E00000}, {0x4000, 0x4200, 0x3F800000}},
    {"fma.rm.f32.bf16", "w:hhw", {0x40E00000}, {0x4000, 0x4040, 0x3F800000}},
    {"div.full.f32", "w:ww", {0x3EAAAAAB}, {0x3F800000, 0x40400000}},
    {"div.approx.ftz.f32", "w:ww", {0x7F800000}, {0x3F800000, 0x00000001}},
    /* Above 2^126 the reciprocal is 0: 1e38 / 2e38, -1e38 / 2e38, 2^127 / the next above 2^126; 2^126 itself is
       not above; inf / 2e38; .full and .rn are not affected. */
    {"div.approx.f32", "w:ww", {0}, {0x7E967699, 0x7F167699}},
    {"div.approx.f32", "w:ww", {0x80000000}, {0xFE967699, 0x7F167699}},
    {"div.approx.ftz.f32", "w:ww", {0}, {0x7F000000, 0x7E800001}},
    {"div.approx.f32", "w:ww", {0x40000000}, {0x7F000000, 0x7E800000}},
    {"div.approx.f32", "w:ww", {0x7FFFFFFF}, {0x7F800000, 0x7F167699}},
    {"div.approx.f32", "w:ww", {0}, {0x3F800000, 0x7F800000}},
    {"div.approx.f32", "w:ww", {0x3EAAAAAB}, {0x3F800000, 0x40400000}},
    {"div.full.f32", "w:ww", {0x3F000000}, {0x7E967699, 0x7F167699}},
    {"div.rn.f32", "w:ww", {0x3F000000}, {0x7E967699, 0x7F167699}},
    {"rcp.approx.f32", "w:w", {0xFF800000}, {0x80000000}},
    {"sqrt.approx.ftz.f32", "w:w", {0x80000000}, {0x80000000}},
    {"sqrt.rn.f32", "w:w", {0x7FFFFFFF}, {0xBF800000}},
    {"abs.f32", "w:w", {0x3F800000}, {0xBF800000}},
    {"abs.f32", "w:w", {0x7FFFFFFF}, {0xFF800001}},
    {"neg.f32", "w:w", {0x7FFFFFFF}, {0x7FC00000}},
    {"neg.ftz.f32", "w:w", {0x7FFFFFFF}, {0xFFC00001}},
    {"neg.f32", "w:w", {0x80000001}, {1}},
    {"copysign.f32", "w:ww", {0xFF800001}, {0x80000000, 0x7F800001}},
    {"neg.f64", "d:d", {0xFFF8000000000012}, {0x7FF8000000000012}},
    {"abs.ftz.f32", "w:w", {0}, {0x80000001}},
    {"neg.f32", "w:w", {0x80000000}, {0}},
    {"neg.ftz.f32", "w:w", {0x80000000}, {1}},
    {"neg.f64", "d:d", {0xBFF0000000000000}, {0x3FF0000000000000}},
    {"abs.f64", "d:d", {0x3FF0000000000000}, {0xBFF0000000000000}},
    {"copysign.f32", "w:ww", {0xBF800000}, {0x80000000, 0x3F800000}},
    {"copysign.f64", "d:dd", {0x3FF0000000000000}, {0, 0xBFF0000000000000}},
    {"min.f32", "w:ww", {0x80000000}, {0, 0x80000000}},
    {"min.f32", "w:ww", {0x80000000}, {0x80000000, 0}},
    {"max.f32", "w:ww", {0}, {0x80000000, 0}},
    {"min.f32", "w:ww", {0x3F800000}, {0x7FC00000, 0x3F800000}},
    {"max.f32", "w:ww", {0x3F800000}, {0x3F800000, 0x7FC00000}},
    {"max.f32", "w:ww", {0x7FFFFFFF}, {0xFFC00000, 0x7FC00000}},
    {"min.NaN.f32", "w:ww", {0x7FFFFFFF}, {0x7FC00000, 0x3F800000}},
    {"min.ftz.f32", "w:ww", {0}, {1, 0x3F800000}},
    {"max.ftz.NaN.f32", "w:ww", {0x3F800000}, {1, 0x3F800000}},
    {"min.xorsign.abs.f32", "w:ww", {0xBF800000}, {0xBF800000, 0x40000000}},
    {"max.xorsign.abs.f32", "w:ww", {0x40000000}, {0xBF800000, 0xC0000000}},
    {"min.NaN.xorsign.abs.f32", "w:ww", {0x7FFFFFFF}, {0xBF800000, 0x7FC00000}},
    {"min.xorsign.abs.f32", "w:ww", {0xBF800000}, {0xBF800000, 0x7FC00000}},
    {"min.f32", "w:www", {0xC0000000}, {0x3F800000, 0xC0000000, 0x40000000}},
    {"max.f32", "w:www", {0x40000000}, {0x7FC00000, 0xC0000000, 0x40000000}},
    {"max.NaN.f32", "w:www", {0x7FFFFFFF}, {0x3F800000, 0x7FC00000, 0x40000000}},
    {"min.abs.f32", "w:www", {0x3F800000}, {0x40000000, 0xBF800000, 0x40400000}},
    {"min.ftz.f32", "w:www", {0}, {0x00000001, 0x3F800000, 0x3F800000}},
    {"min.f64", "d:dd", {0x8000000000000000}, {0, 0x8000000000000000}},
    {"max.f64", "d:dd", {0x3FF0000000000000}, {0x7FF8000000000000, 0x3FF0000000000000}},
    {"max.f64", "d:dd", {0xFFF8000000000034}, {0x7FF8000000000012, 0xFFF0000000000034}},
    {"testp.finite.f32", "p:w", {1}, {0x7F7FFFFF}},
    {"testp.finite.f32", "p:w", {0}, {0xFF800000}},
    {"testp.infinite.f32", "p:w", {1}, {0xFF800000}},
    {"testp.number.f32", "p:w", {1}, {0xFF800000}},
    {"testp.number.f32", "p:w", {0}, {0xFF800001}},
    {"testp.notanumber.f64", "p:d", {1}, {0x7FF0000000000001}},
    {"testp.normal.f32", "p:w", {1}, {0x80800000}},
    {"testp.normal.f32", "p:w", {0}, {0x007FFFFF}},
    {"testp.normal.f32", "p:w", {1}, {0x80000000}}, /* zero is normal */
    {"testp.normal.f64", "p:d", {1}, {0}},
    {"testp.subnormal.f32", "p:w", {1}, {0x807FFFFF}},
    {"testp.subnormal.f32", "p:w", {0}, {0x80000000}},
    {"testp.subnormal.f64", "p:d", {1}, {1}},
    {"testp.normal.f64", "p:d", {0}, {0x7FF0000000000000}},
};
/* clang-format on */

TEST_CASE(LanesReal, SpecialValuesAndModifiers)
{
    ROWS(real_rows);
}
