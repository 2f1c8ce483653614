/* ptxvm for the time of a test: acting as one SM, with a seed and checks. */
#ifndef QDNN_TEST_PARITY_PTXVM_H
#define QDNN_TEST_PARITY_PTXVM_H

#include <qdnn/qdnn.h>

#ifdef QDNN_PTXVM
#define NEED_PTXVM
#else
#define NEED_PTXVM SKIP("this build has no ptxvm in it")
#endif

/* Starts ptxvm anew. Checks as PTXVM_CHECK, log as PTXVM_LOG. "all" includes `same`: our kernels store each byte
 * once, and a second thread that stores it too has taken another's work. Null, with a failure reported, where it does
 * not start; end it in any case. */
qdnnHandle_t ptxvm_begin(const char *sm, int seed, const char *checks, const char *log);
void ptxvm_end(qdnnHandle_t handle);

#endif
