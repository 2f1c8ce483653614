/* x in shared memory. A "chunk" is one row of one unit, 64 k: eight "pieces" of 16 bytes. Piece p of row r
 * lies at place p ^ (r & 7), so that the eight rows that ldmatrix reads at a time are in different banks.
 * The chunks of a row follow each other; with a table of pairs they fill the gaps between its entries. On
 * SMs that multiply FP8, a chunk is one row of two units. Each part of the block has a ring of stages, each
 * with x of a phase, which its own threads fill: they wait for each other only. */
#include "kernels/tensor/stream.h"

enum { SHARED_BYTES = 65536, CHUNK_PIECES = 8 };

static unsigned chunk_stride(bool has_table)
{
    return has_table ? 2 * CHUNK_BYTES : CHUNK_BYTES;
}

/* Several parts: a whole strip if there is room for it. Otherwise phases of two units or of one, with at least two stages if there
 * is room. A single part goes on into its next strip, which must begin with the same stage. Blocks of few rows leave room for a second
 * one on SMs that have 100 KiB. */
stream_room stream_room_of(const kernel_spec *spec, const stream_beside *beside)
{
    const unsigned rows = (unsigned)spec->product.tile_rows, parts = (unsigned)spec->product.split,
                   all = SHARED_BYTES - beside->lines - beside->codebook,
                   most = beside->has_table            ? SHARED_BYTES / 2
                          : rows > 16 || beside->lines ? all
                                                       : all / 4 * 3,
                   unit = rows * parts * CHUNK_BYTES;
    stream_room r = {.units = UNITS, .stages = 1};
    if (parts == 1 || UNITS * unit > most) {
        r.units = spec->product.x_fp8 || 2 * 2 * unit <= most ? (rows == 64 ? 4 : 2) : 1;
        r.stages = most / (r.units * unit);
        if (r.stages > UNITS / r.units)
            r.stages = UNITS / r.units;
        while (parts == 1 && UNITS / r.units % r.stages)
            r.stages--;
    }
    const unsigned x = r.units * r.stages * unit, sums = 4 * rows * WARP_N * STREAM_WARPS;
    r.bytes = beside->has_table ? SHARED_BYTES : (x > sums ? x : sums) + beside->lines;
    return r;
}

unsigned stream_x_line_bytes(const stream *s)
{
    return s->phase_units / s->form.unit_elements * s->chunk;
}

unsigned stream_x_stage_bytes(const stream *s)
{
    return s->rows * stream_x_line_bytes(s);
}

static unsigned piece_k(const stream *s)
{
    return 8 * s->form.unit_elements;
}

static unsigned phase_pieces(const stream *s)
{
    return s->phase_units * UNIT_K / piece_k(s);
}

static unsigned threads_of_part(const stream *s)
{
    return s->warps * WARP;
}

/* `place` (u32): of the piece, in its chunk. */
static ptx_val x_address_of(ptx_builder *b, const stream *s, ptx_val row, ptx_val chunk, ptx_val place)
{
    ptx_val at = ptx_mad(b, row, (int)stream_x_line_bytes(s), ptx_shl(b, place, 4));
    if (chunk.kind != PTX_NOTHING)
        at = ptx_mad(b, chunk, (int)s->chunk, at);
    return ptx_add(b, s->x_part, at);
}

