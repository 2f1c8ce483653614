/* The product for many rows. A thread block computes a tile of outputs, each thread 8 x 8 of them with one
 * accumulator each. So the lanes of the contract are summed one after another: for each lane the block
 * brings its chunks, two at a time (a stage), into shared memory, both x and decoded weights, while the
 * previous stage is being summed.
 *
 * Lanes are taken in bit-reversed order: 0, 16, 8, 24, 4 ... The tree joins lane i with i + 16 first, so
 * partial sums can be joined like the digits of a binary counter, and no more than five are waiting at a
 * time, in local memory. A subtree of lanes is contiguous in that order: the blocks along the grid's z
 * take one each, and another kernel (join.c) joins their sums.
 *
 * Shared memory holds rows of 16 k (of x, or of an output) in 20 words, with 8 more words after every 8
 * rows: then reads and writes of vectors by 8 neighbouring rows, and of words by 8 k of 4 groups of rows,
 * have no bank conflicts. */
#include "kernels/gemm/lanewise.h"

#include "kernels/gemm/epilogue.h"

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    const unsigned outputs = OUTPUTS / (unsigned)spec->product.tile_rows;
    return spec->epilogue.gated ? outputs / 2 : outputs;
}

/* ---- Sums ---- */

/* A thread's rows of x are 4 apart, its outputs 8 apart. */
static int x_offset(unsigned i)
{
    return (int)(i / 2 * EIGHT_ROWS + i % 2 * 4 * ROW_BYTES);
}

static void add_vectors(ptx_builder *b, const lanewise *t, ptx_val x_at, ptx_val w_at, int offset)
{
    ptx_val w[SIDE][QUAD], x[QUAD];
    for (unsigned j = 0; j < SIDE; j++)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, w_at, (int)(j * EIGHT_ROWS) + offset, w[j],
                   QUAD);
    for (unsigned i = 0; i < SIDE; i++) {
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, x_at, x_offset(i) + offset, x, QUAD);
        for (unsigned k = 0; k < QUAD; k++)
            for (unsigned j = 0; j < SIDE; j++) {
                ptx_into(b, t->sums[i][j]);
                ptx_fma(b, x[k], w[j][k], t->sums[i][j]);
            }
    }
}

static void add_stage(ptx_builder *b, const lanewise *t, ptx_val buffer)
{
    ptx_val x_at = ptx_add(b, t->read_x, buffer), w_at = ptx_add(b, t->read_w, buffer);
    for (unsigned k = 0; k < CHUNKS * CHUNK; k += QUAD)
        add_vectors(b, t, x_at, w_at, (int)(4 * k));
}

/* The same as a loop, for smaller code. */
static void add_stage_by_loop(ptx_builder *b, const lanewise *t, ptx_val buffer)
{
    ptx_val offset = ptx_for(b, buffer, ptx_add(b, buffer, 4 * CHUNKS * CHUNK), 4 * QUAD);
    add_vectors(b, t, ptx_add(b, t->read_x, offset), ptx_add(b, t->read_w, offset), 0);
    ptx_end_for(b);
}

static void clear_sums(ptx_builder *b, const lanewise *t)
{
    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j++)
            ptx_assign(b, t->sums[i][j], ptx_f32(b, 0));
}

static void store_sums(ptx_builder *b, const lanewise *t, ptx_val to)
{
    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j += QUAD)
            ptx_st_vec(b, PTX_LOCAL, PTX_CACHE_DEFAULT, to, (int)(4 * (i * SIDE + j)), &t->sums[i][j], QUAD);
}

static void join_sums(ptx_builder *b, const lanewise *t, ptx_val from)
{
    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j += QUAD) {
            ptx_val left[QUAD];
            ptx_ld_vec(b, PTX_LOCAL, PTX_CACHE_DEFAULT, PTX_F32, from, (int)(4 * (i * SIDE + j)), left, QUAD);
            for (unsigned k = 0; k < QUAD; k++) {
                ptx_into(b, t->sums[i][j + k]);
                ptx_add(b, left[k], t->sums[i][j + k]);
            }
        }
}

