/* Codes of 4 bits as they are stored: rows of k, one for each column of the product. The four lanes 4g + t of a quad read 64 k of
 * column g, and of g + 8, together, 16 k each:
 *
 *     lane     4g            4g + 1        4g + 2         4g + 3
 *     k        0 ... 15      16 ... 31     32 ... 47      48 ... 63        two words of eight k
 *
 * Lane 4g + s has all codes of step s. A shuffle gives a word to the whole quad, and lane t of it decodes byte t, which has k 2t and
 * 2t + 1: the pair that operand A needs. */
#include "kernels/tensor/stream.h"

enum { LANE_WORDS = 2, LANE_K = 16, LANE_BYTES = 8, QUAD_SEGMENTS = 0x1C1F };

bool stored_serves(const kernel_row *row, const kernel_spec *spec, const char **why)
{
    const coding c = {row->format, spec};
    if (block_layout_of(row->format) || !codes_are_nibbles(&c) || spec->stored.layout != QDNN_LAYOUT_BYTES)
        *why = "product stored takes codes of 4 bits in layout bytes";
    else if (spec->product.reduction != KERNEL_K_COLUMNS)
        *why = "reduction is rows; product stored takes weights [N, K]";
    else if (spec->product.x_fp8)
        *why = "x is FP8; products tile and stream take it";
    return !*why;
}

void stream_stored_begin(ptx_builder *b, stream *s)
{
    ptx_val rest = ptx_and(b, s->args.k, ptx_u64(b, LANE_K - 1));
    s->codes_aligned = ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0),
                                    emit_aligned(b, s->args.all.operand[QDNN_OPERAND_CODES], LANE_BYTES));
    s->byte = ptx_mul(b, s->t, 0x1111);
}

void stream_stored_units(ptx_builder *b, stream *s)
{
    ptx_val k = ptx_mad(b, s->t, LANE_K, s->k0), last = ptx_sub(b, s->n, 1);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val n = ptx_min(b, ptx_add(b, ptx_add(b, s->tile_n[j / 2], s->g), (int)(j % 2 * 8)), last);
        ptx_val first = ptx_mad(b, ptx_cvt(b, PTX_U64, n), s->args.k, ptx_cvt(b, PTX_U64, k));
        s->units[j] = ptx_add(b, s->args.all.operand[QDNN_OPERAND_CODES], ptx_shr(b, first, 1));
    }
}

void stream_stored_load(ptx_builder *b, const ptx_val *pointers, int offset, unit_words *w)
{
    for (unsigned j = 0; j < COLUMNS; j++)
        emit_load_words(b, pointers[j], offset, LANE_WORDS, &w->at[j / 2][LANE_WORDS * (j % 2)]);
}

static void load_bytes(ptx_builder *b, ptx_val from, ptx_val *words)
{
    for (unsigned i = 0; i < LANE_BYTES; i++) {
        ptx_val byte = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U8, from, (int)i));
        ptx_assign(b, words[i / 4], i % 4 ? ptx_bfi(b, byte, words[i / 4], 8 * (i % 4), 8) : byte);
    }
}

void stream_stored_load_short(ptx_builder *b, const stream *s, const ptx_val *pointers, ptx_val k,
                              unit_words *w)
{
    ptx_val exists = ptx_setp(b, PTX_LT, ptx_mad(b, s->t, LANE_K, k), s->k);
    for (unsigned j = 0; j < COLUMNS; j++)
        for (unsigned i = 0; i < LANE_WORDS; i++)
            w->at[j / 2][LANE_WORDS * (j % 2) + i] = ptx_var(b, ptx_u32(b, 0));
    ptx_if(b, exists);
    ptx_uniform(b);
    ptx_if(b, s->codes_aligned);
    for (unsigned j = 0; j < COLUMNS; j++) {
        ptx_val words[LANE_WORDS];
        emit_load_words(b, pointers[j], 0, LANE_WORDS, words);
        for (unsigned i = 0; i < LANE_WORDS; i++)
            ptx_assign(b, w->at[j / 2][LANE_WORDS * (j % 2) + i], words[i]);
    }
    ptx_else(b);
    for (unsigned j = 0; j < COLUMNS; j++)
        load_bytes(b, pointers[j], &w->at[j / 2][LANE_WORDS * (j % 2)]);
    ptx_end_if(b);
    ptx_end_if(b);
}

/* The word of the quad's column g + 8 (i % 2) from k 8 (i / 2) of the step on. */
static ptx_val word_of_quad(ptx_builder *b, const unit_words *w, unsigned q, unsigned step, unsigned i)
{
    return ptx_shfl(b, PTX_SHFL_IDX, w->at[q][LANE_WORDS * (i % 2) + i / 2], ptx_u32(b, step),
                    ptx_u32(b, QUAD_SEGMENTS), ptx_u32(b, 0xFFFFFFFF), NULL);
}

void stream_stored_pairs(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step,
                         ptx_val pairs[4])
{
    for (unsigned i = 0; i < 4; i++) {
        ptx_val word = word_of_quad(b, w, q, step, i);
        pairs[i] = ptx_prmt(b, word, word, s->byte);
    }
}

ptx_val stream_stored_word(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step)
{
    ptx_val both = ptx_add(b, s->byte, 0x4040), halves[2];
    for (unsigned i = 0; i < 2; i++)
        halves[i] =
            ptx_prmt(b, word_of_quad(b, w, q, step, 2 * i), word_of_quad(b, w, q, step, 2 * i + 1), both);
    return ptx_prmt(b, halves[0], halves[1], ptx_u32(b, 0x5410));
}
