/* Sampling. A block has a row: it finds the largest logits, or the one largest, and chooses among them, or among all by the sums of
 * segments. Where rows are few and long, several blocks share a row: one kernel finds the largest of each part, one adds the
 * segments, which needs the largest of all, and the last chooses. */
#include "kernels/select/select.h"

#include "kernels/functions.h"

/* Places in the shared memory of the pool, once its keys are sorted, or no longer needed. */
enum {
    SORTED_P = 8 * TOP_MAX,
    SORTED_SUMS = SORTED_P + 4 * TOP_MAX,
    SEGMENT_VALUES = 0,
    SEGMENT_SUMS = 4 * SAMPLE_SEGMENTS,
    SHARED_END = SEGMENT_SUMS + 4 * SAMPLE_SEGMENTS
};
_Static_assert(SHARED_END <= 8 * POOL_KEYS && SORTED_SUMS + 4 * TOP_MAX <= 8 * POOL_KEYS, "they fit");

/* A row's settings, in the order of qdnnSampling_t. */
typedef struct settings {
    ptx_val temperature, top_p, min_p, top_k, repetition, frequency, presence;
    ptx_val is_drawn;  /* predicate: the temperature is above 0 */
    ptx_val is_sorted; /* predicate: and only some of the largest may be chosen */
} settings;

typedef struct sampler {
    const kernel_spec *spec;
    const kernel_args *args;
    row_part part;
    ptx_val logits; /* u64: address of the row */
    settings set;
    pool top;
    ptx_val found; /* u32: shared word */
} sampler;

static settings load_settings(ptx_builder *b, const kernel_args *args, ptx_val row)
{
    ptx_val at = ptx_at(b, args->operand[QDNN_OPERAND_SAMPLING], row, SAMPLE_SETTINGS);
    settings s = {.temperature = ptx_ld_global(b, PTX_F32, at, 0),
                  .top_p = ptx_ld_global(b, PTX_F32, at, 4),
                  .min_p = ptx_ld_global(b, PTX_F32, at, 8),
                  .top_k = ptx_ld_global(b, PTX_S32, at, 12),
                  .repetition = ptx_ld_global(b, PTX_F32, at, 16),
                  .frequency = ptx_ld_global(b, PTX_F32, at, 20),
                  .presence = ptx_ld_global(b, PTX_F32, at, 24)};
    s.is_drawn = ptx_setp(b, PTX_GT, s.temperature, 0.0f);
    ptx_val limits = ptx_setp_or(b, PTX_LT, s.top_p, 1.0f, ptx_setp(b, PTX_GT, s.top_k, 0));
    s.is_sorted = ptx_and(b, s.is_drawn, ptx_setp_or(b, PTX_GT, s.min_p, 0.0f, limits));
    return s;
}

/* How many of the largest are wanted: u32. */
static ptx_val wanted(ptx_builder *b, const settings *s, ptx_val n)
{
    ptx_val asked = ptx_as(b, PTX_U32, ptx_min(b, s->top_k, TOP_MAX));
    ptx_val limit = ptx_selp(b, asked, ptx_u32(b, TOP_MAX), ptx_setp(b, PTX_GT, s->top_k, 0));
    return ptx_selp(b, ptx_min(b, limit, n), ptx_u32(b, 1), s->is_sorted);
}

/* ---- Penalties ---- */

static ptx_val penalized(ptx_builder *b, const void *with, ptx_val x, ptx_val index, ptx_val exists)
{
    const sampler *s = with;
    const settings *set = &s->set;
    ptx_val at = row_part_at(b, &s->part, s->args->operand[QDNN_OPERAND_TOKEN_COUNT], 4, index);
    ptx_val count = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_S32, at, 0, ptx_s32(b, 0));
    ptx_val l = ptx_var(b, x);
    ptx_if(b, ptx_setp(b, PTX_GT, count, 0));
    ptx_val less = ptx_selp(b, ptx_div(b, x, set->repetition), ptx_mul(b, x, set->repetition),
                            ptx_setp(b, PTX_GT, x, 0.0f));
    less = ptx_sub(b, less, ptx_mul(b, ptx_cvt_rn(b, PTX_F32, count), set->frequency));
    ptx_assign(b, l, ptx_sub(b, less, set->presence));
    ptx_end_if(b);
    return l;
}

