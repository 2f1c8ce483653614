/* Ranges of values (absmax, or least and largest): what the kernels on the way to a scale share. */
#ifndef QDNN_KERNELS_RANGES_H
#define QDNN_KERNELS_RANGES_H

#include "kernels/formats/format.h"

enum { RANGE_BLOCK = 256, WARP_LANES = 32 };

/* How the work on one part of the tensor, a run of elements, is shared out. */
typedef struct team {
    uint64_t elements;
    unsigned lanes; /* a power of two up to a warp, or RANGE_BLOCK */
    unsigned step;  /* elements a lane reads at a time: 16 bytes, or 1 where parts do not start on them */
} team;

/* As many lanes as the part has 16-byte chunks, up to a warp; beyond that a whole block. So neighbouring
 * lanes always read neighbouring memory. Parts start at multiples of `apart`, or at multiples of their size
 * behind one. */
team team_of(qdnnDataType_t data, uint64_t elements, uint64_t apart);

/* The lane of thread `tid` in its team (u32), and its team's number, which counts on from the block's first
 * (u64). */
ptx_val team_lane(ptx_builder *b, const team *t, ptx_val tid);
ptx_val team_number(ptx_builder *b, const team *t, ptx_val tid, ptx_val block_first);

/* What is kept of a part: its absmax, or its least and largest value, 0 counting as one of them or not. */
typedef enum { RANGE_ABSMAX, RANGE_WITH_ZERO, RANGE_TIGHT } range_kind;
range_kind range_kind_of(const coding *c);

/* The running range of a part. Comparisons with NaN leave it out; a tight range starts as NaN, the others as 0. */
typedef struct range {
    bool is_signed;
    ptx_val lo, hi; /* variables; without a sign, hi is the absmax and lo unused */
} range;

range range_begin(ptx_builder *b, range_kind kind);
void range_add(ptx_builder *b, const range *r, ptx_val x);

/* Adds the part of tensor x that lies at address `base`, cut to `left` elements (u64, may be 0), by the lanes
 * of the team together. */
void range_add_part(ptx_builder *b, qdnnDataType_t data, const team *t, const range *r, ptx_val x,
                    ptx_val base, ptx_val lane, ptx_val left);

/* The union of the ranges of the lanes of each team, in all of them. All threads of the block take part. */
void range_reduce_team(ptx_builder *b, const team *t, const range *r);

/* The union of the ranges of all threads of the block whose numbers are equal modulo `width`, a power of two
 * up to a warp, in all of them. */
void range_reduce_columns(ptx_builder *b, const range *r, unsigned width);

#endif
