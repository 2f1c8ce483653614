/* cvt between integers, and between integers and f32, f64, and among f32, f64 (narrower results:
 * convert_small.c).
 *
 * Conversions to f32 and f64 round in the processor's mode. Float to integer: rounded to an integral value in
 * the processor's mode, then clamped; NaN gives 0, or 1 << (bits - 1) if the source is f64 or the result
 * has 64 bits (PTX ISA, cvt). */
#include "convert.h"

#define INTEGERS_TO(X, S) X(U8, S) X(S8, S) X(U16, S) X(S16, S) X(U32, S) X(S32, S) X(U64, S) X(S64, S)

enum {
    bits_U8 = 8,
    bits_S8 = 8,
    bits_U16 = 16,
    bits_S16 = 16,
    bits_U32 = 32,
    bits_S32 = 32,
    bits_U64 = 64,
    bits_S64 = 64
};
#define max_U8  UINT8_MAX
#define max_S8  INT8_MAX
#define max_U16 UINT16_MAX
#define max_S16 INT16_MAX
#define max_U32 UINT32_MAX
#define max_S32 INT32_MAX
#define max_U64 UINT64_MAX
#define max_S64 INT64_MAX
#define min_U8  0
#define min_S8  INT8_MIN
#define min_U16 0
#define min_S16 INT16_MIN
#define min_U32 0
#define min_S32 INT32_MIN
#define min_U64 0
#define min_S64 INT64_MIN

/* Clamped to the range of D. The comparison uses a type that can represent both ends. */
#define CLAMP_FNS(D, unused)                                                                                 \
    static inline t_##D clamp_unsigned_##D(uint64_t x)                                                       \
    {                                                                                                        \
        return x > (uint64_t)max_##D ? max_##D : (t_##D)x;                                                   \
    }                                                                                                        \
    static inline t_##D clamp_signed_##D(int64_t x)                                                          \
    {                                                                                                        \
        const int64_t top = (uint64_t)max_##D > INT64_MAX ? INT64_MAX : (int64_t)max_##D;                    \
        return x < min_##D ? min_##D : x > top ? (t_##D)max_##D : (t_##D)x;                                  \
    }
INTEGERS_TO(CLAMP_FNS, )

