/* Softmax, the largest of each row, routing and combining, sampling: what chooses among the numbers of a row. docs/numerics.md, "Selection
 * and copies", defines them to the bit.
 *
 * Tensors are f32, f16 or bf16, packed; their last dimension is a row, the others together are the rows. A row's
 * bits do not depend on the other rows. Plans are executed by qdnnExecute with the operands listed at each, or by
 * qdnnExecuteRows with the first rows only. Few long rows are divided among several blocks; that takes a workspace. */
#ifndef QDNN_SELECT_H
#define QDNN_SELECT_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnSelectDescriptor *qdnnSelectDescriptor_t;

/* The attributes of a descriptor and their defaults. The numbers never change. */
typedef enum {
    QDNN_SELECT_TOP = 0,       /* how many: top-k 1 to 1024; route and combine, experts of a token, 1 to 32; default 1 */
    QDNN_SELECT_GREEDY = 1,    /* sample. 1: always the largest, without SAMPLING, SEED and STEP; default 0 */
    QDNN_SELECT_COUNTS = 2,    /* sample. 1: TOKEN_COUNT is read, and penalties apply; default 0 */
    QDNN_SELECT_MASK = 3,      /* softmax: qdnnDataType_t of MASK: F32, F16, BF16; 0, the default: none */
    QDNN_SELECT_MASK_ROWS = 4, /* softmax: rows of MASK, which repeat; default 0: as many as x has */
    QDNN_SELECT_SLOPE = 5,     /* softmax. 1: the mask is multiplied by SLOPE; default 0 */
    QDNN_SELECT_SINK = 6,      /* softmax. 1: SINK is one more score of each row; default 0 */
    QDNN_SELECT_SCORES = 7,         /* route: qdnnScores_t; default SOFTMAX */
    QDNN_SELECT_EXPERT_GROUPS = 8,  /* route: groups of neighbouring experts, 1 to 32; default 1 */
    QDNN_SELECT_KEPT_GROUPS = 9,    /* route: the best groups, to which a token's experts belong; default 1 */
    QDNN_SELECT_GROUP_SCORE = 10,   /* route: qdnnGroupScore_t; default LARGEST */
    QDNN_SELECT_EXPERT_BIAS = 11,   /* route. 1: EXPERT_BIAS is added to the scores where experts are chosen; default 0 */
    QDNN_SELECT_RENORMALIZE = 12,   /* route. 1: the weights are divided by their sum + epsilon; default 0 */
    QDNN_SELECT_RESIDUAL = 13,      /* combine. 1: RESIDUAL is added; default 0 */
    QDNN_SELECT_ATTRIBUTE_COUNT = 14
} qdnnSelectAttribute_t;

/* The settings of one row of a sample plan; SAMPLING is an array of them on the device. Values without a meaning are
 * taken as docs/numerics.md says, none is an error. */
typedef struct {
    float temperature; /* 0: the largest */
    float topP;        /* below 1: the shortest list of the largest that has this share */
    float minP;        /* above 0: tokens at least this likely, relative to the likeliest */
    int32_t topK;      /* above 0: so many of the largest, 1024 at most */
    float repetition;  /* penalties; 1, 0 and 0 are none */
    float frequency;
    float presence;
    uint32_t reserved;
} qdnnSampling_t;

/* Creates a descriptor with every value at its default.
 *   select   receives it; qdnnDestroySelectDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Thread-safe. */
QDNN_API qdnnStatus_t qdnnCreateSelectDescriptor(qdnnSelectDescriptor_t *select);

/* Sets one attribute.
 *   select
 *   attribute   one of the list above
 *   value       as in the list above
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute or an invalid
 * value; the descriptor is then unchanged. */
QDNN_API qdnnStatus_t qdnnSetSelectAttribute(qdnnSelectDescriptor_t select, qdnnSelectAttribute_t attribute,
                                             int64_t value);

/* Gets one attribute.
 *   select
 *   attribute   one of the list above
 *   value       receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute. */
QDNN_API qdnnStatus_t qdnnGetSelectAttribute(qdnnSelectDescriptor_t select, qdnnSelectAttribute_t attribute,
                                             int64_t *value);

