/* Work on many chunks, shared by two threads. */
#ifndef QDNN_BENCH_SWEEP_H
#define QDNN_BENCH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sweep {
    const char *name; /* in the progress line and in errors */
    uint32_t chunks;
    /* Each thread opens a worker, hands it chunks until none is left, and closes it. A worker that cannot be
     * opened is null; a step that returns false ends the sweep. close() may merge a worker's results into the
     * job: one thread at a time calls it. */
    void *(*open)(void *job);
    bool (*step)(void *worker, uint32_t chunk);
    void (*close)(void *job, void *worker);
    void *job;
} sweep;

/* False: something failed; it is named on stderr. */
bool sweep_run(const sweep *s);

#endif
