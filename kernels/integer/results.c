/* From a sum to the stored result: the sum itself, a code, or a scaled number as in all products. */
#include "kernels/integer/integer.h"

#include "kernels/emit.h"
#include "kernels/formats/format.h"

gemm_args int_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    gemm_args a = {.all = kernel_declare(b, row, spec)};
    a.m = a.all.number[NUMBER_M];
    a.outputs = a.all.number[NUMBER_ROWS];
    a.n = a.y_stride = spec->epilogue.gated ? ptx_shr(b, a.outputs, 1) : a.outputs;
    a.k = a.x_stride = a.all.number[NUMBER_COLUMNS];
    return a;
}

/* ---- Rows and experts ---- */

row_tile int_rows_of_block(ptx_builder *b, const kernel_spec *spec, const gemm_args *args, unsigned rows)
{
    if (spec->product.grouped)
        return row_tile_of_block(b, args);
    row_tile t = {.first = ptx_mul_wide(b, ptx_ctaid_y(b), ptx_u32(b, rows))};
    t.count = ptx_sub(b, args->m, t.first);
    return t;
}

ptx_val int_x_row(ptx_builder *b, const kernel_spec *spec, const int_matrix *x, const row_tile *rows, int i)
{
    if (!spec->product.grouped)
        return int_row_of_block(b, x, rows->first, i);
    ptx_val place = ptx_u64(b, (uint64_t)i), row = row_tile_row(b, rows, place, row_tile_has(b, rows, place));
    return int_row_that_exists(b, x, x_row_of(b, spec, row));
}

int_matrix int_weights_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args,
                             const row_tile *rows)
{
    ptx_val base = args->all.operand[QDNN_OPERAND_CODES];
    if (spec->product.grouped) {
        ptx_val pitch = ptx_cvt(b, PTX_U64, int_row_bytes(b, spec->integer.w_codes, args->k));
        base = ptx_mad(b, rows->expert, ptx_mul(b, args->outputs, pitch), base);
    }
    return int_matrix_begin(b, spec->integer.w_codes, base, args->outputs, args->k);
}

ptx_val int_output_of_stack(ptx_builder *b, const gemm_args *args, const row_tile *rows, ptx_val output)
{
    return rows->expert.kind == PTX_NOTHING ? output : ptx_mad(b, rows->expert, args->outputs, output);
}

/* ---- Results ---- */

static ptx_val number_s32(ptx_builder *b, const gemm_args *args, kernel_number number)
{
    return ptx_as(b, PTX_S32, ptx_cvt(b, PTX_U32, args->all.number[number]));
}

static bool is_scaled(const kernel_spec *spec)
{
    return spec->integer.result == QDNN_DATA_F32;
}

static bool is_requantized(const kernel_spec *spec)
{
    return spec->integer.result == QDNN_DATA_I8 || spec->integer.result == QDNN_DATA_U8;
}

int_results int_results_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args)
{
    int_results r = {.spec = spec, .args = args};
    if (spec->integer.x_zero)
        r.x_zero = number_s32(b, args, NUMBER_X_ZERO);
    if (spec->integer.w_zero)
        r.w_zero = number_s32(b, args, NUMBER_W_ZERO);
    if (is_requantized(spec))
        r.y_zero = number_s32(b, args, NUMBER_Y_ZERO);
    if (spec->integer.x_zero && spec->integer.w_zero)
        r.k_zeros =
            ptx_mul(b, ptx_mul(b, r.x_zero, r.w_zero), ptx_as(b, PTX_S32, ptx_cvt(b, PTX_U32, args->k)));
    if (is_scaled(spec)) {
        r.epilogue = epilogue_begin(b, spec, args);
        r.epilogue.keeps_zero = true;
    }
    return r;
}

int_results int_results_of_rows(ptx_builder *b, const kernel_spec *spec, const gemm_args *args,
                                const row_tile *rows)
{
    int_results r = int_results_begin(b, spec, args);
    r.rows = *rows;
    return r;
}

static ptx_val load_of_column(ptx_builder *b, const int_results *r, ptx_type type, qdnnOperand_t operand,
                              ptx_val n)
{
    return ptx_ld_global_nc(b, type, ptx_at(b, r->args->all.operand[operand], n, 4), 0);
}

