/* Brings the scales stored beside the codes to the lanes that decode with them. */
#include "kernels/tensor/stream.h"

/* Whether groups may change at a step of a strip. */
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

/* Whether the groups of a strip can be counted from its first one, because strips begin with groups (or
 * lie within one). */
static bool groups_are_counted(const kernel_spec *spec)
{
    const uint64_t extent = group_extent(spec);
    return groups_are_regular(spec) && (extent % STRIP == 0 || STRIP % extent == 0);
}

/* A pair of twice the same half of a u32 (0: the lower one). */
static ptx_val half_twice(ptx_builder *b, const stream *s, ptx_val word, unsigned half)
{
    ptx_val halves[2];
    ptx_unpack(b, s->spec->data == QDNN_DATA_F16 ? PTX_F16 : PTX_BF16, word, halves, 2);
    return ptx_pack2(b, pair_type(s->spec->data), halves[half], halves[half]);
}

/* ---- Quads: NVFP4's scales ---- */

enum { QUAD_WORDS = UNITS / 2, QUAD_BYTES = 4 * QUAD_WORDS };

static bool has_quads(const stream *s)
{
    return group_extent(s->spec) == 16 && groups_are_counted(s->spec) &&
           s->spec->stored.scale == QDNN_SCALE_E4M3 &&
           stream_table_of(s->codes.format, s->spec) == TABLE_OF_HALVES;
}

/* The address of this lane's scales in tile q, and the distance (u64) between neighbouring ones. */
static ptx_val quad_address(ptx_builder *b, const stream *s, unsigned q, ptx_val *step)
{
    ptx_val column = ptx_add(b, s->tile_n[q], s->g);
    column = ptx_mad(b, ptx_shr(b, s->t, 1), 8, column);
    ptx_val n = ptx_cvt(b, PTX_U64, ptx_min(b, column, ptx_sub(b, s->n, 1)));
    ptx_val group = ptx_mad(b, s->strip, STRIP / 16, ptx_mul(b, ptx_and(b, s->t, 1), QUAD_BYTES));
    column_groups c = column_groups_of(b, &s->m, n);
    *step = c.step;
    return ptx_add(b, s->m.q.side.scale, ptx_mad(b, ptx_cvt(b, PTX_U64, group), c.step, c.first));
}

static void load_quad_bytes(ptx_builder *b, ptx_val from, ptx_val step, ptx_val *words)
{
    for (unsigned i = 0; i < QUAD_BYTES; i++) {
        ptx_val byte = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U8, from, 0));
        ptx_assign(b, words[i / 4], i % 4 ? ptx_bfi(b, byte, words[i / 4], 8 * (i % 4), 8) : byte);
        from = ptx_add(b, from, step);
    }
}

/* If the scales of a column are contiguous and aligned, 16 bytes at a time; otherwise one by one. */
static void load_quads(ptx_builder *b, stream *s)
{
    const bool neighbours = lines_first(s->spec);
    ptx_val from[TILES], step;
    for (unsigned q = 0; q < TILES; q++) {
        from[q] = quad_address(b, s, q, &step);
        for (unsigned i = 0; i < QUAD_WORDS; i++)
            s->quads.words[q][i] = ptx_var(b, ptx_u32(b, 0));
    }
    if (neighbours) {
        ptx_val rest = ptx_and(b, ptx_or(b, s->m.groups, s->m.q.side.scale), ptx_u64(b, QUAD_BYTES - 1));
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_EQ, rest, ptx_u64(b, 0)));
        for (unsigned q = 0; q < TILES; q++) {
            ptx_val words[QUAD_WORDS];
            emit_load_words(b, from[q], 0, QUAD_WORDS, words);
            for (unsigned i = 0; i < QUAD_WORDS; i++)
                ptx_assign(b, s->quads.words[q][i], words[i]);
        }
        ptx_else(b);
    }
    for (unsigned q = 0; q < TILES; q++)
        load_quad_bytes(b, from[q], step, s->quads.words[q]);
    if (neighbours)
        ptx_end_if(b);
}

/* Four scales of a column as pairs of the type of x, which represents them exactly. */
static void convert_quad(ptx_builder *b, const stream *s, ptx_val word, ptx_val pairs[2])
{
    fp8_to_f16(b, &float_e4m3, word, pairs);
    for (unsigned i = 0; i < 2 && s->spec->data == QDNN_DATA_BF16; i++) {
        ptx_val halves[2];
        ptx_unpack(b, PTX_F16, pairs[i], halves, 2);
        pairs[i] = emit_narrow_pair(b, QDNN_DATA_BF16, ptx_cvt(b, PTX_F32, halves[0]),
                                    ptx_cvt(b, PTX_F32, halves[1]));
    }
}

/* A lane converts its word for unit u, which is that of unit u + QUAD_WORDS in other lanes: so both are
 * converted at once. */
