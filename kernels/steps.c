/* The parameters of kernels, declared and filled from one list; launches; sizes of operands. */
#include "kernels/operations.h"

#include <assert.h>
#include <string.h>

#include "kernels/formats/blocks.h"
#include "kernels/tensor/prepack.h"

/* ---- Parameters ---- */

/* Whether the kernel has this operand: plain tensors always, others depending on the format and the
 * settings. */
static bool has_operand(const kernel_row *row, const kernel_spec *spec, int operand)
{
    if (row->operation->operand)
        return row->operation->operand(row, spec, &(kernel_problem){0}, operand).align;
    if (row->operation->takes)
        return row->operation->takes(spec, operand);
    bool scales = spec->stored.groups != QDNN_GROUPS_DEFAULT && !format_is_blocks(row->format);
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_SCALE:
        return scales;
    case QDNN_OPERAND_ZERO:
        return scales && format_has_zero(row->format);
    case QDNN_OPERAND_GLOBAL_SCALE:
        return scales && spec->stored.global_scale;
    case QDNN_OPERAND_GROUP_INDEX:
        return scales && spec->stored.group_index;
    case QDNN_OPERAND_ROW_INDEX:
        return spec->row_index;
    case QDNN_OPERAND_NESTED_MAP:
    case QDNN_OPERAND_NESTED_SCALE:
    case QDNN_OPERAND_NESTED_OFFSET:
        return scales && spec->stored.nested;
    case QDNN_OPERAND_ALPHA:
        return spec->epilogue.alpha == QDNN_ALPHA_ONE || spec->epilogue.alpha == QDNN_ALPHA_COLUMN;
    case QDNN_OPERAND_BIAS:
        return spec->epilogue.bias;
    case QDNN_OPERAND_RESIDUAL:
        return spec->epilogue.residual;
    case QDNN_OPERAND_EXPERT_INDEX:
        return spec->product.grouped;
    case QDNN_OPERAND_ROW_WEIGHT:
        return spec->epilogue.row_weight;
    case QDNN_OPERAND_X_SCALE:
        return spec->product.x_scale;
    default:
        return true;
    }
}

/* Products that read prepacked codes, which are in the order of tensor cores. */
static bool is_prepacked(const kernel_row *row, const kernel_spec *spec)
{
    return kernel_is_product(row) &&
           (spec->product.kernel == KERNEL_PRODUCT_STREAM || spec->product.kernel == KERNEL_PRODUCT_STRIPS);
}

static unsigned operand_align(const kernel_row *row, const kernel_spec *spec, int operand)
{
    if (row->operation->operand)
        return row->operation->operand(row, spec, &(kernel_problem){0}, operand).align;
    const unsigned own =
        row->operation->size ? row->operation->size(spec, &(kernel_problem){0}, operand).align : 0;
    if (own)
        return own;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        return spec->product.x_fp8 ? 1 : element_bytes(spec->data);
    case QDNN_OPERAND_Y:
    case QDNN_OPERAND_RESIDUAL:
        return element_bytes(kernel_is_product(row) ? spec->epilogue.output : spec->data);
    case QDNN_OPERAND_BIAS:
        return element_bytes((qdnnDataType_t)spec->epilogue.bias);
    case QDNN_OPERAND_CODES:
        if (is_prepacked(row, spec))
            return LOAD_BYTES;
        if (format_is_plain(row->format))
            return row->format->facts.bits / 8;
        if (kernel_is_product(row) && format_is_blocks(row->format))
            return block_align(block_layout_of(row->format));
        return spec->stored.layout == QDNN_LAYOUT_BYTES ? 1 : 4;
    case QDNN_OPERAND_REPACKED:
        if (kernel_operation_of(row) == KERNEL_PREPACK)
            return LOAD_BYTES;
        return spec->to.layout == QDNN_LAYOUT_BYTES ? 1 : 4;
    case QDNN_OPERAND_SCALE:
        return spec->stored.nested ? 1 : scale_bytes(spec->stored.scale);
    case QDNN_OPERAND_ZERO:
        return spec->stored.zero_packed ? 4 : element_bytes(spec->stored.zero);
    case QDNN_OPERAND_ROW_INDEX:
        return spec->index_type == QDNN_DATA_I64 ? 8 : 4;
    default:
        return 4;
    }
}

static const char *const operand_names[QDNN_OPERAND_COUNT] = {
#define OPERAND(constant, name) [QDNN_OPERAND_##constant] = name,
#include "kernels/operands.def"
#undef OPERAND
};
_Static_assert(QDNN_OPERAND_COUNT <= 64, "one bit of an operand_set for each");
_Static_assert(NUMBERS <= 64, "one bit of a number_set for each");

