/* Schedules: plans with their pointers bound, one after another. */
#include <qdnn/schedule.h>

#include <string.h>

#include "driver/api/plan.h"
#include "driver/base/alloc.h"

typedef struct schedule_step {
    qdnnPlan_t plan;
    uint64_t rows;
    CUdeviceptr at[PLAN_PLACES]; /* the workspace's is set by an execute */
} schedule_step;

struct qdnnSchedule {
    qdnnHandle_t handle;
    schedule_step *steps;
    int count, room;
    size_t workspace_bytes;
};

static qdnnStatus_t in_step(qdnnStatus_t status, int number, const struct qdnnPlan *plan)
{
    return plan_in_step(status, number, NULL, plan->info.operation);
}

qdnnStatus_t qdnnCreateSchedule(qdnnHandle_t handle, qdnnSchedule_t *schedule)
{
    CALL_BEGIN_WITH(handle, schedule);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(schedule);
    CHECK_STATUS(handle_check(handle));
    qdnnSchedule_t made = object_create(OBJECT_SCHEDULE, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    made->handle = handle;
    handle->schedules++;
    *schedule = made;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t make_room(qdnnSchedule_t schedule)
{
    if (schedule->count < schedule->room)
        return QDNN_STATUS_SUCCESS;
    int room = schedule->room ? 2 * schedule->room : 8;
    schedule_step *steps = alloc_new((size_t)room * sizeof *steps);
    if (!steps)
        return OUT_OF_MEMORY();
    if (schedule->count)
        memcpy(steps, schedule->steps, (size_t)schedule->count * sizeof *steps);
    alloc_free(schedule->steps);
    schedule->steps = steps;
    schedule->room = room;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t bind(const struct qdnnSchedule *schedule, schedule_step *step,
                         const qdnnBinding_t *bindings, int count)
{
    CHECK_STATUS(plan_check_bindings(step->plan, schedule->handle, bindings, count));
    return plan_bind(step->plan, step->rows, bindings, count, BY_BINDINGS, step->at);
}

static qdnnStatus_t add(qdnnSchedule_t schedule, qdnnPlan_t plan, uint64_t rows,
                        const qdnnBinding_t *bindings, int count)
{
    schedule_step step = {.plan = plan, .rows = rows};
    CHECK_STATUS(handle_check(schedule->handle));
    CHECK_STATUS(in_step(bind(schedule, &step, bindings, count), schedule->count, plan));
    CHECK_STATUS(make_room(schedule));
    schedule->steps[schedule->count++] = step;
    plan->references++;
    if (plan->workspace_bytes > schedule->workspace_bytes)
        schedule->workspace_bytes = plan->workspace_bytes;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnAddToSchedule(qdnnSchedule_t schedule, qdnnPlan_t plan, const qdnnBinding_t *bindings,
                               int count)
{
    CALL_BEGIN_WITH(schedule, plan, bindings, count);
    CHECK_NOT_NULL(schedule);
    CHECK_NOT_NULL(plan);
    return add(schedule, plan, plan->rows, bindings, count);
}

qdnnStatus_t qdnnAddRowsToSchedule(qdnnSchedule_t schedule, qdnnPlan_t plan, int64_t rows,
                                   const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(schedule, plan, rows, bindings, count);
    CHECK_NOT_NULL(schedule);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(in_step(plan_check_rows(plan, rows), schedule->count, plan));
    return add(schedule, plan, (uint64_t)rows, bindings, count);
}

qdnnStatus_t qdnnGetScheduleWorkspaceSize(qdnnSchedule_t schedule, size_t *bytes)
{
    CALL_BEGIN_WITH(schedule, bytes);
    CHECK_NOT_NULL(schedule);
    CHECK_NOT_NULL(bytes);
    *bytes = schedule->workspace_bytes;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t run(const struct qdnnSchedule *schedule, CUdeviceptr workspace)
{
    launch_chain chain = {0};
    for (int i = 0; i < schedule->count; i++) {
        schedule_step step = schedule->steps[i];
        step.at[PLAN_WORKSPACE] = workspace;
        CHECK_STATUS(
            in_step(plan_launch_all(step.plan, step.rows, step.at, &chain, BY_BINDINGS), i, step.plan));
    }
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnExecuteSchedule(qdnnHandle_t handle, qdnnSchedule_t schedule, void *workspace,
                                 size_t workspaceBytes)
{
    CALL_BEGIN_WITH(handle, schedule, workspace, workspaceBytes);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(schedule);
    if (schedule->handle != handle)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "the schedule belongs to another handle; execute it with its own");
    CHECK_STATUS(handle_check(handle));
    CHECK_STATUS(plan_check_workspace(schedule->workspace_bytes, workspace, workspaceBytes));
    return run(schedule, (CUdeviceptr)(uintptr_t)workspace);
}

qdnnStatus_t qdnnDestroySchedule(qdnnSchedule_t schedule)
{
    CALL_BEGIN_WITH(schedule);
    if (!schedule)
        return QDNN_STATUS_SUCCESS;
    CHECK_NOT_NULL(schedule);
    for (int i = 0; i < schedule->count; i++)
        plan_release(schedule->steps[i].plan);
    schedule->handle->schedules--;
    alloc_free(schedule->steps);
    object_destroy(schedule);
    return QDNN_STATUS_SUCCESS;
}
