/* Weights in FP8 in the tile kernel. */
#include "kernels/tensor/w_fp8.h"

enum { PIECE_BYTES = 16, LINE_BYTES = TILE_BYTES / 128, LINE_PIECES = LINE_BYTES / PIECE_BYTES };

bool fp8_along_n(const tile *t)
{
    return t->form.unit_elements == 2 && t->spec->product.reduction == KERNEL_K_ROWS;
}

const kernel_row *fp8_pairs_row(void)
{
    return kernel_find("matmul_plain_f16");
}

/* ---- [K, N] ---- */

/* Byte offset in a tile of a piece of the line of k (all u32). */
static ptx_val line_place(ptx_builder *b, ptx_val k, ptx_val piece)
{
    ptx_val key = ptx_bfi(b, ptx_bfe(b, k, 2, 2), ptx_and(b, k, 1), 1, 2);
    return ptx_mad(b, k, LINE_BYTES, ptx_shl(b, ptx_xor(b, piece, key), 4));
}

/* A thread has the same piece of four lines: the first line, and the piece. Either all four lines exist or
 * none: tiles are fetched only if K is a multiple of 16, as rows of x consist of pieces of 16. */
static ptx_val line_of_thread(ptx_builder *b)
{
    return ptx_mul(b, ptx_shr(b, ptx_tid_x(b), ceil_log2(LINE_PIECES)), THREAD_PIECES);
}

static ptx_val piece_of_thread(ptx_builder *b)
{
    return ptx_and(b, ptx_tid_x(b), LINE_PIECES - 1);
}

/* The address of the weight at k and n (u32). */
static ptx_val code_address(ptx_builder *b, const tile *t, ptx_val k, ptx_val n)
{
    return ptx_add(b, t->w.codes,
                   ptx_mad(b, ptx_cvt(b, PTX_U64, k), t->args.outputs, ptx_cvt(b, PTX_U64, n)));
}

ptx_val fp8_w_aligned(ptx_builder *b, const tile *t)
{
    ptx_val columns = t->spec->epilogue.gated ? ptx_or(b, t->args.outputs, t->args.n) : t->args.outputs;
    ptx_val rest = ptx_and(b, columns, ptx_u64(b, PIECE_BYTES - 1));
    return ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0), emit_aligned(b, t->w.codes, LOAD_BYTES));
}

static ptx_val exists(ptx_builder *b, const tile *t, ptx_val k)
{
    return ptx_setp(b, PTX_LT, k, ptx_cvt(b, PTX_U32, t->args.k));
}

/* For lines beyond the last k, the first k is loaded instead, and never used. */
void fp8_w_fetch(ptx_builder *b, const tile *t, ptx_val k0, fetched *f)
{
    ptx_val n = w_output(b, &t->w, ptx_shl(b, piece_of_thread(b), 4), PIECE_BYTES);
    *f = (fetched){.k = ptx_mad(b, k0, 2, line_of_thread(b))};
    ptx_val from = code_address(b, t, ptx_selp(b, f->k, ptx_u32(b, 0), exists(b, t, f->k)), n);
    for (unsigned i = 0; i < THREAD_PIECES; i++) {
        emit_load_words(b, from, 0, 4, &f->word[4 * i]);
        from = i + 1 < THREAD_PIECES ? ptx_add(b, from, t->args.outputs) : from;
    }
}

/* From an even line to the next, the swizzled place differs by one piece. */
void fp8_w_put(ptx_builder *b, const tile *t, const fetched *f, ptx_val tile)
{
    ptx_val place = line_place(b, line_of_thread(b), piece_of_thread(b)), there = exists(b, t, f->k);
    const ptx_val to[2] = {ptx_add(b, tile, place), ptx_add(b, tile, ptx_xor(b, place, PIECE_BYTES))};
    for (unsigned i = 0; i < THREAD_PIECES; i++) {
        ptx_val words[4];
        for (unsigned c = 0; c < 4; c++)
            words[c] = ptx_selp(b, f->word[4 * i + c], ptx_u32(b, 0), there);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to[i % 2], (int)(i * LINE_BYTES), words, 4);
    }
}

ptx_val fp8_w_place(ptx_builder *b, const tile *t, ptx_val piece)
{
    ptx_val row = ptx_and(b, t->lane, 7), matrix = ptx_shr(b, t->lane, 3);
    ptx_val in_four = ptx_bfi(b, matrix, ptx_and(b, row, 1), 1, 1);
    ptx_val in_step = ptx_bfi(b, ptx_shr(b, matrix, 1), ptx_shr(b, row, 1), 2, 1);
    return line_place(b, ptx_bfi(b, in_step, in_four, 2, 3), piece);
}

void fp8_w_fragments(ptx_builder *b, ptx_val from, unsigned step, ptx_val even[2], ptx_val odd[2])
{
    ptx_val out[4];
    ptx_ldmatrix_trans(b, from, (int)(32 * step * LINE_BYTES), out, 4);
    for (unsigned i = 0; i < 2; i++) {
        even[i] = ptx_prmt(b, out[2 * i], out[2 * i + 1], ptx_u32(b, 0x6420));
        odd[i] = ptx_prmt(b, out[2 * i], out[2 * i + 1], ptx_u32(b, 0x7531));
    }
}

/* ---- One by one ---- */

void fp8_w_put_slowly(ptx_builder *b, const tile *t, ptx_val k0, ptx_val tile)
{
    const bool along_n = fp8_along_n(t);
    const unsigned run =
        along_n ? t->shape.n : 2 * t->shape.k; /* neighbouring threads load neighbouring bytes */
    const w_tile *w = &t->w;
    ptx_val i = ptx_for(b, ptx_tid_x(b), ptx_u32(b, TILE_BYTES), TILE_THREADS);
    ptx_val line = ptx_shr(b, i, ceil_log2(run)), at = ptx_and(b, i, (int)run - 1);
    ptx_val local = along_n ? at : line, n = w_output(b, w, local, 1),
            k = ptx_mad(b, w_part_k(b, w, k0, local), 2, along_n ? line : at);
    ptx_val value = ptx_var(b, ptx_u32(b, 0)), piece = ptx_shr(b, at, 4);
    ptx_if(b, ptx_setp(b, PTX_LT, k, ptx_cvt(b, PTX_U32, t->args.k)));
    ptx_val from = code_address(b, t, k, n);
    if (!along_n)
        from = ptx_add(b, w->codes, ptx_mad(b, ptx_cvt(b, PTX_U64, n), t->args.k, ptx_cvt(b, PTX_U64, k)));
    ptx_assign(b, value, ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U8, from, 0)));
    ptx_end_if(b);
    ptx_val place =
        along_n ? ptx_add(b, tile, line_place(b, line, piece)) : w_piece_address(b, w, tile, line, piece);
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U8, ptx_add(b, place, ptx_and(b, at, 15)), 0, value);
    ptx_end_for(b);
}
