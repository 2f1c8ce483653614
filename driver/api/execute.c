/* qdnnExecute: checks pointers, fills in the parameters and launches the kernels; nothing is allocated,
 * locked or looked up. */
#include <string.h>

#include "driver/base/log.h"
#include "driver/api/launch.h"
#include "driver/api/plan.h"

/* Names for messages, by operand. */
static const char *const place_names[PLAN_PLACES] = {
#define OPERAND(constant, name) [QDNN_OPERAND_##constant] = "QDNN_OPERAND_" #constant,
#include "kernels/operands.def"
#undef OPERAND
    [PLAN_WORKSPACE] = "workspace",
};

/* Those of the operands that are arguments of one-shot calls. */
static const char *const argument_names[PLAN_PLACES] = {
    [QDNN_OPERAND_X] = "x",         [QDNN_OPERAND_Y] = "y",
    [QDNN_OPERAND_CODES] = "codes", [QDNN_OPERAND_SCALE] = "scale",
    [QDNN_OPERAND_ZERO] = "zero",   [PLAN_WORKSPACE] = "the handle's workspace"};

const char *plan_place_name(plan_caller by, int place)
{
    return by == BY_ARGUMENTS && argument_names[place] ? argument_names[place]
           : place_names[place]                        ? place_names[place]
                                                       : "QDNN_OPERAND_(reserved)";
}

static qdnnStatus_t refuse_operand(const struct qdnnPlan *plan, int binding, int operand, bool twice,
                                   plan_caller by)
{
    if (by == BY_ARGUMENTS)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s is given, but %s does not take it; it must be null",
                          plan_place_name(by, operand), plan->info.operation);
    return qdnn_error(QDNN_STATUS_BAD_PARAM, "bindings[%d] is %s, which %s %s", binding,
                      plan_place_name(by, operand), plan->info.operation,
                      twice ? "is given already" : "does not take");
}

static qdnnStatus_t refuse_missing(const struct qdnnPlan *plan, int operand, plan_caller by)
{
    if (by == BY_ARGUMENTS)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "%s needs %s, for which this call has no argument; create a plan and bind it with qdnnExecute",
            plan->info.operation, plan_place_name(by, operand));
    return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s is missing; %s needs it", plan_place_name(by, operand),
                      plan->info.operation);
}

/* The operands with 0 bytes, which need not be bound. */
static operand_set empty_operands(const struct qdnnPlan *plan)
{
    operand_set empty = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        empty |= (operand_set)(plan->bytes[i] == 0) << i;
    return empty;
}

/* Puts the bound pointers into their places. */
static qdnnStatus_t bind(const struct qdnnPlan *plan, const qdnnBinding_t *bindings, int count,
                         plan_caller by, CUdeviceptr *at)
{
    operand_set bound = 0;
    for (int i = 0; i < count; i++) {
        unsigned operand = (unsigned)bindings[i].operand;
        if (operand >= QDNN_OPERAND_COUNT)
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                              "bindings[%d].operand is %d; it must be 0 to %d", i, (int)operand,
                              QDNN_OPERAND_COUNT - 1);
        if (!(plan->operands >> operand & 1) || bound >> operand & 1)
            return refuse_operand(plan, i, (int)operand, bound >> operand & 1, by);
        if (bindings[i].bytes && bindings[i].bytes < plan->bytes[operand])
            return qdnn_error(QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                              "bindings[%d].bytes is %zu; %s of %s has %llu bytes", i, bindings[i].bytes,
                              plan_place_name(by, (int)operand), plan->info.operation,
                              (unsigned long long)plan->bytes[operand]);
        at[operand] = (CUdeviceptr)(uintptr_t)bindings[i].pointer;
        bound |= (operand_set)1 << operand;
    }
    const operand_set missing = plan->n_steps > 0 ? plan->operands & ~bound & ~empty_operands(plan) : 0;
    return missing ? refuse_missing(plan, __builtin_ctzll(missing), by) : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_pointers(const struct qdnnPlan *plan, const CUdeviceptr *at, plan_caller by)
{
    for (operand_set left = plan->operands & ~empty_operands(plan); left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        if (!at[i])
            return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null; it must not be",
                              plan_place_name(by, i));
        if (at[i] & (plan->align[i] - 1u))
            return qdnn_error(QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                              "%s is 0x%llx; it must be a multiple of its element's %d bytes",
                              plan_place_name(by, i), at[i], plan->align[i]);
    }
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t plan_check_workspace(size_t needed, const void *workspace, size_t bytes)
{
    if (bytes < needed)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "workspaceBytes is %zu; the plan needs %zu", bytes, needed);
    CHECK_BUFFER(workspace, needed);
    if (needed > 0 && (uintptr_t)workspace % PLAN_WORKSPACE_ALIGN != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                          "workspace is %p; it must be a multiple of %d", workspace, PLAN_WORKSPACE_ALIGN);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Expert indices, if the plan checks them ---- */

