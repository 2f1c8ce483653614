/* Loading cuBLAS, and its error codes. */
#include "driver/cuda/cublas.h"

#include "driver/base/error.h"
#include "driver/cuda/library.h"

static cublas_api functions;

static runtime_library library = {
    .title = "cuBLAS",
    .variable = "QDNN_CUBLAS",
    .files = (const char *const[]){"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL},
    .symbols =
        (const char *const[]){
#define FUNCTION(name, symbol, params) #symbol,
#include "driver/cuda/cublas.def"
#undef FUNCTION
            NULL},
    .table = &functions,
};

qdnnStatus_t cublas_open(const cublas_api **api)
{
    qdnnStatus_t status = library_use(&library);
    if (status == QDNN_STATUS_SUCCESS)
        *api = &functions;
    return status;
}

void cublas_forget(void)
{
    library_forget(&library);
}

qdnnStatus_t cublas_failed(cublasStatus_t code, const char *call)
{
    static const struct {
        cublasStatus_t code;
        qdnnStatus_t status;
        const char *name;
    } rows[] = {
#define ERROR(code, name, status) {code, QDNN_STATUS_##status, "CUBLAS_STATUS_" #name},
#include "driver/cuda/cublas.def"
#undef ERROR
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            return qdnn_error(rows[i].status, "%s returned %d (%s)", call, code, rows[i].name);
    return qdnn_error(QDNN_STATUS_EXECUTION_FAILED, "%s returned %d (an unknown code)", call, code);
}
