/* The narrow floating-point formats, against a slow and independent model: a format is the sorted list of its
 * values, and rounding is a search in it, in long double, which holds every f64 and every 64-bit integer
 * exactly. */
#include "test_lanes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct model {
    const char *name;
    int exponent_bits, mantissa_bits, bias;
    uint32_t max, inf,
        nan;  /* codes without sign; inf: what lies beyond the range (the NaN of e4m3); nan of a NaN */
    int sign; /* place of the sign bit */
} model;

static const model models[] = {
    {"f16", 5, 10, 15, 0x7BFF, 0x7C00, 0x7FFF, 15},
    {"bf16", 8, 7, 127, 0x7F7F, 0x7F80, 0x7FFF, 15},
    {"tf32", 8, 10, 127, 0x3FBFF, 0x3FC00, 0x3FFFF, 18},
    {"e4m3", 4, 3, 7, 0x7E, 0x7F, 0x7F, 7},
    {"e5m2", 5, 2, 15, 0x7B, 0x7C, 0x7F, 7},
    {"e3m2", 3, 2, 3, 0x1F, 0x1F, 0x1F, 5},
    {"e2m3", 2, 3, 1, 0x1F, 0x1F, 0x1F, 5},
    {"e2m1", 2, 1, 1, 7, 7, 7, 3},
};
enum { F16, BF16, TF32, E4M3, E5M2, E3M2, E2M3, E2M1, N_MODELS };

static long double value_of(const model *m, uint32_t code)
{
    int exponent = (int)(code >> m->mantissa_bits);
    long double mantissa = code & ((1u << m->mantissa_bits) - 1);
    if (exponent == 0)
        return ldexpl(mantissa, 1 - m->bias - m->mantissa_bits);
    return ldexpl(mantissa + (1u << m->mantissa_bits), exponent - m->bias - m->mantissa_bits);
}

/* The largest code whose value is at most x >= 0. */
static uint32_t code_below(const model *m, long double x)
{
    uint32_t low = 0, high = m->max;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (value_of(m, middle) <= x)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* mode: "rn" "rz" "rm" "rp" "rna" */
static uint32_t model_round(const model *m, long double x, const char *mode, bool satfinite, bool relu)
{
    if (isnan(x))
        return m->nan;
    const bool negative = signbit(x);
    const long double magnitude = fabsl(x);
    uint32_t code = code_below(m, magnitude);
    const long double below = value_of(m, code), above = value_of(m, code) + value_of(m, code + 1) - below;
    const bool away = (mode[1] == 'm' && negative) || (mode[1] == 'p' && !negative), nearest = mode[1] == 'n';
    if (magnitude > below) {
        const long double middle = (below + above) / 2;
        const bool up =
            nearest ? magnitude > middle || (magnitude == middle && (mode[2] == 'a' || code & 1)) : away;
        code += up;
    }
    /* Beyond the largest number, the next code is the first that does not exist: it means overflow. */
    if (isinf(x))
        code = m->inf;
    if (code > m->max)
        code = satfinite ? m->max : m->inf;
    else if (satfinite && isinf(x))
        code = m->max;
    if (magnitude > value_of(m, m->max) && !satfinite && !isinf(x))
        code = away || (nearest && code > m->max) ? m->inf : m->max;
    if (satfinite && magnitude > value_of(m, m->max))
        code = m->max;
    return relu && negative ? 0 : code | (uint32_t)negative << m->sign;
}

static float f32_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

/* ---- rounding from f32: around every value, every tie, and at random ---- */

static const struct {
    int model;
    const char *mnemonic, *shape, *mode;
    bool satfinite, relu;
    int stride; /* of the codes that are tried */
} encodings[] = {
    {F16, "cvt.rn.f16.f32", "h:w", "rn", 0, 0, 13},
    {F16, "cvt.rz.f16.f32", "h:w", "rz", 0, 0, 31},
    {F16, "cvt.rm.f16.f32", "h:w", "rm", 0, 0, 31},
    {F16, "cvt.rp.f16.f32", "h:w", "rp", 0, 0, 31},
    {F16, "cvt.rn.relu.f16.f32", "h:w", "rn", 0, 1, 61},
    {F16, "cvt.rz.satfinite.f16.f32", "h:w", "rz", 1, 0, 61},
    {F16, "cvt.rn.relu.satfinite.f16.f32", "h:w", "rn", 1, 1, 61},
    {BF16, "cvt.rn.bf16.f32", "h:w", "rn", 0, 0, 13},
    {BF16, "cvt.rz.bf16.f32", "h:w", "rz", 0, 0, 31},
    {BF16, "cvt.rm.bf16.f32", "h:w", "rm", 0, 0, 31},
    {BF16, "cvt.rp.bf16.f32", "h:w", "rp", 0, 0, 31},
    {BF16, "cvt.rz.relu.satfinite.bf16.f32", "h:w", "rz", 1, 1, 61},
    {BF16, "cvt.rn.satfinite.bf16.f32", "h:w", "rn", 1, 0, 61},
    {TF32, "cvt.rna.tf32.f32", "w:w", "rna", 0, 0, 307},
    {TF32, "cvt.rn.tf32.f32", "w:w", "rn", 0, 0, 307},
    {TF32, "cvt.rz.relu.tf32.f32", "w:w", "rz", 0, 1, 307},
    {TF32, "cvt.rna.satfinite.tf32.f32", "w:w", "rna", 1, 0, 307},
    {E4M3, "cvt.rn.satfinite.e4m3x2.f32", "h:ww", "rn", 1, 0, 1},
    {E4M3, "cvt.rn.satfinite.relu.e4m3x2.f32", "h:ww", "rn", 1, 1, 1},
    {E5M2, "cvt.rn.satfinite.e5m2x2.f32", "h:ww", "rn", 1, 0, 1},
    {E5M2, "cvt.rn.satfinite.relu.e5m2x2.f32", "h:ww", "rn", 1, 1, 1},
    {E3M2, "cvt.rn.satfinite.e3m2x2.f32", "h:ww", "rn", 1, 0, 1},
    {E2M3, "cvt.rn.satfinite.e2m3x2.f32", "h:ww", "rn", 1, 0, 1},
    {E2M1, "cvt.rn.satfinite.e2m1x2.f32", "b:ww", "rn", 1, 0, 1},
    {E2M1, "cvt.rn.satfinite.relu.e2m1x2.f32", "b:ww", "rn", 1, 1, 1},
    {F16, "cvt.rn.f16x2.f32", "w:ww", "rn", 0, 0, 61},
    {F16, "cvt.rz.relu.satfinite.f16x2.f32", "w:ww", "rz", 1, 1, 61},
    {BF16, "cvt.rn.bf16x2.f32", "w:ww", "rn", 0, 0, 61},
    {BF16, "cvt.rz.bf16x2.f32", "w:ww", "rz", 0, 0, 61},
};

static int encoding_count(void)
{
    return (int)(sizeof encodings / sizeof *encodings);
}

static void encoding_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", encodings[index].mnemonic);
    for (char *c = text; *c; c++)
        if (*c == '.')
            *c = '_';
}

