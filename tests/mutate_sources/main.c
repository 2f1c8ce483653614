#define _XOPEN_SOURCE 700 /* realpath */
/* `./run mutate --sources`: how many one-line mistakes in the C sources the tests notice (docs/mutation.md). */
#include "mutate_sources/judge.h"
#include "mutate_sources/known.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char tool_program[] = "mutate_sources";

enum { PLACES_MAX = 64 };

typedef struct options {
    uint64_t seed;
    int count, jobs;
    double limit, longest;
    const char *only, *tests;
    const char *at[PLACES_MAX];
    int n_at;
    bool list, again, recorded, first, help;
} options;

static int parse_number(const char *value, unsigned long long least, unsigned long long most,
                        unsigned long long *out)
{
    char *end;
    *out = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || *out < least || *out > most)
        return tool_usage_error("'%s' is not a number from %llu to %llu", value, least, most);
    return TOOL_OK;
}

static int parse_seed(void *user, const char *value)
{
    unsigned long long n = 0;
    const int status = parse_number(value, 0, ~0ull, &n);
    ((options *)user)->seed = n;
    return status;
}

static int parse_count(void *user, const char *value)
{
    unsigned long long n = 0;
    const int status = parse_number(value, 1, 100000, &n);
    ((options *)user)->count = (int)n;
    return status;
}

static int parse_jobs(void *user, const char *value)
{
    unsigned long long n = 0;
    const int status = parse_number(value, 1, JOBS_MAX, &n);
    ((options *)user)->jobs = (int)n;
    return status;
}

static int parse_limit(void *user, const char *value)
{
    unsigned long long n = 0;
    const int status = parse_number(value, 0, 1000000, &n);
    ((options *)user)->limit = (double)n;
    return status;
}

static int parse_longest(void *user, const char *value)
{
    unsigned long long n = 0;
    const int status = parse_number(value, 1, 1000000, &n);
    ((options *)user)->longest = (double)n;
    return status;
}

static int parse_only(void *user, const char *value)
{
    ((options *)user)->only = value;
    return TOOL_OK;
}

static int parse_tests(void *user, const char *value)
{
    ((options *)user)->tests = value;
    return TOOL_OK;
}

static int parse_at(void *user, const char *value)
{
    options *o = user;
    if (o->n_at == PLACES_MAX || !strchr(value, ':'))
        return tool_usage_error("'%s' is not FILE:LINE, or there are more than %d of them", value,
                                PLACES_MAX);
    o->at[o->n_at++] = value;
    return TOOL_OK;
}

static const tool_option table[] = {
    {"--seed", true, parse_seed, 0},
    {"--count", true, parse_count, 0},
    {"--jobs", true, parse_jobs, 0},
    {"--limit", true, parse_limit, 0},
    {"--longest", true, parse_longest, 0},
    {"--only", true, parse_only, 0},
    {"--tests", true, parse_tests, 0},
    {"--at", true, parse_at, 0},
    {"--list", false, NULL, offsetof(options, list)},
    {"--recorded", false, NULL, offsetof(options, recorded)},
    {"--first", false, NULL, offsetof(options, first)},
    {"--again", false, NULL, offsetof(options, again)},
    {"--help", false, NULL, offsetof(options, help)},
};

static const char usage[] =
    "usage: ./run mutate --sources [OPTIONS]\n\n"
    "Plants one-line mistakes in the C sources, all in one build (build/mutants), and counts those that the "
    "tests notice.\n\n"
    "  --seed N      which ones; another seed each time if it is not given\n"
    "  --count N     how many (60)\n"
    "  --at FILE:LINE   all mistakes of that line instead; may be given several times\n"
    "  --only PATH   only in paths that begin so: driver/api\n"
    "  --tests PART  only tests with one of these parts, separated by commas, in their names\n"
    "  --limit S     give up on a mutant after tests that take so many seconds without it (0: run all that "
    "reach it)\n"
    "  --longest S   leave out tests that take more than so many seconds of processor time (900)\n"
    "  --jobs N      so many tests side by side\n"
    "  --list        show the mutants and do not run anything\n"
    "  --recorded    only tests that an earlier run has recorded\n"
    "  --first       of tests with many cases, which CTest has in parts, only the first part\n"
    "  --again       record again which tests reach which code\n";

