/* Tiles of weights in shared memory: decoded run by run if shapes allow it, otherwise element by element. */
#include "kernels/gemm/runs.h"

weights weights_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, const gemm_args *args)
{
    weights w = {.coding = {row->format, spec},
                 .layout = block_layout_of(row->format),
                 .codes = args->all.operand[QDNN_OPERAND_CODES],
                 .k = args->k,
                 .outputs = args->outputs};
    if (w.layout) {
        w.state = block_open_outside(b, w.layout);
        w.by_runs = runs_allowed(b, &w, (ptx_val){0});
        return w;
    }
    quantized q = quantized_begin(b, row, spec, &args->all);
    if (!format_is_plain(row->format))
        quantized_open(b, &q);
    w.matrix = matrix_begin(b, &q, &args->all);
    if (runs_exist(&w))
        w.by_runs = runs_allowed(b, &w, spec->epilogue.gated ? args->n : (ptx_val){0});
    return w;
}

ptx_val round_offset(ptx_builder *b, ptx_val k)
{
    ptx_val chunk = ptx_shl(b, ptx_shr(b, k, 3), 4), half = ptx_shl(b, ptx_and(b, k, 4), 7);
    return ptx_add(b, ptx_add(b, chunk, half), ptx_shl(b, ptx_and(b, k, 3), 2));
}

/* ---- The outputs of a tile ---- */

typedef struct staging {
    const weights *w;
    const weight_tile *tile;
    ptx_val first, second, k; /* u64 */
} staging;

static ptx_val output_of(ptx_builder *b, const staging *s, ptx_val number)
{
    ptx_val wide = ptx_cvt(b, PTX_U64, number), output = ptx_add(b, s->first, wide);
    if (s->second.kind == PTX_NOTHING)
        return output;
    const unsigned half = s->tile->outputs / 2;
    ptx_val other = ptx_add(b, s->second, ptx_sub(b, wide, ptx_u64(b, half)));
    return ptx_selp(b, output, other, ptx_setp(b, PTX_LT, number, half));
}

static ptx_val tile_address(ptx_builder *b, const staging *s, ptx_val number, ptx_val k)
{
    return ptx_add(b, ptx_mad(b, number, TILE_PITCH, s->tile->shared), round_offset(b, k));
}

/* ---- Formats with groups, and plain ones: element by element ---- */

ptx_val weights_element(ptx_builder *b, const weights *w, ptx_val output, ptx_val k)
{
    const bool by_columns = w->coding.spec->product.reduction == KERNEL_K_COLUMNS;
    ptx_val row = by_columns ? output : k, column = by_columns ? k : output;
    return matrix_element(b, &w->matrix, row, column);
}

/* Neighbouring threads take neighbouring columns of the matrix: k of one output, or outputs of one k. */
static void stage_elements(ptx_builder *b, const staging *s)
{
    const weights *w = s->w;
    const bool by_columns = w->coding.spec->product.reduction == KERNEL_K_COLUMNS;
    const unsigned outputs = s->tile->outputs;
    ptx_val i = ptx_for(b, ptx_tid_x(b), (int)(outputs * ROUND), (int)s->tile->threads);
    ptx_val number = by_columns ? ptx_shr(b, i, ceil_log2(ROUND)) : ptx_and(b, i, (int)outputs - 1);
    ptx_val k = by_columns ? ptx_and(b, i, ROUND - 1) : ptx_shr(b, i, ceil_log2(outputs));
    ptx_val output = output_of(b, s, number), at = ptx_add(b, s->k, ptx_cvt(b, PTX_U64, k));
    ptx_val value = ptx_var(b, ptx_f32(b, 0));
    ptx_if(b, ptx_setp_and(b, PTX_LT, at, w->k, ptx_setp(b, PTX_LT, output, w->outputs)));
    ptx_assign(b, value, weights_element(b, w, output, at));
    ptx_end_if(b);
    ptx_st_shared(b, tile_address(b, s, number, k), 0, value);
    ptx_end_for(b);
}

/* Whether `count` k, starting at a multiple of `count`, always have the same groups. */
static bool k_share_groups(const weights *w, unsigned count)
{
    return w->coding.spec->product.reduction == KERNEL_K_ROWS && !format_is_plain(w->coding.format) &&
           matrix_rows_share_groups(w->coding.spec, count);
}

/* A code that begins at a bit (u64) of dense bytes, if it exists; the second byte is read only if the code
 * reaches it. */
