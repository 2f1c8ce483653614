/* Programmatic dependent launch: kernels that begin before the one in front of them has ended, in every seeded order; what they
 * must not do before griddepcontrol.wait. */
#include "test_exec.h"

/* Rows of the tables below end where the rest is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { BLOCKS = 40, THREADS = 64, WORDS = BLOCKS * THREADS, SEEDS = 12 };

/* Kernels with two buffers: r4 = the thread in the grid, d2 = its word of x, d3 = its word of y. A line each, from line 4 of the
 * kernel on. */
#define KERNEL(name, body)                                                                                   \
    ".visible .entry " name "(.param .u64 x, .param .u64 y)\n{\n.reg .pred p<4>; .reg .b32 r<12>; .reg "     \
    ".b64 d<8>; .shared .align 16 .b8 dst[16]; .shared .b64 bar; ld.param.u64 d0, [x]; ld.param.u64 d1, "    \
    "[y]; mov.u32 r0, %tid.x; mov.u32 "                                                                      \
    "r1, %ctaid.x; mov.u32 r2, %ntid.x; mad.lo.u32 r4, r1, r2, r0; mul.wide.u32 d4, r4, 4; add.u64 d2, d0, " \
    "d4; add.u64 d3, d1, d4;\n" body "ret;\n}\n"
#define WAIT    "griddepcontrol.wait;\n"
#define TRIGGER "griddepcontrol.launch_dependents;\n"
#define WRITE_X "add.u32 r5, r4, 1000; st.global.u32 [d2], r5;\n"
#define READ_X  "ld.global.u32 r6, [d2];\n"
#define COPY_X  READ_X "add.u32 r6, r6, 1; st.global.u32 [d3], r6;\n"
#define WRITE_Y "add.u32 r5, r4, 1000; st.global.u32 [d3], r5;\n"
#define FIRST   KERNEL("a", TRIGGER WRITE_X)

static uint32_t x_plus_1(uint32_t i)
{
    return i + 1001;
}

static uint32_t x_itself(uint32_t i)
{
    return i + 1000;
}

static uint32_t lost_plus_1(uint32_t i)
{
    (void)i;
    return 0x7FBADBAE;
}

static uint32_t both_counts(uint32_t i)
{
    return i == 0 ? 2 * WORDS : 0;
}

static uint32_t nothing(uint32_t i)
{
    (void)i;
    return 0;
}

typedef struct overlap_test {
    const char *name, *a, *b, *c; /* kernels, launched one after the other; c: may be null */
    uint32_t (*y)(uint32_t i);    /* what y holds in the end, whatever the seed */
    uint32_t (*lost)(uint32_t i); /* or, of a kernel with a mistake, without a seed */
    const char *finding;          /* a part of the message; null: there is none */
    int line;                     /* of it, in its kernel's body */
    bool serial, host_between;    /* not programmatic; the host writes between launches */
} overlap_test;

