/* The model of time (clock/machine) on programs of a few instructions whose times can be worked out by hand. The parameters are round
 * numbers, not those of a board. */
#include "clock/machine/machine.h"
#include "test.h"

enum { STEPS = 4096, NONE = CLOCK_NO_SCOREBOARD };

/* One SM at 1 MHz, so that a cycle is a microsecond. */
static clock_parameters plain(void)
{
    clock_parameters p = {.sms = 1, .mhz = 1};
    for (int u = 0; u < CLOCK_UNITS; u++) {
        p.interval[u] = 1;
        p.latency[u] = 20;
    }
    p.tensor_rate = 256;
    p.shuffle_latency = 25;
    p.l1_latency = 30;
    p.l2_latency = 200;
    p.dram_latency = 500;
    p.barrier_latency = 10;
    p.fence_latency = 100;
    p.l1_bytes = 128;
    p.sm_bytes = 64;
    p.l2_bytes = 64;
    p.dram_bytes = 16;
    p.dram_mixed = 1;
    p.dram_channels = 1;
    p.lsu_queue = 1000;
    return p;
}

static clock_instruction plain_instruction(clock_unit unit, int stall)
{
    return (clock_instruction){
        .unit = (uint8_t)unit, .stall = (uint8_t)stall, .write_barrier = NONE, .read_barrier = NONE};
}

static clock_instruction memory_instruction(clock_action action, float sectors, float dram)
{
    clock_instruction i = plain_instruction(CLOCK_GLOBAL, 1);
    i.action = (uint8_t)action;
    i.sectors = sectors;
    i.l2 = 1;
    i.dram = dram;
    return i;
}

static clock_instruction action_of(clock_action action, int number)
{
    clock_instruction i = plain_instruction(CLOCK_CONTROL, 1);
    i.action = (uint8_t)action;
    i.number = (uint8_t)number;
    return i;
}

enum { CLASSES = 4 };

/* A program with a few warp classes, whose steps are given as instruction numbers. */
typedef struct small {
    clock_instruction code[8];
    uint32_t steps[CLASSES][STEPS];
    clock_trace traces[CLASSES];
    uint16_t warps[2][64];
    clock_block blocks[2];
    clock_run_of_blocks runs[2];
    clock_program program;
    clock_launch launch;
} small;

static void add(small *s, int trace, uint32_t instruction, int times)
{
    for (int i = 0; i < times; i++)
        s->steps[trace][s->traces[trace].length++] = instruction;
}

/* `warps` warps of class 0 per block. */
static void set(small *s, int warps, uint64_t blocks, int per_sm)
{
    for (int t = 0; t < CLASSES; t++)
        s->traces[t].steps = s->steps[t];
    s->blocks[0] = (clock_block){.warps = s->warps[0], .n_warps = warps};
    s->runs[0] = (clock_run_of_blocks){blocks, 0};
    s->program = (clock_program){s->code, 8, s->traces, CLASSES, s->blocks, 2};
    s->launch = (clock_launch){.runs = s->runs, .n_runs = 1, .blocks_per_sm = per_sm};
}

static clock_result run(const small *s, const clock_parameters *p)
{
    clock_result r;
    const char *error = NULL;
    if (!clock_run(&s->program, &s->launch, p, &r, &error))
        FAIL("%s", error);
    clock_result_free(&r);
    return r;
}

TEST_CASE(ClockMachine, ADependentChainTakesItsLatencies)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_FMA, 4);
    add(&s, 0, 0, 100);
    set(&s, 1, 1, 1);
    clock_result r = run(&s, &p);
    CHECK(r.cycles == 99 * 4 + 1); /* the last one issues after 99 stalls of 4 */
    CHECK(r.stalls[CLOCK_STALL_FIXED] == 99 * 3);
    CHECK(r.issued == 100);
    CHECK(r.us == r.cycles);
}

TEST_CASE(ClockMachine, FourWarpsHideAStallOfFour)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_FMA, 4);
    add(&s, 0, 0, 100);
    set(&s, 16, 1, 1); /* four per scheduler */
    clock_result r = run(&s, &p);
    CHECK(r.cycles == 400);
    CHECK(r.issue_busy == 1);
    CHECK(r.issue_bound_us == 400);
}

