/* Matrices on the device: loaded from the file as stored, or quantized on the device, and multiplied by the
 * exact product. */
#include "embed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *device_memory(const source *s, const void *host, size_t bytes)
{
    void *memory = NULL;
    ok(qdnnMalloc(s->handle, &memory, bytes));
    if (host)
        ok(qdnnCopyToDevice(s->handle, memory, host, bytes));
    return memory;
}

/* Executes a plan once with its own workspace, and destroys it. */
static void execute_once(const source *s, qdnnPlan_t plan, const qdnnBinding_t *bindings, int n)
{
    size_t bytes;
    void *workspace = NULL;
    ok(qdnnGetPlanWorkspaceSize(plan, &bytes));
    if (bytes)
        workspace = device_memory(s, NULL, bytes);
    ok(qdnnExecute(s->handle, plan, bindings, n, workspace, bytes));
    ok(qdnnSynchronize(s->handle));
    ok(qdnnFree(s->handle, workspace));
    ok(qdnnDestroyPlan(plan));
}

/* Finds a weight by name; it must have a descriptor. */
static qdnnFileWeight_t find(const source *s, const char *name)
{
    int index;
    qdnnFileWeight_t w = {0};
    if (qdnnFindFileWeight(s->file, name, &index) || qdnnGetFileWeight(s->file, index, &w))
        fail("the file has no %s: is it this model?", name);
    if (w.problem)
        fail("%s: %s", name, w.problem);
    return w;
}

/* ---- plain numbers ---- */

float *source_read(const source *s, const char *name, int64_t *elements)
{
    qdnnFileWeight_t w = find(s, name);
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnBinding_t bindings[QDNN_FILE_OPERANDS_MAX + 1];
    qdnnPlan_t plan;
    *elements = 1;
    for (int i = 0; i < w.rank; i++)
        *elements *= w.dims[i];
    size_t bytes = (size_t)*elements * sizeof(float);
    float *values = take(bytes);
    ok(qdnnCreateTensorDescriptor(&tensor));
    ok(qdnnCreateQuantDescriptor(&quant));
    ok(qdnnSetFileWeight(&w, QDNN_DATA_F32, tensor, quant));
    for (int i = 0; i < w.operands; i++)
        bindings[i] =
            (qdnnBinding_t){w.operand[i].operand, device_memory(s, w.operand[i].data, w.operand[i].bytes),
                            w.operand[i].bytes};
    bindings[w.operands] = (qdnnBinding_t){QDNN_OPERAND_Y, device_memory(s, NULL, bytes), bytes};
    ok(qdnnCreateDequantizePlan(s->handle, tensor, quant, &plan));
    execute_once(s, plan, bindings, w.operands + 1);
    ok(qdnnCopyToHost(s->handle, values, bindings[w.operands].pointer, bytes));
    for (int i = 0; i <= w.operands; i++)
        ok(qdnnFree(s->handle, (void *)(uintptr_t)bindings[i].pointer));
    ok(qdnnDestroyTensorDescriptor(tensor));
    ok(qdnnDestroyQuantDescriptor(quant));
    return values;
}

/* ---- quantizing ---- */

static const qdnnOperand_t parts[] = {QDNN_OPERAND_CODES, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO,
                                      QDNN_OPERAND_GLOBAL_SCALE};
enum { PARTS = sizeof parts / sizeof parts[0] };

bool source_can(const source *s, int64_t n, int64_t k)
{
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan = NULL;
    const int64_t dims[2] = {n, k};
    ok(qdnnCreateTensorDescriptor(&tensor));
    ok(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 2, dims, NULL));
    ok(qdnnCreateQuantDescriptor(&quant));
    ok(qdnnSetQuantWeights(quant, s->weights, 0));
    bool can = qdnnCreateQuantizePlan(s->handle, tensor, quant, &plan) == QDNN_STATUS_SUCCESS;
    qdnnDestroyPlan(plan);
    ok(qdnnDestroyTensorDescriptor(tensor));
    ok(qdnnDestroyQuantDescriptor(quant));
    return can;
}

/* Fills the operands of the format from f32 on the device. */
static void quantize(const source *s, linear *l, const float *values, qdnnTensorDescriptor_t tensor,
                     qdnnQuantDescriptor_t quant)
{
    qdnnBinding_t all[PARTS + 1];
    size_t bytes = (size_t)(l->inputs * l->outputs) * sizeof(float);
    void *x = device_memory(s, values, bytes);
    qdnnPlan_t plan;
    int n = 0;
    all[n++] = (qdnnBinding_t){QDNN_OPERAND_X, x, bytes};
    for (int i = 0; i < PARTS; i++) {
        ok(qdnnGetOperandSize(quant, tensor, parts[i], &bytes));
        if (bytes == 0)
            continue;
        all[n++] = (qdnnBinding_t){parts[i], device_memory(s, NULL, bytes), bytes};
        l->bindings[l->n_bindings++] = all[n - 1];
        l->weight_bytes += bytes;
    }
    if (n > 2) { /* scales first, then codes with them */
        qdnnBinding_t scales[PARTS + 1];
        scales[0] = all[0];
        memcpy(scales + 1, all + 2, (size_t)(n - 2) * sizeof all[0]);
        ok(qdnnCreateScalePlan(s->handle, tensor, quant, &plan));
        execute_once(s, plan, scales, n - 1);
    }
    ok(qdnnCreateQuantizePlan(s->handle, tensor, quant, &plan));
    execute_once(s, plan, all, n);
    ok(qdnnFree(s->handle, x));
}

