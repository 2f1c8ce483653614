/* The time to produce a kernel: emitted by qdnn, and compiled by NVRTC from an equivalent kernel in CUDA
 * C. */
#include "bench/bench.h"
#include "bench/twins/twin.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 5 };

typedef struct job {
    const kernel_row *row;
    const ptx_sm *sm;
    kernel_spec spec;
    twin twin;
    bool ok;
} job;

static void emit(void *argument)
{
    job *j = argument;
    kernel_text text;
    ptx_error error;
    j->ok = kernel_emit(j->row, &j->spec, j->sm, NULL, &text, &error);
    free(text.ptx);
}

static void compile(void *argument)
{
    job *j = argument;
    nvrtc_result result;
    j->ok = twin_compile(&j->twin, j->row, &j->spec, j->sm, &result);
    if (!j->ok)
        fprintf(stderr, "bench: the twin of %s does not compile:\n%s\n", j->row->name,
                result.log ? result.log : "");
    nvrtc_free(&result);
}

/* CPU time of this process. A busy machine delays the long NVRTC calls more than the short emissions, so
 * wall-clock time would bias the comparison in our favour. */
static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Microseconds, the best of at least RUNS runs, reported as PREFIX.KERNEL.us; 0 if the work fails. */
static double measure(const char *prefix, void (*work)(void *), job *j, double budget, const char *note)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s.us", prefix, j->row->name);
    bench_progress("measuring %s", name);
    work(j); /* warm up */
    double start = cpu_seconds(), best = 1e30;
    for (int i = 0; j->ok && (i < RUNS || cpu_seconds() - start < budget); i++) {
        double before = cpu_seconds();
        work(j);
        double taken = cpu_seconds() - before;
        best = taken < best ? taken : best;
    }
    if (!j->ok)
        return 0;
    bench_report(name, best * 1e6, "us", note);
    return best * 1e6;
}

/* NVRTC's time divided by ours; 0 if there is no NVRTC or no equivalent kernel. */
static double compare(job *j)
{
    double ours = measure("emit", emit, j, 0.05, "default settings, sm_90; CPU time");
    if (!ours || !nvrtc_found() || !twin_open(&j->twin, j->row))
        return 0;
    double theirs = measure("nvrtc", compile, j, 0.5, "CUDA C twin to PTX, warm; CPU time");
    twin_close(&j->twin);
    return theirs / ours;
}

void bench_emit(void)
{
    double worst = 0;
    const char *slowest = "";
    for (int i = 0; i < kernel_row_count; i++) {
        job j = {.row = &kernel_rows[i], .sm = ptx_sm_find("sm_90"), .spec = kernel_spec_default()};
        double ratio = compare(&j);
        if (ratio > 0 && (worst == 0 || ratio < worst)) {
            worst = ratio;
            slowest = j.row->name;
        }
    }
    char note[128];
    snprintf(note, sizeof note, "nvrtc / emit, the least of all kernels (%s); the aim is 500", slowest);
    if (worst > 0)
        bench_report("emit.worst_ratio", worst, "x", note);
}
