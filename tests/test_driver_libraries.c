/* Libraries opened at run time: cuBLAS through a double of it and, where it is found, the real one; NVRTC. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <qdnn/qdnn.h>

#include "doubles/cublas.h"
#include "driver/cuda/nvrtc.h"
#include "support/environment.h"
#include "support/process.h"
#include "test.h"

#define DOUBLE QDNN_BINARY_DIR "/tests/doubles/libcublas_double.so"

static void check_missing(qdnnStatus_t status, const char *part, const char *other)
{
    char sentence[512];
    CHECK_EQ_STR(qdnnGetErrorString(status), "QDNN_STATUS_NOT_SUPPORTED_LIBRARY_MISSING");
    qdnnGetLastErrorString(sentence, sizeof sentence);
    CHECK_HAS(sentence, part);
    CHECK_HAS(sentence, other);
}

static void begin(const char *settings)
{
    cublas_forget();
    environment_set(settings);
}

static void end(void)
{
    cublas_forget();
    environment_restore();
}

TEST_CASE(DriverCublas, SaysWhatIsMissing)
{
    const cublas_api *api = NULL;
    begin("QDNN_CUBLAS=libno_such_blas.so.1");
    check_missing(cublas_open(&api), "cuBLAS was not found: libno_such_blas.so.1", "QDNN_CUBLAS");
    CHECK(api == NULL);
    begin("QDNN_CUBLAS=" QDNN_BINARY_DIR "/tests/doubles/libcuda_12_4.so");
    check_missing(cublas_open(&api), "libcuda_12_4.so", "lacks the function cublasCreate_v2");
    CHECK(api == NULL);
    begin("QDNN_CUBLAS=" DOUBLE); /* what is missing may come later */
    CHECK_EQ_I64(cublas_open(&api), QDNN_STATUS_SUCCESS);
    end();
}

/* The toolkit of an empty folder, and no other: the names that are tried without QDNN_CUBLAS. */
TEST_CASE(DriverCublas, LooksInCudaHome)
{
    char folder[256], settings[600];
    const cublas_api *api = NULL;
    temp_dir_make(folder, sizeof folder);
    process_result made =
        process_run("mkdir %s/lib64 && cp %s %s/lib64/libcublas.so.11", folder, DOUBLE, folder);
    CHECK_EQ_I64(made.status, 0);
    process_free(&made);
    snprintf(settings, sizeof settings, "QDNN_CUBLAS= CUDA_HOME=%s", folder);
    begin(settings);
    cublasHandle_t handle = NULL;
    int version = 0;
    if (CHECK(cublas_open(&api) == QDNN_STATUS_SUCCESS)) {
        CHECK_EQ_I64(api->cublasCreate(&handle), 0);
        CHECK_EQ_I64(api->cublasGetVersion(handle, &version), 0);
        CHECK_EQ_I64(version, 130000); /* the double's */
        CHECK_EQ_I64(api->cublasDestroy(handle), 0);
    }
    end();
    temp_dir_remove(folder);
}

/* The real one has every function that we name. */
TEST_CASE(DriverCublas, TheRealOneOpens)
{
    char sentence[512];
    const cublas_api *api = NULL;
    begin("QDNN_CUBLAS=");
    qdnnStatus_t status = cublas_open(&api);
    end();
    qdnnGetLastErrorString(sentence, sizeof sentence);
    if (status != QDNN_STATUS_SUCCESS && strstr(sentence, "was not found"))
        SKIP("%s", sentence);
    CHECK_EQ_I64(status, QDNN_STATUS_SUCCESS);
    REQUIRE(api != NULL);
    CHECK(api->cublasCreate != NULL && api->cublasGemmEx != NULL);
}

/* ---- Calls ---- */

static double_record_fn *get_record;
static double_fail_fn *fail_at;

/* The double as cublas_open gives it, with a handle; the library is for close_double. */
static void *open_double(const cublas_api **api, cublasHandle_t *handle)
{
    begin("QDNN_CUBLAS=" DOUBLE);
    void *library = dlopen(DOUBLE, RTLD_NOW);
    void *record = dlsym(library, "double_record"), *fail = dlsym(library, "double_fail");
    memcpy(&get_record, &record, sizeof record);
    memcpy(&fail_at, &fail, sizeof fail);
    fail_at(NULL, 0);
    CHECK_EQ_I64(cublas_open(api), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64((*api)->cublasCreate(handle), 0);
    return library;
}

static void close_double(void *library, const cublas_api *api, cublasHandle_t handle)
{
    CHECK_EQ_I64(api->cublasDestroy(handle), 0);
    end();
    dlclose(library);
}

static cublasStatus_t product(const cublas_api *api, cublasHandle_t handle, char *memory)
{
    float alpha = 1.5f, beta = -2;
    return api->cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 4, 5, &alpha, memory, CUDA_R_16F, 6,
                             memory + 1, CUDA_R_16BF, 7, &beta, memory + 2, CUDA_R_32F, 8,
                             CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_GEMM_DEFAULT);
}

