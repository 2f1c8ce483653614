/* From descriptors to a kernel of the registry; everything without a kernel is rejected here. */
#include "driver/api/request.h"

#include <stdio.h>
#include <string.h>

#include "driver/base/check.h"
#include "driver/base/data_type.h"

/* ---- The format ---- */

/* Whether the format has that storage type, with any kind of code. */
static bool is_of_storage(const format_facts *f, qdnnDataType_t storage)
{
    for (int code = QDNN_CODE_DEFAULT; code <= QDNN_CODE_E3M2; code++) {
        const format_row *found =
            kernel_find_format(storage, f->bits, f->zero_kind, (qdnnCodeKind_t)code, QDNN_BLOCK_NONE);
        if (found && format_facts_of(found) == f)
            return true;
    }
    return false;
}

/* "int4, int4_zp, ...": the formats of a storage type. */
static void list_formats(qdnnDataType_t storage, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "none");
    for (int i = 0; kernel_format_at(i) && used < size; i++)
        if (is_of_storage(kernel_format_at(i), storage))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     kernel_format_at(i)->name);
}

/* "QDNN_QUANT_STORAGE is QDNN_DATA_I4, QDNN_QUANT_CODE_BITS is 7": the attributes that determine a format, if
 * not at their defaults. */
static void list_choices(const struct qdnnQuantDescriptor *quant, char *text, size_t size)
{
    static const qdnnQuantAttribute_t decisive[] = {QDNN_QUANT_STORAGE, QDNN_QUANT_CODE_BITS,
                                                    QDNN_QUANT_ZERO_KIND, QDNN_QUANT_CODE_KIND,
                                                    QDNN_QUANT_BLOCK_FORMAT};
    struct qdnnQuantDescriptor usual = quant_presets();
    size_t used = 0;
    for (size_t i = 0; i < sizeof decisive / sizeof decisive[0] && used < size; i++) {
        int64_t value = quant->values[decisive[i]];
        const char *name = quant_value_name(decisive[i], value);
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)value);
        if (i == 0 || value != usual.values[decisive[i]])
            used += (size_t)snprintf(text + used, size - used, "%s%s is %s", used ? ", " : "",
                                     quant_attribute_name(decisive[i]), name ? name : number);
    }
}

static const format_row *format_of(const int64_t *value)
{
    return kernel_find_format(
        (qdnnDataType_t)value[QDNN_QUANT_STORAGE], (unsigned)value[QDNN_QUANT_CODE_BITS],
        (qdnnZeroKind_t)value[QDNN_QUANT_ZERO_KIND], (qdnnCodeKind_t)value[QDNN_QUANT_CODE_KIND],
        (qdnnBlockFormat_t)value[QDNN_QUANT_BLOCK_FORMAT]);
}

/* The one attribute whose default would make it a format; null: several have to change. */
static const char *remedy_of(const struct qdnnQuantDescriptor *quant)
{
    static const struct {
        qdnnQuantAttribute_t attribute;
        const char *fix;
    } remedies[] = {{QDNN_QUANT_CODE_KIND, "QDNN_QUANT_CODE_KIND QDNN_CODE_DEFAULT"},
                    {QDNN_QUANT_CODE_BITS, "QDNN_QUANT_CODE_BITS 0"},
                    {QDNN_QUANT_ZERO_KIND, "QDNN_QUANT_ZERO_KIND QDNN_ZERO_NONE"}};
    const struct qdnnQuantDescriptor usual = quant_presets();
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        struct qdnnQuantDescriptor changed = *quant;
        changed.values[remedies[i].attribute] = usual.values[remedies[i].attribute];
        if (format_of(changed.values))
            return remedies[i].fix;
    }
    return NULL;
}

static qdnnStatus_t refuse_format(const struct qdnnQuantDescriptor *quant)
{
    char choices[256], names[160];
    const char *remedy = remedy_of(quant);
    list_choices(quant, choices, sizeof choices);
    list_formats((qdnnDataType_t)quant->values[QDNN_QUANT_STORAGE], names, sizeof names);
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "%s: no kernel; the formats of that storage are: %s; fix: %s", choices, names,
                      remedy ? remedy : "the default code kind, width and zero kind");
}

static qdnnStatus_t refuse_operation(const format_row *format)
{
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; i < kernel_row_count && used < sizeof names; i++)
        if (kernel_rows[i].format == format && kernel_rows[i].operation_name)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     kernel_rows[i].operation_name);
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "%s does not have this operation; it has: %s; fix: one of these, or another format",
                      format_facts_of(format)->name, names);
}

