/* Variables of all state spaces, including registers: types, arrays, alignment, and their offsets. */
#include "front.h"

#include <string.h>

#define MAX_VARIABLE_BYTES (UINT64_C(1) << 47)
#define MAX_CONST_BYTES    65536 /* per module, as in ptxas */

/* The part of a declaration before the names. */
typedef struct declaration {
    pvm_space space;
    linkage link;
    pvm_type type;
    int vec;
    uint32_t align;
    bool is_managed, is_pointer;
} declaration;

bool space_find(const token *tok, pvm_space *space)
{
    static const struct {
        const char *word;
        pvm_space space;
    } spaces[] = {{"reg", SPACE_REG},     {"const", SPACE_CONST}, {"global", SPACE_GLOBAL},
                  {"local", SPACE_LOCAL}, {"param", SPACE_PARAM}, {"shared", SPACE_SHARED}};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (token_is(tok, spaces[i].word)) {
            *space = spaces[i].space;
            return true;
        }
    return false;
}

/* ---- before the names ---- */

uint32_t parse_align(parser *p)
{
    next_token(p);
    token where = p->tok;
    uint64_t align = parse_integer(p);
    if (align == 0 || align > 1u << 20 || (align & (align - 1)))
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "an alignment is a power of two");
    return (uint32_t)align;
}

/* .attribute(.managed, .unified(1, 2)) */
static void parse_attributes(parser *p, declaration *d)
{
    next_token(p);
    expect_punct(p, '(');
    do {
        if (accept_word(p, "managed"))
            d->is_managed = true;
        else if (accept_word(p, "unified")) {
            expect_punct(p, '(');
            parse_integer(p);
            expect_punct(p, ',');
            parse_integer(p);
            expect_punct(p, ')');
        } else
            parse_fail(p, PVM_ERROR_SYNTAX, "unknown attribute");
    } while (accept_punct(p, ','));
    expect_punct(p, ')');
}

/* .ptr [.space] [.align n] of a kernel's parameter. */
static void parse_pointer(parser *p, declaration *d)
{
    pvm_space space;
    next_token(p);
    d->is_pointer = true;
    if (p->tok.kind == TOKEN_WORD && space_find(&p->tok, &space))
        next_token(p);
    if (at_word(p, "align"))
        parse_align(p);
}

static void check_type(parser *p, const declaration *d, const token *where)
{
    pvm_type t = d->type;
    bool for_memory = t >= T_B8 && t <= T_B128 && t != T_BF16 && t != T_BF16X2 && t != T_TF32 &&
                      t != T_U16X2 && t != T_S16X2 && t != T_F32X2 &&
                      !(t == T_F16X2 && d->space == SPACE_PARAM);
    if (t == T_B128 && p->module->version < 83)
        parse_fail_at(p, where->line, where->column, PVM_ERROR_TARGET, ".b128 needs .version 8.3 or later");
    if (!for_memory && !(t == T_PRED && d->space == SPACE_REG))
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX, "%s is not a type for a %s",
                      pvm_type_name(t), d->space == SPACE_REG ? "register" : "variable");
}

static void parse_type(parser *p, declaration *d)
{
    token t = p->tok;
    if (at_word(p, "texref") || at_word(p, "samplerref") || at_word(p, "surfref"))
        parse_fail(p, PVM_ERROR_UNSUPPORTED, ".%.*s: textures and surfaces are not supported by ptxvm yet",
                   t.length, t.text);
    if (d->type != T_NONE)
        parse_fail(p, PVM_ERROR_SYNTAX, "this declaration has two types");
    d->type = type_find(t.text, t.length);
    if (d->type == T_NONE)
        parse_fail(p, PVM_ERROR_SYNTAX, "unknown word .%.*s in a declaration", t.length > 60 ? 60 : t.length,
                   t.text);
    check_type(p, d, &t);
    next_token(p);
}

static void parse_specifiers(parser *p, declaration *d)
{
    d->vec = 1;
    while (p->tok.kind == TOKEN_WORD) {
        if (at_word(p, "align"))
            d->align = parse_align(p);
        else if (at_word(p, "attribute"))
            parse_attributes(p, d);
        else if (at_word(p, "ptr"))
            parse_pointer(p, d);
        else if (at_word(p, "v2") || at_word(p, "v4") || at_word(p, "v8")) {
            d->vec = p->tok.text[1] - '0';
            next_token(p);
        } else
            parse_type(p, d);
    }
    if (d->type == T_NONE)
        parse_fail(p, PVM_ERROR_SYNTAX, "this declaration has no type");
    if (d->space == SPACE_REG && d->vec > 1 && d->type == T_PRED)
        parse_fail(p, PVM_ERROR_SYNTAX, "a predicate register cannot be a vector");
    if (d->space == SPACE_REG && d->vec * pvm_type_bits(d->type) > 128)
        parse_fail(p, PVM_ERROR_SYNTAX, "a vector register has 128 bits at most");
}

