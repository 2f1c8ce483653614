/* CUDA C that a table of inputs and outputs cannot describe: parameters of every size, printf, assert, trap,
 * the heap, variables that the host sets, contraction, the mathematical library. */
#include "nvrtc.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *extra;
    guest_setting setting;
    int arch;
} builds[] = {
    {"sm_75", NULL, {.sm = "sm_75", .threads = 1, .checks = PTXVM_CHECK_ALL}, 75},
    {"sm_80_as_sm_103", "-lineinfo", {.sm = "sm_103", .seed = 3, .threads = 2}, 80},
    {"sm_90_debug", "--device-debug", {.sm = "sm_90", .seed = 11, .threads = 1}, 90},
};
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static int build_count(void)
{
    return LENGTH(builds);
}

static void build_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", builds[index].name);
}

/* The device with a program on it; null, after a skip or a failure, where there is none. */
static guest *open_program(const char *file, int build, const char *extra)
{
    if (!cuda_available()) {
        test_skip("NVRTC or CUDA's headers were not found");
        return NULL;
    }
    char *ptx = cuda_compile(file, builds[build].arch, extra ? extra : builds[build].extra);
    guest *g = ptx ? malloc(sizeof *g) : NULL;
    if (g && !guest_open(g, &builds[build].setting, ptx, strlen(ptx))) {
        guest_close(g);
        free(g);
        g = NULL;
    }
    free(ptx);
    return g;
}

static void close_program(guest *g)
{
    guest_close(g);
    free(g);
}

static guest_shape shape(uint32_t blocks, uint32_t threads)
{
    return (guest_shape){blocks, threads, 0, false};
}

TEST_EACH(NvrtcLanguage, BigParameter, build_count, build_name)
{
    guest *g = open_program("language", index, NULL);
    if (!g)
        return;
    struct {
        struct {
            uint32_t words[500];
            uint8_t byte;
            double real;
        } big;
        ptxvm_address out;
        uint16_t step;
    } params = {.big.byte = 77, .big.real = -3.5, .step = 123};
    static uint32_t out[512];
    for (uint32_t i = 0; i < 500; i++)
        params.big.words[i] = in_at(i);
    params.out = guest_put(g, NULL, sizeof out);
    guest_run(g, "big_parameter", shape(4, 128), &params, offsetof(__typeof__(params), step) + 2);
    guest_get(g, out, params.out, sizeof out);
    for (uint32_t i = 0; i < 512; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 10; k++)
            sum = sum * 3 + in_at((i % 500 + 123 * k) % 500);
        if (!CHECK_EQ_U32(out[i], sum + 77 - 3))
            break;
    }
    close_program(g);
}

TEST_EACH(NvrtcLanguage, Prints, build_count, build_name)
{
    guest *g = open_program("language", index, NULL);
    if (!g)
        return;
    char expected[1024];
    struct {
        ptxvm_address text;
        int64_t large;
    } params = {guest_put(g, "from the host", 14), -9000000000};
    snprintf(expected, sizeof expected,
             "-7|7|   42|42   |00042|+42|ff|FF|0xff|10|q|%%\n"
             "-9000000000|18446744064709551616|-3|200|word|     right|left      |cut\n"
             "%f|%.2f|%10.3f|%-10.1f|%e|%.3E|%g|%G|%g\n"
             "from the host and first\nno arguments\n",
             1.5, 2.345, -3.0, 4.25, 12345.678, 0.00012, 0.0001, 1e20, 100000.0);
    guest_run(g, "prints", shape(1, 1), &params, sizeof params);
    CHECK_EQ_STR(g->printed, expected);
    close_program(g);
}

/* Each line once; the order depends on the seed. */
TEST_EACH(NvrtcLanguage, PrintsOfManyThreads, build_count, build_name)
{
    guest *g = open_program("language", index, NULL);
    if (!g)
        return;
    guest_run(g, "prints_many", shape(4, 64), &(uint32_t){1}, 4);
    size_t length = 0;
    for (int block = 0; block < 4; block++)
        for (int thread = 0; thread < 64; thread += 3) {
            char line[64];
            length += (size_t)snprintf(line, sizeof line, "block %d thread %d\n", block, thread);
            CHECK_HAS(g->printed, line);
        }
    CHECK_EQ_I64((int64_t)g->n_printed, (int64_t)length);
    close_program(g);
}

