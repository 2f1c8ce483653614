/* Keys and values as a kernel reads them: units of 4 or 8 elements, lane by lane. */
#include "kernels/attention/attention.h"
#include "kernels/formats/pairs.h"

static bool is_blocks(const kv_reader *r)
{
    return !r->array->spec.kv.type && format_is_blocks(r->array->row->format);
}

static qdnnDataType_t plain_type(const kv_reader *r)
{
    return (qdnnDataType_t)r->array->spec.kv.type;
}

static unsigned element_bits(const kv_reader *r)
{
    return plain_type(r) ? 8 * element_bytes(plain_type(r)) : r->array->row->format->facts.bits;
}

static unsigned unit_bytes(const kv_reader *r)
{
    return r->elements * element_bits(r) / 8;
}

/* Bytes from one turn of a lane to the next. */
static unsigned turn_bytes(const kv_reader *r)
{
    const block_layout *layout = block_layout_of(r->array->row->format);
    return is_blocks(r) ? r->lanes * r->elements / layout->elements * layout->bytes
                        : r->lanes * unit_bytes(r);
}

unsigned kv_turns(const kv_reader *r)
{
    return (unsigned)ceil_div(r->units, r->lanes);
}

bool kv_turn_is_ragged(const kv_reader *r, unsigned turn)
{
    return (turn + 1) * r->lanes > r->units;
}

codec_state kv_open(ptx_builder *b, const kv_array *array)
{
    const format_row *format = array->row->format;
    const coding c = {format, &array->spec};
    if (array->spec.kv.type)
        return (codec_state){0};
    if (format_is_blocks(format))
        return block_open(b, block_layout_of(format));
    return format->codec->open ? format->codec->open(b, &c) : (codec_state){0};
}

/* ---- Opening ---- */

static void begin_blocks(ptx_builder *b, kv_reader *r)
{
    const block_layout *layout = block_layout_of(r->array->row->format);
    const unsigned in_block = layout->elements / r->elements, runs = layout->sections[0].span / r->elements;
    ptx_val unit = ptx_and(b, r->lane, in_block - 1), run = unit;
    if (layout->sections[0].strands > 1) {
        r->second = ptx_setp(b, PTX_GE, unit, ptx_u32(b, runs));
        run = ptx_and(b, unit, runs - 1);
    }
    r->run = block_place_of_run(b, layout, 0, run, r->elements);
    r->run.space = PTX_GLOBAL;
    r->run.align = block_align(layout);
    ptx_val block = ptx_shr(b, r->lane, ceil_log2(in_block));
    r->offset = ptx_cvt(b, PTX_U64, ptx_mul(b, block, layout->bytes));
}

static void begin_elements(ptx_builder *b, kv_reader *r)
{
    const unsigned bytes = unit_bytes(r), align = bytes < LOAD_BYTES ? bytes : LOAD_BYTES;
    r->offset = ptx_cvt(b, PTX_U64, ptx_mul(b, r->lane, bytes));
    if (align > (plain_type(r) ? element_bytes(plain_type(r)) : 1))
        r->whole = emit_aligned(b, r->array->start, align);
}

static void begin_scales(ptx_builder *b, kv_reader *r, ptx_val head)
{
    const kernel_spec *spec = &r->array->spec;
    const unsigned bytes = scale_bytes(spec->stored.scale);
    r->q = (quantized){.coding = {r->array->row->format, spec}, .state = r->q.state};
    r->q.side.scale = r->array->args.operand[QDNN_OPERAND_SCALE];
    if (spec->kv.scales == KERNEL_KV_BY_HEAD || spec->kv.scales == KERNEL_KV_BY_CACHE)
        r->scale = group_load_scale(b, &r->q.coding, &r->q.side, kv_scale_index(b, r->array, NULL, head));
    else if (spec->kv.scales == KERNEL_KV_BY_GROUP)
        r->group =
            ptx_cvt(b, PTX_U64,
                    ptx_mul(b, ptx_shr(b, r->lane, ceil_log2(spec->stored.group_size / r->elements)), bytes));
}

