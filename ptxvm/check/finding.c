/* The list of findings: one per place and kind, in the order in which they occurred. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/exec/vm.h"

/* ---- Names ---- */

static const struct {
    const char *name;
    unsigned bit;
} check_names[] = {{"memory", PTXVM_CHECK_MEMORY}, {"init", PTXVM_CHECK_INIT},
                   {"race", PTXVM_CHECK_RACE},     {"sync", PTXVM_CHECK_SYNC},
                   {"leak", PTXVM_CHECK_LEAK},     {"none", 0},
                   {"all", PTXVM_CHECK_ALL},       {"same", PTXVM_CHECK_RACE | PTXVM_CHECK_SAME}};

bool ptxvm_checks_parse(const char *text, unsigned *checks)
{
    unsigned found = 0;
    if (!text || !checks)
        return false;
    for (;;) {
        size_t length = strcspn(text, ","), i = 0, n = sizeof check_names / sizeof *check_names;
        while (i < n &&
               (strlen(check_names[i].name) != length || memcmp(check_names[i].name, text, length) != 0))
            i++;
        if (i == n)
            return false;
        found |= check_names[i].bit;
        if (!text[length])
            break;
        text += length + 1;
    }
    *checks = found;
    return true;
}

const char *ptxvm_finding_name(ptxvm_finding_kind kind)
{
    static const char *const names[] = {
        [PTXVM_FINDING_OUT_OF_BOUNDS] = "out of bounds",
        [PTXVM_FINDING_MISALIGNED] = "misaligned",
        [PTXVM_FINDING_USE_AFTER_FREE] = "use after free",
        [PTXVM_FINDING_DOUBLE_FREE] = "double free",
        [PTXVM_FINDING_READ_ONLY] = "write to read-only memory",
        [PTXVM_FINDING_UNINITIALISED] = "uninitialised",
        [PTXVM_FINDING_RACE] = "race",
        [PTXVM_FINDING_DIVERGENT_BARRIER] = "divergent barrier",
        [PTXVM_FINDING_MISSED_BARRIER] = "missed barrier",
        [PTXVM_FINDING_DEADLOCK] = "deadlock",
        [PTXVM_FINDING_MEMBER_MASK] = "member mask",
        [PTXVM_FINDING_ASYNC_READ] = "asynchronous copy",
        [PTXVM_FINDING_IN_FLIGHT] = "in flight",
        [PTXVM_FINDING_MBARRIER] = "mbarrier",
        [PTXVM_FINDING_OTHER] = "fault",
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

int ptxvm_status_cuda(ptxvm_status status)
{
    static const int codes[] = {
        [PTXVM_OK] = 0,
        [PTXVM_ERROR_ARGUMENT] = 1,
        [PTXVM_ERROR_MEMORY] = 2,
        [PTXVM_ERROR_PTX] = 218,
        [PTXVM_ERROR_UNSUPPORTED_VERSION] = 222,
        [PTXVM_ERROR_UNSUPPORTED] = 801,
        [PTXVM_ERROR_TARGET] = 209,
        [PTXVM_ERROR_NOT_FOUND] = 500,
        [PTXVM_ERROR_LAUNCH_SIZE] = 1,
        [PTXVM_ERROR_ADDRESS] = 700,
        [PTXVM_ERROR_MISALIGNED] = 716,
        [PTXVM_ERROR_TRAP] = 719,
        [PTXVM_ERROR_ASSERT] = 710,
        [PTXVM_ERROR_STEP_LIMIT] = 702,
        [PTXVM_ERROR_DEADLOCK] = 702,
        [PTXVM_ERROR_EXECUTION] = 719,
        [PTXVM_ERROR_CHECK] = 719,
    };
    return (size_t)status < sizeof codes / sizeof *codes ? codes[status] : 999;
}

/* ---- The list ---- */

void vm_checks_clear(ptxvm *vm)
{
    vm_checks *all = vm->checks;
    all->n = 0;
    all->total = 0;
    all->status = PTXVM_OK;
    all->module = NULL;
    check_counters_begin(vm);
}

void vm_checks_free(ptxvm *vm)
{
    if (vm->checks)
        check_counters_free(vm);
    free(vm->checks);
}

void vm_checks_forget(ptxvm *vm, const ptxvm_module *module)
{
    if (vm->checks && vm->checks->module == module)
        vm_checks_clear(vm);
}

void vm_check_place(const vm_warp *warp, const vm_op *op, int lane, ptxvm_finding *finding)
{
    const vm_block *block = warp->block;
    const vm_kernel *kernel = block->launch->kernel;
    const pvm_module *ptx = kernel->module->ptx;
    const pvm_inst *inst = op->inst;
    finding->kernel = kernel->function->name;
    finding->function = op->function->name;
    finding->line = inst->line;
    bool has_file = inst->loc_line && inst->loc_file >= 0 && inst->loc_file < ptx->n_files;
    finding->source_file = has_file ? ptx->files[inst->loc_file] : NULL;
    finding->source_line = finding->source_file ? inst->loc_line : 0;
    finding->lane = lane;
    for (int i = 0; i < 3; i++) {
        finding->block[i] = block->ctaid[i];
        finding->thread[i] = warp->tid[i][lane];
    }
}

static int find(const vm_checks *all, ptxvm_finding_kind kind, int site, int other_site)
{
    for (int i = 0; i < all->n; i++)
        if (all->findings[i].kind == kind && all->keys[i].site == site &&
            all->keys[i].other_site == other_site)
            return i;
    return -1;
}

static ptxvm_finding *add(vm_checks *all, const ptxvm_finding *detail, int site, int other_site)
{
    if (all->n == CHECK_FINDINGS)
        return NULL;
    int i = all->n++;
    all->keys[i].site = site;
    all->keys[i].other_site = other_site;
    all->findings[i] = *detail;
    all->findings[i].count = 1;
    all->findings[i].message = all->keys[i].text;
    return &all->findings[i];
}

void vm_check_report(vm_warp *warp, const vm_op *op, int lane, const ptxvm_finding *detail, int other_site,
                     const char *format, ...)
{
    vm_checks *all = warp->block->launch->vm->checks;
    int known = find(all, detail->kind, op->site, other_site);
    all->total++;
    if (known >= 0) {
        all->findings[known].count++;
        return;
    }
    ptxvm_finding *finding = add(all, detail, op->site, other_site);
    if (!finding)
        return;
    finding->status = PTXVM_ERROR_CHECK;
    if (!all->status)
        all->status = PTXVM_ERROR_CHECK;
    vm_check_place(warp, op, lane, finding);
    char *text = all->keys[all->n - 1].text;
    vm_name_place(warp, op, lane, text, CHECK_TEXT);
    size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, CHECK_TEXT - n, format, args);
    va_end(args);
}

void vm_check_add_fault(ptxvm *vm, const ptxvm_finding *fault, const char *text)
{
    vm_checks *all = vm->checks;
    all->total++;
    if (all->n == CHECK_FINDINGS) /* the fault that ended the launch is always listed */
        all->n--;
    add(all, fault, -1, -1);
    snprintf(all->keys[all->n - 1].text, CHECK_TEXT, "%s", text);
}

const ptxvm_finding *ptxvm_findings(const ptxvm *vm, int *n, uint64_t *total)
{
    if (n)
        *n = vm ? vm->checks->n : 0;
    if (total)
        *total = vm ? vm->checks->total : 0;
    return vm ? vm->checks->findings : NULL;
}

/* ---- Leaks ---- */

int ptxvm_leaks(const ptxvm *vm, ptxvm_leak *leaks, int capacity)
{
    int n = 0;
    for (int i = 0; vm && i < vm->memory->n_allocs; i++) {
        const vm_alloc *alloc = &vm->memory->allocs[i];
        if (alloc->flags & (VM_ALLOC_MODULE | VM_ALLOC_CONST))
            continue;
        if (leaks && n < capacity)
            leaks[n] = (ptxvm_leak){alloc->address, alloc->bytes, alloc->flags & VM_ALLOC_HEAP};
        n++;
    }
    return n;
}
