/* Lane instructions off the fast path: for some of the lanes, or with operands wider than the instruction's
 * type; and the tensor cores. Results are computed for all lanes in scratch memory, then copied for the
 * participating lanes. */
#include "warp.h"

#include <string.h>

#include "decode.h"
#include "launch.h"

/* ---- Copying some lanes ---- */

/* Each width once for the baseline and once for AVX2, where shifting by lane and selecting are one
 * instruction each. */
#define BLEND(name, type, target)                                                                            \
    target static void name(type *restrict d, const type *restrict s, uint32_t mask)                         \
    {                                                                                                        \
        for (int i = 0; i < WARP; i++) {                                                                     \
            type m = (type)(0 - (type)(mask >> i & 1));                                                      \
            d[i] = (type)((d[i] & ~m) | (s[i] & m));                                                         \
        }                                                                                                    \
    }
#define BASELINE
BLEND(blend_1, uint8_t, BASELINE)
BLEND(blend_2, uint16_t, BASELINE)
BLEND(blend_4, uint32_t, BASELINE)
BLEND(blend_8, uint64_t, BASELINE)

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))
BLEND(blend_1_avx2, uint8_t, AVX2)
BLEND(blend_2_avx2, uint16_t, AVX2)
BLEND(blend_4_avx2, uint32_t, AVX2)
BLEND(blend_8_avx2, uint64_t, AVX2)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define blend_1_avx2 blend_1
#define blend_2_avx2 blend_2
#define blend_4_avx2 blend_4
#define blend_8_avx2 blend_8

static bool has_avx2(void)
{
    return false;
}
#endif

static void blend_16(uint8_t *d, const uint8_t *s, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        memcpy(d + 16 * lane, s + 16 * lane, 16);
    }
}

void vm_blend(void *d, const void *s, int width, uint32_t mask)
{
    bool fast = has_avx2();
    switch (width) {
    case 0:
        *(uint32_t *)d = (*(uint32_t *)d & ~mask) | (*(const uint32_t *)s & mask);
        break;
    case 1:
        (fast ? blend_1_avx2 : blend_1)(d, s, mask);
        break;
    case 2:
        (fast ? blend_2_avx2 : blend_2)(d, s, mask);
        break;
    case 4:
        (fast ? blend_4_avx2 : blend_4)(d, s, mask);
        break;
    case 8:
        (fast ? blend_8_avx2 : blend_8)(d, s, mask);
        break;
    default:
        blend_16(d, s, mask);
        break;
    }
}

/* The carry flag is a predicate after the results. */
static int result_width(const vm_op *op, int i)
{
    return i < op->n_results ? op->operand[i].width : 0;
}

void vm_run_lane_partly(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint8_t *base = warp->frame->registers;
    void *d[VM_LANE_SLOTS];
    const void *s[VM_LANE_SLOTS];
    for (int i = 0; i < op->n_d; i++)
        d[i] = warp->block->worker->scratch[i];
    for (int i = op->n_d; i < VM_LANE_SLOTS; i++)
        s[i - op->n_d] = base + op->slots[i];
    if (op->lane.rounding == LANES_NEAREST)
        op->lane.run(d, s, op->inst);
    else
        lanes_run(&op->lane, d, s, op->inst);
    for (int i = 0; i < op->n_d; i++)
        vm_blend(base + op->slots[i], d[i], result_width(op, i), mask);
}

/* ---- Operands wider than the instruction's type ---- */

static bool is_signed(pvm_type type)
{
    return type == T_S8 || type == T_S16 || type == T_S32 || type == T_S64;
}

/* Each lane's low `from` bytes, extended or truncated to `to` bytes. */
static void resize(uint8_t *d, int to, const uint8_t *s, int from, bool is_signed_value)
{
    int common = to < from ? to : from;
    for (int lane = 0; lane < WARP; lane++) {
        const uint8_t *in = s + lane * from;
        uint8_t fill = is_signed_value && in[common - 1] >> 7 ? 0xff : 0;
        memset(d + lane * to, fill, (size_t)to);
        memcpy(d + lane * to, in, (size_t)common);
    }
}

/* A source in the form that the lane function expects: in `scratch` if its register does not have that
 * form. */
static const void *convert_source(const vm_operand *operand, const void *value, uint8_t *scratch)
{
    if (operand->op_width == 0) {
        uint32_t p = *(const uint32_t *)value;
        p = operand->negated ? ~p : p;
        return memcpy(scratch, &p, sizeof p);
    }
    if (operand->width == operand->op_width)
        return value;
    resize(scratch, operand->op_width, value, operand->width, is_signed(operand->reg_type));
    return scratch;
}

vm_result vm_exec_lane_converted(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_worker *worker = warp->block->worker;
    uint8_t *base = warp->frame->registers, (*scratch)[VM_LANE_BYTES] = worker->scratch;
    void *d[VM_LANE_SLOTS];
    const void *s[VM_LANE_SLOTS];
    for (int i = 0; i < op->n_d; i++)
        d[i] = scratch[i];
    for (int i = op->n_d; i < VM_LANE_SLOTS; i++) {
        int k = i - op->n_d + op->n_results;
        const void *value = base + op->slots[i];
        s[i - op->n_d] = k < op->n_operands ? convert_source(&op->operand[k], value, scratch[i]) : value;
    }
    lanes_run(&op->lane, d, s, op->inst);
    for (int i = 0; i < op->n_d; i++) {
        const vm_operand *operand = &op->operand[i];
        const void *value = d[i];
        if (i < op->n_results && operand->width != operand->op_width) {
            resize(scratch[VM_LANE_SLOTS], operand->width, d[i], operand->op_width, is_signed(operand->type));
            value = scratch[VM_LANE_SLOTS];
        }
        vm_blend(base + op->slots[i], value, result_width(op, i), mask);
    }
    return VM_NEXT;
}

/* ---- Tensor cores ---- */

vm_result vm_exec_tensor(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask; /* all live lanes take part */
    const vm_tensor_site *site = op->extra;
    union {
        void *d[UINT8_MAX];
        const void *s[UINT8_MAX];
    } p;
    for (int i = 0; i < op->n_operands; i++)
        p.d[i] = vm_value(warp, &op->operand[i]);
    const int *n = site->n;
    const void *const *a = p.s + n[0], *const *b = a + n[1], *const *c = b + n[2], *const *scale = c + n[3];
    site->op.run(&site->op, p.d, a, b, c, n[4] ? scale : NULL);
    return VM_NEXT;
}

vm_result vm_exec_nothing(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)warp;
    (void)op;
    (void)mask;
    return VM_NEXT;
}
