/* Facts about products on boards: a table for people, in colour on a terminal ("!" marks what is wrong
 * elsewhere), and build/bench_facts.json. What is wanted, and why, is in docs/performance.md. Settings:
 *
 *   QDNN_BENCH_BOARDS   a100,t4 or all; by default a100
 *   QDNN_BENCH_FORMATS  q4_k,nf4 or all; by default four that differ most
 *   QDNN_BENCH_ROWS     1,64: numbers of rows; by default all that the shapes have
 *   QDNN_BENCH_SHAPES   all: the matrices of every model and all numbers of rows; by default a few of them
 *   QDNN_BENCH_ONE_IN   1000: a sample of them, by QDNN_BENCH_SEED
 *   QDNN_BENCH_FACTS    plan: what needs neither ptxas nor a run
 *
 * Each kernel is run and assembled once, by two threads, and build/bench_facts.kept has what was found: a run of the same program that was
 * ended goes on where it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/facts/facts.h"
#include "bench/sweep.h"
#include "clock/product/kept.h"

static const uint64_t all_rows[] = {1, 2, 4, 8, 16, 32, 64, 128, 512, 2048, 4096};
enum { ALL_ROWS = sizeof all_rows / sizeof *all_rows };

/* ---- The table ---- */

typedef enum { PLAIN, GOOD, BAD } colour;

static void cell(colour c, const char *format, double value)
{
    static const char *const codes[] = {[PLAIN] = "", [GOOD] = "\033[32m", [BAD] = "\033[31m"};
    const bool colours = isatty(STDOUT_FILENO) && c != PLAIN;
    printf("%s", colours ? codes[c] : "");
    printf(format, value);
    printf("%s", colours ? "\033[0m" : c == BAD ? "!" : " ");
}

/* A number that is not known is no number. */
static void known(bool is_known, colour c, const char *format, int width, double value)
{
    if (is_known)
        cell(c, format, value);
    else
        printf("%*s ", width, "-");
}

static colour judged(bool good)
{
    return good ? GOOD : BAD;
}

static colour judged_if(bool asked, bool good)
{
    return asked ? judged(good) : PLAIN;
}

typedef struct row {
    const facts_format *format;
    facts_mode mode;
    uint64_t m;
    const facts_shape *shape;
    const board *on;
} row;

static void print_head(void)
{
    printf("%-9s %-10s %-9s %4s %15s %-8s %5s %6s %7s %4s %6s %6s %7s %2s %8s %4s %5s %5s %7s %7s %9s %6s "
           "%6s %6s %6s "
           "%6s %8s %8s\n",
           "board", "format", "mode", "M", "N x K", "kernel", "rows", "split", "blocks", "thr", "warps",
           "wanted", "waves", "l", "MiB work", "regs", "KiBsh", "spill", "KiB fly", "wanted", "wait", "loop",
           "code", "confl%", "sect", "SASS/w", "DRAM us", "issue us");
}

static void print_name(const row *r)
{
    printf("%-9s %-10s %-9s %4llu %6llu x %-6llu ", r->on->name, r->format->name, facts_mode_name(r->mode),
           (unsigned long long)r->m, (unsigned long long)r->shape->n, (unsigned long long)r->shape->k);
}

/* The limits: loops and kernels that fit into instruction caches; conflicts that are no accident. */
#define LOOP_KIB  16
#define CODE_KIB  64
#define CONFLICTS 0.005
#define FULL      0.85
enum { FEW_ROWS = 16 };

static void print_plan(const facts *f)
{
    printf("%-8s", f->product);
    cell(PLAIN, "%5.0f", (double)f->tile_rows);
    cell(PLAIN, "%6.0f", (double)f->split);
    cell(PLAIN, " %6.0f", (double)f->launch.blocks);
    cell(PLAIN, "%4.0f", f->launch.threads);
    cell(judged_if(f->wanted_warps > 0, f->fill.warps_per_sm >= f->wanted_warps), "%6.1f",
         f->fill.warps_per_sm);
    cell(PLAIN, "%6.1f", f->wanted_warps);
    cell(judged(f->fill.waves <= 1 || f->fill.last_wave >= FULL), "%7.2f", f->fill.waves);
    cell(judged(f->launches == 1), "%2.0f", f->launches);
    cell(judged(f->workspace == 0), "%8.3f", (double)f->workspace / (1 << 20));
    known(f->launch.registers > 0, PLAIN, "%4.0f", 4, f->launch.registers);
    cell(PLAIN, "%5.1f", f->launch.shared / 1024.0);
    known(f->spill_bytes >= 0, judged(f->spill_bytes == 0), "%5.0f", 5, f->spill_bytes);
}

