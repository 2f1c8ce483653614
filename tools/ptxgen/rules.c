/* The sizes of a kernel's parameters in a manifest, as expressions: "4 * ceil(n / 128)" bytes. Names in these rules are
 * those of the kernel's own parameters. The registry computes the same as numbers; a test evaluates every rule and
 * compares. */
#include "tools/ptxgen/tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/formats/blocks.h"
#include "kernels/formats/format.h"
#include "kernels/operations.h"
#include "kernels/tensor/prepack.h"

/* ---- Text ---- */

typedef char rule_text[TOOL_RULE_TEXT];

static void put(rule_text text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(rule_text text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text, TOOL_RULE_TEXT, format, args);
    va_end(args);
}

/* `count` elements of so many bytes. */
static void put_array(rule_text text, unsigned bytes, const char *count)
{
    if (bytes == 1)
        put(text, "%s", count);
    else
        put(text, "%u * %s", bytes, count);
}

/* ---- Element types ---- */

static void type_of(const kernel_spec *spec, const char *key, char element[16])
{
    kernel_spec_value(spec, key, element, 16);
}

static void element_of_codes(const tool_item *item, const kernel_spec *spec, qdnnLayout_t layout,
                             char element[16])
{
    const block_layout *blocks = block_layout_of(item->row->format);
    if (format_is_plain(item->row->format))
        snprintf(element, 16, "%.15s", item->row->format->facts.name + strlen("plain_"));
    else if (blocks)
        snprintf(element, 16, "block");
    else
        snprintf(element, 16, layout == QDNN_LAYOUT_BYTES ? "u8" : "u32");
    (void)spec;
}

/* 4-bit codes are packed in words. */
static const char *integer_codes(qdnnDataType_t type)
{
    return type == QDNN_DATA_I4 ? "u32" : type == QDNN_DATA_U8 ? "u8" : "i8";
}

/* Whether its results are the largest elements of rows. */
static bool is_of_largest(kernel_operation operation)
{
    return operation == KERNEL_INT4_TOP1 || operation == KERNEL_INT4_TOPK || operation == KERNEL_TOP_JOIN;
}

/* Operations that describe their operands themselves. */
static bool own_text(const tool_item *item, const kernel_spec *spec, int operand, kernel_operand_text *text)
{
    if (!item->row->operation->text)
        return false;
    *text = item->row->operation->text(item->row, spec, operand);
    return true;
}

static bool integer_element(const tool_item *item, const kernel_spec *spec, int operand, char element[16])
{
    const kernel_operation operation = kernel_operation_of(item->row);
    const char *text = NULL;
    if (!item->row->operation->size || item->row->operation->text)
        return false;
    if (operation == KERNEL_TRANSPOSE)
        text = "u8";
    else if (operand == QDNN_OPERAND_TOP_INDEX)
        text = spec->integer.top_index != QDNN_DATA_F32 ? "i32" : "f32";
    else if (operand == QDNN_OPERAND_X || operand == QDNN_OPERAND_CODES)
        text = integer_codes(operand == QDNN_OPERAND_X ? spec->integer.x_codes : spec->integer.w_codes);
    else if (operand == QDNN_OPERAND_BIAS && !spec->epilogue.bias)
        text = "i32";
    if (text)
        snprintf(element, 16, "%s", text);
    else if (operand == QDNN_OPERAND_Y && spec->integer.result != QDNN_DATA_F32)
        snprintf(element, 16, "%s",
                 spec->integer.result == QDNN_DATA_I32 ? "i32" : integer_codes(spec->integer.result));
    else
        return false;
    return true;
}

