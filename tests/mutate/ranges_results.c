/* What a step makes of the ranges of its operands. */
#include "mutate/ranges_inside.h"

#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_MAX = 64, EXPERTS_MAX = 1 << 20 }; /* of the API */

/* No memory has as many elements or bytes; plans of products that count in 32 bits check a lower limit. */
static const uint64_t LARGEST_SIZE = UINT64_C(1) << 60, LIMITED_SIZE = KERNEL_SIZE_32;

/* ---- Operands ---- */

range ranges_get(const ranges *r, int reg)
{
    return r->variable[reg] < 0 ? r->fixed[reg] : r->now[r->variable[reg]];
}

static range special(const ranges *r, const char *name)
{
    if (strcmp(name, "%laneid") == 0)
        return range_between(0, 31, 32);
    if (strcmp(name, "%tid.x") == 0)
        return range_between(0, (uint64_t)r->block_size - 1, 32);
    if (strcmp(name, "%ntid.x") == 0)
        return r->block_size < 1024 ? range_one_value((uint64_t)r->block_size, 32)
                                    : range_between(1, 1024, 32);
    if (strcmp(name, "%ctaid.x") == 0)
        return range_between(0, INT32_MAX - 1, 32);
    if (strcmp(name, "%nctaid.x") == 0)
        return range_between(1, INT32_MAX, 32);
    if (strncmp(name, "%ctaid.", 7) == 0)
        return range_between(0, UINT16_MAX - 1, 32);
    if (strncmp(name, "%nctaid.", 8) == 0)
        return range_between(1, UINT16_MAX, 32);
    return range_anything(32);
}

static bool is_number(const char *text, uint64_t *value)
{
    char *end;
    if (text_constant(text, value))
        return true;
    *value = (uint64_t)strtoll(text, &end, 0);
    return *text == '-' && *end == 0;
}

range ranges_operand(const ranges *r, const step *s, int k, int width)
{
    uint64_t value;
    if (k >= s->i.n)
        return range_anything(width);
    if (s->reg[k] != NO_REGISTER)
        return ranges_get(r, s->reg[k]);
    if (is_number(s->i.operand[k], &value))
        return range_one_value(value, width);
    return s->i.operand[k][0] == '%' ? special(r, s->i.operand[k]) : range_anything(width);
}

/* ---- Parameters ---- */

/* A parameter's declaration: `.param .u64 .ptr .global .align 4 x` points to elements of 4 bytes; `.param .u64 rows` is a number. */
static bool is_pointer(const ranges *r, const char *name, int *align)
{
    char text[TEXT_MAX + 2];
    const size_t length = strcspn(name, "]");
    for (const char *line = r->p->text; line && *line != '{'; line = text_next_line(line)) {
        char found[TEXT_MAX];
        if (sscanf(line, "\t.param .u64 .ptr .global .align %d %63[a-z0-9_]", align, found) != 2)
            continue;
        snprintf(text, sizeof text, "%.*s", (int)length - 1, name + 1);
        if (strcmp(found, text) == 0)
            return true;
    }
    return false;
}

/* Numbers of elements; zero points, pairs of numbers and strides of caches are anything. */
static range parameter(const ranges *r, const char *name, int width)
{
    static const struct {
        const char *name;
        bool is_limited; /* by plans of products that count in 32 bits */
    } sizes[] = {
        {"[rows]", true},         {"[columns]", true}, {"[m]", true},           {"[conv_channels]", true},
        {"[conv_outputs]", true}, {"[conv_h]", true},  {"[conv_w]", true},      {"[conv_out_h]", true},
        {"[conv_out_w]", true},   {"[n]", false},      {"[table_rows]", false}, {"[x_stride]", false},
        {"[y_stride]", false}};
    int align;
    if (width != 64)
        return range_anything(width);
    if (is_pointer(r, name, &align))
        return range_both(range_between(0, INT64_MAX, 64), range_with_bits((uint64_t)align - 1, 0, 64), 64);
    const bool is_there = r->is_integer && (strcmp(name, "[rows]") == 0 || strcmp(name, "[m]") == 0);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        if (strcmp(name, sizes[k].name) == 0)
            return range_between(is_there, r->is_limited && sizes[k].is_limited ? LIMITED_SIZE : LARGEST_SIZE,
                                 64);
    if (strcmp(name, "[top]") == 0)
        return range_between(1, TOP_MAX, 64);
    return strcmp(name, "[experts]") == 0 ? range_between(0, EXPERTS_MAX, 64) : range_anything(64);
}

