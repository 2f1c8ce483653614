/* Comparison and selection: setp set selp slct. A comparison is a loop that produces a mask of 32 bits;
 * combining masks with a predicate, or turning them into numbers, is shared. */
#include "real.h"

static uint32_t combine(const pvm_inst *inst, uint32_t mask, const void *const *src)
{
    const unsigned mod = inst->mod[S_BOOL];
    return mod == M_and   ? mask & LANE_MASK(2)
           : mod == M_or  ? mask | LANE_MASK(2)
           : mod == M_xor ? mask ^ LANE_MASK(2)
                          : mask;
}

/* setp p|q: q is the negated comparison, combined in the same way; for a pair of halves it is that of the
 * upper one. */
static void store_predicates(void *const *dst, const void *const *src, const pvm_inst *inst, uint32_t p,
                             uint32_t q)
{
    q = combine(inst, q, src);
    *(uint32_t *)dst[0] = combine(inst, p, src);
    if (inst->n_results > 1)
        *(uint32_t *)dst[1] = q;
}

static void store_words(uint32_t *d, uint32_t truth, uint32_t mask)
{
    LANE_FOR(WARP)
    d[i] = mask & lane_bit[i] ? truth : 0;
}

static void store_halves(uint16_t *d, uint16_t truth, uint32_t mask)
{
    LANE_FOR(WARP)
    d[i] = mask & lane_bit[i] ? truth : 0;
}

/* set: true is 1.0 for a float, all ones for an integer. */
static void store_truth(void *const *dst, const void *const *src, const pvm_inst *inst, uint32_t mask)
{
    mask = combine(inst, mask, src);
    switch (pvm_slot_type(inst, S_TYPE)) {
    case T_F16:
        store_halves(dst[0], 0x3C00, mask);
        break;
    case T_BF16:
        store_halves(dst[0], 0x3F80, mask);
        break;
    case T_U16:
    case T_S16:
        store_halves(dst[0], 0xFFFF, mask);
        break;
    case T_F32:
        store_words(dst[0], 0x3F800000, mask);
        break;
    default:
        store_words(dst[0], UINT32_MAX, mask);
    }
}

static void store_truth_pair(void *const *dst, const void *const *src, const pvm_inst *inst, uint32_t low,
                             uint32_t high)
{
    const pvm_type type = pvm_slot_type(inst, S_TYPE);
    const uint32_t truth = type == T_F16X2 ? 0x3C00 : type == T_BF16X2 ? 0x3F80 : 0xFFFF;
    uint32_t *d = dst[0];
    low = combine(inst, low, src);
    high = combine(inst, high, src);
    LANE_FOR(WARP)
    d[i] = (low & lane_bit[i] ? truth : 0) | (high & lane_bit[i] ? truth << 16 : 0);
}

static inline uint16_t flush_f16(uint16_t h, bool ftz)
{
    return ftz && !(h & 0x7C00) ? h & 0x8000 : h;
}

/* The value of one element, for comparing. */
#define VALUE_RAW(x)     (x)
#define VALUE_F32(x)     (x)
#define VALUE_F32_FTZ(x) flush_f32(x, true)
#define VALUE_F16(x)     f32_of_f16(x)
#define VALUE_F16_FTZ(x) f32_of_f16(flush_f16(x, true))
#define VALUE_BF16(x)    f32_of_bf16(x)

/* The mask of elements first, first + step, ...: step is 2 for the halves of a pair. */
#define MASK_FN(name, E, V, value, step, ...)                                                                \
    static inline uint32_t mask_##name(const void *const *src, int first)                                    \
    {                                                                                                        \
        const E *pa = LANE_IN(E, 0), *pb = LANE_IN(E, 1);                                                    \
        uint32_t mask = 0;                                                                                   \
        for (int i = 0; i < WARP; i++) {                                                                     \
            const V a = value(pa[(step)*i + first]), b = value(pb[(step)*i + first]);                        \
            mask |= (__VA_ARGS__) ? lane_bit[i] : 0;                                                         \
        }                                                                                                    \
        return mask;                                                                                         \
    }

