/* The device under test without the library. */
#include "device/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda/open.h"

/* A module has one kernel that tests ask for. */
struct machine_kernel {
    ptxvm_kernel *vm;
    CUfunction gpu;
};

struct machine_module {
    machine *of;
    ptxvm_module *vm;
    CUmodule gpu;
    machine_kernel kernel;
    machine_module *next;
};

typedef struct allocation {
    CUdeviceptr at;
    struct allocation *next;
} allocation;

struct machine {
    ptxvm *vm; /* null: a GPU */
    char sm[16];
    cuda_device gpu;
    CUcontext context;
    allocation *memory; /* of the GPU */
    machine_module *modules;
    char error[2048];
};

/* ---- Opening ---- */

/* A GPU's call: its failure is described in the machine. */
static ptxvm_status called(machine *m, CUresult code, const char *call)
{
    const char *name = "an unknown code";
    if (code == 0)
        return PTXVM_OK;
    m->gpu.api->cuGetErrorName(code, &name);
    const size_t length = strlen(m->error);
    snprintf(m->error + length, sizeof m->error - length, "%s%s: %s", length ? "; " : "", call, name);
    return PTXVM_ERROR_EXECUTION;
}
#define CALL(m, function, ...) called((m), (m)->gpu.api->function(__VA_ARGS__), #function)

static ptxvm_status open_gpu(machine *m)
{
    const char *device = getenv("QDNN_DEVICE");
    const bool named = device && strncmp(device, "cuda", 4) == 0;
    if (cuda_device_choose(named ? device : "cuda", &m->gpu) != QDNN_STATUS_SUCCESS)
        return PTXVM_ERROR_EXECUTION;
    if (CALL(m, cuDevicePrimaryCtxRetain, &m->context, m->gpu.device) != PTXVM_OK)
        return PTXVM_ERROR_EXECUTION;
    return CALL(m, cuCtxPushCurrent, m->context);
}

ptxvm_status machine_create(const ptxvm_config *config, machine **out)
{
    machine *m = calloc(1, sizeof *m);
    ptxvm_config as = *config;
    *out = m;
    if (!m)
        return PTXVM_ERROR_MEMORY;
    snprintf(m->sm, sizeof m->sm, "%s", device_sm(config->sm));
    as.sm = m->sm;
    ptxvm_status status = device_is_gpu() ? open_gpu(m) : ptxvm_create(&as, &m->vm);
    if (status != PTXVM_OK) {
        machine_destroy(m);
        *out = NULL;
    }
    return status;
}

void machine_destroy(machine *m)
{
    CUcontext popped;
    while (m && m->modules)
        machine_module_unload(m->modules);
    while (m && m->memory)
        machine_free(m, m->memory->at);
    if (m && m->context) {
        CALL(m, cuCtxPopCurrent, &popped);
        CALL(m, cuDevicePrimaryCtxRelease, m->gpu.device);
    }
    if (m && m->vm)
        ptxvm_destroy(m->vm);
    free(m);
}

const char *machine_last_error(const machine *m)
{
    return m->vm ? ptxvm_last_error(m->vm) : m->error;
}

const char *machine_sm(const machine *m)
{
    return m->sm;
}

ptxvm *machine_ptxvm(const machine *m)
{
    return m->vm;
}

/* ---- Memory ---- */

ptxvm_status machine_alloc(machine *m, uint64_t bytes, ptxvm_address *address)
{
    if (m->vm)
        return ptxvm_alloc(m->vm, bytes, address);
    allocation *a = calloc(1, sizeof *a);
    if (!a || CALL(m, cuMemAlloc, &a->at, bytes ? bytes : 1) != PTXVM_OK) {
        free(a);
        return PTXVM_ERROR_MEMORY;
    }
    a->next = m->memory;
    m->memory = a;
    *address = a->at;
    return PTXVM_OK;
}

ptxvm_status machine_free(machine *m, ptxvm_address address)
{
    if (m->vm)
        return ptxvm_free(m->vm, address);
    for (allocation **at = &m->memory; *at; at = &(*at)->next)
        if ((*at)->at == address) {
            allocation *a = *at;
            *at = a->next;
            free(a);
            return CALL(m, cuMemFree, address);
        }
    return PTXVM_ERROR_MEMORY;
}

