/* Rows of a table by their numbers: GET_ROWS, SET_ROWS, ADD_ID. */
#include "bodies.h"
#include "engine.h"

enum { G_TYPE, G_TO_TYPE, G_INDEX_TYPE, G_TABLE_ROWS, G_COLUMNS, G_ROWS, G_X_STRIDE, G_Y_STRIDE };

static qdnnDataType_t index_type(const struct ggml_tensor *t)
{
    return t->type == GGML_TYPE_I64 ? QDNN_DATA_I64 : QDNN_DATA_I32;
}

static bool is_index(run *r, const struct ggml_tensor *t)
{
    if ((t->type == GGML_TYPE_I32 || t->type == GGML_TYPE_I64) && is_packed_row(t))
        return true;
    return run_declines(r, "indices that are not i32 or i64, or that have gaps");
}

/* ---- GET_ROWS ---- */

static qdnnStatus_t make_decode_rows(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const int64_t columns = number[G_COLUMNS];
    qdnnTensorDescriptor_t table = shapes_matrix(&s, (qdnnDataType_t)number[G_TO_TYPE], number[G_TABLE_ROWS],
                                                 columns, columns),
                           y = shapes_matrix(&s, (qdnnDataType_t)number[G_TO_TYPE], number[G_ROWS], columns,
                                             columns);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[G_TYPE]);
    return shapes_free(&s, s.status ? s.status : qdnnCreateDequantizeRowsPlan(handle, table, quant, y, plan));
}

static qdnnStatus_t make_gather(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnTensorDescriptor_t table = shapes_matrix(&s, (qdnnDataType_t)number[G_TYPE], number[G_TABLE_ROWS],
                                                 number[G_COLUMNS], number[G_X_STRIDE]),
                           y = shapes_matrix(&s, (qdnnDataType_t)number[G_TO_TYPE], number[G_ROWS],
                                             number[G_COLUMNS], number[G_Y_STRIDE]);
    return shapes_free(
        &s, s.status ? s.status
                     : qdnnCreateGatherPlan(handle, table, (qdnnDataType_t)number[G_INDEX_TYPE], y, plan));
}

/* The plan of tables whose rows may be apart, or of one in a format, whose rows are packed. */
static bool plan_get(run *r, const struct ggml_tensor *t, const place *table, plan_request *request)
{
    const struct ggml_tensor *index = t->src[1];
    qdnnDataType_t from, to;
    qdnnWeights_t weights;
    *request = (plan_request){.make = make_gather,
                              .number = {[G_INDEX_TYPE] = index_type(index),
                                         [G_TABLE_ROWS] = table->ne[1],
                                         [G_COLUMNS] = table->ne[0],
                                         [G_ROWS] = planned_rows(index->ne[0])}};
    const bool is_raw =
        table->type == t->type && ggml_type_size(t->type) == 4 && ggml_blck_size(t->type) == 1;
    if (is_raw)
        from = to = QDNN_DATA_U32;
    if (is_raw || (plain_type(table->type, &from) && plain_type(t->type, &to))) {
        request->number[G_TYPE] = from;
        request->number[G_TO_TYPE] = to;
        request->number[G_X_STRIDE] = (int64_t)(table->nb[1] / ggml_type_size(table->type));
        request->number[G_Y_STRIDE] = (int64_t)(t->nb[1] / ggml_type_size(t->type));
        return true;
    }
    if (!weights_type(table->type, &weights) || !plain_type(t->type, &to) || index->type != GGML_TYPE_I32)
        return run_declines(r, "a table of type %s", ggml_type_name(table->type));
    request->make = make_decode_rows;
    request->number[G_TYPE] = weights;
    request->number[G_TO_TYPE] = to;
    return true;
}

bool op_get_rows(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *index = t->src[1];
    place table = place_of(a);
    plan_request request;
    if (!is_index(r, index))
        return false;
    if (!ggml_is_contiguous(t))
        return run_declines(r, "a result with gaps");
    const bool as_it_is =
        is_packed_row(a) && (ggml_blck_size(a->type) == 1 || a->nb[1] == ggml_row_size(a->type, a->ne[0]));
    if (!as_it_is && !packed_place(r, a, SCRATCH_W, &table))
        return false;
    if (!plan_get(r, t, &table, &request))
        return false;
    for (int64_t i2 = 0; i2 < index->ne[2]; i2++)
        for (int64_t i1 = 0; i1 < index->ne[1]; i1++) {
            if (r->dry)
                return run_plan(r, &request, index->ne[0], NULL, 0);
            const bool decodes = request.make == make_decode_rows;
            const qdnnBinding_t bindings[] = {{decodes ? QDNN_OPERAND_CODES : QDNN_OPERAND_X,
                                               place_row(&table, i1 % a->ne[2], i2 % a->ne[3]), 0},
                                              {QDNN_OPERAND_ROW_INDEX, row_at(index, i1, i2, 0), 0},
                                              {QDNN_OPERAND_Y, row_at(t, 0, i1, i2), 0}};
            if (!run_plan(r, &request, index->ne[0], bindings, 3))
                return false;
        }
    return true;
}

/* ---- SET_ROWS ---- */

