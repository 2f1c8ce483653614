/* The entries of CTest: how long each takes, which blocks it reaches, and running them side by side. */
#ifndef QDNN_MUTATE_SOURCES_ENTRIES_H
#define QDNN_MUTATE_SOURCES_ENTRIES_H

#include "mutate_sources/project.h"

#include <sys/types.h>

enum {
    JOBS_MAX = 64,
    SKIPPED = 77, /* SKIP_RETURN_CODE of cmake/TestGroups.cmake */
    TOO_LONG = -1 /* it was ended */
};

typedef struct entry {
    const char *name, *folder;
    const char **command;     /* ends in null */
    const char **environment; /* NAME=VALUE; ends in null */
    bool is_recorded;
    int status;     /* without a mutant: 0, SKIPPED, TOO_LONG, or it fails */
    double seconds; /* of processor time, without a mutant */
    bool is_busy;   /* some tests write files with fixed names: an entry never runs twice at the same time */
} entry;

typedef struct entries {
    const project *p;
    struct json *json;
    entry *list;
    int count;
} entries;

/* Which entries of CTest are taken. */
typedef struct selection {
    const char *parts;  /* of their names, separated by commas, one of which must be there; null: any */
    bool only_recorded; /* that an earlier run has recorded */
    bool only_first;    /* of a test that CTest has in several parts (NAME.3_of_28), the first */
} selection;

/* The entries that are selected, with what earlier runs recorded of them. */
int entries_read(entries *e, const project *p, const selection *which);
/* Runs those that have no record, without a mutant; all of them if `again`. Those that take more than `longest` seconds of processor
 * time are ended, and will not judge any mutant; an earlier record of that kind counts unless more time is given now. */
int entries_record(entries *e, int jobs, double longest, bool again);
/* How many were left out because they take too long. */
int entries_too_long(const entries *e);
/* Marks in reaches[mutant * count + entry] which entries reach the block of which mutant. */
int entries_reach(const entries *e, bool *reaches);
void entries_free(entries *e);

/* ---- pool.c: running entries side by side ---- */

typedef struct started {
    entry *entry;
    char settings[3][4200]; /* NAME=VALUE in addition to its environment; empty: none */
    double limit;           /* seconds of processor time, after which it is ended */
} started;

typedef enum pool_answer { POOL_START, POOL_WAIT, POOL_FINISHED } pool_answer;

typedef struct pool {
    void *user;
    int jobs;
    const char *scratch; /* a folder: TMPDIR of the entries is within it */
    /* What a job is to run next. POOL_WAIT: nothing until another job has ended. */
    pool_answer (*next)(void *user, int job, started *out);
    /* The exit status, 128 + signal, or TOO_LONG; the processor time of the entry and of what it has started and waited for. */
    void (*ended)(void *user, int job, entry *e, int status, double seconds);
} pool;

int pool_run(const pool *p);

#endif
