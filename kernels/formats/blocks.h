/* Blocks that hold codes and scales together, as GGUF files have them: where the fields of a block lie, and how a run
 * of its codes is read and decoded, or put together and written.
 *
 * Codes lie in sections. A section is `span` bytes; each byte holds one code of each of `strands` strands, and strand
 * s of byte j is element s * span + j of the section: Q4_0 is one section of 16 bytes with two strands, low nibbles
 * and high nibbles. A run is a few neighbouring bytes of a section: it holds as many neighbouring elements of each
 * strand.
 *
 * Reading: block_fetch (loads alone, so that they may be issued early), block_open_run, then for each strand
 * block_strand_of and, element by element, block_decode. Blocks may lie in global or in shared memory. */
#ifndef QDNN_KERNELS_BLOCKS_H
#define QDNN_KERNELS_BLOCKS_H

#include "kernels/formats/format.h"

enum { RUN_BYTES_MAX = 16, RUN_WORDS_MAX = RUN_BYTES_MAX / 4, SECTION_KINDS_MAX = 3, STRANDS_MAX = 5 };

typedef struct block_section {
    unsigned count; /* sections of this kind that follow each other; 0: the list has ended */
    unsigned span, strands;
} block_section;

/* Offsets in bytes of the fields that a format has. */
typedef struct block_fields {
    unsigned codes;
    unsigned high;   /* upper bits of codes */
    unsigned scale;  /* d, or e8m0 */
    unsigned second; /* m, dmin or s; high bits of IQ4_XS's scales */
    unsigned scales; /* small integers, or UE4M3 */
} block_fields;

typedef struct block_codes block_codes;     /* how codes lie in bits */
typedef struct block_scales block_scales;   /* how scales are stored */
typedef struct block_encoder block_encoder; /* how numbers become codes */
typedef struct block_search block_search;   /* the same for K-quants: search.h */

typedef struct block_layout {
    qdnnBlockFormat_t block;
    unsigned elements, bytes;
    block_fields at;
    block_section sections[SECTION_KINDS_MAX];
    const block_codes *codes;
    const block_scales *scales;
    unsigned bias;                /* what is subtracted from a code */
    const int8_t *table;          /* or the 16 numbers that codes stand for */
    const block_encoder *encoder; /* this or `search`; neither: the format is only read */
    const block_search *search;
} block_layout;

/* Of a format in blocks; null for the others. */
const block_layout *block_layout_of(const format_row *format);

/* The largest power of two, up to 16, that divides the bytes of a block: what blocks behind an aligned address are
 * aligned to. */
unsigned block_align(const block_layout *layout);

/* Places of a kind of section within its block: its first byte among the codes, its first element. */
unsigned section_first_byte(const block_layout *layout, unsigned kind);
unsigned section_first_element(const block_layout *layout, unsigned kind);

/* ---- Reading ---- */

/* A run of 2, 4, 8 or 16 bytes. */
typedef struct block_place {
    ptx_space space;
    ptx_val block;  /* address of its first byte */
    unsigned align; /* what that is a multiple of */
    /* The address is `skew` bytes beyond a multiple of `unit` (4, 8 or 16): loads of aligned units serve. unit 0: not known. */
    unsigned unit, skew;
    unsigned kind; /* of section */
    unsigned bytes;
    ptx_val position; /* u32: first byte among all of that kind, a multiple of `bytes` */
    ptx_val section;  /* u32: which of that kind */
    ptx_val byte;     /* u32: first byte within the section */
} block_place;

/* The run with that number (u32) among the runs of `bytes` bytes that a block has in sections of a kind; where the
 * block lies is left to the caller. */
block_place block_place_of_run(ptx_builder *b, const block_layout *layout, unsigned kind, ptx_val run,
                               unsigned bytes);
/* Its first element in strand 0, counted from the block's first (u32). */
ptx_val block_place_element(ptx_builder *b, const block_layout *layout, const block_place *place);

/* A run as it was loaded. Which members are used, and how, is the business of codes and scales. */
typedef struct block_run {
    block_place place;
    ptx_val codes[2 * RUN_WORDS_MAX];
    ptx_val high[RUN_WORDS_MAX];
    ptx_val d, second; /* as stored; f32 once the run is open */
    ptx_val scales[6];
} block_run;

void block_fetch(ptx_builder *b, const block_layout *layout, const block_place *place, block_run *run);
void block_open_run(ptx_builder *b, const block_layout *layout, block_run *run);

/* One strand of a run. */
typedef struct block_strand {
    ptx_val codes[RUN_WORDS_MAX]; /* u32: one code in each byte, the first lowest */
    ptx_val scale;
    ptx_val addend; /* empty where there is none */
} block_strand;
block_strand block_strand_of(ptx_builder *b, const block_layout *layout, const block_run *run,
                             unsigned strand);
/* The same for formats in which a strand can be read by itself: its number is a u32. */
bool block_has_one(const block_layout *layout);
void block_fetch_one(ptx_builder *b, const block_layout *layout, const block_place *place, ptx_val strand,
                     block_run *run);
block_strand block_strand_one(ptx_builder *b, const block_layout *layout, const block_run *run,
                              ptx_val strand);
/* `if_true` where the predicate holds, else `if_false`. */
block_strand block_strand_select(ptx_builder *b, const block_strand *if_true, const block_strand *if_false,
                                 unsigned bytes, ptx_val pred);

