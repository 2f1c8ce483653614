/* The command line. */
#include "ptxgen/tool.h"

#include <string.h>

static const char help[] =
    "ptxgen writes the kernels of qdnn as PTX, for any GPU generation, without a GPU and without the CUDA "
    "toolkit.\n"
    "\n"
    "usage: ptxgen --list [--emit json]\n"
    "       ptxgen --kernel NAME --sm SM [--set KEY=VALUE ...] [--emit FORM] [-o FILE | --outdir DIR]\n"
    "       ptxgen --all --outdir DIR [--sm LIST] [--set KEY=VALUE ...] [--emit FORM]\n"
    "\n"
    "  --list             the kernels, their settings with values and defaults, the lowest SM of each\n"
    "  --kernel NAME      one kernel\n"
    "  --all              every kernel in its common settings, for a set of SMs, and manifest.json that "
    "names the files\n"
    "  --sm LIST          90, sm_90 or sm_90a; several with commas; all. --all takes 75,80,86,89,90,100,120 "
    "by itself\n"
    "  --set KEY=VALUE    a setting; may be repeated, or several with commas\n"
    "  --emit FORM        ptx   the PTX text (this is the default)\n"
    "                     c     a .h and a .c file with the text embedded, and how to launch it\n"
    "                     cubin machine code, by ptxas or nvJitLink where one of them is found\n"
    "                     json  how to launch it: entry, parameters with offsets, block, grid, shared "
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
    "  ptxgen --all --sm 90 --set data=f16 --outdir kernels\n"
    "\n"
    "exit code: 0 done; 1 it could not be done; 2 what was asked for is not right\n";

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
        return tool_usage_error("--list, --kernel, --all and --version exclude each other");
    o->mode = mode;
    return TOOL_OK;
}

static int parse_list(tool_options *o, const char *value)
{
    (void)value;
    return set_mode(o, MODE_LIST);
}

static int parse_all(tool_options *o, const char *value)
{
    (void)value;
    return set_mode(o, MODE_ALL);
}

static int parse_help(tool_options *o, const char *value)
{
    (void)value;
    return set_mode(o, MODE_HELP);
}

static int parse_version(tool_options *o, const char *value)
{
    (void)value;
    return set_mode(o, MODE_VERSION);
}

static int parse_kernel(tool_options *o, const char *value)
{
    if (o->row)
        return tool_usage_error("--kernel is there twice; --all writes every kernel");
    o->row = kernel_find(value);
    if (!o->row)
        return tool_unknown("kernel", value, tool_kernel_name, "ptxgen --list names them");
    return set_mode(o, MODE_KERNEL);
}

static int parse_comments(tool_options *o, const char *value)
{
    (void)value;
    o->comments = true;
    return TOOL_OK;
}

static int parse_output(tool_options *o, const char *value)
{
    o->output = value;
    return TOOL_OK;
}

static int parse_outdir(tool_options *o, const char *value)
{
    o->outdir = value;
    return TOOL_OK;
}

static int parse_emit(tool_options *o, const char *value)
{
    o->form = tool_form_find(value);
    return o->form ? TOOL_OK
                   : tool_unknown("form", value, tool_form_name, "--emit takes ptx, c, cubin or json");
}

static void add_sm(tool_options *o, const ptx_sm *sm)
{
    for (int i = 0; i < o->n_sms; i++)
        if (o->sms[i] == sm)
            return;
    if (o->n_sms < TOOL_SMS_MAX)
        o->sms[o->n_sms++] = sm;
}

/* The next part of a list with commas; false at its end. Parts too long for the buffer are cut, and so match
 * nothing. */
static bool next_part(const char **list, char *part, size_t size)
{
    if (!*list)
        return false;
    size_t length = strcspn(*list, ",");
    size_t kept = length < size ? length : size - 1;
    memcpy(part, *list, kept);
    part[kept] = 0;
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return true;
}

static int unknown_sm(const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "%s%s", name[0] >= '0' && name[0] <= '9' ? "sm_" : "", name);
    const char *near = tool_nearest(full, tool_sm_name);
    if (near)
        return tool_usage_error("unknown SM '%s'; did you mean '%s'?", name, near);
    return tool_usage_error("unknown SM '%s'; there are sm_75 to sm_121, and ptxgen --list names them", name);
}

