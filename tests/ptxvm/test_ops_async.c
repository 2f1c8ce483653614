/* cp.async, mbarrier, cp.async.bulk: what is visible when. */
#include <stdio.h>

#include "test_ops.h"

#define EXPECT(name, expression)                                                                             \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        (void)t;                                                                                             \
        return expression;                                                                                   \
    }

EXPECT(yes, 1)
EXPECT(no, 0)
EXPECT(in_word, ops_in_at(4 * t, 4))
EXPECT(in_16, ops_in_at(16 * t + 12, 4))
EXPECT(in_8, ops_in_at(8 * t, 8))
EXPECT(half_of_it, ops_in_at(8 * t, 8) & 0xFFFFFF)
EXPECT(odd_ignored, t % 2 ? 0 : ops_in_at(4 * t, 4))
EXPECT(first_group, ops_in_at(4 * t, 4)) /* the second is not there yet: its half is 0 */
EXPECT(both_groups, ops_in_at(4 * t, 4) | ops_in_at(4 * t + 128, 4) << 32)
EXPECT(pending, 32 - t)
EXPECT(from_other_warp, t < 32 ? t + 132 : 0)
EXPECT(bulk_word, ops_in_at(4 * t + 256, 4))
EXPECT(thirty_two, 32)
EXPECT(square, t *t)
EXPECT(bulk_sum, (uint32_t)(ops_in_at(4 * t, 4) + t))
EXPECT(masked, t % 2 ? 0 : 0xFFFFFFFFFFFFFFFF)

/* %r4: sm, cleared; %r5: this thread's word at sm + 1024; %rd3: this thread's word of in. */
#define SET_UP                                                                                               \
    "mov.u32 %r4, sm; mad.lo.u32 %r5, %r0, 4, %r4; mad.wide.u32 %rd3, %r0, 4, %rd1; mov.u32 %r6, 0;\n"       \
    "st.shared.u32 [%r5+1024], %r6; st.shared.u32 [%r5+2048], %r6; bar.sync 0;\n"
#define INIT(count)                                                                                          \
    "setp.eq.u32 %p8, %r0, 0; @%p8 mbarrier.init.shared::cta.b64 [%r4], " count "; bar.sync 0;\n"
#define SHOW    "\nld.shared.u32 %rd9, [%r5+1024];"
#define PRED    "\nselp.u64 %rd9, 1, 0, %p1;"
#define WAIT(p) "\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], " p "; @!%p1 bra WAIT;\n"

