/* Steps of programs that are kernels of the caller's own: PTX, CUDA C, or a function loaded already. */
#include <string.h>

#include "driver/api/modules.h"
#include "driver/api/program.h"
#include "driver/base/alloc.h"
#include "driver/cuda/nvrtc.h"

/* ---- What is asked for ---- */

static bool is_tensor(qdnnKernelArgumentKind_t kind)
{
    return kind == QDNN_KERNEL_ARGUMENT_READ || kind == QDNN_KERNEL_ARGUMENT_WRITE ||
           kind == QDNN_KERNEL_ARGUMENT_READ_WRITE;
}

static qdnnStatus_t check_number(const qdnnProgramArgument_t *argument, int number)
{
    const bool fits =
        argument->bytes == 4 || argument->bytes == 8 ||
        (argument->kind == QDNN_KERNEL_ARGUMENT_NUMBER && (argument->bytes == 1 || argument->bytes == 2));
    if (!fits)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "arguments[%d].bytes is %d; it must be 4 or 8, for a NUMBER also 1 or 2", number,
                          argument->bytes);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_part(const struct qdnnProgram *program, const qdnnProgramArgument_t *argument,
                               int number)
{
    char what[32];
    snprintf(what, sizeof what, "arguments[%d].tensor", number);
    CHECK_STATUS(program_check_tensor(program, what, argument->tensor));
    const program_tensor *t = &program->tensors[argument->tensor];
    if (argument->offset > t->bytes)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "arguments[%d].offset is %zu; '%s' has %llu bytes", number, argument->offset,
                          t->name, (unsigned long long)t->bytes);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_argument(const struct qdnnProgram *program, const qdnnProgramArgument_t *argument,
                                   int number)
{
    if (is_tensor(argument->kind))
        return check_part(program, argument, number);
    if (argument->kind == QDNN_KERNEL_ARGUMENT_ROWS || argument->kind == QDNN_KERNEL_ARGUMENT_NUMBER)
        return check_number(argument, number);
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "arguments[%d].kind is %d; it must be a QDNN_KERNEL_ARGUMENT_...", number,
                      (int)argument->kind);
}

static qdnnStatus_t check_arguments(const struct qdnnProgram *program, const qdnnProgramKernel_t *kernel)
{
    if (kernel->count < 0 || kernel->count > QDNN_KERNEL_ARGUMENTS_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "kernel->count is %d; it must be 0 to %d",
                          kernel->count, QDNN_KERNEL_ARGUMENTS_MAX);
    const qdnnProgramArgument_t *arguments = kernel->arguments;
    CHECK_BUFFER(arguments, kernel->count);
    for (int i = 0; i < kernel->count; i++)
        CHECK_STATUS(check_argument(program, &arguments[i], i));
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_kernel(const struct qdnnProgram *program, const qdnnProgramKernel_t *kernel)
{
    const bool is_text = kernel->source == QDNN_SOURCE_PTX || kernel->source == QDNN_SOURCE_CUDA;
    if (!is_text && kernel->source != QDNN_SOURCE_FUNCTION)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "kernel->source is %d; it must be QDNN_SOURCE_PTX, QDNN_SOURCE_CUDA or QDNN_SOURCE_FUNCTION",
            (int)kernel->source);
    if (is_text)
        CHECK_NOT_NULL_AS("kernel->text", kernel->text);
    if (is_text)
        CHECK_NOT_NULL_AS("kernel->entry", kernel->entry);
    if (!is_text)
        CHECK_NOT_NULL_AS("kernel->function", kernel->function);
    for (int i = 0; i < 3; i++)
        if (kernel->grid[i] == 0 || kernel->block[i] == 0)
            return qdnn_error(
                QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                "kernel->grid is %u, %u, %u and kernel->block %u, %u, %u; each must be at least 1",
                kernel->grid[0], kernel->grid[1], kernel->grid[2], kernel->block[0], kernel->block[1],
                kernel->block[2]);
    return check_arguments(program, kernel);
}

/* ---- Loading ---- */

/* A missing kernel is the caller's mistake, and does not end anything. */
static qdnnStatus_t load_text(qdnnHandle_t handle, const qdnnProgramKernel_t *asked, const char *ptx,
                              program_kernel *kernel)
{
    const module_image image = {ptx, asked->entry, asked->sharedBytes};
    bool pushed;
    CHECK_STATUS(handle_enter(handle, &pushed));
    const qdnnStatus_t status =
        module_load_image(handle, asked->entry, &image, &kernel->module, &kernel->function);
    handle_leave(handle, pushed);
    return status;
}

