/* The 32 lanes of a sum and the tree that joins them: s[i] = s[i] + s[i + 16], then 8, 4, 2, 1. "Lane"
 * here means one of the partial sums of the contract, not a thread of a warp; a thread may hold several. */
#ifndef QDNN_KERNELS_GEMM_LANES_H
#define QDNN_KERNELS_GEMM_LANES_H

#include "kernels/maps/map.h"
#include "ptxgen/ptx.h"

enum { SUM_LANES = 32, LANE_BITS = 5 };

/* Sums all lanes, thread i of the warp holding lane i; every thread gets the result. Additions commute, so
 * both partners of an exchange compute the same bits. */
ptx_val lanes_join_warp(ptx_builder *b, ptx_val partial);

/* Sums all lanes, which lie `pitch` bytes apart in shared memory from at + offset (u32) on. */
ptx_val lanes_join_memory(ptx_builder *b, ptx_val at, unsigned offset, unsigned pitch);

/* Sums of a few outputs and rows whose lanes are spread over a team: `threads` neighbouring threads of a
 * warp hold `lanes` each, thread t those from t * lanes on. While joining, the threads divide the sums
 * among themselves: rows first, then outputs (unless keeps_outputs is set). In the end a thread has the
 * complete sums of `outputs` outputs from `first_output` on and `rows` rows from `first_row` on. Several
 * threads may end up with the same ones: `holds` is true for one of them. */
enum { SHARE_OUTPUTS = 4, SHARE_ROWS = 16, SHARE_LANES = 8 };
typedef struct lanes_share {
    unsigned outputs, rows, lanes, threads;
    bool keeps_outputs;
    ptx_val parts[SHARE_OUTPUTS][SHARE_ROWS][SHARE_LANES];
    ptx_val sums[SHARE_OUTPUTS][SHARE_ROWS];
    ptx_val first_output, first_row; /* u32 */
    ptx_val holds;                   /* predicate */
} lanes_share;
void lanes_join_team(ptx_builder *b, lanes_share *l, ptx_val thread);

/* Which lanes the threads of a team hold is a map from "thread" and "chunk" (the number of an accumulator) to "lane",
 * all of whose digits are powers of two. Teams are neighbours in a warp. */

/* The lane (u32) of a thread and a chunk (u32). */
ptx_val lanes_lane(ptx_builder *b, const map *map, ptx_val thread, ptx_val chunk);

/* Joins a team's accumulators, for several sums at once (a power of two): sums[i * accumulators + a] is
 * accumulator a of sum i; they are overwritten. While there are several sums, partners exchange halves, so
 * that each goes on with half of them. At the end sums[0], sums[1] ... of a thread are the `count`
 * neighbouring sums from number `first` (u32) on. Where there are fewer sums than threads, several threads
 * have the same one, and `is_first` (a predicate; otherwise empty) is true for one of them. */
typedef struct lanes_joined {
    ptx_val first, is_first;
    unsigned count;
} lanes_joined;
lanes_joined lanes_join(ptx_builder *b, const map *map, ptx_val thread, ptx_val *sums, unsigned count,
                        unsigned accumulators);

#endif
