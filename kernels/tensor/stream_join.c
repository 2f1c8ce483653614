/* From the sums of strips to y. They meet in shared memory, where x was: [part][row][column], 32 columns in
 * 128 bytes, in which groups of eight columns are swapped by the row, so that neither a warp that stores its
 * fragments nor one that reads neighbouring columns has bank conflicts. A thread then adds up, and completes,
 * JOIN_COLUMNS neighbouring columns of some rows.
 *
 * Gated pairs: the first tile of a warp has 16 columns of the first half, the second one of the other half,
 * which begins with column n of the weights. Units begin every 16 columns. If n is no multiple of 16, the
 * columns that belong to those of the first tile are in two units, and everything is computed twice:
 *
 *     first tile:   | 0 ... 15 |            second tile, first pass:  |   n - d ... n - d + 15 |
 *                                           second pass:                          | n - d + 16 ... |     d = n % 16 */
#include "kernels/gemm/epilogue.h"
#include "kernels/tensor/stream.h"

/* ---- Where sums lie ---- */

static unsigned columns_of(const stream *s)
{
    return s->warps * WARP_N;
}

/* The rows for which there is room at a time: with a table, there is only half of it. */
static unsigned rows_together(const stream *s)
{
    const unsigned most = s->chunk == CHUNK_BYTES ? ROWS_MAX : ROWS_MAX / 2;
    return s->rows < most ? s->rows : most;
}

static unsigned line_bytes(const stream *s)
{
    return s->warps * s->chunk;
}

/* Stores the sums of rows [first, first + rows_together). Rows 2t and 2t + 1 of each eight are in lanes t; if the block has fewer
 * than eight rows, some are in none. */
static void put_sums(ptx_builder *b, const stream *s, ptx_val sums[TILES][ROWS_MAX / 8][4], unsigned first)
{
    const unsigned rows = rows_together(s);
    ptx_val line = ptx_shl(b, s->t, 1);
    if (s->parts > 1)
        line = ptx_mad(b, s->part, (int)rows, line);
    ptx_val at = ptx_mad(b, line, (int)line_bytes(s), s->x_shared), columns[COLUMNS];
    at = ptx_mad(b, s->part_warp, (int)s->chunk, at);
    at = ptx_add(b, at, ptx_mad(b, s->t, 32, ptx_shl(b, s->g, 2)));
    for (unsigned j = 0; j < COLUMNS; j++)
        columns[j] = j ? ptx_xor(b, at, (int)(32 * j)) : at;
    if (s->rows < 8)
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_shl(b, s->t, 1), (int)s->rows));
    for (unsigned i = first / 8; i < s->m_tiles && 8 * i < first + rows; i++)
        for (unsigned r = 0; r < 2 && r < s->rows; r++)
            for (unsigned j = 0; j < COLUMNS; j++)
                ptx_st_shared(b, columns[j], (int)((8 * i - first + r) * line_bytes(s)),
                              sums[j / 2][i][2 * (j % 2) + r]);
    if (s->rows < 8)
        ptx_end_if(b);
}

/* The place of a column of a line (both u32), and of those behind it up to the next multiple of eight. */
static ptx_val place(ptx_builder *b, const stream *s, ptx_val line, ptx_val column)
{
    ptx_val at = ptx_mad(b, line, (int)line_bytes(s), s->x_shared);
    at = ptx_mad(b, ptx_shr(b, column, 5), (int)s->chunk, at);
    ptx_val swapped = ptx_xor(b, ptx_and(b, column, 31), ptx_shl(b, ptx_bfe(b, line, 1, 2), 3));
    return ptx_mad(b, swapped, 4, at);
}

/* ---- Rounds of several parts ---- */

static unsigned join_vectors(const stream *s)
{
    return s->rows * columns_of(s) / JOIN_COLUMNS;
}

static void begin_if_joins(ptx_builder *b, const stream *s)
{
    if (join_vectors(s) < STREAM_THREADS)
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_tid_x(b), (int)join_vectors(s)));
}

static void end_if_joins(ptx_builder *b, const stream *s)
{
    if (join_vectors(s) < STREAM_THREADS)
        ptx_end_if(b);
}

/* Vector i of a thread in the line of its row. */
static ptx_val vector_place(ptx_builder *b, const stream *s, unsigned i)
{
    const unsigned of_row = columns_of(s) / JOIN_COLUMNS;
    ptx_val v = ptx_add(b, ptx_tid_x(b), (int)(i * STREAM_THREADS)), row = ptx_shr(b, v, ceil_log2(of_row));
    return place(b, s, row, ptx_mul(b, ptx_and(b, v, (int)of_row - 1), JOIN_COLUMNS));
}