const char *kernel_operand_name(qdnnOperand_t operand)
{
    return operand_names[operand];
}

static int add_operands(const kernel_row *row, const kernel_spec *spec, operand_set which, param_decl *list)
{
    int n = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (which >> i & 1 && has_operand(row, spec, i))
            list[n++] = (param_decl){operand_names[i], KERNEL_OPERAND, (uint8_t)i,
                                     (uint8_t)operand_align(row, spec, i)};
    return n;
}

/* Numbers of 4 bytes are f32, those of 8 bytes u64. */
static const param_decl number_params[NUMBERS] = {
    [NUMBER_N] = {"n", KERNEL_NUMBER, NUMBER_N, 8},
    [NUMBER_ROWS] = {"rows", KERNEL_NUMBER, NUMBER_ROWS, 8},
    [NUMBER_COLUMNS] = {"columns", KERNEL_NUMBER, NUMBER_COLUMNS, 8},
    [NUMBER_LARGEST] = {"largest", KERNEL_NUMBER, NUMBER_LARGEST, 4},
    [NUMBER_TABLE_ROWS] = {"table_rows", KERNEL_NUMBER, NUMBER_TABLE_ROWS, 8},
    [NUMBER_M] = {"m", KERNEL_NUMBER, NUMBER_M, 8},
    [NUMBER_X_STRIDE] = {"x_stride", KERNEL_NUMBER, NUMBER_X_STRIDE, 8},
    [NUMBER_Y_STRIDE] = {"y_stride", KERNEL_NUMBER, NUMBER_Y_STRIDE, 8},
    [NUMBER_EXPERTS] = {"experts", KERNEL_NUMBER, NUMBER_EXPERTS, 8},
    [NUMBER_CODES_STRIDE] = {"codes_stride", KERNEL_NUMBER, NUMBER_CODES_STRIDE, 8},
    [NUMBER_SCALE_STRIDE] = {"scale_stride", KERNEL_NUMBER, NUMBER_SCALE_STRIDE, 8},
    [NUMBER_ZERO_STRIDE] = {"zero_stride", KERNEL_NUMBER, NUMBER_ZERO_STRIDE, 8},
    [NUMBER_NESTED_STRIDE] = {"nested_stride", KERNEL_NUMBER, NUMBER_NESTED_STRIDE, 8},
    [NUMBER_ALPHA] = {"alpha_number", KERNEL_NUMBER, NUMBER_ALPHA, 4},
    [NUMBER_X_ZERO] = {"x_zero", KERNEL_NUMBER, NUMBER_X_ZERO, 8},
    [NUMBER_W_ZERO] = {"w_zero", KERNEL_NUMBER, NUMBER_W_ZERO, 8},
    [NUMBER_Y_ZERO] = {"y_zero", KERNEL_NUMBER, NUMBER_Y_ZERO, 8},
    [NUMBER_MULTIPLIER] = {"multiplier_number", KERNEL_NUMBER, NUMBER_MULTIPLIER, 4},
    [NUMBER_TOP] = {"top", KERNEL_NUMBER, NUMBER_TOP, 8},
    [NUMBER_CONV_CHANNELS] = {"conv_channels", KERNEL_NUMBER, NUMBER_CONV_CHANNELS, 8},
    [NUMBER_CONV_OUTPUTS] = {"conv_outputs", KERNEL_NUMBER, NUMBER_CONV_OUTPUTS, 8},
    [NUMBER_CONV_H] = {"conv_h", KERNEL_NUMBER, NUMBER_CONV_H, 8},
    [NUMBER_CONV_W] = {"conv_w", KERNEL_NUMBER, NUMBER_CONV_W, 8},
    [NUMBER_CONV_OUT_H] = {"conv_out_h", KERNEL_NUMBER, NUMBER_CONV_OUT_H, 8},
    [NUMBER_CONV_OUT_W] = {"conv_out_w", KERNEL_NUMBER, NUMBER_CONV_OUT_W, 8},
    [NUMBER_CONV_STRIDE] = {"conv_stride", KERNEL_NUMBER, NUMBER_CONV_STRIDE, 8},
    [NUMBER_CONV_PADDING] = {"conv_padding", KERNEL_NUMBER, NUMBER_CONV_PADDING, 8},
    [NUMBER_CONV_DILATION] = {"conv_dilation", KERNEL_NUMBER, NUMBER_CONV_DILATION, 8},
    [NUMBER_PAGE_SLOTS] = {"page_slots", KERNEL_NUMBER, NUMBER_PAGE_SLOTS, 8},
    [NUMBER_PAGE_STRIDE] = {"page_stride", KERNEL_NUMBER, NUMBER_PAGE_STRIDE, 8},
    [NUMBER_SLOT_STRIDE] = {"slot_stride", KERNEL_NUMBER, NUMBER_SLOT_STRIDE, 8},
    [NUMBER_HEAD_STRIDE] = {"head_stride", KERNEL_NUMBER, NUMBER_HEAD_STRIDE, 8},
    [NUMBER_PARTS] = {"parts", KERNEL_NUMBER, NUMBER_PARTS, 8},
    [NUMBER_B_STRIDE] = {"b_stride", KERNEL_NUMBER, NUMBER_B_STRIDE, 8},
    [NUMBER_EPS] = {"eps", KERNEL_NUMBER, NUMBER_EPS, 4},
    [NUMBER_LIMIT] = {"limit", KERNEL_NUMBER, NUMBER_LIMIT, 4},
    [NUMBER_FACTOR] = {"factor", KERNEL_NUMBER, NUMBER_FACTOR, 4},
    [NUMBER_VALUE_PAGE_STRIDE] = {"value_page_stride", KERNEL_NUMBER, NUMBER_VALUE_PAGE_STRIDE, 8},
    [NUMBER_VALUE_SLOT_STRIDE] = {"value_slot_stride", KERNEL_NUMBER, NUMBER_VALUE_SLOT_STRIDE, 8},
    [NUMBER_VALUE_HEAD_STRIDE] = {"value_head_stride", KERNEL_NUMBER, NUMBER_VALUE_HEAD_STRIDE, 8},
    [NUMBER_PAGES] = {"pages", KERNEL_NUMBER, NUMBER_PAGES, 8},
    [NUMBER_TABLE_PAGES] = {"table_pages", KERNEL_NUMBER, NUMBER_TABLE_PAGES, 8},
    [NUMBER_POSITIONS] = {"positions", KERNEL_NUMBER, NUMBER_POSITIONS, 8},
    [NUMBER_DIM_1] = {"dim_1", KERNEL_NUMBER, NUMBER_DIM_1, 8},
    [NUMBER_DIM_2] = {"dim_2", KERNEL_NUMBER, NUMBER_DIM_2, 8},
    [NUMBER_X_STRIDE_1] = {"x_stride_1", KERNEL_NUMBER, NUMBER_X_STRIDE_1, 8},
    [NUMBER_X_STRIDE_2] = {"x_stride_2", KERNEL_NUMBER, NUMBER_X_STRIDE_2, 8},
    [NUMBER_X_STRIDE_3] = {"x_stride_3", KERNEL_NUMBER, NUMBER_X_STRIDE_3, 8},
    [NUMBER_Y_STRIDE_1] = {"y_stride_1", KERNEL_NUMBER, NUMBER_Y_STRIDE_1, 8},
    [NUMBER_Y_STRIDE_2] = {"y_stride_2", KERNEL_NUMBER, NUMBER_Y_STRIDE_2, 8},
    [NUMBER_Y_STRIDE_3] = {"y_stride_3", KERNEL_NUMBER, NUMBER_Y_STRIDE_3, 8},
    [NUMBER_WINDOW] = {"window", KERNEL_NUMBER, NUMBER_WINDOW, 8},
    [NUMBER_MASK_KEYS] = {"mask_keys", KERNEL_NUMBER, NUMBER_MASK_KEYS, 8},
    [NUMBER_MASK_STRIDE] = {"mask_stride", KERNEL_NUMBER, NUMBER_MASK_STRIDE, 8},
    [NUMBER_MASK_HEAD_STRIDE] = {"mask_head_stride", KERNEL_NUMBER, NUMBER_MASK_HEAD_STRIDE, 8},
};