TEST_CASE(ClockMachine, APipeOfHalfRateTakesEveryOtherCycle)
{
    static small s;
    clock_parameters p = plain();
    p.interval[CLOCK_ALU] = 2;
    s.code[0] = plain_instruction(CLOCK_ALU, 1);
    add(&s, 0, 0, 50);
    set(&s, 8, 1, 1);
    clock_result r = run(&s, &p);
    CHECK(r.cycles == 2 * 99 + 1);
    CHECK(r.busy[CLOCK_ALU] > 0.99);
}

TEST_CASE(ClockMachine, TensorInstructionsTakeTheirWork)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_TENSOR, 1);
    s.code[0].work = 2048; /* m16n8k16 */
    add(&s, 0, 0, 100);
    set(&s, 4, 1, 1);
    CHECK(run(&s, &p).cycles == 99 * 8 + 1);
}

/* Each load waits for the one before it, so it takes the latency and, before it, the passing of its bytes. */
TEST_CASE(ClockMachine, ALoadThatIsWaitedForTakesTheLatencyOfItsMemory)
{
    static const struct {
        float l2, dram;
        int cycles;
    } levels[] = {{0, 0, 30}, {1, 0, 2 + 200}, {1, 1, 8 + 500}};
    clock_parameters p = plain();
    for (int level = 0; level < 3; level++) {
        static small s;
        s = (small){0};
        s.code[0] = memory_instruction(CLOCK_LOAD, 4, levels[level].dram);
        s.code[0].l2 = levels[level].l2;
        s.code[0].write_barrier = 0;
        s.code[0].wait_mask = 1;
        add(&s, 0, 0, 10);
        set(&s, 1, 1, 1);
        clock_result r = run(&s, &p);
        CHECK(r.cycles == 9 * levels[level].cycles + 1);
        CHECK(r.stalls[CLOCK_STALL_GLOBAL] == 9 * (levels[level].cycles - 1));
    }
}

TEST_CASE(ClockMachine, AStreamSaturatesDram)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = memory_instruction(CLOCK_LOAD, 16, 1); /* 512 bytes */
    s.code[0].write_barrier = 0;
    s.code[1] = plain_instruction(CLOCK_FMA, 1);
    s.code[1].wait_mask = 1;
    for (int i = 0; i < 100; i++) {
        add(&s, 0, 0, 4);
        add(&s, 0, 1, 1);
    }
    set(&s, 32, 1, 1);
    clock_result r = run(&s, &p);
    double least = 32.0 * 400 * 512 / 16;
    CHECK(r.dram_bytes == 32.0 * 400 * 512);
    CHECK(r.cycles >= least && r.cycles <= least + 600);
    CHECK(r.dram_busy > 0.99);
}

/* Two SMs have the DRAM of one: twice the time for twice the bytes; and one that stands for both gives the same. */
TEST_CASE(ClockMachine, SmsShareDram)
{
    static small s;
    clock_parameters p = plain();
    p.sms = 8;
    s.code[0] = memory_instruction(CLOCK_LOAD, 16, 1);
    add(&s, 0, 0, 100);
    set(&s, 8, 8, 1);
    s.code[0].write_barrier = 0;
    s.code[1] = plain_instruction(CLOCK_FMA, 1);
    s.code[0].wait_mask = s.code[1].wait_mask = 1;
    add(&s, 0, 1, 1);
    clock_result all = run(&s, &p);
    s.launch.budget = 1;
    clock_result few = run(&s, &p);
    double least = 8.0 * 8 * 100 * 512 / 16;
    CHECK_EQ_I64(all.simulated_sms, 8);
    CHECK_EQ_I64(few.simulated_sms, 4);
    CHECK(all.cycles >= least && all.cycles < least * 1.01);
    CHECK(few.cycles >= least && few.cycles < least * 1.01);
    CHECK(few.dram_bytes == all.dram_bytes);
    CHECK(few.issued == all.issued);
}

TEST_CASE(ClockMachine, TooFewSectorsInFlightLeaveDramIdle)
{
    static small s;
    clock_parameters p = plain();
    p.in_flight = 32;
    s.code[0] = memory_instruction(CLOCK_LOAD, 16, 1);
    add(&s, 0, 0, 100);
    set(&s, 4, 1, 1);
    s.code[0].write_barrier = 0;
    s.code[1] = plain_instruction(CLOCK_FMA, 1);
    s.code[1].wait_mask = 1;
    add(&s, 0, 1, 1);
    double cycles = run(&s, &p).cycles; /* two loads at a time: a pair takes 64 cycles and a latency */
    CHECK(cycles > 200 * 500 && cycles < 200 * (500 + 64) + 600);
}

