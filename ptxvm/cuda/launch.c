/* Launches: checked when the call is made, and run when the stream reaches them. */
#include "internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parameters ---- */

static CUresult gather(const struct CUfunc_st *f, void **params, uint8_t *block)
{
    for (int i = 0; i < f->info.n_params; i++) {
        uint64_t offset, bytes;
        ptxvm_kernel_param(f->vm, i, &offset, &bytes);
        if (!params[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(block + offset, params[i], bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult take_buffer(const struct CUfunc_st *f, void **extra, uint8_t *block)
{
    const void *buffer = NULL;
    const size_t *bytes = NULL;
    for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!buffer || !bytes || *bytes < f->info.param_bytes)
        return cuda_log(CUDA_ERROR_INVALID_VALUE, "%s takes %llu bytes of parameters, the buffer has %zu",
                        f->info.name, (unsigned long long)f->info.param_bytes, bytes ? *bytes : 0);
    memcpy(block, buffer, f->info.param_bytes);
    return CUDA_SUCCESS;
}

static CUresult take_params(const struct CUfunc_st *f, void **params, void **extra, cuda_work *work)
{
    size_t n = (size_t)f->info.n_params, bytes = f->info.param_bytes;
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (n && !params && !extra)
        return CUDA_ERROR_INVALID_VALUE;
    work->kernel.param_bytes = bytes;
    work->kernel.params = calloc(1, bytes + 1);
    work->kernel.pointers = calloc(n + 1, sizeof(void *));
    if (!work->kernel.params || !work->kernel.pointers)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n; i++) {
        uint64_t offset, size;
        ptxvm_kernel_param(f->vm, (int)i, &offset, &size);
        work->kernel.pointers[i] = work->kernel.params + offset;
    }
    if (!n)
        return CUDA_SUCCESS;
    return params ? gather(f, params, work->kernel.params) : take_buffer(f, extra, work->kernel.params);
}

/* ---- Limits ---- */

static CUresult check_size(const struct CUfunc_st *f, const unsigned grid[3], const unsigned block[3])
{
    static const unsigned grid_max[3] = {2147483647, 65535, 65535}, block_max[3] = {1024, 1024, 64};
    for (int i = 0; i < 3; i++)
        if (!grid[i] || grid[i] > grid_max[i] || !block[i] || block[i] > block_max[i])
            return cuda_log(CUDA_ERROR_INVALID_VALUE,
                            "%s: a grid of (%u,%u,%u) blocks of (%u,%u,%u) threads is out of range",
                            f->info.name, grid[0], grid[1], grid[2], block[0], block[1], block[2]);
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > 1024)
        return cuda_log(CUDA_ERROR_INVALID_VALUE, "%s: a block of %llu threads, 1024 is the most",
                        f->info.name, (unsigned long long)threads);
    if (threads > (uint64_t)f->info.max_threads)
        return cuda_log(CUDA_ERROR_INVALID_VALUE, "%s: a block of %llu threads, it takes up to %d",
                        f->info.name, (unsigned long long)threads, f->info.max_threads);
    for (int i = 0; i < 3 && f->info.reqntid[0]; i++)
        if (block[i] != (unsigned)(f->info.reqntid[i] ? f->info.reqntid[i] : 1))
            return cuda_log(CUDA_ERROR_INVALID_VALUE,
                            "%s: a block of (%u,%u,%u) threads, it has .reqntid %d, %d, %d", f->info.name,
                            block[0], block[1], block[2], f->info.reqntid[0], f->info.reqntid[1],
                            f->info.reqntid[2]);
    return CUDA_SUCCESS;
}

static CUresult check_shared(const struct CUfunc_st *f, unsigned shared)
{
    if (shared > (unsigned)f->max_dynamic_shared)
        return cuda_log(CUDA_ERROR_INVALID_VALUE,
                        "%s: %u bytes of dynamic shared memory, %d are allowed; cuFuncSetAttribute with "
                        "MAX_DYNAMIC_SHARED_SIZE_BYTES allows more",
                        f->info.name, shared, f->max_dynamic_shared);
    return CUDA_SUCCESS;
}

static CUresult check_cooperative(const struct CUfunc_st *f, const cuda_work *work)
{
    const unsigned *g = work->kernel.grid, *b = work->kernel.block;
    uint64_t blocks = (uint64_t)g[0] * g[1] * g[2];
    uint64_t most = (uint64_t)occupancy_blocks(f, (int)(b[0] * b[1] * b[2]), work->kernel.shared) *
                    (uint64_t)f->module->context->device->board->multiprocessors;
    if (work->kernel.cooperative && blocks > most)
        return cuda_log(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                        "%s: %llu blocks in a cooperative launch, %llu fit on the device", f->info.name,
                        (unsigned long long)blocks, (unsigned long long)most);
    return CUDA_SUCCESS;
}

/* The clusters of a launch: those of the attribute, or of .reqnctapercluster, or of one block. */
static void cluster_of(const struct CUfunc_st *f, const unsigned given[3], unsigned cluster[3])
{
    for (int i = 0; i < 3; i++) {
        unsigned required = f->info.reqnctapercluster[0] ? (unsigned)f->info.reqnctapercluster[i] : 0;
        cluster[i] = given[i] ? given[i] : required ? required : 1;
    }
}

int launch_cluster_most(const struct CUfunc_st *f)
{
    enum { PORTABLE = 8 };
    int most = f->module->context->device->traits->cluster;
    return most > PORTABLE && !f->non_portable_cluster ? PORTABLE : most;
}

CUresult launch_check_cluster(const struct CUfunc_st *f, const unsigned given[3], const unsigned grid[3],
                              unsigned *blocks)
{
    unsigned n[3];
    int most = launch_cluster_most(f);
    cluster_of(f, given, n);
    *blocks = n[0] <= 16 && n[1] <= 16 && n[2] <= 16 ? n[0] * n[1] * n[2] : UINT_MAX;
    if (*blocks > 1 && *blocks > (unsigned)most)
        return cuda_log(
            CUDA_ERROR_INVALID_CLUSTER_SIZE,
            "%s: clusters of (%u,%u,%u) blocks, sm_%d has up to %d (more than 8 need the attribute "
            "NON_PORTABLE_CLUSTER_SIZE_ALLOWED)",
            f->info.name, n[0], n[1], n[2], f->module->context->device->traits->sm, most);
    for (int i = 0; i < 3; i++)
        if (grid[i] % n[i])
            return cuda_log(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                            "%s: a grid of (%u,%u,%u) blocks is not made of clusters of (%u,%u,%u)",
                            f->info.name, grid[0], grid[1], grid[2], n[0], n[1], n[2]);
    return CUDA_SUCCESS;
}

CUresult launch_set_cluster(cuda_work *work, unsigned x, unsigned y, unsigned z)
{
    const unsigned cluster[3] = {x, y, z};
    for (int i = 0; i < 3; i++)
        if (!cluster[i] || cluster[i] > 16)
            return cuda_log(CUDA_ERROR_INVALID_CLUSTER_SIZE, "clusters of (%u,%u,%u) blocks", cluster[0],
                            cluster[1], cluster[2]);
    memcpy(work->kernel.cluster, cluster, sizeof work->kernel.cluster);
    return CUDA_SUCCESS;
}

CUresult launch_fill(CUcontext context, CUfunction handle, const unsigned grid[3], const unsigned block[3],
                     unsigned shared, void **params, void **extra, cuda_work *work)
{
    CUfunction f;
    cuda_work asked = *work;
    unsigned in_cluster;
    CUresult result = function_get(context, handle, &f);
    if (result)
        return result;
    result = check_size(f, grid, block);
    if (!result)
        result = check_shared(f, shared);
    if (!result)
        result = launch_check_cluster(f, asked.kernel.cluster, grid, &in_cluster);
    if (result)
        return result;
    *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_KERNEL,
                        .context = context,
                        .kernel = {.function = handle,
                                   .shared = shared,
                                   .cooperative = asked.kernel.cooperative,
                                   .programmatic = asked.kernel.programmatic}};
    memcpy(work->kernel.cluster, asked.kernel.cluster, sizeof work->kernel.cluster);
    memcpy(work->kernel.grid, grid, sizeof work->kernel.grid);
    memcpy(work->kernel.block, block, sizeof work->kernel.block);
    result = check_cooperative(f, work);
    if (!result)
        result = take_params(f, params, extra, work);
    if (result)
        work_clear(work);
    return result;
}

/* Logs all findings of the launch, and how many more there were. */
static void log_findings(ptxvm *vm, CUresult code)
{
    int n = 0;
    uint64_t total = 0, told = 0;
    const ptxvm_finding *findings = ptxvm_findings(vm, &n, &total);
    for (int i = 0; i < n; i++) {
        cuda_log(code, "%s", findings[i].message);
        told += findings[i].count;
    }
    if (!n)
        cuda_log(code, "%s", ptxvm_last_error(vm));
    else if (total > told)
        cuda_log(code, "and %llu more", (unsigned long long)(total - told));
}

CUresult launch_run(cuda_work *work)
{
    CUfunction f;
    if (function_get(work->context, work->kernel.function, &f))
        return cuda_log(CUDA_ERROR_LAUNCH_FAILED, "a kernel whose module was unloaded");
    ptxvm *vm = work->context->device->vm;
    ptxvm_launch_config config = {.shared_bytes = work->kernel.shared,
                                  .cooperative = work->kernel.cooperative,
                                  .programmatic = work->kernel.programmatic};
    memcpy(config.grid, work->kernel.grid, sizeof config.grid);
    memcpy(config.block, work->kernel.block, sizeof config.block);
    memcpy(config.cluster, work->kernel.cluster, sizeof config.cluster);
    ptxvm_status status = ptxvm_launch(vm, f->vm, &config, work->kernel.params, work->kernel.param_bytes);
    counters_write(vm);
    if (!status)
        return CUDA_SUCCESS;
    CUresult code = status_code(status);
    if (code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_NOT_SUPPORTED)
        code = CUDA_ERROR_LAUNCH_FAILED;
    log_findings(vm, code);
    return code;
}

/* ---- The calls ---- */

/* `asked`: what attributes say of the launch. */
static CUresult launch(CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                       CUstream handle, void **params, void **extra, const cuda_work *asked)
{
    CUstream s;
    cuda_work work = *asked;
    CUresult result = stream_get(handle, &s);
    if (!result)
        result = launch_fill(s->context, function, grid, block, shared, params, extra, &work);
    if (result)
        return result;
    CUcontext context = s->context;
    result = stream_submit(s, &work);
    return result ? result : context_take_missed(context);
}

CUresult do_cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                           void **extra)
{
    return launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream, params, extra,
                  &(cuda_work){.kernel = {.cooperative = false}});
}

