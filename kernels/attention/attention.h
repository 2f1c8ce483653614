/* Attention over a KV cache. docs/numerics.md ("Attention") is the contract.
 *
 *   attention_plan.c   settings, operands, launches
 *   seen.c             which keys a token sees
 *   keys.c             the keys and values of a tile: where they are, and their elements as numbers
 *   states.c           states of softmax (largest score, sum of weights, weighted sum of values), and how they are joined
 *   exact.c            mode exact: a warp takes a tile of 64 keys at a time, by fma
 *   tensor.c           mode tensor: tensor.h has a map of it
 *   join.c             the results, where the keys of a row are divided among thread blocks
 *
 * A thread block has a few rows: heads of queries that share a head of the cache, of one token or of neighbouring ones. Its
 * warps take consecutive tiles of keys, one each (a round); their states are joined in order. Where there are too few rows to
 * fill the machine, the rounds are divided among several blocks, and the states of all tiles go to the workspace. A second launch
 * joins them or, where the caller gives counters, the last block to finish. */
#ifndef QDNN_KERNELS_ATTENTION_H
#define QDNN_KERNELS_ATTENTION_H

#include "kernels/cache/cache.h"

enum {
    TILE_KEYS = 64,
    STRIP_TILES = 16,     /* of mode exact */
    TENSOR_TILES = 4,     /* tiles of a strip of mode tensor */
    ATTENTION_ROWS = 4,   /* of a thread block in mode exact */
    ATTENTION_TOKENS = 4, /* likewise */
    UNIT_MAX = 8,         /* elements of a unit, which is loaded at once */
    UNITS_AT_ONCE = 32
};

/* ---- Specifications (attention_plan.c) ---- */

void fix_attention(kernel_spec *spec);
void fix_attention_quantized(kernel_spec *spec);
bool attention_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
bool attention_is_empty(const kernel_problem *problem);
kernel_describes describe_attention;
void attention_complete(const kernel_spec *spec, kernel_problem *problem);
kernel_geometry attention_geometry(const kernel_row *row, const kernel_spec *spec);
void attention_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps);
void attention_bound(const kernel_spec *spec, const kernel_problem *problem,
                     kernel_operand operands[QDNN_OPERAND_COUNT]);