static uint64_t encoding_expected(int index, const uint32_t *in)
{
    const model *m = &models[encodings[index].model];
    uint32_t code[2];
    for (int k = 0; k < 2; k++)
        code[k] = model_round(m, f32_of(in[k]), encodings[index].mode, encodings[index].satfinite,
                              encodings[index].relu);
    if (encodings[index].model == TF32)
        return isnan(f32_of(in[0])) ? 0x7FFFFFFF : (uint64_t)code[0] << 13;
    const int n = (int)strlen(encodings[index].shape) - 2, shift = m->sign < 4 ? 4 : m->sign < 8 ? 8 : 16;
    return n == 2 ? code[0] << shift | code[1] : code[0];
}

static void encode_warp(int index, lanes_inst *li, const uint32_t in[WARP])
{
    for (int lane = 0; lane < WARP; lane++)
        for (int k = 0; k < li->n_sources; k++)
            lanes_put(li->s[k], 'w', lane, in[(lane + k) % WARP]);
    for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
        if (!lanes_execute(li, level))
            return;
        for (int lane = 0; lane < WARP; lane++) {
            const uint32_t two[2] = {in[lane], in[(lane + 1) % WARP]};
            const uint64_t got = lanes_get(li->d[0], li->result[0], lane),
                           want = encoding_expected(index, two);
            if (got != want)
                FAIL("%08x, %08x gives %llx, not %llx (level %d)", two[0], two[1], (unsigned long long)got,
                     (unsigned long long)want, (int)level);
        }
    }
}

