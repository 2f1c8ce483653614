/* What a kernel uses: the functions that it can call, and the shared memory of all of them. The lists are
 * proportional to what the kernel reaches, not to the module: a module may have many kernels. */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SHARED (UINT64_C(1) << 40) /* far more than any SM has, far less than could wrap */

const pvm_function *vm_find_body(const pvm_function *function)
{
    return function->has_body ? function : NULL; /* all declarations of a name are the same function */
}

/* ---- Lists that grow ---- */

typedef struct reached {
    vm_kernel *kernel;
    const pvm_function **functions;
    vm_shared_var *vars;
    int n_functions, n_vars, function_capacity, var_capacity;
    bool any_function; /* an indirect call may reach every function of the module */
    bool failed;       /* no memory left */
} reached;

static void *grow(reached *r, void *items, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    int larger = *capacity ? 2 * *capacity : 16;
    void *grown = realloc(items, (size_t)larger * size);
    r->failed |= !grown;
    *capacity = grown ? larger : *capacity;
    return grown ? grown : items;
}

/* ---- Functions ---- */

static void note_function(reached *r, const pvm_function *function)
{
    ptxvm_module *module = r->kernel->module;
    function = vm_find_body(function);
    if (!function || module->function_stamp[function->index] == module->stamp)
        return;
    module->function_stamp[function->index] = module->stamp;
    r->functions = grow(r, r->functions, r->n_functions, &r->function_capacity, sizeof(const pvm_function *));
    if (!r->failed)
        r->functions[r->n_functions++] = function;
}

/* An indirect call may reach its .calltargets or, if only a prototype is known, any function. */
static void note_call(reached *r, const pvm_call *call)
{
    ptxvm_module *module = r->kernel->module;
    const pvm_module *ptx = module->ptx;
    if (call->target.kind == OPERAND_FUNCTION) {
        note_function(r, call->target.function);
        return;
    }
    if (call->candidates ? module->list_stamp[call->list] == module->stamp : r->any_function)
        return;
    for (int i = 0; i < call->n_candidates; i++)
        note_function(r, call->candidates[i]);
    if (call->candidates) {
        module->list_stamp[call->list] = module->stamp;
        return;
    }
    r->any_function = true;
    for (int i = 0; i < ptx->n_functions; i++)
        if (!ptx->functions[i]->is_entry)
            note_function(r, ptx->functions[i]);
}

/* ---- Shared variables ---- */

/* Variables of functions have separate numbers: only those of the module are noted. */
static void note_operand(reached *r, const pvm_operand *operand)
{
    ptxvm_module *module = r->kernel->module;
    const pvm_var *var = operand->var;
    if (var && var->space == SPACE_SHARED && var->index >= 0 && var->index < module->ptx->n_vars &&
        module->ptx->vars[var->index] == var && module->var_stamp[var->index] != module->stamp) {
        module->var_stamp[var->index] = module->stamp;
        r->vars = grow(r, r->vars, r->n_vars, &r->var_capacity, sizeof *r->vars);
        if (!r->failed)
            r->vars[r->n_vars++] = (vm_shared_var){var, 0};
    }
    for (int i = 0; i < operand->n_elements; i++) /* elements have none themselves */
        note_operand(r, &operand->elements[i]);
}

static void note_body(reached *r, const pvm_function *function)
{
    for (int i = 0; i < function->n_insts; i++) {
        const pvm_inst *inst = &function->insts[i];
        for (int k = 0; k < inst->n_operands; k++)
            note_operand(r, &inst->operand[k]);
        if (!inst->call)
            continue;
        for (int k = 0; k < inst->call->n_args; k++)
            note_operand(r, &inst->call->args[k]);
        note_call(r, inst->call);
    }
}

uint64_t vm_shared_offset(const vm_kernel *kernel, const pvm_var *var)
{
    int low = 0, high = kernel->n_shared_vars - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (kernel->shared_vars[middle].var->index < var->index)
            low = middle + 1;
        else
            high = middle;
    }
    return low <= high && kernel->shared_vars[low].var == var ? kernel->shared_vars[low].offset : 0;
}

