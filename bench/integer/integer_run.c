/* Integer products on ptxvm, counted. */
#include "bench/integer/integer_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/sass/sass.h"
#include "kernels/integer/integer.h"
#include "ptxvm/ptxvm.h"

typedef struct job {
    const integer_run *run;
    const kernel_row *row;
    kernel_problem problem;
    kernel_steps steps;
    kernel_text text;
    ptxvm *vm;
} job;

/* A convolution with as many positions in y as in x. */
static void set_windows(const integer_run *run, kernel_spec *spec, kernel_problem *p)
{
    const uint64_t w = run->window;
    spec->conv.window_h = spec->conv.window_w = w;
    spec->conv.window_c = run->k;
    p->columns = run->k * w * w;
    p->conv = (kernel_conv){.images = run->m / 256,
                            .channels = run->k,
                            .outputs = run->n,
                            .groups = 1,
                            .in = {16, 16},
                            .out = {16, 16},
                            .stride = {1, 1},
                            .padding = {w / 2, w / 2},
                            .dilation = {1, 1}};
}

/* The product's step, with the tile that the settings name and not the one that the shape asks for. */
static bool prepare(job *j)
{
    kernel_spec spec = kernel_spec_default();
    char error[256];
    j->row = kernel_find(j->run->kernel);
    for (int i = 0; j->row && j->run->settings[i]; i++) {
        char key[32];
        const char *value = strchr(j->run->settings[i], '=') + 1;
        snprintf(key, sizeof key, "%.*s", (int)(value - 1 - j->run->settings[i]), j->run->settings[i]);
        if (!kernel_spec_set(j->row, &spec, key, value, error, sizeof error)) {
            fprintf(stderr, "%s: %s\n", j->run->kernel, error);
            return false;
        }
    }
    if (!j->row)
        return false;
    spec = kernel_spec_normal(j->row, &spec);
    j->problem = (kernel_problem){
        .m = j->run->m, .rows = j->run->n, .columns = j->run->k, .multiplier = 0.01f, .alpha = 1};
    if (j->run->window)
        set_windows(j->run, &spec, &j->problem);
    j->steps = (kernel_steps){0};
    steps_add(&j->steps, j->row, &spec, &j->problem);
    ptx_error problem;
    if (kernel_emit(j->row, &spec, ptx_sm_find(j->run->sm), NULL, &j->text, &problem))
        return true;
    fprintf(stderr, "%s: %s\n", j->run->kernel, problem.text);
    return false;
}

/* Codes are any bytes; numbers lie between 1/2 and 1. */
static bool fill(ptxvm *vm, ptxvm_address at, uint64_t bytes, bool codes)
{
    uint8_t *host = ptxvm_host(vm, at, bytes);
    uint32_t seed = 1;
    for (uint64_t i = 0; host && i < bytes; i++) {
        seed = seed * 1664525 + 1013904223;
        host[i] = (uint8_t)(codes ? seed >> 24 : i % 4 == 3 ? 0x3F : seed >> 30);
    }
    return host;
}

static bool add_operand(job *j, int operand, const kernel_operand *o, uint64_t *address)
{
    const bool codes = operand == QDNN_OPERAND_X || operand == QDNN_OPERAND_CODES;
    const uint64_t shift = codes ? (uint64_t)j->run->shift : 0;
    if (ptxvm_alloc(j->vm, o->bytes + 16, address) != PTXVM_OK)
        return false;
    *address += shift;
    return o->writes || fill(j->vm, *address, o->bytes, codes);
}

/* Each parameter at the next multiple of its size. */
static bool make_params(job *j, uint8_t *block, uint64_t *bytes)
{
    const kernel_step *step = &j->steps.at[j->steps.count - 1];
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_operands_of(j->row, &step->spec, &j->problem, operands);
    *bytes = 0;
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        uint64_t value = p->value, size = p->kind == KERNEL_NUMBER ? p->bytes : 8;
        if (p->kind != KERNEL_NUMBER && !add_operand(j, p->operand, &operands[p->operand], &value))
            return false;
        *bytes = (*bytes + size - 1) / size * size;
        memcpy(block + *bytes, &value, size);
        *bytes += size;
    }
    return true;
}

static bool launch(job *j)
{
    const kernel_step *step = &j->steps.at[j->steps.count - 1];
    ptxvm_config config = {.sm = j->run->sm,
                           .counters = j->run->sass ? PTXVM_COUNTERS_LINES : PTXVM_COUNTERS_KERNEL};
    ptxvm_launch_config how = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1}};
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    uint8_t params[KERNEL_PARAMS_MAX * 8];
    uint64_t bytes;
    char entry[64];
    kernel_entry_name(j->row, entry, sizeof entry);
    return ptxvm_create(&config, &j->vm) == PTXVM_OK &&
           ptxvm_module_load(j->vm, j->text.ptx, strlen(j->text.ptx), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, entry, &kernel) == PTXVM_OK && make_params(j, params, &bytes) &&
           ptxvm_launch(j->vm, kernel, &how, params, bytes) == PTXVM_OK && ptxvm_last_counters(j->vm);
}

static double count_sass(const job *j)
{
    const kernel_step *step = &j->steps.at[j->steps.count - 1];
    const uint64_t warps = step->grid[0] * step->grid[1] * step->grid[2] * (step->block / SASS_LANES);
    char error[512];
    sass_report report;
    if (sass_measure(j->text.ptx, j->run->sm, ptxvm_last_counters(j->vm), warps, &report, error,
                     sizeof error))
        return report.issued;
    fprintf(stderr, "%s: %s\n", j->run->kernel, error);
    return 0;
}

bool integer_measure(const integer_run *run, integer_cost *cost)
{
    job j = {.run = run};
    bool ok = prepare(&j) && launch(&j);
    if (ok) {
        const ptxvm_counts *c = &ptxvm_last_counters(j.vm)->total;
        *cost = (integer_cost){.instructions = c->instructions,
                               .mma = c->mma,
                               .bank_conflicts = c->bank_conflicts,
                               .load_sectors = c->load.sectors,
                               .store_sectors = c->store.sectors,
                               .sass = run->sass ? count_sass(&j) : 0};
    } else {
        fprintf(stderr, "%s: %s\n", run->kernel, j.vm ? ptxvm_last_error(j.vm) : "it does not run");
    }
    ptxvm_destroy(j.vm);
    free(j.text.ptx);
    return ok;
}
