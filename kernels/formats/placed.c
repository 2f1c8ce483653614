/* Integer codes decoded where they lie (placed.h). */
#include "kernels/formats/placed.h"

#include "kernels/formats/pairs.h"

enum {
    LAST_PLACE = 149,  /* the subnormal f32 with only bit 0 is 2^-149 */
    SCALE_LEAST = -76, /* exponents of scales that leave bare codes exact ... */
    SCALE_MOST = 26,   /* ... and finite, times 2^(149 - 48) */
    ZERO_MOST = 4096,
    ZERO_MOST_APART = 1 << 22 /* below which 2^23 + zero is exact */
};

static unsigned bits_of(const coding *c)
{
    return c->format->facts.bits;
}

ptx_val emit_power_of_two(ptx_builder *b, int e)
{
    return ptx_bits(b, PTX_F32, (uint64_t)(e + 127) << 23);
}

/* ---- Properties ---- */

bool has_f32x2(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && sm->has_f32x2;
}

bool has_mixed_fma(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && sm->number >= 100;
}

bool scale_is_narrow(const kernel_spec *spec)
{
    return spec->stored.scale == QDNN_SCALE_F16 || spec->stored.scale == QDNN_SCALE_BF16;
}

bool zero_is_integer(const kernel_spec *spec)
{
    return spec->stored.zero_packed || !format_zero_is_float(spec);
}

/* Scales of 16 bits have at most 11 bits of precision, and an offset is a power of two. */
bool zero_times_scale_is_exact(const coding *c)
{
    if (!format_has_zero(c->format))
        return true;
    return c->format->facts.zero_kind == QDNN_ZERO_POINT && scale_is_narrow(c->spec) &&
           zero_is_integer(c->spec);
}

float placed_offset(const coding *c)
{
    return c->spec->stored.code == QDNN_CODE_UNSIGNED ? 0 : (float)(1u << (bits_of(c) - 1));
}

ptx_val placed_zero(ptx_builder *b, const coding *c, const group_values *group)
{
    const float offset = placed_offset(c);
    if (!format_has_zero(c->format))
        return ptx_f32(b, offset);
    return offset != 0 ? ptx_add(b, group->zero, ptx_f32(b, offset)) : group->zero;
}

/* ---- Codes at their places ---- */

static uint32_t mask_of(const coding *c)
{
    return (1u << bits_of(c)) - 1;
}

/* The sign bit of a code in two's complement; else 0. */
static uint32_t flip_of(const coding *c)
{
    return c->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT ? 1u << (bits_of(c) - 1) : 0;
}

