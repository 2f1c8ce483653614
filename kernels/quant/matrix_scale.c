/* The scale kernel for groups along rows and down columns: each group is a block of the matrix, of a fixed
 * number of rows and columns, cut off at the edges.
 *
 * A team of neighbouring lanes covers the columns of a group. Groups with few rows are handled by one warp
 * each; for taller groups, the warps of a block share the rows. Swizzled scales have slots without a group,
 * which are filled with 0. */
#include "kernels/quant/matrix.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/ranges.h"

enum {
    SCALE_WARPS = RANGE_BLOCK / WARP,
    ROWS_AHEAD = 4 /* rows that a lane loads at once */
};

/* How the work is distributed. */
typedef struct plan {
    uint64_t rows, columns; /* per group */
    /* adjacent columns per lane: a chunk, or 1 if groups do not begin at chunks */
    unsigned step;
    team team;             /* covers the columns */
    unsigned side_by_side; /* groups per warp */
    bool is_tall;          /* the warps of a block share the rows of a group */
    unsigned ahead;
} plan;

static plan plan_of(const kernel_spec *spec)
{
    bool down = spec->stored.groups == QDNN_GROUPS_COLUMNS;
    plan p = {.rows = down ? spec->stored.group_size : spec->stored.group_rows,
              .columns = down ? spec->stored.group_rows : spec->stored.group_size};
    p.step = p.columns % vector_elements(spec->data) == 0 ? vector_elements(spec->data) : 1;
    p.team.lanes = 1;
    while (p.team.lanes < WARP && p.team.lanes * p.step < p.columns)
        p.team.lanes *= 2;
    p.side_by_side = WARP / p.team.lanes;
    p.is_tall = p.rows >= SCALE_WARPS;
    p.ahead = p.rows >= SCALE_WARPS * ROWS_AHEAD ? ROWS_AHEAD : 1;
    return p;
}

/* Groups that a block handles one below the other. */
static unsigned block_height(const plan *p)
{
    return p->is_tall ? 1 : SCALE_WARPS;
}

/* The numbers of scale slots in each direction are padded to multiples of these, if scales are swizzled. */
typedef struct extent {
    unsigned height, width; /* 1: no padding */
} extent;

static extent padding_of(const kernel_spec *spec)
{
    bool transposed = spec->stored.scale_order == QDNN_SCALE_ORDER_TRANSPOSED;
    if (spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE)
        return (extent){1, 1};
    return transposed ? (extent){4, 128} : (extent){128, 4};
}

/* The slots of groups of so many elements, and what fills them up to a multiple. */
static kernel_rule slots(kernel_number elements, uint64_t group, unsigned multiple)
{
    const kernel_rule groups = rule_parts(elements, group);
    return multiple == 1 ? groups : rule_times(rule_ceil(groups, multiple), rule_constant(multiple));
}

kernel_geometry matrix_scale_geometry(const kernel_spec *spec)
{
    const plan p = plan_of(spec);
    const extent e = padding_of(spec);
    const unsigned height = block_height(&p);
    return (kernel_geometry){
        .block = RANGE_BLOCK,
        .elements_per_block = p.rows * p.columns * p.side_by_side * height,
        .grid = {rule_ceil(slots(NUMBER_ROWS, p.rows, e.height), height),
                 rule_capped(rule_ceil(slots(NUMBER_COLUMNS, p.columns, e.width), p.side_by_side))}};
}

/* ---- The kernel ---- */

typedef struct scale_matrix {
    matrix m;
    plan plan;
    ptx_val x;
    ptx_val height, width;             /* u64: number of groups down and across */
    ptx_val slots_height, slots_width; /* the same for slots */
    ptx_val in_chunks;                 /* predicate: rows begin at chunks */
} scale_matrix;

static ptx_val fill_up(ptx_builder *b, ptx_val x, unsigned multiple)
{
    return multiple == 1 ? x : ptx_and(b, ptx_add(b, x, multiple - 1), ptx_u64(b, ~(uint64_t)(multiple - 1)));
}

static scale_matrix scale_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    if (spec->stored.nested)
        ptx_fail(b, "nested scales are made in two steps: scale without nested, then nest");
    quantized q = quantized_begin(b, row, spec, &args);
    scale_matrix s = {
        .m = matrix_begin(b, &q, &args), .plan = plan_of(spec), .x = args.operand[QDNN_OPERAND_X]};
    bool down = spec->stored.groups == QDNN_GROUPS_COLUMNS;
    extent e = padding_of(spec);
    s.height = down ? s.m.groups : s.m.lines;
    s.width = down ? s.m.lines : s.m.groups;
    s.slots_height = fill_up(b, s.height, e.height);
    s.slots_width = fill_up(b, s.width, e.width);
    ptx_val past = ptx_and(b, s.m.columns, ptx_u64(b, s.plan.step - 1));
    s.in_chunks = ptx_setp_and(b, PTX_EQ, past, ptx_u64(b, 0), emit_aligned(b, s.x, LOAD_BYTES));
    return s;
}

