/* Formats, as emitters see them: a codec says how a code and its group make a number, and back; a layout says
 * where codes and scales lie. Operations reach both through readers and writers (reader.h); nothing outside this
 * folder knows how wide a code is. docs/numerics.md is the contract. */
#ifndef QDNN_KERNELS_FORMAT_H
#define QDNN_KERNELS_FORMAT_H

#include "kernels/emit.h"

/* A format and a normal specification: what every function of a codec gets. */
typedef struct coding {
    const format_row *format;
    const kernel_spec *spec;
} coding;

/* What a group needs while its elements are coded; made once a group. Unused members stay empty. */
typedef struct group_values {
    ptx_val scale;   /* f32 */
    ptx_val divisor; /* f32, what quantize divides by; where it multiplies instead, the factor */
    ptx_val zero;    /* f32: the zero point or minimum */
} group_values;

/* What a codec sets up once a kernel: a table in shared memory. */
typedef struct codec_state {
    ptx_val table; /* its address */
} codec_state;

/* Where a code lies: at that bit of a u32. */
typedef struct code_place {
    ptx_val word;
    unsigned position;
} code_place;

typedef struct codec {
    const uint64_t *numbers; /* of codes of 4 bits: the f32 that each stands for, as bits, where a table of them is of use; else null */
    bool has_nan; /* there is a code for NaN; else a NaN is coded as 0 is */
    /* The scale before it is stored, from the reduced range (lo and hi, or hi = absmax). */
    ptx_val (*scale)(ptx_builder *b, const coding *c, ptx_val lo, ptx_val hi);
    /* The zero point or minimum that goes with the stored scale. Null where the codec has none. */
    ptx_val (*zero)(ptx_builder *b, const coding *c, ptx_val lo, ptx_val scale);
    /* The code (u32, no other bits set) of a quotient; a NaN comes as NaN. */
    ptx_val (*encode)(ptx_builder *b, const coding *c, const group_values *group, ptx_val quotient);
    /* Called once, before the first decode, by all threads of the block. Null where nothing is needed. */
    codec_state (*open)(ptx_builder *b, const coding *c);
    /* The number of the code at that bit of a u32 word, in units of the scale, the zero not yet subtracted. */
    ptx_val (*unit)(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                    unsigned position);
    /* The same for the four codes of a word of bytes, where that is cheaper; else null. */
    void (*units_of_bytes)(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                           ptx_val out[4]);
    /* The numbers of two codes as an f16x2 or bf16x2 (`type` is F16 or BF16), the first in the low half, plus `minus_zero`
     * (a pair of the same type; empty: nothing is added). All of it is exact. Null where such a type does not hold the
     * format's numbers. has_pair: whether the target has the instructions; null: it has what every pair needs. */
    ptx_val (*pair)(ptx_builder *b, const coding *c, qdnnDataType_t type, ptx_val minus_zero, code_place first,
                    code_place second);
    bool (*has_pair)(const ptx_builder *b);
} codec;

extern const codec codec_plain; /* no codes: the values themselves, which have kernels of their own */
extern const codec codec_integer, codec_nf4, codec_fp4_bnb, codec_e2m1, codec_e2m3, codec_e3m2, codec_e4m3,
    codec_e5m2, codec_block;

typedef struct minifloat {
    unsigned exponent_bits, fraction_bits;
    int bias;
    float largest;
    unsigned largest_exponent; /* emax of the MX rule: that of the largest number */
    bool has_nan; /* all other bits set, where there is no infinity; E5M2 is IEEE-like and has both */
} minifloat;
extern const minifloat float_e2m1, float_e2m3, float_e3m2, float_e4m3, float_e5m2;

struct format_row {
    format_facts facts;
    const codec *codec;
    const minifloat *number; /* what the codes are; null where they are no floats */
};

/* ---- formats.c ---- */

/* What operations have that know no codes. It is not in the list of formats. */
extern const format_row format_none;

bool format_has_zero(const format_row *format); /* zero points or minima */
bool format_is_plain(const format_row *format);
bool format_is_blocks(const format_row *format); /* codes and scales lie together (blocks.h) */
int format_largest_integer(const coding *c);    /* of integer codes */
kernel_key_set format_keys(const format_row *format); /* the settings that it knows */

