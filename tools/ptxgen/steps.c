/* Operations of several kernels: the sequence of launches for a problem of common size, as planned by the
 * registry. */
#include "tools/ptxgen/tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/operations.h"

kernel_problem tool_common_problem(const kernel_spec *spec)
{
    enum { SIDE = 4096, EXPERTS = 8 };
    const uint64_t m = spec->product.tile_rows > 64 ? 512 : 64;
    return (kernel_problem){.rows = SIDE,
                            .columns = SIDE,
                            .table_rows = SIDE,
                            .m = m,
                            .x_stride = SIDE,
                            .y_stride = SIDE,
                            .experts = spec->product.grouped ? EXPERTS : 0,
                            .alpha = 1,
                            .multiplier = 1,
                            .top = 8};
}

/* "x", {"workspace": 4096}, 16777216. */
static void argument(tool_text *out, const kernel_param *p)
{
    if (p->kind == KERNEL_OPERAND)
        tool_printf(out, "\"%s\"", kernel_operand_name((qdnnOperand_t)p->operand));
    else if (p->kind == KERNEL_WORKSPACE)
        tool_printf(out, "{\"workspace\": %" PRIu64 "}", p->value);
    else if (p->bytes == 8)
        tool_printf(out, "%" PRIu64, p->value);
    else
        tool_printf(out, "{\"f32\": \"%08" PRIx32 "\"}", (uint32_t)p->value);
}

static void step_object(tool_text *out, const kernel_step *step, const ptx_sm *sm)
{
    char stem[KERNEL_FILE_NAME];
    kernel_file_name(step->row, &step->spec, sm, stem, sizeof stem);
    tool_printf(out,
                "{\"kernel\": \"%s\", \"stem\": \"%s\", \"grid\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]",
                step->row->name, stem, step->grid[0], step->grid[1], step->grid[2]);
    tool_printf(out, ", \"block\": %u, \"shared_dynamic\": %u, \"arguments\": [", (unsigned)step->block,
                (unsigned)step->shared);
    for (int i = 0; i < step->n_params; i++) {
        tool_printf(out, "%s", i ? ", " : "");
        argument(out, &step->params[i]);
    }
    tool_printf(out, "]}");
}

void tool_operation(tool_text *out, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    kernel_steps steps;
    kernel_description description;
    const kernel_problem p = tool_common_problem(spec);
    kernel_describe(row, KERNEL_NORMAL(row, spec), &description);
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), &p, &steps);
    tool_printf(out,
                "    {\n      \"operation\": \"%s\",\n      \"kernel\": \"%s\",\n      \"sm\": \"%s\",\n",
                row->operation_name, row->name, sm->name);
    tool_printf(out, "      \"settings\": {");
    tool_settings(out, row, spec);
    tool_printf(out, "},\n      \"problem\": {\"rows\": %" PRIu64 ", \"columns\": %" PRIu64, p.rows,
                p.columns);
    if (description.numbers & A_NUMBER(M))
        tool_printf(out, ", \"m\": %" PRIu64, p.m);
    tool_printf(out, "},\n      \"workspace\": %" PRIu64 ",\n      \"steps\": [", steps.workspace);
    for (int i = 0; i < steps.count; i++) {
        tool_printf(out, "%s\n        ", i ? "," : "");
        step_object(out, &steps.at[i], sm);
    }
    tool_printf(out, "\n      ]\n    }");
}

/* ---- One operation by itself ---- */

/* The operands that the caller binds. */
static void operands(tool_text *out, const tool_sequence *q)
{
    kernel_operand all[QDNN_OPERAND_COUNT];
    const char *separator = "";
    kernel_operands_of(q->row, KERNEL_NORMAL(q->row, &q->spec), &q->problem, all);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (!all[i].align)
            continue;
        tool_printf(
            out, "%s\n    {\"name\": \"%s\", \"direction\": \"%s\", \"align\": %u, \"bytes\": %" PRIu64 "}",
            separator, kernel_operand_name((qdnnOperand_t)i),
            !all[i].writes ? "in"
            : all[i].reads ? "inout"
                           : "out",
            all[i].align, all[i].bytes);
        separator = ",";
    }
}

void tool_sequence_json(tool_text *out, const tool_sequence *q, const tool_item *items)
{
    tool_printf(out, "{\n  \"operation\": \"%s\",\n  \"sm\": \"%s\",\n", q->operation, items[0].sm->name);
    if (q->problem.multiprocessors)
        tool_printf(out, "  \"multiprocessors\": %d,\n", q->problem.multiprocessors);
    tool_printf(out, "  \"settings\": {");
    tool_settings(out, q->row, &q->spec);
    tool_printf(out, "},\n  \"operands\": [");
    operands(out, q);
    tool_printf(out, "\n  ],\n  \"workspace\": %" PRIu64 ",\n  \"steps\": [", q->steps.workspace);
    for (int i = 0; i < q->steps.count; i++) {
        tool_printf(out, "%s\n    ", i ? "," : "");
        step_object(out, &q->steps.at[i], items[0].sm);
    }
    tool_printf(out, "\n  ],\n  \"kernels\": [");
    for (int i = 0; i < q->steps.count; i++) {
        tool_printf(out, "%s\n", i ? "," : "");
        tool_manifest(out, &items[i], NULL, 0, 4);
    }
    tool_printf(out, "\n  ]\n}\n");
}

