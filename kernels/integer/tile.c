/* Products on tensor cores: four warps compute a tile of 64 x 64 or 128 x 128 outputs, a quarter each. x and
 * w go through shared memory in stages of 64 bytes of k (fill.h); cp.async fills two of three stages while
 * the third is used.
 *
 * mma takes 32 bytes of k both for s8 and for s4: 64 nibbles are arranged like 32 bytes, so that only the
 * instruction differs. From sm_90 on there is no s4 instruction; there, nibbles are spread to bytes that are
 * 16 times as large. */
#include "kernels/integer/tile.h"

#include "kernels/emit.h"

enum { WARPS = INT_TILE_BLOCK / 32, STAGES_MAX = 3, ONES = 0x01010101 };

bool tile_has_async(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && sm->number >= 80;
}

static bool has_s4(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && sm->number < 90;
}

/* ---- mma ---- */

/* Four small instructions of sm_75 replace one of later SMs: rows 0 to 7 and 8 to 15, and the two halves of
 * k. */
void tile_multiply(ptx_builder *b, ptx_mma_id whole, ptx_mma_id quarter, const ptx_val sums[4],
                   const ptx_val x[4], const ptx_val w[2], const ptx_val before[4])
{
    if (tile_has_async(b)) {
        ptx_mma_into(b, whole, sums, x, w, before);
        return;
    }
    for (int i = 0; i < 4; i++)
        ptx_mma_into(b, quarter, sums + i % 2 * 2, &x[i], &w[i / 2], (i < 2 ? before : sums) + i % 2 * 2);
}

static void multiply_bytes(ptx_builder *b, const tile *t, const ptx_val sums[4], const ptx_val x[4],
                           const ptx_val w[2])
{
    if (t->spec->integer.x_codes == QDNN_DATA_U8)
        tile_multiply(b, PTX_MMA_m16n8k32_s32_u8_s8, PTX_MMA_m8n8k16_s32_u8_s8, sums, x, w, sums);
    else
        tile_multiply(b, PTX_MMA_m16n8k32_s32_s8, PTX_MMA_m8n8k16_s32_s8, sums, x, w, sums);
}

static bool is_nibbles(const tile *t)
{
    return t->spec->integer.x_codes == QDNN_DATA_I4;
}

static bool spreads_nibbles(const ptx_builder *b, const tile *t)
{
    return is_nibbles(t) && !has_s4(b);
}

/* ---- The main loop ---- */

/* Sums the codes of x, for rows 0 to 7 and 8 to 15 of a block. */
static void add_x(ptx_builder *b, const tile *t, unsigned i, const ptx_val x[4])
{
    for (int r = 0; r < 4 && t->spec->integer.w_zero; r++) {
        ptx_val sum = t->x_sums[i][r % 2], codes = int_typed(b, t->spec->integer.x_codes, x[r]);
        ptx_into(b, sum);
        ptx_dp4a(b, codes, ptx_s32(b, ONES), sum);
    }
}

static void add_w(ptx_builder *b, const tile *t, unsigned j, const ptx_val w[2])
{
    for (int r = 0; r < 2 && t->spec->integer.x_zero; r++) {
        ptx_val codes = ptx_as(b, PTX_S32, w[r]);
        ptx_into(b, t->w_sums[j]);
        ptx_dp4a(b, codes, ptx_s32(b, ONES), t->w_sums[j]);
    }
}

/* x in registers; nibbles that are spread to bytes have two parts, the even and the odd ones. */
typedef struct fragments {
    ptx_val codes[TILE_M_MAX][2][4];
    int parts;
} fragments;

static fragments load_x(ptx_builder *b, const tile *t, int offset, int step)
{
    fragments x = {.parts = spreads_nibbles(b, t) ? 2 : 1};
    for (unsigned i = 0; i < t->m_blocks; i++) {
        ptx_val four[4];
        ptx_ldmatrix(b, t->x_at[step], offset + (int)i * 16 * FILL_ROW, four, 4);
        add_x(b, t, i, four);
        for (int r = 0; r < 4; r++)
            if (x.parts == 2)
                int_spread(b, four[r], &x.codes[i][0][r], &x.codes[i][1][r]);
            else
                x.codes[i][0][r] = four[r];
    }
    return x;
}

