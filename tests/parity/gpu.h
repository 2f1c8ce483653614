/* The GPU that tests named OnGpu run on. */
#ifndef QDNN_TEST_PARITY_GPU_H
#define QDNN_TEST_PARITY_GPU_H

#include <qdnn/qdnn.h>

/* Whether QDNN_REQUIRE_GPU says that there has to be one. */
bool gpu_required(void);

/* A handle on the GPU, which it names on stdout, or null with the reason. A QDNN_DEVICE that names ptxvm says that no GPU
 * is wanted. Release it with gpu_end. */
qdnnHandle_t gpu_begin(char *reason, size_t size);
void gpu_end(qdnnHandle_t handle);

#endif
