/* tcgen05: loads and stores of tensor memory, their waits, fences.
 *
 * With a seed a load reads tensor memory and a store writes it at its start or at the wait for it, and until then the registers
 * of a load hold POISON. Without one a store writes at the wait, but a load delivers its values at once: compilers let
 * instructions use them before the wait, which is an error (that the checks find), but works on GPUs, whose registers wait. A warp reaches only the quarter of the lanes that its
 * number, modulo 4, has. */
#include "ops_tcgen05.h"

#include <math.h>
#include <stdlib.h>

#include "ptxvm/exec/hooks.h"

#define POISON 0x7FBADBADu

struct ops_tcgen05 *tcgen05_state(vm_warp *warp, const vm_op *op)
{
    if (!warp->ops->tcgen05)
        warp->ops->tcgen05 = calloc(1, sizeof *warp->ops->tcgen05);
    if (!warp->ops->tcgen05)
        vm_fault(warp, op, 0, PTXVM_ERROR_MEMORY, "no memory left for an asynchronous tcgen05 instruction");
    return warp->ops->tcgen05;
}

uint32_t tcgen05_address(const vm_warp *warp, const vm_operand *operand, int lane)
{
    uint64_t address[WARP];
    vm_addresses(warp, operand, 1u << lane, address);
    return (uint32_t)address[lane];
}

/* ---- Fragments: PTX ISA, "Matrix fragments for shape" ---- */

typedef struct place {
    uint32_t lane, column; /* column: of 32 bits, or with .pack::16b and .unpack::16b a pair of columns */
} place;

static place place_of(unsigned shape, uint32_t thread, uint32_t reg)
{
    switch (shape) {
    case M_t16x64b:
        return (place){thread / 4 + 8 * (thread % 2), thread / 2 % 2 + 2 * reg};
    case M_t16x128b:
        return (place){thread / 4 + 8 * (reg % 2), thread % 4 + 4 * (reg / 2)};
    case M_t16x256b:
        return (place){thread / 4 + 8 * (reg / 2 % 2), 2 * (thread % 4) + reg % 2 + 8 * (reg / 4)};
    case M_t16x32bx2:
        return (place){thread % 16, reg};
    default:
        return (place){thread, reg};
    }
}

typedef struct fragment {
    unsigned shape;
    uint32_t registers, columns; /* of tensor memory, in each part */
    uint32_t split;              /* .16x32bx2: columns from the part of lanes 0 to 15 to that of the others */
    bool packed;
    int first; /* operand */
} fragment;

static bool is_load(const vm_op *op)
{
    return op->inst->mod[S_SUB] == M_ld;
}

static bool is_reduction(const vm_op *op)
{
    return op->inst->mod[S_FLAG3] == M_red;
}

static fragment fragment_of(const vm_op *op)
{
    const pvm_inst *inst = op->inst;
    fragment f = {.shape = inst->mod[S_SHAPE], .packed = inst->mod[S_FLAG] != M_NONE};
    bool split = f.shape == M_t16x32bx2;
    f.first = is_load(op) ? 0 : split ? 2 : 1;
    f.registers = (uint32_t)(op->n_operands - 1 - split - is_reduction(op));
    uint32_t last = 0;
    for (uint32_t thread = 0; thread < WARP; thread++) {
        uint32_t column = place_of(f.shape, thread, f.registers - 1).column;
        last = column > last ? column : last;
    }
    f.columns = (last + 1) << f.packed;
    f.split = split ? (uint32_t)op->operand[is_load(op) ? op->n_operands - 1 : 1].bits : 0;
    return f;
}

static const vm_operand *address_of(const vm_op *op)
{
    int i = 0;
    while (!op->operand[i].is_address)
        i++;
    return &op->operand[i];
}

static int transfer_regions(const vm_warp *warp, const vm_op *op, uint32_t address, tmem_region regions[2])
{
    fragment f = fragment_of(op);
    regions[0] = (tmem_region){.block = warp->block,
                               .lane = tmem_lane_of(address),
                               .lanes = f.shape == M_t32x32b ? 32 : 16,
                               .column = tmem_column_of(address),
                               .columns = f.columns,
                               .writes = !is_load(op)};
    regions[1] = regions[0];
    regions[1].column += f.split;
    return f.shape == M_t16x32bx2 ? 2 : 1;
}