#define CLAMP_FROM(D, a)                                                                                     \
    _Generic((a), uint8_t                                                                                    \
             : clamp_unsigned_##D, uint16_t                                                                  \
             : clamp_unsigned_##D, uint32_t                                                                  \
             : clamp_unsigned_##D, uint64_t                                                                  \
             : clamp_unsigned_##D, default                                                                   \
             : clamp_signed_##D)(a)

#define INTEGER_FNS(D, S)                                                                                    \
    LANE_FN1(lane_cvt_##D##_##S, WARP, t_##D, t_##S, (t_##D)a)                                               \
    LANE_FN1(lane_cvt_##D##_##S##_SAT, WARP, t_##D, t_##S, CLAMP_FROM(D, a))
INTEGERS_TO(INTEGER_FNS, U8)
INTEGERS_TO(INTEGER_FNS, S8)
INTEGERS_TO(INTEGER_FNS, U16)
INTEGERS_TO(INTEGER_FNS, S16)
INTEGERS_TO(INTEGER_FNS, U32)
INTEGERS_TO(INTEGER_FNS, S32)
INTEGERS_TO(INTEGER_FNS, U64)
INTEGERS_TO(INTEGER_FNS, S64)

/* Integer to float; zero is a special case because compilers convert unsigned numbers by subtraction, which
 * may give -0 when rounding down. */
#define REAL_FROM_INTEGER(S, unused)                                                                         \
    static void lane_cvt_F32_##S(LANE_ARGS)                                                                  \
    {                                                                                                        \
        float *d = LANE_OUT(float, 0);                                                                       \
        const t_##S *a = LANE_IN(t_##S, 0);                                                                  \
        const bool sat = has_sat(inst);                                                                      \
        LANE_FOR(WARP)                                                                                       \
        d[i] = a[i] == 0 ? 0.0f : finish_f32((float)a[i], false, sat);                                       \
    }                                                                                                        \
    static void lane_cvt_F64_##S(LANE_ARGS)                                                                  \
    {                                                                                                        \
        double *d = LANE_OUT(double, 0);                                                                     \
        const t_##S *a = LANE_IN(t_##S, 0);                                                                  \
        const bool sat = has_sat(inst);                                                                      \
        LANE_FOR(WARP)                                                                                       \
        d[i] = a[i] == 0 ? 0.0 : finish_f64((double)a[i], false, sat);                                       \
    }
INTEGERS_TO(REAL_FROM_INTEGER, )

/* Float to integer: the first number above the range is a power of two, so it is exact in any float. */
#define LIMIT(D) ((double)(max_##D / 2 + 1) * 2)
#define TO_INTEGER(D, R, r, of_nan)                                                                          \
    ((r) != (r)            ? (t_##D)(of_nan)                                                                 \
     : (r) >= (R)LIMIT(D)  ? (t_##D)max_##D                                                                  \
     : (r) <= (R)(min_##D) ? (t_##D)min_##D                                                                  \
                           : (t_##D)(r))
#define NAN_OF(D, is_f64) ((is_f64) || bits_##D == 64 ? (uint64_t)1 << (bits_##D - 1) : 0)

#define INTEGER_FROM_REAL(D, S, E, R, widen, is_f64)                                                         \
    static void lane_cvt_##D##_##S(LANE_ARGS)                                                                \
    {                                                                                                        \
        t_##D *d = LANE_OUT(t_##D, 0);                                                                       \
        const E *a = LANE_IN(E, 0);                                                                          \
        const bool ftz = has_ftz(inst);                                                                      \
        const direction way = direction_of(inst);                                                            \
        if (way.zero && !ftz) { /* C's own conversion */                                                     \
            LANE_FOR(WARP)                                                                                   \
            d[i] = TO_INTEGER(D, R, widen(a[i]), NAN_OF(D, is_f64));                                         \
            return;                                                                                          \
        }                                                                                                    \
        if (!way.zero && !way.down && !way.up) {                                                             \
            LANE_FOR(WARP)                                                                                   \
            {                                                                                                \
                const R r = nearest(widen(a[i])); /* a subnormal becomes 0 in any case */                    \
                d[i] = TO_INTEGER(D, R, r, NAN_OF(D, is_f64));                                               \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        LANE_FOR(WARP)                                                                                       \
        {                                                                                                    \
            const R r = integral(flush(widen(a[i]), ftz), way);                                              \
            d[i] = TO_INTEGER(D, R, r, NAN_OF(D, is_f64));                                                   \
        }                                                                                                    \
    }
#define SAME(x)                 (x)
#define INTEGER_FROM_F32(D, S)  INTEGER_FROM_REAL(D, F32, float, float, SAME, false)
#define INTEGER_FROM_F64(D, S)  INTEGER_FROM_REAL(D, F64, double, double, SAME, true)
#define INTEGER_FROM_F16(D, S)  INTEGER_FROM_REAL(D, F16, uint16_t, float, f32_of_f16, false)
#define INTEGER_FROM_BF16(D, S) INTEGER_FROM_REAL(D, BF16, uint16_t, float, f32_of_bf16, false)
INTEGERS_TO(INTEGER_FROM_F32, )
INTEGERS_TO(INTEGER_FROM_F64, )
INTEGERS_TO(INTEGER_FROM_F16, )
INTEGERS_TO(INTEGER_FROM_BF16, )

/* f64 keeps the sign and the payload of a NaN, made quiet; from f32, C's conversion does that. */
static inline double f64_of_f16(uint16_t h)
{
    const uint64_t nan = (uint64_t)(h & 0x8000) << 48 | F64_INF | F64_QUIET | (uint64_t)(h & 0x3FF) << 42;
    return (h & 0x7FFF) > 0x7C00 ? f64_of_bits(nan) : (double)f32_of_f16(h);
}

static inline float f32_shifted(uint16_t h)
{
    return f32_of_bits((uint32_t)h << 16);
}

/* Float to float. .ftz applies only to the f32 side. */
#define REAL_FROM_REAL(D, S, R, E, widen, ftz_in, ftz_out)                                                   \
    static void lane_cvt_##D##_##S(LANE_ARGS)                                                                \
    {                                                                                                        \
        R *d = LANE_OUT(R, 0);                                                                               \
        const E *a = LANE_IN(E, 0);                                                                          \
        const bool ftz = has_ftz(inst), sat = has_sat(inst);                                                 \
        LANE_FOR(WARP)                                                                                       \
        d[i] = finish((R)flush(widen(a[i]), ftz && ftz_in), ftz && ftz_out, sat);                            \
    }
REAL_FROM_REAL(F32, F32, float, float, SAME, true, true)
REAL_FROM_REAL(F32, F64, float, double, SAME, false, true)
REAL_FROM_REAL(F32, F16, float, uint16_t, f32_of_f16, false, false)
REAL_FROM_REAL(F32, BF16, float, uint16_t, f32_of_bf16, false, true)
REAL_FROM_REAL(F64, F32, double, float, SAME, true, false)
REAL_FROM_REAL(F64, F64, double, double, SAME, false, false)
REAL_FROM_REAL(F64, F16, double, uint16_t, f64_of_f16, false, false)
REAL_FROM_REAL(F64, BF16, double, uint16_t, f32_shifted, false, false)

/* If there is nothing to compute, the bits are unchanged, even those of a NaN: ptxas drops the former and
 * turns the latter into a shift. */
LANE_FN1(lane_cvt_F32_F32_bits, WARP, uint32_t, uint32_t, a)
LANE_FN1(lane_cvt_F32_BF16_bits, WARP, uint32_t, uint16_t, (uint32_t)a << 16)

/* Rounded to an integral value of the same type. */
static void lane_cvt_F32_integral(LANE_ARGS)
{
    float *d = LANE_OUT(float, 0);
    const float *a = LANE_IN(float, 0);
    const bool ftz = has_ftz(inst), sat = has_sat(inst);
    const direction way = direction_of(inst);
    LANE_FOR(WARP)
    d[i] = finish_f32(integral_f32(flush_f32(a[i], ftz), way), ftz, sat);
}

static void lane_cvt_F64_integral(LANE_ARGS)
{
    double *d = LANE_OUT(double, 0);
    const double *a = LANE_IN(double, 0);
    const bool sat = has_sat(inst);
    const direction way = direction_of(inst);
    LANE_FOR(WARP)
    d[i] = finish_f64(payload_f64(integral_f64(a[i], way), a[i], a[i], a[i]), false, sat);
}

#define REAL_ROW(D, S) {OP_cvt, T_##D, T_##S, 0, 0, V_FTZ | V_SAT, lane_cvt_##D##_##S},
#define INTEGER_ROW(D, S)                                                                                    \
    {OP_cvt, T_##D, T_##S, 0, 0, V_FTZ, lane_cvt_##D##_##S},                                                 \
        {OP_cvt, T_##D, T_##S, 0, V_SAT, V_FTZ, lane_cvt_##D##_##S##_SAT},
#define TO_REAL_ROW(S, D)   REAL_ROW(D, S)
#define FROM_REAL_ROW(D, S) {OP_cvt, T_##D, T_##S, 0, 0, CVT_ANY, lane_cvt_##D##_##S},

static const lane_row rows[] = {
    {OP_cvt, T_F32, T_F32, 0, 0, 0, lane_cvt_F32_F32_bits},
    {OP_cvt, T_F32, T_BF16, 0, 0, 0, lane_cvt_F32_BF16_bits},
    {OP_cvt, T_F32, T_F32, 0, V_INTEGRAL, V_FTZ | V_SAT, lane_cvt_F32_integral},
    {OP_cvt, T_F64, T_F64, 0, V_INTEGRAL, V_SAT, lane_cvt_F64_integral},
    REAL_ROW(F32, F32) REAL_ROW(F32, F64) REAL_ROW(F32, F16) REAL_ROW(F32, BF16)              /**/
    REAL_ROW(F64, F32) REAL_ROW(F64, F64) REAL_ROW(F64, F16) REAL_ROW(F64, BF16)              /**/
    INTEGERS_TO(INTEGER_ROW, U8) INTEGERS_TO(INTEGER_ROW, S8) INTEGERS_TO(INTEGER_ROW, U16)   /**/
    INTEGERS_TO(INTEGER_ROW, S16) INTEGERS_TO(INTEGER_ROW, U32) INTEGERS_TO(INTEGER_ROW, S32) /**/
    INTEGERS_TO(INTEGER_ROW, U64) INTEGERS_TO(INTEGER_ROW, S64)                               /**/
    INTEGERS_TO(TO_REAL_ROW, F32) INTEGERS_TO(TO_REAL_ROW, F64)                               /**/
    INTEGERS_TO(FROM_REAL_ROW, F32) INTEGERS_TO(FROM_REAL_ROW, F64)                           /**/
    INTEGERS_TO(FROM_REAL_ROW, F16) INTEGERS_TO(FROM_REAL_ROW, BF16)};

const lane_table LANE_LEVEL(lanes_convert) = {rows, sizeof rows / sizeof *rows};
