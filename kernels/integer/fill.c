/* Copies codes to shared memory: by cp.async, through registers (sm_75), or byte by byte if rows are not
 * 16-byte aligned. Bytes past the end of a row are 0. */
#include "kernels/integer/fill.h"

#include "kernels/emit.h"

/* ---- Windows ---- */

unsigned fill_window_bytes(const kernel_spec *spec)
{
    return (unsigned)(spec->conv.window_h * spec->conv.window_w * spec->conv.window_c);
}

static ptx_val small(ptx_builder *b, ptx_val number)
{
    return ptx_cvt(b, PTX_U32, number);
}

/* The image of an output, and the first position of its window. */
static fill_window window_of(ptx_builder *b, const fill *f, ptx_val row)
{
    const fill_windows *s = &f->windows;
    ptx_val m = small(b, ptx_min(b, row, ptx_sub(b, f->x.rows, ptx_u64(b, 1))));
    ptx_val line = ptx_div(b, m, s->out[1]), ow = ptx_sub(b, m, ptx_mul(b, line, s->out[1]));
    ptx_val image = ptx_div(b, line, s->out[0]), oh = ptx_sub(b, line, ptx_mul(b, image, s->out[0]));
    ptx_val pixels = ptx_mul(b, s->in[0], s->in[1]), bytes = ptx_mul(b, pixels, s->channels);
    ptx_val first = ptx_add(b, f->x.base, ptx_cvt(b, PTX_U64, s->first_channel));
    return (fill_window){.image = ptx_mad_wide(b, image, bytes, first),
                         .position = {ptx_sub(b, ptx_mul(b, oh, s->stride[0]), s->padding[0]),
                                      ptx_sub(b, ptx_mul(b, ow, s->stride[1]), s->padding[1])}};
}

/* The chunk of a window at the thread's k. */
typedef struct window_chunk {
    ptx_val row, column; /* u32: position in the window; empty if it has only one row or column */
    ptx_val channel;     /* u32 */
    ptx_val exists;      /* k is within the row */
} window_chunk;

static window_chunk chunk_at(ptx_builder *b, const fill *f)
{
    const uint32_t height = (uint32_t)f->spec->conv.window_h, width = (uint32_t)f->spec->conv.window_w;
    window_chunk c = {.channel = f->k, .exists = ptx_setp(b, PTX_LT, f->k, f->w.pitch)};
    if (height == 1 && width == 1)
        return c;
    ptx_val depth = ptx_u32(b, (uint32_t)f->spec->conv.window_c), position = ptx_div(b, f->k, depth);
    c.channel = ptx_sub(b, f->k, ptx_mul(b, position, depth));
    if (width == 1) {
        c.row = position;
        return c;
    }
    c.column = position;
    if (height == 1)
        return c;
    c.row = ptx_div(b, position, ptx_u32(b, width));
    c.column = ptx_sub(b, position, ptx_mul(b, c.row, ptx_u32(b, width)));
    return c;
}

/* Where the image is read: the window's first row or column, and so many further ones. */
static ptx_val further(ptx_builder *b, ptx_val first, ptx_val count, ptx_val dilation)
{
    return count.kind == PTX_NOTHING ? first : ptx_mad(b, count, dilation, first);
}

/* Its address; *inside tells whether it is in the image. */
static ptx_val window_address(ptx_builder *b, const fill *f, const fill_window *w, const window_chunk *c,
                              ptx_val *inside)
{
    const fill_windows *s = &f->windows;
    ptx_val h = further(b, w->position[0], c->row, s->dilation[0]);
    ptx_val v = further(b, w->position[1], c->column, s->dilation[1]);
    *inside = ptx_setp_and(b, PTX_LT, h, s->in[0], ptx_setp_and(b, PTX_LT, v, s->in[1], c->exists));
    ptx_val pixel = ptx_mad(b, h, s->in[1], v), offset = ptx_mad(b, pixel, s->channels, c->channel);
    return ptx_add(b, w->image, ptx_cvt(b, PTX_U64, offset));
}