/* A register of all threads from tensor memory, or to it. */
static void move_register(const vm_warp *warp, const fragment *f, uint32_t address, uint32_t reg,
                          uint32_t *values, bool load)
{
    for (uint32_t thread = 0; thread < WARP; thread++) {
        place at = place_of(f->shape, thread, reg);
        uint32_t column = tmem_column_of(address) + (at.column << f->packed) +
                          (f->shape == M_t16x32bx2 && thread >= 16 ? f->split : 0);
        uint32_t *word = vm_tmem_row(warp->block, tmem_lane_of(address) + at.lane, column);
        if (load)
            values[thread] = f->packed ? (word[0] & 0xFFFF) | word[1] << 16 : word[0];
        else if (f->packed) {
            word[0] = values[thread] & 0xFFFF;
            word[1] = values[thread] >> 16;
        } else
            word[0] = values[thread];
    }
}

/* ---- tcgen05.ld.red ---- */

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* +0 is larger than -0; a NaN counts only with .NaN or if there is nothing else. */
static uint32_t reduce_floats(const pvm_inst *inst, uint32_t (*values)[WARP], uint32_t n, int lane)
{
    bool max = inst->mod[S_OP] == M_max, propagates = inst->mod[S_NAN] != M_NONE, nan = false, any = false;
    uint32_t best = 0;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t bits = values[r][lane] & (inst->mod[S_ABS] ? 0x7FFFFFFF : UINT32_MAX);
        float x = float_of(bits), y = float_of(best);
        if (isnan(x)) {
            nan = true;
            continue;
        }
        bool less = x < y || (x == y && signbit(x) && !signbit(y));
        bool greater = x > y || (x == y && !signbit(x) && signbit(y));
        if (!any || (max ? greater : less))
            best = bits;
        any = true;
    }
    return nan && (propagates || !any) ? 0x7FFFFFFF : best;
}

static uint32_t reduce(const pvm_inst *inst, uint32_t (*values)[WARP], uint32_t n, int lane)
{
    pvm_type type = pvm_slot_type(inst, S_TYPE);
    if (type == T_F32)
        return reduce_floats(inst, values, n, lane);
    bool max = inst->mod[S_OP] == M_max;
    uint32_t best = values[0][lane], flip = type == T_S32 ? 0x80000000u : 0;
    for (uint32_t r = 1; r < n; r++) {
        uint32_t x = values[r][lane];
        if (max ? (x ^ flip) > (best ^ flip) : (x ^ flip) < (best ^ flip))
            best = x;
    }
    return best;
}

/* ---- Loads and stores ---- */

/* The address in the warp's quarter of the lanes. One in the first quarter is of the warp's own, whichever warp it is: kernels
 * of DeepGEMM rely on that, so GPUs seem to take these two bits from the warp. */
static uint32_t in_own_quarter(const vm_warp *warp, uint32_t address)
{
    const uint32_t quarter = (uint32_t)warp->index % 4;
    return tmem_lane_of(address) < TMEM_LANES / 4 ? address + (quarter << 21) : address;
}

/* All lanes have the same address, in the warp's quarter. */
static bool transfer_is_valid(vm_warp *warp, const vm_op *op, uint32_t *address)
{
    uint64_t at[WARP];
    tmem_region regions[2];
    if (warp->live != UINT32_MAX) {
        vm_fault(warp, op, vm_first(warp->live), PTXVM_ERROR_EXECUTION,
                 "it needs all 32 threads of the warp: 0x%08x execute it", warp->live);
        return false;
    }
    vm_addresses(warp, address_of(op), UINT32_MAX, at);
    for (int lane = 1; lane < WARP; lane++)
        if (at[lane] != at[0]) {
            vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
                     "the address 0x%llx here and 0x%llx in lane 0: it must be the same in all lanes",
                     (unsigned long long)at[lane], (unsigned long long)at[0]);
            return false;
        }
    *address = in_own_quarter(warp, (uint32_t)at[0]);
    int n = transfer_regions(warp, op, *address, regions);
    for (int i = 0; i < n; i++)
        if (!vm_tmem_holds(warp, op, 0, &regions[i], "the address"))
            return false;
    uint32_t quarter = (uint32_t)warp->index % 4, lane = tmem_lane_of(*address);
    bool is_mine = lane / 32 == quarter && (lane + regions[0].lanes - 1) / 32 == quarter && lane % 16 == 0;
    if (!is_mine)
        vm_fault(warp, op, 0, PTXVM_ERROR_ADDRESS,
                 "lanes %u to %u of tensor memory: warp %d may access lanes %u to %u, from their first%s",
                 lane, lane + regions[0].lanes - 1, warp->index, 32 * quarter, 32 * quarter + 31,
                 regions[0].lanes == 16 ? " or 17th" : "");
    return is_mine;
}

