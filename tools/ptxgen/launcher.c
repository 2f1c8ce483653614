/* --emit launcher: one kernel for several SMs inside a C program, with functions that load the best PTX for a
 * device and launch it. */
#include "tools/ptxgen/tool.h"

#include <inttypes.h>
#include <string.h>

/* ---- Parameters ---- */

static const char *c_type(const ptx_param_info *p)
{
    return p->pointer ? "CUdeviceptr" : p->type == PTX_F32 ? "float" : p->size == 8 ? "uint64_t" : "uint32_t";
}

/* "CUdeviceptr x, uint64_t n", each after a comma. */
static void put_parameters(tool_text *out, const tool_item *item)
{
    for (int i = 0; i < item->text.info.n_params; i++)
        tool_printf(out, ", %s %s", c_type(&item->text.info.params[i]), item->text.info.params[i].name);
    for (int i = 0, number; (number = tool_launch_number(item, i)) >= 0; i++)
        tool_printf(out, ", uint64_t %s", tool_number_name(number));
}

/* One comment line per parameter: direction, element and size. */
static void describe(tool_text *out, const tool_item *item)
{
    for (int i = 0; i < item->text.info.n_params; i++) {
        const ptx_param_info *p = &item->text.info.params[i];
        tool_pointer pointer;
        tool_printf(out, " *   %-12s ", p->name);
        if (!tool_pointer_of(item, i, &pointer))
            tool_printf(out, "%s\n", tool_number_meaning(tool_number_of(item, i)));
        else if (pointer.workspace)
            tool_printf(out, "%s, %s: workspace between the kernels of an operation\n", pointer.direction,
                        pointer.element);
        else
            tool_printf(out, "%s, %s: %s bytes\n", pointer.direction, pointer.element, pointer.bytes);
    }
    for (int i = 0, number; (number = tool_launch_number(item, i)) >= 0; i++)
        tool_printf(out, " *   %-12s %s\n", tool_number_name(number), tool_number_meaning(number));
}

/* What is written: a kernel for each SM and, of a sequence, for each step. */
typedef struct launcher {
    const tool_item *items; /* [steps][sms] */
    int sms, steps;
    const tool_sequence *sequence; /* null: one kernel of any size */
    char name[300], macro[300];    /* prefixes of what it defines */
} launcher;

/* The operands that the caller binds, each after a comma, and the workspace. */
static void put_operands(tool_text *out, const tool_sequence *q)
{
    kernel_operand all[QDNN_OPERAND_COUNT];
    kernel_operands_of(q->row, KERNEL_NORMAL(q->row, &q->spec), &q->problem, all);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (all[i].align)
            tool_printf(out, ", CUdeviceptr %s", kernel_operand_name((qdnnOperand_t)i));
    if (q->steps.workspace)
        tool_printf(out, ", CUdeviceptr workspace");
}

static void describe_operands(tool_text *out, const tool_sequence *q)
{
    kernel_operand all[QDNN_OPERAND_COUNT];
    kernel_operands_of(q->row, KERNEL_NORMAL(q->row, &q->spec), &q->problem, all);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (all[i].align)
            tool_printf(out, " *   %-12s %s, aligned to %u: %" PRIu64 " bytes\n",
                        kernel_operand_name((qdnnOperand_t)i), all[i].writes ? "out" : "in", all[i].align,
                        all[i].bytes);
    if (q->steps.workspace)
        tool_printf(out, " *   %-12s aligned to 16: %" PRIu64 " bytes, whose contents do not matter\n",
                    "workspace", q->steps.workspace);
}

static void put_launch(tool_text *out, const launcher *l)
{
    tool_printf(out, "CUresult %s_launch(const %s_kernel *kernel, CUstream stream", l->name, l->name);
    if (l->sequence)
        put_operands(out, l->sequence);
    else
        put_parameters(out, l->items);
    tool_printf(out, ")");
}

/* ---- The header ---- */

