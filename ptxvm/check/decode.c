/* What each op of a code reads, writes and counts as: determined once, when the kernel is decoded. */
#include <stdlib.h>

#include "check.h"
#include "ptxvm/exec/vm.h"

/* ---- How undefined bytes propagate ---- */

static bool is_integer(pvm_type type)
{
    return (type >= T_B8 && type <= T_S16) || (type >= T_B32 && type <= T_S32) ||
           (type >= T_B64 && type <= T_S64);
}

static check_action action_of(const vm_op *op)
{
    const pvm_inst *inst = op->inst;
    switch (inst->op) {
    case OP_mov:
        return op->n_results > 1 || op->n_operands - op->n_results > 1 ? CHECK_PACK : CHECK_COPY;
    case OP_cvta:
        return op->lane.run ? CHECK_COPY : CHECK_COMPUTE;
    case OP_selp:
        return CHECK_SELECT;
    case OP_and:
    case OP_or:
    case OP_xor:
    case OP_not:
        return CHECK_BITS;
    case OP_lop3:
        return op->n_results == 1 ? CHECK_BITS : CHECK_COMPUTE;
    case OP_shl:
    case OP_shr:
        return CHECK_SHIFT;
    case OP_shf:
        return CHECK_FUNNEL;
    case OP_prmt:
        return CHECK_PERMUTE;
    case OP_bfe:
        return CHECK_EXTRACT;
    case OP_bfi:
        return CHECK_INSERT;
    case OP_cvt:
        return op->n_operands == 2 && is_integer(pvm_slot_type(inst, S_TYPE)) &&
                       is_integer(pvm_slot_type(inst, S_TYPE2)) && !inst->mod[S_SAT]
                   ? CHECK_CONVERT
                   : CHECK_COMPUTE;
    case OP_setp:
    case OP_testp:
        return CHECK_COMPARE;
    case OP_shfl:
        return CHECK_SHUFFLE;
    default:
        return CHECK_COMPUTE;
    }
}

static int stored_registers(const pvm_inst *inst)
{
    return inst->operand[1].kind == OPERAND_VECTOR ? inst->operand[1].n_elements : 1;
}

/* Operands that are only moved: memory.c, calls.c and ops_matrix.c propagate them. */
static bool is_data(const vm_op *op, int i)
{
    switch (op->inst->op) {
    case OP_st:
        return op->inst->mod[S_SUB] != M_async && i > 0;
    case OP_shfl:
    case OP_movmatrix:
        return i == op->n_results;
    case OP_stmatrix:
        return i > 0;
    case OP_wmma: /* the registers of a store, not its stride */
        return op->inst->mod[S_SUB] == M_store && i > 0 && i <= stored_registers(op->inst);
    case OP_call:
        return i < op->n_operands - (op->inst->call->target.kind != OPERAND_FUNCTION);
    case OP_ret:
        return true;
    default:
        return false;
    }
}

/* ---- Classes ---- */

static ptxvm_class class_of_type(pvm_type type)
{
    switch (type) {
    case T_F32:
    case T_F32X2:
    case T_TF32:
        return PTXVM_CLASS_F32;
    case T_F64:
        return PTXVM_CLASS_F64;
    case T_F16:
    case T_F16X2:
    case T_BF16:
    case T_BF16X2:
        return PTXVM_CLASS_F16;
    default:
        return PTXVM_CLASS_INTEGER;
    }
}

