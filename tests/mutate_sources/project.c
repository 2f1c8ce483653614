/* The sources of the project and the mutants that are chosen among their mistakes. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "mutate_sources/project.h"

#include "base/json.h"
#include "mutate_sources/rewrite.h"
#include "support/random.h"

#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The library, the virtual machine and the commands; not the tests, the demo, the benchmarks. */
static const char *const folders[] = {"base",     "boards",  "clock",  "driver", "files",
                                      "host_ref", "kernels", "ptxgen", "ptxvm",  "tools"};

/* ---- Reading ---- */

typedef struct paths {
    char **list;
    int count, capacity;
} paths;

static paths found; /* nftw passes no argument on */

static int take_path(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)place;
    const size_t length = strlen(path);
    if (type != FTW_F || length < 2 || strcmp(path + length - 2, ".c") != 0)
        return 0;
    if (found.count == found.capacity) {
        found.capacity = found.capacity ? 2 * found.capacity : 1024;
        char **grown = realloc(found.list, (size_t)found.capacity * sizeof *grown);
        if (!grown)
            return -1;
        found.list = grown;
    }
    found.list[found.count] = strdup(path);
    return found.list[found.count++] ? 0 : -1;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int find_paths(const project *p)
{
    found = (paths){0};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", p->root, folders[i]);
        if (nftw(path, take_path, 16, FTW_PHYS) != 0)
            return tool_fail("cannot list '%s'", path);
    }
    qsort(found.list, (size_t)found.count, sizeof found.list[0], compare_paths);
    return TOOL_OK;
}

static int read_source(project *p, const char *path, const char *only)
{
    tool_text text = {0};
    const char *name = path + strlen(p->root) + 1;
    if (tool_read(path, &text))
        return TOOL_FAILED;
    tool_append(&text, "", 1);
    source *s = &p->sources[p->n_sources++];
    if (!source_read(s, name, text.data))
        fprintf(stderr, "%s is left out: its brackets do not match\n", name);
    if (only && strncmp(name, only, strlen(only)) != 0)
        s->n_mistakes = 0;
    tool_text_free(&text);
    return TOOL_OK;
}

int project_read(project *p, const char *only)
{
    int status = find_paths(p), lines = 0;
    p->sources = calloc((size_t)found.count + 1, sizeof *p->sources);
    if (!p->sources)
        status = tool_fail("out of memory");
    for (int i = 0; i < found.count; i++) {
        if (!status)
            status = read_source(p, found.list[i], only);
        free(found.list[i]);
    }
    free(found.list);
    for (int i = 0; i < p->n_sources; i++)
        lines += p->sources[i].n_mistakes;
    if (!status && lines == 0)
        status = tool_fail("there is no place for a mistake in '%s'", only ? only : p->root);
    return status;
}

/* ---- Choosing ---- */

/* Whether the place fits those that are chosen: apart from each, within it or around it. */
static bool fits(const project *p, const source *s, const mistake *m)
{
    for (int i = 0; i < p->n_mutants; i++) {
        const mistake *other = p->mutants[i].mistake;
        if (p->mutants[i].source != s)
            continue;
        if (other == m || (m->first < other->first && other->first < m->end && m->end < other->end) ||
            (other->first < m->first && m->first < other->end && other->end < m->end))
            return false;
    }
    return true;
}

static int add_mutant(project *p, const source *s, const mistake *m)
{
    mutant *grown = realloc(p->mutants, (size_t)(p->n_mutants + 1) * sizeof *grown);
    if (!grown)
        return tool_fail("out of memory");
    p->mutants = grown;
    mutant *new = &grown[p->n_mutants++];
    *new = (mutant){.number = p->n_mutants, .source = s, .mistake = m};
    new->before = mistake_before(s, m);
    new->after = mistake_after(s, m);
    return new->before &&new->after ? TOOL_OK : tool_fail("out of memory");
}

typedef struct line_of {
    const source *source;
    int line;
} line_of;

