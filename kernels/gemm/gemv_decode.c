/* Codes that lie along K, as f32: chunks of 8 from the words that a thread loaded. */
#include "kernels/gemm/gemv.h"

static unsigned bits_of(const gemv *g)
{
    return g->w.coding.format->facts.bits;
}

bool gemv_has_nibbles(const gemv *g)
{
    return codes_are_nibbles(&g->w.coding);
}

/* Rows that begin anywhere are put in order when they are copied. */
static bool is_swapped(const gemv *g)
{
    return nibbles_are_swapped(&g->w.coding) && !g->shape.is_ragged;
}

/* The word that has element i of a chunk, and the code's place in it. */
static unsigned word_of(const gemv *g, unsigned chunk, unsigned element, unsigned *position)
{
    const unsigned bits = bits_of(g);
    unsigned bit = (CHUNK * chunk + (is_swapped(g) ? element ^ 1 : element)) * bits;
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
    for (unsigned i = 0; i < CHUNK; i += QUAD) {
        unsigned positions[QUAD], word = 0;
        for (unsigned j = 0; j < QUAD; j++)
            word = word_of(g, chunk, i + j, &positions[j]);
        ptx_val quad = words[word];
        if (codes_cross_words(g)) {
            quad = few_codes(b, g, words, chunk, i, QUAD);
            for (unsigned j = 0; j < QUAD; j++)
                positions[j] = j * bits_of(g);
        }
        quad_units(b, &g->w.coding, &g->w.matrix.q.state, quad, positions, out + i);
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

/* ---- Integers decoded where they lie (kernels/formats/placed.h) ---- */

/* Each place has a number of its own. */
enum { PLACES = PLACED_FEW };
static const unsigned *places_of(const gemv *g)
{
    return placed_few(&g->w.coding);
}

static ptx_val placed_numbers(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    return placed_prepare(b, g->codec->placed, &g->w.coding, group, places_of(g), PLACES, numbers);
}

static ptx_val value_at(ptx_builder *b, const gemv *g, ptx_val word, unsigned i, const ptx_val *numbers)
{
    const placed_decode *d = g->codec->placed;
    ptx_val code = placed_code(b, &g->w.coding, word, places_of(g)[i], d->is_bare);
    return placed_value(b, d, code, numbers, PLACES, i);
}

static void placed_chunk(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                         const ptx_val *numbers, ptx_val out[CHUNK])
{
    const coding *c = &g->w.coding;
    const placed_moves *moves = placed_moves_few(c);
    const unsigned first = places_of(g)[0], step = places_of(g)[1] - first;
    placed_word here = {0};
    for (unsigned i = 0; i < CHUNK; i++) {
        unsigned position, word = word_of(g, chunk, i, &position);
        if (i % (32 / bits_of(g)) == 0)
            here = placed_word_of(b, moves, words[word]);
        ptx_val from = here.copy[moves->of[position / bits_of(g)]];
        out[i] = value_at(b, g, from, (placed_at(c, moves, position) - first) / step, numbers);
    }
}

static void crossing_chunk(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                           const ptx_val *numbers, ptx_val out[CHUNK])
{
    ptx_val from = {0};
    for (unsigned i = 0; i < CHUNK; i++) {
        const unsigned others = CHUNK - i < PLACES ? CHUNK - i : PLACES;
        if (i % PLACES == 0)
            from = few_codes(b, g, words, chunk, i, others);
        out[i] = value_at(b, g, from, i % PLACES, numbers);
    }
}

#define PLACED(how, to_chunk, exponent)                                                                      \
    {                                                                                                        \
        .numbers = PLACES + 1, .is_finite = true, .x_exponent = exponent, .placed = &how,                    \
        .prepare = placed_numbers, .decode = to_chunk                                                        \
    }
static const gemv_codec integers = PLACED(placed_fused, placed_chunk, PLACED_X_EXPONENT),
                        crossing = PLACED(placed_fused, crossing_chunk, PLACED_X_EXPONENT),
                        narrow = PLACED(placed_narrow, placed_chunk, 0);

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

static qdnnDataType_t mixed_type(const gemv *g)
{
    return is_bf16(g) ? QDNN_DATA_BF16 : QDNN_DATA_F16;
}

static ptx_val is_f16(ptx_builder *b, ptx_val half, ptx_val scale)
{
    return ptx_setp(b, PTX_EQ, ptx_cvt(b, PTX_F32, ptx_as(b, PTX_F16, half)), scale);
}

static ptx_val mixed_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    const float offset = placed_offset(&g->w.coding);
    ptx_val half = ptx_as(b, PTX_U16, ptx_cvt(b, is_bf16(g) ? PTX_BF16 : PTX_F16, group->scale));
    numbers[0] = ptx_as(b, PTX_F32, ptx_cvt(b, PTX_U32, half));
    numbers[1] = ptx_mul(b, group->scale, ptx_f32(b, -(placed_surplus(mixed_type(g), 0) + offset)));
    numbers[2] = is_bf16(g)
                     ? numbers[1]
                     : ptx_mul(b, group->scale, ptx_f32(b, -(placed_surplus(mixed_type(g), 4) + offset)));
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
    const bool high = i % 2 && !is_bf16(g);
    const unsigned shift = is_bf16(g) ? 4 * i : 4 * (i & 2), places[2] = {high ? 4 : 0, high ? 4 : 0};
    *pair = placed_pair(b, &g->w.coding, mixed_type(g), shift ? ptx_shr(b, word, shift) : word, places);
    return high ? 2 : 1;
}

static void mixed_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                         const ptx_val *numbers, ptx_val out[CHUNK])
{
    const unsigned swap = is_swapped(g);
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

#define MIXED(next)                                                                                          \
    {                                                                                                        \
        .numbers = PLACES + 1, .is_finite = true, .prepare = mixed_prepare, .decode = mixed_decode,          \
        .second = next                                                                                       \
    }
static const gemv_codec mixed_bf16 = MIXED(NULL), mixed = MIXED(NULL), mixed_of_bf16 = MIXED(&mixed_bf16);

/* ---- The choice of a codec ---- */

/* The fast codecs make several numbers per group, which pays only for groups that are long enough. */
static const gemv_codec *integer_codec(const format_row *format, const kernel_spec *spec)
{
    const coding c = {format, spec};
    const unsigned span = gemv_span(format, spec);
    if (!placed_few(&c) || (span && span < 16) || spec->stored.groups == QDNN_GROUPS_DEFAULT ||
        !zero_times_scale_is_exact(&c))
        return gemv_codec_plain(format);
    if (32 % format->facts.bits)
        return &crossing;
    return codes_are_nibbles(&c) && !format_has_zero(format) && scale_is_narrow(spec) ? &narrow : &integers;
}

/* Ragged rows leave no room for a table in shared memory. */
const gemv_codec *gemv_codec_of(const format_row *format, const kernel_spec *spec)
{
    const codec *codec = format->codec;
    if (codec->is_integer)
        return integer_codec(format, spec);
    return (codec->numbers || codec->is_looked_up) && !gemm_is_ragged(spec) ? &gemv_codec_table
                                                                            : gemv_codec_plain(format);
}

/* Targets that convert FP8 in hardware need no table for it. */
const gemv_codec *gemv_codec_for(const ptx_builder *b, const format_row *format, const kernel_spec *spec)
{
    const gemv_codec *codec = gemv_codec_of(format, spec);
    if (codec == &gemv_codec_table && format->codec->is_looked_up && format->codec->has_pair(b))
        return gemv_codec_plain(format);
    if (codec == &narrow && has_mixed_fma(b))
        return spec->stored.scale == QDNN_SCALE_BF16 ? &mixed_of_bf16 : &mixed;
    return codec;
}
