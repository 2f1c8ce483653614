/* Between the parts of sass.h. */
#ifndef CLOCK_SASS_INTERNAL_H
#define CLOCK_SASS_INTERNAL_H

#include "clock/sass/sass.h"

/* decode.c: fills what follows from the text; and the control codes in the upper 64 bits. */
void sass_decode(sass_inst *inst);
sass_control sass_control_of(uint64_t high);

/* loops.c. False: no memory. */
bool sass_find_loops(sass_code *code);

/* ptxas' own code for numbers that its short sequence for div, sqrt or rcp cannot do. */
bool sass_calls_slow_path(const sass_inst *inst);

/* flow.c: how often each block and each edge runs, for warps that execute each PTX line so often in total. merged: they
 * take several paths. False: no memory. */
bool sass_solve(const sass_code *code, const uint64_t *lines, int n_lines, uint64_t warps, bool merged,
                double *blocks, double *edges, double *misfit);

/* nnls.c: the x >= 0 with the least x'Gx - 2h'x; G is n x n, symmetric, positive definite. False: no
 * memory. */
bool nnls(const double *g, const double *h, int n, double *x);

#endif
