/* Convolutions of any shape: one thread per output loops over its window. */
#include "kernels/integer/integer.h"

enum { BLOCK = INT_WINDOW_BLOCK, ONES = 0x01010101 };

typedef struct window {
    const kernel_spec *spec;
    gemm_args args;
    int_results results;
    ptx_val image, out, oh, ow;                     /* u32: position of the thread's output */
    ptx_val channels, first_channel, height, width; /* u32: of x */
    ptx_val sum, x_sum, w_sum, count;               /* variables, s32 */
} window;

static ptx_val number(ptx_builder *b, const window *w, kernel_number which)
{
    return ptx_cvt(b, PTX_U32, w->args.all.number[which]);
}

/* The height (0) or the width (1) of a pair. */
static ptx_val half(ptx_builder *b, const window *w, kernel_number which, int part)
{
    ptx_val halves[2];
    ptx_unpack(b, PTX_U32, w->args.all.number[which], halves, 2);
    return halves[1 - part];
}

/* index / size; the remainder goes to *rest. */
static ptx_val split(ptx_builder *b, ptx_val index, ptx_val size, ptx_val *rest)
{
    ptx_val quotient = ptx_div(b, index, size);
    *rest = ptx_cvt(b, PTX_U32, ptx_sub(b, index, ptx_mul(b, quotient, size)));
    return quotient;
}

/* Finds the thread's output; outputs are numbered in the order of y. */
static void locate(ptx_builder *b, window *w, ptx_val index)
{
    const ptx_val *n = w->args.all.number;
    ptx_val left = index, outputs = n[NUMBER_ROWS];
    if (w->spec->conv.nhwc)
        left = split(b, left, outputs, &w->out);
    left = split(b, left, n[NUMBER_CONV_OUT_W], &w->ow);
    left = split(b, left, n[NUMBER_CONV_OUT_H], &w->oh);
    if (!w->spec->conv.nhwc)
        left = split(b, left, outputs, &w->out);
    w->image = ptx_cvt(b, PTX_U32, left);
    w->channels = number(b, w, NUMBER_CONV_CHANNELS);
    w->height = number(b, w, NUMBER_CONV_H);
    w->width = number(b, w, NUMBER_CONV_W);
    ptx_val group = ptx_div(b, w->out, number(b, w, NUMBER_CONV_OUTPUTS));
    w->first_channel = ptx_mul(b, group, ptx_u32(b, (uint32_t)w->spec->conv.window_c));
}

/* The position in x of row (or column) i of the window; negative positions wrap to very large ones. */
static ptx_val position(ptx_builder *b, const window *w, int part, ptx_val i)
{
    ptx_val first = ptx_mul(b, part ? w->ow : w->oh, half(b, w, NUMBER_CONV_STRIDE, part));
    ptx_val step = ptx_mul(b, i, half(b, w, NUMBER_CONV_DILATION, part));
    return ptx_sub(b, ptx_add(b, first, step), half(b, w, NUMBER_CONV_PADDING, part));
}

/* ((a * b_size + b) * c_size + c) * d_size + d */
static ptx_val place(ptx_builder *b, ptx_val base, const ptx_val index[4], const ptx_val size[4])
{
    ptx_val at = ptx_cvt(b, PTX_U64, index[0]);
    for (int i = 1; i < 4; i++)
        at = ptx_mad(b, at, ptx_cvt(b, PTX_U64, size[i]), ptx_cvt(b, PTX_U64, index[i]));
    return ptx_add(b, base, at);
}

static ptx_val x_at(ptx_builder *b, const window *w, ptx_val h, ptx_val v, ptx_val channel)
{
    const bool nhwc = w->spec->conv.nhwc;
    const ptx_val index[4] = {w->image, nhwc ? h : channel, nhwc ? v : h, nhwc ? channel : v};
    const ptx_val size[4] = {
        {0}, nhwc ? w->height : w->channels, nhwc ? w->width : w->height, nhwc ? w->channels : w->width};
    return place(b, w->args.all.operand[QDNN_OPERAND_X], index, size);
}

static ptx_val w_at(ptx_builder *b, const window *w, ptx_val r, ptx_val s, ptx_val channel)
{
    const bool nhwc = w->spec->conv.nhwc;
    ptx_val height = ptx_u32(b, (uint32_t)w->spec->conv.window_h),
            width = ptx_u32(b, (uint32_t)w->spec->conv.window_w);
    ptx_val depth = ptx_u32(b, (uint32_t)w->spec->conv.window_c);
    const ptx_val index[4] = {w->out, nhwc ? r : channel, nhwc ? s : r, nhwc ? channel : s};
    const ptx_val size[4] = {{0}, nhwc ? height : depth, nhwc ? width : height, nhwc ? depth : width};
    return place(b, w->args.all.operand[QDNN_OPERAND_CODES], index, size);
}