static int parse_sm(tool_options *o, const char *value)
{
    char name[64];
    while (next_part(&value, name, sizeof name)) {
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

static int parse_set(tool_options *o, const char *value)
{
    char pair[140];
    while (next_part(&value, pair, sizeof pair)) {
        char *equals = strchr(pair, '=');
        tool_setting setting;
        if (!equals || equals == pair)
            return tool_usage_error("--set takes KEY=VALUE, and not '%s'", pair);
        if (o->n_settings == TOOL_SETTINGS_MAX)
            return tool_usage_error("there are more than %d settings", TOOL_SETTINGS_MAX);
        *equals = 0;
        snprintf(setting.key, sizeof setting.key, "%.63s", pair);
        snprintf(setting.value, sizeof setting.value, "%.63s", equals + 1);
        o->settings[o->n_settings++] = setting;
    }
    return TOOL_OK;
}

static const struct {
    const char *name;
    bool takes_value;
    int (*parse)(tool_options *o, const char *value);
} table[] = {
    {"--list", false, parse_list},       {"--kernel", true, parse_kernel},
    {"--all", false, parse_all},         {"--sm", true, parse_sm},
    {"--set", true, parse_set},          {"--emit", true, parse_emit},
    {"-o", true, parse_output},          {"--output", true, parse_output},
    {"--outdir", true, parse_outdir},    {"--comments", false, parse_comments},
    {"--help", false, parse_help},       {"-h", false, parse_help},
    {"--version", false, parse_version},
};
enum { TABLE_COUNT = sizeof table / sizeof table[0] };

static const char *option_name(int index)
{
    return index < TABLE_COUNT ? table[index].name : NULL;
}

/* One option, as "--sm 90" or "--sm=90"; *used counts the arguments it took. */
static int parse_one(tool_options *o, int left, char **argv, int *used)
{
    const char *equals = strncmp(argv[0], "--", 2) == 0 ? strchr(argv[0], '=') : NULL;
    size_t length = equals ? (size_t)(equals - argv[0]) : strlen(argv[0]);
    for (int i = 0; i < TABLE_COUNT; i++) {
        if (strlen(table[i].name) != length || strncmp(table[i].name, argv[0], length) != 0)
            continue;
        if (equals && !table[i].takes_value)
            return tool_usage_error("%s takes no value", table[i].name);
        const char *value = equals ? equals + 1 : left > 1 ? argv[1] : NULL;
        if (table[i].takes_value && (!value || !*value))
            return tool_usage_error("%s needs a value", table[i].name);
        *used = table[i].takes_value && !equals ? 2 : 1;
        return table[i].parse(o, value);
    }
    if (argv[0][0] != '-')
        return tool_usage_error("'%s' is no option; a kernel is named by --kernel %s", argv[0], argv[0]);
    return tool_unknown("option", argv[0], option_name, "it is not one of ptxgen's");
}

/* What has to go together. */
static int check(tool_options *o)
{
    bool writes = o->mode == MODE_KERNEL || o->mode == MODE_ALL;
    if (!writes && (o->n_sms || o->n_settings || o->outdir || o->comments))
        return tool_usage_error("--sm, --set, --outdir and --comments go with --kernel or --all");
    if (o->mode == MODE_ALL && (!o->outdir || o->output))
        return tool_usage_error("--all writes many files: give --outdir DIR, and no -o");
    if (o->mode != MODE_KERNEL)
        return TOOL_OK;
    if (o->n_sms == 0)
        return tool_usage_error("--kernel %s needs --sm, as in --sm 90", o->row->name);
    if (o->output && o->outdir)
        return tool_usage_error("-o and --outdir exclude each other");
    if (o->n_sms > 1 && !o->outdir)
        return tool_usage_error("several SMs make several files: give --outdir DIR");
    return TOOL_OK;
}

int tool_parse(tool_options *options, int argc, char **argv)
{
    *options = (tool_options){0};
    for (int i = 1; i < argc;) {
        int used = 0;
        int status = parse_one(options, argc - i, argv + i, &used);
        if (status != TOOL_OK)
            return status;
        i += used;
    }
    bool informs = options->mode == MODE_HELP || options->mode == MODE_VERSION || options->mode == MODE_NONE;
    return informs ? TOOL_OK : check(options);
}
