/* Copies between strides and types, and rows of a table by a list of their numbers. docs/numerics.md ("Selection and copies")
 * defines them to the bit.
 *
 * Both sides of a copy have one of the types f32, f16, bf16, f64, f8e4m3 and f8e5m2, each its own; or both have the same type, any
 * whose elements are whole bytes (codes, indices ...), and the bytes stay as they are. */
#ifndef QDNN_COPY_H
#define QDNN_COPY_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plans a copy: y[i] = x[i] for every index i. Transposes, permutations, casts, slices and repetitions (strides of 0 in x) are all
 * descriptors of it. Operands: X is read, Y is written.
 *   handle
 *   x      any strides
 *   y      the dimensions of x; any strides with which its elements do not overlap
 *   plan   receives it; qdnnDestroyPlan frees it, before the handle. It may be executed with fewer rows, the first dimension,
 *          unless that has a stride of 1 on one side (a transpose of a matrix)
 * Neighbouring dimensions that lie alike in x and y count as one; then three may follow the first.
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_SHAPE_MISMATCH for different dimensions; _NOT_SUPPORTED for types or strides
 * that it does not take. */
QDNN_API qdnnStatus_t qdnnCreateCopyPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                         qdnnTensorDescriptor_t y, qdnnPlan_t *plan);

/* Plans y[i] = table[index[i]]. Rows are what follows the first dimension. Operands: X (the table) and ROW_INDEX are read, Y is
 * written. An index that is negative, or not below the rows of the table, gives a row of NaN, or of zeros in types without NaN.
 *   handle
 *   table       rows may be apart: the first stride is free, the others are packed
 *   indexType   I32 or I64: type of ROW_INDEX, which has one number for each row of y
 *   y           likewise
 *   plan        receives it. It may be executed with fewer rows
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_SHAPE_MISMATCH if rows of table and y differ. */
QDNN_API qdnnStatus_t qdnnCreateGatherPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t table,
                                           qdnnDataType_t indexType, qdnnTensorDescriptor_t y,
                                           qdnnPlan_t *plan);

/* Plans table[index[i]] = x[i]. Operands: X and ROW_INDEX are read, Y (the table) is written. Rows of the table that no index
 * names keep every byte; a row of x whose index names none is left out. No two indices may be the same.
 * Arguments and statuses as for qdnnCreateGatherPlan. */
QDNN_API qdnnStatus_t qdnnCreateScatterPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                            qdnnDataType_t indexType, qdnnTensorDescriptor_t table,
                                            qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
