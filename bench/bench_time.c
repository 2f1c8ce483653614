/* Modelled times of products (clock/): an interval in microseconds, its percentage of the DRAM roofline, and why warps wait. The table has the
 * cases below on four boards; QDNN_BENCH_BOARDS=a100,t4 selects others, QDNN_BENCH_FORMATS=q2_k,iq1_s products in these formats (QDNN_BENCH_MODES=exact,prepacked in these modes,
 * by default exact; QDNN_BENCH_ROWS=1,16 with so many rows of x, by default one), QDNN_BENCH_ALL=1 every format, mode, number of rows and shape of
 * bench facts (weeks: QDNN_BENCH_ONE_IN=10000 is a sample of them, by QDNN_BENCH_SEED). build/bench_time.json has every figure, build/bench_time.svg shows them under their roofs. Nothing was run on a GPU.
 * Two threads work on them; build/bench_time.kept has what was found, and a run of the same program that was ended goes on where it was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/clock/picture.h"
#include "bench/facts/facts.h"
#include "bench/sweep.h"
#include "clock/product/kept.h"
#include "clock/product/product.h"

typedef struct time_case {
    const char *format;
    facts_mode mode;
    uint64_t m, n, k;
} time_case;

static const time_case cases[] = {
    {"q4_k", FACTS_EXACT, 1, 4096, 4096},
    {"int4_g128", FACTS_EXACT, 1, 4096, 4096},
    {"int4_g128", FACTS_EXACT, 1, 14336, 4096},
    {"int4_g128", FACTS_EXACT, 1, 1024, 4096},
    {"f16", FACTS_EXACT, 1, 4096, 4096},
    {"int4_g128", FACTS_TENSOR, 1, 4096, 4096},
    {"int4_g128", FACTS_TENSOR, 64, 4096, 4096},
    {"int4_g128", FACTS_PREPACKED, 1, 4096, 4096},
    {"int4_g128", FACTS_PREPACKED, 16, 4096, 4096},
    {"int4_g128", FACTS_PREPACKED, 64, 4096, 4096},
    {"int4_g128", FACTS_TENSOR, 16, 4096, 4096},
    {"int4_g128", FACTS_TENSOR, 4096, 4096, 4096},
    {"int4_g128", FACTS_PREPACKED, 4096, 4096, 4096},
};

static const uint64_t all_rows[] = {1, 2, 4, 8, 16, 32, 64, 128, 512, 2048, 4096};

typedef struct output {
    FILE *json;
    time_bar bars[TIME_BARS];
    int n_bars, modelled, refused;
} output;

static bool is_listed(const char *variable, const char *usual, const char *name)
{
    const char *list = getenv(variable), *at;
    const size_t length = strlen(name);
    list = list && *list ? list : usual;
    for (at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return !strcmp(list, "all");
}

static bool wants_all(void)
{
    const char *all = getenv("QDNN_BENCH_ALL");
    return all && *all && strcmp(all, "0");
}

/* ---- One product ---- */

static void print_time(const time_case *c, const board *on, const product_time *t)
{
    printf(
        "%-8s %-9s %-9s %4llu %6llu x %-5llu %8.1f-%-8.1f %4.0f-%-4.0f %8.1f-%-7.1f %7.1f %7.0f-%-5.0f %d ",
        on->name, c->format, facts_mode_name(c->mode), (unsigned long long)c->m, (unsigned long long)c->n,
        (unsigned long long)c->k, t->us[CLOCK_LOW], t->us[CLOCK_HIGH],
        100 * t->roofline_us / t->us[CLOCK_HIGH], 100 * t->roofline_us / t->us[CLOCK_LOW],
        t->plain_us[CLOCK_LOW], t->plain_us[CLOCK_HIGH], t->issue_us, t->tflops[CLOCK_HIGH],
        t->tflops[CLOCK_LOW], t->launches);
    for (int r = 0; r < PRODUCT_REASONS; r++)
        printf(" %s %.0f%%%s", clock_stall_name(t->reasons[r]), 100 * t->shares[r],
               r + 1 < PRODUCT_REASONS ? "," : "\n");
    fflush(stdout);
}

