/* Scales of prepacked GGUF blocks: lane l loads the header of column n0 + l once per block and computes
 * scale and addend of each run of k that has its own; the lanes that need them fetch them by shuffles.
 * Which bits of a header a step needs is known at emit time. */
#include "kernels/tensor/stream.h"

/* ---- Headers ---- */

void stream_blocks_begin(ptx_builder *b, stream *s)
{
    const block_layout *layout = s->blocks;
    const unsigned bytes = block_header_bytes(layout);
    ptx_val units_n = emit_divide_up(b, s->args.outputs, UNIT_N), columns = ptx_shl(b, units_n, 4);
    ptx_val n = ptx_cvt(b, PTX_U64, s->my_n);
    ptx_val block = ptx_cvt(b, PTX_U64, ptx_mul(b, s->strip, (int)(STRIP / layout->elements)));
    ptx_val units_k = emit_divide_up(b, s->args.k, s->unit.elements);
    ptx_val codes = ptx_mul(b, ptx_mul(b, units_n, units_k), ptx_u64(b, s->unit.bytes));
    ptx_val first = ptx_add(b, s->args.all.operand[QDNN_OPERAND_CODES],
                            ptx_mad(b, ptx_mul(b, block, columns), ptx_u64(b, bytes), codes));
    s->headers = (block_headers){.words = ptx_at(b, first, n, 4), .columns = columns};
    if (bytes % 4)
        s->headers.tail =
            ptx_add(b, ptx_at(b, first, n, bytes % 4), ptx_mul(b, columns, ptx_u64(b, bytes / 4 * 4)));
    if (s->bits <= 1) /* these are not decoded as integers */
        return;
    s->bias = layout->bias;
    s->code_spec = *s->spec;
    s->code_spec.stored.code = QDNN_CODE_UNSIGNED;
    if (s->bias == 1u << (s->bits - 1)) {
        s->code_spec.stored.code = layout->codes->is_signed ? QDNN_CODE_TWOS_COMPLEMENT : QDNN_CODE_OFFSET;
        s->bias = 0;
    }
    s->codes = (coding){prepack_integers(s->bits), &s->code_spec};
}

block_headers stream_headers_var(ptx_builder *b, const stream *s)
{
    block_headers h = s->headers;
    h.words = ptx_var(b, h.words);
    if (h.tail.kind != PTX_NOTHING)
        h.tail = ptx_var(b, h.tail);
    return h;
}

void stream_headers_advance(ptx_builder *b, const stream *s, block_headers *h, unsigned k)
{
    const unsigned bytes = k / s->blocks->elements * block_header_bytes(s->blocks);
    ptx_val step = ptx_mul(b, h->columns, ptx_u64(b, bytes));
    ptx_assign(b, h->words, ptx_add(b, h->words, step));
    if (h->tail.kind != PTX_NOTHING)
        ptx_assign(b, h->tail, ptx_add(b, h->tail, step));
}

ptx_val stream_header_word(ptx_builder *b, const stream *s, const block_headers *h, unsigned block,
                           unsigned word)
{
    const unsigned bytes = block_header_bytes(s->blocks), tail = bytes % 4;
    const unsigned before = block * bytes + (word < bytes / 4 ? 4 * word : 0);
    ptx_val from = word < bytes / 4 ? h->words : h->tail;
    if (before)
        from = ptx_mad(b, h->columns, ptx_u64(b, before), from);
    if (word < bytes / 4)
        return ptx_ld_global_nc(b, PTX_U32, from, 0);
    return ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, tail == 2 ? PTX_U16 : PTX_U8, from, 0));
}

/* ---- Steps ---- */

static void load_header(ptx_builder *b, stream *s, const block_headers *h, unsigned block)
{
    const block_layout *layout = s->blocks;
    const unsigned all = (block_header_bytes(layout) + 3) / 4;
    for (unsigned i = 0; i < (layout->scales->header_words ? layout->scales->header_words : all); i++)
        s->header.words[i] = stream_header_word(b, s, h, block, i);
    block_header_open(b, layout, &s->header);
}

/* The f16 scale as a pair in the type of x. The numbers of TQ1_0 and Q1_0 are -1, 0 and 1, so their scales may be
 * rounded before the multiplication. */
static ptx_val short_scale(ptx_builder *b, const stream *s)
{
    ptx_val d = block_header_half(b, s->blocks, &s->header, s->blocks->at.scale);
    if (s->spec->data == QDNN_DATA_F16)
        return ptx_pack2(b, PTX_F16X2, d, d);
    return ptx_as(b, pair_type(s->spec->data), emit_narrow_pair(b, s->spec->data, s->header.d, s->header.d));
}

/* Distributes the scale as such a pair; it is not needed as f32. */
static void share_short(ptx_builder *b, stream *s)
{
    ptx_val pair = short_scale(b, s);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val lane = j ? ptx_add(b, s->g, (int)(8 * j)) : s->g;
        s->scale[j] = (column_scale){.pair.scale = stream_from_lane(b, pair, lane)};
        if (s->bias && !s->is_ternary)
            s->scale[j].pair.minus_zero = pair_constant(b, QDNN_DATA_F16, -(float)s->bias, -(float)s->bias);
    }
}

void stream_blocks_of_step(ptx_builder *b, stream *s, const block_headers *h, unsigned step, bool anew)
{
    const block_layout *layout = s->blocks;
    const block_scales *scales = layout->scales;
    const unsigned element = 16 * step % layout->elements,
                   extent = scales->extent ? scales->extent : layout->elements;
    if (element == 0 || anew)
        load_header(b, s, h, 16 * step / layout->elements);
    if (element % extent && !anew)
        return;
    if (block_pair_is_short(layout, s->spec->data) || s->is_ternary || s->bits == 1) {
        share_short(b, s);
        return;
    }
    block_scale made = scales->from_header(b, layout, &s->header, element);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val lane = j ? ptx_add(b, s->g, (int)(8 * j)) : s->g;
        s->scale[j] = (column_scale){.pair.first.scale = stream_from_lane(b, made.scale, lane),
                                     .addend = stream_from_lane(b, made.addend, lane)};
    }
}
