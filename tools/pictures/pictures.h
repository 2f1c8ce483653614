/* Pictures of formats. No knowledge of a format is written down here: each bit of its bytes is flipped, and
 * what host_ref then decodes differently shows which elements the bit belongs to. */
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
enum { BIT_SHARED = -1 /* several elements: a scale, or a digit shared by several */, BIT_UNUSED = -2 };

/* probe.c: the bytes of the codes (or of one block), and for each bit its element, BIT_SHARED or BIT_UNUSED.
 * The caller frees *bits. Returns the number of bytes, or 0 if there is no memory. */
int64_t probe_bits(const picture *p, int **bits);

/* draw.c: writes the picture as SVG. Returns false if the file cannot be written. */
bool draw_picture(const picture *p, const int *bits, int64_t bytes, const char *path);

#endif
