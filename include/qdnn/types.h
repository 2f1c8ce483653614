/* The types shared by every part of qdnn: statuses, data types and the choices that define a quantization.
 *
 * The numbers in this file never change: they are stored in files and passed across the ABI. */
#ifndef QDNN_TYPES_H
#define QDNN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define QDNN_API __attribute__((visibility("default")))
#else
#define QDNN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Each thousand is one kind of status; the kind tells the caller how to react. */
typedef enum {
    QDNN_STATUS_SUCCESS = 0,

    QDNN_STATUS_BAD_PARAM = 2000, /* an argument is wrong: correct the call */
    QDNN_STATUS_BAD_PARAM_NULL_POINTER = 2001,
    QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2002,
    QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME = 2003,
    QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2004,
    QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2005, /* a buffer or workspace is too small */
    QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2006,    /* two arguments do not match */

    QDNN_STATUS_NOT_SUPPORTED = 3000, /* the call is valid, but this device or build lacks what it needs */
    QDNN_STATUS_NOT_SUPPORTED_SM = 3001,
    QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER = 3002, /* no usable CUDA driver on this machine */
    QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE = 3003, /* a driver, but no device, or not the one requested */
    QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD = 3004,
    QDNN_STATUS_NOT_SUPPORTED_LIBRARY_MISSING = 3005, /* cuBLAS or NVRTC, loaded at run time */

    QDNN_STATUS_INTERNAL_ERROR = 4000,                   /* a bug in qdnn, or a resource is exhausted */
    QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED = 4001, /* out of host memory */
    QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED = 4002,
    QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4003, /* out of device memory */

    QDNN_STATUS_EXECUTION_FAILED = 5000,       /* the device refused or failed */
    QDNN_STATUS_EXECUTION_FAILED_STICKY = 5001 /* and its context is lost: every later call fails */
} qdnnStatus_t;

/* Data type tags. */
typedef enum {
    QDNN_DATA_U32 = 0x01,
    QDNN_DATA_I32 = 0x02,
    QDNN_DATA_U64 = 0x03,
    QDNN_DATA_VEC2_U32 = 0x04,
    QDNN_DATA_VEC4_U32 = 0x05,
    QDNN_DATA_BOOL = 0x06,
    QDNN_DATA_BYTES = 0x07,
    QDNN_DATA_ARRAY = 0x08,
    QDNN_DATA_F16 = 0x09,
    QDNN_DATA_BF16 = 0x0A,
    QDNN_DATA_F32 = 0x0B,
    QDNN_DATA_F64 = 0x0C,
    QDNN_DATA_TENSOR = 0x0D,
    QDNN_DATA_U8 = 0x0E,
    QDNN_DATA_U16 = 0x0F,
    QDNN_DATA_I8 = 0x10,
    QDNN_DATA_I16 = 0x11,
    QDNN_DATA_I64 = 0x12,
    QDNN_DATA_HANDLE = 0x13,
    QDNN_DATA_VEC = 0x14,
    QDNN_DATA_TENSOR_SHAPED = 0x15,
    QDNN_DATA_SPARSE_CSR = 0x16,
    QDNN_DATA_SPARSE_COO = 0x17,
    QDNN_DATA_SPARSE_BSR = 0x18,
    QDNN_DATA_F8E4M3 = 0x19,
    QDNN_DATA_F8E5M2 = 0x1A,
    QDNN_DATA_I4 = 0x1B,
    QDNN_DATA_FP4 = 0x1C,
    QDNN_DATA_NF4 = 0x1D,
    QDNN_DATA_DEVICE_MESH = 0x1E,
    /* 0x1F to 0x7F are reserved */
    QDNN_DATA_OPAQUE = 0x80
} qdnnDataType_t;

