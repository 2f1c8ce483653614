/* Codes of 4 and 8 bits that lie along N, as f32: AWQ's words, bytes, words in rows. The columns of a
 * thread are neighbouring codes of a row of the matrix, in one or two words; so a column's code has the
 * same position in every row, and decoding needs only a few numbers per column and group. */
#include "kernels/gemm/columns_codes.h"

#include "kernels/formats/block_reader.h"

#include <math.h>

enum {
    SPAN_LEAST = 16,              /* k per span, at least */
    ENTRIES = 256,                /* of the table, one per byte */
    ENTRY_BYTES = 8 * LOAD_BYTES, /* one copy per thread of half a warp, or of a whole one */
    ENTRY_PITCH = 256,
    TABLE_BYTES = (ENTRIES - 1) * ENTRY_PITCH + ENTRY_BYTES,
    SCALE_LEAST = -76, /* exponents of scales that the fused decode can handle */
    SCALE_MOST = 26,
    ZERO_MOST = 4096
};

/* ---- Where codes are ---- */

unsigned code_bits(const coding *c)
{
    return c->format->facts.bits;
}

/* Whether two threads share a word. */
bool code_is_half(const coding *c)
{
    return code_bits(c) == 4 && code_width(c) == QUAD;
}

/* With more than 8 rows of x, a thread has four columns: there are no registers for more sums. */
unsigned code_width(const coding *c)
{
    return c->spec->product.tile_rows > 8 ? QUAD : CODE_COLUMNS;
}

unsigned code_words(const coding *c)
{
    return code_is_half(c) ? 1 : code_width(c) * code_bits(c) / 32;
}

/* The distance in bits between a column and the one four further, in a word of 4-bit codes. */
unsigned code_quad_distance(const coding *c)
{
    return c->spec->stored.layout == QDNN_LAYOUT_AWQ ? 8 : 16;
}

/* The bit of column k in its word. */
static unsigned position_of(const coding *c, unsigned k)
{
    if (code_bits(c) == 8)
        return quad_position(c, k % QUAD);
    const bool is_awq = c->spec->stored.layout == QDNN_LAYOUT_AWQ;
    return (is_awq ? stream_position(4, true, k % QUAD) : quad_position(c, k % QUAD)) +
           k / QUAD * code_quad_distance(c);
}

/* How far the upper codes are shifted down, so that all fit under an exponent, as bits of a fraction. */
static unsigned shift_of(const coding *c, unsigned k)
{
    const unsigned position = position_of(c, k);
    return code_bits(c) == 8 ? (position >= 16 ? 16 : 0) : position >= 20 ? 12 : 0;
}

static unsigned place_of(const coding *c, unsigned k)
{
    return position_of(c, k) - shift_of(c, k);
}

static ptx_val power_of_two(ptx_builder *b, int e)
{
    return ptx_bits(b, PTX_F32, (uint64_t)(e + 127) << 23);
}

/* The codes of a row as f32, left at their places, with or without an exponent above them. The sign bit of
 * two's complement is flipped on the way. */