/* Lane number `lane` (u32) of the block is complete: joins it with those waiting and, unless it is the
 * last, stores the result. */
static void end_lane(ptx_builder *b, const lanewise *t, ptx_val lane, ptx_val is_last)
{
    ptx_val left = ptx_var(b, lane), at = ptx_var(b, t->partials);
    ptx_uniform(b);
    ptx_loop(b);
    ptx_uniform(b);
    ptx_break_if(b, ptx_setp(b, PTX_EQ, ptx_and(b, left, 1), 0));
    join_sums(b, t, at);
    ptx_assign(b, left, ptx_shr(b, left, 1));
    ptx_assign(b, at, ptx_add(b, at, SUM_BYTES));
    ptx_end_loop(b);
    ptx_uniform(b);
    ptx_if_not(b, is_last);
    store_sums(b, t, at);
    clear_sums(b, t);
    ptx_end_if(b);
}

/* ---- Lanes ---- */

/* The first k of lane number `lane` of the block. */
static ptx_val lane_k(ptx_builder *b, const lanewise *t, ptx_val lane)
{
    return ptx_shl(b, ptx_shr(b, ptx_brev(b, ptx_add(b, lane, t->first_lane)), 27), 3);
}

/* The block's position in its lanes. */
typedef struct walk {
    ptx_val lane;    /* variable, u32 */
    ptx_val k, next; /* variables, u32 or u64: of the current stage, and of the next one */
    ptx_val end;     /* of k: all lanes have the same number of stages */
    ptx_val buffer;  /* variable, u32 */
    ptx_val other;   /* the other buffer */
    ptx_val is_end;  /* predicate: the current stage is the last of its lane */
} walk;

static ptx_val as_wide_as(ptx_builder *b, ptx_val x, bool is_wide)
{
    return is_wide ? ptx_cvt(b, PTX_U64, x) : x;
}

static walk walk_begin(ptx_builder *b, const lanewise *t, bool is_wide)
{
    walk w = {.lane = ptx_var(b, ptx_u32(b, 0)), .buffer = ptx_var(b, ptx_u32(b, 0))};
    ptx_val k = is_wide ? t->args.k : ptx_cvt(b, PTX_U32, t->args.k),
            none = is_wide ? ptx_u64(b, 0) : ptx_u32(b, 0);
    w.end = ptx_and(b, ptx_add(b, k, STAGE_K - 1), ptx_sub(b, none, STAGE_K));
    w.k = ptx_var(b, as_wide_as(b, lane_k(b, t, w.lane), is_wide));
    w.next = ptx_var(b, w.k);
    return w;
}

/* The next stage may be the first of the next lane. Even after the last one it is valid: lanes count
 * modulo 32. */
static void walk_next(ptx_builder *b, const lanewise *t, walk *w)
{
    ptx_assign(b, w->next, ptx_add(b, w->k, STAGE_K));
    w->is_end = ptx_setp(b, PTX_GE, w->next, w->end);
    ptx_uniform(b);
    ptx_if(b, w->is_end);
    ptx_assign(b, w->next, as_wide_as(b, lane_k(b, t, ptx_add(b, w->lane, 1)), w->k.type == PTX_U64));
    ptx_end_if(b);
    w->other = ptx_sub(b, (int)lanewise_buffer_bytes(t), w->buffer);
}

static void walk_on(ptx_builder *b, const lanewise *t, const walk *w)
{
    ptx_uniform(b);
    ptx_if(b, w->is_end);
    ptx_val is_last = ptx_setp(b, PTX_EQ, ptx_add(b, w->lane, 1), t->lanes);
    end_lane(b, t, w->lane, is_last);
    ptx_uniform(b);
    ptx_break_if(b, is_last);
    ptx_assign(b, w->lane, ptx_add(b, w->lane, 1));
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_assign(b, w->k, w->next);
    ptx_assign(b, w->buffer, w->other);
}

