/* Libraries: PTX that belongs to no context, and its kernels. It is loaded into a context when that context
 * first needs it. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct library_module {
    CUcontext context;
    CUmodule module;
} library_module;

struct CUlib_st {
    char *text;
    library_module *modules;
    size_t n_modules;
    CUkernel *kernels;
    size_t n_kernels;
};

struct CUkern_st {
    CUlibrary library;
    int index;
    char *name;
};

/* ---- Loading into a context ---- */

static CUresult library_module_in(CUlibrary library, CUcontext context, CUmodule *module)
{
    for (size_t i = 0; i < library->n_modules; i++)
        if (library->modules[i].context == context) {
            *module = library->modules[i].module;
            return CUDA_SUCCESS;
        }
    library_module *more = realloc(library->modules, (library->n_modules + 1) * sizeof *more);
    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    library->modules = more;
    CUresult result = module_load(context, library->text, IMAGE_IN_MEMORY, NULL, module);
    if (result)
        return result;
    (*module)->library = library;
    more[library->n_modules++] = (library_module){context, *module};
    return CUDA_SUCCESS;
}

CUresult kernel_function(CUkernel kernel, CUcontext context, CUfunction *function)
{
    CUmodule module;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = library_module_in(kernel->library, context, &module);
    if (result)
        return result;
    CUfunction f = module_function_at(module, kernel->index);
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *function = f;
    return CUDA_SUCCESS;
}

static void forget_context(void *object, void *user)
{
    CUlibrary library = object;
    for (size_t i = 0; i < library->n_modules; i++)
        if (library->modules[i].context == user)
            library->modules[i--] = library->modules[--library->n_modules];
}

void libraries_forget_context(CUcontext context)
{
    object_each(OBJECT_LIBRARY, forget_context, context);
}

/* ---- Loading ---- */

/* The names of the kernels are read on a temporary device, so that no context is needed. */
static CUresult list_kernels(CUlibrary library)
{
    ptxvm_config config = {.sm = cuda.sm, .threads = 1};
    ptxvm *vm;
    ptxvm_module *module;
    if (ptxvm_create(&config, &vm))
        return CUDA_ERROR_OUT_OF_MEMORY;
    ptxvm_status status = ptxvm_module_load(vm, library->text, strlen(library->text), &module);
    CUresult result = status == PTXVM_ERROR_UNSUPPORTED ? CUDA_ERROR_INVALID_PTX : status_code(status);
    if (result)
        cuda_log(result, "a library: %s", ptxvm_last_error(vm));
    int n = result ? 0 : ptxvm_module_kernel_count(module);
    library->kernels = calloc((size_t)n + 1, sizeof(CUkernel));
    for (int i = 0; i < n && !result; i++) {
        ptxvm_kernel_info info;
        ptxvm_kernel_get_info(ptxvm_module_kernel_at(module, i), &info);
        CUkernel k = library->kernels ? object_new(OBJECT_KERNEL, sizeof *k) : NULL;
        if (!k) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
            break;
        }
        library->kernels[library->n_kernels++] = k;
        k->library = library;
        k->index = i;
        k->name = strdup(info.name);
        result = k->name ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    ptxvm_destroy(vm);
    return result;
}

static void library_delete(CUlibrary library)
{
    for (size_t i = 0; i < library->n_modules; i++)
        module_unload(library->modules[i].module);
    for (size_t i = 0; i < library->n_kernels; i++) {
        object_forget(library->kernels[i]);
        free(library->kernels[i]->name);
        free(library->kernels[i]);
    }
    object_forget(library);
    free(library->kernels);
    free(library->modules);
    free(library->text);
    free(library);
}

static CUresult library_new(CUlibrary *library, const char *text)
{
    CUlibrary l = object_new(OBJECT_LIBRARY, sizeof *l);
    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->text = strdup(text);
    CUresult result = l->text ? list_kernels(l) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result)
        library_delete(l);
    else
        *library = l;
    return result;
}

