/* Operations on rows: norms, and operations on each element. A row is held by the lanes of a team in chunks of 8
 * elements, chunk c by lane c mod (lanes of the team); so a sum can be taken in the order of the long sum, and a
 * group of a quantized result is held by neighbouring lanes.
 *
 * The kernels are specialised to the length of a row. Blocks loop over rows: any grid gives the same bits. */
#ifndef QDNN_KERNELS_ROWS_H
#define QDNN_KERNELS_ROWS_H

#include "kernels/formats/quantized.h"
#include "kernels/operations.h"

enum {
    ROW_CHUNK = 8,        /* elements */
    ROW_CHUNKS_MAX = 8,   /* of a lane */
    ROW_LANES_MAX = 512,  /* of a team */
    ROW_WORDS_MAX = 2 * 8 /* u32 words of a chunk, and of the two that gated columns are taken from */
};
/* The longest row that a team holds. */
#define ROW_LONGEST ((uint64_t)ROW_LANES_MAX * ROW_CHUNKS_MAX * ROW_CHUNK)

/* Who holds a row: `parts` teams, each a part of lanes * chunks * ROW_CHUNK elements. */
typedef struct row_shape {
    unsigned block, lanes, chunks;
    uint64_t parts;
} row_shape;
row_shape row_shape_of(const kernel_spec *spec, bool is_whole);

/* Whether the result is quantized, and by scales of whole rows. */
bool rows_are_quantized(const kernel_spec *spec);
bool rows_have_one_scale(const kernel_spec *spec);

typedef struct rows {
    const kernel_spec *spec;
    const kernel_args *args;
    row_shape shape;
    ptx_val lane;    /* u32: within the team */
    ptx_val team;    /* u64: within the block */
    ptx_val whole;   /* predicate: all chunks are whole and aligned; empty: they cannot be */
    kernel_spec put; /* for the quantized result: its plain tensor has the type of the output */
    quantized q;
    /* The row at hand. */
    ptx_val exists, row, token, head; /* predicate; u64 */
    ptx_val first;                    /* u32: the lane's first element */
    ptx_val first_code, first_group;  /* u64: of a quantized row that has a place of its own; else empty */
    ptx_val terms, sums, largest;     /* shared memory, where it is needed */
} rows;

/* An array that rows are read from or written to. */
typedef struct row_array {
    qdnnDataType_t type;
    ptx_val start;   /* address of the first element of the row at hand */
    unsigned spread; /* chunks of the array for each chunk of the row: 1, 2 */
} row_array;

/* Sets up the team. `strides` are the numbers that addresses depend on; all of them must keep 16 bytes' alignment for chunks
 * to be loaded as a whole. */
void rows_begin(ptx_builder *b, rows *r, const kernel_row *row, const kernel_spec *spec,
                const kernel_args *args, bool is_whole);
/* And'ed into `whole`: pointers, and strides in elements of a type. */
void rows_need_aligned(ptx_builder *b, rows *r, ptx_val pointer);
void rows_need_stride(ptx_builder *b, rows *r, ptx_val stride, qdnnDataType_t type);

/* The loop over the rows of this block. */
void rows_loop(ptx_builder *b, rows *r);
void rows_end(ptx_builder *b);

/* The address of the row at hand in an array with that stride between tokens (u64), whose heads are adjacent. */
ptx_val row_start(ptx_builder *b, const rows *r, ptx_val base, ptx_val stride, qdnnDataType_t type);

/* The words of a lane's chunks; what is beyond the row is 0. Words of chunk i begin at i * row_words(a). */
unsigned row_words(const row_array *a);
void row_load(ptx_builder *b, const rows *r, const row_array *a, ptx_val exists, ptx_val *words);
/* The elements of a chunk as f32. */
void row_widen(ptx_builder *b, const row_array *a, const ptx_val *words, ptx_val *x);
/* Stores rounded values. */
void row_store(ptx_builder *b, const rows *r, const row_array *a, const ptx_val *x);

/* The long sum of x, or of x * x, over the row; all lanes of the team get it. x is 0 beyond the row. */
ptx_val row_sum(ptx_builder *b, rows *r, const ptx_val *x, bool is_squared);

/* Stores a result: rounds it to the output type; quantizes it if the operation does. */
void row_finish(ptx_builder *b, rows *r, ptx_val *y);

/* The quantized result of a row that is rounded, and 0 beyond its end; and its codes for a scale that is given. */
void row_quantize(ptx_builder *b, rows *r, const ptx_val *y);
void row_encode(ptx_builder *b, const rows *r, const group_values *group, const ptx_val *y);

/* Zero where the element is beyond the row. */
void row_mask(ptx_builder *b, const rows *r, ptx_val *x);

/* Whether the settings of a quantized result have a kernel here. */
bool rows_can_quantize(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* ---- The operations (norm.c, pointwise.c) ---- */

#define ROWS_OPERATION(name)                                                                                 \
    void fix_##name(kernel_spec *spec);                                                                      \
    void fix_##name##_quantized(kernel_spec *spec);                                                          \
    bool name##_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size); \
    kernel_describes describe_##name;                                                                        \
    kernel_geometry name##_geometry(const kernel_row *row, const kernel_spec *spec);                         \
    void emit_##name(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
ROWS_OPERATION(norm)
ROWS_OPERATION(pointwise)
#undef ROWS_OPERATION
void rows_complete(const kernel_spec *spec, kernel_problem *problem);
bool rows_are_empty(const kernel_problem *problem);

#endif
