/* From PTX text to the row of the table: every dense form that ptxas takes, read by the parser, on the SMs
 * that have it. */
#include <stdio.h>
#include <string.h>

#include "fragments.h"
#include "test.h"

typedef struct form {
    const char *text, *target, *row;
    int m, n, k;
    pvm_type d, a, b, c;
} form;

/* clang-format off */
#define MMA  "mma.sync.aligned."
#define WMMA "wmma.mma.sync.aligned."
static const form forms[] = {
    {MMA "m8n8k4.row.col.f16.f16.f16.f16 @r4, @r2, @r2, @r4;", "sm_75", "sm_75 f16 m8n8k4", 8, 8, 4, T_F16, T_F16, T_F16, T_F16},
    {MMA "m8n8k4.col.row.f32.f16.f16.f16 @f8, @r2, @r2, @r4;", "sm_80", "sm_80+ f16 m8n8k4 (scalar fma)", 8, 8, 4, T_F32, T_F16, T_F16, T_F16},
    {MMA "m8n8k4.col.col.f32.f16.f16.f32 @f8, @r2, @r2, @f8;", "sm_121", "sm_80+ f16 m8n8k4 (scalar fma)", 8, 8, 4, T_F32, T_F16, T_F16, T_F32},
    {MMA "m16n8k8.row.col.f32.f16.f16.f32 @f4, @r2, @r1, @f4;", "sm_75", "sm_75 f16", 16, 8, 8, T_F32, T_F16, T_F16, T_F32},
    {MMA "m16n8k8.row.col.f16.f16.f16.f16 @r2, @r2, @r1, @r2;", "sm_80", "sm_80/86/87 f16 k8", 16, 8, 8, T_F16, T_F16, T_F16, T_F16},
    {MMA "m16n8k16.row.col.f32.f16.f16.f32 @f4, @r4, @r2, @f4;", "sm_87", "sm_80/86/87 f16 k16", 16, 8, 16, T_F32, T_F16, T_F16, T_F32},
    {MMA "m16n8k16.row.col.f16.f16.f16.f16 @r2, @r4, @r2, @r2;", "sm_88", "sm_88 f16 (as sm_86)", 16, 8, 16, T_F16, T_F16, T_F16, T_F16},
    {MMA "m16n8k8.row.col.f32.bf16.bf16.f32 @f4, @r2, @r1, @f4;", "sm_89", "sm_89 bf16 k8", 16, 8, 8, T_F32, T_BF16, T_BF16, T_F32},
    {MMA "m16n8k16.row.col.f32.bf16.bf16.f32 @f4, @r4, @r2, @f4;", "sm_90", "sm_90 bf16", 16, 8, 16, T_F32, T_BF16, T_BF16, T_F32},
    {MMA "m16n8k4.row.col.f32.tf32.tf32.f32 @f4, @r2, @r1, @f4;", "sm_100", "sm_100 tf32", 16, 8, 4, T_F32, T_TF32, T_TF32, T_F32},
    {MMA "m16n8k8.row.col.f32.tf32.tf32.f32 @f4, @r4, @r2, @f4;", "sm_103", "sm_103/110 tf32 (as sm_100)", 16, 8, 8, T_F32, T_TF32, T_TF32, T_F32},
    {MMA "m8n8k4.row.col.f64.f64.f64.f64 @d2, @d1, @d1, @d2;", "sm_80", "f64", 8, 8, 4, T_F64, T_F64, T_F64, T_F64},
    {MMA "m16n8k4.row.col.f64.f64.f64.f64 @d4, @d2, @d1, @d4;", "sm_90", "f64", 16, 8, 4, T_F64, T_F64, T_F64, T_F64},
    {MMA "m16n8k8.row.col.f64.f64.f64.f64 @d4, @d4, @d2, @d4;", "sm_110", "f64", 16, 8, 8, T_F64, T_F64, T_F64, T_F64},
    {MMA "m16n8k16.row.col.rz.f64.f64.f64.f64 @d4, @d8, @d4, @d4;", "sm_120", "f64", 16, 8, 16, T_F64, T_F64, T_F64, T_F64},
    {MMA "m8n8k16.row.col.s32.s8.u8.s32 @r2, @r1, @r1, @r2;", "sm_75", "integer", 8, 8, 16, T_S32, T_S8, T_U8, T_S32},
    {MMA "m16n8k16.row.col.satfinite.s32.u8.s8.s32 @r4, @r2, @r1, @r4;", "sm_80", "integer", 16, 8, 16, T_S32, T_U8, T_S8, T_S32},
    {MMA "m16n8k32.row.col.s32.s8.s8.s32 @r4, @r4, @r2, @r4;", "sm_120", "integer", 16, 8, 32, T_S32, T_S8, T_S8, T_S32},
    {MMA "m8n8k32.row.col.satfinite.s32.s4.u4.s32 @r2, @r1, @r1, @r2;", "sm_75", "integer", 8, 8, 32, T_S32, T_S4, T_U4, T_S32},
    {MMA "m16n8k32.row.col.s32.u4.u4.s32 @r4, @r2, @r1, @r4;", "sm_90", "integer", 16, 8, 32, T_S32, T_U4, T_U4, T_S32},
    {MMA "m16n8k64.row.col.s32.s4.s4.s32 @r4, @r4, @r2, @r4;", "sm_100", "integer", 16, 8, 64, T_S32, T_S4, T_S4, T_S32},
    {MMA "m8n8k128.row.col.s32.b1.b1.s32.xor.popc @r2, @r1, @r1, @r2;", "sm_75", "b1", 8, 8, 128, T_S32, T_B1, T_B1, T_S32},
    {MMA "m16n8k128.row.col.s32.b1.b1.s32.and.popc @r4, @r2, @r1, @r4;", "sm_80", "b1", 16, 8, 128, T_S32, T_B1, T_B1, T_S32},
    {MMA "m16n8k256.row.col.s32.b1.b1.s32.and.popc @r4, @r4, @r2, @r4;", "sm_90", "b1", 16, 8, 256, T_S32, T_B1, T_B1, T_S32},
    {MMA "m16n8k16.row.col.f32.e4m3.e5m2.f32 @f4, @r2, @r1, @f4;", "sm_89", "sm_89 fp8", 16, 8, 16, T_F32, T_E4M3, T_E5M2, T_F32},
    {MMA "m16n8k32.row.col.f16.e5m2.e4m3.f16 @r2, @r4, @r2, @r2;", "sm_90", "sm_90 fp8 k32 (by f16)", 16, 8, 32, T_F16, T_E5M2, T_E4M3, T_F16},
    {MMA "m16n8k16.row.col.f16.e4m3.e4m3.f16 @r2, @r2, @r1, @r2;", "sm_100", "sm_100/103 fp8 k16 (by f16)", 16, 8, 16, T_F16, T_E4M3, T_E4M3, T_F16},
    {MMA "m16n8k32.row.col.f32.e4m3.e4m3.f32 @f4, @r4, @r2, @f4;", "sm_110", "sm_110 fp8 (as sm_100, by f16)", 16, 8, 32, T_F32, T_E4M3, T_E4M3, T_F32},
    {MMA "m16n8k32.row.col.f32.e5m2.e5m2.f32 @f4, @r4, @r2, @f4;", "sm_120", "sm_120/121 fp8", 16, 8, 32, T_F32, T_E5M2, T_E5M2, T_F32},
    {MMA "m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 @f4, @r4, @r2, @f4;", "sm_120a", "sm_120/121 fp8", 16, 8, 32, T_F32, T_E4M3, T_E4M3, T_F32},
    {MMA "m16n8k32.row.col.kind::f8f6f4.f16.e3m2.e2m1.f16 @r2, @r4, @r2, @r2;", "sm_121f", "sm_120/121 f8f6f4", 16, 8, 32, T_F16, T_E3M2, T_E2M1, T_F16},
    {MMA "m16n8k32.row.col.kind::f8f6f4.f32.e5m2.e2m3.f32 @f4, @r4, @r2, @f4;", "sm_120f", "sm_120/121 f8f6f4", 16, 8, 32, T_F32, T_E5M2, T_E2M3, T_F32},
    {MMA "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0 @f4, @r4, @r2, @f4, %r0, {1, 1}, %r0, {2, 3};", "sm_120a", "sm_120/121 mxf8f6f4", 16, 8, 32, T_F32, T_E4M3, T_E2M1, T_F32},
    {MMA "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 @f4, @r4, @r2, @f4, %r0, {2, 1}, %r0, {0, 3};", "sm_121a", "sm_120/121 mxf4", 16, 8, 64, T_F32, T_E2M1, T_E2M1, T_F32},
    {MMA "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 @f4, @r4, @r2, @f4, %r0, {%h0, %h0}, %r0, {%h0, %h0};", "sm_120a", "sm_120/121 mxf4", 16, 8, 64, T_F32, T_E2M1, T_E2M1, T_F32},
    {MMA "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0 @f4, @r4, @r2, @f4, {%r0}, {1, 1}, {%r0}, {2, 3};", "sm_120a", "sm_120/121 mxf8f6f4", 16, 8, 32, T_F32, T_E4M3, T_E2M1, T_F32},
    {WMMA "row.col.m16n16k16.f32.f16 @f8, @r8, @r8, @r4;", "sm_75", "sm_75 f16", 16, 16, 16, T_F32, T_F16, T_F16, T_F16},
    {WMMA "col.row.m32n8k16.f16.f16 @r4, @r8, @r8, @r4;", "sm_80", "sm_80/86/87 f16 k16", 32, 8, 16, T_F16, T_F16, T_F16, T_F16},
    {WMMA "row.row.m8n32k16.f16.f32 @r4, @r8, @r8, @f8;", "sm_90", "sm_90 f16", 8, 32, 16, T_F16, T_F16, T_F16, T_F32},
    {WMMA "row.col.m16n16k16.f32.bf16.bf16.f32 @f8, @r4, @r4, @f8;", "sm_80", "sm_80/86/87 bf16 k16", 16, 16, 16, T_F32, T_BF16, T_BF16, T_F32},
    {WMMA "row.col.m16n16k8.f32.tf32.tf32.f32 @f8, @r4, @r4, @f8;", "sm_120", "sm_120/121 wmma tf32", 16, 16, 8, T_F32, T_TF32, T_TF32, T_F32},
    {WMMA "row.col.m8n32k16.s32.u8.u8.s32 @r8, @r1, @r4, @r8;", "sm_75", "integer", 8, 32, 16, T_S32, T_U8, T_U8, T_S32},
    {WMMA "row.col.m8n8k32.s32.s4.s4.s32 @r2, @r1, @r1, @r2;", "sm_75", "integer", 8, 8, 32, T_S32, T_S4, T_S4, T_S32},
    {"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 @r2, @r1, @r1, @r2;", "sm_75", "b1", 8, 8, 128, T_S32, T_B1, T_B1, T_S32},
    {WMMA "row.col.m8n8k4.rm.f64.f64.f64.f64 @d2, @d1, @d1, @d2;", "sm_80", "f64", 8, 8, 4, T_F64, T_F64, T_F64, T_F64},
};
/* clang-format on */