/* Multiplies one block of columns of w with all rows of x. */
static void multiply_block(ptx_builder *b, const tile *t, const fragments *x, unsigned j, const ptx_val w[2])
{
    ptx_val parts[2][2] = {{w[0], w[1]}};
    add_w(b, t, j, w);
    for (int r = 0; r < 2 && x->parts == 2; r++)
        int_spread(b, w[r], &parts[0][r], &parts[1][r]);
    for (unsigned i = 0; i < t->m_blocks; i++)
        for (int part = 0; part < x->parts; part++) {
            if (is_nibbles(t) && x->parts == 1)
                tile_multiply(b, PTX_MMA_m16n8k64_s32_s4, PTX_MMA_m8n8k32_s32_s4, t->sums[i][j],
                              x->codes[i][0], w, t->sums[i][j]);
            else
                multiply_bytes(b, t, t->sums[i][j], x->codes[i][part], parts[part]);
        }
}

static void compute_step(ptx_builder *b, const tile *t, unsigned stage, int step)
{
    const int x_offset = (int)(stage * t->fill.stage_bytes), w_offset = x_offset + (int)t->side * FILL_ROW;
    fragments x = load_x(b, t, x_offset, step);
    for (unsigned j = 0; j < t->n_blocks; j += 2) {
        ptx_val four[4];
        ptx_ldmatrix(b, t->w_at[step], w_offset + (int)j * 8 * FILL_ROW, four, 4);
        multiply_block(b, t, &x, j, four);
        multiply_block(b, t, &x, j + 1, four + 2);
    }
}

/* Computes the first or the second half of a stage. */
static void compute_half(ptx_builder *b, const tile *t, unsigned stage, int half)
{
    if (int_is_grouped(t->spec))
        tile_groups_compute(b, t, stage, half);
    else
        compute_step(b, t, stage, half);
}

/* The number of tiles of k, if the specification determines it and it is at most that of the stages: then there is no loop. Else 0. */
static unsigned few_tiles(const tile *t)
{
    const unsigned tiles = t->fill.is_conv ? (fill_window_bytes(t->spec) + FILL_ROW - 1) / FILL_ROW : 0;
    return tiles <= t->stages ? tiles : 0;
}

/* Of the last of a few tiles, only the halves that have a k. */
static void compute_stage(ptx_builder *b, const tile *t, unsigned stage)
{
    const unsigned last =
        few_tiles(t) == stage + 1 ? fill_window_bytes(t->spec) - stage * FILL_ROW : FILL_ROW;
    for (unsigned half = 0; half < TILE_STEPS && half * TILE_STEP < last; half++)
        compute_half(b, t, stage, (int)half);
}

/* Counts the tiles that are left. */
static void break_after_last(ptx_builder *b, ptx_val left)
{
    ptx_into(b, left);
    ptx_sub(b, left, 1);
    ptx_uniform(b);
    ptx_break_if(b, ptx_setp(b, PTX_EQ, left, 0));
}

/* Starts to fill a stage with a tile; of tiles past the last of a few, only the count of groups is kept. */
static void start_tile(ptx_builder *b, tile *t, unsigned number)
{
    if (few_tiles(t) && number >= few_tiles(t))
        ptx_cp_async_commit(b);
    else
        fill_start(b, &t->fill, number % t->stages);
}

/* Two stages are being filled while one is used. A stage is filled again once every warp is done with it. */
static void loop_async(ptx_builder *b, tile *t, ptx_val left)
{
    const unsigned few = few_tiles(t);
    for (unsigned s = 0; s + 1 < t->stages; s++)
        start_tile(b, t, s);
    if (!few)
        ptx_loop(b);
    for (unsigned s = 0; s < (few ? few : t->stages); s++) {
        ptx_cp_async_wait(b, t->stages - 2);
        ptx_syncthreads(b);
        start_tile(b, t, s + t->stages - 1);
        compute_stage(b, t, s);
        if (!few)
            break_after_last(b, left);
    }
    if (!few)
        ptx_end_loop(b);
    ptx_cp_async_wait_all(b);
    ptx_syncthreads(b);
}