static ptxvm_status wait(machine *m, ptxvm_status status)
{
    return status != PTXVM_OK ? status : CALL(m, cuStreamSynchronize, NULL);
}

ptxvm_status machine_write(machine *m, ptxvm_address to, const void *from, uint64_t bytes)
{
    if (m->vm)
        return ptxvm_write(m->vm, to, from, bytes);
    return bytes ? wait(m, CALL(m, cuMemcpyHtoDAsync, to, from, bytes, NULL)) : PTXVM_OK;
}

ptxvm_status machine_read(machine *m, void *to, ptxvm_address from, uint64_t bytes)
{
    if (m->vm)
        return ptxvm_read(m->vm, to, from, bytes);
    return bytes ? wait(m, CALL(m, cuMemcpyDtoHAsync, to, from, bytes, NULL)) : PTXVM_OK;
}

ptxvm_status machine_fill(machine *m, ptxvm_address to, uint8_t value, uint64_t bytes)
{
    if (m->vm)
        return ptxvm_fill(m->vm, to, value, bytes);
    return bytes ? wait(m, CALL(m, cuMemsetD8Async, to, value, bytes, NULL)) : PTXVM_OK;
}

/* ---- Modules ---- */

static ptxvm_status load_on_gpu(machine *m, const char *text, size_t length, CUmodule *out)
{
    char log[1024] = "", *ended = calloc(length + 1, 1);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    if (!ended)
        return PTXVM_ERROR_MEMORY;
    memcpy(ended, text, length);
    ptxvm_status status = CALL(m, cuModuleLoadDataEx, out, ended, 2, options, values);
    if (status != PTXVM_OK)
        snprintf(m->error, sizeof m->error, "%s", log);
    free(ended);
    return status;
}

ptxvm_status machine_module_load(machine *m, const char *text, size_t length, machine_module **out)
{
    machine_module *made = calloc(1, sizeof *made);
    if (!made)
        return PTXVM_ERROR_MEMORY;
    made->of = m;
    ptxvm_status status =
        m->vm ? ptxvm_module_load(m->vm, text, length, &made->vm) : load_on_gpu(m, text, length, &made->gpu);
    if (status != PTXVM_OK) {
        free(made);
        return status;
    }
    made->next = m->modules;
    *out = m->modules = made;
    return PTXVM_OK;
}

void machine_module_unload(machine_module *module)
{
    machine *m = module->of;
    for (machine_module **at = &m->modules; *at; at = &(*at)->next)
        if (*at == module) {
            *at = module->next;
            break;
        }
    if (m->vm)
        ptxvm_module_unload(module->vm);
    else
        CALL(m, cuModuleUnload, module->gpu);
    free(module);
}

ptxvm_status machine_module_kernel(machine_module *module, const char *name, machine_kernel **out)
{
    *out = &module->kernel;
    return module->of->vm ? ptxvm_module_kernel(module->vm, name, &module->kernel.vm)
                          : CALL(module->of, cuModuleGetFunction, &module->kernel.gpu, module->gpu, name);
}

/* Parameters go as one block of memory, as ptxvm takes them. */
ptxvm_status machine_launch(machine *m, machine_kernel *kernel, const ptxvm_launch_config *config,
                            const void *params, uint64_t param_bytes)
{
    enum { BUFFER = 1, SIZE = 2, LARGE_SHARED = 32 << 10 }; /* static memory counts as well */
    if (m->vm)
        return ptxvm_launch(m->vm, kernel->vm, config, params, param_bytes);
    size_t bytes = param_bytes;
    void *extra[] = {(void *)(uintptr_t)BUFFER, (void *)(uintptr_t)params, (void *)(uintptr_t)SIZE, &bytes,
                     NULL};
    const uint32_t *grid = config->grid, *block = config->block;
    if (config->shared_bytes > LARGE_SHARED &&
        CALL(m, cuFuncSetAttribute, kernel->gpu, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             (int)config->shared_bytes) != PTXVM_OK)
        return PTXVM_ERROR_EXECUTION;
    return wait(m, CALL(m, cuLaunchKernel, kernel->gpu, grid[0], grid[1], grid[2], block[0], block[1],
                        block[2], (unsigned)config->shared_bytes, NULL, NULL, extra));
}
