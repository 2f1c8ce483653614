/* Operands that stand for a short computation: "t + 1" with a register t, "tab[r + 1]" with an array tab.
 * Like ptxas, we insert instructions for them before the one that has the operand, under the same guard; the
 * operand becomes the register that holds the result. */
#include "front.h"

static pvm_operand of_register(const parser *p, int reg)
{
    return (pvm_operand){.kind = OPERAND_REG, .type = p->function->regs[reg].type, .reg = reg};
}

static pvm_operand of_number(uint64_t value, pvm_type type)
{
    return (pvm_operand){.kind = OPERAND_IMM, .type = type, .reg = -1, .bits = value};
}

/* A new register of the type, set by an instruction inserted before `at` with up to three sources. */
static int compute(parser *p, const pvm_inst *at, pvm_inst inst, pvm_type type, const pvm_operand *sources,
                   int n_sources)
{
    int reg = add_register(p, "(computed)", type, at->line);
    inst.operand = parse_alloc(p, (size_t)(n_sources + 1) * sizeof *inst.operand);
    inst.operand[0] = of_register(p, reg);
    for (int i = 0; i < n_sources; i++)
        inst.operand[1 + i] = sources[i];
    inst.n_operands = 1 + n_sources;
    inst.n_results = 1;
    inst.mod[S_TYPE] = (uint16_t)M_TYPE(type);
    inst.guard = at->guard;
    inst.guard_negated = at->guard_negated;
    inst.form = at->form;
    inst.line = at->line;
    inst.column = at->column;
    inst.loc_file = at->loc_file;
    inst.loc_line = at->loc_line;
    add_instruction(p, &inst);
    return reg;
}

static pvm_type unsigned_of(int bits)
{
    return bits == 8 ? T_U8 : bits == 16 ? T_U16 : bits == 32 ? T_U32 : T_U64;
}

static int convert(parser *p, const pvm_inst *at, pvm_type to, int reg)
{
    pvm_type from = unsigned_of(pvm_type_bits(p->function->regs[reg].type));
    pvm_operand source = of_register(p, reg);
    pvm_inst cvt = {.op = OP_cvt, .mod = {[S_TYPE2] = (uint16_t)M_TYPE(from)}};
    source.type = from;
    return from == to ? reg : compute(p, at, cvt, to, &source, 1);
}

int expand_sum(parser *p, const raw_operand *raw, const pvm_inst *inst)
{
    pvm_type type = unsigned_of(pvm_type_bits(p->function->regs[raw->reg].type));
    pvm_operand sources[2] = {of_register(p, raw->reg), of_number(raw->value, type)};
    sources[0].type = type;
    if (type != T_U64)
        sources[1].bits &= (UINT64_C(1) << pvm_type_bits(type)) - 1;
    return compute(p, inst, (pvm_inst){.op = OP_add}, type, sources, 2);
}

/* For an array of vectors, or of several dimensions, an index counts scalar elements. */
static uint32_t element_size(const raw_operand *raw)
{
    return (uint32_t)pvm_type_bits(raw->symbol->var->type) / 8;
}

/* As in ptxas: unsigned, 32 bits. */
uint64_t element_offset(const raw_operand *raw)
{
    return (uint32_t)raw->value * element_size(raw);
}

int expand_element(parser *p, const raw_operand *raw, const pvm_inst *inst)
{
    pvm_var *var = raw->symbol->var;
    pvm_operand start = {.kind = OPERAND_SYMBOL, .type = T_U64, .space = var->space, .reg = -1, .var = var};
    pvm_operand scaled[3] = {of_register(p, convert(p, inst, T_U32, raw->index)),
                             of_number(element_size(raw), T_U32), of_number(element_offset(raw), T_U32)};
    scaled[0].type = T_U32;
    int offset = compute(p, inst, (pvm_inst){.op = OP_mad, .mod = {[S_HILO] = M_lo}}, T_U32, scaled, 3);
    pvm_operand sum[2] = {
        of_register(p, compute(p, inst, (pvm_inst){.op = OP_mov}, T_U64, &start, 1)),
        of_register(p, convert(p, inst, T_U64, offset)),
    };
    return compute(p, inst, (pvm_inst){.op = OP_add}, T_U64, sum, 2);
}
