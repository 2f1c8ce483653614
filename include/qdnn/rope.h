/* Rotary positions, and writing keys and values into a KV cache. docs/numerics.md ("Rope", "KV caches") has the formulas.
 *
 * One plan does what follows the product of queries, keys and values, in one kernel that reads each row once: queries are
 * rotated and written to y; keys are rotated, values are not, and both are written to their slots of the cache, quantized if it is.
 * Without a cache, all heads of x are rotated and written to y; without y, only the cache is written. */
#ifndef QDNN_ROPE_H
#define QDNN_ROPE_H

#include <qdnn/cache.h>
#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which elements of a head are rotated together. */
typedef enum {
    QDNN_ROPE_HALVES = 0,    /* i and i + rotary / 2 (llama, qwen, gpt-neox) */
    QDNN_ROPE_NEIGHBOURS = 1 /* 2i and 2i + 1 (GGUF files of llama, gpt-j) */
} qdnnRopePairs_t;

/* Which of several positions of a token a pair has (M-RoPE). */
typedef enum {
    QDNN_ROPE_ONE_POSITION = 0,
    QDNN_ROPE_CONTIGUOUS = 1, /* the first sections[0] pairs the first, the next sections[1] the second ... */
    QDNN_ROPE_INTERLEAVED =
        2 /* pair i, of n sections: number i mod n, if i < n * sections[i mod n], else the first */
} qdnnRopeSections_t;

/* Where the slots of the tokens come from. */
typedef enum {
    QDNN_KV_SLOTS_LISTED = 0, /* ROW_INDEX: i32, the slot of each token */
    QDNN_KV_SLOTS_BY_SEQUENCE =
        1 /* SEQUENCE and KEY_INDEX: i32, the sequence of each token and the number of its key
                                     there; and PAGE_TABLE, if the cache is paged */
} qdnnKvSlots_t;

/* What is rotated. Set `size`, and 0 for what does not matter. */
typedef struct {
    size_t size;       /* sizeof(qdnnRope_t) */
    int64_t rotary;    /* elements of a head that are rotated, an even number; 0: none */
    int64_t first;     /* the first of them, an even number */
    int64_t positions; /* rows of COS and SIN, with rotary / 2 elements each */
    qdnnRopePairs_t pairs;
    qdnnRopeSections_t sections;
    int64_t section
        [4]; /* M-RoPE: pairs of each section, rotary / 2 together; 2 to 4 that are not 0, the first ones */
    /* M-RoPE: 0: POSITION is [tokens, sections]; else [sections, tokens], with so many numbers from one
     * section to the next */
    int64_t sectionStride;
    qdnnKvSlots_t slots;
} qdnnRope_t;

/* Plans rope and what is written into a KV cache. A token is a row of x: the queries (heads of y), then the keys and then the
 * values of the cache. A row of a program is a token. Operands:
 *   X                         read
 *   COS, SIN                  f32 [positions, rotary / 2], read if there is something to rotate; qdnnMakeRopeTables makes them
 *   POSITION                  i32, the position of each token, likewise; one that the tables do not have gives NaN
 *   Y                         written, with y
 *   KEYS, VALUES              written, where the cache has them
 *   KEY_SCALE, VALUE_SCALE    written, of a quantized cache with scales of its own; read if its scales are static
 *   ROW_INDEX, or SEQUENCE, KEY_INDEX and, of a paged cache, PAGE_TABLE   read, with a cache. A token whose slot does not
 *                             exist (a negative number, for example) is not written into the cache. No two tokens may have the same slot
 * Arguments:
 *   handle
 *   rope
 *   x        [tokens, ...]: f32, f16 or bf16. Only the first dimension may have a stride that is not packed
 *   y        [tokens, heads, head size], f32, f16 or bf16; null: there are no queries. Keys are rounded to its type (without y: to
 *            that of x) before they are quantized, so that the cache is what rope alone, followed by quantization, would give. Heads
 *            of up to 1,024 elements
 *   keys     null: none. Otherwise their head size is that of y
 *   values   null: none. Pages and heads are those of the keys, and so is the quantization; strides and head size may differ
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle. It may be executed with fewer rows: fewer tokens
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_OUT_OF_BOUND for a member of `rope`, `keys` or `values` that is invalid;
 * _BAD_PARAM_SHAPE_MISMATCH for an x that has another number of elements than y, keys and values together. */
QDNN_API qdnnStatus_t qdnnCreateRopePlan(qdnnHandle_t handle, const qdnnRope_t *rope,
                                         qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t y,
                                         const qdnnKvCache_t *keys, const qdnnKvCache_t *values,
                                         qdnnPlan_t *plan);

/* How the frequencies of long contexts follow from the usual ones. */
typedef enum {
    QDNN_ROPE_RULE_NONE = 0,
    QDNN_ROPE_RULE_LINEAR = 1, /* all are divided by `factor` */
    QDNN_ROPE_RULE_LLAMA3 = 2, /* low ones are; with lowFactor, highFactor, originalPositions */
    QDNN_ROPE_RULE_YARN = 3    /* likewise, by their number; with betaFast, betaSlow, originalPositions */
} qdnnRopeRule_t;

/* The tables of rope. Set `size`, and 0 for what does not matter. */
typedef struct {
    size_t size;    /* sizeof(qdnnRopeTables_t) */
    int64_t rotary; /* as in qdnnRope_t: 2 to 1024 */
    double base;    /* pair i has the frequency base^(-2i / rotary): 10000, 500000 ...; at least 1 */
    const float *frequencies; /* [rotary / 2], 0 to 2; null: those of `base` */
    const float *
        divisors; /* [rotary / 2]: each frequency is divided by its own (rope_freqs of GGUF files, longrope); null: none */
    qdnnRopeRule_t rule;
    double factor;                /* of a rule: more than 0 */
    double lowFactor, highFactor; /* LLAMA3: usually 1 and 4 */
    double betaFast, betaSlow;    /* YARN: 0: 32 and 1 */
    int yarnExact;                /* YARN. 1: the ends of the ramp are not rounded to whole pairs (gpt-oss) */
    int64_t originalPositions;    /* LLAMA3, YARN: of the model before it was extended */
    float
        attentionFactor; /* cosines and sines are multiplied by it; 0: 1, and with YARN 0.1 ln(factor) + 1 */
} qdnnRopeTables_t;

/* Computes rows of the tables on the host: the same bits on every machine (docs/numerics.md, "Tables of rope").
 *   tables
 *   first       the first position
 *   positions   how many: first + positions is at most 2^29
 *   cos, sin    [positions, rotary / 2]: receive them, in host memory
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for a member or number that is out of range; cos and sin are
 * then unchanged. Thread-safe. */
QDNN_API qdnnStatus_t qdnnMakeRopeTables(const qdnnRopeTables_t *tables, int64_t first, int64_t positions,
                                         float *cos, float *sin);

#ifdef __cplusplus
}
#endif
#endif