/* Each iteration loads the next stage, sums the current one, and stores the next one to the other buffer. */
static void sum_lanes(ptx_builder *b, lanewise *t)
{
    walk w = walk_begin(b, t, false);
    lanewise_fetch(b, t, w.k);
    lanewise_put(b, t, w.k, w.buffer);
    ptx_syncthreads(b);
    ptx_uniform(b);
    ptx_loop(b);
    walk_next(b, t, &w);
    lanewise_fetch(b, t, w.next);
    if (t->rows == 32) /* many items of weights: few registers left */
        add_stage_by_loop(b, t, w.buffer);
    else
        add_stage(b, t, w.buffer);
    lanewise_put(b, t, w.next, w.other);
    walk_on(b, t, &w);
    ptx_end_loop(b);
}

static void sum_lanes_by_elements(ptx_builder *b, lanewise *t)
{
    walk w = walk_begin(b, t, true);
    lanewise_copy(b, t, w.k, w.buffer);
    ptx_syncthreads(b);
    ptx_uniform(b);
    ptx_loop(b);
    walk_next(b, t, &w);
    add_stage_by_loop(b, t, w.buffer);
    lanewise_copy(b, t, w.next, w.other);
    walk_on(b, t, &w);
    ptx_end_loop(b);
}

/* ---- The tile ---- */

/* Stores the sums of a subtree in the workspace: [split, M, outputs]. */
static void store_partial_sums(ptx_builder *b, const lanewise *t, ptx_val m, ptx_val n, const ptx_val *sums)
{
    ptx_val part = ptx_cvt(b, PTX_U64, ptx_ctaid_z(b)), row = ptx_mad(b, part, t->args.m, m);
    ptx_val at = ptx_at(b, t->args.all.partials, ptx_mad(b, row, t->args.outputs, n), 4);
    ptx_st_global(b, at, 0, sums[0]);
    if (t->spec->epilogue.gated)
        ptx_st_global(b, ptx_at(b, at, t->args.n, 4), 0, sums[1]);
}

/* Completes the thread's outputs, one after another, from local memory. */
static void finish(ptx_builder *b, const lanewise *t)
{
    const unsigned pair = t->spec->epilogue.gated ? 2 : 1, across = SIDE / pair;
    epilogue e = {0};
    if (t->spec->product.split == 1)
        e = epilogue_begin(b, t->spec, &t->args);
    ptx_val lane = ptx_laneid(b), sums[2];
    ptx_val row = ptx_add(b, t->warp_row, ptx_shr(b, lane, 3));
    ptx_val column =
        ptx_add(b, pair == 2 ? ptx_shr(b, t->warp_column, 1) : t->warp_column, ptx_and(b, lane, 7));
    store_sums(b, t, t->partials);
    ptx_val i = ptx_for(b, ptx_u32(b, 0), SIDE * across, 1);
    ptx_val of_row = ptx_mad(b, ptx_shr(b, i, ceil_log2(across)), 4, row);
    ptx_val of_column = ptx_mad(b, ptx_and(b, i, (int)across - 1), 8, column);
    ptx_val n = ptx_add(b, t->column, ptx_cvt(b, PTX_U64, of_column)), number = ptx_cvt(b, PTX_U64, of_row);
    ptx_val stored = ptx_setp_and(b, PTX_LT, n, t->args.n, row_tile_has(b, &t->at, number));
    ptx_if(b, stored);
    ptx_val m = row_tile_row(b, &t->at, number, stored);
    ptx_ld_vec(b, PTX_LOCAL, PTX_CACHE_DEFAULT, PTX_F32, ptx_at(b, t->partials, i, 4 * pair), 0, sums,
               (int)pair);
    for (unsigned j = 0; j < pair; j++)
        sums[j] = row_tile_sum(b, &t->at, sums[j]);
    if (t->spec->product.split > 1)
        store_partial_sums(b, t, m, n, sums);
    else
        epilogue_store(b, &e, m, n, sums, t->at.expert);
    ptx_end_if(b);
    ptx_end_for(b);
}

