/* setp, set, selp, slct: values worked out from the PTX ISA. */
#include "test_lanes.h"

#define ROWS(name) lanes_check_rows(name, (int)(sizeof name / sizeof *name))
#define ONE        0x3F800000u
#define TWO        0x40000000u
#define NAN_       0x7FC00000u
#define M1         0xFFFFFFFFu

/* clang-format off */
static const lanes_row integers[] = {
    {"setp.eq.s32", "p:ww", {1}, {5, 5}},
    {"setp.ne.b16", "p:hh", {1}, {5, 6}},
    {"setp.eq.b64", "p:dd", {0}, {0x100000005, 5}},
    {"setp.lt.s32", "p:ww", {1}, {M1, 0}},
    {"setp.lt.u32", "p:ww", {0}, {M1, 0}},
    {"setp.lo.u32", "p:ww", {1}, {0, M1}},
    {"setp.ls.u16", "p:hh", {1}, {7, 7}},
    {"setp.hi.u64", "p:dd", {1}, {0xFFFFFFFFFFFFFFFF, 0}},
    {"setp.hs.u32", "p:ww", {1}, {M1, M1}},
    {"setp.gt.s64", "p:dd", {0}, {0xFFFFFFFFFFFFFFFF, 0}},
    {"setp.ge.s16", "p:hh", {0}, {0x8000, 0}},
    {"setp.le.u16", "p:hh", {0}, {0x8000, 0}},
    {"setp.lt.s32", "pp:ww", {1, 0}, {1, 2}},
    {"setp.lt.and.s32", "p:wwp", {0}, {1, 2, 0}},
    {"setp.lt.and.s32", "pp:wwp", {1, 0}, {1, 2, 1}},
    {"setp.lt.or.s32", "pp:wwp", {1, 1}, {1, 2, 1}},
    {"setp.lt.xor.s32", "pp:wwp", {0, 1}, {1, 2, 1}},
    {"set.lt.u32.s32", "w:ww", {M1}, {1, 2}},
    {"set.lt.s32.u64", "w:dd", {0}, {2, 1}},
    {"set.ge.f32.u16", "w:hh", {ONE}, {2, 1}},
    {"set.hi.u32.u32", "w:ww", {M1}, {2, 1}},
    {"set.eq.or.f32.b32", "w:wwp", {ONE}, {2, 1, 1}},
    {"set.eq.xor.u32.b16", "w:hhp", {0}, {1, 1, 1}},
    {"set.eq.f16.u32", "h:ww", {0x3C00}, {1, 1}},
    {"set.eq.bf16.s32", "h:ww", {0x3F80}, {1, 1}},
    {"selp.b16", "h:hhp", {7}, {7, 8, 1}},
    {"selp.f32", "w:wwp", {TWO}, {ONE, TWO, 0}},
    {"selp.u64", "d:ddp", {7}, {7, 8, 1}},
    {"slct.u32.s32", "w:www", {7}, {7, 8, 0}},
    {"slct.b64.s32", "d:ddw", {8}, {7, 8, M1}},
    {"slct.f32.f32", "w:www", {7}, {7, 8, 0x80000000}},
    {"slct.s16.f32", "h:hhw", {8}, {7, 8, NAN_}},
    {"slct.f64.f32", "d:ddw", {8}, {7, 8, 0x80000001}},
    {"slct.ftz.f64.f32", "d:ddw", {7}, {7, 8, 0x80000001}},
};

