/* Streams of u32 words: reading single codes, and quads of adjacent codes. */
#include "kernels/formats/stream.h"

unsigned stream_position(unsigned bits, bool is_awq, unsigned element)
{
    static const unsigned awq[QUAD] = {0, 16, 4, 20};
    return is_awq ? awq[element] : bits * element;
}

unsigned codes_of_units(unsigned bits, unsigned unit)
{
    unsigned codes = 1;
    while (codes * bits % unit)
        codes++;
    return codes;
}

static ptx_val low_bits(ptx_builder *b, ptx_val x, unsigned mask)
{
    return ptx_cvt(b, PTX_U32, ptx_and(b, x, ptx_u64(b, mask)));
}

/* The address of the word in which a code begins, and the bit at which it begins. */
static ptx_val word_of(ptx_builder *b, const word_stream *s, ptx_val number, ptx_val *shift)
{
    ptx_val bit = ptx_mul(b, number, ptx_u64(b, s->bits)), word = ptx_shr(b, bit, 5);
    *shift = low_bits(b, bit, 31);
    return s->stride.kind == PTX_NOTHING ? ptx_at(b, s->first, word, 4)
                                         : ptx_mad(b, word, s->stride, s->first);
}

/* Even codes are in the low half of a word, odd ones in the high half. */
static ptx_val awq_shift(ptx_builder *b, ptx_val number)
{
    ptx_val even = ptx_shl(b, low_bits(b, number, 6), 1), odd = ptx_shl(b, low_bits(b, number, 1), 4);
    return ptx_or(b, even, odd);
}

/* The second word of a code is read only if the code extends into it: it may not exist. */
ptx_val stream_code(ptx_builder *b, const word_stream *s, ptx_val number)
{
    ptx_val shift, address = word_of(b, s, number, &shift), low = ptx_ld_global_nc(b, PTX_U32, address, 0);
    if (s->is_awq)
        return ptx_shr(b, low, awq_shift(b, number));
    if (32 % s->bits == 0)
        return ptx_shr(b, low, shift);
    ptx_val reaches = ptx_setp(b, PTX_GT, ptx_add(b, shift, s->bits), 32);
    ptx_val next = s->stride.kind == PTX_NOTHING ? ptx_add(b, address, 4) : ptx_add(b, address, s->stride);
    ptx_val high = ptx_ld_if(b, reaches, PTX_GLOBAL, PTX_NC, PTX_U32, next, 0, ptx_u32(b, 0));
    return ptx_shf_r(b, low, high, shift);
}

/* `count` codes begin at a multiple of the greatest common divisor of their size and a word: eight codes of
 * seven bits may begin at bit 24 and end in a third word. */
unsigned quads_words(unsigned bits, unsigned count)
{
    unsigned run = bits * count, step = 32;
    while (run % step)
        step /= 2;
    return (32 - step + run + 31) / 32;
}

void split_quads(ptx_builder *b, unsigned bits, const ptx_val words[QUADS_WORDS], ptx_val shift,
                 unsigned count, ptx_val *quads)
{
    const bool is_aligned = bits * count % 32 == 0;
    quads[0] = is_aligned ? words[0] : ptx_shf_r(b, words[0], words[1], shift);
    if (count == QUAD)
        return;
    if (bits == 8) {
        quads[1] = words[1];
        return;
    }
    ptx_val next =
        quads_words(bits, count) > 2 ? ptx_shf_r(b, words[1], words[2], shift) : ptx_shr(b, words[1], shift);
    quads[1] = ptx_shf_r(b, quads[0], next, QUAD * bits);
}

void stream_quads(ptx_builder *b, const word_stream *s, ptx_val number, unsigned count, ptx_val *quads)
{
    const unsigned bits = s->bits;
    ptx_val shift, address = word_of(b, s, number, &shift), words[QUADS_WORDS];
    words[0] = ptx_ld_global_nc(b, PTX_U32, address, 0);
    if (s->is_awq) { /* the second four of eight are 8 bits above the first */
        quads[0] = count > QUAD ? words[0] : ptx_shr(b, words[0], ptx_shl(b, low_bits(b, number, 4), 1));
        quads[1] = ptx_shr(b, words[0], 8);
        return;
    }
    for (unsigned w = 1; w < QUADS_WORDS; w++) { /* a word beyond the codes may not exist */
        words[w] = ptx_u32(b, 0);
        if (count * bits > 32 * w) /* wherever the codes begin */
            words[w] = ptx_ld_global_nc(b, PTX_U32, address, 4 * (int)w);
        else if (w < quads_words(bits, count))
            words[w] = ptx_ld_if(b, ptx_setp(b, PTX_GT, ptx_add(b, shift, count * bits), 32 * w), PTX_GLOBAL,
                                 PTX_NC, PTX_U32, address, 4 * (int)w, words[w]);
    }
    split_quads(b, bits, words, shift, count, quads);
}
