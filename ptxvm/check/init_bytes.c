/* Instructions that move bits without interpreting them: which bytes of the result are undefined if some
 * bytes of the sources are. A set of bytes is a mask, bit i for byte i. */
#include "check.h"
#include "ptxvm/exec/ops_common.h"

typedef struct bytes_of {
    const vm_warp *warp;
    const vm_op *op;
    const check_op *info;
    int lane;
} bytes_of;

static uint32_t full(int width)
{
    return (1u << width) - 1;
}

/* The undefined bytes of source k, and its value. */
static uint32_t source(const bytes_of *b, int k)
{
    int i = b->op->n_results + k;
    return check_lane_bytes(b->warp->frame, b->info->id[i], b->lane) & full(b->op->operand[i].width);
}

static uint64_t value(const bytes_of *b, int k)
{
    return ops_operand(b->warp, &b->op->operand[b->op->n_results + k], b->lane);
}

static int width_of(const bytes_of *b, int operand)
{
    return b->op->operand[operand].width;
}

static void result(const bytes_of *b, int i, uint32_t bytes)
{
    check_set_lane_bytes(b->warp->frame, b->info->id[i], b->lane,
                         bytes & (width_of(b, i) ? full(width_of(b, i)) : 1));
}

/* A predicate is one bit. */
static uint32_t predicate(const bytes_of *b, int k)
{
    return check_lane_bytes(b->warp->frame, b->info->id[b->op->n_results + k], b->lane);
}

static bool pass_copy(const bytes_of *b)
{
    result(b, 0, width_of(b, 0) ? source(b, 0) : predicate(b, 0));
    return true;
}

static bool pass_pack(const bytes_of *b)
{
    const vm_op *op = b->op;
    int n = op->n_operands - op->n_results;
    uint32_t all = 0, whole = n == 1 ? source(b, 0) : 0;
    for (int k = 0; k < n && n > 1; k++)
        all |= source(b, k) << k * op->operand[op->n_results + k].op_width;
    if (n > 1)
        result(b, 0, all);
    for (int i = 0; i < op->n_results && n == 1; i++)
        result(b, i, whole >> i * op->operand[i].op_width & full(op->operand[i].op_width));
    return true;
}

static bool pass_select(const bytes_of *b)
{
    if (predicate(b, 2))
        return false;
    const vm_operand *p = &b->op->operand[b->op->n_results + 2];
    result(b, 0, source(b, vm_predicate(b->warp, p) >> b->lane & 1 ? 0 : 1));
    return true;
}

/* Bytes in which the other source alone determines some bits: zeros for and, ones for or. Bit fields are
 * written and read in this way, and their bytes are only partly defined. */
static uint32_t decided(const bytes_of *b, int k, uint8_t neutral)
{
    uint32_t undefined = source(b, k), mask = 0;
    uint64_t v = value(b, k);
    for (int i = 0; i < width_of(b, 0) && i < 8; i++)
        mask |= (uint32_t)((uint8_t)(v >> 8 * i) != neutral && !(undefined >> i & 1)) << i;
    return mask;
}

/* Whether predicate k is defined and determines the result alone: a false one for and, a true one for or. */
static bool decides_result(const bytes_of *b, int k, unsigned operation)
{
    bool is_true = vm_predicate(b->warp, &b->op->operand[b->op->n_results + k]) >> b->lane & 1;
    return !predicate(b, k) && ((operation == M_and && !is_true) || (operation == M_or && is_true));
}

static bool pass_predicates(const bytes_of *b)
{
    pvm_opcode op = b->op->inst->op;
    unsigned operation = op == OP_and ? M_and : op == OP_or ? M_or : M_NONE;
    bool two = op != OP_not;
    bool settled = decides_result(b, 0, operation) || (two && decides_result(b, 1, operation));
    result(b, 0, settled ? 0 : predicate(b, 0) | (two ? predicate(b, 1) : 0));
    return true;
}

/* setp, testp: the result of comparing uninitialised bytes does no harm until something depends on it. */
static bool pass_compare(const bytes_of *b)
{
    bool combined = b->op->inst->mod[S_BOOL] != M_NONE;
    bool settled = combined && decides_result(b, 2, b->op->inst->mod[S_BOOL]);
    for (int i = 0; i < b->op->n_results; i++)
        result(b, i, !settled);
    return true;
}

static bool pass_bits(const bytes_of *b)
{
    if (!width_of(b, 0))
        return pass_predicates(b);
    uint32_t bytes = 0;
    pvm_opcode op = b->op->inst->op;
    int n = b->op->n_operands - b->op->n_results;
    for (int k = 0; k < (op == OP_lop3 ? 3 : n); k++)
        bytes |= source(b, k);
    if (op == OP_and)
        bytes &= ~(decided(b, 0, 0xFF) | decided(b, 1, 0xFF));
    if (op == OP_or)
        bytes &= ~(decided(b, 0, 0) | decided(b, 1, 0));
    result(b, 0, bytes);
    return true;
}

/* Bytes shifted up by a number of bits: one byte may end up in two. */
static uint64_t moved_up(uint64_t bytes, uint64_t bits)
{
    if (bits >= 64)
        return 0;
    return bytes << bits / 8 | (bits % 8 ? bytes << (bits / 8 + 1) : 0);
}

