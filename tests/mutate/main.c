#define _GNU_SOURCE /* MAP_ANONYMOUS */
/* `./run mutate`: how many one-token mistakes in the kernels' PTX the parity tests notice.
 *
 * The program is the parity tests themselves, and those of test_kernels_*.c that launch kernels, with watch.c between them and ptxvm:
 * the mutants of every text that a test launches run on that test's data. One is killed when a launch, a check or a byte
 * of memory differs; refused when ptxvm does not load it, which says nothing about the data; equivalent when a rule of
 * proofs.c proves it, or ptxas gives it the original's cubin; unreached when no launch of this text executes its line with a
 * true guard: an emitter writes the same line into many texts, and a test runs each with few shapes. What survives is listed. */
#include "kernels/operations.h"
#include "mutate/mutants.h"
#include "mutate/proofs.h"
#include "mutate/sink.h"
#include "mutate/watch.h"
#include "support/random.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES_MAX = 20000, JOBS_MAX = 64, FAMILIES_MAX = 64 };

/* The tests that launch one text many times, with data and shapes that go through all of its lines; and part of the names of the kernels
 * that they are about, if they launch others as well. Other tests launch many texts a few times each, which shows that every setting
 * works, but leaves most mutants of each single text unjudged. What an emitter writes wrongly is in all of its texts, so it is judged where
 * a text has trials. */
static const struct {
    const char *tests, *kernels;
} trials[] = {
    {"KernelTrials.", NULL},
    {"KernelBlocks.Trials", NULL},
    {"Parity.MatrixTrials", NULL},
    {"ParityRepack.Trials", NULL},
    {"ParityKvCache.Trials", NULL},
    {"ParityTrain.Trials", NULL},
    {"ParityTrain.Lists", NULL},
    {"ParityKernels.Shapes", NULL},
    {"ParityKernels.StackShapes", NULL},
    {"ParityInteger.Trials", NULL},
    {"ParityInteger.DotTrials", "dot"},
    {"ParityInteger.TopTrials", "top"},
    {"ParityInteger.ConvTrials", "conv"},
    {"TensorTile.Trials", NULL},
    {"TensorStream.Trials", NULL},
    {"TensorFp8.Trials", NULL},
    {"TensorPrepack.", NULL},
};
enum { TRIALS = sizeof trials / sizeof trials[0] };

typedef struct tally {
    int texts, mutants, refused, killed, equivalent, unreached, survived;
} tally;

typedef struct test_at {
    const test_case *test;
    int index;
    const char *kernels; /* that it is about; null: all */
} test_at;

static struct {
    watch_options o;
    /* Parts of tests' names, between commas; with $ behind one, the end of a name. Null: trials. */
    const char *tests;
    int jobs, most_cases; /* 0: all */
    char ptxas[1024];
    test_at cases[CASES_MAX];
    int n_cases;
    bool is_found[TRIALS];
    int *next, *broken; /* shared: the next case or text; tests that fail without a mutation */
} all;

/* ---- Tests ---- */

static void name_of(const test_at *at, char *text, size_t size)
{
    char one[256] = "";
    if (at->test->count)
        at->test->case_name(at->index, one, sizeof one);
    snprintf(text, size, "%s.%s%s%s", at->test->suite, at->test->name, *one ? "/" : "", one);
}

static void shuffle(test_at *at, int count, uint64_t *random)
{
    for (int i = count - 1; i > 0; i--) {
        int other = (int)(random_next(random) % (uint64_t)(i + 1));
        test_at one = at[i];
        at[i] = at[other];
        at[other] = one;
    }
}

/* Whether a test's name has a part; at its end, where that part ends in $. */
static bool has_part(const char *name, const char *part)
{
    const size_t length = strlen(part), whole = strlen(name);
    if (length == 0 || part[length - 1] != '$')
        return strstr(name, part) != NULL;
    return whole >= length - 1 && strncmp(name + whole - (length - 1), part, length - 1) == 0;
}