const char *kernel_number_name(kernel_number number)
{
    return number_params[number].name;
}

/* Scales do not depend on the layout of the codes. */
bool kernel_is_matrix(const kernel_row *row, const kernel_spec *spec)
{
    bool is_lined = spec->stored.groups == QDNN_GROUPS_ROWS || spec->stored.groups == QDNN_GROUPS_COLUMNS;
    if (format_is_blocks(row->format) || format_is_plain(row->format))
        return false;
    switch (kernel_operation_of(row)) {
    case KERNEL_SCALE:
        return is_lined;
    case KERNEL_REPACK:
    case KERNEL_PREPACK:
        return true;
    case KERNEL_QUANTIZE:
    case KERNEL_DEQUANTIZE:
        return spec->row_index || is_lined || spec->stored.layout != QDNN_LAYOUT_BYTES ||
               spec->stored.zero_packed || spec->stored.zero_minus_one;
    default:
        return false;
    }
}

/* The strides between the experts' arrays, for the operands that a product has. */
static const struct {
    kernel_number number;
    qdnnOperand_t operand;
} expert_strides[] = {{NUMBER_CODES_STRIDE, QDNN_OPERAND_CODES},
                      {NUMBER_SCALE_STRIDE, QDNN_OPERAND_SCALE},
                      {NUMBER_ZERO_STRIDE, QDNN_OPERAND_ZERO},
                      {NUMBER_NESTED_STRIDE, QDNN_OPERAND_NESTED_SCALE}};
