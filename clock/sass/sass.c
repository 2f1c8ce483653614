/* The tools, the paths of a launch, and sums over it. */
#include "clock/sass/sass.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"
#include "tools/toolkit.h"

bool sass_found(char *why, size_t size)
{
    char path[1024];
    if (!toolkit_find_ptxas(path, sizeof path))
        snprintf(why, size, "ptxas was not found (CUDA_HOME, PATH)");
    else if (!toolkit_find_nvdisasm(path, sizeof path))
        snprintf(why, size,
                 "nvdisasm was not found (QDNN_NVDISASM, CUDA_HOME, PATH); the PyPI package "
                 "nvidia-cuda-nvdisasm has it");
    else
        return true;
    return false;
}

/* ---- Sums ---- */

static void add_opcode(sass_report *report, const sass_inst *inst, double runs)
{
    int i = 0;
    while (i < report->n_opcodes && !sass_is(inst, report->opcodes[i].name))
        i++;
    if (i == SASS_OPCODES || (size_t)inst->base_length >= sizeof report->opcodes[i].name)
        return;
    if (i == report->n_opcodes) {
        memcpy(report->opcodes[i].name, inst->text, (size_t)inst->base_length);
        report->n_opcodes++;
    }
    report->opcodes[i].issued += runs;
}

static int compare_opcodes(const void *a, const void *b)
{
    const sass_opcode *x = a, *y = b;
    if (x->issued != y->issued)
        return x->issued < y->issued ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void add_up(sass_report *report, const sass_code *code, const sass_path *path)
{
    const double warps = (double)path->warps;
    report->issued = path->issued * warps;
    report->misfit = path->misfit;
    report->written = code->written;
    for (int i = 0; i < code->n_insts; i++)
        if (code->blocks[code->insts[i].block].reached)
            add_opcode(report, &code->insts[i], warps * path->blocks[code->insts[i].block]);
    qsort(report->opcodes, (size_t)report->n_opcodes, sizeof report->opcodes[0], compare_opcodes);
}

/* The number before (or behind, where it follows) a phrase of the kernel's lines of the log. */
static int number_before(const char *text, const char *phrase)
{
    const char *at = strstr(text, phrase);
    while (at && at > text && at[-1] == ' ')
        at--;
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? atoi(at) : 0;
}

void sass_read_log(const char *log, int *registers, int *spill_bytes)
{
    *registers = number_before(log, " registers");
    *spill_bytes = number_before(log, " bytes spill stores") + number_before(log, " bytes spill loads");
}

static void read_log(sass_code *code, const char *log, const char *kernel)
{
    char phrase[320];
    snprintf(phrase, sizeof phrase, "Compiling entry function '%s'", kernel);
    const char *at = strstr(log, phrase);
    at = at ? at : log;
    sass_read_log(at, &code->registers, &code->spill_bytes);
    code->stack_bytes = number_before(at, " bytes stack frame");
}

static bool are_by_line(const ptxvm_counters *counters, char *error, size_t error_size)
{
    if (!counters || !counters->lines)
        snprintf(error, error_size, "there are no counters by line");
    return counters && counters->lines;
}

/* All paths of the launch as one: sums over the launch need no more. */
static bool report_on(const sass_code *code, const ptxvm_counters *counters, uint64_t warps,
                      sass_report *report, char *error, size_t error_size)
{
    ptxvm_counters by_line;
    sass_path *path = NULL;
    by_line = *counters;
    by_line.n_paths = 0;
    *report = (sass_report){
        .registers = code->registers, .spill_bytes = code->spill_bytes, .stack_bytes = code->stack_bytes};
    if (!sass_paths(code, &by_line, warps, &path)) {
        snprintf(error, error_size, "out of memory");
        return false;
    }
    add_up(report, code, path);
    sass_paths_free(path, 1);
    return true;
}

bool sass_estimate(const char *listing, const char *ptxas_log, const ptxvm_counters *counters, uint64_t warps,
                   sass_report *report, char *error, size_t error_size)
{
    sass_code code;
    *report = (sass_report){0};
    if (!are_by_line(counters, error, error_size))
        return false;
    if (!sass_parse(listing, counters->kernel, &code)) {
        snprintf(error, error_size, "the listing has no kernel %s", counters->kernel);
        return false;
    }
    read_log(&code, ptxas_log, counters->kernel);
    bool ok = report_on(&code, counters, warps, report, error, error_size);
    sass_code_free(&code);
    return ok;
}

double sass_issued(const sass_report *report, const char *opcode)
{
    for (int i = 0; i < report->n_opcodes; i++)
        if (strcmp(report->opcodes[i].name, opcode) == 0)
            return report->opcodes[i].issued;
    return 0;
}

/* ---- Tools ---- */

static bool write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(data, 1, bytes, file) == bytes;
    return file && fclose(file) == 0 && ok;
}

/* Assembles and disassembles in a folder of its own. */
static bool make_listing(const char *folder, const char *ptx, const char *sm, toolkit_result *cubin,
                         toolkit_result *listing)
{
    char ptxas[1024], nvdisasm[1024], path[1100];
    snprintf(path, sizeof path, "%s/kernel.ptx", folder);
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas) || !toolkit_find_nvdisasm(nvdisasm, sizeof nvdisasm) ||
        !write_file(path, ptx, strlen(ptx)) || !toolkit_ptxas_lines(ptxas, sm, path, cubin))
        return false;
    snprintf(path, sizeof path, "%s/kernel.cubin", folder);
    return write_file(path, cubin->data, cubin->bytes) && toolkit_nvdisasm(nvdisasm, path, listing);
}

