/* A CUDA driver whose functions succeed and do nothing, with one context: it shows what the library itself
 * costs and does. */
#ifndef QDNN_BENCH_IDLE_DRIVER_H
#define QDNN_BENCH_IDLE_DRIVER_H

#include "driver/cuda/open.h"

/* The functions needed to create, execute and destroy a plan; the others are null. */
extern const cuda_api idle_driver;

/* A device of that driver or a similar one, with compute capability 9.0. */
cuda_device idle_device(const cuda_api *api);

#endif
