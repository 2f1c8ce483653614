/* The k largest of any number of keys, by a thread block that sees each once. Keys that may be among them are put into shared
 * memory; whenever it could overflow, the k largest are found by their digits, 8 bits at a time, and the rest is
 * dropped. In most rows few keys get there after the first. All keys differ, so that the result is the same in any order. */
#include "kernels/select/select.h"

enum {
    OWN = POOL_KEYS / SELECT_BLOCK, /* keys of a thread while they are counted */
    BINS = 256,
    AHEAD = 4, /* vectors per thread that are under way together */
    /* offsets in `state` */
    COUNT = 0,
    BIN =
        4, /* of the digit that is looked for: its value, keys wanted among those with it, and keys with it */
    WANTED = 8,
    IN_BIN = 12,
    TOTALS = 16, /* [SELECT_WARPS] */
    HISTOGRAM = TOTALS + 4 * SELECT_WARPS,
    STATE_WORDS = HISTOGRAM / 4 + BINS
};
_Static_assert((int)BINS == (int)SELECT_BLOCK, "a thread for each bin");
_Static_assert(TOP_MAX + POOL_ADDED <= POOL_KEYS, "there is room after the rest was dropped");

static void reset_count(ptx_builder *b, const pool *p)
{
    ptx_if(b, ptx_setp(b, PTX_EQ, p->tid, 0));
    ptx_st_shared(b, p->state, COUNT, ptx_u32(b, 0));
    ptx_end_if(b);
}

pool pool_begin(ptx_builder *b, ptx_val k)
{
    pool p = {.keys = ptx_shared(b, "keys", PTX_U64, POOL_KEYS, 16),
              .state = ptx_shared(b, "state", PTX_U32, STATE_WORDS, 16),
              .k = k,
              .least = ptx_var(b, ptx_u64(b, 1)),
              .tid = ptx_tid_x(b),
              .lane = ptx_laneid(b)};
    reset_count(b, &p);
    return p;
}

/* Puts those that are not below `least` after the keys that the pool has. */
static void put(ptx_builder *b, const pool *p, const ptx_val *keys, unsigned count)
{
    ptx_val good[OWN], mask[OWN], total = ptx_u32(b, 0);
    for (unsigned i = 0; i < count; i++) {
        good[i] = ptx_setp(b, PTX_GE, keys[i], p->least);
        mask[i] = ptx_ballot(b, good[i]);
        total = i ? ptx_add(b, total, ptx_popc(b, mask[i])) : ptx_popc(b, mask[i]);
    }
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, total, 0));
    ptx_val first = ptx_var(b, ptx_u32(b, 0));
    ptx_if(b, ptx_setp(b, PTX_EQ, p->lane, 0));
    ptx_assign(b, first, ptx_atom(b, PTX_ATOM_ADD, PTX_SHARED, p->state, COUNT, total));
    ptx_end_if(b);
    ptx_val at = ptx_shfl_idx(b, first, ptx_u32(b, 0)),
            below = ptx_sub(b, ptx_shl(b, ptx_u32(b, 1), p->lane), 1);
    for (unsigned i = 0; i < count; i++) {
        ptx_val place = ptx_add(b, at, ptx_popc(b, ptx_and(b, mask[i], below)));
        ptx_val to = ptx_at(b, p->keys, place, 8);
        ptx_when(b, good[i]);
        ptx_st_shared(b, to, 0, keys[i]);
        at = ptx_add(b, at, ptx_popc(b, mask[i]));
    }
    ptx_end_if(b);
}

/* The number of keys whose digit is at least the thread's bin, and of those with that digit. */
static ptx_val count_from(ptx_builder *b, const pool *p, ptx_val *in_bin)
{
    *in_bin = ptx_ld_shared(b, PTX_U32, ptx_at(b, p->state, p->tid, 4), HISTOGRAM);
    ptx_val sum = *in_bin, warp = ptx_shr(b, p->tid, 5);
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        ptx_val other = ptx_shfl_down(b, sum, distance);
        ptx_val exists = ptx_setp(b, PTX_LT, p->lane, 32 - distance);
        sum = ptx_add(b, sum, ptx_selp(b, other, ptx_u32(b, 0), exists));
    }
    ptx_if(b, ptx_setp(b, PTX_EQ, p->lane, 0));
    ptx_st_shared(b, ptx_at(b, p->state, warp, 4), TOTALS, sum);
    ptx_end_if(b);
    ptx_syncthreads(b);
    for (unsigned i = 1; i < SELECT_WARPS; i++) {
        ptx_val total = ptx_ld_shared(b, PTX_U32, p->state, (int)(TOTALS + 4 * i));
        sum = ptx_add(b, sum, ptx_selp(b, total, ptx_u32(b, 0), ptx_setp(b, PTX_LT, warp, i)));
    }
    return sum;
}

