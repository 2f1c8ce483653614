/* Clusters of several blocks: their registers, their barrier, the memory of each other, copies to each other, the work
 * that they take from clusters that have not started; and what a kernel and a launch can do wrong. */
#include "test_ops.h"

#include <string.h>

#include "test_check.h"

/* Eight blocks of 32 threads in clusters of four. */
enum { BLOCKS = 8, CLUSTER = 4, THREADS = 32 };
#define SHAPE .blocks = BLOCKS, .cluster = CLUSTER

static uint32_t rank_of(uint32_t thread)
{
    return thread / THREADS % CLUSTER;
}

static uint64_t rank(uint32_t thread)
{
    return rank_of(thread);
}

static uint64_t cluster_of(uint32_t thread)
{
    return thread / THREADS / CLUSTER;
}

static uint64_t four(uint32_t thread)
{
    (void)thread;
    return 4;
}

static uint64_t two(uint32_t thread)
{
    (void)thread;
    return 2;
}

static uint64_t one(uint32_t thread)
{
    (void)thread;
    return 1;
}

static uint64_t neighbour(uint32_t thread)
{
    return 100 * ((rank_of(thread) + 1) % CLUSTER) + thread % THREADS;
}

static uint64_t before(uint32_t thread)
{
    return 100 * ((rank_of(thread) + 3) % CLUSTER) + thread % THREADS;
}

static uint64_t all_threads(uint32_t thread)
{
    return rank_of(thread) ? 0 : CLUSTER * THREADS;
}

static uint64_t input_word(uint32_t thread)
{
    return ops_in_at(thread % THREADS * 4, 4);
}

/* %r4 = sm, %r5 = the thread's word there, %r6 = its value; %r7 = the next rank, %p8 = thread 0. */
#define SET_UP                                                                                               \
    "mov.u32 %r4, sm; mad.lo.u32 %r5, %r0, 4, %r4; mov.u32 %r10, %cluster_ctarank; mad.lo.u32 %r6, %r10, "   \
    "100, %r0;\n"                                                                                            \
    "add.u32 %r7, %r10, 1; and.b32 %r7, %r7, 3; setp.eq.u32 %p8, %r0, 0;\n"
#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define INIT(count, bytes)                                                                                   \
    "@%p8 mbarrier.init.shared.b64 [%r4], " count "; fence.mbarrier_init.release.cluster;\n"                 \
    "@%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], " bytes ";\n" SYNC
#define WAIT       "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r4], 0; @!%p1 bra WAIT;\n"
#define SREG(name) "mov.u32 %r9, " name "; cvt.u64.u32 %rd9, %r9;"

/* clang-format off */
static const ops_test Registers[] = {
    {"ctarank", SREG("%cluster_ctarank"), rank, SHAPE},
    {"ctaid", SREG("%cluster_ctaid.x"), rank, SHAPE},
    {"nctarank", SREG("%cluster_nctarank"), four, SHAPE},
    {"nctaid", SREG("%cluster_nctaid.x"), four, SHAPE},
    {"nctaid_y", SREG("%cluster_nctaid.y"), one, SHAPE},
    {"clusterid", SREG("%clusterid.x"), cluster_of, SHAPE},
    {"nclusterid", SREG("%nclusterid.x"), two, SHAPE},
    {"explicit", "mov.pred %p1, %is_explicit_cluster; selp.u64 %rd9, 1, 0, %p1;", one, SHAPE},
    {"rank_in_addresses", "mov.u32 %r9, sm; shr.u32 %r9, %r9, 24; cvt.u64.u32 %rd9, %r9;", rank, SHAPE},
    {"getctarank", "mov.u32 %r9, sm; getctarank.shared::cluster.u32 %r9, %r9; cvt.u64.u32 %rd9, %r9;", rank, SHAPE},
    {"getctarank_of_generic", "cvta.shared.u64 %rd4, sm; getctarank.u64 %r9, %rd4; cvt.u64.u32 %rd9, %r9;", rank, SHAPE},
    {"isspacep", "cvta.shared.u64 %rd4, sm; mapa.u64 %rd5, %rd4, 1; isspacep.shared::cta %p1, %rd5;\n"
        "isspacep.shared::cluster %p2, %rd5; isspacep.global %p3, %rd5; mov.u32 %r4, %cluster_ctarank; setp.eq.xor.u32 %p1, %r4, 1, %p1;\n"
        "and.pred %p2, %p2, !%p1; and.pred %p2, %p2, !%p3; selp.u64 %rd9, 1, 0, %p2;", one, SHAPE},
    {"seeded", SREG("%cluster_ctarank"), rank, SHAPE, .seed = 7},
};

