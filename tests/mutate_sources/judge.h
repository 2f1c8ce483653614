/* Whether the tests notice each mutant, and the report. */
#ifndef QDNN_MUTATE_SOURCES_JUDGE_H
#define QDNN_MUTATE_SOURCES_JUDGE_H

#include "mutate_sources/entries.h"

typedef struct judge_options {
    int jobs;
    double limit; /* seconds of tests per mutant, as they take without a mistake; 0: none */
} judge_options;

/* Runs, for each mutant, the entries that reach its block, the shortest first, until one fails. */
int judge(project *p, entries *e, const judge_options *o);

/* ---- report.c ---- */

/* A table by folder, and the mutants that survived. */
void report_print(const project *p, FILE *out);
/* All mutants, as JSON. */
int report_write(const project *p, uint64_t seed, const char *path);

#endif
