/* GGUF blocks against known answers that another implementation computed (the PyPI package gguf). They are not
 * kept here: the folder is named by QDNN_VECTORS_DIR, or is ../shared/vectors beside the sources; tests skip
 * without it. A line of gguf/dequantize_TYPE.txt has the bytes of a block in hexadecimal, then its values as f32
 * bit patterns; of gguf/quantize_TYPE.txt the values, then the block. */
#include "test_host_ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    qdnnBlockFormat_t block;
    bool quantize;
} files[] = {
    {"dequantize_Q4_0", QDNN_BLOCK_Q4_0, false},     {"dequantize_Q4_1", QDNN_BLOCK_Q4_1, false},
    {"dequantize_Q5_0", QDNN_BLOCK_Q5_0, false},     {"dequantize_Q5_1", QDNN_BLOCK_Q5_1, false},
    {"dequantize_Q8_0", QDNN_BLOCK_Q8_0, false},     {"dequantize_Q2_K", QDNN_BLOCK_Q2_K, false},
    {"dequantize_Q3_K", QDNN_BLOCK_Q3_K, false},     {"dequantize_Q4_K", QDNN_BLOCK_Q4_K, false},
    {"dequantize_Q5_K", QDNN_BLOCK_Q5_K, false},     {"dequantize_Q6_K", QDNN_BLOCK_Q6_K, false},
    {"dequantize_IQ4_NL", QDNN_BLOCK_IQ4_NL, false}, {"dequantize_IQ4_XS", QDNN_BLOCK_IQ4_XS, false},
    {"dequantize_TQ1_0", QDNN_BLOCK_TQ1_0, false},   {"dequantize_TQ2_0", QDNN_BLOCK_TQ2_0, false},
    {"dequantize_MXFP4", QDNN_BLOCK_MXFP4, false},   {"dequantize_NVFP4", QDNN_BLOCK_NVFP4, false},
    {"quantize_Q4_0", QDNN_BLOCK_Q4_0, true},        {"quantize_Q4_1", QDNN_BLOCK_Q4_1, true},
    {"quantize_Q5_0", QDNN_BLOCK_Q5_0, true},        {"quantize_Q5_1", QDNN_BLOCK_Q5_1, true},
    {"quantize_Q8_0", QDNN_BLOCK_Q8_0, true},        {"quantize_TQ1_0", QDNN_BLOCK_TQ1_0, true},
    {"quantize_TQ2_0", QDNN_BLOCK_TQ2_0, true},      {"quantize_MXFP4", QDNN_BLOCK_MXFP4, true},
};

enum { MOST_VALUES = 256, MOST_BYTES = 300, MOST_LINE = 2 * MOST_BYTES + 8 * MOST_VALUES + 3 };

static FILE *open_vectors(const char *name)
{
    const char *folder = getenv("QDNN_VECTORS_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/gguf/%s.txt", folder ? folder : QDNN_SOURCE_DIR "/../shared/vectors",
             name);
    return fopen(path, "r");
}

/* Returns how many bytes the digits up to a blank or the end give. */
static int read_bytes(const char *text, uint8_t *bytes)
{
    int count = 0;
    unsigned byte;
    while (sscanf(text + 2 * count, "%2x", &byte) == 1 && text[2 * count] > ' ')
        bytes[count++] = (uint8_t)byte;
    return count;
}

static int read_values(const char *text, float *values)
{
    int count = 0;
    unsigned bits;
    while (sscanf(text + 8 * count, "%8x", &bits) == 1 && text[8 * count] > ' ')
        values[count++] = ref_f32_from_bits(bits);
    return count;
}

static void check_line(const ref_quant_spec *spec, bool quantize, const char *line)
{
    uint8_t block[MOST_BYTES], made_block[MOST_BYTES];
    float values[MOST_VALUES], made_values[MOST_VALUES];
    const char *second = strchr(line, ' ') + 1;
    int bytes = read_bytes(quantize ? second : line, block);
    int count = read_values(quantize ? line : second, values);
    if (!CHECK_EQ_I64(ref_sizes_of(spec, 1, count).codes, bytes))
        return;
    ref_arrays arrays = {.codes = quantize ? made_block : block};
    if (quantize) {
        ref_quantize(spec, 1, count, values, &arrays);
        CHECK_EQ_MEM(made_block, block, (size_t)bytes);
    } else {
        ref_dequantize(spec, 1, count, &arrays, made_values);
        CHECK_EQ_MEM(made_values, values, (size_t)count * sizeof(float));
    }
}

TEST_ROWS(HostRefVectors, NoByteDiffers, files)
{
    FILE *file = open_vectors(files[index].name);
    if (!file)
        SKIP("no vectors: QDNN_VECTORS_DIR names no folder with gguf/%s.txt", files[index].name);
    ref_quant_spec spec = {.data = QDNN_DATA_F32, .block = files[index].block};
    static char line[MOST_LINE];
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        test_push_note("line %d", ++lines);
        check_line(&spec, files[index].quantize, line);
        test_pop_note();
    }
    fclose(file);
    CHECK(lines >= 24);
}
