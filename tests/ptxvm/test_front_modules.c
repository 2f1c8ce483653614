/* What a parsed module says: variables and where they lie, functions and their parameters, operands, control
 * flow. */
#include "test.h"

#include "ptxvm/front/front.h"

#include <stdio.h>
#include <string.h>

#define HEADER ".version 8.6\n.target sm_90a\n.address_size 64\n"
#define REGISTERS                                                                                            \
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .f64 "     \
    "%d<9>;\n"

static pvm_module *parse(const char *ptx)
{
    pvm_error error;
    pvm_module *m = pvm_module_parse(ptx, strlen(ptx), &error);
    if (!m)
        FAIL("%s", error.message);
    return m;
}

static const pvm_var *var_named(const pvm_module *m, const char *name)
{
    for (int i = 0; i < m->n_vars; i++)
        if (strcmp(m->vars[i]->name, name) == 0)
            return m->vars[i];
    return NULL;
}

/* The module of one kernel with this body. */
static pvm_module *parse_body_of(const char *body)
{
    static char ptx[8192];
    snprintf(ptx, sizeof ptx,
             "%s.global .align 16 .b8 g[64];\n.visible .entry k(.param .u64 in)\n{\n%s%s\n}\n", HEADER,
             REGISTERS, body);
    return parse(ptx);
}

static const char *register_name(const pvm_module *m, const pvm_operand *o)
{
    const pvm_function *f = m->functions[m->n_functions - 1];
    return o->kind == OPERAND_REG ? f->regs[o->reg].name : "";
}

TEST_CASE(FrontModules, Header)
{
    pvm_module *m = parse(".version 7.8\n.target sm_90, debug\n.address_size 64\n.file 2 \"a.cu\"\n");
    REQUIRE(m != NULL);
    CHECK_EQ_I64(m->version, 78);
    CHECK_EQ_I64(m->target.sm, 90);
    CHECK_EQ_I64(m->target.suffix, 0);
    CHECK_EQ_I64(m->address_bits, 64);
    CHECK(m->has_debug);
    REQUIRE(m->n_files > 2);
    CHECK_EQ_STR(m->files[2], "a.cu");
    CHECK(m->files[1] == NULL);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, Targets)
{
    pvm_target t, sm80, sm90, sm90a, sm100a, sm100f, sm103, sm120f, sm121;
    REQUIRE(pvm_target_from_name("sm_80", &sm80) && pvm_target_from_name("90", &sm90));
    REQUIRE(pvm_target_from_name("sm_90a", &sm90a) && pvm_target_from_name("100a", &sm100a));
    REQUIRE(pvm_target_from_name("sm_100f", &sm100f) && pvm_target_from_name("sm_103", &sm103));
    REQUIRE(pvm_target_from_name("sm_120f", &sm120f) && pvm_target_from_name("sm_121", &sm121));
    CHECK_EQ_I64(sm90a.suffix, 'a');
    CHECK(!pvm_target_from_name("sm_", &t) && !pvm_target_from_name("sm_90b", &t) &&
          !pvm_target_from_name("", &t));
    CHECK(!pvm_target_from_name("sm_80a", &t) && !pvm_target_from_name("sm_90f", &t) &&
          !pvm_target_from_name("x", &t));
    CHECK(pvm_target_runs_on(sm80, sm90a) && pvm_target_runs_on(sm80, sm80) &&
          !pvm_target_runs_on(sm90, sm80));
    CHECK(pvm_target_runs_on(sm90a, sm90a) && pvm_target_runs_on(sm90a, sm90) &&
          !pvm_target_runs_on(sm90a, sm100a));
    CHECK(pvm_target_runs_on(sm100f, sm103) && !pvm_target_runs_on(sm100f, sm121) &&
          pvm_target_runs_on(sm120f, sm121));
}

