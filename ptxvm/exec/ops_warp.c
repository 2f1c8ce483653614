/* Operations across the lanes of a warp: shfl, vote, match, redux, activemask, elect. The executor has
 * gathered the members. */
#include "ops_common.h"

/* ---- shfl ---- */

/* The lane that each lane reads (ISA, shfl): c holds the clamp value in bits 0..4 and the mask of the segment
 * in bits 8..12. Out of range, a lane reads itself. */
static inline __attribute__((always_inline)) void sources_of(unsigned mode, const vm_u32 *b, const vm_u32 *c,
                                                             int step, int32_t source[WARP],
                                                             int32_t in_range[WARP])
{
    for (int32_t lane = 0; lane < WARP; lane++) {
        int32_t bval = b[lane * step] & 31, clamp = c[lane * step] & 31, segment = c[lane * step] >> 8 & 31;
        int32_t low = lane & segment, high = low | (clamp & ~segment);
        int32_t j = mode == M_up     ? lane - bval
                    : mode == M_down ? lane + bval
                    : mode == M_bfly ? lane ^ bval
                                     : low | (bval & ~segment);
        in_range[lane] = mode == M_up ? j >= high : j <= high;
        source[lane] = in_range[lane] ? j : lane;
    }
}

static inline __attribute__((always_inline)) vm_result shfl(vm_warp *warp, const vm_op *op, uint32_t mask,
                                                            unsigned mode)
{
    const vm_operand *in = &op->operand[op->n_results];
    const vm_u32 *a = vm_value(warp, &in[0]);
    int32_t source[WARP], in_range[WARP];
    uint32_t result[WARP], inside = 0;
    const vm_u32 *b = vm_value(warp, &in[1]), *c = vm_value(warp, &in[2]);
    if (in[1].is_immediate && in[2].is_immediate)
        sources_of(mode, b, c, 0, source, in_range);
    else
        sources_of(mode, b, c, 1, source, in_range);
    for (int lane = 0; lane < WARP; lane++)
        result[lane] = a[source[lane]];
    if (mask == UINT32_MAX && !op->operand[0].is_sink)
        memcpy(vm_value(warp, &op->operand[0]), result, sizeof result);
    else
        VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, result[lane]);
    for (int lane = 0; lane < WARP && op->n_results > 1; lane++)
        inside |= (uint32_t)in_range[lane] << lane;
    if (op->n_results > 1)
        ops_result_predicate(warp, &op->operand[1], mask, inside);
    return VM_NEXT;
}

