/* Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max dp4a dp2a, also on pairs of 16
 * bits.
 *
 * Division by zero gives all ones, and so does the remainder: the result of the instruction sequences of ptxas
 * (the ISA does not define it). MIN / -1 is MIN, its remainder 0. */
#include "loops.h"

enum { V_HI_SAT = V_HI | V_SAT };

#define INTEGERS(X, ...)                                                                                     \
    X(U16, U16, __VA_ARGS__)                                                                                 \
    X(S16, S16, __VA_ARGS__)                                                                                 \
    X(U32, U32, __VA_ARGS__)                                                                                 \
    X(S32, S32, __VA_ARGS__)                                                                                 \
    X(U64, U64, __VA_ARGS__)                                                                                 \
    X(S64, S64, __VA_ARGS__)
#define SIGNED(X, ...)    X(S16, S16, __VA_ARGS__) X(S32, S32, __VA_ARGS__) X(S64, S64, __VA_ARGS__)
#define WORDS(X, ...)     X(U32, U32, __VA_ARGS__) X(S32, S32, __VA_ARGS__)
#define PAIRS(X, ...)     X(U16X2, U16X2, __VA_ARGS__) X(S16X2, S16X2, __VA_ARGS__)
#define QUADS(X, ...)     X(U8X4, U8X4, __VA_ARGS__) X(S8X4, S8X4, __VA_ARGS__)
#define JUST_S8X4(X, ...) X(S8X4, S8X4, __VA_ARGS__)
#define JUST_U32(X, ...)  X(U32, U32, __VA_ARGS__)
#define RELU_INTS(X, ...) X(S32, S32, __VA_ARGS__) X(S16X2, S16X2, __VA_ARGS__) X(S8X4, S8X4, __VA_ARGS__)
#define JUST_S32(X, ...)  X(S32, S32, __VA_ARGS__)
#define WIDENED(X, ...)                                                                                      \
    X(U16, U32, __VA_ARGS__)                                                                                 \
    X(S16, S32, __VA_ARGS__)                                                                                 \
    X(U32, U64, __VA_ARGS__)                                                                                 \
    X(S32, S64, __VA_ARGS__)

static inline int32_t clamp_s32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

