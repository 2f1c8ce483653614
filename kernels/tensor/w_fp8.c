/* Weights in FP8 in the tile kernel. */
#include "kernels/tensor/w_fp8.h"

const kernel_row *fp8_pairs_row(void)
{
    return kernel_find("matmul_plain_f16");
}

void fp8_w_put_slowly(ptx_builder *b, const tile *t, ptx_val k0, ptx_val tile)
{
    const unsigned of_line = 2 * t->shape.k;
    const bool k_in_columns = t->spec->reduction == KERNEL_K_COLUMNS;
    const w_tile *w = &t->w;
    ptx_val i = ptx_for(b, ptx_tid_x(b), ptx_u32(b, of_line * t->shape.n), TILE_THREADS);
    /* neighbouring threads take neighbours in memory */
    ptx_val line = k_in_columns ? ptx_shr(b, i, ceil_log2(of_line)) : ptx_and(b, i, (int)t->shape.n - 1);
    ptx_val at = k_in_columns ? ptx_and(b, i, (int)of_line - 1) : ptx_shr(b, i, ceil_log2(t->shape.n));
    ptx_val n = ptx_cvt(b, PTX_U64, w_output(b, w, line, 1)), value = ptx_var(b, ptx_u32(b, 0));
    ptx_val k = ptx_cvt(b, PTX_U64, ptx_mad(b, k0, 2, at));
    ptx_val row = k_in_columns ? n : k, column = k_in_columns ? k : n;
    ptx_val columns = k_in_columns ? t->args.k : t->args.outputs;
    ptx_if(b, ptx_setp(b, PTX_LT, k, t->args.k));
    ptx_val from = ptx_at(b, w->codes, ptx_mad(b, row, columns, column), 1);
    ptx_assign(b, value, ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U8, from, 0)));
    ptx_end_if(b);
    ptx_val place = ptx_add(b, w_piece_address(b, w, tile, line, ptx_shr(b, at, 4)), ptx_and(b, at, 15));
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U8, place, 0, value);
    ptx_end_for(b);
}
