/* --emit c: a header and a source that embed the PTX in a C program, with its launch parameters. */
#include "tools/ptxgen/tool.h"

#include <string.h>

const char tool_c_long_strings[] =
    "#ifdef __GNUC__\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#endif\n\n";

/* The stem as a C name, in capitals for macros; ASCII, whatever the locale. */
void tool_c_name(const char *stem, bool capitals, char *name, size_t size)
{
    size_t n = (size_t)snprintf(name, size, capitals ? "QDNN_%s" : "qdnn_%s", stem);
    for (size_t i = 0; i < n && name[i]; i++) {
        char c = name[i];
        bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z', digit = c >= '0' && c <= '9';
        if (!lower && !upper && !digit)
            name[i] = '_';
        else if (capitals && lower)
            name[i] = (char)(c - 'a' + 'A');
    }
}

static void capital(const char *name, char *out, size_t size)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++)
        out[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
    out[i] = 0;
}

static void title(tool_text *out, const tool_item *item)
{
    char settings[512];
    kernel_spec_text(item->row, KERNEL_NORMAL(item->row, &item->spec), settings, sizeof settings);
    tool_printf(out, "/* qdnn's %s for %s: %s.\n * %s.\n * Written by ptxgen, not by hand. */\n",
                item->row->name, item->sm->name, settings, item->row->summary);
}

static void parameters(tool_text *out, const ptx_info *info, const char *macro)
{
    uint32_t end = 0;
    tool_printf(out,
                "\n/* The parameters, in order: where each lies in the parameter block, and its size. */\n");
    for (int i = 0; i < info->n_params; i++) {
        const ptx_param_info *p = &info->params[i];
        char name[PTX_INFO_NAME];
        capital(p->name, name, sizeof name);
        tool_printf(out, "#define %s_PARAM_%s_OFFSET %u /* %s%s */\n", macro, name, (unsigned)p->offset,
                    ptx_type_text(p->type), p->pointer ? ", a pointer to device memory" : "");
        tool_printf(out, "#define %s_PARAM_%s_SIZE %u\n", macro, name, (unsigned)p->size);
        end = p->offset + p->size;
    }
    tool_printf(out, "#define %s_PARAMS %d\n#define %s_PARAM_BYTES %u\n", macro, info->n_params, macro,
                (unsigned)end);
}

/* The rules of the grid; nothing is launched where there is nothing to do. */
static void grid(tool_text *out, const kernel_geometry *g)
{
    char rule[KERNEL_RULE_CHARS];
    tool_printf(out, "/* Launch blocks of BLOCK threads; none if there is nothing to do. The grid, in terms "
                     "of the parameters:\n");
    for (int i = 0; i < 3; i++) {
        kernel_rule_text(&g->grid[i], KERNEL_RULE_TEXT, rule);
        tool_printf(out, " *   %c = %s%s\n", "xyz"[i], rule, i == 2 ? " */" : "");
    }
}

static void header(tool_text *out, const tool_item *item, const char *name, const char *macro)
{
    const kernel_geometry *g = &item->text.geometry;
    title(out, item);
    tool_printf(out, "#ifndef %s_H\n#define %s_H\n\n#include <stddef.h>\n\n", macro, macro);
    tool_printf(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    tool_printf(out, "/* The PTX text, zero-terminated, and its length without the zero. */\n");
    tool_printf(out, "extern const char %s_ptx[];\nextern const size_t %s_ptx_bytes;\n\n", name, name);
    tool_printf(out, "#define %s_ENTRY \"%s\"\n#define %s_SM \"%s\"\n\n", macro, item->entry, macro,
                item->sm->name);
    grid(out, g);
    tool_printf(out, "#define %s_BLOCK %u\n", macro, (unsigned)g->block);
    if (g->elements_per_block) /* otherwise the grid is not a division of elements */
        tool_printf(out, "#define %s_ELEMENTS_PER_BLOCK %lluULL\n", macro,
                    (unsigned long long)g->elements_per_block);
    if (g->blocks && g->elements_per_block)
        tool_printf(out,
                    "/* This many do best, whatever n is; any number gives the same bytes. */\n#define "
                    "%s_BLOCKS %lluULL\n",
                    macro, (unsigned long long)g->blocks);
    tool_printf(out, "#define %s_SHARED_STATIC %u\n", macro, (unsigned)item->text.info.shared);
    tool_printf(out, "#define %s_SHARED_DYNAMIC %u\n", macro, (unsigned)g->shared_dynamic);
    parameters(out, &item->text.info, macro);
    tool_printf(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* Each line of PTX becomes one string literal. */
void tool_c_literal(tool_text *out, const char *ptx)
{
    for (const char *line = ptx; *line;) {
        char piece[2000];
        size_t length = strcspn(line, "\n");
        length += line[length] == '\n';
        length = length < sizeof piece ? length : sizeof piece - 1;
        memcpy(piece, line, length);
        piece[length] = 0;
        tool_printf(out, "\n    ");
        tool_quote(out, piece);
        line += length;
    }
}

/* The string is longer than the 4,095 characters that every C compiler must accept; all relevant compilers do
 * accept it, and a pragma silences -pedantic. */
static void source(tool_text *out, const tool_item *item, const char *name)
{
    title(out, item);
    tool_printf(out, "#include \"%s.h\"\n\n%s", item->base, tool_c_long_strings);
    tool_printf(out, "const char %s_ptx[] =", name);
    tool_c_literal(out, item->text.ptx);
    tool_printf(out, ";\n\nconst size_t %s_ptx_bytes = sizeof %s_ptx - 1;\n", name, name);
}

int tool_render_c(const tool_item *item, tool_file *files)
{
    char name[300], macro[300];
    tool_c_name(item->stem, false, name, sizeof name);
    tool_c_name(item->stem, true, macro, sizeof macro);
    header(&files[0].text, item, name, macro);
    source(&files[1].text, item, name);
    return TOOL_OK;
}
