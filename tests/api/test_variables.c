/* Environment variables that nothing reads are logged once, with the name that was probably meant. */
#include <stdlib.h>
#include <string.h>

#include "driver/base/log.h"
#include "scene.h"
#include "support/environment.h"

typedef struct heard {
    int count;
    char text[4][200];
} heard;

static void hear(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    heard *h = user;
    (void)debug;
    if (severity == QDNN_SEVERITY_WARNING && strstr(message, "nothing reads it") && h->count < 4)
        snprintf(h->text[h->count++], sizeof h->text[0], "%s", message);
}

static void create_twice(void)
{
    for (int i = 0; i < 2; i++) {
        qdnnHandle_t handle = NULL;
        OK(qdnnCreateOn(&handle, "vm"));
        OK(qdnnDestroy(handle));
    }
}

static const struct {
    const char *name, *setting, *sentence;
} unknown[] = {
    {"typo", "QDNN_LOG_LEVEL=3",
     "the environment variable QDNN_LOG_LEVEL is set, and nothing reads it; did you mean QDNN_LOGLEVEL?"},
    {"longer", "QDNN_DEVICES=vm",
     "the environment variable QDNN_DEVICES is set, and nothing reads it; did you mean QDNN_DEVICE?"},
};

TEST_ROWS(ApiVariables, UnknownOnesAreLoggedOnce, unknown)
{
    NEED_PTXVM;
    heard h = {0};
    vm_begin(unknown[index].setting);
    log_reset();
    OK(qdnnSetCallback(QDNN_SEVERITY_WARNING_BIT, &h, hear));
    create_twice();
    CHECK_EQ_I64(h.count, 1);
    CHECK_EQ_STR(h.text[0], unknown[index].sentence);
    log_reset();
    vm_end();
}

TEST_CASE(ApiVariables, KnownOnesAreNot)
{
    NEED_PTXVM;
    heard h = {0};
    vm_begin("QDNN_CHECK_BUFFERS=0 QDNN_DUMP_DIR= QDNN_SILICON_DIR=none");
    log_reset();
    OK(qdnnSetCallback(QDNN_SEVERITY_WARNING_BIT, &h, hear));
    create_twice();
    CHECK_EQ_I64(h.count, 0);
    log_reset();
    vm_end();
}