TEST_CASE(FrontModules, Variables)
{
    pvm_module *m = parse(HEADER ".visible .global .align 8 .u32 a = 0x12345678;\n"
                                 ".const .v2 .f32 b[2] = {{1.0, -2.0}, {0f3F000000, 0.25}};\n"
                                 ".global .s16 c[][2] = {{1, -1}, {2}};\n"
                                 ".extern .shared .align 16 .b8 dynamic[];\n"
                                 ".shared .f64 s[3];\n"
                                 ".global .u64 p[3] = {a, generic(a) + 4, 7};\n"
                                 ".global .u8 bytes[2] = {0xFF(a), 0xFF00(generic(a) + 1)};\n"
                                 ".global .attribute(.managed) .u32 shared_with_host;\n"
                                 ".weak .global .b8 w[2][3][4];\n");
    REQUIRE(m != NULL);
    const pvm_var *a = var_named(m, "a"), *b = var_named(m, "b"), *c = var_named(m, "c");
    CHECK(a->is_visible && a->align == 8 && a->size == 4 && a->space == SPACE_GLOBAL && a->type == T_U32);
    CHECK_EQ_MEM(a->init, "\x78\x56\x34\x12", 4);
    CHECK(b->space == SPACE_CONST && b->vec == 2 && b->size == 16 && b->align == 8);
    CHECK_EQ_MEM(b->init, ((const float[]){1.0f, -2.0f, 0.5f, 0.25f}), 16);
    CHECK_EQ_I64(c->size, 8);
    CHECK(!c->is_unsized);
    CHECK_EQ_MEM(c->init, ((const int16_t[]){1, -1, 2, 0}), 8);
    const pvm_var *dynamic = var_named(m, "dynamic"), *s = var_named(m, "s"), *p = var_named(m, "p");
    CHECK(dynamic->is_extern && dynamic->is_unsized && dynamic->size == 0 && dynamic->align == 16);
    CHECK(s->space == SPACE_SHARED && s->size == 24 && s->align == 8 && s->init == NULL);
    REQUIRE(p->n_relocs == 2);
    CHECK(p->relocs[0].var == a && p->relocs[0].offset == 0 && p->relocs[0].size == 8 &&
          !p->relocs[0].generic);
    CHECK(p->relocs[1].var == a && p->relocs[1].offset == 8 && p->relocs[1].addend == 4 &&
          p->relocs[1].generic);
    CHECK_EQ_I64(p->init[16], 7);
    const pvm_var *bytes = var_named(m, "bytes");
    REQUIRE(bytes->n_relocs == 2);
    CHECK(bytes->relocs[0].size == 1 && bytes->relocs[0].shift == 0 && bytes->relocs[1].shift == 8);
    CHECK(bytes->relocs[1].generic && bytes->relocs[1].addend == 1 && bytes->relocs[1].offset == 1);
    CHECK(var_named(m, "shared_with_host")->is_managed);
    CHECK(var_named(m, "w")->is_weak && var_named(m, "w")->size == 24);
    for (int i = 0; i < m->n_vars; i++)
        CHECK_EQ_I64(m->vars[i]->index, i);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, ExternAndDefinitionAreOne)
{
    pvm_module *m =
        parse(HEADER ".extern .global .u32 x;\n.global .u64 p = x;\n.visible .global .u32 x = 3;\n");
    REQUIRE(m != NULL);
    CHECK_EQ_I64(m->n_vars, 2);
    CHECK(!m->vars[0]->is_extern && m->vars[0]->init && m->vars[0]->init[0] == 3);
    CHECK(m->vars[1]->relocs[0].var == m->vars[0]);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, KernelParameters)
{
    pvm_module *m =
        parse(HEADER ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .u16 c,\n"
                     "  .param .align 8 .b8 d[20], .param .f32 e)\n"
                     ".maxntid 128, 2 .minnctapersm 3 .maxnreg 64\n{ ret; }\n"
                     ".entry l() .reqntid 32, 4, 2 .pragma \"x\"; { }\n");
    REQUIRE(m != NULL && m->n_functions == 2);
    const pvm_function *k = m->functions[0], *l = m->functions[1];
    CHECK(k->is_entry && k->is_visible && k->has_body && !l->is_visible);
    REQUIRE(k->n_params == 5);
    static const int offsets[] = {0, 8, 16, 24, 44}, sizes[] = {1, 8, 2, 20, 4};
    for (int i = 0; i < 5; i++) {
        CHECK_EQ_I64((int64_t)k->params[i]->offset, offsets[i]);
        CHECK_EQ_I64((int64_t)k->params[i]->size, sizes[i]);
        CHECK(k->params[i]->space == SPACE_PARAM && k->params[i]->is_const_param);
    }
    CHECK_EQ_I64((int64_t)k->param_bytes, 48);
    CHECK(k->maxntid[0] == 128 && k->maxntid[1] == 2 && k->maxntid[2] == 1 && k->minnctapersm == 3 &&
          k->maxnreg == 64);
    CHECK(l->reqntid[0] == 32 && l->reqntid[1] == 4 && l->reqntid[2] == 2 && l->n_insts == 0 &&
          l->maxntid[0] == 0);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, LocalVariablesHaveOffsets)
{
    pvm_module *m =
        parse_body_of(".local .align 16 .b8 a[20]; .local .u64 b; .shared .u8 c; .shared .u32 d;\n"
                      "{ .param .b32 x; .param .align 8 .b8 y[12]; st.param.b32 [y+8], %r1; }\n"
                      "st.local.u64 [b+0], %rd1; ld.shared.u32 %r1, [d]; ret;");
    REQUIRE(m != NULL);
    const pvm_function *k = m->functions[0];
    REQUIRE(k->n_locals == 6);
    static const int offsets[] = {0, 24, 0, 4, 0, 8};
    for (int i = 0; i < 6; i++)
        CHECK_EQ_I64((int64_t)k->locals[i]->offset, offsets[i]);
    CHECK_EQ_I64((int64_t)k->local_bytes, 32);
    CHECK_EQ_I64((int64_t)k->shared_bytes, 8);
    CHECK_EQ_I64((int64_t)k->call_param_bytes, 20);
    const pvm_operand *address = &k->insts[0].operand[0];
    CHECK(address->kind == OPERAND_ADDRESS && address->space == SPACE_PARAM && address->var == k->locals[5]);
    CHECK_EQ_U64(address->bits, 8);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, Operands)
{
    pvm_module *m = parse_body_of("mov.u32 %r1, -1;\n"
                                  "mov.f32 %f1, 1.5;\n"
                                  "mov.f64 %d1, 0f3F800000;\n"
                                  "mov.u16 %h1, 0x12345;\n"
                                  "mov.u32 %r2, %ctaid.y;\n"
                                  "mov.u64 %rd1, g + 8;\n"
                                  "ld.global.u8 %r3, [%rd1 + -4];\n"
                                  "mov.b64 {%r4, _}, %rd1;\n"
                                  "setp.eq.and.u32 %p1|%p2, %r1, 3, !%p3;\n"
                                  "@!%p1 st.global.v2.f32 [g], {%f1, 0f40000000};\n"
                                  "ld.u32 %r1, [g + 4];\n"
                                  "mov.u32 %r1, (1 << 4) | (5 > 3 ? 2 : 0) + WARP_SZ / 2;\n"
                                  "bfi.b32 %r1, %r2, %r3, 4, 0b11;\n"
                                  "mov.u64 %rd1, 017U;\n");
    REQUIRE(m != NULL);
    const pvm_inst *i = m->functions[0]->insts;
    CHECK(i[0].operand[1].kind == OPERAND_IMM && i[0].operand[1].bits == 0xFFFFFFFFu && i[0].n_results == 1);
    CHECK_EQ_U64(i[1].operand[1].bits, 0x3FC00000);
    CHECK_EQ_U64(i[2].operand[1].bits, 0x3FF0000000000000);
    CHECK_EQ_U64(i[3].operand[1].bits, 0x2345);
    CHECK(i[4].operand[1].kind == OPERAND_SREG && i[4].operand[1].sreg == SREG_ctaid &&
          i[4].operand[1].bits == 1);
    CHECK(i[5].operand[1].kind == OPERAND_SYMBOL && i[5].operand[1].var == m->vars[0] &&
          i[5].operand[1].bits == 8);
    CHECK(i[6].operand[1].kind == OPERAND_ADDRESS && i[6].operand[1].space == SPACE_GLOBAL &&
          i[6].operand[0].type == T_U8);
    CHECK_EQ_U64(i[6].operand[1].bits, (uint64_t)-4);
    CHECK_EQ_STR(m->functions[0]->regs[i[6].operand[1].reg].name, "%rd1");
    CHECK(i[7].operand[0].kind == OPERAND_VECTOR && i[7].operand[0].n_elements == 2 && i[7].n_operands == 2);
    CHECK_EQ_STR(register_name(m, &i[7].operand[0].elements[0]), "%r4");
    CHECK(i[7].operand[0].elements[1].kind == OPERAND_SINK);
    CHECK(i[8].n_results == 2 && i[8].n_operands == 5 && i[8].operand[4].negated &&
          i[8].mod[S_BOOL] == M_and);
    CHECK(i[9].guard >= 0 && i[9].guard_negated && i[9].operand[1].elements[1].bits == 0x40000000 &&
          i[9].mod[S_VEC] == M_v2);
    CHECK(i[10].mod[S_SPACE] == M_NONE && i[10].operand[1].space == SPACE_GLOBAL &&
          i[10].operand[1].bits == 4);
    CHECK_EQ_U64(i[11].operand[1].bits, 16 | (2 + 16));
    CHECK(i[12].operand[4].bits == 3 && i[12].operand[3].type == T_U32);
    CHECK_EQ_U64(i[13].operand[1].bits, 15);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, ScopesAndRegisters)
{
    pvm_module *m = parse_body_of(
        "mov.u32 %r1, 1;\n{ .reg .f32 %r1; mov.f32 %r1, 1.0; { .reg .b64 x<3>; mov.b64 x2, 0; } }\n"
        "mov.u32 %r1, 2; mov.u32 %r01, 3;\n.reg .v4 .f32 v; mov.f32 v.z, %f1; ld.global.v4.f32 v, [g];");
    REQUIRE(m != NULL);
    const pvm_function *k = m->functions[0];
    const pvm_inst *i = k->insts;
    CHECK(i[0].operand[0].reg == i[3].operand[0].reg && i[3].operand[0].reg == i[4].operand[0].reg);
    CHECK(i[1].operand[0].reg != i[0].operand[0].reg && k->regs[i[1].operand[0].reg].type == T_F32);
    CHECK_EQ_STR(register_name(m, &i[2].operand[0]), "x2");
    CHECK_EQ_I64(i[5].operand[0].reg, i[6].operand[0].elements[2].reg);
    CHECK(k->n_regs < 16); /* of the 99 and more that are declared, those that are used */
    pvm_module_free(m);
}