static qdnnStatus_t find_kernel(kernel_operation operation, const struct qdnnQuantDescriptor *quant,
                                const kernel_row **row)
{
    const format_row *format = format_of(quant->values);
    if (!format)
        return refuse_format(quant);
    *row = kernel_find_operation(operation, format);
    return *row ? QDNN_STATUS_SUCCESS : refuse_operation(format);
}

qdnnStatus_t request_check_packed(const struct qdnnTensorDescriptor *tensor)
{
    if (!tensor_is_packed(tensor))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "the tensor has gaps or another order of dimensions; its strides must be packed, row-major; fix: "
            "copy it, or pass null strides");
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_tensor(const struct qdnnTensorDescriptor *tensor)
{
    switch (tensor->type) {
    case QDNN_DATA_F32:
    case QDNN_DATA_F16:
    case QDNN_DATA_BF16:
    case QDNN_DATA_F64:
        break;
    default:
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "the tensor is of type %s; it must be f32, f16, bf16 or f64; fix: convert it",
                          qdnnGetDataTypeName(tensor->type));
    }
    return request_check_packed(tensor);
}

/* The tensor as a matrix: the last dimension is the columns. */
static kernel_problem problem_of(const struct qdnnTensorDescriptor *tensor)
{
    uint64_t columns = (uint64_t)tensor->dims[tensor->rank - 1], n = tensor_elements(tensor);
    return (kernel_problem){.rows = columns ? n / columns : 0, .columns = columns};
}

/* Rows must consist of whole blocks. */
static qdnnStatus_t check_blocks(const request *r)
{
    uint64_t multiple = kernel_columns_multiple(r->row);
    if (r->problem.columns % multiple == 0)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                      "the last dimension is %llu; %s has blocks of %llu elements along it: it must be a "
                      "multiple of %llu; fix: "
                      "pad it, or use another format",
                      (unsigned long long)r->problem.columns, kernel_format(r->row)->name,
                      (unsigned long long)multiple, (unsigned long long)multiple);
}

/* ---- Groups ---- */

/* The direction of groups in a layout, unless the descriptor sets another. */
static qdnnGroups_t groups_of(const int64_t *value)
{
    if (value[QDNN_QUANT_GROUPS] != QDNN_GROUPS_DEFAULT)
        return (qdnnGroups_t)value[QDNN_QUANT_GROUPS];
    switch ((qdnnLayout_t)value[QDNN_QUANT_LAYOUT]) {
    case QDNN_LAYOUT_BYTES:
        return QDNN_GROUPS_FLAT;
    case QDNN_LAYOUT_WORDS_ROWS:
        return QDNN_GROUPS_ROWS;
    default:
        return QDNN_GROUPS_COLUMNS;
    }
}

qdnnStatus_t request_set_channels(const struct qdnnTensorDescriptor *tensor, const char *attribute,
                                  int64_t axis, kernel_spec *spec)
{
    if (axis >= tensor->rank)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s is %lld, and the tensor has %d dimensions; fix: an axis below that", attribute,
                          (long long)axis, tensor->rank);
    spec->stored.group_size = spec->stored.channels = 1;
    if (tensor_elements(tensor) == 0) /* nothing is launched, so no size is too large */
        return QDNN_STATUS_SUCCESS;
    for (int i = (int)axis + 1; i < tensor->rank; i++)
        spec->stored.group_size *= (uint64_t)tensor->dims[i];
    spec->stored.channels = (uint64_t)tensor->dims[axis];
    if (spec->stored.channels == 1) /* the whole tensor is one channel, whatever its dimensions */
        spec->stored.group_size = 1;
    else if (spec->stored.group_size * spec->stored.channels == tensor_elements(tensor))
        spec->stored.channels = 0; /* each channel is contiguous: plain groups, in any number */
    return QDNN_STATUS_SUCCESS;
}

/* Which elements share a scale, in terms of kernels. Groups along rows that divide the rows are flat
 * groups. */
