/* Kernels run through ptxvm.h: a device, one module, one buffer of u32 that the kernel gets as its only
 * pointer. */
#ifndef TEST_EXEC_H
#define TEST_EXEC_H

#include <stdlib.h>
#include <string.h>

#include "ptxvm/ptxvm.h"
#include "test.h"

typedef struct exec_run {
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    ptxvm_status status; /* of the last step */
} exec_run;

#define EXEC_HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"

/* The text of a kernel `k` with the parameter `out`, whose registers p<10>, r<40>, d<20> and f<20> are
 * declared and whose d0 is the buffer. */
#define EXEC_KERNEL(body)                                                                                    \
    EXEC_HEADER ".visible .entry k(.param .u64 out)\n{\n"                                                    \
                ".reg .pred p<10>; .reg .b32 r<40>; .reg .b64 d<20>; .reg .f32 f<20>;\n"                     \
                "ld.param.u64 d0, [out];\n" body "\nret;\n}\n"

/* r0 = tid.x, r1 = ctaid.x, r2 = index in the grid, d1 = address of out[r2]. */
#define EXEC_INDEX                                                                                           \
    "mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x; mov.u32 r3, %ntid.x;\n"                                       \
    "mad.lo.u32 r2, r1, r3, r0; mul.wide.u32 d2, r2, 4; add.u64 d1, d0, d2;\n"

static inline exec_run exec_open(const ptxvm_config *config, const char *text)
{
    exec_run run = {.status = PTXVM_OK};
    run.status = ptxvm_create(config, &run.vm);
    if (!run.status)
        run.status = ptxvm_module_load(run.vm, text, strlen(text), &run.module);
    if (!run.status)
        run.status = ptxvm_module_kernel(run.module, "k", &run.kernel);
    if (run.status)
        FAIL("%s: %s", ptxvm_status_name(run.status), ptxvm_last_error(run.vm));
    return run;
}

static inline void exec_close(exec_run *run)
{
    ptxvm_destroy(run->vm);
    run->vm = NULL;
}

/* Runs k over a copy of `data` (n words) and copies the words back. */
static inline ptxvm_status exec_launch(exec_run *run, ptxvm_launch_config config, uint32_t *data, size_t n)
{
    ptxvm_address address = 0;
    if (run->status)
        return run->status;
    run->status = ptxvm_alloc(run->vm, n * 4, &address);
    if (!run->status)
        run->status = ptxvm_write(run->vm, address, data, n * 4);
    if (!run->status)
        run->status = ptxvm_launch(run->vm, run->kernel, &config, &address, sizeof address);
    ptxvm_status status = run->status;
    if (!status)
        run->status = ptxvm_read(run->vm, data, address, n * 4);
    ptxvm_free(run->vm, address);
    return status;
}

static inline ptxvm_launch_config exec_grid(uint32_t blocks, uint32_t threads)
{
    return (ptxvm_launch_config){.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
}

/* The whole of it: zeroed words in, words out. Reports anything that goes wrong. */
static inline void exec_simple(const char *text, uint32_t blocks, uint32_t threads, uint32_t *data, size_t n)
{
    exec_run run = exec_open(NULL, text);
    if (!run.status && exec_launch(&run, exec_grid(blocks, threads), data, n))
        FAIL("%s: %s", ptxvm_status_name(run.status), ptxvm_last_error(run.vm));
    exec_close(&run);
}

/* Runs and expects the launch to fail; the error's text is copied out. */
static inline ptxvm_status exec_failing(const ptxvm_config *config, const char *text, uint32_t blocks,
                                        uint32_t threads, char *error, size_t size)
{
    uint32_t data[64] = {0};
    exec_run run = exec_open(config, text);
    ptxvm_status status = exec_launch(&run, exec_grid(blocks, threads), data, 64);
    const char *message = ptxvm_last_error(run.vm);
    size_t length = strlen(message) < size - 1 ? strlen(message) : size - 1;
    memcpy(error, message, length);
    error[length] = 0;
    exec_close(&run);
    return status;
}

#endif
