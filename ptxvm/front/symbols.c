/* Names, nested scopes, and registers. A name is stored once and knows its current meaning; leaving a scope
 * restores what its names mean outside. Registers of ".reg .b32 %r<100>" are created when they are first
 * used. */
#include "front.h"
#include "ptxvm/hash.h"

#include <string.h>

static name *lookup_name(const parser *p, const char *text, int length, uint32_t hash)
{
    if (!p->name_slots)
        return NULL;
    for (name *n = p->names[hash & (p->name_slots - 1)]; n; n = n->next)
        if (n->hash == hash && n->length == length && memcmp(n->text, text, (size_t)length) == 0)
            return n;
    return NULL;
}

static void grow_names(parser *p)
{
    uint32_t slots = p->name_slots ? p->name_slots * 2 : 256;
    name **table = parse_alloc(p, slots * sizeof *table);
    for (uint32_t i = 0; i < p->name_slots; i++)
        for (name *n = p->names[i], *next; n; n = next) {
            next = n->next;
            n->next = table[n->hash & (slots - 1)];
            table[n->hash & (slots - 1)] = n;
        }
    p->names = table;
    p->name_slots = slots;
}

name *intern(parser *p, const char *text, int length)
{
    uint32_t hash = pvm_hash_text(text, (size_t)length);
    name *n = lookup_name(p, text, length, hash);
    if (n)
        return n;
    if (p->n_names >= p->name_slots)
        grow_names(p);
    n = parse_alloc(p, sizeof *n);
    *n = (name){.text = parse_text(p, text, length), .length = length, .hash = hash};
    n->next = p->names[hash & (p->name_slots - 1)];
    p->names[hash & (p->name_slots - 1)] = n;
    p->n_names++;
    return n;
}

/* ---- scopes ---- */

/* ".reg .b16 a<2>" defines a0 and a1, not a: the prefix itself is not a name. */
static symbol **meaning_of(name *n, symbol_kind kind)
{
    return kind == SYMBOL_RANGE ? &n->range : &n->symbol;
}

void scope_open(parser *p)
{
    if (p->depth >= MAX_DEPTH)
        parse_fail(p, PVM_ERROR_SYNTAX, "blocks are nested more than %d deep", MAX_DEPTH);
    scope *s = parse_alloc(p, sizeof *s);
    s->outer = p->scope;
    s->serial = ++p->n_scopes;
    p->scope = s;
    p->depth++;
}

/* Branches to labels of this scope get their target; the others are left to the outer scope. */
static void resolve_fixups(parser *p, scope *s)
{
    for (fixup *f = s->fixups, *next; f; f = next) {
        next = f->next;
        const symbol *label = f->label->symbol;
        if (label && label->kind == SYMBOL_LABEL && label->depth == p->depth) {
            if (f->bits)
                *f->bits = (uint64_t)label->index;
            else
                *f->index = label->index;
        } else if (p->depth <= 1 || !s->outer) {
            parse_fail_at(p, f->line, f->column, PVM_ERROR_SYNTAX, "label '%s' is not defined",
                          f->label->text);
        } else {
            f->next = s->outer->fixups;
            s->outer->fixups = f;
        }
    }
}

void scope_close(parser *p)
{
    scope *s = p->scope;
    resolve_fixups(p, s);
    for (symbol *sym = s->symbols; sym; sym = sym->next)
        *meaning_of(sym->name, sym->kind) = sym->outer;
    if (s->symbols)
        p->epoch++;
    p->scope = s->outer;
    p->depth--;
}

void add_fixup(parser *p, name *label, uint64_t *bits, int *index, int line, int column)
{
    fixup *f = parse_alloc(p, sizeof *f);
    *f = (fixup){label, bits, index, line, column, p->scope->fixups};
    p->scope->fixups = f;
}

/* ---- numbered registers ---- */

/* The k-th way to split "%r123" into prefix and number: "%r" 123, "%r1" 23, "%r12" 3. Leading zeros are
 * ignored. */
