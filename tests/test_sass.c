/* SASS figures without a GPU (clock/sass): listings whose counts can be worked out by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"
#include "test.h"

/* clang-format off */
#define AT(line)   "\t//## File \".nv_debug_ptx_txt\", line " #line "\n"
#define SASS(text) "        /*0010*/                   " text " ;\n"

/* Of 8 warps two leave at once; the others go round the loop ten times. What lies behind the last EXIT is padding. */
static const char loop[] =
    "\t.target\tsm_90\n\n\t.section\t.text.other,\"ax\",@progbits\n.text.other:\n" AT(1) SASS("EXIT")
    "\t.section\t.text.k,\"ax\",@progbits\nk:\n.text.k:\n"
    AT(5) SASS("S2R R0, SR_TID.X") AT(6) SASS("ISETP.GE.AND P0, PT, R0, R1, PT") AT(7) SASS("@P0 EXIT")
    AT(8) SASS("MOV R2, RZ")
    ".L_x_1:\n"
    AT(10) SASS("LDG.E.CONSTANT R3, desc[UR4][R4.64]") AT(11) SASS("FFMA R2, R3, R3, R2") AT(12) SASS("IADD3 R4, R4, 0x4, RZ")
    AT(13) SASS("ISETP.NE.AND P1, PT, R4, R5, PT") AT(14) SASS("@P1 BRA `(.L_x_1)")
    AT(16) SASS("STG.E desc[UR4][R6.64], R2") AT(17) SASS("EXIT")
    ".L_x_2:\n" SASS("BRA `(.L_x_2)") SASS("NOP") SASS("NOP");

/* 4 warps; half of them skip the first of two calls. A division never takes its slow path. */
static const char calls[] =
    "\t.section\t.text.k,\"ax\",@progbits\n.text.k:\n"
    AT(5) SASS("LDG.E R0, desc[UR4][R4.64]") SASS("@P0 BRA `(.L_x_1)")
    AT(6) SASS("STG.E desc[UR4][R6.64], R0") SASS("CALL.REL.NOINC `($sub)")
    ".L_x_1:\n"
    AT(7) SASS("STS [R0], R1") SASS("CALL.REL.NOINC `($sub)")
    AT(8) SASS("MUFU.RCP R2, R0") SASS("FCHK P0, R0, R2") SASS("@!P0 BRA `(.L_x_2)")
    SASS("CALL.REL.NOINC `($__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath)")
    ".L_x_2:\n"
    AT(9) SASS("STG.E desc[UR4][R8.64], R2") SASS("EXIT")
    "$sub:\n" SASS("IMAD R0, R0, R0, R0") SASS("IMAD R0, R0, R0, R0") SASS("RET.REL.NODEC R20 `(k)")
    "$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath:\n"
    AT(8) SASS("MUFU.RSQ R2, R0") SASS("FFMA R0, R0, R0, R0") SASS("RET.REL.NODEC R20 `(k)");
/* clang-format on */

static const char ptxas_log[] =
    "ptxas info    : Compiling entry function 'other' for 'sm_90'\nptxas info    : Used 99 registers\n"
    "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
    "ptxas info    : Function properties for k\n"
    "    48 bytes stack frame, 40 bytes spill stores, 36 bytes spill loads\n"
    "ptxas info    : Used 32 registers, used 0 barriers, 48 bytes cumulative stack size\n";

typedef struct line_count {
    int line;
    uint64_t instructions;
} line_count;

static bool estimate(const char *listing, const line_count *counts, int n, uint64_t warps,
                     sass_report *report)
{
    static ptxvm_counts lines[32];
    char error[256] = "";
    memset(lines, 0, sizeof lines);
    for (int i = 0; i < n; i++)
        lines[counts[i].line].instructions = counts[i].instructions;
    ptxvm_counters counters = {.kernel = "k", .lines = lines, .n_lines = 32};
    bool ok = sass_estimate(listing, ptxas_log, &counters, warps, report, error, sizeof error);
    CHECK_EQ_STR(error, "");
    return ok;
}

static bool is_near(double actual, double expected)
{
    return fabs(actual - expected) < 1e-3;
}

TEST_CASE(Sass, ALoop)
{
    static const line_count counts[] = {{5, 8},   {6, 8},   {7, 8},   {8, 6},  {10, 60}, {11, 60},
                                        {12, 60}, {13, 60}, {14, 60}, {16, 6}, {17, 6}};
    sass_report r;
    REQUIRE(estimate(loop, counts, sizeof counts / sizeof *counts, 8, &r));
    CHECK(is_near(r.issued, 8 * 3 + 6 * 1 + 60 * 5 + 6 * 2));
    CHECK(is_near(r.misfit, 0));
    CHECK_EQ_I64(r.written, 11);
    CHECK_EQ_I64(r.registers, 32);
    CHECK_EQ_I64(r.spill_bytes, 76);
    CHECK_EQ_I64(r.stack_bytes, 48);
    CHECK_EQ_STR(r.opcodes[0].name, "ISETP");
    CHECK(is_near(r.opcodes[0].issued, 68));
    CHECK(is_near(sass_issued(&r, "LDG"), 60) && is_near(sass_issued(&r, "EXIT"), 14));
    CHECK(sass_issued(&r, "NOP") == 0);
}

