/* Whether the tests notice each mutant. */
#include "mutate_sources/judge.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct judged {
    int mutant; /* -1: none */
    bool *is_run;
    int *n_of_suite; /* entries that it has run, at the first entry of their suite */
    double seconds;  /* of entries that it has run, as they take without a mistake */
} judged;

typedef struct judging {
    project *p;
    entries *e;
    const judge_options *o;
    int *suite;    /* of each entry: the first entry of its suite */
    bool *reaches; /* entries_reach */
    int next, n_done;
    judged jobs[JOBS_MAX];
} judging;

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
    memset(one->n_of_suite, 0, (size_t)j->e->count * sizeof *one->n_of_suite);
    mutant *m = &j->p->mutants[one->mutant];
    m->outcome = UNREACHED;
    char path[PATH_MAX];
    hit_path(j, one->mutant, path, sizeof path);
    unlink(path);
    for (int i = 0; i < j->e->count; i++)
        m->n_reach += j->reaches[(size_t)one->mutant * (size_t)j->e->count + (size_t)i];
    return true;
}

/* The next entry for the job's mutant: a short one, and rather of a suite of which few were run, because entries of one suite are much alike.
 * *waits: there is one, but it is busy. */
static entry *next_entry(const judging *j, const judged *one, bool *waits)
{
    entry *best = NULL;
    double least = 0;
    *waits = false;
    if (j->o->limit > 0 && one->seconds >= j->o->limit)
        return NULL;
    for (int i = 0; i < j->e->count; i++) {
        entry *e = &j->e->list[i];
        if (one->is_run[i] || !j->reaches[(size_t)one->mutant * (size_t)j->e->count + (size_t)i])
            continue;
        const double cost = e->seconds * (1 + one->n_of_suite[j->suite[i]]);
        *waits = *waits || e->is_busy;
        if (!e->is_busy && (!best || cost < least)) {
            best = e;
            least = cost;
        }
    }
    return best;
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
        snprintf(out->settings[2], sizeof out->settings[2], "GTEST_FAIL_FAST=1");
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
    one->n_of_suite[j->suite[e - j->e->list]]++;
    one->seconds += e->seconds;
    m->n_run++;
    if (status == 0 || status == SKIPPED)
        return;
    m->outcome = NOTICED;
    m->why = e->name;
    m->hung = status == TOO_LONG;
    finish(j, one);
}

static int first_of_suite(const entries *e, int which)
{
    const char *name = e->list[which].name;
    const size_t length = strcspn(name, ".");
    int i = 0;
    while (strncmp(e->list[i].name, name, length) != 0 || e->list[i].name[length] != name[length])
        i++;
    return i;
}

static bool prepare(judging *j)
{
    const size_t count = (size_t)j->e->count;
    j->suite = malloc(count * sizeof *j->suite);
    j->reaches = calloc(count * (size_t)j->p->n_mutants, sizeof *j->reaches);
    bool ok = j->suite && j->reaches;
    for (int i = 0; i < j->o->jobs; i++) {
        judged *one = &j->jobs[i];
        one->mutant = -1;
        one->is_run = calloc(count, sizeof *one->is_run);
        one->n_of_suite = calloc(count, sizeof *one->n_of_suite);
        ok = ok && one->is_run && one->n_of_suite;
    }
    for (int i = 0; ok && i < j->e->count; i++)
        j->suite[i] = first_of_suite(j->e, i);
    return ok;
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
    for (int i = 0; i < o->jobs; i++) {
        free(j.jobs[i].is_run);
        free(j.jobs[i].n_of_suite);
    }
    free(j.suite);
    free(j.reaches);
    return status;
}
