/* Prepacking: converts codes of any layout to units (prepack.h), and back. */
#include "kernels/tensor/prepack.h"

#include "kernels/quant/matrix.h"

#include <stdio.h>

enum { PREPACK_THREADS = 128 };

/* ---- Positions ---- */

/* The address of word w of a lane of a unit (u32 and u64); w is known at emit time. */
static ptx_val word_address(ptx_builder *b, const packing *p, ptx_val unit, ptx_val lane, unsigned w)
{
    const unsigned v = prepack_vector(p->bits);
    ptx_val base = ptx_at(b, p->packed, unit, 128 * p->bits);
    return ptx_add(b, ptx_at(b, base, lane, 4 * v), ptx_u64(b, 4 * (w / v * 32 * v + w % v)));
}

static ptx_val code_at_nk(ptx_builder *b, const packing *p, ptx_val n, ptx_val k)
{
    if (p->blocks)
        return prepack_block_code(b, p, n, k);
    if (p->is_plain)
        return prepack_plain_value(b, p, n, k);
    return p->k_in_columns ? matrix_code(b, &p->m, n, k) : matrix_code(b, &p->m, k, n);
}

/* ---- To units: one thread per lane of a unit ---- */

static void add_code(ptx_builder *b, const packing *p, ptx_val *words, unsigned bit, ptx_val code)
{
    ptx_val *word = &words[bit / 32];
    ptx_assign(b, *word, ptx_or(b, *word, bit % 32 ? ptx_shl(b, code, bit % 32) : code));
    if (bit % 32 + p->bits > 32)
        ptx_assign(b, word[1], ptx_or(b, word[1], ptx_shr(b, code, 32 - bit % 32)));
}

static void pack_lane(ptx_builder *b, const packing *p, ptx_val unit, ptx_val lane)
{
    ptx_val row = ptx_div(b, unit, p->units_k), column = ptx_sub(b, unit, ptx_mul(b, row, p->units_k)),
            words[UNIT_WORDS_MAX];
    ptx_val g = ptx_cvt(b, PTX_U64, ptx_shr(b, lane, 2)), t = ptx_cvt(b, PTX_U64, ptx_and(b, lane, 3));
    ptx_val n0 = ptx_add(b, ptx_shl(b, row, 4), g), k0 = ptx_add(b, ptx_shl(b, column, 6), ptx_shl(b, t, 1));
    for (unsigned w = 0; w < p->bits; w++)
        words[w] = ptx_var(b, ptx_u32(b, 0));
    const map order = prepack_order(p->bits, p->byte_pairs), unit_map = map_find("unit");
    map elements;
    map_invert(&unit_map, &elements);
    for (unsigned pair = 0; pair < UNIT_PAIRS; pair++)
        for (unsigned half = 0; half < 2; half++) {
            const map_point first = map_at(&elements, &(map_point){{0, pair, half}});
            ptx_val n = ptx_add(b, n0, first.at[0]), k = ptx_add(b, k0, first.at[1]);
            ptx_if(b, ptx_setp_and(b, PTX_LT, n, p->n, ptx_setp(b, PTX_LT, k, p->k)));
            add_code(b, p, words, map_value(&order, "bit", pair, half), code_at_nk(b, p, n, k));
            ptx_end_if(b);
        }
    for (unsigned w = 0; w < p->bits; w++)
        ptx_st_global(b, word_address(b, p, unit, lane, w), 0, words[w]);
}

static ptx_val thread_count(ptx_builder *b)
{
    return ptx_mul_wide(b, ptx_nctaid_x(b), ptx_u32(b, PREPACK_THREADS));
}

static void pack_all(ptx_builder *b, const packing *p)
{
    ptx_val step = thread_count(b);
    if (p->bits) {
        ptx_val units_n = emit_divide_up(b, p->n, UNIT_N);
        ptx_val all = ptx_shl(b, ptx_mul(b, units_n, p->units_k), 5);
        ptx_val at = ptx_for(b, ptx_global_index64(b), all, step);
        pack_lane(b, p, ptx_shr(b, at, 5), ptx_and(b, ptx_cvt(b, PTX_U32, at), 31));
        ptx_end_for(b);
    }
    if (p->blocks)
        prepack_move_headers(b, p, step, false);
}

/* ---- Back from units ---- */

