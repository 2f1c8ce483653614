/* A bug of each kind in two kernels or more: found, and named at the right line, block and thread; and the
 * same with one, two and four host threads. */
#include "test_check.h"

#include <stdio.h>

/* clang-format off */
#define CHECKED(body) CHECK_KERNEL(body)
#define OOB    PTXVM_FINDING_OUT_OF_BOUNDS, PTXVM_ERROR_ADDRESS
#define ALIGN  PTXVM_FINDING_MISALIGNED, PTXVM_ERROR_MISALIGNED
#define CONST_ PTXVM_FINDING_READ_ONLY, PTXVM_ERROR_ADDRESS
#define INIT   PTXVM_FINDING_UNINITIALISED, PTXVM_ERROR_CHECK
#define RACE   PTXVM_FINDING_RACE, PTXVM_ERROR_CHECK
#define DIVERG PTXVM_FINDING_DIVERGENT_BARRIER, PTXVM_ERROR_CHECK
#define MISSED PTXVM_FINDING_MISSED_BARRIER, PTXVM_ERROR_DEADLOCK
#define MEMBER PTXVM_FINDING_MEMBER_MASK, PTXVM_ERROR_CHECK
#define ASYNC  PTXVM_FINDING_ASYNC_READ, PTXVM_ERROR_CHECK
#define OBJECT PTXVM_FINDING_MBARRIER, PTXVM_ERROR_CHECK

#define PASSED_BY(condition, inst) "setp.ge.u32 p0, r0, " condition ";\n@p0 bra NEXT;\n" inst "\nNEXT:\nst.global.u32 [d4], r0;"
#define LDMATRIX(form, rows) "setp.lt.u32 p0, r0, " rows ";\n@p0 st.shared.u32 [r3], r0;\nbar.sync 0;\nmov.u32 r6, tile;\nand.b32 r7, r0, 7;\nshl.b32 r7, r7, 4;\nadd.u32 r6, r6, r7;\n" \
    "ldmatrix.sync.aligned.m8n8.x1" form ".shared.b16 {r4}, [r6];\n"

/* Blocks write partial sums and count themselves; the last one reads what the others wrote. */
#define JOIN(before, release, count, acquire, read) \
    "st.global.u32 [d4], r0;\n" before "\nsetp.ne.u32 p0, r0, 0;\n@p0 bra END;\n" release "\n" count "\n" acquire "\nsetp.eq.u32 p1, r4, 1;\n@p1 " read "\nEND:"
#define COUNT "atom.global.add.u32 r4, [d0+4092], 1;"
/* Thread 0 copies 128 bytes to shared memory and waits for them; the lines are those of the macro's arguments. */
#define BULK(expect, before) \
    ".shared .align 8 .b64 bar;\nsetp.ne.u32 p0, r0, 0;\n@p0 bra END;\nmbarrier.init.shared.b64 [bar], 1;\n" expect "\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [d0], 128, [bar];\n" before "\n"
#define BULK_WAIT "WAIT:\nmbarrier.try_wait.parity.shared.b64 p1, [bar], 0;\n@!p1 bra WAIT;\n"
/* All threads write to tile, and thread 0 copies 128 bytes of it to the buffer. */
#define BULK_OUT(fence) "st.shared.u32 [r3], r0;\n" fence "\nbar.sync 0;\nsetp.ne.u32 p0, r0, 0;\n@p0 bra END;\ncp.async.bulk.global.shared::cta.bulk_group [d0], [tile], 256;\ncp.async.bulk.commit_group;\n"
#define BULK_ALL(last) "cp.async.bulk.wait_group" last " 0;\n"
#define STMATRIX(value) "and.b32 r6, r0, 7;\nshl.b32 r6, r6, 4;\nmov.u32 r7, tile;\nadd.u32 r6, r6, r7;\n" value "\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [r6], {r4};"

