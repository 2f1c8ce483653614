/* The tile kernel: from shared memory to sums. */
#include "kernels/tensor/tile.h"

#include <stdio.h>

#include "kernels/tensor/w_fp8.h"
#include "kernels/tensor/x_tile.h"

/* X_BYTES: all stages of x. Together with two tiles of weights and the tables for decoding, they fit the
 * 64 KiB of sm_75. */
enum { X_BYTES = TILE_BYTES * 2, TABLE_BYTES = 1024, X_STAGES_MAX = 4 };

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* ---- Shapes ---- */

static unsigned most_of(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

tile_shape tile_shape_of(const kernel_row *row, const kernel_spec *spec)
{
    tile_shape s = {
        .m = (unsigned)spec->product.tile_rows, .k = w_tile_k(row), .parts = (unsigned)spec->product.split};
    s.n = TILE_WEIGHTS / s.k;
    const unsigned columns = s.n / s.parts, warps = TILE_WARPS / s.parts;
    s.warps_n = least_of(most_of(columns / 32, 1), least_of(warps, 4));
    s.warps_m = least_of(most_of(s.m / 16, 1), warps / s.warps_n);
    while (s.warps_m * s.warps_n < warps && columns / s.warps_n > 8)
        s.warps_n *= 2;
    s.apart = s.parts == TILE_WARPS && w_tile_is_apart(row, spec);
    return s;
}

unsigned tile_strip(const tile *t)
{
    return STRIP / t->form.unit_elements;
}

static unsigned computing_threads(const tile *t)
{
    return t->shape.parts * t->shape.warps_m * t->shape.warps_n * WARP;
}

static unsigned x_bytes(const kernel_row *row)
{
    const block_layout *blocks = block_layout_of(row->format);
    const bool has_table = blocks ? blocks->table != NULL : row->format->codec->open != NULL;
    return has_table ? X_BYTES - TABLE_BYTES : X_BYTES;
}

/* The most lines of x in a tile, which needs at least two stages of x. */
static unsigned lines_max(const kernel_row *row)
{
    unsigned m = 16;
    while (2 * 2 * (2 * m) * w_tile_k(row) <= x_bytes(row))
        m *= 2;
    return m;
}

uint64_t kernel_tile_rows(const kernel_row *row, uint64_t rows)
{
    uint64_t m = 1;
    while (m < rows && m < lines_max(row))
        m *= 2;
    return m;
}

/* Threads that read 32 neighbours in n, and the fragments of FP8 in lines along n, belong to one part. */
static unsigned columns_least(const kernel_row *row, const kernel_spec *spec)
{
    const bool along_n = (spec->product.reduction == KERNEL_K_COLUMNS) ==
                         (spec->stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED);
    if (block_layout_of(row->format) || !along_n)
        return spec->epilogue.gated ? 16 : 8;
    return spec->product.x_fp8    ? TILE_WEIGHTS / w_tile_k(row)
           : spec->epilogue.gated ? 2 * THREAD_WEIGHTS
                                  : THREAD_WEIGHTS;
}

/* x has lines for each part, and their sums fit where a tile of weights was. */
unsigned tile_parts_max(const kernel_row *row, const kernel_spec *spec, uint64_t rows)
{
    const unsigned n = TILE_WEIGHTS / w_tile_k(row);
    unsigned parts = 1;
    while (parts < PARTS_MAX && 2 * parts * rows <= lines_max(row) && 4 * rows * n <= TILE_BYTES &&
           n / (2 * parts) >= columns_least(row, spec))
        parts *= 2;
    return parts;
}

static unsigned x_stage_bytes(const tile_shape *shape)
{
    return 2 * shape->parts * shape->m * shape->k;
}

static unsigned x_stages(const kernel_row *row, const tile_shape *shape)
{
    return least_of(x_bytes(row) / x_stage_bytes(shape), X_STAGES_MAX);
}

static unsigned shared_bytes(const kernel_row *row, const kernel_spec *spec)
{
    tile_shape shape = tile_shape_of(row, spec);
    const unsigned loop = 2 * TILE_BYTES + x_stages(row, &shape) * x_stage_bytes(&shape),
                   end = 4 * shape.m * shape.n;
    return loop > end ? loop : end;
}

static unsigned outputs_of(const kernel_row *row, const kernel_spec *spec)
{
    const tile_shape shape = tile_shape_of(row, spec);
    return shape.n / shape.parts / (spec->epilogue.gated ? 2 : 1);
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    if (spec->data != QDNN_DATA_F16 && spec->data != QDNN_DATA_BF16) {
        snprintf(error, error_size, "data is f32; product tile takes x in f16 or bf16");
        return false;
    }
    if (spec->product.x_fp8 && !fp8_serves(row, spec, error, error_size))
        return false;
    const uint64_t m = spec->product.tile_rows, parts = spec->product.split;
    if (m > lines_max(row) || (m & (m - 1)) != 0) {
        snprintf(error, error_size,
                 "tile_rows is %llu; product tile of this format takes powers of two from 1 to %u",
                 (unsigned long long)m, lines_max(row));
        return false;
    }
    if (parts <= tile_parts_max(row, spec, m))
        return true;
    snprintf(error, error_size,
             "split is %llu; product tile of this format takes up to %u with tile_rows %llu",
             (unsigned long long)parts, tile_parts_max(row, spec, m), (unsigned long long)m);
    return false;
}

/* ---- Sums ---- */

static tile_sums sums_zero(ptx_builder *b, const tile_shape *s)
{
    tile_sums sums = {.fragments_m = most_of(s->m / s->warps_m / 16, 1),
                      .fragments_n = s->n / s->parts / s->warps_n / 8};
    for (unsigned i = 0; i < sums.fragments_m; i++)
        for (unsigned j = 0; j < sums.fragments_n; j++)
            for (unsigned c = 0; c < 4; c++)
                sums.at[i][j][c] = ptx_var(b, ptx_f32(b, 0));
    return sums;
}

/* Adds the strip's sum to that of the strips before it; the next starts at +0. (Starting from +0, a sum of
 * sums is never -0.) */
static void join_strip(ptx_builder *b, tile *t)
{
    for (unsigned i = 0; i < t->part.fragments_m; i++)
        for (unsigned j = 0; j < t->part.fragments_n; j++)
            for (unsigned c = 0; c < 4; c++) {
                ptx_val sum = t->sums.at[i][j][c], part = t->part.at[i][j][c];
                ptx_into(b, sum);
                ptx_add(b, sum, part);
                ptx_assign(b, part, ptx_f32(b, 0));
            }
}

/* ---- Fragments ---- */

/* The addresses that a lane passes to ldmatrix, in bytes from the start of a tile of x or w. */
typedef struct lane_places {
    ptx_val x[STEPS_MAX], w[STEPS_MAX]; /* for each step of 16 k: rows of x; w in lines along k */
    ptx_val w_lines[FRAGMENTS_MAX];     /* lines along n, also of FP8: for each pair of fragments */
} lane_places;

/* Moving on by two pieces flips bits of the swizzled place, in multiples of 32 bytes. */
static void step_places(ptx_builder *b, const tile *t, ptx_val line, ptx_val piece, ptx_val *out)
{
    ptx_val first = ptx_mad(b, line, (int)t->shape.k * 2, ptx_shl(b, piece, 4));
    for (unsigned step = 0; step < t->shape.k / 16; step++)
        out[step] = step ? ptx_xor(b, first, (int)(32 * step)) : first;
}

static lane_places places_begin(ptx_builder *b, const tile *t)
{
    lane_places p = {0};
    ptx_val lane = t->lane, low = ptx_and(b, lane, 7), upper = ptx_shr(b, lane, 4);
    ptx_val middle = ptx_and(b, ptx_shr(b, lane, 3), 1);
    ptx_val x_line = ptx_add(b, t->warp_x, ptx_and(b, lane, (int)least_of(t->shape.m, 16) - 1));
    step_places(b, t, x_line, ptx_xor(b, upper, t->shape.m < 8 ? ptx_and(b, x_line, 7) : low), p.x);
    if (fp8_along_n(t)) {
        for (unsigned j = 0; j < t->part.fragments_n; j += 2)
            p.w_lines[j / 2] = fp8_w_place(b, t, ptx_add(b, ptx_shr(b, t->warp_n, 4), (int)(j / 2)));
        return p;
    }
    if (t->w.along_k) {
        ptx_val line = ptx_add(b, t->warp_n, ptx_add(b, low, ptx_shl(b, upper, 3)));
        step_places(b, t, line, ptx_xor(b, middle, low), p.w);
        return p;
    }
    ptx_val line = ptx_mul(b, ptx_add(b, low, ptx_shl(b, middle, 3)), (int)t->shape.n * 2);
    for (unsigned j = 0; j < t->part.fragments_n; j += 2) {
        ptx_val piece = ptx_add(b, ptx_add(b, ptx_shr(b, t->warp_n, 3), upper), (int)j);
        p.w_lines[j / 2] = ptx_add(b, line, ptx_shl(b, ptx_xor(b, piece, low), 4));
    }
    return p;
}

typedef struct fragments {
    ptx_val x[FRAGMENTS_MAX][4]; /* rows 0-7 and 8-15 of k 0-7, then of k 8-15 */
    ptx_val w[FRAGMENTS_MAX][2]; /* k 0-7, k 8-15 */
} fragments;

/* Loads the fragments of step `step` (16 k) of the tile. */
static void load_fragments(ptx_builder *b, const tile *t, const lane_places *p, ptx_val x_tile,
                           ptx_val w_tile, unsigned step, fragments *f)
{
    const unsigned line_x = t->shape.k * 2, line_w = w_line_bytes(&t->w), fn = t->part.fragments_n;
    ptx_val x = ptx_add(b, x_tile, p->x[step]);
    for (unsigned i = 0; i < t->part.fragments_m; i++)
        ptx_ldmatrix(b, x, (int)(16 * i * line_x), f->x[i], 4);
    if (fp8_along_n(t)) {
        for (unsigned j = 0; j < fn; j += 2)
            fp8_w_fragments(b, ptx_add(b, w_tile, p->w_lines[j / 2]), step, f->w[j], f->w[j + 1]);
        return;
    }
    ptx_val w = {0};
    if (t->w.along_k)
        w = ptx_add(b, w_tile, p->w[step]);
    for (unsigned j = 0; j < fn; j += 2) {
        const int count = j + 1 < fn ? 4 : 2;
        ptx_val out[4];
        if (t->w.along_k)
            ptx_ldmatrix(b, w, (int)(8 * j * line_w), out, count);
        else
            ptx_ldmatrix_trans(b, ptx_add(b, w_tile, p->w_lines[j / 2]), (int)(16 * step * line_w), out,
                               count);
        for (int c = 0; c < count; c++)
            f->w[j + (unsigned)c / 2][c % 2] = out[c];
    }
}

static bool has_bytes(const tile *t)
{
    return t->form.unit_elements == 2;
}

static ptx_mma_id instruction_of(ptx_builder *b, const tile *t)
{
    return mma_instruction(b, t->spec, &t->form, t->storage, false);
}

static void multiply(ptx_builder *b, tile *t, const fragments *f)
{
    const ptx_mma_id id = instruction_of(b, t);
    const unsigned halves = 16 * t->form.unit_elements / (unsigned)ptx_mma_describe(id).k; /* for 16 units */
    for (unsigned h = 0; h < halves; h++)
        for (unsigned i = 0; i < t->part.fragments_m; i++)
            for (unsigned j = 0; j < t->part.fragments_n; j++)
                ptx_mma_into(b, id, t->part.at[i][j], &f->x[i][2 * h], &f->w[j][h], t->part.at[i][j]);
}

static void multiply_tile(ptx_builder *b, tile *t, const lane_places *p, ptx_val x_tile, ptx_val w_tile)
{
    for (unsigned step = 0; step < t->shape.k / 16; step++) {
        fragments f;
        load_fragments(b, t, p, x_tile, w_tile, step, &f);
        multiply(b, t, &f);
    }
}

/* ---- Sums in shared memory ---- */

/* Some warps may have nothing to compute. */
static void begin_computing(ptx_builder *b, const tile *t)
{
    if (computing_threads(t) == TILE_THREADS)
        return;
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LT, ptx_tid_x(b), (int)computing_threads(t)));
}

