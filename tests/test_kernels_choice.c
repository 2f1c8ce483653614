/* Which kernel computes a product in mode exact: the table of docs/performance.md, by examples. */
#include "kernels/kernels.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

typedef struct choice {
    const char *kernel, *settings;
    uint64_t rows, columns, m, experts;
    kernel_product product;
    uint64_t tile_rows;
} choice;

#define KN       "reduction=rows groups=columns "
#define GEMV     KERNEL_PRODUCT_GEMV
#define RAGGED   KERNEL_PRODUCT_RAGGED
#define BLOCKS   KERNEL_PRODUCT_BLOCKS
#define TERNARY  KERNEL_PRODUCT_TERNARY
#define COLUMNS  KERNEL_PRODUCT_COLUMNS
#define STAGED   KERNEL_PRODUCT_STAGED
#define LANEWISE KERNEL_PRODUCT_LANEWISE

/* clang-format off */
static const choice choices[] = {
    /* [N, K]: whole vectors of codes, groups of a multiple of 16 along K */
    {"matmul_int4", "groups=rows", 64, 4096, 1, 0, GEMV, 1},
    {"matmul_int4", "groups=rows", 64, 4096, 16, 0, GEMV, 16},
    {"matmul_int4", "groups=rows", 64, 4096, 64, 8, GEMV, 8},
    {"matmul_plain_f16", "", 7, 24, 3, 0, GEMV, 4},
    /* [N, K]: other rows, widths and groups */
    {"matmul_int4", "groups=rows", 64, 4104, 1, 0, RAGGED, 1},
    {"matmul_int4", "groups=rows group_size=8", 64, 4096, 1, 0, RAGGED, 1},
    {"matmul_int4", "groups=rows group_size=4", 64, 4096, 16, 0, STAGED, 16},
    {"matmul_int4", "group_size=4095", 64, 4095, 16, 0, RAGGED, 16},
    {"matmul_int4", "group_size=24", 64, 4095, 16, 0, STAGED, 16},
    {"matmul_int6", "groups=rows", 64, 4096, 1, 0, RAGGED, 1},
    {"matmul_int8", "groups=rows", 64, 4095, 16, 0, RAGGED, 16},
    {"matmul_plain_f16", "", 7, 4095, 3, 0, RAGGED, 4},
    /* Blocks */
    {"matmul_gguf_q4_k", "", 64, 4096, 16, 0, BLOCKS, 16},
    {"matmul_gguf_q4_k", "gated=yes", 64, 4096, 16, 0, BLOCKS, 16},
    {"matmul_gguf_q6_k", "", 64, 4096, 40, 8, BLOCKS, 8},
    {"matmul_gguf_q4_k", "", 64, 768, 1, 0, BLOCKS, 1},
    {"matmul_gguf_q8_0", "", 64, 576, 1, 0, RAGGED, 1},
    {"matmul_gguf_q8_0", "", 64, 512, 1, 0, BLOCKS, 1},
    {"matmul_gguf_mxfp4", "gated=yes", 64, 896, 7, 0, RAGGED, 8},
    {"matmul_gguf_q6_k", "", 64, 4864, 40, 8, RAGGED, 8},
    {"matmul_gguf_tq1_0", "", 64, 4096, 1, 0, TERNARY, 1},
    {"matmul_gguf_tq1_0", "gated=yes", 64, 4096, 13, 0, TERNARY, 16},
    /* [K, N] */
    {"matmul_int4_zp", KN "layout=awq zero_packed=yes", 4096, 64, 16, 0, COLUMNS, 16},
    {"matmul_int4_zp", KN "layout=awq zero_packed=yes gated=yes", 4096, 64, 16, 0, COLUMNS, 16},
    {"matmul_int4_zp", KN "layout=interleaved zero_packed=yes group_index=yes", 4096, 64, 1, 0, COLUMNS, 1},
    {"matmul_int3_zp", KN "layout=interleaved zero_packed=yes", 4096, 64, 16, 0, COLUMNS, 16},
    {"matmul_int8", KN, 4096, 72, 12, 2, COLUMNS, 8},
    {"matmul_int8", KN, 4096, 68, 16, 0, STAGED, 16},
    {"matmul_int8", KN, 4097, 64, 1, 0, STAGED, 1},
    {"matmul_int6", KN, 4096, 64, 1, 0, STAGED, 1},
    {"matmul_plain_f16", "reduction=rows", 4096, 36, 16, 0, COLUMNS, 16},
    /* More rows than 16, or 16 of each expert on average: any format, any shape */
    {"matmul_int4", "groups=rows", 64, 4096, 17, 0, LANEWISE, 32},
    {"matmul_int6", "groups=rows", 63, 4095, 65, 0, LANEWISE, 128},
    {"matmul_gguf_tq1_0", "", 64, 4096, 160, 4, LANEWISE, 64},
    {"matmul_int8", KN, 4097, 63, 1000, 8, LANEWISE, 128},
};
/* clang-format on */