enum { EXPERT_STRIDES = sizeof expert_strides / sizeof expert_strides[0] };

static number_set stack_numbers(const kernel_row *row, const kernel_spec *spec)
{
    number_set numbers = A_NUMBER(EXPERTS);
    for (int i = 0; i < EXPERT_STRIDES; i++)
        if (has_operand(row, spec, expert_strides[i].operand))
            numbers |= (number_set)1 << expert_strides[i].number;
    return numbers;
}

static number_set cache_numbers(const kernel_spec *spec)
{
    return spec->strided ? A_NUMBER(X_STRIDE) | A_NUMBER(PAGE_SLOTS) | A_NUMBER(PAGE_STRIDE) |
                               A_NUMBER(SLOT_STRIDE) | A_NUMBER(HEAD_STRIDE)
                         : 0;
}

/* A set of bits of kernel_number. */
static number_set numbers_of(const kernel_row *row, const kernel_spec *spec)
{
    if (row->operation->counts)
        return row->operation->counts(spec);
    number_set numbers = row->operation->numbers ? row->operation->numbers : A_NUMBER(N);
    if (row->operation->size)
        return numbers | (number_set)(spec->epilogue.alpha == QDNN_ALPHA_NUMBER) << NUMBER_ALPHA |
               (number_set)(spec->product.grouped != 0) << NUMBER_EXPERTS;
    if (kernel_is_product(row))
        return numbers | (spec->product.grouped ? stack_numbers(row, spec) : 0) |
               (number_set)(spec->epilogue.alpha == QDNN_ALPHA_NUMBER) << NUMBER_ALPHA;
    if (kernel_is_matrix(row, spec) || spec->row_index)
        return A_NUMBER(ROWS) | A_NUMBER(COLUMNS) | (number_set)spec->row_index << NUMBER_TABLE_ROWS |
               cache_numbers(spec);
    if (kernel_operation_of(row) == KERNEL_GLOBAL)
        numbers |= A_NUMBER(LARGEST);
    return numbers;
}

/* First the operands that are read, then those that are written, then the workspace, then the numbers. */
int kernel_params(const kernel_row *row, const kernel_spec *spec, param_decl list[KERNEL_PARAMS_MAX])
{
    int n = add_operands(row, spec, row->operation->reads, list);
    n += add_operands(row, spec, row->operation->writes, list + n);
    if (kernel_operation_of(row) == KERNEL_RANGE)
        list[n++] = (param_decl){"range", KERNEL_WORKSPACE, 0, 4};
    if (spec->epilogue.addend)
        list[n++] = (param_decl){"addend", KERNEL_WORKSPACE, 0, 4};
    if (spec->product.grouped || kernel_operation_of(row) == KERNEL_ROUTE_ROWS)
        list[n++] = (param_decl){"routes", KERNEL_WORKSPACE, 0, 4};
    if (spec->product.split > 1 && (!kernel_is_product(row) || kernel_product_splits(spec) == SPLITS_GRID))
        /* sums, or keys of the largest elements */
        list[n++] =
            (param_decl){"partials", KERNEL_WORKSPACE, WORKSPACE_PARTIALS, kernel_is_product(row) ? 4 : 8};
    if (spec->product.kernel == KERNEL_PRODUCT_STREAM || spec->product.kernel == KERNEL_PRODUCT_STRIPS)
        list[n++] = (param_decl){"sums", KERNEL_WORKSPACE, WORKSPACE_PARTIALS, 4};
    if (spec->select.phase != KERNEL_PHASE_WHOLE)
        list[n++] = (param_decl){"partials", KERNEL_WORKSPACE, WORKSPACE_PARTIALS, 8};
    if (kernel_operation_of(row) == KERNEL_SAMPLE && !spec->select.greedy &&
        spec->select.phase >= KERNEL_PHASE_SUMS)
        list[n++] = (param_decl){"sums", KERNEL_WORKSPACE, WORKSPACE_OWN, 4};
    number_set numbers = numbers_of(row, spec);
    for (int i = 0; i < NUMBERS; i++)
        if (numbers >> i & 1)
            list[n++] = number_params[i];
    return n;
}

static ptx_type number_type(const param_decl *p)
{
    return p->size == 8 ? PTX_U64 : PTX_F32;
}

