/* Numbers of all types in arguments and outputs: from text to bits, and back. */
#include "tools/ptxvm/tool.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char value_type_names[] = "u8 to u64, s8 to s64, b8 to b64, x8 to x64, f16, bf16, f32 or f64";

/* clang-format off */
static const value_type types[] = {
    {"u8",  1, VALUE_UNSIGNED, 0}, {"u16",  2, VALUE_UNSIGNED, 0},
    {"u32", 4, VALUE_UNSIGNED, 0}, {"u64",  8, VALUE_UNSIGNED, 0},
    {"s8",  1, VALUE_SIGNED, 0},   {"s16",  2, VALUE_SIGNED, 0},
    {"s32", 4, VALUE_SIGNED, 0},   {"s64",  8, VALUE_SIGNED, 0},
    {"b8",  1, VALUE_UNSIGNED, 0}, {"b16",  2, VALUE_UNSIGNED, 0},
    {"b32", 4, VALUE_UNSIGNED, 0}, {"b64",  8, VALUE_UNSIGNED, 0},
    {"x8",  1, VALUE_HEX, 0},      {"x16",  2, VALUE_HEX, 0},
    {"x32", 4, VALUE_HEX, 0},      {"x64",  8, VALUE_HEX, 0},
    {"f16", 2, VALUE_FLOAT, 10},   {"bf16", 2, VALUE_FLOAT, 7},
    {"f32", 4, VALUE_FLOAT, 23},   {"f64",  8, VALUE_FLOAT, 52},
};
/* clang-format on */

const value_type *value_type_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0)
            return &types[i];
    return NULL;
}

static uint64_t mask(const value_type *type)
{
    return UINT64_MAX >> (64 - 8 * type->bytes);
}

/* ---- floating point ---- */

/* Rounds to nearest, ties to even. For the wider types the host's own conversions do it. */
static uint64_t half_bits(const value_type *type, double x)
{
    int fraction = type->mantissa, bias = (1 << (14 - fraction)) - 1, exponent;
    uint64_t sign = signbit(x) ? 0x8000 : 0, infinity = (uint64_t)(2 * bias + 1) << fraction;
    if (isnan(x))
        return sign | infinity | (UINT64_C(1) << (fraction - 1));
    if (x == 0)
        return sign;
    frexp(x, &exponent);
    if (isinf(x) || exponent - 1 > bias)
        return sign | infinity;
    int e = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    uint64_t scaled = (uint64_t)nearbyint(ldexp(fabs(x), fraction - e));
    /* The leading one of a normal number adds one to the exponent; so does a carry out of the rounding. */
    return sign | (((uint64_t)(e + bias - 1) << fraction) + scaled);
}

static double half_value(const value_type *type, uint64_t bits)
{
    int fraction = type->mantissa, bias = (1 << (14 - fraction)) - 1;
    int e = (int)(bits >> fraction) & (2 * bias + 1);
    uint64_t f = bits & ((UINT64_C(1) << fraction) - 1);
    double x = e == 2 * bias + 1 ? (f ? NAN : INFINITY)
               : e               ? ldexp((double)(f | UINT64_C(1) << fraction), e - bias - fraction)
                                 : ldexp((double)f, 1 - bias - fraction);
    return bits & 0x8000 ? -x : x;
}

static uint64_t float_bits(const value_type *type, double x)
{
    if (type->bytes == 2)
        return half_bits(type, x);
    uint64_t bits = 0;
    float narrow = (float)x;
    memcpy(&bits, type->bytes == 4 ? (void *)&narrow : (void *)&x, (size_t)type->bytes);
    return bits;
}