CUresult do_cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                      unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                      void **params)
{
    return launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream, params, NULL,
                  &(cuda_work){.kernel = {.cooperative = true}});
}

/* Attributes that only affect performance are accepted and have no effect. */
static CUresult read_attribute(const CUlaunchAttribute *a, cuda_work *asked, CUevent *after)
{
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        asked->kernel.cooperative = a->value.cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return launch_set_cluster(asked, a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        asked->kernel.programmatic = a->value.programmaticStreamSerializationAllowed != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        *after = a->value.programmaticEvent.event;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        *after = a->value.launchCompletionEvent.event;
        return CUDA_SUCCESS;
    default:
        return (unsigned)a->id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING ? CUDA_ERROR_INVALID_VALUE
                                                                                    : CUDA_SUCCESS;
    }
}

static CUresult read_attributes(const CUlaunchConfig *c, cuda_work *asked, CUevent *after)
{
    CUresult result = c->numAttrs && !c->attrs ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (unsigned i = 0; !result && i < c->numAttrs; i++)
        result = read_attribute(&c->attrs[i], asked, after);
    return result;
}

CUresult launch_cluster_of(const CUlaunchConfig *c, unsigned cluster[3])
{
    CUevent after;
    cuda_work asked = {.kernel = {.cooperative = false}};
    CUresult result = read_attributes(c, &asked, &after);
    memcpy(cluster, asked.kernel.cluster, sizeof asked.kernel.cluster);
    return result;
}

