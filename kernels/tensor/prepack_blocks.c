/* Packs and unpacks GGUF blocks: codes field by field, and the bytes around them unchanged. */
#include "kernels/tensor/prepack.h"

/* ---- Positions ---- */

/* The byte of a block (u32) that holds the bits of an element (u32), and the bit at which they begin. */
typedef struct field {
    ptx_val byte, shift;
} field;

static unsigned width(const block_part *part)
{
    return 8 / part->fields;
}

static field field_of(ptx_builder *b, const block_part *part, ptx_val element)
{
    const unsigned span = ceil_log2(part->span), fields = ceil_log2(part->fields);
    ptx_val in_run = ptx_and(b, element, (int)part->span - 1), run = ptx_shr(b, element, span + fields);
    ptx_val number = ptx_bfe(b, element, span, fields);
    ptx_val byte = ptx_add(b, ptx_mad(b, run, (int)part->span, in_run), (int)part->first);
    return (field){byte, part->fields > 1 ? ptx_mul(b, number, (int)width(part)) : ptx_u32(b, 0)};
}

/* The element of field f (known at emit time) of byte j (u32) of a part. */
static ptx_val element_of(ptx_builder *b, const block_part *part, ptx_val j, unsigned f)
{
    ptx_val run = ptx_shr(b, j, ceil_log2(part->span)), in_run = ptx_and(b, j, (int)part->span - 1);
    return ptx_add(b, ptx_mad(b, run, (int)(part->span * part->fields), in_run), (int)(f * part->span));
}

ptx_val prepack_block_address(ptx_builder *b, const packing *p, ptx_val n, ptx_val block)
{
    ptx_val of_row = ptx_shr(b, p->k, ceil_log2(p->blocks->elements));
    return ptx_mad(b, ptx_mad(b, n, of_row, block), ptx_u64(b, p->blocks->bytes), p->m.q.codes);
}

/* ---- Packing ---- */

static ptx_val bits_of(ptx_builder *b, const block_part *part, ptx_val block, ptx_val element)
{
    field f = field_of(b, part, element);
    ptx_val at = ptx_add(b, block, ptx_cvt(b, PTX_U64, f.byte));
    ptx_val byte = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U8, at, 0));
    return ptx_and(b, ptx_shr(b, byte, f.shift), (1 << width(part)) - 1);
}

ptx_val prepack_block_code(ptx_builder *b, const packing *p, ptx_val n, ptx_val k)
{
    const block_parts parts = block_parts_of(p->blocks);
    const unsigned elements = p->blocks->elements;
    ptx_val block = prepack_block_address(b, p, n, ptx_shr(b, k, ceil_log2(elements)));
    ptx_val element = ptx_and(b, ptx_cvt(b, PTX_U32, k), (int)elements - 1);
    ptx_val code = bits_of(b, &parts.low, block, element);
    if (!parts.high.fields)
        return code;
    return ptx_or(b, code, ptx_shl(b, bits_of(b, &parts.high, block, element), width(&parts.low)));
}

/* ---- Headers ---- */

/* The address of a packed part of column n's header, a word or the rest at the end, that begins at byte
 * `place`; `first`: the headers of all columns of this block. */
static ptx_val header_address(ptx_builder *b, const packing *p, ptx_val first, ptx_val columns, ptx_val n,
                              unsigned place)
{
    const unsigned all = block_header_bytes(p->blocks), step = place + 4 <= all ? 4 : all % 4;
    return ptx_at(b, ptx_mad(b, columns, ptx_u64(b, place), first), n, step);
}

/* Copies a header from the block to its packed place, or back; headers of columns that do not exist are 0. */
static void move_header(ptx_builder *b, const packing *p, ptx_val first, ptx_val columns, ptx_val n,
                        ptx_val block, bool back)
{
    const unsigned all = block_header_bytes(p->blocks);
    ptx_val exists = ptx_setp(b, PTX_LT, n, p->n);
    for (unsigned place = 0; place < all; place++) {
        const int in_block = (int)block_header_byte(p->blocks, place);
        ptx_val packed = header_address(b, p, first, columns, n, place / 4 * 4);
        if (back) {
            ptx_if(b, exists);
            ptx_st_global_u8(b, block, in_block, ptx_ld_global_nc(b, PTX_U8, packed, (int)(place % 4)));
            ptx_end_if(b);
        } else {
            ptx_val byte = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_U8, block, in_block, ptx_u32(b, 0));
            ptx_st_global_u8(b, packed, (int)(place % 4), byte);
        }
    }
}

/* Copies word w (u32) of a block that is all header, or the last bytes of it, to `packed`, or back. */
static void move_word(ptx_builder *b, const packing *p, ptx_val packed, ptx_val block, ptx_val w,
                      ptx_val exists, bool back)
{
    ptx_val first = ptx_shl(b, w, 2), from = ptx_at(b, block, first, 1);
    for (int i = 0; i < 4; i++) {
        ptx_val is_in = ptx_setp(b, PTX_LT, ptx_add(b, first, i), (int)p->blocks->bytes);
        if (back) {
            ptx_if(b, ptx_and(b, is_in, exists));
            ptx_st_global_u8(b, from, i, ptx_ld_global_nc(b, PTX_U8, packed, i));
        } else {
            ptx_val byte =
                ptx_ld_if(b, ptx_and(b, is_in, exists), PTX_GLOBAL, PTX_NC, PTX_U8, from, i, ptx_u32(b, 0));
            ptx_if(b, is_in);
            ptx_st_global_u8(b, packed, i, byte);
        }
        ptx_end_if(b);
    }
}

