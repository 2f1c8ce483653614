/* Shared by the searches of K-quants: codes as integral f32, and how they become bytes. */
#include "kernels/formats/search.h"

/* 1.5 * 2^23: adding a number to it rounds the number to an integer, which is then in the low bits. */
#define ROUNDER 12582912.0f

ptx_val search_nearest(ptx_builder *b, ptx_val v, float low, float high)
{
    ptx_val within = ptx_clamp(b, v, ptx_f32(b, low), ptx_f32(b, high));
    return ptx_sub(b, ptx_add(b, within, ptx_f32(b, ROUNDER)), ptx_f32(b, ROUNDER));
}

ptx_val search_finite_or_zero(ptx_builder *b, ptx_val x)
{
    return ptx_selp(b, x, ptx_f32(b, 0), ptx_testp_finite(b, x));
}

void search_words(ptx_builder *b, const ptx_val *codes, unsigned count, ptx_val shift, ptx_val *words)
{
    ptx_val rounder = ptx_add(b, shift, ptx_f32(b, ROUNDER)), bytes[4];
    for (unsigned i = 0; i < count; i += 4) {
        for (unsigned k = 0; k < 4; k++)
            bytes[k] = ptx_as(b, PTX_U32, ptx_add(b, codes[i + k], rounder));
        ptx_val low = ptx_prmt(b, bytes[0], bytes[1], 0x5540);
        words[i / 4] = ptx_prmt(b, low, ptx_prmt(b, bytes[2], bytes[3], 0x5540), 0x5410);
    }
}

ptx_val search_integer(ptx_builder *b, ptx_val code, float shift)
{
    return ptx_and(b, ptx_as(b, PTX_U32, ptx_add(b, code, ptx_f32(b, ROUNDER + shift))), 0xFF);
}

void search_put_byte(ptx_builder *b, const sub_block *sub, ptx_val byte, int offset, ptx_val x)
{
    ptx_val address = ptx_add(b, sub->lanes->block, byte);
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U8, address, offset, x);
}