TEST_EACH(NvrtcLanguage, Asserts, build_count, build_name)
{
    guest *g = open_program("language", index, NULL);
    if (!g)
        return;
    uint32_t numbers[64] = {[37] = 100};
    struct {
        ptxvm_address in;
        uint32_t limit;
    } params = {guest_put(g, numbers, sizeof numbers), 101};
    CHECK(guest_run(g, "asserts", shape(2, 32), &params, 12));
    params.limit = 100;
    guest_try(g, "asserts", shape(2, 32), &params, 12);
    CHECK_EQ_I64(g->status, PTXVM_ERROR_ASSERT);
    CHECK_HAS(ptxvm_last_error(g->vm), "the number is too large");
    CHECK_HAS(ptxvm_last_error(g->vm), "asserts(");
    CHECK_HAS(ptxvm_last_error(g->vm), ".cu");
    params.limit = 101; /* the device keeps working */
    CHECK(guest_run(g, "asserts", shape(2, 32), &params, 12));
    close_program(g);
}

TEST_EACH(NvrtcLanguage, Traps, build_count, build_name)
{
    guest *g = open_program("language", index, NULL);
    if (!g)
        return;
    CHECK(guest_run(g, "traps", shape(2, 32), &(uint32_t){64}, 4));
    guest_try(g, "traps", shape(2, 32), &(uint32_t){33}, 4);
    CHECK_EQ_I64(g->status, PTXVM_ERROR_TRAP);
    close_program(g);
}

TEST_EACH(NvrtcLanguage, HeapLivesOnBetweenLaunches, build_count, build_name)
{
    guest *g = open_program("language", index, NULL);
    if (!g)
        return;
    static uint32_t counts[512];
    ptxvm_address out = guest_put(g, NULL, sizeof counts);
    for (uint32_t round = 1; round <= 3; round++) {
        guest_run(g, "heap_push", shape(4, 128), &out, 8);
        guest_run(g, "heap_pop", shape(1, 1), &out, 8);
        guest_get(g, counts, out, sizeof counts);
        for (uint32_t i = 0; i < 512; i++)
            if (!CHECK_EQ_U32(counts[i], round))
                break;
    }
    close_program(g);
}

/* The host writes variables of the module by name, through pointers too. */
TEST_EACH(NvrtcLanguage, VariablesSetByHost, build_count, build_name)
{
    guest *g = open_program("language", index, NULL);
    if (!g)
        return;
    const uint32_t numbers[6] = {1, 2, 3, 4, 5, 6}, constants[8] = {0};
    static uint32_t in[IN_WORDS], out[IN_WORDS];
    CHECK_EQ_I64(ptxvm_write(g->vm, guest_global(g, "numbers", 24), numbers, 24), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_write(g->vm, guest_global(g, "constants", 32), constants, 32), PTXVM_OK);
    for (uint32_t i = 0; i < IN_WORDS; i++)
        in[i] = in_at(i);
    struct {
        ptxvm_address out, in;
        uint32_t n;
    } params = {guest_put(g, NULL, sizeof out), guest_put(g, in, sizeof in), IN_WORDS};
    guest_run(g, "globals", shape(IN_WORDS / 64, 64), &params, 20);
    guest_get(g, out, params.out, sizeof out);
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        static const uint32_t lists[2][3] = {{1, 2, 3}, {4, 5, 0}};
        static const char *const names[3] = {"alpha", "beta", "gamma"};
        uint32_t x = in[i],
                 sum = numbers[x % 6] + 4 + (x % 2 ? 7 : 27) + lists[x % 2][x / 2 % 3] + (x % 2 ? 1000 : 2);
        for (const char *s = names[x % 3]; *s; s++)
            sum = sum * 7 + (uint32_t)*s;
        if (!CHECK_EQ_U32(out[i], sum))
            break;
    }
    close_program(g);
}

