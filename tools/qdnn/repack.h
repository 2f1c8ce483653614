/* The same values in another format: a weight is taken as values with one scale each, encoded in another
 * format, and compared with its source. All decoding is host_ref's; the only formats known here are the GGUF
 * blocks, which store their scales among their codes. */
#ifndef TOOLS_QDNN_REPACK_H
#define TOOLS_QDNN_REPACK_H

#include "tools/qdnn/tool.h"

/* One scale per element, in the order of the values of the weight's own format; 1 if it has none. The caller
 * frees it. */
float *repack_scales(const tensor *t);
/* The type of its scales, and the number of elements along K that share one. */
qdnnScaleType_t repack_scale_type(const tensor *t);
int64_t repack_group(const tensor *t);

/* Fills the operands of another format with codes for these values and scales; both are [.., N, K], like the
 * tensor. Returns false if the format is not supported here. */
bool repack_fill(tensor *to, const float *values, const float *scales);

/* Whether it has these values, where zeros of either sign are equal and NaN equals NaN; *at is the first that
 * differs. False with *at of -1: out of memory, reported. */
bool repack_holds(const tensor *to, const float *values, int64_t *at);

#endif
