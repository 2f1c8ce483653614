/* Operations, as plans or as one-shot calls.
 *
 * Creating a plan does all the preparation: it checks the descriptors, emits the kernels and loads them.
 * qdnnExecute then only launches: it allocates nothing, takes no lock and looks nothing up, and so may be
 * captured into a CUDA graph. A one-shot call (at the end of this file) creates a plan, which the handle
 * caches, and executes it.
 *
 * All work is queued on the handle's stream; no call waits for it. Buffers must not overlap. To build a CUDA
 * graph, capture plans rather than one-shot calls: a graph needs its plans as long as it is launched, and the
 * handle caches only the last 64 plans of one-shot calls. */
#ifndef QDNN_PLAN_H
#define QDNN_PLAN_H

#include <qdnn/handle.h>
#include <qdnn/quant.h>
#include <qdnn/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnPlan *qdnnPlan_t;

/* Binds an operand to a buffer: a device pointer, aligned to an element. Results are bound in the same
 * way. */
typedef struct {
    qdnnOperand_t operand;
    const void *pointer;
    size_t bytes; /* size of the buffer, checked before the launch; 0: unknown */
} qdnnBinding_t;

/* Plans the computation of scales, and of zeros if the descriptor has them. Operands: X is read, SCALE (and
 * ZERO) are written.
 *   handle
 *   x        the tensor: f32, f16 or bf16, packed
 *   quant
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_SHAPE_MISMATCH for an axis beyond the rank of x;
 * _BAD_PARAM_OUT_OF_BOUND for a tensor too large for a launch; _NOT_SUPPORTED for types, layouts and
 * combinations without a kernel, and for strides that are not packed; _NOT_SUPPORTED_SM;
 * _NOT_SUPPORTED_DRIVER_TOO_OLD; _INTERNAL_ERROR_ALLOCATION_FAILED; _INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
 * _INTERNAL_ERROR_COMPILATION_FAILED if the driver rejects the kernel; _EXECUTION_FAILED, also while the
 * stream is being captured; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnCreateScalePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                          qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans quantization and packing. Operands: X and SCALE (and ZERO) are read, CODES is written. Arguments and
 * statuses as for qdnnCreateScalePlan. */
QDNN_API qdnnStatus_t qdnnCreateQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                             qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans the computation of scales and codes together, for activations whose scales are not known in advance.
 * Flat groups of a multiple of 8 elements (per token, block or head) take one kernel that reads x once,
 * others two steps. Operands: X is read (and GLOBAL_SCALE, which is an input here), CODES and SCALE (and
 * ZERO) are written. Arguments and statuses as for qdnnCreateScalePlan. */
QDNN_API qdnnStatus_t qdnnCreateDynamicQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                    qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans the quantization of the keys or values of new tokens for a KV cache, with one scale per head and
 * token: dynamic quantization in groups of the head size, in one kernel. Operands: X is read, CODES and SCALE
 * (and ZERO) are written; with a cache, ROW_INDEX is read too (i32, the slot of each token, all different; a
 * token whose slot is out of range is skipped). A paged cache has pages * (slots per page) slots. Slots that
 * receive no token keep their codes and scales. To dequantize, use qdnnCreateDequantizePlan with the cache's
 * shape, or qdnnCreateDequantizeRowsPlan with [slots, heads * head size].
 *   x       [..., heads, head size]: f32, f16, bf16 or f64; the head size is a multiple of 8. With a cache, [tokens, heads, head size]
 *           may have a larger token stride, a multiple of 8: for example the keys within rows of queries,
 *           keys and values
 *   quant   INT8, INT4, FP8 or any other format with layout BYTES, and QDNN_GRANULARITY_GROUP with the head
 *           size
 *   cache   [slots ..., heads, head size], of any type: only its dimensions and strides count. Null: codes
 *           and scales are arranged as x is. [slots, heads, head size] and [pages, slots of a page, heads,
 *           head size] may have any strides that are multiples of the head size, the last being 1: this
 *           covers pages that alternate keys and values, or heads before slots. They are the strides of the
 *           codes, in elements; scales (and zeros) are [slots ..., heads], packed
 * Other arguments and statuses as for qdnnCreateScalePlan; _BAD_PARAM_SHAPE_MISMATCH also for groups of
 * another size, and for a cache whose shape does not match. */
