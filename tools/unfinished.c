/* Files and folders that exist under a temporary name until they are complete. */
#include "tools/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREATED_MAX = 256, NAMES_MAX = 100 };

/* What has been created, in order; a handler reads only entries below the count. */
static char *created[CREATED_MAX];
static volatile sig_atomic_t n_created;

/* ---- signals ---- */

/* While a file is being created it is not yet known whose it is: a signal waits until its name is in the
 * list. */
static volatile sig_atomic_t is_creating, waiting;

static bool is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
           number == SIGTRAP || number == SIGSYS || number == SIGABRT;
}

/* Only unlink and rmdir: a handler may not call much else. Files come after the folder they are in. */
static void remove_created(void)
{
    for (int i = n_created; i-- > 0;)
        if (unlink(created[i]) != 0)
            rmdir(created[i]);
}

static void end(int number)
{
    if (is_creating && !is_fault(number)) {
        waiting = number;
        return;
    }
    remove_created();
    signal(number, SIG_DFL);
    raise(number); /* delivered when the handler returns */
}

/* Every signal whose action is the default one, except those whose default is not to end the program. What is
 * ignored (nohup) or handled stays so. */
static void install_handlers(void)
{
    static const int harmless[] = {SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP,  SIGTTIN,
                                   SIGTTOU, SIGURG,  SIGKILL, SIGWINCH, 0};
    static bool installed;
    struct sigaction action = {.sa_handler = end, .sa_flags = SA_RESTART}, before;
    sigfillset(&action.sa_mask);
    for (int number = 1; number <= SIGRTMAX && !installed; number++) {
        const int *h = harmless;
        while (*h && *h != number)
            h++;
        if (!*h && sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(number, &action, NULL);
    }
    installed = true;
}

/* ---- creating ---- */

/* Adds the name first, since that needs memory, and counts it when the file exists. */
bool unfinished_create(const char *name, int *file)
{
    if (n_created == CREATED_MAX) {
        errno = EMFILE;
        return false;
    }
    char *copy = strdup(name);
    if (!copy)
        return false;
    install_handlers();
    free(created[n_created]);
    created[n_created] = copy;
    is_creating = 1;
    int made =
        file ? open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666) : mkdir(name, 0777);
    int problem = errno;
    if (made >= 0)
        n_created++;
    is_creating = 0;
    if (waiting)
        raise(waiting);
    if (made >= 0 && file)
        *file = made;
    errno = problem;
    return made >= 0;
}

bool unfinished_beside(const char *path, char name[UNFINISHED_PATH], int *file)
{
    int length = (int)strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    for (int i = 0; i < NAMES_MAX; i++) {
        int n = snprintf(name, UNFINISHED_PATH, "%.*s.tmp-%ld", length, path, (long)getpid());
        if (n > 0 && n < UNFINISHED_PATH - 8 && i > 0)
            snprintf(name + n, (size_t)(UNFINISHED_PATH - n), "-%d", i);
        if (n < 0 || n >= UNFINISHED_PATH - 8) {
            errno = ENAMETOOLONG;
            return false;
        }
        if (unfinished_create(name, file))
            return true;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

/* ---- writing ---- */

bool unfinished_write(int file, const void *data, uint64_t bytes, uint64_t offset)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pwrite(file, (const char *)data + done, (size_t)(bytes - done), (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = ENOSPC;
        if (n <= 0)
            return false;
        done += (uint64_t)n;
    }
    return true;
}

bool unfinished_reserve(int file, uint64_t bytes)
{
    int problem = EINTR;
    if (bytes > INT64_MAX) {
        errno = EFBIG;
        return false;
    }
    while (problem == EINTR && bytes > 0)
        problem = posix_fallocate(file, 0, (off_t)bytes);
    /* a file system that cannot reserve space: only the length is set */
    if (problem == EOPNOTSUPP || problem == EINVAL || problem == ENOSYS || bytes == 0)
        return ftruncate(file, (off_t)bytes) == 0;
    errno = problem;
    return problem == 0;
}

static bool sync_one(int file)
{
    int status;
    while ((status = fsync(file)) != 0 && errno == EINTR)
        continue;
    return status == 0;
}

bool unfinished_sync(int file)
{
    bool ok = sync_one(file);
    if (ok) /* the cached pages are dropped, so that what is read back comes from the disk */
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    return ok;
}

/* ---- the end ---- */

static int open_folder_of(const char *path)
{
    char folder[UNFINISHED_PATH];
    int length = (int)strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    snprintf(folder, sizeof folder, "%.*s", length, path);
    return open(length ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool unfinished_publish(const char *name, const char *path, bool *synced)
{
    int folder = synced ? open_folder_of(path) : -1;
    if (synced && folder < 0)
        return false;
    bool ok = rename(name, path) == 0;
    int problem = errno;
    if (ok)
        n_created = 0;
    if (ok && synced) /* some file systems cannot sync folders, and need not */
        *synced = sync_one(folder) || errno == EINVAL || errno == EBADF;
    if (folder >= 0)
        close(folder);
    errno = problem;
    return ok;
}

void unfinished_discard(void)
{
    int problem = errno;
    remove_created();
    n_created = 0;
    errno = problem;
}
