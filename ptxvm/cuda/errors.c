/* Names and descriptions of error codes. */
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
    return (CUresult)ptxvm_status_cuda(status);
}
