/* The names of the CUDA driver: compiled only into libcuda.so.1. */
#include "internal.h"

#include <unistd.h>

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

static pid_t loaded_by;

__attribute__((constructor)) static void load(void)
{
    loaded_by = getpid();
}

/* Frees everything when a program closes the library; not in a child of fork, where a lock may be held by a
 * thread that exists only in the parent. */
__attribute__((destructor)) static void unload(void)
{
    if (getpid() == loaded_by)
        ptxvm_cuda_shutdown();
}
