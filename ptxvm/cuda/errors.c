/* Names and texts of codes. */
#include "internal.h"

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define ERROR(name, number, text) {name, #name, text},
#include "errors.def"
#undef ERROR
};

static int find(CUresult code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return (int)i;
    return -1;
}

CUresult do_cuGetErrorName(CUresult code, const char **name)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    int i = find(code);
    *name = i >= 0 ? errors[i].name : NULL;
    return i >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGetErrorString(CUresult code, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    int i = find(code);
    *text = i >= 0 ? errors[i].text : NULL;
    return i >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult status_code(ptxvm_status status)
{
    static const CUresult codes[] = {
        [PTXVM_OK] = CUDA_SUCCESS,
        [PTXVM_ERROR_ARGUMENT] = CUDA_ERROR_INVALID_VALUE,
        [PTXVM_ERROR_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
        [PTXVM_ERROR_PTX] = CUDA_ERROR_INVALID_PTX,
        [PTXVM_ERROR_UNSUPPORTED_VERSION] = CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        [PTXVM_ERROR_UNSUPPORTED] = CUDA_ERROR_NOT_SUPPORTED,
        [PTXVM_ERROR_TARGET] = CUDA_ERROR_NO_BINARY_FOR_GPU,
        [PTXVM_ERROR_NOT_FOUND] = CUDA_ERROR_NOT_FOUND,
        [PTXVM_ERROR_LAUNCH_SIZE] = CUDA_ERROR_INVALID_VALUE,
        [PTXVM_ERROR_ADDRESS] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [PTXVM_ERROR_MISALIGNED] = CUDA_ERROR_MISALIGNED_ADDRESS,
        [PTXVM_ERROR_TRAP] = CUDA_ERROR_LAUNCH_FAILED,
        [PTXVM_ERROR_ASSERT] = CUDA_ERROR_ASSERT,
        [PTXVM_ERROR_STEP_LIMIT] = CUDA_ERROR_LAUNCH_TIMEOUT,
        [PTXVM_ERROR_DEADLOCK] = CUDA_ERROR_LAUNCH_TIMEOUT,
        [PTXVM_ERROR_EXECUTION] = CUDA_ERROR_LAUNCH_FAILED,
    };
    return (size_t)status < sizeof codes / sizeof *codes ? codes[status] : CUDA_ERROR_UNKNOWN;
}