TEST_CASE(ClockMachine, AlternatingReadsAndWritesCostDramItsTurns)
{
    static small s;
    clock_parameters p = plain();
    p.dram_mixed = 0.8;
    s.code[0] = memory_instruction(CLOCK_LOAD, 16, 1);
    s.code[1] = memory_instruction(CLOCK_STORE, 16, 1);
    for (int i = 0; i < 500; i++) {
        add(&s, 0, 0, 1);
        add(&s, 0, 1, 1);
    }
    set(&s, 4, 1, 1);
    double least = 4000.0 * 512 / 16, cycles = run(&s, &p).cycles;
    CHECK(cycles > least * 1.2 && cycles < least / 0.8 + 600);
    s.launch.l2_bytes = 4000 * 512; /* L2 keeps what is written */
    CHECK(run(&s, &p).dram_bytes == 2000 * 512);
}

TEST_CASE(ClockMachine, BankConflictsTakePasses)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_SHARED, 1);
    s.code[0].wavefronts = 4;
    s.code[0].write_barrier = 0;
    s.code[1] = plain_instruction(CLOCK_FMA, 1);
    s.code[1].wait_mask = 1;
    add(&s, 0, 0, 100);
    add(&s, 0, 1, 1);
    set(&s, 4, 1, 1);
    CHECK(run(&s, &p).cycles == 4 * 400 - 1 + 20 + 1); /* the last pass begins at 1599 */
    s.code[0].wavefronts = 1;
    CHECK(run(&s, &p).cycles == 400 - 1 + 20 + 1);
}

TEST_CASE(ClockMachine, ShufflesHaveALatencyOfTheirOwn)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_SHARED, 1);
    s.code[0].action = CLOCK_SHUFFLE;
    s.code[0].write_barrier = 0;
    s.code[0].wait_mask = 1;
    add(&s, 0, 0, 5);
    set(&s, 1, 1, 1);
    CHECK(run(&s, &p).cycles == 4 * 25 + 1);
}

/* A warp with 100 instructions and one with 10 meet at a barrier; both go on 10 cycles after the slow one. */
TEST_CASE(ClockMachine, ABarrierWaitsForTheSlowest)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_FMA, 1);
    s.code[1] = action_of(CLOCK_BARRIER, 0);
    add(&s, 0, 0, 100);
    add(&s, 1, 0, 10);
    for (int t = 0; t < 2; t++) {
        add(&s, t, 1, 1);
        add(&s, t, 0, 1);
    }
    s.warps[0][1] = 1;
    set(&s, 2, 1, 1);
    clock_result r = run(&s, &p);
    CHECK(r.cycles == 100 + 10 + 1);
    CHECK(r.stalls[CLOCK_STALL_BARRIER] == 9 + 99);
}

/* Two pairs of warps, each with a barrier of its own: the pair with 10 instructions does not wait for that with 100. */
TEST_CASE(ClockMachine, BarriersOfOtherNumbersAreApart)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_FMA, 1);
    for (int pair = 0; pair < 2; pair++) {
        s.code[1 + pair] = action_of(CLOCK_BARRIER, 2);
        s.code[1 + pair].barrier = (uint8_t)(1 + pair);
    }
    for (int t = 0; t < 4; t++) {
        add(&s, t, 0, t == 0 ? 100 : 10);
        add(&s, t, 1 + t / 2, 1);
        add(&s, t, 0, 1);
        s.warps[0][t] = (uint16_t)t;
    }
    set(&s, 4, 1, 1);
    clock_result r = run(&s, &p);
    CHECK(r.cycles == 100 + 10 + 1);
    CHECK(r.stalls[CLOCK_STALL_BARRIER] ==
          9 + 99 + 9 + 9); /* 10 cycles of the barrier; 90 more for one warp */
}

/* A warp that only arrives goes on at once; the one that waits for it goes on 10 cycles after its arrival. */
TEST_CASE(ClockMachine, AnArrivalDoesNotWait)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_FMA, 1);
    s.code[1] = action_of(CLOCK_BARRIER, 2);
    s.code[2] = action_of(CLOCK_BARRIER_ARRIVE, 2);
    s.code[1].barrier = s.code[2].barrier = 3;
    add(&s, 0, 1, 1);
    add(&s, 0, 0, 1);
    add(&s, 1, 0, 50);
    add(&s, 1, 2, 1);
    add(&s, 1, 0, 5);
    s.warps[0][1] = 1;
    set(&s, 2, 1, 1);
    clock_result r = run(&s, &p);
    CHECK(r.cycles == 50 + 10 + 1);
    CHECK(r.stalls[CLOCK_STALL_BARRIER] == 50 + 9);
}

