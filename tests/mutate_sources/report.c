/* What is printed and written in the end. */
#include "mutate_sources/judge.h"

#include <string.h>

typedef struct tally {
    char folder[64];
    int of[OUTCOMES];
} tally;

enum { FOLDERS_MAX = 16 };

static int sum(const tally *t)
{
    int all = 0;
    for (int i = 0; i < OUTCOMES; i++)
        all += t->of[i];
    return all;
}

static void print_row(const tally *t, FILE *out)
{
    const int judged = sum(t) - t->of[EQUIVALENT];
    fprintf(out, "%-10s %8d %8d %8d %9d %10d", t->folder, sum(t), t->of[NOTICED], t->of[SURVIVED],
            t->of[UNREACHED], t->of[EQUIVALENT]);
    if (judged > 0)
        fprintf(out, " %7.1f%%", 100.0 * t->of[NOTICED] / judged);
    fprintf(out, "\n");
}

/* The row of a mutant's folder, which may be new. */
static tally *row_of(tally *rows, int *count, const char *path)
{
    char folder[64];
    snprintf(folder, sizeof folder, "%.*s", (int)strcspn(path, "/"), path);
    for (int i = 0; i < *count; i++)
        if (strcmp(rows[i].folder, folder) == 0)
            return &rows[i];
    tally *new = &rows[*count < FOLDERS_MAX - 1 ? (*count)++ : *count - 1];
    snprintf(new->folder, sizeof new->folder, "%s", folder);
    return new;
}

static void print_mutants(const project *p, outcome which, const char *title, FILE *out)
{
    bool is_first = true;
    for (int i = 0; i < p->n_mutants; i++) {
        const mutant *m = &p->mutants[i];
        if (m->outcome != which)
            continue;
        if (is_first)
            fprintf(out, "\n%s\n", title);
        is_first = false;
        fprintf(out, "\n%s:%d %s", m->source->path, m->mistake->line, mistake_kind_name(m->mistake->kind));
        if (which == SURVIVED)
            fprintf(out, ", after %d of %d tests that reach its block", m->n_run, m->n_reach);
        fprintf(out, "\n  - %s\n  + %s\n", m->before, m->after);
        if (which == EQUIVALENT)
            fprintf(out, "  because %s\n", m->why);
    }
}

void report_print(const project *p, FILE *out)
{
    tally rows[FOLDERS_MAX] = {0}, all = {.folder = "all"};
    int count = 0;
    for (int i = 0; i < p->n_mutants; i++) {
        row_of(rows, &count, p->mutants[i].source->path)->of[p->mutants[i].outcome]++;
        all.of[p->mutants[i].outcome]++;
    }
    print_mutants(p, EQUIVALENT, "Equivalent, by the reviewed list:", out);
    print_mutants(p, UNREACHED, "Not reached by any test:", out);
    print_mutants(p, SURVIVED, "Survived:", out);
    fprintf(out, "\n%-10s %8s %8s %8s %9s %10s %8s\n", "folder", "mutants", "noticed", "survived",
            "unreached", "equivalent", "score");
    for (int i = 0; i < count; i++)
        print_row(&rows[i], out);
    print_row(&all, out);
}

static void add_string(tool_text *text, const char *name, const char *value)
{
    tool_printf(text, ", \"%s\": ", name);
    tool_quote(text, value);
}

int report_write(const project *p, uint64_t seed, const char *path)
{
    static const char *const words[OUTCOMES] = {[SURVIVED] = "survived",
                                                [UNREACHED] = "unreached",
                                                [NOTICED] = "noticed",
                                                [EQUIVALENT] = "equivalent"};
    tool_text text = {0};
    tool_printf(&text, "{\"seed\": %llu, \"dropped\": %d, \"mutants\": [", (unsigned long long)seed,
                p->n_dropped);
    for (int i = 0; i < p->n_mutants; i++) {
        const mutant *m = &p->mutants[i];
        tool_printf(&text, "%s\n  {\"line\": %d", i ? "," : "", m->mistake->line);
        add_string(&text, "file", m->source->path);
        add_string(&text, "kind", mistake_kind_name(m->mistake->kind));
        add_string(&text, "before", m->before);
        add_string(&text, "after", m->after);
        add_string(&text, "outcome", words[m->outcome]);
        if (m->why)
            add_string(&text, m->outcome == EQUIVALENT ? "reason" : "test", m->why);
        tool_printf(&text, ", \"hung\": %s, \"run\": %d, \"reach\": %d}", m->hung ? "true" : "false",
                    m->n_run, m->n_reach);
    }
    tool_printf(&text, "\n]}\n");
    const int status = tool_write(path, &text);
    tool_text_free(&text);
    return status;
}
