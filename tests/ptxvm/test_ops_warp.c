/* shfl, vote, match, redux, activemask, elect. */
#include <stdio.h>

#include "test_ops.h"

#define EXPECT(name, expression)                                                                             \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        (void)t;                                                                                             \
        return expression;                                                                                   \
    }

/* Each thread's value is 100 + its number; in the high half whether the source was in range. */
#define PAIR(lane, in_range) ((uint64_t)(100 + (lane)) | (uint64_t)((in_range) ? 1 : 0) << 32)
EXPECT(up_3, PAIR(t >= 3 ? t - 3 : t, t >= 3))
EXPECT(up_3_of_8, PAIR(t % 8 >= 3 ? t - 3 : t, t % 8 >= 3))
EXPECT(down_5, PAIR(t + 5 <= 31 ? t + 5 : t, t + 5 <= 31))
EXPECT(down_5_of_16, PAIR(t % 16 + 5 <= 15 ? t + 5 : t, t % 16 + 5 <= 15))
EXPECT(bfly_9, PAIR(t ^ 9, 1))
EXPECT(bfly_9_of_8, PAIR((t ^ 9) <= (t | 7) ? t ^ 9 : t, (t ^ 9) <= (t | 7)))
EXPECT(idx_7, PAIR(7, 1))
EXPECT(idx_own, PAIR((t * 5) % 32, 1))
EXPECT(idx_6_of_4, PAIR((t & 28) | 2, 1))
EXPECT(idx_wraps, PAIR(33 % 32, 1))
EXPECT(clamped, PAIR(t + 1 <= 20 ? t + 1 : t, t + 1 <= 20))
EXPECT(low_half, t < 16 ? PAIR(t ^ 1, 1) : 0)
EXPECT(odd_ballot, 0xAAAAAAAA)
EXPECT(even_ballot, 0x55555555)
EXPECT(yes, 1)
EXPECT(no, 0)
EXPECT(low_ballot, t < 16 ? 0x0000AAAA : 0xAAAA0000)
EXPECT(match_mod4, UINT32_C(0x11111111) << t % 4)
EXPECT(match_all, (UINT64_C(1) << 32) | 0xFFFFFFFF)
EXPECT(match_64, t < 16 ? 0xFFFF : 0xFFFF0000)
EXPECT(sum, 496)
EXPECT(low_sum, t < 16 ? 120 : 376)
EXPECT(min_signed, (uint32_t)-31)
EXPECT(max_signed, 0)
EXPECT(min_unsigned, 0)
EXPECT(max_unsigned, (uint32_t)-1)
EXPECT(and_all, 0xF0)
EXPECT(or_all, 0xFF)
EXPECT(xor_all, 0)
EXPECT(f_min, 0xC1F80000)     /* -31 */
EXPECT(f_max, 0x80000000)     /* -0 */
EXPECT(f_max_abs, 0x41F80000) /* 31 */
EXPECT(f_nan, 0x7FFFFFFF)
EXPECT(elected, t == 4 ? 1004 : 4)
EXPECT(active_low, t < 10 ? 0x3FF : 0)
EXPECT(active_all, UINT32_MAX)

#define SHOW                                                                                                 \
    "\nselp.u32 %r8, 1, 0, %p1; cvt.u64.u32 %rd9, %r9; cvt.u64.u32 %rd8, %r8; shl.b64 %rd8, %rd8, 32;"       \
    "or.b64 %rd9, %rd9, %rd8;"
#define VALUE  "add.u32 %r1, %r0, 100;\n"
#define OUT    "\ncvt.u64.u32 %rd9, %r9;"
#define PRED   "\nselp.u64 %rd9, 1, 0, %p2;"
#define ODD    "and.b32 %r1, %r0, 1; setp.ne.u32 %p1, %r1, 0;\n"
#define MINUS  "neg.s32 %r1, %r0;\n"
#define FMINUS "cvt.rn.f32.u32 %f1, %r0; neg.f32 %f1, %f1;\n"
#define FOUT   "\nmov.b32 %r9, %f2; cvt.u64.u32 %rd9, %r9;"

