/* Norms and sums of rows. */
#include <string.h>

#include "engine.h"

/* ---- Norms that the library has ---- */

enum { N_KIND, N_ROWS, N_COLUMNS, N_STRIDE, N_EPS };

static qdnnStatus_t make_norm(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const uint32_t bits = (uint32_t)number[N_EPS];
    qdnnNorm_t norm = {.size = sizeof norm, .kind = (qdnnNormKind_t)number[N_KIND]};
    memcpy(&norm.eps, &bits, sizeof norm.eps);
    qdnnTensorDescriptor_t x =
        shapes_matrix(&s, QDNN_DATA_F32, number[N_ROWS], number[N_COLUMNS], number[N_STRIDE]);
    qdnnTensorDescriptor_t y =
        shapes_matrix(&s, QDNN_DATA_F32, number[N_ROWS], number[N_COLUMNS], number[N_COLUMNS]);
    return shapes_free(&s, s.status ? s.status : qdnnCreateNormPlan(handle, &norm, x, y, NULL, plan));
}

static bool run_norm(run *r, qdnnNormKind_t kind, int64_t rows, int64_t columns, int64_t stride, int32_t eps,
                     const void *x, void *y)
{
    plan_request request = {.make = make_norm,
                            .number = {[N_KIND] = kind,
                                       [N_ROWS] = planned_rows(rows),
                                       [N_COLUMNS] = columns,
                                       [N_STRIDE] = stride,
                                       [N_EPS] = (uint32_t)eps}};
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_Y, y, 0}};
    return run_plan(r, &request, rows, bindings, 2);
}

static bool is_f32(run *r, const struct ggml_tensor *t)
{
    if (t->type != GGML_TYPE_F32 || t->src[0]->type != GGML_TYPE_F32)
        return run_declines(r, "rows of type %s", ggml_type_name(t->src[0]->type));
    return ggml_is_contiguous(t) || run_declines(r, "a result with gaps");
}

/* Rows of x with one distance from one to the next: as they are, or copied. */
static bool uniform_rows(run *r, const struct ggml_tensor *x, const void **data, int64_t *stride)
{
    place p = place_of(x);
    *data = x->data;
    if (rows_are_uniform(&p, stride))
        return true;
    *stride = x->ne[0];
    const bool can = packed_place(r, x, SCRATCH_X, &p);
    *data = p.data;
    return can;
}

bool op_norm(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *x = t->src[0];
    const void *data;
    int64_t stride;
    return is_f32(r, t) && uniform_rows(r, x, &data, &stride) &&
           run_norm(r, t->op == GGML_OP_NORM ? QDNN_NORM_LAYER : QDNN_NORM_RMS, ggml_nrows(x), x->ne[0],
                    stride, t->op_params[0], data, t->data);
}

/* A group is a row, if all have as many channels. */
bool op_group_norm(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *x = t->src[0];
    const int64_t groups = t->op_params[0];
    if (!is_f32(r, t))
        return false;
    if (!ggml_is_contiguous(x) || groups <= 0 || x->ne[2] % groups)
        return run_declines(r, "groups of different sizes, or x with gaps");
    const int64_t columns = x->ne[0] * x->ne[1] * (x->ne[2] / groups);
    return run_norm(r, QDNN_NORM_LAYER, groups * x->ne[3], columns, columns, t->op_params[1], x->data,
                    t->data);
}

/* ---- Sums: a block adds up a row, each thread every 256th element, then a tree ---- */

enum { S_OP };

static ptx_val sum_of_block(ptx_builder *b, ptx_val mine)
{
    ptx_val shared = ptx_shared(b, "sums", PTX_F32, KERNEL_BLOCK, 16), thread = ptx_tid_x(b);
    ptx_val at = ptx_at(b, shared, thread, 4);
    ptx_st_shared(b, at, 0, mine);
    for (int half = KERNEL_BLOCK / 2; half > 0; half /= 2) {
        ptx_bar_sync(b, 0, KERNEL_BLOCK);
        ptx_if(b, ptx_setp(b, PTX_LT, thread, half));
        ptx_val sum = ptx_add(b, ptx_ld_shared(b, PTX_F32, at, 0), ptx_ld_shared(b, PTX_F32, at, 4 * half));
        ptx_st_shared(b, at, 0, sum);
        ptx_end_if(b);
    }
    ptx_bar_sync(b, 0, KERNEL_BLOCK);
    return ptx_ld_shared(b, PTX_F32, shared, 0);
}

static void write_sums(ptx_builder *b, const int64_t *spec)
{
    const bool is_norm = spec[S_OP] == GGML_OP_L2_NORM;
    ptx_val y = ptx_param_ptr(b, "y", 4), x = ptx_param_ptr(b, "x", 4);
    ptx_val columns = ptx_param(b, PTX_U32, "columns"), stride = ptx_param(b, PTX_U32, "stride"),
            eps = ptx_param(b, PTX_F32, "eps");
    ptx_val row = ptx_ctaid_x(b), sum = ptx_var(b, ptx_f32(b, 0.0f));
    ptx_val from = ptx_mad_wide(b, row, stride, x);
    ptx_val i = ptx_for(b, ptx_tid_x(b), columns, ptx_u32(b, KERNEL_BLOCK));
    ptx_val element = ptx_ld_global(b, PTX_F32, ptx_at(b, from, i, 4), 0);
    ptx_assign(b, sum, is_norm ? ptx_fma(b, element, element, sum) : ptx_add(b, sum, element));
    ptx_end_for(b);
    ptx_val total = sum_of_block(b, sum);
    if (is_norm) {
        ptx_val length = ptx_max(b, ptx_sqrt(b, total), eps);
        ptx_val to = ptx_mad_wide(b, row, ptx_mul(b, columns, 4), y);
        ptx_val j = ptx_for(b, ptx_tid_x(b), columns, ptx_u32(b, KERNEL_BLOCK));
        ptx_val scaled = ptx_div(b, ptx_ld_global(b, PTX_F32, ptx_at(b, from, j, 4), 0), length);
        ptx_st_global(b, ptx_at(b, to, j, 4), 0, scaled);
        ptx_end_for(b);
        return;
    }
    if (spec[S_OP] == GGML_OP_MEAN)
        total = ptx_div(b, total, ptx_cvt_rn(b, PTX_F32, columns));
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_tid_x(b), 0));
    ptx_st_global(b, ptx_at(b, y, row, 4), 0, total);
    ptx_end_if(b);
}

bool op_sums(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *x = t->src[0];
    const void *data;
    int64_t stride, columns = x->ne[0], rows = ggml_nrows(x);
    place p;
    if (!is_f32(r, t))
        return false;
    if (t->op == GGML_OP_SUM && !is_packed_row(x)) /* ggml's own kernels add what is adjacent in memory */
        return run_declines(r, "the sum of a transposed tensor");
    if (t->op == GGML_OP_SUM) { /* one row of all elements */
        if (!packed_place(r, x, SCRATCH_X, &p))
            return false;
        data = p.data, stride = columns = ggml_nelements(x), rows = 1;
    } else if (!uniform_rows(r, x, &data, &stride)) {
        return false;
    }
    if (columns > UINT32_MAX / 8 || stride > UINT32_MAX / 4)
        return run_declines(r, "rows of more than 2^29 elements");
    const kernel_request request = {
        .write = write_sums,
        .spec = {[S_OP] = t->op},
        .number = {(uint32_t)columns, (uint32_t)stride * 4, (uint32_t)t->op_params[0]},
        .numbers = 3,
        .pointers = 2,
        .blocks = rows};
    return run_kernel(r, &request, (const void *const[]){t->data, data});
}
