/* Reduces elements to ranges: per lane, per warp, per block. */
#include "kernels/quant/ranges.h"

enum { UNROLL_MAX = 8 /* chunks that a lane reads without a loop */ };

team team_of(qdnnDataType_t data, uint64_t elements, uint64_t apart)
{
    unsigned chunk = vector_elements(data);
    bool on_chunks = elements % chunk == 0 && apart % chunk == 0;
    team t = {.elements = elements, .lanes = 1, .step = on_chunks ? chunk : 1};
    uint64_t steps = elements / t.step;
    while (t.lanes < steps && t.lanes < WARP_LANES)
        t.lanes *= 2;
    if (steps > (uint64_t)WARP_LANES * UNROLL_MAX)
        t.lanes = RANGE_BLOCK;
    return t;
}

ptx_val team_lane(ptx_builder *b, const team *t, ptx_val tid)
{
    return ptx_and(b, tid, t->lanes - 1);
}

ptx_val team_number(ptx_builder *b, const team *t, ptx_val tid, ptx_val block_first)
{
    unsigned log = 0;
    while (1u << log < t->lanes)
        log++;
    return ptx_add(b, block_first, ptx_cvt(b, PTX_U64, ptx_shr(b, tid, log)));
}

range_kind range_kind_of(const coding *c)
{
    if (!format_has_zero(c->format))
        return RANGE_ABSMAX;
    return c->spec->quantize.range == QDNN_RANGE_TIGHT ? RANGE_TIGHT : RANGE_WITH_ZERO;
}

range range_begin(ptx_builder *b, range_kind kind)
{
    ptx_val start = kind == RANGE_TIGHT ? ptx_bits(b, PTX_F32, 0x7FFFFFFF) : ptx_f32(b, 0);
    range r = {.is_signed = kind != RANGE_ABSMAX, .lo = start};
    if (r.is_signed)
        r.lo = ptx_var(b, start);
    r.hi = ptx_var(b, start);
    return r;
}

void range_add(ptx_builder *b, const range *r, ptx_val x)
{
    ptx_val magnitude = r->is_signed ? x : ptx_abs(b, x);
    ptx_into(b, r->hi);
    ptx_max(b, r->hi, magnitude);
    if (!r->is_signed)
        return;
    ptx_into(b, r->lo);
    ptx_min(b, r->lo, x);
}

/* The whole part that starts at `base`: chunks lane, lane + lanes, ... */
static void add_chunks(ptx_builder *b, qdnnDataType_t data, const team *t, const range *r, ptx_val base,
                       ptx_val lane)
{
    uint64_t chunks = t->elements / t->step;
    uint64_t rounds = chunks / t->lanes;
    const unsigned bytes = LOAD_BYTES;
    ptx_val first = ptx_at(b, base, lane, bytes);
    ptx_val x[CHUNK_MAX];
    if (rounds <= UNROLL_MAX && chunks % t->lanes == 0) {
        for (uint64_t i = 0; i < rounds; i++) {
            emit_load_vector(b, data, first, (int)(i * t->lanes * bytes), x);
            for (unsigned k = 0; k < t->step; k++)
                range_add(b, r, x[k]);
        }
        return;
    }
    ptx_val at = ptx_var(b, first);
    ptx_for(b, ptx_cvt(b, PTX_U64, lane), ptx_u64(b, chunks), ptx_u64(b, t->lanes));
    emit_load_vector(b, data, at, 0, x);
    for (unsigned k = 0; k < t->step; k++)
        range_add(b, r, x[k]);
    ptx_assign(b, at, ptx_add(b, at, (long long)(t->lanes * bytes)));
    ptx_end_for(b);
}

/* Single elements lane, lane + lanes, ... below count, for parts that are incomplete or not aligned. */
static void add_elements(ptx_builder *b, qdnnDataType_t data, const team *t, const range *r, ptx_val base,
                         ptx_val lane, ptx_val count)
{
    unsigned bytes = element_bytes(data);
    if (t->elements <= t->lanes) { /* at most one for each lane */
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_cvt(b, PTX_U64, lane), count));
        range_add(b, r, emit_load(b, data, ptx_at(b, base, lane, bytes), 0));
        ptx_end_if(b);
        return;
    }
    ptx_val at = ptx_var(b, ptx_at(b, base, lane, bytes));
    ptx_for(b, ptx_cvt(b, PTX_U64, lane), count, ptx_u64(b, t->lanes));
    range_add(b, r, emit_load(b, data, at, 0));
    ptx_assign(b, at, ptx_add(b, at, (long long)(t->lanes * bytes)));
    ptx_end_for(b);
}

