#include "bench/launches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const launches_case *c;
    kernel_problem small;
    kernel_steps whole_steps, small_steps;
    ptxvm *vm;
    ptxvm_address at[QDNN_OPERAND_COUNT], workspace;
    launches_time *out;
    char *why;
    size_t size;
} run;

static bool fail(run *r, const char *why)
{
    snprintf(r->why, r->size, "%s", why);
    return false;
}

static bool make_operands(run *r)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_operands_of(r->c->row, &r->c->spec, &r->small, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        uint8_t *host;
        /* the number of sequences is not known to the operation */
        const uint64_t bytes = i == QDNN_OPERAND_PAGE_TABLE ? 4 * r->small.pages : operands[i].bytes;
        if (!bytes)
            continue;
        if (ptxvm_alloc(r->vm, bytes, &r->at[i]) != PTXVM_OK || !(host = ptxvm_host(r->vm, r->at[i], bytes)))
            return fail(r, ptxvm_last_error(r->vm));
        r->c->fill(r->c->user, (qdnnOperand_t)i, host, bytes);
    }
    return ptxvm_alloc(r->vm, r->small_steps.workspace + 16, &r->workspace) == PTXVM_OK ||
           fail(r, ptxvm_last_error(r->vm));
}

/* Parameters side by side, each aligned to its size; returns their bytes. */
static size_t pack_params(const run *r, const kernel_step *step, uint8_t *packed)
{
    size_t used = 0;
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        const uint64_t value = p->kind == KERNEL_OPERAND     ? r->at[p->operand]
                               : p->kind == KERNEL_WORKSPACE ? r->workspace + p->value
                                                             : p->value;
        const size_t size = p->kind == KERNEL_NUMBER ? p->bytes : 8;
        used = (used + size - 1) / size * size;
        memcpy(packed + used, &value, size); /* the low bytes of a little-endian number */
        used += size;
    }
    return used;
}

static bool launch(run *r, int i, const char *ptx, ptxvm_module **module, uint64_t *blocks)
{
    const kernel_step *step = &r->small_steps.at[i];
    uint8_t packed[KERNEL_PARAMS_MAX * 8];
    char entry[64];
    ptxvm_kernel *kernel;
    const size_t bytes = pack_params(r, step, packed);
    const uint64_t y = i > 0 && r->c->rows ? r->c->rows
                       : r->c->heads       ? step->grid[1] / r->c->heads
                                           : step->grid[1];
    const ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)y, (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    *blocks = step->grid[0] * y * step->grid[2];
    kernel_entry_name(step->row, entry, sizeof entry);
    return (ptxvm_module_load(r->vm, ptx, strlen(ptx), module) == PTXVM_OK &&
            ptxvm_module_kernel(*module, entry, &kernel) == PTXVM_OK &&
            ptxvm_launch(r->vm, kernel, &config, packed, bytes) == PTXVM_OK) ||
           fail(r, ptxvm_last_error(r->vm));
}

static void add_up(launches_time *out, bool first, const clock_estimate *e)
{
    for (int c = 0; c < CLOCK_CORNERS; c++)
        out->us[c] += e->at[c].us;
    out->issue_us += e->at[CLOCK_LOW].issue_bound_us;
    out->misfit = e->misfit > out->misfit ? e->misfit : out->misfit;
    if (!first)
        return;
    out->registers = e->registers;
    out->spill_bytes = e->spill_bytes;
    out->reason = e->n_hot ? clock_stall_name(e->hot[0].reason) : "";
}

static bool time_step(run *r, const board *on, const ptx_sm *sm, int i)
{
    const kernel_step *small = &r->small_steps.at[i], *whole = &r->whole_steps.at[i];
    kernel_text text = {0};
    ptx_error error;
    ptxvm_module *module = NULL;
    uint64_t blocks = 0;
    clock_estimate e;
    if (!kernel_emit(small->row, &small->spec, sm, NULL, &text, &error))
        return fail(r, error.text);
    bool ok = launch(r, i, text.ptx, &module, &blocks);
    const clock_case what = {.ptx = text.ptx,
                             .on = on,
                             .counters = ok ? ptxvm_last_counters(r->vm) : NULL,
                             .blocks = whole->grid[0] * whole->grid[1] * whole->grid[2],
                             .counted_blocks = blocks,
                             .threads = (int)whole->block,
                             .shared = text.info.shared + whole->shared,
                             .dram_bytes = i ? 0 : r->c->bytes,
                             .warm = i > 0 || r->c->warm};
    ok = ok && clock_time(&what, &e, r->why, r->size);
    if (ok) {
        add_up(r->out, i == 0, &e);
        clock_estimate_free(&e);
    }
    if (module)
        ptxvm_module_unload(module);
    free(text.ptx);
    return ok;
}

bool launches_time_of(const launches_case *c, const board *on, launches_time *out, char *why, size_t size)
{
    char sm_name[16];
    const ptxvm_config config = {.board = on->name, .counters = PTXVM_COUNTERS_PATHS};
    run *r = calloc(1, sizeof *r);
    *out = (launches_time){0};
    if (!r)
        return false;
    *r = (run){.c = c, .small = c->small, .out = out, .why = why, .size = size};
    board_sm_name(on, sm_name, sizeof sm_name);
    kernel_steps_of(c->row, &c->spec, &c->whole, &r->whole_steps);
    r->small.parts = r->whole_steps.at[0].grid[2];
    kernel_steps_of(c->row, &c->spec, &r->small, &r->small_steps);
    bool ok = (r->whole_steps.count == r->small_steps.count && ptxvm_create(&config, &r->vm) == PTXVM_OK) ||
              fail(r, "not modelled: a small problem takes other launches");
    if (ok) {
        ok = make_operands(r);
        for (int i = 0; ok && i < r->whole_steps.count; i++)
            ok = time_step(r, on, ptx_sm_find(sm_name), i);
        ptxvm_destroy(r->vm);
    }
    out->launches = r->whole_steps.count;
    out->parts = r->whole_steps.at[0].grid[2];
    free(r);
    return ok;
}