static bool split_number(const name *n, int prefix, uint32_t *number)
{
    if (prefix < 1 || prefix >= n->length || n->length - prefix > 9)
        return false;
    uint32_t value = 0;
    for (int i = prefix; i < n->length; i++) {
        if (n->text[i] < '0' || n->text[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(n->text[i] - '0');
    }
    *number = value;
    return true;
}

static int first_digit(const name *n)
{
    int i = n->length;
    while (i > 0 && n->text[i - 1] >= '0' && n->text[i - 1] <= '9')
        i--;
    return i;
}

/* The innermost range that contains a name, or null. */
static symbol *find_range(const parser *p, const name *n, uint32_t *number)
{
    symbol *best = NULL;
    for (int prefix = first_digit(n); prefix < n->length; prefix++) {
        uint32_t value;
        if (!split_number(n, prefix, &value))
            continue;
        name *base = lookup_name(p, n->text, prefix, pvm_hash_text(n->text, (size_t)prefix));
        for (symbol *s = base ? base->range : NULL; s; s = s->outer)
            if (value < s->count && (!best || s->depth > best->depth)) {
                best = s;
                *number = value;
                break;
            }
    }
    return best;
}

static void grow_uses(parser *p)
{
    uint32_t slots = p->use_slots ? p->use_slots * 2 : 256;
    range_use *table = parse_alloc(p, slots * sizeof *table);
    for (uint32_t i = 0; i < p->use_slots; i++) {
        range_use u = p->uses[i];
        uint32_t slot = pvm_hash_pair((uint64_t)u.range, u.number) & (slots - 1);
        while (u.range && table[slot].range)
            slot = (slot + 1) & (slots - 1);
        if (u.range)
            table[slot] = u;
    }
    p->uses = table;
    p->use_slots = slots;
}

static int use_of_range(parser *p, const symbol *range, uint32_t number, const name *n)
{
    if (p->n_uses * 2 >= p->use_slots)
        grow_uses(p);
    uint32_t slot = pvm_hash_pair((uint64_t)range->index, number) & (p->use_slots - 1);
    for (; p->uses[slot].range; slot = (slot + 1) & (p->use_slots - 1))
        if (p->uses[slot].range == range->index && p->uses[slot].number == number)
            return p->uses[slot].reg;
    int reg = add_register(p, n->text, range->type, range->line);
    for (int i = 1; i < range->vec; i++)
        add_register(p, n->text, range->type, range->line);
    p->uses[slot] = (range_use){range->index, number, reg};
    p->n_uses++;
    return reg;
}

int range_register(parser *p, name *n, int *vec)
{
    *vec = n->cached_vec;
    if (n->cached_epoch == p->epoch)
        return n->cached_reg;
    uint32_t number = 0;
    symbol *range = find_range(p, n, &number);
    if (range && n->symbol && n->symbol->depth >= range->depth)
        range = NULL;
    n->cached_reg = range ? use_of_range(p, range, number, n) : -1;
    n->cached_epoch = p->epoch;
    *vec = n->cached_vec = range ? range->vec : 1;
    return n->cached_reg;
}

int add_register(parser *p, const char *text, pvm_type type, int line)
{
    pvm_function *f = p->function;
    f->regs = parse_grow(p, f->regs, f->n_regs, &p->reg_capacity, sizeof *f->regs);
    f->regs[f->n_regs] = (pvm_reg){text, type, line};
    return f->n_regs++;
}

/* ---- declarations ---- */

static _Noreturn void fail_twice(parser *p, const token *where, const char *text, int line)
{
    parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX, "'%s' is already defined in line %d", text,
                  line);
}

/* A single register and a range must not define the same name in one scope. */
static void check_numbered(parser *p, symbol_kind kind, name *n, const token *where)
{
    for (int prefix = first_digit(n); prefix < n->length && kind == SYMBOL_REG; prefix++) {
        uint32_t number;
        if (!split_number(n, prefix, &number))
            continue;
        name *base = intern(p, n->text, prefix);
        symbol *s = base->range;
        if (s && s->depth == p->depth && number < s->count)
            fail_twice(p, where, n->text, s->line);
        if (base->numbered_scope != p->scope->serial || number < base->numbered_least)
            base->numbered_least = number;
        base->numbered_scope = p->scope->serial;
    }
}

symbol *declare(parser *p, symbol_kind kind, name *n, const token *where)
{
    symbol **meaning = meaning_of(n, kind);
    if (*meaning && (*meaning)->depth == p->depth)
        fail_twice(p, where, n->text, (*meaning)->line);
    check_numbered(p, kind, n, where);
    symbol *s = parse_alloc(p, sizeof *s);
    *s = (symbol){
        .kind = kind, .name = n, .depth = p->depth, .outer = *meaning, .line = where->line, .vec = 1};
    s->next = p->scope->symbols;
    p->scope->symbols = s;
    *meaning = s;
    p->epoch++;
    return s;
}

symbol *find_symbol(parser *p, name *n)
{
    (void)p;
    return n->symbol;
}
