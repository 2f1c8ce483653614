/* Distributes work on many chunks over two threads. */
#ifndef QDNN_BENCH_SWEEP_H
#define QDNN_BENCH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sweep {
    const char *name; /* for the progress line and errors */
    uint32_t chunks;
    /* Each thread opens a worker, gives it chunks until none are left, and closes it. open() returns null on
     * failure; a step that returns false ends the sweep. close() may merge a worker's results into the job:
     * it is called by one thread at a time. */
    void *(*open)(void *job);
    bool (*step)(void *worker, uint32_t chunk);
    void (*close)(void *job, void *worker);
    void *job;
} sweep;

/* Returns false if something failed; stderr then has the reason. */
bool sweep_run(const sweep *s);

#endif
