/* Tensors and steps of a program. */
#include "chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void builder_begin(builder *b, qdnnHandle_t handle, graph *g, int64_t rows, bool tensor, qdnnDataType_t type)
{
    *b = (builder){.handle = handle,
                   .g = g,
                   .algorithm = tensor ? QDNN_MATMUL_TENSOR : QDNN_MATMUL_EXACT,
                   .type = type,
                   .layer = -1};
    *g = (graph){.rows = rows, .slot = -1, .counts = -1, .step = -1, .seed = -1, .sampling = -1};
    ok(qdnnCreateProgram(handle, rows, &g->program));
    ok(qdnnCreateTensorDescriptor(&b->x));
    ok(qdnnCreateTensorDescriptor(&b->w));
    ok(qdnnCreateTensorDescriptor(&b->y));
    ok(qdnnCreateQuantDescriptor(&b->quant));
    ok(qdnnCreateMatmulDescriptor(&b->matmul));
}

void builder_end(builder *b)
{
    ok(qdnnCompileProgram(b->g->program));
    b->g->info.size = sizeof b->g->info;
    ok(qdnnGetProgramInfo(b->g->program, &b->g->info));
    ok(qdnnDestroyTensorDescriptor(b->x));
    ok(qdnnDestroyTensorDescriptor(b->w));
    ok(qdnnDestroyTensorDescriptor(b->y));
    ok(qdnnDestroyQuantDescriptor(b->quant));
    ok(qdnnDestroyMatmulDescriptor(b->matmul));
}

void graph_free(graph *g)
{
    ok(qdnnDestroyProgram(g->program));
    free(g->pointers);
}

size_t type_bytes(qdnnDataType_t type)
{
    int bits;
    ok(qdnnGetDataTypeBits(type, &bits));
    return (size_t)bits / 8;
}

/* ---- tensors ---- */

static const char *full_name(const builder *b, const char *name)
{
    static char full[128];
    if (b->layer < 0)
        return name;
    snprintf(full, sizeof full, "%lld.%s", (long long)b->layer, name);
    return full;
}

static int add_tensor(builder *b, const char *name, qdnnProgramPlace_t place, int by_rows, const void *data)
{
    int number;
    ok(qdnnAddTensorToProgram(b->g->program, full_name(b, name), place, b->x, by_rows, &number));
    b->g->tensors = number + 1;
    b->g->pointers = take_more(b->g->pointers, (size_t)b->g->tensors * sizeof *b->g->pointers);
    b->g->pointers[number] = data;
    return number;
}

int builder_rows(builder *b, const char *name, qdnnDataType_t type, int64_t columns)
{
    ok(qdnnSetTensorDescriptor(b->x, type, 2, (const int64_t[]){b->g->rows, columns}, NULL));
    return add_tensor(b, name, QDNN_PROGRAM_INTERMEDIATE, 1, NULL);
}

int builder_given(builder *b, const char *name, qdnnDataType_t type, int64_t columns)
{
    ok(qdnnSetTensorDescriptor(b->x, type, 2, (const int64_t[]){b->g->rows, columns}, NULL));
    return add_tensor(b, name, QDNN_PROGRAM_EXTERNAL, 1, NULL);
}

int builder_fixed(builder *b, const char *name, qdnnDataType_t type, int64_t count, const void *data)
{
    ok(qdnnSetTensorDescriptor(b->x, type, 1, &count, NULL));
    return add_tensor(b, name, QDNN_PROGRAM_EXTERNAL, 0, data);
}

void builder_shape(const builder *b, qdnnTensorDescriptor_t t, qdnnDataType_t type, int64_t heads,
                   int64_t size, int64_t stride)
{
    const int64_t dims[] = {b->g->rows, heads, size}, strides[] = {stride, size, 1};
    ok(qdnnSetTensorDescriptor(t, type, 3, dims, strides));
}

/* ---- steps ---- */

void builder_step(builder *b, const char *name, qdnnPlan_t plan, const qdnnProgramBinding_t *bindings,
                  int count)
{
    ok(qdnnAddPlanToProgram(b->g->program, full_name(b, name), plan, 1, bindings, count));
    ok(qdnnDestroyPlan(plan));
}

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
