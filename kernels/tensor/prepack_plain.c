/* Packs and unpacks plain values, as codes of 16 or 32 bits. */
#include "kernels/tensor/prepack.h"

/* Where value `index` (u64) of the matrix lies. */
static ptx_val value_address(ptx_builder *b, const packing *p, ptx_val index)
{
    return ptx_at(b, p->m.q.codes, index, p->bits / 8);
}

ptx_val prepack_plain_value(ptx_builder *b, const packing *p, ptx_val n, ptx_val k)
{
    ptx_val row = p->k_in_columns ? n : k, column = p->k_in_columns ? k : n;
    ptx_val at = value_address(b, p, ptx_mad(b, row, p->m.columns, column));
    if (p->bits == 32)
        return ptx_ld_global_nc(b, PTX_U32, at, 0);
    return ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U16, at, 0));
}

/* One value per thread at a time; neighbouring threads have neighbouring values. */
void prepack_plain_unpack(ptx_builder *b, const packing *p, ptx_val step)
{
    ptx_val at = ptx_for(b, ptx_global_index64(b), ptx_mul(b, p->m.rows, p->m.columns), step);
    ptx_val row = ptx_div(b, at, p->m.columns), column = ptx_sub(b, at, ptx_mul(b, row, p->m.columns));
    ptx_val value = prepack_packed_code(b, p, p->k_in_columns ? row : column, p->k_in_columns ? column : row);
    ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, p->bits == 32 ? PTX_U32 : PTX_U16, value_address(b, p, at), 0,
              value);
    ptx_end_for(b);
}
