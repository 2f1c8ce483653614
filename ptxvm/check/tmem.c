/* Tensor memory: what tcgen05 instructions in flight read and write, who may rely on what is complete, words that were
 * never written, allocations that are not given back.
 *
 * An mma, cp or shift is in flight until somebody has waited for the mbarrier of a tcgen05.commit after it, a load or
 * store until its tcgen05.wait. What is in flight may only be followed, in the same words, by what the ISA calls
 * pipelined: mma, cp and shift of the same thread, or of another that the tcgen05.fence instructions on both sides order
 * after it. What is complete is ordered as other memory is, and between warps by these fences, too. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/exec/cluster.h"
#include "ptxvm/exec/tmem.h"

/* The last access of a kind that is complete. */
typedef struct tmem_touch {
    race_touch touch;       /* its thread: that of the instruction */
    bool is_by_tensor_core; /* mma, cp, shift */
} tmem_touch;

typedef struct tmem_word {
    tmem_touch write, read;
    uint32_t flight_time; /* of the last instruction in flight: its start, its op, block and thread */
    uint32_t flight_site, flight_block;
    uint16_t flight_thread, writers, readers;
    bool flight_writes, undefined;
} tmem_word;

struct check_tmem {
    uint32_t before[WARP], after[WARP]; /* by warp: its last tcgen05.fence */
    tmem_word word[TMEM_LANES][TMEM_COLUMNS];
};

bool check_tmem_new(vm_block *block)
{
    block->check->tmem = calloc(1, sizeof *block->check->tmem);
    return block->check->tmem;
}

void check_tmem_begin(vm_block *block)
{
    if (block->check->tmem)
        memset(block->check->tmem, 0, sizeof *block->check->tmem);
}

static tmem_word *word_at(const vm_block *block, uint32_t lane, uint32_t column)
{
    return &block->check->tmem->word[lane][column];
}

static uint32_t tick(const vm_warp *warp)
{
    return ++warp->block->launch->vm->checks->clock;
}

static const vm_op *op_at(const vm_warp *warp, uint32_t site)
{
    return warp->block->launch->kernel->sites[site];
}

static bool is_tensor_core(const vm_op *op)
{
    unsigned sub = op->inst->mod[S_SUB];
    return sub == M_mma || sub == M_cp || sub == M_shift;
}

static const char *name_of(const vm_op *op)
{
    return pvm_mod_text((pvm_mod)op->inst->mod[S_SUB]) + 1;
}

static const char *wait_for(const vm_op *op)
{
    unsigned sub = op->inst->mod[S_SUB];
    return sub == M_ld   ? "tcgen05.wait::ld"
           : sub == M_st ? "tcgen05.wait::st"
                         : "tcgen05.commit and a wait for its mbarrier";
}

static void report(vm_warp *warp, const vm_op *op, int lane, ptxvm_finding_kind kind, const tmem_region *r,
                   uint32_t at_lane, uint32_t at_column, const char *what)
{
    ptxvm_finding finding = {
        .kind = kind, .space = "tensor", .address = (uint64_t)at_lane << 16 | at_column, .access_bytes = 4};
    vm_check_report(warp, op, lane, &finding, -1, "tcgen05.%s %s lane %u, column %u of tensor memory%s",
                    name_of(op), r->writes ? "writes" : "reads", at_lane, at_column, what);
}

/* ---- In flight ---- */

/* When the warp of a thread of some block last executed a tcgen05.fence::before_thread_sync. */
static uint32_t fenced_before(const vm_warp *warp, uint32_t block, uint16_t thread)
{
    const vm_cluster *cluster = warp->block->cluster;
    for (int i = 0; i < cluster->n; i++)
        if (cluster->blocks[i]->linear_index == block)
            return cluster->blocks[i]->check->tmem->before[thread / WARP];
    return UINT32_MAX;
}

static bool is_mine(const vm_warp *warp, int lane, uint32_t block, uint16_t thread)
{
    return block == warp->block->linear_index && thread == WARP * warp->index + lane;
}

static bool fences_order(const vm_warp *warp, uint32_t block, uint16_t thread, uint32_t time)
{
    uint32_t before = fenced_before(warp, block, thread);
    return before > time && warp->block->check->tmem->after[warp->index] > before;
}

