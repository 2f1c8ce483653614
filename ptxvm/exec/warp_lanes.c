/* Lane instructions off the fast path: for some of the lanes, with operands that are wider than the
 * instruction's type; and the tensor cores. Results are computed for all lanes into scratch memory, then
 * taken over for the lanes that take part. */
#include "warp.h"

#include <string.h>

#include "decode.h"
#include "launch.h"

/* Byte i of the result is 0xff where bit i is set. */
static uint64_t spread_bits(uint32_t bits)
{
    uint64_t each = (bits & 0xff) * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    uint64_t set = ((each & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7f7f7f7f7f7f7f7f)) | each;
    return (set >> 7 & UINT64_C(0x0101010101010101)) * 0xff;
}

static void spread_mask(int8_t select[WARP], uint32_t mask)
{
    for (int i = 0; i < 4; i++) {
        uint64_t bytes = spread_bits(mask >> 8 * i);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bytes = __builtin_bswap64(bytes);
#endif
        memcpy(select + 8 * i, &bytes, sizeof bytes);
    }
}

#define BLEND(type, signed_type)                                                                             \
    static void blend_##type(type *restrict d, const type *restrict s, const int8_t *restrict select)        \
    {                                                                                                        \
        for (int i = 0; i < WARP; i++) {                                                                     \
            type m = (type)(signed_type)select[i];                                                           \
            d[i] = (type)((d[i] & ~m) | (s[i] & m));                                                         \
        }                                                                                                    \
    }
BLEND(uint8_t, int8_t)
BLEND(uint16_t, int16_t)
BLEND(uint32_t, int32_t)
BLEND(uint64_t, int64_t)

static void blend_16(uint8_t *d, const uint8_t *s, uint32_t mask)
{
    for (int lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1)
            memcpy(d + 16 * lane, s + 16 * lane, 16);
}

void vm_blend(void *d, const void *s, int width, uint32_t mask)
{
    int8_t select[WARP];
    if (width == 0) {
        uint32_t *to = d;
        *to = (*to & ~mask) | (*(const uint32_t *)s & mask);
        return;
    }
    spread_mask(select, mask);
    switch (width) {
    case 1:
        blend_uint8_t(d, s, select);
        break;
    case 2:
        blend_uint16_t(d, s, select);
        break;
    case 4:
        blend_uint32_t(d, s, select);
        break;
    case 8:
        blend_uint64_t(d, s, select);
        break;
    default:
        blend_16(d, s, mask);
        break;
    }
}

/* The carry flag is a predicate behind the results. */
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
    lanes_run(&op->lane, d, s, op->inst);
    for (int i = 0; i < op->n_d; i++)
        vm_blend(base + op->slots[i], d[i], result_width(op, i), mask);
}

/* ---- Operands wider than the instruction's type ---- */

static bool is_signed(ptx_type type)
{
    return type == T_S8 || type == T_S16 || type == T_S32 || type == T_S64;
}

/* Each lane's low `from` bytes, extended or cut to `to` bytes. */
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

/* A source as the lane function wants it: in `scratch` where it is not so in its register. */
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
