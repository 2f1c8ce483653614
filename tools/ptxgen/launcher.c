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
    for (int i = 0; tool_launch_number(item, i); i++)
        tool_printf(out, ", uint64_t %s", tool_launch_number(item, i));
}

/* One comment line per parameter: direction, element and size. */
static void describe(tool_text *out, const tool_item *item)
{
    for (int i = 0; i < item->text.info.n_params; i++) {
        const ptx_param_info *p = &item->text.info.params[i];
        const char *meaning = tool_number_meaning(item->row, p->name);
        tool_pointer pointer;
        tool_printf(out, " *   %-12s ", p->name);
        if (!tool_pointer_of(item, i, &pointer))
            tool_printf(out, "%s\n", meaning ? meaning : "a number");
        else if (pointer.workspace)
            tool_printf(out, "%s, %s: workspace between the kernels of an operation\n", pointer.direction,
                        pointer.element);
        else
            tool_printf(out, "%s, %s: %s bytes\n", pointer.direction, pointer.element, pointer.bytes);
    }
    const char *name = tool_launch_number(item, 0);
    for (int i = 0; name; name = tool_launch_number(item, ++i))
        tool_printf(out, " *   %-12s %s\n", name, tool_number_meaning(item->row, name));
}

static void put_launch(tool_text *out, const tool_item *item, const char *name)
{
    tool_printf(out, "CUresult %s_launch(const %s_kernel *kernel, CUstream stream", name, name);
    put_parameters(out, item);
    tool_printf(out, ")");
}

/* ---- The header ---- */

static void title(tool_text *out, const tool_item *items, int n)
{
    char settings[KERNEL_SPEC_TEXT];
    kernel_spec_text(items[0].row, &items[0].spec, settings, sizeof settings);
    tool_printf(out, "/* qdnn's %s: %s.\n * %s. For", items[0].row->name, settings, items[0].row->summary);
    for (int i = 0; i < n; i++)
        tool_printf(out, "%s %s", i ? "," : "", items[i].sm->name);
    tool_printf(out, ". Written by ptxgen, not by hand. */\n");
}

