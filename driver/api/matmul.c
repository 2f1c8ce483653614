/* Products with quantized weights: descriptors, and the plan that dequantizes and calls cuBLAS. */
#include <limits.h>
#include <stdlib.h>

#include "driver/base/alloc.h"
#include "driver/api/attributes.h"
#include "driver/base/data_type.h"
#include "driver/api/plan.h"

/* ---- Descriptors ---- */

static const attribute_choice algorithms[] = {
    {QDNN_MATMUL_EXACT, "QDNN_MATMUL_EXACT"}, {QDNN_MATMUL_CUBLAS, "QDNN_MATMUL_CUBLAS"}, {0, NULL}};
static const attribute rows[QDNN_MATMUL_ATTRIBUTE_COUNT] = {
    [QDNN_MATMUL_ALGORITHM] = {.name = "QDNN_MATMUL_ALGORITHM",
                               .preset = QDNN_MATMUL_EXACT,
                               .choices = algorithms},
    [QDNN_MATMUL_TRANSPOSE_W] =
        {.name = "QDNN_MATMUL_TRANSPOSE_W", .preset = 1, .least = 0, .largest = 1, .range = "0 or 1"},
};
static const attribute_table attributes = {rows, QDNN_MATMUL_ATTRIBUTE_COUNT};

qdnnStatus_t qdnnCreateMatmulDescriptor(qdnnMatmulDescriptor_t *matmul)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(matmul);
    qdnnMatmulDescriptor_t made = alloc_new(sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    attributes_preset(&attributes, made->values);
    *matmul = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                    int64_t value)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(matmul);
    return attribute_set(&attributes, matmul->values, (int)attribute, value);
}

qdnnStatus_t qdnnGetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                    int64_t *value)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(matmul);
    CHECK_NOT_NULL(value);
    return attribute_get(&attributes, matmul->values, (int)attribute, value);
}

qdnnStatus_t qdnnDestroyMatmulDescriptor(qdnnMatmulDescriptor_t matmul)
{
    CALL_BEGIN();
    alloc_free(matmul);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Shapes ---- */

typedef struct shape {
    int64_t m, n, k;
} shape;

/* [..., last] as rows of the last dimension. */
static int64_t rows_of(const struct qdnnTensorDescriptor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank - 1; i++)
        count *= t->dims[i];
    return count;
}

static qdnnStatus_t check_size(const char *name, int64_t size)
{
    if (size <= INT_MAX)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %lld; it must be below 2^31", name,
                      (long long)size);
}

static qdnnStatus_t find_shape(const struct qdnnMatmulDescriptor *matmul,
                               const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *w,
                               const struct qdnnTensorDescriptor *y, shape *s)
{
    bool transposed = matmul->values[QDNN_MATMUL_TRANSPOSE_W];
    if (w->rank != 2)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "w has %d dimensions; it must have 2",
                          w->rank);
    *s = (shape){.m = rows_of(x), .n = w->dims[!transposed], .k = w->dims[transposed]};
    if (x->dims[x->rank - 1] != s->k)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "x has rows of %lld, w a K of %lld; they must be the same",
                          (long long)x->dims[x->rank - 1], (long long)s->k);
    if (y->dims[y->rank - 1] != s->n || rows_of(y) != s->m)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "y is [%lld, %lld]; it must be [%lld, %lld]",
                          (long long)rows_of(y), (long long)y->dims[y->rank - 1], (long long)s->m,
                          (long long)s->n);
    if (s->k == 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "K is 0; it must be at least 1");
    CHECK_STATUS(check_size("M", s->m));
    CHECK_STATUS(check_size("N", s->n));
    return check_size("K", s->k);
}

static qdnnStatus_t check_types(const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *w,
                                const struct qdnnTensorDescriptor *y)
{
    if (w->type != x->type)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "x is %s and w %s; w must have the type of x",
                          qdnnGetDataTypeName(x->type), qdnnGetDataTypeName(w->type));
    if (y->type != x->type && y->type != QDNN_DATA_F32)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "x is %s and y %s; y must have the type of x, or f32",
                          qdnnGetDataTypeName(x->type), qdnnGetDataTypeName(y->type));
    if (!tensor_is_packed(x) || !tensor_is_packed(y))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "x or y has gaps or another order of dimensions; both must be packed");
    return QDNN_STATUS_SUCCESS;
}

/* ---- cuBLAS ---- */

