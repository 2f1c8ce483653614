/* Merges modules of one kernel each into one: the header of the first, then the rest of each, with a suffix
 * on the names of module scope. If that does not assemble, each module is assembled by itself to find the
 * faulty one. */
#include "support/assemble.h"

#include "support/process.h"
#include "test.h"
#include "tools/toolkit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void assembly_add(assembly *a, char *ptx, const char *note)
{
    if (a->count == a->room) {
        a->room = a->room ? 2 * a->room : 16;
        a->items = realloc(a->items, (size_t)a->room * sizeof *a->items);
        REQUIRE(a->items != NULL);
    }
    assembly_item *item = &a->items[a->count++];
    item->ptx = ptx;
    snprintf(item->note, sizeof item->note, "%s", note);
}

void assembly_free(assembly *a)
{
    for (int i = 0; i < a->count; i++)
        free(a->items[i].ptx);
    free(a->items);
    *a = (assembly){0};
}

/* ---- Merging modules ---- */

/* The text after .version, .target and .address_size. */
static const char *body_of(const char *ptx)
{
    const char *last = strstr(ptx, ".address_size");
    return last ? last + strcspn(last, "\n") : ptx;
}

static bool same_header(const char *a, const char *b)
{
    size_t length = (size_t)(body_of(a) - a);
    return length == (size_t)(body_of(b) - b) && memcmp(a, b, length) == 0;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

enum { NAMES_MAX = 8, NAME_SIZE = 128 };

/* The names declared by lines at the left margin: the entry, and variables, whose names come before "(" or
 * "[". */
static int names_of(const char *body, char names[NAMES_MAX][NAME_SIZE])
{
    int count = 0;
    for (const char *line = body; line && count < NAMES_MAX; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *end = line + strcspn(line, "([\n"), *first = end;
        if (*line != '.' || *end == '\n' || *end == 0)
            continue;
        while (is_name(first[-1]))
            first--;
        snprintf(names[count++], NAME_SIZE, "%.*s", (int)(end - first), first);
    }
    return count;
}

static bool is_declared(char names[NAMES_MAX][NAME_SIZE], int count, const char *word, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0)
            return true;
    return false;
}

/* The body with "_NUMBER" appended to each declared name. */
static void write_body(FILE *out, const char *body, int number)
{
    char names[NAMES_MAX][NAME_SIZE];
    int count = names_of(body, names);
    while (*body) {
        size_t length = 0;
        while (is_name(body[length]))
            length++;
        fwrite(body, 1, length ? length : 1, out);
        if (length && is_declared(names, count, body, length))
            fprintf(out, "_%d", number);
        body += length ? length : 1;
    }
}

/* Writes the items from `first` on that have the same header and are not done yet. */
static void write_module(FILE *out, const assembly *a, int first, bool *done)
{
    const char *ptx = a->items[first].ptx;
    fwrite(ptx, 1, (size_t)(body_of(ptx) - ptx), out);
    for (int i = first; i < a->count; i++) {
        if (done[i] || !same_header(ptx, a->items[i].ptx))
            continue;
        done[i] = true;
        write_body(out, body_of(a->items[i].ptx), i);
    }
}

/* ---- Assembling ---- */

typedef struct assembler {
    const char *ptxas, *sm;
    char path[300];
    void (*check)(const char *log);
    int checked; /* number of kernels */
} assembler;

/* Checks the parts of a log, each of which begins with the name of its kernel: "Compiling entry function
 * 'qdnn_lsq_7' ...". */
static void check_parts(assembler *s, const assembly *a, char *log)
{
    static const char start[] = "Compiling entry function '";
    CHECK(strstr(log, "warning") == NULL);
    for (char *part = strstr(log, start), *next; part; part = next) {
        next = strstr(part + 1, start);
        if (next)
            next[-1] = 0;
        char *end = strchr(part + strlen(start), '\''), *number = end;
        while (number > part && isdigit((unsigned char)number[-1]))
            number--;
        long item = strtol(number, NULL, 10);
        REQUIRE(item < a->count);
        test_push_note("%s", a->items[item].note);
        s->check(part);
        s->checked++;
        test_pop_note();
    }
}

/* Assembles one by one, to get an error message. */
static void find_the_wrong(const assembler *s, const assembly *a)
{
    int wrong = 0;
    for (int i = 0; i < a->count; i++) {
        FILE *file = fopen(s->path, "w");
        toolkit_result result;
        REQUIRE(file != NULL);
        fputs(a->items[i].ptx, file);
        fclose(file);
        if (!toolkit_ptxas(s->ptxas, s->sm, s->path, &result)) {
            FAIL("%s: %s", a->items[i].note, result.log ? result.log : "ptxas failed");
            wrong++;
        }
        toolkit_free(&result);
    }
    if (!wrong)
        FAIL("each assembles by itself, but not all as one module");
}

/* Assembles the module that begins with item `first`. Returns false if ptxas does not support the SM. */
static bool run_module(assembler *s, const assembly *a, int first, bool *done)
{
    FILE *file = fopen(s->path, "w");
    toolkit_result result;
    if (!CHECK(file != NULL))
        return true;
    write_module(file, a, first, done);
    fclose(file);
    bool ok = toolkit_ptxas(s->ptxas, s->sm, s->path, &result);
    bool known = ok || !result.log || !strstr(result.log, "gpu-name");
    if (ok)
        check_parts(s, a, result.log);
    else if (known)
        find_the_wrong(s, a);
    toolkit_free(&result);
    return known;
}

bool assembly_run(const assembly *a, const char *ptxas, const char *sm, void (*check)(const char *log))
{
    char dir[256];
    assembler s = {.ptxas = ptxas, .sm = sm, .check = check};
    bool known = true, *done = calloc((size_t)a->count + 1, sizeof *done);
    temp_dir_make(dir, sizeof dir);
    snprintf(s.path, sizeof s.path, "%s/kernels.ptx", dir);
    for (int i = 0; done && i < a->count && known; i++)
        if (!done[i])
            known = run_module(&s, a, i, done);
    if (known)
        CHECK_EQ_I64(s.checked, a->count);
    free(done);
    temp_dir_remove(dir);
    return known;
}

/* The cubin is an ELF header for CUDA (machine 190 at byte 18, sm_90 at 49), followed by the text. */
void stand_in_ptxas(const char *folder)
{
    static const char header[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8, [18] = (char)190, [49] = 90};
    static const char script[] = "#!/bin/sh\n"
                                 "for word; do\n"
                                 "    case $last in -o) cubin=$word;; esac\n"
                                 "    case $word in *.ptx) ptx=$word;; esac\n"
                                 "    last=$word\n"
                                 "done\n"
                                 "exec cat \"${0%/*}/header\" \"$ptx\" >\"$cubin\"\n";
    process_result made =
        process_run("mkdir -p %s/bin && cd %s/bin && cat >ptxas <<'END' && chmod +x ptxas\n%sEND\n", folder,
                    folder, script);
    CHECK_EQ_I64(made.status, 0);
    process_free(&made);
    char path[600];
    snprintf(path, sizeof path, "%s/bin/header", folder);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    fwrite(header, 1, sizeof header, file);
    fclose(file);
}
