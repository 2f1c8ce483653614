/* The stream kernel; stream.h explains it. */
#include "kernels/tensor/stream.h"

#include <stdio.h>

/* ---- Weights ---- */

/* Loads a unit that lies `offset` bytes after the pointers. */
static void load_unit(ptx_builder *b, const stream *s, const ptx_val *pointers, int offset, unit_words *w)
{
    const unsigned v = prepack_vector(s->bits);
    if (s->is_stored) {
        stream_stored_load(b, pointers, offset, w);
        return;
    }
    for (unsigned q = 0; q < TILES; q++)
        for (unsigned i = 0; i < s->bits; i += v)
            emit_load_words(b, pointers[q], offset + (int)(128 * i), v, &w->at[q][i]);
}

/* The bytes from a unit to the next in k, for each pointer. */
static int unit_step(const stream *s)
{
    return (int)(s->is_stored ? UNIT_K * s->bits / 8 : 128 * s->bits);
}

static void load_unit_of_strip(ptx_builder *b, stream *s, unsigned unit, unit_words *w)
{
    if (s->is_ternary || s->is_grid) {
        if (unit * UNIT_K % s->blocks->elements == 0)
            (s->is_grid ? stream_grid_load : stream_ternary_load)(b, s, unit * UNIT_K / s->blocks->elements);
        return;
    }
    load_unit(b, s, s->units, (int)unit * unit_step(s), w);
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

/* Multiplies the columns by all rows of x, whose x of the step lies at `x_at`. ldmatrix loads x of two steps for eight rows or,
 * with more rows, of one step for sixteen. */
static void multiply_rows(ptx_builder *b, const stream *s, ptx_val a[2][TILES][4], ptx_val x_lane, int x_at)
{
    const bool two_steps = s->m_tiles == 1;
    const unsigned rows_8 = 8 * stream_x_line_bytes(s);
    for (unsigned i = 0; i < s->m_tiles; i += 2) {
        ptx_val x[4];
        ptx_ldmatrix(b, x_lane, (int)(i * rows_8) + x_at, x, 4);
        for (unsigned j = 0; j < 2; j++)
            for (unsigned q = 0; q < TILES; q++)
                multiply(b, s, a[two_steps ? j : 0][q], &x[2 * j], s->sums[q][i + (two_steps ? 0 : j)]);
    }
}

/* Where x of a unit of the strip lies, behind what x_lane says. */
static int x_of_unit(const stream *s, unsigned unit)
{
    const unsigned stage = unit / s->phase_units % s->stages,
                   chunk = unit % s->phase_units / s->form.unit_elements;
    return (int)(stage * stream_x_stage_bytes(s) + chunk * s->chunk);
}

/* `copies`: at the first step of a phase, x is waited for as late as possible, and later x is copied after it. */
static void multiply_unit(ptx_builder *b, stream *s, const unit_words *w, unsigned unit, bool copies)
{
    const unsigned steps = s->m_tiles > 1 ? 1 : 2, first = unit * steps_of_unit(s);
    for (unsigned step = first; step < first + steps_of_unit(s); step += steps) {
        const bool begins = copies && step == first && unit % s->phase_units == 0;
        ptx_val a[2][TILES][4], x_lane = s->x_lane[step % UNIT_STEPS];
        for (unsigned j = 0; j < steps; j++)
            decode_step(b, s, w, step + j, a[j]);
        if (begins)
            stream_x_arrive(b, s, unit / s->phase_units);
        multiply_rows(b, s, a, x_lane, x_of_unit(s, unit));
        if (begins)
            stream_x_next(b, s, unit / s->phase_units);
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

/* Loads the first units of a strip for the time when it begins. */
static void load_next(ptx_builder *b, stream *s, unsigned unit)
{
    unit_words w;
    load_unit(b, s, s->units, (int)unit * unit_step(s), &w);
    for (unsigned q = 0; q < TILES; q++)
        for (unsigned i = 0; i < s->bits; i++)
            ptx_assign(b, s->next[unit].at[q][i], w.at[q][i]);
}

/* Before the first strip, if it is whole. */
static void begin_next(ptx_builder *b, stream *s)
{
    for (unsigned u = 0; u < s->ahead; u++)
        for (unsigned q = 0; q < TILES; q++)
            for (unsigned i = 0; i < s->bits; i++)
                s->next[u].at[q][i] = ptx_var(b, ptx_u32(b, 0));
    ptx_uniform(b);
    ptx_val is_whole = ptx_setp(b, PTX_GE, s->k, STRIP);
    ptx_if(b, s->is_stored ? ptx_and(b, is_whole, s->codes_aligned) : is_whole);
    for (unsigned u = 0; u < s->ahead; u++)
        load_next(b, s, u);
    ptx_end_if(b);
}

/* From the units of the strip to those of the next one; if that is not whole, to the same again. */
static void go_on(ptx_builder *b, stream *s)
{
    ptx_val is_whole = ptx_setp(b, PTX_LE, ptx_add(b, s->k0, 2 * STRIP), s->k);
    ptx_val bytes = ptx_selp(b, ptx_u64(b, UNITS * (unsigned)unit_step(s)), ptx_u64(b, 0), is_whole);
    for (unsigned i = 0; i < s->pointers; i++)
        s->units[i] = ptx_add(b, s->units[i], bytes);
}

/* A strip of `units` units, all of which exist. */
static void strip_of_units(ptx_builder *b, stream *s, unsigned units)
{
    unit_words w[UNITS];
    zero_sums(b, s);
    if (!s->blocks)
        stream_scales_of_strip(b, s);
    for (unsigned u = 0; u < s->ahead; u++)
        if (s->goes_on)
            w[u] = s->next[u];
        else
            load_unit_of_strip(b, s, u, &w[u]);
    for (unsigned u = 0; u < units; u++) {
        if (u + s->ahead < units)
            load_unit_of_strip(b, s, u + s->ahead, &w[u + s->ahead]);
        else if (s->goes_on && u + s->ahead == units)
            go_on(b, s);
        multiply_unit(b, s, &w[u], u, true);
        if (ptx_target(b)->number < 80)
            ptx_membar_cta(b); /* which loads of later units do not pass */
        if (s->goes_on && u + s->ahead >= units)
            load_next(b, s, u + s->ahead - units);
    }
}

/* A strip that is cut short has exactly one block of TQ1_0, IQ1, IQ2 or IQ3. */
static void short_strip_of_block(ptx_builder *b, stream *s)
{
    const unsigned units = s->blocks->elements / UNIT_K;
    strip_of_units(b, s, units);
    stream_x_skip(b, s, ceil_div(units, s->phase_units));
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

/* `first`: the first k of the phase. */
static void short_step(ptx_builder *b, stream *s, const unit_words *w, unsigned step, ptx_val k,
                       unsigned phase, ptx_val first)
{
    ptx_val a[TILES][4], piece = ptx_shr(b, ptx_sub(b, k, first), 3);
    for (unsigned q = 0; q < TILES; q++) {
        stream_decode_step(b, s, w, q, step, a[q]);
        mask_step(b, s, k, a[q]);
    }
    ptx_val row = ptx_and(b, s->lane, (int)(s->rows < 8 ? s->rows : 8) - 1),
            at = ptx_add(b, piece, ptx_and(b, ptx_shr(b, s->lane, 3), 1));
    ptx_val from = stream_x_address(b, s, phase % s->stages, row, at);
    for (unsigned i = 0; i < s->m_tiles; i++) {
        ptx_val x[2];
        ptx_ldmatrix(b, from, (int)(i * 8 * stream_x_line_bytes(s)), x, 2);
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

/* The turn at k0 (u32) in a phase that begins with k `first`; `before`: how many k of its block precede it. */
static void short_turn(ptx_builder *b, stream *s, const ptx_val *pointers, const block_headers *headers,
                       unsigned before, ptx_val k0, unsigned phase, ptx_val first)
{
    const unsigned steps = turn_k(s) / 16, of_block = s->blocks ? s->blocks->elements / 16 : 1;
    const unsigned together = of_block < steps ? of_block : steps; /* steps that exist or not together */
    unit_words w;
    if (s->is_stored)
        stream_stored_load_short(b, s, pointers, k0, &w);
    for (unsigned step = 0; step < steps; step++) {
        ptx_val k = step ? ptx_add(b, k0, (int)(16 * step)) : k0;
        if (step % together == 0) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, k, s->k));
        }
        if (!s->is_stored)
            load_unit(b, s, pointers, (int)(step / UNIT_STEPS) * unit_step(s), &w);
        if (s->blocks)
            stream_blocks_of_step(b, s, headers, before / 16 + step, step == 0);
        else
            stream_scales_at(b, s, k);
        short_step(b, s, &w, step % UNIT_STEPS, k, phase, first);
        if (step % together == together - 1)
            ptx_end_if(b);
    }
}

static void short_strip(ptx_builder *b, stream *s)
{
    ptx_val pointers[COLUMNS];
    block_headers headers = s->headers;
    zero_sums(b, s);
    for (unsigned i = 0; i < s->pointers; i++)
        pointers[i] = ptx_var(b, s->units[i]);
    if (s->blocks)
        headers = stream_headers_var(b, s);
    for (unsigned phase = 0; phase < UNITS / s->phase_units; phase++) {
        const int phase_k = (int)(s->phase_units * UNIT_K);
        ptx_val first = phase ? ptx_add(b, s->k0, phase_k * (int)phase) : s->k0;
        stream_x_arrive(b, s, phase);
        stream_x_next(b, s, phase);
        const unsigned before = phase * (unsigned)phase_k % block_k(s);
        ptx_val k0 = ptx_for(b, first, ptx_min(b, s->k, ptx_add(b, first, phase_k)), (int)turn_k(s));
        short_turn(b, s, pointers, &headers, before, k0, phase, first);
        for (unsigned i = 0; i < s->pointers; i++)
            ptx_assign(b, pointers[i],
                       ptx_add(b, pointers[i], ptx_u64(b, turn_k(s) / UNIT_K * (unsigned)unit_step(s))));
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
        stream_x_arrive(b, s, phase);
        stream_x_next(b, s, phase);
        const unsigned stage = phase % s->stages * stream_x_stage_bytes(s);
        ptx_val k = ptx_for(b, first, ptx_min(b, s->k, ptx_add(b, first, phase_k)), UNIT_K);
        ptx_val before = ptx_shr(b, ptx_sub(b, k, first), ceil_log2(chunk_k));
        for (unsigned i = 0; i < UNIT_STEPS; i++) {
            ptx_val lane = s->x_lane[i];
            if (chunk_k > UNIT_K) /* the second unit of a chunk uses the upper half of its pieces */
                lane = ptx_xor(b, lane, ptx_and(b, k, CHUNK_BYTES / 2));
            lane = ptx_mad(b, before, (int)s->chunk, lane);
            here.x_lane[i] = stage ? ptx_add(b, lane, (int)stage) : lane;
        }
        load_unit(b, s, unit, 0, &w);
        multiply_unit(b, &here, &w, 0, false);
        for (unsigned q = 0; q < TILES; q++)
            ptx_assign(b, unit[q], ptx_add(b, unit[q], ptx_u64(b, unit_bytes)));
        ptx_end_for(b);
    }
}

/* ---- The kernel ---- */

/* Where the strip's words are, of each tile. */
static void begin_units(ptx_builder *b, stream *s)
{
    const unsigned v = s->is_ternary ? 2 : prepack_vector(s->bits);
    ptx_val units_k = ptx_cvt(b, PTX_U32, emit_divide_up(b, s->args.k, s->unit.elements));
    ptx_val unit_k = ptx_cvt(b, PTX_U64, ptx_mul(b, s->strip, (int)(STRIP / s->unit.elements)));
    for (unsigned q = 0; q < TILES; q++) {
        ptx_val unit = ptx_add(b, ptx_mul_wide(b, s->tile_unit[q], units_k), unit_k);
        ptx_val words = ptx_at(b, s->args.all.operand[QDNN_OPERAND_CODES], unit, s->unit.bytes);
        s->units[q] = ptx_at(b, words, s->lane, 4 * v);
    }
}

/* The strip that begins at `first` + part. */
static void begin_strip(ptx_builder *b, stream *s, ptx_val first)
{
    s->strip = s->parts == 1 ? first : ptx_add(b, first, s->part);
    s->k0 = ptx_mul(b, s->strip, STRIP);
    (s->is_stored ? stream_stored_units : begin_units)(b, s);
    if (s->blocks)
        stream_blocks_begin(b, s);
    else if (!s->is_bare)
        stream_scales_begin(b, s);
}

static void compute_strip(ptx_builder *b, stream *s)
{
    ptx_val is_whole = ptx_setp(b, PTX_LE, ptx_add(b, s->k0, STRIP), s->k);
    ptx_uniform(b);
    ptx_if(b, s->is_stored ? ptx_and(b, is_whole, s->codes_aligned) : is_whole);
    stream whole = *s;
    whole.x_exists = s->parts > 1;
    if (s->parts > 1)
        stream_x_first(b, &whole);
    strip_of_units(b, &whole, UNITS);
    ptx_else(b);
    if (s->parts > 1) {
        zero_sums(b, s);
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_LT, s->k0, s->k));
        stream_x_first(b, s);
    }
    (s->is_bare ? short_bare_strip : s->is_ternary || s->is_grid ? short_strip_of_block : short_strip)(b, s);
    if (s->parts > 1) {
        ptx_else(b);
        stream_x_skip(b, s, 0);
        ptx_end_if(b);
    }
    ptx_end_if(b);
}

/* All strips, a round of them at a time. */
static void compute_sums(ptx_builder *b, const kernel_row *row, stream *s)
{
    if (!s->is_bare && !s->blocks) {
        quantized q = quantized_begin(b, row, s->spec, &s->args.all);
        s->m = matrix_begin(b, &q, &s->args.all);
    }
    stream_x_begin_rows(b, s);
    if (s->is_stored)
        stream_stored_begin(b, s);
    if (s->parts == 1) {
        s->k0 = ptx_u32(b, 0);
        stream_x_first(b, s);
    }
    if (s->goes_on) {
        s->strip = ptx_u32(b, 0);
        (s->is_stored ? stream_stored_units : begin_units)(b, s);
        begin_next(b, s);
    }
    ptx_rolled(b);
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->strips, (int)s->parts);
    begin_strip(b, s, first);
    compute_strip(b, s);
    stream_join_round(b, s);
    ptx_end_for(b);
    stream_x_end(b, s);
}

