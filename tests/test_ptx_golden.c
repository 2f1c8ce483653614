/* Every call writes exactly the expected text, and every row of the instruction table is written by some
 * call. */
#include "support/process.h"
#include "test.h"
#include "test_ptx_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST_CASE(PtxGolden, EveryCallWritesItsText)
{
    for (int i = 0; i < ptx_golden_count(); i++) {
        const ptx_golden *golden = ptx_golden_get(i);
        ptx_builder *b = ptx_open(ptx_sm_find("sm_100a"), NULL);
        ptx_pool pool;
        ptx_kernel(b, "k");
        ptx_pool_fill(b, &pool);
        golden->write(b, &pool);
        char *text = ptx_close_or_error(b), *body = ptx_body_of(text);
        test_push_note("%s", golden->call);
        CHECK_EQ_STR(body, golden->expected);
        test_pop_note();
        free(body);
        free(text);
    }
}

/* ---- coverage: does the text of a golden call come from this row? ---- */

static const char *type_text(char sign, int type)
{
    return sign == '#'   ? isa_type_bit_text(type)
           : sign == '&' ? isa_type_memory_text(type)
                         : isa_type_text(type);
}

/* `name` is the rest of an instruction up to its first space or semicolon. */
static bool matches(const isa_row *row, const char *pattern, const char *name, size_t n)
{
    if (!*pattern)
        return n == 0;
    if (*pattern == '?') {
        for (size_t skip = 0; skip <= n; skip++)
            if (matches(row, pattern + 1, name + skip, n - skip))
                return true;
        return false;
    }
    if (!strchr("$%#&", *pattern))
        return n && *name == *pattern && matches(row, pattern + 1, name + 1, n - 1);
    for (int type = 0; type < PTX_TYPE_COUNT; type++) {
        size_t length = strlen(type_text(*pattern, type));
        if (((*pattern == '%' ? row->t1 : row->t0) >> type & 1) && n > length && *name == '.' &&
            !memcmp(name + 1, type_text(*pattern, type), length) &&
            matches(row, pattern + 1, name + 1 + length, n - 1 - length))
            return true;
    }
    return false;
}

static bool some_call_writes(const isa_row *row)
{
    for (int i = 0; i < ptx_golden_count(); i++)
        for (const char *line = ptx_golden_get(i)->expected; *line; line = strchr(line, '\n') + 1) {
            const char *name = line + 1;
            if (*name == '@')
                name = strchr(name, ' ') + 1;
            if (matches(row, row->text, name, strcspn(name, " ;")))
                return true;
        }
    return false;
}

TEST_CASE(PtxGolden, EveryRowOfTheTableIsWritten)
{
    for (int r = 0; r < ISA_COUNT; r++)
        if (!some_call_writes(isa_row_at(r)))
            FAIL("no golden call writes row %d: %s", r, isa_row_at(r)->text);
}

/* Two kernels with everything that is not an instruction: declarations, directives, control flow. */
static char *write_module(const ptx_sm *sm)
{
    static const uint64_t ramp[] = {0x3F800000, 0x40000000, 0, 0, 0, 0, 0, 0, 0xFFFFFFFF};
    ptx_builder *b = ptx_open(sm, &(ptx_options){.comments = true});
    ptx_kernel(b, "first");
    ptx_reqntid(b, 64, 2, 1);
    ptx_minnctapersm(b, 2);
    ptx_val x = ptx_param_ptr(b, "x", 16), n = ptx_param(b, PTX_U32, "n");
    ptx_val tile = ptx_shared(b, "tile", PTX_F32, 64, 16), dynamic = ptx_shared_dynamic(b, 128);
    ptx_val table = ptx_table(b, PTX_CONST, "ramp", PTX_F32, ramp, 9);
    ptx_comment(b, "the loop\nin two lines");
    ptx_val i = ptx_for(b, 0, n, 2);
    ptx_continue_if(b, ptx_setp(b, PTX_EQ, i, 4));
    ptx_if(b, ptx_setp(b, PTX_LT, i, 8));
    ptx_st_shared(b, tile, 0, ptx_ld_const(b, PTX_F32, table, 4));
    ptx_else(b);
    ptx_st_shared(b, dynamic, 0, ptx_ld_global(b, PTX_F32, x, 0));
    ptx_end_if(b);
    ptx_end_for(b);
    ptx_kernel(b, "second");
    ptx_maxntid(b, 128);
    ptx_maxnreg(b, 64);
    ptx_val p = ptx_setp(b, PTX_NE, ptx_param(b, PTX_S32, "n"), 0);
    ptx_uniform(b);
    ptx_rolled(b);
    ptx_loop(b);
    ptx_break_if(b, p);
    ptx_uniform(b);
    ptx_if_not(b, p);
    ptx_continue(b);
    ptx_end_if(b);
    ptx_break_unless(b, p);
    ptx_end_loop(b);
    ptx_label out = ptx_label_new(b);
    ptx_bra_if(b, p, out);
    ptx_bra_unless(b, p, out);
    ptx_uniform(b);
    ptx_bra(b, out);
    ptx_label_place(b, out);
    return ptx_close_or_error(b);
}