/* The numbers of a layout that has a table, as bits of f32. */
void block_table_bits(const block_layout *layout, uint64_t bits[16]);
/* Tables for decoding; by all threads of the block, once a kernel. */
codec_state block_open(ptx_builder *b, const block_layout *layout);
/* The f32 value of an element of the strand. */
ptx_val block_decode(ptx_builder *b, const block_layout *layout, const codec_state *state,
                     const block_strand *strand, unsigned element);

/* ---- Writing, in shared memory ---- */

/* The lanes of a warp that hold a block's elements between them. */
typedef struct block_lanes {
    unsigned count;   /* a power of two */
    ptx_val first;    /* u32: the lane that begins the block */
    ptx_val is_first; /* predicate: it is this one */
    ptx_val block;    /* shared address of the block that is written */
} block_lanes;

/* What the codes of a block are made with. */
typedef struct block_numbers {
    ptx_val d;             /* f32, not yet rounded */
    ptx_val factor;        /* its reciprocal */
    ptx_val least;         /* where codes count from the least element */
    ptx_val thresholds[7]; /* between magnitudes */
} block_numbers;

struct block_encoder {
    float parameter; /* half the range of codes, or the most of them, as `begin` and `code` use it */
    /* The block's numbers from the elements of each lane, in increasing order, which have no NaN and no infinity;
     * stores what the block keeps of them. */
    block_numbers (*begin)(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                           const ptx_val *x, unsigned count);
    /* The code (u32 in 0 to 255) of an element. */
    ptx_val (*code)(ptx_builder *b, const block_layout *layout, const block_numbers *numbers, ptx_val x);
    /* Stores what depends on the codes of each lane; null where nothing does. */
    void (*end)(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                const block_numbers *numbers, const ptx_val *codes, unsigned count);
};
extern const block_encoder encoder_q4_0, encoder_q5_0, encoder_q4_1, encoder_q5_1, encoder_q8_0, encoder_q8_1,
    encoder_ternary, encoder_mxfp4;

/* What encoders share. Over all lanes, to all of them: */
typedef ptx_val block_combine(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val block_over_lanes(ptx_builder *b, const block_lanes *lanes, block_combine *combine, ptx_val x);
ptx_val block_larger(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val block_first_larger_magnitude(ptx_builder *b, ptx_val x, ptx_val y);
/* Stores x rounded to f16, beyond its largest number that; returns what was stored. */
ptx_val block_put_f16(ptx_builder *b, const block_lanes *lanes, unsigned offset, ptx_val x);

/* Stores the run that holds these strands: words with one code in each byte. */
void block_pack(ptx_builder *b, const block_layout *layout, const block_place *place,
                ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX]);

/* ---- The parts that rows are made of ---- */

struct block_codes {
    void (*fetch)(ptx_builder *b, const block_layout *layout, block_run *run);
    /* Words with one code in each byte. */
    void (*split)(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words);
    /* The reverse; null where the format is only read. */
    void (*pack)(ptx_builder *b, const block_layout *layout, const block_place *place,
                 ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX]);
    /* The bit of codes that `pack` leaves out: it lies in 32 bytes that all sections share, bit i / 32 of byte i % 32 for
     * element i. 0: there is none. */
    unsigned shared_bit;
    /* One strand alone, whose number (u32) the kernel computes. Null: there is no such way. */
    void (*fetch_one)(ptx_builder *b, const block_layout *layout, block_run *run, ptx_val strand);
    void (*split_one)(ptx_builder *b, const block_run *run, ptx_val strand, ptx_val *words);
};
extern const block_codes codes_nibbles, codes_nibbles_bits, codes_nibbles_bytes, codes_bytes, codes_pairs,
    codes_pairs_mask, codes_six, codes_ternary;

struct block_scales {
    void (*fetch)(ptx_builder *b, const block_layout *layout, block_run *run);
    void (*open)(ptx_builder *b, block_run *run);
    /* Scale and addend of a strand. */
    void (*strand)(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out);
    /* For one strand alone, which counts as strand 0 then. */
    void (*fetch_one)(ptx_builder *b, const block_layout *layout, block_run *run, ptx_val strand);
};
extern const block_scales scales_f16, scales_f16_min, scales_f32, scales_e8m0, scales_ue4m3, scales_q2_k,
    scales_q3_k, scales_q4_k, scales_q6_k, scales_iq4_xs;

/* 2^(e - 128) of a u32 in 0 to 255, as f32. */
ptx_val block_half_of_e8m0(ptx_builder *b, ptx_val e);
/* Half the number of a UE4M3 of GGUF (u32 in 0 to 255), as f32. */
ptx_val block_half_of_ue4m3(ptx_builder *b, ptx_val e);

/* ---- Bytes of a block, by the widest accesses that its alignment allows ---- */

typedef struct block_address {
    ptx_space space;
    ptx_val base;
    int offset;
    unsigned align, unit, skew; /* as in block_place, of base + offset */
} block_address;

/* A field at a fixed offset; and one that the dynamic `more` (u32, a multiple of `step`) moves. */
block_address block_field(const block_place *place, unsigned offset);
block_address block_field_at(ptx_builder *b, const block_place *place, unsigned offset, ptx_val more,
                             unsigned step);

/* `bytes` bytes as words, the first byte lowest; where they are fewer than 4, in the low end of one. */
void block_load(ptx_builder *b, const block_address *at, unsigned bytes, ptx_val *words);
/* One number, put together where the alignment does not allow to load it. */
ptx_val block_load_as(ptx_builder *b, const block_address *at, ptx_type type, int offset);
void block_store(ptx_builder *b, const block_address *at, unsigned bytes, const ptx_val *words);

#endif
