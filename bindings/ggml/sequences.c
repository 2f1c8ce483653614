/* Operations by position: TRI, DIAG, DIAG_MASK_INF, ARANGE, CUMSUM, and SSM_CONV, the convolution over tokens of recurrent
 * layers. All are f32. */
#include <math.h>
#include <string.h>

#include "bodies.h"
#include "engine.h"

static bool is_f32(run *r, const struct ggml_tensor *t)
{
    if (t->type != GGML_TYPE_F32 || !ggml_is_contiguous(t) || (t->src[0] && t->src[0]->type != GGML_TYPE_F32))
        return run_declines(r, "a result of type %s, or with gaps, or x of another type",
                            ggml_type_name(t->type));
    return true;
}

/* One thread computes one element. */
static bool one_each(run *r, kernel_request *request, int64_t elements, const void *const *pointers)
{
    if (elements > UINT32_MAX - KERNEL_BLOCK)
        return run_declines(r, "more than 2^32 elements");
    request->number[0] = (uint32_t)elements;
    request->blocks = (elements + KERNEL_BLOCK - 1) / KERNEL_BLOCK;
    return run_kernel(r, request, pointers);
}

/* i / n, and the rest in *i. */
static ptx_val split(ptx_builder *b, ptx_val *i, ptx_val n)
{
    ptx_val whole = ptx_div(b, *i, n), from = *i;
    *i = ptx_sub(b, from, ptx_mul(b, whole, n));
    return whole;
}

/* ---- Triangles: elements whose column minus row is within a range are kept, the others become one number ---- */

static void write_triangle(ptx_builder *b, const int64_t *spec)
{
    (void)spec;
    ptx_val y = ptx_param_ptr(b, "y", 4), x = ptx_param_ptr(b, "x", 4), n = ptx_param(b, PTX_U32, "n"),
            columns = ptx_param(b, PTX_U32, "columns"), rows = ptx_param(b, PTX_U32, "rows"),
            x_row = ptx_param(b, PTX_U32, "x_row"), x_matrix = ptx_param(b, PTX_U32, "x_matrix"),
            low = ptx_param(b, PTX_S32, "low"), high = ptx_param(b, PTX_S32, "high"),
            other = ptx_param(b, PTX_F32, "other");
    ptx_val i = ptx_global_index(b), column = i;
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, n));
    ptx_val row = split(b, &column, columns), matrix = split(b, &row, rows);
    ptx_val from = ptx_mad_wide(b, row, x_row, ptx_mad_wide(b, matrix, x_matrix, x));
    ptx_val element = ptx_ld_global(b, PTX_F32, ptx_at(b, from, column, 4), 0);
    ptx_val apart = ptx_sub(b, ptx_as(b, PTX_S32, column), ptx_as(b, PTX_S32, row));
    ptx_val is_kept = ptx_setp(b, PTX_EQ, apart, ptx_clamp(b, apart, low, high));
    ptx_st_global(b, ptx_at(b, y, i, 4), 0, ptx_selp(b, element, other, is_kept));
}

/* The least and the largest difference that are kept. */
static void range_of(const struct ggml_tensor *t, int32_t *low, int32_t *high)
{
    static const int32_t triangles[][2] = {[GGML_TRI_TYPE_UPPER_DIAG] = {0, INT32_MAX},
                                           [GGML_TRI_TYPE_UPPER] = {1, INT32_MAX},
                                           [GGML_TRI_TYPE_LOWER_DIAG] = {INT32_MIN, 0},
                                           [GGML_TRI_TYPE_LOWER] = {INT32_MIN, -1}};
    const int32_t parameter = t->op_params[0];
    *low = t->op == GGML_OP_TRI ? triangles[parameter][0] : t->op == GGML_OP_DIAG ? 0 : INT32_MIN;
    *high = t->op == GGML_OP_TRI ? triangles[parameter][1] : t->op == GGML_OP_DIAG ? 0 : parameter;
}

bool op_triangle(run *r, const struct ggml_tensor *t)
{
    int32_t low, high;
    place x;
    range_of(t, &low, &high);
    if (!is_f32(r, t) || !packed_place(r, t->src[0], SCRATCH_X, &x))
        return false;
    if (x.nb[2] > UINT32_MAX)
        return run_declines(r, "a matrix of more than 4 GB");
    kernel_request request = {
        .write = write_triangle,
        .number = {0, (uint32_t)t->ne[0], (uint32_t)t->ne[1],
                   t->op == GGML_OP_DIAG ? 0 : (uint32_t)x.nb[1], /* the rows of x are all the same one */
                   (uint32_t)x.nb[2], (uint32_t)low, (uint32_t)high,
                   float_bits(t->op == GGML_OP_DIAG_MASK_INF ? -INFINITY : 0)},
        .numbers = 8,
        .pointers = 2};
    return one_each(r, &request, ggml_nelements(t), (const void *const[]){t->data, x.data});
}

/* ---- ARANGE: 0, 1, 2 ... times a step, plus a start ---- */

bool op_arange(run *r, const struct ggml_tensor *t)
{
    float start, step;
    const place to = place_of(t);
    place from = place_packed(&to, GGML_TYPE_I32, NULL);
    memcpy(&start, &t->op_params[0], sizeof start);
    memcpy(&step, &t->op_params[2], sizeof step);
    const void *numbers = run_iota(r, t->ne[0]);
    if (!is_f32(r, t) || !numbers)
        return numbers ? false : run_declines(r, "no memory for the numbers");
    from.data = (char *)(uintptr_t)numbers;
    return run_each(r, body_of_op(GGML_OP_SCALE), (const float[EACH_NUMBERS]){step, start}, &to, &from, NULL);
}