static qdnnStatus_t set_groups(const struct qdnnTensorDescriptor *tensor, const int64_t *value,
                               kernel_problem *problem, kernel_spec *spec)
{
    spec->stored.groups = QDNN_GROUPS_FLAT;
    switch ((qdnnGranularity_t)value[QDNN_QUANT_GRANULARITY]) {
    case QDNN_GRANULARITY_NONE:
        spec->stored.groups = QDNN_GROUPS_DEFAULT;
        return QDNN_STATUS_SUCCESS;
    case QDNN_GRANULARITY_TENSOR:
        spec->stored.group_size = spec->stored.channels = 1;
        return QDNN_STATUS_SUCCESS;
    case QDNN_GRANULARITY_CHANNEL:
        return request_set_channels(tensor, quant_attribute_name(QDNN_QUANT_AXIS), value[QDNN_QUANT_AXIS],
                                    spec);
    case QDNN_GRANULARITY_GROUP:
        break;
    }
    spec->stored.groups = groups_of(value);
    spec->stored.group_size = (uint64_t)value[QDNN_QUANT_GROUP_SIZE];
    spec->stored.group_rows = (uint64_t)value[QDNN_QUANT_BLOCK_ROWS];
    bool plain = spec->stored.group_rows == 1 && spec->stored.scale_order == QDNN_SCALE_ORDER_DEFAULT &&
                 spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE && !spec->stored.zero_packed;
    if (spec->stored.groups == QDNN_GROUPS_ROWS && plain && problem->columns % spec->stored.group_size == 0)
        spec->stored.groups = QDNN_GROUPS_FLAT;
    return QDNN_STATUS_SUCCESS;
}

/* A descriptor can group zeros differently from scales, but there is no kernel for it. */
static qdnnStatus_t check_zero_groups(const int64_t *value)
{
    int64_t zeros = value[QDNN_QUANT_ZERO_GRANULARITY], scales = value[QDNN_QUANT_GRANULARITY];
    int64_t zero_size = value[QDNN_QUANT_ZERO_GROUP_SIZE], scale_size = value[QDNN_QUANT_GROUP_SIZE];
    if (value[QDNN_QUANT_ZERO_KIND] == QDNN_ZERO_NONE || value[QDNN_QUANT_BLOCK_FORMAT] != QDNN_BLOCK_NONE)
        return QDNN_STATUS_SUCCESS;
    if (zeros >= 0 && zeros != scales)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "QDNN_QUANT_ZERO_GRANULARITY is %s, with scales of %s; fix: use equal granularities",
            quant_value_name(QDNN_QUANT_ZERO_GRANULARITY, zeros),
            quant_value_name(QDNN_QUANT_GRANULARITY, scales));
    if (scales == QDNN_GRANULARITY_GROUP && zero_size && zero_size != scale_size)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "QDNN_QUANT_ZERO_GROUP_SIZE is %lld, scale groups of %lld with zero groups of %lld; fix: use "
            "equal group sizes",
            (long long)zero_size, (long long)scale_size, (long long)zero_size);
    return QDNN_STATUS_SUCCESS;
}

/* ---- The whole request ---- */

static void set_choices(const struct qdnnQuantDescriptor *quant, kernel_spec *spec)
{
    const int64_t *value = quant->values;
    qdnnCodeKind_t code = (qdnnCodeKind_t)value[QDNN_QUANT_CODE_KIND];
    bool is_u8 = value[QDNN_QUANT_STORAGE] == QDNN_DATA_U8,
         has_zero = value[QDNN_QUANT_ZERO_KIND] != QDNN_ZERO_NONE;
    if (code == QDNN_CODE_DEFAULT && is_u8)
        code = has_zero ? QDNN_CODE_UNSIGNED : QDNN_CODE_OFFSET;
    spec->stored.code = code <= QDNN_CODE_TWOS_COMPLEMENT ? code : QDNN_CODE_DEFAULT;
    spec->stored.layout = value[QDNN_QUANT_LAYOUT] == QDNN_LAYOUT_BLOCK
                              ? QDNN_LAYOUT_BYTES
                              : (qdnnLayout_t)value[QDNN_QUANT_LAYOUT];
    spec->stored.nibble_order = (qdnnNibbleOrder_t)value[QDNN_QUANT_NIBBLE_ORDER];
    spec->stored.scale_order = (qdnnScaleOrder_t)value[QDNN_QUANT_SCALE_ORDER];
    spec->stored.scale_swizzle = (qdnnScaleSwizzle_t)value[QDNN_QUANT_SCALE_SWIZZLE];
    spec->stored.group_index = (int)value[QDNN_QUANT_GROUP_INDEX];
    spec->stored.scale = (qdnnScaleType_t)value[QDNN_QUANT_SCALE_TYPE];
    spec->stored.nested = (int)value[QDNN_QUANT_NESTED];
    spec->stored.global_scale = (int)value[QDNN_QUANT_GLOBAL_SCALE];
    spec->stored.zero = (qdnnDataType_t)value[QDNN_QUANT_ZERO_TYPE];
    spec->stored.zero_packed = (int)value[QDNN_QUANT_ZERO_PACKED];
    spec->stored.zero_minus_one = (int)value[QDNN_QUANT_ZERO_MINUS_ONE];
    spec->stored.zero_wraps = (int)value[QDNN_QUANT_ZERO_WRAPS];
    spec->quantize.rounding = (qdnnRounding_t)value[QDNN_QUANT_ROUNDING];
    spec->quantize.division = (qdnnDivision_t)value[QDNN_QUANT_DIVISION];
    spec->quantize.range = (qdnnRange_t)value[QDNN_QUANT_RANGE];
    spec->quantize.mx_rounding = (qdnnMxRounding_t)value[QDNN_QUANT_MX_ROUNDING];
    spec->quantize.floor = quant->floor;
}

