/* Scales of prepacked GGUF blocks: lane l loads the header of column n0 + l once per block and computes
 * scale and addend of each run of k that has its own; the lanes that need them fetch them by shuffles.
 * Which bits of a header a step needs is known at emit time. */
#include "kernels/tensor/stream.h"

/* ---- Headers ---- */

void stream_blocks_begin(ptx_builder *b, stream *s)
{
    const block_layout *layout = s->blocks;
    const unsigned bytes = prepack_header_bytes(layout);
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
    s->bias = layout->bias;
    s->code_spec = *s->spec;
    s->code_spec.code = QDNN_CODE_UNSIGNED;
    if (s->bias == 1u << (s->bits - 1)) {
        s->code_spec.code = layout->codes == &codes_bytes ? QDNN_CODE_TWOS_COMPLEMENT : QDNN_CODE_OFFSET;
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
    const unsigned bytes = k / s->blocks->elements * prepack_header_bytes(s->blocks);
    ptx_val step = ptx_mul(b, h->columns, ptx_u64(b, bytes));
    ptx_assign(b, h->words, ptx_add(b, h->words, step));
    if (h->tail.kind != PTX_NOTHING)
        ptx_assign(b, h->tail, ptx_add(b, h->tail, step));
}

static ptx_val load_word(ptx_builder *b, const stream *s, const block_headers *h, unsigned block,
                         unsigned word)
{
    const unsigned bytes = prepack_header_bytes(s->blocks), tail = bytes % 4;
    const unsigned before = block * bytes + (word < bytes / 4 ? 4 * word : 0);
    ptx_val from = word < bytes / 4 ? h->words : h->tail;
    if (before)
        from = ptx_mad(b, h->columns, ptx_u64(b, before), from);
    if (word < bytes / 4)
        return ptx_ld_global_nc(b, PTX_U32, from, 0);
    return ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, tail == 2 ? PTX_U16 : PTX_U8, from, 0));
}

/* ---- Fields of the current header ---- */

/* `bits` bits of a field, from `bit` of byte `byte` of the block on: u32. */
static ptx_val field(ptx_builder *b, const stream *s, unsigned byte, unsigned bit, unsigned bits)
{
    const unsigned place = prepack_header_place(s->blocks, byte + bit / 8),
                   position = place % 4 * 8 + bit % 8;
    ptx_val word = s->header[place / 4];
    if (position == 0 && bits == 32)
        return word;
    return position + bits == 32 ? ptx_shr(b, word, (int)position) : ptx_bfe(b, word, position, bits);
}

static ptx_val half(ptx_builder *b, const stream *s, unsigned byte)
{
    const unsigned place = prepack_header_place(s->blocks, byte);
    ptx_val halves[2];
    ptx_unpack(b, PTX_F16, s->header[place / 4], halves, 2);
    return halves[place % 4 / 2];
}

static ptx_val times_integer(ptx_builder *b, ptx_val d, ptx_val integer)
{
    return ptx_mul(b, d, ptx_cvt(b, PTX_F32, integer));
}

/* ---- Scales, by kind: f32, for the elements from `element` on ---- */

typedef struct made_scale {
    ptx_val scale, addend; /* empty: none */
} made_scale;

static made_scale make_d(ptx_builder *b, const stream *s, unsigned element)
{
    (void)b, (void)element;
    return (made_scale){.scale = s->d};
}

static made_scale make_f16_min(ptx_builder *b, const stream *s, unsigned element)
{
    (void)b, (void)element;
    return (made_scale){.scale = s->d, .addend = s->second};
}

static made_scale make_f32(ptx_builder *b, const stream *s, unsigned element)
{
    (void)element;
    return (made_scale){.scale = ptx_as(b, PTX_F32, field(b, s, s->blocks->at.scale, 0, 32))};
}

static made_scale make_e8m0(ptx_builder *b, const stream *s, unsigned element)
{
    (void)element;
    return (made_scale){.scale = block_half_of_e8m0(b, field(b, s, s->blocks->at.scale, 0, 8))};
}

static made_scale make_ue4m3(ptx_builder *b, const stream *s, unsigned element)
{
    return (made_scale){.scale =
                            block_half_of_ue4m3(b, field(b, s, s->blocks->at.scales + element / 16, 0, 8))};
}

static made_scale with_minimum(ptx_builder *b, const stream *s, ptx_val scale, ptx_val minimum)
{
    return (made_scale){.scale = times_integer(b, s->d, scale),
                        .addend = ptx_neg(b, times_integer(b, s->second, minimum))};
}

static made_scale make_q2_k(ptx_builder *b, const stream *s, unsigned element)
{
    const unsigned byte = s->blocks->at.scales + element / 16;
    return with_minimum(b, s, field(b, s, byte, 0, 4), field(b, s, byte, 4, 4));
}

static ptx_val six_bits(ptx_builder *b, ptx_val upper, ptx_val lower)
{
    return ptx_or(b, lower, ptx_shl(b, upper, 4));
}