/* The code kind that DEFAULT stands for. */
qdnnCodeKind_t format_code_kind(const format_row *format, qdnnCodeKind_t kind);

/* The type of zeros, for which U8 is the default: minima are f32 then, and zeros of signed codes i8. Packed zeros
 * have no type of their own: the default. */
qdnnDataType_t format_zero_type(const format_row *format, const kernel_spec *spec);

/* Whether there is a kernel for a normal specification; else the reason. */
bool format_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* ---- Numbers of a group (group.c): from memory to group_values, the same for every codec ---- */

/* The arrays beside the codes. */
typedef struct sidecars {
    ptx_val scale, zero;              /* pointers */
    ptx_val global_scale;             /* f32, loaded; empty where there is none */
    ptx_val nested_map, nested_scale; /* pointers */
    ptx_val nested_offset;            /* f32, loaded */
} sidecars;

/* The values of the group whose scale has that index (u64). */
group_values group_load(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index);
/* Its parts: the scale at an index, and what a stored zero that was read as f32 stands for. */
ptx_val group_load_scale(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index);
ptx_val group_zero_from(ptx_builder *b, const coding *c, ptx_val stored);
/* The same from numbers that were loaded by other means. */
group_values group_of_numbers(ptx_builder *b, const coding *c, const sidecars *s, ptx_val scale,
                              ptx_val zero);
/* Groups without scales. */
group_values group_without_scale(ptx_builder *b);

/* The value of a number in units of the scale. */
ptx_val group_decode(ptx_builder *b, const coding *c, const sidecars *s, const group_values *group,
                     ptx_val unit);
/* x in units of the scale; a NaN stays, an infinity counts as the largest finite number. */
ptx_val group_quotient(ptx_builder *b, const coding *c, const group_values *group, ptx_val x);

/* The scale (and zero) of a reduced range, rounded as their types ask for: as a reader will see them and, where a scale
 * is a byte, its code. */
typedef struct group_made {
    ptx_val scale, zero; /* f32 */
    ptx_val code;        /* u32 */
} group_made;
group_made group_make(ptx_builder *b, const coding *c, const sidecars *s, ptx_val lo, ptx_val hi);
/* Stores them at that index; or each at an index of its own. Zeros that are to be packed are stored as f32, as another
 * kernel takes them. */
void group_store(ptx_builder *b, const coding *c, const sidecars *s, const group_made *g, ptx_val index);
void group_store_at(ptx_builder *b, const coding *c, const sidecars *s, const group_made *g, ptx_val scale_index,
                    ptx_val zero_index);

/* ---- Rounding, for codecs ---- */

ptx_val round_ties_away(ptx_builder *b, ptx_val x);
ptx_val round_integral(ptx_builder *b, const kernel_spec *spec, ptx_val x);
ptx_val nan_to_zero(ptx_builder *b, ptx_val x);

/* ---- Tables (table.c) ---- */

/* Sixteen f32, given as bits, in shared memory; by all threads of the block. */
codec_state table_open(ptx_builder *b, const uint64_t bits[16]);
/* The entry that the four bits at `position` of a word name. */
ptx_val table_number(ptx_builder *b, const codec_state *state, ptx_val word, unsigned position);
/* How many of 2^count - 1 ascending thresholds lie strictly below x. */
ptx_val table_place(ptx_builder *b, const ptx_val *thresholds, int count, ptx_val x);

/* ---- Small floats (minifloat.c): for codes and for E4M3 scales ---- */

/* 2^(e - 127), of which the least is a subnormal; 255 is NaN. */
ptx_val e8m0_decode(ptx_builder *b, ptx_val byte);

/* Nearest even, saturating; NaN becomes the NaN code, or 0 where there is none. u32. */
ptx_val minifloat_encode(ptx_builder *b, const minifloat *f, ptx_val x);
/* The f32 of the code at that bit of a u32. */
ptx_val minifloat_decode(ptx_builder *b, const minifloat *f, ptx_val word, unsigned position);

#endif
