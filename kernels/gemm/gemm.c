/* Products: dispatches to the kernels; their launches and parameters. */
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/routes.h"
#include "kernels/quant/quant.h"

#include "kernels/emit.h"
#include "kernels/formats/quantized.h"

#include <stdio.h>

static const gemm_kernel *const kernels[] = {
    [KERNEL_PRODUCT_STAGED] = &gemm_staged,     [KERNEL_PRODUCT_GEMV] = &gemm_gemv,
    [KERNEL_PRODUCT_RAGGED] = &gemm_ragged,     [KERNEL_PRODUCT_BLOCKS] = &gemm_blocks,
    [KERNEL_PRODUCT_TERNARY] = &gemm_ternary,   [KERNEL_PRODUCT_COLUMNS] = &gemm_columns,
    [KERNEL_PRODUCT_LANEWISE] = &gemm_lanewise, [KERNEL_PRODUCT_JOIN] = &gemm_join,
    [KERNEL_PRODUCT_TILE] = &gemm_tile,         [KERNEL_PRODUCT_STREAM] = &gemm_stream,
    [KERNEL_PRODUCT_STORED] = &gemm_stored,
};

/* Rows of any length are read in one way where codes lie in blocks, in another where they do not. */
static const gemm_kernel *kernel_of(const kernel_row *row, const kernel_spec *spec)
{
    if (gemm_is_ragged(spec) && format_is_blocks(row->format))
        return &gemm_ragged_blocks;
    return kernels[spec->product.kernel];
}

bool gemm_is_ragged(const kernel_spec *spec)
{
    return spec->product.kernel == KERNEL_PRODUCT_RAGGED;
}

kernel_shape kernel_shape_of(const kernel_spec *spec, const kernel_problem *problem)
{
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    kernel_shape s = {.k = by_columns ? problem->columns : problem->rows,
                      .outputs = by_columns ? problem->rows : problem->columns};
    s.n = spec->epilogue.gated ? s.outputs / 2 : s.outputs;
    return s;
}

void gemm_fix(kernel_spec *spec)
{
    if (spec->product.grouped && kernel_product_splits(spec) == SPLITS_GRID)
        spec->product.split = 1;
    if (!spec->product.grouped)
        spec->product.x_share = 1;
    if (spec->product.x_fp8)
        spec->data = QDNN_DATA_F16;
}

kernel_splits kernel_product_splits(const kernel_spec *spec)
{
    switch (spec->product.kernel) {
    case KERNEL_PRODUCT_LANEWISE:
    case KERNEL_PRODUCT_JOIN:
        return SPLITS_GRID;
    case KERNEL_PRODUCT_TILE:
    case KERNEL_PRODUCT_STREAM:
    case KERNEL_PRODUCT_STORED:
        return SPLITS_BLOCK;
    case KERNEL_PRODUCT_GEMV:
    case KERNEL_PRODUCT_RAGGED:
    case KERNEL_PRODUCT_BLOCKS:
    case KERNEL_PRODUCT_TERNARY:
        return SPLITS_OUTPUTS;
    default:
        return SPLITS_NOTHING;
    }
}

static bool is_of_tensor_cores(const kernel_spec *spec)
{
    return spec->product.kernel == KERNEL_PRODUCT_TILE || spec->product.kernel == KERNEL_PRODUCT_STREAM ||
           spec->product.kernel == KERNEL_PRODUCT_STORED;
}

static bool rows_serve(const gemm_kernel *kernel, const kernel_spec *spec, char *error, size_t error_size)
{
    const uint64_t rows = spec->product.tile_rows;
    const bool is_power = (rows & (rows - 1)) == 0;
    char name[32];
    if (!kernel->rows ||
        (rows >= kernel->rows && rows <= kernel->rows_most && (is_power || kernel->any_rows)))
        return true;
    kernel_spec_value(spec, "product", name, sizeof name);
    snprintf(error, error_size, "tile_rows is %llu; product %s takes %s%u to %u", (unsigned long long)rows,
             name, kernel->any_rows ? "" : "powers of two from ", kernel->rows, kernel->rows_most);
    return false;
}

