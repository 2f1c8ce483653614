/* Floats of 4, 6 and 8 bits: rounding to nearest even with saturation, and decoding, by integer arithmetic on
 * every SM; FP8 uses its own instructions on SMs that have them, with the same bits. */
#include "kernels/formats/pairs.h"

const minifloat float_e2m1 = {2, 1, 1, 6, 2, false, false, false};
const minifloat float_e2m3 = {2, 3, 1, 7.5f, 2, false, false, false};
const minifloat float_e3m2 = {3, 2, 3, 28, 4, false, false, false};
const minifloat float_e4m3 = {4, 3, 7, 448, 8, true, true, false};
const minifloat float_e5m2 = {5, 2, 15, 57344, 15, true, true, true};

const minifloat *minifloat_of(qdnnDataType_t type)
{
    return type == QDNN_DATA_F8E4M3 ? &float_e4m3 : &float_e5m2;
}

static unsigned code_bits(const minifloat *f)
{
    return 1 + f->exponent_bits + f->fraction_bits;
}

/* 2^e as f32 bits; 2^e must be a normal number. */
static uint32_t power_of_two(int e)
{
    return (uint32_t)(e + 127) << 23;
}

static bool has_fp8_cvt(const ptx_builder *b, const minifloat *f)
{
    const ptx_sm *sm = ptx_target(b);
    return f->is_fp8 && sm && sm->number >= 89;
}

/* ---- Encoding ---- */

/* Codes with the same exponent, or with the least exponent and below, are multiples of one step 2^(e - fraction bits). Adding 2^23 steps
 * rounds to a multiple, to the even one in the middle, and leaves the number of steps in the low bits of the sum. It has the fraction's
 * leading bit, which counts as one exponent more. */
static ptx_val encode_magnitude(ptx_builder *b, const minifloat *f, ptx_val magnitude)
{
    const unsigned drop = 23 - f->fraction_bits;
    const uint32_t least = (uint32_t)(127 + 1 - f->bias);
    ptx_val exponent = ptx_max(b, ptx_shr(b, ptx_as(b, PTX_U32, magnitude), 23), ptx_u32(b, least));
    ptx_val base = ptx_mad(b, exponent, ptx_u32(b, 1u << 23), ptx_u32(b, drop << 23));
    ptx_val sum = ptx_add(b, magnitude, ptx_as(b, PTX_F32, base));
    ptx_val steps = ptx_sub(b, ptx_as(b, PTX_U32, sum), base);
    return ptx_sub(b, ptx_mad(b, exponent, ptx_u32(b, 1u << f->fraction_bits), steps),
                   ptx_u32(b, least << f->fraction_bits));
}

static ptx_val encode_by_integers(ptx_builder *b, const minifloat *f, ptx_val x, minifloat_facts facts)
{
    ptx_val magnitude = ptx_min(b, facts.is_positive ? x : ptx_abs(b, x), ptx_f32(b, f->largest));
    ptx_val code = encode_magnitude(b, f, magnitude);
    if (!facts.is_positive)
        code = ptx_or(b, code, ptx_shl(b, ptx_shr(b, ptx_as(b, PTX_U32, x), 31), code_bits(f) - 1));
    return facts.is_number ? code : ptx_selp(b, ptx_u32(b, f->has_nan ? 0x7F : 0), code, ptx_testp_nan(b, x));
}

ptx_val minifloat_encode(ptx_builder *b, const minifloat *f, ptx_val x, minifloat_facts facts)
{
    if (!has_fp8_cvt(b, f))
        return encode_by_integers(b, f, x, facts);
    ptx_type pair = f == &float_e4m3 ? PTX_E4M3X2 : PTX_E5M2X2;
    ptx_val codes = ptx_cvt_pair(b, pair, x, ptx_f32(b, 0));
    return ptx_and(b, ptx_cvt(b, PTX_U32, ptx_as(b, PTX_U16, codes)), 0xFF);
}

/* ---- Decoding ---- */

/* Moves exponent and fraction of the code to their places in an f32, by an arithmetic shift that keeps the
 * sign at the top; an exact product corrects the bias, and also makes subnormals normal. */
