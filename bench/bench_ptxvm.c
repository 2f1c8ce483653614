/* The speed of guest instructions on ptxvm: loops of one kind each, with whole warps and diverged ones, on
 * one and two host threads. Figures are millions of thread instructions per second (for mma: thousands of
 * warp instructions), counted by ptxvm itself. */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "ptxvm/ptxvm.h"

#define TWICE(x) x x
#define FOUR(x)  TWICE(x) TWICE(x)

#define KERNEL(setup, body) KERNEL_FOR("sm_80", "20", "8192", setup, body)
#define KERNEL_FOR(sm, floats, bytes, setup, body)                                                           \
    ".version 8.0\n.target " sm "\n.address_size 64\n"                                                       \
    ".visible .entry k(.param .u64 out, .param .u32 rounds)\n{\n"                                            \
    ".reg .pred p<8>; .reg .b32 r<40>; .reg .b64 d<20>; .reg .f32 f<" floats ">;\n"                          \
    ".shared .align 1024 .b8 tile[" bytes "];\n"                                                             \
    "ld.param.u64 d0, [out]; ld.param.u32 r1, [rounds]; mov.u32 r0, %tid.x; mov.u32 r2, %ctaid.x; mov.u32 "  \
    "r3, 0;\n"                                                                                               \
    "mad.lo.u32 r4, r2, 256, r0; mul.wide.u32 d1, r4, 4; add.u64 d1, d0, d1;\n" setup "\nLOOP:\n" body       \
    "\nadd.u32 r3, r3, 1; setp.lt.u32 p0, r3, r1; @p0 bra LOOP;\n"                                           \
    "st.global.u32 [d1], r10; st.global.f32 [d1], f10;\nret;\n}\n"

#define INTEGER                                                                                              \
    "mad.lo.u32 r10, r10, r11, r12; xor.b32 r11, r11, r10; add.u32 r12, r12, r3; shf.l.wrap.b32 r10, r10, "  \
    "r10, 7;\n"
#define FMA                                                                                                  \
    "fma.rn.f32 f10, f11, f12, f10; fma.rn.f32 f13, f11, f12, f13; fma.rn.f32 f14, f11, f12, f14; "          \
    "fma.rn.f32 f15, f11, f12, f15;\n"
#define SHARED                                                                                               \
    "st.shared.u32 [r20], r10; ld.shared.u32 r10, [r21]; st.shared.u32 [r21], r10; ld.shared.u32 r11, "      \
    "[r20];\n"
#define GLOBAL                                                                                               \
    "ld.global.u32 r10, [d1]; ld.global.u32 r11, [d1+4096]; st.global.u32 [d1+8192], r10; st.global.u32 "    \
    "[d1+4096], r11;\n"
#define MMA                                                                                                  \
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f10,f11,f12,f13}, {r10,r11,r12,r13}, {r14,r15}, "    \
    "{f10,f11,f12,f13};\n"

#define SETUP_NUMBERS                                                                                        \
    "mov.u32 r10, r0; mov.u32 r11, 12345; mov.u32 r12, 777; mov.f32 f10, 0f00000000; mov.f32 f11, "          \
    "0f3F7FFFFF;\n"                                                                                          \
    "mov.f32 f12, 0f3F000001; mov.f32 f13, f10; mov.f32 f14, f11; mov.f32 f15, f12;"
#define SETUP_SHARED                                                                                         \
    "mov.u32 r10, tile; shl.b32 r11, r0, 2; add.u32 r20, r10, r11; xor.b32 r11, r11, 64; add.u32 r21, r10, " \
    "r11; mov.f32 f10, 0f00000000;"
#define SETUP_MMA                                                                                            \
    "mov.f32 f10, 0f00000000; mov.f32 f11, f10; mov.f32 f12, f10; mov.f32 f13, f10; mov.u32 r10, "           \
    "0x3c003800; mov.u32 r11, 0x38003555;\n"                                                                 \
    "mov.u32 r12, 0x2e663c00; mov.u32 r13, 0x3c003c00; mov.u32 r14, 0x34003400; mov.u32 r15, 0xb8003c01;"

