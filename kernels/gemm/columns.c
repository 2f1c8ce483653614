/* Products with weights [K, N] and a few rows of x, decoded in registers. Neighbouring threads have
 * neighbouring columns; warp w of a thread block has lanes 4w to 4w + 3, that is a stretch of 32
 * consecutive k in every round, which is read in patches of the matrix (matrix.h). Each thread has all
 * four lanes, or groups of threads have two or one each: as many as leave registers for the rows of x.
 * Lanes are joined through shared memory. */
#include "kernels/gemm/columns.h"
#include "kernels/gemm/epilogue.h"

#include <math.h>
#include <stdio.h>

enum {
    THREADS = COLUMNS_WARPS * WARP,
    ROWS_MAX = COLUMNS_ROWS_MAX,
    WIDTH_MAX = COLUMNS_WIDTH_MAX,
    SUMS_MAX = 128,                   /* sums per thread */
    WINDOW = 8,                       /* rounds of x in shared memory, times rows of x */
    VECTOR_BYTES = WARP * LOAD_BYTES, /* x: one vector of every chunk of a round */
    /* Bytes between the planes of sums, so that their columns lie in different banks. */
    PLANE_PAD = 64
};

/* ---- Shape ---- */

/* Columns per thread. Plain weights: as many as a vector of f32 holds; also with many rows of x, for lack
 * of registers. */
static unsigned width_of(const coding *c)
{
    return format_is_plain(c->format) || c->spec->product.tile_rows > 8 ? 4
           : codes_are_cheap(c)                                         ? WIDTH_MAX
           : patch_groups_are_wide(c)                                   ? 4
                                                                        : patch_width(c);
}

/* Rows of the matrix that are loaded together: a patch; only a part of it with many rows of x, for lack of
 * registers. */
static unsigned step_of(const coding *c)
{
    return format_is_plain(c->format) || c->spec->product.tile_rows > 8 ? CHUNK : patch_rows(c);
}

/* Lanes per thread. Codes along N: few lanes give many thread blocks, which read whole sectors. Otherwise
 * as many as there are registers for. */
static unsigned lanes_of(const coding *c)
{
    const unsigned rows = (unsigned)c->spec->product.tile_rows, width = width_of(c),
                   least = step_of(c) / CHUNK;
    if (codes_are_cheap(c))
        return c->spec->epilogue.gated && rows * 2 * width <= SUMS_MAX / 4 ? 2 : 1;
    const bool is_crowded = !format_is_plain(c->format) && (width == WIDTH_MAX || rows > 8);
    unsigned lanes = COLUMNS_LANES;
    while (lanes > least && rows * lanes * width > (is_crowded ? SUMS_MAX / 2 : SUMS_MAX))
        lanes /= 2;
    return lanes;
}

static unsigned across_of(const coding *c)
{
    return WARP * lanes_of(c) / COLUMNS_LANES;
}

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    const coding c = {row->format, spec};
    return across_of(&c) * width_of(&c) / (spec->epilogue.gated ? 2 : 1);
}

static unsigned shared_of(const kernel_row *row, const kernel_spec *spec)
{
    const coding c = {row->format, spec};
    return codes_are_cheap(&c) ? codes_dynamic_bytes(&c) : 0;
}

static bool refuse(char *error, size_t size, const char *reason)
{
    snprintf(error, size, "product columns %s", reason);
    return false;
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const coding c = {row->format, spec};
    if (block_layout_of(row->format) || spec->product.reduction != KERNEL_K_ROWS)
        return refuse(error, error_size, "takes weights [K, N]");
    if (!format_is_plain(row->format) && spec->stored.layout != QDNN_LAYOUT_WORDS_INTERLEAVED &&
        !codes_are_direct(&c))
        return refuse(error, error_size, "takes codes of 2, 4 or 8 bits, or interleaved words");
    if (spec->product.tile_rows * lanes_of(&c) * width_of(&c) > SUMS_MAX)
        return refuse(error, error_size, "takes fewer rows at a time");
    return true;
}

