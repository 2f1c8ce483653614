/* One block of each format from known answers that the PyPI package gguf 0.19 computed. gguf_vectors.h reads all of
 * them, where they are. */
#ifndef QDNN_TEST_GGUF_EXCERPTS_H
#define QDNN_TEST_GGUF_EXCERPTS_H

#include <stdint.h>

#include <qdnn/types.h>

enum { GGUF_VALUES_MAX = 256, GGUF_BYTES_MAX = 292, GGUF_DECODED = 16, GGUF_ENCODED = 6 };

/* Some of a block's values, its last among them. */
typedef struct gguf_decoded {
    const char *name;
    qdnnBlockFormat_t block;
    const char *bytes; /* in hexadecimal */
    struct {
        int index;
        uint32_t bits;
    } values[8];
} gguf_decoded;
extern const gguf_decoded gguf_decoded_blocks[GGUF_DECODED];

/* 32 values as big-endian f32, and the block that they become. */
typedef struct gguf_encoded {
    const char *name;
    qdnnBlockFormat_t block;
    const char *values, *bytes;
} gguf_encoded;
extern const gguf_encoded gguf_encoded_blocks[GGUF_ENCODED];

/* Numbers up to the first that is none, GGUF_BYTES_MAX bytes and GGUF_VALUES_MAX values at most; return how many. */
int gguf_read_bytes(const char *text, uint8_t *bytes);
int gguf_read_values(const char *text, float *values);

#endif