void stream_join_begin(ptx_builder *b, stream *s)
{
    const unsigned vectors = join_vectors(s);
    s->n_joined = s->parts == 1 ? 0 : vectors < STREAM_THREADS ? 1 : vectors / STREAM_THREADS;
    for (unsigned i = 0; i < s->n_joined; i++)
        for (unsigned c = 0; c < JOIN_COLUMNS; c++)
            s->joined[i][c] = ptx_var(b, ptx_f32(b, 0));
    for (unsigned q = 0; q < TILES && s->parts == 1; q++)
        for (unsigned i = 0; i < s->m_tiles; i++)
            for (unsigned c = 0; c < 4; c++)
                s->running[q][i][c] = ptx_var(b, ptx_f32(b, 0));
}

static void add_in_registers(ptx_builder *b, stream *s)
{
    for (unsigned q = 0; q < TILES; q++)
        for (unsigned i = 0; i < s->m_tiles; i++)
            for (unsigned c = 0; c < 4; c++) {
                ptx_into(b, s->running[q][i][c]);
                ptx_add(b, s->running[q][i][c], s->sums[q][i][c]);
            }
}

void stream_join_round(ptx_builder *b, stream *s)
{
    if (s->parts == 1) {
        add_in_registers(b, s);
        return;
    }
    ptx_syncthreads(b); /* until x is no longer read */
    put_sums(b, s, s->sums, 0);
    ptx_syncthreads(b);
    begin_if_joins(b, s);
    for (unsigned i = 0; i < s->n_joined; i++) {
        ptx_val at = vector_place(b, s, i), sums[PARTS_MAX][JOIN_COLUMNS];
        for (unsigned p = 0; p < s->parts; p++)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, (int)(p * s->rows * line_bytes(s)),
                       sums[p], JOIN_COLUMNS);
        for (unsigned p = 0; p < s->parts; p++)
            for (unsigned c = 0; c < JOIN_COLUMNS; c++) {
                ptx_into(b, s->joined[i][c]);
                ptx_add(b, s->joined[i][c], sums[p][c]);
            }
    }
    end_if_joins(b, s);
    ptx_syncthreads(b);
}

/* ---- y ---- */

unsigned stream_outputs(const kernel_spec *spec)
{
    return STREAM_WARPS * WARP_N / (unsigned)spec->product.split / (spec->epilogue.gated ? 2 : 1);
}

ptx_val stream_gate_passes(ptx_builder *b, const stream *s)
{
    ptx_val is_apart = ptx_setp(b, PTX_NE, ptx_and(b, s->args.n, ptx_u64(b, UNIT_N - 1)), ptx_u64(b, 0));
    return ptx_selp(b, ptx_u32(b, 2), ptx_u32(b, 1), is_apart);
}

/* What completing a row of sums takes. */
typedef struct finishing {
    epilogue e;
    ptx_val n0, n; /* u32: the block's first column of y; the columns of y */
    ptx_val shift; /* u32, if gated: from a column's place in the first tiles to that in the second ones */
} finishing;

/* Whether y can be written JOIN_COLUMNS columns at a time. */
static ptx_val can_use_vectors(ptx_builder *b, const stream *s)
{
    const int least = s->is_gated && !s->is_stored ? UNIT_N : JOIN_COLUMNS;
    const unsigned bytes = JOIN_COLUMNS * element_bytes(s->spec->epilogue.output);
    ptx_val rest = ptx_or(b, ptx_and(b, s->args.n, ptx_u64(b, (uint64_t)least - 1)),
                          ptx_and(b, s->args.y_stride, ptx_u64(b, JOIN_COLUMNS - 1)));
    return ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0),
                        emit_aligned(b, s->args.all.operand[QDNN_OPERAND_Y], bytes));
}

/* A row without an expert has no sums: it gets a NaN, which survives everything that follows. */
static ptx_val sum_or_nan(ptx_builder *b, const stream *s, ptx_val sum)
{
    return s->spec->product.grouped ? row_tile_sum(b, &s->at, sum) : sum;
}

/* Loads the sums of `count` columns from `column` of a line on (both u32). */
static void load_sums(ptx_builder *b, const stream *s, ptx_val line, ptx_val column, unsigned count,
                      ptx_val *sums)
{
    ptx_val at = place(b, s, line, column);
    if (count == 1)
        sums[0] = ptx_ld_shared(b, PTX_F32, at, 0);
    else
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, 0, sums, (int)count);
}

/* The place of a column (u32) of the half `h` of gated pairs among all columns of the block. */
static ptx_val gated_place(ptx_builder *b, ptx_val column, unsigned h)
{
    ptx_val of_unit = ptx_and(b, column, UNIT_N - 1);
    ptx_val at = ptx_mad(b, ptx_shr(b, column, ceil_log2(UNIT_N)), WARP_N, of_unit);
    return h ? ptx_add(b, at, UNIT_N) : at;
}

