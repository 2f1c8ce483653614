/* Numbers as the tensor cores see them: formats taken apart into integer significand and exponent, rounding
 * back, and one dot product with every special case. dot.c computes the same faster where nothing is special.
 */
#include <math.h>
#include <string.h>

#include "internal.h"

#define NONE INT32_MAX

/* clang-format off */
static const tensor_format formats[] = {
    /* type   container shift mant exp bias  special     nan         */
    {T_F16,   16, 0,  10, 5,  15, 0x7C00,     0x7C01},
    {T_BF16,  16, 0,   7, 8, 127, 0x7F80,     0x7F81},
    {T_TF32,  32, 13, 10, 8, 127, 0x3FC00,    0x3FC01}, /* the low 13 bits are dropped */
    {T_E4M3,   8, 0,   3, 4,   7, 0x7F,       0x7F},
    {T_E5M2,   8, 0,   2, 5,  15, 0x7C,       0x7D},
    {T_E3M2,   8, 0,   2, 3,   3, NONE,       NONE},
    {T_E2M3,   8, 0,   3, 2,   1, NONE,       NONE},
    {T_E2M1,   8, 2,   1, 2,   1, NONE,       NONE},    /* in the middle of its byte for f8f6f4 */
    {T_F32,   32, 0,  23, 8, 127, 0x7F800000, 0x7F800001},
};
static const tensor_format packed_e2m1 = {T_E2M1, 4, 0, 1, 2, 1, NONE, NONE};
/* clang-format on */

const tensor_format *tensor_format_of(pvm_type type, bool packed4)
{
    if (packed4 && type == T_E2M1)
        return &packed_e2m1;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].type == type)
            return &formats[i];
    return NULL;
}

/* A finite number: significand * 2^(exp - mantissa bits of its format). */
typedef struct number {
    bool negative, is_inf, is_nan;
    int64_t significand;
    int exp;
} number;

static number unpack_number(const tensor_format *f, uint32_t bits)
{
    const int field = bits >> f->mantissa & ((1u << f->exponent) - 1);
    const uint32_t fraction = bits & ((1u << f->mantissa) - 1);
    const int32_t magnitude = (int32_t)(bits & ((1u << (f->mantissa + f->exponent)) - 1));
    return (number){
        .negative = bits >> (f->mantissa + f->exponent) & 1,
        .is_nan = magnitude >= f->nan,
        .is_inf = magnitude >= f->special && magnitude < f->nan,
        .significand = field ? fraction | 1u << f->mantissa : fraction,
        .exp = (field ? field : 1) - f->bias,
    };
}

/* One addend of the sum, cut toward zero at 2^(top - fraction). */
static int64_t align(int64_t significand, bool negative, int exp, int mantissa, int top, int fraction)
{
    const int left = significand ? fraction - mantissa - (top - exp) : 0; /* a zero's exp may lie above top */
    const int64_t cut = left >= 0 ? significand << left : left > -64 ? significand >> -left : 0;
    return negative ? -cut : cut;
}

/* What Inf and NaN among the addends make of the whole: true where they decide the result. */
static bool decided_by_specials(const number *x, const number *y, int n, number c, bool f16, uint32_t *result)
{
    bool nan = c.is_nan, positive = c.is_inf && !c.negative, negative = c.is_inf && c.negative;
    for (int i = 0; i < n; i++) {
        const bool inf = x[i].is_inf || y[i].is_inf;
        nan |= x[i].is_nan || y[i].is_nan;
        nan |= (x[i].is_inf && !y[i].is_inf && y[i].significand == 0) ||
               (y[i].is_inf && !x[i].is_inf && x[i].significand == 0);
        positive |= inf && x[i].negative == y[i].negative;
        negative |= inf && x[i].negative != y[i].negative;
    }
    if (nan || (positive && negative))
        *result = f16 ? F16_NAN : F32_NAN;
    else
        *result = f16 ? (negative ? 0xFC00u : 0x7C00u) : (negative ? 0xFF800000u : 0x7F800000u);
    return nan || positive || negative;
}