static void end_computing(ptx_builder *b, const tile *t)
{
    if (computing_threads(t) < TILE_THREADS)
        ptx_end_if(b);
}

/* Byte offset of S(m, n) of the tile in shared memory: rows of n, swizzled so that the four rows to which
 * half a warp stores (or the two rows of a quarter of it, where fragments hold every other column) are in
 * different banks. */
static ptx_val sum_place(ptx_builder *b, const tile *t, ptx_val m, ptx_val n)
{
    ptx_val other = ptx_shl(b, ptx_and(b, m, 1), 4);
    if (!fp8_along_n(t))
        other = ptx_xor(b, other, ptx_shl(b, ptx_and(b, m, 2), 2));
    ptx_val column = ptx_xor(b, n, other);
    return ptx_shl(b, ptx_mad(b, m, (int)t->shape.n, column), 2);
}

/* Two fragments hold the even and the odd columns of 16, so a lane has four neighbouring columns. */
static void stage_alternating_sums(ptx_builder *b, const tile *t, const tile_sums *sums)
{
    ptx_val row = ptx_add(b, t->warp_m, ptx_shr(b, t->lane, 2));
    ptx_val column = ptx_add(b, t->warp_n, ptx_shl(b, ptx_and(b, t->lane, 3), 2));
    for (unsigned j = 0; j < sums->fragments_n; j += 2) {
        ptx_val at = sum_place(b, t, row, j ? ptx_add(b, column, (int)(8 * j)) : column);
        at = ptx_add(b, t->w_shared, at);
        for (unsigned i = 0; i < sums->fragments_m; i++)
            for (unsigned c = 0; c < 4; c += 2) {
                const ptx_val *even = &sums->at[i][j][c], *odd = &sums->at[i][j + 1][c];
                const ptx_val four[4] = {even[0], odd[0], even[1], odd[1]};
                ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at, (int)((16 * i + 4 * c) * t->shape.n * 4),
                           four, 4);
            }
    }
}