static ptx_val decode_by_product(ptx_builder *b, const minifloat *f, ptx_val word, unsigned position)
{
    unsigned top = position + code_bits(f) - 1, narrow = 8 - f->exponent_bits;
    uint32_t kept = 0x80000000 | ((1u << (code_bits(f) - 1)) - 1) << (23 - f->fraction_bits);
    ptx_val high = top == 31 ? word : ptx_shl(b, word, 31 - top); /* the sign is now in bit 31 */
    ptx_val spread = ptx_shr(b, ptx_as(b, PTX_S32, high), narrow);
    /* lop3 instead of `and`: ptxvm considers a byte written once an `and` with a constant determines part of
     * it, and would not notice codes that were never written. */
    ptx_val bits =
        ptx_lop3(b, ptx_as(b, PTX_U32, spread), ptx_u32(b, kept), ptx_u32(b, 0), PTX_LOP_A & PTX_LOP_B);
    return ptx_mul(b, ptx_as(b, PTX_F32, bits), ptx_as(b, PTX_F32, ptx_u32(b, power_of_two(127 - f->bias))));
}

/* E5M2 is the upper half of an f16. */
static ptx_val decode_e5m2(ptx_builder *b, ptx_val word, unsigned position)
{
    ptx_val low = position == 0 ? word : ptx_shr(b, word, position);
    ptx_val half = ptx_cvt(b, PTX_U16, ptx_shl(b, low, 8));
    return ptx_cvt(b, PTX_F32, ptx_as(b, PTX_F16, half));
}

ptx_val minifloat_decode(ptx_builder *b, const minifloat *f, ptx_val word, unsigned position)
{
    if (f == &float_e5m2)
        return decode_e5m2(b, word, position);
    ptx_val value = decode_by_product(b, f, word, position);
    if (!f->has_nan)
        return value;
    /* The value that the NaN code would have as a number; no other code has it. */
    const float after_largest = f->largest / 14 * 15; /* 480 for E4M3 */
    ptx_val is_nan = ptx_setp(b, PTX_EQ, ptx_abs(b, value), ptx_f32(b, after_largest));
    return ptx_selp(b, ptx_bits(b, PTX_F32, 0x7FFFFFFF), value, is_nan);
}

ptx_val e8m0_decode(ptx_builder *b, ptx_val byte)
{
    ptx_val bits = ptx_shl(b, byte, 23);
    ptx_val power = ptx_selp(b, ptx_u32(b, 0x00400000), bits, ptx_setp(b, PTX_EQ, byte, 0));
    ptx_val is_nan = ptx_setp(b, PTX_EQ, byte, 255);
    return ptx_as(b, PTX_F32, ptx_selp(b, ptx_u32(b, 0x7FFFFFFF), power, is_nan));
}

/* ---- Pairs ---- */

