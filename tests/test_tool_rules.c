/* What a bundle's manifest says in the terms of the problem, against the registry: every rule is evaluated
 * for problems of several sizes. And how several kernels make an operation. */
#include "kernels/operations.h"
#include "support/process.h"
#include "test.h"
#include "test_json.h"
#include "tools/toolkit.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PTXGEN QDNN_BINARY_DIR "/ptxgen/ptxgen"

/* ---- Evaluating a rule: + - * / (rounding down), ceil(a / b), min(a, b), parentheses, names, numbers ---- */

typedef struct evaluation {
    const char *at;
    const kernel_problem *problem;
    bool failed;
} evaluation;

static uint64_t sum(evaluation *e);

static void skip(evaluation *e, const char *token)
{
    while (*e->at == ' ')
        e->at++;
    size_t length = strlen(token);
    if (strncmp(e->at, token, length) != 0)
        e->failed = true;
    else
        e->at += length;
}

static bool next_is(evaluation *e, char c)
{
    while (*e->at == ' ')
        e->at++;
    if (*e->at != c)
        return false;
    e->at++;
    return true;
}

static uint64_t value_of(evaluation *e, const char *name)
{
    const kernel_problem *p = e->problem;
    const struct {
        const char *name;
        uint64_t value;
    } names[] = {
        {"n", p->rows * p->columns},
        {"rows", p->rows},
        {"columns", p->columns},
        {"m", p->m},
        {"x_stride", p->x_stride},
        {"y_stride", p->y_stride},
        {"experts", p->experts},
        {"table_rows", p->table_rows},
        {"b_stride", p->b_stride},
        {"pages", p->pages},
        {"page_slots", p->cache.page_slots},
        {"page_stride", p->cache.page_stride},
        {"slot_stride", p->cache.slot_stride},
        {"head_stride", p->cache.head_stride},
        {"value_page_stride", p->values.page_stride},
        {"value_slot_stride", p->values.slot_stride},
        {"value_head_stride", p->values.head_stride},
        {"table_pages", p->table_pages},
        {"positions", p->positions},
        {"dim_1", p->lines.dims[0]},
        {"dim_2", p->lines.dims[1]},
        {"x_stride_1", p->lines.x[0]},
        {"x_stride_2", p->lines.x[1]},
        {"x_stride_3", p->lines.x[2]},
        {"y_stride_1", p->lines.y[0]},
        {"y_stride_2", p->lines.y[1]},
        {"y_stride_3", p->lines.y[2]},
        {"window", p->window},
        {"mask_keys", p->mask_keys},
        {"mask_stride", p->mask_stride},
        {"mask_head_stride", p->mask_head_stride},
        {"top", p->top},
        {"conv_channels", p->conv.channels},
        {"conv_h", p->conv.in[0]},
        {"conv_w", p->conv.in[1]},
        {"conv_out_h", p->conv.out[0]},
        {"conv_out_w", p->conv.out[1]},
        {"conv_outputs", p->conv.outputs / p->conv.groups},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].value;
    e->failed = true;
    return 0;
}

static uint64_t factor(evaluation *e, bool rounds_up);

/* a * b / c: within ceil() the last quotient is rounded up. */
static uint64_t product(evaluation *e, bool rounds_up)
{
    uint64_t value = factor(e, rounds_up);
    for (;;)
        if (next_is(e, '*'))
            value *= factor(e, false);
        else if (next_is(e, '/')) {
            uint64_t by = factor(e, false);
            value = by ? (value + (rounds_up ? by - 1 : 0)) / by : 0;
        } else
            return value;
}

static uint64_t factor(evaluation *e, bool rounds_up)
{
    char name[32] = "";
    (void)rounds_up;
    if (next_is(e, '(')) {
        uint64_t value = sum(e);
        skip(e, ")");
        return value;
    }
    if (isdigit((unsigned char)*e->at))
        return strtoull(e->at, (char **)&e->at, 10);
    for (size_t i = 0; (isalpha((unsigned char)*e->at) || *e->at == '_') && i + 1 < sizeof name; i++)
        name[i] = *e->at++;
    if (strcmp(name, "ceil") == 0) {
        skip(e, "(");
        uint64_t value = product(e, true);
        skip(e, ")");
        return value;
    }
    if (strcmp(name, "min") == 0) {
        skip(e, "(");
        uint64_t a = sum(e);
        skip(e, ",");
        uint64_t b = sum(e);
        skip(e, ")");
        return a < b ? a : b;
    }
    return value_of(e, name);
}