/* Stores the sums of the tile's rows, from `to` on. */
static void stage_sums(ptx_builder *b, const tile *t, const tile_sums *sums, ptx_val to)
{
    const unsigned m = t->shape.m;
    if (fp8_along_n(t)) {
        stage_alternating_sums(b, t, sums);
        return;
    }
    begin_computing(b, t);
    ptx_val row = ptx_add(b, t->warp_m, ptx_shr(b, t->lane, 2));
    ptx_val column = ptx_add(b, t->warp_n, ptx_shl(b, ptx_and(b, t->lane, 3), 1));
    if (m < 8)
        ptx_if(b, ptx_setp(b, PTX_LT, row, (int)m));
    for (unsigned j = 0; j < sums->fragments_n; j++) {
        ptx_val at = ptx_add(b, to, sum_place(b, t, row, j ? ptx_add(b, column, (int)(8 * j)) : column));
        for (unsigned i = 0; i < sums->fragments_m; i++)
            for (unsigned c = 0; c < (m < 16 ? 2 : 4); c += 2) /* the swizzle is the same 8 rows further on */
                ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at, (int)((16 * i + 4 * c) * t->shape.n * 4),
                           &sums->at[i][j][c], 2);
    }
    if (m < 8)
        ptx_end_if(b);
    end_computing(b, t);
}

