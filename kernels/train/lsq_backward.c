/* LSQ's backward: reads x and dy once, writes dx, and sums the terms of the scales' gradients along the way,
 * in the order of the long sum. Groups of one segment are finished here; for longer ones, the sums of their
 * segments are written as lists, [group][segment], for long_sum.
 *
 * If the elements of a group form runs, a team of threads takes a segment, and each thread is one lane of the
 * sum. If neighbouring elements belong to different channels, a warp has 32 channels side by side instead,
 * and each thread is four lanes of one channel's sum. Either way, blocks loop over segments, so that the grid
 * may be smaller than their number. */
#include "kernels/emit.h"
#include "kernels/operations.h"
#include "kernels/train/train.h"

enum {
    COLUMNS = 32,                         /* channels side by side */
    COLUMN_WARPS = SUM_BLOCK / COLUMNS,   /* warps that share the lanes of a sum */
    OWN_LANES = SUM_LANES / COLUMN_WARPS, /* lanes per thread */
    SHORT_RUN = SUM_CHUNK,
    MANY_CHANNELS = COLUMNS / 2
};

static bool by_columns(const kernel_spec *spec)
{
    return spec->stored.group_size < SHORT_RUN && spec->stored.channels >= MANY_CHANNELS;
}

/* The number of threads per segment: fewer than a sum has lanes if the group is too short to reach the
 * others. */
static unsigned team_lanes(const kernel_spec *spec)
{
    unsigned lanes = 1;
    if (spec->stored.channels > 0)
        return SUM_LANES;
    while (lanes < SUM_LANES && lanes * SUM_CHUNK < spec->stored.group_size)
        lanes *= 2;
    return lanes;
}

/* ---- Amount of work ---- */

/* The first group has the most elements. */
static kernel_rule segments_rule(const kernel_spec *spec)
{
    const uint64_t turn = spec->stored.group_size * spec->stored.channels;
    if (turn == 0)
        return rule_constant(ceil_div(spec->stored.group_size, SUM_SEGMENT));
    const kernel_rule n = rule_number(NUMBER_N), size = rule_constant(spec->stored.group_size);
    const kernel_rule turns = rule_over(n, rule_constant(turn));
    const kernel_rule rest = rule_minus(n, rule_times(turns, rule_constant(turn)));
    const kernel_rule longest = turn == 1 ? n : rule_plus(rule_times(turns, size), rule_least(rest, size));
    return rule_ceil(longest, SUM_SEGMENT);
}

uint64_t lsq_backward_segments(const kernel_spec *spec, uint64_t n)
{
    const uint64_t numbers[NUMBERS] = {[NUMBER_N] = n};
    const kernel_rule segments = segments_rule(spec);
    return rule_value(&segments, numbers);
}

/* The number of groups that a block handles at a time, one segment of each. */
static uint64_t block_groups(const kernel_spec *spec)
{
    return by_columns(spec) ? COLUMNS : SUM_BLOCK / team_lanes(spec);
}

static kernel_rule blocks_rule(const kernel_spec *spec)
{
    const kernel_rule segments = segments_rule(spec);
    if (by_columns(spec))
        return rule_times(rule_constant(ceil_div(spec->stored.channels, COLUMNS)), segments);
    const kernel_rule groups = spec->stored.channels ? rule_constant(spec->stored.channels)
                                                     : rule_parts(NUMBER_N, spec->stored.group_size);
    return rule_ceil(rule_times(groups, segments), block_groups(spec));
}

kernel_geometry lsq_backward_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    uint64_t segment = spec->stored.channels == 0 && spec->stored.group_size < SUM_SEGMENT
                           ? spec->stored.group_size
                           : SUM_SEGMENT;
    return (kernel_geometry){
        .block = SUM_BLOCK, .elements_per_block = block_groups(spec) * segment, .grid = {blocks_rule(spec)}};
}

/* ---- One segment of one group ---- */

typedef struct lsq_kernel {
    const kernel_spec *spec;
    ptx_val x, scales, dy, dx, sums, n; /* parameters */
    sum_turns turns;
    ptx_val segments; /* u64: segments per group; empty if there is only one of each */
} lsq_kernel;

typedef struct segment {
    ptx_val group, number; /* u64 */
    ptx_val exists;        /* predicate */
    ptx_val scale;
    ptx_val count; /* u64: elements in the group */
    ptx_val first; /* u64: the first term of the segment, counted within the group; empty: 0 */
    ptx_val left;  /* u32: number of terms; 0 if the segment does not exist */
} segment;

