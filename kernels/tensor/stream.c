/* The stream kernel; stream.h explains it. */
#include "kernels/tensor/stream.h"

#include <stdio.h>

enum { WARP_N = TILES * UNIT_N, BLOCK_N = STREAM_WARPS * WARP_N };

/* ---- Weights ---- */

/* Loads a unit that lies `offset` bytes after the pointers. */
static void load_unit(ptx_builder *b, const stream *s, const ptx_val *pointers, int offset, unit_words *w)
{
    const unsigned v = prepack_vector(s->bits);
    for (unsigned q = 0; q < TILES; q++)
        for (unsigned i = 0; i < s->bits; i += v)
            emit_load_words(b, pointers[q], offset + (int)(128 * i), v, &w->at[q][i]);
}

static void load_unit_of_strip(ptx_builder *b, stream *s, unsigned unit, unit_words *w)
{
    if (s->is_ternary || s->is_grid) {
        if (unit * UNIT_K % s->blocks->elements == 0)
            (s->is_grid ? stream_grid_load : stream_ternary_load)(b, s, unit * UNIT_K / s->blocks->elements);
        return;
    }
    load_unit(b, s, s->units, (int)(unit * 128 * s->bits), w);
}

static ptx_mma_id instruction_of(ptx_builder *b, const stream *s)
{
    return mma_instruction(b, s->spec, &s->form, s->codes.format->facts.storage, true);
}

/* Multiplies one step of 16 k (FP8: 32) of one tile of columns by eight rows of x: x has k 0-7, then k
 * 8-15 (0-15, 16-31). */
static void multiply(ptx_builder *b, const stream *s, const ptx_val a[4], const ptx_val x[2],
                     const ptx_val *sums)
{
    const ptx_mma_id id = instruction_of(b, s);
    if (ptx_mma_describe(id).k >= 16) {
        ptx_mma_into(b, id, sums, a, x, sums);
        return;
    }
    ptx_mma_into(b, id, sums, a, x, sums);
    ptx_mma_into(b, id, sums, a + 2, x + 1, sums);
}

static unsigned steps_of_unit(const stream *s)
{
    return UNIT_STEPS / s->form.unit_elements;
}

/* Operand A of a step of the strip, for all tiles. */
static void decode_step(ptx_builder *b, stream *s, const unit_words *w, unsigned of_strip,
                        ptx_val a[TILES][4])
{
    if (s->is_grid)
        stream_grid_decode(b, s, of_strip);
    else if (s->blocks)
        stream_blocks_of_step(b, s, &s->headers, of_strip, false);
    else
        stream_scales_of_step(b, s, of_strip);
    if (s->is_ternary)
        stream_ternary_digits(b, s, of_strip);
    for (unsigned q = 0; q < TILES; q++)
        stream_decode_step(b, s, w, q, of_strip % steps_of_unit(s), a[q]);
}

/* Multiplies the columns by rows [from, end) of x, in tiles of eight, whose x of the step lies at `x_at`. ldmatrix loads x of
 * two steps for eight rows or, with more rows, of one step for sixteen. */
static void multiply_rows(ptx_builder *b, const stream *s, ptx_val a[2][TILES][4], ptx_val x_lane, int x_at,
                          unsigned from, unsigned end)
{
    const bool two_steps = s->m_tiles == 1;
    const unsigned rows_8 = 8 * stream_x_line_bytes(s);
    for (unsigned i = from; i < end; i += 2) {
        ptx_val x[4];
        ptx_ldmatrix(b, x_lane, (int)(i * rows_8) + x_at, x, 4);
        for (unsigned j = 0; j < 2; j++)
            for (unsigned q = 0; q < TILES; q++)
                multiply(b, s, a[two_steps ? j : 0][q], &x[2 * j], s->sums[q][i + (two_steps ? 0 : j)]);
    }
}

/* The branch over the rows after HALF_ROWS also keeps ptxas from loading x of two steps ahead, for which there are no
 * registers. */
