/* Logic, shifts, bit fields and byte permutes: and or xor not cnot lop3 shl shr shf prmt bfe bfi bfind brev
 * popc clz fns bmsk szext. */
#include "loops.h"

enum { V_RIGHT_WRAP = V_RIGHT | V_WRAP };

#define BITS(X, ...)     X(B16, B16, __VA_ARGS__) X(B32, B32, __VA_ARGS__) X(B64, B64, __VA_ARGS__)
#define UNSIGNED(X, ...) X(U16, U16, __VA_ARGS__) X(U32, U32, __VA_ARGS__) X(U64, U64, __VA_ARGS__)
#define SIGNED(X, ...)   X(S16, S16, __VA_ARGS__) X(S32, S32, __VA_ARGS__) X(S64, S64, __VA_ARGS__)
#define WORDS(X, ...)    X(U32, U32, __VA_ARGS__) X(S32, S32, __VA_ARGS__)
#define WHOLE(X, ...)    X(B32, B32, __VA_ARGS__) X(B64, B64, __VA_ARGS__)
#define COUNTED(X, ...)  X(B32, U32, __VA_ARGS__) X(B64, U32, __VA_ARGS__)
#define JUST_B32(X, ...) X(B32, B32, __VA_ARGS__)
#define FIELDS(X, ...)                                                                                       \
    X(U32, U32, __VA_ARGS__)                                                                                 \
    X(S32, S32, __VA_ARGS__)                                                                                 \
    X(U64, U64, __VA_ARGS__)                                                                                 \
    X(S64, S64, __VA_ARGS__)
#define FOUND(X, ...)                                                                                        \
    X(U32, U32, __VA_ARGS__)                                                                                 \
    X(S32, U32, __VA_ARGS__)                                                                                 \
    X(U64, U32, __VA_ARGS__)                                                                                 \
    X(S64, U32, __VA_ARGS__)

