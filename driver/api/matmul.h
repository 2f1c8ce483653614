/* Products: what a call asks for, and the ways to compute it, one file each. */
#ifndef QDNN_DRIVER_MATMUL_H
#define QDNN_DRIVER_MATMUL_H

#include "driver/api/plan.h"

/* The arguments of a call, checked individually and against each other. */
typedef struct matmul_call {
    const struct qdnnMatmulDescriptor *matmul;
    const struct qdnnTensorDescriptor *x, *w, *y; /* w: as passed by the caller */
    struct qdnnTensorDescriptor matrix; /* the weights of one expert, or all of them: two dimensions */
    const struct qdnnQuantDescriptor *quant;
    kernel_spec spec; /* the product and what follows it; the weights' part is made by their request */
    kernel_problem problem;
    kernel_shape shape; /* of the two */
} matmul_call;

/* A way to compute a product. It first checks for what it does not support and makes its requests, which
 * needs no device; then it fills a plan. */
typedef struct matmul_way {
    const char *choice; /* for the plan's info: what is promised; filling a plan may add to it */
    qdnnStatus_t (*prepare)(const matmul_call *call, request *out);
    qdnnStatus_t (*fill)(qdnnPlan_t plan, const matmul_call *call, const request *r);
} matmul_way;
extern const matmul_way matmul_cublas, matmul_exact, matmul_tensor;

/* matmul_tensor.c: whether the handle's SM has the instruction for the type of x. */
bool matmul_tensor_has(qdnnHandle_t handle, const matmul_call *call);

/* For x in f16 or bf16: on which SMs the bits of mode tensor are those of this one (null: it has no such mode), and whether
 * its tensor cores take the type. */
const char *tensor_bits_on(int sm);
bool tensor_has_type(int sm, qdnnDataType_t x);

/* Whether flat groups allow the codes to be prepacked. */
qdnnStatus_t matmul_check_flat(const kernel_row *row, const kernel_spec *spec, uint64_t k);

/* matmul_exact.c: shared by the ways that use our own kernels. `choose` selects the kernel. */
typedef void matmul_choice(const matmul_call *call, const kernel_row *row, const kernel_problem *problem,
                           kernel_spec *spec);
qdnnStatus_t matmul_prepare(const matmul_call *call, matmul_choice *choose, request *out);
qdnnStatus_t matmul_fill(qdnnPlan_t plan, const matmul_call *call, const request *r);

/* matmul.c: the FP8 type that x has or is quantized to; 0: neither. */
qdnnDataType_t matmul_x_fp8(const matmul_call *call);
bool matmul_type_is_fp8(qdnnDataType_t type);
/* What a call asks for in mode exact, without a device: call->problem.multiprocessors says for which the kernel is chosen. */
qdnnStatus_t matmul_exact_request(matmul_call *call, request *out);
/* Checks the shapes and creates the plan, once all arguments are known to be present. */
qdnnStatus_t matmul_create_plan(qdnnHandle_t handle, matmul_call *call, qdnnPlan_t *plan);

#endif
