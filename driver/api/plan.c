/* Making plans: from a request to launches. */
#include "driver/api/plan.h"

#include <stdio.h>

#include "driver/base/alloc.h"
#include "driver/base/log.h"

/* The parameters of each operation's kernel, in their order; one that the kernel does not have is left out.
 */
static const uint8_t parameters[][PLAN_PARAMS_MAX] = {
    [KERNEL_SCALE] = {QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, PLAN_PLACES},
    [KERNEL_QUANTIZE] = {QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, QDNN_OPERAND_CODES,
                         PLAN_PLACES},
    [KERNEL_DEQUANTIZE] = {QDNN_OPERAND_CODES, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, QDNN_OPERAND_Y,
                           PLAN_PLACES},
    [KERNEL_RANGE] = {QDNN_OPERAND_X, PLAN_WORKSPACE, PLAN_PLACES},
};

static void set_places(plan_launch *l, const request *r, kernel_operation operation, int in_workspace)
{
    for (const uint8_t *p = parameters[operation]; *p != PLAN_PLACES; p++)
        if (*p == PLAN_WORKSPACE || r->align[*p])
            l->places[l->n_places++] = *p == in_workspace ? PLAN_WORKSPACE : *p;
}

static qdnnStatus_t set_grid(plan_launch *l, const kernel_pass *pass)
{
    uint64_t blocks = kernel_grid(pass->row, &pass->spec, pass->n);
    kernel_geometry geometry = pass->row->geometry(pass->row, &pass->spec);
    if (blocks > INT32_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "the tensor has %llu elements, too many for one launch; split it",
                          (unsigned long long)pass->n);
    l->n = pass->n;
    l->blocks = (unsigned)blocks;
    l->threads = geometry.block;
    l->shared = geometry.shared_dynamic;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t add_launch(qdnnPlan_t plan, const request *r, const kernel_pass *pass, int in_workspace)
{
    plan_launch l = {0};
    bool was_loaded;
    set_places(&l, r, pass->row->operation, in_workspace);
    CHECK_STATUS(set_grid(&l, pass));
    CHECK_STATUS(module_acquire(plan->handle, pass->row, &pass->spec, &l.module, &was_loaded));
    plan->launches[plan->n_launches++] = l;
    plan->info.blocks += l.blocks;
    plan->info.fromCache &= was_loaded;
    plan->info.fromBundle |= l.module->from_bundle;
    if (!was_loaded) {
        plan->info.emitSeconds += l.module->emit_seconds;
        plan->info.loadSeconds += l.module->load_seconds;
    }
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t plan_add(qdnnPlan_t plan, const request *r, int in_workspace)
{
    kernel_pass passes[PLAN_LAUNCHES_MAX] = {{r->row, r->spec, r->n}};
    uint64_t partials = 0;
    int count = 1;
    kernel_spec_text(r->row, &r->spec, plan->info.settings, sizeof plan->info.settings);
    if (r->row->operation == KERNEL_SCALE) {
        count = kernel_scale_passes(r->row, &r->spec, r->n, passes, &partials);
        plan->workspace_bytes = partials * sizeof(float);
    }
    /* a second pass finds in the workspace what it otherwise finds in X */
    for (int i = 0; i < count; i++)
        CHECK_STATUS(add_launch(plan, r, &passes[i], i == 0 ? in_workspace : QDNN_OPERAND_X));
    plan->info.kernels = plan->n_launches;
    plan->info.blockThreads = plan->launches[0].threads;
    plan->info.ptxVersion = plan->launches[0].module->version;
    return QDNN_STATUS_SUCCESS;
}

/* Loading a kernel would spoil a capture, and some drivers let it: so it is refused before they are asked. */
static qdnnStatus_t check_capture(qdnnHandle_t handle)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = handle->context->device.api->cuStreamIsCapturing(handle->stream, &capture);
    if (result)
        return handle_failed(handle, result, "cuStreamIsCapturing", "the handle's stream");
    if (capture == CU_STREAM_CAPTURE_STATUS_NONE)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_EXECUTION_FAILED,
        "the handle's stream is being captured; create the plan before the capture begins (a one-shot "
        "call: make it once before)");
}

qdnnStatus_t plan_new(qdnnHandle_t handle, const char *operation, qdnnPlan_t *out)
{
    CHECK_STATUS(check_capture(handle));
    qdnnPlan_t plan = alloc_new(sizeof *plan);
    if (!plan)
        return OUT_OF_MEMORY();
    plan->handle = handle;
    plan->info.operation = operation;
    plan->info.fromCache = true;
    *out = plan;
    return QDNN_STATUS_SUCCESS;
}

void plan_needs(qdnnPlan_t plan, qdnnOperand_t operand, unsigned align)
{
    plan->align[operand] = (uint8_t)align;
    plan->operands |= (unsigned)(align > 0) << operand;
}

qdnnStatus_t plan_make(qdnnHandle_t handle, const request *r, qdnnPlan_t *out)
{
    qdnnPlan_t plan = NULL;
    CHECK_STATUS(plan_new(handle, r->row->operation_name, &plan));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        plan_needs(plan, (qdnnOperand_t)i, r->align[i]);
    qdnnStatus_t status = r->n > 0 ? plan_add(plan, r, PLAN_PLACES) : QDNN_STATUS_SUCCESS;
    if (status == QDNN_STATUS_SUCCESS)
        *out = plan;
    else
        plan_free(plan);
    return status;
}

void plan_free(qdnnPlan_t plan)
{
    for (int i = 0; i < plan->n_launches; i++)
        module_release(plan->launches[i].module);
    alloc_free(plan);
}

/* A plan of the user's; the tensor's name is that of the argument. */
static qdnnStatus_t create(qdnnHandle_t handle, kernel_operation operation, const char *name,
                           qdnnTensorDescriptor_t tensor, qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL_AS(name, tensor);
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(plan);
    request r;
    bool pushed;
    CHECK_STATUS(request_make(operation, tensor, quant, &r));
    CHECK_STATUS(handle_enter(handle, &pushed));
    qdnnStatus_t status = plan_make(handle, &r, plan);
    handle_leave(handle, pushed);
    if (status == QDNN_STATUS_SUCCESS)
        handle->plans++;
    return status;
}

qdnnStatus_t qdnnCreateScalePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnQuantDescriptor_t quant,
                                 qdnnPlan_t *plan)
{
    CALL_BEGIN();
    return create(handle, KERNEL_SCALE, "x", x, quant, plan);
}

qdnnStatus_t qdnnCreateQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                    qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN();
    return create(handle, KERNEL_QUANTIZE, "x", x, quant, plan);
}

qdnnStatus_t qdnnCreateDequantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t y,
                                      qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN();
    return create(handle, KERNEL_DEQUANTIZE, "y", y, quant, plan);
}

qdnnStatus_t qdnnDestroyPlan(qdnnPlan_t plan)
{
    CALL_BEGIN();
    if (!plan)
        return QDNN_STATUS_SUCCESS;
    plan->handle->plans--;
    plan_free(plan);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetPlanWorkspaceSize(qdnnPlan_t plan, size_t *bytes)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(plan);
    CHECK_NOT_NULL(bytes);
    *bytes = plan->workspace_bytes;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetPlanInfo(qdnnPlan_t plan, qdnnPlanInfo_t *info)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(plan);
    CHECK_NOT_NULL(info);
    *info = plan->info;
    return QDNN_STATUS_SUCCESS;
}
