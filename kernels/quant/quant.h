/* Scale, quantize and dequantize: their emitters and how they are launched. */
#ifndef QDNN_KERNELS_QUANT_H
#define QDNN_KERNELS_QUANT_H

#include "kernels/kernels.h"

/* scale.c: scales and zeros of groups; scale_steps.c: in one pass or two */
kernel_geometry scale_geometry(const kernel_row *row, const kernel_spec *spec);
uint64_t scale_lanes(const kernel_spec *spec); /* how many threads share the work on a group */
void emit_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void scale_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                 kernel_steps *steps);

/* range.c: the first of two passes to scales */
kernel_geometry range_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_range(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* tile.c, quantize.c, dequantize.c: elements to codes and back */
kernel_geometry tile_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* One launch over all elements. */
void tile_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps);

#endif
