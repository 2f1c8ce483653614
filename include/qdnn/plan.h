/* Operations: plans, and one-shot calls.
 *
 * Making a plan does once what every call would need: it checks the descriptors, emits the kernels and loads them.
 * qdnnExecute then only launches: it allocates nothing, takes no lock and looks nothing up, and so may be
 * captured into a CUDA graph. A one-shot call, at the end of this header, makes a plan, which the handle keeps, and
 * executes it.
 *
 * All work goes to the handle's stream; calls do not wait for it. Buffers must not overlap. For a CUDA graph, capture plans
 * rather than one-shot calls: a graph needs its plan for as long as it is launched, and the handle keeps the plans of the
 * last 64 one-shot calls only. */
#ifndef QDNN_PLAN_H
#define QDNN_PLAN_H

#include <qdnn/handle.h>
#include <qdnn/quant.h>
#include <qdnn/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnPlan *qdnnPlan_t;

/* The buffer of an operand: a device pointer, aligned to an element. Results are written through these pointers too. */
typedef struct {
    qdnnOperand_t operand;
    const void *pointer;
    size_t bytes; /* of the buffer, which is refused if it is too small; 0: unknown */
} qdnnBinding_t;

/* Plans the computation of scales, and zeros where the descriptor has them. Operands: X, then SCALE (and
 * ZERO) are written.
 *   handle
 *   x        the tensor: f32, f16 or bf16, packed
 *   quant
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_SHAPE_MISMATCH for an axis that x does not have;
 * _BAD_PARAM_OUT_OF_BOUND for a tensor too large for a launch; _NOT_SUPPORTED for types, layouts and
 * combinations without a kernel, and for strides that are not packed; _NOT_SUPPORTED_SM;
 * _NOT_SUPPORTED_DRIVER_TOO_OLD; _INTERNAL_ERROR_ALLOCATION_FAILED; _INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
 * _INTERNAL_ERROR_COMPILATION_FAILED where the driver refuses the kernel; _EXECUTION_FAILED, also while the
 * stream is being captured; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnCreateScalePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                          qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans quantize and pack. Operands: X, SCALE (and ZERO), then CODES are written.
 * Arguments and statuses as qdnnCreateScalePlan. */
QDNN_API qdnnStatus_t qdnnCreateQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                             qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans scales and codes at once, as for activations whose scales are not known before: for flat groups of a multiple of 8
 * elements (a token's, a block's, a head's) in one kernel that reads x once, for others in two steps. Operands: X (and
 * GLOBAL_SCALE, which is an input here), then CODES and SCALE (and ZERO) are written.
 * Arguments and statuses as qdnnCreateScalePlan. */
QDNN_API qdnnStatus_t qdnnCreateDynamicQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                    qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans the quantization of keys or values of new tokens for a cache: a scale for each head of each token, which is dynamic
 * quantization in groups of the head size, in one kernel. Operands: X, then CODES and SCALE (and ZERO) are written; with a cache
 * also ROW_INDEX (i32, the slot of each token, all different; a token with any other number is left out). A paged cache
 * has pages * slots of a page slots. Slots without a new token keep their codes and scales. The way back is
 * qdnnCreateDequantizePlan with the cache's shape, or qdnnCreateDequantizeRowsPlan with [slots, heads * head size].
 *   x       [..., heads, head size]: f32, f16, bf16 or f64; the head size is a multiple of 8. With a cache, [tokens, heads, head size]
 *           may have a larger stride of tokens, a multiple of 8: the keys in rows of queries, keys and values
 *   quant   INT8, INT4, FP8 or any other format in bytes, QDNN_GRANULARITY_GROUP with the head size
 *   cache   [slots ..., heads, head size], of any type: only its dimensions and strides count. Null: codes and scales lie as x does.
 *           [slots, heads, head size] and [pages, slots of a page, heads, head size] may have any strides that are multiples of
 *           the head size, the last being 1: pages of keys and values in turns, heads before slots. Strides are those of the
 *           codes, in elements; scales (and zeros) are [slots ..., heads], packed
 * Other arguments and statuses as qdnnCreateScalePlan; _BAD_PARAM_SHAPE_MISMATCH also for groups of another size, and for a
 * cache that does not fit. */