static bool is_set(const tool_options *options, const char *key)
{
    for (int i = 0; i < options->n_settings; i++)
        if (strcmp(options->settings[i].key, key) == 0)
            return true;
    return false;
}

/* As the library does on a device, unless a setting says otherwise. */
static void choose_product(const tool_options *options, tool_sequence *q)
{
    q->problem.multiprocessors = options->on ? options->on->multiprocessors : 0;
    if (!options->on || kernel_operation_of(q->row) != KERNEL_MATMUL || is_set(options, "product") ||
        is_set(options, "tile_rows") || is_set(options, "split"))
        return;
    kernel_product_choose(q->row, &q->problem, &q->spec);
    q->spec = kernel_spec_normal(q->row, &q->spec);
}

static int read_sizes(const tool_options *options, tool_sequence *q)
{
    char error[256];
    q->problem = kernel_problem_default();
    for (int i = 0; i < options->n_sizes; i++) {
        const tool_setting *s = &options->sizes[i];
        const char *near = tool_nearest(s->key, tool_size_name, NULL);
        if (near && strcmp(near, s->key) != 0)
            return tool_usage_error("unknown size '%s'; did you mean '%s'?", s->key, near);
        if (!kernel_size_set(&q->problem, s->key, s->value, error, sizeof error))
            return tool_usage_error("%s", error);
    }
    if (!kernel_spec_check(q->row, &q->spec, error, sizeof error) ||
        !kernel_problem_complete(q->row, &q->spec, &q->problem, error, sizeof error))
        return tool_usage_error("%s: %s", options->name, error);
    choose_product(options, q);
    kernel_steps_of(q->row, KERNEL_NORMAL(q->row, &q->spec), &q->problem, &q->steps);
    return q->steps.count ? TOOL_OK
                          : tool_usage_error("%s: there is nothing to do for these sizes", options->name);
}

/* One file: for all SMs, or as JSON for the only one. Other forms are one file per kernel. */
static int write_items(const tool_options *options, tool_item *items, int n, const tool_sequence *q)
{
    const tool_form *form = tool_form_of(options);
    int status = TOOL_OK;
    if (form->all_sms)
        return tool_write_items(options, items, options->n_sms, q);
    if (strcmp(form->name, "json") == 0 && !options->outdir) {
        tool_text out = {0};
        tool_sequence_json(&out, q, items);
        status = tool_write(options->output, &out);
        tool_text_free(&out);
        return status;
    }
    if (!options->outdir)
        return tool_usage_error("%s makes several files: give --outdir DIR, or --emit launcher or json",
                                options->name);
    for (int i = 0; i < n && status == TOOL_OK; i++)
        status = tool_write_item(options, &items[i], NULL);
    return status;
}

/* Launchers are named after the operation and its sizes, "fake_quantize_g128_n4096": a program may have several. */
static void name_sequence(const tool_options *options, const tool_sequence *q, tool_item *first)
{
    char *stem = first->stem;
    kernel_file_name(q->row, KERNEL_NORMAL(q->row, &q->spec), first->sm, stem, sizeof first->stem);
    char *end = strstr(stem, first->sm->name);
    if (end && end > stem)
        end[-1] = 0;
    for (int i = 0; i < options->n_sizes; i++) {
        const size_t used = strlen(stem);
        snprintf(stem + used, sizeof first->stem - used, "_%s%s", options->sizes[i].key,
                 options->sizes[i].value);
    }
}

int tool_write_sequence(const tool_options *options, const kernel_spec *spec)
{
    static tool_sequence q;
    const kernel_alias *alias = kernel_find_alias(options->name);
    q = (tool_sequence){
        .row = options->row, .operation = alias ? alias->name : options->row->operation_name, .spec = *spec};
    int status = read_sizes(options, &q), n = 0;
    if (status != TOOL_OK)
        return status;
    const int total = q.steps.count * options->n_sms;
    tool_item *items = calloc((size_t)total, sizeof *items);
    if (!items)
        return tool_fail("out of memory");
    for (; n < total && status == TOOL_OK; n++) {
        const kernel_step *step = &q.steps.at[n / options->n_sms];
        status = tool_item_make(&items[n], options, step->row, &step->spec, options->sms[n % options->n_sms]);
    }
    if (status == TOOL_OK) {
        if (tool_form_of(options)->all_sms)
            name_sequence(options, &q, &items[0]);
        status = write_items(options, items, n, &q);
    }
    for (int i = 0; i < n; i++)
        free(items[i].text.ptx);
    free(items);
    return status;
}
