/* How kernels walk over a matrix: bands and spans, patches and elements. */
#include "kernels/quant/matrix.h"

static const warp_tile one_below_the_other = {MATRIX_WARPS, 1};

static kernel_geometry geometry_of(warp_tile warps, unsigned width)
{
    const unsigned count = warps.down * warps.across;
    return (kernel_geometry){.block = count * WARP,
                             .elements_per_block = (uint64_t)count * BAND * WARP * width,
                             .grid = {rule_parts(NUMBER_ROWS, warps.down * BAND),
                                      rule_capped(rule_parts(NUMBER_COLUMNS, warps.across * WARP * width))}};
}

kernel_geometry matrix_geometry_of_width(unsigned width)
{
    return geometry_of(one_below_the_other, width);
}

kernel_geometry matrix_geometry(const coding *c)
{
    return matrix_geometry_of_width(patch_width(c));
}

kernel_geometry matrix_staged_geometry(const coding *c)
{
    const group_stage stage = group_stage_of(c);
    kernel_geometry g = geometry_of(stage.warps, patch_width(c));
    g.shared_dynamic = stage.shared_dynamic;
    if (stage.is_table)
        g.grid[0] = rule_least(g.grid[0], group_table_blocks(c));
    return g;
}

void matrix_staged_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps)
{
    kernel_spec own = *spec;
    own.stored.group_table = spec->stored.group_index && !spec->row_index;
    if (own.stored.group_table && !group_table_fits(&(coding){row->format, &own}, problem))
        own.stored.group_table = 0;
    kernel_step *step = steps_add(steps, row, &own, problem);
    if (own.stored.group_table)
        step->shared = group_table_bytes(&(coding){row->format, &own}, problem);
}

/* Up to 255 registers for blocks of four warps, because kernels with minima and looked-up groups spill with
 * 128 or 168; 128 for eight warps. */
void matrix_directives(ptx_builder *b)
{
    ptx_minnctapersm(b, 2);
}

void matrix_walk_by_rows(matrix_walk *w)
{
    w->patch_rows = 1;
    if (!w->rows_are_free)
        w->patch = NULL;
    w->rows_are_free = false;
}

matrix_walk matrix_walk_of(const matrix *m, ptx_val aligned)
{
    const coding *c = &m->q.coding;
    return (matrix_walk){.rows = m->rows,
                         .columns = m->columns,
                         .aligned = aligned,
                         .width = patch_width(c),
                         .patch_rows = patch_rows(c),
                         .columns_multiple = matrix_columns_multiple(c),
                         .rows_are_free = patch_rows_are_free(c),
                         .in_pairs = chunk_is_joint(c->spec->data),
                         .warps = one_below_the_other};
}

static void run_patches(ptx_builder *b, const matrix_walk *w, patch *p, ptx_val from, ptx_val to,
                        unsigned rows)
{
    p->row = ptx_for(b, from, to, ptx_u64(b, rows));
    p->rows = rows;
    for (int i = 0; i < PATCH_WORDS_MAX; i++)
        p->words[i] = (ptx_val){0};
    w->patch(b, w->user, p);
    ptx_end_for(b);
}

/* An existing column for inactive lanes; if lanes load in pairs, the two get adjacent columns. */
static ptx_val other_column(ptx_builder *b, const matrix_walk *w)
{
    ptx_val last = ptx_sub(b, w->columns, w->width);
    if (!w->in_pairs)
        return last;
    ptx_val before = ptx_sub(b, w->width, ptx_mul(b, ptx_and(b, ptx_laneid(b), 1), w->width));
    return ptx_sub(b, last, ptx_cvt(b, PTX_U64, before));
}

/* Processes the patches of a band; sets `done` to the first row that is left over. */
static void run_band(ptx_builder *b, const matrix_walk *w, ptx_val span, ptx_val row, ptx_val row_end,
                     ptx_val done)
{
    ptx_val column = ptx_add(b, span, ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_laneid(b), w->width)));
    ptx_val active = ptx_setp(b, PTX_LT, column, w->columns);
    patch p = {.width = w->width, .row = row, .span = span, .active = active, .stage = w->stage};
    p.column = ptx_selp(b, column, other_column(b, w), active);
    ptx_val rows = ptx_and(b, ptx_sub(b, row_end, row), ptx_u64(b, ~(uint64_t)(w->patch_rows - 1)));
    ptx_val whole_end = ptx_add(b, row, rows);
    if (w->begin)
        w->begin(b, w->user, &p);
    run_patches(b, w, &p, row, whole_end, w->patch_rows);
    if (w->rows_are_free)
        run_patches(b, w, &p, whole_end, row_end, 1);
    ptx_assign(b, done, w->rows_are_free ? row_end : whole_end);
}

/* The first barrier waits until all threads have finished reading the previous tile. */
static void run_tile(ptx_builder *b, const matrix_walk *w, ptx_val in_patches, ptx_val row, ptx_val column)
{
    ptx_uniform(b);
    ptx_if(b, in_patches);
    ptx_syncthreads(b);
    w->tile(b, w->user, row, column);
    ptx_syncthreads(b);
    ptx_end_if(b);
}