static void multiply_unit(ptx_builder *b, stream *s, const unit_words *w, unsigned unit)
{
    const unsigned steps = s->m_tiles > 1 ? 1 : 2, end = (unit + 1) * steps_of_unit(s);
    const int x_unit = (int)(unit % s->phase_units / s->form.unit_elements * s->chunk);
    const unsigned first_tiles = s->rows > HALF_ROWS ? HALF_ROWS / 8 : s->m_tiles;
    for (unsigned step = unit * steps_of_unit(s); step < end; step += steps) {
        ptx_val a[2][TILES][4], x_lane = s->x_lane[step % UNIT_STEPS];
        for (unsigned j = 0; j < steps; j++)
            decode_step(b, s, w, step + j, a[j]);
        multiply_rows(b, s, a, x_lane, x_unit, 0, first_tiles);
        if (first_tiles == s->m_tiles)
            continue;
        ptx_uniform(b);
        ptx_if(b, s->has_more);
        multiply_rows(b, s, a, x_lane, x_unit, first_tiles, s->m_tiles);
        ptx_end_if(b);
    }
}

/* Repeated in each branch: where ptxas knows the first mma, that takes zeros without spending registers on
 * them. */
static void zero_sums(ptx_builder *b, const stream *s)
{
    for (unsigned i = 0; i < TILES; i++)
        for (unsigned j = 0; j < s->m_tiles; j++)
            for (unsigned c = 0; c < 4; c++)
                ptx_assign(b, s->sums[i][j][c], ptx_f32(b, 0));
}

/* A strip of `units` units, all of which exist. */
static void strip_of_units(ptx_builder *b, stream *s, unsigned units)
{
    unit_words w[UNITS];
    zero_sums(b, s);
    if (!s->blocks)
        stream_scales_of_strip(b, s);
    for (unsigned u = 0; u < s->ahead; u++)
        load_unit_of_strip(b, s, u, &w[u]);
    for (unsigned u = 0; u < units; u++) {
        if (u % s->phase_units == 0)
            stream_load_x(b, s, u / s->phase_units, units == UNITS);
        if (u + s->ahead < units)
            load_unit_of_strip(b, s, u + s->ahead, &w[u + s->ahead]);
        multiply_unit(b, s, &w[u], u);
    }
}

static void whole_strip(ptx_builder *b, stream *s)
{
    strip_of_units(b, s, UNITS);
}

/* A strip that is cut short has exactly one block of TQ1_0, IQ1, IQ2 or IQ3. */
static void short_strip_of_block(ptx_builder *b, stream *s)
{
    strip_of_units(b, s, s->blocks->elements / UNIT_K);
}

/* ---- A strip that is cut short: step by step; weights beyond the last k are +0 ---- */

static void mask_step(ptx_builder *b, const stream *s, ptx_val k, ptx_val a[4])
{
    for (unsigned i = 0; i < 4; i += 2) {
        ptx_val first = ptx_add(b, ptx_mad(b, s->t, 2, k), (int)(4 * i)), second = ptx_add(b, first, 1);
        ptx_val low = ptx_selp(b, ptx_u32(b, 0xFFFF), ptx_u32(b, 0), ptx_setp(b, PTX_LT, first, s->k));
        ptx_val mask = ptx_selp(b, ptx_u32(b, 0xFFFFFFFF), low, ptx_setp(b, PTX_LT, second, s->k));
        a[i] = ptx_and(b, a[i], mask);
        a[i + 1] = ptx_and(b, a[i + 1], mask);
    }
}

static void short_step(ptx_builder *b, stream *s, const unit_words *w, unsigned step, ptx_val k,
                       ptx_val phase_k)
{
    ptx_val a[TILES][4], piece = ptx_shr(b, ptx_sub(b, k, phase_k), 3);
    for (unsigned q = 0; q < TILES; q++) {
        stream_decode_step(b, s, w, q, step, a[q]);
        mask_step(b, s, k, a[q]);
    }
    ptx_val row = ptx_and(b, s->lane, 7), at = ptx_add(b, piece, ptx_and(b, ptx_shr(b, s->lane, 3), 1));
    ptx_val from = stream_x_address(b, s, row, at);
    for (unsigned i = 0; i < s->m_tiles; i++) {
        ptx_val x[2];
        ptx_ldmatrix(b, from, (int)(i * 8 * s->phase_units * s->chunk), x, 2);
        for (unsigned q = 0; q < TILES; q++)
            multiply(b, s, a[q], x, s->sums[q][i]);
    }
}

