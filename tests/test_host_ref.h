/* What the tests of the host reference share: a plain spec to start from, and calls on one element. */
#ifndef QDNN_TEST_HOST_REF_H
#define QDNN_TEST_HOST_REF_H

#include "host_ref/host_ref.h"
#include "test.h"

#include <float.h>
#include <math.h>

/* f32 throughout, one group, low nibble first, exact division, ties to even. */
static inline ref_quant_spec plain_spec(qdnnDataType_t storage, qdnnZeroKind_t zero_kind)
{
    return (ref_quant_spec){.data = QDNN_DATA_F32,
                            .storage = storage,
                            .zero_kind = zero_kind,
                            .zero = QDNN_DATA_F32,
                            .group_size = 1024,
                            .floor = REF_DEFAULT_FLOOR};
}

/* The operations on a flat tensor, with scales and zeros alone. */
static inline void flat_scale(const ref_quant_spec *spec, const void *x, int64_t n, void *scale, void *zero)
{
    ref_arrays out = {.scale = scale, .zero = zero};
    ref_scale(spec, 1, n, x, &out);
}

static inline void flat_quantize(const ref_quant_spec *spec, const void *x, int64_t n, const void *scale,
                                 const void *zero, void *codes)
{
    ref_arrays io = {.codes = codes, .scale = (void *)(uintptr_t)scale, .zero = (void *)(uintptr_t)zero};
    ref_quantize(spec, 1, n, x, &io);
}

static inline void flat_dequantize(const ref_quant_spec *spec, const void *codes, int64_t n,
                                   const void *scale, const void *zero, void *y)
{
    ref_arrays in = {.codes = (void *)(uintptr_t)codes,
                     .scale = (void *)(uintptr_t)scale,
                     .zero = (void *)(uintptr_t)zero};
    ref_dequantize(spec, 1, n, &in, y);
}

/* The bits of a stored scale. */
static inline uint32_t stored_bits(const void *scale, qdnnScaleType_t type, int index)
{
    switch (type) {
    case QDNN_SCALE_F32:
        return ((const uint32_t *)scale)[index];
    case QDNN_SCALE_F16:
    case QDNN_SCALE_BF16:
        return ((const uint16_t *)scale)[index];
    default:
        return ((const uint8_t *)scale)[index];
    }
}

/* The code of one f32; scale and zero are f32. */
static inline unsigned code_of(ref_quant_spec spec, float x, float scale, float zero)
{
    uint8_t byte = 0xAA;
    flat_quantize(&spec, &x, 1, &scale, &zero, &byte);
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
    flat_dequantize(&spec, &byte, 1, &scale, &zero, &y);
    return spec.data == QDNN_DATA_F32 ? y.f32 : y.half;
}

/* The bits of the one scale that n f32 values get. */
static inline uint32_t scale_bits(ref_quant_spec spec, const float *x, int n)
{
    uint32_t scale = 0;
    float zero = 0;
    flat_scale(&spec, x, n, &scale, &zero);
    return scale;
}

#endif
