/* ld, ldu, st, and cache hints, which have no effect here. */
#include "ops_common.h"

/* One element of a load: bytes in memory, bytes of the destination register, whether it is sign-extended.
 * Inlined with constants, so that each instance is a loop of plain moves. */
static inline __attribute__((always_inline)) uint64_t fetch(const uint8_t *host, int bytes, bool parallel)
{
    if (parallel)
        return vm_load_relaxed(host, bytes);
    switch (bytes) {
    case 1:
        return *host;
    case 2:
        return *(const vm_u16 *)(const void *)host;
    case 4:
        return *(const vm_u32 *)(const void *)host;
    default:
        return *(const vm_u64 *)(const void *)host;
    }
}

static inline __attribute__((always_inline)) uint64_t extend(uint64_t value, int bytes, bool sign)
{
    int shift = 64 - 8 * bytes;
    return sign ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

typedef void move_fn(void *reg, const vm_access *access, uint32_t offset, uint32_t mask);

static inline __attribute__((always_inline)) void load(void *reg, const vm_access *access, uint32_t offset,
                                                       uint32_t mask, int bytes, int width, bool sign,
                                                       bool parallel)
{
#define TAKE(i, host)                                                                                        \
    ops_set(reg, width, (int)(i), extend(fetch((host) + offset, bytes, parallel), bytes, sign))
    if (access->contiguous) {
        const uint8_t *host = vm_host(access, 0);
        if (!parallel && bytes == width && access->bytes == (uint32_t)bytes)
            memcpy(reg, host, (size_t)(WARP * bytes));
        else
            for (uint64_t i = 0; i < WARP; i++)
                TAKE(i, host + i * access->bytes);
    } else if (mask == UINT32_MAX && access->flat) {
        for (uint32_t i = 0; i < WARP; i++)
            TAKE(i, access->origin + (access->address[i] - access->base) + i * access->stride);
    } else {
        VM_EACH_LANE(i, mask)
        TAKE(i, vm_host(access, i));
    }
#undef TAKE
}

static inline __attribute__((always_inline)) void store(const void *reg, const vm_access *access,
                                                        uint32_t offset, uint32_t mask, int bytes, int width,
                                                        bool parallel)
{
#define GIVE(i, host) vm_store_relaxed((host) + offset, bytes, ops_get(reg, width, (int)(i)))
    if (access->contiguous) {
        uint8_t *host = vm_host(access, 0);
        if (!parallel && bytes == width && access->bytes == (uint32_t)bytes)
            memcpy(host, reg, (size_t)(WARP * bytes));
        else
            for (uint64_t i = 0; i < WARP; i++)
                GIVE(i, host + i * access->bytes);
    } else if (mask == UINT32_MAX && access->flat) {
        for (uint32_t i = 0; i < WARP; i++)
            GIVE(i, access->origin + (access->address[i] - access->base) + i * access->stride);
    } else {
        VM_EACH_LANE(i, mask)
        GIVE(i, vm_host(access, i));
    }
#undef GIVE
}

/* 16 bytes: two loads or stores of 8. */
static void load_128(void *reg, const vm_access *access, uint32_t offset, uint32_t mask)
{
    uint64_t *d = reg;
    VM_EACH_LANE(i, mask)
    {
        d[2 * i] = fetch(vm_host(access, i) + offset, 8, true);
        d[2 * i + 1] = fetch(vm_host(access, i) + offset + 8, 8, true);
    }
}

static void store_128(void *reg, const vm_access *access, uint32_t offset, uint32_t mask)
{
    const uint64_t *s = reg;
    VM_EACH_LANE(i, mask)
    {
        vm_store_relaxed(vm_host(access, i) + offset, 8, s[2 * i]);
        vm_store_relaxed(vm_host(access, i) + offset + 8, 8, s[2 * i + 1]);
    }
}

/* clang-format off */
#define PAIRS(X) \
    X(1, 1) X(1, 2) X(1, 4) X(1, 8) X(2, 2) X(2, 4) X(2, 8) X(4, 4) X(4, 8) X(8, 8)
#define LOADS(bytes, width) \
    static void load_##bytes##_##width(void *r, const vm_access *a, uint32_t o, uint32_t m) \
    { load(r, a, o, m, bytes, width, false, false); } \
    static void load_##bytes##_##width##_s(void *r, const vm_access *a, uint32_t o, uint32_t m) \
    { load(r, a, o, m, bytes, width, true, false); } \
    static void load_##bytes##_##width##_p(void *r, const vm_access *a, uint32_t o, uint32_t m) \
    { load(r, a, o, m, bytes, width, false, true); } \
    static void load_##bytes##_##width##_sp(void *r, const vm_access *a, uint32_t o, uint32_t m) \
    { load(r, a, o, m, bytes, width, true, true); }
#define STORES(bytes, width) \
    static void store_##bytes##_##width(void *r, const vm_access *a, uint32_t o, uint32_t m) \
    { store(r, a, o, m, bytes, width, false); } \
    static void store_##bytes##_##width##_p(void *r, const vm_access *a, uint32_t o, uint32_t m) \
    { store(r, a, o, m, bytes, width, true); }
PAIRS(LOADS)
PAIRS(STORES)

/* By bytes in memory, bytes of the register, [sign][parallel]. */
#define LOAD_ROW(bytes, width) \
    [bytes][width] = {{load_##bytes##_##width, load_##bytes##_##width##_p}, \
                      {load_##bytes##_##width##_s, load_##bytes##_##width##_sp}},
#define STORE_ROW(bytes, width) [bytes][width] = {store_##bytes##_##width, store_##bytes##_##width##_p},
static move_fn *const loads[17][17][2][2] = {PAIRS(LOAD_ROW)
                                             [16][16] = {{load_128, load_128}, {load_128, load_128}}};
static move_fn *const stores[17][17][2] = {PAIRS(STORE_ROW) [16][16] = {store_128, store_128}};
/* clang-format on */

static bool is_signed(pvm_type type)
{
    return type == T_S8 || type == T_S16 || type == T_S32 || type == T_S64;
}

enum { BULK_BYTES = 16 << 20 }; /* maximum of st.bulk */

/* extra of ld and st: number of elements, and bytes of each. */
typedef struct vector_shape {
    uint8_t count, size;
} vector_shape;

/* clang-format off */
#define SHAPES(count) {{count, 1}, {count, 2}, {count, 4}, {count, 8}, {count, 16}}
static const vector_shape shapes[4][5] = {SHAPES(1), SHAPES(2), SHAPES(4), SHAPES(8)};
/* clang-format on */

static vm_result exec_ld(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vector_shape *shape = op->extra;
    const vm_operand *address = &op->operand[shape->count];
    vm_access access;
    access.bytes = access.align = (uint32_t)shape->count * shape->size;
    access.space = address->space;
    access.kind = VM_LOAD;
    if (!vm_access_operand(warp, op, address, &access, mask))
        return VM_FAULT;
    bool sign = is_signed(pvm_slot_type(op->inst, S_TYPE));
    for (uint32_t e = 0; e < shape->count; e++) {
        const vm_operand *d = &op->operand[e];
        if (!d->is_sink)
            loads[shape->size][d->width][sign][access.parallel](vm_value(warp, d), &access, e * shape->size,
                                                                mask);
    }
    return VM_NEXT;
}

vm_result ops_exec_st(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vector_shape *shape = op->extra;
    vm_access access;
    access.bytes = access.align = (uint32_t)shape->count * shape->size;
    access.space = op->operand[0].space;
    access.kind = VM_STORE;
    if (!vm_access_operand(warp, op, &op->operand[0], &access, mask))
        return VM_FAULT;
    warp->wrote |= access.parallel || access.space == SPACE_SHARED;
    for (uint32_t e = 0; e < shape->count; e++) {
        const vm_operand *s = &op->operand[1 + e];
        if (!s->is_sink)
            stores[shape->size][s->width][access.parallel](vm_value(warp, s), &access, e * shape->size, mask);
    }
    return VM_NEXT;
}

/* st.bulk: writes zeros to a range of shared memory. [address], bytes, 0 */
static vm_result exec_st_bulk(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *to = &op->operand[0];
    uint64_t address[WARP];
    vm_addresses(warp, to, mask, address);
    VM_EACH_LANE(lane, mask)
    {
        uint64_t bytes = ops_operand(warp, &op->operand[1], (int)lane);
        if (bytes % 8 || bytes > BULK_BYTES)
            return vm_fault(warp, op, (int)lane, PTXVM_ERROR_EXECUTION,
                            "st.bulk of %llu bytes: it writes a multiple of 8, at most %d",
                            (unsigned long long)bytes, BULK_BYTES);
        if (to->space == SPACE_NONE && vm_space_of(address[lane]) != SPACE_SHARED)
            return vm_fault(warp, op, (int)lane, PTXVM_ERROR_ADDRESS,
                            "st.bulk writes shared memory, and 0x%llx is not in it",
                            (unsigned long long)address[lane]);
        if (!bytes)
            continue;
        uint8_t *host = vm_translate_lane(warp, op, (int)lane, to->space, address[lane], bytes, 8, VM_STORE);
        if (!host)
            return VM_FAULT;
        memset(host, 0, bytes);
    }
    return VM_NEXT;
}

static const vector_shape *shape_of(const pvm_inst *inst)
{
    unsigned vec = inst->mod[S_VEC];
    int length = vec == M_v2 ? 1 : vec == M_v4 ? 2 : vec == M_v8 ? 3 : 0;
    int bytes = pvm_type_bits(pvm_slot_type(inst, S_TYPE)) / 8;
    return bytes ? &shapes[length][__builtin_ctz((unsigned)bytes)] : NULL;
}

bool ops_find_ld(vm_op *op)
{
    op->exec = exec_ld;
    op->extra = (void *)(uintptr_t)shape_of(op->inst);
    return op->extra;
}

bool ops_find_st(vm_op *op)
{
    op->exec = op->inst->mod[S_FLAG] == M_mbarrier__complete_tx__bytes ? ops_exec_async : ops_exec_st;
    if (op->inst->mod[S_SUB] == M_bulk) {
        op->exec = exec_st_bulk;
        return true;
    }
    op->extra = (void *)(uintptr_t)shape_of(op->inst);
    return op->extra;
}