void stream_x_begin(ptx_builder *b, stream *s)
{
    const stream_room room = stream_room_of(s->spec, &s->beside);
    s->chunk = chunk_stride(s->beside.has_table);
    s->phase_units = room.units;
    s->stages = room.stages;
    s->x_part = ptx_mad(b, s->part, (int)(s->stages * stream_x_stage_bytes(s)), s->x_shared);
    ptx_val eighth = ptx_and(b, s->lane, 7), piece = ptx_shr(b, s->lane, 3), row = eighth;
    ptx_val pieces = ptx_u32(b, 3);
    if (s->rows < 8) /* the other rows repeat these, and are not used */
        row = ptx_and(b, row, (int)s->rows - 1);
    ptx_val swizzle = row;
    if (s->m_tiles > 1) { /* two pieces of sixteen rows instead of four pieces of eight */
        row = ptx_mad(b, ptx_shr(b, s->lane, 4), 8, swizzle);
        pieces = ptx_u32(b, 1);
    }
    ptx_val place = ptx_lop3(b, piece, pieces, swizzle, (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C);
    s->x_lane[0] = x_address_of(b, s, row, (ptx_val){0}, place);
    for (unsigned step = 1; step < UNIT_STEPS; step++)
        s->x_lane[step] = ptx_xor(b, s->x_lane[0], (int)(32 * step));
}

ptx_val stream_x_address(ptx_builder *b, const stream *s, unsigned stage, ptx_val row, ptx_val piece)
{
    ptx_val place = ptx_xor(b, piece, ptx_and(b, row, 7)), at;
    if (s->chunk == CHUNK_BYTES) /* no gaps between chunks */
        at = x_address_of(b, s, row, (ptx_val){0}, place);
    else
        at = x_address_of(b, s, row, ptx_shr(b, piece, 3), ptx_and(b, place, 7));
    return stage ? ptx_add(b, at, (int)(stage * stream_x_stage_bytes(s))) : at;
}

/* ---- Rows ---- */

/* The number (u64) of a row of the block (u32); for rows that do not exist, that of another row. */
static ptx_val row_of(ptx_builder *b, const stream *s, ptx_val row)
{
    if (!s->spec->product.grouped)
        return ptx_cvt(b, PTX_U64, ptx_min(b, ptx_add(b, s->m0, row), ptx_sub(b, s->rows_x, 1)));
    ptx_val wide = ptx_cvt(b, PTX_U64, row);
    return row_tile_row(b, &s->at, wide, row_tile_has(b, &s->at, wide));
}

/* The address of an element of a row of the block (both u32). */
static ptx_val x_address(ptx_builder *b, const stream *s, ptx_val row, ptx_val k)
{
    ptx_val x_row = x_row_of(b, s->spec, row_of(b, s, row));
    ptx_val index = ptx_mad(b, x_row, s->args.x_stride, ptx_cvt(b, PTX_U64, k));
    return ptx_at(b, s->args.all.operand[QDNN_OPERAND_X], index, s->form.bytes);
}

/* The first piece of a thread: its row, and its number in the phase (both u32). */
static ptx_val first_row(ptx_builder *b, const stream *s)
{
    return ptx_shr(b, s->part_thread, ceil_log2(phase_pieces(s)));
}

static ptx_val first_piece(ptx_builder *b, const stream *s)
{
    return ptx_and(b, s->part_thread, (int)phase_pieces(s) - 1);
}

/* The pieces of a phase that a thread copies: piece i is so many pieces behind the first one of the thread, in a row so many rows
 * below. */
static unsigned copies(const stream *s)
{
    return ceil_div(s->rows * phase_pieces(s), threads_of_part(s));
}

static unsigned pieces_behind(const stream *s, unsigned i)
{
    return i * threads_of_part(s) % phase_pieces(s);
}

static unsigned rows_below(const stream *s, unsigned i)
{
    return i * threads_of_part(s) / phase_pieces(s);
}

void stream_x_begin_rows(ptx_builder *b, stream *s)
{
    ptx_val rest = ptx_and(b, ptx_or(b, s->args.x_stride, s->args.k), ptx_u64(b, piece_k(s) - 1));
    ptx_val pointer = s->args.all.operand[QDNN_OPERAND_X];
    s->x_aligned =
        ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0), emit_aligned(b, pointer, piece_k(s) * s->form.bytes));
    ptx_val row = first_row(b, s), k = ptx_mul(b, first_piece(b, s), (int)piece_k(s));
    s->x_to = stream_x_address(b, s, 0, row, first_piece(b, s));
    for (unsigned i = 0; i < copies(s) && i < ROWS_KNOWN; i++)
        if (i && rows_below(s, i) == rows_below(s, i - 1))
            s->x_from[i] = s->x_from[i - 1];
        else
            s->x_from[i] = x_address(b, s, i ? ptx_add(b, row, (int)rows_below(s, i)) : row, k);
}

/* ---- Pieces ---- */

/* The number of words of a piece as it lies in memory. */
static unsigned piece_words(const stream *s)
{
    return piece_k(s) * s->form.bytes / 4;
}

/* Copies one piece or, if it does not exist (empty: it does), zeros. */
static void copy_piece(ptx_builder *b, const stream *s, ptx_val to, int offset, ptx_val from, int from_offset,
                       ptx_val exists)
{
    const unsigned count = piece_words(s);
    const bool is_sure = exists.kind == PTX_NOTHING;
    if (s->form.is_async && is_sure) {
        ptx_cp_async_cg(b, to, offset, from, from_offset, 0);
        return;
    }
    if (s->form.is_async) {
        ptx_cp_async_cg_zfill(b, to, offset, from, from_offset,
                              ptx_selp(b, ptx_u32(b, 16), ptx_u32(b, 0), exists), 0);
        return;
    }
    ptx_val words[4], loaded[4], units[4];
    for (unsigned c = 0; c < count; c++)
        words[c] = ptx_var(b, ptx_u32(b, 0));
    if (!is_sure)
        ptx_if(b, exists);
    emit_load_words(b, from, from_offset, count, loaded);
    for (unsigned c = 0; c < count; c++)
        ptx_assign(b, words[c], loaded[c]);
    if (!is_sure)
        ptx_end_if(b);
    if (s->spec->product.x_fp8)
        stream_fp8_piece(b, s, words, units);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, offset, s->spec->product.x_fp8 ? units : words, 4);
}

/* A thread copies every so many pieces of the rows. The swizzle of a place changes by an exclusive or, because the rows of a thread are
 * its first one and multiples of a larger power of two. */
