/* The command line. */
#include "kernels/maps/map.h"
#include "tools/ptxgen/tool.h"

#include <string.h>

static const char help[] =
    "ptxgen writes the kernels of qdnn as PTX, for any GPU generation, without a GPU and without the CUDA "
    "toolkit.\n"
    "\n"
    "usage: ptxgen --list [--emit json | md]\n"
    "       ptxgen --kernel NAME --sm SM [--set KEY=VALUE ...] [--emit FORM] [-o FILE | --outdir DIR]\n"
    "       ptxgen --kernel NAME --size KEY=VALUE ... --sm SM [--set KEY=VALUE ...] [--emit FORM] [-o FILE | "
    "--outdir DIR]\n"
    "       ptxgen --all --outdir DIR [--sm LIST] [--set KEY=VALUE ...] [--emit FORM]\n"
    "       ptxgen --map NAME\n"
    "\n"
    "  --list             the kernels, their settings with values and defaults, the lowest SM of each\n"
    "  --kernel NAME      one kernel\n"
    "  --all              every kernel in its common settings, for a set of SMs, and manifest.json that "
    "names the files\n"
    "  --map NAME         who holds what: the formulas of a map, such as mma_a_k16; all: of all of them\n"
    "  --sm LIST          90, sm_90 or sm_90a; several with commas; all. the default of --all is "
    "75,80,86,89,90,100,120\n"
    "  --gpu NAME         the SM of a board, such as a100 or rtx4090; with --size, a product gets the kernel "
    "that the "
    "library would\n"
    "                     choose there in mode exact\n"
    "  --set KEY=VALUE    a setting; may be repeated, or several with commas\n"
    "  --size KEY=VALUE   a size, as in --size m=64,rows=4096,columns=4096: the operation for these sizes, "
    "as a sequence of\n"
    "                     launches with its workspace; for operations that take several kernels\n"
    "  --emit FORM        ptx       the PTX text (this is the default)\n"
    "                     c         a .h and a .c file with the text embedded, and the numbers of its "
    "launch\n"
    "                     launcher  a .h and a .c file with the text for each SM, and functions on the CUDA "
    "driver\n"
    "                               API that load the best for a device and launch it\n"
    "                     cubin     machine code, by ptxas or nvJitLink where one of them is found\n"
    "                     json      how to launch it: entry, parameters with offsets, block, grid, shared "
    "memory\n"
    "  -o FILE            where to write; standard output otherwise\n"
    "  --outdir DIR       write files named by kernel, settings and SM into this directory\n"
    "  --comments         comments in the PTX\n"
    "  --help, --version\n"
    "\n"
    "examples:\n"
    "  ptxgen --kernel quantize_nf4 --sm 90\n"
    "  ptxgen --kernel dequantize_int4 --sm sm_75 --set data=f16,group_size=64 -o dequantize.ptx\n"
    "  ptxgen --kernel scale_nf4 --sm 80,90,120 --set data=bf16 --emit c --outdir generated\n"
    "  ptxgen --kernel quantize_nf4 --sm 75,80,90,100 --emit launcher -o quantize_nf4\n"
    "  ptxgen --kernel train.fake_quantize --size n=4096 --sm 80,90 --emit launcher -o fake_quantize\n"
    "  ptxgen --all --sm 90 --set data=f16 --outdir kernels\n"
    "\n"
    "exit code: 0 success; 1 failure; 2 wrong usage\n";

int tool_print_help(void)
{
    fputs(help, stdout);
    return TOOL_OK;
}

static int set_mode(tool_options *o, tool_mode mode)
{
    if (o->mode == MODE_HELP || mode == MODE_HELP)
        mode = MODE_HELP;
    else if (o->mode != MODE_NONE && o->mode != mode)
        return tool_usage_error("--list, --kernel, --all, --map and --version exclude each other");
    o->mode = mode;
    return TOOL_OK;
}

static int parse_list(void *options, const char *value)
{
    (void)value;
    return set_mode(options, MODE_LIST);
}

static int parse_all(void *options, const char *value)
{
    (void)value;
    return set_mode(options, MODE_ALL);
}

