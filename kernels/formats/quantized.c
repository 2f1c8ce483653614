/* Quantized tensors in kernels: their parameters, and how elements are coded by codec and group. */
#include "kernels/formats/pairs.h"

static ptx_val load_number(ptx_builder *b, ptx_val pointer)
{
    return pointer.kind == PTX_NOTHING ? pointer : ptx_ld_global_nc(b, PTX_F32, pointer, 0);
}

quantized quantized_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec,
                          const kernel_args *args)
{
    const ptx_val *at = args->operand;
    quantized q = {.coding = {row->format, spec}, .codes = at[QDNN_OPERAND_CODES]};
    q.side = (sidecars){.scale = at[QDNN_OPERAND_SCALE],
                        .zero = at[QDNN_OPERAND_ZERO],
                        .global_scale = load_number(b, at[QDNN_OPERAND_GLOBAL_SCALE]),
                        .nested_map = at[QDNN_OPERAND_NESTED_MAP],
                        .nested_scale = at[QDNN_OPERAND_NESTED_SCALE],
                        .nested_offset = load_number(b, at[QDNN_OPERAND_NESTED_OFFSET])};
    if (spec->stored.global_scale == 2)
        q.side.global_scale = ptx_rcp(b, q.side.global_scale);
    return q;
}

void quantized_open(ptx_builder *b, quantized *q)
{
    if (q->coding.format->codec->open)
        q->state = q->coding.format->codec->open(b, &q->coding);
}

ptx_val element_decode(ptx_builder *b, const quantized *q, const group_values *group, ptx_val code)
{
    ptx_val unit = q->coding.format->codec->unit(b, &q->coding, &q->state, code, 0);
    return group_decode(b, &q->coding, &q->side, group, unit);
}

ptx_val element_encode(ptx_builder *b, const quantized *q, const group_values *group, ptx_val x)
{
    ptx_val quotient = group_quotient(b, &q->coding, group, x);
    return q->coding.format->codec->encode(b, &q->coding, group, quotient);
}

void quad_units(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                const unsigned positions[QUAD], ptx_val units[QUAD])
{
    const codec *codec = c->format->codec;
    if (codes_are_bytes(c) && codec->units_of_bytes) {
        codec->units_of_bytes(b, c, state, word, units);
        return;
    }
    for (unsigned i = 0; i < QUAD; i++)
        units[i] = codec->unit(b, c, state, word, positions[i]);
}

void chunk_decode(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *quads,
                  unsigned elements, ptx_val *y)
{
    unsigned positions[QUAD];
    for (unsigned i = 0; i < QUAD; i++)
        positions[i] = quad_position(&q->coding, i);
    for (unsigned k = 0; k < elements; k += QUAD) {
        ptx_val units[QUAD];
        quad_units(b, &q->coding, &q->state, quads[k / QUAD], positions, units);
        for (unsigned i = 0; i < QUAD; i++) {
            group_values group = chunk_group_at(b, q, groups, k + i);
            y[k + i] = group_decode(b, &q->coding, &q->side, &group, units[i]);
        }
    }
}

void chunk_decode_pairs(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *quads,
                        unsigned elements, ptx_val *words)
{
    const qdnnDataType_t type = q->coding.spec->data;
    pair_group group = pair_group_of(b, q, type, &groups->first, &groups->first);
    for (unsigned k = 0; k < elements; k += 2) {
        code_place first = {quads[k / QUAD], quad_position(&q->coding, k % QUAD)};
        code_place second = {quads[k / QUAD], quad_position(&q->coding, k % QUAD + 1)};
        words[k / 2] = pair_decode(b, q, type, &group, first, second);
    }
}

void chunk_encode(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *x,
                  unsigned elements, ptx_val *quads)
{
    for (unsigned k = 0; k < elements; k++) {
        group_values group = chunk_group_at(b, q, groups, k);
        unsigned position = quad_position(&q->coding, k % QUAD);
        ptx_val code = element_encode(b, q, &group, x[k]);
        if (position)
            code = ptx_shl(b, code, position);
        quads[k / QUAD] = k % QUAD == 0 ? code : ptx_or(b, quads[k / QUAD], code);
    }
}