static lsq_kernel kernel_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    const ptx_val *at = args.operand;
    lsq_kernel k = {.spec = spec,
                    .x = at[QDNN_OPERAND_X],
                    .scales = at[QDNN_OPERAND_SCALE],
                    .dy = at[QDNN_OPERAND_DY],
                    .dx = at[QDNN_OPERAND_DX],
                    .sums = at[QDNN_OPERAND_DSCALE],
                    .n = args.number[NUMBER_N]};
    k.turns = sum_turns_of(b, spec, k.n);
    if (spec->stored.channels)
        k.segments = emit_divide_up(b, sum_most(b, spec, &k.turns), SUM_SEGMENT);
    else if (spec->stored.group_size > SUM_SEGMENT)
        k.segments = ptx_u64(b, ceil_div(spec->stored.group_size, SUM_SEGMENT));
    return k;
}

/* Whether every group is a single segment. */
static bool has_one_segment(const lsq_kernel *k)
{
    return k->segments.kind == PTX_NOTHING;
}

/* The last group may be shorter than the others: its last segments then have no terms, and the sum 0. */
static segment segment_of(ptx_builder *b, const lsq_kernel *k, ptx_val group, ptx_val number, ptx_val exists)
{
    segment s = {.group = group, .number = number, .exists = exists};
    ptx_val address = ptx_at(b, k->scales, group, sizeof(float));
    s.scale = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_F32, address, 0, ptx_f32(b, 1));
    s.scale = train_least_scale(b, s.scale);
    s.count = sum_count(b, k->spec, &k->turns, group);
    ptx_val left = s.count;
    if (!has_one_segment(k)) {
        s.first = ptx_mul(b, number, SUM_SEGMENT);
        left = ptx_sub(b, left, ptx_min(b, left, s.first));
        left = ptx_min(b, left, SUM_SEGMENT);
    }
    s.left = ptx_cvt(b, PTX_U32, ptx_selp(b, left, ptx_u64(b, 0), exists));
    return s;
}

/* The element (u64) for a term (u32) of the segment. */
static ptx_val element_of(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val term)
{
    const uint64_t run = k->spec->stored.group_size, channels = k->spec->stored.channels;
    ptx_val number = ptx_cvt(b, PTX_U64, term);
    if (!has_one_segment(k))
        number = ptx_add(b, s->first, number);
    if (channels == 1)
        return number;
    if (channels == 0)
        return ptx_mad(b, s->group, ptx_u64(b, run), number);
    ptx_val turn = emit_divide(b, number, run);
    ptx_val runs = ptx_mad(b, turn, ptx_u64(b, channels), s->group);
    if (run == 1)
        return runs;
    return ptx_mad(b, runs, ptx_u64(b, run), emit_remainder(b, number, turn, run));
}

static void store_sum(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val sum)
{
    ptx_val index = has_one_segment(k) ? s->group : ptx_mad(b, s->group, k->segments, s->number);
    sum_store(b, k->spec, ptx_at(b, k->sums, index, sizeof(float)), sum, s->count);
}

/* Adds one term to the lane's sum (a variable); returns dx. */
static ptx_val add_term(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val x, ptx_val dy,
                        ptx_val sum)
{
    lsq_element e = train_lsq_backward(b, k->spec, x, s->scale, dy);
    ptx_assign(b, sum, ptx_fma(b, e.slope, dy, sum));
    return e.dx;
}

static void add_term_at(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val term, ptx_val sum)
{
    ptx_val offset = ptx_mul(b, element_of(b, k, s, term), sizeof(float));
    ptx_val x = emit_load(b, QDNN_DATA_F32, ptx_add(b, k->x, offset), 0);
    ptx_val dy = emit_load(b, QDNN_DATA_F32, ptx_add(b, k->dy, offset), 0);
    ptx_val dx = add_term(b, k, s, x, dy, sum);
    ptx_st_global(b, ptx_add(b, k->dx, offset), 0, dx);
}

/* ---- One thread per lane ---- */

/* Whether the eight terms of a lane are always adjacent, and 16-byte aligned if the pointers are. */
static bool chunks_are_whole(const kernel_spec *spec)
{
    return spec->stored.channels == 1 ||
           spec->stored.group_size % (spec->stored.channels ? SUM_CHUNK : 4) == 0;
}