static void add_logits(ptx_builder *b, const sampler *s)
{
    const pool_change change = {penalized, s};
    ptx_val first = ptx_at(b, s->logits, ptx_cvt(b, PTX_U64, s->part.first), element_bytes(s->spec->data));
    const span all = span_of(b, s->spec->data, first, s->part.count);
    pool_add_span(b, &s->top, &all, s->part.first, s->spec->select.counts ? &change : NULL);
}

/* ---- Probabilities and their sums ---- */

static ptx_val probability(ptx_builder *b, const settings *s, ptx_val l, ptx_val largest)
{
    ptx_val p = emit_exp(b, ptx_div(b, ptx_sub(b, l, largest), s->temperature));
    return ptx_selp(b, ptx_f32(b, 0), p, ptx_setp(b, PTX_NAN, p, p));
}

/* Running sums of `count` f32 in shared memory, one by one, by the first warp. All threads wait for them. */
static void running_sums(ptx_builder *b, const pool *p, int values, int sums, ptx_val count, ptx_val start)
{
    ptx_if(b, ptx_setp(b, PTX_LT, p->tid, 32));
    ptx_val sum = ptx_var(b, start);
    ptx_val first = ptx_for(b, ptx_u32(b, 0), count, 32);
    ptx_val i = ptx_add(b, first, p->lane), exists = ptx_setp(b, PTX_LT, i, count),
            at = ptx_at(b, p->keys, i, 4);
    ptx_val value = ptx_ld_if(b, exists, PTX_SHARED, 0, PTX_F32, at, values, ptx_f32(b, 0));
    ptx_val own = ptx_f32(b, 0);
    for (unsigned j = 0; j < 32; j++) {
        ptx_assign(b, sum, ptx_add(b, sum, ptx_shfl_idx(b, value, ptx_u32(b, j))));
        own = ptx_selp(b, sum, own, ptx_setp(b, PTX_EQ, p->lane, j));
    }
    ptx_when(b, exists);
    ptx_st_shared(b, at, sums, own);
    ptx_end_for(b);
    ptx_end_if(b);
    ptx_syncthreads(b);
}

static ptx_val shared_f32(ptx_builder *b, const pool *p, int array, ptx_val i)
{
    return ptx_ld_shared(b, PTX_F32, ptx_at(b, p->keys, i, 4), array);
}

/* The lowest i in [from, count) for which a number in shared memory compares so with the limit; `none` if there is none. */
static ptx_val first_where(ptx_builder *b, const sampler *s, int array, ptx_val from, ptx_val count,
                           ptx_cmp cmp, ptx_val limit, ptx_val none)
{
    const pool *p = &s->top;
    ptx_if(b, ptx_setp(b, PTX_EQ, p->tid, 0));
    ptx_st_shared(b, s->found, 0, none);
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val i = ptx_for(b, ptx_add(b, from, p->tid), count, SELECT_BLOCK);
    ptx_if(b, ptx_setp(b, cmp, shared_f32(b, p, array, i), limit));
    ptx_red(b, PTX_ATOM_MIN, PTX_SHARED, s->found, 0, i);
    ptx_end_if(b);
    ptx_end_for(b);
    ptx_syncthreads(b);
    ptx_val found = ptx_ld_shared(b, PTX_U32, s->found, 0);
    ptx_syncthreads(b); /* before it is written again */
    return found;
}

/* ---- Random numbers ---- */

/* Philox4x32-10, its first word. Words 2 and 3 of the counter are 0. */
static ptx_val random_word(ptx_builder *b, ptx_val seed, ptx_val step)
{
    ptx_val c[4] = {0}, key[2], zero = ptx_u32(b, 0);
    ptx_unpack(b, PTX_U32, step, c, 2);
    ptx_unpack(b, PTX_U32, seed, key, 2);
    c[2] = c[3] = zero;
    for (unsigned round = 0; round < 10; round++) {
        ptx_val low_a = ptx_mul(b, c[0], 0xD2511F53u), low_b = ptx_mul(b, c[2], 0xCD9E8D57u);
        ptx_val high_a = ptx_mul_hi(b, c[0], ptx_u32(b, 0xD2511F53u)),
                high_b = ptx_mul_hi(b, c[2], ptx_u32(b, 0xCD9E8D57u));
        ptx_val k0 = ptx_add(b, key[0], 0x9E3779B9u * round);
        ptx_val k1 = ptx_add(b, key[1], 0xBB67AE85u * round);
        c[0] = ptx_xor(b, ptx_xor(b, high_b, c[1]), k0);
        c[1] = low_b;
        c[2] = ptx_xor(b, ptx_xor(b, high_a, c[3]), k1);
        c[3] = low_a;
    }
    return c[0];
}

