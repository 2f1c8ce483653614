/* An integer product for tests: its description, its data, and the comparison with host_ref through the
 * public API. */
#ifndef QDNN_TEST_INTEGER_CASE_H
#define QDNN_TEST_INTEGER_CASE_H

#include <qdnn/qdnn.h>

#include "device/device_buffer.h"
#include "host_ref/host_ref.h"

/* SMALL: -1, 1 and 2 (u8: 1 to 3), with other numbers around 1, so that an error of one in a sum is never
 * rounded away or clamped. */
typedef enum { CODES_ANY, CODES_LEAST, CODES_MOST, CODES_ENDS, CODES_ZERO, CODES_SMALL } codes_fill;

/* Data in which a last bit that is lost on the way shows in y, however few bits that has.
 * CODE: every row and column is the same, and the multiplier is such that the last bit decides between two codes.
 * REST: bias and residual take away as much of the result as they can.
 * ERRORS: each group has its opposite, and the sum is nothing but the errors of rounding. */
typedef enum { EXPOSE_NOTHING, EXPOSE_CODE, EXPOSE_REST, EXPOSE_ERRORS } integer_exposes;

typedef struct integer_case {
    const char *name;
    int x, w, y; /* qdnnDataType_t */
    int64_t m, n, k;
    int64_t rows; /* rows to execute; 0: all of them */
    bool w_is_kn;
    int x_zero, w_zero, y_zero;
    float multiplier;
    bool multipliers;        /* one per column */
    qdnnRounding_t rounding; /* 0 is ties to even */
    int bias;                /* qdnnDataType_t; 0: none */
    qdnnActivation_t activation;
    qdnnAlpha_t alpha;
    bool residual;
    int64_t group_size; /* for w4a8 */
    qdnnScaleType_t scale_type;
    bool w_first;
    int quantizes; /* qdnnDataType_t of x before it is quantized; 0: x holds codes */
    codes_fill fill;
    /* scales, multipliers, bias, alpha and residual include zeros, infinities, NaN, the smallest and the
     * largest numbers */
    bool strange;
    integer_exposes exposes;
    uint32_t seed;
    /* offset in bytes of x and w from an aligned address, as far as their types allow */
    size_t shift;
    enum { SHIFT_BOTH, SHIFT_X, SHIFT_W } shifted;
} integer_case;

/* Alpha of cases with QDNN_ALPHA_NUMBER. */
#define INTEGER_ALPHA (-1.5f)

/* Random numbers that depend only on the seed. */
uint32_t integer_random(uint32_t *state);
/* Fills a matrix of codes; in rows of i4, the padding is cleared. */
void integer_fill(codes_fill fill, qdnnDataType_t type, uint32_t seed, int64_t rows, int64_t columns,
                  void *codes);

/* Numbers around `middle`, some negative, none of which rounds to 0 in f16; if strange, one in three is a zero, an infinity, a NaN, or a
 * very small or large number. */
void integer_fill_numbers(qdnnDataType_t type, bool strange, uint32_t seed, float middle, int64_t n,
                          void *array);
/* Multipliers of columns; those for small codes are multiples of 1/4, so that there are ties. */
void integer_fill_multipliers(codes_fill fill, bool strange, uint32_t seed, float middle, int64_t n,
                              float *multipliers);
/* A multiplier for sums of k products of small codes: the usual one, but sums of long rows would be clamped with it. */
float integer_small_multiplier(int64_t k, float usual);
/* An int32 bias; if strange, one in three is around a power of two. */
void integer_fill_bias(codes_fill fill, bool strange, uint32_t seed, int64_t n, int32_t *bias);

/* Creates the plan, executes it and compares every byte. Returns false if the device no longer responds. */
bool integer_case_run(qdnnHandle_t handle, const integer_case *c);

/* A packed tensor, and the end of several, any of which may be null. */
bool integer_tensor(qdnnTensorDescriptor_t *t, qdnnDataType_t type, int rank, const int64_t *dims);
void integer_tensors_destroy(qdnnTensorDescriptor_t *t, int count);

/* Buffers by operand: inputs are written, outputs are compared. */
typedef struct integer_buffers {
    size_t bytes[QDNN_OPERAND_COUNT];
    void *host[QDNN_OPERAND_COUNT]; /* contents of inputs; expected ones of outputs; null: no such operand */
    bool is_output[QDNN_OPERAND_COUNT];
    size_t shift[QDNN_OPERAND_COUNT];
    size_t written; /* bytes of Y that are written, if fewer rows are executed */
} integer_buffers;
void *integer_buffer(integer_buffers *buffers, qdnnOperand_t operand, size_t bytes, bool is_output);
void integer_buffers_free(integer_buffers *buffers);
/* Inputs of the case, and the results of host_ref. */
void integer_case_data(const integer_case *c, integer_buffers *buffers);
/* Executes that many rows (negative: all) and compares; destroys the plan. */
bool integer_execute(qdnnHandle_t handle, qdnnPlan_t plan, const integer_buffers *buffers, int64_t rows);

#endif