static const seeded bugs[] = {
    /* memory */
    {"global_past_the_end", CHECKED("st.global.u32 [d4+3072], r0;"), 2, 256, OOB, 0, 1, 0},
    {"global_before_the_start", CHECKED("sub.u64 d5, d1, 16;\nld.global.u32 r4, [d5];"), 1, 32, OOB, 1, 0, 0},
    {"shared_past_the_end", CHECKED("st.shared.u32 [r3+4032], r0;"), 1, 32, OOB, 0, 0, 16},
    {"local_past_the_end", CHECKED(".local .b32 l[2];\nmov.u64 d5, l;\nst.local.u32 [d5+8192], r0;"), 1, 32, OOB, 2, 0, 0},
    {"misaligned_global", CHECKED("add.u64 d5, d1, 2;\nld.global.u32 r4, [d5];"), 1, 32, ALIGN, 1, 0, 0},
    {"misaligned_shared", CHECKED("st.shared.v2.u32 [r3], {r0, r0};"), 1, 32, ALIGN, 0, 0, 1},
    {"misaligned_vector", CHECKED("ld.global.v4.u32 {r4,r5,r6,r7}, [d1];"), 1, 32, ALIGN, 0, 0, 1},
    {"write_to_const", ".version 8.0\n.target sm_90\n.address_size 64\n.const .u32 c[4];\n\n\n.visible .entry k(.param .u64 out) { .reg .b64 d<4>; .reg .b32 r<4>;\nmov.u64 d1, c; st.u32 [d1+4], 7;\nret; }\n", 1, 1, CONST_, 0, 0, 0},
    {"write_to_const_through_generic", ".version 8.0\n.target sm_90\n.address_size 64\n.const .u32 c[4];\n\n\n.visible .entry k(.param .u64 out) { .reg .b64 d<4>; .reg .b32 r<4>;\nmov.u64 d1, c;\nred.add.u32 [d1], 1;\nret; }\n", 1, 32, CONST_, 1, 0, 0},
    /* init */
    {"register_never_written", CHECKED("add.u32 r5, r4, 1;\nst.global.u32 [d1], r5;"), 1, 32, INIT, 0, 0, 0},
    {"register_of_some_lanes", CHECKED("setp.lt.u32 p0, r0, 7;\n@p0 mov.u32 r4, 3;\nmul.lo.u32 r5, r4, 3;"), 1, 32, INIT, 2, 0, 7},
    {"guard_never_written", CHECKED("@p3 st.global.u32 [d1], r0;"), 1, 32, INIT, 0, 0, 0},
    {"decides_by_shared", CHECKED("ld.shared.u32 r4, [r3];\nmov.u32 r5, r4;\nsetp.eq.u32 p0, r5, 0;\nnot.pred p1, p0;\n@p1 st.global.u32 [d1], r0;"), 1, 32, INIT, 4, 0, 0},
    {"selects_by_shared", CHECKED("ld.shared.u32 r4, [r3];\nsetp.eq.u32 p0, r4, 0;\nselp.u32 r5, 1, 2, p0;"), 1, 32, INIT, 2, 0, 0},
    {"votes_by_shared", CHECKED("ld.shared.u32 r4, [r3];\nsetp.eq.u32 p0, r4, 0;\nvote.sync.ballot.b32 r5, p0, -1;"), 1, 32, INIT, 2, 0, 0},
    {"and_that_masks_nothing", CHECKED("ld.shared.u32 r4, [r3];\nsetp.eq.u32 p0, r4, 0;\nsetp.gt.u32 p1, r0, 4;\nand.pred p2, p0, p1;\n@p2 st.global.u32 [d1], r0;"), 1, 32, INIT, 4, 0, 5},
    {"or_that_masks_nothing", CHECKED("ld.shared.u32 r4, [r3];\nsetp.gt.u32 p1, r0, 4;\nsetp.eq.or.u32 p0, r4, 0, !p1;\n@p0 st.global.u32 [d1], r0;"), 1, 32, INIT, 3, 0, 5},
    {"mma_of_a_loaded_matrix", CHECKED("mov.f32 f0, 0f00000000;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {r4}, [tile];\nmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f4,f5,f6,f7}, {r0,r4}, {r0}, {f0,f0,f0,f0};"), 1, 32, INIT, 2, 0, 0},
    {"rows_of_a_loaded_matrix", CHECKED(LDMATRIX("", "16") "add.u32 r5, r4, 1;"), 1, 32, INIT, 8, 0, 16},
    {"rows_of_a_transposed_matrix", CHECKED(LDMATRIX(".trans", "16") "add.u32 r5, r4, 1;"), 1, 32, INIT, 8, 0, 2},
    {"half_of_a_transposed_pair", CHECKED(LDMATRIX(".trans", "4") "setp.eq.u32 p1, r0, 0;\n@p1 prmt.b32 r5, r4, 0, 0x4410;\n@p1 add.u32 r5, r5, 1;\n@p1 add.u32 r5, r4, 1;"), 1, 32, INIT, 11, 0, 0},
    {"stored_matrix", CHECKED("and.b32 r6, r0, 7;\nshl.b32 r6, r6, 4;\nmov.u32 r7, tile;\nadd.u32 r6, r6, r7;\nsetp.lt.u32 p0, r0, 16;\n@p0 mov.u32 r4, 1;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [r6], {r4};\nbar.sync 0;\nld.shared.u32 r5, [r3];\nadd.u32 r5, r5, 1;"), 1, 32, INIT, 9, 0, 16},
    {"transposed_in_registers", CHECKED("setp.lt.u32 p0, r0, 16;\n@p0 mov.u32 r4, 1;\nmovmatrix.sync.aligned.m8n8.trans.b16 r5, r4;\nadd.u32 r5, r5, 1;"), 1, 32, INIT, 3, 0, 2},
    {"stored_by_wmma", CHECKED("setp.lt.u32 p0, r0, 4;\nmov.f32 f0, 0f00000000;\n@p0 mov.f32 f1, f0;\nwmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [tile], {f0,f1,f0,f0,f0,f0,f0,f0}, 16;\nbar.sync 0;\nsetp.eq.u32 p1, r0, 0;\n@p1 ld.shared.f32 f2, [tile+4];\n@p1 add.f32 f2, f2, f2;\n@p1 ld.shared.f32 f2, [tile+68];\n@p1 add.f32 f2, f2, f2;"), 1, 32, INIT, 9, 0, 0},
    {"wmma_of_shared", CHECKED("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {r4,r5,r6,r7,r8,r9,r10,r11}, [tile], 16;\nmov.u32 r12, r4;\nadd.u32 r12, r12, 1;"), 1, 32, INIT, 2, 0, 0},
    {"address_from_local", CHECKED(".local .b32 l[2];\nld.local.u32 r5, [l];\nld.shared.u32 r4, [r5];"), 1, 1, INIT, 2, 0, 0},
    {"one_byte_of_a_word", CHECKED("st.shared.u16 [r3], 1;\nst.shared.u8 [r3+2], 2;\nld.shared.u32 r4, [r3];\nprmt.b32 r5, r4, 0, 0x4210;\nadd.u32 r6, r5, 1;\nprmt.b32 r5, r4, 0, 0x4443;\nadd.u32 r6, r5, 1;"), 1, 32, INIT, 6, 0, 0},
    {"shuffled_from_a_lane", CHECKED("setp.ne.u32 p0, r0, 5;\n@p0 mov.u32 r4, 1;\nshfl.sync.bfly.b32 r5, r4, 1, 31, -1;\nadd.u32 r6, r5, 1;"), 1, 32, INIT, 3, 0, 4},
    {"atomic_on_shared", CHECKED("atom.shared.add.u32 r4, [tile], 1;"), 1, 1, INIT, 0, 0, 0},
    /* races */
    {"no_barrier_between", CHECKED("st.shared.u32 [r3], r0;\nxor.b32 r4, r3, 128;\nld.shared.u32 r5, [r4];\nst.global.u32 [d1], r5;"), 1, 64, RACE, 2, 0, 32},
    {"no_warp_sync_between", CHECKED("st.shared.u32 [r3], r0;\nxor.b32 r4, r3, 4;\nld.shared.u32 r5, [r4];\nst.global.u32 [d1], r5;"), 1, 32, RACE, 2, 0, 0},
    {"write_after_read", CHECKED("st.shared.u32 [r3], r0;\nbar.sync 0;\nxor.b32 r4, r3, 128;\nld.shared.u32 r5, [r4];\nst.shared.u32 [r3], r5;"), 1, 64, RACE, 4, 0, 0},
    {"write_after_two_reads", CHECKED("setp.eq.u32 p0, r0, 0;\nsetp.eq.u32 p1, r0, 1;\n@p0 ld.global.u32 r4, [d0];\n@p1 ld.global.u32 r5, [d0];\n@p0 st.global.u32 [d0], 7;"), 1, 2, RACE, 4, 0, 0},
    {"lanes_write_different_values", CHECKED("st.shared.u32 [tile], r0;"), 1, 2, RACE, 0, 0, 1},
    {"warps_write_different_values", CHECKED("shr.u32 r4, r0, 5;\nst.global.u32 [d0], r4;"), 1, 64, RACE, 1, 0, 32},
    {"a_byte_differs", CHECKED("setp.lt.u32 p0, r0, 32;\n@p0 st.shared.u32 [tile], 0x07070707;\n@!p0 st.shared.u8 [tile+1], 7;\n@!p0 st.shared.u8 [tile+2], 8;"), 1, 64, RACE, 3, 0, 32},
    {"a_lane_differs_from_memory", CHECKED("setp.eq.u32 p0, r0, 3;\nselp.u32 r4, 0, 1, p0;\nst.shared.u32 [tile], r4;"), 1, 4, RACE, 2, 0, 3},
    {"store_against_an_atomic", CHECKED("setp.lt.u32 p0, r0, 32;\n@p0 atom.global.exch.b32 r4, [d0], 5;\n@!p0 st.global.u32 [d0], 5;"), 1, 64, RACE, 2, 0, 32},
    {"blocks_and_cta_scope", CHECKED("red.relaxed.cta.global.add.u32 [d0], 1;"), 2, 32, RACE, 0, 1, 0},
    {"blocks_and_one_cta_scope", CHECKED("setp.eq.u32 p0, r1, 0;\n@p0 atom.relaxed.gpu.global.add.u32 r4, [d0], 1;\n@!p0 atom.relaxed.cta.global.add.u32 r4, [d0], 1;"), 2, 1, RACE, 2, 1, 0},
    {"late_block_reads_an_atomic", CHECKED("setp.eq.u32 p0, r1, 0;\n@p0 red.relaxed.gpu.global.add.u32 [d0], 1;\n@!p0 ld.global.u32 r4, [d0];"), 2, 1, RACE, 2, 1, 0},
    {"blocks_write_one_word", CHECKED("st.global.u32 [d1], r1;"), 2, 1, RACE, 0, 1, 0},
    {"block_reads_what_another_writes", CHECKED("setp.eq.u32 p0, r1, 0;\n@p0 st.global.u32 [d1], 7;\n@!p0 ld.global.u32 r4, [d1];"), 2, 1, RACE, 2, 1, 0},
    {"plain_read_of_atomics", CHECKED("st.shared.u32 [r3], 0;\nbar.sync 0;\nsetp.eq.u32 p0, r0, 32;\n@!p0 atom.shared.add.u32 r4, [tile], 1;\n@p0 ld.shared.u32 r5, [tile];"), 1, 33, RACE, 3, 0, 0},
    {"volatile_is_no_release", CHECKED("setp.lt.u32 p0, r0, 32;\n@!p0 bra NEXT;\nst.global.u32 [d0], r0;\nst.volatile.global.u32 [d0+4], 1;\nbra END;\nNEXT:\nld.volatile.global.u32 r4, [d0+4];\nld.global.u32 r5, [d0];\nEND:"), 1, 33, RACE, 7, 0, 32},
    {"volatile_is_no_acquire", CHECKED("setp.eq.u32 p0, r1, 0;\n@!p0 bra NEXT;\nst.global.u32 [d0], r0;\nmembar.gl;\nst.volatile.global.u32 [d0+4], 1;\nbra END;\nNEXT:\nld.volatile.global.u32 r4, [d0+4];\nld.global.u32 r5, [d0];\nEND:"), 2, 1, RACE, 8, 1, 0},
    {"blocks_joined_without_a_barrier", CHECKED(JOIN("", "membar.gl;", COUNT, "membar.gl;", "ld.global.u32 r5, [d0+128];")), 2, 64, RACE, 8, 1, 0},
    {"blocks_joined_without_a_warp_sync", CHECKED(JOIN("", "membar.gl;", COUNT, "membar.gl;", "ld.global.u32 r5, [d0+4];")), 2, 32, RACE, 8, 1, 0},
    {"blocks_joined_without_a_release", CHECKED(JOIN("bar.sync 0;", "", COUNT, "membar.gl;", "ld.global.u32 r5, [d0+128];")), 2, 64, RACE, 8, 1, 0},
    {"blocks_joined_without_an_acquire", CHECKED(JOIN("bar.sync 0;", "membar.gl;", COUNT, "", "ld.global.u32 r5, [d0+128];")), 2, 64, RACE, 8, 1, 0},
    {"blocks_joined_by_release_alone", CHECKED(JOIN("bar.sync 0;", "", "atom.release.gpu.global.add.u32 r4, [d0+4092], 1;", "", "ld.global.u32 r5, [d0+128];")), 2, 64, RACE, 8, 1, 0},
    {"blocks_joined_and_read_by_nc", CHECKED(JOIN("bar.sync 0;", "membar.gl;", COUNT, "membar.gl;", "ld.global.nc.u32 r5, [d0+128];")), 2, 64, RACE, 8, 1, 0},
    {"blocks_joined_for_another_thread", CHECKED("setp.ne.u32 p0, r0, 0;\nst.global.u32 [d4], r0;\nbar.sync 0;\n@p0 bra NEXT;\nmembar.gl;\n" COUNT "\nmembar.gl;\nst.shared.u32 [tile], r4;\nNEXT:\nsetp.eq.u32 p1, r1, 1;\n@p1 ld.global.u32 r5, [d0+128];"), 2, 64, RACE, 10, 1, 32},
    {"own_write_read_by_nc", CHECKED("st.global.u32 [d1], r0;\nld.global.nc.u32 r5, [d1];"), 1, 1, RACE, 1, 0, 0},
    {"stored_matrices_differ", CHECKED(STMATRIX("shr.u32 r4, r0, 5;")), 1, 64, RACE, 5, 0, 32},
    {"mbarrier_init_without_a_barrier", CHECKED(".shared .align 8 .b64 bar;\nsetp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [bar], 64;\nmbarrier.arrive.shared.b64 d5, [bar];"), 1, 64, RACE, 3, 0, 1},
    {"copied_out_without_a_proxy_fence", CHECKED(BULK_OUT("") BULK_ALL("") "END:"), 1, 64, RACE, 5, 0, 0},
    {"copied_out_after_a_fence_of_one_thread", CHECKED(BULK_OUT("setp.eq.u32 p1, r0, 0;\n@p1 fence.proxy.async.shared::cta;") BULK_ALL("") "END:"), 1, 64, RACE, 6, 0, 0},
    {"proxy_fence_is_no_barrier", CHECKED("st.shared.u32 [r3], r0;\nfence.proxy.async.shared::cta;\nxor.b32 r4, r3, 128;\nld.shared.u32 r5, [r4];"), 1, 64, RACE, 3, 0, 32},
    {"bytes_of_one_word", CHECKED("st.shared.u8 [tile+1], r0;"), 1, 2, RACE, 0, 0, 1},
    /* sync */
    {"barrier_in_a_branch", CHECKED("setp.lt.u32 p0, r0, 16;\n@!p0 bra NEXT;\nbar.sync 0;\nNEXT:\nst.global.u32 [d1], r0;\nadd.u32 r4, r0, 1;"), 1, 32, DIVERG, 2, 0, 0},
    {"barriers_in_both_branches", CHECKED("setp.lt.u32 p0, r0, 4;\n@p0 bra ONE;\nbar.sync 0;\nbra NEXT;\nONE:\nbar.sync 0;\nNEXT:\nst.global.u32 [d1], r0;"), 1, 32, DIVERG, 5, 0, 0},
    {"guarded_barrier", CHECKED("setp.lt.u32 p0, r0, 8;\n@p0 bar.sync 0;\nst.global.u32 [d1], r0;"), 1, 32, DIVERG, 1, 0, 0},
    {"too_few_for_a_count", CHECKED("setp.ge.u32 p0, r0, 32;\n@p0 exit;\nbar.sync 1, 64;"), 1, 64, MISSED, 2, 0, 0},
    {"different_barriers", CHECKED("setp.ge.u32 p0, r0, 32;\n@p0 bra TWO;\nbar.sync 1, 64;\nbra END;\nTWO:\nbar.sync 2, 64;\nEND:"), 1, 64, MISSED, 2, 0, 0},
    {"mask_without_the_caller", CHECKED("shfl.sync.bfly.b32 r4, r0, 1, 31, 0x7fffffff;"), 1, 32, MEMBER, 0, 0, 31},
    {"vote_without_the_caller", CHECKED("setp.eq.u32 p0, r0, 9;\nvote.sync.ballot.b32 r4, p0, 0xfffffffe;"), 1, 32, MEMBER, 1, 0, 0},
    {"shuffle_after_half_exited", CHECKED("setp.ge.u32 p0, r0, 16;\n@p0 exit;\nshfl.sync.idx.b32 r4, r0, 0, 31, -1;"), 1, 32, MEMBER, 2, 0, 0},
    {"shuffle_that_half_passes_by", CHECKED(PASSED_BY("16", "shfl.sync.idx.b32 r4, r0, 0, 31, -1;")), 1, 32, MEMBER, 2, 0, 0},
    {"shuffle_that_half_ends_before", CHECKED("setp.ge.u32 p0, r0, 16;\n@p0 bra END;\nshfl.sync.bfly.b32 r4, r0, 1, 31, -1;\nEND:"), 1, 32, MEMBER, 2, 0, 0},
    {"vote_that_half_passes_by", CHECKED(PASSED_BY("16", "vote.sync.any.pred p1, p0, -1;")), 1, 32, MEMBER, 2, 0, 0},
    {"warp_sync_that_some_pass_by", CHECKED(PASSED_BY("31", "bar.warp.sync -1;")), 2, 32, MEMBER, 2, 0, 0},
    {"shuffle_from_outside_the_mask", CHECKED(PASSED_BY("16", "shfl.sync.down.b32 r4, r0, 8, 31, 0xffff;\nadd.u32 r5, r4, 1;")), 1, 32, INIT, 3, 0, 8},
    {"shuffle_from_no_lane", CHECKED("shfl.sync.bfly.b32 r4, r0, 16, 31, -1;\nadd.u32 r5, r4, 1;"), 1, 24, INIT, 1, 0, 8},
    {"shuffles_from_outside_in_both_branches", CHECKED("setp.ge.u32 p0, r0, 16;\n@p0 bra NEXT;\nsetp.lt.u32 p1, r0, 8;\n@p1 bra LOW;\nshfl.sync.idx.b32 r4, r0, r0, 31, 0xffff;\nbra NEXT;\nLOW:\nshfl.sync.idx.b32 r4, r0, 20, 31, 0xffff;\nNEXT:\n@!p0 setp.eq.u32 p2, r4, 1;\n@!p0 selp.u32 r5, r0, r1, p2;"), 1, 32, INIT, 10, 0, 0},
    {"cp_async_without_wait", CHECKED("cp.async.ca.shared.global [r3], [d1], 4;\ncp.async.commit_group;\nld.shared.u32 r4, [r3];\ncp.async.wait_all;"), 1, 32, ASYNC, 2, 0, 0},
    {"cp_async_one_group_short", CHECKED("cp.async.ca.shared.global [r3], [d1], 4;\ncp.async.commit_group;\ncp.async.ca.shared.global [r3+512], [d1], 4;\ncp.async.commit_group;\ncp.async.wait_group 1;\nld.shared.u32 r4, [r3];\nst.shared.u32 [r3+512], r4;\ncp.async.wait_all;"), 1, 32, ASYNC, 6, 0, 0},
    {"bulk_copy_that_nothing_expects", CHECKED(BULK("mbarrier.arrive.shared.b64 d5, [bar];", "") BULK_WAIT "ld.shared.u32 r5, [tile+4];\nEND:"), 1, 32, ASYNC, 10, 0, 0},
    {"bulk_copy_and_an_arrival_after_it", CHECKED(BULK("", "mbarrier.arrive.shared.b64 d5, [bar];") BULK_WAIT "END:"), 1, 32, ASYNC, 6, 0, 0},
    {"bulk_copies_and_bytes_of_one", CHECKED(BULK("mbarrier.arrive.expect_tx.shared.b64 d5, [bar], 128;", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+128], [d0], 128, [bar];") BULK_WAIT "END:"), 1, 32, ASYNC, 5, 0, 0},
    {"mbarrier_init_twice", CHECKED(".shared .align 8 .b64 bar;\nsetp.ne.u32 p0, r0, 0;\n@p0 bra END;\nmbarrier.init.shared.b64 [bar], 1;\nmbarrier.init.shared.b64 [bar], 1;\nEND:"), 1, 32, OBJECT, 4, 0, 0},
    {"mbarrier_inval_after_an_arrival", CHECKED(".shared .align 8 .b64 bar;\nsetp.ne.u32 p0, r0, 0;\n@p0 bra END;\nmbarrier.init.shared.b64 [bar], 2;\nmbarrier.arrive.shared.b64 d5, [bar];\nmbarrier.inval.shared.b64 [bar];\nEND:"), 1, 32, OBJECT, 5, 0, 0},
    {"mbarrier_inval_before_a_copy_arrives", CHECKED(BULK("mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 128;", "mbarrier.inval.shared.b64 [bar];") "END:"), 1, 32, OBJECT, 6, 0, 0},
    {"bulk_copy_pending_at_exit", CHECKED(BULK("mbarrier.arrive.expect_tx.shared.b64 d5, [bar], 128;", "") "END:"), 1, 32, ASYNC, 5, 0, 0},
    {"bulk_copy_out_pending_at_exit", CHECKED(BULK_OUT("fence.proxy.async;") "END:"), 1, 64, ASYNC, 5, 0, 0},
    {"bulk_copy_out_never_committed", CHECKED("st.shared.u32 [r3], r0;\nfence.proxy.async;\nbar.sync 0;\nsetp.eq.u32 p0, r0, 0;\n@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [tile], 256;\n@p0 cp.async.bulk.wait_group 0;"), 1, 64, ASYNC, 4, 0, 0},
    {"bulk_copy_out_waited_for_by_another", CHECKED(BULK_OUT("fence.proxy.async;") "END:\n@p0 cp.async.bulk.wait_group 0;"), 1, 64, ASYNC, 5, 0, 0},
    {"bulk_copy_out_read_back_after_read", CHECKED(BULK_OUT("fence.proxy.async;") BULK_ALL(".read") "ld.global.u32 r5, [d0+4];\nEND:"), 1, 64, ASYNC, 8, 0, 0},
    {"bulk_copy_out_whose_source_is_written", CHECKED(BULK_OUT("fence.proxy.async;") "st.shared.u32 [tile+252], 7;\n" BULK_ALL("") "END:"), 1, 64, ASYNC, 7, 0, 0},
    {"bulk_copy_out_one_group_short", CHECKED(BULK_OUT("fence.proxy.async;") "cp.async.bulk.global.shared::cta.bulk_group [d0+1024], [tile], 256;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 1;\nld.global.u32 r4, [d0+252];\nld.global.u32 r5, [d0+1276];\n" BULK_ALL("") "END:"), 1, 64, ASYNC, 11, 0, 0},
};
/* clang-format on */

TEST_ROWS(CheckSeeded, Bug, bugs)
{
    for (int threads = 1; threads <= 4; threads *= 2)
        check_seeded(&bugs[index], threads);
}

/* ---- Memory that has been freed ---- */

TEST_CASE(CheckMemory, UseAfterFree)
{
    ptxvm_config config = {.checks = PTXVM_CHECK_ALL};
    const char *texts[] = {CHECK_KERNEL("ld.global.u32 r4, [d1+64];"),
                           CHECK_KERNEL("red.global.add.u32 [d0+8], 1;")};
    for (int i = 0; i < 2; i++) {
        exec_run run = exec_open(&config, texts[i]);
        ptxvm_address first = 0, second = 0;
        CHECK_EQ_I64(ptxvm_alloc(run.vm, 1000, &first), PTXVM_OK);
        CHECK_EQ_I64(ptxvm_free(run.vm, first), PTXVM_OK);
        CHECK_EQ_I64(ptxvm_alloc(run.vm, 1000, &second), PTXVM_OK);
        CHECK(first != second);
        ptxvm_launch_config grid = exec_grid(1, 32);
        CHECK_EQ_I64(ptxvm_launch(run.vm, run.kernel, &grid, &first, sizeof first), PTXVM_ERROR_ADDRESS);
        int n;
        const ptxvm_finding *f = ptxvm_findings(run.vm, &n, NULL);
        if (CHECK(n == 1)) {
            CHECK_EQ_I64(f->kind, PTXVM_FINDING_USE_AFTER_FREE);
            CHECK_EQ_I64(f->line, CHECK_FIRST);
            CHECK_EQ_U64(f->base, first);
            CHECK_EQ_U64(f->size, 1000);
            CHECK_EQ_U64(f->address, first + (i ? 8 : 64));
        }
        CHECK_EQ_I64(ptxvm_free(run.vm, first), PTXVM_ERROR_ADDRESS);
        CHECK(strstr(ptxvm_last_error(run.vm), "freed already") != NULL);
        ptxvm_leak leak;
        CHECK_EQ_I64(ptxvm_leaks(run.vm, &leak, 1), 1);
        CHECK_EQ_U64(leak.address, second);
        exec_close(&run);
    }
}

#define HEAP                                                                                                 \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                                                        \
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"           \
    ".visible .entry k(.param .u64 out) { .reg .b64 d<4>;\n"

static void expect_double_free(const check_result *r, int line, uint64_t size)
{
    CHECK_EQ_I64(r->status, PTXVM_ERROR_ADDRESS);
    if (CHECK(r->n == 1)) {
        CHECK_EQ_I64(r->findings[0].kind, PTXVM_FINDING_DOUBLE_FREE);
        CHECK_EQ_I64(r->findings[0].line, line);
        CHECK_EQ_U64(r->findings[0].size, size);
    }
    ptxvm_destroy(r->vm);
}

TEST_CASE(CheckMemory, DoubleFreeAndLeakOfTheGuest)
{
    check_result r = check_run(HEAP "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, "
                                    "(n); ld.param.b64 d1, [r]; }\n"
                                    "{ .param .b64 p; st.param.b64 [p], d1; call free, (p); }\n"
                                    "{ .param .b64 p; st.param.b64 [p], d1; call free, (p); }\nret; }\n",
                               1, 1, PTXVM_CHECK_ALL, 1);
    expect_double_free(&r, 9, 24);
    r = check_run(HEAP
                  "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); }\nret; }\n",
                  1, 2, PTXVM_CHECK_ALL, 1);
    CHECK_EQ_I64(r.status, PTXVM_OK);
    ptxvm_leak leaks[3];
    CHECK_EQ_I64(ptxvm_leaks(r.vm, leaks, 3), 3);
    CHECK(!leaks[0].heap && leaks[1].heap && leaks[2].heap && leaks[1].bytes == 24);
    ptxvm_destroy(r.vm);
}

/* The same in other forms: freed again by a later round of a loop; freed by one thread of two alone. */
TEST_CASE(CheckMemory, DoubleFreeInALoopAndLeakOfOneThread)
{
    check_result r = check_run(HEAP "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 40; call (r), malloc, "
                                    "(n); ld.param.b64 d1, [r]; }\n"
                                    "{ .reg .pred q; .reg .b32 i; mov.u32 i, 0;\nAGAIN:\n"
                                    "{ .param .b64 p; st.param.b64 [p], d1; call free, (p); }\n"
                                    "add.u32 i, i, 1; setp.lt.u32 q, i, 2; @q bra AGAIN; }\nret; }\n",
                               1, 1, PTXVM_CHECK_ALL, 1);
    expect_double_free(&r, 10, 40);
    r = check_run(HEAP "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 56; call (r), malloc, (n); "
                       "ld.param.b64 d1, [r]; }\n"
                       "{ .reg .pred q; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.u32 q, t, 0; @q bra KEEP;\n"
                       "{ .param .b64 p; st.param.b64 [p], d1; call free, (p); }\nKEEP: }\nret; }\n",
                  1, 2, PTXVM_CHECK_ALL, 1);
    CHECK_EQ_I64(r.status, PTXVM_OK);
    ptxvm_leak leaks[3];
    CHECK_EQ_I64(ptxvm_leaks(r.vm, leaks, 3), 2);
    CHECK(!leaks[0].heap && leaks[1].heap && leaks[1].bytes == 56);
    ptxvm_destroy(r.vm);
}

/* The thread that reads last is not the one to blame: the first of two readers conflicts with its write. */
TEST_CASE(CheckRace, BothReadersAreKept)
{
    check_result r = check_run(CHECK_KERNEL("setp.eq.u32 p0, r0, 0;\nsetp.eq.u32 p1, r0, 1;\n"
                                            "@p0 ld.global.u32 r4, [d0];\n@p1 ld.global.u32 r5, [d0];\n"
                                            "@p1 st.global.u32 [d0], 7;"),
                               1, 2, PTXVM_CHECK_RACE, 1);
    if (CHECK(r.n == 1)) {
        CHECK_EQ_I64(r.findings[0].thread[0], 1);
        CHECK_EQ_I64(r.findings[0].other_thread[0], 0);
        CHECK_EQ_I64(r.findings[0].other_line, CHECK_FIRST + 2);
    }
    ptxvm_destroy(r.vm);
}

/* Blocks of 2 x 2 x 2 threads: the first and the last write to one word. */
TEST_CASE(CheckRace, BothThreadsHaveThreeCoordinates)
{
    ptxvm_config config = {.checks = PTXVM_CHECK_RACE};
    exec_run run = exec_open(&config, CHECK_KERNEL("mov.u32 r4, %tid.y;\nmov.u32 r5, %tid.z;\n"
                                                   "shl.b32 r4, r4, 1;\nadd.u32 r0, r0, r4;\n"
                                                   "shl.b32 r5, r5, 2;\nadd.u32 r0, r0, r5;\n"
                                                   "setp.eq.u32 p0, r0, 6;\nsetp.eq.u32 p1, r0, 7;\n"
                                                   "@p0 st.global.u32 [d0], 1;\n@p1 st.global.u32 [d0], 2;"));
    ptxvm_address buffer = 0;
    int n = 0;
    CHECK_EQ_I64(ptxvm_alloc(run.vm, 4096, &buffer), PTXVM_OK);
    ptxvm_launch_config grid = exec_grid(1, 2);
    grid.block[1] = grid.block[2] = 2;
    CHECK_EQ_I64(ptxvm_launch(run.vm, run.kernel, &grid, &buffer, sizeof buffer), PTXVM_ERROR_CHECK);
    const ptxvm_finding *f = ptxvm_findings(run.vm, &n, NULL);
    if (CHECK(n == 1))
        for (int i = 0; i < 3; i++) {
            CHECK_EQ_I64(f->thread[i], 1);
            CHECK_EQ_I64(f->other_thread[i], i > 0);
        }
    exec_close(&run);
}

TEST_CASE(CheckMemory, DistanceAndOtherParty)
{
    check_result r = check_run(CHECK_KERNEL("st.global.u32 [d1+4092], r0;"), 1, 32, PTXVM_CHECK_MEMORY, 1);
    if (CHECK(r.n == 1)) {
        CHECK_EQ_I64(r.findings[0].distance, 0);
        CHECK_EQ_I64(r.findings[0].thread[0], 1);
        CHECK_EQ_U64(r.findings[0].base, r.buffer);
        CHECK_EQ_U64(r.findings[0].size, 4096);
    }
    ptxvm_destroy(r.vm);
    r = check_run(CHECK_KERNEL("st.global.u32 [d1], r1;"), 3, 1, PTXVM_CHECK_ALL, 2);
    if (CHECK(r.n == 1)) {
        const ptxvm_finding *f = &r.findings[0];
        CHECK(f->has_other && f->other_block[0] == 0 && f->other_line == CHECK_FIRST && f->count == 2);
        CHECK_EQ_U64(r.total, 2);
        CHECK_EQ_I64(ptxvm_status_cuda(f->status), 719);
    }
    ptxvm_destroy(r.vm);
}

/* .loc leads to the line of the source, in the finding and in its text. */
TEST_CASE(CheckNames, TheSourceLine)
{
    check_result r = check_run(
        CHECK_KERNEL(
            ".loc 1 42 7\nadd.u32 r5, r6, 1;\n.loc 1 43 1\nst.global.u32 [d1], r5;") ".file 1 \"lost.cu\"\n",
        1, 1, PTXVM_CHECK_INIT, 1);
    if (CHECK(r.n == 1)) {
        CHECK_EQ_I64(r.findings[0].line, CHECK_FIRST + 1);
        CHECK_EQ_STR(r.findings[0].source_file, "lost.cu");
        CHECK_EQ_I64(r.findings[0].source_line, 42);
        CHECK_HAS(r.findings[0].message, "lost.cu:42");
    }
    ptxvm_destroy(r.vm);
}

/* 120 registers that were never written (each is reported once): a hundred are listed, all are counted. */
TEST_CASE(CheckNames, TheListIsLimited)
{
    static char body[120 * 32], text[sizeof body + 1024];
    snprintf(body, sizeof body, ".reg .b32 q<120>; ");
    for (int i = 0; i < 120; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body), "add.u32 r5, q%d, 1;\n", i);
    const char *frame = CHECK_KERNEL("@@");
    const char *place = strstr(frame, "@@");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(place - frame), frame, body, place + 2);
    check_result r = check_run(text, 1, 1, PTXVM_CHECK_INIT, 1);
    CHECK_EQ_I64(r.status, PTXVM_ERROR_CHECK);
    CHECK_EQ_I64(r.n, 100);
    CHECK_EQ_U64(r.total, 120);
    if (r.n == 100)
        CHECK_EQ_I64(r.findings[99].line, CHECK_FIRST + 99);
    ptxvm_destroy(r.vm);
}

/* Stores of the same value are reported if the option asks for it. */
TEST_CASE(CheckRace, SameValueIsAnOption)
{
    const char *const lanes = CHECK_KERNEL("st.global.u32 [d0], 7;"), *const blocks = CHECK_KERNEL(
                                                                          "st.global.u32 [d1], 7;");
    for (int i = 0; i < 2; i++) {
        const char *text = i ? blocks : lanes;
        uint32_t n_blocks = i ? 2 : 1, n_threads = i ? 1 : 2;
        check_result r = check_run(text, n_blocks, n_threads, PTXVM_CHECK_ALL, 1);
        CHECK_EQ_I64(r.status, PTXVM_OK);
        ptxvm_destroy(r.vm);
        r = check_run(text, n_blocks, n_threads, PTXVM_CHECK_ALL | PTXVM_CHECK_SAME, 1);
        CHECK_EQ_I64(r.status, PTXVM_ERROR_CHECK);
        if (CHECK(r.n == 1))
            CHECK_EQ_I64(r.findings[0].kind, PTXVM_FINDING_RACE);
        ptxvm_destroy(r.vm);
    }
}

static void expect_message(const char *text, uint32_t blocks, uint32_t threads, const char *message)
{
    check_result r = check_run(text, blocks, threads, PTXVM_CHECK_ALL, 1);
    if (CHECK(r.n >= 1))
        CHECK_HAS(r.findings[0].message, message);
    ptxvm_destroy(r.vm);
}

TEST_CASE(CheckNames, WhatMembersAndScopesLack)
{
    expect_message(
        CHECK_KERNEL("setp.ge.u32 p0, r0, 16;\n@p0 exit;\nshfl.sync.idx.b32 r4, r0, 0, 31, -1;"), 1, 32,
        "lanes 0x0000ffff execute shfl, whose member mask 0xffffffff names lanes 0xffff0000 as well, "
        "which have exited");
    expect_message(
        CHECK_KERNEL(PASSED_BY("16", "vote.sync.any.pred p1, p0, -1;")), 1, 32,
        "lanes 0x0000ffff execute vote, whose member mask 0xffffffff names lanes 0xffff0000 as well, "
        "which never came");
    expect_message(
        CHECK_KERNEL(PASSED_BY("16", "shfl.sync.down.b32 r4, r0, 8, 31, 0xffff;\nadd.u32 r5, r4, 1;")), 1, 32,
        "add computes with r4, which holds bytes that were never written, or that shfl at line 10 read from "
        "a "
        "lane outside its member mask");
    expect_message(CHECK_KERNEL(JOIN("bar.sync 0;", "membar.gl;", COUNT, "membar.gl;",
                                     "ld.global.nc.u32 r5, [d0+128];")),
                   2, 64,
                   "wrote at line 8: ld.global.nc needs memory that nothing writes while the kernel runs");
    expect_message(CHECK_KERNEL(BULK_OUT("") BULK_ALL("") "END:"), 1, 64,
                   "wrote at line 8, with no fence.proxy.async after it: the async proxy may not see it");
    expect_message(
        CHECK_KERNEL(BULK_OUT("fence.proxy.async;") BULK_ALL(".read") "ld.global.u32 r5, [d0+4];\nEND:"), 1,
        64,
        "which the bulk copy of line 13 may still be writing: cp.async.bulk.wait_group without "
        ".read has to come first");
    expect_message(CHECK_KERNEL(BULK("", "mbarrier.arrive.shared.b64 d5, [bar];") BULK_WAIT "END:"), 1, 32,
                   "a phase of the mbarrier ends while 1 bulk copy that completes on it is under way");
    expect_message(CHECK_KERNEL("red.relaxed.cta.global.add.u32 [d0], 1;"), 2, 1,
                   "a scope of .cta does not reach another block");
    expect_message(CHECK_KERNEL("@p3 st.global.u32 [d1], r0;"), 1, 32,
                   "the guard of st is a predicate that depends on bytes that were never written");
    expect_message(CHECK_KERNEL("setp.eq.u32 p0, r4, 0;\nselp.u32 r5, 1, 2, p0;"), 1, 32,
                   "selp decides by p0, which depends on bytes that were never written");
}

/* "N bytes past the end" counts from the end to the first byte outside, wherever the access begins. */
TEST_CASE(CheckMemory, DistanceOfTheFirstByteOutside)
{
    static const struct {
        const char *text, *message;
        int64_t distance;
    } rows[] = {
        {CHECK_KERNEL("st.global.u32 [d0+1000], r0;"), ": 0 bytes past the end of the 1000 bytes", 0},
        {CHECK_KERNEL("st.global.u32 [d0+1004], r0;"), ": 4 bytes past the end of the 1000 bytes", 4},
        {CHECK_KERNEL("st.global.v4.u32 [d0+992], {r0, r0, r0, r0};"),
         ": 0 bytes past the end of the 1000 bytes", 0},
        {CHECK_KERNEL(".shared .align 16 .b8 odd[1000];\nst.shared.v4.u32 [odd+992], {r0, r0, r0, r0};"),
         ": 0 bytes past the end of the 5096 bytes", 0},
    };
    ptxvm_config config = {.checks = PTXVM_CHECK_MEMORY};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        exec_run run = exec_open(&config, rows[i].text);
        ptxvm_address buffer = 0;
        CHECK_EQ_I64(ptxvm_alloc(run.vm, 1000, &buffer), PTXVM_OK);
        ptxvm_launch_config grid = exec_grid(1, 1);
        CHECK_EQ_I64(ptxvm_launch(run.vm, run.kernel, &grid, &buffer, sizeof buffer), PTXVM_ERROR_ADDRESS);
        int n;
        const ptxvm_finding *f = ptxvm_findings(run.vm, &n, NULL);
        if (CHECK(n == 1)) {
            CHECK_EQ_I64(f->distance, rows[i].distance);
            CHECK_HAS(f->message, rows[i].message);
        }
        exec_close(&run);
    }
}

