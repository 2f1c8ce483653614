/* x and weights in FP8. */
#include "kernels/tensor/fp8.h"

#include <stdio.h>

bool fp8_is_native(const ptx_sm *sm)
{
    return sm && (sm->number == 89 || sm->number == 120 || sm->number == 121);
}

ptx_mma_id fp8_instruction(qdnnDataType_t x, qdnnDataType_t w)
{
    if (x == QDNN_DATA_F8E4M3)
        return w == QDNN_DATA_F8E4M3 ? PTX_MMA_m16n8k32_f32_e4m3 : PTX_MMA_m16n8k32_f32_e4m3_e5m2;
    return w == QDNN_DATA_F8E4M3 ? PTX_MMA_m16n8k32_f32_e5m2_e4m3 : PTX_MMA_m16n8k32_f32_e5m2;
}

x_form x_form_of(ptx_builder *b, const kernel_spec *spec)
{
    const ptx_sm *sm = ptx_target(b);
    x_form form = {.bytes = 2, .unit_elements = 1, .is_async = sm && sm->number >= 80};
    if (!spec->x_fp8)
        return form;
    form.bytes = 1;
    if (fp8_is_native(sm)) {
        form.unit_elements = 2;
        return form;
    }
    form.is_async = false;
    form.from = spec->x_fp8 == QDNN_DATA_F8E4M3 ? &float_e4m3 : &float_e5m2;
    return form;
}

bool fp8_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const qdnnDataType_t storage = row->format->facts.storage;
    const char *why = NULL;
    if (storage != QDNN_DATA_F8E4M3 && storage != QDNN_DATA_F8E5M2)
        why = "x is FP8; the weights must be e4m3 or e5m2";
    else if (spec->groups != QDNN_GROUPS_DEFAULT)
        why = "x is FP8; the weights must be without scales (groups=none), those of columns are alpha";
    else if (spec->layout != QDNN_LAYOUT_BYTES)
        why = "x is FP8; the weights must be in layout bytes";
    else if (spec->addend)
        why = "x is FP8; an addend is taken with x in f16 or bf16";
    if (why)
        snprintf(error, error_size, "%s", why);
    return !why;
}

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
