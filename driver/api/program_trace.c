/* QDNN_TRACE: every run of a program lists its steps, with shapes, bytes and times. */
#include <stdlib.h>
#include <string.h>

#include "driver/api/program.h"
#include "driver/base/alloc.h"

/* One event before the first step, and one after each. They are made when the program is compiled, since a run
 * allocates nothing. */
typedef struct program_trace {
    FILE *file;
    bool owns_file;
    int runs;
    CUevent *events;
    int n_events;
} program_trace;

static qdnnStatus_t open_file(program_trace *trace, const char *name)
{
    trace->file = strcmp(name, "stderr") == 0 ? stderr : strcmp(name, "stdout") == 0 ? stdout : NULL;
    if (trace->file)
        return QDNN_STATUS_SUCCESS;
    trace->file = fopen(name, "a");
    trace->owns_file = trace->file != NULL;
    return trace->file ? QDNN_STATUS_SUCCESS
                       : qdnn_error(QDNN_STATUS_BAD_PARAM, "QDNN_TRACE: %s cannot be opened", name);
}

static qdnnStatus_t make_events(qdnnHandle_t handle, program_trace *trace, int count)
{
    CUresult result = 0;
    bool pushed;
    CHECK_STATUS(handle_enter(handle, &pushed));
    for (; trace->n_events < count && !result; trace->n_events += !result)
        result = handle->context->device.api->cuEventCreate(&trace->events[trace->n_events], 0);
    handle_leave(handle, pushed);
    return result ? handle_failed(handle, result, "cuEventCreate", "QDNN_TRACE") : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t open_trace(qdnnProgram_t program, const char *name)
{
    program_trace *trace = program->trace;
    CHECK_STATUS(open_file(trace, name));
    trace->events = alloc_new((size_t)(program->n_steps + 1) * sizeof(CUevent));
    if (!trace->events)
        return OUT_OF_MEMORY();
    return make_events(program->handle, trace, program->n_steps + 1);
}

qdnnStatus_t program_trace_open(qdnnProgram_t program)
{
    const char *name = getenv("QDNN_TRACE");
    if (!name || !*name)
        return QDNN_STATUS_SUCCESS;
    program->trace = alloc_new(sizeof *program->trace);
    if (!program->trace)
        return OUT_OF_MEMORY();
    const qdnnStatus_t status = open_trace(program, name);
    if (status != QDNN_STATUS_SUCCESS)
        program_trace_close(program);
    return status;
}

void program_trace_close(qdnnProgram_t program)
{
    program_trace *trace = program->trace;
    bool pushed;
    if (!trace)
        return;
    if (trace->n_events && !context_enter(program->handle->context, &pushed)) {
        for (int i = 0; i < trace->n_events; i++)
            program->handle->context->device.api->cuEventDestroy(trace->events[i]);
        context_leave(program->handle->context, pushed);
    }
    if (trace->owns_file)
        fclose(trace->file);
    alloc_free(trace->events);
    alloc_free(trace);
    program->trace = NULL;
}

/* ---- A run ---- */

/* "x f32[4, 576]", with the rows of the run. */
static void print_tensor(FILE *file, const struct qdnnProgram *program, const program_use *use,
                         const program_run *run)
{
    const program_tensor *t = &program->tensors[use->tensor];
    fprintf(file, "%s%s %s[", use->writes ? "=> " : "", t->name, qdnnGetDataTypeName(t->shape.type));
    for (int i = 0; i < t->shape.rank; i++) {
        uint64_t size = (uint64_t)t->shape.dims[i];
        if (i == 0 && t->row_bytes)
            size = size / program->max_rows * run->rows;
        fprintf(file, "%s%llu", i ? ", " : "", (unsigned long long)size);
    }
    fprintf(file, "]");
}

/* Of the operands as the step uses them; those by rows only as far as the run goes. */
static uint64_t bytes_of(const struct qdnnProgram *program, const program_step *step, const program_run *run,
                         bool written)
{
    uint64_t bytes = 0;
    for (int i = 0; i < step->n_uses; i++) {
        const program_use *use = &step->uses[i];
        const bool by_rows = program->tensors[use->tensor].row_bytes > 0;
        if (written ? use->writes : use->reads)
            bytes += by_rows ? use->bytes * run->rows / program->max_rows : use->bytes;
    }
    return bytes;
}

static void print_step(const struct qdnnProgram *program, int number, const program_run *run, float time)
{
    const program_step *step = &program->steps[number];
    FILE *file = program->trace->file;
    fprintf(file, "%4d %8.3f ms %10llu read %10llu written  %s%s%s", number, (double)time,
            (unsigned long long)bytes_of(program, step, run, false),
            (unsigned long long)bytes_of(program, step, run, true), step->name, *step->name ? " " : "",
            program_step_operation(step));
    if (step->parts > 1)
        fprintf(file, ", %d steps fused", step->parts);
    fprintf(file, ":");
    for (int i = 0; i < step->n_uses; i++) {
        fprintf(file, i ? ", " : " ");
        print_tensor(file, program, &step->uses[i], run);
    }
    fprintf(file, "\n");
}

static qdnnStatus_t failed(const struct qdnnProgram *program, CUresult result, const char *call)
{
    return result ? handle_failed(program->handle, result, call, "QDNN_TRACE") : QDNN_STATUS_SUCCESS;
}

/* The milliseconds from one event to another. */
static qdnnStatus_t elapsed(const struct qdnnProgram *program, int from, int to, float *time)
{
    const program_trace *trace = program->trace;
    return failed(program,
                  program->handle->context->device.api->cuEventElapsedTime(time, trace->events[from],
                                                                           trace->events[to]),
                  "cuEventElapsedTime");
}

static qdnnStatus_t print_run(const struct qdnnProgram *program, const program_run *run)
{
    const program_trace *trace = program->trace;
    const int last = program->n_steps;
    float time = 0;
    CHECK_STATUS(failed(program,
                        program->handle->context->device.api->cuEventSynchronize(trace->events[last]),
                        "cuEventSynchronize"));
    CHECK_STATUS(elapsed(program, 0, last, &time));
    fprintf(trace->file, "run %d of a program: %llu rows, %d steps, %.3f ms on %s\n", trace->runs,
            (unsigned long long)run->rows, program->n_steps, (double)time,
            program->handle->context->device.name);
    for (int i = 0; i < last; i++) {
        CHECK_STATUS(elapsed(program, i, i + 1, &time));
        print_step(program, i, run, time);
    }
    fflush(trace->file);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t record(const struct qdnnProgram *program, int event, bool captured)
{
    const qdnnHandle_t handle = program->handle;
    return captured ? QDNN_STATUS_SUCCESS
                    : failed(program,
                             handle->context->device.api->cuEventRecord(program->trace->events[event],
                                                                        handle->stream),
                             "cuEventRecord");
}

/* A run that is being captured cannot be waited for: it is launched as always, and not listed. */
qdnnStatus_t program_trace_run(const struct qdnnProgram *program, const program_run *run)
{
    bool captured = false;
    program->trace->runs++;
    CHECK_STATUS(plan_is_captured(program->handle, &captured));
    CHECK_STATUS(record(program, 0, captured));
    for (int i = 0; i < program->n_steps; i++) {
        const program_step *step = &program->steps[i];
        CHECK_STATUS(program_in_step(program_run_step(program, step, run), i, step));
        CHECK_STATUS(record(program, i + 1, captured));
        run->chain->kernel &= captured; /* steps that overlap cannot be timed */
    }
    return captured ? QDNN_STATUS_SUCCESS : print_run(program, run);
}
