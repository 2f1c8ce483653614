/* Softmax, the largest of a row, routing, combining and sampling: emitters and launches. docs/numerics.md,
 * "Selection and copies", has the contract.
 *
 * Who does what:
 *   span.c      a row's elements, or those of one of its parts, by aligned accesses of 16 bytes
 *   keys.c      elements as keys, whose order as integers is that of the contract
 *   pool.c      the k largest of any number of keys, by a thread block in one pass; sorting
 *   top.c       top-k
 *   sample.c    sampling
 *   softmax.c   softmax
 *   route.c     routing of tokens to experts
 *   combine.c   combining the results of a token's experts
 *   select_steps.c   operands, launches and how a row is divided into parts */
#ifndef QDNN_KERNELS_SELECT_H
#define QDNN_KERNELS_SELECT_H

#include <math.h>

#include "kernels/emit.h"
#include "kernels/operations.h"

/* The number below all others: missing elements. */
#define SELECT_NONE (-INFINITY)

enum { SELECT_BLOCK = 256, SELECT_WARPS = SELECT_BLOCK / 32 };

/* The sum of a value over a warp in the order of the exact sum: lane i + lane (i + 16), then 8, 4, 2, 1, then + 0. */
ptx_val select_tree(ptx_builder *b, ptx_val lane_sum);

/* ---- span.c ---- */

/* Neighbouring elements of a row. Vectors are 16 bytes at aligned addresses; the first and the last may be shared with
 * others. Element j of vector v is number v * elements + j - skip of the span, if that is below `count`. */
typedef struct span {
    qdnnDataType_t type; /* F32, F16, BF16 */
    ptx_val base;        /* u64: address of the first vector */
    ptx_val skip;        /* u32 */
    ptx_val count;       /* u32: elements */
    ptx_val vectors;     /* u32 */
} span;
span span_of(ptx_builder *b, qdnnDataType_t type, ptx_val first, ptx_val count);
enum { SPAN_ELEMENTS = 8 }; /* of a vector, at most */
/* Loads vector v (u32): four variables of u32. Elements that are not in the span are 0. */
void span_fetch(ptx_builder *b, const span *s, ptx_val v, ptx_val words[4]);
/* The elements in it as f32; `number` receives that of the first (u32; it wraps). */
void span_decode(ptx_builder *b, const span *s, ptx_val v, const ptx_val words[4], ptx_val x[SPAN_ELEMENTS],
                 ptx_val *number);
/* Whether element `number` + j exists. */
ptx_val span_has(ptx_builder *b, const span *s, ptx_val number, unsigned j);

/* Eight neighbouring elements of a row as f32, from `number` (u32, a multiple of 8) on, `count` being those of the row; missing ones are
 * `fill`. `aligned`: the row begins at a multiple of 16 bytes. x receives variables. */
enum { SELECT_CHUNK = 8 };
void select_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val row, ptx_val number, ptx_val count,
                  ptx_val aligned, float fill, ptx_val x[SELECT_CHUNK]);

/* The part of a row that block y of the grid has. */
typedef struct row_part {
    ptx_val row;   /* u64: the number of the row, x of the grid */
    ptx_val n;     /* u32: elements of the row */
    ptx_val first; /* u32: of the part */
    ptx_val count; /* u32 */
} row_part;
row_part row_part_of(ptx_builder *b, const kernel_spec *spec, const kernel_args *args);
/* Address of element i (u32) of the part's row in a matrix of that type. */
ptx_val row_part_at(ptx_builder *b, const row_part *p, ptx_val matrix, unsigned bytes, ptx_val i);

/* ---- keys.c ---- */

/* A u64 that is larger for what comes first: the bits of x in the order of numbers, NaN lowest, then the index (u32, below
 * 2^31), the lower the larger. No element has key 0. */
ptx_val key_of(ptx_builder *b, ptx_val x, ptx_val index);
ptx_val key_index(ptx_builder *b, ptx_val key);
/* The element as f32; -0 has become +0. */
ptx_val key_value(ptx_builder *b, ptx_val key);
/* The largest key of the block, in all threads. `shared` has room for a key per warp. All threads call it; shared memory is
 * free again after the next barrier. */
ptx_val key_largest(ptx_builder *b, ptx_val key, ptx_val shared);

/* ---- pool.c ---- */

enum {
    TOP_MAX = 1024,
    POOL_KEYS = 4096,
    POOL_ADDED = SELECT_BLOCK * SPAN_ELEMENTS /* keys that the block adds at a time, at most */
};

/* The k largest of the keys that were added, and some others, in shared memory. */
typedef struct pool {
    ptx_val keys;  /* u32: shared u64 [POOL_KEYS] */
    ptx_val state; /* u32: shared u32 words */
    ptx_val k;     /* u32 */
    ptx_val least; /* u64 variable: lower keys are not among the k largest */
    ptx_val tid, lane;
} pool;
pool pool_begin(ptx_builder *b, ptx_val k);
/* Adds up to SPAN_ELEMENTS keys per thread; 0: none. All threads call it. */
void pool_add(ptx_builder *b, const pool *p, const ptx_val *keys, unsigned count);
/* The elements of a span with that many before it in the row. `change`, if not null, replaces each element, given its index in
 * the row (u32) and whether it exists. */
typedef struct pool_change {
    ptx_val (*apply)(ptx_builder *b, const void *with, ptx_val x, ptx_val index, ptx_val exists);
    const void *with;
} pool_change;
void pool_add_span(ptx_builder *b, const pool *p, const span *s, ptx_val before, const pool_change *change);
/* Keys (u64) that follow each other in global memory. */
void pool_add_keys(ptx_builder *b, const pool *p, ptx_val address, ptx_val count);
/* Leaves exactly the k largest, followed by zeros if there are fewer, unsorted; and in order. */
void pool_reduce(ptx_builder *b, const pool *p);
void pool_sort(ptx_builder *b, const pool *p);

/* ---- The operations ---- */

kernel_geometry select_geometry(const kernel_row *row, const kernel_spec *spec);
bool select_is_empty(const kernel_problem *problem);

void emit_top_k(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_describes describe_top_k;
void top_k_fix(kernel_spec *spec);
void top_k_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                 kernel_steps *steps);

enum { SAMPLE_SEGMENT = 1024, SAMPLE_SEGMENTS = 4096, SAMPLE_SETTINGS = 32 /* bytes per row */ };
void emit_sample(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_describes describe_sample;
void sample_fix(kernel_spec *spec);
void sample_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);

kernel_geometry softmax_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_softmax(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_describes describe_softmax;
void softmax_fix(kernel_spec *spec);
void softmax_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps);

enum { ROUTE_WARPS = 4, COMBINE_BLOCK = 128 };
kernel_geometry route_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_route(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
bool route_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
kernel_describes describe_route;
void route_fix(kernel_spec *spec);
void route_complete(const kernel_spec *spec, kernel_problem *problem);

kernel_describes describe_combine;
kernel_geometry combine_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_combine(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

#endif
