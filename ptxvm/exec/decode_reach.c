/* What a kernel uses: the functions that it can call, and the shared memory of all of them. A module may have many
 * kernels that reach the same functions, so bodies are read once, when the module is loaded; lists of a kernel are
 * proportional to what it reaches, and PTXVM_LIMIT_REACHED limits their sum. */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SHARED (UINT64_C(1) << 40) /* far more than any SM has, far less than could wrap */

/* What the body of a function refers to, each once. */
typedef struct vm_uses {
    const pvm_function **functions;
    const pvm_var **vars;
    int n_functions, n_vars;
    bool any_function;     /* an indirect call may reach every function of the module */
    uint64_t shared_align; /* of its own shared memory */
} vm_uses;

typedef struct reached_function {
    const pvm_function *function;
    uint64_t shared_at;
} reached_function;

/* The lists being made: of a body or of a kernel. */
typedef struct reached {
    ptxvm_module *module;
    reached_function *functions;
    vm_shared_var *vars;
    int n_functions, n_vars, function_capacity, var_capacity;
    bool any_function;
    bool failed;        /* no memory left */
    uint64_t n_reached; /* functions and variables looked at, for PTXVM_LIMIT_REACHED */
    uint64_t static_shared, dynamic_at;
} reached;

const pvm_function *vm_find_body(const pvm_function *function)
{
    return function->has_body ? function : NULL; /* all declarations of a name are the same function */
}

/* ---- Lists that grow ---- */

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

/* Starts lists that refer to nothing yet, with the memory of earlier ones. */
static void begin(reached *r)
{
    r->n_functions = r->n_vars = 0;
    r->any_function = false;
    r->module->stamp++;
}

static void note_function(reached *r, const pvm_function *function)
{
    ptxvm_module *module = r->module;
    function = vm_find_body(function);
    if (!function || module->function_stamp[function->index] == module->stamp)
        return;
    module->function_stamp[function->index] = module->stamp;
    r->functions = grow(r, r->functions, r->n_functions, &r->function_capacity, sizeof *r->functions);
    if (!r->failed)
        r->functions[r->n_functions++] = (reached_function){function, 0};
}

static void note_var(reached *r, const pvm_var *var)
{
    ptxvm_module *module = r->module;
    if (module->var_stamp[var->index] == module->stamp)
        return;
    module->var_stamp[var->index] = module->stamp;
    r->vars = grow(r, r->vars, r->n_vars, &r->var_capacity, sizeof *r->vars);
    if (!r->failed)
        r->vars[r->n_vars++] = (vm_shared_var){var, 0};
}

/* ---- Bodies ---- */

/* An indirect call may reach its .calltargets or, if only a prototype is known, any function. */
static void note_call(reached *r, const pvm_call *call)
{
    ptxvm_module *module = r->module;
    if (call->target.kind == OPERAND_FUNCTION) {
        note_function(r, call->target.function);
        return;
    }
    if (!call->candidates) {
        r->any_function = true;
        return;
    }
    if (module->list_stamp[call->list] == module->stamp)
        return;
    module->list_stamp[call->list] = module->stamp;
    for (int i = 0; i < call->n_candidates; i++)
        note_function(r, call->candidates[i]);
}

