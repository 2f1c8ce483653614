/* Trials on matrices: layouts, directions of groups, orders and swizzles of scales, packed zeros. What they have is
 * chosen by a generator that always gives the same; test_parity_grid.c counts that everything occurs. */
#ifndef QDNN_TEST_PARITY_MATRIX_H
#define QDNN_TEST_PARITY_MATRIX_H

#include "parity/trial.h"

enum { MATRIX_TURNS = 6, MATRIX_TRIALS = 24 };

/* Operations on formats whose codes and groups lie in several ways. */
int matrix_row_count(void);
const kernel_row *matrix_row_at(int index);

parity_trial matrix_trial_at(const kernel_row *row, int turn, int index);

/* The same settings with another shape and other data, number i of MATRIX_OTHERS. False where such a matrix is not served. */
enum { MATRIX_OTHERS = 88 };
bool matrix_other(const parity_trial *trial, int i, parity_trial *other);

/* More for the kernels that a tensor's matrix hardly tests: those of a list of ranges, of scales over scales, and of the one scale of a whole tensor. False where the
 * settings need none. The last is large. */
enum { MATRIX_EXTRAS = 89 };
bool matrix_extra(const parity_trial *trial, int i, parity_trial *extra);

#endif