kernel_args kernel_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = {0};
    param_decl list[KERNEL_PARAMS_MAX];
    int n = kernel_params(row, spec, list);
    for (int i = 0; i < n; i++) {
        const param_decl *p = &list[i];
        if (p->kind == KERNEL_NUMBER)
            args.number[p->which] = ptx_param(b, number_type(p), p->name);
        else if (p->kind == KERNEL_WORKSPACE)
            *(p->which == WORKSPACE_PARTIALS ? &args.partials : &args.workspace) =
                ptx_param_ptr(b, p->name, p->size);
        else
            args.operand[p->which] = ptx_param_ptr(b, p->name, p->size);
    }
    return args;
}

/* ---- Launches ---- */

static uint64_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t pair_of(const uint64_t pair[2])
{
    return pair[0] << 32 | pair[1];
}

static uint64_t operand_bytes(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                              int operand);

kernel_step *steps_add(kernel_steps *steps, const kernel_row *row, const kernel_spec *spec,
                       const kernel_problem *problem)
{
    kernel_step *step = &steps->at[steps->count++];
    *step = (kernel_step){.row = row, .spec = kernel_spec_normal(row, spec)};
    uint64_t numbers[NUMBERS] = {[NUMBER_N] = problem->rows * problem->columns,
                                 [NUMBER_ROWS] = problem->rows,
                                 [NUMBER_COLUMNS] = problem->columns,
                                 [NUMBER_TABLE_ROWS] = problem->table_rows,
                                 [NUMBER_M] = problem->m,
                                 [NUMBER_X_STRIDE] = problem->x_stride,
                                 [NUMBER_Y_STRIDE] = problem->y_stride,
                                 [NUMBER_EXPERTS] = problem->experts,
                                 [NUMBER_ALPHA] = f32_bits(problem->alpha),
                                 [NUMBER_X_ZERO] = (uint32_t)problem->x_zero,
                                 [NUMBER_W_ZERO] = (uint32_t)problem->w_zero,
                                 [NUMBER_Y_ZERO] = (uint32_t)problem->y_zero,
                                 [NUMBER_MULTIPLIER] = f32_bits(problem->multiplier),
                                 [NUMBER_TOP] = problem->top,
                                 [NUMBER_CONV_CHANNELS] = problem->conv.channels,
                                 [NUMBER_CONV_OUTPUTS] =
                                     problem->conv.groups ? problem->conv.outputs / problem->conv.groups : 0,
                                 [NUMBER_CONV_H] = problem->conv.in[0],
                                 [NUMBER_CONV_W] = problem->conv.in[1],
                                 [NUMBER_CONV_OUT_H] = problem->conv.out[0],
                                 [NUMBER_CONV_OUT_W] = problem->conv.out[1],
                                 [NUMBER_CONV_STRIDE] = pair_of(problem->conv.stride),
                                 [NUMBER_CONV_PADDING] = pair_of(problem->conv.padding),
                                 [NUMBER_CONV_DILATION] = pair_of(problem->conv.dilation),
                                 [NUMBER_PAGE_SLOTS] = problem->cache.page_slots,
                                 [NUMBER_PAGE_STRIDE] = problem->cache.page_stride,
                                 [NUMBER_SLOT_STRIDE] = problem->cache.slot_stride,
                                 [NUMBER_HEAD_STRIDE] = problem->cache.head_stride,
                                 [NUMBER_PARTS] = problem->parts,
                                 [NUMBER_B_STRIDE] = problem->b_stride,
                                 [NUMBER_EPS] = f32_bits(problem->eps),
                                 [NUMBER_LIMIT] = f32_bits(problem->limit),
                                 [NUMBER_FACTOR] = f32_bits(problem->factor),
                                 [NUMBER_VALUE_PAGE_STRIDE] = problem->values.page_stride,
                                 [NUMBER_VALUE_SLOT_STRIDE] = problem->values.slot_stride,
                                 [NUMBER_VALUE_HEAD_STRIDE] = problem->values.head_stride,
                                 [NUMBER_PAGES] = problem->pages,
                                 [NUMBER_TABLE_PAGES] = problem->table_pages,
                                 [NUMBER_POSITIONS] = problem->positions,
                                 [NUMBER_DIM_1] = problem->lines.dims[0],
                                 [NUMBER_DIM_2] = problem->lines.dims[1],
                                 [NUMBER_X_STRIDE_1] = problem->lines.x[0],
                                 [NUMBER_X_STRIDE_2] = problem->lines.x[1],
                                 [NUMBER_X_STRIDE_3] = problem->lines.x[2],
                                 [NUMBER_Y_STRIDE_1] = problem->lines.y[0],
                                 [NUMBER_Y_STRIDE_2] = problem->lines.y[1],
                                 [NUMBER_Y_STRIDE_3] = problem->lines.y[2],
                                 [NUMBER_WINDOW] = problem->window,
                                 [NUMBER_MASK_KEYS] = problem->mask_keys,
                                 [NUMBER_MASK_STRIDE] = problem->mask_stride,
                                 [NUMBER_MASK_HEAD_STRIDE] = problem->mask_head_stride};
    for (int i = 0; i < EXPERT_STRIDES && step->spec.product.grouped; i++)
        numbers[expert_strides[i].number] =
            operand_bytes(row, &step->spec, problem, expert_strides[i].operand);
    kernel_geometry g = kernel_geometry_of(row, &step->spec);
    step->block = g.block;
    step->shared = g.shared_dynamic;
    for (int i = 0; i < 3; i++)
        step->grid[i] = rule_value(&g.grid[i], numbers);
    param_decl list[KERNEL_PARAMS_MAX];
    step->n_params = kernel_params(row, &step->spec, list);
    const kernel_number rows = step->spec.row_index ? NUMBER_ROWS : NUMBER_M;
    for (int i = 0; i < step->n_params; i++)
        step->params[i] = (kernel_param){.kind = list[i].kind,
                                         .operand = list[i].which,
                                         .bytes = list[i].size,
                                         .is_rows = list[i].kind == KERNEL_NUMBER && list[i].which == rows,
                                         .value = list[i].kind == KERNEL_NUMBER ? numbers[list[i].which] : 0};
    return step;
}

