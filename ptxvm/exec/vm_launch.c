/* Validates launches: the needs of a kernel, the limits of an SM. */
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "ptxvm/exec/hooks.h"
#include "ptxvm/environment.h"
#include "ptxvm/sm.h"

#define MAX_THREADS 1024

/* Shared memory per block, static and dynamic together, with opt-in to more than 48 KiB. */
static uint64_t shared_limit(int sm)
{
    const sm_traits *traits = pvm_sm_traits(sm);
    return traits ? (uint64_t)traits->shared_optin : VM_STATIC_SHARED;
}

/* ---- The needs of a kernel ---- */

static int max_threads(const pvm_function *f)
{
    int64_t n = 1;
    if (!f->maxntid[0])
        return MAX_THREADS;
    for (int i = 0; i < 3; i++)
        n *= f->maxntid[i] ? f->maxntid[i] : 1;
    return n < MAX_THREADS ? (int)n : MAX_THREADS;
}

void ptxvm_kernel_get_info(const ptxvm_kernel *kernel, ptxvm_kernel_info *info)
{
    const pvm_function *f = kernel->function;
    *info = (ptxvm_kernel_info){.name = f->name,
                                .n_params = f->n_params,
                                .param_bytes = f->param_bytes,
                                .registers = max_threads(f) > 512 ? 32 : 64,
                                .max_threads = max_threads(f),
                                .static_shared_bytes = kernel->static_shared,
                                .local_bytes = vm_local_bytes(f),
                                .const_bytes = kernel->module->const_bytes,
                                .reqntid = {f->reqntid[0], f->reqntid[1], f->reqntid[2]},
                                .explicit_cluster = f->explicit_cluster};
    memcpy(info->reqnctapercluster, f->reqnctapercluster, sizeof info->reqnctapercluster);
}

bool ptxvm_kernel_param(const ptxvm_kernel *kernel, int index, uint64_t *offset, uint64_t *bytes)
{
    if (!kernel || index < 0 || index >= kernel->function->n_params)
        return false;
    const pvm_var *var = kernel->function->params[index];
    if (offset)
        *offset = var->offset;
    if (bytes)
        *bytes = var->size;
    return true;
}

bool ptxvm_kernel_get_param(const ptxvm_kernel *kernel, int index, ptxvm_param_info *info)
{
    if (!kernel || !info || index < 0 || index >= kernel->function->n_params)
        return false;
    const pvm_var *var = kernel->function->params[index];
    uint64_t element = (uint64_t)pvm_type_bits(var->type) / 8;
    *info = (ptxvm_param_info){.name = var->name,
                               .type = pvm_type_name(var->type) + 1, /* without its dot */
                               .offset = var->offset,
                               .bytes = var->size,
                               .align = var->align,
                               .elements = var->size / element,
                               .is_pointer = var->is_pointer};
    return true;
}

/* ---- Limits ---- */

static ptxvm_status check_grid(ptxvm *vm, const ptxvm_launch_config *c)
{
    static const uint32_t grid_max[3] = {2147483647, 65535, 65535}, block_max[3] = {1024, 1024, 64};
    for (int i = 0; i < 3; i++) {
        if (!c->grid[i] || c->grid[i] > grid_max[i])
            return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                            "a grid of (%u,%u,%u) blocks: each must be 1 to (%u,%u,%u)", c->grid[0],
                            c->grid[1], c->grid[2], grid_max[0], grid_max[1], grid_max[2]);
        if (!c->block[i] || c->block[i] > block_max[i])
            return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                            "a block of (%u,%u,%u) threads: each must be 1 to (%u,%u,%u)", c->block[0],
                            c->block[1], c->block[2], block_max[0], block_max[1], block_max[2]);
    }
    return PTXVM_OK;
}

static ptxvm_status check_block(ptxvm *vm, const pvm_function *f, const ptxvm_launch_config *c)
{
    uint32_t n = c->block[0] * c->block[1] * c->block[2];
    if (n > (uint32_t)max_threads(f))
        return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE, "a block of %u threads: %s takes up to %d", n, f->name,
                        max_threads(f));
    for (int i = 0; i < 3 && f->reqntid[0]; i++) {
        uint32_t required = f->reqntid[i] ? (uint32_t)f->reqntid[i] : 1;
        if (c->block[i] != required)
            return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                            "a block of (%u,%u,%u) threads: %s has .reqntid %d, %d, %d", c->block[0],
                            c->block[1], c->block[2], f->name, f->reqntid[0], f->reqntid[1], f->reqntid[2]);
    }
    return PTXVM_OK;
}

