/* TQ1_0: from bytes of five base-3 digits to operand A. Two bytes lie in the halves of a u32, so that
 * digits come in pairs: multiplied by 3, the bytes have their next digits above bit 8, and below it the
 * fraction that holds the following ones. Bits 8 and 9 under the exponent of 4 are 4 + digit; subtracting
 * 5 gives -1, 0 or 1, which is multiplied by the scale in the type of x: exact. */
#include "kernels/tensor/stream.h"

enum { BLOCK_STEPS = 16, LAST_STEP = BLOCK_STEPS - 1, DIGITS = 5 };

void stream_ternary_load(ptx_builder *b, stream *s, unsigned block)
{
    for (unsigned q = 0; q < TILES; q++)
        for (unsigned i = 0; i < TERNARY_WORDS; i += 2)
            emit_load_words(b, s->units[q], (int)(block * s->unit.bytes + 128 * i), 2,
                            &s->digits.words[block][q][i]);
}

/* Takes the next digits of the bytes of `rest`, as 4 + digit in the type of x, and removes them from
 * `rest`. */
static ptx_val next_digits(ptx_builder *b, const stream *s, ptx_val *rest)
{
    ptx_val product = ptx_mul(b, *rest, 3);
    *rest = ptx_and(b, product, ptx_u32(b, 0x00FF00FF));
    if (s->spec->data == QDNN_DATA_F16)
        return ptx_lop3(b, product, ptx_u32(b, 0x03000300), ptx_u32(b, 0x44004400),
                        (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    return ptx_lop3(b, ptx_shr(b, product, 3), ptx_u32(b, 0x00600060), ptx_u32(b, 0x40804080),
                    (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
}

/* The bytes of a run, in the order of operand A: two words, whose bytes alternate between columns g and g
 * + 8. */
static void begin_run(ptx_builder *b, const ptx_val *words, ptx_val rest[4])
{
    for (unsigned i = 0; i < 4; i++)
        rest[i] = i % 2 ? ptx_prmt(b, words[i / 2], ptx_u32(b, 0), ptx_u32(b, 0x4341))
                        : ptx_and(b, words[i / 2], ptx_u32(b, 0x00FF00FF));
}

/* The last 16 elements are the digits of four bytes in the header: element 4 e + j is digit e of byte j. A
 * lane has elements 2t, 2t + 1, 2t + 8 and 2t + 9: digits t / 2 and t / 2 + 2 of the two bytes from 2 (t %
 * 2) on. */
static void last_digits(ptx_builder *b, const stream *s, unsigned q, ptx_val out[4])
{
    ptx_val bytes = ptx_mad(b, ptx_and(b, s->t, 1), 0x0202, ptx_u32(b, 0x4140));
    ptx_val power = ptx_mad(b, ptx_shr(b, s->t, 1), 2, ptx_u32(b, 1));
    for (unsigned column = 0; column < 2; column++) {
        ptx_val lane = ptx_add(b, s->g, (int)(8 * (2 * q + column)));
        ptx_val word = stream_from_lane(b, s->header.words[0], lane);
        ptx_val rest = ptx_mul(b, ptx_prmt(b, word, ptx_u32(b, 0), bytes), power);
        rest = ptx_and(b, rest, ptx_u32(b, 0x00FF00FF));
        out[column] = next_digits(b, s, &rest);
        next_digits(b, s, &rest);
        out[column + 2] = next_digits(b, s, &rest);
    }
}

static void tile_digits(ptx_builder *b, stream *s, unsigned q, unsigned step, ptx_val out[4])
{
    if (step == LAST_STEP) {
        last_digits(b, s, q, out);
        return;
    }
    const unsigned run = step < 2 * DIGITS ? step % 2 : 2;
    for (unsigned i = 0; i < 4; i++)
        out[i] = next_digits(b, s, &s->digits.rest[q][run][i]);
}

void stream_ternary_digits(ptx_builder *b, stream *s, unsigned step)
{
    ternary_digits *d = &s->digits;
    for (unsigned q = 0; q < TILES; q++) {
        for (unsigned run = 0; run < TERNARY_RUNS && step % BLOCK_STEPS == 0; run++)
            begin_run(b, &d->words[step / BLOCK_STEPS][q][2 * run], d->rest[q][run]);
        tile_digits(b, s, q, step % BLOCK_STEPS, d->taken[q]);
    }
}

void stream_ternary_step(ptx_builder *b, const stream *s, unsigned q, ptx_val a[4])
{
    const qdnnDataType_t type = s->spec->data;
    for (unsigned i = 0; i < 4; i++) {
        ptx_val digits = ptx_as(b, pair_type(type), s->digits.taken[q][i]);
        digits = pair_add(b, type, digits, pair_constant(b, type, -5, -5));
        a[i] = ptx_as(b, PTX_U32, pair_mul(b, type, digits, s->scale[2 * q + i % 2].pair.scale));
    }
}
