/* Functions: their attributes and parameters; occupancy of a multiprocessor. */
#include "internal.h"

/* ---- Handles ---- */

CUresult function_get(CUcontext context, CUfunction handle, CUfunction *function)
{
    if (object_is(handle, OBJECT_KERNEL))
        return kernel_function((CUkernel)(void *)handle, context, function);
    if (!object_is(handle, OBJECT_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    if (context && handle->module->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    *function = handle;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncGetModule(CUmodule *module, CUfunction function)
{
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(function, OBJECT_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncGetName(const char **name, CUfunction function)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(function, OBJECT_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = function->info.name;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    uint64_t o, n;
    if (!offset)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(function, OBJECT_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    if (index >= (size_t)function->info.n_params || !ptxvm_kernel_param(function->vm, (int)index, &o, &n))
        return CUDA_ERROR_INVALID_VALUE;
    *offset = o;
    if (bytes)
        *bytes = n;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object_is(function, OBJECT_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncLoad(CUfunction function)
{
    return object_is(function, OBJECT_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- Attributes ---- */

int function_registers(const struct CUfunc_st *f)
{
    return f->info.registers;
}

static int shared_most(const struct CUfunc_st *f)
{
    return f->module->context->device->traits->shared_optin - (int)f->info.static_shared_bytes;
}

CUresult do_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
    CUfunction f;
    if (!value || (unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    int sm = f->module->context->device->traits->sm;
    const int values[CU_FUNC_ATTRIBUTE_MAX] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = f->info.max_threads,
        [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)f->info.static_shared_bytes,
        [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = (int)f->info.const_bytes,
        [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)f->info.local_bytes,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = function_registers(f),
        [CU_FUNC_ATTRIBUTE_PTX_VERSION] = sm,
        [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = sm,
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = f->max_dynamic_shared,
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = f->carveout,
        [CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] =
            f->info.explicit_cluster && !f->info.reqnctapercluster[0],
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = f->info.reqnctapercluster[0],
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = f->info.reqnctapercluster[1],
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = f->info.reqnctapercluster[2],
        [CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = f->non_portable_cluster,
        [CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] = f->cluster_policy,
    };
    *value = values[attribute];
    return CUDA_SUCCESS;
}

CUresult do_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > shared_most(f))
            return cuda_log(CUDA_ERROR_INVALID_VALUE,
                            "%s: %d bytes of dynamic shared memory, sm_%d has %d for it", f->info.name, value,
                            f->module->context->device->traits->sm, shared_most(f));
        f->max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        f->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        f->non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        f->cluster_policy = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult do_cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    f->cache = config;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                        : CUDA_SUCCESS;
}

/* ---- Occupancy ---- */

static int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

int occupancy_blocks(const struct CUfunc_st *f, int block, size_t dynamic_shared)
{
    const cuda_device *d = f->module->context->device;
    const sm_traits *t = d->traits;
    size_t shared = f->info.static_shared_bytes + dynamic_shared +
                    (size_t)device_attribute(d, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    int warps = round_up(block, 32) / 32;
    int registers = warps * round_up(function_registers(f) * 32, 256);
    int n = t->blocks;
    n = t->threads / 32 / warps < n ? t->threads / 32 / warps : n;
    n = 65536 / registers < n ? 65536 / registers : n;
    if (shared && (size_t)t->shared / shared < (size_t)n)
        n = (int)((size_t)t->shared / shared);
    return block > f->info.max_threads ? 0 : n;
}

CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int block,
                                                                 size_t shared, unsigned flags)
{
    CUfunction f;
    if (!blocks || block <= 0 || block > 1024 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_get(context_current(), handle, &f);
    if (!result)
        *blocks = occupancy_blocks(f, block, shared);
    return result;
}

CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block,
                                                        size_t shared)
{
    return do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block, shared, 0);
}

static size_t ask_shared(CUoccupancyB2DSize shared_of, int block, size_t shared)
{
    if (!shared_of)
        return shared;
    cuda_self()->in_callback = true;
    shared = shared_of(block);
    cuda_self()->in_callback = false;
    return shared;
}

/* The block size with the most resident threads; the largest of those. */
CUresult do_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                      CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                      unsigned flags)
{
    CUfunction f;
    if (!grid || !block || limit < 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    int most = f->info.max_threads, best = 0;
    most = limit && limit < most ? limit : most;
    *grid = *block = 0;
    for (int size = round_up(most, 32); size > 0; size -= 32) {
        int threads = size < most ? size : most;
        int n = occupancy_blocks(f, threads, ask_shared(shared_of, threads, shared));
        if (n * threads > best) {
            best = n * threads;
            *block = threads;
            *grid = n * f->module->context->device->board->multiprocessors;
        }
    }
    return CUDA_SUCCESS;
}

CUresult do_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                             CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
    return do_cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

CUresult do_cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks, int block)
{
    CUfunction f;
    if (!bytes || blocks <= 0 || block <= 0 || block > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    const cuda_device *d = f->module->context->device;
    int share = d->traits->shared / blocks / 128 * 128 -
                device_attribute(d, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK) -
                (int)f->info.static_shared_bytes;
    /* 48 KB with the static part, unless cuFuncSetAttribute allowed more. */
    share = share < f->max_dynamic_shared ? share : f->max_dynamic_shared;
    *bytes = share > 0 && occupancy_blocks(f, block, 0) >= blocks ? (size_t)share : 0;
    return CUDA_SUCCESS;
}

/* The blocks of a cluster are on SMs of one GPC. How many of these a board has is not public: an SM's share of blocks
 * counts for any of them. */
CUresult do_cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config)
{
    CUfunction f;
    if (!size || !config)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_get(context_current(), handle, &f);
    if (!result)
        *size = launch_cluster_most(f) ? launch_cluster_most(f) : 1;
    return result;
}

CUresult do_cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
    CUfunction f;
    unsigned cluster[3], blocks = 1;
    if (!clusters || !config)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_get(context_current(), handle, &f);
    uint64_t block = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    if (!result && (!block || block > 1024))
        return CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = launch_cluster_of(config, cluster);
    if (!result) {
        const unsigned any[3] = {0, 0, 0};
        result = launch_check_cluster(f, cluster, any, &blocks);
    }
    if (!result)
        *clusters = occupancy_blocks(f, (int)block, config->sharedMemBytes) *
                    f->module->context->device->board->multiprocessors / (int)blocks;
    return result;
}