void emit_attention(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* How a specification is computed. */
typedef struct attention_shape {
    unsigned block, warps;
    unsigned heads;       /* of a thread block: heads of queries */
    unsigned tokens;      /* of a thread block */
    unsigned rows;        /* heads * tokens, rounded up to a power of two */
    unsigned head_blocks; /* that share a head of the cache */
    /* Mode tensor. The warps of a block go through keys together; each has 16 rows and some columns of the values. */
    unsigned row_tiles, column_parts;
    unsigned chunk, slots; /* keys that are loaded at once; and how many times so many there is room for */
} attention_shape;
attention_shape attention_shape_of(const kernel_spec *spec);
/* Keys of a state in the workspace: a tile of mode exact, a strip of mode tensor. */
unsigned state_keys(const kernel_spec *spec);

/* ---- What a token sees (seen.c) ---- */

typedef struct seen_keys {
    ptx_val sequence; /* u32 */
    ptx_val first,
        last;    /* s32: the keys, as far as the cache and the mask have room for them; none: last < first */
    ptx_val end; /* s32: P of the contract */
} seen_keys;
/* Of a token (u64), which may not exist. */
seen_keys seen_by_token(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val token);

/* ---- Keys and values (keys.c) ---- */

/* An array of the cache as a kernel reads it: units of a few elements, number u being that of lane u mod `lanes` (a power of
 * two). Its "turn" is u / lanes. */
typedef struct kv_reader {
    const kv_array *array; /* which outlives the reader */
    unsigned elements;     /* of a unit: 4 or 8 */
    unsigned lanes, units;
    quantized q;
    ptx_val lane;   /* u32 */
    ptx_val offset; /* u64: bytes from the start of a head to the lane's first unit */
    ptx_val whole;  /* predicate: units are aligned; empty: nothing depends on it */
    ptx_val scale;  /* f32: the static one of this head; or empty */
    ptx_val group;  /* u64: bytes from a head's first scale to that of the lane's first unit; or empty */
    /* Blocks: the lane's run of a block, and whether it needs the second strand. */
    block_place run;
    ptx_val second;
} kv_reader;
kv_reader kv_reader_begin(ptx_builder *b, const kv_array *array, const codec_state *state, unsigned elements,
                          unsigned lanes, ptx_val lane, ptx_val head);
/* Turns of a lane; and whether some lanes do not have the last one. */
unsigned kv_turns(const kv_reader *r);
bool kv_turn_is_ragged(const kv_reader *r, unsigned turn);
unsigned
kv_unit_words(const kv_reader *r); /* u32 words that a unit is loaded as; of a block, about so many */
/* Prepares what decoding needs in shared memory; called by all threads. */
codec_state kv_open(ptx_builder *b, const kv_array *array);

/* A head of a slot. */
typedef struct kv_head {
    ptx_val at;    /* u64: its address */
    ptx_val scale; /* f32: its scale; or u64: the address of its first scale; or empty */
} kv_head;
kv_head kv_head_of(ptx_builder *b, const kv_reader *r, const kv_slot *slot, ptx_val head);

/* A unit as it was loaded. */
typedef struct kv_unit {
    ptx_val words[UNIT_MAX];
    block_run run;
    ptx_val scale; /* f32, if it has one */
} kv_unit;
/* Loads turn `turn` of several heads (of one, several turns). */
typedef struct kv_place {
    kv_head head;
    unsigned turn;
} kv_place;
void kv_fetch(ptx_builder *b, const kv_reader *r, const kv_place *places, unsigned count, kv_unit *units);
/* The numbers of a unit as f32; zeros where the lane does not have the turn. */
void kv_decode(ptx_builder *b, const kv_reader *r, const kv_unit *unit, unsigned turn, ptx_val *x);
/* The numbers rounded to F16 or BF16, in pairs: u32, the first in the low half. Where the lane does not have the turn, they are
 * arbitrary. */
void kv_decode_pairs(ptx_builder *b, const kv_reader *r, const kv_unit *unit, qdnnDataType_t type,
                     ptx_val *pairs);
/* The address (u64) of a unit, and an offset that is added to it. */
ptx_val kv_unit_address(ptx_builder *b, const kv_reader *r, const kv_place *place, int *offset);

/* ---- States (states.c) ---- */

/* The state of a row, in the threads that have some of its columns: variables. */
enum { STATE_COLUMNS = 8 };
typedef struct row_state {
    ptx_val m, l, o[STATE_COLUMNS];
    unsigned columns;
} row_state;
row_state state_begin(ptx_builder *b, unsigned columns);
void state_clear(ptx_builder *b, const row_state *s);
/* Joins one state: o may be null (zeros). */
void state_join(ptx_builder *b, const row_state *s, ptx_val m, ptx_val l, const ptx_val *o);
/* Joins up to 32 states, lane i of each warp having m and l of state i; a state that does not exist has -Inf and 0. The function gives
 * column `column` of o of state `i`; it is called for all columns of a state before those of the next one. */
typedef ptx_val state_column(ptx_builder *b, const void *user, unsigned i, unsigned column);
void state_join_all(ptx_builder *b, const row_state *s, ptx_val m, ptx_val l, unsigned count,
                    state_column *column, const void *user);
/* y of a column: what is left after the sink (f32; may be empty). */
void state_finish(ptx_builder *b, const row_state *s, ptx_val sink, ptx_val *y);

/* exp(m - larger), where -Inf less -Inf counts as 0. */
ptx_val state_factor(ptx_builder *b, ptx_val m, ptx_val larger);

/* Where states are in the workspace, f32: [tokens, queries, states, value size] of o, then [tokens, queries, states, 2] of m, l.
 * State `number` (u64) has keys from number * state_keys on. */
typedef struct state_place {
    ptx_val o, ml; /* u64 */
} state_place;
state_place state_place_of(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val token,
                           ptx_val head, ptx_val number);
uint64_t state_workspace(const kernel_spec *spec, const kernel_problem *problem);

/* ---- Kernels ---- */

void emit_attention_exact(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_attention_tensor(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_attention_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
enum { JOIN_THREADS = 128 }; /* of a block of it, which has one row */

/* In phase last, the end of a block: if it is the last of those that share its rows (heads of one token), it joins their states. */
typedef struct shared_rows {
    ptx_val token, head,
        head_end;            /* u64; heads from `head` on, of which those from head_end on do not exist */
    unsigned heads, threads; /* of the block */
} shared_rows;
void emit_join_if_last(ptx_builder *b, const kernel_spec *spec, const kernel_args *args,
                       const shared_rows *rows);

#endif
