/* Whether products are limited by memory or by arithmetic: a roofline, modelled from counters. The time of a
 * launch is the longer of two: that of its sectors at the memory's bandwidth, and that of its warp
 * instructions at four per cycle per multiprocessor. On a GPU, times are measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "tools/gpu_report/report.h"

static const double clock_hz = 1.4e9; /* assumed by the model */
enum { SCHEDULERS = 4, WIDTH = 760, HEIGHT = 460, LEFT = 70, BOTTOM = 410, PLOT = 640, RISE = 370 };

/* The axes of the picture: flop per byte from 1 to 1024, GFLOP/s from 1 to 10^6. */
static double x_of(double intensity)
{
    return LEFT + PLOT * log2(intensity) / 10;
}

static double y_of(double flops)
{
    return BOTTOM - RISE * (log10(flops) - 9) / 6;
}

static double peak_of(const report *r)
{
    return 2.0 * 32 * SCHEDULERS * r->device.multiprocessors * clock_hz;
}

static double flops_of(const result *one)
{
    return 2.0 * (double)one->rows * (double)one->n * (double)one->k;
}

static double seconds_of(const report *r, const result *one)
{
    if (!r->counted)
        return one->seconds;
    double memory = 32.0 * (double)one->counts.sectors / r->device.memoryBytesPerSecond;
    double issue = (double)one->counts.instructions / (SCHEDULERS * r->device.multiprocessors * clock_hz);
    return memory > issue ? memory : issue;
}

static void draw_roofs(FILE *out, const report *r)
{
    double ridge = peak_of(r) / r->device.memoryBytesPerSecond;
    fprintf(out, "<polyline points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" fill=\"none\" stroke=\"#cc3311\"/>\n",
            x_of(1), y_of(r->device.memoryBytesPerSecond), x_of(ridge), y_of(peak_of(r)), x_of(1024),
            y_of(peak_of(r)));
    for (int i = 0; i <= 10; i += 2)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x_of(1 << i),
                BOTTOM + 16, 1 << i);
    for (int i = 9; i <= 15; i++)
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>\n", LEFT - 6,
                y_of(pow(10, i)) + 4, i - 9);
    fprintf(out, "<text x=\"%d\" y=\"%d\">flop per byte that has to be moved</text>\n", LEFT + PLOT / 2 - 80,
            BOTTOM + 34);
    fprintf(out, "<text x=\"10\" y=\"36\">GFLOP/s</text>\n");
}

static void draw(const report *r, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return;
    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
        "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"10\" y=\"18\" "
        "font-size=\"13\">products on %s, %s</text>\n",
        WIDTH, HEIGHT, r->device.target,
        r->counted ? "modelled from counters of ptxvm: no GPU was measured" : "measured");
    draw_roofs(out, r);
    for (int i = 0; i < r->n; i++) {
        const result *one = &r->results[i];
        if (strcmp(one->operation, "product") != 0 || one->why[0])
            continue;
        double x = x_of(flops_of(one) / one->bytes), y = y_of(flops_of(one) / seconds_of(r, one));
        fprintf(
            out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>%s, %s, %lld rows</title></circle>\n",
            x, y, strcmp(one->how, "exact") == 0 ? "#4477aa" : "#228833", one->format, one->how,
            (long long)one->rows);
    }
    fprintf(out,
            "<text x=\"%d\" y=\"60\" fill=\"#4477aa\">exact</text><text x=\"%d\" y=\"76\" "
            "fill=\"#228833\">tensor cores, "
            "cuBLAS</text>\n</svg>\n",
            LEFT + 20, LEFT + 20);
    fclose(out);
    printf("%s\n", path);
}

void bench_roofline(void)
{
    static report r;
    char path[1024];
    r = (report){.side = 1024, .device = {.size = sizeof r.device}};
    vm_counters_open();
    if (qdnnCreate(&r.handle) || qdnnGetDeviceInfo(r.handle, &r.device)) {
        fprintf(stderr, "no device for the roofline\n");
        return;
    }
    r.counted = r.device.kind == QDNN_DEVICE_PTXVM;
    report_measure(&r);
    for (int i = 0; i < r.n; i++) {
        const result *one = &r.results[i];
        char name[128];
        snprintf(name, sizeof name, "roofline.%s_%s_m%lld.share", one->format, one->how,
                 (long long)one->rows);
        if (strcmp(one->operation, "product") == 0 && !one->why[0]) {
            double roof = fmin(peak_of(&r), flops_of(one) / one->bytes * r.device.memoryBytesPerSecond);
            bench_report(name, flops_of(one) / seconds_of(&r, one) / roof, "of the roof of f32 fma",
                         r.counted ? "modelled from counters" : "measured");
        }
    }
    bench_beside("bench_roofline.svg", path, sizeof path);
    draw(&r, path);
    qdnnDestroy(r.handle);
    vm_counters_close();
}