/* Which elements share a scale (and a zero point). */
typedef enum {
    QDNN_GRANULARITY_TENSOR = 0,  /* all of them */
    QDNN_GRANULARITY_CHANNEL = 1, /* those with the same index along an axis */
    QDNN_GRANULARITY_GROUP = 2,   /* groupSize neighbours; qdnnGroups_t gives the direction */
    QDNN_GRANULARITY_NONE = 3     /* there are no scales: every scale is 1 */
} qdnnGranularity_t;

/* The direction of groups. The tensor counts as a matrix: its last dimension is the columns, all others
 * together are the rows. */
typedef enum {
    QDNN_GROUPS_DEFAULT = 0, /* by layout: BYTES flat, WORDS_ROWS along rows, others down columns */
    QDNN_GROUPS_FLAT = 1,    /* over the flat tensor, across the ends of rows */
    QDNN_GROUPS_ROWS = 2,    /* along each row, never across its end: weights [N, K] */
    QDNN_GROUPS_COLUMNS = 3  /* down a column: weights [K, N] */
} qdnnGroups_t;

/* The order of scales when groups run along rows or down columns. */
typedef enum {
    QDNN_SCALE_ORDER_DEFAULT = 0, /* ROWS: [rows, groups]; COLUMNS: [groups, columns] */
    QDNN_SCALE_ORDER_TRANSPOSED = 1
} qdnnScaleOrder_t;

/* How the bits of a code become a number. */
typedef enum {
    QDNN_CODE_DEFAULT = 0, /* given by the storage type: see the table in docs/formats.md */
    QDNN_CODE_OFFSET = 1,  /* an integer plus 2^(bits - 1) */
    QDNN_CODE_UNSIGNED = 2,
    QDNN_CODE_TWOS_COMPLEMENT = 3,
    QDNN_CODE_FP4_BNB = 4, /* storage FP4: the table of bitsandbytes instead of E2M1 */
    QDNN_CODE_E2M3 = 5,    /* storage U8 with 6 bits */
    QDNN_CODE_E3M2 = 6     /* storage U8 with 6 bits */
} qdnnCodeKind_t;

/* Blocks that hold codes and scales together, as in GGUF files. */
typedef enum {
    QDNN_BLOCK_NONE = 0, /* codes, scales and zeros are separate arrays */
    QDNN_BLOCK_Q4_0 = 1,
    QDNN_BLOCK_Q4_1 = 2,
    QDNN_BLOCK_Q5_0 = 3,
    QDNN_BLOCK_Q5_1 = 4,
    QDNN_BLOCK_Q8_0 = 5,
    QDNN_BLOCK_Q8_1 = 6,
    QDNN_BLOCK_Q2_K = 7,
    QDNN_BLOCK_Q3_K = 8,
    QDNN_BLOCK_Q4_K = 9,
    QDNN_BLOCK_Q5_K = 10,
    QDNN_BLOCK_Q6_K = 11,
    QDNN_BLOCK_Q8_K = 12,
    QDNN_BLOCK_IQ4_NL = 13,
    QDNN_BLOCK_IQ4_XS = 14,
    QDNN_BLOCK_TQ1_0 = 15,
    QDNN_BLOCK_TQ2_0 = 16,
    QDNN_BLOCK_MXFP4 = 17,
    QDNN_BLOCK_NVFP4 = 18,
    QDNN_BLOCK_Q1_0 = 19,
    QDNN_BLOCK_Q2_0 = 20,
    QDNN_BLOCK_IQ1_S = 21,
    QDNN_BLOCK_IQ1_M = 22,
    QDNN_BLOCK_IQ2_XXS = 23,
    QDNN_BLOCK_IQ2_XS = 24,
    QDNN_BLOCK_IQ2_S = 25,
    QDNN_BLOCK_IQ3_XXS = 26,
    QDNN_BLOCK_IQ3_S = 27
} qdnnBlockFormat_t;

