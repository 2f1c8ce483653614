/* Values as pairs of 16 bits: moving codes into place, and the arithmetic that all formats share. */
#include "kernels/formats/pairs.h"

enum { HALF_BITS = 16, BYTE_BITS = 8, WORD_BYTES = 4 };

ptx_type pair_type(qdnnDataType_t type)
{
    return type == QDNN_DATA_F16 ? PTX_F16X2 : PTX_BF16X2;
}

unsigned pair_fraction_bits(qdnnDataType_t type)
{
    return type == QDNN_DATA_F16 ? 10 : 7;
}

static uint32_t half_bits(qdnnDataType_t type, float x)
{
    union {
        float value;
        uint32_t bits;
    } u = {x};
    if (type == QDNN_DATA_BF16 || x == 0)
        return u.bits >> 16;
    uint32_t magnitude =
        (u.bits & 0x7FFFFFFF) - (112u << 23); /* from an exponent biased by 127 to one by 15 */
    return (u.bits >> 31) << 15 | magnitude >> 13;
}

ptx_val pair_constant(ptx_builder *b, qdnnDataType_t type, float first, float second)
{
    return ptx_bits(b, pair_type(type), half_bits(type, first) | half_bits(type, second) << HALF_BITS);
}

ptx_val pair_add(ptx_builder *b, qdnnDataType_t type, ptx_val x, ptx_val y)
{
    return type == QDNN_DATA_F16 ? ptx_add(b, x, y) : ptx_fma(b, x, pair_constant(b, type, 1, 1), y);
}

ptx_val pair_mul(ptx_builder *b, qdnnDataType_t type, ptx_val x, ptx_val y)
{
    return type == QDNN_DATA_F16 ? ptx_mul(b, x, y) : ptx_fma(b, x, y, pair_constant(b, type, -0.0f, -0.0f));
}

/* ---- Placing ---- */

/* The shift that aligns a code with its destination within a byte (to the left if that loses none of its
 * bits), and how many bytes above its destination it is then. */
typedef struct move {
    int left;
    int bytes;
} move;

static move move_of(unsigned bits, unsigned position, unsigned at)
{
    unsigned left = (at + 32 - position) % BYTE_BITS;
    int shift = position + bits + left <= 32 ? (int)left : (int)left - BYTE_BITS;
    return (move){.left = shift, .bytes = ((int)position + shift - (int)at) / BYTE_BITS};
}

static ptx_val moved(ptx_builder *b, ptx_val word, int left)
{
    return left == 0 ? word : left > 0 ? ptx_shl(b, word, left) : ptx_shr(b, word, -left);
}

/* The prmt selectors of a half's two bytes; for a byte without bits of the code, any selector will do. */
static uint32_t selectors(int bytes)
{
    uint32_t low = bytes >= 0 && bytes < WORD_BYTES ? (uint32_t)bytes : 0;
    uint32_t high = bytes + 1 >= 0 && bytes + 1 < WORD_BYTES ? (uint32_t)bytes + 1 : 0;
    return low | high << 4;
}

static bool is_same(ptx_val x, ptx_val y)
{
    return x.kind == y.kind && x.reg == y.reg && x.bits == y.bits;
}

ptx_val pair_place(ptx_builder *b, unsigned bits, code_place first, unsigned first_at, code_place second,
                   unsigned second_at)
{
    move low = move_of(bits, first.position, first_at), high = move_of(bits, second.position, second_at);
    bool one_source = is_same(first.word, second.word) && low.left == high.left;
    ptx_val x = moved(b, first.word, low.left), y = one_source ? x : moved(b, second.word, high.left);
    if (one_source && low.bytes == 0 && high.bytes == 2)
        return x;
    uint32_t selector = selectors(low.bytes) | (selectors(high.bytes) | 0x44) << 8;
    return ptx_prmt(b, x, y, ptx_u32(b, selector));
}

/* ---- Groups ---- */

/* Whether the type can represent every scale of that type. */
static bool holds_scales(qdnnDataType_t type, qdnnScaleType_t scale)
{
    switch (scale) {
    case QDNN_SCALE_F16:
        return type == QDNN_DATA_F16;
    case QDNN_SCALE_BF16:
    case QDNN_SCALE_E8M0:
        return type == QDNN_DATA_BF16;
    case QDNN_SCALE_E4M3:
        return true;
    case QDNN_SCALE_F32:
        return false;
    }
    missing_row("scale types", (int)scale);
}

/* Whether codes minus zeros are integers of magnitude at most 256, which both types represent exactly. */
static bool zeros_are_short(const coding *c)
{
    const kernel_spec *spec = c->spec;
    switch (c->format->facts.zero_kind) {
    case QDNN_ZERO_NONE:
        return true;
    case QDNN_ZERO_POINT:
        return spec->stored.zero_packed ||
               spec->stored.zero == (spec->stored.code == QDNN_CODE_UNSIGNED ? QDNN_DATA_U8 : QDNN_DATA_I8);
    default:
        return false;
    }
}

bool pair_fits(const coding *c, qdnnDataType_t type)
{
    const codec *codec = c->format->codec;
    const kernel_spec *spec = c->spec;
    if (!codec->pair || spec->stored.nested || spec->stored.global_scale)
        return false;
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT) /* NaN must go through f32 to become the canonical NaN */
        return !codec->has_nan;
    return holds_scales(type, spec->stored.scale) && zeros_are_short(c);
}

