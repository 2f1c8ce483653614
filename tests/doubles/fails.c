/* A library to be preloaded (LD_PRELOAD): the C library with a fault, as QDNN_FAIL says.
 *   alloc:N      the Nth allocation fails
 *   call:N       the Nth system call fails
 *   damage:N     the Nth write at an offset changes a bit of what it writes
 *   signal:S     at the second write at an offset, the signal S
 *   short        no write at an offset takes more than 7 bytes
 *   interrupted  every second write at an offset, reservation or sync is interrupted
 *   unreserved   the file system cannot reserve space
 * When the fault happens, a line "fails: NAME" goes to standard error. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum { NOTHING, ALLOC, CALL, DAMAGE, SIGNAL, SHORT, INTERRUPTED, UNRESERVED } fault;

static fault wanted(long *number)
{
    static const char *const names[] = {
        "", "alloc:", "call:", "damage:", "signal:", "short", "interrupted", "unreserved"};
    const char *text = getenv("QDNN_FAIL");
    for (int i = ALLOC; text && i <= UNRESERVED; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0) {
            *number = atol(text + strlen(names[i]));
            return (fault)i;
        }
    return NOTHING;
}

static void report(const char *name)
{
    char line[64] = "fails: ";
    strncat(line, name, 40);
    strcat(line, "\n");
    syscall(SYS_write, 2, line, strlen(line));
}

/* Whether this call is the one; the environment is read once. */
static int is_due(fault kind, const char *name)
{
    static long number, counts[UNRESERVED + 1];
    static fault fault_wanted;
    static int is_read;
    if (!is_read) {
        is_read = 1;
        fault_wanted = wanted(&number);
    }
    if (fault_wanted != kind)
        return 0;
    long n = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_RELAXED);
    int due = kind == SIGNAL ? n == 2 : kind == INTERRUPTED ? n % 2 : kind >= SHORT ? 1 : n == number;
    if (due && n < 3)
        report(name);
    else if (due && kind < SHORT)
        report(name);
    return due ? (kind == SIGNAL ? (int)number : 1) : 0;
}

static int fails(const char *name, int code)
{
    if (!is_due(CALL, name))
        return 0;
    errno = code;
    return 1;
}

/* ---- allocations ---- */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static int no_memory(const char *name)
{
    if (!is_due(ALLOC, name))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes)
{
    return no_memory("malloc") ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return no_memory("calloc") ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return no_memory("realloc") ? NULL : __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return no_memory("aligned_alloc") ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    void *made = no_memory("posix_memalign") ? NULL : __libc_memalign(alignment, bytes);
    if (made)
        *memory = made;
    return made ? 0 : ENOMEM;
}

/* ---- system calls ---- */

#define NEXT(name) ((__typeof__(&name))next(#name))

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list args;                                                                                        \
        va_start(args, flags);                                                                               \
        mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;                                            \
        va_end(args);                                                                                        \
        return fails(#name, EIO) ? -1 : NEXT(name)(path, flags, mode);                                       \
    }
OPEN(open)
OPEN(open64)

#define WRITE_AT(name, offset_type)                                                                          \
    ssize_t name(int file, const void *data, size_t bytes, offset_type at)                                   \
    {                                                                                                        \
        char changed[7];                                                                                     \
        if (fails(#name, ENOSPC))                                                                            \
            return -1;                                                                                       \
        int number = is_due(SIGNAL, #name);                                                                  \
        if (number)                                                                                          \
            kill(getpid(), number);                                                                          \
        if (is_due(INTERRUPTED, #name)) {                                                                    \
            errno = EINTR;                                                                                   \
            return -1;                                                                                       \
        }                                                                                                    \
        if (is_due(DAMAGE, #name) && bytes > 0) { /* the rest is written by the next call */                 \
            bytes = bytes < sizeof changed ? bytes : sizeof changed;                                         \
            memcpy(changed, data, bytes);                                                                    \
            changed[bytes - 1] ^= 1;                                                                         \
            data = changed;                                                                                  \
        }                                                                                                    \
        return NEXT(name)(file, data, is_due(SHORT, #name) && bytes > 7 ? 7 : bytes, at);                    \
    }
WRITE_AT(pwrite, off_t)
WRITE_AT(pwrite64, off64_t)

#define RESERVE(name, offset_type)                                                                           \
    int name(int file, offset_type from, offset_type bytes)                                                  \
    {                                                                                                        \
        if (is_due(UNRESERVED, #name))                                                                       \
            return EOPNOTSUPP;                                                                               \
        return fails(#name, ENOSPC)         ? ENOSPC                                                         \
               : is_due(INTERRUPTED, #name) ? EINTR                                                          \
                                            : NEXT(name)(file, from, bytes);                                 \
    }
RESERVE(posix_fallocate, off_t)
RESERVE(posix_fallocate64, off64_t)

int fsync(int file)
{
    if (is_due(INTERRUPTED, "fsync")) {
        errno = EINTR;
        return -1;
    }
    return fails("fsync", EIO) ? -1 : NEXT(fsync)(file);
}

/* The file is closed all the same, as on Linux. */
int close(int file)
{
    int mode = fcntl(file, F_GETFL);
    int failed =
        fails(mode != -1 && (mode & O_ACCMODE) != O_RDONLY ? "close of what was written" : "close", EIO);
    int status = NEXT(close)(file);
    if (failed)
        errno = EIO;
    return failed ? -1 : status;
}

/* CALL_OF(type, name, failure, errno, parameters, arguments) */
#define CALL_OF(type, name, failure, code, parameters, arguments)                                            \
    type name parameters                                                                                     \
    {                                                                                                        \
        return fails(#name, code) ? (failure) : NEXT(name) arguments;                                        \
    }
CALL_OF(int, ftruncate, -1, ENOSPC, (int file, off_t bytes), (file, bytes))
CALL_OF(int, ftruncate64, -1, ENOSPC, (int file, off64_t bytes), (file, bytes))
CALL_OF(int, rename, -1, EIO, (const char *from, const char *to), (from, to))
CALL_OF(int, mkdir, -1, EIO, (const char *path, mode_t mode), (path, mode))
CALL_OF(ssize_t, read, -1, EIO, (int file, void *data, size_t bytes), (file, data, bytes))
CALL_OF(ssize_t, write, -1, ENOSPC, (int file, const void *data, size_t bytes), (file, data, bytes))
CALL_OF(int, fstat, -1, EIO, (int file, struct stat *info), (file, info))
CALL_OF(int, stat, -1, EIO, (const char *path, struct stat *info), (path, info))
CALL_OF(int, lstat, -1, EIO, (const char *path, struct stat *info), (path, info))
CALL_OF(int, fstat64, -1, EIO, (int file, struct stat64 *info), (file, info))
CALL_OF(int, stat64, -1, EIO, (const char *path, struct stat64 *info), (path, info))
CALL_OF(void *, mmap, MAP_FAILED, ENOMEM,
        (void *at, size_t bytes, int protection, int flags, int file, off_t from),
        (at, bytes, protection, flags, file, from))
CALL_OF(void *, mmap64, MAP_FAILED, ENOMEM,
        (void *at, size_t bytes, int protection, int flags, int file, off64_t from),
        (at, bytes, protection, flags, file, from))
CALL_OF(DIR *, opendir, NULL, EIO, (const char *path), (path))
CALL_OF(struct dirent *, readdir, NULL, EIO, (DIR * folder), (folder))
CALL_OF(struct dirent64 *, readdir64, NULL, EIO, (DIR * folder), (folder))
CALL_OF(int, pthread_create, EAGAIN, EAGAIN,
        (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
        (thread, attributes, run, argument))