TEST_CASE(DriverCublas, CallsArriveAsTheyWereMade)
{
    static _Alignas(256) char workspace[256]; /* cuBLAS takes no other */
    char memory[16];
    const cublas_api *api = NULL;
    cublasHandle_t handle = NULL;
    void *library = open_double(&api, &handle);
    CHECK_EQ_I64(api->cublasSetStream(handle, (CUstream)(void *)(memory + 8)), 0);
    CHECK_EQ_I64(api->cublasSetWorkspace(handle, workspace, 12345), 0);
    CHECK_EQ_I64(api->cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH), 0);
    CHECK_EQ_I64(product(api, handle, memory), 0);
    const cublas_record *r = get_record();
    CHECK_EQ_I64(r->calls, 5);
    CHECK_EQ_STR(r->last, "cublasGemmEx");
    CHECK(r->stream == (CUstream)(void *)(memory + 8) && r->workspace == workspace);
    CHECK_EQ_U64(r->workspace_bytes, 12345);
    CHECK_EQ_I64(r->mode, CUBLAS_PEDANTIC_MATH);
    CHECK(r->op_a == CUBLAS_OP_T && r->op_b == CUBLAS_OP_N);
    CHECK(r->m == 3 && r->n == 4 && r->k == 5 && r->lda == 6 && r->ldb == 7 && r->ldc == 8);
    CHECK(r->a == memory && r->b == memory + 1 && r->c == memory + 2);
    CHECK(r->a_type == CUDA_R_16F && r->b_type == CUDA_R_16BF && r->c_type == CUDA_R_32F);
    CHECK_EQ_F32(r->alpha, 1.5f);
    CHECK_EQ_F32(r->beta, -2);
    CHECK(r->compute == CUBLAS_COMPUTE_32F_PEDANTIC && r->algorithm == CUBLAS_GEMM_DEFAULT);
    CHECK_EQ_I64(r->handles, 1);
    close_double(library, api, handle);
}

static void check_code(cublasStatus_t code, qdnnStatus_t status, const char *sentence)
{
    char said[512];
    CHECK_EQ_STR(qdnnGetErrorString(cublas_failed(code, "cublasGemmEx")), qdnnGetErrorString(status));
    qdnnGetLastErrorString(said, sizeof said);
    CHECK_EQ_STR(said, sentence);
}

TEST_CASE(DriverCublas, CodesBecomeStatuses)
{
    char memory[16];
    const cublas_api *api = NULL;
    cublasHandle_t handle = NULL;
    void *library = open_double(&api, &handle);
    fail_at("cublasGemmEx", 3);
    check_code(product(api, handle, memory), QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
               "cublasGemmEx returned 3 (CUBLAS_STATUS_ALLOC_FAILED)");
    fail_at("cublasGemmEx", 13);
    check_code(product(api, handle, memory), QDNN_STATUS_EXECUTION_FAILED,
               "cublasGemmEx returned 13 (CUBLAS_STATUS_EXECUTION_FAILED)");
    fail_at("cublasGemmEx", 15);
    check_code(product(api, handle, memory), QDNN_STATUS_NOT_SUPPORTED,
               "cublasGemmEx returned 15 (CUBLAS_STATUS_NOT_SUPPORTED)");
    fail_at(NULL, 0);
    check_code(product(api, NULL, memory), QDNN_STATUS_EXECUTION_FAILED,
               "cublasGemmEx returned 1 (CUBLAS_STATUS_NOT_INITIALIZED)");
    check_code(77, QDNN_STATUS_EXECUTION_FAILED, "cublasGemmEx returned 77 (an unknown code)");
    close_double(library, api, handle);
}

/* ---- NVRTC ---- */

TEST_CASE(DriverNvrtc, SaysWhatIsMissing)
{
    nvrtc_result result;
    nvrtc_forget();
    environment_set("QDNN_NVRTC=libno_such_compiler.so.1");
    CHECK(!nvrtc_found());
    check_missing(nvrtc_compile("", NULL, 0, NULL, 0, &result),
                  "NVRTC was not found: libno_such_compiler.so.1", "QDNN_NVRTC");
    environment_restore();
}

TEST_CASE(DriverNvrtc, CompilesOrSaysWhyNot)
{
    char sentence[512];
    nvrtc_result result;
    nvrtc_header header = {"value.h", "#define VALUE 12345\n"}, many[NVRTC_HEADERS_MAX + 1] = {{0}};
    const char *options[] = {"--gpu-architecture=compute_75"};
    if (!nvrtc_found())
        SKIP("NVRTC was not found");
    CHECK_EQ_I64(nvrtc_compile("#include \"value.h\"\n__global__ void f(int *p) { *p = VALUE; }", &header, 1,
                               options, 1, &result),
                 QDNN_STATUS_SUCCESS);
    CHECK_HAS(result.data, "12345");
    CHECK_EQ_U64(result.bytes, result.data ? strlen(result.data) : 0);
    nvrtc_free(&result);
    CHECK_EQ_I64(nvrtc_compile("nonsense", NULL, 0, options, 1, &result),
                 QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED);
    CHECK(result.data == NULL);
    CHECK_HAS(result.log, "nonsense");
    qdnnGetLastErrorString(sentence, sizeof sentence);
    CHECK_HAS(sentence, "nonsense");
    nvrtc_free(&result);
    CHECK_EQ_I64(nvrtc_compile("", many, NVRTC_HEADERS_MAX + 1, options, 1, &result),
                 QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
}
