/* Elements of type f32, f16, bf16 and f64 (and integer zero points): loaded as f32, and rounded to nearest
 * even when stored.
 *
 * bf16 is the upper half of an f32, so widening is a shift on every SM. For narrowing to bf16 and to pairs
 * there are instructions from sm_80 on; on sm_75, integer arithmetic gives the same bits. */
#include "kernels/emit.h"

#include <stdio.h>
#include <stdlib.h>

static bool has_pair_cvt(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && sm->number >= 80;
}

_Noreturn void missing_row(const char *table, int value)
{
    fprintf(stderr, "qdnn: the table of %s has no row for %d\n", table, value);
    abort();
}

/* One row for each type in memory. */
static const struct element {
    qdnnDataType_t type;
    unsigned bytes;
    ptx_type memory;
    float smallest, largest; /* floats only */
} elements[] = {
    {QDNN_DATA_F32, 4, PTX_F32, 0x1p-149f, 0x1.fffffep127f},
    {QDNN_DATA_F16, 2, PTX_F16, 0x1p-24f, 65504.0f},
    {QDNN_DATA_BF16, 2, PTX_U16, 0x1p-133f, 0x1.fep127f},
    {QDNN_DATA_F64, 8, PTX_F64, 0, 0},
    {QDNN_DATA_U8, 1, PTX_U8, 0, 0},
    {QDNN_DATA_I8, 1, PTX_S8, 0, 0},
    {QDNN_DATA_U32, 4, PTX_U32, 0, 0},
    {QDNN_DATA_I32, 4, PTX_S32, 0, 0},
};

static const struct element *element_of(qdnnDataType_t type)
{
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (elements[i].type == type)
            return &elements[i];
    missing_row("elements", (int)type);
}

unsigned element_bytes(qdnnDataType_t type)
{
    return element_of(type)->bytes;
}

unsigned chunk_elements(qdnnDataType_t type)
{
    return element_bytes(type) == 2 ? 8 : 4;
}

unsigned chunk_bytes(qdnnDataType_t type)
{
    return chunk_elements(type) * element_bytes(type);
}

float element_smallest(qdnnDataType_t type)
{
    return element_of(type)->smallest;
}

float element_largest(qdnnDataType_t type)
{
    return element_of(type)->largest;
}

/* The low element of a pair of 16-bit elements in a u32. */
static ptx_val widen_low(ptx_builder *b, qdnnDataType_t type, ptx_val pair)
{
    if (type == QDNN_DATA_BF16)
        return ptx_as(b, PTX_F32, ptx_shl(b, pair, 16));
    ptx_val halves[2];
    ptx_unpack(b, PTX_F16, pair, halves, 2);
    return ptx_cvt(b, PTX_F32, halves[0]);
}

static void widen_pair(ptx_builder *b, qdnnDataType_t type, ptx_val pair, ptx_val *x)
{
    if (type == QDNN_DATA_BF16) {
        x[0] = widen_low(b, type, pair);
        x[1] = ptx_as(b, PTX_F32, ptx_and(b, pair, 0xFFFF0000u));
        return;
    }
    ptx_val halves[2];
    ptx_unpack(b, PTX_F16, pair, halves, 2);
    x[0] = ptx_cvt(b, PTX_F32, halves[0]);
    x[1] = ptx_cvt(b, PTX_F32, halves[1]);
}

static ptx_val load_as_f32(ptx_builder *b, qdnnDataType_t type, unsigned cache, ptx_val address, int offset)
{
    ptx_val x = ptx_ld(b, PTX_GLOBAL, cache, element_of(type)->memory, address, offset);
    if (type == QDNN_DATA_F32)
        return x;
    if (type == QDNN_DATA_BF16)
        return widen_low(b, type, ptx_cvt(b, PTX_U32, x));
    return ptx_cvt(b, PTX_F32, x);
}

ptx_val emit_load(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset)
{
    return load_as_f32(b, type, PTX_NC, address, offset);
}

ptx_val emit_load_mutable(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset)
{
    return load_as_f32(b, type, PTX_CACHE_DEFAULT, address, offset);
}

/* Rounds to nearest even by adding just under half of the last kept place (one more if that place is odd); a
 * carry into the exponent gives the correct result, up to infinity. NaN needs a separate case, because it
 * could carry, too. The result is in the low 16 bits. */