static void write_time(output *out, const time_case *c, const board *on, const product_time *t)
{
    if (!out->json)
        return;
    fprintf(out->json,
            "%s\n  {\"board\": \"%s\", \"format\": \"%s\", \"mode\": \"%s\", \"m\": %llu, \"n\": %llu, "
            "\"k\": %llu, \"modelled\": true, "
            "\"us_low\": %.3f, \"us_high\": %.3f, \"roofline_us\": %.3f, \"plain_us_low\": %.3f, "
            "\"plain_us_high\": %.3f, "
            "\"issue_us\": %.3f, \"launches\": %d, \"misfit\": %.4f, \"dram_busy\": %.3f",
            out->modelled ? "," : "", on->name, c->format, facts_mode_name(c->mode), (unsigned long long)c->m,
            (unsigned long long)c->n, (unsigned long long)c->k, t->us[CLOCK_LOW], t->us[CLOCK_HIGH],
            t->roofline_us, t->plain_us[CLOCK_LOW], t->plain_us[CLOCK_HIGH], t->issue_us, t->launches,
            t->misfit, t->dram_busy);
    for (int u = 0; u < CLOCK_UNITS; u++)
        fprintf(out->json, "%s\"%s\": %.3f", u ? ", " : ", \"busy\": {", clock_unit_name((clock_unit)u),
                t->busy[u]);
    for (int r = 0; r < PRODUCT_REASONS; r++)
        fprintf(out->json, "%s{\"reason\": \"%s\", \"share\": %.3f}", r ? ", " : "}, \"waits\": [",
                clock_stall_name(t->reasons[r]), t->shares[r]);
    fprintf(out->json, "]}");
}

static void keep_bar(output *out, const time_case *c, const board *on, const product_time *t)
{
    if (out->n_bars == TIME_BARS)
        return;
    time_bar *bar = &out->bars[out->n_bars++];
    snprintf(bar->name, sizeof bar->name, "%s: %s %s, M = %llu, %llu x %llu", on->name, c->format,
             facts_mode_name(c->mode), (unsigned long long)c->m, (unsigned long long)c->n,
             (unsigned long long)c->k);
    bar->low = t->roofline_us / t->us[CLOCK_HIGH];
    bar->high = t->roofline_us / t->us[CLOCK_LOW];
    bar->plain = 2 * t->roofline_us / (t->plain_us[CLOCK_LOW] + t->plain_us[CLOCK_HIGH]);
    bar->issue = t->roofline_us / t->issue_us;
}

/* What is kept of a case: it is modelled, or why not. */
typedef struct timed {
    product_time time;
    bool ok;
    char why[256];
} timed;

typedef struct listed_case {
    time_case of;
    const board *on;
    bool shown;
} listed_case;

typedef struct list {
    listed_case *at;
    size_t n, room;
    kept *results;
} list;

static void add_case(list *l, const time_case *c, const board *on, bool shown)
{
    if (l->n == l->room) {
        const size_t room = l->room ? 2 * l->room : 256;
        listed_case *grown = realloc(l->at, room * sizeof *grown);
        if (!grown) {
            fprintf(stderr, "bench: out of memory\n");
            exit(1);
        }
        l->at = grown;
        l->room = room;
    }
    l->at[l->n++] = (listed_case){*c, on, shown};
}

static void case_name(const listed_case *c, char *name, size_t size)
{
    snprintf(name, size, "%s %s %s %llu %llu %llu", c->on->name, c->of.format, facts_mode_name(c->of.mode),
             (unsigned long long)c->of.m, (unsigned long long)c->of.n, (unsigned long long)c->of.k);
}

static void time_case_of(const listed_case *c, timed *out)
{
    const facts_shape shape = {.n = c->of.n, .k = c->of.k};
    const facts_format *format = facts_format_find(c->of.format);
    facts_product product;
    memset(out, 0, sizeof *out); /* its padding is kept, too */
    if (!format)
        snprintf(out->why, sizeof out->why, "no such format");
    else
        out->ok = facts_product_of(format, c->of.mode, c->of.m, &shape, c->on, &product, out->why,
                                   sizeof out->why) &&
                  product_time_of(&product, c->on, &out->time, out->why, sizeof out->why);
}

static void *open_timing(void *job)
{
    return job;
}

static bool time_one(void *worker, uint32_t chunk)
{
    list *l = worker;
    char name[256];
    timed t;
    case_name(&l->at[chunk], name, sizeof name);
    if (kept_find(l->results, name, &t))
        return true;
    time_case_of(&l->at[chunk], &t);
    return kept_add(l->results, name, &t);
}

static void close_timing(void *job, void *worker)
{
    (void)job;
    (void)worker;
}

static void show_one(output *out, list *l, const listed_case *c)
{
    char name[256];
    timed t;
    case_name(c, name, sizeof name);
    if (!kept_find(l->results, name, &t))
        return;
    if (t.ok) {
        if (c->shown)
            print_time(&c->of, c->on, &t.time);
        write_time(out, &c->of, c->on, &t.time);
        if (c->shown)
            keep_bar(out, &c->of, c->on, &t.time);
    } else if (c->shown)
        printf("%-8s %-9s %-9s %4llu %6llu x %-5llu none: %s\n", c->on->name, c->of.format,
               facts_mode_name(c->of.mode), (unsigned long long)c->of.m, (unsigned long long)c->of.n,
               (unsigned long long)c->of.k, t.why);
    out->modelled += t.ok;
    out->refused += !t.ok;
}