TEST_CASE(FrontModules, LabelsAndTables)
{
    pvm_module *m = parse_body_of("bra end;\nloop: { bra inner; inner: bra loop; }\n{ inner: bra inner; }\n"
                                  "table: .branchtargets loop, end, loop;\nbrx.idx %r1, table;\nend:");
    REQUIRE(m != NULL);
    const pvm_function *k = m->functions[0];
    REQUIRE(k->n_insts == 5);
    static const int targets[] = {5, 2, 1, 3};
    for (int i = 0; i < 4; i++)
        CHECK_EQ_I64((int64_t)k->insts[i].operand[0].bits, targets[i]);
    REQUIRE(k->insts[4].targets->count == 3);
    CHECK(k->insts[4].targets->items[0] == 1 && k->insts[4].targets->items[1] == 5 &&
          k->insts[4].targets->items[2] == 1);
    CHECK(k->insts[4].n_operands == 1 && k->insts[4].mod[S_SUB] == M_idx);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, Calls)
{
    pvm_module *m = parse(
        HEADER ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
               ".func (.reg .u32 out) f(.reg .u32 x, .param .align 4 .b8 s[8]) { mov.u32 out, x; ret; }\n"
               ".func g();\n"
               ".visible .entry k(.param .u64 in)\n{\n" REGISTERS
               ".param .b64 a; .param .b32 r; .param .align 4 .b8 s[8];\n"
               "call.uni (r), vprintf, (a, a);\ncall (%r1), f, (7, s);\ncall g;\n"
               "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _);\n"
               "call (r), %rd1, (a, a), proto;\n"
               "list: .calltargets g;\ncall %rd1, list;\nmov.u64 %rd2, g;\n}\n"
               ".func g() { ret; }\n.visible .func h();\n.alias h, g;\n");
    REQUIRE(m != NULL && m->n_functions == 5);
    const pvm_function *f = m->functions[1], *g = m->functions[2], *h = m->functions[4];
    const pvm_inst *i = m->functions[3]->insts;
    CHECK(m->functions[0]->is_extern && !m->functions[0]->has_body && m->functions[0]->n_returns == 1);
    CHECK(f->params[0]->space == SPACE_REG && f->reg_of_param[0] >= 0 && f->reg_of_param[1] == -1);
    CHECK_EQ_I64(f->insts[0].operand[0].reg, f->reg_of_return[0]);
    CHECK_EQ_I64(f->insts[0].operand[1].reg, f->reg_of_param[0]);
    CHECK(i[0].mod[S_UNI] == M_uni && i[0].call->target.function == m->functions[0] &&
          i[0].call->n_args == 2);
    CHECK(i[0].call->args[0].kind == OPERAND_SYMBOL && i[0].call->args[0].var == m->functions[3]->locals[0]);
    CHECK(i[1].call->args[0].kind == OPERAND_IMM && i[1].call->args[0].bits == 7 &&
          i[1].call->ret[0].kind == OPERAND_REG);
    CHECK(i[2].call->target.function == g && g->has_body && i[2].call->n_args == 0);
    CHECK(i[3].call->target.kind == OPERAND_REG && i[3].call->prototype->is_prototype &&
          i[3].call->prototype->n_params == 2);
    CHECK(i[4].call->n_candidates == 1 && i[4].call->candidates[0] == g && i[4].call->prototype == NULL);
    CHECK(i[5].operand[1].kind == OPERAND_SYMBOL && i[5].operand[1].function == g);
    CHECK(h->has_body && h->insts == g->insts);
    CHECK_EQ_STR(h->name, "h");
    pvm_module_free(m);
}