TEST_CASE(CheckNames, Parse)
{
    unsigned checks = 99;
    CHECK(ptxvm_checks_parse("none", &checks) && checks == 0);
    CHECK(ptxvm_checks_parse("all", &checks) && checks == PTXVM_CHECK_ALL);
    CHECK(ptxvm_checks_parse("race,memory", &checks) && checks == (PTXVM_CHECK_RACE | PTXVM_CHECK_MEMORY));
    CHECK(ptxvm_checks_parse("all,same", &checks) && checks == (PTXVM_CHECK_ALL | PTXVM_CHECK_SAME));
    CHECK(ptxvm_checks_parse("same", &checks) && checks == (PTXVM_CHECK_RACE | PTXVM_CHECK_SAME));
    CHECK(!ptxvm_checks_parse("races", &checks) && !ptxvm_checks_parse("race,", &checks));
}

/* ---- Kernels without a bug ---- */

static void expect_clean_on(const char *text, int number, uint32_t blocks)
{
    check_result r = check_run(text, blocks, 64, PTXVM_CHECK_ALL, 2);
    test_push_note("kernel %d: %s", number, r.n ? r.findings[0].message : "");
    CHECK_EQ_I64(r.status, PTXVM_OK);
    CHECK_EQ_I64(r.n, 0);
    test_pop_note();
    ptxvm_destroy(r.vm);
}