/* clang-format off */
static const ops_test CpAsync[] = {
    {"not_before_the_wait", SET_UP "cp.async.ca.shared.global [%r5+1024], [%rd3], 4; "
        "cp.async.commit_group;" SHOW, no},
    {"wait_all", SET_UP "cp.async.ca.shared.global [%r5+1024], [%rd3], 4; cp.async.wait_all;" SHOW, in_word},
    {"wait_group_0", SET_UP "cp.async.ca.shared.global [%r5+1024], [%rd3], 4; cp.async.commit_group; "
        "cp.async.wait_group 0;" SHOW,
        in_word},
    {"wait_group_does_not_wait_for_what_is_not_committed", SET_UP
        "cp.async.ca.shared.global [%r5+1024], [%rd3], 4; cp.async.wait_group 0;" SHOW, no},
    {"wait_group_1", SET_UP "cp.async.ca.shared.global [%r5+1024], [%rd3], 4; cp.async.commit_group;\n"
        "cp.async.ca.shared.global [%r5+2048], [%rd3+128], 4; cp.async.commit_group; cp.async.wait_group 1;\n"
        "ld.shared.u32 %rd9, [%r5+1024]; ld.shared.u32 %rd8, [%r5+2048]; shl.b64 %rd8, %rd8, 32; "
        "or.b64 %rd9, %rd9, %rd8;",
        first_group},
    {"wait_group_1_then_0", SET_UP "cp.async.ca.shared.global [%r5+1024], [%rd3], 4; cp.async.commit_group;\n"
        "cp.async.ca.shared.global [%r5+2048], [%rd3+128], 4; cp.async.commit_group; cp.async.wait_group 1;\n"
        "cp.async.wait_group 0;\n"
        "ld.shared.u32 %rd9, [%r5+1024]; ld.shared.u32 %rd8, [%r5+2048]; shl.b64 %rd8, %rd8, 32; "
        "or.b64 %rd9, %rd9, %rd8;",
        both_groups},
    {"empty_groups_count", SET_UP "cp.async.ca.shared.global [%r5+1024], [%rd3], 4; cp.async.commit_group;\n"
        "cp.async.commit_group; cp.async.wait_group 1;" SHOW, in_word},
    {"cg_16", SET_UP "mad.lo.u32 %r7, %r0, 16, %r4; mad.wide.u32 %rd3, %r0, 16, %rd1;\n"
        "cp.async.cg.shared.global [%r7+1024], [%rd3], 16; cp.async.wait_all; "
        "ld.shared.u32 %rd9, [%r7+1036];", in_16},
    {"ca_8", SET_UP "mad.lo.u32 %r7, %r0, 8, %r4; mad.wide.u32 %rd3, %r0, 8, %rd1;\n"
        "cp.async.ca.shared.global.L2::128B [%r7+1024], [%rd3], 8; cp.async.wait_all; "
        "ld.shared.u64 %rd9, [%r7+1024];", in_8},
    {"src_size_fills_with_zeros", SET_UP "mad.lo.u32 %r7, %r0, 8, %r4; mad.wide.u32 %rd3, %r0, 8, %rd1; "
        "mov.u32 %r8, 3;\n"
        "mov.u64 %rd7, -1; st.shared.u64 [%r7+1024], %rd7; "
        "cp.async.ca.shared.global [%r7+1024], [%rd3], 8, %r8;\n"
        "cp.async.wait_all; ld.shared.u64 %rd9, [%r7+1024];", half_of_it},
    {"src_size_0_reads_nothing", SET_UP "mov.u64 %rd3, 0; mov.u32 %r8, 0; mov.u32 %r6, 7; "
        "st.shared.u32 [%r5+1024], %r6;\n"
        "cp.async.ca.shared.global [%r5+1024], [%rd3], 4, %r8; cp.async.wait_all;" SHOW, no},
    {"src_size_too_large", SET_UP "mov.u32 %r8, 5; cp.async.ca.shared.global [%r5+1024], [%rd3], 4, %r8;",
        .status = PTXVM_ERROR_EXECUTION},
    {"ignore_src", SET_UP "and.b32 %r8, %r0, 1; setp.ne.u32 %p2, %r8, 0;\n"
        "cp.async.ca.shared.global [%r5+1024], [%rd3], 4, %p2; cp.async.wait_all;" SHOW, odd_ignored},
    {"generic_target", SET_UP "cvt.u64.u32 %rd4, %r5; cvta.shared.u64 %rd4, %rd4; "
        "cvta.to.shared.u64 %rd4, %rd4;\n"
        "cp.async.ca.shared.global [%rd4+1024], [%rd3], 4; cp.async.wait_all;" SHOW, in_word},
    {"source_outside", SET_UP "cp.async.ca.shared.global [%r5+1024], [%rd1+4096], 4;",
        .status = PTXVM_ERROR_ADDRESS},
    {"target_outside", SET_UP "cp.async.ca.shared.global [%r5+4096], [%rd3], 4;",
        .status = PTXVM_ERROR_ADDRESS},
    {"target_misaligned", SET_UP "cp.async.cg.shared.global [%r4+1032], [%rd1], 16;",
        .status = PTXVM_ERROR_MISALIGNED},
    {"arrives_on_mbarrier_noinc", SET_UP INIT("32") "cp.async.ca.shared.global [%r5+1024], [%rd3], 4;\n"
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r4];" WAIT("0") SHOW, in_word},
    {"arrives_on_mbarrier", SET_UP INIT("32") "cp.async.ca.shared.global [%r5+1024], [%rd3], 4;\n"
        "cp.async.mbarrier.arrive.shared.b64 [%r4]; mbarrier.arrive.shared.b64 %rd4, [%r4];"
        WAIT("0") SHOW, in_word},
};

