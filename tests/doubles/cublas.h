/* A cuBLAS that computes nothing: it records what it is called with, and fails when it is told to. Opened by
 * QDNN_CUBLAS; a test finds these two by dlsym. */
#ifndef TEST_DOUBLES_CUBLAS_H
#define TEST_DOUBLES_CUBLAS_H

#include "driver/cuda/cublas.h"

typedef struct cublas_record {
    int calls; /* of all functions */
    const char *last;
    int handles; /* created and not destroyed */
    CUstream stream;
    void *workspace;
    size_t workspace_bytes;
    cublasMath_t mode;
    cublasOperation_t op_a, op_b;
    int m, n, k, lda, ldb, ldc;
    float alpha, beta;
    const void *a, *b;
    void *c;
    cudaDataType a_type, b_type, c_type;
    cublasComputeType_t compute;
    cublasGemmAlgo_t algorithm;
} cublas_record;

/* "double_record": what was called so far. "double_fail": from now on the function of that symbol returns the
 * code; null: none does. It also clears the record, but for the count of handles. */
typedef const cublas_record *double_record_fn(void);
typedef void double_fail_fn(const char *symbol, cublasStatus_t code);

#endif
