/* From a product and a board to facts. */
#include "bench/facts/facts.h"

#include "clock/product/code.h"
#include "clock/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxgen/sm.h"
#include "tools/toolkit.h"

enum { WARP = 32 };

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- How blocks fill a board ---- */

facts_fill facts_fill_of(const board *on, const facts_launch *l)
{
    const uint64_t per_sm = (uint64_t)clock_blocks_per_sm(on->sm, l->threads, l->shared, l->registers),
                   places = per_sm * (uint64_t)on->multiprocessors;
    const double warps = (double)(round_up((uint64_t)l->threads, WARP) / WARP);
    facts_fill fill = {.blocks_per_sm = (int)per_sm};
    if (!places)
        return fill;
    uint64_t rest = l->blocks % places;
    fill.warps_per_sm = (double)least(l->blocks, places) * warps / on->multiprocessors;
    fill.waves = (double)l->blocks / (double)places;
    fill.last_wave = l->blocks > places && rest ? (double)rest / (double)places : 1;
    return fill;
}

/* ---- Formats and shapes ---- */

static const facts_format formats[] = {
#define FORMAT(...) {__VA_ARGS__},
#include "bench/facts/facts_formats.def"
#undef FORMAT
};

static const facts_shape shapes[] = {
#define SHAPE(...) {__VA_ARGS__},
#include "bench/facts/facts_shapes.def"
#undef SHAPE
};

int facts_format_count(void)
{
    return sizeof formats / sizeof *formats;
}

const facts_format *facts_format_at(int index)
{
    return &formats[index];
}

const facts_format *facts_format_find(const char *name)
{
    for (int i = 0; i < facts_format_count(); i++)
        if (!strcmp(formats[i].name, name))
            return &formats[i];
    return NULL;
}

int facts_shape_count(void)
{
    return sizeof shapes / sizeof *shapes;
}

const facts_shape *facts_shape_at(int index)
{
    return &shapes[index];
}

const char *facts_mode_name(facts_mode mode)
{
    static const char *const names[FACTS_MODES] = {"exact", "tensor", "prepacked"};
    return names[mode];
}

/* ---- A product ---- */

static void choose(const kernel_row *row, facts_mode mode, const kernel_problem *problem, kernel_spec *spec)
{
    if (mode == FACTS_EXACT)
        kernel_product_choose(row, problem, spec);
    else
        kernel_tensor_choose(row, mode == FACTS_PREPACKED, problem, spec);
}

/* What the text and ptxas tell of a kernel. Emitting and assembling take seconds, and most shapes share a kernel: the last ones are
 * kept. */
typedef struct assembled {
    char name[512];
    uint32_t shared;
    int registers, spill_bytes;
} assembled;

static bool assemble_text(const kernel_text *text, const ptx_sm *sm, assembled *out)
{
    char ptxas[1024], folder[1024], path[1100];
    toolkit_result cubin = {0};
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas) || !toolkit_make_directory(folder, sizeof folder))
        return false;
    snprintf(path, sizeof path, "%s/kernel.ptx", folder);
    FILE *file = fopen(path, "wb");
    bool ok = file && fputs(text->ptx, file) >= 0;
    ok = file && fclose(file) == 0 && ok && toolkit_ptxas(ptxas, sm->name, path, &cubin);
    if (ok)
        sass_read_log(cubin.log, &out->registers, &out->spill_bytes);
    toolkit_free(&cubin);
    toolkit_remove_directory(folder);
    return ok;
}

static bool describe(const kernel_step *step, const ptx_sm *sm, bool assemble, assembled *out, char *why,
                     size_t size)
{
    enum { KEPT = 64 };
    static assembled kept[KEPT];
    static int next;
    char name[512];
    kernel_text text = {0};
    ptx_error error;
    kernel_file_name(step->row, &step->spec, sm, name, sizeof name);
    for (int i = 0; i < KEPT; i++)
        if (!strcmp(kept[i].name, name) && (kept[i].registers || !assemble)) {
            *out = kept[i];
            return true;
        }
    if (!kernel_emit(step->row, &step->spec, sm, NULL, &text, &error)) {
        snprintf(why, size, "%s", error.text);
        return false;
    }
    assembled a = {.shared = text.info.shared, .spill_bytes = -1};
    snprintf(a.name, sizeof a.name, "%s", name);
    if (assemble)
        assemble_text(&text, sm, &a);
    free(text.ptx);
    *out = kept[next++ % KEPT] = a;
    return true;
}

/* A lane of an exact sum is one chain, so a warp per output is the most; a strip of 16 outputs and 512 k is the least piece
 * in mode tensor. */
static double wanted_warps(facts_mode mode, uint64_t m, const facts_shape *shape, const board *on)
{
    enum { FEW = 16, STRIP = 512, OUTPUTS = 16, ENOUGH = 8 };
    if (m > FEW)
        return 0;
    double most = mode == FACTS_EXACT
                      ? (double)shape->n
                      : (double)(shape->n / OUTPUTS) * (double)((shape->k + STRIP - 1) / STRIP);
    most /= on->multiprocessors;
    return most < ENOUGH ? most : ENOUGH;
}