static bool was_run(const facts *f)
{
    return f->code.per_weight > 0;
}

static void print_code(const facts *f, uint64_t m)
{
    const facts_code *c = &f->code;
    known(c->is_sass, judged_if(f->wanted_flight > 0, f->flight >= f->wanted_flight), "%7.0f", 7,
          f->flight / 1024);
    cell(PLAIN, "%7.0f", f->wanted_flight / 1024);
    if (c->flight > 0)
        printf("%4.0f/%4.0f ", c->wait_least, c->wait_mean);
    else
        printf("%9s ", "-");
    known(c->is_sass, judged(c->loop_bytes <= LOOP_KIB * 1024), "%6.1f", 6, c->loop_bytes / 1024.0);
    known(c->is_sass, judged(c->bytes <= CODE_KIB * 1024), "%6.1f", 6, c->bytes / 1024.0);
    known(was_run(f), judged(c->conflicts <= CONFLICTS), "%6.1f", 6, 100 * c->conflicts);
    known(was_run(f), PLAIN, "%6.2f", 6, c->sectors);
    known(c->is_sass, PLAIN, "%6.2f", 6, c->per_weight * (double)f->row_tiles);
    cell(PLAIN, "%8.2f", f->dram_us);
    known(c->is_sass, judged_if(m <= FEW_ROWS, f->issue_us <= f->dram_us), "%8.2f", 8, f->issue_us);
    printf("\n");
}

/* ---- What is asked for ---- */

static bool is_listed(const char *variable, const char *usual, const char *name)
{
    const char *list = getenv(variable), *at;
    const size_t length = strlen(name);
    list = list && *list ? list : usual;
    if (!strcmp(list, "all"))
        return true;
    for (at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

static bool has_rows(uint64_t m)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)m);
    return is_listed("QDNN_BENCH_ROWS", "all", text);
}

static bool all_shapes(void)
{
    const char *value = getenv("QDNN_BENCH_SHAPES");
    return value && !strcmp(value, "all");
}

static facts_depth depth(void)
{
    const char *value = getenv("QDNN_BENCH_FACTS");
    return value && !strcmp(value, "plan") ? FACTS_PLAN : FACTS_RUN;
}

/* By default few and many rows with a square matrix, and one row with matrices that are narrow or whose K is no multiple of a round. */
static bool is_usual(const row *r)
{
    const facts_shape *s = r->shape;
    const bool square = s->n == 4096 && s->k == 4096, narrow = s->n == 1024 && s->k == 4096,
               odd = s->n == 49152 && s->k == 576;
    const bool few_rows = r->m == 1 || r->m == 16 || r->m == 64 || r->m == 512;
    if (r->mode != FACTS_EXACT && r->m == 1) /* one row is computed in mode exact */
        return false;
    return (square && few_rows) || (r->m == 1 && (narrow || odd));
}

static bool is_sampled(const row *r)
{
    return bench_is_sampled("%s %s %d %llu %llu %llu", r->on->name, r->format->name, r->mode,
                            (unsigned long long)r->m, (unsigned long long)r->shape->n,
                            (unsigned long long)r->shape->k);
}

/* ---- Every product ---- */

typedef struct totals {
    int products, few_warps, ragged_waves, more_launches, workspaces, short_flight, long_loops, spills;
} totals;

static void count(totals *t, const facts *f)
{
    t->products++;
    t->few_warps += f->fill.warps_per_sm < f->wanted_warps;
    t->ragged_waves += f->fill.waves > 1 && f->fill.last_wave < FULL;
    t->more_launches += f->launches > 1;
    t->workspaces += f->workspace > 0;
    t->short_flight += f->code.is_sass && f->flight < f->wanted_flight;
    t->long_loops += f->code.loop_bytes > LOOP_KIB * 1024;
    t->spills += f->spill_bytes > 0;
}

