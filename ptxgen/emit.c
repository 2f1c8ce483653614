/* Writes one instruction by its row of isa.def: finds the form for the types, checks that the target supports
 * it, checks every operand against the shape, and writes the line. */
#include "ptxgen/internal.h"

#include <string.h>

/* ---- types ---- */

static const char class_letters[][3] = {"%p", "%b", "%h", "%r", "%d"};

const char *emit_class_letter(reg_class c)
{
    return class_letters[c];
}

ptx_type emit_widened(ptx_type type)
{
    return type == PTX_U8 || type == PTX_B8 ? PTX_U32 : type == PTX_S8 ? PTX_S32 : type;
}

static bool is_free_number(ptx_val x)
{
    return x.type == PTX_INT || x.type == PTX_REAL;
}

ptx_type emit_common(ptx_builder *b, const char *doing, const ptx_val *x, int n)
{
    if (!builder_ready(b, doing))
        return PTX_NOTYPE;
    for (int i = 0; i < n; i++)
        if (!is_free_number(x[i])) {
            if (x[i].kind == PTX_NOTHING)
                builder_usable(b, x[i]);
            return x[i].type;
        }
    ptx_fail(b, "all operands are C numbers: give one a type, as ptx_u32 does");
    return PTX_NOTYPE;
}

/* ---- writing operands ---- */

char *emit_register(char *at, ptx_val x)
{
    memcpy(at, class_letters[emit_class(x.type)], 2);
    return put_decimal(at + 2, x.reg);
}

static char *put_operand(char *at, ptx_val x)
{
    return x.kind == PTX_NUMBER ? emit_put_number(at, x) : emit_register(at, x);
}

static char *put_address(char *at, ptx_val base, int64_t offset)
{
    *at++ = '[';
    at = emit_register(at, base);
    if (offset)
        *at++ = '+';
    if (offset)
        at = emit_put_signed(at, offset);
    *at++ = ']';
    return at;
}

char *emit_guard(ptx_builder *b, char *at)
{
    if (b->guard.kind == PTX_NOTHING)
        return at;
    at = emit_register(put_string(at, b->guard_not ? "@!" : "@"), b->guard);
    *at++ = ' ';
    b->guard = (ptx_val){0};
    return at;
}

/* The instruction's name: the row's text with types and modifier filled in. */
static char *put_name(char *at, const isa_row *row, const ptx_instruction *i)
{
    for (const char *s = row->text; *s; s++) {
        const char *type = *s == '$'   ? isa_type_text(i->t0)
                           : *s == '%' ? isa_type_text(i->t1)
                           : *s == '#' ? isa_type_bit_text(i->t0)
                           : *s == '&' ? isa_type_memory_text(i->t0)
                                       : NULL;
        if (type) {
            *at++ = '.';
            at = put_string(at, type);
        } else if (*s == '?') {
            at = put_string(at, i->modifier ? i->modifier : "");
        } else {
            *at++ = *s;
        }
    }
    return at;
}

/* ---- checking operands ---- */

static bool fits(char letter, const ptx_instruction *i, ptx_type type)
{
    int bits = isa_type_bits(type);
    switch (letter) {
    case '0':
        return type == i->t0;
    case '1':
        return type == i->t1;
    case 'b':
        return bits == isa_type_bits(i->t0);
    case 'B':
        return bits == isa_type_bits(i->t1);
    case 'm':
        return type == i->t0 || (bits >= isa_type_bits(i->t0) && bits > 8 && isa_type_is_integer(i->t0));
    case 'M':
        return type == i->t1 || (isa_type_is_integer(type) && bits > 8 && bits >= isa_type_bits(i->t1));
    case 'u':
        return type == PTX_U32;
    case 's':
        return type == PTX_S32;
    case 'w':
    case 'x':
        return bits == 32;
    case 'q':
        return bits == 64;
    case 'p':
        return type == PTX_PRED;
    default:
        return false;
    }
}

static ptx_type bits_of(ptx_type type)
{
    switch (isa_type_bits(type)) {
    case 16:
        return PTX_B16;
    case 32:
        return PTX_B32;
    case 64:
        return PTX_B64;
    default:
        return type;
    }
}

/* The type of a C number, or of a result, at this letter. */
static ptx_type natural(char letter, const ptx_instruction *i)
{
    switch (letter) {
    case '0':
        return i->t0;
    case '1':
        return i->t1;
    case 'b':
        return bits_of(i->t0);
    case 'B':
        return bits_of(i->t1);
    case 'x':
        return PTX_B32;
    case 'l':
    case 'm':
        return emit_widened(i->t0);
    case 'M':
        return emit_widened(i->t1);
    case 's':
        return PTX_S32;
    case 'q':
        return PTX_U64;
    case 'p':
        return PTX_PRED;
    default:
        return PTX_U32;
    }
}

