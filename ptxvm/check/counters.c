/* Counters: each host thread counts by op, and the totals of a launch are added up from those. docs/checks.md
 * defines each counter. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "ptxvm/exec/decode.h"
#include "ptxvm/exec/launch.h"
#include "ptxvm/exec/ops_common.h"
#include "counters.h"

const char *ptxvm_class_name(ptxvm_class class_of)
{
    static const char *const names[] = {"integer", "f32",     "f64",  "f16",    "conversion",
                                        "memory",  "control", "warp", "tensor", "other"};
    return (unsigned)class_of < PTXVM_CLASSES ? names[class_of] : "unknown";
}

/* ---- Instructions ---- */

/* Whether the lanes of a brx take different branches. */
static bool brx_diverges(const vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint64_t first = ops_operand(warp, &op->operand[0], vm_first(mask));
    VM_EACH_LANE(lane, mask)
    if (ops_operand(warp, &op->operand[0], (int)lane) != first)
        return true;
    return false;
}

void check_count(vm_warp *warp, const vm_op *op, uint32_t active, uint32_t mask)
{
    const check_op *info = check_op_of(warp, op);
    ptxvm_counts *c = &vm_watch_of(warp)->counts[op->site];
    if (!info->counted)
        return;
    c->instructions++;
    if (warp->block->executed)
        warp->block->executed[warp->index * warp->block->launch->kernel->n_sites + op->site]++;
    c->threads += (uint64_t)__builtin_popcount(active);
    c->lanes += (uint64_t)__builtin_popcount(mask);
    if (info->class_of == PTXVM_CLASS_CONTROL || info->class_of == PTXVM_CLASS_MEMORY ||
        info->class_of == PTXVM_CLASS_TENSOR)
        switch (op->inst->op) {
        case OP_bra:
            c->branches++;
            c->divergent_branches += mask && mask != active;
            break;
        case OP_brx:
            c->branches++;
            c->divergent_branches += mask && (mask != active || brx_diverges(warp, op, mask));
            break;
        case OP_bar:
        case OP_barrier:
            c->barriers += op->inst->mod[S_SUB] != M_warp;
            break;
        case OP_atom:
        case OP_red:
            c->atomics += mask != 0;
            break;
        case OP_mma:
        case OP_wmma:
        case OP_wgmma:
        case OP_tcgen05:
            c->mma += info->class_of == PTXVM_CLASS_TENSOR;
            break;
        default:
            break;
        }
}

/* ---- Global memory ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How many of them no one touched before. */
static uint64_t mark_sectors(const vm_warp *warp, uint64_t first, uint64_t last)
{
    uint64_t n = 0;
    const vm_alloc *alloc = vm_memory_nearest(warp->block->launch->vm->memory, first * 32 + 31);
    check_region *region = alloc ? alloc->check : NULL;
    for (uint64_t s = first; region && region->sectors && s <= last; s++) {
        uint64_t at = s - region->first_sector, bit = UINT64_C(1) << at % 64;
        if (at < region->n_sectors &&
            !(atomic_load_explicit(&region->sectors[at / 64], memory_order_relaxed) & bit))
            n += !(atomic_fetch_or_explicit(&region->sectors[at / 64], bit, memory_order_relaxed) & bit);
    }
    return n;
}

/* How many of them the block has not touched; each place remembers one sector. */
static uint64_t mark_recent(const vm_warp *warp, uint64_t first, uint64_t last)
{
    check_recent *recent = vm_watch_of(warp)->recent;
    uint64_t n = 0, block = warp->block->linear_index;
    for (uint64_t s = first; s <= last; s++) {
        check_recent *r = &recent[s % CHECK_RECENT];
        n += r->sector != s + 1 || r->block != block;
        *r = (check_recent){s + 1, block};
    }
    return n;
}