static void element_of(const tool_item *item, const kernel_spec *spec, int operand, char element[16])
{
    kernel_operand_text own;
    if (own_text(item, spec, operand, &own)) {
        snprintf(element, 16, "%s", own.element);
        return;
    }
    if (integer_element(item, spec, operand, element))
        return;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        type_of(spec, spec->product.x_fp8 ? "x_fp8" : "data", element);
        return;
    case QDNN_OPERAND_Y:
    case QDNN_OPERAND_RESIDUAL:
        type_of(spec, kernel_is_product(item->row) || item->row->operation->size ? "output" : "data",
                element);
        return;
    case QDNN_OPERAND_BIAS:
        type_of(spec, "bias", element);
        return;
    case QDNN_OPERAND_CODES:
        element_of_codes(item, spec, spec->stored.layout, element);
        return;
    case QDNN_OPERAND_REPACKED:
        element_of_codes(item, spec, spec->to.layout, element);
        return;
    case QDNN_OPERAND_SCALE:
        if (spec->stored.nested)
            snprintf(element, 16, "u8");
        else
            type_of(spec, "scale", element);
        return;
    case QDNN_OPERAND_ZERO:
        if (spec->stored.zero_packed)
            snprintf(element, 16, "u32");
        else
            type_of(spec, "zero", element);
        return;
    case QDNN_OPERAND_ROW_INDEX:
        type_of(spec, "index_type", element);
        return;
    case QDNN_OPERAND_GROUP_INDEX:
    case QDNN_OPERAND_EXPERT_INDEX:
        snprintf(element, 16, "i32");
        return;
    default:
        snprintf(element, 16, "f32");
    }
}

/* ---- Sizes ---- */

/* The quantized matrix, in terms of the kernel's parameters. */
typedef struct extent {
    bool flat; /* only "n" */
    const char *rows;
    char elements[40];
} extent;

static bool has_number(const tool_item *item, const char *name)
{
    for (int i = 0; i < item->text.info.n_params; i++)
        if (strcmp(item->text.info.params[i].name, name) == 0)
            return true;
    return false;
}

static extent extent_of(const tool_item *item, const kernel_spec *spec)
{
    extent e = {.flat = has_number(item, "n") && !has_number(item, "rows"),
                .rows = spec->row_index ? "table_rows" : "rows"};
    snprintf(e.elements, sizeof e.elements, e.flat ? "n" : "%s * columns", e.rows);
    return e;
}

static void put_groups(const kernel_spec *spec, const extent *e, rule_text text)
{
    if (spec->stored.groups == QDNN_GROUPS_ROWS)
        put(text, "ceil(%s / %" PRIu64 ") * ceil(columns / %" PRIu64 ")", e->rows, spec->stored.group_rows,
            spec->stored.group_size);
    else if (spec->stored.groups == QDNN_GROUPS_COLUMNS)
        put(text, "ceil(%s / %" PRIu64 ") * ceil(columns / %" PRIu64 ")", e->rows, spec->stored.group_size,
            spec->stored.group_rows);
    else if (spec->stored.channels)
        put(text, "%" PRIu64, spec->stored.channels);
    else
        put(text, "ceil(%s / %" PRIu64 ")", e->elements, spec->stored.group_size);
}

static void put_codes(const tool_item *item, qdnnLayout_t layout, const extent *e, rule_text text)
{
    const unsigned bits = item->row->format->facts.bits;
    const block_layout *blocks = block_layout_of(item->row->format);
    if (blocks)
        put(text, e->flat ? "%.0s(n / %u) * %u" : "%s * (columns / %u) * %u", e->rows,
            (unsigned)blocks->elements, (unsigned)blocks->bytes);
    else if (layout == QDNN_LAYOUT_WORDS_INTERLEAVED)
        put(text, "ceil(%s * %u / 32) * columns * 4", e->rows, bits);
    else if (layout == QDNN_LAYOUT_WORDS_ROWS)
        put(text, "ceil(columns * %u / 32) * %s * 4", bits, e->rows);
    else if (layout == QDNN_LAYOUT_AWQ)
        put(text, "%s * ceil(columns / 8) * 4", e->rows);
    else if (bits % 8 == 0)
        put_array(text, bits / 8, e->elements);
    else
        put(text, "ceil(%s * %u / 8)", e->elements, bits);
}