TEST_EACH(LanesFormats, RoundsAsTheModelDoes, encoding_count, encoding_name)
{
    const model *m = &models[encodings[index].model];
    lanes_inst li;
    REQUIRE(lanes_make(&li, encodings[index].mnemonic, encodings[index].shape));
    uint32_t in[WARP];
    int n = 0;
    uint64_t seed = 77 + (uint64_t)index;
    for (uint32_t code = 0; code <= m->max; code += (uint32_t)encodings[index].stride) {
        const float here = (float)value_of(m, code);
        const float tie = (float)((value_of(m, code) + value_of(m, code + 1)) / 2);
        for (int k = -1; k <= 1; k++) {
            const uint32_t sign = (uint32_t)(lanes_random(&seed) & 1) << 31;
            in[n++] = (bits_of(here) + (here == 0 && k < 0 ? 0 : (uint32_t)k)) ^ sign;
            in[n++] = (bits_of(tie) + (uint32_t)k) ^ sign;
            in[n++] = (uint32_t)lanes_random_float(&seed, 32);
            if (n + 3 > WARP) {
                while (n < WARP)
                    in[n++] = (uint32_t)lanes_random(&seed);
                encode_warp(index, &li, in);
                n = 0;
            }
        }
    }
    /* The ends of the range, infinities, NaN. */
    static const uint32_t ends[8] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF,
                                     0x7F7FFFFF, 0xFF7FFFFF, 1,          0x80000001};
    for (n = 0; n < WARP; n++)
        in[n] = n < 8 ? ends[n]
                      : bits_of((float)value_of(m, m->max)) +
                            (uint32_t)(n - 16) * (1u << (22 - m->mantissa_bits)) / 4;
    encode_warp(index, &li, in);
}

/* ---- all codes widened ---- */

static const struct {
    int model;
    const char *mnemonic, *shape;
    int bits; /* of one code where it stands in a pair; 0: alone */
    bool relu;
} decodings[] = {
    {F16, "cvt.f32.f16", "w:h", 0, 0},
    {BF16, "cvt.f32.bf16", "w:h", 0, 0},
    {F16, "cvt.f64.f16", "d:h", 0, 0},
    {BF16, "cvt.f64.bf16", "d:h", 0, 0},
    {E4M3, "cvt.rn.f16x2.e4m3x2", "w:h", 8, 0},
    {E5M2, "cvt.rn.f16x2.e5m2x2", "w:h", 8, 0},
    {E3M2, "cvt.rn.f16x2.e3m2x2", "w:h", 8, 0},
    {E2M3, "cvt.rn.f16x2.e2m3x2", "w:h", 8, 0},
    {E2M1, "cvt.rn.f16x2.e2m1x2", "w:b", 4, 0},
    {E4M3, "cvt.rn.relu.f16x2.e4m3x2", "w:h", 8, 1},
    {E5M2, "cvt.rn.relu.f16x2.e5m2x2", "w:h", 8, 1},
};

static int decoding_count(void)
{
    return (int)(sizeof decodings / sizeof *decodings);
}

static void decoding_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", decodings[index].mnemonic);
    for (char *c = text; *c; c++)
        if (*c == '.')
            *c = '_';
}

static bool code_is_nan(int which, uint32_t magnitude)
{
    const model *m = &models[which];
    return which == E4M3 ? magnitude == 0x7F : which < E3M2 && magnitude > m->inf;
}

static long double decoded(int which, uint32_t code)
{
    const model *m = &models[which];
    const uint32_t magnitude = code & ((1u << m->sign) - 1);
    const bool infinite = which != E4M3 && which < E3M2 && magnitude == m->inf;
    const long double x = infinite ? INFINITY : value_of(m, magnitude);
    return code >> m->sign & 1 ? -x : x;
}

static uint32_t f16_of_code(int which, uint32_t code, bool relu)
{
    if (code_is_nan(which, code & ((1u << models[which].sign) - 1)))
        return 0x7FFF;
    return model_round(&models[F16], decoded(which, code), "rn", false, relu);
}

/* The sign and the payload stay, and the NaN is quiet. */
static uint64_t nan_f64(int which, uint32_t input)
{
    const int mantissa = which == F16 ? 10 : 7;
    const uint64_t fraction = input & ((1u << mantissa) - 1);
    return (uint64_t)(input & 0x8000) << 48 | 0x7FF8000000000000 | fraction << (52 - mantissa);
}

/* bf16 is shifted into place, whatever it is. */
static uint32_t nan_f32(int which, uint32_t input)
{
    return which == BF16 ? input << 16 : 0x7FFFFFFF;
}

