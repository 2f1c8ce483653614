/* Products in mode tensor: the cost of their kernels as SASS thread instructions per weight
 * (clock/sass/sass.h; without ptxas or nvdisasm, PTX instructions), registers, sectors and bank conflicts by
 * ptxvm's counters, each with its target; and the error of sums compared with f64, by K, for this and other
 * ways to add. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "clock/sass/sass.h"
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

/* Approximately normal, as f16. */
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

/* One chain of instructions over all of K, as in a product without strips; and the same over four parts of K,
 * whose sums are added in order, like cuBLAS' split-K. */
static float chain_of_mma(const uint16_t *x, const uint16_t *w, int64_t k)
{
    const int depth = ref_tensor_depth(REF_TENSOR_SM80, QDNN_DATA_F16);
    float sum = 0;
    for (int64_t i = 0; i < k; i += depth)
        sum = ref_tensor_mma(REF_TENSOR_SM80, QDNN_DATA_F16, x + i, QDNN_DATA_F16, w + i, depth, sum);
    return sum;
}

static float split_chain_of_mma(const uint16_t *x, const uint16_t *w, int64_t k)
{
    enum { PARTS = 4 };
    float sum = 0;
    for (int64_t p = 0; p < PARTS; p++)
        sum += chain_of_mma(x + p * k / PARTS, w + p * k / PARTS, k / PARTS);
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

/* The root mean square of the errors, relative to that of the sums. */
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
    } ways[] = {{"f32_chain", chain_of_f32},
                {"sm_80_without_strips", chain_of_mma},
                {"sm_80_split_by_4", split_chain_of_mma},
                {"sm_80", on_sm80},
                {"sm_90", on_sm90}};
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
            char name[96];
            snprintf(name, sizeof name, "tensor.error_%lld_%s", (long long)ks[i], ways[w].name);
            bench_report(name, error_of(ways[w].sum, ks[i]) * 1e9, "1e-9",
                         "against f64, relative to the sums");
        }
}

/* ---- Costs ---- */

enum { SIZE = 4096, ROW_COUNTS = 4, OTHER_SMS = 3 };

static const uint64_t row_counts[ROW_COUNTS] = {1, 16, 64, 256};

/* `asked`: the maximum number of SASS instructions per weight on sm_80, by M; FREE: no target; 0: not
 * measured. Other SMs may take 15% more; they are measured up to 64 rows. */
#define FREE (-1.0)
typedef struct cost_case {
    const char *name, *kernel;
    const char *settings; /* "key=value key=value" */
    bool is_tile, on_all_sms;
    double asked[ROW_COUNTS];
} cost_case;

#define TRANSPOSED "groups=rows scale_order=transposed "
#define FP8        "groups=none x_fp8=e4m3 x_scale=yes alpha=column"
/* clang-format off */
static const cost_case cases[] = {
    {"int4_g128", "matmul_int4",      TRANSPOSED "scale=f16",                false, true,  {3.5, 3.6, 5.0, 14}},
    {"nf4_g64",   "matmul_nf4",       TRANSPOSED "group_size=64",            false, true,  {4.4, 4.5, 6.0, 16}},
    {"nvfp4",     "matmul_e2m1",      "groups=rows scale=e4m3 group_size=16",  false, true,  {3.6, 3.7, 5.2, 14}},
    {"int4_g128", "matmul_int4",      "groups=rows scale=f16",               true,  false, {0, 0, 0, 14}},
    {"nf4_g64",   "matmul_nf4",       "groups=rows group_size=64",           true,  false, {0, 0, 0, 16}},
    {"nvfp4",     "matmul_e2m1",      "groups=rows scale=e4m3 group_size=16", true, false, {0, 0, 0, 14}},
    {"q4_k",      "matmul_gguf_q4_k", "",                                    false, true,  {5.3, 5.5, 7.0, 17}},
    {"q4_k",      "matmul_gguf_q4_k", "",                                    true,  false, {0, 0, 0, 17}},
    {"tq1_0",     "matmul_gguf_tq1_0", "",                                   false, false, {FREE, FREE, FREE, 0}},
    {"plain_f16", "matmul_plain_f16", "",                                    false, true,  {FREE, FREE, FREE, FREE}},
    {"plain_f32", "matmul_plain_f32", "",                                    false, false, {FREE, FREE, FREE, 0}},
    {"e4m3_e4m3", "matmul_e4m3",      FP8,                                   false, true,  {FREE, FREE, FREE, FREE}},
    {"e4m3_e4m3", "matmul_e4m3",      FP8,                                   true,  true,  {0, 0, FREE, FREE}},
    {"e4m3_e4m3_kn", "matmul_e4m3",   FP8 " reduction=rows",                 true,  true,  {0, 0, FREE, FREE}},
};
/* clang-format on */