static ptx_val uniform_of_row(ptx_builder *b, const sampler *s)
{
    ptx_val seed =
        ptx_ld_global(b, PTX_U64, ptx_at(b, s->args->operand[QDNN_OPERAND_SEED], s->part.row, 8), 0);
    ptx_val step =
        ptx_ld_global(b, PTX_U64, ptx_at(b, s->args->operand[QDNN_OPERAND_STEP], s->part.row, 8), 0);
    ptx_val word = random_word(b, seed, step);
    return ptx_mul(b, ptx_cvt_rn(b, PTX_F32, ptx_shr(b, word, 8)), 0x1p-24f);
}

/* ---- Choosing among the largest, which are sorted ---- */

static ptx_val choose_sorted(ptx_builder *b, const sampler *s, ptx_val largest)
{
    const pool *p = &s->top;
    ptx_val zero = ptx_u32(b, 0), last = ptx_sub(b, p->k, 1);
    ptx_val i = ptx_for(b, p->tid, p->k, SELECT_BLOCK);
    ptx_val key = ptx_ld_shared(b, PTX_U64, ptx_at(b, p->keys, i, 8), 0);
    ptx_st_shared(b, ptx_at(b, p->keys, i, 4), SORTED_P, probability(b, &s->set, key_value(b, key), largest));
    ptx_end_for(b);
    ptx_syncthreads(b);
    running_sums(b, p, SORTED_P, SORTED_SUMS, p->k, ptx_f32(b, 0));
    ptx_val kept = ptx_var(b, last); /* the last that stays */
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LT, s->set.top_p, 1.0f));
    ptx_val share = ptx_mul(b, s->set.top_p, shared_f32(b, p, SORTED_SUMS, last));
    ptx_assign(b, kept, first_where(b, s, SORTED_SUMS, zero, p->k, PTX_GE, share, last));
    ptx_end_if(b);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, s->set.min_p, 0.0f));
    ptx_val below = first_where(b, s, SORTED_P, ptx_u32(b, 1), p->k, PTX_LT, s->set.min_p, p->k);
    ptx_assign(b, kept, ptx_min(b, kept, ptx_sub(b, below, 1)));
    ptx_end_if(b);
    ptx_val target = ptx_mul(b, uniform_of_row(b, s), shared_f32(b, p, SORTED_SUMS, kept));
    ptx_val chosen = first_where(b, s, SORTED_SUMS, zero, ptx_add(b, kept, 1), PTX_GT, target, kept);
    return key_index(b, ptx_ld_shared(b, PTX_U64, ptx_at(b, p->keys, chosen, 8), 0));
}

/* ---- Choosing among all, by index ---- */

/* The p of eight neighbours from `number` (u32) on. */
static void chunk_of(ptx_builder *b, const sampler *s, ptx_val number, ptx_val aligned, ptx_val largest,
                     ptx_val p[SELECT_CHUNK])
{
    select_chunk(b, s->spec->data, s->logits, number, s->part.n, aligned, SELECT_NONE, p);
    for (int i = 0; i < SELECT_CHUNK; i++) {
        ptx_val index = ptx_add(b, number, i), l = p[i];
        if (s->spec->select.counts)
            l = penalized(b, s, l, index, ptx_setp(b, PTX_LT, index, s->part.n));
        p[i] = probability(b, &s->set, l, largest);
    }
}

/* Warps add the segments from `first` to before `end` (u32) and call `put` with each and its sum, in lane 0. */
static void add_segments(ptx_builder *b, const sampler *s, ptx_val first, ptx_val end, ptx_val largest,
                         void (*put)(ptx_builder *b, const sampler *s, ptx_val segment, ptx_val sum))
{
    ptx_val warp = ptx_shr(b, s->top.tid, 5), aligned = emit_aligned(b, s->logits, LOAD_BYTES);
    ptx_val segment = ptx_for(b, ptx_add(b, first, warp), end, SELECT_WARPS);
    ptx_val begin = ptx_mad(b, segment, SAMPLE_SEGMENT, ptx_mul(b, s->top.lane, SELECT_CHUNK));
    ptx_val sum = ptx_var(b, ptx_f32(b, 0));
    ptx_val offset = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, SAMPLE_SEGMENT), 32 * SELECT_CHUNK);
    ptx_val p[SELECT_CHUNK];
    chunk_of(b, s, ptx_add(b, begin, offset), aligned, largest, p);
    for (int i = 0; i < SELECT_CHUNK; i++)
        ptx_assign(b, sum, ptx_add(b, sum, p[i]));
    ptx_end_for(b);
    ptx_val total = select_tree(b, sum);
    ptx_if(b, ptx_setp(b, PTX_EQ, s->top.lane, 0));
    put(b, s, segment, total);
    ptx_end_if(b);
    ptx_end_for(b);
}

