/* Schedules: lists of plans with their buffers, checked when they are added and run by one call.
 *
 *     qdnnCreateSchedule(handle, &schedule);
 *     qdnnAddToSchedule(schedule, quantize, quantizeBindings, 3);
 *     qdnnAddToSchedule(schedule, product, productBindings, 4);
 *     qdnnGetScheduleWorkspaceSize(schedule, &bytes);
 *     ...
 *     qdnnExecuteSchedule(handle, schedule, workspace, bytes);     every time
 *
 * Steps run in the order in which they were added, on the handle's stream, so each sees what earlier steps
 * wrote. All steps share one workspace. An error names the step: "step 1 (quant.int4.matmul): ...". */
#ifndef QDNN_SCHEDULE_H
#define QDNN_SCHEDULE_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnSchedule *qdnnSchedule_t;

/* Creates an empty schedule.
 *   handle     the one that all its plans belong to
 *   schedule   receives it; qdnnDestroySchedule frees it, before the handle
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED; _EXECUTION_FAILED_STICKY if
 * the device has failed. */
QDNN_API qdnnStatus_t qdnnCreateSchedule(qdnnHandle_t handle, qdnnSchedule_t *schedule);

/* Appends a plan with its buffers. The schedule keeps a reference to the plan, so the caller may destroy it.
 *   schedule
 *   plan       of the schedule's handle
 *   bindings   as for qdnnExecute, and checked in the same way; copied
 *   count      how many
 * Returns _SUCCESS; what qdnnExecute returns for invalid arguments; _INTERNAL_ERROR_ALLOCATION_FAILED. A step
 * that is rejected is not added. */
QDNN_API qdnnStatus_t qdnnAddToSchedule(qdnnSchedule_t schedule, qdnnPlan_t plan,
                                        const qdnnBinding_t *bindings, int count);

/* Appends a plan for fewer rows than it was planned for.
 *   rows   0 to those of the plan
 * Other arguments and statuses as for qdnnAddToSchedule and qdnnExecuteRows. */
QDNN_API qdnnStatus_t qdnnAddRowsToSchedule(qdnnSchedule_t schedule, qdnnPlan_t plan, int64_t rows,
                                            const qdnnBinding_t *bindings, int count);

/* Gets the size of the workspace: the largest that any step needs.
 *   schedule
 *   bytes      receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetScheduleWorkspaceSize(qdnnSchedule_t schedule, size_t *bytes);

/* Launches all steps on the handle's stream. Allowed while the stream is being captured, unless a plan checks
 * its expert indices.
 *   handle          that of the schedule
 *   schedule        may be empty
 *   workspace       device memory, aligned to 16; null if none is needed
 *   workspaceBytes  at least what qdnnGetScheduleWorkspaceSize says
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for another handle; _BAD_PARAM_SIZE_INSUFFICIENT;
 * _BAD_PARAM_MISALIGNED_POINTER; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY; and the errors of
 * QDNN_CHECK_BUFFERS and QDNN_MATMUL_CHECK_INDICES if set. Steps before the one that failed have been
 * launched. */
QDNN_API qdnnStatus_t qdnnExecuteSchedule(qdnnHandle_t handle, qdnnSchedule_t schedule, void *workspace,
                                          size_t workspaceBytes);

/* Frees a schedule and releases its plans. A graph captured from it must not be launched afterwards.
 *   schedule   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroySchedule(qdnnSchedule_t schedule);

#ifdef __cplusplus
}
#endif
#endif