/* ---- Parts ---- */

/* Columns of y that a thread block completes: one per thread, in every few rows. */
static unsigned columns_of(const tile *t)
{
    return t->shape.n / t->shape.parts / (t->spec->epilogue.gated ? 2 : 1);
}

static unsigned rows_together(const tile *t)
{
    return TILE_THREADS / columns_of(t);
}

static unsigned halves_of(const tile *t)
{
    return t->spec->epilogue.gated ? 2 : 1;
}

static void joined_zero(ptx_builder *b, tile *t)
{
    for (unsigned h = 0; h < halves_of(t); h++)
        for (unsigned i = 0; i * rows_together(t) < t->shape.m; i++)
            t->joined[h][i] = ptx_var(b, ptx_f32(b, 0));
}

/* Where S(row i of the thread, its column) of a part lies; of a or b. */
static ptx_val joined_place(ptx_builder *b, const tile *t, unsigned i, unsigned part, unsigned half)
{
    const unsigned columns = columns_of(t), before = (part * halves_of(t) + half) * columns;
    ptx_val column = ptx_and(b, ptx_tid_x(b), (int)columns - 1),
            row = ptx_shr(b, ptx_tid_x(b), ceil_log2(columns));
    return sum_place(b, t, i ? ptx_add(b, row, (int)(i * rows_together(t))) : row,
                     before ? ptx_add(b, column, (int)before) : column);
}