/* The lanes' addresses in global memory, in increasing order. */
static int sort_addresses(const vm_access *access, uint32_t mask, uint64_t sorted[WARP])
{
    int n = 0;
    bool rising = true;
    VM_EACH_LANE(lane, mask)
    {
        sorted[n] = access->address[lane];
        rising &= n == 0 || sorted[n] >= sorted[n - 1];
        n++;
    }
    if (!rising)
        qsort(sorted, (size_t)n, sizeof *sorted, compare_u64);
    return n;
}

static void count_global(vm_warp *warp, ptxvm_traffic *t, const vm_access *access, uint32_t mask)
{
    uint64_t sorted[WARP], bytes = access->bytes, next_sector = 0, end = 0, different = 0;
    int n = sort_addresses(access, mask, sorted);
    for (int i = 0; i < n; i++) {
        uint64_t a = sorted[i], first = a / 32, last = (a + bytes - 1) / 32;
        uint64_t fresh = a > end ? a : end; /* bytes not requested by an earlier lane */
        if (a + bytes > fresh)
            different += a + bytes - fresh;
        end = a + bytes > end ? a + bytes : end;
        first = first > next_sector ? first : next_sector;
        if (last >= first) {
            t->sectors += last - first + 1;
            t->first_sectors += mark_sectors(warp, first, last);
            t->block_sectors += mark_recent(warp, first, last);
            next_sector = last + 1;
        }
    }
    t->requests++;
    t->bytes += (uint64_t)n * bytes;
    t->least_sectors += (different + 31) / 32;
}

/* ---- Shared memory ---- */

#define BANKS 32

/* The largest number of words that one bank must deliver to the lanes of one part of the warp. */
static uint64_t wavefronts_of(const uint64_t *offsets, int n, uint32_t bytes)
{
    uint64_t words[WARP * 4], most = n > 0;
    uint8_t in_bank[BANKS] = {0};
    int n_words = 0;
    for (int i = 0; i < n; i++)
        for (uint64_t w = offsets[i] / 4; w <= (offsets[i] + bytes - 1) / 4; w++) {
            int k = n_words - 1;
            while (k >= 0 && words[k] != w)
                k--;
            if (k >= 0 || n_words == WARP * 4)
                continue;
            words[n_words++] = w;
            if (++in_bank[w % BANKS] > most)
                most = in_bank[w % BANKS];
        }
    return most;
}

/* Accesses of 8 bytes per lane are done in halves of the warp, of 16 in quarters. */
static void count_shared(ptxvm_counts *c, const vm_access *access, uint32_t mask, uint64_t base)
{
    int lanes = access->bytes <= 4 ? WARP : access->bytes <= 8 ? WARP / 2 : WARP / 4;
    c->shared_accesses++;
    for (int part = 0; part < WARP; part += lanes) {
        uint64_t offsets[WARP];
        int n = 0;
        uint32_t of_part = mask >> part & (lanes == WARP ? UINT32_MAX : (1u << lanes) - 1);
        VM_EACH_LANE(lane, of_part)
        offsets[n++] = access->address[part + (int)lane] - base;
        uint64_t wavefronts = wavefronts_of(offsets, n, access->bytes);
        c->shared_wavefronts += wavefronts;
        c->bank_conflicts += wavefronts - (n > 0);
    }
}

void check_count_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask)
{
    ptxvm_counts *c = &vm_watch_of(warp)->counts[op->site];
    uint32_t global = 0, shared = 0;
    VM_EACH_LANE(lane, mask)
    {
        pvm_space space =
            access->space == SPACE_NONE ? vm_space_of(access->address[lane]) : (pvm_space)access->space;
        global |= (uint32_t)(space == SPACE_GLOBAL) << lane;
        shared |= (uint32_t)(space == SPACE_SHARED) << lane;
    }
    if (global)
        count_global(warp,
                     access->kind == VM_LOAD    ? &c->load
                     : access->kind == VM_STORE ? &c->store
                                                : &c->atomic,
                     access, global);
    if (shared)
        count_shared(c, access, shared, access->space == SPACE_NONE ? VM_SHARED_BASE : 0);
}

/* ---- Sums ---- */

