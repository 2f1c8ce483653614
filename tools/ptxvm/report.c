/* The report of a run as text: findings, cost, and where a GPU might behave differently. */
#include "tools/ptxvm/tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- findings ---- */

/* "kernel.ptx:27: out of bounds: ..." */
static void print_finding(const vm_file *file, const ptxvm_finding *f)
{
    const char *usual = tool_style_text(stderr, TOOL_USUAL);
    fflush(stdout);
    fprintf(stderr, "%s%s:%d:%s %s%s:%s %s", tool_style_text(stderr, TOOL_STRONG), file->name, f->line, usual,
            tool_style_text(stderr, TOOL_BAD), ptxvm_finding_name(f->kind), usual, f->message);
    fprintf(stderr, f->count > 1 ? " (%" PRIu64 " times)\n" : "\n", f->count);
}

void tool_print_findings(vm_file *file, ptxvm_status status)
{
    int n = 0;
    uint64_t total = 0, shown = 0;
    const ptxvm_finding *findings = ptxvm_findings(file->vm, &n, &total);
    if (!n)
        tool_fail("%s: %s", ptxvm_status_name(status), ptxvm_last_error(file->vm));
    for (int i = 0; i < n; i++) {
        print_finding(file, &findings[i]);
        shown += findings[i].count;
    }
    if (total > shown)
        tool_fail("and %" PRIu64 " more findings", total - shown);
}

/* Adds all findings of a kind at its first occurrence: "31 race, ". */
static void add_kind(tool_text *text, const ptxvm_finding *findings, int n, int first)
{
    uint64_t count = 0;
    for (int i = 0; i < n; i++) {
        bool same = findings[i].kind == findings[first].kind;
        if (same && i < first)
            return;
        count += same ? findings[i].count : 0;
    }
    tool_printf(text, "%" PRIu64 " %s, ", count, ptxvm_finding_name(findings[first].kind));
}

void tool_print_summary(const vm_file *file, const vm_options *o, ptxvm_status status, int leaks)
{
    int n = 0;
    uint64_t total = 0;
    const ptxvm_finding *findings = ptxvm_findings(file->vm, &n, &total);
    tool_text text = {0};
    for (int i = 0; i < n; i++)
        add_kind(&text, findings, n, i);
    if (!n && status != PTXVM_OK)
        tool_printf(&text, "%s, ", ptxvm_status_name(status));
    if (leaks)
        tool_printf(&text, "%d leak, ", leaks);
    if (text.size > 2)
        tool_fail("%s failed: %.*s", o->kernel, (int)text.size - 2, text.data);
    tool_text_free(&text);
}

int tool_find_leaks(const vm_file *file, const vm_options *o, bool print)
{
    enum { SHOWN = 16 };
    int heap = 0, n = o->checks & PTXVM_CHECK_LEAK ? ptxvm_leaks(file->vm, NULL, 0) : 0;
    ptxvm_leak *leaks = calloc((size_t)n + 1, sizeof *leaks);
    ptxvm_leaks(file->vm, leaks, leaks ? n : 0);
    for (int i = 0; leaks && i < n; i++)
        if (leaks[i].heap && ++heap <= SHOWN && print)
            tool_fail("leak: %" PRIu64 " bytes of the kernel's malloc at 0x%" PRIx64, leaks[i].bytes,
                      leaks[i].address);
    if (heap > SHOWN && print)
        tool_fail("and %d more leaks", heap - SHOWN);
    free(leaks);
    return heap;
}

/* ---- where a GPU might behave differently ---- */

static void print_sites(const vm_file *file, FILE *out, const char *title, const ptxvm_site *sites, int n)
{
    if (n)
        fprintf(out, "%s:\n", title);
    for (int i = 0; i < n; i++) {
        fprintf(out, "  %s:%d: ", file->name, sites[i].line);
        if (sites[i].source_file)
            fprintf(out, "(%s:%d) ", sites[i].source_file, sites[i].source_line);
        fprintf(out, "%s\n", sites[i].what);
    }
}

void tool_print_report(const vm_file *file, const vm_options *o)
{
    FILE *out = o->out;
    const ptxvm_report *r = ptxvm_last_report(file->vm);
    const uint32_t *g = o->launch.grid, *b = o->launch.block;
    fprintf(out,
            "%s on %s, grid %u,%u,%u, block %u,%u,%u: %" PRIu64 " warp instructions, %" PRIu64
            " thread instructions\n",
            o->kernel, file->sm, g[0], g[1], g[2], b[0], b[1], b[2], r->warp_instructions,
            r->thread_instructions);
    print_sites(file, out, "approximate: a GPU's last bits may differ", r->approx, r->n_approx);
    print_sites(file, out, "contractable: the assembler may round once where the text rounds twice",
                r->contractable, r->n_contractable);
    print_sites(file, out, "tensor cores: rows that are not measured on this SM", r->tensor, r->n_tensor);
}

/* ---- counters ---- */

static void print_traffic(FILE *out, const char *name, const ptxvm_traffic *t)
{
    if (t->requests)
        fprintf(out, "  %-20s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", name, t->requests,
                t->bytes, t->sectors, t->least_sectors);
}

static void print_count(FILE *out, const char *name, uint64_t count)
{
    if (count)
        fprintf(out, "  %-20s %14" PRIu64 "\n", name, count);
}

static void print_classes(FILE *out, const ptxvm_counters *c)
{
    fprintf(out, "  %-20s %14s %14s %14s %14s\n", "instructions", "warps", "threads", "guard held",
            "lanes a warp");
    for (int i = 0; i <= PTXVM_CLASSES; i++) {
        const ptxvm_counts *counts = i < PTXVM_CLASSES ? &c->by_class[i] : &c->total;
        if (counts->instructions)
            fprintf(out, "  %-20s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14.2f\n",
                    i < PTXVM_CLASSES ? ptxvm_class_name((ptxvm_class)i) : "all", counts->instructions,
                    counts->threads, counts->lanes, (double)counts->lanes / (double)counts->instructions);
    }
}

void tool_print_counters(const vm_file *file, FILE *out)
{
    const ptxvm_counters *c = ptxvm_last_counters(file->vm);
    if (!c)
        return;
    const ptxvm_counts *t = &c->total;
    fprintf(out, "counters of %s%s\n", c->kernel, c->complete ? "" : ", up to where it failed");
    print_classes(out, c);
    if (t->load.requests || t->store.requests || t->atomic.requests)
        fprintf(out, "  %-20s %14s %14s %14s %14s\n", "global memory", "requests", "bytes", "sectors",
                "least sectors");
    print_traffic(out, "loads", &t->load);
    print_traffic(out, "stores", &t->store);
    print_traffic(out, "atomics", &t->atomic);
    print_count(out, "unique sectors", c->unique_sectors);
    print_count(out, "shared accesses", t->shared_accesses);
    print_count(out, "shared wavefronts", t->shared_wavefronts);
    print_count(out, "bank conflicts", t->bank_conflicts);
    print_count(out, "barriers", t->barriers);
    print_count(out, "atomics", t->atomics);
    print_count(out, "branches", t->branches);
    print_count(out, "divergent branches", t->divergent_branches);
    for (int i = 0; i < c->n_mma; i++)
        print_count(out, c->mma[i].name, c->mma[i].count);
}
