/* ptxvm-ptxas, run as Triton, nvcc and pycuda run ptxas, and its "cubins" loaded by the driver. */
#include "driver.h"
#include "support/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/toolkit.h"

#define STAND_IN QDNN_BINARY_DIR "/ptxvm/ptxvm-ptxas"
#define GOOD                                                                                                 \
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out) { .reg .b64 d; "      \
    ".shared .b32 s[4]; ld.param.u64 d, [out]; st.global.u32 [d], 42; ret; }\n"

typedef struct ptxas_case {
    const char *name, *arguments; /* in the folder of good.ptx and bad.ptx */
    int status;
    const char *output; /* all that is printed */
    bool writes;        /* out.cubin is there afterwards */
} ptxas_case;

#define INFO                                                                                                 \
    "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"                                             \
    "ptxas info    : Function properties for k\n"                                                            \
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"                                   \
    "ptxas info    : Used 32 registers, 16 bytes smem, 8 bytes cmem[0]\n"
#define ABORTED "ptxas fatal   : Ptx assembly aborted due to errors\n"

static const ptxas_case cases[] = {
    {"nvcc", "-arch=sm_80 -m64 good.ptx -o out.cubin", 0, "", true},
    {"nvcc_debug",
     "-arch=sm_80 -m64 -v -g --dont-merge-basicblocks --return-at-end --generate-line-info good.ptx -o "
     "out.cubin",
     0, INFO, true},
    {"triton", "-lineinfo --fmad=false -v --regAllocOptLevel=2 --gpu-name=sm_80 good.ptx -o out.cubin", 0,
     INFO, true},
    {"triton_without_optimisation", "-g -v --opt-level 0 --gpu-name=sm_80 good.ptx -o out.cubin", 0, INFO,
     true},
    {"separate_values", "-arch sm_90 -O3 --fmad false --maxrregcount 32 --output-file out.cubin good.ptx", 0,
     "", true},
    {"unknown_option", "-arch=sm_80 --someLevel=2 good.ptx -o out.cubin", 0,
     "ptxas warning : ptxvm-ptxas ignores the option '--someLevel=2', which it does not know\n", true},
    {"check_only", "-arch=compute_80 good.ptx -o out.cubin", 0, "", false},
    {"relocatable", "-arch=sm_80 -c extern.ptx -o out.cubin", 0, "", true},
    {"unresolved", "-arch=sm_80 extern.ptx -o out.cubin", 255,
     "ptxas error   : line 5: other is called but not defined\n" ABORTED, false},
    {"syntax", "-arch=sm_80 bad.ptx -o out.cubin", 255,
     "ptxas bad.ptx, line 4; error   : unknown instruction 'stt': did you mean 'set'?\n  .visible .entry k() "
     "{ stt; }\n"
     "                        ^\n" ABORTED,
     false},
    {"too_small_a_gpu", "-arch=sm_75 good.ptx -o out.cubin", 255,
     "ptxas error   : PTX for sm_80 does not run on sm_75\n" ABORTED, false},
    {"no_such_gpu", "-arch=sm_77 good.ptx -o out.cubin", 255,
     "ptxas fatal   : Value 'sm_77' is not defined for option 'gpu-name'\n", false},
    {"no_input", "-arch=sm_80 -o out.cubin", 255, "ptxas fatal   : No input file was specified\n", false},
    {"two_inputs", "-arch=sm_80 good.ptx bad.ptx -o out.cubin", 255,
     "ptxas fatal   : ptxvm-ptxas takes one PTX file at a time: 'good.ptx' and 'bad.ptx'\n", false},
    {"no_value", "good.ptx -arch", 255, "ptxas fatal   : '--gpu-name' expects a value\n", false},
    {"options_file", "-optf more good.ptx", 255,
     "ptxas fatal   : ptxvm-ptxas does not read options from a file (--options-file)\n", false},
};

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    if (CHECK(file != NULL)) {
        fputs(text, file);
        fclose(file);
    }
}

