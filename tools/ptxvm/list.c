/* Without --run: the files are checked, and their kernels listed. */
#include "tools/ptxvm/tool.h"

#include <inttypes.h>

/* "b8[24]": the type as in a declaration. */
static void type_text(const ptxvm_param_info *p, char *text, size_t size)
{
    if (p->elements > 1)
        snprintf(text, size, "%s[%" PRIu64 "]", p->type, p->elements);
    else
        snprintf(text, size, "%s%s", p->type, p->is_pointer ? " ptr" : "");
}

static void list_params(const ptxvm_kernel *kernel, const ptxvm_kernel_info *info)
{
    ptxvm_param_info p;
    if (info->n_params)
        printf("    offset  bytes  type        parameter\n");
    for (int i = 0; ptxvm_kernel_get_param(kernel, i, &p); i++) {
        char type[64];
        type_text(&p, type, sizeof type);
        printf("    %6" PRIu64 "  %5" PRIu64 "  %-10s  %s\n", p.offset, p.bytes, type, p.name);
    }
}

static void list_kernel(const ptxvm_kernel *kernel)
{
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(kernel, &info);
    printf("  %s: %d parameter%s, %" PRIu64 " bytes; shared %" PRIu64 ", local %" PRIu64 ", const %" PRIu64
           " bytes; ",
           info.name, info.n_params, info.n_params == 1 ? "" : "s", info.param_bytes,
           info.static_shared_bytes, info.local_bytes, info.const_bytes);
    if (info.reqntid[0])
        printf(".reqntid %d,%d,%d\n", info.reqntid[0], info.reqntid[1] ? info.reqntid[1] : 1,
               info.reqntid[2] ? info.reqntid[2] : 1);
    else
        printf("up to %d threads\n", info.max_threads);
    list_params(kernel, &info);
}

static void list_file(const vm_file *file)
{
    ptxvm_module_info info;
    int n = ptxvm_module_kernel_count(file->module);
    ptxvm_module_get_info(file->module, &info);
    printf("%s: .version %d.%d, .target %s, %d kernel%s\n", file->name, info.version / 10, info.version % 10,
           info.target, n, n == 1 ? "" : "s");
    for (int i = 0; i < n; i++)
        list_kernel(ptxvm_module_kernel_at(file->module, i));
}

/* ---- JSON ---- */

static void json_params(tool_text *out, const ptxvm_kernel *kernel, int indent)
{
    ptxvm_param_info p;
    for (int i = 0; ptxvm_kernel_get_param(kernel, i, &p); i++) {
        tool_printf(out, "%s\n%*s{\"name\": ", i ? "," : "", indent + 4, "");
        tool_quote(out, p.name);
        tool_printf(out,
                    ", \"type\": \"%s\", \"elements\": %" PRIu64 ", \"offset\": %" PRIu64
                    ", \"bytes\": %" PRIu64 ", \"align\": %" PRIu64 ", \"pointer\": %s}",
                    p.type, p.elements, p.offset, p.bytes, p.align, p.is_pointer ? "true" : "false");
    }
}

void tool_json_kernel(tool_text *out, const ptxvm_kernel *kernel, int indent)
{
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(kernel, &info);
    tool_printf(out, "{\n%*s\"name\": ", indent + 2, "");
    tool_quote(out, info.name);
    tool_printf(out,
                ",\n%*s\"param_bytes\": %" PRIu64 ", \"static_shared_bytes\": %" PRIu64
                ", \"local_bytes\": %" PRIu64 ", \"const_bytes\": %" PRIu64
                ",\n%*s\"max_threads\": %d, \"reqntid\": [%d, %d, %d],\n%*s\"params\": [",
                indent + 2, "", info.param_bytes, info.static_shared_bytes, info.local_bytes,
                info.const_bytes, indent + 2, "", info.max_threads, info.reqntid[0], info.reqntid[1],
                info.reqntid[2], indent + 2, "");
    json_params(out, kernel, indent);
    tool_printf(out, "\n%*s]\n%*s}", indent + 2, "", indent, "");
}

static void json_file(tool_text *out, const vm_file *file, bool first)
{
    ptxvm_module_info info;
    ptxvm_module_get_info(file->module, &info);
    tool_printf(out, "%s\n    {\n      \"file\": ", first ? "" : ",");
    tool_quote(out, file->name);
    tool_printf(out,
                ",\n      \"version\": \"%d.%d\", \"target\": \"%s\", \"sm\": \"%s\",\n      \"kernels\": [",
                info.version / 10, info.version % 10, info.target, file->sm);
    for (int i = 0; i < ptxvm_module_kernel_count(file->module); i++) {
        tool_printf(out, "%s\n        ", i ? "," : "");
        tool_json_kernel(out, ptxvm_module_kernel_at(file->module, i), 8);
    }
    tool_printf(out, "\n      ]\n    }");
}

/* All files are checked, even after an invalid one. */
int tool_list(const vm_options *options)
{
    int status = TOOL_OK, failed = 0;
    bool first = true;
    tool_text json = {0};
    tool_printf(&json, "{\n  \"files\": [");
    for (int i = 0; i < options->n_files; i++) {
        vm_file file;
        int one = tool_open(&file, options, options->files[i]);
        if (one == TOOL_OK && !options->quiet)
            list_file(&file);
        if (one == TOOL_OK) {
            json_file(&json, &file, first);
            first = false;
        }
        status = one > status ? one : status;
        failed += one != TOOL_OK;
        tool_close(&file);
    }
    tool_printf(&json, "\n  ]\n}\n");
    int written = options->json ? tool_write(options->json, &json) : TOOL_OK;
    tool_text_free(&json);
    if (failed && options->n_files > 1)
        tool_fail("%d of %d files failed", failed, options->n_files);
    return status ? status : written;
}