/* An iteration ("turn") covers a block (at least a unit) or, if less of x fits into shared memory, a
 * phase: so it is known at emit time which of a block's scales a step uses. */
static unsigned block_k(const stream *s)
{
    return s->blocks && s->blocks->elements > UNIT_K ? s->blocks->elements : UNIT_K;
}

static unsigned turn_k(const stream *s)
{
    const unsigned phase = s->phase_units * UNIT_K;
    return block_k(s) < phase ? block_k(s) : phase;
}

/* The turn at k0 (u32); `before`: how many k of its block precede it. */
static void short_turn(ptx_builder *b, stream *s, const ptx_val *pointers, const block_headers *headers,
                       unsigned before, ptx_val k0, ptx_val phase_k)
{
    const unsigned steps = turn_k(s) / 16, of_block = s->blocks ? s->blocks->elements / 16 : 1;
    const unsigned together = of_block < steps ? of_block : steps; /* steps that exist or not together */
    unit_words w;
    for (unsigned step = 0; step < steps; step++) {
        ptx_val k = step ? ptx_add(b, k0, (int)(16 * step)) : k0;
        if (step % together == 0) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, k, s->k));
        }
        load_unit(b, s, pointers, (int)(step / UNIT_STEPS * 128 * s->bits), &w);
        if (s->blocks)
            stream_blocks_of_step(b, s, headers, before / 16 + step, step == 0);
        else
            stream_scales_at(b, s, k);
        short_step(b, s, &w, step % UNIT_STEPS, k, phase_k);
        if (step % together == together - 1)
            ptx_end_if(b);
    }
}

static void short_strip(ptx_builder *b, stream *s)
{
    ptx_val pointers[TILES];
    block_headers headers = s->headers;
    zero_sums(b, s);
    for (unsigned q = 0; q < TILES; q++)
        pointers[q] = ptx_var(b, s->units[q]);
    if (s->blocks)
        headers = stream_headers_var(b, s);
    for (unsigned phase = 0; phase < UNITS / s->phase_units; phase++) {
        const int phase_k = (int)(s->phase_units * UNIT_K);
        ptx_val first = phase ? ptx_add(b, s->k0, phase_k * (int)phase) : s->k0;
        stream_load_x(b, s, phase, false);
        const unsigned before = phase * (unsigned)phase_k % block_k(s);
        ptx_val k0 = ptx_for(b, first, ptx_min(b, s->k, ptx_add(b, first, phase_k)), (int)turn_k(s));
        short_turn(b, s, pointers, &headers, before, k0, first);
        for (unsigned q = 0; q < TILES; q++)
            ptx_assign(b, pointers[q],
                       ptx_add(b, pointers[q], ptx_u64(b, turn_k(s) / UNIT_K * 128 * s->bits)));
        if (s->blocks && before + turn_k(s) == block_k(s))
            stream_headers_advance(b, s, &headers, block_k(s));
        ptx_end_for(b);
    }
}

/* Bare weights beyond the last k are +0, and so is x: whole units are computed, one after another. */
static void short_bare_strip(ptx_builder *b, stream *s)
{
    const unsigned unit_bytes = 128 * s->bits, chunk_k = UNIT_K * s->form.unit_elements;
    const int phase_k = (int)(s->phase_units * UNIT_K);
    stream here = *s;
    unit_words w;
    ptx_val unit[TILES];
    zero_sums(b, s);
    for (unsigned q = 0; q < TILES; q++)
        unit[q] = ptx_var(b, s->units[q]);
    for (unsigned phase = 0; phase < UNITS / s->phase_units; phase++) {
        ptx_val first = phase ? ptx_add(b, s->k0, phase_k * (int)phase) : s->k0;
        stream_load_x(b, s, phase, false);
        ptx_val k = ptx_for(b, first, ptx_min(b, s->k, ptx_add(b, first, phase_k)), UNIT_K);
        ptx_val before = ptx_shr(b, ptx_sub(b, k, first), ceil_log2(chunk_k));
        for (unsigned i = 0; i < UNIT_STEPS; i++) {
            ptx_val lane = s->x_lane[i];
            if (chunk_k > UNIT_K) /* the second unit of a chunk uses the upper half of its pieces */
                lane = ptx_xor(b, lane, ptx_and(b, k, CHUNK_BYTES / 2));
            here.x_lane[i] = ptx_mad(b, before, (int)s->chunk, lane);
        }
        load_unit(b, s, unit, 0, &w);
        multiply_unit(b, &here, &w, 0);
        for (unsigned q = 0; q < TILES; q++)
            ptx_assign(b, unit[q], ptx_add(b, unit[q], ptx_u64(b, unit_bytes)));
        ptx_end_for(b);
    }
}

