/* The cost of kernels in SASS instructions, determined without a GPU (clock/sass/sass.h): instructions per
 * element, registers and spills for every kernel with default settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "clock/sass/sass.h"
#include "kernels/kernels.h"

enum { ELEMENTS = 1 << 18, PARAMS = 16 };

static const char *const sms[] = {"sm_80", "sm_90", "sm_120"};

typedef struct run {
    const kernel_row *row;
    const char *sm;
    kernel_spec spec;
    kernel_text text;
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    uint64_t warps;
} run;

/* Numbers between 1/2 and 1, so that there are no special cases. */
static bool fill(ptxvm *vm, ptxvm_address address, uint64_t bytes)
{
    float *x = ptxvm_host(vm, address, bytes);
    uint32_t seed = 1;
    for (uint64_t i = 0; x && i < bytes / 4; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = 0.5f + (float)(seed >> 9) / 16777216.0f;
    }
    return x;
}

/* Every pointer gets a buffer that is large enough for any use; all other parameters are the number of
 * elements. */
static bool make_params(run *r, uint64_t params[PARAMS], uint64_t *bytes)
{
    ptxvm_param_info info;
    *bytes = 0;
    for (int i = 0; i < PARAMS && ptxvm_kernel_get_param(r->kernel, i, &info); i++) {
        params[i] = ELEMENTS;
        if (info.bytes != sizeof params[i] || info.offset != *bytes)
            return false;
        if (info.is_pointer && (ptxvm_alloc(r->vm, 4 * ELEMENTS, &params[i]) != PTXVM_OK ||
                                !fill(r->vm, params[i], 4 * ELEMENTS)))
            return false;
        *bytes += sizeof params[i];
    }
    return true;
}

static bool launch(run *r)
{
    kernel_steps steps;
    kernel_steps_of(r->row, KERNEL_NORMAL(r->row, &r->spec),
                    &(kernel_problem){.rows = 1, .columns = ELEMENTS}, &steps);
    uint64_t params[PARAMS], bytes, blocks = steps.at[0].grid[0];
    char entry[64];
    kernel_entry_name(r->row, entry, sizeof entry);
    ptxvm_launch_config config = {.grid = {(uint32_t)blocks, 1, 1},
                                  .block = {r->text.geometry.block, 1, 1},
                                  .shared_bytes = r->text.geometry.shared_dynamic};
    r->warps = blocks * ((r->text.geometry.block + SASS_LANES - 1) / SASS_LANES);
    return ptxvm_module_load(r->vm, r->text.ptx, strlen(r->text.ptx), &r->module) == PTXVM_OK &&
           ptxvm_module_kernel(r->module, entry, &r->kernel) == PTXVM_OK && make_params(r, params, &bytes) &&
           ptxvm_launch(r->vm, r->kernel, &config, params, bytes) == PTXVM_OK;
}

/* "30 registers, 0 bytes spilled, misfit 0.0%; FMUL 4.0, LOP3 3.1, ..." */
static void describe(const sass_report *s, char *note, size_t size)
{
    snprintf(note, size, "%d registers, %d bytes spilled, %d written, misfit %.1f%%;", s->registers,
             s->spill_bytes, s->written, 100 * s->misfit);
    for (int i = 0; i < s->n_opcodes && i < 5; i++)
        snprintf(note + strlen(note), size - strlen(note), " %s %.2f", s->opcodes[i].name,
                 SASS_LANES * s->opcodes[i].issued / ELEMENTS);
}

static void report(run *r)
{
    char name[96], note[256], error[512];
    sass_report s;
    if (!sass_measure(r->text.ptx, r->sm, ptxvm_last_counters(r->vm), r->warps, &s, error, sizeof error)) {
        fprintf(stderr, "bench: sass of %s: %s\n", r->row->name, error);
        return;
    }
    describe(&s, note, sizeof note);
    snprintf(name, sizeof name, "sass.%s.%s", r->row->name, r->sm);
    bench_report(name, SASS_LANES * s.issued / ELEMENTS, "per element", note);
}

static void measure(const kernel_row *row, const char *sm)
{
    run r = {.row = row, .sm = sm, .spec = kernel_spec_default()};
    ptxvm_config config = {.sm = sm, .counters = PTXVM_COUNTERS_LINES};
    ptx_error error;
    bench_progress("sass.%s.%s", row->name, sm);
    if (!kernel_emit(row, &r.spec, ptx_sm_find(sm), NULL, &r.text, &error))
        fprintf(stderr, "bench: %s: %s\n", row->name, error.text);
    else if (ptxvm_create(&config, &r.vm) != PTXVM_OK || !launch(&r))
        fprintf(stderr, "bench: %s: %s\n", row->name, r.vm ? ptxvm_last_error(r.vm) : "no device");
    else
        report(&r);
    ptxvm_destroy(r.vm);
    free(r.text.ptx);
}

/* These work on three matrices instead of elements; see bench integer. */
static bool is_integer_product(const kernel_row *row)
{
    kernel_operation o = kernel_operation_of(row);
    return (o >= KERNEL_INT4_DOT && o <= KERNEL_INT8_CONV2D) || o == KERNEL_TRANSPOSE;
}

void bench_sass(void)
{
    char why[256];
    if (!sass_found(why, sizeof why)) {
        printf("sass: skipped, %s\n", why);
        return;
    }
    for (int i = 0; i < kernel_row_count; i++)
        for (size_t k = 0; !is_integer_product(&kernel_rows[i]) && k < sizeof sms / sizeof sms[0]; k++)
            measure(&kernel_rows[i], sms[k]);
}
