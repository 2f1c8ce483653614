/* Runs of weights: loads eight codes as words, with one group or eight neighbouring groups, and decodes
 * them into shared memory. */
#include "kernels/gemm/runs.h"

static unsigned bits_of(const weights *w)
{
    return w->coding.format->facts.bits;
}

/* Interleaved words: a stream of codes runs down each column. */
static bool in_columns(const weights *w)
{
    return w->coding.spec->stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED;
}

static bool is_plain(const weights *w)
{
    return format_is_plain(w->coding.format);
}

bool runs_along_k(const weights *w)
{
    return w->layout || in_columns(w) == (w->coding.spec->product.reduction == KERNEL_K_ROWS);
}

bool runs_exist(const weights *w)
{
    if (w->layout || is_plain(w))
        return true;
    return in_columns(w) ? matrix_rows_share_groups(w->coding.spec, CHUNK)
                         : !matrix_groups_are_many(w->coding.spec, CHUNK);
}

/* ---- What runs need of shapes and pointers ---- */

static ptx_val is_multiple(ptx_builder *b, ptx_val x, unsigned of)
{
    return ptx_setp(b, PTX_EQ, ptx_and(b, x, ptx_u64(b, of - 1)), ptx_u64(b, 0));
}

/* Codes of 3, 5 or 6 bits in dense bytes are read as a stream of words, so the last word must be complete. */
static bool is_odd_stream(const weights *w)
{
    return w->coding.spec->stored.layout == QDNN_LAYOUT_BYTES && !codes_are_direct(&w->coding);
}

static unsigned codes_alignment(const weights *w)
{
    if (is_plain(w))
        return LOAD_BYTES;
    return w->coding.spec->stored.layout == QDNN_LAYOUT_BYTES && !is_odd_stream(w) ? bits_of(w) : 4;
}

/* Whether distances in bytes, from row to row and from chunk to chunk, fit into 32 bits. */
static ptx_val is_moderate(ptx_builder *b, const weights *w, ptx_val all)
{
    if (w->layout || w->coding.spec->product.reduction == KERNEL_K_ROWS) /* else K is the columns */
        all = ptx_setp_and(b, PTX_LT, w->k, ptx_u64(b, UINT64_C(1) << 31), all);
    return w->layout ? all : ptx_setp_and(b, PTX_LT, w->matrix.columns, ptx_u64(b, UINT64_C(1) << 28), all);
}

ptx_val runs_allowed(ptx_builder *b, const weights *w, ptx_val second)
{
    ptx_val all = is_moderate(b, w, is_multiple(b, w->k, CHUNK));
    if (w->layout)
        return all;
    ptx_val along = in_columns(w) ? w->matrix.rows : w->matrix.columns;
    all = ptx_and(b, all, emit_aligned(b, w->codes, codes_alignment(w)));
    all = ptx_and(b, all, is_multiple(b, along, is_odd_stream(w) ? 32 : CHUNK));
    if (second.kind != PTX_NOTHING && !runs_along_k(w))
        all = ptx_and(b, all, is_multiple(b, second, CHUNK));
    return is_plain(w) || in_columns(w) ? all : matrix_groups_aligned(b, &w->matrix, CHUNK, all);
}

/* ---- Addresses ---- */

static bool by_columns(const weights *w)
{
    return w->coding.spec->product.reduction == KERNEL_K_COLUMNS;
}

/* Whether the address of a run follows from base and k by simple steps: runs of whole bytes or words.
 * Otherwise it is computed from scratch each time. */
static bool is_direct(const weights *w)
{
    return w->layout || is_plain(w) ||
           (in_columns(w) ? CHUNK * bits_of(w) % 32 == 0 : codes_are_direct(&w->coding));
}

/* Bytes of a row of the matrix. */
static ptx_val row_bytes(ptx_builder *b, const weights *w)
{
    const kernel_spec *spec = w->coding.spec;
    if (!is_plain(w) && spec->stored.layout != QDNN_LAYOUT_BYTES)
        return ptx_shl(b, w->matrix.row_words, 2);
    return ptx_shr(b, ptx_mul(b, w->matrix.columns, ptx_u64(b, bits_of(w))), 3);
}