/* Whether the tensor cores keep the order of what is in flight and this. */
static bool is_pipelined(const vm_warp *warp, const vm_op *op, int lane, const tmem_word *word)
{
    if (!is_tensor_core(op) || !is_tensor_core(op_at(warp, word->flight_site)))
        return false;
    return is_mine(warp, lane, word->flight_block, word->flight_thread) ||
           fences_order(warp, word->flight_block, word->flight_thread, word->flight_time);
}

static bool check_flight_of(vm_warp *warp, const vm_op *op, int lane, const tmem_region *r, uint32_t at_lane,
                            uint32_t at_column)
{
    const tmem_word *word = word_at(r->block, at_lane, at_column);
    char what[160];
    if (!(word->writers || (r->writes && word->readers)) || is_pipelined(warp, op, lane, word))
        return true;
    const vm_op *other = op_at(warp, word->flight_site);
    snprintf(what, sizeof what, ", which the tcgen05.%s of line %d may still %s: %s must come first",
             name_of(other), other->inst->line, word->flight_writes ? "write" : "read", wait_for(other));
    report(warp, op, lane, PTXVM_FINDING_IN_FLIGHT, r, at_lane, at_column, what);
    return false;
}

/* ---- Complete ---- */

/* A completed access of another thread that nothing orders before this one, or not the fences that tcgen05 needs. */
static bool check_past(vm_warp *warp, const vm_op *op, int lane, const tmem_region *r, const tmem_touch *past,
                       uint32_t at_lane, uint32_t at_column)
{
    const vm_watch *watch = vm_watch_of(warp);
    char what[160];
    if (past->touch.state != RACE_SET || (past->is_by_tensor_core && is_tensor_core(op) &&
                                          is_mine(warp, lane, past->touch.block, past->touch.thread)))
        return true;
    race_touch touch = past->touch;
    bool same_warp = touch.block == warp->block->linear_index && touch.thread / WARP == warp->index;
    uint32_t time = touch.time,
             before = same_warp ? UINT32_MAX : fenced_before(warp, touch.block, touch.thread);
    if (past->is_by_tensor_core)
        touch.thread = RACE_ASYNC;
    const vm_op *other = op_at(warp, touch.site);
    bool ordered = !watch->race || check_is_ordered(warp, lane, &touch);
    bool after = same_warp || warp->block->check->tmem->after[warp->index] > time;
    if (past->is_by_tensor_core)
        before = UINT32_MAX; /* by the commit */
    if (ordered && ((before > time && after) || !watch->sync))
        return true;
    if (!ordered)
        snprintf(what, sizeof what, ": nothing orders that after the tcgen05.%s of line %d", name_of(other),
                 other->inst->line);
    else
        snprintf(what, sizeof what,
                 ": between it and the tcgen05.%s of line %d a tcgen05.fence::%s_thread_sync is missing",
                 name_of(other), other->inst->line, before > time ? "after" : "before");
    report(warp, op, lane, ordered ? PTXVM_FINDING_IN_FLIGHT : PTXVM_FINDING_RACE, r, at_lane, at_column,
           what);
    return false;
}

/* Loads pass on what was never written: see vm_check_load_undefined. */
static bool check_defined(vm_warp *warp, const vm_op *op, int lane, const tmem_region *r, uint32_t at_lane,
                          uint32_t at_column)
{
    if (!vm_watch_of(warp)->init || !r->reads || op->inst->mod[S_SUB] == M_ld ||
        !word_at(r->block, at_lane, at_column)->undefined)
        return true;
    report(warp, op, lane, PTXVM_FINDING_UNINITIALISED, r, at_lane, at_column, ", which was never written");
    return false;
}

static bool check_word(vm_warp *warp, const vm_op *op, int lane, const tmem_region *r, uint32_t l, uint32_t c)
{
    const tmem_word *word = word_at(r->block, l, c);
    return (!vm_watch_of(warp)->sync || check_flight_of(warp, op, lane, r, l, c)) &&
           check_past(warp, op, lane, r, &word->write, l, c) &&
           (!r->writes || check_past(warp, op, lane, r, &word->read, l, c)) &&
           check_defined(warp, op, lane, r, l, c);
}

