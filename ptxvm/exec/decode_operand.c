/* Operands become slots: registers and constants in a frame, addresses resolved. */
#include "decode.h"
#include "ptxvm/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES_64 ((uint32_t)(WARP * sizeof(uint64_t)))

int vm_type_width(pvm_type type)
{
    int bits = pvm_type_bits(type);
    if (type == T_PRED)
        return 0;
    if (type == T_NONE)
        return 4;
    return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : 16;
}

bool vm_decode_fail(vm_decoder *decoder, ptxvm_status status, const char *format, ...)
{
    ptxvm *vm = decoder->module->vm;
    va_list args;
    va_start(args, format);
    vsnprintf(vm->error, sizeof vm->error, format, args);
    va_end(args);
    pvm_make_printable(vm->error);
    decoder->kernel->status = status;
    decoder->failed = true;
    return false;
}

static uint32_t register_bytes(int width)
{
    return width ? (uint32_t)(width * WARP) : 4;
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

/* Whether the frame may grow by `bytes`. The limit keeps all offsets in a frame far below 2^31. */
static bool may_grow(vm_decoder *decoder, uint64_t bytes)
{
    uint64_t limit = decoder->module->vm->config.limits[PTXVM_LIMIT_REGISTERS];
    if (decoder->register_bytes + decoder->code->constant_bytes + bytes <= limit)
        return true;
    return vm_decode_fail(decoder, PTXVM_ERROR_UNSUPPORTED, "%s has more than %llu %s: the limit is %s",
                          decoder->function->name, (unsigned long long)limit,
                          ptxvm_limit_what(PTXVM_LIMIT_REGISTERS), ptxvm_limit_name(PTXVM_LIMIT_REGISTERS));
}

vm_slot vm_decode_temporary(vm_decoder *decoder, int width)
{
    uint64_t at = width ? align_up(decoder->register_bytes, 64) : decoder->register_bytes;
    if (decoder->failed || !may_grow(decoder, at - decoder->register_bytes + register_bytes(width)))
        return 0;
    decoder->register_bytes = at + register_bytes(width);
    return (vm_slot)at;
}

static uint64_t extent(pvm_var *const *vars, int n)
{
    uint64_t end = 0;
    for (int i = 0; i < n; i++)
        if (vars[i]->space != SPACE_REG && vars[i]->offset + vars[i]->size > end)
            end = vars[i]->offset + vars[i]->size;
    return end;
}

static uint64_t largest_align(pvm_var *const *vars, int n, uint64_t least)
{
    for (int i = 0; i < n; i++)
        if (vars[i]->space != SPACE_SHARED && vars[i]->align > least)
            least = vars[i]->align;
    return least;
}

/* Local memory of an activation: .local variables, then parameters, return values, and the .param variables
 * of its calls. */
static bool layout_local(vm_decoder *decoder)
{
    const pvm_function *f = decoder->function;
    uint64_t align = largest_align(f->returns, f->n_returns, largest_align(f->locals, f->n_locals, 16));
    align = f->is_entry ? align : largest_align(f->params, f->n_params, align);
    decoder->inputs_at = align_up(f->local_bytes, align);
    uint64_t inputs = f->is_entry ? 0 : extent(f->params, f->n_params);
    decoder->returns_at = align_up(decoder->inputs_at + inputs, align);
    decoder->calls_at = align_up(decoder->returns_at + extent(f->returns, f->n_returns), align);
    uint64_t bytes = align_up(decoder->calls_at + f->call_param_bytes, align);
    decoder->code->local_bytes = (uint32_t)bytes;
    decoder->code->local_align = (uint32_t)align;
    return bytes < VM_LOCAL_SIZE;
}

uint64_t vm_local_bytes(const pvm_function *function)
{
    vm_code code = {.function = function};
    vm_decoder decoder = {.function = function, .code = &code};
    return layout_local(&decoder) ? code.local_bytes : 0;
}

/* Predicates are packed together; wider registers are each at a multiple of 64. */
bool vm_decode_begin(vm_decoder *decoder)
{
    const pvm_function *f = decoder->function;
    decoder->reg_slot = calloc((size_t)f->n_regs + 1, sizeof(vm_slot));
    decoder->tables = calloc((size_t)f->n_target_lists + 1, sizeof *decoder->tables);
    if (!decoder->reg_slot || !decoder->tables)
        return false;
    decoder->local_base = vm_decode_temporary(decoder, 8);
    decoder->trash = vm_decode_temporary(decoder, 16);
    decoder->carry = vm_decode_temporary(decoder, 0);
    for (int i = 0; i < f->n_regs; i++)
        if (f->regs[i].type == T_PRED)
            decoder->reg_slot[i] = vm_decode_temporary(decoder, 0);
    for (int i = 0; i < f->n_regs; i++)
        if (f->regs[i].type != T_PRED)
            decoder->reg_slot[i] = vm_decode_temporary(decoder, vm_type_width(f->regs[i].type));
    decoder->code->local_base = decoder->local_base;
    if (decoder->failed || layout_local(decoder))
        return !decoder->failed;
    return vm_decode_fail(decoder, PTXVM_ERROR_UNSUPPORTED,
                          "%s needs more local memory than a thread can have", f->name);
}

void vm_decode_end(vm_decoder *decoder)
{
    free(decoder->reg_slot);
    free(decoder->tables);
    free(decoder->constant_table);
    free(decoder->constant_width);
}

/* ---- Constants ---- */

enum { SHARED_CONSTANT = 128 }; /* the address of a shared variable */

static uint32_t hash_constant(uint64_t bits, uint64_t bits_hi, int kind)
{
    return pvm_hash_pair(bits, bits_hi) + (uint32_t)kind;
}

static bool grow_table(vm_decoder *decoder)
{
    uint32_t size = decoder->table_size ? 2 * decoder->table_size : 64;
    int32_t *table = calloc(size, sizeof *table);
    uint8_t *widths = calloc(size, 1);
    if (!table || !widths) {
        free(table);
        free(widths);
        return false;
    }
    for (uint32_t i = 0; i < decoder->table_size; i++) {
        if (!decoder->constant_table[i])
            continue;
        uint64_t value[2] = {0, 0};
        int kind = decoder->constant_width[i], width = kind & ~SHARED_CONSTANT;
        memcpy(value, decoder->code->constants + decoder->constant_table[i] - 1, width ? (size_t)width : 4);
        uint32_t at = hash_constant(value[0], value[1], kind) & (size - 1);
        while (table[at])
            at = (at + 1) & (size - 1);
        table[at] = decoder->constant_table[i];
        widths[at] = decoder->constant_width[i];
    }
    free(decoder->constant_table);
    free(decoder->constant_width);
    decoder->constant_table = table;
    decoder->constant_width = widths;
    decoder->table_size = size;
    return true;
}

/* Appends 32 equal lanes to the constants, and returns their offset. */
static bool append_constant(vm_decoder *decoder, const uint64_t value[2], int width, uint32_t *offset)
{
    vm_code *code = decoder->code;
    uint32_t bytes = (uint32_t)align_up(register_bytes(width), 64);
    if (!may_grow(decoder, bytes))
        return false;
    if (code->constant_bytes + bytes > decoder->constant_capacity) {
        uint64_t capacity = 2 * decoder->constant_capacity + 4096;
        uint8_t *constants = realloc(code->constants, capacity);
        if (!constants)
            return false;
        code->constants = constants;
        decoder->constant_capacity = capacity;
    }
    uint8_t *to = code->constants + code->constant_bytes;
    memset(to, 0, bytes);
    if (width == 0)
        memcpy(to, value, 4);
    for (int lane = 0; lane < WARP && width; lane++)
        memcpy(to + lane * width, value, (size_t)width);
    *offset = code->constant_bytes;
    code->constant_bytes += bytes;
    return true;
}

/* Notes that the rank of the block has to be added to a constant (vm_frame_new). */
static bool note_shared(vm_decoder *decoder, uint32_t offset, int width)
{
    vm_code *code = decoder->code;
    if ((code->n_shared_constants & (code->n_shared_constants - 1)) == 0) {
        int capacity = code->n_shared_constants ? 2 * code->n_shared_constants : 1;
        vm_shared_constant *grown =
            realloc(code->shared_constants, (size_t)capacity * sizeof *code->shared_constants);
        if (!grown)
            return false;
        code->shared_constants = grown;
    }
    code->shared_constants[code->n_shared_constants++] = (vm_shared_constant){offset, width};
    return true;
}

/* `kind` is the width, or that and SHARED_CONSTANT: equal constants of one kind are one. */
static vm_slot constant_of(vm_decoder *decoder, uint64_t bits, uint64_t bits_hi, int kind)
{
    int width = kind & ~SHARED_CONSTANT;
    uint64_t value[2] = {bits, width == 16 ? bits_hi : 0};
    if (width == 0)
        value[0] = bits ? UINT32_MAX : 0;
    else if (width < 8)
        value[0] &= (UINT64_C(1) << 8 * width) - 1;
    if (2 * (decoder->n_constants + 1) > decoder->table_size && !grow_table(decoder)) {
        decoder->failed = true;
        return 0;
    }
    uint32_t mask = decoder->table_size - 1, at = hash_constant(value[0], value[1], kind) & mask, offset;
    for (; decoder->constant_table[at]; at = (at + 1) & mask) {
        offset = (uint32_t)decoder->constant_table[at] - 1;
        if (decoder->constant_width[at] == kind &&
            memcmp(decoder->code->constants + offset, value, width ? (size_t)width : 4) == 0)
            return -2 - (vm_slot)offset;
    }
    if (!append_constant(decoder, value, width, &offset) ||
        (kind != width && !note_shared(decoder, offset, width))) {
        decoder->failed = true;
        return 0;
    }
    decoder->constant_table[at] = (int32_t)offset + 1;
    decoder->constant_width[at] = (uint8_t)kind;
    decoder->n_constants++;
    return -2 - (vm_slot)offset;
}

vm_slot vm_decode_constant(vm_decoder *decoder, uint64_t bits, uint64_t bits_hi, int width)
{
    return constant_of(decoder, bits, bits_hi, width);
}

/* ---- Symbols ---- */

static bool is_among(const pvm_var *var, pvm_var *const *vars, int n)
{
    return var->index >= 0 && var->index < n && vars[var->index] == var;
}

bool vm_local_offset(const vm_decoder *decoder, const pvm_var *var, uint64_t *offset)
{
    const pvm_function *f = decoder->function;
    if (var->space == SPACE_LOCAL)
        *offset = var->offset;
    else if (var->space != SPACE_PARAM || (f->is_entry && is_among(var, f->params, f->n_params)))
        return false;
    else if (is_among(var, f->params, f->n_params))
        *offset = decoder->inputs_at + var->offset;
    else if (is_among(var, f->returns, f->n_returns))
        *offset = decoder->returns_at + var->offset;
    else
        *offset = decoder->calls_at + var->offset;
    return true;
}

/* The address of a variable that is the same for all lanes. */
static uint64_t var_address(vm_decoder *decoder, const pvm_var *var)
{
    const pvm_module *ptx = decoder->module->ptx;
    bool is_module_var = var->index >= 0 && var->index < ptx->n_vars && ptx->vars[var->index] == var;
    if (var->space == SPACE_PARAM)
        return var->offset;
    if (var->space == SPACE_SHARED)
        return is_module_var ? vm_shared_offset(decoder->kernel, var)
                             : decoder->code->shared_at + var->offset;
    if (is_module_var && decoder->module->address[var->index])
        return decoder->module->address[var->index];
    vm_decode_fail(decoder, PTXVM_ERROR_PTX, "%s, which %s uses, is not defined", var->name,
                   decoder->function->name);
    return 0;
}

/* ---- Operands ---- */

vm_op *vm_decode_new_op(vm_decoder *decoder, const pvm_inst *inst)
{
    vm_code *code = decoder->code;
    if (code->n_ops == decoder->op_capacity) {
        int capacity = decoder->op_capacity ? 2 * decoder->op_capacity : decoder->function->n_insts + 2;
        vm_op *ops = realloc(code->ops, (size_t)capacity * sizeof *ops);
        if (!ops) {
            decoder->failed = true;
            return NULL;
        }
        code->ops = ops;
        decoder->op_capacity = capacity;
    }
    vm_op *op = &code->ops[code->n_ops++];
    *op =
        (vm_op){.guard = VM_NO_SLOT, .members = -1, .join = -1, .inst = inst, .function = decoder->function};
    return op;
}

/* Emits an op before the instruction that loads a special register, or the address of something in local
 * memory, into a temporary. */
static void decode_loaded(vm_decoder *decoder, const pvm_inst *inst, const pvm_operand *source,
                          vm_operand *operand)
{
    pvm_inst *mov = vm_pool_alloc(decoder->kernel->pool, sizeof *mov + 2 * sizeof(pvm_operand));
    if (!mov) {
        decoder->failed = true;
        return;
    }
    pvm_operand *operands = (pvm_operand *)(mov + 1);
    *mov = (pvm_inst){.op = OP_mov,
                      .guard = -1,
                      .n_operands = 2,
                      .n_results = 1,
                      .operand = operands,
                      .form = inst->form,
                      .line = inst->line,
                      .column = inst->column,
                      .loc_file = inst->loc_file,
                      .loc_line = inst->loc_line};
    mov->mod[S_TYPE] = (uint16_t)M_TYPE(source->type);
    operands[0] = (pvm_operand){.kind = OPERAND_NONE, .type = source->type, .reg = -1};
    operands[1] = *source;
    operand->slot = vm_decode_temporary(decoder, operand->width);
    vm_op *op = vm_decode_operands(decoder, mov);
    if (!op)
        return;
    op->operand[0].slot = operand->slot;
    if (!vm_decode_mov(decoder, op))
        decoder->failed = true;
}

static void decode_symbol(vm_decoder *decoder, const pvm_inst *inst, const pvm_operand *source,
                          vm_operand *operand)
{
    uint64_t local, value = source->bits;
    if (source->var && vm_local_offset(decoder, source->var, &local)) {
        operand->offset = (int64_t)(local + source->bits);
        operand->space = SPACE_LOCAL;
        if (inst->op != OP_mov)
            decode_loaded(decoder, inst, source, operand);
        else {
            operand->slot = decoder->local_base;
            operand->is_address = true;
        }
        return;
    }
    if (source->var)
        value += var_address(decoder, source->var);
    else if (source->function)
        value += vm_function_address(decoder->module, source->function);
    operand->bits = value;
    operand->is_immediate = true;
    bool shared = source->var && source->var->space == SPACE_SHARED && operand->width >= 4;
    operand->slot = constant_of(decoder, value, 0, operand->width | (shared ? SHARED_CONSTANT : 0));
}

/* Of the operands in shared memory, the source of a copy is in .shared::cta. */
static bool is_in_cluster(const pvm_inst *inst, const pvm_operand *source)
{
    return inst->mod[S_SPACE] == M_shared__cluster && !(inst->op == OP_cp && source == &inst->operand[1]);
}

static void decode_address(vm_decoder *decoder, const pvm_inst *inst, const pvm_operand *source,
                           vm_operand *operand)
{
    uint64_t local;
    operand->is_address = true;
    operand->space = (uint8_t)source->space;
    operand->offset = (int64_t)source->bits;
    operand->slot = VM_NO_SLOT;
    if (source->var) {
        operand->space = (uint8_t)source->var->space;
        if (vm_local_offset(decoder, source->var, &local)) {
            operand->space = SPACE_LOCAL;
            operand->slot = decoder->local_base;
            operand->offset += (int64_t)local;
            operand->width = 8;
            operand->reg_type = T_U64;
        } else
            operand->offset += (int64_t)var_address(decoder, source->var);
    } else if (source->reg >= 0) {
        operand->slot = decoder->reg_slot[source->reg];
        operand->reg_type = decoder->function->regs[source->reg].type;
        operand->width = (int16_t)vm_type_width(operand->reg_type);
        operand->in_cluster = is_in_cluster(inst, source);
    }
}

/* mov itself reads special registers, but as elements of its vectors they are loaded first, as for every
 * other instruction. */
static void decode_operand(vm_decoder *decoder, const pvm_inst *inst, const pvm_operand *source,
                           bool is_element, vm_operand *operand)
{
    int width = vm_type_width(source->type);
    *operand = (vm_operand){.slot = VM_NO_SLOT,
                            .width = (int16_t)width,
                            .op_width = (int16_t)width,
                            .type = source->type,
                            .reg_type = source->type,
                            .negated = source->negated,
                            .source = source};
    switch (source->kind) {
    case OPERAND_REG:
        operand->slot = decoder->reg_slot[source->reg];
        operand->reg_type = decoder->function->regs[source->reg].type;
        operand->width = (int16_t)vm_type_width(operand->reg_type);
        if (source->type == T_NONE)
            operand->op_width = operand->width;
        break;
    case OPERAND_IMM:
        operand->is_immediate = true;
        operand->bits = source->bits;
        operand->slot = vm_decode_constant(decoder, source->bits, source->bits_hi, width);
        break;
    case OPERAND_SREG:
        if (inst->op != OP_mov || is_element)
            decode_loaded(decoder, inst, source, operand);
        break;
    case OPERAND_SYMBOL:
        decode_symbol(decoder, inst, source, operand);
        break;
    case OPERAND_FUNCTION:
        if (inst->op == OP_mov)
            decode_symbol(decoder, inst, source, operand);
        break;
    case OPERAND_ADDRESS:
        decode_address(decoder, inst, source, operand);
        break;
    case OPERAND_SINK:
        operand->is_sink = true;
        break;
    case OPERAND_LABEL:
    case OPERAND_VECTOR:
    case OPERAND_NONE:
        break;
    }
}

static int count_spread(const pvm_operand *operands, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += operands[i].kind == OPERAND_VECTOR ? operands[i].n_elements : 1;
    return count;
}

static vm_operand *spread(vm_decoder *decoder, const pvm_inst *inst, const pvm_operand *operands, int n,
                          vm_operand *to)
{
    for (int i = 0; i < n; i++) {
        if (operands[i].kind != OPERAND_VECTOR) {
            decode_operand(decoder, inst, &operands[i], false, to++);
            continue;
        }
        for (int k = 0; k < operands[i].n_elements; k++)
            decode_operand(decoder, inst, &operands[i].elements[k], true, to++);
    }
    return to;
}

static vm_op *finish_operands(vm_decoder *decoder, const pvm_inst *inst, vm_operand *operands, int n_results,
                              int n)
{
    vm_op *op = vm_decode_new_op(decoder, inst);
    if (!op || decoder->failed)
        return NULL;
    op->operand = operands;
    op->n_results = (uint8_t)n_results;
    op->n_operands = (uint8_t)n;
    if (inst->guard >= 0) {
        op->guard = decoder->reg_slot[inst->guard];
        op->guard_negated = inst->guard_negated;
    }
    return op;
}

vm_op *vm_decode_operands(vm_decoder *decoder, const pvm_inst *inst)
{
    int n = count_spread(inst->operand, inst->n_operands),
        n_results = count_spread(inst->operand, inst->n_results);
    vm_operand *operands = vm_pool_alloc(decoder->kernel->pool, (size_t)(n + 1) * sizeof *operands);
    if (!operands || n > UINT8_MAX) {
        decoder->failed = true;
        return NULL;
    }
    spread(decoder, inst, inst->operand, inst->n_operands, operands);
    return finish_operands(decoder, inst, operands, n_results, n);
}

/* A call's .param variable is treated as an address, whichever way the parser represents it. */
static void decode_argument(vm_decoder *decoder, const pvm_inst *inst, const pvm_operand *source,
                            vm_operand *operand)
{
    uint64_t local;
    if (!source->var || !vm_local_offset(decoder, source->var, &local)) {
        decode_operand(decoder, inst, source, false, operand);
        return;
    }
    *operand = (vm_operand){.slot = decoder->local_base,
                            .width = 8,
                            .op_width = 8,
                            .type = T_U64,
                            .reg_type = T_U64,
                            .space = SPACE_LOCAL,
                            .is_address = true,
                            .offset = (int64_t)(local + source->bits),
                            .source = source};
}

vm_op *vm_decode_call_operands(vm_decoder *decoder, const pvm_inst *inst)
{
    const pvm_call *call = inst->call;
    int n = call->n_ret + call->n_args;
    bool indirect = call->target.kind != OPERAND_FUNCTION;
    if (n + indirect > UINT8_MAX) {
        vm_decode_fail(decoder, PTXVM_ERROR_UNSUPPORTED,
                       "line %d: a call with more than %d arguments and results", inst->line, UINT8_MAX - 1);
        return NULL;
    }
    vm_operand *operands = vm_pool_alloc(decoder->kernel->pool, (size_t)(n + 1) * sizeof *operands);
    if (!operands) {
        decoder->failed = true;
        return NULL;
    }
    for (int i = 0; i < call->n_ret; i++)
        decode_argument(decoder, inst, &call->ret[i], &operands[i]);
    for (int i = 0; i < call->n_args; i++)
        decode_argument(decoder, inst, &call->args[i], &operands[call->n_ret + i]);
    if (indirect)
        decode_operand(decoder, inst, &call->target, false, &operands[n]);
    return finish_operands(decoder, inst, operands, call->n_ret, n + indirect);
}

/* ---- Layout ---- */

static void place(vm_slot *slot, uint32_t constant_bytes)
{
    if (*slot >= 0)
        *slot += (vm_slot)constant_bytes;
    else if (*slot != VM_NO_SLOT)
        *slot = -2 - *slot;
}

bool vm_decode_layout(vm_decoder *decoder)
{
    vm_code *code = decoder->code;
    uint64_t total = (uint64_t)code->constant_bytes + align_up(decoder->register_bytes, 64) + LANES_64;
    if (total > INT32_MAX)
        return false;
    for (int i = 0; i < code->n_ops; i++) {
        vm_op *op = &code->ops[i];
        place(&op->guard, code->constant_bytes);
        for (int k = 0; k < op->n_operands; k++)
            place(&op->operand[k].slot, code->constant_bytes);
    }
    place(&decoder->trash, code->constant_bytes);
    place(&decoder->carry, code->constant_bytes);
    place(&code->local_base, code->constant_bytes);
    code->reg_slot =
        vm_pool_alloc(decoder->kernel->pool, (size_t)(decoder->function->n_regs + 1) * sizeof(vm_slot));
    if (!code->reg_slot)
        return false;
    for (int i = 0; i < decoder->function->n_regs; i++)
        code->reg_slot[i] = decoder->reg_slot[i] + (vm_slot)code->constant_bytes;
    code->frame_bytes = (uint32_t)total;
    return true;
}