/* Counts the digit at `shift` of the keys that begin like `prefix`. */
static void count_digits(ptx_builder *b, const pool *p, const ptx_val own[OWN], ptx_val prefix, ptx_val shift)
{
    ptx_st_shared(b, ptx_at(b, p->state, p->tid, 4), HISTOGRAM, ptx_u32(b, 0));
    ptx_syncthreads(b);
    for (int i = 0; i < OWN; i++) {
        ptx_val differs = ptx_shr(b, ptx_shr(b, ptx_xor(b, own[i], prefix), shift), 8);
        ptx_val counts =
            ptx_setp_and(b, PTX_EQ, differs, ptx_u64(b, 0), ptx_setp(b, PTX_NE, own[i], ptx_u64(b, 0)));
        ptx_val digit = ptx_and(b, ptx_cvt(b, PTX_U32, ptx_shr(b, own[i], shift)), BINS - 1);
        ptx_val bin = ptx_at(b, p->state, digit, 4), one = ptx_u32(b, 1);
        ptx_when(b, counts);
        ptx_red(b, PTX_ATOM_ADD, PTX_SHARED, bin, HISTOGRAM, one);
    }
    ptx_syncthreads(b);
}

/* A number that exactly k of the keys, of which there are more, are not below. */
static void find_least(ptx_builder *b, const pool *p, const ptx_val own[OWN])
{
    ptx_val prefix = ptx_var(b, ptx_u64(b, 0)), wanted = ptx_var(b, p->k), shift = ptx_var(b, ptx_u32(b, 56));
    ptx_loop(b);
    count_digits(b, p, own, prefix, shift);
    ptx_val in_bin, from = count_from(b, p, &in_bin), above = ptx_sub(b, from, in_bin);
    ptx_if(b, ptx_setp_and(b, PTX_GE, from, wanted, ptx_setp(b, PTX_LT, above, wanted)));
    ptx_st_shared(b, p->state, BIN, p->tid);
    ptx_st_shared(b, p->state, WANTED, ptx_sub(b, wanted, above));
    ptx_st_shared(b, p->state, IN_BIN, in_bin);
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val bin = ptx_cvt(b, PTX_U64, ptx_ld_shared(b, PTX_U32, p->state, BIN));
    ptx_assign(b, prefix, ptx_or(b, prefix, ptx_shl(b, bin, shift)));
    ptx_assign(b, wanted, ptx_ld_shared(b, PTX_U32, p->state, WANTED));
    ptx_uniform(b);
    ptx_break_if(b, ptx_setp(b, PTX_EQ, wanted, ptx_ld_shared(b, PTX_U32, p->state, IN_BIN)));
    ptx_assign(b, shift, ptx_sub(b, shift, 8));
    ptx_end_loop(b);
    ptx_assign(b, p->least, prefix);
}

/* Leaves the k largest of more keys. No thread adds any meanwhile; a barrier follows. */
static void drop(ptx_builder *b, const pool *p, ptx_val count)
{
    ptx_val own[OWN];
    for (int i = 0; i < OWN; i++) {
        ptx_val place = ptx_add(b, p->tid, i * SELECT_BLOCK), exists = ptx_setp(b, PTX_LT, place, count);
        own[i] = ptx_ld_if(b, exists, PTX_SHARED, 0, PTX_U64, ptx_at(b, p->keys, p->tid, 8),
                           8 * i * SELECT_BLOCK, ptx_u64(b, 0));
    }
    find_least(b, p, own);
    reset_count(b, p);
    ptx_syncthreads(b);
    put(b, p, own, OWN);
}

void pool_add(ptx_builder *b, const pool *p, const ptx_val *keys, unsigned count)
{
    ptx_val any = ptx_setp(b, PTX_GE, keys[0], p->least);
    for (unsigned i = 1; i < count; i++)
        any = ptx_setp_or(b, PTX_GE, keys[i], p->least, any);
    ptx_val some = ptx_bar_red_or(b, 0, any);
    ptx_uniform(b);
    ptx_if(b, some);
    ptx_val used = ptx_ld_shared(b, PTX_U32, p->state, COUNT);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, used, POOL_KEYS - SELECT_BLOCK * count));
    drop(b, p, used);
    ptx_end_if(b);
    ptx_syncthreads(b); /* all have read the count, or put what is left */
    put(b, p, keys, count);
    ptx_end_if(b);
}