static void write_plan(FILE *file, const row *r, const facts *f)
{
    fprintf(
        file,
        "{\"board\": \"%s\", \"format\": \"%s\", \"mode\": \"%s\", \"model\": \"%s\", \"m\": %llu, \"n\": "
        "%llu, "
        "\"k\": %llu, \"product\": \"%s\", \"tile_rows\": %llu, \"split\": %llu, \"kernel\": \"%s\", "
        "\"blocks\": %llu, \"threads\": %d, "
        "\"shared\": %u, "
        "\"blocks_per_sm\": %d, \"warps_per_sm\": %.3f, \"wanted_warps\": %.3f, \"waves\": %.4f, "
        "\"last_wave\": %.4f, \"launches\": %d, \"workspace\": %llu, \"row_tiles\": %llu, \"bytes\": %llu, "
        "\"dram_us\": %.4f, \"wanted_flight\": %.0f",
        r->on->name, r->format->name, facts_mode_name(r->mode), r->shape->model, (unsigned long long)r->m,
        (unsigned long long)r->shape->n, (unsigned long long)r->shape->k, f->product,
        (unsigned long long)f->tile_rows, (unsigned long long)f->split, f->kernel,
        (unsigned long long)f->launch.blocks, f->launch.threads, f->launch.shared, f->fill.blocks_per_sm,
        f->fill.warps_per_sm, f->wanted_warps, f->fill.waves, f->fill.last_wave, f->launches,
        (unsigned long long)f->workspace, (unsigned long long)f->row_tiles, (unsigned long long)f->bytes,
        f->dram_us, f->wanted_flight);
}

/* What is not known is not written. */
static void write_json(FILE *file, bool first, const row *r, const facts *f)
{
    const facts_code *c = &f->code;
    fprintf(file, "%s\n  ", first ? "" : ",");
    write_plan(file, r, f);
    if (f->spill_bytes >= 0)
        fprintf(file, ", \"registers\": %d, \"spill_bytes\": %d", f->launch.registers, f->spill_bytes);
    if (was_run(f))
        fprintf(file, ", \"conflicts\": %.5f, \"sectors\": %.4f, \"%s_per_weight\": %.4f", c->conflicts,
                c->sectors, c->is_sass ? "sass" : "ptx", c->per_weight * (double)f->row_tiles);
    if (c->is_sass)
        fprintf(file,
                ", \"flight\": %.0f, \"wait_least\": %.0f, \"wait_mean\": %.1f, \"loop_bytes\": %d, "
                "\"code_bytes\": %d, "
                "\"issue_us\": %.4f, \"misfit\": %.5f",
                f->flight, c->wait_least, c->wait_mean, c->loop_bytes, c->bytes, f->issue_us, c->misfit);
    fprintf(file, "}");
}

static bool is_asked_for(const row *r)
{
    return has_rows(r->m) && (all_shapes() || is_usual(r)) && is_sampled(r);
}

typedef struct report_job {
    FILE *file;
    totals totals;
} report_job;

static void one(const row *r, void *user)
{
    report_job *job = user;
    facts f;
    char why[256] = "";
    bool ok = facts_of(r->format, r->mode, r->m, r->shape, r->on, depth(), &f, why, sizeof why);
    print_name(r);
    if (!ok) { /* a gap is a fact too */
        printf("none: %s\n", why);
        return;
    }
    if (job->file)
        write_json(job->file, job->totals.products == 0, r, &f);
    count(&job->totals, &f);
    print_plan(&f);
    print_code(&f, r->m);
    fflush(stdout);
}

static void every_row(const facts_format *format, const board *on, void (*visit)(const row *, void *),
                      void *user)
{
    for (int mode = 0; mode < FACTS_MODES; mode++)
        for (int m = 0; m < ALL_ROWS; m++)
            for (int s = 0; s < facts_shape_count(); s++) {
                const row r = {format, (facts_mode)mode, all_rows[m], facts_shape_at(s), on};
                if (is_asked_for(&r))
                    visit(&r, user);
            }
}

static void every_product(void (*visit)(const row *, void *), void *user)
{
    for (int b = 0; b < board_count(); b++)
        for (int i = 0; i < facts_format_count(); i++)
            if (is_listed("QDNN_BENCH_BOARDS", "a100", board_at(b)->name) &&
                is_listed("QDNN_BENCH_FORMATS", "int4_g128,nvfp4,q4_k,q8_0", facts_format_at(i)->name))
                every_row(facts_format_at(i), board_at(b), visit, user);
}

