/* Environment variables PTXVM_... that nothing reads: they are probably misspelt. */
#include "internal.h"

#include <string.h>

extern char **environ;

static const char *const known[] = {
    "PTXVM_CHECK", "PTXVM_COUNTERS", "PTXVM_COUNTERS_BY", "PTXVM_DEVICES", "PTXVM_DRIVER_VERSION",
    "PTXVM_FAULT", "PTXVM_GPU",      "PTXVM_HEAP",        "PTXVM_LANES",   "PTXVM_LIBZSTD",
    "PTXVM_LOG",   "PTXVM_MEMORY",   "PTXVM_NEWEST_ISA",  "PTXVM_SEED",    "PTXVM_SM",
    "PTXVM_STEPS", "PTXVM_THREADS",  "PTXVM_WAIT"};
enum { KNOWN = sizeof known / sizeof *known };

/* The known names, then those of the limits; null past the last. */
static const char *name_at(int i)
{
    return i < KNOWN                  ? known[i]
           : i < KNOWN + PTXVM_LIMITS ? ptxvm_limit_name((ptxvm_limit)(i - KNOWN))
                                      : NULL;
}

/* Letters in common at the start and at the end. */
static size_t likeness(const char *a, const char *b, size_t b_length)
{
    const size_t a_length = strlen(a), shorter = a_length < b_length ? a_length : b_length;
    size_t start = 0, end = 0;
    for (; start < shorter && a[start] == b[start]; start++)
        ;
    for (; end < shorter - start && a[a_length - 1 - end] == b[b_length - 1 - end]; end++)
        ;
    return start + end;
}

void cuda_variables_check(void)
{
    for (char **entry = environ; *entry; entry++) {
        const size_t length = strcspn(*entry, "=");
        const char *nearest = known[0];
        bool found = strncmp(*entry, "PTXVM_", 6) != 0;
        for (int i = 0; !found && name_at(i); i++) {
            found = strlen(name_at(i)) == length && strncmp(name_at(i), *entry, length) == 0;
            if (likeness(name_at(i), *entry, length) > likeness(nearest, *entry, length))
                nearest = name_at(i);
        }
        if (!found)
            cuda_log(CUDA_SUCCESS,
                     "the environment variable %.*s is set, and nothing reads it; did you mean %s?",
                     (int)length, *entry, nearest);
    }
}