#define BY_TYPE(name, a)                                                                                     \
    _Generic((a), uint32_t : name##_U32, int32_t : name##_S32, uint64_t : name##_U64, int64_t : name##_S64)
#define extract(a, pos, len) BY_TYPE(extract, a)(a, pos, len)
#define find_msb(a)          BY_TYPE(find_msb, a)(a)
#define extend(a, n)         _Generic((a), uint32_t : extend_U32, int32_t : extend_S32)(a, n)

static inline uint64_t funnel(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* Ones from bit n up; none for n of 32 and more. */
static inline uint32_t ones_from(uint32_t n)
{
    return n < 32 ? UINT32_MAX << n : 0;
}

#define EXTRACT_UNSIGNED(T, N)                                                                               \
    static inline t_##T extract_##T(t_##T a, uint32_t pos, uint32_t len)                                     \
    {                                                                                                        \
        t_##T moved = pos < N ? a >> (pos & (N - 1)) : 0;                                                    \
        return len < N ? moved & (((t_##T)1 << (len & (N - 1))) - 1) : moved;                                \
    }
/* Bits beyond the register repeat its sign, which an arithmetic shift does by itself. */
#define EXTRACT_SIGNED(T, U, N)                                                                              \
    static inline t_##T extract_##T(t_##T a, uint32_t pos, uint32_t len)                                     \
    {                                                                                                        \
        t_##T moved = a >> (pos < N ? pos : N - 1);                                                          \
        uint32_t up = len < N ? N - len : 0;                                                                 \
        t_##T field = (t_##T)((t_##U)moved << (up & (N - 1))) >> (up & (N - 1));                             \
        return len == 0 ? 0 : field;                                                                         \
    }
EXTRACT_UNSIGNED(U32, 32)
EXTRACT_UNSIGNED(U64, 64)
EXTRACT_SIGNED(S32, U32, 32)
EXTRACT_SIGNED(S64, U64, 64)

static inline uint32_t find_msb_U64(uint64_t a)
{
    return a == 0 ? UINT32_MAX : 63 - (uint32_t)__builtin_clzll(a | 1);
}

static inline uint32_t find_msb_S64(int64_t a)
{
    return find_msb_U64((uint64_t)(a ^ a >> 63));
}

static inline uint32_t find_msb_U32(uint32_t a)
{
    return find_msb_U64(a);
}

static inline uint32_t find_msb_S32(int32_t a)
{
    return find_msb_S64(a);
}

static inline uint32_t extend_U32(uint32_t a, uint32_t n)
{
    return a & ~ones_from(n);
}

static inline int32_t extend_S32(int32_t a, uint32_t n)
{
    return n == 0 ? 0 : extract_S32(a, 0, n);
}

static inline uint32_t reverse32(uint32_t x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0F0F0F0F) | (x & 0x0F0F0F0F) << 4;
    return __builtin_bswap32(x);
}

static inline uint64_t reverse64(uint64_t x)
{
    return (uint64_t)reverse32((uint32_t)x) << 32 | reverse32((uint32_t)(x >> 32));
}

/* fns: the n-th set bit of mask counting from base, upwards or downwards; bit base itself for n = 0. The ISA
 * does not define a base above 31: here nothing is found. */
static inline uint32_t find_nth(uint32_t mask, uint32_t base, int32_t n)
{
    if (n == 0)
        return base < 32 && mask >> base & 1 ? base : UINT32_MAX;
    int step = n > 0 ? 1 : -1;
    uint32_t left = n > 0 ? (uint32_t)n : 0u - (uint32_t)n;
    for (uint32_t at = base; at < 32; at += (uint32_t)step)
        if (mask >> at & 1 && --left == 0)
            return at;
    return UINT32_MAX;
}

#include "functions.h"
#include "bits.def"

/* Predicates are one word for the whole warp. */
#define PREDICATE_FN(name, ...)                                                                              \
    static void lane_##name##_PRED(LANE_ARGS)                                                                \
    {                                                                                                        \
        *(uint32_t *)dst[0] = (__VA_ARGS__);                                                                 \
    }
PREDICATE_FN(and, LANE_MASK(0) & LANE_MASK(1))
PREDICATE_FN(or, LANE_MASK(0) | LANE_MASK(1))
PREDICATE_FN(xor, LANE_MASK(0) ^ LANE_MASK(1))
PREDICATE_FN(not, ~LANE_MASK(0))

static uint32_t combine(unsigned mod, uint32_t a, uint32_t b)
{
    return mod == M_and ? a & b : mod == M_or ? a | b : mod == M_xor ? a ^ b : a;
}

/* lop3: the table is evaluated as a tree, first by c, then b, then a; the constants of the first step are the
 * same for all lanes. With a second result, it is (d != 0) combined with the predicate after the table. */
static void lane_lop3(LANE_ARGS)
{
    const uint32_t lut = (uint32_t)inst->operand[inst->n_results + 3].bits;
    uint32_t base[4], flip[4];
    for (int k = 0; k < 4; k++) {
        base[k] = 0u - (lut >> (2 * k) & 1);
        flip[k] = base[k] ^ (0u - (lut >> (2 * k + 1) & 1));
    }
    uint32_t *d = LANE_OUT(uint32_t, 0), any = 0;
    const uint32_t *pa = LANE_IN(uint32_t, 0), *pb = LANE_IN(uint32_t, 1), *pc = LANE_IN(uint32_t, 2);
    LANE_FOR(WARP)
    {
        uint32_t a = pa[i], b = pb[i], c = pc[i];
        uint32_t low0 = base[0] ^ (c & flip[0]), low1 = base[1] ^ (c & flip[1]);
        uint32_t high0 = base[2] ^ (c & flip[2]), high1 = base[3] ^ (c & flip[3]);
        uint32_t low = low0 ^ (b & (low0 ^ low1)), high = high0 ^ (b & (high0 ^ high1));
        uint32_t r = low ^ (a & (low ^ high));
        d[i] = r;
        any |= r != 0 ? lane_bit[i] : 0;
    }
    if (inst->n_results > 1)
        *(uint32_t *)dst[1] = combine(inst->mod[S_BOOL], any, LANE_MASK(4));
}

/* prmt: the four selectors that a mode derives from the low bits of c; in the plain form c itself contains
 * them, with a sign bit each. */
static inline uint32_t pick_byte(uint32_t low, uint32_t high, uint32_t at)
{
    const uint32_t word = at & 4 ? high : low;
    return word >> 8 * (at & 3) & 0xFF;
}

static inline uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t s0, uint32_t s1, uint32_t s2,
                                  uint32_t s3)
{
    return pick_byte(low, high, s0) | pick_byte(low, high, s1) << 8 | pick_byte(low, high, s2) << 16 |
           pick_byte(low, high, s3) << 24;
}

static inline uint32_t permute(uint32_t low, uint32_t high, uint32_t c)
{
    uint32_t r = pick_bytes(low, high, c & 7, c >> 4 & 7, c >> 8 & 7, c >> 12 & 7);
    uint32_t signs = (c >> 3 & 1) | (c >> 7 & 1) << 8 | (c >> 11 & 1) << 16 | (c >> 15 & 1) << 24;
    uint32_t fill = (r >> 7 & 0x01010101) * 0xFF, where = signs * 0xFF;
    return (r & ~where) | (fill & where);
}

#define PRMT_FN(mode, s0, s1, s2, s3)                                                                        \
    LANE_FN3(lane_prmt_##mode, WARP, uint32_t, uint32_t, uint32_t, uint32_t, pick_bytes(a, b, s0, s1, s2, s3))
#define N (c & 3)
LANE_FN3(lane_prmt, WARP, uint32_t, uint32_t, uint32_t, uint32_t, permute(a, b, c))
PRMT_FN(f4e, N, N + 1, N + 2, N + 3)
PRMT_FN(b4e, N, (N + 7) & 7, (N + 6) & 7, (N + 5) & 7)
PRMT_FN(rc8, N, N, N, N)
PRMT_FN(ecl, N, N > 1 ? N : 1, N > 2 ? N : 2, 3)
PRMT_FN(ecr, 0, N < 1 ? N : 1, N < 2 ? N : 2, N)
PRMT_FN(rc16, 2 * (c & 1), 2 * (c & 1) + 1, 2 * (c & 1), 2 * (c & 1) + 1)
#undef N

/* bfi: inserts a's low bits into b; c and e are position and length. */
static inline uint64_t insert_field(uint64_t a, uint64_t b, uint32_t pos, uint32_t len)
{
    uint64_t ones = len < 64 ? ((uint64_t)1 << (len & 63)) - 1 : UINT64_MAX;
    uint64_t where = pos < 64 ? ones << (pos & 63) : 0, moved = pos < 64 ? a << (pos & 63) : 0;
    return (b & ~where) | (moved & where);
}
LANE_FN4(lane_bfi_B32, WARP, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
         insert_field(a, b, c & 0xFF, e & 0xFF))
LANE_FN4(lane_bfi_B64, WARP, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t,
         insert_field(a, b, c & 0xFF, e & 0xFF))

#include "rows.h"
static const lane_row rows[] = {
#include "bits.def"
    {OP_and, T_PRED, 0, 0, 0, 0, lane_and_PRED},     {OP_or, T_PRED, 0, 0, 0, 0, lane_or_PRED},
    {OP_xor, T_PRED, 0, 0, 0, 0, lane_xor_PRED},     {OP_not, T_PRED, 0, 0, 0, 0, lane_not_PRED},
    {OP_lop3, T_B32, 0, 0, 0, 0, lane_lop3},         {OP_prmt, T_B32, 0, 0, 0, 0, lane_prmt},
    {OP_prmt, T_B32, 0, M_f4e, 0, 0, lane_prmt_f4e}, {OP_prmt, T_B32, 0, M_b4e, 0, 0, lane_prmt_b4e},
    {OP_prmt, T_B32, 0, M_rc8, 0, 0, lane_prmt_rc8}, {OP_prmt, T_B32, 0, M_ecl, 0, 0, lane_prmt_ecl},
    {OP_prmt, T_B32, 0, M_ecr, 0, 0, lane_prmt_ecr}, {OP_prmt, T_B32, 0, M_rc16, 0, 0, lane_prmt_rc16},
    {OP_bfi, T_B32, 0, 0, 0, 0, lane_bfi_B32},       {OP_bfi, T_B64, 0, 0, 0, 0, lane_bfi_B64},
};

const lane_table LANE_LEVEL(lanes_bits) = {rows, sizeof rows / sizeof *rows};
