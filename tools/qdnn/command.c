/* Parsing of the command line, and its help. */
#include "tools/qdnn/tool.h"

#include <regex.h>
#include <string.h>

#include "tools/qdnn/types.h"

static const char help[] =
    "qdnn reads, checks, quantizes and converts the weights of models in GGUF and safetensors files.\n"
    "\n"
    "usage: qdnn info FILE [--tensors] [--only REGEX] [--json OUT]\n"
    "       qdnn verify FILE [--only REGEX] [--device DEVICE]\n"
    "       qdnn quantize IN OUT --type TYPE [--tensor REGEX=TYPE ...] [--all-matrices] [--requantize]\n"
    "                     [--in-place] [--dry-run] [--json OUT]\n"
    "       qdnn convert IN OUT [--type TYPE] [--tensor REGEX=TYPE ...] [--in-place] [--dry-run] [--json "
    "OUT]\n"
    "       qdnn bench FILE [--rows LIST] [--only REGEX] [--device DEVICE | --gpu BOARD] [--json OUT]\n"
    "\n"
    "FILE and IN are a GGUF file, a safetensors file, model.safetensors.index.json, or the folder of a "
    "checkpoint.\n"
    "OUT ends in .gguf, .safetensors or '/': a new folder that also gets a config.json with the "
    "quantization, for\n"
    "loaders. It is written under another name, read back, and appears when it is whole.\n"
    "\n"
    "  info               weights with their formats, shapes and sizes, and totals by format\n"
    "  verify             every quantized weight dequantized on the device and by host_ref, compared bit for "
    "bit\n"
    "  quantize           plain matrices become TYPE; what each lost as RMS, SQNR and largest error\n"
    "  convert            quantized weights become another format that holds the same values, compared bit "
    "for bit\n"
    "                     (zeros of either sign are the same); without --type the smallest that does\n"
    "  bench              products of f16 rows with each kind of matrix in the file: times on a GPU, "
    "counters on ptxvm\n"
    "\n"
    "  --type TYPE        for matrices that no --tensor names\n"
    "  --tensor REGEX=TYPE\n"
    "                     for weights whose name matches; may be repeated, the first that matches decides.\n"
    "                     TYPE may be 'keep' (as it is) or 'drop' (left out). Vectors are never quantized\n"
    "  --dry-run          only show what would be converted, and the sizes\n"
    "  --requantize       also quantize weights that are already quantized\n"
    "  --all-matrices     also quantize matrices that are not of Linear layers, such as embeddings. (GGUF "
    "always does)\n"
    "  --in-place         OUT may be IN, which is replaced when OUT is whole\n"
    "  --only REGEX       only weights whose name matches\n"
    "  --rows LIST        how many rows the products have, with commas; default 1,16\n"
    "  --gpu BOARD        a100, h100, rtx4090 ...: modelled times of that board instead, and tokens per "
    "second, with plain\n"
    "                     f16 weights beside them (needs ptxas and nvdisasm)\n"
    "  --tensors          the tensors as they are stored, with their places in the file\n"
    "  --device DEVICE    cuda, cuda:1, vm, vm:sm_90: as in QDNN_DEVICE\n"
    "  --json OUT         the figures as JSON; '-' is standard output\n"
    "  --help, --version\n"
    "\n";

static const char examples[] =
    "\n"
    "REGEX is a POSIX extended regular expression that may match any part of a name.\n"
    "\n"
    "examples:\n"
    "  qdnn info model.gguf\n"
    "  qdnn verify model-awq/ --only 'layers\\.0\\.' --device vm:sm_90\n"
    "  qdnn quantize model.safetensors small.gguf --type q4_0 --tensor 'embed|lm_head=q8_0'\n"
    "  qdnn quantize model.safetensors small.safetensors --type int4-g128 --dry-run\n"
    "  qdnn convert model-gptq/ model.gguf\n"
    "  qdnn bench model.gguf --rows 1,32\n"

    "\n"
    "exit code: 0 success; 1 failure, or verify found a difference; 2 wrong usage\n";

