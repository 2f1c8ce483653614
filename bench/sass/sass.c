/* From PTX and ptxvm's counts to SASS figures: the tools, and the sums. */
#include "bench/sass/sass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sass/internal.h"
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
        memcpy(report->opcodes[i].name, inst->opcode, (size_t)inst->base_length);
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

static void add_up(sass_report *report, const sass_code *code, const double *runs)
{
    for (int b = 0; b < code->n_blocks; b++) {
        const sass_block *block = &code->blocks[b];
        report->issued += runs[b] * block->count;
        report->written += block->reached ? block->count : 0;
        for (int i = block->first; i < block->first + block->count; i++)
            if (block->reached)
                add_opcode(report, &code->insts[i], runs[b]);
    }
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

static void read_log(sass_report *report, const char *log, const char *kernel)
{
    char phrase[256];
    snprintf(phrase, sizeof phrase, "Compiling entry function '%s'", kernel);
    const char *at = strstr(log, phrase);
    at = at ? at : log;
    sass_read_log(at, &report->registers, &report->spill_bytes);
    report->stack_bytes = number_before(at, " bytes stack frame");
}

bool sass_estimate(const char *listing, const char *ptxas_log, const ptxvm_counters *counters, uint64_t warps,
                   sass_report *report, char *error, size_t error_size)
{
    sass_code code;
    *report = (sass_report){0};
    if (!counters || !counters->lines) {
        snprintf(error, error_size, "there are no counters by line");
        return false;
    }
    if (!sass_parse(listing, counters->kernel, &code)) {
        snprintf(error, error_size, "the listing has no kernel %s", counters->kernel);
        return false;
    }
    double *runs = calloc((size_t)code.n_blocks, sizeof *runs);
    bool ok = runs && sass_solve(&code, counters, warps, runs, &report->misfit);
    if (ok) {
        add_up(report, &code, runs);
        read_log(report, ptxas_log, counters->kernel);
    } else
        snprintf(error, error_size, "out of memory");
    free(runs);
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

bool sass_measure(const char *ptx, const char *sm, const ptxvm_counters *counters, uint64_t warps,
                  sass_report *report, char *error, size_t error_size)
{
    char folder[1024];
    toolkit_result cubin = {0}, listing = {0};
    *report = (sass_report){0};
    if (!sass_found(error, error_size))
        return false;
    if (!toolkit_make_directory(folder, sizeof folder)) {
        snprintf(error, error_size, "cannot make a temporary directory (TMPDIR, else /tmp)");
        return false;
    }
    bool ok = make_listing(folder, ptx, sm, &cubin, &listing);
    if (ok)
        ok = sass_estimate(listing.data, cubin.log ? cubin.log : "", counters, warps, report, error,
                           error_size);
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
