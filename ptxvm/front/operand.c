/* Operands as written, before the instruction gives them a meaning: registers, constants, symbols, addresses,
 * vectors. */
#include "front.h"

#include <string.h>

static raw_operand new_operand(const parser *p, raw_kind kind)
{
    return (raw_operand){.kind = kind,
                         .reg = -1,
                         .index = -1,
                         .vec = 1,
                         .component = -1,
                         .line = p->tok.line,
                         .column = p->tok.column};
}

static raw_operand constant_operand(parser *p)
{
    raw_operand r = new_operand(p, RAW_INT);
    constant c = parse_constant(p);
    r.kind = c.kind == CONSTANT_INT ? RAW_INT : c.kind == CONSTANT_F32 ? RAW_F32 : RAW_F64;
    r.value = c.value;
    return r;
}

/* .x .y .z .w or .r .g .b .a; -1 for any other word. */
static int component_of(const token *word)
{
    static const char names[] = "xyzwrgba";
    const char *at = word->length == 1 ? memchr(names, word->text[0], 8) : NULL;
    return at ? (int)(at - names) % 4 : -1;
}

static void take_sreg(parser *p, raw_operand *r, const sreg_info *info)
{
    r->kind = RAW_SREG;
    r->sreg = info->sreg;
    r->value = (uint64_t)info->number;
    r->vec = info->components ? info->components : 1;
    r->symbol = NULL;
    if (p->module->version < info->version || p->module->target.sm < info->sm)
        parse_fail_at(p, r->line, r->column, PVM_ERROR_TARGET, "%%%s needs .version %d.%d and sm_%d or later",
                      info->name, info->version / 10, info->version % 10, info->sm);
    if (info->components && p->tok.kind == TOKEN_WORD) {
        r->component = component_of(&p->tok);
        if (r->component < 0 || r->component >= info->components)
            parse_fail(p, PVM_ERROR_SYNTAX, "%%%s has no component .%.*s", info->name, p->tok.length,
                       p->tok.text);
        r->value = (uint64_t)r->component;
        r->vec = 1;
        next_token(p);
    }
}

/* A vector register named as a whole stands for its elements. */
static void spread_vector(parser *p, raw_operand *r)
{
    raw_operand element = *r;
    if (p->n_elements + r->vec > MAX_ELEMENTS)
        parse_fail(p, PVM_ERROR_SYNTAX, "this instruction has too many vector elements");
    r->kind = RAW_VECTOR;
    r->first = p->n_elements;
    r->count = r->vec;
    for (int i = 0; i < r->count; i++) {
        element.vec = 1;
        element.reg = r->reg + i;
        element.value = (uint64_t)i;
        element.component = i;
        p->elements[p->n_elements++] = element;
    }
}

static void take_suffix(parser *p, raw_operand *r)
{
    int component = component_of(&p->tok);
    if (component >= 0 && r->vec > 1) {
        if (component >= r->vec)
            parse_fail(p, PVM_ERROR_SYNTAX, "this vector has only %d elements", r->vec);
        r->reg += component;
        r->vec = 1;
        r->component = component;
    } else {
        r->selector = p->tok.text;
        r->selector_length = p->tok.length;
    }
    next_token(p);
}

static void take_register(parser *p, raw_operand *r, int reg, int vec)
{
    r->kind = RAW_REG;
    r->reg = reg;
    r->vec = vec;
    if (p->tok.kind == TOKEN_WORD)
        take_suffix(p, r);
    if (r->vec > 1)
        spread_vector(p, r);
}

static raw_operand named_operand(parser *p)
{
    raw_operand r = new_operand(p, RAW_SYMBOL);
    if (at_name(p, "_")) {
        r.kind = RAW_SINK;
        next_token(p);
        return r;
    }
    name *n = intern(p, p->tok.text, p->tok.length);
    int vec, reg = range_register(p, n, &vec);
    symbol *s = find_symbol(p, n);
    const sreg_info *info = reg < 0 && !s ? sreg_find(n->text, n->length) : NULL;
    r.name = n;
    next_token(p);
    if (info)
        take_sreg(p, &r, info);
    else if (reg >= 0 || (s && s->kind == SYMBOL_REG))
        take_register(p, &r, reg >= 0 ? reg : s->index, reg >= 0 ? vec : s->vec);
    else
        r.symbol = s;
    return r;
}

/* An optional offset after a symbol's name: "+ n", "- n". */
static void take_offset(parser *p, raw_operand *r, bool allow_minus)
{
    if (at_punct(p, '+') || (allow_minus && at_punct(p, '-'))) {
        r->has_offset = true;
        if (at_punct(p, '+'))
            next_token(p);
        r->value += parse_integer(p);
    }
}

static raw_operand vector_operand(parser *p);

