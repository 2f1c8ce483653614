/* Products by dp4a: a warp computes one column of w with a few rows of x, 512 bytes of each at a time (fewer if rows are not 16-byte
 * aligned). */
#include "kernels/integer/integer.h"

#include "kernels/emit.h"

enum { WARPS = INT_LINES_BLOCK / 32, ONES = 0x01010101 };

unsigned int_lines_columns(const kernel_spec *spec)
{
    return int_is_grouped(spec) ? 4 * WARPS : WARPS;
}

static ptx_val zero_variable(ptx_builder *b)
{
    return ptx_var(b, ptx_s32(b, 0));
}

/* dp4a of nibbles that are 16 times too large on both sides: the sum of up to 32 products does not overflow,
 * and the factor is then removed. */
void int_add_nibbles(ptx_builder *b, ptx_val sum, int words, const ptx_val x[4], const ptx_val even[4],
                     const ptx_val odd[4])
{
    ptx_val part = ptx_s32(b, 0);
    for (int j = 0; j < words; j++) {
        ptx_val x_even, x_odd;
        int_spread(b, x[j], &x_even, &x_odd);
        part = ptx_dp4a(b, ptx_as(b, PTX_S32, x_even), ptx_as(b, PTX_S32, even[j]), part);
        part = ptx_dp4a(b, ptx_as(b, PTX_S32, x_odd), ptx_as(b, PTX_S32, odd[j]), part);
    }
    ptx_val whole = ptx_shr(b, part, 8);
    ptx_into(b, sum);
    ptx_add(b, sum, whole);
}

static void add_bytes(ptx_builder *b, const int_lines *l, int i, int words, const ptx_val x[4],
                      const ptx_val w[4])
{
    for (int j = 0; j < words; j++) {
        ptx_val a = int_typed(b, l->x.type, x[j]), c = int_typed(b, l->w.type, w[j]);
        ptx_into(b, l->sums[i]);
        ptx_dp4a(b, a, c, l->sums[i]);
        if (l->spec->integer.w_zero) {
            ptx_into(b, l->x_sums[i]);
            ptx_dp4a(b, a, ptx_s32(b, ONES), l->x_sums[i]);
        }
        if (l->spec->integer.x_zero && i == 0) {
            ptx_into(b, l->w_sum);
            ptx_dp4a(b, c, ptx_s32(b, ONES), l->w_sum);
        }
    }
}

static ptx_val code_at(ptx_builder *b, qdnnDataType_t type, ptx_val row, ptx_val at)
{
    ptx_val from = ptx_add(b, row, ptx_cvt(b, PTX_U64, at));
    return ptx_as(b, PTX_S32, ptx_ld_global_nc(b, type == QDNN_DATA_U8 ? PTX_U8 : PTX_S8, from, 0));
}

static void add_one(ptx_builder *b, const int_lines *l, ptx_val w_row, const ptx_val *x_rows, ptx_val at)
{
    ptx_val w = code_at(b, l->w.type, w_row, at);
    for (int i = 0; i < l->rows; i++) {
        ptx_val x = code_at(b, l->x.type, x_rows[i], at);
        ptx_assign(b, l->sums[i], ptx_mad(b, x, w, l->sums[i]));
        if (l->spec->integer.w_zero)
            ptx_assign(b, l->x_sums[i], ptx_add(b, l->x_sums[i], x));
    }
    if (l->spec->integer.x_zero)
        ptx_assign(b, l->w_sum, ptx_add(b, l->w_sum, w));
}

/* Adds 4 or 16 bytes. */
static void add_words(ptx_builder *b, const int_lines *l, int words, ptx_val w_row, const ptx_val *x_rows,
                      ptx_val at)
{
    ptx_val w[4], x[INT_LINES_MAX][4], even[4], odd[4], skipped = ptx_cvt(b, PTX_U64, at);
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_add(b, w_row, skipped), 0, w, words);
    for (int i = 0; i < l->rows; i++)
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_add(b, x_rows[i], skipped), 0, x[i], words);
    for (int j = 0; j < words && l->w.type == QDNN_DATA_I4; j++)
        int_spread(b, w[j], &even[j], &odd[j]);
    for (int i = 0; i < l->rows; i++) {
        if (l->w.type == QDNN_DATA_I4)
            int_add_nibbles(b, l->sums[i], words, x[i], even, odd);
        else
            add_bytes(b, l, i, words, x[i], w);
    }
}

/* The lanes take 16, 4 or 1 bytes each at a time. The length of the rows is a multiple of that, so no lane reads past their end. */
static void add_rows(ptx_builder *b, const int_lines *l, int bytes, ptx_val w_row, const ptx_val *x_rows)
{
    ptx_val lane = ptx_laneid(b), first = bytes > 1 ? ptx_mul(b, lane, bytes) : lane;
    ptx_val at = ptx_for(b, first, l->w.pitch, 32 * bytes);
    if (bytes > 1)
        add_words(b, l, bytes / 4, w_row, x_rows, at);
    else
        add_one(b, l, w_row, x_rows, at);
    ptx_end_for(b);
}

