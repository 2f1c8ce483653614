/* `./run texts`: whether a change of the sources changes what is emitted.
 *
 * For each kernel and settings of a list, and each SM, the text in its normal form (normal.h) is hashed, as are the launch (manifest,
 * launcher) and the steps of the operation for problems of several sizes. Two such files are compared; texts that differ
 * are emitted by both programs, assembled where there is ptxas, and their instructions compared. The program that wrote a file is kept
 * beside it, as FILE.emitter. */
#include "texts/cubin.h"
#include "texts/list.h"
#include "texts/normal.h"
#include "texts/texts.h"
#include "tools/tool.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MAX = 64, SHOWN = 3, PARTS_MAX = 64 };

static struct {
    const char *list, *write, *against, *part, *print[2], *change;
    const char *also[16];
    int n_also, jobs, percent, assembled;
} o = {.jobs = 2, .percent = 100, .assembled = 40};

static char folder[256]; /* for temporary files */

/* ---- Emitting ---- */

/* Of each kernel the first, and so many of the others. */
static bool is_sampled(const char *before, const char *key)
{
    const size_t name = strcspn(key, " ") + 1;
    if (o.part && !strstr(key, o.part))
        return false;
    return !before || strncmp(before, key, name) != 0 || (int)(normal_hash(key) % 100) < o.percent;
}

static void write_line(FILE *out, const char *key)
{
    kernel_spec spec;
    char error[512], hashes[TEXTS_LINE];
    const kernel_row *row = texts_open(key, &spec, error, sizeof error);
    if (row)
        texts_hashes(row, &spec, hashes);
    else
        snprintf(hashes, sizeof hashes, "refused=%016llx", (unsigned long long)normal_hash(error));
    fprintf(out, "%s\t%s\n", key, hashes);
}

/* Each process takes every jobs-th key. */
static bool emit_share(const text_list *keys, int job)
{
    char path[300];
    snprintf(path, sizeof path, "%s/share%d", folder, job);
    FILE *out = fopen(path, "w");
    for (int i = job; out && i < keys->count; i += o.jobs)
        write_line(out, keys->at[i]);
    return out && fclose(out) == 0;
}

static bool emit_all(const text_list *keys, text_list *lines)
{
    bool ok = true;
    fflush(NULL);
    for (int job = 0; job < o.jobs; job++)
        if (fork() == 0)
            _exit(emit_share(keys, job) ? 0 : 1);
    for (int status; wait(&status) > 0;)
        ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    for (int job = 0; job < o.jobs && ok; job++) {
        char path[300];
        snprintf(path, sizeof path, "%s/share%d", folder, job);
        ok = text_list_read(lines, path);
    }
    text_list_sort(lines);
    return ok;
}

/* ---- Lists ---- */

static bool write_list(const text_list *list, const char *path)
{
    FILE *out = fopen(path, "w");
    for (int i = 0; out && i < list->count; i++)
        fprintf(out, "%s\n", list->at[i]);
    return out && fclose(out) == 0;
}

/* The list of a file; where it is not there yet, it is made of the tests'. */
static bool read_list(const char *path, text_list *keys)
{
    char recorded[300];
    bool ok = true;
    if (access(path, R_OK) == 0) {
        ok = text_list_read(keys, path);
    } else {
        snprintf(recorded, sizeof recorded, "%s/recorded", folder);
        fprintf(stderr, "listing what the tests assemble, into %s\n", path);
        ok = list_of_tests(recorded) && text_list_read(keys, recorded);
        text_list_sort(keys);
        ok = ok && write_list(keys, path);
    }
    const int own = keys->count;
    for (int i = 0; i < o.n_also; i++)
        ok = ok && text_list_read(keys, o.also[i]);
    text_list_sort(keys);
    if (o.n_also)
        fprintf(stderr, "%d settings, and %d more\n", own, keys->count - own);
    return ok;
}

static void take_sample(text_list *keys)
{
    int kept = 0;
    for (int i = 0; i < keys->count; i++)
        if (is_sampled(kept ? keys->at[kept - 1] : NULL, keys->at[i]))
            keys->at[kept++] = keys->at[i];
        else
            free(keys->at[i]);
    keys->count = kept;
}

/* ---- Writing ---- */

static bool copy_program(const char *path)
{
    size_t bytes;
    char *program = toolkit_read_file("/proc/self/exe", &bytes);
    FILE *out = program ? fopen(path, "w") : NULL;
    bool ok = out && fwrite(program, 1, bytes, out) == bytes;
    ok = out && fclose(out) == 0 && ok && chmod(path, 0755) == 0;
    free(program);
    return ok;
}

