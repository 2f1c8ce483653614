/* Data for integer products in which a last bit that is lost on the way shows in y (integer_exposes). */
#ifndef QDNN_TEST_INTEGER_EXPOSE_H
#define QDNN_TEST_INTEGER_EXPOSE_H

#include "device/integer_case.h"

enum { EXPOSE_BIAS = 1000 };

/* With a multiplier, the product of which with the sum rounds up to half way between two codes. 0: there is none. */
float integer_expose_product(int64_t sum);
/* With one, the product of which is a code more than that with a sum rounded toward zero. */
float integer_expose_sum(int64_t sum);

/* What the case asks for: all rows of x are the same, or the second half of the groups is the opposite of the first. */
void integer_expose_codes(const integer_case *c, void *x, void *w, float *x_scale);
/* The scales of those halves. */
void integer_expose_scales(qdnnDataType_t type, int64_t columns, int64_t groups, void *scales);
/* Bias and residual of EXPOSE_REST; none of EXPOSE_ERRORS. */
void integer_expose_rest(const integer_case *c, const ref_integer_spec *s, const ref_integer_scales *scales,
                         const ref_product *law, const void *codes, integer_buffers *b,
                         const ref_product_arrays *arrays);

#endif
