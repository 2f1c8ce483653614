/* Pictures of formats. No knowledge of a format is written down here: each bit of its bytes is flipped, and
 * what host_ref then decodes differently shows which elements the bit belongs to, and in which way. */
#ifndef QDNN_PICTURES_H
#define QDNN_PICTURES_H

#include "host_ref/host_ref.h"

/* One picture: a small tensor in some format. */
typedef struct picture {
    const char *name; /* of the file, without suffix */
    char title[96];
    ref_quant_spec spec;
    int64_t rows, columns;
} picture;

/* What a bit belongs to. */
typedef enum {
    BIT_UNUSED,
    BIT_ELEMENT, /* of one element, `first` */
    BIT_SCALE,   /* multiplies the elements from `first` to `last` */
    BIT_MINIMUM, /* is added to them, whatever their codes are */
    BIT_SHARED   /* part of the codes of several elements (not listed) */
} bit_kind;

typedef struct bit_use {
    bit_kind kind;
    int first, last;
} bit_use;

/* probe.c: the bytes of the codes (or of one block), and what each bit is used for. The caller frees *bits. Returns
 * the number of bytes, or 0 if there is no memory. */
int64_t probe_bits(const picture *p, bit_use **bits);
/* The numbers that codes of up to four bits stand for, before scales and zeros. Returns how many there are. */
int probe_codes(const picture *p, float values[16]);

/* draw.c: writes the picture as SVG. Returns false if the file cannot be written. */
bool draw_picture(const picture *p, const bit_use *bits, int64_t bytes, const char *path);

#endif
