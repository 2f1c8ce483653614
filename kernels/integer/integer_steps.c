/* Integer products as operations: their fixed settings, operands and launches. */
#include "kernels/integer/integer.h"

#include "kernels/emit.h"
#include "kernels/gemm/routes.h"
#include "kernels/quant/quant.h"

/* ---- Fixed settings ---- */

static void fix_codes(kernel_spec *spec, qdnnDataType_t x, qdnnDataType_t w, qdnnDataType_t result)
{
    spec->integer.x_codes = x;
    spec->integer.w_codes = w;
    spec->integer.result = result;
}

void fix_int4_dot(kernel_spec *spec)
{
    fix_codes(spec, QDNN_DATA_I4, QDNN_DATA_I4, QDNN_DATA_I32);
}

void fix_int4_dot_scaled(kernel_spec *spec)
{
    fix_codes(spec, QDNN_DATA_I4, QDNN_DATA_I4, QDNN_DATA_F32);
}

void fix_int4_matmul(kernel_spec *spec)
{
    fix_codes(spec, QDNN_DATA_I4, QDNN_DATA_I4, QDNN_DATA_F32);
    spec->integer.w_scale_first = 1;
}

void fix_int8_matmul(kernel_spec *spec)
{
    fix_codes(spec, spec->integer.x_codes, QDNN_DATA_I8, spec->integer.result);
    if (spec->integer.result == QDNN_DATA_I32) {
        spec->integer.multipliers = 0;
        spec->quantize.rounding = kernel_spec_default().quantize.rounding;
    }
}

/* Rows of y share one of x only where each has an expert. */
static void fix_experts(kernel_spec *spec)
{
    if (!spec->product.grouped)
        spec->product.x_share = 1;
}

/* The larger tile has no registers left for experts or pairs beside the sums that two zero points need. */
void fix_w8a8(kernel_spec *spec)
{
    const bool has_more = spec->epilogue.gated || spec->product.grouped;
    fix_experts(spec);
    if (spec->integer.tile == 128 && has_more && spec->integer.x_zero && spec->integer.w_zero)
        spec->integer.tile = 64;
    fix_codes(spec, spec->integer.x_codes, QDNN_DATA_I8, QDNN_DATA_F32);
}

/* With the larger tile there would be no room for the sums of groups. */
void fix_w4a8(kernel_spec *spec)
{
    fix_experts(spec);
    fix_codes(spec, QDNN_DATA_I8, QDNN_DATA_I4, QDNN_DATA_F32);
    if (spec->integer.tile > 4)
        spec->integer.tile = int_fits_tiles(spec) ? 64 : 4;
}

void fix_w4a4(kernel_spec *spec)
{
    fix_codes(spec, QDNN_DATA_I4, QDNN_DATA_I4, QDNN_DATA_F32);
}

/* The small tiles stand for the kernel that handles any shape, whose text does not depend on the tile. */
void fix_conv2d(kernel_spec *spec)
{
    fix_int8_matmul(spec);
    if (!spec->conv.nhwc || spec->conv.window_c % INT_CHUNK || spec->integer.tile < 64)
        spec->integer.tile = 1;
}

/* ---- Operands ---- */

bool int_is_grouped(const kernel_spec *spec)
{
    return spec->integer.w_codes == QDNN_DATA_I4 && spec->integer.x_codes == QDNN_DATA_I8;
}

uint32_t int_strip(const kernel_spec *spec)
{
    const uint64_t g = spec->stored.group_size, whole = 512 / g * g;
    return (uint32_t)(whole ? whole : g);
}

/* Rows of codes; those of 4-bit codes are padded to words. */
static void describe_codes(kernel_description *d, qdnnOperand_t operand, qdnnDataType_t type,
                           kernel_rule rows)
{
    const kernel_rule k = rule_number(NUMBER_COLUMNS);
    describe_read(d, operand, element_type_of(type),
                  rule_times(rows, type == QDNN_DATA_I4 ? rule_ceil(k, 8) : k));
}

static void describe_scales(kernel_description *d, const kernel_spec *spec, kernel_rule outputs)
{
    if (int_is_grouped(spec))
        describe_read(d, QDNN_OPERAND_SCALE, element_type_of_scale(spec->stored.scale),
                      rule_times(outputs, rule_parts(NUMBER_COLUMNS, spec->stored.group_size)));
    else
        describe_read(d, QDNN_OPERAND_SCALE, element_type_of(QDNN_DATA_F32), outputs);
}