CUresult do_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params, void **extra)
{
    cuda_work asked = {.kernel = {.cooperative = false}};
    CUevent after = NULL;
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = read_attributes(c, &asked, &after);
    if (!result)
        result = launch(function, (unsigned[]){c->gridDimX, c->gridDimY, c->gridDimZ},
                        (unsigned[]){c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, c->hStream,
                        params, extra, &asked);
    return result || !after ? result : do_cuEventRecord(after, c->hStream);
}

/* ---- The original interface of CUDA 2: the function stores its block and parameters ---- */

CUresult do_cuFuncSetBlockShape(CUfunction handle, int x, int y, int z)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    f->block[0] = (unsigned)x;
    f->block[1] = (unsigned)y;
    f->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncSetSharedSize(CUfunction handle, unsigned bytes)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (!result)
        f->shared = bytes;
    return result;
}

CUresult do_cuParamSetSize(CUfunction handle, unsigned bytes)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    uint8_t *params = bytes <= 65536 ? calloc(1, bytes + 1) : NULL;
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(params, f->params ? f->params : params, f->param_bytes < bytes ? f->param_bytes : bytes);
    free(f->params);
    f->params = params;
    f->param_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult do_cuParamSetv(CUfunction handle, int offset, void *value, unsigned bytes)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    if (!value || offset < 0 || (uint64_t)offset + bytes > 65536)
        return CUDA_ERROR_INVALID_VALUE;
    if ((size_t)offset + bytes > f->param_bytes)
        result = do_cuParamSetSize(handle, (unsigned)offset + bytes);
    if (!result)
        memcpy(f->params + offset, value, bytes);
    return result;
}

CUresult do_cuParamSeti(CUfunction function, int offset, unsigned value)
{
    return do_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult do_cuParamSetf(CUfunction function, int offset, float value)
{
    return do_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult do_cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream)
{
    CUfunction f;
    CUresult result = function_get(context_current(), handle, &f);
    if (result)
        return result;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, f->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &f->param_bytes,
                     CU_LAUNCH_PARAM_END};
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(handle, (unsigned[]){(unsigned)width, (unsigned)height, 1}, f->block, f->shared, stream,
                  NULL, f->info.n_params ? extra : NULL, &(cuda_work){.kernel = {.cooperative = false}});
}

CUresult do_cuLaunchGrid(CUfunction function, int width, int height)
{
    return do_cuLaunchGridAsync(function, width, height, NULL);
}

CUresult do_cuLaunch(CUfunction function)
{
    return do_cuLaunchGridAsync(function, 1, 1, NULL);
}