/* A product that divides its outputs can do so while blocks get smaller. */
static bool split_serves(const gemm_kernel *kernel, const kernel_row *row, const kernel_spec *spec,
                         char *error, size_t error_size)
{
    kernel_spec coarser = *spec;
    char name[32];
    if (kernel_product_splits(spec) != SPLITS_OUTPUTS || spec->product.split == 1)
        return true;
    coarser.product.split /= 2;
    if (kernel->outputs(row, spec) < kernel->outputs(row, &coarser))
        return true;
    while (coarser.product.split > 1 && kernel->outputs(row, spec) == kernel->outputs(row, &coarser))
        coarser.product.split /= 2;
    kernel_spec_value(spec, "product", name, sizeof name);
    snprintf(error, error_size, "split is %llu; product %s takes up to %llu here",
             (unsigned long long)spec->product.split, name,
             (unsigned long long)(kernel->outputs(row, spec) < kernel->outputs(row, &coarser)
                                      ? 2 * coarser.product.split
                                      : 1));
    return false;
}

bool gemm_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    if (spec->data == QDNN_DATA_F64) {
        snprintf(error, error_size, "data is f64; products take x in f32, f16 or bf16");
        return false;
    }
    const gemm_kernel *kernel = kernel_of(row, spec);
    if (spec->product.grouped && !kernel->takes_experts) {
        snprintf(error, error_size, "this product does not take stacks of experts; product staged does");
        return false;
    }
    if (spec->product.x_fp8 && !is_of_tensor_cores(spec)) {
        snprintf(error, error_size, "x is FP8; products tile and stream take it");
        return false;
    }
    if (spec->product.grouped && spec->epilogue.addend) {
        snprintf(error, error_size, "grouped and addend are both yes; at most one of them may be");
        return false;
    }
    if (spec->product.split > 1 && kernel_product_splits(spec) == SPLITS_NOTHING) {
        snprintf(error, error_size, "split is %llu; this product takes 1 only",
                 (unsigned long long)spec->product.split);
        return false;
    }
    return rows_serve(kernel, spec, error, error_size) &&
           (!kernel->serves || kernel->serves(row, spec, error, error_size)) &&
           split_serves(kernel, row, spec, error, error_size);
}

bool kernel_product_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    char reason[256];
    const gemm_kernel *kernel = kernel_of(row, spec);
    kernel_spec normal = *spec;
    return kernel_spec_settle_kernel(row, &normal, reason, sizeof reason) &&
           (!kernel->fits || kernel->fits(row, &normal, problem));
}

uint64_t gemm_warps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const gemm_kernel *kernel = kernel_of(row, spec);
    const uint64_t threads = kernel->block ? kernel->block : kernel->block_of(row, spec),
                   across = ceil_div(kernel_shape_of(spec, problem).n, kernel->outputs(row, spec)),
                   experts = problem->experts < problem->m ? problem->experts : problem->m;
    return across * (problem->experts ? experts : ceil_div(problem->m, spec->product.tile_rows)) * threads /
           WARP;
}

/* With K = 0 there is still output: the sums are +0. */
bool gemm_is_empty(const kernel_problem *problem)
{
    return problem->m == 0;
}

/* Blocks along y, over the rows of x. Where there are more of them than a grid takes, blocks loop over the rest; the
 * stream does so with experts only, and plans refuse the rows that would be too many for it. */
static kernel_rule row_blocks(const kernel_spec *spec)
{
    const kernel_rule tiles = spec->product.grouped ? routes_tiles_rule(spec->product.tile_rows)
                                                    : rule_parts(NUMBER_M, spec->product.tile_rows);
    const bool is_stream =
        spec->product.kernel == KERNEL_PRODUCT_STREAM || spec->product.kernel == KERNEL_PRODUCT_STORED;
    return is_stream && !spec->product.grouped ? tiles : rule_capped(tiles);
}

kernel_geometry gemm_geometry(const kernel_row *row, const kernel_spec *spec)
{
    const gemm_kernel *kernel = kernel_of(row, spec);
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    const uint64_t outputs = (uint64_t)kernel->outputs(row, spec) * (spec->epilogue.gated ? 2 : 1);
    kernel_geometry g = {
        .block = kernel->block ? kernel->block : kernel->block_of(row, spec),
        .grid = {rule_parts(by_columns ? NUMBER_ROWS : NUMBER_COLUMNS, outputs), row_blocks(spec)},
        .shared_dynamic = kernel->shared ? kernel->shared(row, spec) : 0};
    if (spec->product.kernel == KERNEL_PRODUCT_LANEWISE)
        g.grid[2] = rule_constant(spec->product.split);
    return g;
}

