/* Tiles and chunks: what quantize and dequantize share. */
#include "kernels/chunks.h"

kernel_geometry chunk_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = CHUNK_BLOCK, .elements_per_block = TILE_ELEMENTS};
}

void tile_begin(ptx_builder *b, tile *t)
{
    unsigned code_bytes = chunk_elements(t->spec->data) / 2;
    t->first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, TILE_ELEMENTS));
    ptx_val full_end = ptx_add(b, t->first, TILE_ELEMENTS);
    t->end = ptx_min(b, full_end, t->n);
    ptx_val aligned =
        ptx_and(b, emit_aligned(b, t->data, CHUNK_BYTES), emit_aligned(b, t->codes, code_bytes));
    t->whole = ptx_setp_and(b, PTX_LE, full_end, t->n, aligned);
}

group_values load_group(ptx_builder *b, const tile *t, ptx_val group)
{
    const kernel_spec *spec = t->spec;
    group_values values = {0};
    values.scale = emit_load(b, spec->scale, ptx_at(b, t->scales, group, element_bytes(spec->scale)), 0);
    if (spec->division == QDNN_DIVIDE_RECIPROCAL)
        values.reciprocal = ptx_rcp(b, values.scale);
    if (t->format->has_zero)
        values.zero = emit_load(b, spec->zero, ptx_at(b, t->zeros, group, element_bytes(spec->zero)), 0);
    return values;
}

typedef enum {
    ONE_GROUP, /* chunks never cross into another group */
    TWO_GROUPS,
    EACH_ELEMENT
} grouping;

static grouping grouping_of(const kernel_spec *spec)
{
    unsigned chunk = chunk_elements(spec->data);
    if (spec->group_size % chunk == 0)
        return ONE_GROUP;
    return spec->group_size > chunk ? TWO_GROUPS : EACH_ELEMENT;
}

void tile_chunks(ptx_builder *b, const tile *t,
                 void (*some)(ptx_builder *b, const tile *t, ptx_val index, unsigned count))
{
    unsigned chunk = chunk_elements(t->spec->data);
    ptx_val first = ptx_add(b, t->first, ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_tid_x(b), chunk)));
    if (grouping_of(t->spec) == ONE_GROUP) {
        some(b, t, first, THREAD_ELEMENTS / chunk);
        return;
    }
    ptx_val index = ptx_for(b, first, t->end, CHUNK_BLOCK * chunk);
    some(b, t, index, 1);
    ptx_end_for(b);
}

/* The second group is loaded only where the chunk reaches it, so nothing past the last scale is read. */
static void load_two_groups(ptx_builder *b, const tile *t, ptx_val index, chunk_groups *groups)
{
    const kernel_spec *spec = t->spec;
    unsigned chunk = chunk_elements(spec->data);
    ptx_val group = emit_divide(b, index, spec->group_size);
    ptx_val rest = emit_remainder(b, index, group, spec->group_size);
    ptx_val left = ptx_sub(b, ptx_u64(b, spec->group_size), rest);
    groups->boundary = ptx_cvt(b, PTX_U32, ptx_min(b, left, chunk));
    ptx_val crosses = ptx_setp(b, PTX_LT, groups->boundary, chunk);
    ptx_val next = ptx_add(b, group, ptx_selp(b, ptx_u64(b, 1), ptx_u64(b, 0), crosses));
    groups->first = load_group(b, t, group);
    groups->second = load_group(b, t, next);
}

void chunk_groups_load(ptx_builder *b, const tile *t, ptx_val index, chunk_groups *groups)
{
    *groups = (chunk_groups){0};
    switch (grouping_of(t->spec)) {
    case ONE_GROUP:
        groups->first = load_group(b, t, emit_divide(b, index, t->spec->group_size));
        break;
    case TWO_GROUPS:
        load_two_groups(b, t, index, groups);
        break;
    case EACH_ELEMENT:
        for (unsigned k = 0; k < chunk_elements(t->spec->data); k++)
            groups->each[k] = load_group(b, t, emit_divide(b, ptx_add(b, index, k), t->spec->group_size));
        break;
    }
}

static ptx_val choose(ptx_builder *b, ptx_val first, ptx_val second, ptx_val is_first)
{
    return first.kind == PTX_NOTHING ? first : ptx_selp(b, first, second, is_first);
}

group_values chunk_group_at(ptx_builder *b, const tile *t, const chunk_groups *groups, unsigned element)
{
    switch (grouping_of(t->spec)) {
    case ONE_GROUP:
        return groups->first;
    case EACH_ELEMENT:
        return groups->each[element];
    case TWO_GROUPS:
        break;
    }
    if (element == 0)
        return groups->first; /* a boundary at 0 would be a group's start */
    ptx_val is_first = ptx_setp(b, PTX_GT, groups->boundary, element);
    return (group_values){.scale = choose(b, groups->first.scale, groups->second.scale, is_first),
                          .reciprocal =
                              choose(b, groups->first.reciprocal, groups->second.reciprocal, is_first),
                          .zero = choose(b, groups->first.zero, groups->second.zero, is_first)};
}

unsigned code_shift(const kernel_spec *spec, unsigned element)
{
    return 4 * (spec->nibble_order == QDNN_NIBBLE_HIGH_FIRST ? element ^ 1 : element);
}