/* The columns of each tile, and the column whose scale the lane loads. Tiles beyond the last column repeat those before it. */
static void begin_columns(ptx_builder *b, stream *s)
{
    ptx_val last = ptx_sub(b, s->n, 1), last_unit = ptx_shr(b, last, ceil_log2(UNIT_N)),
            n = ptx_cvt(b, PTX_U32, s->args.n);
    for (unsigned q = 0; q < TILES; q++) {
        ptx_val unit = s->warp;
        if (!s->is_gated)
            unit = ptx_mad(b, s->warp, TILES, ptx_u32(b, q));
        else if (q)
            unit = ptx_add(b, ptx_add(b, s->warp, s->gate_pass), ptx_shr(b, n, ceil_log2(UNIT_N)));
        s->tile_n[q] = ptx_shl(b, unit, ceil_log2(UNIT_N));
        if (s->is_stored && s->is_gated && q) /* columns may begin anywhere */
            s->tile_n[q] = ptx_add(b, s->tile_n[0], n);
        s->tile_unit[q] = ptx_min(b, unit, last_unit);
    }
    ptx_val of_tile = ptx_selp(b, s->tile_n[0], s->tile_n[1], ptx_setp(b, PTX_LT, s->lane, UNIT_N));
    s->my_n = ptx_min(b, ptx_add(b, of_tile, ptx_and(b, s->lane, UNIT_N - 1)), last);
}

