/* The floating-point environment. A caller may have set another rounding mode, flush-to-zero or
 * denormals-are-zero (libraries built with -ffast-math do); each would change results. */
#ifndef QDNN_HOST_REF_ENVIRONMENT_H
#define QDNN_HOST_REF_ENVIRONMENT_H

/* On x86-64 MXCSR is all that f32 and f64 depend on, and takes a tenth of the time of the whole environment:
 * these calls also surround conversions of single numbers. */
#ifdef __x86_64__
#include <xmmintrin.h>
typedef unsigned hr_environment;
static inline hr_environment hr_environment_begin(void)
{
    enum { DEFAULT_MXCSR = 0x1F80 };
    const unsigned callers = _mm_getcsr();
    _mm_setcsr(DEFAULT_MXCSR);
    return callers;
}

static inline void hr_environment_end(const hr_environment *callers)
{
    _mm_setcsr(*callers);
}
#else
#include <fenv.h>
typedef fenv_t hr_environment;
static inline hr_environment hr_environment_begin(void)
{
    fenv_t callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    return callers;
}

static inline void hr_environment_end(const hr_environment *callers)
{
    fesetenv(callers);
}
#endif

/* The default environment until the end of the scope, and then the caller's again, with its exception flags.
 * Compute in functions of other files only: a compiler may move operations of the same function past this. */
#define HR_DEFAULT_ENVIRONMENT()                                                                             \
    __attribute__((unused, cleanup(hr_environment_end))) const hr_environment callers_environment_ =         \
        hr_environment_begin()

#endif