/* Checks the specification and the problem, and makes the specification normal: from here on all functions are given that. */
static qdnnStatus_t settle(request *r)
{
    const kernel_spec asked = r->spec;
    char reason[320];
    if (!kernel_spec_settle(r->row, &r->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    if (!kernel_problem_check(&asked, &r->problem, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "%s", reason);
    return QDNN_STATUS_SUCCESS;
}

/* The one check of what a quantization descriptor says: every plan, size query and one-shot call goes through it. Finds the row
 * of the operation, and the specification as requested. */
qdnnStatus_t request_read(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out)
{
    *out = (request){.spec = kernel_spec_default(), .problem = problem_of(tensor), .repeats = 1};
    CHECK_STATUS(find_kernel(operation, quant, &out->row));
    CHECK_STATUS(check_tensor(tensor));
    CHECK_STATUS(check_blocks(out));
    CHECK_STATUS(check_zero_groups(quant->values));
    set_choices(quant, &out->spec);
    CHECK_STATUS(set_groups(tensor, quant->values, &out->problem, &out->spec));
    out->spec.data = tensor->type;
    return settle(out);
}

/* The rest of a request follows from its specification and the problem. */
static qdnnStatus_t complete(const struct qdnnTensorDescriptor *tensor, request *out)
{
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return request_stack(tensor, out);
}

qdnnStatus_t request_make(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out)
{
    CHECK_STATUS(request_read(operation, tensor, quant, out));
    return complete(tensor, out);
}

/* ---- Transposed matrices ---- */

/* Whether y is w with its last two dimensions exchanged. */
static bool is_transposed(const struct qdnnTensorDescriptor *w, const struct qdnnTensorDescriptor *y)
{
    const int last = w->rank - 1;
    if (y->rank != w->rank || w->dims[last] != y->dims[last - 1] || w->dims[last - 1] != y->dims[last])
        return false;
    for (int i = 0; i < last - 1; i++)
        if (w->dims[i] != y->dims[i])
            return false;
    return true;
}

qdnnStatus_t request_make_transposed(const struct qdnnTensorDescriptor *w,
                                     const struct qdnnQuantDescriptor *quant,
                                     const struct qdnnTensorDescriptor *y, request *out)
{
    struct qdnnTensorDescriptor typed = *w;
    if (quant->values[QDNN_QUANT_BLOCK_FORMAT] == QDNN_BLOCK_NONE)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "QDNN_QUANT_BLOCK_FORMAT is 0; only weights in blocks are dequantized to the transposed "
            "matrix; fix: qdnnCreateDequantizePlan of weights that are stored as [K, N]");
    if (w->rank < 2 || !is_transposed(w, y))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "y is not w with its last two dimensions exchanged; fix: w [experts, N, K] and y "
                          "[experts, K, N], or both without experts");
    typed.type = y->type;
    CHECK_STATUS(request_make(KERNEL_DEQUANTIZE_TRANSPOSED, &typed, quant, out));
    CHECK_STATUS(check_tensor(y));
    out->problem.rows = (uint64_t)w->dims[w->rank - 2];
    out->problem.columns = (uint64_t)w->dims[w->rank - 1];
    const uint64_t matrix = out->problem.rows * out->problem.columns;
    out->problem.experts = matrix ? tensor_elements(w) / matrix : 0;
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Selected rows ---- */

qdnnStatus_t request_make_rows(const struct qdnnTensorDescriptor *table,
                               const struct qdnnQuantDescriptor *quant, const struct qdnnTensorDescriptor *y,
                               request *out)
{
    CHECK_STATUS(request_make(KERNEL_DEQUANTIZE, table, quant, out));
    CHECK_STATUS(check_tensor(y));
    kernel_problem result = problem_of(y);
    if (!kernel_takes(out->row, "row_index"))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s dequantizes all rows of a tensor; single rows have no kernel; fix: "
                          "qdnnCreateGatherPlan for plain rows, or another format",
                          out->row->name);
    if (y->type != table->type || result.columns != out->problem.columns)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "y has rows of %llu %s, and table rows of %llu %s; fix: the same for both",
                          (unsigned long long)result.columns, qdnnGetDataTypeName(y->type),
                          (unsigned long long)out->problem.columns, qdnnGetDataTypeName(table->type));
    if (out->repeats > 1)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "table is a stack of %llu matrices that each have their own groups and words; fix: "
                          "one call per matrix",
                          (unsigned long long)out->repeats);
    if (out->problem.rows == 0 && result.rows > 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "table has no rows; fix: a table of at least one row");
    result.table_rows = out->problem.rows;
    out->problem = result;
    out->spec.row_index = 1;
    out->takes_rows = true;
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return QDNN_STATUS_SUCCESS;
}

