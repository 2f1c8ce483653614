/* What the notation of isa.def cannot express: modifiers and operands that exclude each other. */
#include "front.h"

#include <string.h>

static bool is_global(const pvm_inst *inst)
{
    return inst->mod[S_SPACE] == M_NONE || inst->mod[S_SPACE] == M_global;
}

static bool is_shared_cluster(const pvm_inst *inst)
{
    return inst->mod[S_SPACE] == M_shared__cluster;
}

static int vector_bits(const pvm_inst *inst)
{
    int n = inst->mod[S_VEC] == M_v2 ? 2 : inst->mod[S_VEC] == M_v4 ? 4 : inst->mod[S_VEC] == M_v8 ? 8 : 1;
    return n * pvm_type_bits(pvm_slot_type(inst, S_TYPE));
}

/* Loads and stores: 256-bit accesses, caches, spaces. */
static const char *check_access(const parser *p, const pvm_inst *inst)
{
    int bits = vector_bits(inst);
    bool wide = bits == 256 && is_global(inst);
    if (bits > 128 && !wide)
        return "this vector is wider than 128 bits";
    if (inst->mod[S_VEC] == M_v8 && bits < 128 && p->module->version < 91)
        return ".v8 needs a 16-bit or 32-bit type, before .version 9.1";
    if (wide && (p->module->version < 88 || p->module->target.sm < 100))
        return "256-bit accesses need .version 8.8 and sm_100 or later";
    if (inst->mod[S_EVICT2] && !wide)
        return ".L2::evict_* needs a 256-bit vector";
    if (!is_global(inst) && (inst->mod[S_EVICT] || inst->mod[S_HINT] || inst->mod[S_PREFETCH]))
        return "eviction priorities and cache hints are for global memory";
    if (inst->mod[S_EVICT] && inst->mod[S_CACHE])
        return "an eviction priority does not go with a cache operator";
    return NULL;
}

/* '_' in the vector of a 256-bit store leaves that element of memory unchanged. */
static const char *check_sinks(const pvm_inst *inst)
{
    const pvm_operand *values = &inst->operand[1];
    int sinks = 0;
    for (int i = 0; values->kind == OPERAND_VECTOR && i < values->n_elements; i++)
        sinks += values->elements[i].kind == OPERAND_SINK;
    if (sinks && vector_bits(inst) != 256)
        return "only a 256-bit vector may leave out elements with '_'";
    return sinks && sinks == values->n_elements ? "nothing is stored: every element is '_'" : NULL;
}

static const char *check_bulk_store(const pvm_inst *inst)
{
    const pvm_operand *size = &inst->operand[1];
    return size->kind == OPERAND_IMM && (size->bits % 8 || size->bits > 16 << 20)
               ? "st.bulk writes a multiple of 8 bytes, at most 16777216"
               : NULL;
}

static const char *check_store(const parser *p, const pvm_inst *inst)
{
    const pvm_var *var = inst->operand[0].var;
    if (var && var->is_const_param)
        return "a kernel cannot write its parameters";
    if (inst->mod[S_SUB] == M_bulk)
        return check_bulk_store(inst);
    const char *broken = check_sinks(inst);
    return broken ? broken : check_access(p, inst);
}

static const char *check_atomic(const parser *p, const pvm_inst *inst)
{
    (void)p;
    if (!is_global(inst) && inst->mod[S_HINT])
        return "cache hints are for global memory";
    return vector_bits(inst) > 128 ? "this vector is wider than 128 bits" : NULL;
}

static const char *check_copy(const parser *p, const pvm_inst *inst)
{
    (void)p;
    if (inst->mod[S_MODE] != M_NONE)
        return NULL;
    uint64_t bytes = inst->operand[2].bits;
    if (inst->mod[S_CACHE] == M_cg)
        return bytes == 16 ? NULL : "cp.async.cg copies 16 bytes";
    return bytes == 4 || bytes == 8 || bytes == 16 ? NULL : "cp.async.ca copies 4, 8 or 16 bytes";
}

