/* CUDA C through NVRTC, where it is found, on ptxvm: test_ops_cuda.cu holds the kernels, this file what they
 * should leave. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda/nvrtc.h"
#include "tools/toolkit.h"
#include "ptxvm/ptxvm.h"

#define IN_WORDS  1024
#define OUT_WORDS 256

static uint32_t in_at(uint32_t i)
{
    return i * 2654435761u >> 7;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- what word i of the output should be ---- */

#define EXPECT(name) static uint32_t name(uint32_t i)

static uint32_t sum_of(uint32_t from, uint32_t to)
{
    uint32_t sum = 0;
    for (uint32_t k = from; k < to; k++)
        sum += in_at(k);
    return sum;
}

static uint32_t most_of(uint32_t from, uint32_t to)
{
    uint32_t most = 0;
    for (uint32_t k = from; k < to; k++)
        most = in_at(k) > most ? in_at(k) : most;
    return most;
}

EXPECT(shared_reduction)
{
    (void)i;
    return sum_of(0, 1000);
}

EXPECT(shuffles)
{
    uint32_t equal = 0;
    for (uint32_t k = 0; k < 32; k++)
        equal |= (uint32_t)(k % 3 == i % 3) << k;
    return sum_of(0, 32) + 16 + 31 + equal;
}

EXPECT(block_scan)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k <= i; k++)
        sum += in_at(k) & 255;
    return sum;
}

EXPECT(histogram)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < 1000; k++)
        count += (in_at(k) & 63) == i;
    return count;
}

EXPECT(transpose)
{
    return in_at(i % 16 * 16 + i / 16);
}

