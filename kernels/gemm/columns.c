/* Products with weights [K, N] and a few rows of x, decoded in registers. Neighbouring threads have neighbouring columns; warp
 * w of a block has lanes 4w to 4w + 3, that is 32 consecutive k of every round, which are patches of the matrix (matrix.h). The
 * tree goes through shared memory. */
#include "kernels/gemm/columns.h"
#include "kernels/gemm/epilogue.h"

#include <stdio.h>

enum {
    WARPS = COLUMNS_WARPS,
    THREADS = WARPS * WARP,
    OF_THREAD = COLUMNS_LANES,
    STRETCH = COLUMNS_STRETCH,
    ROWS_MAX = COLUMNS_ROWS_MAX,
    WIDTH_MAX = COLUMNS_WIDTH_MAX,
    SUMS_MAX = 128, /* of a thread */
    WINDOW = 8      /* rounds of x in shared memory, times rows of x */
};

/* ---- Shape ---- */

/* Of plain weights: as much as a vector of f32 holds. */
static unsigned width_of(const coding *c)
{
    return format_is_plain(c->format) ? 4 : patch_width(c);
}

static unsigned step_of(const coding *c)
{
    return format_is_plain(c->format) ? CHUNK : patch_rows(c);
}

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    const coding c = {row->format, spec};
    return WARP * width_of(&c) / (spec->gated ? 2 : 1);
}

static bool refuse(char *error, size_t size, const char *reason)
{
    snprintf(error, size, "product columns %s", reason);
    return false;
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const coding c = {row->format, spec};
    if (block_layout_of(row->format) || spec->reduction != KERNEL_K_ROWS)
        return refuse(error, error_size, "takes weights [K, N]");
    if (!format_is_plain(row->format) && spec->layout != QDNN_LAYOUT_WORDS_INTERLEAVED &&
        !codes_are_direct(&c))
        return refuse(error, error_size, "takes codes of 2, 4 or 8 bits, or interleaved words");
    if (spec->tile_rows > ROWS_MAX || spec->tile_rows * OF_THREAD * width_of(&c) > SUMS_MAX)
        return refuse(error, error_size, "takes fewer rows at a time");
    return true;
}

/* Whole patches. */
static bool fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const kernel_spec normal = kernel_spec_normal(row, spec);
    const coding c = {row->format, &normal};
    const gemm_shape shape = gemm_shape_of(&normal, problem);
    const unsigned multiple = format_is_plain(row->format) ? 4 : matrix_columns_multiple(&c);
    return shape.k % step_of(&c) == 0 && shape.n % multiple == 0;
}

/* ---- Weights ---- */

/* A chunk as one patch, or part of one. */
typedef struct source {
    patch patch;
    unsigned first; /* row of it */
} source;

static void load_plain(ptx_builder *b, const columns *s, ptx_val row, column_values *out)
{
    const qdnnDataType_t type = s->w.coding.format->facts.storage;
    ptx_val stride = ptx_mul(b, s->w.matrix.columns, ptx_u64(b, element_bytes(type)));
    ptx_val at = ptx_at(b, ptx_mad(b, row, stride, s->w.codes), s->column, element_bytes(type));
    for (unsigned i = 0; i < CHUNK; i++) {
        emit_load_run(b, type, at, 0, s->width, out->at[i]);
        at = ptx_add(b, at, stride);
    }
}

static void decode_chunk(ptx_builder *b, const columns *s, source *from, ptx_val row, group_values *groups,
                         column_values *out)
{
    const quantized *q = &s->w.matrix.q;
    const bool by_chunk = matrix_rows_share_groups(s->spec, CHUNK);
    for (unsigned i = 0; i < CHUNK; i++) {
        if (!by_chunk)
            matrix_row_groups(b, &s->w.matrix, ptx_add(b, row, ptx_u64(b, i)), s->column, s->width, groups);
        patch_units(b, &s->w.matrix, &from->patch, from->first + i, out->at[i]);
        for (unsigned k = 0; k < s->width; k++)
            out->at[i][k] = group_decode(b, &q->coding, &q->side, &groups[k], out->at[i][k]);
    }
}

