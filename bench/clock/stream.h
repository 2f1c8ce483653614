/* Stream kernels, one element of 8 bytes per thread, as benchmarks of memory have them; and what the model of time makes of them. */
#ifndef BENCH_CLOCK_STREAM_H
#define BENCH_CLOCK_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/model/model.h"

typedef enum stream_kind {
    STREAM_INIT,
    STREAM_READ,
    STREAM_SCALE,
    STREAM_TRIAD3,
    STREAM_TRIAD4,
    STREAM_3POINT,
    STREAM_5POINT,
    STREAM_KINDS
} stream_kind;

const char *stream_name(stream_kind kind);
int stream_arrays(stream_kind kind); /* that it goes through */

/* Bytes per second of a long launch with so many blocks per SM: what two launches of different lengths differ in. */
bool stream_gbs(stream_kind kind, const board *on, int threads, int blocks_per_sm, double gbs[CLOCK_CORNERS],
                char *error, size_t size);

/* Microseconds of a launch over so many elements; `warm`: they are in L2, as far as they fit. */
bool stream_us(stream_kind kind, const board *on, uint64_t elements, int threads, bool warm,
               double us[CLOCK_CORNERS], char *error, size_t size);

void stream_forget(void); /* the code that was assembled */

#endif