/* Few rows may leave some threads without any. */
static void begin_if_joins(ptx_builder *b, const tile *t)
{
    if (rows_together(t) > t->shape.m)
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_tid_x(b), (int)(t->shape.m * columns_of(t))));
}

static void end_if_joins(ptx_builder *b, const tile *t)
{
    if (rows_together(t) > t->shape.m)
        ptx_end_if(b);
}

/* Adds the sums of the parts' strips to those of the strips before them, in order, by way of shared memory that no warp needs
 * any more after a barrier, nor again before the next. */
static void join_parts(ptx_builder *b, tile *t, ptx_val shared)
{
    ptx_syncthreads(b);
    stage_sums(b, t, &t->part, shared);
    for (unsigned i = 0; i < t->part.fragments_m; i++)
        for (unsigned j = 0; j < t->part.fragments_n; j++)
            for (unsigned c = 0; c < 4; c++)
                ptx_assign(b, t->part.at[i][j][c], ptx_f32(b, 0));
    ptx_syncthreads(b);
    begin_if_joins(b, t);
    for (unsigned h = 0; h < halves_of(t); h++)
        for (unsigned i = 0; i * rows_together(t) < t->shape.m; i++)
            for (unsigned p = 0; p < t->shape.parts; p++) {
                ptx_val at = ptx_add(b, shared, joined_place(b, t, i, p, h));
                ptx_val part = ptx_ld_shared(b, PTX_F32, at, 0);
                ptx_into(b, t->joined[h][i]);
                ptx_add(b, t->joined[h][i], part);
            }
    end_if_joins(b, t);
    if (t->shape.apart)
        ptx_syncthreads(b);
}

/* Puts the complete sums where the epilogue expects them. */
static void stage_joined(ptx_builder *b, const tile *t)
{
    begin_if_joins(b, t);
    for (unsigned h = 0; h < halves_of(t); h++)
        for (unsigned i = 0; i * rows_together(t) < t->shape.m; i++)
            ptx_st_shared(b, ptx_add(b, t->w_shared, joined_place(b, t, i, 0, h)), 0, t->joined[h][i]);
    end_if_joins(b, t);
}

