/* Modelled times of products with a file's weights on a board that is not here (docs/clock.md). */
#ifndef TOOLS_QDNN_MODELLED_H
#define TOOLS_QDNN_MODELLED_H

#include "clock/product/product.h"
#include "tools/qdnn/tool.h"

typedef struct modelled {
    double us[CLOCK_CORNERS], plain_us[CLOCK_CORNERS]; /* with the weight; with the same matrix in f16 */
    double roofline_us;
    int launches;
    char refused[512]; /* why there are no times; else empty */
} modelled;

/* Reports tools that are missing. Both return an exit code. */
int modelled_begin(void);
/* The product in mode exact of m rows, x and y in f16. */
int modelled_of(const qdnnFileWeight_t *weight, int64_t m, const board *on, modelled *out);

#endif
