/* Products by cuBLAS, with weights dequantized into the workspace. */
#include <limits.h>
#include <stdlib.h>

#include "driver/api/matmul.h"
#include "driver/base/data_type.h"

static cudaDataType cublas_type(qdnnDataType_t type)
{
    return type == QDNN_DATA_F16 ? CUDA_R_16F : type == QDNN_DATA_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* cuBLAS launches its own kernels, which need a GPU. If the user names a library in QDNN_CUBLAS, we trust
 * that it works with the handle's device. */
static qdnnStatus_t check_device(qdnnHandle_t handle)
{
    const char *named = getenv("QDNN_CUBLAS");
    if (!handle->context->device.is_vm || (named && *named))
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "QDNN_MATMUL_CUBLAS needs a GPU, and the handle is on ptxvm");
}

static qdnnStatus_t open_cublas(qdnnHandle_t handle, const cublas_api **api)
{
    CHECK_STATUS(check_device(handle));
    CHECK_STATUS(cublas_open(api));
    if (handle->cublas)
        return QDNN_STATUS_SUCCESS;
    cublasStatus_t code = (*api)->cublasCreate(&handle->cublas);
    if (!code)
        return QDNN_STATUS_SUCCESS;
    handle->cublas = NULL;
    return cublas_failed(code, "cublasCreate");
}

void handle_close_cublas(qdnnHandle_t handle)
{
    const cublas_api *api;
    bool pushed;
    if (!handle->cublas || cublas_open(&api) != QDNN_STATUS_SUCCESS ||
        context_enter(handle->context, &pushed))
        return;
    api->cublasDestroy(handle->cublas);
    context_leave(handle->context, pushed);
}

enum { SCRATCH_ALIGN = 256 }; /* required by cublasSetWorkspace; the caller's may be less aligned */

static void *scratch_of(const plan_gemm *g, CUdeviceptr workspace)
{
    return (void *)(uintptr_t)((workspace + g->scratch_from + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN *
                               SCRATCH_ALIGN);
}

qdnnStatus_t plan_run_gemm(qdnnPlan_t plan, const plan_gemm *g, const CUdeviceptr *at, uint64_t rows)
{
    static const float one = 1, none = 0;
    cublasHandle_t cublas = plan->handle->cublas;
    const void *weights = (const void *)(uintptr_t)at[PLAN_WORKSPACE];
    const void *x = (const void *)(uintptr_t)at[QDNN_OPERAND_X];
    void *y = (void *)(uintptr_t)at[QDNN_OPERAND_Y];
    cublasStatus_t code = g->api->cublasSetStream(cublas, plan->handle->stream);
    if (code)
        return cublas_failed(code, "cublasSetStream");
    /* after setting the stream, which resets it; our own workspace, so that nothing is allocated during
     * capture */
    code = g->api->cublasSetWorkspace(cublas, scratch_of(g, at[PLAN_WORKSPACE]), g->scratch_bytes);
    if (code)
        return cublas_failed(code, "cublasSetWorkspace");
    code = g->api->cublasGemmEx(cublas, g->op_w, CUBLAS_OP_N, g->m, (int)rows, g->k, &one, weights, g->type,
                                g->ldw, x, g->type, g->k, &none, y, g->y_type, g->m, CUBLAS_COMPUTE_32F,
                                CUBLAS_GEMM_DEFAULT);
    return code ? cublas_failed(code, "cublasGemmEx") : QDNN_STATUS_SUCCESS;
}

/* ---- The plan ---- */

/* What NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before. */
static size_t scratch_bytes(const context *c)
{
    return (size_t)(c->device.major >= 9 ? 32 : 4) << 20;
}

static void set_gemm(qdnnPlan_t plan, const cublas_api *api, const kernel_shape *s, bool transposed,
                     qdnnDataType_t type, qdnnDataType_t y_type, size_t weights_bytes)
{
    plan_gemm gemm = {.api = api,
                      .op_w = transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      .m = (int)s->n,
                      .k = (int)s->k,
                      .ldw = (int)(transposed ? s->k : s->n),
                      .type = cublas_type(type),
                      .y_type = cublas_type(y_type),
                      .scratch_from = weights_bytes,
                      .scratch_bytes = scratch_bytes(plan->handle->context)};
    plan->steps[plan->n_steps++] = (plan_step){.kind = PLAN_GEMM, .gemm = gemm};
    plan->workspace_bytes = weights_bytes + SCRATCH_ALIGN - 1 + gemm.scratch_bytes;
}

/* Unsupported types are rejected before anything is loaded. */
static qdnnStatus_t check_cublas_type(qdnnDataType_t type)
{
    if (type != QDNN_DATA_F64)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "x and w are f64; a product takes f32, f16 or bf16");
}

static void need_matrix(qdnnPlan_t plan, qdnnOperand_t operand, qdnnDataType_t type, uint64_t rows,
                        uint64_t columns)
{
    unsigned bytes = (unsigned)data_type_bits(type) / 8;
    plan_needs(plan, operand,
               (kernel_operand){.reads = operand == QDNN_OPERAND_X,
                                .writes = operand == QDNN_OPERAND_Y,
                                .align = bytes,
                                .bytes = rows * columns * bytes});
}

