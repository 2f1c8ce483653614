/* The settings that a kernel is tested in: every value of every setting, or every pair of values. */
#ifndef QDNN_TEST_KERNEL_GRID_H
#define QDNN_TEST_KERNEL_GRID_H

#include "kernels/kernels.h"

enum { GRID_MAX = 256 };

typedef enum grid_strength {
    GRID_VALUES, /* each value of each setting occurs */
    GRID_PAIRS   /* each pair of values of two settings occurs together */
} grid_strength;

/* Fills specs, which has room for GRID_MAX, and returns how many there are: few, always the same, the
 * defaults first. */
int settings_grid(const kernel_row *row, grid_strength strength, kernel_spec *specs);

/* The same for matrices: layouts, directions of groups and related settings, as far as the row takes them. */
enum { MATRIX_SETTINGS = 17 };
int matrix_settings(const kernel_row *row, kernel_spec *specs);

#endif
