/* Codes by a large table: what a byte stands for, two numbers of 4 bits or one of 8, is an entry, of which each thread
 * reads a copy of its own, so that no two threads want different words of a bank. Entry e lies at e * 256, copies at
 * multiples of their size from there; one permutation of bytes makes an address. Between the entries lies x. */
#include "kernels/gemm/gemv.h"

enum { ENTRIES = 256, PITCH = 2 * GEMV_RUN };

static unsigned bits_of(const gemv *g)
{
    return g->w.coding.format->facts.bits;
}

/* The numbers of a byte, in the order of elements. */
static void entry_of(ptx_builder *b, const gemv *g, ptx_val byte, ptx_val out[4])
{
    const coding *c = &g->w.coding;
    const codec_state *state = &g->w.matrix.q.state;
    bool swapped = g->spec->nibble_order == QDNN_NIBBLE_HIGH_FIRST;
    out[0] = c->format->codec->unit(b, c, state, byte, bits_of(g) == 4 && swapped ? 4 : 0);
    out[1] = bits_of(g) == 4 ? c->format->codec->unit(b, c, state, byte, swapped ? 0 : 4) : out[0];
    out[2] = out[0];
    out[3] = out[1];
}

/* A thread writes all copies of an entry, in an order that differs from its neighbours'. */
static void table_fill(ptx_builder *b, gemv *g)
{
    enum { VECTORS = GEMV_RUN / LOAD_BYTES };
    ptx_val byte = ptx_for(b, ptx_tid_x(b), ENTRIES, (int)(g->shape.warps * WARP)), values[4];
    entry_of(b, g, byte, values);
    ptx_val entry = ptx_mad(b, byte, PITCH, g->table);
    for (unsigned i = 0; i < VECTORS; i++) {
        ptx_val vector = ptx_and(b, ptx_add(b, byte, (int)i), VECTORS - 1);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, ptx_mad(b, vector, LOAD_BYTES, entry), 0, values, 4);
    }
    ptx_end_for(b);
    unsigned size = bits_of(g) == 4 ? 8 : 4;
    g->copy = ptx_mul(b, ptx_and(b, ptx_laneid(b), (int)(GEMV_RUN / size - 1)), (int)size);
}

static ptx_val table_prepare(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers)
{
    (void)b, (void)g;
    numbers[0] = group->scale;
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
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, ptx_add(b, offset, g->table), 0, out + i, (int)per_byte);
    }
    for (unsigned i = 0; i < CHUNK; i++)
        out[i] = group_decode(b, &g->w.coding, &g->w.matrix.q.side, &group, out[i]);
}

const gemv_codec gemv_codec_table = {
    .numbers = 1, .prepare = table_prepare, .decode = table_decode, .open = table_fill};