static const char *map_name(const void *list, int index)
{
    (void)list;
    const named_map *m = map_named(index);
    return m ? m->name : NULL;
}

static int parse_map(void *options, const char *value)
{
    tool_options *o = options;
    o->name = value;
    bool is_known = strcmp(value, "all") == 0;
    for (int i = 0; map_named(i); i++)
        is_known = is_known || strcmp(value, map_named(i)->name) == 0;
    return is_known ? set_mode(options, MODE_MAP)
                    : tool_unknown("map", value, map_name, NULL, "ptxgen --map all prints all maps");
}

static int parse_help(void *options, const char *value)
{
    (void)value;
    return set_mode(options, MODE_HELP);
}

static int parse_version(void *options, const char *value)
{
    (void)value;
    return set_mode(options, MODE_VERSION);
}

static int parse_kernel(void *options, const char *value)
{
    tool_options *o = options;
    if (o->row)
        return tool_usage_error("--kernel is given twice; --all writes every kernel");
    o->row = kernel_open(value, &o->spec);
    o->name = value;
    if (!o->row)
        return tool_unknown("kernel", value, tool_kernel_name, NULL, "ptxgen --list names them");
    return set_mode(o, MODE_KERNEL);
}

static int parse_output(void *options, const char *value)
{
    tool_options *o = options;
    o->output = value;
    return TOOL_OK;
}

static int parse_outdir(void *options, const char *value)
{
    tool_options *o = options;
    o->outdir = value;
    return TOOL_OK;
}

static int parse_emit(void *options, const char *value)
{
    tool_options *o = options;
    o->form = tool_form_find(value);
    return o->form ? TOOL_OK
                   : tool_unknown("form", value, tool_form_name, NULL,
                                  "--emit takes ptx, c, launcher, cubin or json");
}

static void add_sm(tool_options *o, const ptx_sm *sm)
{
    for (int i = 0; i < o->n_sms; i++)
        if (o->sms[i] == sm)
            return;
    if (o->n_sms < TOOL_SMS_MAX)
        o->sms[o->n_sms++] = sm;
}

static const char *board_name(const void *list, int index)
{
    (void)list;
    const board *b = board_at(index);
    return b ? b->name : NULL;
}

static int parse_gpu(void *options, const char *value)
{
    tool_options *o = options;
    char sm[16];
    const board *b = board_find(value);
    if (!b)
        return tool_unknown("board", value, board_name, NULL, board_names());
    if (o->on && o->on != b)
        return tool_usage_error("--gpu names one board; there are %s and %s", o->on->name, b->name);
    o->on = b;
    board_sm_name(b, sm, sizeof sm);
    add_sm(o, ptx_sm_find(sm));
    return TOOL_OK;
}

static int unknown_sm(const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "%s%s", name[0] >= '0' && name[0] <= '9' ? "sm_" : "", name);
    const char *near = tool_nearest(full, tool_sm_name, NULL);
    if (near)
        return tool_usage_error("unknown SM '%s'; did you mean '%s'?", name, near);
    return tool_usage_error("unknown SM '%s'; there are sm_75 to sm_121, and ptxgen --list names them", name);
}

static int parse_sm(void *options, const char *value)
{
    tool_options *o = options;
    char name[64];
    while (tool_next_part(&value, name, sizeof name)) {
        const ptx_sm *sm = ptx_sm_find(name);
        if (!sm && strcmp(name, "all") != 0)
            return unknown_sm(name);
        if (sm)
            add_sm(o, sm);
        for (int i = 0; !sm && i < ptx_sm_count(); i++)
            add_sm(o, ptx_sm_get(i));
    }
    return TOOL_OK;
}

static int parse_pairs(const char *option, const char *value, tool_setting *list, int *n)
{
    char pair[140];
    while (tool_next_part(&value, pair, sizeof pair)) {
        char *equals = strchr(pair, '=');
        tool_setting setting;
        if (!equals || equals == pair)
            return tool_usage_error("%s takes KEY=VALUE, not '%s'", option, pair);
        if (*n == TOOL_SETTINGS_MAX)
            return tool_usage_error("there are more than %d values of %s", TOOL_SETTINGS_MAX, option);
        *equals = 0;
        snprintf(setting.key, sizeof setting.key, "%.63s", pair);
        snprintf(setting.value, sizeof setting.value, "%.63s", equals + 1);
        list[(*n)++] = setting;
    }
    return TOOL_OK;
}