/* How far the loop over k goes, in each part. */
static ptx_val extent_of_parts(ptx_builder *b, const tile *t)
{
    if (t->shape.parts == 1)
        return t->k;
    const int strip = (int)tile_strip(t), all = strip * (int)t->shape.parts;
    ptx_val rounds = ptx_shr(b, t->k, ceil_log2((unsigned)all)), rest = ptx_and(b, t->k, all - 1);
    return ptx_mad(b, rounds, strip, ptx_min(b, rest, strip));
}

/* What the loop left: a strip that is cut short. */
static void join_rest(ptx_builder *b, tile *t)
{
    if (t->shape.parts == 1) {
        join_strip(b, t);
        return;
    }
    ptx_val rest = ptx_and(b, extent_of_parts(b, t), (int)tile_strip(t) - 1);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_NE, rest, 0));
    join_parts(b, t, t->w_shared);
    ptx_end_if(b);
}

/* ---- The loop over k ---- */

static void begin_if_strip_ends(ptx_builder *b, const tile *t, ptx_val k0)
{
    const int strip = (int)tile_strip(t);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_and(b, k0, strip - 1), strip - (int)t->shape.k));
}

/* Multiplies the tile that begins k0 (u32) behind where its part began. */
static void compute(ptx_builder *b, tile *t, const lane_places *p, ptx_val k0, ptx_val x_tile, ptx_val w_tile)
{
    begin_computing(b, t);
    multiply_tile(b, t, p, x_tile, w_tile);
    if (t->shape.parts == 1) {
        begin_if_strip_ends(b, t, k0);
        join_strip(b, t);
        ptx_end_if(b);
    }
    end_computing(b, t);
    if (t->shape.parts == 1)
        return;
    begin_if_strip_ends(b, t, k0);
    join_parts(b, t, w_tile);
    ptx_end_if(b);
}

/* Of a tile in the loop: the k of its first part. */
static ptx_val first_k(ptx_builder *b, const tile *t, ptx_val k0)
{
    const unsigned strip = tile_strip(t);
    if (t->shape.parts == 1)
        return k0;
    return ptx_mad(b, ptx_shr(b, k0, ceil_log2(strip)), (int)(strip * (t->shape.parts - 1)), k0);
}

/* The buffer of the tile of weights at k0. */
static ptx_val buffer_at(ptx_builder *b, ptx_val k0, const tile *t)
{
    ptx_val odd = ptx_and(b, ptx_shr(b, k0, ceil_log2(t->shape.k)), 1);
    return ptx_mad(b, odd, TILE_BYTES, t->w_shared);
}

/* Decodes the tile of weights at k0 (u32) from what was fetched of it. */
static void put_weights(ptx_builder *b, const tile *t, const fetched *f, ptx_val k0, ptx_val w_tile)
{
    if (fp8_along_n(t))
        fp8_w_put(b, t, f, w_tile);
    else if (t->w.blocks && !w_blocks_are_fetched(t->w.blocks))
        w_blocks_put_any(b, &t->w, first_k(b, t, k0), w_tile, block_align(t->w.blocks));
    else
        w_tile_put(b, &t->w, f, w_tile);
}

static void fetch_weights(ptx_builder *b, const tile *t, ptx_val k0, fetched *f)
{
    if (fp8_along_n(t))
        fp8_w_fetch(b, t, k0, f);
    else
        w_tile_fetch(b, &t->w, first_k(b, t, k0), f);
}

/* The next tile of weights is loaded before the current one is multiplied, and decoded after that, into
 * the other buffer, which no warp reads any more. */
static void run_fetched(ptx_builder *b, tile *t, const lane_places *p)
{
    fetched f;
    x_tile x = x_tile_begin(b, t);
    fetch_weights(b, t, ptx_u32(b, 0), &f);
    put_weights(b, t, &f, ptx_u32(b, 0), t->w_shared);
    ptx_val k0 = ptx_for(b, ptx_u32(b, 0), extent_of_parts(b, t), (int)t->shape.k),
            next = ptx_add(b, k0, (int)t->shape.k);
    ptx_val here = x_tile_arrive(b, t, &x);
    if (t->shape.apart)
        ptx_syncwarp(b);
    else
        ptx_syncthreads(b);
    fetch_weights(b, t, next, &f);
    x_tile_next(b, t, &x);
    compute(b, t, p, k0, here, buffer_at(b, k0, t));
    put_weights(b, t, &f, next, buffer_at(b, next, t));
    ptx_end_for(b);
    x_tile_end(b, t);
}