static qdnnStatus_t make_scatter(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnTensorDescriptor_t x = shapes_matrix(&s, (qdnnDataType_t)number[G_TYPE], number[G_ROWS],
                                             number[G_COLUMNS], number[G_X_STRIDE]),
                           table = shapes_matrix(&s, (qdnnDataType_t)number[G_TO_TYPE], number[G_TABLE_ROWS],
                                                 number[G_COLUMNS], number[G_Y_STRIDE]);
    return shapes_free(
        &s, s.status ? s.status
                     : qdnnCreateScatterPlan(handle, x, (qdnnDataType_t)number[G_INDEX_TYPE], table, plan));
}

static qdnnStatus_t make_quantize_rows(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const int64_t columns = number[G_COLUMNS];
    qdnnTensorDescriptor_t x = shapes_matrix(&s, (qdnnDataType_t)number[G_TYPE], number[G_ROWS], columns,
                                             columns),
                           table = shapes_matrix(&s, QDNN_DATA_F32, number[G_TABLE_ROWS], columns, columns);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[G_TO_TYPE]);
    return shapes_free(&s, s.status ? s.status
                                    : qdnnCreateQuantizeRowsPlan(handle, x, quant,
                                                                 (qdnnDataType_t)number[G_INDEX_TYPE], table,
                                                                 plan));
}

static bool plan_set(run *r, const struct ggml_tensor *t, const place *x, plan_request *request)
{
    qdnnDataType_t from, to;
    qdnnWeights_t weights;
    if (!plain_type(x->type, &from))
        return run_declines(r, "rows of type %s", ggml_type_name(x->type));
    *request = (plan_request){.make = make_scatter,
                              .number = {[G_TYPE] = from,
                                         [G_INDEX_TYPE] = index_type(t->src[1]),
                                         [G_TABLE_ROWS] = t->ne[1],
                                         [G_COLUMNS] = x->ne[0],
                                         [G_ROWS] = planned_rows(x->ne[1])}};
    if (plain_type(t->type, &to)) {
        request->number[G_TO_TYPE] = to;
        request->number[G_X_STRIDE] = (int64_t)(x->nb[1] / ggml_type_size(x->type));
        request->number[G_Y_STRIDE] = (int64_t)(t->nb[1] / ggml_type_size(t->type));
        return true;
    }
    if (!weights_type(t->type, &weights) || t->nb[1] != ggml_row_size(t->type, t->ne[0]))
        return run_declines(r, "a table of type %s, or whose rows have gaps", ggml_type_name(t->type));
    request->make = make_quantize_rows;
    request->number[G_TO_TYPE] = weights;
    return true;
}

bool op_set_rows(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *rows = t->src[0], *index = t->src[1];
    const bool plain = ggml_blck_size(t->type) == 1;
    place x = place_of(rows);
    plan_request request;
    if (!is_index(r, index))
        return false;
    const bool as_it_is = is_packed_row(rows) && (plain || ggml_is_contiguous(rows));
    if (!as_it_is && !packed_place(r, rows, SCRATCH_X, &x))
        return false;
    if (!plan_set(r, t, &x, &request))
        return false;
    for (int64_t i3 = 0; i3 < rows->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < rows->ne[2]; i2++) {
            if (r->dry)
                return run_plan(r, &request, x.ne[1], NULL, 0);
            const qdnnBinding_t bindings[] = {
                {QDNN_OPERAND_X, place_row(&x, i2, i3), 0},
                {QDNN_OPERAND_ROW_INDEX, row_at(index, i2 % index->ne[1], i3 % index->ne[2], 0), 0},
                {plain ? QDNN_OPERAND_Y : QDNN_OPERAND_CODES, row_at(t, 0, i2, i3), 0}};
            if (!run_plan(r, &request, x.ne[1], bindings, 3))
                return false;
        }
    return true;
}

/* ---- ADD_ID: a row of the table, by the expert, is added to each row ---- */

bool op_add_id(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *table = t->src[1], *experts = t->src[2];
    const int64_t rows = experts->ne[0] * experts->ne[1];
    place index;
    if (t->type != GGML_TYPE_F32 || table->type != GGML_TYPE_F32 || !is_packed_row(table) ||
        experts->type != GGML_TYPE_I32)
        return run_declines(r, "rows that are not f32, or a table with gaps");
    if (!packed_place(r, experts, SCRATCH_INDEX, &index))
        return false;
    const place to = place_of(t), from = place_of(a);
    place chosen = place_packed(&to, GGML_TYPE_F32, NULL);
    chosen.data = run_scratch(r, SCRATCH_Y, (size_t)place_elements(&to) * sizeof(float));
    plan_request request = {.make = make_gather,
                            .number = {[G_TYPE] = QDNN_DATA_F32,
                                       [G_TO_TYPE] = QDNN_DATA_F32,
                                       [G_INDEX_TYPE] = QDNN_DATA_I32,
                                       [G_TABLE_ROWS] = table->ne[1],
                                       [G_COLUMNS] = table->ne[0],
                                       [G_ROWS] = planned_rows(rows),
                                       [G_X_STRIDE] = (int64_t)(table->nb[1] / sizeof(float)),
                                       [G_Y_STRIDE] = table->ne[0]}};
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, table->data, 0},
                                      {QDNN_OPERAND_ROW_INDEX, index.data, 0},
                                      {QDNN_OPERAND_Y, chosen.data, 0}};
    return run_plan(r, &request, rows, bindings, 3) && run_each(r, &body_add, NULL, &to, &from, &chosen);
}
