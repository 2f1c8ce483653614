/* Attention in mode tensor. A warp has 16 rows (heads of queries that share a head of the cache, of one token or several) and
 * up to 128 columns of the values; the warps of a block go through tiles of 64 keys together. Keys, then values of a tile come in
 * chunks of 16 or 32 keys, in the type of x, to shared memory, from where ldmatrix makes fragments of them:
 *
 *   scores  = rows x keys: queries are operand A, keys operand B
 *   weights = exp16(scores - their maximum): where mma leaves scores is where it takes operand A from
 *   sums   += weights x values: values are operand B, and ones, for the sum of the weights
 *
 *   tensor.c           tiles, strips, the tokens of several sequences
 *   tensor_keys.c      chunks: from the cache to shared memory
 *   tensor_rows.c      queries, what rows see, results
 *   tensor_scores.c    scores and weights of a tile
 *   tensor_values.c    weighted sums
 *
 * Where keys are divided among blocks (phase parts), each takes every so-manieth strip of 4 tiles, and the states of strips go to the
 * workspace, for join.c; else the block joins them in its registers. */
#ifndef QDNN_KERNELS_TENSOR_ATTENTION_H
#define QDNN_KERNELS_TENSOR_ATTENTION_H

#include "kernels/attention/attention.h"

enum {
    GROUP_KEYS = 8, /* the columns of an mma */
    GROUPS = TILE_KEYS / GROUP_KEYS,
    WARP_ROWS = 16,
    WARP_COLUMNS = 128, /* of values, at most */
    COLUMN_GROUPS = WARP_COLUMNS / 8,
    HALVES = 2,       /* rows of a thread: lane / 4 of the warp's first and last eight */
    TOKEN_GROUPS = 2, /* tokens of a block, in groups of 32 */
    CHUNK_UNITS = 32  /* of a thread, at most */
};

/* The bytes from one row of a matrix in shared memory to the next: no two of eight rows begin in the same banks. */
static inline unsigned matrix_pitch(uint64_t elements)
{
    return (unsigned)((elements / 8) | 1) * LOAD_BYTES;
}

/* One of a thread's rows. */
typedef struct tensor_row {
    ptx_val exists;      /* predicate */
    ptx_val token, head; /* u64, u32 */
    seen_keys seen;
    ptx_val slope;  /* f32 */
    ptx_val active; /* predicate, variable: the pass is about it */
} tensor_row;

/* The state of a thread's rows over a strip, or over all strips: variables. */
typedef struct tensor_state {
    ptx_val m[HALVES];
    ptx_val l[4]; /* as mma has it: of half h, 2h and 2h + 1 are the same */
    ptx_val o[COLUMN_GROUPS][4];
} tensor_state;

typedef struct tensor {
    const kernel_row *row;
    const kernel_spec *spec;
    const kernel_args *args;
    attention_shape shape;
    qdnnDataType_t type; /* of x, weights, keys and values in shared memory */
    unsigned step;       /* the depth of an mma */
    unsigned halves;     /* that have rows */
    unsigned groups;     /* column groups of a warp */
    unsigned key_pitch, value_pitch;
    unsigned ahead; /* chunks that are on their way */
    bool copies;    /* chunks are copied by cp.async, if they are aligned */
    unsigned
        codes_ahead; /* chunks of codes that are on their way to where the queries were, to be decoded from there; 0: no such */
    kv_array keys, values;
    kv_reader key_reader, value_reader;
    ptx_val warp, lane;     /* u32: warp of the block */
    ptx_val row_tile, part; /* u32: which rows, which columns the warp has */
    ptx_val column_group;   /* u32: the warp's first */
    ptx_val token, kv_head, head,
        head_end; /* u64: the first token; the head of the cache; u32: heads of queries */
    tensor_row rows[HALVES];
    ptx_val zero;       /* f32 */
    ptx_val queries;    /* shared: all rows of the block */
    bool keeps_queries; /* their fragments are in registers: */
    ptx_val kept[WARP_COLUMNS / 16][4];
    ptx_val ring, places; /* shared */
    ptx_val codes;        /* shared: the thread's first unit of codes */
    ptx_val scales
        [2]
        [2]; /* variables, f32: of the keys lane and lane + 32 that attend_place_keys found; keys, values */
    ptx_val reading, writing; /* variables, u32: slots of the ring */
    /* Where lanes read matrices, in bytes. */
    ptx_val query_lane, key_lane, key_lane_short, value_lane;
    /* A pass. */
    ptx_val sequence; /* u32 */
    ptx_val lo, hi;   /* s32: the keys that any row sees */
} tensor;