void vm_check_tmem_begin(vm_warp *warp, const vm_op *op, int lane, const tmem_region *r)
{
    bool right = true;
    uint32_t time = tick(warp);
    for (uint32_t l = r->lane; l < r->lane + r->lanes; l++)
        for (uint32_t c = r->column; c < r->column + r->columns; c++) {
            tmem_word *word = word_at(r->block, l, c);
            right = right && check_word(warp, op, lane, r, l, c); /* one finding for each region */
            if (r->writes)
                word->writers++;
            else
                word->readers++;
            word->flight_writes = r->writes;
            word->flight_time = time;
            word->flight_site = (uint32_t)op->site;
            word->flight_block = (uint32_t)warp->block->linear_index;
            word->flight_thread = (uint16_t)(WARP * warp->index + lane);
            if (r->writes && is_tensor_core(op)) /* what follows in the pipeline reads it */
                word->undefined = false;
        }
}

void vm_check_tmem_end(vm_warp *warp, const vm_op *op, int lane, const tmem_region *r)
{
    const tmem_touch now = {.touch = {.time = tick(warp),
                                      .site = (uint32_t)op->site,
                                      .block = (uint32_t)warp->block->linear_index,
                                      .thread = (uint16_t)(WARP * warp->index + lane),
                                      .state = RACE_SET},
                            .is_by_tensor_core = is_tensor_core(op)};
    for (uint32_t l = r->lane; l < r->lane + r->lanes; l++)
        for (uint32_t c = r->column; c < r->column + r->columns; c++) {
            tmem_word *word = word_at(r->block, l, c);
            uint16_t *count = r->writes ? &word->writers : &word->readers;
            *count -= *count > 0;
            *(r->writes ? &word->write : &word->read) = now;
            word->undefined &= !r->writes;
        }
}

void vm_check_tmem_fence(vm_warp *warp, bool before)
{
    struct check_tmem *tmem = warp->block->check->tmem;
    *(before ? &tmem->before[warp->index] : &tmem->after[warp->index]) = tick(warp);
}

void vm_check_tmem_commit(vm_warp *warp, uint32_t mask)
{
    vm_check_tmem_fence(warp, true); /* a commit has one of its own */
    if (vm_watch_of(warp)->race)
        check_release(warp, mask, true, warp->block->cluster->n > 1);
}

bool vm_check_tmem_is_undefined(const vm_block *block, uint32_t lane, uint32_t column, uint32_t columns)
{
    bool any = false;
    for (uint32_t c = column; c < column + columns; c++)
        any |= word_at(block, lane, c)->undefined;
    return any;
}

void vm_check_tmem_pending(vm_warp *warp, const vm_op *op, int lane)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_IN_FLIGHT};
    if (vm_watch_of(warp)->sync)
        vm_check_report(warp, op, lane, &finding, -1,
                        "the block ends while this tcgen05.%s is in flight: %s must come first", name_of(op),
                        wait_for(op));
}

/* ---- Allocations ---- */

void vm_check_tmem_alloc(vm_block *block, uint32_t column, uint32_t columns)
{
    for (uint32_t l = 0; l < TMEM_LANES; l++)
        for (uint32_t c = column; c < column + columns; c++)
            *word_at(block, l, c) = (tmem_word){.undefined = true};
}

void vm_check_tmem_dealloc(vm_warp *warp, const vm_op *op, uint32_t column, uint32_t columns)
{
    const tmem_region whole = {warp->block, 0, TMEM_LANES, column, columns, true, false};
    for (uint32_t l = 0; vm_watch_of(warp)->sync && l < TMEM_LANES; l++)
        for (uint32_t c = column; c < column + columns; c++)
            if (!check_flight_of(warp, op, 0, &whole, l, c))
                return;
}

void vm_check_tmem_growth(vm_warp *warp, const vm_op *op, uint32_t columns, uint32_t last)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_OTHER};
    if (vm_watch_of(warp)->sync)
        vm_check_report(warp, op, 0, &finding, -1,
                        "%u columns after an allocation of %u: the allocations of a block must not grow",
                        columns, last);
}

void vm_check_tmem_leak(vm_block *block, uint32_t columns, const vm_op *first)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_OTHER};
    if (block->watch->sync)
        vm_check_report(&block->warps[0], first, 0, &finding, -1,
                        "the block ends with %u columns of tensor memory that tcgen05.dealloc has not freed",
                        columns);
}