/* ---- What is not supported ---- */

static qdnnStatus_t check_size(const char *name, uint64_t size)
{
    if (size <= INT_MAX)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %llu; it must be below 2^31", name,
                      (unsigned long long)size);
}

static qdnnStatus_t check_shape(const matmul_call *c)
{
    const kernel_shape *s = &c->shape;
    if (s->k == 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "K is 0; it must be at least 1");
    CHECK_STATUS(check_size("M", c->problem.m));
    CHECK_STATUS(check_size("N", s->n));
    return check_size("K", s->k);
}

static qdnnStatus_t check_types(const matmul_call *c)
{
    if (c->w->type != c->x->type)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "x is %s and w %s; w must have the type of x",
                          qdnnGetDataTypeName(c->x->type), qdnnGetDataTypeName(c->w->type));
    if (c->y->type != c->x->type && c->y->type != QDNN_DATA_F32)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "x is %s and y %s; y must have the type of x, or f32",
                          qdnnGetDataTypeName(c->x->type), qdnnGetDataTypeName(c->y->type));
    if (!tensor_is_packed(c->x) || !tensor_is_packed(c->y))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "x or y has gaps or another order of dimensions; both must be packed");
    return QDNN_STATUS_SUCCESS;
}

/* cuBLAS computes only the bare product. */
static qdnnStatus_t check_only_product(const struct qdnnMatmulDescriptor *matmul)
{
    static const struct {
        qdnnMatmulAttribute_t attribute;
        const char *name;
    } extras[] = {{QDNN_MATMUL_ALPHA, "QDNN_MATMUL_ALPHA"},
                  {QDNN_MATMUL_BIAS_TYPE, "QDNN_MATMUL_BIAS_TYPE"},
                  {QDNN_MATMUL_ACTIVATION, "QDNN_MATMUL_ACTIVATION"},
                  {QDNN_MATMUL_GATED, "QDNN_MATMUL_GATED"},
                  {QDNN_MATMUL_RESIDUAL, "QDNN_MATMUL_RESIDUAL"},
                  {QDNN_MATMUL_EXPERTS, "QDNN_MATMUL_EXPERTS"},
                  {QDNN_MATMUL_ROW_WEIGHT, "QDNN_MATMUL_ROW_WEIGHT"},
                  {QDNN_MATMUL_CHECK_INDICES, "QDNN_MATMUL_CHECK_INDICES"},
                  {QDNN_MATMUL_LORA_RANK, "QDNN_MATMUL_LORA_RANK"}};
    for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++)
        if (matmul->values[extras[i].attribute])
            return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                              "%s is %lld; QDNN_MATMUL_CUBLAS computes x W alone: leave it at 0, or use "
                              "QDNN_MATMUL_EXACT",
                              extras[i].name, (long long)matmul->values[extras[i].attribute]);
    if (matmul->values[QDNN_MATMUL_SLOTS] > 1)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "QDNN_MATMUL_SLOTS is %lld; QDNN_MATMUL_CUBLAS computes x W alone: leave it at 1, or use "
            "QDNN_MATMUL_EXACT",
            (long long)matmul->values[QDNN_MATMUL_SLOTS]);
    return QDNN_STATUS_SUCCESS;
}

/* The request is for dequantizing the weights. */
static qdnnStatus_t prepare(const matmul_call *c, request *out)
{
    CHECK_STATUS(request_make(KERNEL_DEQUANTIZE, &c->matrix, c->quant, out));
    CHECK_STATUS(check_only_product(c->matmul));
    CHECK_STATUS(check_shape(c));
    CHECK_STATUS(check_types(c));
    return check_cublas_type(out->spec.data);
}

/* The weights are dequantized into the workspace, from which the product reads them. */
static qdnnStatus_t fill(qdnnPlan_t plan, const matmul_call *c, const request *weights)
{
    const kernel_shape *s = &c->shape;
    const uint64_t m = c->problem.m;
    const cublas_api *api;
    CHECK_STATUS(open_cublas(plan->handle, &api));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        plan_needs(plan, (qdnnOperand_t)i, weights->operands[i]);
    need_matrix(plan, QDNN_OPERAND_X, c->x->type, m, s->k);
    need_matrix(plan, QDNN_OPERAND_Y, c->y->type, m, s->n);
    if (m == 0 || s->n == 0)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(plan_add(plan, weights, QDNN_OPERAND_Y));
    set_gemm(plan, api, s, c->matmul->values[QDNN_MATMUL_TRANSPOSE_W], c->x->type, c->y->type,
             weights->operands[QDNN_OPERAND_Y].bytes);
    return QDNN_STATUS_SUCCESS;
}

const matmul_way matmul_cublas = {.choice = "cublas: its bits depend on the GPU and on the version of cuBLAS",
                                  .prepare = prepare,
                                  .fill = fill};