/* clang-format off */
static const ops_test Shfl[] = {
    {"up", VALUE "shfl.sync.up.b32 %r9|%p1, %r1, 3, 0, -1;" SHOW, up_3},
    {"up_in_segments_of_8", VALUE "shfl.sync.up.b32 %r9|%p1, %r1, 3, 0x1800, -1;" SHOW, up_3_of_8},
    {"down", VALUE "shfl.sync.down.b32 %r9|%p1, %r1, 5, 31, -1;" SHOW, down_5},
    {"down_in_segments_of_16", VALUE "shfl.sync.down.b32 %r9|%p1, %r1, 5, 0x101F, -1;" SHOW, down_5_of_16},
    {"bfly", VALUE "shfl.sync.bfly.b32 %r9|%p1, %r1, 9, 31, -1;" SHOW, bfly_9},
    {"bfly_out_of_its_segment", VALUE "shfl.sync.bfly.b32 %r9|%p1, %r1, 9, 0x181F, -1;" SHOW, bfly_9_of_8},
    {"idx", VALUE "shfl.sync.idx.b32 %r9|%p1, %r1, 7, 31, -1;" SHOW, idx_7},
    {"idx_by_register", VALUE "mul.lo.u32 %r2, %r0, 5; shfl.sync.idx.b32 %r9|%p1, %r1, %r2, 31, -1;" SHOW,
        idx_own},
    {"idx_in_segments_of_4", VALUE "shfl.sync.idx.b32 %r9|%p1, %r1, 6, 0x1C1F, -1;" SHOW, idx_6_of_4},
    {"idx_takes_five_bits", VALUE "shfl.sync.idx.b32 %r9|%p1, %r1, 33, 31, -1;" SHOW, idx_wraps},
    {"clamp", VALUE "shfl.sync.down.b32 %r9|%p1, %r1, 1, 20, -1;" SHOW, clamped},
    {"members", VALUE "setp.lt.u32 %p2, %r0, 16; @!%p2 bra OVER; "
        "shfl.sync.bfly.b32 %r9|%p1, %r1, 1, 31, 0xFFFF;" SHOW "\nOVER:",
        low_half},
};

static const ops_test Vote[] = {
    {"ballot", ODD "vote.sync.ballot.b32 %r9, %p1, -1;" OUT, odd_ballot},
    {"ballot_of_not", ODD "vote.sync.ballot.b32 %r9, !%p1, -1;" OUT, even_ballot},
    {"all", ODD "vote.sync.all.pred %p2, %p1, -1;" PRED, no},
    {"any", ODD "vote.sync.any.pred %p2, %p1, -1;" PRED, yes},
    {"uni", ODD "vote.sync.uni.pred %p2, %p1, -1;" PRED, no},
    {"uni_of_none", "setp.gt.u32 %p1, %r0, 99; vote.sync.uni.pred %p2, %p1, -1;" PRED, yes},
    {"all_of_all", "setp.lt.u32 %p1, %r0, 99; vote.sync.all.pred %p2, %p1, -1;" PRED, yes},
    {"two_groups", ODD "setp.lt.u32 %p3, %r0, 16; selp.b32 %r5, 0x0000FFFF, 0xFFFF0000, %p3; @%p3 bra LOW;\n"
        "vote.sync.ballot.b32 %r9, %p1, %r5; bra END; LOW: vote.sync.ballot.b32 %r9, %p1, %r5; END:" OUT,
        low_ballot},
    {"match_any", "and.b32 %r1, %r0, 3; match.any.sync.b32 %r9, %r1, -1;" OUT, match_mod4},
    {"match_any_64", "shr.u32 %r1, %r0, 4; cvt.u64.u32 %rd4, %r1; shl.b64 %rd4, %rd4, 40; "
        "match.any.sync.b64 %r9, %rd4, -1;" OUT,
        match_64},
    {"match_all", "mov.u32 %r1, 7; match.all.sync.b32 %r9|%p1, %r1, -1;" SHOW, match_all},
    {"match_all_not", "match.all.sync.b32 %r9|%p1, %r0, -1;" SHOW, no},
    {"elect", "setp.ge.u32 %p3, %r0, 4; @!%p3 bra REST; elect.sync %r9|%p1, 0xFFFFFFF0; "
        "@%p1 add.u32 %r9, %r9, 1000; bra END;\n"
        "REST: mov.u32 %r9, 4; END:" OUT, elected},
    {"activemask", "mov.u32 %r9, 0; setp.lt.u32 %p1, %r0, 10; @%p1 activemask.b32 %r9;" OUT, active_low},
    {"activemask_all", "activemask.b32 %r9;" OUT, active_all},
};