static void run_slowly(ptx_builder *b, tile *t, const lane_places *p)
{
    ptx_val k0 = ptx_for(b, ptx_u32(b, 0), extent_of_parts(b, t), (int)t->shape.k), first = first_k(b, t, k0);
    if (has_bytes(t))
        fp8_w_put_slowly(b, t, first, t->w_shared);
    else
        w_tile_put_slowly(b, &t->w, first, t->w_shared);
    x_tile_slowly(b, t, first);
    ptx_syncthreads(b);
    compute(b, t, p, k0, t->x_shared, t->w_shared);
    ptx_syncthreads(b);
    ptx_end_for(b);
}

/* Computes S of the tile in registers. Rows without an expert read no weights. */
static void compute_sums(ptx_builder *b, tile *t)
{
    t->part = sums_zero(b, &t->shape);
    if (t->shape.parts == 1)
        t->sums = sums_zero(b, &t->shape);
    else
        joined_zero(b, t);
    if (t->spec->product.grouped) {
        ptx_uniform(b);
        ptx_if(b, t->at.known);
    }
    lane_places p = places_begin(b, t);
    ptx_val aligned = x_tile_aligned(b, t, fp8_along_n(t) ? fp8_w_aligned(b, t) : w_tile_aligned(b, &t->w));
    ptx_uniform(b);
    ptx_if(b, aligned);
    run_fetched(b, t, &p);
    ptx_else(b);
    run_slowly(b, t, &p);
    ptx_end_if(b);
    join_rest(b, t);
    if (t->spec->product.grouped)
        ptx_end_if(b);
}

/* ---- The end ---- */

/* A thread completes one column, in every few rows; neighbouring threads have neighbouring columns. */
static void finish(ptx_builder *b, const tile *t)
{
    const unsigned columns = columns_of(t);
    epilogue e = epilogue_begin(b, t->spec, &t->args);
    ptx_syncthreads(b);
    if (t->shape.parts == 1)
        stage_sums(b, t, &t->sums, t->w_shared);
    else
        stage_joined(b, t);
    ptx_syncthreads(b);
    ptx_val column = ptx_and(b, ptx_tid_x(b), (int)columns - 1), n = ptx_add(b, t->n0, column),
            sums[2] = {{0}};
    ptx_val wide_n = ptx_cvt(b, PTX_U64, n);
    ptx_val rows = ptx_cvt(b, PTX_U32, ptx_min(b, t->at.count, ptx_u64(b, t->shape.m)));
    ptx_if(b, ptx_setp(b, PTX_LT, n, t->n));
    ptx_val row =
        ptx_for(b, ptx_shr(b, ptx_tid_x(b), ceil_log2(columns)), rows, (int)(TILE_THREADS / columns));
    for (unsigned i = 0; i < (t->spec->epilogue.gated ? 2 : 1); i++) {
        ptx_val place = sum_place(b, t, row, i ? ptx_add(b, column, (int)columns) : column);
        sums[i] = ptx_ld_shared(b, PTX_F32, ptx_add(b, t->w_shared, place), 0);
        if (t->spec->product.grouped) /* a NaN survives everything that follows */
            sums[i] = ptx_selp(b, sums[i], ptx_bits(b, PTX_F32, 0x7FFFFFFF), t->at.known);
    }
    ptx_val local = ptx_cvt(b, PTX_U64, row), has = {0};
    if (t->spec->product.grouped)
        has = row_tile_has(b, &t->at, local);
    epilogue_store(b, &e, row_tile_row(b, &t->at, local, has), wide_n, sums, t->at.expert);
    ptx_end_for(b);
    ptx_end_if(b);
}

