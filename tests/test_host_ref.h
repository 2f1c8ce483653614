/* What the tests of the host reference share: a plain spec to start from, and calls on one element. */
#ifndef QDNN_TEST_HOST_REF_H
#define QDNN_TEST_HOST_REF_H

#include "host_ref/host_ref.h"
#include "test.h"

#include <float.h>
#include <math.h>

/* f32 throughout, one group, low nibble first, exact division, ties to even. */
static inline ref_quant_spec plain_spec(qdnnFormat_t format)
{
    return (ref_quant_spec){.format = format,
                            .data = QDNN_DATA_F32,
                            .scale = QDNN_DATA_F32,
                            .zero = QDNN_DATA_F32,
                            .group_size = 1024,
                            .nibble_order = QDNN_NIBBLE_LOW_FIRST,
                            .rounding = QDNN_ROUND_TIES_TO_EVEN,
                            .division = QDNN_DIVIDE_EXACT,
                            .floor = REF_DEFAULT_FLOOR};
}

/* The code of one f32; scale and zero are f32. */
static inline unsigned code_of(ref_quant_spec spec, float x, float scale, float zero)
{
    uint8_t byte = 0xAA;
    ref_quantize(&spec, &x, 1, &scale, &zero, &byte);
    return byte;
}

/* The bits of one decoded element of type spec.data; scale and zero are f32. */
static inline uint32_t decoded_bits(ref_quant_spec spec, unsigned code, float scale, float zero)
{
    uint8_t byte = (uint8_t)code;
    union {
        uint32_t f32;
        uint16_t half;
    } y = {0};
    ref_dequantize(&spec, &byte, 1, &scale, &zero, &y);
    return spec.data == QDNN_DATA_F32 ? y.f32 : y.half;
}

/* The bits of the one scale that n f32 values get. */
static inline uint32_t scale_bits(ref_quant_spec spec, const float *x, int n)
{
    uint32_t word = 0;
    uint16_t half = 0;
    float zero = 0;
    ref_scale(&spec, x, n, spec.scale == QDNN_DATA_F32 ? (void *)&word : (void *)&half, &zero);
    return spec.scale == QDNN_DATA_F32 ? word : half;
}

#endif