/* A warp's part of a tile. */
static void run_part(ptx_builder *b, const matrix_walk *w, ptx_val in_patches, ptx_val span, ptx_val row)
{
    ptx_val row_end = ptx_min(b, ptx_add(b, row, BAND), w->rows), done = ptx_var(b, row);
    if (w->patch) {
        ptx_uniform(b);
        ptx_if(b, in_patches);
        run_band(b, w, span, row, row_end, done);
        ptx_end_if(b);
    }
    matrix_part rest = {done, row_end, span, ptx_min(b, ptx_add(b, span, WARP * w->width), w->columns)};
    w->elements(b, w->user, &rest);
}

static void run_parts(ptx_builder *b, const matrix_walk *w, ptx_val in_patches, ptx_val span, ptx_val row)
{
    if (w->rows_in_turns) {
        ptx_val step = ptx_mul_wide(b, ptx_sreg(b, "nctaid.x"), ptx_u32(b, w->warps.down * BAND));
        run_part(b, w, in_patches, span, ptx_for(b, row, w->rows, step));
        ptx_end_for(b);
        return;
    }
    ptx_val is_there = ptx_setp(b, PTX_LT, row, w->rows);
    if (w->warps.across > 1) /* else it begins where the tile does */
        is_there = ptx_setp_and(b, PTX_LT, span, w->columns, is_there);
    ptx_uniform(b);
    ptx_if(b, is_there);
    run_part(b, w, in_patches, span, row);
    ptx_end_if(b);
}

/* Where a warp's part of the tile begins. */
static void place_warp(ptx_builder *b, const matrix_walk *w, ptx_val warp, ptx_val tile_row,
                       ptx_val tile_column, ptx_val *row, ptx_val *span)
{
    const unsigned across = w->warps.across;
    ptx_val down = emit_divide(b, warp, across);
    *row = w->warps.down > 1 ? ptx_mad(b, down, ptx_u64(b, BAND), tile_row) : tile_row;
    *span = tile_column;
    if (across > 1)
        *span = ptx_mad(b, emit_remainder(b, warp, down, across), ptx_u64(b, WARP * w->width), tile_column);
}

void matrix_walk_run(ptx_builder *b, const matrix_walk *w)
{
    ptx_val multiple = ptx_and(b, w->columns, ptx_u64(b, w->columns_multiple - 1));
    ptx_val in_patches = ptx_setp_and(b, PTX_EQ, multiple, ptx_u64(b, 0), w->aligned);
    ptx_val warp = ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_tid_x(b), 5));
    ptx_val tile_row = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, w->warps.down * BAND));
    ptx_val wide = ptx_u32(b, w->warps.across * WARP * w->width);
    ptx_val tile_column = ptx_for(b, ptx_mul_wide(b, ptx_ctaid_y(b), wide), w->columns,
                                  ptx_mul_wide(b, ptx_sreg(b, "nctaid.y"), wide));
    ptx_val row, span;
    place_warp(b, w, warp, tile_row, tile_column, &row, &span);
    if (w->tile)
        run_tile(b, w, in_patches, tile_row, tile_column);
    run_parts(b, w, in_patches, span, row);
    ptx_end_for(b);
}

/* ---- Groups along the way ---- */

matrix_groups matrix_groups_of(const matrix *m)
{
    const coding *c = &m->q.coding;
    bool only = c->spec->stored.groups == QDNN_GROUPS_DEFAULT || c->spec->stored.channels == 1;
    if (c->spec->row_index) /* adjacent rows of the result need not be adjacent in the table */
        return (matrix_groups){.for_band = only};
    return (matrix_groups){.for_band = matrix_rows_share_groups(c->spec, BAND),
                           .for_patch = matrix_rows_share_groups(c->spec, patch_rows(c))};
}

static bool is_same_group(const group_values *x, const group_values *y)
{
    return x->scale.kind == y->scale.kind && x->scale.reg == y->scale.reg && x->scale.bits == y->scale.bits;
}

static void load_groups(ptx_builder *b, const matrix *m, matrix_groups *g, ptx_val row, const patch *p)
{
    if (g->stage.is_table)
        group_table_read(b, m, &g->stage, row, p, g->each);
    else if (g->stage.is_used)
        group_stage_read(b, m, &g->stage, row, p, g->each);
    else
        matrix_row_groups(b, m, row, p->column, p->width, g->each);
    for (unsigned k = 0; g->in_pairs && k < p->width; k += 2)
        g->pairs[k / 2] =
            k && is_same_group(&g->each[0], &g->each[k]) && is_same_group(&g->each[0], &g->each[k + 1])
                ? g->pairs[0]
                : pair_group_of(b, &m->q, m->q.coding.spec->data, &g->each[k], &g->each[k + 1]);
}

void groups_for_band(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p)
{
    if (g->stage.is_table)
        group_table_band(b, m, &g->stage, p);
    else if (g->for_band)
        load_groups(b, m, g, p->row, p);
}

/* If patches share groups, a patch of a single row, which may begin anywhere, has those of its row. */
void groups_for_patch(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p)
{
    if (!g->for_band && g->for_patch)
        load_groups(b, m, g, p->row, p);
}

void groups_for_row(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p, unsigned i)
{
    if (!g->for_band && !g->for_patch)
        load_groups(b, m, g, i ? ptx_add(b, p->row, i) : p->row, p);
}

ptx_val patch_data(ptx_builder *b, qdnnDataType_t type, ptx_val data, ptx_val columns, const patch *p,
                   unsigned i)
{
    ptx_val row = i ? ptx_add(b, p->row, i) : p->row;
    return ptx_at(b, data, ptx_mad(b, row, columns, p->column), element_bytes(type));
}
