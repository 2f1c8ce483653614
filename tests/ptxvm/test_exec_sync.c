/* Lanes and warps that wait for each other: locks, barriers, member masks. */
#include "test_exec.h"

/* Every lane of the block takes one lock in turn: the holder must run on while others of its own warp spin.
 */
TEST_CASE(PtxvmSync, SpinLockBetweenLanesOfAWarp)
{
    uint32_t out[2] = {0};
    exec_simple(
        EXEC_KERNEL(
            "add.u64 d1, d0, 4;\n"
            "TRY: atom.global.cas.b32 r4, [d0], 0, 1; setp.ne.u32 p0, r4, 0; @p0 bra TRY;\n"
            "membar.gl; ld.global.u32 r5, [d1]; add.u32 r5, r5, 1; st.global.u32 [d1], r5; membar.gl;\n"
            "atom.global.exch.b32 r6, [d0], 0;"),
        2, 96, out, 2);
    CHECK_EQ_U32(out[0], 0);
    CHECK_EQ_U32(out[1], 192);
}

/* The same in shared memory, with the unlock after the place where the lanes would meet. */
TEST_CASE(PtxvmSync, SpinLockInSharedMemory)
{
    uint32_t out[1] = {0};
    exec_simple(
        EXEC_KERNEL(
            ".shared .u32 lock; .shared .u32 count; mov.u32 r9, 0;\n"
            "TRY: atom.shared.cas.b32 r4, [lock], 0, 1; setp.eq.u32 p0, r4, 0; @p0 bra GOT; bra TRY;\n"
            "GOT: ld.volatile.shared.u32 r5, [count]; add.u32 r5, r5, 1; st.volatile.shared.u32 [count], "
            "r5;\n"
            "atom.shared.exch.b32 r6, [lock], 0; bar.sync 0; ld.shared.u32 r7, [count]; st.global.u32 [d0], "
            "r7;"),
        1, 70, out, 1);
    CHECK_EQ_U32(out[0], 70);
}

/* Lane 0 waits for a flag that lane 1 of the same warp sets after the branch. */
TEST_CASE(PtxvmSync, LaneWaitsForALaneBehindTheBranch)
{
    uint32_t out[3] = {0};
    exec_simple(EXEC_KERNEL("mov.u32 r0, %tid.x; setp.ne.u32 p0, r0, 0; @p0 bra AFTER;\n"
                            "WAIT: ld.volatile.global.u32 r4, [d0]; setp.eq.u32 p1, r4, 0; @p1 bra WAIT; "
                            "st.global.u32 [d0+4], r4;\n"
                            "AFTER: setp.eq.u32 p2, r0, 1; @p2 st.volatile.global.u32 [d0], 42; @p2 "
                            "st.global.u32 [d0+8], 7;"),
                1, 32, out, 3);
    CHECK_EQ_U32(out[0], 42);
    CHECK_EQ_U32(out[1], 42);
    CHECK_EQ_U32(out[2], 7);
}

/* Warp 0 writes, all read what their neighbour wrote, several rounds. */
TEST_CASE(PtxvmSync, BarrierRounds)
{
    uint32_t out[128] = {0};
    exec_simple(
        EXEC_KERNEL(
            EXEC_INDEX
            ".shared .u32 buffer[128]; mov.u32 r10, buffer; shl.b32 r11, r0, 2; add.u32 r12, r10, r11;\n"
            "add.u32 r13, r0, 1; and.b32 r13, r13, 127; shl.b32 r13, r13, 2; add.u32 r13, r10, r13;\n"
            "mov.u32 r4, r0; mov.u32 r5, 0;\n"
            "ROUND: st.shared.u32 [r12], r4; bar.sync 0; ld.shared.u32 r4, [r13]; bar.sync 0;\n"
            "add.u32 r5, r5, 1; setp.lt.u32 p0, r5, 50; @p0 bra ROUND;\n"
            "st.global.u32 [d1], r4;"),
        1, 128, out, 128);
    for (uint32_t i = 0; i < 128; i++)
        CHECK_EQ_U32(out[i], (i + 50) % 128);
}

/* Warp 0 produces, warp 1 consumes: two barriers of 64 threads, each arrived at by one and waited at by the
 * other. */