static const ops_test Memory[] = {
    {"load", SET_UP "st.shared.u32 [%r5], %r6;\n" SYNC
        "mapa.shared::cluster.u32 %r8, %r5, %r7; ld.shared::cluster.u32 %rd9, [%r8];\n" SYNC, neighbour, SHAPE},
    {"load_generic", SET_UP "st.shared.u32 [%r5], %r6;\n" SYNC
        "cvt.u64.u32 %rd4, %r5; cvta.shared.u64 %rd4, %rd4; mapa.u64 %rd5, %rd4, %r7; ld.u32 %rd9, [%rd5];\n" SYNC, neighbour, SHAPE},
    {"load_seeded", SET_UP "st.shared.u32 [%r5], %r6;\n" SYNC
        "mapa.shared::cluster.u32 %r8, %r5, %r7; ld.shared::cluster.u32 %rd9, [%r8];\n" SYNC, neighbour, SHAPE, .seed = 3},
    {"load_with_unaligned_barriers", SET_UP "st.shared.u32 [%r5], %r6;\nbarrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
        "mapa.shared::cluster.u32 %r8, %r5, %r7; ld.shared::cluster.u32 %rd9, [%r8];\n" SYNC, neighbour, SHAPE},
    {"own_by_number", SET_UP "st.shared.u32 [%r5], %r6; and.b32 %r8, %r5, 0xFFFFFF; ld.shared.u32 %rd9, [%r8]; sub.u64 %rd9, %rd9, %rd9; "
        "mov.u32 %r9, sm; st.shared.u32 [sm+2048], %r10; ld.shared::cluster.u32 %rd9, [%r9+2048];", rank, SHAPE},
    {"store", SET_UP "mapa.shared::cluster.u32 %r8, %r5, %r7;\n" SYNC
        "st.shared::cluster.u32 [%r8], %r6;\n" SYNC "ld.shared.u32 %rd9, [%r5];", before, SHAPE},
    {"atom", SET_UP "@%p8 st.shared.u32 [%r4], 0; mov.u32 %r11, 0;\n" SYNC
        "mapa.shared::cluster.u32 %r8, %r4, 0; atom.shared::cluster.add.u32 %r9, [%r8], 1;\n" SYNC "ld.shared.u32 %rd9, [%r4];", all_threads, SHAPE},
    {"red", SET_UP "@%p8 st.shared.u32 [%r4], 0;\n" SYNC
        "mapa.shared::cluster.u32 %r8, %r4, 0; red.relaxed.cluster.shared::cluster.add.u32 [%r8], 1;\n" SYNC "ld.shared.u32 %rd9, [%r4];", all_threads, SHAPE},
    {"through_a_function", SET_UP "st.shared.u32 [%r5], %r6;\n" SYNC
        "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r7; call (v), peek, (a); ld.param.b32 %r9, [v]; }\ncvt.u64.u32 %rd9, %r9;\n" SYNC,
        neighbour, SHAPE, .decls = ".shared .align 4 .b8 other[4];\n.func (.param .b32 v) peek(.param .b32 a) { .reg .b32 %x<4>; .reg .b32 %t; mov.u32 %t, %tid.x;\n"
        "ld.param.b32 %x0, [a]; mul.lo.u32 %x1, %x0, 100; add.u32 %x1, %x1, %t; mov.u32 %x2, other; shr.u32 %x2, %x2, 24; add.u32 %x2, %x2, 1; and.b32 %x2, %x2, 3;\n"
        "sub.u32 %x2, %x2, %x0; add.u32 %x1, %x1, %x2; st.param.b32 [v], %x1; ret; }\n"},
    {"exited_threads_do_not_count", SET_UP "setp.ge.u32 %p1, %r0, 16; @%p1 bra DONE; st.shared.u32 [%r5], %r6;\n"
        "barrier.cluster.arrive; barrier.cluster.wait; mapa.shared::cluster.u32 %r8, %r4, %r7; ld.shared::cluster.u32 %r9, [%r8];\n"
        "barrier.cluster.arrive; barrier.cluster.wait; cvt.u64.u32 %rd9, %r9; st.global.u64 [%rd2], %rd9; DONE: exit;", NULL, SHAPE},
    {"of_a_block_that_is_not_there", SET_UP "add.u32 %r8, %r4, 0x5000000; ld.shared::cluster.u32 %r9, [%r8];", .blocks = 4, .cluster = 4,
        .status = PTXVM_ERROR_ADDRESS, .error = "which the cluster does not have"},
    {"by_an_instruction_for_its_own", SET_UP SYNC "mapa.shared::cluster.u32 %r8, %r4, %r7; ld.shared.u32 %r9, [%r8];", SHAPE,
        .status = PTXVM_ERROR_ADDRESS, .error = "which this instruction does not reach"},
    {"of_a_block_that_has_ended", SET_UP "setp.ne.u32 %p1, %r10, 3; @%p1 exit; mapa.shared::cluster.u32 %r8, %r4, 0; ld.shared::cluster.u32 %r9, [%r8];", SHAPE,
        .status = PTXVM_ERROR_ADDRESS, .error = "has ended"},
    {"past_the_end", SET_UP SYNC "mapa.shared::cluster.u32 %r8, %r4, %r7; ld.shared::cluster.u32 %r9, [%r8+4096];", SHAPE,
        .status = PTXVM_ERROR_ADDRESS, .error = "past the end of the 4096 bytes of shared memory"},
    {"mapa_of_a_rank_that_is_not_there", SET_UP "mapa.shared::cluster.u32 %r8, %r4, 4;", SHAPE, .status = PTXVM_ERROR_EXECUTION, .error = "mapa of block 4 in a cluster of 4"},
};