/* Needs whole patches, and rows that end with a whole word; rounds of K are counted in 32 bits. */
static bool fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const coding c = {row->format, spec};
    const kernel_shape shape = kernel_shape_of(spec, problem);
    const bool by_fours =
        format_is_plain(row->format) || spec->stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED;
    const bool rows_are_whole =
        spec->stored.layout != QDNN_LAYOUT_WORDS_ROWS || shape.outputs * row->format->facts.bits % 32 == 0;
    const unsigned patch = format_is_plain(row->format) ? CHUNK : patch_rows(&c);
    return shape.k % patch == 0 && shape.n % (by_fours ? 4 : WIDTH_MAX) == 0 && rows_are_whole &&
           shape.k < UINT64_C(1) << 31;
}

/* ---- Weights ---- */

static void load_plain(ptx_builder *b, const columns *s, ptx_val row, column_values *out)
{
    const qdnnDataType_t type = s->w.coding.format->facts.storage;
    ptx_val stride = ptx_mul(b, s->w.matrix.columns, ptx_u64(b, element_bytes(type)));
    ptx_val at = ptx_at(b, ptx_mad(b, row, stride, s->w.codes), s->column, element_bytes(type));
    for (unsigned i = 0; i < s->together; i++) {
        emit_load_run(b, type, at, 0, s->width, out->at[i]);
        at = ptx_add(b, at, stride);
    }
}

/* Decodes rows of a patch from number `first` on; `row` (u64): the row of the matrix. */
static void decode_rows(ptx_builder *b, const columns *s, patch *from, unsigned first, ptx_val row,
                        group_values *groups, column_values *out)
{
    const quantized *q = &s->w.matrix.q;
    const bool by_chunk = matrix_rows_share_groups(s->spec, CHUNK);
    for (unsigned i = 0; i < s->together; i++) {
        if (!by_chunk)
            matrix_row_groups(b, &s->w.matrix, ptx_add(b, row, ptx_u64(b, i)), s->column, s->width, groups);
        patch_units(b, &s->w.matrix, from, first + i, out->at[i]);
        for (unsigned k = 0; k < s->width; k++)
            out->at[i][k] = group_decode(b, &q->coding, &q->side, &groups[k], out->at[i][k]);
    }
}

/* ---- Sums ---- */

static unsigned sums_of_lane(const columns *s)
{
    return s->pairs ? s->width / 2 : s->width;
}

/* x in shared memory: vectors of 16 bytes, first the first of every chunk, then the second ... A vector
 * holds four elements; in pairs, two elements twice. */
static unsigned in_vector(const columns *s)
{
    return 4 / s->x.copies;
}

ptx_val columns_x_begin(ptx_builder *b, const columns *s)
{
    return ptx_mad(b, s->first_lane, LOAD_BYTES, s->x.shared);
}

void columns_add_rows(ptx_builder *b, const columns *s, const column_values *w, unsigned lane, unsigned first,
                      ptx_val x_at)
{
    const unsigned each = in_vector(s), count = s->together < each ? s->together : each;
    for (unsigned m = 0; m < s->rows; m++) {
        ptx_val x[COLUMNS_TOGETHER];
        const unsigned at = m * s->x.rounds * s->x.round_bytes + lane * LOAD_BYTES;
        for (unsigned e = 0; e < s->together; e += count)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, s->pairs ? PTX_F32X2 : PTX_F32, x_at,
                       (int)(at + s->x.offsets[first + e]), &x[e], (int)count);
        for (unsigned i = 0; i < s->together; i++)
            for (unsigned k = 0; k < sums_of_lane(s); k++)
                ptx_assign(b, s->sums[m][lane][k], ptx_fma(b, w->at[i][k], x[i], s->sums[m][lane][k]));
    }
}

