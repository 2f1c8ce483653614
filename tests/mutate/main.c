/* `./run mutate`: how many one-token mistakes in the kernels' PTX the parity data notice.
 *
 * Every mutant runs on ptxvm with all checks on against host_ref, with the trials that the suite runs too
 * (test_kernels_trials.c). One is killed when a launch, a check or a comparison fails; refused when ptxvm does not load
 * it, which says nothing about the data; equivalent when a rule of proofs.c proves it, or ptxas gives it the original's cubin.
 * What survives is listed. */
#include "mutate/mutants.h"
#include "mutate/proofs.h"
#include "mutate/sink.h"
#include "test_kernels_trials.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_LIMIT = 300000, WAIT_SECONDS = 2 };

typedef struct options {
    uint64_t seed;
    int per_kernel;            /* 0: all */
    const char *filter, *only; /* part of a kernel's name; a class */
    bool verbose;
} options;

typedef struct tally {
    int mutants, refused, killed, equivalent, survived;
} tally;

typedef struct session {
    options o;
    char ptxas[1024], directory[256]; /* empty where there is no ptxas */
    tally by_class[MUTANT_CLASSES];
    FILE *survivors;
    int broken; /* kernels that fail without a mutation */
} session;

/* The text of one setting, and what it is compared with. */
typedef struct subject {
    const kernel_row *row;
    trial_setting setting;
    char *ptx;
    toolkit_result cubin;
    parity_trial trials[TRIALS_MAX];
    int n_trials;
} subject;

/* ---- Running ---- */

static bool loads(const subject *s, const char *ptx)
{
    ptxvm *vm;
    ptxvm_module *module = NULL;
    if (ptxvm_create(&(ptxvm_config){.sm = s->setting.sm, .threads = 1}, &vm) != PTXVM_OK)
        return false;
    bool ok = ptxvm_module_load(vm, ptx, strlen(ptx), &module) == PTXVM_OK;
    if (module)
        ptxvm_module_unload(module);
    ptxvm_destroy(vm);
    return ok;
}

/* How many trials the text stands; all of them: it survives. The first failure ends it. */
static int stands(const subject *s, const char *ptx, char *why, size_t size)
{
    ptxvm_config config = {.sm = s->setting.sm,
                           .threads = 1,
                           .step_limit = STEP_LIMIT,
                           .wait_seconds = WAIT_SECONDS,
                           .checks = PTXVM_CHECK_ALL};
    ptxvm *vm;
    if (ptxvm_create(&config, &vm) != PTXVM_OK)
        return 0;
    int passed = 0;
    sink_take(NULL, 0);
    while (passed < s->n_trials) {
        parity_trials(vm, s->row, &s->setting.spec, ptx, &s->trials[passed], 1);
        if (sink_take(why, size) > 0)
            break;
        passed++;
    }
    ptxvm_destroy(vm);
    return passed;
}

static bool assemble(const session *all, const subject *s, const char *ptx, toolkit_result *cubin)
{
    char path[300];
    *cubin = (toolkit_result){0};
    if (!all->ptxas[0])
        return false;
    snprintf(path, sizeof path, "%s/mutant.ptx", all->directory);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fputs(ptx, file);
    fclose(file);
    return toolkit_ptxas(all->ptxas, s->setting.sm, path, cubin);
}

static bool is_equivalent(const session *all, const subject *s, const char *ptx)
{
    toolkit_result cubin;
    bool same = s->cubin.data && assemble(all, s, ptx, &cubin) && cubin.bytes == s->cubin.bytes &&
                memcmp(cubin.data, s->cubin.data, cubin.bytes) == 0;
    if (s->cubin.data)
        toolkit_free(&cubin);
    return same;
}

/* ---- Judging ---- */

static void list_survivor(session *all, const subject *s, const mutant *m)
{
    char name[KERNEL_FILE_NAME];
    const char *line = s->ptx + m->at;
    while (line > s->ptx && line[-1] != '\n')
        line--;
    line += *line == '\t';
    int length = (int)strcspn(line, "\n"), before = (int)(s->ptx + m->at - line);
    kernel_file_name(s->row, &s->setting.spec, ptx_sm_find(s->setting.sm), name, sizeof name);
    fprintf(all->survivors, "%s:%d: %s: %.*s -> %.*s%s%.*s\n", name, m->line, mutant_class_names[m->kind],
            length, line, before, line, m->with, length - before - (int)m->length, line + before + m->length);
}

static void add_to(tally *to, const tally *one)
{
    to->mutants += one->mutants;
    to->refused += one->refused;
    to->killed += one->killed;
    to->equivalent += one->equivalent;
    to->survived += one->survived;
}

static void judge(session *all, const subject *s, const mutant *m, tally *kernel)
{
    tally one = {.mutants = 1};
    char *ptx = mutant_text(s->ptx, m);
    if (!ptx)
        return;
    if (!loads(s, ptx))
        one.refused = 1;
    else if (stands(s, ptx, NULL, 0) < s->n_trials)
        one.killed = 1;
    else if (mutant_proof(s->ptx, m) || is_equivalent(all, s, ptx))
        one.equivalent = 1;
    else
        one.survived = 1;
    if (one.survived)
        list_survivor(all, s, m);
    add_to(kernel, &one);
    add_to(&all->by_class[m->kind], &one);
    free(ptx);
}

