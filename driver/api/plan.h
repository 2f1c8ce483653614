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
    unsigned rows_per_block; /* of a product, along the grid's y; 0: the grid is as it is */
    int n_params;
    kernel_param params[KERNEL_PARAMS_MAX];
} plan_launch;

/* A product by cuBLAS on weights at the start of the workspace: column-major, as cuBLAS has it, so y^T = w x^T. */
typedef struct plan_gemm {
    const cublas_api *api;
    cublasOperation_t op_w;
    int m, k, ldw; /* of y^T: N, K; its columns are the rows of an execute */
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
    unsigned operands;                  /* bits of those that must be bound */
    uint8_t align[QDNN_OPERAND_COUNT];  /* of each pointer, in bytes: a power of two */
    uint64_t bytes[QDNN_OPERAND_COUNT]; /* of each operand */
    /* The steps run so often (0 and 1: once), each time so many bytes further in each operand. */
    uint64_t repeats, strides[QDNN_OPERAND_COUNT];
    size_t workspace_bytes;
    bool is_product;
    uint64_t rows; /* of a product: what it was made for; else 1 */
    uint32_t checked_experts; /* not 0: an execute looks at EXPERT_INDEX first, which must be below that */
    int references;           /* the user's, and those of schedules */
    char choice[320];         /* what info.choice says */
    int n_steps; /* none where there is nothing to do */
    plan_step steps[PLAN_STEPS_MAX];
    qdnnPlanInfo_t info;
};

/* A plan that the user does not know of; plan_free frees it. */
qdnnStatus_t plan_make(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan);
void plan_free(qdnnPlan_t plan);
/* Lets go of a plan of the user's: the last one frees it. */
void plan_release(qdnnPlan_t plan);
/* A plan of the user's. */
qdnnStatus_t plan_create(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan);

/* Its parts: an empty plan, an operand that must be bound (align 0: it is not the plan's), the launches of a request. The operand that is `in_workspace`
 * (PLAN_PLACES: none is) lies at the start of the workspace. */
qdnnStatus_t plan_new(qdnnHandle_t handle, const char *operation, qdnnPlan_t *plan);
void plan_needs(qdnnPlan_t plan, qdnnOperand_t operand, unsigned align, uint64_t bytes);
qdnnStatus_t plan_add(qdnnPlan_t plan, const request *r, int in_workspace);

/* Who binds the operands: errors speak of QDNN_OPERAND_X, or of the argument x. */
typedef enum { BY_BINDINGS, BY_ARGUMENTS } plan_caller;
const char *plan_place_name(plan_caller by, int place);

/* execute.c: checks the bindings and launches. */
qdnnStatus_t plan_execute(qdnnPlan_t plan, uint64_t rows, const qdnnBinding_t *bindings, int count, void *workspace,
                          size_t workspace_bytes, plan_caller by);
/* Its two halves: from bindings to places; and launches, once the workspace has its place too. */
qdnnStatus_t plan_bind(const struct qdnnPlan *plan, uint64_t rows, const qdnnBinding_t *bindings, int count,
                       plan_caller by, CUdeviceptr at[PLAN_PLACES]);
qdnnStatus_t plan_launch_all(qdnnPlan_t plan, uint64_t rows, const CUdeviceptr at[PLAN_PLACES], plan_caller by);
qdnnStatus_t plan_check_workspace(size_t needed, const void *workspace, size_t bytes);
/* Whether a plan may be executed with a handle, and with so many rows. */
qdnnStatus_t plan_check_bindings(const struct qdnnPlan *plan, qdnnHandle_t handle, const qdnnBinding_t *bindings,
                                 int count);
qdnnStatus_t plan_check_rows(const struct qdnnPlan *plan, int64_t rows);
/* plan.c: whether the handle's stream is being captured. */
qdnnStatus_t plan_is_captured(qdnnHandle_t handle, bool *captured);

/* buffers.c: QDNN_CHECK_BUFFERS; the handle's context is current. */
qdnnStatus_t plan_check_buffers(qdnnPlan_t plan, const CUdeviceptr at[PLAN_PLACES], plan_caller by);

/* matmul_cublas.c: a step that is a product of so many rows, on the handle's stream. */
qdnnStatus_t plan_run_gemm(qdnnPlan_t plan, const plan_gemm *gemm, const CUdeviceptr *at, uint64_t rows);

#endif
