/* Mixtures of experts: what routing and combining cost, and what a layer launches, for the layers of known models. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/counted.h"

typedef struct layer {
    const char *name, *route; /* settings of the router */
    const char *weights;      /* a product's row */
    uint64_t experts, slots, hidden, inner;
} layer;

static const layer layers[] = {
    {"gpt-oss-20b", "expert_count=32 chosen=4 renormalize=yes", "matmul_gguf_mxfp4", 32, 4, 2880, 2880},
    {"deepseek-v3",
     "expert_count=256 chosen=8 expert_groups=8 kept_groups=4 group_score=two_largest scores=sigmoid "
     "expert_bias=yes renormalize=yes",
     "matmul_gguf_q4_k", 256, 8, 7168, 2048},
};
static const uint64_t tokens[] = {1, 32, 512};

static void report(const char *what, const layer *l, uint64_t m, const counted *c)
{
    char name[96], note[200];
    snprintf(name, sizeof name, "moe.%s.%s.%llu", l->name, what, (unsigned long long)m);
    snprintf(
        note, sizeof note,
        "requested sectors of the least %llu; different ones %.3f; launches: %d, blocks: %llu, warps: %llu, "
        "instructions of a warp: %.0f",
        (unsigned long long)c->least, (double)c->unique / (double)c->least, c->kernels,
        (unsigned long long)c->blocks, (unsigned long long)c->warps,
        (double)c->instructions / (double)c->warps);
    bench_report(name, (double)c->requested / (double)c->least, "x", note);
}

static void count(const char *kernel, const char *settings, const layer *l, uint64_t m)
{
    const kernel_row *row = kernel_find(kernel);
    kernel_spec spec = kernel_spec_default();
    kernel_problem problem = kernel_problem_default();
    counted c;
    char error[256];
    problem.m = problem.rows = m;
    problem.columns = l->hidden;
    if (!kernel_spec_set_words(row, &spec, settings, error, sizeof error) ||
        !kernel_problem_complete(row, &spec, &problem, error, sizeof error)) {
        fprintf(stderr, "bench: moe: %s\n", error);
        return;
    }
    if (counted_run(row, KERNEL_NORMAL(row, &spec), &problem, &c))
        report(row->name, l, m, &c);
}

/* One of the two products of the experts, in mode tensor. */
static void add_product(const layer *l, uint64_t m, bool is_up, int *launches, uint64_t *blocks)
{
    const kernel_row *row = kernel_find(l->weights);
    kernel_problem problem = kernel_problem_default();
    kernel_spec spec = kernel_spec_default();
    kernel_steps steps;
    char error[256];
    problem.m = m * l->slots;
    problem.experts = l->experts;
    problem.rows = is_up ? 2 * l->inner : l->hidden;
    problem.columns = is_up ? l->hidden : l->inner;
    problem.multiprocessors = 132;
    spec.data = spec.epilogue.output = QDNN_DATA_BF16;
    spec.product.grouped = 1;
    spec.epilogue.gated = is_up;
    spec.epilogue.activation = is_up ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE;
    spec.product.x_share = is_up ? l->slots : 1;
    kernel_tensor_choose(row, false, &problem, &spec);
    if (!kernel_problem_complete(row, &spec, &problem, error, sizeof error))
        return;
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &problem, &steps);
    *launches += steps.count;
    for (int i = 0; i < steps.count; i++)
        *blocks += steps.at[i].grid[0] * steps.at[i].grid[1] * steps.at[i].grid[2];
}

/* Launches of router, route, both products and combine; the bytes of weights are those of as many experts as the tokens can reach. */
static void report_layer(const layer *l, uint64_t m)
{
    const kernel_problem one = {.rows = 3 * l->inner, .columns = l->hidden, .m = 1, .experts = 1};
    const kernel_row *row = kernel_find(l->weights);
    const uint64_t reached = m * l->slots < l->experts ? m * l->slots : l->experts;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_spec spec = kernel_spec_default();
    int launches = 3;
    uint64_t blocks = 0;
    char name[96], note[160];
    kernel_operands_of(row, KERNEL_NORMAL(row, &spec), &one, operands);
    add_product(l, m, true, &launches, &blocks);
    add_product(l, m, false, &launches, &blocks);
    snprintf(name, sizeof name, "moe.%s.layer.%llu", l->name, (unsigned long long)m);
    snprintf(note, sizeof note, "%s, blocks of both products: %llu; weights of up to %llu experts: %.1f MB",
             row->format ? kernel_format(row)->name : "", (unsigned long long)blocks,
             (unsigned long long)reached, (double)(reached * operands[QDNN_OPERAND_CODES].bytes) / 1e6);
    bench_report(name, launches, "launches", note);
}

void bench_moe(void)
{
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        for (size_t k = 0; k < sizeof tokens / sizeof tokens[0]; k++) {
            const layer *l = &layers[i];
            char combine[64];
            snprintf(combine, sizeof combine, "data=bf16 output=bf16 residual=yes chosen=%llu",
                     (unsigned long long)l->slots);
            bench_progress("moe.%s.%llu", l->name, (unsigned long long)tokens[k]);
            count("route", l->route, l, tokens[k]);
            count("combine", combine, l, tokens[k]);
            report_layer(l, tokens[k]);
        }
}
