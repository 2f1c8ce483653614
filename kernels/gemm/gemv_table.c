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
