/* The sources of the project, the mutants that are chosen among their mistakes, and the build in which they are compiled in. */
#ifndef QDNN_MUTATE_SOURCES_PROJECT_H
#define QDNN_MUTATE_SOURCES_PROJECT_H

#include "mutate_sources/mistakes.h"
#include "tools/tool.h"

typedef enum outcome { SURVIVED, UNREACHED, NOTICED, EQUIVALENT, OUTCOMES } outcome;

typedef struct mutant {
    int number; /* from 1 */
    const source *source;
    const mistake *mistake;
    char *before, *after; /* its lines */
    outcome outcome;
    const char *why;    /* EQUIVALENT: the reason; NOTICED: the entry that noticed it */
    bool hung;          /* it was noticed by taking too long */
    int n_run, n_reach; /* entries that were run, and that reach its block */
} mutant;

typedef struct project {
    const char *root, *build; /* absolute */
    source *sources;
    int n_sources;
    tool_text commands; /* compile_commands.json */
    struct json *commands_json;
    mutant *mutants;
    int n_mutants;
    int n_dropped; /* mistakes that do not compile */
} project;

/* All functions report on stderr and return an exit code of tool.h. */

/* Reads the .c files of the library and of its commands; with `only`, keeps the mistakes of paths that begin with it. */
int project_read(project *p, const char *only);
/* Configures the build; compile.c stands before the compiler. */
int project_configure(project *p, const char *program);
/* Chooses `count` mutants by a seed: a random line, then a mistake in it. */
int project_choose(project *p, uint64_t seed, int count);
/* Adds all mutants of a line. */
int project_choose_at(project *p, const char *file, int line);
/* Writes the copies with these mutants compiled in, and builds. */
int project_build(project *p, int jobs);
void project_free(project *p);

/* ---- check.c ---- */

/* Whether the mistake compiles with the flags of the build, in code that is compiled, without changing a type. */
bool mistake_compiles(project *p, const source *s, const mistake *m);

/* ---- compile.c ---- */

/* The command as the build starts it, with a source file of the project replaced by its copy. Does not return if it succeeds. */
int compile_copy(const char *root, const char *copies, char **command);

/* Runs a shell command, its output appended to build/log; reports the log's name on failure. */
int project_shell(const project *p, const char *what, const char *command);
/* One line that is written over on a terminal; else a line for each hundred. */
void project_progress(const char *what, int done, int wanted);

#endif
