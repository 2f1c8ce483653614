/* Known answers of GGUF blocks that another implementation computed (the PyPI package gguf), in tests/vectors or the folder that
 * QDNN_VECTORS_DIR names. A line of gguf/dequantize_TYPE.txt has the bytes of a block in hexadecimal, then its values as f32
 * bit patterns; of gguf/quantize_TYPE.txt the values, then the block. */
#ifndef QDNN_TEST_GGUF_VECTORS_H
#define QDNN_TEST_GGUF_VECTORS_H

#include <stdbool.h>

#include "formats/gguf_excerpts.h"

enum { GGUF_FILES = 35 };

typedef struct gguf_file {
    const char *name;
    qdnnBlockFormat_t block;
    bool quantize;
} gguf_file;
extern const gguf_file gguf_files[GGUF_FILES];

/* Those of one direction only: the index-th (null beyond the last), and how many there are. */
const gguf_file *gguf_file_at(bool quantize, int index);
int gguf_file_count(bool quantize);

/* Blocks that follow one another, and their values. */
typedef struct gguf_vectors {
    int lines;
    size_t block_bytes, block_values; /* of one of them */
    uint8_t *blocks;
    float *values;
} gguf_vectors;

/* False: there is no such file, which is a reason to skip; or (lines is 0 then) a line is not as it should be. */
bool gguf_vectors_read(const gguf_file *file, gguf_vectors *out);
void gguf_vectors_free(gguf_vectors *v);

#endif