void range_add_part(ptx_builder *b, qdnnDataType_t data, const team *t, const range *r, ptx_val x,
                    ptx_val base, ptx_val lane, ptx_val left)
{
    ptx_val elements = ptx_u64(b, t->elements);
    if (t->step > 1) {
        ptx_if(b, ptx_setp_and(b, PTX_GE, left, elements, emit_aligned(b, x, LOAD_BYTES)));
        add_chunks(b, data, t, r, base, lane);
        ptx_else(b);
    }
    add_elements(b, data, t, r, base, lane, ptx_min(b, left, elements));
    if (t->step > 1)
        ptx_end_if(b);
}

/* Combines the ranges of lanes whose numbers differ only in the bits from `least` up to below `lanes`; all of
 * them get the result. */
static void reduce_lanes(ptx_builder *b, const range *r, unsigned lanes, unsigned least)
{
    for (unsigned mask = lanes / 2; mask >= least; mask /= 2) {
        ptx_val hi = ptx_shfl_bfly(b, r->hi, mask);
        ptx_assign(b, r->hi, ptx_max(b, r->hi, hi));
        if (r->is_signed) {
            ptx_val lo = ptx_shfl_bfly(b, r->lo, mask);
            ptx_assign(b, r->lo, ptx_min(b, r->lo, lo));
        }
    }
}

/* Combines ranges across the warps of a block through shared memory: the first `width` lanes of each warp
 * store theirs, and every warp reduces all of them. */
static void reduce_warps(ptx_builder *b, const range *r, unsigned width)
{
    const unsigned warps = RANGE_BLOCK / WARP_LANES, entries = warps * width;
    const int lo_offset = 4 * (int)entries;
    ptx_val tid = ptx_tid_x(b), lane = ptx_laneid(b);
    ptx_val shared = ptx_shared(b, "ranges", PTX_F32, 2 * entries, 16);
    ptx_val warp = ptx_shr(b, tid, 5);
    ptx_val mine = ptx_at(b, shared, width == 1 ? warp : ptx_mad(b, warp, width, lane), 4);
    ptx_if(b, width == 1 ? ptx_setp(b, PTX_EQ, lane, 0) : ptx_setp(b, PTX_LT, lane, width));
    ptx_st_shared(b, mine, 0, r->hi);
    if (r->is_signed)
        ptx_st_shared(b, mine, lo_offset, r->lo);
    ptx_end_if(b);
    ptx_syncthreads(b);
    unsigned readers = entries < WARP_LANES ? entries : WARP_LANES;
    ptx_val theirs = ptx_at(b, shared, ptx_and(b, lane, readers - 1), 4);
    ptx_assign(b, r->hi, ptx_ld_shared(b, PTX_F32, theirs, 0));
    if (r->is_signed)
        ptx_assign(b, r->lo, ptx_ld_shared(b, PTX_F32, theirs, lo_offset));
    for (int at = WARP_LANES; at < (int)entries; at += WARP_LANES) {
        ptx_assign(b, r->hi, ptx_max(b, r->hi, ptx_ld_shared(b, PTX_F32, theirs, 4 * at)));
        if (r->is_signed)
            ptx_assign(b, r->lo, ptx_min(b, r->lo, ptx_ld_shared(b, PTX_F32, theirs, lo_offset + 4 * at)));
    }
    reduce_lanes(b, r, readers, width);
}

void range_reduce_columns(ptx_builder *b, const range *r, unsigned width)
{
    reduce_lanes(b, r, WARP_LANES, width);
    reduce_warps(b, r, width);
}

void range_reduce_team(ptx_builder *b, const team *t, const range *r)
{
    if (t->lanes == RANGE_BLOCK)
        range_reduce_columns(b, r, 1);
    else
        reduce_lanes(b, r, t->lanes, 1);
}