static uint64_t sum(evaluation *e)
{
    uint64_t value = product(e, false);
    for (;;)
        if (next_is(e, '+'))
            value += product(e, false);
        else if (next_is(e, '-'))
            value -= product(e, false);
        else
            return value;
}

static bool evaluate(const char *rule, const kernel_problem *problem, uint64_t *value)
{
    evaluation e = {.at = rule, .problem = problem};
    *value = sum(&e);
    return !e.failed && *e.at == 0;
}

/* ---- The bundle: its manifest alone, written once ---- */

static json *manifest_of(const char *settings)
{
    char dir[256], path[300];
    temp_dir_make(dir, sizeof dir);
    process_result r = process_run("%s --all --sm 90 --emit json %s --outdir %s/b", PTXGEN, settings, dir);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "");
    process_free(&r);
    snprintf(path, sizeof path, "%s/b/manifest.json", dir);
    char *text = toolkit_read_file(path, NULL);
    json *doc = read_json(text ? text : "{}");
    free(text);
    temp_dir_remove(dir);
    return doc;
}

static json *manifest(void)
{
    static json *doc;
    if (!doc)
        doc = manifest_of("");
    return doc;
}

static const kernel_row *read_kernel(const json_value *entry, kernel_spec *spec)
{
    const kernel_row *row = kernel_find(json_string(entry, "kernel"));
    char error[256];
    *spec = kernel_spec_default();
    for (const json_value *s = json_at(entry, "settings")->first; row && s; s = s->next)
        CHECK(kernel_spec_set(row, spec, s->name, s->text, error, sizeof error));
    if (row)
        *spec = kernel_spec_normal(row, spec);
    return row;
}

/* Sizes without a pattern; columns are whole blocks. */
static kernel_problem problem_of(const kernel_row *row, int which)
{
    static const uint64_t sizes[][4] = {{1, 1, 1, 3}, {37, 5, 3, 1}, {1000, 77, 129, 5}};
    const uint64_t *s = sizes[which], columns = s[1] * kernel_columns_multiple(row);
    return (kernel_problem){.rows = 2 * s[0],
                            .columns = columns,
                            .m = s[2] * s[3],
                            .x_stride = 2 * s[0] + columns,
                            .y_stride = 2 * s[0] + columns + 1,
                            .table_rows = s[0] + 5,
                            .b_stride = s[2] * s[3] + 2,
                            .pages = s[1],
                            .table_pages = s[2],
                            .positions = s[0],
                            .window = s[1],
                            .mask_keys = s[2],
                            .mask_stride = s[2] + 3,
                            .mask_head_stride = (s[2] + 3) * s[3],
                            .cache = {s[3], 4096 * s[3], 1024, 64},
                            .values = {s[3], 2048 * s[3], 512, 128},
                            .lines = {{s[3], s[2]}, {s[1], 3, 2}, {s[0], 5, 4}},
                            .experts = s[3],
                            .top = s[3],
                            .conv = {.images = s[3],
                                     .channels = 16,
                                     .outputs = 16,
                                     .groups = 1,
                                     .in = {s[0], s[1]},
                                     .out = {s[2], 1}}};
}

static uint64_t bytes_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         int operand)
{
    kernel_description d;
    uint64_t numbers[NUMBERS];
    kernel_describe(row, spec, &d);
    description_numbers(&d, problem, numbers);
    const kernel_pointer *p = description_find(&d, operand);
    return p ? pointer_bytes(p, numbers) : 0;
}

static int operand_of(const char *name)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (kernel_operand_name((qdnnOperand_t)i) && strcmp(kernel_operand_name((qdnnOperand_t)i), name) == 0)
            return i;
    return -1;
}

static unsigned element_size(const char *element)
{
    unsigned bits = 0;
    /* e4m3, e5m2 and e8m0 have a letter behind the number */
    char after = 0;
    return sscanf(element, "%*[a-z]%u%c", &bits, &after) == 1 ? bits / 8 : 1;
}

/* One pointer for all problems: rule, direction, element. How many sizes were compared. */
static int check_pointer(const kernel_row *row, const kernel_spec *spec, const json_value *p)
{
    const char *name = json_string(p, "name"), *rule = json_string(p, "bytes"),
               *direction = json_string(p, "direction");
    const char *element = json_string(p, "element");
    int operand = operand_of(name), compared = 0;
    uint64_t align = 0;
    CHECK(direction && (!strcmp(direction, "in") || !strcmp(direction, "out")));
    CHECK(element && *element);
    if (!rule)
        return CHECK(json_at(p, "workspace") != NULL) - 1;
    CHECK(json_u64(p, "align", &align));
    if (element && strcmp(element, "block") && strcmp(name, "codes") && strcmp(name, "repacked"))
        CHECK_EQ_U64(element_size(element), align);
    for (int i = 0; i < 3; i++) {
        kernel_problem problem = problem_of(row, i);
        uint64_t got = 0, expected = bytes_of(row, spec, &problem, operand);
        if (!expected)
            continue; /* the caller does not bind it: another kernel of the operation makes it */
        test_push_note("%s: %s: %s", row->name, name, rule);
        CHECK(evaluate(rule, &problem, &got));
        CHECK_EQ_U64(got, expected);
        test_pop_note();
        compared++;
    }
    return compared;
}

