#define _GNU_SOURCE /* memmem */
#include "mutate/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_at(const char *at, instruction *i)
{
    *i = (instruction){0};
    if (sscanf(at, "%63[a-z0-9_.]", i->opcode) != 1)
        return false;
    at += strlen(i->opcode);
    while (i->n < OPERANDS_MAX && *at && *at != ';' && *at != '\n') {
        at += strspn(at, " ,");
        size_t length = *at == '{' ? strcspn(at, "}\n") + 1 : strcspn(at, ",;\n");
        snprintf(i->operand[i->n++], TEXT_MAX, "%.*s", (int)length, at);
        at += length;
    }
    return true;
}

/* The instruction of a line; false for labels, directives and guarded instructions. */
bool text_parse(const char *line, instruction *i)
{
    return *line == '\t' && parse_at(line + 1, i);
}

bool text_parse_guarded(const char *line, instruction *i)
{
    return *line == '\t' && parse_at(line + 1 + (line[1] == '@' ? strcspn(line + 1, " ") + 1 : 0), i);
}

const char *text_next_line(const char *line)
{
    line = strchr(line, '\n');
    return line ? line + 1 : NULL;
}

static bool names_before(const char *at, const char *end, const char *reg)
{
    const size_t length = strlen(reg);
    while (at < end && (at = memmem(at, (size_t)(end - at), reg, length))) {
        if (!isdigit((unsigned char)at[length]))
            return true;
        at += length;
    }
    return false;
}

bool text_names(const char *line, const char *reg)
{
    return names_before(line, line + strcspn(line, "\n"), reg);
}

bool text_writes(const instruction *i)
{
    static const char *const others[] = {"st.",  "red.", "bra",    "bar",  "ret",
                                         "exit", "cp.",  "membar", "fence"};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
        if (strncmp(i->opcode, others[k], strlen(others[k])) == 0)
            return false;
    return i->n > 0;
}

/* Whether the register is a destination of the line, behind a guard or among others in braces. */
static bool is_written(const char *line, const char *reg)
{
    instruction i = {.n = 1};
    if (*line++ != '\t')
        return false;
    if (*line == '@')
        line += strcspn(line, " \n") + 1;
    if (sscanf(line, "%63[a-z0-9_.]", i.opcode) != 1 || !text_writes(&i))
        return false;
    const char *destination = line + strlen(i.opcode) + 1;
    return names_before(destination, destination + strcspn(destination, *destination == '{' ? "}\n" : ",;\n"),
                        reg);
}

bool text_definition(const char *ptx, const char *reg, instruction *def)
{
    int count = 0;
    for (const char *line = ptx; line && count < 2; line = text_next_line(line)) {
        if (!is_written(line, reg))
            continue;
        count += text_parse(line, def) ? 1 : 2;
    }
    return count == 1;
}

/* Whether the instruction writes the register and does not read it. */
static bool only_writes(const instruction *i, const char *reg)
{
    if (!text_writes(i) || strcmp(i->operand[0], reg) != 0)
        return false;
    for (int k = 1; k < i->n; k++)
        if (text_names(i->operand[k], reg))
            return false;
    return true;
}

bool text_only_reader(const char *ptx, const char *reg, instruction *reader)
{
    int readers = 0;
    instruction i;
    if (!text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg) || (text_parse(line, &i) && only_writes(&i, reg)))
            continue;
        if (readers++ || !text_parse(line, reader))
            return false;
    }
    return readers == 1;
}

bool text_all_readers(const char *ptx, const char *reg, bool (*accepts)(const instruction *i, void *context),
                      void *context)
{
    instruction i;
    if (!text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg))
            continue;
        if (!text_parse(line, &i))
            return false;
        if (text_writes(&i) && strcmp(i.operand[0], reg) == 0)
            continue;
        if (!accepts(&i, context))
            return false;
    }
    return true;
}

bool text_is_written_before(const char *ptx, const char *reg, const char *place)
{
    instruction def;
    bool is_written_here = false;
    for (const char *line = ptx; line && line < place; line = text_next_line(line))
        is_written_here = *line != '$' && (is_written_here || is_written(line, reg));
    return is_written_here && text_definition(ptx, reg, &def);
}

bool text_is_opcode(const instruction *i, const char *opcode)
{
    return strcmp(i->opcode, opcode) == 0;
}

bool text_constant(const char *text, uint64_t *value)
{
    char *end;
    bool is_float = text[0] == '0' && text[1] == 'f';
    *value = strtoull(is_float ? text + 2 : text, &end, is_float ? 16 : 0);
    return *text != '%' && *text != '-' && *text && *end == 0;
}

int text_count_lines(const char *ptx, const char *reg)
{
    int count = 0;
    for (const char *line = ptx; line; line = text_next_line(line))
        count += text_names(line, reg);
    return count;
}