/* ---- products ---- */

/* Loads the matrix, in the format of the file or the requested one. */
static void load(const source *s, linear *l, const char *name, const qdnnFileWeight_t *w,
                 qdnnTensorDescriptor_t tensor, qdnnQuantDescriptor_t quant)
{
    int64_t elements;
    ok(qdnnSetFileWeight(w, QDNN_DATA_F32, tensor, quant));
    if (s->convert) {
        float *values = source_read(s, name, &elements);
        ok(qdnnSetQuantWeights(quant, s->weights, 0));
        quantize(s, l, values, tensor, quant);
        free(values);
        return;
    }
    for (int i = 0; i < w->operands; i++) {
        const qdnnFileOperand_t *o = &w->operand[i];
        l->bindings[l->n_bindings++] =
            (qdnnBinding_t){o->operand, device_memory(s, o->data, o->bytes), o->bytes};
    }
    l->weight_bytes = w->bytes;
}

static qdnnTensorDescriptor_t rows_of(int64_t rows, int64_t columns)
{
    qdnnTensorDescriptor_t t;
    const int64_t dims[2] = {rows, columns};
    ok(qdnnCreateTensorDescriptor(&t));
    ok(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 2, dims, NULL));
    return t;
}

static void plan(const source *s, linear *l, bool transposed, int64_t rows, qdnnActivation_t activation,
                 qdnnTensorDescriptor_t w, qdnnQuantDescriptor_t quant)
{
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x = rows_of(rows, l->inputs), y = rows_of(rows, l->outputs);
    ok(qdnnCreateMatmulDescriptor(&matmul));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_TRANSPOSE_W, !transposed));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_BIAS_TYPE, QDNN_DATA_F32));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ACTIVATION, activation));
    ok(qdnnCreateMatmulPlan(s->handle, matmul, x, w, quant, y, &l->plan));
    ok(qdnnGetPlanWorkspaceSize(l->plan, &l->workspace_bytes));
    l->workspace = l->workspace_bytes ? device_memory(s, NULL, l->workspace_bytes) : NULL;
    ok(qdnnDestroyMatmulDescriptor(matmul));
    ok(qdnnDestroyTensorDescriptor(x));
    ok(qdnnDestroyTensorDescriptor(y));
}

linear linear_make(const source *s, const char *name, int64_t rows, qdnnActivation_t activation)
{
    char full[256];
    int64_t elements;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    linear l = {0};
    snprintf(full, sizeof full, "%s.weight", name);
    qdnnFileWeight_t w = find(s, full);
    l.outputs = w.dims[w.transposed ? 1 : 0];
    l.inputs = w.dims[w.transposed ? 0 : 1];
    ok(qdnnCreateTensorDescriptor(&tensor));
    ok(qdnnCreateQuantDescriptor(&quant));
    load(s, &l, full, &w, tensor, quant);
    plan(s, &l, w.transposed, rows, activation, tensor, quant);
    snprintf(full, sizeof full, "%s.bias", name);
    float *bias = source_read(s, full, &elements);
    size_t x_bytes = (size_t)(rows * l.inputs) * 4, y_bytes = (size_t)(rows * l.outputs) * 4,
           bias_bytes = (size_t)elements * 4;
    l.x = device_memory(s, NULL, x_bytes);
    l.y = device_memory(s, NULL, y_bytes);
    l.bindings[l.n_bindings++] = (qdnnBinding_t){QDNN_OPERAND_X, l.x, x_bytes};
    l.bindings[l.n_bindings++] =
        (qdnnBinding_t){QDNN_OPERAND_BIAS, device_memory(s, bias, bias_bytes), bias_bytes};
    l.bindings[l.n_bindings++] = (qdnnBinding_t){QDNN_OPERAND_Y, l.y, y_bytes};
    free(bias);
    ok(qdnnDestroyTensorDescriptor(tensor));
    ok(qdnnDestroyQuantDescriptor(quant));
    return l;
}

void linear_run(const source *s, const linear *l, int64_t rows, const float *x, float *y)
{
    ok(qdnnCopyToDevice(s->handle, l->x, x, (size_t)(rows * l->inputs) * 4));
    ok(qdnnExecuteRows(s->handle, l->plan, rows, l->bindings, l->n_bindings, l->workspace,
                       l->workspace_bytes));
    ok(qdnnCopyToHost(s->handle, y, l->y, (size_t)(rows * l->outputs) * 4));
}

void linear_free(const source *s, linear *l)
{
    ok(qdnnDestroyPlan(l->plan));
    for (int i = 0; i < l->n_bindings; i++)
        ok(qdnnFree(s->handle, (void *)(uintptr_t)l->bindings[i].pointer));
    ok(qdnnFree(s->handle, l->workspace));
}
