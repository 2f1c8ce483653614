/* What operations on each element compute: f32 instructions without approximations, so with the same bits on every GPU. */
#ifndef QDNN_GGML_BODIES_H
#define QDNN_GGML_BODIES_H

#include "engine.h"

/* A function of an element x; of two, x and z; or of these and up to EACH_NUMBERS numbers. All are f32. */
struct each_body {
    ptx_val (*one)(ptx_builder *b, ptx_val x);
    ptx_val (*two)(ptx_builder *b, ptx_val x, ptx_val z);
    ptx_val (*with)(ptx_builder *b, ptx_val x, ptx_val z, const ptx_val *number);
    bool is_gate; /* `one` of x, times z */
};

extern const each_body body_add, body_neg, body_same;
/* Null: there is none. */
const each_body *body_of_op(enum ggml_op op);
const each_body *body_of_unary(enum ggml_unary_op op);
const each_body *body_of_glu(enum ggml_glu_op op);

ptx_val emit_body(ptx_builder *b, const each_body *body, ptx_val x, ptx_val z, const ptx_val *number);

/* Cosine and sine of an f32 angle, rounded to f32. */
void emit_cos_sin(ptx_builder *b, ptx_val angle, ptx_val *cosine, ptx_val *sine);

#endif