TEST_CASE(FrontModules, DebugInformation)
{
    pvm_module *m = parse(
        HEADER ".file 1 \"a.cu\", 123, 456\n.visible .entry k()\n{\n.loc 1 10 3\nret;\n"
               ".loc 1 12 5, function_name $L1 + 2, inlined_at 1 10 3\nexit;\n}\n"
               "\t.section\t.debug_str\n\t{\n$L1:\n.b8 107,0\n.b32 $L1-4\n.b64 k\n.b32 .debug_abbrev\n\t}\n"
               ".section .debug_macinfo { }\n# 7 \"x.c\"\n");
    REQUIRE(m != NULL);
    const pvm_inst *i = m->functions[0]->insts;
    CHECK(i[0].loc_file == 1 && i[0].loc_line == 10 && i[1].loc_line == 12 && i[0].line == 8 &&
          i[0].column == 1);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, ModifiersInAnyOrder)
{
    pvm_module *m =
        parse_body_of("add.f32.ftz.rn %f1, %f2, %f3;\nld.v2.relaxed.global.gpu.u32 {%r1, %r2}, [%rd1];\n"
                      "cvt.f16.f32.rn %h1, %f1; ld.global.nc.L1::no_allocate.L2::128B.f32 %f1, [%rd1];");
    REQUIRE(m != NULL);
    const pvm_inst *i = m->functions[0]->insts;
    CHECK(i[0].mod[S_RND] == M_rn && i[0].mod[S_FTZ] == M_ftz && pvm_slot_type(&i[0], S_TYPE) == T_F32);
    CHECK(i[1].mod[S_SEM] == M_relaxed && i[1].mod[S_SCOPE] == M_gpu && i[1].mod[S_SPACE] == M_global);
    CHECK(pvm_slot_type(&i[2], S_TYPE) == T_F16 && pvm_slot_type(&i[2], S_TYPE2) == T_F32);
    CHECK(i[3].mod[S_NC] == M_nc && i[3].mod[S_EVICT] == M_L1__no_allocate &&
          i[3].mod[S_PREFETCH] == M_L2__128B);
    pvm_module_free(m);
}