/* The rows and columns of a group, limited to the matrix; empty if the group does not exist. */
typedef struct block_of_matrix {
    ptx_val row, row_end, column, column_end; /* u64 */
} block_of_matrix;

static block_of_matrix block_of(ptx_builder *b, const scale_matrix *s, ptx_val down, ptx_val across,
                                ptx_val exists)
{
    block_of_matrix o = {.row = ptx_mul(b, down, ptx_u64(b, s->plan.rows)),
                         .column = ptx_mul(b, across, ptx_u64(b, s->plan.columns))};
    ptx_val row_end = ptx_min(b, ptx_add(b, o.row, ptx_u64(b, s->plan.rows)), s->m.rows);
    o.row_end = ptx_selp(b, row_end, o.row, exists);
    o.column_end = ptx_min(b, ptx_add(b, o.column, ptx_u64(b, s->plan.columns)), s->m.columns);
    return o;
}

/* Adds the columns of a lane in `row`, and in the further rows that it loads at the same time; beyond the
 * last row, that row is loaded again. */
static void add_columns(ptx_builder *b, const scale_matrix *s, const range *r, const block_of_matrix *o,
                        ptx_val row, ptx_val column)
{
    const qdnnDataType_t data = s->m.q.coding.spec->data;
    const unsigned step = s->plan.step;
    ptx_val last = ptx_sub(b, o->row_end, 1), x[ROWS_AHEAD * CHUNK_MAX];
    for (unsigned u = 0; u < s->plan.ahead; u++) {
        ptx_val at = u ? ptx_min(b, ptx_add(b, row, u * SCALE_WARPS), last) : row;
        ptx_val address = ptx_at(b, s->x, ptx_mad(b, at, s->m.columns, column), element_bytes(data));
        if (step > 1)
            emit_load_run(b, data, address, 0, step, &x[u * step]);
        else
            x[u] = emit_load(b, data, address, 0);
    }
    for (unsigned i = 0; i < s->plan.ahead * step; i++)
        range_add(b, r, x[i]);
}

/* Adds the rows of this warp; columns lane, lane + lanes, ... in steps. */
static void add_block(ptx_builder *b, const scale_matrix *s, const range *r, const block_of_matrix *o,
                      ptx_val lane, ptx_val warp, unsigned step)
{
    scale_matrix by = *s;
    by.plan.step = step;
    ptx_val start = s->plan.is_tall ? ptx_add(b, o->row, warp) : o->row;
    ptx_val first = ptx_add(b, o->column, ptx_cvt(b, PTX_U64, ptx_mul(b, lane, step)));
    ptx_val row =
        ptx_for(b, start, o->row_end, ptx_u64(b, s->plan.ahead * (s->plan.is_tall ? SCALE_WARPS : 1)));
    ptx_val column = ptx_for(b, first, o->column_end, ptx_u64(b, s->plan.team.lanes * step));
    add_columns(b, &by, r, o, row, column);
    ptx_end_for(b);
    ptx_end_for(b);
}

static void reduce(ptx_builder *b, const scale_matrix *s, const range *r)
{
    range_reduce_team(b, &s->plan.team, r);
    if (s->plan.is_tall)
        range_reduce_columns(b, r, WARP);
}

/* The index of a zero that will be packed, independent of the order of scales: [groups, columns] or [rows,
 * groups]. */
static ptx_val zero_index(ptx_builder *b, const scale_matrix *s, const group_place *place)
{
    const kernel_spec *spec = s->m.q.coding.spec;
    if (!spec->stored.zero_packed)
        return matrix_group_number(b, &s->m, place);
    return spec->stored.groups == QDNN_GROUPS_COLUMNS ? ptx_mad(b, place->group, s->m.lines, place->line)
                                                      : ptx_mad(b, place->line, s->m.groups, place->group);
}

static void store_zero_scale(ptx_builder *b, const scale_matrix *s, ptx_val slot)
{
    qdnnScaleType_t type = s->m.q.coding.spec->stored.scale;
    ptx_val at = ptx_at(b, s->m.q.side.scale, slot, scale_bytes(type));
    ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT,
              scale_bytes(type) == 4   ? PTX_U32
              : scale_bytes(type) == 2 ? PTX_U16
                                       : PTX_U8,
              at, 0, ptx_u32(b, 0));
}