/* The range that zero points are computed from. */
typedef enum {
    QDNN_RANGE_WITH_ZERO = 0, /* the range is extended to contain 0; the zero point is an integer */
    QDNN_RANGE_TIGHT = 1      /* minimum to maximum; only for zeros of a float type */
} qdnnRange_t;

/* How the exponent of an E8M0 scale follows from the largest magnitude in its block. */
typedef enum {
    QDNN_MX_FLOOR = 0, /* floor(log2 absmax) - emax, as in the OCP specification */
    QDNN_MX_CEIL = 1,  /* the smallest power of two not below absmax / (largest code value) */
    QDNN_MX_EVEN = 2   /* absmax rounded to the codes' mantissa first, ties to even; then floor */
} qdnnMxRounding_t;

/* How scales are stored. */
typedef enum {
    QDNN_SCALE_F32 = 0,
    QDNN_SCALE_F16 = 1,
    QDNN_SCALE_BF16 = 2,
    QDNN_SCALE_E4M3 = 3, /* one byte, as in NVFP4 */
    QDNN_SCALE_E8M0 = 4  /* one byte, 2^(e - 127), as in the MX formats */
} qdnnScaleType_t;

/* The meaning of a group's second number, if it has one. */
typedef enum {
    QDNN_ZERO_NONE = 0,
    QDNN_ZERO_POINT = 1,  /* (code - zero) * scale */
    QDNN_ZERO_MINIMUM = 2 /* code * scale + minimum */
} qdnnZeroKind_t;

/* How codes are arranged in memory. */
typedef enum {
    QDNN_LAYOUT_BYTES = 0,             /* densely over the flat tensor, low bits first */
    QDNN_LAYOUT_WORDS_INTERLEAVED = 1, /* tensor [K, N]: a column is a stream of u32 words, word w of column n
                                          at [w * N + n]; 8 4-bit codes along K per word (also GPTQ) */
    QDNN_LAYOUT_WORDS_ROWS = 2,        /* each row is a stream of u32 words; what pads the last
                                          one is written as 0 and never read */
    QDNN_LAYOUT_BLOCK = 3,             /* tensor [K, N]: as BYTES, with groups down columns */
    QDNN_LAYOUT_AWQ = 4                /* tensor [K, N]: word c of row k has columns 8c + 0 2 4 6 1 3 5 7 */
} qdnnLayout_t;

/* How scales are arranged in memory. */
typedef enum {
    QDNN_SWIZZLE_NONE = 0,
    QDNN_SWIZZLE_128X4 = 1 /* tiles of 128 rows by 4 scales, as block-scaled tensor cores expect them */
} qdnnScaleSwizzle_t;

/* Which of two neighbouring elements has the low four bits of their byte. */
typedef enum {
    QDNN_NIBBLE_LOW_FIRST = 0, /* even element in bits 3:0 */
    QDNN_NIBBLE_HIGH_FIRST = 1 /* even element in bits 7:4, as bitsandbytes packs them */
} qdnnNibbleOrder_t;

/* Rounding when x / scale is half way between two integers. */
typedef enum {
    QDNN_ROUND_TIES_TO_EVEN = 0, /* the default */
    QDNN_ROUND_TIES_AWAY = 1
} qdnnRounding_t;

/* How x / scale is computed: one correctly rounded division, or a product with the rounded reciprocal. */
typedef enum {
    QDNN_DIVIDE_EXACT = 0, /* the default */
    QDNN_DIVIDE_RECIPROCAL = 1
} qdnnDivision_t;

/* Training: where the scale of fake quantization comes from. */
typedef enum {
    QDNN_SCALE_MODE_BATCH = 0, /* computed from x each time */
    QDNN_SCALE_MODE_EMA = 1,   /* an exponential moving average of the batches' scales, kept in STATE */
    QDNN_SCALE_MODE_FIXED = 2  /* STATE, left unchanged */
} qdnnScaleMode_t;

