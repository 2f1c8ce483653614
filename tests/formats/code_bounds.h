/* What the codes of a format stand for, and where one ends and the next begins: found by asking host_ref, so that a new format is attacked
 * at its own bounds without being named anywhere in the tests. */
#ifndef QDNN_TEST_CODE_BOUNDS_H
#define QDNN_TEST_CODE_BOUNDS_H

#include "kernels/kernels.h"

enum { CODE_BOUNDS_MAX = 256 };

/* With a scale of 1, in increasing order: the last f32 before each change of the code's value, on the way from the least value to the
 * largest. */
typedef struct code_bounds {
    const char *name;
    int count;
    float bound[CODE_BOUNDS_MAX];
    float largest; /* the largest finite magnitude that a code stands for */
} code_bounds;

/* Null for integers and blocks, whose bounds follow from their width, and for formats that are not quantized to. */
const code_bounds *code_bounds_of(const format_facts *format);

#endif
