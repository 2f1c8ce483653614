/* Attention over a KV cache: y = softmax(scores of q with the keys) times the values. docs/numerics.md ("Attention") has the
 * formulas.
 *
 * A plan computes all heads of `tokens` queries, whichever sequences they belong to: one token of each of many sequences
 * (decode), a prompt or a part of one (prefill), or both at once. Keys and values are read from the cache as it is when the
 * plan runs, so those of the queries' own tokens must be there already (qdnnCreateRopePlan writes them). Numbers of keys are
 * read from device memory: a plan, or a graph that it was captured into, serves sequences of any length.
 *
 * A query's bits depend on its own keys alone: not on the other queries, their number or order, on pages, or on how the work is
 * divided. */
#ifndef QDNN_ATTENTION_H
#define QDNN_ATTENTION_H

#include <qdnn/cache.h>
#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    QDNN_ATTENTION_AUTO =
        0, /* TENSOR for queries in f16 or bf16 where the SM has tensor cores for them, else EXACT; EXACT
                                everywhere if the handle asks for it (qdnnSetMath). No size has a say */
    QDNN_ATTENTION_EXACT = 1, /* f32, in an order of its own: the same bits on every GPU */
    QDNN_ATTENTION_TENSOR =
        2 /* on tensor cores, for queries in f16 or bf16: the same bits on GPUs of one family */
} qdnnAttentionMode_t;

/* Which keys of its sequence a query sees. Keys are numbered from 0. */
typedef enum {
    QDNN_SEES_KEY_INDEX =
        0, /* keys 0 to KEY_INDEX (i32 [tokens]): causal, where that is the index of its own key */
    QDNN_SEES_LENGTH = 1, /* all keys of its sequence: SEQUENCE_LENGTH, i32 [sequences], is their number */
    QDNN_SEES_RANGE = 2,  /* VISIBLE: i32 [tokens, 2], the first and the last key; none if last < first */
    QDNN_SEES_ALL = 3     /* every key that the cache has room for in a sequence */
} qdnnAttentionSees_t;

/* What is added to the scores. */
typedef enum {
    QDNN_BIAS_NONE = 0,
    QDNN_BIAS_MASK = 1,        /* MASK */
    QDNN_BIAS_SLOPED_MASK = 2, /* SLOPE * MASK; SLOPE is f32 [heads] */
    QDNN_BIAS_ALIBI = 3        /* SLOPE * (number of the key - that of the last key which the query sees) */
} qdnnAttentionBias_t;

/* Set `size`, and 0 for what is not wanted. */
typedef struct {
    size_t size; /* sizeof(qdnnAttention_t) */
    qdnnAttentionMode_t mode;
    float scale; /* factor of the scores; 0: 1 / sqrt(head size), rounded to f32 */
    float cap;   /* scores become cap * tanh(score / cap) */

    qdnnAttentionSees_t sees;
    int64_t window;  /* of these, the last so many; 0: all */
    int oneSequence; /* 1: all tokens are of sequence 0; 0: SEQUENCE, i32 [tokens], has theirs */
    int sinks;       /* 1: SINK, f32 [heads], is one more score of each head, with a value of 0 */

    qdnnAttentionBias_t bias;
    qdnnDataType_t maskType; /* of MASK: F32, F16, BF16. A key whose mask is -infinity does not exist */
    int64_t maskKeys;        /* columns of MASK; keys beyond them do not exist */
    int maskHeads;           /* 1: each head has a mask of its own; 0: it is the same for all */
    /* In elements; 0: those of packed [heads, tokens, maskKeys] */
    int64_t maskTokenStride, maskHeadStride;

    int64_t
        valueSize; /* without a cache of values: values are the first so many elements of the keys (MLA) */
    int counters;  /* 1: COUNTERS is bound; then decoding takes one launch, also where keys are divided */
} qdnnAttention_t;

/* Few queries over a large cache are divided among more thread blocks, which takes a workspace, and a second launch that joins what
 * they have found. With counters, the last block to finish joins it instead, as long as there are fewer than 16 tokens. The
 * counters have to be 0 before the first execute that uses them, and each execute leaves them 0; whatever plan it is of, in any
 * order. Executes that may run at the same time (on two streams, or in branches of a graph) need counters of their own, as they
 * need workspaces of their own. The bits are the same either way.
 *
 * Plans attention. A row of a program is a token. Operands:
 *   X                         the queries, read
 *   KEYS, VALUES              read; of a quantized cache with scales, KEY_SCALE and VALUE_SCALE too
 *   PAGE_TABLE                read, of a paged cache
 *   SEQUENCE                  unless oneSequence is set. A token of a sequence that does not exist (-1, for example) sees no keys
 *   KEY_INDEX, SEQUENCE_LENGTH or VISIBLE, as `sees` says
 *   MASK, SLOPE, SINK         read, if they are used
 *   COUNTERS                  if attention->counters is set: u32 [tokens, heads of x], read and written. Need not be bound where keys
 *                             are not divided
 *   Y                         written. A query that sees no keys gets 0
 * The plan's info says which mode was chosen.
 *   handle
 *   attention
 *   x        [tokens, heads, head size]: f32, f16 or bf16; f16 or bf16 (from sm_80 on) in mode TENSOR. Up to 576 elements in a head. Only the first
 *            dimension may have a stride that is not packed, so x may be a part of wider rows
 *   keys     the head size is that of x; the heads of x are a multiple of those of the cache: neighbouring ones share a head
 *   values   heads of up to 512 elements. Pages, heads and quantization are those of the keys; strides and head size may
 *            differ. Null: attention->valueSize is used
 *   y        [tokens, heads, value size]: f32, f16, bf16; strides as those of x
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle. It may be executed with fewer rows: fewer tokens
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_OUT_OF_BOUND for a member of `attention`, `keys` or `values` that is invalid;
 * _NOT_SUPPORTED for mode TENSOR where x or the SM does not allow it;
 * _BAD_PARAM_SHAPE_MISMATCH for head sizes, heads or tokens that do not fit. */
QDNN_API qdnnStatus_t qdnnCreateAttentionPlan(qdnnHandle_t handle, const qdnnAttention_t *attention,
                                              qdnnTensorDescriptor_t x, const qdnnKvCache_t *keys,
                                              const qdnnKvCache_t *values, qdnnTensorDescriptor_t y,
                                              qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
