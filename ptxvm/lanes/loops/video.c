/* The video instructions: parts of words, extended, operated on, saturated, then combined with or merged into
 * c.
 *
 * These are slow on a GPU too (it emulates them), so the modifiers are read once per warp and the lanes are
 * processed one by one. The intermediate results are wide enough never to overflow (except vshl). */
#include "loops.h"

typedef __int128 wide;

typedef wide video_fn(wide a, wide b);

static wide video_add(wide a, wide b)
{
    return a + b;
}

static wide video_sub(wide a, wide b)
{
    return a - b;
}

static wide video_absdiff(wide a, wide b)
{
    return a < b ? b - a : a - b;
}

static wide video_min(wide a, wide b)
{
    return a < b ? a : b;
}

static wide video_max(wide a, wide b)
{
    return a > b ? a : b;
}

/* Rounds halves up, but down if the sum is negative. */
static wide video_avrg(wide a, wide b)
{
    return (a + b >= 0 ? a + b + 1 : a + b) >> 1;
}

/* Amounts are 0 to 32. The result has 34 bits (PTX ISA, scalar video instructions): bits shifted beyond them
 * are lost before saturation. */
static wide video_shl(wide a, wide b)
{
    const uint64_t low = (uint64_t)(a * ((wide)1 << b)) << 30;
    return (int64_t)low >> 30;
}

static wide video_shr(wide a, wide b)
{
    return a >> b;
}

static video_fn *const functions[OP_COUNT] = {
    [OP_vadd] = video_add,         [OP_vadd2] = video_add,         [OP_vadd4] = video_add,
    [OP_vsub] = video_sub,         [OP_vsub2] = video_sub,         [OP_vsub4] = video_sub,
    [OP_vabsdiff] = video_absdiff, [OP_vabsdiff2] = video_absdiff, [OP_vabsdiff4] = video_absdiff,
    [OP_vmin] = video_min,         [OP_vmin2] = video_min,         [OP_vmin4] = video_min,
    [OP_vmax] = video_max,         [OP_vmax2] = video_max,         [OP_vmax4] = video_max,
    [OP_vavrg2] = video_avrg,      [OP_vavrg4] = video_avrg,       [OP_vshl] = video_shl,
    [OP_vshr] = video_shr,
};

static bool compare(unsigned cmp, wide a, wide b)
{
    return cmp == M_eq   ? a == b
           : cmp == M_ne ? a != b
           : cmp == M_lt ? a < b
           : cmp == M_le ? a <= b
           : cmp == M_gt ? a > b
                         : a >= b;
}

static wide operate(const pvm_inst *inst, wide a, wide b)
{
    return inst->mod[S_CMP] ? compare(inst->mod[S_CMP], a, b) : functions[inst->op](a, b);
}

/* A part of a word: `bits` bits starting at bit `at`, optionally sign-extended. */
typedef struct part {
    int at, bits;
    bool is_signed;
} part;

static part part_of(const pvm_inst *inst, pvm_slot selector, pvm_slot type)
{
    const unsigned mod = inst->mod[selector];
    const bool is_signed = pvm_slot_type(inst, type) == T_S32;
    if (mod >= M_b0 && mod <= M_b3)
        return (part){8 * (int)(mod - M_b0), 8, is_signed};
    if (mod >= M_h0 && mod <= M_h1)
        return (part){16 * (int)(mod - M_h0), 16, is_signed};
    return (part){0, 32, is_signed};
}

static wide extract(const part p, uint64_t word)
{
    const uint64_t bits = word >> p.at & (((uint64_t)1 << p.bits) - 1);
    const bool negative = p.is_signed && bits >> (p.bits - 1);
    return (wide)bits - (negative ? (wide)1 << p.bits : 0);
}

static uint32_t merge(const part p, uint32_t word, uint32_t value)
{
    const uint64_t ones = (((uint64_t)1 << p.bits) - 1) << p.at;
    return (uint32_t)((word & ~ones) | ((uint64_t)value << p.at & ones));
}

static wide clamp_to(int bits, bool is_signed, wide x)
{
    const wide low = is_signed ? -((wide)1 << (bits - 1)) : 0;
    const wide high = ((wide)1 << (is_signed ? bits - 1 : bits)) - 1;
    return x < low ? low : x > high ? high : x;
}

static wide shift_amount(const pvm_inst *inst, wide b)
{
    return inst->mod[S_MODE] == M_wrap ? b & 31 : b < 32 ? b : 32;
}

/* The second operation treats the result and c as numbers of the result's type. */
static uint32_t second_operation(unsigned mod, bool is_signed, uint32_t x, uint32_t c)
{
    const part whole = {0, 32, is_signed};
    const wide a = extract(whole, x), b = extract(whole, c);
    return (uint32_t)(mod == M_add ? a + b : mod == M_min ? video_min(a, b) : video_max(a, b));
}

static void lane_video(LANE_ARGS)
{
    uint32_t *d = LANE_OUT(uint32_t, 0);
    const uint32_t *pa = LANE_IN(uint32_t, 0), *pb = LANE_IN(uint32_t, 1);
    const uint32_t *pc = inst->n_operands - inst->n_results > 2 ? LANE_IN(uint32_t, 2) : pa;
    const part a = part_of(inst, S_ASEL, S_TYPE2), b = part_of(inst, S_BSEL, S_TYPE3);
    const part result = part_of(inst, S_DSEL, S_TYPE);
    const bool shifts = inst->op == OP_vshl || inst->op == OP_vshr, sat = inst->mod[S_SAT] == M_sat;
    for (int i = 0; i < WARP; i++) {
        const wide right = extract(b, pb[i]);
        wide x = operate(inst, extract(a, pa[i]), shifts ? shift_amount(inst, right) : right);
        if (sat)
            x = clamp_to(result.bits, result.is_signed, x);
        if (inst->mod[S_OP])
            d[i] = second_operation(inst->mod[S_OP], result.is_signed, (uint32_t)x, pc[i]);
        else
            d[i] = merge(result, pc[i], (uint32_t)x);
    }
}

