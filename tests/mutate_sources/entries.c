/* The entries of CTest, and the record of what each reaches: build/reach/NAME has its status, its seconds and the numbers of its blocks. */
#include "mutate_sources/entries.h"

#include "base/json.h"

#include <limits.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct record {
    double seconds;
    int32_t status;
    uint32_t count; /* of block numbers behind this */
} record;

/* ---- Reading ---- */

static const json_value *property(const json_value *test, const char *name)
{
    const json_value *list = json_at(test, "properties");
    for (const json_value *one = list ? list->first : NULL; one; one = one->next) {
        const char *this = json_string(one, "name");
        if (this && strcmp(this, name) == 0)
            return json_at(one, "value");
    }
    return NULL;
}

static const char **texts_of(const json_value *array)
{
    const uint32_t count = array ? array->count : 0;
    const char **list = calloc((size_t)count + 1, sizeof *list);
    int n = 0;
    for (const json_value *one = array && list ? array->first : NULL; one; one = one->next)
        list[n++] = one->text;
    return list;
}

/* NAME.3_of_28, but not NAME.1_of_28. */
static bool is_later_part(const char *name)
{
    int part = 0, parts = 0;
    const char *dot = strrchr(name, '.');
    return dot && sscanf(dot, ".%d_of_%d", &part, &parts) == 2 && part > 1;
}

static bool is_wanted(const char *name, const selection *which)
{
    char part[256];
    const char *parts = which->parts;
    if (which->only_first && is_later_part(name))
        return false;
    if (!parts)
        return true;
    while (tool_next_part(&parts, part, sizeof part))
        if (strstr(name, part))
            return true;
    return false;
}

static void path_of(const entries *e, const entry *one, char *path, size_t size)
{
    snprintf(path, size, "%s/reach/%s", e->p->build, one->name);
}

static void read_record(const entries *e, entry *one)
{
    char path[PATH_MAX];
    record r;
    path_of(e, one, path, sizeof path);
    FILE *file = fopen(path, "rb");
    if (!file)
        return;
    one->is_recorded = fread(&r, sizeof r, 1, file) == 1;
    if (one->is_recorded) {
        one->seconds = r.seconds;
        one->status = r.status;
    }
    fclose(file);
}

static void forget_last(entries *e)
{
    entry *last = &e->list[--e->count];
    free(last->command);
    free(last->environment);
    *last = (entry){0};
}

static int take_tests(entries *e, const selection *which)
{
    const json_value *tests = json_at(json_root(e->json), "tests");
    e->list = calloc(tests ? (size_t)tests->count + 1 : 1, sizeof *e->list);
    if (!e->list)
        return tool_fail("out of memory");
    for (const json_value *one = tests ? tests->first : NULL; one; one = one->next) {
        const char *name = json_string(one, "name");
        const json_value *folder = property(one, "WORKING_DIRECTORY"), *command = json_at(one, "command");
        if (!name || !command || command->count == 0 || !is_wanted(name, which))
            continue;
        entry *new = &e->list[e->count++];
        new->name = name;
        new->folder = folder ? folder->text : NULL;
        new->command = texts_of(command);
        new->environment = texts_of(property(one, "ENVIRONMENT"));
        if (!new->command || !new->environment)
            return tool_fail("out of memory");
        read_record(e, new);
        if (which->only_recorded && !new->is_recorded)
            forget_last(e);
    }
    return e->count > 0
               ? TOOL_OK
               : tool_fail("there are no tests with '%s' in their names", which->parts ? which->parts : "");
}

int entries_read(entries *e, const project *p, const selection *which)
{
    char command[3 * PATH_MAX];
    tool_text text = {0};
    json_error error;
    *e = (entries){.p = p};
    snprintf(command, sizeof command,
             "mkdir -p '%s/reach' && ctest --test-dir '%s' --show-only=json-v1 >'%s/entries.json'", p->build,
             p->build, p->build);
    int status = project_shell(p, "ctest", command);
    snprintf(command, sizeof command, "%s/entries.json", p->build);
    if (!status)
        status = tool_read(command, &text);
    if (!status) {
        e->json = json_parse(text.data, text.size, &error);
        status = e->json ? take_tests(e, which) : tool_fail("%s: %s", command, error.reason);
    }
    tool_text_free(&text);
    return status;
}

void entries_free(entries *e)
{
    for (int i = 0; i < e->count; i++) {
        free(e->list[i].command);
        free(e->list[i].environment);
    }
    free(e->list);
    json_free(e->json);
    *e = (entries){0};
}

/* ---- Recording ---- */

typedef struct recorder {
    entries *e;
    double longest;
    bool again;
    int next, n_done, n_wanted;
    bool failed;
} recorder;