/* Half of the next tile is read while half of a stage is computed. With the large tile, the sums leave no
 * registers to hold it for that long; there, the other block on the SM computes in the meantime. */
static void compute_and_fill(ptx_builder *b, tile *t, unsigned stage)
{
    const bool waits = t->side == 128;
    for (int half = 0; half < FILL_HALVES; half++) {
        fill_hold(b, &t->fill, (fill_half)half);
        if (!waits)
            compute_half(b, t, stage, half);
        fill_put(b, &t->fill, (fill_half)half, 1 - stage);
        if (waits)
            compute_half(b, t, stage, half);
    }
}

static void loop_registers(ptx_builder *b, tile *t, ptx_val left)
{
    const unsigned few = few_tiles(t);
    for (int half = 0; half < FILL_HALVES; half++) {
        fill_hold(b, &t->fill, (fill_half)half);
        fill_put(b, &t->fill, (fill_half)half, 0);
    }
    ptx_syncthreads(b);
    if (!few)
        ptx_loop(b);
    for (unsigned s = 0; s < (few ? few : t->stages); s++) {
        if (s + 1 == few)
            compute_stage(b, t, s);
        else
            compute_and_fill(b, t, s);
        ptx_syncthreads(b);
        if (!few)
            break_after_last(b, left);
    }
    if (!few)
        ptx_end_loop(b);
}

/* For rows that are not 16-byte aligned: a tile is read, then it is used. */
static void loop_slowly(ptx_builder *b, tile *t, ptx_val left)
{
    const bool loops = few_tiles(t) != 1;
    if (loops) {
        ptx_rolled(b);
        ptx_loop(b);
    }
    fill_slowly(b, &t->fill);
    ptx_syncthreads(b);
    compute_stage(b, t, 0);
    ptx_syncthreads(b);
    if (loops) {
        break_after_last(b, left);
        ptx_end_loop(b);
    }
}

/* The number of tiles of k. */
static ptx_val tile_count(ptx_builder *b, const tile *t)
{
    if (t->fill.is_conv)
        return ptx_u32(b, (fill_window_bytes(t->spec) + FILL_ROW - 1) / FILL_ROW);
    return ptx_shr(b, ptx_add(b, t->fill.w.pitch, FILL_ROW - 1), 6);
}

static void main_loop(ptx_builder *b, tile *t)
{
    ptx_val tiles = row_tile_size(b, &t->fill.rows, tile_count(b, t)),
            left = few_tiles(t) == 1 ? (ptx_val){0} : ptx_var(b, tiles);
    if (!t->fill.is_conv) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_NE, tiles, 0));
    }
    ptx_uniform(b);
    ptx_if(b, fill_is_fast(b, &t->fill));
    if (t->fill.is_async)
        loop_async(b, t, left);
    else
        loop_registers(b, t, left);
    ptx_else(b);
    loop_slowly(b, t, left);
    ptx_end_if(b);
    if (!t->fill.is_conv)
        ptx_end_if(b);
}
_Static_assert(FILL_ROW == 1 << 6, "the number of tiles is shifted by it");
_Static_assert((int)TILE_STEPS == (int)FILL_HALVES,
               "half of the next tile arrives with each half of a stage");

/* ---- Results ---- */

/* A warp's part of shared memory: 16 rows of its sums, padded to avoid bank conflicts; the sums of its w and
 * of its x. */
typedef struct exchange {
    unsigned columns, pitch;      /* words */
    ptx_val sums, w_sums, x_sums; /* u32 */
} exchange;

static exchange exchange_begin(ptx_builder *b, const tile *t, ptx_val warp)
{
    exchange e = {.columns = t->n_blocks * 8};
    e.pitch = e.columns + 8;
    const unsigned bytes = (16 * e.pitch + e.columns + t->m_blocks * 16) * 4;
    e.sums = ptx_mad(b, warp, ptx_u32(b, bytes), t->shared);
    e.w_sums = ptx_add(b, e.sums, ptx_u32(b, 16 * e.pitch * 4));
    e.x_sums = ptx_add(b, e.w_sums, ptx_u32(b, e.columns * 4));
    return e;
}