static const char *wanted(char letter, const ptx_instruction *i)
{
    switch (letter) {
    case 'w':
    case 'x':
        return "a 32-bit value";
    case 'q':
        return "a 64-bit value";
    case 'p':
        return "a predicate";
    default:
        return isa_type_text(natural(letter, i));
    }
}

/* f16, bf16 and packed numbers cannot be immediates. */
static bool needs_register(ptx_val x)
{
    return x.kind == PTX_NUMBER && !isa_type_is_integer(x.type) && x.type != PTX_F32 && x.type != PTX_F64;
}

ptx_val emit_in_register(ptx_builder *b, ptx_val x)
{
    if (!ptx_ok(b) || x.kind != PTX_NUMBER)
        return x;
    ptx_val d = builder_register(b, x.type);
    char *at = text_room(b, &b->body, MAX_INSTRUCTION);
    if (!at)
        return d;
    at = put_string(put_string(at, "\tmov."), isa_type_bit_text(x.type));
    *at++ = ' ';
    at = emit_put_number(put_string(emit_register(at, d), ", "), x);
    at = put_string(at, ";\n");
    b->body.size = (size_t)(at - b->body.data);
    b->instructions++;
    return d;
}

static ptx_val checked(ptx_builder *b, char letter, const ptx_instruction *i, ptx_val x, bool in_vector)
{
    if (letter == 'i') {
        if (x.kind != PTX_NUMBER)
            ptx_fail(b, "an operand has to be a number known now");
        return x;
    }
    if (x.kind == PTX_NUMBER)
        x = emit_number(b, natural(letter, i), x);
    if (b->failed || !builder_usable(b, x))
        return x;
    if (!fits(letter, i, x.type))
        ptx_fail(b, "the types differ: an operand is %s, it has to be %s", isa_type_text(x.type),
                 wanted(letter, i));
    else if (in_vector || (needs_register(x) && i->id != ISA_mov))
        return emit_in_register(b, x);
    return x;
}

static void check_address(ptx_builder *b, bool shared, ptx_val base)
{
    int bits = shared ? 32 : 64;
    if (!builder_usable(b, base))
        return;
    if (base.kind == PTX_NUMBER || !isa_type_is_integer(base.type) || isa_type_bits(base.type) != bits)
        ptx_fail(b, "an address is %s, it has to be a register of type u%d%s",
                 base.kind == PTX_NUMBER ? "a number" : isa_type_text(base.type), bits,
                 bits == 32 ? " (shared memory)" : "");
}

static bool is_vector(char letter)
{
    return letter == '{' || letter == '<';
}

/* Checks all operands and stores them in `op`, in the order of the shape. */
static void check_operands(ptx_builder *b, const isa_row *row, const ptx_instruction *i, ptx_val *op)
{
    const ptx_val *in = i->in;
    const uint8_t *counts = i->counts;
    const char *s = row->shape;
    for (; *s != '='; s++)
        if (is_vector(*s)) /* counts is null if there are no vectors */
            counts++;
    for (s++; *s && ptx_ok(b); s++) {
        if (*s == '[' || *s == '(') {
            check_address(b, i->shared || *s == '(', in[0]);
            *op++ = *in++;
            *op++ = *in++;
        } else if (is_vector(*s)) {
            bool braces = *s++ == '<' || *counts > 1;
            for (int n = *counts++; n-- > 0;)
                *op++ = checked(b, *s, i, *in++, braces);
        } else {
            *op++ = checked(b, *s, i, *in++, false);
        }
    }
}

/* A result is written to the variable given for it, or to a new register. */
static ptx_val result(ptx_builder *b, const ptx_instruction *i, char letter, int index)
{
    ptx_type type = natural(letter, i);
    ptx_val var = i->targets ? i->targets[index] : index == 0 ? b->into : (ptx_val){0};
    if (!i->targets && index == 0)
        b->into = (ptx_val){0};
    if (var.kind == PTX_NOTHING) {
        if (b->guard.kind != PTX_NOTHING)
            ptx_fail(
                b, "a guarded instruction makes a new value, undefined where it does not run: use ptx_into");
        return builder_register(b, type);
    }
    if (var.kind != PTX_VAR)
        ptx_fail(b, "ptx_into needs a variable for the result");
    else if (var.type != type)
        ptx_fail(b, "the types differ: the result is %s, the variable %s", isa_type_text(type),
                 isa_type_text(var.type));
    else
        builder_usable(b, var);
    return var;
}

