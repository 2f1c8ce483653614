/* qdnn: quantization kernels for NVIDIA GPUs and, by way of ptxvm, for machines without one. This is the whole public
 * interface.
 *
 *   handle.h    a handle: the device that calls work on, its stream
 *   memory.h    device memory, for programs that use nothing else of CUDA
 *   tensor.h    descriptors of tensors, data types
 *   quant.h     descriptors of quantizations
 *   weights.h   descriptors by the name of a public format: GPTQ, AWQ, GGUF, ...
 *   plan.h      operations: plans that are made once and executed often, and one-shot calls
 *   matmul.h    products with quantized weights
 *   integer.h   integer products: codes times codes, convolutions
 *   schedule.h  lists of plans that are run by one call
 *   train.h     operations for training: fake quantization, LSQ
 *   log.h       the log
 *   emit.h      kernels as text (not included here: few need it)
 *
 * Every function returns a status; qdnnGetLastErrorString explains a failure. A call that rejects one of its arguments
 * writes nothing. Pointers to results must not be null unless the text says that they may be. */
#ifndef QDNN_H
#define QDNN_H

#include <qdnn/types.h>

#include <qdnn/handle.h>
#include <qdnn/integer.h>
#include <qdnn/log.h>
#include <qdnn/matmul.h>
#include <qdnn/memory.h>
#include <qdnn/plan.h>
#include <qdnn/quant.h>
#include <qdnn/schedule.h>
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

/* The version of the library that is running, as QDNN_VERSION: compare it with the header's. Any thread. */
QDNN_API int qdnnGetVersion(void);

/* The name of a status, "QDNN_STATUS_BAD_PARAM"; "unknown status" for any other number. Any thread. */
QDNN_API const char *qdnnGetErrorString(qdnnStatus_t status);

/* Explains the last call of this thread that failed: which argument, its value, and what is expected instead. Copies at
 * most size - 1 characters and a terminating zero into message; an empty string if no call has failed. */
QDNN_API void qdnnGetLastErrorString(char *message, size_t size);

#ifdef __cplusplus
}
#endif
#endif