/* Sets the factor of x in softmax. 1 by default.
 *   select
 *   scale    a finite number
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnSetSelectScale(qdnnSelectDescriptor_t select, float scale);

/* Gets the factor.
 *   select
 *   scale    receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetSelectScale(qdnnSelectDescriptor_t select, float *scale);

/* Sets what is added to the sum by which QDNN_SELECT_RENORMALIZE divides. 0 by default.
 *   select
 *   epsilon   a finite number
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnSetSelectEpsilon(qdnnSelectDescriptor_t select, float epsilon);

/* Gets it.
 *   select
 *   epsilon   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetSelectEpsilon(qdnnSelectDescriptor_t select, float *epsilon);

/* Sets the factor of route's weights. 1 by default.
 *   select
 *   factor   a finite number
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnSetSelectFactor(qdnnSelectDescriptor_t select, float factor);

/* Gets it.
 *   select
 *   factor   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetSelectFactor(qdnnSelectDescriptor_t select, float *factor);

/* Frees a descriptor. Plans created from it no longer need it.
 *   select   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroySelectDescriptor(qdnnSelectDescriptor_t select);

/* Plans softmax. Operands: X is read, Y is written; MASK ([mask rows, n]: row i of x has row i mod mask rows of it), SLOPE and
 * SINK (f32, one for each repetition of the mask, such as a head) are read if the descriptor has them.
 *   handle
 *   x        rows of up to 2^24 elements
 *   select
 *   y        the shape of x
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_SHAPE_MISMATCH also for a y of another shape, and for mask rows that do not divide
 * those of x. */
QDNN_API qdnnStatus_t qdnnCreateSoftmaxPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                            qdnnSelectDescriptor_t select, qdnnTensorDescriptor_t y,
                                            qdnnPlan_t *plan);

/* Plans the largest elements of each row. Operands: X is read, Y (of x's type) and INDEX (i32) are written, [rows, k] each.
 * Other arguments and statuses as for qdnnCreateSoftmaxPlan; _BAD_PARAM_SHAPE_MISMATCH for rows of fewer than k elements. */
QDNN_API qdnnStatus_t qdnnCreateTopKPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                         qdnnSelectDescriptor_t select, qdnnPlan_t *plan);

/* Plans the choice of k = QDNN_SELECT_TOP experts for each token, by docs/numerics.md. Operands: LOGITS is read, INDEX (i32 [rows, k]:
 * the experts, the best first) and WEIGHT_OUT (f32 [rows, k]) are written; EXPERT_BIAS (f32 [experts]) is read if the descriptor
 * has it. INDEX and WEIGHT_OUT are what grouped products take as EXPERT_INDEX, and qdnnCreateCombinePlan as ROW_WEIGHT.
 *   logits   [..., experts]; up to 1024 experts
 * Other arguments and statuses as for qdnnCreateSoftmaxPlan; _BAD_PARAM_SHAPE_MISMATCH for groups that do not divide the experts,
 * more kept groups than there are, and fewer than k experts in them. */
QDNN_API qdnnStatus_t qdnnCreateRoutePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t logits,
                                          qdnnSelectDescriptor_t select, qdnnPlan_t *plan);

/* Plans the sum of what the k = QDNN_SELECT_TOP experts of each token gave: y[t] = ((p0 * x[t, 0]) + (p1 * x[t, 1])) + ... + residual[t],
 * rounded once. Operands: X ([tokens, k, n]), ROW_WEIGHT (f32 [tokens, k]) and RESIDUAL (like y, and may be y itself) are
 * read, Y is written.
 *   handle
 *   x        [..., n], k rows for each of y
 *   select
 *   y        [..., n]
 *   plan     receives it
 * Statuses as for qdnnCreateSoftmaxPlan; _BAD_PARAM_SHAPE_MISMATCH for an x of another size. */
QDNN_API qdnnStatus_t qdnnCreateCombinePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                            qdnnSelectDescriptor_t select, qdnnTensorDescriptor_t y,
                                            qdnnPlan_t *plan);

/* Plans the choice of a token from each row of logits. Operands: LOGITS is read, INDEX (i32 [rows]) is written. Unless the
 * descriptor says GREEDY: SAMPLING (qdnnSampling_t [rows]), SEED and STEP (u64 [rows]) are read, and with COUNTS, TOKEN_COUNT (i32
 * [rows, n]: how often each token has occurred). The same seed and step give the same random number: a sequence keeps its seed and
 * counts its steps, wherever in a batch it is.
 *   logits   rows of up to 2^22 elements
 * Other arguments and statuses as for qdnnCreateSoftmaxPlan. */
QDNN_API qdnnStatus_t qdnnCreateSamplePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t logits,
                                           qdnnSelectDescriptor_t select, qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
