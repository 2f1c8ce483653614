/* Codes of 4 and 8 bits that lie along N, as f32: AWQ's words, bytes, words in rows. The columns of a
 * thread are neighbouring codes of a row of the matrix, in one or two words; so a column's code has the
 * same position in every row, and decoding needs only a few numbers per column and group. */
#include "kernels/gemm/columns_codes.h"

enum { SPAN_LEAST = 16 /* k per span, at least */ };

/* ---- Where codes are ---- */

unsigned code_bits(const coding *c)
{
    return c->format->facts.bits;
}

/* Whether two threads share a word. */
bool code_is_half(const coding *c)
{
    return codes_are_nibbles(c) && code_width(c) == QUAD;
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
    if (codes_are_bytes(c))
        return quad_position(c, k % QUAD);
    const bool is_awq = c->spec->stored.layout == QDNN_LAYOUT_AWQ;
    return (is_awq ? stream_position(4, true, k % QUAD) : quad_position(c, k % QUAD)) +
           k / QUAD * code_quad_distance(c);
}

/* Column k, or the pair of columns k and k + 1 where sums are pairs. */
static ptx_val value_of(ptx_builder *b, const columns *s, const ptx_val *of, unsigned k)
{
    return s->pairs ? ptx_pack2(b, PTX_F32X2, of[k], of[k + 1]) : of[k];
}

/* ---- Integers decoded where they lie (kernels/formats/placed.h): each column has its own place and numbers ---- */

static ptx_val placed_numbers(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                              ptx_val *numbers)
{
    const coding *c = &s->w.coding;
    const unsigned place = placed_at(c, placed_moves_one(c), position_of(c, k));
    return placed_prepare(b, code_way_of(c)->placed, c, group, &place, 1, numbers);
}

static void placed_row(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                       ptx_val *out)
{
    const coding *c = &s->w.coding;
    const placed_decode *d = code_way_of(c)->placed;
    const placed_moves *moves = placed_moves_one(c);
    const unsigned of_word = s->width / code_words(c);
    placed_word from[CODE_WORDS];
    ptx_val codes[CODE_COLUMNS];
    for (unsigned w = 0; w < code_words(c); w++)
        from[w] = placed_word_of(b, moves, words[w]);
    for (unsigned k = 0; k < s->width; k++) {
        const unsigned position = position_of(c, k);
        ptx_val word = from[k / of_word].copy[moves->of[position / code_bits(c)]];
        codes[k] = placed_code(b, c, word, placed_at(c, moves, position), d->is_bare);
    }
    for (unsigned k = 0; k < s->width; k += 1 + s->pairs) {
        const ptx_val numbers[2] = {value_of(b, s, n->at[0], k), value_of(b, s, n->at[1], k)};
        *out++ = placed_value(b, d, value_of(b, s, codes, k), numbers, 1, 0);
    }
}

#define PLACED(how, power)                                                                                   \
    {                                                                                                        \
        .numbers = 2, .x_exponent = power, .is_guarded = true, .placed = &how, .prepare = placed_numbers,    \
        .decode = placed_row                                                                                 \
    }
static const code_way fused = PLACED(placed_fused, PLACED_X_EXPONENT), apart = PLACED(placed_apart, 0);

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
    ptx_val units[CODE_COLUMNS];
    for (unsigned k = 0; k < s->width; k += QUAD) {
        unsigned positions[QUAD];
        for (unsigned i = 0; i < QUAD; i++)
            positions[i] = position_of(c, k + i);
        quad_units(b, c, &s->w.matrix.q.state, words[codes_are_bytes(c) ? k / QUAD : 0], positions,
                   &units[k]);
    }
    scale_units(b, s, units, n, out);
}

static const code_way by_units = {.numbers = 1, .prepare = units_prepare, .decode = units_decode};

static void table_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    const unsigned each = 8 / code_bits(&s->w.coding);
    ptx_val units[CODE_COLUMNS];
    for (unsigned k = 0; k < s->width; k += each) {
        const unsigned byte = k / each;
        byte_table_load(b, &s->table, words[byte / 4], byte % 4, units + k, each);
    }
    scale_units(b, s, units, n, out);
}

bool codes_have_raw_scales(const ptx_builder *b, const coding *c)
{
    const kernel_spec *spec = c->spec;
    return e4m3_scales_stay_raw(b, c) && !codes_have_one_group(spec) && spec->stored.group_rows == 1 &&
           spec->stored.scale_order == QDNN_SCALE_ORDER_DEFAULT &&
           spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE && codes_have_table(b, c);
}

static const code_way by_table = {
    .numbers = 1, .has_table = true, .prepare = units_prepare, .decode = table_decode};

void codes_open(ptx_builder *b, columns *s)
{
    const coding *c = &s->w.coding;
    const bool swapped = position_of(c, 0) > 0;
    if (s->table.base.kind != PTX_NOTHING)
        s->table = code_table_fill(b, &s->w.matrix.q, s->table.base, COLUMNS_WARPS * WARP, swapped,
                                   codes_have_raw_scales(b, c) ? RAW_SCALE_EXPONENT : 0);
}

/* ---- The choice of a decoder ---- */

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
        return !zero_is_integer(spec) ? NULL : scale_is_narrow(spec) ? &fused : &apart;
    default:
        return NULL;
    }
}

/* Null: there is none. (Targets from sm_89 on convert E4M3 in hardware, and targets with little shared
 * memory have no table: see code_way_for.) */
const code_way *code_way_of(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const bool is_bytes =
        spec->stored.layout == QDNN_LAYOUT_BYTES || spec->stored.layout == QDNN_LAYOUT_WORDS_ROWS;
    if (format_is_plain(c->format) || !(codes_are_nibbles(c) || codes_are_bytes(c)) || !groups_serve(spec) ||
        !(is_bytes || (spec->stored.layout == QDNN_LAYOUT_AWQ && codes_are_nibbles(c))))
        return NULL;
    if (c->format->codec->is_integer)
        return integer_way(c);
    if (format_has_zero(c->format) || spec->stored.layout == QDNN_LAYOUT_AWQ)
        return NULL;
    return c->format->codec->numbers || c->format->codec->is_looked_up ? &by_table : &by_units;
}

bool codes_have_table(const ptx_builder *b, const coding *c)
{
    const ptx_sm *sm = ptx_target(b);
    return code_way_of(c)->has_table && sm && sm->shared_block > 64 * 1024 &&
           !(c->format->codec->has_pair && c->format->codec->has_pair(b));
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
    return code_way_of(c)->has_table ? BYTE_TABLE_BYTES : 0;
}

unsigned codes_x_exponent(const coding *c)
{
    return code_way_of(c)->x_exponent;
}

ptx_val codes_are_aligned(ptx_builder *b, const columns *s)
{
    return emit_aligned(b, s->w.codes, 4 * code_words(&s->w.coding));
}