static ptx_val segments_of(ptx_builder *b, ptx_val elements)
{
    return ptx_shr(b, ptx_add(b, elements, SAMPLE_SEGMENT - 1), 10);
}
_Static_assert(SAMPLE_SEGMENT == 1 << 10, "a number of elements is shifted by it");

static void put_shared(ptx_builder *b, const sampler *s, ptx_val segment, ptx_val sum)
{
    ptx_st_shared(b, ptx_at(b, s->top.keys, segment, 4), SEGMENT_VALUES, sum);
}

static ptx_val segment_at(ptx_builder *b, const sampler *s, ptx_val segment)
{
    ptx_val segments = ptx_cvt(b, PTX_U64, segments_of(b, s->part.n));
    return ptx_at(b, s->args->workspace, ptx_mad(b, s->part.row, segments, ptx_cvt(b, PTX_U64, segment)), 4);
}

static void put_workspace(ptx_builder *b, const sampler *s, ptx_val segment, ptx_val sum)
{
    ptx_st_global(b, segment_at(b, s, segment), 0, sum);
}

/* The sums of all segments in shared memory. */
static void bring_segments(ptx_builder *b, const sampler *s, ptx_val segments, ptx_val largest)
{
    if (s->spec->select.phase == KERNEL_PHASE_WHOLE) {
        add_segments(b, s, ptx_u32(b, 0), segments, largest, put_shared);
    } else {
        ptx_val i = ptx_for(b, s->top.tid, segments, SELECT_BLOCK);
        put_shared(b, s, i, ptx_ld_global(b, PTX_F32, segment_at(b, s, i), 0));
        ptx_end_for(b);
    }
    ptx_syncthreads(b);
}

/* The p of a segment in shared memory, by the first threads. */
static void bring_segment(ptx_builder *b, const sampler *s, ptx_val first, ptx_val largest)
{
    ptx_if(b, ptx_setp(b, PTX_LT, s->top.tid, SAMPLE_SEGMENT / SELECT_CHUNK));
    ptx_val p[SELECT_CHUNK], offset = ptx_mul(b, s->top.tid, SELECT_CHUNK);
    chunk_of(b, s, ptx_add(b, first, offset), emit_aligned(b, s->logits, LOAD_BYTES), largest, p);
    ptx_val at = ptx_at(b, s->top.keys, offset, 4);
    for (int i = 0; i < SELECT_CHUNK; i++)
        ptx_st_shared(b, at, SEGMENT_VALUES + 4 * i, p[i]);
    ptx_end_if(b);
    ptx_syncthreads(b);
}

/* The last p of a segment that is above 0. */
static ptx_val last_possible(ptx_builder *b, const sampler *s, ptx_val count)
{
    const pool *p = &s->top;
    ptx_if(b, ptx_setp(b, PTX_EQ, p->tid, 0));
    ptx_st_shared(b, s->found, 0, ptx_u32(b, 0));
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val i = ptx_for(b, p->tid, count, SELECT_BLOCK);
    ptx_if(b, ptx_setp(b, PTX_GT, shared_f32(b, p, SEGMENT_VALUES, i), 0.0f));
    ptx_red(b, PTX_ATOM_MAX, PTX_SHARED, s->found, 0, i);
    ptx_end_if(b);
    ptx_end_for(b);
    ptx_syncthreads(b);
    return ptx_ld_shared(b, PTX_U32, s->found, 0);
}

