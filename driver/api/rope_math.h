/* The tables of rope: frequencies, cosines and sines in written sequences of f64, without the C library (docs/numerics.md,
 * "Tables of rope"). The caller has set the default floating-point environment. */
#ifndef QDNN_DRIVER_ROPE_MATH_H
#define QDNN_DRIVER_ROPE_MATH_H

#include <qdnn/rope.h>

/* The frequency of pair i, from settings that are valid. */
float rope_frequency(const qdnnRopeTables_t *tables, int64_t i);
/* What cosines and sines are multiplied by. */
float rope_attention_factor(const qdnnRopeTables_t *tables);
/* The cosine and the sine of position * frequency: frequency is 0 to 2, position below 2^29. */
void rope_cos_sin(int64_t position, float frequency, float *c, float *s);

#endif