/* The weights of all rows, or of the tile's expert. */
static void begin_weights(ptx_builder *b, const kernel_row *row, tile *t)
{
    const w_shape shape = {.data = t->spec->data,
                           .k_in_columns = has_bytes(t) || t->spec->product.reduction == KERNEL_K_COLUMNS,
                           .gated = t->spec->epilogue.gated,
                           .parts = t->shape.parts,
                           .strip = tile_strip(t),
                           .n0 = t->n0,
                           .n = t->n,
                           .k = t->k,
                           .room = ptx_target(b)->shared_block - shared_bytes(row, t->spec)};
    const gemm_args args = row_tile_args(b, &t->at, &t->args);
    t->w = w_tile_begin(b, has_bytes(t) ? fp8_pairs_row() : row, t->spec, &args.all, &shape);
}

/* Warps lie side by side in n, then in m, then in parts. */
static void begin_warp(ptx_builder *b, tile *t, ptx_val warp)
{
    const tile_shape *s = &t->shape;
    ptx_val over_n = ptx_shr(b, warp, ceil_log2(s->warps_n));
    t->warp_n = ptx_mul(b, ptx_and(b, warp, (int)s->warps_n - 1), (int)(s->n / s->parts / s->warps_n));
    if (s->parts == 1) {
        t->warp_m = t->warp_x = ptx_mul(b, over_n, (int)(s->m / s->warps_m));
        return;
    }
    ptx_val part = ptx_shr(b, over_n, ceil_log2(s->warps_m));
    t->warp_m = ptx_mul(b, ptx_and(b, over_n, (int)s->warps_m - 1), (int)(s->m / s->warps_m));
    t->warp_n = ptx_mad(b, part, (int)(s->n / s->parts), t->warp_n);
    t->warp_x = ptx_mad(b, part, (int)s->m, t->warp_m);
}

static void emit_tile(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, spec->product.split > 1 ? 2 : 1); /* otherwise ptxas stops at 64 registers */
    tile t = {.spec = spec, .shape = tile_shape_of(row, spec), .args = gemm_declare(b, row, spec)};
    const tile_shape *s = &t.shape;
    t.form = x_form_of(b, spec);
    t.storage = row->format->facts.storage;
    if (!ptx_mma_has(ptx_target(b), instruction_of(b, &t)))
        ptx_fail(b, "%s has no tensor cores for bf16; x must be f16", ptx_target(b)->name);
    t.x = t.args.all.operand[QDNN_OPERAND_X];
    t.n = ptx_cvt(b, PTX_U32, t.args.n);
    t.k = ptx_cvt(b, PTX_U32, t.args.k);
    if (has_bytes(&t))
        t.k = ptx_shr(b, ptx_add(b, t.k, 1), 1);
    t.lane = ptx_laneid(b);
    t.n0 = ptx_mul(b, ptx_ctaid_x(b), (int)outputs_of(row, spec));
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5);
    begin_warp(b, &t, warp);
    t.w_shared = ptx_shared_dynamic(b, 128);
    t.x_shared = ptx_add(b, t.w_shared, 2 * TILE_BYTES);
    t.x_stages = t.form.is_async ? x_stages(row, s) : 2;
    if (!spec->product.grouped)
        begin_weights(b, row, &t);
    t.at = row_tiles_begin(b, spec, &t.args);
    if (spec->product.grouped)
        begin_weights(b, row, &t);
    compute_sums(b, &t);
    finish(b, &t);
    ptx_syncthreads(b);
    row_tiles_end(b);
}

const gemm_kernel gemm_tile = {.block = TILE_THREADS,
                               .outputs = outputs_of,
                               .shared = shared_bytes,
                               .emit = emit_tile,
                               .serves = serves,
                               .takes_experts = true};
