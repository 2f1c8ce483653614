/* Logging: to a file, controlled by environment variables, and to the program through a callback.
 *
 *   QDNN_LOGLEVEL  0 nothing (default), 1 errors, 2 warnings too, 3 information too
 *   QDNN_LOGDEST   stderr (default), stdout, or the name of a file to append to
 *
 * Both are read once, at the first message. */
#ifndef QDNN_LOG_H
#define QDNN_LOG_H

#include <qdnn/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    QDNN_SEVERITY_ERROR = 1,   /* a call failed */
    QDNN_SEVERITY_WARNING = 2, /* a call succeeded, but not in the best way */
    QDNN_SEVERITY_INFO = 3     /* every call; what qdnn chose, and why */
} qdnnSeverity_t;

/* Severities as bits of a callback's mask. */
#define QDNN_SEVERITY_ERROR_BIT   (1u << 1)
#define QDNN_SEVERITY_WARNING_BIT (1u << 2)
#define QDNN_SEVERITY_INFO_BIT    (1u << 3)

/* Where a message comes from; valid while the callback runs. */
typedef struct {
    int version;                         /* of the library, as from qdnnGetVersion */
    unsigned long long timeMicroseconds; /* since the beginning of 1970 */
    unsigned long long threadId;         /* distinguishes the threads of a process */
    const char *function;                /* the public function that logged the message */
} qdnnDebug_t;

/* Receives one message, a single line without a newline at its end; control characters in it are written as
 * \xHH. It runs in the thread that logs, possibly in several threads at once. Calls of qdnn from inside the
 * callback do not invoke it again. */
typedef void (*qdnnCallback_t)(qdnnSeverity_t severity, void *userData, const qdnnDebug_t *debug,
                               const char *message);

/* Sets the callback of the process. It is independent of QDNN_LOGLEVEL and QDNN_LOGDEST.
 *   mask      the severities to report: QDNN_SEVERITY_ERROR_BIT | ...; 0 removes the callback
 *   userData  passed to the callback
 *   callback  null removes the callback
 * Returns QDNN_STATUS_SUCCESS, or _BAD_PARAM_OUT_OF_BOUND for a mask with other bits. Thread-safe; a message
 * that another thread is logging at the same time may still reach the previous callback. */
QDNN_API qdnnStatus_t qdnnSetCallback(unsigned mask, void *userData, qdnnCallback_t callback);

#ifdef __cplusplus
}
#endif
#endif