/* Packs weights that were decoded one by one into pairs. */
static void pair_up(ptx_builder *b, const columns *s, column_values *w)
{
    for (unsigned i = 0; i < s->together && s->pairs; i++)
        for (unsigned k = 0; k < s->width; k += 2)
            w->at[i][k / 2] = ptx_pack2(b, PTX_F32X2, w->at[i][k], w->at[i][k + 1]);
}

/* Adds the chunks of lanes [from, end) of this thread, whose first row of the matrix is `row` (u64). */
static void add_lanes(ptx_builder *b, const columns *s, ptx_val row, unsigned from, unsigned end,
                      ptx_val x_at)
{
    patch patches[COLUMNS_LANES];
    group_values groups[WIDTH_MAX];
    const unsigned of_patch = s->step / CHUNK;
    const bool is_plain = format_is_plain(s->w.coding.format);
    const bool shared = end - from == s->lanes && matrix_rows_share_groups(s->spec, s->lanes * CHUNK);
    for (unsigned l = from; l < end && !is_plain; l += of_patch) {
        patches[l] = (patch){.rows = s->step,
                             .width = s->width,
                             .row = ptx_add(b, row, ptx_u64(b, l * CHUNK)),
                             .span = s->n,
                             .column = s->column};
        patch_load(b, &s->w.matrix, &patches[l]);
    }
    for (unsigned k = from * CHUNK; k < end * CHUNK; k += s->together) {
        const unsigned l = k / CHUNK, first = k % CHUNK;
        ptx_val at = ptx_add(b, row, ptx_u64(b, k));
        column_values w;
        if (is_plain) {
            load_plain(b, s, at, &w);
        } else {
            if (first == 0 && matrix_rows_share_groups(s->spec, CHUNK) && (l == from || !shared))
                matrix_row_groups(b, &s->w.matrix, at, s->column, s->width, groups);
            patch *p = &patches[l / of_patch * of_patch];
            decode_rows(b, s, p, l % of_patch * CHUNK + first, at, groups, &w);
        }
        pair_up(b, s, &w);
        columns_add_rows(b, s, &w, l, first, x_at);
    }
}

/* Adds a lane of weights of any alignment, one by one. */
static void add_lane_slowly(ptx_builder *b, const columns *s, ptx_val row, unsigned lane, ptx_val x_at)
{
    const unsigned each = in_vector(s);
    ptx_val i = ptx_for(b, ptx_u32(b, 0), CHUNK, 1), w[WIDTH_MAX];
    ptx_val at = ptx_add(b, row, ptx_cvt(b, PTX_U64, ptx_add(b, i, lane * CHUNK)));
    ptx_val x_of = ptx_mad(b, ptx_shr(b, i, ceil_log2(each)), VECTOR_BYTES, x_at);
    x_of = ptx_mad(b, ptx_and(b, i, (int)each - 1), 4 * s->x.copies, x_of);
    for (unsigned k = 0; k < s->width; k++)
        w[k] = weights_element(b, &s->w, ptx_add(b, s->column, ptx_u64(b, k)), at);
    for (unsigned r = 0; r < s->rows; r++) {
        const unsigned offset = r * s->x.rounds * s->x.round_bytes + lane * LOAD_BYTES;
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

/* If all threads of a warp have the same lanes, they take the same branches. */
static void uniform(ptx_builder *b, const columns *s)
{
    if (s->lanes == COLUMNS_LANES)
        ptx_uniform(b);
}

/* Adds those of a thread's first lanes that exist, patch by patch or one by one. */
static void add_some(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at, unsigned lanes,
                     bool aligned)
{
    const unsigned step = s->step / CHUNK;
    for (unsigned l = 0; l < lanes; l += step) {
        uniform(b, s);
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, row, ptx_u64(b, l * CHUNK)), s->args.k));
        for (unsigned i = l; i < l + step && !aligned; i++)
            add_lane_slowly(b, s, row, i, x_at);
        if (aligned)
            add_lanes(b, s, row, l, l + step, x_at);
        ptx_end_if(b);
    }
}

