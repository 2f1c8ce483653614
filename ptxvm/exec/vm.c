/* The device and its modules: the interface of ptxvm.h except launches (vm_launch.c) and reports
 * (report.c). */
#include "vm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boards/boards.h"
#include "decode.h"
#include "overlap.h"
#include "ptxvm/exec/hooks.h"
#include "ptxvm/sm.h"

#define BIG            (UINT64_C(2) << 20) /* a GPU's page: allocations this large are aligned to it */
#define DEFAULT_SM     "sm_90a"
#define DEFAULT_MEMORY (UINT64_C(16) << 30)
#define DEFAULT_HEAP   (UINT64_C(8) << 20)
#define DEFAULT_STACK  (UINT64_C(512) << 10)

ptxvm_status vm_error(ptxvm *vm, ptxvm_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(vm->error, sizeof vm->error, format, args);
    va_end(args);
    pvm_make_printable(vm->error); /* names come from PTX and from callers */
    return status;
}

const char *ptxvm_last_error(const ptxvm *vm)
{
    return vm ? vm->error : "";
}

const char *ptxvm_status_name(ptxvm_status status)
{
    static const char *const names[] = {
        [PTXVM_OK] = "ok",
        [PTXVM_ERROR_ARGUMENT] = "wrong argument",
        [PTXVM_ERROR_MEMORY] = "out of memory",
        [PTXVM_ERROR_PTX] = "invalid PTX",
        [PTXVM_ERROR_UNSUPPORTED_VERSION] = "unsupported PTX version",
        [PTXVM_ERROR_UNSUPPORTED] = "not supported",
        [PTXVM_ERROR_TARGET] = "wrong target",
        [PTXVM_ERROR_NOT_FOUND] = "not found",
        [PTXVM_ERROR_LAUNCH_SIZE] = "launch out of limits",
        [PTXVM_ERROR_ADDRESS] = "illegal address",
        [PTXVM_ERROR_MISALIGNED] = "misaligned address",
        [PTXVM_ERROR_TRAP] = "trap",
        [PTXVM_ERROR_ASSERT] = "assertion failed",
        [PTXVM_ERROR_STEP_LIMIT] = "step limit reached",
        [PTXVM_ERROR_DEADLOCK] = "deadlock",
        [PTXVM_ERROR_EXECUTION] = "execution failed",
        [PTXVM_ERROR_CHECK] = "a check found something",
    };
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

/* ---- The device ---- */

/* The SM and the board of the configuration: either names the other, and together they must agree. */
static bool choose_device(ptxvm *v)
{
    const ptxvm_config *c = &v->config;
    char name[16];
    v->board = c->board ? board_find(c->board) : NULL;
    if (c->board && !v->board)
        return false;
    snprintf(name, sizeof name, "%s", c->sm ? c->sm : DEFAULT_SM);
    if (v->board && !c->sm)
        board_sm_name(v->board, name, sizeof name);
    if (!pvm_target_from_name(name, &v->device))
        return false;
    v->traits = pvm_sm_traits_near(v->device.sm);
    if (!v->board)
        v->board = board_of_sm(v->traits->sm);
    return !c->board || v->board->sm == v->device.sm;
}

ptxvm_status ptxvm_create(const ptxvm_config *config, ptxvm **vm)
{
    if (!vm)
        return PTXVM_ERROR_ARGUMENT;
    *vm = NULL;
    if (config && (config->address_base % (UINT64_C(1) << 32) ||
                   (config->address_base && config->address_base < VM_GLOBAL_BASE)))
        return PTXVM_ERROR_ARGUMENT;
    ptxvm *v = calloc(1, sizeof *v);
    if (!v)
        return PTXVM_ERROR_MEMORY;
    if (config)
        v->config = *config;
    if (!choose_device(v)) {
        free(v);
        return PTXVM_ERROR_TARGET;
    }
    char why[256];
    if (!ptxvm_config_read(&v->config, why, sizeof why)) {
        free(v);
        return PTXVM_ERROR_ARGUMENT;
    }
    v->config.sm = v->config.board = NULL; /* the caller may free its texts */
    v->config.memory_bytes = v->config.memory_bytes ? v->config.memory_bytes : DEFAULT_MEMORY;
    v->config.heap_bytes = v->config.heap_bytes ? v->config.heap_bytes : DEFAULT_HEAP;
    v->config.stack_bytes = v->config.stack_bytes ? v->config.stack_bytes : DEFAULT_STACK;
    if (v->config.stack_bytes > VM_LOCAL_SIZE)
        v->config.stack_bytes = VM_LOCAL_SIZE;
    v->level = lanes_best_level();
    v->memory = vm_memory_create(v->config.memory_bytes);
    v->reports = calloc(1, sizeof *v->reports);
    v->checks = calloc(1, sizeof *v->checks);
    v->overlap = vm_overlap_new();
    if (v->memory && v->config.address_base)
        v->memory->base = v->config.address_base;
    if (v->memory) {
        v->memory->checks = v->config.checks;
        v->memory->heap_limit = v->config.heap_bytes;
        v->memory->counters = v->config.counters != PTXVM_COUNTERS_OFF;
    }
    if (!v->memory || !v->reports || !v->checks || !v->overlap) {
        ptxvm_destroy(v);
        return PTXVM_ERROR_MEMORY;
    }
    *vm = v;
    return PTXVM_OK;
}

void ptxvm_destroy(ptxvm *vm)
{
    if (!vm)
        return;
    while (vm->modules)
        ptxvm_module_unload(vm->modules);
    if (vm->reports)
        vm_report_clear(vm);
    free(vm->reports);
    vm_checks_free(vm);
    vm_overlap_free(vm->overlap);
    if (vm->memory)
        vm_memory_destroy(vm->memory);
    free(vm);
}

/* ---- Memory ---- */

ptxvm_status ptxvm_alloc(ptxvm *vm, uint64_t bytes, ptxvm_address *address)
{
    if (!vm || !address)
        return PTXVM_ERROR_ARGUMENT;
    ptxvm_status status = vm_memory_alloc(vm->memory, bytes, bytes < BIG ? PTXVM_PADDING : BIG, 0, address);
    if (status)
        vm_error(vm, status, "no room for %llu bytes in a device memory of %llu", (unsigned long long)bytes,
                 (unsigned long long)vm->config.memory_bytes);
    return status;
}

ptxvm_status ptxvm_free(ptxvm *vm, ptxvm_address address)
{
    if (!vm)
        return PTXVM_ERROR_ARGUMENT;
    const vm_alloc *alloc = vm_memory_at(vm->memory, address);
    if (!alloc || alloc->flags & (VM_ALLOC_MODULE | VM_ALLOC_HEAP | VM_ALLOC_MAPPED))
        return vm_error(vm, PTXVM_ERROR_ADDRESS,
                        vm_memory_freed(vm->memory, address)
                            ? "0x%llx has been freed already"
                            : "0x%llx was not returned by ptxvm_alloc, or has been freed already",
                        (unsigned long long)address);
    return vm_memory_free(vm->memory, address);
}

void ptxvm_heap_clear(ptxvm *vm)
{
    for (int i = vm ? vm->memory->n_allocs : 0; i-- > 0;)
        if (vm->memory->allocs[i].flags & VM_ALLOC_HEAP)
            vm_memory_free(vm->memory, vm->memory->allocs[i].address);
}

uint64_t ptxvm_heap_size(const ptxvm *vm)
{
    return vm ? vm->memory->heap_limit : 0;
}

void ptxvm_heap_resize(ptxvm *vm, uint64_t bytes)
{
    if (vm)
        vm->memory->heap_limit = bytes;
}

static ptxvm_status check_copy(ptxvm *vm, ptxvm_status status, uint64_t address, uint64_t bytes)
{
    if (status)
        vm_error(vm, status, "the %llu bytes from 0x%llx on are not inside one allocation",
                 (unsigned long long)bytes, (unsigned long long)address);
    return status;
}

ptxvm_status ptxvm_write(ptxvm *vm, ptxvm_address to, const void *from, uint64_t bytes)
{
    if (!vm || (!from && bytes))
        return PTXVM_ERROR_ARGUMENT;
    vm_overlap_drop(vm);
    return bytes ? check_copy(vm, vm_memory_write(vm->memory, to, from, bytes), to, bytes) : PTXVM_OK;
}

ptxvm_status ptxvm_read(ptxvm *vm, void *to, ptxvm_address from, uint64_t bytes)
{
    if (!vm || (!to && bytes))
        return PTXVM_ERROR_ARGUMENT;
    return bytes ? check_copy(vm, vm_memory_read(vm->memory, to, from, bytes), from, bytes) : PTXVM_OK;
}

ptxvm_status ptxvm_fill(ptxvm *vm, ptxvm_address to, uint8_t value, uint64_t bytes)
{
    if (!vm)
        return PTXVM_ERROR_ARGUMENT;
    vm_overlap_drop(vm);
    return bytes ? check_copy(vm, vm_memory_fill(vm->memory, to, value, bytes), to, bytes) : PTXVM_OK;
}

bool ptxvm_holds(const ptxvm *vm, ptxvm_address address, uint64_t bytes)
{
    return vm && vm_memory_find(vm->memory, address, bytes);
}

void *ptxvm_host(ptxvm *vm, ptxvm_address address, uint64_t bytes)
{
    const vm_alloc *alloc = vm ? vm_memory_find(vm->memory, address, bytes) : NULL;
    if (alloc) { /* the host may write there unnoticed */
        vm_memory_define(vm->memory, address, bytes);
        vm_overlap_drop(vm);
    }
    return alloc ? alloc->host + (address - alloc->address) : NULL;
}

ptxvm_status ptxvm_copy(ptxvm *to_vm, ptxvm_address to, ptxvm *from_vm, ptxvm_address from, uint64_t bytes)
{
    if (!to_vm || !from_vm)
        return PTXVM_ERROR_ARGUMENT;
    const vm_alloc *target = vm_memory_find(to_vm->memory, to, bytes);
    const vm_alloc *source = vm_memory_find(from_vm->memory, from, bytes);
    if (bytes && (!target || !source))
        return check_copy(to_vm, PTXVM_ERROR_ADDRESS, target ? from : to, bytes);
    if (bytes) {
        vm_overlap_drop(to_vm);
        memmove(target->host + (to - target->address), source->host + (from - source->address), bytes);
        vm_check_region_copy(target->check, to - target->address, source->check, from - source->address,
                             bytes);
    }
    return PTXVM_OK;
}

ptxvm_status ptxvm_map(ptxvm *vm, ptxvm_address address, void *host, uint64_t bytes, uint64_t extent)
{
    if (!vm || !host)
        return PTXVM_ERROR_ARGUMENT;
    ptxvm_status status = vm_memory_map(vm->memory, address, host, bytes, extent);
    if (status)
        vm_error(vm, status, "%llu bytes cannot be mapped at 0x%llx", (unsigned long long)bytes,
                 (unsigned long long)address);
    return status;
}

ptxvm_status ptxvm_unmap(ptxvm *vm, ptxvm_address address)
{
    const vm_alloc *alloc = vm ? vm_memory_at(vm->memory, address) : NULL;
    if (!alloc || !(alloc->flags & VM_ALLOC_MAPPED))
        return PTXVM_ERROR_ADDRESS;
    return vm_memory_free(vm->memory, address);
}

void ptxvm_memory_info(const ptxvm *vm, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *total_bytes = vm->memory->limit;
    *free_bytes = vm->memory->limit - vm->memory->used;
}