/* ---- The kernel ---- */

/* The address of the sum of a row of the block and a column (both u32). */
static ptx_val sum_address(ptx_builder *b, const stream *s, ptx_val row, ptx_val n)
{
    ptx_val all = ptx_mad(b, ptx_cvt(b, PTX_U64, s->strip), s->args.m, stream_row(b, s, row));
    return ptx_at(b, s->args.all.partials, ptx_mad(b, all, s->args.outputs, ptx_cvt(b, PTX_U64, n)), 4);
}

/* Stores the sums of rows 2t and 2t + 1 of each eight; `checked`: some do not exist. */
static void store_rows(ptx_builder *b, const stream *s, bool checked)
{
    ptx_val m = ptx_mad(b, s->t, 2, s->m0), n = ptx_add(b, s->n0, s->g);
    ptx_val first = sum_address(b, s, ptx_shl(b, s->t, 1), n), at = first;
    for (unsigned r = 0; r < 2 * s->m_tiles; r++) {
        const unsigned row = r / 2 * 8 + r % 2;
        if (r && s->spec->product.grouped)
            at = sum_address(b, s, ptx_mad(b, s->t, 2, (int)row), n);
        else if (r)
            at = ptx_add(b, ptx_mul_wide(b, s->n, ptx_u32(b, 4 * row)), first);
        ptx_val exists = checked ? ptx_setp(b, PTX_LT, ptx_add(b, m, (int)row), s->rows_x) : (ptx_val){0};
        for (unsigned j = 0; j < COLUMNS; j++) {
            if (checked)
                ptx_when(b, ptx_setp_and(b, PTX_LT, ptx_add(b, n, (int)(8 * j)), s->n, exists));
            ptx_st_global(b, at, (int)(32 * j), s->sums[j / 2][r / 2][2 * (j % 2) + r % 2]);
        }
    }
}

static void store_sums(ptx_builder *b, const stream *s)
{
    ptx_val in_n = ptx_setp(b, PTX_LE, ptx_add(b, s->n0, WARP_N), s->n);
    ptx_val whole = ptx_setp_and(b, PTX_LE, ptx_add(b, s->m0, (int)s->rows), s->rows_x, in_n);
    ptx_uniform(b);
    ptx_if(b, whole);
    store_rows(b, s, false);
    ptx_else(b);
    store_rows(b, s, true);
    ptx_end_if(b);
}

static void begin_units(ptx_builder *b, stream *s)
{
    const unsigned v = s->is_ternary ? 2 : prepack_vector(s->bits);
    ptx_val units_k = ptx_cvt(b, PTX_U32, emit_divide_up(b, s->args.k, s->unit.elements)),
            last = ptx_shr(b, ptx_sub(b, s->n, 1), ceil_log2(UNIT_N));
    ptx_val unit_k = ptx_cvt(b, PTX_U64, ptx_mul(b, s->strip, (int)(STRIP / s->unit.elements)));
    for (unsigned q = 0; q < TILES; q++) {
        ptx_val row = ptx_min(b, ptx_mad(b, s->warp, TILES, ptx_u32(b, q)), last);
        ptx_val unit = ptx_add(b, ptx_mul_wide(b, row, units_k), unit_k);
        ptx_val words = ptx_at(b, s->args.all.operand[QDNN_OPERAND_CODES], unit, s->unit.bytes);
        s->units[q] = ptx_at(b, words, s->lane, 4 * v);
    }
}