void step_follows_rows(kernel_step *step, int dimension, uint64_t work, uint64_t per_block)
{
    step->rows = (kernel_row_blocks){.dimension = dimension, .work = work, .per_block = per_block};
}

void step_set_number(kernel_step *step, kernel_number number, uint64_t bits)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_NUMBER && step->params[i].operand == number)
            step->params[i].value = bits;
}

void step_in_workspace(kernel_step *step, uint64_t offset)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_WORKSPACE)
            step->params[i].value = offset;
}

void step_with_partials(kernel_step *step, uint64_t offset)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_WORKSPACE && step->params[i].operand == WORKSPACE_PARTIALS)
            step->params[i].value = offset;
}

uint64_t steps_take(kernel_steps *steps, uint64_t bytes)
{
    const uint64_t at = ceil_div(steps->workspace, LOAD_BYTES) * LOAD_BYTES;
    steps->workspace = at + ceil_div(bytes, LOAD_BYTES) * LOAD_BYTES;
    return at;
}

void step_from_workspace(kernel_step *step, qdnnOperand_t operand, uint64_t offset)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_OPERAND && step->params[i].operand == operand)
            step->params[i] = (kernel_param){.kind = KERNEL_WORKSPACE, .value = offset};
}

void step_with_operand(kernel_step *step, qdnnOperand_t operand, qdnnOperand_t other)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_OPERAND && step->params[i].operand == operand)
            step->params[i].operand = (uint8_t)other;
}

void kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps)
{
    assert(kernel_spec_is_normal(row, spec));
    memset(steps, 0, sizeof *steps);
    if (row->operation->is_empty ? !row->operation->is_empty(problem)
                                 : problem->rows > 0 && problem->columns > 0)
        row->operation->steps(row, spec, problem, steps);
}

bool kernel_is_sequence(const kernel_row *row, const kernel_spec *spec)
{
    kernel_steps steps;
    kernel_problem small = kernel_problem_default();
    small.rows = small.table_rows = small.y_stride = small.conv.outputs = small.conv.groups = 1;
    small.columns = small.x_stride = kernel_columns_multiple(row);
    small.experts = spec->product.grouped ? 1 : 0;
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), &small, &steps);
    return steps.count > 1;
}

/* Elements of the tensor, in terms of the kernel's own numbers. */
static kernel_rule rule_elements(const kernel_row *row, const kernel_spec *spec)
{
    return numbers_of(row, spec) >> NUMBER_N & 1
               ? rule_number(NUMBER_N)
               : rule_times(rule_number(NUMBER_ROWS), rule_number(NUMBER_COLUMNS));
}

/* An operation that gives no rule has a grid along x: as many blocks as it says, or as its elements fill. */
kernel_geometry kernel_geometry_of(const kernel_row *row, const kernel_spec *spec)
{
    kernel_geometry g = row->operation->geometry(row, spec);
    if (!g.grid[0].count && g.blocks)
        g.grid[0] = rule_constant(g.blocks < INT32_MAX ? g.blocks : INT32_MAX);
    else if (!g.grid[0].count)
        g.grid[0] = rule_ceil(rule_elements(row, spec), g.elements_per_block);
    for (int i = 1; i < 3; i++)
        if (!g.grid[i].count)
            g.grid[i] = rule_constant(1);
    return g;
}

/* ---- Sizes ---- */