static int parse_set(void *options, const char *value)
{
    tool_options *o = options;
    return parse_pairs("--set", value, o->settings, &o->n_settings);
}

static int parse_size(void *options, const char *value)
{
    tool_options *o = options;
    return parse_pairs("--size", value, o->sizes, &o->n_sizes);
}

/* clang-format off */
static const tool_option table[] = {
    {"--list", false, parse_list, 0},    {"--kernel", true, parse_kernel, 0},
    {"--all", false, parse_all, 0},      {"--sm", true, parse_sm, 0},
    {"--gpu", true, parse_gpu, 0},
    {"--set", true, parse_set, 0},       {"--emit", true, parse_emit, 0},
    {"-o", true, parse_output, 0},       {"--output", true, parse_output, 0},
    {"--outdir", true, parse_outdir, 0}, {"--comments", false, NULL, offsetof(tool_options, comments)},
    {"--help", false, parse_help, 0},    {"-h", false, parse_help, 0},
    {"--version", false, parse_version, 0}, {"--size", true, parse_size, 0},
    {"--map", true, parse_map, 0},
};
/* clang-format on */

static int parse_operand(void *options, const char *argument)
{
    (void)options;
    return tool_usage_error("'%s' is not an option; to name a kernel, use --kernel %s", argument, argument);
}

/* Checks which options go together. */
static int check(tool_options *o)
{
    bool writes = o->mode == MODE_KERNEL || o->mode == MODE_ALL;
    if (!writes && (o->n_sms || o->n_settings || o->outdir || o->comments))
        return tool_usage_error("--sm, --set, --outdir and --comments go with --kernel or --all");
    if (o->mode != MODE_KERNEL && o->n_sizes)
        return tool_usage_error("--size goes with --kernel");
    if (o->mode == MODE_ALL && o->form && o->form->all_sms)
        return tool_usage_error("--emit %s writes one kernel: it goes with --kernel", o->form->name);
    if (o->mode == MODE_ALL && (!o->outdir || o->output))
        return tool_usage_error("--all writes many files: give --outdir DIR, and no -o");
    if (o->on && o->n_sms > 1)
        return tool_usage_error("--gpu names one board, and with it the SM: it goes without --sm");
    if (o->mode != MODE_KERNEL)
        return TOOL_OK;
    if (o->n_sms == 0)
        return tool_usage_error("--kernel %s needs --sm, as in --sm 90, or --gpu, as in --gpu a100", o->name);
    if (o->output && o->outdir)
        return tool_usage_error("-o and --outdir exclude each other");
    if (o->n_sms > 1 && !o->outdir && !(o->form && o->form->all_sms))
        return tool_usage_error("several SMs make several files: give --outdir DIR");
    return TOOL_OK;
}

int tool_parse(tool_options *options, int argc, char **argv)
{
    const tool_command_line line = {table, sizeof table / sizeof table[0], parse_operand};
    *options = (tool_options){0};
    int status = tool_parse_options(&line, options, argc, argv);
    bool informs = options->mode == MODE_HELP || options->mode == MODE_VERSION || options->mode == MODE_NONE;
    return informs || status != TOOL_OK ? status : check(options);
}

/* ---- names ---- */

const char *tool_kernel_name(const void *list, int index)
{
    (void)list;
    return index < kernel_row_count ? kernel_rows[index].name : NULL;
}

const char *tool_size_name(const void *list, int index)
{
    (void)list;
    return kernel_size_name(index);
}

const char *tool_key_name(const void *list, int index)
{
    (void)list;
    const kernel_key_info *info = kernel_key_at(index);
    return info ? info->name : NULL;
}

const char *tool_sm_name(const void *list, int index)
{
    (void)list;
    const ptx_sm *sm = ptx_sm_get(index);
    return sm ? sm->name : NULL;
}
