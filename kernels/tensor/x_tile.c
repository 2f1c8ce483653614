/* Tiles of x. For rows that do not exist, another row is read, and the results are not stored. */
#include "kernels/tensor/x_tile.h"

static unsigned stage_bytes(const tile *t)
{
    return 2 * t->shape.parts * t->shape.m * t->shape.k;
}

/* Elements per piece, and bytes per unit in memory. */
static unsigned piece_elements(const tile *t)
{
    return PIECE * t->form.unit_elements;
}

static unsigned unit_bytes(const tile *t)
{
    return t->form.unit_elements * t->form.bytes;
}

ptx_val x_tile_aligned(ptx_builder *b, const tile *t, ptx_val all)
{
    const unsigned elements = piece_elements(t);
    ptx_val rest = ptx_and(b, ptx_or(b, t->args.x_stride, t->args.k), ptx_u64(b, elements - 1));
    all = ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0), all);
    return ptx_and(b, all, emit_aligned(b, t->x, elements * t->form.bytes));
}

/* The number (u64) of the row of x that line i (u32) of the tile has; beyond the last row, one that exists. */
static ptx_val row_of(ptx_builder *b, const tile *t, ptx_val i)
{
    if (t->shape.parts > 1)
        i = ptx_and(b, i, (int)t->shape.m - 1);
    ptx_val wide = ptx_cvt(b, PTX_U64, i);
    if (t->spec->product.grouped)
        return x_row_of(b, t->spec, row_tile_row(b, &t->at, wide, row_tile_has(b, &t->at, wide)));
    return ptx_min(b, ptx_add(b, t->at.first, wide), ptx_sub(b, t->args.m, 1));
}

static ptx_val piece_place(ptx_builder *b, const tile *t, ptx_val line, ptx_val piece)
{
    ptx_val place = ptx_shl(b, ptx_xor(b, piece, ptx_and(b, line, 7)), 4);
    return ptx_mad(b, line, (int)t->shape.k * 2, place);
}

/* The first k of the part of line i (u32) of the tile. */
static ptx_val part_k(ptx_builder *b, const tile *t, ptx_val line)
{
    return ptx_mul(b, ptx_shr(b, line, ceil_log2(t->shape.m)), (int)tile_strip(t));
}

static void begin_if_active(ptx_builder *b, const x_tile *x)
{
    if (x->active.kind != PTX_NOTHING)
        ptx_if(b, x->active);
}

static void end_if_active(ptx_builder *b, const x_tile *x)
{
    if (x->active.kind != PTX_NOTHING)
        ptx_end_if(b);
}

/* The threads that share the lines of a tile, or a warp's part of them. */
static unsigned threads_of(const tile *t)
{
    return t->shape.apart ? WARP : TILE_THREADS;
}

/* The distance of a thread's pieces, in lines. */
static unsigned line_step(const tile *t)
{
    return threads_of(t) / (t->shape.k / PIECE);
}

/* Whether the thread's piece i of the next tile exists: it may be some parts behind the first. */
static ptx_val piece_exists(ptx_builder *b, const tile *t, const x_tile *x, unsigned i)
{
    const unsigned more = t->shape.apart ? 0 : i * line_step(t) / t->shape.m * tile_strip(t);
    return ptx_setp(b, PTX_LT, t->shape.parts > 1 && more ? ptx_add(b, x->k, (int)more) : x->k, t->k);
}

/* Where several parts end their strips, each goes on behind the last. */
static void advance(ptx_builder *b, const tile *t, x_tile *x)
{
    const unsigned tile_k = t->shape.k, strip = tile_strip(t);
    ptx_val step = ptx_u32(b, tile_k), bytes = ptx_u64(b, unit_bytes(t) * tile_k);
    if (t->shape.parts > 1) {
        ptx_assign(b, x->of_part, ptx_and(b, ptx_add(b, x->of_part, (int)tile_k), (int)strip - 1));
        step = ptx_selp(b, ptx_u32(b, tile_k + (t->shape.parts - 1) * strip), step,
                        ptx_setp(b, PTX_EQ, x->of_part, 0));
        bytes = ptx_mul_wide(b, step, ptx_u32(b, unit_bytes(t)));
    }
    ptx_assign(b, x->k, ptx_add(b, x->k, step));
    for (unsigned i = 0; i < x->pieces; i++)
        ptx_assign(b, x->from[i], ptx_add(b, x->from[i], bytes));
}

