/* C functions compiled for the host and, by clang's nvptx target, to PTX that ptxvm runs: the same numbers
 * for the same inputs, with and without optimisation and debug sections. */
#include "functions/functions.h"
#include "guest.h"
#include "support/process.h"
#include "test.h"

#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *file, *name;
    u64 (*host)(u64, u64);
} functions[] = {
#define FUNCTION(file, name) {#file, #name, name},
#include "functions/functions.def"
#undef FUNCTION
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0], INPUTS = 1000, THREADS = 96 };

/* clang 14 crashes on newer DWARF for this target. */
static const struct {
    const char *name, *options;
} levels[] = {
    {"O0", "-O0"},
    {"O1", "-O1"},
    {"O2", "-O2"},
    {"O0_debug", "-O0 -g -gdwarf-2"},
    {"O2_debug", "-O2 -g -gdwarf-2 -gstrict-dwarf"},
};
static const char *const files[] = {"integer", "real", "memory", "control"};
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static int case_count(void)
{
    return LENGTH(levels) * LENGTH(files);
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", files[index / LENGTH(levels)], levels[index % LENGTH(levels)].name);
}

/* ---- inputs ---- */

static const u64 corners[] = {0,
                              1,
                              2,
                              7,
                              10,
                              0x7F,
                              0x80,
                              0xFF,
                              0x7FFF,
                              0x8000,
                              0xFFFF,
                              0x7FFFFFFF,
                              0x80000000,
                              0xFFFFFFFF,
                              0x100000000,
                              0x7FFFFFFFFFFFFFFF,
                              0x8000000000000000,
                              0xFFFFFFFFFFFFFFFF,
                              0x3FF000003F800000, /* 1.0f in the low half, near 1.0 as a whole */
                              0xC00800003F000000,
                              0x7FF000007F800000,  /* infinity */
                              0x7FF80000FFC00000,  /* NaN */
                              0x000FFFFF00400000,  /* subnormal */
                              0x43E0000045000001}; /* large, and a small number with a fraction */

/* Two of the corners, or random numbers of every magnitude. */
static void make_input(int i, u64 *random, u64 in[2])
{
    for (int k = 0; k < 2; k++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        u64 x = *random ^ *random >> 31;
        in[k] = i < LENGTH(corners) * LENGTH(corners) ? corners[k ? i % LENGTH(corners) : i / LENGTH(corners)]
                                                      : x * 0x9E3779B97F4A7C15u >> (x >> 58);
    }
}

/* ---- the guest ---- */

/* What clang's target does not write from plain C: kernels. Each calls its function once per thread. */
static const char wrapper[] =
    "\n.visible .entry run_%s(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
    ".reg .pred %%p;\n.reg .b32 %%r<5>;\n.reg .b64 %%d<8>;\n.param .b64 a;\n.param .b64 b;\n"
    ".param .b64 result;\n"
    "mov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, %%ctaid.x;\nmov.u32 %%r2, %%ntid.x;\n"
    "mad.lo.u32 %%r0, %%r1, %%r2, %%r0;\nld.param.u32 %%r3, [n];\n"
    "setp.ge.u32 %%p, %%r0, %%r3;\n@%%p ret;\n"
    "ld.param.u64 %%d0, [in];\nld.param.u64 %%d1, [out];\n"
    "mul.wide.u32 %%d2, %%r0, 8;\nadd.u64 %%d1, %%d1, %%d2;\nmul.wide.u32 %%d2, %%r0, 16;\n"
    "add.u64 %%d0, %%d0, %%d2;\nld.global.v2.u64 {%%d3, %%d4}, [%%d0];\n"
    "st.param.b64 [a], %%d3;\nst.param.b64 [b], %%d4;\n"
    "call.uni (result), %s, (a, b);\nld.param.b64 %%d5, [result];\n"
    "st.global.u64 [%%d1], %%d5;\nret;\n}\n";

/* A file's PTX with a kernel for each of its functions; null, with a failure, when clang cannot. */
static char *compile(const char *file, const char *options)
{
    char folder[1024], path[1100];
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/out.ptx", folder);
    process_result clang =
        process_run("'%s' --target=nvptx64-nvidia-cuda -march=sm_75 -std=c17 -ffreestanding "
                    "-fno-math-errno -ffp-contract=off %s -S '%s/tests/cross/functions/%s.c' -o '%s'",
                    QDNN_CLANG, options, QDNN_SOURCE_DIR, file, path);
    size_t bytes = 0;
    char *ptx = clang.status == 0 ? toolkit_read_file(path, &bytes) : NULL;
    if (!ptx)
        FAIL("clang: %s", clang.output);
    process_free(&clang);
    temp_dir_remove(folder);
    size_t size = bytes + N_FUNCTIONS * sizeof wrapper * 2, length = bytes;
    char *whole = ptx ? realloc(ptx, size) : NULL;
    /* ptxas requires the debug sections to come last; ptxvm does not. */
    for (int i = 0; whole && i < N_FUNCTIONS; i++)
        if (strcmp(functions[i].file, file) == 0)
            length += (size_t)snprintf(whole + length, size - length, wrapper, functions[i].name,
                                       functions[i].name);
    return whole;
}

typedef struct inputs {
    u64 in[INPUTS][2];
} inputs;

static void check_function(guest *g, int f, const inputs *given, ptxvm_address in, ptxvm_address out)
{
    u64 actual[INPUTS];
    char kernel[80];
    struct {
        ptxvm_address in, out;
        u32 n;
    } params = {in, out, INPUTS};
    snprintf(kernel, sizeof kernel, "run_%s", functions[f].name);
    if (!guest_run(g, kernel, (guest_shape){(INPUTS + THREADS - 1) / THREADS, THREADS, 0, false}, &params,
                   20))
        return;
    guest_get(g, actual, out, sizeof actual);
    for (int i = 0; i < INPUTS; i++) {
        u64 expected = functions[f].host(given->in[i][0], given->in[i][1]);
        if (actual[i] != expected) {
            FAIL("%s(0x%llx, 0x%llx) = 0x%llx, on the host 0x%llx", functions[f].name, given->in[i][0],
                 given->in[i][1], actual[i], expected);
            return;
        }
    }
}

TEST_EACH(Clang, SameAsHost, case_count, case_name)
{
    const char *file = files[index / LENGTH(levels)];
    if (!QDNN_CLANG[0])
        SKIP("there is no clang");
    char *ptx = compile(file, levels[index % LENGTH(levels)].options);
    REQUIRE(ptx != NULL);
    inputs *given = malloc(sizeof *given);
    u64 random = 20240917;
    for (int i = 0; i < INPUTS; i++)
        make_input(i, &random, given->in[i]);
    guest *g = malloc(sizeof *g);
    guest_setting setting = {.sm = index % 2 ? "sm_75" : "sm_90",
                             .seed = (u64)(index % 3),
                             .threads = 1 + index % 2,
                             .checks = index % 2 ? 0 : PTXVM_CHECK_ALL};
    if (guest_open(g, &setting, ptx, strlen(ptx))) {
        ptxvm_address in = guest_put(g, given->in, sizeof given->in),
                      out = guest_put(g, NULL, INPUTS * sizeof(u64));
        for (int f = 0; f < N_FUNCTIONS; f++)
            if (strcmp(functions[f].file, file) == 0)
                check_function(g, f, given, in, out);
    }
    guest_close(g);
    free(g);
    free(given);
    free(ptx);
}
