/* The model of time (clock/) held against what others have measured: stream kernels by occupancy and by size. Every fourth row, or all with
 * QDNN_BENCH_ALL=1. Figures are ratios of modelled to published throughput or time; docs/clock.md discusses them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/clock/stream.h"

enum { COLUMNS = 6, MOST = 512, EVERYTHING = 4096 };

static const struct stream_row {
    const char *board;
    int threads, blocks_per_sm, triad_arrays;
    double gbs[COLUMNS];
} stream_rows[] = {
#define STREAM(board, threads, blocks, triad, ...) {board, threads, blocks, triad, {__VA_ARGS__}},
#include "bench/clock/stream_rows.def"
#undef STREAM
};

static const struct size_row {
    const char *board;
    uint64_t elements;
    double us;
} size_rows[] = {
#define SIZE(...) {__VA_ARGS__},
#include "bench/clock/size_rows.def"
#undef SIZE
};

enum {
    STREAM_ROWS = sizeof stream_rows / sizeof *stream_rows,
    SIZE_ROWS = sizeof size_rows / sizeof *size_rows
};

/* Ratios of modelled to published. */
typedef struct agreement {
    double errors[MOST];
    int n, inside;
    double worst;
} agreement;

/* Of all figures: by what share a published one lies outside of the interval of the parameters alone; 0 inside. */
static double outside[EVERYTHING];
static int n_outside;

/* Without the margin. */
static double narrow(double us, clock_corner corner)
{
    return us / clock_widened(1, corner);
}

