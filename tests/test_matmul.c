/* Products by cuBLAS, up to the call: the weights that it finds in the workspace are host_ref's, and what it
 * is asked for is the product. cuBLAS itself is a double that records its arguments. */
#include <qdnn/qdnn.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "doubles/cublas.h"
#include "driver/base/alloc.h"
#include "driver/cuda/open.h"
#include "host_ref/host_ref.h"
#include "support/environment.h"
#include "formats/kernel_data.h"
#include "support/scarce.h"
#include "test.h"

#define CUBLAS_DOUBLE QDNN_BINARY_DIR "/tests/doubles/libcublas_double.so"
#define PTXVM_LIBCUDA QDNN_BINARY_DIR "/ptxvm/libcuda.so.1"

enum { M = 3, N = 5, K = 64, GROUP = 32, GROUPS = N * K / GROUP };

/* A handle on ptxvm with the double as its cuBLAS, and the descriptors of y[M, N] = x[M, K] w. */
typedef struct scene {
    void *library;
    const cublas_record *record;
    double_fail_fn *fail;
    qdnnHandle_t handle;
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, w, y;
    qdnnQuantDescriptor_t quant;
} scene;

static void set_tensor(qdnnTensorDescriptor_t tensor, qdnnDataType_t type, int64_t rows, int64_t columns)
{
    CHECK_EQ_I64(qdnnSetTensorDescriptor(tensor, type, 2, (const int64_t[]){rows, columns}, NULL), 0);
}

static void set_all(scene *s, qdnnDataType_t type, qdnnDataType_t y_type, bool transposed)
{
    set_tensor(s->x, type, M, K);
    set_tensor(s->w, type, transposed ? N : K, transposed ? K : N);
    set_tensor(s->y, y_type, M, N);
    CHECK_EQ_I64(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_TRANSPOSE_W, transposed), 0);
    CHECK_EQ_I64(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_CUBLAS), 0);
}

static bool find_double(scene *s)
{
    s->library = dlopen(CUBLAS_DOUBLE, RTLD_NOW);
    if (!s->library)
        return false;
    double_record_fn *record;
    void *symbols[2] = {dlsym(s->library, "double_record"), dlsym(s->library, "double_fail")};
    memcpy(&record, &symbols[0], sizeof record);
    memcpy(&s->fail, &symbols[1], sizeof s->fail);
    s->fail(NULL, 0);
    s->record = record();
    return true;
}

static bool scene_begin(scene *s)
{
    *s = (scene){0};
    cuda_close_all();
    cublas_forget();
    environment_set("QDNN_DEVICE=cuda QDNN_LIBCUDA=" PTXVM_LIBCUDA " QDNN_REQUIRE_GPU= PTXVM_SM=sm_80 "
                    "PTXVM_CHECK=all QDNN_CUBLAS=" CUBLAS_DOUBLE);
    bool ok = CHECK(find_double(s)) && CHECK_EQ_I64(qdnnCreate(&s->handle), 0);
    ok = ok && CHECK_EQ_I64(qdnnCreateMatmulDescriptor(&s->matmul), 0);
    ok = ok && CHECK_EQ_I64(qdnnCreateTensorDescriptor(&s->x), 0);
    ok = ok && CHECK_EQ_I64(qdnnCreateTensorDescriptor(&s->w), 0);
    ok = ok && CHECK_EQ_I64(qdnnCreateTensorDescriptor(&s->y), 0);
    ok = ok && CHECK_EQ_I64(qdnnCreateQuantDescriptor(&s->quant), 0);
    ok =
        ok && CHECK_EQ_I64(qdnnSetQuantDescriptor(s->quant, QDNN_DATA_NF4, QDNN_GRANULARITY_GROUP, GROUP), 0);
    return ok;
}

static void scene_end(scene *s)
{
    qdnnDestroyMatmulDescriptor(s->matmul);
    qdnnDestroyTensorDescriptor(s->x);
    qdnnDestroyTensorDescriptor(s->w);
    qdnnDestroyTensorDescriptor(s->y);
    qdnnDestroyQuantDescriptor(s->quant);
    CHECK_EQ_I64(qdnnDestroy(s->handle), 0);
    if (s->library) {
        CHECK_EQ_I64(s->record->handles, 0);
        dlclose(s->library);
    }
    cublas_forget();
    cuda_close_all();
    environment_restore();
}

