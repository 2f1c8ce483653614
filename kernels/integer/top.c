/* The largest scores of each row of a product of nibbles, without storing the scores: a warp computes one score at a time
 * for each row of x that the block has, and keeps the best in registers, one or two to a lane, in descending order. At
 * the end the lists of the block's warps are merged. Where there are many columns and few rows, several blocks share the
 * columns; they leave their lists in the workspace, and a second kernel merges those. */
#include "kernels/integer/integer.h"

enum {
    BLOCK = 256,
    WARPS = BLOCK / 32,
    SLOTS = 2,
    TOP_MAX = 32 * SLOTS,
    MERGE_BLOCK = 128,
    MERGE_ROWS = MERGE_BLOCK / 32
};

/* ---- Keys ---- */

/* A number that is larger for what comes first: the score's bits in the order of numbers, then the place, the lower the
 * larger. -0 counts as +0, and every NaN becomes 0x7FFFFFFF, by the addition. In the order of numbers that is the largest of
 * all; one more makes it 0, below all others. Places are below 2^31, so that the last bit is free: it says that the score
 * is -0. Nothing has the key 0. */
static ptx_val key_of(ptx_builder *b, ptx_val score, ptx_val place)
{
    ptx_val is_minus_zero = ptx_setp(b, PTX_EQ, ptx_as(b, PTX_U32, score), 0x80000000u);
    ptx_val bits = ptx_as(b, PTX_U32, ptx_add(b, score, ptx_f32(b, 0)));
    ptx_val sign = ptx_as(b, PTX_U32, ptx_shr(b, ptx_as(b, PTX_S32, bits), 31));
    ptx_val ordered = ptx_xor(b, bits, ptx_or(b, sign, 0x80000000u));
    ptx_val low =
        ptx_or(b, ptx_shl(b, ptx_not(b, place), 1), ptx_selp(b, ptx_u32(b, 1), ptx_u32(b, 0), is_minus_zero));
    return ptx_pack2(b, PTX_U64, low, ptx_add(b, ordered, 1));
}

/* The score and the place (u32) of a key. */
static ptx_val score_of(ptx_builder *b, ptx_val key, ptx_val *place)
{
    ptx_val half[2];
    ptx_unpack(b, PTX_U32, key, half, 2);
    *place = ptx_and(b, ptx_not(b, ptx_shr(b, half[0], 1)), 0x7FFFFFFF);
    ptx_val ordered = ptx_sub(b, half[1], 1);
    ptx_val sign = ptx_as(b, PTX_U32, ptx_shr(b, ptx_as(b, PTX_S32, ordered), 31));
    ptx_val bits = ptx_xor(b, ordered, ptx_or(b, ptx_not(b, sign), 0x80000000u));
    return ptx_as(b, PTX_F32, ptx_or(b, bits, ptx_shl(b, half[0], 31)));
}

/* ---- Lists of keys, one to a warp ---- */

/* What all lists of a kernel have in common. */
typedef struct ranking {
    ptx_val wanted;    /* u32: the number of keys; empty: 1 */
    ptx_val lane;      /* u32 */
    ptx_val is_first;  /* predicate: lane 0 */
    ptx_val last_lane; /* u32: which lane has the last key, */
    ptx_val is_high;   /* predicate: in its second slot */
} ranking;

/* Variables. The key of rank i is in slot i / 32 of lane i mod 32; a single one is in every lane. 0: none yet. */
typedef struct list {
    ptx_val slot[SLOTS]; /* u64 */
    ptx_val least;       /* u64: the last of the wanted ones */
} list;

static bool is_single(const ranking *r)
{
    return r->wanted.kind == PTX_NOTHING;
}

static ranking ranking_begin(ptx_builder *b, ptx_val top)
{
    ranking r = {.lane = ptx_laneid(b)};
    if (top.kind == PTX_NOTHING)
        return r;
    r.wanted = ptx_cvt(b, PTX_U32, top);
    ptx_val last = ptx_sub(b, r.wanted, 1);
    r.is_first = ptx_setp(b, PTX_EQ, r.lane, 0);
    r.last_lane = ptx_and(b, last, 31);
    r.is_high = ptx_setp(b, PTX_GE, last, 32);
    return r;
}

