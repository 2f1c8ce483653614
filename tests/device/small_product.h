/* A product of known numbers through the public API: descriptors that a test may change before the plan is
 * created, buffers by operand, and the result. */
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
    int64_t extent; /* as for qdnnSetQuantWeights */
    bool k_rows;    /* the weights are [K, N] */
} small_weights;

/* Creates descriptors for y [m, n] = x [m, k] W, with that many experts. Returns false, with a failure
 * reported, if that fails; small_product_end must be called in any case. */
bool small_product_begin(small_product *p, qdnnHandle_t handle, const int64_t mnk[3], int64_t experts,
                         small_weights w);
bool small_product_set(small_product *p, qdnnMatmulAttribute_t attribute, int64_t value);
void small_product_end(small_product *p);

/* Creates the plan, the buffer of y and the workspace. */
bool small_product_plan(small_product *p);
/* Creates a buffer for an operand with these bytes; a previous one is freed. */
bool small_product_put(small_product *p, qdnnOperand_t operand, const void *host, size_t bytes);

/* The bindings of all buffers; returns their number. */
int small_product_bind(const small_product *p, qdnnBinding_t bindings[QDNN_OPERAND_COUNT]);
/* Executes that many rows (-1: by qdnnExecute) and waits; the caller checks the status. */
qdnnStatus_t small_product_execute(small_product *p, int64_t rows);
/* Executes all rows and copies y (m * n numbers). */
bool small_product_run(small_product *p, float *y);
bool small_product_result(const small_product *p, float *y);

#endif
