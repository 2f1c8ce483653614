/* Softmax. Rows of up to 1,024 elements are a warp's, which keeps them in registers; longer ones a block's, which keeps those of up to 8,192 in
 * shared memory, so that x is read once. Sums follow the order of the long sum: chunk c of 8 elements belongs to lane c mod 32. */
#include "kernels/select/select.h"

#include "kernels/functions.h"

enum {
    SEGMENT = 4096,
    SEGMENTS_MAX = SEGMENT, /* their sums are one list */
    STAGED_MAX = 8192,
    ROUND = 32 * SELECT_CHUNK, /* elements that a warp has at a time */
    ROUNDS_MAX = 4
};

typedef struct softmax {
    const kernel_spec *spec;
    const kernel_args *args;
    ptx_val row;         /* u64 */
    ptx_val n;           /* u32 */
    ptx_val x, mask, y;  /* u64: addresses of the row's */
    ptx_val slope, sink; /* f32; empty: none */
    ptx_val x_aligned, mask_aligned, y_aligned;
} softmax;

static ptx_val row_of(ptx_builder *b, const softmax *s, int operand, unsigned bytes, ptx_val row)
{
    ptx_val first = ptx_mul(b, row, s->args->number[NUMBER_COLUMNS]);
    return ptx_at(b, s->args->operand[operand], first, bytes);
}

static softmax softmax_begin(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val row)
{
    const qdnnDataType_t mask = (qdnnDataType_t)spec->select.mask;
    softmax s = {
        .spec = spec, .args = args, .row = row, .n = ptx_cvt(b, PTX_U32, args->number[NUMBER_COLUMNS])};
    s.x = row_of(b, &s, QDNN_OPERAND_X, element_bytes(spec->data), row);
    s.y = row_of(b, &s, QDNN_OPERAND_Y, element_bytes(spec->epilogue.output), row);
    s.x_aligned = emit_aligned(b, s.x, LOAD_BYTES);
    s.y_aligned = emit_aligned(b, s.y, LOAD_BYTES);
    if (!mask && !spec->select.sink)
        return s;
    ptx_val rows = args->number[NUMBER_TABLE_ROWS], head = ptx_div(b, row, rows);
    if (mask) {
        ptx_val mask_row = ptx_sub(b, row, ptx_mul(b, head, rows));
        s.mask = row_of(b, &s, QDNN_OPERAND_MASK, element_bytes(mask), mask_row);
        s.mask_aligned = emit_aligned(b, s.mask, LOAD_BYTES);
    }
    if (spec->select.slope)
        s.slope = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, args->operand[QDNN_OPERAND_SLOPE], head, 4), 0);
    if (spec->select.sink)
        s.sink = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, args->operand[QDNN_OPERAND_SINK], head, 4), 0);
    return s;
}

/* The t of eight elements from `number` on; -Inf for those that the row does not have. */
static void terms(ptx_builder *b, const softmax *s, ptx_val number, ptx_val t[SELECT_CHUNK])
{
    ptx_val mask[SELECT_CHUNK];
    select_chunk(b, s->spec->data, s->x, number, s->n, s->x_aligned, 0, t);
    if (s->spec->select.mask)
        select_chunk(b, (qdnnDataType_t)s->spec->select.mask, s->mask, number, s->n, s->mask_aligned, 0,
                     mask);
    for (int i = 0; i < SELECT_CHUNK; i++) {
        t[i] = ptx_mul(b, t[i], s->args->number[NUMBER_ALPHA]);
        if (s->spec->select.mask)
            t[i] = ptx_add(b, t[i], s->spec->select.slope ? ptx_mul(b, s->slope, mask[i]) : mask[i]);
        ptx_val exists = ptx_setp(b, PTX_LT, ptx_add(b, number, i), s->n);
        t[i] = ptx_selp(b, t[i], ptx_f32(b, SELECT_NONE), exists);
    }
}

/* The largest number so far, and whether there was a NaN (u32 variable, 0 or 1). */
typedef struct extreme {
    ptx_val largest, is_nan;
} extreme;

