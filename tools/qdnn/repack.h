/* The same values in another format: a weight as values and the scale of each, from which another format is made and compared
 * with what it was made from. Everything is host_ref's: no format is known here but the blocks of GGUF, which hold their
 * scales between their codes. */
#ifndef TOOLS_QDNN_REPACK_H
#define TOOLS_QDNN_REPACK_H

#include "tools/qdnn/tool.h"

/* A scale for each element, in the order of the values of the weight's own format; 1 where it has none. The caller frees it. */
float *repack_scales(const tensor *t);
/* The type of its scales, and the elements along K that share one. */
qdnnScaleType_t repack_scale_type(const tensor *t);
int64_t repack_group(const tensor *t);

/* Fills the operands of another format with codes for these values with these scales: both are [.., N, K], as the tensor
 * is. False: the format is none that is made here. */
bool repack_fill(tensor *to, const float *values, const float *scales);

/* Whether it has these values, where zeros of either sign are the same and NaN is NaN; *at is the first that differs. False with
 * *at of -1: out of memory, reported. */
bool repack_holds(const tensor *to, const float *values, int64_t *at);

#endif