static uint64_t decoding_expected(int index, uint32_t input)
{
    const int which = decodings[index].model, bits = decodings[index].bits;
    if (bits)
        return f16_of_code(which, input >> bits, decodings[index].relu) << 16 |
               f16_of_code(which, input & ((1u << bits) - 1), decodings[index].relu);
    const bool wide = decodings[index].shape[0] == 'd', nan = code_is_nan(which, input & 0x7FFF);
    double x = (double)decoded(which, input);
    uint64_t u;
    memcpy(&u, &x, 8);
    return wide ? (nan ? nan_f64(which, input) : u) : nan ? nan_f32(which, input) : bits_of((float)x);
}

TEST_EACH(LanesFormats, WidensEveryCode, decoding_count, decoding_name)
{
    lanes_inst li;
    REQUIRE(lanes_make(&li, decodings[index].mnemonic, decodings[index].shape));
    const uint32_t count = decodings[index].shape[2] == 'b' ? 256 : 65536;
    /* The two unused bits of each byte of an fp6 pair are zero. */
    const uint32_t used = decodings[index].model == E3M2 || decodings[index].model == E2M3 ? 0x3F3F : 0xFFFF;
    for (uint32_t first = 0; first < count; first += WARP) {
        for (int lane = 0; lane < WARP; lane++)
            lanes_put(li.s[0], li.source[0], lane, (first + (uint32_t)lane) & used);
        REQUIRE(lanes_execute(&li, lanes_best_level()));
        for (int lane = 0; lane < WARP; lane++) {
            const uint32_t in = (first + (uint32_t)lane) & used;
            const uint64_t got = lanes_get(li.d[0], li.result[0], lane), want = decoding_expected(index, in);
            if (got != want)
                FAIL("%x gives %llx, not %llx", in, (unsigned long long)got, (unsigned long long)want);
        }
    }
}

/* ---- from wider types than f32, and integers: one rounding ---- */

static const char *const wide_sources[] = {"f64", "u64", "s64", "u32",  "s32", "u16",
                                           "s16", "u8",  "s8",  "bf16", "f16"};
static const char *const wide_modes[] = {"rn", "rz", "rm", "rp"};
enum { N_WIDE = sizeof wide_sources / sizeof *wide_sources };

static int wide_count(void)
{
    return 2 * 4 * N_WIDE;
}

static void wide_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_%s", models[index % 2].name, wide_modes[index / 2 % 4],
             wide_sources[index / 8]);
}

static long double source_value(int which, uint64_t bits)
{
    double x;
    switch (which) {
    case 0:
        memcpy(&x, &bits, 8);
        return x;
    case 1:
        return bits;
    case 2:
        return (int64_t)bits;
    case 3:
        return (uint32_t)bits;
    case 4:
        return (int32_t)bits;
    case 5:
        return (uint16_t)bits;
    case 6:
        return (int16_t)bits;
    case 7:
        return (uint8_t)bits;
    case 8:
        return (int8_t)bits;
    default:
        if (code_is_nan(which == 9 ? BF16 : F16, bits & 0x7FFF))
            return NAN;
        return decoded(which == 9 ? BF16 : F16, (uint32_t)bits);
    }
}

/* Near a tie of the target, a bit beside it; or any bits. */
static uint64_t wide_random(int index, uint64_t *seed)
{
    const int which = index / 8;
    const model *m = &models[index % 2];
    uint64_t r = lanes_random(seed);
    if (which == 0) {
        double x = (double)value_of(m, (uint32_t)r % m->max) + 0;
        uint64_t u, half = (uint64_t)1 << (51 - m->mantissa_bits);
        memcpy(&u, &x, 8);
        u += half + lanes_random(seed) % 3 - 1;
        return r >> 60 == 0 ? lanes_random_float(seed, 64) : u | (r & (uint64_t)1 << 63);
    }
    if (which > 2 || r >> 62 == 0)
        return r;
    int top = 20 + (int)(r % 43);
    uint64_t u = (uint64_t)1 << top | (lanes_random(seed) & 7) << (top - 4) |
                 (uint64_t)1 << (top - m->mantissa_bits - 1);
    u += lanes_random(seed) % 3 - 1;
    return r & 64 ? 0 - u : u;
}

