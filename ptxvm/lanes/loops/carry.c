/* Carry chains: add.cc addc sub.cc subc mad.cc madc. The flag is a predicate: read as the last source,
 * written as the last result. A GPU subtracts by adding the complement, a - b = a + ~b + 1, so after a
 * subtraction the flag means "no borrow", and subc gives a + ~b + CC.CF. The PTX ISA calls it the borrow,
 * which is equivalent within a chain of subtractions; only chains that mix additions and subtractions see the
 * difference. */
#include "loops.h"

/* d = x + y + carry or x - (y + borrow), where x and y are expressions in a, b, c; the borrow is the inverted
 * flag. `in_at` is the index of the flag among the sources, or -1. */
#define CARRY_FN(name, T, n_src, in_at, writes, x_of, y_of, minus)                                           \
    static void name(LANE_ARGS)                                                                              \
    {                                                                                                        \
        T *d = LANE_OUT(T, 0);                                                                               \
        const T *pa = LANE_IN(T, 0), *pb = LANE_IN(T, 1), *pc = (n_src) > 2 ? LANE_IN(T, 2) : pb;            \
        const uint32_t inverted = (minus) ? UINT32_MAX : 0;                                                  \
        const uint32_t in = (in_at) < 0 ? 0 : LANE_MASK((in_at) < 0 ? 0 : (in_at)) ^ inverted;               \
        uint32_t out = 0;                                                                                    \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const T a = pa[i], b = pb[i], c = pc[i];                                                         \
            (void)a, (void)b, (void)c;                                                                       \
            const T x = (T)(x_of), y = (T)(y_of), one = (in & lane_bit[i]) != 0;                             \
            const T part = (minus) ? x - y : x + y, all = (minus) ? part - one : part + one;                 \
            const bool first = (minus) ? x < y : part < x;                                                   \
            const bool second = (minus) ? part < one : all < part;                                           \
            d[i] = all;                                                                                      \
            out |= (first | second) ? lane_bit[i] : 0;                                                       \
        }                                                                                                    \
        if (writes)                                                                                          \
            *(uint32_t *)dst[1] = out ^ inverted;                                                            \
    }

#define HI_U32(a, b) ((uint64_t)(a) * (b) >> 32)
#define HI_S32(a, b) ((uint64_t)((int64_t)(int32_t)(a) * (int32_t)(b)) >> 32)
#define HI_U64(a, b) ((unsigned __int128)(a) * (b) >> 64)
#define HI_S64(a, b) ((unsigned __int128)((__int128)(int64_t)(a) * (int64_t)(b)) >> 64)

/* One line: opcode, variant, number of sources, where the flag is read, whether it is written, the two
 * terms. */
#define CARRIES(X, S, U)                                                                                     \
    X(add, CC, S, U, 2, -1, 1, a, b, 0)                                                                      \
    X(addc, NONE, S, U, 2, 2, 0, a, b, 0)                                                                    \
    X(addc, CC, S, U, 2, 2, 1, a, b, 0)                                                                      \
    X(sub, CC, S, U, 2, -1, 1, a, b, 1)                                                                      \
    X(subc, NONE, S, U, 2, 2, 0, a, b, 1)                                                                    \
    X(subc, CC, S, U, 2, 2, 1, a, b, 1)                                                                      \
    X(mad, CC, S, U, 3, -1, 1, a *b, c, 0)                                                                   \
    X(mad, HI_CC, S, U, 3, -1, 1, HI_##S(a, b), c, 0)                                                        \
    X(madc, NONE, S, U, 3, 3, 0, a *b, c, 0)                                                                 \
    X(madc, CC, S, U, 3, 3, 1, a *b, c, 0)                                                                   \
    X(madc, HI, S, U, 3, 3, 0, HI_##S(a, b), c, 0)                                                           \
    X(madc, HI_CC, S, U, 3, 3, 1, HI_##S(a, b), c, 0)

enum { V_HI_CC = V_HI | V_CC };

#define DEFINE(op, flags, S, U, n_src, in_at, writes, x, y, minus)                                           \
    CARRY_FN(lane_##op##_##S##_##flags, t_##U, n_src, in_at, writes, x, y, minus)
CARRIES(DEFINE, U32, U32)
CARRIES(DEFINE, S32, U32)
CARRIES(DEFINE, U64, U64)
CARRIES(DEFINE, S64, U64)

#define ROW(op, flags, S, U, n_src, in_at, writes, x, y, minus)                                              \
    {OP_##op, T_##S, T_NONE, 0, V_##flags, 0, lane_##op##_##S##_##flags},
static const lane_row rows[] = {CARRIES(ROW, U32, U32) CARRIES(ROW, S32, U32) CARRIES(ROW, U64, U64)
                                    CARRIES(ROW, S64, U64)};

const lane_table LANE_LEVEL(lanes_carry) = {rows, sizeof rows / sizeof *rows};