static list list_begin(ptx_builder *b, const ranking *r)
{
    list l = {.slot = {ptx_var(b, ptx_u64(b, 0))}};
    if (is_single(r))
        return l;
    l.slot[1] = ptx_var(b, ptx_u64(b, 0));
    l.least = ptx_var(b, ptx_u64(b, 0));
    return l;
}

static ptx_val moved_up(ptx_builder *b, ptx_val key)
{
    ptx_val half[2];
    ptx_unpack(b, PTX_U32, key, half, 2);
    return ptx_pack2(b, PTX_U64, ptx_shfl_up(b, half[0], 1), ptx_shfl_up(b, half[1], 1));
}

static ptx_val of_lane(ptx_builder *b, ptx_val key, ptx_val lane)
{
    ptx_val half[2];
    ptx_unpack(b, PTX_U32, key, half, 2);
    return ptx_pack2(b, PTX_U64, ptx_shfl_idx(b, half[0], lane), ptx_shfl_idx(b, half[1], lane));
}

/* Inserts a key that is the same in all lanes, in its order: a slot keeps what is larger than the key, and takes the smaller
 * of the key and the slot before it otherwise. */
static void insert(ptx_builder *b, const ranking *r, const list *l, ptx_val key)
{
    if (is_single(r)) {
        ptx_assign(b, l->slot[0], ptx_max(b, l->slot[0], key));
        return;
    }
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, key, l->least));
    ptx_val before[SLOTS] = {
        ptx_selp(b, ptx_u64(b, UINT64_MAX), moved_up(b, l->slot[0]), r->is_first),
        ptx_selp(b, of_lane(b, l->slot[0], ptx_u32(b, 31)), moved_up(b, l->slot[1]), r->is_first)};
    for (int i = 0; i < SLOTS; i++)
        ptx_assign(b, l->slot[i], ptx_max(b, l->slot[i], ptx_min(b, before[i], key)));
    ptx_assign(b, l->least, of_lane(b, ptx_selp(b, l->slot[1], l->slot[0], r->is_high), r->last_lane));
    ptx_end_if(b);
}

/* Calls `put` with each key of the list and its rank (u32), in the lane that has it. */
static void each_key(ptx_builder *b, const ranking *r, const list *l, const void *to,
                     void (*put)(ptx_builder *b, const void *to, ptx_val rank, ptx_val key))
{
    for (unsigned i = 0; i < (is_single(r) ? 1 : SLOTS); i++) {
        ptx_val rank = i ? ptx_add(b, r->lane, 32 * i) : r->lane;
        ptx_if(b, ptx_setp(b, PTX_LT, rank, is_single(r) ? ptx_u32(b, 1) : r->wanted));
        put(b, to, rank, l->slot[i]);
        ptx_end_if(b);
    }
}

/* ---- Results ---- */

typedef struct results {
    const kernel_spec *spec;
    const kernel_args *args;
    ptx_val first; /* u64: of the row of y, in elements */
} results;

static void put_result(ptx_builder *b, const void *to, ptx_val rank, ptx_val key)
{
    const results *r = to;
    ptx_val place, score = score_of(b, key, &place), at = ptx_add(b, r->first, ptx_cvt(b, PTX_U64, rank));
    ptx_st_global(b, ptx_at(b, r->args->operand[QDNN_OPERAND_Y], at, 4), 0, score);
    ptx_val index = r->spec->integer.top_index == QDNN_DATA_F32 ? ptx_cvt_rn(b, PTX_F32, place) : place;
    ptx_st_global(b, ptx_at(b, r->args->operand[QDNN_OPERAND_TOP_INDEX], at, 4), 0, index);
}

/* Keys in memory that follow each other from an address (u64) on. */
static void put_key(ptx_builder *b, const void *to, ptx_val rank, ptx_val key)
{
    const ptx_val *first = to;
    ptx_st_global(b, ptx_at(b, *first, rank, 8), 0, key);
}

