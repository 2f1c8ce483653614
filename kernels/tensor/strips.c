/* The second kernel of the product "stream": adds up the sums of strips in order, and completes y. */
#include "kernels/gemm/epilogue.h"
#include "kernels/tensor/stream.h"

enum { JOIN_COLUMNS = STRIPS_OUTPUTS / STREAM_THREADS }; /* columns of y per thread */
enum { JOIN_TOGETHER = 4 };                              /* strips loaded at a time */

/* A thread completes JOIN_COLUMNS columns of one row or, with many rows, of two or four. */
enum { JOIN_ROWS_MAX = 4 };

typedef struct joined {
    const gemm_args *args;
    unsigned rows;
    ptx_val m[JOIN_ROWS_MAX], exists[JOIN_ROWS_MAX]; /* u64; predicates, for rows after the first */
    ptx_val
        width[JOIN_ROWS_MAX]; /* u32, for rows after the first: outputs of a row; 0 if it does not exist */
    ptx_val n;                /* u64: the first column of y */
    ptx_val expert, known;    /* u64, one that exists; predicate: it is the row's; empty: not grouped */
    ptx_val strips, stride;   /* u32; u64: bytes between the sums of neighbouring strips */
} joined;

/* The sums of the outputs from `output` (u64) on. */
typedef struct row_sums {
    ptx_val at; /* variable: address in the next strip */
    ptx_val sum[JOIN_COLUMNS];
} row_sums;

/* A row that does not exist is replaced by the first. */
static row_sums sums_begin(ptx_builder *b, const joined *j, unsigned row, ptx_val output)
{
    ptx_val m = row ? ptx_selp(b, j->m[row], j->m[0], j->exists[row]) : j->m[0];
    row_sums s = {
        .at = ptx_var(b, ptx_at(b, j->args->all.partials, ptx_mad(b, m, j->args->outputs, output), 4))};
    for (unsigned c = 0; c < JOIN_COLUMNS; c++)
        s.sum[c] = ptx_var(b, ptx_f32(b, 0));
    return s;
}

/* Adds the strips from `first` to `end` (u32) in order, loading `together` of them at a time. Rows are
 * addressed relative to the first, which also replaces rows that do not exist. */
static void join_vectors(ptx_builder *b, const joined *j, row_sums *rows, ptx_val first, ptx_val end,
                         unsigned together)
{
    ptx_val parts[JOIN_ROWS_MAX][JOIN_TOGETHER][JOIN_COLUMNS];
    ptx_for(b, first, end, (int)together);
    ptx_val at = rows[0].at;
    for (unsigned i = 0; i < together; i++) {
        for (unsigned r = 0; r < j->rows; r++) {
            ptx_val from = r ? ptx_add(b, ptx_mul_wide(b, j->width[r], ptx_u32(b, 4 * r)), at) : at;
            ptx_ld_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_F32, from, 0, parts[r][i], JOIN_COLUMNS);
        }
        at = ptx_add(b, at, j->stride);
    }
    ptx_assign(b, rows[0].at, at);
    for (unsigned r = 0; r < j->rows; r++)
        for (unsigned i = 0; i < together; i++)
            for (unsigned c = 0; c < JOIN_COLUMNS; c++)
                ptx_assign(b, rows[r].sum[c], ptx_add(b, rows[r].sum[c], parts[r][i][c]));
    ptx_end_for(b);
}

/* The same one by one; columns that do not exist are skipped. A thread's first column always exists. */
static void join_few(ptx_builder *b, const joined *j, row_sums *s, ptx_val output)
{
    ptx_for(b, ptx_u32(b, 0), j->strips, 1);
    for (unsigned c = 0; c < JOIN_COLUMNS; c++) {
        if (c)
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, output, c), j->args->outputs));
        ptx_assign(b, s->sum[c], ptx_add(b, s->sum[c], ptx_ld_global(b, PTX_F32, s->at, (int)(4 * c))));
        if (c)
            ptx_end_if(b);
    }
    ptx_assign(b, s->at, ptx_add(b, s->at, j->stride));
    ptx_end_for(b);
}

static void join_all(ptx_builder *b, const joined *j, row_sums *rows, ptx_val output, bool whole)
{
    for (unsigned r = 0; r < j->rows; r++)
        rows[r] = sums_begin(b, j, r, output);
    if (whole) {
        ptx_val most = ptx_and(b, j->strips, -JOIN_TOGETHER);
        join_vectors(b, j, rows, ptx_u32(b, 0), most, JOIN_TOGETHER);
        join_vectors(b, j, rows, most, j->strips, 1);
        return;
    }
    for (unsigned r = 0; r < j->rows; r++)
        join_few(b, j, &rows[r], output);
}

/* A row without an expert has no sums: it gets a NaN, which survives everything that follows. */
static ptx_val sum_or_nan(ptx_builder *b, const joined *j, ptx_val sum)
{
    return j->known.kind == PTX_NOTHING ? sum : ptx_selp(b, sum, ptx_bits(b, PTX_F32, 0x7FFFFFFF), j->known);
}

static ptx_val y_address(ptx_builder *b, const epilogue *e)
{
    return ptx_at(b, e->args->all.operand[QDNN_OPERAND_Y], e->first, element_bytes(e->spec->epilogue.output));
}