vm_code *vm_code_of(const vm_kernel *kernel, const pvm_function *function)
{
    int low = 0, high = kernel->n_codes - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (kernel->codes[middle]->function->index < function->index)
            low = middle + 1;
        else
            high = middle;
    }
    return low <= high && kernel->codes[low]->function == function ? kernel->codes[low] : NULL;
}

/* ---- The results for the kernel ---- */

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

static bool too_large(vm_kernel *kernel)
{
    kernel->status = vm_error(kernel->module->vm, PTXVM_ERROR_UNSUPPORTED,
                              "%s needs more shared memory than any SM has", kernel->function->name);
    return false;
}

/* Module variables with a size, then the blocks of the functions, then the start of dynamic memory. */
static bool layout_shared(vm_kernel *kernel)
{
    uint64_t at = 0, dynamic_align = 16;
    for (int i = 0; i < kernel->n_shared_vars; i++) {
        const pvm_var *var = kernel->shared_vars[i].var;
        if (var->is_unsized) {
            dynamic_align = var->align > dynamic_align ? var->align : dynamic_align;
            continue;
        }
        kernel->shared_vars[i].offset = at = align_up(at, var->align);
        at += var->size;
        if (at > MOST_SHARED)
            return too_large(kernel);
    }
    for (int i = 0; i < kernel->n_codes; i++) {
        vm_code *code = kernel->codes[i];
        if (!code->function->shared_bytes)
            continue;
        code->shared_at = at = align_up(at, shared_align(code->function));
        at += code->function->shared_bytes;
        if (at > MOST_SHARED)
            return too_large(kernel);
    }
    kernel->static_shared = at;
    kernel->dynamic_shared_offset = align_up(at, dynamic_align);
    for (int i = 0; i < kernel->n_shared_vars; i++)
        if (kernel->shared_vars[i].var->is_unsized)
            kernel->shared_vars[i].offset = kernel->dynamic_shared_offset;
    return true;
}

static int compare_functions(const void *a, const void *b)
{
    int x = (*(const pvm_function *const *)a)->index, y = (*(const pvm_function *const *)b)->index;
    return (x > y) - (x < y);
}

static int compare_vars(const void *a, const void *b)
{
    int x = ((const vm_shared_var *)a)->var->index, y = ((const vm_shared_var *)b)->var->index;
    return (x > y) - (x < y);
}

static bool keep(reached *r)
{
    vm_kernel *kernel = r->kernel;
    qsort(r->functions, (size_t)r->n_functions, sizeof(const pvm_function *), compare_functions);
    if (r->n_vars)
        qsort(r->vars, (size_t)r->n_vars, sizeof *r->vars, compare_vars);
    kernel->codes = vm_pool_alloc(kernel->pool, (size_t)r->n_functions * sizeof *kernel->codes);
    kernel->shared_vars = vm_pool_alloc(kernel->pool, (size_t)r->n_vars * sizeof *kernel->shared_vars);
    if (!kernel->codes || !kernel->shared_vars)
        return false;
    kernel->n_shared_vars = r->n_vars;
    for (int i = 0; i < r->n_vars; i++)
        kernel->shared_vars[i] = r->vars[i];
    for (int i = 0; i < r->n_functions; i++) {
        vm_code *code = vm_pool_alloc(kernel->pool, sizeof *code);
        if (!code)
            return false;
        *code = (vm_code){
            .function = r->functions[i], .kernel = kernel, .index = kernel->n_codes, .pool = kernel->pool};
        kernel->codes[kernel->n_codes++] = code;
    }
    kernel->entry = vm_code_of(kernel, kernel->function);
    return kernel->entry && layout_shared(kernel);
}

/* A worklist instead of recursion: the PTX determines how deep call graphs are. */
bool vm_reach(vm_kernel *kernel)
{
    reached r = {.kernel = kernel};
    kernel->module->stamp++;
    note_function(&r, kernel->function);
    for (int i = 0; i < r.n_functions && !r.failed; i++)
        note_body(&r, r.functions[i]);
    bool ok = !r.failed && r.n_functions && keep(&r);
    free(r.functions);
    free(r.vars);
    return ok;
}
