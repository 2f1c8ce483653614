/* cvt to and from the narrow formats: f16, bf16, tf32, the fp8, fp6 and fp4 pairs, the stochastic quadruples,
 * ue8m0; and cvt.pack.
 *
 * Every rounding to a narrow format is round_to of formats.h. What is wider than f32 is first rounded to odd.
 */
#include "convert.h"

/* ---- one number to f16 or bf16 ---- */

/* An integer as f64, rounded to odd if it has more than 53 bits. */
static inline double f64_of_u64(uint64_t x)
{
    const bool large = x >> 53 != 0;
    const uint64_t kept = large ? x >> 11 | ((x & 0x7FF) != 0) : x;
    return (double)(int64_t)kept * (large ? 2048.0 : 1.0);
}

static inline double f64_of_s64(int64_t x)
{
    return x < 0 ? -f64_of_u64(0 - (uint64_t)x) : f64_of_u64((uint64_t)x);
}

#define FROM_F32(x)      flush_f32(x, ftz)
#define FROM_F64(x)      f32_odd_of_f64(x)
#define FROM_F16(x)      f32_of_f16(x)
#define FROM_BF16(x)     f32_of_bf16(x)
#define FROM_SIGNED(x)   f32_odd_of_f64(f64_of_s64(x))
#define FROM_UNSIGNED(x) f32_odd_of_f64(f64_of_u64(x))

#define SHORT_FROM(D, S, from)                                                                               \
    static void lane_cvt_##D##_##S(LANE_ARGS)                                                                \
    {                                                                                                        \
        uint16_t *d = LANE_OUT(uint16_t, 0);                                                                 \
        const t_##S *a = LANE_IN(t_##S, 0);                                                                  \
        const rounding r = rounding_of(inst);                                                                \
        const bool sat = has_sat(inst), whole = is_integral(inst);                                           \
        const direction way = direction_of(inst);                                                            \
        __attribute__((unused)) const bool ftz = has_ftz(inst);                                              \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const float x = from(a[i]), y = whole ? integral_f32(x, way) : x;                                \
            d[i] = (uint16_t)round_to(FORMAT_##D, bits_of_f32(sat ? finish_f32(y, false, true) : y), r, 0);  \
        }                                                                                                    \
    }
#define SHORTS_FROM(X, D)                                                                                    \
    X(D, F32, FROM_F32)                                                                                      \
    X(D, F64, FROM_F64)                                                                                      \
    X(D, F16, FROM_F16)                                                                                      \
    X(D, BF16, FROM_BF16)                                                                                    \
    X(D, U8, FROM_UNSIGNED)                                                                                  \
    X(D, U16, FROM_UNSIGNED)                                                                                 \
    X(D, U32, FROM_UNSIGNED)                                                                                 \
    X(D, U64, FROM_UNSIGNED)                                                                                 \
    X(D, S8, FROM_SIGNED)                                                                                    \
    X(D, S16, FROM_SIGNED)                                                                                   \
    X(D, S32, FROM_SIGNED)                                                                                   \
    X(D, S64, FROM_SIGNED)
SHORTS_FROM(SHORT_FROM, F16)
SHORTS_FROM(SHORT_FROM, BF16)

/* The common case: f32 to nearest, without other modifiers. */
#define SHORT_FROM_F32_FAST(D, round)                                                                        \
    static void lane_cvt_##D##_F32_any(LANE_ARGS)                                                            \
    {                                                                                                        \
        uint16_t *d = LANE_OUT(uint16_t, 0);                                                                 \
        const float *a = LANE_IN(float, 0);                                                                  \
        if (inst->mod[S_RND] != M_rn) {                                                                      \
            lane_cvt_##D##_F32(dst, src, inst);                                                              \
            return;                                                                                          \
        }                                                                                                    \
        LANE_FOR(WARP)                                                                                       \
        d[i] = round(a[i]);                                                                                  \
    }
SHORT_FROM_F32_FAST(F16, f16_of_f32)
SHORT_FROM_F32_FAST(BF16, bf16_of_f32)