/* Moves the codes to the top of each half, then proceeds like decode_by_product, in 16 bits. */
static ptx_val pair_by_product(ptx_builder *b, const minifloat *f, qdnnDataType_t type, code_place first,
                               code_place second)
{
    const unsigned bits = code_bits(f), top = 16 - bits, fraction = pair_fraction_bits(type);
    const unsigned narrow = 15 - fraction - f->exponent_bits;
    const int bias = type == QDNN_DATA_F16 ? 15 : 127;
    uint32_t kept = ((1u << (bits - 1)) - 1) << (fraction - f->fraction_bits);
    union {
        uint32_t bits;
        float value;
    } factor = {power_of_two(bias - f->bias)};
    ptx_val high = pair_place(b, bits, first, top, second, top);
    ptx_val rest = ptx_and(b, ptx_shr(b, high, narrow), ptx_u32(b, kept << 16 | kept));
    ptx_val placed = ptx_lop3(b, high, ptx_u32(b, 0x80008000), rest, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    return pair_mul(b, type, ptx_as(b, pair_type(type), placed),
                    pair_constant(b, type, factor.value, factor.value));
}

/* Shifting the magnitudes to the place of exponent and fraction in f16 gives 2^-8 times their value, also for
 * subnormals. The magnitude of NaN is all ones: adding 1 carries into bit 14, which completes the exponent of
 * a NaN. */
static ptx_val pair_of_e4m3(ptx_builder *b, ptx_val tops)
{
    ptx_val rest = ptx_and(b, ptx_shr(b, tops, 1), ptx_u32(b, 0x3F803F80));
    ptx_val carried = ptx_add(b, rest, ptx_u32(b, 0x00800080));
    rest = ptx_lop3(b, carried, ptx_u32(b, 0x40004000), rest, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    ptx_val bits = ptx_lop3(b, tops, ptx_u32(b, 0x80008000), rest, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    return ptx_mul(b, ptx_as(b, PTX_F16X2, bits), pair_constant(b, QDNN_DATA_F16, 256, 256));
}

/* E5M2 is the upper half of an f16. */
void fp8_to_f16(ptx_builder *b, const minifloat *from, ptx_val word, ptx_val out[2])
{
    if (from == &float_e4m3 && has_fp8_cvt(b, from)) {
        ptx_val halves[2];
        ptx_unpack(b, PTX_U16, word, halves, 2);
        for (int i = 0; i < 2; i++)
            out[i] = ptx_as(b, PTX_U32, ptx_cvt(b, PTX_F16X2, ptx_as(b, PTX_E4M3X2, halves[i])));
        return;
    }
    for (int i = 0; i < 2; i++) {
        ptx_val high = ptx_prmt(b, word, ptx_u32(b, 0), ptx_u32(b, i ? 0x3424 : 0x1404));
        out[i] = from == &float_e5m2 ? high : ptx_as(b, PTX_U32, pair_of_e4m3(b, high));
    }
}

bool fp8_is_moved(const ptx_builder *b, const minifloat *from)
{
    return from->is_half || !has_fp8_cvt(b, from);
}

ptx_val fp8_tops_to_f16(ptx_builder *b, const minifloat *from, ptx_val tops)
{
    return from->is_half ? ptx_and(b, tops, ptx_u32(b, 0xFF00FF00))
                         : ptx_as(b, PTX_U32, pair_of_e4m3(b, tops));
}

/* FP8 has a conversion of pairs to f16x2; bf16 represents the same numbers, and is reached by way of f32. */
static bool has_fp8_pair(const ptx_builder *b)
{
    return has_fp8_cvt(b, &float_e4m3);
}

static ptx_val pair_of_fp8(ptx_builder *b, const minifloat *f, qdnnDataType_t type, code_place first,
                           code_place second)
{
    ptx_val halves[2], wide[2];
    ptx_val codes =
        ptx_prmt(b, first.word, second.word, ptx_u32(b, first.position / 8 | (4 + second.position / 8) << 4));
    ptx_unpack(b, PTX_U16, codes, halves, 2);
    ptx_val pair = ptx_cvt(b, PTX_F16X2, ptx_as(b, f == &float_e4m3 ? PTX_E4M3X2 : PTX_E5M2X2, halves[0]));
    if (type == QDNN_DATA_F16)
        return pair;
    ptx_unpack(b, PTX_F16, pair, wide, 2);
    ptx_val low = ptx_cvt(b, PTX_F32, wide[0]), high = ptx_cvt(b, PTX_F32, wide[1]);
    return ptx_as(b, pair_type(type), emit_narrow_pair(b, type, low, high));
}

/* ---- The codecs ---- */

static ptx_val float_scale(ptx_builder *b, const coding *c, ptx_val lo, ptx_val absmax)
{
    (void)lo;
    return ptx_div(b, ptx_max(b, absmax, ptx_f32(b, c->spec->quantize.floor)),
                   ptx_f32(b, c->format->number->largest));
}

/* E5M2 is the upper half of an f16: one permutation makes two of them. */
static void units_of_e5m2(ptx_builder *b, ptx_val word, ptx_val out[4])
{
    for (unsigned i = 0; i < 4; i += 2) {
        ptx_val halves[2], pair = ptx_prmt(b, word, ptx_u32(b, 0), ptx_u32(b, i ? 0x3424 : 0x1404));
        ptx_unpack(b, PTX_F16, pair, halves, 2);
        out[i] = ptx_cvt(b, PTX_F32, halves[0]);
        out[i + 1] = ptx_cvt(b, PTX_F32, halves[1]);
    }
}

/* FP8 in pairs: the four codes of a word by two conversions to f16x2, exact. */
static void units_of_fp8(ptx_builder *b, const minifloat *f, ptx_val word, ptx_val out[4])
{
    if (!has_fp8_cvt(b, f) && f == &float_e5m2) {
        units_of_e5m2(b, word, out);
        return;
    }
    if (!has_fp8_cvt(b, f)) {
        for (unsigned i = 0; i < 4; i++)
            out[i] = minifloat_decode(b, f, word, 8 * i);
        return;
    }
    ptx_type pair = f == &float_e4m3 ? PTX_E4M3X2 : PTX_E5M2X2;
    ptx_val halves[2];
    ptx_unpack(b, PTX_U16, word, halves, 2);
    for (int i = 0; i < 2; i++) {
        ptx_val wide[2];
        ptx_unpack(b, PTX_F16, ptx_cvt(b, PTX_F16X2, ptx_as(b, pair, halves[i])), wide, 2);
        out[2 * i] = ptx_cvt(b, PTX_F32, wide[0]);
        out[2 * i + 1] = ptx_cvt(b, PTX_F32, wide[1]);
    }
}

static const uint64_t e2m1_bits[16] = {0x00000000, 0x3F000000, 0x3F800000, 0x3FC00000, 0x40000000, 0x40400000,
                                       0x40800000, 0x40C00000, 0x80000000, 0xBF000000, 0xBF800000, 0xBFC00000,
                                       0xC0000000, 0xC0400000, 0xC0800000, 0xC0C00000};

/* In formats without NaN, group_quotient has replaced NaN unless it takes infinities. */
static ptx_val encode_quotient(ptx_builder *b, const minifloat *f, const coding *c, const group_values *group,
                               ptx_val quotient)
{
    const bool is_number = group->is_own && !scale_is_close(c, group) && !f->has_nan;
    return minifloat_encode(b, f, quotient, (minifloat_facts){.is_number = is_number});
}

#define FLOAT_CODEC(name, list, nan, bytes, to_pair, needs, ...)                                             \
    static ptx_val name##_encode(ptx_builder *b, const coding *c, const group_values *group,                 \
                                 ptx_val quotient)                                                           \
    {                                                                                                        \
        return encode_quotient(b, &float_##name, c, group, quotient);                                        \
    }                                                                                                        \
    static ptx_val name##_unit(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,      \
                               unsigned position)                                                            \
    {                                                                                                        \
        (void)c, (void)state;                                                                                \
        return minifloat_decode(b, &float_##name, word, position);                                           \
    }                                                                                                        \
    static ptx_val name##_pair(ptx_builder *b, const coding *c, qdnnDataType_t type, ptx_val minus_zero,     \
                               code_place first, code_place second)                                          \
    {                                                                                                        \
        (void)c, (void)minus_zero;                                                                           \
        return to_pair(b, &float_##name, type, first, second);                                               \
    }                                                                                                        \
    const codec codec_##name = {.numbers = list,                                                             \
                                .has_nan = nan,                                                              \
                                .scale = float_scale,                                                        \
                                .encode = name##_encode,                                                     \
                                .unit = name##_unit,                                                         \
                                .units_of_bytes = bytes,                                                     \
                                .pair = name##_pair,                                                         \
                                .has_pair = needs,                                                           \
                                __VA_ARGS__};

static void e4m3_units(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                       ptx_val out[4])
{
    (void)c, (void)state;
    units_of_fp8(b, &float_e4m3, word, out);
}

static void e5m2_units(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                       ptx_val out[4])
{
    (void)c, (void)state;
    units_of_fp8(b, &float_e5m2, word, out);
}

FLOAT_CODEC(e2m1, e2m1_bits, false, NULL, pair_by_product, NULL, .has_short_numbers = true)
FLOAT_CODEC(e2m3, NULL, false, NULL, pair_by_product, NULL, )
FLOAT_CODEC(e3m2, NULL, false, NULL, pair_by_product, NULL, )
FLOAT_CODEC(e4m3, NULL, true, e4m3_units, pair_of_fp8, has_fp8_pair, .is_looked_up = true)
FLOAT_CODEC(e5m2, NULL, true, e5m2_units, pair_of_fp8, has_fp8_pair, )
