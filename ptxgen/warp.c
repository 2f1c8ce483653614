/* Cooperation between threads: shuffles, votes, reductions, barriers, fences. */
#include "ptxgen/internal.h"

#define ALL_LANES ptx_from_int(0xFFFFFFFF)

/* ---- shuffles ---- */

ptx_val ptx_shfl(ptx_builder *b, ptx_shfl_mode mode, ptx_val x, ptx_val lane, ptx_val clamp, ptx_val members,
                 ptx_val *in_range)
{
    static const char *const names[] = {"up", "down", "bfly", "idx"};
    ptx_val out[2] = {{0}};
    ptx_type type = emit_common(b, "shfl", &x, 1);
    if (ptx_ok(b) && (unsigned)mode > PTX_SHFL_IDX)
        ptx_fail(b, "there is no mode number %d", (int)mode);
    if (ptx_ok(b))
        emit(b, &(ptx_instruction){.id = in_range ? ISA_shfl_pred : ISA_shfl,
                                   .t0 = type,
                                   .modifier = names[mode],
                                   .name = "shfl",
                                   .in = (const ptx_val[]){x, lane, clamp, members},
                                   .out = out});
    if (in_range)
        *in_range = out[1];
    return out[0];
}

ptx_val ptx_shfl_bfly(ptx_builder *b, ptx_val x, ptx_val lane_mask)
{
    return ptx_shfl(b, PTX_SHFL_BFLY, x, lane_mask, ptx_from_int(31), ALL_LANES, NULL);
}

ptx_val ptx_shfl_up(ptx_builder *b, ptx_val x, ptx_val delta)
{
    return ptx_shfl(b, PTX_SHFL_UP, x, delta, ptx_from_int(0), ALL_LANES, NULL);
}

ptx_val ptx_shfl_down(ptx_builder *b, ptx_val x, ptx_val delta)
{
    return ptx_shfl(b, PTX_SHFL_DOWN, x, delta, ptx_from_int(31), ALL_LANES, NULL);
}

ptx_val ptx_shfl_idx(ptx_builder *b, ptx_val x, ptx_val lane)
{
    return ptx_shfl(b, PTX_SHFL_IDX, x, lane, ptx_from_int(31), ALL_LANES, NULL);
}

/* ---- votes ---- */

ptx_val ptx_vote_all(ptx_builder *b, ptx_val pred)
{
    return EMIT(b, vote_all, PTX_NOTYPE, pred, ALL_LANES);
}

ptx_val ptx_vote_any(ptx_builder *b, ptx_val pred)
{
    return EMIT(b, vote_any, PTX_NOTYPE, pred, ALL_LANES);
}

ptx_val ptx_vote_uni(ptx_builder *b, ptx_val pred)
{
    return EMIT(b, vote_uni, PTX_NOTYPE, pred, ALL_LANES);
}

ptx_val ptx_ballot(ptx_builder *b, ptx_val pred)
{
    return EMIT(b, ballot, PTX_NOTYPE, pred, ALL_LANES);
}

ptx_val ptx_match_any(ptx_builder *b, ptx_val x)
{
    return EMIT(b, match_any, emit_common(b, "match_any", &x, 1), x, ALL_LANES);
}

ptx_val ptx_match_all(ptx_builder *b, ptx_val x)
{
    return EMIT(b, match_all, emit_common(b, "match_all", &x, 1), x, ALL_LANES);
}

ptx_val ptx_activemask(ptx_builder *b)
{
    return EMIT(b, activemask, PTX_NOTYPE, {0});
}

ptx_val ptx_redux(ptx_builder *b, ptx_redux_op op, ptx_val x)
{
    static const char *const names[] = {"add", "min", "max", "and", "or", "xor"};
    ptx_type type = emit_common(b, "redux", &x, 1);
    if (ptx_ok(b) && (unsigned)op > PTX_REDUX_XOR)
        ptx_fail(b, "there is no operation number %d", (int)op);
    if (!ptx_ok(b))
        return (ptx_val){0};
    return emit_op(b, op >= PTX_REDUX_AND ? ISA_redux_bits : ISA_redux, type, PTX_NOTYPE, names[op],
                   (const ptx_val[]){x, ALL_LANES});
}

/* ---- barriers ---- */