static int take_operand(void *user, const char *argument)
{
    (void)user;
    return tool_usage_error("unexpected '%s'", argument);
}

static int choose(project *p, const options *o)
{
    int status = TOOL_OK;
    for (int i = 0; i < o->n_at && !status; i++) {
        char file[PATH_MAX];
        const char *colon = strrchr(o->at[i], ':');
        snprintf(file, sizeof file, "%.*s", (int)(colon - o->at[i]), o->at[i]);
        status = project_choose_at(p, file, atoi(colon + 1));
    }
    return status || o->n_at > 0 ? status : project_choose(p, o->seed, o->count);
}

static int mark_known(project *p, known *k)
{
    char path[PATH_MAX];
    tool_text text = {0};
    int line = 0;
    snprintf(path, sizeof path, "%s/tests/mutate_sources/equivalent.txt", p->root);
    int status = tool_read(path, &text);
    tool_append(&text, "", 1);
    if (!status && !known_read(k, text.data, &line))
        status = tool_fail("%s:%d: a row is a path, '- ', '+ ' and 'because ' lines", path, line);
    for (int i = 0; i < p->n_mutants && !status; i++) {
        mutant *m = &p->mutants[i];
        m->why = known_reason(k, m->source->path, m->before, m->after);
        m->outcome = m->why ? EQUIVALENT : SURVIVED;
    }
    tool_text_free(&text);
    return status;
}

static void list(const project *p)
{
    for (int i = 0; i < p->n_mutants; i++) {
        const mutant *m = &p->mutants[i];
        printf("%s:%d %s%s\n  - %s\n  + %s\n", m->source->path, m->mistake->line,
               mistake_kind_name(m->mistake->kind), m->outcome == EQUIVALENT ? " (equivalent)" : "",
               m->before, m->after);
    }
}

static int run_tests(project *p, const options *o)
{
    char path[PATH_MAX];
    const selection which = {o->tests, o->recorded, o->first};
    const judge_options how = {.jobs = o->jobs, .limit = o->limit};
    entries e = {0};
    int status = project_build(p, o->jobs);
    if (!status)
        status = entries_read(&e, p, &which);
    if (!status)
        status = entries_record(&e, o->jobs, o->longest, o->again);
    if (!status)
        status = judge(p, &e, &how);
    if (!status) {
        report_print(p, stdout);
        snprintf(path, sizeof path, "%s/mutants.json", p->build);
        status = report_write(p, o->seed, path);
        printf("\nseed %llu, %d mistakes that do not compile were dropped; all mutants: %s\n",
               (unsigned long long)o->seed, p->n_dropped, path);
    }
    if (!status && (entries_too_long(&e) > 0 || o->limit > 0 || o->tests || o->recorded || o->first))
        printf("not every test was tried (%d of %d take too long): the score is a lower bound\n",
               entries_too_long(&e), e.count);
    entries_free(&e); /* it holds the names of tests that the report shows */
    return status;
}

static int run(const char *root, const char *program, const options *o)
{
    char build[PATH_MAX + 16];
    snprintf(build, sizeof build, "%s/build/mutants", root);
    project p = {.root = root, .build = build};
    known k = {0};
    int status = project_read(&p, o->only);
    if (!status)
        status = project_configure(&p, program);
    if (!status)
        status = choose(&p, o);
    if (!status)
        status = mark_known(&p, &k);
    if (!status && o->list)
        list(&p);
    else if (!status)
        status = run_tests(&p, o);
    project_free(&p);
    known_free(&k);
    return tool_finish(status);
}

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], "--compile") == 0)
        return compile_copy(argv[2], argv[3], argv + 4);
    const tool_command_line line = {table, sizeof table / sizeof table[0], take_operand};
    options o = {.seed = (uint64_t)time(NULL),
                 .count = 60,
                 .longest = 900,
                 .jobs = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    o.jobs = o.jobs < 1 ? 1 : o.jobs > JOBS_MAX ? JOBS_MAX : o.jobs;
    int status = tool_parse_options(&line, &o, argc, argv);
    if (status || o.help) {
        fputs(usage, status ? stderr : stdout);
        return status;
    }
    char program[PATH_MAX], root[PATH_MAX];
    if (!realpath(argv[0], program) || !realpath(".", root))
        return tool_fail("cannot find this program or its folder");
    return run(root, program, &o);
}
