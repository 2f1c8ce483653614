/* Densely packed codes: chunks of them are accessed directly in global memory or, if the size of a chunk's
 * codes in bytes is not a power of two, through shared memory. */
#include "kernels/formats/quantized.h"

static unsigned width_of(const coding *c)
{
    return c->format->facts.bits;
}

bool codes_are_nibbles(const coding *c)
{
    return width_of(c) == 4;
}

bool codes_are_bytes(const coding *c)
{
    return width_of(c) == 8;
}

bool nibbles_are_swapped(const coding *c)
{
    return codes_are_nibbles(c) && c->spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST;
}

unsigned quad_position(const coding *c, unsigned element)
{
    bool swapped = c->spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST;
    return width_of(c) * (swapped ? element ^ 1 : element);
}

bool codes_are_direct(const coding *c)
{
    return (width_of(c) & (width_of(c) - 1)) == 0;
}

/* ---- Direct access to global memory ---- */

/* Splits a word of several quads. */
static void split(ptx_builder *b, const coding *c, ptx_val word, unsigned count, ptx_val *quads)
{
    for (unsigned i = 0; i < count; i++)
        quads[i] = i == 0 ? word : ptx_shr(b, word, i * QUAD * width_of(c));
}

void codes_load(ptx_builder *b, const quantized *q, ptx_val address, int offset, unsigned elements,
                ptx_val *quads)
{
    const unsigned bytes = elements * width_of(&q->coding) / 8;
    ptx_val word;
    switch (bytes) {
    case 8:
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, address, offset, quads, 2);
        return;
    case 4:
        word = ptx_ld_global_nc(b, PTX_U32, address, offset);
        break;
    case 2:
        word = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U16, address, offset));
        break;
    default:
        word = ptx_ld_global_nc(b, PTX_U8, address, offset);
        break;
    }
    split(b, &q->coding, word, elements / QUAD, quads);
}

void codes_store(ptx_builder *b, const quantized *q, ptx_val address, int offset, unsigned elements,
                 const ptx_val *quads)
{
    const unsigned width = width_of(&q->coding), bytes = elements * width / 8;
    if (bytes == 8) {
        ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, address, offset, quads, 2);
        return;
    }
    ptx_val word = quads[0];
    if (elements > QUAD)
        word = ptx_or(b, word, ptx_shl(b, quads[1], QUAD * width));
    ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT,
              bytes == 4   ? PTX_U32
              : bytes == 2 ? PTX_U16
                           : PTX_U8,
              address, offset, word);
}

/* ---- Through shared memory ---- */

/* Includes one more vector, because the last quads are read as part of two words. */
stage stage_of_bytes(ptx_builder *b, const char *name, unsigned bytes, unsigned threads)
{
    stage s = {.bytes = bytes, .threads = threads};
    s.shared = ptx_shared(b, name, PTX_U32, bytes / 4 + 4, LOAD_BYTES);
    return s;
}

stage stage_begin(ptx_builder *b, const coding *c, unsigned tile, unsigned threads)
{
    return stage_of_bytes(b, "codes_stage", tile / 8 * width_of(c), threads);
}

/* Whether a thread copies more than one of the 16-byte vectors between global and shared memory. */
static bool has_many_vectors(const stage *s)
{
    return s->bytes > s->threads * LOAD_BYTES;
}

/* Begins what the threads do with each vector: a loop, or a condition. */
static ptx_val each_vector(ptx_builder *b, const stage *s)
{
    ptx_val at = ptx_mul(b, ptx_tid_x(b), LOAD_BYTES);
    if (has_many_vectors(s))
        return ptx_for(b, at, ptx_u32(b, s->bytes), s->threads * LOAD_BYTES);
    ptx_if(b, ptx_setp(b, PTX_LT, at, ptx_u32(b, s->bytes)));
    return at;
}

static void end_vectors(ptx_builder *b, const stage *s)
{
    if (has_many_vectors(s))
        ptx_end_for(b);
    else
        ptx_end_if(b);
}

void stage_load(ptx_builder *b, const stage *s, ptx_val first)
{
    ptx_val words[4];
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_tid_x(b), 0));
    ptx_st_shared(b, s->shared, (int)s->bytes, ptx_u32(b, 0));
    ptx_end_if(b);
    ptx_val at = each_vector(b, s);
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_add(b, first, ptx_cvt(b, PTX_U64, at)), 0, words, 4);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, ptx_add(b, s->shared, at), 0, words, 4);
    end_vectors(b, s);
    ptx_syncthreads(b);
}

