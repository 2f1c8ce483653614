/* Stages a window of x. */
#include "kernels/gemm/window.h"

#include <math.h>

/* Eight elements of a row at any address, from k on; those that do not exist are 0. Where chunks are whole, all of them exist
 * or none. */
static void load_x(ptx_builder *b, const x_window *w, ptx_val from, ptx_val k, ptx_val exists, ptx_val *x)
{
    const qdnnDataType_t type = w->spec->data;
    for (unsigned e = 0; e < CHUNK; e++)
        x[e] = ptx_var(b, ptx_f32(b, 0));
    for (unsigned e = 0; e < CHUNK; e++) {
        if (e == 0 || !w->whole_chunks)
            ptx_if(b, ptx_setp_and(b, PTX_LT, e ? ptx_add(b, k, e) : k, w->args->k, exists));
        ptx_assign(b, x[e], emit_load(b, type, from, (int)(e * element_bytes(type))));
        if (e == CHUNK - 1 || !w->whole_chunks)
            ptx_end_if(b);
    }
}

/* The same of a row that is aligned: by vectors, from the first chunk of x where there is none. */
static void load_x_vectors(ptx_builder *b, const x_window *w, ptx_val from, ptx_val k, ptx_val exists,
                           ptx_val *x)
{
    const qdnnDataType_t type = w->spec->data;
    exists = ptx_setp_and(b, PTX_LT, k, w->args->k, exists);
    from = ptx_selp(b, from, w->args->all.operand[QDNN_OPERAND_X], exists);
    for (unsigned e = 0; e < CHUNK; e += vector_elements(type))
        emit_load_vector(b, type, from, (int)(e * element_bytes(type)), &x[e]);
    for (unsigned e = 0; e < CHUNK; e++)
        x[e] = ptx_selp(b, x[e], ptx_f32(b, 0), exists);
}

/* How many elements from e on are stored together. */
static unsigned stored_together(const x_window *w, unsigned e)
{
    return w->copies == 2 ? 2 : w->offsets[e + 3] == w->offsets[e] + 12 ? 4 : 1;
}

static void store_x(ptx_builder *b, const x_window *w, ptx_val to, const ptx_val *x)
{
    const unsigned step = stored_together(w, 0);
    const ptx_val places[2] = {to, w->flip ? ptx_xor(b, to, (int)w->flip) : to};
    for (unsigned e = 0; e < CHUNK; e += step) {
        const ptx_val twice[] = {x[e], x[e], x[e + step / 2], x[e + step / 2]};
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, places[e % 2], (int)w->offsets[e],
                   w->copies == 2 ? twice : &x[e], step == 1 ? 1 : 4);
    }
}

/* Scales x and updates `largest`; NaN does not count. */
static void scale_x(ptx_builder *b, const x_window *w, ptx_val *x)
{
    for (unsigned e = 0; e < CHUNK; e++) {
        if (w->largest.kind != PTX_NOTHING)
            ptx_assign(b, w->largest, ptx_max(b, w->largest, ptx_abs(b, x[e])));
        x[e] = ptx_mul(b, x[e], ptx_f32(b, ldexpf(1, (int)w->shift)));
    }
}

/* Where a thread begins: the warps take the rounds of a window in turn, counted row by row. */
typedef struct x_place {
    ptx_val round, row; /* u32: of the window; u64: of the tile */
    ptx_val k,
        from; /* u64: of its chunk; its address in the first row of x (neighbouring rows: in its own row) */
    ptx_val to;
    ptx_val stride; /* u64: bytes of a row */
} x_place;

static bool is_sorted(const row_tile *tile)
{
    return tile->order.kind != PTX_NOTHING;
}

static x_place x_place_of(ptx_builder *b, const x_window *w, const row_tile *tile, ptx_val first)
{
    const unsigned bytes = element_bytes(w->spec->data);
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5);
    x_place p = {.round = ptx_and(b, warp, (int)w->rounds - 1),
                 .row = ptx_cvt(b, PTX_U64, ptx_shr(b, warp, ceil_log2(w->rounds))),
                 .to = ptx_mad(b, warp, (int)w->round_bytes, w->slot),
                 .stride = ptx_mul(b, w->args->x_stride, ptx_u64(b, bytes))};
    p.k = ptx_mad_wide(b, ptx_add(b, first, p.round), ptx_u32(b, ROUND), w->chunk);
    p.from = ptx_at(b, w->args->all.operand[QDNN_OPERAND_X], p.k, bytes);
    if (!is_sorted(tile))
        p.from = ptx_mad(b, ptx_add(b, p.row, tile->first), p.stride, p.from);
    return p;
}

