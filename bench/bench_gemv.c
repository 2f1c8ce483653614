/* Products of few rows, N = K = 4096 unless a case specifies others: SASS instructions per weight
 * (clock/sass/sass.h; without ptxas or nvdisasm, PTX instructions other than mov), registers, and sectors of
 * global memory compared with the minimum, each with its target. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "clock/product/code.h"
#include "clock/sass/sass.h"
#include "kernels/kernels.h"

enum { SIDE = 4096 };

static const char *const sms[] = {"sm_75",  "sm_80",  "sm_90",  "sm_100",
                                  "sm_103", "sm_110", "sm_120", "sm_121"};
enum { SMS = sizeof sms / sizeof sms[0] };

/* `asked`: the maximum number of instructions per weight on sm_75 and sm_80; on sm_90; on sm_100 and sm_103;
 * and on later ones. 0: no target. */
typedef struct gemv_case {
    const char *name, *kernel;
    const char *settings; /* "key=value key=value"; n and k if they are not 4096 */
    double asked[4];
} gemv_case;

/* clang-format off */
static const gemv_case cases[] = {
    {"int4_f16",      "matmul_int4",      "data=f16 output=f16 scale=f16",                                {3.8, 3.8, 2.7, 3.2}},
    {"int4_bf16",     "matmul_int4",      "data=bf16 output=bf16 scale=bf16",                             {3.8, 3.8, 2.7, 3.2}},
    {"int4_f32",      "matmul_int4",      "data=f16 output=f16 scale=f32",                                {3.9, 3.9, 3.4, 3.9}},
    {"int4_zp_f16",   "matmul_int4_zp",   "data=f16 output=f16 scale=f16",                                {0}},
    {"nf4",           "matmul_nf4",       "data=f16 output=f16 scale=f32 group_size=64 nibble_order=high", {3.6, 3.6, 2.9, 3.6}},
    {"fp8_e4m3",      "matmul_e4m3",      "data=f16 output=f16 scale=f32 channels=1",                     {4.6, 3.95, 2.95, 3.95}},
    {"fp8_e5m2",      "matmul_e5m2",      "data=f16 output=f16 scale=f32 channels=1",                     {4.6, 3.95, 2.95, 3.95}},
    {"nvfp4",         "matmul_e2m1",      "data=f16 output=f16 scale=e4m3 group_size=16 global_scale=yes", {4.8, 4.8, 3.4, 4.7}},
    {"nvfp4_alpha",   "matmul_e2m1",      "data=f16 output=f16 scale=e4m3 group_size=16 alpha=one",       {3.9, 3.9, 3.0, 3.8}},
    {"mxfp4",         "matmul_e2m1",      "data=f16 output=f16 scale=e8m0 group_size=32",                 {4, 4, 4, 4}},
    {"int8_f16",      "matmul_int8",      "data=f16 output=f16 scale=f16",                                {0}},
    {"plain_f16",     "matmul_plain_f16", "data=f16 output=f16",                                          {4, 4, 4, 4}},
    {"words",         "matmul_int4_zp",   "product=columns reduction=rows layout=interleaved groups=columns data=f16 zero=u8", {4.9, 4.9, 3.4, 4.4}},
    {"gptq",          "matmul_int4_zp",   "product=columns reduction=rows layout=interleaved groups=columns data=f16 scale=f16 zero_packed=yes", {0}},
#include "bench/columns_cases.def"
#include "bench/ragged_cases.def"
    {"q4_k",          "matmul_gguf_q4_k", "product=blocks data=f16",                                      {4.1, 4.1, 3.1, 4.1}},
    {"q8_0",          "matmul_gguf_q8_0", "product=blocks data=f16",                                      {5, 5, 5, 5}},
    {"q6_k",          "matmul_gguf_q6_k", "product=blocks data=f16",                                      {6, 6, 6, 6}},
    {"q2_k",          "matmul_gguf_q2_k", "product=blocks data=f16",                                      {0}},
    {"q3_k",          "matmul_gguf_q3_k", "product=blocks data=f16",                                      {0}},
    {"q5_k",          "matmul_gguf_q5_k", "product=blocks data=f16",                                      {0}},
    {"gguf_mxfp4",    "matmul_gguf_mxfp4", "product=blocks data=f16",                                     {4, 4, 4, 4}},
    {"gguf_nvfp4",    "matmul_gguf_nvfp4", "product=blocks data=f16",                                     {0}},
    {"iq4_nl",        "matmul_gguf_iq4_nl", "product=blocks data=f16",                                    {0}},
    {"iq4_xs",        "matmul_gguf_iq4_xs", "product=blocks data=f16",                                    {0}},
    {"q4_0",          "matmul_gguf_q4_0", "product=blocks data=f16",                                      {0}},
    {"q4_k.m8",       "matmul_gguf_q4_k", "product=blocks data=f16 tile_rows=8",                          {0}},
    {"q4_k.m16",      "matmul_gguf_q4_k", "product=blocks data=f16 tile_rows=16",                         {0}},
    {"int4_f16.m2",   "matmul_int4",      "data=f16 output=f16 scale=f16 tile_rows=2",                    {5}},
    {"int4_f16.m4",   "matmul_int4",      "data=f16 output=f16 scale=f16 tile_rows=4",                    {7.7}},
    {"int4_f16.m8",   "matmul_int4",      "data=f16 output=f16 scale=f16 tile_rows=8",                    {12.6}},
    {"int4_f16.m16",  "matmul_int4",      "data=f16 output=f16 scale=f16 tile_rows=16",                   {24}},
};
/* clang-format on */

