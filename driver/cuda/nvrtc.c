/* CUDA C to PTX by NVRTC. */
#include "driver/cuda/nvrtc.h"

#include "driver/base/alloc.h"
#include "driver/base/error.h"
#include "driver/cuda/library.h"

typedef struct _nvrtcProgram *nvrtcProgram;

static struct {
#define FUNCTION(field, symbol, params) int(*field) params;
#include "driver/cuda/nvrtc.def"
#undef FUNCTION
} api;

static runtime_library library = {
    .title = "NVRTC",
    .variable = "QDNN_NVRTC",
    .files = (const char *const[]){"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL},
    .symbols =
        (const char *const[]){
#define FUNCTION(field, symbol, params) #symbol,
#include "driver/cuda/nvrtc.def"
#undef FUNCTION
            NULL},
    .table = &api,
};

bool nvrtc_found(void)
{
    return library_found(&library);
}

void nvrtc_forget(void)
{
    library_forget(&library);
}

void nvrtc_free(nvrtc_result *result)
{
    alloc_free(result->data);
    alloc_free(result->log);
    *result = (nvrtc_result){0};
}

/* Reads a text of the program (its log or PTX), always zero-terminated; null if it is not available. */
static char *take_text(nvrtcProgram program, int (*size)(nvrtcProgram, size_t *),
                       int (*get)(nvrtcProgram, char *), size_t *bytes)
{
    size_t n = 0; /* NVRTC's size includes the terminating zero */
    char *text = size(program, &n) == 0 ? alloc_new(n + 1) : NULL;
    if (!text)
        return NULL;
    if (get(program, text) != 0) {
        alloc_free(text);
        return NULL;
    }
    *bytes = n ? n - 1 : 0;
    return text;
}

static qdnnStatus_t compile(nvrtcProgram program, const char *const *options, int n, nvrtc_result *result)
{
    size_t log_bytes = 0;
    bool ok = api.compile(program, n, options) == 0;
    result->log = take_text(program, api.log_size, api.log, &log_bytes);
    if (!ok)
        return qdnn_error(QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, "NVRTC: %s",
                          log_bytes ? result->log : "the program does not compile");
    result->data = take_text(program, api.ptx_size, api.ptx, &result->bytes);
    if (!result->data)
        return qdnn_error(QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED, "no memory for the PTX of NVRTC");
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t nvrtc_compile(const char *source, const nvrtc_header *headers, int n_headers,
                           const char *const *options, int n_options, nvrtc_result *result)
{
    const char *texts[NVRTC_HEADERS_MAX], *names[NVRTC_HEADERS_MAX];
    *result = (nvrtc_result){0};
    if (n_headers < 0 || n_headers > NVRTC_HEADERS_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%d headers; at most %d are allowed", n_headers,
                          NVRTC_HEADERS_MAX);
    qdnnStatus_t status = library_use(&library);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    for (int i = 0; i < n_headers; i++) {
        texts[i] = headers[i].text;
        names[i] = headers[i].name;
    }
    nvrtcProgram program = NULL;
    if (api.create(&program, source, "program.cu", n_headers, texts, names) != 0)
        return qdnn_error(QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, "NVRTC refused the program");
    status = compile(program, options, n_options, result);
    api.destroy(&program);
    return status;
}
