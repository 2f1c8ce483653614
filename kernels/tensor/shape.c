/* The shape of a product in mode tensor: how many rows of x and how many strips of the sum a thread block has at a time. All shapes
 * give the same bits. */
#include "kernels/gemm/gemm.h"
#include "kernels/tensor/tile.h"

/* Of a board that nobody named. */
enum { USUAL_MULTIPROCESSORS = 108 };

/* A kernel, and what its blocks take for a strip of all their columns: decoding, in units of what it costs to multiply by `rows` rows. */
typedef struct way {
    kernel_product product;
    const gemm_kernel *kernel;
    uint64_t (*rows_most)(const kernel_row *row, uint64_t rows);
    unsigned (*parts_most)(const kernel_row *row, const kernel_spec *spec, uint64_t rows);
    unsigned decoding, rows;
} way;

static uint64_t stream_rows_most(const kernel_row *row, uint64_t rows)
{
    return kernel_stream_rows(row, rows);
}

static unsigned stream_parts_most(const kernel_row *row, const kernel_spec *spec, uint64_t rows)
{
    (void)row, (void)spec;
    return (unsigned)kernel_stream_parts_max(rows);
}

static const way as_stored = {KERNEL_PRODUCT_TILE, &gemm_tile, kernel_tile_rows, tile_parts_max, 3, 16},
                 from_units =
                     {KERNEL_PRODUCT_STREAM, &gemm_stream, stream_rows_most, stream_parts_most, 7, 8},
                 in_quads = {KERNEL_PRODUCT_STORED, &gemm_stored, stream_rows_most, stream_parts_most, 9, 8};

/* The time of the multiprocessor with the most blocks. One block by itself is bound by latency, so that two take hardly longer. */
static uint64_t product_cost(const way *way, const kernel_row *row, const kernel_spec *spec,
                             const kernel_problem *problem)
{
    enum { TOGETHER = 2 };
    const kernel_shape shape = kernel_shape_of(spec, problem);
    const uint64_t rows = spec->product.tile_rows,
                   per_expert = kernel_rows_together(problem->m, problem->experts),
                   experts = problem->experts < problem->m ? problem->experts : problem->m,
                   down =
                       problem->experts ? experts * ceil_div(per_expert, rows) : ceil_div(problem->m, rows),
                   blocks = down * ceil_div(shape.n, way->kernel->outputs(row, spec)),
                   sms = problem->multiprocessors > 0 ? (uint64_t)problem->multiprocessors
                                                      : USUAL_MULTIPROCESSORS,
                   on_one = ceil_div(blocks, sms), rounds = ceil_div(shape.k, STRIP * spec->product.split);
    return (on_one > TOGETHER ? on_one : TOGETHER) * rounds * (way->decoding + ceil_div(rows, way->rows));
}

/* Codes of 4 bits in rows of k need no tile, unless there are more rows than a grid has blocks for. */
static const way *way_as_stored(const kernel_row *row, const kernel_problem *problem, const kernel_spec *spec)
{
    enum { BLOCKS_DOWN_MAX = UINT16_MAX };
    const bool fits_grid =
        problem->experts || problem->m <= BLOCKS_DOWN_MAX * stream_rows_most(row, problem->m);
    kernel_spec quads = *spec;
    quads.product.kernel = KERNEL_PRODUCT_STORED;
    quads.product.tile_rows = quads.product.split = 1;
    return fits_grid && kernel_product_fits(row, &quads, problem) ? &in_quads : &as_stored;
}

/* The least cost; with the most rows and the fewest parts among equals. */
void kernel_tensor_choose(const kernel_row *row, bool prepacked, const kernel_problem *problem,
                          kernel_spec *spec)
{
    const way *way = prepacked ? &from_units : way_as_stored(row, problem, spec);
    const uint64_t most = way->rows_most(row, kernel_rows_together(problem->m, problem->experts)),
                   strips = ceil_div(kernel_shape_of(spec, problem).k, STRIP);
    kernel_spec best = *spec;
    uint64_t least = UINT64_MAX;
    best.product.kernel = way->product;
    best.product.tile_rows = best.product.split = 1;
    for (uint64_t rows = most; rows >= 1 && rows >= (most > 16 ? most / 8 : most); rows /= 2)
        for (uint64_t parts = 1; parts <= way->parts_most(row, spec, rows); parts *= 2) {
            kernel_spec with = best;
            with.product.tile_rows = rows;
            with.product.split = parts;
            const uint64_t cost = product_cost(way, row, &with, problem);
            if (cost < least && (parts == 1 || parts < 2 * strips)) {
                least = cost;
                best = with;
            }
        }
    *spec = best;
}
