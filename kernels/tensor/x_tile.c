/* Tiles of x. In the place of a row that does not exist another is read, and what comes of it is not stored. */
#include "kernels/tensor/x_tile.h"

static unsigned stage_bytes(const tile *t)
{
    return 2 * t->shape.m * t->shape.k;
}

static bool is_async(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && sm->number >= 80;
}

ptx_val x_tile_aligned(ptx_builder *b, const tile *t, ptx_val all)
{
    ptx_val rest = ptx_and(b, ptx_or(b, t->args.x_stride, ptx_cvt(b, PTX_U64, t->k)), ptx_u64(b, PIECE - 1));
    all = ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0), all);
    return ptx_and(b, all, emit_aligned(b, t->x, LOAD_BYTES));
}

/* Row i (u32) of the tile, u64; beyond the last row, one that exists. */
static ptx_val row_of(ptx_builder *b, const tile *t, ptx_val i)
{
    ptx_val wide = ptx_cvt(b, PTX_U64, i);
    if (t->spec->grouped)
        return row_tile_row(b, &t->at, wide, row_tile_has(b, &t->at, wide));
    return ptx_min(b, ptx_add(b, t->at.first, wide), ptx_sub(b, t->args.m, 1));
}

static ptx_val piece_place(ptx_builder *b, const tile *t, ptx_val row, ptx_val piece)
{
    ptx_val place = ptx_shl(b, ptx_xor(b, piece, ptx_and(b, row, 7)), 4);
    return ptx_mad(b, row, (int)t->shape.k * 2, place);
}

static void begin_if_active(ptx_builder *b, const x_tile *x)
{
    if (x->active.kind != PTX_NOTHING)
        ptx_if(b, x->active);
}

static void end_if_active(ptx_builder *b, const x_tile *x)
{
    if (x->active.kind != PTX_NOTHING)
        ptx_end_if(b);
}

/* How far a thread's pieces are apart, in rows. */
static unsigned row_step(const tile *t)
{
    return TILE_THREADS / (t->shape.k / PIECE);
}

/* Bytes that there are of the next pieces: 16, or none behind the last k. */
static ptx_val bytes_known(ptx_builder *b, const tile *t, const x_tile *x)
{
    return ptx_selp(b, ptx_u32(b, LOAD_BYTES), ptx_u32(b, 0), ptx_setp(b, PTX_LT, x->k, t->k));
}

static void advance(ptx_builder *b, const tile *t, x_tile *x)
{
    ptx_assign(b, x->k, ptx_add(b, x->k, (int)t->shape.k));
    for (unsigned i = 0; i < x->pieces; i++)
        ptx_assign(b, x->from[i], ptx_add(b, x->from[i], ptx_u64(b, 2 * t->shape.k)));
}

static void copy_ahead(ptx_builder *b, const tile *t, x_tile *x, ptx_val stage)
{
    ptx_val bytes = bytes_known(b, t, x), to = ptx_add(b, ptx_add(b, t->x_shared, stage), x->to);
    begin_if_active(b, x);
    for (unsigned i = 0; i < x->pieces; i++)
        ptx_cp_async_cg_zfill(b, to, (int)(i * row_step(t) * t->shape.k * 2), x->from[i], 0, bytes, 0);
    end_if_active(b, x);
    ptx_cp_async_commit(b);
    advance(b, t, x);
}

static void load_ahead(ptx_builder *b, const tile *t, x_tile *x)
{
    ptx_val exists = ptx_setp(b, PTX_LT, x->k, t->k);
    for (unsigned i = 0; i < x->pieces; i++)
        for (unsigned c = 0; c < 4; c++)
            ptx_assign(b, x->words[i][c], ptx_u32(b, 0));
    if (x->active.kind != PTX_NOTHING)
        exists = ptx_and(b, exists, x->active);
    ptx_if(b, exists);
    for (unsigned i = 0; i < x->pieces; i++) {
        ptx_val words[4];
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, x->from[i], 0, words, 4);
        for (unsigned c = 0; c < 4; c++)
            ptx_assign(b, x->words[i][c], words[c]);
    }
    ptx_end_if(b);
    advance(b, t, x);
}