QDNN_API qdnnStatus_t qdnnCreateQuantizeKvCachePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                    qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t cache,
                                                    qdnnPlan_t *plan);

/* Plans unpacking and dequantization. Operands: CODES and SCALE (and ZERO) are read, Y is written.
 *   y        the tensor to write: f32, f16 or bf16, packed
 * Other arguments and statuses as for qdnnCreateScalePlan. */
QDNN_API qdnnStatus_t qdnnCreateDequantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t y,
                                               qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans dequantization to the transposed matrix: of weights in blocks (GGUF), which run along K, with the outputs side by side. In one
 * kernel; y[e, k, n] has the bits that qdnnCreateDequantizePlan gives element k of row n of matrix e. Operands: CODES is read, Y is written.
 * Weights that are not in blocks are stored as [K, N] too: see QDNN_MATMUL_TRANSPOSE_W.
 *   w        the shape of the weights: [N, K], or [experts, N, K] for a stack; its type is ignored
 *   quant
 *   y        the tensor to write: [K, N], or [experts, K, N]; f32, f16 or bf16, packed
 * CODES must begin at a multiple of the largest power of two that divides a block's size, at most 16. Other arguments and
 * statuses as for qdnnCreateScalePlan; _BAD_PARAM_SHAPE_MISMATCH also if the shape of y does not match. */
QDNN_API qdnnStatus_t qdnnCreateDequantizeTransposedPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t w,
                                                         qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                                         qdnnPlan_t *plan);

/* Plans the dequantization of selected rows, as for an embedding lookup. Operands: CODES, SCALE (and what
 * else the descriptor has) and ROW_INDEX (i32, a row of the table for each row of y) are read, Y is written.
 * An index out of range gives a row of NaN.
 *   table    the whole tensor before quantization: all dimensions but the last make its rows
 *   quant
 *   y        the tensor to write: of the table's type and number of columns, with one row per index
 * Other arguments and statuses as for qdnnCreateScalePlan; _BAD_PARAM_SHAPE_MISMATCH also if the shape of y
 * does not match. */
QDNN_API qdnnStatus_t qdnnCreateDequantizeRowsPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t table,
                                                   qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                                   qdnnPlan_t *plan);

/* Plans the quantization of rows into the rows of a table that a list names (a cache of any kind, an embedding that is updated).
 * Operands: X, ROW_INDEX and, where the descriptor has one, GLOBAL_SCALE are read, CODES and SCALE (and ZERO) are written:
 * those of the table. Row i of x is quantized by itself, as qdnnCreateDynamicQuantizePlan (blocks: qdnnCreateQuantizePlan) does,
 * and becomes row index[i] of the table; if the table does not have it, the row is left out. Other rows keep every byte. No two
 * indices may be the same.
 *   x           the new rows: all dimensions but the last make the rows
 *   quant       blocks that can be quantized; or layout BYTES and flat groups of a multiple of 8 that divide a row
 *   indexType   I32 or I64: type of ROW_INDEX
 *   table       of any type: only its dimensions count
 *   plan        receives it. It may be executed with fewer rows
 * Other arguments and statuses as for qdnnCreateScalePlan; _BAD_PARAM_SHAPE_MISMATCH also for rows of different lengths. */
QDNN_API qdnnStatus_t qdnnCreateQuantizeRowsPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                 qdnnQuantDescriptor_t quant, qdnnDataType_t indexType,
                                                 qdnnTensorDescriptor_t table, qdnnPlan_t *plan);

/* Plans the conversion of codes to another layout, nibble order or code kind; scales and zeros are not
 * touched. The codes keep their values, except between unsigned and signed codes, where values and zero
 * points differ by 2^(bits - 1). Operands: CODES is read, REPACKED is written.
 *   tensor             the plain tensor, of any type: only its dimensions count
 *   quantFrom, quantTo how codes are arranged before and after: the same storage and width
 * Other arguments and statuses as for qdnnCreateScalePlan; _NOT_SUPPORTED also for descriptors of different
 * codes. */
