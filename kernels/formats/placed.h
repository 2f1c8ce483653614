/* Integer codes decoded where they lie: the fast decodes of products to f32, one or two instructions per code. A code is
 * masked at a bit of a word, its place, and the masked bits are a number v:
 *
 *   bare               v = q 2^(place - 149), a subnormal f32 or one with the same last place
 *   under an exponent  v = 2^(23 - place) + q
 *
 * where q counts from 0. The weight (q - offset - zero) scale is v a + b by one fma, or (v + b) a by a sum and a product,
 * with two numbers a and b that depend on the group and on the place. They are made once per group; docs/decodes.md explains
 * when the result has the bits of dequantize, and `prepare` says where it has not. */
#ifndef QDNN_KERNELS_PLACED_H
#define QDNN_KERNELS_PLACED_H

#include "kernels/formats/quantized.h"

enum {
    PLACED_X_EXPONENT =
        48, /* bare codes: weights are too small by this power of two, and x has to be too large by it ... */
    PLACED_X_LIMIT = 79 /* ... for which |x| has to be below 2^79 */
};

typedef struct placed_decode {
    bool is_bare;      /* a depends on the place, b does not; under an exponent it is the other way round */
    bool adds_first;   /* (v + b) a */
    unsigned exponent; /* weights are too small by this power of two */
} placed_decode;
/* zero * scale has to be exact: no zeros, or integer ones and scales of 16 bits. */
extern const placed_decode placed_fused;
/* Scales of 16 bits, no zeros, and places from 8 on. */
extern const placed_decode placed_narrow;
/* Integer zeros, any scales. */
extern const placed_decode placed_apart;

/* The numbers of a group for codes at these places: `count` + 1 of them. Returns a predicate that is false where the decode
 * cannot handle the group. */
ptx_val placed_prepare(ptx_builder *b, const placed_decode *d, const coding *c, const group_values *group,
                       const unsigned *places, unsigned count, ptx_val *numbers);
/* The weight of a code at place number i. Operands may be pairs (f32x2). */
ptx_val placed_value(ptx_builder *b, const placed_decode *d, ptx_val code, const ptx_val *numbers,
                     unsigned count, unsigned i);

/* The code at a place of a word, as f32. The sign bit of two's complement is flipped on the way. */
ptx_val placed_code(ptx_builder *b, const coding *c, ptx_val word, unsigned place, bool is_bare);
/* Two codes at places of the halves of a word, under exponents of F16 or BF16, whose fractions they fit. */
ptx_val placed_pair(ptx_builder *b, const coding *c, qdnnDataType_t type, ptx_val word,
                    const unsigned places[2]);
/* What the exponent adds to a code at a place: 2^(fraction bits - place). */
float placed_surplus(qdnnDataType_t type, unsigned place);

/* By how much codes exceed the integers that they stand for; and the zero of a group plus that. */
float placed_offset(const coding *c);
ptx_val placed_zero(ptx_builder *b, const coding *c, const group_values *group);

/* ---- How codes reach their places: shifts of the words that hold them ---- */

/* A few shifted copies of a word: the codes that do not fit where they are move by one of the shifts. */
typedef struct placed_word {
    ptx_val copy[3];
} placed_word;
typedef struct placed_moves {
    int shifts[3]; /* to the left; the first is 0 unless another copy is made before it */
    uint8_t of[8]; /* by which of them a code moves, in the order of a word */
} placed_moves;

/* Few places: of codes that share their group's numbers. Codes that cross words are moved PLACED_FEW at a time, the first
 * to bit 0. Null: there are none for such codes. */
enum { PLACED_FEW = 3 };
const unsigned *placed_few(const coding *c);
const placed_moves *placed_moves_few(const coding *c);
/* One shift: where every code has numbers of its own. */
const placed_moves *placed_moves_one(const coding *c);
placed_word placed_word_of(ptx_builder *b, const placed_moves *m, ptx_val word);
/* The place of the code at a bit of a word. */
unsigned placed_at(const coding *c, const placed_moves *m, unsigned position);

/* ---- Properties of specifications that decodes ask for ---- */

bool scale_is_narrow(const kernel_spec *spec); /* 16 bits */
bool zero_is_integer(const kernel_spec *spec); /* however it is stored */
bool zero_times_scale_is_exact(const coding *c);

/* Targets. */
bool has_f32x2(const ptx_builder *b);     /* an fma on pairs of f32 at full rate */
bool has_mixed_fma(const ptx_builder *b); /* f16 * f16 + f32, rounded once */

/* 2^e, of a normal number. */
ptx_val emit_power_of_two(ptx_builder *b, int e);

#endif
