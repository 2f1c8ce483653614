/* What the two files of conversions share: the modifiers of an instruction, and rounding to integral values.
 */
#ifndef PTXVM_LANES_CONVERT_H
#define PTXVM_LANES_CONVERT_H

#include "real.h"

static inline bool has_ftz(const ptx_inst *inst)
{
    return inst->mod[S_FTZ] == M_ftz;
}

static inline bool has_sat(const ptx_inst *inst)
{
    return inst->mod[S_SAT] == M_sat;
}

static inline bool is_integral(const ptx_inst *inst)
{
    const unsigned mod = inst->mod[S_RND];
    return mod == M_rni || mod == M_rzi || mod == M_rmi || mod == M_rpi;
}

/* x as an integral value, rounded in the processor's mode: beside 2^23 (2^52) of the same sign there is no
 * room for a fraction. The sign is put back because 0 - 0 is -0 when rounding down. */
static inline float integral_f32(float x)
{
    const float big = copysignf(0x1p23f, x);
    const float r = copysignf((x + big) - big, x);
    return fabsf(x) < 0x1p23f ? r : x;
}

static inline double integral_f64(double x)
{
    const double big = copysign(0x1p52, x);
    const double r = copysign((x + big) - big, x);
    return fabs(x) < 0x1p52 ? r : x;
}

#define integral(x) _Generic((x), float : integral_f32, double : integral_f64)(x)

#define CVT_ANY (V_FTZ | V_SAT | V_SATFINITE | V_RELU | V_INTEGRAL)

#endif