/* The first kernel of a listing: behind ".text." */
static void first_kernel(const char *listing, char *name, size_t size)
{
    const char *at = strstr(listing, "\n.text.");
    snprintf(name, size, "%.*s", at ? (int)strcspn(at + 7, ":\n") : 0, at ? at + 7 : "");
}

static bool read_code(const toolkit_result *cubin, const toolkit_result *listing, const char *kernel,
                      sass_code *code, char *error, size_t error_size)
{
    char first[256];
    if (!kernel) {
        first_kernel(listing->data, first, sizeof first);
        kernel = first;
    }
    if (!sass_parse(listing->data, kernel, code)) {
        snprintf(error, error_size, "the machine code has no kernel %s", kernel);
        return false;
    }
    read_log(code, cubin->log ? cubin->log : "", kernel);
    return true;
}

bool sass_assemble(const char *ptx, const char *sm, const char *kernel, sass_code *code, char *error,
                   size_t error_size)
{
    char folder[1024];
    toolkit_result cubin = {0}, listing = {0};
    *code = (sass_code){0};
    if (!sass_found(error, error_size))
        return false;
    if (!toolkit_make_directory(folder, sizeof folder)) {
        snprintf(error, error_size, "cannot make a temporary directory (TMPDIR, else /tmp)");
        return false;
    }
    bool ok = make_listing(folder, ptx, sm, &cubin, &listing);
    if (ok)
        ok = read_code(&cubin, &listing, kernel, code, error, error_size);
    else
        snprintf(error, error_size, "%s",
                 listing.log ? listing.log
                 : cubin.log ? cubin.log
                             : "a tool failed");
    toolkit_free(&cubin);
    toolkit_free(&listing);
    toolkit_remove_directory(folder);
    return ok;
}

bool sass_measure(const char *ptx, const char *sm, const ptxvm_counters *counters, uint64_t warps,
                  sass_report *report, char *error, size_t error_size)
{
    sass_code code;
    *report = (sass_report){0};
    if (!are_by_line(counters, error, error_size) ||
        !sass_assemble(ptx, sm, counters->kernel, &code, error, error_size))
        return false;
    bool ok = report_on(&code, counters, warps, report, error, error_size);
    sass_code_free(&code);
    return ok;
}

/* ---- Paths ---- */

static double issued_by(const sass_code *code, const double *blocks)
{
    double sum = 0;
    for (int b = 0; b < code->n_blocks; b++)
        sum += blocks[b] * code->blocks[b].count;
    return sum;
}

/* Counts per warp: whole ones, if all warps take the path. */
static double per_warp(const sass_path *path, double count)
{
    const double each = path->warps ? count / (double)path->warps : count;
    return path->merged ? each : round(each);
}

static bool solve_path(const sass_code *code, const uint64_t *lines, int n_lines, sass_path *path)
{
    path->blocks = calloc((size_t)code->n_blocks + 1, sizeof *path->blocks);
    path->edges = calloc((size_t)code->n_edges + 1, sizeof *path->edges);
    if (!path->blocks || !path->edges ||
        !sass_solve(code, lines, n_lines, path->warps, path->merged, path->blocks, path->edges,
                    &path->misfit))
        return false;
    for (int b = 0; b < code->n_blocks; b++)
        path->blocks[b] = per_warp(path, path->blocks[b]);
    for (int e = 0; e < code->n_edges; e++)
        path->edges[e] = per_warp(path, path->edges[e]);
    path->issued = issued_by(code, path->blocks);
    return true;
}

static int paths_by_line(const sass_code *code, const ptxvm_counters *counters, uint64_t warps,
                         sass_path *path)
{
    uint64_t *lines = calloc((size_t)counters->n_lines + 1, sizeof *lines);
    *path = (sass_path){.warps = warps, .merged = true};
    for (int i = 0; lines && i < counters->n_lines; i++)
        lines[i] = counters->lines[i].instructions;
    bool ok = lines && solve_path(code, lines, counters->n_lines, path);
    free(lines);
    return ok;
}

int sass_paths(const sass_code *code, const ptxvm_counters *counters, uint64_t warps, sass_path **paths)
{
    *paths = NULL;
    if (!counters || !counters->lines)
        return 0;
    int n = counters->n_paths ? counters->n_paths : 1, done = 0;
    sass_path *all = calloc((size_t)n, sizeof *all);
    if (all && !counters->n_paths)
        done = paths_by_line(code, counters, warps, &all[0]);
    for (int i = 0; all && i < counters->n_paths; i++) {
        const ptxvm_path *p = &counters->paths[i];
        all[i] = (sass_path){.warps = p->warps, .first = p->first, .merged = p->merged};
        done += solve_path(code, p->lines, counters->n_lines, &all[i]);
    }
    if (done == n) {
        *paths = all;
        return n;
    }
    sass_paths_free(all, n);
    return 0;
}

void sass_paths_free(sass_path *paths, int n)
{
    for (int i = 0; paths && i < n; i++) {
        free(paths[i].blocks);
        free(paths[i].edges);
    }
    free(paths);
}