static const ops_test Barrier[] = {
    {"wait_without_arrive", "barrier.cluster.wait;", SHAPE, .status = PTXVM_ERROR_EXECUTION, .error = "without a barrier.cluster.arrive"},
    {"arrive_twice", "barrier.cluster.arrive; barrier.cluster.arrive;", SHAPE, .status = PTXVM_ERROR_EXECUTION, .error = "twice"},
    {"a_block_that_never_comes", SET_UP "setp.eq.u32 %p1, %r10, 2; @%p1 bra OTHER;\n" SYNC "OTHER: @!%p1 bra DONE; bar.sync 1, 64;\nDONE:", SHAPE,
        .status = PTXVM_ERROR_DEADLOCK, .error = "96 of 128 threads have arrived at the barrier of the cluster"},
    {"many_times", SET_UP "mov.u32 %r11, 0; st.shared.u32 [%r5], 0; mapa.shared::cluster.u32 %r8, %r5, %r7;\n" SYNC
        "LOOP: ld.shared.u32 %r12, [%r5]; barrier.cluster.arrive.aligned; add.u32 %r12, %r12, 1; barrier.cluster.wait.aligned;\n"
        "st.shared::cluster.u32 [%r8], %r12;\n" SYNC "add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, 4; @%p1 bra LOOP; ld.shared.u32 %rd9, [%r5];", four, SHAPE},
};

