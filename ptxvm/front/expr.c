/* Constant expressions: C's integer operators on 64-bit values, signed unless a part is unsigned;
 * floating-point literals, which may be negated. PTX ISA, "Constant Expressions". */
#include "front.h"

#include <string.h>

double f64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t bits_from_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint32_t bits_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Binary operators, in increasing precedence. */
static const struct {
    int punct, level;
} operators[] = {{PUNCT_OR, 1},  {PUNCT_AND, 2}, {'|', 3}, {'^', 4},      {'&', 5},      {PUNCT_EQ, 6},
                 {PUNCT_NE, 6},  {'<', 7},       {'>', 7}, {PUNCT_LE, 7}, {PUNCT_GE, 7}, {PUNCT_SHL, 8},
                 {PUNCT_SHR, 8}, {'+', 9},       {'-', 9}, {'*', 10},     {'/', 10},     {'%', 10}};

enum { TIGHTEST = 10 };

static int operator_level(const parser *p)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (at_punct(p, operators[i].punct))
            return operators[i].level;
    return 0;
}

static constant integer(uint64_t value, bool is_unsigned)
{
    return (constant){CONSTANT_INT, value, is_unsigned};
}

static uint64_t divide(parser *p, int punct, constant a, constant b, bool is_unsigned)
{
    if (b.value == 0)
        parse_fail(p, PVM_ERROR_SYNTAX, "division by zero in a constant expression");
    if (is_unsigned)
        return punct == '/' ? a.value / b.value : a.value % b.value;
    if (b.value == UINT64_MAX) /* -1: the only quotient that can overflow */
        return punct == '/' ? 0 - a.value : 0;
    int64_t x = (int64_t)a.value, y = (int64_t)b.value;
    return (uint64_t)(punct == '/' ? x / y : x % y);
}

static uint64_t shift(int punct, constant a, uint64_t by)
{
    bool negative = !a.is_unsigned && a.value >> 63;
    if (by > 63)
        return punct == PUNCT_SHR && negative ? UINT64_MAX : 0;
    if (punct == PUNCT_SHL)
        return a.value << by;
    return negative && by ? a.value >> by | UINT64_MAX << (64 - by) : a.value >> by;
}

static bool less(constant a, constant b, bool is_unsigned)
{
    return is_unsigned ? a.value < b.value : (int64_t)a.value < (int64_t)b.value;
}

static double as_double(constant c)
{
    return c.kind == CONSTANT_F32 ? (double)f32_from_bits((uint32_t)c.value) : f64_from_bits(c.value);
}

static constant apply_float(parser *p, int punct, constant a, constant b)
{
    if (a.kind == CONSTANT_INT || b.kind == CONSTANT_INT)
        parse_fail(p, PVM_ERROR_SYNTAX,
                   "integers and floating-point numbers cannot be mixed in an expression");
    double x = as_double(a), y = as_double(b);
    constant c = {.kind = CONSTANT_F64};
    switch (punct) {
    case '+':
        c.value = bits_from_f64(x + y);
        return c;
    case '-':
        c.value = bits_from_f64(x - y);
        return c;
    case '*':
        c.value = bits_from_f64(x * y);
        return c;
    case '/':
        if (y == 0)
            parse_fail(p, PVM_ERROR_SYNTAX, "division by zero in a constant expression");
        c.value = bits_from_f64(x / y);
        return c;
    default:
        parse_fail(p, PVM_ERROR_SYNTAX, "this operator needs integers");
    }
}

static constant apply(parser *p, int punct, constant a, constant b)
{
    if (a.kind != CONSTANT_INT || b.kind != CONSTANT_INT)
        return apply_float(p, punct, a, b);
    bool u = a.is_unsigned || b.is_unsigned;
    switch (punct) {
    case PUNCT_OR:
        return integer(a.value || b.value, false);
    case PUNCT_AND:
        return integer(a.value && b.value, false);
    case '|':
        return integer(a.value | b.value, u);
    case '^':
        return integer(a.value ^ b.value, u);
    case '&':
        return integer(a.value & b.value, u);
    case PUNCT_EQ:
        return integer(a.value == b.value, false);
    case PUNCT_NE:
        return integer(a.value != b.value, false);
    case '<':
        return integer(less(a, b, u), false);
    case '>':
        return integer(less(b, a, u), false);
    case PUNCT_LE:
        return integer(!less(b, a, u), false);
    case PUNCT_GE:
        return integer(!less(a, b, u), false);
    case PUNCT_SHL:
    case PUNCT_SHR:
        return integer(shift(punct, a, b.value), a.is_unsigned);
    case '+':
        return integer(a.value + b.value, u);
    case '-':
        return integer(a.value - b.value, u);
    case '*':
        return integer(a.value * b.value, u);
    default:
        return integer(divide(p, punct, a, b, u), u);
    }
}

