/* Tests of a GPU in processes of their own, on the tests' own GPU (doubles/gpu.c). */
#ifndef QDNN_TEST_GPU_PROCESS_H
#define QDNN_TEST_GPU_PROCESS_H

#include "support/process.h"

#define PTXVM_LIBCUDA QDNN_BINARY_DIR "/ptxvm/libcuda.so.1"
#define GPU_LIBCUDA   QDNN_BINARY_DIR "/tests/doubles/gpu/libcuda.so.1"
#define NO_LIBCUDA    "QDNN_LIBCUDA=libno_such_driver.so.1"

/* A program of build/tests, in a process that knows nothing but these settings. */
process_result gpu_process_run(const char *program, const char *settings, const char *filter);

/* The one case that the filter selects passes on the GPU, fails there with a bit flipped in either of two launches (0: in one
 * alone), and fails without a GPU. */
void gpu_process_check_damage(const char *program, const char *filter, int first, int second);

#endif