/* Where K ends within the lanes, the last patch is missing: K and rows are multiples of a patch. */
void columns_add_rest(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at)
{
    add_some(b, s, row, x_at, s->lanes - s->step / CHUNK, true);
}

/* Adds the lanes of this thread in a round. */
static void add_stretch(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at, bool aligned)
{
    if (!aligned || s->lanes * CHUNK == s->step) {
        add_some(b, s, row, x_at, s->lanes, aligned);
        return;
    }
    uniform(b, s);
    ptx_if(b, ptx_setp(b, PTX_LE, ptx_add(b, row, ptx_u64(b, s->lanes * CHUNK)), s->args.k));
    add_lanes(b, s, row, 0, s->lanes, x_at);
    ptx_else(b);
    columns_add_rest(b, s, row, x_at);
    ptx_end_if(b);
}

static void pass(ptx_builder *b, const columns *s, bool aligned)
{
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->rounds, s->x.rounds);
    ptx_syncthreads(b);
    x_window_stage(b, &s->x, &s->at, first, false);
    ptx_syncthreads(b);
    ptx_val end = ptx_min(b, ptx_add(b, first, s->x.rounds), s->rounds);
    ptx_val x_at = ptx_var(b, columns_x_begin(b, s));
    ptx_val row = ptx_var(
        b, ptx_mad_wide(b, first, ptx_u32(b, ROUND), ptx_cvt(b, PTX_U64, ptx_mul(b, s->first_lane, CHUNK))));
    ptx_for(b, first, end, 1);
    add_stretch(b, s, row, x_at, aligned);
    ptx_assign(b, row, ptx_add(b, row, ptx_u64(b, ROUND)));
    ptx_assign(b, x_at, ptx_add(b, x_at, s->x.round_bytes));
    ptx_end_for(b);
    ptx_end_for(b);
}

/* ---- The tree ---- */

/* The lanes of all columns in shared memory, in planes of four columns per thread. */
static unsigned plane_bytes(const columns *s)
{
    return s->across * LOAD_BYTES + PLANE_PAD;
}

static unsigned lane_bytes(const columns *s)
{
    return s->width / 4 * plane_bytes(s);
}

/* The sum of column `number` (u32) of the block. */
static ptx_val sum_of_column(ptx_builder *b, const columns *s, ptx_val number)
{
    ptx_val thread = ptx_shr(b, number, ceil_log2(s->width));
    ptx_val at = ptx_at(b, ptx_mad(b, thread, LOAD_BYTES, s->scratch), ptx_and(b, number, 3), 4);
    if (s->width > 4)
        at = ptx_mad(b, ptx_and(b, ptx_shr(b, number, 2), (int)s->width / 4 - 1), plane_bytes(s), at);
    return row_tile_sum(b, &s->at, lanes_join_memory(b, at, 0, lane_bytes(s)));
}

static void put_lanes(ptx_builder *b, const columns *s, unsigned m)
{
    ptx_val to = ptx_mad(b, s->first_lane, (int)lane_bytes(s), ptx_mad(b, s->thread, LOAD_BYTES, s->scratch));
    const unsigned each = s->pairs ? 2 : 4;
    for (unsigned l = 0; l < s->lanes; l++)
        for (unsigned k = 0; k < sums_of_lane(s); k += each)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to,
                       (int)(l * lane_bytes(s) + k / each * plane_bytes(s)), &s->sums[m][l][k], (int)each);
}

/* Completes y row by row, each thread one column. */
static void finish(ptx_builder *b, const columns *s)
{
    const unsigned count = s->across * s->width / (s->spec->epilogue.gated ? 2 : 1);
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
        if (s->spec->epilogue.gated)
            sums[1] = sum_of_column(b, s, ptx_add(b, tid, count));
        epilogue_store(b, &e, row_tile_row(b, &s->at, number, stored), n, sums, s->at.expert);
        ptx_end_if(b);
    }
}