static qdnnStatus_t load_cuda(qdnnHandle_t handle, const qdnnProgramKernel_t *asked, program_kernel *kernel)
{
    char architecture[64];
    nvrtc_result result;
    snprintf(architecture, sizeof architecture, "--gpu-architecture=compute_%d",
             handle->context->target->number);
    const char *options[] = {architecture};
    qdnnStatus_t status = nvrtc_compile(asked->text, NULL, 0, options, 1, &result);
    if (status == QDNN_STATUS_SUCCESS)
        status = load_text(handle, asked, result.data, kernel);
    nvrtc_free(&result);
    return status;
}

static qdnnStatus_t load(qdnnHandle_t handle, const qdnnProgramKernel_t *asked, program_kernel *kernel)
{
    switch (asked->source) {
    case QDNN_SOURCE_PTX:
        return load_text(handle, asked, asked->text, kernel);
    case QDNN_SOURCE_CUDA:
        return load_cuda(handle, asked, kernel);
    case QDNN_SOURCE_FUNCTION:
        break;
    }
    kernel->function = (CUfunction)asked->function;
    return QDNN_STATUS_SUCCESS;
}

/* It may still be running. */
void program_kernel_free(qdnnHandle_t handle, program_kernel *kernel)
{
    bool pushed;
    if (kernel->module && kernel->was_launched && !context_enter(handle->context, &pushed)) {
        handle->context->device.api->cuCtxSynchronize();
        context_leave(handle->context, pushed);
    }
    module_unload_image(handle->context, kernel->module);
    alloc_free(kernel);
}

/* ---- The step ---- */

static void fill(const struct qdnnProgram *program, const qdnnProgramKernel_t *asked, program_kernel *kernel,
                 program_step *step)
{
    memcpy(kernel->grid, asked->grid, sizeof kernel->grid);
    memcpy(kernel->block, asked->block, sizeof kernel->block);
    kernel->shared = asked->sharedBytes;
    kernel->rows_per_block = asked->rowsPerBlock;
    kernel->n_arguments = asked->count;
    for (int i = 0; i < asked->count; i++) {
        const qdnnProgramArgument_t *a = &asked->arguments[i];
        kernel->arguments[i].is_rows = a->kind == QDNN_KERNEL_ARGUMENT_ROWS;
        kernel->arguments[i].value = a->value;
        if (is_tensor(a->kind))
            step->uses[step->n_uses++] = (program_use){.tensor = a->tensor,
                                                       .offset = a->offset,
                                                       .bytes = program->tensors[a->tensor].bytes - a->offset,
                                                       .place = (uint8_t)i,
                                                       .reads = a->kind != QDNN_KERNEL_ARGUMENT_WRITE,
                                                       .writes = a->kind != QDNN_KERNEL_ARGUMENT_READ};
    }
}

static qdnnStatus_t add(qdnnProgram_t program, const char *name, const qdnnProgramKernel_t *asked)
{
    program_use uses[QDNN_KERNEL_ARGUMENTS_MAX];
    CHECK_STATUS(check_kernel(program, asked));
    program_kernel *kernel = alloc_new(sizeof *kernel);
    if (!kernel)
        return OUT_OF_MEMORY();
    program_step step = {.kind = PROGRAM_KERNEL, .uses = uses, .kernel = kernel};
    fill(program, asked, kernel, &step);
    qdnnStatus_t status = load(program->handle, asked, kernel);
    if (status == QDNN_STATUS_SUCCESS)
        status = program_append(program, name, &step);
    if (status != QDNN_STATUS_SUCCESS)
        program_kernel_free(program->handle, kernel);
    return status;
}

qdnnStatus_t qdnnAddKernelToProgram(qdnnProgram_t program, const char *name,
                                    const qdnnProgramKernel_t *kernel)
{
    CALL_BEGIN_WITH(program, name, kernel);
    qdnnProgramKernel_t asked = {0};
    CHECK_NOT_NULL(program);
    CHECK_NOT_NULL(kernel);
    CHECK_STATUS(program_check_open(program));
    if (kernel->size <= sizeof(size_t) || kernel->size > 65536)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "kernel->size is %zu; set it to sizeof *kernel before the call", kernel->size);
    memcpy(&asked, kernel, kernel->size < sizeof asked ? kernel->size : sizeof asked);
    return plan_in_step(add(program, name, &asked), program->n_steps, name, "kernel");
}