TEST_CASE(FrontModules, VideoSelectors)
{
    pvm_module *m = parse_body_of(
        "vadd.u32.u32.s32.sat %r1.h1, %r2.b3, %r3.h0, %r4;\nvmad.s32.u32.u32.shr7 %r1, -%r2, %r3.b1, %r4;\n"
        "vadd4.u32.u32.u32.add %r1.b210, %r2.b7610, %r3, %r4;\nvset2.s32.s32.lt %r1, %r2.h32, %r3, %r4;");
    REQUIRE(m != NULL);
    const pvm_inst *i = m->functions[0]->insts;
    CHECK(i[0].mod[S_DSEL] == M_h1 && i[0].mod[S_ASEL] == M_b3 && i[0].mod[S_BSEL] == M_h0 &&
          i[0].mod[S_CSEL] == 0);
    CHECK(i[1].operand[1].negated && i[1].mod[S_BSEL] == M_b1 && i[1].mod[S_SCALE] == M_shr7);
    CHECK(i[2].mod[S_DSEL] == M_LANES + 7 && i[2].mod[S_ASEL] == M_LANES + 07610 && i[2].mod[S_BSEL] == 0);
    CHECK(pvm_slot_type(&i[3], S_TYPE) == T_U32 && pvm_slot_type(&i[3], S_TYPE2) == T_S32 &&
          i[3].mod[S_ASEL] == M_LANES + 032);
    pvm_module_free(m);
}