static void copy_pieces(ptx_builder *b, const stream *s, unsigned phase)
{
    const unsigned all = s->rows * phase_pieces(s), before = phase * s->phase_units * UNIT_K,
                   stage = phase % s->stages * stream_x_stage_bytes(s);
    ptx_val row = first_row(b, s), exists = {0}, k = ptx_u32(b, 0);
    ptx_val strip = ptx_mul_wide(b, s->k0, ptx_u32(b, s->form.bytes));
    if (!s->x_exists)
        k = ptx_add(b, ptx_mad(b, first_piece(b, s), (int)piece_k(s), s->k0), (int)before);
    if (all < threads_of_part(s))
        ptx_if(b, ptx_setp(b, PTX_LT, s->part_thread, (int)all));
    for (unsigned i = 0; i < copies(s); i++) {
        const unsigned below = rows_below(s, i), more = pieces_behind(s, i) * piece_k(s);
        if (!s->x_exists)
            exists = ptx_setp(b, PTX_LT, more ? ptx_add(b, k, (int)more) : k, s->k);
        ptx_val from = i < ROWS_KNOWN ? s->x_from[i]
                                      : x_address(b, s, ptx_add(b, row, (int)below),
                                                  ptx_mul(b, first_piece(b, s), (int)piece_k(s)));
        copy_piece(
            b, s, below % 8 ? ptx_xor(b, s->x_to, (int)(below % 8 * 16)) : s->x_to,
            (int)(stage + below * stream_x_line_bytes(s) + pieces_behind(s, i) / CHUNK_PIECES * s->chunk),
            ptx_add(b, from, strip), (int)((before + more) * s->form.bytes), exists);
    }
    if (all < threads_of_part(s))
        ptx_end_if(b);
}

/* ---- Element by element ---- */

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

static void copy_slowly(ptx_builder *b, const stream *s, unsigned phase)
{
    const unsigned of_row = s->phase_units * UNIT_K;
    ptx_rolled(b);
    ptx_val at = ptx_for(b, s->part_thread, ptx_u32(b, s->rows * of_row), (int)threads_of_part(s));
    ptx_val row = ptx_shr(b, at, ceil_log2(of_row)), in_row = ptx_and(b, at, (int)of_row - 1);
    ptx_val m = ptx_add(b, s->m0, row), k = ptx_add(b, ptx_add(b, s->k0, in_row), (int)(phase * of_row));
    ptx_val value = ptx_var(b, ptx_u32(b, 0));
    ptx_if(b, ptx_setp_and(b, PTX_LT, m, s->rows_x, ptx_setp(b, PTX_LT, k, s->k)));
    ptx_assign(b, value, load_element(b, s, x_address(b, s, row, k)));
    ptx_end_if(b);
    ptx_val piece = stream_x_address(b, s, phase % s->stages, row, ptx_shr(b, in_row, ceil_log2(piece_k(s))));
    ptx_val in_piece = ptx_and(b, in_row, (int)piece_k(s) - 1);
    const bool is_byte = s->form.unit_elements == 2;
    ptx_val place = is_byte ? stream_fp8_place(b, in_piece) : ptx_shl(b, in_piece, 1);
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, is_byte ? PTX_U8 : PTX_U16, ptx_add(b, piece, place), 0,
              value);
    ptx_end_for(b);
}

/* ---- Phases ---- */

/* Phases beyond the strip are those of the next one, which a single part computes. */
static void copy_phase(ptx_builder *b, const stream *s, unsigned phase)
{
    if (phase < UNITS / s->phase_units || s->parts == 1) {
        ptx_uniform(b);
        ptx_if(b, s->x_aligned);
        copy_pieces(b, s, phase);
        ptx_else(b);
        copy_slowly(b, s, phase);
        ptx_end_if(b);
    }
    if (s->form.is_async)
        ptx_cp_async_commit(b);
}

/* The threads of a part wait for each other. */
static void sync_part(ptx_builder *b, const stream *s)
{
    if (s->warps == 1)
        ptx_syncwarp(b);
    else
        ptx_syncthreads(b);
}

void stream_x_first(ptx_builder *b, const stream *s)
{
    for (unsigned phase = 0; phase + 1 < s->stages; phase++)
        copy_phase(b, s, phase);
}

void stream_x_arrive(ptx_builder *b, const stream *s, unsigned phase)
{
    if (s->stages == 1) { /* nothing is copied ahead */
        sync_part(b, s);
        copy_phase(b, s, phase);
    }
    if (s->form.is_async)
        ptx_cp_async_wait(b, s->stages > 1 ? s->stages - 2 : 0);
    sync_part(b, s);
}

void stream_x_next(ptx_builder *b, const stream *s, unsigned phase)
{
    if (s->stages > 1)
        copy_phase(b, s, phase + s->stages - 1);
}

void stream_x_skip(ptx_builder *b, const stream *s, unsigned phase)
{
    for (; phase < UNITS / s->phase_units && s->parts > 1 && s->warps > 1; phase++)
        for (unsigned i = 0; i < (s->stages == 1 ? 2 : 1); i++)
            sync_part(b, s);
}

void stream_x_end(ptx_builder *b, const stream *s)
{
    if (s->form.is_async)
        ptx_cp_async_wait_all(b);
}
