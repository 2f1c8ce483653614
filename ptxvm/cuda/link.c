/* The linker: PTX texts are joined into one, which loads like any PTX. Names that one declares .extern and
 * another defines are the front end's to match. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUlinkState_st {
    CUcontext context;
    jit_log log;
    char *text; /* what cuLinkComplete gives */
    size_t length;
    bool complete;
};

CUresult do_cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *state)
{
    jit_log log;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = jit_options(n, options, values, &log);
    if (result)
        return result;
    CUlinkState s = object_new(OBJECT_LINK, sizeof *s);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->context = context_current();
    s->log = log;
    *state = s;
    return CUDA_SUCCESS;
}

/* The directives at the head of a module may stand there once: a text that is added loses its own. */
static const char *skip_header(const char *text, const char *end)
{
    static const char *const words[] = {".version", ".target", ".address_size"};
    const char *body = text;
    for (int i = 0; i < 3; i++) {
        const char *at = strstr(text, words[i]);
        const char *line = at ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (line && line + 1 > body)
            body = line + 1;
    }
    return body;
}

static CUresult append(CUlinkState s, const char *text, size_t length)
{
    const char *body = s->text ? skip_header(text, text + length) : text;
    size_t more = length - (size_t)(body - text);
    char *joined = realloc(s->text, s->length + more + 2);
    if (!joined)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(joined + s->length, body, more);
    joined[s->length + more] = '\n';
    joined[s->length + more + 1] = 0;
    s->text = joined;
    s->length += more + 1;
    return CUDA_SUCCESS;
}

static CUresult link_fail(CUlinkState s, CUresult code, const char *name, const char *why)
{
    char message[1200];
    snprintf(message, sizeof message, "%s: %s\n", name ? name : "input", why);
    jit_finish(&s->log, "", message);
    return cuda_log(code, "cuLinkAddData: %s", message);
}

CUresult do_cuLinkAddData_v2(CUlinkState s, CUjitInputType type, void *data, size_t bytes, const char *name,
                             unsigned n, CUjit_option *options, void **values)
{
    jit_log unused;
    if (!object_is(s, OBJECT_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!data || !bytes || s->complete || (unsigned)type > CU_JIT_INPUT_NVVM ||
        jit_options(n, options, values, &unused))
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX)
        return link_fail(s,
                         type == CU_JIT_INPUT_NVVM ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NO_BINARY_FOR_GPU,
                         name, "ptxvm links PTX text alone: compile it to PTX");
    char *text = calloc(1, bytes + 1);
    if (!text)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(text, data, bytes);
    /* The text is checked by itself first, so that the log names its own lines. */
    ptxvm *vm = s->context->device->vm;
    ptxvm_module *m;
    ptxvm_status status = ptxvm_module_load(vm, text, strlen(text), &m);
    CUresult result =
        status
            ? link_fail(s, status == PTXVM_ERROR_UNSUPPORTED ? CUDA_ERROR_INVALID_PTX : status_code(status),
                        name, ptxvm_last_error(vm))
            : append(s, text, strlen(text));
    if (!status)
        ptxvm_module_unload(m);
    free(text);
    return result;
}

CUresult do_cuLinkAddFile_v2(CUlinkState s, CUjitInputType type, const char *path, unsigned n,
                             CUjit_option *options, void **values)
{
    if (!object_is(s, OBJECT_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes;
    char *data = read_file(path, &bytes);
    if (!data)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = do_cuLinkAddData_v2(s, type, data, bytes, path, n, options, values);
    free(data);
    return result;
}

CUresult do_cuLinkComplete(CUlinkState s, void **image, size_t *bytes)
{
    if (!object_is(s, OBJECT_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!image || !s->text)
        return CUDA_ERROR_INVALID_VALUE;
    ptxvm *vm = s->context->device->vm;
    ptxvm_module *m;
    ptxvm_status status = ptxvm_module_load(vm, s->text, s->length, &m);
    if (status)
        return link_fail(s, status_code(status), "linked", ptxvm_last_error(vm));
    ptxvm_module_unload(m);
    jit_finish(&s->log, "the PTX is linked\n", "");
    s->complete = true;
    *image = s->text;
    if (bytes)
        *bytes = s->length + 1;
    return CUDA_SUCCESS;
}

CUresult do_cuLinkDestroy(CUlinkState s)
{
    if (!object_is(s, OBJECT_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    object_forget(s);
    free(s->text);
    free(s);
    return CUDA_SUCCESS;
}