static bool take_values(vm_warp *warp, tcgen05_transfer *t, uint32_t n)
{
    if (!t->values)
        t->values = malloc((n + 1) * sizeof *t->values);
    if (!t->values)
        vm_fault(warp, t->op, 0, PTXVM_ERROR_MEMORY,
                 "no memory left for an asynchronous tcgen05 instruction");
    return t->values;
}

static bool load_values(vm_warp *warp, tcgen05_transfer *t)
{
    fragment f = fragment_of(t->op);
    if (!take_values(warp, t, f.registers))
        return false;
    for (uint32_t r = 0; r < f.registers; r++)
        move_register(warp, &f, t->address, r, t->values[r], true);
    for (int lane = 0; is_reduction(t->op) && lane < WARP; lane++)
        t->values[f.registers][lane] = reduce(t->op->inst, t->values, f.registers, lane);
    t->moved = true;
    return true;
}

static void store_values(const vm_warp *warp, tcgen05_transfer *t)
{
    fragment f = fragment_of(t->op);
    for (uint32_t r = 0; r < f.registers; r++)
        move_register(warp, &f, t->address, r, t->values[r], false);
    t->moved = true;
}

static tcgen05_transfer *add_transfer(vm_warp *warp, const vm_op *op, tcgen05_transfer **list, int *n,
                                      int *capacity, uint32_t address)
{
    tcgen05_transfer *grown = ops_grow(warp, op, *list, *n, capacity, sizeof *grown);
    if (!grown)
        return NULL;
    *list = grown;
    grown[*n] = (tcgen05_transfer){.op = op, .frame = warp->frame, .address = address};
    return &grown[(*n)++];
}

static void watch_transfer(vm_warp *warp, const tcgen05_transfer *t, bool begin)
{
    tmem_region regions[2];
    int n = warp->block->check ? transfer_regions(warp, t->op, t->address, regions) : 0;
    for (int i = 0; i < n; i++)
        (begin ? vm_check_tmem_begin : vm_check_tmem_end)(warp, t->op, 0, &regions[i]);
}

/* The values reach their registers, unless those have been left. */
static void deliver(tcgen05_transfer *t)
{
    for (int i = 0; t->frame && i < t->op->n_results; i++)
        memcpy(vm_slot_ptr(t->frame, t->op->operand[i].slot), t->values[i], sizeof *t->values);
    t->delivered = true;
}

static vm_result exec_load(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask;
    uint32_t address;
    struct ops_tcgen05 *state = tcgen05_state(warp, op);
    if (!state || !transfer_is_valid(warp, op, &address))
        return VM_FAULT;
    tcgen05_transfer *t =
        add_transfer(warp, op, &state->loads, &state->n_loads, &state->loads_capacity, address);
    if (!t)
        return VM_FAULT;
    watch_transfer(warp, t, true);
    vm_check_load_begin(warp, op);
    bool seeded = warp->block->launch->vm->config.seed;
    if ((ops_landing_of(warp, state->started++) != LANDING_LATE || !seeded) && !load_values(warp, t))
        return VM_FAULT;
    if (!seeded)
        deliver(t);
    for (int i = 0; seeded && i < op->n_results; i++)
        for (int lane = 0; lane < WARP; lane++)
            ((uint32_t *)vm_value(warp, &op->operand[i]))[lane] = POISON;
    return VM_NEXT;
}

static vm_result exec_store(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask;
    uint32_t address;
    struct ops_tcgen05 *state = tcgen05_state(warp, op);
    if (!state || !transfer_is_valid(warp, op, &address))
        return VM_FAULT;
    tcgen05_transfer *t =
        add_transfer(warp, op, &state->stores, &state->n_stores, &state->stores_capacity, address);
    fragment f = fragment_of(op);
    if (!t || !take_values(warp, t, f.registers))
        return VM_FAULT;
    for (uint32_t r = 0; r < f.registers; r++)
        memcpy(t->values[r], vm_value(warp, &op->operand[(uint32_t)f.first + r]), sizeof *t->values);
    watch_transfer(warp, t, true);
    if (ops_landing_of(warp, state->started++) != LANDING_LATE)
        store_values(warp, t);
    return VM_NEXT;
}

static void finish_transfer(tcgen05_transfer *t)
{
    free(t->values);
    t->values = NULL;
}

