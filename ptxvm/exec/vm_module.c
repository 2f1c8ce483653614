/* Modules: loads PTX text onto the device, places its variables in device memory, and finds its kernels by
 * name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "overlap.h"
#include "ops.h"
#include "ptxvm/exec/hooks.h"
#include "ptxvm/front/front.h"
#include "ptxvm/environment.h"

/* ---- Variables ---- */

static bool has_memory(const pvm_var *var)
{
    return (var->space == SPACE_GLOBAL || var->space == SPACE_CONST) && !var->is_extern;
}

static ptxvm_status allocate_variables(ptxvm_module *module)
{
    ptxvm *vm = module->vm;
    for (int i = 0; i < module->ptx->n_vars; i++) {
        const pvm_var *var = module->ptx->vars[i];
        if (!has_memory(var))
            continue;
        uint32_t flags = VM_ALLOC_MODULE | (var->space == SPACE_CONST ? VM_ALLOC_CONST : 0);
        if (vm_memory_alloc(vm->memory, var->size, var->align, flags, &module->address[i]))
            return vm_error(vm, PTXVM_ERROR_MEMORY, "no room for %s, %llu bytes", var->name,
                            (unsigned long long)var->size);
    }
    return PTXVM_OK;
}

static uint64_t reloc_value(const ptxvm_module *module, const pvm_reloc *reloc)
{
    uint64_t value = (uint64_t)reloc->addend;
    if (reloc->var)
        value += module->address[reloc->var->index];
    else if (reloc->function)
        value += vm_function_address(module, reloc->function);
    return value >> reloc->shift;
}

static ptxvm_status initialise(ptxvm_module *module, const pvm_var *var, uint64_t address)
{
    vm_memory *memory = module->vm->memory;
    ptxvm_status status = PTXVM_OK;
    if (var->init && var->size)
        status = vm_memory_write(memory, address, var->init, var->size);
    for (int i = 0; i < var->n_relocs && !status; i++) {
        const pvm_reloc *reloc = &var->relocs[i];
        uint64_t value = reloc_value(module, reloc);
        uint8_t bytes[8];
        for (int k = 0; k < 8; k++)
            bytes[k] = (uint8_t)(value >> 8 * k);
        status = vm_memory_write(memory, address + reloc->offset, bytes, (uint64_t)reloc->size);
    }
    return status;
}

static ptxvm_status initialise_variables(ptxvm_module *module)
{
    ptxvm_status status = allocate_variables(module);
    for (int i = 0; i < module->ptx->n_vars && !status; i++)
        if (has_memory(module->ptx->vars[i]))
            status = initialise(module, module->ptx->vars[i], module->address[i]);
    return status;
}

/* ---- Loading ---- */

static ptxvm_status parse_status(const pvm_error *error)
{
    switch (error->kind) {
    case PVM_ERROR_UNSUPPORTED_VERSION:
        return PTXVM_ERROR_UNSUPPORTED_VERSION;
    case PVM_ERROR_UNSUPPORTED:
        return PTXVM_ERROR_UNSUPPORTED;
    case PVM_ERROR_TARGET:
        return PTXVM_ERROR_TARGET;
    case PVM_ERROR_MEMORY:
        return PTXVM_ERROR_MEMORY;
    default:
        return PTXVM_ERROR_PTX;
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(ptxvm_kernel *const *)a)->function->name, (*(ptxvm_kernel *const *)b)->function->name);
}

static int compare_with_name(const void *name, const void *kernel)
{
    return strcmp(name, (*(ptxvm_kernel *const *)kernel)->function->name);
}

static bool list_kernels(ptxvm_module *module)
{
    const pvm_module *ptx = module->ptx;
    module->kernels = calloc((size_t)ptx->n_functions + 1, sizeof *module->kernels);
    module->by_name = calloc((size_t)ptx->n_functions + 1, sizeof(ptxvm_kernel *));
    module->address = calloc((size_t)ptx->n_vars + 1, sizeof *module->address);
    module->function_stamp = calloc((size_t)ptx->n_functions + 1, sizeof *module->function_stamp);
    module->var_stamp = calloc((size_t)ptx->n_vars + 1, sizeof *module->var_stamp);
    module->list_stamp = calloc((size_t)ptx->n_call_lists + 1, sizeof *module->list_stamp);
    if (!module->kernels || !module->by_name || !module->address || !module->function_stamp ||
        !module->var_stamp || !module->list_stamp)
        return false;
    for (int i = 0; i < ptx->n_functions; i++)
        if (ptx->functions[i]->is_entry && ptx->functions[i]->has_body)
            module->kernels[module->n_kernels++] =
                (ptxvm_kernel){.module = module, .function = ptx->functions[i]};
    for (int i = 0; i < module->n_kernels; i++)
        module->by_name[i] = &module->kernels[i];
    qsort(module->by_name, (size_t)module->n_kernels, sizeof(ptxvm_kernel *), compare_names);
    for (int i = 0; i < ptx->n_vars; i++)
        module->const_bytes += ptx->vars[i]->space == SPACE_CONST ? ptx->vars[i]->size : 0;
    return vm_uses_list(module);
}

static ptxvm_status check_target(ptxvm *vm, const pvm_module *ptx)
{
    pvm_target t = ptx->target, d = vm->device;
    if (!pvm_target_runs_on(t, d))
        return vm_error(vm, PTXVM_ERROR_TARGET, "PTX for sm_%d%.1s does not run on sm_%d%.1s", t.sm,
                        &t.suffix, d.sm, &d.suffix);
    if (ptx->address_bits == 32)
        return vm_error(vm, PTXVM_ERROR_UNSUPPORTED, ".address_size 32: addresses have 64 bits here");
    return PTXVM_OK;
}

