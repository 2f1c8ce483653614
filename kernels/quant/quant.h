/* Scale, quantize and dequantize: their emitters and how they are launched. */
#ifndef QDNN_KERNELS_QUANT_H
#define QDNN_KERNELS_QUANT_H

#include "kernels/describe.h"

/* describe.c */
kernel_describes describe_scale, describe_quantize, describe_dequantize, describe_dynamic,
    describe_quantize_rows, describe_repack, describe_prepack, describe_global, describe_nest, describe_range;

/* scale.c: scales and zeros of groups; scale_steps.c: in one pass or two */
kernel_geometry scale_geometry(const kernel_row *row, const kernel_spec *spec);
uint64_t scale_lanes(const kernel_spec *spec); /* number of threads that share a group */
void emit_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void scale_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                 kernel_steps *steps);

/* The part of scale_steps that computes the scales themselves: a global scale already exists, and nesting
 * comes later. */
void scale_level_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                       kernel_steps *steps);
/* Packs the zeros that the preceding scale kernel stored as f32. */
void zero_packing_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_steps *steps);

/* dynamic.c: scales and codes in one kernel that reads the elements once */
bool dynamic_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
void fix_dynamic(kernel_spec *spec);
kernel_geometry dynamic_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_dynamic(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void dynamic_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps);

/* repack.c: converts codes from one layout to another */
kernel_geometry repack_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_repack(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* second_level.c: the level above scales: the global scale, and the scales of nested scales */
kernel_geometry global_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_global(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_geometry nest_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_nest(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* range.c: the first pass of a two-pass computation of scales */
kernel_geometry range_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_range(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* tile.c, quantize.c, dequantize.c: elements to codes and back */
kernel_geometry tile_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* convert.c: quantize and dequantize for plain formats, that is, conversion between types */
void emit_convert(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* block_tile.c, block_quantize.c, block_search.c (K-quants), block_dequantize.c: the same for block
 * formats */
kernel_geometry block_geometry(const kernel_row *row);
void emit_block_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_block_search(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_block_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* One launch over all elements. */
void tile_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps);

/* Quantizes the rows of x to 8-bit codes with one f32 scale per row, both appended to the workspace. `row` is
 * the dynamic row of an 8-bit format. */
typedef struct row_codes {
    uint64_t codes, scales; /* offsets in the workspace */
} row_codes;
row_codes quantize_rows_steps(const kernel_row *row, qdnnDataType_t data, uint64_t rows, uint64_t columns,
                              kernel_steps *steps);

#endif