/* Scales arranged in tiles of 128 x 4. */
static void put_swizzled(const kernel_spec *spec, const extent *e, unsigned bytes, rule_text text)
{
    const bool down = spec->stored.groups == QDNN_GROUPS_COLUMNS;
    const uint64_t along = down ? spec->stored.group_size : spec->stored.group_rows,
                   across = down ? spec->stored.group_rows : spec->stored.group_size;
    const bool turned = spec->stored.scale_order == QDNN_SCALE_ORDER_TRANSPOSED;
    put(text, "%u * ceil(ceil(%s / %" PRIu64 ") / %d) * ceil(ceil(columns / %" PRIu64 ") / %d) * 512", bytes,
        e->rows, along, turned ? 4 : 128, across, turned ? 128 : 4);
}

static void put_packed_zeros(const tool_item *item, const kernel_spec *spec, const extent *e, rule_text text)
{
    const unsigned bits = item->row->format->facts.bits;
    if (spec->stored.groups == QDNN_GROUPS_ROWS)
        put(text, "ceil(ceil(%s / %" PRIu64 ") * %u / 32) * ceil(columns / %" PRIu64 ") * 4", e->rows,
            spec->stored.group_rows, bits, spec->stored.group_size);
    else if (spec->stored.groups == QDNN_GROUPS_COLUMNS)
        put(text, "ceil(ceil(columns / %" PRIu64 ") * %u / 32) * ceil(%s / %" PRIu64 ") * 4",
            spec->stored.group_rows, bits, e->rows, spec->stored.group_size);
    else {
        rule_text groups;
        put_groups(spec, e, groups);
        put(text, "ceil(%.150s * %u / 32) * 4", groups, bits);
    }
}

/* Codes in whole units, followed for blocks by the other bytes of each. */
static void put_prepacked(const tool_item *item, const kernel_spec *spec, rule_text text)
{
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    const char *n = by_columns ? "rows" : "columns", *k = by_columns ? "columns" : "rows";
    const block_layout *blocks = block_layout_of(item->row->format);
    const unit_extent unit = prepack_unit(item->row->format);
    if (blocks)
        put(text, "ceil(%s / %d) * (ceil(%s / %u) * %u + %s / %u * %u)", n, UNIT_N, k, unit.elements,
            unit.bytes, k, blocks->elements, UNIT_N * block_header_bytes(blocks));
    else
        put(text, "ceil(%s / %d) * ceil(%s / %u) * %u", n, UNIT_N, k, unit.elements, unit.bytes);
}

/* The number of outputs of a product's weights, and the terms per sum. */
static const char *outputs_of(const kernel_spec *spec)
{
    return spec->product.reduction == KERNEL_K_COLUMNS ? "rows" : "columns";
}

static bool product_size(const tool_item *item, const kernel_spec *spec, int operand, unsigned align,
                         rule_text text)
{
    const char *outputs = outputs_of(spec),
               *k = spec->product.reduction == KERNEL_K_COLUMNS ? "columns" : "rows";
    const char *experts = spec->product.grouped ? "experts * " : "",
               *half = spec->epilogue.gated ? " / 2" : "";
    if (!kernel_is_product(item->row) && kernel_operation_of(item->row) != KERNEL_ROUTE_ROWS)
        return false;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        if (spec->product.x_share == 1)
            put(text, "%u * ((m - 1) * x_stride + %s)", align, k);
        else
            put(text, "%u * ((ceil(m / %" PRIu64 ") - 1) * x_stride + %s)", align, spec->product.x_share, k);
        return true;
    case QDNN_OPERAND_Y:
    case QDNN_OPERAND_RESIDUAL:
        put(text, "%u * ((m - 1) * y_stride + %s%s)", align, outputs, half);
        return true;
    case QDNN_OPERAND_ALPHA:
        if (spec->epilogue.alpha == QDNN_ALPHA_COLUMN)
            put(text, "4 * %s%s", experts, outputs);
        else
            put(text, "4");
        return true;
    case QDNN_OPERAND_BIAS:
        put(text, "%u * %s%s", align, experts, outputs);
        return true;
    case QDNN_OPERAND_X_SCALE:
        if (spec->product.x_share > 1) {
            put(text, "4 * ceil(m / %" PRIu64 ")", spec->product.x_share);
            return true;
        }
        put(text, "4 * m");
        return true;
    case QDNN_OPERAND_EXPERT_INDEX:
    case QDNN_OPERAND_ROW_WEIGHT:
        put(text, "4 * m");
        return true;
    default:
        return false;
    }
}

