/* qdnn: quantization kernels for NVIDIA GPUs, and for machines without one. The whole public interface.
 *
 *   handle.h    handles: the device and the stream that calls use
 *   memory.h    device memory, for programs that do not use CUDA themselves
 *   tensor.h    descriptors of tensors, data types
 *   quant.h     descriptors of quantizations
 *   weights.h   descriptors for named public formats: GPTQ, AWQ, GGUF, ...
 *   plan.h      operations: plans, created once and executed often, and one-shot calls
 *   matmul.h    products with quantized weights
 *   integer.h   integer products: codes times codes, convolutions
 *   norm.h      RMS norm and layer norm, with a residual in front and quantization behind
 *   cache.h     KV caches: how keys and values lie in memory
 *   copy.h      copies between strides and types, rows of a table by index
 *   pointwise.h operations on each element, gated functions, with quantization behind
 *   rope.h      rotary positions, and writing keys and values into a KV cache
 *   attention.h attention over a KV cache
 *   once.h      descriptors created and set in one call, one-shot calls for products, norms and attention
 *   schedule.h  lists of plans that one call runs
 *   program.h   whole models: plans on named tensors, with a number of rows that each run chooses
 *   train.h     operations for training: fake quantization, LSQ
 *   log.h       the log
 *   emit.h      kernels as PTX text (not included here: few programs need it)
 *
 * Nearly every function returns a status; qdnnGetLastErrorString tells what was wrong. A call that fails
 * because of an argument writes nothing. Pointers to results must not be null unless the documentation says
 * that they may be. "Thread-safe" marks the functions that any thread may call at any time. */
#ifndef QDNN_H
#define QDNN_H

#include <qdnn/types.h>

#include <qdnn/attention.h>
#include <qdnn/cache.h>
#include <qdnn/copy.h>
#include <qdnn/handle.h>
#include <qdnn/integer.h>
#include <qdnn/log.h>
#include <qdnn/matmul.h>
#include <qdnn/memory.h>
#include <qdnn/norm.h>
#include <qdnn/once.h>
#include <qdnn/plan.h>
#include <qdnn/pointwise.h>
#include <qdnn/program.h>
#include <qdnn/quant.h>
#include <qdnn/rope.h>
#include <qdnn/schedule.h>
#include <qdnn/select.h>
#include <qdnn/tensor.h>
#include <qdnn/train.h>
#include <qdnn/weights.h>

#define QDNN_MAJOR   0
#define QDNN_MINOR   1
#define QDNN_PATCH   0
#define QDNN_VERSION (QDNN_MAJOR * 10000 + QDNN_MINOR * 100 + QDNN_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the running library, to be compared with the header's QDNN_VERSION. Thread-safe. */
QDNN_API int qdnnGetVersion(void);

/* The name of a status, "QDNN_STATUS_BAD_PARAM"; "unknown status" for any other number. Thread-safe. */
QDNN_API const char *qdnnGetErrorString(qdnnStatus_t status);

/* Describes the last failed call of this thread: which argument was wrong, its value, and which values are
 * valid. Copies at most size - 1 characters and a terminating zero into message; an empty string if no call
 * has failed.
 */
QDNN_API void qdnnGetLastErrorString(char *message, size_t size);

#ifdef __cplusplus
}
#endif
#endif