static void placed_codes(ptx_builder *b, const columns *s, const ptx_val *words, bool under_exponent,
                         ptx_val out[CODE_COLUMNS])
{
    const coding *c = &s->w.coding;
    const uint32_t mask = (1u << code_bits(c)) - 1, sign = 1u << (code_bits(c) - 1);
    ptx_val shifted[CODE_WORDS];
    for (unsigned w = 0; w < code_words(c); w++)
        shifted[w] = ptx_shr(b, words[w], code_bits(c) == 8 ? 16 : 12);
    for (unsigned k = 0; k < s->width; k++) {
        const unsigned place = place_of(c, k), word = code_bits(c) == 8 ? k / QUAD : 0;
        const uint32_t flip = s->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT ? sign << place : 0;
        const uint32_t other = flip | (under_exponent ? (150u - place) << 23 : 0);
        ptx_val from = shift_of(c, k) ? shifted[word] : words[word], bits = ptx_u32(b, mask << place);
        out[k] =
            ptx_as(b, PTX_F32,
                   other ? ptx_lop3(b, from, bits, ptx_u32(b, other), (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C)
                         : ptx_and(b, from, bits));
    }
}

/* Column k, or the pair of columns k and k + 1 where sums are pairs. */
static ptx_val value_of(ptx_builder *b, const columns *s, const ptx_val *of, unsigned k)
{
    return s->pairs ? ptx_pack2(b, PTX_F32X2, of[k], of[k + 1]) : of[k];
}

/* By how much codes exceed the integers that they stand for. */
static float offset_of(const columns *s)
{
    return s->spec->stored.code == QDNN_CODE_UNSIGNED ? 0 : (float)(1u << (code_bits(&s->w.coding) - 1));
}

static ptx_val zero_with_offset(ptx_builder *b, const columns *s, const group_values *group)
{
    if (!format_has_zero(s->w.coding.format))
        return ptx_f32(b, offset_of(s));
    return offset_of(s) != 0 ? ptx_add(b, group->zero, ptx_f32(b, offset_of(s))) : group->zero;
}

/* ---- Integers whose zero * scale is exact: one fma ----
 *
 * The bits of a code at place p are the f32 q * 2^(p - 149). fma.rn of it, scale * 2^(149 - p) and -zero *
 * scale is (q - zero) * scale, rounded once. The powers of two are split between weights and x, as in
 * gemv_decode.c. */

static ptx_val fused_prepare(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                             ptx_val *numbers)
{
    const int exponent = 149 - X_SHIFT - (int)place_of(&s->w.coding, k);
    ptx_val scale = group->scale, size = ptx_abs(b, scale), zero = zero_with_offset(b, s, group);
    numbers[0] = ptx_mul(b, scale, power_of_two(b, exponent));
    numbers[1] = ptx_mul(b, zero, ptx_mul(b, scale, ptx_f32(b, -ldexpf(1, -X_SHIFT))));
    ptx_val serves =
        ptx_setp_or(b, PTX_EQ, size, 0.0f, ptx_setp(b, PTX_GE, size, power_of_two(b, SCALE_LEAST)));
    serves = ptx_setp_and(b, PTX_LE, size, power_of_two(b, SCALE_MOST), serves);
    if (!format_has_zero(s->w.coding.format))
        return serves;
    return ptx_setp_and(b, PTX_LE, ptx_abs(b, zero), ptx_f32(b, ZERO_MOST), serves);
}

static void fused_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    ptx_val codes[CODE_COLUMNS];
    placed_codes(b, s, words, false, codes);
    for (unsigned k = 0; k < s->width; k += 1 + s->pairs)
        *out++ =
            ptx_fma(b, value_of(b, s, codes, k), value_of(b, s, n->at[0], k), value_of(b, s, n->at[1], k));
}

static const code_way fused = {.numbers = 2,
                               .x_exponent = X_SHIFT,
                               .is_guarded = true,
                               .prepare = fused_prepare,
                               .decode = fused_decode};

/* ---- Integers with other zeros: first code - zero, then times scale, as in columns_words.c ---- */

static ptx_val apart_prepare(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                             ptx_val *numbers)
{
    ptx_val zero = zero_with_offset(b, s, group);
    numbers[0] = group->scale;
    numbers[1] = ptx_sub(b, ptx_f32(b, -ldexpf(1, 23 - (int)place_of(&s->w.coding, k))), zero);
    return ptx_setp(b, PTX_LT, ptx_abs(b, zero), ptx_f32(b, 0x1p22f));
}

static void apart_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    ptx_val codes[CODE_COLUMNS];
    placed_codes(b, s, words, true, codes);
    for (unsigned k = 0; k < s->width; k += 1 + s->pairs) {
        ptx_val difference = ptx_add(b, value_of(b, s, codes, k), value_of(b, s, n->at[1], k));
        *out++ = ptx_mul(b, difference, value_of(b, s, n->at[0], k));
    }
}

static const code_way apart = {
    .numbers = 2, .is_guarded = true, .prepare = apart_prepare, .decode = apart_decode};

/* ---- Other codes: unscaled numbers by the format's own decode or by a table, then times scale ---- */

static ptx_val units_prepare(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                             ptx_val *numbers)
{
    (void)b, (void)s, (void)k;
    numbers[0] = group->scale;
    return (ptx_val){0};
}