/* ---- Sums ---- */

static unsigned sums_of_lane(const columns *s)
{
    return s->pairs ? s->width / 2 : s->width;
}

/* Chunk `lane` of a row of x, from the warp's stretch of it; of pairs, each element twice as f32x2. */
static void load_x(ptx_builder *b, const columns *s, unsigned m, unsigned lane, ptx_val x_at, ptx_val *x)
{
    const unsigned bytes = 4 * s->x.copies, each = LOAD_BYTES / bytes;
    const unsigned at = m * s->x.rounds * s->x.round_bytes + lane * CHUNK * bytes;
    for (unsigned e = 0; e < CHUNK; e += each)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, s->pairs ? PTX_F32X2 : PTX_F32, x_at,
                   (int)(at + e * bytes), &x[e], (int)each);
}

void columns_add_chunk(ptx_builder *b, const columns *s, const column_values *w, unsigned lane, ptx_val x_at)
{
    for (unsigned m = 0; m < s->rows; m++) {
        ptx_val x[CHUNK];
        load_x(b, s, m, lane, x_at, x);
        for (unsigned i = 0; i < CHUNK; i++)
            for (unsigned k = 0; k < sums_of_lane(s); k++)
                ptx_assign(b, s->sums[m][lane][k], ptx_fma(b, w->at[i][k], x[i], s->sums[m][lane][k]));
    }
}

/* Pairs of what was decoded one by one. */
static void pair_up(ptx_builder *b, const columns *s, column_values *w)
{
    for (unsigned i = 0; i < CHUNK && s->pairs; i++)
        for (unsigned k = 0; k < s->width; k += 2)
            w->at[i][k / 2] = ptx_pack2(b, PTX_F32X2, w->at[i][k], w->at[i][k + 1]);
}

/* The chunks of lanes [from, end) of this warp, whose first row of the matrix is `row` (u64). */
static void add_lanes(ptx_builder *b, const columns *s, ptx_val row, unsigned from, unsigned end,
                      ptx_val x_at)
{
    patch patches[OF_THREAD];
    group_values groups[WIDTH_MAX];
    const unsigned of_patch = s->step / CHUNK;
    const bool is_plain = format_is_plain(s->w.coding.format);
    for (unsigned l = from; l < end && !is_plain; l += of_patch) {
        patches[l] = (patch){.rows = s->step,
                             .width = s->width,
                             .row = ptx_add(b, row, ptx_u64(b, l * CHUNK)),
                             .span = s->span,
                             .column = s->column};
        patch_load(b, &s->w.matrix, &patches[l]);
    }
    for (unsigned l = from; l < end; l++) {
        ptx_val at = ptx_add(b, row, ptx_u64(b, l * CHUNK));
        column_values w;
        if (is_plain) {
            load_plain(b, s, at, &w);
        } else {
            const bool shared = end - from == OF_THREAD && matrix_rows_share_groups(s->spec, STRETCH);
            if (matrix_rows_share_groups(s->spec, CHUNK) && (l == from || !shared))
                matrix_row_groups(b, &s->w.matrix, at, s->column, s->width, groups);
            source chunk = {patches[l / of_patch * of_patch], l % of_patch * CHUNK};
            decode_chunk(b, s, &chunk, at, groups, &w);
        }
        pair_up(b, s, &w);
        columns_add_chunk(b, s, &w, l, x_at);
    }
}

static ptx_val element_anywhere(ptx_builder *b, const columns *s, ptx_val row, ptx_val column)
{
    const matrix *m = &s->w.matrix;
    const qdnnDataType_t type = s->w.coding.format->facts.storage;
    if (format_is_plain(s->w.coding.format))
        return emit_load(b, type,
                         ptx_at(b, s->w.codes, ptx_mad(b, row, m->columns, column), element_bytes(type)), 0);
    group_values group = matrix_group(b, m, row, column);
    return element_decode(b, &m->q, &group, matrix_code(b, m, row, column));
}

