/* The memory traffic of an operation by ptxvm's counters, and what it launches. */
#include "bench/counted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/ptxvm.h"

/* Numbers between 1/2 and 1, whatever type they are read as, so that there are no special cases. */
static bool fill(ptxvm *vm, ptxvm_address address, uint64_t bytes)
{
    uint8_t *at = ptxvm_host(vm, address, bytes);
    for (uint64_t i = 0; at && i < bytes; i++)
        at[i] = i % 4 == 3 ? 0x3F : (uint8_t)((i * 2654435761u >> 13) & 0x3F);
    return at;
}

typedef struct machine {
    ptxvm *vm;
    ptxvm_address at[QDNN_OPERAND_COUNT], workspace;
} machine;

static bool make_operands(machine *m, const kernel_operand *operands, uint64_t workspace, uint64_t *least)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        *least += (operands[i].bytes + 31) / 32;
        if (operands[i].bytes && (ptxvm_alloc(m->vm, operands[i].bytes, &m->at[i]) != PTXVM_OK ||
                                  !fill(m->vm, m->at[i], operands[i].bytes)))
            return false;
    }
    return workspace == 0 || ptxvm_alloc(m->vm, workspace, &m->workspace) == PTXVM_OK;
}

static bool launch(machine *m, const kernel_step *step, const char *ptx)
{
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    uint8_t params[KERNEL_PARAMS_MAX * 8] = {0};
    uint64_t bytes = 0;
    char entry[64];
    kernel_entry_name(step->row, entry, sizeof entry);
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        uint64_t value = p->kind == KERNEL_OPERAND     ? m->at[p->operand]
                         : p->kind == KERNEL_WORKSPACE ? m->workspace + p->value
                                                       : p->value;
        uint64_t size = p->kind == KERNEL_NUMBER ? p->bytes : 8;
        bytes = (bytes + size - 1) / size * size;
        memcpy(params + bytes, &value, size);
        bytes += size;
    }
    const ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    return ptxvm_module_load(m->vm, ptx, strlen(ptx), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, entry, &kernel) == PTXVM_OK &&
           ptxvm_launch(m->vm, kernel, &config, params, bytes) == PTXVM_OK;
}

/* Runs one launch and adds its counts. */
static bool run_step(machine *m, const kernel_step *step, counted *c)
{
    kernel_text text;
    ptx_error error;
    if (!kernel_emit(step->row, &step->spec, ptx_sm_find("sm_90"), NULL, &text, &error))
        return false;
    bool ok = launch(m, step, text.ptx);
    const ptxvm_counters *counters = ok ? ptxvm_last_counters(m->vm) : NULL;
    free(text.ptx);
    if (!counters)
        return false;
    c->kernels++;
    c->unique += counters->unique_sectors;
    c->requested += counters->total.load.sectors + counters->total.store.sectors;
    c->instructions += counters->total.instructions;
    c->blocks += step->grid[0] * step->grid[1] * step->grid[2];
    c->warps += step->grid[0] * step->grid[1] * step->grid[2] * ((step->block + 31) / 32);
    return true;
}

bool counted_run(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem, counted *c)
{
    const ptxvm_config config = {.sm = "sm_90", .threads = 1, .counters = PTXVM_COUNTERS_KERNEL};
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_steps steps;
    machine m = {0};
    *c = (counted){.row = row};
    kernel_operands_of(row, spec, problem, operands);
    kernel_steps_of(row, spec, problem, &steps);
    bool ok =
        ptxvm_create(&config, &m.vm) == PTXVM_OK && make_operands(&m, operands, steps.workspace, &c->least);
    for (int i = 0; i < steps.count && ok; i++)
        ok = run_step(&m, &steps.at[i], c);
    if (!ok)
        fprintf(stderr, "bench: counters of %s: %s\n", row->name,
                m.vm ? ptxvm_last_error(m.vm) : "no device");
    ptxvm_destroy(m.vm);
    return ok && c->kernels > 0;
}
