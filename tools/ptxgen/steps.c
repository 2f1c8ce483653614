/* Operations of several kernels: the sequence of launches for a problem of common size, as planned by the
 * registry. */
#include "tools/ptxgen/tool.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/operations.h"

kernel_problem tool_common_problem(const kernel_spec *spec)
{
    enum { SIDE = 4096, EXPERTS = 8 };
    const uint64_t m = spec->tile_rows > 64 ? 512 : 64;
    return (kernel_problem){.rows = SIDE,
                            .columns = SIDE,
                            .table_rows = SIDE,
                            .m = m,
                            .x_stride = SIDE,
                            .y_stride = SIDE,
                            .experts = spec->grouped ? EXPERTS : 0,
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
    const kernel_problem p = tool_common_problem(spec);
    kernel_steps_of(row, spec, &p, &steps);
    tool_printf(out,
                "    {\n      \"operation\": \"%s\",\n      \"kernel\": \"%s\",\n      \"sm\": \"%s\",\n",
                row->operation_name, row->name, sm->name);
    tool_printf(out, "      \"settings\": {");
    tool_settings(out, row, spec);
    tool_printf(out, "},\n      \"problem\": {\"rows\": %" PRIu64 ", \"columns\": %" PRIu64, p.rows,
                p.columns);
    if (kernel_is_product(row) || row->operation->size)
        tool_printf(out, ", \"m\": %" PRIu64, p.m);
    tool_printf(out, "},\n      \"workspace\": %" PRIu64 ",\n      \"steps\": [", steps.workspace);
    for (int i = 0; i < steps.count; i++) {
        tool_printf(out, "%s\n        ", i ? "," : "");
        step_object(out, &steps.at[i], sm);
    }
    tool_printf(out, "\n      ]\n    }");
}