uint64_t kernel_columns_multiple(const kernel_row *row)
{
    const block_layout *blocks = block_layout_of(row->format);
    return blocks ? blocks->elements : 1;
}

uint64_t kernel_groups(const kernel_spec *spec, const kernel_problem *problem)
{
    uint64_t rows = problem->rows, columns = problem->columns;
    if (rows == 0 || columns == 0)
        return 0;
    switch (spec->stored.groups) {
    case QDNN_GROUPS_FLAT:
        return spec->stored.channels ? spec->stored.channels
                                     : ceil_div(rows * columns, spec->stored.group_size);
    case QDNN_GROUPS_ROWS:
        return ceil_div(rows, spec->stored.group_rows) * ceil_div(columns, spec->stored.group_size);
    case QDNN_GROUPS_COLUMNS:
        return ceil_div(rows, spec->stored.group_size) * ceil_div(columns, spec->stored.group_rows);
    default:
        return 0;
    }
}

static uint64_t code_bytes(const kernel_row *row, qdnnLayout_t layout, const kernel_problem *p)
{
    const uint64_t bits = row->format->facts.bits;
    const block_layout *blocks = block_layout_of(row->format);
    if (blocks)
        return p->rows * (p->columns / blocks->elements) * blocks->bytes;
    switch (layout) {
    case QDNN_LAYOUT_WORDS_INTERLEAVED:
        return ceil_div(p->rows * bits, 32) * p->columns * 4;
    case QDNN_LAYOUT_WORDS_ROWS:
        return ceil_div(p->columns * bits, 32) * p->rows * 4;
    case QDNN_LAYOUT_AWQ:
        return p->rows * ceil_div(p->columns, 8) * 4;
    default:
        return ceil_div(p->rows * p->columns * bits, 8);
    }
}

/* Scales in memory: with the swizzle, tiles of 128 x 4 are padded. */
static uint64_t scale_slots(const kernel_spec *spec, const kernel_problem *p)
{
    bool down = spec->stored.groups == QDNN_GROUPS_COLUMNS;
    uint64_t height = ceil_div(p->rows, down ? spec->stored.group_size : spec->stored.group_rows);
    uint64_t width = ceil_div(p->columns, down ? spec->stored.group_rows : spec->stored.group_size);
    if (spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE)
        return kernel_groups(spec, p);
    return spec->stored.scale_order == QDNN_SCALE_ORDER_TRANSPOSED
               ? ceil_div(width, 128) * ceil_div(height, 4) * 512
               : ceil_div(height, 128) * ceil_div(width, 4) * 512;
}

/* Size of packed zeros: words per stream, times the number of streams. */
static uint64_t packed_zero_bytes(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p)
{
    const uint64_t bits = row->format->facts.bits, groups = kernel_groups(spec, p);
    uint64_t lines = spec->stored.groups == QDNN_GROUPS_ROWS ? ceil_div(p->rows, spec->stored.group_rows)
                     : spec->stored.groups == QDNN_GROUPS_COLUMNS
                         ? ceil_div(p->columns, spec->stored.group_rows)
                         : groups;
    return lines ? ceil_div(lines * bits, 32) * (groups / lines) * 4 : 0;
}

/* Size of a matrix whose rows need not be adjacent. */
static uint64_t strided_bytes(uint64_t rows, uint64_t stride, uint64_t columns, uint64_t element)
{
    return rows && columns ? ((rows - 1) * stride + columns) * element : 0;
}

/* Sizes of operands that only products have, or whose size differs for products. */
static bool product_bytes(const kernel_spec *spec, const kernel_problem *p, int operand, uint64_t align,
                          uint64_t *bytes)
{
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    const uint64_t k = by_columns ? p->columns : p->rows, outputs = by_columns ? p->rows : p->columns;
    const uint64_t n = spec->epilogue.gated ? outputs / 2 : outputs,
                   experts = spec->product.grouped ? p->experts : 1;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        *bytes = strided_bytes(ceil_div(p->m, spec->product.x_share), p->x_stride, k, align);
        return true;
    case QDNN_OPERAND_Y:
    case QDNN_OPERAND_RESIDUAL:
        *bytes = strided_bytes(p->m, p->y_stride, n, align);
        return true;
    case QDNN_OPERAND_ALPHA:
        *bytes = 4 * (spec->epilogue.alpha == QDNN_ALPHA_COLUMN ? outputs * experts : 1);
        return true;
    case QDNN_OPERAND_BIAS:
        *bytes = outputs * experts * align;
        return true;
    case QDNN_OPERAND_X_SCALE:
        *bytes = ceil_div(p->m, spec->product.x_share) * 4;
        return true;
    case QDNN_OPERAND_EXPERT_INDEX:
    case QDNN_OPERAND_ROW_WEIGHT:
        *bytes = p->m * 4;
        return true;
    default:
        return false;
    }
}