void emit_gemm(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_of(row, spec)->emit(b, row, spec);
}

enum { ALIGN = 16 }; /* of the parts of the workspace */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Adds the product and, if its lanes are split among thread blocks, the kernel that joins their sums,
 * which lie at `partials` in the workspace. */
static void add_sums(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     uint64_t partials, kernel_steps *steps)
{
    kernel_step *step = steps_add(steps, row, spec, problem);
    if (spec->product.split == 1 || kernel_product_splits(spec) != SPLITS_GRID)
        return;
    kernel_spec join = *spec;
    join.product.kernel = KERNEL_PRODUCT_JOIN;
    join.product.tile_rows = JOIN_ROWS;
    step_with_partials(step, partials);
    step_with_partials(steps_add(steps, row, &join, problem), partials);
    const uint64_t end =
        partials + spec->product.split * problem->m * kernel_shape_of(spec, problem).outputs * sizeof(float);
    steps->workspace = steps->workspace > end ? steps->workspace : end;
}

/* ---- LoRA: two products with plain weights come first; the product itself adds their result from the
 * workspace ---- */

/* The workspace: the addend, [M, outputs]; then x A, [M, rank]; then the partial sums of any of the three
 * products. */
typedef struct lora_space {
    uint64_t between, partials;
} lora_space;

static lora_space lora_space_of(const kernel_shape *shape, const kernel_problem *problem)
{
    const uint64_t between = aligned(problem->m * shape->outputs * sizeof(float));
    return (lora_space){between, between + aligned(problem->m * problem->lora_rank * sizeof(float))};
}

/* Products with plain weights of a type. */
static const kernel_row *plain_row(qdnnDataType_t type)
{
    return kernel_find_operation(
        KERNEL_MATMUL, kernel_find_format(type, 0, QDNN_ZERO_NONE, QDNN_CODE_DEFAULT, QDNN_BLOCK_NONE));
}

/* Adds x W in f32, W [K, N] in the type of A and B, by the best kernel for it. Returns the number of its
 * first step. */
static int add_plain(const kernel_problem *problem, kernel_spec spec, qdnnOperand_t weights, uint64_t k,
                     uint64_t n, uint64_t partials, kernel_steps *steps)
{
    const kernel_row *row = plain_row(problem->lora_type);
    const int first = steps->count;
    kernel_problem plain = *problem;
    plain.rows = k;
    plain.columns = plain.y_stride = n;
    plain.alpha = problem->lora_scale;
    kernel_product_choose(row, &plain, &spec);
    add_sums(row, &spec, &plain, partials, steps);
    for (int i = first; i < steps->count; i++)
        step_with_operand(&steps->at[i], QDNN_OPERAND_CODES, weights);
    return first;
}

static void add_lora(const kernel_spec *spec, const kernel_problem *problem, kernel_steps *steps)
{
    const kernel_shape shape = kernel_shape_of(spec, problem);
    const lora_space space = lora_space_of(&shape, problem);
    kernel_spec plain = kernel_spec_default();
    steps->workspace = space.partials;
    plain.data = spec->data;
    plain.product.reduction = KERNEL_K_ROWS;
    plain.epilogue.alpha = QDNN_ALPHA_NUMBER;
    int i =
        add_plain(problem, plain, QDNN_OPERAND_LORA_A, shape.k, problem->lora_rank, space.partials, steps);
    for (; i < steps->count; i++)
        step_from_workspace(&steps->at[i], QDNN_OPERAND_Y, space.between);
    plain.data = QDNN_DATA_F32;
    plain.epilogue.alpha = QDNN_ALPHA_NONE;
    kernel_problem second = *problem;
    second.x_stride = problem->lora_rank;
    i = add_plain(&second, plain, QDNN_OPERAND_LORA_B, problem->lora_rank, shape.outputs, space.partials,
                  steps);
    for (; i < steps->count; i++) {
        step_from_workspace(&steps->at[i], QDNN_OPERAND_X, space.between);
        step_from_workspace(&steps->at[i], QDNN_OPERAND_Y, 0);
    }
}

