/* --emit cubin: machine code, by ptxas if it is installed, else by nvJitLink. */
#include "tools/ptxgen/tool.h"

#include "tools/toolkit.h"

#include <string.h>

/* ptxas reads a file and runs in its own process: if it crashes, this program does not. */
static bool by_ptxas(const char *ptxas, const tool_item *item, toolkit_result *result)
{
    char folder[1024], path[1100];
    if (!toolkit_make_directory(folder, sizeof folder)) {
        tool_fail("cannot make a temporary directory");
        return false;
    }
    snprintf(path, sizeof path, "%s/kernel.ptx", folder);
    const tool_text ptx = {.data = item->text.ptx, .size = strlen(item->text.ptx)};
    bool ok = tool_write(path, &ptx) == TOOL_OK && toolkit_ptxas(ptxas, item->sm->name, path, result);
    toolkit_remove_directory(folder);
    return ok;
}

static void report_log(const tool_item *item, const char *log)
{
    tool_text lines = {0};
    tool_fail("%s did not assemble for %s:", item->row->name, item->sm->name);
    tool_escape_lines(&lines, log);
    if (lines.size)
        fwrite(lines.data, 1, lines.size, stderr);
    tool_text_free(&lines);
}

int tool_render_cubin(const tool_item *item, tool_file *files)
{
    char ptxas[4096];
    toolkit_result result = {0};
    bool ok;
    if (toolkit_find_ptxas(ptxas, sizeof ptxas))
        ok = by_ptxas(ptxas, item, &result);
    else if (toolkit_has_jitlink())
        ok = toolkit_jitlink(item->text.ptx, item->sm->name, &result);
    else
        return tool_fail("a cubin needs ptxas or libnvJitLink of the CUDA toolkit, and neither was found "
                         "(put ptxas on PATH or set CUDA_HOME)");
    if (ok)
        tool_append(&files[0].text, result.data, result.bytes);
    else if (!tool_interrupted())
        report_log(item, result.log ? result.log : "");
    toolkit_free(&result);
    return ok ? TOOL_OK : TOOL_FAILED;
}
