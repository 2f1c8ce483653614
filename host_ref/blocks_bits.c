/* Q1_0 and Q2_0: codes of one and two bits, in the order of the elements. */
#include "host_ref/blocks.h"

enum { Q1_COUNT = 128, Q2_COUNT = 64 };

/* Q1_0: d, qs[16] */
float hr_q1_0_decode(const uint8_t *block, int i)
{
    float d = hr_block_f16(block);
    return block[2 + i / 8] >> i % 8 & 1 ? d : -d;
}

/* d is the mean magnitude; the sum runs in increasing order. Zeros of either sign count as positive. */
void hr_q1_0_encode(const float *x, uint8_t *block)
{
    float sum = 0.0f;
    for (int i = 0; i < Q1_COUNT; i++) {
        sum += fabsf(x[i]);
        if (x[i] >= 0.0f)
            block[2 + i / 8] = (uint8_t)(block[2 + i / 8] | 1 << i % 8);
    }
    hr_block_put_f16(block, sum / (float)Q1_COUNT);
}

/* Q2_0: d, qs[16] */
float hr_q2_0_decode(const uint8_t *block, int i)
{
    int code = block[2 + i / 4] >> 2 * (i % 4) & 3;
    return (float)(code - 1) * hr_block_f16(block);
}

/* Code 3 stands for 2 d; nothing is encoded as it, as d is the largest magnitude. */
void hr_q2_0_encode(const float *x, uint8_t *block)
{
    float d = hr_block_absmax(x, Q2_COUNT), reciprocal = hr_block_reciprocal(d);
    hr_block_put_f16(block, d);
    for (int i = 0; i < Q2_COUNT; i++) {
        int code = (int)clamp(round_ties_away(x[i] * reciprocal) + 1.0f, 0.0f, 3.0f);
        block[2 + i / 4] = (uint8_t)(block[2 + i / 4] | code << 2 * (i % 4));
    }
}
