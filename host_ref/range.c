/* How the scale, the zero and the global scale are computed from the smallest and the largest value of a
 * group. */
#include "host_ref/internal.h"

/* Extends the range to contain 0: lo is never above 0 here, nor hi below. NaN has been ignored. */
static group_range with_zero(group_range range)
{
    return (group_range){range.lo < 0.0f ? range.lo : 0.0f, range.hi > 0.0f ? range.hi : 0.0f};
}

/* The range that zeros and minima are computed from. A group without numbers is treated as zeros. */
static group_range range_for_zero(const tensor *t, group_range range)
{
    bool empty = range.lo > range.hi;
    return t->spec.range == QDNN_RANGE_TIGHT && !empty ? range : with_zero(range);
}

float hr_absmax_of(group_range range)
{
    range = with_zero(range);
    return larger(-range.lo, range.hi);
}

/* The exponent of absmax rounded to the codes' mantissa. Only a carry out of the mantissa matters, and it
 * happens in the upper half of the last unit below the power of two; the tie goes up, because the power of
 * two is the even neighbour. */
static int exponent_even(const codec *c, float absmax)
{
    int exponent = ilogbf(absmax);
    float mantissa = ldexpf(absmax, -exponent);
    return mantissa >= 2.0f - ldexpf(1.0f, -c->mantissa_bits - 1) ? exponent + 1 : exponent;
}

/* The smallest exponent for which top * 2^(exponent - emax) is not below absmax: mantissas are compared. */
static int exponent_ceil(const codec *c, float absmax)
{
    int exponent = ilogbf(absmax);
    return ldexpf(absmax, -exponent) > ldexpf(c->top, -c->emax) ? exponent + 1 : exponent;
}

static float mx_scale(const tensor *t, float absmax)
{
    int exponent = -127;
    if (absmax > 0.0f) {
        exponent = t->spec.mx_rounding == QDNN_MX_EVEN   ? exponent_even(&t->codec, absmax)
                   : t->spec.mx_rounding == QDNN_MX_CEIL ? exponent_ceil(&t->codec, absmax)
                                                         : ilogbf(absmax);
        exponent -= t->codec.emax;
    }
    return ldexpf(1.0f, exponent < -127 ? -127 : exponent > 127 ? 127 : exponent);
}

/* The number of distinct codes, minus one. */
static float levels(const tensor *t)
{
    return t->codec.high - t->codec.low;
}

static float width_scale(const tensor *t, group_range range)
{
    float width = range.hi - range.lo;
    if (isinf(width))
        return range.hi / levels(t) - range.lo / levels(t);
    return larger(width, t->spec.floor) / levels(t);
}

/* If stored as its reciprocal, it is also computed by a single division. */
float hr_global_from(const tensor *t, float absmax)
{
    float bounded = larger(absmax, t->spec.floor), largest = t->codec.top * 448.0f;
    return t->spec.global_scale == 2 ? largest / bounded : bounded / largest;
}

/* Before rounding to the scale type. */
float hr_scale_from(const tensor *t, group_range range, float global)
{
    float absmax = hr_absmax_of(range);
    if (t->spec.scale == QDNN_SCALE_E8M0)
        return mx_scale(t, absmax);
    if (t->spec.global_scale)
        return global == 0.0f ? 0.0f : absmax / t->codec.top / global;
    if (t->spec.zero_kind != QDNN_ZERO_NONE)
        return width_scale(t, range_for_zero(t, range));
    if (t->codec.family == CODEC_TABLE)
        return absmax;
    return larger(absmax, t->spec.floor) / t->codec.top;
}

/* The smallest zero that can be stored: 0 would be stored as -1, which needs the option that the largest code
 * means it. */
static float least_zero(const tensor *t)
{
    return t->spec.zero_minus_one && !t->spec.zero_wraps ? 1.0f : 0.0f;
}

float hr_zero_from(const tensor *t, group_range range, float scale)
{
    range = range_for_zero(t, range);
    if (t->spec.zero_kind == QDNN_ZERO_MINIMUM)
        return range.lo - t->codec.low * scale;
    if (t->spec.range == QDNN_RANGE_TIGHT)
        return -range.lo / scale + t->codec.low;
    return clamp(rintf(-range.lo / scale), least_zero(t), levels(t)) + t->codec.low;
}