kv_reader kv_reader_begin(ptx_builder *b, const kv_array *array, const codec_state *state, unsigned elements,
                          unsigned lanes, ptx_val lane, ptx_val head)
{
    kv_reader r = {.array = array,
                   .elements = elements,
                   .lanes = lanes,
                   .units = (unsigned)ceil_div(array->spec.rows.columns, elements),
                   .lane = lane};
    r.q.state = *state;
    if (is_blocks(&r))
        begin_blocks(b, &r);
    else
        begin_elements(b, &r);
    if (!plain_type(&r) && !is_blocks(&r))
        begin_scales(b, &r, head);
    return r;
}

kv_head kv_head_of(ptx_builder *b, const kv_reader *r, const kv_slot *slot, ptx_val head)
{
    kv_head h = {.at = kv_address(b, r->array, kv_element(b, r->array, slot, head))};
    if (r->array->groups == 0)
        return h;
    ptx_val index = kv_scale_index(b, r->array, slot, head);
    if (r->array->spec.kv.scales == KERNEL_KV_BY_TOKEN)
        h.scale = group_load_scale(b, &r->q.coding, &r->q.side, index);
    else
        h.scale = ptx_at(b, r->q.side.scale, index, scale_bytes(r->array->spec.stored.scale));
    return h;
}

/* ---- Loading ---- */

unsigned kv_unit_words(const kv_reader *r)
{
    return is_blocks(r) ? r->elements / 2 : (unsigned)ceil_div(unit_bytes(r), 4);
}

static void load_aligned(ptx_builder *b, const kv_reader *r, ptx_val at, int offset, const ptx_val *words)
{
    const unsigned bytes = unit_bytes(r), count = kv_unit_words(r);
    if (bytes == 2) {
        ptx_val half = ptx_ld(b, PTX_GLOBAL, PTX_NC, PTX_U16, at, offset);
        ptx_assign(b, words[0], ptx_cvt(b, PTX_U32, half));
        return;
    }
    for (unsigned i = 0; i < count; i += 4)
        ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, at, offset + (int)(4 * i), &words[i],
                        count - i < 4 ? (int)(count - i) : 4);
}

/* By the smallest pieces that an element's alignment allows. */
static void load_pieces(ptx_builder *b, const kv_reader *r, ptx_val at, int offset, const ptx_val *words)
{
    const unsigned piece = plain_type(r) ? element_bytes(plain_type(r)) : 1, bytes = unit_bytes(r);
    for (unsigned w = 0; w < kv_unit_words(r); w++) {
        ptx_val word = {0};
        for (unsigned byte = 4 * w; byte < 4 * w + 4 && byte < bytes; byte += piece) {
            ptx_val part = ptx_ld(b, PTX_GLOBAL, PTX_NC,
                                  piece == 1   ? PTX_U8
                                  : piece == 2 ? PTX_U16
                                               : PTX_U32,
                                  at, offset + (int)byte);
            part = piece == 2 ? ptx_cvt(b, PTX_U32, part) : part;
            word = byte % 4 ? ptx_or(b, word, ptx_shl(b, part, 8 * (byte % 4))) : part;
        }
        ptx_assign(b, words[w], word);
    }
}

/* The address of a lane's first unit, and the offset of a turn. A lane that does not have a turn reads its first unit again. */
ptx_val kv_unit_address(ptx_builder *b, const kv_reader *r, const kv_place *place, int *offset)
{
    const unsigned turn = place->turn, step = turn_bytes(r);
    ptx_val start = ptx_add(b, place->head.at, r->offset);
    *offset = (int)(turn * step);
    if (!kv_turn_is_ragged(r, turn))
        return start;
    *offset = 0;
    ptx_val more = ptx_u64(b, (uint64_t)turn * step);
    ptx_val has = ptx_setp(b, PTX_LT, r->lane, ptx_u32(b, r->units - turn * r->lanes));
    /* in the first turn, a lane without a unit reads that of lane 0 */
    ptx_val otherwise = turn ? start : place->head.at;
    return ptx_selp(b, ptx_add(b, start, more), otherwise, has);
}

