#include "texts/texts.h"

#include "texts/normal.h"
#include "tools/ptxgen/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const kernel_row *texts_open(const char *key, kernel_spec *spec, char *error, size_t error_size)
{
    char name[128];
    const size_t length = strcspn(key, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, key);
    const kernel_row *row = kernel_find(name);
    *spec = kernel_spec_default();
    if (!row)
        snprintf(error, error_size, "there is no kernel %s", name);
    return row && kernel_spec_set_words(row, spec, key + length + (key[length] == ' '), error, error_size)
               ? row
               : NULL;
}

static char *copy(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *own = malloc(size);
    return own ? memcpy(own, text, size) : NULL;
}

static struct {
    char from[64], to[64];
} change;

void texts_change(const char *text)
{
    const size_t length = strcspn(text, "=");
    snprintf(change.from, sizeof change.from, "%.*s", (int)length, text);
    snprintf(change.to, sizeof change.to, "%s", text[length] ? text + length + 1 : "");
}

static char *changed(char *ptx)
{
    tool_text out = {0};
    const char *rest = ptx;
    if (!change.from[0])
        return ptx;
    for (const char *at; (at = strstr(rest, change.from)); rest = at + strlen(change.from))
        tool_printf(&out, "%.*s%s", (int)(at - rest), rest, change.to);
    tool_printf(&out, "%s", rest);
    free(ptx);
    return out.data;
}

/* The PTX, or why there is none. */
static char *ptx_of(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    kernel_text text = {0};
    ptx_error error = {0};
    return kernel_emit(row, spec, sm, NULL, &text, &error) ? changed(text.ptx) : copy(error.text);
}

/* ---- The launch ---- */

/* The manifest, and the source of the launcher, but for the text itself. */
static void write_launch(tool_text *out, tool_item *item)
{
    tool_file files[TOOL_FILES_MAX] = {0};
    item->text.ptx[0] = 0;
    tool_manifest(out, item, NULL, 0, 0);
    if (tool_render_launcher(item, 1, NULL, files) == TOOL_OK)
        for (int i = 0; i < TOOL_FILES_MAX; i++)
            tool_printf(out, "\n%s", files[i].text.data ? files[i].text.data : "");
    for (int i = 0; i < TOOL_FILES_MAX; i++)
        tool_text_free(&files[i].text);
}

/* For the first SM that the kernel is for. */
static char *launch_of(const kernel_row *row, const kernel_spec *spec)
{
    tool_text out = {0};
    for (int i = 0; i < ptx_sm_count() && !out.data; i++) {
        tool_item item = {.row = row, .operation = row->operation_name, .spec = *spec, .sm = ptx_sm_get(i)};
        ptx_error error;
        kernel_file_name(row, KERNEL_NORMAL(row, spec), item.sm, item.stem, sizeof item.stem);
        kernel_entry_name(row, item.entry, sizeof item.entry);
        item.base = item.stem;
        if (kernel_emit(row, spec, item.sm, NULL, &item.text, &error))
            write_launch(&out, &item);
        free(item.text.ptx);
    }
    return out.data ? out.data : copy("");
}

/* ---- The steps ---- */

static void write_steps(tool_text *out, const kernel_row *row, const kernel_spec *spec,
                        const kernel_problem *p)
{
    kernel_steps steps;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), p, &steps);
    kernel_operands_of(row, KERNEL_NORMAL(row, spec), p, operands);
    tool_printf(out, "%d steps, %" PRIu64 " bytes\n", steps.count, steps.workspace);
    for (int i = 0; i < steps.count; i++) {
        const kernel_step *s = &steps.at[i];
        char text[KERNEL_SPEC_TEXT];
        kernel_spec_text(s->row, &s->spec, text, sizeof text);
        tool_printf(out, "%s %s: %" PRIu64 " %" PRIu64 " %" PRIu64 ", %u %u %u", s->row->name, text,
                    s->grid[0], s->grid[1], s->grid[2], s->block, s->shared, (unsigned)s->rows.per_block);
        for (int k = 0; k < s->n_params; k++)
            tool_printf(out, "; %d %d %d %d %" PRIx64, s->params[k].kind, s->params[k].operand,
                        s->params[k].bytes, s->params[k].is_rows, s->params[k].value);
        tool_printf(out, "\n");
    }
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (operands[i].bytes || operands[i].reads || operands[i].writes)
            tool_printf(out, "%s %d %d %u %" PRIu64 "\n", kernel_operand_name((qdnnOperand_t)i),
                        operands[i].reads, operands[i].writes, operands[i].align, operands[i].bytes);
}