static const struct {
    pvm_opcode op;
    ptxvm_class class_of;
} classes[] = {
    {OP_cvt, PTXVM_CLASS_CONVERSION},
    {OP_ld, PTXVM_CLASS_MEMORY},
    {OP_ldu, PTXVM_CLASS_MEMORY},
    {OP_st, PTXVM_CLASS_MEMORY},
    {OP_atom, PTXVM_CLASS_MEMORY},
    {OP_red, PTXVM_CLASS_MEMORY},
    {OP_cp, PTXVM_CLASS_MEMORY},
    {OP_prefetch, PTXVM_CLASS_MEMORY},
    {OP_prefetchu, PTXVM_CLASS_MEMORY},
    {OP_ldmatrix, PTXVM_CLASS_MEMORY},
    {OP_stmatrix, PTXVM_CLASS_MEMORY},
    {OP_membar, PTXVM_CLASS_MEMORY},
    {OP_fence, PTXVM_CLASS_MEMORY},
    {OP_multimem, PTXVM_CLASS_MEMORY},
    {OP_discard, PTXVM_CLASS_MEMORY},
    {OP_applypriority, PTXVM_CLASS_MEMORY},
    {OP_bra, PTXVM_CLASS_CONTROL},
    {OP_brx, PTXVM_CLASS_CONTROL},
    {OP_call, PTXVM_CLASS_CONTROL},
    {OP_ret, PTXVM_CLASS_CONTROL},
    {OP_exit, PTXVM_CLASS_CONTROL},
    {OP_bar, PTXVM_CLASS_CONTROL},
    {OP_barrier, PTXVM_CLASS_CONTROL},
    {OP_mbarrier, PTXVM_CLASS_CONTROL},
    {OP_trap, PTXVM_CLASS_CONTROL},
    {OP_shfl, PTXVM_CLASS_WARP},
    {OP_vote, PTXVM_CLASS_WARP},
    {OP_match, PTXVM_CLASS_WARP},
    {OP_redux, PTXVM_CLASS_WARP},
    {OP_activemask, PTXVM_CLASS_WARP},
    {OP_elect, PTXVM_CLASS_WARP},
    {OP_mma, PTXVM_CLASS_TENSOR},
    {OP_movmatrix, PTXVM_CLASS_TENSOR},
    {OP_mov, PTXVM_CLASS_OTHER},
    {OP_cvta, PTXVM_CLASS_OTHER},
    {OP_isspacep, PTXVM_CLASS_OTHER},
    {OP_createpolicy, PTXVM_CLASS_OTHER},
    {OP_nanosleep, PTXVM_CLASS_OTHER},
    {OP_alloca, PTXVM_CLASS_OTHER},
    {OP_stacksave, PTXVM_CLASS_OTHER},
    {OP_stackrestore, PTXVM_CLASS_OTHER},
    {OP_pmevent, PTXVM_CLASS_OTHER},
    {OP_griddepcontrol, PTXVM_CLASS_OTHER},
    {OP_setmaxnreg, PTXVM_CLASS_OTHER},
    {OP_brkpt, PTXVM_CLASS_OTHER},
};

static ptxvm_class class_of_tcgen05(unsigned sub)
{
    return sub == M_mma                                                  ? PTXVM_CLASS_TENSOR
           : sub == M_ld || sub == M_st || sub == M_cp || sub == M_shift ? PTXVM_CLASS_MEMORY
                                                                         : PTXVM_CLASS_CONTROL;
}

static ptxvm_class class_of(const pvm_inst *inst)
{
    if (inst->op == OP_wmma)
        return inst->mod[S_SUB] == M_mma ? PTXVM_CLASS_TENSOR : PTXVM_CLASS_MEMORY;
    if (inst->op == OP_tcgen05)
        return class_of_tcgen05(inst->mod[S_SUB]);
    if (inst->op == OP_wgmma)
        return inst->mod[S_SUB] == M_mma_async ? PTXVM_CLASS_TENSOR : PTXVM_CLASS_CONTROL;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].op == inst->op)
            return classes[i].class_of;
    pvm_type type = pvm_slot_type(inst, S_TYPE);
    return class_of_type(inst->op == OP_set ? pvm_slot_type(inst, S_TYPE2) : type);
}

static bool is_event(const vm_op *op)
{
    switch (op->inst->op) {
    case OP_membar:
    case OP_fence:
    case OP_mbarrier:
    case OP_atom:
    case OP_red:
        return true;
    case OP_ld:
    case OP_st:
    case OP_tensormap:
        return op->inst->mod[S_SEM] != M_NONE;
    default:
        return op->flags & OPF_MEMBERS;
    }
}