static bool is_trial(const char *name, test_at *at)
{
    for (int i = 0; i < TRIALS; i++)
        if (strstr(name, trials[i].tests)) {
            at->kernels = trials[i].kernels;
            all.is_found[i] = true;
            return true;
        }
    return false;
}

/* Whether it has one of the parts that were asked for, which commas separate; a trial, where none were. */
static bool is_wanted(const char *name, test_at *at)
{
    if (!all.tests)
        return is_trial(name, at);
    for (const char *parts = all.tests;;) {
        char part[256];
        const size_t length = strcspn(parts, ",");
        snprintf(part, sizeof part, "%.*s", (int)length, parts);
        if (has_part(name, part))
            return true;
        if (!parts[length])
            return false;
        parts += length + 1;
    }
}

/* Of each test so many cases that the seed chooses, in an order that it chooses: long and short ones mixed. */
static void list_tests(void)
{
    uint64_t random = all.o.seed;
    for (const test_case *test = sink_tests(); test; test = test->next) {
        int first = all.n_cases;
        for (int i = 0, count = test->count ? test->count() : 1; i < count && all.n_cases < CASES_MAX; i++) {
            char name[512];
            test_at at = {test, i, NULL};
            name_of(&at, name, sizeof name);
            if (is_wanted(name, &at))
                all.cases[all.n_cases++] = at;
        }
        shuffle(all.cases + first, all.n_cases - first, &random);
        if (all.most_cases && all.n_cases > first + all.most_cases)
            all.n_cases = first + all.most_cases;
    }
    shuffle(all.cases, all.n_cases, &random);
}

/* A test that has another name now would go unnoticed. */
static void check_trials(void)
{
    for (int i = 0; i < TRIALS && !all.tests; i++)
        if (!all.is_found[i]) {
            fprintf(stderr, "there are no tests %s\n", trials[i].tests);
            ++*all.broken;
        }
}

static void run_tests(void)
{
    char name[512], why[4096];
    for (int i; (i = __atomic_fetch_add(all.next, 1, __ATOMIC_RELAXED)) < all.n_cases;) {
        name_of(&all.cases[i], name, sizeof name);
        fprintf(stderr, "[%d of %d] %s\n", i + 1, all.n_cases, name);
        sink_take(NULL, 0);
        watch_only(all.cases[i].kernels);
        all.cases[i].test->body(all.cases[i].index);
        if (sink_take(why, sizeof why) > 0) {
            fprintf(stderr, "%s fails without a mutation: %s\n", name, why);
            __atomic_fetch_add(all.broken, 1, __ATOMIC_RELAXED);
        }
    }
}

/* ---- Survivors ---- */