/* clang-format off */
static const overlap_test tests[] = {
    {"waits", FIRST, KERNEL("b", WAIT COPY_X), .y = x_plus_1},
    {"prepares, then waits", FIRST, KERNEL("b", "st.global.u32 [d3], r4; mov.u32 r7, 0;\n" WAIT COPY_X), .y = x_plus_1},
    {"the same value", FIRST, KERNEL("b", WAIT WRITE_X READ_X "st.global.u32 [d3], r6;\n"), .y = x_itself},
    {"one warp waits for all", FIRST, KERNEL("b", "setp.lt.u32 p1, r0, 32; @!p1 bra L;\n" WAIT "L: bar.sync 0;\n" COPY_X), .y = x_plus_1},
    {"triggers late", KERNEL("a", WRITE_X TRIGGER), KERNEL("b", WAIT COPY_X), .y = x_plus_1},
    {"does not trigger", KERNEL("a", WRITE_X), KERNEL("b", WAIT COPY_X), .y = x_plus_1},
    {"touches nothing of it", FIRST, KERNEL("b", WRITE_Y), .y = x_itself},
    {"not programmatic", FIRST, KERNEL("b", COPY_X), .y = x_plus_1, .serial = true},
    {"the host between", FIRST, KERNEL("b", COPY_X), .y = x_plus_1, .host_between = true},
    {"atomics of both", KERNEL("a", TRIGGER "red.global.add.u32 [d1], 1;\n"), KERNEL("b", "red.global.add.u32 [d1], 1;\n" WAIT), .y = both_counts},
    {"a third waits for a second that waits", FIRST, KERNEL("b", WAIT), KERNEL("c", WAIT COPY_X), .y = x_plus_1},
    {"a third after a second that waits first", FIRST, KERNEL("b", WAIT TRIGGER), KERNEL("c", COPY_X), .y = x_plus_1},
    {"exits without waiting", FIRST, KERNEL("b", "setp.ge.u32 p1, r1, 20; @p1 ret;\n" WAIT READ_X), .y = nothing},

    {"reads early", FIRST, KERNEL("b", COPY_X WAIT), .lost = lost_plus_1, .finding = "griddepcontrol.wait has to come first", .line = 0},
    {"reads early what was written without a trigger", KERNEL("a", WRITE_X), KERNEL("b", COPY_X), .y = x_plus_1, .finding = "wrote at line 7: griddepcontrol.wait", .line = 0},
    {"writes early what the first writes", FIRST, KERNEL("b", "st.global.u32 [d2], r4;\n" WAIT READ_X "st.global.u32 [d3], r6;\n"), .lost = x_itself,
     .finding = "race: writes 4 bytes", .line = 0},
    {"writes early what the first reads", KERNEL("a", TRIGGER READ_X), KERNEL("b", "st.global.u32 [d2], r4;\n" WAIT), .y = nothing, .finding = "read at line 8", .line = 0},
    {"copies early", FIRST,
     KERNEL("b", "setp.eq.u32 p1, r0, 0; @!p1 bra L; mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [d2], 16, [bar];\n"
                 "T: mbarrier.try_wait.parity.shared.b64 p2, [bar], 0; @!p2 bra T;\nL:\n"), .y = nothing, .finding = "race: reads 16 bytes", .line = 1},
    {"half of a block waits", FIRST, KERNEL("b", "setp.lt.u32 p1, r0, 32; @!p1 bra L;\n" WAIT "L:\n" COPY_X), .finding = "has to come first", .line = 3},
    {"reads as read-only", FIRST, KERNEL("b", WAIT "ld.global.nc.u32 r6, [d2]; add.u32 r6, r6, 1; st.global.u32 [d3], r6;\n"), .y = x_plus_1,
     .finding = "wrote at line 8: ld.global.nc needs memory that nothing writes", .line = 1},
    {"reads as read-only what nothing writes", KERNEL("a", TRIGGER "ld.global.u32 r6, [d2];\n"),
     KERNEL("b", WAIT "ld.global.nc.u32 r6, [d2]; st.global.u32 [d3], r6;\n"), .y = nothing},
    {"a third, and the second does not wait", FIRST, KERNEL("b", "mov.u32 r7, 0;\n"), KERNEL("c", WAIT COPY_X), .y = x_plus_1,
     .finding = "waits for b alone, which has not waited for it", .line = 1},
    {"a third early, and the second waits late", FIRST, KERNEL("b", TRIGGER WAIT), KERNEL("c", COPY_X), .y = x_plus_1, .finding = "launch of a in front of this one", .line = 0},
};
/* clang-format on */

enum { KERNELS = 3 };

typedef struct machine {
    ptxvm *vm;
    ptxvm_kernel *kernel[KERNELS];
    ptxvm_address buffer[2]; /* x, y */
} machine;

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static bool machine_open(machine *m, const overlap_test *t, unsigned checks, uint64_t seed)
{
    char text[8192];
    const uint32_t zero[WORDS] = {0};
    ptxvm_config config = {.sm = "sm_90", .checks = checks, .seed = seed, .limits = {0}};
    ptxvm_module *module;
    memset(m, 0, sizeof *m);
    snprintf(text, sizeof text, ".version 8.0\n.target sm_90\n.address_size 64\n%s%s%s", t->a, t->b,
             t->c ? t->c : "");
    if (!CHECK_EQ_I64(ptxvm_create(&config, &m->vm), PTXVM_OK) ||
        !CHECK_EQ_I64(ptxvm_module_load(m->vm, text, strlen(text), &module), PTXVM_OK)) {
        FAIL("%s", ptxvm_last_error(m->vm));
        return false;
    }
    for (int i = 0; i < (t->c ? 3 : 2); i++)
        CHECK_EQ_I64(ptxvm_module_kernel(module, (char[]){(char)('a' + i), 0}, &m->kernel[i]), PTXVM_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_I64(ptxvm_alloc(m->vm, sizeof zero, &m->buffer[i]), PTXVM_OK);
        CHECK_EQ_I64(ptxvm_write(m->vm, m->buffer[i], zero, sizeof zero), PTXVM_OK);
    }
    return true;
}

static ptxvm_status machine_launch(machine *m, const overlap_test *t, int i)
{
    ptxvm_launch_config config = exec_grid(BLOCKS, THREADS);
    config.programmatic = i > 0 && !t->serial;
    if (i > 0 && t->host_between) {
        uint32_t word = 1000;
        ptxvm_write(m->vm, m->buffer[0], &word, sizeof word);
    }
    return ptxvm_launch(m->vm, m->kernel[i], &config, m->buffer, sizeof m->buffer);
}

