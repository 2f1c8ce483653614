/* Checks an operand against what a form expects: PTX ISA, "Type Checking" and "Operand Size Exceeding
 * Instruction-Type Size". */
#include "front.h"

#include <stdio.h>
#include <string.h>

typedef enum {
    CLASS_BITS,
    CLASS_INT,
    CLASS_OTHER /* floats and packed types: only the same type, or bits of the same size */
} type_class;

static type_class class_of(pvm_type type)
{
    switch (type) {
    case T_B8:
    case T_B16:
    case T_B32:
    case T_B64:
    case T_B128:
        return CLASS_BITS;
    case T_U8:
    case T_S8:
    case T_U16:
    case T_S16:
    case T_U32:
    case T_S32:
    case T_U64:
    case T_S64:
        return CLASS_INT;
    default:
        return CLASS_OTHER;
    }
}

bool type_fits(pvm_type reg, pvm_type wanted, uint32_t flags)
{
    if (reg == wanted)
        return true;
    if (reg == T_PRED || wanted == T_PRED)
        return false;
    int have = pvm_type_bits(reg), need = pvm_type_bits(wanted);
    if (have < need || (have > need && !(flags & TAKES_WIDER)))
        return false;
    type_class r = class_of(reg), w = class_of(wanted);
    return r == CLASS_BITS || w == CLASS_BITS || (r == CLASS_INT && w == CLASS_INT);
}

pvm_type form_operand_type(const form_operand *want, const pvm_inst *inst)
{
    static const pvm_type wide[T_COUNT] = {
        [T_U16] = T_U32, [T_S16] = T_S32, [T_U32] = T_U64, [T_S32] = T_S64};
    pvm_type type = pvm_slot_type(inst, S_TYPE);
    if (want->type >= TYPE_SLOT)
        return pvm_slot_type(inst, (pvm_slot)(want->type - TYPE_SLOT));
    if (want->type == TYPE_WIDE)
        return wide[type];
    if (want->type == TYPE_DOT)
        return type == T_U32 && pvm_slot_type(inst, S_TYPE2) == T_U32 ? T_U32 : T_S32;
    return (pvm_type)want->type;
}

static pvm_space wanted_space(const form_operand *want, const pvm_inst *inst)
{
    return want->space ? (pvm_space)want->space : pvm_mod_space(inst->mod[want->space_slot]);
}

static const char *space_name(pvm_space space)
{
    static const char *const names[] = {"generic", ".reg",   ".sreg",   ".const",       ".global",
                                        ".local",  ".param", ".shared", "tensor memory"};
    return names[space];
}

static pvm_type register_type(const parser *p, int reg)
{
    return p->function->regs[reg].type;
}

/* ---- does it fit? ---- */

static const char *misfit_register(const parser *p, const raw_operand *raw, uint32_t flags, pvm_type type,
                                   char *why, size_t size)
{
    pvm_type have = register_type(p, raw->reg);
    if (!(flags & TAKES_REG))
        return "must be a number";
    if (raw->negated && !(flags & TAKES_NOT))
        return "cannot be negated with '!'";
    if (raw->minus && !(flags & TAKES_MINUS))
        return "cannot be negated with '-'";
    if (raw->selector && !(flags & TAKES_SELECTOR))
        return "has no such component";
    if (raw->has_offset && (flags & IS_RESULT))
        return "is a result: a sum is not allowed here";
    if (raw->has_offset &&
        (class_of(have) == CLASS_OTHER || pvm_type_bits(have) < 16 || pvm_type_bits(have) > 64))
        return "is not an integer of 16, 32 or 64 bits: a number cannot be added to it";
    if (type_fits(have, type, flags))
        return NULL;
    snprintf(why, size, "has type %s, but %s is needed", pvm_type_name(have), pvm_type_name(type));
    return why;
}

static const char *misfit_number(const raw_operand *raw, const form_operand *want, pvm_type type)
{
    if (!(want->flags & TAKES_IMM))
        return "must be a register";
    bool is_float = type == T_F32 || type == T_F64;
    if (raw->kind == RAW_INT) {
        if (is_float)
            return "must be a floating-point number: write 1.0 or 0f3F800000";
        if (class_of(type) == CLASS_OTHER && type != T_PRED)
            return "must be a register";
        int64_t v = (int64_t)raw->value;
        return want->flags & IS_RANGED && (v < want->lo || v > want->hi) ? "is out of range" : NULL;
    }
    if (is_float || type == (raw->kind == RAW_F32 ? T_B32 : T_B64))
        return NULL;
    return "cannot be a floating-point number";
}

