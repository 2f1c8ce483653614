/* Formats, as emitters see them. A codec defines how a code becomes a number and back; a layout defines where
 * codes and scales are stored. Operations access both through quantized.h, matrix.h and blocks.h; nothing
 * outside this folder depends on the width of a code. docs/numerics.md is the contract.
 *
 * Terms: the numbers of a group are its scale and its zero (a zero point or a minimum). The unit of a code is
 * the number that it stands for before the scale and the zero are applied; its value is the final f32. */
#ifndef QDNN_KERNELS_FORMAT_H
#define QDNN_KERNELS_FORMAT_H

#include "kernels/emit.h"

/* A format and a normal specification: what every function of a codec gets. */
typedef struct coding {
    const format_row *format;
    const kernel_spec *spec;
} coding;

/* What is needed to encode or decode the elements of a group, prepared once per group. Unused members stay
 * empty. */
typedef struct group_values {
    ptx_val scale; /* f32 */
    /* f32: quantize divides by it, or multiplies by it, depending on the settings */
    ptx_val divisor;
    ptx_val zero; /* f32: the zero point or minimum */
    /* The scale was made from the elements that it is used for, and is finite and not 0: no quotient is NaN, and none exceeds the
     * format's largest number by more than the scale's own rounding. */
    bool is_own;
} group_values;

/* What a codec sets up once per kernel: a table in shared memory. */
typedef struct codec_state {
    ptx_val table; /* its address */
} codec_state;

/* The position of a code: the lowest bit, in a u32. */
typedef struct code_place {
    ptx_val word;
    unsigned position;
} code_place;

typedef struct codec {
    /* 4-bit codes: the f32 that each stands for, as bits, if decoding uses a table; else null */
    const uint64_t *numbers;
    /* whether there is a code for NaN; if not, NaN is encoded like 0 */
    bool has_nan;
    bool is_integer;
    /* The scale is the largest magnitude itself: with a floor of 0, that of a group of zeros is 0. */
    bool scale_is_absmax;
    /* Quotients that are NaN are replaced by 0 whatever x was, behind the division. */
    bool replaces_nan_last;
    /* Where no instruction converts codes of 8 bits (has_pair), a table of all of them is faster than decoding them. */
    bool is_looked_up;
    /* Numbers have at most 2 significant bits: their products with E4M3 scales are exact, whatever the exponents. */
    bool has_short_numbers;
    /* The scale before rounding to its stored type, from the range of the elements: lo and hi, or hi =
     * absmax. */
    ptx_val (*scale)(ptx_builder *b, const coding *c, ptx_val lo, ptx_val hi);
    /* The zero point or minimum for the stored scale. Null if the codec has none. */
    ptx_val (*zero)(ptx_builder *b, const coding *c, ptx_val lo, ptx_val scale);
    /* The code (u32, all other bits 0) of a quotient; the quotient may be NaN. */
    ptx_val (*encode)(ptx_builder *b, const coding *c, const group_values *group, ptx_val quotient);
    /* Called once, by all threads of the block, before the first decode. Null if nothing is needed. */
    codec_state (*open)(ptx_builder *b, const coding *c);
    /* The number of the code at that bit of a u32, in units of the scale, before the zero is subtracted. */
    ptx_val (*unit)(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                    unsigned position);
    /* The same for a word of four one-byte codes; null if one by one is as cheap. */
    void (*units_of_bytes)(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                           ptx_val out[4]);
    /* The numbers of two codes as an f16x2 or bf16x2 (`type` is F16 or BF16), the first in the low half, plus
     * `minus_zero` (a pair of the same type; if empty, nothing is added). All of it is exact. Null if such a
     * type cannot hold the format's numbers. has_pair: whether the target has the required instructions;
     * null: every target that has pairs does. */
    ptx_val (*pair)(ptx_builder *b, const coding *c, qdnnDataType_t type, ptx_val minus_zero,
                    code_place first, code_place second);
    bool (*has_pair)(const ptx_builder *b);
} codec;

extern const codec codec_plain; /* no codes but the values themselves; these formats have separate kernels */
extern const codec codec_integer, codec_nf4, codec_fp4_bnb, codec_e2m1, codec_e2m3, codec_e3m2, codec_e4m3,
    codec_e5m2, codec_block;

typedef struct minifloat {
    unsigned exponent_bits, fraction_bits;
    int bias;
    float largest;
    unsigned largest_exponent; /* emax of the MX rule: the exponent of `largest` */
    /* all bits but the sign set, in formats without infinity; E5M2 is IEEE-like and has both */
    bool has_nan;
    bool is_fp8;  /* 8 bits, which tensor cores multiply */
    bool is_half; /* the upper half of an f16 */
} minifloat;
const minifloat *minifloat_of(qdnnDataType_t type); /* F8E4M3, F8E5M2 */
extern const minifloat float_e2m1, float_e2m3, float_e3m2, float_e4m3, float_e5m2;

struct format_row {
    format_facts facts;
    const codec *codec;
    const minifloat *number; /* the float type of the codes; null if they are not floats */
};

/* ---- formats.c ---- */

/* The format of operations that have no codes. It is not in the list of formats. */
extern const format_row format_none;

bool format_has_zero(const format_row *format); /* has zero points or minima */
bool format_is_plain(const format_row *format);
bool format_is_blocks(const format_row *format);      /* codes and scales are stored together (blocks.h) */
int format_largest_integer(const coding *c);          /* for integer codes */
kernel_key_set format_keys(const format_row *format); /* the settings that the format has */

