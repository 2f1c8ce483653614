/* Codes that lie along K, as f32: chunks of 8 from the words that a thread loaded. */
#include "kernels/gemm/gemv.h"

static unsigned bits_of(const gemv *g)
{
    return g->w.coding.format->facts.bits;
}

/* Whether the nibbles of a byte are in reverse order. Rows that begin anywhere are put in order when they
 * are copied. */
static bool nibbles_are_swapped(const gemv *g)
{
    return bits_of(g) == 4 && g->spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST && !g->shape.is_ragged;
}

/* The word that has element i of a chunk, and the code's place in it. */
static unsigned word_of(const gemv *g, unsigned chunk, unsigned element, unsigned *position)
{
    const unsigned bits = bits_of(g);
    unsigned bit = (CHUNK * chunk + (nibbles_are_swapped(g) ? element ^ 1 : element)) * bits;
    *position = bit % 32;
    return bit / 32;
}

/* Whether codes may begin in one word and end in the next. */
static bool codes_cross_words(const gemv *g)
{
    return 32 % bits_of(g) != 0;
}

/* `count` codes from element `first` of a chunk on, in the low bits of a word; they may cross a word
 * boundary. */
static ptx_val few_codes(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk, unsigned first,
                         unsigned count)
{
    const unsigned bit = (CHUNK * chunk + first) * bits_of(g), word = bit / 32, shift = bit % 32;
    if (shift + count * bits_of(g) > 32)
        return ptx_shf_r(b, words[word], words[word + 1], ptx_u32(b, shift));
    return shift ? ptx_shr(b, words[word], shift) : words[word];
}

/* ---- Any codes, decoded as in dequantize ---- */

static ptx_val any_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    (void)b;
    numbers[0] = group->scale;
    if (format_has_zero(g->w.coding.format))
        numbers[1] = group->zero;
    return (ptx_val){0};
}

static void any_units(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk, ptx_val out[CHUNK])
{
    const coding *c = &g->w.coding;
    const codec *codec = c->format->codec;
    const codec_state *state = &g->w.matrix.q.state;
    if (bits_of(g) == 8 && codec->units_of_bytes) {
        codec->units_of_bytes(b, c, state, words[2 * chunk], out);
        codec->units_of_bytes(b, c, state, words[2 * chunk + 1], out + 4);
        return;
    }
    ptx_val quad = {0};
    for (unsigned i = 0; i < CHUNK; i++) {
        unsigned position, word = word_of(g, chunk, i, &position);
        if (codes_cross_words(g) && i % QUAD == 0)
            quad = few_codes(b, g, words, chunk, i, QUAD);
        out[i] = codes_cross_words(g) ? codec->unit(b, c, state, quad, i % QUAD * bits_of(g))
                                      : codec->unit(b, c, state, words[word], position);
    }
}

static void any_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                       const ptx_val *numbers, ptx_val out[CHUNK])
{
    group_values group = {.scale = numbers[0]};
    if (format_has_zero(g->w.coding.format))
        group.zero = numbers[1];
    any_units(b, g, words, chunk, out);
    for (unsigned i = 0; i < CHUNK && !gemv_scales_last(g); i++)
        out[i] = group_decode(b, &g->w.coding, &g->w.matrix.q.side, &group, out[i]);
}

bool gemv_scales_last(const gemv *g)
{
    return g->in_pairs && g->codec->scales_last && g->spec->stored.groups != QDNN_GROUPS_DEFAULT;
}

static const gemv_codec any_with_zero = {.numbers = 2, .prepare = any_prepare, .decode = any_decode};
static const gemv_codec any = {
    .numbers = 1, .scales_last = true, .prepare = any_prepare, .decode = any_decode};

/* ---- Plain weights: no codes, but the values themselves ---- */

