/* Codes on their way to shared memory: by cp.async, through registers (sm_75), or byte by byte where rows do not begin at
 * multiples of 16. What lies beyond a row is 0. */
#include "kernels/integer/fill.h"

#include "kernels/emit.h"

/* ---- Windows ---- */

static ptx_val small(ptx_builder *b, ptx_val number)
{
    return ptx_cvt(b, PTX_U32, number);
}

/* Output m's image and the first position of its window. */
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
    ptx_val row, column, channel; /* u32: within the window */
    ptx_val exists;               /* k is in the row */
} window_chunk;

static window_chunk chunk_at(ptx_builder *b, const fill *f)
{
    ptx_val depth = ptx_u32(b, (uint32_t)f->spec->window_c), width = ptx_u32(b, (uint32_t)f->spec->window_w);
    ptx_val position = ptx_div(b, f->k, depth), channel = ptx_sub(b, f->k, ptx_mul(b, position, depth));
    ptx_val row = ptx_div(b, position, width), column = ptx_sub(b, position, ptx_mul(b, row, width));
    return (window_chunk){row, column, channel, ptx_setp(b, PTX_LT, f->k, f->w.pitch)};
}

/* Its address; *inside says whether it lies in the image. */
static ptx_val window_address(ptx_builder *b, const fill *f, const fill_window *w, const window_chunk *c, ptx_val *inside)
{
    const fill_windows *s = &f->windows;
    ptx_val h = ptx_mad(b, c->row, s->dilation[0], w->position[0]);
    ptx_val v = ptx_mad(b, c->column, s->dilation[1], w->position[1]);
    *inside = ptx_setp_and(b, PTX_LT, h, s->in[0], ptx_setp_and(b, PTX_LT, v, s->in[1], c->exists));
    ptx_val pixel = ptx_mad(b, h, s->in[1], v), offset = ptx_mad(b, pixel, s->channels, c->channel);
    return ptx_add(b, w->image, ptx_cvt(b, PTX_U64, offset));
}

/* What stands for a position in the padding: x_zero, but 0 behind the last k. */
static ptx_val padding_word(ptx_builder *b, const fill *f, const window_chunk *c)
{
    return f->windows.splat.kind == PTX_NOTHING ? ptx_u32(b, 0)
                                                : ptx_selp(b, f->windows.splat, ptx_u32(b, 0), c->exists);
}

/* ---- Beginning ---- */

static ptx_val number_of_row(ptx_builder *b, ptx_val first, unsigned pass)
{
    ptx_val row = ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_tid_x(b), 2));
    return ptx_add(b, ptx_add(b, first, row), ptx_u64(b, (uint64_t)pass * FILL_ROWS));
}

static void rows_begin(ptx_builder *b, fill *f, ptx_val chunk)
{
    ptx_val skipped = ptx_cvt(b, PTX_U64, chunk);
    for (unsigned i = 0; i < f->passes; i++) {
        if (f->is_conv)
            f->of_row[i] = window_of(b, f, number_of_row(b, f->first_row, i));
        else
            f->x_from[i] = ptx_var(b, ptx_add(b, int_row(b, &f->x, number_of_row(b, f->first_row, i)), skipped));
        f->w_from[i] = ptx_var(b, ptx_add(b, int_row(b, &f->w, number_of_row(b, f->first_column, i)), skipped));
    }
}

void fill_begin(ptx_builder *b, fill *f, ptx_val shared)
{
    ptx_val tid = ptx_tid_x(b), row = ptx_shr(b, tid, 2), chunk = ptx_and(b, tid, FILL_CHUNKS - 1);
    ptx_val place = ptx_xor(b, chunk, ptx_and(b, ptx_shr(b, row, 1), 3));
    f->to = ptx_add(b, shared, ptx_mad(b, row, FILL_ROW, ptx_shl(b, place, 4)));
    ptx_val byte = ptx_shl(b, chunk, 4);
    f->k = ptx_var(b, byte);
    f->is_fast = ptx_and(b, f->x.is_fast, f->w.is_fast);
    rows_begin(b, f, byte);
    for (unsigned i = 0; i < 2 * f->passes && !f->is_async; i++)
        for (int j = 0; j < 4; j++)
            f->held[i][j] = ptx_var(b, ptx_u32(b, 0));
}

/* ---- Slowly ---- */

static void put(ptx_builder *b, ptx_val to, int offset, const ptx_val words[4])
{
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, offset, words, 4);
}

static void window_slowly(ptx_builder *b, const fill *f, ptx_val row, ptx_val words[4])
{
    window_chunk c = chunk_at(b, f);
    fill_window w = window_of(b, f, row);
    ptx_val inside, address = window_address(b, f, &w, &c, &inside), other = padding_word(b, f, &c);
    int_matrix one = f->x;
    one.pitch = ptx_selp(b, ptx_u32(b, INT_CHUNK), ptx_u32(b, 0), inside);
    int_load_slowly(b, &one, address, ptx_u32(b, 0), words);
    for (int i = 0; i < 4; i++)
        words[i] = ptx_selp(b, words[i], other, inside);
}