static double float_value(const value_type *type, uint64_t bits)
{
    double wide;
    float narrow;
    if (type->bytes == 2)
        return half_value(type, bits);
    memcpy(&narrow, &bits, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return type->bytes == 4 ? (double)narrow : wide;
}

/* ---- from text ---- */

/* PTX's exact bits: 0f3F800000, 0d3FF0000000000000. */
static bool parse_exact(const value_type *type, const char *text, uint64_t *bits)
{
    char letter = type->bytes == 4 ? 'f' : type->bytes == 8 ? 'd' : 0;
    if (!letter || text[0] != '0' || tolower((unsigned char)text[1]) != letter ||
        strlen(text + 2) != (size_t)(2 * type->bytes) ||
        strspn(text + 2, "0123456789abcdefABCDEF") != (size_t)(2 * type->bytes))
        return false;
    *bits = strtoull(text + 2, NULL, 16);
    return true;
}

static const char *parse_float(const value_type *type, const char *text, uint64_t *bits, char *why,
                               size_t size)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    if (parse_exact(type, text, bits))
        return NULL;
    if (digits[0] == '0' && tolower((unsigned char)digits[1]) == 'x' && !strpbrk(digits, "pP")) {
        snprintf(why, size, "0x... may be a value or bits: write b%d:%.40s for the bits", 8 * type->bytes,
                 text);
        return why;
    }
    /* Directly to f32: through f64 it would be rounded twice. */
    double x = type->bytes == 4 ? (double)strtof(text, &end) : strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)*text)) {
        snprintf(why, size, "'%.40s' is not a number of type %s", text, type->name);
        return why;
    }
    *bits = float_bits(type, x);
    return NULL;
}

/* Compilers declare signed parameters as .u32 and floats as .b32, so both interpretations of the bits are
 * accepted. */
static const char *parse_integer(const value_type *type, const char *text, uint64_t *bits, char *why,
                                 size_t size)
{
    bool negative = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');
    int base = digits[0] == '0' && tolower((unsigned char)digits[1]) == 'x' ? 16 : 10;
    char *end;
    errno = 0;
    uint64_t value = strtoull(digits, &end, base);
    if (!isdigit((unsigned char)*digits) || *end) {
        strtod(text, &end);
        bool is_float = !isspace((unsigned char)*text) && end != text && !*end;
        if (is_float && type->bytes > 1)
            snprintf(why, size, "'%.40s' is not a whole number: write f%d:%.40s if its bits are meant", text,
                     8 * type->bytes, text);
        else
            snprintf(why, size, "'%.40s' is not a whole number", text);
        return why;
    }
    if (errno || value > (negative ? (mask(type) >> 1) + 1 : mask(type))) {
        snprintf(why, size, "%.40s is out of range: %s holds -%" PRIu64 " to %" PRIu64, text, type->name,
                 (mask(type) >> 1) + 1, mask(type));
        return why;
    }
    *bits = (negative ? -value : value) & mask(type);
    return NULL;
}

const char *value_parse(const value_type *type, const char *text, uint64_t *bits, char *why, size_t size)
{
    return type->kind == VALUE_FLOAT ? parse_float(type, text, bits, why, size)
                                     : parse_integer(type, text, bits, why, size);
}

/* ---- to text ---- */

static void print_float(const value_type *type, uint64_t bits, char *text, size_t size)
{
    double x = float_value(type, bits);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, x);
        double again = type->bytes == 4 ? (double)strtof(text, NULL) : strtod(text, NULL);
        if (isnan(x) || float_bits(type, again) == bits)
            return;
    }
}

void value_print(const value_type *type, uint64_t bits, char *text, size_t size)
{
    int unused = 64 - 8 * type->bytes;
    switch (type->kind) {
    case VALUE_UNSIGNED:
        snprintf(text, size, "%" PRIu64, bits);
        break;
    case VALUE_SIGNED:
        snprintf(text, size, "%" PRId64, (int64_t)(bits << unused) >> unused);
        break;
    case VALUE_HEX:
        snprintf(text, size, "%0*" PRIx64, 2 * type->bytes, bits);
        break;
    case VALUE_FLOAT:
        print_float(type, bits, text, size);
        break;
    }
}

/* ---- sequences ---- */

uint64_t value_from_integer(const value_type *type, uint64_t number)
{
    return type->kind == VALUE_FLOAT ? float_bits(type, (double)number) : number & mask(type);
}

/* A counter whose bits are mixed so that every bit depends on all. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t value_random(const value_type *type, uint64_t *state)
{
    uint64_t x = next_random(state);
    return type->kind == VALUE_FLOAT ? float_bits(type, (double)(int64_t)x * 0x1p-63) : x & mask(type);
}

void value_store(const value_type *type, uint64_t bits, uint8_t *to)
{
    for (int i = 0; i < type->bytes; i++)
        to[i] = (uint8_t)(bits >> 8 * i);
}

uint64_t value_load(const value_type *type, const uint8_t *from)
{
    uint64_t bits = 0;
    for (int i = 0; i < type->bytes; i++)
        bits |= (uint64_t)from[i] << 8 * i;
    return bits;
}