/* Rows of codes; those of 4-bit codes are padded to words. */
static void put_code_rows(qdnnDataType_t type, const char *rows, rule_text text)
{
    put(text, type == QDNN_DATA_I4 ? "%s * ceil(columns / 8) * 4" : "%s * columns", rows);
}

static bool integer_size(const tool_item *item, const kernel_spec *spec, int operand, unsigned align,
                         rule_text text)
{
    const kernel_operation operation = kernel_operation_of(item->row);
    const bool is_stack = spec->product.grouped;
    char x_rows[48] = "m";
    if (!item->row->operation->size || item->row->operation->text)
        return false;
    if (spec->product.x_share > 1)
        snprintf(x_rows, sizeof x_rows, "ceil(m / %" PRIu64 ")", spec->product.x_share);
    if (operation == KERNEL_TRANSPOSE)
        put(text, "m * rows * columns");
    else if (is_of_largest(operation) && (operand == QDNN_OPERAND_Y || operand == QDNN_OPERAND_TOP_INDEX))
        put(text, operation == KERNEL_INT4_TOP1 ? "4 * m" : "4 * m * top");
    else if (operand == QDNN_OPERAND_X && operation == KERNEL_INT8_CONV2D)
        put(text, "m / (conv_out_h * conv_out_w) * conv_channels * conv_h * conv_w");
    else if (operand == QDNN_OPERAND_X || operand == QDNN_OPERAND_CODES)
        put_code_rows(operand == QDNN_OPERAND_X ? spec->integer.x_codes : spec->integer.w_codes,
                      operand == QDNN_OPERAND_X ? x_rows : "rows", text);
    else if (operand == QDNN_OPERAND_SCALE && operation == KERNEL_W4A8)
        put(text, "%u * rows * ceil(columns / %" PRIu64 ")", align, spec->stored.group_size);
    else if (operand == QDNN_OPERAND_SCALE)
        put(text, "%u * rows", align);
    else if (operand == QDNN_OPERAND_Y || operand == QDNN_OPERAND_RESIDUAL)
        put_array(text, align, spec->epilogue.gated ? "m * rows / 2" : "m * rows");
    else if (operand == QDNN_OPERAND_X_SCALE)
        put(text, "4 * %s", x_rows);
    else if (operand == QDNN_OPERAND_EXPERT_INDEX || operand == QDNN_OPERAND_ROW_WEIGHT)
        put(text, "4 * m");
    else if (operand == QDNN_OPERAND_ALPHA && spec->epilogue.alpha != QDNN_ALPHA_COLUMN)
        put(text, "4");
    else
        put(text, is_stack ? "%u * experts * rows" : "%u * rows", align);
    return true;
}