static CUresult library_load(CUlibrary *library, const void *data, size_t bytes, unsigned n_jit,
                             const CUjit_option *jit, void **jit_values)
{
    jit_log log;
    cuda_image image;
    CUresult result = jit_options(n_jit, jit, jit_values, &log);
    if (result)
        return result;
    result = image_open(data, bytes, &image);
    if (result) {
        cuda_log(result, "a library: %s", image.why);
        jit_finish(&log, "", image.why);
    } else {
        result = library_new(library, image.text);
        jit_finish(&log, "", "");
    }
    image_close(&image);
    return result;
}

CUresult do_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values,
                              unsigned n_jit, CUlibraryOption *options, void **values, unsigned n)
{
    if (!library || !image || (n && (!options || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    return library_load(library, image, IMAGE_IN_MEMORY, n_jit, jit, jit_values);
}

CUresult do_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
                                  unsigned n_jit, CUlibraryOption *options, void **values, unsigned n)
{
    if (!library || !path || (n && (!options || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes;
    char *image = read_file(path, &bytes);
    if (!image)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = library_load(library, image, bytes, n_jit, jit, jit_values);
    free(image);
    return result;
}

CUresult do_cuLibraryUnload(CUlibrary library)
{
    if (!object_is(library, OBJECT_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < library->n_modules; i++)
        if (!library->modules[i].context->error)
            context_wait(library->modules[i].context);
    library_delete(library);
    return CUDA_SUCCESS;
}

/* ---- Contents ---- */

CUresult do_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    if (!kernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(library, OBJECT_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < library->n_kernels; i++)
        if (strcmp(library->kernels[i]->name, name) == 0) {
            *kernel = library->kernels[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult do_cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(library, OBJECT_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    *count = (unsigned)library->n_kernels;
    return CUDA_SUCCESS;
}

CUresult do_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned n, CUlibrary library)
{
    if (!kernels || !n)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(library, OBJECT_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < n && i < library->n_kernels; i++)
        kernels[i] = library->kernels[i];
    return CUDA_SUCCESS;
}

CUresult do_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(library, OBJECT_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    return library_module_in(library, context_current(), module);
}

CUresult do_cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    CUmodule module;
    if (!name || (!address && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = do_cuLibraryGetModule(&module, library);
    return result ? result : do_cuModuleGetGlobal_v2(address, bytes, module, name);
}

/* .managed variables are in device memory here, so there are none to return. */
CUresult do_cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    if (!name || (!address && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return object_is(library, OBJECT_LIBRARY) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult do_cuLibraryGetUnifiedFunction(void **function, CUlibrary library, const char *name)
{
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    return object_is(library, OBJECT_LIBRARY) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- Kernels ---- */

static bool is_kernel(CUkernel kernel)
{
    return object_is(kernel, OBJECT_KERNEL);
}

CUresult do_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    return is_kernel(kernel) ? kernel_function(kernel, context_current(), function)
                             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult do_cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    if (!library)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_kernel(kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    *library = kernel->library;
    return CUDA_SUCCESS;
}

CUresult do_cuKernelGetName(const char **name, CUkernel kernel)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_kernel(kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = kernel->name;
    return CUDA_SUCCESS;
}

/* The function in some context: the current one, or the device's primary one if there is none. */
static CUresult any_function(CUkernel kernel, CUdevice device, CUfunction *function)
{
    cuda_device *d = device_at(device);
    if (!is_kernel(kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = context_current();
    if (!c || c->device != d)
        c = d->primary;
    return c ? kernel_function(kernel, c, function) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult do_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    CUfunction f;
    CUresult result = any_function(kernel, device, &f);
    return result ? result : do_cuFuncGetAttribute(value, attribute, f);
}

CUresult do_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    CUfunction f;
    CUresult result = any_function(kernel, device, &f);
    return result ? result : do_cuFuncSetAttribute(f, attribute, value);
}

CUresult do_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    CUfunction f;
    CUresult result = any_function(kernel, device, &f);
    return result ? result : do_cuFuncSetCacheConfig(f, config);
}

CUresult do_cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    CUfunction f;
    CUcontext c = context_current();
    CUresult result = any_function(kernel, c ? c->device->ordinal : 0, &f);
    return result ? result : do_cuFuncGetParamInfo(f, index, offset, bytes);
}