TEST_EACH(LanesFormats, RoundsWiderTypesOnce, wide_count, wide_name)
{
    static const char shapes[N_WIDE] = "dddwwhhbbhh";
    char mnemonic[40], shape[4] = {'h', ':', shapes[index / 8], 0};
    snprintf(mnemonic, sizeof mnemonic, "cvt.%s.%s.%s", wide_modes[index / 2 % 4], models[index % 2].name,
             wide_sources[index / 8]);
    lanes_inst li;
    REQUIRE(lanes_make(&li, mnemonic, shape));
    uint64_t seed = 5 + (uint64_t)index;
    for (int round = 0; round < 40; round++) {
        uint64_t in[WARP];
        for (int lane = 0; lane < WARP; lane++)
            lanes_put(li.s[0], shape[2], lane, in[lane] = wide_random(index, &seed));
        for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
            REQUIRE(lanes_execute(&li, level));
            for (int lane = 0; lane < WARP; lane++) {
                const long double x = source_value(index / 8, in[lane]);
                const uint32_t want =
                    model_round(&models[index % 2], x, wide_modes[index / 2 % 4], false, false);
                const uint64_t got = lanes_get(li.d[0], 'h', lane);
                if (got != want)
                    FAIL("%llx (%La) gives %llx, not %x", (unsigned long long)in[lane], x,
                         (unsigned long long)got, want);
            }
        }
    }
}

/* ---- arithmetic of f16 and bf16: one rounding, against exact sums in long double ---- */

static const char *const half_ops[] = {"add", "sub", "mul", "fma"};

static int half_count(void)
{
    return 8;
}

static void half_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", half_ops[index / 2], models[index % 2].name);
}

/* The sum rounded to odd: it lies on the same side of every tie as the exact sum. */
static long double sum_exact(long double p, long double c)
{
    long double s = p + c;
    if (!isfinite(s))
        return s;
    long double back = s - p, error = (p - (s - back)) + (c - back);
    if (error == 0)
        return s;
    int e;
    const uint64_t mantissa = (uint64_t)fabsl(ldexpl(frexpl(s, &e), 64));
    return mantissa & 1 ? s : s + ldexpl(error > 0 ? 1 : -1, e - 64);
}

static uint32_t half_expected(int index, const uint64_t *in)
{
    const model *m = &models[index % 2];
    long double x[3];
    for (int k = 0; k < 3; k++)
        x[k] = code_is_nan(index % 2, in[k] & 0x7FFF) ? NAN : decoded(index % 2, (uint32_t)in[k]);
    switch (index / 2) {
    case 0:
        return model_round(m, sum_exact(x[0], x[1]), "rn", false, false);
    case 1:
        return model_round(m, sum_exact(x[0], -x[1]), "rn", false, false);
    case 2:
        return model_round(m, x[0] * x[1], "rn", false, false);
    default:
        return model_round(m, sum_exact(x[0] * x[1], x[2]), "rn", false, false);
    }
}

/* Exponents close together, or far apart, or anything. */
static uint64_t half_random(int which, uint64_t *seed)
{
    const uint64_t r = lanes_random(seed);
    const int mantissa = models[which].mantissa_bits;
    if (r >> 62 == 0)
        return r & 0xFFFF;
    if (r >> 62 == 1)
        return (r & (0x8000 | ((1u << mantissa) - 1))) |
               (uint64_t)(models[which].bias + (int)(r >> 40) % 6 - 3) << mantissa;
    if (r >> 62 == 2) /* few bits: ties are common */
        return (r & (0x8000 | (3u << (mantissa - 2)) | 1)) |
               (uint64_t)(models[which].bias + (int)(r >> 40) % 30 - 15) << mantissa;
    return lanes_random_float(seed, 16);
}

TEST_EACH(LanesFormats, HalfArithmeticRoundsOnce, half_count, half_name)
{
    char mnemonic[24];
    const bool fused = index / 2 == 3;
    snprintf(mnemonic, sizeof mnemonic, "%s.rn.%s", half_ops[index / 2], models[index % 2].name);
    lanes_inst li;
    REQUIRE(lanes_make(&li, mnemonic, fused ? "h:hhh" : "h:hh"));
    uint64_t seed = 900 + (uint64_t)index;
    for (int round = 0; round < 1500; round++) {
        uint64_t in[WARP][3];
        for (int lane = 0; lane < WARP; lane++)
            for (int k = 0; k < 3; k++) {
                in[lane][k] = half_random(index % 2, &seed) & 0xFFFF;
                lanes_put(li.s[k], 'h', lane, in[lane][k]);
            }
        REQUIRE(lanes_execute(&li, lanes_best_level()));
        for (int lane = 0; lane < WARP; lane++) {
            const uint64_t got = lanes_get(li.d[0], 'h', lane), want = half_expected(index, in[lane]);
            if (got != want)
                FAIL("%04x, %04x, %04x gives %04x, not %04x", (unsigned)in[lane][0], (unsigned)in[lane][1],
                     (unsigned)in[lane][2], (unsigned)got, (unsigned)want);
        }
    }
}
