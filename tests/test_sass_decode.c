/* What clock/sass reads from machine code: control codes and instructions of small kernels (tests/golden/sass: one loop with a load, an
 * ldmatrix and an mma; asynchronous copies where there are any), loops, and the blocks of a warp in order. */
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"
#include "kernels/kernels.h"
#include "test.h"
#include "tools/toolkit.h"

static bool read_golden(const char *sm, sass_code *code)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/sass/%s.sass", QDNN_SOURCE_DIR, sm);
    char *text = toolkit_read_file(path, NULL);
    bool ok = text && sass_parse(text, "k", code);
    free(text);
    return ok;
}

static const sass_inst *find(const sass_code *code, const char *text)
{
    for (int i = 0; i < code->n_insts; i++)
        if (!strncmp(code->insts[i].text, text, strlen(text)))
            return &code->insts[i];
    return NULL;
}

/* ---- Instructions ---- */

#define NONE 0, 0
static const struct {
    const char *name, *sm, *text;
    sass_control control; /* stall, yield, write barrier, read barrier, waits, reuse: by hand from the bits */
    sass_unit unit;
    sass_kind kind;
    sass_space space;
    int bytes;
    sass_registers writes, read;
} known[] = {
    {"Turing_load",
     "sm_75",
     "LDG.E.SYS",
     {1, 0, 2, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_LOAD,
     SASS_GLOBAL,
     4,
     {2, 1},
     {2, 1}},
    {"Ampere_load",
     "sm_80",
     "LDG.E R0",
     {1, 0, 2, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_LOAD,
     SASS_GLOBAL,
     4,
     {0, 1},
     {2, 2}},
    {"Matrices",
     "sm_80",
     "LDSM.16.M88.4",
     {4, 0, 1, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_LOAD,
     SASS_SHARED,
     16,
     {8, 4},
     {13, 1}},
    {"Waits",
     "sm_80",
     "IADD3 R0, R0, 0x7",
     {7, 1, -1, -1, 4, 0},
     SASS_UNIT_ALU,
     SASS_COMPUTE,
     SASS_NO_SPACE,
     0,
     {0, 1},
     {0, 1}},
    {"Reuse",
     "sm_80",
     "SHF.L.U32 R13, R12.reuse",
     {1, 0, -1, -1, 2, 1},
     SASS_UNIT_ALU,
     SASS_COMPUTE,
     SASS_NO_SPACE,
     0,
     {13, 1},
     {12, 1}},
    {"Copy",
     "sm_80",
     "LDGSTS.E.BYPASS.128",
     {1, 0, -1, 1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_COPY,
     SASS_GLOBAL,
     16,
     {NONE},
     {2, 2}},
    {"Commit",
     "sm_80",
     "LDGDEPBAR",
     {1, 0, 0, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_COPY_COMMIT,
     SASS_NO_SPACE,
     0,
     {NONE},
     {NONE}},
    {"Store",
     "sm_80",
     "STG.E.128",
     {5, 0, -1, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_STORE,
     SASS_GLOBAL,
     16,
     {NONE},
     {4, 4}},
    {"Atomic",
     "sm_80",
     "ATOMG.E.ADD",
     {1, 0, 2, -1, 8, 0},
     SASS_UNIT_MEMORY,
     SASS_ATOMIC,
     SASS_GLOBAL,
     4,
     {11, 1},
     {8, 2}},
    {"Reduction",
     "sm_80",
     "RED.E.ADD",
     {2, 0, -1, 1, 2, 0},
     SASS_UNIT_MEMORY,
     SASS_REDUCTION,
     SASS_GLOBAL,
     4,
     {NONE},
     {3, 1}},
    {"Shuffle",
     "sm_80",
     "SHFL.BFLY",
     {1, 0, 2, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_SHUFFLE,
     SASS_NO_SPACE,
     0,
     {3, 1},
     {4, 1}},
    {"Tensor",
     "sm_80",
     "HMMA.1688.F32",
     {4, 0, -1, -1, 2, 0},
     SASS_UNIT_TENSOR,
     SASS_MMA,
     SASS_NO_SPACE,
     0,
     {4, 4},
     {8, 2}},
    {"Wide",
     "sm_80",
     "IMAD.WIDE.U32 R2",
     {4, 1, -1, -1, 0, 0},
     SASS_UNIT_FMA,
     SASS_COMPUTE,
     SASS_NO_SPACE,
     0,
     {2, 2},
     {17, 1}},
    {"Barrier",
     "sm_80",
     "BAR.SYNC",
     {6, 0, -1, -1, 2, 0},
     SASS_UNIT_BRANCH,
     SASS_BARRIER,
     SASS_NO_SPACE,
     0,
     {NONE},
     {NONE}},
    {"Fence",
     "sm_80",
     "MEMBAR.SC.GPU",
     {6, 0, -1, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_FENCE,
     SASS_NO_SPACE,
     0,
     {NONE},
     {NONE}},
    {"Bulk",
     "sm_90a",
     "UBLKCP.S.G",
     {12, 1, -1, 2, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_BULK,
     SASS_GLOBAL,
     0,
     {NONE},
     {NONE}},
    {"Mbarrier",
     "sm_90a",
     "SYNCS.PHASECHK",
     {2, 0, 1, -1, 0, 0},
     SASS_UNIT_MEMORY,
     SASS_MBARRIER,
     SASS_SHARED,
     0,
     {NONE},
     {4, 1}},
};

TEST_ROWS(SassDecode, Instructions, known)
{
    sass_code code;
    REQUIRE(read_golden(known[index].sm, &code));
    const sass_inst *i = find(&code, known[index].text);
    if (CHECK(i != NULL)) {
        const sass_control *expected = &known[index].control;
        CHECK_EQ_I64(i->control.stall, expected->stall);
        CHECK_EQ_I64(i->control.yield, expected->yield);
        CHECK_EQ_I64(i->control.write_barrier, expected->write_barrier);
        CHECK_EQ_I64(i->control.read_barrier, expected->read_barrier);
        CHECK_EQ_I64(i->control.waits, expected->waits);
        CHECK_EQ_I64(i->control.reuse, expected->reuse);
        CHECK_EQ_I64(i->unit, known[index].unit);
        CHECK_EQ_I64(i->kind, known[index].kind);
        CHECK_EQ_I64(i->space, known[index].space);
        CHECK_EQ_I64(i->bytes, known[index].bytes);
        CHECK_EQ_I64(i->writes.first, known[index].writes.first);
        CHECK_EQ_I64(i->writes.count, known[index].writes.count);
        CHECK(!known[index].read.count || sass_reads(i, known[index].read));
    }
    sass_code_free(&code);
}

TEST_CASE(SassDecode, WhatElseIsRead)
{
    sass_code code;
    REQUIRE(read_golden("sm_80", &code));
    const sass_inst *mma = find(&code, "HMMA"), *wait = find(&code, "DEPBAR"),
                    *filler = find(&code, "LDS RZ"), *red = find(&code, "RED");
    CHECK_EQ_I64(mma->mma.m, 16);
    CHECK_EQ_I64(mma->mma.n, 8);
    CHECK_EQ_I64(mma->mma.k, 8);
    CHECK_EQ_STR(mma->mma.types, "F32");
    CHECK(wait->kind == SASS_COPY_WAIT && wait->scoreboard == 0 && wait->keep == 0);
    CHECK(filler->predicate == 7 && filler->negated && filler->guarded);
    CHECK(red->predicate == 0 && !red->negated);
    CHECK_EQ_U64(mma->address, 0x180);
    CHECK_EQ_U64(mma->low, UINT64_C(0x000000000804723c));
    CHECK_EQ_U64(mma->high, UINT64_C(0x002fe80000001004));
    CHECK_EQ_I64(mma->line, 30);
    CHECK(find(&code, "LDGSTS")->bypass && !find(&code, "LDG.E R0")->bypass);
    sass_code_free(&code);
}

/* ---- Every generation ---- */

/* The scoreboards of a load: bit i is scoreboard i. Shared memory answers in order, so a later load's scoreboard guards it, too. */
static unsigned guards_of(const sass_inst *load)
{
    return load->control.write_barrier >= 0 ? 1u << load->control.write_barrier : 0;
}

/* Whether each reader of the load's result in its block comes after a wait for it. (R1 is loaded on sm_90, and never read.) */
static bool is_waited_for(const sass_code *code, int i, bool *read)
{
    const sass_inst *load = &code->insts[i];
    const sass_block *block = &code->blocks[load->block];
    unsigned guards = guards_of(load);
    for (int k = i + 1; k < block->first + block->count; k++) {
        const sass_inst *next = &code->insts[k];
        if (next->control.waits & guards) {
            *read = true;
            return true;
        }
        if (sass_reads(next, load->writes) || sass_writes(next, load->writes)) {
            printf("%.*s uses %.*s too early\n", next->text_length, next->text, load->text_length,
                   load->text);
            return false;
        }
        if (load->space == SASS_SHARED && next->kind == SASS_LOAD && next->space == SASS_SHARED)
            guards |= guards_of(next);
    }
    return true;
}

/* Returns how many loads with readers there are. */
static int check_loads(const sass_code *code)
{
    int loads = 0;
    for (int i = 0; i < code->n_insts; i++) {
        const sass_inst *load = &code->insts[i];
        bool read = false;
        if ((load->kind == SASS_LOAD || load->kind == SASS_ATOMIC || load->kind == SASS_SHUFFLE) &&
            load->writes.count)
            CHECK(is_waited_for(code, i, &read));
        loads += read;
    }
    return loads;
}

/* The next instruction of the same block that reads a result of fixed latency comes after at least 2 issue cycles (a tensor result, a
 * special one and what a scoreboard guards left out), and every opcode is known. */
static void check_code(const sass_code *code)
{
    CHECK(check_loads(code) > 0);
    for (int i = 0; i + 1 < code->n_insts; i++) {
        const sass_inst *inst = &code->insts[i], *next = &code->insts[i + 1];
        if (!CHECK(inst->unit != SASS_UNIT_UNKNOWN))
            printf("%.*s\n", inst->text_length, inst->text);
        const bool fixed = inst->unit == SASS_UNIT_ALU || inst->unit == SASS_UNIT_FMA;
        if (fixed && inst->block == next->block && inst->writes.count && sass_reads(next, inst->writes) &&
            !CHECK(inst->control.stall >= 2))
            printf("%.*s\n", inst->text_length, inst->text);
        CHECK(inst->control.write_barrier < SASS_SCOREBOARDS &&
              inst->control.read_barrier < SASS_SCOREBOARDS);
    }
}

static const struct {
    const char *name;
} golden[] = {{"sm_75"}, {"sm_80"}, {"sm_90a"}, {"sm_120a"}};

TEST_ROWS(SassDecode, ScoreboardsOfSmallKernels, golden)
{
    sass_code code;
    REQUIRE(read_golden(golden[index].name, &code));
    check_code(&code);
    CHECK(find(&code, "HMMA") && find(&code, "LDSM") && find(&code, "STG"));
    sass_code_free(&code);
}

static const struct {
    const char *name;
} generations[] = {{"sm_75"},  {"sm_80"},   {"sm_86"},   {"sm_87"},   {"sm_88"},   {"sm_89"},
                   {"sm_90a"}, {"sm_100a"}, {"sm_103a"}, {"sm_110a"}, {"sm_120a"}, {"sm_121a"}};

/* The products of one format, as ptxas makes them for every generation. */
TEST_ROWS(SassDecode, ScoreboardsOfProducts, generations)
{
#ifdef QDNN_TEST_FULL
    static const char *const products[] = {"", "product=gemv", "product=tile tile_rows=64"};
#else
    static const char *const products[] = {""}; /* ptxas takes seconds for the others */
#endif
    char why[512];
    if (!sass_found(why, sizeof why))
        SKIP("%s", why);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const kernel_row *row = kernel_find("matmul_int4");
        const ptx_sm *sm = ptx_sm_find(generations[index].name);
        kernel_spec spec = kernel_spec_default();
        kernel_text text = {0};
        ptx_error error;
        sass_code code;
        REQUIRE(kernel_spec_set_words(
            row, &spec, "data=f16 output=f16 scale=f16 group_size=128 reduction=columns", why, sizeof why));
        REQUIRE(kernel_spec_set_words(row, &spec, products[i], why, sizeof why));
        if (!CHECK(kernel_emit(row, &spec, sm, NULL, &text, &error)))
            FAIL("%s", error.text);
        else if (sass_assemble(text.ptx, sm->name, NULL, &code, why, sizeof why)) {
            check_code(&code);
            CHECK(code.registers > 0 && code.n_loops > 0 && code.written > 50);
            sass_code_free(&code);
        } else
            FAIL("%s", why);
        free(text.ptx);
    }
}

/* ---- Loops ---- */

TEST_CASE(SassDecode, OneLoop)
{
    sass_code code;
    REQUIRE(read_golden("sm_80", &code));
    CHECK_EQ_I64(code.n_loops, 1);
    CHECK_EQ_I64(code.loops[0].head, 1);
    CHECK_EQ_I64(code.loops[0].bytes, 11 * 16);
    CHECK_EQ_I64(code.loops[0].parent, -1);
    CHECK(sass_in_loop(&code, 1, 0) && !sass_in_loop(&code, 0, 0) && !sass_in_loop(&code, 2, 0));
    CHECK_EQ_I64(code.written, 61); /* NOP and the BRA behind EXIT are padding */
    sass_code_free(&code);
}

/* clang-format off */
#define AT(line)   "\t//## File \".nv_debug_ptx_txt\", line " #line "\n"
#define SASS(text) "        /*0010*/                   " text " ;\n"

/* An outer loop of 3 rounds; its inner loop is entered each time and makes 4; then one of two ways. Two of 8 warps leave at once. */
static const char nested[] = "\n.text.k:\n"
    AT(5) SASS("LDG.E R0, desc[UR4][R4.64]") SASS("@P0 EXIT")
    ".L_outer:\n" AT(6) SASS("LDS R1, [R0]")
    ".L_inner:\n" AT(7) SASS("LDG.E R2, desc[UR4][R4.64]") SASS("@P1 BRA `(.L_inner)")
    AT(8) SASS("STS [R0], R1") SASS("@P2 BRA `(.L_other)")
    AT(9) SASS("STG.E desc[UR4][R6.64], R2") SASS("BRA `(.L_joined)")
    ".L_other:\n" AT(10) SASS("SHFL.BFLY PT, R3, R4, 0x10, 0x1f")
    ".L_joined:\n" AT(11) SASS("LDS R7, [R0]") SASS("@P3 BRA `(.L_outer)")
    AT(12) SASS("STG.E desc[UR4][R6.64], R2") SASS("EXIT");
/* clang-format on */
enum { ENTRY, OUTER, INNER, SPLIT, ONE_WAY, OTHER_WAY, JOINED, END };

TEST_CASE(SassDecode, NestedLoops)
{
    sass_code code;
    REQUIRE(sass_parse(nested, "k", &code));
    CHECK_EQ_I64(code.n_blocks, 8);
    CHECK_EQ_I64(code.n_loops, 2);
    CHECK_EQ_I64(code.loops[0].head, INNER);
    CHECK_EQ_I64(code.loops[1].head, OUTER);
    CHECK_EQ_I64(code.loops[0].parent, 1);
    CHECK_EQ_I64(code.loops[0].depth, 1);
    CHECK_EQ_I64(code.loops[1].depth, 0);
    CHECK_EQ_I64(code.loops[1].n_blocks, 6);
    CHECK_EQ_I64(code.loops[0].bytes, 2 * 16);
    CHECK_EQ_I64(code.loops[1].bytes, 10 * 16);
    CHECK_EQ_I64(code.blocks[INNER].loop, 0);
    CHECK_EQ_I64(code.blocks[OTHER_WAY].loop, 1);
    CHECK_EQ_I64(code.blocks[END].loop, -1);
    CHECK(sass_in_loop(&code, INNER, 1));
    sass_code_free(&code);
}

/* The paths of a launch, each by itself, and their blocks in order. */
TEST_CASE(SassDecode, PathsInOrder)
{
    static const int order[] = {ENTRY, OUTER, INNER, INNER, INNER, INNER,   SPLIT,     ONE_WAY, JOINED,
                                OUTER, INNER, INNER, INNER, INNER, SPLIT,   OTHER_WAY, JOINED,  OUTER,
                                INNER, INNER, INNER, INNER, SPLIT, ONE_WAY, JOINED,    END};
    uint64_t leave[13] = {[5] = 2};
    uint64_t stay[13] = {[5] = 6, [6] = 18, [7] = 72, [8] = 18, [9] = 12, [10] = 6, [11] = 18, [12] = 6};
    ptxvm_counts lines[13] = {{0}};
    const ptxvm_path of[] = {{.warps = 2, .lines = leave}, {.warps = 6, .first = 2, .lines = stay}};
    ptxvm_counters counters = {.kernel = "k", .lines = lines, .n_lines = 13, .paths = of, .n_paths = 2};
    sass_code code;
    sass_path *paths;
    REQUIRE(sass_parse(nested, "k", &code));
    REQUIRE(sass_paths(&code, &counters, 8, &paths) == 2);
    CHECK_EQ_U64(paths[1].warps, 6);
    CHECK_EQ_U64(paths[1].first, 2);
    CHECK(paths[0].misfit < 1e-6 && paths[1].misfit < 1e-6);
    CHECK(paths[0].issued > 1.999 && paths[0].issued < 2.001);
    CHECK(sass_trips(&code, &paths[1], 0) > 3.999 && sass_trips(&code, &paths[1], 0) < 4.001);
    CHECK(sass_trips(&code, &paths[1], 1) > 2.999 && sass_trips(&code, &paths[1], 1) < 3.001);
    sass_walk walk = sass_walk_begin(&code, &paths[0]);
    CHECK_EQ_I64(sass_walk_next(&walk), ENTRY);
    CHECK_EQ_I64(sass_walk_next(&walk), -1);
    walk = sass_walk_begin(&code, &paths[1]);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        CHECK_EQ_I64(sass_walk_next(&walk), order[i]);
    CHECK_EQ_I64(sass_walk_next(&walk), -1);
    sass_paths_free(paths, 2);
    sass_code_free(&code);
}

/* A function that is called from two places. */
TEST_CASE(SassDecode, CallsInOrder)
{
    static const char calls[] = "\n.text.k:\n" AT(5) SASS("LDG.E R0, desc[UR4][R4.64]")
        SASS("CALL.REL.NOINC `($sub)") AT(6) SASS("STS [R0], R1") SASS("CALL.REL.NOINC `($sub)") AT(7)
            SASS("STG.E desc[UR4][R8.64], R2") SASS("EXIT") "$sub:\n" AT(8)
                SASS("SHFL.BFLY PT, R3, R4, 0x10, 0x1f") SASS("RET.REL.NODEC R20 `(k)");
    static const int order[] = {0, 3, 1, 3, 2, -1};
    uint64_t counts[9] = {[5] = 4, [6] = 4, [7] = 4, [8] = 8};
    ptxvm_counts lines[9] = {{0}};
    const ptxvm_path of = {.warps = 4, .lines = counts};
    ptxvm_counters counters = {.kernel = "k", .lines = lines, .n_lines = 9, .paths = &of, .n_paths = 1};
    sass_code code;
    sass_path *paths;
    REQUIRE(sass_parse(calls, "k", &code) && sass_paths(&code, &counters, 4, &paths) == 1);
    sass_walk walk = sass_walk_begin(&code, paths);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        CHECK_EQ_I64(sass_walk_next(&walk), order[i]);
    sass_paths_free(paths, 1);
    sass_code_free(&code);
}

/* ptxas leaves long loops by a CALL to a label; and a loop that a branch could pass by is entered. */
TEST_CASE(SassDecode, CallsThatAreBranches)
{
    static const char listing[] =
        "\n.text.k:\n" AT(5) SASS("LDG.E R0, desc[UR4][R4.64]") SASS("@P1 BRA `(.L_out)") ".L_loop:\n" AT(6)
            SASS("LDG.E R2, desc[UR4][R4.64]") SASS("@!P0 CALL.REL.NOINC `(.L_out)") AT(7)
                SASS("BRA `(.L_loop)") ".L_out:\n" AT(8) SASS("STG.E desc[UR4][R8.64], R2") SASS("EXIT");
    static const int order[] = {0, 1, 2, 1, 2, 1, 3, -1};
    uint64_t counts[9] = {[5] = 4, [6] = 12, [7] = 8, [8] = 4};
    ptxvm_counts lines[9] = {{0}};
    const ptxvm_path of = {.warps = 4, .lines = counts};
    ptxvm_counters counters = {.kernel = "k", .lines = lines, .n_lines = 9, .paths = &of, .n_paths = 1};
    sass_code code;
    sass_path *paths;
    REQUIRE(sass_parse(listing, "k", &code) && sass_paths(&code, &counters, 4, &paths) == 1);
    CHECK(paths->misfit < 1e-6);
    CHECK_EQ_I64(code.n_loops, 1);
    CHECK(sass_trips(&code, paths, 0) > 2.999 && sass_trips(&code, paths, 0) < 3.001);
    sass_walk walk = sass_walk_begin(&code, paths);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        CHECK_EQ_I64(sass_walk_next(&walk), order[i]);
    sass_paths_free(paths, 1);
    sass_code_free(&code);
}

/* A block that says nothing of how often it runs; and one with two lines that do. */
#define STEP(n)       SASS("@P4 BRA `(.L_step" #n ")") ".L_step" #n ":\n" SASS("BSYNC B0")
#define VOTE(n, a, b) AT(a) SASS("IADD3 R6, R6, 0x1, RZ") AT(b) SASS("IADD3 R7, R7, 0x1, RZ") STEP(n)

/* ptxas has peeled the first trip off a loop of 4, and dropped lines from it: what is left of them in the loop says 4, too. */
TEST_CASE(SassDecode, PeeledTrips)
{
    static const char listing[] = "\n.text.k:\n" AT(5) SASS("LDG.E R0, desc[UR4][R4.64]")
        SASS("@P0 BRA `(.L_out)") AT(9) SASS("LDG.E R2, desc[UR4][R4.64]") STEP(1) STEP(2) STEP(3) STEP(4)
            STEP(5) STEP(6) SASS("@P1 BRA `(.L_out)") ".L_loop:\n" VOTE(7, 7, 8) VOTE(8, 12, 13)
                VOTE(9, 14, 15) SASS("@P2 BRA `(.L_next)") AT(10) SASS("STS [R6], R7") ".L_next:\n" AT(9)
                    SASS("LDG.E R2, desc[UR4][R4.64]") SASS("@P3 BRA `(.L_loop)") ".L_out:\n" AT(11)
                        SASS("STG.E desc[UR4][R8.64], R2") SASS("EXIT");
    static const int order[] = {0, 1, 2,  3,  4,  5, 6, 7,  8,  9,  10, 11, 12, 13,
                                8, 9, 10, 11, 13, 8, 9, 10, 11, 12, 13, 14, -1};
    uint64_t counts[16] = {[5] = 4,  [7] = 16,  [8] = 16,  [9] = 16,  [10] = 8,
                           [11] = 4, [12] = 16, [13] = 16, [14] = 16, [15] = 16};
    ptxvm_counts lines[16] = {{0}};
    const ptxvm_path of = {.warps = 4, .lines = counts};
    ptxvm_counters counters = {.kernel = "k", .lines = lines, .n_lines = 16, .paths = &of, .n_paths = 1};
    sass_code code;
    sass_path *paths;
    REQUIRE(sass_parse(listing, "k", &code) && sass_paths(&code, &counters, 4, &paths) == 1);
    CHECK(paths->misfit < 1e-6);
    CHECK_EQ_I64(code.n_loops, 1);
    CHECK(sass_trips(&code, paths, 0) == 3);
    sass_walk walk = sass_walk_begin(&code, paths);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        CHECK_EQ_I64(sass_walk_next(&walk), order[i]);
    sass_paths_free(paths, 1);
    sass_code_free(&code);
}
