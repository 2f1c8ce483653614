/* Counters as JSON, and as an annotated listing of the kernel. */
#include "check.h"

#include <inttypes.h>
#include <string.h>

#include "counters.h"
#include "ptxvm/exec/vm.h"
#include "ptxvm/environment.h"

/* ---- JSON ---- */

static void write_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
    }
    fputc('"', file);
}

static void write_traffic(FILE *file, const char *name, const ptxvm_traffic *t)
{
    fprintf(file,
            "\"%s\": {\"requests\": %" PRIu64 ", \"sectors\": %" PRIu64 ", \"least_sectors\": %" PRIu64
            ", \"bytes\": %" PRIu64 "}, ",
            name, t->requests, t->sectors, t->least_sectors, t->bytes);
}

static void write_counts(FILE *file, const ptxvm_counts *c)
{
    fprintf(file, "\"instructions\": %" PRIu64 ", \"threads\": %" PRIu64 ", \"lanes\": %" PRIu64 ", ",
            c->instructions, c->threads, c->lanes);
    write_traffic(file, "global_load", &c->load);
    write_traffic(file, "global_store", &c->store);
    write_traffic(file, "global_atomic", &c->atomic);
    fprintf(file,
            "\"shared\": {\"accesses\": %" PRIu64 ", \"wavefronts\": %" PRIu64
            ", \"bank_conflicts\": %" PRIu64 "}, \"mma\": %" PRIu64 ", \"barriers\": %" PRIu64
            ", \"atomics\": %" PRIu64 ", \"branches\": %" PRIu64 ", \"divergent_branches\": %" PRIu64,
            c->shared_accesses, c->shared_wavefronts, c->bank_conflicts, c->mma, c->barriers, c->atomics,
            c->branches, c->divergent_branches);
}

static void write_lines(FILE *file, const ptxvm_counters *c)
{
    bool first = true;
    fprintf(file, ",\n \"lines\": [");
    for (int line = 1; line < c->n_lines; line++) {
        if (!c->lines[line].instructions)
            continue;
        fprintf(file, "%s\n  {\"line\": %d, ", first ? "" : ",", line);
        write_counts(file, &c->lines[line]);
        fputc('}', file);
        first = false;
    }
    fputc(']', file);
}

static void write_sources(FILE *file, const ptxvm_counters *c)
{
    fprintf(file, ",\n \"sources\": [");
    for (int i = 0; i < c->n_sources; i++) {
        fprintf(file, "%s\n  {\"file\": ", i ? "," : "");
        write_string(file, c->sources[i].file);
        fprintf(file, ", \"line\": %d, ", c->sources[i].line);
        write_counts(file, &c->sources[i].counts);
        fputc('}', file);
    }
    fputc(']', file);
}

/* The models of tensor cores that the results rest on and that are not measured: each once. */
static void write_models(FILE *file, const ptxvm_report *r)
{
    int written = 0;
    fprintf(file, ",\n \"rests_on\": [");
    for (int i = 0; i < r->n_tensor; i++) {
        int k = 0;
        while (k < i && strcmp(r->tensor[k].what, r->tensor[i].what) != 0)
            k++;
        if (k < i)
            continue;
        fprintf(file, "%s", written++ ? ", " : "");
        write_string(file, r->tensor[i].what);
    }
    fputc(']', file);
}

bool ptxvm_counters_json(const ptxvm *vm, FILE *file)
{
    PTXVM_DEFAULT_ENVIRONMENT();
    const ptxvm_counters *c = ptxvm_last_counters(vm);
    if (!c || !file)
        return false;
    fprintf(file, "{\"kernel\": ");
    write_string(file, c->kernel);
    fprintf(file, ", \"complete\": %s,\n \"total\": {", c->complete ? "true" : "false");
    write_counts(file, &c->total);
    fprintf(file, ", \"unique_sectors\": %" PRIu64 "},\n \"classes\": {", c->unique_sectors);
    for (int i = 0; i < PTXVM_CLASSES; i++)
        fprintf(file,
                "%s\"%s\": {\"instructions\": %" PRIu64 ", \"threads\": %" PRIu64 ", \"lanes\": %" PRIu64 "}",
                i ? ", " : "", ptxvm_class_name((ptxvm_class)i), c->by_class[i].instructions,
                c->by_class[i].threads, c->by_class[i].lanes);
    fprintf(file, "},\n \"mma\": {");
    for (int i = 0; i < c->n_mma; i++)
        fprintf(file, "%s\"%s\": %" PRIu64, i ? ", " : "", c->mma[i].name, c->mma[i].count);
    fputc('}', file);
    write_models(file, ptxvm_last_report(vm));
    if (c->lines)
        write_lines(file, c);
    if (c->n_sources)
        write_sources(file, c);
    fprintf(file, "}\n");
    return !ferror(file);
}