static ptx_val bf16_by_integers(ptx_builder *b, ptx_val x)
{
    ptx_val bits = ptx_as(b, PTX_U32, x);
    ptx_val odd = ptx_bfe(b, bits, 16, 1);
    ptx_val rounded = ptx_shr(b, ptx_add(b, ptx_add(b, bits, 0x7FFF), odd), 16);
    return ptx_selp(b, ptx_u32(b, 0x7FFF), rounded, ptx_testp_nan(b, x));
}

/* x rounded to a 16-bit type, in the low half of a u32. */
static ptx_val narrow(ptx_builder *b, qdnnDataType_t type, ptx_val x)
{
    if (type == QDNN_DATA_F16)
        return ptx_cvt(b, PTX_U32, ptx_as(b, PTX_U16, ptx_cvt_rn(b, PTX_F16, x)));
    if (has_pair_cvt(b))
        return ptx_cvt(b, PTX_U32, ptx_as(b, PTX_U16, ptx_cvt_rn(b, PTX_BF16, x)));
    return bf16_by_integers(b, x);
}

ptx_val emit_narrow_pair(ptx_builder *b, qdnnDataType_t type, ptx_val lo, ptx_val hi)
{
    if (has_pair_cvt(b))
        return ptx_as(b, PTX_U32, ptx_cvt_pair(b, type == QDNN_DATA_F16 ? PTX_F16X2 : PTX_BF16X2, lo, hi));
    return ptx_prmt(b, narrow(b, type, lo), narrow(b, type, hi), 0x5410);
}

ptx_val emit_round(ptx_builder *b, qdnnDataType_t type, ptx_val x)
{
    if (type != QDNN_DATA_F16 && type != QDNN_DATA_BF16)
        return x;
    return widen_low(b, type, narrow(b, type, x));
}

void emit_store_exact(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val x)
{
    if (type == QDNN_DATA_BF16)
        ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U16, address, offset,
                  ptx_shr(b, ptx_as(b, PTX_U32, x), 16));
    else
        emit_store(b, type, address, offset, x);
}

void emit_store(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val x)
{
    switch (type) {
    case QDNN_DATA_F32:
        ptx_st_global(b, address, offset, x);
        return;
    case QDNN_DATA_F64:
        ptx_st_global(b, address, offset, ptx_cvt(b, PTX_F64, x));
        return;
    case QDNN_DATA_F16:
    case QDNN_DATA_BF16:
        ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U16, address, offset, narrow(b, type, x));
        return;
    case QDNN_DATA_U8:
    case QDNN_DATA_I8:
        ptx_st_global_u8(b, address, offset, ptx_as(b, PTX_U32, ptx_cvt_rni(b, PTX_S32, x)));
        return;
    case QDNN_DATA_U32:
    case QDNN_DATA_I32:
        ptx_st_global(b, address, offset, ptx_cvt_rni(b, PTX_S32, x));
        return;
    default:
        missing_row("elements", (int)type);
    }
}

unsigned vector_elements(qdnnDataType_t type)
{
    return LOAD_BYTES / element_bytes(type);
}

void emit_load_vector(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val *x)
{
    ptx_val parts[4];
    if (type == QDNN_DATA_F32) {
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_F32, address, offset, x, 4);
        return;
    }
    if (type == QDNN_DATA_F64) {
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_F64, address, offset, parts, 2);
        for (int i = 0; i < 2; i++)
            x[i] = ptx_cvt(b, PTX_F32, parts[i]);
        return;
    }
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, address, offset, parts, 4);
    for (int i = 0; i < 4; i++)
        widen_pair(b, type, parts[i], &x[2 * i]);
}

void emit_load_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val *x)
{
    for (unsigned i = 0; i < chunk_elements(type); i += vector_elements(type))
        emit_load_vector(b, type, address, offset + (int)(i * element_bytes(type)), &x[i]);
}

void emit_store_vector(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, const ptx_val *x,
                       unsigned count)
{
    ptx_val parts[4];
    if (type == QDNN_DATA_F32) {
        ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, address, offset, x, (int)count);
        return;
    }
    const unsigned per_part = type == QDNN_DATA_F64 ? 1 : 2;
    for (unsigned i = 0; i < count; i += per_part)
        parts[i / per_part] =
            per_part == 1 ? ptx_cvt(b, PTX_F64, x[i]) : emit_narrow_pair(b, type, x[i], x[i + 1]);
    ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, address, offset, parts, (int)(count / per_part));
}