/* ---- The kernel ---- */

/* For gated pairs, the upper half of the threads has the columns of b. Columns that do not exist are
 * replaced by the last ones. */
ptx_val columns_of_thread(ptx_builder *b, const columns *s, ptx_val thread)
{
    const bool gated = s->spec->epilogue.gated;
    ptx_val number = gated ? ptx_and(b, thread, (int)s->across / 2 - 1) : thread;
    ptx_val last = ptx_sub(b, s->args.n, ptx_u64(b, s->width));
    ptx_val column = ptx_min(b, ptx_add(b, s->n, ptx_cvt(b, PTX_U64, ptx_mul(b, number, s->width))), last);
    if (!gated)
        return column;
    ptx_val is_first = ptx_setp(b, PTX_LT, thread, (int)s->across / 2);
    return ptx_selp(b, column, ptx_add(b, column, s->args.n), is_first);
}

static void begin_columns(ptx_builder *b, columns *s)
{
    const unsigned each = s->across * s->width / (s->spec->epilogue.gated ? 2 : 1);
    s->n = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, each));
    s->column = columns_of_thread(b, s, s->thread);
}

/* Allocates shared memory: statically, or from the dynamic memory if that holds no table. */
static ptx_val memory_of(ptx_builder *b, columns *s, const char *name, unsigned bytes)
{
    if (s->memory.kind == PTX_NOTHING)
        return ptx_shared(b, name, PTX_F32, bytes / 4, LOAD_BYTES);
    ptx_val at = ptx_add(b, s->memory, (int)s->memory_used);
    s->memory_used += bytes;
    return at;
}

static void begin_x(ptx_builder *b, columns *s, const coding *c)
{
    const unsigned copies = s->pairs ? 2 : 1, most = WINDOW / (s->width == WIDTH_MAX ? copies : 1) / s->rows;
    const unsigned least = words_are_cheap(c) ? 2 : 1, rounds = most > least ? most : least;
    s->x = (x_window){.spec = s->spec,
                      .args = &s->args,
                      .rows = s->rows,
                      .rounds = codes_are_cheap(c) ? codes_window(c, s->across, rounds) : rounds,
                      .warps = COLUMNS_WARPS,
                      .round_bytes = ROUND_BYTES * copies,
                      .copies = copies};
    for (unsigned e = 0; e < CHUNK; e++)
        s->x.offsets[e] = e / in_vector(s) * VECTOR_BYTES + e % in_vector(s) * 4 * copies;
    s->x.shared = memory_of(b, s, "x_window", s->x.rounds * s->rows * s->x.round_bytes);
    s->x.slot = ptx_mad(b, s->lane, LOAD_BYTES, s->x.shared);
    s->x.chunk = ptx_cvt(b, PTX_U64, ptx_shl(b, s->lane, 3));
    if (!codes_are_cheap(c) || !codes_x_exponent(c))
        return;
    s->x.shift = codes_x_exponent(c);
    if (s->spec->data != QDNN_DATA_F16)
        s->x.largest = ptx_var(b, ptx_f32(b, 0));
}

static void begin_memory(ptx_builder *b, columns *s, const coding *c)
{
    const unsigned dynamic = codes_are_cheap(c) ? codes_dynamic_bytes(c) : 0;
    ptx_val all = dynamic ? ptx_shared_dynamic(b, BYTE_TABLE_RUN) : (ptx_val){0};
    if (dynamic && codes_have_table(b, c))
        s->table.base = all;
    else
        s->memory = all;
    begin_x(b, s, c);
    unsigned bytes = SUM_LANES * lane_bytes(s);
    if (codes_are_cheap(c) && codes_scratch_bytes(c, s->across, s->x.rounds) > bytes)
        bytes = codes_scratch_bytes(c, s->across, s->x.rounds);
    s->scratch = memory_of(b, s, "lanes", bytes);
}

