/* CUDA driver error codes as statuses and messages. */
#include "driver/cuda/cuda_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "driver/base/error.h"

typedef struct error_row {
    CUresult code;
    qdnnStatus_t status;
    const char *name, *advice;
} error_row;

static const error_row *find_error(CUresult code)
{
    static const error_row rows[] = {
#define ERROR(code, name, status, advice) {code, QDNN_STATUS_##status, "CUDA_ERROR_" #name, advice},
#include "driver/cuda/cuda_errors.def"
#undef ERROR
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

qdnnStatus_t cuda_status(CUresult code)
{
    const error_row *row = find_error(code);
    return code == 0 ? QDNN_STATUS_SUCCESS : row ? row->status : QDNN_STATUS_EXECUTION_FAILED;
}

bool cuda_is_sticky(CUresult code)
{
    return cuda_status(code) == QDNN_STATUS_EXECUTION_FAILED_STICKY;
}

void cuda_describe(const cuda_api *api, CUresult code, const char *call, char *text, size_t size)
{
    const error_row *row = find_error(code);
    if (row) {
        snprintf(text, size, "%s returned %d (%s): %s", call, code, row->name, row->advice);
        return;
    }
    /* A driver newer than our table knows the name; the toolkit's stub leaves the pointer unchanged. */
    const char *name = NULL;
    if (!api || !api->cuGetErrorName || api->cuGetErrorName(code, &name) != 0 || !name)
        name = "an unknown code";
    snprintf(text, size, "%s returned %d (%s)", call, code, name);
}

qdnnStatus_t cuda_failed(const cuda_api *api, CUresult code, const char *call, const char *what, ...)
{
    char sentence[384], purpose[256];
    va_list args;
    va_start(args, what);
    vsnprintf(purpose, sizeof purpose, what, args);
    va_end(args);
    cuda_describe(api, code, call, sentence, sizeof sentence);
    return qdnn_error(cuda_status(code), "%s: %s", purpose, sentence);
}
