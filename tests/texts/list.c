#include "texts/list.h"

#include "mutate/sink.h"
#include "support/assemble.h"
#include "texts/record.h"
#include "tools/ptxgen/tool.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_list_add(text_list *list, const char *line)
{
    if (list->count == list->room) {
        const int room = list->room ? 2 * list->room : 1024;
        char **more = realloc(list->at, (size_t)room * sizeof *more);
        if (!more)
            return false;
        list->at = more;
        list->room = room;
    }
    const size_t size = strlen(line) + 1;
    char *own = malloc(size);
    if (own)
        list->at[list->count++] = memcpy(own, line, size);
    return own != NULL;
}

bool text_list_read(text_list *list, const char *path)
{
    char *text = toolkit_read_file(path, NULL), *rest = text;
    bool ok = text != NULL;
    for (char *line; ok && (line = strtok_r(rest, "\n", &rest));)
        ok = text_list_add(list, line);
    free(text);
    return ok;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void text_list_sort(text_list *list)
{
    int kept = 0;
    if (list->count)
        qsort(list->at, (size_t)list->count, sizeof *list->at, by_text);
    for (int i = 0; i < list->count; i++)
        if (kept && strcmp(list->at[kept - 1], list->at[i]) == 0)
            free(list->at[i]);
        else
            list->at[kept++] = list->at[i];
    list->count = kept;
}

void text_list_free(text_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->at[i]);
    free(list->at);
    *list = (text_list){0};
}

/* ---- What the tests assemble ---- */

/* The tests assemble nothing here: what they emit is recorded. */
void assembly_add(assembly *a, char *ptx, const char *note)
{
    (void)a, (void)note;
    free(ptx);
}

void assembly_free(assembly *a)
{
    (void)a;
}

bool assembly_run(const assembly *a, const char *ptxas, const char *sm, void (*check)(const char *log))
{
    (void)a, (void)ptxas, (void)sm, (void)check;
    return true;
}

static bool lists;
bool __real_toolkit_find_ptxas(char *path, size_t size);
bool __wrap_toolkit_find_ptxas(char *path, size_t size);
bool __wrap_toolkit_find_ptxas(char *path, size_t size)
{
    if (!lists)
        return __real_toolkit_find_ptxas(path, size);
    snprintf(path, size, "none");
    return true;
}

/* Settings depend little on the target: some stand for all. */
static bool is_for_listed(const char *name)
{
    static const char *const targets[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120a"};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const size_t length = strlen(targets[i]), whole = strlen(name);
        if (whole >= length && strcmp(name + whole - length, targets[i]) == 0)
            return true;
    }
    return false;
}

static bool assembles(const test_case *test)
{
    return (strcmp(test->suite, "Kernels") == 0 || strcmp(test->suite, "KernelsInteger") == 0) &&
           strstr(test->name, "Assemble") != NULL;
}

static int record_tests(void)
{
    int n = 0;
    lists = true;
    for (const test_case *test = sink_tests(); test; test = test->next)
        for (int i = 0; assembles(test) && i < test->count(); i++) {
            char name[256];
            test->case_name(i, name, sizeof name);
            if (is_for_listed(name)) {
                test->body(i);
                n++;
            }
        }
    lists = false;
    return n;
}

/* ---- What ptxgen --all writes ---- */

const char tool_program[] = "texts";

static bool record_all(void)
{
    char folder[256];
    tool_options options = {.mode = MODE_ALL,
                            .form = tool_form_find("json"),
                            .outdir = folder,
                            .sms = {ptx_sm_find("sm_90")},
                            .n_sms = 1};
    if (!toolkit_make_directory(folder, sizeof folder))
        return false;
    const bool ok = tool_all(&options) == TOOL_OK;
    toolkit_remove_directory(folder);
    return ok;
}

bool list_of_tests(const char *path)
{
    record_to(path, true);
    bool ok = record_tests() > 0;
    record_to(path, false);
    ok = record_all() && ok;
    record_to(NULL, false);
    return ok;
}