TEST_CASE(PtxvmSync, ProducerArrivesConsumerSyncs)
{
    uint32_t out[32] = {0};
    exec_simple(
        EXEC_KERNEL(
            EXEC_INDEX
            ".shared .u32 slot[32]; mov.u32 r10, slot; and.b32 r11, r0, 31; shl.b32 r12, r11, 2;\n"
            "add.u32 r10, r10, r12; mul.wide.u32 d3, r11, 4; add.u64 d3, d0, d3;\n"
            "mov.u32 r4, 0; mov.u32 r6, 0; setp.ge.u32 p0, r0, 32; @p0 bra CONSUME;\n"
            "PRODUCE: bar.sync 2, 64; add.u32 r5, r4, r11; st.shared.u32 [r10], r5; bar.arrive 1, 64;\n"
            "add.u32 r4, r4, 1; setp.lt.u32 p1, r4, 10; @p1 bra PRODUCE; bra END;\n"
            "CONSUME: bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 r5, [r10]; add.u32 r6, r6, r5;\n"
            "add.u32 r4, r4, 1; setp.lt.u32 p1, r4, 10; @p1 bra CONSUME; st.global.u32 [d3], r6;\n"
            "END:"),
        1, 64, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], 45 + 10 * i);
}

TEST_CASE(PtxvmSync, BarrierReductions)
{
    uint32_t out[72] = {0};
    exec_simple(
        EXEC_KERNEL(
            EXEC_INDEX
            "setp.lt.u32 p0, r0, 10; setp.lt.u32 p1, r0, 100;\n"
            "bar.red.popc.u32 r4, 0, p0; bar.red.popc.u32 r5, 0, !p0;\n"
            "bar.red.and.pred p2, 0, p1; bar.red.and.pred p3, 0, p0; bar.red.or.pred p4, 0, p0; "
            "bar.red.or.pred p5, 0, !p1;\n"
            "selp.u32 r6, 1, 0, p2; selp.u32 r7, 2, 0, p3; selp.u32 r8, 4, 0, p4; selp.u32 r9, 8, 0, p5;\n"
            "add.u32 r6, r6, r7; add.u32 r6, r6, r8; add.u32 r6, r6, r9;\n"
            "shl.b32 r4, r4, 16; shl.b32 r5, r5, 8; or.b32 r4, r4, r5; or.b32 r4, r4, r6; st.global.u32 "
            "[d1], r4;"),
        1, 72, out, 72);
    for (uint32_t i = 0; i < 72; i++)
        CHECK_EQ_U32(out[i], 10u << 16 | 62u << 8 | 5u);
}

/* Threads that have left count as arrived; a half of a warp that syncs elsewhere in the text does too. */
TEST_CASE(PtxvmSync, ExitedThreadsDoNotHoldABarrier)
{
    uint32_t out[96] = {0};
    exec_simple(
        EXEC_KERNEL(
            EXEC_INDEX
            "setp.ge.u32 p0, r0, 64; @p0 exit; setp.eq.u32 p1, r0, 9; @p1 exit; setp.lt.u32 p2, r0, 40;\n"
            "@p2 bra LOW; barrier.sync 0; mov.u32 r4, 1; bra END;\n"
            "LOW: barrier.sync 0; mov.u32 r4, 2;\n"
            "END: st.global.u32 [d1], r4;"),
        1, 96, out, 96);
    for (uint32_t i = 0; i < 96; i++)
        CHECK_EQ_U32(out[i], i >= 64 || i == 9 ? 0 : i < 40 ? 2 : 1);
}

/* A shuffle whose members come from both sides of a branch, at two places of the text. */
TEST_CASE(PtxvmSync, MembersGatherFromTwoPlaces)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_KERNEL(EXEC_INDEX
                            "mul.lo.u32 r4, r0, 10; mov.u32 r5, r4; setp.lt.u32 p0, r0, 12; @p0 bra LOW;\n"
                            "shfl.sync.bfly.b32 r6, r5, 31, 31, 0xffffffff; bra END;\n"
                            "LOW: add.u32 r4, r4, 1; shfl.sync.bfly.b32 r6, r4, 31, 31, 0xffffffff;\n"
                            "END: st.global.u32 [d1], r6;"),
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], 10 * (31 - i) + (31 - i < 12));
}