/* vmad: a*b + c, where the product or c may be negated, or one more; scaled down; saturated according to the
 * sign of the operands. */
static void lane_vmad(LANE_ARGS)
{
    uint32_t *d = LANE_OUT(uint32_t, 0);
    const uint32_t *pa = LANE_IN(uint32_t, 0), *pb = LANE_IN(uint32_t, 1), *pc = LANE_IN(uint32_t, 2);
    const pvm_operand *source = inst->operand + inst->n_results;
    const part a = part_of(inst, S_ASEL, S_TYPE2), b = part_of(inst, S_BSEL, S_TYPE3);
    const bool minus_product = source[0].negated != source[1].negated, minus_c = source[2].negated;
    const bool is_signed = a.is_signed || b.is_signed || minus_product || minus_c;
    const part whole = {0, 32, is_signed};
    const int scale = inst->mod[S_SCALE] == M_shr7 ? 7 : inst->mod[S_SCALE] == M_shr15 ? 15 : 0;
    for (int i = 0; i < WARP; i++) {
        const wide product = extract(a, pa[i]) * extract(b, pb[i]), c = extract(whole, pc[i]);
        wide x = (minus_product ? -product : product) + (minus_c ? -c : c) + (inst->mod[S_FLAG] == M_po);
        x >>= scale;
        d[i] = (uint32_t)(inst->mod[S_SAT] == M_sat ? clamp_to(32, is_signed, x) : x);
    }
}

/* Two halves or four bytes at once, each source lane selected from those of a and b together. */
static void lane_simd(LANE_ARGS)
{
    const bool halves = inst->op == OP_vadd2 || inst->op == OP_vsub2 || inst->op == OP_vavrg2 ||
                        inst->op == OP_vabsdiff2 || inst->op == OP_vmin2 || inst->op == OP_vmax2 ||
                        inst->op == OP_vset2;
    const int n = halves ? 2 : 4, bits = halves ? 16 : 8;
    const bool result_signed = pvm_slot_type(inst, S_TYPE) == T_S32, sat = inst->mod[S_SAT] == M_sat;
    const bool accumulate = inst->mod[S_OP] == M_add;
    const int asel = MOD_IS_LANES(inst->mod[S_ASEL]) ? inst->mod[S_ASEL] - M_LANES : halves ? 010 : 03210;
    const int bsel = MOD_IS_LANES(inst->mod[S_BSEL]) ? inst->mod[S_BSEL] - M_LANES : halves ? 032 : 07654;
    const int mask = MOD_IS_LANES(inst->mod[S_DSEL]) ? inst->mod[S_DSEL] - M_LANES : (1 << n) - 1;
    part a[4], b[4];
    for (int k = 0; k < n; k++) {
        a[k] = (part){bits * (asel >> 3 * k & 7), bits, pvm_slot_type(inst, S_TYPE2) == T_S32};
        b[k] = (part){bits * (bsel >> 3 * k & 7), bits, pvm_slot_type(inst, S_TYPE3) == T_S32};
    }
    uint32_t *d = LANE_OUT(uint32_t, 0);
    const uint32_t *pa = LANE_IN(uint32_t, 0), *pb = LANE_IN(uint32_t, 1), *pc = LANE_IN(uint32_t, 2);
    for (int i = 0; i < WARP; i++) {
        const uint64_t both = (uint64_t)pb[i] << 32 | pa[i];
        uint32_t r = pc[i];
        for (int k = 0; k < n; k++) {
            wide x = operate(inst, extract(a[k], both), extract(b[k], both));
            if (sat)
                x = clamp_to(bits, result_signed, x);
            if (mask >> k & 1)
                r = accumulate ? r + (uint32_t)x : merge((part){bits * k, bits, false}, r, (uint32_t)x);
        }
        d[i] = r;
    }
}

/* Rows for all signs of the result and the first source; the second source's type is not part of the key. */
#define VIDEO_ANY (V_SAT | V_WRAP)
#define SIGNS(op, run)                                                                                       \
    {OP_##op, T_U32, T_U32, 0, 0, VIDEO_ANY, run}, {OP_##op, T_U32, T_S32, 0, 0, VIDEO_ANY, run},            \
        {OP_##op, T_S32, T_U32, 0, 0, VIDEO_ANY, run}, {OP_##op, T_S32, T_S32, 0, 0, VIDEO_ANY, run},
#define SIMD(op) SIGNS(op##2, lane_simd) SIGNS(op##4, lane_simd)

static const lane_row rows[] = {
    SIGNS(vadd, lane_video) SIGNS(vsub, lane_video) SIGNS(vabsdiff, lane_video) SIGNS(vmin, lane_video) /**/
    SIGNS(vmax, lane_video) SIGNS(vshl, lane_video) SIGNS(vshr, lane_video) SIGNS(vset, lane_video)     /**/
    SIGNS(vmad, lane_vmad) SIMD(vadd) SIMD(vsub) SIMD(vavrg) SIMD(vabsdiff) SIMD(vmin) SIMD(vmax) SIMD(vset)};

const lane_table LANE_LEVEL(lanes_video) = {rows, sizeof rows / sizeof *rows};