TEST_CASE(KernelChoice, FollowsFormatAndShape)
{
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const choice *c = &choices[i];
        const kernel_row *row = kernel_find(c->kernel);
        kernel_spec spec = kernel_spec_default();
        char error[512];
        test_push_note("%s %s, %d x %d, %d rows, %d experts", c->kernel, c->settings, (int)c->rows,
                       (int)c->columns, (int)c->m, (int)c->experts);
        REQUIRE(row && kernel_spec_set_words(row, &spec, c->settings, error, sizeof error));
        const kernel_problem problem = {.rows = c->rows,
                                        .columns = c->columns,
                                        .m = c->m,
                                        .x_stride =
                                            spec.product.reduction == KERNEL_K_ROWS ? c->rows : c->columns,
                                        .y_stride = c->rows + c->columns,
                                        .experts = c->experts};
        spec.product.grouped = c->experts > 0;
        kernel_product_choose(row, &problem, &spec);
        CHECK_EQ_I64(spec.product.kernel, c->product);
        CHECK_EQ_U64(spec.product.tile_rows, c->tile_rows);
        CHECK(kernel_is_emitted(row, &spec, error, sizeof error));
        test_pop_note();
    }
}

/* Mode tensor, prepacked: the least power of two, up to 64, or 32 for formats that leave no registers for more. Parts share the room for x and for their sums. */
TEST_CASE(KernelChoice, StreamsHaveTilesOfTheirRows)
{
    static const uint64_t rows[][3] = {{1, 1, 8},   {3, 4, 8},   {8, 8, 8},   {9, 16, 8},
                                       {17, 32, 4}, {33, 64, 1}, {64, 64, 1}, {1000, 64, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ_U64(kernel_stream_rows(kernel_find("matmul_int4"), rows[i][0]), rows[i][1]);
        CHECK_EQ_U64(kernel_stream_rows(kernel_find("matmul_gguf_q2_k"), rows[i][0]),
                     rows[i][1] < 32 ? rows[i][1] : 32);
        CHECK_EQ_U64(kernel_stream_parts_max(rows[i][1]), rows[i][2]);
    }
}

/* Every kernel either has an emitter for a number of rows, or refuses it: none writes beyond what it made room for. */
TEST_CASE(KernelChoice, RowsAreTakenOrRefused)
{
    static const char *const kernels[] = {"matmul_int4", "matmul_gguf_q4_k", "matmul_gguf_tq1_0"};
    static const uint64_t rows[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 33, 64, 128};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        for (int product = 0; product <= KERNEL_PRODUCT_STORED; product++)
            for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
                const kernel_row *row = kernel_find(kernels[i]);
                kernel_spec spec = kernel_spec_default();
                char why[512];
                spec.data = QDNN_DATA_F16;
                spec.product.kernel = (kernel_product)product;
                spec.product.tile_rows = rows[j];
                if (!kernel_is_emitted(row, &spec, why, sizeof why)) {
                    CHECK(strlen(why) > 0);
                    continue;
                }
                kernel_text text;
                ptx_error error;
                CHECK(kernel_emit(row, &spec, ptx_sm_find("sm_90"), NULL, &text, &error));
                free(text.ptx);
            }
    kernel_spec stream = kernel_spec_default(), blocks = kernel_spec_default();
    char why[512];
    blocks.product.kernel = KERNEL_PRODUCT_BLOCKS; /* threads share lanes out by halves */
    blocks.product.tile_rows = 3;
    CHECK(!kernel_is_emitted(kernel_find("matmul_gguf_q4_k"), &blocks, why, sizeof why));
    CHECK_EQ_STR(why, "tile_rows is 3; product blocks takes powers of two from 1 to 16");
    stream.data = QDNN_DATA_F16;
    stream.product.kernel = KERNEL_PRODUCT_STREAM;
    stream.product.tile_rows = 128;
    CHECK(!kernel_is_emitted(kernel_find("matmul_int4"), &stream, why, sizeof why));
    CHECK_EQ_STR(why, "tile_rows is 128; product stream takes powers of two from 1 to 64");
    stream.product.tile_rows = 32;
    stream.product.split = 8;
    CHECK(!kernel_is_emitted(kernel_find("matmul_int4"), &stream, why, sizeof why));
    CHECK_EQ_STR(why, "split is 8; this product takes up to 4 with tile_rows 32");
}

