#include "kernels/formats/byte_table.h"

#include "kernels/formats/placed.h"

enum { ENTRIES = 256 };

/* The same number in another register. A shuffle that moves nothing hides from ptxas that they are equal;
 * otherwise it would copy the four registers of a vector for each store. */
static ptx_val again(ptx_builder *b, ptx_val number)
{
    return ptx_shfl_bfly(b, number, 0);
}

/* Each thread writes all copies of an entry, in an order different from its neighbours'; then those of its
 * further entries, whose lower four bits are the same. */
byte_table byte_table_fill(ptx_builder *b, ptx_val base, unsigned threads, unsigned numbers, bool swapped,
                           byte_number *of, const void *user)
{
    enum { VECTORS = BYTE_TABLE_RUN / LOAD_BYTES };
    ptx_val tid = ptx_tid_x(b), values[ENTRIES / 32][4];
    ptx_val own =
        ptx_mad(b, ptx_and(b, tid, VECTORS - 1), LOAD_BYTES, ptx_mad(b, tid, BYTE_TABLE_PITCH, base));
    for (unsigned j = 0; j < ENTRIES / threads; j++) {
        ptx_val byte = ptx_or(b, tid, (int)(j * threads));
        const unsigned low = numbers == 2 && swapped, high = !low;
        values[j][low] = j && numbers == 2 ? again(b, values[j - 1][2 + low]) : of(b, user, byte, 0);
        values[j][high] = numbers == 2 ? of(b, user, byte, 4) : values[j][low];
        for (unsigned i = 0; i < 2; i++)
            values[j][2 + i] = again(b, values[j][i]);
    }
    for (unsigned i = 0; i < VECTORS; i++) {
        ptx_val to = i ? ptx_xor(b, own, (int)(i * LOAD_BYTES)) : own; /* entries are aligned to runs */
        for (unsigned j = 0; j < ENTRIES / threads; j++)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(j * threads * BYTE_TABLE_PITCH), values[j],
                       4);
    }
    const int size = 4 * (int)numbers;
    return (byte_table){.base = base, .copy = ptx_mul(b, ptx_and(b, tid, BYTE_TABLE_RUN / size - 1), size)};
}

/* ---- Of a format's codes ---- */

typedef struct code_numbers {
    const quantized *q;
    int exponent;
} code_numbers;

static ptx_val number_of_code(ptx_builder *b, const void *user, ptx_val byte, unsigned position)
{
    const code_numbers *n = user;
    const coding *c = &n->q->coding;
    ptx_val number = c->format->codec->unit(b, c, &n->q->state, byte, position);
    return n->exponent ? ptx_mul(b, number, emit_power_of_two(b, n->exponent)) : number;
}

byte_table code_table_fill(ptx_builder *b, const quantized *q, ptx_val base, unsigned threads, bool swapped,
                           int exponent)
{
    const code_numbers user = {q, exponent};
    return byte_table_fill(b, base, threads, 8 / q->coding.format->facts.bits, swapped, number_of_code,
                           &user);
}

bool e4m3_scales_stay_raw(const ptx_builder *b, const coding *c)
{
    return c->format->codec->has_short_numbers && c->spec->stored.scale == QDNN_SCALE_E4M3 &&
           !codec_e4m3.has_pair(b);
}

ptx_val byte_table_address(ptx_builder *b, const byte_table *t, ptx_val word, unsigned byte)
{
    return ptx_add(b, ptx_prmt(b, word, t->copy, ptx_u32(b, 0x5504 | byte << 4)), t->base);
}

void byte_table_load(ptx_builder *b, const byte_table *t, ptx_val word, unsigned byte, ptx_val *out,
                     unsigned numbers)
{
    ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, byte_table_address(b, t, word, byte), 0, out,
               (int)numbers);
}