static const char *misfit_sreg(const parser *p, const raw_operand *raw, const form_operand *want,
                               pvm_type type)
{
    (void)p;
    if (!(want->flags & TAKES_SREG))
        return "cannot be a special register: mov it to a register first";
    if (raw->vec > 1)
        return "needs one of the components .x .y .z .w";
    int bits = pvm_type_bits(type);
    if (class_of(type) == CLASS_OTHER && type != T_PRED)
        return "cannot be a special register with this type";
    if ((type == T_PRED) != (raw->sreg == SREG_is_explicit_cluster))
        return "cannot be this special register";
    bool is_wide = raw->sreg == SREG_clock64 || raw->sreg == SREG_globaltimer || raw->sreg == SREG_gridid ||
                   raw->sreg == SREG_pm64 || raw->sreg == SREG_current_graph_exec;
    if (type != T_PRED && bits != (is_wide ? 64 : 32) && !(bits == 16 && !is_wide) &&
        !(bits == 32 && raw->sreg == SREG_gridid) && !(want->flags & TAKES_WIDER))
        return is_wide ? "is a 64-bit special register" : "is a 32-bit special register";
    return NULL;
}

static const char *misfit_index(const parser *p, const raw_operand *raw)
{
    if (raw->symbol->kind != SYMBOL_VAR || !raw->symbol->var->is_array)
        return "has an index, but is not an array";
    if (raw->index >= 0 && (class_of(register_type(p, raw->index)) == CLASS_OTHER ||
                            pvm_type_bits(register_type(p, raw->index)) > 64))
        return "has an index that is not an integer";
    return NULL;
}

static const char *misfit_symbol(const parser *p, const raw_operand *raw, const form_operand *want,
                                 pvm_type type, char *why, size_t size)
{
    const symbol *s = raw->symbol;
    if (!s) {
        snprintf(why, size, "'%.60s' is not defined", raw->name->text);
        return why;
    }
    if (!(want->flags & TAKES_SYMBOL))
        return want->flags & TAKES_REG ? "must be a register" : "must be a number";
    if (s->kind != SYMBOL_VAR && s->kind != SYMBOL_FUNCTION)
        return "must be a register, a variable or a number";
    if (raw->is_indexed && misfit_index(p, raw))
        return misfit_index(p, raw);
    int bits = pvm_type_bits(type);
    if (class_of(type) == CLASS_OTHER || (bits != 32 && bits != 64))
        return "is an address: it needs a 32-bit or 64-bit integer type";
    return NULL;
}

static const char *misfit_address(const parser *p, const raw_operand *raw, const form_operand *want,
                                  const pvm_inst *inst, char *why, size_t size)
{
    bool takes_element = inst->op == OP_ld || inst->op == OP_ldu || inst->op == OP_st;
    if (raw->kind != RAW_ADDRESS && !(raw->kind == RAW_SYMBOL && raw->is_indexed && takes_element))
        return "must be an address in brackets";
    raw_kind base = raw->kind == RAW_SYMBOL ? RAW_SYMBOL : raw->base;
    pvm_space space = wanted_space(want, inst);
    if (base == RAW_REG) {
        pvm_type type = register_type(p, raw->reg);
        bool whole = class_of(type) != CLASS_OTHER &&
                     (pvm_type_bits(type) == 32 || (pvm_type_bits(type) == 64 && space != SPACE_TENSOR));
        snprintf(why, size, "has type %s: an address %sneeds a 32-bit %sinteger", pvm_type_name(type),
                 space == SPACE_TENSOR ? "of tensor memory " : "", space == SPACE_TENSOR ? "" : "or 64-bit ");
        return whole ? NULL : why;
    }
    if (base == RAW_INT)
        return space == SPACE_LOCAL ? NULL
                                    : "is a number: only .local has addresses that are known beforehand";
    if (!raw->symbol || raw->symbol->kind != SYMBOL_VAR) {
        snprintf(why, size, raw->symbol ? "'%.60s' is not a variable" : "'%.60s' is not defined",
                 raw->name->text);
        return why;
    }
    if (raw->is_indexed && misfit_index(p, raw))
        return misfit_index(p, raw);
    pvm_space have = raw->symbol->var->space;
    if (space == have || (space == SPACE_NONE && have != SPACE_PARAM && have != SPACE_REG))
        return NULL;
    snprintf(why, size, "'%.60s' is in %s, but the instruction accesses %s", raw->name->text,
             space_name(have), space == SPACE_NONE ? "generic memory" : space_name(space));
    return why;
}

