/* Initial values of .global and .const variables: numbers and addresses, with nested braces for
 * dimensions. */
#include "front.h"

#include <string.h>

typedef struct filler {
    pvm_var *var;
    const shape *shape;
    uint64_t at;       /* offset of the next value */
    uint64_t capacity; /* bytes in var->init */
    int reloc_capacity;
    int element; /* bytes of a value */
} filler;

/* Makes room for `bytes` at the cursor; an array of open length grows. */
static uint8_t *room(parser *p, filler *f)
{
    uint64_t end = f->at + (uint64_t)f->element;
    if (!f->shape->is_unsized && end > f->shape->strides[0])
        parse_fail(p, PVM_ERROR_SYNTAX, "too many initial values for '%s'", f->var->name);
    if (end > f->capacity) {
        uint64_t larger = f->shape->is_unsized ? end * 2 + 64 : f->shape->strides[0];
        check_limit(p, PTXVM_LIMIT_DATA, p->data_bytes += larger - f->capacity);
        uint8_t *init = parse_alloc(p, larger);
        if (f->capacity)
            memcpy(init, f->var->init, f->capacity);
        f->var->init = init;
        f->capacity = larger;
    }
    return f->var->init + f->at;
}

static void write_constant(parser *p, filler *f, constant c, const token *where)
{
    pvm_type type = f->var->type;
    uint64_t value = c.value;
    bool is_float = type == T_F32 || type == T_F64;
    if (c.kind == CONSTANT_F64 && type == T_F32)
        value = bits_from_f32((float)f64_from_bits(value));
    else if (c.kind == CONSTANT_F32 && type == T_F64)
        value = bits_from_f64((double)f32_from_bits((uint32_t)value));
    else if (c.kind == CONSTANT_INT && is_float)
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX, "%s needs a floating-point number",
                      pvm_type_name(type));
    else if (c.kind != CONSTANT_INT && !is_float && pvm_type_bits(type) != (c.kind == CONSTANT_F32 ? 32 : 64))
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX,
                      "a floating-point number cannot initialise %s", pvm_type_name(type));
    uint8_t *to = room(p, f);
    for (int i = 0; i < f->element && i < 8; i++)
        to[i] = (uint8_t)(value >> 8 * i);
    f->at += (uint64_t)f->element;
}

/* name or generic(name), each optionally with "+ n". */
static pvm_reloc parse_symbol_address(parser *p)
{
    pvm_reloc r = {0};
    if (++p->nesting > MAX_DEPTH)
        parse_fail(p, PVM_ERROR_SYNTAX, "this address is nested more than %d deep", MAX_DEPTH);
    if (at_name(p, "generic")) {
        next_token(p);
        expect_punct(p, '(');
        r = parse_symbol_address(p);
        r.generic = true;
        expect_punct(p, ')');
    } else {
        name *n = p->tok.kind == TOKEN_NAME ? intern(p, p->tok.text, p->tok.length) : NULL;
        symbol *s = n ? find_symbol(p, n) : NULL;
        if (!s || (s->kind != SYMBOL_VAR && s->kind != SYMBOL_FUNCTION))
            parse_fail(p, PVM_ERROR_SYNTAX,
                       "an initial value is a number or the address of a variable or function");
        r.var = s->var;
        r.function = s->function;
        next_token(p);
    }
    if (accept_punct(p, '+'))
        r.addend = (int64_t)((uint64_t)r.addend + parse_integer(p));
    p->nesting--;
    return r;
}

static void write_address(parser *p, filler *f, pvm_reloc r)
{
    pvm_var *v = f->var;
    room(p, f);
    r.offset = f->at;
    r.size = f->element;
    v->relocs = parse_grow(p, v->relocs, v->n_relocs, &f->reloc_capacity, sizeof *v->relocs);
    v->relocs[v->n_relocs++] = r;
    check_limit(p, PTXVM_LIMIT_DATA, p->data_bytes += sizeof r);
    f->at += (uint64_t)f->element;
}

/* 0xFF00(address): one byte of an address. */
static void write_masked(parser *p, filler *f, uint64_t mask, const token *where)
{
    int shift = 0;
    while (shift < 64 && mask != UINT64_C(0xFF) << shift)
        shift += 8;
    if (shift == 64 || f->element != 1)
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX,
                      "a mask picks one byte (0xFF, 0xFF00 ...) of an address for a byte array");
    expect_punct(p, '(');
    pvm_reloc r = parse_symbol_address(p);
    expect_punct(p, ')');
    r.shift = shift;
    write_address(p, f, r);
}

static void parse_value(parser *p, filler *f)
{
    token where = p->tok;
    if (p->tok.kind == TOKEN_NAME && !at_name(p, "WARP_SZ")) {
        pvm_reloc r = parse_symbol_address(p);
        if ((f->element != 8 && f->element != 4) || f->var->type == T_F32 || f->var->type == T_F64)
            parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX,
                          "an address needs integers of 4 or 8 bytes");
        write_address(p, f, r);
        return;
    }
    constant c = parse_constant(p);
    if (at_punct(p, '('))
        write_masked(p, f, c.value, &where);
    else
        write_constant(p, f, c, &where);
}

/* One level of braces per dimension, and one more for a vector. */
static void parse_values(parser *p, filler *f, int level)
{
    bool braces = level < f->shape->n + (f->var->vec > 1);
    token where = p->tok;
    if (at_punct(p, '{') != braces)
        parse_fail(p, PVM_ERROR_SYNTAX,
                   braces ? "'{' is needed here: '%s' has more than one value" : "too many braces for '%s'",
                   f->var->name);
    if (!braces) {
        parse_value(p, f);
        return;
    }
    uint64_t start = f->at, size = level <= f->shape->n ? f->shape->strides[level] : (uint64_t)f->element;
    next_token(p);
    while (!accept_punct(p, '}')) {
        parse_values(p, f, level + 1);
        if (!at_punct(p, '}'))
            expect_punct(p, ',');
    }
    bool open = level == 0 && f->shape->is_unsized;
    if (!open && f->at > start + size)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX,
                      "too many initial values in these braces");
    if (!open)
        f->at = start + size;
}

void parse_initialiser(parser *p, pvm_var *v, shape *s)
{
    filler f = {.var = v, .shape = s, .element = pvm_type_bits(v->type) / 8};
    if (v->space != SPACE_GLOBAL && v->space != SPACE_CONST)
        parse_fail(p, PVM_ERROR_SYNTAX, "only .global and .const variables can be initialised");
    parse_values(p, &f, 0);
    if (s->is_unsized) {
        uint64_t below = s->strides[1];
        v->size = below ? (f.at + below - 1) / below * below : 0;
        if (v->size > f.capacity) {
            uint8_t *init = parse_alloc(p, v->size);
            if (f.capacity)
                memcpy(init, v->init, f.capacity);
            v->init = init;
        }
        v->is_unsized = false;
    }
}