static qdnnStatus_t create(scene *s, qdnnPlan_t *plan)
{
    return qdnnCreateMatmulPlan(s->handle, s->matmul, s->x, s->w, s->quant, s->y, plan);
}

static void check_refused(scene *s, qdnnStatus_t status, const char *part)
{
    qdnnPlan_t plan = NULL;
    char why[512];
    CHECK_EQ_I64(create(s, &plan), status);
    CHECK(plan == NULL);
    qdnnGetLastErrorString(why, sizeof why);
    CHECK_HAS(why, part);
}

/* ---- The call ---- */

/* Device buffers of one product. */
typedef struct buffers {
    void *x, *codes, *scale, *y, *workspace;
    size_t workspace_bytes;
} buffers;

static void buffers_make(scene *s, qdnnPlan_t plan, buffers *b)
{
    CHECK_EQ_I64(qdnnGetPlanWorkspaceSize(plan, &b->workspace_bytes), 0);
    CHECK_EQ_I64(qdnnMalloc(s->handle, &b->x, M * K * 4), 0);
    CHECK_EQ_I64(qdnnMalloc(s->handle, &b->codes, N * K / 2), 0);
    CHECK_EQ_I64(qdnnMalloc(s->handle, &b->scale, GROUPS * 4), 0);
    CHECK_EQ_I64(qdnnMalloc(s->handle, &b->y, M * N * 4), 0);
    CHECK_EQ_I64(qdnnMalloc(s->handle, &b->workspace, b->workspace_bytes), 0);
}

static void buffers_free(scene *s, buffers *b)
{
    void *all[] = {b->x, b->codes, b->scale, b->y, b->workspace};
    for (int i = 0; i < 5; i++)
        CHECK_EQ_I64(qdnnFree(s->handle, all[i]), 0);
}

/* Random codes and scales on the device, and the weights that they mean. */
static void fill_weights(scene *s, const buffers *b, qdnnDataType_t type, void *weights)
{
    const ref_quant_spec spec = {.storage = QDNN_DATA_NF4,
                                 .data = type,
                                 .scale = QDNN_SCALE_F32,
                                 .zero = QDNN_DATA_U8,
                                 .group_size = GROUP,
                                 .floor = REF_DEFAULT_FLOOR};
    uint8_t codes[N * K / 2];
    float scale[GROUPS];
    fill_bytes(7, codes, sizeof codes);
    for (int i = 0; i < GROUPS; i++)
        scale[i] = 0.25f + (float)i * 0.375f;
    ref_dequantize(&spec, 1, N * K, &(ref_arrays){.codes = codes, .scale = scale}, weights);
    CHECK_EQ_I64(qdnnCopyToDevice(s->handle, b->codes, codes, sizeof codes), 0);
    CHECK_EQ_I64(qdnnCopyToDevice(s->handle, b->scale, scale, sizeof scale), 0);
}

static qdnnStatus_t execute(scene *s, qdnnPlan_t plan, const buffers *b)
{
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, b->x, 0},
                                      {QDNN_OPERAND_CODES, b->codes, 0},
                                      {QDNN_OPERAND_SCALE, b->scale, 0},
                                      {QDNN_OPERAND_Y, b->y, 0}};
    return qdnnExecute(s->handle, plan, bindings, 4, b->workspace, b->workspace_bytes);
}

/* One byte too few for an operand; size: of a number of x and y. */
static void check_sizes(scene *s, qdnnPlan_t plan, const buffers *b, size_t x_size, size_t y_size)
{
    const size_t needed[] = {M * K * x_size, N * K / 2, GROUPS * 4, M * N * y_size};
    for (int i = 0; i < 4; i++) {
        qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, b->x, needed[0]},
                                    {QDNN_OPERAND_CODES, b->codes, needed[1]},
                                    {QDNN_OPERAND_SCALE, b->scale, needed[2]},
                                    {QDNN_OPERAND_Y, b->y, needed[3]}};
        bindings[i].bytes--;
        CHECK_EQ_I64(qdnnExecute(s->handle, plan, bindings, 4, b->workspace, b->workspace_bytes),
                     QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        bindings[i].bytes++;
        CHECK_EQ_I64(qdnnExecute(s->handle, plan, bindings, 4, b->workspace, b->workspace_bytes), 0);
    }
}

