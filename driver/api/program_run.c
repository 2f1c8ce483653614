/* Running programs: addresses are filled in and everything is launched; nothing is allocated, locked or looked
 * up. */
#include "driver/api/program.h"

/* ---- Steps ---- */

static CUdeviceptr address(const struct qdnnProgram *program, const program_use *use, const program_run *run)
{
    const program_tensor *t = &program->tensors[use->tensor];
    const CUdeviceptr base = t->place == QDNN_PROGRAM_EXTERNAL
                                 ? (CUdeviceptr)(uintptr_t)run->pointers[use->tensor]
                                 : run->arena + t->offset;
    return base + use->offset;
}

/* The bytes of a tensor that a run uses. */
static uint64_t bytes_of(const struct qdnnProgram *program, const program_use *use, const program_run *run)
{
    const program_tensor *t = &program->tensors[use->tensor];
    return t->row_bytes ? t->row_bytes * run->rows : t->bytes;
}

static qdnnStatus_t run_plan(const struct qdnnProgram *program, const program_step *step,
                             const program_run *run)
{
    CUdeviceptr at[PLAN_PLACES] = {0};
    for (int i = 0; i < step->n_uses; i++)
        at[step->uses[i].place] = address(program, &step->uses[i], run);
    at[PLAN_WORKSPACE] = run->arena + step->workspace;
    return plan_launch_all(step->plan, step->per_row ? step->per_row * run->rows : step->plan->rows, at,
                           run->chain, BY_BINDINGS);
}

static qdnnStatus_t run_copy(const struct qdnnProgram *program, const program_step *step,
                             const program_run *run)
{
    const uint64_t bytes = bytes_of(program, &step->uses[0], run);
    qdnnHandle_t handle = program->handle;
    run->chain->kernel = false;
    CUresult result = bytes ? handle->context->device.api->cuMemcpyDtoDAsync(
                                  address(program, &step->uses[0], run),
                                  address(program, &step->uses[1], run), bytes, handle->stream)
                            : 0;
    return result
               ? handle_failed(handle, result, "cuMemcpyDtoDAsync", "%llu bytes", (unsigned long long)bytes)
               : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t run_fill(const struct qdnnProgram *program, const program_step *step,
                             const program_run *run)
{
    const uint64_t bytes = bytes_of(program, &step->uses[0], run);
    qdnnHandle_t handle = program->handle;
    run->chain->kernel = false;
    CUresult result = bytes ? handle->context->device.api->cuMemsetD8Async(
                                  address(program, &step->uses[0], run), step->byte, bytes, handle->stream)
                            : 0;
    return result ? handle_failed(handle, result, "cuMemsetD8Async", "%llu bytes", (unsigned long long)bytes)
                  : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t run_kernel(const struct qdnnProgram *program, const program_step *step,
                               const program_run *run)
{
    program_kernel *k = step->kernel;
    uint64_t values[QDNN_KERNEL_ARGUMENTS_MAX];
    void *params[QDNN_KERNEL_ARGUMENTS_MAX];
    if (k->rows_per_block && run->rows == 0)
        return QDNN_STATUS_SUCCESS;
    for (int i = 0; i < k->n_arguments; i++) {
        values[i] = k->arguments[i].is_rows ? run->rows : k->arguments[i].value;
        params[i] = &values[i]; /* a short argument is the low part: host and GPU are little-endian */
    }
    for (int i = 0; i < step->n_uses; i++)
        values[step->uses[i].place] = address(program, &step->uses[i], run);
    const unsigned blocks =
        k->rows_per_block ? (unsigned)((run->rows + k->rows_per_block - 1) / k->rows_per_block) : k->grid[0];
    k->was_launched = true;
    const launch kernel = {.function = k->function,
                           .grid = {blocks, k->grid[1], k->grid[2]},
                           .block = {k->block[0], k->block[1], k->block[2]},
                           .shared = k->shared,
                           .what = "a kernel of the caller's"};
    return launch_kernel(program->handle, run->chain, &kernel, params);
}

qdnnStatus_t program_run_step(const struct qdnnProgram *program, const program_step *step,
                              const program_run *run)
{
    static qdnnStatus_t (*const runs[PROGRAM_STEP_KINDS])(const struct qdnnProgram *, const program_step *,
                                                          const program_run *) = {[PROGRAM_PLAN] = run_plan,
                                                                                  [PROGRAM_COPY] = run_copy,
                                                                                  [PROGRAM_FILL] = run_fill,
                                                                                  [PROGRAM_KERNEL] =
                                                                                      run_kernel};
    return runs[step->kind](program, step, run);
}

/* ---- A run ---- */

static qdnnStatus_t check_pointers(const struct qdnnProgram *program, const void *const *pointers)
{
    for (int i = 0; i < program->n_tensors; i++) {
        const program_tensor *t = &program->tensors[i];
        if (t->place != QDNN_PROGRAM_EXTERNAL || t->first < 0 || t->bytes == 0)
            continue;
        if (!pointers[i])
            return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER,
                              "pointers[%d] ('%s') is null; it must not be", i, t->name);
        if ((uintptr_t)pointers[i] & (t->align - 1u))
            return qdnn_error(QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                              "pointers[%d] ('%s') is %p; it must be a multiple of %u", i, t->name,
                              pointers[i], t->align);
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_run(const struct qdnnProgram *program, qdnnHandle_t handle, int count, int64_t rows)
{
    CHECK_STATUS(handle_check(handle));
    if (program->handle != handle)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "the program belongs to another handle; run it with its own");
    if (!program->is_compiled)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "the program was not compiled; call qdnnCompileProgram");
    if (count != program->n_tensors)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "count is %d; there must be a pointer for each of the %d tensors", count,
                          program->n_tensors);
    if (rows < 0 || (uint64_t)rows > program->max_rows)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "rows is %lld; the program was made for 0 to %llu", (long long)rows,
                          (unsigned long long)program->max_rows);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_arena(const struct qdnnProgram *program, const void *arena, size_t bytes)
{
    if (bytes < program->arena_bytes)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "arenaBytes is %zu; the program needs %llu", bytes,
                          (unsigned long long)program->arena_bytes);
    CHECK_BUFFER(arena, program->arena_bytes);
    if (program->arena_bytes && (uintptr_t)arena % PLAN_WORKSPACE_ALIGN != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                          "arena is %p; it must be a multiple of %d", arena, PLAN_WORKSPACE_ALIGN);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t run_steps(const struct qdnnProgram *program, const program_run *run)
{
    bool pushed;
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    CHECK_STATUS(handle_enter(program->handle, &pushed));
    if (program->trace)
        status = program_trace_run(program, run);
    else
        for (int i = 0; i < program->n_steps && status == QDNN_STATUS_SUCCESS; i++)
            status =
                program_in_step(program_run_step(program, &program->steps[i], run), i, &program->steps[i]);
    handle_leave(program->handle, pushed);
    return status;
}

qdnnStatus_t qdnnRunProgram(qdnnHandle_t handle, qdnnProgram_t program, const void *const *pointers,
                            int count, int64_t rows, void *arena, size_t arenaBytes)
{
    CALL_BEGIN_WITH(handle, program, pointers, count, rows, arena, arenaBytes);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(program);
    CHECK_STATUS(check_run(program, handle, count, rows));
    CHECK_BUFFER(pointers, count);
    CHECK_STATUS(check_pointers(program, pointers));
    CHECK_STATUS(check_arena(program, arena, arenaBytes));
    launch_chain chain = {0};
    const program_run run = {pointers, (CUdeviceptr)(uintptr_t)arena, (uint64_t)rows, &chain};
    return run_steps(program, &run);
}
