/* Creating plans: from a request to launches. */
#include "driver/api/plan.h"

#include <stdio.h>
#include <string.h>

#include "driver/base/alloc.h"
#include "driver/base/log.h"

/* The most blocks of a grid, by dimension. */
static const uint64_t grid_max[3] = {INT32_MAX, UINT16_MAX, UINT16_MAX};

static qdnnStatus_t refuse_grid(const kernel_step *step, int dimension)
{
    if (step->rows.per_block && dimension == step->rows.dimension)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "x has too many rows for one launch; split it: one plan takes at most %llu rows",
                          (unsigned long long)(grid_max[dimension] * step->rows.per_block / step->rows.work));
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "the tensor needs %llu blocks along %c, too many for one launch; split it",
                      (unsigned long long)step->grid[dimension], "xyz"[dimension]);
}

static qdnnStatus_t set_grid(plan_launch *l, const kernel_step *step)
{
    for (int i = 0; i < 3; i++) {
        if (step->grid[i] > grid_max[i])
            return refuse_grid(step, i);
        l->grid[i] = (unsigned)step->grid[i];
    }
    return QDNN_STATUS_SUCCESS;
}

static void set_params(plan_launch *l, const kernel_step *step, int in_workspace)
{
    l->n_params = step->n_params;
    for (int i = 0; i < step->n_params; i++) {
        l->params[i] = step->params[i];
        if (step->params[i].kind == KERNEL_OPERAND && step->params[i].operand == in_workspace)
            l->params[i] = (kernel_param){.kind = KERNEL_WORKSPACE};
    }
}

static qdnnStatus_t add_launch(qdnnPlan_t plan, const kernel_step *step, int in_workspace)
{
    plan_launch l = {.block = step->block, .shared = step->shared, .rows = step->rows};
    bool was_loaded;
    CHECK_STATUS(set_grid(&l, step));
    set_params(&l, step, in_workspace);
    CHECK_STATUS(module_acquire(plan->handle, step->row, &step->spec, &l.module, &was_loaded));
    plan->steps[plan->n_steps++] = (plan_step){.kind = PLAN_LAUNCH, .launch = l};
    plan->info.blocks += (uint64_t)l.grid[0] * l.grid[1] * l.grid[2];
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
    kernel_steps steps;
    kernel_steps_of(r->row, &r->spec, &r->problem, &steps);
    kernel_spec_text(r->row, &r->spec, plan->info.settings, sizeof plan->info.settings);
    plan->workspace_bytes = steps.workspace;
    for (int i = 0; i < steps.count; i++)
        CHECK_STATUS(add_launch(plan, &steps.at[i], in_workspace));
    plan->info.kernels = plan->n_steps;
    plan->info.blockThreads = steps.count ? plan->steps[0].launch.block : 0;
    plan->info.ptxVersion = steps.count ? plan->steps[0].launch.module->version : 0;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t plan_is_captured(qdnnHandle_t handle, bool *captured)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = handle->context->device.api->cuStreamIsCapturing(handle->stream, &capture);
    if (result)
        return handle_failed(handle, result, "cuStreamIsCapturing", "the handle's stream");
    *captured = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return QDNN_STATUS_SUCCESS;
}

/* Loading a kernel would invalidate a capture, and some drivers allow it, so we reject it first. */
static qdnnStatus_t check_capture(qdnnHandle_t handle)
{
    bool captured = false;
    CHECK_STATUS(plan_is_captured(handle, &captured));
    if (!captured)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_EXECUTION_FAILED,
        "the handle's stream is being captured; create the plan before the capture begins (a one-shot "
        "call: make it once before)");
}

qdnnStatus_t plan_new(qdnnHandle_t handle, const char *operation, qdnnPlan_t *out)
{
    CHECK_STATUS(check_capture(handle));
    qdnnPlan_t plan = object_create(OBJECT_PLAN, sizeof *plan);
    if (!plan)
        return OUT_OF_MEMORY();
    plan->handle = handle;
    plan->rows = 1;
    plan->references = 1;
    plan->info.choice = plan->choice;
    plan->info.operation = operation;
    plan->info.fromCache = true;
    *out = plan;
    return QDNN_STATUS_SUCCESS;
}

void plan_needs(qdnnPlan_t plan, qdnnOperand_t operand, kernel_operand needs)
{
    const operand_set bit = (operand_set)1 << operand;
    plan->bytes[operand] = needs.bytes;
    plan->align[operand] = (uint8_t)needs.align;
    plan->operands |= needs.align ? bit : 0;
    plan->reads = needs.reads ? plan->reads | bit : plan->reads & ~bit;
    plan->writes = needs.writes ? plan->writes | bit : plan->writes & ~bit;
    if (operand == QDNN_OPERAND_ROW_INDEX || operand == QDNN_OPERAND_EXPERT_INDEX)
        plan_typed(plan, operand, QDNN_DATA_I32);
}

void plan_typed(qdnnPlan_t plan, qdnnOperand_t operand, qdnnDataType_t type)
{
    plan->types[operand] = (uint8_t)type;
}

qdnnStatus_t plan_in_step(qdnnStatus_t status, int number, const char *name, const char *operation)
{
    char sentence[400];
    const bool named = name && *name;
    if (status == QDNN_STATUS_SUCCESS)
        return status;
    qdnnGetLastErrorString(sentence, sizeof sentence);
    return qdnn_error(status, "step %d %s%s%s(%s): %s", number, named ? "'" : "", named ? name : "",
                      named ? "' " : "", operation, sentence);
}