/* Lanes are dealt out among blocks where there are few tiles, but not those of a stack. */
TEST_CASE(KernelChoice, FewTilesAreSplit)
{
    const kernel_row *row = kernel_find("matmul_int4");
    kernel_problem problem = {.rows = 256, .columns = 4096, .m = 64, .x_stride = 4096, .y_stride = 256};
    kernel_spec spec = kernel_spec_default();
    kernel_product_choose(row, &problem, &spec);
    CHECK_EQ_U64(spec.product.split, 8);
    problem.experts = 2;
    spec.product.grouped = 1;
    kernel_product_choose(row, &problem, &spec);
    CHECK_EQ_U64(spec.product.split, 1);
}

/* Outputs of a block are divided until there are six warps for every multiprocessor (Q4_K: eight; rounds of 200 bytes and more: three), or
 * a warp has one output (or, where a team has eight threads, four); with a large table for each block, only until half of the multiprocessors have one. */
TEST_CASE(KernelChoice, FewOutputsAreDivided)
{
    static const struct {
        const char *kernel, *settings;
        uint64_t rows;
        int multiprocessors;
        uint64_t split;
    } cases[] = {{"matmul_int4", "groups=rows", 14336, 108, 1}, {"matmul_int4", "groups=rows", 4096, 108, 2},
                 {"matmul_int4", "groups=rows", 4096, 0, 2},    {"matmul_int4", "groups=rows", 4096, 40, 1},
                 {"matmul_int4", "groups=rows", 1024, 108, 8},  {"matmul_int4", "groups=rows", 16, 108, 8},
                 {"matmul_int2", "groups=rows", 16, 108, 4},    {"matmul_plain_f32", "", 16, 108, 4},
                 {"matmul_gguf_q4_k", "", 14336, 108, 1},       {"matmul_gguf_q4_k", "", 1024, 108, 8},
                 {"matmul_gguf_q4_k", "", 4096, 108, 2},        {"matmul_gguf_q4_k", "", 4096, 132, 4},
                 {"matmul_gguf_q4_k", "gated=yes", 64, 108, 4}, {"matmul_gguf_q4_0", "", 4096, 132, 2},
                 {"matmul_gguf_q8_0", "", 4096, 132, 1},        {"matmul_gguf_q8_0", "", 1024, 132, 2},
                 {"matmul_gguf_q6_k", "gated=yes", 64, 108, 2}, {"matmul_gguf_tq1_0", "", 64, 108, 2},
                 {"matmul_nf4", "groups=rows", 4096, 108, 1},   {"matmul_nf4", "groups=rows", 1024, 108, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const kernel_row *row = kernel_find(cases[i].kernel);
        const kernel_problem problem = {.rows = cases[i].rows,
                                        .columns = 4096,
                                        .multiprocessors = cases[i].multiprocessors,
                                        .m = 1,
                                        .x_stride = 4096,
                                        .y_stride = cases[i].rows};
        kernel_spec spec = kernel_spec_default();
        char why[512];
        test_push_note("%s %s, %d rows, %d multiprocessors", cases[i].kernel, cases[i].settings,
                       (int)cases[i].rows, cases[i].multiprocessors);
        REQUIRE(row && kernel_spec_set_words(row, &spec, cases[i].settings, why, sizeof why));
        kernel_product_choose(row, &problem, &spec);
        CHECK_EQ_U64(spec.product.split, cases[i].split);
        CHECK(kernel_is_emitted(row, &spec, why, sizeof why));
        test_pop_note();
    }
    kernel_spec fine = kernel_spec_default();
    char why[512];
    fine.product.kernel = KERNEL_PRODUCT_GEMV;
    fine.stored.groups = QDNN_GROUPS_ROWS;
    fine.product.split = 16;
    CHECK(!kernel_is_emitted(kernel_find("matmul_int4"), &fine, why, sizeof why));
    CHECK_EQ_STR(why, "split is 16; product gemv takes up to 8 here");
    fine.product.kernel = KERNEL_PRODUCT_STAGED;
    CHECK(!kernel_is_emitted(kernel_find("matmul_int4"), &fine, why, sizeof why));
    CHECK_EQ_STR(why, "split is 16; this product takes 1 only");
}
