/* Building and calling launchers. For each there is a function with one array of u64 for all arguments, since the
 * launchers themselves all have different parameters; it is written here, and the compiler checks it against the
 * launcher's header. */
#include "launchers.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/operations.h"
#include "support/environment.h"
#include "support/process.h"
#include "test.h"

#define PTXGEN QDNN_BINARY_DIR "/ptxgen/ptxgen"
static const char sm[] = "sm_80";

/* What launchers use of CUDA's header, so that they are tested where there is none; test_tool.c has the real one. */
static const char cuda_h[] =
    "#pragma once\n#include <stddef.h>\n"
    "typedef enum { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NO_BINARY_FOR_GPU = 209 } CUresult;\n"
    "enum { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR "
    "= 76,\n"
    "       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };\n"
    "typedef int CUdevice;\ntypedef unsigned long long CUdeviceptr;\n"
    "typedef struct CUctx_st *CUcontext;\ntypedef struct CUmod_st *CUmodule;\ntypedef struct CUfunc_st "
    "*CUfunction;\n"
    "typedef struct CUstream_st *CUstream;\n"
    "CUresult cuModuleLoadData(CUmodule *, const void *);\nCUresult cuModuleUnload(CUmodule);\n"
    "CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);\n"
    "CUresult cuFuncSetAttribute(CUfunction, int, int);\nCUresult cuCtxGetDevice(CUdevice *);\n"
    "CUresult cuDeviceGetAttribute(int *, int, CUdevice);\nCUresult cuCtxSynchronize(void);\n"
    "CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, "
    "unsigned,\n"
    "                        CUstream, void **, void **);\n"
    "CUresult cuInit(unsigned);\nCUresult cuDeviceGet(CUdevice *, int);\n"
    "CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);\nCUresult cuCtxSetCurrent(CUcontext);\n"
    "CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);\n"
    "CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);\nCUresult cuMemFree_v2(CUdeviceptr);\n"
    "CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);\n"
    "CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);\n";

static const char helpers[] =
    "#include <stdint.h>\n#include <string.h>\n"
    "static float f32(uint64_t bits)\n{\n    float x;\n    uint32_t low = (uint32_t)bits;\n"
    "    memcpy(&x, &low, 4);\n    return x;\n}\n"
    "int begin(void);\nint begin(void)\n{\n    CUcontext context;\n"
    "    return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);\n}\n"
    "int end(void);\nint end(void)\n{\n    return cuDevicePrimaryCtxRelease_v2(0);\n}\n"
    "int make(uint64_t *at, const void *host, size_t bytes);\n"
    "int make(uint64_t *at, const void *host, size_t bytes)\n{\n    CUdeviceptr p = 0;\n"
    "    if (cuMemAlloc_v2(&p, bytes ? bytes : 1))\n        return 1;\n    *at = p;\n"
    "    return host && bytes ? cuMemcpyHtoD_v2(p, host, bytes) : 0;\n}\n"
    "int take(uint64_t at, void *host, size_t bytes);\n"
    "int take(uint64_t at, void *host, size_t bytes)\n{\n"
    "    return (bytes && cuMemcpyDtoH_v2(host, at, bytes)) || cuMemFree_v2(at);\n}\n";

static char folder[256];
static void *library;

/* The prefix of a launcher's functions: its file name without the SM. */
static void prefix_of(const launcher_case *c, char *text, size_t size)
{
    char stem[KERNEL_FILE_NAME];
    kernel_file_name(c->row, KERNEL_NORMAL(c->row, &c->spec), ptx_sm_find(sm), stem, sizeof stem);
    *strstr(stem, "_sm_80") = 0;
    int used = snprintf(text, size, *c->sizes ? "qdnn_%s_" : "qdnn_%s", stem);
    for (const char *at = c->sizes; *at && used + 1 < (int)size; at++)
        if (*at != '=') {
            text[used++] = *at == ',' || *at == '.' ? '_' : *at;
            text[used] = 0;
        }
}

static kernel_step step_of(const launcher_case *c)
{
    kernel_steps steps = {0};
    return *steps_add(&steps, c->row, &c->spec, &c->problem);
}

static int operands_of(const launcher_case *c, kernel_operand operands[QDNN_OPERAND_COUNT])
{
    int n = 0;
    kernel_operands_of(c->row, KERNEL_NORMAL(c->row, &c->spec), &c->problem, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        n += operands[i].align > 0;
    return n;
}

static uint64_t workspace_of(const launcher_case *c)
{
    kernel_steps steps;
    kernel_steps_of(c->row, KERNEL_NORMAL(c->row, &c->spec), &c->problem, &steps);
    return steps.workspace;
}

/* One argument of a launch function, from the array. */
static void put_argument(FILE *out, const kernel_param *p, int i)
{
    fprintf(out, p && p->kind == KERNEL_NUMBER && p->bytes == 4 ? ", f32(a[%d])" : ", a[%d]", i);
}

static void put_call(FILE *out, const launcher_case *c, int number)
{
    char prefix[300];
    kernel_operand operands[QDNN_OPERAND_COUNT];
    prefix_of(c, prefix, sizeof prefix);
    fprintf(out, "#include \"l%d.h\"\nint call_%d(const uint64_t *a);\nint call_%d(const uint64_t *a)\n{\n",
            number, number, number);
    fprintf(out, "    %s_kernel k;\n    CUresult r = %s_load(&k);\n    if (r)\n        return (int)r;\n",
            prefix, prefix);
    fprintf(out, "    r = %s_launch(&k, NULL", prefix);
    if (*c->sizes) {
        const int n = operands_of(c, operands) + (workspace_of(c) > 0);
        for (int i = 0; i < n; i++)
            put_argument(out, NULL, i);
    } else {
        const kernel_step step = step_of(c);
        for (int i = 0; i < step.n_params; i++)
            put_argument(out, &step.params[i], i);
    }
    fprintf(out,
            ");\n    if (!r)\n        r = cuCtxSynchronize();\n    return (int)(r ? r : %s_unload(&k));\n}\n",
            prefix);
}

static bool write_text(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL))
        return false;
    fputs(text, file);
    return CHECK(fclose(file) == 0);
}