/* clang-format off */
#define SHFL(mode) \
    static vm_result exec_shfl_##mode(vm_warp *warp, const vm_op *op, uint32_t mask) \
    { return shfl(warp, op, mask, M_##mode); }
SHFL(up) SHFL(down) SHFL(bfly) SHFL(idx)
    /* clang-format on */

    bool ops_find_shfl(vm_op *op)
{
    unsigned mode = op->inst->mod[S_MODE];
    op->exec = mode == M_up     ? exec_shfl_up
               : mode == M_down ? exec_shfl_down
               : mode == M_bfly ? exec_shfl_bfly
                                : exec_shfl_idx;
    if (op->inst->mod[S_SYNC]) {
        op->flags |= OPF_MEMBERS;
        op->members = (int8_t)(op->n_results + 3);
    }
    return true;
}

/* ---- vote ---- */

static vm_result exec_vote(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint32_t votes = vm_predicate(warp, &op->operand[1]) & mask;
    unsigned operation = op->inst->mod[S_OP];
    if (operation == M_ballot) {
        VM_EACH_LANE(lane, mask)
        ops_result(warp, &op->operand[0], (int)lane, votes);
        return VM_NEXT;
    }
    bool all = votes == mask, any = votes != 0;
    bool result = operation == M_all ? all : operation == M_any ? any : all || !any;
    ops_result_predicate(warp, &op->operand[0], mask, result ? mask : 0);
    return VM_NEXT;
}

/* ---- match ---- */

static uint32_t lanes_equal_to(const void *a, int width, uint32_t mask, uint64_t value)
{
    uint32_t equal = 0;
    VM_EACH_LANE(lane, mask)
    equal |= (uint32_t)(ops_get(a, width, (int)lane) == value) << lane;
    return equal;
}

static vm_result exec_match(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *in = &op->operand[op->n_results];
    uint64_t a[WARP];
    VM_EACH_LANE(lane, mask)
    a[lane] = ops_operand(warp, in, (int)lane);
    if (op->inst->mod[S_OP] == M_any) {
        VM_EACH_LANE(lane, mask)
        ops_result(warp, &op->operand[0], (int)lane, lanes_equal_to(a, 8, mask, a[lane]));
        return VM_NEXT;
    }
    bool all = lanes_equal_to(a, 8, mask, a[vm_first(mask)]) == mask;
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, all ? mask : 0);
    if (op->n_results > 1)
        ops_result_predicate(warp, &op->operand[1], mask, all ? mask : 0);
    return VM_NEXT;
}

/* ---- redux ---- */

static bool is_nan_f32(uint32_t bits)
{
    return (bits & 0x7FFFFFFF) > 0x7F800000;
}

/* Orders the bits of f32 as signed integers, -0 below +0. */
static int32_t f32_rank(uint32_t bits)
{
    return bits >> 31 ? (int32_t)(bits ^ 0x7FFFFFFF) : (int32_t)bits;
}

/* min and max of f32: a number wins over a NaN, or with .NaN the NaN wins. */
static uint32_t pick_f32(uint32_t a, uint32_t b, bool larger, bool nan_wins)
{
    bool a_nan = is_nan_f32(a), b_nan = is_nan_f32(b);
    if (a_nan || b_nan)
        return nan_wins || (a_nan && b_nan) ? 0x7FFFFFFF : a_nan ? b : a;
    return (f32_rank(a) < f32_rank(b)) != larger ? a : b;
}

static uint32_t redux_step(const pvm_inst *inst, uint32_t a, uint32_t b)
{
    pvm_type type = pvm_slot_type(inst, S_TYPE);
    bool larger = inst->mod[S_OP] == M_max;
    switch (inst->mod[S_OP]) {
    case M_add:
        return a + b;
    case M_and:
        return a & b;
    case M_or:
        return a | b;
    case M_xor:
        return a ^ b;
    default:
        if (type == T_F32)
            return pick_f32(a, b, larger, inst->mod[S_NAN] != M_NONE);
        if (type == T_S32)
            return ((int32_t)a < (int32_t)b) != larger ? a : b;
        return (a < b) != larger ? a : b;
    }
}

static vm_result exec_redux(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_u32 *a = vm_value(warp, &op->operand[1]);
    uint32_t strip = op->inst->mod[S_ABS] ? 0x7FFFFFFF : UINT32_MAX;
    uint32_t sum = a[vm_first(mask)] & strip;
    if (pvm_slot_type(op->inst, S_TYPE) == T_F32 && is_nan_f32(sum))
        sum = 0x7FFFFFFF;
    VM_EACH_LANE(lane, mask & (mask - 1))
    sum = redux_step(op->inst, sum, a[lane] & strip);
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, sum);
    return VM_NEXT;
}

/* ---- activemask, elect ---- */

static vm_result exec_activemask(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, mask);
    return VM_NEXT;
}

static vm_result exec_elect(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint32_t leader = (uint32_t)vm_first(mask);
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, leader);
    ops_result_predicate(warp, &op->operand[1], mask, 1u << leader);
    return VM_NEXT;
}

bool ops_find_warp(vm_op *op)
{
    static const struct {
        pvm_opcode opcode;
        vm_exec_fn *exec;
    } rows[] = {{OP_vote, exec_vote},
                {OP_match, exec_match},
                {OP_redux, exec_redux},
                {OP_activemask, exec_activemask},
                {OP_elect, exec_elect}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].opcode == op->inst->op)
            op->exec = rows[i].exec;
    /* The member mask is the last operand. */
    if (op->inst->mod[S_SYNC]) {
        op->flags |= OPF_MEMBERS;
        op->members = (int8_t)(op->n_operands - 1);
    }
    return true;
}