static extreme extreme_begin(ptx_builder *b, const softmax *s)
{
    if (s->spec->select.sink) {
        ptx_val is_nan = ptx_setp(b, PTX_NAN, s->sink, s->sink);
        return (extreme){ptx_var(b, ptx_max(b, s->sink, ptx_f32(b, SELECT_NONE))),
                         ptx_var(b, ptx_selp(b, ptx_u32(b, 1), ptx_u32(b, 0), is_nan))};
    }
    return (extreme){ptx_var(b, ptx_f32(b, SELECT_NONE)), ptx_var(b, ptx_u32(b, 0))};
}

static void extreme_add(ptx_builder *b, const extreme *e, const ptx_val t[SELECT_CHUNK])
{
    for (int i = 0; i < SELECT_CHUNK; i++) {
        ptx_val is_nan = ptx_setp(b, PTX_NAN, t[i], t[i]);
        ptx_assign(b, e->largest, ptx_max(b, e->largest, t[i]));
        ptx_assign(b, e->is_nan, ptx_selp(b, ptx_u32(b, 1), e->is_nan, is_nan));
    }
}

static void extreme_of_warp(ptx_builder *b, const extreme *e)
{
    for (unsigned distance = 16; distance > 0; distance /= 2)
        ptx_assign(b, e->largest, ptx_max(b, e->largest, ptx_shfl_bfly(b, e->largest, distance)));
    ptx_val any = ptx_vote_any(b, ptx_setp(b, PTX_NE, e->is_nan, 0));
    ptx_assign(b, e->is_nan, ptx_selp(b, ptx_u32(b, 1), ptx_u32(b, 0), any));
}

static ptx_val with_sink(ptx_builder *b, const softmax *s, ptx_val sum, ptx_val largest)
{
    return s->spec->select.sink ? ptx_add(b, sum, emit_exp(b, ptx_sub(b, s->sink, largest))) : sum;
}

/* p / sum, or what replaces it. */
static void store(ptx_builder *b, const softmax *s, const extreme *e, ptx_val sum, ptx_val number,
                  const ptx_val p[SELECT_CHUNK])
{
    const qdnnDataType_t type = s->spec->epilogue.output;
    const unsigned bytes = element_bytes(type);
    ptx_val nan = ptx_bits(b, PTX_F32, 0x7FFFFFFF), y[SELECT_CHUNK];
    ptx_val none = ptx_setp(b, PTX_EQ, e->largest, ptx_f32(b, SELECT_NONE));
    ptx_val bad =
        ptx_setp_or(b, PTX_EQ, e->largest, ptx_f32(b, -SELECT_NONE), ptx_setp(b, PTX_NE, e->is_nan, 0));
    for (int i = 0; i < SELECT_CHUNK; i++) {
        ptx_val share = ptx_div(b, p[i], sum);
        y[i] = ptx_selp(b, nan, ptx_selp(b, ptx_f32(b, 0), share, none), bad);
    }
    ptx_val at = ptx_at(b, s->y, ptx_cvt(b, PTX_U64, number), bytes);
    ptx_if(b, ptx_setp_and(b, PTX_LE, ptx_add(b, number, SELECT_CHUNK), s->n, s->y_aligned));
    emit_store_run(b, type, at, 0, SELECT_CHUNK, y);
    ptx_else(b);
    for (int i = 0; i < SELECT_CHUNK; i++) {
        ptx_if(b, ptx_setp(b, PTX_LT, i ? ptx_add(b, number, i) : number, s->n));
        emit_store(b, type, at, i * (int)bytes, y[i]);
        ptx_end_if(b);
    }
    ptx_end_if(b);
}

/* ---- A warp per row ---- */

static void of_warp(ptx_builder *b, const kernel_spec *spec, const kernel_args *args)
{
    const int rounds = (int)spec->select.rounds;
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5), lane = ptx_laneid(b);
    ptx_val row =
        ptx_add(b, ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, SELECT_WARPS)), ptx_cvt(b, PTX_U64, warp));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, row, args->number[NUMBER_M]));
    const softmax s = softmax_begin(b, spec, args, row);
    const extreme e = extreme_begin(b, &s);
    ptx_val t[ROUNDS_MAX][SELECT_CHUNK], number[ROUNDS_MAX], sum = ptx_f32(b, 0);
    for (int r = 0; r < rounds; r++) {
        number[r] = ptx_mul(b, lane, SELECT_CHUNK);
        if (r)
            number[r] = ptx_add(b, number[r], r * ROUND);
        terms(b, &s, number[r], t[r]);
    }
    for (int r = 0; r < rounds; r++)
        extreme_add(b, &e, t[r]);
    extreme_of_warp(b, &e);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < SELECT_CHUNK; i++) {
            t[r][i] = emit_exp(b, ptx_sub(b, t[r][i], e.largest));
            sum = ptx_add(b, sum, t[r][i]);
        }
    sum = with_sink(b, &s, select_tree(b, sum), e.largest);
    for (int r = 0; r < rounds; r++)
        store(b, &s, &e, sum, number[r], t[r]);
}