static range loaded(const ranges *r, const step *s, int width)
{
    const char *opcode = s->i.opcode;
    const char *type = strrchr(opcode, '.') + 1;
    if (strncmp(opcode, "ld.param.", 9) == 0)
        return parameter(r, s->i.operand[1], width);
    if (strcmp(type, "u8") == 0 || strcmp(type, "b8") == 0)
        return range_between(0, UINT8_MAX, width);
    if (strcmp(type, "u16") == 0 || strcmp(type, "b16") == 0)
        return range_between(0, UINT16_MAX, width);
    if (strcmp(type, "s8") == 0)
        return range_between_signed(INT8_MIN, INT8_MAX, width);
    return range_anything(width);
}

/* ---- The result of a step ---- */

typedef struct shape {
    range a, b, c;
    int width; /* of the operation */
    bool has_sign;
} shape;

static range extremes(const shape *o, bool is_least)
{
    if (o->has_sign)
        return is_least ? range_between_signed(range_lower(o->a.low, o->b.low),
                                               range_lower(o->a.high, o->b.high), o->width)
                        : range_between_signed(range_higher(o->a.low, o->b.low),
                                               range_higher(o->a.high, o->b.high), o->width);
    return is_least ? range_between(range_least_of(o->a.least, o->b.least),
                                    range_least_of(o->a.most, o->b.most), o->width)
                    : range_between(range_most_of_two(o->a.least, o->b.least),
                                    range_most_of_two(o->a.most, o->b.most), o->width);
}

/* The low bits alone. */
static range truncated(const range *a, int to)
{
    const range r = range_with_bits(a->zeros & bits_mask(to), a->ones & bits_mask(to), to);
    if (a->low >= range_signed_of(UINT64_C(1) << (to - 1), to) && a->high <= (int64_t)(bits_mask(to) >> 1))
        return range_both(r, range_between_signed(a->low, a->high, to), to);
    return a->most <= bits_mask(to) ? range_both(r, range_between(a->least, a->most, to), to) : r;
}

/* From the low bits of a register to a wider one. */
static range extended(const range *a, bool has_sign, int to)
{
    return has_sign
               ? range_between_signed(a->low, a->high, to)
               : range_both(range_between(a->least, a->most, to), range_with_bits(a->zeros, a->ones, to), to);
}

static range wide_product(const shape *o)
{
    const int twice = 2 * o->width;
    if (!o->has_sign)
        return range_multiplied(extended(&o->a, false, twice), extended(&o->b, false, twice), twice);
    return range_multiplied(extended(&o->a, true, twice), extended(&o->b, true, twice), twice);
}

/* A half of the register, or all of it: `mov.b64 d, {r, r}`. */
static range packed(const ranges *r, const step *s, int width)
{
    uint64_t zeros = 0, ones = 0;
    if (s->n_reads != 2)
        return range_anything(width);
    for (int k = 0; k < 2; k++) {
        const range part = ranges_get(r, s->reads[k]);
        zeros |= (part.zeros & bits_mask(width / 2)) << k * width / 2;
        ones |= part.ones << k * width / 2;
    }
    return range_with_bits(zeros, ones, width);
}

static range sum_of_bytes(const shape *o)
{
    const int64_t most = 4 * 255 * 255;
    return range_from_bounds(-1, 0, (wide)o->c.low - most, (wide)o->c.high + most, 32);
}

/* How a comparison comes out, where the ranges decide it: the range of a predicate. */
static range of_set(const step *s, const range *a, const range *b)
{
    const char *type = strrchr(s->i.opcode, '.');
    const bool has_sign = type[1] == 's';
    const bool is_integer = strchr("usb", type[1]) != NULL;
    if (!is_integer)
        return range_anything(1);
    const bool below = has_sign ? a->high < b->low : a->most < b->least;
    const bool above = has_sign ? a->low > b->high : a->least > b->most;
    const bool not_above = has_sign ? a->high <= b->low : a->most <= b->least;
    const bool not_below = has_sign ? a->low >= b->high : a->least >= b->most;
    const bool differs = below || above || (a->zeros & b->ones) || (a->ones & b->zeros);
    const bool equals = a->least == a->most && b->least == b->most && a->least == b->least;
    const struct {
        const char *name;
        bool is_true, is_false;
    } outcomes[] = {{".lt.", below, not_below}, {".le.", not_above, above}, {".gt.", above, not_above},
                    {".ge.", not_below, below}, {".eq.", equals, differs},  {".ne.", differs, equals}};
    for (size_t k = 0; k < sizeof outcomes / sizeof outcomes[0]; k++)
        if (strncmp(s->i.opcode + 4, outcomes[k].name, 4) == 0)
            return outcomes[k].is_true    ? range_one_value(1, 1)
                   : outcomes[k].is_false ? range_one_value(0, 1)
                                          : range_anything(1);
    return range_anything(1);
}