/* ---- CUMSUM: a block adds up a row, 256 elements at a time ---- */

static void write_running_sums(ptx_builder *b, const int64_t *spec)
{
    (void)spec;
    ptx_val y = ptx_param_ptr(b, "y", 4), x = ptx_param_ptr(b, "x", 4),
            columns = ptx_param(b, PTX_U32, "columns"), thread = ptx_tid_x(b);
    ptx_val shared = ptx_shared(b, "sums", PTX_F32, KERNEL_BLOCK, 16), mine = ptx_at(b, shared, thread, 4);
    ptx_val row = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_mul(b, columns, 4));
    ptx_val from = ptx_add(b, x, row), to = ptx_add(b, y, row);
    ptx_val before = ptx_var(b, ptx_f32(b, 0.0f));
    ptx_val first = ptx_for(b, ptx_u32(b, 0), columns, ptx_u32(b, KERNEL_BLOCK));
    ptx_val i = ptx_add(b, first, thread), is_inside = ptx_setp(b, PTX_LT, i, columns);
    ptx_val sum = ptx_var(b, ptx_f32(b, 0.0f));
    ptx_if(b, is_inside);
    ptx_assign(b, sum, ptx_ld_global(b, PTX_F32, ptx_at(b, from, i, 4), 0));
    ptx_end_if(b);
    ptx_st_shared(b, mine, 0, sum);
    for (int step = 1; step < KERNEL_BLOCK; step *= 2) {
        ptx_bar_sync(b, 0, KERNEL_BLOCK);
        ptx_if(b, ptx_setp(b, PTX_GE, thread, step));
        ptx_assign(b, sum, ptx_add(b, ptx_ld_shared(b, PTX_F32, mine, -4 * step), sum));
        ptx_end_if(b);
        ptx_bar_sync(b, 0, KERNEL_BLOCK);
        ptx_st_shared(b, mine, 0, sum);
    }
    ptx_bar_sync(b, 0, KERNEL_BLOCK);
    ptx_if(b, is_inside);
    ptx_st_global(b, ptx_at(b, to, i, 4), 0, ptx_add(b, before, sum));
    ptx_end_if(b);
    ptx_assign(b, before, ptx_add(b, before, ptx_ld_shared(b, PTX_F32, shared, 4 * (KERNEL_BLOCK - 1))));
    ptx_bar_sync(b, 0, KERNEL_BLOCK); /* all have read it */
    ptx_end_for(b);
}

bool op_running_sums(run *r, const struct ggml_tensor *t)
{
    place x;
    if (!is_f32(r, t) || !packed_place(r, t->src[0], SCRATCH_X, &x))
        return false;
    if (t->ne[0] > UINT32_MAX / 8)
        return run_declines(r, "rows of more than 2^29 elements");
    const kernel_request request = {.write = write_running_sums,
                                    .number = {(uint32_t)t->ne[0]},
                                    .numbers = 1,
                                    .pointers = 2,
                                    .blocks = ggml_nrows(t)};
    return run_kernel(r, &request, (const void *const[]){t->data, x.data});
}

/* ---- SSM_CONV: y[channel, t] is the sum of x[t + k, channel] w[k, channel] over the taps k ---- */

enum { S_TAPS };

static void write_convolution(ptx_builder *b, const int64_t *spec)
{
    ptx_val y = ptx_param_ptr(b, "y", 4), x = ptx_param_ptr(b, "x", 4), w = ptx_param_ptr(b, "w", 4);
    ptx_val n = ptx_param(b, PTX_U32, "n"), channels = ptx_param(b, PTX_U32, "channels"),
            tokens = ptx_param(b, PTX_U32, "tokens"), x_row = ptx_param(b, PTX_U32, "x_row"),
            x_sequence = ptx_param(b, PTX_U32, "x_sequence"), w_row = ptx_param(b, PTX_U32, "w_row");
    ptx_val i = ptx_global_index(b), channel = i, sum = ptx_f32(b, 0.0f);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, n));
    ptx_val token = split(b, &channel, channels), sequence = split(b, &token, tokens);
    ptx_val from = ptx_mad_wide(b, channel, x_row, ptx_mad_wide(b, sequence, x_sequence, x));
    ptx_val at = ptx_at(b, from, token, 4), weight = ptx_mad_wide(b, channel, w_row, w);
    for (int k = 0; k < (int)spec[S_TAPS]; k++) {
        ptx_val element = ptx_ld_global(b, PTX_F32, at, 4 * k);
        sum = ptx_fma(b, element, ptx_ld_global(b, PTX_F32, weight, 4 * k), sum);
    }
    ptx_st_global(b, ptx_at(b, y, i, 4), 0, sum);
}

bool op_convolution(run *r, const struct ggml_tensor *t)
{
    enum { TAPS_MAX = 64 };
    const struct ggml_tensor *x = t->src[0], *w = t->src[1];
    if (!is_f32(r, t))
        return false;
    if (w->type != GGML_TYPE_F32 || !is_packed_row(x) || !is_packed_row(w) || w->ne[0] > TAPS_MAX ||
        x->nb[2] > UINT32_MAX)
        return run_declines(r, "weights of type %s, gaps, or more than %d taps", ggml_type_name(w->type),
                            TAPS_MAX);
    kernel_request request = {.write = write_convolution,
                              .spec = {[S_TAPS] = w->ne[0]},
                              .number = {0, (uint32_t)t->ne[0], (uint32_t)t->ne[1], (uint32_t)x->nb[1],
                                         (uint32_t)x->nb[2], (uint32_t)w->nb[1]},
                              .numbers = 6,
                              .pointers = 3};
    return one_each(r, &request, ggml_nelements(t), (const void *const[]){t->data, x->data, w->data});
}
