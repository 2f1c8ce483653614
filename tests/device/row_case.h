/* Operations on rows: operands of a plan with what they hold before and after, random values, quantized results. */
#ifndef QDNN_TEST_ROW_CASE_H
#define QDNN_TEST_ROW_CASE_H

#include <qdnn/qdnn.h>

#include "device/device_buffer.h"
#include "host_ref/host_ref.h"

/* An operand: bytes before the plan is executed, and after; in host memory that row_operands_free frees. Each row has so many
 * bytes, or 0: it is the same for any number of rows. */
typedef struct row_operand {
    qdnnOperand_t operand;
    uint8_t *before, *after;
    size_t bytes, shift; /* bytes from an aligned address */
    size_t in_row;       /* of a result: bytes of each row */
    bool is_whole;       /* of a result that has no rows: `after` is for the rows that are executed */
} row_operand;

enum { ROW_OPERANDS_MAX = 20 };
typedef struct row_operands {
    int count;
    row_operand at[ROW_OPERANDS_MAX];
} row_operands;

/* Adds an operand, whose bytes are 0; returns its bytes before. A result has other bytes after. */
uint8_t *row_operands_add(row_operands *all, qdnnOperand_t operand, size_t bytes);
/* A result whose rows have so many bytes; returns its bytes after. Before, it is filled with known bytes. */
uint8_t *row_operands_result(row_operands *all, qdnnOperand_t operand, size_t rows, size_t in_row);
/* A result without rows, such as a cache: `before` is filled with known bytes, and `after` is a copy of it. */
uint8_t *row_operands_cache(row_operands *all, qdnnOperand_t operand, size_t bytes);
void row_operands_free(row_operands *all);

/* Executes the plan for that many rows, or as a whole (-1), and compares every byte: later rows keep theirs. */
bool row_operands_check(qdnnHandle_t handle, qdnnPlan_t plan, const row_operands *all, int64_t rows);

/* Random values of a type: normal ones; every so often also subnormal, infinite and NaN. */
void row_fill(qdnnDataType_t type, void *array, int64_t count, uint64_t seed, bool has_special);

/* The formats that results are quantized to. */
typedef enum {
    BEHIND_NOTHING,
    BEHIND_INT8,
    BEHIND_FP8,
    BEHIND_NVFP4,
    BEHIND_MXFP8,
    BEHIND_FP8_128,
    BEHIND_INT4,
    BEHIND_COUNT
} row_behind;
/* The descriptor of one, for rows of that length; null for NOTHING. */
bool row_behind_make(row_behind behind, int64_t columns, qdnnQuantDescriptor_t *quant);
/* Adds the operands of a quantized result: y, of that type, is what is quantized. */
bool row_behind_result(row_operands *all, row_behind behind, qdnnDataType_t type, int64_t rows,
                       int64_t columns, const void *y);

#endif