static int compare_lines(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Every line with a mistake in it, once. */
static line_of *list_lines(const project *p, int *count)
{
    int most = 1;
    for (int i = 0; i < p->n_sources; i++)
        most += p->sources[i].n_mistakes;
    line_of *lines = malloc((size_t)most * sizeof *lines);
    int *numbers = malloc((size_t)most * sizeof *numbers);
    *count = 0;
    for (int i = 0; lines && numbers && i < p->n_sources; i++) {
        const source *s = &p->sources[i];
        for (int k = 0; k < s->n_mistakes; k++)
            numbers[k] = s->mistakes[k].line;
        qsort(numbers, (size_t)s->n_mistakes, sizeof *numbers, compare_lines);
        for (int k = 0; k < s->n_mistakes; k++)
            if (k == 0 || numbers[k] != numbers[k - 1])
                lines[(*count)++] = (line_of){s, numbers[k]};
    }
    free(numbers);
    return lines;
}

/* The mistakes of a line in a random order: the first that compiles. Returns whether one was added. */
static bool add_one_of(project *p, const line_of *at, uint64_t *random, int *status)
{
    const mistake *list[256];
    int count = 0;
    for (int k = 0; k < at->source->n_mistakes && count < 256; k++)
        if (at->source->mistakes[k].line == at->line)
            list[count++] = &at->source->mistakes[k];
    while (count > 0) {
        const int k = (int)(random_next(random) % (uint64_t)count);
        const mistake *m = list[k];
        list[k] = list[--count];
        if (!fits(p, at->source, m))
            continue;
        if (mistake_compiles(p, at->source, m)) {
            *status = add_mutant(p, at->source, m);
            return true;
        }
        p->n_dropped++;
    }
    return false;
}

int project_choose(project *p, uint64_t seed, int count)
{
    int n_lines, status = TOOL_OK;
    line_of *lines = list_lines(p, &n_lines);
    if (!lines)
        return tool_fail("out of memory");
    const int wanted = p->n_mutants + count;
    while (p->n_mutants < wanted && n_lines > 0 && !status) {
        const int k = (int)(random_next(&seed) % (uint64_t)n_lines);
        if (add_one_of(p, &lines[k], &seed, &status))
            project_progress("mutants chosen", p->n_mutants, wanted);
        lines[k] = lines[--n_lines];
    }
    free(lines);
    return status;
}

int project_choose_at(project *p, const char *file, int line)
{
    int status = TOOL_OK;
    const int before = p->n_mutants;
    for (int i = 0; i < p->n_sources; i++) {
        const source *s = &p->sources[i];
        for (int k = 0; strcmp(s->path, file) == 0 && k < s->n_mistakes && !status; k++) {
            const mistake *m = &s->mistakes[k];
            if (m->line != line || !fits(p, s, m))
                continue;
            if (mistake_compiles(p, s, m))
                status = add_mutant(p, s, m);
            else
                p->n_dropped++;
        }
    }
    if (!status && p->n_mutants == before)
        return tool_fail("there is no mistake to make at %s:%d", file, line);
    return status;
}

/* ---- The build ---- */

void project_progress(const char *what, int done, int wanted)
{
    const bool is_terminal = isatty(STDERR_FILENO);
    if (is_terminal || done % 100 == 0 || done == wanted)
        fprintf(stderr, "%s%s: %d of %d%s", is_terminal ? "\r" : "", what, done, wanted,
                is_terminal && done < wanted ? " " : "\n");
}

int project_shell(const project *p, const char *what, const char *command)
{
    tool_text line = {0};
    tool_printf(&line, "{ %s\n} >>'%s/log' 2>&1", command, p->build);
    tool_append(&line, "", 1);
    const int status = line.failed ? -1 : system(line.data);
    tool_text_free(&line);
    if (status == 0)
        return TOOL_OK;
    return tool_fail("%s failed; its output is in %s/log", what, p->build);
}

int project_configure(project *p, const char *program)
{
    char command[4 * PATH_MAX];
    const char *launcher = getenv("CMAKE_C_COMPILER_LAUNCHER");
    snprintf(command, sizeof command, "mkdir -p '%s' && : >'%s/log'", p->build, p->build);
    if (system(command) != 0)
        return tool_fail("cannot make '%s'", p->build);
    snprintf(command, sizeof command,
             "cmake -S '%s' -B '%s' -DQDNN_BUILD_BENCH=OFF -DQDNN_LEAKS=ON "
             "'-DCMAKE_C_COMPILER_LAUNCHER=%s;--compile;%s;%s/copies%s%s'",
             p->root, p->build, program, p->root, p->build, launcher && *launcher ? ";" : "",
             launcher ? launcher : "");
    fprintf(stderr, "configuring %s\n", p->build);
    int status = project_shell(p, "the configuration", command);
    snprintf(command, sizeof command, "%s/compile_commands.json", p->build);
    if (!status)
        status = tool_read(command, &p->commands);
    if (status)
        return status;
    json_error error;
    p->commands_json = json_parse(p->commands.data, p->commands.size, &error);
    return p->commands_json ? TOOL_OK : tool_fail("%s: %s", command, error.reason);
}

/* Only if it changes, so that only what changes is compiled again. */
static int write_copy(const char *path, const tool_text *text)
{
    struct stat info;
    tool_text old = {0};
    const bool same = stat(path, &info) == 0 && tool_read(path, &old) == TOOL_OK && old.size == text->size &&
                      memcmp(old.data, text->data, text->size) == 0;
    tool_text_free(&old);
    if (same)
        return TOOL_OK;
    char folder[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(folder, 0777);
    }
    return tool_write(path, text);
}

static int write_source(const project *p, const source *s)
{
    numbered *list = malloc((size_t)(p->n_mutants + 1) * sizeof *list);
    int count = 0, status = TOOL_OK;
    char path[PATH_MAX];
    tool_text text = {0};
    for (int i = 0; list && i < p->n_mutants; i++)
        if (p->mutants[i].source == s)
            list[count++] = (numbered){p->mutants[i].number, p->mutants[i].mistake};
    if (!list || !rewrite(s, p->root, list, count, &text))
        status = tool_fail("cannot rewrite '%s'", s->path);
    snprintf(path, sizeof path, "%s/copies/%s", p->build, s->path);
    if (!status)
        status = write_copy(path, &text);
    tool_text_free(&text);
    free(list);
    return status;
}

int project_build(project *p, int jobs)
{
    for (int i = 0; i < p->n_sources; i++)
        if (write_source(p, &p->sources[i]))
            return TOOL_FAILED;
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "cmake --build '%s' -j %d", p->build, jobs);
    fprintf(stderr, "building %s\n", p->build);
    return project_shell(p, "the build", command);
}

void project_free(project *p)
{
    for (int i = 0; i < p->n_mutants; i++) {
        free(p->mutants[i].before);
        free(p->mutants[i].after);
    }
    free(p->mutants);
    for (int i = 0; i < p->n_sources; i++)
        source_free(&p->sources[i]);
    free(p->sources);
    json_free(p->commands_json);
    tool_text_free(&p->commands);
}
