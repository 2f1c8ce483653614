/* Norms and products as steps of a program. */
#include "chat.h"

#include <stdio.h>

void builder_norm(builder *b, const char *name, vector weight, float eps, int x, int y, int64_t heads,
                  int64_t stride, size_t offset, qdnnDataType_t from, qdnnDataType_t to)
{
    const qdnnNorm_t norm = {
        .size = sizeof norm, .kind = QDNN_NORM_RMS, .eps = eps, .weightType = weight.type};
    char of[64];
    qdnnPlan_t plan;
    snprintf(of, sizeof of, "%s.weight", name);
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_X, x, offset * type_bytes(from)},
        {QDNN_OPERAND_WEIGHT, builder_fixed(b, of, weight.type, weight.count, weight.data), 0},
        {QDNN_OPERAND_Y, y, offset * type_bytes(to)}};
    builder_shape(b, b->x, from, heads, weight.count, stride);
    builder_shape(b, b->y, to, heads, weight.count, stride);
    ok(qdnnCreateNormPlan(b->handle, &norm, b->x, b->y, NULL, &plan));
    builder_step(b, name, plan, bindings, 3);
}

/* One matrix, whose results are columns `first` and following of y. */
static void add_part(builder *b, const product *p, int part, int64_t first, int64_t columns)
{
    const matrix *w = &p->w->part[part];
    const int64_t outputs = p->gate ? w->outputs / 2 : w->outputs, x_dims[] = {b->g->rows, w->inputs},
                  y_dims[] = {b->g->rows, outputs}, y_strides[] = {columns, 1};
    const size_t offset = (size_t)first * type_bytes(p->y_type);
    qdnnProgramBinding_t bindings[5];
    qdnnPlan_t plan;
    char name[64];
    int n = 0;
    snprintf(name, sizeof name, "%s.%d", p->name, part);
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_X, p->x, 0};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_Y, p->y, offset};
    bindings[n++] = (qdnnProgramBinding_t){
        QDNN_OPERAND_CODES, builder_fixed(b, name, QDNN_DATA_U8, (int64_t)w->bytes, w->data), 0};
    if (p->residual >= 0)
        bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_RESIDUAL, p->residual, offset};
    if (p->w->bias[part]) {
        snprintf(name, sizeof name, "%s.%d.bias", p->name, part);
        bindings[n++] = (qdnnProgramBinding_t){
            QDNN_OPERAND_BIAS, builder_fixed(b, name, QDNN_DATA_F32, w->outputs, p->w->bias[part]), 0};
    }
    ok(qdnnSetTensorDescriptor(b->x, b->type, 2, x_dims, NULL));
    ok(qdnnSetTensorDescriptor(b->y, p->y_type, 2, y_dims, y_strides));
    ok(qdnnSetFileWeight(&w->weight, b->type, b->w, b->quant));
    const struct {
        qdnnMatmulAttribute_t attribute;
        int64_t value;
    } values[] = {{QDNN_MATMUL_ALGORITHM, b->algorithm},
                  {QDNN_MATMUL_BIAS_TYPE, p->w->bias[part] ? QDNN_DATA_F32 : 0},
                  {QDNN_MATMUL_ACTIVATION, p->gate},
                  {QDNN_MATMUL_GATED, p->gate != QDNN_ACTIVATION_NONE},
                  {QDNN_MATMUL_RESIDUAL, p->residual >= 0},
                  {QDNN_MATMUL_ALPHA, QDNN_ALPHA_NONE}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        ok(qdnnSetMatmulAttribute(b->matmul, values[i].attribute, values[i].value));
    if (p->alpha != 1)
        ok(qdnnSetMatmulAlpha(b->matmul, p->alpha));
    ok(qdnnCreateMatmulPlan(b->handle, b->matmul, b->x, b->w, b->quant, b->y, &plan));
    builder_step(b, p->name, plan, bindings, n);
}

void builder_product(builder *b, const product *p)
{
    const int64_t columns = p->gate ? p->w->outputs / 2 : p->w->outputs;
    for (int64_t i = 0, first = 0; i < p->w->parts; first += p->w->part[i++].outputs)
        add_part(b, p, (int)i, first, columns);
}
