/* From descriptors to a kernel of the registry; everything that has no kernel is refused here. */
#include "driver/api/request.h"

#include "driver/base/check.h"
#include "driver/base/data_type.h"

/* Which format the storage and the kind of zero make. */
static const struct {
    qdnnDataType_t storage;
    qdnnZeroKind_t zero;
    qdnnFormat_t format;
} formats[] = {
    {QDNN_DATA_I4, QDNN_ZERO_NONE, QDNN_FORMAT_INT4},
    {QDNN_DATA_I4, QDNN_ZERO_POINT, QDNN_FORMAT_INT4_ZP},
    {QDNN_DATA_NF4, QDNN_ZERO_NONE, QDNN_FORMAT_NF4},
};

/* What has one possible value so far. */
static const struct {
    qdnnQuantAttribute_t attribute;
    int64_t value;
    const char *words;
} fixed[] = {
    {QDNN_QUANT_LAYOUT, QDNN_LAYOUT_BYTES, "QDNN_LAYOUT_BYTES"},
    {QDNN_QUANT_BLOCK_ROWS, 1, "1"},
    {QDNN_QUANT_GLOBAL_SCALE, 0, "0"},
    {QDNN_QUANT_SCALE_SWIZZLE, QDNN_SWIZZLE_NONE, "QDNN_SWIZZLE_NONE"},
};

/* The data type of a scale that kernels know; 0 for the others. */
static const qdnnDataType_t scale_types[] = {
    [QDNN_SCALE_F32] = QDNN_DATA_F32,
    [QDNN_SCALE_F16] = QDNN_DATA_F16,
    [QDNN_SCALE_BF16] = QDNN_DATA_BF16,
    [QDNN_SCALE_E8M0] = 0,
};

static qdnnStatus_t check_fixed(const struct qdnnQuantDescriptor *quant)
{
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (quant->values[fixed[i].attribute] != fixed[i].value)
            return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                              "%s is %lld; no kernel of this version takes other than %s",
                              quant_attribute_name(fixed[i].attribute),
                              (long long)quant->values[fixed[i].attribute], fixed[i].words);
    if (!scale_types[quant->values[QDNN_QUANT_SCALE_TYPE]])
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "QDNN_QUANT_SCALE_TYPE is %lld; 4-bit codes take QDNN_SCALE_F32, F16 or BF16",
                          (long long)quant->values[QDNN_QUANT_SCALE_TYPE]);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t find_kernel(kernel_operation operation, const struct qdnnQuantDescriptor *quant,
                                const kernel_row **row)
{
    int64_t storage = quant->values[QDNN_QUANT_STORAGE], zero = quant->values[QDNN_QUANT_ZERO_KIND];
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].storage == storage && formats[i].zero == zero) {
            *row = kernel_find_operation(operation, formats[i].format);
            if (*row)
                return QDNN_STATUS_SUCCESS;
        }
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "storage %s with zeros of kind %lld has no kernel; there are i4 with QDNN_ZERO_NONE or "
                      "QDNN_ZERO_POINT, and nf4 with QDNN_ZERO_NONE",
                      qdnnGetDataTypeName((qdnnDataType_t)storage), (long long)zero);
}

static qdnnStatus_t check_tensor(const struct qdnnTensorDescriptor *tensor)
{
    if (tensor->type != QDNN_DATA_F32 && tensor->type != QDNN_DATA_F16 && tensor->type != QDNN_DATA_BF16)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "the tensor is of type %s; it must be f32, f16 or bf16",
                          qdnnGetDataTypeName(tensor->type));
    if (!tensor_is_packed(tensor))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "the tensor has gaps or another order of dimensions; its strides must be packed, row-major");
    return QDNN_STATUS_SUCCESS;
}

/* Which elements share a scale, in the kernels' terms: element i is in group (i / group_size) mod channels.
 */
