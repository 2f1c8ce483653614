/* Settings: those from ptxvm_cuda_configure, and the rest from the environment. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static ptxvm_cuda_settings configured;
static bool begun; /* the environment has been read */
#define TEXTS 7
static char *texts[TEXTS]; /* copies of its texts, in the order of text_field */

static const char **text_field(ptxvm_cuda_settings *s, int i)
{
    const char **fields[] = {&s->sm, &s->check, &s->counters, &s->counters_by, &s->log, &s->fault, &s->gpu};
    return fields[i];
}

void settings_clear(void)
{
    for (int i = 0; i < TEXTS; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
    configured = (ptxvm_cuda_settings){0};
    begun = false;
}

void settings_begin(void)
{
    ptxvm_cuda_settings unused;
    if (!begun)
        settings_read(&unused);
}

bool ptxvm_cuda_configure(const ptxvm_cuda_settings *settings)
{
    cuda_lock();
    bool ok = !cuda.initialised;
    if (ok) {
        settings_clear();
        configured = settings ? *settings : (ptxvm_cuda_settings){0};
        for (int i = 0; i < TEXTS; i++) {
            const char **field = text_field(&configured, i);
            texts[i] = *field ? strdup(*field) : NULL;
            ok &= !*field || texts[i];
            *field = texts[i];
        }
        ptxvm_cuda_settings all;
        faults_forget();
        ok = ok && settings_read(&all) && faults_read();
    }
    cuda_unlock();
    return ok;
}

/* A number with an optional suffix K, M, G or T. */
static bool parse_number(const char *text, uint64_t *value)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 0);
    if (end == text || errno || *text == '-')
        return false;
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if ((*end && (!unit || end[1])) || n << shift >> shift != n)
        return false;
    *value = n << shift;
    return true;
}

static bool number_from(const char *variable, uint64_t max, uint64_t *value)
{
    const char *text = getenv(variable);
    if (*value || !text || !*text)
        return true;
    uint64_t n;
    if (!parse_number(text, &n) || n > max) {
        cuda_log(CUDA_ERROR_INVALID_VALUE, "%s=%s is not a number in range", variable, text);
        return false;
    }
    *value = n;
    return true;
}

static bool int_from(const char *variable, int *value)
{
    uint64_t n = *value > 0 ? (uint64_t)*value : 0;
    bool ok = *value >= 0 && number_from(variable, INT32_MAX, &n);
    *value = (int)n;
    return ok;
}

const char *settings_fault(void)
{
    return configured.fault ? configured.fault : getenv("PTXVM_FAULT");
}

bool settings_read(ptxvm_cuda_settings *s)
{
    static const char *const variables[] = {"PTXVM_SM",  "PTXVM_CHECK", "PTXVM_COUNTERS", "PTXVM_COUNTERS_BY",
                                            "PTXVM_LOG", "PTXVM_FAULT", "PTXVM_GPU"};
    *s = configured;
    begun = true;
    for (int i = 0; i < TEXTS; i++) {
        const char **field = text_field(s, i), *text = getenv(variables[i]);
        if (!*field && text && *text)
            *field = text;
    }
    bool ok = cuda_log_open(s->log);
    if (!ok)
        cuda_log(CUDA_ERROR_INVALID_VALUE, "PTXVM_LOG=%s cannot be written", s->log);
    ok &= int_from("PTXVM_DEVICES", &s->devices);
    ok &= int_from("PTXVM_DRIVER_VERSION", &s->driver_version);
    ok &= int_from("PTXVM_THREADS", &s->threads);
    ok &= int_from("PTXVM_WAIT", &s->wait_seconds);
    ok &= number_from("PTXVM_MEMORY", UINT64_C(1) << 39, &s->memory_bytes);
    ok &= number_from("PTXVM_SEED", UINT64_MAX, &s->seed);
    ok &= number_from("PTXVM_STEPS", UINT64_MAX, &s->steps);
    char why[256];
    memset(cuda.limits, 0, sizeof cuda.limits);
    if (!ptxvm_limits_read(cuda.limits, why, sizeof why)) { /* each device reads them itself */
        cuda_log(CUDA_ERROR_INVALID_VALUE, "%s", why);
        ok = false;
    }
    if (s->devices > CUDA_MAX_DEVICES) {
        cuda_log(CUDA_ERROR_INVALID_VALUE, "%d devices: at most %d are supported", s->devices,
                 CUDA_MAX_DEVICES);
        ok = false;
    }
    return ok;
}