/* y^T [N, M] = op(w) [N, K] x^T [K, M], all column-major, is what makes the row-major product. */
static void check_call(const cublas_record *r, const buffers *b, cudaDataType type, cudaDataType y_type,
                       bool transposed)
{
    CHECK_EQ_STR(r->last, "cublasGemmEx");
    CHECK_EQ_I64(r->op_a, transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    CHECK_EQ_I64(r->op_b, CUBLAS_OP_N);
    CHECK_EQ_I64(r->m, N);
    CHECK_EQ_I64(r->n, M);
    CHECK_EQ_I64(r->k, K);
    CHECK_EQ_I64(r->lda, transposed ? K : N);
    CHECK_EQ_I64(r->ldb, K);
    CHECK_EQ_I64(r->ldc, N);
    CHECK(r->a == b->workspace && r->b == b->x && r->c == b->y);
    CHECK_EQ_I64(r->a_type, type);
    CHECK_EQ_I64(r->b_type, type);
    CHECK_EQ_I64(r->c_type, y_type);
    CHECK_EQ_F32(r->alpha, 1);
    CHECK_EQ_F32(r->beta, 0);
    CHECK_EQ_I64(r->compute, CUBLAS_COMPUTE_32F);
    /* its scratch memory lies behind the weights, within what the plan asked for */
    CHECK(r->workspace_bytes == 4u << 20);
    CHECK((char *)r->workspace >= (char *)b->workspace + N * K * (type == CUDA_R_32F ? 4 : 2));
    CHECK((char *)r->workspace + r->workspace_bytes <= (char *)b->workspace + b->workspace_bytes);
}

static const struct {
    qdnnDataType_t type, y_type;
    cudaDataType cublas_type, cublas_y_type;
    bool transposed;
} products[] = {
    {QDNN_DATA_F32, QDNN_DATA_F32, CUDA_R_32F, CUDA_R_32F, true},
    {QDNN_DATA_F32, QDNN_DATA_F32, CUDA_R_32F, CUDA_R_32F, false},
    {QDNN_DATA_F16, QDNN_DATA_F16, CUDA_R_16F, CUDA_R_16F, true},
    {QDNN_DATA_F16, QDNN_DATA_F32, CUDA_R_16F, CUDA_R_32F, false},
    {QDNN_DATA_BF16, QDNN_DATA_BF16, CUDA_R_16BF, CUDA_R_16BF, true},
    {QDNN_DATA_BF16, QDNN_DATA_F32, CUDA_R_16BF, CUDA_R_32F, true},
};

TEST_CASE(Matmul, CublasFindsTheWeightsAndTheShape)
{
    scene s;
    bool ready = scene_begin(&s);
    for (size_t i = 0; ready && i < sizeof products / sizeof products[0]; i++) {
        qdnnPlan_t plan = NULL;
        buffers b = {0};
        float expected[N * K], weights[N * K];
        size_t bytes = N * K * ref_scalar_size(products[i].type);
        test_push_note("product %zu", i);
        set_all(&s, products[i].type, products[i].y_type, products[i].transposed);
        if (CHECK_EQ_I64(create(&s, &plan), 0)) {
            buffers_make(&s, plan, &b);
            fill_weights(&s, &b, products[i].type, expected);
            CHECK_EQ_I64(execute(&s, plan, &b), 0);
            check_call(s.record, &b, products[i].cublas_type, products[i].cublas_y_type,
                       products[i].transposed);
            CHECK_EQ_I64(qdnnCopyToHost(s.handle, weights, b.workspace, bytes), 0);
            CHECK_EQ_MEM(weights, expected, bytes);
            check_sizes(&s, plan, &b, ref_scalar_size(products[i].type), ref_scalar_size(products[i].y_type));
            buffers_free(&s, &b);
        }
        CHECK_EQ_I64(qdnnDestroyPlan(plan), 0);
        test_pop_note();
    }
    scene_end(&s);
}

/* A product of f32 that is ready to be executed. */
typedef struct product {
    scene s;
    qdnnPlan_t plan;
    buffers b;
} product;

static bool product_begin(product *p)
{
    float weights[N * K];
    *p = (product){0};
    if (!scene_begin(&p->s))
        return false;
    set_all(&p->s, QDNN_DATA_F32, QDNN_DATA_F32, true);
    if (!CHECK_EQ_I64(create(&p->s, &p->plan), 0))
        return false;
    buffers_make(&p->s, p->plan, &p->b);
    fill_weights(&p->s, &p->b, QDNN_DATA_F32, weights);
    return true;
}

static void product_end(product *p)
{
    buffers_free(&p->s, &p->b);
    CHECK_EQ_I64(qdnnDestroyPlan(p->plan), 0);
    scene_end(&p->s);
}

/* cuBLAS requires an alignment of 256 bytes; the workspace of a plan needs 16. */
TEST_CASE(Matmul, WorkspacesNeedNoMoreThanTheirAlignment)
{
    product p;
    if (product_begin(&p)) {
        void *all = NULL;
        CHECK_EQ_I64(qdnnFree(p.s.handle, p.b.workspace), 0);
        CHECK_EQ_I64(qdnnMalloc(p.s.handle, &all, p.b.workspace_bytes + 256), 0);
        for (int shift = 0; shift < 256; shift += 16) {
            p.b.workspace = (char *)all + shift;
            CHECK_EQ_I64(execute(&p.s, p.plan, &p.b), 0);
            check_call(p.s.record, &p.b, CUDA_R_32F, CUDA_R_32F, true);
        }
        p.b.workspace = all;
    }
    product_end(&p);
}

TEST_CASE(Matmul, ShapesAndTypesMustFit)
{
    scene s;
    if (scene_begin(&s)) {
        set_all(&s, QDNN_DATA_F16, QDNN_DATA_F16, true);
        set_tensor(s.x, QDNN_DATA_F16, M, K + 1);
        check_refused(&s, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "x has rows of 65, w a K of 64");
        set_tensor(s.x, QDNN_DATA_F16, M + 1, K);
        check_refused(&s, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "y is [3, 5]; it must be [4, 5]");
        set_tensor(s.x, QDNN_DATA_F32, M, K);
        check_refused(&s, QDNN_STATUS_NOT_SUPPORTED, "w must have the type of x");
        set_all(&s, QDNN_DATA_F16, QDNN_DATA_BF16, true);
        check_refused(&s, QDNN_STATUS_NOT_SUPPORTED, "y must have the type of x, or f32");
        set_tensor(s.x, QDNN_DATA_F16, M, 0);
        set_tensor(s.w, QDNN_DATA_F16, N, 0);
        check_refused(&s, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "K is 0");
        set_all(&s, QDNN_DATA_F16, QDNN_DATA_F16, true);
        set_tensor(s.x, QDNN_DATA_F16, INT64_C(1) << 31, K);
        set_tensor(s.y, QDNN_DATA_F16, INT64_C(1) << 31, N);
        check_refused(&s, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "M is 2147483648; it must be below 2^31");
        CHECK_EQ_I64(qdnnSetTensorDescriptor(s.w, QDNN_DATA_F16, 3, (const int64_t[]){1, N, K}, NULL), 0);
        check_refused(&s, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "w has 3 dimensions; it must have 2");
    }
    scene_end(&s);
}

/* Leading dimensions make rows; an empty product is a success that calls nothing. */
TEST_CASE(Matmul, RowsMayHaveDimensionsAndBeNone)
{
    scene s;
    if (scene_begin(&s)) {
        qdnnPlan_t plan = NULL;
        size_t bytes = 1;
        set_all(&s, QDNN_DATA_F16, QDNN_DATA_F16, true);
        CHECK_EQ_I64(qdnnSetTensorDescriptor(s.x, QDNN_DATA_F16, 3, (const int64_t[]){2, 4, K}, NULL), 0);
        CHECK_EQ_I64(qdnnSetTensorDescriptor(s.y, QDNN_DATA_F16, 2, (const int64_t[]){8, N}, NULL), 0);
        CHECK_EQ_I64(create(&s, &plan), 0);
        CHECK_EQ_I64(qdnnDestroyPlan(plan), 0);
        set_tensor(s.x, QDNN_DATA_F16, 0, K);
        set_tensor(s.y, QDNN_DATA_F16, 0, N);
        CHECK_EQ_I64(create(&s, &plan), 0);
        CHECK_EQ_I64(qdnnGetPlanWorkspaceSize(plan, &bytes), 0);
        CHECK_EQ_I64((int64_t)bytes, 0);
        s.fail(NULL, 0);
        CHECK_EQ_I64(qdnnExecute(s.handle, plan, NULL, 0, NULL, 0), 0);
        CHECK_EQ_I64(s.record->calls, 0);
        CHECK_EQ_I64(qdnnDestroyPlan(plan), 0);
    }
    scene_end(&s);
}

TEST_CASE(Matmul, WhatCannotBeIsSaid)
{
    scene s;
    if (scene_begin(&s)) {
        set_all(&s, QDNN_DATA_F16, QDNN_DATA_F16, true);
        CHECK_EQ_I64(qdnnSetMatmulAttribute(s.matmul, QDNN_MATMUL_RESIDUAL, 1), 0);
        check_refused(&s, QDNN_STATUS_NOT_SUPPORTED, "QDNN_MATMUL_CUBLAS computes x W alone");
        CHECK_EQ_I64(qdnnSetMatmulAttribute(s.matmul, QDNN_MATMUL_RESIDUAL, 0), 0);
        environment_set("QDNN_CUBLAS=");
        check_refused(&s, QDNN_STATUS_NOT_SUPPORTED, "needs a GPU, and the handle is on ptxvm");
        environment_set("QDNN_CUBLAS=no_such_cublas.so");
        check_refused(&s, QDNN_STATUS_NOT_SUPPORTED_LIBRARY_MISSING, "cuBLAS");
        environment_set("QDNN_CUBLAS=" CUBLAS_DOUBLE);
        s.fail("cublasCreate_v2", 3);
        check_refused(&s, QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "cublasCreate");
        s.fail(NULL, 0);
    }
    scene_end(&s);
}

/* Each call that fails has its message, and the handle stays usable. */
TEST_CASE(Matmul, FailuresOfCublasAreReported)
{
    static const char *const symbols[] = {"cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasGemmEx"};
    product p;
    if (product_begin(&p)) {
        for (int i = 0; i < 3; i++) {
            char why[512];
            p.s.fail(symbols[i], 13);
            CHECK_EQ_I64(execute(&p.s, p.plan, &p.b), QDNN_STATUS_EXECUTION_FAILED);
            qdnnGetLastErrorString(why, sizeof why);
            CHECK_HAS(why, "CUBLAS_STATUS_EXECUTION_FAILED");
        }
        p.s.fail(NULL, 0);
        CHECK_EQ_I64(execute(&p.s, p.plan, &p.b), 0);
    }
    product_end(&p);
}

/* Each host allocation of making a plan fails once: the same call then succeeds, and nothing leaks. */
TEST_CASE(Matmul, AllocationsFail)
{
    scene s;
    scarce memory = {.fails = -1};
    alloc_set_hook(scarce_resize, &memory);
    if (scene_begin(&s)) {
        qdnnPlan_t plan = NULL;
        qdnnStatus_t status = QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED;
        int failures = -1;
        set_all(&s, QDNN_DATA_F16, QDNN_DATA_F16, true);
        while (status == QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED && failures < 1000) {
            CHECK(plan == NULL);
            memory.fails = memory.asked + ++failures;
            status = create(&s, &plan);
        }
        CHECK_EQ_I64(status, QDNN_STATUS_SUCCESS);
        CHECK(failures > 3);
        CHECK_EQ_I64(qdnnDestroyPlan(plan), 0);
    }
    scene_end(&s);
    alloc_set_hook(NULL, NULL);
    CHECK_EQ_I64(memory.living, 0);
}

/* The driver fails while a plan is made: the handle goes on, or is dead, and cuBLAS is released in any case. */
TEST_CASE(Matmul, FailuresOfTheDriverAreReported)
{
    static const struct {
        const char *fault;
        qdnnStatus_t first, second;
    } cases[] = {
        {"PTXVM_FAULT=cuModuleLoadDataEx:1=2", QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
         QDNN_STATUS_SUCCESS},
        {"PTXVM_FAULT=cuModuleGetFunction:1=700", QDNN_STATUS_EXECUTION_FAILED_STICKY,
         QDNN_STATUS_EXECUTION_FAILED_STICKY},
        {"PTXVM_FAULT=cuStreamIsCapturing:1=900", QDNN_STATUS_EXECUTION_FAILED, QDNN_STATUS_SUCCESS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene s;
        qdnnPlan_t plan = NULL;
        test_push_note("%s", cases[i].fault);
        environment_set(cases[i].fault);
        if (scene_begin(&s)) {
            set_all(&s, QDNN_DATA_F16, QDNN_DATA_F16, true);
            CHECK_EQ_I64(create(&s, &plan), cases[i].first);
            CHECK(plan == NULL);
            CHECK_EQ_I64(create(&s, &plan), cases[i].second);
            CHECK_EQ_I64(qdnnDestroyPlan(plan), 0);
        }
        scene_end(&s);
        test_pop_note();
    }
}
