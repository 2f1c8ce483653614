/* The kernels' text, their run on ptxvm, and their time. */
#include "bench/clock/stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every kernel takes arrays a, b, c, d, their length and a flag that is 0, which keeps loads that are not used. */
#define HEAD                                                                                                 \
    ".version 7.0\n.target sm_75\n.address_size 64\n"                                                        \
    ".visible .entry stream(\n.param .u64 a,\n.param .u64 b,\n.param .u64 c,\n.param .u64 d,\n"              \
    ".param .u64 n,\n.param .u32 never)\n{\n"                                                                \
    ".reg .pred p<3>;\n.reg .u32 r<5>;\n.reg .u64 l<10>;\n.reg .f64 f<12>;\n"                                \
    "mov.u32 r0, %tid.x;\nmov.u32 r1, %ctaid.x;\nmov.u32 r2, %ntid.x;\nmad.lo.u32 r3, r1, r2, r0;\n"         \
    "cvt.u64.u32 l0, r3;\nld.param.u64 l1, [n];\nsetp.ge.u64 p0, l0, l1;\n@p0 bra END;\nshl.b64 l0, l0, "    \
    "3;\n"                                                                                                   \
    "ld.param.u32 r4, [never];\nld.param.u64 l2, [a];\ncvta.to.global.u64 l2, l2;\nadd.u64 l2, l2, l0;\n"
#define ARRAY(l, name)                                                                                       \
    "ld.param.u64 " l ", [" name "];\ncvta.to.global.u64 " l ", " l ";\nadd.u64 " l ", " l ", l0;\n"
#define LOAD(f, l) "ld.global.nc.f64 " f ", [" l "];\n"
#define TAIL       "END:\nret;\n}\n"
#define PI         "0d400921FB54442D18"

static const struct {
    const char *name;
    int arrays;
    const char *body;
} kernels[STREAM_KINDS] = {
    [STREAM_INIT] = {"init", 1, "mov.f64 f0, " PI ";\nst.global.f64 [l2], f0;\n"},
    [STREAM_READ] = {"read", 1,
                     ARRAY("l3", "b") LOAD("f0", "l3") "setp.eq.f64 p1, f0, " PI
                                                       ";\nsetp.ne.or.u32 p2, r4, 0, p1;\n"
                                                       "@p2 st.global.f64 [l2], f0;\n"},
    [STREAM_SCALE] = {"scale", 2,
                      ARRAY("l3", "b") LOAD("f0", "l3") "mul.rn.f64 f1, f0, " PI
                                                        ";\nst.global.f64 [l2], f1;\n"},
    [STREAM_TRIAD3] = {"triad", 3,
                       ARRAY("l3", "b") ARRAY("l4", "c") LOAD("f0", "l3")
                           LOAD("f1", "l4") "fma.rn.f64 f2, f0, " PI ", f1;\nst.global.f64 [l2], f2;\n"},
    [STREAM_TRIAD4] = {"triad", 4,
                       ARRAY("l3", "b") ARRAY("l4", "c") ARRAY("l5", "d") LOAD("f0", "l3") LOAD("f1", "l4")
                           LOAD("f2", "l5") "fma.rn.f64 f3, f0, f2, f1;\nst.global.f64 [l2], f3;\n"},
    [STREAM_3POINT] = {"3pt", 2,
                       ARRAY("l3", "b") LOAD("f0", "l3") LOAD("f1", "l3+8")
                           LOAD("f2", "l3+16") "mul.rn.f64 f3, f0, " PI ";\nsub.rn.f64 f4, f3, f1;\n"
                                               "fma.rn.f64 f5, f2, " PI ", f4;\nst.global.f64 [l2], f5;\n"},
    [STREAM_5POINT] = {"5pt", 2,
                       ARRAY("l3", "b") LOAD("f0", "l3") LOAD("f1", "l3+8") LOAD("f2", "l3+16") LOAD("f3",
                                                                                                     "l3+24")
                           LOAD("f4", "l3+32") "mul.rn.f64 f5, f1, " PI ";\nfma.rn.f64 f6, f0, " PI ", f5;\n"
                                               "sub.rn.f64 f7, f6, f2;\nfma.rn.f64 f8, f3, " PI ", f7;\n"
                                               "fma.rn.f64 f9, f4, " PI ", f8;\nst.global.f64 [l2], f9;\n"},
};

const char *stream_name(stream_kind kind)
{
    return kernels[kind].name;
}

int stream_arrays(stream_kind kind)
{
    return kernels[kind].arrays;
}

/* ---- Assembled once for each SM ---- */

enum { KEPT = 64 };

static struct {
    stream_kind kind;
    int sm;
    sass_code code;
} kept[KEPT];
static int n_kept;

static void text_of(stream_kind kind, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", HEAD, kernels[kind].body, TAIL);
}

static const sass_code *code_of(stream_kind kind, const board *on, char *error, size_t size)
{
    char sm[16], text[4096];
    for (int i = 0; i < n_kept; i++)
        if (kept[i].kind == kind && kept[i].sm == on->sm)
            return &kept[i].code;
    board_sm_name(on, sm, sizeof sm);
    text_of(kind, text, sizeof text);
    if (n_kept == KEPT || !sass_assemble(text, sm, NULL, &kept[n_kept].code, error, size))
        return NULL;
    kept[n_kept].kind = kind;
    kept[n_kept].sm = on->sm;
    return &kept[n_kept++].code;
}

void stream_forget(void)
{
    while (n_kept)
        sass_code_free(&kept[--n_kept].code);
}

/* ---- A launch ---- */

enum { SAMPLE = 8, PADDING = 64 }; /* blocks that ptxvm runs; elements behind them that stencils read */

