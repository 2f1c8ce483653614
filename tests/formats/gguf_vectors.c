/* The files of known answers, read. */
#include "formats/gguf_vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gguf_file gguf_files[GGUF_FILES] = {
    {"dequantize_Q4_0", QDNN_BLOCK_Q4_0, false},       {"dequantize_Q4_1", QDNN_BLOCK_Q4_1, false},
    {"dequantize_Q5_0", QDNN_BLOCK_Q5_0, false},       {"dequantize_Q5_1", QDNN_BLOCK_Q5_1, false},
    {"dequantize_Q8_0", QDNN_BLOCK_Q8_0, false},       {"dequantize_Q2_K", QDNN_BLOCK_Q2_K, false},
    {"dequantize_Q3_K", QDNN_BLOCK_Q3_K, false},       {"dequantize_Q4_K", QDNN_BLOCK_Q4_K, false},
    {"dequantize_Q5_K", QDNN_BLOCK_Q5_K, false},       {"dequantize_Q6_K", QDNN_BLOCK_Q6_K, false},
    {"dequantize_IQ4_NL", QDNN_BLOCK_IQ4_NL, false},   {"dequantize_IQ4_XS", QDNN_BLOCK_IQ4_XS, false},
    {"dequantize_TQ1_0", QDNN_BLOCK_TQ1_0, false},     {"dequantize_TQ2_0", QDNN_BLOCK_TQ2_0, false},
    {"dequantize_MXFP4", QDNN_BLOCK_MXFP4, false},     {"dequantize_NVFP4", QDNN_BLOCK_NVFP4, false},
    {"dequantize_Q1_0", QDNN_BLOCK_Q1_0, false},       {"dequantize_Q2_0", QDNN_BLOCK_Q2_0, false},
    {"dequantize_IQ1_S", QDNN_BLOCK_IQ1_S, false},     {"dequantize_IQ1_M", QDNN_BLOCK_IQ1_M, false},
    {"dequantize_IQ2_XXS", QDNN_BLOCK_IQ2_XXS, false}, {"dequantize_IQ2_XS", QDNN_BLOCK_IQ2_XS, false},
    {"dequantize_IQ2_S", QDNN_BLOCK_IQ2_S, false},     {"dequantize_IQ3_XXS", QDNN_BLOCK_IQ3_XXS, false},
    {"dequantize_IQ3_S", QDNN_BLOCK_IQ3_S, false},     {"quantize_Q1_0", QDNN_BLOCK_Q1_0, true},
    {"quantize_Q2_0", QDNN_BLOCK_Q2_0, true},          {"quantize_Q4_0", QDNN_BLOCK_Q4_0, true},
    {"quantize_Q4_1", QDNN_BLOCK_Q4_1, true},          {"quantize_Q5_0", QDNN_BLOCK_Q5_0, true},
    {"quantize_Q5_1", QDNN_BLOCK_Q5_1, true},          {"quantize_Q8_0", QDNN_BLOCK_Q8_0, true},
    {"quantize_TQ1_0", QDNN_BLOCK_TQ1_0, true},        {"quantize_TQ2_0", QDNN_BLOCK_TQ2_0, true},
    {"quantize_MXFP4", QDNN_BLOCK_MXFP4, true},
};

enum { LINE_MAX_BYTES = 2 * GGUF_BYTES_MAX + 8 * GGUF_VALUES_MAX + 3 };

static FILE *open_file(const char *name)
{
    const char *folder = getenv("QDNN_VECTORS_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/gguf/%s.txt", folder ? folder : QDNN_SOURCE_DIR "/tests/vectors", name);
    return fopen(path, "r");
}

static bool append(gguf_vectors *v, const uint8_t *block, int bytes, const float *values, int count)
{
    if (v->lines == 0) {
        v->block_bytes = (size_t)bytes;
        v->block_values = (size_t)count;
    }
    if (bytes <= 0 || count <= 0 || (size_t)bytes != v->block_bytes || (size_t)count != v->block_values)
        return false;
    size_t lines = (size_t)v->lines;
    uint8_t *blocks = realloc(v->blocks, (lines + 1) * v->block_bytes);
    if (blocks)
        v->blocks = blocks;
    float *all = realloc(v->values, (lines + 1) * v->block_values * sizeof *values);
    if (all)
        v->values = all;
    if (!blocks || !all)
        return false;
    memcpy(blocks + lines * v->block_bytes, block, v->block_bytes);
    memcpy(all + lines * v->block_values, values, v->block_values * sizeof *values);
    v->lines++;
    return true;
}

static bool read_line(const gguf_file *file, const char *line, gguf_vectors *out)
{
    uint8_t block[GGUF_BYTES_MAX];
    float values[GGUF_VALUES_MAX];
    const char *second = strchr(line, ' ');
    if (!second)
        return false;
    second++;
    int bytes = gguf_read_bytes(file->quantize ? second : line, block);
    int count = gguf_read_values(file->quantize ? line : second, values);
    return append(out, block, bytes, values, count);
}

bool gguf_vectors_read(const gguf_file *file, gguf_vectors *out)
{
    static char line[LINE_MAX_BYTES];
    FILE *input = open_file(file->name);
    *out = (gguf_vectors){0};
    if (!input)
        return false;
    bool ok = true;
    while (ok && fgets(line, sizeof line, input))
        ok = read_line(file, line, out);
    fclose(input);
    if (!ok)
        out->lines = 0;
    return true;
}

const gguf_file *gguf_file_at(bool quantize, int index)
{
    for (int i = 0; i < GGUF_FILES; i++)
        if (gguf_files[i].quantize == quantize && index-- == 0)
            return &gguf_files[i];
    return NULL;
}

int gguf_file_count(bool quantize)
{
    int n = 0;
    while (gguf_file_at(quantize, n))
        n++;
    return n;
}

void gguf_vectors_free(gguf_vectors *v)
{
    free(v->blocks);
    free(v->values);
    *v = (gguf_vectors){0};
}
