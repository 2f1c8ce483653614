/* The elementary functions for every f32: the largest error of the reference in ulp. Also compares the
 * emitted kernel on ptxvm with the reference, where 0 mismatches are expected; there, only one in SPARSE
 * inputs is used, with a different remainder in each chunk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/functions/function_rows.h"
#include "bench/sweep.h"
#include "host_ref/host_ref.h"
#include "ptxvm/ptxvm.h"

enum { CHUNK = 1 << 20, CHUNKS = 1 << 12, SPARSE = 16, PART = CHUNK / SPARSE, THREADS = 256 };

typedef struct result {
    double error; /* the largest */
    uint32_t at;  /* the bits of its x, the lowest if there are several */
    uint64_t mismatches;
} result;

typedef struct job {
    const function_row *row;
    char *kernel;
    result result;
} job;

typedef struct worker {
    const function_row *row;
    ptxvm *vm;
    ptxvm_kernel *kernel;
    ptxvm_address x, y;
    float *inputs, *outputs;
    result result;
} worker;

static void free_worker(worker *w)
{
    ptxvm_destroy(w->vm);
    free(w->inputs);
    free(w->outputs);
    free(w);
}

static bool open_device(worker *w, const char *text)
{
    const ptxvm_config config = {.sm = "sm_90", .threads = 1};
    ptxvm_module *module;
    return ptxvm_create(&config, &w->vm) == PTXVM_OK &&
           ptxvm_module_load(w->vm, text, strlen(text), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, "apply", &w->kernel) == PTXVM_OK &&
           ptxvm_alloc(w->vm, PART * sizeof(float), &w->x) == PTXVM_OK &&
           ptxvm_alloc(w->vm, PART * sizeof(float), &w->y) == PTXVM_OK;
}

static void *open_worker(void *argument)
{
    job *j = argument;
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->row = j->row;
    w->inputs = malloc(PART * sizeof(float));
    w->outputs = malloc(PART * sizeof(float));
    if (w->inputs && w->outputs && open_device(w, j->kernel))
        return w;
    free_worker(w);
    return NULL;
}

static bool run_kernel(worker *w)
{
    const struct {
        ptxvm_address x, y;
        uint32_t n;
    } params = {w->x, w->y, PART};
    const ptxvm_launch_config config = {.grid = {PART / THREADS, 1, 1}, .block = {THREADS, 1, 1}};
    return ptxvm_write(w->vm, w->x, w->inputs, PART * sizeof(float)) == PTXVM_OK &&
           ptxvm_launch(w->vm, w->kernel, &config, &params, 20) == PTXVM_OK &&
           ptxvm_read(w->vm, w->outputs, w->y, PART * sizeof(float)) == PTXVM_OK;
}

static bool compare_kernel(worker *w, uint32_t chunk)
{
    for (uint32_t i = 0; i < PART; i++)
        w->inputs[i] = ref_f32_from_bits(chunk * CHUNK + i * SPARSE + chunk % SPARSE);
    if (!run_kernel(w)) {
        fprintf(stderr, "bench: %s: %s\n", w->row->name, ptxvm_last_error(w->vm));
        return false;
    }
    for (uint32_t i = 0; i < PART; i++)
        w->result.mismatches +=
            ref_f32_to_bits(w->row->reference(w->inputs[i])) != ref_f32_to_bits(w->outputs[i]);
    return true;
}

static void keep_larger(result *r, double error, uint32_t at)
{
    if (error > r->error || (error == r->error && at < r->at)) {
        r->error = error;
        r->at = at;
    }
}

static bool step(void *argument, uint32_t chunk)
{
    worker *w = argument;
    for (uint32_t i = 0; i < CHUNK; i++) {
        float x = ref_f32_from_bits(chunk * CHUNK + i);
        keep_larger(&w->result, function_error(w->row, x, w->row->reference(x)), chunk * CHUNK + i);
    }
    return compare_kernel(w, chunk);
}

static void close_worker(void *argument, void *done)
{
    job *j = argument;
    worker *w = done;
    keep_larger(&j->result, w->result.error, w->result.at);
    j->result.mismatches += w->result.mismatches;
    free_worker(w);
}

static void report(const function_row *row, const result *r)
{
    char name[64], note[96];
    snprintf(name, sizeof name, "functions.%s.ulp", row->name);
    snprintf(note, sizeof note, "the largest of 2^32, at x = %08X; at most %g", (unsigned)r->at, row->limit);
    bench_report(name, r->error, "ulp", note);
    snprintf(name, sizeof name, "functions.%s.mismatches", row->name);
    bench_report(name, (double)r->mismatches, "of 2^28", "the kernel on ptxvm against host_ref");
}

void bench_functions(void)
{
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        const function_row *row = &function_rows[i];
        job j = {.row = row, .kernel = function_kernel(row, ptx_sm_find("sm_90"))};
        const sweep s = {.name = row->name,
                         .chunks = CHUNKS,
                         .open = open_worker,
                         .step = step,
                         .close = close_worker,
                         .job = &j};
        if (j.kernel && sweep_run(&s))
            report(row, &j.result);
        free(j.kernel);
    }
}
