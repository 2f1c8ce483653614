/* Parsing the command line of a command by its table of options. */
#include "tools/tool.h"

#include <string.h>

static const char *option_name(const void *list, int index)
{
    const tool_command_line *line = list;
    return index < line->count ? line->table[index].name : NULL;
}

/* No option begins with a digit: "-1" and "-.5" are numbers, and so are "-inf" and "-nan". */
static bool is_option(const char *argument)
{
    return argument[0] == '-' && argument[1] && !strchr("0123456789.", argument[1]) &&
           strcmp(argument, "-inf") != 0 && strcmp(argument, "-nan") != 0;
}

static int store(const tool_option *option, void *options, const char *value)
{
    if (option->parse)
        return option->parse(options, value);
    *(bool *)((char *)options + option->flag) = true;
    return TOOL_OK;
}

/* Parses one option; *used receives the number of arguments it took. */
static int parse_one(const tool_command_line *line, void *options, int left, char **argv, int *used)
{
    const char *equals = strncmp(argv[0], "--", 2) == 0 ? strchr(argv[0], '=') : NULL;
    size_t length = equals ? (size_t)(equals - argv[0]) : strlen(argv[0]);
    for (int i = 0; i < line->count; i++) {
        const tool_option *option = &line->table[i];
        if (strlen(option->name) != length || strncmp(option->name, argv[0], length) != 0)
            continue;
        if (equals && !option->takes_value)
            return tool_usage_error("%s takes no value", option->name);
        const char *value = !option->takes_value ? NULL : equals ? equals + 1 : left > 1 ? argv[1] : NULL;
        if (option->takes_value && (!value || !*value))
            return tool_usage_error("%s needs a value", option->name);
        *used = option->takes_value && !equals ? 2 : 1;
        return store(option, options, value);
    }
    char otherwise[64];
    snprintf(otherwise, sizeof otherwise, "it is not one of %s's", tool_program);
    return tool_unknown("option", argv[0], option_name, line, otherwise);
}

int tool_parse_options(const tool_command_line *line, void *options, int argc, char **argv)
{
    int status = TOOL_OK;
    bool only_operands = false;
    for (int i = 1, used; i < argc && status == TOOL_OK; i += used) {
        used = 1;
        if (only_operands || !is_option(argv[i]))
            status = line->operand(options, argv[i]);
        else if (strcmp(argv[i], "--") == 0)
            only_operands = true;
        else
            status = parse_one(line, options, argc - i, argv + i, &used);
    }
    return status;
}

char *tool_cut_part(char **list)
{
    char *part = *list;
    if (!part)
        return NULL;
    char *comma = strchr(part, ',');
    if (comma)
        *comma = 0;
    *list = comma ? comma + 1 : NULL;
    return part;
}

bool tool_next_part(const char **list, char *part, size_t size)
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