static void store_row(ptx_builder *b, epilogue *e, const joined *j, unsigned r, const row_sums *a,
                      const row_sums *gate, bool whole)
{
    ptx_val values[JOIN_COLUMNS];
    if (r)
        ptx_if(b, j->exists[r]);
    e->first = ptx_mad(b, j->m[r], j->args->y_stride, j->n);
    for (unsigned c = 0; c < JOIN_COLUMNS; c++) {
        e->behind = (int)c;
        ptx_val column = c ? ptx_add(b, j->n, c) : j->n;
        const ptx_val pair[2] = {sum_or_nan(b, j, a->sum[c]),
                                 e->spec->epilogue.gated ? sum_or_nan(b, j, gate->sum[c]) : (ptx_val){0}};
        if (whole) {
            values[c] = epilogue_value(b, e, j->m[r], column, pair, j->expert);
            continue;
        }
        if (c)
            ptx_if(b, ptx_setp(b, PTX_LT, column, j->args->n));
        epilogue_store(b, e, j->m[r], column, pair, j->expert);
        if (c)
            ptx_end_if(b);
    }
    if (whole)
        emit_store_vector(b, e->spec->epilogue.output, y_address(b, e), 0, values, JOIN_COLUMNS);
    if (r)
        ptx_end_if(b);
}

/* `whole`: all columns exist and are aligned. */
static void join(ptx_builder *b, epilogue *e, const joined *j, bool whole)
{
    row_sums rows[2][JOIN_ROWS_MAX];
    join_all(b, j, rows[0], j->n, whole);
    if (e->spec->epilogue.gated)
        join_all(b, j, rows[1], ptx_add(b, j->n, j->args->n), whole);
    for (unsigned r = 0; r < j->rows; r++)
        store_row(b, e, j, r, &rows[0][r], &rows[1][r], whole);
}

/* Finds the expert of the (single) row; without one there are no strips. A negative index counts as a
 * large one. */
static void find_expert(ptx_builder *b, joined *j)
{
    const kernel_args *all = &j->args->all;
    ptx_val at = ptx_at(b, all->operand[QDNN_OPERAND_EXPERT_INDEX], j->m[0], 4);
    ptx_val index = ptx_cvt(b, PTX_U64, ptx_ld_global_nc(b, PTX_U32, at, 0));
    j->known = ptx_setp(b, PTX_LT, index, all->number[NUMBER_EXPERTS]);
    j->expert = ptx_selp(b, index, ptx_u64(b, 0), j->known);
    j->strips = ptx_selp(b, j->strips, ptx_u32(b, 0), j->known);
}

/* Whether sums and y can be read and written JOIN_COLUMNS at a time. A row has n outputs or, if gated, twice as many. */
static ptx_val can_use_vectors(ptx_builder *b, const kernel_spec *spec, const gemm_args *args)
{
    ptx_val rest = ptx_and(b, ptx_or(b, args->n, args->y_stride), ptx_u64(b, JOIN_COLUMNS - 1));
    return ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0),
                        emit_aligned(b, args->all.operand[QDNN_OPERAND_Y],
                                     JOIN_COLUMNS * element_bytes(spec->epilogue.output)));
}

static void emit_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    gemm_args args = gemm_declare(b, row, spec);
    epilogue e = epilogue_begin(b, spec, &args);
    e.keeps_zero = true; /* a sum that starts at +0 is never -0 */
    joined j = {.args = &args, .rows = (unsigned)spec->product.tile_rows};
    const int rows = (int)j.rows;
    j.n = ptx_shl(b, ptx_global_index64(b), ceil_log2(JOIN_COLUMNS));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, j.n, args.n));
    j.stride = ptx_shl(b, ptx_mul(b, args.m, args.outputs), 2);
    j.strips = ptx_cvt(b, PTX_U32, emit_divide_up(b, args.k, STRIP));
    ptx_val vectors = can_use_vectors(b, spec, &args);
    ptx_val all = ptx_cvt(b, PTX_U32, args.m);
    ptx_val m = ptx_for(b, ptx_mul(b, ptx_ctaid_y(b), rows), all, ptx_mul(b, ptx_sreg(b, "nctaid.y"), rows));
    for (unsigned r = 0; r < j.rows; r++) {
        ptx_val of_row = r ? ptx_add(b, m, (int)r) : m;
        j.m[r] = ptx_cvt(b, PTX_U64, of_row);
        j.exists[r] = r ? ptx_setp(b, PTX_LT, of_row, all) : (ptx_val){0};
        if (r)
            j.width[r] = ptx_selp(b, ptx_cvt(b, PTX_U32, args.outputs), ptx_u32(b, 0), j.exists[r]);
    }
    if (spec->product.grouped)
        find_expert(b, &j);
    ptx_uniform(b);
    ptx_if(b, vectors);
    join(b, &e, &j, true);
    ptx_else(b);
    join(b, &e, &j, false);
    ptx_end_if(b);
    ptx_end_for(b);
}

static unsigned join_outputs(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return STREAM_THREADS * JOIN_COLUMNS;
}

const gemm_kernel gemm_strips = {.block = STREAM_THREADS,
                                 .outputs = join_outputs,
                                 .emit = emit_join,
                                 .rows = 1,
                                 .rows_most = JOIN_ROWS_MAX,
                                 .takes_experts = true};