/* Where the codes of an output begin. */
static ptx_val codes_of_output(ptx_builder *b, const weights *w, ptx_val output)
{
    const unsigned bits = bits_of(w);
    if (w->layout)
        return ptx_mad(
            b, output,
            ptx_mul(b, ptx_shr(b, w->k, ceil_log2(w->layout->elements)), ptx_u64(b, w->layout->bytes)),
            w->codes);
    if (in_columns(w))
        return by_columns(w) ? ptx_mad(b, ptx_shr(b, output, 3),
                                       ptx_mul(b, w->matrix.columns, ptx_u64(b, bits)), w->codes)
                             : ptx_at(b, w->codes, output, 4);
    return by_columns(w) ? ptx_mad(b, output, row_bytes(b, w), w->codes)
                         : ptx_at(b, w->codes, ptx_shr(b, output, 3), bits);
}

/* Bytes between neighbouring k, where k are rows; for interleaved words, between groups of eight k. */
static ptx_val pitch_of(ptx_builder *b, const weights *w)
{
    ptx_val bytes = in_columns(w) ? ptx_mul(b, w->matrix.columns, ptx_u64(b, bits_of(w))) : row_bytes(b, w);
    return ptx_cvt(b, PTX_U32, bytes);
}

/* Whether the groups of a line (one output) can be addressed on their own, so that the line's offset is
 * computed once. */
static bool lines_stand_alone(const weights *w)
{
    const kernel_spec *spec = w->coding.spec;
    return !w->layout && !is_plain(w) && by_columns(w) && !in_columns(w) &&
           spec->stored.groups == QDNN_GROUPS_ROWS && spec->stored.scale_order == QDNN_SCALE_ORDER_DEFAULT &&
           spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE && !spec->stored.nested &&
           !spec->stored.zero_packed;
}

static void open_line_alone(ptx_builder *b, const weights *w, run_base *base)
{
    const kernel_spec *spec = w->coding.spec;
    ptx_val number = ptx_mul(b, emit_divide(b, base->output, spec->stored.group_rows), w->matrix.groups);
    sidecars *side = &base->matrix.q.side;
    side->scale = ptx_at(b, side->scale, number, scale_bytes(spec->stored.scale));
    if (format_has_zero(w->coding.format))
        side->zero = ptx_at(b, side->zero, number, element_bytes(spec->stored.zero));
    base->line = ptx_mov(b, ptx_u64(b, 0));
}

run_base run_base_of(ptx_builder *b, const weights *w, ptx_val output)
{
    run_base base = {.output = output, .line = output, .matrix = w->matrix};
    if (!is_direct(w))
        return base;
    base.codes = codes_of_output(b, w, output);
    if (!w->layout && !by_columns(w))
        base.pitch = pitch_of(b, w);
    if (lines_stand_alone(w))
        open_line_alone(b, w, &base);
    return base;
}

static ptx_val run_address(ptx_builder *b, const weights *w, const run_base *base, ptx_val k)
{
    if (w->layout)
        return ptx_at(b, base->codes, ptx_shr(b, k, ceil_log2(w->layout->elements)), w->layout->bytes);
    if (by_columns(w))
        return in_columns(w) ? ptx_at(b, base->codes, k, 4)
                             : ptx_at(b, base->codes, ptx_shr(b, k, 3), bits_of(w));
    return ptx_mad_wide(b, in_columns(w) ? ptx_shr(b, k, 3) : k, base->pitch, base->codes);
}

/* ---- Formats in groups ---- */

/* Loads eight codes of a column, from words that lie a row apart. */
static void fetch_words(ptx_builder *b, const weights *w, ptx_val address, ptx_val *quads)
{
    quads[0] = ptx_ld_global_nc(b, PTX_U32, address, 0);
    quads[1] = codes_are_nibbles(&w->coding)
                   ? ptx_shr(b, quads[0], 16)
                   : ptx_ld_global_nc(b, PTX_U32, ptx_at(b, address, w->matrix.columns, 4), 0);
}

