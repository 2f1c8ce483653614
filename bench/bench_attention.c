/* Modelled times of attention (clock/): decode by the share of the DRAM roofline, prefill in TFLOPS. A few blocks of each launch run on
 * ptxvm, all of them on the model of the board. QDNN_BENCH_BOARDS=a100,t4 selects boards, QDNN_BENCH_CACHES=e4m3,int4 caches. Nothing was run on a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/launches.h"
#include "clock/sass/sass.h"

enum { QUERIES = 32, HEADS = 8, HEAD = 128, PAGE = 16, TOKENS_SAMPLED = 64, MANY = 1024 };

typedef struct attention_case {
    const char *kernel, *cache; /* cache: what it is called */
    bool tensor;
    uint64_t tokens, context; /* `tokens` sequences, or that many tokens of one prompt */
} attention_case;

#define BOTH(kernel, cache, tokens, context)                                                                 \
    {kernel, cache, false, tokens, context},                                                                 \
    {                                                                                                        \
        kernel, cache, true, tokens, context                                                                 \
    }

static const attention_case cases[] = {
    BOTH("attention", "f16", 1, 4096),       BOTH("attention", "f16", 8, 4096),
    BOTH("attention", "f16", 8, 16384),      BOTH("attention_e4m3", "e4m3", 8, 4096),
    BOTH("attention_int8", "int8", 8, 4096), BOTH("attention_int4", "int4", 8, 4096),
    {"attention", "f16", true, 4096, 4096},
};

static bool is_prompt(const attention_case *c)
{
    return c->tokens >= MANY;
}

/* Of sequences one, of a prompt a few tokens. */
static uint64_t tokens_sampled(const attention_case *c)
{
    return is_prompt(c) ? TOKENS_SAMPLED : 1;
}

/* ---- Problems ---- */

static kernel_spec spec_of(const attention_case *c, const kernel_row *row)
{
    kernel_spec s = kernel_spec_default();
    char why[256];
    s.data = QDNN_DATA_F16;
    s.epilogue.output = QDNN_DATA_F16;
    s.rope.queries = QUERIES;
    s.kv.heads = HEADS;
    s.kv.key_size = s.kv.value_size = HEAD;
    s.kv.type = strcmp(c->cache, "f16") ? 0 : QDNN_DATA_F16;
    s.kv.slots = KERNEL_KV_PAGED;
    s.stored.scale = s.kv.type ? s.stored.scale : QDNN_SCALE_F16;
    s.attention.tensor = c->tensor;
    s.attention.one_sequence = is_prompt(c);
    s.product.tile_rows = !is_prompt(c) ? 1 : c->tensor ? 64 : 4;
    if (!kernel_spec_settle_kernel(row, &s, why, sizeof why))
        fprintf(stderr, "bench: %s\n", why);
    return s;
}

static kernel_problem problem_of(const attention_case *c, const board *on, uint64_t tokens)
{
    kernel_problem p = kernel_problem_default();
    const uint64_t sequences = is_prompt(c) ? 1 : tokens;
    p.m = tokens;
    p.multiprocessors = on->multiprocessors;
    p.cache = (kernel_cache){PAGE, PAGE * HEADS * HEAD, HEADS * HEAD, HEAD};
    p.values = p.cache;
    p.table_pages = c->context / PAGE;
    p.pages = sequences * p.table_pages;
    p.x_stride = p.y_stride = QUERIES * HEAD;
    p.alpha = 0.088388346f;
    p.counted = true;
    return p;
}

/* What all blocks read from DRAM, at least: the caches with their scales, queries, and results. */
static double bytes_of(const attention_case *c)
{
    const double sequences = is_prompt(c) ? 1 : (double)c->tokens,
                 keys = sequences * (double)c->context * HEADS;
    const double head = !strcmp(c->cache, "f16")    ? 2 * HEAD
                        : !strcmp(c->cache, "int4") ? HEAD / 2 + 2
                                                    : HEAD + 2;
    return 2 * keys * head + 2.0 * 2 * (double)c->tokens * QUERIES * HEAD;
}

/* The keys that a query sees, on average, times 4 operations for each element. */
static double flops_of(const attention_case *c)
{
    const double keys = is_prompt(c) ? (double)c->context / 2 : (double)c->context;
    return 4.0 * HEAD * keys * (double)c->tokens * QUERIES;
}

/* ---- The launches on ptxvm ---- */

typedef struct sample {
    const attention_case *c;
    const kernel_spec *spec;
} sample;

