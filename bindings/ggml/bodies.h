/* What operations on each element compute of x (and z): f32 instructions without approximations, so with the same bits on
 * every GPU. */
#ifndef QDNN_GGML_BODIES_H
#define QDNN_GGML_BODIES_H

#include "engine.h"

each_body body_add, body_sub, body_mul, body_div;
each_body body_scale, body_clamp, body_sqr, body_sqrt, body_log, body_sin, body_cos, body_leaky_relu;
each_body body_abs, body_sgn, body_neg, body_step, body_tanh, body_elu, body_relu, body_sigmoid,
    body_gelu_tanh, body_gelu_quick, body_silu, body_hardswish, body_hardsigmoid, body_exp, body_expm1,
    body_softplus, body_gelu_erf, body_xielu, body_floor, body_ceil, body_round, body_trunc;
each_body body_reglu, body_geglu, body_swiglu, body_swiglu_oai, body_geglu_erf, body_geglu_quick,
    body_swiglu_clamp;
each_body body_number;

/* Cosine and sine of an f32 angle, rounded to f32. */
void emit_cos_sin(ptx_builder *b, ptx_val angle, ptx_val *cosine, ptx_val *sine);

#endif