/* Sums over the four threads that share a row of a fragment; the first one stores the result. */
static void put_quad_sum(ptx_builder *b, ptx_val sum, ptx_val lane, ptx_val to, int offset)
{
    ptx_val pair = ptx_add(b, sum, ptx_shfl_bfly(b, sum, 1)),
            all = ptx_add(b, pair, ptx_shfl_bfly(b, pair, 2));
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_and(b, lane, 3), 0));
    ptx_st_shared(b, ptx_at(b, to, ptx_shr(b, lane, 2), 4), offset * 4, all);
    ptx_end_if(b);
}

static void put_zero_sums(ptx_builder *b, const tile *t, const exchange *e, ptx_val lane)
{
    for (unsigned j = 0; j < t->n_blocks && t->spec->integer.x_zero; j++)
        put_quad_sum(b, t->w_sums[j], lane, e->w_sums, (int)j * 8);
    for (unsigned i = 0; i < 2 * t->m_blocks && t->spec->integer.w_zero; i++)
        put_quad_sum(b, t->x_sums[i / 2][i % 2], lane, e->x_sums, (int)i * 8);
}

static void put_sums(ptx_builder *b, const tile *t, const exchange *e, unsigned i, ptx_val lane)
{
    ptx_val row = ptx_shr(b, lane, 2), column = ptx_shl(b, ptx_and(b, lane, 3), 1);
    ptx_val to = ptx_at(b, e->sums, ptx_mad(b, row, ptx_u32(b, e->pitch), column), 4);
    for (unsigned j = 0; j < t->n_blocks; j++)
        for (unsigned half = 0; half < 2; half++)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)((half * 8 * e->pitch + j * 8) * 4),
                       int_is_grouped(t->spec) ? &t->totals[i][j][2 * half] : &t->sums[i][j][2 * half], 2);
}

/* The columns of a thread: every 32nd. */
typedef struct owned {
    int count;
    int_column column[2];
    ptx_val
        place; /* u32: of the first among the sums of a row; of a gated pair, that of the other is 8 further */
    ptx_val exists[2], w_sum[2];
} owned;

/* Of gated pairs, eight columns of one half of w's outputs and of the other take turns, so that a row has fewer than 33 pairs. */
static owned owned_pairs(ptx_builder *b, const tile *t, const int_results *r, const exchange *e,
                         ptx_val first, ptx_val lane)
{
    owned o = {.count = 1};
    ptx_val n = ptx_add(b, first, ptx_cvt(b, PTX_U64, lane)), last = ptx_sub(b, t->columns, ptx_u64(b, 1));
    o.place = ptx_add(b, lane, ptx_and(b, lane, ~7u));
    o.exists[0] = ptx_setp_and(b, PTX_LT, n, t->columns, ptx_setp(b, PTX_LT, lane, e->columns / 2));
    o.column[0] = int_column_begin(b, r, ptx_min(b, n, last));
    for (int i = 0; i < 2 && t->spec->integer.x_zero; i++) {
        ptx_val at = ptx_at(b, e->w_sums, ptx_min(b, o.place, e->columns - 9), 4);
        o.w_sum[i] = ptx_ld_shared(b, PTX_S32, at, i * 32);
    }
    return o;
}

static owned owned_begin(ptx_builder *b, const tile *t, const int_results *r, const exchange *e,
                         ptx_val first, ptx_val lane)
{
    if (t->spec->epilogue.gated)
        return owned_pairs(b, t, r, e, first, lane);
    owned o = {.count = (int)e->columns / 32, .place = lane};
    ptx_val last = ptx_sub(b, t->columns, ptx_u64(b, 1));
    for (int i = 0; i < o.count; i++) {
        ptx_val place = i ? ptx_add(b, lane, 32 * i) : lane,
                n = ptx_add(b, first, ptx_cvt(b, PTX_U64, place));
        o.exists[i] = ptx_setp(b, PTX_LT, n, t->columns);
        o.column[i] = int_column_begin(b, r, ptx_add(b, t->first_output, ptx_min(b, n, last)));
        if (t->spec->integer.x_zero)
            o.w_sum[i] = ptx_ld_shared(b, PTX_S32, ptx_at(b, e->w_sums, place, 4), 0);
    }
    return o;
}