#define COMPARE_FNS(name, E, V, value, ...)                                                                  \
    MASK_FN(name, E, V, value, 1, __VA_ARGS__)                                                               \
    static void lane_setp_##name(LANE_ARGS)                                                                  \
    {                                                                                                        \
        const uint32_t mask = mask_##name(src, 0);                                                           \
        store_predicates(dst, src, inst, mask, ~mask);                                                       \
    }                                                                                                        \
    static void lane_set_##name(LANE_ARGS)                                                                   \
    {                                                                                                        \
        store_truth(dst, src, inst, mask_##name(src, 0));                                                    \
    }

#define COMPARE_PAIR_FNS(name, value, ...)                                                                   \
    MASK_FN(name, uint16_t, float, value, 2, __VA_ARGS__)                                                    \
    static void lane_setp_##name(LANE_ARGS)                                                                  \
    {                                                                                                        \
        store_predicates(dst, src, inst, mask_##name(src, 0), mask_##name(src, 1));                          \
    }                                                                                                        \
    static void lane_set_##name(LANE_ARGS)                                                                   \
    {                                                                                                        \
        store_truth_pair(dst, src, inst, mask_##name(src, 0), mask_##name(src, 1));                          \
    }

/* Functions for the types, by width if the sign does not matter. */
#define COMPARE_BITS(cmp, ...)                                                                               \
    COMPARE_FNS(cmp##_B16, uint16_t, uint16_t, VALUE_RAW, __VA_ARGS__)                                       \
    COMPARE_FNS(cmp##_B32, uint32_t, uint32_t, VALUE_RAW, __VA_ARGS__)                                       \
    COMPARE_FNS(cmp##_B64, uint64_t, uint64_t, VALUE_RAW, __VA_ARGS__)
#define COMPARE_ORDER(cmp, ...)                                                                              \
    COMPARE_FNS(cmp##_U16, uint16_t, uint16_t, VALUE_RAW, __VA_ARGS__)                                       \
    COMPARE_FNS(cmp##_U32, uint32_t, uint32_t, VALUE_RAW, __VA_ARGS__)                                       \
    COMPARE_FNS(cmp##_U64, uint64_t, uint64_t, VALUE_RAW, __VA_ARGS__)                                       \
    COMPARE_FNS(cmp##_S16, int16_t, int16_t, VALUE_RAW, __VA_ARGS__)                                         \
    COMPARE_FNS(cmp##_S32, int32_t, int32_t, VALUE_RAW, __VA_ARGS__)                                         \
    COMPARE_FNS(cmp##_S64, int64_t, int64_t, VALUE_RAW, __VA_ARGS__)
#define COMPARE_FLOAT(cmp, ...)                                                                              \
    COMPARE_FNS(cmp##_F32, float, float, VALUE_F32, __VA_ARGS__)                                             \
    COMPARE_FNS(cmp##_F32_FTZ, float, float, VALUE_F32_FTZ, __VA_ARGS__)                                     \
    COMPARE_FNS(cmp##_F64, double, double, VALUE_RAW, __VA_ARGS__)                                           \
    COMPARE_FNS(cmp##_F16, uint16_t, float, VALUE_F16, __VA_ARGS__)                                          \
    COMPARE_FNS(cmp##_F16_FTZ, uint16_t, float, VALUE_F16_FTZ, __VA_ARGS__)                                  \
    COMPARE_FNS(cmp##_BF16, uint16_t, float, VALUE_BF16, __VA_ARGS__)                                        \
    COMPARE_PAIR_FNS(cmp##_F16X2, VALUE_F16, __VA_ARGS__)                                                    \
    COMPARE_PAIR_FNS(cmp##_F16X2_FTZ, VALUE_F16_FTZ, __VA_ARGS__)                                            \
    COMPARE_PAIR_FNS(cmp##_BF16X2, VALUE_BF16, __VA_ARGS__)
#include "compare.def"

/* selp copies bits: 16, 32 or 64 of them. slct selects by c >= 0, which is false for a NaN. */
#define SELECT_FNS(N)                                                                                        \
    static void lane_selp_##N(LANE_ARGS)                                                                     \
    {                                                                                                        \
        uint##N##_t *d = LANE_OUT(uint##N##_t, 0);                                                           \
        const uint##N##_t *a = LANE_IN(uint##N##_t, 0), *b = LANE_IN(uint##N##_t, 1);                        \
        const uint32_t mask = LANE_MASK(2);                                                                  \
        LANE_FOR(WARP)                                                                                       \
        d[i] = mask & lane_bit[i] ? a[i] : b[i];                                                             \
    }                                                                                                        \
    LANE_FN3(lane_slct_##N##_S32, WARP, uint##N##_t, uint##N##_t, uint##N##_t, int32_t, c >= 0 ? a : b)      \
    LANE_FN3(lane_slct_##N##_F32, WARP, uint##N##_t, uint##N##_t, uint##N##_t, float, c >= 0.0f ? a : b)     \
    LANE_FN3(lane_slct_##N##_F32_FTZ, WARP, uint##N##_t, uint##N##_t, uint##N##_t, float,                    \
             flush_f32(c, true) >= 0.0f ? a : b)
SELECT_FNS(16)
SELECT_FNS(32)
SELECT_FNS(64)

/* selp.pred does not exist in PTX; predicates are selected by logic. */
#define SELECT_TYPES(X)                                                                                      \
    X(B16, 16)                                                                                               \
    X(U16, 16)                                                                                               \
    X(S16, 16) X(B32, 32) X(U32, 32) X(S32, 32) X(F32, 32) X(B64, 64) X(U64, 64) X(S64, 64) X(F64, 64)
#define SELECT_ROW(T, N)                                                                                     \
    {OP_selp, T_##T, 0, 0, 0, 0, lane_selp_##N}, {OP_slct, T_##T, T_S32, 0, 0, 0, lane_slct_##N##_S32},      \
        {OP_slct, T_##T, T_F32, 0, 0, 0, lane_slct_##N##_F32},                                               \
        {OP_slct, T_##T, T_F32, 0, V_FTZ, 0, lane_slct_##N##_F32_FTZ},

#define SETP_ROW(cmp, T, flags, name) {OP_setp, T_##T, 0, M_##cmp, flags, 0, lane_setp_##name},
/* Rows of set for every result type that a source type can have. */
#define SET_ROW(cmp, D, T, flags, name) {OP_set, T_##D, T_##T, M_##cmp, flags, 0, lane_set_##name},
#define SET_ROWS(cmp, T, flags, name)                                                                        \
    SET_ROW(cmp, U32, T, flags, name)                                                                        \
    SET_ROW(cmp, S32, T, flags, name)                                                                        \
    SET_ROW(cmp, F32, T, flags, name)                                                                        \
    SET_ROW(cmp, F16, T, flags, name)                                                                        \
    SET_ROW(cmp, BF16, T, flags, name)                                                                       \
    SET_ROW(cmp, U16, T, flags, name)                                                                        \
    SET_ROW(cmp, S16, T, flags, name)
#define SET_PAIR_ROWS(cmp, T, flags, name)                                                                   \
    SET_ROW(cmp, U32, T, flags, name) SET_ROW(cmp, S32, T, flags, name) SET_ROW(cmp, T, T, flags, name)
#define BOTH_ROWS(cmp, T, name)         SETP_ROW(cmp, T, 0, name) SET_ROWS(cmp, T, 0, name)
#define BOTH_PAIR_ROWS(cmp, T, f, name) SETP_ROW(cmp, T, f, name) SET_PAIR_ROWS(cmp, T, f, name)
#define FTZ_ROWS(cmp, T, name)          SETP_ROW(cmp, T, V_FTZ, name) SET_ROWS(cmp, T, V_FTZ, name)

static const lane_row rows[] = {
#define COMPARE_BITS(cmp, ...)                                                                               \
    BOTH_ROWS(cmp, B16, cmp##_B16)                                                                           \
    BOTH_ROWS(cmp, U16, cmp##_B16)                                                                           \
    BOTH_ROWS(cmp, S16, cmp##_B16)                                                                           \
    BOTH_ROWS(cmp, B32, cmp##_B32)                                                                           \
    BOTH_ROWS(cmp, U32, cmp##_B32)                                                                           \
    BOTH_ROWS(cmp, S32, cmp##_B32)                                                                           \
    BOTH_ROWS(cmp, B64, cmp##_B64)                                                                           \
    BOTH_ROWS(cmp, U64, cmp##_B64)                                                                           \
    BOTH_ROWS(cmp, S64, cmp##_B64)
#define COMPARE_ORDER(cmp, ...)                                                                              \
    BOTH_ROWS(cmp, U16, cmp##_U16)                                                                           \
    BOTH_ROWS(cmp, U32, cmp##_U32)                                                                           \
    BOTH_ROWS(cmp, U64, cmp##_U64)                                                                           \
    BOTH_ROWS(cmp, S16, cmp##_S16)                                                                           \
    BOTH_ROWS(cmp, S32, cmp##_S32)                                                                           \
    BOTH_ROWS(cmp, S64, cmp##_S64)
#define COMPARE_FLOAT(cmp, ...)                                                                              \
    BOTH_ROWS(cmp, F32, cmp##_F32)                                                                           \
    FTZ_ROWS(cmp, F32, cmp##_F32_FTZ)                                                                        \
    BOTH_ROWS(cmp, F64, cmp##_F64)                                                                           \
    BOTH_ROWS(cmp, F16, cmp##_F16)                                                                           \
    FTZ_ROWS(cmp, F16, cmp##_F16_FTZ)                                                                        \
    BOTH_ROWS(cmp, BF16, cmp##_BF16)                                                                         \
    BOTH_PAIR_ROWS(cmp, F16X2, 0, cmp##_F16X2)                                                               \
    BOTH_PAIR_ROWS(cmp, F16X2, V_FTZ, cmp##_F16X2_FTZ)                                                       \
    BOTH_PAIR_ROWS(cmp, BF16X2, 0, cmp##_BF16X2)
#include "compare.def"
/* lo ls hi hs are lt le gt ge of unsigned numbers. */
#define UNSIGNED_ROWS(cmp, same)                                                                             \
    BOTH_ROWS(cmp, U16, same##_U16) BOTH_ROWS(cmp, U32, same##_U32) BOTH_ROWS(cmp, U64, same##_U64)
    UNSIGNED_ROWS(lo, lt) UNSIGNED_ROWS(ls, le) UNSIGNED_ROWS(hi, gt) UNSIGNED_ROWS(hs, ge)
        SELECT_TYPES(SELECT_ROW)};

const lane_table LANE_LEVEL(lanes_compare) = {rows, sizeof rows / sizeof *rows};