static void make_results(ptx_builder *b, const isa_row *row, const ptx_instruction *i)
{
    const uint8_t *counts = i->counts;
    int n = 0;
    for (const char *s = row->shape; *s != '=' && ptx_ok(b); s++) {
        if (*s == '|')
            continue;
        int repeat = 1;
        if (is_vector(*s)) {
            repeat = *counts++;
            s++;
        }
        for (; repeat-- > 0; n++)
            i->out[n] = result(b, i, *s, n);
    }
}

static char *put_vector(char *at, const ptx_val *x, int n, bool braces)
{
    if (braces)
        *at++ = '{';
    for (int k = 0; k < n; k++)
        at = put_operand(k ? put_string(at, ", ") : at, x[k]);
    if (braces)
        *at++ = '}';
    return at;
}

static char *put_operands(char *at, const isa_row *row, const ptx_instruction *i, const ptx_val *op)
{
    const ptx_val *x = i->out;
    const uint8_t *counts = i->counts;
    const char *separator = " ";
    for (const char *s = row->shape; *s; s++) {
        if (*s == '=') {
            x = op;
            continue;
        }
        if (*s == '|') {
            separator = "|";
            continue;
        }
        at = put_string(at, separator);
        separator = ", ";
        if (*s == '[' || *s == '(') {
            at = put_address(at, x[0], (int64_t)x[1].bits);
            x += 2;
        } else if (is_vector(*s)) {
            bool braces = *s++ == '<' || *counts > 1;
            at = put_vector(at, x, *counts, braces);
            x += *counts++;
        } else {
            at = put_operand(at, *x++);
        }
    }
    return at;
}

/* ---- the whole instruction ---- */

bool emit_need(ptx_builder *b, isa_need_id need, const char *what)
{
    int version = isa_need_version(need, b->sm);
    if (!version)
        ptx_fail(b, "%s needs %s; the target is %s", what, isa_need_text(need), b->sm->name);
    else if (version > b->version)
        b->version = version;
    return version;
}

/* Whether the target supports it; the instruction's name is written only for the error. */
static bool check_need(ptx_builder *b, isa_need_id need, const isa_row *row, const ptx_instruction *i)
{
    if (need == NEED_BASE) /* every target supports it, at every version */
        return true;
    int version = isa_need_version(need, b->sm);
    if (version > b->version)
        b->version = version;
    if (version)
        return true;
    char name[MAX_INSTRUCTION];
    *put_name(name, row, i) = 0;
    b->doing = NULL;
    return emit_need(b, need, name);
}

static void refuse_types(ptx_builder *b, const ptx_instruction *i)
{
    if (i->t1)
        ptx_fail(b, "there is no form for %s and %s", isa_type_text(i->t0), isa_type_text(i->t1));
    else
        ptx_fail(b, "there is no form for %s", isa_type_text(i->t0));
}

void emit(ptx_builder *b, const ptx_instruction *i)
{
    static const char *const names[] = {
#define NEED(id, text, ...)
#define OP(id, text, t0, t1, shape, need) #id,
#define OR(text, t0, t1, shape, need)     "",
#include "ptxgen/isa.def"
#undef NEED
#undef OP
#undef OR
    };
    ptx_val op[MAX_OPERANDS];
    if (!builder_ready(b, i->name ? i->name : names[i->id]))
        return;
    const isa_row *row = isa_find(i->id, i->t0, i->t1);
    if (!row) {
        refuse_types(b, i);
        return;
    }
    if (!check_need(b, row->need, row, i) || !check_need(b, i->need, row, i))
        return;
    check_operands(b, row, i, op);
    make_results(b, row, i);
    if (b->into.kind != PTX_NOTHING)
        ptx_fail(b, "there is no result for ptx_into");
    if (!ptx_ok(b))
        return;
    char *at = text_room(b, &b->body, MAX_INSTRUCTION);
    if (!at)
        return;
    *at++ = '\t';
    at = put_name(emit_guard(b, at), row, i);
    at = put_operands(at, row, i, op);
    at = put_string(at, ";\n");
    b->body.size = (size_t)(at - b->body.data);
    b->instructions++;
}

ptx_val emit_op(ptx_builder *b, isa_id id, ptx_type t0, ptx_type t1, const char *modifier, const ptx_val *in)
{
    ptx_val out[2] = {{0}};
    emit(b, &(ptx_instruction){.id = id, .t0 = t0, .t1 = t1, .modifier = modifier, .in = in, .out = out});
    return ptx_ok(b) ? out[0] : (ptx_val){0};
}

void emit_void(ptx_builder *b, isa_id id, ptx_type t0, const char *modifier, const ptx_val *in)
{
    emit(b, &(ptx_instruction){.id = id, .t0 = t0, .modifier = modifier, .in = in});
}