static const ops_test Redux[] = {
    {"add_u32", "redux.sync.add.u32 %r9, %r0, -1;" OUT, sum},
    {"add_in_halves", "setp.lt.u32 %p3, %r0, 16; selp.b32 %r5, 0x0000FFFF, 0xFFFF0000, %p3; @%p3 bra LOW;\n"
        "redux.sync.add.s32 %r9, %r0, %r5; bra END; LOW: redux.sync.add.s32 %r9, %r0, %r5; END:" OUT,
        low_sum},
    {"min_s32", MINUS "redux.sync.min.s32 %r9, %r1, -1;" OUT, min_signed},
    {"max_s32", MINUS "redux.sync.max.s32 %r9, %r1, -1;" OUT, max_signed},
    {"min_u32", MINUS "redux.sync.min.u32 %r9, %r1, -1;" OUT, min_unsigned},
    {"max_u32", MINUS "redux.sync.max.u32 %r9, %r1, -1;" OUT, max_unsigned},
    {"and_b32", "and.b32 %r1, %r0, 15; or.b32 %r1, %r1, 0xF0; redux.sync.and.b32 %r9, %r1, -1;" OUT, and_all},
    {"or_b32", "and.b32 %r1, %r0, 15; or.b32 %r1, %r1, 0xF0; redux.sync.or.b32 %r9, %r1, -1;" OUT, or_all},
    {"xor_b32", "redux.sync.xor.b32 %r9, %r0, -1;" OUT, xor_all},
    {"min_f32", FMINUS "redux.sync.min.f32 %f2, %f1, -1;" FOUT, f_min},
    {"max_f32", FMINUS "redux.sync.max.f32 %f2, %f1, -1;" FOUT, f_max},
    {"max_abs_f32", FMINUS "redux.sync.max.abs.f32 %f2, %f1, -1;" FOUT, f_max_abs},
    {"min_f32_passes_over_nan", FMINUS "setp.eq.u32 %p1, %r0, 3; @%p1 mov.b32 %f1, 0x7FC00000;\n"
        "redux.sync.min.f32 %f2, %f1, -1;" FOUT, f_min},
    {"min_nan_f32", FMINUS "setp.eq.u32 %p1, %r0, 3; @%p1 mov.b32 %f1, 0x7FC00000;\n"
        "redux.sync.min.NaN.f32 %f2, %f1, -1;" FOUT, f_nan},
    {"nan_of_one_lane_is_canonical", "mov.b32 %f1, 0xFFC00001; mov.u32 %r5, 1; shl.b32 %r5, %r5, %r0;\n"
        "redux.sync.min.f32 %f2, %f1, %r5;" FOUT, f_nan},
};
/* clang-format on */

OPS_TESTS(OpsWarp, Shfl)
OPS_TESTS(OpsWarp, Vote)
OPS_TESTS(OpsWarp, Redux)
