/* The types that all parts of qdnn share: statuses, data types and the choices that define a quantization.
 *
 * Numbers in this file are frozen: they are stored in files and passed across the ABI. */
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

/* The thousands tell the kind of failure, and so what a caller can do about it. */
typedef enum {
    QDNN_STATUS_SUCCESS = 0,

    QDNN_STATUS_BAD_PARAM = 2000, /* an argument is wrong: correct the call */
    QDNN_STATUS_BAD_PARAM_NULL_POINTER = 2001,
    QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2002,
    QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME = 2003,
    QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2004,
    QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2005, /* a buffer or workspace is too small */
    QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2006,    /* two arguments do not fit together */

    QDNN_STATUS_NOT_SUPPORTED = 3000, /* the call is right, but this device or build lacks what it needs */
    QDNN_STATUS_NOT_SUPPORTED_SM = 3001,
    QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER = 3002, /* no usable CUDA driver on this machine */
    QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE = 3003, /* a driver, but no device, or not that one */
    QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD = 3004,
    QDNN_STATUS_NOT_SUPPORTED_LIBRARY_MISSING =
        3005, /* a library that is opened at run time: cuBLAS, NVRTC */

    QDNN_STATUS_INTERNAL_ERROR = 4000,                   /* a defect or an exhausted resource */
    QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED = 4001, /* the host's memory */
    QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED = 4002,
    QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4003, /* the device's memory */

    QDNN_STATUS_EXECUTION_FAILED = 5000,       /* the device refused or failed */
    QDNN_STATUS_EXECUTION_FAILED_STICKY = 5001 /* and its context is lost: every later call in it fails */
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

/* Which elements share a scale (and a zero). */
typedef enum {
    QDNN_GRANULARITY_TENSOR = 0,  /* all of them */
    QDNN_GRANULARITY_CHANNEL = 1, /* those with the same index along an axis */
    QDNN_GRANULARITY_GROUP = 2,   /* groupSize neighbours; qdnnGroups_t says in which direction */
    QDNN_GRANULARITY_NONE = 3     /* there are no scales: every scale is 1 */
} qdnnGranularity_t;

/* Which way groups run. A tensor is a matrix here: its last dimension is the columns, all others together are
 * the rows. */
typedef enum {
    QDNN_GROUPS_DEFAULT = 0, /* as the layout has it: BYTES flat, WORDS_ROWS along rows, the others down columns */
    QDNN_GROUPS_FLAT = 1,    /* over the whole tensor, from row to row */
    QDNN_GROUPS_ROWS = 2,    /* along a row, anew in each: weights [N, K] */
    QDNN_GROUPS_COLUMNS = 3  /* down a column: weights [K, N] */
} qdnnGroups_t;

/* The order of the scales of groups along rows or down columns. */
typedef enum {
    QDNN_SCALE_ORDER_DEFAULT = 0, /* ROWS: [rows, groups]; COLUMNS: [groups, columns] */
    QDNN_SCALE_ORDER_TRANSPOSED = 1
} qdnnScaleOrder_t;

/* How the bits of a code become a number. */
typedef enum {
    QDNN_CODE_DEFAULT = 0, /* as the storage has it: docs/formats.md has the table */
    QDNN_CODE_OFFSET = 1,  /* an integer plus 2^(bits - 1) */
    QDNN_CODE_UNSIGNED = 2,
    QDNN_CODE_TWOS_COMPLEMENT = 3,
    QDNN_CODE_FP4_BNB = 4, /* storage FP4: the table of bitsandbytes instead of E2M1 */
    QDNN_CODE_E2M3 = 5,    /* storage U8 with 6 bits */
    QDNN_CODE_E3M2 = 6     /* storage U8 with 6 bits */
} qdnnCodeKind_t;

/* Blocks that hold codes and scales together, as GGUF files have them. */
typedef enum {
    QDNN_BLOCK_NONE = 0, /* codes, scales and zeros are arrays of their own */
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
    QDNN_BLOCK_NVFP4 = 18
} qdnnBlockFormat_t;

/* What zero points are computed from. */
typedef enum {
    QDNN_RANGE_WITH_ZERO = 0, /* 0 lies in the range, and the zero is an integer */
    QDNN_RANGE_TIGHT = 1      /* least to largest value; zeros of float type alone */
} qdnnRange_t;

/* How the exponent of an E8M0 scale is made from the largest magnitude of its block. */
typedef enum {
    QDNN_MX_FLOOR = 0, /* floor(log2 absmax) - emax, as OCP writes */
    QDNN_MX_CEIL = 1,  /* the least power of two that is not below absmax / (largest value of the codes) */
    QDNN_MX_EVEN = 2   /* absmax rounded to the codes' mantissa first, ties to even; then floor */
} qdnnMxRounding_t;

/* How scales are stored. */
typedef enum {
    QDNN_SCALE_F32 = 0,
    QDNN_SCALE_F16 = 1,
    QDNN_SCALE_BF16 = 2,
    QDNN_SCALE_E4M3 = 3, /* one byte, as NVFP4 has it */
    QDNN_SCALE_E8M0 = 4  /* one byte, 2^(e - 127), as the MX formats have it */
} qdnnScaleType_t;

/* What the second number of a group means, if there is one. */
typedef enum {
    QDNN_ZERO_NONE = 0,
    QDNN_ZERO_POINT = 1,  /* (code - zero) * scale */
    QDNN_ZERO_MINIMUM = 2 /* code * scale + minimum */
} qdnnZeroKind_t;

/* How codes lie in memory. */
typedef enum {
    QDNN_LAYOUT_BYTES = 0,             /* densely over the flat tensor, low bits first */
    QDNN_LAYOUT_WORDS_INTERLEAVED = 1, /* tensor [K, N]: a column is a stream of u32 words, word w of column n
                                          at [w * N + n]; 8 codes of 4 bits along K to a word (GPTQ too) */
    QDNN_LAYOUT_WORDS_ROWS = 2,        /* each row a stream of u32 words, the last one padded with 0 */
    QDNN_LAYOUT_BLOCK = 3, /* tensor [K, N]: as BYTES, with groups down columns */
    QDNN_LAYOUT_AWQ = 4    /* tensor [K, N]: word c of row k has columns 8c + 0 2 4 6 1 3 5 7 */
} qdnnLayout_t;

/* Where scales lie. */
typedef enum {
    QDNN_SWIZZLE_NONE = 0,
    QDNN_SWIZZLE_128X4 = 1 /* tiles of 128 rows by 4 scales, as block-scaled tensor cores take them */
} qdnnScaleSwizzle_t;

/* Which of two neighbouring elements has the low four bits of their byte. */
typedef enum {
    QDNN_NIBBLE_LOW_FIRST = 0, /* even element in bits 3:0 */
    QDNN_NIBBLE_HIGH_FIRST = 1 /* even element in bits 7:4, as bitsandbytes packs */
} qdnnNibbleOrder_t;

/* How x / scale is rounded where it lies half way between two integers. */
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
    QDNN_SCALE_MODE_EMA = 1,   /* an exponential moving average of those, kept in a state */
    QDNN_SCALE_MODE_FIXED = 2  /* the state, as it is */
} qdnnScaleMode_t;