static ptx_val code_at_bit(ptx_builder *b, const weights *w, ptx_val bit, ptx_val exists)
{
    const unsigned bits = w->coding.format->facts.bits;
    ptx_val none = ptx_u32(b, 0), place = ptx_cvt(b, PTX_U32, bit),
            at = ptx_add(b, w->codes, ptx_shr(b, bit, 3));
    if (nibbles_are_swapped(&w->coding))
        place = ptx_xor(b, place, 4);
    ptx_val shift = ptx_and(b, place, 7),
            code = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_U8, at, 0, none);
    if (!codes_are_direct(&w->coding)) {
        ptx_val reaches = ptx_setp_and(b, PTX_GT, ptx_add(b, shift, bits), 8, exists);
        ptx_val more = ptx_ld_if(b, reaches, PTX_GLOBAL, PTX_NC, PTX_U8, at, 1, none);
        code = ptx_or(b, code, ptx_shl(b, more, 8));
    }
    return codes_are_bytes(&w->coding) ? code : ptx_and(b, ptx_shr(b, code, shift), (1 << bits) - 1);
}

/* The same for weights [K, N] whose groups are long: a thread has one output and every `step`-th k, and
 * loads a group's scale and zero once for several of them. For elements that do not exist, the groups of
 * existing ones are loaded. */
static void stage_columns(ptx_builder *b, const staging *s, unsigned step)
{
    const weights *w = s->w;
    const matrix *m = &w->matrix;
    const unsigned bits = w->coding.format->facts.bits;
    unsigned shared = ROUND;
    while (!k_share_groups(w, shared))
        shared /= 2;
    ptx_val tid = ptx_tid_x(b), number = ptx_and(b, tid, (int)s->tile->outputs - 1);
    ptx_val k = ptx_shr(b, tid, ceil_log2(s->tile->outputs)), output = output_of(b, s, number);
    ptx_val to = tile_address(b, s, number, k), has = ptx_setp(b, PTX_LT, output, w->outputs);
    ptx_val column = ptx_min(b, output, ptx_sub(b, w->outputs, 1)), last = ptx_sub(b, w->k, 1);
    ptx_val first = ptx_add(b, s->k, ptx_cvt(b, PTX_U64, k));
    ptx_val bit = ptx_mul(b, ptx_mad(b, first, m->columns, output), ptx_u64(b, bits));
    ptx_val further = ptx_mul(b, m->columns, ptx_u64(b, step * bits));
    group_values group = {0};
    for (unsigned i = 0; i < ROUND; i += step) {
        ptx_val at = ptx_add(b, first, ptx_u64(b, i)), exists = ptx_setp_and(b, PTX_LT, at, w->k, has);
        if (i % shared == 0)
            group = matrix_group(b, m, ptx_min(b, at, last), column);
        ptx_val value = element_decode(b, &m->q, &group, code_at_bit(b, w, bit, exists));
        ptx_st_shared(b, to, (int)(i / CHUNK * LOAD_BYTES), ptx_selp(b, value, ptx_f32(b, 0), exists));
        bit = ptx_add(b, bit, further);
    }
}

/* ---- The same in runs of eight ---- */

/* Neighbouring threads take neighbouring chunks of an output. */
static ptx_val place_along_k(ptx_builder *b, const staging *s, ptx_val i, ptx_val *number, ptx_val *k)
{
    ptx_val chunk = ptx_and(b, i, ROUND / CHUNK - 1);
    *number = ptx_shr(b, i, ceil_log2(ROUND / CHUNK));
    *k = ptx_shl(b, chunk, 3);
    return ptx_mad(b, chunk, 16, ptx_mad(b, *number, TILE_PITCH, s->tile->shared));
}

/* Or neighbouring groups of eight outputs at one k. */
static ptx_val place_along_outputs(ptx_builder *b, const staging *s, ptx_val i, ptx_val *number, ptx_val *k)
{
    const unsigned groups = s->tile->outputs / CHUNK;
    *number = ptx_shl(b, ptx_and(b, i, (int)groups - 1), 3);
    *k = ptx_shr(b, i, ceil_log2(groups));
    return tile_address(b, s, *number, *k);
}

static void stage_runs(ptx_builder *b, const staging *s)
{
    const weights *w = s->w;
    ptx_val i = ptx_for(b, ptx_tid_x(b), (int)(s->tile->outputs * ROUND / CHUNK), (int)s->tile->threads),
            number, k;
    run_target to = {.half = ROUND_BYTES / 2, .step = TILE_PITCH};
    to.address = (runs_along_k(w) ? place_along_k : place_along_outputs)(b, s, i, &number, &k);
    ptx_val output = output_of(b, s, number), at = ptx_add(b, s->k, ptx_cvt(b, PTX_U64, k));
    weight_run run;
    ptx_if(b, ptx_setp_and(b, PTX_LT, at, w->k, ptx_setp(b, PTX_LT, output, w->outputs)));
    run_base base = run_base_of(b, w, output);
    run_fetch(b, w, &base, ptx_cvt(b, PTX_U32, at), &run);
    run_put(b, w, &run, &to);
    ptx_else(b);
    run_put_zeros(b, w, &to);
    ptx_end_if(b);
    ptx_end_for(b);
}