static ptx_val choose_among_all(ptx_builder *b, const sampler *s, ptx_val largest)
{
    const pool *p = &s->top;
    ptx_val segments = segments_of(b, s->part.n), zero = ptx_u32(b, 0);
    bring_segments(b, s, segments, largest);
    running_sums(b, p, SEGMENT_VALUES, SEGMENT_SUMS, segments, ptx_f32(b, 0));
    ptx_val last = ptx_sub(b, segments, 1);
    ptx_val target = ptx_mul(b, uniform_of_row(b, s), shared_f32(b, p, SEGMENT_SUMS, last));
    ptx_val segment = first_where(b, s, SEGMENT_SUMS, zero, segments, PTX_GT, target, last);
    ptx_val is_later = ptx_setp(b, PTX_GT, segment, 0);
    ptx_val before = ptx_ld_if(b, is_later, PTX_SHARED, 0, PTX_F32, ptx_at(b, p->keys, segment, 4),
                               SEGMENT_SUMS - 4, ptx_f32(b, 0));
    ptx_syncthreads(b);
    ptx_val first = ptx_mul(b, segment, SAMPLE_SEGMENT),
            count = ptx_min(b, ptx_sub(b, s->part.n, first), SAMPLE_SEGMENT);
    bring_segment(b, s, first, largest);
    running_sums(b, p, SEGMENT_VALUES, SEGMENT_SUMS, count, before);
    ptx_val chosen = ptx_var(b, first_where(b, s, SEGMENT_SUMS, zero, count, PTX_GT, target, count));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_EQ, chosen, count));
    ptx_assign(b, chosen, last_possible(b, s, count));
    ptx_end_if(b);
    return ptx_add(b, first, chosen);
}

/* ---- Kernels ---- */

static void store_index(ptx_builder *b, const sampler *s, ptx_val index)
{
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_tid_x(b), 0));
    ptx_st_global(b, ptx_at(b, s->args->operand[QDNN_OPERAND_INDEX], s->part.row, 4), 0, index);
    ptx_end_if(b);
}

/* Where the keys of a row's parts are: a row has room for so many from each. */
static ptx_val row_keys(ptx_builder *b, const sampler *s)
{
    const unsigned each = s->spec->select.greedy ? 1 : TOP_MAX;
    ptx_val lists = ptx_mul(b, s->part.row, s->args->number[NUMBER_PARTS]);
    return ptx_at(b, s->args->partials, lists, 8 * each);
}

static void choose(ptx_builder *b, const sampler *s)
{
    ptx_val best = ptx_ld_shared(b, PTX_U64, s->top.keys, 0), largest = key_value(b, best);
    ptx_val index = ptx_var(b, key_index(b, best));
    ptx_uniform(b);
    ptx_if(b, s->set.is_drawn);
    ptx_val is_finite = ptx_testp_finite(b, largest);
    ptx_uniform(b);
    ptx_if_not(b, is_finite);
    ptx_assign(b, index, ptx_u32(b, 0));
    ptx_else(b);
    ptx_uniform(b);
    ptx_if(b, s->set.is_sorted);
    ptx_assign(b, index, choose_sorted(b, s, largest));
    ptx_else(b);
    ptx_syncthreads(b); /* the largest key is read before its place is used again */
    ptx_assign(b, index, choose_among_all(b, s, largest));
    ptx_end_if(b);
    ptx_end_if(b);
    ptx_end_if(b);
    store_index(b, s, index);
}

static void store_keys(ptx_builder *b, const sampler *s)
{
    ptx_val number = ptx_mul(b, ptx_ctaid_y(b), s->top.k);
    ptx_val to = ptx_at(b, row_keys(b, s), ptx_cvt(b, PTX_U64, number), 8);
    ptx_val i = ptx_for(b, s->top.tid, s->top.k, SELECT_BLOCK);
    ptx_val key = ptx_ld_shared(b, PTX_U64, ptx_at(b, s->top.keys, i, 8), 0);
    ptx_st_global(b, ptx_at(b, to, ptx_cvt(b, PTX_U64, i), 8), 0, key);
    ptx_end_for(b);
}

/* The largest of the keys that the parts of the row have left, one each, in all threads. */
static ptx_val largest_of_parts(ptx_builder *b, const sampler *s, ptx_val shared)
{
    ptx_val parts = ptx_cvt(b, PTX_U32, s->args->number[NUMBER_PARTS]), tid = ptx_tid_x(b);
    ptx_val at = ptx_at(b, row_keys(b, s), ptx_cvt(b, PTX_U64, tid), 8);
    ptx_val exists = ptx_setp(b, PTX_LT, tid, parts);
    ptx_val key = ptx_ld_if(b, exists, PTX_GLOBAL, 0, PTX_U64, at, 0, ptx_u64(b, 0));
    return key_largest(b, key, shared);
}

