/* mov in all its forms: copies, also of vectors, packing and unpacking, addresses in local memory. All but
 * the last are lane functions. */
#include "decode.h"

#include <string.h>

#include "ops.h"
#include "warp.h"

#define COPY(width)                                                                                          \
    static void copy_##width(void *const *d, const void *const *s, const pvm_inst *inst)                     \
    {                                                                                                        \
        (void)inst;                                                                                          \
        memmove(d[0], s[0], (width)*WARP);                                                                   \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)
COPY(16)

static void copy_predicate(void *const *d, const void *const *s, const pvm_inst *inst)
{
    (void)inst;
    memmove(d[0], s[0], sizeof(uint32_t));
}

/* n elements of `part` in one `whole`, the first in the low bits. */
#define PACK(n, part, whole)                                                                                 \
    static void pack_##n##_##part(void *const *d, const void *const *s, const pvm_inst *inst)                \
    {                                                                                                        \
        (void)inst;                                                                                          \
        whole packed[WARP];                                                                                  \
        for (int lane = 0; lane < WARP; lane++) {                                                            \
            whole value = 0;                                                                                 \
            for (int k = 0; k < (n); k++)                                                                    \
                value |= (whole)((const part *)s[k])[lane] << 8 * (int)sizeof(part) * k;                     \
            packed[lane] = value;                                                                            \
        }                                                                                                    \
        memcpy(d[0], packed, sizeof packed);                                                                 \
    }                                                                                                        \
    static void unpack_##n##_##part(void *const *d, const void *const *s, const pvm_inst *inst)              \
    {                                                                                                        \
        (void)inst;                                                                                          \
        whole packed[WARP];                                                                                  \
        memcpy(packed, s[0], sizeof packed);                                                                 \
        for (int k = 0; k < (n); k++)                                                                        \
            for (int lane = 0; lane < WARP; lane++)                                                          \
                ((part *)d[k])[lane] = (part)(packed[lane] >> 8 * (int)sizeof(part) * k);                    \
    }
PACK(2, uint8_t, uint16_t)
PACK(4, uint8_t, uint32_t)
PACK(2, uint16_t, uint32_t)
PACK(4, uint16_t, uint64_t)
PACK(2, uint32_t, uint64_t)

/* The same for .b128, for which C has no integer type. */
#define PACK_128(n, part)                                                                                    \
    static void pack_##n##_##part(void *const *d, const void *const *s, const pvm_inst *inst)                \
    {                                                                                                        \
        (void)inst;                                                                                          \
        part packed[WARP][n];                                                                                \
        for (int lane = 0; lane < WARP; lane++)                                                              \
            for (int k = 0; k < (n); k++)                                                                    \
                packed[lane][k] = ((const part *)s[k])[lane];                                                \
        memcpy(d[0], packed, sizeof packed);                                                                 \
    }                                                                                                        \
    static void unpack_##n##_##part(void *const *d, const void *const *s, const pvm_inst *inst)              \
    {                                                                                                        \
        (void)inst;                                                                                          \
        part packed[WARP][n];                                                                                \
        memcpy(packed, s[0], sizeof packed);                                                                 \
        for (int k = 0; k < (n); k++)                                                                        \
            for (int lane = 0; lane < WARP; lane++)                                                          \
                ((part *)d[k])[lane] = packed[lane][k];                                                      \
    }
PACK_128(4, uint32_t)
PACK_128(2, uint64_t)

/* mov.v2 and mov.v4: all sources are read before the first result is written. */
#define MOVE(width)                                                                                          \
    static void move_##width(void *const *d, const void *const *s, const pvm_inst *inst)                     \
    {                                                                                                        \
        uint8_t values[4][(width)*WARP];                                                                     \
        int n = inst->mod[S_VEC] == M_v2 ? 2 : 4;                                                            \
        for (int k = 0; k < n; k++)                                                                          \
            memcpy(values[k], s[k], sizeof values[k]);                                                       \
        for (int k = 0; k < n; k++)                                                                          \
            memcpy(d[k], values[k], sizeof values[k]);                                                       \
    }
MOVE(2)
MOVE(4)
MOVE(8)

static lane_fn *find_move(int width)
{
    return width == 2 ? move_2 : width == 4 ? move_4 : width == 8 ? move_8 : NULL;
}

