/* Control flow: loops, divergence and where lanes meet again. */
#include "test_exec.h"

TEST_CASE(PtxvmFlow, EachThreadWritesItsIndex)
{
    uint32_t out[96] = {0};
    exec_simple(EXEC_KERNEL(EXEC_INDEX "mad.lo.u32 r4, r2, 3, 7; st.global.u32 [d1], r4;"), 3, 32, out, 96);
    for (uint32_t i = 0; i < 96; i++)
        CHECK_EQ_U32(out[i], 3 * i + 7);
}

/* The sum of 0..tid, with a trip count of its own for each lane. */
TEST_CASE(PtxvmFlow, LoopsWithDifferentTripCounts)
{
    uint32_t out[64] = {0};
    exec_simple(EXEC_KERNEL(EXEC_INDEX
                            "mov.u32 r4, 0; mov.u32 r5, 0;\n"
                            "LOOP: add.u32 r4, r4, r5; add.u32 r5, r5, 1; setp.le.u32 p0, r5, r2;\n"
                            "@p0 bra LOOP; st.global.u32 [d1], r4;"),
                1, 64, out, 64);
    for (uint32_t i = 0; i < 64; i++)
        CHECK_EQ_U32(out[i], i * (i + 1) / 2);
}

/* Both sides of an if, an if inside each, and what activemask sees where they meet. */
TEST_CASE(PtxvmFlow, NestedDivergenceMeetsAgain)
{
    uint32_t out[64] = {0};
    exec_simple(
        EXEC_KERNEL(EXEC_INDEX
                    "and.b32 r4, r0, 1; setp.eq.u32 p0, r4, 0; and.b32 r5, r0, 2; setp.eq.u32 p1, r5, 0;\n"
                    "@p0 bra EVEN;\n"
                    "@p1 bra ODD_LOW; mov.u32 r6, 3; bra ODD_END;\n"
                    "ODD_LOW: mov.u32 r6, 1;\n"
                    "ODD_END: activemask.b32 r7; bra END;\n"
                    "EVEN: @!p1 bra EVEN_HIGH; mov.u32 r6, 0; bra EVEN_END;\n"
                    "EVEN_HIGH: mov.u32 r6, 2;\n"
                    "EVEN_END: activemask.b32 r7;\n"
                    "END: activemask.b32 r8; shl.b32 r9, r6, 8; xor.b32 r7, r7, r9; not.b32 r8, r8; or.b32 "
                    "r7, r7, r8;\n"
                    "st.global.u32 [d1], r7;"),
        1, 64, out, 64);
    for (uint32_t i = 0; i < 64; i++)
        CHECK_EQ_U32(out[i], (i & 1 ? 0xaaaaaaaau : 0x55555555u) ^ (i & 3) << 8);
}

/* An early exit inside a branch does not keep the others apart. */
TEST_CASE(PtxvmFlow, LanesThatLeaveAreNotWaitedFor)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_KERNEL(EXEC_INDEX
                            "setp.lt.u32 p0, r0, 16; setp.eq.u32 p1, r0, 3; setp.eq.u32 p2, r0, 5;\n"
                            "@!p0 bra JOIN; @p1 exit; @p2 bra LEAVE; mov.u32 r4, 1;\n"
                            "JOIN: activemask.b32 r5; st.global.u32 [d1], r5;\n"
                            "LEAVE:"),
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i == 3 || i == 5 ? 0 : ~(1u << 3 | 1u << 5));
}

/* Two loops that jump into each other's middle: each lane walks A and B by the bits of its index. */
TEST_CASE(PtxvmFlow, IrreducibleFlow)
{
    uint32_t out[32] = {0};
    exec_simple(
        EXEC_KERNEL(EXEC_INDEX
                    "mov.u32 r4, r0; mov.u32 r5, 0; mov.u32 r6, 0; and.b32 r7, r0, 1;\n"
                    "setp.eq.u32 p0, r7, 0; @p0 bra B;\n"
                    "A: mad.lo.u32 r5, r5, 3, 1; add.u32 r6, r6, 1; shr.u32 r4, r4, 1; and.b32 r7, r4, 1;\n"
                    "setp.ge.u32 p1, r6, 5; @p1 bra END; setp.eq.u32 p0, r7, 1; @p0 bra A;\n"
                    "B: mad.lo.u32 r5, r5, 3, 2; add.u32 r6, r6, 1; shr.u32 r4, r4, 1; and.b32 r7, r4, 1;\n"
                    "setp.ge.u32 p1, r6, 5; @p1 bra END; setp.eq.u32 p0, r7, 1; @p0 bra A; bra B;\n"
                    "END: st.global.u32 [d1], r5;"),
        1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t expected = 0;
        for (int bit = 0; bit < 5; bit++)
            expected = 3 * expected + (i >> bit & 1 ? 1 : 2);
        CHECK_EQ_U32(out[i], expected);
    }
}

