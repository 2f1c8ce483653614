/* Which kernel suits a product in mode exact. All give the same bits; the choice follows the largest number of rows of a plan,
 * never that of one execute. */
#include "kernels/gemm/gemm.h"

uint64_t kernel_rows_together(uint64_t m, uint64_t experts)
{
    return experts ? ceil_div(m, experts) : m;
}

/* Kernels for few rows of x, the better ones first, and how many rows a thread block of theirs takes at most. */
enum { FEW_ROWS = 16 };
static const struct {
    kernel_product product;
    uint64_t tile_rows;
} few_rows[] = {{KERNEL_PRODUCT_GEMV, 16},  {KERNEL_PRODUCT_RAGGED, 16},  {KERNEL_PRODUCT_BLOCKS, 16},
                {KERNEL_PRODUCT_BLOCKS, 8}, {KERNEL_PRODUCT_COLUMNS, 16}, {KERNEL_PRODUCT_COLUMNS, 8}};

/* The least power of two that has all rows, up to a limit. */
static uint64_t rows_of_tile(uint64_t m, uint64_t most)
{
    uint64_t rows = 1;
    while (rows < most && rows < m)
        rows *= 2;
    return rows;
}

static bool choose_few_rows(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec)
{
    const uint64_t together = kernel_rows_together(problem->m, problem->experts);
    for (size_t i = 0; i < sizeof few_rows / sizeof few_rows[0] && together <= FEW_ROWS; i++) {
        spec->product = few_rows[i].product;
        spec->tile_rows = rows_of_tile(together, few_rows[i].tile_rows);
        if (kernel_product_fits(row, spec, problem))
            return true;
    }
    return false;
}

/* Tiles for many rows. Where they are too few to fill a GPU, blocks share the lanes of a sum: about 256 of them. */
static void choose_tiles(const kernel_problem *problem, kernel_spec *spec)
{
    enum { OUTPUTS = 8192, BLOCKS = 256, SPLIT_MAX = 8 };
    const uint64_t together = kernel_rows_together(problem->m, problem->experts),
                   outputs = gemm_shape_of(spec, problem).outputs;
    spec->product = KERNEL_PRODUCT_LANEWISE;
    spec->tile_rows = together > 64 ? 128 : together > 32 ? 64 : 32;
    const uint64_t down = ceil_div(problem->m, spec->tile_rows),
                   across = ceil_div(outputs, OUTPUTS / spec->tile_rows);
    while (!spec->grouped && spec->split < SPLIT_MAX && down <= BLOCKS && across <= BLOCKS &&
           down * across * spec->split * 2 <= BLOCKS)
        spec->split *= 2;
}

void kernel_product_choose(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec)
{
    const uint64_t together = kernel_rows_together(problem->m, problem->experts);
    spec->split = 1;
    if (gemm_shape_of(spec, problem).k > 0 && choose_few_rows(row, problem, spec))
        return;
    if (together > FEW_ROWS) {
        choose_tiles(problem, spec);
        return;
    }
    spec->product = KERNEL_PRODUCT_STAGED;
    spec->tile_rows = rows_of_tile(together, FEW_ROWS);
}