static void add_traffic(ptxvm_traffic *to, const ptxvm_traffic *from)
{
    to->requests += from->requests;
    to->sectors += from->sectors;
    to->least_sectors += from->least_sectors;
    to->bytes += from->bytes;
    to->first_sectors += from->first_sectors;
    to->block_sectors += from->block_sectors;
}

static void add_counts(ptxvm_counts *to, const ptxvm_counts *from)
{
    to->instructions += from->instructions;
    to->threads += from->threads;
    to->lanes += from->lanes;
    add_traffic(&to->load, &from->load);
    add_traffic(&to->store, &from->store);
    add_traffic(&to->atomic, &from->atomic);
    to->shared_accesses += from->shared_accesses;
    to->shared_wavefronts += from->shared_wavefronts;
    to->bank_conflicts += from->bank_conflicts;
    to->mma += from->mma;
    to->barriers += from->barriers;
    to->atomics += from->atomics;
    to->branches += from->branches;
    to->divergent_branches += from->divergent_branches;
}

void check_counters_begin(ptxvm *vm)
{
    check_counters_free(vm);
    for (int i = 0; vm->config.counters && i < vm->memory->n_allocs; i++) {
        check_region *region = vm->memory->allocs[i].check;
        for (uint64_t k = 0; region && region->sectors && k <= region->n_sectors / 64; k++)
            atomic_store_explicit(&region->sectors[k], 0, memory_order_relaxed);
    }
}

void check_counters_free(ptxvm *vm)
{
    check_sums *sums = vm->checks->sums;
    if (!sums)
        return;
    vm_pool_destroy(sums->pool);
    free(sums);
    vm->checks->sums = NULL;
}

static uint64_t count_sectors(const ptxvm *vm)
{
    uint64_t n = 0;
    for (int i = 0; i < vm->memory->n_allocs; i++) {
        const check_region *region = vm->memory->allocs[i].check;
        for (uint64_t k = 0; region && region->sectors && k <= region->n_sectors / 64; k++)
            n += (uint64_t)__builtin_popcountll(
                atomic_load_explicit(&region->sectors[k], memory_order_relaxed));
    }
    return n;
}

/* "m16n8k16.f32.f16.f16.f32" */
static const char *mma_name(vm_pool *pool, const pvm_inst *inst)
{
    char types[96] = "";
    static const pvm_slot slots[] = {S_TYPE, S_TYPE2, S_TYPE3, S_TYPE4};
    for (size_t i = 0; i < 4; i++)
        if (inst->mod[slots[i]])
            snprintf(types + strlen(types), sizeof types - strlen(types), "%s",
                     pvm_type_name(pvm_slot_type(inst, slots[i])));
    if (inst->op == OP_tcgen05) /* the rest is in its descriptor */
        return vm_pool_format(pool, "tcgen05%s%s", pvm_mod_text(inst->mod[S_FLAG2]),
                              pvm_mod_text(inst->mod[S_KIND]));
    const char *shape = inst->mod[S_SHAPE] ? pvm_mod_text(inst->mod[S_SHAPE]) : ".";
    return vm_pool_format(pool, "%s%s", shape + 1, types);
}

static bool add_mma(check_sums *sums, const pvm_inst *inst, uint64_t count)
{
    ptxvm_counters *c = &sums->counters;
    const char *name = mma_name(sums->pool, inst);
    if (!name)
        return false;
    int i = 0;
    while (i < c->n_mma && strcmp(sums->mma[i].name, name) != 0)
        i++;
    if (i == CHECK_MMA_NAMES)
        i--;
    if (i == c->n_mma)
        sums->mma[c->n_mma++] = (ptxvm_mma_count){.name = name};
    sums->mma[i].count += count;
    return true;
}

static int last_line(const vm_kernel *kernel)
{
    int line = 0;
    for (int i = 0; i < kernel->n_sites; i++)
        line = kernel->sites[i]->inst->line > line ? kernel->sites[i]->inst->line : line;
    return line;
}