/* Variables of functions have separate numbers: only those of the module are noted. */
static void note_operand(reached *r, const pvm_operand *operand)
{
    const pvm_module *ptx = r->module->ptx;
    const pvm_var *var = operand->var;
    if (var && var->space == SPACE_SHARED && var->index >= 0 && var->index < ptx->n_vars &&
        ptx->vars[var->index] == var)
        note_var(r, var);
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

static uint64_t shared_align(const pvm_function *function)
{
    uint64_t align = 1;
    for (int i = 0; i < function->n_locals; i++)
        if (function->locals[i]->space == SPACE_SHARED && function->locals[i]->align > align)
            align = function->locals[i]->align;
    return align;
}

static bool keep_uses(const reached *r, vm_uses *uses)
{
    vm_pool *pool = r->module->uses_pool;
    if (r->n_functions)
        uses->functions = vm_pool_alloc(pool, (size_t)r->n_functions * sizeof *uses->functions);
    if (r->n_vars)
        uses->vars = vm_pool_alloc(pool, (size_t)r->n_vars * sizeof *uses->vars);
    if (r->failed || (r->n_functions && !uses->functions) || (r->n_vars && !uses->vars))
        return false;
    for (int i = 0; i < r->n_functions; i++)
        uses->functions[uses->n_functions++] = r->functions[i].function;
    for (int i = 0; i < r->n_vars; i++)
        uses->vars[uses->n_vars++] = r->vars[i].var;
    uses->any_function = r->any_function;
    return true;
}

bool vm_uses_list(ptxvm_module *module)
{
    const pvm_module *ptx = module->ptx;
    reached r = {.module = module};
    module->uses = calloc((size_t)ptx->n_functions + 1, sizeof *module->uses);
    module->uses_pool = vm_pool_create();
    bool ok = module->uses && module->uses_pool;
    for (int i = 0; i < ptx->n_functions && ok; i++) {
        begin(&r);
        note_body(&r, ptx->functions[i]);
        module->uses[i].shared_align = shared_align(ptx->functions[i]);
        ok = keep_uses(&r, &module->uses[i]);
    }
    free(r.functions);
    free(r.vars);
    return ok;
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

/* Places `size` bytes at *at, which moves behind them. Returns false if that is more than could be. */
static bool place(uint64_t *at, uint64_t size, uint64_t align, uint64_t *offset)
{
    *offset = *at = align_up(*at, align);
    *at += size;
    return *at <= MOST_SHARED;
}

/* Module variables with a size, then the blocks of the functions, then the start of dynamic memory. */
static bool layout_shared(reached *r)
{
    uint64_t at = 0, dynamic_align = 16;
    for (int i = 0; i < r->n_vars; i++) {
        const pvm_var *var = r->vars[i].var;
        if (!var->is_unsized && !place(&at, var->size, var->align, &r->vars[i].offset))
            return false;
        if (var->is_unsized && var->align > dynamic_align)
            dynamic_align = var->align;
    }
    for (int i = 0; i < r->n_functions; i++) {
        const pvm_function *f = r->functions[i].function;
        if (f->shared_bytes &&
            !place(&at, f->shared_bytes, r->module->uses[f->index].shared_align, &r->functions[i].shared_at))
            return false;
    }
    r->static_shared = at;
    r->dynamic_at = align_up(at, dynamic_align);
    for (int i = 0; i < r->n_vars; i++)
        if (r->vars[i].var->is_unsized)
            r->vars[i].offset = r->dynamic_at;
    return true;
}

static int compare_functions(const void *a, const void *b)
{
    int x = ((const reached_function *)a)->function->index,
        y = ((const reached_function *)b)->function->index;
    return (x > y) - (x < y);
}

static int compare_vars(const void *a, const void *b)
{
    int x = ((const vm_shared_var *)a)->var->index, y = ((const vm_shared_var *)b)->var->index;
    return (x > y) - (x < y);
}

static void sort(reached *r)
{
    if (r->n_functions)
        qsort(r->functions, (size_t)r->n_functions, sizeof *r->functions, compare_functions);
    if (r->n_vars)
        qsort(r->vars, (size_t)r->n_vars, sizeof *r->vars, compare_vars);
}

static void note_all_functions(reached *r)
{
    const pvm_module *ptx = r->module->ptx;
    for (int i = 0; i < ptx->n_functions; i++)
        if (!ptx->functions[i]->is_entry)
            note_function(r, ptx->functions[i]);
    r->any_function = true;
}

/* Adds what a function that has been reached refers to. Returns false if that exceeds the limit. */
static bool note_uses(reached *r, const vm_uses *uses)
{
    bool all = uses->any_function && !r->any_function;
    r->n_reached += 1 + (uint64_t)uses->n_functions + (uint64_t)uses->n_vars;
    r->n_reached += all ? (uint64_t)r->module->ptx->n_functions : 0;
    if (r->n_reached > r->module->vm->config.limits[PTXVM_LIMIT_REACHED])
        return false;
    for (int i = 0; i < uses->n_functions; i++)
        note_function(r, uses->functions[i]);
    for (int i = 0; i < uses->n_vars; i++)
        note_var(r, uses->vars[i]);
    if (all)
        note_all_functions(r);
    return true;
}

static ptxvm_status too_much(const ptxvm_module *module, const pvm_function *entry)
{
    return vm_error(module->vm, PTXVM_ERROR_UNSUPPORTED, "%s: more than %llu %s: the limit is %s",
                    entry->name, (unsigned long long)module->vm->config.limits[PTXVM_LIMIT_REACHED],
                    ptxvm_limit_what(PTXVM_LIMIT_REACHED), ptxvm_limit_name(PTXVM_LIMIT_REACHED));
}

/* A worklist instead of recursion: the PTX determines how deep call graphs are. */
static ptxvm_status reach(reached *r, const pvm_function *entry)
{
    ptxvm_module *module = r->module;
    begin(r);
    note_function(r, entry);
    for (int i = 0; i < r->n_functions && !r->failed; i++)
        if (!note_uses(r, &module->uses[r->functions[i].function->index]))
            return too_much(module, entry);
    if (r->failed)
        return vm_error(module->vm, PTXVM_ERROR_MEMORY, "the host has no memory left");
    sort(r);
    return layout_shared(r) ? PTXVM_OK
                            : vm_error(module->vm, PTXVM_ERROR_UNSUPPORTED,
                                       "%s needs more shared memory than any SM has", entry->name);
}

/* ptxas rejects a module if one of its kernels has too much static shared memory. */
static ptxvm_status check_shared(const ptxvm_kernel *kernel)
{
    if (kernel->static_shared <= VM_STATIC_SHARED)
        return PTXVM_OK;
    return vm_error(kernel->module->vm, PTXVM_ERROR_PTX,
                    "%s has %llu bytes of static shared memory: the most is %llu", kernel->function->name,
                    (unsigned long long)kernel->static_shared, (unsigned long long)VM_STATIC_SHARED);
}

ptxvm_status vm_kernels_measure(ptxvm_module *module)
{
    reached r = {.module = module};
    ptxvm_status status = PTXVM_OK;
    for (int i = 0; i < module->n_kernels && !status; i++) {
        ptxvm_kernel *kernel = &module->kernels[i];
        status = reach(&r, kernel->function);
        kernel->static_shared = r.static_shared;
        status = status ? status : check_shared(kernel);
    }
    free(r.functions);
    free(r.vars);
    return status;
}

static bool keep(vm_kernel *kernel, const reached *r)
{
    kernel->codes = vm_pool_alloc(kernel->pool, (size_t)r->n_functions * sizeof *kernel->codes);
    kernel->shared_vars = vm_pool_alloc(kernel->pool, (size_t)r->n_vars * sizeof *kernel->shared_vars);
    if (!kernel->codes || !kernel->shared_vars)
        return false;
    kernel->static_shared = r->static_shared;
    kernel->dynamic_shared_offset = r->dynamic_at;
    kernel->n_shared_vars = r->n_vars;
    for (int i = 0; i < r->n_vars; i++)
        kernel->shared_vars[i] = r->vars[i];
    for (int i = 0; i < r->n_functions; i++) {
        vm_code *code = vm_pool_alloc(kernel->pool, sizeof *code);
        if (!code)
            return false;
        *code = (vm_code){.function = r->functions[i].function,
                          .kernel = kernel,
                          .index = kernel->n_codes,
                          .shared_at = r->functions[i].shared_at,
                          .pool = kernel->pool};
        kernel->codes[kernel->n_codes++] = code;
    }
    kernel->entry = vm_code_of(kernel, kernel->function);
    return kernel->entry;
}

bool vm_reach(vm_kernel *kernel)
{
    reached r = {.module = kernel->module};
    kernel->status = reach(&r, kernel->function);
    bool ok = !kernel->status && keep(kernel, &r);
    free(r.functions);
    free(r.vars);
    return ok;
}