/* Weights that may lie anywhere: one by one. */
static void add_lane_slowly(ptx_builder *b, const columns *s, ptx_val row, unsigned lane, ptx_val x_at)
{
    ptx_val i = ptx_for(b, ptx_u32(b, 0), CHUNK, 1), w[WIDTH_MAX];
    ptx_val at = ptx_add(b, row, ptx_cvt(b, PTX_U64, ptx_add(b, i, lane * CHUNK)));
    ptx_val x_of = ptx_mad(b, i, 4 * s->x.copies, x_at);
    for (unsigned k = 0; k < s->width; k++)
        w[k] = element_anywhere(b, s, at, ptx_add(b, s->column, ptx_u64(b, k)));
    for (unsigned r = 0; r < s->rows; r++) {
        const unsigned offset = r * s->x.rounds * s->x.round_bytes + lane * CHUNK * 4 * s->x.copies;
        ptx_val x =
            ptx_ld(b, PTX_SHARED, PTX_CACHE_DEFAULT, s->pairs ? PTX_F32X2 : PTX_F32, x_of, (int)offset);
        for (unsigned k = 0; k < sums_of_lane(s); k++) {
            ptx_val value = s->pairs ? ptx_pack2(b, PTX_F32X2, w[2 * k], w[2 * k + 1]) : w[k];
            ptx_assign(b, s->sums[r][lane][k], ptx_fma(b, value, x, s->sums[r][lane][k]));
        }
    }
    ptx_end_for(b);
}

/* ---- Passes over K ---- */

/* The lanes of a stretch that exist, patch by patch or one by one. */
static void add_some(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at, bool aligned)
{
    const unsigned step = s->step / CHUNK;
    for (unsigned l = 0; l < OF_THREAD; l += step) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, row, ptx_u64(b, l * CHUNK)), s->args.k));
        for (unsigned i = l; i < l + step && !aligned; i++)
            add_lane_slowly(b, s, row, i, x_at);
        if (aligned)
            add_lanes(b, s, row, l, l + step, x_at);
        ptx_end_if(b);
    }
}

void columns_add_rest(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at)
{
    add_some(b, s, row, x_at, true);
}

/* The stretch of this warp in a round. */
static void add_stretch(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at, bool aligned)
{
    if (!aligned) {
        add_some(b, s, row, x_at, false);
        return;
    }
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LE, ptx_add(b, row, ptx_u64(b, STRETCH)), s->args.k));
    add_lanes(b, s, row, 0, OF_THREAD, x_at);
    ptx_else(b);
    add_some(b, s, row, x_at, true);
    ptx_end_if(b);
}

static void pass(ptx_builder *b, const columns *s, bool aligned)
{
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->rounds, s->x.rounds);
    ptx_syncthreads(b);
    x_window_stage(b, &s->x, &s->at, first, false);
    ptx_syncthreads(b);
    ptx_val end = ptx_min(b, ptx_add(b, first, s->x.rounds), s->rounds);
    ptx_val x_at = ptx_var(b, ptx_mad(b, s->warp, STRETCH * 4 * s->x.copies, s->x.shared));
    ptx_val row = ptx_var(
        b, ptx_mad_wide(b, first, ptx_u32(b, ROUND), ptx_cvt(b, PTX_U64, ptx_mul(b, s->warp, STRETCH))));
    ptx_for(b, first, end, 1);
    add_stretch(b, s, row, x_at, aligned);
    ptx_assign(b, row, ptx_add(b, row, ptx_u64(b, ROUND)));
    ptx_assign(b, x_at, ptx_add(b, x_at, s->x.round_bytes));
    ptx_end_for(b);
    ptx_end_for(b);
}

/* ---- The tree ---- */