/* Eight terms of a lane are 32 bytes. Two neighbouring lanes load their two chunks together, 16 bytes each of
 * the first and then of the second, and exchange halves, so that each request fills the sectors that it
 * touches. Stores do the reverse. */
typedef struct chunk_pair {
    ptx_val odd;       /* predicate: the lane is the second of the two */
    ptx_val at[2];     /* u64: byte offsets of this lane's half of the first and of the second chunk */
    ptx_val exists[2]; /* predicates: the chunks are complete */
} chunk_pair;

enum { HALF = SUM_CHUNK / 2, HALF_BYTES = HALF * sizeof(float), NO_CHUNK = -1 };

/* All lanes of the warp take part. */
static chunk_pair pair_of(ptx_builder *b, ptx_val offset, ptx_val exists)
{
    ptx_val none = ptx_u32(b, (uint32_t)NO_CHUNK), words[2], other[2];
    chunk_pair p = {.odd = ptx_setp(b, PTX_NE, ptx_and(b, ptx_laneid(b), 1), 0)};
    words[0] = ptx_cvt(b, PTX_U32, offset);
    words[1] = ptx_selp(b, ptx_cvt(b, PTX_U32, ptx_shr(b, offset, 32)), none, exists);
    for (int i = 0; i < 2; i++)
        other[i] = ptx_shfl_bfly(b, words[i], ptx_u32(b, 1));
    ptx_val half = ptx_selp(b, ptx_u64(b, HALF_BYTES), ptx_u64(b, 0), p.odd);
    for (int i = 0; i < 2; i++) {
        ptx_val low = i ? ptx_selp(b, words[0], other[0], p.odd) : ptx_selp(b, other[0], words[0], p.odd);
        ptx_val high = i ? ptx_selp(b, words[1], other[1], p.odd) : ptx_selp(b, other[1], words[1], p.odd);
        p.exists[i] = ptx_setp(b, PTX_NE, high, none);
        p.at[i] = ptx_add(b, ptx_pack2(b, PTX_U64, low, high), half);
    }
    return p;
}

/* What belongs to a chunk that is not complete is undefined: it is exchanged, but neither used nor stored. */

/* Turns the halves that both lanes loaded into this lane's chunk, or this lane's chunk into the halves to
 * store. */
static void exchange(ptx_builder *b, const chunk_pair *p, const ptx_val first[HALF],
                     const ptx_val second[HALF], ptx_val out[SUM_CHUNK])
{
    for (int i = 0; i < HALF; i++) {
        ptx_val got = ptx_shfl_bfly(b, ptx_selp(b, first[i], second[i], p->odd), ptx_u32(b, 1));
        out[i] = ptx_selp(b, got, first[i], p->odd);
        out[i + HALF] = ptx_selp(b, second[i], got, p->odd);
    }
}

static void load_chunk(ptx_builder *b, const chunk_pair *p, ptx_val from, ptx_val x[SUM_CHUNK])
{
    ptx_val halves[SUM_CHUNK];
    for (int i = 0; i < SUM_CHUNK; i++)
        halves[i] = ptx_var_of(b, PTX_F32);
    for (int i = 0; i < 2; i++) {
        ptx_val here[HALF];
        ptx_if(b, p->exists[i]);
        emit_load_chunk(b, QDNN_DATA_F32, ptx_add(b, from, p->at[i]), 0, here);
        for (int k = 0; k < HALF; k++)
            ptx_assign(b, halves[i * HALF + k], here[k]);
        ptx_end_if(b);
    }
    exchange(b, p, &halves[0], &halves[HALF], x);
}

static void store_chunk(ptx_builder *b, const chunk_pair *p, ptx_val to, const ptx_val x[SUM_CHUNK])
{
    ptx_val halves[SUM_CHUNK];
    exchange(b, p, &x[0], &x[HALF], halves);
    for (int i = 0; i < 2; i++) {
        ptx_if(b, p->exists[i]);
        emit_store_chunk(b, QDNN_DATA_F32, ptx_add(b, to, p->at[i]), 0, &halves[i * HALF]);
        ptx_end_if(b);
    }
}