/* Computes and completes the block's rows. */
static void compute_rows(ptx_builder *b, const kernel_row *row, stream *s)
{
    const bool in_passes = s->is_gated && !s->is_stored;
    s->gate_pass = in_passes ? ptx_for(b, ptx_u32(b, 0), stream_gate_passes(b, s), 1) : ptx_u32(b, 0);
    begin_columns(b, s);
    stream_join_begin(b, s);
    if (s->spec->product.grouped) {
        ptx_uniform(b);
        ptx_if(b, s->at.known);
    }
    stream of_sums = *s; /* with the weights of an expert */
    if (s->spec->product.grouped)
        of_sums.args = row_tile_args(b, &s->at, &s->args);
    compute_sums(b, row, &of_sums);
    if (s->spec->product.grouped)
        ptx_end_if(b);
    stream_finish(b, s);
    if (in_passes) {
        ptx_syncthreads(b);
        ptx_end_for(b);
    }
}

/* Of a grouped product, a block takes tiles of an expert's rows in turn. */
static void compute_blocks(ptx_builder *b, const kernel_row *row, stream *s)
{
    if (!s->spec->product.grouped) {
        s->rows_x = ptx_cvt(b, PTX_U32, s->args.m);
        s->m0 = ptx_mul(b, ptx_ctaid_y(b), (int)s->rows);
        compute_rows(b, row, s);
        return;
    }
    s->at = row_tiles_begin(b, s->spec, &s->args);
    s->rows_x = ptx_cvt(b, PTX_U32, s->at.count);
    s->m0 = ptx_u32(b, 0);
    compute_rows(b, row, s);
    ptx_syncthreads(b); /* until sums are no longer read */
    row_tiles_end(b);
}