/* For the checks: the lanes in which a register gets something that was never written. */
static uint32_t undefined_lanes(const vm_warp *warp, const tcgen05_transfer *t, uint32_t reg)
{
    fragment f = fragment_of(t->op);
    uint32_t lanes = 0, first = reg < f.registers ? reg : 0, last = reg < f.registers ? reg : f.registers - 1;
    for (uint32_t r = first; r <= last; r++) /* the result of a reduction comes from all */
        for (uint32_t thread = 0; thread < WARP; thread++) {
            place at = place_of(f.shape, thread, r);
            uint32_t column = tmem_column_of(t->address) + (at.column << f.packed) +
                              (f.shape == M_t16x32bx2 && thread >= 16 ? f.split : 0);
            lanes |= (uint32_t)vm_check_tmem_is_undefined(warp->block, tmem_lane_of(t->address) + at.lane,
                                                          column, 1u << f.packed)
                     << thread;
        }
    return lanes;
}

static bool end_load(vm_warp *warp, tcgen05_transfer *t)
{
    const vm_op *op = t->op;
    if (!t->moved && !load_values(warp, t))
        return false;
    watch_transfer(warp, t, false);
    if (!t->delivered)
        deliver(t);
    vm_check_flight_end(warp, t->frame, op, 0, op->n_results);
    for (int i = 0; warp->block->check && i < op->n_results; i++)
        vm_check_load_undefined(warp, t->frame, op, i, undefined_lanes(warp, t, (uint32_t)i));
    return true;
}

static vm_result exec_wait(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask;
    struct ops_tcgen05 *state = tcgen05_state(warp, op);
    bool loads = op->inst->mod[S_SUB] == M_wait__ld, ok = state != NULL;
    for (int i = 0; ok && loads && i < state->n_loads; i++) {
        ok = end_load(warp, &state->loads[i]);
        finish_transfer(&state->loads[i]);
    }
    for (int i = 0; ok && !loads && i < state->n_stores; i++) {
        if (!state->stores[i].moved)
            store_values(warp, &state->stores[i]);
        watch_transfer(warp, &state->stores[i], false);
        finish_transfer(&state->stores[i]);
    }
    if (ok)
        *(loads ? &state->n_loads : &state->n_stores) = 0;
    return ok ? VM_NEXT : VM_FAULT;
}

static vm_result exec_fence(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask;
    if (warp->block->check)
        vm_check_tmem_fence(warp, op->inst->mod[S_SUB] == M_fence__before_thread_sync);
    return VM_NEXT;
}

/* ---- Finding them ---- */

bool ops_find_tcgen05(vm_op *op)
{
    static const struct {
        unsigned sub;
        vm_exec_fn *exec;
        bool by_warp;
    } rows[] = {
        {M_alloc, vm_exec_tmem_alloc, false},
        {M_dealloc, vm_exec_tmem_dealloc, false},
        {M_relinquish_alloc_permit, vm_exec_tmem_relinquish, false},
        {M_ld, exec_load, true},
        {M_st, exec_store, true},
        {M_wait__ld, exec_wait, true},
        {M_wait__st, exec_wait, true},
        {M_fence__before_thread_sync, exec_fence, false},
        {M_fence__after_thread_sync, exec_fence, false},
        {M_cp, tcgen05_exec_copy, false},
        {M_shift, tcgen05_exec_shift, false},
        {M_commit, tcgen05_exec_commit, false},
        {M_mma, tcgen05_exec_mma, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].sub == op->inst->mod[S_SUB]) {
            op->exec = rows[i].exec;
            op->flags |= rows[i].by_warp ? OPF_CONVERGED | OPF_ONE_PLACE : 0;
        }
    return op->exec;
}

/* ---- Ends ---- */

void ops_tcgen05_frame_end(vm_warp *warp, const vm_frame *frame)
{
    struct ops_tcgen05 *state = warp->ops ? warp->ops->tcgen05 : NULL;
    for (int i = 0; state && i < state->n_loads; i++)
        if (state->loads[i].frame == frame) {
            vm_check_flight_lost(warp, state->loads[i].op);
            state->loads[i].frame = NULL;
        }
}

void ops_tcgen05_begin(vm_warp *warp)
{
    struct ops_tcgen05 *state = warp->ops->tcgen05;
    if (!state)
        return;
    for (int i = 0; i < state->n_loads; i++)
        finish_transfer(&state->loads[i]);
    for (int i = 0; i < state->n_stores; i++)
        finish_transfer(&state->stores[i]);
    state->n = state->n_loads = state->n_stores = 0;
    state->started = 0;
}

void ops_tcgen05_free(vm_warp *warp)
{
    struct ops_tcgen05 *state = warp->ops->tcgen05;
    if (!state)
        return;
    ops_tcgen05_begin(warp);
    free(state->items);
    free(state->loads);
    free(state->stores);
    free(state);
}
