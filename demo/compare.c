/* Compares the device's results with host_ref byte by byte, and with the original. Threads take bands of the
 * tensor one after the other; sums are added up band by band, so that their bits do not depend on the
 * threads. */
#include "demo/demo.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { BAND = 1 << 16, THREADS_MAX = 64 };

typedef struct work {
    const quantized *q;
    int64_t bands;
    comparison *results; /* one per band */
    atomic_llong next;
    atomic_bool out_of_memory;
} work;

/* The results of host_ref for a band. */
typedef struct expected {
    float y[BAND], scale[BAND];
    uint8_t codes[BAND / 2];
} expected;

static int64_t count_differing(const void *actual, const void *wanted, size_t bytes)
{
    const uint8_t *a = actual, *b = wanted;
    int64_t differing = 0;
    for (size_t i = 0; i < bytes; i++)
        differing += a[i] != b[i];
    return differing;
}

static void measure(const float *x, const float *y, int64_t n, comparison *out)
{
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)y[i] - (double)x[i]);
        int bin = (int)fmin(error / (double)BIN_WIDTH, BINS - 1);
        out->squared_error += error * error;
        out->squared += (double)x[i] * (double)x[i];
        out->largest_error = fmax(out->largest_error, error);
        out->bins[bin]++;
    }
}

/* A band begins at a group, and at a whole byte of codes. */
static void compare_band(const quantized *q, int64_t band, expected *e, comparison *out)
{
    int64_t start = band * BAND, n = q->n - start < BAND ? q->n - start : BAND;
    int64_t first_group = start / q->spec.group_size;
    int64_t groups = ref_group_count(&q->spec, 1, n);
    ref_arrays arrays = {.codes = e->codes, .scale = e->scale};
    ref_scale(&q->spec, 1, n, q->x + start, &arrays);
    ref_quantize(&q->spec, 1, n, q->x + start, &arrays);
    ref_dequantize(&q->spec, 1, n, &arrays, e->y);
    *out = (comparison){0};
    out->scales = count_differing(q->scale + first_group, e->scale, (size_t)groups * sizeof(float));
    out->codes = count_differing(q->codes + start / 2, e->codes, (size_t)ref_sizes_of(&q->spec, 1, n).codes);
    out->values = count_differing(q->y + start, e->y, (size_t)n * sizeof(float));
    measure(q->x + start, q->y + start, n, out);
}

static void *run(void *argument)
{
    work *w = argument;
    expected *e = malloc(sizeof *e);
    if (!e) {
        atomic_store(&w->out_of_memory, true);
        return NULL;
    }
    for (int64_t band; (band = atomic_fetch_add(&w->next, 1)) < w->bands;)
        compare_band(w->q, band, e, &w->results[band]);
    free(e);
    return NULL;
}

/* This thread works too, so it does no harm if a thread cannot be created. */
static void run_in_threads(work *w)
{
    pthread_t threads[THREADS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = processors > THREADS_MAX ? THREADS_MAX : (int)processors - 1, started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, run, w) == 0)
        started++;
    run(w);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static void add(comparison *sum, const comparison *part)
{
    sum->scales += part->scales;
    sum->codes += part->codes;
    sum->values += part->values;
    sum->squared_error += part->squared_error;
    sum->squared += part->squared;
    sum->largest_error = fmax(sum->largest_error, part->largest_error);
    for (int i = 0; i < BINS; i++)
        sum->bins[i] += part->bins[i];
}

bool compare(const quantized *q, comparison *out)
{
    work w = {.q = q, .bands = (q->n + BAND - 1) / BAND};
    *out = (comparison){0};
    w.results = calloc((size_t)w.bands, sizeof *w.results);
    if (!w.results)
        return false;
    run_in_threads(&w);
    for (int64_t i = 0; i < w.bands; i++)
        add(out, &w.results[i]);
    free(w.results);
    return !atomic_load(&w.out_of_memory);
}