/* ---- Blocks: run by run ---- */

enum { RUN_MAX = CHUNK };

/* Stores `count` neighbours, 4 or 8, that begin at a multiple of their number. */
static void put_run(ptx_builder *b, ptx_val address, const ptx_val *values, unsigned count)
{
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, 0, values, 4);
    if (count == CHUNK)
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, ROUND_BYTES / 2, values + 4, 4);
}

/* All strands of a run, or zeros where there is no block. */
static void stage_run(ptx_builder *b, const staging *s, const block_place *place, ptx_val number,
                      ptx_val element, ptx_val exists)
{
    const block_layout *layout = s->w->layout;
    const block_section *section = &layout->sections[place->kind];
    ptx_val values[STRANDS_MAX][RUN_MAX];
    for (unsigned i = 0; i < section->strands; i++)
        for (unsigned j = 0; j < place->bytes; j++)
            values[i][j] = ptx_var(b, ptx_f32(b, 0));
    ptx_if(b, exists);
    block_run run;
    block_fetch(b, layout, place, &run);
    block_open_run(b, &s->w->state, &run);
    for (unsigned i = 0; i < section->strands; i++) {
        block_strand strand = block_strand_of(b, layout, &run, i);
        for (unsigned j = 0; j < place->bytes; j++)
            ptx_assign(b, values[i][j], block_decode(b, layout, &s->w->state, &strand, j));
    }
    ptx_end_if(b);
    for (unsigned i = 0; i < section->strands; i++) {
        ptx_val k = i ? ptx_add(b, element, (int)(i * section->span)) : element;
        put_run(b, tile_address(b, s, number, k), values[i], place->bytes);
    }
}

static void stage_section(ptx_builder *b, const staging *s, unsigned kind)
{
    const block_layout *layout = s->w->layout;
    const block_section *section = &layout->sections[kind];
    const unsigned bytes = section->span < RUN_MAX ? section->span : RUN_MAX;
    const unsigned runs = section->count * section->span / bytes, blocks = ROUND / layout->elements;
    ptx_val i = ptx_for(b, ptx_tid_x(b), (int)(s->tile->outputs * blocks * runs), (int)s->tile->threads);
    ptx_val run = ptx_and(b, i, (int)runs - 1), rest = ptx_shr(b, i, ceil_log2(runs));
    ptx_val block = ptx_and(b, rest, (int)blocks - 1), number = ptx_shr(b, rest, ceil_log2(blocks));
    ptx_val output = output_of(b, s, number), first = ptx_mul(b, block, (int)layout->elements);
    ptx_val at = ptx_add(b, s->k, ptx_cvt(b, PTX_U64, first));
    ptx_val exists = ptx_setp_and(b, PTX_LT, at, s->w->k, ptx_setp(b, PTX_LT, output, s->w->outputs));
    block_place place = block_place_of_run(b, layout, kind, run, bytes);
    const unsigned shift = ceil_log2(layout->elements);
    ptx_val of_row = ptx_shr(b, s->w->k, shift);
    place.space = PTX_GLOBAL;
    place.align = block_align(layout);
    place.block = ptx_at(b, s->w->codes, ptx_mad(b, output, of_row, ptx_shr(b, at, shift)), layout->bytes);
    ptx_val element = ptx_add(b, first, block_place_element(b, layout, &place));
    stage_run(b, s, &place, number, element, exists);
    ptx_end_for(b);
}

void weights_stage(ptx_builder *b, const weights *w, const weight_tile *tile, ptx_val first, ptx_val second,
                   ptx_val k)
{
    staging s = {w, tile, first, second, k};
    if (!w->layout) {
        if (w->by_runs.kind != PTX_NOTHING) {
            ptx_uniform(b);
            ptx_if(b, w->by_runs);
            stage_runs(b, &s);
            ptx_else(b);
        }
        const unsigned step = tile->threads / tile->outputs;
        if (w->coding.spec->stored.layout == QDNN_LAYOUT_BYTES && k_share_groups(w, step))
            stage_columns(b, &s, step);
        else
            stage_elements(b, &s);
        if (w->by_runs.kind != PTX_NOTHING)
            ptx_end_if(b);
        return;
    }
    for (unsigned kind = 0; kind < SECTION_KINDS_MAX && w->layout->sections[kind].count; kind++)
        stage_section(b, &s, kind);
}
