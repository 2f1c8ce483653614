/* The command line. */
#include "tools/ptxvm/tool.h"

#include "boards/boards.h"
#include "ptxvm/module.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "ptxvm checks PTX files and runs their kernels on the CPU, to the bit, with no GPU and no CUDA toolkit.\n"
    "\n"
    "usage: ptxvm FILE.ptx ...                                     check the files and list their kernels\n"
    "       ptxvm FILE.ptx --run KERNEL --grid X,Y,Z --block X,Y,Z ARG ...   run a kernel\n"
    "A FILE of - is standard input.\n"
    "\n"
    "  --sm SM            the GPU to act as: 90, sm_90 or sm_90a; otherwise the file's own .target\n"
    "  --json FILE        all that is known as JSON; - is standard output, and then --quiet, with whatever "
    "else\n"
    "                     there is on standard error\n"
    "  --quiet            no listing; of a run only what was asked for: outputs, --counters, --listing\n"
    "  --help, --version\n"
    "\n"
    "with --run:\n"
    "  --grid X,Y,Z       blocks; 1 where not given\n"
    "  --block X,Y,Z      threads of a block; otherwise what .reqntid says\n"
    "  --shared BYTES     dynamic shared memory of a block\n"
    "  --cooperative      a cooperative launch: blocks may wait for each other\n"
    "  --check LIST       none, all, or some of memory,init,race,sync,leak,same;\n"
    "                     same is race, and stores of the same value by two threads as well;\n"
    "                     memory,init,race,sync where not given\n"
    "  --counters         a table of what the run cost: instructions, sectors, bank conflicts ...\n"
    "  --time BOARD       what the run would take on a100, rtx4090 ...: modelled, an interval, and where "
    "warps\n"
    "                     wait; needs ptxas and nvdisasm\n"
    "  --listing          the kernel's PTX with what each line cost, the hot lines marked\n"
    "  --threads N        threads of the CPU to run blocks on; all cores where not given\n"
    "  --seed N           shuffle the order of blocks and warps; 0, in order, where not given\n"
    "  --steps N          end the run when a block has taken N warp instructions\n"
    "\n"
    "What a file may cost is limited: memory, instructions, output. An error names the limit as "
    "PTXVM_LIMIT_X, an\n"
    "environment variable that sets another (docs/ptxvm.md lists them).\n"
    "\n"
    "ARG, one for each parameter of the kernel, in order:\n"
    "  42  -1  0x2a  1.5  a number, of the type that the parameter has; 0f3FC00000 is the f32 of these bits\n"
    "  f32:1.5            a number of another type of the same size: "
    "u8 to u64, s8 to s64, f16, bf16, f32, f64\n"
    "  f32:1,2/u64:3      several, for an array or a struct: the members lie as C has them\n"
    "  bytes:0001ff       bytes in hexadecimal;  @FILE  the bytes of a file\n"
    "  buf:SIZE[=FILL]    the address of a new buffer. SIZE: bytes (4096, 4K, 1M), or elements as in "
    "1024xf32.\n"
    "                     FILL, in elements (bytes without a type):  0xff  one value;  1,2,3  values, over "
    "and\n"
    "                     over;  iota  0, 1, 2 ...;  random:SEED  any bits, or -1 to 1 for floating point.\n"
    "                     Without FILL nothing has written the buffer, and reading it is a finding (init).\n"
    "  buf:@FILE          the same with the size and the bytes of a file\n"
    "  buf:...>f32        print the buffer after the run as that type (also x8 to x64, hexadecimal)\n"
    "  buf:...>f32:16     print its first 16;  buf:...>out.bin  write its bytes to a file (./f32 for one "
    "named\n"
    "                     as a type). Several may follow each other. Quote it: the shell has a use for > "
    "too.\n"
    "  arg:N, arg:N+BYTES the address of argument N's buffer once more\n"
    "\n"
    "examples:\n"
    "  ptxvm kernel.ptx\n"
    "  ptxvm --sm 90 kernel.ptx other.ptx --json -\n"
    "  ptxvm kernel.ptx --run scale --grid 2 --block 128 'buf:256xf32=iota>f32:8' 0.5 256\n"
    "  ptxvm kernel.ptx --run scale --grid 2 --block 128 'buf:@in.bin>out.bin' 1e-3 256 --counters\n"
    "  ptxvm kernel.ptx --run scale --grid 2 --block 128 buf:1K=0 2 256 --listing --check all --quiet\n"
    "\n"
    "exit code: 0 success; 1 the PTX is not valid, the run failed or a check found something; 2 wrong "
    "usage\n";