static void print_help(void)
{
    fputs(help, stdout);
    for (int kind = QDNN_FILE_GGUF; kind <= QDNN_FILE_SAFETENSORS; kind++) {
        printf("types of %s:\n", kind == QDNN_FILE_GGUF ? "GGUF" : "safetensors");
        for (int i = 0; type_at(i); i++) {
            const out_type *t = type_at(i);
            char name[32];
            snprintf(name, sizeof name, "%s%s", t->name,
                     t->group > 0   ? "-gSIZE"
                     : t->group < 0 ? "[-gSIZE]"
                                    : "");
            if ((int)t->kind == kind || t->either_kind)
                printf("  %-18s %s\n", name, t->summary);
        }
    }
    fputs(examples, stdout);
}

/* ---- options ---- */

static int parse_type(void *options_, const char *value)
{
    options *o = options_;
    o->type = value;
    return TOOL_OK;
}

static int parse_only(void *options_, const char *value)
{
    options *o = options_;
    bool matches;
    o->only = value;
    return regex_matches(value, "", &matches);
}

static int parse_device(void *options_, const char *value)
{
    options *o = options_;
    o->device = value;
    return TOOL_OK;
}

static int parse_rows(void *options_, const char *value)
{
    options *o = options_;
    o->rows = value;
    return TOOL_OK;
}

static int parse_gpu(void *options_, const char *value)
{
    options *o = options_;
    o->gpu = board_find(value);
    return o->gpu ? TOOL_OK : tool_usage_error("--gpu takes a board, not '%s': %s", value, board_names());
}

static int parse_json(void *options_, const char *value)
{
    options *o = options_;
    o->json = value;
    return TOOL_OK;
}

/* Split at the last '=': a regular expression may contain others, a type does not. */
static int parse_rule(void *options_, const char *value)
{
    options *o = options_;
    const char *equals = strrchr(value, '=');
    static char regexes[RULES_MAX][512];
    bool matches;
    if (!equals || equals == value || !equals[1])
        return tool_usage_error("--tensor takes REGEX=TYPE, not '%s'", value);
    if (o->n_rules == RULES_MAX)
        return tool_usage_error("there are more than %d rules", RULES_MAX);
    char *regex = regexes[o->n_rules];
    if (snprintf(regex, sizeof regexes[0], "%.*s", (int)(equals - value), value) >= (int)sizeof regexes[0])
        return tool_usage_error("the regular expression of a rule is longer than %zu characters",
                                sizeof regexes[0] - 1);
    o->rules[o->n_rules++] = (name_rule){regex, equals + 1};
    return regex_matches(regex, "", &matches);
}

int only_matched_nothing(const options *o)
{
    return tool_fail("--only '%s' matches no name in %s (qdnn info lists them)", o->only, o->in);
}

int regex_matches(const char *regex, const char *name, bool *matches)
{
    regex_t compiled;
    char why[200];
    int problem = regcomp(&compiled, regex, REG_EXTENDED | REG_NOSUB);
    if (problem == REG_ESPACE)
        return tool_fail("out of memory");
    if (problem) {
        regerror(problem, &compiled, why, sizeof why);
        return tool_usage_error("'%s' is not a regular expression: %s", regex, why);
    }
    problem = regexec(&compiled, name, 0, NULL, 0);
    regfree(&compiled);
    *matches = problem == 0;
    return problem == REG_ESPACE ? tool_fail("out of memory") : TOOL_OK;
}

static int parse_operand(void *options_, const char *argument)
{
    options *o = options_;
    if (!o->command)
        o->command = argument;
    else if (!o->in)
        o->in = argument;
    else if (!o->out)
        o->out = argument;
    else
        return tool_usage_error("'%s' is one file too many", argument);
    return TOOL_OK;
}