ptx_val placed_code(ptx_builder *b, const coding *c, ptx_val word, unsigned place, bool is_bare)
{
    const uint32_t other = flip_of(c) << place | (is_bare ? 0 : (150u - place) << 23);
    ptx_val bits = ptx_u32(b, mask_of(c) << place);
    return ptx_as(b, PTX_F32,
                  other ? ptx_lop3(b, word, bits, ptx_u32(b, other), (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C)
                        : ptx_and(b, word, bits));
}

float placed_surplus(qdnnDataType_t type, unsigned place)
{
    return (float)(1u << ((type == QDNN_DATA_F32 ? 23 : pair_fraction_bits(type)) - place));
}

ptx_val placed_pair(ptx_builder *b, const coding *c, qdnnDataType_t type, ptx_val word,
                    const unsigned places[2])
{
    const unsigned fraction = pair_fraction_bits(type), bias = type == QDNN_DATA_F16 ? 15 : 127;
    uint32_t mask = 0, other = 0;
    for (unsigned i = 0; i < 2; i++) {
        mask |= mask_of(c) << places[i] << 16 * i;
        other |= ((bias + fraction - places[i]) << fraction | flip_of(c) << places[i]) << 16 * i;
    }
    return ptx_lop3(b, word, ptx_u32(b, mask), ptx_u32(b, other), (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C);
}

/* ---- Moves ---- */

const unsigned *placed_few(const coding *c)
{
    static const unsigned places[9][PLACED_FEW] = {
        [3] = {0, 3, 6}, [4] = {8, 12, 16}, [5] = {0, 5, 10}, [6] = {0, 6, 12}, [8] = {0, 8, 16}};
    const unsigned *few = places[bits_of(c)];
    return few[1] ? few : NULL;
}

const placed_moves *placed_moves_few(const coding *c)
{
    static const placed_moves nibbles = {{8, 0, -12}, {0, 0, 1, 1, 1, 2, 2, 2}},
                              bytes = {{0, -8}, {0, 0, 0, 1}};
    return codes_are_nibbles(c) ? &nibbles : &bytes;
}

const placed_moves *placed_moves_one(const coding *c)
{
    static const placed_moves nibbles = {{0, -12}, {0, 0, 0, 0, 0, 1, 1, 1}},
                              bytes = {{0, -16}, {0, 0, 1, 1}};
    return codes_are_nibbles(c) ? &nibbles : &bytes;
}

placed_word placed_word_of(ptx_builder *b, const placed_moves *m, ptx_val word)
{
    placed_word out;
    for (unsigned i = 0; i < 3; i++)
        out.copy[i] = m->shifts[i] > 0 ? ptx_shl(b, word, m->shifts[i])
                      : m->shifts[i]   ? ptx_shr(b, word, -m->shifts[i])
                                       : word;
    return out;
}

unsigned placed_at(const coding *c, const placed_moves *m, unsigned position)
{
    return (unsigned)((int)position + m->shifts[m->of[position / bits_of(c)]]);
}

/* ---- Numbers of a group ---- */

/* Scales of f16 are never too small. */
static ptx_val scale_serves(ptx_builder *b, const coding *c, ptx_val scale)
{
    ptx_val size = ptx_abs(b, scale), most = emit_power_of_two(b, SCALE_MOST);
    if (c->spec->stored.scale == QDNN_SCALE_F16)
        return ptx_setp(b, PTX_LE, size, most);
    ptx_val above = ptx_setp(b, PTX_GE, size, emit_power_of_two(b, SCALE_LEAST));
    return ptx_setp_and(b, PTX_LE, size, most, ptx_setp_or(b, PTX_EQ, size, 0.0f, above));
}

static ptx_val prepare_bare(ptx_builder *b, const coding *c, const group_values *group,
                            const unsigned *places, unsigned count, ptx_val *numbers)
{
    ptx_val scale = group->scale, serves = scale_serves(b, c, scale);
    for (unsigned i = 0; i < count; i++)
        numbers[i] = ptx_mul(b, scale, emit_power_of_two(b, LAST_PLACE - PLACED_X_EXPONENT - (int)places[i]));
    if (!format_has_zero(c->format)) {
        numbers[count] = ptx_mul(b, scale, ptx_f32(b, -placed_offset(c) * 0x1p-48f));
        return serves;
    }
    ptx_val zero = placed_zero(b, c, group);
    numbers[count] = ptx_mul(b, zero, ptx_mul(b, scale, ptx_f32(b, -0x1p-48f)));
    return ptx_setp_and(b, PTX_LE, ptx_abs(b, zero), ptx_f32(b, ZERO_MOST), serves);
}

/* The largest of the constants is finite. */
static ptx_val prepare_narrow(ptx_builder *b, const coding *c, const group_values *group,
                              const unsigned *places, unsigned count, ptx_val *numbers)
{
    numbers[0] = group->scale;
    for (unsigned i = 0; i < count; i++)
        numbers[1 + i] = ptx_mul(b, group->scale,
                                 ptx_f32(b, -(placed_surplus(QDNN_DATA_F32, places[i]) + placed_offset(c))));
    return ptx_setp(b, PTX_LE, ptx_abs(b, numbers[1]), ptx_f32(b, element_largest(QDNN_DATA_F32)));
}

static ptx_val prepare_apart(ptx_builder *b, const coding *c, const group_values *group,
                             const unsigned *places, unsigned count, ptx_val *numbers)
{
    ptx_val zero = placed_zero(b, c, group);
    numbers[0] = group->scale;
    for (unsigned i = 0; i < count; i++)
        numbers[1 + i] = ptx_sub(b, ptx_f32(b, -placed_surplus(QDNN_DATA_F32, places[i])), zero);
    return ptx_setp(b, PTX_LT, ptx_abs(b, zero), ptx_f32(b, ZERO_MOST_APART));
}

ptx_val placed_prepare(ptx_builder *b, const placed_decode *d, const coding *c, const group_values *group,
                       const unsigned *places, unsigned count, ptx_val *numbers)
{
    return (d->is_bare      ? prepare_bare
            : d->adds_first ? prepare_apart
                            : prepare_narrow)(b, c, group, places, count, numbers);
}

ptx_val placed_value(ptx_builder *b, const placed_decode *d, ptx_val code, const ptx_val *numbers,
                     unsigned count, unsigned i)
{
    ptx_val factor = numbers[d->is_bare ? i : 0], addend = numbers[d->is_bare ? count : 1 + i];
    return d->adds_first ? ptx_mul(b, ptx_add(b, code, addend), factor) : ptx_fma(b, code, factor, addend);
}

const placed_decode placed_fused = {.is_bare = true, .exponent = PLACED_X_EXPONENT};
const placed_decode placed_narrow = {0};
const placed_decode placed_apart = {.adds_first = true};
