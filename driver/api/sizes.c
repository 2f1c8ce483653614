/* The memory that the quantized form of a tensor takes. */
#include "driver/api/request.h"
#include "driver/base/check.h"

/* Every format can be dequantized, so the sizes are taken from that operation. */
static qdnnStatus_t operands_of(qdnnTensorDescriptor_t tensor, qdnnQuantDescriptor_t quant, request *r)
{
    CHECK_STATUS(request_make(KERNEL_DEQUANTIZE, tensor, quant, r));
    r->operands[QDNN_OPERAND_X] = r->operands[QDNN_OPERAND_Y];
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetOperandSize(qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t tensor,
                                qdnnOperand_t operand, size_t *bytes)
{
    CALL_BEGIN_WITH(quant, tensor, operand, bytes);
    CHECK_NOT_NULL(quant);
    CHECK_TENSOR(tensor);
    CHECK_NOT_NULL(bytes);
    if ((unsigned)operand >= QDNN_OPERAND_COUNT)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "operand is %d; it must be 0 to %d",
                          (int)operand, QDNN_OPERAND_COUNT - 1);
    request r;
    CHECK_STATUS(operands_of(tensor, quant, &r));
    *bytes = r.operands[operand].bytes;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetQuantizedSizes(qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t tensor,
                                   size_t *codesBytes, size_t *scaleBytes, size_t *zeroBytes)
{
    CALL_BEGIN_WITH(quant, tensor, codesBytes, scaleBytes, zeroBytes);
    CHECK_NOT_NULL(quant);
    CHECK_TENSOR(tensor);
    request r;
    CHECK_STATUS(operands_of(tensor, quant, &r));
    if (codesBytes)
        *codesBytes = r.operands[QDNN_OPERAND_CODES].bytes;
    if (scaleBytes)
        *scaleBytes = r.operands[QDNN_OPERAND_SCALE].bytes;
    if (zeroBytes)
        *zeroBytes = r.operands[QDNN_OPERAND_ZERO].bytes;
    return QDNN_STATUS_SUCCESS;
}
