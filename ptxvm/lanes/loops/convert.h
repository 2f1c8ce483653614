/* Shared by the two files of conversions: the modifiers of an instruction, and rounding to integral
 * values. */
#ifndef PTXVM_LANES_CONVERT_H
#define PTXVM_LANES_CONVERT_H

#include "real.h"

static inline bool has_ftz(const pvm_inst *inst)
{
    return inst->mod[S_FTZ] == M_ftz;
}

static inline bool has_sat(const pvm_inst *inst)
{
    return inst->mod[S_SAT] == M_sat;
}

static inline bool is_integral(const pvm_inst *inst)
{
    const unsigned mod = inst->mod[S_RND];
    return mod == M_rni || mod == M_rzi || mod == M_rmi || mod == M_rpi;
}

/* The rounding direction of a number that is not integral: to nearest even, or one of these. */
typedef struct direction {
    bool zero, down, up;
} direction;

static inline direction direction_of(const pvm_inst *inst)
{
    const unsigned mod = inst->mod[S_RND];
    return (direction){mod == M_rzi, mod == M_rmi, mod == M_rpi};
}

/* Rounds x to an integral value. Nearest: adding 2^23 (2^52) of the same sign leaves no room for a fraction.
 * The others: the same, and one step back if it went the wrong way. The sign is restored because it may be
 * lost with zero. */
#define INTEGRAL_FN(name, T, big, absolute, copy_sign)                                                       \
    static inline T name(T x, const direction way)                                                           \
    {                                                                                                        \
        const T magnitude = absolute(x);                                                                     \
        const T near = (magnitude + (big)) - (big);                                                          \
        const bool lower = way.zero || (x < 0 ? way.up : way.down);                                          \
        const bool higher = x < 0 ? way.down : way.up;                                                       \
        const T floored = lower && near > magnitude ? near - 1 : near;                                       \
        const T r = higher && near < magnitude ? near + 1 : floored;                                         \
        return copy_sign(magnitude < (big) ? r : magnitude, x);                                              \
    }
INTEGRAL_FN(integral_f32, float, 0x1p23f, fabsf, copysignf)
INTEGRAL_FN(integral_f64, double, 0x1p52, fabs, copysign)

/* To nearest only: the common case. */
static inline float nearest_f32(float x)
{
    const float magnitude = fabsf(x);
    return copysignf(magnitude < 0x1p23f ? (magnitude + 0x1p23f) - 0x1p23f : magnitude, x);
}

static inline double nearest_f64(double x)
{
    const double magnitude = fabs(x);
    return copysign(magnitude < 0x1p52 ? (magnitude + 0x1p52) - 0x1p52 : magnitude, x);
}

#define nearest(x)       _Generic((x), float : nearest_f32, double : nearest_f64)(x)
#define integral(x, way) _Generic((x), float : integral_f32, double : integral_f64)(x, way)

#define CVT_ANY (V_FTZ | V_SAT | V_SATFINITE | V_RELU | V_INTEGRAL)

#endif