/* Numbers of about 1, which no format has as infinite or NaN. */
static void fill_operand(const void *user, qdnnOperand_t operand, uint8_t *bytes, uint64_t size)
{
    const sample *s = user;
    const uint64_t tokens = tokens_sampled(s->c);
    int32_t *words = (int32_t *)bytes;
    uint64_t seed = 88172645463325252u;
    for (uint64_t i = 0; i < size; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        bytes[i] = (uint8_t)(seed >> 32) & (s->spec->kv.type && i % 2 ? 0xBB : 0xB7);
    }
    if (operand == QDNN_OPERAND_COUNTERS)
        memset(bytes, 0, size);
    if (operand == QDNN_OPERAND_PAGE_TABLE)
        for (uint64_t i = 0; i < size / 4; i++)
            words[i] = (int32_t)i;
    for (uint64_t i = 0; operand == QDNN_OPERAND_SEQUENCE && i < tokens; i++)
        words[i] = (int32_t)i;
    if (operand == QDNN_OPERAND_KEY_INDEX)
        for (uint64_t i = 0; i < tokens;
             i++) /* those in the middle of a prompt see what all see on average */
            words[i] =
                (int32_t)(is_prompt(s->c) ? s->c->context / 2 - TOKENS_SAMPLED / 2 + i : s->c->context - 1);
    if (operand == QDNN_OPERAND_KEY_SCALE || operand == QDNN_OPERAND_VALUE_SCALE)
        for (uint64_t i = 0; i < size / 2; i++)
            ((uint16_t *)bytes)[i] = 0x2400; /* 2^-6 */
    if (operand == QDNN_OPERAND_X)
        for (uint64_t i = 1; i < size; i += 2)
            bytes[i] &= 0xBB;
}

/* Of the heads of the cache, one. */
static bool time_case(const attention_case *c, const board *on, launches_time *out, char *why, size_t size)
{
    const kernel_row *row = kernel_find(c->kernel);
    const kernel_spec spec = spec_of(c, row);
    const sample s = {c, &spec};
    const launches_case what = {.row = row,
                                .spec = spec,
                                .whole = problem_of(c, on, c->tokens),
                                .small = problem_of(c, on, tokens_sampled(c)),
                                .heads = HEADS,
                                .rows = QUERIES / HEADS,
                                .bytes = bytes_of(c),
                                .fill = fill_operand,
                                .user = &s};
    return launches_time_of(&what, on, out, why, size);
}

static void one(const attention_case *c, const board *on)
{
    launches_time t;
    char why[512] = "";
    bench_progress("attention: %s, %llu x %llu on %s", c->cache, (unsigned long long)c->tokens,
                   (unsigned long long)c->context, on->name);
    const bool ok = time_case(c, on, &t, why, sizeof why);
    bench_progress("%s", "");
    printf("%-8s %-6s %-5s %5llu %6llu ", on->name, c->tensor ? "tensor" : "exact", c->cache,
           (unsigned long long)c->tokens, (unsigned long long)c->context);
    if (!ok) {
        printf("none: %s\n", why);
        return;
    }
    const double roofline = bytes_of(c) / on->dram_gbs * 1e-3;
    printf("%8.1f-%-8.1f %4.0f-%-4.0f %8.1f %5.0f-%-5.0f %d %3llu %4d %d %.2f %s\n", t.us[CLOCK_LOW],
           t.us[CLOCK_HIGH], 100 * roofline / t.us[CLOCK_HIGH], 100 * roofline / t.us[CLOCK_LOW], t.issue_us,
           flops_of(c) / t.us[CLOCK_HIGH] * 1e-6, flops_of(c) / t.us[CLOCK_LOW] * 1e-6, t.launches,
           (unsigned long long)t.parts, t.registers, t.spill_bytes, t.misfit, t.reason);
    fflush(stdout);
}

static bool is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

void bench_attention(void)
{
    char why[256];
    const char *boards = getenv("QDNN_BENCH_BOARDS"), *caches = getenv("QDNN_BENCH_CACHES");
    if (!sass_found(why, sizeof why)) {
        printf("attention: skipped, %s\n", why);
        return;
    }
    boards = boards && *boards ? boards : "a100,h100";
    printf("modelled, from a cold L2, without what a launch costs; %d heads of queries, %d of keys, %d "
           "elements, pages of %d; %% of the time "
           "that DRAM takes at its peak\n",
           QUERIES, HEADS, HEAD, PAGE);
    printf("%-8s %-6s %-5s %5s %6s %17s %9s %8s %11s %s %s %s %s %s %s\n", "board", "mode", "cache", "rows",
           "keys", "us", "%", "issue us", "TFLOPS", "l", "parts", "regs", "spill", "misfit",
           "why warps wait");
    for (int b = 0; b < board_count(); b++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            if (is_listed(boards, board_at(b)->name) && (!caches || is_listed(caches, cases[i].cache)))
                one(&cases[i], board_at(b));
}
