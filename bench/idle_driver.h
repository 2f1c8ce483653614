/* A CUDA driver whose functions succeed and do nothing, in one context: what the library itself costs and does can be seen
 * on it. */
#ifndef QDNN_BENCH_IDLE_DRIVER_H
#define QDNN_BENCH_IDLE_DRIVER_H

#include "driver/cuda/open.h"

/* What a plan is made, executed and destroyed with; the rest is null. */
extern const cuda_api idle_driver;

/* A device of that driver, or of one like it, with compute capability 9.0. */
cuda_device idle_device(const cuda_api *api);

#endif
