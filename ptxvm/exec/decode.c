/* Decodes a kernel: for each function that it can call, instructions become ops with resolved operands and an
 * exec or lane function. */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

#include "barrier.h"
#include "ptxvm/exec/hooks.h"
#include "ops.h"
#include "warp.h"

void *vm_code_alloc(vm_code *code, size_t bytes)
{
    return vm_pool_alloc(code->pool, bytes);
}

/* ---- Whether blocks may run in parallel ---- */

static bool reaches_other_blocks(const pvm_inst *inst)
{
    unsigned space = inst->mod[S_SPACE];
    return space == M_NONE || space == M_global;
}

static bool is_integer(pvm_type type)
{
    switch (type) {
    case T_B32:
    case T_B64:
    case T_U32:
    case T_U64:
    case T_S32:
    case T_S64:
        return true;
    default:
        return false;
    }
}

/* Integer red commutes, inc and dec only with equal bounds; but not with a red of another kind on the same
 * word. */
static bool is_red_dependent(vm_kernel *kernel, const pvm_inst *inst)
{
    unsigned operation = inst->mod[S_OP];
    if (!is_integer(pvm_slot_type(inst, S_TYPE)) || inst->mod[S_VEC] || operation == M_inc ||
        operation == M_dec)
        return true;
    if (!kernel->first_red)
        kernel->first_red = inst;
    return kernel->first_red->mod[S_OP] != operation || kernel->first_red->mod[S_TYPE] != inst->mod[S_TYPE];
}

/* Whether an instruction can observe, or make visible, the order in which blocks ran. ld.cv reads memory
 * again each time, as in a loop that waits for another block. */
static bool is_order_dependent(vm_kernel *kernel, const pvm_inst *inst)
{
    switch (inst->op) {
    case OP_atom:
        return reaches_other_blocks(inst);
    case OP_red:
        return reaches_other_blocks(inst) && is_red_dependent(kernel, inst);
    case OP_ld:
        return reaches_other_blocks(inst) && vm_ld_watches(inst);
    case OP_cp:
        return inst->mod[S_SUB] == M_reduce && reaches_other_blocks(inst) && is_red_dependent(kernel, inst);
    case OP_clusterlaunchcontrol:
        return inst->mod[S_SUB] == M_try_cancel;
    case OP_multimem:
        return true;
    default:
        return false;
    }
}

/* ---- Lane instructions ---- */

static bool reads_carry(const pvm_inst *inst)
{
    return inst->op == OP_addc || inst->op == OP_subc || inst->op == OP_madc;
}

static bool needs_conversion(const vm_op *op)
{
    for (int i = 0; i < op->n_operands; i++) {
        const vm_operand *operand = &op->operand[i];
        if (operand->negated || (!operand->is_sink && operand->width != operand->op_width))
            return true;
    }
    return false;
}

static bool decode_lane(vm_op *op, lane_op lane)
{
    op->lane = lane;
    op->n_d = (uint8_t)(op->n_results + (op->inst->mod[S_CC] == M_cc));
    int pointers = op->n_d + op->n_operands - op->n_results + reads_carry(op->inst);
    if (pointers > VM_LANE_SLOTS)
        return false;
    if (lane.inexact)
        op->flags |= OPF_INEXACT;
    op->kind = lane.inexact || lane.rounding != LANES_NEAREST ? VM_KIND_LANE_MODE : VM_KIND_LANE;
    if (needs_conversion(op)) {
        op->kind = VM_KIND_EXEC;
        op->flags |= OPF_MASKED;
        op->exec = vm_exec_lane_converted;
    }
    return true;
}

/* Once the layout is known: the offsets that the fast path adds to the frame. */
static void place_lane_slots(const vm_decoder *decoder, vm_op *op)
{
    int at = 0;
    for (int i = 0; i < op->n_operands; i++) {
        if (i == op->n_results && op->n_d > op->n_results)
            op->slots[at++] = (uint32_t)decoder->carry;
        op->slots[at++] =
            (uint32_t)(op->operand[i].slot == VM_NO_SLOT ? decoder->trash : op->operand[i].slot);
    }
    if (reads_carry(op->inst))
        op->slots[at++] = (uint32_t)decoder->carry;
    while (at < VM_LANE_SLOTS)
        op->slots[at++] = (uint32_t)decoder->trash;
}

/* ---- Tensor cores ---- */

