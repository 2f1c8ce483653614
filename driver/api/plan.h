/* What a plan holds: launches that only wait for their pointers. */
#ifndef QDNN_DRIVER_PLAN_H
#define QDNN_DRIVER_PLAN_H

#include "driver/cuda/cublas.h"
#include "driver/api/handle.h"
#include "driver/cuda/modules.h"
#include "driver/api/request.h"

enum {
    PLAN_LAUNCHES_MAX = 2,
    PLAN_WORKSPACE = QDNN_OPERAND_COUNT, /* the workspace's place behind the operands */
    PLAN_PLACES = QDNN_OPERAND_COUNT + 1,
    PLAN_PARAMS_MAX = 6,
    PLAN_WORKSPACE_ALIGN = 16
};

typedef struct plan_launch {
    module *module;
    unsigned blocks, threads, shared;
    uint8_t places[PLAN_PARAMS_MAX - 1]; /* which pointer each parameter is; n comes behind them */
    uint8_t n_places;
    uint64_t n;
} plan_launch;

/* A product by cuBLAS, behind the launches: column-major, as cuBLAS has it, so y^T = w x^T. */
typedef struct plan_gemm {
    const cublas_api *api; /* null: none */
    cublasOperation_t op_w;
    int m, n, k, ldw; /* of y^T: N, M, K */
    cudaDataType type, y_type;
    size_t scratch_from, scratch_bytes; /* cuBLAS's own part of the workspace, aligned up at execute */
} plan_gemm;

struct qdnnPlan {
    qdnnHandle_t handle;
    unsigned operands;                 /* bits of those that must be bound */
    uint8_t align[QDNN_OPERAND_COUNT]; /* of each pointer, in bytes: a power of two */
    size_t workspace_bytes;
    int n_launches; /* none where there is nothing to do */
    plan_launch launches[PLAN_LAUNCHES_MAX];
    plan_gemm gemm;
    qdnnPlanInfo_t info;
};

/* A plan that the user does not know of; plan_free frees it. */
qdnnStatus_t plan_make(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan);
void plan_free(qdnnPlan_t plan);

/* Its parts: an empty plan, an operand that must be bound, the launches of a request. What the request would
 * find in the operand `in_workspace` lies at the start of the workspace (PLAN_PLACES: nothing does). */
qdnnStatus_t plan_new(qdnnHandle_t handle, const char *operation, qdnnPlan_t *plan);
void plan_needs(qdnnPlan_t plan, qdnnOperand_t operand, unsigned align);
qdnnStatus_t plan_add(qdnnPlan_t plan, const request *r, int in_workspace);

/* execute.c: checks the bindings and launches. */
qdnnStatus_t plan_execute(qdnnPlan_t plan, const qdnnBinding_t *bindings, int count, void *workspace,
                          size_t workspace_bytes);

/* matmul.c: the product of a plan that has one, on the handle's stream. */
qdnnStatus_t plan_run_gemm(qdnnPlan_t plan, const CUdeviceptr *at);

#endif
