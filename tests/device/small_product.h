/* A product with known numbers, through the public API: descriptors that a test may change before the plan is made, buffers
 * by operand, and what comes back. */
#ifndef QDNN_TEST_SMALL_PRODUCT_H
#define QDNN_TEST_SMALL_PRODUCT_H

#include "device/device_buffer.h"

typedef struct small_product {
    qdnnHandle_t handle;
    int64_t m, n, k, experts; /* experts 0: the product is not grouped */
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, w, y; /* f32, packed */
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan;
    device_buffer at[QDNN_OPERAND_COUNT], workspace;
} small_product;

typedef struct small_weights {
    qdnnWeights_t weights;
    int64_t extent; /* as qdnnSetQuantWeights takes it */
    bool k_rows;    /* they are [K, N] */
} small_weights;

/* Descriptors for y [m, n] = x [m, k] W; with experts, of as many. False, with a failure reported, where they cannot be
 * made; end it in any case. */
bool small_product_begin(small_product *p, qdnnHandle_t handle, const int64_t mnk[3], int64_t experts,
                         small_weights w);
bool small_product_set(small_product *p, qdnnMatmulAttribute_t attribute, int64_t value);
void small_product_end(small_product *p);

/* Makes the plan, the buffer of y and the workspace. */
bool small_product_plan(small_product *p);
/* A new buffer for an operand, with these bytes; the one before it is freed. */
bool small_product_put(small_product *p, qdnnOperand_t operand, const void *host, size_t bytes);

/* The bindings of all buffers; how many. */
int small_product_bind(const small_product *p, qdnnBinding_t bindings[QDNN_OPERAND_COUNT]);
/* Executes so many rows (-1: by qdnnExecute) and waits; the status is checked by the caller. */
qdnnStatus_t small_product_execute(small_product *p, int64_t rows);
/* Executes all rows and copies y, m * n numbers. */
bool small_product_run(small_product *p, float *y);
bool small_product_result(const small_product *p, float *y);

#endif
