/* Operations for training: emitters and launches. docs/numerics.md has the formulas. */
#ifndef QDNN_KERNELS_TRAIN_H
#define QDNN_KERNELS_TRAIN_H

#include "kernels/describe.h"

/* ---- values.c: the computation for one element ---- */

float train_qmax(const kernel_spec *spec);
/* The scale, but at least the smallest allowed one; NaN counts as that. */
ptx_val train_least_scale(ptx_builder *b, ptx_val scale);
/* What is known about a scale. */
typedef enum {
    TRAIN_SCALE_OF_X,     /* from the absmax of x and its neighbours in the group: finite */
    TRAIN_SCALE_POSITIVE, /* a caller's, limited from below; may be infinite */
    TRAIN_SCALE_ANY       /* a state, which may be NaN or 0 */
} train_scale_kind;

/* x / scale: infinite x count as the largest finite numbers, NaN stays NaN. */
ptx_val train_forward(ptx_builder *b, const kernel_spec *spec, train_scale_kind kind, ptx_val x,
                      ptx_val scale);
/* x and scale may be empty if the specification needs none of them. */
ptx_val train_backward(ptx_builder *b, const kernel_spec *spec, train_scale_kind kind, ptx_val x,
                       ptx_val scale, ptx_val dy);
bool train_backward_needs_scale(const kernel_spec *spec);

/* LSQ's backward for one element: the gradient of x, and the factor of dy in the gradient of the scale. */
typedef struct lsq_element {
    ptx_val dx, slope;
} lsq_element;
lsq_element train_lsq_backward(ptx_builder *b, const kernel_spec *spec, ptx_val x, ptx_val scale, ptx_val dy);

/* 1 / sqrt(count * qmax); count is a u64. */
ptx_val train_gradient_factor(ptx_builder *b, const kernel_spec *spec, ptx_val count);

/* ---- sweep.c: fake_quantize, fake_quantize_backward and lsq, element by element ---- */

kernel_geometry sweep_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_sweep(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* ---- train_scale.c: from absmax to scales and states ---- */

kernel_geometry train_scale_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_train_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* ---- sums.c: shared by all sums in the order of the long sum; sums of lists ---- */

enum { SUM_BLOCK = 256, SUM_LANES = 32, SUM_CHUNK = 8, SUM_SEGMENT = 4096 };

/* How n elements are divided among channels, which alternate; the last turn may be incomplete. */
typedef struct sum_turns {
    ptx_val n;
    ptx_val whole,
        rest; /* u64, with several channels: elements of each in whole turns; of all in the last turn */
} sum_turns;
sum_turns sum_turns_of(ptx_builder *b, const kernel_spec *spec, ptx_val n);
/* The number of terms of a group, and of the largest group (u64). */
ptx_val sum_count(ptx_builder *b, const kernel_spec *spec, const sum_turns *all, ptx_val group);
ptx_val sum_most(ptx_builder *b, const kernel_spec *spec, const sum_turns *all);
/* The sum over the first `lanes` lanes, one per thread; all of them get it. The other lanes have no terms. */
ptx_val sum_tree(ptx_builder *b, ptx_val lane_sum, unsigned lanes);
/* Stores a finished sum: never -0, and multiplied by the gradient factor if the specification has it. */
void sum_store(ptx_builder *b, const kernel_spec *spec, ptx_val address, ptx_val sum, ptx_val count);

kernel_geometry long_sum_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_long_sum(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* ---- lsq_backward.c: both gradients in one pass; for long groups, the sums of segments ---- */

kernel_geometry lsq_backward_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_lsq_backward(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* The maximum number of segments per group. */
uint64_t lsq_backward_segments(const kernel_spec *spec, uint64_t n);

/* ---- train_steps.c ---- */

kernel_describes describe_fake_quantize, describe_fake_quantize_backward, describe_lsq, describe_lsq_backward,
    describe_train_scale, describe_long_sum;

void fake_quantize_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps);
void fake_quantize_backward_steps(const kernel_row *row, const kernel_spec *spec,
                                  const kernel_problem *problem, kernel_steps *steps);
void lsq_backward_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_steps *steps);
void fake_quantize_bound(const kernel_spec *spec, const kernel_problem *problem,
                         kernel_operand operands[QDNN_OPERAND_COUNT]);
void backward_bound(const kernel_spec *spec, const kernel_problem *problem,
                    kernel_operand operands[QDNN_OPERAND_COUNT]);
/* Set settings that have no effect in a specification to their defaults. */
void fix_decay(kernel_spec *spec);
void fix_unscaled(kernel_spec *spec);
void fix_sum(kernel_spec *spec);

#endif
