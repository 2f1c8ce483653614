/* The manifest: everything that a loader needs to launch a kernel, as JSON. */
#include "tools/ptxgen/tool.h"

#include <string.h>

/* kernel_spec_text gives "data=f16 scale=f32 ...". */
void tool_settings(tool_text *out, const kernel_row *row, const kernel_spec *spec)
{
    char text[KERNEL_SPEC_TEXT];
    kernel_spec_text(row, KERNEL_NORMAL(row, spec), text, sizeof text);
    const char *separator = "";
    for (char *at = text; *at;) {
        size_t key = strcspn(at, "="), value = strcspn(at + key, " ");
        tool_printf(out, "%s\"%.*s\": \"%.*s\"", separator, (int)key, at, (int)value - 1, at + key + 1);
        separator = ", ";
        at += key + value;
        at += *at == ' ';
    }
}

/* A pointer: alignment, direction, element and size. */
static void pointer(tool_text *out, const tool_item *item, int index, unsigned align)
{
    tool_pointer p;
    tool_printf(out, ", \"pointer\": true, \"align\": %u", align);
    if (!tool_pointer_of(item, index, &p))
        return;
    tool_printf(out, ", \"direction\": \"%s\", \"element\": \"%s\"", p.direction, p.element);
    if (p.workspace)
        tool_printf(out, ", \"workspace\": true");
    else
        tool_printf(out, ", \"bytes\": \"%s\"", p.bytes);
}

static void parameters(tool_text *out, const tool_item *item, int indent)
{
    const ptx_info *info = &item->text.info;
    for (int i = 0; i < info->n_params; i++) {
        const ptx_param_info *p = &info->params[i];
        tool_printf(out, "%s\n%*s{\"name\": \"%s\", \"type\": \"%s\", \"offset\": %u, \"size\": %u",
                    i ? "," : "", indent, "", p->name, ptx_type_text(p->type), (unsigned)p->offset,
                    (unsigned)p->size);
        if (p->pointer)
            pointer(out, item, i, (unsigned)p->align);
        else
            tool_printf(out, ", \"meaning\": \"%s\"", tool_number_meaning(tool_number_of(item, i)));
        tool_printf(out, "}");
    }
}

/* Rules for x, y and z, and what the numbers in them mean that are not parameters. */
static void grid(tool_text *out, const tool_item *item)
{
    static const char axes[] = "xyz";
    char rule[KERNEL_RULE_CHARS];
    for (int i = 0; i < 3; i++) {
        kernel_rule_text(&item->text.geometry.grid[i], KERNEL_RULE_TEXT, rule);
        tool_printf(out, ", \"%c\": \"%s\"", axes[i], rule);
    }
    for (int i = 0, number; (number = tool_launch_number(item, i)) >= 0; i++)
        tool_printf(out, "%s\"%s\": \"%s\"", i ? ", " : ", \"numbers\": {", tool_number_name(number),
                    tool_number_meaning(number));
    tool_printf(out, "%s", tool_launch_number(item, 0) >= 0 ? "}" : "");
    if (item->text.geometry.elements_per_block && item->text.geometry.blocks)
        tool_printf(out, ", \"any\": true"); /* any other number gives the same bytes */
}

static void list_files(tool_text *out, const tool_item *item, const tool_file *files, int n)
{
    for (int i = 0; i < n; i++)
        tool_printf(out, "%s{\"name\": \"%s%s\", \"bytes\": %zu, \"fnv1a64\": \"%016llx\"}", i ? ", " : "",
                    item->base, files[i].suffix, files[i].text.size,
                    (unsigned long long)tool_hash(&files[i].text));
}

void tool_manifest(tool_text *out, const tool_item *item, const tool_file *files, int n_files, int indent)
{
    const ptx_info *info = &item->text.info;
    const kernel_geometry *geometry = &item->text.geometry;
    unsigned long long per_block = geometry->elements_per_block;
    const tool_text ptx = {.data = item->text.ptx, .size = strlen(item->text.ptx)};
    tool_printf(out, "%*s{\n", indent, "");
    indent += 2;
    tool_printf(out, "%*s\"kernel\": \"%s\",\n", indent, "", item->row->name);
    tool_printf(out, "%*s\"summary\": ", indent, "");
    tool_quote(out, item->row->summary);
    if (item->operation)
        tool_printf(out, ",\n%*s\"operation\": \"%s\"", indent, "", item->operation);
    tool_printf(out, ",\n%*s\"entry\": \"%s\",\n", indent, "", item->entry);
    tool_printf(out, "%*s\"sm\": \"%s\",\n", indent, "", item->sm->name);
    tool_printf(out, "%*s\"ptx_version\": \"%d.%d\",\n", indent, "", info->version / 10, info->version % 10);
    tool_printf(out, "%*s\"settings\": {", indent, "");
    tool_settings(out, item->row, &item->spec);
    tool_printf(out, "},\n%*s\"parameters\": [", indent, "");
    parameters(out, item, indent + 2);
    tool_printf(out, "\n%*s],\n", indent, "");
    tool_printf(out, "%*s\"block\": [%u, 1, 1],\n", indent, "", (unsigned)geometry->block);
    tool_printf(out, "%*s\"grid\": {\"elements_per_block\": %llu", indent, "", per_block);
    grid(out, item);
    tool_printf(out, "},\n");
    tool_printf(out, "%*s\"shared\": {\"static\": %u, \"dynamic\": %u},\n", indent, "",
                (unsigned)info->shared, (unsigned)geometry->shared_dynamic);
    tool_printf(out, "%*s\"ptx_bytes\": %zu,\n%*s\"ptx_fnv1a64\": \"%016llx\"", indent, "", ptx.size, indent,
                "", (unsigned long long)tool_hash(&ptx));
    if (n_files) {
        tool_printf(out, ",\n%*s\"files\": [", indent, "");
        list_files(out, item, files, n_files);
        tool_printf(out, "]");
    }
    tool_printf(out, "\n%*s}", indent - 2, "");
}

int tool_render_json(const tool_item *item, tool_file *files)
{
    tool_manifest(&files[0].text, item, NULL, 0, 0);
    tool_append(&files[0].text, "\n", 1);
    return TOOL_OK;
}
