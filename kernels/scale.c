/* The scale kernel: the scale (and zero point) of each group.
 *
 * A team of lanes reduces a group: as many lanes as the group has 16-byte chunks, up to a warp; beyond that a
 * whole block. So neighbouring lanes always read neighbouring memory. */
#include "kernels/emit.h"

enum {
    BLOCK = 256,
    WARP_LANES = 32,
    UNROLL_MAX = 8 /* chunks a lane reads in a straight line; more become a loop */
};

/* How the work on one group is shared out. */
typedef struct team {
    unsigned lanes; /* a power of two up to a warp, or BLOCK */
    unsigned step;  /* elements a lane reads at a time: a chunk, or 1 where groups do not start on chunks */
} team;

static team team_of(const kernel_spec *spec)
{
    unsigned chunk = chunk_elements(spec->data);
    team t = {.lanes = 1, .step = spec->group_size % chunk == 0 ? chunk : 1};
    uint64_t steps = spec->group_size / t.step;
    while (t.lanes < steps && t.lanes < WARP_LANES)
        t.lanes *= 2;
    if (steps > (uint64_t)WARP_LANES * UNROLL_MAX)
        t.lanes = BLOCK;
    return t;
}

kernel_geometry scale_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return (kernel_geometry){.block = BLOCK,
                             .elements_per_block = BLOCK / team_of(spec).lanes * spec->group_size};
}

/* The running range of a group. Comparisons with NaN leave it out; both start at 0. */
typedef struct range {
    bool is_signed;
    ptx_val lo, hi; /* variables; without a sign, hi is the absmax and lo unused */
} range;

static void range_add(ptx_builder *b, const range *r, ptx_val x)
{
    ptx_val magnitude = r->is_signed ? x : ptx_abs(b, x);
    ptx_into(b, r->hi);
    ptx_max(b, r->hi, magnitude);
    if (!r->is_signed)
        return;
    ptx_into(b, r->lo);
    ptx_min(b, r->lo, x);
}

/* The sum of the ranges of `lanes` neighbouring lanes, in all of them. All lanes of the warp take part. */
static void range_reduce(ptx_builder *b, const range *r, unsigned lanes)
{
    for (unsigned mask = lanes / 2; mask > 0; mask /= 2) {
        ptx_val hi = ptx_shfl_bfly(b, r->hi, mask);
        ptx_assign(b, r->hi, ptx_max(b, r->hi, hi));
        if (r->is_signed) {
            ptx_val lo = ptx_shfl_bfly(b, r->lo, mask);
            ptx_assign(b, r->lo, ptx_min(b, r->lo, lo));
        }
    }
}

/* Across the warps of a block, through shared memory: each warp's range is put there, and every warp reduces
 * them all. */
static void range_reduce_block(ptx_builder *b, const range *r)
{
    const unsigned warps = BLOCK / WARP_LANES;
    ptx_val tid = ptx_tid_x(b), lane = ptx_laneid(b);
    ptx_val shared = ptx_shared(b, "ranges", PTX_F32, 2 * warps, 16);
    ptx_val mine = ptx_at(b, shared, ptx_shr(b, tid, 5), 4);
    ptx_if(b, ptx_setp(b, PTX_EQ, lane, 0));
    ptx_st_shared(b, mine, 0, r->hi);
    if (r->is_signed)
        ptx_st_shared(b, mine, 4 * (int)warps, r->lo);
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val theirs = ptx_at(b, shared, ptx_and(b, lane, warps - 1), 4);
    ptx_assign(b, r->hi, ptx_ld_shared(b, PTX_F32, theirs, 0));
    if (r->is_signed)
        ptx_assign(b, r->lo, ptx_ld_shared(b, PTX_F32, theirs, 4 * (int)warps));
    range_reduce(b, r, warps);
}

/* Adds whole chunks of the group that starts at `base`: chunk numbers lane, lane + lanes, ... */
static void add_chunks(ptx_builder *b, const kernel_spec *spec, const team *t, const range *r, ptx_val base,
                       ptx_val lane)
{
    uint64_t chunks = spec->group_size / t->step;
    uint64_t rounds = chunks / t->lanes;
    ptx_val first = ptx_at(b, base, lane, CHUNK_BYTES);
    ptx_val x[CHUNK_MAX];
    if (rounds <= UNROLL_MAX && chunks % t->lanes == 0) {
        for (uint64_t i = 0; i < rounds; i++) {
            emit_load_chunk(b, spec->data, first, (int)(i * t->lanes * CHUNK_BYTES), x);
            for (unsigned k = 0; k < t->step; k++)
                range_add(b, r, x[k]);
        }
        return;
    }
    ptx_val at = ptx_var(b, first);
    ptx_for(b, ptx_cvt(b, PTX_U64, lane), ptx_u64(b, chunks), ptx_u64(b, t->lanes));
    emit_load_chunk(b, spec->data, at, 0, x);
    for (unsigned k = 0; k < t->step; k++)
        range_add(b, r, x[k]);
    ptx_assign(b, at, ptx_add(b, at, (long long)(t->lanes * CHUNK_BYTES)));
    ptx_end_for(b);
}

