/* A product with quantized weights as data: its weights are a quant_case (of a dequantize row, two dimensions), the rest is
 * what the matmul descriptor says. From it come the operands on the host, what host_ref makes of them, and the call. */
#ifndef QDNN_TEST_PRODUCT_CASE_H
#define QDNN_TEST_PRODUCT_CASE_H

#include "device/device_buffer.h"
#include "device/quant_case.h"

typedef struct product_case {
    quant_case weights;
    bool k_rows; /* they are [K, N] */
    int64_t m;
    int64_t rows; /* executed, m at most; -1: all, by qdnnExecute */
    qdnnDataType_t x, y;
    int64_t x_gap, y_gap; /* elements between rows */
    qdnnAlpha_t alpha;
    int bias; /* qdnnDataType_t; 0: none */
    qdnnActivation_t activation;
    bool gated, residual, in_place; /* in place: y is the residual */
    data_kind kind;                 /* of x */
    uint32_t seed;
    qdnnMatmulAlgorithm_t algorithm;
    int sm; /* of algorithm TENSOR: what it runs on */
    const char *choice; /* a part of the choice that the plan's info must report; null: anything */
    int64_t experts; /* the weights are a stack of so many, each with a seed of its own; 0: they are not */
    bool one_expert; /* all rows name the last one; else any, and none among them */
    bool row_weight;
    int64_t lora_rank;
    qdnnDataType_t lora_type;
    size_t shift; /* bytes by which codes and x lie behind an aligned address: a multiple of their elements */
    bool x_scale; /* x in FP8: a scale for each row */
    qdnnDataType_t quantize_x; /* x is quantized to that type of FP8 in the plan; 0: it is not */
    bool prepacked; /* the codes are in the order of tensor cores */
} product_case;

void product_case_text(const product_case *c, char *text, size_t size);

/* The operands on the host; y as it is before the call, and as host_ref leaves it. */
typedef struct product_operands {
    quant_operands weights;
    size_t bytes[QDNN_OPERAND_COUNT];
    uint8_t *host[QDNN_OPERAND_COUNT]; /* null: the product does not have it; of weights: not to be freed */
    uint8_t *expected;                 /* y */
    float *addend;                     /* of LoRA, by host_ref */
    uint8_t *x_codes;                  /* of x that is quantized in the plan, by host_ref */
    float *x_scales;
    ref_product product;
} product_operands;
bool product_operands_make(const product_case *c, product_operands *out);
void product_operands_free(product_operands *o);
ref_product_arrays product_arrays(const product_operands *o, void *y);
/* Puts the codes into the order of tensor cores, once what is expected of them is known. */
void product_prepack(const product_case *c, product_operands *o);

/* Plans, executes and compares every byte of y and of all inputs. False where the device did not come to the end. */
bool product_run(qdnnHandle_t handle, const product_case *c, buffer_kind buffers);
/* The same with operands that are made. */
bool product_run_operands(qdnnHandle_t handle, const product_case *c, buffer_kind buffers, const product_operands *o);

/* The same in two calls: the weights are dequantized to f32, and multiplied as plain ones. Not for stacks. */
bool product_run_in_two(qdnnHandle_t handle, const product_case *c, buffer_kind buffers);

#endif