/* The given code kind, or the format's own if it is DEFAULT. */
qdnnCodeKind_t format_code_kind(const format_row *format, qdnnCodeKind_t kind);

/* The type of zeros. U8 is the default and stands for the natural type: f32 for minima, i8 for zero points of
 * signed codes. Packed zeros have no type of their own and keep the default. */
qdnnDataType_t format_zero_type(const format_row *format, const kernel_spec *spec);

bool format_zero_is_float(const kernel_spec *spec); /* of integer codes; packed ones are not */

/* Whether the settings of a specification contradict each other or the format, also those that the row's operation does not
 * read: all operations accept and refuse the same. The specification is as requested, not in normal form. If they do, `error` has
 * the reason. */
bool format_allows(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* Whether a kernel exists for a normal specification. If not, `error` has the reason. */
bool format_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* ---- Numbers of a group (group.c): from memory to group_values, the same for every codec ---- */

/* The arrays that accompany the codes. */
typedef struct sidecars {
    ptx_val scale, zero;              /* pointers */
    ptx_val global_scale;             /* f32, loaded; empty if there is none */
    ptx_val nested_map, nested_scale; /* pointers */
    ptx_val nested_offset;            /* f32, loaded */
} sidecars;

/* The values of the group whose scale is at this index (u64). */
group_values group_load(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index);
/* Its parts: the scale at an index, and the zero that a stored number (as f32) stands for. */
ptx_val group_load_scale(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index);
ptx_val group_zero_from(ptx_builder *b, const coding *c, ptx_val stored);
/* The same for numbers that have already been loaded. */
group_values group_of_numbers(ptx_builder *b, const coding *c, const sidecars *s, ptx_val scale,
                              ptx_val zero);
typedef struct group_made group_made;
group_values group_of_made(ptx_builder *b, const coding *c, const sidecars *s, const group_made *made);
/* Whether the scale differs from the largest magnitude divided by the largest number by a rounding to f32 or bf16 alone. */
bool scale_is_close(const coding *c, const group_values *group);
/* For tensors without scales. */
group_values group_without_scale(ptx_builder *b);

/* The value of an element, from its number in units of the scale. */
ptx_val group_decode(ptx_builder *b, const coding *c, const sidecars *s, const group_values *group,
                     ptx_val unit);
/* x in units of the scale; an infinity counts as the largest finite number. NaN is 0, or stays NaN if the encoder takes that. */
ptx_val group_quotient(ptx_builder *b, const coding *c, const group_values *group, ptx_val x);

/* The scale (and zero) for a range, rounded to their stored types: their values as a reader will see them
 * and, if a scale is a byte, its code. */
struct group_made {
    ptx_val scale, zero; /* f32 */
    ptx_val code;        /* u32 */
};
group_made group_make(ptx_builder *b, const coding *c, const sidecars *s, ptx_val lo, ptx_val hi);
/* Stores them at that index, or each at its own index. Zeros that will be packed are stored as f32; a
 * separate kernel packs them. */
void group_store(ptx_builder *b, const coding *c, const sidecars *s, const group_made *g, ptx_val index);
void group_store_at(ptx_builder *b, const coding *c, const sidecars *s, const group_made *g,
                    ptx_val scale_index, ptx_val zero_index);

/* ---- Rounding, for codecs ---- */

/* As f32; zeros keep their sign, NaN and infinities stay. */
ptx_val round_integral(ptx_builder *b, const kernel_spec *spec, ptx_val x);
/* As s32: NaN becomes 0, and what is too large the nearest s32. */
ptx_val round_s32(ptx_builder *b, const kernel_spec *spec, ptx_val x);
ptx_val round_ties_away_s32(ptx_builder *b, ptx_val x);
ptx_val nan_to_zero(ptx_builder *b, ptx_val x);

/* ---- Tables (table.c) ---- */

uint32_t float_bits(float x);

/* Puts sixteen f32, given as bits, into shared memory; called by all threads of the block. */
codec_state table_open(ptx_builder *b, const uint64_t bits[16]);
/* The entry selected by the four bits at `position` of a word. */
ptx_val table_number(ptx_builder *b, const codec_state *state, ptx_val word, unsigned position);
/* How many of 2^count - 1 ascending thresholds are strictly below x. */
ptx_val table_place(ptx_builder *b, const ptx_val *thresholds, int count, ptx_val x);

/* ---- Small floats (minifloat.c): used for codes and for E4M3 scales ---- */

/* 2^(e - 127), the smallest of which is subnormal; 255 is NaN. */
ptx_val e8m0_decode(ptx_builder *b, ptx_val byte);

/* What is known of a number that is encoded. */
typedef struct minifloat_facts {
    bool is_number;   /* not NaN */
    bool is_positive; /* has no sign */
} minifloat_facts;

/* Rounds to nearest even with saturation; NaN becomes the NaN code, or 0 if there is none. The result is a
 * u32. */
ptx_val minifloat_encode(ptx_builder *b, const minifloat *f, ptx_val x, minifloat_facts facts);
/* The f32 value of the code at that bit of a u32. */
ptx_val minifloat_decode(ptx_builder *b, const minifloat *f, ptx_val word, unsigned position);

/* ---- Stored scales (scales.c) ---- */

ptx_val emit_load_scale(ptx_builder *b, qdnnScaleType_t type, ptx_val address, int offset);
/* `count` adjacent scales; alignment as for emit_load_run. */
void emit_load_scale_run(ptx_builder *b, qdnnScaleType_t type, ptx_val address, unsigned count, ptx_val *x);

#endif
