/* Weights on the device: matrices as stored in the file, or quantized here; vectors and tables in f32. */
#include "embed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Executes a plan once with its own workspace, and destroys it. */
static void execute_once(const source *s, qdnnPlan_t plan, const qdnnBinding_t *bindings, int n)
{
    size_t bytes;
    void *workspace = NULL;
    ok(qdnnGetPlanWorkspaceSize(plan, &bytes));
    if (bytes)
        workspace = device_take(s->handle, bytes);
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

float *source_load(const source *s, const char *name, int64_t *elements)
{
    qdnnFileWeight_t w = find(s, name);
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnBinding_t bindings[QDNN_FILE_OPERANDS_MAX + 1];
    qdnnPlan_t plan;
    *elements = 1;
    for (int i = 0; i < w.rank; i++)
        *elements *= w.dims[i];
    const size_t bytes = (size_t)*elements * sizeof(float);
    float *values = device_take(s->handle, bytes);
    ok(qdnnCreateTensorDescriptor(&tensor));
    ok(qdnnCreateQuantDescriptor(&quant));
    ok(qdnnSetFileWeight(&w, QDNN_DATA_F32, tensor, quant));
    for (int i = 0; i < w.operands; i++)
        bindings[i] = (qdnnBinding_t){w.operand[i].operand,
                                      device_copy(s->handle, w.operand[i].data, w.operand[i].bytes),
                                      w.operand[i].bytes};
    bindings[w.operands] = (qdnnBinding_t){QDNN_OPERAND_Y, values, bytes};
    ok(qdnnCreateDequantizePlan(s->handle, tensor, quant, &plan));
    execute_once(s, plan, bindings, w.operands + 1);
    for (int i = 0; i < w.operands; i++)
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

/* Fills the parts of the format from f32 on the device. */
static void quantize(const source *s, linear *l, const float *values)
{
    qdnnBinding_t all[PARTS + 1];
    qdnnPlan_t plan;
    size_t bytes;
    int n = 0;
    all[n++] = (qdnnBinding_t){QDNN_OPERAND_X, values, (size_t)(l->inputs * l->outputs) * sizeof(float)};
    for (int i = 0; i < PARTS; i++) {
        ok(qdnnGetOperandSize(l->quant, l->tensor, parts[i], &bytes));
        if (bytes == 0)
            continue;
        all[n++] = (qdnnBinding_t){parts[i], device_take(s->handle, bytes), bytes};
        l->parts[l->n_parts++] = all[n - 1];
        l->bytes += bytes;
    }
    if (n > 2) { /* scales first, then codes with them */
        qdnnBinding_t scales[PARTS + 1];
        scales[0] = all[0];
        memcpy(scales + 1, all + 2, (size_t)(n - 2) * sizeof all[0]);
        ok(qdnnCreateScalePlan(s->handle, l->tensor, l->quant, &plan));
        execute_once(s, plan, scales, n - 1);
    }
    ok(qdnnCreateQuantizePlan(s->handle, l->tensor, l->quant, &plan));
    execute_once(s, plan, all, n);
}

/* ---- matrices ---- */

linear linear_load(const source *s, const char *name)
{
    char full[256];
    int64_t elements;
    linear l = {0};
    snprintf(full, sizeof full, "%s.weight", name);
    const qdnnFileWeight_t w = find(s, full);
    l.transposed = w.transposed;
    l.outputs = w.dims[w.transposed ? 1 : 0];
    l.inputs = w.dims[w.transposed ? 0 : 1];
    ok(qdnnCreateTensorDescriptor(&l.tensor));
    ok(qdnnCreateQuantDescriptor(&l.quant));
    ok(qdnnSetFileWeight(&w, QDNN_DATA_F32, l.tensor, l.quant));
    if (s->convert) {
        float *values = source_load(s, full, &elements);
        ok(qdnnSetQuantWeights(l.quant, s->weights, 0));
        quantize(s, &l, values);
        ok(qdnnFree(s->handle, values));
    } else {
        for (int i = 0; i < w.operands; i++)
            l.parts[l.n_parts++] = (qdnnBinding_t){
                w.operand[i].operand, device_copy(s->handle, w.operand[i].data, w.operand[i].bytes),
                w.operand[i].bytes};
        l.bytes = w.bytes;
    }
    snprintf(full, sizeof full, "%s.bias", name);
    l.bias = source_load(s, full, &elements);
    if (elements != l.outputs)
        fail("%s has %lld elements instead of %lld", full, (long long)elements, (long long)l.outputs);
    return l;
}

void linear_free(const source *s, linear *l)
{
    for (int i = 0; i < l->n_parts; i++)
        ok(qdnnFree(s->handle, (void *)(uintptr_t)l->parts[i].pointer));
    ok(qdnnFree(s->handle, l->bias));
    ok(qdnnDestroyTensorDescriptor(l->tensor));
    ok(qdnnDestroyQuantDescriptor(l->quant));
}
