/* Fake quantization, its gradients and those of LSQ, for a single element. */
#include "kernels/train/train.h"

#include "kernels/formats/format.h"
#include "kernels/functions.h"

float train_qmax(const kernel_spec *spec)
{
    return (float)((1 << (spec->bits - 1)) - 1);
}

static ptx_val not_a_number(ptx_builder *b)
{
    return ptx_bits(b, PTX_F32, 0x7FFFFFFF);
}

ptx_val train_least_scale(ptx_builder *b, ptx_val scale)
{
    return ptx_max(b, scale, ptx_f32(b, 1e-12f));
}

ptx_val train_quotient(ptx_builder *b, ptx_val x, ptx_val divisor)
{
    ptx_val largest = ptx_f32(b, element_largest(QDNN_DATA_F32));
    ptx_val quotient = ptx_div(b, ptx_clamp(b, x, ptx_neg(b, largest), largest), divisor);
    return ptx_selp(b, not_a_number(b), quotient, ptx_setp(b, PTX_NAN, x, x));
}

/* Restores the sign of a zero, which round_integral may lose. */
static ptx_val rounded(ptx_builder *b, const kernel_spec *spec, ptx_val z)
{
    return ptx_copysign(b, z, round_integral(b, spec, z));
}

ptx_val train_forward(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale)
{
    const float qmax = train_qmax(spec);
    ptx_val z = train_quotient(b, x, scale);
    ptx_val q = ptx_clamp(b, rounded(b, spec, z), ptx_f32(b, -qmax), ptx_f32(b, qmax));
    return ptx_selp(b, not_a_number(b), ptx_mul(b, q, scale), ptx_setp(b, PTX_NAN, z, z));
}

/* NaN if either z or dy is NaN. */
static ptx_val unless_nan(ptx_builder *b, ptx_val z, ptx_val dy, ptx_val dx)
{
    return ptx_selp(b, not_a_number(b), dx, ptx_setp(b, PTX_NAN, z, dy));
}

static ptx_val backward_clipped(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale, ptx_val dy)
{
    ptx_val z = train_quotient(b, x, scale), magnitude = ptx_abs(b, round_integral(b, spec, z));
    ptx_val inside = ptx_setp(b, PTX_LE, magnitude, train_qmax(spec));
    return unless_nan(b, z, dy, ptx_selp(b, dy, ptx_f32(b, 0), inside));
}

static ptx_val backward_tanh(ptx_builder *b, ptx_val x, ptx_val scale, ptx_val dy)
{
    ptx_val z = train_quotient(b, x, scale), t = emit_tanh(b, z);
    return ptx_mul(b, dy, ptx_sub(b, ptx_f32(b, 1), ptx_mul(b, t, t)));
}

/* The quotient by qmax * scale is NaN if the quotient by the scale is. */
static ptx_val backward_hard_tanh(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale,
                                  ptx_val dy)
{
    ptx_val u = train_quotient(b, x, ptx_mul(b, scale, train_qmax(spec)));
    ptx_val slope = ptx_max(b, ptx_sub(b, ptx_f32(b, 1), ptx_abs(b, u)), ptx_f32(b, 0));
    return unless_nan(b, u, dy, ptx_mul(b, dy, slope));
}

ptx_val train_backward(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale, ptx_val dy)
{
    switch (spec->backward) {
    case QDNN_BACKWARD_IDENTITY:
        return unless_nan(b, dy, dy, dy);
    case QDNN_BACKWARD_CLIPPED:
        return backward_clipped(b, spec, x, scale, dy);
    case QDNN_BACKWARD_TANH:
        return backward_tanh(b, x, scale, dy);
    case QDNN_BACKWARD_HARD_TANH:
        return backward_hard_tanh(b, spec, x, scale, dy);
    }
    missing_row("kinds of backward", (int)spec->backward);
}

lsq_element train_lsq_backward(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale, ptx_val dy)
{
    const float qmax = train_qmax(spec);
    ptx_val z = train_quotient(b, x, scale);
    ptx_val inside = ptx_setp(b, PTX_LE, ptx_abs(b, z), qmax);
    ptx_val error = ptx_sub(b, round_integral(b, spec, z), z);
    ptx_val slope = ptx_selp(b, error, ptx_copysign(b, z, ptx_f32(b, qmax)), inside);
    ptx_val dx = unless_nan(b, z, dy, ptx_selp(b, dy, ptx_f32(b, 0), inside));
    return (lsq_element){.dx = dx, .slope = unless_nan(b, z, z, slope)};
}

ptx_val train_gradient_factor(ptx_builder *b, const kernel_spec *spec, ptx_val count)
{
    ptx_val product = ptx_mul(b, ptx_cvt_rn(b, PTX_F32, count), train_qmax(spec));
    return ptx_rcp(b, ptx_sqrt(b, product));
}
