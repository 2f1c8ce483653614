/* Plans for millions of rows: a launch has at most 65,535 blocks along y and z, so kernels with rows there
 * must loop, or the plan is refused with an error that names the limit. Nothing is executed. */
#include "scene.h"

enum { N = 64, K = 128, BLOCKS_MAX = 65535 };
static const int64_t millions = 10000000;

static qdnnHandle_t handle;
static qdnnTensorDescriptor_t x, w, y;
static qdnnPlan_t plan;

static void begin(void)
{
    vm_begin("PTXVM_SM=sm_90");
    plan = NULL;
    OK(qdnnCreate(&handle));
    OK(qdnnCreateTensorDescriptor(&x));
    OK(qdnnCreateTensorDescriptor(&w));
    OK(qdnnCreateTensorDescriptor(&y));
}

static void end(void)
{
    OK(qdnnDestroyPlan(plan));
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTensorDescriptor(w));
    OK(qdnnDestroyTensorDescriptor(y));
    OK(qdnnDestroy(handle));
    vm_end();
}

static void set_matrix(qdnnTensorDescriptor_t t, qdnnDataType_t type, int64_t rows, int64_t columns)
{
    OK(qdnnSetTensorDescriptor(t, type, 2, (const int64_t[]){rows, columns}, NULL));
}

/* `most` is the largest number of rows that one plan takes; 0: ten million and more. */
static void check_rows(qdnnStatus_t create(int64_t rows), int64_t most)
{
    char words[80];
    if (most == 0) {
        OK(create(millions));
        return;
    }
    snprintf(words, sizeof words, "one plan takes at most %lld rows", (long long)most);
    CHECK_STATUS_IS(create(millions), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK_HAS(last_sentence(), words);
    CHECK_STATUS_IS(create(most + 1), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK_HAS(last_sentence(), words);
    OK(create(most));
}

/* ---- Products ---- */

typedef struct product {
    const char *name;
    qdnnWeights_t weights;
    int64_t extent, experts;
    bool k_rows, tensor, prepacked;
    int64_t most;
} product;

static const product products[] = {
    {"exact", QDNN_WEIGHTS_NF4_BYTES, 64, 0, false, false, false, 0},
    {"exact_blocks", QDNN_WEIGHTS_GGUF_Q4_0, 0, 0, false, false, false, 0},
    {"exact_columns", QDNN_WEIGHTS_F16, 0, 0, true, false, false, 0},
    {"exact_experts", QDNN_WEIGHTS_NF4_BYTES, 64, 4, false, false, false, 0},
    {"exact_a_few_rows_per_expert", QDNN_WEIGHTS_NF4_BYTES, 64, 1 << 20, false, false, false, 0},
    {"tensor", QDNN_WEIGHTS_NF4_BYTES, 64, 0, false, true, false, 0},
    {"tensor_experts", QDNN_WEIGHTS_NF4_BYTES, 64, 4, false, true, false, 0},
    {"prepacked_4_bits", QDNN_WEIGHTS_NF4_BYTES, 64, 0, false, true, true, INT64_C(64) * BLOCKS_MAX},
    {"prepacked_16_bits", QDNN_WEIGHTS_F16, 0, 0, false, true, true, INT64_C(64) * BLOCKS_MAX},
    {"prepacked_experts", QDNN_WEIGHTS_NF4_BYTES, 64, 4, false, true, true, 0},
};

static const product *current;
static qdnnMatmulDescriptor_t matmul;
static qdnnQuantDescriptor_t quant;

static qdnnStatus_t create_product(int64_t rows)
{
    const qdnnDataType_t type = current->tensor ? QDNN_DATA_F16 : QDNN_DATA_F32;
    set_matrix(x, type, rows, K);
    set_matrix(y, type, rows, N);
    return qdnnCreateMatmulPlan(handle, matmul, x, w, quant, y, &plan);
}

TEST_ROWS(ApiManyRows, Products, products)
{
    NEED_PTXVM;
    const product *p = current = &products[index];
    const int64_t dims[] = {p->experts, p->k_rows ? K : N, p->k_rows ? N : K};
    begin();
    OK(qdnnCreateMatmulDescriptor(&matmul));
    OK(qdnnCreateQuantDescriptor(&quant));
    OK(qdnnSetQuantWeights(quant, p->weights, p->extent));
    OK(qdnnSetTensorDescriptor(w, p->tensor ? QDNN_DATA_F16 : QDNN_DATA_F32, p->experts ? 3 : 2,
                               p->experts ? dims : dims + 1, NULL));
    OK(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ALGORITHM,
                              p->tensor ? QDNN_MATMUL_TENSOR : QDNN_MATMUL_EXACT));
    OK(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_TRANSPOSE_W, !p->k_rows));
    OK(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_EXPERTS, p->experts));
    OK(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_PREPACKED, p->prepacked));
    check_rows(create_product, p->most);
    OK(qdnnDestroyMatmulDescriptor(matmul));
    OK(qdnnDestroyQuantDescriptor(quant));
    end();
}