static void values_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                          const ptx_val *numbers, ptx_val out[CHUNK])
{
    (void)numbers, (void)chunk;
    const qdnnDataType_t type = g->w.coding.format->facts.storage;
    for (unsigned i = 0; i < CHUNK; i += 2) {
        ptx_val word = words[i / 2], halves[2];
        switch (type) {
        case QDNN_DATA_F32:
            out[i] = ptx_as(b, PTX_F32, words[i]);
            out[i + 1] = ptx_as(b, PTX_F32, words[i + 1]);
            break;
        case QDNN_DATA_BF16:
            out[i] = ptx_as(b, PTX_F32, ptx_shl(b, word, 16));
            out[i + 1] = ptx_as(b, PTX_F32, ptx_and(b, word, ptx_u32(b, 0xFFFF0000)));
            break;
        default:
            ptx_unpack(b, PTX_F16, word, halves, 2);
            out[i] = ptx_cvt(b, PTX_F32, halves[0]);
            out[i + 1] = ptx_cvt(b, PTX_F32, halves[1]);
        }
    }
}

static const gemv_codec values = {.decode = values_decode};

const gemv_codec *gemv_codec_plain(const format_row *format)
{
    return format_is_plain(format) ? &values : format_has_zero(format) ? &any_with_zero : &any;
}

/* ---- Integers of 3 bits and more whose zero * scale is exact ----
 *
 * A code left where it is, at bit b of a word, b up to 20 (for bytes, 16), all other bits masked off, is
 * the f32 q * 2^(b - 149): a subnormal number, or one with the same last place. fma.rn of it, scale *
 * 2^(149 - b) and -zero * scale is (q - zero) * scale rounded once, as long as zero * scale is exact. The
 * powers of two are split between weights and x, so that nothing overflows: decoded weights are too small
 * by 2^X_EXPONENT, and exact as long as scales are neither too large nor too small. */

enum {
    X_EXPONENT = 48,
    SCALE_LEAST = -76,
    SCALE_MOST = 26 /* times 2^(149 - 48) it is finite */,
    ZERO_MOST = 4096
};

/* 2^e, of a normal number. */
static ptx_val power_of_two(ptx_builder *b, int e)
{
    return ptx_bits(b, PTX_F32, (uint64_t)(e + 127) << 23);
}

/* By how much codes exceed the integers that they stand for. */
static int offset_of(const gemv *g)
{
    return g->spec->stored.code == QDNN_CODE_UNSIGNED ? 0 : 1 << (bits_of(g) - 1);
}

static bool has_zero_points(const gemv *g)
{
    return g->w.coding.format->facts.zero_kind == QDNN_ZERO_POINT;
}

/* The bit positions at which codes are masked; each has its own factor, which is one of the group's
 * numbers. */
enum { PLACES = 3 };
static unsigned place_of(const gemv *g, unsigned place)
{
    return bits_of(g) == 4 ? 8 + 4 * place : bits_of(g) * place;
}

static ptx_val scale_serves(ptx_builder *b, const gemv *g, ptx_val scale)
{
    ptx_val size = ptx_abs(b, scale);
    ptx_val below = ptx_setp(b, PTX_LE, size, power_of_two(b, SCALE_MOST));
    if (g->spec->stored.scale == QDNN_SCALE_F16)
        return below;
    ptx_val above = ptx_setp(b, PTX_GE, size, power_of_two(b, SCALE_LEAST));
    return ptx_and(b, ptx_setp_or(b, PTX_EQ, size, 0.0f, above), below);
}

static ptx_val integers_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    ptx_val scale = group->scale, serves = scale_serves(b, g, scale);
    for (unsigned i = 0; i < PLACES; i++)
        numbers[i] = ptx_mul(b, scale, power_of_two(b, 149 - X_EXPONENT - (int)place_of(g, i)));
    float offset = (float)offset_of(g);
    if (!has_zero_points(g)) {
        numbers[PLACES] = ptx_mul(b, scale, ptx_f32(b, -offset * 0x1p-48f));
        return serves;
    }
    ptx_val zero = offset ? ptx_add(b, group->zero, ptx_f32(b, offset)) : group->zero;
    ptx_val small = ptx_mul(b, scale, ptx_f32(b, -0x1p-48f));
    numbers[PLACES] = ptx_mul(b, zero, small);
    return ptx_setp_and(b, PTX_LE, ptx_abs(b, zero), ptx_f32(b, ZERO_MOST), serves);
}