/* ---- arrays ---- */

static uint64_t element_bytes(const declaration *d)
{
    int bits = pvm_type_bits(d->type);
    return (uint64_t)(bits < 8 ? 1 : bits / 8) * (uint64_t)d->vec;
}

static void parse_dimensions(parser *p, shape *s)
{
    while (accept_punct(p, '[')) {
        if (s->n == MAX_DIMENSIONS)
            parse_fail(p, PVM_ERROR_SYNTAX, "this array has too many dimensions");
        if (at_punct(p, ']')) {
            if (s->n > 0)
                parse_fail(p, PVM_ERROR_SYNTAX, "only the first dimension may be left open");
            s->is_unsized = true;
            s->lengths[s->n++] = 0;
        } else {
            token where = p->tok;
            uint64_t length = parse_integer(p);
            if (length > MAX_VARIABLE_BYTES)
                parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "this array is too large");
            s->lengths[s->n++] = length;
        }
        expect_punct(p, ']');
    }
}

static void compute_strides(parser *p, shape *s, uint64_t element)
{
    s->strides[s->n] = element;
    for (int i = s->n - 1; i >= 0; i--) {
        uint64_t below = s->strides[i + 1], length = s->lengths[i];
        if (length && below > MAX_VARIABLE_BYTES / length)
            parse_fail(p, PVM_ERROR_SYNTAX, "this array is too large");
        s->strides[i] = below * length;
    }
}

/* ---- variables ---- */

static uint64_t align_up(uint64_t offset, uint64_t align)
{
    return (offset + align - 1) / align * align;
}

static uint64_t place(uint64_t *extent, const pvm_var *v)
{
    uint64_t offset = align_up(*extent, v->align);
    *extent = offset + v->size;
    return offset;
}

void add_local(parser *p, pvm_var *v)
{
    pvm_function *f = p->function;
    uint64_t *extent = v->space == SPACE_LOCAL    ? &f->local_bytes
                       : v->space == SPACE_SHARED ? &f->shared_bytes
                                                  : &f->call_param_bytes;
    v->offset = v->is_extern ? 0 : place(extent, v);
    if (*extent > MAX_VARIABLE_BYTES)
        parse_fail(p, PVM_ERROR_SYNTAX, "the variables of this function are too large");
    f->locals = parse_grow(p, f->locals, f->n_locals, &p->local_capacity, sizeof(pvm_var *));
    f->locals[f->n_locals++] = v;
}

static void add_global(parser *p, pvm_var *v, const token *where)
{
    pvm_module *m = p->module;
    if (v->space == SPACE_CONST) {
        place(&p->const_extent, v);
        if (p->const_extent > MAX_CONST_BYTES)
            parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX,
                          "with '%.60s' the module has %llu bytes of .const: the most is %d", v->name,
                          (unsigned long long)p->const_extent, MAX_CONST_BYTES);
    }
    check_limit(p, PTXVM_LIMIT_VARIABLES, (uint64_t)m->n_vars + 1);
    m->vars = parse_grow(p, m->vars, m->n_vars, &p->var_capacity, sizeof(pvm_var *));
    v->index = m->n_vars;
    m->vars[m->n_vars++] = v;
}

static pvm_var *make_variable(parser *p, const declaration *d, const shape *s, name *n, const token *where)
{
    pvm_var *v = parse_alloc(p, sizeof *v);
    uint64_t element = element_bytes(d);
    *v = (pvm_var){
        .name = n ? n->text : "_", .space = d->space, .type = d->type, .vec = d->vec, .line = where->line};
    v->size = s->n ? s->strides[0] : element;
    v->align = d->align ? d->align : (uint32_t)element;
    if (v->align & (v->align - 1))
        v->align = 16;
    v->is_array = s->n > 0;
    v->is_unsized = s->is_unsized;
    v->is_extern = d->link.is_extern;
    v->is_visible = d->link.is_visible;
    v->is_weak = d->link.is_weak;
    v->is_common = d->link.is_common;
    v->is_managed = d->is_managed;
    v->is_pointer = d->is_pointer;
    return v;
}

/* A variable declared .extern before is the same one: it takes over the definition. */
static pvm_var *merge_declaration(parser *p, name *n, pvm_var *v)
{
    symbol *s = n->symbol;
    if (!s || s->depth != p->depth || s->kind != SYMBOL_VAR || !(s->var->is_extern || v->is_extern) ||
        s->var->space != v->space || s->var->type != v->type)
        return NULL;
    if (s->var->is_extern && !v->is_extern) {
        int index = s->var->index;
        *s->var = *v;
        s->var->index = index;
    }
    return s->var;
}

