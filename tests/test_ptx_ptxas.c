/* The claims of the instruction table, measured: every form is given to ptxas for every target and .version,
 * and has to be accepted exactly where the builder says so. ptxas reports all errors of a file by line, so
 * one run judges all forms. */
#include "support/process.h"
#include "test.h"
#include "test_ptx_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int versions[] = {63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
                               78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90};
enum { VERSION_COUNT = sizeof versions / sizeof *versions };

/* What the builder says of a form on a target: the instructions and the lowest version; 0: it refuses. */
typedef struct claim {
    char *body;
    int version, lines;
    char name[200];
} claim;

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static claim claim_of(int form, const ptx_sm *sm)
{
    claim c = {0};
    char *text;
    int major, minor;
    ptx_builder *b = ptx_open(sm, NULL);
    ptx_form_write(b, form, c.name, sizeof c.name);
    if (!ptx_close(b, &text, NULL))
        return c;
    if (sscanf(text, ".version %d.%d", &major, &minor) == 2)
        c.version = 10 * major + minor;
    c.body = ptx_body_of(text);
    c.lines = count_lines(c.body);
    free(text);
    return c;
}

/* Runs ptxas over the text; line_bad[n] becomes true for each line with an error. False: it cannot be run. */
static bool judge(const char *path, const ptx_sm *sm, bool *line_bad, int lines)
{
    char command[1024], answer[4096];
    snprintf(command, sizeof command, "'%s' -arch=%s '%s' -o /dev/null 2>&1", QDNN_PTXAS, sm->name, path);
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return false;
    memset(line_bad, 0, (size_t)lines);
    bool deliberate = false;
    while (fgets(answer, sizeof answer, pipe)) {
        const char *at = strstr(answer, ", line ");
        int line = at ? atoi(at + 7) : 0;
        if (line > 0 && line < lines)
            line_bad[line] = true;
        deliberate |= line == lines;
    }
    pclose(pipe);
    return deliberate;
}

/* All forms that are known anywhere, and a last line that is wrong on purpose: ptxas then stops after
 * checking. */
static int write_module(const char *path, const claim *best, int forms, int version, const ptx_sm *sm,
                        int *first_line)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return 0;
    fprintf(file, ".version %d.%d\n.target %s\n.address_size 64\n.visible .entry k()\n{\n", version / 10,
            version % 10, sm->name);
    fprintf(
        file,
        "\t.reg .pred %%p<64>; .reg .b8 %%b<64>; .reg .b16 %%h<64>; .reg .b32 %%r<64>; .reg .b64 %%d<64>;\n");
    int line = 7;
    for (int i = 0; i < forms; i++) {
        first_line[i] = line;
        line += best[i].lines;
        fputs(best[i].body ? best[i].body : "", file);
    }
    fprintf(file, "\tmov.b32 %%r1, not_there;\n\tret;\n}\n");
    fclose(file);
    return line;
}

static void compare(const claim *claims, const claim *best, int forms, int version, const ptx_sm *sm,
                    const bool *line_bad, const int *first_line)
{
    int wrong = 0;
    for (int i = 0; i < forms && wrong < 20; i++) {
        bool refused = false;
        for (int n = 0; n < best[i].lines; n++)
            refused |= line_bad[first_line[i] + n];
        bool claimed = claims[i].version && claims[i].version <= version;
        if (refused != !claimed) {
            wrong++;
            FAIL("%s, .version %d: %s %s; the builder says %d\n%s", sm->name, version, best[i].name,
                 refused ? "is refused" : "is accepted", claims[i].version, best[i].body);
        }
    }
}

static void measure(const ptx_sm *sm, const claim *best, int forms)
{
    char directory[256], path[300];
    temp_dir_make(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/forms.ptx", directory);
    claim *claims = calloc((size_t)forms, sizeof *claims);
    int *first_line = calloc((size_t)forms, sizeof *first_line);
    for (int i = 0; i < forms; i++)
        claims[i] = claim_of(i, sm);
    for (int v = 0; v < VERSION_COUNT; v++) {
        if (versions[v] < sm->version)
            continue;
        int last = write_module(path, best, forms, versions[v], sm, first_line);
        bool *line_bad = calloc((size_t)last + 1, sizeof *line_bad);
        if (CHECK(judge(path, sm, line_bad, last)))
            compare(claims, best, forms, versions[v], sm, line_bad, first_line);
        free(line_bad);
    }
    for (int i = 0; i < forms; i++)
        free(claims[i].body);
    free(claims);
    free(first_line);
    temp_dir_remove(directory);
}

static void name_of_sm(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", ptx_sm_get(index)->name);
}

TEST_EACH(PtxIsa, PtxasAgrees, ptx_sm_count, name_of_sm)
{
    if (!*QDNN_PTXAS || access(QDNN_PTXAS, X_OK))
        SKIP("there is no ptxas");
    int forms = ptx_form_count();
    claim *best = calloc((size_t)forms, sizeof *best);
    for (int i = 0; i < forms; i++) {
        best[i] = claim_of(i, ptx_sm_find("sm_100a")); /* has everything */
        if (!best[i].version)
            FAIL("%s is refused for sm_100a", best[i].name);
    }
    measure(ptx_sm_get(index), best, forms);
    for (int i = 0; i < forms; i++)
        free(best[i].body);
    free(best);
}