/* Lines that are a multiple of eight apart have the same swizzle: then one address serves all pieces. */
static bool has_one_place(const tile *t)
{
    return line_step(t) % 8 == 0;
}

static ptx_val place_in(ptx_builder *b, const tile *t, const x_tile *x, ptx_val tile, unsigned i)
{
    return ptx_add(b, tile, x->to[has_one_place(t) ? 0 : i]);
}

static int piece_offset(const tile *t, unsigned i)
{
    return has_one_place(t) ? (int)(i * line_step(t) * t->shape.k * 2) : 0;
}

static void copy_ahead(ptx_builder *b, const tile *t, x_tile *x, ptx_val stage)
{
    ptx_val tile = ptx_add(b, t->x_shared, stage), bytes = {0};
    begin_if_active(b, x);
    for (unsigned i = 0; i < x->pieces; i++) {
        if (i == 0 || t->shape.parts > 1)
            bytes = ptx_selp(b, ptx_u32(b, LOAD_BYTES), ptx_u32(b, 0), piece_exists(b, t, x, i));
        ptx_cp_async_cg_zfill(b, place_in(b, t, x, tile, i), piece_offset(t, i), x->from[i], 0, bytes, 0);
    }
    end_if_active(b, x);
    ptx_cp_async_commit(b);
    advance(b, t, x);
}

/* Words of a piece in memory. */
static unsigned words_in_memory(const tile *t)
{
    return piece_elements(t) * t->form.bytes / 4;
}

static void load_ahead(ptx_builder *b, const tile *t, x_tile *x)
{
    const unsigned words_of_piece = words_in_memory(t);
    const bool many = t->shape.parts > 1;
    for (unsigned i = 0; i < x->pieces; i++)
        for (unsigned c = 0; c < words_of_piece; c++)
            ptx_assign(b, x->words[i][c], ptx_u32(b, 0));
    for (unsigned i = 0; i < x->pieces; i++) {
        ptx_val words[4];
        if (i == 0 || many) {
            ptx_val exists = piece_exists(b, t, x, i);
            ptx_if(b, x->active.kind == PTX_NOTHING ? exists : ptx_and(b, exists, x->active));
        }
        emit_load_words(b, x->from[i], 0, words_of_piece, words);
        for (unsigned c = 0; c < words_of_piece; c++)
            ptx_assign(b, x->words[i][c], words[c]);
        if (many || i + 1 == x->pieces)
            ptx_end_if(b);
    }
    advance(b, t, x);
}

/* Where a thread's pieces come from and go to. */
static x_tile pieces_begin(ptx_builder *b, const tile *t)
{
    const unsigned of_row = t->shape.k / PIECE, threads = threads_of(t),
                   all = (t->shape.apart ? 1 : t->shape.parts) * t->shape.m * of_row;
    x_tile x = {.pieces = all < threads ? 1 : all / threads};
    ptx_val tid = t->shape.apart ? t->lane : ptx_tid_x(b), row = ptx_shr(b, tid, ceil_log2(of_row)),
            piece = ptx_and(b, tid, (int)of_row - 1);
    if (all < threads)
        x.active = ptx_setp(b, PTX_LT, tid, (int)all);
    if (t->shape.apart)
        row = ptx_add(b, row, t->warp_x);
    const bool many = t->shape.parts > 1;
    ptx_val k = ptx_shl(b, piece, 3), first = ptx_cvt(b, PTX_U64, ptx_mul(b, k, (int)t->form.unit_elements));
    x.k = ptx_var(b, many ? ptx_add(b, k, part_k(b, t, row)) : k);
    if (many)
        x.of_part = ptx_var(b, ptx_u32(b, 0));
    for (unsigned i = 0; i < x.pieces; i++) {
        ptx_val line = i ? ptx_add(b, row, (int)(i * line_step(t))) : row, m = row_of(b, t, line);
        x.to[i] = piece_place(b, t, line, piece);
        if (many) {
            ptx_val of_line = ptx_add(b, k, part_k(b, t, line));
            first = ptx_cvt(b, PTX_U64, ptx_mul(b, of_line, (int)t->form.unit_elements));
        }
        x.from[i] = ptx_var(b, ptx_at(b, t->x, ptx_mad(b, m, t->args.x_stride, first), t->form.bytes));
    }
    return x;
}