void pool_add_span(ptx_builder *b, const pool *p, const span *s, ptx_val before, const pool_change *change)
{
    const unsigned each = vector_elements(s->type);
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->vectors, AHEAD * SELECT_BLOCK);
    ptx_val words[AHEAD][4], v[AHEAD];
    for (unsigned u = 0; u < AHEAD; u++) {
        v[u] = ptx_add(b, ptx_add(b, first, p->tid), u * SELECT_BLOCK);
        span_fetch(b, s, v[u], words[u]);
    }
    for (unsigned u = 0; u < AHEAD; u++) {
        ptx_val x[SPAN_ELEMENTS], keys[SPAN_ELEMENTS], number;
        span_decode(b, s, v[u], words[u], x, &number);
        for (unsigned j = 0; j < each; j++) {
            ptx_val exists = span_has(b, s, number, j);
            ptx_val index = ptx_add(b, ptx_add(b, before, number), j);
            if (change)
                x[j] = change->apply(b, change->with, x[j], index, exists);
            keys[j] = ptx_selp(b, key_of(b, x[j], index), ptx_u64(b, 0), exists);
        }
        pool_add(b, p, keys, each);
    }
    ptx_end_for(b);
}

void pool_add_keys(ptx_builder *b, const pool *p, ptx_val address, ptx_val count)
{
    ptx_val first = ptx_for(b, ptx_u32(b, 0), count, AHEAD * SELECT_BLOCK);
    ptx_val keys[AHEAD];
    for (unsigned u = 0; u < AHEAD; u++) {
        ptx_val i = ptx_add(b, ptx_add(b, first, p->tid), u * SELECT_BLOCK);
        ptx_val exists = ptx_setp(b, PTX_LT, i, count);
        keys[u] = ptx_ld_if(b, exists, PTX_GLOBAL, 0, PTX_U64, ptx_at(b, address, ptx_cvt(b, PTX_U64, i), 8),
                            0, ptx_u64(b, 0));
    }
    pool_add(b, p, keys, AHEAD);
    ptx_end_for(b);
}

void pool_reduce(ptx_builder *b, const pool *p)
{
    ptx_syncthreads(b);
    ptx_val count = ptx_ld_shared(b, PTX_U32, p->state, COUNT);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, count, p->k));
    drop(b, p, count);
    ptx_end_if(b);
    ptx_val i = ptx_for(b, ptx_add(b, count, p->tid), p->k, SELECT_BLOCK);
    ptx_st_shared(b, ptx_at(b, p->keys, i, 8), 0, ptx_u64(b, 0));
    ptx_end_for(b);
    ptx_syncthreads(b);
}

/* One exchange of a sorting network by each thread, and so on up to half of `size` of them. */
static void exchange(ptx_builder *b, const pool *p, ptx_val all, ptx_val size, ptx_val stride)
{
    ptx_val low_bits = ptx_sub(b, stride, 1);
    ptx_val i = ptx_for(b, p->tid, ptx_shr(b, all, 1), SELECT_BLOCK);
    ptx_val low = ptx_sub(b, ptx_add(b, i, i), ptx_and(b, i, low_bits));
    ptx_val at = ptx_at(b, p->keys, low, 8), to = ptx_at(b, at, stride, 8);
    ptx_val x = ptx_ld_shared(b, PTX_U64, at, 0), y = ptx_ld_shared(b, PTX_U64, to, 0);
    ptx_val down = ptx_setp(b, PTX_EQ, ptx_and(b, low, size), 0);
    ptx_val larger = ptx_max(b, x, y), smaller = ptx_min(b, x, y);
    ptx_st_shared(b, at, 0, ptx_selp(b, larger, smaller, down));
    ptx_st_shared(b, to, 0, ptx_selp(b, smaller, larger, down));
    ptx_end_for(b);
    ptx_syncthreads(b);
}

/* A bitonic network over the next power of two. */
void pool_sort(ptx_builder *b, const pool *p)
{
    ptx_val high = ptx_clz(b, ptx_sub(b, p->k, 1)),
            all = ptx_shl(b, ptx_u32(b, 1), ptx_sub(b, ptx_u32(b, 32), high));
    ptx_val i = ptx_for(b, ptx_add(b, p->k, p->tid), all, SELECT_BLOCK);
    ptx_st_shared(b, ptx_at(b, p->keys, i, 8), 0, ptx_u64(b, 0));
    ptx_end_for(b);
    ptx_syncthreads(b);
    ptx_val size = ptx_var(b, ptx_u32(b, 2));
    ptx_loop(b);
    ptx_uniform(b);
    ptx_break_if(b, ptx_setp(b, PTX_GT, size, all));
    ptx_val stride = ptx_var(b, ptx_shr(b, size, 1));
    ptx_loop(b);
    exchange(b, p, all, size, stride);
    ptx_assign(b, stride, ptx_shr(b, stride, 1));
    ptx_uniform(b);
    ptx_break_if(b, ptx_setp(b, PTX_EQ, stride, 0));
    ptx_end_loop(b);
    ptx_assign(b, size, ptx_shl(b, size, 1));
    ptx_end_loop(b);
}