/* The sum of column `number` (u32) of the block: its lanes lie one after another in shared memory. */
static ptx_val sum_of_column(ptx_builder *b, const columns *s, ptx_val number)
{
    const unsigned stride = WARP * s->width * 4;
    ptx_val part[SUM_LANES], at = ptx_at(b, s->scratch, number, 4);
    for (unsigned i = 0; i < SUM_LANES; i++)
        part[i] = ptx_ld_shared(b, PTX_F32, at, (int)(i * stride));
    for (unsigned half = SUM_LANES / 2; half; half /= 2)
        for (unsigned i = 0; i < half; i++)
            part[i] = ptx_add(b, part[i], part[i + half]);
    return row_tile_sum(b, &s->at, part[0]);
}

static void put_lanes(ptx_builder *b, const columns *s, unsigned m)
{
    const unsigned stride = WARP * s->width * 4;
    ptx_val to = ptx_mad(b, s->warp, OF_THREAD * stride, s->scratch);
    to = ptx_mad(b, s->lane, s->width * 4, to);
    const unsigned each = s->pairs ? 2 : 4;
    for (unsigned l = 0; l < OF_THREAD; l++)
        for (unsigned k = 0; k < sums_of_lane(s); k += each)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(l * stride + LOAD_BYTES * (k / each)),
                       &s->sums[m][l][k], (int)each);
}

/* Row by row; a thread completes a column of y. */
static void finish(ptx_builder *b, const columns *s)
{
    const unsigned count = WARP * s->width / (s->spec->gated ? 2 : 1);
    epilogue e = epilogue_begin(b, s->spec, &s->args);
    ptx_val tid = ptx_tid_x(b), n = ptx_add(b, s->n, ptx_cvt(b, PTX_U64, tid));
    for (unsigned m = 0; m < s->rows; m++) {
        ptx_val number = ptx_u64(b, m), sums[2];
        ptx_syncthreads(b);
        put_lanes(b, s, m);
        ptx_syncthreads(b);
        ptx_val stored = ptx_setp_and(b, PTX_LT, tid, (int)count, row_tile_has(b, &s->at, number));
        stored = ptx_setp_and(b, PTX_LT, n, s->args.n, stored);
        ptx_if(b, stored);
        sums[0] = sum_of_column(b, s, tid);
        if (s->spec->gated)
            sums[1] = sum_of_column(b, s, ptx_add(b, tid, count));
        epilogue_store(b, &e, row_tile_row(b, &s->at, number, stored), n, sums, s->at.expert);
        ptx_end_if(b);
    }
}

/* ---- The kernel ---- */

/* Of a gated pair, the upper half of the warp has the columns of b. Columns that do not exist count as the last ones. */
static void begin_columns(ptx_builder *b, columns *s)
{
    const unsigned each = WARP * s->width / (s->spec->gated ? 2 : 1);
    s->n = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, each));
    s->span = s->n;
    ptx_val lane = s->lane, last = ptx_sub(b, s->args.n, ptx_u64(b, s->width));
    if (s->spec->gated)
        lane = ptx_and(b, lane, WARP / 2 - 1);
    s->column = ptx_min(b, ptx_add(b, s->n, ptx_cvt(b, PTX_U64, ptx_mul(b, lane, s->width))), last);
    if (s->spec->gated)
        s->column =
            ptx_selp(b, s->column, ptx_add(b, s->column, s->args.n), ptx_setp(b, PTX_LT, s->lane, WARP / 2));
}

static void begin_x(ptx_builder *b, columns *s, bool cheap)
{
    const unsigned copies = s->pairs ? 2 : 1,
                   rounds = WINDOW / (s->width == WIDTH_MAX ? copies : 1) / s->rows;
    const unsigned least = cheap ? 2 : 1;
    s->x = (x_window){.spec = s->spec,
                      .args = &s->args,
                      .rows = s->rows,
                      .rounds = rounds > least ? rounds : least,
                      .warps = WARPS,
                      .round_bytes = ROUND_BYTES * copies,
                      .copies = copies};
    for (unsigned e = 0; e < CHUNK; e++)
        s->x.offsets[e] = 4 * copies * e;
    s->x.shared = ptx_shared(b, "x_window", PTX_F32, s->x.rounds * s->rows * copies * ROUND, LOAD_BYTES);
    s->x.slot = ptx_mad(b, s->lane, CHUNK * 4 * copies, s->x.shared);
    s->x.chunk = ptx_cvt(b, PTX_U64, ptx_shl(b, s->lane, 3));
}

