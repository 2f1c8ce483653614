/* A product with quantized weights as data: its weights are a quant_case (of a dequantize row, with two
 * dimensions), the rest corresponds to the matmul descriptor. From it follow the operands on the host, the
 * results of host_ref, and the call. */
#ifndef QDNN_TEST_PRODUCT_CASE_H
#define QDNN_TEST_PRODUCT_CASE_H

#include "device/device_buffer.h"
#include "device/quant_case.h"

typedef struct product_case {
    quant_case weights;
    bool k_rows; /* the weights are [K, N] */
    int64_t m;
    int64_t rows; /* rows to execute, at most m; -1: all, by qdnnExecute */
    qdnnDataType_t x, y;
    int64_t x_gap, y_gap; /* elements between the end of a row and the next */
    qdnnAlpha_t alpha;
    int bias; /* qdnnDataType_t; 0: none */
    qdnnActivation_t activation;
    bool gated, residual, in_place; /* in place: y is the residual */
    data_kind kind;                 /* of x */
    uint32_t seed;
    qdnnMatmulAlgorithm_t algorithm; /* AUTO: on a handle that asks for QDNN_MATH_EXACT */
    int sm;                          /* for algorithm TENSOR: the SM that it runs on */
    /* substring of the choice that the plan's info must report; null: any */
    const char *choice;
    /* the weights are a stack of that many, each with its own seed; 0: they are not */
    int64_t experts;
    /* all rows select the last expert; otherwise any expert, including none */
    bool one_expert;
    /* rows of y for each row of x, 0 counts as 1: m is their number for y, and a multiple of it */
    int64_t slots;
    bool row_weight;
    int64_t lora_rank;
    qdnnDataType_t lora_type;
    /* offset in bytes of codes and x from an aligned address: a multiple of their element size */
    size_t shift;
    bool x_scale; /* x in FP8: one scale per row */
    /* x is quantized to this FP8 type in the plan; 0: it is not */
    qdnnDataType_t quantize_x;
    bool prepacked; /* the codes are in the order of tensor cores */
} product_case;

void product_case_text(const product_case *c, char *text, size_t size);

/* The operands on the host; y before the call, and as host_ref leaves it. */
typedef struct product_operands {
    quant_operands weights;
    size_t bytes[QDNN_OPERAND_COUNT];
    /* null: the product does not have it; those of the weights must not be freed */
    uint8_t *host[QDNN_OPERAND_COUNT];
    uint8_t *expected; /* y */
    float *addend;     /* for LoRA, by host_ref */
    uint8_t *x_codes;  /* of x that is quantized in the plan, by host_ref */
    float *x_scales;
    ref_product product;
} product_operands;
bool product_operands_make(const product_case *c, product_operands *out);
void product_operands_free(product_operands *o);
ref_product_arrays product_arrays(const product_operands *o, void *y);
/* Converts the codes to the order of tensor cores, after the expected results have been computed. */
void product_prepack(const product_case *c, product_operands *o);

/* Plans, executes and compares every byte of y and of all inputs. Returns false if the device did not
 * finish. */
bool product_run(qdnnHandle_t handle, const product_case *c, buffer_kind buffers);
/* The same with given operands. */
bool product_run_operands(qdnnHandle_t handle, const product_case *c, buffer_kind buffers,
                          const product_operands *o);

/* The same in two calls: the weights are dequantized to f32, then multiplied as plain weights. Not for
 * stacks. */
bool product_run_in_two(qdnnHandle_t handle, const product_case *c, buffer_kind buffers);

#endif