x_tile x_tile_begin(ptx_builder *b, const tile *t)
{
    x_tile x = pieces_begin(b, t);
    x.stage = ptx_var(b, ptx_u32(b, 0));
    if (t->form.is_async) {
        for (unsigned s = 0; s + 1 < t->x_stages; s++)
            copy_ahead(b, t, &x, ptx_u32(b, s * stage_bytes(t)));
        return x;
    }
    for (unsigned i = 0; i < x.pieces; i++)
        for (unsigned c = 0; c < 4; c++)
            x.words[i][c] = ptx_var(b, ptx_u32(b, 0));
    load_ahead(b, t, &x);
    return x;
}

/* The stage `ahead` stages after `stage`, in the ring. */
static ptx_val later_stage(ptx_builder *b, const tile *t, ptx_val stage, unsigned ahead)
{
    const int all = (int)(t->x_stages * stage_bytes(t));
    ptx_val next = ptx_add(b, stage, (int)(ahead * stage_bytes(t)));
    return ptx_selp(b, ptx_sub(b, next, all), next, ptx_setp(b, PTX_GE, next, all));
}

/* Converts a loaded piece to the form in a tile. */
static void units_of_piece(ptx_builder *b, const tile *t, const ptx_val *loaded, ptx_val words[4])
{
    for (unsigned i = 0; i < 4; i++)
        if (!t->form.from)
            words[i] = loaded[i];
        else if (i % 2 == 0)
            fp8_to_f16(b, t->form.from, loaded[i / 2], &words[i]);
}

ptx_val x_tile_arrive(ptx_builder *b, const tile *t, x_tile *x)
{
    ptx_val here = ptx_add(b, t->x_shared, x->stage);
    if (t->form.is_async) {
        ptx_cp_async_wait(b, t->x_stages - 2);
        return here;
    }
    begin_if_active(b, x);
    for (unsigned i = 0; i < x->pieces; i++) {
        ptx_val words[4];
        units_of_piece(b, t, x->words[i], words);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, place_in(b, t, x, here, i), piece_offset(t, i), words,
                   4);
    }
    end_if_active(b, x);
    return here;
}

void x_tile_next(ptx_builder *b, const tile *t, x_tile *x)
{
    if (t->form.is_async)
        copy_ahead(b, t, x, later_stage(b, t, x->stage, t->x_stages - 1));
    else
        load_ahead(b, t, x);
    ptx_assign(b, x->stage, later_stage(b, t, x->stage, 1));
}

void x_tile_end(ptx_builder *b, const tile *t)
{
    if (t->form.is_async)
        ptx_cp_async_wait_all(b);
}

/* Loads one element, in the form it has in a tile, in the low bits of a u32. */
static ptx_val load_element(ptx_builder *b, const tile *t, ptx_val index)
{
    ptx_val at = ptx_at(b, t->x, index, t->form.bytes);
    ptx_val value = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, t->form.bytes == 1 ? PTX_U8 : PTX_U16, at, 0));
    ptx_val pairs[2] = {value};
    if (t->form.from)
        fp8_to_f16(b, t->form.from, value, pairs);
    return pairs[0];
}

void x_tile_slowly(ptx_builder *b, const tile *t, ptx_val k0)
{
    const unsigned elements = t->form.unit_elements, of_row = t->shape.k * elements;
    ptx_val at = ptx_for(b, ptx_tid_x(b), ptx_u32(b, t->shape.parts * t->shape.m * of_row), TILE_THREADS);
    ptx_val line = ptx_shr(b, at, ceil_log2(of_row)), in_row = ptx_and(b, at, (int)of_row - 1), row = line;
    if (t->shape.parts > 1) {
        row = ptx_and(b, line, (int)t->shape.m - 1);
        k0 = ptx_add(b, k0, part_k(b, t, line));
    }
    ptx_val k = ptx_cvt(b, PTX_U64, ptx_mad(b, k0, (int)elements, in_row)), value = ptx_var(b, ptx_u32(b, 0));
    ptx_val has = row_tile_has(b, &t->at, ptx_cvt(b, PTX_U64, row));
    ptx_if(b, ptx_setp_and(b, PTX_LT, k, t->args.k, has));
    ptx_assign(b, value, load_element(b, t, ptx_mad(b, row_of(b, t, row), t->args.x_stride, k)));
    ptx_end_if(b);
    ptx_val piece = ptx_shr(b, in_row, ceil_log2(piece_elements(t)));
    ptx_val place = ptx_add(b, t->x_shared, piece_place(b, t, line, piece));
    place = ptx_at(b, place, ptx_and(b, in_row, (int)piece_elements(t) - 1), 2 / elements);
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, elements == 1 ? PTX_U16 : PTX_U8, place, 0, value);
    ptx_end_for(b);
}