/* One word per thread, of blocks that are all header. */
static void move_words(ptx_builder *b, const packing *p, ptx_val columns, ptx_val of_row, ptx_val step,
                       bool back)
{
    const unsigned bytes = p->blocks->bytes, tail = bytes % 4;
    ptx_val words = ptx_u64(b, ceil_div(bytes, 4));
    ptx_val at = ptx_for(b, ptx_global_index64(b), ptx_mul(b, ptx_mul(b, columns, of_row), words), step);
    ptx_val number = ptx_div(b, at, columns), n = ptx_sub(b, at, ptx_mul(b, number, columns));
    ptx_val block = ptx_div(b, number, words),
            w = ptx_cvt(b, PTX_U32, ptx_sub(b, number, ptx_mul(b, block, words)));
    ptx_val first = ptx_mad(b, ptx_mul(b, block, columns), ptx_u64(b, bytes), p->packed);
    first = ptx_mad(b, columns, ptx_cvt(b, PTX_U64, ptx_shl(b, w, 2)), first);
    ptx_val size = ptx_u64(b, 4);
    if (tail)
        size = ptx_selp(b, size, ptx_u64(b, tail), ptx_setp(b, PTX_LT, w, (int)(bytes / 4)));
    move_word(b, p, ptx_mad(b, n, size, first), prepack_block_address(b, p, n, block), w,
              ptx_setp(b, PTX_LT, n, p->n), back);
    ptx_end_for(b);
}

/* One header per thread. */
void prepack_move_headers(ptx_builder *b, const packing *p, ptx_val step, bool back)
{
    ptx_val units_n = emit_divide_up(b, p->n, UNIT_N), columns = ptx_shl(b, units_n, ceil_log2(UNIT_N));
    ptx_val of_row = ptx_shr(b, p->k, ceil_log2(p->blocks->elements));
    if (!p->bits) {
        move_words(b, p, columns, of_row, step, back);
        return;
    }
    ptx_val codes = ptx_mul(b, ptx_mul(b, units_n, p->units_k), ptx_u64(b, p->unit.bytes));
    ptx_val headers = ptx_add(b, p->packed, codes);
    ptx_val at = ptx_for(b, ptx_global_index64(b), ptx_mul(b, columns, of_row), step);
    ptx_val block = ptx_div(b, at, columns), n = ptx_sub(b, at, ptx_mul(b, block, columns));
    ptx_val first =
        ptx_mad(b, ptx_mul(b, block, columns), ptx_u64(b, block_header_bytes(p->blocks)), headers);
    move_header(b, p, first, columns, n, prepack_block_address(b, p, n, block), back);
    ptx_end_for(b);
}

/* ---- Unpacking ---- */

/* Unpacks all bytes of a part, one per thread: from the bits from `shift` on of the codes that have fields
 * in it. */
static void unpack_part(ptx_builder *b, const packing *p, const block_part *part, unsigned shift,
                        ptx_val step)
{
    const unsigned elements = ceil_log2(p->blocks->elements),
                   bytes = ceil_log2(block_part_bytes(p->blocks, part));
    ptx_val of_row = ptx_shr(b, p->k, elements), all = ptx_shl(b, ptx_mul(b, p->n, of_row), bytes);
    ptx_val at = ptx_for(b, ptx_global_index64(b), all, step);
    ptx_val number = ptx_shr(b, at, bytes), n = ptx_div(b, number, of_row),
            block = ptx_sub(b, number, ptx_mul(b, n, of_row));
    ptx_val j = ptx_and(b, ptx_cvt(b, PTX_U32, at), (1 << bytes) - 1), byte = ptx_u32(b, 0);
    for (unsigned f = 0; f < part->fields; f++) {
        ptx_val k = ptx_add(b, ptx_shl(b, block, elements), ptx_cvt(b, PTX_U64, element_of(b, part, j, f)));
        ptx_val code = prepack_packed_code(b, p, n, k);
        ptx_val bits = ptx_and(b, shift ? ptx_shr(b, code, (int)shift) : code, (1 << width(part)) - 1);
        byte = ptx_or(b, byte, f ? ptx_shl(b, bits, (int)(f * width(part))) : bits);
    }
    ptx_val to = ptx_add(b, prepack_block_address(b, p, n, block), ptx_cvt(b, PTX_U64, j));
    ptx_st_global_u8(b, to, (int)part->first, byte);
    ptx_end_for(b);
}

void prepack_block_unpack(ptx_builder *b, const packing *p, ptx_val step)
{
    const block_parts parts = block_parts_of(p->blocks);
    if (parts.low.fields)
        unpack_part(b, p, &parts.low, 0, step);
    if (parts.high.fields)
        unpack_part(b, p, &parts.high, width(&parts.low), step);
    prepack_move_headers(b, p, step, true);
}
