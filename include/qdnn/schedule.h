/* Schedules: a list of plans with their buffers, checked when it is made and run by one call.
 *
 *     qdnnCreateSchedule(handle, &schedule);
 *     qdnnAddToSchedule(schedule, quantize, quantizeBindings, 3);
 *     qdnnAddToSchedule(schedule, product, productBindings, 4);
 *     qdnnGetScheduleWorkspaceSize(schedule, &bytes);
 *     ...
 *     qdnnExecuteSchedule(handle, schedule, workspace, bytes);     every time
 *
 * Steps run in the order in which they were added, on the handle's stream, so each finds what the ones before it wrote, and
 * all of them use the same workspace, one after another. An error names the step: "step 1 (quant.int4.matmul): ...". */
#ifndef QDNN_SCHEDULE_H
#define QDNN_SCHEDULE_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnSchedule *qdnnSchedule_t;

/* Creates an empty schedule.
 *   handle     that of all its plans
 *   schedule   receives it; qdnnDestroySchedule frees it, before the handle
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED; _EXECUTION_FAILED_STICKY where the handle is
 * dead. */
QDNN_API qdnnStatus_t qdnnCreateSchedule(qdnnHandle_t handle, qdnnSchedule_t *schedule);

/* Appends a plan with its buffers. The schedule keeps the plan, so the caller may destroy it from now on.
 *   schedule
 *   plan       of the schedule's handle
 *   bindings   as qdnnExecute takes them, and checked as there; copied
 *   count      how many
 * Returns _SUCCESS, and what qdnnExecute does for its arguments; _INTERNAL_ERROR_ALLOCATION_FAILED. A step that is refused
 * is not added. */
QDNN_API qdnnStatus_t qdnnAddToSchedule(qdnnSchedule_t schedule, qdnnPlan_t plan,
                                        const qdnnBinding_t *bindings, int count);

/* The same for fewer rows of a product than it was planned for.
 *   rows   0 to the M of the plan
 * Other arguments and statuses as qdnnAddToSchedule and qdnnExecuteRows. */
QDNN_API qdnnStatus_t qdnnAddRowsToSchedule(qdnnSchedule_t schedule, qdnnPlan_t plan, int64_t rows,
                                            const qdnnBinding_t *bindings, int count);

/* How much device memory an execute needs besides the buffers: the largest that one of its steps needs.
 *   schedule
 *   bytes      receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetScheduleWorkspaceSize(qdnnSchedule_t schedule, size_t *bytes);

/* Launches all steps on the handle's stream. Allowed while the stream is being captured, unless a plan checks its expert indices.
 *   handle          the schedule's
 *   schedule        without steps it does nothing
 *   workspace       device memory, aligned to 16; null where none is needed
 *   workspaceBytes  at least what qdnnGetScheduleWorkspaceSize says
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for another handle; _BAD_PARAM_SIZE_INSUFFICIENT;
 * _BAD_PARAM_MISALIGNED_POINTER; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY; with QDNN_CHECK_BUFFERS or
 * QDNN_MATMUL_CHECK_INDICES what these find. Steps before the one that failed have been launched. */
QDNN_API qdnnStatus_t qdnnExecuteSchedule(qdnnHandle_t handle, qdnnSchedule_t schedule, void *workspace,
                                          size_t workspaceBytes);

/* Frees a schedule and releases its plans. A graph captured from it must not be launched any more.
 *   schedule   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroySchedule(qdnnSchedule_t schedule);

#ifdef __cplusplus
}
#endif
#endif