void stage_quads(ptx_builder *b, const coding *c, const stage *s, ptx_val element, unsigned elements,
                 ptx_val *quads)
{
    for (unsigned i = 0; i < elements / QUAD; i++) {
        ptx_val bit = ptx_mul(b, ptx_add(b, element, i * QUAD), width_of(c));
        ptx_val at = ptx_at(b, s->shared, ptx_shr(b, bit, 5), 4);
        ptx_val low = ptx_ld_shared(b, PTX_U32, at, 0), high = ptx_ld_shared(b, PTX_U32, at, 4);
        quads[i] = ptx_shf_r(b, low, high, ptx_and(b, bit, 31));
    }
}

/* Eight codes take as many bytes as a code has bits. If a chunk has only four, two neighbouring lanes combine
 * theirs, and the even one stores them. `stores` may be nothing: always. */
static void put_bytes(ptx_builder *b, const coding *c, ptx_space space, ptx_val at, ptx_val stores,
                      unsigned elements, const ptx_val *quads)
{
    const unsigned width = width_of(c), quad_bits = QUAD * width;
    ptx_val low = quads[0], high = elements > QUAD ? quads[1] : ptx_shfl_down(b, quads[0], 1);
    ptx_val first = ptx_or(b, low, ptx_shl(b, high, quad_bits)); /* bytes 0 to 3 of the eight codes */
    ptx_val rest = ptx_shr(b, high, 32 - quad_bits);             /* and the remaining bytes */
    if (stores.kind != PTX_NOTHING)
        ptx_if(b, stores);
    for (unsigned i = 0; i < width; i++) {
        ptx_val word = i < 4 ? first : rest;
        ptx_st_as(b, space, PTX_CACHE_DEFAULT, PTX_U8, at, (int)i,
                  i % 4 ? ptx_shr(b, word, 8 * (i % 4)) : word);
    }
    if (stores.kind != PTX_NOTHING)
        ptx_end_if(b);
}

void stage_put(ptx_builder *b, const coding *c, const stage *s, ptx_val element, unsigned elements,
               const ptx_val *quads)
{
    stage_put_if(b, c, s, element, (ptx_val){0}, elements, quads);
}

void stage_put_if(ptx_builder *b, const coding *c, const stage *s, ptx_val element, ptx_val exists,
                  unsigned elements, const ptx_val *quads)
{
    ptx_val at = ptx_add(b, s->shared, ptx_shr(b, ptx_mul(b, element, width_of(c)), 3));
    if (elements == QUAD) {
        ptx_val place = ptx_and(b, element, QUAD);
        exists = exists.kind == PTX_NOTHING ? ptx_setp(b, PTX_EQ, place, 0)
                                            : ptx_setp_and(b, PTX_EQ, place, 0, exists);
    }
    put_bytes(b, c, PTX_SHARED, at, exists, elements, quads);
}

void codes_put(ptx_builder *b, const quantized *q, ptx_val chunk, ptx_val exists, unsigned elements,
               const ptx_val *quads)
{
    const coding *c = &q->coding;
    ptx_val bit = ptx_mul(b, chunk, ptx_u64(b, (uint64_t)elements * width_of(c)));
    ptx_val at = ptx_add(b, q->codes, ptx_shr(b, bit, 3));
    if (codes_are_direct(c)) {
        ptx_if(b, exists);
        codes_store(b, q, at, 0, elements, quads);
        ptx_end_if(b);
        return;
    }
    ptx_val odd = ptx_and(b, ptx_cvt(b, PTX_U32, chunk), 1);
    put_bytes(b, c, PTX_GLOBAL, at, elements > QUAD ? exists : ptx_setp_and(b, PTX_EQ, odd, 0, exists),
              elements, quads);
}

/* ---- A few elements at a time ---- */

/* The smallest number of elements that fills whole bytes. */
static unsigned elements_of_bytes(unsigned width)
{
    return width == 8 ? 1 : width == 4 ? 2 : width == 2 || width == 6 ? 4 : 8;
}

/* The first element of a few exists, and so does the first byte; the others do if both ends are multiples of 8. */
static bool may_be_beyond(unsigned i, bool is_whole)
{
    return i > 0 && !is_whole;
}

