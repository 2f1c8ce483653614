/* Fake quantization, its gradients and those of LSQ, for a single element. */
#include "kernels/train/train.h"

#include "kernels/formats/format.h"
#include "kernels/functions.h"

#include <math.h>

float train_qmax(const kernel_spec *spec)
{
    return (float)((1 << (spec->train.bits - 1)) - 1);
}

static ptx_val not_a_number(ptx_builder *b)
{
    return ptx_bits(b, PTX_F32, 0x7FFFFFFF);
}

ptx_val train_least_scale(ptx_builder *b, ptx_val scale)
{
    return ptx_max(b, scale, ptx_f32(b, 1e-12f));
}

/* x / divisor: infinite x count as the largest finite numbers, and NaN as one of them. */
static ptx_val finite_quotient(ptx_builder *b, ptx_val x, ptx_val divisor)
{
    const float largest = element_largest(QDNN_DATA_F32);
    return ptx_div(b, ptx_clamp(b, x, ptx_f32(b, -largest), ptx_f32(b, largest)), divisor);
}

/* Predicate: x / scale is NaN, or `other` is; `quotient` is the finite one. A positive scale makes no NaN, not even an
 * infinite scale, as x counts as finite. */
static ptx_val is_nan(ptx_builder *b, train_scale_kind kind, ptx_val x, ptx_val quotient, ptx_val other)
{
    ptx_val inputs = ptx_setp(b, PTX_NAN, x, other);
    bool is_positive = kind == TRAIN_SCALE_OF_X || kind == TRAIN_SCALE_POSITIVE;
    return is_positive ? inputs : ptx_or(b, inputs, ptx_setp(b, PTX_NAN, quotient, quotient));
}

static ptx_val nan_if(ptx_builder *b, ptx_val condition, ptx_val value)
{
    return ptx_selp(b, not_a_number(b), value, condition);
}

/* Of the code qmax, for the scale that infinite x have: the largest finite number / qmax, rounded. */
static bool largest_code_is_infinite(float qmax)
{
    const volatile float scale = element_largest(QDNN_DATA_F32) / qmax;
    return isinf(scale * qmax);
}

/* With the scale of x itself, the scale is absmax / qmax but for an error of 2^-24, so that finite quotients round to at
 * most qmax. Infinities need no treatment of their own, either: clamped, they become qmax, which is what the largest
 * number becomes; and if the result of that is infinite, no clamp is needed at all. */
static ptx_val forward_of_x(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale)
{
    const float qmax = train_qmax(spec);
    ptx_val q = round_integral(b, spec, ptx_div(b, x, scale));
    if (largest_code_is_infinite(qmax))
        return ptx_mul(b, q, scale);
    q = ptx_clamp(b, q, ptx_f32(b, -qmax), ptx_f32(b, qmax));
    return nan_if(b, ptx_setp(b, PTX_NAN, x, x), ptx_mul(b, q, scale));
}

ptx_val train_forward(ptx_builder *b, const kernel_spec *spec, train_scale_kind kind, ptx_val x,
                      ptx_val scale)
{
    const float qmax = train_qmax(spec);
    if (kind == TRAIN_SCALE_OF_X)
        return forward_of_x(b, spec, x, scale);
    ptx_val z = finite_quotient(b, x, scale);
    ptx_val q = ptx_clamp(b, round_integral(b, spec, z), ptx_f32(b, -qmax), ptx_f32(b, qmax));
    return nan_if(b, is_nan(b, kind, x, z, x), ptx_mul(b, q, scale));
}

/* With the scale of x itself, every x is inside, as its code is at most qmax. */
static ptx_val backward_clipped(ptx_builder *b, const kernel_spec *spec, train_scale_kind kind, ptx_val x,
                                ptx_val scale, ptx_val dy)
{
    if (kind == TRAIN_SCALE_OF_X)
        return nan_if(b, ptx_setp(b, PTX_NAN, x, dy), dy);
    ptx_val z = finite_quotient(b, x, scale), magnitude = ptx_abs(b, round_integral(b, spec, z));
    ptx_val inside = ptx_setp(b, PTX_LE, magnitude, train_qmax(spec));
    return nan_if(b, is_nan(b, kind, x, z, dy), ptx_selp(b, dy, ptx_f32(b, 0), inside));
}

static ptx_val backward_tanh(ptx_builder *b, ptx_val x, ptx_val scale, ptx_val dy)
{
    ptx_val z = nan_if(b, ptx_setp(b, PTX_NAN, x, x), finite_quotient(b, x, scale)), t = emit_tanh(b, z);
    return ptx_mul(b, dy, ptx_sub(b, ptx_f32(b, 1), ptx_mul(b, t, t)));
}

/* The quotient by qmax * scale is NaN if the quotient by the scale is. */
static ptx_val backward_hard_tanh(ptx_builder *b, const kernel_spec *spec, train_scale_kind kind, ptx_val x,
                                  ptx_val scale, ptx_val dy)
{
    ptx_val u = finite_quotient(b, x, ptx_mul(b, scale, train_qmax(spec)));
    ptx_val slope = ptx_max(b, ptx_sub(b, ptx_f32(b, 1), ptx_abs(b, u)), ptx_f32(b, 0));
    return nan_if(b, is_nan(b, kind, x, u, dy), ptx_mul(b, dy, slope));
}

bool train_backward_needs_scale(const kernel_spec *spec)
{
    return spec->train.backward != QDNN_BACKWARD_IDENTITY &&
           !(spec->train.backward == QDNN_BACKWARD_CLIPPED &&
             spec->train.scale_mode == QDNN_SCALE_MODE_BATCH);
}

ptx_val train_backward(ptx_builder *b, const kernel_spec *spec, train_scale_kind kind, ptx_val x,
                       ptx_val scale, ptx_val dy)
{
    switch (spec->train.backward) {
    case QDNN_BACKWARD_IDENTITY:
        return nan_if(b, ptx_setp(b, PTX_NAN, dy, dy), dy);
    case QDNN_BACKWARD_CLIPPED:
        return backward_clipped(b, spec, kind, x, scale, dy);
    case QDNN_BACKWARD_TANH:
        return backward_tanh(b, x, scale, dy);
    case QDNN_BACKWARD_HARD_TANH:
        return backward_hard_tanh(b, spec, kind, x, scale, dy);
    }
    missing_row("kinds of backward", (int)spec->train.backward);
}

/* If only dy is NaN, the slope need not be, since it is multiplied by dy; but one predicate serves both. */
lsq_element train_lsq_backward(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale, ptx_val dy)
{
    const float qmax = train_qmax(spec);
    ptx_val z = finite_quotient(b, x, scale);
    ptx_val inside = ptx_setp(b, PTX_LE, ptx_abs(b, z), qmax);
    ptx_val error = ptx_sub(b, round_integral(b, spec, z), z);
    ptx_val slope = ptx_selp(b, error, ptx_copysign(b, z, ptx_f32(b, qmax)), inside);
    ptx_val dx = ptx_selp(b, dy, ptx_f32(b, 0), inside);
    ptx_val none = is_nan(b, TRAIN_SCALE_POSITIVE, x, z, dy);
    return (lsq_element){.dx = nan_if(b, none, dx), .slope = nan_if(b, none, slope)};
}

ptx_val train_gradient_factor(ptx_builder *b, const kernel_spec *spec, ptx_val count)
{
    ptx_val product = ptx_mul(b, ptx_cvt_rn(b, PTX_F32, count), train_qmax(spec));
    return ptx_rcp(b, ptx_sqrt(b, product));
}