/* Training: the gradient of fake quantization. */
typedef enum {
    QDNN_BACKWARD_CLIPPED = 0,  /* dy, but 0 where the forward pass clamped */
    QDNN_BACKWARD_IDENTITY = 1, /* dy */
    QDNN_BACKWARD_TANH = 2,     /* dy (1 - tanh(x / scale)^2) */
    QDNN_BACKWARD_HARD_TANH = 3 /* dy times a weight: 1 at x = 0, falling to 0 at the ends of the range */
} qdnnBackward_t;

/* Products: applied to a sum after alpha and bias. docs/numerics.md defines each as a sequence of f32
 * operations. */
typedef enum {
    QDNN_ACTIVATION_NONE = 0,
    QDNN_ACTIVATION_RELU = 1,
    QDNN_ACTIVATION_GELU_TANH = 2,
    QDNN_ACTIVATION_GELU_ERF = 3,
    QDNN_ACTIVATION_SILU = 4,
    /* of operations on rows only (pointwise.h): */
    QDNN_ACTIVATION_TANH = 5,
    QDNN_ACTIVATION_SIGMOID = 6,
    QDNN_ACTIVATION_RELU_SQUARED = 7,
    QDNN_ACTIVATION_SOFTCAP = 8,     /* cap * tanh(x / cap) */
    QDNN_ACTIVATION_CLAMPED_SILU = 9 /* gated: both inputs are clamped, and 1 is added to the second */
} qdnnActivation_t;

/* Products: the factor of each sum. */
typedef enum {
    QDNN_ALPHA_NONE = 0,
    QDNN_ALPHA_NUMBER = 1, /* a constant in the descriptor */
    QDNN_ALPHA_ONE = 2,    /* one f32 on the device */
    QDNN_ALPHA_COLUMN = 3  /* one f32 per column, on the device */
} qdnnAlpha_t;

/* Routing: how logits become scores. */
typedef enum {
    QDNN_SCORES_SOFTMAX = 0, /* the default */
    QDNN_SCORES_SIGMOID = 1
} qdnnScores_t;

/* Routing: the score of a group of experts. */
typedef enum {
    QDNN_GROUP_SCORE_LARGEST = 0,    /* the default: the largest score in it */
    QDNN_GROUP_SCORE_TWO_LARGEST = 1 /* the sum of the two largest */
} qdnnGroupScore_t;

