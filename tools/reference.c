/* Translates quantization descriptors for host_ref, using only the public attributes: independent of how the library
 * interprets them. */
#include "tools/reference.h"

static int64_t get(qdnnQuantDescriptor_t quant, qdnnQuantAttribute_t attribute)
{
    int64_t value = 0;
    qdnnGetQuantAttribute(quant, attribute, &value);
    return value;
}

/* Which elements share a scale. */
static void set_groups(qdnnQuantDescriptor_t quant, int rank, const int64_t *dims, ref_quant_spec *s)
{
    s->group_size = 1;
    switch ((qdnnGranularity_t)get(quant, QDNN_QUANT_GRANULARITY)) {
    case QDNN_GRANULARITY_NONE:
        s->no_scale = true;
        return;
    case QDNN_GRANULARITY_TENSOR:
        s->groups = QDNN_GROUPS_FLAT;
        s->channels = 1;
        return;
    case QDNN_GRANULARITY_CHANNEL:
        s->groups = QDNN_GROUPS_FLAT;
        s->channels = dims[get(quant, QDNN_QUANT_AXIS)];
        for (int i = (int)get(quant, QDNN_QUANT_AXIS) + 1; i < rank; i++)
            s->group_size *= dims[i];
        return;
    case QDNN_GRANULARITY_GROUP:
        s->groups = (qdnnGroups_t)get(quant, QDNN_QUANT_GROUPS);
        s->group_size = get(quant, QDNN_QUANT_GROUP_SIZE);
        s->group_rows = get(quant, QDNN_QUANT_BLOCK_ROWS);
        return;
    }
}

ref_quant_spec reference_of(qdnnQuantDescriptor_t quant, int rank, const int64_t *dims)
{
    ref_quant_spec s = {.data = QDNN_DATA_F32,
                        .block = (qdnnBlockFormat_t)get(quant, QDNN_QUANT_BLOCK_FORMAT),
                        .storage = (qdnnDataType_t)get(quant, QDNN_QUANT_STORAGE),
                        .bits = (int)get(quant, QDNN_QUANT_CODE_BITS),
                        .code = (qdnnCodeKind_t)get(quant, QDNN_QUANT_CODE_KIND),
                        .layout = (qdnnLayout_t)get(quant, QDNN_QUANT_LAYOUT),
                        .nibble_order = (qdnnNibbleOrder_t)get(quant, QDNN_QUANT_NIBBLE_ORDER),
                        .group_index = get(quant, QDNN_QUANT_GROUP_INDEX),
                        .scale_order = (qdnnScaleOrder_t)get(quant, QDNN_QUANT_SCALE_ORDER),
                        .scale_swizzle = (qdnnScaleSwizzle_t)get(quant, QDNN_QUANT_SCALE_SWIZZLE),
                        .scale = (qdnnScaleType_t)get(quant, QDNN_QUANT_SCALE_TYPE),
                        .nested = get(quant, QDNN_QUANT_NESTED),
                        .global_scale = (int)get(quant, QDNN_QUANT_GLOBAL_SCALE),
                        .mx_rounding = (qdnnMxRounding_t)get(quant, QDNN_QUANT_MX_ROUNDING),
                        .zero_kind = (qdnnZeroKind_t)get(quant, QDNN_QUANT_ZERO_KIND),
                        .zero = (qdnnDataType_t)get(quant, QDNN_QUANT_ZERO_TYPE),
                        .zero_packed = get(quant, QDNN_QUANT_ZERO_PACKED),
                        .zero_minus_one = get(quant, QDNN_QUANT_ZERO_MINUS_ONE),
                        .zero_wraps = get(quant, QDNN_QUANT_ZERO_WRAPS),
                        .range = (qdnnRange_t)get(quant, QDNN_QUANT_RANGE),
                        .rounding = (qdnnRounding_t)get(quant, QDNN_QUANT_ROUNDING),
                        .division = (qdnnDivision_t)get(quant, QDNN_QUANT_DIVISION)};
    qdnnGetQuantFloor(quant, &s.floor);
    set_groups(quant, rank, dims, &s);
    return s;
}
