/* The lanewise product by ptxvm's counters: the share of fma in all instructions that one block executes, in
 * PTX (without mov, which ptxas removes) and, if ptxas and nvdisasm are found, in SASS; with the target.
 * Set-up and epilogue are included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "clock/sass/sass.h"
#include "kernels/kernels.h"

enum { K = 4096 };

static const struct {
    const char *name, *kernel, *settings[8];
} formats[] = {
    {"int4", "matmul_int4", {"scale=f16", "groups=rows"}},
    {"int4_zp", "matmul_int4_zp", {"groups=rows"}},
    {"gptq",
     "matmul_int4_zp",
     {"layout=interleaved", "groups=columns", "zero_packed=yes", "scale=f16", "reduction=rows"}},
    {"awq",
     "matmul_int4_zp",
     {"layout=awq", "groups=columns", "zero_packed=yes", "scale=f16", "reduction=rows"}},
    {"nf4", "matmul_nf4", {"group_size=64"}},
    {"e4m3", "matmul_e4m3", {"groups=rows"}},
    {"nvfp4", "matmul_e2m1", {"groups=rows", "scale=e4m3", "group_size=16", "global_scale=yes"}},
    {"q4_0", "matmul_gguf_q4_0", {0}},
    {"q8_0", "matmul_gguf_q8_0", {0}},
    {"q4_k", "matmul_gguf_q4_k", {0}},
    {"q6_k", "matmul_gguf_q6_k", {0}},
    {"plain_f16", "matmul_plain_f16", {0}},
};

/* Rows of x, and the target share of fma. */
static const struct {
    unsigned rows;
    double asked;
} tiles[] = {{64, 78}, {128, 82}};

static const char *const sms[] = {"sm_80", "sm_90", "sm_120"};

static kernel_spec spec_of(const kernel_row *row, const char *const *settings, unsigned rows)
{
    kernel_spec spec = kernel_spec_default();
    for (; *settings; settings++) {
        char key[32] = {0}, error[256];
        const char *value = strchr(*settings, '=') + 1;
        memcpy(key, *settings, (size_t)(value - 1 - *settings));
        if (!kernel_spec_set(row, &spec, key, value, error, sizeof error))
            fprintf(stderr, "bench: lanewise: %s\n", error);
    }
    spec.data = spec.epilogue.output = QDNN_DATA_F16;
    spec.product.kernel = KERNEL_PRODUCT_LANEWISE;
    spec.product.tile_rows = rows;
    return spec;
}

/* Buffers of numbers near 1; their contents do not affect the instructions executed. */
static bool make_params(ptxvm *vm, const kernel_step *step, const kernel_operand *operands, uint64_t *params)
{
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        params[i] = p->value;
        if (p->kind != KERNEL_OPERAND)
            continue;
        uint64_t bytes = operands[p->operand].bytes;
        if (ptxvm_alloc(vm, bytes, &params[i]) != PTXVM_OK ||
            ptxvm_fill(vm, params[i], 0x38, bytes) != PTXVM_OK)
            return false;
    }
    return true;
}

static bool launch(ptxvm *vm, const kernel_step *step, const char *ptx, const kernel_operand *operands)
{
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    uint64_t params[KERNEL_PARAMS_MAX];
    char entry[64];
    kernel_entry_name(step->row, entry, sizeof entry);
    const ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1}};
    return make_params(vm, step, operands, params) &&
           ptxvm_module_load(vm, ptx, strlen(ptx), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, entry, &kernel) == PTXVM_OK &&
           ptxvm_launch(vm, kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK;
}

/* The share in all PTX instructions other than mov, in per cent. */
static double ptx_share(const char *ptx, const ptxvm_counters *counters)
{
    uint64_t fma = 0, all = 0;
    for (int i = 1; i < counters->n_lines && ptx; i++) {
        const char *line = ptx + strspn(ptx, " \t");
        if (strncmp(line, "mov", 3) != 0)
            all += counters->lines[i].instructions;
        if (strncmp(line, "fma", 3) == 0)
            fma += counters->lines[i].instructions;
        ptx = strchr(ptx, '\n');
        ptx += ptx != NULL;
    }
    return all ? 100.0 * (double)fma / (double)all : 0;
}

static void report(const char *name, const char *ptx, const char *sm, const ptxvm_counters *counters,
                   uint64_t warps, double asked)
{
    char text[96], note[256], why[256];
    const uint64_t conflicts = counters->total.bank_conflicts;
    snprintf(text, sizeof text, "lanewise.%s.ptx.%s", name, sm);
    snprintf(note, sizeof note, "asked: %.0f; %llu bank conflicts", asked, (unsigned long long)conflicts);
    bench_report(text, ptx_share(ptx, counters), "% fma", note);
    sass_report s;
    if (!sass_found(why, sizeof why))
        return;
    if (!sass_measure(ptx, sm, counters, warps, &s, why, sizeof why)) {
        fprintf(stderr, "bench: %s: %s\n", text, why);
        return;
    }
    snprintf(text, sizeof text, "lanewise.%s.sass.%s", name, sm);
    snprintf(note, sizeof note, "asked: %.0f; %d registers, %d bytes spilled, misfit %.1f%%", asked,
             s.registers, s.spill_bytes, 100 * s.misfit);
    for (int i = 1; i < s.n_opcodes && i < 8; i++)
        snprintf(note + strlen(note), sizeof note - strlen(note), "; %s %.1f", s.opcodes[i].name,
                 100 * s.opcodes[i].issued / s.issued);
    bench_report(text, 100 * (sass_issued(&s, "FFMA") + sass_issued(&s, "FFMA2")) / s.issued, "% fma", note);
}

/* One block: N is the width of a tile. */
static void measure(int format, int tile, const char *sm)
{
    const kernel_row *row = kernel_find(formats[format].kernel);
    const unsigned rows = tiles[tile].rows;
    kernel_spec spec = spec_of(row, formats[format].settings, rows);
    const uint64_t n = 8192 / rows, k = K;
    const bool by_columns = spec.product.reduction == KERNEL_K_COLUMNS;
    const kernel_problem problem = {
        .rows = by_columns ? n : k, .columns = by_columns ? k : n, .m = rows, .x_stride = k, .y_stride = n};
    ptxvm_config config = {.sm = sm, .counters = PTXVM_COUNTERS_LINES};
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_steps steps;
    kernel_text text;
    ptx_error error;
    ptxvm *vm = NULL;
    char name[64];
    snprintf(name, sizeof name, "%s.m%u", formats[format].name, rows);
    bench_progress("lanewise.%s.%s", name, sm);
    if (!kernel_emit(row, &spec, ptx_sm_find(sm), NULL, &text, &error)) {
        fprintf(stderr, "bench: lanewise.%s: %s\n", name, error.text);
        return;
    }
    kernel_operands_of(row, KERNEL_NORMAL(row, &spec), &problem, operands);
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &problem, &steps);
    if (ptxvm_create(&config, &vm) != PTXVM_OK || !launch(vm, &steps.at[0], text.ptx, operands))
        fprintf(stderr, "bench: lanewise.%s: %s\n", name, vm ? ptxvm_last_error(vm) : "no device");
    else
        report(name, text.ptx, sm, ptxvm_last_counters(vm), text.geometry.block / SASS_LANES,
               tiles[tile].asked);
    ptxvm_destroy(vm);
    free(text.ptx);
}

void bench_lanewise(void)
{
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++)
            for (size_t s = 0; s < (f ? 1 : sizeof sms / sizeof sms[0]); s++)
                measure((int)f, (int)t, sms[s]);
}