/* How codes reach those positions. Of the 8 nibbles of a word, 0 and 1 are shifted left by 8 and 5 to 7
 * right by 12; of the 4 bytes of a word, 3 is shifted right by 8. */
typedef struct shifted {
    ptx_val left, word, right;
} shifted;

static shifted shift_word(ptx_builder *b, const gemv *g, ptx_val word)
{
    if (bits_of(g) == 4)
        return (shifted){ptx_shl(b, word, 8), word, ptx_shr(b, word, 12)};
    return (shifted){.word = word, .right = ptx_shr(b, word, 8)};
}

static ptx_val find_code(const gemv *g, const shifted *s, unsigned position, unsigned *place)
{
    if (bits_of(g) == 8) {
        *place = position == 24 ? 2 : position / 8;
        return position == 24 ? s->right : s->word;
    }
    *place = position < 8 ? position / 4 : position < 20 ? position / 4 - 2 : position / 4 - 5;
    return position < 8 ? s->left : position < 20 ? s->word : s->right;
}

static ptx_val integer_at(ptx_builder *b, const gemv *g, ptx_val from, unsigned place, const ptx_val *numbers)
{
    const unsigned bits = bits_of(g), at = place_of(g, place);
    const uint32_t mask = (1u << bits) - 1;
    const uint32_t flip = g->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT ? 1u << (bits - 1) : 0;
    ptx_val code = flip ? ptx_lop3(b, from, ptx_u32(b, mask << at), ptx_u32(b, flip << at),
                                   (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C)
                        : ptx_and(b, from, ptx_u32(b, mask << at));
    return ptx_fma(b, ptx_as(b, PTX_F32, code), numbers[place], numbers[PLACES]);
}

static void integers_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                            const ptx_val *numbers, ptx_val out[CHUNK])
{
    const unsigned in_word = 32 / bits_of(g);
    shifted s = {0};
    for (unsigned i = 0; i < CHUNK; i++) {
        unsigned position, place, word = word_of(g, chunk, i, &position);
        if (i % in_word == 0)
            s = shift_word(b, g, words[word]);
        ptx_val from = find_code(g, &s, position, &place);
        out[i] = integer_at(b, g, from, place, numbers);
    }
}

/* Codes that cross words, PLACES of them at a time. */
static void crossing_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                            const ptx_val *numbers, ptx_val out[CHUNK])
{
    ptx_val from = {0};
    for (unsigned i = 0; i < CHUNK; i++) {
        const unsigned others = CHUNK - i < PLACES ? CHUNK - i : PLACES;
        if (i % PLACES == 0)
            from = few_codes(b, g, words, chunk, i, others);
        out[i] = integer_at(b, g, from, i % PLACES, numbers);
    }
}

static const gemv_codec integers = {.numbers = PLACES + 1,
                                    .is_finite = true,
                                    .x_exponent = X_EXPONENT,
                                    .prepare = integers_prepare,
                                    .decode = integers_decode};
static const gemv_codec crossing = {.numbers = PLACES + 1,
                                    .is_finite = true,
                                    .x_exponent = X_EXPONENT,
                                    .prepare = integers_prepare,
                                    .decode = crossing_decode};

/* ---- The same with scales of 16 bits and no zeros ----
 *
 * Under the exponent of 2^(23 - b), the bits of a code are the f32 2^(23 - b) + q, and fma.rn with scale and
 * -(2^(23 - b) + offset) * scale is exact for places from 8 on: that constant has at most 24 bits. x stays as it is. */

static ptx_val narrow_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    const float offset = (float)offset_of(g);
    numbers[0] = group->scale;
    for (unsigned i = 0; i < PLACES; i++)
        numbers[1 + i] =
            ptx_mul(b, group->scale, ptx_f32(b, -((float)(1u << (23 - place_of(g, i))) + offset)));
    return ptx_setp(b, PTX_LE, ptx_abs(b, numbers[1]), ptx_f32(b, element_largest(QDNN_DATA_F32)));
}