TEST_CASE(ClockMachine, ABarrierDoesNotWaitForWarpsThatHaveFinished)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = plain_instruction(CLOCK_FMA, 1);
    s.code[1] = action_of(CLOCK_BARRIER, 0);
    add(&s, 0, 1, 1);
    add(&s, 0, 0, 1);
    add(&s, 1, 0, 50);
    s.warps[0][1] = 1;
    set(&s, 2, 1, 1);
    CHECK(run(&s, &p).cycles == 49 + 10 + 1);
}

/* Of two groups in flight, waiting until one is open waits for the older only. */
TEST_CASE(ClockMachine, GroupsOfAsynchronousCopiesAreWaitedForInOrder)
{
    clock_parameters p = plain();
    for (int open = 0; open < 2; open++) {
        static small s;
        s = (small){0};
        s.code[0] = memory_instruction(CLOCK_COPY_ASYNC, 4, 1);
        s.code[1] = action_of(CLOCK_COMMIT, 0);
        s.code[2] = plain_instruction(CLOCK_FMA, 100);
        s.code[3] = action_of(CLOCK_WAIT_GROUPS, open);
        add(&s, 0, 0, 1);
        add(&s, 0, 1, 1);
        add(&s, 0, 2, 1); /* at 2; the next at 102 */
        add(&s, 0, 0, 1);
        add(&s, 0, 1, 1);
        add(&s, 0, 3, 1);
        set(&s, 1, 1, 1);
        clock_result r = run(&s, &p);
        CHECK(r.cycles == (open ? 0 : 102) + 8 + 500 + 1);
        CHECK(r.stalls[CLOCK_STALL_ASYNC] > 390);
    }
}

/* A producer copies in bulk, two consumers wait for the mbarrier's first phase, then for a second that has only arrivals. */
TEST_CASE(ClockMachine, AnMbarrierWaitsForArrivalsAndBytes)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = action_of(CLOCK_MBAR_ARRIVE, 3);
    s.code[0].sectors = 64; /* expected */
    s.code[1] = memory_instruction(CLOCK_COPY_BULK, 64, 1);
    s.code[1].number = 3;
    s.code[2] = action_of(CLOCK_MBAR_WAIT, 3);
    s.code[3] = plain_instruction(CLOCK_FMA, 255);
    s.code[4] = action_of(CLOCK_MBAR_ARRIVE, 3);
    add(&s, 0, 0, 1);
    add(&s, 0, 1, 1); /* at 1: 2048 bytes take 128 cycles, then 500 */
    add(&s, 0, 3, 4); /* 4 * 255 cycles later ... */
    add(&s, 0, 4, 1); /* ... it arrives again */
    add(&s, 1, 2, 2);
    s.warps[0][1] = s.warps[0][2] = 1;
    set(&s, 3, 1, 1);
    s.blocks[0].mbarrier_arrivals[3] = 1;
    clock_result r = run(&s, &p);
    CHECK(r.cycles == 2 + 4 * 255 + 1 + 1); /* arrives at 1022, both are released a cycle later */
    CHECK(r.stalls[CLOCK_STALL_MBARRIER] > 2 * 600);
    s.traces[1].length = 1;
    s.traces[0].length = 2;
    CHECK(run(&s, &p).cycles == 1 + 128 + 500 + 1);
}

TEST_CASE(ClockMachine, WavesFollowEachOther)
{
    static small s;
    clock_parameters p = plain();
    p.sms = 2;
    p.block_start = 300;
    s.code[0] = plain_instruction(CLOCK_FMA, 10);
    add(&s, 0, 0, 100);
    set(&s, 1, 5, 2); /* five blocks, four places */
    CHECK(run(&s, &p).cycles == 991 + 300 + 991);
    s.runs[0].count = 4;
    CHECK(run(&s, &p).cycles == 991);
    p.block_interval = 50; /* dispatched one after another */
    CHECK(run(&s, &p).cycles == 991 + 150);
}