static void parse_one_variable(parser *p, const declaration *d)
{
    token where = p->tok;
    shape s = {0};
    if (where.kind != TOKEN_NAME)
        parse_fail(p, PVM_ERROR_SYNTAX, "the name of a variable is needed here");
    name *n = intern(p, where.text, where.length);
    next_token(p);
    parse_dimensions(p, &s);
    compute_strides(p, &s, element_bytes(d));
    pvm_var *v = make_variable(p, d, &s, n, &where);
    pvm_var *merged = merge_declaration(p, n, v);
    if (merged)
        v = merged;
    else
        declare(p, SYMBOL_VAR, n, &where)->var = v;
    if (accept_punct(p, '='))
        parse_initialiser(p, v, &s);
    if (merged)
        return;
    if (v->is_unsized && !v->is_extern && d->space != SPACE_PARAM)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "'%s' needs a length, or .extern",
                      v->name);
    if (s.n && v->size == 0 && !v->is_extern && !s.is_unsized)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "'%s' has no elements", v->name);
    if (p->function && d->space != SPACE_GLOBAL && d->space != SPACE_CONST)
        add_local(p, v);
    else
        add_global(p, v, &where);
}

/* ---- registers ---- */

/* The number after "name<": how many registers the range has. */
static uint32_t parse_range_count(parser *p)
{
    next_token(p);
    token where = p->tok;
    uint64_t count = p->tok.kind == TOKEN_INT ? p->tok.value : 0;
    if (p->tok.kind != TOKEN_INT || count > 100000000)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX,
                      "the number of registers is needed here");
    next_token(p);
    expect_punct(p, '>');
    return (uint32_t)count;
}

static void declare_register(parser *p, const declaration *d, name *n, const token *where)
{
    symbol *s = declare(p, SYMBOL_REG, n, where);
    s->vec = d->vec;
    s->index = add_register(p, n->text, d->type, where->line);
    for (int i = 1; i < d->vec; i++)
        add_register(p, n->text, d->type, where->line);
}

static void check_range(parser *p, const name *n, uint32_t count, const token *where)
{
    if (n->numbered_scope == p->scope->serial && n->numbered_least < count)
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX, "'%s%u' is already defined", n->text,
                      n->numbered_least);
}

static void parse_one_register(parser *p, const declaration *d)
{
    token where = p->tok;
    if (where.kind != TOKEN_NAME || at_name(p, "_"))
        parse_fail(p, PVM_ERROR_SYNTAX, "the name of a register is needed here");
    name *n = intern(p, where.text, where.length);
    next_token(p);
    if (!at_punct(p, '<')) {
        declare_register(p, d, n, &where);
        return;
    }
    uint32_t count = parse_range_count(p);
    check_range(p, n, count, &where);
    symbol *s = declare(p, SYMBOL_RANGE, n, &where);
    s->index = ++p->n_ranges;
    s->vec = d->vec;
    s->type = d->type;
    s->count = count;
}

/* Everything after the state space up to the ';'. */
void parse_variables(parser *p, pvm_space space, linkage link)
{
    declaration d = {.space = space, .link = link, .align = link.align};
    parse_specifiers(p, &d);
    do {
        if (space == SPACE_REG)
            parse_one_register(p, &d);
        else
            parse_one_variable(p, &d);
    } while (accept_punct(p, ','));
    expect_punct(p, ';');
}

/* One parameter of a function: .param or .reg. `as` receives its name, null for "_". */
pvm_var *parse_parameter(parser *p, bool of_entry, name **as)
{
    declaration d = {.space = SPACE_PARAM};
    shape s = {0};
    if (at_word(p, "reg") && !of_entry)
        d.space = SPACE_REG;
    else if (!at_word(p, "param"))
        parse_fail(p, PVM_ERROR_SYNTAX,
                   of_entry ? "a kernel's parameter starts with .param"
                            : "a parameter starts with .param or .reg");
    next_token(p);
    parse_specifiers(p, &d);
    token where = p->tok;
    if (where.kind != TOKEN_NAME)
        parse_fail(p, PVM_ERROR_SYNTAX, "the name of a parameter is needed here");
    *as = at_name(p, "_") ? NULL : intern(p, where.text, where.length);
    next_token(p);
    parse_dimensions(p, &s);
    compute_strides(p, &s, element_bytes(&d));
    if (d.space == SPACE_PARAM && d.vec > 1)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "a parameter cannot be a vector");
    if (of_entry && s.is_unsized)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "a kernel's parameter needs a length");
    pvm_var *v = make_variable(p, &d, &s, *as, &where);
    v->is_const_param = of_entry;
    return v;
}
