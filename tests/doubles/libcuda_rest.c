/* Functions without a behaviour of their own: they succeed, unless libcuda.c has a better one. */
#include "doubles/libcuda.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FUNCTION(name, suffix, since, params)                                                                \
    __attribute__((weak)) CUresult name##suffix params                                                       \
    {                                                                                                        \
        return 0;                                                                                            \
    }
#include "driver/cuda/cuda.def"
#undef FUNCTION
