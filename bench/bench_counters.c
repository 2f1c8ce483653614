/* The memory traffic of every operation of the registry by ptxvm's counters, compared with the minimum: the
 * sectors that its operands occupy. Prints a table, and draws the same as a picture next to bench.json:
 * bench_counters.svg. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/counted.h"

enum { ROWS = 64, COLUMNS = 4096, LANES = 32 };

static bool count_row(const kernel_row *row, counted *c)
{
    const kernel_problem problem = {.rows = ROWS, .columns = COLUMNS};
    const kernel_spec spec = kernel_spec_default();
    return counted_run(row, KERNEL_NORMAL(row, &spec), &problem, c); /* products have no entries here */
}

/* Of warps, as 32 lanes each. */
static double instructions_of_element(const counted *c)
{
    return (double)c->instructions * LANES / ((double)ROWS * COLUMNS);
}

static void report(const counted *c)
{
    char name[96], note[160];
    snprintf(name, sizeof name, "counters.%s.requested", c->row->operation_name);
    snprintf(note, sizeof note,
             "of the least %llu sectors; unique %.3f, %.2f instructions for an element, kernels: %d",
             (unsigned long long)c->least, (double)c->unique / (double)c->least, instructions_of_element(c),
             c->kernels);
    bench_report(name, (double)c->requested / (double)c->least, "x", note);
}

/* ---- The picture: two bars per operation ---- */

enum { LINE = 18, LEFT = 260, UNIT = 160, TOP = 58, WIDTH = 1000 };

static void draw_bar(FILE *out, int y, int height, double length, const char *colour)
{
    double width = length * UNIT < WIDTH - LEFT - 130 ? length * UNIT : WIDTH - LEFT - 130;
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", LEFT, y, width,
            height, colour);
}

static void draw_line(FILE *out, const counted *c, int number)
{
    const int y = TOP + number * LINE;
    const double unique = (double)c->unique / (double)c->least,
                 requested = (double)c->requested / (double)c->least;
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + 11,
            c->row->operation_name);
    draw_bar(out, y + 2, 6, unique, "#2a9d8f");
    draw_bar(out, y + 8, 6, requested, "#e9c46a");
    fprintf(out, "<text x=\"%d\" y=\"%d\">%.2f / %.2f, %.1f instr.</text>\n", WIDTH - 125, y + 11, unique,
            requested, instructions_of_element(c));
}

static bool draw(const counted *all, int count, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    const int height = TOP + count * LINE + 12;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"10\">\n",
            WIDTH, height);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, height);
    fprintf(out,
            "<text x=\"8\" y=\"20\" font-size=\"14\">Sectors of global memory against the least possible, %d "
            "x %d f32, default "
            "settings</text>\n",
            ROWS, COLUMNS);
    fprintf(out, "<text x=\"8\" y=\"40\" fill=\"#555\">upper bar: different sectors; lower bar: requested "
                 "ones; the line is the "
                 "least; instructions of PTX for an element</text>\n");
    for (int i = 0; i < count; i++)
        draw_line(out, &all[i], i);
    fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#d62828\"/>\n", LEFT + UNIT, TOP,
            LEFT + UNIT, height - 8);
    fprintf(out, "</svg>\n");
    return fclose(out) == 0;
}

void bench_counters(void)
{
    counted *all = calloc((size_t)kernel_row_count, sizeof *all);
    int count = 0;
    for (int i = 0; all && i < kernel_row_count; i++) {
        if (!kernel_rows[i].operation_name)
            continue;
        bench_progress("counters.%s", kernel_rows[i].operation_name);
        if (count_row(&kernel_rows[i], &all[count]))
            report(&all[count++]);
    }
    char path[1024];
    bench_beside("bench_counters.svg", path, sizeof path);
    if (all && !draw(all, count, path))
        fprintf(stderr, "bench: cannot write %s\n", path);
    free(all);
}
