/* --list: as text, or as JSON for scripts. */
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
        if (!(kernel_keys(row) & kernel_key_at(i)->key))
            continue;
        tool_printf(out, "%s%s", separator, kernel_key_at(i)->name);
        separator = ", ";
    }
    tool_printf(out, "\n");
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
        if (!(kernel_keys(row) & info->key))
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
    if (options->form && !json)
        return tool_usage_error("--list is text, or --emit json");
    tool_text out = {0};
    json ? list_json(&out) : list_text(&out);
    int status = tool_write(options->output, &out);
    tool_text_free(&out);
    return status;
}
