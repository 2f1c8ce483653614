/* The floating-point environment. A caller may have set another rounding mode, flush-to-zero or
 * denormals-are-zero (libraries built with -ffast-math do); each would change results. The whole environment is set, not MXCSR
 * alone, because some instructions are computed in long double. */
#ifndef PTXVM_ENVIRONMENT_H
#define PTXVM_ENVIRONMENT_H

#include <fenv.h>

static inline fenv_t ptxvm_environment_begin(void)
{
    fenv_t callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    return callers;
}

static inline void ptxvm_environment_end(const fenv_t *callers)
{
    fesetenv(callers);
}

/* The default environment until the end of the scope, and then the caller's again, with its exception flags.
 * Compute in functions of other files only: a compiler may move operations of the same function past this. */
#define PTXVM_DEFAULT_ENVIRONMENT()                                                                          \
    __attribute__((unused, cleanup(ptxvm_environment_end))) const fenv_t callers_environment_ =              \
        ptxvm_environment_begin()

#endif
