/* A folder whose files appear together, or not at all: they are written to a temporary folder first, and
 * moved at the end. */
#include "tools/ptxgen/tool.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void catch (int signal)
{
    caught = signal;
}

bool tool_interrupted(void)
{
    return caught != 0;
}

/* Those that others send, and that writing raises. */
static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
                              SIGALRM, SIGUSR1, SIGUSR2, SIGXFSZ, SIGXCPU};

static void set_handlers(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler}, before;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
            sigaction(signals[i], &action, NULL);
}

/* The length of the part of the path that exists. */
static size_t existing(const char *path)
{
    char part[4096];
    size_t length = strlen(path);
    struct stat info;
    snprintf(part, sizeof part, "%s", path);
    while (length > 0 && (length >= sizeof part || stat(part, &info) != 0)) {
        while (length > 0 && path[length - 1] != '/')
            length--;
        while (length > 0 && path[length - 1] == '/')
            length--;
        if (length < sizeof part)
            part[length] = 0;
    }
    return length;
}

/* Removes the folders that did not exist before, if they are empty. */
static void remove_folders(const staging *s)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", s->outdir);
    for (size_t length = strlen(path); length > s->existed && rmdir(path) == 0; path[length] = 0) {
        while (length > s->existed && path[length - 1] != '/')
            length--;
        while (length > s->existed && path[length - 1] == '/')
            length--;
    }
}

int staging_begin(staging *s, const char *outdir)
{
    *s = (staging){.outdir = outdir, .existed = existing(outdir)};
    if (snprintf(s->folder, sizeof s->folder, "%s/.ptxgen-%ld", outdir, (long)getpid()) >= 4000)
        return tool_fail("the path %.60s... is too long", outdir);
    set_handlers(catch);
    int status = tool_make_directory(outdir);
    if (status == TOOL_OK &&
        mkdir(s->folder, 0777) != 0) { /* it must be new: another's, or a link, is not used */
        status = tool_fail("cannot make the directory %s: %s", s->folder, strerror(errno));
        remove_folders(s);
        set_handlers(SIG_DFL);
    } else if (status != TOOL_OK) {
        staging_end(s, status);
    }
    return status;
}

/* Calls `each` for every file of the staging folder. */
static bool for_each(const staging *s, bool (*each)(const staging *s, const char *from, const char *name))
{
    DIR *folder = opendir(s->folder);
    struct dirent *entry;
    bool ok = folder != NULL;
    while (folder && (entry = readdir(folder)) != NULL) {
        char from[4400];
        snprintf(from, sizeof from, "%s/%s", s->folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ok = each(s, from, entry->d_name) && ok;
    }
    if (folder)
        closedir(folder);
    return ok;
}

static bool move(const staging *s, const char *from, const char *name)
{
    char to[4400];
    snprintf(to, sizeof to, "%.4000s/%s", s->outdir, name);
    if (rename(from, to) == 0)
        return true;
    tool_fail("cannot write %s: %s", to, strerror(errno));
    return false;
}

static bool move_kernel(const staging *s, const char *from, const char *name)
{
    return strcmp(name, "manifest.json") == 0 || move(s, from, name);
}

static bool discard(const staging *s, const char *from, const char *name)
{
    (void)s, (void)name;
    return unlink(from) == 0;
}

int staging_end(staging *s, int status)
{
    if (tool_interrupted())
        status = TOOL_FAILED;
    if (status == TOOL_OK && !(for_each(s, move_kernel) && for_each(s, move)))
        status = TOOL_FAILED;
    for_each(s, discard);
    rmdir(s->folder);
    if (status != TOOL_OK)
        remove_folders(s);
    set_handlers(SIG_DFL);
    if (tool_interrupted())
        raise(caught);
    return status;
}