static void begin_weights(ptx_builder *b, const kernel_row *row, stream *s)
{
    begin_units(b, s);
    if (s->is_bare)
        return;
    if (s->blocks)
        stream_blocks_begin(b, s);
    if (s->is_grid)
        stream_grid_begin(
            b, s, ptx_add(b, s->x_shared, (int)(stream_shared_bytes(s->rows, &s->beside) - s->beside.lines)));
    if (s->blocks)
        return;
    quantized q = quantized_begin(b, row, s->spec, &s->args.all);
    s->m = matrix_begin(b, &q, &s->args.all);
    stream_scales_begin(b, s);
}

/* The rows of the block. For a grouped product this opens a loop over tiles of an expert's rows; rows
 * without an expert are left to the second kernel. */
static void begin_rows(ptx_builder *b, stream *s)
{
    if (!s->spec->product.grouped) {
        s->rows_x = ptx_cvt(b, PTX_U32, s->args.m);
        s->m0 = ptx_mul(b, ptx_ctaid_y(b), (int)s->rows);
        return;
    }
    s->at = row_tiles_begin(b, s->spec, &s->args);
    ptx_uniform(b);
    ptx_if(b, s->at.known);
    s->args = row_tile_args(b, &s->at, &s->args);
    s->rows_x = ptx_cvt(b, PTX_U32, s->at.count);
    s->m0 = ptx_u32(b, 0);
}

static void end_rows(ptx_builder *b, const stream *s)
{
    if (!s->spec->product.grouped)
        return;
    ptx_syncthreads(b); /* until x is no longer read */
    ptx_end_if(b);
    row_tiles_end(b);
}

/* Units loaded ahead: as many as registers can hold. */
static unsigned units_ahead(const kernel_row *row, const kernel_spec *spec)
{
    const unsigned bits = prepack_bits(row->format);
    if (spec->product.tile_rows > HALF_ROWS)
        return 1;
    return bits <= 8 ? AHEAD_MAX : AHEAD_MAX * 8 / bits;
}

static stream begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    stream s = {.spec = spec,
                .args = gemm_declare(b, row, spec),
                .blocks = block_layout_of(row->format),
                .codes = {row->format, spec},
                .bits = prepack_bits(row->format),
                .rows = (unsigned)spec->product.tile_rows,
                .m_tiles = (unsigned)spec->product.tile_rows / 8,
                .ahead = units_ahead(row, spec),
                .k_in_columns = spec->product.reduction == KERNEL_K_COLUMNS,
                .is_ternary = block_layout_of(row->format) && block_layout_of(row->format)->codes->is_ternary,
                .is_grid = block_layout_of(row->format) && block_layout_of(row->format)->codes->grid,
                .unit = prepack_unit(row->format),
                .beside = stream_beside_of(row->format, spec),
                .is_bare = format_is_plain(row->format) || spec->product.x_fp8,
                .form = x_form_of(b, spec)};
    if (s.form.unit_elements == 2)
        s.form.is_async = false; /* its k are reordered on the way */
    begin_rows(b, &s);
    s.n = ptx_cvt(b, PTX_U32, s.args.outputs);
    s.k = ptx_cvt(b, PTX_U32, s.args.k);
    s.lane = ptx_laneid(b);
    s.g = ptx_shr(b, s.lane, 2);
    s.t = ptx_and(b, s.lane, 3);
    s.strip = ptx_ctaid_z(b);
    s.warp = ptx_mad(b, ptx_ctaid_x(b), STREAM_WARPS, ptx_shr(b, ptx_tid_x(b), 5));
    s.n0 = ptx_mul(b, s.warp, WARP_N);
    s.k0 = ptx_mul(b, s.strip, STRIP);
    s.my_n = ptx_min(b, ptx_add(b, s.n0, s.lane), ptx_sub(b, s.n, 1));
    for (unsigned i = 0; i < TILES; i++)
        for (unsigned j = 0; j < s.m_tiles; j++)
            for (unsigned c = 0; c < 4; c++)
                s.sums[i][j][c] = ptx_var(b, ptx_f32(b, 0));
    return s;
}

