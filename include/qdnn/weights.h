/* Public weight formats: a name sets a whole quantization descriptor. docs/formats.md describes the bytes of
 * each format. */
#ifndef QDNN_WEIGHTS_H
#define QDNN_WEIGHTS_H

#include <qdnn/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

/* K is the reduction (input) dimension, N the output dimension, g the group size. The numbers never
 * change. */
typedef enum {
    QDNN_WEIGHTS_F32 = 0, /* plain numbers, [K, N] or [N, K] */
    QDNN_WEIGHTS_F16 = 1,
    QDNN_WEIGHTS_BF16 = 2,
    QDNN_WEIGHTS_INT4_BYTES = 3,    /* (code - 8) * scale, two codes per byte, flat groups */
    QDNN_WEIGHTS_INT4_BYTES_ZP = 4, /* (code - zero) * scale, zeros u8 */
    QDNN_WEIGHTS_INT4_LINEAR = 5,   /* linear_4bit: [K, N] in interleaved words, the value is the code */
    /* linear_4bit_affine_grouped: the same words, f32 scales and u32 zeros [K/g, N] */
    QDNN_WEIGHTS_INT4_AFFINE = 6,
    QDNN_WEIGHTS_INT4_ROWS = 7,     /* rows of words, two's complement, one scale per row */
    QDNN_WEIGHTS_INT4_BLOCK = 8,    /* [K, N] nibbles, code * scale, scales [K/g, N] */
    QDNN_WEIGHTS_INT4_BLOCK_ZP = 9, /* the same with zeros f32 [K/g, N] */
    QDNN_WEIGHTS_INT8_BLOCK = 10,   /* [K, N] bytes, scales and zeros f32 [K/g, N] */
    QDNN_WEIGHTS_NF4_BYTES = 11,    /* NF4, low nibble first, flat groups */
    QDNN_WEIGHTS_FP8_E4M3 = 12,     /* one f32 scale per tensor */
    QDNN_WEIGHTS_FP8_E5M2 = 13,
    QDNN_WEIGHTS_FP8_E4M3_COLUMNS = 14, /* [K, N], one f32 scale per column */
    QDNN_WEIGHTS_FP8_E5M2_COLUMNS = 15,
    QDNN_WEIGHTS_FP8_E4M3_128X128 = 16, /* one f32 scale per 128 x 128 block */
    QDNN_WEIGHTS_FP8_E5M2_128X128 = 17,
    QDNN_WEIGHTS_NVFP4 = 18, /* [K, N] nibbles, E4M3 scales [K/16, N], one f32 global scale */
    /* GPTQ files of version 1, which store zeros minus one. For files with g_idx, set
     * QDNN_QUANT_GROUP_INDEX */
    QDNN_WEIGHTS_GPTQ_2BIT = 19,
    QDNN_WEIGHTS_GPTQ_3BIT = 20,
    QDNN_WEIGHTS_GPTQ_4BIT = 21,
    QDNN_WEIGHTS_GPTQ_8BIT = 22,
    QDNN_WEIGHTS_GPTQ_V2_2BIT = 23, /* GPTQ files of version 2 ("gptq_v2") */
    QDNN_WEIGHTS_GPTQ_V2_3BIT = 24,
    QDNN_WEIGHTS_GPTQ_V2_4BIT = 25,
    QDNN_WEIGHTS_GPTQ_V2_8BIT = 26,
    QDNN_WEIGHTS_AWQ = 27,     /* AWQ's GEMM layout */
    QDNN_WEIGHTS_BNB_NF4 = 28, /* bitsandbytes: high nibble first, absmax f32 */
    QDNN_WEIGHTS_BNB_FP4 = 29,
    QDNN_WEIGHTS_BNB_NF4_NESTED = 30, /* absmax is bytes, decoded by a table */
    QDNN_WEIGHTS_BNB_FP4_NESTED = 31,
    QDNN_WEIGHTS_MODELOPT_NVFP4 = 32, /* [N, K/2], weight_scale [N, K/16], weight_scale_2 */
    /* pack-quantized: rows of words, offset codes, bf16 scales [N, K/g] */
    QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT = 33,
    QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT_ZP = 34, /* with packed zeros */
    QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT = 35,
    QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT_ZP = 36,
    QDNN_WEIGHTS_COMPRESSED_TENSORS_NVFP4 = 37, /* as ModelOpt, the global scale stored as its reciprocal */
    QDNN_WEIGHTS_GPT_OSS_MXFP4 = 38,            /* _blocks and _scales: MXFP4 with E * N rows */
    QDNN_WEIGHTS_MXFP4 = 39,                    /* [N, K], E8M0 scales [N, K/32] */
    QDNN_WEIGHTS_MXFP6_E2M3 = 40,
    QDNN_WEIGHTS_MXFP6_E3M2 = 41,
    QDNN_WEIGHTS_MXFP8_E4M3 = 42,
    QDNN_WEIGHTS_MXFP8_E5M2 = 43,
    QDNN_WEIGHTS_GGUF_Q4_0 = 44, /* blocks of GGUF files: [N, K], blocks along K */
    QDNN_WEIGHTS_GGUF_Q4_1 = 45,
    QDNN_WEIGHTS_GGUF_Q5_0 = 46,
    QDNN_WEIGHTS_GGUF_Q5_1 = 47,
    QDNN_WEIGHTS_GGUF_Q8_0 = 48,
    QDNN_WEIGHTS_GGUF_Q8_1 = 49,
    QDNN_WEIGHTS_GGUF_Q2_K = 50,
    QDNN_WEIGHTS_GGUF_Q3_K = 51,
    QDNN_WEIGHTS_GGUF_Q4_K = 52,
    QDNN_WEIGHTS_GGUF_Q5_K = 53,
    QDNN_WEIGHTS_GGUF_Q6_K = 54,
    QDNN_WEIGHTS_GGUF_Q8_K = 55,
    QDNN_WEIGHTS_GGUF_IQ4_NL = 56,
    QDNN_WEIGHTS_GGUF_IQ4_XS = 57,
    QDNN_WEIGHTS_GGUF_TQ1_0 = 58,
    QDNN_WEIGHTS_GGUF_TQ2_0 = 59,
    QDNN_WEIGHTS_GGUF_MXFP4 = 60,
    QDNN_WEIGHTS_GGUF_NVFP4 = 61,
    QDNN_WEIGHTS_GGUF_Q1_0 = 62,
    QDNN_WEIGHTS_GGUF_Q2_0 = 63,
    QDNN_WEIGHTS_GGUF_IQ1_S = 64,
    QDNN_WEIGHTS_GGUF_IQ1_M = 65,
    QDNN_WEIGHTS_GGUF_IQ2_XXS = 66,
    QDNN_WEIGHTS_GGUF_IQ2_XS = 67,
    QDNN_WEIGHTS_GGUF_IQ2_S = 68,
    QDNN_WEIGHTS_GGUF_IQ3_XXS = 69,
    QDNN_WEIGHTS_GGUF_IQ3_S = 70,
    QDNN_WEIGHTS_COUNT = 71
} qdnnWeights_t;

/* Sets a descriptor to a public format, and attributes that the format leaves open to their defaults. Where a
 * file differs (the type of its scales, a g_idx, swizzled scales), call qdnnSetQuantAttribute afterwards.
 *   quant
 *   weights   the format
 *   extent    the group size; 0: the format's usual one. Formats with a fixed group size accept 0 or that
 *             size; formats without groups accept only 0
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown format, or an extent that
 * it does not accept; the descriptor is then unchanged. */
QDNN_API qdnnStatus_t qdnnSetQuantWeights(qdnnQuantDescriptor_t quant, qdnnWeights_t weights, int64_t extent);

/* The printed name, "gguf_q4_k"; "unknown" for any other number. Thread-safe. */
QDNN_API const char *qdnnGetWeightsName(qdnnWeights_t weights);

#ifdef __cplusplus
}
#endif
#endif
