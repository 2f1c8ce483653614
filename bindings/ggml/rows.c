/* Rows by index, and copies between types. */
#include "engine.h"

/* ---- GET_ROWS ---- */

enum { G_WEIGHTS, G_TABLE_ROWS, G_COLUMNS, G_ROWS };

static qdnnStatus_t make_get_rows(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const int64_t columns = number[G_COLUMNS];
    qdnnTensorDescriptor_t table = shapes_matrix(&s, QDNN_DATA_F32, number[G_TABLE_ROWS], columns, columns),
                           y = shapes_matrix(&s, QDNN_DATA_F32, number[G_ROWS], columns, columns);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[G_WEIGHTS]);
    return shapes_free(&s, s.status ? s.status : qdnnCreateDequantizeRowsPlan(handle, table, quant, y, plan));
}

bool op_get_rows(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    qdnnWeights_t weights;
    if (!weights_type(a->type, &weights))
        return run_declines(r, "a table of type %s", ggml_type_name(a->type));
    if (t->type != GGML_TYPE_F32 || !ggml_is_contiguous(t) || b->type != GGML_TYPE_I32 || !is_packed_row(b))
        return run_declines(
            r, "a result that is not f32 without gaps, or indices that are not i32 without gaps");
    if (!is_packed_row(a) || a->nb[1] != ggml_row_size(a->type, a->ne[0]))
        return run_declines(r, "a table whose rows have gaps");
    plan_request request = {
        .make = make_get_rows,
        .number = {
            [G_WEIGHTS] = weights, [G_TABLE_ROWS] = a->ne[1], [G_COLUMNS] = a->ne[0], [G_ROWS] = b->ne[0]}};
    for (int64_t i2 = 0; i2 < b->ne[2]; i2++)
        for (int64_t i1 = 0; i1 < b->ne[1]; i1++) {
            const qdnnBinding_t bindings[] = {{QDNN_OPERAND_CODES, row_at(a, 0, i1, i2), 0},
                                              {QDNN_OPERAND_ROW_INDEX, row_at(b, i1, i2, 0), 0},
                                              {QDNN_OPERAND_Y, row_at(t, 0, i1, i2), 0}};
            if (!run_plan(r, &request, ALL_ROWS, bindings, 3))
                return false;
            if (r->dry)
                return true;
        }
    return true;
}

/* ---- CPY, CONT, DUP ---- */

enum { C_WEIGHTS, C_COLUMNS, C_ROWS, C_TYPE };

/* Plain numbers to a format. */
static qdnnStatus_t make_quantize(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnTensorDescriptor_t x = shapes_matrix(&s, (qdnnDataType_t)number[C_TYPE], number[C_ROWS],
                                             number[C_COLUMNS], number[C_COLUMNS]);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[C_WEIGHTS]);
    return shapes_free(&s, s.status ? s.status : qdnnCreateQuantizePlan(handle, x, quant, plan));
}

/* And back. */
static qdnnStatus_t make_dequantize(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnTensorDescriptor_t y = shapes_matrix(&s, (qdnnDataType_t)number[C_TYPE], number[C_ROWS],
                                             number[C_COLUMNS], number[C_COLUMNS]);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[C_WEIGHTS]);
    return shapes_free(&s, s.status ? s.status : qdnnCreateDequantizePlan(handle, y, quant, plan));
}

bool op_copy(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *from = t->src[0];
    qdnnWeights_t from_weights, to_weights;
    qdnnDataType_t plain;
    if (!ggml_is_contiguous(from) || !ggml_is_contiguous(t))
        return run_declines(r, "a copy with gaps");
    if (from->type == t->type)
        return run_copy(r, t->data, from->data, ggml_nbytes(t));
    if (!weights_type(from->type, &from_weights) || !weights_type(t->type, &to_weights))
        return run_declines(r, "%s to %s", ggml_type_name(from->type), ggml_type_name(t->type));
    const bool reads =
        plain_type(t->type, &plain); /* any format becomes plain numbers; else plain ones a format */
    if (!reads && !plain_type(from->type, &plain))
        return run_declines(r, "one format to another");
    if (!reads &&
        from->type ==
            GGML_TYPE_BF16) /* ggml's own kernels break the many ties of bf16 otherwise than its reference */
        return run_declines(r, "bf16 to a format");
    plan_request request = {.make = reads ? make_dequantize : make_quantize,
                            .number = {[C_WEIGHTS] = reads ? from_weights : to_weights,
                                       [C_COLUMNS] = reads ? from->ne[0] : t->ne[0],
                                       [C_ROWS] = ggml_nelements(t) / (reads ? from->ne[0] : t->ne[0]),
                                       [C_TYPE] = plain}};
    const qdnnBinding_t bindings[] = {{reads ? QDNN_OPERAND_CODES : QDNN_OPERAND_X, from->data, 0},
                                      {reads ? QDNN_OPERAND_Y : QDNN_OPERAND_CODES, t->data, 0}};
    return run_plan(r, &request, ALL_ROWS, bindings, 2);
}
