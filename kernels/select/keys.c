/* Elements as keys. */
#include "kernels/select/select.h"

/* The addition makes -0 +0, and every NaN 7FFFFFFF, which is the largest of all; one more makes it 0. */
ptx_val key_of(ptx_builder *b, ptx_val x, ptx_val index)
{
    ptx_val bits = ptx_as(b, PTX_U32, ptx_add(b, x, ptx_f32(b, 0)));
    ptx_val sign = ptx_as(b, PTX_U32, ptx_shr(b, ptx_as(b, PTX_S32, bits), 31));
    ptx_val ordered = ptx_xor(b, bits, ptx_or(b, sign, 0x80000000u));
    ptx_val low = ptx_not(b, index);
    return ptx_pack2(b, PTX_U64, low, ptx_add(b, ordered, 1));
}

ptx_val key_index(ptx_builder *b, ptx_val key)
{
    ptx_val half[2];
    ptx_unpack(b, PTX_U32, key, half, 2);
    return ptx_not(b, half[0]);
}

ptx_val key_value(ptx_builder *b, ptx_val key)
{
    ptx_val half[2];
    ptx_unpack(b, PTX_U32, key, half, 2);
    ptx_val ordered = ptx_sub(b, half[1], 1);
    ptx_val sign = ptx_as(b, PTX_U32, ptx_shr(b, ptx_as(b, PTX_S32, ordered), 31));
    return ptx_as(b, PTX_F32, ptx_xor(b, ordered, ptx_or(b, ptx_not(b, sign), 0x80000000u)));
}

static ptx_val swapped(ptx_builder *b, ptx_val key, unsigned distance)
{
    ptx_val half[2];
    ptx_unpack(b, PTX_U32, key, half, 2);
    ptx_val low = ptx_shfl_bfly(b, half[0], distance), high = ptx_shfl_bfly(b, half[1], distance);
    return ptx_pack2(b, PTX_U64, low, high);
}

ptx_val key_largest(ptx_builder *b, ptx_val key, ptx_val shared)
{
    for (unsigned distance = 16; distance > 0; distance /= 2)
        key = ptx_max(b, key, swapped(b, key, distance));
    ptx_val lane = ptx_laneid(b), warp = ptx_shr(b, ptx_tid_x(b), 5);
    ptx_if(b, ptx_setp(b, PTX_EQ, lane, 0));
    ptx_st_shared(b, ptx_at(b, shared, warp, 8), 0, key);
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val best = ptx_ld_shared(b, PTX_U64, shared, 0);
    for (int i = 1; i < SELECT_WARPS; i++)
        best = ptx_max(b, best, ptx_ld_shared(b, PTX_U64, shared, 8 * i));
    return best;
}

ptx_val select_tree(ptx_builder *b, ptx_val lane_sum)
{
    for (unsigned half = 16; half > 0; half /= 2)
        lane_sum = ptx_add(b, lane_sum, ptx_shfl_bfly(b, lane_sum, half));
    return ptx_add(b, lane_sum, ptx_f32(b, 0));
}
