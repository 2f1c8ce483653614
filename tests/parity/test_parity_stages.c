/* Groups that the quantize and dequantize kernels of matrices take from shared memory: flat ones that begin anywhere in a row,
 * zeros beside swizzled scales, scales of columns in any order, and tables of those that rows look up. More columns than a block's tile, more rows than its
 * blocks do at once, edges inside a tile, more groups than a table holds; against host_ref, all checks on. */
#include <stdio.h>

#include "device/under_test.h"
#include "parity/trial.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

typedef struct stage_case {
    const char *name, *format;
    int64_t group_size, rows, columns; /* group size 0: a group for each column */
    const char *settings[6][2];
} stage_case;

/* clang-format off */
#define WORDS {"layout", "words"}
#define INTERLEAVED {"layout", "interleaved"}
#define FLAT {"groups", "flat"}
#define F16 {"data", "f16"}
#define BF16 {"data", "bf16"}
#define SWIZZLED {"scale_swizzle", "128x4"}
#define INDEX {"groups", "columns"}, {"group_index", "yes"}
#define HALVES {"scale", "f16"}, {"zero_packed", "yes"}

static const stage_case cases[] = {
    {"flat_words", "int4_zp", 128, 37, 1184, {WORDS, FLAT, F16}},
    {"flat_words_f32", "int3", 64, 35, 608, {WORDS, FLAT}},
    {"flat_words_long_groups", "int5_min", 4096, 40, 1056, {WORDS, FLAT, BF16}},
    {"flat_words_odd_groups", "int6_zp", 40, 33, 1056, {WORDS, FLAT, F16}},
    {"flat_interleaved", "int4", 128, 40, 520, {INTERLEAVED, FLAT, F16}},
    {"flat_interleaved_f64", "nf4", 32, 48, 264, {INTERLEAVED, FLAT, {"data", "f64"}}},
    {"flat_interleaved_few_columns", "int8_zp", 100, 72, 12, {INTERLEAVED, FLAT}},
    {"flat_awq", "int4_zp", 48, 34, 600, {{"layout", "awq"}, FLAT}},
    {"swizzled", "int3_zp", 16, 130, 288, {{"groups", "rows"}, {"scale", "e4m3"}, SWIZZLED}},
    {"swizzled_f64", "int5_zp", 16, 132, 544, {{"groups", "rows"}, {"scale", "e4m3"}, SWIZZLED, {"data", "f64"}}},
    {"columns_transposed", "int4_zp", 32, 136, 288, {{"groups", "columns"}, {"scale_order", "transposed"}, F16}},
    {"columns_swizzled", "e2m3", 16, 140, 160, {{"groups", "columns"}, {"scale", "e8m0"}, SWIZZLED, BF16}},
    {"columns_nested", "nf4", 64, 130, 96, {{"groups", "columns"}, {"nested", "yes"}}},
    {"channels", "int8", 0, 140, 288, {F16}},
    {"channels_words", "int3_zp", 0, 70, 160, {WORDS, {"zero", "f32"}}},
    {"channels_rest", "int5_min", 0, 33, 40, {BF16}},
    {"table", "int4_zp", 32, 328, 264, {INTERLEAVED, INDEX, HALVES, F16}},
    {"table_3_bits", "int3_zp", 64, 296, 136, {INTERLEAVED, INDEX, HALVES, BF16}},
    {"table_minus_one", "int2_zp", 16, 320, 132, {INTERLEAVED, INDEX, HALVES, {"zero_minus_one", "yes"}}},
    {"table_minimum", "int5_min", 32, 288, 136, {INTERLEAVED, INDEX, {"zero", "bf16"}, {"scale", "bf16"}}},
    {"table_f32", "int8", 7, 290, 96, {WORDS, INDEX}},
    {"table_transposed", "int6_zp", 32, 270, 288, {WORDS, INDEX, {"scale_order", "transposed"}, F16}},
    {"table_swizzled", "e4m3", 16, 260, 160, {INDEX, {"scale", "e8m0"}, SWIZZLED, BF16}},
    {"table_lines", "int4_zp", 32, 280, 160, {{"layout", "awq"}, INDEX, {"group_rows", "3"}, {"zero", "i32"}}},
    {"table_one_group", "int4", 512, 264, 72, {INTERLEAVED, INDEX, {"data", "f64"}}},
    {"table_too_large", "int4_zp", 1, 160, 136, {INTERLEAVED, INDEX, HALVES, F16}},
};
/* clang-format on */

static int count(void)
{
    return 2 * LENGTH(cases);
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", index % 2 ? "quantize" : "dequantize", cases[index / 2].name);
}

static kernel_spec spec_of(const kernel_row *row, const stage_case *c)
{
    kernel_spec spec = kernel_spec_default();
    char error[256];
    for (int i = 0; i < LENGTH(c->settings) && c->settings[i][0]; i++)
        if (!kernel_spec_set(row, &spec, c->settings[i][0], c->settings[i][1], error, sizeof error))
            FAIL("%s", error);
    return spec;
}

/* Numbers that were computed, then any that a caller may give, with indices out of range. */
DEVICE_EACH(ParityStages, HostRef, count, name)
{
    static const char *const sms[] = {"sm_75", "sm_80", "sm_90", "sm_120"};
    const stage_case *c = &cases[index / 2];
    char kernel[64];
    snprintf(kernel, sizeof kernel, "%s_%s", index % 2 ? "quantize" : "dequantize", c->format);
    const kernel_row *row = kernel_find(kernel);
    REQUIRE(row != NULL);
    qdnnHandle_t handle = device_begin(sms[index % LENGTH(sms)], 0, "all");
    for (int callers = 0; callers < 2 && handle; callers++) {
        parity_trial t = {
            .c = {.row = row,
                  .spec = spec_of(row, c),
                  .granularity = c->group_size ? QDNN_GRANULARITY_GROUP : QDNN_GRANULARITY_CHANNEL,
                  .extent = c->group_size ? c->group_size : 1,
                  .rank = 2,
                  .dims = {c->rows, c->columns},
                  .kind = DATA_NORMAL,
                  .seed = (uint32_t)(2 * index + callers + 1),
                  .callers = callers},
            .buffers = callers ? BUFFER_EXACT : BUFFER_BANDS,
            .by_plan = true};
        if (!parity_run(handle, &t))
            break;
    }
    device_end(handle);
}
