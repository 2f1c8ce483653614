/* The limits of ptxvm.h's table: names, defaults, and values from the environment. */
#include "ptxvm/ptxvm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *what;
    uint64_t value, most;
} table[] = {
#define X(name, value, most, what) {"PTXVM_LIMIT_" #name, what, value, most},
    PTXVM_LIMIT_TABLE(X)
#undef X
};

const char *ptxvm_limit_name(ptxvm_limit limit)
{
    return (unsigned)limit < PTXVM_LIMITS ? table[limit].name : "";
}

const char *ptxvm_limit_what(ptxvm_limit limit)
{
    return (unsigned)limit < PTXVM_LIMITS ? table[limit].what : "";
}

uint64_t ptxvm_limit_default(ptxvm_limit limit)
{
    return (unsigned)limit < PTXVM_LIMITS ? table[limit].value : 0;
}

/* "4096", "0x1000", "64K", "1M", "2G", "1T". */
static bool parse_number(const char *text, uint64_t *value)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 0);
    if (end == text || errno || *text < '0' || *text > '9')
        return false;
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if ((*end && (!unit || end[1])) || n > UINT64_MAX >> shift)
        return false;
    *value = (uint64_t)n << shift;
    return true;
}

/* A value that is 0 is read from the variable, if that is set. */
static bool read_setting(const char *name, uint64_t most, uint64_t *value, char *why, size_t size)
{
    const char *text = *value ? NULL : getenv(name);
    uint64_t read = 0;
    if (!text || !*text)
        return true;
    if (!parse_number(text, &read) || read > most) {
        snprintf(why, size, "%s=%.40s is out of range: it is a number from 0 to %llu", name, text,
                 (unsigned long long)most);
        return false;
    }
    *value = read;
    return true;
}

bool ptxvm_config_read(ptxvm_config *config, char *why, size_t size)
{
    return read_setting("PTXVM_STEPS", UINT64_MAX, &config->step_limit, why, size) &&
           read_setting("PTXVM_MEMORY", UINT64_C(1) << 39, &config->memory_bytes, why, size) &&
           read_setting("PTXVM_HEAP", UINT64_C(1) << 39, &config->heap_bytes, why, size) &&
           ptxvm_limits_read(config->limits, why, size);
}

bool ptxvm_limits_read(uint64_t limits[PTXVM_LIMITS], char *why, size_t size)
{
    for (int i = 0; i < PTXVM_LIMITS; i++) {
        const char *text = limits[i] ? NULL : getenv(table[i].name);
        uint64_t value = limits[i] ? limits[i] : table[i].value;
        bool is_number = !text || !*text || parse_number(text, &value);
        if (!is_number || value == 0 || value > table[i].most) {
            snprintf(why, size, "%s=%.40s is out of range: it is a number from 1 to %llu (%s)", table[i].name,
                     text ? text : "(configured)", (unsigned long long)table[i].most, table[i].what);
            return false;
        }
        limits[i] = value;
    }
    return true;
}