static qdnnStatus_t copy_indices(qdnnHandle_t handle, int32_t *to, CUdeviceptr from, size_t count)
{
    const cuda_api *api = handle->context->device.api;
    CUresult result = api->cuMemcpyDtoHAsync(to, from, count * sizeof *to, handle->stream);
    if (result)
        return handle_failed(handle, result, "cuMemcpyDtoHAsync", "QDNN_MATMUL_CHECK_INDICES");
    result = api->cuStreamSynchronize(handle->stream);
    return result ? handle_failed(handle, result, "cuStreamSynchronize", "QDNN_MATMUL_CHECK_INDICES")
                  : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t refuse_capture(qdnnHandle_t handle)
{
    bool captured = false;
    CHECK_STATUS(plan_is_captured(handle, &captured));
    if (!captured)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_EXECUTION_FAILED,
        "QDNN_MATMUL_CHECK_INDICES is 1, and the handle's stream is being captured, which cannot "
        "wait for the indices; fix: set it to 0 for plans that are captured");
}

/* A few at a time into a buffer on the stack, so that nothing is allocated. */
static qdnnStatus_t check_indices(const struct qdnnPlan *plan, CUdeviceptr index, uint64_t rows)
{
    enum { AT_A_TIME = 1024 };
    int32_t part[AT_A_TIME];
    CHECK_STATUS(refuse_capture(plan->handle));
    for (uint64_t first = 0; first < rows; first += AT_A_TIME) {
        size_t count = rows - first < AT_A_TIME ? (size_t)(rows - first) : AT_A_TIME;
        CHECK_STATUS(copy_indices(plan->handle, part, index + first * sizeof *part, count));
        for (size_t i = 0; i < count; i++)
            if (part[i] < 0 || (uint32_t)part[i] >= plan->checked_experts)
                return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                                  "QDNN_OPERAND_EXPERT_INDEX has %d for row %llu; it must be 0 to %u",
                                  (int)part[i], (unsigned long long)(first + i),
                                  (unsigned)plan->checked_experts - 1);
    }
    return QDNN_STATUS_SUCCESS;
}

/* ---- Launches ---- */

/* The blocks along a dimension: fewer than planned, if they depend on the rows. */
static unsigned blocks_of_rows(const plan_launch *l, int dimension, uint64_t rows)
{
    const unsigned planned = l->grid[dimension];
    if (l->rows.per_block == 0 || l->rows.dimension != dimension)
        return planned;
    const uint64_t blocks = ceil_div(rows * l->rows.work, l->rows.per_block);
    return blocks < planned ? (unsigned)blocks : planned;
}

/* An execute under way: where its operands are, and what is on the stream. */
typedef struct execution {
    CUdeviceptr at[PLAN_PLACES];
    uint64_t rows;
    launch_chain *chain;
} execution;

static qdnnStatus_t run_launch(qdnnPlan_t plan, const plan_launch *l, const execution *e)
{
    uint64_t values[KERNEL_PARAMS_MAX];
    void *params[KERNEL_PARAMS_MAX];
    for (int i = 0; i < l->n_params; i++) {
        const kernel_param *p = &l->params[i];
        values[i] = p->kind == KERNEL_OPERAND     ? e->at[p->operand]
                    : p->kind == KERNEL_WORKSPACE ? e->at[PLAN_WORKSPACE] + p->value
                    : p->is_rows                  ? e->rows
                                                  : p->value;
        params[i] = &values[i]; /* a 4-byte parameter is the low half: host and GPU are little-endian */
    }
    const launch kernel = {
        .function = l->module->function,
        .grid = {blocks_of_rows(l, 0, e->rows), blocks_of_rows(l, 1, e->rows), blocks_of_rows(l, 2, e->rows)},
        .block = {l->block, 1, 1},
        .shared = l->shared,
        .waits = true,
        .what = plan->info.operation};
    return launch_kernel(plan->handle, e->chain, &kernel, params);
}

static qdnnStatus_t run_step(qdnnPlan_t plan, const plan_step *step, const execution *e)
{
    if (step->kind == PLAN_LAUNCH)
        return run_launch(plan, &step->launch, e);
    e->chain->kernel = false; /* cuBLAS has kernels of its own */
    return plan_run_gemm(plan, &step->gemm, e->at, e->rows);
}