static const char *misfit_vector(parser *p, const raw_operand *raw, const form_operand *want, int count,
                                 const pvm_inst *inst, pvm_type type, char *why, size_t size)
{
    if (raw->kind == RAW_SREG && raw->vec > 1)
        return want->flags & TAKES_SREG && raw->vec == count ? NULL : "cannot be this special register";
    if (raw->kind == RAW_SINK && want->flags & TAKES_SINK)
        return NULL;
    if (raw->kind != RAW_VECTOR || raw->count != count) {
        snprintf(why, size, "must be a vector of %d in braces", count);
        return why;
    }
    form_operand element = *want;
    element.count = COUNT_SCALAR;
    /* An element that a load discards, or that a store leaves unchanged (rules.c tells which stores): {%r1,
     * _} */
    if (want->count == COUNT_VEC && (want->flags & IS_RESULT || inst->op == OP_st))
        element.flags |= TAKES_SINK;
    for (int i = 0; i < count; i++) {
        const char *misfit = operand_misfit(p, &p->elements[raw->first + i], &element, inst, type, why, size);
        if (misfit)
            return misfit;
    }
    return NULL;
}

/* A row of a fragment holds 32, 64, 128 or 256 bits for each of .x1 to .x128; 32 lanes share 16 or 32 rows. */
static int fragment_registers(const pvm_inst *inst)
{
    int repeats = inst->mod[S_NUM] <= M_x4 ? 1 << (inst->mod[S_NUM] - M_x1) : 8 << (inst->mod[S_NUM] - M_x8);
    return inst->mod[S_SHAPE] == M_t16x128b   ? 2 * repeats
           : inst->mod[S_SHAPE] == M_t16x256b ? 4 * repeats
                                              : repeats;
}

int form_operand_count(const form_operand *want, const pvm_inst *inst)
{
    int m, n = 0, k;
    switch (want->count) {
    case COUNT_VEC:
        return inst->mod[S_VEC] == M_v2   ? 2
               : inst->mod[S_VEC] == M_v4 ? 4
               : inst->mod[S_VEC] == M_v8 ? 8
                                          : COUNT_SCALAR;
    case COUNT_HALF_N:
    case COUNT_QUARTER_N:
        pvm_shape_of(inst->mod[S_SHAPE], &m, &n, &k);
        return want->count == COUNT_HALF_N ? n / 2 : n / 4;
    case COUNT_DIM:
        return (int)inst->mod[S_SHAPE] - M_dim1 + 1;
    case COUNT_FRAGMENT:
        return fragment_registers(inst);
    default:
        return want->count;
    }
}

/* The scales of a block-scaled mma may stand in braces: {%r1}. */
static const raw_operand *without_braces(const parser *p, const raw_operand *raw, int count,
                                         const pvm_inst *inst)
{
    bool braced = count == COUNT_SCALAR && inst->mod[S_STYPE] && raw->kind == RAW_VECTOR && raw->count == 1;
    return braced ? &p->elements[raw->first] : raw;
}

const char *operand_misfit(parser *p, const raw_operand *raw, const form_operand *want, const pvm_inst *inst,
                           pvm_type type, char *why, size_t why_size)
{
    int count = form_operand_count(want, inst);
    raw = without_braces(p, raw, count, inst);
    if (want->flags & IS_ADDRESS)
        return misfit_address(p, raw, want, inst, why, why_size);
    if (want->flags & IS_LABEL)
        return raw->kind == RAW_SYMBOL && !raw->has_offset ? NULL : "must be a label";
    if (want->flags & IS_TARGETS)
        return raw->kind == RAW_SYMBOL && raw->symbol && raw->symbol->kind == SYMBOL_BRANCH_TARGETS
                   ? NULL
                   : "must be the label of a .branchtargets list";
    if (count != COUNT_SCALAR)
        return misfit_vector(p, raw, want, count, inst, type, why, why_size);
    switch (raw->kind) {
    case RAW_REG:
        return misfit_register(p, raw, want->flags, type, why, why_size);
    case RAW_INT:
    case RAW_F32:
    case RAW_F64:
        return misfit_number(raw, want, type);
    case RAW_SREG:
        return misfit_sreg(p, raw, want, type);
    case RAW_SYMBOL:
        return misfit_symbol(p, raw, want, type, why, why_size);
    case RAW_SINK:
        return want->flags & TAKES_SINK ? NULL : "cannot be discarded with '_'";
    case RAW_ADDRESS:
        return "must not be in brackets";
    default:
        return "must not be a vector";
    }
}

/* ---- conversion ---- */

