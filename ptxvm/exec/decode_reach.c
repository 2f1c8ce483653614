/* What a kernel needs: the functions that it can call, the shared memory of all of them. */
#include "decode.h"

#include <string.h>

const pvm_function *vm_find_body(const pvm_module *module, const pvm_function *function)
{
    if (function->has_body)
        return function;
    for (int i = 0; i < module->n_functions; i++) {
        const pvm_function *other = module->functions[i];
        if (other->has_body && strcmp(other->name, function->name) == 0)
            return other;
    }
    return NULL;
}

static void reach(const pvm_module *module, const pvm_function *function, bool *reached);

/* An indirect call may reach its .calltargets, or where only a prototype is known any function. */
static void reach_call(const pvm_module *module, const pvm_call *call, bool *reached)
{
    if (call->target.kind == OPERAND_FUNCTION) {
        reach(module, call->target.function, reached);
        return;
    }
    for (int i = 0; i < call->n_candidates; i++)
        reach(module, call->candidates[i], reached);
    for (int i = 0; i < module->n_functions && !call->candidates; i++)
        if (!module->functions[i]->is_entry && module->functions[i]->has_body)
            reach(module, module->functions[i], reached);
}

static void reach(const pvm_module *module, const pvm_function *function, bool *reached)
{
    function = vm_find_body(module, function);
    if (!function || reached[function->index])
        return;
    reached[function->index] = true;
    for (int i = 0; i < function->n_insts; i++)
        if (function->insts[i].call)
            reach_call(module, function->insts[i].call, reached);
}

/* Variables of functions have numbers of their own: only those of the module are noted. */
static void note_operand(const pvm_operand *operand, bool *used, const pvm_module *ptx)
{
    const pvm_var *var = operand->var;
    if (var && var->space == SPACE_SHARED && var->index >= 0 && var->index < ptx->n_vars &&
        ptx->vars[var->index] == var)
        used[var->index] = true;
    for (int i = 0; i < operand->n_elements; i++)
        note_operand(&operand->elements[i], used, ptx);
}

static void note_function(const pvm_function *function, bool *used, const pvm_module *ptx)
{
    for (int i = 0; i < function->n_insts; i++)
        for (int k = 0; k < function->insts[i].n_operands; k++)
            note_operand(&function->insts[i].operand[k], used, ptx);
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return align > 1 ? (value + align - 1) / align * align : value;
}

static uint64_t shared_align(const pvm_function *function)
{
    uint64_t align = 1;
    for (int i = 0; i < function->n_locals; i++)
        if (function->locals[i]->space == SPACE_SHARED && function->locals[i]->align > align)
            align = function->locals[i]->align;
    return align;
}

/* Module variables with a size, then the blocks of the functions, then where dynamic memory begins. */
static bool layout_shared(vm_kernel *kernel, const bool *reached, const bool *used)
{
    const pvm_module *ptx = kernel->module->ptx;
    uint64_t at = 0, dynamic_align = 16;
    kernel->shared_offset = vm_pool_alloc(kernel->pool, (size_t)(ptx->n_vars + 1) * sizeof(uint64_t));
    kernel->function_shared = vm_pool_alloc(kernel->pool, (size_t)(ptx->n_functions + 1) * sizeof(uint64_t));
    if (!kernel->shared_offset || !kernel->function_shared)
        return false;
    for (int i = 0; i < ptx->n_vars; i++) {
        const pvm_var *var = ptx->vars[i];
        if (!used[i])
            continue;
        if (var->is_unsized) {
            dynamic_align = var->align > dynamic_align ? var->align : dynamic_align;
            continue;
        }
        at = align_up(at, var->align);
        kernel->shared_offset[i] = at;
        at += var->size;
    }
    for (int i = 0; i < ptx->n_functions; i++) {
        if (!reached[i] || !ptx->functions[i]->shared_bytes)
            continue;
        kernel->function_shared[i] = at = align_up(at, shared_align(ptx->functions[i]));
        at += ptx->functions[i]->shared_bytes;
    }
    kernel->static_shared = at;
    kernel->dynamic_shared_offset = align_up(at, dynamic_align);
    for (int i = 0; i < ptx->n_vars; i++)
        if (used[i] && ptx->vars[i]->is_unsized)
            kernel->shared_offset[i] = kernel->dynamic_shared_offset;
    return true;
}

bool vm_reach(vm_kernel *kernel, bool *reached)
{
    const pvm_module *ptx = kernel->module->ptx;
    bool *used = vm_pool_alloc(kernel->pool, (size_t)ptx->n_vars + 1);
    if (!used)
        return false;
    reach(ptx, kernel->function, reached);
    for (int i = 0; i < ptx->n_functions; i++)
        if (reached[i])
            note_function(ptx->functions[i], used, ptx);
    return layout_shared(kernel, reached, used);
}
