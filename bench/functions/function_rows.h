/* The elementary functions, one row each: the reference, the emitter and the exact function in doubles. For the
 * sweep of the benchmark and for the tests. */
#ifndef QDNN_BENCH_FUNCTION_ROWS_H
#define QDNN_BENCH_FUNCTION_ROWS_H

#include "kernels/functions.h"

enum { FUNCTION_COUNT = 7 };

typedef struct function_row {
    const char *name;
    float (*reference)(float x);
    ptx_val (*emit)(ptx_builder *b, ptx_val x);
    double (*exact)(double x); /* within 1e-6 ulp of an f32 */
    double limit;              /* of the error, in ulp */
} function_row;

extern const function_row function_rows[FUNCTION_COUNT];

/* The distance of y from the exact f(x) in units of the last place of an f32 there; infinite where a NaN is not
 * 7FFFFFFF, or where the signs (of zeros too) differ. */
double function_error(const function_row *row, float x, float y);

/* The text of a kernel `apply` with the parameters x, y (pointers to f32) and n (u32): y[i] = f(x[i]). To be
 * freed; null when there is no memory. Without a row it copies. */
char *function_kernel(const function_row *row, const ptx_sm *sm);

#endif