static void narrow_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                          const ptx_val *numbers, ptx_val out[CHUNK])
{
    const uint32_t flip = g->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT ? 8 : 0;
    shifted s = shift_word(b, g, words[chunk]);
    for (unsigned i = 0; i < CHUNK; i++) {
        unsigned position, place;
        word_of(g, chunk, i, &position);
        ptx_val from = find_code(g, &s, position, &place);
        const unsigned at = place_of(g, place);
        ptx_val code = ptx_lop3(b, from, ptx_u32(b, 15u << at), ptx_u32(b, (150u - at) << 23 | flip << at),
                                (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C);
        out[i] = ptx_fma(b, ptx_as(b, PTX_F32, code), numbers[0], numbers[1 + place]);
    }
}

static const gemv_codec narrow = {
    .numbers = PLACES + 1, .is_finite = true, .prepare = narrow_prepare, .decode = narrow_decode};

/* ---- The same from sm_100 on ----
 *
 * Uses the fma of two f16 (or bf16) and an f32: one mask extracts two numbers of a word. In f16: 1024 + q,
 * or 64 + q for codes 4 bits higher; bf16 only has bits for 128 + q, which takes more shifts. Scales in
 * bf16 can nearly always be represented in f16, too; a tile in which one cannot is decoded in bf16. */

static const gemv_codec mixed_bf16;

static bool is_bf16(const gemv *g)
{
    return g->codec == &mixed_bf16;
}

static ptx_val is_f16(ptx_builder *b, ptx_val half, ptx_val scale)
{
    return ptx_setp(b, PTX_EQ, ptx_cvt(b, PTX_F32, ptx_as(b, PTX_F16, half)), scale);
}

static ptx_val mixed_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    const float offset = (float)offset_of(g);
    ptx_val half = ptx_as(b, PTX_U16, ptx_cvt(b, is_bf16(g) ? PTX_BF16 : PTX_F16, group->scale));
    numbers[0] = ptx_as(b, PTX_F32, ptx_cvt(b, PTX_U32, half));
    numbers[1] = ptx_mul(b, group->scale, ptx_f32(b, -((is_bf16(g) ? 128 : 1024) + offset)));
    numbers[2] = is_bf16(g) ? numbers[1] : ptx_mul(b, group->scale, ptx_f32(b, -(64 + offset)));
    numbers[3] = group->scale; /* unused; this value is at hand and costs no move */
    ptx_val size = ptx_abs(b, numbers[1]), most = ptx_f32(b, element_largest(QDNN_DATA_F32));
    if (g->spec->stored.scale == QDNN_SCALE_BF16 && !is_bf16(g))
        return ptx_setp_and(b, PTX_LE, size, most, is_f16(b, half, group->scale));
    return ptx_setp(b, PTX_LE, size, most);
}

/* Codes i and i + 4 of a word as numbers under an exponent. Returns the index of the constant that removes
 * it again. */
static unsigned mixed_pair(ptx_builder *b, const gemv *g, ptx_val word, unsigned i, ptx_val *pair)
{
    const uint32_t flip = g->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT ? 8 : 0;
    const bool high = i % 2 && !is_bf16(g);
    const uint32_t exponent = is_bf16(g) ? 0x4300 : high ? 0x5400 : 0x6400;
    const uint32_t bits = (exponent | (high ? flip << 4 : flip)) * 0x10001u;
    const unsigned shift = is_bf16(g) ? 4 * i : 4 * (i & 2);
    *pair = ptx_lop3(b, shift ? ptx_shr(b, word, shift) : word, ptx_u32(b, high ? 0x00F000F0 : 0x000F000F),
                     ptx_u32(b, bits), (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C);
    return high ? 2 : 1;
}

static void mixed_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                         const ptx_val *numbers, ptx_val out[CHUNK])
{
    const unsigned swap = nibbles_are_swapped(g);
    const ptx_type type = is_bf16(g) ? PTX_BF16 : PTX_F16;
    ptx_val pair, halves[2], scale[2];
    ptx_unpack(b, type, ptx_as(b, PTX_U32, numbers[0]), scale, 2);
    for (unsigned i = 0; i < 4; i++) {
        unsigned constant = mixed_pair(b, g, words[chunk], i, &pair);
        ptx_unpack(b, type, pair, halves, 2);
        for (unsigned k = 0; k < 2; k++)
            out[(i + 4 * k) ^ swap] = ptx_fma(b, halves[k], scale[0], numbers[constant]);
    }
}