/* A sum of nibbles without the products of the padding of its rows. */
static ptx_val without_padding(ptx_builder *b, const tile *t, ptx_val sum, ptx_val m, ptx_val n)
{
    ptx_val rest = ptx_var(b, sum);
    ptx_uniform(b);
    ptx_if(b, int_has_padding(b, t->args.k));
    ptx_val products = int_padding_products(b, t->args.k, int_row_that_exists(b, &t->fill.x, m),
                                            int_row_that_exists(b, &t->fill.w, n));
    ptx_assign(b, rest, ptx_sub(b, rest, products));
    ptx_end_if(b);
    return rest;
}

/* The number of row i (u64) of the block's rows; *has: whether it exists. */
static ptx_val row_of_y(ptx_builder *b, const tile *t, ptx_val i, ptx_val *has)
{
    if (t->spec->product.grouped) {
        *has = row_tile_has(b, &t->fill.rows, i);
        return row_tile_row(b, &t->fill.rows, i, *has);
    }
    ptx_val m = ptx_add(b, t->fill.first_row, i);
    *has = ptx_setp(b, PTX_LT, m, t->args.m);
    return m;
}

/* Stores sixteen rows of the warp's sums, one row at a time, with neighbouring threads on adjacent
 * columns. */
static void store_rows(ptx_builder *b, const tile *t, const int_results *r, const exchange *e, const owned *o,
                       unsigned block, ptx_val first_row)
{
    if (t->side == 128)
        ptx_rolled(b); /* the sums of the other rows are still in registers */
    ptx_val i = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, 16), 1), has;
    ptx_val m = row_of_y(
        b, t, ptx_add(b, ptx_add(b, first_row, ptx_u64(b, block * 16)), ptx_cvt(b, PTX_U64, i)), &has);
    ptx_uniform(b);
    ptx_break_unless(b, has);
    ptx_val x_sum = {0}, from = ptx_at(b, e->sums, ptx_mad(b, i, ptx_u32(b, e->pitch), o->place), 4);
    const ptx_type type = int_is_grouped(t->spec) ? PTX_F32 : PTX_S32;
    if (t->spec->integer.w_zero)
        x_sum = ptx_ld_shared(b, PTX_S32, ptx_at(b, e->x_sums, i, 4), (int)block * 64);
    for (int c = 0; c < o->count; c++) {
        ptx_val sums[2] = {{0}};
        ptx_if(b, o->exists[c]);
        for (int half = 0; half <= (t->spec->epilogue.gated ? 1 : 0); half++) {
            ptx_val sum = ptx_ld_shared(b, type, from, c * 128 + half * 32);
            if (spreads_nibbles(b, t))
                sum = ptx_shr(b, sum, 8);
            if (is_nibbles(t))
                sum = without_padding(b, t, sum, m, o->column[c].n);
            sums[half] = int_without_zeros(b, r, sum, x_sum, o->w_sum[half ? 1 : c]);
        }
        int_store(b, r, &o->column[c], m, sums);
        ptx_end_if(b);
    }
    ptx_end_for(b);
}

/* The warp's quarter of the tile (u32). */
typedef struct quarter {
    ptx_val warp, row, column;
} quarter;

static quarter quarter_begin(ptx_builder *b, const tile *t)
{
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5), half = ptx_u32(b, t->side / 2);
    return (quarter){.warp = warp,
                     .row = ptx_mul(b, ptx_shr(b, warp, 1), half),
                     .column = ptx_mul(b, ptx_and(b, warp, 1), half)};
}

