/* Kernels of this backend's own: each is a program of one step, kept by its text and its numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

enum { BUCKETS = 256 };

typedef struct kept_kernel {
    kernel_request request;
    qdnnProgram_t program; /* null: it could not be made */
    char why[256];
    struct kept_kernel *next;
} kept_kernel;

static kept_kernel *kept[BUCKETS]; /* behind the engine's lock */

uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool same(const kernel_request *a, const kernel_request *b)
{
    return a->write == b->write && a->numbers == b->numbers && a->pointers == b->pointers &&
           a->blocks == b->blocks && memcmp(a->spec, b->spec, sizeof a->spec) == 0 &&
           memcmp(a->number, b->number, sizeof a->number) == 0;
}

static size_t bucket_of(const kernel_request *request)
{
    uint64_t hash = (uint64_t)(uintptr_t)request->write ^ (uint64_t)request->blocks << 32;
    for (int i = 0; i < KERNEL_SPEC; i++)
        hash = (hash ^ (uint64_t)request->spec[i]) * UINT64_C(0x9E3779B97F4A7C15) ^ hash >> 29;
    for (int i = 0; i < request->numbers; i++)
        hash = (hash ^ request->number[i]) * UINT64_C(0x9E3779B97F4A7C15) ^ hash >> 29;
    return hash % BUCKETS;
}

/* ---- Making ---- */

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
    static const char *const names[KERNEL_POINTERS] = {"0", "1", "2", "3", "4", "5"};
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

static kept_kernel *make_kernel(qdnnHandle_t handle, const kernel_request *request)
{
    kept_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->request = *request;
    char *text = write_text(handle, request, k->why, sizeof k->why);
    if (!text)
        return k;
    qdnnStatus_t status = qdnnCreateProgram(handle, 1, &k->program);
    if (status == QDNN_STATUS_SUCCESS)
        status = add_kernel(k->program, request, text);
    if (status != QDNN_STATUS_SUCCESS) {
        qdnn_reason(k->why, sizeof k->why, status);
        qdnnDestroyProgram(k->program);
        k->program = NULL;
    }
    free(text);
    return k;
}

static kept_kernel *find_kernel(qdnnHandle_t handle, const kernel_request *request)
{
    kept_kernel **bucket = &kept[bucket_of(request)];
    for (kept_kernel *k = *bucket; k; k = k->next)
        if (same(&k->request, request))
            return k;
    kept_kernel *k = make_kernel(handle, request);
    if (k) {
        k->next = *bucket;
        *bucket = k;
    }
    return k;
}

bool run_kernel(run *r, const kernel_request *request, const void *const *pointers)
{
    if (request->blocks > INT32_MAX)
        return run_declines(r, "more elements than a launch has");
    qdnnHandle_t handle = engine_handle(r->engine);
    kept_kernel *k = find_kernel(handle, request);
    if (!k)
        return run_declines(r, "no host memory for a kernel");
    if (!k->program)
        return run_declines(r, "%s", k->why);
    if (r->dry || request->blocks == 0)
        return true;
    qdnnStatus_t status = qdnnRunProgram(handle, k->program, pointers, request->pointers, 1, NULL, 0);
    if (status != QDNN_STATUS_SUCCESS)
        qdnn_reason(r->why, sizeof r->why, status);
    return status == QDNN_STATUS_SUCCESS;
}