static bool assemble(const char *sm, const char *ptx, toolkit_result *cubin)
{
    char path[320];
    *cubin = (toolkit_result){0};
    snprintf(path, sizeof path, "%s/mutant%d.ptx", all.o.directory, (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fputs(ptx, file);
    fclose(file);
    return toolkit_ptxas(all.ptxas, sm, path, cubin);
}

static bool gives_the_same_cubin(const char *sm, const toolkit_result *original, const char *ptx)
{
    toolkit_result cubin;
    bool same = assemble(sm, ptx, &cubin) && cubin.bytes == original->bytes &&
                memcmp(cubin.data, original->data, cubin.bytes) == 0;
    toolkit_free(&cubin);
    return same;
}

/* A test noticed what a rule proves to be the same: the rule is wrong. */
static void check_rules(const watched_text *text, const char *ptx, const mutant *m)
{
    const char *rule = mutant_proof(ptx, m);
    if (!rule)
        return;
    fprintf(stderr, "\"%s\" is wrong: %s line %d becomes %s\n", rule, text->name, m->line, m->with);
    __atomic_fetch_add(all.broken, 1, __ATOMIC_RELAXED);
}

static void prove(watched_text *text, const char *ptx, const mutant *mutants)
{
    for (int i = 0; i < text->count; i++)
        if (text->state[i] == MUTANT_KILLED)
            check_rules(text, ptx, &mutants[i]);
        else if (text->state[i] == MUTANT_ALIVE && text->reached[i] && mutant_proof(ptx, &mutants[i]))
            text->state[i] = MUTANT_EQUIVALENT;
}

static void compare_cubins(watched_text *text, const char *ptx, const mutant *mutants)
{
    toolkit_result cubin = {0};
    char sm[16] = "";
    bool has_cubin = false;
    const char *target = strstr(ptx, ".target ");
    if (target)
        sscanf(target + 8, "%15[a-z0-9_]", sm);
    for (int i = 0; i < text->count && all.ptxas[0]; i++) {
        if (text->state[i] != MUTANT_ALIVE || !text->reached[i])
            continue;
        if (!cubin.data && !cubin.log)
            has_cubin = assemble(sm, ptx, &cubin);
        char *changed = has_cubin ? mutant_text(ptx, &mutants[i]) : NULL;
        if (changed && gives_the_same_cubin(sm, &cubin, changed))
            text->state[i] = MUTANT_EQUIVALENT;
        free(changed);
    }
    toolkit_free(&cubin);
}

/* What the rules, and after them ptxas, say of the mutants that are left. */
static void look_again(void (*look)(watched_text *text, const char *ptx, const mutant *mutants))
{
    static mutant mutants[WATCH_MUTANTS_MAX];
    for (int i; (i = __atomic_fetch_add(all.next, 1, __ATOMIC_RELAXED)) < WATCH_TEXTS_MAX;) {
        watched_text *text = watch_at(i);
        char *ptx = NULL;
        if (text && text->launches > 0 && watch_mutants(text, &ptx, mutants))
            look(text, ptx, mutants);
        free(ptx);
    }
}

static void prove_all(void)
{
    look_again(prove);
}

static void compare_all_cubins(void)
{
    look_again(compare_cubins);
}

static void in_processes(void (*work)(void))
{
    *all.next = 0;
    fflush(NULL);
    for (int i = 0; i < all.jobs; i++)
        if (fork() == 0) {
            work();
            _exit(0);
        }
    for (int status; wait(&status) > 0;)
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            fprintf(stderr, "a process ended early: its tests are missing\n");
            ++*all.broken;
        }
}

/* ---- Reporting ---- */

static void count(tally *t, mutant_state state, bool is_reached)
{
    t->mutants += state != MUTANT_UNTRIED;
    t->refused += state == MUTANT_REFUSED;
    t->killed += state == MUTANT_KILLED;
    t->equivalent += state == MUTANT_EQUIVALENT;
    t->unreached += state == MUTANT_ALIVE && !is_reached;
    t->survived += state == MUTANT_ALIVE && is_reached;
}

static void print_head(const char *what)
{
    printf("\n%-24s %6s %8s %8s %8s %11s %10s %9s %7s\n", what, "texts", "mutants", "refused", "killed",
           "equivalent", "unreached", "survived", "score");
}

static void print_tally(const char *name, const tally *t)
{
    int judged = t->killed + t->survived;
    printf("%-24s %6d %8d %8d %8d %11d %10d %9d ", name, t->texts, t->mutants, t->refused, t->killed,
           t->equivalent, t->unreached, t->survived);
    if (judged)
        printf("%6.1f%%\n", 100.0 * t->killed / judged);
    else
        printf("%7s\n", "-");
}

static void print_mutant(const watched_text *text, const char *ptx, const mutant *m)
{
    const char *line = ptx + m->at;
    while (line > ptx && line[-1] != '\n')
        line--;
    line += *line == '\t';
    int length = (int)strcspn(line, "\n"), before = (int)(ptx + m->at - line);
    printf("  %s (%d launches) line %d: %s: %.*s -> %.*s%s%.*s\n", text->name, text->launches, m->line,
           mutant_class_names[m->kind], length, line, before, line, m->with,
           length - before - (int)m->length < 0 ? 0 : length - before - (int)m->length,
           line + before + m->length);
}

typedef struct family {
    char name[32];
    tally t;
} family;

static tally *family_find(family families[FAMILIES_MAX], const char *name)
{
    int i = 0;
    while (i < FAMILIES_MAX - 1 && families[i].name[0] && strcmp(families[i].name, name) != 0)
        i++;
    snprintf(families[i].name, sizeof families[i].name, "%s", name);
    return &families[i].t;
}

static int compare_families(const void *a, const void *b)
{
    return strcmp(((const family *)a)->name, ((const family *)b)->name);
}

/* The mutants that no launch killed: those whose lines were executed, or those whose lines were not. */
static void list_alive(const char *head, bool is_reached)
{
    static mutant mutants[WATCH_MUTANTS_MAX];
    printf("\n%s:\n", head);
    for (int place = 0; place < WATCH_TEXTS_MAX; place++) {
        const watched_text *text = watch_at(place);
        char *ptx = NULL;
        if (text && text->launches > 0 && watch_mutants(text, &ptx, mutants))
            for (int i = 0; i < text->count; i++)
                if (text->state[i] == MUTANT_ALIVE && text->reached[i] == is_reached)
                    print_mutant(text, ptx, &mutants[i]);
        free(ptx);
    }
}

static void report(void)
{
    static family families[FAMILIES_MAX];
    static tally classes[MUTANT_CLASSES];
    static mutant mutants[WATCH_MUTANTS_MAX];
    tally total = {0};
    list_alive("Unreached", false);
    list_alive("Survivors", true);
    for (int place = 0; place < WATCH_TEXTS_MAX; place++) {
        const watched_text *text = watch_at(place);
        char *ptx = NULL;
        if (!text || text->launches == 0 || !watch_mutants(text, &ptx, mutants))
            continue;
        tally *of_family = family_find(families, text->family);
        of_family->texts++, total.texts++;
        for (int i = 0; i < text->count; i++) {
            count(of_family, text->state[i], text->reached[i]);
            count(&classes[mutants[i].kind], text->state[i], text->reached[i]);
            count(&total, text->state[i], text->reached[i]);
        }
        free(ptx);
    }
    int n = 0;
    while (n < FAMILIES_MAX && families[n].name[0])
        n++;
    qsort(families, (size_t)n, sizeof families[0], compare_families);
    print_head("kernels");
    for (int i = 0; i < n; i++)
        print_tally(families[i].name, &families[i].t);
    print_head("class");
    for (int i = 0; i < MUTANT_CLASSES; i++)
        print_tally(mutant_class_names[i], &classes[i]);
    print_tally("all", &total);
}

/* ---- Kernels that a run says nothing about ---- */

static int print_wrapped(const char *word, int width)
{
    enum { LINE = 100 };
    if (width == 0 || width + (int)strlen(word) > LINE)
        return printf("\n  %s", word);
    return width + printf(" %s", word);
}

/* Of an operation's kernels: how many there are, and how many are in the list. */
static int count_kernels(const operation_row *operation, const bool *is_listed)
{
    int count = 0;
    for (int i = 0; i < kernel_row_count; i++)
        count += kernel_rows[i].operation == operation && (!is_listed || is_listed[i]);
    return count;
}

/* An operation of which all are in the list is one word. */
static void print_kernels(const char *what, const bool *is_listed)
{
    int listed = 0, width = 0;
    for (int i = 0; i < kernel_row_count; i++)
        listed += is_listed[i];
    if (listed == 0)
        return;
    printf("\n%s, of %d kernels: %d", what, kernel_row_count, listed);
    for (const operation_row *o = operation_rows; o < operation_rows + KERNEL_OPERATIONS; o++) {
        char word[64];
        const bool has_all = count_kernels(o, is_listed) == count_kernels(o, NULL);
        snprintf(word, sizeof word, "%s_*", o->name);
        if (has_all && count_kernels(o, NULL) > 2)
            width = print_wrapped(word, width);
        else
            for (int i = 0; i < kernel_row_count; i++)
                if (kernel_rows[i].operation == o && is_listed[i])
                    width = print_wrapped(kernel_rows[i].name, width);
    }
    printf("\n");
}

/* So that a score is not mistaken for one of the whole registry. */
static void report_missing(void)
{
    enum { KERNELS_MAX = 1024 };
    static bool is_launched[KERNELS_MAX], has_mutants[KERNELS_MAX], missing[KERNELS_MAX],
        unmutated[KERNELS_MAX];
    for (int place = 0; place < WATCH_TEXTS_MAX; place++) {
        const watched_text *text = watch_at(place);
        if (!text)
            continue;
        is_launched[text->row - kernel_rows] |= text->runs > 0;
        has_mutants[text->row - kernel_rows] |= text->launches > 0 && text->count > 0;
    }
    for (int i = 0; i < kernel_row_count; i++) {
        missing[i] = !is_launched[i];
        unmutated[i] = is_launched[i] && !has_mutants[i];
    }
    print_kernels("not launched", missing);
    print_kernels("launched without mutants", unmutated);
}

/* ---- The command ---- */

static int usage(void)
{
    fprintf(stderr, "usage: mutate [--seed N] [--mutants N per text] [--percent N of the texts] [--class "
                    "NAME] [--tests PART OF A "
                    "TEST'S NAME] [--cases N of each test] [--jobs N] [PART OF A KERNEL'S NAME]\n");
    return 2;
}

static bool parse(int argc, char **argv)
{
    all.o = (watch_options){.seed = 1, .per_text = 5, .percent = 100};
    all.jobs = 2;
    all.most_cases = -1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = "";
        if (strcmp(argv[i], "--seed") == 0 && value)
            all.o.seed = strtoull(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--mutants") == 0 && value)
            all.o.per_text = (int)strtol(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--percent") == 0 && value)
            all.o.percent = (int)strtol(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--cases") == 0 && value)
            all.most_cases = (int)strtol(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--jobs") == 0 && value)
            all.jobs = (int)strtol(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--class") == 0 && value)
            all.o.only = argv[++i];
        else if (strcmp(argv[i], "--tests") == 0 && value)
            all.tests = argv[++i];
        else if (argv[i][0] != '-' && !all.o.filter)
            all.o.filter = argv[i];
        else
            return false;
        if (*end)
            return false;
    }
    if (all.most_cases < 0) /* a sample, but every test that launches a certain kernel */
        all.most_cases = all.o.filter ? 0 : 8;
    return all.o.per_text > 0 && all.o.per_text <= WATCH_MUTANTS_MAX && all.jobs > 0 && all.jobs <= JOBS_MAX;
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv))
        return usage();
    all.next = mmap(NULL, 2 * sizeof *all.next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all.next == MAP_FAILED || !toolkit_make_directory(all.o.directory, sizeof all.o.directory) ||
        !watch_begin(&all.o)) {
        fprintf(stderr, "mutate: no memory, or no temporary files\n");
        return 1;
    }
    all.broken = all.next + 1;
    if (!toolkit_find_ptxas(all.ptxas, sizeof all.ptxas)) {
        all.ptxas[0] = 0;
        printf("There is no ptxas: some equivalent mutants count as survivors.\n");
    }
    printf("seed %llu, %d mutants of each text, %d%% of the texts\n", (unsigned long long)all.o.seed,
           all.o.per_text, all.o.percent);
    list_tests();
    check_trials();
    in_processes(run_tests);
    in_processes(prove_all);
    in_processes(compare_all_cubins);
    report();
    if (!all.o.filter)
        report_missing();
    toolkit_remove_directory(all.o.directory);
    return *all.broken > 0;
}