/* Past the end of a row, one of x and w is 0, so that their products are. Codes that are summed by themselves (those of x if w has a zero
 * point, and the reverse) are 0 there too. Nibbles that pad a row may be anything: store_tile subtracts
 * their products, and x of products of groups is 0 there. */
static bool has_end(const fill *f)
{
    return !f->is_conv || fill_window_bytes(f->spec) % FILL_ROW;
}

static bool x_ends_with_zeros(const fill *f)
{
    const bool is_padded_with_zeros = f->is_conv && !f->spec->integer.x_zero;
    return has_end(f) && (f->spec->integer.w_zero || int_is_grouped(f->spec) || is_padded_with_zeros);
}

static bool w_ends_with_zeros(const fill *f)
{
    return has_end(f) && (!x_ends_with_zeros(f) || f->spec->integer.x_zero);
}

/* The value for positions in the padding: x_zero; past the last k, 0 or any number. */
static ptx_val padding_word(ptx_builder *b, const fill *f, const window_chunk *c)
{
    if (f->windows.splat.kind == PTX_NOTHING)
        return ptx_u32(b, 0);
    return x_ends_with_zeros(f) ? ptx_selp(b, f->windows.splat, ptx_u32(b, 0), c->exists) : f->windows.splat;
}

/* ---- Beginning ---- */

static ptx_val number_of_row(ptx_builder *b, ptx_val first, unsigned pass)
{
    ptx_val row = ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_tid_x(b), 2));
    return ptx_add(b, ptx_add(b, first, row), ptx_u64(b, (uint64_t)pass * FILL_ROWS));
}

enum { PAIR = 16 }; /* rows of a tile that a gated pair of eight columns takes */

ptx_val fill_output(ptx_builder *b, const fill *f, ptx_val i)
{
    if (!f->spec->epilogue.gated)
        return ptx_min(b, ptx_add(b, f->first_column, ptx_cvt(b, PTX_U64, i)),
                       ptx_sub(b, f->w.rows, ptx_u64(b, 1)));
    ptx_val half = ptx_shr(b, f->w.rows, 1), column = ptx_shl(b, ptx_shr(b, i, 4), 3);
    column = ptx_cvt(b, PTX_U64, ptx_or(b, column, ptx_and(b, i, PAIR / 2 - 1)));
    column = ptx_min(b, ptx_add(b, f->first_column, column), ptx_sub(b, half, ptx_u64(b, 1)));
    ptx_val is_second = ptx_setp(b, PTX_NE, ptx_and(b, i, PAIR / 2), 0);
    return ptx_add(b, column, ptx_selp(b, half, ptx_u64(b, 0), is_second));
}

/* The addresses of the rows that the thread fills: row i (u32) of the tile, where rows lie apart. */
static ptx_val x_row_apart(ptx_builder *b, const fill *f, ptx_val i)
{
    ptx_val place = ptx_cvt(b, PTX_U64, i);
    ptx_val row = row_tile_row(b, &f->rows, place, row_tile_has(b, &f->rows, place));
    return int_row_that_exists(b, &f->x, x_row_of(b, f->spec, row));
}

static ptx_val thread_row(ptx_builder *b, unsigned pass)
{
    ptx_val row = ptx_shr(b, ptx_tid_x(b), 2);
    return pass ? ptx_add(b, row, pass * FILL_ROWS) : row;
}

static ptx_val x_row(ptx_builder *b, const fill *f, unsigned pass)
{
    return f->spec->product.grouped ? x_row_apart(b, f, thread_row(b, pass))
                                    : int_row(b, &f->x, number_of_row(b, f->first_row, pass));
}

static ptx_val w_row(ptx_builder *b, const fill *f, unsigned pass)
{
    return f->spec->epilogue.gated ? int_row_that_exists(b, &f->w, fill_output(b, f, thread_row(b, pass)))
                                   : int_row(b, &f->w, number_of_row(b, f->first_column, pass));
}