static qdnnStatus_t set_groups(const struct qdnnTensorDescriptor *tensor,
                               const struct qdnnQuantDescriptor *quant, kernel_spec *spec)
{
    int64_t axis = quant->values[QDNN_QUANT_AXIS];
    switch ((qdnnGranularity_t)quant->values[QDNN_QUANT_GRANULARITY]) {
    case QDNN_GRANULARITY_GROUP:
        spec->group_size = (uint64_t)quant->values[QDNN_QUANT_GROUP_SIZE];
        spec->channels = 0;
        return QDNN_STATUS_SUCCESS;
    case QDNN_GRANULARITY_TENSOR:
        spec->group_size = 1;
        spec->channels = 1;
        return QDNN_STATUS_SUCCESS;
    case QDNN_GRANULARITY_CHANNEL:
        break;
    }
    if (axis >= tensor->rank)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "QDNN_QUANT_AXIS is %lld, and the tensor has %d dimensions; it must be below that",
                          (long long)axis, tensor->rank);
    spec->group_size = spec->channels = 1;
    if (tensor_elements(tensor) == 0) /* nothing is launched, so nothing is too large */
        return QDNN_STATUS_SUCCESS;
    for (int i = (int)axis + 1; i < tensor->rank; i++)
        spec->group_size *= (uint64_t)tensor->dims[i];
    spec->channels = (uint64_t)tensor->dims[axis];
    if (spec->channels == 1) /* the whole tensor is one channel, whatever lies inside */
        spec->group_size = 1;
    else if (spec->group_size * spec->channels == tensor_elements(tensor))
        spec->channels = 0; /* each channel is one run: groups, whose kernel serves any number of them */
    return QDNN_STATUS_SUCCESS;
}

/* Which operands the kernel has, in their sizes. */
static void set_operands(request *r)
{
    const qdnnOperand_t plain = r->row->operation == KERNEL_DEQUANTIZE ? QDNN_OPERAND_Y : QDNN_OPERAND_X;
    uint64_t groups = kernel_groups(&r->spec, r->n);
    r->align[plain] = (uint8_t)(data_type_bits(r->spec.data) / 8);
    r->align[QDNN_OPERAND_SCALE] = (uint8_t)(data_type_bits(r->spec.scale) / 8);
    r->bytes[plain] = r->n * r->align[plain];
    r->bytes[QDNN_OPERAND_SCALE] = groups * r->align[QDNN_OPERAND_SCALE];
    if (r->row->keys & KERNEL_KEY_ZERO) {
        r->align[QDNN_OPERAND_ZERO] = (uint8_t)(data_type_bits(r->spec.zero) / 8);
        r->bytes[QDNN_OPERAND_ZERO] = groups * r->align[QDNN_OPERAND_ZERO];
    }
    if (r->row->operation != KERNEL_SCALE)
        r->align[QDNN_OPERAND_CODES] = 1;
    r->bytes[QDNN_OPERAND_CODES] = (r->n + 1) / 2;
}

qdnnStatus_t request_make(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out)
{
    const int64_t *value = quant->values;
    *out = (request){.spec = kernel_spec_default(), .n = tensor_elements(tensor)};
    CHECK_STATUS(check_fixed(quant));
    CHECK_STATUS(find_kernel(operation, quant, &out->row));
    CHECK_STATUS(check_tensor(tensor));
    CHECK_STATUS(set_groups(tensor, quant, &out->spec));
    out->spec.data = tensor->type;
    out->spec.scale = scale_types[value[QDNN_QUANT_SCALE_TYPE]];
    out->spec.zero = (qdnnDataType_t)value[QDNN_QUANT_ZERO_TYPE];
    out->spec.nibble_order = (qdnnNibbleOrder_t)value[QDNN_QUANT_NIBBLE_ORDER];
    out->spec.rounding = (qdnnRounding_t)value[QDNN_QUANT_ROUNDING];
    out->spec.division = (qdnnDivision_t)value[QDNN_QUANT_DIVISION];
    out->spec.floor = quant->floor;
    char reason[256];
    if (!kernel_spec_check(out->row, &out->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s", reason);
    out->spec = kernel_spec_normal(out->row, &out->spec);
    set_operands(out);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetQuantizedSizes(qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t tensor,
                                   size_t *codesBytes, size_t *scaleBytes, size_t *zeroBytes)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(tensor);
    request r;
    CHECK_STATUS(request_make(KERNEL_QUANTIZE, tensor, quant, &r));
    if (codesBytes)
        *codesBytes = r.bytes[QDNN_OPERAND_CODES];
    if (scaleBytes)
        *scaleBytes = r.bytes[QDNN_OPERAND_SCALE];
    if (zeroBytes)
        *zeroBytes = r.bytes[QDNN_OPERAND_ZERO];
    return QDNN_STATUS_SUCCESS;
}
