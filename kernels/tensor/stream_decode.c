/* From codes and scales to operand A. Codes of 4 bits, except integers that are scaled in 16 bits, are
 * looked up two at a time: a table has an entry of two numbers for each byte. Every lane (with f32, every
 * lane of half a warp) reads its own copy, so there are no bank conflicts. Entry e lies at 256 e, with its
 * copies side by side; one byte permutation makes an address. */
#include "kernels/tensor/stream.h"

enum { ENTRY_BYTES = BYTE_TABLE_PITCH };

/* ---- The table ---- */

stream_table stream_table_of(const format_row *format, const kernel_spec *spec)
{
    const coding c = {format, spec};
    const block_layout *blocks = block_layout_of(format);
    const bool is_short = blocks ? block_pair_is_short(blocks, spec->data) : pair_fits(&c, spec->data);
    if (prepack_bits(format) != 4 || (is_short && !format->codec->numbers)) /* integers need none */
        return TABLE_NONE;
    return is_short ? TABLE_OF_HALVES : TABLE_OF_F32;
}

/* Eight neighbouring threads store the copies of an entry, then those of the entry 32 further on. */
static void fill_table(ptx_builder *b, const stream *s, stream_table kind, const uint64_t bits[16])
{
    ptx_val numbers = ptx_table(b, PTX_CONST, "numbers", PTX_F32, bits, 16), tid = ptx_tid_x(b);
    ptx_val entry = ptx_shr(b, tid, 3),
            to = ptx_mad(b, entry, ENTRY_BYTES, ptx_shl(b, ptx_and(b, tid, 7), 4));
    ptx_val upper = ptx_at(b, numbers, ptx_shr(b, entry, 4), 4);
    ptx_val low = ptx_ld_const(b, PTX_F32, ptx_at(b, numbers, ptx_and(b, entry, 15), 4), 0);
    to = ptx_add(b, to, s->table.base);
    for (unsigned i = 0; i < 8; i++) {
        ptx_val high = ptx_ld_const(b, PTX_F32, upper, (int)(8 * i)), copies[4] = {low, high, low, high};
        if (s->is_stored && nibbles_are_swapped(&s->codes))
            copies[0] = copies[2] = high, copies[1] = copies[3] = low;
        ptx_val first = copies[0], second = copies[1];
        for (unsigned c = 0; c < 4 && kind == TABLE_OF_HALVES; c++)
            copies[c] = c ? copies[0] : emit_narrow_pair(b, s->spec->data, first, second);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(i * 32 * ENTRY_BYTES), copies, 4);
    }
}

stream_beside stream_beside_of(const format_row *format, const kernel_spec *spec)
{
    const block_layout *blocks = block_layout_of(format);
    const unsigned codebook = blocks ? block_codebook_bytes(blocks) : 0;
    return (stream_beside){.has_table = stream_table_of(format, spec) != TABLE_NONE,
                           .lines = codebook ? GRID_LINES_BYTES : 0,
                           .codebook = codebook};
}

void stream_decode_begin(ptx_builder *b, stream *s, const format_row *format)
{
    const stream_table kind = stream_table_of(format, s->spec);
    uint64_t bits[16];
    ptx_val shared = ptx_shared_dynamic(b, 1024);
    s->x_shared = shared;
    if (kind == TABLE_NONE)
        return;
    const unsigned copy = kind == TABLE_OF_F32 ? 8 : 4;
    code_numbers_of(format, s->spec, bits);
    s->table.base = shared;
    s->x_shared = ptx_add(b, shared, ENTRY_BYTES / 2);
    s->table.copy = ptx_mul(b, ptx_and(b, s->lane, (int)(ENTRY_BYTES / 2 / copy - 1)), (int)copy);
    fill_table(b, s, kind, bits);
}

/* The entries are pairs of halves. */
static void decode_by_halves(ptx_builder *b, const stream *s, ptx_val word, const column_scale *scales,
                             ptx_val a[4])
{
    const qdnnDataType_t type = s->spec->data;
    for (unsigned i = 0; i < 4; i++) {
        ptx_val scale = scales[i % 2].pair.scale;
        a[i] = ptx_ld_shared(b, PTX_U32, byte_table_address(b, &s->table, word, i), 0);
        if (scale.kind != PTX_NOTHING)
            a[i] = ptx_as(b, PTX_U32, pair_mul(b, type, ptx_as(b, pair_type(type), a[i]), scale));
    }
}

static ptx_val value_of(ptx_builder *b, const stream *s, const column_scale *c, ptx_val number)
{
    if (!s->blocks)
        return group_decode(b, &s->codes, &s->m.q.side, &c->pair.first, number);
    if (c->addend.kind == PTX_NOTHING)
        return ptx_mul(b, number, c->pair.first.scale);
    return ptx_fma(b, number, c->pair.first.scale, c->addend);
}