/* The shape of a product: rows of x and y, outputs of the weights (of all experts), columns of y. */
typedef struct product_shape {
    kernel_rule x, m, outputs, n;
} product_shape;

static product_shape product_shape_of(const kernel_spec *spec)
{
    const kernel_rule m = rule_number(NUMBER_M), rows = rule_number(NUMBER_ROWS);
    return (product_shape){.x = rule_ceil(m, spec->product.x_share),
                           .m = m,
                           .outputs =
                               spec->product.grouped ? rule_times(rule_number(NUMBER_EXPERTS), rows) : rows,
                           .n = spec->epilogue.gated ? rule_over(rows, rule_constant(2)) : rows};
}

static void describe_epilogue(kernel_description *d, const kernel_spec *spec, const product_shape *s)
{
    const kernel_epilogue *e = &spec->epilogue;
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    if (e->alpha == QDNN_ALPHA_NUMBER)
        d->numbers |= A_NUMBER(ALPHA);
    else if (e->alpha != QDNN_ALPHA_NONE)
        describe_read(d, QDNN_OPERAND_ALPHA, f32,
                      e->alpha == QDNN_ALPHA_COLUMN ? s->outputs : rule_constant(1));
    if (spec->integer.bias_i32 || e->bias)
        describe_read(d, QDNN_OPERAND_BIAS,
                      element_type_of(e->bias ? (qdnnDataType_t)e->bias : QDNN_DATA_I32), s->outputs);
    if (e->residual)
        describe_read(d, QDNN_OPERAND_RESIDUAL, element_type_of(e->output), rule_times(s->m, s->n));
    if (spec->product.grouped)
        describe_read(d, QDNN_OPERAND_EXPERT_INDEX, element_type_of(QDNN_DATA_I32), s->m);
    if (e->row_weight)
        describe_read(d, QDNN_OPERAND_ROW_WEIGHT, f32, s->m);
}

/* What is done with the sums, and y. */
static void describe_results(kernel_description *d, const kernel_spec *spec, const product_shape *s)
{
    const kernel_integer *i = &spec->integer;
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    const bool is_scaled = i->result == QDNN_DATA_F32;
    describe_epilogue(d, spec, s);
    if (is_scaled)
        describe_read(d, QDNN_OPERAND_X_SCALE, f32, s->x);
    if (i->multipliers)
        describe_read(d, QDNN_OPERAND_MULTIPLIER, f32, s->outputs);
    describe_write(d, QDNN_OPERAND_Y, element_type_of(is_scaled ? spec->epilogue.output : i->result),
                   rule_times(s->m, s->n));
    if (spec->product.grouped) {
        d->numbers |= A_NUMBER(EXPERTS);
        describe_workspace(d, "routes", WORKSPACE_OWN, element_type_of(QDNN_DATA_I32), false);
    }
}

static void describe_product(kernel_description *d, const kernel_spec *spec, const product_shape *s)
{
    describe_codes(d, QDNN_OPERAND_X, spec->integer.x_codes, s->x);
    describe_codes(d, QDNN_OPERAND_CODES, spec->integer.w_codes, s->outputs);
    if (spec->integer.result == QDNN_DATA_F32)
        describe_scales(d, spec, s->outputs);
    describe_results(d, spec, s);
}

static const number_set shape_numbers = A_NUMBER(M) | A_NUMBER(ROWS) | A_NUMBER(COLUMNS),
                        code_numbers =
                            A_NUMBER(X_ZERO) | A_NUMBER(W_ZERO) | A_NUMBER(Y_ZERO) | A_NUMBER(MULTIPLIER);

void describe_int_dot(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_rule one = rule_constant(1);
    (void)row;
    d->numbers = A_NUMBER(COLUMNS);
    describe_product(d, spec, &(product_shape){one, one, one, one});
}

void describe_int_matmul(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const product_shape s = product_shape_of(spec);
    d->numbers = shape_numbers;
    if (spec->integer.result != QDNN_DATA_F32)
        d->numbers |= code_numbers;
    else if (kernel_has_key(row, KERNEL_KEY(X_ZERO)))
        d->numbers |= A_NUMBER(X_ZERO) | A_NUMBER(W_ZERO);
    describe_product(d, spec, &s);
}