static void put_shared(ptx_builder *b, const void *to, ptx_val rank, ptx_val key)
{
    const ptx_val *first = to;
    ptx_st_shared(b, ptx_at(b, *first, rank, 8), 0, key);
}

/* Elements of a row of results: u64. */
static ptx_val times_wanted(ptx_builder *b, const ranking *r, ptx_val row)
{
    return is_single(r) ? row : ptx_mul(b, row, ptx_cvt(b, PTX_U64, r->wanted));
}

/* ---- The product ---- */

typedef struct top {
    const kernel_spec *spec;
    int_lines lines;
    ranking ranking;
    ptx_val warp; /* u32 */
    list lists[INT_LINES_MAX];
    ptx_val x_rows[INT_LINES_MAX], x_scales[INT_LINES_MAX];
} top;

static top top_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    top t = {.spec = spec,
             .lines = {.spec = spec, .rows = spec->integer.tile, .args = int_declare(b, row, spec)}};
    int_lines *l = &t.lines;
    const kernel_args *args = &l->args.all;
    l->x = int_matrix_begin(b, spec->integer.x_codes, args->operand[QDNN_OPERAND_X], l->args.m, l->args.k);
    l->w =
        int_matrix_begin(b, spec->integer.w_codes, args->operand[QDNN_OPERAND_CODES], l->args.n, l->args.k);
    l->first_row = ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_ctaid_x(b), (unsigned)l->rows));
    t.ranking = ranking_begin(b, args->number[NUMBER_TOP]);
    t.warp = ptx_shr(b, ptx_tid_x(b), 5);
    ptx_val last = ptx_sub(b, l->args.m, ptx_u64(b, 1));
    for (int i = 0; i < l->rows; i++) {
        ptx_val m = ptx_min(b, ptx_add(b, l->first_row, ptx_u64(b, (uint64_t)i)), last);
        t.x_rows[i] = int_row_that_exists(b, &l->x, m);
        t.x_scales[i] = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, args->operand[QDNN_OPERAND_X_SCALE], m, 4), 0);
        t.lists[i] = list_begin(b, &t.ranking);
        l->sums[i] = ptx_var(b, ptx_s32(b, 0));
    }
    return t;
}

/* One column of w with every row. */
static void add_column(ptx_builder *b, const top *t, ptx_val place)
{
    const int_lines *l = &t->lines;
    ptx_val n = ptx_cvt(b, PTX_U64, place);
    ptx_val scale = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, l->args.all.operand[QDNN_OPERAND_SCALE], n, 4), 0);
    for (int i = 0; i < l->rows; i++)
        ptx_assign(b, l->sums[i], ptx_s32(b, 0));
    int_lines_add(b, l, int_row_that_exists(b, &l->w, n), t->x_rows);
    for (int i = 0; i < l->rows; i++) {
        ptx_val sum = ptx_cvt_rn(b, PTX_F32, int_lines_join(b, l->sums[i]));
        insert(b, &t->ranking, &t->lists[i],
               key_of(b, ptx_mul(b, ptx_mul(b, sum, scale), t->x_scales[i]), place));
    }
}

/* The columns of the block's part, a warp every eighth of them. */
static void add_columns(ptx_builder *b, const top *t)
{
    ptx_val first = t->warp, end = ptx_cvt(b, PTX_U32, t->lines.args.n);
    if (t->spec->product.split > 1) {
        const unsigned parts = (unsigned)t->spec->product.split;
        ptx_val each = ptx_div(b, ptx_add(b, end, parts - 1), parts),
                begin = ptx_mul(b, ptx_ctaid_y(b), each);
        end = ptx_min(b, ptx_add(b, begin, each), end);
        first = ptx_add(b, begin, t->warp);
    }
    ptx_val place = ptx_for(b, first, end, WARPS);
    add_column(b, t, place);
    ptx_end_for(b);
}

/* Inserts keys that follow each other in shared memory. */
static void insert_shared(ptx_builder *b, const ranking *r, const list *l, ptx_val first)
{
    if (is_single(r)) {
        insert(b, r, l, ptx_ld_shared(b, PTX_U64, first, 0));
        return;
    }
    ptx_val i = ptx_for(b, ptx_u32(b, 0), r->wanted, 1);
    insert(b, r, l, ptx_ld_shared(b, PTX_U64, ptx_at(b, first, i, 8), 0));
    ptx_end_for(b);
}