static void expect_clean(const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_clean_on(texts[i], (int)i, 2);
}

TEST_CASE(CheckClean, Kernels)
{
    static const char *const clean[] = {
        CHECK_KERNEL("st.shared.u32 [r3], r0;\nbar.sync 0;\nxor.b32 r4, r3, 128;\nld.shared.u32 r5, "
                     "[r4];\nbar.sync 0;\n"
                     "st.shared.u32 [r3], r5;"),
        CHECK_KERNEL(
            "st.shared.u32 [r3], r0;\nbar.warp.sync -1;\nxor.b32 r4, r3, 4;\nld.shared.u32 r5, [r4];"),
        CHECK_KERNEL("shl.b32 r4, r0, 0;\nmov.u32 r5, tile;\nadd.u32 r5, r5, r0;\nst.shared.u8 [r5], "
                     "r0;\nld.shared.u8 r6, [r5];"),
        CHECK_KERNEL("setp.lt.u32 p0, r0, 32;\n@p0 st.shared.u32 [tile], 5;"),
        CHECK_KERNEL("red.global.add.u32 [d0], 1;"),
        CHECK_KERNEL(
            "ld.shared.u32 r4, [r3];\nst.global.u32 [d4], r4;\nmov.b64 d5, {r4, r0};\nmov.b64 {r6, r7}, d5;\n"
            "add.u32 r7, r7, 1;"),
        CHECK_KERNEL("setp.ge.u32 p0, r0, 40;\n@p0 exit;\nbar.sync 0;"),
        CHECK_KERNEL("cp.async.ca.shared.global [r3], [d1], 4;\ncp.async.wait_all;\nbar.sync 0;\nxor.b32 r4, "
                     "r3, 128;\n"
                     "ld.shared.u32 r5, [r4];\nadd.u32 r5, r5, 1;"),
        /* Two threads, warps and blocks that store the same. */
        CHECK_KERNEL("st.global.u32 [d0], 7;\nst.global.v2.u16 [d0], {7, 0};"),
        CHECK_KERNEL("setp.lt.u32 p0, r0, 32;\n@p0 st.shared.v4.u32 [tile], {1, 2, 3, 4};\n"
                     "@!p0 st.shared.u8 [tile+8], 3;\n@!p0 st.shared.u32 [tile+12], 4;"),
        /* Unwritten bytes that decide nothing. */
        CHECK_KERNEL("ld.shared.u32 r4, [r3];\nsetp.eq.u32 p0, r4, 0;\nsetp.gt.u32 p1, r0, 4000;\n"
                     "and.pred p2, p0, p1;\n@p2 st.global.u32 [d4], r0;\nsetp.ne.and.u32 p3|p4, r4, 0, p1;\n"
                     "@p3 st.global.u32 [d4], r0;\n@p4 st.global.u32 [d4], r0;\nnot.pred p5, p1;\n"
                     "or.pred p6, p5, p0;\n@p6 st.global.u32 [d4], r0;"),
        CHECK_KERNEL("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r4,r5,r6,r7}, [tile];\nmov.u32 r8, r6;\n"
                     "st.global.u32 [d4], r8;"),
        CHECK_KERNEL(
            "wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {f0,f1,f2,f3,f4,f5,f6,f7}, [tile], 16;\n"
            "st.global.f32 [d4], f3;"),
        /* Scopes that reach, members that are there. */
        CHECK_KERNEL("red.relaxed.gpu.global.add.u32 [d0], 1;\nadd.u64 d5, d0, d3;\n"
                     "red.relaxed.cta.global.add.u32 [d5+512], 1;"),
        CHECK_KERNEL("setp.ge.u32 p0, r0, 40;\n@p0 bra END;\nbar.warp.sync -1;\n"
                     "vote.sync.any.pred p1, p0, -1;\nEND:"),
        CHECK_KERNEL("and.b32 r4, r0, 31;\nsetp.ge.u32 p0, r4, 16;\n@p0 bra HIGH;\n"
                     "shfl.sync.down.b32 r4, r0, 8, 0x101f, 0xffff;\nbra NEXT;\nHIGH:\n"
                     "shfl.sync.bfly.b32 r4, r0, 8, 31, 0xffff0000;\nNEXT:\n@p0 bra TOO;\n"
                     "shfl.sync.bfly.b32 r5, r4, 16, 31, -1;\nbra LAST;\nTOO:\n"
                     "shfl.sync.bfly.b32 r5, r4, 16, 31, -1;\nLAST:\nst.global.u32 [d4], r5;"),
    };
    expect_clean(clean, sizeof clean / sizeof *clean);
}