/* ---- What has to be measured: by two threads, each kernel once ---- */

typedef struct to_measure {
    facts_product product;
    const board *on;
} to_measure;

typedef struct measure_job {
    to_measure *list;
    size_t n, room;
    kept *seen; /* names of the list */
} measure_job;

static void list_kernel(const row *r, void *user)
{
    measure_job *job = user;
    facts_product product;
    char why[256], name[FACTS_NAME], nothing = 0;
    if (!facts_product_of(r->format, r->mode, r->m, r->shape, r->on, &product, why, sizeof why) ||
        facts_has_code(&product, r->on))
        return;
    facts_code_name(&product, r->on, name, sizeof name);
    if (kept_find(job->seen, name, &nothing) || !kept_add(job->seen, name, &nothing))
        return;
    if (job->n == job->room) {
        job->room = job->room ? 2 * job->room : 256;
        to_measure *grown = realloc(job->list, job->room * sizeof *grown);
        if (!grown)
            return; /* it is measured when its row is printed */
        job->list = grown;
    }
    job->list[job->n++] = (to_measure){product, r->on};
}

static void *open_measuring(void *job)
{
    return job;
}

/* A kernel that cannot be measured says so in its row. */
static bool measure_one(void *worker, uint32_t chunk)
{
    const measure_job *job = worker;
    facts_code code;
    char why[256];
    facts_code_of(&job->list[chunk].product, job->list[chunk].on, &code, why, sizeof why);
    return true;
}

static void close_measuring(void *job, void *worker)
{
    (void)job;
    (void)worker;
}

static void measure_all(void)
{
    char path[1024];
    measure_job job = {.seen = kept_new(1)};
    const uint64_t program = bench_program();
    bench_beside("bench_facts.kept", path, sizeof path);
    if (program && !facts_keep_code_in(path, program))
        fprintf(stderr, "bench: %s cannot be written, so a run that is ended begins anew\n", path);
    if (job.seen)
        every_product(list_kernel, &job);
    if (job.n)
        sweep_run(&(sweep){.name = "facts: kernels",
                           .chunks = (uint32_t)job.n,
                           .open = open_measuring,
                           .step = measure_one,
                           .close = close_measuring,
                           .job = &job});
    bench_report("facts.kernels", (double)job.n, "kernels", "with small products, measured by this run");
    free(job.list);
    kept_free(job.seen);
}

/* ---- All of it ---- */

static void say_what_is_missing(void)
{
    char why[256];
    if (depth() == FACTS_PLAN)
        printf("the plan alone: registers, spills and code are unknown, and warps per SM an upper bound\n");
    else if (!sass_found(why, sizeof why))
        printf("%s: registers, spills and code are unknown, and warps per SM an upper bound\n", why);
}

static void report(const totals *t)
{
    bench_report("facts.products", t->products, "products", "format x mode x rows x shape x board");
    bench_report("facts.few_warps", t->few_warps, "products",
                 "up to 16 rows with fewer warps per SM than wanted");
    bench_report("facts.ragged_waves", t->ragged_waves, "products", "more than one wave, the last below 85%");
    bench_report("facts.more_launches", t->more_launches, "products", "more than one launch");
    bench_report("facts.workspaces", t->workspaces, "products", "with a workspace");
    bench_report("facts.short_flight", t->short_flight, "products",
                 "up to 16 rows with fewer bytes in flight than wanted");
    bench_report("facts.long_loops", t->long_loops, "products", "a hot loop above 16 KiB");
    bench_report("facts.spills", t->spills, "products", "with spills");
}

void bench_facts(void)
{
    char path[1024];
    report_job job = {.file = NULL};
    if (depth() == FACTS_RUN)
        measure_all();
    bench_beside("bench_facts.json", path, sizeof path);
    FILE *file = job.file = fopen(path, "w");
    if (!file)
        fprintf(stderr, "bench: %s cannot be written\n", path);
    else
        fprintf(file, "[");
    say_what_is_missing();
    print_head();
    every_product(one, &job);
    if (file) {
        fprintf(file, "\n]\n");
        fclose(file);
    }
    report(&job.totals);
}
