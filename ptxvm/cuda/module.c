/* Modules from PTX. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Logs ---- */

CUresult jit_options(unsigned n, const CUjit_option *options, void **values, jit_log *log)
{
    *log = (jit_log){0};
    if (n && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        void *v = values[i];
        switch ((int)options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            log->info = v;
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            log->info_size = (uint32_t)(uintptr_t)v;
            log->info_used = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            log->error = v;
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            log->error_size = (uint32_t)(uintptr_t)v;
            log->error_used = &values[i];
            break;
        case CU_JIT_WALL_TIME:
            log->wall_time = &values[i];
            break;
        case CU_JIT_LOG_VERBOSE:
            log->verbose = v != NULL;
            break;
        default:
            if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static void write_log(char *buffer, size_t size, void **used, const char *text)
{
    size_t n = 0;
    if (buffer && size) {
        n = strlen(text);
        n = n < size ? n : size - 1;
        memcpy(buffer, text, n);
        buffer[n] = 0;
    }
    if (used)
        *used = (void *)(uintptr_t)n;
}

void jit_finish(jit_log *log, const char *info, const char *error)
{
    float no_time = 0;
    write_log(log->info, log->info_size, log->info_used, info);
    write_log(log->error, log->error_size, log->error_used, error);
    if (log->wall_time)
        memcpy(log->wall_time, &no_time, sizeof no_time);
}

/* ---- Loading ---- */

static CUresult load_text(ptxvm *vm, const cuda_image *image, ptxvm_module **module)
{
    ptxvm_status status = ptxvm_module_load(vm, image->text, image->length, module);
    return status == PTXVM_ERROR_UNSUPPORTED ? CUDA_ERROR_INVALID_PTX : status_code(status);
}

CUresult module_load(CUcontext context, const void *data, size_t bytes, jit_log *log, CUmodule *module)
{
    jit_log none = {0};
    cuda_image image;
    ptxvm *vm = context->device->vm;
    ptxvm_module *m = NULL;
    const char *why = image.why;
    CUresult result = image_open(data, bytes, &image);
    if (!result) {
        result = load_text(vm, &image, &m);
        why = ptxvm_last_error(vm);
    }
    image_close(&image);
    char message[1200];
    snprintf(message, sizeof message, "ptxvm %s: %s\n", cuda.sm, result ? why : "the PTX is accepted");
    jit_finish(log ? log : &none, result ? "" : message, result ? message : "");
    if (result)
        return cuda_log(result, "a module: %s", why);
    CUmodule made = object_new(OBJECT_MODULE, sizeof *made);
    if (!made) {
        ptxvm_module_unload(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->context = context;
    made->vm = m;
    *module = made;
    return CUDA_SUCCESS;
}

void module_unload(CUmodule module)
{
    for (CUfunction f = module->functions, next; f; f = next) {
        next = f->next;
        object_forget(f);
        free(f->params);
        free(f);
    }
    ptxvm_module_unload(module->vm);
    object_forget(module);
    free(module);
}

char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    long size = -1;
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        data = calloc(1, (size_t)size + 1);
    *bytes = data ? fread(data, 1, (size_t)size, file) : 0;
    fclose(file);
    return data;
}

CUresult do_cuModuleLoad(CUmodule *module, const char *path)
{
    if (!module || !path)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes;
    char *image = read_file(path, &bytes);
    if (!image)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = module_load(context_current(), image, bytes, NULL, module);
    free(image);
    return result;
}

CUresult do_cuModuleLoadData(CUmodule *module, const void *image)
{
    return module && image ? module_load(context_current(), image, IMAGE_IN_MEMORY, NULL, module)
                           : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options,
                               void **values)
{
    jit_log log;
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = jit_options(n, options, values, &log);
    return result ? result : module_load(context_current(), image, IMAGE_IN_MEMORY, &log, module);
}

CUresult do_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return do_cuModuleLoadData(module, image);
}

CUresult do_cuModuleUnload(CUmodule module)
{
    if (!object_is(module, OBJECT_MODULE) || module->library)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = context_wait(module->context); /* its kernels may still be queued */
    if (!result)
        module_unload(module);
    return result;
}

CUresult do_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

/* ---- Names ---- */

static CUfunction find_function(CUmodule module, ptxvm_kernel *kernel)
{
    for (CUfunction f = module->functions; f; f = f->next)
        if (f->vm == kernel)
            return f;
    CUfunction f = object_new(OBJECT_FUNCTION, sizeof *f);
    if (!f)
        return NULL;
    f->module = module;
    f->vm = kernel;
    ptxvm_kernel_get_info(kernel, &f->info);
    f->max_dynamic_shared = 49152 - (int)f->info.static_shared_bytes;
    f->carveout = -1;
    f->block[0] = f->block[1] = f->block[2] = 1;
    f->next = module->functions;
    module->functions = f;
    return f;
}

CUresult module_function(CUmodule module, const char *name, CUfunction *function)
{
    ptxvm_kernel *kernel;
    ptxvm_status status = ptxvm_module_kernel(module->vm, name, &kernel);
    if (status)
        return cuda_log(status == PTXVM_ERROR_NOT_FOUND ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_PTX, "%s",
                        ptxvm_last_error(module->context->device->vm));
    CUfunction f = find_function(module, kernel);
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *function = f;
    return CUDA_SUCCESS;
}

CUfunction module_function_at(CUmodule module, int index)
{
    ptxvm_kernel *kernel = ptxvm_module_kernel_at(module->vm, index);
    return kernel ? find_function(module, kernel) : NULL;
}

CUresult do_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (!function || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    return object_is(module, OBJECT_MODULE) ? module_function(module, name, function)
                                            : CUDA_ERROR_INVALID_HANDLE;
}

CUresult do_cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(module, OBJECT_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    *count = (unsigned)ptxvm_module_kernel_count(module->vm);
    return CUDA_SUCCESS;
}

CUresult do_cuModuleEnumerateFunctions(CUfunction *functions, unsigned n, CUmodule module)
{
    if (!functions || !n)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(module, OBJECT_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < n && (int)i < ptxvm_module_kernel_count(module->vm); i++)
        if (!(functions[i] = module_function_at(module, (int)i)))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult do_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    ptxvm_address a;
    uint64_t n;
    if (!name || (!address && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(module, OBJECT_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (ptxvm_module_global(module->vm, name, &a, &n))
        return CUDA_ERROR_NOT_FOUND;
    if (address)
        *address = a;
    if (bytes)
        *bytes = n;
    return CUDA_SUCCESS;
}
