/* CUDA C written from the contract (bench/twins/product.cu), compiled by NVRTC and run on ptxvm, gives the bytes that host_ref and
 * the library's kernels give: products with interleaved words of 4-bit integers and with Q4_K. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/product_case.h"
#include "driver/cuda/nvrtc.h"
#include "device/under_test.h"
#include "device/machine.h"
#include "test.h"
#include "tools/toolkit.h"

/* Which weights; how the twin knows them. */
typedef struct twin_case {
    const char *name, *kernel, *macro;
    bool k_rows;
    int64_t m, n, k;
} twin_case;

enum { GROUP = 128 };

static const twin_case cases[] = {
    {"words_gemv", "dequantize_int4_zp", "-DFORMAT_WORDS", true, 1, 128, 1024},
    {"words_rows", "dequantize_int4_zp", "-DFORMAT_WORDS", true, 3, 36, 648},
    {"q4_k_gemv", "dequantize_gguf_q4_k", "-DFORMAT_Q4_K", false, 1, 37, 1024},
    {"q4_k_rows", "dequantize_gguf_q4_k", "-DFORMAT_Q4_K", false, 4, 9, 2048},
};

static product_case product_of(const twin_case *t)
{
    product_case c = {.rows = -1,
                      .k_rows = t->k_rows,
                      .m = t->m,
                      .x = QDNN_DATA_F32,
                      .y = QDNN_DATA_F32,
                      .kind = DATA_NORMAL,
                      .seed = 5,
                      .algorithm = QDNN_MATMUL_EXACT};
    c.weights = (quant_case){.row = kernel_find(t->kernel),
                             .spec = kernel_spec_default(),
                             .granularity = t->k_rows ? QDNN_GRANULARITY_GROUP : QDNN_GRANULARITY_TENSOR,
                             .extent = t->k_rows ? GROUP : 0,
                             .rank = 2,
                             .dims = {t->k_rows ? t->k : t->n, t->k_rows ? t->n : t->k},
                             .kind = DATA_NORMAL,
                             .seed = 7};
    if (t->k_rows) {
        c.weights.spec.stored.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
        c.weights.spec.stored.groups = QDNN_GROUPS_COLUMNS;
        c.weights.spec.stored.zero = QDNN_DATA_U32;
    }
    return c;
}

/* The twin's PTX, to be freed; null with a failure reported. */
static char *compile(const twin_case *t)
{
    char group[32];
    snprintf(group, sizeof group, "-DGROUP_SIZE=%d", GROUP);
    const char *options[] = {"--gpu-architecture=compute_80", "--std=c++17", "--fmad=false", t->macro, group};
    char *source = toolkit_read_file(QDNN_SOURCE_DIR "/bench/twins/product.cu", NULL);
    nvrtc_result result = {0};
    char *ptx = NULL;
    if (!CHECK(source != NULL))
        return NULL;
    if (nvrtc_compile(source, NULL, 0, options, 5, &result) == QDNN_STATUS_SUCCESS)
        ptx = strdup(result.data);
    else
        FAIL("%s", result.log ? result.log : "NVRTC failed");
    nvrtc_free(&result);
    free(source);
    return ptx;
}

static ptxvm_address put(machine *vm, const uint8_t *data, size_t bytes)
{
    ptxvm_address at = 0;
    if (bytes && CHECK_EQ_I64(machine_alloc(vm, bytes, &at), PTXVM_OK))
        CHECK_EQ_I64(machine_write(vm, at, data, bytes), PTXVM_OK);
    return at;
}

static void run_twin(const twin_case *t, const char *ptx, const product_operands *o)
{
    ptxvm_config config = {.sm = "sm_80"};
    machine *vm;
    machine_module *module;
    machine_kernel *kernel;
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    const size_t bytes = o->bytes[QDNN_OPERAND_Y];
    const ptxvm_address y = put(vm, o->host[QDNN_OPERAND_Y], bytes);
    const uint64_t params[] = {put(vm, o->host[QDNN_OPERAND_X], o->bytes[QDNN_OPERAND_X]),
                               put(vm, o->host[QDNN_OPERAND_CODES], o->bytes[QDNN_OPERAND_CODES]),
                               put(vm, o->host[QDNN_OPERAND_SCALE], o->bytes[QDNN_OPERAND_SCALE]),
                               put(vm, o->host[QDNN_OPERAND_ZERO], o->bytes[QDNN_OPERAND_ZERO]),
                               y,
                               (uint64_t)t->m,
                               (uint64_t)t->n,
                               (uint64_t)t->k};
    ptxvm_launch_config launch = {.grid = {(uint32_t)((t->m * t->n + 63) / 64), 1, 1}, .block = {64, 1, 1}};
    if (machine_module_load(vm, ptx, strlen(ptx), &module) != PTXVM_OK ||
        machine_module_kernel(module, "product_twin", &kernel) != PTXVM_OK ||
        machine_launch(vm, kernel, &launch, params, sizeof params) != PTXVM_OK)
        FAIL("%s", machine_last_error(vm));
    uint8_t *actual = malloc(bytes + 1);
    if (CHECK(actual && machine_read(vm, actual, y, bytes) == PTXVM_OK))
        CHECK_EQ_MEM(actual, o->expected, bytes);
    free(actual);
    machine_destroy(vm);
}

DEVICE_ROWS(ParityTwins, Products, cases)
{
    if (!nvrtc_found())
        SKIP("there is no NVRTC");
    const product_case c = product_of(&cases[index]);
    product_operands o;
    char *ptx = compile(&cases[index]);
    if (ptx && product_operands_make(&c, &o)) {
        run_twin(&cases[index], ptx, &o);
        product_operands_free(&o);
    }
    free(ptx);
    qdnnHandle_t handle = device_begin("sm_80", 0, "all");
    if (handle)
        product_run(handle, &c, BUFFER_BANDS);
    device_end(handle);
}