static void add_product(ptx_builder *b, const window *w, ptx_val x_from, ptx_val w_from)
{
    ptx_val x =
        ptx_as(b, PTX_S32,
               ptx_ld_global_nc(b, w->spec->integer.x_codes == QDNN_DATA_U8 ? PTX_U8 : PTX_S8, x_from, 0));
    ptx_val c = ptx_ld_global_nc(b, PTX_S8, w_from, 0);
    if (w->spec->integer.x_zero)
        x = ptx_sub(b, x, w->results.x_zero);
    if (w->spec->integer.w_zero)
        c = ptx_sub(b, c, w->results.w_zero);
    ptx_assign(b, w->sum, ptx_mad(b, x, c, w->sum));
}

/* Four channels at once. Zero points are applied at the end. */
static void add_word(ptx_builder *b, const window *w, ptx_val x_from, ptx_val w_from)
{
    ptx_val x = int_typed(b, w->spec->integer.x_codes, ptx_ld_global_nc(b, PTX_U32, x_from, 0));
    ptx_val c = ptx_ld_global_nc(b, PTX_S32, w_from, 0);
    ptx_assign(b, w->sum, ptx_dp4a(b, x, c, w->sum));
    if (w->spec->integer.w_zero)
        ptx_assign(b, w->x_sum, ptx_dp4a(b, x, ptx_s32(b, ONES), w->x_sum));
    if (w->spec->integer.x_zero)
        ptx_assign(b, w->w_sum, ptx_dp4a(b, c, ptx_s32(b, ONES), w->w_sum));
    if (w->spec->integer.w_zero && w->spec->integer.x_zero)
        ptx_assign(b, w->count, ptx_add(b, w->count, 4));
}

/* Adds all channels at a position of the window that is inside the image. */
static void add_position(ptx_builder *b, const window *w, ptx_val is_words, ptx_val r, ptx_val s, ptx_val h,
                         ptx_val v)
{
    ptx_val depth = ptx_u32(b, (uint32_t)w->spec->conv.window_c);
    const bool has_words = is_words.kind != PTX_NOTHING;
    for (int words = has_words; words >= 0; words--) {
        if (has_words && words) {
            ptx_uniform(b);
            ptx_if(b, is_words);
        }
        ptx_val c = ptx_for(b, ptx_u32(b, 0), depth, words ? 4 : 1);
        ptx_val x_from = x_at(b, w, h, v, ptx_add(b, w->first_channel, c)), w_from = w_at(b, w, r, s, c);
        if (words)
            add_word(b, w, x_from, w_from);
        else
            add_product(b, w, x_from, w_from);
        ptx_end_for(b);
        if (has_words && words)
            ptx_else(b);
    }
    if (has_words)
        ptx_end_if(b);
}

/* Whether words of four channels can be used: x and w are aligned to words, and so is every position. */
static ptx_val begins_words(ptx_builder *b, const window *w)
{
    if (!w->spec->conv.nhwc || w->spec->conv.window_c % 4)
        return (ptx_val){0};
    ptx_val all = ptx_or(b, w->args.all.operand[QDNN_OPERAND_X], w->args.all.operand[QDNN_OPERAND_CODES]);
    ptx_val low = ptx_or(b, ptx_cvt(b, PTX_U32, all), w->channels);
    return ptx_setp(b, PTX_EQ, ptx_and(b, low, 3), 0);
}

static void sum_window(ptx_builder *b, window *w)
{
    ptx_val is_words = begins_words(b, w);
    w->sum = ptx_var(b, ptx_s32(b, 0));
    w->x_sum = ptx_var(b, ptx_s32(b, 0));
    w->w_sum = ptx_var(b, ptx_s32(b, 0));
    w->count = ptx_var(b, ptx_s32(b, 0));
    ptx_val r = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, (uint32_t)w->spec->conv.window_h), 1);
    ptx_val h = position(b, w, 0, r);
    ptx_continue_unless(b, ptx_setp(b, PTX_LT, h, w->height));
    ptx_val s = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, (uint32_t)w->spec->conv.window_w), 1);
    ptx_val v = position(b, w, 1, s);
    ptx_continue_unless(b, ptx_setp(b, PTX_LT, v, w->width));
    add_position(b, w, is_words, r, s, h, v);
    ptx_end_for(b);
    ptx_end_for(b);
    if (w->spec->integer.w_zero)
        ptx_assign(b, w->sum, ptx_sub(b, w->sum, ptx_mul(b, w->results.w_zero, w->x_sum)));
    if (w->spec->integer.x_zero)
        ptx_assign(b, w->sum, ptx_sub(b, w->sum, ptx_mul(b, w->results.x_zero, w->w_sum)));
    if (w->spec->integer.w_zero && w->spec->integer.x_zero) {
        ptx_val zeros = ptx_mul(b, w->results.x_zero, w->results.w_zero);
        ptx_assign(b, w->sum, ptx_mad(b, zeros, w->count, w->sum));
    }
}

void emit_int_window(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 3); /* up to 80 registers */
    window w = {.spec = spec, .args = int_declare(b, row, spec)};
    ptx_val index = ptx_global_index64(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, index, ptx_mul(b, w.args.m, w.args.n)));
    w.results = int_results_begin(b, spec, &w.args);
    locate(b, &w, index);
    sum_window(b, &w);
    int_column column = int_column_begin(b, &w.results, ptx_cvt(b, PTX_U64, w.out));
    int_store_at(b, &w.results, &column, index, w.sum);
}
