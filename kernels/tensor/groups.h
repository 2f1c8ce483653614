/* Groups of a column of weights whose numbers are equally spaced, so that they are found by adding instead
 * of dividing. */
#ifndef QDNN_KERNELS_TENSOR_GROUPS_H
#define QDNN_KERNELS_TENSOR_GROUPS_H

#include "kernels/formats/matrix.h"

/* How many k share a scale; 0: all of them. */
uint64_t group_extent(const kernel_spec *spec);

typedef struct column_groups {
    ptx_val first, step; /* u64: the number of the group at k = 0, and the distance to the next */
} column_groups;

/* Whether groups are regular: along k, in either order of storage, each with its own scale and zero. */
bool groups_are_regular(const kernel_spec *spec);
/* The groups of column n (u64). */
column_groups column_groups_of(ptx_builder *b, const matrix *m, ptx_val n);
/* The values of group number `group` of the column (u64). */
group_values column_group(ptx_builder *b, const matrix *m, const column_groups *c, ptx_val group);
/* For a group number known at emit time: the address of its scale, and its values. */
ptx_val column_scale_address(ptx_builder *b, const matrix *m, const column_groups *c, unsigned group);
group_values column_group_known(ptx_builder *b, const matrix *m, const column_groups *c, unsigned group);

#endif
