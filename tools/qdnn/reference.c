/* Translates a descriptor for host_ref, using only the public attributes: independent of how the library
 * interprets them. */
#include "tools/qdnn/tool.h"

static int64_t get(const tensor *t, qdnnQuantAttribute_t attribute)
{
    int64_t value = 0;
    qdnnGetQuantAttribute(t->quant, attribute, &value);
    return value;
}

/* Which elements share a scale. */
static void set_groups(const tensor *t, ref_quant_spec *s)
{
    s->group_size = 1;
    switch ((qdnnGranularity_t)get(t, QDNN_QUANT_GRANULARITY)) {
    case QDNN_GRANULARITY_NONE:
        s->no_scale = true;
        return;
    case QDNN_GRANULARITY_TENSOR:
        s->groups = QDNN_GROUPS_FLAT;
        s->channels = 1;
        return;
    case QDNN_GRANULARITY_CHANNEL:
        s->groups = QDNN_GROUPS_FLAT;
        s->channels = t->how.dims[get(t, QDNN_QUANT_AXIS)];
        for (int i = (int)get(t, QDNN_QUANT_AXIS) + 1; i < t->how.rank; i++)
            s->group_size *= t->how.dims[i];
        return;
    case QDNN_GRANULARITY_GROUP:
        s->groups = (qdnnGroups_t)get(t, QDNN_QUANT_GROUPS);
        s->group_size = get(t, QDNN_QUANT_GROUP_SIZE);
        s->group_rows = get(t, QDNN_QUANT_BLOCK_ROWS);
        return;
    }
}

ref_quant_spec reference_spec(const tensor *t)
{
    ref_quant_spec s = {.data = QDNN_DATA_F32,
                        .block = (qdnnBlockFormat_t)get(t, QDNN_QUANT_BLOCK_FORMAT),
                        .storage = (qdnnDataType_t)get(t, QDNN_QUANT_STORAGE),
                        .bits = (int)get(t, QDNN_QUANT_CODE_BITS),
                        .code = (qdnnCodeKind_t)get(t, QDNN_QUANT_CODE_KIND),
                        .layout = (qdnnLayout_t)get(t, QDNN_QUANT_LAYOUT),
                        .nibble_order = (qdnnNibbleOrder_t)get(t, QDNN_QUANT_NIBBLE_ORDER),
                        .group_index = get(t, QDNN_QUANT_GROUP_INDEX),
                        .scale_order = (qdnnScaleOrder_t)get(t, QDNN_QUANT_SCALE_ORDER),
                        .scale_swizzle = (qdnnScaleSwizzle_t)get(t, QDNN_QUANT_SCALE_SWIZZLE),
                        .scale = (qdnnScaleType_t)get(t, QDNN_QUANT_SCALE_TYPE),
                        .nested = get(t, QDNN_QUANT_NESTED),
                        .global_scale = (int)get(t, QDNN_QUANT_GLOBAL_SCALE),
                        .mx_rounding = (qdnnMxRounding_t)get(t, QDNN_QUANT_MX_ROUNDING),
                        .zero_kind = (qdnnZeroKind_t)get(t, QDNN_QUANT_ZERO_KIND),
                        .zero = (qdnnDataType_t)get(t, QDNN_QUANT_ZERO_TYPE),
                        .zero_packed = get(t, QDNN_QUANT_ZERO_PACKED),
                        .zero_minus_one = get(t, QDNN_QUANT_ZERO_MINUS_ONE),
                        .zero_wraps = get(t, QDNN_QUANT_ZERO_WRAPS),
                        .range = (qdnnRange_t)get(t, QDNN_QUANT_RANGE),
                        .rounding = (qdnnRounding_t)get(t, QDNN_QUANT_ROUNDING),
                        .division = (qdnnDivision_t)get(t, QDNN_QUANT_DIVISION)};
    qdnnGetQuantFloor(t->quant, &s.floor);
    set_groups(t, &s);
    return s;
}

ref_arrays reference_arrays(const tensor *t)
{
    return (ref_arrays){.codes = t->host[QDNN_OPERAND_CODES],
                        .scale = t->host[QDNN_OPERAND_SCALE],
                        .zero = t->host[QDNN_OPERAND_ZERO],
                        .global_scale = t->host[QDNN_OPERAND_GLOBAL_SCALE],
                        .group_index = t->host[QDNN_OPERAND_GROUP_INDEX],
                        .nested_map = t->host[QDNN_OPERAND_NESTED_MAP],
                        .nested_scale = t->host[QDNN_OPERAND_NESTED_SCALE],
                        .nested_offset = t->host[QDNN_OPERAND_NESTED_OFFSET]};
}

void reference_dequantize(const tensor *t, float *y)
{
    ref_quant_spec spec = reference_spec(t);
    ref_arrays arrays = reference_arrays(t);
    ref_dequantize(&spec, t->rows, t->columns, &arrays, y);
}
