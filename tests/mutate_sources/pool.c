/* Runs entries of CTest side by side, each in a process group of its own that is ended when it takes too long. */
#define _DEFAULT_SOURCE 1   /* wait4 */
#define _XOPEN_SOURCE   700 /* nftw */
#include "mutate_sources/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct job {
    pid_t process; /* 0: idle */
    started what;
    double start;
    bool is_finished;
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    if (place->level > 0)
        remove(path);
    return 0;
}

/* An empty folder for each start: what a crashed test leaves behind is not seen by the next. */
static void empty_folder(const char *path)
{
    mkdir(path, 0777);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A mutant may loop, also while it writes or allocates. */
static void limit_resources(const started *s)
{
    const rlim_t seconds = (rlim_t)s->limit + 1;
    const rlim_t gibibyte = (rlim_t)1 << 30;
    setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds + 1});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){8 * gibibyte, 8 * gibibyte});
    setrlimit(RLIMIT_DATA, &(struct rlimit){8 * gibibyte, 8 * gibibyte});
}

static void set(const char *setting)
{
    const char *equals = strchr(setting, '=');
    char name[256];
    if (!equals)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(equals - setting), setting);
    setenv(name, equals + 1, 1);
}

/* A shell that starts this program in the background has it ignore some, and tests send them. */
static void restore_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
}

static _Noreturn void run_child(const started *s, const char *temporary)
{
    setpgid(0, 0);
    restore_signals();
    limit_resources(s);
    const int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    setenv("TMPDIR", temporary, 1);
    unsetenv("QDNN_TEST_SUMMARY");
    for (int i = 0; s->entry->environment[i]; i++)
        set(s->entry->environment[i]);
    for (size_t i = 0; i < sizeof s->settings / sizeof s->settings[0]; i++)
        set(s->settings[i]);
    if (s->entry->folder && chdir(s->entry->folder) != 0)
        _exit(126);
    execvp(s->entry->command[0], (char *const *)s->entry->command);
    _exit(127);
}

static int start(const pool *p, job *j, int index)
{
    char temporary[PATH_MAX];
    snprintf(temporary, sizeof temporary, "%s/job%d", p->scratch, index);
    empty_folder(temporary);
    j->start = now();
    j->process = fork();
    if (j->process == 0)
        run_child(&j->what, temporary);
    if (j->process < 0)
        return tool_fail("cannot start a process: %s", strerror(errno));
    setpgid(j->process, j->process);
    j->what.entry->is_busy = true;
    return TOOL_OK;
}

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

static void end(const pool *p, job *j, int index, int status, const struct rusage *used)
{
    kill(-j->process, SIGKILL); /* what the entry has started and left running */
    j->process = 0;
    j->what.entry->is_busy = false;
    p->ended(p->user, index, j->what.entry, status,
             seconds_of(&used->ru_utime) + seconds_of(&used->ru_stime));
}

static int status_of(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WTERMSIG(status) == SIGXCPU ? TOO_LONG : 128 + WTERMSIG(status);
}

/* Whether it has ended, by itself or now. On a busy machine it may take several times its processor time; only what waits for
 * something that does not come takes WAITS times that. */
static bool look_at(const pool *p, job *j, int index)
{
    enum { WAITS = 8 };
    int status;
    struct rusage used;
    if (wait4(j->process, &status, WNOHANG, &used) == j->process) {
        end(p, j, index, status_of(status), &used);
        return true;
    }
    if (now() - j->start < 60 + WAITS * j->what.limit)
        return false;
    kill(-j->process, SIGKILL);
    wait4(j->process, &status, 0, &used);
    end(p, j, index, TOO_LONG, &used);
    return true;
}

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
    (void)signal;
    is_interrupted = 1;
}

/* The entries are in groups of their own: the terminal's signal does not reach them. */
static int end_all(const pool *p, const job *jobs)
{
    for (int i = 0; i < p->jobs; i++)
        if (jobs[i].process)
            kill(-jobs[i].process, SIGKILL);
    return tool_fail("interrupted");
}

int pool_run(const pool *p)
{
    job *jobs = calloc((size_t)p->jobs, sizeof *jobs);
    int n_open = p->jobs, failed = TOOL_OK;
    if (!jobs)
        return tool_fail("out of memory");
    mkdir(p->scratch, 0777);
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    while (n_open > 0 && !failed) {
        bool changed = false;
        for (int i = 0; i < p->jobs && !failed; i++) {
            job *j = &jobs[i];
            if (j->is_finished)
                continue;
            if (j->process) {
                changed = look_at(p, j, i) || changed;
                continue;
            }
            const pool_answer answer = p->next(p->user, i, &j->what);
            j->is_finished = answer == POOL_FINISHED;
            n_open -= j->is_finished;
            if (answer == POOL_START)
                failed = start(p, j, i);
            changed = changed || answer == POOL_START;
        }
        if (is_interrupted)
            failed = end_all(p, jobs);
        if (!changed)
            nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    empty_folder(p->scratch);
    rmdir(p->scratch);
    free(jobs);
    return failed;
}