/* Either each byte of the step's word is a pair; or bytes 0 and 1 have the lower halves of pairs 0 and 1,
 * and of 2 and 3, and bytes 2 and 3 have the upper ones. */
static void decode_by_table(ptx_builder *b, const stream *s, ptx_val word, const column_scale *scales,
                            ptx_val a[4])
{
    const bool byte_pairs = s->is_stored || (prepack_has_byte_pairs(s->codes.format) && !s->blocks);
    ptx_val numbers[4][2];
    for (unsigned byte = 0; byte < 4; byte++) {
        byte_table_load(b, &s->table, word, byte, numbers[byte], 2);
    }
    for (unsigned i = 0; i < 4; i++) {
        const column_scale *c = &scales[i % 2];
        ptx_val low = byte_pairs ? numbers[i][0] : numbers[i / 2][i % 2],
                high = byte_pairs ? numbers[i][1] : numbers[i / 2 + 2][i % 2];
        a[i] = emit_narrow_pair(b, s->spec->data, value_of(b, s, c, low), value_of(b, s, c, high));
    }
}

/* ---- Others ---- */

static code_place code_in(ptx_builder *b, const stream *s, const ptx_val *words, unsigned pair, unsigned h)
{
    const map order = prepack_order(s->bits, false);
    const unsigned bit = map_value(&order, "bit", pair, h);
    if (bit % 32 + s->bits <= 32)
        return (code_place){words[bit / 32], bit % 32};
    return (code_place){ptx_shf_r(b, words[bit / 32], words[bit / 32 + 1], bit % 32), 0};
}

static ptx_val decode_block_pair(ptx_builder *b, const stream *s, const column_scale *c, code_place low,
                                 code_place high)
{
    const codec *codec = s->codes.format->codec;
    const qdnnDataType_t type = s->spec->data;
    const code_place places[2] = {low, high};
    if (block_pair_is_short(s->blocks, type))
        return ptx_as(
            b, PTX_U32,
            ptx_mul(b, codec->pair(b, &s->codes, type, c->pair.minus_zero, low, high), c->pair.scale));
    ptx_val values[2];
    for (unsigned h = 0; h < 2; h++) {
        ptx_val number = codec->unit(b, &s->codes, NULL, places[h].word, places[h].position);
        if (s->bias)
            number = ptx_sub(b, number, ptx_f32(b, (float)s->bias));
        values[h] = value_of(b, s, c, number);
    }
    return emit_narrow_pair(b, type, values[0], values[1]);
}

/* Q1_0: bits 0 and 16 of the word, after a shift by `pair`, are 1 where the pair's values are the scale, and 0 where they are minus it. */
static ptx_val decode_signs(ptx_builder *b, ptx_val word, unsigned pair, ptx_val scale)
{
    ptx_val signs = pair < 15 ? ptx_shl(b, word, (int)(15 - pair)) : word;
    return ptx_lop3(b, signs, ptx_u32(b, 0x80008000), ptx_as(b, PTX_U32, scale),
                    (~PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C);
}

void stream_decode_step(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step,
                        ptx_val a[4])
{
    const ptx_val *words = w->at[q];
    const column_scale *scales = &s->scale[2 * q];
    if (s->is_bare) {
        (s->spec->product.x_fp8 ? stream_fp8_step : stream_plain_step)(b, s, words, step, a);
        return;
    }
    if (s->is_ternary) {
        stream_ternary_step(b, s, q, a);
        return;
    }
    if (s->is_grid) {
        stream_grid_step(b, s, q, step, a);
        return;
    }
    if (s->bits == 1) {
        for (unsigned i = 0; i < 4; i++)
            a[i] = decode_signs(b, words[0], 4 * step + i, scales[i % 2].pair.scale);
        return;
    }
    if (s->table.base.kind != PTX_NOTHING) {
        ptx_val word = s->is_stored ? stream_stored_word(b, s, w, q, step) : words[step];
        if (!s->blocks && stream_table_of(s->codes.format, s->spec) == TABLE_OF_HALVES)
            decode_by_halves(b, s, word, scales, a);
        else
            decode_by_table(b, s, word, scales, a);
        return;
    }
    if (s->is_stored) {
        const unsigned first = nibbles_are_swapped(&s->codes) ? 4 : 0;
        ptx_val pairs[4];
        stream_stored_pairs(b, s, w, q, step, pairs);
        for (unsigned i = 0; i < 4; i++)
            a[i] = pair_decode(b, &s->m.q, s->spec->data, &scales[i % 2].pair, (code_place){pairs[i], first},
                               (code_place){pairs[i], 20 - first});
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        code_place low = code_in(b, s, words, 4 * step + i, 0), high = code_in(b, s, words, 4 * step + i, 1);
        a[i] = s->blocks ? decode_block_pair(b, s, &scales[i % 2], low, high)
                         : pair_decode(b, &s->m.q, s->spec->data, &scales[i % 2].pair, low, high);
    }
}