QDNN_API qdnnStatus_t qdnnCreateRepackPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t tensor,
                                           qdnnQuantDescriptor_t quantFrom, qdnnQuantDescriptor_t quantTo,
                                           qdnnPlan_t *plan);

/* Frees a plan; its kernels may still be running. The handle must still exist. A graph captured from the plan
 * must not be launched afterwards: its kernels may have been unloaded.
 *   plan   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyPlan(qdnnPlan_t plan);

/* Gets the size of the workspace: the device memory that an execute needs besides its operands.
 *   plan
 *   bytes   receives it; often 0
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetPlanWorkspaceSize(qdnnPlan_t plan, size_t *bytes);

/* Launches a plan on the handle's stream.
 *   handle          the one that the plan was created with
 *   plan
 *   bindings        one for each operand of the plan and no others. If there is nothing to do (a tensor
 *                   without elements) bindings may be missing, and pointers may be null
 *   count           number of bindings
 *   workspace       device memory, aligned to 16; null if none is needed
 *   workspaceBytes  at least what qdnnGetPlanWorkspaceSize says
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for a plan of another handle, and for an operand that
 * is missing, bound twice or not used by the plan; _BAD_PARAM_OUT_OF_BOUND for an unknown operand;
 * _BAD_PARAM_MISALIGNED_POINTER; _BAD_PARAM_SIZE_INSUFFICIENT for a binding's bytes or the workspace;
 * _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. Allowed while the stream is being captured.
 *
 * If QDNN_CHECK_BUFFERS=1 was set when qdnnCreate was called, the driver is asked about every pointer before
 * the first launch: host memory, unknown addresses and overlapping buffers give _BAD_PARAM, allocations that
 * end too early give _BAD_PARAM_SIZE_INSUFFICIENT. */
QDNN_API qdnnStatus_t qdnnExecute(qdnnHandle_t handle, qdnnPlan_t plan, const qdnnBinding_t *bindings,
                                  int count, void *workspace, size_t workspaceBytes);

/* Launches a plan for only the first rows of its tensors. The bits of a row are the same as in any other batch.
 * The plans of products take this, of operations on rows (pointwise.h, norm.h, rope.h), of dequantized rows, and
 * of KV caches with slots; their rows are tokens.
 *   rows   0 to those of the plan
 * Other arguments and statuses as for qdnnExecute; _BAD_PARAM if the plan does not take fewer rows,
 * _BAD_PARAM_OUT_OF_BOUND for more rows. Sizes in bindings, if given, must be those of the whole plan. */
QDNN_API qdnnStatus_t qdnnExecuteRows(qdnnHandle_t handle, qdnnPlan_t plan, int64_t rows,
                                      const qdnnBinding_t *bindings, int count, void *workspace,
                                      size_t workspaceBytes);

/* What a plan does, for display and for tools. */
typedef struct {
    size_t size; /* sizeof(qdnnPlanInfo_t): set it before the call */
    /* the most specific stable name: "quant.nf4.quantize", "quant.linear_4bit"; "quant.matmul" for a product by cuBLAS */
    const char *operation;
    int kernels;           /* launches per execute; 0 for an empty tensor */
    uint64_t blocks;       /* in all launches together */
    uint32_t blockThreads; /* of the first kernel */
    int ptxVersion;        /* of the first kernel, times ten: 63 is 6.3 */
    bool fromCache;        /* all kernels were loaded already */
    bool fromBundle;       /* some kernel came from the bundle */
    double emitSeconds;    /* spent writing PTX, or reading the bundle */
    double loadSeconds;    /* spent by the driver on loading the kernels */
    char settings[1024];   /* of its kernels: "data=f16 scale=f32 group_size=64 ..." */
    const char
        *choice; /* products and attention: algorithm, kernel and reason; else ""; lives with the plan */
} qdnnPlanInfo_t;

/* Describes a plan.
 *   plan
 *   info    receives it; the caller sets its size
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND if size is not set. */
QDNN_API qdnnStatus_t qdnnGetPlanInfo(qdnnPlan_t plan, qdnnPlanInfo_t *info);