/* Rows of x as one matrix, whose groups lie within rows. */
static qdnnStatus_t check_whole_groups(const request *r)
{
    char reason[256];
    if (format_facts_of(r->row->format)->block != QDNN_BLOCK_NONE)
        return QDNN_STATUS_SUCCESS;
    if (!kernel_is_emitted(r->row, &r->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    if (r->repeats > 1 || r->problem.columns % r->spec.stored.group_size != 0)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "rows have %llu elements, and groups %llu; rows with places of their own consist of "
            "whole groups; fix: QDNN_QUANT_GROUP_SIZE that divides them",
            (unsigned long long)r->problem.columns, (unsigned long long)r->spec.stored.group_size);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t request_make_quantize_rows(const struct qdnnTensorDescriptor *x,
                                        const struct qdnnQuantDescriptor *quant, qdnnDataType_t index,
                                        const struct qdnnTensorDescriptor *table, request *out)
{
    const bool is_block = quant->values[QDNN_QUANT_BLOCK_FORMAT] != QDNN_BLOCK_NONE;
    const kernel_problem places = problem_of(table);
    CHECK_STATUS(request_make(is_block ? KERNEL_QUANTIZE_ROWS : KERNEL_DYNAMIC, x, quant, out));
    CHECK_STATUS(check_whole_groups(out));
    CHECK_STATUS(request_check_packed(table));
    if (places.columns != out->problem.columns)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "x has rows of %llu elements, and table rows of %llu; fix: the same for both",
                          (unsigned long long)out->problem.columns, (unsigned long long)places.columns);
    CHECK_STATUS(request_check_index(index, places.rows));
    out->problem.table_rows = places.rows;
    out->spec.row_index = 1;
    out->spec.index_type = (int)index;
    out->takes_rows = true;
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t request_check_index(qdnnDataType_t type, uint64_t rows)
{
    if (type != QDNN_DATA_I32 && type != QDNN_DATA_I64)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "indexType is %d; it must be QDNN_DATA_I32 or QDNN_DATA_I64", (int)type);
    if (type == QDNN_DATA_I32 && rows > INT32_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "table has %llu rows, which numbers of i32 do not reach; fix: QDNN_DATA_I64",
                          (unsigned long long)rows);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Repacking ---- */

/* The codes of both descriptors as one specification; each is legal by itself. */
static qdnnStatus_t join_codes(const request *from, const request *to, request *out)
{
    out->spec.stored.layout = from->spec.stored.layout;
    out->spec.stored.nibble_order = from->spec.stored.nibble_order;
    out->spec.stored.code = from->spec.stored.code;
    out->spec.to.layout = to->spec.stored.layout;
    out->spec.to.nibble_order = to->spec.stored.nibble_order;
    out->spec.to.code = to->spec.stored.code;
    return settle(out);
}

qdnnStatus_t request_make_repack(const struct qdnnTensorDescriptor *tensor,
                                 const struct qdnnQuantDescriptor *from, const struct qdnnQuantDescriptor *to,
                                 request *out)
{
    struct qdnnTensorDescriptor shape; /* only the dimensions count */
    request before, after;
    CHECK_STATUS(tensor_set(&shape, QDNN_DATA_F32, tensor->rank, tensor->dims, NULL));
    CHECK_STATUS(request_read(KERNEL_DEQUANTIZE, &shape, from, &before));
    CHECK_STATUS(request_read(KERNEL_DEQUANTIZE, &shape, to, &after));
    *out = (request){.spec = kernel_spec_default(),
                     .problem = problem_of(tensor),
                     .row = kernel_find_repack(before.row->format, after.row->format)};
    if (!out->row)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "codes of %s cannot be repacked as codes of %s; fix: two formats with codes of the same kind and "
            "width",
            kernel_format(before.row)->name, kernel_format(after.row)->name);
    CHECK_STATUS(join_codes(&before, &after, out));
    return complete(tensor, out);
}