static void fetch_direct(ptx_builder *b, const weights *w, ptx_val address, ptx_val *quads)
{
    if (in_columns(w)) {
        fetch_words(b, w, address, quads);
        return;
    }
    codes_load(b, &w->matrix.q, address, 0, CHUNK, quads);
    if (w->coding.spec->stored.layout == QDNN_LAYOUT_AWQ) /* the second four lie 8 bits above the first */
        quads[1] = ptx_shr(b, quads[0], 8);
}

/* Codes that may begin anywhere in a word. Words that they do not reach may not exist, and are not read. */
static void fetch_column(ptx_builder *b, const weights *w, ptx_val row, ptx_val column, ptx_val *quads)
{
    const unsigned bits = bits_of(w);
    ptx_val bit = ptx_mul(b, row, ptx_u64(b, bits)), words[QUADS_WORDS];
    ptx_val word = ptx_mad(b, ptx_shr(b, bit, 5), w->matrix.columns, column), shift, reach;
    shift = ptx_and(b, ptx_cvt(b, PTX_U32, bit), 31);
    reach = ptx_add(b, shift, CHUNK * bits);
    for (unsigned i = 0; i < QUADS_WORDS; i++) {
        words[i] = ptx_u32(b, 0);
        if (i < quads_words(bits, CHUNK))
            words[i] = ptx_ld_if(b, ptx_setp(b, PTX_GT, reach, 32 * i), PTX_GLOBAL, PTX_NC, PTX_U32,
                                 ptx_at(b, w->codes, word, 4), 0, words[i]);
        word = ptx_add(b, word, w->matrix.columns);
    }
    split_quads(b, bits, words, shift, CHUNK, quads);
}

static void fetch_row(ptx_builder *b, const weights *w, ptx_val row, ptx_val column, ptx_val *quads)
{
    const matrix *m = &w->matrix;
    word_stream s = {.bits = bits_of(w), .first = w->codes};
    if (w->coding.spec->stored.layout == QDNN_LAYOUT_BYTES) {
        stream_quads(b, &s, ptx_mad(b, row, m->columns, column), CHUNK, quads);
        return;
    }
    s.first = ptx_at(b, w->codes, ptx_mul(b, row, m->row_words), 4);
    stream_quads(b, &s, column, CHUNK, quads);
}

bool runs_share_groups(const weights *w)
{
    return !w->layout && !is_plain(w) && runs_exist(w) && !runs_along_k(w) && !by_columns(w) &&
           is_direct(w) && matrix_rows_share_groups(w->coding.spec, CHUNK);
}

void run_fetch_beside(ptx_builder *b, const weights *w, const weight_run *first, ptx_val k, weight_run *run)
{
    *run = *first;
    run->k = k;
    fetch_direct(b, w, run_address(b, w, &first->base, k), run->quads);
}

static void fetch_grouped(ptx_builder *b, const weights *w, ptx_val k, weight_run *run)
{
    const run_base *base = &run->base;
    ptx_val wide = ptx_cvt(b, PTX_U64, k), row = by_columns(w) ? base->output : wide,
            column = by_columns(w) ? wide : base->output, line = by_columns(w) ? base->line : row;
    if (is_direct(w))
        fetch_direct(b, w, run_address(b, w, base, k), run->quads);
    else
        (in_columns(w) ? fetch_column : fetch_row)(b, w, row, column, run->quads);
    if (!in_columns(w)) {
        matrix_row_groups(b, &base->matrix, line, column, CHUNK, run->groups);
        return;
    }
    run->groups[0] = matrix_group(b, &base->matrix, row, column);
    for (unsigned i = 1; i < CHUNK; i++)
        run->groups[i] = run->groups[0];
}

static unsigned position_of(const weights *w, unsigned element)
{
    return w->coding.spec->stored.layout == QDNN_LAYOUT_BYTES
               ? quad_position(&w->coding, element)
               : stream_position(bits_of(w), w->coding.spec->stored.layout == QDNN_LAYOUT_AWQ, element);
}

