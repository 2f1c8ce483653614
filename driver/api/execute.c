/* qdnnExecute: pointers are checked, parameters put in place, kernels launched; nothing is allocated, locked
 * or looked up. */
#include "driver/base/log.h"
#include "driver/api/plan.h"

static const char *const operand_names[] = {"X",          "Y",           "CODES",        "SCALE",        "ZERO",
                                            "GLOBAL_SCALE", "GROUP_INDEX", "NESTED_MAP", "NESTED_SCALE", "NESTED_OFFSET", "REPACKED", "ROW_INDEX"};
_Static_assert(sizeof operand_names / sizeof operand_names[0] == QDNN_OPERAND_COUNT,
               "a name for each operand");

/* Puts the bound pointers into their places. */
static qdnnStatus_t bind(const struct qdnnPlan *plan, const qdnnBinding_t *bindings, int count,
                         CUdeviceptr *at)
{
    unsigned bound = 0;
    for (int i = 0; i < count; i++) {
        unsigned operand = (unsigned)bindings[i].operand;
        if (operand >= QDNN_OPERAND_COUNT)
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                              "bindings[%d].operand is %d; it must be 0 to %d", i, (int)operand,
                              QDNN_OPERAND_COUNT - 1);
        if (!(plan->operands >> operand & 1) || bound >> operand & 1)
            return qdnn_error(QDNN_STATUS_BAD_PARAM, "bindings[%d] is QDNN_OPERAND_%s, which %s %s", i,
                              operand_names[operand], plan->info.operation,
                              bound >> operand & 1 ? "is given already" : "does not take");
        at[operand] = (CUdeviceptr)(uintptr_t)bindings[i].pointer;
        bound |= 1u << operand;
    }
    unsigned missing = plan->n_steps > 0 ? plan->operands & ~bound : 0;
    if (missing)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "QDNN_OPERAND_%s is missing; %s needs it",
                          operand_names[__builtin_ctz(missing)], plan->info.operation);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_pointers(const struct qdnnPlan *plan, const CUdeviceptr *at)
{
    for (unsigned left = plan->operands; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (!at[i])
            return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER,
                              "the pointer of QDNN_OPERAND_%s is null; it must not be", operand_names[i]);
        if (at[i] & (plan->align[i] - 1u))
            return qdnn_error(
                QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                "the pointer of QDNN_OPERAND_%s is 0x%llx; it must be a multiple of its element's %d bytes",
                operand_names[i], at[i], plan->align[i]);
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_workspace(const struct qdnnPlan *plan, const void *workspace, size_t bytes)
{
    if (bytes < plan->workspace_bytes)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "workspaceBytes is %zu; the plan needs %zu", bytes, plan->workspace_bytes);
    CHECK_BUFFER(workspace, plan->workspace_bytes);
    if (plan->workspace_bytes > 0 && (uintptr_t)workspace % PLAN_WORKSPACE_ALIGN != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                          "workspace is %p; it must be a multiple of %d", workspace, PLAN_WORKSPACE_ALIGN);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t launch(qdnnPlan_t plan, const plan_launch *l, const CUdeviceptr *at)
{
    uint64_t values[KERNEL_PARAMS_MAX];
    void *params[KERNEL_PARAMS_MAX];
    for (int i = 0; i < l->n_params; i++) {
        const kernel_param *p = &l->params[i];
        values[i] = p->kind == KERNEL_OPERAND     ? at[p->operand]
                    : p->kind == KERNEL_WORKSPACE ? at[PLAN_WORKSPACE] + p->value
                                                  : p->value;
        params[i] = &values[i]; /* a number of 4 bytes is the low half: the host is little-endian, as its GPU */
    }
    CUresult result = plan->handle->context->device.api->cuLaunchKernel(
        l->module->function, l->grid[0], l->grid[1], l->grid[2], l->block, 1, 1, l->shared, plan->handle->stream,
        params, NULL);
    return result ? handle_failed(plan->handle, result, "cuLaunchKernel", "%s", plan->info.operation)
                  : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t run_step(qdnnPlan_t plan, const plan_step *step, const CUdeviceptr *at)
{
    return step->kind == PLAN_GEMM ? plan_run_gemm(plan, &step->gemm, at) : launch(plan, &step->launch, at);
}

static qdnnStatus_t run_steps(qdnnPlan_t plan, const CUdeviceptr *at)
{
    bool pushed;
    CHECK_STATUS(handle_enter(plan->handle, &pushed));
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    for (int i = 0; i < plan->n_steps && status == QDNN_STATUS_SUCCESS; i++)
        status = run_step(plan, &plan->steps[i], at);
    handle_leave(plan->handle, pushed);
    if (status == QDNN_STATUS_SUCCESS && log_on(QDNN_SEVERITY_INFO))
        log_write(QDNN_SEVERITY_INFO, "%s: %llu blocks of %u threads", plan->info.operation,
                  (unsigned long long)plan->info.blocks, (unsigned)plan->info.blockThreads);
    return status;
}

qdnnStatus_t plan_execute(qdnnPlan_t plan, const qdnnBinding_t *bindings, int count, void *workspace,
                          size_t workspace_bytes)
{
    CUdeviceptr at[PLAN_PLACES] = {0};
    CHECK_STATUS(bind(plan, bindings, count, at));
    if (plan->n_steps == 0)
        return handle_check(plan->handle);
    CHECK_STATUS(check_pointers(plan, at));
    CHECK_STATUS(check_workspace(plan, workspace, workspace_bytes));
    at[PLAN_WORKSPACE] = (CUdeviceptr)(uintptr_t)workspace;
    return run_steps(plan, at);
}

qdnnStatus_t qdnnExecute(qdnnHandle_t handle, qdnnPlan_t plan, const qdnnBinding_t *bindings, int count,
                         void *workspace, size_t workspaceBytes)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(plan);
    if (plan->handle != handle)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "the plan belongs to another handle; execute it with its own");
    if (count < 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is %d; it must not be negative", count);
    CHECK_BUFFER(bindings, count);
    return plan_execute(plan, bindings, count, workspace, workspaceBytes);
}