/* Which of the targets applies to an SM. */
static int column_of(const char *sm)
{
    const int number = atoi(sm + 3);
    return number < 90 ? 0 : number < 100 ? 1 : number < 110 ? 2 : 3;
}

typedef struct run {
    const gemv_case *c;
    const kernel_row *row;
    kernel_spec spec;
    uint64_t n, k; /* of the weights */
    kernel_text text;
    kernel_problem problem;
    kernel_steps steps;
    uint64_t least; /* sectors */
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
} run;

static bool set_settings(run *r)
{
    char text[256], error[256], *rest = text;
    snprintf(text, sizeof text, "product=gemv %s", r->c->settings);
    r->spec = kernel_spec_default();
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        *value++ = 0;
        uint64_t *size = strcmp(word, "n") == 0 ? &r->n : strcmp(word, "k") == 0 ? &r->k : NULL;
        if (size)
            *size = strtoull(value, NULL, 10);
        else if (!kernel_spec_set(r->row, &r->spec, word, value, error, sizeof error)) {
            fprintf(stderr, "bench: gemv.%s: %s\n", r->c->name, error);
            return false;
        }
    }
    return true;
}

static bool make_operands(run *r, uint64_t address[QDNN_OPERAND_COUNT])
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_operands_of(r->row, KERNEL_NORMAL(r->row, &r->spec), &r->problem, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (!operands[i].reads && !operands[i].writes)
            continue;
        uint64_t bytes = operands[i].bytes;
        uint8_t *host;
        if (ptxvm_alloc(r->vm, bytes, &address[i]) != PTXVM_OK ||
            !(host = ptxvm_host(r->vm, address[i], bytes)))
            return false;
        facts_fill_operand(r->row, &r->spec, (qdnnOperand_t)i, host, bytes);
        r->least += (bytes + 31) / 32;
    }
    return true;
}