static void emit_sums(ptx_builder *b, const sampler *s)
{
    ptx_ret_unless(b, s->set.is_drawn);
    ptx_ret_if(b, s->set.is_sorted);
    ptx_val largest = key_value(b, largest_of_parts(b, s, s->top.keys));
    ptx_ret_unless(b, ptx_testp_finite(b, largest));
    ptx_val first = ptx_shr(b, s->part.first, 10),
            end = segments_of(b, ptx_add(b, s->part.first, s->part.count));
    add_segments(b, s, first, end, largest, put_workspace);
}

static void emit_drawn(ptx_builder *b, sampler *s)
{
    s->set = load_settings(b, s->args, s->part.row);
    ptx_val k = wanted(b, &s->set, s->part.n);
    s->top = pool_begin(b, k);
    s->found = ptx_shared(b, "found", PTX_U32, 1, 4);
    if (s->spec->select.phase == KERNEL_PHASE_SUMS) {
        emit_sums(b, s);
        return;
    }
    if (s->spec->select.phase == KERNEL_PHASE_JOIN)
        pool_add_keys(b, &s->top, row_keys(b, s),
                      ptx_mul(b, ptx_cvt(b, PTX_U32, s->args->number[NUMBER_PARTS]), k));
    else
        add_logits(b, s);
    pool_reduce(b, &s->top);
    if (s->spec->select.phase == KERNEL_PHASE_PARTS) {
        store_keys(b, s);
        return;
    }
    pool_sort(b, &s->top);
    choose(b, s);
}

/* ---- The largest alone ---- */

static ptx_val largest_of_span(ptx_builder *b, const span *s, ptx_val before)
{
    enum { AHEAD = 4 };
    ptx_val best = ptx_var(b, ptx_u64(b, 0)), tid = ptx_tid_x(b);
    ptx_val first = ptx_for(b, tid, s->vectors, AHEAD * SELECT_BLOCK);
    ptx_val words[AHEAD][4], v[AHEAD];
    for (unsigned u = 0; u < AHEAD; u++) {
        v[u] = u ? ptx_add(b, first, u * SELECT_BLOCK) : first;
        span_fetch(b, s, v[u], words[u]);
    }
    for (unsigned u = 0; u < AHEAD; u++) {
        ptx_val x[SPAN_ELEMENTS], number;
        span_decode(b, s, v[u], words[u], x, &number);
        for (unsigned j = 0; j < vector_elements(s->type); j++) {
            ptx_val key = key_of(b, x[j], ptx_add(b, ptx_add(b, before, number), j));
            ptx_assign(b, best, ptx_max(b, best, ptx_selp(b, key, ptx_u64(b, 0), span_has(b, s, number, j))));
        }
    }
    ptx_end_for(b);
    return best;
}

static void emit_greedy(ptx_builder *b, const sampler *s)
{
    ptx_val shared = ptx_shared(b, "keys", PTX_U64, SELECT_WARPS, 8), best;
    if (s->spec->select.phase == KERNEL_PHASE_JOIN) {
        best = largest_of_parts(b, s, shared);
    } else {
        ptx_val at = ptx_at(b, s->logits, ptx_cvt(b, PTX_U64, s->part.first), element_bytes(s->spec->data));
        const span all = span_of(b, s->spec->data, at, s->part.count);
        best = key_largest(b, largest_of_span(b, &all, s->part.first), shared);
    }
    if (s->spec->select.phase != KERNEL_PHASE_PARTS) {
        store_index(b, s, key_index(b, best));
        return;
    }
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_tid_x(b), 0));
    ptx_st_global(b, ptx_at(b, row_keys(b, s), ptx_cvt(b, PTX_U64, ptx_ctaid_y(b)), 8), 0, best);
    ptx_end_if(b);
}

void emit_sample(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    sampler s = {.spec = spec, .args = &args, .part = row_part_of(b, spec, &args)};
    if (spec->select.phase != KERNEL_PHASE_JOIN || !spec->select.greedy)
        s.logits = row_part_at(b, &s.part, args.operand[QDNN_OPERAND_LOGITS], element_bytes(spec->data),
                               ptx_u32(b, 0));
    if (spec->select.greedy)
        emit_greedy(b, &s);
    else
        emit_drawn(b, &s);
}
