/* The tool that compares all texts before and after a change (tests/texts). */
#include "support/process.h"
#include "test.h"
#include "texts/normal.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool are_same(const char *one, const char *other)
{
    char *first = normal_text(one), *second = normal_text(other);
    const bool same = first && second && strcmp(first, second) == 0;
    CHECK(!first || !second || same == (normal_hash(first) == normal_hash(second)));
    free(first);
    free(second);
    return same;
}

TEST_CASE(Texts, NormalForm)
{
    static const char text[] =
        "\t.reg .b32 %r<9>;\n\tmov.u32 %r1, %tid.x; // which\n$L1:\n\n\tadd.s32 %r2, %r1, %r1;\n\tbra $L1;\n";
    char *normal = normal_text(text);
    REQUIRE(normal != NULL);
    CHECK_EQ_STR(normal, "\tmov.u32 %r1, %tid.x;\n$L1:\n\tadd.s32 %r2, %r1, %r1;\n\tbra $L1;\n");
    free(normal);
    CHECK(are_same(
        text,
        "\t.reg .b32 %r<40>;\n\tmov.u32 %r33, %tid.x;\n$L7:\n\tadd.s32 %r4, %r33, %r33;\n\tbra $L7;\n"));
    CHECK(are_same("add.s32 %r12, %r1, %r2;", "add.s32 %r0, %r2, %r12;"));
    /* another operand, instruction, constant, kind of register, special register, target of a branch */
    CHECK(!are_same(text, "\tmov.u32 %r1, %tid.x;\n$L1:\n\tadd.s32 %r2, %r1, %r2;\n\tbra $L1;\n"));
    CHECK(!are_same("add.s32 %r3, %r1, %r2;", "sub.s32 %r3, %r1, %r2;"));
    CHECK(!are_same("add.s32 %r3, %r1, 1;", "add.s32 %r3, %r1, 2;"));
    CHECK(!are_same("add.s32 %r3, %r1, %r2;", "add.s32 %r3, %r1, %q2;"));
    CHECK(!are_same("mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.y;"));
    CHECK(!are_same("bra $L1;\n$L1:\n$L2:", "bra $L2;\n$L1:\n$L2:"));
}

static process_result texts(const char *arguments)
{
    return process_run("%s/tests/texts/texts %s", QDNN_BINARY_DIR, arguments);
}

/* What the tool says of texts in which B stands for A; its exit status. */
static int compare(const char *folder, const char *change, char *said, size_t size)
{
    char arguments[700];
    snprintf(arguments, sizeof arguments, "--against %s/base --change %s", folder, change);
    process_result run = texts(arguments);
    const int status = run.status;
    snprintf(said, size, "%s", run.output);
    process_free(&run);
    return status;
}

TEST_CASE(Texts, ChangesAreReported)
{
    char folder[256], arguments[700], said[4096], ptxas[1024];
    temp_dir_make(folder, sizeof folder);
    snprintf(arguments, sizeof arguments, "%s/list", folder);
    FILE *list = fopen(arguments, "w");
    REQUIRE(list != NULL);
    fputs("quantize_nf4 data=f16 scale=f16 group_size=64\nscale_int8 data=f32\nroute_rows tile_rows=8\n",
          list);
    fclose(list);
    snprintf(arguments, sizeof arguments, "--list %s/list --write %s/base", folder, folder);
    process_result made = texts(arguments);
    CHECK_EQ_I64(made.status, 0);
    CHECK_HAS(made.output, "3 settings");
    process_free(&made);
    CHECK_EQ_I64(compare(folder, "\"\"", said, sizeof said), 0);
    CHECK_HAS(said, "all the same");
    CHECK_EQ_I64(compare(folder, "%r=%r9", said, sizeof said), 0); /* a register by another name */
    CHECK_HAS(said, "all the same");
    CHECK_EQ_I64(compare(folder, "div.rn=mul.rn --assemble 1", said, sizeof said), 1);
    CHECK_HAS(said, "scale_int8: of 1 settings");
    CHECK_HAS(said, "--print 'scale_int8 ");
    CHECK(strstr(said, "route_rows:") == NULL);
    /* Another text of the same instructions is none that counts, where ptxas can tell. */
    const bool assembles = toolkit_find_ptxas(ptxas, sizeof ptxas);
    CHECK_EQ_I64(compare(folder, "mov.u32=mov.b32 --part route --assemble 1000", said, sizeof said),
                 assembles ? 0 : 1);
    CHECK_HAS(said, " texts differ");
    temp_dir_remove(folder);
}