static void rows_begin(ptx_builder *b, fill *f, ptx_val chunk)
{
    ptx_val skipped = ptx_cvt(b, PTX_U64, chunk);
    for (unsigned i = 0; i < f->passes; i++) {
        if (f->is_conv)
            f->of_row[i] = window_of(b, f, number_of_row(b, f->first_row, i));
        else
            f->x_from[i] = ptx_var(b, ptx_add(b, x_row(b, f, i), skipped));
        f->w_from[i] = ptx_var(b, ptx_add(b, w_row(b, f, i), skipped));
    }
}

ptx_val fill_exchange(ptx_builder *b, const fill *f, fill_half half, ptx_val row)
{
    return f->x_parts > 1 && half == FILL_X ? ptx_and(b, row, 2) : ptx_and(b, ptx_shr(b, row, 1), 3);
}

static ptx_val place_of(ptx_builder *b, const fill *f, fill_half half, ptx_val shared, ptx_val row,
                        ptx_val chunk)
{
    ptx_val place = ptx_xor(b, chunk, fill_exchange(b, f, half, row));
    return ptx_add(b, shared, ptx_mad(b, row, FILL_ROW, ptx_shl(b, place, 4)));
}

void fill_begin(ptx_builder *b, fill *f, ptx_val shared)
{
    ptx_val tid = ptx_tid_x(b), row = ptx_shr(b, tid, 2), chunk = ptx_and(b, tid, FILL_CHUNKS - 1);
    f->x_to = place_of(b, f, FILL_X, shared, row, chunk);
    f->w_to = f->x_parts > 1 ? place_of(b, f, FILL_W, shared, row, chunk) : f->x_to;
    ptx_val byte = ptx_shl(b, chunk, 4);
    f->k = ptx_var(b, byte);
    f->x_k = f->x_parts > 1 ? ptx_var(b, byte) : f->k;
    rows_begin(b, f, byte);
    for (unsigned i = 0; i < f->x_parts * f->passes && !f->is_async; i++)
        for (int j = 0; j < 4; j++)
            f->held[i][j] = ptx_var(b, ptx_u32(b, 0));
}

ptx_val fill_is_fast(ptx_builder *b, const fill *f)
{
    return int_are_aligned(b, &f->x, &f->w, INT_CHUNK);
}

/* ---- The slow way: any alignment ---- */

static void put(ptx_builder *b, ptx_val to, int offset, const ptx_val words[4])
{
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, offset, words, 4);
}

static void window_slowly(ptx_builder *b, const fill *f, ptx_val row, ptx_val words[4])
{
    window_chunk c = chunk_at(b, f);
    fill_window w = window_of(b, f, row);
    ptx_val inside, address = window_address(b, f, &w, &c, &inside), other = padding_word(b, f, &c);
    for (int i = 0; i < 4; i++)
        words[i] = ptx_var(b, other);
    ptx_if(b, inside);
    int_load_chunk(b, &f->x, address, words);
    ptx_end_if(b);
}

/* A row of w of a convolution has whole chunks. */
static void w_slowly(ptx_builder *b, const fill *f, ptx_val row, ptx_val words[4])
{
    ptx_val from = ptx_add(b, int_row(b, &f->w, row), ptx_cvt(b, PTX_U64, f->k));
    for (int i = 0; i < 4; i++)
        words[i] = has_end(f) ? ptx_var(b, ptx_u32(b, 0)) : ptx_var_of(b, PTX_U32);
    if (has_end(f))
        ptx_if(b, ptx_setp(b, PTX_LT, f->k, f->w.pitch));
    int_load_chunk(b, &f->w, from, words);
    if (has_end(f))
        ptx_end_if(b);
}

/* Bytes per part of a stage. */
static unsigned part_bytes(const fill *f)
{
    return f->passes * FILL_ROWS * FILL_ROW;
}

/* The number of the thread's row of a pass (u32). */
static ptx_val slow_number(ptx_builder *b, const fill *f, bool is_w, ptx_val pass)
{
    ptx_val further = ptx_mul_wide(b, pass, ptx_u32(b, FILL_ROWS));
    return ptx_add(b, number_of_row(b, is_w ? f->first_column : f->first_row, 0), further);
}

