/* Chunks of more than 16 bytes (f64): two neighbouring lanes load their two chunks together, 16 bytes each of
 * the first chunk and then of the second, and exchange halves; stores do the reverse. So each request fills
 * the sectors that it touches. Values are exchanged as f32. */
#include "kernels/emit.h"

enum { HALF = 2, WHOLE = 2 * HALF /* f64 of a lane */ };

bool chunk_is_joint(qdnnDataType_t type)
{
    return chunk_bytes(type) > LOAD_BYTES;
}

static ptx_val is_second(ptx_builder *b)
{
    return ptx_setp(b, PTX_NE, ptx_and(b, ptx_laneid(b), 1), 0);
}

/* The address of this lane's half of the first chunk; its half of the second is one chunk further. */
static ptx_val half_address(ptx_builder *b, ptx_val address)
{
    ptx_val back = ptx_mul(b, ptx_and(b, ptx_laneid(b), 1), LOAD_BYTES);
    return ptx_sub(b, address, ptx_cvt(b, PTX_U64, back));
}

/* Turns a half of each of the two chunks into one whole chunk, or the reverse. */
static void exchange(ptx_builder *b, ptx_val *x)
{
    ptx_val second = is_second(b);
    for (int i = 0; i < HALF; i++) {
        ptx_val first = x[i], last = x[i + HALF];
        ptx_val got = ptx_shfl_bfly(b, ptx_selp(b, first, last, second), ptx_u32(b, 1));
        x[i] = ptx_selp(b, got, first, second);
        x[i + HALF] = ptx_selp(b, last, got, second);
    }
}

void emit_load_joint(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                     ptx_val *x)
{
    if (!chunk_is_joint(type)) {
        if (count == chunk_elements(type))
            emit_load_chunk(b, type, address, offset, x);
        else
            emit_load_run(b, type, address, offset, count, x);
        return;
    }
    ptx_val from = half_address(b, address);
    for (int i = 0; i < WHOLE; i += HALF)
        emit_load_vector(b, type, from, offset + i / HALF * (int)chunk_bytes(type), &x[i]);
}

void emit_joint_exchange(ptx_builder *b, qdnnDataType_t type, ptx_val *x)
{
    if (chunk_is_joint(type))
        exchange(b, x);
}

void emit_store_joint(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                      const ptx_val *x)
{
    if (!chunk_is_joint(type)) {
        if (count == chunk_elements(type))
            emit_store_chunk(b, type, address, offset, x);
        else
            emit_store_run(b, type, address, offset, count, x);
        return;
    }
    ptx_val to = half_address(b, address);
    for (int i = 0; i < WHOLE; i += HALF)
        emit_store_vector(b, type, to, offset + i / HALF * (int)chunk_bytes(type), &x[i], HALF);
}