static const ops_test Async[] = {
    {"st_async", SET_UP INIT("1", "128") "mapa.shared::cluster.u32 %r8, %r5, %r7; mapa.shared::cluster.u32 %r9, %r4, %r7;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r8+1024], %r6, [%r9];\n" WAIT "ld.shared.u32 %rd9, [%r5+1024];\n" SYNC, before, SHAPE},
    {"red_async", SET_UP "st.shared.u32 [%r4+1024], 0;\n" INIT("1", "128") "mapa.shared::cluster.u32 %r9, %r4, %r7;\n"
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r9+1024], 1, [%r9];\n" WAIT
        "ld.shared.u32 %rd9, [%r4+1024]; shr.u64 %rd9, %rd9, 3;\n" SYNC, four, SHAPE},
    {"arrive_on_another", SET_UP "@%p8 mbarrier.init.shared.b64 [%r4], 32; fence.mbarrier_init.release.cluster;\n" SYNC
        "mapa.shared::cluster.u32 %r9, %r4, %r7; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];\n" WAIT "mov.u64 %rd9, 1;\n" SYNC, one, SHAPE},
    {"wait_on_another", SET_UP INIT("1", "0") "mapa.shared::cluster.u32 %r9, %r4, %r7; cvt.u64.u32 %rd5, %r9; cvta.shared::cluster.u64 %rd5, %rd5; mbarrier.test_wait.parity.b64 %p1, [%rd5], 0;",
        SHAPE, .status = PTXVM_ERROR_ADDRESS, .error = "does not reach"},
    {"bulk_to_another", SET_UP "st.shared.u32 [%r5+1024], %r6; fence.proxy.async.shared::cta;\n" INIT("1", "128") "mapa.shared::cluster.u32 %r9, %r4, %r7;\n"
        "@%p8 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r9+2048], [%r4+1024], 128, [%r9];\n"
        WAIT "ld.shared.u32 %rd9, [%r5+2048];\n" SYNC, before, SHAPE},
    {"bulk_to_another_seeded", SET_UP "st.shared.u32 [%r5+1024], %r6; fence.proxy.async.shared::cta;\n" INIT("1", "128") "mapa.shared::cluster.u32 %r9, %r4, %r7;\n"
        "@%p8 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r9+2048], [%r4+1024], 128, [%r9];\n"
        WAIT "ld.shared.u32 %rd9, [%r5+2048];\n" SYNC, before, SHAPE, .seed = 5},
    {"bulk_with_an_mbarrier_elsewhere", SET_UP INIT("1", "128") "mapa.shared::cluster.u32 %r9, %r4, %r7;\n"
        "@%p8 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r9+2048], [%r4+1024], 128, [%r4];", SHAPE,
        .status = PTXVM_ERROR_EXECUTION, .error = "with an mbarrier of block"},
    {"multicast", SET_UP INIT("1", "128") "setp.eq.and.u32 %p2, %r10, 2, %p8; mov.b16 %h1, 15;\n"
        "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4+1024], [%rd1], 128, [%r4], %h1;\n"
        WAIT "ld.shared.u32 %rd9, [%r5+1024];\n" SYNC, input_word, SHAPE},
    {"multicast_seeded", SET_UP INIT("1", "128") "setp.eq.and.u32 %p2, %r10, 2, %p8; mov.b16 %h1, 15;\n"
        "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4+1024], [%rd1], 128, [%r4], %h1;\n"
        WAIT "ld.shared.u32 %rd9, [%r5+1024];\n" SYNC, input_word, SHAPE, .seed = 11},
    {"multicast_to_some_that_are_not_there", SET_UP INIT("1", "128") "mov.b16 %h1, 16;\n"
        "@%p8 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4+1024], [%rd1], 128, [%r4], %h1;", SHAPE,
        .status = PTXVM_ERROR_EXECUTION, .error = "a multicast to the blocks 0x10 of a cluster of 4"},
};

