/* Kernels of this backend's own: each is a program of one step, kept by its text and its numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "keep.h"

uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static char *write_text(qdnnHandle_t handle, const kernel_request *request, char *why, size_t size)
{
    qdnnDeviceInfo_t info = {.size = sizeof info};
    ptx_error error = {0};
    char *text = NULL;
    if (qdnnGetDeviceInfo(handle, &info) != QDNN_STATUS_SUCCESS)
        return NULL;
    ptx_builder *b = ptx_open(ptx_sm_find(info.target), NULL);
    ptx_kernel(b, "ggml_kernel");
    ptx_reqntid(b, KERNEL_BLOCK, 1, 1);
    request->write(b, request->spec);
    if (!ptx_close(b, &text, &error))
        snprintf(why, size, "a kernel could not be written: %.200s", error.text);
    return text;
}

static qdnnStatus_t add_pointers(qdnnProgram_t program, const kernel_request *request,
                                 qdnnProgramArgument_t *arguments)
{
    static const char *const names[KERNEL_POINTERS] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    shapes s = {0};
    qdnnTensorDescriptor_t byte = shapes_add(&s, QDNN_DATA_U8, 1, (int64_t[]){1}, NULL);
    qdnnStatus_t status = s.status;
    for (int i = 0; i < request->pointers && status == QDNN_STATUS_SUCCESS; i++) {
        arguments[i] = (qdnnProgramArgument_t){.kind = QDNN_KERNEL_ARGUMENT_READ_WRITE};
        status =
            qdnnAddTensorToProgram(program, names[i], QDNN_PROGRAM_EXTERNAL, byte, 0, &arguments[i].tensor);
    }
    return shapes_free(&s, status);
}

static qdnnStatus_t add_kernel(qdnnProgram_t program, const kernel_request *request, const char *text)
{
    qdnnProgramArgument_t arguments[KERNEL_POINTERS + KERNEL_NUMBERS];
    qdnnStatus_t status = add_pointers(program, request, arguments);
    for (int i = 0; i < request->numbers; i++)
        arguments[request->pointers + i] = (qdnnProgramArgument_t){
            .kind = QDNN_KERNEL_ARGUMENT_NUMBER, .bytes = 4, .value = request->number[i]};
    const qdnnProgramKernel_t kernel = {.size = sizeof kernel,
                                        .source = QDNN_SOURCE_PTX,
                                        .text = text,
                                        .entry = "ggml_kernel",
                                        .grid = {(uint32_t)request->blocks, 1, 1},
                                        .block = {KERNEL_BLOCK, 1, 1},
                                        .arguments = arguments,
                                        .count = request->pointers + request->numbers};
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnAddKernelToProgram(program, "ggml", &kernel);
    return status == QDNN_STATUS_SUCCESS ? qdnnCompileProgram(program) : status;
}

static void *make_kernel(qdnnHandle_t handle, const void *key, char why[WHY_BYTES])
{
    const kernel_request *request = key;
    qdnnProgram_t program = NULL;
    char *text = write_text(handle, request, why, WHY_BYTES);
    if (!text)
        return NULL;
    qdnnStatus_t status = qdnnCreateProgram(handle, 1, &program);
    if (status == QDNN_STATUS_SUCCESS)
        status = add_kernel(program, request, text);
    free(text);
    if (status == QDNN_STATUS_SUCCESS)
        return program;
    qdnn_reason(why, WHY_BYTES, status);
    qdnnDestroyProgram(program);
    return NULL;
}

static void destroy_kernel(void *program)
{
    qdnnDestroyProgram(program);
}

static keeper kernels = {.key_bytes = sizeof(kernel_request), .make = make_kernel, .destroy = destroy_kernel};

bool run_kernel(run *r, const kernel_request *request, const void *const *pointers)
{
    if (request->blocks > INT32_MAX)
        return run_declines(r, "more elements than a launch has");
    qdnnHandle_t handle = engine_handle(r->engine);
    const kept *k = keep(&kernels, handle, request);
    if (!k)
        return run_declines(r, "no host memory for a kernel");
    if (!k->object)
        return run_declines(r, "%s", k->why);
    if (r->dry || request->blocks == 0)
        return true;
    qdnnStatus_t status = qdnnRunProgram(handle, k->object, pointers, request->pointers, 1, NULL, 0);
    if (status != QDNN_STATUS_SUCCESS)
        qdnn_reason(r->why, sizeof r->why, status);
    return status == QDNN_STATUS_SUCCESS;
}