static void multiply(ptx_builder *b, lanewise *t)
{
    ptx_val is_fast = lanewise_x_is_aligned(b, t);
    if (runs_exist(&t->w))
        is_fast = ptx_and(b, is_fast, t->w.by_runs);
    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j++)
            t->sums[i][j] = ptx_var(b, ptx_f32(b, 0));
    lanewise_place_x(b, t);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, row_tile_size(b, &t->at, t->args.k), ptx_u64(b, 0)));
    ptx_syncthreads(b); /* the previous rows may still be in use */
    if (runs_exist(&t->w)) {
        ptx_uniform(b);
        ptx_if(b, is_fast);
        sum_lanes(b, t);
        ptx_else(b);
    }
    sum_lanes_by_elements(b, t);
    if (runs_exist(&t->w))
        ptx_end_if(b);
    ptx_end_if(b);
    finish(b, t);
}

/* The thread's position in the tile. */
static void place_thread(ptx_builder *b, lanewise *t)
{
    const unsigned down = t->rows / WARP_ROWS;
    ptx_val warp = ptx_shr(b, t->tid, 5), lane = ptx_laneid(b);
    t->warp_row = ptx_mul(b, ptx_and(b, warp, (int)down - 1), WARP_ROWS);
    t->warp_column = ptx_mul(b, ptx_shr(b, warp, ceil_log2(down)), WARP_COLUMNS);
    t->read_x = ptx_add(b, t->shared, lanewise_row_offset(b, ptx_add(b, t->warp_row, ptx_shr(b, lane, 3))));
    t->read_w = ptx_add(b, ptx_add(b, t->shared, (int)lanewise_rows_bytes(t->rows)),
                        lanewise_row_offset(b, ptx_add(b, t->warp_column, ptx_and(b, lane, 7))));
}

/* The weights of the product, or of the expert of the tile's rows. */
static void begin_weights(ptx_builder *b, const kernel_row *row, lanewise *t)
{
    t->w = weights_begin(b, row, t->spec, &t->args);
    t->in_pairs = runs_share_groups(&t->w);
    if (t->in_pairs && t->w_items == 1)
        t->w_items = 2; /* for half the threads */
}

static void emit_lanewise(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 2); /* no limit on registers */
    lanewise t = {.spec = spec,
                  .rows = (unsigned)spec->product.tile_rows,
                  .columns = OUTPUTS / (unsigned)spec->product.tile_rows,
                  .args = gemm_declare(b, row, spec)};
    t.x_items = t.rows * CHUNKS < THREADS ? 1 : t.rows * CHUNKS / THREADS;
    t.w_items = t.columns * CHUNKS / THREADS;
    if (!spec->product.grouped)
        begin_weights(b, row, &t);
    t.shared = ptx_shared(b, "stages", PTX_F32, 2 * lanewise_buffer_bytes(&t) / 4, LOAD_BYTES);
    t.partials = ptx_local(b, "waiting", PTX_F32, PARTIALS * SIDE * SIDE, LOAD_BYTES);
    t.tid = ptx_tid_x(b);
    t.column = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, columns_of(row, spec)));
    t.lanes = ptx_u32(b, 32 / (unsigned)spec->product.split);
    t.first_lane = spec->product.split > 1 ? ptx_mul(b, ptx_ctaid_z(b), t.lanes) : ptx_u32(b, 0);
    place_thread(b, &t);
    if (!spec->product.grouped)
        lanewise_place_weights(b, &t);
    ptx_uniform(b);
    t.at = row_tiles_begin(b, spec, &t.args);
    if (spec->product.grouped) {
        ptx_syncthreads(b); /* tables of the previous tile may still be in use */
        t.args = row_tile_args(b, &t.at, &t.args);
        begin_weights(b, row, &t);
        lanewise_place_weights(b, &t);
    }
    multiply(b, &t);
    row_tiles_end(b);
}

const gemm_kernel gemm_lanewise = {.block = THREADS,
                                   .outputs = columns_of,
                                   .emit = emit_lanewise,
                                   .rows = 32,
                                   .rows_most = 128,
                                   .takes_experts = true};