static void emit_stream(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, spec->product.tile_rows > 16 || spec->product.grouped
                            ? 1
                            : 2); /* up to 255 registers, or 128: otherwise ptxas stops at 64, and spills */
    stream s = begin(b, row, spec);
    if (!ptx_mma_has(ptx_target(b), instruction_of(b, &s)))
        ptx_fail(b, "%s has no tensor cores for bf16; x must be f16", ptx_target(b)->name);
    if (s.rows > HALF_ROWS)
        s.has_more = ptx_setp(b, PTX_LT, ptx_add(b, s.m0, HALF_ROWS), s.rows_x);
    stream_decode_begin(b, &s, row->format);
    stream_x_begin(b, &s);
    begin_weights(b, row, &s);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LE, ptx_add(b, s.k0, STRIP), s.k));
    whole_strip(b, &s);
    ptx_else(b);
    (s.is_bare ? short_bare_strip : s.is_ternary || s.is_grid ? short_strip_of_block : short_strip)(b, &s);
    ptx_end_if(b);
    store_sums(b, &s);
    end_rows(b, &s);
}

static unsigned shared_bytes(const kernel_row *row, const kernel_spec *spec)
{
    const stream_beside beside = stream_beside_of(row->format, spec);
    return stream_shared_bytes((unsigned)spec->product.tile_rows, &beside);
}

static unsigned outputs_of(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return BLOCK_N;
}

/* Tiles of ROWS_MAX rows decode half as often, and take nearly all registers: 4-bit codes leave enough of them, but not blocks
 * together with experts. */
uint64_t kernel_stream_rows(const kernel_row *row, bool grouped, uint64_t rows)
{
    const bool is_lean = prepack_bits(row->format) == 4 && !(grouped && block_layout_of(row->format));
    const uint64_t most = is_lean ? ROWS_MAX : HALF_ROWS;
    uint64_t m = 8;
    while (m < rows && m < most)
        m *= 2;
    return m;
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const uint64_t extent = group_extent(spec);
    const char *why = NULL;
    if (spec->data != QDNN_DATA_F16 && spec->data != QDNN_DATA_BF16)
        why = "data is f32; product stream takes x in f16 or bf16";
    else if (spec->stored.group_index)
        why = "group_index is yes; prepacked weights must have contiguous groups";
    else if (!format_is_blocks(row->format) && extent % 16 != 0)
        why = "prepacked weights must have a group size that is a multiple of 16";
    else if (spec->epilogue.addend)
        why = "product stream does not take an addend";
    if (why)
        snprintf(error, error_size, "%s", why);
    return !why && (!spec->product.x_fp8 || fp8_serves(row, spec, error, error_size));
}

/* The sums of strips, then y. The first kernel ignores everything that follows the sum. */
static void stream_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps)
{
    kernel_shape shape = kernel_shape_of(spec, problem);
    kernel_spec first = *spec, second = *spec;
    const uint64_t strips = (shape.k + STRIP - 1) / STRIP;
    first.epilogue.output = QDNN_DATA_F32;
    first.epilogue.alpha = QDNN_ALPHA_NONE;
    first.epilogue.bias = 0;
    first.epilogue.activation = QDNN_ACTIVATION_NONE;
    first.epilogue.gated = first.epilogue.residual = first.epilogue.row_weight = first.product.x_scale = 0;
    second.product.kernel = KERNEL_PRODUCT_STRIPS;
    second.product.tile_rows = problem->m == 1 || spec->product.grouped          ? 1
                               : problem->m <= HALF_ROWS || spec->epilogue.gated ? 2
                                                                                 : 4;
    if (spec->product.grouped)
        routes_steps(kernel_find("route_rows"), spec, problem, steps);
    const uint64_t sums = steps_take(steps, strips * problem->m * shape.outputs * 4);
    if (strips > 0)
        step_with_partials(steps_add(steps, row, &first, problem), sums);
    step_with_partials(steps_add(steps, row, &second, problem), sums);
}

const gemm_kernel gemm_stream = {.block = STREAM_THREADS,
                                 .outputs = outputs_of,
                                 .strip = STRIP,
                                 .shared = shared_bytes,
                                 .emit = emit_stream,
                                 .serves = serves,
                                 .rows = 8,
                                 .rows_most = ROWS_MAX,
                                 .takes_experts = true,
                                 .steps = stream_steps};