/* The quarter is computed again, so that no registers hold it in the main loop. */
static void store_tile(ptx_builder *b, const tile *t)
{
    quarter q = quarter_begin(b, t);
    ptx_val lane = ptx_laneid(b);
    ptx_val first_row = ptx_cvt(b, PTX_U64, q.row);
    ptx_val column = t->spec->epilogue.gated ? ptx_shr(b, q.column, 1) : q.column;
    ptx_val first_column = ptx_add(b, t->fill.first_column, ptx_cvt(b, PTX_U64, column));
    int_results r = int_results_of_rows(b, t->spec, &t->args, &t->fill.rows);
    exchange e = exchange_begin(b, t, q.warp);
    put_zero_sums(b, t, &e, lane);
    ptx_syncwarp(b);
    owned o = owned_begin(b, t, &r, &e, first_column, lane);
    for (unsigned i = 0; i < t->m_blocks; i++) {
        put_sums(b, t, &e, i, lane);
        ptx_syncwarp(b);
        store_rows(b, t, &r, &e, &o, i, first_row);
        ptx_syncwarp(b);
    }
}

/* ---- Beginning ---- */

static void windows_begin(ptx_builder *b, tile *t, ptx_val group)
{
    fill_windows *s = &t->fill.windows;
    const ptx_val *n = t->args.all.number;
    ptx_val pair[2];
    static const kernel_number in[2] = {NUMBER_CONV_H, NUMBER_CONV_W},
                               out[2] = {NUMBER_CONV_OUT_H, NUMBER_CONV_OUT_W};
    for (int i = 0; i < 2; i++) {
        s->in[i] = ptx_cvt(b, PTX_U32, n[in[i]]);
        s->out[i] = ptx_cvt(b, PTX_U32, n[out[i]]);
        ptx_unpack(b, PTX_U32, n[NUMBER_CONV_STRIDE], pair, 2);
        s->stride[i] = pair[1 - i];
        ptx_unpack(b, PTX_U32, n[NUMBER_CONV_PADDING], pair, 2);
        s->padding[i] = pair[1 - i];
        ptx_unpack(b, PTX_U32, n[NUMBER_CONV_DILATION], pair, 2);
        s->dilation[i] = pair[1 - i];
    }
    s->channels = ptx_cvt(b, PTX_U32, n[NUMBER_CONV_CHANNELS]);
    s->first_channel = ptx_mul(b, group, ptx_u32(b, (uint32_t)t->spec->conv.window_c));
    if (t->spec->integer.x_zero) {
        ptx_val byte = ptx_and(b, ptx_cvt(b, PTX_U32, n[NUMBER_X_ZERO]), 255);
        s->splat = ptx_mul(b, byte, ptx_u32(b, ONES));
    }
}

static bool is_conv(const kernel_row *row)
{
    return kernel_operation_of(row) == KERNEL_INT8_CONV2D;
}

/* Finds the block's tile. Convolutions have many rows and few columns, so rows are along the grid's x. */
static void operands_begin(ptx_builder *b, tile *t)
{
    fill *f = &t->fill;
    const kernel_args *all = &t->args.all;
    ptx_val x_block = ptx_ctaid_x(b), y_block = ptx_ctaid_y(b), codes = all->operand[QDNN_OPERAND_CODES];
    const unsigned columns = t->spec->epilogue.gated ? t->side / 2 : t->side;
    if (t->spec->product.grouped)
        f->rows = row_tile_of_block(b, &t->args);
    else
        f->first_row = ptx_mul_wide(b, f->is_conv ? x_block : y_block, ptx_u32(b, t->side));
    f->first_column = ptx_mul_wide(b, f->is_conv ? y_block : x_block, ptx_u32(b, columns));
    t->columns = f->is_conv ? all->number[NUMBER_CONV_OUTPUTS] : t->args.n;
    t->first_output = ptx_u64(b, 0);
    if (!f->is_conv) {
        f->x =
            int_matrix_begin(b, t->spec->integer.x_codes, all->operand[QDNN_OPERAND_X], t->args.m, t->args.k);
        f->w = int_weights_begin(b, t->spec, &t->args, &f->rows);
        return;
    }
    const unsigned bytes = fill_window_bytes(t->spec);
    t->args.k = ptx_u64(b, bytes);
    t->first_output = ptx_mul(b, ptx_cvt(b, PTX_U64, ptx_ctaid_z(b)), t->columns);
    codes = ptx_mad(b, t->first_output, t->args.k, codes);
    f->x = int_matrix_of_windows(b, t->spec->integer.x_codes, all->operand[QDNN_OPERAND_X], t->args.m, bytes);
    f->w = int_matrix_of_windows(b, t->spec->integer.w_codes, codes, t->columns, bytes);
    windows_begin(b, t, ptx_ctaid_z(b));
}