static const gemv_codec mixed_bf16 = {.numbers = PLACES + 1,
                                      .is_finite = true,
                                      .is_wide = true,
                                      .prepare = mixed_prepare,
                                      .decode = mixed_decode};
static const gemv_codec mixed = {.numbers = PLACES + 1,
                                 .is_finite = true,
                                 .is_wide = true,
                                 .prepare = mixed_prepare,
                                 .decode = mixed_decode};
static const gemv_codec mixed_of_bf16 = {.numbers = PLACES + 1,
                                         .is_finite = true,
                                         .is_wide = true,
                                         .prepare = mixed_prepare,
                                         .decode = mixed_decode,
                                         .second = &mixed_bf16};

/* ---- The choice of a codec ---- */

static bool is_integer_type(qdnnDataType_t type)
{
    return type == QDNN_DATA_U8 || type == QDNN_DATA_I8 || type == QDNN_DATA_U32 || type == QDNN_DATA_I32;
}

/* Scales of 16 bits have at most 11 bits of precision, and an offset is a power of two, so zero * scale is
 * exact. */
static bool scale_is_narrow(const kernel_spec *spec)
{
    return spec->stored.scale == QDNN_SCALE_F16 || spec->stored.scale == QDNN_SCALE_BF16;
}

static bool zero_is_exact(const format_row *format, const kernel_spec *spec)
{
    if (format->facts.zero_kind == QDNN_ZERO_NONE)
        return true;
    return format->facts.zero_kind == QDNN_ZERO_POINT && scale_is_narrow(spec) &&
           (spec->stored.zero_packed || is_integer_type(spec->stored.zero));
}

/* The fast codecs make several numbers per group, which pays only for groups that are long enough. */
static const gemv_codec *integer_codec(const format_row *format, const kernel_spec *spec)
{
    const unsigned bits = format->facts.bits, span = gemv_span(format, spec);
    if (bits == 2 || (span && span < 16) || spec->stored.groups == QDNN_GROUPS_DEFAULT ||
        !zero_is_exact(format, spec))
        return gemv_codec_plain(format);
    if (bits != 4 && bits != 8)
        return &crossing;
    return bits == 4 && !format_has_zero(format) && scale_is_narrow(spec) ? &narrow : &integers;
}

/* Ragged rows leave no room for a table in shared memory. */
const gemv_codec *gemv_codec_of(const format_row *format, const kernel_spec *spec)
{
    const unsigned bits = format->facts.bits;
    if (format->codec == &codec_integer)
        return integer_codec(format, spec);
    bool is_looked_up = bits == 4 || format->codec == &codec_e4m3;
    return is_looked_up && !gemv_is_ragged(spec) ? &gemv_codec_table : gemv_codec_plain(format);
}

/* Targets from sm_89 on convert FP8 in hardware, and need no table for it. */
const gemv_codec *gemv_codec_for(const ptx_builder *b, const format_row *format, const kernel_spec *spec)
{
    const ptx_sm *sm = ptx_target(b);
    const gemv_codec *codec = gemv_codec_of(format, spec);
    bool is_converted = sm && sm->number >= 89;
    if (codec == &gemv_codec_table && format->facts.bits == 8 && is_converted)
        return gemv_codec_plain(format);
    if (codec == &narrow && sm && sm->number >= 100)
        return spec->stored.scale == QDNN_SCALE_BF16 ? &mixed_of_bf16 : &mixed;
    return codec;
}