/* Where x is quantized first, the operand is the caller's x in its own type, and there are no scales from
 * the caller. */
static void bound_quantized(const kernel_spec *spec, const kernel_problem *problem,
                            kernel_operand operands[QDNN_OPERAND_COUNT])
{
    const unsigned align = element_bytes(problem->quantizes);
    operands[QDNN_OPERAND_X] = (kernel_operand){.reads = true,
                                                .align = align,
                                                .bytes = problem->m / spec->product.x_share *
                                                         kernel_shape_of(spec, problem).k * align};
    operands[QDNN_OPERAND_X_SCALE] = (kernel_operand){0};
}

void gemm_bound(const kernel_spec *spec, const kernel_problem *problem,
                kernel_operand operands[QDNN_OPERAND_COUNT])
{
    if (problem->quantizes)
        bound_quantized(spec, problem, operands);
    if (!problem->lora_rank)
        return;
    const kernel_shape shape = kernel_shape_of(spec, problem);
    const unsigned align = element_bytes(problem->lora_type);
    operands[QDNN_OPERAND_LORA_A] =
        (kernel_operand){.reads = true, .align = align, .bytes = shape.k * problem->lora_rank * align};
    operands[QDNN_OPERAND_LORA_B] =
        (kernel_operand){.reads = true, .align = align, .bytes = problem->lora_rank * shape.outputs * align};
}

/* ---- All launches ---- */

/* Quantizes the rows of x to FP8, in the workspace after the routes. */
static row_codes add_quantize(const kernel_spec *spec, const kernel_problem *problem, kernel_steps *steps)
{
    const kernel_row *row = kernel_find(spec->product.x_fp8 == QDNN_DATA_F8E4M3 ? "quantize_dynamic_e4m3"
                                                                                : "quantize_dynamic_e5m2");
    if (spec->product.grouped)
        steps->workspace = routes_bytes(problem, spec->product.tile_rows);
    return quantize_rows_steps(row, problem->quantizes, problem->m / spec->product.x_share,
                               kernel_shape_of(spec, problem).k, steps);
}

/* Makes the steps from number `first` on take x and its scales from where they were quantized to. */
static void take_quantized(const row_codes *x, int first, kernel_steps *steps)
{
    for (int i = first; i < steps->count; i++) {
        step_from_workspace(&steps->at[i], QDNN_OPERAND_X, x->codes);
        step_from_workspace(&steps->at[i], QDNN_OPERAND_X_SCALE, x->scales);
    }
}

void gemm_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps)
{
    kernel_shape shape = kernel_shape_of(spec, problem);
    kernel_spec own = *spec;
    if (shape.n == 0)
        return;
    if (shape.k ==
        0) { /* no weight is read and sums are +0 in every mode: plain weights will do, without scales */
        row = plain_row(QDNN_DATA_F32);
        own.product.kernel = KERNEL_PRODUCT_STAGED;
        own.product.tile_rows = own.product.split = 1;
        own.product.x_fp8 = 0;
    }
    row_codes x = {0};
    if (problem->quantizes)
        x = add_quantize(&own, problem, steps);
    const int first = steps->count;
    if (kernel_of(row, &own)->steps) {
        kernel_of(row, &own)->steps(row, &own, problem, steps);
    } else {
        if (spec->product.grouped)
            routes_steps(kernel_find("route_rows"), &own, problem, steps);
        if (problem->lora_rank)
            add_lora(&own, problem, steps);
        add_sums(row, &own, problem, problem->lora_rank ? lora_space_of(&shape, problem).partials : 0, steps);
    }
    if (problem->quantizes)
        take_quantized(&x, first, steps);
}

gemm_args gemm_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    gemm_args a = {.all = kernel_declare(b, row, spec)};
    const ptx_val *number = a.all.number;
    a.m = number[NUMBER_M];
    a.k = number[by_columns ? NUMBER_COLUMNS : NUMBER_ROWS];
    a.outputs = number[by_columns ? NUMBER_ROWS : NUMBER_COLUMNS];
    a.n = spec->epilogue.gated ? ptx_shr(b, a.outputs, 1) : a.outputs;
    a.x_stride = number[NUMBER_X_STRIDE];
    a.y_stride = number[NUMBER_Y_STRIDE];
    return a;
}