/* d in 128 registers, a and b in shared memory with a swizzle of 128 bytes. */
#define R4(a)  "f" #a "0, f" #a "1, f" #a "2, f" #a "3, "
#define R16(a) R4(a##0) R4(a##1) R4(a##2) R4(a##3)
#define SETUP_WGMMA                                                                                          \
    "mov.u32 r10, tile; shr.u32 r10, r10, 4; cvt.u64.u32 d2, r10; mov.u64 d3, 0x4000004000010000; or.b64 "   \
    "d2, d2, d3;\n"                                                                                          \
    "mov.f32 f10, 0f00000000; setp.eq.u32 p1, r0, r0; wgmma.fence.sync.aligned;"
#define WGMMA                                                                                                \
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" R16(1) R16(2) R16(3) R16(4) R16(5) R16(6) R16(7) \
        R4(80) R4(81) R4(82) "f830, f831, f832, f833}, d2, d2, p1, 1, 1, 0, 0;\n"
#define WGMMA_END "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"

/* Odd and even lanes execute the body one after the other. */
#define DIVERGED(body)                                                                                       \
    "and.b32 r30, r0, 1; setp.eq.u32 p1, r30, 0; @p1 bra EVEN;\n" body "bra NEXT;\nEVEN:\n" body "NEXT:\n"

static const struct {
    const char *name, *text;
    uint32_t rounds;
} loops[] = {
    {"int", KERNEL(SETUP_NUMBERS, FOUR(INTEGER)), 12000},
    {"int.divergent", KERNEL(SETUP_NUMBERS, DIVERGED(FOUR(INTEGER))), 1000},
    {"fma", KERNEL(SETUP_NUMBERS, FOUR(FMA)), 12000},
    {"fma.divergent", KERNEL(SETUP_NUMBERS, DIVERGED(FOUR(FMA))), 1000},
    {"shared", KERNEL(SETUP_SHARED, FOUR(SHARED)), 1000},
    {"shared.divergent", KERNEL(SETUP_SHARED, DIVERGED(FOUR(SHARED))), 300},
    {"global", KERNEL("mov.f32 f10, 0f00000000;", FOUR(GLOBAL)), 1000},
    {"global.divergent", KERNEL("mov.f32 f10, 0f00000000;", DIVERGED(FOUR(GLOBAL))), 300},
    {"mma", KERNEL(SETUP_MMA, FOUR(MMA)), 100},
    {"wgmma", KERNEL_FOR("sm_90a", "900", "40960", SETUP_WGMMA, FOUR(WGMMA) WGMMA_END), 3},
};

enum { BLOCKS = 16, THREADS = 256 };

typedef struct device {
    ptxvm *vm;
    ptxvm_kernel *kernel;
    struct {
        ptxvm_address out;
        uint32_t rounds;
    } params;
    ptxvm_status status;
} device;

static void launch(void *argument)
{
    device *d = argument;
    ptxvm_launch_config config = {.grid = {BLOCKS, 1, 1}, .block = {THREADS, 1, 1}};
    if (!d->status)
        d->status = ptxvm_launch(d->vm, d->kernel, &config, &d->params, 12);
}

static device open_device(const char *text, uint32_t rounds, int threads, unsigned checks)
{
    ptxvm_config config = {.threads = threads, .checks = checks};
    ptxvm_module *module;
    device d = {.params.rounds = rounds};
    d.status = ptxvm_create(&config, &d.vm);
    if (!d.status)
        d.status = ptxvm_module_load(d.vm, text, strlen(text), &module);
    if (!d.status)
        d.status = ptxvm_module_kernel(module, "k", &d.kernel);
    if (!d.status)
        d.status = ptxvm_alloc(d.vm, BLOCKS * THREADS * 4 + 16384, &d.params.out);
    if (!d.status)
        d.status = ptxvm_fill(d.vm, d.params.out, 0, BLOCKS * THREADS * 4 + 16384);
    return d;
}

