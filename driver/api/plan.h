/* The contents of a plan: launches that are complete except for their pointers. */
#ifndef QDNN_DRIVER_PLAN_H
#define QDNN_DRIVER_PLAN_H

#include "driver/cuda/cublas.h"
#include "driver/api/handle.h"
#include "driver/api/launch.h"
#include "driver/api/modules.h"
#include "driver/api/request.h"

enum {
    PLAN_STEPS_MAX = KERNEL_STEPS_MAX + 1,
    PLAN_WORKSPACE = QDNN_OPERAND_COUNT, /* the index of the workspace, after the operands */
    PLAN_PLACES = QDNN_OPERAND_COUNT + 1,
    PLAN_WORKSPACE_ALIGN = 16
};

/* A loaded kernel and its parameters, without pointers. */
typedef struct plan_launch {
    module *module;
    unsigned grid[3], block, shared;
    kernel_row_blocks rows;
    int n_params;
    kernel_param params[KERNEL_PARAMS_MAX];
} plan_launch;

/* A product by cuBLAS with the weights at the start of the workspace. cuBLAS is column-major, so it computes
 * y^T = w x^T. */
typedef struct plan_gemm {
    const cublas_api *api;
    cublasOperation_t op_w;
    int m, k, ldw; /* of y^T: N, K; its columns are the executed rows */
    cudaDataType type, y_type;
    size_t scratch_from, scratch_bytes; /* cuBLAS's own part of the workspace, aligned at execute */
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
    operand_set operands;               /* that must be bound */
    operand_set reads, writes;          /* those that are read, and written; one may be both */
    uint8_t align[QDNN_OPERAND_COUNT];  /* required alignment of each pointer in bytes, a power of two */
    uint64_t bytes[QDNN_OPERAND_COUNT]; /* of each operand */
    uint8_t types[QDNN_OPERAND_COUNT];  /* qdnnDataType_t of each, as far as it has one; else 0 */
    /* How often the steps are repeated (0 and 1: once), and by how many bytes each operand advances each
     * time. */
    uint64_t repeats, strides[QDNN_OPERAND_COUNT];
    size_t workspace_bytes;
    bool takes_rows;          /* it may be executed with fewer rows */
    uint64_t rows;            /* the number that it was created for, if so; else 1 */
    uint32_t checked_experts; /* not 0: an execute first checks that EXPERT_INDEX is below it */
    int references;           /* one of the user's, plus those of schedules */
    char choice[320];         /* for info.choice */
    bool has_request;         /* it is one request, and nothing else */
    request request;          /* if so, from which programs derive those of fused plans */
    int n_steps;              /* 0 if there is nothing to do */
    plan_step steps[PLAN_STEPS_MAX];
    qdnnPlanInfo_t info;
};

/* A plan that is not visible to the user; plan_free frees it. */
qdnnStatus_t plan_make(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan);
void plan_free(qdnnPlan_t plan);
/* Drops one reference to a user's plan, and frees it with the last. */
void plan_release(qdnnPlan_t plan);
/* A plan for the user. */
qdnnStatus_t plan_create(qdnnHandle_t handle, const request *r, qdnnPlan_t *plan);

/* Its parts: an empty plan; an operand that must be bound (align 0: the plan does not use it); the launches
 * of a request. The operand `in_workspace` (PLAN_PLACES: none) is at the start of the workspace. */
qdnnStatus_t plan_new(qdnnHandle_t handle, const char *operation, qdnnPlan_t *plan);
void plan_needs(qdnnPlan_t plan, qdnnOperand_t operand, kernel_operand needs);
/* The type of an operand's elements, which programs check. */
void plan_typed(qdnnPlan_t plan, qdnnOperand_t operand, qdnnDataType_t type);
qdnnStatus_t plan_add(qdnnPlan_t plan, const request *r, int in_workspace);

/* Who binds the operands: errors name QDNN_OPERAND_X, or the argument x. */
typedef enum { BY_BINDINGS, BY_ARGUMENTS } plan_caller;
const char *plan_place_name(plan_caller by, int place);

/* Repeats the last error, with the step of a schedule or program that it is about; `name` may be null. */
qdnnStatus_t plan_in_step(qdnnStatus_t status, int number, const char *name, const char *operation);

/* execute.c: checks the bindings and launches. */
qdnnStatus_t plan_execute(qdnnPlan_t plan, uint64_t rows, const qdnnBinding_t *bindings, int count,
                          void *workspace, size_t workspace_bytes, plan_caller by);
/* The two halves of an execute: from bindings to addresses; and the launches, once the address of the
 * workspace is known too. */
qdnnStatus_t plan_bind(const struct qdnnPlan *plan, uint64_t rows, const qdnnBinding_t *bindings, int count,
                       plan_caller by, CUdeviceptr at[PLAN_PLACES]);
qdnnStatus_t plan_launch_all(qdnnPlan_t plan, uint64_t rows, const CUdeviceptr at[PLAN_PLACES],
                             launch_chain *chain, plan_caller by);
qdnnStatus_t plan_check_workspace(size_t needed, const void *workspace, size_t bytes);
/* Whether a plan may be executed with this handle, and with that many rows. */
qdnnStatus_t plan_check_bindings(const struct qdnnPlan *plan, qdnnHandle_t handle,
                                 const qdnnBinding_t *bindings, int count);
qdnnStatus_t plan_check_rows(const struct qdnnPlan *plan, int64_t rows);
/* plan.c: whether the handle's stream is being captured. */
qdnnStatus_t plan_is_captured(qdnnHandle_t handle, bool *captured);

/* buffers.c: whether two operands, one of them written, may be the same buffer. */
bool plan_may_coincide(int place, int other);
/* QDNN_CHECK_BUFFERS; the handle's context is current. */
qdnnStatus_t plan_check_buffers(qdnnPlan_t plan, const CUdeviceptr at[PLAN_PLACES], plan_caller by);

/* matmul_cublas.c: runs a step that is a product of so many rows on the handle's stream. */
qdnnStatus_t plan_run_gemm(qdnnPlan_t plan, const plan_gemm *gemm, const CUdeviceptr *at, uint64_t rows);

#endif
