/* Operations on rows: from tensors and settings to a request. */
#include "driver/api/rows.h"

#include <string.h>

#include "driver/base/check.h"

qdnnStatus_t rows_check_type(const char *name, qdnnDataType_t type)
{
    if (type == 0 || type == QDNN_DATA_F32 || type == QDNN_DATA_F16 || type == QDNN_DATA_BF16)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "%s is %d; it must be QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16 or 0", name,
                      (int)type);
}

qdnnStatus_t rows_of(const char *name, const struct qdnnTensorDescriptor *tensor, row_extent *out)
{
    const int last = tensor->rank - 1;
    if (tensor->type == 0 || rows_check_type(name, tensor->type) != QDNN_STATUS_SUCCESS)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s is of type %s; it must be f32, f16 or bf16; fix: convert it", name,
                          qdnnGetDataTypeName(tensor->type));
    *out = (row_extent){.tokens = last > 0 ? (uint64_t)tensor->dims[0] : 1,
                        .heads = 1,
                        .columns = (uint64_t)tensor->dims[last]};
    int64_t stride = tensor->dims[last];
    bool is_packed = tensor->strides[last] == 1 || tensor->dims[last] <= 1;
    for (int i = last - 1; i > 0; i--) {
        is_packed = is_packed && (tensor->strides[i] == stride || tensor->dims[i] <= 1);
        out->heads *= (uint64_t)tensor->dims[i];
        stride *= tensor->dims[i];
    }
    out->stride = last > 0 && out->tokens > 1 ? (uint64_t)tensor->strides[0] : (uint64_t)stride;
    if (!is_packed || (out->tokens > 1 && out->stride < (uint64_t)stride))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s has strides that are not packed; only the first may be larger than packed; fix: copy it, "
            "or pass null strides",
            name);
    if (out->heads == 0 || out->columns == 0)
        *out = (row_extent){.heads = 1, .columns = 1};
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t rows_take_settings(const char *name, const void *from, void *to, size_t known)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size <= sizeof size || size > 65536)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s->size is %zu; set it to sizeof *%s", name,
                          size, name);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    for (size_t i = known; i < size; i++)
        if (((const char *)from)[i])
            return qdnn_error(
                QDNN_STATUS_NOT_SUPPORTED,
                "%s->size is %zu, and the members beyond %zu are not 0: this library does not know "
                "them; fix: a library as new as the header",
                name, size, known);
    return QDNN_STATUS_SUCCESS;
}

bool rows_take_quantization(kernel_operation quantized, const request *alone, request *r)
{
    const kernel_stored *s = &alone->spec.stored;
    r->row = kernel_find_operation(quantized, alone->row->format);
    r->spec.stored = *s;
    r->spec.quantize = alone->spec.quantize;
    return r->row && s->groups == QDNN_GROUPS_FLAT && !s->channels && s->layout == QDNN_LAYOUT_BYTES &&
           !s->nested && alone->repeats <= 1;
}

/* The quantization of y as what it would be by itself: its settings are those of the fused one. */
static qdnnStatus_t take_quantization(kernel_operation operation, const struct qdnnTensorDescriptor *y,
                                      const struct qdnnQuantDescriptor *quant, request *r)
{
    struct qdnnTensorDescriptor packed;
    request alone;
    CHECK_STATUS(tensor_set(&packed, y->type, y->rank, y->dims, NULL));
    CHECK_STATUS(request_make(KERNEL_DYNAMIC, &packed, quant, &alone));
    if (rows_take_quantization(operation, &alone, r))
        return QDNN_STATUS_SUCCESS;
    if (!r->row)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s is not among the formats that are quantized behind an operation: int8, int4, e4m3, "
            "e5m2, e2m1; fix: one of these, or a plan of its own that quantizes",
            alone.row->name);
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "behind an operation, scales belong to groups of a row and codes lie in bytes; fix: "
        "QDNN_GRANULARITY_GROUP, QDNN_GROUPS_FLAT and QDNN_LAYOUT_BYTES, or a plan of its own that "
        "quantizes");
}

bool rows_can_finish(request *r, char *reason, size_t reason_size)
{
    r->takes_rows = true;
    if (!kernel_spec_settle_kernel(r->row, &r->spec, reason, reason_size))
        return false;
    kernel_operands_of(r->row, &r->spec, &r->problem, r->operands);
    return true;
}

qdnnStatus_t rows_finish(request *r)
{
    char reason[512];
    return rows_can_finish(r, reason, sizeof reason) ? QDNN_STATUS_SUCCESS
                                                     : qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
}

qdnnStatus_t rows_settle(kernel_operation plain, kernel_operation quantized,
                         const struct qdnnTensorDescriptor *y, const struct qdnnQuantDescriptor *quant,
                         request *r)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == plain)
            r->row = &kernel_rows[i];
    if (quant && r->problem.m > 0)
        CHECK_STATUS(take_quantization(quantized, y, quant, r));
    return rows_finish(r);
}