/* ---- A block per row ---- */

typedef struct block_row {
    softmax row;
    ptx_val tid, warp, lane;
    ptx_val staged; /* u32: shared f32 [STAGED_MAX]; empty: none */
    ptx_val sums;   /* u32: shared f32 [SEGMENTS_MAX], of segments; before that, what warps exchange */
} block_row;

/* The halves of every other four chunks change places, so that a warp reads its chunks without bank conflicts. */
static ptx_val staged_half(ptx_builder *b, const block_row *r, ptx_val number, unsigned half)
{
    ptx_val swap = ptx_and(b, ptx_shr(b, number, 5), 1);
    ptx_val place = ptx_xor(b, ptx_add(b, number, 4 * half), ptx_shl(b, swap, 2));
    return ptx_at(b, r->staged, place, 4);
}

static void stage(ptx_builder *b, const block_row *r, ptx_val number, const ptx_val t[SELECT_CHUNK])
{
    for (unsigned half = 0; half < 2; half++)
        ptx_st_vec(b, PTX_SHARED, 0, staged_half(b, r, number, half), 0, t + 4 * half, 4);
}

static void unstage(ptx_builder *b, const block_row *r, ptx_val number, ptx_val t[SELECT_CHUNK])
{
    for (unsigned half = 0; half < 2; half++)
        ptx_ld_vec(b, PTX_SHARED, 0, PTX_F32, staged_half(b, r, number, half), 0, t + 4 * half, 4);
}

static bool is_staged(const block_row *r)
{
    return r->staged.kind != PTX_NOTHING;
}

/* A loop over the row's chunks, one per thread at a time; the number of its first element. */
static ptx_val for_chunks(ptx_builder *b, const block_row *r)
{
    return ptx_for(b, ptx_mul(b, r->tid, SELECT_CHUNK), r->row.n, SELECT_BLOCK * SELECT_CHUNK);
}

static extreme extreme_of_block(ptx_builder *b, const block_row *r)
{
    const extreme e = extreme_begin(b, &r->row);
    ptx_val number = for_chunks(b, r), t[SELECT_CHUNK];
    terms(b, &r->row, number, t);
    extreme_add(b, &e, t);
    if (is_staged(r))
        stage(b, r, number, t);
    ptx_end_for(b);
    extreme_of_warp(b, &e);
    ptx_if(b, ptx_setp(b, PTX_EQ, r->lane, 0));
    ptx_val at = ptx_at(b, r->sums, r->warp, 8);
    ptx_st_shared(b, at, 0, e.largest);
    ptx_st_shared(b, at, 4, e.is_nan);
    ptx_end_if(b);
    ptx_syncthreads(b);
    for (int i = 0; i < SELECT_WARPS; i++) {
        ptx_assign(b, e.largest, ptx_max(b, e.largest, ptx_ld_shared(b, PTX_F32, r->sums, 8 * i)));
        ptx_assign(b, e.is_nan, ptx_or(b, e.is_nan, ptx_ld_shared(b, PTX_U32, r->sums, 8 * i + 4)));
    }
    ptx_syncthreads(b);
    return e;
}

static void powers(ptx_builder *b, const block_row *r, const extreme *e, ptx_val number,
                   ptx_val p[SELECT_CHUNK])
{
    if (is_staged(r)) {
        unstage(b, r, number, p);
        return;
    }
    terms(b, &r->row, number, p);
    for (int i = 0; i < SELECT_CHUNK; i++)
        p[i] = emit_exp(b, ptx_sub(b, p[i], e->largest));
}

/* t becomes p, in shared memory. */
static void stage_powers(ptx_builder *b, const block_row *r, const extreme *e)
{
    ptx_val number = for_chunks(b, r), t[SELECT_CHUNK];
    unstage(b, r, number, t);
    for (int i = 0; i < SELECT_CHUNK; i++)
        t[i] = emit_exp(b, ptx_sub(b, t[i], e->largest));
    stage(b, r, number, t);
    ptx_end_for(b);
    ptx_syncthreads(b);
}