static void measure(const char *name, const char *text, uint32_t rounds, int threads)
{
    char metric[64];
    const bool wgmma = strcmp(name, "wgmma") == 0, mma = wgmma || strcmp(name, "mma") == 0;
    device d = open_device(text, rounds, threads, 0);
    snprintf(metric, sizeof metric, "ptxvm.%s.%s_per_s%s", name, mma ? "kmma" : "minstr",
             threads == 2 ? ".t2" : "");
    bench_progress("%s", metric);
    double seconds = bench_best(launch, &d, 0.3);
    if (d.status)
        fprintf(stderr, "%s: %s: %s\n", metric, ptxvm_status_name(d.status), ptxvm_last_error(d.vm));
    else if (mma)
        bench_report(metric, (wgmma ? 128.0 : 4.0) * rounds * BLOCKS * THREADS / 32 / seconds * 1e-3, "k/s",
                     wgmma ? "m16n8k16 f16 that a warp's part of a m64n256k16 is worth"
                           : "m16n8k16 f16, a whole warp's each");
    else
        bench_report(metric, (double)ptxvm_last_report(d.vm)->thread_instructions / seconds * 1e-6, "M/s",
                     "thread-instructions");
    ptxvm_destroy(d.vm);
}

/* ---- Slowdown with all checks on ---- */

#define OWN_SHARED                                                                                           \
    "st.shared.u32 [r20], r10; ld.shared.u32 r10, [r20+1024]; st.shared.u32 [r20+1024], r10; ld.shared.u32 " \
    "r11, [r20];\n"
#define OWN_GLOBAL                                                                                           \
    "ld.global.u32 r10, [d1]; ld.global.u32 r11, [d1+16384]; st.global.u32 [d1+16384], r10; st.global.u32 "  \
    "[d1], r11;\n"
#define SETUP_OWN                                                                                            \
    "mov.u32 r10, tile; shl.b32 r11, r0, 2; add.u32 r20, r10, r11; mov.f32 f10, 0f00000000; st.shared.u32 "  \
    "[r20+1024], r10;"

/* Loops in which no thread accesses the memory of another. */
static const struct {
    const char *name, *text;
    uint32_t rounds;
} checked[] = {
    {"int", KERNEL(SETUP_NUMBERS, FOUR(INTEGER)), 12000},
    {"fma", KERNEL(SETUP_NUMBERS, FOUR(FMA)), 12000},
    {"shared", KERNEL(SETUP_OWN, FOUR(OWN_SHARED)), 300},
    {"global", KERNEL(SETUP_OWN, FOUR(OWN_GLOBAL)), 300},
    {"mma", KERNEL(SETUP_MMA, FOUR(MMA)), 100},
};

static double seconds_of(const char *text, uint32_t rounds, unsigned checks)
{
    device d = open_device(text, rounds, 1, checks);
    double seconds = bench_best(launch, &d, 0.2);
    if (d.status)
        fprintf(stderr, "%s: %s\n", ptxvm_status_name(d.status), ptxvm_last_error(d.vm));
    ptxvm_destroy(d.vm);
    return d.status ? 0 : seconds;
}

static void measure_checked(const char *name, const char *text, uint32_t rounds)
{
    char metric[64];
    snprintf(metric, sizeof metric, "ptxvm.%s.checked.ratio", name);
    bench_progress("%s", metric);
    double off = seconds_of(text, rounds, 0), on = seconds_of(text, rounds, PTXVM_CHECK_ALL);
    if (off > 0 && on > 0)
        bench_report(metric, on / off, "x", "all checks on / off, one thread; the aim is 4 at most");
}

/* ---- Where the time goes: the cost of one instruction of a whole warp ---- */