/* One of the operands, row by row. */
static void slowly(ptx_builder *b, const fill *f, bool is_w, unsigned stage)
{
    const int_matrix *matrix = is_w ? &f->w : &f->x;
    ptx_val words[4], pass = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, f->passes), 1);
    ptx_val further = ptx_mul_wide(b, pass, ptx_u32(b, FILL_ROWS));
    ptx_val row = ptx_add(b, number_of_row(b, is_w ? f->first_column : f->first_row, 0), further);
    if (f->is_conv && !is_w)
        window_slowly(b, f, row, words);
    else
        int_load_slowly(b, matrix, int_row(b, matrix, row), f->k, words);
    ptx_val to = ptx_mad(b, pass, FILL_ROWS * FILL_ROW, f->to);
    put(b, to, (int)(stage * f->stage_bytes + (is_w ? f->passes * FILL_ROWS * FILL_ROW : 0)), words);
    ptx_end_for(b);
}

/* ---- By cp.async ---- */

static int offset_of(const fill *f, unsigned stage, unsigned pass)
{
    return (int)(stage * f->stage_bytes + pass * FILL_ROWS * FILL_ROW);
}

static void copy(ptx_builder *b, const fill *f, ptx_val from, ptx_val bytes, int to)
{
    ptx_cp_async_cg_zfill(b, f->to, to, from, 0, bytes, 0);
    ptx_assign(b, from, ptx_add(b, from, FILL_ROW));
}

static void copy_window(ptx_builder *b, const fill *f, const fill_window *w, const window_chunk *c, int to)
{
    ptx_val inside, address = window_address(b, f, w, c, &inside);
    if (f->windows.splat.kind == PTX_NOTHING) {
        ptx_val bytes = ptx_selp(b, ptx_u32(b, INT_CHUNK), ptx_u32(b, 0), inside);
        ptx_cp_async_cg_zfill(b, f->to, to, address, 0, bytes, 0);
        return;
    }
    ptx_val other = padding_word(b, f, c), words[4] = {other, other, other, other};
    ptx_if(b, inside);
    ptx_cp_async_cg(b, f->to, to, address, 0, 0);
    ptx_else(b);
    put(b, f->to, to, words);
    ptx_end_if(b);
}

static void copy_tile(ptx_builder *b, const fill *f, unsigned stage)
{
    ptx_val inside = ptx_setp(b, PTX_LT, f->k, f->w.pitch);
    ptx_val bytes = ptx_selp(b, ptx_u32(b, INT_CHUNK), ptx_u32(b, 0), inside);
    window_chunk c = {0};
    if (f->is_conv)
        c = chunk_at(b, f);
    for (unsigned i = 0; i < f->passes; i++) {
        if (f->is_conv)
            copy_window(b, f, &f->of_row[i], &c, offset_of(f, stage, i));
        else
            copy(b, f, f->x_from[i], bytes, offset_of(f, stage, i));
    }
    for (unsigned i = 0; i < f->passes; i++)
        copy(b, f, f->w_from[i], bytes, offset_of(f, stage, f->passes + i));
}

/* ---- Through registers ---- */

static void hold(ptx_builder *b, const ptx_val held[4], ptx_val from, ptx_val inside, ptx_val other)
{
    ptx_val words[4];
    ptx_if(b, inside);
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, from, 0, words, 4);
    for (int i = 0; i < 4; i++)
        ptx_assign(b, held[i], words[i]);
    ptx_else(b);
    for (int i = 0; i < 4; i++)
        ptx_assign(b, held[i], other);
    ptx_end_if(b);
}

static void hold_tile(ptx_builder *b, const fill *f)
{
    ptx_val inside = ptx_setp(b, PTX_LT, f->k, f->w.pitch), none = ptx_u32(b, 0);
    window_chunk c = {0};
    if (f->is_conv)
        c = chunk_at(b, f);
    for (unsigned i = 0; i < f->passes; i++) {
        if (f->is_conv) {
            ptx_val here, from = window_address(b, f, &f->of_row[i], &c, &here);
            hold(b, f->held[i], from, here, padding_word(b, f, &c));
        } else {
            hold(b, f->held[i], f->x_from[i], inside, none);
            ptx_assign(b, f->x_from[i], ptx_add(b, f->x_from[i], FILL_ROW));
        }
        hold(b, f->held[f->passes + i], f->w_from[i], inside, none);
        ptx_assign(b, f->w_from[i], ptx_add(b, f->w_from[i], FILL_ROW));
    }
}

/* ---- One stage ---- */

void fill_start(ptx_builder *b, fill *f, unsigned stage)
{
    ptx_uniform(b);
    ptx_if(b, f->is_fast);
    if (f->is_async)
        copy_tile(b, f, stage);
    else
        hold_tile(b, f);
    if (f->is_async) {
        ptx_else(b);
        slowly(b, f, false, stage);
        slowly(b, f, true, stage);
    }
    ptx_end_if(b);
    if (f->is_async) {
        ptx_cp_async_commit(b);
        ptx_assign(b, f->k, ptx_add(b, f->k, FILL_ROW));
    }
}

void fill_end(ptx_builder *b, fill *f, unsigned stage)
{
    if (f->is_async)
        return;
    ptx_uniform(b);
    ptx_if(b, f->is_fast);
    for (unsigned i = 0; i < 2 * f->passes; i++)
        put(b, f->to, offset_of(f, stage, i), f->held[i]);
    ptx_else(b);
    slowly(b, f, false, stage);
    slowly(b, f, true, stage);
    ptx_end_if(b);
    ptx_assign(b, f->k, ptx_add(b, f->k, FILL_ROW));
}