static range joined_predicate(const ranges *r, const step *s, range found)
{
    const bool joins_and = strstr(s->i.opcode, ".and.") != NULL,
               joins_or = strstr(s->i.opcode, ".or.") != NULL;
    if (!joins_and && !joins_or)
        return found;
    const range other = ranges_operand(r, s, 3, 1);
    if (joins_and)
        return found.most == 0 || other.most == 0     ? range_one_value(0, 1)
               : found.least == 1 && other.least == 1 ? range_one_value(1, 1)
                                                      : range_anything(1);
    return found.least == 1 || other.least == 1 ? range_one_value(1, 1)
           : found.most == 0 && other.most == 0 ? range_one_value(0, 1)
                                                : range_anything(1);
}

static range result_of_bits(const ranges *r, const step *s, const shape *o, int width)
{
    uint64_t x, y;
    if (step_starts(s, "and.") || step_starts(s, "or.") || step_starts(s, "xor.") || step_starts(s, "not.")) {
        const unsigned table = step_starts(s, "and.")   ? 0xC0
                               : step_starts(s, "or.")  ? 0xFC
                               : step_starts(s, "xor.") ? 0x3C
                                                        : 0x0F;
        const range operands[3] = {o->a, o->b, range_one_value(0, width)};
        range bits = range_looked_up(operands, table, width);
        if (step_starts(s, "and."))
            bits = range_both(bits, range_between(0, range_least_of(o->a.most, o->b.most), width), width);
        return bits;
    }
    const range last = ranges_operand(r, s, 4, 32);
    if (step_starts(s, "lop3.") && range_is_value(&last, &x)) {
        const range operands[3] = {o->a, o->b, o->c};
        return range_looked_up(operands, (unsigned)x, 32);
    }
    if (step_starts(s, "bfe.") && o->width == 32 && range_is_value(&o->b, &x) && range_is_value(&o->c, &y))
        return range_fields(&o->a, x & 0xFF, y & 0xFF, o->has_sign);
    if (step_starts(s, "bfe.u32") && range_is_value(&o->c, &y) && y < 32)
        return range_between(0, bits_mask((int)y), 32);
    if (step_is(s, "bfi.b32") && range_is_value(&o->c, &x) && range_is_value(&last, &y))
        return range_inserted(&o->a, &o->b, x & 0xFF, y & 0xFF);
    if (step_is(s, "prmt.b32") && range_is_value(&o->c, &x))
        return range_permuted(&o->a, &o->b, x);
    return range_anything(width);
}

static range result_of_integers(const ranges *r, const step *s, const shape *o, int width)
{
    if (step_starts(s, "add."))
        return range_added(o->a, o->b, width);
    if (step_starts(s, "sub."))
        return range_subtracted(o->a, o->b, width);
    if (step_starts(s, "neg."))
        return range_subtracted(range_one_value(0, width), o->a, width);
    if (step_starts(s, "abs."))
        return o->a.low >= 0 ? o->a : range_between(0, (uint64_t)1 << (width - 1), width);
    if (step_starts(s, "mul.lo."))
        return range_multiplied(o->a, o->b, width);
    if (step_starts(s, "mad.lo."))
        return range_added(range_multiplied(o->a, o->b, width), o->c, width);
    if (step_starts(s, "mul.wide."))
        return wide_product(o);
    if (step_starts(s, "mad.wide."))
        return range_added(wide_product(o), o->c, width);
    if (step_starts(s, "mul.hi.u"))
        return range_upper_product(o->a, o->b, width);
    if (step_starts(s, "div.u"))
        return range_divided(o->a, o->b, width);
    if (step_starts(s, "rem.u"))
        return range_remaining(o->a, o->b, width);
    if (step_starts(s, "min.") || step_starts(s, "max."))
        return extremes(o, s->i.opcode[1] == 'i');
    if (step_starts(s, "shl."))
        return range_shifted_left(o->a, o->b, width);
    if (step_starts(s, "shr."))
        return range_shifted_right(o->a, o->b, o->has_sign, width);
    if (step_starts(s, "dp4a."))
        return sum_of_bytes(o);
    if (step_starts(s, "popc.") || step_starts(s, "clz."))
        return range_between(0, 64, width);
    return result_of_bits(r, s, o, width);
}

