/* Tiles and chunks: what quantize and dequantize share. */
#include "kernels/chunks.h"

kernel_geometry chunk_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = CHUNK_BLOCK, .elements_per_block = TILE_ELEMENTS};
}

typedef enum {
    ONE_GROUP, /* chunks never cross into another group */
    TWO_GROUPS,
    RUN_OF_GROUPS, /* a group an element, and those of a chunk follow each other in memory */
    EACH_ELEMENT
} grouping;

static grouping grouping_of(const kernel_spec *spec)
{
    unsigned chunk = chunk_elements(spec->data);
    if (spec->channels == 1 || spec->group_size % chunk == 0)
        return ONE_GROUP;
    if (spec->group_size == 1 && spec->channels > 0 && spec->channels % chunk == 0)
        return RUN_OF_GROUPS;
    return spec->group_size > chunk ? TWO_GROUPS : EACH_ELEMENT;
}

/* How the scales or zero points of a chunk are loaded: by 16 bytes where they fill that, else one by one. */
static bool fills_loads(const kernel_spec *spec, qdnnDataType_t type)
{
    return chunk_elements(spec->data) % chunk_elements(type) == 0;
}

static ptx_val run_aligned(ptx_builder *b, const tile *t, ptx_val others)
{
    ptx_val aligned = others;
    if (fills_loads(t->spec, t->spec->scale))
        aligned = ptx_and(b, aligned, emit_aligned(b, t->scales, CHUNK_BYTES));
    if (t->format->has_zero && fills_loads(t->spec, t->spec->zero))
        aligned = ptx_and(b, aligned, emit_aligned(b, t->zeros, CHUNK_BYTES));
    return aligned;
}

static void load_run(ptx_builder *b, const kernel_spec *spec, qdnnDataType_t type, ptx_val address,
                     ptx_val *x)
{
    unsigned count = chunk_elements(spec->data), step = fills_loads(spec, type) ? chunk_elements(type) : 1;
    for (unsigned k = 0; k < count; k += step)
        if (step > 1)
            emit_load_chunk(b, type, address, (int)(k * element_bytes(type)), &x[k]);
        else
            x[k] = emit_load(b, type, address, (int)(k * element_bytes(type)));
}

/* The scale of a group, its reciprocal, its zero. */
static group_values load_group(ptx_builder *b, const tile *t, ptx_val group)
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

void tile_begin(ptx_builder *b, tile *t)
{
    unsigned code_bytes = chunk_elements(t->spec->data) / 2;
    t->first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, TILE_ELEMENTS));
    ptx_val full_end = ptx_add(b, t->first, TILE_ELEMENTS);
    t->end = ptx_min(b, full_end, t->n);
    ptx_val aligned =
        ptx_and(b, emit_aligned(b, t->data, CHUNK_BYTES), emit_aligned(b, t->codes, code_bytes));
    if (grouping_of(t->spec) == RUN_OF_GROUPS)
        aligned = run_aligned(b, t, aligned);
    t->whole = ptx_setp_and(b, PTX_LE, full_end, t->n, aligned);
    if (t->spec->channels != 1)
        return;
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, t->first, t->n)); /* without elements there need be no scale */
    t->only = load_group(b, t, ptx_u64(b, 0));
}

/* The group of a run of elements, which are numbered through the tensor. */
static ptx_val group_of_run(ptx_builder *b, const kernel_spec *spec, ptx_val run)
{
    return spec->channels ? emit_remainder(b, run, emit_divide(b, run, spec->channels), spec->channels) : run;
}

static ptx_val group_of(ptx_builder *b, const kernel_spec *spec, ptx_val index)
{
    return group_of_run(b, spec, emit_divide(b, index, spec->group_size));
}

group_values group_at(ptx_builder *b, const tile *t, ptx_val index)
{
    return t->spec->channels == 1 ? t->only : load_group(b, t, group_of(b, t->spec, index));
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
    ptx_val run = emit_divide(b, index, spec->group_size);
    ptx_val rest = emit_remainder(b, index, run, spec->group_size);
    ptx_val left = ptx_sub(b, ptx_u64(b, spec->group_size), rest);
    groups->boundary = ptx_cvt(b, PTX_U32, ptx_min(b, left, chunk));
    ptx_val crosses = ptx_setp(b, PTX_LT, groups->boundary, chunk);
    ptx_val next = ptx_add(b, run, ptx_selp(b, ptx_u64(b, 1), ptx_u64(b, 0), crosses));
    groups->first = load_group(b, t, group_of_run(b, spec, run));
    groups->second = load_group(b, t, group_of_run(b, spec, next));
}

/* Scales of neighbouring channels, by the widest loads that they fill. */
static void load_run_of_groups(ptx_builder *b, const tile *t, ptx_val index, chunk_groups *groups)
{
    const kernel_spec *spec = t->spec;
    ptx_val first = group_of(b, spec, index), scales[CHUNK_MAX], zeros[CHUNK_MAX] = {{0}};
    load_run(b, spec, spec->scale, ptx_at(b, t->scales, first, element_bytes(spec->scale)), scales);
    if (t->format->has_zero)
        load_run(b, spec, spec->zero, ptx_at(b, t->zeros, first, element_bytes(spec->zero)), zeros);
    for (unsigned k = 0; k < chunk_elements(spec->data); k++) {
        groups->each[k] = (group_values){.scale = scales[k], .zero = zeros[k]};
        if (spec->division == QDNN_DIVIDE_RECIPROCAL)
            groups->each[k].reciprocal = ptx_rcp(b, scales[k]);
    }
}

/* A channel an element: the next one, and after the last the first. */
static ptx_val channel_after(ptx_builder *b, const kernel_spec *spec, ptx_val channel)
{
    ptx_val next = ptx_add(b, channel, 1);
    return ptx_selp(b, ptx_u64(b, 0), next, ptx_setp(b, PTX_EQ, next, ptx_u64(b, spec->channels)));
}

static void load_each_group(ptx_builder *b, const tile *t, ptx_val index, chunk_groups *groups)
{
    const kernel_spec *spec = t->spec;
    bool takes_turns = spec->channels && spec->group_size == 1;
    ptx_val group = {0};
    for (unsigned k = 0; k < chunk_elements(spec->data); k++) {
        group =
            takes_turns && k > 0 ? channel_after(b, spec, group) : group_of(b, spec, ptx_add(b, index, k));
        groups->each[k] = load_group(b, t, group);
    }
}

void chunk_groups_load(ptx_builder *b, const tile *t, ptx_val index, chunk_groups *groups)
{
    *groups = (chunk_groups){0};
    switch (grouping_of(t->spec)) {
    case ONE_GROUP:
        groups->first = group_at(b, t, index);
        break;
    case TWO_GROUPS:
        load_two_groups(b, t, index, groups);
        break;
    case RUN_OF_GROUPS:
        load_run_of_groups(b, t, index, groups);
        break;
    case EACH_ELEMENT:
        load_each_group(b, t, index, groups);
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
    case RUN_OF_GROUPS:
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