static cudaDataType cublas_type(qdnnDataType_t type)
{
    return type == QDNN_DATA_F16 ? CUDA_R_16F : type == QDNN_DATA_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* cuBLAS launches kernels of its own on a GPU. A library that QDNN_CUBLAS names is the user's word that it
 * can work with what the handle is on. */
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

enum { SCRATCH_ALIGN = 256 }; /* cublasSetWorkspace refuses less; the caller's workspace may have less */

static void *scratch_of(const plan_gemm *g, CUdeviceptr workspace)
{
    return (void *)(uintptr_t)((workspace + g->scratch_from + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN *
                               SCRATCH_ALIGN);
}

qdnnStatus_t plan_run_gemm(qdnnPlan_t plan, const plan_gemm *g, const CUdeviceptr *at)
{
    static const float one = 1, none = 0;
    cublasHandle_t cublas = plan->handle->cublas;
    const void *weights = (const void *)(uintptr_t)at[PLAN_WORKSPACE];
    const void *x = (const void *)(uintptr_t)at[QDNN_OPERAND_X];
    void *y = (void *)(uintptr_t)at[QDNN_OPERAND_Y];
    cublasStatus_t code = g->api->cublasSetStream(cublas, plan->handle->stream);
    if (code)
        return cublas_failed(code, "cublasSetStream");
    /* after the stream, which resets it; ours, so that nothing is allocated under capture */
    code = g->api->cublasSetWorkspace(cublas, scratch_of(g, at[PLAN_WORKSPACE]), g->scratch_bytes);
    if (code)
        return cublas_failed(code, "cublasSetWorkspace");
    code = g->api->cublasGemmEx(cublas, g->op_w, CUBLAS_OP_N, g->m, g->n, g->k, &one, weights, g->type,
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

static void set_gemm(qdnnPlan_t plan, const cublas_api *api, const shape *s, bool transposed,
                     qdnnDataType_t type, qdnnDataType_t y_type, size_t weights_bytes)
{
    plan_gemm gemm = {.api = api,
                      .op_w = transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      .m = (int)s->n,
                      .n = (int)s->m,
                      .k = (int)s->k,
                      .ldw = (int)(transposed ? s->k : s->n),
                      .type = cublas_type(type),
                      .y_type = cublas_type(y_type),
                      .scratch_from = weights_bytes,
                      .scratch_bytes = scratch_bytes(plan->handle->context)};
    plan->steps[plan->n_steps++] = (plan_step){.kind = PLAN_GEMM, .gemm = gemm};
    plan->workspace_bytes = weights_bytes + SCRATCH_ALIGN - 1 + gemm.scratch_bytes;
}

/* What cuBLAS does not take is refused before anything is loaded. */
static qdnnStatus_t check_cublas_type(qdnnDataType_t type)
{
    if (type != QDNN_DATA_F64)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "x and w are f64; a product takes f32, f16 or bf16");
}

static void need_matrix(qdnnPlan_t plan, qdnnOperand_t operand, qdnnDataType_t type, int64_t rows,
                        int64_t columns)
{
    unsigned bytes = (unsigned)data_type_bits(type) / 8;
    plan_needs(plan, operand, bytes, (uint64_t)rows * (uint64_t)columns * bytes);
}

/* The weights are dequantized into the workspace, where the product finds them. */
static qdnnStatus_t fill_plan(qdnnPlan_t plan, const struct qdnnMatmulDescriptor *matmul,
                              const request *weights, const shape *s, qdnnDataType_t y_type)
{
    const cublas_api *api;
    CHECK_STATUS(check_cublas_type(weights->spec.data));
    CHECK_STATUS(open_cublas(plan->handle, &api));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        plan_needs(plan, (qdnnOperand_t)i, weights->operands[i].align, weights->operands[i].bytes);
    need_matrix(plan, QDNN_OPERAND_X, weights->spec.data, s->m, s->k);
    need_matrix(plan, QDNN_OPERAND_Y, y_type, s->m, s->n);
    if (s->m == 0 || s->n == 0)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(plan_add(plan, weights, QDNN_OPERAND_Y));
    set_gemm(plan, api, s, matmul->values[QDNN_MATMUL_TRANSPOSE_W], weights->spec.data, y_type,
             weights->operands[QDNN_OPERAND_Y].bytes);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t make_plan(qdnnHandle_t handle, const struct qdnnMatmulDescriptor *matmul,
                              const request *weights, const shape *s, qdnnDataType_t y_type, qdnnPlan_t *out)
{
    qdnnPlan_t plan = NULL;
    CHECK_STATUS(plan_new(handle, "quant.matmul", &plan));
    qdnnStatus_t status = fill_plan(plan, matmul, weights, s, y_type);
    if (status == QDNN_STATUS_SUCCESS)
        *out = plan;
    else
        plan_free(plan);
    return status;
}

qdnnStatus_t qdnnCreateMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                  qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                  qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(matmul);
    CHECK_NOT_NULL(x);
    CHECK_NOT_NULL(w);
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(y);
    CHECK_NOT_NULL(plan);
    shape s = {0};
    request weights;
    bool pushed;
    CHECK_STATUS(request_make(KERNEL_DEQUANTIZE, w, quant, &weights));
    CHECK_STATUS(find_shape(matmul, x, w, y, &s));
    CHECK_STATUS(check_types(x, w, y));
    if (matmul->values[QDNN_MATMUL_ALGORITHM] == QDNN_MATMUL_EXACT)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "QDNN_MATMUL_ALGORITHM is QDNN_MATMUL_EXACT, which has no kernel in this version; "
                          "QDNN_MATMUL_CUBLAS has, on a GPU");
    CHECK_STATUS(handle_enter(handle, &pushed));
    qdnnStatus_t status = make_plan(handle, matmul, &weights, &s, y->type, plan);
    handle_leave(handle, pushed);
    if (status == QDNN_STATUS_SUCCESS)
        handle->plans++;
    return status;
}
