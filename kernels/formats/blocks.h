/* Blocks that hold codes and scales together, as in GGUF files: where the fields of a block are, and how a
 * run of its codes is read and decoded, or encoded and written.
 *
 * The codes of a block form sections. A section has `span` bytes; each byte holds one code of each of
 * `strands` strands, and strand s of byte j is element s * span + j of the section. Q4_0, for example, is one
 * section of 16 bytes with two strands, low nibbles and high nibbles. A run is a few adjacent bytes of a
 * section: it holds that many adjacent elements of each strand.
 *
 * Reading: block_fetch (only loads, so that they can be issued early), block_open_run, then for each strand
 * block_strand_of and, for each element, block_decode. Blocks may be in global or in shared memory. */
#ifndef QDNN_KERNELS_BLOCKS_H
#define QDNN_KERNELS_BLOCKS_H

#include "kernels/formats/format.h"

enum { RUN_BYTES_MAX = 16, RUN_WORDS_MAX = RUN_BYTES_MAX / 4, SECTION_KINDS_MAX = 3, STRANDS_MAX = 5 };

typedef struct block_section {
    unsigned count; /* consecutive sections of this kind; 0: end of the list */
    unsigned span, strands;
} block_section;

/* Byte offsets of the fields that a format has. */
typedef struct block_fields {
    unsigned codes;
    unsigned high;   /* upper bits of codes */
    unsigned scale;  /* d, or e8m0 */
    unsigned second; /* m, dmin or s; high bits of IQ4_XS's scales */
    unsigned scales; /* small integers, or UE4M3 */
    unsigned signs;
} block_fields;

typedef struct block_codes block_codes;     /* how codes are arranged in bits */
typedef struct block_scales block_scales;   /* how scales are stored */
typedef struct block_grid block_grid;       /* entries of a codebook that codes are looked up in */
typedef struct block_encoder block_encoder; /* how values become codes */
typedef struct block_search block_search;   /* the same for K-quants: search.h */

/* Bytes, modulo the 128 of all banks, by which the copies of two teams of a warp, and of two pairs of teams, are apart in
 * shared memory: loads of the four teams then use different banks, as far as that is possible. */
typedef struct block_banks {
    uint8_t second, pair;
} block_banks;

typedef struct block_layout {
    qdnnBlockFormat_t block;
    unsigned elements, bytes;
    block_fields at;
    block_section sections[SECTION_KINDS_MAX];
    const block_codes *codes;
    const block_scales *scales;
    unsigned bias;                /* subtracted from a code */
    const int8_t *table;          /* or the 16 numbers that codes stand for */
    const block_encoder *encoder; /* either this or `search`; neither: the format can only be read */
    const block_search *search;
    block_banks banks,
        banks_between; /* of copies in memory of their own; between the entries of a byte_table */
} block_layout;

/* The layout of a block format; null for other formats. */
const block_layout *block_layout_of(const format_row *format);

/* The largest power of two, up to 16, that divides the size of a block: the alignment of all blocks in an
 * aligned array. */
unsigned block_align(const block_layout *layout);

/* Where sections of a kind begin within a block: their first byte among the codes, and their first
 * element. */
unsigned section_first_byte(const block_layout *layout, unsigned kind);
unsigned section_first_element(const block_layout *layout, unsigned kind);

/* ---- Reading ---- */

/* A run of 2, 4, 8 or 16 bytes. */
typedef struct block_place {
    ptx_space space;
    ptx_val block;  /* address of the first byte of the block */
    unsigned align; /* alignment of that address */
    /* The address is `skew` bytes after a multiple of `unit` (4, 8 or 16), so that aligned units can be
     * loaded. unit 0: not known. */
    unsigned unit, skew;
    /* Or the block is in registers, as words (u32); section and byte are then numbers known when the kernel is emitted. */
    const ptx_val *held;
    unsigned kind; /* kind of section */
    unsigned bytes;
    ptx_val position; /* u32: first byte of the run among all bytes of that kind, a multiple of `bytes` */
    ptx_val section;  /* u32: number of the section among those of that kind */
    ptx_val byte;     /* u32: first byte within the section */
} block_place;

/* The place of a run: `run` (u32) counts runs of `bytes` bytes in the sections of a kind. The caller adds the
 * address of the block. */
block_place block_place_of_run(ptx_builder *b, const block_layout *layout, unsigned kind, ptx_val run,
                               unsigned bytes);
