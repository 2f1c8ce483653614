/* Unknown environment variables. */
#include "driver/base/variables.h"

#include <stdatomic.h>
#include <string.h>

#include "driver/base/log.h"

extern char **environ;

static const char *const known[] = {
    /* the library */
    "QDNN_BUNDLE_DIR", "QDNN_CHECK_BUFFERS", "QDNN_CUBLAS", "QDNN_DEPENDENT_LAUNCH", "QDNN_DEVICE",
    "QDNN_DUMP_DIR", "QDNN_LIBCUDA", "QDNN_LOGDEST", "QDNN_LOGLEVEL", "QDNN_MATH", "QDNN_NVRTC",
    "QDNN_REQUIRE_GPU", "QDNN_TRACE",
    /* bindings, tools and tests */
    "QDNN_BENCH_BOARDS", "QDNN_FAIL", "QDNN_LIBRARY", "QDNN_MINILM_DIR", "QDNN_NVDISASM", "QDNN_SILICON_DIR",
    "QDNN_TEST_SUMMARY", "QDNN_UPDATE_GOLDEN", "QDNN_VECTORS_DIR"};
enum { KNOWN = sizeof known / sizeof *known };

static atomic_bool checked;

/* Letters that two names have in common at the start and at the end. */
static size_t likeness(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;
    size_t start = 0, end = 0;
    while (start < shorter && a[start] == b[start])
        start++;
    while (end < shorter - start && a[n - 1 - end] == b[m - 1 - end])
        end++;
    return start + end;
}

static void check(const char *name)
{
    const char *nearest = known[0];
    for (int i = 0; i < KNOWN; i++) {
        if (strcmp(known[i], name) == 0)
            return;
        if (likeness(known[i], name) > likeness(nearest, name))
            nearest = known[i];
    }
    log_write(QDNN_SEVERITY_WARNING,
              "the environment variable %s is set, and nothing reads it; did you mean %s?", name, nearest);
}

void qdnn_variables_check(void)
{
    if (atomic_exchange(&checked, true))
        return;
    for (char **entry = environ; *entry; entry++) {
        char name[64];
        const size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "QDNN_", 5) != 0 || length >= sizeof name)
            continue;
        memcpy(name, *entry, length);
        name[length] = 0;
        check(name);
    }
}

void qdnn_variables_forget(void)
{
    atomic_store(&checked, false);
}
