/* The table of block formats, the operations on arrays of blocks, and helpers shared by the formats. */
#include "host_ref/blocks.h"

#include <string.h>

enum { MOST_ELEMENTS = 256 };

static const block_row rows_of_blocks[] = {
    {QDNN_BLOCK_Q4_0, 32, 18, hr_q4_0_decode, hr_q4_0_encode},
    {QDNN_BLOCK_Q4_1, 32, 20, hr_q4_1_decode, hr_q4_1_encode},
    {QDNN_BLOCK_Q5_0, 32, 22, hr_q5_0_decode, hr_q5_0_encode},
    {QDNN_BLOCK_Q5_1, 32, 24, hr_q5_1_decode, hr_q5_1_encode},
    {QDNN_BLOCK_Q8_0, 32, 34, hr_q8_0_decode, hr_q8_0_encode},
    {QDNN_BLOCK_Q8_1, 32, 36, hr_q8_1_decode, hr_q8_1_encode},
    {QDNN_BLOCK_Q2_K, 256, 84, hr_q2_k_decode, hr_q2_k_encode},
    {QDNN_BLOCK_Q3_K, 256, 110, hr_q3_k_decode, hr_q3_k_encode},
    {QDNN_BLOCK_Q4_K, 256, 144, hr_q4_k_decode, hr_q4_k_encode},
    {QDNN_BLOCK_Q5_K, 256, 176, hr_q5_k_decode, hr_q5_k_encode},
    {QDNN_BLOCK_Q6_K, 256, 210, hr_q6_k_decode, hr_q6_k_encode},
    {QDNN_BLOCK_Q8_K, 256, 292, hr_q8_k_decode, NULL},
    {QDNN_BLOCK_IQ4_NL, 32, 18, hr_iq4_nl_decode, NULL},
    {QDNN_BLOCK_IQ4_XS, 256, 136, hr_iq4_xs_decode, NULL},
    {QDNN_BLOCK_TQ1_0, 256, 54, hr_tq1_0_decode, hr_tq1_0_encode},
    {QDNN_BLOCK_TQ2_0, 256, 66, hr_tq2_0_decode, hr_tq2_0_encode},
    {QDNN_BLOCK_MXFP4, 32, 17, hr_mxfp4_decode, hr_mxfp4_encode},
    {QDNN_BLOCK_NVFP4, 64, 36, hr_nvfp4_decode, NULL},
    {QDNN_BLOCK_Q1_0, 128, 18, hr_q1_0_decode, hr_q1_0_encode},
    {QDNN_BLOCK_Q2_0, 64, 18, hr_q2_0_decode, hr_q2_0_encode},
    {QDNN_BLOCK_IQ1_S, 256, 50, hr_iq1_s_decode, NULL},
    {QDNN_BLOCK_IQ1_M, 256, 56, hr_iq1_m_decode, NULL},
    {QDNN_BLOCK_IQ2_XXS, 256, 66, hr_iq2_xxs_decode, NULL},
    {QDNN_BLOCK_IQ2_XS, 256, 74, hr_iq2_xs_decode, NULL},
    {QDNN_BLOCK_IQ2_S, 256, 82, hr_iq2_s_decode, NULL},
    {QDNN_BLOCK_IQ3_XXS, 256, 98, hr_iq3_xxs_decode, NULL},
    {QDNN_BLOCK_IQ3_S, 256, 110, hr_iq3_s_decode, NULL},
};

/* The row of the spec's format; null, with the violated rule, unless the tensor consists of whole blocks. */
static const block_row *find_row(const ref_quant_spec *spec, int64_t rows, int64_t columns,
                                 const hr_reason *why)
{
    if (!hr_shape_is_legal(rows, columns, why) || !hr_data_is_legal(spec, why))
        return NULL;
    for (size_t i = 0; i < sizeof rows_of_blocks / sizeof rows_of_blocks[0]; i++) {
        const block_row *row = &rows_of_blocks[i];
        if (row->format == spec->block && columns % row->elements == 0)
            return row;
        if (row->format == spec->block) {
            hr_deny(why, "columns is %lld; a row has whole blocks of %d", (long long)columns, row->elements);
            return NULL;
        }
    }
    hr_deny(why, "block format %d has no row in the table", (int)spec->block);
    return NULL;
}

