/* x of a strip in shared memory. A "chunk" is one row of one unit, 64 k: eight "pieces" of 16 bytes. Piece
 * p of row r lies at place p ^ (r & 7), so that the eight rows that ldmatrix reads at a time are in
 * different banks. The chunks of a row follow each other; with a table of pairs they fill the gaps between
 * its entries. If x of a whole strip does not fit, a part of it (a phase) is loaded at a time: 64 KiB is
 * what sm_75 has. On SMs that multiply FP8, a chunk is one row of two units. */
#include "kernels/tensor/stream.h"

enum { SHARED_BYTES = 65536, CHUNK_PIECES = 8 };

static unsigned chunk_stride(bool has_table)
{
    return has_table ? 2 * CHUNK_BYTES : CHUNK_BYTES;
}

static unsigned phase_units(unsigned rows, const stream_beside *beside)
{
    unsigned units = UNITS;
    while (rows * units * chunk_stride(beside->has_table) + beside->lines + beside->codebook > SHARED_BYTES)
        units /= 2;
    return units;
}

unsigned stream_shared_bytes(unsigned rows, const stream_beside *beside)
{
    return beside->has_table ? SHARED_BYTES : rows * phase_units(rows, beside) * CHUNK_BYTES + beside->lines;
}

unsigned stream_x_line_bytes(const stream *s)
{
    return s->phase_units / s->form.unit_elements * s->chunk;
}

static unsigned piece_k(const stream *s)
{
    return 8 * s->form.unit_elements;
}

/* `place` (u32): of the piece, in its chunk. */
static ptx_val x_address_of(ptx_builder *b, const stream *s, ptx_val row, ptx_val chunk, ptx_val place)
{
    ptx_val at = ptx_mad(b, row, (int)stream_x_line_bytes(s), ptx_shl(b, place, 4));
    if (chunk.kind != PTX_NOTHING)
        at = ptx_mad(b, chunk, (int)s->chunk, at);
    return ptx_add(b, s->x_shared, at);
}

void stream_x_begin(ptx_builder *b, stream *s)
{
    s->chunk = chunk_stride(s->beside.has_table);
    s->phase_units = phase_units(s->rows, &s->beside);
    ptx_val swizzle = ptx_and(b, s->lane, 7), piece = ptx_shr(b, s->lane, 3), row = swizzle;
    ptx_val pieces = ptx_u32(b, 3);
    if (s->m_tiles > 1) { /* two pieces of sixteen rows instead of four pieces of eight */
        row = ptx_mad(b, ptx_shr(b, s->lane, 4), 8, swizzle);
        pieces = ptx_u32(b, 1);
    }
    ptx_val place = ptx_lop3(b, piece, pieces, swizzle, (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C);
    s->x_lane[0] = x_address_of(b, s, row, (ptx_val){0}, place);
    for (unsigned step = 1; step < UNIT_STEPS; step++)
        s->x_lane[step] = ptx_xor(b, s->x_lane[0], (int)(32 * step));
}

ptx_val stream_x_address(ptx_builder *b, const stream *s, ptx_val row, ptx_val piece)
{
    ptx_val place = ptx_xor(b, piece, ptx_and(b, row, 7));
    if (s->chunk == CHUNK_BYTES) /* no gaps between chunks */
        return x_address_of(b, s, row, (ptx_val){0}, place);
    return x_address_of(b, s, row, ptx_shr(b, piece, 3), ptx_and(b, place, 7));
}

/* The number of words of a piece as it lies in memory. */
static unsigned piece_words(const stream *s)
{
    return piece_k(s) * s->form.bytes / 4;
}

static void store_piece(ptx_builder *b, const stream *s, ptx_val to, int offset, const ptx_val *words)
{
    ptx_val units[4];
    if (s->spec->product.x_fp8)
        stream_fp8_piece(b, s, words, units);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, offset, s->spec->product.x_fp8 ? units : words, 4);
}

static void copy_existing_piece(ptx_builder *b, const stream *s, ptx_val to, int offset, ptx_val from)
{
    if (s->form.is_async) {
        ptx_cp_async_cg(b, to, offset, from, 0, 0);
        return;
    }
    ptx_val words[4];
    emit_load_words(b, from, 0, piece_words(s), words);
    store_piece(b, s, to, offset, words);
}

/* Copies one piece, or zeros if it does not exist. */
static void copy_piece(ptx_builder *b, const stream *s, ptx_val to, int offset, ptx_val from, ptx_val exists)
{
    const unsigned count = piece_words(s);
    if (s->form.is_async) {
        ptx_cp_async_cg_zfill(b, to, offset, from, 0, ptx_selp(b, ptx_u32(b, 16), ptx_u32(b, 0), exists), 0);
        return;
    }
    ptx_val words[4], loaded[4];
    for (unsigned c = 0; c < count; c++)
        words[c] = ptx_var(b, ptx_u32(b, 0));
    ptx_if(b, exists);
    emit_load_words(b, from, 0, count, loaded);
    for (unsigned c = 0; c < count; c++)
        ptx_assign(b, words[c], loaded[c]);
    ptx_end_if(b);
    store_piece(b, s, to, offset, words);
}

ptx_val stream_row(ptx_builder *b, const stream *s, ptx_val row)
{
    if (!s->spec->product.grouped)
        return ptx_cvt(b, PTX_U64, ptx_add(b, s->m0, row));
    ptx_val wide = ptx_cvt(b, PTX_U64, row);
    return row_tile_row(b, &s->at, wide, row_tile_has(b, &s->at, wide));
}