/* ---- Rows (tensor_rows.c) ---- */

void attend_rows_begin(ptx_builder *b, tensor *t);
void attend_load_queries(ptx_builder *b, const tensor *t);
tensor_state attend_state_begin(ptx_builder *b, const tensor *t);
void attend_state_clear(ptx_builder *b, const tensor *t, const tensor_state *s);
/* Joins a strip's state to that of the strips before it; stores it in the workspace; stores the results. */
void attend_state_join(ptx_builder *b, const tensor *t, const tensor_state *all, const tensor_state *strip);
void attend_state_store(ptx_builder *b, const tensor *t, const tensor_state *strip, ptx_val number);
void attend_results(ptx_builder *b, const tensor *t, const tensor_state *all);

/* ---- Keys (tensor_keys.c) ---- */

/* Bytes of shared memory. */
unsigned attend_slot_bytes(const kernel_spec *spec, unsigned chunk);
unsigned attend_places_bytes(const kernel_spec *spec);
void attend_keys_begin(ptx_builder *b, tensor *t);
/* Finds the keys of a tile (s32) and keeps their places, in the half of the memory for places that its number says. */
void attend_place_keys(ptx_builder *b, const tensor *t, ptx_val tile);
/* Scales of these keys, which have been on their way since. */
void attend_place_scales(ptx_builder *b, const tensor *t, ptx_val tile);
/* Which keys of the tile exist: u64. */
ptx_val attend_existing(ptx_builder *b, const tensor *t, ptx_val tile);

/* A chunk on its way through registers. */
typedef struct tensor_chunk {
    bool is_values;
    unsigned count;
    kv_unit units[CHUNK_UNITS];
    kv_place places[CHUNK_UNITS];
} tensor_chunk;
/* Fetches a chunk of the tile (its keys, then its values), or begins to copy it. */
void attend_fetch(ptx_builder *b, const tensor *t, ptx_val tile, unsigned chunk, tensor_chunk *out);
/* Codes on their way through shared memory: copies a chunk of the tile there; decodes it from there into the ring. */
unsigned attend_codes_ahead(const ptx_builder *b, const tensor *t);
void attend_copy_codes(ptx_builder *b, const tensor *t, ptx_val tile, unsigned chunk);
void attend_decode_codes(ptx_builder *b, const tensor *t, ptx_val tile, unsigned chunk);
/* Puts it into the ring. */
void attend_put(ptx_builder *b, const tensor *t, const tensor_chunk *chunk);
/* Waits until the chunk that is read next is there, and the slot that is written next is free. */
void attend_arrive(ptx_builder *b, const tensor *t);
void attend_sync(ptx_builder *b, const tensor *t);
/* The address of a slot; a slot further. */
ptx_val attend_slot(ptx_builder *b, const tensor *t, ptx_val slot);
void attend_advance(ptx_builder *b, const tensor *t, ptx_val slot);

/* ---- Scores and weights (tensor_scores.c) ---- */

typedef struct tensor_tile {
    ptx_val number;            /* s32 */
    ptx_val first;             /* s32: its first key */
    ptx_val sees;              /* predicate: a row of the warp sees one of its keys, perhaps */
    ptx_val scores[GROUPS][4]; /* variables */
    ptx_val weights[GROUPS]
                   [HALVES]; /* variables, u32: pairs of keys; -0 for a key that the row does not see */
    ptx_val checked;         /* predicate, variable: some rows may not see some keys */
} tensor_tile;
tensor_tile attend_tile_begin(ptx_builder *b, const tensor *t, ptx_val number);
/* Adds the scores of chunk `chunk` of the keys. */
void attend_scores(ptx_builder *b, const tensor *t, const tensor_tile *tile, unsigned chunk);
/* From scores to weights; the strip's sums are brought to the new maximum, the weights added to l. */
void attend_weights(ptx_builder *b, const tensor *t, const tensor_tile *tile, const tensor_state *strip);

/* One instruction of the SM's depth, or two: a has 4 words, b_ 2; with `half`, only the first 8 of 16 k are not zero. */
void attend_multiply(ptx_builder *b, const tensor *t, const ptx_val *d, const ptx_val *a, const ptx_val *b_,
                     const ptx_val *c, bool half);

/* ---- Values (tensor_values.c) ---- */

void attend_add_values(ptx_builder *b, const tensor *t, const tensor_tile *tile, unsigned chunk,
                       const tensor_state *strip);

#endif