/* clang-format off */
static const tool_option table[] = {
    {"--type", true, parse_type, 0},     {"--tensor", true, parse_rule, 0},
    {"--only", true, parse_only, 0},     {"--device", true, parse_device, 0},
    {"--rows", true, parse_rows, 0},      {"--gpu", true, parse_gpu, 0},
    {"--json", true, parse_json, 0},     {"--dry-run", false, NULL, offsetof(options, dry_run)},
    {"--requantize", false, NULL, offsetof(options, requantize)},
    {"--all-matrices", false, NULL, offsetof(options, all_matrices)},
    {"--in-place", false, NULL, offsetof(options, in_place)},
    {"--tensors", false, NULL, offsetof(options, tensors)},
    {"--help", false, NULL, offsetof(options, help)}, {"-h", false, NULL, offsetof(options, help)},
    {"--version", false, NULL, offsetof(options, version)},
};

/* The arguments of each command. */
static const struct {
    const char *name;
    bool writes; /* it has an OUT argument */
    bool type, rules, only, device, json, dry_run, requantize, tensors, rows;
} takes[] = {
    {"info",     false, false, false, true,  false, true,  false, false, true,  false},
    {"verify",   false, false, false, true,  true,  false, false, false, false, false},
    {"quantize", true,  true,  true,  false, true,  true,  true,  true,  false, false},
    {"convert",  true,  true,  true,  false, false, true,  true,  false, false, false},
    {"bench",    false, false, false, true,  true,  true,  false, false, false, true},
};
/* clang-format on */

static const char *command_name(const void *list, int index)
{
    (void)list;
    return index < (int)(sizeof takes / sizeof takes[0]) ? takes[index].name : NULL;
}

static int check_options(const options *o, int row)
{
    const struct {
        const char *name;
        bool given, taken;
    } checks[] = {{"--type", o->type, takes[row].type},
                  {"--tensor", o->n_rules > 0, takes[row].rules},
                  {"--only", o->only, takes[row].only},
                  {"--device", o->device, takes[row].device},
                  {"--json", o->json, takes[row].json},
                  {"--dry-run", o->dry_run, takes[row].dry_run},
                  {"--requantize", o->requantize, takes[row].requantize},
                  {"--all-matrices", o->all_matrices, takes[row].requantize},
                  {"--in-place", o->in_place, takes[row].writes},
                  {"--tensors", o->tensors, takes[row].tensors},
                  {"--rows", o->rows, takes[row].rows},
                  {"--gpu", o->gpu, takes[row].rows}};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].given && !checks[i].taken)
            return tool_usage_error("%s is not for %s", checks[i].name, o->command);
    if (o->gpu && o->device)
        return tool_usage_error("--gpu models a board, --device measures a device: choose one of them");
    if (!o->in)
        return tool_usage_error("%s needs a file", o->command);
    if (takes[row].writes && !o->out)
        return tool_usage_error("%s needs a second file, to write to", o->command);
    if (!takes[row].writes && o->out)
        return tool_usage_error("'%s' is one file too many", o->out);
    if (strcmp(o->command, "quantize") == 0 && !o->type && !o->n_rules)
        return tool_usage_error("quantize needs --type, or --tensor REGEX=TYPE");
    return TOOL_OK;
}

int options_read(int argc, char **argv, options *o)
{
    static const tool_command_line line = {table, sizeof table / sizeof table[0], parse_operand};
    int status = tool_parse_options(&line, o, argc, argv);
    if (status != TOOL_OK)
        return status;
    if (o->help || o->version) {
        o->command = NULL;
        if (o->help)
            print_help();
        else
            printf("qdnn %d.%d.%d\n", QDNN_MAJOR, QDNN_MINOR, QDNN_PATCH);
        return TOOL_OK;
    }
    if (!o->command)
        return tool_usage_error("no command; there are info, verify, quantize, convert and bench");
    for (int i = 0; command_name(NULL, i); i++)
        if (strcmp(command_name(NULL, i), o->command) == 0)
            return check_options(o, i);
    return tool_unknown("command", o->command, command_name, NULL,
                        "there are info, verify, quantize, convert and bench");
}