static const lanes_row reals[] = {
    {"setp.eq.f32", "p:ww", {1}, {0, 0x80000000}},
    {"setp.eq.f32", "p:ww", {0}, {NAN_, NAN_}},
    {"setp.ne.f32", "p:ww", {0}, {NAN_, ONE}},
    {"setp.neu.f32", "p:ww", {1}, {NAN_, ONE}},
    {"setp.equ.f32", "p:ww", {1}, {NAN_, ONE}},
    {"setp.equ.f32", "p:ww", {0}, {TWO, ONE}},
    {"setp.lt.f32", "p:ww", {1}, {ONE, TWO}},
    {"setp.lt.f32", "p:ww", {0}, {ONE, NAN_}},
    {"setp.ltu.f32", "p:ww", {1}, {ONE, NAN_}},
    {"setp.ltu.f32", "p:ww", {0}, {ONE, ONE}},
    {"setp.le.f32", "p:ww", {1}, {ONE, ONE}},
    {"setp.leu.f32", "p:ww", {0}, {TWO, ONE}},
    {"setp.gt.f32", "p:ww", {1}, {TWO, ONE}},
    {"setp.gtu.f32", "p:ww", {1}, {NAN_, ONE}},
    {"setp.ge.f32", "p:ww", {0}, {ONE, TWO}},
    {"setp.geu.f32", "p:ww", {1}, {NAN_, TWO}},
    {"setp.num.f32", "p:ww", {1}, {ONE, 0x7F800000}},
    {"setp.num.f32", "p:ww", {0}, {ONE, NAN_}},
    {"setp.nan.f32", "pp:ww", {1, 0}, {ONE, NAN_}},
    {"setp.ne.f32", "p:ww", {1}, {0, 1}},
    {"setp.ne.ftz.f32", "p:ww", {0}, {0, 1}},
    {"setp.lt.f64", "p:dd", {1}, {0xBFF0000000000000, 0}},
    {"setp.nan.and.f64", "p:ddp", {1}, {0x7FF8000000000000, 0, 1}},
    {"setp.lt.f16", "p:hh", {1}, {0xBC00, 0x3C00}},
    {"setp.gt.f16", "p:hh", {1}, {0x0001, 0x0000}},
    {"setp.gt.ftz.f16", "p:hh", {0}, {0x0001, 0x0000}},
    {"setp.geu.bf16", "p:hh", {1}, {0x7FC0, 0x3F80}},
    {"setp.lt.bf16", "p:hh", {1}, {0x3F80, 0x4000}},
    {"setp.lt.f16x2", "pp:ww", {1, 0}, {0x4000BC00, 0x3C003C00}},
    {"setp.lt.f16x2", "pp:ww", {0, 1}, {0x3C004000, 0x40003C00}},
    {"setp.eq.and.f16x2", "pp:wwp", {0, 0}, {0x3C003C00, 0x3C003C00, 0}},
    {"setp.gt.ftz.f16x2", "pp:ww", {0, 1}, {0x3C000001, 0x00000000}},
    {"setp.nan.bf16x2", "pp:ww", {1, 0}, {0x3F807FC0, 0x3F803F80}},
    {"set.lt.u32.f32", "w:ww", {M1}, {ONE, TWO}},
    {"set.lt.f32.f64", "w:dd", {ONE}, {0, 0x3FF0000000000000}},
    {"set.lt.f16.f16", "h:hh", {0x3C00}, {0x3C00, 0x4000}},
    {"set.lt.u16.f16", "h:hh", {0xFFFF}, {0x3C00, 0x4000}},
    {"set.lt.s32.f16", "w:hh", {M1}, {0x3C00, 0x4000}},
    {"set.lt.bf16.bf16", "h:hh", {0x3F80}, {0x3F80, 0x4000}},
    {"set.lt.f16x2.f16x2", "w:ww", {0x00003C00}, {0x40003C00, 0x3C004000}},
    {"set.lt.u32.f16x2", "w:ww", {0xFFFF0000}, {0x3C004000, 0x40003C00}},
    {"set.lt.bf16x2.bf16x2", "w:ww", {0x3F800000}, {0x3F804000, 0x40003F80}},
    {"set.lt.or.s32.bf16x2", "w:wwp", {M1}, {0x3F804000, 0x40003F80, 1}},
    {"set.gt.ftz.f16x2.f16x2", "w:ww", {0x3C000000}, {0x3C000001, 0x00000000}},
};
/* clang-format on */

TEST_CASE(LanesCompare, IntegersAndSelection)
{
    ROWS(integers);
}

TEST_CASE(LanesCompare, Reals)
{
    ROWS(reals);
}

/* Every lane has its own bit. */
TEST_CASE(LanesCompare, MasksAndSelectionGoLaneByLane)
{
    for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
        lanes_inst li;
        REQUIRE(lanes_make(&li, "setp.lt.s32", "p:ww"));
        for (int lane = 0; lane < WARP; lane++) {
            lanes_put(li.s[0], 'w', lane, (uint64_t)(lane * 7 % 13));
            lanes_put(li.s[1], 'w', lane, 6);
        }
        REQUIRE(lanes_execute(&li, level));
        for (int lane = 0; lane < WARP; lane++)
            CHECK_EQ_I64((int64_t)lanes_get(li.d[0], 'p', lane), lane * 7 % 13 < 6);
        REQUIRE(lanes_make(&li, "selp.b32", "w:wwp"));
        for (int lane = 0; lane < WARP; lane++) {
            lanes_put(li.s[0], 'w', lane, (uint64_t)lane);
            lanes_put(li.s[1], 'w', lane, (uint64_t)(100 + lane));
            lanes_put(li.s[2], 'p', lane, lane % 3 == 0);
        }
        REQUIRE(lanes_execute(&li, level));
        for (int lane = 0; lane < WARP; lane++)
            CHECK_EQ_I64((int64_t)lanes_get(li.d[0], 'w', lane), lane % 3 == 0 ? lane : 100 + lane);
    }
}