/* 64 threads: 64.0 in f16 at half 3, {64, 128} at word 4, 32.0f at 10, 16.0 at 20 and 21, ... */
EXPECT(atomics)
{
    static const uint32_t words[][2] = {{1, 0x54000000}, {4, 0x58005400}, {10, 0x42000000}, {21, 0x40300000},
                                        {25, 7},         {30, 58},        {31, 9},          {32, 64 % 6}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (words[k][0] == i)
            return words[k][1];
    return 0;
}

EXPECT(spin_lock) /* 4 blocks of 64 threads, twice */
{
    return i == 1 ? 2 * (4 * (63 * 64 / 2) + 64 * (0 + 1 + 2 + 3)) : 0;
}

EXPECT(groups)
{
    return sum_of(i / 32 * 32, i / 32 * 32 + 32) + most_of(i / 8 * 8, i / 8 * 8 + 8) + 32;
}

EXPECT(grid_sync)
{
    return (i + 37) % 256 + 256;
}

EXPECT(copy_async)
{
    return in_at(i * 7 % 512);
}

EXPECT(half_arithmetic) /* all exact in f16 for these threads */
{
    float a = (float)i * 0.5f, b = (float)i * 0.25f;
    return bits_of((a * a + 1) + (b * b + 1) + 2 * (float)i);
}

EXPECT(matrix_f16)
{
    float sum = 1;
    for (uint32_t k = 0; k < 16; k++)
        sum += (float)((i / 16 * 16 + k) % 7) * (float)((i % 16 * 16 + k) % 5);
    return bits_of(sum);
}

EXPECT(matrix_s8)
{
    int32_t sum = 0;
    for (uint32_t k = 0; k < 16; k++)
        sum += ((int32_t)((i / 16 * 16 + k) % 7) - 3) * ((int32_t)((i % 16 * 16 + k) % 5) - 2);
    return (uint32_t)sum;
}

EXPECT(heap)
{
    return 63 * 64 / 2 * i;
}

EXPECT(recursion)
{
    static const uint32_t fibonacci[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    return fibonacci[i % 12];
}

EXPECT(virtual_functions)
{
    return i % 3 == 0 ? i + 5 : i % 3 == 1 ? i * 6 : i ^ 7;
}

EXPECT(structs_by_value)
{
    uint32_t a[20], k = i % 5 + 1, sum = 0;
    for (uint32_t j = 0; j < 20; j++)
        a[j] = in_at((i + j) % 64);
    for (uint32_t j = 0; j < 20; j++)
        a[j] = a[j] * k + a[(j + k) % 20];
    for (uint32_t j = 0; j < 20; j++)
        sum = sum * 31 + a[j];
    return sum;
}

EXPECT(function_pointers)
{
    static const uint32_t constants[4] = {3, 5, 8, 13};
    return (i % 2 ? i * 3 : i + 1) + constants[i % 4];
}

EXPECT(dynamic_shared)
{
    return in_at(127 - i);
}

EXPECT(local_arrays)
{
    uint32_t a[32], j = i, sum = 0;
    for (uint32_t k = 0; k < 32; k++)
        a[k] = in_at(k) + i;
    for (uint32_t k = 0; k < 10; k++) {
        j = a[j % 32];
        a[(j >> 3) % 32] += k;
        sum ^= j;
    }
    return sum;
}

typedef struct cuda_case {
    const char *kernel;
    uint32_t blocks, threads, words; /* words of the output to compare */
    uint32_t (*expect)(uint32_t i);
    bool cooperative;
    ptxvm_status status;
    const char *said; /* printed, or part of the error */
} cuda_case;

/* clang-format off */
static const cuda_case cases[] = {
    {"shared_reduction", 1, 256, 256, shared_reduction, false, PTXVM_OK, NULL},
    {"shuffles", 1, 32, 32, shuffles, false, PTXVM_OK, NULL},
    {"block_scan", 1, 256, 256, block_scan, false, PTXVM_OK, NULL},
    {"histogram", 4, 128, 64, histogram, false, PTXVM_OK, NULL},
    {"transpose", 1, 256, 256, transpose, false, PTXVM_OK, NULL},
    {"atomics", 1, 64, 40, atomics, false, PTXVM_OK, NULL},
    {"spin_lock", 4, 64, 2, spin_lock, false, PTXVM_OK, NULL},
    {"groups", 1, 128, 128, groups, false, PTXVM_OK, NULL},
    {"grid_sync", 4, 64, 256, grid_sync, true, PTXVM_OK, NULL},
    {"copy_async", 1, 128, 128, copy_async, false, PTXVM_OK, NULL},
    {"half_arithmetic", 1, 32, 32, half_arithmetic, false, PTXVM_OK, NULL},
    {"matrix_f16", 1, 32, 256, matrix_f16, false, PTXVM_OK, NULL},
    {"matrix_s8", 1, 32, 256, matrix_s8, false, PTXVM_OK, NULL},
    {"prints", 2, 2, 0, NULL, false, PTXVM_OK, "0.0: even 0.0 0 a\n0.1: odd 0.5 1099511627776 b\n"
                                               "1.0: even 0.0 0 a\n1.1: odd 0.5 1099511627776 b\n"},
    {"asserts", 2, 32, 0, NULL, false, PTXVM_ERROR_ASSERT, "Assertion `threadIdx.x != 5` failed"},
    {"heap", 2, 32, 32, heap, false, PTXVM_OK, NULL},
    {"recursion", 2, 64, 64, recursion, false, PTXVM_OK, NULL},
    {"virtual_functions", 1, 64, 64, virtual_functions, false, PTXVM_OK, NULL},
    {"structs_by_value", 1, 64, 64, structs_by_value, false, PTXVM_OK, NULL},
    {"function_pointers", 1, 64, 64, function_pointers, false, PTXVM_OK, NULL},
    {"dynamic_shared", 1, 128, 128, dynamic_shared, false, PTXVM_OK, NULL},
    {"local_arrays", 1, 64, 64, local_arrays, false, PTXVM_OK, NULL},
};
/* clang-format on */

/* ---- running them ---- */

static char printed[4096];

static void keep(void *user, const char *text, size_t length)
{
    size_t at = strlen(printed);
    (void)user;
    if (at + length < sizeof printed)
        memcpy(printed + at, text, length), printed[at + length] = 0;
}

static void compare(ptxvm *vm, ptxvm_address address, const cuda_case *c)
{
    uint32_t out[OUT_WORDS];
    CHECK(ptxvm_read(vm, out, address, sizeof out) == PTXVM_OK);
    for (uint32_t i = 0; i < c->words; i++)
        if (out[i] != c->expect(i)) {
            test_push_note("word %u", i);
            CHECK_EQ_U32(out[i], c->expect(i));
            test_pop_note();
            return;
        }
}

static void run_case(ptxvm *vm, ptxvm_module *module, const cuda_case *c)
{
    ptxvm_kernel *kernel;
    uint32_t in[IN_WORDS];
    struct {
        ptxvm_address out, in;
        int n;
    } params = {.n = 1000};
    for (uint32_t i = 0; i < IN_WORDS; i++)
        in[i] = in_at(i);
    REQUIRE(ptxvm_alloc(vm, OUT_WORDS * 4, &params.out) == PTXVM_OK);
    REQUIRE(ptxvm_alloc(vm, sizeof in, &params.in) == PTXVM_OK);
    REQUIRE(ptxvm_write(vm, params.in, in, sizeof in) == PTXVM_OK);
    if (ptxvm_module_kernel(module, c->kernel, &kernel) != PTXVM_OK) {
        FAIL("%s", ptxvm_last_error(vm));
        return;
    }
    ptxvm_launch_config config = {.grid = {c->blocks, 1, 1},
                                  .block = {c->threads, 1, 1},
                                  .shared_bytes = 512,
                                  .cooperative = c->cooperative};
    printed[0] = 0;
    ptxvm_status status = ptxvm_launch(vm, kernel, &config, &params, 20);
    if (status != c->status)
        FAIL("%s: %s", ptxvm_status_name(status), ptxvm_last_error(vm));
    else if (status != PTXVM_OK)
        CHECK_HAS(ptxvm_last_error(vm), c->said);
    else if (c->said)
        CHECK_EQ_STR(printed, c->said);
    if (status == PTXVM_OK)
        compare(vm, params.out, c);
    ptxvm_free(vm, params.out);
    ptxvm_free(vm, params.in);
}

static void run_all(const char *ptx, size_t bytes, const char *sm)
{
    ptxvm_config config = {.sm = sm, .threads = 2, .step_limit = 10000000, .print = keep};
    ptxvm *vm;
    ptxvm_module *module;
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    if (ptxvm_module_load(vm, ptx, bytes, &module) != PTXVM_OK)
        FAIL("%s", ptxvm_last_error(vm));
    else
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            test_push_note("%s as %s", cases[i].kernel, sm);
            run_case(vm, module, &cases[i]);
            test_pop_note();
        }
    ptxvm_destroy(vm);
}

/* Compiled for one architecture, optimised or for the debugger; run as an SM that takes it. */
static const struct {
    const char *name, *arch, *sm, *extra;
} builds[] = {
    {"sm_90", "--gpu-architecture=compute_90", "sm_90", "--std=c++17"},
    {"sm_80_as_sm_120", "--gpu-architecture=compute_80", "sm_120a", "-lineinfo"},
    {"sm_100_debug", "--gpu-architecture=compute_100", "sm_100", "--device-debug"},
};

TEST_ROWS(OpsCuda, Programs, builds)
{
    if (!nvrtc_found() || !QDNN_CUDA_INCLUDE[0])
        SKIP("NVRTC and CUDA's headers were not found");
    char *source = toolkit_read_file(QDNN_SOURCE_DIR "/tests/ptxvm/test_ops_cuda.cu", NULL);
    REQUIRE(source != NULL);
    const char *options[] = {builds[index].arch, builds[index].extra, "--include-path=" QDNN_CUDA_INCLUDE,
                             "--include-path=" QDNN_CUDA_INCLUDE "/cccl"};
    nvrtc_result result;
    if (nvrtc_compile(source, NULL, 0, options, 4, &result) == QDNN_STATUS_SUCCESS)
        run_all(result.data, result.bytes, builds[index].sm);
    else
        FAIL("%s", result.log ? result.log : "NVRTC failed");
    nvrtc_free(&result);
    free(source);
}