TEST_CASE(ClockMachine, StoresAreNotWaitedForButCount)
{
    static small s;
    clock_parameters p = plain();
    s.code[0] = memory_instruction(CLOCK_STORE, 4, 1);
    s.code[1] = plain_instruction(CLOCK_FMA, 1);
    add(&s, 0, 0, 1);
    add(&s, 0, 1, 50);
    set(&s, 1, 1, 1);
    clock_result r = run(&s, &p);
    CHECK(r.stalls[CLOCK_STALL_GLOBAL] == 0);
    CHECK(r.cycles == 8 + 500);
    CHECK(r.dram_bytes == 128);
}

/* 7 blocks write and arrive; the last one waits for its atomic and adds up what the others wrote. */
TEST_CASE(ClockMachine, TheLastBlockJoins)
{
    static small s;
    clock_parameters p = plain();
    p.sms = 8;
    p.l2_bytes = 1e9;
    s.code[0] = memory_instruction(CLOCK_STORE, 4, 0);
    s.code[1] = action_of(CLOCK_FENCE, 0);
    s.code[2] = memory_instruction(CLOCK_ATOMIC, 1, 0);
    s.code[2].write_barrier = 0;
    s.code[3] = memory_instruction(CLOCK_LOAD, 4, 0);
    s.code[3].wait_mask = 1;
    s.code[3].write_barrier = 0;
    for (int t = 0; t < 2; t++)
        for (uint32_t i = 0; i < 3; i++)
            add(&s, t, i, 1);
    add(&s, 1, 3, 7);
    s.warps[1][0] = 1;
    set(&s, 1, 7, 1);
    s.blocks[1] = (clock_block){.warps = s.warps[1], .n_warps = 1};
    s.runs[1] = (clock_run_of_blocks){1, 1};
    s.launch.n_runs = 2;
    /* the store is there after 2 + 200, the fence ends 100 later, the atomic returns after 0.5 + 200, each load but the last after 202 */
    CHECK(run(&s, &p).cycles == 202 + 100 + 201 + 6 * 202 + 1);
}

TEST_CASE(ClockMachine, WhatNeverEndsIsRefused)
{
    static small s;
    clock_parameters p = plain();
    clock_result r;
    const char *error = NULL;
    s.code[0] = action_of(CLOCK_MBAR_WAIT, 0);
    add(&s, 0, 0, 1);
    set(&s, 1, 1, 1);
    s.blocks[0].mbarrier_arrivals[0] = 1;
    CHECK(!clock_run(&s.program, &s.launch, &p, &r, &error));
    CHECK_EQ_STR(error, "warps wait for each other for ever");
    s.launch.blocks_per_sm = 0;
    CHECK(!clock_run(&s.program, &s.launch, &p, &r, &error));
    CHECK_EQ_STR(error, "no block fits on an SM");
}

/* ---- Parameters ---- */

TEST_CASE(ClockParameters, EveryBoardHasBothCorners)
{
    for (int i = 0; i < board_count(); i++) {
        clock_parameters low, high;
        REQUIRE(clock_parameters_of(board_at(i), CLOCK_LOW, &low));
        REQUIRE(clock_parameters_of(board_at(i), CLOCK_HIGH, &high));
        CHECK(low.dram_bytes >= high.dram_bytes && high.dram_bytes > 0);
        CHECK(low.dram_latency <= high.dram_latency && low.dram_latency > low.l2_latency);
        CHECK(low.block_start <= high.block_start);
        CHECK(low.tensor_rate == high.tensor_rate && low.tensor_rate > 0);
    }
}

TEST_CASE(ClockParameters, RatesAreThoseOfTheWhitePapers)
{
    clock_parameters p;
    REQUIRE(clock_parameters_of(board_find("a100"), CLOCK_LOW, &p));
    CHECK(p.tensor_rate == 256);       /* 1024 FMA per SM */
    CHECK(p.interval[CLOCK_FMA] == 2); /* 64 lanes */
    CHECK(p.interval[CLOCK_HALF] == 1);
    CHECK(p.interval[CLOCK_XU] == 8);
    REQUIRE(clock_parameters_of(board_find("rtx3090"), CLOCK_LOW, &p));
    CHECK(p.tensor_rate == 64);
    CHECK(p.interval[CLOCK_FMA] == 1);
    CHECK(p.interval[CLOCK_F64] == 64); /* 2 lanes per SM */
    REQUIRE(clock_parameters_of(board_find("h100"), CLOCK_LOW, &p));
    CHECK(p.tensor_rate == 512 * 0.63); /* what mma.sync has of it */
}