static void make_folder(char *dir, size_t size)
{
    static const char header[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
    char text[512];
    temp_dir_make(dir, size);
    put_file(dir, "good.ptx", GOOD);
    snprintf(text, sizeof text, "%s.visible .entry k() { stt; }\n", header);
    put_file(dir, "bad.ptx", text);
    snprintf(text, sizeof text, "%s.extern .func other();\n.visible .entry k() { call other; ret; }\n",
             header);
    put_file(dir, "extern.ptx", text);
}

TEST_ROWS(CudaPtxas, CommandLine, cases)
{
    const ptxas_case *c = &cases[index];
    char dir[256], path[300];
    make_folder(dir, sizeof dir);
    process_result r = process_run("cd '%s' && '%s' %s", dir, STAND_IN, c->arguments);
    CHECK_EQ_I64(r.status, c->status);
    CHECK_EQ_STR(r.output, c->output);
    snprintf(path, sizeof path, "%s/out.cubin", dir);
    CHECK_EQ_I64(access(path, R_OK) == 0, c->writes);
    process_free(&r);
    temp_dir_remove(dir);
}

/* Triton looks for "release 13.4" and writes the .version that came with it. */
TEST_CASE(CudaPtxas, Version)
{
    process_result r = process_run("'%s' --version", STAND_IN);
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, "\nCuda compilation tools, release 13.4, V13.4.0\n");
    process_free(&r);
    r = process_run("'%s' --list-version | tail -1", STAND_IN);
    CHECK_EQ_STR(r.output, "9.4\n");
    process_free(&r);
}

static void run_kernel(CUmodule module)
{
    CUfunction f;
    CUdeviceptr out = new_u32(1, 0);
    void *params[] = {&out};
    CU(cu.cuModuleGetFunction(&f, module, "k"));
    CU(launch_one(f, NULL, params));
    CHECK_EQ_U32(read_u32(out), 42);
    CU(cu.cuMemFree_v2(out));
    CU(cu.cuModuleUnload(module));
}

/* As a file, and as its bytes with nothing behind them. */
static void load_cubin(const char *path)
{
    CUmodule module;
    size_t bytes;
    char *text = toolkit_read_file(path, &bytes);
    REQUIRE(text != NULL);
    char *exact = malloc(bytes);
    if (exact)
        memcpy(exact, text, bytes);
    if (exact && driver_open_context("PTXVM_SM=sm_90")) {
        CU(cu.cuModuleLoad(&module, path));
        run_kernel(module);
        CU(cu.cuModuleLoadData(&module, exact));
        run_kernel(module);
    }
    driver_close();
    free(exact);
    free(text);
}

TEST_CASE(CudaPtxas, CubinsAreLoaded)
{
    char dir[256], path[300];
    make_folder(dir, sizeof dir);
    process_result r = process_run("'%s' -arch=sm_90 '%s/good.ptx' -o '%s/out.cubin'", STAND_IN, dir, dir);
    CHECK_EQ_I64(r.status, 0);
    process_free(&r);
    snprintf(path, sizeof path, "%s/out.cubin", dir);
    load_cubin(path);
    temp_dir_remove(dir);
}

/* nvcc looks for ptxas in its own folder first: a folder of links to the toolkit in which ptxas is ours. */
TEST_CASE(CudaPtxas, NvccWritesCubins)
{
    char dir[256], path[300];
    if (!*QDNN_PTXAS)
        SKIP("the CUDA toolkit is not here");
    process_result there = process_run("test -x \"$(dirname '%s')/nvcc\"", QDNN_PTXAS);
    bool has_nvcc = there.status == 0;
    process_free(&there);
    if (!has_nvcc)
        SKIP("nvcc is not here");
    temp_dir_make(dir, sizeof dir);
    put_file(dir, "k.cu", "extern \"C\" __global__ void k(unsigned *out) { *out = 42; }\n");
    process_result r =
        process_run("cd '%s' && bin=$(dirname '%s') && mkdir bin && ln -s $bin/* bin/ && ln -sf '%s' "
                    "bin/ptxas && for f in $bin/../*; do test -e \"$(basename $f)\" || ln -s $f .; done && "
                    "bin/nvcc -cubin -arch=sm_80 -Xptxas -v k.cu -o out.cubin",
                    dir, QDNN_PTXAS, STAND_IN);
    test_push_note("%s", r.output);
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, "Compiling entry function 'k' for 'sm_80'");
    snprintf(path, sizeof path, "%s/out.cubin", dir);
    load_cubin(path);
    test_pop_note();
    process_free(&r);
    temp_dir_remove(dir);
}