static bool launch(run *r)
{
    uint64_t address[QDNN_OPERAND_COUNT] = {0}, params[KERNEL_PARAMS_MAX];
    kernel_steps_of(r->row, KERNEL_NORMAL(r->row, &r->spec), &r->problem, &r->steps);
    const kernel_step *step = &r->steps.at[0];
    char entry[64];
    kernel_entry_name(r->row, entry, sizeof entry);
    if (!make_operands(r, address) ||
        ptxvm_module_load(r->vm, r->text.ptx, strlen(r->text.ptx), &r->module) != PTXVM_OK ||
        ptxvm_module_kernel(r->module, entry, &r->kernel) != PTXVM_OK)
        return false;
    for (int i = 0; i < step->n_params; i++)
        params[i] =
            step->params[i].kind == KERNEL_OPERAND ? address[step->params[i].operand] : step->params[i].value;
    ptxvm_launch_config config = {.grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], 1},
                                  .block = {step->block, 1, 1},
                                  .shared_bytes = step->shared};
    return ptxvm_launch(r->vm, r->kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK;
}

/* PTX instructions other than mov. */
static double written_instructions(const char *ptx, const ptxvm_counters *c)
{
    double count = 0;
    const char *line = ptx;
    for (int i = 1; i < c->n_lines && line; i++) {
        const char *word = line + strspn(line, " \t");
        if (strncmp(word, "mov", 3) != 0)
            count += (double)c->lines[i].instructions;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return count;
}

static void report(run *r, const char *sm, double asked)
{
    const ptxvm_counters *c = ptxvm_last_counters(r->vm);
    const double weights = (double)r->n * (double)r->k / SASS_LANES;
    char name[96], note[256], error[512], wanted[32] = "";
    sass_report s = {0};
    const kernel_step *step = &r->steps.at[0];
    bool has_sass =
        sass_found(error, sizeof error) &&
        sass_measure(r->text.ptx, sm, c, step->grid[0] * step->grid[1] * (step->block / SASS_LANES), &s,
                     error, sizeof error);
    double per_weight = (has_sass ? s.issued : written_instructions(r->text.ptx, c)) / weights;
    if (asked > 0)
        snprintf(wanted, sizeof wanted, ", asked for %.2f: %s", asked,
                 per_weight <= asked ? "met" : "missed");
    uint64_t requested = c->total.load.sectors + c->total.store.sectors;
    snprintf(note, sizeof note,
             "%s%s; %d registers, %d bytes spilled; sectors %.3f unique, %.3f requested of the least; %.0f "
             "bank conflicts",
             has_sass ? "SASS" : "PTX without mov", wanted, s.registers, s.spill_bytes,
             (double)c->unique_sectors / (double)r->least, (double)requested / (double)r->least,
             (double)c->total.bank_conflicts);
    snprintf(name, sizeof name, "gemv.%s.%s", r->c->name, sm);
    bench_report(name, per_weight, "per weight", note);
}

static kernel_problem problem_of(const run *r)
{
    const bool by_columns = r->spec.product.reduction == KERNEL_K_COLUMNS;
    return (kernel_problem){.rows = by_columns ? r->n : r->k,
                            .columns = by_columns ? r->k : r->n,
                            .m = r->spec.product.tile_rows,
                            .x_stride = r->k,
                            .y_stride = r->n};
}

static void measure(const gemv_case *c, int which)
{
    run r = {.c = c, .row = kernel_find(c->kernel), .n = SIDE, .k = SIDE};
    ptxvm_config config = {.sm = sms[which], .counters = PTXVM_COUNTERS_LINES};
    ptx_error error;
    bench_progress("gemv.%s.%s", c->name, sms[which]);
    if (!set_settings(&r))
        return;
    r.problem = problem_of(&r);
    if (!kernel_emit(r.row, &r.spec, ptx_sm_find(sms[which]), NULL, &r.text, &error))
        fprintf(stderr, "bench: gemv.%s: %s\n", c->name, error.text);
    else if (ptxvm_create(&config, &r.vm) != PTXVM_OK || !launch(&r))
        fprintf(stderr, "bench: gemv.%s: %s\n", c->name, r.vm ? ptxvm_last_error(r.vm) : "no device");
    else
        report(&r, sms[which], c->asked[column_of(sms[which])]);
    ptxvm_destroy(r.vm);
    free(r.text.ptx);
}

void bench_gemv(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < SMS; k++)
            measure(&cases[i], k);
}
