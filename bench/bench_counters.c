/* The memory traffic of every operation of the registry by ptxvm's counters, compared with the minimum: the
 * sectors that its operands occupy. Prints a table, and draws the same as a picture next to bench.json:
 * bench_counters.svg. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"

enum { ROWS = 64, COLUMNS = 4096, LANES = 32 };

typedef struct counted {
    const kernel_row *row;
    uint64_t least, unique, requested; /* sectors */
    double instructions;               /* warp instructions per element, as 32 lanes each */
    int kernels;
} counted;

/* Numbers between 1/2 and 1, whatever type they are read as, so that there are no special cases. */
static bool fill(ptxvm *vm, ptxvm_address address, uint64_t bytes)
{
    uint8_t *at = ptxvm_host(vm, address, bytes);
    for (uint64_t i = 0; at && i < bytes; i++)
        at[i] = i % 4 == 3 ? 0x3F : (uint8_t)((i * 2654435761u >> 13) & 0x3F);
    return at;
}

typedef struct machine {
    ptxvm *vm;
    ptxvm_address at[QDNN_OPERAND_COUNT], workspace;
} machine;

static bool make_operands(machine *m, const kernel_operand *operands, uint64_t workspace, uint64_t *least)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        *least += (operands[i].bytes + 31) / 32;
        if (operands[i].bytes && (ptxvm_alloc(m->vm, operands[i].bytes, &m->at[i]) != PTXVM_OK ||
                                  !fill(m->vm, m->at[i], operands[i].bytes)))
            return false;
    }
    return workspace == 0 || ptxvm_alloc(m->vm, workspace, &m->workspace) == PTXVM_OK;
}

static bool launch(machine *m, const kernel_step *step, const char *ptx)
{
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    uint8_t params[KERNEL_PARAMS_MAX * 8] = {0};
    uint64_t bytes = 0;
    char entry[64];
    kernel_entry_name(step->row, entry, sizeof entry);
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        uint64_t value = p->kind == KERNEL_OPERAND     ? m->at[p->operand]
                         : p->kind == KERNEL_WORKSPACE ? m->workspace + p->value
                                                       : p->value;
        uint64_t size = p->kind == KERNEL_NUMBER ? p->bytes : 8;
        bytes = (bytes + size - 1) / size * size;
        memcpy(params + bytes, &value, size);
        bytes += size;
    }
    const ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    return ptxvm_module_load(m->vm, ptx, strlen(ptx), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, entry, &kernel) == PTXVM_OK &&
           ptxvm_launch(m->vm, kernel, &config, params, bytes) == PTXVM_OK;
}

/* Runs one launch and adds its counts. */
static bool run_step(machine *m, const kernel_step *step, counted *c)
{
    kernel_text text;
    ptx_error error;
    if (!kernel_emit(step->row, &step->spec, ptx_sm_find("sm_90"), NULL, &text, &error))
        return false;
    bool ok = launch(m, step, text.ptx);
    const ptxvm_counters *counters = ok ? ptxvm_last_counters(m->vm) : NULL;
    free(text.ptx);
    if (!counters)
        return false;
    c->kernels++;
    c->unique += counters->unique_sectors;
    c->requested += counters->total.load.sectors + counters->total.store.sectors;
    c->instructions += (double)counters->total.instructions * LANES / ((double)ROWS * COLUMNS);
    return true;
}

static bool count_row(const kernel_row *row, counted *c)
{
    const kernel_problem problem = {.rows = ROWS, .columns = COLUMNS};
    const ptxvm_config config = {.sm = "sm_90", .threads = 1, .counters = PTXVM_COUNTERS_KERNEL};
    kernel_spec spec = kernel_spec_default();
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_steps steps;
    machine m = {0};
    *c = (counted){.row = row};
    kernel_operands_of(row, KERNEL_NORMAL(row, &spec), &problem, operands);
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &problem, &steps);
    bool ok =
        ptxvm_create(&config, &m.vm) == PTXVM_OK && make_operands(&m, operands, steps.workspace, &c->least);
    for (int i = 0; i < steps.count && ok; i++)
        ok = run_step(&m, &steps.at[i], c);
    if (!ok)
        fprintf(stderr, "bench: counters of %s: %s\n", row->name,
                m.vm ? ptxvm_last_error(m.vm) : "no device");
    ptxvm_destroy(m.vm);
    return ok && c->kernels > 0; /* products have no entries here */
}

static void report(const counted *c)
{
    char name[96], note[160];
    snprintf(name, sizeof name, "counters.%s.requested", c->row->operation_name);
    snprintf(note, sizeof note,
             "of the least %llu sectors; unique %.3f, %.2f instructions for an element, kernels: %d",
             (unsigned long long)c->least, (double)c->unique / (double)c->least, c->instructions, c->kernels);
    bench_report(name, (double)c->requested / (double)c->least, "x", note);
}

/* ---- The picture: two bars per operation ---- */

enum { LINE = 18, LEFT = 260, UNIT = 160, TOP = 58, WIDTH = 1000 };

static void draw_bar(FILE *out, int y, int height, double length, const char *colour)
{
    double width = length * UNIT < WIDTH - LEFT - 130 ? length * UNIT : WIDTH - LEFT - 130;
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", LEFT, y, width,
            height, colour);
}

static void draw_line(FILE *out, const counted *c, int number)
{
    const int y = TOP + number * LINE;
    const double unique = (double)c->unique / (double)c->least,
                 requested = (double)c->requested / (double)c->least;
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + 11,
            c->row->operation_name);
    draw_bar(out, y + 2, 6, unique, "#2a9d8f");
    draw_bar(out, y + 8, 6, requested, "#e9c46a");
    fprintf(out, "<text x=\"%d\" y=\"%d\">%.2f / %.2f, %.1f instr.</text>\n", WIDTH - 125, y + 11, unique,
            requested, c->instructions);
}

static bool draw(const counted *all, int count, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    const int height = TOP + count * LINE + 12;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"10\">\n",
            WIDTH, height);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, height);
    fprintf(out,
            "<text x=\"8\" y=\"20\" font-size=\"14\">Sectors of global memory against the least possible, %d "
            "x %d f32, default "
            "settings</text>\n",
            ROWS, COLUMNS);
    fprintf(out, "<text x=\"8\" y=\"40\" fill=\"#555\">upper bar: different sectors; lower bar: requested "
                 "ones; the line is the "
                 "least; instructions of PTX for an element</text>\n");
    for (int i = 0; i < count; i++)
        draw_line(out, &all[i], i);
    fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#d62828\"/>\n", LEFT + UNIT, TOP,
            LEFT + UNIT, height - 8);
    fprintf(out, "</svg>\n");
    return fclose(out) == 0;
}

void bench_counters(void)
{
    counted *all = calloc((size_t)kernel_row_count, sizeof *all);
    int count = 0;
    for (int i = 0; all && i < kernel_row_count; i++) {
        if (!kernel_rows[i].operation_name)
            continue;
        bench_progress("counters.%s", kernel_rows[i].operation_name);
        if (count_row(&kernel_rows[i], &all[count]))
            report(&all[count++]);
    }
    char path[1024];
    bench_beside("bench_counters.svg", path, sizeof path);
    if (all && !draw(all, count, path))
        fprintf(stderr, "bench: cannot write %s\n", path);
    free(all);
}