TEST_CASE(Sass, CallsAndSlowPaths)
{
    static const line_count counts[] = {{5, 4}, {6, 2}, {7, 4}, {8, 4}, {9, 4}};
    sass_report r;
    REQUIRE(estimate(calls, counts, sizeof counts / sizeof *counts, 4, &r));
    CHECK(is_near(sass_issued(&r, "IMAD"), 2 * 6));
    CHECK(is_near(sass_issued(&r, "CALL"), 2 + 4));
    CHECK(is_near(sass_issued(&r, "MUFU"), 4));
    CHECK(sass_issued(&r, "FFMA") == 0);
    CHECK(is_near(r.issued, 4 * 2 + 2 * 2 + 4 * 2 + 4 * 3 + 4 * 2 + 6 * 3));
}

/* A load that ptxas has guarded runs at least as often as its line. */
TEST_CASE(Sass, GuardedAnchors)
{
    static const char listing[] = "\n.text.k:\n" AT(5) SASS("ISETP.GE.AND P2, PT, R0, R1, PT")
        SASS("@P2 BRA `(.L_x_1)") AT(6) SASS("@P3 LDG.E R4, desc[UR4][R4.64]")
            SASS("IADD3 R2, R2, R2, R2") ".L_x_1:\n" AT(8) SASS("STG.E desc[UR4][R6.64], R4") SASS("EXIT");
    static const line_count counts[] = {{5, 4}, {6, 3}, {8, 4}};
    sass_report r;
    REQUIRE(estimate(listing, counts, sizeof counts / sizeof *counts, 4, &r));
    CHECK(is_near(sass_issued(&r, "LDG"), 3) && is_near(r.issued, 4 * 2 + 3 * 2 + 4 * 2));
}

/* A join that ptxas has put where a loop of the PTX jumped back says nothing about how often it runs. */
TEST_CASE(Sass, JoinsDoNotVote)
{
    static const char listing[] = "\n.text.k:\n" AT(5) SASS("LDG.E R0, desc[UR4][R4.64]")
        SASS("@P0 BRA `(.L_x_1)") AT(6) SASS("STG.E desc[UR4][R6.64], R0") ".L_x_1:\n" AT(7) SASS("BSYNC B0")
            AT(5) SASS("IADD3 R0, R0, R0, R0") SASS("EXIT");
    static const line_count counts[] = {{5, 4}, {6, 2}, {7, 128}};
    sass_report r;
    REQUIRE(estimate(listing, counts, sizeof counts / sizeof *counts, 4, &r));
    CHECK(is_near(sass_issued(&r, "BSYNC"), 4) && is_near(r.misfit, 0));
}

/* Three instructions of a loop that ptxas has put before it: they run once for each warp, whatever their lines count. */
TEST_CASE(Sass, WhatLeavesALoopDoesNotVote)
{
    static const char listing[] = "\n.text.k:\n" AT(5) SASS("ISETP.GE.AND P1, PT, R0, R1, PT")
        SASS("@!P1 BRA `(.L_x_2)") AT(10) SASS("IADD3 R2, R3, R4, RZ") AT(11) SASS("IADD3 R5, R3, R6, RZ")
            AT(12) SASS("LOP3.LUT R7, R3, R4, RZ, 0xc0, !PT") ".L_x_1:\n" AT(13)
                SASS("LDG.E R8, desc[UR4][R4.64]") AT(14) SASS("@P0 BRA `(.L_x_1)") ".L_x_2:\n" AT(16)
                    SASS("STG.E desc[UR4][R6.64], R4") SASS("EXIT");
    static const line_count counts[] = {{5, 6}, {10, 60}, {11, 60}, {12, 60}, {13, 60}, {14, 60}, {16, 6}};
    sass_report r;
    REQUIRE(estimate(listing, counts, sizeof counts / sizeof *counts, 6, &r));
    CHECK(is_near(sass_issued(&r, "IADD3"), 2 * 6) && is_near(sass_issued(&r, "LDG"), 60));
    CHECK(is_near(r.issued, 6 * 2 + 6 * 3 + 60 * 2 + 6 * 2));
    CHECK(is_near(r.misfit, 0));
}

