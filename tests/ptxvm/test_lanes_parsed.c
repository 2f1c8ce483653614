/* What the parser makes of an instruction is what the tests of the lane loops make of its mnemonic, and there
 * is a function for it. */
#include "ptxvm/module.h"
#include "test_lanes.h"

#include <stdio.h>
#include <string.h>

/* Operands by the letters of the registers below: p predicates, b h r d untyped by width, f and g f32 and
 * f64. */
static const char *const lines[] = {
    "add.s32 r,r,r",
    "add.sat.s32 r,r,r",
    "add.u16x2 r,r,r",
    "sub.cc.u64 d,d,d",
    "addc.cc.u32 r,r,r",
    "mul.hi.s64 d,d,d",
    "mul.wide.u16 r,h,h",
    "mad.hi.sat.s32 r,r,r,r",
    "mad.wide.s32 d,r,r,d",
    "madc.hi.cc.u32 r,r,r,r",
    "mul24.hi.u32 r,r,r",
    "mad24.hi.sat.s32 r,r,r,r",
    "sad.u64 d,d,d,d",
    "div.s16 h,h,h",
    "rem.u64 d,d,d",
    "abs.s64 d,d",
    "neg.s16 h,h",
    "min.relu.s16x2 r,r,r",
    "max.u16x2 r,r,r",
    "popc.b64 r,d",
    "clz.b32 r,r",
    "bfind.shiftamt.s64 r,d",
    "fns.b32 r,r,r,r",
    "brev.b64 d,d",
    "bfe.s64 d,d,r,r",
    "bfi.b64 d,d,d,r,r",
    "bmsk.wrap.b32 r,r,r",
    "szext.clamp.s32 r,r,r",
    "dp4a.u32.s32 r,r,r,r",
    "dp2a.hi.s32.u32 r,r,r,r",
    "and.pred p,p,p",
    "or.b16 h,h,h",
    "not.pred p,p",
    "cnot.b64 d,d",
    "lop3.b32 r,r,r,r,0x96",
    "lop3.or.b32 r|p,r,r,r,0x80,p",
    "shl.b64 d,d,r",
    "shr.s16 h,h,r",
    "shf.r.wrap.b32 r,r,r,r",
    "prmt.b32 r,r,r,r",
    "prmt.b32.rc16 r,r,r,r",
    "add.rz.ftz.sat.f32 f,f,f",
    "sub.rm.f64 g,g,g",
    "mul.f32 f,f,f",
    "fma.rp.ftz.f32 f,f,f,f",
    "fma.rn.f32x2 d,d,d,d",
    "mad.rn.f64 g,g,g,g",
    "add.rn.sat.f32.bf16 f,h,f",
    "fma.rz.f32.f16 f,h,h,f",
    "div.full.ftz.f32 f,f,f",
    "div.rp.f64 g,g,g",
    "rcp.approx.ftz.f32 f,f",
    "rcp.approx.ftz.f64 g,g",
    "sqrt.rm.f32 f,f",
    "rsqrt.approx.f64 g,g",
    "sin.approx.ftz.f32 f,f",
    "cos.approx.f32 f,f",
    "lg2.approx.f32 f,f",
    "ex2.approx.ftz.f32 f,f",
    "ex2.approx.ftz.bf16x2 r,r",
    "tanh.approx.f16 h,h",
    "abs.ftz.f32 f,f",
    "neg.bf16x2 r,r",
    "copysign.f64 g,g,g",
    "min.NaN.xorsign.abs.f32 f,f,f",
    "max.ftz.NaN.abs.f32 f,f,f,f",
    "min.NaN.xorsign.abs.f16x2 r,r,r",
    "max.bf16 h,h,h",
    "testp.subnormal.f64 p,g",
    "add.ftz.sat.f16x2 r,r,r",
    "mul.rn.bf16 h,h,h",
    "fma.rn.ftz.relu.f16 h,h,h,h",
    "fma.rn.oob.relu.bf16x2 r,r,r,r",
    "setp.hi.u32 p,r,r",
    "setp.lt.and.ftz.f32 p|p,f,f,p",
    "setp.geu.xor.f16x2 p|p,r,r,p",
    "setp.num.bf16 p,h,h",
    "setp.eq.b64 p,d,d",
    "set.lt.or.f32.s32 f,r,r,p",
    "set.gt.ftz.u32.f16x2 r,r,r",
    "set.nan.bf16.bf16 h,h,h",
    "selp.f64 g,g,g,p",
    "slct.ftz.b64.f32 d,d,d,f",
    "slct.s16.s32 h,h,h,r",
    "cvt.u8.s32 h,r",
    "cvt.sat.s8.u64 h,d",
    "cvt.rn.f32.u64 f,d",
    "cvt.rp.sat.f64.s32 g,r",
    "cvt.rmi.s64.f32 d,f",
    "cvt.rzi.ftz.u8.f32 h,f",
    "cvt.rni.f32.f32 f,f",
    "cvt.rz.ftz.f32.f64 f,g",
    "cvt.f32.bf16 f,h",
    "cvt.rm.bf16.u32 h,r",
    "cvt.rn.relu.satfinite.f16.f32 h,f",
    "cvt.rz.bf16x2.f32 r,f,f",
    "cvt.rs.satfinite.f16x2.f32 r,f,f,r",
    "cvt.rna.tf32.f32 r,f",
    "cvt.rn.satfinite.relu.e4m3x2.f32 h,f,f",
    "cvt.rn.satfinite.e5m2x2.f16x2 h,r",
    "cvt.rn.f16x2.e4m3x2 r,h",
    "cvt.rn.satfinite.e2m1x2.f32 b,f,f",
    "cvt.rn.relu.f16x2.e2m1x2 r,b",
    "cvt.rn.satfinite.e3m2x2.f32 h,f,f",
    "cvt.rp.satfinite.ue8m0x2.bf16x2 h,r",
    "cvt.rn.bf16x2.ue8m0x2 r,h",
    "cvt.rs.satfinite.e2m1x4.f32 h,{f,f,f,f},r",
    "cvt.rs.relu.satfinite.e4m3x4.f32 r,{f,f,f,f},r",
    "cvt.pack.sat.s16.s32 r,r,r",
    "cvt.pack.sat.u4.s32.b32 r,r,r,r",
    "vadd.s32.u32.s32.sat r,r,r",
    "vabsdiff.u32.u32.u32.add r,r,r,r",
    "vshl.u32.s32.u32.sat.wrap r,r,r",
    "vmad.u32.u32.u32.po.shr15 r,r,r,r",
    "vset.s32.u32.lt.min r,r,r,r",
    "vadd2.s32.s32.u32.sat r,r,r,r",
    "vavrg4.u32.u32.u32 r,r,r,r",
    "vset4.u32.s32.ne.add r,r,r,r",
};