/* The clusters of a launch: as asked for, as the kernel requires, or of one block. */
static void find_cluster(const pvm_function *f, ptxvm_launch_config *c)
{
    for (int i = 0; i < 3; i++) {
        uint32_t required = f->reqnctapercluster[0] ? (uint32_t)f->reqnctapercluster[i] : 0;
        c->cluster[i] = c->cluster[i] ? c->cluster[i] : required ? required : 1;
    }
}

/* With .blocksareclusters the grid of a launch counts clusters. */
static ptxvm_status grid_of_clusters(ptxvm *vm, const pvm_function *f, ptxvm_launch_config *c)
{
    for (int i = 0; i < 3 && f->blocks_are_clusters; i++) {
        if (c->grid[i] > UINT32_MAX / c->cluster[i])
            return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE, "a grid of (%u,%u,%u) clusters is too large",
                            c->grid[0], c->grid[1], c->grid[2]);
        c->grid[i] *= c->cluster[i];
    }
    return PTXVM_OK;
}

static ptxvm_status check_cluster_size(ptxvm *vm, const pvm_function *f, const ptxvm_launch_config *c)
{
    const uint32_t *n = c->cluster;
    const int most = vm->traits->cluster;
    bool small = n[0] <= VM_CLUSTER_BLOCKS && n[1] <= VM_CLUSTER_BLOCKS && n[2] <= VM_CLUSTER_BLOCKS;
    uint32_t blocks = small ? n[0] * n[1] * n[2] : UINT32_MAX;
    if (blocks > 1 && !most)
        return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE, "sm_%d has no clusters", vm->device.sm);
    if (blocks > 1 && blocks > (uint32_t)most)
        return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                        "a cluster of (%u,%u,%u) blocks: sm_%d has clusters of up to %d", n[0], n[1], n[2],
                        vm->device.sm, most);
    if (f->maxclusterrank && blocks > (uint32_t)f->maxclusterrank)
        return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE, "a cluster of %u blocks: %s has .maxclusterrank %d",
                        blocks, f->name, f->maxclusterrank);
    return PTXVM_OK;
}

static ptxvm_status check_cluster(ptxvm *vm, const pvm_function *f, const ptxvm_launch_config *c)
{
    for (int i = 0; i < 3; i++) {
        uint32_t required = f->reqnctapercluster[i] ? (uint32_t)f->reqnctapercluster[i] : 1;
        if (f->reqnctapercluster[0] && c->cluster[i] != required)
            return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                            "a cluster of (%u,%u,%u) blocks: %s has .reqnctapercluster %d, %d, %d",
                            c->cluster[0], c->cluster[1], c->cluster[2], f->name, f->reqnctapercluster[0],
                            f->reqnctapercluster[1], f->reqnctapercluster[2]);
        if (c->grid[i] % c->cluster[i])
            return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                            "a grid of (%u,%u,%u) blocks is not made of clusters of (%u,%u,%u)", c->grid[0],
                            c->grid[1], c->grid[2], c->cluster[0], c->cluster[1], c->cluster[2]);
    }
    return check_cluster_size(vm, f, c);
}

static ptxvm_status check_shared(ptxvm *vm, const vm_kernel *kernel, const ptxvm_launch_config *c)
{
    uint64_t limit = shared_limit(vm->device.sm);
    if (c->shared_bytes > limit || kernel->dynamic_shared_offset + c->shared_bytes > limit)
        return vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                        "%llu bytes of shared memory, %llu of them dynamic: sm_%d has %llu for a block",
                        (unsigned long long)(kernel->dynamic_shared_offset + c->shared_bytes),
                        (unsigned long long)c->shared_bytes, vm->device.sm, (unsigned long long)limit);
    return PTXVM_OK;
}

static ptxvm_status check_params(ptxvm *vm, const pvm_function *f, const void *params, uint64_t bytes)
{
    if (bytes < f->param_bytes || (f->param_bytes && !params))
        return vm_error(vm, PTXVM_ERROR_ARGUMENT, "%s has %llu bytes of parameters, %llu were given", f->name,
                        (unsigned long long)f->param_bytes, (unsigned long long)(params ? bytes : 0));
    return PTXVM_OK;
}

/* The registers of a thread when the kernel starts, as far as its directives determine them: .maxnreg, or an SM's share of
 * .maxntid and .minnctapersm. */
static int registers_at_start(const pvm_function *f)
{
    enum { OF_SM = 65536, MOST = 255 };
    if (f->maxnreg)
        return f->maxnreg;
    if (!f->maxntid[0] && !f->reqntid[0])
        return 0;
    int64_t threads = f->minnctapersm ? f->minnctapersm : 1;
    for (int i = 0; i < 3; i++) {
        int n = f->maxntid[0] ? f->maxntid[i] : f->reqntid[i];
        threads *= n ? n : 1;
    }
    int64_t share = OF_SM / threads / 8 * 8;
    return share > MOST ? MOST / 8 * 8 : (int)share;
}

