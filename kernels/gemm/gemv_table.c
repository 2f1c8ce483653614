/* Codes decoded by a large table (byte_table.h), whose entries hold what a byte stands for: two numbers of
 * 4 bits or one of 8. x lies between the entries. */
#include "kernels/gemm/gemv.h"

static unsigned bits_of(const gemv *g)
{
    return g->w.coding.format->facts.bits;
}

/* Below sm_89, E4M3 scales are cheapest without correcting their exponent; the table's entries make up for
 * it. Products of E2M1 and E4M3 are exact either way. */
int gemv_scale_exponent(const ptx_builder *b, const gemv *g)
{
    return g->codec == &gemv_codec_table && e4m3_scales_stay_raw(b, &g->w.coding) ? RAW_SCALE_EXPONENT : 0;
}

/* Entries hold their two numbers in the order of elements. */
static void table_fill(ptx_builder *b, gemv *g)
{
    bool swapped = nibbles_are_swapped(&g->w.coding) && !g->in_pairs;
    g->table =
        code_table_fill(b, &g->w.matrix.q, g->table.base, g->shape.warps * WARP, swapped, g->scale_exponent);
}

static ptx_val table_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    numbers[0] =
        g->scale_exponent ? ptx_mul(b, group->scale, emit_power_of_two(b, -g->scale_exponent)) : group->scale;
    return (ptx_val){0};
}

static void table_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                         const ptx_val *numbers, ptx_val out[CHUNK])
{
    const unsigned bits = bits_of(g), per_byte = 8 / bits;
    group_values group = {.scale = numbers[0]};
    for (unsigned i = 0; i < CHUNK; i += per_byte) {
        unsigned byte = (CHUNK * chunk + i) / per_byte;
        byte_table_load(b, &g->table, words[byte / 4], byte % 4, out + i, per_byte);
    }
    for (unsigned i = 0; i < CHUNK && !gemv_scales_last(g); i++)
        out[i] = group_decode(b, &g->w.coding, &g->w.matrix.q.side, &group, out[i]);
}

/* Builds new bytes, each from a code of one chunk and the code at the same place of the other. */
static void table_decode_pair(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                              unsigned other, ptx_val out[CHUNK])
{
    const unsigned swap = g->spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST;
    const unsigned select = (PTX_LOP_A & PTX_LOP_C) | (PTX_LOP_B & ~PTX_LOP_C & 0xFF);
    ptx_val low = ptx_u32(b, 0x0F0F0F0F), first = words[chunk], second = words[other];
    ptx_val codes[2] = {ptx_lop3(b, first, ptx_shl(b, second, 4), low, select),
                        ptx_lop3(b, ptx_shr(b, first, 4), second, low, select)};
    for (unsigned i = 0; i < CHUNK; i++) {
        ptx_val pair[2];
        byte_table_load(b, &g->table, codes[i % 2], i / 2, pair, 2);
        out[i ^ swap] = ptx_pack2(b, PTX_F32X2, pair[0], pair[1]);
    }
}

const gemv_codec gemv_codec_table = {.numbers = 1,
                                     .scales_last = true,
                                     .prepare = table_prepare,
                                     .decode = table_decode,
                                     .decode_pair = table_decode_pair,
                                     .open = table_fill};
