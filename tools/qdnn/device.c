/* Operations on the device: one plan per call, with the operands of one tensor. */
#include "tools/qdnn/tool.h"

#include <string.h>

int device_open(device *d, const char *name)
{
    qdnnStatus_t status = qdnnCreateOn(&d->handle, name);
    return status ? fail_status("the device cannot be opened", status) : TOOL_OK;
}

void device_close(device *d)
{
    qdnnDestroy(d->handle);
    d->handle = NULL;
}

/* The operands of one call, on the device. */
typedef struct call {
    qdnnHandle_t handle;
    const tensor *t;
    void *memory[QDNN_OPERAND_COUNT];
    size_t bytes[QDNN_OPERAND_COUNT];
} call;

static qdnnStatus_t call_begin(call *c)
{
    size_t plain = (size_t)(c->t->rows * c->t->columns) * sizeof(float);
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    for (int i = 0; i <= QDNN_OPERAND_NESTED_OFFSET && !status; i++) {
        c->bytes[i] = i <= QDNN_OPERAND_Y ? plain : c->t->bytes[i];
        if (c->bytes[i])
            status = qdnnMalloc(c->handle, &c->memory[i], c->bytes[i]);
    }
    return status;
}

static void call_end(call *c)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        qdnnFree(c->handle, c->memory[i]);
}

static qdnnStatus_t copy_in(call *c, int operand, const void *host)
{
    return c->bytes[operand] ? qdnnCopyToDevice(c->handle, c->memory[operand], host, c->bytes[operand])
                             : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t copy_out(call *c, int operand, void *host)
{
    return c->bytes[operand] ? qdnnCopyToHost(c->handle, host, c->memory[operand], c->bytes[operand])
                             : QDNN_STATUS_SUCCESS;
}

/* Executes a plan with the operands of a list terminated by COUNT; those that the tensor does not have are
 * skipped. */
static qdnnStatus_t execute(call *c, qdnnPlan_t plan, const qdnnOperand_t *operands)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    int n = 0;
    size_t bytes = 0;
    void *workspace = NULL;
    for (; *operands != QDNN_OPERAND_COUNT; operands++)
        if (c->bytes[*operands])
            bindings[n++] = (qdnnBinding_t){*operands, c->memory[*operands], c->bytes[*operands]};
    qdnnStatus_t status = qdnnGetPlanWorkspaceSize(plan, &bytes);
    if (!status && bytes)
        status = qdnnMalloc(c->handle, &workspace, bytes);
    if (!status)
        status = qdnnExecute(c->handle, plan, bindings, n, workspace, bytes);
    if (!status)
        status = qdnnSynchronize(c->handle);
    qdnnFree(c->handle, workspace);
    qdnnDestroyPlan(plan);
    return status;
}

/* ---- dequantize ---- */

static qdnnStatus_t dequantize(call *c, float *y)
{
    static const qdnnOperand_t operands[] = {
        QDNN_OPERAND_CODES,        QDNN_OPERAND_SCALE,         QDNN_OPERAND_ZERO,
        QDNN_OPERAND_GLOBAL_SCALE, QDNN_OPERAND_GROUP_INDEX,   QDNN_OPERAND_NESTED_MAP,
        QDNN_OPERAND_NESTED_SCALE, QDNN_OPERAND_NESTED_OFFSET, QDNN_OPERAND_Y,
        QDNN_OPERAND_COUNT};
    qdnnPlan_t plan;
    qdnnStatus_t status = call_begin(c);
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET && !status; i++)
        status = copy_in(c, i, c->t->host[i]);
    if (!status)
        status = qdnnCreateDequantizePlan(c->handle, c->t->plain, c->t->quant, &plan);
    if (!status)
        status = execute(c, plan, operands);
    return status ? status : copy_out(c, QDNN_OPERAND_Y, y);
}

int device_dequantize(device *d, const tensor *t, float *y)
{
    call c = {.handle = d->handle, .t = t};
    qdnnStatus_t status = dequantize(&c, y);
    int result = status ? fail_status(t->name, status) : TOOL_OK;
    call_end(&c);
    return result;
}

/* ---- quantize ---- */

static bool has_scales(const call *c)
{
    return c->bytes[QDNN_OPERAND_SCALE] > 0;
}

static qdnnStatus_t make_scales(call *c)
{
    static const qdnnOperand_t operands[] = {QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO,
                                             QDNN_OPERAND_GLOBAL_SCALE, QDNN_OPERAND_COUNT};
    qdnnPlan_t plan;
    qdnnStatus_t status = qdnnCreateScalePlan(c->handle, c->t->plain, c->t->quant, &plan);
    return status ? status : execute(c, plan, operands);
}

static qdnnStatus_t make_codes(call *c)
{
    static const qdnnOperand_t operands[] = {
        QDNN_OPERAND_X,     QDNN_OPERAND_SCALE,        QDNN_OPERAND_ZERO,
        QDNN_OPERAND_CODES, QDNN_OPERAND_GLOBAL_SCALE, QDNN_OPERAND_COUNT};
    qdnnPlan_t plan;
    qdnnStatus_t status = qdnnCreateQuantizePlan(c->handle, c->t->plain, c->t->quant, &plan);
    return status ? status : execute(c, plan, operands);
}

static qdnnStatus_t quantize(call *c, const float *x)
{
    qdnnStatus_t status = call_begin(c);
    if (!status)
        status = copy_in(c, QDNN_OPERAND_X, x);
    if (!status && has_scales(c))
        status = make_scales(c);
    if (!status)
        status = make_codes(c);
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_GLOBAL_SCALE && !status; i++)
        status = copy_out(c, i, c->t->host[i]);
    return status;
}

int device_quantize(device *d, tensor *t, const float *x)
{
    call c = {.handle = d->handle, .t = t};
    qdnnStatus_t status = quantize(&c, x);
    int result = status ? fail_status(t->name, status) : TOOL_OK;
    call_end(&c);
    return result;
}