/* If x is quantized by the operation, the caller provides no scales for it. */
void int_bound(const kernel_spec *spec, const kernel_problem *p, kernel_operand operands[QDNN_OPERAND_COUNT])
{
    if (!p->quantizes)
        return;
    const unsigned element = element_bytes(p->quantizes);
    operands[QDNN_OPERAND_X] = (kernel_operand){
        .reads = true, .align = element, .bytes = p->m / spec->product.x_share * p->columns * element};
    operands[QDNN_OPERAND_X_SCALE] = (kernel_operand){0};
}

/* ---- Kernels ---- */

bool int_matmul_is_empty(const kernel_problem *problem)
{
    return problem->m == 0 || problem->rows == 0;
}

kernel_geometry int_geometry(const kernel_row *row, const kernel_spec *spec)
{
    const uint64_t tile = (uint64_t)spec->integer.tile, pair = spec->epilogue.gated ? 2 : 1,
                   outputs = tile >= 64 ? tile : pair * int_lines_columns(spec);
    (void)row;
    return (kernel_geometry){.block = INT_TILE_BLOCK,
                             .grid = {rule_parts(NUMBER_ROWS, outputs), spec->product.grouped
                                                                            ? routes_tiles_rule(tile)
                                                                            : rule_parts(NUMBER_M, tile)}};
}

void emit_int_matmul(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    if (spec->integer.tile >= 64)
        emit_int_tile(b, row, spec);
    else if (int_is_grouped(spec))
        emit_int_groups(b, row, spec);
    else
        emit_int_lines(b, row, spec);
}

/* ---- Launches ---- */

/* Transposes a stack of matrices of bytes, from CODES to REPACKED; the caller sets where these are. */
static kernel_step *add_transpose(uint64_t stack, uint64_t rows, uint64_t columns, kernel_steps *steps)
{
    const kernel_row *row = kernel_find("transpose_bytes");
    const kernel_spec spec = kernel_spec_default();
    steps_add_operation(steps, row, &spec, &(kernel_problem){.m = stack, .rows = rows, .columns = columns});
    return &steps->at[steps->count - 1];
}

/* dp4a for few rows, the smaller tile for not many rows or columns. Sums of nibbles, which are 256 times too
 * large, must not overflow, with those that pad a row. */
static int tile_for(const kernel_spec *spec, const kernel_problem *p)
{
    const bool fits = spec->integer.x_codes != QDNN_DATA_I4 || p->columns <= (1 << 17) - 8;
    const uint64_t m = kernel_rows_together(p->m, spec->product.grouped ? p->experts : 0);
    if (m <= 4 || !fits || !int_fits_tiles(spec))
        return m == 1 ? 1 : 4;
    return m <= 64 || p->rows <= 64 || int_is_grouped(spec) ? 64 : 128;
}

/* Sorts the rows by expert, at the beginning of the workspace, after whatever else uses that. */
static void add_routes(const kernel_spec *spec, const kernel_problem *problem, kernel_steps *steps)
{
    kernel_spec routes = kernel_spec_default();
    routes.product.tile_rows = (uint64_t)spec->integer.tile;
    routes_steps(kernel_find("route_rows"), &routes, problem, steps);
}

void int_matmul_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                      kernel_steps *steps)
{
    kernel_spec best = *spec;
    uint64_t w = 0;
    row_codes x = {0};
    if (kernel_has_key(row, KERNEL_KEY(TILE)))
        best.integer.tile = tile_for(spec, problem);
    best = kernel_spec_normal(row, &best);
    if (spec->product.grouped)
        steps->workspace = routes_bytes(problem, (uint64_t)best.integer.tile);
    if (problem->quantizes)
        x = quantize_rows_steps(kernel_find("quantize_dynamic_int8"), problem->quantizes,
                                problem->m / spec->product.x_share, problem->columns, steps);
    const bool transposes = problem->w_is_kn && problem->columns > 0;
    if (transposes) {
        const uint64_t experts = spec->product.grouped ? problem->experts : 1;
        w = steps_take(steps, experts * problem->columns * problem->rows);
        step_from_workspace(add_transpose(experts, problem->columns, problem->rows, steps),
                            QDNN_OPERAND_REPACKED, w);
    }
    if (spec->product.grouped)
        add_routes(&best, problem, steps);
    kernel_step *step = steps_add(steps, row, &best, problem);
    if (problem->quantizes) {
        step_from_workspace(step, QDNN_OPERAND_X, x.codes);
        step_from_workspace(step, QDNN_OPERAND_X_SCALE, x.scales);
    }
    if (transposes)
        step_from_workspace(step, QDNN_OPERAND_CODES, w);
}