static qdnnStatus_t run_once(qdnnPlan_t plan, const execution *e)
{
    for (int i = 0; i < plan->n_steps; i++)
        CHECK_STATUS(run_step(plan, &plan->steps[i], e));
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t run_repeats(qdnnPlan_t plan, execution *e)
{
    for (uint64_t i = 1; i < plan->repeats; i++) {
        CHECK_STATUS(run_once(plan, e));
        for (int k = 0; k < QDNN_OPERAND_COUNT; k++)
            e->at[k] += plan->strides[k];
    }
    return run_once(plan, e);
}

static qdnnStatus_t run_steps(qdnnPlan_t plan, const CUdeviceptr *at, uint64_t rows, launch_chain *chain,
                              plan_caller by)
{
    bool pushed;
    execution e = {.rows = rows, .chain = chain};
    memcpy(e.at, at, sizeof e.at);
    CHECK_STATUS(handle_enter(plan->handle, &pushed));
    plan->handle->last_operation = plan->info.operation;
    plan->handle->last_operands = plan->operands;
    qdnnStatus_t status =
        plan->handle->check_buffers ? plan_check_buffers(plan, at, by) : QDNN_STATUS_SUCCESS;
    if (status == QDNN_STATUS_SUCCESS && plan->checked_experts)
        status = check_indices(plan, at[QDNN_OPERAND_EXPERT_INDEX], rows);
    if (status == QDNN_STATUS_SUCCESS)
        status = run_repeats(plan, &e);
    handle_leave(plan->handle, pushed);
    if (status == QDNN_STATUS_SUCCESS && log_on(QDNN_SEVERITY_INFO))
        log_write(QDNN_SEVERITY_INFO, "%s: %llu blocks of %u threads", plan->info.operation,
                  (unsigned long long)plan->info.blocks, (unsigned)plan->info.blockThreads);
    return status;
}

static bool has_work(const struct qdnnPlan *plan, uint64_t rows)
{
    return plan->n_steps > 0 && rows > 0;
}

qdnnStatus_t plan_bind(const struct qdnnPlan *plan, uint64_t rows, const qdnnBinding_t *bindings, int count,
                       plan_caller by, CUdeviceptr at[PLAN_PLACES])
{
    CHECK_STATUS(bind(plan, bindings, count, by, at));
    return has_work(plan, rows) ? check_pointers(plan, at, by) : QDNN_STATUS_SUCCESS;
}

qdnnStatus_t plan_launch_all(qdnnPlan_t plan, uint64_t rows, const CUdeviceptr at[PLAN_PLACES],
                             launch_chain *chain, plan_caller by)
{
    return has_work(plan, rows) ? run_steps(plan, at, rows, chain, by) : handle_check(plan->handle);
}

qdnnStatus_t plan_execute(qdnnPlan_t plan, uint64_t rows, const qdnnBinding_t *bindings, int count,
                          void *workspace, size_t workspace_bytes, plan_caller by)
{
    CUdeviceptr at[PLAN_PLACES] = {0};
    CHECK_STATUS(plan_bind(plan, rows, bindings, count, by, at));
    if (has_work(plan, rows))
        CHECK_STATUS(plan_check_workspace(plan->workspace_bytes, workspace, workspace_bytes));
    at[PLAN_WORKSPACE] = (CUdeviceptr)(uintptr_t)workspace;
    return plan_launch_all(plan, rows, at, &(launch_chain){0}, by);
}

qdnnStatus_t plan_check_bindings(const struct qdnnPlan *plan, qdnnHandle_t handle,
                                 const qdnnBinding_t *bindings, int count)
{
    if (plan->handle != handle)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "the plan belongs to another handle; execute it with its own");
    if (count < 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is %d; it must not be negative", count);
    CHECK_BUFFER(bindings, count);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t plan_check_rows(const struct qdnnPlan *plan, int64_t rows)
{
    if (!plan->takes_rows)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "%s cannot be executed with fewer rows than it was planned for; use qdnnExecute",
                          plan->info.operation);
    if (rows < 0 || (uint64_t)rows > plan->rows)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "rows is %lld; the plan was made for 0 to %llu",
                          (long long)rows, (unsigned long long)plan->rows);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t execute(qdnnHandle_t handle, qdnnPlan_t plan, uint64_t rows,
                            const qdnnBinding_t *bindings, int count, void *workspace, size_t workspace_bytes)
{
    CHECK_STATUS(plan_check_bindings(plan, handle, bindings, count));
    return plan_execute(plan, rows, bindings, count, workspace, workspace_bytes, BY_BINDINGS);
}

qdnnStatus_t qdnnExecute(qdnnHandle_t handle, qdnnPlan_t plan, const qdnnBinding_t *bindings, int count,
                         void *workspace, size_t workspaceBytes)
{
    CALL_BEGIN_WITH(handle, plan, bindings, count, workspace, workspaceBytes);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(plan);
    return execute(handle, plan, plan->rows, bindings, count, workspace, workspaceBytes);
}

qdnnStatus_t qdnnExecuteRows(qdnnHandle_t handle, qdnnPlan_t plan, int64_t rows,
                             const qdnnBinding_t *bindings, int count, void *workspace, size_t workspaceBytes)
{
    CALL_BEGIN_WITH(handle, plan, rows, bindings, count, workspace, workspaceBytes);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(plan_check_rows(plan, rows));
    return execute(handle, plan, (uint64_t)rows, bindings, count, workspace, workspaceBytes);
}
