/* Copies between strides and types; rows of a table by index, read (gather) and written (scatter). docs/numerics.md,
 * "Selection and copies", has the contract.
 *
 * A copy has four dimensions: m, dim_1, dim_2 and columns. Along the last one, lines of neighbours are copied by teams of
 * lanes, 16 bytes of the wider type per lane at a time:
 *   flat       both sides are packed: one line of all elements
 *   lines      both sides are packed along columns
 *   elements   one of them is not: single elements
 *   tiles      y is packed along columns, x along dim_2: squares go through shared memory, so that both are accessed by
 *              whole sectors
 *
 *   cast.c        elements from one type to another, in registers
 *   copy.c        the kernels
 *   copy_plan.c   operands and launches */
#ifndef QDNN_KERNELS_COPY_H
#define QDNN_KERNELS_COPY_H

#include "kernels/emit.h"
#include "kernels/operations.h"

enum {
    COPY_BLOCK = 256,
    COPY_TURNS = 4, /* accesses that a lane has in flight, where a line has more than a block's */
    COPY_SIDE = 32  /* of a tile */
};

/* ---- cast.c ---- */

/* Bytes of an element; U8, U16, U32 and U64 are any elements of that size. */
unsigned cast_bytes(int type);
/* Elements of a vector: 16 bytes of the wider type. */
unsigned cast_vector(const kernel_copying *copy);
/* The bits of the NaN of a type; 0 for U8 to U64. */
uint64_t cast_nan(int type);

enum { CAST_MAX = 16 };
/* `count` neighbouring elements (1, or a power of two that fills at most 16 bytes of either type) as they are in memory. */
typedef struct cast_run {
    unsigned count;
    ptx_val part[4]; /* words of 32 bits; one element of 64; or u32 with what is shorter than a word */
} cast_run;
cast_run cast_load(ptx_builder *b, const kernel_copying *copy, ptx_val address, unsigned count);
/* Their conversion: equal types stay as they are. */
cast_run cast_run_of(ptx_builder *b, const kernel_copying *copy, const cast_run *x);
void cast_store(ptx_builder *b, const kernel_copying *copy, ptx_val address, const cast_run *y);

/* ---- The operations ---- */

unsigned copy_turns(const kernel_spec *spec);
/* Elements of a line that a team copies at a time. */
uint64_t copy_span(const kernel_spec *spec);

#define COPY_OPERATION(name)                                                                                 \
    void fix_##name(kernel_spec *spec);                                                                      \
    kernel_describes describe_##name;                                                                        \
    void name##_complete(const kernel_spec *spec, kernel_problem *problem);
COPY_OPERATION(copy)
COPY_OPERATION(move_rows)
#undef COPY_OPERATION
bool copy_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
bool copy_is_empty(const kernel_problem *problem);
kernel_geometry copy_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_copy(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_gather(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_scatter(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

#endif