/* Where a thread's pieces come from and go to. */
static x_tile pieces_begin(ptx_builder *b, const tile *t)
{
    const unsigned of_row = t->shape.k / PIECE, all = t->shape.m * of_row;
    x_tile x = {.pieces = all < TILE_THREADS ? 1 : all / TILE_THREADS};
    ptx_val tid = ptx_tid_x(b), row = ptx_shr(b, tid, ceil_log2(of_row)),
            piece = ptx_and(b, tid, (int)of_row - 1);
    if (all < TILE_THREADS)
        x.active = ptx_setp(b, PTX_LT, tid, (int)all);
    ptx_val k = ptx_shl(b, piece, 3);
    x.to = piece_place(b, t, row, piece);
    x.k = ptx_var(b, k);
    for (unsigned i = 0; i < x.pieces; i++) {
        ptx_val m = row_of(b, t, i ? ptx_add(b, row, (int)(i * row_step(t))) : row);
        x.from[i] = ptx_var(b, ptx_at(b, t->x, ptx_mad(b, m, t->args.x_stride, ptx_cvt(b, PTX_U64, k)), 2));
    }
    return x;
}

x_tile x_tile_begin(ptx_builder *b, const tile *t)
{
    x_tile x = pieces_begin(b, t);
    x.stage = ptx_var(b, ptx_u32(b, 0));
    if (is_async(b)) {
        for (unsigned s = 0; s + 1 < t->x_stages; s++)
            copy_ahead(b, t, &x, ptx_u32(b, s * stage_bytes(t)));
        return x;
    }
    for (unsigned i = 0; i < x.pieces; i++)
        for (unsigned c = 0; c < 4; c++)
            x.words[i][c] = ptx_var(b, ptx_u32(b, 0));
    load_ahead(b, t, &x);
    return x;
}

/* The stage `ahead` stages behind the one at hand. */
static ptx_val later_stage(ptx_builder *b, const tile *t, ptx_val stage, unsigned ahead)
{
    const int all = (int)(t->x_stages * stage_bytes(t));
    ptx_val next = ptx_add(b, stage, (int)(ahead * stage_bytes(t)));
    return ptx_selp(b, ptx_sub(b, next, all), next, ptx_setp(b, PTX_GE, next, all));
}

ptx_val x_tile_arrive(ptx_builder *b, const tile *t, x_tile *x)
{
    ptx_val here = ptx_add(b, t->x_shared, x->stage);
    if (is_async(b)) {
        ptx_cp_async_wait(b, t->x_stages - 2);
        return here;
    }
    ptx_val to = ptx_add(b, here, x->to);
    begin_if_active(b, x);
    for (unsigned i = 0; i < x->pieces; i++)
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(i * row_step(t) * t->shape.k * 2), x->words[i],
                   4);
    end_if_active(b, x);
    return here;
}

void x_tile_next(ptx_builder *b, const tile *t, x_tile *x)
{
    if (is_async(b))
        copy_ahead(b, t, x, later_stage(b, t, x->stage, t->x_stages - 1));
    else
        load_ahead(b, t, x);
    ptx_assign(b, x->stage, later_stage(b, t, x->stage, 1));
}

void x_tile_end(ptx_builder *b)
{
    if (is_async(b))
        ptx_cp_async_wait_all(b);
}

void x_tile_slowly(ptx_builder *b, const tile *t, ptx_val k0)
{
    ptx_val at = ptx_for(b, ptx_tid_x(b), ptx_u32(b, t->shape.m * t->shape.k), TILE_THREADS);
    ptx_val row = ptx_shr(b, at, ceil_log2(t->shape.k)), in_row = ptx_and(b, at, (int)t->shape.k - 1);
    ptx_val k = ptx_add(b, k0, in_row), value = ptx_var(b, ptx_u16(b, 0));
    ptx_val exists =
        ptx_and(b, row_tile_has(b, &t->at, ptx_cvt(b, PTX_U64, row)), ptx_setp(b, PTX_LT, k, t->k));
    ptx_if(b, exists);
    ptx_val index = ptx_mad(b, row_of(b, t, row), t->args.x_stride, ptx_cvt(b, PTX_U64, k));
    ptx_assign(b, value, ptx_ld_global_nc(b, PTX_U16, ptx_at(b, t->x, index, 2), 0));
    ptx_end_if(b);
    ptx_val place = ptx_add(b, t->x_shared, piece_place(b, t, row, ptx_shr(b, in_row, 3)));
    ptx_st_shared(b, ptx_at(b, place, ptx_and(b, in_row, 7), 2), 0, value);
    ptx_end_for(b);
}
