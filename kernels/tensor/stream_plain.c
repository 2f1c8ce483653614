/* Plain weights: if they have the type of x, they are operand A as they lie in memory; otherwise they are
 * rounded to it, in pairs. */
#include "kernels/tensor/stream.h"

void stream_plain_step(ptx_builder *b, const stream *s, const ptx_val *words, unsigned step, ptx_val a[4])
{
    const qdnnDataType_t stored = s->codes.format->facts.storage, type = s->spec->data;
    const unsigned of_pair = element_bytes(stored) / 2; /* words */
    for (unsigned i = 0; i < 4; i++) {
        const ptx_val *pair = &words[of_pair * (4 * step + i)];
        ptx_val values[2];
        a[i] = *pair;
        if (stored == type)
            continue;
        for (unsigned w = 0; w < of_pair; w++)
            emit_widen_word(b, stored, pair[w], &values[w]);
        a[i] = emit_narrow_pair(b, type, values[0], values[1]);
    }
}