static const ops_test Mbarrier[] = {
    {"phase_0_runs", SET_UP INIT("32") "mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 0;" PRED, no},
    {"tx_count_too_large", SET_UP INIT("32") "mov.u32 %r9, 600000; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r4], %r9;",
        .status = PTXVM_ERROR_EXECUTION, .error = "transaction count would become 1200000: it may be -1048575 to 1048575"},
    {"tx_count_too_small", SET_UP INIT("32") "mov.u32 %r9, 600000; mbarrier.complete_tx.relaxed.cta.shared.b64 [%r4], %r9;",
        .status = PTXVM_ERROR_EXECUTION, .error = "transaction count would become -1200000"},
    {"phase_before_0_is_over", SET_UP INIT("32") "mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 1;"
        PRED, yes},
    {"all_arrive", SET_UP INIT("32") "mbarrier.arrive.shared.b64 %rd4, [%r4]; "
        "mbarrier.test_wait.shared.b64 %p1, [%r4], %rd4;" PRED,
        yes},
    {"one_is_missing", SET_UP INIT("33") "mbarrier.arrive.shared.b64 %rd4, [%r4]; "
        "mbarrier.test_wait.shared.b64 %p1, [%r4], %rd4;" PRED,
        no},
    {"pending_count", SET_UP INIT("32") "mbarrier.arrive.shared.b64 %rd4, [%r4]; "
        "mbarrier.pending_count.b64 %r9, %rd4;\n"
        "cvt.u64.u32 %rd9, %r9;", pending},
    {"arrive_by_count", SET_UP INIT("64") "mbarrier.arrive.shared.b64 %rd4, [%r4], 2; "
        "mbarrier.test_wait.shared.b64 %p1, [%r4], %rd4;"
        PRED, yes},
    {"generic_address", SET_UP INIT("32") "mov.u64 %rd5, sm; cvta.shared.u64 %rd5, %rd5; "
        "mbarrier.arrive.b64 %rd4, [%rd5];\n"
        "mbarrier.test_wait.b64 %p1, [%rd5], %rd4;" PRED, yes},
    {"next_phase_has_parity_1", SET_UP INIT("32") "mbarrier.arrive.shared.b64 %rd4, [%r4];\n"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 1;" PRED, no},
    {"arrive_drop_lowers_what_is_expected", SET_UP INIT("32") "setp.lt.u32 %p2, %r0, 16; @%p2 bra LOW;\n"
        "mbarrier.arrive.shared.b64 %rd4, [%r4]; bra JOIN; "
        "LOW: mbarrier.arrive_drop.shared.b64 %rd4, [%r4]; JOIN:\n"
        "bar.sync 0; @!%p2 mbarrier.arrive.shared.b64 %rd4, [%r4]; bar.sync 0;\n"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 1;" PRED, yes},
    {"expect_tx_holds_the_phase", SET_UP INIT("1") "@%p8 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r4], "
        "16; bar.sync 0;\n"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 0;" PRED, no},
    {"complete_tx_ends_it", SET_UP INIT("1") "@%p8 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], "
        "24;\n"
        "@%p8 mbarrier.arrive.shared.b64 %rd4, [%r4]; "
        "@%p8 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r4], 24; bar.sync 0;\n"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 0;" PRED, yes},
    {"across_warps", SET_UP INIT("32") "setp.lt.u32 %p2, %r0, 32; @%p2 bra READ; add.u32 %r7, %r0, 100; "
        "st.shared.u32 [%r5+1024], %r7;\n"
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r4]; bra END; READ:"
        WAIT("0") "ld.shared.u32 %rd9, [%r5+1152]; END:",
        from_other_warp, .threads = 64},
    {"invalid_after_inval", SET_UP INIT("32") "@%p8 mbarrier.inval.shared.b64 [%r4]; bar.sync 0; "
        "mbarrier.arrive.shared.b64 %rd4, [%r4];",
        .status = PTXVM_ERROR_EXECUTION, .error = "mbarrier"},
    {"more_arrivals_than_awaited", SET_UP INIT("2") "@%p8 mbarrier.arrive.shared.b64 %rd4, [%r4], 3;",
        .status = PTXVM_ERROR_EXECUTION, .error = "3 arrivals on an mbarrier that waits for 2"},
    {"as_many_arrivals_as_awaited", SET_UP INIT("2") "@%p8 mbarrier.arrive.shared.b64 %rd4, [%r4], 2; bar.sync 0;\n"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 0;" PRED, yes},
    {"more_drops_than_expected", SET_UP INIT("2") "@%p8 mbarrier.arrive_drop.shared.b64 %rd4, [%r4], 3;",
        .status = PTXVM_ERROR_EXECUTION, .error = "3 arrivals on an mbarrier that waits for 2"},
    {"misaligned", SET_UP "mbarrier.init.shared.b64 [%r4+4], 1;", .status = PTXVM_ERROR_MISALIGNED},
};

static const ops_test Bulk[] = {
    {"into_shared", SET_UP INIT("1") "@%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 512;\n"
        "@%p8 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4+1024], [%rd1+256], 512, "
        "[%r4];" WAIT("0") SHOW,
        bulk_word},
    {"into_shared_cluster", SET_UP INIT("1") "@%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 512;\n"
        "@%p8 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4+1024], [%rd1+256], "
        "512, [%r4];" WAIT("0") SHOW,
        bulk_word},
    {"not_before_someone_waits", SET_UP INIT("1")
        "@%p8 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4+1024], [%rd1+256], 512, "
        "[%r4]; bar.sync 0;" SHOW, no},
    {"out_of_shared", SET_UP "mul.lo.u32 %r7, %r0, %r0; mad.lo.u32 %r8, %r0, 8, %r4; cvt.u64.u32 %rd7, %r7;\n"
        "st.shared.u64 [%r8+1024], %rd7; fence.proxy.async; bar.sync 0; setp.eq.u32 %p8, %r0, 0;\n"
        "@%p8 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r4+1024], 256; "
        "cp.async.bulk.commit_group;\n"
        "cp.async.bulk.wait_group 0; bar.sync 0; ld.global.u64 %rd9, [%rd2];", square},
    {"byte_mask", SET_UP "mad.lo.u32 %r8, %r0, 8, %r4; mov.u64 %rd7, -1; mov.b16 %h1, 0x00FF;\n"
        "st.shared.u64 [%r8+1024], %rd7; bar.sync 0; setp.eq.u32 %p8, %r0, 0;\n"
        "@%p8 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0], [%r4+1024], 256, %h1; "
        "cp.async.bulk.commit_group;\n"
        "cp.async.bulk.wait_group.read 0; bar.sync 0; ld.global.u64 %rd9, [%rd2];", masked},
    {"reduce_add", SET_UP "st.shared.u32 [%r5+1024], %r0; bar.sync 0; setp.eq.u32 %p8, %r0, 0;\n"
        "@%p8 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r4+1024], 128; "
        "cp.async.bulk.commit_group;\n"
        "cp.async.bulk.wait_group 0; bar.sync 0; ld.global.u32 %rd9, [%rd3];", bulk_sum},
    {"prefetch", SET_UP "cp.async.bulk.prefetch.L2.global [%rd1], 64; mov.u64 %rd9, 1;", yes},
    {"st_async", SET_UP INIT("1") "@%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256; "
        "mul.lo.u32 %r7, %r0, %r0; mov.u32 %r8, 0;\n"
        "mad.lo.u32 %r10, %r0, 8, %r4; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 "
        "[%r10+1024], {%r7, %r8}, [%r4];"
        WAIT("0") "ld.shared.u64 %rd9, [%r10+1024];", square},
    {"red_async", SET_UP INIT("1") "@%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;\n"
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4+1024], 1, [%r4];"
        WAIT("0") "ld.shared.u32 %rd9, [%r4+1024];", thirty_two},
    {"odd_size", SET_UP INIT("1") "mov.u32 %r7, 24;\n"
        "@%p8 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4+1024], [%rd1], %r7, [%r4];",
        .status = PTXVM_ERROR_MISALIGNED, .error = "multiple of 16"},
    {"outside", SET_UP INIT("1")
        "@%p8 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4+1024], [%rd1+4080], 32, "
        "[%r4];",
        .status = PTXVM_ERROR_ADDRESS},
};
/* clang-format on */

OPS_TESTS(OpsAsync, CpAsync)
OPS_TESTS(OpsAsync, Mbarrier)
OPS_TESTS(OpsAsync, Bulk)
