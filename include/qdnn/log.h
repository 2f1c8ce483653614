/* The log: messages about what qdnn does, written to a file that environment variables name, and passed to a callback of
 * the program.
 *
 *   QDNN_LOGLEVEL  0 nothing (default), 1 errors, 2 warnings too, 3 information too
 *   QDNN_LOGDEST   stderr (default), stdout, or the name of a file, to which lines are appended
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
    QDNN_SEVERITY_WARNING = 2, /* a call succeeded, but probably not as intended */
    QDNN_SEVERITY_INFO = 3     /* every call; what was chosen, and why */
} qdnnSeverity_t;

/* Severities as the mask of a callback. */
#define QDNN_SEVERITY_ERROR_BIT   (1u << 1)
#define QDNN_SEVERITY_WARNING_BIT (1u << 2)
#define QDNN_SEVERITY_INFO_BIT    (1u << 3)

/* Where a message comes from; valid while the callback runs. */
typedef struct {
    int version;                         /* of the library, as qdnnGetVersion gives it */
    unsigned long long timeMicroseconds; /* since the beginning of 1970 */
    unsigned long long threadId;         /* the same number for messages of the same thread */
    const char *function;                /* of this interface, in which it happened */
} qdnnDebug_t;

/* Receives one message, a single line without a newline at its end; control characters in it are written as
 * \xHH. It runs in the thread that the message comes from, possibly
 * in several threads at once. Calls of qdnn inside the callback cause no further messages to it. */
typedef void (*qdnnCallback_t)(qdnnSeverity_t severity, void *userData, const qdnnDebug_t *debug,
                               const char *message);

/* Sets the one callback of the process; QDNN_LOGLEVEL and QDNN_LOGDEST do not affect it.
 *   mask      the severities that it wants: QDNN_SEVERITY_ERROR_BIT | ...; 0 removes the callback
 *   userData  passed to it unchanged
 *   callback  null removes the one that was set
 * Returns QDNN_STATUS_SUCCESS, or _BAD_PARAM_OUT_OF_BOUND for a mask with other bits. Any thread; a message
 * from another thread may still reach the former callback at the same time. */
QDNN_API qdnnStatus_t qdnnSetCallback(unsigned mask, void *userData, qdnnCallback_t callback);

#ifdef __cplusplus
}
#endif
#endif