static void blocks_path(const recorder *r, int job, char *path, size_t size)
{
    snprintf(path, size, "%s/blocks%d.%d", r->e->p->build, (int)getpid(), job);
}

/* Times differ from run to run: a record that was ended a little earlier will do. */
static bool is_wanted_now(const recorder *r, const entry *e)
{
    return r->again || !e->is_recorded || (e->status == TOO_LONG && e->seconds < 0.8 * r->longest);
}

static pool_answer record_next(void *user, int job, started *out)
{
    recorder *r = user;
    while (r->next < r->e->count && !is_wanted_now(r, &r->e->list[r->next]))
        r->next++;
    if (r->next == r->e->count || r->failed)
        return POOL_FINISHED;
    char path[PATH_MAX];
    blocks_path(r, job, path, sizeof path);
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, BLOCK_IDS) != 0) {
        tool_fail("cannot write '%s'", path);
        r->failed = true;
    }
    if (file >= 0)
        close(file);
    *out = (started){.entry = &r->e->list[r->next++], .limit = r->longest};
    snprintf(out->settings[0], sizeof out->settings[0], "SOURCE_BLOCKS=%s", path);
    return r->failed ? POOL_FINISHED : POOL_START;
}

static int write_record(const recorder *r, int job, const entry *e)
{
    char path[PATH_MAX];
    tool_text text = {0}, blocks = {0};
    blocks_path(r, job, path, sizeof path);
    record head = {e->seconds, e->status, 0};
    if (tool_read(path, &blocks) || blocks.size != BLOCK_IDS)
        return TOOL_FAILED;
    for (int i = 0; i < BLOCK_IDS; i++)
        head.count += blocks.data[i] != 0;
    tool_append(&text, &head, sizeof head);
    for (uint32_t i = 0; i < BLOCK_IDS; i++)
        if (blocks.data[i])
            tool_append(&text, &i, sizeof i);
    path_of(r->e, e, path, sizeof path);
    const int status = tool_write(path, &text);
    blocks_path(r, job, path, sizeof path);
    unlink(path);
    tool_text_free(&text);
    tool_text_free(&blocks);
    return status;
}

static void record_ended(void *user, int job, entry *e, int status, double seconds)
{
    recorder *r = user;
    e->status = status;
    e->seconds = seconds;
    e->is_recorded = true;
    r->failed = write_record(r, job, e) != TOOL_OK || r->failed;
    project_progress("tests run without a mistake", ++r->n_done, r->n_wanted);
    if (status != 0 && status != SKIPPED && status != TOO_LONG)
        fprintf(stderr, "%s fails without a mistake (%d) and is left out\n", e->name, status);
}

int entries_too_long(const entries *e)
{
    int n = 0;
    for (int i = 0; i < e->count; i++)
        n += e->list[i].status == TOO_LONG;
    return n;
}

int entries_record(entries *e, int jobs, double longest, bool again)
{
    char scratch[PATH_MAX];
    recorder r = {.e = e, .longest = longest, .again = again};
    for (int i = 0; i < e->count; i++)
        r.n_wanted += is_wanted_now(&r, &e->list[i]);
    if (r.n_wanted == 0)
        return TOOL_OK;
    snprintf(scratch, sizeof scratch, "%s/scratch%d", e->p->build, (int)getpid());
    const pool p = {.user = &r, .jobs = jobs, .scratch = scratch, .next = record_next, .ended = record_ended};
    const int status = pool_run(&p);
    return status ? status : r.failed ? TOOL_FAILED : TOOL_OK;
}

int entries_reach(const entries *e, bool *reaches)
{
    bool *marks = calloc(BLOCK_IDS, sizeof *marks);
    if (!marks)
        return tool_fail("out of memory");
    for (int i = 0; i < e->count; i++) {
        char path[PATH_MAX];
        tool_text text = {0};
        record head;
        path_of(e, &e->list[i], path, sizeof path);
        if (tool_read(path, &text) || text.size < sizeof head) {
            tool_text_free(&text);
            continue;
        }
        memcpy(&head, text.data, sizeof head);
        const size_t count = (text.size - sizeof head) / sizeof(uint32_t);
        memset(marks, 0, BLOCK_IDS * sizeof *marks);
        for (size_t k = 0; k < count && k < head.count; k++) {
            uint32_t id;
            memcpy(&id, text.data + sizeof head + k * sizeof id, sizeof id);
            marks[id % BLOCK_IDS] = true;
        }
        for (int m = 0; m < e->p->n_mutants; m++) {
            const mutant *one = &e->p->mutants[m];
            reaches[(size_t)m * (size_t)e->count + (size_t)i] =
                head.status == 0 && marks[one->source->blocks[one->mistake->block].id];
        }
        tool_text_free(&text);
    }
    free(marks);
    return TOOL_OK;
}