/* A block has 16 barriers, and the threads that wait at one are a multiple of the warp size. */
static bool barrier_fits(ptx_builder *b, const char *doing, unsigned barrier, unsigned threads)
{
    if (!builder_ready(b, doing))
        return false;
    if (barrier > 15)
        ptx_fail(b, "there are barriers 0 to 15, not %u", barrier);
    else if (!threads || threads > PTX_THREADS_BLOCK || threads % 32)
        ptx_fail(b, "%u threads: it has to be a multiple of 32, up to %d", threads, PTX_THREADS_BLOCK);
    return ptx_ok(b);
}

void ptx_syncthreads(ptx_builder *b)
{
    EMIT_VOID(b, bar_sync_all, PTX_NOTYPE, ptx_from_int(0));
}

void ptx_bar_sync(ptx_builder *b, unsigned barrier, unsigned threads)
{
    if (barrier_fits(b, "bar_sync", barrier, threads))
        EMIT_VOID(b, bar_sync, PTX_NOTYPE, ptx_from_int(barrier), ptx_from_int(threads));
}

void ptx_bar_arrive(ptx_builder *b, unsigned barrier, unsigned threads)
{
    if (barrier_fits(b, "bar_arrive", barrier, threads))
        EMIT_VOID(b, bar_arrive, PTX_NOTYPE, ptx_from_int(barrier), ptx_from_int(threads));
}

void ptx_barrier_sync(ptx_builder *b, ptx_val barrier, ptx_val threads)
{
    EMIT_VOID(b, barrier_sync, PTX_NOTYPE, barrier, threads);
}

static ptx_val bar_red(ptx_builder *b, const char *op, unsigned barrier, ptx_val pred)
{
    if (!barrier_fits(b, "bar_red", barrier, 32))
        return (ptx_val){0};
    return emit_op(b, ISA_bar_red, 0, 0, op, (const ptx_val[]){ptx_from_int(barrier), pred});
}

ptx_val ptx_bar_red_and(ptx_builder *b, unsigned barrier, ptx_val pred)
{
    return bar_red(b, "and", barrier, pred);
}

ptx_val ptx_bar_red_or(ptx_builder *b, unsigned barrier, ptx_val pred)
{
    return bar_red(b, "or", barrier, pred);
}

ptx_val ptx_bar_red_popc(ptx_builder *b, unsigned barrier, ptx_val pred)
{
    if (!barrier_fits(b, "bar_red_popc", barrier, 32))
        return (ptx_val){0};
    return EMIT(b, bar_red_popc, PTX_NOTYPE, ptx_from_int(barrier), pred);
}

void ptx_syncwarp(ptx_builder *b)
{
    EMIT_VOID(b, bar_warp_sync, PTX_NOTYPE, ALL_LANES);
}

/* ---- memory ordering ---- */

void ptx_membar_cta(ptx_builder *b)
{
    emit_void(b, ISA_membar, PTX_NOTYPE, "cta", NULL);
}

void ptx_membar_gl(ptx_builder *b)
{
    emit_void(b, ISA_membar, PTX_NOTYPE, "gl", NULL);
}

void ptx_membar_sys(ptx_builder *b)
{
    emit_void(b, ISA_membar, PTX_NOTYPE, "sys", NULL);
}

void ptx_fence_acq_rel_gpu(ptx_builder *b)
{
    emit_void(b, ISA_fence, PTX_NOTYPE, "gpu", NULL);
}

void ptx_fence_acq_rel_cta(ptx_builder *b)
{
    emit_void(b, ISA_fence, PTX_NOTYPE, "cta", NULL);
}

void ptx_nanosleep(ptx_builder *b, ptx_val nanoseconds)
{
    EMIT_VOID(b, nanosleep, PTX_NOTYPE, nanoseconds);
}

void ptx_griddepcontrol_wait(ptx_builder *b)
{
    EMIT_VOID(b, griddepcontrol_wait, PTX_NOTYPE, {0});
}

void ptx_griddepcontrol_launch(ptx_builder *b)
{
    EMIT_VOID(b, griddepcontrol_launch, PTX_NOTYPE, {0});
}

/* Waiting comes first: so a kernel behind this one overlaps with none in front of it. */
void ptx_dependent(ptx_builder *b)
{
    if (!builder_ready(b, "dependent") || b->sm->number < 90)
        return;
    ptx_griddepcontrol_wait(b);
    ptx_griddepcontrol_launch(b);
    ptx_coherent(b);
}