static void fetch_blocks(ptx_builder *b, const kv_reader *r, const kv_place *place, kv_unit *unit)
{
    int offset;
    block_place run = r->run;
    ptx_val at = kv_unit_address(b, r, place, &offset);
    run.block = offset ? ptx_add(b, at, ptx_u64(b, (uint64_t)offset)) : at;
    block_fetch(b, block_layout_of(r->array->row->format), &run, &unit->run);
}

static void fetch_scale(ptx_builder *b, const kv_reader *r, const kv_place *place, kv_unit *unit)
{
    const kernel_spec *spec = &r->array->spec;
    const unsigned bytes = scale_bytes(spec->stored.scale);
    unit->scale = r->scale.kind != PTX_NOTHING ? r->scale : place->head.scale;
    if (r->group.kind == PTX_NOTHING)
        return;
    int offset = (int)(place->turn * r->lanes * r->elements / spec->stored.group_size * bytes);
    ptx_val at = ptx_add(b, place->head.scale, r->group);
    if (kv_turn_is_ragged(r, place->turn)) {
        ptx_val has = ptx_setp(b, PTX_LT, r->lane, ptx_u32(b, r->units - place->turn * r->lanes));
        at = ptx_selp(b, ptx_add(b, at, ptx_u64(b, (uint64_t)offset)), place->head.scale, has);
        offset = 0;
    }
    unit->scale = emit_load_scale(b, spec->stored.scale, at, offset);
}

void kv_fetch(ptx_builder *b, const kv_reader *r, const kv_place *places, unsigned count, kv_unit *units)
{
    ptx_val at[UNITS_AT_ONCE];
    int offset[UNITS_AT_ONCE];
    for (unsigned i = 0; i < count && is_blocks(r); i++)
        fetch_blocks(b, r, &places[i], &units[i]);
    if (is_blocks(r))
        return;
    for (unsigned i = 0; i < count; i++) {
        at[i] = kv_unit_address(b, r, &places[i], &offset[i]);
        for (unsigned w = 0; w < kv_unit_words(r); w++)
            units[i].words[w] = ptx_var_of(b, PTX_U32);
    }
    if (r->whole.kind != PTX_NOTHING) {
        ptx_uniform(b);
        ptx_if(b, r->whole);
    }
    for (unsigned i = 0; i < count; i++)
        load_aligned(b, r, at[i], offset[i], units[i].words);
    if (r->whole.kind != PTX_NOTHING) {
        ptx_else(b);
        for (unsigned i = 0; i < count; i++)
            load_pieces(b, r, at[i], offset[i], units[i].words);
        ptx_end_if(b);
    }
    for (unsigned i = 0; i < count && !plain_type(r); i++)
        fetch_scale(b, r, &places[i], &units[i]);
}

/* ---- Numbers ---- */

/* The strand of a block that has the unit. */
static block_strand strand_of(ptx_builder *b, const kv_reader *r, const kv_unit *unit)
{
    const block_layout *layout = block_layout_of(r->array->row->format);
    block_run run = unit->run;
    block_open_run(b, &r->q.state, &run);
    block_strand strand = block_strand_of(b, layout, &run, 0);
    if (r->second.kind == PTX_NOTHING)
        return strand;
    block_strand second = block_strand_of(b, layout, &run, 1);
    return block_strand_select(b, &second, &strand, r->elements, r->second);
}