/* One-shot calls. Their errors name the argument. They cannot know how large the buffers are: one that is too
 * short may end the handle's context, unless QDNN_CHECK_BUFFERS=1 is set. The forms with bindings, below, are
 * given the sizes and refuse it; formats with further operands (a global scale, a group index, nested scales)
 * need them, or a plan. */

/* Computes scales, and zeros if the descriptor has them.
 *   handle
 *   xDesc, x     the tensor, and its device address
 *   quant
 *   scale        receives the scales
 *   zero         receives the zeros; null if the descriptor has none
 * Returns what qdnnCreateScalePlan and qdnnExecute do. A large tensor with few scales needs a workspace,
 * which the handle allocates and keeps: that is not allowed while the stream is being captured. */
QDNN_API qdnnStatus_t qdnnComputeScales(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc, const void *x,
                                        qdnnQuantDescriptor_t quant, void *scale, void *zero);

/* Quantizes and packs.
 *   handle
 *   xDesc, x     the tensor, and its device address
 *   quant
 *   scale, zero  to quantize with; null if the descriptor has none (blocks contain their scales)
 *   codes        receives the codes
 * Returns what qdnnCreateQuantizePlan and qdnnExecute do. */
QDNN_API qdnnStatus_t qdnnQuantize(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc, const void *x,
                                   qdnnQuantDescriptor_t quant, const void *scale, const void *zero,
                                   void *codes);

/* Unpacks and dequantizes.
 *   handle
 *   quant
 *   codes, scale, zero  the quantized tensor on the device; scale and zero are null if the descriptor has
 *                       none
 *   yDesc, y            the tensor to write, and its device address
 * Returns what qdnnCreateDequantizePlan and qdnnExecute do. */
QDNN_API qdnnStatus_t qdnnDequantize(qdnnHandle_t handle, qdnnQuantDescriptor_t quant, const void *codes,
                                     const void *scale, const void *zero, qdnnTensorDescriptor_t yDesc,
                                     void *y);

/* The same calls with bindings, as qdnnExecute takes them: a buffer whose `bytes` are too few is refused before
 * anything is launched, and every operand of a format can be given.
 *   handle
 *   xDesc, yDesc      the tensor
 *   quant
 *   bindings, count   the operands: QDNN_OPERAND_X or _Y, _CODES, _SCALE, and so on; `bytes` 0: not checked
 * Returns what creating the plan and qdnnExecute do; _BAD_PARAM_SIZE_INSUFFICIENT names the binding, its bytes
 * and those that are needed. */
QDNN_API qdnnStatus_t qdnnComputeScalesWith(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc,
                                            qdnnQuantDescriptor_t quant, const qdnnBinding_t *bindings,
                                            int count);
QDNN_API qdnnStatus_t qdnnQuantizeWith(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc,
                                       qdnnQuantDescriptor_t quant, const qdnnBinding_t *bindings, int count);
QDNN_API qdnnStatus_t qdnnDequantizeWith(qdnnHandle_t handle, qdnnTensorDescriptor_t yDesc,
                                         qdnnQuantDescriptor_t quant, const qdnnBinding_t *bindings,
                                         int count);

/* Lists the stable names of the operations ("quant.int4.quantize"), for tools.
 *   index   counts from 0
 * Returns the name, or null past the last one. Thread-safe. */
QDNN_API const char *qdnnGetOperationName(int index);

/* Finds the kernel behind an operation, by its name in qdnnEmitPtx and ptxgen: "quantize_int4".
 *   operation   its stable name
 *   kernel      receives the kernel's name, which lives as long as the library
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. Thread-safe. */
QDNN_API qdnnStatus_t qdnnFindOperation(const char *operation, const char **kernel);

/* Gets the kernel settings that an operation's name implies: quant.linear_4bit, for example, is the kernel
 * for products with some of its settings fixed. qdnnEmitPtx applies them when given that name, and refuses to change
 * them (except tile_rows, on which no result depends).
 *   operation   its stable name
 *   settings    receives them, "layout=interleaved code=unsigned ..."; "" if the name implies none. Lives as
 *               long as the library
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. Thread-safe. */
QDNN_API qdnnStatus_t qdnnGetOperationSettings(const char *operation, const char **settings);

#ifdef __cplusplus
}
#endif
#endif