/* Scales two columns at a time: by their scales, then by the global one. */
static void scale_pairs(ptx_builder *b, const columns *s, const ptx_val *units, const code_numbers *n,
                        ptx_val *out)
{
    ptx_val global = s->w.matrix.q.side.global_scale;
    for (unsigned k = 0; k < s->width; k += 2) {
        ptx_val scaled = ptx_mul(b, value_of(b, s, units, k), value_of(b, s, n->at[0], k));
        *out++ =
            global.kind == PTX_NOTHING ? scaled : ptx_mul(b, scaled, ptx_pack2(b, PTX_F32X2, global, global));
    }
}

static void scale_units(ptx_builder *b, const columns *s, const ptx_val *units, const code_numbers *n,
                        ptx_val *out)
{
    const quantized *q = &s->w.matrix.q;
    if (s->pairs && s->spec->stored.groups != QDNN_GROUPS_DEFAULT) {
        scale_pairs(b, s, units, n, out);
        return;
    }
    ptx_val scaled[CODE_COLUMNS];
    for (unsigned k = 0; k < s->width; k++) {
        const group_values group = {.scale = n->at[0][k]};
        scaled[k] = group_decode(b, &q->coding, &q->side, &group, units[k]);
    }
    for (unsigned k = 0; k < s->width; k += 1 + s->pairs)
        *out++ = value_of(b, s, scaled, k);
}

static void units_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    const coding *c = &s->w.coding;
    const codec *codec = c->format->codec;
    const codec_state *state = &s->w.matrix.q.state;
    ptx_val units[CODE_COLUMNS];
    for (unsigned k = 0; k < s->width; k++)
        if (code_bits(c) == 4)
            units[k] = codec->unit(b, c, state, words[0], position_of(c, k));
        else if (!codec->units_of_bytes)
            units[k] = codec->unit(b, c, state, words[k / QUAD], position_of(c, k));
        else if (k % QUAD == 0)
            codec->units_of_bytes(b, c, state, words[k / QUAD], &units[k]);
    scale_units(b, s, units, n, out);
}

static const code_way by_units = {.numbers = 1, .prepare = units_prepare, .decode = units_decode};

/* A table as in byte_table.h: an entry holds the numbers of a byte, two of 4 bits in the order of columns
 * or one of 8, and one byte permutation makes an address. Each thread of half a warp, or of a warp, reads
 * its own copy, so there are no bank conflicts. */
static void table_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    const unsigned each = 8 / code_bits(&s->w.coding);
    ptx_val units[CODE_COLUMNS];
    for (unsigned k = 0; k < s->width; k += each) {
        const unsigned byte = k / each;
        ptx_val offset = ptx_prmt(b, words[byte / 4], s->copy, ptx_u32(b, 0x5504 | (byte % 4) << 4));
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, ptx_add(b, offset, s->table), 0, units + k,
                   (int)each);
    }
    scale_units(b, s, units, n, out);
}

bool codes_have_raw_scales(const ptx_builder *b, const coding *c)
{
    const kernel_spec *spec = c->spec;
    return c->format->codec == &codec_e2m1 && spec->stored.scale == QDNN_SCALE_E4M3 &&
           !codes_have_one_group(spec) && spec->stored.group_rows == 1 &&
           spec->stored.scale_order == QDNN_SCALE_ORDER_DEFAULT &&
           spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE && codes_have_table(b, c) &&
           ptx_target(b)->number < 89;
}

static const code_way by_table = {
    .numbers = 1, .has_table = true, .prepare = units_prepare, .decode = table_decode};