static void header(tool_text *out, const tool_item *items, int n, const char *name, const char *macro)
{
    title(out, items, n);
    tool_printf(out, "#ifndef %s_H\n#define %s_H\n\n#include <cuda.h>\n#include <stdint.h>\n\n", macro,
                macro);
    tool_printf(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    tool_printf(out, "typedef struct %s_kernel {\n    CUmodule module;\n    CUfunction function;\n", name);
    tool_printf(out, "    const char *sm; /* what it was written for: \"%s\" */\n} %s_kernel;\n\n",
                items[0].sm->name, name);
    tool_printf(out,
                "/* Loads the newest text that the device of the current context runs and its driver takes.\n"
                " * CUDA_ERROR_NO_BINARY_FOR_GPU: there is none for it. */\n");
    tool_printf(out, "CUresult %s_load(%s_kernel *kernel);\nCUresult %s_unload(%s_kernel *kernel);\n\n", name,
                name, name, name);
    tool_printf(out, "/* Puts it on the stream; nothing is launched where there is nothing to do.\n");
    describe(out, &items[0]);
    tool_printf(out, " */\n");
    put_launch(out, &items[0], name);
    tool_printf(out, ";\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- The source ---- */

static void texts(tool_text *out, const tool_item *items, int n)
{
    tool_printf(out, "/* The later an SM, the further down. */\n");
    tool_printf(
        out,
        "static const struct {\n    int number; /* of the compute capability: 90 */\n"
        "    char suffix; /* 'a': for exactly it; 'f': for it and later ones of the same major number */\n"
        "    const char *sm, *ptx;\n} texts[] = {\n");
    for (int k = 0; k < ptx_sm_count(); k++)
        for (int i = 0; i < n; i++) {
            const ptx_sm *sm = items[i].sm;
            char last = sm->name[strlen(sm->name) - 1];
            if (sm != ptx_sm_get(k))
                continue;
            tool_printf(out, "    {%u, %s%c%s, \"%s\",", (unsigned)sm->number, last > '9' ? "'" : "",
                        last > '9' ? last : '0', last > '9' ? "'" : "", sm->name);
            tool_c_literal(out, items[i].text.ptx);
            tool_printf(out, "},\n");
        }
    tool_printf(out, "};\n\n");
}

static void load_function(tool_text *out, const tool_item *item, const char *name)
{
    const unsigned shared = item->text.geometry.shared_dynamic;
    tool_printf(out,
                "static int runs_on(int i, int device)\n{\n"
                "    if (texts[i].suffix == 'a')\n        return texts[i].number == device;\n"
                "    if (texts[i].suffix == 'f' && texts[i].number / 10 != device / 10)\n        return 0;\n"
                "    return texts[i].number <= device;\n}\n\n");
    tool_printf(out, "static CUresult load_text(%s_kernel *kernel, int i)\n{\n", name);
    tool_printf(out, "    CUresult result = cuModuleLoadData(&kernel->module, texts[i].ptx);\n    kernel->sm "
                     "= texts[i].sm;\n"
                     "    if (result != CUDA_SUCCESS)\n        return result;\n");
    tool_printf(out, "    result = cuModuleGetFunction(&kernel->function, kernel->module, \"%s\");\n",
                item->entry);
    if (shared > 48u << 10)
        tool_printf(
            out,
            "    if (result == CUDA_SUCCESS)\n        result = cuFuncSetAttribute(kernel->function,\n"
            "                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, %u);\n",
            shared);
    tool_printf(out, "    if (result != CUDA_SUCCESS)\n        cuModuleUnload(kernel->module);\n    return "
                     "result;\n}\n\n");
    tool_printf(
        out, "CUresult %s_load(%s_kernel *kernel)\n{\n    CUdevice device;\n    int major = 0, minor = 0;\n",
        name, name);
    tool_printf(
        out, "    CUresult result = cuCtxGetDevice(&device);\n"
             "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&major, "
             "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);\n"
             "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&minor, "
             "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);\n"
             "    if (result != CUDA_SUCCESS)\n        return result;\n"
             "    result = CUDA_ERROR_NO_BINARY_FOR_GPU;\n"
             "    for (int i = (int)(sizeof texts / sizeof texts[0]); i-- > 0 && result != CUDA_SUCCESS;)\n"
             "        if (runs_on(i, 10 * major + minor))\n            result = load_text(kernel, i);\n"
             "    return result;\n}\n\n");
    tool_printf(out,
                "CUresult %s_unload(%s_kernel *kernel)\n{\n    return cuModuleUnload(kernel->module);\n}\n\n",
                name, name);
}

/* Nothing is launched where there is nothing to do: no elements, or a side of the grid that is 0. */
static void launch_function(tool_text *out, const tool_item *item, const char *name)
{
    const ptx_info *info = &item->text.info;
    const kernel_geometry *geometry = &item->text.geometry;
    put_launch(out, item, name);
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
                "    return cuLaunchKernel(kernel->function, (unsigned)X, (unsigned)Y, (unsigned)Z, "
                "%u, 1, 1, %u, stream, parameters, NULL);\n}\n",
                (unsigned)geometry->block, (unsigned)geometry->shared_dynamic);
}

static void helpers(tool_text *out, const tool_item *item)
{
    char all[3 * KERNEL_RULE_CHARS] = "";
    for (int i = 0; i < 3; i++)
        kernel_rule_text(&item->text.geometry.grid[i], KERNEL_RULE_C, all + strlen(all));
    if (strstr(all, "quotient_up("))
        tool_printf(out, "static uint64_t quotient_up(uint64_t a, uint64_t b)\n{\n    return a / b + (a %% b "
                         "!= 0);\n}\n\n");
    if (strstr(all, "least("))
        tool_printf(out,
                    "static uint64_t least(uint64_t a, uint64_t b)\n{\n    return a < b ? a : b;\n}\n\n");
}

int tool_render_launcher(const tool_item *items, int n, tool_file *files)
{
    char name[300], macro[300];
    tool_c_name(items[0].stem, false, name, sizeof name);
    tool_c_name(items[0].stem, true, macro, sizeof macro);
    header(&files[0].text, items, n, name, macro);
    tool_text *out = &files[1].text;
    title(out, items, n);
    tool_printf(out, "#include \"%s.h\"\n\n%s", items[0].base, tool_c_long_strings);
    texts(out, items, n);
    helpers(out, &items[0]);
    load_function(out, &items[0], name);
    launch_function(out, &items[0], name);
    return TOOL_OK;
}