typedef struct costs {
    double issued;    /* thread instructions per weight: SASS if available, else PTX */
    double dequant;   /* instructions for decoding per mma; 0: not known */
    double requested; /* sectors, relative to the minimum */
    int registers, spill_bytes;
    uint64_t bank_conflicts, blocks;
    bool is_sass;
} costs;

typedef struct cost_run {
    const cost_case *c;
    const char *sm;
    const kernel_row *row;
    kernel_spec spec;
    kernel_problem problem;
    kernel_steps steps;
    ptxvm *vm;
    ptxvm_address buffer; /* for all operands: zeros, since the counts do not depend on them */
    costs sum;
} cost_run;

static bool set_settings(cost_run *r, uint64_t m)
{
    char text[256], error[256], *rest = text;
    snprintf(text, sizeof text, "%s", r->c->settings);
    r->row = kernel_find(r->c->kernel);
    r->spec = kernel_spec_default();
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        *value++ = 0;
        if (!kernel_spec_set(r->row, &r->spec, word, value, error, sizeof error)) {
            fprintf(stderr, "bench: tensor.%s: %s\n", r->c->name, error);
            return false;
        }
    }
    r->spec.data = r->spec.epilogue.output = QDNN_DATA_F16;
    r->problem = (kernel_problem){.rows = SIZE, .columns = SIZE, .m = m, .x_stride = SIZE, .y_stride = SIZE};
    kernel_tensor_choose(r->row, !r->c->is_tile, &r->problem, &r->spec);
    kernel_steps_of(r->row, KERNEL_NORMAL(r->row, &r->spec), &r->problem, &r->steps);
    return true;
}

/* The sectors of all operands, each counted once. */
static double least_sectors(const cost_run *r)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    uint64_t sectors = 0;
    kernel_operands_of(r->row, KERNEL_NORMAL(r->row, &r->spec), &r->problem, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (operands[i].reads || operands[i].writes)
            sectors += (operands[i].bytes + 31) / 32;
    return (double)sectors;
}

static void add_sass(cost_run *r, const kernel_step *step, const char *ptx)
{
    static const char *const decoding[] = {"LOP3", "PRMT", "SHF",  "HADD2", "HMUL2", "HFMA2",
                                           "FADD", "FMUL", "FFMA", "F2FP",  "LDS"};
    const ptxvm_counters *c = ptxvm_last_counters(r->vm);
    const double weights = (double)SIZE * SIZE / SASS_LANES;
    char error[512];
    sass_report s = {0};
    const uint64_t warps = step->grid[0] * step->grid[1] * step->grid[2] * (step->block / SASS_LANES);
    r->sum.is_sass = sass_found(error, sizeof error);
    if (!r->sum.is_sass || !sass_measure(ptx, r->sm, c, warps, &s, error, sizeof error)) {
        r->sum.issued += (double)c->total.instructions / weights;
        return;
    }
    r->sum.issued += s.issued / weights;
    r->sum.spill_bytes += s.spill_bytes;
    if (c->total.mma == 0)
        return;
    r->sum.registers = s.registers;
    for (size_t i = 0; i < sizeof decoding / sizeof decoding[0]; i++)
        r->sum.dequant += sass_issued(&s, decoding[i]) / (double)c->total.mma;
}

