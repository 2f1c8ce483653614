/* Counts how often the library calls each function of the driver. */
#ifndef QDNN_TEST_API_CALLS_H
#define QDNN_TEST_API_CALLS_H

#include <stdbool.h>

enum {
#define FUNCTION(name, suffix, since, params) CALL_##name,
#include "driver/cuda/cuda.def"
#undef FUNCTION
    CALL_COUNT
};

/* The functions' symbols, as PTXVM_FAULT takes them. */
extern const char *const call_names[CALL_COUNT];

/* Opens the driver of a device ("vm", "cuda") and puts a counter before each of its functions, until
 * cuda_close_all. False: it cannot be opened. */
bool calls_watch(const char *device);
int calls_of(int call);
int calls_total(void);
void calls_reset(void);

#endif