/* 9.1 to 9.4 are read as 9.0 with more to come; what is later is an error of its own kind. */
TEST_CASE(FrontModules, EveryVersionUpToTheNewest)
{
    static const struct {
        const char *version;
        int kind;
    } versions[] = {
        {"8.8", PVM_OK},
        {"9.0", PVM_OK},
        {"9.1", PVM_OK},
        {"9.2", PVM_OK},
        {"9.3", PVM_OK},
        {"9.4", PVM_OK},
        {"9.5", PVM_ERROR_UNSUPPORTED_VERSION},
        {"9.10", PVM_ERROR_UNSUPPORTED_VERSION},
        {"10.0", PVM_ERROR_UNSUPPORTED_VERSION},
        {"10.1", PVM_ERROR_UNSUPPORTED_VERSION},
    };
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char text[512];
        pvm_error error = {.kind = PVM_OK};
        snprintf(
            text, sizeof text,
            ".version %s\n.target sm_100a\n.address_size 64\n.entry k(.param .u64 p) { .reg .b64 %%rd<3>; "
            ".reg .f32 %%f<3>; ld.param.u64 %%rd1, [p]; ld.global.f32 %%f1, [%%rd1]; "
            "fma.rn.f32 %%f2, %%f1, %%f1, %%f1; st.global.f32 [%%rd1], %%f2; ret; }\n",
            versions[i].version);
        pvm_module *m = pvm_module_parse(text, strlen(text), &error);
        test_push_note(".version %s", versions[i].version);
        CHECK_EQ_I64(error.kind, versions[i].kind);
        CHECK((m != NULL) == (versions[i].kind == PVM_OK));
        if (!m)
            CHECK_HAS(error.message, "is later than 9.4");
        test_pop_note();
        pvm_module_free(m);
    }
}
