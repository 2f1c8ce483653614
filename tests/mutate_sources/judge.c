/* Whether the tests notice each mutant. */
#include "mutate_sources/judge.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct judged {
    int mutant; /* -1: none */
    bool *is_run;
    double seconds; /* of entries that it has run, as they take without a mistake */
} judged;

typedef struct judging {
    project *p;
    entries *e;
    const judge_options *o;
    int *order;    /* entries, the shortest first */
    bool *reaches; /* entries_reach */
    int next, n_done;
    judged jobs[JOBS_MAX];
} judging;

static entries *sorted; /* qsort passes no argument on */

static int compare_seconds(const void *a, const void *b)
{
    const double x = sorted->list[*(const int *)a].seconds, y = sorted->list[*(const int *)b].seconds;
    return x < y ? -1 : x > y;
}

static void hit_path(const judging *j, int mutant, char *path, size_t size)
{
    snprintf(path, size, "%s/hit%d", j->p->build, j->p->mutants[mutant].number);
}

static bool take_mutant(judging *j, judged *one)
{
    while (j->next < j->p->n_mutants && j->p->mutants[j->next].outcome == EQUIVALENT)
        j->next++;
    if (j->next == j->p->n_mutants)
        return false;
    one->mutant = j->next++;
    one->seconds = 0;
    memset(one->is_run, 0, (size_t)j->e->count * sizeof *one->is_run);
    mutant *m = &j->p->mutants[one->mutant];
    m->outcome = UNREACHED;
    char path[PATH_MAX];
    hit_path(j, one->mutant, path, sizeof path);
    unlink(path);
    for (int i = 0; i < j->e->count; i++)
        m->n_reach += j->reaches[(size_t)one->mutant * (size_t)j->e->count + (size_t)i];
    return true;
}

/* The next entry for the job's mutant. *waits: there is one, but it is busy. */
static entry *next_entry(const judging *j, const judged *one, bool *waits)
{
    *waits = false;
    if (j->o->limit > 0 && one->seconds >= j->o->limit)
        return NULL;
    for (int i = 0; i < j->e->count; i++) {
        const int k = j->order[i];
        if (one->is_run[k] || !j->reaches[(size_t)one->mutant * (size_t)j->e->count + (size_t)k])
            continue;
        if (!j->e->list[k].is_busy)
            return &j->e->list[k];
        *waits = true;
    }
    return NULL;
}

static void finish(judging *j, judged *one)
{
    static const char *const words[OUTCOMES] = {[SURVIVED] = "SURVIVED",
                                                [UNREACHED] = "unreached",
                                                [NOTICED] = "noticed",
                                                [EQUIVALENT] = "equivalent"};
    mutant *m = &j->p->mutants[one->mutant];
    char path[PATH_MAX];
    hit_path(j, one->mutant, path, sizeof path);
    if (m->outcome == UNREACHED && access(path, F_OK) == 0)
        m->outcome = SURVIVED;
    unlink(path);
    fprintf(stderr, "[%d of %d] %s:%d %s%s%s%s\n", ++j->n_done, j->p->n_mutants, m->source->path,
            m->mistake->line, words[m->outcome], m->why ? " by " : "", m->why ? m->why : "",
            m->hung ? " (took too long)" : "");
    one->mutant = -1;
}

static pool_answer judge_next(void *user, int job, started *out)
{
    judging *j = user;
    judged *one = &j->jobs[job];
    for (;;) {
        bool waits;
        if (one->mutant < 0 && !take_mutant(j, one))
            return POOL_FINISHED;
        entry *e = next_entry(j, one, &waits);
        if (!e && waits)
            return POOL_WAIT;
        if (!e) {
            finish(j, one);
            continue;
        }
        char path[PATH_MAX];
        hit_path(j, one->mutant, path, sizeof path);
        *out = (started){.entry = e, .limit = 5 + 10 * e->seconds};
        snprintf(out->settings[0], sizeof out->settings[0], "SOURCE_MUTANT=%d",
                 j->p->mutants[one->mutant].number);
        snprintf(out->settings[1], sizeof out->settings[1], "SOURCE_HIT=%s", path);
        return POOL_START;
    }
}

static void judge_ended(void *user, int job, entry *e, int status, double seconds)
{
    judging *j = user;
    judged *one = &j->jobs[job];
    mutant *m = &j->p->mutants[one->mutant];
    (void)seconds;
    one->is_run[e - j->e->list] = true;
    one->seconds += e->seconds;
    m->n_run++;
    if (status == 0 || status == SKIPPED)
        return;
    m->outcome = NOTICED;
    m->why = e->name;
    m->hung = status == TOO_LONG;
    finish(j, one);
}

static bool prepare(judging *j)
{
    j->order = malloc((size_t)j->e->count * sizeof *j->order);
    j->reaches = calloc((size_t)j->e->count * (size_t)j->p->n_mutants, sizeof *j->reaches);
    bool ok = j->order && j->reaches;
    for (int i = 0; i < j->o->jobs; i++) {
        j->jobs[i].mutant = -1;
        j->jobs[i].is_run = calloc((size_t)j->e->count, sizeof *j->jobs[i].is_run);
        ok = ok && j->jobs[i].is_run;
    }
    if (!ok)
        return false;
    for (int i = 0; i < j->e->count; i++)
        j->order[i] = i;
    sorted = j->e;
    qsort(j->order, (size_t)j->e->count, sizeof *j->order, compare_seconds);
    return true;
}

int judge(project *p, entries *e, const judge_options *o)
{
    judging j = {.p = p, .e = e, .o = o};
    char scratch[PATH_MAX];
    snprintf(scratch, sizeof scratch, "%s/scratch%d", p->build, (int)getpid());
    const pool run = {
        .user = &j, .jobs = o->jobs, .scratch = scratch, .next = judge_next, .ended = judge_ended};
    int status = prepare(&j) ? entries_reach(e, j.reaches) : tool_fail("out of memory");
    if (!status)
        status = pool_run(&run);
    for (int i = 0; i < o->jobs; i++)
        free(j.jobs[i].is_run);
    free(j.order);
    free(j.reaches);
    return status;
}