static bool launch(ptxvm *vm, stream_kind kind, int threads)
{
    char text[4096];
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    const uint64_t elements = (uint64_t)threads * SAMPLE;
    uint64_t params[6] = {0, 0, 0, 0, elements, 0};
    text_of(kind, text, sizeof text);
    for (int i = 0; i < 4; i++) {
        void *host;
        if (ptxvm_alloc(vm, (elements + PADDING) * 8, &params[i]) != PTXVM_OK ||
            !(host = ptxvm_host(vm, params[i], (elements + PADDING) * 8)))
            return false;
        memset(host, 0, (elements + PADDING) * 8);
    }
    ptxvm_launch_config config = {.grid = {SAMPLE, 1, 1}, .block = {(uint32_t)threads, 1, 1}};
    return ptxvm_module_load(vm, text, strlen(text), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, "stream", &kernel) == PTXVM_OK &&
           ptxvm_launch(vm, kernel, &config, params, sizeof params - 4) == PTXVM_OK;
}

/* Microseconds of `blocks` blocks at both corners. */
typedef struct question {
    const board *on;
    int threads, blocks_per_sm;
    uint64_t blocks, budget;
    bool warm;
    uint64_t l2_bytes;
} question;

static bool ask(stream_kind kind, const question *q, const ptxvm_counters *counters, double us[CLOCK_CORNERS],
                char *error, size_t size)
{
    const sass_code *code = code_of(kind, q->on, error, size);
    const clock_case what = {.on = q->on,
                             .counters = counters,
                             .blocks = q->blocks,
                             .counted_blocks = SAMPLE,
                             .threads = q->threads,
                             .warm = q->warm};
    sass_path *paths = NULL;
    clock_kernel kernel;
    int n = code ? sass_paths(code, counters, SAMPLE * (uint64_t)((q->threads + 31) / 32), &paths) : 0;
    bool ok = n > 0 && clock_lower(code, paths, n, &what, &kernel, error, size);
    for (int corner = 0; ok && corner < CLOCK_CORNERS; corner++) {
        clock_parameters p;
        clock_result r;
        const char *why = "";
        clock_launch l = {.runs = kernel.runs,
                          .n_runs = kernel.n_runs,
                          .blocks_per_sm = q->blocks_per_sm,
                          .budget = q->budget,
                          .l2_bytes = q->l2_bytes};
        ok = clock_parameters_of(q->on, (clock_corner)corner, &p) &&
             clock_run(&kernel.program, &l, &p, &r, &why);
        us[corner] = ok ? clock_widened(r.us, (clock_corner)corner) : 0;
        if (ok)
            clock_result_free(&r);
        else
            snprintf(error, size, "%s", why);
    }
    if (n > 0)
        clock_kernel_free(&kernel);
    sass_paths_free(paths, n);
    return ok;
}

static ptxvm *run_sample(stream_kind kind, const board *on, int threads, char *error, size_t size)
{
    ptxvm_config config = {.board = on->name, .counters = PTXVM_COUNTERS_PATHS, .threads = 1};
    ptxvm *vm = NULL;
    if (ptxvm_create(&config, &vm) == PTXVM_OK && launch(vm, kind, threads))
        return vm;
    snprintf(error, size, "%s", vm ? ptxvm_last_error(vm) : "no device");
    ptxvm_destroy(vm);
    return NULL;
}

bool stream_gbs(stream_kind kind, const board *on, int threads, int blocks_per_sm, double gbs[CLOCK_CORNERS],
                char *error, size_t size)
{
    enum { SHORT = 8, LONG = 24, SMS = 12 }; /* rounds of blocks on every SM; SMs to simulate */
    ptxvm *vm = run_sample(kind, on, threads, error, size);
    if (!vm)
        return false;
    const uint64_t places = (uint64_t)on->multiprocessors * (uint64_t)blocks_per_sm;
    double shorter[CLOCK_CORNERS], longer[CLOCK_CORNERS];
    question q = {.on = on, .threads = threads, .blocks_per_sm = blocks_per_sm, .blocks = places * SHORT};
    const double per_block = (double)ptxvm_last_counters(vm)->total.instructions / SAMPLE;
    q.budget = (uint64_t)(per_block * SMS * blocks_per_sm * SHORT);
    bool ok = ask(kind, &q, ptxvm_last_counters(vm), shorter, error, size);
    q.blocks = places * LONG;
    q.budget = q.budget * LONG / SHORT;
    ok = ok && ask(kind, &q, ptxvm_last_counters(vm), longer, error, size);
    ptxvm_destroy(vm);
    for (int corner = 0; ok && corner < CLOCK_CORNERS; corner++)
        gbs[corner] = 8e-3 * stream_arrays(kind) * threads * (double)(places * (LONG - SHORT)) /
                      (longer[corner] - shorter[corner]);
    return ok;
}

bool stream_us(stream_kind kind, const board *on, uint64_t elements, int threads, bool warm,
               double us[CLOCK_CORNERS], char *error, size_t size)
{
    ptxvm *vm = run_sample(kind, on, threads, error, size);
    if (!vm)
        return false;
    question q = {.on = on,
                  .threads = threads,
                  .blocks_per_sm = clock_blocks_per_sm(on->sm, threads, 0, 0),
                  .blocks = (elements + (uint64_t)threads - 1) / (uint64_t)threads,
                  .warm = warm,
                  .l2_bytes = warm ? UINT64_MAX : 0};
    bool ok = ask(kind, &q, ptxvm_last_counters(vm), us, error, size);
    ptxvm_destroy(vm);
    return ok;
}