/* `cvt.u32.u16`, without rounding and saturation. */
static range converted(const step *s, const shape *o, int width)
{
    int to = 0;
    char kind = 0;
    if (strlen(s->i.opcode) > strlen("cvt.u32.u16") || sscanf(s->i.opcode, "cvt.%c%d.", &kind, &to) != 2 ||
        !strchr("us", kind) || to > width || to < 8)
        return range_anything(width);
    range r = truncated(&o->a, to < o->width ? to : o->width);
    r = to > o->width ? extended(&r, o->has_sign, to) : r;
    return to < width ? extended(&r, kind == 's', width) : r;
}

/* The only step that writes a register; null where several do, or one with a guard. */
static const step *only_writer(const program *p, int reg)
{
    for (int k = 0; reg != NO_REGISTER && p->definitions[reg] == 1 && k < p->n_steps; k++)
        for (int j = 0; j < p->steps[k].n_writes; j++)
            if (p->steps[k].writes[j] == reg)
                return &p->steps[k];
    return NULL;
}

/* `min.f32 d, a, C` of an a from `abs.f32`: from +0 to C, which also stands for NaN. */
static range of_magnitude(const ranges *r, const step *s, int width)
{
    const step *writer = step_is(s, "min.f32") ? only_writer(r->p, s->reg[1]) : NULL;
    uint64_t most;
    return writer && step_is(writer, "abs.f32") && text_constant(s->i.operand[2], &most) && most <= 0x7F800000
               ? range_between(0, most, width)
               : range_anything(width);
}

/* Each product of two bytes is less than 2^16. */
static range sum_of_products(const range *addend, int products)
{
    const wide most = (wide)products << 16;
    return range_from_bounds(-1, 0, addend->low - most, addend->high + most, 32);
}

range ranges_result_at(const ranges *r, const step *s, int place)
{
    if (s->n_writes == 1)
        return ranges_result(r, s);
    const int products = step_adds_products(s);
    if (products == 0)
        return range_anything(r->p->width[s->writes[place]]);
    const range addend = ranges_get(r, s->reads[s->n_reads - s->n_writes + place]);
    return sum_of_products(&addend, products);
}

range ranges_result(const ranges *r, const step *s)
{
    const int width = s->n_writes == 1 ? r->p->width[s->writes[0]] : 64;
    shape o = {.has_sign = false};
    o.width = step_type(s, &o.has_sign);
    if (s->n_writes != 1 || s->i.operand[0][0] == '{')
        return range_anything(width);
    if (step_starts(s, "ld."))
        return loaded(r, s, width);
    if (step_starts(s, "mov.") && s->i.operand[1][0] == '{')
        return packed(r, s, width);
    if (step_starts(s, "mov."))
        return ranges_operand(r, s, 1, width);
    if (step_starts(s, "shfl."))
        return ranges_operand(r, s, 1, width); /* another lane's, at the same place */
    if (step_starts(s, "selp.")) {
        const range p = ranges_operand(r, s, 3, 1), a = ranges_operand(r, s, 1, width),
                    b = ranges_operand(r, s, 2, width);
        return p.least == 1 ? a : p.most == 0 ? b : range_either(a, b);
    }
    if (step_starts(s, "setp.")) {
        const range a = ranges_operand(r, s, 1, o.width ? o.width : 64),
                    b = ranges_operand(r, s, 2, o.width ? o.width : 64);
        return joined_predicate(r, s, of_set(s, &a, &b));
    }
    if (o.width == 0 || o.width > 64)
        return of_magnitude(r, s, width);
    o.a = ranges_operand(r, s, 1, o.width);
    o.b = ranges_operand(r, s, 2, o.width);
    o.c = ranges_operand(r, s, 3, width);
    return step_starts(s, "cvt.") ? converted(s, &o, width) : result_of_integers(r, s, &o, width);
}
