#include "support/form_examples.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const form_plan form_plan_plain = {0, -1, 0, FORM_REGISTERS};

void form_put(form_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, (size_t)(t->end - t->at), format, args);
    va_end(args);
    t->at += n < t->end - t->at ? n : t->end - t->at - 1;
}

int form_plans(const form_table *table, const form *f, form_plan *plans, int most)
{
    int n = 0;
    plans[n++] = form_plan_plain;
    for (int i = 0; i < f->n_mods; i++) {
        const form_mod *m = &table->mods[f->first_mod + i];
        for (int c = m->optional ? 0 : 1; c < m->count && n < most && !m->implied; c++)
            plans[n++] = (form_plan){m->optional, i, c, FORM_REGISTERS};
    }
    return n;
}

void form_put_mods(form_text *t, const form_table *table, const form *f, form_plan how, pvm_inst *inst)
{
    for (int i = 0; i < f->n_mods; i++) {
        const form_mod *m = &table->mods[f->first_mod + i];
        if (!m->implied && m->optional && m->optional != how.group)
            continue;
        uint16_t value = table->choices[m->first + (i == how.varied ? how.choice : 0)];
        inst->mod[m->slot] = value;
        if (!m->implied)
            form_put(t, "%s", pvm_mod_text((pvm_mod)value));
    }
}

/* The register file for a type: PTX accepts untyped registers of the same size everywhere. */
static const char *register_prefix(pvm_type type)
{
    switch (pvm_type_bits(type)) {
    case 1:
        return "p";
    case 8:
        return "c";
    case 16:
        return "h";
    case 32:
        return "r";
    case 64:
        return "rd";
    default:
        return "q";
    }
}

static void put_register(form_text *t, const form_operand *o, pvm_type type, form_style style, int *next)
{
    int last = type == T_PRED || pvm_type_bits(type) == 128 ? 8 : pvm_type_bits(type) == 32 ? 198 : 98;
    bool wider = style == FORM_WIDER && o->flags & TAKES_WIDER && pvm_type_bits(type) < 64;
    if (style == FORM_NUMBERS && o->flags & TAKES_IMM && !(o->flags & IS_RESULT))
        form_put(t, "%s", type == T_F32 ? "0f40490FDB" : type == T_F64 ? "0d400921FB54442D18" : "1");
    else if (style == FORM_SINKS && o->flags & TAKES_SINK)
        form_put(t, "_");
    else
        form_put(t, "%s%s%d", style == FORM_NEGATED && o->flags & TAKES_NOT ? "!" : "",
                 wider ? "rd" : register_prefix(type), ++*next % last);
}

static void put_value(form_text *t, const form *f, const form_operand *o, const pvm_inst *inst,
                      form_style style, int *next)
{
    pvm_type type = form_operand_type(o, inst);
    int count = form_operand_count(o, inst);
    if (o->flags & IS_ADDRESS)
        form_put(t, o->space == SPACE_TENSOR ? "[r198]" : "[rd98]");
    else if (o->flags & IS_LABEL)
        form_put(t, "done");
    else if (o->flags & IS_TARGETS)
        form_put(t, "table");
    else if (!(o->flags & TAKES_REG))
        form_put(t, "%d", o->flags & IS_RANGED ? o->lo : f->op == OP_cp || f->op == OP_alloca ? 16 : 8);
    else if (!count)
        put_register(t, o, type, style, next);
    else
        for (int i = 0; i < count; i++) {
            form_put(t, "%s", i ? ", " : "{");
            put_register(t, o, type, style, next);
            form_put(t, "%s", i == count - 1 ? "}" : "");
        }
}

void form_put_example(form_text *t, const form_table *table, const form *f, form_plan how)
{
    pvm_inst inst = {0};
    int next = 0, written = 0;
    form_put(t, "%s", pvm_opcode_name(f->op));
    form_put_mods(t, table, f, how, &inst);
    for (int i = 0; i < f->n_operands; i++) {
        const form_operand *o = &table->operands[f->first_operand + i];
        if ((o->flags & IS_OPTIONAL && how.style != FORM_OPTIONALS) ||
            (o->flags & IS_HINT && !inst.mod[S_HINT]))
            continue;
        if (o->flags & IS_WITHIN)
            t->at--; /* the bracket of the address */
        form_put(t, "%s", o->flags & IS_PAIRED ? "|" : written ? ", " : " ");
        put_value(t, f, o, &inst, how.style, &next);
        form_put(t, "%s", o->flags & IS_WITHIN ? "]" : "");
        written++;
    }
    form_put(t, ";\n");
}

int form_version(const form *f)
{
    return f->version > 90 ? f->version : 90;
}

void form_put_header(form_text *t, const char *needs, int version)
{
    char digits[32];
    int sm = atoi(needs) > 75 ? atoi(needs) : 75;
    bool is_old = strcmp(needs, "old") == 0;
    snprintf(digits, sizeof digits, "%d.%d", version / 10, version % 10);
    form_put(t, ".version %s\n.target sm_%d%s\n.address_size 64\n", is_old ? "6.3" : digits, sm,
             needs[strspn(needs, "0123456789")] && !is_old ? "a" : "");
}

void form_put_kernel(form_text *t, int number, const char *body)
{
    static const char registers[] =
        ".reg .pred p<9>; .reg .b8 c<99>; .reg .b16 h<99>; .reg .b32 r<199>; .reg .b64 rd<99>;\n";
    const char *wide = strstr(body, "b128") ? ".reg .b128 q<9>;\n" : "";
    form_put(t, ".visible .entry k%d()\n{\n%s%stable: .branchtargets done;\n%sdone: ret;\n}\n", number,
             registers, wide, body);
}