/* The nearest number of the type of `a`. */
#define CLAMP(T, low, high)                                                                                  \
    static inline t_##T clamp_##T(int64_t x)                                                                 \
    {                                                                                                        \
        return (t_##T)(x < low ? low : x > high ? high : x);                                                 \
    }
CLAMP(U8, 0, UINT8_MAX)
CLAMP(S8, INT8_MIN, INT8_MAX)
CLAMP(U16, 0, UINT16_MAX)
CLAMP(S16, INT16_MIN, INT16_MAX)
CLAMP(U32, 0, UINT32_MAX)
#define clamp(a, x)                                                                                          \
    _Generic((a), uint8_t                                                                                    \
             : clamp_U8, int8_t                                                                              \
             : clamp_S8, uint16_t                                                                            \
             : clamp_U16, int16_t                                                                            \
             : clamp_S16, uint32_t                                                                           \
             : clamp_U32)(x)

/* Functions that depend on the type, under one name: mul_hi(a, b) is mul_hi_S32(a, b) for int32_t. */
#define BY_TYPE(name, a)                                                                                     \
    _Generic((a), uint16_t                                                                                   \
             : name##_U16, int16_t                                                                           \
             : name##_S16, uint32_t                                                                          \
             : name##_U32, int32_t                                                                           \
             : name##_S32, uint64_t                                                                          \
             : name##_U64, int64_t                                                                           \
             : name##_S64)
#define mul_hi(a, b)       BY_TYPE(mul_hi, a)(a, b)
#define mul_wide(a, b)     BY_TYPE(mul_wide, a)(a, b)
#define quotient(a, b)     BY_TYPE(quotient, a)(a, b)
#define remainder_of(a, b) BY_TYPE(remainder_of, a)(a, b)
#define low24(a)           _Generic((a), uint32_t : low24_U32, int32_t : low24_S32)(a)
#define mul24_hi(a, b)     ((int64_t)low24(a) * low24(b) >> 16)

typedef unsigned __int128 t_U128;
typedef __int128 t_S128;

#define MULTIPLY(T, W, bits)                                                                                 \
    static inline t_##W mul_wide_##T(t_##T a, t_##T b)                                                       \
    {                                                                                                        \
        return (t_##W)a * (t_##W)b;                                                                          \
    }                                                                                                        \
    static inline t_##T mul_hi_##T(t_##T a, t_##T b)                                                         \
    {                                                                                                        \
        return (t_##T)(mul_wide_##T(a, b) >> bits);                                                          \
    }
MULTIPLY(U16, U32, 16)
MULTIPLY(S16, S32, 16)
MULTIPLY(U32, U64, 32)
MULTIPLY(S32, S64, 32)
MULTIPLY(U64, U128, 64)
MULTIPLY(S64, S128, 64)

/* A lane must never trap, so a divisor that would cause it is replaced before the division. */
#define DIVIDE_UNSIGNED(T)                                                                                   \
    static inline t_##T quotient_##T(t_##T a, t_##T b)                                                       \
    {                                                                                                        \
        return b == 0 ? (t_##T) - 1 : a / b;                                                                 \
    }                                                                                                        \
    static inline t_##T remainder_of_##T(t_##T a, t_##T b)                                                   \
    {                                                                                                        \
        return b == 0 ? (t_##T) - 1 : a % b;                                                                 \
    }
#define DIVIDE_SIGNED(T)                                                                                     \
    static inline t_##T quotient_##T(t_##T a, t_##T b)                                                       \
    {                                                                                                        \
        return b == 0 ? (t_##T) - 1 : b == -1 ? (t_##T) - a : a / b;                                         \
    }                                                                                                        \
    static inline t_##T remainder_of_##T(t_##T a, t_##T b)                                                   \
    {                                                                                                        \
        return b == 0 ? (t_##T) - 1 : b == -1 ? 0 : a % b;                                                   \
    }
DIVIDE_UNSIGNED(U16)
DIVIDE_UNSIGNED(U32)
DIVIDE_UNSIGNED(U64)
DIVIDE_SIGNED(S16)
DIVIDE_SIGNED(S32)
DIVIDE_SIGNED(S64)

static inline uint32_t low24_U32(uint32_t a)
{
    return a & 0xFFFFFF;
}

static inline int32_t low24_S32(int32_t a)
{
    return (int32_t)((uint32_t)a << 8) >> 8;
}

#include "functions.h"
#include "integer.def"

/* dp4a, dp2a: byte or half k of a word, extended according to its type. */
#define PART_U32(x, bits, k) ((int32_t)((x) >> ((bits) * (k)) & ((1u << (bits)) - 1)))
#define PART_S32(x, bits, k) ((int32_t)((x) << (32 - (bits) * ((k) + 1))) >> (32 - (bits)))

#define DOT(A, B)                                                                                            \
    LANE_FN3(lane_dp4a_##A##_##B, WARP, uint32_t, uint32_t, uint32_t, uint32_t,                              \
             c + (uint32_t)(PART_##A(a, 8, 0) * PART_##B(b, 8, 0) + PART_##A(a, 8, 1) * PART_##B(b, 8, 1) +  \
                            PART_##A(a, 8, 2) * PART_##B(b, 8, 2) + PART_##A(a, 8, 3) * PART_##B(b, 8, 3)))  \
    LANE_FN3(                                                                                                \
        lane_dp2a_lo_##A##_##B, WARP, uint32_t, uint32_t, uint32_t, uint32_t,                                \
        c + (uint32_t)(PART_##A(a, 16, 0) * PART_##B(b, 8, 0) + PART_##A(a, 16, 1) * PART_##B(b, 8, 1)))     \
    LANE_FN3(                                                                                                \
        lane_dp2a_hi_##A##_##B, WARP, uint32_t, uint32_t, uint32_t, uint32_t,                                \
        c + (uint32_t)(PART_##A(a, 16, 0) * PART_##B(b, 8, 2) + PART_##A(a, 16, 1) * PART_##B(b, 8, 3)))
DOT(U32, U32)
DOT(U32, S32)
DOT(S32, U32)
DOT(S32, S32)

#define DOT_ROWS(A, B)                                                                                       \
    {OP_dp4a, T_##A, T_##B, 0, 0, 0, lane_dp4a_##A##_##B},                                                   \
        {OP_dp2a, T_##A, T_##B, 0, 0, 0, lane_dp2a_lo_##A##_##B},                                            \
        {OP_dp2a, T_##A, T_##B, 0, V_HI, 0, lane_dp2a_hi_##A##_##B},

#include "rows.h"
static const lane_row rows[] = {
#include "integer.def"
    DOT_ROWS(U32, U32) DOT_ROWS(U32, S32) DOT_ROWS(S32, U32) DOT_ROWS(S32, S32)};

const lane_table LANE_LEVEL(lanes_integer) = {rows, sizeof rows / sizeof *rows};