/* ---- The listing ---- */

/* Lines with at least a twentieth of the kernel's instructions are hot. */
#define HOT 20

static void write_note(FILE *file, const ptxvm_counts *c)
{
    const ptxvm_traffic *t = c->load.requests ? &c->load : c->store.requests ? &c->store : &c->atomic;
    if (t->requests)
        fprintf(file, "  // %" PRIu64 " sectors, %" PRIu64 " at least", t->sectors, t->least_sectors);
    if (c->bank_conflicts)
        fprintf(file, "  // %" PRIu64 " bank conflicts", c->bank_conflicts);
    if (c->divergent_branches)
        fprintf(file, "  // diverged %" PRIu64 " times", c->divergent_branches);
}

/* A line of the PTX, without bytes that a terminal would interpret. */
static void write_text(FILE *file, const char *text, int length)
{
    for (int i = 0; i < length;) {
        int n = pvm_printable(text + i, (size_t)(length - i));
        if (n || text[i] == '\t')
            fwrite(text + i, 1, n ? (size_t)n : 1, file);
        else if (text[i] != '\r')
            fputc('?', file);
        i += n ? n : 1;
    }
}

static void write_line(FILE *file, const ptxvm_counters *c, int line, const char *text, int length)
{
    const ptxvm_counts *counts = line < c->n_lines ? &c->lines[line] : NULL;
    if (!counts || !counts->instructions) {
        fprintf(file, "  %12s %7s %5d  ", "", "", line);
        write_text(file, text, length);
    } else {
        double lanes = (double)counts->lanes / (double)counts->instructions;
        bool hot = counts->instructions * HOT >= c->total.instructions;
        fprintf(file, "%c %12" PRIu64 " %7.2f %5d  ", hot ? '*' : ' ', counts->instructions, lanes, line);
        write_text(file, text, length);
        write_note(file, counts);
    }
    fputc('\n', file);
}

static int first_line(const vm_kernel *kernel)
{
    int line = kernel->function->line;
    for (int i = 0; i < kernel->n_sites; i++)
        line = kernel->sites[i]->function->line < line ? kernel->sites[i]->function->line : line;
    return line;
}

/* The cost of each source line, if the PTX has .loc. */
static void write_source_totals(FILE *file, const ptxvm_counters *c)
{
    if (c->n_sources)
        fprintf(file, "  %12s %7s  source line\n", "instructions", "lanes");
    for (int i = 0; i < c->n_sources; i++) {
        const ptxvm_source_count *s = &c->sources[i];
        bool hot = s->counts.instructions * HOT >= c->total.instructions;
        fprintf(file, "%c %12" PRIu64 " %7.2f  ", hot ? '*' : ' ', s->counts.instructions,
                (double)s->counts.lanes / (double)s->counts.instructions);
        write_text(file, s->file, (int)strlen(s->file));
        fprintf(file, ":%d", s->line);
        write_note(file, &s->counts);
        fputc('\n', file);
    }
}

bool ptxvm_counters_listing(const ptxvm *vm, FILE *file)
{
    PTXVM_DEFAULT_ENVIRONMENT();
    const ptxvm_counters *c = ptxvm_last_counters(vm);
    if (!c || !c->lines || !file)
        return false;
    const vm_kernel *kernel = vm->checks->sums->kernel;
    const pvm_module *ptx = kernel->module->ptx;
    const char *at = ptx->text, *end = ptx->text + ptx->text_length;
    int first = first_line(kernel);
    fprintf(file, "  %12s %7s %5s  kernel %s; * marks lines with 5%% of its instructions or more\n",
            "instructions", "lanes", "line", c->kernel);
    for (int line = 1; at < end && line < c->n_lines; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        if (line >= first)
            write_line(file, c, line, at, (int)(stop - at));
        at = newline ? newline + 1 : end;
    }
    write_source_totals(file, c);
    return !ferror(file);
}