/* One operation: n products and c. */
static uint32_t fuse(const tensor_dot *dot, int n, const uint32_t *a, const uint32_t *b, int b_stride,
                     uint32_t c_bits, int scale_exp)
{
    number x[MAX_K], y[MAX_K];
    const tensor_format *c_format = tensor_format_of(dot->f16 ? T_F16 : T_F32, false);
    const number c = unpack_number(c_format, c_bits);
    uint32_t result;
    for (int i = 0; i < n; i++) {
        x[i] = unpack_number(dot->a, a[i]);
        y[i] = unpack_number(dot->b, b[i * b_stride]);
    }
    if (decided_by_specials(x, y, n, c, dot->f16, &result))
        return result;

    /* A zero addend takes e_zero: no addend that is not zero lets c or E fall below it, so it is a floor for
     * all. */
    int top = c.significand && c.exp > dot->zero_exp ? c.exp : dot->zero_exp;
    bool all_negative_zero = c.negative && c.significand == 0;
    for (int i = 0; i < n; i++) {
        const int exp = x[i].exp + y[i].exp + scale_exp;
        const int64_t product = x[i].significand * y[i].significand;
        all_negative_zero &= product == 0 && x[i].negative != y[i].negative;
        if (product && exp > top)
            top = exp;
    }
    const int mantissa = dot->a->mantissa + dot->b->mantissa;
    int64_t sum = align(c.significand, c.negative, c.exp, c_format->mantissa, top, dot->fraction);
    for (int i = 0; i < n; i++)
        sum += align(x[i].significand * y[i].significand, x[i].negative != y[i].negative,
                     x[i].exp + y[i].exp + scale_exp, mantissa, top, dot->fraction);
    if (all_negative_zero)
        return dot->f16 ? 0x8000u : 0x80000000u;
    return tensor_round(sum, top - dot->fraction, dot->f16, dot->short_f32);
}

/* A row of a times a column of b plus c: the operations one after the other. */
uint32_t tensor_dot_one(const tensor_dot *dot, int k, const uint32_t *a, const uint32_t *b, int b_stride,
                        uint32_t c, int scale_exp)
{
    for (int i = 0; i < k; i += dot->length)
        c = fuse(dot, k - i < dot->length ? k - i : dot->length, a + i, b + i * b_stride, b_stride, c,
                 scale_exp);
    return c;
}

float tensor_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint32_t tensor_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? F32_NAN : bits;
}

float tensor_f16_to_f32(uint32_t bits)
{
    const number x = unpack_number(&formats[0], bits);
    if (x.is_nan)
        return tensor_f32_from_bits(F32_NAN);
    if (x.is_inf)
        return x.negative ? -INFINITY : INFINITY;
    const float magnitude = ldexpf((float)x.significand, x.exp - 10);
    return x.negative ? -magnitude : magnitude;
}

uint32_t tensor_f32_to_f16(float value)
{
    const number x = unpack_number(&formats[sizeof formats / sizeof *formats - 1], tensor_f32_bits(value));
    if (x.is_nan)
        return F16_NAN;
    if (x.is_inf)
        return x.negative ? 0xFC00u : 0x7C00u;
    if (x.significand == 0)
        return x.negative ? 0x8000u : 0;
    const uint32_t magnitude = tensor_round(x.significand, x.exp - 23, true, false);
    return x.negative ? magnitude | 0x8000u : magnitude;
}

/* The sum of two f16 is exact in f64's 53 bits, and so in the integer that is rounded once here. */
uint32_t tensor_add_f16(uint32_t a, uint32_t b)
{
    const number x = unpack_number(&formats[0], a), y = unpack_number(&formats[0], b);
    if (x.is_nan || y.is_nan || (x.is_inf && y.is_inf && x.negative != y.negative))
        return F16_NAN;
    if (x.is_inf || y.is_inf)
        return x.is_inf ? a : b;
    if (x.significand == 0 && y.significand == 0)
        return a & b & 0x8000u;
    const int64_t sx = x.significand << (x.exp + 14), sy = y.significand << (y.exp + 14);
    return tensor_round((x.negative ? -sx : sx) + (y.negative ? -sy : sy), -24, true, false);
}