static const struct {
    int n, width; /* elements, bytes of each */
    lane_fn *pack, *unpack;
} packings[] = {
    {2, 1, pack_2_uint8_t, unpack_2_uint8_t},   {4, 1, pack_4_uint8_t, unpack_4_uint8_t},
    {2, 2, pack_2_uint16_t, unpack_2_uint16_t}, {4, 2, pack_4_uint16_t, unpack_4_uint16_t},
    {2, 4, pack_2_uint32_t, unpack_2_uint32_t}, {4, 4, pack_4_uint32_t, unpack_4_uint32_t},
    {2, 8, pack_2_uint64_t, unpack_2_uint64_t},
};

static lane_fn *find_packing(int n, int whole, bool pack)
{
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++)
        if (packings[i].n == n && packings[i].n * packings[i].width == whole)
            return pack ? packings[i].pack : packings[i].unpack;
    return NULL;
}

static lane_fn *find_copy(int width)
{
    switch (width) {
    case 0:
        return copy_predicate;
    case 1:
        return copy_1;
    case 2:
        return copy_2;
    case 4:
        return copy_4;
    case 8:
        return copy_8;
    default:
        return copy_16;
    }
}

vm_result vm_exec_local_address(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *to = &op->operand[0], *from = &op->operand[1];
    uint8_t *d = vm_value(warp, to);
    const uint64_t *base = vm_value(warp, from);
    for (int lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) {
            uint64_t address = base[lane] + (uint64_t)from->offset;
            memcpy(d + lane * to->width, &address, (size_t)to->width);
        }
    return VM_NEXT;
}

/* ---- Special registers that almost every kernel reads first ---- */

static uint32_t grid_value(const vm_warp *warp, int sreg, uint64_t component)
{
    const vm_block *block = warp->block;
    switch (sreg) {
    case SREG_ctaid:
        return block->ctaid[component];
    case SREG_nctaid:
        return block->launch->grid[component];
    default:
        return block->launch->dim[component];
    }
}

static vm_result exec_index(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const pvm_operand *source = op->operand[1].source;
    uint32_t values[WARP], same = source->sreg == SREG_tid ? 0 : grid_value(warp, source->sreg, source->bits);
    for (int lane = 0; lane < WARP; lane++)
        values[lane] = source->sreg == SREG_tid ? warp->tid[source->bits][lane] : same;
    vm_blend(vm_value(warp, &op->operand[0]), values, 4, mask);
    return VM_NEXT;
}

static bool is_index(const vm_op *op)
{
    const pvm_operand *source = op->operand[1].source;
    int sreg = source->sreg;
    return op->n_operands == 2 && op->operand[0].width == 4 && op->operand[0].slot != VM_NO_SLOT &&
           source->bits < 3 &&
           (sreg == SREG_tid || sreg == SREG_ntid || sreg == SREG_ctaid || sreg == SREG_nctaid);
}

/* The width of a packed operand's elements follows from the whole, whatever type the parser gave each. */
static void set_element_width(vm_operand *elements, int n, int whole)
{
    for (int i = 0; i < n; i++) {
        elements[i].op_width = (int16_t)(whole / n);
        if (elements[i].is_sink)
            elements[i].width = elements[i].op_width;
    }
}

/* cvta of .global and .const: the generic address is the same number. */
bool vm_decode_cvta(vm_op *op)
{
    unsigned space = op->inst->mod[S_SPACE];
    const vm_operand *d = &op->operand[0], *s = &op->operand[1];
    if ((space != M_global && space != M_const) || s->is_address || d->width != s->width ||
        d->slot == VM_NO_SLOT)
        return false;
    op->lane.run = find_copy(d->width);
    return true;
}

bool vm_decode_mov(vm_decoder *decoder, vm_op *op)
{
    int n_sources = op->n_operands - op->n_results;
    vm_operand *d = op->operand, *s = op->operand + op->n_results;
    if (n_sources == 1 && s->source->kind == OPERAND_SREG) {
        op->kind = VM_KIND_EXEC;
        op->exec = exec_index;
        return is_index(op) || vm_ops_find(op);
    }
    if (s->is_address) {
        op->exec = vm_exec_local_address;
        op->kind = VM_KIND_EXEC;
        return d->slot != VM_NO_SLOT;
    }
    op->kind = VM_KIND_LANE;
    if (op->n_results == 1 && n_sources == 1)
        op->lane.run = find_copy(d->op_width);
    else if (op->n_results == 1) {
        set_element_width(s, n_sources, d->op_width);
        op->lane.run = find_packing(n_sources, d->op_width, true);
    } else if (n_sources == 1) {
        set_element_width(d, op->n_results, s->op_width);
        op->lane.run = find_packing(op->n_results, s->op_width, false);
    } else
        op->lane.run = find_move(d->op_width);
    (void)decoder;
    return op->lane.run != NULL;
}