/* Counts that no control flow can have are reported. */
TEST_CASE(Sass, MisfitIsTold)
{
    static const line_count counts[] = {{5, 4}, {6, 2}, {7, 4}, {8, 4}, {9, 40}};
    sass_report r;
    REQUIRE(estimate(calls, counts, sizeof counts / sizeof *counts, 4, &r));
    CHECK(r.misfit > 0.01);
}

TEST_CASE(Sass, WhatIsMissingIsSaid)
{
    ptxvm_counts lines[2] = {{0}};
    ptxvm_counters counters = {.kernel = "absent"};
    sass_report r;
    char error[256];
    CHECK(!sass_estimate(loop, "", &counters, 1, &r, error, sizeof error));
    CHECK_HAS(error, "no counters by line");
    counters.lines = lines;
    counters.n_lines = 2;
    CHECK(!sass_estimate(loop, "", &counters, 1, &r, error, sizeof error));
    CHECK_HAS(error, "no kernel absent");
}

/* x >= 0 with the least x'Gx - 2h'x, against a search over a lattice. */
TEST_CASE(Sass, LeastSquaresWithoutNegatives)
{
    static const double g[9] = {2, 1, 0, 1, 2, 1, 0, 1, 2};
    static const double h[][3] = {{2, -2, 2}, {1, 3, -1}, {-1, -2, -3}, {4, 4, 4}, {-2, 1, 3}};
    for (size_t k = 0; k < sizeof h / sizeof *h; k++) {
        double x[3], least = 1e30, at[3] = {0};
        REQUIRE(nnls(g, h[k], 3, x));
        for (int i = 0; i < 41 * 41 * 41; i++) {
            double y[3] = {i % 41 / 10.0, i / 41 % 41 / 10.0, i / 41 / 41 / 10.0}, value = 0;
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++)
                    value += y[a] * g[3 * a + b] * y[b] - (b ? 0 : 2 * h[k][a] * y[a]);
            if (value < least) {
                least = value;
                memcpy(at, y, sizeof at);
            }
        }
        for (int a = 0; a < 3; a++)
            CHECK(x[a] >= 0 && fabs(x[a] - at[a]) < 0.11);
    }
}

/* Through the tools, where they are. */
TEST_CASE(Sass, Measured)
{
    static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry k(.param .u64 .ptr .global x, .param .u32 n)\n{\n"
                              ".reg .pred p; .reg .b32 r<4>; .reg .b64 d<4>; .reg .f32 f<4>;\n"
                              "ld.param.u64 d0, [x];\nld.param.u32 r0, [n];\nmov.u32 r1, %tid.x;\n"
                              "mul.wide.u32 d1, r1, 4;\nadd.u64 d0, d0, d1;\nmov.f32 f0, "
                              "0f00000000;\nAGAIN:\n.pragma \"nounroll\";\n"
                              "ld.global.f32 f1, [d0];\nfma.rn.f32 f0, f1, f1, f0;\nadd.u64 d0, d0, 128;\n"
                              "sub.u32 r0, r0, 1;\nsetp.ne.u32 p, r0, 0;\n@p bra AGAIN;\n"
                              "st.global.f32 [d0], f0;\nret;\n}\n";
    ptxvm_config config = {.sm = "sm_80", .counters = PTXVM_COUNTERS_LINES};
    ptxvm_launch_config grid = {.grid = {3, 1, 1}, .block = {32, 1, 1}};
    struct {
        ptxvm_address x;
        uint32_t n;
    } params = {0, 37};
    ptxvm *vm = NULL;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    sass_report r;
    char error[512];
    if (!sass_found(error, sizeof error))
        SKIP("%s", error);
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK && ptxvm_alloc(vm, 8192, &params.x) == PTXVM_OK);
    REQUIRE(ptxvm_module_load(vm, ptx, sizeof ptx - 1, &module) == PTXVM_OK);
    REQUIRE(ptxvm_module_kernel(module, "k", &kernel) == PTXVM_OK);
    CHECK_EQ_I64(ptxvm_launch(vm, kernel, &grid, &params, 12), PTXVM_OK);
    if (CHECK(sass_measure(ptx, "sm_80", ptxvm_last_counters(vm), 3, &r, error, sizeof error))) {
        CHECK(is_near(sass_issued(&r, "LDG"), 3 * 37) && is_near(sass_issued(&r, "STG"), 3));
        CHECK(is_near(sass_issued(&r, "FFMA"), 3 * 37));
        CHECK(r.issued > 3 * 37 * 3 && r.issued < 3 * 37 * 8 && r.registers > 0 && r.spill_bytes == 0);
    } else
        FAIL("%s", error);
    CHECK(!sass_measure(".version 7.0\n", "sm_80", ptxvm_last_counters(vm), 3, &r, error, sizeof error));
    ptxvm_destroy(vm);
}