/* Plans know how many blocks fewer rows need without evaluating rules: each must be the rule's own value. How many grids follow the
 * rows. */
static int check_fewer_rows(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                            kernel_number which)
{
    kernel_description d;
    kernel_row_blocks blocks;
    uint64_t numbers[NUMBERS];
    int follow = 0;
    kernel_describe(row, spec, &d);
    description_numbers(&d, problem, numbers);
    const uint64_t rows = numbers[which];
    for (int i = 0; i < 3; i++) {
        const uint64_t planned = rule_value(&d.launch.grid[i], numbers);
        if (!rule_by_rows(&d.launch.grid[i], numbers, which, &blocks))
            continue;
        for (uint64_t fewer = 1; fewer <= rows; fewer++) {
            const uint64_t needed = (fewer * blocks.work + blocks.per_block - 1) / blocks.per_block;
            numbers[which] = fewer;
            CHECK_EQ_U64(needed < planned ? needed : planned, rule_value(&d.launch.grid[i], numbers));
        }
        numbers[which] = rows;
        follow++;
    }
    return follow;
}

TEST_CASE(ToolRules, FewerRowsNeedFewerBlocks)
{
    int follow = 0;
    for (const json_value *k = json_at(json_root(manifest()), "kernels.0"); k; k = k->next) {
        kernel_spec spec;
        const kernel_row *row = read_kernel(k, &spec);
        for (int i = 0; i < 3; i++) {
            const kernel_problem problem = problem_of(row, i);
            test_push_note("%s, problem %d", row->name, i);
            follow += check_fewer_rows(row, &spec, &problem, spec.row_index ? NUMBER_ROWS : NUMBER_M);
            test_pop_note();
        }
    }
    CHECK(follow > 100);
}

/* A part that begins late, and sums, are of neither form. */
TEST_CASE(ToolRules, SomeGridsDoNotFollowRows)
{
    const kernel_rule m = rule_number(NUMBER_M), two = rule_constant(2), one = rule_constant(1);
    const uint64_t numbers[NUMBERS] = {[NUMBER_M] = 100, [NUMBER_COLUMNS] = 6};
    const kernel_rule refused[] = {rule_plus(m, one),
                                   rule_minus(m, one),
                                   rule_over(m, two),
                                   rule_times(m, m),
                                   rule_times(rule_ceil(m, 4), two),
                                   rule_least(two, m),
                                   rule_span(m, two, one),
                                   rule_number(NUMBER_COLUMNS)};
    kernel_row_blocks blocks = {0};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        CHECK(!rule_by_rows(&refused[i], numbers, NUMBER_M, &blocks));
    CHECK_EQ_U64(blocks.per_block, 0);
    const kernel_rule rule =
        rule_least(rule_ceil(rule_ceil(rule_times(rule_number(NUMBER_COLUMNS), m), 4), 8), two);
    CHECK(rule_by_rows(&rule, numbers, NUMBER_M, &blocks));
    CHECK_EQ_U64(blocks.work, 6);
    CHECK_EQ_U64(blocks.per_block, 32);
}

TEST_CASE(ToolRules, SizesOfPointers)
{
    int compared = 0;
    for (const json_value *k = json_at(json_root(manifest()), "kernels.0"); k; k = k->next) {
        kernel_spec spec;
        const kernel_row *row = read_kernel(k, &spec);
        REQUIRE(row != NULL);
        for (const json_value *p = json_at(k, "parameters.0"); p; p = p->next)
            if (json_at(p, "pointer"))
                compared += check_pointer(row, &spec, p);
            else
                CHECK(json_string(p, "meaning") != NULL);
    }
    CHECK(compared > 20000);
}

/* The launch of this very kernel for a problem; false where the operation takes another. */
static bool launch_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                      kernel_step *step)
{
    kernel_steps steps;
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), problem, &steps);
    for (int i = steps.count; i-- > 0;)
        if (steps.at[i].row == row && kernel_spec_equal(&steps.at[i].spec, spec)) {
            *step = steps.at[i];
            return true;
        }
    return false;
}

