/* What a plan holds: launches that only wait for their pointers. */
#ifndef QDNN_DRIVER_PLAN_H
#define QDNN_DRIVER_PLAN_H

#include "driver/cuda/cublas.h"
#include "driver/api/handle.h"
#include "driver/cuda/modules.h"
#include "driver/api/request.h"

enum {
    PLAN_STEPS_MAX = KERNEL_STEPS_MAX + 1,
    PLAN_WORKSPACE = QDNN_OPERAND_COUNT, /* the workspace's place behind the operands */
    PLAN_PLACES = QDNN_OPERAND_COUNT + 1,
    PLAN_WORKSPACE_ALIGN = 16
};

/* A kernel, loaded; its parameters wait for pointers. */
typedef struct plan_launch {
    module *module;
    unsigned grid[3], block, shared;
    int n_params;
    kernel_param params[KERNEL_PARAMS_MAX];
} plan_launch;

/* A product by cuBLAS on weights at the start of the workspace: column-major, as cuBLAS has it, so y^T = w x^T. */
typedef struct plan_gemm {
    const cublas_api *api;
    cublasOperation_t op_w;
    int m, n, k, ldw; /* of y^T: N, M, K */
    cudaDataType type, y_type;
    size_t scratch_from, scratch_bytes; /* cuBLAS's own part of the workspace, aligned up at execute */
} plan_gemm;

typedef enum { PLAN_LAUNCH, PLAN_GEMM } plan_step_kind;
typedef struct plan_step {
    plan_step_kind kind;
    union {
        plan_launch launch;
        plan_gemm gemm;
    };
} plan_step;

struct qdnnPlan {
    qdnnHandle_t handle;
    unsigned operands;                 /* bits of those that must be bound */
    uint8_t align[QDNN_OPERAND_COUNT]; /* of each pointer, in bytes: a power of two */
    size_t workspace_bytes;
    int n_steps; /* none where there is nothing to do */
    plan_step steps[PLAN_STEPS_MAX];
    qdnnPlanInfo_t info;
};

/* A plan that the user does not know of; plan_free frees it. */
qdnnStatus_t plan_make(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan);
void plan_free(qdnnPlan_t plan);
/* A plan of the user's. */
qdnnStatus_t plan_create(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan);

/* Its parts: an empty plan, an operand that must be bound, the launches of a request. The operand that is `in_workspace`
 * (PLAN_PLACES: none is) lies at the start of the workspace. */
qdnnStatus_t plan_new(qdnnHandle_t handle, const char *operation, qdnnPlan_t *plan);
void plan_needs(qdnnPlan_t plan, qdnnOperand_t operand, unsigned align);
qdnnStatus_t plan_add(qdnnPlan_t plan, const request *r, int in_workspace);

/* execute.c: checks the bindings and launches. */
qdnnStatus_t plan_execute(qdnnPlan_t plan, const qdnnBinding_t *bindings, int count, void *workspace,
                          size_t workspace_bytes);

/* matmul.c: a step that is a product, on the handle's stream. */
qdnnStatus_t plan_run_gemm(qdnnPlan_t plan, const plan_gemm *gemm, const CUdeviceptr *at);

#endif