static void decode_grouped(ptx_builder *b, const weights *w, const weight_run *run, ptx_val *values)
{
    const quantized *q = &w->matrix.q;
    unsigned positions[QUAD];
    for (unsigned j = 0; j < QUAD; j++)
        positions[j] = position_of(w, j);
    for (unsigned i = 0; i < CHUNK; i += QUAD) {
        ptx_val units[QUAD];
        quad_units(b, &w->coding, &q->state, run->quads[i / QUAD], positions, units);
        for (unsigned j = 0; j < QUAD; j++)
            values[i + j] = group_decode(b, &w->coding, &q->side, &run->groups[i + j], units[j]);
    }
}

/* ---- Blocks: a run is eight neighbours of one strand, or two whole strands of four ---- */

static void put_values(ptx_builder *b, const weights *w, const ptx_val *values, const run_target *to)
{
    if (runs_along_k(w)) {
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to->address, 0, values, QUAD);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to->address, to->half, values + QUAD, QUAD);
        return;
    }
    for (unsigned i = 0; i < CHUNK; i++)
        ptx_st_shared(b, to->address, (int)i * to->step, values[i]);
}

static bool has_one_kind(const block_layout *layout)
{
    return layout->sections[1].count == 0;
}

/* The place of chunk number `chunk` (u32) among those of a kind of section; and its strand (where two
 * short strands make a chunk, the number of that pair). */
static block_place chunk_place(ptx_builder *b, const block_layout *layout, unsigned kind, ptx_val chunk,
                               ptx_val *strand)
{
    const block_section *section = &layout->sections[kind];
    if (section->span < CHUNK) {
        *strand = chunk;
        return block_place_of_run(b, layout, kind, ptx_u32(b, 0), section->span);
    }
    const unsigned across = section->span / CHUNK, chunks = across * section->strands;
    ptx_val inside = chunk, run;
    if (section->count > 1)
        inside = ptx_and(b, chunk, (int)chunks - 1);
    run = ptx_and(b, inside, (int)across - 1);
    if (section->count > 1)
        run = ptx_mad(b, ptx_shr(b, chunk, ceil_log2(chunks)), (int)across, run);
    *strand = ptx_shr(b, inside, ceil_log2(across));
    return block_place_of_run(b, layout, kind, run, CHUNK);
}

static void fetch_block(ptx_builder *b, const weights *w, unsigned kind, ptx_val chunk, weight_run *run)
{
    block_place place = chunk_place(b, w->layout, kind, chunk, &run->strand);
    place.space = PTX_GLOBAL;
    place.align = block_align(w->layout);
    place.block = run_address(b, w, &run->base, run->k);
    if (block_has_one(w->layout))
        block_fetch_one(b, w->layout, &place, run->strand, &run->block);
    else
        block_fetch(b, w->layout, &place, &run->block);
}

static void decode_strand(ptx_builder *b, const weights *w, const block_run *run, const block_strand *strand,
                          ptx_val *values)
{
    for (unsigned i = 0; i < run->place.bytes; i++)
        values[i] = block_decode(b, w->layout, &w->state, strand, i);
}

static void put_block(ptx_builder *b, const weights *w, const weight_run *run, const run_target *to)
{
    const block_section *section = &w->layout->sections[run->block.place.kind];
    const unsigned in_chunk = section->span < CHUNK ? CHUNK / section->span : 1;
    block_run open = run->block;
    ptx_val values[CHUNK];
    block_open_run(b, &w->state, &open);
    if (block_has_one(w->layout)) {
        block_strand one = block_strand_one(b, w->layout, &open, run->strand);
        decode_strand(b, w, &open, &one, values);
        put_values(b, w, values, to);
        return;
    }
    for (unsigned i = 0; i < section->strands; i += in_chunk) {
        const bool is_choice = section->strands > in_chunk;
        if (is_choice) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_EQ, run->strand, (int)(i / in_chunk)));
        }
        for (unsigned j = 0; j < in_chunk; j++) {
            block_strand strand = block_strand_of(b, w->layout, &open, i + j);
            decode_strand(b, w, &open, &strand, values + j * section->span % CHUNK);
        }
        put_values(b, w, values, to);
        if (is_choice)
            ptx_end_if(b);
    }
}

