/* --time: what the run would take on a board, from its machine code and what was counted (clock/model). */
#include <stdlib.h>
#include <string.h>

#include "clock/model/model.h"
#include "tools/ptxvm/tool.h"

static void print_line(FILE *out, const vm_file *file, const clock_hot_line *hot)
{
    const char *at = file->text.data, *end = at + file->text.size;
    for (int line = 1; line < hot->line && at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    int length = (int)((newline ? newline : end) - at);
    fprintf(out, "  %5.1f%%  %-16s  line %d: %.*s\n", 100 * hot->share, clock_stall_name(hot->reason),
            hot->line, length < 80 ? length : 80, at);
}

static void print_time(const vm_options *o, const vm_file *file, const clock_estimate *e)
{
    const clock_result *low = &e->at[CLOCK_LOW], *high = &e->at[CLOCK_HIGH];
    FILE *out = o->out;
    fprintf(out, "%s on %s: %.2f to %.2f us, modelled: cold L2, without the launch itself\n", o->kernel,
            o->time, low->us, high->us);
    fprintf(
        out,
        "  DRAM at its peak %.2f us, a plain read of as many bytes %.2f to %.2f us, issue alone %.2f us\n",
        e->roofline, e->plain_us[CLOCK_LOW], e->plain_us[CLOCK_HIGH], low->issue_bound_us);
    fprintf(out, "  %d registers, %d blocks per SM%s\n", e->registers, e->blocks_per_sm,
            e->spill_bytes ? ", registers are spilled" : "");
    if (e->misfit > 0.05)
        fprintf(out, "  unsure: execution counts of the machine code fit to %.0f%% only\n", 100 * e->misfit);
    fprintf(out, "  where warps wait:\n");
    for (int i = 0; i < e->n_hot; i++)
        print_line(out, file, &e->hot[i]);
}

int tool_print_time(const vm_options *o, const vm_file *file, const ptxvm_kernel *kernel)
{
    const uint32_t *g = o->launch.grid, *b = o->launch.block;
    ptxvm_kernel_info info;
    clock_estimate e;
    char why[512];
    char *text = malloc(file->text.size + 1);
    if (!text)
        return tool_fail("out of memory");
    memcpy(text, file->text.data, file->text.size);
    text[file->text.size] = 0;
    ptxvm_kernel_get_info(kernel, &info);
    const clock_case what = {.ptx = text,
                             .kernel = info.name,
                             .on = board_find(o->time),
                             .counters = ptxvm_last_counters(file->vm),
                             .blocks = (uint64_t)g[0] * g[1] * g[2],
                             .threads = (int)(b[0] * b[1] * b[2]),
                             .shared = (uint32_t)(info.static_shared_bytes + o->launch.shared_bytes)};
    bool ok = clock_time(&what, &e, why, sizeof why);
    free(text);
    if (!ok)
        return tool_fail("--time %s: %s", o->time, why);
    print_time(o, file, &e);
    clock_estimate_free(&e);
    return TOOL_OK;
}
