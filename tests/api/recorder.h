/* A driver that computes nothing and watches the order of calls. Work that is queued on a stream stays pending until that stream, or the
 * context, is synchronised, or memory is freed, which waits for everything. `mistake` names the first call that comes too early: a module
 * unloaded while kernels of it are pending; memory of the library's own given to a stream while another stream still uses it. */
#ifndef QDNN_TEST_API_RECORDER_H
#define QDNN_TEST_API_RECORDER_H

#include "driver/cuda/open.h"

enum { RECORDED_STREAMS = 4, RECORDED_MAX = 4096 };

typedef struct recorder {
    int loads, unloads, launches, syncs; /* calls */
    int memory;                          /* allocations that are not freed */
    int used_own_memory;                 /* launches that were given memory of the library's own */
    bool is_own;                         /* memory that is allocated now is the library's own */
    void (*while_loading)(void);         /* null, or called once during the next load */
    char mistake[256];
} recorder;

/* Starts recording; there is one recorder. Streams are the numbers 0 to RECORDED_STREAMS - 1. */
recorder *recorder_begin(void);
cuda_device recorder_device(void);
CUstream recorder_stream(int number);
/* Copies and launches that are pending on a stream. */
int recorder_pending(int stream);

#endif