/* tf32 stays in the upper bits of its 32; a NaN is the f32 one. */
static void lane_cvt_TF32_F32(LANE_ARGS)
{
    uint32_t *d = LANE_OUT(uint32_t, 0);
    const uint32_t *a = LANE_IN(uint32_t, 0);
    const rounding r = rounding_of(inst);
    LANE_FOR(WARP)
    d[i] = (a[i] & 0x7FFFFFFF) > F32_INF ? F32_NAN : round_to(FORMAT_TF32, a[i], r, 0) << 13;
}

/* ---- pairs: a is the upper half, b the lower ---- */

#define PAIR_FROM_F32(D, E, F, bits)                                                                         \
    static void lane_cvt_##D##_F32(LANE_ARGS)                                                                \
    {                                                                                                        \
        E *d = LANE_OUT(E, 0);                                                                               \
        const uint32_t *a = LANE_IN(uint32_t, 0), *b = LANE_IN(uint32_t, 1);                                 \
        const rounding r = rounding_of(inst);                                                                \
        if (same_rounding(r, NEAREST_FINITE)) {                                                              \
            LANE_FOR(WARP)                                                                                   \
            d[i] = (E)(round_to(FORMAT_##F, a[i], NEAREST_FINITE, 0) << (bits) |                             \
                       round_to(FORMAT_##F, b[i], NEAREST_FINITE, 0));                                       \
            return;                                                                                          \
        }                                                                                                    \
        LANE_FOR(WARP)                                                                                       \
        d[i] = (E)(round_to(FORMAT_##F, a[i], r, 0) << (bits) | round_to(FORMAT_##F, b[i], r, 0));           \
    }
PAIR_FROM_F32(F16X2, uint32_t, F16, 16)
PAIR_FROM_F32(BF16X2, uint32_t, BF16, 16)
PAIR_FROM_F32(E4M3X2, uint16_t, E4M3, 8)
PAIR_FROM_F32(E5M2X2, uint16_t, E5M2, 8)
PAIR_FROM_F32(E3M2X2, uint16_t, E3M2, 8)
PAIR_FROM_F32(E2M3X2, uint16_t, E2M3, 8)
PAIR_FROM_F32(E2M1X2, uint8_t, E2M1, 4)

#define PAIR_FROM_F32_FAST(D, round)                                                                         \
    static void lane_cvt_##D##_F32_any(LANE_ARGS)                                                            \
    {                                                                                                        \
        uint32_t *d = LANE_OUT(uint32_t, 0);                                                                 \
        const float *a = LANE_IN(float, 0), *b = LANE_IN(float, 1);                                          \
        if (inst->mod[S_RND] != M_rn) {                                                                      \
            lane_cvt_##D##_F32(dst, src, inst);                                                              \
            return;                                                                                          \
        }                                                                                                    \
        LANE_FOR(WARP)                                                                                       \
        d[i] = (uint32_t)round(a[i]) << 16 | round(b[i]);                                                    \
    }
PAIR_FROM_F32_FAST(F16X2, f16_of_f32)
PAIR_FROM_F32_FAST(BF16X2, bf16_of_f32)

/* A pair of codes, negative ones replaced by 0. */
static inline uint32_t relu_codes(uint32_t codes, const small_format f, int bits)
{
    const uint32_t low = codes & ((1u << bits) - 1), high = codes >> bits;
    return (high >> f.sign & 1 ? 0 : high) << bits | (low >> f.sign & 1 ? 0 : low);
}

/* From a packed pair of f16 or bf16: always to nearest and finite. */
#define PAIR_FROM_PAIR(D, S, E, F, bits, widen)                                                              \
    static void lane_cvt_##D##_##S(LANE_ARGS)                                                                \
    {                                                                                                        \
        E *d = LANE_OUT(E, 0);                                                                               \
        const uint32_t *a = LANE_IN(uint32_t, 0);                                                            \
        const rounding r = rounding_of(inst);                                                                \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const uint32_t high = bits_of_f32(widen((uint16_t)(a[i] >> 16)));                                \
            const uint32_t low = bits_of_f32(widen((uint16_t)a[i]));                                         \
            const uint32_t codes = round_to(FORMAT_##F, high, NEAREST_FINITE, 0) << (bits) |                 \
                                   round_to(FORMAT_##F, low, NEAREST_FINITE, 0);                             \
            d[i] = (E)(r.relu ? relu_codes(codes, FORMAT_##F, bits) : codes);                                \
        }                                                                                                    \
    }
#define PAIRS_FROM(X, S, widen)                                                                              \
    X(E4M3X2, S, uint16_t, E4M3, 8, widen)                                                                   \
    X(E5M2X2, S, uint16_t, E5M2, 8, widen)                                                                   \
    X(E3M2X2, S, uint16_t, E3M2, 8, widen)                                                                   \
    X(E2M3X2, S, uint16_t, E2M3, 8, widen)                                                                   \
    X(E2M1X2, S, uint8_t, E2M1, 4, widen)
PAIRS_FROM(PAIR_FROM_PAIR, F16X2, f32_of_f16)
PAIRS_FROM(PAIR_FROM_PAIR, BF16X2, f32_of_bf16)

/* ---- pairs widened to f16x2, all exact ---- */

/* One code to f16 bits: moved into place and corrected by a product as in widen_magnitude, which is exact.
 * inf and nan: the first codes that are infinite and NaN (above 0xFF: none). */
static inline uint32_t f16_of_code(uint32_t code, const small_format f, uint32_t inf, uint32_t nan,
                                   uint32_t relu)
{
    const uint32_t magnitude = code & ((1u << f.sign) - 1), negative = code >> f.sign & 1;
    const uint32_t wide = widen_magnitude(magnitude, f.mantissa, f.bias);
    /* f32 to f16 without rounding: subnormal f16 only come from e5m2, whose mantissa is that of a truncated
     * f16. */
    const uint32_t finite = f.bias == 15 ? magnitude << (10 - f.mantissa)
                            : wide       ? (wide - (112u << 23)) >> 13
                                         : 0;
    const uint32_t number = (magnitude >= inf ? 0x7C00 : finite) | negative << 15;
    return magnitude >= nan ? 0x7FFF : number & ~(0u - (negative & relu));
}

#define NEVER 0x100
#define F16X2_FROM(S, E, F, bits, inf, nan)                                                                  \
    static void lane_cvt_F16X2_##S(LANE_ARGS)                                                                \
    {                                                                                                        \
        uint32_t *d = LANE_OUT(uint32_t, 0);                                                                 \
        const E *a = LANE_IN(E, 0);                                                                          \
        const uint32_t relu = inst->mod[S_RELU] == M_relu;                                                   \
        LANE_FOR(WARP)                                                                                       \
        d[i] = f16_of_code((uint32_t)a[i] >> (bits), FORMAT_##F, inf, nan, relu) << 16 |                     \
               f16_of_code((uint32_t)a[i] & ((1u << (bits)) - 1), FORMAT_##F, inf, nan, relu);               \
    }
F16X2_FROM(E4M3X2, uint16_t, E4M3, 8, NEVER, 0x7F)
F16X2_FROM(E5M2X2, uint16_t, E5M2, 8, 0x7C, 0x7D)
F16X2_FROM(E3M2X2, uint16_t, E3M2, 8, NEVER, NEVER)
F16X2_FROM(E2M3X2, uint16_t, E2M3, 8, NEVER, NEVER)
F16X2_FROM(E2M1X2, uint8_t, E2M1, 4, NEVER, NEVER)

/* ---- ue8m0: a power of two, 2^(code - 127); 0xFF is NaN; the sign of a source is dropped ---- */

static inline uint32_t ue8m0_of_bits(uint32_t u, bool up, bool satfinite)
{
    const uint32_t magnitude = u & 0x7FFFFFFF, field = magnitude >> 23;
    /* 2^-127 is the f32 0x00400000: values up to it have the code 0, the smallest. */
    const bool raise = up && (magnitude & 0x7FFFFF) && magnitude > 0x00400000 && magnitude < F32_INF;
    const uint32_t code = field + raise;
    return magnitude > F32_INF ? 0xFF : satfinite && code == 0xFF ? 0xFE : code;
}

static void lane_cvt_UE8M0X2_F32(LANE_ARGS)
{
    uint16_t *d = LANE_OUT(uint16_t, 0);
    const uint32_t *a = LANE_IN(uint32_t, 0), *b = LANE_IN(uint32_t, 1);
    const bool up = inst->mod[S_RND] == M_rp, satfinite = inst->mod[S_SAT] == M_satfinite;
    LANE_FOR(WARP)
    d[i] = (uint16_t)(ue8m0_of_bits(a[i], up, satfinite) << 8 | ue8m0_of_bits(b[i], up, satfinite));
}

static void lane_cvt_UE8M0X2_BF16X2(LANE_ARGS)
{
    uint16_t *d = LANE_OUT(uint16_t, 0);
    const uint32_t *a = LANE_IN(uint32_t, 0);
    const bool up = inst->mod[S_RND] == M_rp, satfinite = inst->mod[S_SAT] == M_satfinite;
    LANE_FOR(WARP)
    d[i] = (uint16_t)(ue8m0_of_bits(a[i] & 0xFFFF0000, up, satfinite) << 8 |
                      ue8m0_of_bits(a[i] << 16, up, satfinite));
}

static inline uint32_t bf16_of_ue8m0(uint32_t code)
{
    return code == 0xFF ? 0x7FFF : code == 0 ? 0x0040 : code << 7;
}

LANE_FN1(lane_cvt_BF16X2_UE8M0X2, WARP, uint32_t, uint16_t,
         bf16_of_ue8m0((uint32_t)a >> 8) << 16 | bf16_of_ue8m0(a & 0xFF))

/* ---- pairs widened to bf16x2, and scaled by powers of two ---- */

static inline float value_of_f16(uint32_t bits)
{
    return f32_of_f16((uint16_t)bits);
}

/* .s2f6: two's complement with 6 bits after the point. */
static inline float value_of_s2f6(uint32_t code)
{
    return (float)(int8_t)code / 64;
}

static inline float value_of_ue8m0(uint32_t code)
{
    return f32_of_bits(code == 0xFF ? F32_NAN : code == 0 ? 0x00400000 : code << 23);
}

/* The product is exact in f32 unless it overflows, where bf16 does, too. */
#define BF16X2_FROM(S, E, bits, value)                                                                       \
    static void lane_cvt_BF16X2_##S(LANE_ARGS)                                                               \
    {                                                                                                        \
        const bool scaled = inst->mod[S_SCALE] != M_NONE;                                                    \
        uint32_t *d = LANE_OUT(uint32_t, 0);                                                                 \
        const E *a = LANE_IN(E, 0);                                                                          \
        const uint16_t *scale = scaled ? LANE_IN(uint16_t, 1) : NULL;                                        \
        const rounding r = rounding_of(inst);                                                                \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const uint32_t high = (uint32_t)a[i] >> (bits), low = (uint32_t)a[i] & ((1u << (bits)) - 1);     \
            const uint32_t by = scaled ? scale[i] : 0x7F7F;                                                  \
            d[i] = round_to(FORMAT_BF16, bits_of_f32(value(high) * value_of_ue8m0(by >> 8)), r, 0) << 16 |   \
                   round_to(FORMAT_BF16, bits_of_f32(value(low) * value_of_ue8m0(by & 0xFF)), r, 0);         \
        }                                                                                                    \
    }
#define VALUE_E4M3(code) value_of_f16(f16_of_code(code, FORMAT_E4M3, NEVER, 0x7F, 0))
#define VALUE_E5M2(code) value_of_f16(f16_of_code(code, FORMAT_E5M2, 0x7C, 0x7D, 0))
#define VALUE_E3M2(code) value_of_f16(f16_of_code(code, FORMAT_E3M2, NEVER, NEVER, 0))
#define VALUE_E2M3(code) value_of_f16(f16_of_code(code, FORMAT_E2M3, NEVER, NEVER, 0))
#define VALUE_E2M1(code) value_of_f16(f16_of_code(code, FORMAT_E2M1, NEVER, NEVER, 0))
BF16X2_FROM(E4M3X2, uint16_t, 8, VALUE_E4M3)
BF16X2_FROM(E5M2X2, uint16_t, 8, VALUE_E5M2)
BF16X2_FROM(E3M2X2, uint16_t, 8, VALUE_E3M2)
BF16X2_FROM(E2M3X2, uint16_t, 8, VALUE_E2M3)
BF16X2_FROM(E2M1X2, uint8_t, 4, VALUE_E2M1)
BF16X2_FROM(S2F6X2, uint16_t, 8, value_of_s2f6)

/* ---- stochastic rounding ---- */

/* To f16x2: 13 random bits each, in the low bits of the halves of rbits; to bf16x2: 16 each. */
#define STOCHASTIC_PAIR(D, F, skip)                                                                          \
    static void lane_cvt_##D##_F32_rs(LANE_ARGS)                                                             \
    {                                                                                                        \
        uint32_t *d = LANE_OUT(uint32_t, 0);                                                                 \
        const uint32_t *a = LANE_IN(uint32_t, 0), *b = LANE_IN(uint32_t, 1), *random = LANE_IN(uint32_t, 2); \
        const rounding r = rounding_of(inst);                                                                \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const uint32_t high = random[i] >> 16 << (skip)&0xFFFF, low = random[i] << (skip)&0xFFFF;        \
            d[i] = round_to(FORMAT_##F, a[i], r, high) << 16 | round_to(FORMAT_##F, b[i], r, low);           \
        }                                                                                                    \
    }
STOCHASTIC_PAIR(F16X2, F16, 3)
STOCHASTIC_PAIR(BF16X2, BF16, 0)

/* To four: a and b share 16 random bits, e and f the others: the halves of rbits, or for e2m1 the upper and
 * the lower bytes of both halves. (The ISA does not specify the order of the two bytes; here the upper half's
 * comes first.) */
static inline uint32_t random_ab(uint32_t random, bool by_bytes)
{
    return by_bytes ? (random >> 16 & 0xFF00) | (random >> 8 & 0xFF) : random >> 16;
}

static inline uint32_t random_ef(uint32_t random, bool by_bytes)
{
    return by_bytes ? (random >> 8 & 0xFF00) | (random & 0xFF) : random & 0xFFFF;
}

#define STOCHASTIC_FOUR(D, E, F, bits)                                                                       \
    static void lane_cvt_##D##_F32(LANE_ARGS)                                                                \
    {                                                                                                        \
        E *d = LANE_OUT(E, 0);                                                                               \
        const uint32_t *a = LANE_IN(uint32_t, 0), *b = LANE_IN(uint32_t, 1), *e = LANE_IN(uint32_t, 2);      \
        const uint32_t *f = LANE_IN(uint32_t, 3), *random = LANE_IN(uint32_t, 4);                            \
        const rounding r = rounding_of(inst);                                                                \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const uint32_t ab = random_ab(random[i], (bits) == 4), ef = random_ef(random[i], (bits) == 4);   \
            d[i] = (E)(round_to(FORMAT_##F, a[i], r, ab) << 3 * (bits) |                                     \
                       round_to(FORMAT_##F, b[i], r, ab) << 2 * (bits) |                                     \
                       round_to(FORMAT_##F, e[i], r, ef) << (bits) | round_to(FORMAT_##F, f[i], r, ef));     \
        }                                                                                                    \
    }
STOCHASTIC_FOUR(E4M3X4, uint32_t, E4M3, 8)
STOCHASTIC_FOUR(E5M2X4, uint32_t, E5M2, 8)
STOCHASTIC_FOUR(E3M2X4, uint32_t, E3M2, 8)
STOCHASTIC_FOUR(E2M3X4, uint32_t, E2M3, 8)
STOCHASTIC_FOUR(E2M1X4, uint16_t, E2M1, 4)

/* ---- cvt.pack: two saturated integers, pushed in below c ---- */

static inline uint32_t clamp_to(int32_t x, int32_t low, int32_t high)
{
    return (uint32_t)(x < low ? low : x > high ? high : x) & (uint32_t)(high - low);
}

#define PACK_FN(T, bits, low, high)                                                                          \
    LANE_FN2(lane_pack_##T, WARP, uint32_t, int32_t, int32_t,                                                \
             clamp_to(a, low, high) << (bits) | clamp_to(b, low, high))                                      \
    LANE_FN3(lane_pack_##T##_c, WARP, uint32_t, int32_t, int32_t, uint32_t,                                  \
             (uint64_t)c << 2 * (bits) | clamp_to(a, low, high) << (bits) | clamp_to(b, low, high))          \
    static void lane_pack_##T##_any(LANE_ARGS)                                                               \
    {                                                                                                        \
        (pvm_slot_type(inst, S_TYPE3) ? lane_pack_##T##_c : lane_pack_##T)(dst, src, inst);                  \
    }
#define PACKS(X)                                                                                             \
    X(U2, 2, 0, 3)                                                                                           \
    X(S2, 2, -2, 1)                                                                                          \
    X(U4, 4, 0, 15)                                                                                          \
    X(S4, 4, -8, 7)                                                                                          \
    X(U8, 8, 0, 255)                                                                                         \
    X(S8, 8, -128, 127)                                                                                      \
    X(U16, 16, 0, 65535)                                                                                     \
    X(S16, 16, -32768, 32767)
PACKS(PACK_FN)

#define SHORT_ROW(D, S, from)             {OP_cvt, T_##D, T_##S, 0, 0, CVT_ANY, lane_cvt_##D##_##S},
#define SMALL_ANY                         (V_SATFINITE | V_RELU)
#define SMALL_ROW(D, S)                   {OP_cvt, T_##D, T_##S, 0, 0, SMALL_ANY, lane_cvt_##D##_##S},
#define PAIR_ROW(D, S, E, F, bits, widen) SMALL_ROW(D, S)
#define RANDOM_ROW(D, S)                  {OP_cvt, T_##D, T_##S, 0, V_RS, SMALL_ANY, lane_cvt_##D##_##S},
#define PACK_ROW(T, bits, low, high)      {OP_cvt, T_##T, T_S32, 0, V_PACK | V_SAT, 0, lane_pack_##T##_any},
#define STOCHASTIC_PAIR_ROW(D)            {OP_cvt, T_##D, T_F32, 0, V_RS, SMALL_ANY, lane_cvt_##D##_F32_rs},

static const lane_row rows[] = {
    {OP_cvt, T_F16, T_F32, 0, 0, 0, lane_cvt_F16_F32_any},
    {OP_cvt, T_BF16, T_F32, 0, 0, 0, lane_cvt_BF16_F32_any},
    {OP_cvt, T_F16X2, T_F32, 0, 0, 0, lane_cvt_F16X2_F32_any},
    {OP_cvt, T_BF16X2, T_F32, 0, 0, 0, lane_cvt_BF16X2_F32_any},
    SHORTS_FROM(SHORT_ROW, F16) SHORTS_FROM(SHORT_ROW, BF16) SMALL_ROW(TF32, F32)                       /**/
    SMALL_ROW(F16X2, F32) SMALL_ROW(BF16X2, F32) SMALL_ROW(E4M3X2, F32) SMALL_ROW(E5M2X2, F32)          /**/
    SMALL_ROW(E3M2X2, F32) SMALL_ROW(E2M3X2, F32) SMALL_ROW(E2M1X2, F32)                                /**/
    PAIRS_FROM(PAIR_ROW, F16X2, ) PAIRS_FROM(PAIR_ROW, BF16X2, )                                        /**/
    SMALL_ROW(F16X2, E4M3X2) SMALL_ROW(F16X2, E5M2X2) SMALL_ROW(F16X2, E3M2X2) SMALL_ROW(F16X2, E2M3X2) /**/
    SMALL_ROW(F16X2, E2M1X2) SMALL_ROW(UE8M0X2, F32) SMALL_ROW(UE8M0X2, BF16X2)
        SMALL_ROW(BF16X2, UE8M0X2)                                                /**/
    SMALL_ROW(BF16X2, E4M3X2) SMALL_ROW(BF16X2, E5M2X2) SMALL_ROW(BF16X2, E3M2X2) /**/
    SMALL_ROW(BF16X2, E2M3X2) SMALL_ROW(BF16X2, E2M1X2) SMALL_ROW(BF16X2, S2F6X2) /**/
    STOCHASTIC_PAIR_ROW(F16X2) STOCHASTIC_PAIR_ROW(BF16X2) RANDOM_ROW(E4M3X4, F32)
        RANDOM_ROW(E5M2X4, F32) /**/
    RANDOM_ROW(E3M2X4, F32) RANDOM_ROW(E2M3X4, F32) RANDOM_ROW(E2M1X4, F32) PACKS(PACK_ROW)};

const lane_table LANE_LEVEL(lanes_convert_small) = {rows, sizeof rows / sizeof *rows};