static int line_count(void)
{
    return (int)(sizeof lines / sizeof *lines);
}

static void line_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%.*s", (int)strcspn(lines[index], " "), lines[index]);
    for (char *c = text; *c; c++)
        if (*c == '.')
            *c = '_';
}

/* A module with that line alone; each operand letter becomes a register. */
static void write_module(const char *line, char *text, size_t size)
{
    int n =
        snprintf(text, size,
                 ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
                 ".reg .pred %%p<2>; .reg .b8 %%b<2>; .reg .b16 %%h<2>; .reg .b32 %%r<2>; .reg .b64 %%d<2>;\n"
                 ".reg .f32 %%f<2>; .reg .f64 %%g<2>;\n");
    const size_t mnemonic = strcspn(line, " ");
    n += snprintf(text + n, size - (size_t)n, "%.*s ", (int)mnemonic, line);
    for (const char *c = line + mnemonic + 1; *c; c++) {
        const bool letter = strchr("pbhrdfg", *c) && c[-1] != '0' && c[-1] != 'x';
        n += snprintf(text + n, size - (size_t)n, letter ? "%%%c1" : "%c", *c);
    }
    snprintf(text + n, size - (size_t)n, ";\nret;\n}\n");
}

TEST_EACH(LanesParsed, FindsTheSameFunction, line_count, line_name)
{
    char text[1024], mnemonic[64];
    write_module(lines[index], text, sizeof text);
    pvm_error error;
    pvm_module *module = pvm_module_parse(text, strlen(text), &error);
    if (!module) {
        FAIL("%s", error.message);
        return;
    }
    const pvm_inst *parsed = &module->functions[0]->insts[0];
    snprintf(mnemonic, sizeof mnemonic, "%.*s", (int)strcspn(lines[index], " "), lines[index]);
    lanes_inst made;
    if (lanes_make(&made, mnemonic, "w:www")) {
        made.inst.n_results = parsed->n_results;
        made.inst.n_operands = parsed->n_operands;
        for (int slot = 0; slot < S_COUNT; slot++)
            if (!CHECK_EQ_I64(parsed->mod[slot], made.inst.mod[slot]))
                FAIL("in slot %d", slot);
        const lane_op a = lanes_find(parsed, LANES_BASELINE), b = lanes_find(&made.inst, LANES_BASELINE);
        CHECK(a.run != NULL);
        CHECK(a.run == b.run && a.rounding == b.rounding && a.inexact == b.inexact);
    }
    pvm_module_free(module);
}
