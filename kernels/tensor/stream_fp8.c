/* x and weights in FP8. Prepacked, word 2s of a lane has k 2t and 2t + 1 of step s, word 2s + 1 has k 2t +
 * 8 and 2t + 9; their even bytes belong to column g, their odd ones to column g + 8.
 *
 * On SMs that multiply FP8, an instruction takes four neighbouring k of 32 from a lane. It is given the
 * four k of a step that the lane has, and x lies in shared memory with its k in the same order: an
 * instruction adds the products of the same 16 k at a time, so their order does not matter. On other SMs
 * both factors are converted to f16. */
#include "kernels/tensor/stream.h"

static bool is_native(const stream *s)
{
    return s->form.unit_elements == 2;
}

/* The codes of a step of 16 k, of column g or of column g + 8. */
static ptx_val codes_of_column(ptx_builder *b, const ptx_val *words, unsigned step, unsigned column)
{
    return ptx_prmt(b, words[2 * step], words[2 * step + 1], ptx_u32(b, column ? 0x7531 : 0x6420));
}

static void native_step(ptx_builder *b, const ptx_val *words, unsigned step, ptx_val a[4])
{
    for (unsigned i = 0; i < 4; i++)
        a[i] = codes_of_column(b, words, 2 * step + i / 2, i % 2);
}

void stream_fp8_step(ptx_builder *b, const stream *s, const ptx_val *words, unsigned step, ptx_val a[4])
{
    const minifloat *from = s->codes.format->number;
    if (is_native(s)) {
        native_step(b, words, step, a);
        return;
    }
    if (fp8_is_moved(b, from)) {
        for (unsigned i = 0; i < 4; i++) {
            ptx_val word = words[2 * step + i / 2];
            a[i] = fp8_tops_to_f16(b, from, i % 2 ? word : ptx_shl(b, word, 8));
        }
        return;
    }
    for (unsigned column = 0; column < 2; column++) {
        ptx_val pairs[2];
        fp8_to_f16(b, from, codes_of_column(b, words, step, column), pairs);
        a[column] = pairs[0];
        a[column + 2] = pairs[1];
    }
}

/* ---- x ---- */

/* Of the eight pairs of a piece, 0 to 3 become the lower halves of words, 4 to 7 the upper ones. */
void stream_fp8_piece(ptx_builder *b, const stream *s, const ptx_val *loaded, ptx_val words[4])
{
    for (unsigned i = 0; i < 4; i++)
        if (is_native(s))
            words[i] = ptx_prmt(b, loaded[i / 2], loaded[i / 2 + 2], ptx_u32(b, i % 2 ? 0x7632 : 0x5410));
        else if (i % 2 == 0)
            fp8_to_f16(b, s->form.from, loaded[i / 2], &words[i]);
}

ptx_val stream_fp8_place(ptx_builder *b, ptx_val i)
{
    ptx_val of_word = ptx_bfi(b, ptx_bfe(b, i, 3, 1), ptx_and(b, i, 1), 1, 1);
    return ptx_bfi(b, ptx_bfe(b, i, 1, 2), of_word, 2, 2);
}