TEST_CASE(ToolRules, Grids)
{
    static const char *const axes[] = {"grid.x", "grid.y", "grid.z"};
    int compared = 0;
    for (const json_value *k = json_at(json_root(manifest()), "kernels.0"); k; k = k->next) {
        kernel_spec spec;
        kernel_step step;
        const kernel_row *row = read_kernel(k, &spec);
        REQUIRE(row != NULL);
        for (int i = 0; i < 9; i++) {
            const kernel_problem problem = problem_of(row, i / 3);
            const char *rule = json_string(k, axes[i % 3]);
            uint64_t got = 0;
            if (!CHECK(rule != NULL) || !launch_of(row, &spec, &problem, &step))
                continue;
            test_push_note("%s: %s: %s", row->name, axes[i % 3], rule);
            CHECK(evaluate(rule, &problem, &got));
            CHECK_EQ_U64(got, step.grid[i % 3]);
            test_pop_note();
            compared++;
        }
    }
    CHECK(compared > 20000);
}

/* ---- Operations ---- */

static const json_value *find_stem(const char *stem)
{
    for (const json_value *k = json_at(json_root(manifest()), "kernels.0"); k; k = k->next) {
        kernel_spec spec;
        char name[KERNEL_FILE_NAME];
        const kernel_row *row = read_kernel(k, &spec);
        kernel_file_name(row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_90"), name, sizeof name);
        if (strcmp(name, stem) == 0)
            return k;
    }
    return NULL;
}

/* A few of them whole: every step is a kernel of the bundle and gives it all of its parameters. */
TEST_CASE(ToolRules, OperationsAreStepsOfTheBundlesKernels)
{
    int n = 0, checked = 0;
    for (const json_value *o = json_at(json_root(manifest()), "operations.0"); o; o = o->next) {
        uint64_t workspace = 0;
        CHECK(json_string(o, "operation") && json_u64(o, "workspace", &workspace));
        CHECK(json_at(o, "steps")->count >= 2);
        if (n++ % 41)
            continue;
        for (const json_value *s = json_at(o, "steps.0"); s; s = s->next) {
            const json_value *kernel = find_stem(json_string(s, "stem"));
            uint64_t at = 0;
            test_push_note("%s: %s", json_string(o, "operation"), json_string(s, "stem"));
            if (CHECK(kernel != NULL))
                CHECK_EQ_U64(json_at(s, "arguments")->count, json_at(kernel, "parameters")->count);
            for (const json_value *a = json_at(s, "arguments.0"); a; a = a->next)
                if (json_u64(a, "workspace", &at))
                    CHECK(at < workspace);
            test_pop_note();
            checked++;
        }
    }
    CHECK(n > 100 && checked >= 6);
}

/* Worked out by hand: the absmax of 2^24 numbers in 1024 parts, and the scale of those. */
TEST_CASE(ToolRules, OneScaleForAllIsTwoLaunches)
{
    const json_value *o = json_at(json_root(manifest()), "operations.0");
    while (o && (strcmp(json_string(o, "operation"), "quant.int4.scale") ||
                 strcmp(json_string(o, "settings.data"), "f16")))
        o = o->next;
    REQUIRE(o != NULL);
    CHECK_EQ_STR(json_string(o, "steps.0.kernel"), "range_absmax");
    CHECK_EQ_STR(json_string(o, "steps.0.stem"), "range_absmax_f16_g1_c1_sm_90");
    CHECK_EQ_STR(json_string(o, "steps.0.arguments.0"), "x");
    CHECK_EQ_STR(json_at(o, "steps.0.arguments.2")->text, "16777216");
    CHECK_EQ_STR(json_string(o, "steps.1.kernel"), "scale_int4");
    CHECK_EQ_STR(json_at(o, "steps.1.arguments.0.workspace")->text, "0");
    CHECK_EQ_STR(json_string(o, "steps.1.arguments.1"), "scale");
}

/* Whether the manifest has the kernel that a plan takes for a matrix of so many rows and columns. */
static bool has_kernel_for(const json *doc, const char *kernel, kernel_spec spec, uint64_t rows,
                           uint64_t columns)
{
    const kernel_row *row = kernel_find(kernel);
    kernel_steps steps;
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &(kernel_problem){.rows = rows, .columns = columns},
                    &steps);
    for (const json_value *k = json_at(json_root(doc), "kernels.0"); k && steps.count == 1; k = k->next) {
        kernel_spec found;
        if (read_kernel(k, &found) != row)
            continue;
        kernel_spec normal = kernel_spec_normal(row, &found);
        if (kernel_spec_equal(&normal, &steps.at[0].spec))
            return true;
    }
    return false;
}