/* The buffers that operations read and write. */
typedef enum {
    QDNN_OPERAND_X = 0,     /* plain input tensor */
    QDNN_OPERAND_Y = 1,     /* plain output tensor */
    QDNN_OPERAND_CODES = 2, /* packed codes, or blocks */
    QDNN_OPERAND_SCALE = 3,
    QDNN_OPERAND_ZERO = 4,          /* zero points or minima */
    QDNN_OPERAND_GLOBAL_SCALE = 5,  /* one f32 */
    QDNN_OPERAND_GROUP_INDEX = 6,   /* i32 [K]: the group of each k */
    QDNN_OPERAND_NESTED_MAP = 7,    /* f32 [256]: the values of the bytes of nested scales */
    QDNN_OPERAND_NESTED_SCALE = 8,  /* f32, one per 256 scales */
    QDNN_OPERAND_NESTED_OFFSET = 9, /* one f32 */
    QDNN_OPERAND_DY = 10,           /* training: the gradient of y */
    QDNN_OPERAND_DX = 11,           /* training: the gradient of x */
    QDNN_OPERAND_STATE = 12,        /* training: f32, scales kept from one call to the next */
    QDNN_OPERAND_DSCALE = 13,       /* training: f32, the gradients of the scales */
    QDNN_OPERAND_REPACKED = 14,     /* the codes that repacking writes */
    QDNN_OPERAND_ROW_INDEX = 15,    /* i32: the row to dequantize, for each row of the result */
    QDNN_OPERAND_ALPHA = 16,        /* products: f32, one in all or one per column */
    QDNN_OPERAND_BIAS = 17,         /* products: [N] */
    QDNN_OPERAND_RESIDUAL = 18,     /* products: shape and type of y */
    QDNN_OPERAND_EXPERT_INDEX = 19, /* grouped products: i32 [M], the expert of each row of y */
    QDNN_OPERAND_ROW_WEIGHT = 20,   /* grouped products: f32 [M], the factor of each row of the result */
    QDNN_OPERAND_LORA_A = 21,       /* products: [K, rank], plain */
    QDNN_OPERAND_LORA_B = 22,       /* products: [rank, N], plain */
    QDNN_OPERAND_X_SCALE = 23,      /* products of codes: f32 [M], one scale per row of x */
    QDNN_OPERAND_MULTIPLIER = 24,   /* integer products: f32 [N], the factor of a sum before rounding */
    QDNN_OPERAND_TOP_INDEX = 25,    /* integer products: the indices of the largest scores, i32 or f32 */
    QDNN_OPERAND_B = 26,            /* operations on rows: the second input tensor */
    QDNN_OPERAND_WEIGHT = 27,       /* norms: one factor per column */
    QDNN_OPERAND_SUM = 28,          /* norms: the sum of x and the residual, which is written */
    QDNN_OPERAND_POSITION = 29,     /* i32, the position of each token */
    QDNN_OPERAND_COS = 30,          /* rope: f32 [positions, pairs] */
    QDNN_OPERAND_SIN = 31,          /* rope: f32 [positions, pairs] */
    /* 32 to 35 are reserved */
    QDNN_OPERAND_KEYS = 36, /* KV caches: plain elements, codes or blocks */
    QDNN_OPERAND_VALUES = 37,
    QDNN_OPERAND_KEY_SCALE = 38,
    QDNN_OPERAND_VALUE_SCALE = 39,
    QDNN_OPERAND_KEY_ZERO = 40,
    QDNN_OPERAND_VALUE_ZERO = 41,
    QDNN_OPERAND_PAGE_TABLE = 42, /* KV caches: i32 [sequences, pages of each], numbers of pages */
    QDNN_OPERAND_SEQUENCE = 43,   /* KV caches: i32, the sequence of each token, or its bounds */
    QDNN_OPERAND_MASK = 44,       /* attention and softmax: added to the scores */
    QDNN_OPERAND_SLOPE = 45,      /* attention and softmax: f32, the factor of the mask, by head */
    QDNN_OPERAND_SINK = 46,       /* attention and softmax: f32, one more score, by head */
    QDNN_OPERAND_VISIBLE = 47,    /* attention: i32, the first and last key that a token sees */
    QDNN_OPERAND_KEY_INDEX = 48,  /* KV caches: i32, the index of each token among the keys of its sequence */
    QDNN_OPERAND_SEQUENCE_LENGTH = 49, /* attention: i32, the number of keys of each sequence */
    QDNN_OPERAND_LOGITS = 50,
    QDNN_OPERAND_INDEX = 51,       /* i32: the rows, columns or experts that are chosen */
    QDNN_OPERAND_WEIGHT_OUT = 52,  /* routing: f32, the weight of each chosen expert */
    QDNN_OPERAND_SEED = 53,        /* sampling: u64, by row */
    QDNN_OPERAND_STEP = 54,        /* sampling: u64, by row */
    QDNN_OPERAND_TOKEN_COUNT = 55, /* sampling: i32, how often a row has had each token */
    QDNN_OPERAND_SAMPLING = 56,    /* sampling: f32, the settings of each row */
    QDNN_OPERAND_EXPERT_BIAS = 57, /* routing: f32, by expert, added where experts are chosen */
    QDNN_OPERAND_COUNTERS = 58,    /* u32: 0 before the first execute; each execute leaves them 0 */
    /* 59 to 63 are reserved */
    QDNN_OPERAND_COUNT = 64
} qdnnOperand_t;

#ifdef __cplusplus
}
#endif
#endif