static ptx_val weights_are_aligned(ptx_builder *b, const columns *s)
{
    const coding *c = &s->w.coding;
    if (format_is_plain(c->format))
        return emit_aligned(b, s->w.codes, s->width * element_bytes(c->format->facts.storage));
    ptx_val codes =
        codes_are_cheap(c) ? codes_are_aligned(b, s) : emit_aligned(b, s->w.codes, patch_codes_align(c));
    return matrix_groups_aligned(b, &s->w.matrix, s->width, codes);
}

static void clear_sums(ptx_builder *b, columns *s, bool made)
{
    for (unsigned m = 0; m < s->rows; m++)
        for (unsigned l = 0; l < s->lanes; l++)
            for (unsigned k = 0; k < sums_of_lane(s); k++) {
                ptx_val zero = s->pairs ? ptx_bits(b, PTX_F32X2, 0) : ptx_f32(b, 0);
                if (made)
                    ptx_assign(b, s->sums[m][l][k], zero);
                else
                    s->sums[m][l][k] = ptx_var(b, zero);
            }
}

/* The cheap decode; if it met numbers that it cannot handle, another one starts over. */
static void aligned_pass(ptx_builder *b, columns *s)
{
    const coding *c = &s->w.coding;
    const bool words = words_are_cheap(c);
    if (!words && !codes_are_cheap(c)) {
        pass(b, s, true);
        return;
    }
    ptx_val wrong = (words ? words_pass : codes_pass)(b, s);
    if (wrong.kind == PTX_NOTHING)
        return;
    ptx_uniform(b);
    ptx_if(b, wrong);
    clear_sums(b, s, true);
    pass(b, s, words);
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

/* Sets up the rows of a tile and the weights of their expert. */
static void begin_tile(ptx_builder *b, const kernel_row *row, columns *s)
{
    s->at = row_tiles_begin(b, s->spec, &s->args);
    if (s->spec->product.grouped) {
        s->args = row_tile_args(b, &s->at, &s->args);
        s->w = weights_begin(b, row, s->spec, &s->args);
    }
    ptx_val rounds = ptx_cvt(b, PTX_U32, ptx_shr(b, ptx_add(b, s->args.k, ptx_u64(b, ROUND - 1)), 8));
    s->rounds = row_tile_size(b, &s->at, rounds);
    if (codes_are_cheap(&s->w.coding))
        codes_open(b, s);
}

static void emit_columns(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const coding c = {row->format, spec};
    ptx_minnctapersm(b, 1);
    columns s = {.spec = spec,
                 .rows = (unsigned)spec->product.tile_rows,
                 .width = width_of(&c),
                 .step = step_of(&c),
                 .lanes = lanes_of(&c),
                 .across = across_of(&c),
                 .together = COLUMNS_TOGETHER,
                 .pairs = has_f32x2(b),
                 .args = gemm_declare(b, row, spec)};
    if (s.rows * s.lanes * s.width > SUMS_MAX / 2)
        s.together = COLUMNS_TOGETHER / 2;
    if (!spec->product.grouped)
        s.w = weights_begin(b, row, spec, &s.args);
    s.lane = ptx_laneid(b);
    s.thread = ptx_and(b, s.lane, (int)s.across - 1);
    ptx_val part = ptx_mul(b, ptx_shr(b, s.lane, ceil_log2(s.across)), s.lanes);
    s.first_lane = ptx_mad(b, ptx_shr(b, ptx_tid_x(b), 5), COLUMNS_LANES, part);
    begin_memory(b, &s, &c);
    begin_columns(b, &s);
    begin_tile(b, row, &s);
    multiply(b, &s);
    row_tiles_end(b);
}

const gemm_kernel gemm_columns = {.block = THREADS,
                                  .shared = shared_of,
                                  .outputs = columns_of,
                                  .emit = emit_columns,
                                  .serves = serves,
                                  .rows = 1,
                                  .rows_most = ROWS_MAX,
                                  .fits = fits,
                                  .takes_experts = true};