QDNN_API qdnnStatus_t qdnnCreateQuantizeKvCachePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                    qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t cache,
                                                    qdnnPlan_t *plan);

/* Plans unpack and dequantize. Operands: CODES, SCALE (and ZERO), then Y is written.
 *   y        the tensor that is written: f32, f16 or bf16, packed
 * Other arguments and statuses as qdnnCreateScalePlan. */
QDNN_API qdnnStatus_t qdnnCreateDequantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t y,
                                               qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans the dequantization of single rows, as an embedding lookup needs it. Operands: CODES, SCALE (and what else the
 * descriptor has), ROW_INDEX (i32, the number of a row of the table for each row of y), then Y is written. A number
 * outside the table gives a row of NaN.
 *   table    the whole tensor, as it was before it was quantized: its rows are all but the last dimension
 *   quant
 *   y        the tensor that is written: of the table's type and with its columns; a row for each number
 * Other arguments and statuses as qdnnCreateScalePlan; _BAD_PARAM_SHAPE_MISMATCH also for a y that does not fit. */
QDNN_API qdnnStatus_t qdnnCreateDequantizeRowsPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t table,
                                                   qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                                   qdnnPlan_t *plan);

/* Plans the conversion of codes from one layout, nibble order and code kind to another; scales and zeros are not touched.
 * Codes keep their numbers, except between unsigned and signed codes, where numbers and zeros differ by 2^(bits - 1).
 * Operands: CODES, then REPACKED is written.
 *   tensor             the plain tensor, of any type: only its dimensions count
 *   quantFrom, quantTo how codes lie before and after: the same storage, as wide
 * Other arguments and statuses as qdnnCreateScalePlan; _NOT_SUPPORTED also for descriptors of different codes. */
QDNN_API qdnnStatus_t qdnnCreateRepackPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t tensor,
                                           qdnnQuantDescriptor_t quantFrom, qdnnQuantDescriptor_t quantTo,
                                           qdnnPlan_t *plan);

/* Frees a plan, whose kernels may still be running. Its handle must still exist. A graph captured from the plan must not
 * be launched any more: its kernels may be unloaded from now on.
 *   plan   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyPlan(qdnnPlan_t plan);

/* How much device memory an execute needs besides its operands.
 *   plan
 *   bytes   receives it; often 0
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetPlanWorkspaceSize(qdnnPlan_t plan, size_t *bytes);

/* Launches a plan on the handle's stream.
 *   handle          the one that the plan was made with
 *   plan
 *   bindings        a pointer for each operand of the plan; others are not allowed. Where there is nothing to
 *                   do (a tensor without elements) they may be missing, and pointers null
 *   count           how many bindings
 *   workspace       device memory, aligned to 16; null where none is needed
 *   workspaceBytes  at least what qdnnGetPlanWorkspaceSize says
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for a plan of another handle, an operand that is
 * missing, given twice or not the plan's; _BAD_PARAM_OUT_OF_BOUND for an unknown operand;
 * _BAD_PARAM_MISALIGNED_POINTER; _BAD_PARAM_SIZE_INSUFFICIENT for a binding's bytes or the workspace;
 * _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. Allowed while the stream is being captured.
 *
 * With QDNN_CHECK_BUFFERS=1 in the environment at qdnnCreate, the driver is asked about every pointer before the
 * first launch: host memory, addresses that the driver does not know and buffers that overlap are _BAD_PARAM,
 * allocations that end too early _BAD_PARAM_SIZE_INSUFFICIENT. */
QDNN_API qdnnStatus_t qdnnExecute(qdnnHandle_t handle, qdnnPlan_t plan, const qdnnBinding_t *bindings,
                                  int count, void *workspace, size_t workspaceBytes);

/* Launches the plan of a product for fewer rows of x and y than it was made for, from the first on. The bits of a row are
 * the same as in any other batch.
 *   rows   0 to the M of the plan
 * Other arguments and statuses as qdnnExecute; _BAD_PARAM for a plan that is not a product, _BAD_PARAM_OUT_OF_BOUND for
 * more rows. Sizes in bindings, where given, are those of the whole plan. */
