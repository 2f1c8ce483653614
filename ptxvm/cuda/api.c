/* Entry and exit of every function: the lock, what a function requires, and faults requested by the
 * settings. */
#include "internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "trace.h"
#include "ptxvm/environment.h"

cuda_driver cuda;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static _Thread_local cuda_thread self;

cuda_thread *cuda_self(void)
{
    static _Atomic uint64_t threads;
    if (!self.id)
        self.id = atomic_fetch_add(&threads, 1) + 1;
    return &self;
}

void cuda_lock(void)
{
    pthread_mutex_lock(&lock);
}

void cuda_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void cuda_signal(void)
{
    pthread_cond_broadcast(&moved);
}

void cuda_pause(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&moved, &lock, &until);
}

static CUresult check_context(const cuda_thread *thread)
{
    if (!thread->depth || !thread->stack[thread->depth - 1].context)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext context = context_current();
    return context ? context->error : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult cuda_enter(int function, int needs, bool per_thread)
{
    cuda_thread *thread = cuda_self();
    /* A host function may not call the driver, because it could wait for itself. Functions that require
     * nothing only read constants. */
    if (thread->in_callback)
        return needs ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
    cuda_lock();
    settings_begin();
    thread->per_thread = per_thread;
    CUresult result = faults_next(function);
    if (!result && (needs & NEED_INIT) && !cuda.initialised)
        result = CUDA_ERROR_NOT_INITIALIZED;
    if (!result && (needs & NEED_CONTEXT_))
        result = check_context(thread);
    if (!result && (needs & NEED_NO_CAPTURE))
        result = capture_check_unsafe();
    return result;
}

CUresult cuda_leave(CUresult result)
{
    if (!self.in_callback)
        cuda_unlock();
    return result;
}

static CUresult not_supported(int function)
{
    return cuda_log(CUDA_ERROR_NOT_SUPPORTED, "%s is not supported by ptxvm", cuda_function_names[function]);
}

#define BODY(name, number, needs, per_thread, call, args)                                                    \
    {                                                                                                        \
        PTXVM_DEFAULT_ENVIRONMENT();                                                                         \
        CUresult result = cuda_enter(number, needs, per_thread);                                             \
        result = result ? result : call;                                                                     \
        TRACE_CALL(name, result, args);                                                                      \
        return cuda_leave(result);                                                                           \
    }
#define F(base, v, since, needs, params, args)                                                               \
    CUresult ptxvm_##base##v params BODY(#base #v, FN_##base##v, needs, false, do_##base##v args, args)
#define S(base, v, pt, since, needs, params, args)                                                           \
    F(base, v, since, needs, params, args)                                                                   \
    CUresult ptxvm_##base##v##_##pt params BODY(#base #v "_" #pt, FN_##base##v, needs, true,                 \
                                                do_##base##v args, args)
#define U(base, v, since)                                                                                    \
    CUresult ptxvm_##base##v(void) BODY(#base #v, FN_##base##v, INIT, false, not_supported(FN_##base##v), ())
#define UP(base, v, pt, since)                                                                               \
    U(base, v, since)                                                                                        \
    CUresult ptxvm_##base##v##_##pt(void)                                                                    \
    {                                                                                                        \
        return ptxvm_##base##v();                                                                            \
    }
#include "functions.def"
#undef BODY
#undef F
#undef S
#undef U
#undef UP

const char *const cuda_function_names[FN_COUNT] = {
#define F(base, v, since, needs, params, args)     #base #v,
#define S(base, v, pt, since, needs, params, args) #base #v,
#define U(base, v, since)                          #base #v,
#define UP(base, v, pt, since)                     #base #v,
#include "functions.def"
#undef F
#undef S
#undef U
#undef UP
};
