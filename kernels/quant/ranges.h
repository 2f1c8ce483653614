/* Ranges of values (absmax, or minimum and maximum), shared by the kernels that compute scales. */
#ifndef QDNN_KERNELS_RANGES_H
#define QDNN_KERNELS_RANGES_H

#include "kernels/formats/format.h"

enum { RANGE_BLOCK = 256, WARP_LANES = 32 };

/* A team is a set of lanes that process one part of the tensor, a run of elements, together. */
typedef struct team {
    uint64_t elements;
    unsigned lanes; /* a power of two up to a warp, or RANGE_BLOCK */
    /* elements that a lane reads at a time: 16 bytes' worth, or 1 if parts are not aligned to that */
    unsigned step;
} team;

/* As many lanes as the part has 16-byte chunks, up to a warp; for more, a whole block. So neighbouring lanes
 * always read adjacent memory. Parts start at multiples of `apart`, or at multiples of their size after
 * one. */
team team_of(qdnnDataType_t data, uint64_t elements, uint64_t apart);

/* The lane of thread `tid` within its team (u32), and the number of its team (u64); the first team of the
 * block has the number block_first. */
ptx_val team_lane(ptx_builder *b, const team *t, ptx_val tid);
ptx_val team_number(ptx_builder *b, const team *t, ptx_val tid, ptx_val block_first);

/* What is computed for a part: its absmax, or its minimum and maximum, with or without 0 included. */
typedef enum { RANGE_ABSMAX, RANGE_WITH_ZERO, RANGE_TIGHT } range_kind;
range_kind range_kind_of(const coding *c);

/* The running range of a part. NaN elements are ignored; a tight range starts as NaN, the others as 0. */
typedef struct range {
    bool is_signed;
    ptx_val lo, hi; /* variables; if not is_signed, hi is the absmax and lo is unused */
} range;

range range_begin(ptx_builder *b, range_kind kind);
void range_add(ptx_builder *b, const range *r, ptx_val x);

/* Adds the part of tensor x at address `base`, limited to `left` elements (u64, may be 0); the lanes of the
 * team share the work. */
void range_add_part(ptx_builder *b, qdnnDataType_t data, const team *t, const range *r, ptx_val x,
                    ptx_val base, ptx_val lane, ptx_val left);

/* Combines the ranges of the lanes of each team; all of them get the result. All threads of the block take
 * part. */
void range_reduce_team(ptx_builder *b, const team *t, const range *r);

/* Combines the ranges of all threads of the block whose numbers are equal modulo `width`, a power of two up
 * to a warp; all of them get the result. */
void range_reduce_columns(ptx_builder *b, const range *r, unsigned width);

#endif
