/* The shape of a product in mode tensor: how many rows of x and how many strips of the sum a thread block has at a time. All shapes
 * give the same bits. */
#include "kernels/gemm/gemm.h"
#include "kernels/tensor/tile.h"

/* Of a board that nobody named. */
enum { USUAL_MULTIPROCESSORS = 108 };

/* ---- Weights as stored ---- */

/* What a thread block takes for a tile of weights, in units of what 16 rows cost its tensor cores: decoding, and multiplying. */
static uint64_t tile_cost(uint64_t rows)
{
    enum { DECODING = 3 };
    return DECODING + ceil_div(rows, 16);
}

/* The time of the multiprocessor with the most blocks. One block by itself is bound by latency, so that two take hardly longer. */
static uint64_t product_cost(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    enum { TOGETHER = 2 };
    const kernel_shape shape = kernel_shape_of(spec, problem);
    const uint64_t rows = spec->product.tile_rows,
                   per_expert = kernel_rows_together(problem->m, problem->experts),
                   experts = problem->experts < problem->m ? problem->experts : problem->m,
                   down =
                       problem->experts ? experts * ceil_div(per_expert, rows) : ceil_div(problem->m, rows),
                   blocks = down * ceil_div(shape.n, gemm_tile.outputs(row, spec)),
                   sms = problem->multiprocessors > 0 ? (uint64_t)problem->multiprocessors
                                                      : USUAL_MULTIPROCESSORS,
                   on_one = ceil_div(blocks, sms), rounds = ceil_div(shape.k, STRIP * spec->product.split);
    return (on_one > TOGETHER ? on_one : TOGETHER) * rounds * tile_cost(rows);
}

static void choose_tile(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec)
{
    const uint64_t most = kernel_tile_rows(row, kernel_rows_together(problem->m, problem->experts)),
                   strips = ceil_div(kernel_shape_of(spec, problem).k, STRIP);
    kernel_spec best = *spec;
    uint64_t least = UINT64_MAX;
    best.product.kernel = KERNEL_PRODUCT_TILE;
    for (uint64_t rows = most; rows >= 1 && rows >= most / 8; rows /= 2)
        for (uint64_t parts = 1; parts <= tile_parts_max(row, spec, rows); parts *= 2) {
            kernel_spec with = best;
            with.product.tile_rows = rows;
            with.product.split = parts;
            const uint64_t cost = product_cost(row, &with, problem);
            if (cost < least && (parts == 1 || parts < 2 * strips)) {
                least = cost;
                best = with;
            }
        }
    *spec = best;
}

/* ---- Either ---- */

void kernel_tensor_choose(const kernel_row *row, bool prepacked, const kernel_problem *problem,
                          kernel_spec *spec)
{
    if (!prepacked) {
        choose_tile(row, problem, spec);
        return;
    }
    spec->product.kernel = KERNEL_PRODUCT_STREAM;
    spec->product.split = 1;
    spec->product.tile_rows =
        kernel_stream_rows(row, problem->experts > 0, kernel_rows_together(problem->m, problem->experts));
}
