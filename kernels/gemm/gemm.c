/* Products: which kernel computes one, its launch and its parameters. */
#include "kernels/gemm/gemm.h"

#include <stdio.h>

static const gemm_kernel *const kernels[] = {
    [KERNEL_PRODUCT_STAGED] = &gemm_staged,
    [KERNEL_PRODUCT_TILE] = &gemm_tile,
    [KERNEL_PRODUCT_GEMV] = &gemm_gemv,
};

gemm_shape gemm_shape_of(const kernel_spec *spec, const kernel_problem *problem)
{
    const bool by_columns = spec->reduction == KERNEL_K_COLUMNS;
    gemm_shape s = {.k = by_columns ? problem->columns : problem->rows,
                    .outputs = by_columns ? problem->rows : problem->columns};
    s.n = spec->gated ? s.outputs / 2 : s.outputs;
    return s;
}

bool gemm_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    if (spec->data == QDNN_DATA_F64) {
        snprintf(error, error_size, "data is f64; products take x in f32, f16 or bf16");
        return false;
    }
    const gemm_kernel *kernel = kernels[spec->product];
    return !kernel->serves || kernel->serves(row, spec, error, error_size);
}

bool kernel_product_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    char reason[256];
    const gemm_kernel *kernel = kernels[spec->product];
    return kernel_is_emitted(row, spec, reason, sizeof reason) &&
           (!kernel->fits || kernel->fits(row, spec, problem));
}

/* Without k there are sums too: +0. */
bool gemm_is_empty(const kernel_problem *problem)
{
    return problem->m == 0;
}

/* The grid follows from m and n alone; gemm_steps sets it. */
kernel_geometry gemm_geometry(const kernel_row *row, const kernel_spec *spec)
{
    const gemm_kernel *kernel = kernels[spec->product];
    return (kernel_geometry){.block = kernel->block ? kernel->block : kernel->block_of(row, spec),
                             .blocks = 1,
                             .shared_dynamic = kernel->shared ? kernel->shared(row, spec) : 0};
}

void emit_gemm(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernels[spec->product]->emit(b, row, spec);
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

void gemm_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps)
{
    gemm_shape shape = gemm_shape_of(spec, problem);
    if (shape.n == 0)
        return;
    kernel_step *step = steps_add(steps, row, spec, problem);
    step->grid[0] = ceil_div(shape.n, kernels[spec->product]->outputs(row, spec));
    uint64_t tiles = ceil_div(problem->m, spec->tile_rows);
    step->grid[1] = tiles < UINT16_MAX ? tiles : UINT16_MAX; /* blocks go on to further rows */
    step->rows_per_block = (uint32_t)spec->tile_rows;
}

gemm_args gemm_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const bool by_columns = spec->reduction == KERNEL_K_COLUMNS;
    gemm_args a = {.all = kernel_declare(b, row, spec)};
    const ptx_val *number = a.all.number;
    a.m = number[NUMBER_M];
    a.k = number[by_columns ? NUMBER_COLUMNS : NUMBER_ROWS];
    a.outputs = number[by_columns ? NUMBER_ROWS : NUMBER_COLUMNS];
    a.n = spec->gated ? ptx_shr(b, a.outputs, 1) : a.outputs;
    a.x_stride = number[NUMBER_X_STRIDE];
    a.y_stride = number[NUMBER_Y_STRIDE];
    return a;
}