/* The run's first element in strand 0, counted from the first of the block (u32). */
ptx_val block_place_element(ptx_builder *b, const block_layout *layout, const block_place *place);

/* A run as loaded. Only the functions for codes and scales know which members are used, and how. */
typedef struct block_run {
    block_place place;
    const block_layout *layout;
    ptx_val table; /* what block_open has set up; from block_open_run on */
    ptx_val codes[2 * RUN_WORDS_MAX];
    ptx_val high[RUN_WORDS_MAX];
    ptx_val d, second; /* as stored; f32 after block_open_run */
    ptx_val scales[6];
} block_run;

void block_fetch(ptx_builder *b, const block_layout *layout, const block_place *place, block_run *run);
void block_open_run(ptx_builder *b, const codec_state *state, block_run *run);

/* One strand of a run. */
typedef struct block_strand {
    ptx_val codes[RUN_WORDS_MAX]; /* u32: one code per byte, the first in the lowest byte */
    ptx_val scale;
    ptx_val addend; /* empty if there is none */
} block_strand;
block_strand block_strand_of(ptx_builder *b, const block_layout *layout, const block_run *run,
                             unsigned strand);
/* The same for formats in which a single strand, with a number (u32) computed at run time, can be read by
 * itself. */
bool block_has_one(const block_layout *layout);
void block_fetch_one(ptx_builder *b, const block_layout *layout, const block_place *place, ptx_val strand,
                     block_run *run);
block_strand block_strand_one(ptx_builder *b, const block_layout *layout, const block_run *run,
                              ptx_val strand);
/* `if_true` if the predicate holds, else `if_false`. */
block_strand block_strand_select(ptx_builder *b, const block_strand *if_true, const block_strand *if_false,
                                 unsigned bytes, ptx_val pred);

/* The numbers of a layout with a table, as f32 bits. */
void block_table_bits(const block_layout *layout, uint64_t bits[16]);
/* Sets up tables for decoding; called by all threads of the block, once per kernel. The second leaves the barrier after which
 * codebooks can be read to the caller. */
codec_state block_open(ptx_builder *b, const block_layout *layout);
codec_state block_open_before_barrier(ptx_builder *b, const block_layout *layout);
/* The same for kernels that have no shared memory left for codebooks. */
codec_state block_open_outside(ptx_builder *b, const block_layout *layout);
/* The shared memory that codebooks take; 0: the format has none. */
unsigned block_codebook_bytes(const block_layout *layout);
/* The f32 value of an element of the strand. */
ptx_val block_decode(ptx_builder *b, const block_layout *layout, const codec_state *state,
                     const block_strand *strand, unsigned element);

/* ---- Writing, to shared memory ---- */

/* The lanes of a warp that hold the elements of a block. */
typedef struct block_lanes {
    unsigned count;   /* a power of two */
    ptx_val first;    /* u32: the first lane of the block */
    ptx_val is_first; /* predicate: this lane is the first */
    ptx_val block;    /* shared address of the block being written */
    unsigned vector;  /* a lane has so many neighbours, then, after those of the other lanes, more */
} block_lanes;

/* What is needed to encode the elements of a block. */
typedef struct block_numbers {
    ptx_val d;             /* f32, not yet rounded */
    ptx_val factor;        /* its reciprocal */
    ptx_val least;         /* the least element, if codes count from there */
    ptx_val thresholds[7]; /* between the magnitudes of codes */
} block_numbers;

struct block_encoder {
    float parameter; /* half the range of codes, or the largest code, as `begin` and `code` use it */
    /* Computes the block's numbers from the elements of each lane, in increasing order, free of NaN and
     * infinities; stores those that the block contains. */
    block_numbers (*begin)(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                           const ptx_val *x, unsigned count);
    /* The code (u32 in 0 to 255) of an element. */
    ptx_val (*code)(ptx_builder *b, const block_layout *layout, const block_numbers *numbers, ptx_val x);
    /* Stores what depends on the codes of each lane; null if nothing does. */
    void (*end)(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                const block_numbers *numbers, const ptx_val *codes, unsigned count);
};
extern const block_encoder encoder_q4_0, encoder_q5_0, encoder_q4_1, encoder_q5_1, encoder_q8_0, encoder_q8_1,
    encoder_ternary, encoder_mxfp4, encoder_q1_0;

