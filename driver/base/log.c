/* The log: lines to a destination, and messages to a callback. */
#include "driver/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "driver/base/error.h"
#include "driver/base/process.h"
#include "driver/base/variables.h"

enum {
    NOT_READ = 1,
    ALL_BITS = QDNN_SEVERITY_ERROR_BIT | QDNN_SEVERITY_WARNING_BIT | QDNN_SEVERITY_INFO_BIT
};

_Atomic unsigned log_mask = NOT_READ;
_Thread_local const char *log_call = "qdnn";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
PROCESS_KEEPS_LOCK(lock);
static struct {
    bool read;
    unsigned destination_mask;
    FILE *destination;
    unsigned callback_mask;
    qdnnCallback_t callback;
    void *user;
} state; /* protected by the lock */
static _Thread_local bool in_callback;

/* ---- Which severities are logged ---- */

/* A wrong variable of the log itself cannot be logged. */
static void complain(const char *variable, const char *value, const char *what)
{
    char shown[256];
    fprintf(stderr, "qdnn: %s is '%s'%s\n", variable, escape_string(shown, sizeof shown, value), what);
}

/* Level 2 logs severities 1 and 2. */
static unsigned read_level(void)
{
    const char *text = getenv("QDNN_LOGLEVEL");
    if (!text || !*text)
        return 0;
    if (text[0] >= '0' && text[0] <= '3' && !text[1])
        return (2u << (text[0] - '0')) - 2;
    complain("QDNN_LOGLEVEL", text, "; it must be 0, 1, 2 or 3");
    return 0;
}

static FILE *open_destination(void)
{
    const char *text = getenv("QDNN_LOGDEST");
    if (!text || !*text || !strcmp(text, "stderr"))
        return stderr;
    if (!strcmp(text, "stdout"))
        return stdout;
    FILE *file = fopen(text, "a");
    if (!file)
        complain("QDNN_LOGDEST", text, ", which cannot be written");
    return file;
}

static unsigned publish_mask(void)
{
    unsigned mask = (state.read ? 0 : NOT_READ) | state.destination_mask | state.callback_mask;
    atomic_store_explicit(&log_mask, mask, memory_order_relaxed);
    return mask;
}

static unsigned open_locked(void)
{
    if (!state.read) {
        state.read = true;
        unsigned mask = read_level();
        state.destination = mask ? open_destination() : NULL;
        state.destination_mask = state.destination ? mask : 0;
    }
    return publish_mask();
}

unsigned log_open(void)
{
    pthread_mutex_lock(&lock);
    unsigned mask = open_locked();
    pthread_mutex_unlock(&lock);
    return mask;
}

void log_reset(void)
{
    pthread_mutex_lock(&lock);
    if (state.destination && state.destination != stderr && state.destination != stdout)
        fclose(state.destination);
    memset(&state, 0, sizeof state);
    publish_mask();
    pthread_mutex_unlock(&lock);
    qdnn_variables_forget();
}

qdnnStatus_t qdnnSetCallback(unsigned mask, void *userData, qdnnCallback_t callback)
{
    log_call = __func__;
    if (mask & ~(unsigned)ALL_BITS)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "mask is 0x%x; it must be made of QDNN_SEVERITY_*_BIT, 0x%x at most", mask,
                          ALL_BITS);
    bool some = mask && callback;
    pthread_mutex_lock(&lock);
    state.callback_mask = some ? mask : 0;
    state.callback = some ? callback : NULL;
    state.user = some ? userData : NULL;
    publish_mask();
    pthread_mutex_unlock(&lock);
    return QDNN_STATUS_SUCCESS;
}

/* ---- A line ---- */

static qdnnDebug_t debug_now(const char *function)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (qdnnDebug_t){.version = QDNN_VERSION,
                         .timeMicroseconds = (unsigned long long)now.tv_sec * 1000000 +
                                             (unsigned long long)now.tv_nsec / 1000,
                         .threadId = (unsigned long long)(uintptr_t)pthread_self(),
                         .function = function};
}

/* The stream's own lock keeps lines of several threads from mixing. */
static void write_line(FILE *to, qdnnSeverity_t severity, const qdnnDebug_t *debug, const char *message)
{
    static const char *const names[] = {"", "error", "warning", "info"};
    time_t seconds = (time_t)(debug->timeMicroseconds / 1000000);
    struct tm parts;
    char time_text[32];
    strftime(time_text, sizeof time_text, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &parts));
    fprintf(to, "qdnn %s %s.%06u thread %llx %s: %s\n", names[severity], time_text,
            (unsigned)(debug->timeMicroseconds % 1000000), debug->threadId, debug->function, message);
    fflush(to);
}

void log_write(qdnnSeverity_t severity, const char *format, ...)
{
    if (!log_on(severity))
        return;
    char raw[2048], message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    /* one line, whatever the file names and driver messages in it contain */
    escape_string(message, sizeof message, raw);
    const char *function = log_call;
    qdnnDebug_t debug = debug_now(function);
    pthread_mutex_lock(&lock);
    open_locked();
    if (state.destination_mask >> severity & 1)
        write_line(state.destination, severity, &debug, message);
    qdnnCallback_t callback = state.callback_mask >> severity & 1 ? state.callback : NULL;
    void *user = state.user;
    pthread_mutex_unlock(&lock);
    /* Outside the lock, so that the callback may call qdnn. */
    if (callback && !in_callback) {
        in_callback = true;
        callback(severity, user, &debug, message);
        in_callback = false;
        log_call = function; /* the callback may have called other functions */
    }
}

/* ---- A call ---- */

static int print_value(const log_value *v, char *text, size_t size)
{
    switch (v->kind) {
    case VALUE_SIGNED:
        return snprintf(text, size, "%lld", (long long)v->whole);
    case VALUE_UNSIGNED:
        return snprintf(text, size, "%llu", (unsigned long long)v->natural);
    case VALUE_REAL:
        return snprintf(text, size, "%g", v->real);
    case VALUE_TEXT:
        return snprintf(text, size, v->text ? "'%s'" : "null", v->text);
    case VALUE_POINTER:
        break;
    }
    return v->pointer ? snprintf(text, size, "%p", v->pointer) : snprintf(text, size, "null");
}

void log_arguments(const char *names, const log_value *values, int count)
{
    char text[1024];
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof text - 1; i++) {
        int length = (int)strcspn(names, ",");
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s ", i ? ", " : "", length, names);
        if (used < sizeof text)
            used += (size_t)print_value(&values[i], text + used, sizeof text - used);
        names += length + (names[length] ? 1 : 0);
        names += strspn(names, " ");
    }
    log_write(QDNN_SEVERITY_INFO, "called with %s", text);
}