/* ---- Integer products ---- */

typedef struct integer_product {
    const char *name;
    qdnnDataType_t x, w, y;
    int64_t n, k;
    int64_t most;
} integer_product;

/* Groups of 32, unless the whole row is one. Rows of 2^17 nibbles and more are summed by dp4a, four rows per
 * block. */
static const integer_product integer_products[] = {
    {"w8a8", QDNN_DATA_I8, QDNN_DATA_I8, QDNN_DATA_F32, 2 * N, K, INT64_C(128) * BLOCKS_MAX},
    {"w8a8_few_columns", QDNN_DATA_I8, QDNN_DATA_I8, QDNN_DATA_F32, N, K, INT64_C(64) * BLOCKS_MAX},
    {"w4a8", QDNN_DATA_I8, QDNN_DATA_I4, QDNN_DATA_F32, 2 * N, K, INT64_C(64) * BLOCKS_MAX},
    {"w4a4", QDNN_DATA_I4, QDNN_DATA_I4, QDNN_DATA_F32, 2 * N, K, INT64_C(128) * BLOCKS_MAX},
    {"w4a4_long", QDNN_DATA_I4, QDNN_DATA_I4, QDNN_DATA_F32, N, 1 << 17, INT64_C(4) * BLOCKS_MAX},
    {"qmatmul", QDNN_DATA_U8, QDNN_DATA_I8, QDNN_DATA_U8, 2 * N, K, INT64_C(128) * BLOCKS_MAX},
};

static const integer_product *current_integer;
static qdnnIntegerDescriptor_t integer;

static qdnnStatus_t create_integer_product(int64_t rows)
{
    set_matrix(x, current_integer->x, rows, current_integer->k);
    set_matrix(y, current_integer->y, rows, current_integer->n);
    return qdnnCreateIntegerMatmulPlan(handle, integer, x, w, y, &plan);
}

TEST_ROWS(ApiManyRows, IntegerProducts, integer_products)
{
    NEED_PTXVM;
    current_integer = &integer_products[index];
    begin();
    OK(qdnnCreateIntegerDescriptor(&integer));
    set_matrix(w, current_integer->w, current_integer->n, current_integer->k);
    check_rows(create_integer_product, current_integer->most);
    OK(qdnnDestroyIntegerDescriptor(integer));
    end();
}

/* A convolution has its rows, the positions of y, along x. */
TEST_CASE(ApiManyRows, Convolutions)
{
    NEED_PTXVM;
    begin();
    OK(qdnnCreateIntegerDescriptor(&integer));
    OK(qdnnSetTensorDescriptor(x, QDNN_DATA_U8, 4, (const int64_t[]){10, 16, 1000, 1000}, NULL));
    OK(qdnnSetTensorDescriptor(w, QDNN_DATA_I8, 4, (const int64_t[]){N, 16, 1, 1}, NULL));
    OK(qdnnSetTensorDescriptor(y, QDNN_DATA_U8, 4, (const int64_t[]){10, N, 1000, 1000}, NULL));
    OK(qdnnCreateIntegerConvPlan(handle, integer, x, w, y, &plan));
    OK(qdnnDestroyIntegerDescriptor(integer));
    end();
}

/* ---- Matrices of codes ---- */

static const struct {
    const char *name;
    qdnnLayout_t layout;
    qdnnGroups_t groups;
} layouts[] = {
    {"bytes", QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT},
    {"bytes_groups_down_columns", QDNN_LAYOUT_BYTES, QDNN_GROUPS_COLUMNS},
    {"interleaved", QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_GROUPS_COLUMNS},
    {"words", QDNN_LAYOUT_WORDS_ROWS, QDNN_GROUPS_ROWS},
    {"awq", QDNN_LAYOUT_AWQ, QDNN_GROUPS_COLUMNS},
};

typedef qdnnStatus_t create_fn(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnQuantDescriptor_t, qdnnPlan_t *);

/* Many rows, and as many columns: neither is limited. */
TEST_ROWS(ApiManyRows, Codes, layouts)
{
    NEED_PTXVM;
    static create_fn *const creators[] = {qdnnCreateScalePlan, qdnnCreateQuantizePlan,
                                          qdnnCreateDequantizePlan};
    begin();
    OK(qdnnCreateQuantDescriptor(&quant));
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_LAYOUT, layouts[index].layout));
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_GROUPS, layouts[index].groups));
    for (int wide = 0; wide < 2; wide++) {
        set_matrix(x, QDNN_DATA_F16, wide ? K : millions, wide ? millions : K);
        for (int i = 0; i < 3; i++) {
            qdnnPlan_t of_codes = NULL;
            OK(creators[i](handle, x, quant, &of_codes));
            OK(qdnnDestroyPlan(of_codes));
        }
    }
    OK(qdnnDestroyQuantDescriptor(quant));
    end();
}