static bool write_sources(const launcher_case *cases, int count)
{
    char path[300];
    snprintf(path, sizeof path, "%s/write.sh", folder);
    FILE *script = fopen(path, "w");
    snprintf(path, sizeof path, "%s/calls.c", folder);
    FILE *calls = fopen(path, "w");
    if (!CHECK(script && calls) || !write_text("cuda.h", cuda_h))
        return false;
    fprintf(calls, "#include <cuda.h>\n%s", helpers);
    fprintf(script, "set -e\n");
    for (int i = 0; i < count; i++) {
        fprintf(script, "%s --kernel %s --sm %s --emit launcher -o %s/l%d%s%s%s%s\n", PTXGEN, cases[i].name,
                sm, folder, i, *cases[i].settings ? " --set " : "", cases[i].settings,
                *cases[i].sizes ? " --size " : "", cases[i].sizes);
        put_call(calls, &cases[i], i);
    }
    return CHECK(fclose(script) == 0) & CHECK(fclose(calls) == 0);
}

bool launchers_build(launcher_case *cases, int count)
{
    temp_dir_make(folder, sizeof folder);
    if (!write_sources(cases, count))
        return false;
    process_result r = process_run(
        "cd %s && sh write.sh && ls *.c | xargs -P 2 -n 40 %s -std=c17 -O0 -fPIC -Wall -Wextra -pedantic "
        "-Werror "
        "-isystem . -c && %s -shared -o launchers.so *.o -L%s/ptxvm -l:libcuda.so.1 -Wl,-rpath,%s/ptxvm",
        folder, QDNN_C_COMPILER, QDNN_C_COMPILER, QDNN_BINARY_DIR, QDNN_BINARY_DIR);
    CHECK_EQ_STR(r.output, "");
    bool ok = CHECK_EQ_I64(r.status, 0);
    process_free(&r);
    char path[300];
    snprintf(path, sizeof path, "%s/launchers.so", folder);
    environment_set("PTXVM_SM=sm_80 PTXVM_CHECK=all");
    library = ok ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (ok && !library)
        FAIL("%s", dlerror());
    int (*begin)(void) = library ? (int (*)(void))dlsym(library, "begin") : NULL;
    return begin && CHECK_EQ_I64(begin(), 0);
}

void launchers_end(void)
{
    int (*end)(void) = library ? (int (*)(void))dlsym(library, "end") : NULL;
    if (end)
        CHECK_EQ_I64(end(), 0);
    if (library)
        dlclose(library);
    library = NULL;
    environment_restore();
    temp_dir_remove(folder);
}

/* The arguments in order: device addresses, and numbers. */
static int arguments_of(const launcher_case *c, const uint64_t at[QDNN_OPERAND_COUNT], uint64_t workspace,
                        uint64_t arguments[64])
{
    int n = 0;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    if (*c->sizes) {
        operands_of(c, operands);
        for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
            if (operands[i].align)
                arguments[n++] = at[i];
        arguments[n++] = workspace;
        return n;
    }
    const kernel_step step = step_of(c);
    for (int i = 0; i < step.n_params; i++)
        arguments[n++] =
            step.params[i].kind == KERNEL_OPERAND ? at[step.params[i].operand] : step.params[i].value;
    return n;
}

typedef int (*make_function)(uint64_t *at, const void *host, size_t bytes);
typedef int (*take_function)(uint64_t at, void *host, size_t bytes);
typedef int (*call_function)(const uint64_t *arguments);

static void compare(const launcher_case *c, int operand, const uint64_t *at, take_function take)
{
    const size_t bytes = c->buffers.bytes[operand];
    uint8_t *got = calloc(bytes + 1, 1);
    test_push_note("%s", kernel_operand_name((qdnnOperand_t)operand));
    if (CHECK(got && take(*at, got, bytes) == 0))
        CHECK_EQ_MEM(got, c->buffers.host[operand], bytes);
    test_pop_note();
    free(got);
}

void launchers_run(launcher_case *c, int number)
{
    char name[32];
    snprintf(name, sizeof name, "call_%d", number);
    make_function make = (make_function)dlsym(library, "make");
    take_function take = (take_function)dlsym(library, "take");
    call_function call = (call_function)dlsym(library, name);
    uint64_t at[QDNN_OPERAND_COUNT] = {0}, workspace = 0, arguments[64] = {0};
    if (!CHECK(make && take && call) || !CHECK_EQ_I64(make(&workspace, NULL, workspace_of(c)), 0))
        return;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (c->buffers.host[i])
            CHECK_EQ_I64(
                make(&at[i], c->buffers.is_output[i] ? NULL : c->buffers.host[i], c->buffers.bytes[i]), 0);
    arguments_of(c, at, workspace, arguments);
    CHECK_EQ_I64(call(arguments), 0);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (c->buffers.host[i])
            compare(c, i, &at[i], take); /* inputs too, which stay as they are */
    take(workspace, NULL, 0);
}