/* Clusters take each other's work: every tile is done once, whoever does it. A tile is the %ctaid of a cluster's first block. */
#define CANCEL(flag) \
    SET_UP "@%p8 mbarrier.init.shared.b64 [%r4], 1; fence.mbarrier_init.release.cluster;\n" SYNC \
    "mov.u32 %r20, %ctaid.x; mov.u32 %r21, 0;\n" \
    "LOOP: mad.lo.u32 %r22, %r20, 32, %r0; mul.wide.u32 %rd5, %r22, 8; add.u64 %rd5, %rd0, %rd5; mov.u64 %rd6, 1; red.global.add.u64 [%rd5], %rd6;\n" \
    "@%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 16;\n" SYNC \
    "setp.eq.and.u32 %p3, %r10, 0, %p8;\n" flag \
    "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], %r21; @!%p1 bra WAIT; xor.b32 %r21, %r21, 1;\n" \
    "ld.shared.b128 %q0, [%r4+16]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q0;\n" \
    "@%p4 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r23, %r24, %r25, %r26}, %q0;\n" \
    "@%p4 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r23, _, %r25, _}, %q0;\n"         \
    "@%p4 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r20, %q0;\n" \
    "@%p4 setp.ne.u32 %p5, %r20, %r23; @%p5 trap; add.u32 %r20, %r20, %r10; fence.proxy.async.shared::cta;\n" SYNC "@%p4 bra LOOP;\nexit;"
#define TO_ALL "@%p3 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r4+16], [%r4];\n"
#define TO_ONE "@%p3 clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd7], [%rd8];\n"
static const ops_test Cancel[] = {
    {"clusters", CANCEL(TO_ALL), one, .blocks = 32, .cluster = 4},
    {"clusters_seeded", CANCEL(TO_ALL), one, .blocks = 32, .cluster = 4, .seed = 9},
    {"single_blocks", CANCEL("cvt.u64.u32 %rd8, %r4; cvta.shared.u64 %rd8, %rd8; add.u64 %rd7, %rd8, 16;\n" TO_ONE), one, .blocks = 9, .seed = 21},
    {"a_refused_request", SET_UP "@%p8 mbarrier.init.shared.b64 [%r4], 1; bar.sync 0; @%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 16; setp.eq.u32 %p3, %r0, 0;\n" TO_ALL WAIT
        "ld.shared.b128 %q0, [%r4+16]; clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r20, %q0;", .status = PTXVM_ERROR_EXECUTION, .error = "not granted"},
    {"misaligned", SET_UP "@%p8 mbarrier.init.shared.b64 [%r4], 1; clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.shared::cta.b128 [%r4+24], [%r4];",
        .status = PTXVM_ERROR_MISALIGNED},
};
/* clang-format on */

OPS_TESTS(OpsCluster, Registers)
OPS_TESTS(OpsCluster, Memory)
OPS_TESTS(OpsCluster, Barrier)
OPS_TESTS(OpsCluster, Async)
OPS_TESTS(OpsCluster, Cancel)

/* ---- Launches ---- */

typedef struct launch_row {
    const char *name, *directives, *sm;
    uint32_t grid[3], cluster[3];
    const char *error; /* null: it runs, and each block counts itself */
    uint32_t blocks;
} launch_row;