/* ---- All of them ---- */

static void usual_products(list *l, const board *on)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        add_case(l, &cases[i], on, true);
}

static bool is_named(const time_case *c)
{
    char rows[24];
    snprintf(rows, sizeof rows, "%llu", (unsigned long long)c->m);
    return is_listed("QDNN_BENCH_FORMATS", "all", c->format) && is_listed("QDNN_BENCH_ROWS", "1", rows) &&
           is_listed("QDNN_BENCH_MODES", "exact", facts_mode_name(c->mode));
}

static void named_formats(list *l, const board *on)
{
    for (int f = 0; f < facts_format_count(); f++)
        for (int mode = 0; mode < FACTS_MODES; mode++)
            for (size_t r = 0; r < sizeof all_rows / sizeof *all_rows; r++) {
                const time_case c = {facts_format_at(f)->name, (facts_mode)mode, all_rows[r], 4096, 4096};
                if (is_named(&c))
                    add_case(l, &c, on, true);
            }
}

static void all_products(list *l, const board *on)
{
    for (int f = 0; f < facts_format_count(); f++)
        for (int mode = 0; mode < FACTS_MODES; mode++)
            for (size_t r = 0; r < sizeof all_rows / sizeof *all_rows; r++)
                for (int s = 0; s < facts_shape_count(); s++) {
                    const time_case c = {facts_format_at(f)->name, (facts_mode)mode, all_rows[r],
                                         facts_shape_at(s)->n, facts_shape_at(s)->k};
                    if (bench_is_sampled("%s %s %d %llu %llu %llu", on->name, c.format, mode,
                                         (unsigned long long)c.m, (unsigned long long)c.n,
                                         (unsigned long long)c.k))
                        add_case(l, &c, on, getenv("QDNN_BENCH_ONE_IN") != NULL);
                }
}

static void list_products(list *l)
{
    for (int b = 0; b < board_count(); b++) {
        const board *on = board_at(b);
        if (!is_listed("QDNN_BENCH_BOARDS", "a100,h100,rtx4090,b200", on->name))
            continue;
        (getenv("QDNN_BENCH_FORMATS") ? named_formats : usual_products)(l, on);
        if (wants_all())
            all_products(l, on);
    }
}

static bool time_all(list *l)
{
    char path[1024];
    const uint64_t program = bench_program();
    bench_beside("bench_time.kept", path, sizeof path);
    l->results = kept_new(sizeof(timed));
    if (!l->results)
        return false;
    if (program && !kept_file(l->results, path, program))
        fprintf(stderr, "bench: %s cannot be written, so a run that is ended begins anew\n", path);
    return sweep_run(&(sweep){.name = "time: products",
                              .chunks = (uint32_t)l->n,
                              .open = open_timing,
                              .step = time_one,
                              .close = close_timing,
                              .job = l});
}

void bench_time(void)
{
    static output out;
    char why[256], path[1024];
    list l = {0};
    out = (output){0};
    if (!sass_found(why, sizeof why)) {
        printf("time: skipped, %s\n", why);
        return;
    }
    list_products(&l);
    if (!time_all(&l))
        fprintf(stderr, "bench: out of memory, or a file cannot be written\n");
    bench_beside("bench_time.json", path, sizeof path);
    if (!(out.json = fopen(path, "w")))
        fprintf(stderr, "bench: %s cannot be written\n", path);
    else
        fprintf(out.json, "[");
    printf("modelled, from a cold L2, without what a launch costs; %% of the time that DRAM takes at its "
           "peak\n");
    printf("%-8s %-9s %-9s %4s %14s %17s %9s %16s %7s %13s %s  %s\n", "board", "format", "mode", "M", "N x K",
           "us", "%", "plain read us", "issue", "TFLOPS", "l", "why warps wait");
    for (size_t i = 0; l.results && i < l.n; i++)
        show_one(&out, &l, &l.at[i]);
    if (out.json) {
        fprintf(out.json, "\n]\n");
        fclose(out.json);
    }
    bench_beside("bench_time.svg", path, sizeof path);
    if (time_picture(path, out.bars, out.n_bars))
        printf("%s\n", path);
    free(l.at);
    kept_free(l.results);
    bench_report("time.modelled", out.modelled, "products", "bench_time.json");
    bench_report("time.not_modelled", out.refused, "products",
                 "there is no such product, or it is not modelled");
}