static bool decode_tensor(vm_decoder *decoder, vm_op *op)
{
    const pvm_inst *inst = op->inst;
    vm_tensor_site *site = vm_pool_alloc(decoder->kernel->pool, sizeof *site);
    if (!site || !tensor_find(inst, decoder->module->vm->device, &site->op))
        return false;
    for (int i = 0; i < inst->n_operands; i++) {
        const pvm_operand *operand = &inst->operand[i];
        site->n[i < 4 ? i : 4] += operand->kind == OPERAND_VECTOR ? operand->n_elements : 1;
    }
    op->extra = site;
    op->exec = inst->op == OP_wgmma ? vm_exec_wgmma : vm_exec_tensor;
    op->kind = VM_KIND_WAIT;
    op->flags |= OPF_CONVERGED | (inst->op == OP_wgmma ? OPF_ONE_PLACE : 0);
    decoder->kernel->has_wgmma |= inst->op == OP_wgmma;
    if (site->op.standing == TENSOR_PUBLISHED || site->op.standing == TENSOR_ASSUMED)
        op->flags |= OPF_INEXACT;
    return true;
}

/* What its instruction descriptor will say is not known yet; the report gets the row of the usual types. */
static bool decode_tcgen05(vm_decoder *decoder, vm_op *op)
{
    static const struct {
        unsigned kind;
        pvm_type type, result;
    } usual[] = {{M_kind__f16, T_F16, T_F32},     {M_kind__tf32, T_TF32, T_F32},
                 {M_kind__f8f6f4, T_E4M3, T_F32}, {M_kind__mxf8f6f4, T_E4M3, T_F32},
                 {M_kind__mxf4, T_E2M1, T_F32},   {M_kind__mxf4nvf4, T_E2M1, T_F32},
                 {M_kind__i8, T_S8, T_S32}};
    vm_tensor_site *site = vm_pool_alloc(decoder->kernel->pool, sizeof *site);
    size_t i = 0;
    while (usual[i].kind != op->inst->mod[S_KIND])
        i++;
    const tensor_tcgen05 what = {.kind = usual[i].kind,
                                 .dtype = usual[i].result,
                                 .atype = usual[i].type,
                                 .btype = usual[i].type,
                                 .n = 8};
    if (!site || !tensor_find_tcgen05(&what, decoder->module->vm->device, &site->op) || !vm_ops_find(op))
        return false;
    op->extra = site;
    op->kind = VM_KIND_EXEC;
    op->flags |= OPF_INEXACT;
    return true;
}

/* ---- Control flow ---- */

static bool decode_branch(vm_op *op)
{
    op->kind = VM_KIND_BRANCH;
    op->target = (int32_t)op->inst->operand[0].bits; /* an instruction index; made an op index later */
    return true;
}

static vm_branch_table *branch_table(vm_decoder *decoder, const pvm_targets *list)
{
    vm_branch_table **table = &decoder->tables[list->number];
    if (*table)
        return *table;
    *table = vm_pool_alloc(decoder->kernel->pool, sizeof **table + (size_t)list->count * sizeof(int32_t));
    if (!*table)
        return NULL;
    (*table)->next = decoder->code->tables;
    decoder->code->tables = *table;
    (*table)->n = list->count;
    for (int i = 0; i < list->count; i++)
        (*table)->target[i] = list->items[i];
    return *table;
}

static bool decode_brx(vm_decoder *decoder, vm_op *op)
{
    op->extra = branch_table(decoder, op->inst->targets);
    if (!op->extra)
        return false;
    op->kind = VM_KIND_CONTROL;
    op->exec = vm_exec_brx;
    return true;
}

static bool decode_call(vm_decoder *decoder, vm_op *op)
{
    const pvm_call *call = op->inst->call;
    const pvm_function *body = NULL;
    op->kind = VM_KIND_CONTROL;
    op->exec = vm_exec_call;
    vm_call_site *site = vm_pool_alloc(decoder->kernel->pool, sizeof *site);
    if (!site)
        return false;
    op->extra = site;
    if (call->target.kind != OPERAND_FUNCTION)
        return true;
    body = vm_find_body(call->target.function);
    if (body) {
        site->callee = vm_code_of(decoder->kernel, body);
        return true;
    }
    op->kind = VM_KIND_EXEC;
    op->exec = vm_builtin_find(call->target.function->name);
    decoder->kernel->serial |= vm_builtin_is_serial(call->target.function->name);
    if (op->exec)
        return true;
    return vm_decode_fail(decoder, PTXVM_ERROR_PTX, "line %d: %s is called but not defined", op->inst->line,
                          call->target.function->name);
}

