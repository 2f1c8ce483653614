/* Groups of a column of weights whose numbers lie at equal distances: found by adding, not by dividing. */
#ifndef QDNN_KERNELS_TENSOR_GROUPS_H
#define QDNN_KERNELS_TENSOR_GROUPS_H

#include "kernels/formats/matrix.h"

/* How many k share a scale; 0: all of them. */
uint64_t group_extent(const kernel_spec *spec);

typedef struct column_groups {
    ptx_val first, step; /* u64: the number of the group at k = 0, and how far the next is */
} column_groups;

/* Whether they are so: along k, one behind the other in either order, each with a scale and a zero of its own. */
bool groups_are_regular(const kernel_spec *spec);
/* Those of column n (u64). */
column_groups column_groups_of(ptx_builder *b, const matrix *m, ptx_val n);
/* The values of the group with that number (u64) among the column's; and of one that is known now. */
group_values column_group(ptx_builder *b, const matrix *m, const column_groups *c, ptx_val group);
/* Where the scale of a group that is known now lies. */
ptx_val column_scale_address(ptx_builder *b, const matrix *m, const column_groups *c, unsigned group);
group_values column_group_known(ptx_builder *b, const matrix *m, const column_groups *c, unsigned group);

#endif