/* The number of the run's chunk within its block. */
static ptx_val chunk_in_block(ptx_builder *b, const weights *w, const weight_run *run)
{
    ptx_val k = run->k.type == PTX_U32 ? run->k : ptx_cvt(b, PTX_U32, run->k), chunk = ptx_shr(b, k, 3);
    return ptx_and(b, chunk, (int)(w->layout->elements / CHUNK - 1));
}

/* Blocks with several kinds of sections: the loads depend on the kind, too, so fetching is done here. */
static void put_block_of_kinds(ptx_builder *b, const weights *w, const weight_run *run, const run_target *to)
{
    ptx_val chunk = chunk_in_block(b, w, run);
    for (unsigned kind = 0; kind < SECTION_KINDS_MAX && w->layout->sections[kind].count; kind++) {
        const block_section *section = &w->layout->sections[kind];
        const unsigned first = section_first_element(w->layout, kind) / CHUNK;
        const unsigned count = section->count * section->span * section->strands / CHUNK;
        ptx_val of_kind = ptx_sub(b, chunk, (int)first);
        weight_run part = *run;
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_LT, of_kind, (int)count)); /* unsigned: also rejects negative numbers */
        fetch_block(b, w, kind, of_kind, &part);
        put_block(b, w, &part, to);
        ptx_end_if(b);
    }
}

/* ---- All ---- */

void run_fetch(ptx_builder *b, const weights *w, const run_base *base, ptx_val k, weight_run *run)
{
    *run = (weight_run){.base = *base, .k = k};
    if (w->layout && has_one_kind(w->layout))
        fetch_block(b, w, 0, chunk_in_block(b, w, run), run);
    else if (is_plain(w))
        emit_load_words(b, run_address(b, w, base, k), 0, CHUNK * bits_of(w) / 32, run->words);
    else if (!w->layout)
        fetch_grouped(b, w, k, run);
}

static void decode_plain(ptx_builder *b, const weights *w, const weight_run *run, ptx_val *values)
{
    const unsigned in_word = 32 / bits_of(w);
    for (unsigned i = 0; i < CHUNK; i += in_word)
        emit_widen_word(b, w->coding.format->facts.storage, run->words[i / in_word], values + i);
}

void run_put(ptx_builder *b, const weights *w, const weight_run *run, const run_target *to)
{
    ptx_val values[CHUNK];
    if (w->layout) {
        (has_one_kind(w->layout) ? put_block : put_block_of_kinds)(b, w, run, to);
        return;
    }
    (is_plain(w) ? decode_plain : decode_grouped)(b, w, run, values);
    put_values(b, w, values, to);
}

void run_put_zeros(ptx_builder *b, const weights *w, const run_target *to)
{
    ptx_val zero = ptx_mov(b, ptx_f32(b, 0)), values[CHUNK];
    for (unsigned i = 0; i < CHUNK; i++)
        values[i] = zero;
    put_values(b, w, values, to);
}

void run_put_elements(ptx_builder *b, const weights *w, ptx_val output, ptx_val k, const run_target *to)
{
    const bool along_k = runs_along_k(w);
    ptx_val last = ptx_sub(b, w->outputs, 1), i = ptx_for(b, ptx_u32(b, 0), CHUNK, 1);
    ptx_val wide = ptx_cvt(b, PTX_U64, i), at = along_k ? ptx_add(b, k, wide) : k;
    ptx_val of = along_k ? output : ptx_min(b, ptx_add(b, output, wide), last), address;
    if (along_k) {
        ptx_val half = ptx_mul(b, ptx_shr(b, i, 2), to->half);
        address = ptx_add(b, ptx_add(b, to->address, half), ptx_shl(b, ptx_and(b, i, 3), 2));
    } else {
        address = ptx_mad(b, i, to->step, to->address);
    }
    ptx_val value = ptx_var(b, ptx_f32(b, 0));
    ptx_if(b, ptx_setp(b, PTX_LT, at, w->k));
    ptx_assign(b, value, weights_element(b, w, of, at));
    ptx_end_if(b);
    ptx_st_shared(b, address, 0, value);
    ptx_end_for(b);
}