/* ---- The largest elements ---- */

/* Blocks have one row of x, or a few. */
void fix_int4_top(kernel_spec *spec)
{
    fix_int4_matmul(spec);
    spec->integer.tile = spec->integer.tile == 1 ? 1 : INT_LINES_MAX;
}

void fix_top_join(kernel_spec *spec)
{
    fix_int4_matmul(spec);
    if (spec->product.split < 2)
        spec->product.split = 2;
}

/* Blocks that share the columns have no results of their own, only keys. */
static void describe_largest(kernel_description *d, const kernel_spec *spec, kernel_rule top)
{
    const kernel_rule count = rule_times(rule_number(NUMBER_M), top);
    describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->epilogue.output), count);
    describe_write(d, QDNN_OPERAND_TOP_INDEX, element_type_of(spec->integer.top_index), count);
}

void describe_int_top(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const bool is_one = kernel_operation_of(row) == KERNEL_INT4_TOP1;
    const kernel_rule m = rule_number(NUMBER_M), n = rule_number(NUMBER_ROWS);
    d->numbers = shape_numbers | (is_one ? 0 : A_NUMBER(TOP));
    describe_codes(d, QDNN_OPERAND_X, spec->integer.x_codes, m);
    describe_codes(d, QDNN_OPERAND_CODES, spec->integer.w_codes, n);
    describe_scales(d, spec, n);
    describe_read(d, QDNN_OPERAND_X_SCALE, element_type_of(QDNN_DATA_F32), m);
    if (spec->product.split == 1)
        describe_largest(d, spec, is_one ? rule_constant(1) : rule_number(NUMBER_TOP));
    else
        describe_workspace(d, "partials", WORKSPACE_PARTIALS, element_type_of(QDNN_DATA_U64), true);
}

void describe_int_top_join(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    d->numbers = A_NUMBER(M) | A_NUMBER(TOP);
    describe_largest(d, spec, rule_number(NUMBER_TOP));
    describe_workspace(d, "partials", WORKSPACE_PARTIALS, element_type_of(QDNN_DATA_U64), false);
}

/* Few rows of x do not fill a GPU with blocks: then several share the columns, as long as each has many. */
static uint64_t top_parts(uint64_t blocks, uint64_t columns)
{
    enum { MANY_BLOCKS = 128, MANY_COLUMNS = 1024, PARTS_MAX = 32 };
    uint64_t parts = 1;
    while (parts < PARTS_MAX && blocks * parts < MANY_BLOCKS && columns / parts >= 2 * MANY_COLUMNS)
        parts *= 2;
    return parts;
}

void int_top_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps)
{
    kernel_spec best = *spec;
    kernel_problem p = *problem;
    if (kernel_operation_of(row) == KERNEL_INT4_TOP1)
        p.top = 1;
    best.integer.tile = p.m == 1 ? 1 : INT_LINES_MAX;
    best.product.split = top_parts(ceil_div(p.m, (uint64_t)best.integer.tile), p.rows);
    kernel_step *step = steps_add(steps, row, &best, &p);
    if (best.product.split == 1)
        return;
    const uint64_t keys = steps_take(steps, p.m * best.product.split * p.top * sizeof(uint64_t));
    step_with_partials(step, keys);
    step_with_partials(steps_add(steps, kernel_find("int4_top_join"), &best, &p), keys);
}

/* ---- Convolutions ---- */

bool int_conv_is_empty(const kernel_problem *p)
{
    return p->m == 0 || p->rows == 0;
}