TEST_CASE(TensorParse, EveryFormFindsItsRow)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const form *f = &forms[i];
        pvm_inst inst;
        pvm_target device;
        tensor_op op;
        test_push_note("%s for %s", f->text, f->target);
        if (CHECK(pvm_target_from_name(f->target, &device)) && mma_parse(f->text, f->target, &inst) &&
            CHECK(tensor_find(&inst, device, &op))) {
            CHECK_EQ_STR(op.row, f->row);
            CHECK(op.m == f->m && op.n == f->n && op.k == f->k);
            CHECK(op.dtype == f->d && op.atype == f->a && op.btype == f->b && op.ctype == f->c);
            CHECK_EQ_I64(op.satfinite, strstr(f->text, "satfinite") != NULL);
            CHECK_EQ_I64(op.is_and, strstr(f->text, ".and.") != NULL);
            CHECK_EQ_I64(op.a_col, inst.mod[S_ALAYOUT] == M_col);
            CHECK_EQ_I64(op.b_row, inst.mod[S_BLAYOUT] == M_row);
            CHECK_EQ_I64(op.scale_ue4m3, strstr(f->text, "ue4m3") != NULL);
            CHECK_EQ_I64(op.scales, strstr(f->text, "mxf8")   ? 1
                                    : strstr(f->text, "4X")   ? 4
                                    : strstr(f->text, "mxf4") ? 2
                                                              : 0);
        }
        test_pop_note();
    }
}

/* Instructions that tests elsewhere build by hand have the slots that the parser fills. */
TEST_CASE(TensorParse, HandMadeInstructionsAreTheParsers)
{
    pvm_inst parsed, made = mma_instruction(M_m16n8k16, T_F32, T_F16, T_F16, T_F32);
    REQUIRE(mma_parse(MMA "m16n8k16.row.col.f32.f16.f16.f32 @f4, @r4, @r2, @f4;", "sm_80", &parsed));
    CHECK_EQ_MEM(made.mod, parsed.mod, sizeof parsed.mod);
    made = mma_instruction(M_m16n8k64, T_F32, T_E2M1, T_E2M1, T_F32);
    made.mod[S_KIND] = M_kind__mxf4nvf4;
    made.mod[S_SCALE] = M_block_scale;
    made.mod[S_SCALEVEC] = M_scale_vec__4X;
    made.mod[S_STYPE] = M_TYPE(T_UE4M3);
    REQUIRE(mma_parse(forms[34].text, "sm_120a", &parsed));
    CHECK_EQ_MEM(made.mod, parsed.mod, sizeof parsed.mod);
}
