/* A cuBLAS for tests (see cublas.h). */
#include "doubles/cublas.h"

#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static cublas_record record;
static char failing[64];
static cublasStatus_t failing_code;

EXPORTED double_record_fn double_record;
EXPORTED double_fail_fn double_fail;
#define FUNCTION(name, symbol, params) EXPORTED cublasStatus_t symbol params;
#include "driver/cuda/cublas.def"
#undef FUNCTION

struct cublasContext {
    int number;
};
static struct cublasContext context;

const cublas_record *double_record(void)
{
    return &record;
}

void double_fail(const char *symbol, cublasStatus_t code)
{
    snprintf(failing, sizeof failing, "%s", symbol ? symbol : "");
    failing_code = code;
    record = (cublas_record){.handles = record.handles};
}

/* Counts the call, and returns its result. A handle that is not ours is CUBLAS_STATUS_NOT_INITIALIZED. */
static cublasStatus_t enter(const char *symbol, cublasHandle_t handle)
{
    record.calls++;
    record.last = symbol;
    if (!strcmp(failing, symbol))
        return failing_code;
    return handle == &context ? 0 : 1;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    cublasStatus_t code = enter(__func__, &context);
    if (code == 0) {
        *handle = &context;
        record.handles++;
    }
    return code;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    cublasStatus_t code = enter(__func__, handle);
    record.handles -= code == 0;
    return code;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    *version = 130000;
    return enter(__func__, handle);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream stream)
{
    record.stream = stream;
    return enter(__func__, handle);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    record.workspace = workspace;
    record.workspace_bytes = bytes;
    cublasStatus_t code = enter(__func__, handle);
    return code == 0 && (uintptr_t)workspace % 256 != 0 ? 7 : code; /* as cuBLAS does: INVALID_VALUE */
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    record.mode = mode;
    return enter(__func__, handle);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,
                            const void *b, cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm)
{
    record.op_a = op_a, record.op_b = op_b;
    record.m = m, record.n = n, record.k = k;
    record.a = a, record.a_type = a_type, record.lda = lda;
    record.b = b, record.b_type = b_type, record.ldb = ldb;
    record.c = c, record.c_type = c_type, record.ldc = ldc;
    record.compute = compute, record.algorithm = algorithm;
    memcpy(&record.alpha, alpha, sizeof record.alpha);
    memcpy(&record.beta, beta, sizeof record.beta);
    return enter(__func__, handle);
}