static int write_file(void)
{
    char emitter[600];
    text_list keys = {0}, lines = {0};
    snprintf(emitter, sizeof emitter, "%s.emitter", o.write);
    bool ok = read_list(o.list, &keys);
    take_sample(&keys);
    ok = ok && emit_all(&keys, &lines) && write_list(&lines, o.write) && copy_program(emitter);
    if (ok)
        printf("%d settings for %d SMs each in %s\n", lines.count, ptx_sm_count(), o.write);
    text_list_free(&keys);
    text_list_free(&lines);
    return ok ? TOOL_OK : tool_fail("cannot write %s", o.write);
}

/* ---- Comparing ---- */

/* What differs for one kernel. */
typedef struct tally {
    const char *row;
    int settings, texts, texts_differ, launches_differ, steps_differ, others_differ;
    int same_code, other_code, not_assembled;
    char examples[SHOWN][TEXTS_KEY];
    int n_examples;
} tally;

static struct {
    tally *rows;
    int n_rows, assembled;
    char ptxas[1024];
} found;

static tally *tally_of(const char *key)
{
    const size_t length = strcspn(key, " \t");
    tally *last = found.n_rows ? &found.rows[found.n_rows - 1] : NULL;
    if (last && strlen(last->row) == length && strncmp(last->row, key, length) == 0)
        return last;
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)length, key);
    const kernel_row *row = kernel_find(name); /* of another program: may be unknown here */
    tally *t = &found.rows[found.n_rows++];
    *t = (tally){.row = row ? row->name : "?"};
    return t;
}

/* What the program beside the file makes of a part. */
static char *old_part(const char *key, const char *part)
{
    char path[300], command[TEXTS_KEY + 1200];
    snprintf(path, sizeof path, "%s/old", folder);
    snprintf(command, sizeof command, "'%s.emitter' --print '%s' %s >'%s'", o.against, key, part, path);
    return system(command) == 0 ? toolkit_read_file(path, NULL) : NULL;
}

static void assemble_both(tally *t, const char *key, const char *sm)
{
    kernel_spec spec;
    char error[512];
    const kernel_row *row = texts_open(key, &spec, error, sizeof error);
    char *old = old_part(key, sm), *ours = row ? texts_part(row, &spec, sm) : NULL;
    found.assembled++;
    switch (old && ours ? cubin_compare(found.ptxas, folder, sm, old, ours) : CUBIN_UNKNOWN) {
    case CUBIN_SAME:
        t->same_code++;
        break;
    case CUBIN_DIFFERS:
        t->other_code++;
        break;
    default:
        t->not_assembled++;
    }
    free(old);
    free(ours);
}

static void differs(tally *t, const char *key, const char *part)
{
    const bool is_text = strncmp(part, "sm_", 3) == 0;
    t->texts_differ += is_text;
    t->launches_differ += strcmp(part, "launch") == 0;
    t->steps_differ += strcmp(part, "steps") == 0;
    t->others_differ += strcmp(part, "refused") == 0;
    if (t->n_examples < SHOWN && (t->n_examples == 0 || !strstr(t->examples[t->n_examples - 1], key)))
        snprintf(t->examples[t->n_examples++], TEXTS_KEY, "'%s' %s", key, part);
    /* Where not all are assembled, those of many kernels rather than many of one. */
    const int of_one = o.assembled < 1000 ? 2 : o.assembled;
    if (is_text && found.ptxas[0] && found.assembled < o.assembled &&
        t->same_code + t->other_code + t->not_assembled < of_one)
        assemble_both(t, key, part);
    else
        t->not_assembled += is_text;
}