static const launch_row launches[] = {
    {"asked_for", "", "sm_90", {4, 2, 2}, {2, 2, 2}, NULL, 16},
    {"required", ".reqnctapercluster 2, 1, 2", "sm_90", {4, 2, 2}, {0}, NULL, 16},
    {"required_and_asked_for", ".reqnctapercluster 2", "sm_90", {4, 1, 1}, {2, 1, 1}, NULL, 4},
    {"in_clusters",
     ".reqntid 32 .reqnctapercluster 2, 2 .blocksareclusters",
     "sm_90",
     {3, 2, 1},
     {0},
     NULL,
     24},
    {"sixteen", "", "sm_90", {16, 1, 1}, {16, 1, 1}, NULL, 16},
    {"other_than_required",
     ".reqnctapercluster 2",
     "sm_90",
     {4, 1, 1},
     {4, 1, 1},
     "has .reqnctapercluster 2, 1, 1",
     0},
    {"not_a_multiple",
     "",
     "sm_90",
     {5, 1, 1},
     {2, 1, 1},
     "a grid of (5,1,1) blocks is not made of clusters of (2,1,1)",
     0},
    {"too_large", "", "sm_90", {32, 1, 1}, {32, 1, 1}, "sm_90 has clusters of up to 16", 0},
    {"too_large_in_all", "", "sm_120", {4, 4, 1}, {4, 4, 1}, "sm_120 has clusters of up to 8", 0},
    {"too_old", "", "sm_89", {2, 1, 1}, {2, 1, 1}, "sm_89 has no clusters", 0},
    {"beyond_maxclusterrank", ".maxclusterrank 4", "sm_90", {8, 1, 1}, {8, 1, 1}, ".maxclusterrank 4", 0},
    {"explicit", ".explicitcluster", "sm_90", {2, 1, 1}, {2, 1, 1}, NULL, 2},
    {"explicit_but_not_given",
     ".explicitcluster",
     "sm_90",
     {2, 1, 1},
     {0},
     "must give the size of the clusters",
     0},
};

TEST_ROWS(OpsCluster, Launch, launches)
{
    const launch_row *row = &launches[index];
    char text[1024];
    uint32_t blocks = 0;
    ptxvm_address counter;
    snprintf(text, sizeof text,
             ".version 8.7\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 out) %s\n{\n.reg "
             ".b64 %%rd<2>; "
             ".reg .b32 %%r<2>; .reg .pred %%p;\nld.param.u64 %%rd0, [out]; mov.u32 %%r0, %%tid.x; "
             "setp.eq.u32 %%p, "
             "%%r0, 0; @%%p red.global.add.u32 [%%rd0], 1;\nret;\n}\n",
             strcmp(row->sm, "sm_89") ? "sm_90" : "sm_89", row->directives);
    ptxvm_config config = {.sm = row->sm};
    exec_run run = exec_open(&config, text);
    REQUIRE(run.status == PTXVM_OK);
    REQUIRE(ptxvm_alloc(run.vm, 4, &counter) == PTXVM_OK);
    ptxvm_launch_config launch = {.block = {32, 1, 1}};
    memcpy(launch.grid, row->grid, sizeof launch.grid);
    memcpy(launch.cluster, row->cluster, sizeof launch.cluster);
    ptxvm_status status = ptxvm_launch(run.vm, run.kernel, &launch, &counter, sizeof counter);
    CHECK_EQ_I64(status, row->error ? PTXVM_ERROR_LAUNCH_SIZE : PTXVM_OK);
    if (row->error)
        CHECK_HAS(ptxvm_last_error(run.vm), row->error);
    CHECK(ptxvm_read(run.vm, &blocks, counter, 4) == PTXVM_OK);
    CHECK_EQ_U64(blocks, row->blocks);
    ptxvm_destroy(run.vm);
}

/* ---- Findings ---- */

/* clang-format off */
#define CLUSTER_KERNEL(body) \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) .reqnctapercluster 2\n{\n" \
    ".reg .pred p<10>; .reg .b16 h<10>; .reg .b32 r<40>; .reg .b64 d<20>; .shared .align 16 .b8 tile[4096];\n" \
    "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mov.u32 r1, %cluster_ctarank; shl.b32 r2, r0, 2; mov.u32 r3, tile; add.u32 r3, r3, r2; xor.b32 r4, r1, 1; mapa.shared::cluster.u32 r5, r3, r4;\n" \
    body "\nret;\n}\n"