static kernel_conv small_conv(const kernel_spec *spec)
{
    return (kernel_conv){.images = 2,
                         .channels = 2 * spec->conv.window_c,
                         .outputs = 6,
                         .in = {spec->conv.window_h + 5, spec->conv.window_w + 6},
                         .stride = {2, 1},
                         .padding = {1, 0},
                         .dilation = {1, 1}};
}

/* Problems of several sizes; those that the operation refuses, and products that this kernel cannot do, are left out. */
static char *steps_of(const kernel_row *row, const kernel_spec *spec)
{
    static const struct {
        uint64_t rows, columns, m, experts;
    } sizes[] = {
        {4096, 4096, 64, 8}, {1, 1001, 1, 2}, {96, 768, 5, 3}, {11008, 4096, 300, 16}, {0, 256, 1, 1}};
    tool_text out = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char error[512];
        kernel_problem p = kernel_problem_default();
        p.rows = sizes[i].rows;
        p.columns = sizes[i].columns;
        p.m = sizes[i].m;
        p.table_rows = 2 * sizes[i].rows;
        p.experts =
            spec->product.grouped || kernel_operation_of(row) == KERNEL_ROUTE_ROWS ? sizes[i].experts : 0;
        p.conv = small_conv(spec);
        if (kernel_problem_complete(row, spec, &p, error, sizeof error) &&
            (!kernel_is_product(row) || kernel_product_fits(row, spec, &p)))
            write_steps(&out, row, spec, &p);
    }
    return out.data ? out.data : copy("");
}

/* ---- Together ---- */

char *texts_part(const kernel_row *row, const kernel_spec *spec, const char *part)
{
    if (strcmp(part, "launch") == 0)
        return launch_of(row, spec);
    if (strcmp(part, "steps") == 0)
        return steps_of(row, spec);
    const ptx_sm *sm = ptx_sm_find(part);
    return sm ? ptx_of(row, spec, sm) : NULL;
}

/* Of texts that differ in nothing but the lines that name the target, such as those of neighbouring SMs, one is hashed. */
typedef struct hashed {
    char *part; /* the last one */
    uint64_t hash;
} hashed;

static const char *body_of(const char *ptx)
{
    const char *last = strstr(ptx, ".address_size");
    return last ? last : ptx;
}

static uint64_t hash_of(hashed *h, char *part)
{
    const char *body = body_of(part);
    uint64_t head = UINT64_C(0xCBF29CE484222325);
    for (const char *at = part; at < body; at++)
        head = (head ^ (uint8_t)*at) * UINT64_C(0x100000001B3);
    if (!h->part || strcmp(body_of(h->part), body) != 0) {
        char *normal = normal_text(body);
        h->hash = normal ? normal_hash(normal) : 0;
        free(normal);
    }
    free(h->part);
    h->part = part;
    return h->hash ^ head;
}

static size_t add_hash(hashed *h, char *text, size_t used, const char *name, char *part)
{
    return used + (size_t)snprintf(text + used, TEXTS_LINE - used, "%s%s=%016" PRIx64, used ? " " : "", name,
                                   part ? hash_of(h, part) : 0);
}

void texts_hashes(const kernel_row *row, const kernel_spec *spec, char text[TEXTS_LINE])
{
    size_t used = 0;
    hashed h = {0};
    for (int i = 0; i < ptx_sm_count(); i++)
        used = add_hash(&h, text, used, ptx_sm_get(i)->name, ptx_of(row, spec, ptx_sm_get(i)));
    used = add_hash(&h, text, used, "launch", launch_of(row, spec));
    add_hash(&h, text, used, "steps", steps_of(row, spec));
    free(h.part);
}
