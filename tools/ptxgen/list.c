/* --list: as text, or as JSON for scripts; --map. */
#include "kernels/maps/map.h"
#include "tools/ptxgen/tool.h"

#include <stdlib.h>
#include <string.h>

const ptx_sm *tool_lowest_sm(const kernel_row *row)
{
    kernel_spec spec = kernel_spec_default();
    for (int i = 0; i < ptx_sm_count(); i++) {
        kernel_text text;
        ptx_error error;
        bool ok = kernel_emit(row, &spec, ptx_sm_get(i), NULL, &text, &error);
        free(text.ptx);
        if (ok)
            return ptx_sm_get(i);
    }
    return NULL;
}

static const char *lowest_name(const kernel_row *row)
{
    const ptx_sm *sm = tool_lowest_sm(row);
    return sm ? sm->name : "none";
}

static void list_kernel(tool_text *out, const kernel_row *row)
{
    tool_printf(out, "  %-20s %s\n  %-20s from %s; takes", row->name, row->summary, "", lowest_name(row));
    const char *separator = " ";
    for (int i = 0; kernel_key_at(i); i++) {
        if (!kernel_has_key(row, kernel_key_at(i)->key))
            continue;
        tool_printf(out, "%s%s", separator, kernel_key_at(i)->name);
        separator = ", ";
    }
    tool_printf(out, "\n");
}

/* ---- Operations by stable name ---- */

/* Whether the caller binds the operand of that name; some are made by an earlier kernel of the operation. */
static bool is_bound(const kernel_row *row, const kernel_spec *spec, const char *name)
{
    kernel_operand all[QDNN_OPERAND_COUNT];
    const kernel_problem one = kernel_problem_default();
    kernel_operands_of(row, KERNEL_NORMAL(row, spec), &one, all);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (all[i].align && strcmp(kernel_operand_name((qdnnOperand_t)i), name) == 0)
            return true;
    return false;
}

/* "x in f32 [4 * n], ...": the operands that the caller binds. */
static void put_operands(tool_text *out, const char *name)
{
    kernel_spec spec;
    const kernel_row *row = kernel_open(name, &spec);
    const ptx_sm *sm = tool_lowest_sm(row);
    const tool_options plain = {.name = name};
    tool_item item;
    const char *separator = "";
    if (!sm || tool_item_make(&item, &plain, row, &spec, sm) != TOOL_OK)
        return;
    for (int i = 0; i < item.text.info.n_params; i++) {
        tool_pointer p;
        if (!tool_pointer_of(&item, i, &p) || p.workspace ||
            !is_bound(row, &spec, item.text.info.params[i].name))
            continue;
        tool_printf(out, "%s%s %s %s [%s]", separator, item.text.info.params[i].name, p.direction, p.element,
                    p.bytes);
        separator = ", ";
    }
    free(item.text.ptx);
}

/* Every stable name, in the order of qdnnGetOperationName. */
static const char *stable_name(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_rows[i].operation_name && index-- == 0)
            return kernel_rows[i].operation_name;
    const kernel_alias *alias = kernel_alias_at(index);
    return alias ? alias->name : NULL;
}

static void list_operation(tool_text *out, const char *name)
{
    kernel_spec spec;
    const kernel_row *row = kernel_open(name, &spec);
    const char *answer = tool_known_answer(name);
    tool_printf(out, "  %s\n      %s\n      operands: ", name, tool_formula(row, name));
    put_operands(out, name);
    tool_printf(out, "\n      known answer: %s%s%s\n", answer ? answer : "", answer ? "; " : "",
                tool_known_digest(name));
}

/* docs/operations.md: one table for each operation, a row for each name. */
static void list_markdown(tool_text *out)
{
    tool_printf(out, "%s",
                "# Operations by stable name\n\n"
                "This file is the output of `ptxgen --list --emit md`; a test compares them. "
                "[numerics.md](numerics.md) has every step of the formulas, "
                "[formats.md](formats.md) the bytes.\n\n"
                "Operands are those of the kernel with its default settings: direction, element and bytes in "
                "terms of its numbers (`/` rounds down, but up inside "
                "`ceil(...)`). Known answers are worked out by hand where they are numbers; the others are "
                "FNV-1a digests (64 bits) of the outputs for the data of "
                "the test ParityLaunchers.EveryOperationName, which compares the launcher of each name with "
                "host_ref, and both with this list. In the former, W is "
                "[1 2 3 4 -1 -2 -3 -4 5; 4 3 2 1 -4 -3 -2 -1 -5; -8 -7 -6 -5 -4 -3 -2 -1 0] with row scales "
                "0.5, 0.25, 0.125, and X is "
                "[1 -1 2 -2 3 -3 4 -4 5; -5 4 -4 3 -3 2 -2 1 -1] with batch scales 0.75, 0.375.\n");
    for (int i = 0; stable_name(i); i++) {
        const char *name = stable_name(i);
        kernel_spec spec;
        const kernel_row *row = kernel_open(name, &spec);
        const char *formula = tool_formula(row, name), *answer = tool_known_answer(name);
        const kernel_alias *alias = kernel_find_alias(name);
        tool_printf(out, "\n## %s\n\n%s.\n\n", name, alias ? alias->summary : row->summary);
        tool_printf(out, "- formula: %s\n- kernel: `%s`%s%s%s\n- operands: ", formula, row->name,
                    alias ? " with `" : "", alias ? alias->settings : "", alias ? "`" : "");
        put_operands(out, name);
        tool_printf(out, "\n- known answer: %s%s%s\n", answer ? answer : "", answer ? "; " : "",
                    tool_known_digest(name));
    }
}