/* For one expert, if a product has several. */
static uint64_t prepacked_bytes(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p)
{
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    return prepack_bytes(row->format, by_columns ? p->rows : p->columns, by_columns ? p->columns : p->rows);
}

/* From the first head of a strided cache to the end of the last. */
static uint64_t cache_bytes(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const kernel_cache *c = &problem->cache;
    const uint64_t heads = problem->columns / spec->stored.group_size;
    if (problem->table_rows == 0 || heads == 0)
        return 0;
    uint64_t last = (problem->table_rows / c->page_slots - 1) * c->page_stride +
                    (c->page_slots - 1) * c->slot_stride + (heads - 1) * c->head_stride;
    return code_bytes(row, spec->stored.layout,
                      &(kernel_problem){.rows = 1, .columns = last + spec->stored.group_size});
}

static uint64_t operand_bytes(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                              int operand)
{
    kernel_problem table = {.rows = spec->row_index ? problem->table_rows : problem->rows,
                            .columns = problem->columns};
    if (row->operation->size) {
        const kernel_operand own = row->operation->size(spec, problem, operand);
        if (own.align)
            return own.bytes;
        /* otherwise it is of a quantized result of an operation on rows */
        table = (kernel_problem){.rows = problem->m * spec->rows.heads, .columns = spec->rows.columns};
    }
    const kernel_problem *p = &table;
    uint64_t groups = kernel_groups(spec, p), align = operand_align(row, spec, operand), bytes;
    if (spec->strided && operand == QDNN_OPERAND_X)
        return strided_bytes(problem->rows, problem->x_stride, problem->columns, align);
    if (spec->strided && operand == QDNN_OPERAND_CODES)
        return cache_bytes(row, spec, problem);
    if ((kernel_is_product(row) || kernel_operation_of(row) == KERNEL_ROUTE_ROWS) &&
        product_bytes(spec, problem, operand, align, &bytes))
        return bytes;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
    case QDNN_OPERAND_Y:
    case QDNN_OPERAND_DY:
    case QDNN_OPERAND_DX:
        return problem->rows * problem->columns * align;
    case QDNN_OPERAND_ROW_INDEX:
        return problem->rows * align;
    case QDNN_OPERAND_CODES:
        return is_prepacked(row, spec) ? prepacked_bytes(row, spec, p)
                                       : code_bytes(row, spec->stored.layout, p);
    case QDNN_OPERAND_REPACKED:
        if (kernel_operation_of(row) == KERNEL_PREPACK)
            return prepacked_bytes(row, spec, p);
        return code_bytes(row, spec->to.layout, p);
    case QDNN_OPERAND_SCALE:
        return scale_slots(spec, p) * align;
    case QDNN_OPERAND_ZERO:
        return spec->stored.zero_packed ? packed_zero_bytes(row, spec, p) : groups * align;
    case QDNN_OPERAND_STATE:
    case QDNN_OPERAND_DSCALE:
        return groups * align;
    case QDNN_OPERAND_GROUP_INDEX:
        return p->rows * 4;
    case QDNN_OPERAND_NESTED_MAP:
        return 256 * 4;
    case QDNN_OPERAND_NESTED_SCALE:
        return ceil_div(groups, 256) * 4;
    default:
        return 4;
    }
}

/* The arrays of which a stack of experts has one per expert, back to back. */
static bool is_of_weights(int operand)
{
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_CODES:
    case QDNN_OPERAND_SCALE:
    case QDNN_OPERAND_ZERO:
    case QDNN_OPERAND_GLOBAL_SCALE:
    case QDNN_OPERAND_GROUP_INDEX:
    case QDNN_OPERAND_NESTED_SCALE:
        return true;
    default:
        return false;
    }
}

void kernel_operands_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_operand operands[QDNN_OPERAND_COUNT])
{
    assert(kernel_spec_is_normal(row, spec));
    operand_set reads = row->operation->reads, writes = row->operation->writes;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        operands[i] = (kernel_operand){0};
        if (!((reads | writes) >> i & 1) || !has_operand(row, spec, i))
            continue;
        if (row->operation->operand) {
            operands[i] = row->operation->operand(row, spec, problem, i);
            continue;
        }
        operands[i] = (kernel_operand){.reads = reads >> i & 1,
                                       .writes = writes >> i & 1,
                                       .align = operand_align(row, spec, i),
                                       .bytes = operand_bytes(row, spec, problem, i)};
        if (spec->product.grouped && is_of_weights(i))
            operands[i].bytes *= problem->experts;
    }
    if (row->operation->bound)
        row->operation->bound(spec, problem, operands);
}