ptx_val prepack_packed_code(ptx_builder *b, const packing *p, ptx_val n, ptx_val k)
{
    const unsigned bits = p->bits, v = prepack_vector(bits);
    ptx_val unit = ptx_mad(b, ptx_shr(b, n, 4), p->units_k, ptx_shr(b, k, 6));
    ptx_val small_n = ptx_cvt(b, PTX_U32, n), small_k = ptx_cvt(b, PTX_U32, k);
    ptx_val lane = ptx_bfi(b, ptx_and(b, small_n, 7), ptx_bfe(b, small_k, 1, 2), 2, 3);
    ptx_val i = ptx_bfi(b, ptx_bfe(b, small_k, 3, 1), ptx_bfe(b, small_n, 3, 1), 1, 1);
    ptx_val pair = ptx_bfi(b, ptx_bfe(b, small_k, 4, 2), i, 2, 2), half = ptx_and(b, small_k, 1), bit;
    if (prepack_is_split(bits) && !p->byte_pairs) {
        const unsigned pairs = ceil_log2(16 / bits);
        ptx_val in_word = ptx_mul(b, ptx_and(b, pair, (1 << pairs) - 1), (int)bits);
        bit = ptx_add(b, ptx_shl(b, ptx_shr(b, pair, pairs), 5), ptx_mad(b, half, 16, in_word));
    } else {
        bit = ptx_mul(b, ptx_mad(b, pair, 2, half), (int)bits);
    }
    ptx_val w = ptx_shr(b, bit, 5);
    ptx_val place = ptx_mad(b, ptx_shr(b, w, ceil_log2(v)), (int)(32 * v),
                            ptx_mad(b, lane, (int)v, ptx_and(b, w, (int)v - 1)));
    ptx_val address = ptx_at(b, ptx_at(b, p->packed, unit, 128 * bits), place, 4);
    ptx_val low = ptx_ld_global_nc(b, PTX_U32, address, 0), shift = ptx_and(b, bit, 31);
    if (bits == 32)
        return low;
    if (prepack_is_split(bits))
        return ptx_and(b, ptx_shr(b, low, shift), (1 << bits) - 1);
    ptx_val reaches = ptx_setp(b, PTX_GT, ptx_add(b, shift, (int)bits), 32);
    ptx_val high = ptx_ld_if(b, reaches, PTX_GLOBAL, PTX_NC, PTX_U32, address, 128, ptx_u32(b, 0));
    return ptx_and(b, ptx_shf_r(b, low, high, shift), (1 << bits) - 1);
}

static ptx_val unpacked_code(ptx_builder *b, const void *user, ptx_val row, ptx_val column)
{
    const packing *p = user;
    return prepack_packed_code(b, p, p->k_in_columns ? row : column, p->k_in_columns ? column : row);
}

static void unpack_elements(ptx_builder *b, void *user, const matrix_part *part)
{
    const packing *p = user;
    matrix_write(b, &p->m, part, unpacked_code, p);
}

/* ---- The kernel ---- */

bool prepack_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    if (!format_is_blocks(row->format) || spec->product.reduction == KERNEL_K_COLUMNS)
        return true;
    snprintf(error, error_size, "reduction is rows; blocks lie along columns, which must be k");
    return false;
}

void emit_prepack(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 2); /* no limit on registers: otherwise ptxas spills */
    kernel_args args = kernel_declare(b, row, spec);
    quantized q = {.coding = {row->format, spec}, .codes = args.operand[QDNN_OPERAND_CODES]};
    packing p = {.bits = prepack_bits(row->format),
                 .byte_pairs = prepack_has_byte_pairs(row->format),
                 .blocks = block_layout_of(row->format),
                 .is_plain = format_is_plain(row->format),
                 .k_in_columns = spec->product.reduction == KERNEL_K_COLUMNS,
                 .packed = args.operand[QDNN_OPERAND_REPACKED]};
    p.n = args.number[p.k_in_columns ? NUMBER_ROWS : NUMBER_COLUMNS];
    p.k = args.number[p.k_in_columns ? NUMBER_COLUMNS : NUMBER_ROWS];
    p.unit = prepack_unit(row->format);
    p.units_k = emit_divide_up(b, p.k, p.unit.elements);
    p.m.q = q;
    if (!p.blocks)
        p.m = matrix_begin(b, &q, &args);
    if (p.blocks && p.blocks->codes->is_ternary) {
        prepack_ternary(b, &p, thread_count(b), spec->product.unpack);
        return;
    }
    if (!spec->product.unpack) {
        pack_all(b, &p);
        return;
    }
    if (p.blocks || p.is_plain) {
        (p.blocks ? prepack_block_unpack : prepack_plain_unpack)(b, &p, thread_count(b));
        return;
    }
    matrix_walk w = matrix_walk_of(&p.m, ptx_setp(b, PTX_EQ, ptx_tid_x(b), ptx_tid_x(b)));
    w.user = &p;
    w.elements = unpack_elements;
    matrix_walk_run(b, &w);
}

/* Whether unpacking uses the same walk over the matrix as other operations; blocks and plain values have
 * their own loops. */
static bool walks_back(const kernel_row *row, const kernel_spec *spec)
{
    return spec->product.unpack && !format_is_blocks(row->format) && !format_is_plain(row->format);
}

kernel_geometry prepack_geometry(const kernel_row *row, const kernel_spec *spec)
{
    const coding c = {row->format, spec};
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    const kernel_rule n = rule_parts(by_columns ? NUMBER_ROWS : NUMBER_COLUMNS, UNIT_N),
                      k = rule_parts(by_columns ? NUMBER_COLUMNS : NUMBER_ROWS, UNIT_K);
    const kernel_rule blocks = rule_ceil(rule_times(n, k), PREPACK_THREADS / 32);
    return walks_back(row, spec) ? matrix_geometry(&c)
                                 : (kernel_geometry){.block = PREPACK_THREADS,
                                                     .grid = {rule_least(blocks, rule_constant(INT32_MAX))}};
}