static void title(tool_text *out, const launcher *l)
{
    const tool_item *item = l->items;
    const kernel_row *row = l->sequence ? l->sequence->row : item->row;
    const char *operation = l->sequence ? l->sequence->operation : item->operation;
    char settings[KERNEL_SPEC_TEXT];
    kernel_spec_text(row, KERNEL_NORMAL(row, l->sequence ? &l->sequence->spec : &item->spec), settings,
                     sizeof settings);
    tool_printf(out, "/* qdnn's %s: %s.\n * %s. For", operation ? operation : row->name, settings,
                row->summary);
    for (int i = 0; i < l->sms; i++)
        tool_printf(out, "%s %s", i ? "," : "", l->items[i].sm->name);
    tool_printf(out, ". Written by ptxgen, not by hand. */\n");
}

static void header(tool_text *out, const launcher *l)
{
    const char *name = l->name, *macro = l->macro;
    title(out, l);
    tool_printf(out, "#ifndef %s_H\n#define %s_H\n\n#include <cuda.h>\n#include <stdint.h>\n\n", macro,
                macro);
    tool_printf(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    if (l->sequence)
        tool_printf(out, "#define %s_WORKSPACE %" PRIu64 "u /* bytes */\n\n", macro,
                    l->sequence->steps.workspace);
    tool_printf(out, "typedef struct %s_kernel {\n    CUmodule module[%d];\n    CUfunction function[%d];\n",
                name, l->steps, l->steps);
    tool_printf(out, "    const char *sm; /* what it was written for: \"%s\" */\n} %s_kernel;\n\n",
                l->items[0].sm->name, name);
    tool_printf(out,
                "/* Loads the newest text that the device of the current context runs and its driver takes.\n"
                " * CUDA_ERROR_NO_BINARY_FOR_GPU: there is none for it. */\n");
    tool_printf(out, "CUresult %s_load(%s_kernel *kernel);\nCUresult %s_unload(%s_kernel *kernel);\n\n", name,
                name, name, name);
    tool_printf(out, "/* Puts it on the stream; nothing is launched where there is nothing to do.\n");
    if (l->sequence)
        describe_operands(out, l->sequence);
    else
        describe(out, l->items);
    tool_printf(out, " */\n");
    put_launch(out, l);
    tool_printf(out, ";\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- The source ---- */

static void text_of(tool_text *out, const tool_item *item, int step)
{
    char last = item->sm->name[strlen(item->sm->name) - 1];
    tool_printf(out, "    {%d, %u, %s%c%s, \"%s\",", step, (unsigned)item->sm->number, last > '9' ? "'" : "",
                last > '9' ? last : '0', last > '9' ? "'" : "", item->sm->name);
    tool_c_literal(out, item->text.ptx);
    tool_printf(out, "},\n");
}

static void texts(tool_text *out, const launcher *l)
{
    tool_printf(out, "/* The later an SM, the further down. */\n");
    tool_printf(
        out,
        "static const struct {\n    int step;   /* which kernel */\n    int number; /* of the compute "
        "capability: 90 */\n"
        "    char suffix; /* 'a': for exactly it; 'f': for it and later ones of the same major number */\n"
        "    const char *sm, *ptx;\n} texts[] = {\n");
    for (int k = 0; k < ptx_sm_count(); k++)
        for (int i = 0; i < l->steps * l->sms; i++)
            if (l->items[i].sm == ptx_sm_get(k))
                text_of(out, &l->items[i], i / l->sms);
    tool_printf(out, "};\n\nstatic const char *const entries[] = {");
    for (int i = 0; i < l->steps; i++)
        tool_printf(out, "%s\"%s\"", i ? ", " : "", l->items[i * l->sms].entry);
    tool_printf(out, "};\nstatic const int shared[] = {"); /* bytes of dynamic shared memory at most */
    for (int i = 0; i < l->steps; i++)
        tool_printf(out, "%s%u", i ? ", " : "", (unsigned)l->items[i * l->sms].text.geometry.shared_dynamic);
    tool_printf(out, "};\n\n");
}

static void load_function(tool_text *out, const launcher *l)
{
    const char *name = l->name;
    tool_printf(out,
                "static int runs_on(int i, int device)\n{\n"
                "    if (texts[i].suffix == 'a')\n        return texts[i].number == device;\n"
                "    if (texts[i].suffix == 'f' && texts[i].number / 10 != device / 10)\n        return 0;\n"
                "    return texts[i].number <= device;\n}\n\n");
    tool_printf(out, "static CUresult load_text(%s_kernel *kernel, int i)\n{\n", name);
    tool_printf(
        out,
        "    const int step = texts[i].step;\n"
        "    CUresult result = cuModuleLoadData(&kernel->module[step], texts[i].ptx);\n"
        "    kernel->sm = texts[i].sm;\n"
        "    if (result != CUDA_SUCCESS)\n        return result;\n"
        "    result = cuModuleGetFunction(&kernel->function[step], kernel->module[step], entries[step]);\n"
        "    if (result == CUDA_SUCCESS && shared[step] > 48 << 10)\n"
        "        result = cuFuncSetAttribute(kernel->function[step],\n"
        "                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "
        "shared[step]);\n"
        "    if (result != CUDA_SUCCESS)\n        cuModuleUnload(kernel->module[step]);\n"
        "    return result;\n}\n\n");
    tool_printf(out, "static CUresult load_step(%s_kernel *kernel, int step, int device)\n{\n", name);
    tool_printf(
        out, "    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;\n"
             "    for (int i = (int)(sizeof texts / sizeof texts[0]); i-- > 0 && result != CUDA_SUCCESS;)\n"
             "        if (texts[i].step == step && runs_on(i, device))\n            result = "
             "load_text(kernel, i);\n"
             "    return result;\n}\n\n");
    tool_printf(out,
                "CUresult %s_load(%s_kernel *kernel)\n{\n    CUdevice device;\n    int major = 0, minor = 0, "
                "step = 0;\n",
                name, name);
    tool_printf(out,
                "    CUresult result = cuCtxGetDevice(&device);\n"
                "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&major, "
                "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);\n"
                "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&minor, "
                "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);\n"
                "    for (; step < %d && result == CUDA_SUCCESS; step++)\n"
                "        result = load_step(kernel, step, 10 * major + minor);\n"
                "    for (step--; result != CUDA_SUCCESS && step-- > 0;)\n        "
                "cuModuleUnload(kernel->module[step]);\n"
                "    return result;\n}\n\n",
                l->steps);
    tool_printf(out,
                "CUresult %s_unload(%s_kernel *kernel)\n{\n    CUresult result = CUDA_SUCCESS;\n"
                "    for (int step = 0; step < %d; step++) {\n"
                "        CUresult one = cuModuleUnload(kernel->module[step]);\n"
                "        result = result == CUDA_SUCCESS ? one : result;\n    }\n    return result;\n}\n\n",
                name, name, l->steps);
}

/* Nothing is launched where there is nothing to do: no elements, or a side of the grid that is 0. */
static void launch_kernel(tool_text *out, const tool_item *item)
{
    const ptx_info *info = &item->text.info;
    const kernel_geometry *geometry = &item->text.geometry;
    tool_printf(out, "\n{\n    void *parameters[] = {");
    for (int i = 0; i < info->n_params; i++)
        tool_printf(out, "%s&%s", i ? ", " : "", info->params[i].name);
    tool_printf(out, "};\n");
    for (int i = 0; i < 3; i++) {
        char rule[KERNEL_RULE_CHARS];
        kernel_rule_text(&geometry->grid[i], KERNEL_RULE_C, rule);
        tool_printf(out, "    const uint64_t %c = %s;\n", "XYZ"[i], rule);
    }
    tool_printf(out, "    if (X == 0 || Y == 0 || Z == 0)\n        return CUDA_SUCCESS;\n"
                     "    if (X > INT32_MAX || Y > UINT16_MAX || Z > UINT16_MAX)\n        return "
                     "CUDA_ERROR_INVALID_VALUE;\n");
    for (int i = 0; i < info->n_params; i++)
        if (strcmp(info->params[i].name, "n") == 0)
            tool_printf(out, "    if (n == 0)\n        return CUDA_SUCCESS;\n");
    tool_printf(out,
                "    return cuLaunchKernel(kernel->function[0], (unsigned)X, (unsigned)Y, (unsigned)Z, "
                "%u, 1, 1, %u, stream, parameters, NULL);\n}\n",
                (unsigned)geometry->block, (unsigned)geometry->shared_dynamic);
}

/* A number is a constant of its own, an operand or a place in the workspace an address. */
static void put_argument(tool_text *out, const kernel_param *p, int step, int i)
{
    if (p->kind == KERNEL_OPERAND)
        tool_printf(out, "    CUdeviceptr a%d_%d = %s;\n", step, i,
                    kernel_operand_name((qdnnOperand_t)p->operand));
    else if (p->kind == KERNEL_WORKSPACE)
        tool_printf(out, "    CUdeviceptr a%d_%d = workspace + %" PRIu64 "u;\n", step, i, p->value);
    else if (p->bytes == 8)
        tool_printf(out, "    uint64_t a%d_%d = UINT64_C(%" PRIu64 ");\n", step, i, p->value);
    else /* the bits of an f32 */
        tool_printf(out, "    uint32_t a%d_%d = 0x%08" PRIx32 "u;\n", step, i, (uint32_t)p->value);
}

static void launch_step(tool_text *out, const kernel_step *step, int number)
{
    for (int i = 0; i < step->n_params; i++)
        put_argument(out, &step->params[i], number, i);
    tool_printf(out, "    void *step_%d[] = {", number);
    for (int i = 0; i < step->n_params; i++)
        tool_printf(out, "%s&a%d_%d", i ? ", " : "", number, i);
    tool_printf(
        out,
        "};\n    if (result == CUDA_SUCCESS)\n        result = cuLaunchKernel(kernel->function[%d], %" PRIu64
        "u, %" PRIu64 "u, %" PRIu64 "u, %u, 1, 1, %u, stream, step_%d, NULL);\n",
        number, step->grid[0], step->grid[1], step->grid[2], (unsigned)step->block, (unsigned)step->shared,
        number);
}

static void launch_function(tool_text *out, const launcher *l)
{
    put_launch(out, l);
    if (!l->sequence) {
        launch_kernel(out, l->items);
        return;
    }
    tool_printf(out, "\n{\n    CUresult result = CUDA_SUCCESS;\n");
    for (int i = 0; i < l->steps; i++)
        launch_step(out, &l->sequence->steps.at[i], i);
    tool_printf(out, "    return result;\n}\n");
}

static void helpers(tool_text *out, const launcher *l)
{
    char all[3 * KERNEL_RULE_CHARS] = "";
    for (int i = 0; i < 3 && !l->sequence; i++)
        kernel_rule_text(&l->items->text.geometry.grid[i], KERNEL_RULE_C, all + strlen(all));
    if (strstr(all, "quotient_up("))
        tool_printf(out, "static uint64_t quotient_up(uint64_t a, uint64_t b)\n{\n    return a / b + (a %% b "
                         "!= 0);\n}\n\n");
    if (strstr(all, "least("))
        tool_printf(out,
                    "static uint64_t least(uint64_t a, uint64_t b)\n{\n    return a < b ? a : b;\n}\n\n");
}

int tool_render_launcher(const tool_item *items, int n, const tool_sequence *sequence, tool_file *files)
{
    launcher l = {
        .items = items, .sms = n, .steps = sequence ? sequence->steps.count : 1, .sequence = sequence};
    tool_c_name(items[0].stem, false, l.name, sizeof l.name);
    tool_c_name(items[0].stem, true, l.macro, sizeof l.macro);
    header(&files[0].text, &l);
    tool_text *out = &files[1].text;
    title(out, &l);
    tool_printf(out, "#include \"%s.h\"\n\n%s", items[0].base, tool_c_long_strings);
    texts(out, &l);
    helpers(out, &l);
    load_function(out, &l);
    launch_function(out, &l);
    return TOOL_OK;
}
