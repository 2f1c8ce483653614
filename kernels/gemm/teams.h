/* Teams: eight neighbouring threads of a warp that compute one or more columns of y together, for the
 * products with GGUF blocks (blocks.c, ternary.c). */
#ifndef QDNN_KERNELS_GEMM_TEAMS_H
#define QDNN_KERNELS_GEMM_TEAMS_H

#include "kernels/formats/block_reader.h"

/* Outputs per team: two where a tile has few rows, unless the product is split; with more rows there are no registers for them. */
unsigned team_outputs(const kernel_spec *spec);

/* Whether the two halves of a gated pair (a and b) belong to two neighbouring teams, instead of one team
 * computing both. */
bool team_halves_are_apart(const kernel_spec *spec);

/* The first column of y (u64) of a team (u32: its number in a thread block of `teams`), which has `columns`
 * of them. */
ptx_val team_first_column(ptx_builder *b, const kernel_spec *spec, ptx_val team, unsigned teams,
                          unsigned columns);

/* The row of weights (u64) for column n of y: where halves are apart, every other team has the second half,
 * `outputs` (u64: the columns of y) rows further on. */
ptx_val team_weight_row(ptx_builder *b, const kernel_spec *spec, ptx_val team, ptx_val outputs, ptx_val n);

#endif