static void size_of(const tool_item *item, const kernel_spec *spec, int operand, unsigned align,
                    rule_text text)
{
    kernel_operand_text own;
    if (own_text(item, spec, operand, &own)) {
        put_array(text, align, own.count);
        return;
    }
    const extent e = extent_of(item, spec);
    const bool prepacked =
        spec->product.kernel == KERNEL_PRODUCT_STREAM || spec->product.kernel == KERNEL_PRODUCT_STRIPS;
    rule_text groups = "";
    put_groups(spec, &e, groups);
    if (integer_size(item, spec, operand, align, text) || product_size(item, spec, operand, align, text))
        return;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
    case QDNN_OPERAND_Y:
    case QDNN_OPERAND_DY:
    case QDNN_OPERAND_DX:
        put_array(text, align, e.flat ? "n" : "rows * columns");
        return;
    case QDNN_OPERAND_ROW_INDEX:
        put_array(text, align, "rows");
        return;
    case QDNN_OPERAND_CODES:
        if (kernel_is_product(item->row) && prepacked)
            put_prepacked(item, spec, text);
        else
            put_codes(item, spec->stored.layout, &e, text);
        return;
    case QDNN_OPERAND_REPACKED:
        if (kernel_operation_of(item->row) == KERNEL_PREPACK)
            put_prepacked(item, spec, text);
        else
            put_codes(item, spec->to.layout, &e, text);
        return;
    case QDNN_OPERAND_SCALE:
        if (spec->stored.scale_swizzle != QDNN_SWIZZLE_NONE)
            put_swizzled(spec, &e, align, text);
        else
            put_array(text, align, groups);
        return;
    case QDNN_OPERAND_ZERO:
        if (spec->stored.zero_packed)
            put_packed_zeros(item, spec, &e, text);
        else
            put_array(text, align, groups);
        return;
    case QDNN_OPERAND_STATE:
    case QDNN_OPERAND_DSCALE:
        put_array(text, align, groups);
        return;
    case QDNN_OPERAND_GROUP_INDEX:
        put(text, "4 * %s", e.rows);
        return;
    case QDNN_OPERAND_NESTED_MAP:
        put(text, "1024");
        return;
    case QDNN_OPERAND_NESTED_SCALE:
        put(text, "4 * ceil(%.150s / 256)", groups);
        return;
    default:
        put(text, "4");
    }
}

/* ---- Parameters ---- */

const char *tool_launch_number(const tool_item *item, int i)
{
    const char *names[3 * KERNEL_RULE_MAX], *name;
    int n = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int k = 0; (name = kernel_rule_name(&item->text.geometry.grid[axis], k)) != NULL; k++) {
            bool known = has_number(item, name);
            for (int before = 0; before < n; before++)
                known = known || names[before] == name;
            if (!known)
                names[n++] = name;
        }
    return i < n ? names[i] : NULL;
}

/* How a kernel uses the workspace that the parameter points to. */
static const char *workspace_direction(const kernel_row *row, const kernel_spec *spec, const char *name)
{
    const kernel_operation operation = kernel_operation_of(row);
    if (operation == KERNEL_RANGE || operation == KERNEL_ROUTE_ROWS)
        return "out";
    bool sums = strcmp(name, "partials") == 0 || strcmp(name, "sums") == 0;
    return sums && operation != KERNEL_TOP_JOIN && spec->product.kernel != KERNEL_PRODUCT_JOIN &&
                   spec->product.kernel != KERNEL_PRODUCT_STRIPS
               ? "out"
               : "in";
}

