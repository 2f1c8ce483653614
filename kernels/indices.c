/* Index arithmetic on u64 element numbers, without the slow 64-bit division of GPUs. */
#include "kernels/emit.h"

unsigned ceil_log2(uint64_t x)
{
    unsigned log = 0;
    while (log < 64 && (UINT64_C(1) << log) < x)
        log++;
    return log;
}

/* Division of i < 2^63 by a constant d that is not a power of two: with l = ceil(log2 d) and m =
 * floor(2^(63+l) / d) + 1, which is below 2^64, i / d = (i * m) >> (63 + l). m is too large by at most 1,
 * which adds at most i / 2^(63+l) < 1/d to the quotient, so it never reaches the next integer. */
static uint64_t division_multiplier(uint64_t divisor, unsigned log)
{
    return (uint64_t)((((unsigned __int128)1 << (63 + log)) / divisor) + 1);
}

ptx_val emit_divide(ptx_builder *b, ptx_val i, uint64_t divisor)
{
    unsigned log = ceil_log2(divisor);
    if (divisor == 1)
        return i;
    if (UINT64_C(1) << log == divisor)
        return ptx_shr(b, i, log);
    ptx_val high = ptx_mul_hi(b, i, ptx_u64(b, division_multiplier(divisor, log)));
    return ptx_shr(b, high, log - 1);
}

ptx_val emit_remainder(ptx_builder *b, ptx_val i, ptx_val quotient, uint64_t divisor)
{
    if ((divisor & (divisor - 1)) == 0)
        return ptx_and(b, i, ptx_u64(b, divisor - 1));
    return ptx_sub(b, i, ptx_mul(b, quotient, ptx_u64(b, divisor)));
}

ptx_val emit_multiply(ptx_builder *b, ptx_val i, uint64_t factor)
{
    return factor == 1 ? i : ptx_mul(b, i, ptx_u64(b, factor));
}

ptx_val emit_divide_up(ptx_builder *b, ptx_val i, uint64_t divisor)
{
    return divisor == 1 ? i : emit_divide(b, ptx_add(b, i, ptx_u64(b, divisor - 1)), divisor);
}

ptx_val emit_aligned(ptx_builder *b, ptx_val pointer, unsigned align)
{
    return ptx_setp(b, PTX_EQ, ptx_and(b, ptx_cvt(b, PTX_U32, pointer), align - 1), 0);
}

ptx_val emit_aligned_and(ptx_builder *b, ptx_val condition, ptx_val pointer, unsigned align)
{
    return align == 1 ? condition : ptx_and(b, condition, emit_aligned(b, pointer, align));
}

ptx_val emit_row_number(ptx_builder *b, int type, ptx_val list, ptx_val i, ptx_val exists)
{
    const bool is_wide = type == QDNN_DATA_I64;
    const ptx_type loaded = is_wide ? PTX_U64 : PTX_U32;
    ptx_val at = ptx_at(b, list, i, is_wide ? 8 : 4), number;
    if (exists.kind == PTX_NOTHING)
        number = ptx_ld_global_nc(b, loaded, at, 0);
    else
        number =
            ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, loaded, at, 0, is_wide ? ptx_u64(b, 0) : ptx_u32(b, 0));
    return is_wide ? number : ptx_cvt(b, PTX_U64, number);
}