/* So many of the setting's mutants, each at most once: a partial shuffle. */
static void judge_setting(session *all, const subject *s, int wanted, tally *kernel)
{
    uint64_t random =
        all->o.seed * 1000003 + (uint64_t)(s->row - kernel_rows) * 101 + s->setting.spec.group_size;
    int count;
    mutant *list = mutants_of(s->ptx, random, &count);
    if (all->o.only) {
        int kept = 0;
        for (int i = 0; i < count; i++)
            if (strcmp(mutant_class_names[list[i].kind], all->o.only) == 0)
                list[kept++] = list[i];
        count = kept;
    }
    if (wanted == 0 || wanted > count)
        wanted = count;
    for (int i = 0; i < wanted; i++) {
        int other = i + (int)(mutant_random(&random) % (uint64_t)(count - i));
        mutant m = list[other];
        list[other] = list[i];
        judge(all, s, &m, kernel);
    }
    free(list);
}

static bool open_subject(session *all, const kernel_row *row, const trial_setting *setting, subject *s)
{
    kernel_text text;
    ptx_error error;
    char why[512] = "";
    *s = (subject){.row = row, .setting = *setting};
    if (!kernel_emit(row, &setting->spec, ptx_sm_find(setting->sm), NULL, &text, &error)) {
        fprintf(stderr, "%s: %s\n", row->name, error.text);
        return false;
    }
    s->ptx = text.ptx;
    s->n_trials = trials_for(row, &setting->spec, s->trials);
    int passed = stands(s, s->ptx, why, sizeof why);
    if (passed < s->n_trials) {
        fprintf(stderr, "%s fails without a mutation, in trial %d: %s\n", row->name, passed, why);
        return false;
    }
    assemble(all, s, s->ptx, &s->cubin);
    return true;
}

static void judge_kernel(session *all, const kernel_row *row, tally *kernel)
{
    trial_setting settings[TRIAL_SETTINGS_MAX];
    int count = trial_settings(row, settings);
    for (int i = 0; i < count; i++) {
        int share = all->o.per_kernel / count + (i < all->o.per_kernel % count);
        subject s;
        if (all->o.per_kernel > 0 && share == 0)
            continue;
        if (open_subject(all, row, &settings[i], &s))
            judge_setting(all, &s, share, kernel);
        else
            all->broken++;
        free(s.ptx);
        toolkit_free(&s.cubin);
    }
}

/* ---- Reporting ---- */

static void print_head(const char *what)
{
    printf("%-28s %8s %8s %8s %10s %9s %7s\n", what, "mutants", "refused", "killed", "equivalent", "survived",
           "score");
}

static void print_tally(const char *name, const tally *t)
{
    int judged = t->killed + t->survived;
    printf("%-28s %8d %8d %8d %10d %9d ", name, t->mutants, t->refused, t->killed, t->equivalent,
           t->survived);
    if (judged)
        printf("%6.1f%%\n", 100.0 * t->killed / judged);
    else
        printf("%7s\n", "-");
    fflush(stdout);
}

static void print_survivors(session *all)
{
    char line[1024];
    rewind(all->survivors);
    printf("\nSurvivors:\n");
    while (fgets(line, sizeof line, all->survivors))
        printf("  %s", line);
}

static void run_all(session *all)
{
    tally total = {0};
    print_head("kernel");
    for (int i = 0; i < kernel_row_count; i++) {
        const kernel_row *row = &kernel_rows[i];
        trial_setting settings[TRIAL_SETTINGS_MAX];
        tally kernel = {0};
        if (all->o.filter && !strstr(row->name, all->o.filter))
            continue;
        fprintf(stderr, "[%d of %d] %s\n", i + 1, kernel_row_count, row->name);
        if (trial_settings(row, settings) == 0) {
            printf("%-28s not run: not a flat tensor with scales of its own\n", row->name);
            continue;
        }
        judge_kernel(all, row, &kernel);
        print_tally(row->name, &kernel);
        add_to(&total, &kernel);
    }
    printf("\n");
    print_head("class");
    for (int i = 0; i < MUTANT_CLASSES; i++)
        print_tally(mutant_class_names[i], &all->by_class[i]);
    print_tally("all", &total);
    print_survivors(all);
}

/* ---- The command ---- */

static int usage(void)
{
    fprintf(stderr, "usage: mutate [--seed N] [--mutants N per kernel] [--all] [--class NAME] [PART OF A "
                    "KERNEL'S NAME]\n");
    return 2;
}

static bool parse(int argc, char **argv, options *o)
{
    *o = (options){.seed = 1, .per_kernel = 20};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = "";
        if (strcmp(argv[i], "--all") == 0)
            o->per_kernel = 0;
        else if (strcmp(argv[i], "--seed") == 0 && value)
            o->seed = strtoull(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--mutants") == 0 && value)
            o->per_kernel = (int)strtol(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--class") == 0 && value)
            o->only = argv[++i];
        else if (argv[i][0] != '-' && !o->filter)
            o->filter = argv[i];
        else
            return false;
        if (*end || o->per_kernel < 0)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    session all = {0};
    if (!parse(argc, argv, &all.o))
        return usage();
    all.survivors = tmpfile();
    if (!all.survivors || !toolkit_make_directory(all.directory, sizeof all.directory)) {
        fprintf(stderr, "mutate: no temporary files\n");
        return 1;
    }
    if (!toolkit_find_ptxas(all.ptxas, sizeof all.ptxas)) {
        all.ptxas[0] = 0;
        printf("There is no ptxas: equivalent mutants count as survivors.\n");
    }
    run_all(&all);
    toolkit_remove_directory(all.directory);
    fclose(all.survivors);
    return all.broken > 0;
}