static const char *check_barrier(const parser *p, const pvm_inst *inst)
{
    int count = inst->n_results + 1;
    if (inst->mod[S_SUB] == M_cta && p->module->version < 78)
        return ".cta needs .version 7.8, on every sm_";
    if (inst->mod[S_SUB] == M_warp || inst->mod[S_SUB] == M_cluster || count >= inst->n_operands)
        return NULL;
    const pvm_operand *threads = &inst->operand[count];
    return threads->kind == OPERAND_IMM && threads->type == T_U32 && threads->bits % 32
               ? "the number of threads is a multiple of the warp's 32"
               : NULL;
}

static const char *check_mbarrier(const parser *p, const pvm_inst *inst)
{
    (void)p;
    bool sink = inst->n_results && inst->operand[0].kind == OPERAND_SINK;
    return is_shared_cluster(inst) && inst->n_results && !sink
               ? "with .shared::cluster the result must be '_'"
               : NULL;
}

static const char *check_setmaxnreg(const parser *p, const pvm_inst *inst)
{
    (void)p;
    return inst->operand[0].bits % 8 ? "the number of registers is a multiple of 8" : NULL;
}

static bool is_signed(pvm_type type)
{
    return type == T_S8 || type == T_S16 || type == T_S32 || type == T_S64;
}

static bool is_integer(pvm_type type)
{
    return is_signed(type) || type == T_U8 || type == T_U16 || type == T_U32 || type == T_U64;
}

/* .sat between integers must have an effect. */
static const char *check_cvt(const parser *p, const pvm_inst *inst)
{
    (void)p;
    pvm_type to = pvm_slot_type(inst, S_TYPE), from = pvm_slot_type(inst, S_TYPE2);
    if (inst->mod[S_SUB] || !inst->mod[S_SAT] || !is_integer(to) || !is_integer(from))
        return NULL;
    int wider = pvm_type_bits(to) - pvm_type_bits(from);
    bool holds_all = is_signed(to) == is_signed(from) ? wider >= 0 : is_signed(to) && wider > 0;
    return holds_all ? ".sat has no meaning here: the result can hold every value" : NULL;
}

static const char *check_alloca(const parser *p, const pvm_inst *inst)
{
    (void)p;
    uint64_t align = inst->n_operands > 2 ? inst->operand[2].bits : 8;
    return align == 0 || (align & (align - 1)) ? "an alignment is a power of two" : NULL;
}

static const char *check_tcgen05(const parser *p, const pvm_inst *inst)
{
    unsigned sub = inst->mod[S_SUB];
    if (sub == M_alloc || sub == M_dealloc) {
        const pvm_operand *columns = &inst->operand[1];
        uint64_t n = columns->bits;
        return columns->kind == OPERAND_IMM && (n < 32 || n > 512 || n & (n - 1))
                   ? "the number of columns is a power of two from 32 to 512"
                   : NULL;
    }
    bool scales_d = sub == M_mma && inst->operand[inst->n_operands - 1].type == T_U32;
    return scales_d && p->module->target.sm == 110 ? "scale-input-d needs a target of the family of sm_100"
                                                   : NULL;
}

static const struct {
    pvm_opcode op;
    const char *(*check)(const parser *p, const pvm_inst *inst);
} rules[] = {
    {OP_ld, check_access},         {OP_ldu, check_access},
    {OP_st, check_store},          {OP_atom, check_atomic},
    {OP_red, check_atomic},        {OP_cp, check_copy},
    {OP_bar, check_barrier},       {OP_barrier, check_barrier},
    {OP_mbarrier, check_mbarrier}, {OP_setmaxnreg, check_setmaxnreg},
    {OP_alloca, check_alloca},     {OP_cvt, check_cvt},
    {OP_tcgen05, check_tcgen05},
};

void check_rules(parser *p, const pvm_inst *inst)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const char *broken = rules[i].op == inst->op ? rules[i].check(p, inst) : NULL;
        if (broken)
            parse_fail_at(p, inst->line, inst->column,
                          strstr(broken, "sm_") ? PVM_ERROR_TARGET : PVM_ERROR_SYNTAX, "%s: %s",
                          pvm_opcode_name(inst->op), broken);
    }
}