static void store_group(ptx_builder *b, const scale_matrix *s, const range *r, ptx_val down, ptx_val across,
                        ptx_val exists)
{
    const kernel_spec *spec = s->m.q.coding.spec;
    bool by_columns = spec->stored.groups == QDNN_GROUPS_COLUMNS;
    group_place place = {.line = by_columns ? across : down, .group = by_columns ? down : across};
    ptx_val slot = matrix_scale_slot(b, &s->m, &place);
    const bool is_padded = spec->stored.scale_swizzle != QDNN_SWIZZLE_NONE;
    if (is_padded) {
        ptx_if_not(b, exists);
        store_zero_scale(b, s, slot);
        ptx_end_if(b);
        ptx_if(b, exists);
    }
    ptx_val zero = format_has_zero(s->m.q.coding.format) ? zero_index(b, s, &place) : slot;
    group_made g = group_make(b, &s->m.q.coding, &s->m.q.side, r->lo, r->hi);
    group_store_at(b, &s->m.q.coding, &s->m.q.side, &g, slot, zero);
    if (is_padded)
        ptx_end_if(b);
}

static ptx_val also_below(ptx_builder *b, ptx_val x, ptx_val end, ptx_val condition)
{
    return condition.kind == PTX_NOTHING ? ptx_setp(b, PTX_LT, x, end)
                                         : ptx_setp_and(b, PTX_LT, x, end, condition);
}

/* Whether there is a slot for the group, or nothing where that is so for all groups of all blocks: without padding groups have slots, and padding
 * to a multiple of what a block takes fills the blocks. */
static ptx_val has_slot(ptx_builder *b, const scale_matrix *s, ptx_val down, ptx_val across, ptx_val exists)
{
    const kernel_spec *spec = s->m.q.coding.spec;
    const extent e = padding_of(spec);
    ptx_val has = {0};
    if (spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE)
        return exists;
    if (e.height % block_height(&s->plan) != 0)
        has = also_below(b, down, s->slots_height, has);
    if (e.width % s->plan.side_by_side != 0)
        has = also_below(b, across, s->slots_width, has);
    return has;
}

/* Whether this lane stores the scale: the first of a team, in the first warp if all share the group. */
static ptx_val is_storing(ptx_builder *b, const scale_matrix *s, ptx_val lane, ptx_val tid, ptx_val has)
{
    if (s->plan.team.lanes > 1)
        has = also_below(b, lane, ptx_u32(b, 1), has);
    return s->plan.is_tall ? also_below(b, tid, ptx_u32(b, WARP), has) : has;
}

/* Handles the groups that a warp (for tall groups: a block) processes at once, starting with first_across. */
static void scale_groups(ptx_builder *b, const scale_matrix *s, ptx_val down, ptx_val first_across)
{
    const plan *p = &s->plan;
    ptx_val tid = ptx_tid_x(b), warp = ptx_cvt(b, PTX_U64, ptx_shr(b, tid, 5));
    ptx_val lane = team_lane(b, &p->team, tid);
    ptx_val across = team_number(b, &p->team, ptx_laneid(b), first_across);
    ptx_val exists = ptx_setp_and(b, PTX_LT, across, s->width, ptx_setp(b, PTX_LT, down, s->height));
    block_of_matrix o = block_of(b, s, down, across, exists);
    range r = range_begin(b, range_kind_of(&s->m.q.coding));
    if (p->step > 1) {
        ptx_if(b, s->in_chunks);
        add_block(b, s, &r, &o, lane, warp, p->step);
        ptx_else(b);
    }
    add_block(b, s, &r, &o, lane, warp, 1);
    if (p->step > 1)
        ptx_end_if(b);
    reduce(b, s, &r);
    ptx_val stores = is_storing(b, s, lane, tid, has_slot(b, s, down, across, exists));
    if (stores.kind != PTX_NOTHING)
        ptx_if(b, stores);
    store_group(b, s, &r, down, across, exists);
    if (stores.kind != PTX_NOTHING)
        ptx_end_if(b);
}

void emit_matrix_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 3); /* up to 80 registers: by default, ptxas aims for fewer and spills */
    scale_matrix s = scale_begin(b, row, spec);
    const plan *p = &s.plan;
    ptx_val down = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, block_height(p)));
    if (!p->is_tall)
        down = ptx_add(b, down, ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_tid_x(b), 5)));
    ptx_val side = ptx_u32(b, p->side_by_side);
    ptx_val across = ptx_for(b, ptx_mul_wide(b, ptx_ctaid_y(b), side), s.slots_width,
                             ptx_mul_wide(b, ptx_sreg(b, "nctaid.y"), side));
    scale_groups(b, &s, down, across);
    if (p->is_tall)
        ptx_syncthreads(b); /* before the ranges of the next groups are written to the same shared memory */
    ptx_end_for(b);
}