static void decode_blocks(ptx_builder *b, const kv_reader *r, const kv_unit *unit, ptx_val *x)
{
    const block_layout *layout = block_layout_of(r->array->row->format);
    const block_strand strand = strand_of(b, r, unit);
    for (unsigned i = 0; i < r->elements; i++)
        x[i] = block_decode(b, layout, &r->q.state, &strand, i);
}

static void decode_codes(ptx_builder *b, const kv_reader *r, const kv_unit *unit, ptx_val *x)
{
    const chunk_groups groups = {.first = {.scale = unit->scale}};
    ptx_val quads[UNIT_MAX / QUAD];
    for (unsigned i = 0; i < r->elements / QUAD; i++) {
        const unsigned bit = i * QUAD * element_bits(r);
        quads[i] = bit % 32 ? ptx_shr(b, unit->words[bit / 32], bit % 32) : unit->words[bit / 32];
    }
    chunk_decode(b, &r->q, &groups, quads, r->elements, x);
}

void kv_decode(ptx_builder *b, const kv_reader *r, const kv_unit *unit, unsigned turn, ptx_val *x)
{
    if (is_blocks(r))
        decode_blocks(b, r, unit, x);
    else if (!plain_type(r))
        decode_codes(b, r, unit, x);
    for (unsigned w = 0; plain_type(r) && w < kv_unit_words(r); w++)
        emit_widen_word(b, plain_type(r), unit->words[w], &x[w * 4 / element_bytes(plain_type(r))]);
    if (!kv_turn_is_ragged(r, turn))
        return;
    ptx_val has = ptx_setp(b, PTX_LT, r->lane, ptx_u32(b, r->units - turn * r->lanes));
    for (unsigned i = 0; i < r->elements; i++)
        x[i] = ptx_selp(b, x[i], ptx_f32(b, 0), has);
}

static void decode_block_pairs(ptx_builder *b, const kv_reader *r, const kv_unit *unit, qdnnDataType_t type,
                               ptx_val *pairs)
{
    const block_layout *layout = block_layout_of(r->array->row->format);
    const block_strand strand = strand_of(b, r, unit);
    ptx_val scale = block_pair_scale(b, layout, type, &strand);
    for (unsigned i = 0; i < r->elements; i += 2)
        pairs[i / 2] = block_decode_pair(b, layout, &r->q.state, type, &strand, scale, i);
}

static void decode_code_pairs(ptx_builder *b, const kv_reader *r, const kv_unit *unit, qdnnDataType_t type,
                              ptx_val *pairs)
{
    const unsigned bits = element_bits(r);
    const group_values group = {.scale = unit->scale};
    const pair_group g = pair_group_of(b, &r->q, type, &group, &group);
    for (unsigned i = 0; i < r->elements; i += 2) {
        ptx_val word = unit->words[i * bits / 32];
        const code_place first = {word, i * bits % 32}, second = {word, i * bits % 32 + bits};
        pairs[i / 2] = pair_decode(b, &r->q, type, &g, first, second);
    }
}

void kv_decode_pairs(ptx_builder *b, const kv_reader *r, const kv_unit *unit, qdnnDataType_t type,
                     ptx_val *pairs)
{
    if (is_blocks(r)) {
        decode_block_pairs(b, r, unit, type, pairs);
        return;
    }
    if (!plain_type(r)) {
        decode_code_pairs(b, r, unit, type, pairs);
        return;
    }
    for (unsigned i = 0; i < r->elements / 2; i++) {
        ptx_val x[UNIT_MAX];
        const unsigned in_word = 4 / element_bytes(plain_type(r)), first = 2 * i / in_word;
        if (plain_type(r) == type) {
            pairs[i] = unit->words[i];
            continue;
        }
        for (unsigned w = first; w < first + 2 / in_word; w++)
            emit_widen_word(b, plain_type(r), unit->words[w], &x[(w - first) * in_word]);
        pairs[i] = emit_narrow_pair(b, type, x[0], x[1]);
    }
}
