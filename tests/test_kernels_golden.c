/* The text of a handful of kernels, byte for byte: a change of an emitter or of the builder that alters what
 * is written shows here, and can be read as a difference between two files. QDNN_UPDATE_GOLDEN=1 rewrites the
 * files of tests/golden. */
#include "kernels/kernels.h"
#include "tools/toolkit.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *kernel, *sm;
    const char *settings[8][2];
} rows[] = {
    {"scale_int4", "sm_75", {{0}}},
    {"scale_int4_zp",
     "sm_120",
     {{"data", "f16"}, {"scale", "bf16"}, {"zero", "f16"}, {"group_size", "100000"}}},
    {"quantize_int4",
     "sm_89",
     {{"data", "f32"}, {"group_size", "3"}, {"rounding", "away"}, {"division", "reciprocal"}}},
    {"quantize_nf4",
     "sm_90",
     {{"data", "f16"}, {"scale", "f16"}, {"group_size", "64"}, {"nibble_order", "high"}}},
    {"dequantize_int4_zp", "sm_100f", {{"data", "bf16"}, {"group_size", "32"}}},
    {"dequantize_nf4", "sm_80", {{"group_size", "64"}}},
};

static int count(void)
{
    return sizeof rows / sizeof rows[0];
}

static kernel_spec spec_of(int index)
{
    kernel_spec spec = kernel_spec_default();
    char error[256];
    for (int i = 0; rows[index].settings[i][0]; i++)
        if (!kernel_spec_set(kernel_find(rows[index].kernel), &spec, rows[index].settings[i][0],
                             rows[index].settings[i][1], error, sizeof error))
            FAIL("%s", error);
    return spec;
}

/* "quantize_nf4_f16_f16_g64_high_sm_90", as ptxgen names its files. */
static void name(int index, char *text, size_t size)
{
    char label[128];
    kernel_spec spec = spec_of(index);
    kernel_spec_label(kernel_find(rows[index].kernel), KERNEL_NORMAL(kernel_find(rows[index].kernel), &spec),
                      label, sizeof label);
    snprintf(text, size, "%s_%s_%s", rows[index].kernel, label, rows[index].sm);
}

/* Names the first line that differs: the whole text would not help. */
static void compare(const char *actual, const char *expected)
{
    int line = 1;
    size_t start = 0, i = 0;
    for (; actual[i] && actual[i] == expected[i]; i++)
        if (actual[i] == '\n') {
            line++;
            start = i + 1;
        }
    if (actual[i] != expected[i])
        FAIL("line %d is\n  %.*s\nbut the golden file has\n  %.*s\n(QDNN_UPDATE_GOLDEN=1 rewrites it)", line,
             (int)strcspn(actual + start, "\n"), actual + start, (int)strcspn(expected + start, "\n"),
             expected + start);
}

static void update(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (!CHECK(file != NULL))
        return;
    fputs(text, file);
    CHECK(fclose(file) == 0);
}

TEST_EACH(Kernels, Golden, count, name)
{
    char stem[200], path[1024];
    name(index, stem, sizeof stem);
    snprintf(path, sizeof path, "%s/tests/golden/%s.ptx", QDNN_SOURCE_DIR, stem);
    kernel_spec spec = spec_of(index);
    kernel_text text;
    ptx_error error = {0};
    REQUIRE(kernel_emit(kernel_find(rows[index].kernel), &spec, ptx_sm_find(rows[index].sm), NULL, &text,
                        &error));
    const char *wanted = getenv("QDNN_UPDATE_GOLDEN");
    if (wanted && strcmp(wanted, "1") == 0)
        update(path, text.ptx);
    char *golden = toolkit_read_file(path, NULL);
    if (golden)
        compare(text.ptx, golden);
    else
        FAIL("there is no %s; QDNN_UPDATE_GOLDEN=1 writes it", path);
    free(golden);
    free(text.ptx);
}