#define ARRIVE "barrier.cluster.arrive.aligned;"
#define WAIT_C "barrier.cluster.wait.aligned;"
static const seeded bugs[] = {
    {"read_without_a_barrier", CLUSTER_KERNEL("st.shared.u32 [r3], r0;\nld.shared::cluster.u32 r6, [r5];\n" ARRIVE WAIT_C), 2, 32, PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK, 1, 1, 0},
    {"read_with_a_barrier_of_the_block", CLUSTER_KERNEL("st.shared.u32 [r3], r0;\nbar.sync 0;\nld.shared::cluster.u32 r6, [r5];\n" ARRIVE WAIT_C), 2, 32, PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK, 2, 1, 0},
    {"read_before_the_wait", CLUSTER_KERNEL("st.shared.u32 [r3], r0;\n" ARRIVE "\nld.shared::cluster.u32 r6, [r5];\n" WAIT_C "\n" ARRIVE WAIT_C), 2, 32, PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK, 0, 1, 0},
    {"read_after_a_relaxed_arrive", CLUSTER_KERNEL("st.shared.u32 [r3], r0;\nbarrier.cluster.arrive.relaxed.aligned;\n" WAIT_C "\nld.shared::cluster.u32 r6, [r5];\n" ARRIVE WAIT_C), 2, 32, PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK, 3, 1, 0},
    {"both_write", CLUSTER_KERNEL(ARRIVE WAIT_C "\nst.shared.u32 [r3], r1;\nst.shared::cluster.u32 [r5], r1;\n" ARRIVE WAIT_C), 2, 32, PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK, 2, 0, 0},
    {"never_written", CLUSTER_KERNEL(ARRIVE WAIT_C "\nld.shared::cluster.u32 r6, [r5];\nadd.u32 r7, r6, 1;\n" ARRIVE WAIT_C), 2, 32, PTXVM_FINDING_UNINITIALISED, PTXVM_ERROR_CHECK, 2, 1, 0},
    {"atomics_of_the_block_alone", CLUSTER_KERNEL("st.shared.u32 [r3], 0;\n" ARRIVE WAIT_C "\nred.relaxed.cta.shared::cluster.add.u32 [r5], 1;\nred.relaxed.cta.shared::cluster.add.u32 [r3], 1;\n" ARRIVE WAIT_C), 2, 32, PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK, 3, 0, 0},
    {"clusters_and_cluster_scope", CLUSTER_KERNEL("red.relaxed.cluster.global.add.u32 [d0], 1;"), 4, 32, PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK, 0, 2, 0},
};

static const char *const clean[] = {
    /* a fence before the relaxed arrival releases: how mbarriers of a cluster are set up */
    CLUSTER_KERNEL("st.shared.u32 [r3], r0; fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\n" WAIT_C "\nld.shared::cluster.u32 r6, [r5];\n" ARRIVE WAIT_C),
    CLUSTER_KERNEL("st.shared.u32 [r3], r0;\n" ARRIVE WAIT_C "\nld.shared::cluster.u32 r6, [r5];\nadd.u32 r6, r6, 1;\n" ARRIVE WAIT_C),
    CLUSTER_KERNEL("st.shared.u32 [r3], 0;\n" ARRIVE WAIT_C "\nred.relaxed.cluster.shared::cluster.add.u32 [r5], 1;\nred.relaxed.cluster.shared::cluster.add.u32 [r3], 1;\n" ARRIVE WAIT_C),
    CLUSTER_KERNEL("st.shared.u32 [r3], r0;\nbarrier.cluster.arrive.release.aligned;\n" WAIT_C "\nst.shared::cluster.u32 [r5], r1;\n" ARRIVE WAIT_C "\nld.shared.u32 r6, [r3];\nadd.u32 r6, r6, 1;\n"),
};
/* clang-format on */

TEST_ROWS(OpsCluster, Finding, bugs)
{
    check_seeded(&bugs[index], 1);
    check_seeded(&bugs[index], 4);
}

TEST_CASE(OpsCluster, NoFinding)
{
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++) {
        check_result r = check_run(clean[i], 4, 64, PTXVM_CHECK_ALL, 2);
        test_push_note("%d: %s", (int)i, ptxvm_last_error(r.vm));
        CHECK_EQ_I64(r.status, PTXVM_OK);
        CHECK_EQ_I64(r.n, 0);
        test_pop_note();
        ptxvm_destroy(r.vm);
    }
}