/* What the bugs above become when they are repaired. */
TEST_CASE(CheckClean, JoinsCopiesAndShuffles)
{
    static const char *const clean[] = {
        CHECK_KERNEL(JOIN("bar.sync 0;", "membar.gl;", COUNT, "membar.gl;", "ld.global.u32 r5, [d0+128];")),
        CHECK_KERNEL(JOIN("bar.sync 0;", "", "atom.acq_rel.gpu.global.add.u32 r4, [d0+4092], 1;", "",
                          "ld.global.u32 r5, [d0+128];")),
        CHECK_KERNEL(JOIN("fence.acq_rel.gpu;\nbar.sync 0;", "", COUNT, "fence.acq_rel.gpu;",
                          "ld.global.u32 r5, [d0+128];")),
        CHECK_KERNEL(
            JOIN("bar.warp.sync -1;", "membar.gl;", COUNT, "membar.gl;", "ld.global.u32 r5, [d0+4];")),
        /* The thread that counts acquires for all of its block. */
        CHECK_KERNEL(
            "setp.ne.u32 p0, r0, 0;\nst.global.u32 [d4], r0;\nbar.sync 0;\n@p0 bra NEXT;\nmembar.gl;\n" COUNT
            "\nmembar.gl;\nst.shared.u32 [tile], r4;\nNEXT:\nbar.sync 0;\nld.shared.u32 r6, [tile];\n"
            "setp.eq.u32 p1, r6, 1;\n@p1 ld.global.u32 r5, [d0+128];"),
        CHECK_KERNEL(
            "setp.eq.u32 p0, r1, 0;\n@!p0 bra NEXT;\nst.global.u32 [d4], r0;\nbar.sync 0;\nmembar.gl;\n"
            "st.volatile.global.u32 [d0+4092], 1;\nbra END;\nNEXT:\nld.volatile.global.u32 r4, [d0+4092];\n"
            "membar.gl;\nbar.sync 0;\nld.global.u32 r5, [d1];\nEND:"),
        CHECK_KERNEL("ld.global.nc.u32 r4, [d1];\nst.shared.u32 [r3], r4;"),
        CHECK_KERNEL(STMATRIX("mov.u32 r4, 7;")),
        CHECK_KERNEL(STMATRIX("and.b32 r4, r0, 31;")),
        CHECK_KERNEL(
            ".shared .align 8 .b64 bar;\nsetp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [bar], 64;\n"
            "bar.sync 0;\nmbarrier.arrive.shared.b64 d5, [bar];"),
        CHECK_KERNEL(BULK("mbarrier.arrive.expect_tx.shared.b64 d5, [bar], 128;", "") BULK_WAIT
                     "ld.shared.u32 r5, [tile+4];\nEND:"),
        CHECK_KERNEL(BULK("", "mbarrier.arrive.expect_tx.shared.b64 d5, [bar], 128;") BULK_WAIT
                     "ld.shared.u32 r5, [tile+4];\nEND:"),
        CHECK_KERNEL("and.b32 r4, r0, 31;\nsetp.ge.u32 p0, r4, 16;\n@p0 bra NEXT;\n"
                     "shfl.sync.down.b32 r5, r0, 8, 31, 0xffff;\nsetp.lt.u32 p1, r4, 8;\n@p1 add.u32 r5, r5, "
                     "1;\nNEXT:"),
    };
    expect_clean(clean, sizeof clean / sizeof *clean);
    /* One block: copies of two would write the same memory. */
    static const char *const alone[] = {
        CHECK_KERNEL(BULK_OUT("fence.proxy.async.shared::cta;")
                         BULK_ALL("") "ld.global.u32 r5, [d0+4];\nEND:"),
        CHECK_KERNEL(BULK_OUT("fence.proxy.async;") BULK_ALL(".read") "st.shared.u32 [tile+4], 7;\nEND:"),
        CHECK_KERNEL("st.shared.u32 [r3], r0;\nbar.sync 0;\nsetp.eq.u32 p0, r0, 0;\n@p0 fence.proxy.async;\n"
                     "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [tile], 256;\n"
                     "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group.read 0;"),
    };
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        expect_clean_on(alone[i], (int)i, 1);
}