static ptx_val weights_are_aligned(ptx_builder *b, const columns *s)
{
    const coding *c = &s->w.coding;
    if (format_is_plain(c->format))
        return emit_aligned(b, s->w.codes, s->width * element_bytes(c->format->facts.storage));
    return matrix_groups_aligned(b, &s->w.matrix, s->width,
                                 emit_aligned(b, s->w.codes, patch_codes_align(c)));
}

static void clear_sums(ptx_builder *b, columns *s, bool made)
{
    for (unsigned m = 0; m < s->rows; m++)
        for (unsigned l = 0; l < OF_THREAD; l++)
            for (unsigned k = 0; k < sums_of_lane(s); k++) {
                ptx_val zero = s->pairs ? ptx_bits(b, PTX_F32X2, 0) : ptx_f32(b, 0);
                if (made)
                    ptx_assign(b, s->sums[m][l][k], zero);
                else
                    s->sums[m][l][k] = ptx_var(b, zero);
            }
}

static void aligned_pass(ptx_builder *b, columns *s)
{
    if (!words_are_cheap(&s->w.coding)) {
        pass(b, s, true);
        return;
    }
    ptx_val wrong = words_pass(b, s);
    if (wrong.kind == PTX_NOTHING)
        return;
    ptx_uniform(b);
    ptx_if(b, wrong);
    clear_sums(b, s, true);
    pass(b, s, true);
    ptx_end_if(b);
}

static void multiply(ptx_builder *b, columns *s)
{
    clear_sums(b, s, false);
    ptx_uniform(b);
    ptx_if(b, weights_are_aligned(b, s));
    aligned_pass(b, s);
    ptx_else(b);
    pass(b, s, false);
    ptx_end_if(b);
    finish(b, s);
}

static bool has_f32x2(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && (sm->number == 100 || sm->number == 103);
}

static void emit_columns(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const coding c = {row->format, spec};
    ptx_reqntid(b, THREADS, 1, 1);
    ptx_minnctapersm(b, 1);
    columns s = {.spec = spec,
                 .rows = (unsigned)spec->tile_rows,
                 .width = width_of(&c),
                 .step = step_of(&c),
                 .pairs = has_f32x2(b),
                 .args = gemm_declare(b, row, spec)};
    if (!spec->grouped)
        s.w = weights_begin(b, row, spec, &s.args);
    s.lane = ptx_laneid(b);
    s.warp = ptx_shr(b, ptx_tid_x(b), 5);
    s.scratch = ptx_shared(b, "lanes", PTX_F32, SUM_LANES * WARP * s.width, LOAD_BYTES);
    begin_x(b, &s, words_are_cheap(&c));
    begin_columns(b, &s);
    s.at = row_tiles_begin(b, spec, &s.args);
    if (spec->grouped) {
        s.args = row_tile_args(b, &s.at, &s.args);
        s.w = weights_begin(b, row, spec, &s.args);
    }
    ptx_val rounds = ptx_cvt(b, PTX_U32, ptx_shr(b, ptx_add(b, s.args.k, ptx_u64(b, ROUND - 1)), 8));
    s.rounds = row_tile_size(b, &s.at, rounds);
    multiply(b, &s);
    row_tiles_end(b);
}

const gemm_kernel gemm_columns = {.block = THREADS,
                                  .outputs = columns_of,
                                  .emit = emit_columns,
                                  .serves = serves,
                                  .fits = fits,
                                  .takes_experts = true};
