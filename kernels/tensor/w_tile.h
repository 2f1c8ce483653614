/* The weights of a product on their way to tensor cores: a thread block decodes a tile of them into shared
 * memory, as f16 or bf16.
 *
 * A tile is tile_n columns of the product by tile_k elements of the sum; or it has several strips of the
 * sum side by side ("parts"): then part p of its n has the same columns as part 0, p strips further down k.
 * It is cut into "pieces": eight
 * neighbours in the direction in which codes lie in memory. If that is k, shared memory has a "line" of
 * tile_k for each n, otherwise a line of tile_n for each k. Piece p of line l lies at place p ^ (l & 7) of
 * its line, so that the eight lines that ldmatrix reads at a time are in different banks. */
#ifndef QDNN_KERNELS_TENSOR_W_TILE_H
#define QDNN_KERNELS_TENSOR_W_TILE_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/matrix.h"
#include "kernels/tensor/groups.h"

enum {
    PIECE = 8,           /* weights */
    TILE_THREADS = 256,  /* threads that decode a tile */
    TILE_WEIGHTS = 8192, /* per tile: four pieces per thread */
    TILE_BYTES = 2 * TILE_WEIGHTS,
    THREAD_PIECES = TILE_WEIGHTS / PIECE / TILE_THREADS,
    THREAD_WEIGHTS = THREAD_PIECES * PIECE
};

/* How the pieces of a thread lie: side by side in one line, which neighbouring threads continue (IN_LINE);
 * the same in lines that are interleaved streams of words, neighbouring threads having neighbouring lines
 * (IN_STREAM); or at one place of several lines (IN_LINES). */
typedef enum { PIECES_IN_LINE, PIECES_IN_STREAM, PIECES_IN_LINES } piece_order;

typedef struct w_tile {
    coding coding;
    qdnnDataType_t data;        /* f16 or bf16 */
    const block_layout *blocks; /* null: not in blocks */
    matrix m;                   /* for the others */
    codec_state state;          /* for blocks */
    bool k_in_columns;          /* w is [N, K] */
    bool along_k;               /* the direction of pieces */
    piece_order order;
    unsigned tile_n, tile_k;
    unsigned parts, strip;          /* the tile's lines have `parts` strips of so many k side by side */
    bool gated;                     /* the first half of a part has columns of a, the second those of b */
    ptx_val codes;                  /* pointer */
    ptx_val n0;                     /* u32: the first column of y */
    ptx_val n, k;                   /* u32: n is that of y */
    ptx_val rows, columns;          /* u64 */
    ptx_val outputs[THREAD_PIECES]; /* u64, for codes with separate scales: the first column of each piece */
    column_groups groups;           /* of the first of them, if all pieces of the thread are in one group */
    ptx_val line, run; /* u32: the line of this thread's first piece, its first element in the line */
    ptx_val places[THREAD_PIECES]; /* u32: of the pieces, in bytes from the tile's start */
} w_tile;

/* The extent of a tile in k, which determines that in n: some formats need more than the usual 64. */
unsigned w_tile_k(const kernel_row *row);

/* Whether each warp decodes an eighth of the tile's lines, in their order. */
bool w_tile_is_apart(const kernel_row *row, const kernel_spec *spec);

/* Sets up a tile from the kernel's parameters. To be called by all threads of the block. */
typedef struct w_shape {
    qdnnDataType_t data;
    bool k_in_columns;
    bool gated; /* half of a part's columns belong to a, the others to b, which follows all of a */
    unsigned parts, strip;
    ptx_val n0, n,
        k;         /* u32: the first column of y that the tile has; the columns of y; the rows of the sum */
    unsigned room; /* bytes of shared memory that are left beside the tiles */
} w_shape;
w_tile w_tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, const kernel_args *args,
                    const w_shape *shape);

/* The column of the weights at place `local` (u32) of the tile's n, clamped so that `margin` columns exist
 * from it on. */
ptx_val w_output(ptx_builder *b, const w_tile *w, ptx_val local, unsigned margin);
/* The k that this place has where the first part has k0 (u32 both). */
ptx_val w_part_k(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val local);

/* Whether sizes and pointers allow tiles to be fetched. If not, they are decoded element by element. */
ptx_val w_tile_aligned(ptx_builder *b, const w_tile *w);

/* What a thread has loaded of a tile. */
enum { FETCHED_WORDS = 32, FETCHED_RUNS = 2 };
typedef struct fetched {
    ptx_val k; /* u32: of its first piece, possibly beyond the last k */
    unsigned words, groups;
    ptx_val word[FETCHED_WORDS];
    group_values group[THREAD_WEIGHTS];
    unsigned runs;
    block_run run[FETCHED_RUNS];
} fetched;

/* fetch loads the tile from k0 (u32) on; put decodes it into the tile at a shared address. */
void w_tile_fetch(ptx_builder *b, const w_tile *w, ptx_val k0, fetched *f);
void w_tile_put(ptx_builder *b, const w_tile *w, const fetched *f, ptx_val tile);

/* Loads and decodes at once, for any alignment. */
void w_tile_put_slowly(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val tile);

/* ---- What the files share ---- */

/* The bytes of a line of a tile. */
unsigned w_line_bytes(const w_tile *w);
/* Stores eight f32, or zeros, as a piece of the tile (u32 address). */
void w_store_piece(ptx_builder *b, const w_tile *w, ptx_val address, const ptx_val *values);
void w_store_zeros(ptx_builder *b, ptx_val address);
/* The address of a piece of a line, both u32. */
ptx_val w_piece_address(ptx_builder *b, const w_tile *w, ptx_val tile, ptx_val line, ptx_val piece);

/* w_blocks.c */
void w_blocks_begin(ptx_builder *b, w_tile *w, unsigned room);
void w_blocks_fetch(ptx_builder *b, const w_tile *w, ptx_val k0, fetched *f);
void w_blocks_put(ptx_builder *b, const w_tile *w, const fetched *f, ptx_val tile);
void w_blocks_put_any(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val tile, unsigned align);
bool w_blocks_are_fetched(const block_layout *layout);

/* w_dense.c */
void w_dense_begin(ptx_builder *b, w_tile *w);
ptx_val w_dense_aligned(ptx_builder *b, const w_tile *w);
void w_dense_fetch(ptx_builder *b, const w_tile *w, ptx_val k0, fetched *f);
void w_dense_put(ptx_builder *b, const w_tile *w, const fetched *f, ptx_val tile);
void w_dense_put_slowly(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val tile);

#endif
