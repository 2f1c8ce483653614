/* Which group each element of a flat tensor belongs to, and how the numbers of a chunk's groups are
 * loaded. */
#include "kernels/formats/quantized.h"

typedef enum {
    ONE_GROUP, /* no chunk crosses a group boundary */
    TWO_GROUPS,
    RUN_OF_GROUPS, /* one group per element; those of a chunk are adjacent in memory */
    EACH_ELEMENT
} grouping;

static grouping grouping_of(const kernel_spec *spec)
{
    unsigned chunk = chunk_elements(spec->data);
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT || spec->stored.channels == 1 ||
        spec->stored.group_size % chunk == 0)
        return ONE_GROUP;
    if (spec->stored.group_size == 1 && spec->stored.channels > 0 && spec->stored.channels % chunk == 0 &&
        !spec->stored.nested)
        return RUN_OF_GROUPS;
    return spec->stored.group_size > chunk ? TWO_GROUPS : EACH_ELEMENT;
}

bool chunk_has_one_group(const kernel_spec *spec)
{
    return grouping_of(spec) == ONE_GROUP;
}

/* Whether the scales or zero points of a chunk can be loaded by 16-byte accesses; if not, they are loaded one
 * by one. */
static bool fills_loads(const kernel_spec *spec, qdnnDataType_t type)
{
    return type && chunk_elements(spec->data) * element_bytes(type) % LOAD_BYTES == 0 &&
           (element_bytes(type) == 2 || element_bytes(type) == 4) && type != QDNN_DATA_U32 &&
           type != QDNN_DATA_I32;
}

ptx_val chunk_groups_aligned(ptx_builder *b, const quantized *q, ptx_val all)
{
    const kernel_spec *spec = q->coding.spec;
    if (grouping_of(spec) != RUN_OF_GROUPS)
        return all;
    if (fills_loads(spec, scale_data_type(spec->stored.scale)))
        all = ptx_and(b, all, emit_aligned(b, q->side.scale, LOAD_BYTES));
    if (format_has_zero(q->coding.format) && fills_loads(spec, spec->stored.zero))
        all = ptx_and(b, all, emit_aligned(b, q->side.zero, LOAD_BYTES));
    return all;
}

/* Loads adjacent zeros; floats by the widest loads that they fill. */
static void load_zeros(ptx_builder *b, const kernel_spec *spec, qdnnDataType_t type, ptx_val address,
                       ptx_val *x)
{
    unsigned count = chunk_elements(spec->data), step = fills_loads(spec, type) ? chunk_elements(type) : 1;
    for (unsigned k = 0; k < count; k += step)
        if (step > 1)
            emit_load_chunk(b, type, address, (int)(k * element_bytes(type)), &x[k]);
        else
            x[k] = emit_load(b, type, address, (int)(k * element_bytes(type)));
}

static void load_scales(ptx_builder *b, const kernel_spec *spec, ptx_val address, ptx_val *x)
{
    if (scale_data_type(spec->stored.scale)) {
        load_zeros(b, spec, scale_data_type(spec->stored.scale), address, x);
        return;
    }
    for (unsigned k = 0; k < chunk_elements(spec->data); k++)
        x[k] = emit_load_scale(b, spec->stored.scale, address, (int)(k * scale_bytes(spec->stored.scale)));
}

/* The group of a run of group_size elements; runs are numbered through the tensor. */
static ptx_val group_of_run(ptx_builder *b, const kernel_spec *spec, ptx_val run)
{
    return spec->stored.channels
               ? emit_remainder(b, run, emit_divide(b, run, spec->stored.channels), spec->stored.channels)
               : run;
}

ptx_val flat_group_number(ptx_builder *b, const kernel_spec *spec, ptx_val index)
{
    return group_of_run(b, spec, emit_divide(b, index, spec->stored.group_size));
}

group_values flat_group(ptx_builder *b, const quantized *q, ptx_val index)
{
    const kernel_spec *spec = q->coding.spec;
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT || spec->stored.channels == 1)
        return q->only;
    return group_load(b, &q->coding, &q->side, flat_group_number(b, spec, index));
}

void flat_group_only(ptx_builder *b, quantized *q)
{
    if (q->coding.spec->stored.groups == QDNN_GROUPS_DEFAULT)
        q->only = group_without_scale(b);
    else if (q->coding.spec->stored.channels == 1)
        q->only = group_load(b, &q->coding, &q->side, ptx_u64(b, 0));
}

/* The second group is loaded only if the chunk reaches it, so nothing past the last scale is read. */
static void load_two_groups(ptx_builder *b, const quantized *q, ptx_val index, chunk_groups *groups)
{
    const kernel_spec *spec = q->coding.spec;
    unsigned chunk = chunk_elements(spec->data);
    ptx_val run = emit_divide(b, index, spec->stored.group_size);
    ptx_val rest = emit_remainder(b, index, run, spec->stored.group_size);
    ptx_val left = ptx_sub(b, ptx_u64(b, spec->stored.group_size), rest);
    groups->boundary = ptx_cvt(b, PTX_U32, ptx_min(b, left, chunk));
    ptx_val crosses = ptx_setp(b, PTX_LT, groups->boundary, chunk);
    ptx_val next = ptx_add(b, run, ptx_selp(b, ptx_u64(b, 1), ptx_u64(b, 0), crosses));
    groups->first = group_load(b, &q->coding, &q->side, group_of_run(b, spec, run));
    groups->second = group_load(b, &q->coding, &q->side, group_of_run(b, spec, next));
}

