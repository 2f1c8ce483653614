/* Blocks decoded in registers, for products. A team of 8 threads shares a round (256 elements) of one
 * output: each thread takes runs (neighbouring bytes of codes) that make 32 elements, i.e. four chunks of
 * different lanes, with an accumulator each. Larger teams have fewer chunks per thread; in a team of 32 two threads
 * share the 8 bytes of two chunks. A byte may hold several codes, one of each "strand"
 * (kernels/formats/blocks.h).
 *
 * The cheap decode: a code of at most 8 bits that begins at bit p of a word, all other bits masked off, is
 * the f32 code * 2^(p - 149) where p + 8 <= 24, whatever the code: subnormal and smallest normal numbers
 * are equally spaced. So one `and` and one fma make code * scale + addend, times 2^-48: scales are
 * multiplied by 2^(101 - p) once per block, addends by 2^-48, and x by 2^48 where it is staged. All of
 * that is exact: scales are multiples of 2^-24 below 2^24, and products of weights with x are the same
 * real numbers as before. It needs x below 2^79, and finite scales where a bias is subtracted (otherwise
 * the kernel falls back on the plain decode).
 *
 * By table: nibbles that index a table of numbers are looked up bytewise, the codes of both strands at
 * once.
 *
 * In units (MXFP4, x in f16): the scale of a block is 2^(e - 128), so sums can be kept in units of it.
 * Weights then need no multiplication; instead each sum is multiplied when the next block has a different
 * unit. Rounding does not depend on the unit as long as nothing underflows or overflows in either. With e
 * from 96 to 159, products are multiples of 2^-56 below 2^51, and in any of these units multiples of 2^-87
 * below 2^83: fewer than 2^40 of them stay far from both ends. Blocks of zeros, whose e has no effect,
 * count as e = 128. If any other e is met, the kernel falls back on the plain decode. */
#ifndef QDNN_KERNELS_BLOCK_READER_H
#define QDNN_KERNELS_BLOCK_READER_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/byte_table.h"
#include "kernels/maps/map.h"

enum {
    TEAM = 8,        /* threads that share a round, if not more */
    TEAM_CHUNKS = 4, /* chunks per thread and round, at most */
    CHUNKS_OF_ROUND = 32
};

typedef enum block_way { BLOCK_PLAIN, BLOCK_CHEAP, BLOCK_BY_TABLE } block_way;

/* How a team shares a round: a thread has `runs` neighbouring runs of `bytes` bytes. */
typedef struct block_share {
    const block_layout *layout;
    unsigned team, chunks; /* threads; chunks of a thread in a round */
    unsigned runs, bytes;
    unsigned strands; /* of its runs; 1 of 2 where a thread takes that of its parity only */
    block_way fast;   /* the fastest decode that the format supports */
    bool own_first;   /* threads with an odd number take strand 1 first */
} block_share;

/* False: the format cannot be shared this way: TQ1_0; and by teams larger than 8 (16 or 32), most. */
bool block_share_of(const block_layout *layout, unsigned team, block_share *share);

/* The lanes of a thread's chunks: from "thread" and "chunk" to "lane". */
map block_share_lanes(const block_share *share);

/* What a thread keeps for all rounds. */
typedef struct block_reader {
    const block_share *share;
    const codec_state *state;
    ptx_val thread; /* u32: number in the team */
    ptx_val odd;    /* predicate, where own_first */
    ptx_val own; /* u32, where own_first: the number of the thread's first strand among those of the block */
    ptx_val masks[2][2];
    ptx_val factors[2];             /* f32: of d, for the first and second strand */
    block_turn turns[2];            /* of the first and second strand, where own_first */
    ptx_val select[2], shift, mask; /* how the team unpacks six-bit scales */
    byte_table table;               /* where codes are looked up */
    bool in_units;                  /* sums are kept in units */
    /* Variable u32, if in_units: above 63 once an unsupported e was met. */
    ptx_val seen;
    /* Variable f32: NaN once a scale was not finite; empty where that does not matter. */
    ptx_val guard;
} block_reader;
block_reader block_reader_begin(ptx_builder *b, const block_share *share, const codec_state *state,
                                ptx_val thread, bool in_units);

/* A round of one output, as it was loaded. Six-bit scales come as the words of the block's header. */
typedef struct block_round {
    block_run runs[2];
} block_round;

/* The place of a thread's run within a block, and which block of the round that is (u32); the caller adds
 * the address. */
block_place block_share_place(ptx_builder *b, const block_share *share, ptx_val thread, unsigned run,
                              ptx_val *block);
/* Loads a round with the format's own readers. */
void block_round_fetch(ptx_builder *b, const block_share *share, const block_place places[2],
                       block_round *round);

/* What decoding a round needs. */
typedef struct block_stream {
    block_strand strand; /* of the plain decode */
    ptx_val words[RUN_WORDS_MAX], shifted[RUN_WORDS_MAX];
    ptx_val masks[2], scales[2], addend;
} block_stream;
typedef struct block_values {
    block_way way;
    ptx_val unit; /* u32, where sums are in units: e << 23 */
    block_stream streams[TEAM_CHUNKS];
} block_values;
/* `way`: plain, or share->fast; for the cheap decode the round has the header's words. */
void block_values_open(ptx_builder *b, const block_reader *reader, block_round *round, block_way way,
                       block_values *out);
/* Element e of a chunk: f32, times 2^-PLACED_X_EXPONENT in the cheap decode. Not for BLOCK_BY_TABLE. */
ptx_val block_value(ptx_builder *b, const block_reader *reader, const block_values *values, unsigned chunk,
                    unsigned e);
/* By table: element e of `chunk` and of chunk + 2, which lie in the same bytes. */
void block_values_looked_up(ptx_builder *b, const block_reader *reader, const block_values *values,
                            unsigned chunk, unsigned e, ptx_val out[2]);
/* Element e of `chunk` and of chunk + 2 as f32x2. */
ptx_val block_value_pair(ptx_builder *b, const block_reader *reader, const block_values *values,
                         unsigned chunk, unsigned e);

#endif