static made_scale less_32(ptx_builder *b, const stream *s, ptx_val upper, ptx_val lower)
{
    ptx_val scale = ptx_as(b, PTX_S32, six_bits(b, upper, lower));
    return (made_scale){.scale = times_integer(b, s->d, ptx_sub(b, scale, 32))};
}

static made_scale make_q3_k(ptx_builder *b, const stream *s, unsigned element)
{
    const unsigned i = element / 16, scales = s->blocks->at.scales;
    return less_32(b, s, field(b, s, scales + 8 + i % 4, i / 4 * 2, 2),
                   field(b, s, scales + i % 8, i / 8 * 4, 4));
}

static made_scale make_q4_k(ptx_builder *b, const stream *s, unsigned element)
{
    const unsigned i = element / 32, scales = s->blocks->at.scales;
    if (i < 4)
        return with_minimum(b, s, field(b, s, scales + i, 0, 6), field(b, s, scales + i + 4, 0, 6));
    ptx_val scale = six_bits(b, field(b, s, scales + i - 4, 6, 2), field(b, s, scales + i + 4, 0, 4));
    ptx_val minimum = six_bits(b, field(b, s, scales + i, 6, 2), field(b, s, scales + i + 4, 4, 4));
    return with_minimum(b, s, scale, minimum);
}

static made_scale make_q6_k(ptx_builder *b, const stream *s, unsigned element)
{
    const unsigned place = prepack_header_place(s->blocks, s->blocks->at.scales + element / 16);
    ptx_val scale = ptx_bfe(b, ptx_as(b, PTX_S32, s->header[place / 4]), place % 4 * 8, 8);
    return (made_scale){.scale = times_integer(b, s->d, scale)};
}

static made_scale make_iq4_xs(ptx_builder *b, const stream *s, unsigned element)
{
    const unsigned i = element / 32;
    return less_32(b, s, field(b, s, s->blocks->at.second, 2 * i, 2),
                   field(b, s, s->blocks->at.scales + i / 2, i % 2 * 4, 4));
}

/* How many elements share a scale (0: the whole block), and how it is computed. */
static const struct kind {
    const block_scales *scales;
    unsigned extent;
    bool has_d, has_second; /* the header has an f16 at `scale`, at `second` */
    made_scale (*make)(ptx_builder *b, const stream *s, unsigned element);
} kinds[] = {
    {&scales_f16, 0, true, false, make_d},         {&scales_f16_min, 0, true, true, make_f16_min},
    {&scales_f32, 0, false, false, make_f32},      {&scales_e8m0, 0, false, false, make_e8m0},
    {&scales_ue4m3, 16, false, false, make_ue4m3}, {&scales_q2_k, 16, true, true, make_q2_k},
    {&scales_q3_k, 16, true, false, make_q3_k},    {&scales_q4_k, 32, true, true, make_q4_k},
    {&scales_q6_k, 16, true, false, make_q6_k},    {&scales_iq4_xs, 32, true, false, make_iq4_xs},
};

static const struct kind *kind_of(const block_layout *layout)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].scales == layout->scales)
            return &kinds[i];
    missing_row("scales of blocks", (int)layout->block);
}

/* ---- Steps ---- */

/* Header words that no scale depends on (the sums of Q8_K) are not loaded. */
static void load_header(ptx_builder *b, stream *s, const block_headers *h, unsigned block)
{
    const block_layout *layout = s->blocks;
    const struct kind *kind = kind_of(layout);
    const unsigned words = kind->make == make_f32 ? 1 : (prepack_header_bytes(layout) + 3) / 4;
    for (unsigned i = 0; i < words; i++)
        s->header[i] = load_word(b, s, h, block, i);
    if (kind->has_d)
        s->d = ptx_cvt(b, PTX_F32, half(b, s, layout->at.scale));
    if (kind->has_second)
        s->second = ptx_cvt(b, PTX_F32, half(b, s, layout->at.second));
}

/* The f16 scale as a pair in the type of x. The digits of TQ1_0 are -1, 0 and 1, so its scale may be
 * rounded before the multiplication. */
static ptx_val short_scale(ptx_builder *b, const stream *s)
{
    ptx_val d = half(b, s, s->blocks->at.scale);
    if (s->spec->data == QDNN_DATA_F16)
        return ptx_pack2(b, PTX_F16X2, d, d);
    return ptx_as(b, pair_type(s->spec->data), emit_narrow_pair(b, s->spec->data, s->d, s->d));
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
    const struct kind *kind = kind_of(layout);
    const unsigned element = 16 * step % layout->elements,
                   extent = kind->extent ? kind->extent : layout->elements;
    if (element == 0 || anew)
        load_header(b, s, h, 16 * step / layout->elements);
    if (element % extent && !anew)
        return;
    if (block_pair_is_short(layout, s->spec->data) || s->is_ternary) {
        share_short(b, s);
        return;
    }
    made_scale made = kind->make(b, s, element);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val lane = j ? ptx_add(b, s->g, (int)(8 * j)) : s->g;
        s->scale[j] = (column_scale){.pair.first.scale = stream_from_lane(b, made.scale, lane),
                                     .addend = stream_from_lane(b, made.addend, lane)};
    }
}
