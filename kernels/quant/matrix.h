/* How kernels cover a matrix: a warp takes a band of 32 rows and, depending on its place in the grid, a span
 * of columns, with its 32 lanes side by side. If the columns and pointers allow it, the band is processed in
 * patches; the remaining elements, or all of them, one by one. */
#ifndef QDNN_KERNELS_QUANT_MATRIX_H
#define QDNN_KERNELS_QUANT_MATRIX_H

#include "kernels/formats/matrix.h"
#include "kernels/formats/pairs.h"

enum { MATRIX_WARPS = 4, MATRIX_BLOCK = MATRIX_WARPS * WARP, BAND = 32 };

/* How the warps of a block are arranged: how many below each other, and how many side by side. */
typedef struct warp_tile {
    unsigned down, across;
} warp_tile;

typedef struct matrix_walk {
    ptx_val rows, columns; /* u64 */
    ptx_val aligned;       /* predicate: the pointers are aligned for patches */
    unsigned width, patch_rows, columns_multiple;
    bool rows_are_free; /* patches may have a single row */
    bool in_pairs;      /* lanes 2i and 2i + 1 load and store together */
    warp_tile warps;
    /* the grid may have fewer blocks than the rows require: each then loops over further rows */
    bool rows_in_turns;
    ptx_val stage;
    void *user;
    /* Called before the patches of a block's tile by all of its threads, which are synchronized afterwards.
     * May be null. */
    void (*tile)(ptx_builder *b, void *user, ptx_val row, ptx_val column);
    /* Called before the patches of a band, with p->row its first row. May be null. */
    void (*begin)(ptx_builder *b, void *user, const patch *p);
    void (*patch)(ptx_builder *b, void *user, patch *p); /* null: all elements are processed one by one */
    void (*elements)(ptx_builder *b, void *user, const matrix_part *part);
} matrix_walk;

/* The walk over a matrix that is read or written in patches of its own layout. */
matrix_walk matrix_walk_of(const matrix *m, ptx_val aligned);
void matrix_walk_run(ptx_builder *b, const matrix_walk *w);

/* One launch over the matrix, in patches of the layout's width or of a given width; all warps of a block are
 * below each other. */
kernel_geometry matrix_geometry(const coding *c);
kernel_geometry matrix_geometry_of_width(unsigned width);
/* The same for quantize and dequantize, whose groups may be staged: the stage determines the arrangement of
 * warps. matrix_staged_steps also decides whether looked-up groups come from a table. */
kernel_geometry matrix_staged_geometry(const coding *c);
void matrix_staged_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps);

/* The directives of kernels that walk a matrix: block size and register limit. */
void matrix_directives(ptx_builder *b);

/* Makes each row a patch of its own; layouts whose patches need several rows are processed element by
 * element. Used if rows have no groups in common, because the numbers for several rows would take too many
 * registers. */
void matrix_walk_by_rows(matrix_walk *w);

/* The groups of a block's tile in shared memory: those of the tile (matrix_stage.c), or a table of all groups
 * that its rows may look up (matrix_table.c). */
typedef struct group_stage {
    bool is_used, is_table;
    warp_tile warps;         /* same as in the walk */
    unsigned shared_dynamic; /* table: its maximum size in bytes */
    /* groups of the tile in each direction; for flat groups and listed rows: rows, and groups per row */
    unsigned down, across;
    unsigned zeros_at; /* bytes from a scale to its zero */
    ptx_val numbers;   /* shared memory: the scales, row by row of groups */
    /* flat groups, shared memory: for each row, the number of elements before the next group begins */
    ptx_val lefts;
    ptx_val row, column; /* u64: first row and column of the tile */
    /* If a list selects rows: pointer to the list; u64: its length, and the entry that a patch belongs to. */
    ptx_val list, list_rows, list_row;
    /* The entry of the list or of the group index for each lane's row, the first of these rows (u64), and the
     * lane's column. */
    ptx_val of_lane, band, of_column;
} group_stage;
/* Whether quantize and dequantize use a stage, and how many groups it has; does not allocate shared
 * memory. */
group_stage group_stage_of(const coding *c);
void group_stage_begin(ptx_builder *b, const coding *c, group_stage *s);
void group_stage_fill(ptx_builder *b, const matrix *m, group_stage *s, ptx_val row, ptx_val column);
/* The groups of one row of a patch. */
void group_stage_read(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, const patch *p,
                      group_values *each);

/* The entries (u32) of a list for the rows of a band, one row per lane; rows beyond the end get the last
 * entry. */
ptx_val row_list_of_band(ptx_builder *b, ptx_val list, ptx_val rows, ptx_val first);
/* Whether pointers are aligned and groups are few enough for patches with staged groups, and'ed with
 * `all`. */
ptx_val group_stage_serves(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val all);

/* matrix_table.c. The first three are used when a launch is planned: whether all groups fit, how many bytes of shared
 * memory they take, and how many blocks at most share the rows. */
bool group_table_fits(const coding *c, const kernel_problem *problem);
uint32_t group_table_bytes(const coding *c, const kernel_problem *problem);
kernel_rule group_table_blocks(const coding *c);
group_stage group_table_of(const coding *c);
ptx_val group_table_serves(ptx_builder *b, const matrix *m);
void group_table_fill(ptx_builder *b, const matrix *m, const group_stage *s);
void group_table_band(ptx_builder *b, const matrix *m, group_stage *s, const patch *p);
void group_table_read(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, const patch *p,
                      group_values *each);

/* For how long the numbers of groups stay the same: a band, a patch or a row. */
typedef struct matrix_groups {
    bool for_band, for_patch;
    bool in_pairs; /* set by kernels that decode pairs: `pairs` is then computed as well */
    group_stage stage;
    group_values each[CHUNK_MAX];
    pair_group pairs[CHUNK_MAX / 2];
} matrix_groups;
matrix_groups matrix_groups_of(const matrix *m);
void groups_for_band(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p);
void groups_for_patch(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p);
void groups_for_row(ptx_builder *b, const matrix *m, matrix_groups *g, const patch *p, unsigned i);

/* The address in the plain tensor of the patch's elements in row i. */
ptx_val patch_data(ptx_builder *b, qdnnDataType_t type, ptx_val data, ptx_val columns, const patch *p,
                   unsigned i);

/* matrix_scale.c: scales and zeros of groups along rows and down columns */
kernel_geometry matrix_scale_geometry(const kernel_spec *spec);
void emit_matrix_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

void emit_matrix_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_matrix_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

#endif