void emit_store_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, const ptx_val *x)
{
    const unsigned count = vector_elements(type);
    for (unsigned i = 0; i < chunk_elements(type); i += count)
        emit_store_vector(b, type, address, offset + (int)(i * element_bytes(type)), &x[i], count);
}

/* ---- Runs ---- */

static unsigned words_per_access(unsigned count)
{
    return count < 4 ? count : 4;
}

void emit_load_words(ptx_builder *b, ptx_val address, int offset, unsigned count, ptx_val *words)
{
    unsigned n = words_per_access(count);
    for (unsigned i = 0; i < count; i += n)
        if (n == 1)
            words[i] = ptx_ld_global_nc(b, PTX_U32, address, offset + 4 * (int)i);
        else
            ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, address, offset + 4 * (int)i, &words[i], (int)n);
}

void emit_store_words(ptx_builder *b, ptx_val address, int offset, unsigned count, const ptx_val *words)
{
    unsigned n = words_per_access(count);
    for (unsigned i = 0; i < count; i += n)
        if (n == 1)
            ptx_st_global(b, address, offset + 4 * (int)i, words[i]);
        else
            ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, address, offset + 4 * (int)i, &words[i], (int)n);
}

/* The elements of a word: one of 32 bits, two of 16 or four of 8. */
void emit_widen_word(ptx_builder *b, qdnnDataType_t type, ptx_val word, ptx_val *x)
{
    switch (type) {
    case QDNN_DATA_F32:
        x[0] = ptx_as(b, PTX_F32, word);
        return;
    case QDNN_DATA_U32:
        x[0] = ptx_cvt(b, PTX_F32, word);
        return;
    case QDNN_DATA_I32:
        x[0] = ptx_cvt(b, PTX_F32, ptx_as(b, PTX_S32, word));
        return;
    case QDNN_DATA_U8:
    case QDNN_DATA_I8:
        for (unsigned i = 0; i < 4; i++)
            x[i] = ptx_cvt_low(b, PTX_F32, element_of(type)->memory, i ? ptx_shr(b, word, 8 * i) : word);
        return;
    default:
        widen_pair(b, type, word, x);
        return;
    }
}

void emit_load_run(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                   ptx_val *x)
{
    const unsigned bytes = element_bytes(type), words = count * bytes / 4;
    ptx_val word[CHUNK_MAX];
    if (type == QDNN_DATA_F64) {
        for (unsigned i = 0; i < count; i += 2)
            emit_load_vector(b, type, address, offset + (int)(i * bytes), &x[i]);
        return;
    }
    emit_load_words(b, address, offset, words, word);
    for (unsigned i = 0; i < words; i++)
        emit_widen_word(b, type, word[i], &x[i * 4 / bytes]);
}

void emit_store_run(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                    const ptx_val *x)
{
    const unsigned step = count < vector_elements(type) ? count : vector_elements(type);
    for (unsigned i = 0; i < count; i += step)
        emit_store_vector(b, type, address, offset + (int)(i * element_bytes(type)), &x[i], step);
}

/* ---- Stored scales ---- */

static const struct stored_scale {
    unsigned bytes;
    qdnnDataType_t data; /* 0: one byte */
} stored[] = {
    [QDNN_SCALE_F32] = {4, QDNN_DATA_F32},
    [QDNN_SCALE_F16] = {2, QDNN_DATA_F16},
    [QDNN_SCALE_BF16] = {2, QDNN_DATA_BF16},
    [QDNN_SCALE_E4M3] = {1, 0},
    [QDNN_SCALE_E8M0] = {1, 0},
};

static const struct stored_scale *stored_of(qdnnScaleType_t type)
{
    if ((size_t)type >= sizeof stored / sizeof stored[0] || !stored[type].bytes)
        missing_row("stored scales", (int)type);
    return &stored[type];
}

unsigned scale_bytes(qdnnScaleType_t type)
{
    return stored_of(type)->bytes;
}

qdnnDataType_t scale_data_type(qdnnScaleType_t type)
{
    return stored_of(type)->data;
}