/* Each thread fills all copies of one entry, in an order different from its neighbours'. */
void codes_open(ptx_builder *b, columns *s)
{
    enum { VECTORS = ENTRY_BYTES / LOAD_BYTES };
    const coding *c = &s->w.coding;
    const codec_state *state = &s->w.matrix.q.state;
    if (s->table.kind == PTX_NOTHING)
        return;
    const unsigned size = code_bits(c) == 4 ? 8 : 4;
    ptx_val tid = ptx_tid_x(b), entry[4];
    for (unsigned i = 0; i < 4; i++)
        entry[i] = i >= size / 4
                       ? entry[i % (size / 4)]
                       : c->format->codec->unit(b, c, state, tid, code_bits(c) == 4 ? position_of(c, i) : 0);
    for (unsigned i = 0; i < 4 && codes_have_raw_scales(b, c); i++)
        entry[i] = ptx_mul(b, entry[i], power_of_two(b, RAW_EXPONENT));
    ptx_val own =
        ptx_mad(b, ptx_and(b, tid, VECTORS - 1), LOAD_BYTES, ptx_mad(b, tid, ENTRY_PITCH, s->table));
    for (unsigned i = 0; i < VECTORS; i++) /* entries are aligned to their size */
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, i ? ptx_xor(b, own, (int)(i * LOAD_BYTES)) : own, 0,
                   entry, 4);
    s->copy = ptx_mul(b, ptx_and(b, s->lane, (int)(ENTRY_BYTES / size - 1)), (int)size);
}

/* ---- The choice of a decoder ---- */

static bool scale_is_narrow(const kernel_spec *spec)
{
    return spec->stored.scale == QDNN_SCALE_F16 || spec->stored.scale == QDNN_SCALE_BF16;
}

bool codes_have_one_group(const kernel_spec *spec)
{
    return spec->stored.groups == QDNN_GROUPS_DEFAULT || spec->stored.channels == 1;
}

/* The largest power of two that divides the group size, up to 2^16. */
unsigned codes_span(const kernel_spec *spec)
{
    const uint64_t size = spec->stored.group_size & (~spec->stored.group_size + 1);
    return size < 1u << 16 ? (unsigned)size : 1u << 16;
}

static bool groups_serve(const kernel_spec *spec)
{
    return codes_have_one_group(spec) ||
           (spec->stored.groups == QDNN_GROUPS_COLUMNS && !spec->stored.group_index && !spec->stored.nested &&
            codes_span(spec) >= SPAN_LEAST);
}

static const code_way *integer_way(const coding *c)
{
    const kernel_spec *spec = c->spec;
    switch (c->format->facts.zero_kind) {
    case QDNN_ZERO_NONE:
        return spec->stored.groups == QDNN_GROUPS_DEFAULT ? NULL : &fused;
    case QDNN_ZERO_POINT:
        return !columns_zero_is_integer(spec) ? NULL : scale_is_narrow(spec) ? &fused : &apart;
    default:
        return NULL;
    }
}

/* Null: there is none. (Targets from sm_89 on convert E4M3 in hardware, and targets with little shared
 * memory have no table: see code_way_for.) */
const code_way *code_way_of(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const unsigned bits = code_bits(c);
    const bool is_bytes =
        spec->stored.layout == QDNN_LAYOUT_BYTES || spec->stored.layout == QDNN_LAYOUT_WORDS_ROWS;
    if (format_is_plain(c->format) || (bits != 4 && bits != 8) || !groups_serve(spec) ||
        !(is_bytes || (spec->stored.layout == QDNN_LAYOUT_AWQ && bits == 4)))
        return NULL;
    if (c->format->codec == &codec_integer)
        return integer_way(c);
    if (format_has_zero(c->format) || spec->stored.layout == QDNN_LAYOUT_AWQ)
        return NULL;
    return bits == 4 || c->format->codec == &codec_e4m3 ? &by_table : &by_units;
}

bool codes_have_table(const ptx_builder *b, const coding *c)
{
    const ptx_sm *sm = ptx_target(b);
    return code_way_of(c)->has_table && sm && sm->shared_block > 64 * 1024 &&
           (code_bits(c) == 4 || sm->number < 89);
}

const code_way *code_way_for(const ptx_builder *b, const coding *c)
{
    return code_way_of(c)->has_table && !codes_have_table(b, c) ? &by_units : code_way_of(c);
}

bool codes_are_cheap(const coding *c)
{
    return c->spec->product.reduction == KERNEL_K_ROWS && code_way_of(c) != NULL;
}

unsigned codes_dynamic_bytes(const coding *c)
{
    return code_way_of(c)->has_table ? TABLE_BYTES : 0;
}

unsigned codes_x_exponent(const coding *c)
{
    return code_way_of(c)->x_exponent;
}

ptx_val codes_are_aligned(ptx_builder *b, const columns *s)
{
    return emit_aligned(b, s->w.codes, 4 * code_words(&s->w.coding));
}
