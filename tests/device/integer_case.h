/* An integer product as a test has it: what it computes, its data, and the comparison with host_ref through the public
 * API. */
#ifndef QDNN_TEST_INTEGER_CASE_H
#define QDNN_TEST_INTEGER_CASE_H

#include <qdnn/qdnn.h>

#include "device/device_buffer.h"
#include "host_ref/host_ref.h"

/* SMALL: -1, 1 and 2 (u8: 1 to 3), and other numbers around 1, so that one more or less in a sum is never rounded away or clamped. */
typedef enum { CODES_ANY, CODES_LEAST, CODES_MOST, CODES_ENDS, CODES_ZERO, CODES_SMALL } codes_fill;

typedef struct integer_case {
    const char *name;
    int x, w, y; /* qdnnDataType_t */
    int64_t m, n, k;
    int64_t rows; /* that are executed; 0: all of them */
    bool w_is_kn;
    int x_zero, w_zero, y_zero;
    float multiplier;
    bool multipliers;        /* one for each column */
    qdnnRounding_t rounding; /* 0 is ties to even */
    int bias;                /* qdnnDataType_t; 0: none */
    qdnnActivation_t activation;
    qdnnAlpha_t alpha;
    bool residual;
    int64_t group_size; /* of w4a8 */
    qdnnScaleType_t scale_type;
    bool w_first;
    int quantizes; /* qdnnDataType_t of x before it is quantized; 0: x are codes */
    codes_fill fill;
    bool
        strange; /* among scales, multipliers, bias, alpha and residual are zeros, infinities, NaN, the least and the largest */
    uint32_t seed;
    size_t shift; /* bytes that x and w lie behind an aligned address, as far as their types allow */
    enum { SHIFT_BOTH, SHIFT_X, SHIFT_W } shifted;
} integer_case;

/* Numbers that depend on the seed alone. */
uint32_t integer_random(uint32_t *state);
/* So many bytes of codes; rows of i4 have their padding cleared. */
void integer_fill(codes_fill fill, qdnnDataType_t type, uint32_t seed, int64_t rows, int64_t columns,
                  void *codes);

/* Makes the plan, executes it and compares every byte. False where the device does not answer any more. */
bool integer_case_run(qdnnHandle_t handle, const integer_case *c);

/* Buffers by operand: inputs are written, outputs compared. */
typedef struct integer_buffers {
    size_t bytes[QDNN_OPERAND_COUNT];
    void *host[QDNN_OPERAND_COUNT]; /* inputs; of outputs what they must become; null: no such operand */
    bool is_output[QDNN_OPERAND_COUNT];
    size_t shift[QDNN_OPERAND_COUNT];
    size_t written; /* bytes of Y, where fewer rows are executed */
} integer_buffers;
void *integer_buffer(integer_buffers *buffers, qdnnOperand_t operand, size_t bytes, bool is_output);
void integer_buffers_free(integer_buffers *buffers);
/* Executes so many rows (negative: all) and compares; the plan is destroyed. */
bool integer_execute(qdnnHandle_t handle, qdnnPlan_t plan, const integer_buffers *buffers, int64_t rows);

#endif