static bool decode_barrier(vm_op *op)
{
    op->kind = VM_KIND_EXEC;
    op->exec = vm_exec_barrier;
    if (op->inst->mod[S_SUB] == M_warp) {
        op->kind = VM_KIND_WAIT;
        op->exec = vm_exec_nothing;
        op->flags |= OPF_MEMBERS;
        op->members = 0;
    }
    return true;
}

/* ---- Instructions ---- */

static bool choose_exec(vm_decoder *decoder, vm_op *op)
{
    const pvm_inst *inst = op->inst;
    switch (inst->op) {
    case OP_bra:
        return decode_branch(op);
    case OP_brx:
        return decode_brx(decoder, op);
    case OP_call:
        return decode_call(decoder, op);
    case OP_ret:
    case OP_exit:
        op->kind = VM_KIND_CONTROL;
        op->exec = inst->op == OP_ret ? vm_exec_ret : vm_exec_exit;
        return true;
    case OP_bar:
    case OP_barrier:
        return decode_barrier(op);
    case OP_mov:
        if (!vm_decode_mov(decoder, op))
            return false;
        return op->kind != VM_KIND_LANE || decode_lane(op, op->lane);
    case OP_cvta:
        if (vm_decode_cvta(op))
            return decode_lane(op, op->lane);
        break;
    case OP_mma:
        return decode_tensor(decoder, op);
    case OP_wmma:
        if (inst->mod[S_SUB] == M_mma)
            return decode_tensor(decoder, op);
        break;
    case OP_tcgen05:
        if (inst->mod[S_SUB] == M_mma)
            return decode_tcgen05(decoder, op);
        break;
    case OP_wgmma:
        if (inst->mod[S_SUB] == M_mma_async)
            return decode_tensor(decoder, op);
        break;
    default:
        break;
    }
    lane_op lane = lanes_find(inst, decoder->module->vm->level);
    if (lane.run)
        return decode_lane(op, lane);
    op->kind = VM_KIND_EXEC;
    if (!vm_ops_find(op))
        return false;
    if (op->flags & (OPF_MEMBERS | OPF_CONVERGED))
        op->kind = VM_KIND_WAIT;
    return true;
}

static bool decode_inst(vm_decoder *decoder, const pvm_inst *inst)
{
    vm_op *op =
        inst->op == OP_call ? vm_decode_call_operands(decoder, inst) : vm_decode_operands(decoder, inst);
    if (op && choose_exec(decoder, op)) {
        decoder->kernel->serial |= is_order_dependent(decoder->kernel, inst);
        decoder->kernel->has_tcgen05 |= inst->op == OP_tcgen05;
        decoder->kernel->triggers |= inst->op == OP_griddepcontrol && inst->mod[S_SUB] == M_launch_dependents;
        return true;
    }
    if (decoder->failed)
        return false;
    return vm_decode_fail(decoder, PTXVM_ERROR_UNSUPPORTED, "line %d: ptxvm does not execute this form of %s",
                          inst->line, pvm_opcode_name(inst->op));
}

/* A function ends with ret, even if the text has none. */
static bool decode_end(vm_decoder *decoder)
{
    const pvm_function *f = decoder->function;
    pvm_inst *ret = vm_pool_alloc(decoder->kernel->pool, sizeof *ret);
    if (!ret)
        return false;
    *ret =
        (pvm_inst){.op = OP_ret, .guard = -1, .line = f->n_insts ? f->insts[f->n_insts - 1].line : f->line};
    return decode_inst(decoder, ret);
}

/* Branch targets from instruction to op indices. op_of[n_insts] is the final ret. */
static void resolve_targets(vm_code *code, const int *op_of)
{
    for (int i = 0; i < code->n_ops; i++) {
        vm_op *op = &code->ops[i];
        if (op->kind == VM_KIND_BRANCH)
            op->target = op_of[op->target];
    }
    for (vm_branch_table *table = code->tables; table; table = table->next) {
        table->lowest = INT32_MAX;
        for (int t = 0; t < table->n; t++) {
            table->target[t] = op_of[table->target[t]];
            table->lowest = table->target[t] < table->lowest ? table->target[t] : table->lowest;
        }
    }
}