bool tool_pointer_of(const tool_item *item, int index, tool_pointer *out)
{
    param_decl list[KERNEL_PARAMS_MAX];
    const kernel_spec spec = kernel_spec_normal(item->row, &item->spec);
    int n = kernel_params(item->row, &spec, list);
    if (index >= n || list[index].kind == KERNEL_NUMBER)
        return false;
    const param_decl *p = &list[index];
    *out = (tool_pointer){.workspace = p->kind == KERNEL_WORKSPACE};
    if (out->workspace) {
        out->direction = workspace_direction(item->row, &spec, p->name);
        snprintf(out->element, sizeof out->element,
                 p->size == 8                     ? "u64"
                 : strcmp(p->name, "routes") == 0 ? "i32"
                                                  : "f32");
        return true;
    }
    const operation_row *operation = item->row->operation;
    bool writes = operation->writes >> p->which & 1,
         turned = kernel_operation_of(item->row) == KERNEL_PREPACK && spec.product.unpack;
    out->direction = writes != turned ? "out" : "in";
    element_of(item, &spec, p->which, out->element);
    size_of(item, &spec, p->which, p->size, out->bytes);
#define OF_WEIGHTS(name) (operand_set)1 << QDNN_OPERAND_##name
    static const operand_set of_weights = OF_WEIGHTS(CODES) | OF_WEIGHTS(SCALE) | OF_WEIGHTS(ZERO) |
                                          OF_WEIGHTS(GLOBAL_SCALE) | OF_WEIGHTS(GROUP_INDEX) |
                                          OF_WEIGHTS(NESTED_SCALE);
#undef OF_WEIGHTS
    if (spec.product.grouped && of_weights >> p->which & 1) {
        rule_text one;
        memcpy(one, out->bytes, sizeof one);
        put(out->bytes, "experts * (%.200s)", one);
    }
    return true;
}

const char *tool_number_meaning(const kernel_row *row, const char *name)
{
    if (kernel_operation_of(row) == KERNEL_TRANSPOSE && strcmp(name, "m") == 0)
        return "number of matrices";
    static const char *const meanings[][2] = {
        {"n", "elements of the tensor"},
        {"rows", "rows of the matrix; of a product, of the weights"},
        {"columns", "columns of the matrix; of a product, of the weights"},
        {"table_rows", "rows of the quantized tensor, some of which are selected"},
        {"largest", "the largest value of a code times the largest scale"},
        {"m", "rows of x and y"},
        {"x_stride", "elements from one row of x to the next"},
        {"y_stride", "elements from one row of y to the next"},
        {"experts", "matrices of weights"},
        {"codes_stride", "bytes from one expert's codes to the next expert's"},
        {"scale_stride", "bytes from one expert's scales to the next expert's"},
        {"zero_stride", "bytes from one expert's zeros to the next expert's"},
        {"nested_stride", "bytes from one expert's second-level scales to the next expert's"},
        {"alpha_number", "factor of sums"},
        {"multiplier_number", "factor of sums before they become codes"},
        {"x_zero", "zero point of x"},
        {"w_zero", "zero point of the weights"},
        {"y_zero", "zero point of y"},
        {"top", "how many of the largest elements"},
        {"conv_channels", "channels of x"},
        {"conv_outputs", "channels of y in a group"},
        {"conv_h", "height of x"},
        {"conv_w", "width of x"},
        {"conv_out_h", "height of y"},
        {"conv_out_w", "width of y"},
        {"page_slots", "slots of a page"},
        {"page_stride", "elements from one page to the next"},
        {"slot_stride", "elements from one slot of a page to the next"},
        {"head_stride", "elements from one head of a slot to the next"},
        {"parts", "parts of each row, each of a block"},
        {"b_stride", "elements from one row of b to the next"},
        {"eps", "added to the mean of the squares, or to the sum of weights"},
        {"value_page_stride", "elements from one page of values to the next"},
        {"value_slot_stride", "elements from one slot of values to the next"},
        {"value_head_stride", "elements from one head of values to the next"},
        {"pages", "pages of the cache"},
        {"table_pages", "pages of a sequence in the page table"},
        {"positions", "rows of the tables"},
        {"window", "keys that a token sees, the last ones"},
        {"mask_keys", "columns of the mask"},
        {"mask_stride", "elements from the mask of one token to that of the next"},
        {"mask_head_stride", "elements from the mask of one head to that of the next"},
        {"limit", "limit of a clamped or capped function"},
        {"factor", "factor inside a function, or of weights"},
        {"conv_stride", "height in the upper 32 bits, width in the lower"},
        {"conv_padding", "height in the upper 32 bits, width in the lower"},
        {"conv_dilation", "height in the upper 32 bits, width in the lower"},
    };
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i][0], name) == 0)
            return meanings[i][1];
    return NULL;
}
