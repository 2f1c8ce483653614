/* atom, red, membar and fence. Lanes act in increasing order. Memory that several host threads may access is
 * changed by compare-and-exchange, so that integer red of blocks that run in parallel adds up. */
#include <math.h>

#include "ops_common.h"

/* ---- 16-bit floats: small helpers of this file. A sum of two, computed in f32 and then rounded, is
 * correctly rounded: 24 >= 2 * 11 + 2. ---- */

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_of_f16(uint32_t h)
{
    uint32_t exponent = h >> 10 & 31, fraction = h & 0x3FF, sign = (h & 0x8000) << 16;
    if (exponent == 31)
        return f32_of(sign | 0x7F800000 | fraction << 13);
    float magnitude = exponent ? f32_of((exponent + 112) << 23 | fraction << 13) : (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* Drops the low `shift` bits, rounding to nearest, ties to even. */
static uint32_t round_off(uint32_t value, int shift)
{
    return (value + (1u << (shift - 1)) - 1 + (value >> shift & 1)) >> shift;
}

static uint32_t f16_of_f32(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000)
        return 0x7FFF;
    if (magnitude >= 0x47800000) /* 65536 */
        return sign | 0x7C00;
    if (magnitude <
        0x38800000) /* below the smallest normal: adding 0.5 leaves units of 2^-24 in the low bits */
        return sign | (bits_of(f32_of(magnitude) + 0.5f) - 0x3F000000);
    return sign | round_off(magnitude - 0x38000000, 13);
}

static float f32_of_bf16(uint32_t h)
{
    return f32_of(h << 16);
}

static uint32_t bf16_of_f32(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000)
        return 0x7FFF;
    return (bits >> 16 & 0x8000) | round_off(magnitude, 16);
}

/* ---- the operations ---- */

/* clang-format off */
#define OPERATION(name, expression) \
    static uint64_t name(uint64_t old, uint64_t b, uint64_t c) \
    { (void)old, (void)b, (void)c; return expression; }

OPERATION(op_and, old & b)
OPERATION(op_or, old | b)
OPERATION(op_xor, old ^ b)
OPERATION(op_exch, b)
OPERATION(op_cas, old == b ? c : old)
OPERATION(op_add, old + b)
OPERATION(op_inc, (uint32_t)old >= (uint32_t)b ? 0 : old + 1)
OPERATION(op_dec, (uint32_t)old == 0 || (uint32_t)old > (uint32_t)b ? b : old - 1)
OPERATION(op_min_u32, (uint32_t)old < (uint32_t)b ? old : b)
OPERATION(op_max_u32, (uint32_t)old > (uint32_t)b ? old : b)
OPERATION(op_min_s32, (int32_t)(uint32_t)old < (int32_t)(uint32_t)b ? old : b)
OPERATION(op_max_s32, (int32_t)(uint32_t)old > (int32_t)(uint32_t)b ? old : b)
OPERATION(op_min_u64, old < b ? old : b)
OPERATION(op_max_u64, old > b ? old : b)
OPERATION(op_min_s64, (int64_t)old < (int64_t)b ? old : b)
OPERATION(op_max_s64, (int64_t)old > (int64_t)b ? old : b)
/* clang-format on */

static uint32_t flush(uint32_t bits)
{
    return bits & 0x7F800000 ? bits : bits & 0x80000000;
}

static uint32_t add_f32(uint32_t a, uint32_t b)
{
    float sum = f32_of(a) + f32_of(b);
    return isnan(sum) ? 0x7FFFFFFF : bits_of(sum);
}

static uint64_t op_add_f32(uint64_t old, uint64_t b, uint64_t c)
{
    (void)c;
    return add_f32((uint32_t)old, (uint32_t)b);
}

/* ISA, atom: "atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero;
 * whereas atom.add.f32 on shared memory supports subnormal inputs and results and doesn't flush them to
 * zero." */
static uint64_t op_add_f32_flush(uint64_t old, uint64_t b, uint64_t c)
{
    (void)c;
    return flush(add_f32(flush((uint32_t)old), flush((uint32_t)b)));
}

