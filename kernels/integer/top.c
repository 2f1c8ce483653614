/* The largest scores of each row. A block takes a row. Every thread keeps the best of its own scores; the best of the
 * block is found among those, and the thread that had it looks for its next. */
#include "kernels/integer/integer.h"

enum { BLOCK = 256, WARPS = BLOCK / 32 };

typedef struct top {
    ptx_val scores; /* u64: of the row */
    ptx_val count;  /* u32 */
    ptx_val shared; /* u32: a key for each warp */
    ptx_val limit;  /* u64 variable: the last key taken; empty if one score is wanted */
    ptx_val best;   /* u64 variable: the thread's, of those below the limit; 0: none is left */
} top;

static bool is_single(const top *t)
{
    return t->limit.kind == PTX_NOTHING;
}

/* A number that is larger for what comes first: the score's bits in the order of numbers, then the place, the lower the
 * larger. -0 counts as +0, and every NaN becomes 0x7FFFFFFF, by the addition. In the order of numbers that is the largest of all; one
 * more makes it 0, below all others. Nothing has the key 0, or that of the first limit. */
static ptx_val key_of(ptx_builder *b, ptx_val score, ptx_val place)
{
    ptx_val bits = ptx_as(b, PTX_U32, ptx_add(b, score, ptx_f32(b, 0)));
    ptx_val sign = ptx_as(b, PTX_U32, ptx_shr(b, ptx_as(b, PTX_S32, bits), 31));
    ptx_val ordered = ptx_xor(b, bits, ptx_or(b, sign, 0x80000000u));
    return ptx_pack2(b, PTX_U64, ptx_not(b, place), ptx_add(b, ordered, 1));
}

/* The best key of the thread's own scores that is below the limit. */
static void look(ptx_builder *b, top *t)
{
    if (is_single(t))
        t->best = ptx_var(b, ptx_u64(b, 0));
    else
        ptx_assign(b, t->best, ptx_u64(b, 0));
    ptx_val place = ptx_for(b, ptx_tid_x(b), t->count, BLOCK);
    ptx_val score = ptx_ld_global(b, PTX_F32, ptx_at(b, t->scores, place, 4), 0),
            key = key_of(b, score, place);
    if (!is_single(t))
        ptx_if(b, ptx_setp(b, PTX_LT, key, t->limit));
    ptx_assign(b, t->best, ptx_max(b, t->best, key));
    if (!is_single(t))
        ptx_end_if(b);
    ptx_end_for(b);
}

/* Of so many neighbouring lanes, in each of them. */
static ptx_val largest_of_lanes(ptx_builder *b, ptx_val key, int lanes)
{
    for (int distance = lanes / 2; distance; distance /= 2) {
        ptx_val half[2], other[2];
        ptx_unpack(b, PTX_U32, key, half, 2);
        for (int i = 0; i < 2; i++)
            other[i] = ptx_shfl_bfly(b, half[i], distance);
        key = ptx_max(b, key, ptx_pack2(b, PTX_U64, other[0], other[1]));
    }
    return key;
}

/* In every thread. */
static ptx_val largest_of_block(ptx_builder *b, const top *t)
{
    ptx_val tid = ptx_tid_x(b), lane = ptx_laneid(b);
    ptx_val mine = largest_of_lanes(b, t->best, 32);
    if (!is_single(t))
        ptx_syncthreads(b); /* the keys of the turn before have been read */
    ptx_if(b, ptx_setp(b, PTX_EQ, lane, 0));
    ptx_st_shared(b, ptx_at(b, t->shared, ptx_shr(b, tid, 5), 8), 0, mine);
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val key = ptx_ld_shared(b, PTX_U64, ptx_at(b, t->shared, ptx_and(b, lane, WARPS - 1), 8), 0);
    return largest_of_lanes(b, key, WARPS);
}

/* Scores are products, so a NaN among them is 0x7FFFFFFF already. */
static void store(ptx_builder *b, const top *t, const kernel_spec *spec, const kernel_args *args, ptx_val at,
                  ptx_val key)
{
    ptx_val half[2];
    ptx_unpack(b, PTX_U32, key, half, 2);
    ptx_val place = ptx_not(b, half[0]), score = ptx_ld_global(b, PTX_F32, ptx_at(b, t->scores, place, 4), 0);
    ptx_st_global(b, ptx_at(b, args->operand[QDNN_OPERAND_Y], at, 4), 0, score);
    ptx_val index = spec->top_index == QDNN_DATA_F32 ? ptx_cvt_rn(b, PTX_F32, place) : place;
    ptx_st_global(b, ptx_at(b, args->operand[QDNN_OPERAND_TOP_INDEX], at, 4), 0, index);
}

static top top_begin(ptx_builder *b, const kernel_args *args, ptx_val line)
{
    top t = {.count = ptx_cvt(b, PTX_U32, args->number[NUMBER_ROWS]),
             .shared = ptx_shared(b, "keys", PTX_U64, WARPS, 8)};
    t.scores = ptx_at(b, args->operand[QDNN_OPERAND_X], ptx_mul(b, line, args->number[NUMBER_ROWS]), 4);
    return t;
}

static kernel_args declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 3); /* up to 80 registers */
    return kernel_declare(b, row, spec);
}

/* A block for each row of scores. */
kernel_geometry int_top_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = BLOCK, .grid = {rule_number(NUMBER_M)}};
}

void emit_int_top1(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = declare(b, row, spec);
    ptx_val line = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b));
    top t = top_begin(b, &args, line);
    look(b, &t);
    ptx_val key = largest_of_block(b, &t);
    ptx_if(b, ptx_setp(b, PTX_EQ, t.best, key));
    store(b, &t, spec, &args, line, key);
    ptx_end_if(b);
}

void emit_int_topk(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = declare(b, row, spec);
    ptx_val line = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), wanted = args.number[NUMBER_TOP];
    top t = top_begin(b, &args, line);
    t.limit = ptx_var(b, ptx_u64(b, UINT64_MAX));
    t.best = ptx_var(b, ptx_u64(b, UINT64_MAX));
    ptx_val turn = ptx_for(b, ptx_u64(b, 0), wanted, ptx_u64(b, 1));
    /* At first every thread looks, then the one whose key was taken. */
    ptx_if(b, ptx_setp(b, PTX_EQ, t.best, t.limit));
    look(b, &t);
    ptx_end_if(b);
    ptx_assign(b, t.limit, largest_of_block(b, &t));
    ptx_if(b, ptx_setp(b, PTX_EQ, t.best, t.limit));
    store(b, &t, spec, &args, ptx_mad(b, line, wanted, turn), t.limit);
    ptx_end_if(b);
    ptx_end_for(b);
}