static ptx_val segment_sum(ptx_builder *b, const block_row *r, const extreme *e, ptx_val segment)
{
    ptx_val sum = ptx_var(b, ptx_f32(b, 0)), first = ptx_mul(b, segment, SEGMENT);
    ptx_val end = ptx_min(b, ptx_add(b, first, SEGMENT), r->row.n);
    ptx_val number = ptx_for(b, ptx_mad(b, r->lane, SELECT_CHUNK, first), end, ROUND), p[SELECT_CHUNK];
    powers(b, r, e, number, p);
    for (int i = 0; i < SELECT_CHUNK; i++)
        ptx_assign(b, sum, ptx_add(b, sum, p[i]));
    ptx_end_for(b);
    return select_tree(b, sum);
}

/* The sum of the list of segments' sums, by each warp. */
static ptx_val list_sum(ptx_builder *b, const block_row *r, ptx_val segments)
{
    ptx_val sum = ptx_var(b, ptx_f32(b, 0));
    ptx_val first = ptx_for(b, ptx_mul(b, r->lane, SELECT_CHUNK), segments, ROUND);
    ptx_val end = ptx_min(b, ptx_add(b, first, SELECT_CHUNK), segments), i = ptx_for(b, first, end, 1);
    ptx_assign(b, sum, ptx_add(b, sum, ptx_ld_shared(b, PTX_F32, ptx_at(b, r->sums, i, 4), 0)));
    ptx_end_for(b);
    ptx_end_for(b);
    return select_tree(b, sum);
}

static ptx_val sum_of_block(ptx_builder *b, const block_row *r, const extreme *e)
{
    ptx_val segments = ptx_shr(b, ptx_add(b, r->row.n, SEGMENT - 1), 12);
    ptx_val segment = ptx_for(b, r->warp, segments, SELECT_WARPS);
    ptx_val sum = segment_sum(b, r, e, segment);
    ptx_if(b, ptx_setp(b, PTX_EQ, r->lane, 0));
    ptx_st_shared(b, ptx_at(b, r->sums, segment, 4), 0, sum);
    ptx_end_if(b);
    ptx_end_for(b);
    ptx_syncthreads(b);
    return list_sum(b, r, segments);
}
_Static_assert(SEGMENT == 1 << 12, "a number of elements is shifted by it");

static void of_block(ptx_builder *b, const kernel_spec *spec, const kernel_args *args)
{
    block_row r = {.tid = ptx_tid_x(b), .lane = ptx_laneid(b)};
    r.warp = ptx_shr(b, r.tid, 5);
    r.row = softmax_begin(b, spec, args, ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)));
    const unsigned segments = spec->select.staged ? STAGED_MAX / SEGMENT : SEGMENTS_MAX;
    r.sums = ptx_shared(b, "sums", PTX_F32, segments < 2 * SELECT_WARPS ? 2 * SELECT_WARPS : segments, 16);
    if (spec->select.staged)
        r.staged = ptx_shared(b, "staged", PTX_F32, STAGED_MAX, 16);
    const extreme e = extreme_of_block(b, &r);
    if (is_staged(&r))
        stage_powers(b, &r, &e);
    ptx_val sum = with_sink(b, &r.row, sum_of_block(b, &r, &e), e.largest);
    ptx_val number = for_chunks(b, &r), p[SELECT_CHUNK];
    powers(b, &r, &e, number, p);
    store(b, &r.row, &e, sum, number, p);
    ptx_end_for(b);
}

void emit_softmax(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    if (spec->select.rounds)
        of_warp(b, spec, &args);
    else
        of_block(b, spec, &args);
}

kernel_geometry softmax_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return (kernel_geometry){.block = SELECT_BLOCK,
                             .grid = {rule_parts(NUMBER_M, spec->select.rounds ? SELECT_WARPS : 1)}};
}

void softmax_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps)
{
    kernel_spec best = *spec;
    const uint64_t rounds = ceil_div(problem->columns, ROUND);
    best.select.rounds = rounds <= ROUNDS_MAX ? rounds : 0;
    best.select.staged = rounds > ROUNDS_MAX && problem->columns <= STAGED_MAX;
    steps_add(steps, row, &best, problem);
}
