/* Mutants that run beside the tests. The program is linked so that the tests' own calls pass through watch.c: what kernel_emit
 * gives is remembered by its text, and before each launch of such a text its mutants run with the same parameters
 * and the same memory, each in a process of its own. A mutant is killed where its launch fails, a check finds something, or a byte of
 * device memory is not what the original leaves there. What the tests compare with host_ref is what the original leaves. */
#ifndef QDNN_MUTATE_WATCH_H
#define QDNN_MUTATE_WATCH_H

#include "kernels/kernels.h"
#include "mutate/mutants.h"

enum { WATCH_MUTANTS_MAX = 64, WATCH_TEXTS_MAX = 1 << 17 };

typedef struct watch_options {
    uint64_t seed;
    int per_text;              /* mutants of each text */
    int percent;               /* of the texts that are watched */
    const char *filter, *only; /* part of a kernel's name, with its settings; a class */
    char directory[256];       /* for the texts */
} watch_options;

typedef enum { MUTANT_UNTRIED, MUTANT_ALIVE, MUTANT_REFUSED, MUTANT_KILLED, MUTANT_EQUIVALENT } mutant_state;

/* A text, in memory that all processes share. */
typedef struct watched_text {
    uint64_t hash; /* of the text; 0: a free place */
    char name[KERNEL_FILE_NAME], family[32];
    bool is_taken;
    const kernel_row *row;
    int count, launches; /* launches with mutants beside them */
    int runs;            /* launches of any kind */
    uint8_t state[WATCH_MUTANTS_MAX];
    bool reached[WATCH_MUTANTS_MAX]; /* a launch executed its line, in a lane whose guard was true */
} watched_text;

/* Call once, before processes are forked. */
bool watch_begin(const watch_options *options);
/* Of texts that are emitted from here on, only those of kernels with this in their names are taken; null: those of all. */
void watch_only(const char *kernels);
/* By place, null where it is free. */
watched_text *watch_at(int place);
/* The text, and its mutants; free both. False without memory. */
bool watch_mutants(const watched_text *text, char **ptx, mutant mutants[WATCH_MUTANTS_MAX]);

#endif