/* Training: what the gradient of fake quantization is taken to be. */
typedef enum {
    QDNN_BACKWARD_CLIPPED = 0,  /* dy, and 0 where the forward clamped */
    QDNN_BACKWARD_IDENTITY = 1, /* dy */
    QDNN_BACKWARD_TANH = 2,     /* dy (1 - tanh(x / scale)^2) */
    QDNN_BACKWARD_HARD_TANH = 3 /* dy times 1 at 0, falling to 0 at the ends of the range */
} qdnnBackward_t;

/* Products: what is done to a sum once alpha and bias are in. Each is a written sequence of f32 operations. */
typedef enum {
    QDNN_ACTIVATION_NONE = 0,
    QDNN_ACTIVATION_RELU = 1,
    QDNN_ACTIVATION_GELU_TANH = 2,
    QDNN_ACTIVATION_GELU_ERF = 3,
    QDNN_ACTIVATION_SILU = 4
} qdnnActivation_t;

/* Products: what a sum is multiplied by. */
typedef enum {
    QDNN_ALPHA_NONE = 0,
    QDNN_ALPHA_NUMBER = 1, /* a number of the descriptor */
    QDNN_ALPHA_ONE = 2,    /* one f32 on the device */
    QDNN_ALPHA_COLUMN = 3  /* an f32 for each column, on the device */
} qdnnAlpha_t;

/* The buffers of operations. */
typedef enum {
    QDNN_OPERAND_X = 0,     /* plain input tensor */
    QDNN_OPERAND_Y = 1,     /* plain output tensor */
    QDNN_OPERAND_CODES = 2, /* packed codes, or blocks */
    QDNN_OPERAND_SCALE = 3,
    QDNN_OPERAND_ZERO = 4,         /* zero points or minima */
    QDNN_OPERAND_GLOBAL_SCALE = 5, /* one f32 */
    QDNN_OPERAND_GROUP_INDEX = 6,  /* i32 [K]: the group of each k */
    QDNN_OPERAND_NESTED_MAP = 7,   /* f32 [256]: what the bytes of nested scales stand for */
    QDNN_OPERAND_NESTED_SCALE = 8, /* f32, one for every 256 scales */
    QDNN_OPERAND_NESTED_OFFSET = 9, /* one f32 */
    QDNN_OPERAND_DY = 10,           /* training: the gradient of y */
    QDNN_OPERAND_DX = 11,           /* that of x */
    QDNN_OPERAND_STATE = 12,        /* training: f32, scales that are kept from one call to the next */
    QDNN_OPERAND_DSCALE = 13,       /* f32, the gradients of scales */
    QDNN_OPERAND_REPACKED = 14,     /* codes, as repacking writes them */
    QDNN_OPERAND_ROW_INDEX = 15,    /* i32: which rows are dequantized, one for each row of the result */
    QDNN_OPERAND_ALPHA = 16,        /* products: f32, one number or one for each column */
    QDNN_OPERAND_BIAS = 17,         /* products: [N] */
    QDNN_OPERAND_RESIDUAL = 18,     /* products: as y */
    QDNN_OPERAND_EXPERT_INDEX = 19, /* grouped products: i32 [M], the expert of each row of x */
    QDNN_OPERAND_ROW_WEIGHT = 20,   /* grouped products: f32 [M], what each row of the result is multiplied by */
    QDNN_OPERAND_LORA_A = 21,       /* products: [K, rank], plain */
    QDNN_OPERAND_LORA_B = 22,       /* products: [rank, N], plain */
    QDNN_OPERAND_X_SCALE = 23,      /* products of codes: f32 [M], a scale for each row of x */
    QDNN_OPERAND_MULTIPLIER = 24,   /* integer products: f32 [N], what a sum is multiplied by before it becomes a code */
    QDNN_OPERAND_TOP_INDEX = 25,    /* integer products: the places of the largest scores, i32 or f32 */
    QDNN_OPERAND_COUNT = 26
} qdnnOperand_t;

#ifdef __cplusplus
}
#endif
#endif
