/* The weights of a file, for host_ref. */
#include "tools/qdnn/tool.h"
#include "tools/reference.h"

ref_quant_spec reference_spec(const tensor *t)
{
    return reference_of(t->quant, t->how.rank, t->how.dims);
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
