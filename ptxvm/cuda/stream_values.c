/* Stream-ordered waiting for, and writing of, values in memory. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static CUresult check_op(CUcontext context, const CUstreamBatchMemOpParams *op)
{
    bool wide =
        op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    bool wait =
        op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    if (op->operation == CU_STREAM_MEM_OP_BARRIER)
        return CUDA_SUCCESS;
    if (op->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
        return CUDA_ERROR_NOT_SUPPORTED;
    if ((int)op->operation < 1 || op->operation > CU_STREAM_MEM_OP_BARRIER)
        return CUDA_ERROR_INVALID_VALUE;
    if (op->waitValue.flags & ~(wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH : 1u))
        return CUDA_ERROR_INVALID_VALUE;
    if (wait && op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED;
    size_t bytes = wide ? 8 : 4;
    if (op->waitValue.address % bytes || !copy_reaches(context, op->waitValue.address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamBatchMemOp_v2(CUstream handle, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags)
{
    CUstream s;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    if (!n || n > 256 || !ops || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n && !result; i++)
        result = check_op(s->context, &ops[i]);
    if (result)
        return result;
    cuda_work work = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                      .context = s->context,
                      .batch = {.count = n, .ops = malloc(n * sizeof *ops)}};
    if (!work.batch.ops)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(work.batch.ops, ops, n * sizeof *ops);
    return stream_submit(s, &work);
}

static CUresult one(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                    unsigned flags)
{
    CUstreamBatchMemOpParams op = {.waitValue = {.operation = type, .address = address, .flags = flags}};
    if (type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64)
        op.waitValue.value64 = value;
    else
        op.waitValue.value = (uint32_t)value;
    return do_cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CUresult do_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult do_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult do_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CUresult do_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}