/* ---- The launch ---- */

/* A cooperative launch has a workspace for its barriers: cooperative groups find it through %envreg1 and
 * 2. */
static ptxvm_status find_workspace(ptxvm *vm, vm_launch *launch)
{
    enum { WORKSPACE_BYTES = 1024 };
    ptxvm_status status = PTXVM_OK;
    if (!launch->cooperative)
        return status;
    if (!vm->workspace)
        status = vm_memory_alloc(vm->memory, WORKSPACE_BYTES, 256, VM_ALLOC_MODULE, &vm->workspace);
    else
        status = vm_memory_fill(vm->memory, vm->workspace, 0, WORKSPACE_BYTES);
    launch->workspace = vm->workspace;
    return status ? vm_error(vm, status, "no room for the workspace of a cooperative launch") : status;
}

/* Shared memory is allocated in units of 128 bytes, on sm_75 of 256. */
static uint64_t shared_reach(const ptxvm *vm, uint64_t bytes)
{
    uint64_t grain = vm->device.sm >= 80 ? 128 : 256;
    return vm->config.checks & PTXVM_CHECK_MEMORY ? bytes : (bytes + grain - 1) / grain * grain;
}

static void fill_launch(vm_launch *launch, const vm_kernel *kernel, const ptxvm_launch_config *c)
{
    launch->kernel = kernel;
    launch->registers = registers_at_start(kernel->function);
    launch->n_blocks = 1;
    launch->n_threads = launch->n_cluster = 1;
    for (int i = 0; i < 3; i++) {
        launch->grid[i] = c->grid[i];
        launch->dim[i] = c->block[i];
        launch->cluster[i] = c->cluster[i];
        launch->n_cluster *= (int)c->cluster[i];
        launch->n_blocks *= c->grid[i];
        launch->n_threads *= (int)c->block[i];
    }
    launch->n_warps = (launch->n_threads + WARP - 1) / WARP;
    launch->static_shared = kernel->static_shared;
    launch->dynamic_shared = c->shared_bytes;
    launch->shared_bytes =
        c->shared_bytes ? kernel->dynamic_shared_offset + c->shared_bytes : kernel->static_shared;
    launch->shared_reach = shared_reach(launch->vm, launch->shared_bytes);
    launch->cooperative = c->cooperative;
    launch->programmatic = c->programmatic && launch->vm->device.sm >= 90;
    launch->serial = kernel->serial || c->cooperative;
}

static ptxvm_status check_sizes(ptxvm *vm, const pvm_function *f, const ptxvm_launch_config *asked,
                                ptxvm_launch_config *c)
{
    ptxvm_status status = check_grid(vm, asked);
    if (f->explicit_cluster && !f->reqnctapercluster[0] && !asked->cluster[0])
        status = vm_error(vm, PTXVM_ERROR_LAUNCH_SIZE,
                          "%s has .explicitcluster: its launch must give the size of the clusters", f->name);
    *c = *asked;
    find_cluster(f, c);
    if (!status)
        status = check_block(vm, f, c);
    if (!status)
        status = grid_of_clusters(vm, f, c);
    if (!status)
        status = check_grid(vm, c);
    return status ? status : check_cluster(vm, f, c);
}

ptxvm_status ptxvm_launch(ptxvm *vm, ptxvm_kernel *kernel, const ptxvm_launch_config *config,
                          const void *params, uint64_t param_bytes)
{
    PTXVM_DEFAULT_ENVIRONMENT();
    if (!vm || !kernel || !config || kernel->module->vm != vm)
        return PTXVM_ERROR_ARGUMENT;
    ptxvm_launch_config full;
    vm_report_clear(vm);
    vm_checks_clear(vm);
    vm->checks->module = kernel->module;
    ptxvm_status status = vm_kernel_ready(kernel);
    if (!status)
        status = check_sizes(vm, kernel->function, config, &full);
    if (!status)
        status = check_shared(vm, kernel->decoded, &full);
    if (!status)
        status = check_params(vm, kernel->function, params, param_bytes);
    if (status)
        return status;
    vm_launch launch = {.vm = vm,
                        .params = params,
                        .param_bytes = kernel->function->param_bytes,
                        .step_limit = vm->config.step_limit,
                        .stack_limit = vm->config.stack_bytes,
                        .grid_id = ++vm->launches};
    launch.explicit_cluster = config->cluster[0] || kernel->function->reqnctapercluster[0];
    fill_launch(&launch, kernel->decoded, &full);
    status = find_workspace(vm, &launch);
    return status ? status : vm_launch_run(&launch);
}
