/* The host reference: each operation in plain C, right to the bit. docs/numerics.md is its contract in words.
 *
 * It is the answer that kernels are compared with, so it is written to be read, not to be fast. A wrong spec
 * is a defect of the caller: it is named on stderr and the program aborts. */
#ifndef QDNN_HOST_REF_H
#define QDNN_HOST_REF_H

#include "qdnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group's scale is never below this / qmax, unless the spec says otherwise. */
#define REF_DEFAULT_FLOOR 1e-12f

/* Every NaN that an operation writes. */
#define REF_NAN_F32 UINT32_C(0x7FFFFFFF)
#define REF_NAN_F16 UINT16_C(0x7FFF) /* bf16 too */

typedef struct {
    qdnnFormat_t format;
    qdnnDataType_t data;  /* F32, F16, BF16 */
    qdnnDataType_t scale; /* F32, F16, BF16 */
    qdnnDataType_t zero;  /* U8, F32, F16, BF16; read for formats with a zero point only */
    int64_t group_size;   /* at least 1, may exceed n */
    int64_t channels;     /* element i is in group (i / group_size) mod channels; 0: in i / group_size */
    qdnnNibbleOrder_t nibble_order;
    qdnnRounding_t rounding; /* of codes; zero points always round ties to even */
    qdnnDivision_t division; /* of codes; scales and zero points always divide */
    float floor;             /* finite, not negative */
} ref_quant_spec;

/* Sizes of n elements: `channels` groups (0: ceil(n / group_size)), ceil(n / 2) bytes; none for n = 0. */
int64_t ref_group_count(const ref_quant_spec *spec, int64_t n);
int64_t ref_packed_bytes(int64_t n);

/* Writes one scale for each group, and one zero point where the format has them (otherwise zero may be null).
 */
void ref_scale(const ref_quant_spec *spec, const void *x, int64_t n, void *scale, void *zero);

/* Writes ref_packed_bytes(n) bytes of codes. Scale and zero are taken as stored, whoever made them. */
void ref_quantize(const ref_quant_spec *spec, const void *x, int64_t n, const void *scale, const void *zero,
                  uint8_t *codes);

/* Writes n elements of type spec->data. */
void ref_dequantize(const ref_quant_spec *spec, const uint8_t *codes, int64_t n, const void *scale,
                    const void *zero, void *y);

/* Conversions: widening is exact, narrowing rounds to nearest even and overflows to infinity; NaNs come out
 * canonical. */
float ref_f32_from_bits(uint32_t bits);
uint32_t ref_f32_to_bits(float x);
float ref_f16_to_f32(uint16_t bits);
uint16_t ref_f32_to_f16(float x);
float ref_bf16_to_f32(uint16_t bits);
uint16_t ref_f32_to_bf16(float x);

/* Elements of an array of F32, F16, BF16 or U8, at any alignment. Storing rounds as above; U8 takes 0..255.
 */
size_t ref_scalar_size(qdnnDataType_t type);
float ref_scalar_load(qdnnDataType_t type, const void *array, int64_t index);
void ref_scalar_store(qdnnDataType_t type, void *array, int64_t index, float value);

/* The range that a stored scale is clamped to: the smallest positive and the largest finite value of the
 * type. */
float ref_scalar_smallest(qdnnDataType_t type);
float ref_scalar_largest(qdnnDataType_t type);

#ifdef __cplusplus
}
#endif
#endif