/* Scales of adjacent channels, by the widest loads that they fill. */
static void load_run_of_groups(ptx_builder *b, const quantized *q, ptx_val index, chunk_groups *groups)
{
    const kernel_spec *spec = q->coding.spec;
    ptx_val first = flat_group_number(b, spec, index), scales[CHUNK_MAX], zeros[CHUNK_MAX] = {{0}};
    load_scales(b, spec, ptx_at(b, q->side.scale, first, scale_bytes(spec->stored.scale)), scales);
    if (format_has_zero(q->coding.format))
        load_zeros(b, spec, spec->stored.zero,
                   ptx_at(b, q->side.zero, first, element_bytes(spec->stored.zero)), zeros);
    for (unsigned k = 0; k < chunk_elements(spec->data); k++)
        groups->each[k] = group_of_numbers(b, &q->coding, &q->side, scales[k], zeros[k]);
}

/* With one channel per element: the next channel, or the first after the last. */
static ptx_val channel_after(ptx_builder *b, const kernel_spec *spec, ptx_val channel)
{
    ptx_val next = ptx_add(b, channel, 1);
    return ptx_selp(b, ptx_u64(b, 0), next, ptx_setp(b, PTX_EQ, next, ptx_u64(b, spec->stored.channels)));
}

static void load_each_group(ptx_builder *b, const quantized *q, ptx_val index, chunk_groups *groups)
{
    const kernel_spec *spec = q->coding.spec;
    bool takes_turns = spec->stored.channels && spec->stored.group_size == 1;
    ptx_val group = {0};
    for (unsigned k = 0; k < chunk_elements(spec->data); k++) {
        group = takes_turns && k > 0 ? channel_after(b, spec, group)
                                     : flat_group_number(b, spec, ptx_add(b, index, k));
        groups->each[k] = group_load(b, &q->coding, &q->side, group);
    }
}

void chunk_groups_load(ptx_builder *b, const quantized *q, ptx_val index, chunk_groups *groups)
{
    *groups = (chunk_groups){0};
    switch (grouping_of(q->coding.spec)) {
    case ONE_GROUP:
        groups->first = flat_group(b, q, index);
        break;
    case TWO_GROUPS:
        load_two_groups(b, q, index, groups);
        break;
    case RUN_OF_GROUPS:
        load_run_of_groups(b, q, index, groups);
        break;
    case EACH_ELEMENT:
        load_each_group(b, q, index, groups);
        break;
    }
}

/* The number of groups in the chunks of a warp, if they are whole groups or part of one; else 0. */
static unsigned groups_of_warp(const kernel_spec *spec, unsigned count)
{
    const unsigned elements = WARP * count * chunk_elements(spec->data);
    if (grouping_of(spec) != ONE_GROUP || spec->stored.groups != QDNN_GROUPS_FLAT || spec->stored.channels)
        return 0;
    if (spec->stored.group_size % elements == 0)
        return 1;
    return elements % spec->stored.group_size == 0 && elements / spec->stored.group_size <= WARP
               ? elements / (unsigned)spec->stored.group_size
               : 0;
}

void warp_groups_load(ptx_builder *b, const quantized *q, ptx_val index, unsigned count, chunk_groups *groups)
{
    const kernel_spec *spec = q->coding.spec;
    const unsigned chunk = chunk_elements(spec->data), groups_here = groups_of_warp(spec, count);
    if (groups_here == 0) {
        for (unsigned i = 0; i < count; i++)
            chunk_groups_load(b, q, ptx_add(b, index, i * WARP * chunk), &groups[i]);
        return;
    }
    ptx_val lane = ptx_laneid(b), in_warp = ptx_mul(b, lane, chunk);
    ptx_val first = emit_divide(b, ptx_sub(b, index, ptx_cvt(b, PTX_U64, in_warp)), spec->stored.group_size);
    if (groups_here > 1)
        first = ptx_add(b, first, ptx_cvt(b, PTX_U64, ptx_min(b, lane, (int)groups_here - 1)));
    group_values mine = group_load(b, &q->coding, &q->side, first);
    for (unsigned i = 0; i < count; i++) {
        groups[i] = (chunk_groups){.first = mine};
        if (groups_here == 1)
            continue;
        ptx_val element = i ? ptx_add(b, in_warp, i * WARP * chunk) : in_warp;
        ptx_val owner = ptx_shr(b, element, ceil_log2(spec->stored.group_size)), zero = {0};
        ptx_val scale = ptx_shfl_idx(b, mine.scale, owner);
        if (mine.zero.kind != PTX_NOTHING)
            zero = ptx_shfl_idx(b, mine.zero, owner);
        groups[i].first = group_of_numbers(b, &q->coding, &q->side, scale, zero);
    }
}

static ptx_val choose(ptx_builder *b, ptx_val first, ptx_val second, ptx_val is_first)
{
    return first.kind == PTX_NOTHING ? first : ptx_selp(b, first, second, is_first);
}

group_values chunk_group_at(ptx_builder *b, const quantized *q, const chunk_groups *groups, unsigned element)
{
    switch (grouping_of(q->coding.spec)) {
    case ONE_GROUP:
        return groups->first;
    case RUN_OF_GROUPS:
    case EACH_ELEMENT:
        return groups->each[element];
    case TWO_GROUPS:
        break;
    }
    if (element == 0)
        return groups->first; /* the boundary is never 0, since a chunk begins in its first group */
    ptx_val is_first = ptx_setp(b, PTX_GT, groups->boundary, element);
    return (group_values){.scale = choose(b, groups->first.scale, groups->second.scale, is_first),
                          .divisor = choose(b, groups->first.divisor, groups->second.divisor, is_first),
                          .zero = choose(b, groups->first.zero, groups->second.zero, is_first)};
}
