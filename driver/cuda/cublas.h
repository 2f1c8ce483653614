/* The part of cuBLAS that qdnn uses: a plain GEMM, if the library is found at run time (QDNN_CUBLAS may name
 * it). */
#ifndef QDNN_DRIVER_CUBLAS_H
#define QDNN_DRIVER_CUBLAS_H

#include <qdnn/types.h>

#include "driver/cuda/cuda.h"

typedef struct cublasContext *cublasHandle_t;
/* Enumerations of cublas_api.h and library_types.h, which have the size of an int. */
typedef int cublasStatus_t, cublasOperation_t, cublasMath_t, cublasComputeType_t, cublasGemmAlgo_t,
    cudaDataType;
enum {
#define NUMBER(name, value) name = value,
#include "driver/cuda/cublas.def"
#undef NUMBER
};

typedef struct cublas_api {
#define FUNCTION(name, symbol, params) cublasStatus_t(*name) params;
#include "driver/cuda/cublas.def"
#undef FUNCTION
} cublas_api;

/* Gets the table of functions, which is constant for the lifetime of the process. Returns
 * QDNN_STATUS_SUCCESS, or _NOT_SUPPORTED_LIBRARY_MISSING with a message. Thread-safe. */
qdnnStatus_t cublas_open(const cublas_api **api);

/* Keeps the message as the thread's last error and returns the status. */
qdnnStatus_t cublas_failed(cublasStatus_t code, const char *call);

/* For tests: the next cublas_open searches for the library again. */
void cublas_forget(void);

#endif
