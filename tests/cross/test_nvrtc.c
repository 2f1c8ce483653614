/* CUDA C compiled by NVRTC for several SMs, run on ptxvm as that SM and as a later one, in two orders and on
 * one and two host threads: always what the host computes. */
#include "nvrtc.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const cuda_case *cases;
} programs[] = {
    {"warp", cuda_cases_warp},         {"block", cuda_cases_block},     {"grid", cuda_cases_grid},
    {"async", cuda_cases_async},       {"numeric", cuda_cases_numeric}, {"matrix", cuda_cases_matrix},
    {"language", cuda_cases_language},
};

static const struct {
    const char *name;
    int arch;
    const char *later, *extra;
} builds[] = {
    {"sm_75", 75, "sm_86", NULL},
    {"sm_80", 80, "sm_120a", "--fmad=false"},
    {"sm_90", 90, "sm_100", "-lineinfo"},
    {"sm_90_debug", 90, "sm_90a", "--device-debug"},
};
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static int case_count(void)
{
    return LENGTH(programs) * LENGTH(builds);
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", programs[index / LENGTH(builds)].name, builds[index % LENGTH(builds)].name);
}

static int by_value(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* Names the first word that differs. */
static void compare(const cuda_case *c, uint32_t *actual, uint32_t *expected)
{
    qsort(actual, c->sorted, sizeof *actual, by_value);
    qsort(expected, c->sorted, sizeof *expected, by_value);
    for (int i = 0; i < OUT_WORDS; i++)
        if (actual[i] != expected[i]) {
            FAIL("%s: word %d is %08x, should be %08x", c->kernel, i, actual[i], expected[i]);
            return;
        }
}

static void run_case(guest *g, const cuda_case *c)
{
    static uint32_t in[IN_WORDS], out[OUT_WORDS], expected[OUT_WORDS];
    for (uint32_t i = 0; i < IN_WORDS; i++)
        in[i] = in_at(i);
    for (int i = 0; i < OUT_WORDS; i++)
        out[i] = expected[i] = c->start;
    struct {
        ptxvm_address out, in;
        uint32_t n;
    } params = {guest_put(g, out, sizeof out), guest_put(g, in, sizeof in), IN_WORDS};
    if (guest_run(g, c->kernel, c->shape, &params, 20)) {
        guest_get(g, out, params.out, sizeof out);
        c->expect(expected);
        compare(c, out, expected);
    }
}

static void run_program(const cuda_case *cases, int arch, const guest_setting *setting, const char *ptx)
{
    guest *g = malloc(sizeof *g);
    test_push_note("as %s, seed %d, %d threads", setting->sm, (int)setting->seed, setting->threads);
    if (guest_open(g, setting, ptx, strlen(ptx)))
        for (const cuda_case *c = cases; c->kernel; c++)
            if (arch >= c->least_sm)
                run_case(g, c);
    guest_close(g);
    test_pop_note();
    free(g);
}

TEST_EACH(Nvrtc, SameAsHost, case_count, case_name)
{
    int build = index % LENGTH(builds), arch = builds[build].arch;
    char own[16];
    if (!cuda_available())
        SKIP("NVRTC or CUDA's headers were not found");
    char *ptx = cuda_compile(programs[index / LENGTH(builds)].name, arch, builds[build].extra);
    REQUIRE(ptx != NULL);
    snprintf(own, sizeof own, "sm_%d", arch);
    const guest_setting settings[] = {{.sm = own, .threads = 1},
                                      {.sm = own, .seed = 7, .threads = 2},
                                      {.sm = builds[build].later, .threads = 2},
                                      {.sm = builds[build].later, .seed = 9, .threads = 1},
                                      {.sm = own, .threads = 2, .checks = PTXVM_CHECK_ALL}};
    for (int i = 0; i < LENGTH(settings); i++)
        run_program(programs[index / LENGTH(builds)].cases, arch, &settings[i], ptx);
    free(ptx);
}
