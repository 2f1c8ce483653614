/* The log; include/qdnn/log.h is its public side. */
#ifndef QDNN_DRIVER_LOG_H
#define QDNN_DRIVER_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#include <qdnn/log.h>

#include "base/environment.h"
#include "driver/base/log_values.h"

/* Bit 1 << severity: messages of that severity are wanted. Bit 0: the environment has not been read yet. */
extern _Atomic unsigned log_mask;
unsigned log_open(void); /* reads the environment; returns the mask */

/* Whether messages of a severity are wanted: ask before work that is only for the log. Costs one relaxed
 * load. */
static inline bool log_on(qdnnSeverity_t severity)
{
    unsigned mask = atomic_load_explicit(&log_mask, memory_order_relaxed);
    return (mask & 1 ? log_open() : mask) >> severity & 1;
}

/* Logs one line, with the name of the public function that the thread is in. */
void log_write(qdnnSeverity_t severity, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A public function begins with CALL_BEGIN(): from then on errors and messages carry its name, and it computes
 * in the default floating-point environment. The call itself is logged as information. */
extern _Thread_local const char *log_call;
#define CALL_BEGIN()                                                                                         \
    DEFAULT_ENVIRONMENT();                                                                                   \
    do {                                                                                                     \
        log_call = __func__;                                                                                 \
        if (log_on(QDNN_SEVERITY_INFO))                                                                      \
            log_write(QDNN_SEVERITY_INFO, "called");                                                         \
    } while (0)

/* The same with the call's arguments: "called with handle 0x5581..., rank 2". */
#define CALL_BEGIN_WITH(...)                                                                                 \
    DEFAULT_ENVIRONMENT();                                                                                   \
    do {                                                                                                     \
        log_call = __func__;                                                                                 \
        if (log_on(QDNN_SEVERITY_INFO)) {                                                                    \
            const log_value values_[] = {LOG_EACH(__VA_ARGS__)};                                             \
            log_arguments(#__VA_ARGS__, values_, (int)(sizeof values_ / sizeof values_[0]));                 \
        }                                                                                                    \
    } while (0)
void log_arguments(const char *names, const log_value *values, int count);

/* For tests: removes callback and destination, and reads the environment again. */
void log_reset(void);

#endif