static uint64_t moved_down(uint64_t bytes, uint64_t bits)
{
    if (bits >= 128)
        return 0;
    return bytes >> bits / 8 | (bits % 8 ? bytes >> (bits / 8 + 1) : 0);
}

static bool is_signed(pvm_type type)
{
    return type == T_S8 || type == T_S16 || type == T_S32 || type == T_S64;
}

static bool pass_shift(const bytes_of *b)
{
    int width = width_of(b, 0);
    uint32_t bytes = source(b, 0);
    if (source(b, 1))
        return false;
    uint64_t by = (uint32_t)value(b, 1);
    if (b->op->inst->op == OP_shl)
        result(b, 0, (uint32_t)moved_up(bytes, by));
    else if (is_signed(pvm_slot_type(b->op->inst, S_TYPE)) && bytes >> (width - 1) & 1)
        result(b, 0, full(width));
    else
        result(b, 0, (uint32_t)moved_down(bytes, by));
    return true;
}

static bool pass_funnel(const bytes_of *b)
{
    if (source(b, 2))
        return false;
    uint64_t both = source(b, 0) | (uint64_t)source(b, 1) << 4, by = (uint32_t)value(b, 2);
    by = b->op->inst->mod[S_MODE] == M_clamp ? (by > 32 ? 32 : by) : by & 31;
    result(b, 0, (uint32_t)(b->op->inst->mod[S_DIR] == M_l ? moved_up(both, by) >> 4 : moved_down(both, by)));
    return true;
}

static bool pass_permute(const bytes_of *b)
{
    if (source(b, 2))
        return false;
    uint32_t both = source(b, 0) | source(b, 1) << 4, bytes = 0;
    uint64_t selector = value(b, 2);
    if (b->op->inst->mod[S_MODE])
        bytes = both ? 0xF : 0;
    else
        for (int i = 0; i < 4; i++)
            bytes |= (both >> (selector >> 4 * i & 7) & 1) << i;
    result(b, 0, bytes);
    return true;
}

/* The bytes touched by the `n` bits from `at` on; and those completely covered by them. */
static uint32_t touched(uint64_t at, uint64_t n)
{
    uint32_t bytes = 0;
    for (uint64_t i = 0; i < 8; i++)
        bytes |= (uint32_t)(8 * i < at + n && 8 * i + 8 > at) << i;
    return n ? bytes : 0;
}

static uint32_t filled(uint64_t at, uint64_t n)
{
    uint32_t bytes = 0;
    for (uint64_t i = 0; i < 8; i++)
        bytes |= (uint32_t)(8 * i >= at && 8 * i + 8 <= at + n) << i;
    return bytes;
}

static bool pass_extract(const bytes_of *b)
{
    if (source(b, 1) || source(b, 2))
        return false;
    uint32_t field = touched(value(b, 1) & 0xFF, value(b, 2) & 0xFF) & source(b, 0);
    result(b, 0, field ? full(width_of(b, 0)) : 0);
    return true;
}

static bool pass_insert(const bytes_of *b)
{
    if (source(b, 2) || source(b, 3))
        return false;
    uint64_t at = value(b, 2) & 0xFF, n = value(b, 3) & 0xFF;
    uint32_t in = (uint32_t)moved_up(source(b, 0) & touched(0, n), at) & touched(at, n);
    result(b, 0, (source(b, 1) & ~filled(at, n)) | in);
    return true;
}

static bool pass_convert(const bytes_of *b)
{
    pvm_type from = pvm_slot_type(b->op->inst, S_TYPE2), to = pvm_slot_type(b->op->inst, S_TYPE);
    int in = pvm_type_bits(from) / 8, out = pvm_type_bits(to) / 8, kept = in < out ? in : out;
    uint32_t bytes = source(b, 0) & full(kept);
    bool extends = kept < width_of(b, 0) && is_signed(kept == in ? from : to);
    if (extends && bytes >> (kept - 1) & 1)
        bytes |= full(width_of(b, 0)) & ~full(kept);
    result(b, 0, bytes);
    return true;
}

static bool pass_nothing(const bytes_of *b)
{
    (void)b;
    return false;
}

bool check_propagate(const vm_warp *warp, const vm_op *op, const check_op *info, int lane)
{
    static bool (*const pass[])(const bytes_of *) = {
        [CHECK_COMPUTE] = pass_nothing, [CHECK_COPY] = pass_copy,       [CHECK_PACK] = pass_pack,
        [CHECK_SELECT] = pass_select,   [CHECK_BITS] = pass_bits,       [CHECK_SHIFT] = pass_shift,
        [CHECK_FUNNEL] = pass_funnel,   [CHECK_PERMUTE] = pass_permute, [CHECK_EXTRACT] = pass_extract,
        [CHECK_INSERT] = pass_insert,   [CHECK_CONVERT] = pass_convert, [CHECK_COMPARE] = pass_compare,
        [CHECK_SHUFFLE] = pass_nothing,
    };
    const bytes_of b = {warp, op, info, lane};
    return pass[info->action](&b);
}