/* Adds the chunk that begins with term `first`, if it is complete; all lanes of the warp take part. */
static void add_chunk(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val first, ptx_val whole,
                      ptx_val sum)
{
    ptx_val offset = ptx_mul(b, element_of(b, k, s, first), sizeof(float));
    chunk_pair p = pair_of(b, offset, whole);
    ptx_val x[SUM_CHUNK], dy[SUM_CHUNK], dx[SUM_CHUNK];
    load_chunk(b, &p, k->x, x);
    load_chunk(b, &p, k->dy, dy);
    for (int i = 0; i < SUM_CHUNK; i++)
        dx[i] = ptx_var_of(b, PTX_F32);
    ptx_if(b, whole);
    for (int i = 0; i < SUM_CHUNK; i++)
        ptx_assign(b, dx[i], add_term(b, k, s, x[i], dy[i], sum));
    ptx_end_if(b);
    store_chunk(b, &p, k->dx, dx);
}

/* Adds a lane's chunk in one round of the lanes: complete chunks at once, others term by term. */
static void add_round(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val first, ptx_val aligned,
                      ptx_val sum)
{
    ptx_val end = ptx_add(b, first, SUM_CHUNK), rest = first;
    if (chunks_are_whole(k->spec)) {
        ptx_val whole = ptx_setp_and(b, PTX_LE, end, s->left, aligned);
        add_chunk(b, k, s, first, whole, sum);
        rest = ptx_selp(b, end, first, whole);
    }
    ptx_val term = ptx_for(b, rest, ptx_min(b, end, s->left), 1);
    add_term_at(b, k, s, term, sum);
    ptx_end_for(b);
}

/* Adds the lane's terms of a segment. A team smaller than a warp needs only one round, because its group is
 * short enough. */
static ptx_val add_lane(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val lane, unsigned lanes,
                        ptx_val aligned)
{
    ptx_val sum = ptx_var(b, ptx_f32(b, 0)), first = ptx_mul(b, lane, SUM_CHUNK);
    if (lanes < SUM_LANES) {
        add_round(b, k, s, first, aligned, sum);
        return sum;
    }
    ptx_val round = ptx_for(b, ptx_u32(b, 0), s->left, SUM_LANES * SUM_CHUNK);
    add_round(b, k, s, ptx_add(b, round, first), aligned, sum);
    ptx_end_for(b);
    return sum;
}

/* Segments are numbered channel by channel: the first segment of each, then the second of each ... For groups
 * that are single runs, they are numbered group by group. */
static segment numbered_segment(ptx_builder *b, const lsq_kernel *k, ptx_val item, ptx_val exists)
{
    const uint64_t channels = k->spec->stored.channels,
                   segments = ceil_div(k->spec->stored.group_size, SUM_SEGMENT);
    const uint64_t inner = channels ? channels : segments;
    if (channels == 1)
        return segment_of(b, k, ptx_u64(b, 0), item, exists);
    if (has_one_segment(k))
        return segment_of(b, k, item, item, exists);
    ptx_val outer = emit_divide(b, item, inner), rest = emit_remainder(b, item, outer, inner);
    return channels ? segment_of(b, k, rest, outer, exists) : segment_of(b, k, outer, rest, exists);
}

static ptx_val all_aligned(ptx_builder *b, const lsq_kernel *k)
{
    ptx_val in = ptx_and(b, emit_aligned(b, k->x, LOAD_BYTES), emit_aligned(b, k->dy, LOAD_BYTES));
    return ptx_and(b, in, emit_aligned(b, k->dx, LOAD_BYTES));
}

static void backward_of_runs(ptx_builder *b, const lsq_kernel *k)
{
    const unsigned lanes = team_lanes(k->spec), teams = SUM_BLOCK / lanes;
    ptx_val tid = ptx_tid_x(b), lane = ptx_and(b, tid, lanes - 1), aligned = all_aligned(b, k);
    ptx_val team = ptx_cvt(b, PTX_U64, ptx_shr(b, tid, (unsigned)__builtin_ctz(lanes)));
    ptx_val groups = ptx_u64(b, k->spec->stored.channels);
    if (k->spec->stored.channels == 0)
        groups = emit_divide_up(b, k->n, k->spec->stored.group_size);
    ptx_val total = groups;
    if (k->spec->stored.channels == 1)
        total = k->segments;
    else if (!has_one_segment(k))
        total = ptx_mul(b, groups, k->segments);
    ptx_val next = ptx_mul_wide(b, ptx_nctaid_x(b), ptx_u32(b, teams));
    ptx_val block_first = ptx_for(b, ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, teams)), total, next);
    ptx_val item = ptx_add(b, block_first, team);
    segment s = numbered_segment(b, k, item, ptx_setp(b, PTX_LT, item, total));
    ptx_val lane_sum = add_lane(b, k, &s, lane, lanes, aligned);
    ptx_val sum = sum_tree(b, lane_sum, lanes);
    ptx_if(b, ptx_setp_and(b, PTX_EQ, lane, 0, s.exists));
    store_sum(b, k, &s, sum);
    ptx_end_if(b);
    ptx_end_for(b);
}