static void sums_begin(ptx_builder *b, tile *t)
{
    ptx_val none = ptx_s32(b, 0);
    for (unsigned i = 0; i < t->m_blocks; i++)
        for (unsigned j = 0; j < t->n_blocks * 4; j++)
            t->sums[i][j / 4][j % 4] = ptx_var(b, none);
    for (unsigned i = 0; i < 2 * t->m_blocks && t->spec->integer.w_zero; i++)
        t->x_sums[i / 2][i % 2] = ptx_var(b, none);
    for (unsigned j = 0; j < t->n_blocks && t->spec->integer.x_zero; j++)
        t->w_sums[j] = ptx_var(b, none);
}

/* ldmatrix: for x, the lanes address 16 rows of the first chunk, then of the second; for w, 8 rows of both
 * chunks, then the next 8. */
static void addresses_begin(ptx_builder *b, tile *t, ptx_val warp_row, ptx_val warp_column)
{
    ptx_val lane = ptx_laneid(b), exchanged = ptx_and(b, ptx_shr(b, lane, 1), 3);
    ptx_val x_row = ptx_add(b, warp_row, ptx_and(b, lane, 15)), x_chunk = ptx_shr(b, lane, 4);
    ptx_val w_in = ptx_and(b, lane, 7), w_half = ptx_shl(b, ptx_shr(b, lane, 4), 3);
    ptx_val w_row = ptx_add(b, ptx_add(b, warp_column, w_in), w_half),
            w_chunk = ptx_and(b, ptx_shr(b, lane, 3), 1);
    ptx_val x_place = ptx_shl(b, ptx_xor(b, x_chunk, exchanged), 4),
            w_place = ptx_shl(b, ptx_xor(b, w_chunk, exchanged), 4);
    t->x_at[0] = ptx_add(b, t->shared, ptx_mad(b, x_row, FILL_ROW, x_place));
    t->w_at[0] = ptx_add(b, t->shared, ptx_mad(b, w_row, FILL_ROW, w_place));
    t->x_at[1] = ptx_xor(b, t->x_at[0], TILE_STEP);
    t->w_at[1] = ptx_xor(b, t->w_at[0], TILE_STEP);
}

void emit_int_tile(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    tile t = {.spec = spec, .side = (unsigned)spec->integer.tile, .args = int_declare(b, row, spec)};
    t.m_blocks = t.side / 32;
    t.n_blocks = t.side / 16;
    t.stages = tile_has_async(b) ? STAGES_MAX : 2;
    t.fill = (fill){.spec = spec,
                    .passes = t.side / FILL_ROWS,
                    .x_parts = int_is_grouped(spec) ? 2 : 1,
                    .is_async = tile_has_async(b),
                    .is_conv = is_conv(row)};
    t.fill.stage_bytes = (t.fill.x_parts + 1) * t.side * FILL_ROW;
    t.shared = ptx_shared(b, "stages", PTX_U32, t.stages * t.fill.stage_bytes / 4, 128);
    operands_begin(b, &t);
    fill_begin(b, &t.fill, t.shared);
    quarter q = quarter_begin(b, &t);
    addresses_begin(b, &t, q.row, q.column);
    sums_begin(b, &t);
    if (int_is_grouped(spec))
        tile_groups_begin(b, &t, q.row, q.column);
    main_loop(b, &t);
    if (int_is_grouped(spec))
        tile_groups_end(b, &t);
    store_tile(b, &t);
}
_Static_assert(WARPS == 4, "a quarter of the tile each");
