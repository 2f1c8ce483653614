/* The linker's calls: PTX texts, also those in fat binaries, are collected and joined into one (link_join.c),
 * which is loaded like any PTX. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"

struct CUlinkState_st {
    ptxvm *vm; /* of the device that the link is for */
    jit_log log;
    link_unit *units;
    int n_units, capacity;
    bool devrt; /* libcudadevrt.a was added */
    char *text; /* the result of cuLinkComplete */
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
    s->vm = context_current()->device->vm;
    s->log = log;
    *state = s;
    return CUDA_SUCCESS;
}

static CUresult link_fail(CUlinkState s, CUresult code, const char *name, const char *why)
{
    char message[1200];
    snprintf(message, sizeof message, "%s: %s\n", name ? name : "input", why);
    jit_finish(&s->log, "", message);
    return cuda_log(code, "cuLink: %s: %s", name ? name : "input", why);
}

static CUresult add_unit(CUlinkState s, const char *name, const char *text)
{
    if (s->n_units == s->capacity) {
        link_unit *more = realloc(s->units, (size_t)(2 * s->capacity + 8) * sizeof *more);
        if (!more)
            return CUDA_ERROR_OUT_OF_MEMORY;
        s->units = more;
        s->capacity = 2 * s->capacity + 8;
    }
    link_unit *u = &s->units[s->n_units];
    *u = (link_unit){.label = strdup(name ? name : "input"), .text = strdup(text)};
    if (!u->label || !u->text || !link_scan(u, s->n_units)) {
        link_unit_clear(u);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    s->n_units++;
    return CUDA_SUCCESS;
}

static CUresult load_status(ptxvm_status status)
{
    return status == PTXVM_ERROR_UNSUPPORTED ? CUDA_ERROR_INVALID_PTX : status_code(status);
}

/* The text is first checked by itself, so that the log refers to its own lines. */
static CUresult add_image(CUlinkState s, const char *name, const cuda_image *image)
{
    ptxvm_module *m;
    CUresult result = load_status(ptxvm_module_load(s->vm, image->text, image->length, &m));
    if (result)
        return link_fail(s, result, name, ptxvm_last_error(s->vm));
    ptxvm_module_unload(m);
    return add_unit(s, name, image->text);
}

static CUresult add_data(CUlinkState s, const char *name, const void *data, size_t bytes)
{
    cuda_image image;
    char *copy = calloc(1, bytes + 1); /* a text need not be zero-terminated */
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, data, bytes);
    CUresult result = image_open(copy, bytes, &image);
    result = result ? link_fail(s, result, name, image.why) : add_image(s, name, &image);
    image_close(&image);
    free(copy);
    return result;
}

CUresult do_cuLinkAddData_v2(CUlinkState s, CUjitInputType type, void *data, size_t bytes, const char *name,
                             unsigned n, CUjit_option *options, void **values)
{
    jit_log unused;
    if (!object_is(s, OBJECT_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!data || !bytes || s->text || (unsigned)type > CU_JIT_INPUT_NVVM ||
        jit_options(n, options, values, &unused))
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY)
        return add_data(s, name, data, bytes);
    if (type == CU_JIT_INPUT_LIBRARY && link_is_devrt(data, bytes)) {
        s->devrt = true;
        return CUDA_SUCCESS;
    }
    return link_fail(s, type == CU_JIT_INPUT_NVVM ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NO_BINARY_FOR_GPU,
                     name,
                     "ptxvm links PTX, fat binaries that hold PTX, and libcudadevrt.a: compile it to PTX");
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

/* Checks that every kernel of the result finds what it calls. */
static CUresult check_whole(ptxvm *vm, const char *text)
{
    ptxvm_module *m;
    ptxvm_status status = ptxvm_module_load(vm, text, strlen(text), &m);
    if (status)
        return load_status(status);
    for (int i = 0; i < ptxvm_module_kernel_count(m) && !status; i++) {
        ptxvm_kernel_info info;
        ptxvm_kernel *kernel;
        ptxvm_kernel_get_info(ptxvm_module_kernel_at(m, i), &info);
        status = ptxvm_module_kernel(m, info.name, &kernel);
    }
    ptxvm_module_unload(m);
    return load_status(status);
}

static CUresult link_units(CUlinkState s)
{
    char why[600];
    CUresult result = CUDA_SUCCESS;
    if (s->devrt && link_wants_devrt(s->units, s->n_units))
        result = add_unit(s, "libcudadevrt.a", link_devrt_ptx);
    if (result)
        return result;
    char *text = link_join(s->units, s->n_units, cuda.limits[PTXVM_LIMIT_TEXT], why, sizeof why);
    if (!text)
        return link_fail(s, CUDA_ERROR_INVALID_PTX, "linked", why);
    result = check_whole(s->vm, text);
    if (result) {
        free(text);
        return link_fail(s, result, "linked", ptxvm_last_error(s->vm));
    }
    jit_finish(&s->log, "the PTX is linked\n", "");
    s->text = text;
    return CUDA_SUCCESS;
}

CUresult do_cuLinkComplete(CUlinkState s, void **image, size_t *bytes)
{
    if (!object_is(s, OBJECT_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!image || !s->n_units)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = s->text ? CUDA_SUCCESS : link_units(s);
    if (result)
        return result;
    *image = s->text;
    if (bytes)
        *bytes = strlen(s->text) + 1;
    return CUDA_SUCCESS;
}

CUresult do_cuLinkDestroy(CUlinkState s)
{
    if (!object_is(s, OBJECT_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    object_forget(s);
    for (int i = 0; i < s->n_units; i++)
        link_unit_clear(&s->units[i]);
    free(s->units);
    free(s->text);
    free(s);
    return CUDA_SUCCESS;
}