/* What DRAM delivers in the 600 ns that it takes to answer, but no more than a quarter of all bytes. */
static double wanted_flight(uint64_t m, uint64_t bytes, const board *on)
{
    enum { FEW = 16, NANOSECONDS = 600 };
    const double delivered = (double)on->dram_gbs * NANOSECONDS, quarter = (double)bytes / 4;
    return m > FEW ? 0 : delivered < quarter ? delivered : quarter;
}

static uint64_t operand_bytes(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    uint64_t bytes = 0;
    kernel_operands_of(row, KERNEL_NORMAL(row, spec), problem, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        bytes += operands[i].bytes;
    return bytes;
}

bool facts_product_of(const facts_format *format, facts_mode mode, uint64_t m, const facts_shape *shape,
                      const board *on, facts_product *out, char *why, size_t size)
{
    const kernel_row *row = kernel_find(format->kernel);
    kernel_spec spec = kernel_spec_default();
    if (!kernel_spec_set_words(row, &spec, "data=f16 output=f16", why, size) ||
        !kernel_spec_set_words(row, &spec, format->settings, why, size))
        return false;
    if (shape->k % kernel_columns_multiple(row)) {
        snprintf(why, size, "K is no multiple of %llu", (unsigned long long)kernel_columns_multiple(row));
        return false;
    }
    const bool by_columns = spec.product.reduction == KERNEL_K_COLUMNS;
    const kernel_problem problem = {.rows = by_columns ? shape->n : shape->k,
                                    .columns = by_columns ? shape->k : shape->n,
                                    .multiprocessors = on->multiprocessors,
                                    .m = m,
                                    .x_stride = shape->k,
                                    .y_stride = shape->n};
    choose(row, mode, &problem, &spec);
    *out = (facts_product){row, kernel_spec_normal(row, &spec), problem};
    return kernel_is_emitted(row, &spec, why, size);
}

/* Issue: every scheduler one instruction per cycle. */
static void set_bounds(facts *f, const facts_product *p, const board *on)
{
    enum { SCHEDULERS = 4 };
    const double weights = (double)p->problem.rows * (double)p->problem.columns;
    const double instructions = f->code.per_weight * weights / WARP * (double)f->row_tiles;
    f->dram_us = (double)f->bytes / on->dram_gbs * 1e-3;
    f->issue_us = instructions / ((double)on->multiprocessors * SCHEDULERS * on->clock_mhz);
    f->flight = f->code.flight * f->fill.warps_per_sm * on->multiprocessors;
}

/* The run assembles, too. */
static bool run_it(const facts_product *product, const board *on, facts_code *code, assembled *a, char *why,
                   size_t size)
{
    if (!facts_code_of(product, on, code, why, size))
        return false;
    if (code->is_sass) {
        a->registers = code->registers;
        a->spill_bytes = code->spill_bytes;
    }
    return true;
}

static uint64_t row_tiles(const facts_product *p)
{
    const uint64_t rows = p->spec.product.tile_rows;
    return rows ? (p->problem.m + rows - 1) / rows : 1;
}

bool facts_of(const facts_format *format, facts_mode mode, uint64_t m, const facts_shape *shape,
              const board *on, facts_depth depth, facts *out, char *why, size_t size)
{
    facts_product product;
    kernel_steps steps;
    assembled a;
    facts_code code = {.is_sass = false};
    if (!facts_product_of(format, mode, m, shape, on, &product, why, size))
        return false;
    kernel_steps_of(product.row, &product.spec, &product.problem, &steps);
    const kernel_step *step = facts_multiplying(&steps);
    if (!describe(step, facts_sm_of(on), depth == FACTS_ASSEMBLED, &a, why, size) ||
        (depth == FACTS_RUN && !run_it(&product, on, &code, &a, why, size)))
        return false;
    *out = (facts){.tile_rows = product.spec.product.tile_rows,
                   .split = product.spec.product.split,
                   .launches = steps.count,
                   .workspace = steps.workspace,
                   .bytes = operand_bytes(product.row, &product.spec, &product.problem),
                   .launch = {step->grid[0] * step->grid[1] * step->grid[2], (int)step->block,
                              a.shared + step->shared, a.registers},
                   .spill_bytes = a.spill_bytes,
                   .row_tiles = row_tiles(&product),
                   .code = code,
                   .wanted_warps = wanted_warps(mode, m, shape, on)};
    out->wanted_flight = wanted_flight(m, out->bytes, on);
    kernel_spec_value(&step->spec, "product", out->product, sizeof out->product);
    kernel_file_name(step->row, &step->spec, facts_sm_of(on), out->kernel, sizeof out->kernel);
    out->fill = facts_fill_of(on, &out->launch);
    set_bounds(out, &product, on);
    return true;
}
