/* Packs and unpacks TQ1_0: its bytes of five digits are reordered like codes of 8 bits. No byte changes. */
#include "kernels/tensor/prepack.h"

enum { WORDS_TOGETHER = 2 };

/* The blocks of columns g and g + 8 of a unit, from this lane's first byte on; and whether they exist. */
typedef struct lane_blocks {
    ptx_val from[2], exists[2];
} lane_blocks;

static lane_blocks blocks_of_lane(ptx_builder *b, const packing *p, ptx_val unit, ptx_val lane)
{
    ptx_val row = ptx_div(b, unit, p->units_k), block = ptx_sub(b, unit, ptx_mul(b, row, p->units_k));
    ptx_val g = ptx_cvt(b, PTX_U64, ptx_shr(b, lane, 2)), t = ptx_cvt(b, PTX_U64, ptx_and(b, lane, 3));
    lane_blocks l;
    for (unsigned i = 0; i < 2; i++) {
        ptx_val n = ptx_add(b, ptx_mad(b, row, ptx_u64(b, UNIT_N), g), ptx_u64(b, 8 * i));
        l.from[i] = ptx_add(b, prepack_block_address(b, p, n, block), ptx_shl(b, t, 1));
        l.exists[i] = ptx_setp(b, PTX_LT, n, p->n);
    }
    return l;
}

/* Byte c of word w belongs to column g + 8 (c % 2); returns its offset from the lane's first byte of the
 * block. */
static int byte_of_block(unsigned w, unsigned c)
{
    return (int)(8 * w + c / 2);
}

static void pack_word(ptx_builder *b, const lane_blocks *l, unsigned w, ptx_val to)
{
    ptx_val word = ptx_u32(b, 0);
    for (unsigned c = 0; c < 4; c++) {
        ptx_val byte = ptx_ld_if(b, l->exists[c % 2], PTX_GLOBAL, PTX_NC, PTX_U8, l->from[c % 2],
                                 byte_of_block(w, c), ptx_u32(b, 0));
        byte = ptx_cvt(b, PTX_U32, byte);
        word = c ? ptx_bfi(b, byte, word, 8 * c, 8) : byte;
    }
    ptx_st_global(b, to, 0, word);
}

static void unpack_word(ptx_builder *b, const lane_blocks *l, unsigned w, ptx_val from)
{
    ptx_val word = ptx_ld_global_nc(b, PTX_U32, from, 0);
    for (unsigned c = 0; c < 4; c++) {
        ptx_if(b, l->exists[c % 2]);
        ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U8, l->from[c % 2], byte_of_block(w, c),
                  c ? ptx_shr(b, word, (int)(8 * c)) : word);
        ptx_end_if(b);
    }
}

/* One thread per lane of a unit; then the headers. */
void prepack_ternary(ptx_builder *b, const packing *p, ptx_val step, bool back)
{
    ptx_val units_n = emit_divide_up(b, p->n, UNIT_N);
    ptx_val at = ptx_for(b, ptx_global_index64(b), ptx_shl(b, ptx_mul(b, units_n, p->units_k), 5), step);
    ptx_val unit = ptx_shr(b, at, 5), lane = ptx_and(b, ptx_cvt(b, PTX_U32, at), WARP - 1);
    lane_blocks l = blocks_of_lane(b, p, unit, lane);
    ptx_val packed = ptx_at(b, ptx_at(b, p->packed, unit, p->unit.bytes), lane, 4 * WORDS_TOGETHER);
    for (unsigned w = 0; w < TERNARY_WORDS; w++) {
        const unsigned place = 4 * (w / WORDS_TOGETHER * WARP * WORDS_TOGETHER + w % WORDS_TOGETHER);
        (back ? unpack_word : pack_word)(b, &l, w, ptx_add(b, packed, ptx_u64(b, place)));
    }
    ptx_end_for(b);
    prepack_move_headers(b, p, step, back);
}
