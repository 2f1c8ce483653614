/* Our declarations of cuBLAS against the toolkit's, where they are found. */
#if defined(QDNN_CUDA_HEADERS) && __has_include(<cublas_api.h>)
#include <cublas_api.h>

typedef cudaStream_t CUstream;
#define FUNCTION(name, symbol, params)                                                                       \
    _Static_assert(__builtin_types_compatible_p(cublasStatus_t params, __typeof__(symbol)),                  \
                   #symbol " is declared otherwise");
#define NUMBER(name, value)       _Static_assert(name == value, #name " is another number");
#define ERROR(code, name, status) _Static_assert(CUBLAS_STATUS_##name == code, #name " is another number");
#include "driver/cuda/cublas.def"

_Static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cublasOperation_t) == sizeof(int) &&
                   sizeof(cublasMath_t) == sizeof(int) && sizeof(cublasComputeType_t) == sizeof(int) &&
                   sizeof(cublasGemmAlgo_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int),
               "an enumeration is as wide as an int");
#endif
typedef int not_empty;
