/* Facts about products on boards: a table for people, in colour on a terminal ("!" marks what is wrong
 * elsewhere), and build/bench_facts.json with every format, mode, number of rows and shape. What is wanted,
 * and why, is in docs/performance.md. QDNN_BENCH_BOARDS=a100,t4 selects the boards; "all" means all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/facts/facts.h"
#include "tools/toolkit.h"

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

static colour judged(bool good)
{
    return good ? GOOD : BAD;
}

static void print_row(const facts_format *format, facts_mode mode, uint64_t m, const facts_shape *shape,
                      const board *on, const facts *f)
{
    printf("%-9s %-9s %-9s %4llu %6llu x %-6llu %-8s", on->name, format->name, facts_mode_name(mode),
           (unsigned long long)m, (unsigned long long)shape->n, (unsigned long long)shape->k, f->product);
    cell(PLAIN, " %7.0f", (double)f->launch.blocks);
    cell(PLAIN, " %4.0f", f->launch.threads);
    cell(f->wanted_warps ? judged(f->fill.warps_per_sm >= f->wanted_warps) : PLAIN, " %6.1f",
         f->fill.warps_per_sm);
    cell(PLAIN, " %6.1f", f->wanted_warps);
    cell(judged(f->fill.waves <= 1 || f->fill.last_wave >= 0.85), " %7.2f", f->fill.waves);
    cell(judged(f->launches == 1), " %2.0f", f->launches);
    cell(judged(f->workspace == 0), " %9.3f", (double)f->workspace / (1 << 20));
    cell(PLAIN, " %4.0f", f->launch.registers);
    cell(PLAIN, " %6.1f", f->launch.shared / 1024.0);
    cell(f->spill_bytes < 0 ? PLAIN : judged(f->spill_bytes == 0), " %4.0f", f->spill_bytes);
    printf(" %8.2f\n", f->dram_us);
}

static bool is_listed(const char *name)
{
    static const char usual[] = "a100,h100";
    const char *list = getenv("QDNN_BENCH_BOARDS"), *at;
    const size_t length = strlen(name);
    list = list && *list ? list : usual;
    if (!strcmp(list, "all"))
        return true;
    for (at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

/* What the table shows: few and many rows with a square matrix, and one row with matrices that are narrow or whose K is no multiple of a
 * round. */
static bool is_shown(const facts_shape *shape, uint64_t m)
{
    const bool square = shape->n == 4096 && shape->k == 4096, narrow = shape->n == 1024 && shape->k == 4096,
               odd = shape->n == 49152 && shape->k == 576;
    return (square && (m == 1 || m == 16 || m == 64 || m == 512)) || (m == 1 && (narrow || odd));
}

/* ---- Every product ---- */

typedef struct totals {
    int products, few_warps, ragged_waves, more_launches, workspaces;
} totals;

static void count(totals *t, const facts *f)
{
    t->products++;
    t->few_warps += f->fill.warps_per_sm < f->wanted_warps;
    t->ragged_waves += f->fill.waves > 1 && f->fill.last_wave < 0.85;
    t->more_launches += f->launches > 1;
    t->workspaces += f->workspace > 0;
}

static void write_json(FILE *file, bool first, const facts_format *format, facts_mode mode, uint64_t m,
                       const facts_shape *shape, const board *on, const facts *f)
{
    fprintf(file,
            "%s\n  {\"board\": \"%s\", \"format\": \"%s\", \"mode\": \"%s\", \"model\": \"%s\", \"m\": %llu, "
            "\"n\": %llu, "
            "\"k\": %llu, \"product\": \"%s\", \"blocks\": %llu, \"threads\": %d, \"shared\": %u, "
            "\"registers\": %d, "
            "\"blocks_per_sm\": %d, \"warps_per_sm\": %.3f, \"wanted_warps\": %.3f, \"waves\": %.4f, "
            "\"last_wave\": %.4f, "
            "\"launches\": %d, \"workspace\": %llu, \"spill_bytes\": %d, \"bytes\": %llu, \"dram_us\": %.4f}",
            first ? "" : ",", on->name, format->name, facts_mode_name(mode), shape->model,
            (unsigned long long)m, (unsigned long long)shape->n, (unsigned long long)shape->k, f->product,
            (unsigned long long)f->launch.blocks, f->launch.threads, f->launch.shared, f->launch.registers,
            f->fill.blocks_per_sm, f->fill.warps_per_sm, f->wanted_warps, f->fill.waves, f->fill.last_wave,
            f->launches, (unsigned long long)f->workspace, f->spill_bytes, (unsigned long long)f->bytes,
            f->dram_us);
}

static void one(FILE *file, const facts_format *format, facts_mode mode, uint64_t m, const facts_shape *shape,
                const board *on, totals *t)
{
    facts f;
    char why[256];
    const bool shown = is_shown(shape, m);
    bench_progress("facts: %s %s M=%llu on %s", format->name, facts_mode_name(mode), (unsigned long long)m,
                   on->name);
    if (!facts_of(format, mode, m, shape, on, true, &f, why, sizeof why)) {
        if (shown) /* a gap is a fact too */
            printf("%-9s %-9s %-9s %4llu %6llu x %-6llu none: %s\n", on->name, format->name,
                   facts_mode_name(mode), (unsigned long long)m, (unsigned long long)shape->n,
                   (unsigned long long)shape->k, why);
        return;
    }
    if (file)
        write_json(file, t->products == 0, format, mode, m, shape, on, &f);
    count(t, &f);
    if (shown) {
        bench_progress("%s", "");
        print_row(format, mode, m, shape, on, &f);
    }
}

void bench_facts(void)
{
    char path[1024], ptxas[1024];
    totals t = {0};
    bench_beside("bench_facts.json", path, sizeof path);
    FILE *file = fopen(path, "w");
    if (!file)
        fprintf(stderr, "bench: %s cannot be written\n", path);
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        printf("ptxas was not found: registers and spills are unknown, and warps per SM an upper bound\n");
    printf("%-9s %-9s %-9s %4s %15s %-8s %8s %5s %7s %7s %8s %3s %10s %5s %7s %5s %8s\n", "board", "format",
           "mode", "M", "N x K", "kernel", "blocks", "thr", "warps", "wanted", "waves", "l", "MiB work",
           "regs", "KiB sh", "spill", "DRAM us");
    if (file)
        fprintf(file, "[");
    for (int i = 0; i < facts_format_count(); i++)
        for (int b = 0; b < board_count(); b++)
            for (int mode = 0; is_listed(board_at(b)->name) && mode < FACTS_MODES; mode++)
                for (int r = 0; r < ALL_ROWS; r++)
                    for (int s = 0; s < facts_shape_count(); s++)
                        one(file, facts_format_at(i), (facts_mode)mode, all_rows[r], facts_shape_at(s),
                            board_at(b), &t);
    if (file) {
        fprintf(file, "\n]\n");
        fclose(file);
    }
    bench_report("facts.products", t.products, "products", "format x mode x rows x shape x board");
    bench_report("facts.few_warps", t.few_warps, "products",
                 "up to 16 rows with fewer warps per SM than wanted");
    bench_report("facts.ragged_waves", t.ragged_waves, "products", "more than one wave, the last below 85%");
    bench_report("facts.more_launches", t.more_launches, "products", "more than one launch");
    bench_report("facts.workspaces", t.workspaces, "products", "with a workspace");
}
