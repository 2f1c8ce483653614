/* Products in mode tensor: how far sums are from f64, by K, next to a chain of f32; and what their kernels cost by ptxvm's
 * counters, as thread instructions of PTX a weight. docs/performance.md has the figures of SASS. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "host_ref/host_ref.h"
#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"

/* ---- Accuracy ---- */

enum { LONGEST = 16384, TRIALS = 200 };

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* About normal, as f16. */
static uint16_t number(uint32_t *state)
{
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (float)next(state) * 0x1p-24f - 0.5f;
    return ref_f32_to_f16(sum * 1.73f);
}

typedef float sum_fn(const uint16_t *x, const uint16_t *w, int64_t k);

static float chain_of_f32(const uint16_t *x, const uint16_t *w, int64_t k)
{
    float sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum = fmaf(ref_f16_to_f32(x[i]), ref_f16_to_f32(w[i]), sum);
    return sum;
}

static float on_sm80(const uint16_t *x, const uint16_t *w, int64_t k)
{
    return ref_tensor_sum(REF_TENSOR_SM80, QDNN_DATA_F16, x, QDNN_DATA_F16, w, k);
}

static float on_sm90(const uint16_t *x, const uint16_t *w, int64_t k)
{
    return ref_tensor_sum(REF_TENSOR_SM90, QDNN_DATA_F16, x, QDNN_DATA_F16, w, k);
}

/* The root mean square of errors, in units of that of the sums. */
static double error_of(sum_fn *sum, int64_t k)
{
    static uint16_t x[LONGEST], w[LONGEST];
    uint32_t state = 1;
    double errors = 0, sums = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        double exact = 0;
        for (int64_t i = 0; i < k; i++) {
            x[i] = number(&state);
            w[i] = number(&state);
            exact += (double)ref_f16_to_f32(x[i]) * (double)ref_f16_to_f32(w[i]);
        }
        const double error = (double)sum(x, w, k) - exact;
        errors += error * error;
        sums += exact * exact;
    }
    return sqrt(errors / sums);
}

static void accuracy(void)
{
    static const int64_t ks[] = {64, 512, 4096, LONGEST};
    static const struct {
        const char *name;
        sum_fn *sum;
    } ways[] = {{"f32_chain", chain_of_f32}, {"sm_80", on_sm80}, {"sm_90", on_sm90}};
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
            char name[96];
            snprintf(name, sizeof name, "tensor.error_%lld_%s", (long long)ks[i], ways[w].name);
            bench_report(name, error_of(ways[w].sum, ks[i]) * 1e9, "1e-9",
                         "against f64, relative to the sums");
        }
}

/* ---- Counters ---- */

enum { SIZE = 1024, BUFFER = 4 * SIZE * SIZE };

typedef struct cost_row {
    const char *name, *kernel;
    kernel_product product;
    const char *settings[6][2];
} cost_row;

static const cost_row rows[] = {
    {"int4_g128",
     "matmul_int4",
     KERNEL_PRODUCT_STREAM,
     {{"scale", "f16"}, {"groups", "rows"}, {"scale_order", "transposed"}}},
    {"nf4_g64",
     "matmul_nf4",
     KERNEL_PRODUCT_STREAM,
     {{"group_size", "64"}, {"groups", "rows"}, {"scale_order", "transposed"}}},
    {"nvfp4",
     "matmul_e2m1",
     KERNEL_PRODUCT_STREAM,
     {{"scale", "e4m3"}, {"group_size", "16"}, {"groups", "rows"}, {"scale_order", "transposed"}}},
    {"q4_k", "matmul_gguf_q4_k", KERNEL_PRODUCT_TILE, {{NULL, NULL}}},
};

/* All operands are zeros in one buffer: the counts do not depend on them. */
static bool run_step(ptxvm *vm, const kernel_step *step, ptxvm_address buffer, ptxvm_counts *sum)
{
    kernel_text text;
    ptx_error error;
    uint64_t params[KERNEL_PARAMS_MAX];
    char entry[64];
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel = NULL;
    for (int i = 0; i < step->n_params; i++) /* numbers of products have 8 bytes */
        params[i] = step->params[i].kind == KERNEL_NUMBER ? step->params[i].value : buffer;
    kernel_entry_name(step->row, entry, sizeof entry);
    if (!kernel_emit(step->row, &step->spec, ptx_sm_find("sm_80"), NULL, &text, &error))
        return false;
    ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    bool ok = ptxvm_module_load(vm, text.ptx, strlen(text.ptx), &module) == PTXVM_OK &&
              ptxvm_module_kernel(module, entry, &kernel) == PTXVM_OK &&
              ptxvm_launch(vm, kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK;
    if (ok) {
        const ptxvm_counters *c = ptxvm_last_counters(vm);
        sum->instructions += c->total.instructions;
        sum->bank_conflicts += c->total.bank_conflicts;
    }
    if (module)
        ptxvm_module_unload(module);
    free(text.ptx);
    return ok;
}

static void cost(ptxvm *vm, ptxvm_address buffer, const cost_row *r, uint64_t m)
{
    const kernel_row *row = kernel_find(r->kernel);
    kernel_spec spec = kernel_spec_default();
    kernel_steps steps;
    ptxvm_counts sum = {0};
    char error[256], name[96];
    for (int i = 0; r->settings[i][0]; i++)
        kernel_spec_set(row, &spec, r->settings[i][0], r->settings[i][1], error, sizeof error);
    spec.data = spec.output = QDNN_DATA_F16;
    spec.product = r->product;
    spec.tile_rows =
        r->product == KERNEL_PRODUCT_TILE ? kernel_tile_rows(row, m) : kernel_stream_rows(row, m);
    const kernel_problem problem = {
        .rows = SIZE, .columns = SIZE, .m = m, .x_stride = SIZE, .y_stride = SIZE};
    kernel_steps_of(row, &spec, &problem, &steps);
    bool ok = true;
    for (int i = 0; i < steps.count && ok; i++)
        ok = run_step(vm, &steps.at[i], buffer, &sum);
    snprintf(name, sizeof name, "tensor.%s.m%llu", r->name, (unsigned long long)m);
    if (!ok || sum.bank_conflicts)
        fprintf(stderr, "bench: %s: %s\n", name, ok ? "bank conflicts" : ptxvm_last_error(vm));
    else
        bench_report(name, (double)sum.instructions * 32 / (SIZE * SIZE), "PTX instructions a weight",
                     "sm_80, no bank conflict");
}

void bench_tensor(void)
{
    static const uint64_t ms[] = {1, 16, 64, 256};
    const ptxvm_config config = {.sm = "sm_80", .counters = PTXVM_COUNTERS_KERNEL};
    ptxvm *vm;
    ptxvm_address buffer;
    accuracy();
    if (ptxvm_create(&config, &vm) != PTXVM_OK)
        return;
    if (ptxvm_alloc(vm, BUFFER, &buffer) == PTXVM_OK && ptxvm_fill(vm, buffer, 0, BUFFER) == PTXVM_OK)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++)
                cost(vm, buffer, &rows[r], ms[i]);
    ptxvm_destroy(vm);
}
