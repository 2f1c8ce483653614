/* Elements from one type to another: loads and stores of runs of neighbours, and conversions in registers. */
#include "kernels/copy/copy.h"

#include "kernels/formats/pairs.h"

/* One row for each type. */
static const struct cast_type {
    int type;
    unsigned bytes;
    uint64_t nan;
} types[] = {
    {QDNN_DATA_F32, 4, 0x7FFFFFFF}, {QDNN_DATA_F16, 2, 0x7FFF},
    {QDNN_DATA_BF16, 2, 0x7FFF},    {QDNN_DATA_F64, 8, UINT64_C(0x7FFFFFFFE0000000)},
    {QDNN_DATA_F8E4M3, 1, 0x7F},    {QDNN_DATA_F8E5M2, 1, 0x7F},
    {QDNN_DATA_U8, 1, 0},           {QDNN_DATA_U16, 2, 0},
    {QDNN_DATA_U32, 4, 0},          {QDNN_DATA_U64, 8, 0},
};

static const struct cast_type *type_of(int type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].type == type)
            return &types[i];
    missing_row("types of copies", type);
}

unsigned cast_bytes(int type)
{
    return type_of(type)->bytes;
}

uint64_t cast_nan(int type)
{
    return type_of(type)->nan;
}

unsigned cast_vector(const kernel_copying *copy)
{
    const unsigned from = cast_bytes(copy->from), to = cast_bytes(copy->to);
    return LOAD_BYTES / (from > to ? from : to);
}

/* ---- Memory ---- */

/* The type of an access that is not of whole words. */
static ptx_type short_type(unsigned bytes)
{
    return bytes == 1 ? PTX_U8 : PTX_U16;
}

static bool is_pair_of_f64(int type, unsigned count)
{
    return cast_bytes(type) == 8 && count == 2;
}

cast_run cast_load(ptx_builder *b, const kernel_copying *copy, ptx_val address, unsigned count)
{
    cast_run run = {.count = count};
    const unsigned bytes = count * cast_bytes(copy->from);
    if (is_pair_of_f64(copy->from, count))
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U64, address, 0, run.part, 2);
    else if (cast_bytes(copy->from) == 8)
        run.part[0] = ptx_ld_global_nc(b, PTX_U64, address, 0);
    else if (bytes >= 4)
        emit_load_words(b, address, 0, bytes / 4, run.part);
    else
        run.part[0] = ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, short_type(bytes), address, 0));
    return run;
}

void cast_store(ptx_builder *b, const kernel_copying *copy, ptx_val address, const cast_run *y)
{
    const unsigned bytes = y->count * cast_bytes(copy->to);
    if (is_pair_of_f64(copy->to, y->count))
        ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, address, 0, y->part, 2);
    else if (cast_bytes(copy->to) == 8)
        ptx_st_global(b, address, 0, y->part[0]);
    else if (bytes >= 4)
        emit_store_words(b, address, 0, bytes / 4, y->part);
    else
        ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, short_type(bytes), address, 0, y->part[0]);
}

/* ---- Conversions ---- */

static bool is_fp8(int type)
{
    return type == QDNN_DATA_F8E4M3 || type == QDNN_DATA_F8E5M2;
}

/* Words hold more elements than a short run has: those beyond its end are not used. */
static void widen(ptx_builder *b, int type, const cast_run *run, ptx_val *x)
{
    const unsigned bytes = cast_bytes(type), in_word = bytes < 4 ? 4 / bytes : 1;
    for (unsigned i = 0; i < run->count; i += in_word) {
        const ptx_val part = run->part[i / in_word];
        if (bytes == 8)
            x[i] = ptx_cvt(b, PTX_F32, ptx_as(b, PTX_F64, part));
        else if (!is_fp8(type))
            emit_widen_word(b, (qdnnDataType_t)type, part, &x[i]);
        else
            for (unsigned k = 0; k < in_word && i + k < run->count; k++)
                x[i + k] = minifloat_decode(b, minifloat_of((qdnnDataType_t)type), part, 8 * k);
    }
}

/* Widening keeps the bits of a NaN that is f32 already, or bf16; adding -0 changes nothing else. */
static void make_nan_usual(ptx_builder *b, const kernel_copying *copy, unsigned count, ptx_val *x)
{
    const bool from_bits = copy->from == QDNN_DATA_F32 || copy->from == QDNN_DATA_BF16,
               to_bits = copy->to == QDNN_DATA_F32 || copy->to == QDNN_DATA_F64;
    for (unsigned i = 0; i < count && from_bits && to_bits; i++)
        x[i] = ptx_add(b, x[i], ptx_bits(b, PTX_F32, 0x80000000));
}

static ptx_val narrow_fp8(ptx_builder *b, int type, const ptx_val *x, unsigned count)
{
    ptx_val word = {0};
    for (unsigned i = 0; i < count; i++) {
        ptx_val code = minifloat_encode(b, minifloat_of((qdnnDataType_t)type), x[i], (minifloat_facts){0});
        word = i ? ptx_bfi(b, code, word, 8 * i, 8) : code;
    }
    return word;
}

static ptx_val narrow(ptx_builder *b, int type, const ptx_val *x, unsigned count)
{
    if (type == QDNN_DATA_F64)
        return ptx_as(b, PTX_U64, ptx_cvt(b, PTX_F64, x[0]));
    if (type == QDNN_DATA_F32)
        return ptx_as(b, PTX_U32, x[0]);
    if (is_fp8(type))
        return narrow_fp8(b, type, x, count);
    return emit_narrow_pair(b, (qdnnDataType_t)type, x[0], x[count > 1]);
}

cast_run cast_run_of(ptx_builder *b, const kernel_copying *copy, const cast_run *run)
{
    if (copy->from == copy->to)
        return *run;
    cast_run y = {.count = run->count};
    const unsigned bytes = cast_bytes(copy->to), in_part = bytes < 4 ? 4 / bytes : 1;
    ptx_val x[CAST_MAX];
    widen(b, copy->from, run, x);
    make_nan_usual(b, copy, run->count, x);
    for (unsigned i = 0; i < run->count; i += in_part) {
        const unsigned left = run->count - i;
        y.part[i / in_part] = narrow(b, copy->to, &x[i], left < in_part ? left : in_part);
    }
    return y;
}