int_column int_column_begin(ptx_builder *b, const int_results *r, ptx_val n)
{
    const kernel_spec *spec = r->spec;
    int_column c = {.n = n};
    if (spec->integer.bias_i32)
        c.bias = load_of_column(b, r, PTX_S32, QDNN_OPERAND_BIAS, n);
    if (is_requantized(spec))
        c.multiplier = spec->integer.multipliers ? load_of_column(b, r, PTX_F32, QDNN_OPERAND_MULTIPLIER, n)
                                                 : r->args->all.number[NUMBER_MULTIPLIER];
    for (int i = 0; i <= (spec->epilogue.gated ? 1 : 0) && is_scaled(spec) && !int_is_grouped(spec); i++) {
        ptx_val output = int_output_of_stack(b, r->args, &r->rows, i ? ptx_add(b, n, r->args->n) : n);
        c.scale[i] = load_of_column(b, r, PTX_F32, QDNN_OPERAND_SCALE, output);
    }
    return c;
}

ptx_val int_without_zeros(ptx_builder *b, const int_results *r, ptx_val sum, ptx_val x_sum, ptx_val w_sum)
{
    if (r->spec->integer.w_zero)
        sum = ptx_sub(b, sum, ptx_mul(b, r->w_zero, x_sum));
    if (r->spec->integer.x_zero)
        sum = ptx_sub(b, sum, ptx_mul(b, r->x_zero, w_sum));
    if (r->spec->integer.w_zero && r->spec->integer.x_zero)
        sum = ptx_add(b, sum, r->k_zeros);
    return sum;
}

/* Codes and zero points are small, so the rounded product can be clamped to a moderate range before the zero
 * point is added. */
static ptx_val requantized(ptx_builder *b, const int_results *r, const int_column *c, ptx_val sum)
{
    ptx_val product = ptx_mul(b, ptx_cvt_rn(b, PTX_F32, sum), c->multiplier);
    ptx_val rounded = ptx_clamp_s32(b, round_s32(b, r->spec, product), -65536, 65535);
    ptx_val moved = ptx_add(b, rounded, r->y_zero);
    return r->spec->integer.result == QDNN_DATA_U8 ? ptx_clamp_s32(b, moved, 0, 255)
                                                   : ptx_clamp_s32(b, moved, -128, 127);
}

/* Each row has a scale of x. Sums of groups start at +0, so they are never -0: none of their products is too small for f32. */
static ptx_val scaled(ptx_builder *b, const int_results *r, ptx_val of_x, ptx_val of_w, ptx_val sum)
{
    if (of_w.kind == PTX_NOTHING)
        return ptx_mul(b, sum, of_x);
    ptx_val first = r->spec->integer.w_scale_first ? of_w : of_x,
            second = r->spec->integer.w_scale_first ? of_x : of_w;
    return ptx_mul(b, ptx_mul(b, ptx_cvt_rn(b, PTX_F32, sum), first), second);
}

void int_store(ptx_builder *b, const int_results *r, const int_column *c, ptx_val m, const ptx_val *sums)
{
    if (!is_scaled(r->spec)) {
        int_store_at(b, r, c, ptx_mad(b, m, r->args->y_stride, c->n), sums[0]);
        return;
    }
    ptx_val at = ptx_at(b, r->args->all.operand[QDNN_OPERAND_X_SCALE], x_row_of(b, r->spec, m), 4);
    ptx_val of_x = ptx_ld_global_nc(b, PTX_F32, at, 0), s[2] = {{0}};
    for (int i = 0; i <= (r->spec->epilogue.gated ? 1 : 0); i++)
        s[i] = row_tile_sum(b, &r->rows, scaled(b, r, of_x, c->scale[i], sums[i]));
    epilogue_store(b, &r->epilogue, m, c->n, s, r->rows.expert);
}

void int_store_at(ptx_builder *b, const int_results *r, const int_column *c, ptx_val at, ptx_val sum)
{
    ptx_val y = r->args->all.operand[QDNN_OPERAND_Y];
    if (r->spec->integer.bias_i32)
        sum = ptx_add(b, sum, c->bias);
    if (is_requantized(r->spec))
        ptx_st_global_u8(b, ptx_add(b, y, at), 0, requantized(b, r, c, sum));
    else
        ptx_st_global(b, ptx_at(b, y, at, 4), 0, sum);
}