/* Adds elements one by one: numbers lane, lane + lanes, ... below count. For groups that are cut short or not
 * aligned. */
static void add_elements(ptx_builder *b, const kernel_spec *spec, const team *t, const range *r, ptx_val base,
                         ptx_val lane, ptx_val count)
{
    unsigned bytes = element_bytes(spec->data);
    ptx_val at = ptx_var(b, ptx_at(b, base, lane, bytes));
    ptx_for(b, ptx_cvt(b, PTX_U64, lane), count, ptx_u64(b, t->lanes));
    range_add(b, r, emit_load(b, spec->data, at, 0));
    ptx_assign(b, at, ptx_add(b, at, (long long)(t->lanes * bytes)));
    ptx_end_for(b);
}

static void store_group(ptx_builder *b, const format_row *format, const kernel_spec *spec, const range *r,
                        ptx_val scales, ptx_val zeros, ptx_val group)
{
    ptx_val largest = ptx_f32(b, element_largest(QDNN_DATA_F32)); /* an infinity counts as this */
    ptx_val hi = ptx_min(b, r->hi, largest);
    ptx_val lo = r->is_signed ? ptx_max(b, r->lo, ptx_neg(b, largest)) : r->lo;
    ptx_val rounded = emit_round(b, spec->scale, format->scale(b, spec, lo, hi));
    ptx_val scale = ptx_clamp(b, rounded, ptx_f32(b, element_smallest(spec->scale)),
                              ptx_f32(b, element_largest(spec->scale)));
    emit_store(b, spec->scale, ptx_at(b, scales, group, element_bytes(spec->scale)), 0, scale);
    if (!format->has_zero)
        return;
    ptx_val zero = format->zero(b, lo, scale); /* before the address, with every compiler */
    emit_store(b, spec->zero, ptx_at(b, zeros, group, element_bytes(spec->zero)), 0, zero);
}

void emit_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const format_row *format = format_of(row);
    team t = team_of(spec);
    ptx_reqntid(b, BLOCK, 1, 1);
    ptx_val x = ptx_param_ptr(b, "x", element_bytes(spec->data));
    ptx_val scales = ptx_param_ptr(b, "scale", element_bytes(spec->scale));
    ptx_val zeros = format->has_zero ? ptx_param_ptr(b, "zero", element_bytes(spec->zero)) : (ptx_val){0};
    ptx_val n = ptx_param(b, PTX_U64, "n");

    ptx_val tid = ptx_tid_x(b);
    ptx_val lane = ptx_and(b, tid, t.lanes - 1);
    ptx_val block_first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, BLOCK / t.lanes));
    unsigned log = 0;
    while (1u << log < t.lanes)
        log++;
    ptx_val group = ptx_add(b, block_first, ptx_cvt(b, PTX_U64, ptx_shr(b, tid, log)));
    ptx_val first = ptx_mul(b, group, ptx_u64(b, spec->group_size));
    ptx_val exists = ptx_setp(b, PTX_LT, first, n);
    ptx_val left = ptx_selp(b, ptx_sub(b, n, first), ptx_u64(b, 0), exists);
    ptx_val base = ptx_at(b, x, first, element_bytes(spec->data));

    ptx_val zero = ptx_f32(b, 0);
    range r = {.is_signed = format->signed_range,
               .hi = ptx_var(b, zero),
               .lo = format->signed_range ? ptx_var(b, zero) : zero};
    if (t.step > 1) {
        ptx_val whole =
            ptx_setp_and(b, PTX_GE, left, ptx_u64(b, spec->group_size), emit_aligned(b, x, CHUNK_BYTES));
        ptx_if(b, whole);
        add_chunks(b, spec, &t, &r, base, lane);
        ptx_else(b);
    }
    ptx_val count = ptx_min(b, left, ptx_u64(b, spec->group_size));
    add_elements(b, spec, &t, &r, base, lane, count);
    if (t.step > 1)
        ptx_end_if(b);

    range_reduce(b, &r, t.lanes < WARP_LANES ? t.lanes : WARP_LANES);
    if (t.lanes > WARP_LANES)
        range_reduce_block(b, &r);
    ptx_if(b, ptx_setp_and(b, PTX_EQ, lane, 0, exists));
    store_group(b, format, spec, &r, scales, zeros, group);
    ptx_end_if(b);
}
