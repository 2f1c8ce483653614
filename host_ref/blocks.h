/* Blocks that hold codes and scales together, as in GGUF files: one row per format, and the functions in its
 * row. A block is an array of bytes; docs/formats.md gives the offsets of its fields; numbers of more than
 * one byte are little-endian. */
#ifndef QDNN_HOST_REF_BLOCKS_H
#define QDNN_HOST_REF_BLOCKS_H

#include "host_ref/internal.h"

typedef struct {
    qdnnBlockFormat_t format;
    int elements, bytes;
    /* The value of element i, in f32, each step rounded in the order given by docs/numerics.md. */
    float (*decode)(const uint8_t *block, int i);
    /* Writes a block of x, which contains no NaN and no infinity. Null: the format can only be read. */
    void (*encode)(const float *x, uint8_t *block);
} block_row;

/* ---- blocks.c: shared by the formats ---- */

float hr_block_f16(const uint8_t *at);
/* Rounds, and saturates at the largest finite f16. */
void hr_block_put_f16(uint8_t *at, float value);
/* Element i of a block of 32: the first half is in the low nibbles of 16 bytes, the second half in the high
 * ones. */
unsigned hr_block_nibble(const uint8_t *codes, int i);
void hr_block_put_nibble(uint8_t *codes, int i, unsigned code);
float hr_block_absmax(const float *x, int count);
/* The first value of largest magnitude; +0 if all are zero. */
float hr_block_first_of_largest(const float *x, int count);
/* 1 / d, or 0 if that is not finite. */
float hr_block_reciprocal(float d);

/* The formats, by file. */

/* blocks_32.c */
float hr_q4_0_decode(const uint8_t *block, int i);
float hr_q4_1_decode(const uint8_t *block, int i);
float hr_q5_0_decode(const uint8_t *block, int i);
float hr_q5_1_decode(const uint8_t *block, int i);
float hr_q8_0_decode(const uint8_t *block, int i);
float hr_q8_1_decode(const uint8_t *block, int i);
void hr_q4_0_encode(const float *x, uint8_t *block);
void hr_q4_1_encode(const float *x, uint8_t *block);
void hr_q5_0_encode(const float *x, uint8_t *block);
void hr_q5_1_encode(const float *x, uint8_t *block);
void hr_q8_0_encode(const float *x, uint8_t *block);
void hr_q8_1_encode(const float *x, uint8_t *block);

/* blocks_k.c */
float hr_q2_k_decode(const uint8_t *block, int i);
float hr_q3_k_decode(const uint8_t *block, int i);
float hr_q4_k_decode(const uint8_t *block, int i);
float hr_q5_k_decode(const uint8_t *block, int i);
float hr_q6_k_decode(const uint8_t *block, int i);
float hr_q8_k_decode(const uint8_t *block, int i);

/* blocks_k_encode.c */
void hr_q2_k_encode(const float *x, uint8_t *block);
void hr_q3_k_encode(const float *x, uint8_t *block);
void hr_q4_k_encode(const float *x, uint8_t *block);
void hr_q5_k_encode(const float *x, uint8_t *block);
void hr_q6_k_encode(const float *x, uint8_t *block);

/* blocks_table.c: IQ4 and ternary */
float hr_iq4_nl_decode(const uint8_t *block, int i);
float hr_iq4_xs_decode(const uint8_t *block, int i);
float hr_tq1_0_decode(const uint8_t *block, int i);
float hr_tq2_0_decode(const uint8_t *block, int i);
void hr_tq1_0_encode(const float *x, uint8_t *block);
void hr_tq2_0_encode(const float *x, uint8_t *block);

/* blocks_fp4.c */
float hr_mxfp4_decode(const uint8_t *block, int i);
float hr_nvfp4_decode(const uint8_t *block, int i);
void hr_mxfp4_encode(const float *x, uint8_t *block);

/* blocks_bits.c */
float hr_q1_0_decode(const uint8_t *block, int i);
float hr_q2_0_decode(const uint8_t *block, int i);
void hr_q1_0_encode(const float *x, uint8_t *block);
void hr_q2_0_encode(const float *x, uint8_t *block);

/* blocks_grid.c */
float hr_iq1_s_decode(const uint8_t *block, int i);
float hr_iq1_m_decode(const uint8_t *block, int i);
float hr_iq2_xxs_decode(const uint8_t *block, int i);
float hr_iq2_xs_decode(const uint8_t *block, int i);
float hr_iq2_s_decode(const uint8_t *block, int i);
float hr_iq3_xxs_decode(const uint8_t *block, int i);
float hr_iq3_s_decode(const uint8_t *block, int i);

#endif