static void quads_of_step(ptx_builder *b, stream *s, unsigned step)
{
    quad_scales *quads = &s->quads;
    const unsigned unit = step / UNIT_STEPS, in_unit = step % UNIT_STEPS;
    for (unsigned q = 0; q < TILES && in_unit == 0 && unit < QUAD_WORDS; q++)
        convert_quad(b, s, quads->words[q][unit], quads->pairs[q][unit]);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val lane = ptx_or(b, ptx_and(b, s->lane, 28), (int)(j % 2 * 2 + unit / QUAD_WORDS));
        if (in_unit % 2 == 0)
            quads->now[j] = stream_from_lane(b, quads->pairs[j / 2][unit % QUAD_WORDS][in_unit / 2], lane);
        s->scale[j].pair.scale = half_twice(b, s, quads->now[j], in_unit % 2);
    }
}

/* ---- Other scales: lane l has column n0 + l ---- */

static void only_group(ptx_builder *b, stream *s)
{
    pair_group pair = pair_group_of(b, &s->m.q, s->spec->data, &s->m.q.only, &s->m.q.only);
    for (unsigned j = 0; j < COLUMNS; j++)
        s->scale[j].pair = pair;
}

void stream_scales_begin(ptx_builder *b, stream *s)
{
    if (!group_extent(s->spec)) {
        only_group(b, s);
        return;
    }
    if (!has_quads(s) && groups_are_counted(s->spec)) {
        const uint64_t extent = group_extent(s->spec);
        s->groups = column_groups_of(b, &s->m, ptx_cvt(b, PTX_U64, s->my_n));
        ptx_val before = STRIP % extent == 0
                             ? ptx_cvt(b, PTX_U64, ptx_mul(b, s->strip, (int)(STRIP / extent)))
                             : emit_divide(b, ptx_cvt(b, PTX_U64, s->k0), extent);
        s->groups.first = ptx_mad(b, before, s->groups.step, s->groups.first);
    }
}

/* ---- Scales of 16 bits that have the type of x, without zeros: shared as stored ---- */

static bool has_own_scales(ptx_builder *b, const stream *s)
{
    const kernel_spec *spec = s->spec;
    const bool same = spec->data == QDNN_DATA_F16 ? spec->stored.scale == QDNN_SCALE_F16
                                                  : spec->stored.scale == QDNN_SCALE_BF16;
    return same && groups_are_counted(spec) && pair_is_short(b, &s->m.q.coding, spec->data) &&
           !format_has_zero(s->m.q.coding.format);
}

static void share_own_scales(ptx_builder *b, stream *s, ptx_val mine)
{
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val lane = j ? ptx_add(b, s->g, (int)(8 * j)) : s->g;
        s->scale[j].pair = (pair_group){.scale = half_twice(b, s, stream_from_lane(b, mine, lane), 0)};
    }
}

/* Each lane fetches what it needs of a column from the lane that prepared it. */
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
}

void stream_scales_at(ptx_builder *b, stream *s, ptx_val k)
{
    if (!group_extent(s->spec))
        return;
    ptx_val n = ptx_cvt(b, PTX_U64, s->my_n), wide = ptx_cvt(b, PTX_U64, k);
    share_groups(b, s, s->k_in_columns ? matrix_group(b, &s->m, n, wide) : matrix_group(b, &s->m, wide, n));
}

/* ---- Groups that are counted are loaded some groups ahead ---- */

static bool loads_ahead(const stream *s)
{
    return group_extent(s->spec) && !has_quads(s) && groups_are_counted(s->spec);
}

/* Loads a group of the strip, if there is one. */
static void load_ahead(ptx_builder *b, stream *s, unsigned group)
{
    const uint64_t extent = group_extent(s->spec);
    if (group >= (extent < STRIP ? STRIP / extent : 1))
        return;
    if (!has_own_scales(b, s)) {
        s->group[group] = column_group_known(b, &s->m, &s->groups, group);
        return;
    }
    ptx_val from = column_scale_address(b, &s->m, &s->groups, group);
    s->group[group] = (group_values){.scale = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U16, from, 0))};
}

void stream_scales_of_strip(ptx_builder *b, stream *s)
{
    if (has_quads(s))
        load_quads(b, s);
    for (unsigned group = 0; group < GROUPS_AHEAD && loads_ahead(s); group++)
        load_ahead(b, s, group);
}

void stream_scales_of_step(ptx_builder *b, stream *s, unsigned step)
{
    if (!group_begins(s->spec, step))
        return;
    if (has_quads(s)) {
        quads_of_step(b, s, step);
    } else if (loads_ahead(s)) {
        const unsigned group = (unsigned)(16 * step / group_extent(s->spec));
        load_ahead(b, s, group + GROUPS_AHEAD);
        if (has_own_scales(b, s))
            share_own_scales(b, s, s->group[group].scale);
        else
            share_groups(b, s, s->group[group]);
    } else {
        stream_scales_at(b, s, step ? ptx_add(b, s->k0, (int)(16 * step)) : s->k0);
    }
}
