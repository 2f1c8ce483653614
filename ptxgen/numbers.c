/* Numbers: a C number takes the type of the operand that it replaces, if it is exact in it; and how numbers
 * are written. */
#include "ptxgen/internal.h"

/* ---- C numbers get a type ---- */

static ptx_val typed(ptx_type type, uint64_t bits)
{
    return (ptx_val){.type = type, .kind = PTX_NUMBER, .bits = bits};
}

/* An integer fits into n bits if it does so as signed or as unsigned. */
static ptx_val integer_number(ptx_builder *b, ptx_type type, int64_t x)
{
    int bits = isa_type_bits(type);
    if (bits < 64 && (x < -(INT64_C(1) << (bits - 1)) || x >= INT64_C(1) << bits)) {
        ptx_fail(b, "%lld does not fit %s", (long long)x, isa_type_text(type));
        return (ptx_val){0};
    }
    return typed(type, bits < 64 ? (uint64_t)x & ((UINT64_C(1) << bits) - 1) : (uint64_t)x);
}

/* Converts the bits of a double to a float with fewer exponent and fraction bits; false if that is not exact
 * (subnormals are not supported: use ptx_bits for them). */
static bool narrow_real(uint64_t x, int exponent_bits, int fraction_bits, uint64_t *out)
{
    uint64_t sign = x >> 63, fraction = x & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(x >> 52 & 2047), bias = (1 << (exponent_bits - 1)) - 1;
    uint64_t top = sign << (exponent_bits + fraction_bits);
    *out = top;
    if (!(x << 1))
        return true;
    if (exponent == 2047 && !fraction) {
        *out = top | (((UINT64_C(1) << exponent_bits) - 1) << fraction_bits);
        return true;
    }
    int e = exponent - 1023 + bias;
    *out = top | (uint64_t)(e > 0 ? e : 0) << fraction_bits | fraction >> (52 - fraction_bits);
    return exponent != 2047 && e > 0 && e < (1 << exponent_bits) - 1 &&
           !(fraction & ((UINT64_C(1) << (52 - fraction_bits)) - 1));
}

static ptx_val real_number(ptx_builder *b, ptx_type type, uint64_t x)
{
    uint64_t bits = x;
    bool exact = true;
    switch (type) {
    case PTX_F64:
        break;
    case PTX_F32:
        exact = narrow_real(x, 8, 23, &bits);
        break;
    case PTX_BF16:
    case PTX_BF16X2:
        exact = narrow_real(x, 8, 7, &bits);
        break;
    case PTX_F16:
    case PTX_F16X2:
        exact = narrow_real(x, 5, 10, &bits);
        break;
    case PTX_F32X2:
        exact = narrow_real(x, 8, 23, &bits);
        bits |= bits << 32;
        break;
    default:
        ptx_fail(b, "a C number is given where %s is needed", isa_type_text(type));
        return (ptx_val){0};
    }
    if (type == PTX_F16X2 || type == PTX_BF16X2)
        bits |= bits << 16;
    if (!exact) {
        ptx_fail(b, "the C number is not exact in %s: use ptx_f32 or ptx_bits", isa_type_text(type));
        return (ptx_val){0};
    }
    return typed(type, bits);
}

ptx_val emit_number(ptx_builder *b, ptx_type type, ptx_val x)
{
    if (x.type == PTX_REAL)
        return real_number(b, type, x.bits);
    if (x.type != PTX_INT)
        return x;
    if (isa_type_is_integer(type))
        return integer_number(b, type, (int64_t)x.bits);
    int64_t value = (int64_t)x.bits;
    if (value > -(INT64_C(1) << 53) && value < INT64_C(1) << 53)
        return real_number(b, type, ptx_from_real((double)value).bits);
    ptx_fail(b, "the C number is not exact in %s", isa_type_text(type));
    return (ptx_val){0};
}

/* ---- writing ---- */

char *emit_put_signed(char *at, int64_t x)
{
    if (x < 0)
        *at++ = '-';
    return put_decimal(at, x < 0 ? -(uint64_t)x : (uint64_t)x);
}

static int hex_digits(uint64_t x)
{
    int n = 1;
    while (x >>= 4)
        n++;
    return n;
}

char *emit_put_number(char *at, ptx_val x)
{
    switch ((ptx_type)x.type) {
    case PTX_F32:
        return put_hex(put_string(at, "0f"), x.bits, 8);
    case PTX_F64:
        return put_hex(put_string(at, "0d"), x.bits, 16);
    case PTX_S16:
        return emit_put_signed(at, (int16_t)x.bits);
    case PTX_S32:
        return emit_put_signed(at, (int32_t)x.bits);
    case PTX_S64:
        return emit_put_signed(at, (int64_t)x.bits);
    case PTX_U16:
    case PTX_U32:
    case PTX_U64:
    case PTX_INT:
        return put_decimal(at, x.bits);
    case PTX_B8:
    case PTX_B16:
    case PTX_B32:
    case PTX_B64:
        return put_hex(put_string(at, "0x"), x.bits, hex_digits(x.bits));
    default:
        return put_hex(put_string(at, "0x"), x.bits, isa_type_bits(x.type) / 4);
    }
}