int tool_print_help(void)
{
    fputs(help, stdout);
    return TOOL_OK;
}

/* ---- numbers ---- */

bool tool_parse_size(const char *text, uint64_t *value)
{
    static const char suffixes[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    if (!isdigit((unsigned char)*text) || errno || end[suffix != NULL] || n > UINT64_MAX >> shift)
        return false;
    *value = (uint64_t)n << shift;
    return true;
}

static int parse_number(const char *option, const char *text, uint64_t most, uint64_t *value)
{
    if (!tool_parse_size(text, value))
        return tool_usage_error("%s takes a number, not '%s'", option, text);
    if (*value > most)
        return tool_usage_error("%s %s: the most is %llu", option, text, (unsigned long long)most);
    return TOOL_OK;
}

/* "4", "4,2" or "4,2,1"; missing numbers are 1. */
static int parse_dimensions(const char *option, const char *text, uint32_t *dimensions)
{
    char *copy = strdup(text), *rest = copy;
    int n = 0;
    bool ok = copy;
    for (int i = 0; i < 3; i++)
        dimensions[i] = 1;
    for (char *part; ok && (part = tool_cut_part(&rest));) {
        uint64_t value = 0;
        ok = n < 3 && tool_parse_size(part, &value) && value && value <= INT32_MAX;
        if (ok)
            dimensions[n++] = (uint32_t)value;
    }
    free(copy);
    if (!ok)
        return tool_usage_error("%s takes one to three numbers from 1 up, as in 4,2,1, not '%s'", option,
                                text);
    return TOOL_OK;
}

/* ---- options ---- */

static int parse_run(void *options, const char *value)
{
    vm_options *o = options;
    if (o->kernel)
        return tool_usage_error("--run is given twice; one kernel is run at a time");
    o->kernel = value;
    return TOOL_OK;
}

static int parse_json(void *options, const char *value)
{
    ((vm_options *)options)->json = value;
    return TOOL_OK;
}

static int parse_grid(void *options, const char *value)
{
    return parse_dimensions("--grid", value, ((vm_options *)options)->launch.grid);
}

static int parse_block(void *options, const char *value)
{
    vm_options *o = options;
    o->has_block = true;
    return parse_dimensions("--block", value, o->launch.block);
}

static int parse_shared(void *options, const char *value)
{
    return parse_number("--shared", value, UINT32_MAX, &((vm_options *)options)->launch.shared_bytes);
}

static int parse_threads(void *options, const char *value)
{
    uint64_t n = 0;
    int status = parse_number("--threads", value, 1024, &n);
    ((vm_options *)options)->threads = (int)n;
    return status;
}

static int parse_seed(void *options, const char *value)
{
    return parse_number("--seed", value, UINT64_MAX, &((vm_options *)options)->seed);
}

static int parse_steps(void *options, const char *value)
{
    return parse_number("--steps", value, UINT64_MAX, &((vm_options *)options)->steps);
}

static const char *check_name(const void *list, int index)
{
    static const char *const names[] = {"none", "all",  "memory", "init", "race",
                                        "sync", "leak", "same",   NULL};
    (void)list;
    return names[index];
}

static int parse_check(void *options, const char *value)
{
    char part[64];
    unsigned one;
    for (const char *list = value; tool_next_part(&list, part, sizeof part);)
        if (!ptxvm_checks_parse(part, &one))
            return tool_unknown("check", part, check_name, NULL,
                                "there are memory, init, race, sync, leak and same");
    ptxvm_checks_parse(value, &((vm_options *)options)->checks);
    return TOOL_OK;
}

/* ---- SMs ---- */

enum { SMS_MAX = 128 };

typedef struct sm_names {
    char names[SMS_MAX][16];
    int n;
} sm_names;

static const char *sm_name(const void *list, int index)
{
    const sm_names *sms = list;
    return index < sms->n ? sms->names[index] : NULL;
}

static void list_sms(sm_names *sms)
{
    static const char *const suffixes[] = {"", "a", "f"};
    sms->n = 0;
    for (int sm = 50; sm < 200; sm++)
        for (int i = 0; i < 3 && sms->n < SMS_MAX; i++) {
            pvm_target target;
            snprintf(sms->names[sms->n], sizeof sms->names[0], "sm_%d%s", sm, suffixes[i]);
            sms->n += pvm_target_from_name(sms->names[sms->n], &target);
        }
}

static int parse_sm(void *options, const char *value)
{
    pvm_target target;
    sm_names sms;
    char full[64];
    ((vm_options *)options)->sm = value;
    list_sms(&sms);
    for (int i = 0; pvm_target_from_name(value, &target) && i < sms.n; i++) {
        pvm_target known;
        if (pvm_target_from_name(sms.names[i], &known) && known.sm == target.sm)
            return TOOL_OK;
    }
    snprintf(full, sizeof full, "%s%.40s", isdigit((unsigned char)*value) ? "sm_" : "", value);
    return tool_unknown("SM", full, sm_name, &sms, "as in --sm 90 or --sm sm_100a");
}

static const char *board_name(const void *list, int index)
{
    (void)list;
    const board *b = board_at(index);
    return b ? b->name : NULL;
}

static int parse_time(void *options, const char *value)
{
    ((vm_options *)options)->time = value;
    return board_find(value) ? TOOL_OK : tool_unknown("board", value, board_name, NULL, "as in --time a100");
}

/* ---- the table ---- */

#define FLAG(field) false, NULL, offsetof(vm_options, field)

/* clang-format off */
static const tool_option table[] = {
    {"--run", true, parse_run, 0},         {"--grid", true, parse_grid, 0},
    {"--block", true, parse_block, 0},     {"--shared", true, parse_shared, 0},
    {"--sm", true, parse_sm, 0},           {"--threads", true, parse_threads, 0},
    {"--seed", true, parse_seed, 0},       {"--steps", true, parse_steps, 0},
    {"--check", true, parse_check, 0},     {"--json", true, parse_json, 0},
    {"--time", true, parse_time, 0},
    {"--cooperative", FLAG(launch.cooperative)},
    {"--counters", FLAG(counters)},        {"--listing", FLAG(listing)},
    {"--quiet", FLAG(quiet)},              {"--version", FLAG(version)},
    {"--help", FLAG(help)},                {"-h", FLAG(help)},
};
/* clang-format on */

static int parse_operand(void *options, const char *argument)
{
    vm_options *o = options;
    if (o->n_files == TOOL_OPERANDS_MAX)
        return tool_usage_error("there are more than %d files or arguments", TOOL_OPERANDS_MAX);
    o->files[o->n_files++] = argument;
    return TOOL_OK;
}

static const vm_options defaults = {
    .launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}},
    .checks = PTXVM_CHECK_MEMORY | PTXVM_CHECK_INIT | PTXVM_CHECK_RACE | PTXVM_CHECK_SYNC,
};

/* Whether an option was given that requires --run. */
static bool wants_run(const vm_options *o)
{
    return o->has_block || o->counters || o->listing || o->time || o->threads || o->seed || o->steps ||
           memcmp(o->launch.grid, defaults.launch.grid, sizeof o->launch.grid) != 0 ||
           o->launch.cooperative || o->launch.shared_bytes || o->checks != defaults.checks;
}

int tool_parse(vm_options *options, int argc, char **argv)
{
    const tool_command_line line = {table, sizeof table / sizeof table[0], parse_operand};
    *options = defaults;
    int status = tool_parse_options(&line, options, argc, argv);
    if (status != TOOL_OK || options->help || options->version)
        return status;
    options->out = stdout;
    if (options->json && strcmp(options->json, "-") == 0) {
        options->out = stderr;
        options->quiet = true;
    }
    if (options->n_files == 0)
        return tool_usage_error("no file is given: ptxvm FILE.ptx");
    if (!options->kernel && wants_run(options))
        return tool_usage_error("--grid, --block, --check, --counters and their like go with --run KERNEL");
    if (options->kernel) {
        options->arguments = options->files + 1;
        options->n_arguments = options->n_files - 1;
        options->n_files = 1;
    }
    return TOOL_OK;
}