/* Lane 0 subtracts what the padding has added. */
static void subtract_padding(ptx_builder *b, const int_lines *l, ptx_val w_row, const ptx_val *x_rows)
{
    ptx_if(b, ptx_setp_and(b, PTX_EQ, ptx_laneid(b), ptx_u32(b, 0), int_has_padding(b, l->args.k)));
    for (int i = 0; i < l->rows; i++) {
        ptx_val products = int_padding_products(b, l->args.k, x_rows[i], w_row);
        ptx_assign(b, l->sums[i], ptx_sub(b, l->sums[i], products));
    }
    ptx_end_if(b);
}

/* By the widest loads that the alignment of the rows allows; nibbles are stored in words at least. */
void int_lines_add(ptx_builder *b, const int_lines *l, ptx_val w_row, const ptx_val *x_rows)
{
    const bool has_bytes = l->w.type != QDNN_DATA_I4;
    ptx_uniform(b);
    ptx_if(b, int_are_aligned(b, &l->x, &l->w, INT_CHUNK));
    add_rows(b, l, INT_CHUNK, w_row, x_rows);
    ptx_else(b);
    if (has_bytes) {
        ptx_uniform(b);
        ptx_if(b, int_are_aligned(b, &l->x, &l->w, 4));
    }
    add_rows(b, l, 4, w_row, x_rows);
    if (has_bytes) {
        ptx_else(b);
        add_rows(b, l, 1, w_row, x_rows);
        ptx_end_if(b);
    }
    ptx_end_if(b);
    if (!has_bytes)
        subtract_padding(b, l, w_row, x_rows);
}

ptx_val int_lines_join(ptx_builder *b, ptx_val sum)
{
    for (int distance = 16; distance; distance /= 2)
        sum = ptx_add(b, sum, ptx_shfl_bfly(b, sum, distance));
    return sum;
}

/* Thread i gets the sum of row i. */
static ptx_val sum_of_own_row(ptx_builder *b, const int_lines *l, const ptx_val *sums, ptx_val lane)
{
    ptx_val mine = int_lines_join(b, sums[0]);
    for (int i = 1; i < l->rows; i++) {
        ptx_val sum = int_lines_join(b, sums[i]);
        mine = ptx_selp(b, sum, mine, ptx_setp(b, PTX_EQ, lane, i));
    }
    return mine;
}

/* The sum that thread i has of row i and one column of w. */
static ptx_val column_sum(ptx_builder *b, const int_lines *l, const int_results *r, ptx_val lane)
{
    ptx_val none = {0}, sum = sum_of_own_row(b, l, l->sums, lane);
    ptx_val x_sum = l->spec->integer.w_zero ? sum_of_own_row(b, l, l->x_sums, lane) : none;
    ptx_val w_sum = l->spec->integer.x_zero ? int_lines_join(b, l->w_sum) : none;
    return int_without_zeros(b, r, sum, x_sum, w_sum);
}

static void sums_begin(ptx_builder *b, int_lines *l)
{
    for (int i = 0; i < l->rows; i++) {
        l->sums[i] = zero_variable(b);
        if (l->spec->integer.w_zero)
            l->x_sums[i] = zero_variable(b);
    }
    if (l->spec->integer.x_zero)
        l->w_sum = zero_variable(b);
}

static int_lines lines_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    int_lines l = {.spec = spec, .rows = spec->integer.tile, .args = int_declare(b, row, spec)};
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5);
    l.column = ptx_cvt(b, PTX_U64, ptx_mad(b, ptx_ctaid_x(b), WARPS, warp));
    l.of_y = int_rows_of_block(b, spec, &l.args, (unsigned)l.rows);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, l.column, l.args.n));
    l.x = int_matrix_begin(b, spec->integer.x_codes, l.args.all.operand[QDNN_OPERAND_X], l.args.m, l.args.k);
    l.w = int_weights_begin(b, spec, &l.args, &l.of_y);
    sums_begin(b, &l);
    return l;
}

void emit_int_lines(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 4); /* up to 128 registers */
    int_lines l = lines_begin(b, row, spec), second = l;
    ptx_val lane = ptx_laneid(b), w_row = int_row_that_exists(b, &l.w, l.column), x_rows[INT_LINES_MAX],
            sums[2] = {{0}};
    for (int i = 0; i < l.rows; i++)
        x_rows[i] = int_x_row(b, spec, &l.x, &l.of_y, i);
    ptx_val other_row =
        spec->epilogue.gated ? int_row_that_exists(b, &l.w, ptx_add(b, l.column, l.args.n)) : w_row;
    l.w.pitch = second.w.pitch = row_tile_size(b, &l.of_y, l.w.pitch);
    const int_results r = int_results_of_rows(b, spec, &l.args, &l.of_y);
    int_lines_add(b, &l, w_row, x_rows);
    sums[0] = column_sum(b, &l, &r, lane);
    if (spec->epilogue.gated) {
        sums_begin(b, &second);
        int_lines_add(b, &second, other_row, x_rows);
        sums[1] = column_sum(b, &second, &r, lane);
    }
    ptx_val i = ptx_cvt(b, PTX_U64, lane), has = row_tile_has(b, &l.of_y, i);
    has = ptx_setp_and(b, PTX_LT, lane, l.rows, has);
    ptx_val m = row_tile_row(b, &l.of_y, i, has);
    ptx_if(b, has);
    int_column c = int_column_begin(b, &r, l.column);
    int_store(b, &r, &c, m, sums);
    ptx_end_if(b);
}
