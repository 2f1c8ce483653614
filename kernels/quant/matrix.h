/* How kernels cover a matrix: a warp takes a band of rows and, by its place in the grid, a span of columns; 32 lanes
 * stand side by side. Where columns and pointers allow it, the band is done in patches; what is left of it, or all of
 * it, element by element. */
#ifndef QDNN_KERNELS_QUANT_MATRIX_H
#define QDNN_KERNELS_QUANT_MATRIX_H

#include "kernels/formats/matrix.h"
#include "kernels/formats/pairs.h"

enum { MATRIX_WARPS = 4, MATRIX_BLOCK = MATRIX_WARPS * WARP, BAND = 32 };

/* How the warps of a block stand: one below the other, and side by side. */
typedef struct warp_tile {
    unsigned down, across;
} warp_tile;

typedef struct matrix_walk {
    ptx_val rows, columns; /* u64 */
    ptx_val aligned;       /* predicate: pointers allow patches */
    unsigned width, patch_rows, columns_multiple;
    bool rows_are_free; /* patches may have a single row */
    bool in_pairs;      /* lanes 2i and 2i + 1 load and store together */
    warp_tile warps;
    bool rows_in_turns; /* the grid may have fewer blocks than rows ask for: each goes on further down */
    ptx_val stage;
    void *user;
    /* Before the patches of a block's tile, by all its threads, which wait for each other then. May be null. */
    void (*tile)(ptx_builder *b, void *user, ptx_val row, ptx_val column);
    /* Before the patches of a band: p->row is its first. May be null. */
    void (*begin)(ptx_builder *b, void *user, const patch *p);
    void (*patch)(ptx_builder *b, void *user, patch *p); /* null: everything is done element by element */
    void (*elements)(ptx_builder *b, void *user, const matrix_part *part);
} matrix_walk;

/* The walk over a matrix that is read or written in the patches of its own layout. */
matrix_walk matrix_walk_of(const matrix *m, ptx_val aligned);
void matrix_walk_run(ptx_builder *b, const matrix_walk *w);

/* One launch over the matrix, in patches of their layout's width or of another; all warps stand one below the other. */
kernel_geometry matrix_geometry(const coding *c);
void matrix_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);
void matrix_steps_of_width(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                           unsigned width, kernel_steps *steps);
/* The same for quantize and dequantize, whose groups may be staged: the warps stand as the stage has them. The last chooses
 * whether looked-up groups come from a table; the one before launches the kernel that it is given. */
kernel_geometry matrix_staged_geometry(const coding *c);
void matrix_staged_step(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_steps *steps);
void matrix_staged_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps);

/* The directives of kernels that walk: the block, and how many registers they may have. */
void matrix_directives(ptx_builder *b, warp_tile warps);

/* Makes each row a patch of its own; layouts whose patches are several rows are done element by element. For rows whose
 * groups have nothing in common, whose numbers would take the registers of several rows. */
void matrix_walk_by_rows(matrix_walk *w);

/* Groups of a block's tile in shared memory: those of the tile (matrix_stage.c), or a table of all that its rows may
 * look up (matrix_table.c). */
typedef struct group_stage {
    bool is_used, is_table;
    warp_tile warps;         /* as the walk has them */
    unsigned shared_dynamic; /* table: the most bytes that it takes */
    unsigned down, across; /* groups of the tile; of flat groups and listed rows: rows, and groups of a row */
    unsigned zeros_at;     /* bytes from a scale to its zero */
    ptx_val numbers;       /* shared memory: scales by rows of groups */
    ptx_val lefts;       /* flat groups, shared memory: for each row, elements until the next group begins */
    ptx_val row, column; /* u64: where the tile begins */
    /* Rows that a list names: pointer; u64: how many, and which of them a patch has. */
    ptx_val list, list_rows, list_row;
    /* What the list, or the group index, has for the row of each lane, and (u64) the first of these rows; the lane's column. */
    ptx_val of_lane, band, of_column;
} group_stage;
/* Whether quantize and dequantize use one, and how many groups it has; no shared memory yet. */
group_stage group_stage_of(const coding *c);
void group_stage_begin(ptx_builder *b, const coding *c, group_stage *s);
void group_stage_fill(ptx_builder *b, const matrix *m, group_stage *s, ptx_val row, ptx_val column);
/* The groups of a row of a patch. */
void group_stage_read(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, const patch *p,
                      group_values *each);

/* The numbers (u32) that a list has for the rows of a band, a row for each lane; those beyond the last have its number. */
ptx_val row_list_of_band(ptx_builder *b, ptx_val list, ptx_val rows, ptx_val first);
/* Whether pointers are aligned, and few enough groups, for patches whose groups are staged; and'ed with `all`. */
ptx_val group_stage_serves(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val all);

/* matrix_table.c; the first two when a launch is planned: whether all groups fit, and how many blocks then share the rows. */
bool group_table_fits(const coding *c, const kernel_problem *problem);
void group_table_launch(const coding *c, const kernel_problem *problem, kernel_step *step);
group_stage group_table_of(const coding *c);
ptx_val group_table_serves(ptx_builder *b, const matrix *m);
void group_table_fill(ptx_builder *b, const matrix *m, const group_stage *s);
void group_table_band(ptx_builder *b, const matrix *m, group_stage *s, const patch *p);
void group_table_read(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, const patch *p,
                      group_values *each);

/* How long the numbers of groups stay the same: for a band, a patch or a row. */
typedef struct matrix_groups {
    bool for_band, for_patch;
    bool in_pairs; /* set by those that decode pairs: then `pairs` are made as well */
    group_stage stage;
    group_values each[CHUNK_MAX];
    pair_group pairs[CHUNK_MAX / 2];
} matrix_groups;
matrix_groups matrix_groups_of(const matrix *m);
void groups_for_band(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p);
void groups_for_patch(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p);
void groups_for_row(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p, unsigned i);

/* The plain tensor: the address of the patch's elements in row i. */
ptx_val patch_data(ptx_builder *b, qdnnDataType_t type, ptx_val data, ptx_val columns, const patch *p,
                   unsigned i);

/* matrix_scale.c: scales and zeros of groups along rows and down columns */
kernel_geometry matrix_scale_geometry(const kernel_spec *spec);
void matrix_scale_grid(const kernel_spec *spec, const kernel_problem *problem, uint64_t grid[3]);
void emit_matrix_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

void emit_matrix_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_matrix_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

#endif