static constant parse_unary(parser *p);

static constant parse_literal(parser *p)
{
    token t = p->tok;
    constant c = {CONSTANT_INT, t.value, t.is_unsigned};
    if (t.kind == TOKEN_F32)
        c.kind = CONSTANT_F32;
    else if (t.kind == TOKEN_F64)
        c.kind = CONSTANT_F64;
    else if (at_name(p, "WARP_SZ"))
        c = integer(32, false);
    else if (t.kind != TOKEN_INT)
        parse_fail(p, PVM_ERROR_SYNTAX,
                   t.kind == TOKEN_END ? "a number is missing at the end of the text"
                                       : "a number is needed here");
    next_token(p);
    return c;
}

/* "(...)", or a cast "(.u64) x". */
static constant parse_parentheses(parser *p)
{
    next_token(p);
    if (p->tok.kind == TOKEN_WORD) {
        bool is_unsigned = at_word(p, "u64");
        if (!is_unsigned && !at_word(p, "s64"))
            parse_fail(p, PVM_ERROR_SYNTAX, "a constant can be cast to .s64 or .u64 only");
        next_token(p);
        expect_punct(p, ')');
        constant c = parse_unary(p);
        c.is_unsigned = is_unsigned;
        return c;
    }
    constant c = parse_constant(p);
    expect_punct(p, ')');
    return c;
}

static constant negate(constant c)
{
    if (c.kind == CONSTANT_INT)
        c.value = 0 - c.value;
    else
        c.value ^= c.kind == CONSTANT_F32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
    return c;
}

static constant parse_unary_operator(parser *p, int punct)
{
    next_token(p);
    constant c = parse_unary(p);
    if (punct == '-')
        return negate(c);
    if (punct == '+')
        return c;
    if (c.kind != CONSTANT_INT)
        parse_fail(p, PVM_ERROR_SYNTAX, "'%c' needs an integer", punct);
    return punct == '!' ? integer(!c.value, false) : integer(~c.value, c.is_unsigned);
}

static constant parse_unary(parser *p)
{
    if (++p->nesting > MAX_DEPTH)
        parse_fail(p, PVM_ERROR_SYNTAX, "this expression is nested more than %d deep", MAX_DEPTH);
    constant c;
    if (at_punct(p, '-') || at_punct(p, '+') || at_punct(p, '!') || at_punct(p, '~'))
        c = parse_unary_operator(p, p->tok.punct);
    else
        c = at_punct(p, '(') ? parse_parentheses(p) : parse_literal(p);
    p->nesting--;
    return c;
}

static constant parse_binary(parser *p, int level)
{
    if (level > TIGHTEST)
        return parse_unary(p);
    constant a = parse_binary(p, level + 1);
    while (operator_level(p) == level) {
        int punct = p->tok.punct;
        next_token(p);
        a = apply(p, punct, a, parse_binary(p, level + 1));
    }
    return a;
}

constant parse_constant(parser *p)
{
    if (++p->nesting > MAX_DEPTH)
        parse_fail(p, PVM_ERROR_SYNTAX, "this expression is nested more than %d deep", MAX_DEPTH);
    constant c = parse_binary(p, 1);
    if (accept_punct(p, '?')) {
        constant yes = parse_constant(p);
        expect_punct(p, ':');
        constant no = parse_constant(p);
        c = c.value ? yes : no;
    }
    p->nesting--;
    return c;
}

uint64_t parse_integer(parser *p)
{
    int line = p->tok.line, column = p->tok.column;
    constant c = parse_constant(p);
    if (c.kind != CONSTANT_INT)
        parse_fail_at(p, line, column, PVM_ERROR_SYNTAX, "an integer is needed here");
    return c.value;
}