static uint64_t op_add_f64(uint64_t old, uint64_t b, uint64_t c)
{
    (void)c;
    double x, y;
    memcpy(&x, &old, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? UINT64_C(0x7FF8000000000000) : bits;
}

typedef struct half_kind {
    float (*widen)(uint32_t h);
    uint32_t (*narrow)(float value);
    uint32_t infinity;
} half_kind;
static const half_kind f16_kind = {f32_of_f16, f16_of_f32, 0x7C00},
                       bf16_kind = {f32_of_bf16, bf16_of_f32, 0x7F80};

static uint32_t half_add(const half_kind *kind, uint32_t a, uint32_t b)
{
    return kind->narrow(kind->widen(a) + kind->widen(b));
}

/* Like min and max of the ISA: a number wins over a NaN, and -0 is less than +0. */
static uint32_t half_pick(const half_kind *kind, uint32_t a, uint32_t b, bool larger)
{
    bool a_nan = (a & 0x7FFF) > kind->infinity, b_nan = (b & 0x7FFF) > kind->infinity;
    if (a_nan)
        return b_nan ? 0x7FFF : b;
    if (b_nan)
        return a;
    int32_t x = a & 0x8000 ? -(int32_t)(a & 0x7FFF) - 1 : (int32_t)a;
    int32_t y = b & 0x8000 ? -(int32_t)(b & 0x7FFF) - 1 : (int32_t)b;
    return (x < y) != larger ? a : b;
}

/* clang-format off */
#define HALVES(type) \
    OPERATION(op_add_##type, half_add(&type##_kind, (uint16_t)old, (uint16_t)b)) \
    OPERATION(op_min_##type, half_pick(&type##_kind, (uint16_t)old, (uint16_t)b, false)) \
    OPERATION(op_max_##type, half_pick(&type##_kind, (uint16_t)old, (uint16_t)b, true)) \
    OPERATION(op_add_##type##x2, op_add_##type(old, b, 0) | op_add_##type(old >> 16, b >> 16, 0) << 16) \
    OPERATION(op_min_##type##x2, op_min_##type(old, b, 0) | op_min_##type(old >> 16, b >> 16, 0) << 16) \
    OPERATION(op_max_##type##x2, op_max_##type(old, b, 0) | op_max_##type(old >> 16, b >> 16, 0) << 16)
HALVES(f16)
HALVES(bf16)

typedef struct operation_row {
    unsigned operation; /* pvm_mod */
    pvm_type type;      /* T_NONE: any */
    atomic_fn *apply;
} operation_row;

static const operation_row operations[] = {
    {M_and, T_NONE, op_and}, {M_or, T_NONE, op_or}, {M_xor, T_NONE, op_xor}, {M_exch, T_NONE, op_exch},
    {M_cas, T_NONE, op_cas}, {M_inc, T_NONE, op_inc}, {M_dec, T_NONE, op_dec},
    {M_add, T_U32, op_add}, {M_add, T_S32, op_add}, {M_add, T_U64, op_add}, {M_add, T_S64, op_add},
    {M_add, T_F32, op_add_f32}, {M_add, T_F64, op_add_f64},
    {M_add, T_F16, op_add_f16}, {M_add, T_F16X2, op_add_f16x2},
    {M_add, T_BF16, op_add_bf16}, {M_add, T_BF16X2, op_add_bf16x2},
    {M_min, T_U32, op_min_u32}, {M_min, T_S32, op_min_s32},
    {M_min, T_U64, op_min_u64}, {M_min, T_S64, op_min_s64},
    {M_min, T_F16, op_min_f16}, {M_min, T_F16X2, op_min_f16x2},
    {M_min, T_BF16, op_min_bf16}, {M_min, T_BF16X2, op_min_bf16x2},
    {M_max, T_U32, op_max_u32}, {M_max, T_S32, op_max_s32},
    {M_max, T_U64, op_max_u64}, {M_max, T_S64, op_max_s64},
    {M_max, T_F16, op_max_f16}, {M_max, T_F16X2, op_max_f16x2},
    {M_max, T_BF16, op_max_bf16}, {M_max, T_BF16X2, op_max_bf16x2},
};
/* clang-format on */

static const operation_row *find_row(unsigned operation, pvm_type type)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].operation == operation &&
            (operations[i].type == type || operations[i].type == T_NONE))
            return &operations[i];
    return NULL;
}

atomic_fn *ops_atomic_find(unsigned operation, pvm_type type)
{
    const operation_row *row = find_row(operation, type);
    return row ? row->apply : NULL;
}

/* ---- applying them ---- */

/* clang-format off */
#define APPLY(bits) \
    static uint64_t apply_##bits(atomic_fn *apply, uint8_t *host, bool parallel, uint64_t b, uint64_t c) \
    { \
        vm_u##bits *p = (vm_u##bits *)(void *)host; \
        uint##bits##_t old = __atomic_load_n(p, __ATOMIC_RELAXED); \
        if (!parallel) \
            *p = (uint##bits##_t)apply(old, b, c); \
        else \
            while (!__atomic_compare_exchange_n(p, &old, (uint##bits##_t)apply(old, b, c), true, \
                                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) \
                ; \
        return old; \
    }
/* clang-format on */
APPLY(16)
APPLY(32)
APPLY(64)

uint64_t ops_atomic_apply(atomic_fn *apply, uint8_t *host, int bytes, bool parallel, uint64_t b, uint64_t c)
{
    if (apply == op_add_f32 && parallel)
        apply = op_add_f32_flush;
    if (bytes == 4)
        return apply_32(apply, host, parallel, b, c);
    return bytes == 2 ? apply_16(apply, host, parallel, b, c) : apply_64(apply, host, parallel, b, c);
}

static uint64_t value_at(const vm_warp *warp, const vm_operand *operand, int index, int lane)
{
    return operand ? ops_operand(warp, &operand[index], lane) : 0;
}

/* The operands: results (none for red), the address, `count` elements of b, and for cas as many of c. */
typedef struct atomic_operands {
    const vm_operand *d, *address, *b, *c;
    int count;
} atomic_operands;

static atomic_operands operands_of(const vm_op *op)
{
    atomic_operands o = {NULL, op->operand, NULL, NULL, 1};
    unsigned vec = op->inst->mod[S_VEC];
    o.count = vec == M_v2 ? 2 : vec == M_v4 ? 4 : vec == M_v8 ? 8 : 1;
    if (op->inst->op == OP_atom) {
        o.d = op->operand;
        o.address += o.count;
    }
    o.b = o.address + 1;
    if (op->inst->mod[S_OP] == M_cas)
        o.c = o.b + o.count;
    return o;
}

vm_result ops_exec_atomic(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    atomic_operands o = operands_of(op);
    pvm_type type = pvm_slot_type(op->inst, S_TYPE);
    atomic_fn *apply = ((const operation_row *)op->extra)->apply;
    int size = pvm_type_bits(type) / 8;
    vm_access access;
    access.bytes = access.align = (uint32_t)(size * o.count);
    access.space = o.address->space;
    access.kind = VM_ATOMIC;
    if (!vm_access_operand(warp, op, o.address, &access, mask))
        return VM_FAULT;
    VM_EACH_LANE(lane, mask)
    for (int e = 0; e < o.count; e++) {
        uint64_t b = value_at(warp, o.b, e, (int)lane), c = value_at(warp, o.c, e, (int)lane);
        uint64_t old =
            ops_atomic_apply(apply, vm_host(&access, lane) + e * size, size, access.parallel, b, c);
        warp->wrote |= apply(old, b, c) != old;
        if (o.d)
            ops_result(warp, &o.d[e], (int)lane, old);
    }
    return VM_NEXT;
}

/* exch and cas of 128 bits: kernels with atom on memory that blocks share run on one host thread, so two
 * halves are a single access. */
static vm_result exec_atomic_128(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    atomic_operands o = operands_of(op);
    vm_access access;
    access.bytes = access.align = 16;
    access.space = o.address->space;
    access.kind = VM_ATOMIC;
    if (!vm_access_operand(warp, op, o.address, &access, mask))
        return VM_FAULT;
    const vm_u64 *b = vm_value(warp, o.b), *c = o.c ? vm_value(warp, o.c) : NULL;
    VM_EACH_LANE(lane, mask)
    {
        uint8_t *host = vm_host(&access, lane);
        uint64_t old[2] = {VM_LOAD_RELAXED(64, host), VM_LOAD_RELAXED(64, host + 8)};
        const vm_u64 *value = c ? c : b;
        if (!c || (old[0] == b[2 * lane] && old[1] == b[2 * lane + 1])) {
            VM_STORE_RELAXED(64, host, value[2 * lane]);
            VM_STORE_RELAXED(64, host + 8, value[2 * lane + 1]);
        }
        if (o.d && !o.d->is_sink)
            memcpy((uint8_t *)vm_value(warp, o.d) + 16 * lane, old, 16);
    }
    return VM_NEXT;
}

bool ops_find_atomic(vm_op *op)
{
    pvm_type type = pvm_slot_type(op->inst, S_TYPE);
    if (op->inst->mod[S_FLAG] == M_mbarrier__complete_tx__bytes)
        op->exec = ops_exec_async;
    else
        op->exec = type == T_B128 ? exec_atomic_128 : ops_exec_atomic;
    op->extra = (void *)(uintptr_t)find_row(op->inst->mod[S_OP], type);
    return op->extra;
}