/* Times, without the margin; `ratio` is that of the middle of the interval to what was published. */
static void add(agreement *a, double low, double high, double published, double ratio)
{
    if (a->n == MOST || n_outside == EVERYTHING)
        return;
    const double by = fmax(0, fmax(1 - published / low, published / high - 1));
    outside[n_outside++] = by;
    a->errors[a->n++] = fabs(ratio - 1);
    a->inside += by <= CLOCK_MARGIN;
    a->worst = fabs(ratio - 1) > fabs(a->worst - 1) || !a->worst ? ratio : a->worst;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* "clock.stream.a100.read": the mean error of the middle of the interval, in percent. */
static void report(const char *name, agreement *a)
{
    char note[160];
    double sum = 0;
    if (!a->n)
        return;
    qsort(a->errors, (size_t)a->n, sizeof *a->errors, compare);
    for (int i = 0; i < a->n; i++)
        sum += a->errors[i];
    snprintf(note, sizeof note,
             "mean error; median %.1f%%, worst ratio %.2f; %d of %d inside the widened interval",
             100 * a->errors[a->n / 2], a->worst, a->inside, a->n);
    bench_report(name, 100 * sum / a->n, "%", note);
}

static int every(void)
{
    const char *all = getenv("QDNN_BENCH_ALL");
    return all && *all && strcmp(all, "0") ? 1 : 4;
}

/* ---- By occupancy ---- */

static stream_kind kind_of(const struct stream_row *row, int column)
{
    static const stream_kind kinds[COLUMNS] = {STREAM_INIT,   STREAM_READ,   STREAM_SCALE,
                                               STREAM_TRIAD4, STREAM_3POINT, STREAM_5POINT};
    return kinds[column] == STREAM_TRIAD4 && row->triad_arrays == 3 ? STREAM_TRIAD3 : kinds[column];
}

static bool one_stream(const struct stream_row *row, int column, agreement *a)
{
    double gbs[CLOCK_CORNERS];
    char error[512];
    stream_kind kind = kind_of(row, column);
    bench_progress("clock: %s on %s, %d x %d threads", stream_name(kind), row->board, row->blocks_per_sm,
                   row->threads);
    if (!stream_gbs(kind, board_find(row->board), row->threads, row->blocks_per_sm, gbs, error,
                    sizeof error)) {
        fprintf(stderr, "bench: clock: %s: %s\n", row->board, error);
        return false;
    }
    const double low = narrow(1 / gbs[CLOCK_LOW], CLOCK_LOW), high = narrow(1 / gbs[CLOCK_HIGH], CLOCK_HIGH);
    add(a, low, high, 1 / row->gbs[column], (1 / low + 1 / high) / 2 / row->gbs[column]);
    return true;
}

static bool streams_of(const char *name)
{
    for (int column = 0; column < COLUMNS; column++) {
        agreement a = {.n = 0};
        char figure[96];
        int number = 0;
        for (int i = 0; i < STREAM_ROWS; i++)
            if (!strcmp(stream_rows[i].board, name) && number++ % every() == 0 &&
                !one_stream(&stream_rows[i], column, &a))
                return false;
        snprintf(figure, sizeof figure, "clock.stream.%s.%s", name,
                 stream_name(kind_of(&stream_rows[0], column)));
        report(figure, &a);
    }
    return true;
}

/* ---- By size ---- */

/* Launched again and again, the arrays that fit are in L2; what a launch costs besides is taken from the smallest size. */
static bool sizes_of(const char *name)
{
    enum { THREADS = 512, PAIR = 16 };
    agreement in_l2 = {.n = 0}, from_dram = {.n = 0};
    const board *on = board_find(name);
    double launch[CLOCK_CORNERS] = {-1, -1}, us[CLOCK_CORNERS];
    char error[512], figure[96];
    int number = 0;
    for (int i = 0; i < SIZE_ROWS; i++) {
        const struct size_row *row = &size_rows[i];
        const double bytes = (double)row->elements * PAIR, l2 = on->l2_kib * 1024.0;
        const bool warm = bytes<l2 / 2, cold = bytes> 4 * l2;
        if (strcmp(row->board, name) || (number++ && number % every()) || (!warm && !cold))
            continue;
        bench_progress("clock: scale on %s, %llu elements", name, (unsigned long long)row->elements);
        if (!stream_us(STREAM_SCALE, on, row->elements, THREADS, warm, us, error, sizeof error)) {
            fprintf(stderr, "bench: clock: %s\n", error);
            return false;
        }
        for (int c = 0; c < CLOCK_CORNERS && number == 1; c++)
            launch[c] = row->us - narrow(us[c], (clock_corner)c);
        if (number == 1)
            continue;
        const double low = narrow(us[CLOCK_LOW], CLOCK_LOW) + launch[CLOCK_LOW],
                     high = narrow(us[CLOCK_HIGH], CLOCK_HIGH) + launch[CLOCK_HIGH];
        add(warm ? &in_l2 : &from_dram, fmin(low, high), fmax(low, high), row->us,
            (low + high) / 2 / row->us);
    }
    snprintf(figure, sizeof figure, "clock.size.%s.l2", name);
    report(figure, &in_l2);
    snprintf(figure, sizeof figure, "clock.size.%s.dram", name);
    report(figure, &from_dram);
    return true;
}

/* Which share of all figures each margin would take in. */
static void report_margins(void)
{
    static const int percent[] = {0, 5, 10, 15, 20};
    for (size_t i = 0; n_outside && i < sizeof percent / sizeof *percent; i++) {
        char figure[64];
        int n = 0;
        for (int k = 0; k < n_outside; k++)
            n += outside[k] <= percent[i] / 100.0;
        snprintf(figure, sizeof figure, "clock.within.%d", percent[i]);
        bench_report(figure, 100.0 * n / n_outside, "%",
                     "of all figures above, in the interval of the parameters widened by so many percent");
    }
    n_outside = 0;
}

void bench_clock(void)
{
    static const char *const streams[] = {"a100", "a100_80", "a40", "l40", "h100_pcie", "gh200"};
    static const char *const sizes[] = {"a100_80", "a40", "l40", "h200"};
    char why[256];
    bool ok = sass_found(why, sizeof why);
    if (!ok)
        printf("clock: skipped, %s\n", why);
    for (size_t i = 0; ok && i < sizeof streams / sizeof *streams; i++)
        ok = streams_of(streams[i]);
    for (size_t i = 0; ok && i < sizeof sizes / sizeof *sizes; i++)
        ok = sizes_of(sizes[i]);
    report_margins();
    stream_forget();
}