/* Units loaded ahead: as many as registers can hold. */
static unsigned units_ahead(const ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const unsigned words = spec->product.tile_rows > 16 || ptx_target(b)->number < 80 ? 8 : 16,
                   bits = prepack_bits(row->format),
                   units = bits ? words / bits : AHEAD_MAX; /* no bits: no codes in units */
    return units > AHEAD_MAX ? AHEAD_MAX : units ? units : 1;
}

static stream begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    stream s = {.spec = spec,
                .args = gemm_declare(b, row, spec),
                .blocks = block_layout_of(row->format),
                .codes = {row->format, spec},
                .bits = prepack_bits(row->format),
                .rows = (unsigned)spec->product.tile_rows,
                .m_tiles = ceil_div(spec->product.tile_rows, 8),
                .parts = (unsigned)spec->product.split,
                .warps = STREAM_WARPS / (unsigned)spec->product.split,
                .ahead = units_ahead(b, row, spec),
                .k_in_columns = spec->product.reduction == KERNEL_K_COLUMNS,
                .is_ternary = block_layout_of(row->format) && block_layout_of(row->format)->codes->is_ternary,
                .is_grid = block_layout_of(row->format) && block_layout_of(row->format)->codes->grid,
                .unit = prepack_unit(row->format),
                .beside = stream_beside_of(row->format, spec),
                .is_gated = spec->epilogue.gated,
                .is_stored = spec->product.kernel == KERNEL_PRODUCT_STORED,
                .pointers = spec->product.kernel == KERNEL_PRODUCT_STORED ? COLUMNS : TILES,
                .is_bare = format_is_plain(row->format) || spec->product.x_fp8,
                .form = x_form_of(b, spec)};
    s.goes_on = s.parts == 1 && !s.is_ternary && !s.is_grid;
    if (s.form.unit_elements == 2)
        s.form.is_async = false; /* its k are reordered on the way */
    s.n = ptx_cvt(b, PTX_U32, s.args.outputs);
    s.k = ptx_cvt(b, PTX_U32, s.args.k);
    s.strips = ptx_cvt(b, PTX_U32, emit_divide_up(b, s.args.k, STRIP));
    s.lane = ptx_laneid(b);
    s.g = ptx_shr(b, s.lane, 2);
    s.t = ptx_and(b, s.lane, 3);
    const int threads = (int)s.warps * WARP;
    ptx_val tid = ptx_tid_x(b), warp = ptx_shr(b, tid, 5);
    s.part = s.parts == 1 ? ptx_u32(b, 0) : ptx_shr(b, tid, ceil_log2((unsigned)threads));
    s.part_thread = s.parts == 1 ? tid : ptx_and(b, tid, threads - 1);
    s.part_warp = s.parts == 1 ? warp : ptx_and(b, warp, (int)s.warps - 1);
    s.warp = ptx_mad(b, ptx_ctaid_x(b), (int)s.warps, s.part_warp);
    for (unsigned i = 0; i < TILES; i++)
        for (unsigned j = 0; j < s.m_tiles; j++)
            for (unsigned c = 0; c < 4; c++)
                s.sums[i][j][c] = ptx_var(b, ptx_f32(b, 0));
    return s;
}

