/* A decode step of Llama-3-8B as one program, launch by launch as examples/chat makes it, modelled (clock/): milliseconds, launches, the
 * share of each operation, and the same for the products alone. One sequence with a context of 4096. QDNN_BENCH_BOARDS=a100,t4 selects boards,
 * QDNN_BENCH_FORMATS=q4_k,q8_0 formats of the weights. Nothing was run on a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/facts/facts.h"
#include "bench/launches.h"

enum {
    WIDTH = 4096,
    QUERIES = 32,
    HEADS = 8,
    HEAD = 128,
    INNER = 14336,
    VOCABULARY = 128256,
    LAYERS = 32,
    CONTEXT = 4096,
    PAGE = 16
};

/* An operation of the step; how often, and its time on a board. */
typedef struct step_part {
    const char *name;
    int times;
    /* a product: outputs and inputs of the weights, and what its specification has besides the format's */
    uint64_t n, k;
    const char *settings;
    /* or of another kernel */
    const char *kernel;
} step_part;

/* In the order of the program. */
static const step_part parts[] = {
    {"norm", 2 * LAYERS, .kernel = "norm",
     .settings = "data=f32 output=f16 norm=rms weight=f32 row_size=4096 heads=1"},
    {"qkv", LAYERS, .n = (QUERIES + 2 * HEADS) * HEAD, .k = WIDTH, .settings = "output=f16"},
    {"rope and cache", LAYERS, .kernel = "rope",
     .settings =
         "data=f16 output=f16 queries=32 head_size=128 rotary=128 kv_heads=8 key_size=128 value_size=128 "
         "cache=f16 slots=paged"},
    {"attention", LAYERS, .kernel = "attention",
     .settings =
         "data=f16 output=f16 queries=32 kv_heads=8 key_size=128 value_size=128 cache=f16 slots=paged "
         "tile_rows=1"},
    {"out", LAYERS, .n = WIDTH, .k = QUERIES * HEAD, .settings = "output=f32 residual=yes"},
    {"gate and up", LAYERS, .n = 2 * INNER, .k = WIDTH, .settings = "output=f16 gated=yes activation=silu"},
    {"down", LAYERS, .n = WIDTH, .k = INNER, .settings = "output=f32 residual=yes"},
    {"output norm", 1, .kernel = "norm",
     .settings = "data=f32 output=f16 norm=rms weight=f32 row_size=4096 heads=1"},
    {"output", 1, .n = VOCABULARY, .k = WIDTH, .settings = "output=f32"},
    {"sample", 1, .kernel = "sample", .settings = "data=f32 greedy=yes"},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

typedef struct part_time {
    double us[CLOCK_CORNERS];
    int launches;
} part_time;

/* ---- Products ---- */

static void fill_product(const void *user, qdnnOperand_t operand, uint8_t *bytes, uint64_t size)
{
    const facts_product *product = user;
    facts_fill_operand(product->row, &product->spec, operand, bytes, size);
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

/* Few outputs are run, with all of their weights. */
static bool time_product(const step_part *p, const facts_format *format, facts_mode mode, const board *on,
                         part_time *out, char *why, size_t size)
{
    char settings[512];
    const facts_shape shape = {.n = p->n, .k = p->k};
    facts_product product;
    launches_time t;
    snprintf(settings, sizeof settings, "%s %s", format->settings, p->settings);
    const facts_format with = {format->name, format->kernel, settings};
    if (!facts_product_of(&with, mode, 1, &shape, on, &product, why, size))
        return false;
    if (product.spec.epilogue.gated)
        product.problem.y_stride = p->n / 2;
    launches_case c = {.row = product.row,
                       .spec = product.spec,
                       .whole = product.problem,
                       .small = facts_small(&product).problem,
                       .bytes = operand_bytes(&product),
                       .fill = fill_product,
                       .user = &product};
    const bool by_columns = product.spec.product.reduction == KERNEL_K_COLUMNS;
    *(by_columns ? &c.small.columns : &c.small.rows) = p->k;
    c.small.x_stride = p->k;
    if (!launches_time_of(&c, on, &t, why, size))
        return false;
    *out = (part_time){{t.us[CLOCK_LOW], t.us[CLOCK_HIGH]}, t.launches};
    return true;
}

/* ---- Other kernels ---- */

static void fill_operand(const void *user, qdnnOperand_t operand, uint8_t *bytes, uint64_t size)
{
    int32_t *words = (int32_t *)bytes;
    uint32_t seed = 1;
    (void)user;
    switch (operand) {
    case QDNN_OPERAND_SEQUENCE:
    case QDNN_OPERAND_COUNTERS:
        memset(bytes, 0, size);
        return;
    case QDNN_OPERAND_POSITION:
    case QDNN_OPERAND_KEY_INDEX:
        words[0] = CONTEXT - 1;
        return;
    case QDNN_OPERAND_PAGE_TABLE:
        for (uint64_t i = 0; i < size / 4; i++)
            words[i] = (int32_t)i;
        return;
    default: /* both halves are ordinary as f16 and as f32 */
        for (uint64_t i = 0; i < size; i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = i % 2 ? 0x30 | (seed >> 31 ? 0x80 : 0) : (uint8_t)(seed >> 24);
        }
    }
}

static kernel_problem problem_of(const step_part *p, const board *on)
{
    kernel_problem problem = kernel_problem_default();
    const bool is_norm = strcmp(p->kernel, "norm") == 0, is_rope = strcmp(p->kernel, "rope") == 0;
    problem.m = problem.rows = 1;
    problem.multiprocessors = on->multiprocessors;
    problem.columns = strcmp(p->kernel, "sample") == 0 ? VOCABULARY : WIDTH;
    problem.x_stride = is_rope ? (QUERIES + 2 * HEADS) * HEAD : WIDTH;
    problem.y_stride = WIDTH;
    problem.parts = strcmp(p->kernel, "sample") == 0;
    problem.eps = 1e-5f;
    problem.alpha = 0.088388346f;
    problem.counted = true;
    if (is_norm)
        return problem;
    problem.positions = 2 * CONTEXT;
    problem.cache = problem.values = (kernel_cache){PAGE, PAGE * HEADS * HEAD, HEADS * HEAD, HEAD};
    problem.table_pages = problem.pages = CONTEXT / PAGE;
    return problem;
}

static bool time_kernel(const step_part *p, facts_mode mode, const board *on, part_time *out, char *why,
                        size_t size)
{
    const bool attends = strcmp(p->kernel, "attention") == 0;
    const kernel_row *row = kernel_find(p->kernel);
    launches_time t;
    launches_case c = {.row = row, .spec = kernel_spec_default(), .fill = fill_operand, .warm = !attends};
    if (!kernel_spec_set_words(row, &c.spec, p->settings, why, size))
        return false;
    if (attends)
        c.spec.attention.tensor = mode == FACTS_TENSOR;
    if (!kernel_spec_settle(row, &c.spec, why, size))
        return false;
    c.whole = c.small = problem_of(p, on);
    c.heads = attends ? HEADS : 0;
    c.bytes = attends ? 2.0 * 2 * CONTEXT * HEADS * HEAD : 0;
    if (!launches_time_of(&c, on, &t, why, size))
        return false;
    *out = (part_time){{t.us[CLOCK_LOW], t.us[CLOCK_HIGH]}, t.launches};
    return true;
}

/* ---- The step ---- */

static double middle(const double us[CLOCK_CORNERS])
{
    return (us[CLOCK_LOW] + us[CLOCK_HIGH]) / 2;
}

static void print_line(const char *name, int times, int launches, const double us[CLOCK_CORNERS],
                       double share)
{
    printf("  %-16s %4d %8d %9.1f-%-9.1f %5.1f%%\n", name, times, launches, us[CLOCK_LOW], us[CLOCK_HIGH],
           100 * share);
}

static void print_step(const part_time times[PARTS], const board *on)
{
    double all[CLOCK_CORNERS] = {0}, products[CLOCK_CORNERS] = {0};
    int launches = 0, of_layers = 0, of_products = 0;
    for (int i = 0; i < PARTS; i++) {
        const int n = parts[i].times * times[i].launches;
        launches += n;
        of_layers += parts[i].times > 1 ? n : 0;
        of_products += parts[i].n ? n : 0;
        for (int c = 0; c < CLOCK_CORNERS; c++) {
            all[c] += parts[i].times * times[i].us[c];
            products[c] += parts[i].n ? parts[i].times * times[i].us[c] : 0;
        }
    }
    for (int i = 0; i < PARTS; i++) {
        double us[CLOCK_CORNERS];
        for (int c = 0; c < CLOCK_CORNERS; c++)
            us[c] = parts[i].times * times[i].us[c];
        print_line(parts[i].name, parts[i].times, parts[i].times * times[i].launches, us,
                   middle(us) / middle(all));
    }
    print_line("products alone", 0, of_products, products, middle(products) / middle(all));
    print_line("step", 1, launches, all, 1);
    printf("  %s: %.2f to %.2f ms; %.1f launches per layer, %d in all\n", on->name, all[CLOCK_LOW] / 1000,
           all[CLOCK_HIGH] / 1000, (double)of_layers / LAYERS, launches);
    fflush(stdout);
}

static void one(const facts_format *format, facts_mode mode, const board *on)
{
    part_time times[PARTS];
    char why[512];
    for (int i = 0; i < PARTS; i++) {
        bench_progress("step: %s, %s, %s on %s", parts[i].name, format->name, facts_mode_name(mode),
                       on->name);
        const bool ok = parts[i].n ? time_product(&parts[i], format, mode, on, &times[i], why, sizeof why)
                                   : time_kernel(&parts[i], mode, on, &times[i], why, sizeof why);
        bench_progress("%s", "");
        if (!ok) {
            printf("%s, %s on %s: none; %s: %s\n", format->name, facts_mode_name(mode), on->name,
                   parts[i].name, why);
            return;
        }
    }
    printf("%s, mode %s, on %s\n  %-16s %4s %8s %19s %6s\n", format->name, facts_mode_name(mode), on->name,
           "operation", "", "launches", "us", "share");
    print_step(times, on);
}

static bool is_listed(const char *variable, const char *usual, const char *name)
{
    const char *given = getenv(variable), *list = given && *given ? given : usual;
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

void bench_step(void)
{
    static const facts_mode modes[] = {FACTS_EXACT, FACTS_TENSOR};
    char why[256];
    if (!sass_found(why, sizeof why)) {
        printf("step: skipped, %s\n", why);
        return;
    }
    printf(
        "a decode step of Llama-3-8B, one sequence, %d keys in pages of %d in f16: modelled, without what a "
        "launch costs\n",
        CONTEXT, PAGE);
    for (int b = 0; b < board_count(); b++)
        for (int f = 0; f < facts_format_count(); f++)
            for (int m = 0; m < 2; m++)
                if (is_listed("QDNN_BENCH_BOARDS", "a100,h100,rtx4090,b200", board_at(b)->name) &&
                    is_listed("QDNN_BENCH_FORMATS", "q4_k", facts_format_at(f)->name))
                    one(facts_format_at(f), modes[m], board_at(b));
}
