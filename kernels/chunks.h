/* How quantize and dequantize cover a tensor: a block takes a tile, a thread several 16-byte chunks of it,
 * strided so that neighbouring threads touch neighbouring chunks. Tiles that are cut short, and pointers that
 * are not aligned, go element by element. */
#ifndef QDNN_KERNELS_CHUNKS_H
#define QDNN_KERNELS_CHUNKS_H

#include "kernels/emit.h"

enum {
    CHUNK_BLOCK = 256,
    THREAD_ELEMENTS = 16, /* several chunks a thread: their loads are under way together */
    THREAD_CHUNKS_MAX = THREAD_ELEMENTS / (CHUNK_BYTES / 4),
    TILE_ELEMENTS = CHUNK_BLOCK * THREAD_ELEMENTS
};

/* The parameters and places that both kernels have. */
typedef struct tile {
    const format_row *format;
    const kernel_spec *spec;
    format_state state;
    ptx_val data, codes, scales, zeros; /* pointers */
    ptx_val n, first, end;              /* u64: elements; the tile is [first, end), end cut to n */
    ptx_val whole;                      /* predicate: the tile is complete and every pointer aligned */
    group_values only;                  /* where one channel is the whole tensor */
} tile;

/* Declares what both kernels compute with, once the pointers and n are declared. */
void tile_begin(ptx_builder *b, tile *t);

/* Calls `some` for the chunks of this thread in a complete tile: for all of them at once, or, where a chunk
 * may hold several groups, for one after another in a loop, so that their scales stay in registers. */
void tile_chunks(ptx_builder *b, const tile *t,
                 void (*some)(ptx_builder *b, const tile *t, ptx_val index, unsigned count));

/* The scale, reciprocal and zero of an element's group. What a kernel does not use costs nothing, the
 * assembler drops it. */
group_values group_at(ptx_builder *b, const tile *t, ptx_val index);

/* The groups of one chunk. Within a chunk there is one group, or two that meet in it, or a group for every
 * few elements. */
typedef struct chunk_groups {
    group_values first, second;
    ptx_val boundary; /* u32: first element of the second group, counted from the chunk's start */
    group_values each[CHUNK_MAX];
} chunk_groups;

void chunk_groups_load(ptx_builder *b, const tile *t, ptx_val index, chunk_groups *groups);
group_values chunk_group_at(ptx_builder *b, const tile *t, const chunk_groups *groups, unsigned element);

/* Which bits of a word of codes hold element k. */
unsigned code_shift(const kernel_spec *spec, unsigned element);

#endif