static unsigned shared_bytes(const kernel_row *row, const kernel_spec *spec)
{
    const stream_beside beside = stream_beside_of(row->format, spec);
    return stream_room_of(spec, &beside).bytes;
}

/* Blocks that a multiprocessor has room for: two with up to 128 registers per thread, or one with 255 (without the number, ptxas
 * stops at 64, and spills). Blocks, plain weights, codes of 8 bits with zeros, FP6, and sm_75, where a step takes two mma, need more than 128. */
static int blocks_together(const ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const unsigned bits = prepack_bits(row->format);
    const bool is_wide = (bits >= 8 && format_has_zero(row->format)) ||
                         (bits == 6 && !row->format->codec->is_integer),
               is_lean = ptx_target(b)->number >= 80 && !block_layout_of(row->format) &&
                         !format_is_plain(row->format) && !is_wide && !spec->product.grouped;
    return is_lean && spec->product.tile_rows <= 16 ? 2 : 1;
}

static void emit_stream(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, blocks_together(b, row, spec));
    stream s = begin(b, row, spec);
    if (ptx_target(b)->number < 80) /* otherwise ptxas loads all units of a strip first, and spills */
        ptx_coherent(b);
    if (!ptx_mma_has(ptx_target(b), instruction_of(b, &s)))
        ptx_fail(b, "%s has no tensor cores for bf16; x must be f16", ptx_target(b)->name);
    stream_decode_begin(b, &s, row->format);
    stream_x_begin(b, &s);
    if (s.is_grid)
        stream_grid_begin(b, &s, ptx_add(b, s.x_shared, (int)(shared_bytes(row, spec) - s.beside.lines)));
    if (s.is_grid || s.table.base.kind != PTX_NOTHING)
        ptx_syncthreads(b);
    compute_blocks(b, row, &s);
}