/* [a + 4], and [a, {b, c}], whose coordinates become an operand of their own. */
static raw_operand address_operand(parser *p)
{
    raw_operand r = new_operand(p, RAW_ADDRESS);
    expect_punct(p, '[');
    if (p->tok.kind == TOKEN_NAME && !at_name(p, "WARP_SZ")) {
        raw_operand base = named_operand(p);
        base.line = r.line;
        base.column = r.column;
        base.base = base.kind;
        base.kind = RAW_ADDRESS;
        r = base;
        if (r.base == RAW_VECTOR || r.base == RAW_SREG || r.base == RAW_SINK)
            parse_fail_at(p, r.line, r.column, PVM_ERROR_SYNTAX,
                          "an address needs a register, a variable or a number");
        take_offset(p, &r, r.base == RAW_SYMBOL);
    } else {
        r.base = RAW_INT;
        r.value = parse_integer(p);
    }
    if (accept_punct(p, ',')) {
        p->coordinates = vector_operand(p);
        p->coordinates.within = true;
    }
    expect_punct(p, ']');
    return r;
}

static raw_operand vector_operand(parser *p)
{
    raw_operand r = new_operand(p, RAW_VECTOR), items[MAX_ELEMENTS / 2];
    int n = 0;
    if (++p->nesting > MAX_DEPTH)
        parse_fail(p, PVM_ERROR_SYNTAX, "vectors are nested too deep");
    expect_punct(p, '{');
    do {
        if (n == MAX_ELEMENTS / 2)
            parse_fail(p, PVM_ERROR_SYNTAX, "a vector has too many elements");
        if (at_punct(p, '{') || at_punct(p, '['))
            parse_fail(p, PVM_ERROR_SYNTAX, "a vector's element is a register or a number");
        items[n] = parse_operand(p);
        if (items[n].kind == RAW_VECTOR)
            parse_fail_at(p, items[n].line, items[n].column, PVM_ERROR_SYNTAX,
                          "a vector cannot be an element of a vector");
        n++;
    } while (accept_punct(p, ','));
    expect_punct(p, '}');
    p->nesting--;
    if (p->n_elements + n > MAX_ELEMENTS)
        parse_fail(p, PVM_ERROR_SYNTAX, "this instruction has too many vector elements");
    r.first = p->n_elements;
    r.count = n;
    memcpy(p->elements + p->n_elements, items, (size_t)n * sizeof items[0]);
    p->n_elements += n;
    return r;
}

/* "!p" and "-a" for a register; for a number they are part of its expression. */
static raw_operand signed_operand(parser *p)
{
    token sign = p->tok;
    const char *at = p->at, *line_start = p->line_start;
    int line = p->line;
    next_token(p);
    if (p->tok.kind == TOKEN_NAME && !at_name(p, "WARP_SZ")) {
        raw_operand r = named_operand(p);
        r.line = sign.line;
        r.column = sign.column;
        r.negated = sign.punct == '!';
        r.minus = sign.punct == '-';
        return r;
    }
    p->tok = sign;
    p->at = at;
    p->line_start = line_start;
    p->line = line;
    return constant_operand(p);
}

/* An array's element: tab[n], tab[r], tab[r + n]. */
static void take_index(parser *p, raw_operand *r)
{
    r->is_indexed = true;
    if (p->tok.kind == TOKEN_NAME && !at_name(p, "WARP_SZ")) {
        raw_operand index = named_operand(p);
        if (index.kind != RAW_REG || index.selector)
            parse_fail_at(p, index.line, index.column, PVM_ERROR_SYNTAX,
                          "an index is a number, or a register and a number");
        r->index = index.reg;
        take_offset(p, r, false);
        r->has_offset = false;
    } else
        r->value = parse_integer(p);
    expect_punct(p, ']');
}

raw_operand parse_operand(parser *p)
{
    if (at_punct(p, '['))
        return address_operand(p);
    if (at_punct(p, '{'))
        return vector_operand(p);
    if (at_punct(p, '!') || at_punct(p, '-'))
        return signed_operand(p);
    if (p->tok.kind != TOKEN_NAME || at_name(p, "WARP_SZ"))
        return constant_operand(p);
    raw_operand r = named_operand(p);
    if (r.kind != RAW_SYMBOL)
        return r;
    if (accept_punct(p, '['))
        take_index(p, &r);
    else
        take_offset(p, &r, true);
    return r;
}

/* All operands of an instruction up to its ';'. */
void parse_operands(parser *p)
{
    p->n_raw = 0;
    p->n_elements = 0;
    if (at_punct(p, ';'))
        return;
    bool more;
    do {
        if (p->n_raw >= MAX_RAW - 1)
            parse_fail(p, PVM_ERROR_SYNTAX, "this instruction has too many operands");
        raw_operand *r = &p->raw[p->n_raw++];
        p->coordinates.within = false;
        *r = parse_operand(p);
        if (p->coordinates.within)
            p->raw[p->n_raw++] = p->coordinates;
        if (r->kind == RAW_REG && r->component < 0)
            take_offset(p, r, false);
        r->paired = at_punct(p, '|');
        more = accept_punct(p, '|') || accept_punct(p, ',');
    } while (more);
}