QDNN_API qdnnStatus_t qdnnExecuteRows(qdnnHandle_t handle, qdnnPlan_t plan, int64_t rows, const qdnnBinding_t *bindings,
                                      int count, void *workspace, size_t workspaceBytes);

/* What a plan does, for people and tools. */
typedef struct {
    size_t size; /* sizeof(qdnnPlanInfo_t): set it before the call */
    const char
        *operation;  /* "quant.nf4.quantize"; of a product by cuBLAS, which no kernel does alone, "quant.matmul" */
    int kernels;     /* launches of an execute; 0 for an empty tensor */
    uint64_t blocks; /* of all launches together */
    uint32_t blockThreads; /* of the first */
    int ptxVersion;        /* of the first, times ten: 63 is 6.3 */
    bool fromCache;        /* all kernels were loaded already */
    bool fromBundle;       /* some kernel came from the bundle */
    double emitSeconds;    /* spent writing PTX, or reading the bundle */
    double loadSeconds;    /* spent by the driver on loading it */
    char settings[1024];   /* of its kernels: "data=f16 scale=f32 group_size=64 ..." */
    const char *choice;    /* of a product: which algorithm and kernel, and why, in words; else ""; lives with the plan */
} qdnnPlanInfo_t;

/* Describes a plan.
 *   plan
 *   info    receives it; its size is set by the caller
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for a size that is not set. */
QDNN_API qdnnStatus_t qdnnGetPlanInfo(qdnnPlan_t plan, qdnnPlanInfo_t *info);

/* One-shot calls. Errors name the argument. Formats with more operands than a call has arguments (a global scale, a group
 * index, nested scales) need a plan. */

/* Computes scales, and zeros where the descriptor has them.
 *   handle
 *   xDesc, x   the tensor, and where it is on the device
 *   quant
 *   scale      where the scales go
 *   zero       where the zeros go; null where the descriptor has none
 * Returns what qdnnCreateScalePlan and qdnnExecute do. A large tensor with few scales needs a workspace,
 * which the handle then keeps; it cannot be allocated while the stream is being captured. */
QDNN_API qdnnStatus_t qdnnComputeScales(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc, const void *x,
                                        qdnnQuantDescriptor_t quant, void *scale, void *zero);

/* Quantizes and packs.
 *   handle
 *   xDesc, x     the tensor, and where it is on the device
 *   quant
 *   scale, zero  as they are to be used; null where the descriptor has none (blocks hold their scales)
 *   codes        where the codes go
 * Returns what qdnnCreateQuantizePlan and qdnnExecute do. */
QDNN_API qdnnStatus_t qdnnQuantize(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc, const void *x,
                                   qdnnQuantDescriptor_t quant, const void *scale, const void *zero,
                                   void *codes);

/* Unpacks and dequantizes.
 *   handle
 *   quant
 *   codes, scale, zero  the quantized tensor on the device; scale and zero are null where the descriptor has none
 *   yDesc, y            the tensor that is written, and where it goes
 * Returns what qdnnCreateDequantizePlan and qdnnExecute do. */
QDNN_API qdnnStatus_t qdnnDequantize(qdnnHandle_t handle, qdnnQuantDescriptor_t quant, const void *codes,
                                     const void *scale, const void *zero, qdnnTensorDescriptor_t yDesc,
                                     void *y);

/* The operations by their stable names ("quant.int4.quantize"), for tools.
 *   index   from 0 on
 * Returns the name, or null past the last. Any thread. */
QDNN_API const char *qdnnGetOperationName(int index);

/* The kernel behind an operation, as qdnnEmitPtx and ptxgen know it: "quantize_int4".
 *   operation   its stable name
 *   kernel      receives the kernel's name, which lives as long as the library
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. Any thread. */
QDNN_API qdnnStatus_t qdnnFindOperation(const char *operation, const char **kernel);

/* The settings of that kernel which an operation's name stands for: quant.linear_4bit is a kernel for products with some
 * of its settings chosen. qdnnEmitPtx applies them where it is given the name.
 *   operation   its stable name
 *   settings    receives them, "layout=interleaved code=unsigned ..."; "" where the name chooses none. Lives as long as the
 *               library
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. Any thread. */
QDNN_API qdnnStatus_t qdnnGetOperationSettings(const char *operation, const char **settings);

#ifdef __cplusplus
}
#endif
#endif