/* Where the list of a warp for a row of the block is: [row][warp][slots]. */
static ptx_val shared_list(ptx_builder *b, const top *t, ptx_val shared, ptx_val row, ptx_val warp)
{
    return ptx_at(b, shared, ptx_mad(b, row, WARPS, warp), is_single(&t->ranking) ? 8 : 8 * TOP_MAX);
}

/* Warp i merges the lists of row i, if that exists, and stores the result: at its end, or in the workspace. */
static void finish(ptx_builder *b, const top *t, ptx_val shared)
{
    const int_lines *l = &t->lines;
    const kernel_args *args = &l->args.all;
    for (int i = 0; i < l->rows; i++) {
        ptx_val own = shared_list(b, t, shared, ptx_u32(b, (uint32_t)i), t->warp);
        each_key(b, &t->ranking, &t->lists[i], &own, put_shared);
    }
    ptx_syncthreads(b);
    ptx_val row = ptx_add(b, l->first_row, ptx_cvt(b, PTX_U64, t->warp));
    ptx_ret_unless(b, ptx_setp_and(b, PTX_LT, row, l->args.m, ptx_setp(b, PTX_LT, t->warp, l->rows)));
    list all = list_begin(b, &t->ranking);
    ptx_val i = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, WARPS), 1);
    insert_shared(b, &t->ranking, &all, shared_list(b, t, shared, t->warp, i));
    ptx_end_for(b);
    if (t->spec->product.split == 1) {
        const results to = {t->spec, args, times_wanted(b, &t->ranking, row)};
        each_key(b, &t->ranking, &all, &to, put_result);
        return;
    }
    ptx_val part = ptx_cvt(b, PTX_U64, ptx_ctaid_y(b)),
            number = ptx_mad(b, row, ptx_u64(b, t->spec->product.split), part);
    ptx_val first = ptx_at(b, args->partials, times_wanted(b, &t->ranking, number), 8);
    each_key(b, &t->ranking, &all, &first, put_key);
}

void emit_int_top(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 2); /* up to 128 registers */
    top t = top_begin(b, row, spec);
    const unsigned lists = (unsigned)t.lines.rows * WARPS;
    ptx_val shared = ptx_shared(b, "keys", PTX_U64, is_single(&t.ranking) ? lists : lists * TOP_MAX, 8);
    add_columns(b, &t);
    finish(b, &t, shared);
}

/* A warp for each row merges the lists of its parts. */
void emit_int_top_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    ranking r = ranking_begin(b, args.number[NUMBER_TOP]);
    ptx_val line = ptx_cvt(b, PTX_U64, ptx_mad(b, ptx_ctaid_x(b), MERGE_ROWS, ptx_shr(b, ptx_tid_x(b), 5)));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, line, args.number[NUMBER_M]));
    const unsigned parts = (unsigned)spec->product.split;
    ptx_val keys = ptx_at(b, args.partials, times_wanted(b, &r, ptx_mul(b, line, ptx_u64(b, parts))), 8);
    list all = list_begin(b, &r);
    ptx_val i = ptx_for(b, ptx_u32(b, 0), ptx_mul(b, r.wanted, parts), 1);
    insert(b, &r, &all, ptx_ld_global(b, PTX_U64, ptx_at(b, keys, i, 8), 0));
    ptx_end_for(b);
    const results to = {spec, &args, times_wanted(b, &r, line)};
    each_key(b, &r, &all, &to, put_result);
}

/* ---- Launches ---- */

kernel_geometry int_top_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return (kernel_geometry){
        .block = BLOCK,
        .grid = {rule_parts(NUMBER_M, (uint64_t)spec->integer.tile), rule_constant(spec->product.split)}};
}

kernel_geometry int_top_join_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = MERGE_BLOCK, .grid = {rule_parts(NUMBER_M, MERGE_ROWS)}};
}