/* How many rows and rounds step t of a warp is ahead of its first. */
static unsigned rows_ahead(const x_window *w, unsigned t)
{
    return t * w->warps / w->rounds;
}

static unsigned rounds_ahead(const x_window *w, unsigned t)
{
    return t * w->warps % w->rounds;
}

/* The thread's address in its row of step t, still at the k of its first step; `has`: the tile has that
 * row. */
static ptx_val row_address(ptx_builder *b, const x_window *w, const row_tile *tile, const x_place *p,
                           unsigned t, ptx_val has)
{
    const unsigned ahead = rows_ahead(w, t);
    if (!is_sorted(tile))
        return ahead ? ptx_mad(b, p->stride, ptx_u64(b, ahead), p->from) : p->from;
    ptx_val row = row_tile_row(b, tile, ptx_add(b, p->row, ptx_u64(b, ahead)), has);
    return ptx_mad(b, x_row_of(b, w->spec, row), p->stride, p->from);
}

static void put_x(ptx_builder *b, const x_window *w, const x_place *p, unsigned t, bool scaled, ptx_val *x)
{
    if (scaled)
        scale_x(b, w, x);
    store_x(b, w, ptx_add(b, p->to, (int)(t * w->warps * w->round_bytes)), x);
}

/* Stages a whole window whose rows exist and are aligned. */
static void stage_whole(ptx_builder *b, const x_window *w, const row_tile *tile, const x_place *p,
                        ptx_val whole, bool scaled)
{
    const qdnnDataType_t type = w->spec->data;
    for (unsigned t = 0; t * w->warps < w->rows * w->rounds; t++) {
        ptx_val x[CHUNK], from = row_address(b, w, tile, p, t, whole);
        const unsigned more = rounds_ahead(w, t) * ROUND;
        for (unsigned e = 0; e < CHUNK; e += vector_elements(type))
            emit_load_vector(b, type, from, (int)((more + e) * element_bytes(type)), &x[e]);
        put_x(b, w, p, t, scaled, x);
    }
}

/* Stages the elements that exist; `aligned`: by vectors. */
static void stage_part(ptx_builder *b, const x_window *w, const row_tile *tile, const x_place *p, bool scaled,
                       bool aligned)
{
    for (unsigned t = 0; t * w->warps < w->rows * w->rounds; t++) {
        const unsigned more = rounds_ahead(w, t) * ROUND;
        ptx_val k = ptx_add(b, p->k, ptx_u64(b, more)), x[CHUNK];
        ptx_val has = row_tile_has(b, tile, ptx_add(b, p->row, ptx_u64(b, rows_ahead(w, t))));
        ptx_val from = row_address(b, w, tile, p, t, has);
        from = ptx_add(b, from, ptx_u64(b, more * element_bytes(w->spec->data)));
        (aligned ? load_x_vectors : load_x)(b, w, from, k, has, x);
        put_x(b, w, p, t, scaled, x);
    }
}

void x_window_stage(ptx_builder *b, const x_window *w, const row_tile *tile, ptx_val first, bool scaled)
{
    const bool all = w->rows * w->rounds >= w->warps;
    if (!all)
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_tid_x(b), (int)(w->rows * w->rounds * WARP)));
    x_place p = x_place_of(b, w, tile, first);
    ptx_val end = ptx_mul_wide(b, ptx_add(b, first, w->rounds), ptx_u32(b, ROUND));
    ptx_val aligned = emit_aligned(b, ptx_or(b, w->args->all.operand[QDNN_OPERAND_X], p.stride), LOAD_BYTES);
    ptx_val whole = ptx_setp_and(b, PTX_LE, end, w->args->k, aligned);
    whole = ptx_setp_and(b, PTX_LE, ptx_u64(b, w->rows), tile->count, whole);
    ptx_uniform(b);
    ptx_if(b, whole);
    stage_whole(b, w, tile, &p, whole, scaled);
    ptx_else(b);
    if (w->short_rows) {
        ptx_uniform(b);
        ptx_if(b, aligned);
        stage_part(b, w, tile, &p, scaled, true);
        ptx_else(b);
    }
    stage_part(b, w, tile, &p, scaled, false);
    if (w->short_rows)
        ptx_end_if(b);
    ptx_end_if(b);
    if (!all)
        ptx_end_if(b);
}