static void list_text(tool_text *out)
{
    tool_printf(out, "kernels (--kernel):\n");
    for (int i = 0; i < kernel_row_count; i++)
        list_kernel(out, &kernel_rows[i]);
    tool_printf(out, "\nnames of kernels with settings (--kernel):\n");
    for (int i = 0; kernel_alias_at(i); i++)
        tool_printf(out, "  %s\n  %-20s %s with %s\n", kernel_alias_at(i)->name, "",
                    kernel_alias_at(i)->kernel, kernel_alias_at(i)->settings);
    tool_printf(out, "\noperations by stable name (--kernel):\n");
    for (int i = 0; stable_name(i); i++)
        list_operation(out, stable_name(i));
    tool_printf(out, "\nsettings (--set):\n");
    for (int i = 0; kernel_key_at(i); i++) {
        const kernel_key_info *info = kernel_key_at(i);
        tool_printf(out, "  %-20s %s; %s unless set\n", info->name, info->values, info->preset);
    }
    tool_printf(out, "\ntargets (--sm):\n ");
    for (int i = 0; i < ptx_sm_count(); i++)
        tool_printf(out, "%s%s", i == 12 ? "\n  " : " ", ptx_sm_get(i)->name);
    tool_printf(out, "\n");
}

static void json_settings(tool_text *out, const kernel_row *row)
{
    const char *separator = "";
    for (int i = 0; kernel_key_at(i); i++) {
        const kernel_key_info *info = kernel_key_at(i);
        if (!kernel_has_key(row, info->key))
            continue;
        tool_printf(out, "%s\n        {\"name\": \"%s\", \"values\": \"%s\", \"default\": \"%s\"}", separator,
                    info->name, info->values, info->preset);
        separator = ",";
    }
}

static void list_json(tool_text *out)
{
    tool_printf(out, "{\n  \"kernels\": [");
    for (int i = 0; i < kernel_row_count; i++) {
        const kernel_row *row = &kernel_rows[i];
        tool_printf(out, "%s\n    {\n      \"name\": \"%s\",\n      \"summary\": ", i ? "," : "", row->name);
        tool_quote(out, row->summary);
        tool_printf(out, ",\n      \"lowest_sm\": \"%s\",\n      \"settings\": [", lowest_name(row));
        json_settings(out, row);
        tool_printf(out, "\n      ]\n    }");
    }
    tool_printf(out, "\n  ],\n  \"sms\": [");
    for (int i = 0; i < ptx_sm_count(); i++)
        tool_printf(out, "%s\"%s\"", i ? ", " : "", ptx_sm_get(i)->name);
    tool_printf(out, "]\n}\n");
}

int tool_list(const tool_options *options)
{
    bool json = options->form && strcmp(options->form->name, "json") == 0;
    const bool markdown = options->form && strcmp(options->form->name, "md") == 0;
    if (options->form && !json && !markdown)
        return tool_usage_error("--list is text, or --emit json or md");
    tool_text out = {0};
    (json ? list_json : markdown ? list_markdown : list_text)(&out);
    int status = tool_write(options->output, &out);
    tool_text_free(&out);
    return status;
}

/* ---- --map ---- */

static void print_map(const named_map *named)
{
    char text[512];
    const map m = map_of(named->text);
    map_print(&m, text, sizeof text);
    printf("%s: %s\n  %s\n", named->name, named->what, named->text);
    for (const char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        printf("  %s\n", line);
}

int tool_map(const tool_options *options)
{
    for (int i = 0; map_named(i); i++)
        if (strcmp(options->name, "all") == 0 || strcmp(options->name, map_named(i)->name) == 0)
            print_map(map_named(i));
    return TOOL_OK;
}
