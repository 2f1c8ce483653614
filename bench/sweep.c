#include "bench/sweep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "bench/bench.h"

enum { WORKERS = 2 };

typedef struct state {
    const sweep *sweep;
    atomic_uint next; /* the next chunk */
    atomic_bool failed;
    double start;
    pthread_mutex_t closing;
} state;

static void show_progress(const state *s, uint32_t chunk)
{
    const double per_chunk = chunk ? (bench_seconds() - s->start) / chunk : 0;
    bench_progress("%s: %u of %u, about %.0f minutes left", s->sweep->name, chunk, s->sweep->chunks,
                   per_chunk * (s->sweep->chunks - chunk) / 60);
}

static void *work(void *argument)
{
    state *s = argument;
    const sweep *w = s->sweep;
    void *worker = w->open(w->job);
    bool ok = worker != NULL;
    for (uint32_t chunk; ok && !s->failed && (chunk = atomic_fetch_add(&s->next, 1)) < w->chunks;) {
        show_progress(s, chunk);
        ok = w->step(worker, chunk);
    }
    if (!ok)
        s->failed = true;
    pthread_mutex_lock(&s->closing);
    if (worker)
        w->close(w->job, worker);
    pthread_mutex_unlock(&s->closing);
    return NULL;
}

bool sweep_run(const sweep *s)
{
    state shared = {.sweep = s, .start = bench_seconds(), .closing = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[WORKERS];
    int started = 0;
    while (started < WORKERS && pthread_create(&threads[started], NULL, work, &shared) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    bool ok = started > 0 && !shared.failed;
    if (!ok)
        fprintf(stderr, "bench: %s failed\n", s->name);
    return ok;
}
