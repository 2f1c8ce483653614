/* The names of the CUDA driver: compiled only into libcuda.so.1. */
#include "internal.h"

#define EXPORT __attribute__((visibility("default")))

#define F(base, v, since, needs, params, args)                                                               \
    EXPORT CUresult base##v params;                                                                          \
    CUresult base##v params                                                                                  \
    {                                                                                                        \
        return ptxvm_##base##v args;                                                                         \
    }
#define S(base, v, pt, since, needs, params, args)                                                           \
    F(base, v, since, needs, params, args)                                                                   \
    EXPORT CUresult base##v##_##pt params;                                                                   \
    CUresult base##v##_##pt params                                                                           \
    {                                                                                                        \
        return ptxvm_##base##v##_##pt args;                                                                  \
    }
#define U(base, v, since)                                                                                    \
    EXPORT CUresult base##v(void);                                                                           \
    CUresult base##v(void)                                                                                   \
    {                                                                                                        \
        return ptxvm_##base##v();                                                                            \
    }
#define UP(base, v, pt, since)                                                                               \
    U(base, v, since)                                                                                        \
    EXPORT CUresult base##v##_##pt(void);                                                                    \
    CUresult base##v##_##pt(void)                                                                            \
    {                                                                                                        \
        return ptxvm_##base##v##_##pt();                                                                     \
    }
#include "functions.def"

EXPORT int ptxvmGetVersion(void);
int ptxvmGetVersion(void)
{
    return PTXVM_VERSION;
}

/* Frees everything when a program closes the library. */
__attribute__((destructor)) static void unload(void)
{
    ptxvm_cuda_shutdown();
}