static bool can_encode(const block_row *row, const hr_reason *why)
{
    HR_RULE(row->encode != NULL, "block format %d can only be decoded", (int)row->format);
    return true;
}

bool hr_blocks_are_legal(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool encodes,
                         const hr_reason *why)
{
    const block_row *row = find_row(spec, rows, columns, why);
    return row && (!encodes || can_encode(row, why));
}

/* The row; aborts if there is none. */
static const block_row *row_of(const ref_quant_spec *spec, int64_t rows, int64_t columns)
{
    char text[HR_REASON_BYTES];
    const block_row *row = find_row(spec, rows, columns, &(hr_reason){text, sizeof text});
    hr_require(row != NULL, "%s", text);
    return row;
}

int64_t hr_block_array_bytes(const ref_quant_spec *spec, int64_t rows, int64_t columns)
{
    const block_row *row = row_of(spec, rows, columns);
    return rows * columns / row->elements * row->bytes;
}

/* Rows consist of whole blocks, so blocks simply follow one another. */
static float decode_element(const block_row *row, const void *blocks, int64_t index)
{
    const uint8_t *block = (const uint8_t *)blocks + index / row->elements * row->bytes;
    return hr_canonical(row->decode(block, (int)(index % row->elements)));
}

float hr_block_decode_one(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *blocks,
                          int64_t row, int64_t column)
{
    return decode_element(row_of(spec, rows, columns), blocks, row * columns + column);
}

void hr_block_dequantize_all(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *blocks,
                             void *y)
{
    const block_row *row = row_of(spec, rows, columns);
    for (int64_t i = 0; i < rows * columns; i++)
        hr_scalar_store(spec->data, y, i, decode_element(row, blocks, i));
}

/* x as an encoder gets it: a NaN counts as 0, infinities as the largest finite numbers. */
static float load_for_block(const ref_quant_spec *spec, const void *x, int64_t index)
{
    float value = saturated(hr_scalar_load(spec->data, x, index));
    return isnan(value) ? 0.0f : value;
}

void hr_block_quantize_all(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
                           void *blocks)
{
    const block_row *row = row_of(spec, rows, columns);
    char text[HR_REASON_BYTES];
    hr_require(can_encode(row, &(hr_reason){text, sizeof text}), "%s", text);
    for (int64_t b = 0; b < rows * columns / row->elements; b++) {
        float values[MOST_ELEMENTS];
        uint8_t *block = (uint8_t *)blocks + b * row->bytes;
        for (int i = 0; i < row->elements; i++)
            values[i] = load_for_block(spec, x, b * row->elements + i);
        memset(block, 0, (size_t)row->bytes);
        row->encode(values, block);
    }
}

/* ---- Shared by the formats ---- */

float hr_block_f16(const uint8_t *at)
{
    return hr_f16_to_f32((uint16_t)(at[0] | at[1] << 8));
}

void hr_block_put_f16(uint8_t *at, float value)
{
    uint16_t bits = hr_f32_to_f16(clamp(value, -65504.0f, 65504.0f));
    at[0] = (uint8_t)bits;
    at[1] = (uint8_t)(bits >> 8);
}

unsigned hr_block_nibble(const uint8_t *codes, int i)
{
    return i < 16 ? codes[i] & 15u : codes[i - 16] >> 4;
}

void hr_block_put_nibble(uint8_t *codes, int i, unsigned code)
{
    if (i < 16)
        codes[i] = (uint8_t)(codes[i] | code);
    else
        codes[i - 16] = (uint8_t)(codes[i - 16] | code << 4);
}

float hr_block_absmax(const float *x, int count)
{
    float absmax = 0.0f;
    for (int i = 0; i < count; i++)
        absmax = larger(fabsf(x[i]), absmax);
    return absmax;
}

float hr_block_first_of_largest(const float *x, int count)
{
    float found = 0.0f;
    for (int i = 0; i < count; i++)
        if (fabsf(x[i]) > fabsf(found))
            found = x[i];
    return found;
}

float hr_block_reciprocal(float d)
{
    float reciprocal = 1.0f / d;
    return isfinite(reciprocal) ? reciprocal : 0.0f;
}
