/* Codes by a large table: what a byte stands for, two numbers of 4 bits or one of 8, is an entry, of which each thread
 * reads a copy of its own, so that no two threads want different words of a bank. Entry e lies at e * 256, copies at
 * multiples of their size from there; one permutation of bytes makes an address. Between the entries lies x. */
#include "kernels/gemm/gemv.h"

enum { ENTRIES = 256, PITCH = 2 * GEMV_RUN };

static unsigned bits_of(const gemv *g)
{
    return g->w.coding.format->facts.bits;
}

/* Below sm_89, E4M3 scales are cheapest without a correction of their exponent; its part is the table's. Products of E2M1
 * and E4M3 are exact, wherever the powers of two are. */
int gemv_scale_exponent(const ptx_builder *b, const gemv *g)
{
    bool is_converted = ptx_target(b) && ptx_target(b)->number >= 89;
    return g->codec == &gemv_codec_table && g->w.coding.format->codec == &codec_e2m1 &&
                   g->spec->scale == QDNN_SCALE_E4M3 && !is_converted
               ? 120
               : 0;
}

static ptx_val power_of_two(ptx_builder *b, int e)
{
    return ptx_bits(b, PTX_F32, (uint64_t)(e + 127) << 23);
}

/* The numbers of a byte, in the order of elements. */
static void entry_of(ptx_builder *b, const gemv *g, ptx_val byte, ptx_val out[4])
{
    const coding *c = &g->w.coding;
    const codec_state *state = &g->w.matrix.q.state;
    bool swapped = g->spec->nibble_order == QDNN_NIBBLE_HIGH_FIRST && !g->in_pairs;
    out[0] = c->format->codec->unit(b, c, state, byte, bits_of(g) == 4 && swapped ? 4 : 0);
    out[1] = bits_of(g) == 4 ? c->format->codec->unit(b, c, state, byte, swapped ? 0 : 4) : out[0];
    for (int i = 0; i < 2 && g->scale_exponent; i++)
        out[i] = ptx_mul(b, out[i], power_of_two(b, g->scale_exponent));
    out[2] = out[0];
    out[3] = out[1];
}

/* A thread writes all copies of an entry, in an order that differs from its neighbours'; then that of another one. */
static void table_fill(ptx_builder *b, gemv *g)
{
    enum { VECTORS = GEMV_RUN / LOAD_BYTES };
    const unsigned threads = g->shape.warps * WARP, size = bits_of(g) == 4 ? 8 : 4;
    ptx_val tid = ptx_tid_x(b), values[ENTRIES / WARP][4];
    ptx_val own = ptx_mad(b, ptx_and(b, tid, VECTORS - 1), LOAD_BYTES, ptx_mad(b, tid, PITCH, g->table));
    for (unsigned j = 0; j < ENTRIES / threads; j++)
        entry_of(b, g, ptx_add(b, tid, (int)(j * threads)), values[j]);
    for (unsigned i = 0; i < VECTORS; i++) {
        ptx_val to = i ? ptx_xor(b, own, (int)(i * LOAD_BYTES)) : own; /* entries are aligned to runs */
        for (unsigned j = 0; j < ENTRIES / threads; j++)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(j * threads * PITCH), values[j], 4);
    }
    g->copy = ptx_mul(b, ptx_and(b, tid, (int)(GEMV_RUN / size - 1)), (int)size);
}

static ptx_val table_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    numbers[0] =
        g->scale_exponent ? ptx_mul(b, group->scale, power_of_two(b, -g->scale_exponent)) : group->scale;
    return (ptx_val){0};
}

static void table_decode(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                         const ptx_val *numbers, ptx_val out[CHUNK])
{
    const unsigned bits = bits_of(g), per_byte = 8 / bits;
    group_values group = {.scale = numbers[0]};
    for (unsigned i = 0; i < CHUNK; i += per_byte) {
        unsigned byte = (CHUNK * chunk + i) / per_byte;
        ptx_val offset = ptx_prmt(b, words[byte / 4], g->copy, ptx_u32(b, 0x5504 | (byte % 4) << 4));
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, ptx_add(b, offset, g->table), 0, out + i,
                   (int)per_byte);
    }
    for (unsigned i = 0; i < CHUNK && !gemv_scales_last(g); i++)
        out[i] = group_decode(b, &g->w.coding, &g->w.matrix.q.side, &group, out[i]);
}

/* Bytes are made anew, each of a code of one chunk and the code at the same place of the next. */
static void table_decode_pair(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                              ptx_val out[CHUNK])
{
    const unsigned swap = g->spec->nibble_order == QDNN_NIBBLE_HIGH_FIRST;
    const unsigned select = (PTX_LOP_A & PTX_LOP_C) | (PTX_LOP_B & ~PTX_LOP_C & 0xFF);
    ptx_val low = ptx_u32(b, 0x0F0F0F0F), first = words[chunk], second = words[chunk + 1];
    ptx_val codes[2] = {ptx_lop3(b, first, ptx_shl(b, second, 4), low, select),
                        ptx_lop3(b, ptx_shr(b, first, 4), second, low, select)};
    for (unsigned i = 0; i < CHUNK; i++) {
        ptx_val offset = ptx_prmt(b, codes[i % 2], g->copy, ptx_u32(b, 0x5504 | (i / 2) << 4)), pair[2];
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, ptx_add(b, offset, g->table), 0, pair, 2);
        out[i ^ swap] = ptx_pack2(b, PTX_F32X2, pair[0], pair[1]);
    }
}

const gemv_codec gemv_codec_table = {.numbers = 1,
                                     .scales_last = true,
                                     .prepare = table_prepare,
                                     .decode = table_decode,
                                     .decode_pair = table_decode_pair,
                                     .open = table_fill};