/* Completes `count` columns from `column` on (u32, in the block) of a row (u32): of those in shared memory, and of the block. */
static void finish_columns(ptx_builder *b, const stream *s, finishing *f, ptx_val line, ptx_val row,
                           ptx_val column, unsigned count)
{
    ptx_val sums[2][JOIN_COLUMNS], values[JOIN_COLUMNS], has = {0}, m = ptx_cvt(b, PTX_U64, row);
    const kernel_spec *spec = s->spec;
    load_sums(b, s, line, s->is_gated ? gated_place(b, column, 0) : column, count, sums[0]);
    if (s->is_gated)
        load_sums(b, s, line, gated_place(b, ptx_add(b, column, f->shift), 1), count, sums[1]);
    if (spec->product.grouped) {
        has = row_tile_has(b, &s->at, m);
        m = row_tile_row(b, &s->at, m, has);
    } else {
        m = ptx_add(b, m, ptx_cvt(b, PTX_U64, s->m0));
    }
    ptx_val n = ptx_cvt(b, PTX_U64, ptx_add(b, f->n0, column));
    f->e.first = ptx_mad(b, m, s->args.y_stride, n);
    for (unsigned c = 0; c < count; c++) {
        f->e.behind = (int)c;
        const ptx_val pair[2] = {sum_or_nan(b, s, sums[0][c]),
                                 s->is_gated ? sum_or_nan(b, s, sums[1][c]) : (ptx_val){0}};
        values[c] = epilogue_value(b, &f->e, m, c ? ptx_add(b, n, c) : n, pair, s->at.expert);
    }
    ptx_val y =
        ptx_at(b, s->args.all.operand[QDNN_OPERAND_Y], f->e.first, element_bytes(spec->epilogue.output));
    if (count == 1)
        emit_store(b, spec->epilogue.output, y, 0, values[0]);
    else
        emit_store_vector(b, spec->epilogue.output, y, 0, values, count);
}

/* Whether this pass completes a column (u32) of the block: the first one those whose sums are there, the second one the others. */
static ptx_val is_of_pass(ptx_builder *b, const stream *s, const finishing *f, ptx_val column)
{
    ptx_val place = ptx_add(b, column, ptx_and(b, f->n, UNIT_N - 1));
    return ptx_setp(b, PTX_EQ, ptx_shr(b, place, ceil_log2(stream_outputs(s->spec))), s->gate_pass);
}

/* Completes rows [first, first + rows_together), `count` columns at a time. */
static void finish_rows(ptx_builder *b, const stream *s, finishing *f, unsigned first, unsigned count)
{
    const unsigned of_row = stream_outputs(s->spec) / count;
    ptx_val rows = ptx_sub(b, s->rows_x, s->m0), tid = ptx_tid_x(b), exists;
    if (first)
        rows = ptx_sub(b, ptx_max(b, rows, ptx_u32(b, first)), (int)first);
    rows = ptx_min(b, rows, ptx_u32(b, rows_together(s)));
    ptx_val column = ptx_mul(b, ptx_and(b, tid, (int)of_row - 1), (int)count);
    exists = ptx_setp(b, PTX_LT, ptx_add(b, f->n0, column), f->n);
    if (s->is_gated && !s->is_stored && count == 1)
        exists = ptx_and(b, exists, is_of_pass(b, s, f, column));
    ptx_if(b, exists);
    ptx_rolled(b);
    ptx_val line = ptx_for(b, ptx_shr(b, tid, ceil_log2(of_row)), rows, (int)(STREAM_THREADS / of_row));
    finish_columns(b, s, f, line, first ? ptx_add(b, line, (int)first) : line, column, count);
    ptx_end_for(b);
    ptx_end_if(b);
}

/* Puts complete sums where finish_rows expects them. */
static void stage_complete(ptx_builder *b, stream *s, unsigned first)
{
    ptx_syncthreads(b); /* until nothing there is read any more */
    if (s->parts == 1) {
        put_sums(b, s, s->running, first);
    } else {
        begin_if_joins(b, s);
        for (unsigned i = 0; i < s->n_joined; i++)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, vector_place(b, s, i), 0, s->joined[i],
                       JOIN_COLUMNS);
        end_if_joins(b, s);
    }
    ptx_syncthreads(b);
}

void stream_finish(ptx_builder *b, stream *s)
{
    finishing f = {.e = epilogue_begin(b, s->spec, &s->args), .n = ptx_cvt(b, PTX_U32, s->args.n)};
    f.e.keeps_zero = true; /* a sum that starts at +0 is never -0 */
    f.n0 = ptx_mul(b, ptx_ctaid_x(b), (int)stream_outputs(s->spec));
    f.shift = ptx_u32(b, 0);
    if (s->is_gated && !s->is_stored)
        f.shift = ptx_sub(b, ptx_and(b, f.n, UNIT_N - 1), ptx_mul(b, s->gate_pass, UNIT_N));
    ptx_val vectors = can_use_vectors(b, s);
    for (unsigned first = 0; first < s->rows; first += rows_together(s)) {
        stage_complete(b, s, first);
        ptx_uniform(b);
        ptx_if(b, vectors);
        finish_rows(b, s, &f, first, JOIN_COLUMNS);
        ptx_else(b);
        finish_rows(b, s, &f, first, 1);
        ptx_end_if(b);
    }
}