TEST_CASE(PtxGolden, AModuleInFull)
{
    char *text = write_module(ptx_sm_find("sm_80"));
    CHECK_EQ_STR(text,
                 ".version 7.0\n"
                 ".target sm_80\n"
                 ".address_size 64\n"
                 "\n"
                 ".extern .shared .align 128 .b8 first_dynamic[];\n"
                 "\n"
                 ".const .align 16 .b32 ramp[9] = {\n"
                 "\t0x3F800000, 0x40000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, "
                 "0x00000000,\n"
                 "\t0xFFFFFFFF\n"
                 "};\n"
                 "\n"
                 ".visible .entry first(\n"
                 "\t.param .u64 .ptr .global .align 16 x,\n"
                 "\t.param .u32 n\n"
                 ")\n"
                 ".reqntid 64, 2, 1\n"
                 ".minnctapersm 2\n"
                 "{\n"
                 "\t.reg .pred %p<4>;\n"
                 "\t.reg .b32 %r<7>;\n"
                 "\t.reg .b64 %d<3>;\n"
                 "\t.shared .align 16 .b32 tile[64];\n"
                 "\n"
                 "\tld.param.u64 %d1, [x];\n"
                 "\tld.param.u32 %r1, [n];\n"
                 "\tmov.u32 %r2, tile;\n"
                 "\tmov.u32 %r3, first_dynamic;\n"
                 "\tmov.u64 %d2, ramp;\n"
                 "\t// the loop in two lines\n"
                 "\tmov.b32 %r4, 0;\n"
                 "$L1:\n"
                 "\tsetp.ge.u32 %p1, %r4, %r1;\n"
                 "\t@%p1 bra $L2;\n"
                 "\tsetp.eq.u32 %p2, %r4, 4;\n"
                 "\t@%p2 bra $L3;\n"
                 "\tsetp.lt.u32 %p3, %r4, 8;\n"
                 "\t@!%p3 bra $L4;\n"
                 "\tld.const.f32 %r5, [%d2+4];\n"
                 "\tst.shared.f32 [%r2], %r5;\n"
                 "\tbra $L5;\n"
                 "$L4:\n"
                 "\tld.global.f32 %r6, [%d1];\n"
                 "\tst.shared.f32 [%r3], %r6;\n"
                 "$L5:\n"
                 "$L3:\n"
                 "\tadd.u32 %r4, %r4, 2;\n"
                 "\tbra $L1;\n"
                 "$L2:\n"
                 "\tret;\n"
                 "}\n"
                 "\n"
                 ".visible .entry second(\n"
                 "\t.param .s32 n\n"
                 ")\n"
                 ".maxntid 128\n"
                 ".maxnreg 64\n"
                 "{\n"
                 "\t.reg .pred %p<2>;\n"
                 "\t.reg .b32 %r<2>;\n"
                 "\n"
                 "\tld.param.s32 %r1, [n];\n"
                 "\tsetp.ne.s32 %p1, %r1, 0;\n"
                 "$L6:\n"
                 "\t.pragma \"nounroll\";\n"
                 "\t@%p1 bra $L7;\n"
                 "\t@%p1 bra.uni $L8;\n"
                 "\tbra $L6;\n"
                 "$L8:\n"
                 "\t@!%p1 bra $L7;\n"
                 "\tbra.uni $L6;\n"
                 "$L7:\n"
                 "\t@%p1 bra $L9;\n"
                 "\t@!%p1 bra $L9;\n"
                 "\tbra.uni $L9;\n"
                 "$L9:\n"
                 "\tret;\n"
                 "}\n");
    free(text);
}

static void name_of_sm(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", ptx_sm_get(index)->name);
}

TEST_EACH(PtxGolden, PtxasTakesTheModule, ptx_sm_count, name_of_sm)
{
    if (!*QDNN_PTXAS || access(QDNN_PTXAS, X_OK))
        SKIP("there is no ptxas");
    const ptx_sm *sm = ptx_sm_get(index);
    char directory[256], path[300];
    temp_dir_make(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/module.ptx", directory);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    char *text = write_module(sm);
    CHECK(fputs(text, file) >= 0);
    fclose(file);
    process_result ptxas = process_run("'%s' -arch=%s '%s' -o /dev/null", QDNN_PTXAS, sm->name, path);
    CHECK_EQ_STR(ptxas.output, "");
    CHECK_EQ_I64(ptxas.status, 0);
    process_free(&ptxas);
    temp_dir_remove(directory);
    free(text);
}