bool pair_is_short(const ptx_builder *b, const coding *c, qdnnDataType_t type)
{
    const codec *codec = c->format->codec;
    if (!ptx_ok(b)) /* after running out of memory there may be no target */
        return false;
    if ((codec->has_pair && !codec->has_pair(b)) || (type == QDNN_DATA_BF16 && ptx_target(b)->number < 80))
        return false;
    return pair_fits(c, type);
}

pair_group pair_group_of(ptx_builder *b, const quantized *q, qdnnDataType_t type, const group_values *first,
                         const group_values *second)
{
    const coding *c = &q->coding;
    pair_group g = {.first = *first, .second = *second};
    if (!pair_is_short(b, c, type) || c->spec->stored.groups == QDNN_GROUPS_DEFAULT)
        return g;
    g.scale = ptx_as(b, pair_type(type), emit_narrow_pair(b, type, first->scale, second->scale));
    if (c->format->facts.zero_kind == QDNN_ZERO_POINT) {
        ptx_val low = ptx_neg(b, first->zero),
                high = is_same(first->zero, second->zero) ? low : ptx_neg(b, second->zero);
        g.minus_zero = ptx_as(b, pair_type(type), emit_narrow_pair(b, type, low, high));
    }
    return g;
}

/* ---- Values ---- */

/* The numbers of two codes as f32. Small floats are converted as a pair first, exactly, to f16: that takes
 * fewer instructions than one by one. */
static void units_of_pair(ptx_builder *b, const quantized *q, code_place first, code_place second,
                          ptx_val units[2])
{
    const coding *c = &q->coding;
    const codec *codec = c->format->codec;
    if (!c->format->number || (codec->has_pair && !codec->has_pair(b))) {
        units[0] = codec->unit(b, c, &q->state, first.word, first.position);
        units[1] = codec->unit(b, c, &q->state, second.word, second.position);
        return;
    }
    ptx_val halves[2], nothing = {0};
    ptx_unpack(b, PTX_F16, codec->pair(b, c, QDNN_DATA_F16, nothing, first, second), halves, 2);
    for (int i = 0; i < 2; i++)
        units[i] = ptx_cvt(b, PTX_F32, halves[i]);
}

ptx_val pair_decode(ptx_builder *b, const quantized *q, qdnnDataType_t type, const pair_group *group,
                    code_place first, code_place second)
{
    const coding *c = &q->coding;
    if (!pair_is_short(b, c, type)) {
        ptx_val units[2];
        units_of_pair(b, q, first, second, units);
        ptx_val low = group_decode(b, c, &q->side, &group->first, units[0]);
        ptx_val high = group_decode(b, c, &q->side, &group->second, units[1]);
        return emit_narrow_pair(b, type, low, high);
    }
    ptx_val units = c->format->codec->pair(b, c, type, group->minus_zero, first, second);
    if (group->scale.kind != PTX_NOTHING)
        units = pair_mul(b, type, units, group->scale);
    return ptx_as(b, PTX_U32, units);
}

/* ---- Blocks ---- */

bool block_pair_is_short(const block_layout *layout, qdnnDataType_t type)
{
    return type == QDNN_DATA_F16 && layout->scales == &scales_f16 && !layout->table;
}

ptx_val block_pair_scale(ptx_builder *b, const block_layout *layout, qdnnDataType_t type,
                         const block_strand *strand)
{
    if (!block_pair_is_short(layout, type))
        return (ptx_val){0};
    return ptx_as(b, pair_type(type), emit_narrow_pair(b, type, strand->scale, strand->scale));
}

/* Short: one permutation puts two codes, one byte each, into the fractions of 2^10. */
ptx_val block_decode_pair(ptx_builder *b, const block_layout *layout, const codec_state *state,
                          qdnnDataType_t type, const block_strand *strand, ptx_val scale, unsigned element)
{
    if (!block_pair_is_short(layout, type)) {
        ptx_val low = block_decode(b, layout, state, strand, element);
        ptx_val high = block_decode(b, layout, state, strand, element + 1);
        return emit_narrow_pair(b, type, low, high);
    }
    const unsigned byte = element % WORD_BYTES;
    const float extra = -(float)(1024 + layout->bias);
    ptx_val placed = ptx_prmt(b, strand->codes[element / WORD_BYTES], ptx_u32(b, 0x64646464),
                              ptx_u32(b, 0x4040 | byte | (byte + 1) << 8));
    ptx_val units =
        pair_add(b, type, ptx_as(b, pair_type(type), placed), pair_constant(b, type, extra, extra));
    return ptx_as(b, PTX_U32, pair_mul(b, type, units, scale));
}

/* ---- Numbers of codes ---- */

void code_numbers_of(const format_row *format, const kernel_spec *spec, uint64_t bits[16])
{
    const block_layout *blocks = block_layout_of(format);
    const bool is_signed = !blocks && spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT;
    const int least = blocks ? -(int)blocks->bias : spec->stored.code == QDNN_CODE_OFFSET ? -8 : 0;
    if (blocks && blocks->table) {
        block_table_bits(blocks, bits);
        return;
    }
    for (int i = 0; i < 16; i++)
        bits[i] = format->codec->numbers ? format->codec->numbers[i]
                                         : float_bits((float)(is_signed && i >= 8 ? i - 16 : least + i));
}