static bool decode_insts(vm_decoder *decoder)
{
    const pvm_function *f = decoder->function;
    int *op_of = calloc((size_t)f->n_insts + 1, sizeof *op_of);
    bool ok = op_of != NULL;
    for (int i = 0; i < f->n_insts && ok; i++) {
        op_of[i] = decoder->code->n_ops;
        ok = decode_inst(decoder, &f->insts[i]);
    }
    if (ok) {
        op_of[f->n_insts] = decoder->code->n_ops;
        ok = decode_end(decoder);
    }
    if (ok)
        resolve_targets(decoder->code, op_of);
    free(op_of);
    return ok;
}

static bool finish_code(vm_decoder *decoder)
{
    vm_code *code = decoder->code;
    if (!vm_decode_layout(decoder))
        return false;
    for (int i = 0; i < code->n_ops; i++) {
        vm_op *op = &code->ops[i];
        op->site = decoder->kernel->n_sites++;
        if (op->lane.run)
            place_lane_slots(decoder, op);
    }
    code->inputs_at = decoder->inputs_at;
    code->returns_at = decoder->returns_at;
    return vm_cfg(code) && vm_check_decode(code);
}

static bool decode_function(vm_kernel *kernel, vm_code *code)
{
    vm_decoder decoder = {
        .module = kernel->module, .kernel = kernel, .code = code, .function = code->function};
    bool ok = vm_decode_begin(&decoder) && decode_insts(&decoder) && finish_code(&decoder);
    vm_decode_end(&decoder);
    return ok;
}

static bool list_sites(vm_kernel *kernel)
{
    kernel->sites = vm_pool_alloc(kernel->pool, (size_t)(kernel->n_sites + 1) * sizeof *kernel->sites);
    for (int i = 0; i < kernel->n_codes && kernel->sites; i++)
        for (int k = 0; k < kernel->codes[i]->n_ops; k++)
            kernel->sites[kernel->codes[i]->ops[k].site] = &kernel->codes[i]->ops[k];
    return kernel->sites != NULL;
}

/* Functions are decoded once per kernel that can call them: possibly many kernels times many functions. */
static bool may_decode(vm_kernel *kernel)
{
    ptxvm_module *module = kernel->module;
    uint64_t n = 0, limit = module->vm->config.limits[PTXVM_LIMIT_DECODED];
    for (int i = 0; i < kernel->n_codes; i++)
        n += (uint64_t)kernel->codes[i]->function->n_insts + 1;
    if (n <= limit - module->n_decoded) {
        module->n_decoded += n;
        return true;
    }
    kernel->status = vm_error(module->vm, PTXVM_ERROR_UNSUPPORTED, "%s: more than %llu %s: the limit is %s",
                              kernel->function->name, (unsigned long long)limit,
                              ptxvm_limit_what(PTXVM_LIMIT_DECODED), ptxvm_limit_name(PTXVM_LIMIT_DECODED));
    return false;
}

static bool decode_all(vm_kernel *kernel)
{
    if (!vm_reach(kernel) || !may_decode(kernel))
        return false;
    for (int i = 0; i < kernel->n_codes; i++)
        if (!decode_function(kernel, kernel->codes[i]))
            return false;
    return list_sites(kernel) && vm_report_contractable(kernel);
}

vm_kernel *vm_kernel_decode(ptxvm_module *module, const pvm_function *function, ptxvm_status *status)
{
    vm_pool *pool = vm_pool_create();
    vm_kernel *kernel = pool ? vm_pool_alloc(pool, sizeof *kernel) : NULL;
    *status = PTXVM_OK;
    if (kernel) {
        *kernel = (vm_kernel){.module = module, .function = function, .pool = pool};
        if (decode_all(kernel))
            return kernel;
        *status = kernel->status;
        vm_kernel_free(kernel);
    } else
        vm_pool_destroy(pool);
    if (!*status)
        *status = vm_error(module->vm, PTXVM_ERROR_MEMORY, "no memory left to decode %s", function->name);
    return NULL;
}

void vm_kernel_free(vm_kernel *kernel)
{
    if (!kernel)
        return;
    for (int i = 0; i < kernel->n_codes; i++) {
        free(kernel->codes[i]->ops);
        free(kernel->codes[i]->constants);
        free(kernel->codes[i]->shared_constants);
    }
    vm_pool_destroy(kernel->pool);
}