/* The value of a part in a line of hashes; null where the line does not have it. */
static const char *hash_of(const char *hashes, const char *name, size_t length)
{
    for (const char *at = hashes; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

static void compare_lines(char *was, char *is)
{
    char *hashes = strchr(was, '\t'), *now = strchr(is, '\t');
    *hashes++ = *now++ = 0;
    tally *t = tally_of(was);
    t->settings++;
    for (const char *at = now; *at; at += strcspn(at, " "), at += *at == ' ') {
        char part[32];
        const size_t length = strcspn(at, "=");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        const char *before = hash_of(hashes, at, length);
        t->texts += strncmp(part, "sm_", 3) == 0;
        if (!before || strncmp(before, at + length + 1, 16) != 0)
            differs(t, was, part);
    }
}

static bool is_different(const tally *t)
{
    return t->texts_differ || t->launches_differ || t->steps_differ || t->others_differ;
}

static void print_row(const tally *t)
{
    printf("%s: of %d settings", t->row, t->settings);
    if (t->texts_differ)
        printf(" %d of %d texts differ (instructions: %d the same, %d not, %d not compared)", t->texts_differ,
               t->texts, t->same_code, t->other_code, t->not_assembled);
    if (t->launches_differ)
        printf(" %d launches differ", t->launches_differ);
    if (t->steps_differ)
        printf(" %d operations' steps differ", t->steps_differ);
    if (t->others_differ)
        printf(" %d are refused now, or were", t->others_differ);
    printf("\n");
    for (int i = 0; i < t->n_examples; i++)
        printf("    --print %s\n", t->examples[i]);
}

/* A difference counts unless ptxas made the same instructions of every text. */
static int report(void)
{
    int rows = 0, texts = 0, settings = 0, wrong = 0;
    for (int i = 0; i < found.n_rows; i++) {
        const tally *t = &found.rows[i];
        settings += t->settings;
        texts += t->texts;
        if (!is_different(t))
            continue;
        rows++;
        wrong +=
            t->other_code || t->not_assembled || t->launches_differ || t->steps_differ || t->others_differ;
        print_row(t);
    }
    printf("%d settings of %d kernels, %d texts: ", settings, found.n_rows, texts);
    if (rows)
        printf("%d kernels differ, %d of them in more than names and order\n", rows, wrong);
    else
        printf("all the same\n");
    return wrong ? TOOL_FAILED : TOOL_OK;
}

static int compare_file(void)
{
    text_list was = {0}, keys = {0}, is = {0};
    bool ok = text_list_read(&was, o.against);
    int kept = 0;
    if (!ok)
        return tool_fail("cannot read %s; write it with --write before the change", o.against);
    for (int i = 0; i < was.count && ok; i++) {
        char key[TEXTS_KEY];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(was.at[i], "\t"), was.at[i]);
        if (!is_sampled(keys.count ? keys.at[keys.count - 1] : NULL, key))
            continue;
        ok = text_list_add(&keys, key);
        char *line = was.at[i];
        was.at[i] = was.at[kept];
        was.at[kept++] = line;
    }
    ok = ok && emit_all(&keys, &is) && is.count == kept;
    found.rows = calloc((size_t)kept + 1, sizeof *found.rows);
    if (!o.assembled || !toolkit_find_ptxas(found.ptxas, sizeof found.ptxas))
        found.ptxas[0] = 0;
    for (int i = 0; i < kept && ok && found.rows; i++)
        compare_lines(was.at[i], is.at[i]);
    const int status = ok && found.rows ? report() : tool_fail("cannot emit all of it");
    text_list_free(&was);
    text_list_free(&keys);
    text_list_free(&is);
    free(found.rows);
    return status;
}

/* ---- The command ---- */

static int print_part(void)
{
    kernel_spec spec;
    char error[512];
    const kernel_row *row = texts_open(o.print[0], &spec, error, sizeof error);
    char *part = row ? texts_part(row, &spec, o.print[1]) : NULL;
    if (!part)
        return tool_fail("%s: %s", o.print[0], row ? "the part is an SM, launch or steps" : error);
    fputs(part, stdout);
    free(part);
    return TOOL_OK;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: texts --write FILE | --against FILE | --print 'KERNEL SETTINGS' SM|launch|steps\n"
            "  --list FILE    the kernels and settings, one per line; made of what the tests assemble where "
            "it is missing\n"
            "  --also FILE    more of them: what tests record to the file that QDNN_TEXTS_RECORD names\n"
            "  --percent N    a sample of them, always the same\n"
            "  --part TEXT    those with this in the kernel's name and settings\n"
            "  --assemble N   so many texts that differ, at most (40)\n"
            "  --jobs N       processes (2)\n");
    return TOOL_USAGE;
}

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[++i] : NULL;
        if (!value)
            return false;
        if (strcmp(word, "--write") == 0)
            o.write = value;
        else if (strcmp(word, "--against") == 0)
            o.against = value;
        else if (strcmp(word, "--list") == 0)
            o.list = value;
        else if (strcmp(word, "--also") == 0 && o.n_also < 16)
            o.also[o.n_also++] = value;
        else if (strcmp(word, "--change") == 0)
            o.change = value;
        else if (strcmp(word, "--part") == 0)
            o.part = value;
        else if (strcmp(word, "--percent") == 0)
            o.percent = atoi(value);
        else if (strcmp(word, "--assemble") == 0)
            o.assembled = atoi(value);
        else if (strcmp(word, "--jobs") == 0)
            o.jobs = atoi(value);
        else if (strcmp(word, "--print") == 0 && i + 1 < argc)
            o.print[0] = value, o.print[1] = argv[++i];
        else
            return false;
    }
    return o.jobs >= 1 && o.jobs <= JOBS_MAX && (o.against || o.print[0] || (o.write && o.list));
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv))
        return usage();
    if (o.change)
        texts_change(o.change);
    if (o.print[0])
        return tool_finish(print_part());
    if (!toolkit_make_directory(folder, sizeof folder))
        return tool_fail("cannot make a temporary directory");
    const int status = o.write ? write_file() : compare_file();
    toolkit_remove_directory(folder);
    return tool_finish(status);
}