/* With fmad the compiler writes fma itself; without, two instructions with their rounding; only what is left
 * to the assembler is in the report. */
TEST_EACH(NvrtcLanguage, Contraction, build_count, build_name)
{
    for (int fused = 0; fused < 2; fused++) {
        guest *g = open_program("language", index, fused ? "--fmad=true" : "--fmad=false");
        if (!g)
            return;
        float in[96], out[32];
        for (uint32_t i = 0; i < 96; i++)
            in[i] = (float)in_at(i) / 65536.0f - 30000.0f;
        struct {
            ptxvm_address out, in;
        } params = {guest_put(g, NULL, sizeof out), guest_put(g, in, sizeof in)};
        guest_run(g, "multiply_add", shape(1, 32), &params, sizeof params);
        guest_get(g, out, params.out, sizeof out);
        for (int i = 0; i < 32; i++) {
            float product = in[3 * i] * in[3 * i + 1];
            CHECK_EQ_F32(out[i],
                         fused ? fmaf(in[3 * i], in[3 * i + 1], in[3 * i + 2]) : product + in[3 * i + 2]);
        }
        CHECK_EQ_I64(ptxvm_last_report(g->vm)->n_contractable, 0);
        struct {
            ptxvm_address out;
            float a, b, c;
        } bare = {params.out, 1.5f, 2.5f, 3.5f};
        guest_run(g, "contractable", shape(1, 1), &bare, 20);
        CHECK(ptxvm_last_report(g->vm)->n_contractable > 0);
        guest_get(g, out, params.out, 4);
        CHECK_EQ_F32(out[0], 7.25f);
        close_program(g);
    }
}

/* ---- the mathematical library ---- */

static double library(uint32_t which, double x, bool single)
{
    switch (which) {
    case 0:
        return sin(x);
    case 1:
        return cos(x);
    case 2:
        return exp(x);
    case 3:
        return log(fabs(x) + (single ? (double)1e-3f : 1e-3));
    case 4:
        return atan(x);
    case 5:
        return cbrt(x);
    case 6:
        return pow(fabs(x) + 0.5, single ? (double)1.7f : 1.7);
    default:
        return single ? tanh(x) : erf(x);
    }
}

/* CUDA promises a few units in the last place; so does the host. */
TEST_EACH(NvrtcLanguage, MathematicalLibrary, build_count, build_name)
{
    guest *g = open_program("numeric", index, "--fmad=true");
    if (!g)
        return;
    static uint32_t in[IN_WORDS], out[IN_WORDS];
    for (uint32_t i = 0; i < IN_WORDS; i++)
        in[i] = in_at(i);
    struct {
        ptxvm_address out, in;
        uint32_t n;
    } params = {guest_put(g, NULL, sizeof out), guest_put(g, in, sizeof in), IN_WORDS};
    guest_run(g, "library", shape(8, 128), &params, 20);
    guest_get(g, out, params.out, sizeof out);
    for (uint32_t i = 0; i < 1024; i++) {
        float x = (float)((int)(in[i] >> 20) - 2048) / 256.0f, y;
        double d = (double)x + (double)in[i] * 1e-12, e;
        memcpy(&y, &out[i], 4);
        memcpy(&e, &out[1024 + 2 * i], 8);
        double wanted = library(i % 8, x, true), exact = library(i % 8, d, false);
        /* log near 1: the argument is rounded first */
        bool ok = fabs(y - wanted) <= fabs(wanted) * 0x1p-20 + 0x1p-22 &&
                  fabs(e - exact) <= fabs(exact) * 0x1p-49 + 0x1p-51;
        if (!ok) {
            FAIL("function %u of %.17g: %.9g and %.17g, should be %.9g and %.17g", i % 8, d, y, e, wanted,
                 exact);
            break;
        }
    }
    close_program(g);
}