/* Its address. */
static ptx_val slow_row(ptx_builder *b, const fill *f, bool is_w, ptx_val pass)
{
    if (is_w && f->spec->epilogue.gated)
        return int_row_that_exists(b, &f->w,
                                   fill_output(b, f, ptx_mad(b, pass, FILL_ROWS, thread_row(b, 0))));
    if (!is_w && f->spec->product.grouped)
        return x_row_apart(b, f, ptx_mad(b, pass, FILL_ROWS, thread_row(b, 0)));
    return int_row(b, is_w ? &f->w : &f->x, slow_number(b, f, is_w, pass));
}

/* One operand, or one part of x, row by row. */
static void part_slowly(ptx_builder *b, const fill *f, bool is_w, unsigned part)
{
    const int_matrix *matrix = is_w ? &f->w : &f->x;
    ptx_val k = is_w ? f->k : part ? ptx_add(b, f->x_k, part * FILL_ROW) : f->x_k;
    ptx_rolled(b);
    ptx_val words[4], pass = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, f->passes), 1);
    if (f->is_conv && is_w)
        w_slowly(b, f, slow_number(b, f, true, pass), words);
    else if (f->is_conv)
        window_slowly(b, f, slow_number(b, f, false, pass), words);
    else
        int_load(b, matrix, slow_row(b, f, is_w, pass), k, words);
    ptx_val to = ptx_mad(b, pass, FILL_ROWS * FILL_ROW, is_w ? f->w_to : f->x_to);
    put(b, to, (int)((is_w ? f->x_parts : part) * part_bytes(f)), words);
    ptx_end_for(b);
}

static void advance(ptx_builder *b, ptx_val variable, unsigned bytes)
{
    ptx_into(b, variable);
    ptx_add(b, variable, bytes);
}

static void next_k(ptx_builder *b, const fill *f)
{
    advance(b, f->k, FILL_ROW);
    if (f->x_parts > 1)
        advance(b, f->x_k, f->x_parts * FILL_ROW);
}

void fill_slowly(ptx_builder *b, fill *f)
{
    for (unsigned part = 0; part < f->x_parts; part++)
        part_slowly(b, f, false, part);
    part_slowly(b, f, true, 0);
    next_k(b, f);
}

/* ---- By cp.async ---- */

static int offset_of(const fill *f, unsigned stage, unsigned pass)
{
    return (int)(stage * f->stage_bytes + pass * FILL_ROWS * FILL_ROW);
}

/* 16 if k is within the row, else 0. */
static ptx_val bytes_at(ptx_builder *b, ptx_val k, ptx_val pitch)
{
    return ptx_selp(b, ptx_u32(b, INT_CHUNK), ptx_u32(b, 0), ptx_setp(b, PTX_LT, k, pitch));
}

static void copy_rows(ptx_builder *b, const fill *f, unsigned stage)
{
    ptx_val w_bytes = bytes_at(b, f->k, f->w.pitch), x_bytes[2] = {w_bytes};
    for (unsigned p = 0; p < f->x_parts && f->x_parts > 1; p++)
        x_bytes[p] = bytes_at(b, p ? ptx_add(b, f->x_k, p * FILL_ROW) : f->x_k, f->x.pitch);
    for (unsigned i = 0; i < f->passes && !f->is_conv; i++) {
        for (unsigned p = 0; p < f->x_parts; p++)
            ptx_cp_async_cg_zfill(b, f->x_to, offset_of(f, stage, p * f->passes + i), f->x_from[i],
                                  (int)(p * FILL_ROW), x_bytes[p], 0);
    }
    for (unsigned i = 0; i < f->passes; i++)
        ptx_cp_async_cg_zfill(b, f->w_to, offset_of(f, stage, f->x_parts * f->passes + i), f->w_from[i], 0,
                              w_bytes, 0);
}

