/* Scales of codes beside them, on their way to the lanes that decode with them. */
#include "kernels/tensor/stream.h"

/* Whether the groups change at a step of a strip, as far as is known now. */
static bool group_begins(const kernel_spec *spec, unsigned step)
{
    const uint64_t extent = group_extent(spec);
    if (extent == 0)
        return false;
    if (extent % STRIP == 0)
        return step == 0;
    return STRIP % extent == 0 ? step * 16 % extent == 0 : true;
}

ptx_val stream_from_lane(ptx_builder *b, ptx_val x, ptx_val lane)
{
    if (x.kind == PTX_NOTHING || x.kind == PTX_NUMBER)
        return x;
    return ptx_as(b, (ptx_type)x.type, ptx_shfl_idx(b, ptx_as(b, PTX_U32, x), lane));
}

/* Those of a strip are counted from its first, where strips begin with groups. */
static bool groups_are_counted(const kernel_spec *spec)
{
    const uint64_t extent = group_extent(spec);
    return groups_are_regular(spec) && (extent % STRIP == 0 || STRIP % extent == 0);
}

/* ---- Quads: NVFP4's scales ---- */

static bool has_quads(const stream *s)
{
    return group_extent(s->spec) == 16 && groups_are_counted(s->spec) && s->spec->scale == QDNN_SCALE_E4M3 &&
           s->spec->data == QDNN_DATA_F16 && stream_table_of(s->codes.format, s->spec) == TABLE_OF_HALVES;
}

static void quads_begin(ptx_builder *b, stream *s)
{
    quad_scales *q = &s->quads;
    ptx_val group = ptx_add(b, ptx_shr(b, s->k0, 4), s->t), last = ptx_sub(b, s->n, 1);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val n = ptx_min(b, ptx_add(b, ptx_add(b, s->n0, s->g), (int)(8 * j)), last);
        column_groups c = column_groups_of(b, &s->m, ptx_cvt(b, PTX_U64, n));
        ptx_val index = ptx_mad(b, ptx_cvt(b, PTX_U64, group), c.step, c.first);
        q->from[j] = ptx_add(b, s->m.q.side.scale, index);
        q->step = j ? q->step : ptx_cvt(b, PTX_U32, c.step);
    }
    for (unsigned step = 0; step < UNIT_STEPS; step++)
        q->lanes[step] = ptx_or(b, ptx_and(b, s->lane, 28), (int)step);
}

static void quads_of_step(ptx_builder *b, stream *s, unsigned step, const unit_words *w)
{
    quad_scales *q = &s->quads;
    for (unsigned j = 0; j < COLUMNS; j += 2) {
        if (step % UNIT_STEPS == 0)
            q->pairs[j / 2] =
                pair_of_e4m3(b, ptx_prmt(b, w->scales[j], w->scales[j + 1], ptx_u32(b, 0x4101)));
        s->both[j / 2] = stream_from_lane(b, q->pairs[j / 2], q->lanes[step % UNIT_STEPS]);
    }
}

/* ---- Others: lane l has column n0 + l ---- */

/* Scales of columns g and g + 8 as one pair, for tables of halves. */
static void join_scales(ptx_builder *b, stream *s)
{
    for (unsigned j = 0; j < COLUMNS; j += 2) {
        ptx_val low = s->scale[j].pair.scale, high = s->scale[j + 1].pair.scale;
        if (stream_table_of(s->codes.format, s->spec) == TABLE_OF_HALVES && low.kind != PTX_NOTHING)
            s->both[j / 2] =
                ptx_as(b, pair_type(s->spec->data),
                       ptx_prmt(b, ptx_as(b, PTX_U32, low), ptx_as(b, PTX_U32, high), ptx_u32(b, 0x5410)));
    }
}

static void only_group(ptx_builder *b, stream *s)
{
    pair_group pair = pair_group_of(b, &s->m.q, s->spec->data, &s->m.q.only, &s->m.q.only);
    for (unsigned j = 0; j < COLUMNS; j++)
        s->scale[j].pair = pair;
    join_scales(b, s);
}

void stream_scales_begin(ptx_builder *b, stream *s)
{
    if (!group_extent(s->spec)) {
        only_group(b, s);
        return;
    }
    if (has_quads(s))
        quads_begin(b, s);
    else if (groups_are_counted(s->spec)) {
        s->groups = column_groups_of(b, &s->m, ptx_cvt(b, PTX_U64, s->my_n));
        ptx_val before = emit_divide(b, ptx_cvt(b, PTX_U64, s->k0), group_extent(s->spec));
        s->groups.first = ptx_mad(b, before, s->groups.step, s->groups.first);
    }
}

void stream_scales_load(ptx_builder *b, const stream *s, unsigned unit, unit_words *w)
{
    if (!has_quads(s))
        return;
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val from = s->quads.from[j];
        if (unit)
            from = ptx_add(b, ptx_mul_wide(b, s->quads.step, ptx_u32(b, UNIT_STEPS * unit)), from);
        w->scales[j] = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U8, from, 0));
    }
}

/* The lanes that need a column's numbers take them from the lane that prepared them. */
static void share_groups(ptx_builder *b, stream *s, group_values mine)
{
    const quantized *q = &s->m.q;
    const bool is_short = pair_is_short(b, &q->coding, s->spec->data);
    pair_group pair = pair_group_of(b, q, s->spec->data, &mine, &mine);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val lane = j ? ptx_add(b, s->g, (int)(8 * j)) : s->g;
        pair_group *to = &s->scale[j].pair;
        *to = (pair_group){0};
        if (is_short) {
            to->scale = stream_from_lane(b, pair.scale, lane);
            to->minus_zero = stream_from_lane(b, pair.minus_zero, lane);
            continue;
        }
        to->first.scale = stream_from_lane(b, mine.scale, lane);
        if (format_has_zero(q->coding.format))
            to->first.zero = stream_from_lane(b, mine.zero, lane);
        to->second = to->first;
    }
    join_scales(b, s);
}

void stream_scales_at(ptx_builder *b, stream *s, ptx_val k)
{
    if (!group_extent(s->spec))
        return;
    ptx_val n = ptx_cvt(b, PTX_U64, s->my_n), wide = ptx_cvt(b, PTX_U64, k);
    share_groups(b, s, s->k_in_columns ? matrix_group(b, &s->m, n, wide) : matrix_group(b, &s->m, wide, n));
}

void stream_scales_of_step(ptx_builder *b, stream *s, unsigned step, const unit_words *w)
{
    if (!group_begins(s->spec, step))
        return;
    if (has_quads(s))
        quads_of_step(b, s, step, w);
    else if (groups_are_counted(s->spec))
        share_groups(b, s,
                     column_group_known(b, &s->m, &s->groups, (unsigned)(16 * step / group_extent(s->spec))));
    else
        stream_scales_at(b, s, step ? ptx_add(b, s->k0, (int)(16 * step)) : s->k0);
}
