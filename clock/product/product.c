/* Runs the steps of a small product, and asks the model of time about those of the large one. */
#include "clock/product/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const facts_product *whole;
    facts_product small;
    const board *on;
    const ptx_sm *sm;
    kernel_steps steps, small_steps;
    double bytes; /* of the operands of the whole */
    ptxvm *vm;
    ptxvm_address at[QDNN_OPERAND_COUNT], workspace;
    product_time *out;
    char *why;
    size_t size;
} run;

static bool fail(run *r, const char *what)
{
    snprintf(r->why, r->size, "%s", what);
    return false;
}

static bool make_operands(run *r)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_operands_of(r->small.row, &r->small.spec, &r->small.problem, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        uint64_t bytes = operands[i].bytes ? operands[i].bytes : 1;
        uint8_t *host;
        if (!operands[i].reads && !operands[i].writes)
            continue;
        if (ptxvm_alloc(r->vm, bytes, &r->at[i]) != PTXVM_OK || !(host = ptxvm_host(r->vm, r->at[i], bytes)))
            return fail(r, ptxvm_last_error(r->vm));
        facts_fill_operand(r->small.row, &r->small.spec, (qdnnOperand_t)i, host, bytes);
    }
    const uint64_t workspace = r->small_steps.workspace ? r->small_steps.workspace : 1;
    return ptxvm_alloc(r->vm, workspace, &r->workspace) == PTXVM_OK || fail(r, ptxvm_last_error(r->vm));
}

static uint64_t blocks_of(const kernel_step *step)
{
    return step->grid[0] * step->grid[1] * step->grid[2];
}

static bool launch(run *r, const kernel_step *step, const char *ptx, ptxvm_module **module)
{
    uint64_t params[KERNEL_PARAMS_MAX];
    char entry[64];
    ptxvm_kernel *kernel;
    for (int i = 0; i < step->n_params; i++) { /* all numbers of products have 8 bytes */
        const kernel_param *p = &step->params[i];
        params[i] = p->kind == KERNEL_OPERAND     ? r->at[p->operand]
                    : p->kind == KERNEL_WORKSPACE ? r->workspace + p->value
                                                  : p->value;
    }
    ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    kernel_entry_name(step->row, entry, sizeof entry);
    return (ptxvm_module_load(r->vm, ptx, strlen(ptx), module) == PTXVM_OK &&
            ptxvm_module_kernel(*module, entry, &kernel) == PTXVM_OK &&
            ptxvm_launch(r->vm, kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK) ||
           fail(r, ptxvm_last_error(r->vm));
}

/* The reasons with the largest shares first. */
static void find_reasons(const clock_result *result, product_time *out)
{
    double all = 0;
    bool taken[CLOCK_STALLS] = {false};
    for (int s = 0; s < CLOCK_STALLS; s++)
        all += result->stalls[s];
    for (int n = 0; n < PRODUCT_REASONS; n++) {
        int best = -1;
        for (int s = 0; s < CLOCK_STALLS; s++)
            if (!taken[s] && (best < 0 || result->stalls[s] > result->stalls[best]))
                best = s;
        taken[best] = true;
        out->reasons[n] = (clock_stall)best;
        out->shares[n] = all > 0 ? result->stalls[best] / all : 0;
    }
}

static void add_up(run *r, bool multiplies, const clock_estimate *e)
{
    product_time *out = r->out;
    for (int c = 0; c < CLOCK_CORNERS; c++)
        out->us[c] += e->at[c].us;
    out->issue_us += e->at[CLOCK_LOW].issue_bound_us;
    out->misfit = e->misfit > out->misfit ? e->misfit : out->misfit;
    if (!multiplies)
        return;
    find_reasons(&e->at[CLOCK_HIGH], out);
    memcpy(out->busy, e->at[CLOCK_HIGH].busy, sizeof out->busy);
    out->dram_busy = e->at[CLOCK_HIGH].dram_busy;
}

static bool time_step(run *r, int i)
{
    const kernel_step *small = &r->small_steps.at[i], *whole = &r->steps.at[i];
    kernel_text text = {0};
    ptx_error error;
    ptxvm_module *module = NULL;
    clock_estimate e;
    const bool multiplies = whole == facts_multiplying(&r->steps);
    if (!kernel_emit(small->row, &small->spec, r->sm, NULL, &text, &error))
        return fail(r, error.text);
    bool ok = launch(r, small, text.ptx, &module);
    if (ok) {
        const clock_case what = {.ptx = text.ptx,
                                 .on = r->on,
                                 .counters = ptxvm_last_counters(r->vm),
                                 .blocks = blocks_of(whole),
                                 .counted_blocks = blocks_of(small),
                                 .threads = (int)whole->block,
                                 .shared = text.info.shared + whole->shared,
                                 .dram_bytes = r->bytes,
                                 .warm = !multiplies}; /* the workspace was just written: it is in L2 */
        ok = clock_time(&what, &e, r->why, r->size);
        if (ok) {
            add_up(r, multiplies, &e);
            clock_estimate_free(&e);
        }
    }
    if (module)
        ptxvm_module_unload(module);
    free(text.ptx);
    return ok;
}

static double operand_bytes(const facts_product *product)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    double bytes = 0;
    kernel_operands_of(product->row, &product->spec, &product->problem, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        bytes += (double)operands[i].bytes;
    return bytes;
}

static bool run_all(run *r)
{
    kernel_steps_of(r->whole->row, &r->whole->spec, &r->whole->problem, &r->steps);
    kernel_steps_of(r->small.row, &r->small.spec, &r->small.problem, &r->small_steps);
    if (r->steps.count != r->small_steps.count)
        return fail(r, "not modelled: a small product takes other launches");
    bool ok = make_operands(r);
    for (int i = 0; ok && i < r->steps.count; i++)
        ok = time_step(r, i);
    return ok;
}

bool product_time_of(const facts_product *product, const board *on, product_time *out, char *why, size_t size)
{
    char sm_name[16];
    const ptxvm_config config = {.board = on->name, .counters = PTXVM_COUNTERS_PATHS};
    board_sm_name(on, sm_name, sizeof sm_name);
    run r = {.whole = product,
             .small = facts_small(product),
             .on = on,
             .sm = ptx_sm_find(sm_name),
             .out = out,
             .why = why,
             .size = size};
    *out = (product_time){0};
    r.bytes = operand_bytes(product);
    if (ptxvm_create(&config, &r.vm) != PTXVM_OK)
        return fail(&r, "ptxvm has no memory, or does not know the board");
    bool ok = run_all(&r);
    ptxvm_destroy(r.vm);
    out->launches = r.steps.count;
    out->roofline_us = r.bytes / on->dram_gbs * 1e-3;
    const double flops =
        2.0 * (double)product->problem.rows * (double)product->problem.columns * (double)product->problem.m;
    for (int c = 0; ok && c < CLOCK_CORNERS; c++) {
        out->tflops[c] = flops / out->us[c] * 1e-6;
        ok = clock_plain_read(on, (clock_corner)c, r.bytes, &out->plain_us[c]) || fail(&r, "out of memory");
    }
    return ok;
}
