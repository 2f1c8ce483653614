/* A CUDA driver that has no GPU behind it, in many ways of being broken; tests/CMakeLists.txt builds each
 * from these definitions:
 *   FAKE_FIND     how functions are found: 0 exported names alone, 4 and 5 by cuGetProcAddress with so many
 *                 arguments
 *   FAKE_VERSION  what cuDriverGetVersion says
 *   FAKE_INIT     what cuInit returns
 *   FAKE_COUNT    devices
 *   FAKE_LACKS    a function that cannot be found */
#ifndef TEST_DOUBLES_LIBCUDA_H
#define TEST_DOUBLES_LIBCUDA_H

#include "driver/cuda/cuda.h"

#define EXPORTED __attribute__((visibility("default")))
/* A driver that gives out its functions by cuGetProcAddress exports none, so that a test sees only that way. */
#if FAKE_FIND
#define FOUND __attribute__((visibility("hidden")))
#else
#define FOUND EXPORTED
#endif

#define FUNCTION(name, suffix, since, params) FOUND CUresult name##suffix params;
#include "driver/cuda/cuda.def"
#undef FUNCTION

#endif
