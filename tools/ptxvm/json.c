/* --json of a run: the launch, its status, findings and cost. */
#include "tools/ptxvm/tool.h"

#include <inttypes.h>
#include <stdlib.h>

static void json_string(tool_text *out, const char *key, const char *value)
{
    tool_printf(out, "\"%s\": ", key);
    if (value)
        tool_quote(out, value);
    else
        tool_printf(out, "null");
}

static void json_dimensions(tool_text *out, const char *key, const uint32_t *d)
{
    tool_printf(out, "\"%s\": [%u, %u, %u]", key, d[0], d[1], d[2]);
}

static void json_finding(tool_text *out, const ptxvm_finding *f)
{
    tool_printf(out, "\n    {");
    json_string(out, "kind", ptxvm_finding_name(f->kind));
    tool_printf(out, ", \"cuda_error\": %d, ", ptxvm_status_cuda(f->status));
    json_string(out, "function", f->function);
    tool_printf(out, ", \"line\": %d, ", f->line);
    json_string(out, "source_file", f->source_file);
    tool_printf(out, ", \"source_line\": %d, ", f->source_line);
    json_dimensions(out, "block", f->block);
    tool_printf(out, ", ");
    json_dimensions(out, "thread", f->thread);
    tool_printf(out, ", ");
    json_string(out, "space", f->space);
    tool_printf(out, ", \"address\": \"0x%" PRIx64 "\", \"count\": %" PRIu64 ", ", f->address, f->count);
    json_string(out, "message", f->message);
    tool_printf(out, "}");
}

static void json_findings(tool_text *out, const ptxvm *vm)
{
    int n = 0;
    uint64_t total = 0;
    const ptxvm_finding *findings = ptxvm_findings(vm, &n, &total);
    tool_printf(out, "  \"findings_total\": %" PRIu64 ",\n  \"findings\": [", total);
    for (int i = 0; i < n; i++) {
        tool_printf(out, "%s", i ? "," : "");
        json_finding(out, &findings[i]);
    }
    tool_printf(out, "%s],\n", n ? "\n  " : "");
}

static void json_sites(tool_text *out, const char *key, const ptxvm_site *sites, int n)
{
    tool_printf(out, "  \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        tool_printf(out, "%s\n    {", i ? "," : "");
        json_string(out, "function", sites[i].function);
        tool_printf(out, ", \"line\": %d, ", sites[i].line);
        json_string(out, "source_file", sites[i].source_file);
        tool_printf(out, ", \"source_line\": %d, ", sites[i].source_line);
        json_string(out, "what", sites[i].what);
        tool_printf(out, "}");
    }
    tool_printf(out, "%s],\n", n ? "\n  " : "");
}

/* The library writes its own object, which is embedded in ours. */
static void json_counters(tool_text *out, const ptxvm *vm)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    bool there = memory && ptxvm_counters_json(vm, memory);
    if (memory && fclose(memory) != 0)
        there = false;
    while (there && size && text[size - 1] == '\n')
        size--;
    tool_printf(out, "  \"counters\": ");
    tool_append(out, there ? text : "null", there ? size : 4);
    tool_printf(out, "\n}\n");
    free(text);
}

int tool_write_json(const vm_file *file, const vm_options *o, ptxvm_status status)
{
    tool_text out = {0};
    const ptxvm_report *r = ptxvm_last_report(file->vm);
    tool_printf(&out, "{\n  ");
    json_string(&out, "file", file->name);
    tool_printf(&out, ", ");
    json_string(&out, "kernel", o->kernel);
    tool_printf(&out, ", \"sm\": \"%s\",\n  ", file->sm);
    json_dimensions(&out, "grid", o->launch.grid);
    tool_printf(&out, ", ");
    json_dimensions(&out, "block", o->launch.block);
    tool_printf(&out, ", \"shared_bytes\": %" PRIu64 ",\n  ", o->launch.shared_bytes);
    json_string(&out, "status", ptxvm_status_name(status));
    tool_printf(&out, ", \"cuda_error\": %d, ", status == PTXVM_OK ? 0 : ptxvm_status_cuda(status));
    json_string(&out, "error", status == PTXVM_OK ? NULL : ptxvm_last_error(file->vm));
    tool_printf(&out, ",\n  \"warp_instructions\": %" PRIu64 ", \"thread_instructions\": %" PRIu64 ",\n",
                r->warp_instructions, r->thread_instructions);
    json_findings(&out, file->vm);
    tool_printf(&out, "  \"leaks\": %d,\n", tool_find_leaks(file, o, false));
    json_sites(&out, "approximate", r->approx, r->n_approx);
    json_sites(&out, "contractable", r->contractable, r->n_contractable);
    json_sites(&out, "tensor", r->tensor, r->n_tensor);
    json_counters(&out, file->vm);
    int written = tool_write(o->json, &out);
    tool_text_free(&out);
    return written;
}