/* ---- 32 channels side by side ---- */

/* Lanes w, w + 8, w + 16 and w + 24 of a channel's sum are in warp w; the terms of each are added in order.
 * The first two steps of the tree combine these four. */
static ptx_val add_own_lanes(ptx_builder *b, const lsq_kernel *k, const segment *s, ptx_val warp)
{
    ptx_val sums[OWN_LANES];
    for (int i = 0; i < OWN_LANES; i++)
        sums[i] = ptx_var(b, ptx_f32(b, 0));
    ptx_val round = ptx_for(b, ptx_mul(b, warp, SUM_CHUNK), s->left, SUM_LANES * SUM_CHUNK);
    ptx_val first = ptx_for(b, round, ptx_add(b, round, SUM_CHUNK), 1);
    for (int i = 0; i < OWN_LANES; i++) {
        ptx_val term = ptx_add(b, first, i * COLUMN_WARPS * SUM_CHUNK);
        ptx_if(b, ptx_setp(b, PTX_LT, term, s->left));
        add_term_at(b, k, s, term, sums[i]);
        ptx_end_if(b);
    }
    ptx_end_for(b);
    ptx_end_for(b);
    ptx_val even = ptx_add(b, sums[0], sums[2]), odd = ptx_add(b, sums[1], sums[3]);
    return ptx_add(b, even, odd);
}
_Static_assert(OWN_LANES == 4 && COLUMN_WARPS == 8, "the tree is written for these");

/* The last three steps of the tree, by one warp. */
static ptx_val add_warps(ptx_builder *b, ptx_val shared, ptx_val column)
{
    ptx_val sums[COLUMN_WARPS], at = ptx_at(b, shared, column, sizeof(float));
    for (int i = 0; i < COLUMN_WARPS; i++)
        sums[i] = ptx_ld_shared(b, PTX_F32, at, 4 * COLUMNS * i);
    for (int half = COLUMN_WARPS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] = ptx_add(b, sums[i], sums[i + half]);
    return sums[0];
}

static void backward_of_columns(ptx_builder *b, const lsq_kernel *k)
{
    const uint64_t channels = k->spec->stored.channels, strips = ceil_div(channels, COLUMNS);
    ptx_val shared = ptx_shared(b, "sums", PTX_F32, SUM_BLOCK, 16);
    ptx_val tid = ptx_tid_x(b), column = ptx_and(b, tid, COLUMNS - 1), warp = ptx_shr(b, tid, 5);
    ptx_val total = emit_multiply(b, k->segments, strips);
    ptx_val from = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), step = ptx_cvt(b, PTX_U64, ptx_nctaid_x(b));
    ptx_val item = ptx_for(b, from, total, step);
    ptx_val number = emit_divide(b, item, strips), channel = ptx_cvt(b, PTX_U64, column);
    if (strips > 1)
        channel = ptx_mad(b, emit_remainder(b, item, number, strips), ptx_u64(b, COLUMNS), channel);
    segment s = segment_of(b, k, channel, number, ptx_setp(b, PTX_LT, channel, ptx_u64(b, channels)));
    ptx_val own = add_own_lanes(b, k, &s, warp);
    ptx_st_shared(b, ptx_at(b, shared, tid, sizeof(float)), 0, own);
    ptx_syncthreads(b);
    ptx_if(b, ptx_setp_and(b, PTX_LT, tid, COLUMNS, s.exists));
    store_sum(b, k, &s, add_warps(b, shared, column));
    ptx_end_if(b);
    ptx_syncthreads(b); /* before the next sums are written to the same shared memory */
    ptx_end_for(b);
}
_Static_assert(COLUMNS == 1 << 5, "a thread's number is shifted by it");

void emit_lsq_backward(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 3); /* up to 80 registers, which the divisions need */
    lsq_kernel k = kernel_begin(b, row, spec);
    if (by_columns(spec))
        backward_of_columns(b, &k);
    else
        backward_of_runs(b, &k);
}