static ptx_val x_address(ptx_builder *b, const stream *s, ptx_val row, ptx_val k)
{
    ptx_val x_row = x_row_of(b, s->spec, stream_row(b, s, row));
    ptx_val index = ptx_mad(b, x_row, s->args.x_stride, ptx_cvt(b, PTX_U64, k));
    return ptx_at(b, s->args.all.operand[QDNN_OPERAND_X], index, s->form.bytes);
}

/* A thread copies the same piece of every few rows. From one of its rows to the next, the swizzle of the
 * place changes if they are four apart, but not if they are eight apart. */
static void copy_x(ptx_builder *b, const stream *s, unsigned phase, bool all_exist)
{
    const unsigned pieces = s->phase_units * UNIT_K / piece_k(s), together = STREAM_THREADS / pieces;
    ptx_val tid = ptx_tid_x(b), piece = ptx_and(b, tid, (int)pieces - 1),
            first = ptx_shr(b, tid, ceil_log2(pieces));
    ptx_val k = ptx_add(b, ptx_mad(b, piece, (int)piece_k(s), s->k0), (int)(phase * s->phase_units * UNIT_K));
    ptx_val in_k = ptx_setp(b, PTX_LT, k, s->k), left = ptx_sub(b, s->rows_x, s->m0);
    ptx_val from = x_address(b, s, first, k);
    ptx_val step = ptx_mul(b, s->args.x_stride, ptx_u64(b, s->form.bytes * together));
    ptx_val to[2] = {stream_x_address(b, s, first, piece), {0}};
    to[1] = together % 8 ? ptx_xor(b, to[0], CHUNK_BYTES / 2) : to[0];
    for (unsigned i = 0; i * together < s->rows; i++) {
        ptx_val row = i ? ptx_add(b, first, (int)(i * together)) : first;
        if (i)
            from = s->spec->product.grouped ? x_address(b, s, row, k) : ptx_add(b, from, step);
        const int offset = (int)(i * together * stream_x_line_bytes(s));
        if (all_exist)
            copy_existing_piece(b, s, to[i % 2], offset, from);
        else
            copy_piece(b, s, to[i % 2], offset, from, ptx_setp_and(b, PTX_LT, row, left, in_k));
    }
    if (s->form.is_async)
        ptx_cp_async_wait_all(b);
}

/* Loads one element, in its form in shared memory, in the low bits of a u32. */
static ptx_val load_element(ptx_builder *b, const stream *s, ptx_val address)
{
    const bool is_byte = s->form.bytes == 1;
    ptx_val value = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, is_byte ? PTX_U8 : PTX_U16, address, 0));
    ptx_val pairs[2] = {value};
    if (s->form.from)
        fp8_to_f16(b, s->form.from, value, pairs);
    return pairs[0];
}

static void copy_x_slowly(ptx_builder *b, const stream *s, unsigned phase)
{
    const unsigned of_row = s->phase_units * UNIT_K;
    ptx_val at = ptx_for(b, ptx_tid_x(b), ptx_u32(b, s->rows * of_row), STREAM_THREADS);
    ptx_val row = ptx_shr(b, at, ceil_log2(of_row)), in_row = ptx_and(b, at, (int)of_row - 1);
    ptx_val m = ptx_add(b, s->m0, row), k = ptx_add(b, ptx_add(b, s->k0, in_row), (int)(phase * of_row));
    ptx_val value = ptx_var(b, ptx_u32(b, 0));
    ptx_if(b, ptx_setp_and(b, PTX_LT, m, s->rows_x, ptx_setp(b, PTX_LT, k, s->k)));
    ptx_assign(b, value, load_element(b, s, x_address(b, s, row, k)));
    ptx_end_if(b);
    ptx_val piece = stream_x_address(b, s, row, ptx_shr(b, in_row, ceil_log2(piece_k(s))));
    ptx_val in_piece = ptx_and(b, in_row, (int)piece_k(s) - 1);
    const bool is_byte = s->form.unit_elements == 2;
    ptx_val place = is_byte ? stream_fp8_place(b, in_piece) : ptx_shl(b, in_piece, 1);
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, is_byte ? PTX_U8 : PTX_U16, ptx_add(b, piece, place), 0,
              value);
    ptx_end_for(b);
}

/* In a whole strip, all pieces exist if all rows do. */
static void copy_x_by_pieces(ptx_builder *b, const stream *s, unsigned phase, bool whole)
{
    if (whole) {
        ptx_val rows = ptx_sub(b, s->rows_x, s->m0);
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_GE, rows, ptx_u32(b, s->rows)));
        copy_x(b, s, phase, true);
        ptx_else(b);
    }
    copy_x(b, s, phase, false);
    if (whole)
        ptx_end_if(b);
}

void stream_load_x(ptx_builder *b, const stream *s, unsigned phase, bool whole)
{
    ptx_val rest = ptx_and(b, ptx_or(b, s->args.x_stride, s->args.k), ptx_u64(b, piece_k(s) - 1));
    ptx_val pointer = s->args.all.operand[QDNN_OPERAND_X];
    ptx_val aligned =
        ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0), emit_aligned(b, pointer, piece_k(s) * s->form.bytes));
    if (phase)
        ptx_syncthreads(b); /* until the previous phase is no longer read */
    ptx_uniform(b);
    ptx_if(b, aligned);
    copy_x_by_pieces(b, s, phase, whole);
    ptx_else(b);
    copy_x_slowly(b, s, phase);
    ptx_end_if(b);
    ptx_syncthreads(b);
}