static const struct {
    const char *name, *body;
} costs[] = {
    {"mov", KERNEL(SETUP_NUMBERS, FOUR(FOUR("mov.b32 r10, r11;")))},
    {"add_u32", KERNEL(SETUP_NUMBERS, FOUR(FOUR("add.u32 r10, r11, r12;")))},
    {"add_u32_guarded",
     KERNEL(SETUP_NUMBERS "setp.eq.u32 p2, r0, 5;", FOUR(FOUR("@!p2 add.u32 r10, r11, r12;")))},
    {"setp", KERNEL(SETUP_NUMBERS, FOUR(FOUR("setp.lt.u32 p1, r10, r0;")))},
    {"lop3", KERNEL(SETUP_NUMBERS, FOUR(FOUR("lop3.b32 r10, r11, r12, r0, 0x96;")))},
    {"fma_f32", KERNEL(SETUP_NUMBERS, FOUR(FOUR("fma.rn.f32 f10, f11, f12, f13;")))},
    {"fma_f32_rz", KERNEL(SETUP_NUMBERS, FOUR(FOUR("fma.rz.f32 f10, f11, f12, f13;")))},
    {"div_f32", KERNEL(SETUP_NUMBERS, FOUR(FOUR("div.rn.f32 f10, f11, f12;")))},
    {"cvt_f16", KERNEL(SETUP_NUMBERS "\n.reg .b16 h<4>;", FOUR(FOUR("cvt.rn.f16.f32 h1, f11;")))},
    {"ex2_approx", KERNEL(SETUP_NUMBERS, FOUR(FOUR("ex2.approx.f32 f10, f11;")))},
    {"ld_shared", KERNEL(SETUP_SHARED, FOUR(FOUR("ld.shared.u32 r11, [r20];")))},
    {"st_shared", KERNEL(SETUP_SHARED, FOUR(FOUR("st.shared.u32 [r20], r10;")))},
    {"ld_global", KERNEL("mov.f32 f10, 0f00000000;", FOUR(FOUR("ld.global.u32 r10, [d1];")))},
    {"ld_global_v4",
     KERNEL("mov.f32 f10, 0f00000000; shl.b32 r5, r0, 4; cvt.u64.u32 d2, r5; add.u64 d2, d0, d2;",
            FOUR(FOUR("ld.global.v4.u32 {r10,r11,r12,r13}, [d2];")))},
    {"shfl", KERNEL(SETUP_NUMBERS, FOUR(FOUR("shfl.sync.bfly.b32 r10, r11, 1, 31, -1;")))},
    {"bar_sync", KERNEL(SETUP_NUMBERS, FOUR(FOUR("bar.sync 0;")))},
    {"red_shared", KERNEL(SETUP_SHARED, FOUR(FOUR("red.shared.add.u32 [r20], r10;")))},
};

static void measure_cost(const char *name, const char *text)
{
    char metric[64];
    snprintf(metric, sizeof metric, "ptxvm.cost.%s.ns", name);
    bench_progress("%s", metric);
    device d = open_device(text, 300, 1, 0);
    double seconds = bench_best(launch, &d, 0.1);
    if (d.status)
        fprintf(stderr, "%s: %s: %s\n", metric, ptxvm_status_name(d.status), ptxvm_last_error(d.vm));
    else
        bench_report(metric, seconds * 1e9 / (double)ptxvm_last_report(d.vm)->warp_instructions, "ns",
                     "a warp instruction, 16 of them in a loop of 19");
    ptxvm_destroy(d.vm);
}

void bench_ptxvm(void)
{
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        measure_cost(costs[i].name, costs[i].body);
    for (size_t i = 0; i < sizeof checked / sizeof *checked; i++)
        measure_checked(checked[i].name, checked[i].text, checked[i].rounds);
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
            measure(loops[i].name, loops[i].text, loops[i].rounds, threads);
}