TEST_CASE(PtxvmFlow, BranchTable)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_KERNEL(EXEC_INDEX
                            "rem.u32 r4, r0, 3; setp.ge.u32 p0, r0, 30; mov.u32 r5, 99;\n"
                            "T: .branchtargets L0, L1, L2;\n"
                            "@!p0 brx.idx r4, T; bra END;\n"
                            "L0: mov.u32 r5, 10; bra END;\n"
                            "L1: mov.u32 r5, 11; bra END;\n"
                            "L2: mov.u32 r5, 12;\n"
                            "END: activemask.b32 r6; setp.eq.u32 p1, r6, 0xffffffff; @!p1 mov.u32 r5, 0;\n"
                            "st.global.u32 [d1], r5;"),
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i < 30 ? 10 + i % 3 : 99);
}

/* Guards on lane instructions, partial masks in every width, carry chains under a guard. */
TEST_CASE(PtxvmFlow, GuardsKeepOtherLanes)
{
    uint32_t out[32] = {0};
    exec_simple(
        EXEC_KERNEL(
            EXEC_INDEX
            ".reg .b16 h<4>; mov.u16 h0, 1; mov.u64 d3, 5; mov.f32 f0, 0f3F800000; setp.lt.u32 p0, r0, 7;\n"
            "@p0 mov.u16 h0, 2; @p0 add.u64 d3, d3, 4294967296; @!p0 add.rn.f32 f0, f0, f0; setp.lt.u32 p1, "
            "r0, 9;\n"
            "@p0 setp.lt.u32 p1, r0, 3;\n"
            "mov.u32 r4, 0xffffffff; mov.u32 r5, 0; @p0 add.cc.u32 r4, r4, 1; @p0 addc.u32 r5, r5, 0;\n"
            "mov.b64 {r6, r7}, d3; cvt.u32.u16 r8, h0; mov.b32 r9, f0; shr.u32 r9, r9, 23; selp.u32 r10, 1, "
            "0, p1;\n"
            "mad.lo.u32 r8, r8, 10, r7; mad.lo.u32 r8, r8, 10, r5; mad.lo.u32 r8, r8, 10, r10; shl.b32 r9, "
            "r9, 16;\n"
            "or.b32 r8, r8, r9; st.global.u32 [d1], r8;"),
        1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t low = i < 7 ? 2110 : 1000, p1 = i < 7 ? i < 3 : i < 9;
        CHECK_EQ_U32(out[i], (low + p1) | (i < 7 ? 127u : 128u) << 16);
    }
}

/* An endless loop inside which lanes still meet: all lanes add up through redux until the count is reached.
 */
TEST_CASE(PtxvmFlow, LanesMeetInsideALoopWithoutEnd)
{
    uint32_t out[32] = {0};
    exec_simple(
        EXEC_KERNEL(
            EXEC_INDEX
            "mov.u32 r4, 0; mov.u32 r9, 0;\n"
            "LOOP: and.b32 r5, r0, 1; setp.eq.u32 p0, r5, 0; @p0 bra EVEN; add.u32 r4, r4, 1; bra NEXT;\n"
            "EVEN: add.u32 r4, r4, 2;\n"
            "NEXT: activemask.b32 r6; setp.ne.u32 p2, r6, 0xffffffff; @p2 add.u32 r9, r9, 1;\n"
            "setp.gt.u32 p1, r4, 99; @p1 bra OUT; bra LOOP;\n"
            "OUT: shl.b32 r9, r9, 16; or.b32 r4, r4, r9; st.global.u32 [d1], r4;\n"),
        1, 32, out, 32);
    for (uint32_t i = 0; i < 32;
         i++) /* even lanes are done after 50 rounds, the odd ones then run 50 alone */
        CHECK_EQ_U32(out[i], i & 1 ? (100u | 50u << 16) : 100u);
}
