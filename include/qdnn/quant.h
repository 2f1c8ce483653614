/* Quantization descriptors: how numbers become codes, and codes become numbers. docs/numerics.md defines the
 * arithmetic.
 *
 * A descriptor can describe more than this version supports. Setting a value checks that value alone; whether
 * the combination makes sense and there is a kernel for it is checked by every call that uses the descriptor, by the same rules
 * (QDNN_STATUS_NOT_SUPPORTED, with a message that ends with "fix:" and a remedy). Attributes of zeros are ignored without zeros,
 * "of GROUP" with other granularities, everything else with a BLOCK_FORMAT; other attributes that contradict each other, such
 * as a nibble order of 3-bit codes, are refused. */
#ifndef QDNN_QUANT_H
#define QDNN_QUANT_H

#include <qdnn/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnQuantDescriptor *qdnnQuantDescriptor_t;

/* The attributes of a descriptor and their defaults. The numbers never change. */
typedef enum {
    /* qdnnDataType_t of the codes: I4, NF4, I8, U8, FP4, F8E4M3, F8E5M2; plain numbers: F32, F16, BF16; default I4 */
    QDNN_QUANT_STORAGE = 0,
    QDNN_QUANT_GRANULARITY = 1,   /* qdnnGranularity_t; default GROUP */
    QDNN_QUANT_AXIS = 2,          /* of CHANNEL: 0 to QDNN_DIMS_MAX - 1; default 0 */
    QDNN_QUANT_GROUP_SIZE = 3,    /* of GROUP: 1 to 2^40; default 128 */
    QDNN_QUANT_SCALE_TYPE = 4,    /* qdnnScaleType_t; default F32 */
    QDNN_QUANT_ZERO_KIND = 5,     /* qdnnZeroKind_t; default NONE */
    QDNN_QUANT_ZERO_TYPE = 6,     /* qdnnDataType_t of zeros: U8, I8, U32, I32, F32, F16, BF16; default U8,
                                   which minima and signed codes refuse */
    QDNN_QUANT_ROUNDING = 7,      /* qdnnRounding_t of codes; default TIES_TO_EVEN */
    QDNN_QUANT_DIVISION = 8,      /* qdnnDivision_t; default EXACT */
    QDNN_QUANT_NIBBLE_ORDER = 9,  /* qdnnNibbleOrder_t; default LOW_FIRST */
    QDNN_QUANT_LAYOUT = 10,       /* qdnnLayout_t; default BYTES */
    QDNN_QUANT_BLOCK_ROWS = 11,   /* of GROUP: rows per 2-D block that shares a scale; 1 to 2^20; default 1 */
    QDNN_QUANT_GLOBAL_SCALE = 12, /* 1: one f32 factor for all scales; 2: its reciprocal; default 0 */
    QDNN_QUANT_SCALE_SWIZZLE = 13, /* qdnnScaleSwizzle_t; default NONE */
    QDNN_QUANT_CODE_BITS = 14, /* of codes in I8 or U8 storage: 2 to 6 or 8; default 0: the storage's width */
    QDNN_QUANT_CODE_KIND = 15, /* qdnnCodeKind_t; default DEFAULT */
    QDNN_QUANT_BLOCK_FORMAT = 16, /* qdnnBlockFormat_t: determines the rest of the format; default NONE */
    QDNN_QUANT_GROUPS = 17,       /* of GROUP: qdnnGroups_t; default DEFAULT */
    QDNN_QUANT_SCALE_ORDER = 18,  /* qdnnScaleOrder_t; default DEFAULT */
    QDNN_QUANT_GROUP_INDEX = 19,  /* 1: the operand GROUP_INDEX gives the group of each k; default 0 */
    QDNN_QUANT_NESTED = 20,       /* 1: scales are bytes with a table and scales of their own; default 0 */
    QDNN_QUANT_ZERO_PACKED = 21, /* 1: zeros are as wide as codes, packed into u32 words along N; default 0 */
    QDNN_QUANT_ZERO_MINUS_ONE = 22, /* 1: stored zeros are 1 less (GPTQ's first version); default 0 */
    QDNN_QUANT_ZERO_WRAPS = 23, /* 1: with ZERO_MINUS_ONE, stored 2^bits - 1 means 0, not 2^bits; default 0 */
    QDNN_QUANT_RANGE = 24,      /* qdnnRange_t; default WITH_ZERO */
    QDNN_QUANT_MX_ROUNDING = 25,      /* qdnnMxRounding_t; default FLOOR */
    QDNN_QUANT_ZERO_GRANULARITY = 26, /* qdnnGranularity_t of zeros; -1: same as the scales; default -1 */
    QDNN_QUANT_ZERO_GROUP_SIZE = 27,  /* of zeros; 0: same as the scales; default 0 */
    QDNN_QUANT_ATTRIBUTE_COUNT = 28
} qdnnQuantAttribute_t;

