/* A language model from a GGUF file: examples/chat/chat.h has the list of files. */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"

#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t stop;

/* The first Ctrl-C ends the answer, another one before that has happened the program. */
static void interrupt(int number)
{
    if (stop) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stop = 1;
}

static void catch_interrupt(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupt; /* without SA_RESTART: reading a line ends, too */
    sigaction(SIGINT, &action, NULL);
}

static qdnnFile_t open_file(const char *path)
{
    qdnnFile_t file;
    char why[1024];
    if (qdnnOpenFile(path, &file)) {
        qdnnGetLastFileErrorString(why, sizeof why);
        fail("%s", why);
    }
    return file;
}

static void describe(qdnnHandle_t handle, const model *m, const engine *e, const char *path)
{
    qdnnDeviceInfo_t info = {.size = sizeof info};
    ok(qdnnGetDeviceInfo(handle, &info));
    fprintf(stderr, "%s: %s, %lld layers, %.0f MB; cache of %lld tokens, %.0f MB; on %s (%s)\n", path,
            m->s.family->name, (long long)m->s.layers, (double)m->bytes / 1e6, (long long)e->context,
            (double)e->cache.bytes / 1e6, info.name, info.target);
    if (e->bodies[0].exact_attention)
        fprintf(stderr, "attention is in mode exact: there is no kernel for tensor cores with these types\n");
}

int main(int argc, char **argv)
{
    const options o = options_read(argc, argv);
    const char *path = find_model(o.model);
    qdnnHandle_t handle;
    qdnnFile_t file = open_file(path);
    ok(qdnnCreateOn(&handle, o.device));
    model *m = model_load(handle, file, o.context);
    engine *e = engine_open(handle, m, &o, &stop);
    if (!o.quiet)
        describe(handle, m, e, path);
    catch_interrupt();
    talk(e, file, &o);
    if (e->digest)
        digest_close(e->digest);
    const bool interrupted = stop != 0;
    engine_close(e);
    model_free(handle, m);
    ok(qdnnDestroy(handle));
    qdnnCloseFile(file);
    return interrupted ? 130 : 0;
}