/* The parameters of the system's functions are fixed: a different declaration must not reach them. */
static ptxvm_status check_builtins(const ptxvm_module *module)
{
    for (int i = 0; i < module->ptx->n_functions; i++) {
        const pvm_function *f = module->ptx->functions[i];
        const char *expected = f->has_body || f->is_entry ? NULL : vm_builtin_mismatch(f);
        if (expected)
            return vm_error(module->vm, PTXVM_ERROR_PTX,
                            "%d:1: %s has other parameters or results than the system's: it is %s", f->line,
                            f->name, expected);
    }
    return PTXVM_OK;
}

ptxvm_status ptxvm_module_load(ptxvm *vm, const char *text, size_t length, ptxvm_module **module)
{
    PTXVM_DEFAULT_ENVIRONMENT();
    if (!vm || !text || !module)
        return PTXVM_ERROR_ARGUMENT;
    *module = NULL;
    pvm_error error = {.kind = PVM_OK};
    pvm_module *ptx = pvm_module_parse_with(text, length, NULL, vm->config.limits, &error);
    if (!ptx)
        return vm_error(vm, parse_status(&error), "%s", error.message);
    ptxvm_module *m = calloc(1, sizeof *m);
    ptxvm_status status = m ? check_target(vm, ptx) : PTXVM_ERROR_MEMORY;
    if (status) {
        pvm_module_free(ptx);
        free(m);
        return status;
    }
    *m = (ptxvm_module){.vm = vm, .ptx = ptx, .first_function = vm->n_functions, .next = vm->modules};
    vm->modules = m;
    vm->n_functions += (uint64_t)ptx->n_functions;
    status =
        list_kernels(m) ? check_builtins(m) : vm_error(vm, PTXVM_ERROR_MEMORY, "the host has no memory left");
    status = status ? status : initialise_variables(m);
    status = status ? status : vm_kernels_measure(m);
    if (status) {
        ptxvm_module_unload(m);
        return status;
    }
    *module = m;
    return PTXVM_OK;
}

void ptxvm_module_unload(ptxvm_module *module)
{
    if (!module)
        return;
    ptxvm *vm = module->vm;
    vm_report_clear(vm); /* it refers to functions and texts of the module */
    vm_checks_forget(vm, module);
    vm_overlap_drop(vm);
    for (ptxvm_module **p = &vm->modules; *p; p = &(*p)->next)
        if (*p == module) {
            *p = module->next;
            break;
        }
    /* from the last to the first: each leaves a sorted table, from which only those behind it have to move */
    for (int i = module->address ? module->ptx->n_vars : 0; i-- > 0;)
        if (module->address[i])
            vm_memory_free(vm->memory, module->address[i]);
    for (int i = 0; i < module->n_kernels; i++)
        vm_kernel_free(module->kernels[i].decoded);
    free(module->kernels);
    free(module->by_name);
    free(module->address);
    free(module->function_stamp);
    free(module->var_stamp);
    free(module->list_stamp);
    free(module->uses);
    vm_pool_destroy(module->uses_pool);
    pvm_module_free(module->ptx);
    free(module);
}

/* ---- Names ---- */

uint64_t vm_function_address(const ptxvm_module *module, const pvm_function *function)
{
    return VM_CODE_BASE + VM_CODE_STEP * (module->first_function + (uint64_t)function->index);
}

ptxvm_status vm_kernel_ready(ptxvm_kernel *kernel)
{
    ptxvm_status status = PTXVM_OK;
    if (!kernel->decoded)
        kernel->decoded = vm_kernel_decode(kernel->module, kernel->function, &status);
    return status;
}

ptxvm_status ptxvm_module_kernel(ptxvm_module *module, const char *name, ptxvm_kernel **kernel)
{
    if (!module || !name || !kernel)
        return PTXVM_ERROR_ARGUMENT;
    *kernel = NULL;
    ptxvm_kernel *const *found =
        bsearch(name, module->by_name, (size_t)module->n_kernels, sizeof(ptxvm_kernel *), compare_with_name);
    if (!found)
        return vm_error(module->vm, PTXVM_ERROR_NOT_FOUND, "the module has no kernel %s", name);
    ptxvm_status status = vm_kernel_ready(*found);
    *kernel = status ? NULL : *found;
    return status;
}

void ptxvm_module_get_info(const ptxvm_module *module, ptxvm_module_info *info)
{
    pvm_target t = module->ptx->target;
    *info = (ptxvm_module_info){.version = module->ptx->version};
    snprintf(info->target, sizeof info->target, "sm_%d%.1s", t.sm, &t.suffix);
}

int ptxvm_module_kernel_count(const ptxvm_module *module)
{
    return module ? module->n_kernels : 0;
}

ptxvm_kernel *ptxvm_module_kernel_at(ptxvm_module *module, int index)
{
    return module && index >= 0 && index < module->n_kernels ? &module->kernels[index] : NULL;
}

ptxvm_status ptxvm_module_global(ptxvm_module *module, const char *name, ptxvm_address *address,
                                 uint64_t *bytes)
{
    if (!module || !name)
        return PTXVM_ERROR_ARGUMENT;
    for (int i = 0; i < module->ptx->n_vars; i++) {
        const pvm_var *var = module->ptx->vars[i];
        if (!has_memory(var) || strcmp(var->name, name) != 0)
            continue;
        if (address)
            *address = module->address[i];
        if (bytes)
            *bytes = var->size;
        return PTXVM_OK;
    }
    return vm_error(module->vm, PTXVM_ERROR_NOT_FOUND, "the module has no variable %s in .global or .const",
                    name);
}