/* Shared by encoders. Combines the values of all lanes, and returns the result to all of them: */
typedef ptx_val block_combine(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val block_over_lanes(ptx_builder *b, const block_lanes *lanes, block_combine *combine, ptx_val x);
ptx_val block_larger(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val block_first_larger_magnitude(ptx_builder *b, ptx_val x, ptx_val y);
/* Stores x rounded to f16, clamped to the largest finite f16; returns what was stored. */
ptx_val block_put_f16(ptx_builder *b, const block_lanes *lanes, unsigned offset, ptx_val x);

/* Stores the run that consists of these strands: words with one code per byte. */
void block_pack(ptx_builder *b, const block_layout *layout, const block_place *place,
                ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX]);

/* ---- The parts that the rows of the table refer to ---- */

/* How a thread whose strands are known only at run time finds them, in formats with two strands whose odd threads take
 * strand 1 first: where its nibbles begin (u32), and the rotation that brings their fifth bit to bit 4. */
typedef struct block_turn {
    ptx_val shift, turn;
} block_turn;

struct block_codes {
    void (*fetch)(ptx_builder *b, const block_layout *layout, block_run *run);
    /* Words with one code per byte. */
    void (*split)(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words);
    /* The reverse; null if the format can only be read. */
    void (*pack)(ptx_builder *b, const block_layout *layout, const block_place *place,
                 ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX]);
    /* The bit of codes that `pack` leaves out: it is stored in 32 bytes that all sections share, as bit i /
     * 32 of byte i % 32 for element i. 0: there is none. */
    unsigned shared_bit;
    /* A single strand whose number (u32) is computed at run time. Null: not supported. */
    void (*fetch_one)(ptx_builder *b, const block_layout *layout, block_run *run, ptx_val strand);
    void (*split_one)(ptx_builder *b, const block_run *run, ptx_val strand, ptx_val *words);
    /* For decoding by masks: words that hold the codes of a strand in their bytes, from bit `step` * strand on and under
     * `mask`. Null: the words as they were loaded. */
    void (*gather)(ptx_builder *b, const block_run *run, unsigned strand, const block_turn *turn,
                   ptx_val *words);
    unsigned step;
    uint8_t mask;
    /* Codes are bytes in two's complement; split makes them offset codes. */
    bool is_signed;
    bool is_ternary;        /* digits of base 3 */
    const block_grid *grid; /* codes are the bytes of a codebook's entries; null: they are not */
    /* Where the bits of codes lie (block_parts), in formats with upper bits in bytes of their own: span and fields of the lower
     * bits (0: those of the sections) and of the upper ones. */
    unsigned low_span, low_fields, high_span, high_fields;
};
extern const block_codes codes_nibbles, codes_nibbles_bits, codes_nibbles_bytes, codes_bytes, codes_pairs,
    codes_pairs_mask, codes_six, codes_ternary, codes_bits, codes_pairs_in_order, codes_iq1_s, codes_iq1_m,
    codes_iq2_xxs, codes_iq2_xs, codes_iq2_s, codes_iq3_xxs, codes_iq3_s;

/* Sets up a codebook in shared memory; called by all threads of the block. Or leaves it in global memory: the table is then a u64. */
codec_state block_grid_open(ptx_builder *b, const block_grid *grid, bool in_shared);
/* Its size in shared memory. */
unsigned block_grid_bytes(const block_grid *grid);

/* The part of a block that holds no codes, in words: all of its bytes in their order (block_parts.c). */
enum { BLOCK_HEADER_MAX = 9 };
typedef struct block_header {
    ptx_val words[BLOCK_HEADER_MAX]; /* u32 */
    ptx_val d, second;               /* f32, as far as the format has them */
} block_header;

/* A scale, and an addend if there is one. */
typedef struct block_scale {
    ptx_val scale, addend;
} block_scale;