static void copy_window(ptx_builder *b, const fill *f, const fill_window *w, const window_chunk *c, int to)
{
    ptx_val inside, address = window_address(b, f, w, c, &inside);
    if (f->windows.splat.kind == PTX_NOTHING) {
        ptx_val bytes = ptx_selp(b, ptx_u32(b, INT_CHUNK), ptx_u32(b, 0), inside);
        ptx_cp_async_cg_zfill(b, f->x_to, to, address, 0, bytes, 0);
        return;
    }
    ptx_val other = padding_word(b, f, c), words[4] = {other, other, other, other};
    ptx_if(b, inside);
    ptx_cp_async_cg(b, f->x_to, to, address, 0, 0);
    ptx_else(b);
    put(b, f->x_to, to, words);
    ptx_end_if(b);
}

static void copy_tile(ptx_builder *b, const fill *f, unsigned stage)
{
    if (f->is_conv) {
        window_chunk c = chunk_at(b, f);
        for (unsigned i = 0; i < f->passes; i++)
            copy_window(b, f, &f->of_row[i], &c, offset_of(f, stage, i));
    }
    copy_rows(b, f, stage);
}

/* ---- Through registers ---- */

/* Where nothing is read, `other`, or what has been held before if that is empty. */
static void hold(ptx_builder *b, const ptx_val held[4], ptx_val from, int offset, ptx_val inside,
                 ptx_val other)
{
    for (int i = 0; i < 4 && other.kind != PTX_NOTHING; i++)
        ptx_assign(b, held[i], other);
    ptx_when(b, inside);
    ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, from, offset, held, 4);
}

static void hold_windows(ptx_builder *b, const fill *f)
{
    window_chunk c = chunk_at(b, f);
    for (unsigned i = 0; i < f->passes; i++) {
        ptx_val inside, from = window_address(b, f, &f->of_row[i], &c, &inside);
        hold(b, f->held[i], from, 0, inside, padding_word(b, f, &c));
    }
}

static void hold_x(ptx_builder *b, const fill *f)
{
    ptx_val other = x_ends_with_zeros(f) ? ptx_u32(b, 0) : (ptx_val){0};
    for (unsigned part = 0; part < f->x_parts; part++) {
        ptx_val k = part ? ptx_add(b, f->x_k, part * FILL_ROW) : f->x_k,
                inside = ptx_setp(b, PTX_LT, k, f->x.pitch);
        for (unsigned i = 0; i < f->passes; i++)
            hold(b, f->held[part * f->passes + i], f->x_from[i], (int)(part * FILL_ROW), inside, other);
    }
}

static void hold_w(ptx_builder *b, const fill *f)
{
    ptx_val inside = ptx_setp(b, PTX_LT, f->k, f->w.pitch),
            other = w_ends_with_zeros(f) ? ptx_u32(b, 0) : (ptx_val){0};
    for (unsigned i = 0; i < f->passes; i++)
        hold(b, f->held[i], f->w_from[i], 0, inside, other);
}

/* ---- One stage ---- */

static void next_tile(ptx_builder *b, const fill *f)
{
    for (unsigned i = 0; i < f->passes; i++) {
        if (!f->is_conv)
            advance(b, f->x_from[i], f->x_parts * FILL_ROW);
        advance(b, f->w_from[i], FILL_ROW);
    }
    next_k(b, f);
}

void fill_start(ptx_builder *b, fill *f, unsigned stage)
{
    copy_tile(b, f, stage);
    ptx_cp_async_commit(b);
    next_tile(b, f);
}

void fill_hold(ptx_builder *b, fill *f, fill_half half)
{
    if (half == FILL_W)
        hold_w(b, f);
    else if (f->is_conv)
        hold_windows(b, f);
    else
        hold_x(b, f);
}

void fill_put(ptx_builder *b, fill *f, fill_half half, unsigned stage)
{
    const unsigned first = half == FILL_X ? 0 : f->x_parts * f->passes,
                   count = half == FILL_X ? f->x_parts * f->passes : f->passes;
    for (unsigned i = 0; i < count; i++)
        put(b, half == FILL_X ? f->x_to : f->w_to, offset_of(f, stage, first + i), f->held[i]);
    if (half == FILL_W)
        next_tile(b, f);
}