/* The codes of the few elements from index `at` (u64) on, as one word. */
static ptx_val encoded_word(ptx_builder *b, const quantized *q, const few_elements *few, ptx_val at,
                            unsigned count, bool is_wide)
{
    const qdnnDataType_t type = q->coding.spec->data;
    ptx_val word = {0};
    for (unsigned i = 0; i < count; i++) {
        ptx_val index = ptx_add(b, at, i);
        const unsigned position = count == 1 ? 0 : quad_position(&q->coding, i);
        if (may_be_beyond(i, few->is_whole))
            ptx_if(b, ptx_setp(b, PTX_LT, index, few->end));
        group_values group = few->only ? *few->only : flat_group(b, q, index);
        ptx_val x = emit_load(b, type, ptx_at(b, few->data, index, element_bytes(type)), 0);
        ptx_val code = element_encode(b, q, &group, x);
        if (is_wide)
            code = ptx_cvt(b, PTX_U64, code);
        if (position)
            code = ptx_shl(b, code, position);
        if (i == 0)
            word = ptx_var(b, code);
        else
            ptx_assign(b, word, ptx_or(b, word, code));
        if (may_be_beyond(i, few->is_whole))
            ptx_end_if(b);
    }
    return word;
}

void encode_few(ptx_builder *b, const quantized *q, const few_elements *few)
{
    const unsigned width = width_of(&q->coding), count = elements_of_bytes(width), bytes = count * width / 8;
    ptx_val start = ptx_add(b, few->first, ptx_cvt(b, PTX_U64, ptx_mul(b, few->lane, count))), total = {0};
    if (may_be_beyond(bytes - 1, few->is_whole))
        total = ptx_shr(b, ptx_add(b, ptx_mul(b, few->end, ptx_u64(b, width)), ptx_u64(b, 7)), 3);
    ptx_val at = ptx_for(b, start, few->end, ptx_u64(b, (uint64_t)few->lanes * count));
    ptx_val word = encoded_word(b, q, few, at, count, bytes > 4);
    ptx_val byte = ptx_shr(b, ptx_mul(b, at, ptx_u64(b, width)), 3), address = ptx_add(b, q->codes, byte);
    for (unsigned i = 0; i < bytes; i++) {
        ptx_val part = i ? ptx_shr(b, word, 8 * i) : word;
        if (may_be_beyond(i, few->is_whole))
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, byte, i), total));
        ptx_st_global_u8(b, address, (int)i, bytes > 4 ? ptx_cvt(b, PTX_U32, part) : part);
        if (may_be_beyond(i, few->is_whole))
            ptx_end_if(b);
    }
    ptx_end_for(b);
}

void stage_store(ptx_builder *b, const stage *s, ptx_val first)
{
    ptx_val words[4];
    ptx_syncthreads(b);
    ptx_val at = each_vector(b, s);
    ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, ptx_add(b, s->shared, at), 0, words, 4);
    ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, ptx_add(b, first, ptx_cvt(b, PTX_U64, at)), 0, words, 4);
    end_vectors(b, s);
}

/* ---- One code ---- */

/* The next byte is read only if the code extends into it: it may not exist. */
ptx_val code_at(ptx_builder *b, const quantized *q, ptx_val index)
{
    const unsigned width = width_of(&q->coding), swap = quad_position(&q->coding, 0) ? 1 : 0;
    ptx_val place = swap ? ptx_xor(b, index, ptx_u64(b, 1)) : index;
    ptx_val bit = ptx_mul(b, place, ptx_u64(b, width));
    ptx_val address = ptx_add(b, q->codes, ptx_shr(b, bit, 3));
    ptx_val shift = ptx_cvt(b, PTX_U32, ptx_and(b, bit, ptx_u64(b, 7)));
    ptx_val low = ptx_ld_global_nc(b, PTX_U8, address, 0);
    if (!codes_are_direct(&q->coding)) {
        ptx_val reaches = ptx_setp(b, PTX_GT, ptx_add(b, shift, width), 8);
        ptx_val high = ptx_ld_if(b, reaches, PTX_GLOBAL, PTX_NC, PTX_U8, address, 1, ptx_u32(b, 0));
        low = ptx_or(b, low, ptx_shl(b, high, 8));
    }
    return ptx_bfe(b, low, shift, width);
}