/* Which kernel a plan takes depends on the matrix: few looked-up groups come from a table, many do not;
 * channels may be its columns or not. */
TEST_CASE(ToolRules, BundlesHaveTheKernelsOfAllMatrices)
{
    json *looked_up =
             manifest_of("--set data=f16,groups=columns,layout=interleaved,group_index=yes,group_size=128"),
         *channels = manifest_of("--set data=f16,group_size=1,channels=64");
    kernel_spec spec = kernel_spec_default();
    spec.data = QDNN_DATA_F16;
    spec.stored.group_size = 1;
    spec.stored.channels = 64;
    CHECK(has_kernel_for(channels, "dequantize_int8", spec, 1000, 64));
    CHECK(has_kernel_for(channels, "dequantize_int8", spec, 1000, 192));
    spec.stored.channels = 0;
    spec.stored.group_size = 128;
    spec.stored.groups = QDNN_GROUPS_COLUMNS;
    spec.stored.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
    spec.stored.group_index = 1;
    CHECK(has_kernel_for(looked_up, "quantize_int4_zp", spec, 4096, 4096));
    CHECK(has_kernel_for(looked_up, "quantize_int4_zp", spec, 1 << 20, 4096));
    json_free(looked_up);
    json_free(channels);
}

/* ---- Interruption, progress ---- */

/* Starts ptxgen --all, and sends it a signal once its folder is there. Returns how it ended. */
static int interrupt(const char *outdir, int signal)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        execl(PTXGEN, "ptxgen", "--all", "--sm", "all", "--outdir", outdir, (char *)NULL);
        _exit(127);
    }
    while (access(outdir, F_OK) != 0 && waitpid(child, &status, WNOHANG) == 0)
        ;
    kill(child, signal);
    waitpid(child, &status, 0);
    return status;
}

TEST_CASE(Tool, AllLeavesNothingBehindWhenInterrupted)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGXFSZ};
    char dir[256], outdir[300];
    temp_dir_make(dir, sizeof dir);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        snprintf(outdir, sizeof outdir, "%s/new/bundle", dir);
        int status = interrupt(outdir, signals[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        process_result r = process_run("find %s -mindepth 1", dir);
        CHECK_EQ_STR(r.output, "");
        process_free(&r);
    }
    /* An existing folder stays, with its contents. */
    process_result r = process_run("mkdir %s/old && echo mine >%s/old/file", dir, dir);
    process_free(&r);
    snprintf(outdir, sizeof outdir, "%s/old", dir);
    interrupt(outdir, SIGTERM);
    r = process_run("cd %s && find . -mindepth 1 | sort && cat old/file", dir);
    CHECK_EQ_STR(r.output, "./old\n./old/file\nmine\n");
    process_free(&r);
    temp_dir_remove(dir);
}

/* A name of its folder that somebody else has guessed is not used. */
TEST_CASE(Tool, AllDoesNotWriteThroughALink)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    process_result r =
        process_run("cd %s && mkdir out victim && sh -c 'ln -s ../victim out/.ptxgen-$$; exec %s --all "
                    "--sm 80 --outdir out'",
                    dir, PTXGEN);
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "cannot make the directory out/.ptxgen-");
    process_free(&r);
    r = process_run("ls %s/victim", dir);
    CHECK_EQ_STR(r.output, "");
    process_free(&r);
    temp_dir_remove(dir);
}

TEST_CASE(Tool, AllShowsProgressOnATerminalAlone)
{
    char dir[256], last[64];
    temp_dir_make(dir, sizeof dir);
    const char *command = "%s --all --sm 80 --set data=f16,group_size=64,nibble_order=low --outdir %s/b";
    process_result seen = process_run_on_terminal(command, PTXGEN, dir),
                   quiet = process_run(command, PTXGEN, dir);
    process_result count = process_run("ls %s/b/*.ptx | wc -l", dir);
    CHECK_EQ_I64(seen.status, 0);
    snprintf(last, sizeof last, "] 100%%  %d of %d  ", atoi(count.output), atoi(count.output));
    CHECK_HAS(seen.output, "\r\033[K[#####               ]  25%");
    CHECK_HAS(seen.output, last);
    CHECK_HAS(seen.output, " kernels in ");
    CHECK_EQ_STR(quiet.output, "");
    process_free(&seen);
    process_free(&quiet);
    process_free(&count);
    temp_dir_remove(dir);
}