/* Creates a descriptor with every value at its default: symmetric INT4 in groups of 128 with f32 scales.
 *   quant   receives it; qdnnDestroyQuantDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Thread-safe. */
QDNN_API qdnnStatus_t qdnnCreateQuantDescriptor(qdnnQuantDescriptor_t *quant);

/* Sets the most common attributes, and all others to their defaults.
 *   quant
 *   storage       as for QDNN_QUANT_STORAGE
 *   granularity
 *   extent        GROUP: the group size; CHANNEL: the axis; TENSOR, NONE: 0
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an invalid value; the descriptor is
 * then unchanged. */
QDNN_API qdnnStatus_t qdnnSetQuantDescriptor(qdnnQuantDescriptor_t quant, qdnnDataType_t storage,
                                             qdnnGranularity_t granularity, int64_t extent);

/* Sets one attribute.
 *   quant
 *   attribute   one of the list above
 *   value       as in the list above
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute or an invalid
 * value; the descriptor is then unchanged. */
QDNN_API qdnnStatus_t qdnnSetQuantAttribute(qdnnQuantDescriptor_t quant, qdnnQuantAttribute_t attribute,
                                            int64_t value);

/* Gets one attribute.
 *   quant
 *   attribute   one of the list above
 *   value       receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute. */
QDNN_API qdnnStatus_t qdnnGetQuantAttribute(qdnnQuantDescriptor_t quant, qdnnQuantAttribute_t attribute,
                                            int64_t *value);

/* Sets the floor: ranges smaller than this are raised to it when their scales are computed. 1e-12 by default.
 * NF4 has no floor.
 *   quant
 *   floor   finite, not negative
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnSetQuantFloor(qdnnQuantDescriptor_t quant, float floor);

/* Gets the floor.
 *   quant
 *   floor   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetQuantFloor(qdnnQuantDescriptor_t quant, float *floor);

/* Gets the size of one buffer of a quantized tensor.
 *   quant
 *   tensor    the plain tensor
 *   operand   which buffer: X and Y are the plain tensor itself
 *   bytes     receives the size; 0 if the format has no such operand
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown operand;
 * _BAD_PARAM_SHAPE_MISMATCH for a shape that the format does not allow, such as an axis beyond the tensor's
 * rank; _NOT_SUPPORTED if there is no kernel. */
QDNN_API qdnnStatus_t qdnnGetOperandSize(qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t tensor,
                                         qdnnOperand_t operand, size_t *bytes);

/* Gets the three sizes that most formats have. Results that are not wanted may be null.
 *   quant
 *   tensor       the plain tensor
 *   codesBytes   receives the size of the codes
 *   scaleBytes   of the scales
 *   zeroBytes    of the zeros; 0 if the descriptor has none
 * Returns what qdnnGetOperandSize does. */
QDNN_API qdnnStatus_t qdnnGetQuantizedSizes(qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t tensor,
                                            size_t *codesBytes, size_t *scaleBytes, size_t *zeroBytes);

/* Frees a descriptor. Plans created from it no longer need it.
 *   quant   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyQuantDescriptor(qdnnQuantDescriptor_t quant);

#ifdef __cplusplus
}
#endif
#endif