/* An output for each place of the window: as many as m says for each image. */
void describe_int_conv(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const product_shape s = product_shape_of(spec);
    const kernel_rule places = rule_times(rule_number(NUMBER_CONV_OUT_H), rule_number(NUMBER_CONV_OUT_W)),
                      image = rule_times(
                          rule_times(rule_number(NUMBER_CONV_CHANNELS), rule_number(NUMBER_CONV_H)),
                          rule_number(NUMBER_CONV_W));
    (void)row;
    d->numbers = shape_numbers | code_numbers | A_NUMBER(CONV_CHANNELS) | A_NUMBER(CONV_OUTPUTS) |
                 A_NUMBER(CONV_H) | A_NUMBER(CONV_W) | A_NUMBER(CONV_OUT_H) | A_NUMBER(CONV_OUT_W) |
                 A_NUMBER(CONV_STRIDE) | A_NUMBER(CONV_PADDING) | A_NUMBER(CONV_DILATION);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->integer.x_codes),
                  rule_times(rule_over(s.m, places), image));
    describe_codes(d, QDNN_OPERAND_CODES, spec->integer.w_codes, s.outputs);
    describe_results(d, spec, &s);
}

void emit_int_conv2d(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    if (spec->integer.tile >= 64)
        emit_int_tile(b, row, spec);
    else
        emit_int_window(b, row, spec);
}

/* Small tiles: one output per thread. */
kernel_geometry int_conv_geometry(const kernel_row *row, const kernel_spec *spec)
{
    const uint64_t tile = (uint64_t)spec->integer.tile;
    const kernel_rule rows = rule_number(NUMBER_ROWS), per_group = rule_number(NUMBER_CONV_OUTPUTS);
    (void)row;
    if (spec->integer.tile < 64)
        return (kernel_geometry){
            .block = INT_WINDOW_BLOCK,
            .grid = {rule_ceil(rule_times(rule_number(NUMBER_M), rows), INT_WINDOW_BLOCK)}};
    return (kernel_geometry){
        .block = INT_TILE_BLOCK,
        .grid = {rule_parts(NUMBER_M, tile), rule_ceil(per_group, tile), rule_over(rows, per_group)}};
}

static kernel_step *add_conv(const kernel_row *row, const kernel_spec *spec, int tile,
                             const kernel_problem *p, kernel_steps *steps)
{
    kernel_spec tiled = *spec;
    tiled.conv.nhwc = spec->conv.nhwc || tile >= 64;
    tiled.integer.tile = tile;
    return steps_add(steps, row, &tiled, p);
}

static int conv_tile(const kernel_problem *p)
{
    return p->m <= 64 || p->conv.outputs / p->conv.groups <= 64 ? 64 : 128;
}

/* If the channels of a pixel are not adjacent, x and w are transposed into the workspace, and y is transposed
 * back. */
static void add_tiles_apart(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                            kernel_steps *steps)
{
    const kernel_conv *c = &p->conv;
    const uint64_t x = steps_take(steps, c->images * c->channels * c->in[0] * c->in[1]);
    const uint64_t w = steps_take(steps, p->rows * p->columns), y = steps_take(steps, p->m * p->rows);
    kernel_step *step = add_transpose(c->images, c->channels, c->in[0] * c->in[1], steps);
    step_with_operand(step, QDNN_OPERAND_CODES, QDNN_OPERAND_X);
    step_from_workspace(step, QDNN_OPERAND_REPACKED, x);
    step = add_transpose(c->outputs, spec->conv.window_c, spec->conv.window_h * spec->conv.window_w, steps);
    step_from_workspace(step, QDNN_OPERAND_REPACKED, w);
    step = add_conv(row, spec, conv_tile(p), p, steps);
    step_from_workspace(step, QDNN_OPERAND_X, x);
    step_from_workspace(step, QDNN_OPERAND_CODES, w);
    step_from_workspace(step, QDNN_OPERAND_Y, y);
    step = add_transpose(c->images, p->m / c->images, c->outputs, steps);
    step_from_workspace(step, QDNN_OPERAND_CODES, y);
    step_with_operand(step, QDNN_OPERAND_REPACKED, QDNN_OPERAND_Y);
}

/* If channels fill chunks, tensor cores are used. */
void int_conv_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                    kernel_steps *steps)
{
    const kernel_conv *c = &p->conv;
    const bool fills =
        spec->conv.window_c % INT_CHUNK == 0 && c->outputs / c->groups >= 8 && c->groups <= UINT16_MAX;
    if (fills && spec->conv.nhwc)
        add_conv(row, spec, conv_tile(p), p, steps);
    else if (fills && spec->integer.result != QDNN_DATA_I32)
        add_tiles_apart(row, spec, p, steps);
    else
        add_conv(row, spec, 1, p, steps);
}
