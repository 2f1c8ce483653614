/* Chooses the kernel for a product. Those of a mode give the same bits; the choice depends on the
 * largest number of rows of a plan, never on that of a single execute. */
#include "kernels/formats/byte_table.h"
#include "kernels/formats/quantized.h"
#include "kernels/gemm/blocks.h"

uint64_t kernel_rows_together(uint64_t m, uint64_t experts)
{
    return experts ? ceil_div(m, experts) : m;
}

/* Kernels for few rows of x, the best first; staged is the fallback. A thread block takes all rows, so
 * weights are read once. */
enum { FEW_ROWS = 16 };
static const kernel_product few_rows[] = {KERNEL_PRODUCT_GEMV, KERNEL_PRODUCT_BLOCKS, KERNEL_PRODUCT_RAGGED,
                                          KERNEL_PRODUCT_TERNARY, KERNEL_PRODUCT_COLUMNS};

/* The smallest power of two that covers all rows. */
static uint64_t rows_of_tile(uint64_t m)
{
    uint64_t rows = 1;
    while (rows < m)
        rows *= 2;
    return rows;
}

/* How many warps every multiprocessor should have. The model of time shows six to suffice; where codes are loaded straight from
 * blocks, eight; and three of those that copy long rounds to shared memory, of two outputs at a time. */
static unsigned wanted_warps(const kernel_row *row)
{
    enum { USUAL = 6, OF_DIRECT = 8, OF_LONG = 3, LONG_ROUND = 200 };
    const block_layout *layout = block_layout_of(row->format);
    if (!layout)
        return USUAL;
    if (blocks_are_direct(layout))
        return OF_DIRECT;
    return ROUND / layout->elements * layout->bytes >= LONG_ROUND ? OF_LONG : USUAL;
}

/* Whether blocks of half the outputs would be better, for the sake of warps. But a block that fills a large table first costs too
 * much to have more of them than multiprocessors. */
static bool should_divide(const kernel_row *row, const kernel_problem *problem, const kernel_spec *spec)
{
    enum { USUAL_MULTIPROCESSORS = 108 };
    const kernel_geometry g = gemm_geometry(row, spec);
    const uint64_t warps = gemm_warps(row, spec, problem), blocks = warps * WARP / g.block,
                   sms = problem->multiprocessors > 0 ? (uint64_t)problem->multiprocessors
                                                      : USUAL_MULTIPROCESSORS;
    return warps < wanted_warps(row) * sms && (g.shared_dynamic < BYTE_TABLE_BYTES || 2 * blocks <= sms);
}

/* Divides the outputs of blocks, so that each warp has fewer of them, or its last one is shared by more threads. */
static void choose_outputs(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec)
{
    enum { SPLIT_MAX = 32 };
    if (kernel_product_splits(spec) != SPLITS_OUTPUTS)
        return;
    while (spec->product.split < SPLIT_MAX && should_divide(row, problem, spec)) {
        kernel_spec finer = *spec;
        finer.product.split *= 2;
        if (!kernel_product_fits(row, &finer, problem))
            return;
        *spec = finer;
    }
}

static void choose_few_rows(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec)
{
    spec->product.tile_rows = rows_of_tile(kernel_rows_together(problem->m, problem->experts));
    for (size_t i = 0; i < sizeof few_rows / sizeof few_rows[0]; i++) {
        spec->product.kernel = few_rows[i];
        if (kernel_shape_of(spec, problem).k > 0 && kernel_product_fits(row, spec, problem)) {
            choose_outputs(row, problem, spec);
            return;
        }
    }
    spec->product.kernel = KERNEL_PRODUCT_STAGED;
}

/* Tiles for many rows. If there are too few to fill a GPU, several thread blocks share the lanes of a sum,
 * up to about 256 blocks. */
static void choose_tiles(const kernel_problem *problem, kernel_spec *spec)
{
    enum { OUTPUTS = 8192, BLOCKS = 256, SPLIT_MAX = 8 };
    const uint64_t together = kernel_rows_together(problem->m, problem->experts),
                   outputs = kernel_shape_of(spec, problem).outputs;
    spec->product.kernel = KERNEL_PRODUCT_LANEWISE;
    spec->product.tile_rows = together > 64 ? 128 : together > 32 ? 64 : 32;
    const uint64_t down = ceil_div(problem->m, spec->product.tile_rows),
                   across = ceil_div(outputs, OUTPUTS / spec->product.tile_rows);
    while (!spec->product.grouped && spec->product.split < SPLIT_MAX && down <= BLOCKS && across <= BLOCKS &&
           down * across * spec->product.split * 2 <= BLOCKS)
        spec->product.split *= 2;
}

void kernel_product_choose(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec)
{
    spec->product.split = 1;
    if (kernel_rows_together(problem->m, problem->experts) > FEW_ROWS)
        choose_tiles(problem, spec);
    else
        choose_few_rows(row, problem, spec);
}
