/* The log: include/qdnn/log.h says what a user sees of it. */
#ifndef QDNN_DRIVER_LOG_H
#define QDNN_DRIVER_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#include <qdnn/log.h>

/* Bit 1 << severity: somebody listens. Bit 0: the environment has not been read yet. */
extern _Atomic unsigned log_mask;
unsigned log_open(void); /* reads the environment; the mask */

/* Whether somebody listens: ask before work that is for the log alone. One relaxed load where nobody does. */
static inline bool log_on(qdnnSeverity_t severity)
{
    unsigned mask = atomic_load_explicit(&log_mask, memory_order_relaxed);
    return (mask & 1 ? log_open() : mask) >> severity & 1;
}

/* Writes one line to whoever listens; function is __func__. */
void log_write(qdnnSeverity_t severity, const char *function, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For tests: no callback, no destination, and the environment is read anew. */
void log_reset(void);

#endif