qdnnStatus_t plan_make(qdnnHandle_t handle, const request *r, qdnnPlan_t *out)
{
    qdnnPlan_t plan = NULL;
    CHECK_STATUS(plan_new(handle, r->row->operation_name, &plan));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        plan_needs(plan, (qdnnOperand_t)i, r->operands[i]);
    plan->has_request = true;
    plan->request = *r;
    plan->repeats = r->repeats;
    plan->takes_rows = r->takes_rows;
    const uint64_t rows = r->spec.row_index ? r->problem.rows : r->problem.m;
    if (r->takes_rows || rows > 0)
        plan->rows = rows;
    memcpy(plan->strides, r->strides, sizeof plan->strides);
    qdnnStatus_t status = plan_add(plan, r, PLAN_PLACES);
    plan->info.blocks *= r->repeats > 1 ? r->repeats : 1;
    if (status == QDNN_STATUS_SUCCESS)
        *out = plan;
    else
        plan_free(plan);
    return status;
}

void plan_free(qdnnPlan_t plan)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == PLAN_LAUNCH)
            module_release(plan->steps[i].launch.module);
    object_destroy(plan);
}

void plan_release(qdnnPlan_t plan)
{
    if (--plan->references > 0)
        return;
    plan->handle->plans--;
    plan_free(plan);
}

qdnnStatus_t plan_create(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan)
{
    bool pushed;
    CHECK_STATUS(handle_enter(handle, &pushed));
    qdnnStatus_t status = plan_make(handle, r, plan);
    handle_leave(handle, pushed);
    if (status == QDNN_STATUS_SUCCESS)
        handle->plans++;
    return status;
}

/* `name` is that of the tensor argument. */
static qdnnStatus_t create(qdnnHandle_t handle, kernel_operation operation, const char *name,
                           qdnnTensorDescriptor_t tensor, qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR_AS(name, tensor);
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(request_make(operation, tensor, quant, &r));
    CHECK_STATUS(plan_create(handle, &r, plan));
    plan_typed(*plan, operation == KERNEL_DEQUANTIZE ? QDNN_OPERAND_Y : QDNN_OPERAND_X, tensor->type);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateScalePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnQuantDescriptor_t quant,
                                 qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, quant, plan);
    return create(handle, KERNEL_SCALE, "x", x, quant, plan);
}

qdnnStatus_t qdnnCreateQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                    qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, quant, plan);
    return create(handle, KERNEL_QUANTIZE, "x", x, quant, plan);
}

qdnnStatus_t qdnnCreateDynamicQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                           qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, quant, plan);
    return create(handle, KERNEL_DYNAMIC, "x", x, quant, plan);
}

qdnnStatus_t qdnnCreateDequantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t y,
                                      qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, y, quant, plan);
    return create(handle, KERNEL_DEQUANTIZE, "y", y, quant, plan);
}

qdnnStatus_t qdnnCreateDequantizeTransposedPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t w,
                                                qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                                qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, w, quant, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(w);
    CHECK_NOT_NULL(quant);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(request_make_transposed(w, quant, y, &r));
    CHECK_STATUS(plan_create(handle, &r, plan));
    plan_typed(*plan, QDNN_OPERAND_Y, y->type);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateDequantizeRowsPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t table,
                                          qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                          qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, table, quant, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(table);
    CHECK_NOT_NULL(quant);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(request_make_rows(table, quant, y, &r));
    CHECK_STATUS(plan_create(handle, &r, plan));
    plan_typed(*plan, QDNN_OPERAND_Y, y->type);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateQuantizeRowsPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                        qdnnQuantDescriptor_t quant, qdnnDataType_t indexType,
                                        qdnnTensorDescriptor_t table, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, quant, indexType, table, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(quant);
    CHECK_TENSOR(table);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(request_make_quantize_rows(x, quant, indexType, table, &r));
    CHECK_STATUS(plan_create(handle, &r, plan));
    plan_typed(*plan, QDNN_OPERAND_X, x->type);
    plan_typed(*plan, QDNN_OPERAND_ROW_INDEX, indexType);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateRepackPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t tensor,
                                  qdnnQuantDescriptor_t quantFrom, qdnnQuantDescriptor_t quantTo,
                                  qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, tensor, quantFrom, quantTo, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(tensor);
    CHECK_NOT_NULL(quantFrom);
    CHECK_NOT_NULL(quantTo);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(request_make_repack(tensor, quantFrom, quantTo, &r));
    return plan_create(handle, &r, plan);
}

qdnnStatus_t qdnnDestroyPlan(qdnnPlan_t plan)
{
    CALL_BEGIN_WITH(plan);
    if (!plan)
        return QDNN_STATUS_SUCCESS;
    CHECK_NOT_NULL(plan);
    object_retire(plan); /* a schedule may still hold a reference */
    plan_release(plan);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetPlanWorkspaceSize(qdnnPlan_t plan, size_t *bytes)
{
    CALL_BEGIN_WITH(plan, bytes);
    CHECK_NOT_NULL(plan);
    CHECK_NOT_NULL(bytes);
    *bytes = plan->workspace_bytes;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetPlanInfo(qdnnPlan_t plan, qdnnPlanInfo_t *info)
{
    CALL_BEGIN_WITH(plan, info);
    CHECK_NOT_NULL(plan);
    CHECK_NOT_NULL(info);
    GIVE_INFO(info, &plan->info);
    return QDNN_STATUS_SUCCESS;
}