static uint64_t mask_to(uint64_t value, int bits)
{
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static void make_number(const raw_operand *raw, pvm_type type, pvm_operand *out)
{
    uint64_t value = raw->value;
    if (raw->kind == RAW_F64 && type == T_F32)
        value = bits_from_f32((float)f64_from_bits(value));
    else if (raw->kind == RAW_F32 && type == T_F64)
        value = bits_from_f64((double)f32_from_bits((uint32_t)value));
    if (type == T_PRED)
        value = value != 0;
    out->kind = OPERAND_IMM;
    out->bits = mask_to(value, pvm_type_bits(type));
    out->bits_hi = pvm_type_bits(type) == 128 && raw->kind == RAW_INT && value >> 63 ? UINT64_MAX : 0;
}

static void make_symbol(const raw_operand *raw, pvm_operand *out)
{
    out->var = raw->symbol->var;
    out->function = raw->symbol->function;
    out->bits = raw->is_indexed ? element_offset(raw) : raw->value;
}

/* In a function that is not a kernel, parameters are in its local memory, and so are addresses derived from
 * them. */
static pvm_space space_of_register(const parser *p, pvm_space space, const form_operand *want,
                                   const pvm_inst *inst)
{
    bool of_entry = p->function->is_entry || inst->mod[want->space_slot] == M_param__entry;
    return space == SPACE_PARAM && !of_entry ? SPACE_LOCAL : space;
}

static void make_address(parser *p, const raw_operand *raw, const form_operand *want, const pvm_inst *inst,
                         pvm_operand *out)
{
    out->kind = OPERAND_ADDRESS;
    out->space = wanted_space(want, inst);
    out->bits = raw->value;
    if (raw->kind == RAW_SYMBOL && raw->index >= 0) {
        out->reg = expand_element(p, raw, inst);
        out->bits = 0;
        out->space = space_of_register(p, raw->symbol->var->space, want, inst);
    } else if (raw->kind == RAW_SYMBOL || raw->base == RAW_SYMBOL) {
        make_symbol(raw, out);
        if (out->space == SPACE_NONE)
            out->space = out->var->space;
    } else if (raw->base == RAW_REG) {
        out->reg = raw->reg;
        out->space = space_of_register(p, out->space, want, inst);
    }
}

static void make_vector(parser *p, const raw_operand *raw, const form_operand *want, int count,
                        const pvm_inst *inst, pvm_type type, pvm_operand *out)
{
    form_operand element = *want;
    element.count = COUNT_SCALAR;
    out->kind = OPERAND_VECTOR;
    out->n_elements = count;
    out->elements = parse_alloc(p, (size_t)count * sizeof *out->elements);
    for (int i = 0; i < count; i++) {
        raw_operand part = *raw;
        part.value = (uint64_t)i;
        if (raw->kind == RAW_VECTOR)
            part = p->elements[raw->first + i];
        operand_make(p, &part, &element, inst, type, &out->elements[i]);
    }
}

void operand_make(parser *p, const raw_operand *raw, const form_operand *want, const pvm_inst *inst,
                  pvm_type type, pvm_operand *out)
{
    int count = form_operand_count(want, inst);
    raw = without_braces(p, raw, count, inst);
    *out = (pvm_operand){.type = type, .reg = -1, .negated = raw->negated || raw->minus};
    if (want->flags & IS_ADDRESS)
        make_address(p, raw, want, inst, out);
    else if (want->flags & IS_LABEL) {
        out->kind = OPERAND_LABEL;
        add_fixup(p, raw->name, &out->bits, NULL, raw->line, raw->column);
    } else if (count != COUNT_SCALAR)
        make_vector(p, raw, want, count, inst, type, out);
    else if (raw->kind == RAW_REG) {
        out->kind = OPERAND_REG;
        out->reg = raw->has_offset ? expand_sum(p, raw, inst) : raw->reg;
    } else if (raw->kind == RAW_SYMBOL && raw->index >= 0) {
        out->kind = OPERAND_REG;
        out->reg = expand_element(p, raw, inst);
    } else if (raw->kind == RAW_SREG) {
        out->kind = OPERAND_SREG;
        out->sreg = raw->sreg;
        out->bits = raw->value;
    } else if (raw->kind == RAW_SYMBOL) {
        out->kind = OPERAND_SYMBOL;
        make_symbol(raw, out);
        out->space = out->var ? out->var->space : SPACE_NONE;
    } else if (raw->kind == RAW_SINK)
        out->kind = OPERAND_SINK;
    else
        make_number(raw, type, out);
}