static bool run_step(cost_run *r, const kernel_step *step)
{
    kernel_text text;
    ptx_error error;
    uint64_t params[KERNEL_PARAMS_MAX];
    char entry[64];
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel = NULL;
    for (int i = 0; i < step->n_params; i++) /* all numbers of products have 8 bytes */
        params[i] = step->params[i].kind == KERNEL_NUMBER ? step->params[i].value : r->buffer;
    kernel_entry_name(step->row, entry, sizeof entry);
    if (!kernel_emit(step->row, &step->spec, ptx_sm_find(r->sm), NULL, &text, &error)) {
        fprintf(stderr, "bench: tensor.%s: %s\n", r->c->name, error.text);
        return false;
    }
    ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    bool ok = ptxvm_module_load(r->vm, text.ptx, strlen(text.ptx), &module) == PTXVM_OK &&
              ptxvm_module_kernel(module, entry, &kernel) == PTXVM_OK &&
              ptxvm_launch(r->vm, kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK;
    if (ok) {
        const ptxvm_counts *all = &ptxvm_last_counters(r->vm)->total;
        r->sum.bank_conflicts += all->bank_conflicts;
        r->sum.requested += (double)(all->load.sectors + all->store.sectors) / least_sectors(r);
        r->sum.blocks = all->mma ? step->grid[0] * step->grid[1] * step->grid[2] : r->sum.blocks;
        add_sass(r, step, text.ptx);
    } else {
        fprintf(stderr, "bench: tensor.%s: %s\n", r->c->name, ptxvm_last_error(r->vm));
    }
    if (module)
        ptxvm_module_unload(module);
    free(text.ptx);
    return ok;
}

static void report_cost(const cost_run *r, uint64_t m, double asked)
{
    char name[96], note[256], goal[64] = "nothing asked for";
    const costs *s = &r->sum;
    if (asked > 0)
        snprintf(goal, sizeof goal, "asked for %.2f: %s", asked, s->issued <= asked ? "met" : "missed");
    snprintf(name, sizeof name, "tensor.%s.%s.m%llu.%s", r->c->name, r->c->is_tile ? "tile" : "prepacked",
             (unsigned long long)m, r->sm);
    snprintf(note, sizeof note,
             "%s, %s; %d registers, %d bytes spilled, %llu bank conflicts; %.1f decoding per "
             "mma; requested "
             "sectors %.2f of the least, %llu blocks",
             s->is_sass ? "SASS" : "PTX", goal, s->registers, s->spill_bytes,
             (unsigned long long)s->bank_conflicts, s->dequant, s->requested, (unsigned long long)s->blocks);
    bench_report(name, s->issued, "per weight", note);
}

/* The measured cost; all 0 if it could not be measured. */
static costs measure_cost(const cost_case *c, const char *sm, uint64_t m, double asked)
{
    const ptxvm_config config = {.sm = sm, .counters = PTXVM_COUNTERS_LINES};
    const uint64_t bytes = (uint64_t)SIZE * SIZE * 4;
    cost_run r = {.c = c, .sm = sm};
    bench_progress("tensor.%s.m%llu.%s", c->name, (unsigned long long)m, sm);
    if (!set_settings(&r, m) || ptxvm_create(&config, &r.vm) != PTXVM_OK)
        return r.sum;
    bool ok =
        ptxvm_alloc(r.vm, bytes, &r.buffer) == PTXVM_OK && ptxvm_fill(r.vm, r.buffer, 0, bytes) == PTXVM_OK;
    for (int i = 0; i < r.steps.count && ok; i++)
        ok = run_step(&r, &r.steps.at[i]);
    if (ok)
        report_cost(&r, m, asked);
    ptxvm_destroy(r.vm);
    return r.sum;
}

static void cost_of(const cost_case *c, costs on_sm_80[ROW_COUNTS])
{
    static const char *const others[OTHER_SMS] = {"sm_75", "sm_90", "sm_120"};
    for (int i = 0; i < ROW_COUNTS; i++) {
        if (c->asked[i] == 0)
            continue;
        on_sm_80[i] = measure_cost(c, "sm_80", row_counts[i], c->asked[i]);
        for (int k = 0; k < OTHER_SMS && c->on_all_sms && row_counts[i] <= 64; k++)
            measure_cost(c, others[k], row_counts[i], 1.15 * c->asked[i]);
    }
}

/* ---- The table: results on sm_80 and their targets ---- */

enum { CASES = sizeof cases / sizeof cases[0] };

static const double asked_decoding[ROW_COUNTS] = {0, 6.6, 1.7, 0.5}, /* per mma, for INT4 */
    asked_sectors[ROW_COUNTS] = {1.05, 1.7, 3.4, 0};                 /* relative to the minimum */

typedef double figure_fn(const costs *c);

static double issued_of(const costs *c)
{
    return c->issued;
}

static double decoding_of(const costs *c)
{
    return c->dequant;
}

static double sectors_of(const costs *c)
{
    return c->requested;
}

static void print_line(const char *what, const cost_case *c, const costs *reached, figure_fn *figure,
                       const double asked[ROW_COUNTS])
{
    printf("%-28s %-12s %-10s", what, c->name, c->is_tile ? "tile" : "prepacked");
    for (int i = 0; i < ROW_COUNTS; i++) {
        const double is = figure(&reached[i]);
        if (c->asked[i] == 0 || asked[i] == 0)
            printf("  %16s", "-");
        else if (asked[i] == FREE)
            printf("  %7.2f         ", is);
        else
            printf("  %7.2f (%5.2f)%s", is, asked[i], is <= asked[i] ? " " : "*");
    }
    printf("\n");
}

static void print_table(costs reached[CASES][ROW_COUNTS])
{
    printf("\nsm_80, N = K = %d, reached (asked for), * above it\n%-52s", SIZE, "");
    for (int i = 0; i < ROW_COUNTS; i++)
        printf("  %12s%4llu", "M =", (unsigned long long)row_counts[i]);
    printf("\n");
    for (int i = 0; i < CASES; i++)
        print_line("instructions per weight", &cases[i], reached[i], issued_of, cases[i].asked);
    print_line("decoding per mma", &cases[0], reached[0], decoding_of, asked_decoding);
    for (int i = 0; i < CASES; i++)
        if (!cases[i].is_tile)
            print_line("requested sectors / least", &cases[i], reached[i], sectors_of, asked_sectors);
    printf("\n");
}

void bench_tensor(void)
{
    static costs reached[CASES][ROW_COUNTS];
    for (int i = 0; i < CASES; i++)
        cost_of(&cases[i], reached[i]);
    print_table(reached);
    accuracy();
}
