/* Tensors and steps of a program. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

void builder_begin(builder *b, qdnnHandle_t handle, graph *g, int64_t rows)
{
    *b = (builder){
        .handle = handle, .g = g, .algorithm = QDNN_MATMUL_EXACT, .type = QDNN_DATA_F32, .layer = -1};
    *g = (graph){.rows = rows};
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

void graph_run(qdnnHandle_t handle, const graph *g, int64_t rows, void *arena)
{
    ok(qdnnRunProgram(handle, g->program, g->pointers, g->tensors, rows, arena, g->info.arenaBytes));
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
    const void **more = realloc(b->g->pointers, (size_t)b->g->tensors * sizeof *more);
    if (!more)
        fail("out of memory");
    more[number] = data;
    b->g->pointers = more;
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

void builder_step_of(builder *b, const char *name, qdnnPlan_t plan, int64_t per_row,
                     const qdnnProgramBinding_t *bindings, int count)
{
    ok(qdnnAddPlanToProgram(b->g->program, full_name(b, name), plan, per_row, bindings, count));
    ok(qdnnDestroyPlan(plan));
}

void builder_step(builder *b, const char *name, qdnnPlan_t plan, const qdnnProgramBinding_t *bindings,
                  int count)
{
    builder_step_of(b, name, plan, 1, bindings, count);
}