static unsigned outputs_of(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return stream_outputs(spec);
}

/* More than 32 rows take all registers, which some formats do not leave. */
uint64_t kernel_stream_rows(const kernel_row *row, uint64_t rows)
{
    const block_layout *blocks = block_layout_of(row->format);
    const unsigned bits = prepack_bits(row->format);
    const bool is_greedy = bits > 16 || (blocks && (blocks->codes->grid || bits < 4 || bits == 5));
    const uint64_t most = is_greedy ? PART_ROWS_MAX : ROWS_MAX;
    uint64_t m = 1;
    while (m < rows && m < most)
        m *= 2;
    return m;
}

/* Sums of all parts meet in shared memory, and x of all parts is there. */
uint64_t kernel_stream_parts_max(uint64_t rows)
{
    uint64_t parts = 1;
    while (parts < PARTS_MAX && rows <= PART_ROWS_MAX && 2 * parts * rows <= ROWS_OF_PARTS)
        parts *= 2;
    return parts;
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const uint64_t extent = group_extent(spec);
    const bool is_stored = spec->product.kernel == KERNEL_PRODUCT_STORED;
    const char *why = NULL;
    if (spec->data != QDNN_DATA_F16 && spec->data != QDNN_DATA_BF16)
        why = is_stored ? "data is f32; product stored takes x in f16 or bf16"
                        : "data is f32; product stream takes x in f16 or bf16";
    else if (spec->stored.group_index)
        why = is_stored ? "group_index is yes; product stored takes contiguous groups"
                        : "group_index is yes; prepacked weights must have contiguous groups";
    else if (!format_is_blocks(row->format) && extent % 16 != 0)
        why = is_stored ? "product stored takes group sizes that are multiples of 16"
                        : "prepacked weights must have a group size that is a multiple of 16";
    else if (is_stored)
        stored_serves(row, spec, &why);
    else if (spec->epilogue.addend)
        why = "product stream does not take an addend";
    if (why)
        snprintf(error, error_size, "%s", why);
    else if (spec->product.tile_rows > kernel_stream_rows(row, spec->product.tile_rows))
        snprintf(error, error_size, why = "tile_rows is %llu; this product takes up to %llu in this format",
                 (unsigned long long)spec->product.tile_rows,
                 (unsigned long long)kernel_stream_rows(row, spec->product.tile_rows));
    else if (spec->product.split > kernel_stream_parts_max(spec->product.tile_rows))
        snprintf(error, error_size, why = "split is %llu; this product takes up to %llu with tile_rows %llu",
                 (unsigned long long)spec->product.split,
                 (unsigned long long)kernel_stream_parts_max(spec->product.tile_rows),
                 (unsigned long long)spec->product.tile_rows);
    return !why && (!spec->product.x_fp8 || fp8_serves(row, spec, error, error_size));
}

/* Rows of codes that begin anywhere in a byte, or are no multiple of what a lane loads, would go byte by byte. */
static bool stored_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    (void)row;
    return kernel_shape_of(spec, problem).k % 16 == 0;
}

const gemm_kernel gemm_stream = {.block = STREAM_THREADS,
                                 .outputs = outputs_of,
                                 .shared = shared_bytes,
                                 .emit = emit_stream,
                                 .serves = serves,
                                 .rows = 1,
                                 .rows_most = ROWS_MAX,
                                 .takes_experts = true},
                  gemm_stored = {.block = STREAM_THREADS,
                                 .outputs = outputs_of,
                                 .shared = shared_bytes,
                                 .emit = emit_stream,
                                 .serves = serves,
                                 .rows = 1,
                                 .rows_most = ROWS_MAX,
                                 .takes_experts = true,
                                 .fits = stored_fits};