static void check_y(const machine *m, uint32_t (*want)(uint32_t), uint64_t seed)
{
    uint32_t y[WORDS], wrong = 0;
    CHECK_EQ_I64(ptxvm_read(m->vm, y, m->buffer[1], sizeof y), PTXVM_OK);
    for (uint32_t i = 0; i < WORDS && !wrong; i++)
        if (!CHECK_EQ_U32(y[i], want(i))) {
            FAIL("seed %llu, word %u", (unsigned long long)seed, i);
            wrong++;
        }
}

/* With every check: the finding, in the launch of the kernel that has the mistake, at its line. */
TEST_ROWS(Overlap, Found, tests)
{
    const overlap_test *t = &tests[index];
    machine m;
    int last = t->c ? 2 : 1, n = 0;
    uint64_t total;
    for (uint64_t seed = 0; seed < 3; seed++) {
        if (!machine_open(&m, t, PTXVM_CHECK_ALL, seed))
            return;
        for (int i = 0; i < last; i++)
            CHECK_EQ_I64(machine_launch(&m, t, i), PTXVM_OK);
        ptxvm_status status = machine_launch(&m, t, last);
        const ptxvm_finding *findings = ptxvm_findings(m.vm, &n, &total);
        if (t->finding && CHECK_EQ_I64(status, PTXVM_ERROR_CHECK) && CHECK(n > 0)) {
            int before = 3 + lines_of(t->a) + (last == 2 ? lines_of(t->b) : 0);
            test_push_note("%s", findings[0].message);
            CHECK(strstr(findings[0].message, t->finding));
            CHECK_EQ_I64(findings[0].kind, PTXVM_FINDING_RACE);
            CHECK_EQ_I64(findings[0].line, before + 4 + t->line);
            test_pop_note();
        } else if (!t->finding && !CHECK_EQ_I64(status, PTXVM_OK))
            FAIL("%s", ptxvm_last_error(m.vm));
        ptxvm_destroy(m.vm);
    }
}

/* Without checks: right whatever the seed, or visibly wrong. */
TEST_ROWS(Overlap, Results, tests)
{
    const overlap_test *t = &tests[index];
    machine m;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        if (!machine_open(&m, t, 0, seed))
            return;
        for (int i = 0; i < (t->c ? 3 : 2); i++)
            if (!CHECK_EQ_I64(machine_launch(&m, t, i), PTXVM_OK))
                FAIL("%s", ptxvm_last_error(m.vm));
        if (t->y)
            check_y(&m, t->y, seed);
        else if (t->lost == lost_plus_1 && seed == 0) { /* the blocks that begin early */
            uint32_t y[WORDS], lost = 0;
            CHECK_EQ_I64(ptxvm_read(m.vm, y, m.buffer[1], sizeof y), PTXVM_OK);
            for (uint32_t i = 0; i < WORDS; i++)
                lost += y[i] == lost_plus_1(i);
            CHECK_EQ_U32(lost, 16 * THREADS);
        } else if (t->lost == x_itself && seed == 0) { /* the early write is lost, a late one is not */
            uint32_t y[WORDS];
            CHECK_EQ_I64(ptxvm_read(m.vm, y, m.buffer[1], sizeof y), PTXVM_OK);
            for (uint32_t i = 0; i < WORDS; i++)
                CHECK_EQ_U32(y[i], i < 16 * THREADS ? i + 1000 : i);
        }
        ptxvm_destroy(m.vm);
    }
}

/* With seeds, early reads see what was there before, what is there in the end, and neither: all three must occur. */
TEST_CASE(Overlap, EarlyReadsSeeEverything)
{
    const overlap_test t = {"", FIRST, KERNEL("b", COPY_X WAIT)};
    uint32_t old = 0, landed = 0, lost = 0, y[WORDS];
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        machine m;
        REQUIRE(machine_open(&m, &t, 0, seed));
        for (int i = 0; i < 2; i++)
            CHECK_EQ_I64(machine_launch(&m, &t, i), PTXVM_OK);
        CHECK_EQ_I64(ptxvm_read(m.vm, y, m.buffer[1], sizeof y), PTXVM_OK);
        for (uint32_t i = 0; i < WORDS; i++) {
            old += y[i] == 1;
            landed += y[i] == x_plus_1(i);
            lost += y[i] == lost_plus_1(i);
        }
        ptxvm_destroy(m.vm);
    }
    CHECK(old > 0 && landed > 0 && lost > 0);
}