/* ---- Registers ---- */

typedef struct numbering {
    int32_t *of_slot; /* by slot / 4: number + 1 */
    int32_t n;
    const vm_code *code;
} numbering;

static int32_t number_of(numbering *all, vm_slot slot)
{
    if (slot == VM_NO_SLOT || slot < (vm_slot)all->code->constant_bytes || slot == all->code->local_base)
        return -1;
    int32_t *number = &all->of_slot[slot / 4];
    if (!*number)
        *number = ++all->n;
    return *number - 1;
}

static bool reads_carry(const pvm_inst *inst)
{
    return inst->op == OP_addc || inst->op == OP_subc || inst->op == OP_madc;
}

static bool describe_op(numbering *all, vm_code *code, const vm_op *op, check_op *info)
{
    int32_t *ids = vm_code_alloc(code, (size_t)(2 * op->n_operands + 4) * sizeof *ids), n = 0;
    if (!ids)
        return false;
    int32_t *uses = ids + op->n_operands;
    info->id = ids;
    info->uses = uses;
    info->guard = number_of(all, op->guard);
    for (int i = 0; i < op->n_operands; i++)
        ids[i] = number_of(all, op->operand[i].slot);
    for (int i = 0; i < op->n_operands; i++)
        if ((i >= op->n_results || op->operand[i].is_address) && ids[i] >= 0 && !is_data(op, i))
            uses[n++] = ids[i];
    if (op->lane.run && reads_carry(op->inst))
        uses[n++] = number_of(all, (vm_slot)op->slots[op->n_d + op->n_operands - op->n_results]);
    info->n_uses = (uint8_t)n;
    for (int i = 0; i < op->n_results; i++)
        if (ids[i] >= 0 && !op->operand[i].is_address && op->inst->op != OP_call &&
            op->inst->op != OP_wgmma && op->inst->op != OP_tcgen05) /* flight.c: these write them later */
            uses[n++] = ids[i];
    if (op->lane.run && op->n_d > op->n_results)
        uses[n++] = number_of(all, (vm_slot)op->slots[op->n_results]);
    info->n_defs = (uint8_t)(n - info->n_uses);
    return true;
}

bool vm_check_decode(vm_code *code)
{
    const ptxvm *vm = code->kernel->module->vm;
    const pvm_function *f = code->function;
    if (!(vm->config.checks & ~(unsigned)PTXVM_CHECK_LEAK) && !vm->config.counters)
        return true;
    numbering all = {.of_slot = calloc(code->frame_bytes / 4 + 1, sizeof(int32_t)), .code = code};
    check_code *check = vm_code_alloc(code, sizeof *check);
    check_op *ops = vm_code_alloc(code, (size_t)code->n_ops * sizeof *ops);
    int32_t *numbers = vm_code_alloc(code, (size_t)(f->n_regs + 1) * sizeof *numbers);
    bool ok = all.of_slot && check && ops && numbers;
    for (int i = 0; i < code->n_ops && ok; i++) {
        const vm_op *op = &code->ops[i];
        ops[i].action = (uint8_t)action_of(op);
        ops[i].class_of = (uint8_t)class_of(op->inst);
        ops[i].counted = f->n_insts && op->inst >= f->insts && op->inst < f->insts + f->n_insts;
        ops[i].late = op->kind == VM_KIND_WAIT || op->inst->op == OP_bar || op->inst->op == OP_barrier;
        ops[i].event = is_event(op);
        ok = describe_op(&all, code, op, &ops[i]);
    }
    for (int i = 0; i < f->n_regs && ok; i++) /* parameters may be registers that no op uses */
        numbers[i] = number_of(&all, code->reg_slot[i]);
    if (ok)
        *check = (check_code){.ops = ops, .n_registers = all.n, .of_register = numbers};
    code->check = ok ? check : NULL;
    free(all.of_slot);
    return ok;
}