struct block_scales {
    void (*fetch)(ptx_builder *b, const block_layout *layout, block_run *run);
    void (*open)(ptx_builder *b, block_run *run);
    /* Scale and addend of a strand. */
    void (*strand)(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out);
    /* For a single strand, which is then accessed as strand 0. */
    void (*fetch_one)(ptx_builder *b, const block_layout *layout, block_run *run, ptx_val strand);
    /* From the header: the scale of the elements from `element` on, which is known when the kernel is emitted. */
    block_scale (*from_header)(ptx_builder *b, const block_layout *layout, const block_header *h,
                               unsigned element);
    /* From the first words of a block, which a thread has loaded: the scales of its run, picked by selectors of prmt. select
     * makes a selector for run `run` of a thread of a team that shares blocks; where a thread has whole blocks, the selector
     * takes `head_bytes` bytes from where the block begins in its word (empty: at its beginning). */
    void (*take)(ptx_builder *b, const ptx_val *words, ptx_val selector, block_run *run);
    ptx_val (*select)(ptx_builder *b, ptx_val thread, unsigned run);
    unsigned head_bytes;
    unsigned extent;        /* elements that share a scale; 0: the whole block */
    unsigned header_words;  /* how many words of the header scales depend on; 0: all */
    bool has_d, has_second; /* an f16 at `scale`, at `second` */
    bool
        is_f32; /* one f32 scale: no multiple of 2^-24 below 2^24, as products of f16 and small integers are */
    bool is_power_of_two; /* one byte, an exponent */
    /* Packed bits of all strands, which a team of threads unpacks together (block_reader.c). */
    bool is_unpacked_by_team;
};
extern const block_scales scales_f16, scales_f16_min, scales_f32, scales_e8m0, scales_ue4m3, scales_q2_k,
    scales_q3_k, scales_q4_k, scales_q6_k, scales_iq4_xs, scales_iq1_s, scales_iq1_m, scales_iq2_xxs,
    scales_iq2, scales_iq3_xxs, scales_iq3_s;

/* 2^(e - 128) for a u32 e in 0 to 255, as f32. */
ptx_val block_half_of_e8m0(ptx_builder *b, ptx_val e);
/* Half the value of GGUF's UE4M3 number e (u32 in 0 to 255), as f32. */
ptx_val block_half_of_ue4m3(ptx_builder *b, ptx_val e);

/* ---- Where the bits of codes lie in a block, and its header (block_parts.c) ---- */

/* Each byte is divided into `fields` fields of equal width. Field f of byte j of a run of `span` bytes belongs to element f *
 * span + j of the run. */
typedef struct block_part {
    unsigned first; /* byte */
    unsigned span, fields;
} block_part;
/* The lower bits of codes and, if it has fields, the upper ones. Entries of a codebook are no codes of single elements: their
 * blocks have 0 bits, and are all header. */
typedef struct block_parts {
    unsigned bits;
    block_part low, high;
} block_parts;
block_parts block_parts_of(const block_layout *layout);
unsigned block_part_bytes(const block_layout *layout, const block_part *part);
/* Five digits of base 3 in a byte count as a code of 8 bits. */
unsigned block_code_count(const block_layout *layout);

unsigned block_header_bytes(const block_layout *layout);
/* The place in the header of a byte of the block that is not part of a code, and the reverse. */
unsigned block_header_place(const block_layout *layout, unsigned byte);
unsigned block_header_byte(const block_layout *layout, unsigned place);
/* Sets d and second of a header whose words are loaded; an f16 of it. */
void block_header_open(ptx_builder *b, const block_layout *layout, block_header *h);
ptx_val block_header_half(ptx_builder *b, const block_layout *layout, const block_header *h, unsigned byte);

/* ---- Bytes of a block, accessed as widely as their alignment allows ---- */

typedef struct block_address {
    ptx_space space;
    ptx_val base;
    int offset;
    unsigned align, unit, skew; /* as in block_place, for base + offset */
    const ptx_val *held;        /* as in block_place; offset counts from the first of these words */
} block_address;

/* A field at a fixed offset; and a field that is `more` bytes further (u32 at run time, a multiple of
 * `step`). */
block_address block_field(const block_place *place, unsigned offset);
block_address block_field_at(ptx_builder *b, const block_place *place, unsigned offset, ptx_val more,
                             unsigned step);
/* x * factor + more and x >> by, for offsets of fields: numbers where x is one. */
ptx_val block_offset(ptx_builder *b, ptx_val x, unsigned factor, ptx_val more);
ptx_val block_offset_shr(ptx_builder *b, ptx_val x, unsigned by);

/* Loads `bytes` bytes as words, the first byte lowest; fewer than 4 bytes are in the low end of one word. */
void block_load(ptx_builder *b, const block_address *at, unsigned bytes, ptx_val *words);
/* One number, assembled from smaller loads if it is not aligned. */
ptx_val block_load_as(ptx_builder *b, const block_address *at, ptx_type type, int offset);
void block_store(ptx_builder *b, const block_address *at, unsigned bytes, const ptx_val *words);

#endif