static bool add_site(check_sums *sums, const vm_kernel *kernel, int site, const ptxvm_counts *counts)
{
    const vm_op *op = kernel->sites[site];
    const vm_code *code = vm_code_of(kernel, op->function);
    ptxvm_counters *c = &sums->counters;
    add_counts(&c->total, counts);
    add_counts(&c->by_class[code->check->ops[op - code->ops].class_of], counts);
    if (sums->lines)
        add_counts(&sums->lines[op->inst->line], counts);
    return !counts->mma || add_mma(sums, op->inst, counts->mma);
}

static int by_source(const void *a, const void *b)
{
    const ptxvm_source_count *x = a, *y = b;
    int order = strcmp(x->file, y->file);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* The sites with a .loc, sorted and merged line by line. */
static bool add_sources(check_sums *sums, const vm_kernel *kernel, vm_watch *const *watches, int n)
{
    const pvm_module *ptx = kernel->module->ptx;
    ptxvm_counters *c = &sums->counters;
    sums->sources = vm_pool_alloc(sums->pool, ((size_t)kernel->n_sites + 1) * sizeof *sums->sources);
    if (!sums->sources)
        return false;
    int found = 0;
    for (int site = 0; site < kernel->n_sites; site++) {
        const pvm_inst *inst = kernel->sites[site]->inst;
        if (!inst->loc_line || inst->loc_file < 0 || inst->loc_file >= ptx->n_files ||
            !ptx->files[inst->loc_file])
            continue;
        ptxvm_source_count *s = &sums->sources[found++];
        *s = (ptxvm_source_count){.file = ptx->files[inst->loc_file], .line = inst->loc_line};
        for (int i = 0; i < n; i++)
            add_counts(&s->counts, &watches[i]->counts[site]);
        found -= !s->counts.instructions;
    }
    qsort(sums->sources, (size_t)found, sizeof *sums->sources, by_source);
    for (int i = 0; i < found; i++) {
        ptxvm_source_count *last = c->n_sources ? &sums->sources[c->n_sources - 1] : NULL;
        if (last && by_source(last, &sums->sources[i]) == 0)
            add_counts(&last->counts, &sums->sources[i].counts);
        else
            sums->sources[c->n_sources++] = sums->sources[i];
    }
    return true;
}

bool check_counters_finish(vm_launch *launch, vm_watch *const *watches, int n, bool complete)
{
    ptxvm *vm = launch->vm;
    const vm_kernel *kernel = launch->kernel;
    check_sums *sums = calloc(1, sizeof *sums);
    vm_pool *pool = vm_pool_create();
    if (!sums || !pool) {
        free(sums);
        vm_pool_destroy(pool);
        return false;
    }
    vm->checks->sums = sums;
    sums->pool = pool;
    sums->kernel = kernel;
    ptxvm_counters *c = &sums->counters;
    int lines = last_line(kernel) + 1;
    bool ok = true;
    if (vm->config.counters >= PTXVM_COUNTERS_LINES)
        ok = (sums->lines = vm_pool_alloc(pool, (size_t)lines * sizeof *sums->lines)) != NULL &&
             add_sources(sums, kernel, watches, n);
    for (int site = 0; site < kernel->n_sites && ok; site++)
        for (int i = 0; i < n && ok; i++)
            ok = add_site(sums, kernel, site, &watches[i]->counts[site]);
    c->kernel = kernel->function->name;
    c->complete = complete;
    c->unique_sectors = count_sectors(vm);
    c->mma = sums->mma;
    c->lines = sums->lines;
    c->n_lines = sums->lines ? lines : 0;
    c->sources = sums->sources;
    if (ok && complete && vm->config.counters == PTXVM_COUNTERS_PATHS)
        ok = check_paths_finish(sums, launch, watches, n);
    if (!ok)
        check_counters_free(vm);
    return ok;
}

const ptxvm_counters *ptxvm_last_counters(const ptxvm *vm)
{
    return vm && vm->checks->sums ? &vm->checks->sums->counters : NULL;
}