/* The same place, reached by different calls: registers are in different frames. */
TEST_CASE(PtxvmSync, MembersGatherFromTwoCalls)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_HEADER
                ".func (.reg .b32 result) swap(.reg .b32 value)\n{\n"
                "shfl.sync.bfly.b32 result, value, 16, 31, 0xffffffff; ret;\n}\n"
                ".visible .entry k(.param .u64 out)\n{\n.reg .pred p<4>; .reg .b32 r<10>; .reg .b64 d<4>;\n"
                "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1; "
                "setp.lt.u32 p0, r0, 16;\n"
                "@p0 bra LOW; add.u32 r1, r0, 100; call (r2), swap, (r1); bra END;\n"
                "LOW: add.u32 r1, r0, 200; call (r2), swap, (r1);\n"
                "END: st.global.u32 [d1], r2; ret;\n}\n",
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], (i ^ 16) + (i < 16 ? 100 : 200));
}

/* Two halves of a warp with masks of their own, together at one place; and a mask with lanes that have
 * exited. */
TEST_CASE(PtxvmSync, MasksOfTheirOwn)
{
    uint32_t out[32] = {0};
    exec_simple(
        EXEC_KERNEL(
            EXEC_INDEX
            "setp.lt.u32 p0, r0, 16; selp.b32 r4, 0x0000ffff, 0xffff0000, p0; and.b32 r5, r0, 1;\n"
            "setp.eq.u32 p1, r5, 0; vote.sync.ballot.b32 r6, p1, r4; setp.eq.u32 p2, r0, 31; @p2 exit;\n"
            "vote.sync.ballot.b32 r7, !p1, 0xffffffff; bar.warp.sync 0xffffffff; xor.b32 r6, r6, r7; "
            "st.global.u32 [d1], r6;"),
        1, 32, out, 32);
    for (uint32_t i = 0; i < 31; i++)
        CHECK_EQ_U32(out[i], (i < 16 ? 0x00005555u : 0x55550000u) ^ 0x2aaaaaaau);
    CHECK_EQ_U32(out[31], 0);
}

/* Lanes that wait at the join are released when the others need them as members. */
TEST_CASE(PtxvmSync, MembersFromBehindTheJoin)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_KERNEL(EXEC_INDEX "mov.u32 r4, r0; setp.ge.u32 p0, r0, 8; @p0 bra JOIN; bar.warp.sync "
                                       "0xffffffff; add.u32 r4, r4, 50;\n"
                                       "JOIN: @p0 bar.warp.sync 0xffffffff; st.global.u32 [d1], r4;"),
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i < 8 ? i + 50 : i);
}

/* All blocks of a grid meet at a counter: every one must have begun before any can end. */
TEST_CASE(PtxvmSync, GridBarrierByAtomics)
{
    uint32_t out[101] = {0};
    for (uint64_t seed = 0; seed < 3; seed++) {
        ptxvm_config config = {.seed = seed};
        exec_run run = exec_open(
            &config,
            EXEC_KERNEL(
                "mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x; mov.u32 r2, %nctaid.x; setp.ne.u32 p0, r0, 0; @p0 "
                "bra SYNC;\n"
                "atom.global.add.u32 r4, [d0], 1;\n"
                "SPIN: ld.acquire.gpu.global.u32 r5, [d0]; setp.lt.u32 p1, r5, r2; @p1 bra SPIN;\n"
                "SYNC: bar.sync 0; mul.wide.u32 d2, r1, 4; add.u64 d2, d0, d2; setp.eq.u32 p2, r0, 33;\n"
                "@p2 ld.global.u32 r6, [d0]; @p2 st.global.u32 [d2+4], r6;"));
        memset(out, 0, sizeof out);
        ptxvm_launch_config grid = exec_grid(100, 64);
        grid.cooperative = seed == 1;
        CHECK_EQ_I64(exec_launch(&run, grid, out, 101), PTXVM_OK);
        for (int i = 0; i < 101; i++)
            CHECK_EQ_U32(out[i], 100);
        exec_close(&run);
    }
}
