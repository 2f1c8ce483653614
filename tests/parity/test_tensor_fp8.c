/* FP8 with FP8 in mode tensor, against host_ref: sm_89 (measured) and sm_120 (published) by their instructions for FP8, sm_75
 * and 80 (published), sm_90 and 100 (measured) as f16. Types of both factors, shapes that are multiples of nothing, rows that
 * lie apart, both orders of weights, as stored and prepacked, everything that follows the sum, experts, and x quantized in the
 * plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/product_case.h"
#include "formats/kernel_data.h"
#include "formats/sample.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
    const char *sm, *standing;
} families[] = {{"sm_75", "published"}, {"sm_80", "published"}, {"sm_89", "measured"},
                {"sm_90", "measured"},  {"sm_100", "measured"}, {"sm_120", "published"}};

static const qdnnDataType_t fp8[] = {QDNN_DATA_F8E4M3, QDNN_DATA_F8E5M2};

/* clang-format off */
static const struct {
    int64_t m, n, k, x_gap;
    bool k_rows;
    size_t shift;
    data_kind kind;
} shapes[] = {
    {5, 40, 608, 0, false, 0, DATA_NORMAL},     /* more than a strip, by pieces */
    {19, 21, 77, 0, false, 1, DATA_NORMAL},     /* one by one */
    {130, 136, 144, 16, false, 0, DATA_NORMAL}, /* several tiles */
    {33, 72, 544, 3, true, 0, DATA_NORMAL},     /* [K, N], one by one */
    {8, 16, 96, 0, false, 0, DATA_SPECIAL},     /* NaN and infinity */
    {1, 3, 1, 0, false, 0, DATA_SUBNORMAL},
    {2, 5, 0, 0, false, 0, DATA_NORMAL},        /* sums of +0, times scales */
    {5, 160, 144, 16, true, 0, DATA_NORMAL},    /* [K, N], by pieces: two tiles of gated pairs */
    {35, 48, 528, 0, true, 0, DATA_NORMAL},     /* more than a strip of it */
};
/* clang-format on */

static product_case case_at(int shape, qdnnDataType_t x, qdnnDataType_t w, const char *sm)
{
    product_case c = {
        .weights = {.row = kernel_find(w == QDNN_DATA_F8E4M3 ? "dequantize_e4m3" : "dequantize_e5m2"),
                    .spec = kernel_spec_default(),
                    .granularity = QDNN_GRANULARITY_NONE,
                    .rank = 2,
                    .seed = (uint32_t)shape + 3},
        .rows = shape == 2 ? 70 : -1,
        .x = x,
        .y = shape % 2 ? QDNN_DATA_F32 : QDNN_DATA_F16,
        .m = shapes[shape].m,
        .x_gap = shapes[shape].x_gap,
        .y_gap = shape % 3,
        .k_rows = shapes[shape].k_rows,
        .alpha = QDNN_ALPHA_COLUMN,
        .bias = shape % 2 ? QDNN_DATA_F16 : 0,
        .activation = shape == 3 ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE,
        .gated = shape == 3 || shape == 7,
        .residual = shape == 0,
        .kind = shapes[shape].kind,
        .seed = (uint32_t)shape + 11,
        .algorithm = QDNN_MATMUL_TENSOR,
        .sm = device_sm_number(sm),
        .shift = shapes[shape].shift,
        .x_scale = shape != 1};
    c.weights.dims[c.k_rows] = shapes[shape].n;
    c.weights.dims[!c.k_rows] = shapes[shape].k;
    return c;
}

static int case_count(void)
{
    return LENGTH(families) * 4;
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_e%s_e%s", families[index / 4].sm, families[index / 4].standing,
             index % 2 ? "5m2" : "4m3", index / 2 % 2 ? "5m2" : "4m3");
}

/* As plans say it: of instructions for FP8 where the SM has them. */
static const char *standing_of(int sm)
{
    static const char *const names[] = {[REF_STANDING_MEASURED] = "measured",
                                        [REF_STANDING_PUBLISHED] = "published",
                                        [REF_STANDING_ASSUMED] = "assumed"};
    return names[ref_tensor_standing(sm, ref_tensor_has(sm, QDNN_DATA_F8E4M3) ? QDNN_DATA_F8E4M3
                                                                              : QDNN_DATA_F16)];
}

DEVICE_EACH(TensorFp8, HostRef, case_count, case_name)
{
    const char *sm = families[index / 4].sm;
    NEED_SM(sm);
    qdnnHandle_t handle = device_begin(sm, index % 3, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < LENGTH(shapes) && alive; i++) {
        product_case c = case_at(i, fp8[index % 2], fp8[index / 2 % 2], sm);
        c.choice = standing_of(device_sm_number(sm));
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
        c.prepacked = true;
        c.shift = 0; /* units are aligned */
        if ((index + i) % 2 || sample_is_full())
            alive = alive && product_run(handle, &c, i % 2 ? BUFFER_BANDS : BUFFER_EXACT);
    }
    device_end(handle);
}

/* Each code of x with each code of the weights, by themselves: by pieces, and one by one; as stored or prepacked. */
static bool every_code(qdnnHandle_t handle, product_case *c, bool prepacked)
{
    product_operands o;
    const int64_t k = c->weights.dims[1];
    bool alive = product_operands_make(c, &o);
    for (int64_t i = 0; i < 256 * k && alive; i++) {
        o.host[QDNN_OPERAND_X][i] = i % k ? 0 : (uint8_t)(i / k);
        o.host[QDNN_OPERAND_CODES][i] = i % k ? 0 : (uint8_t)(i / k);
    }
    if (alive) {
        const ref_product_arrays arrays = product_arrays(&o, o.expected);
        ref_product_tensor_on(&o.product, &arrays, c->sm);
        if (prepacked)
            product_prepack(c, &o);
        c->prepacked = prepacked;
        alive = product_run_operands(handle, c, BUFFER_EXACT, &o);
    }
    product_operands_free(&o);
    return alive;
}

DEVICE_CASE(TensorFp8, EveryCode)
{
    for (int i = 0; i < LENGTH(families); i++) {
        qdnnHandle_t handle = device_begin(families[i].sm, i, "none");
        bool alive = handle != NULL;
        for (int trial = 0; trial < 2 && alive; trial++) {
            product_case c = case_at(0, fp8[(trial + i) % 2], fp8[trial], families[i].sm);
            c.m = c.weights.dims[0] = 256;
            c.weights.dims[1] = trial == i % 2 ? 16 : 1;
            c.alpha = QDNN_ALPHA_NONE;
            c.x_scale = c.residual = false;
            c.y = QDNN_DATA_F32;
            alive = every_code(handle, &c, false);
            alive = alive && every_code(handle, &c, true);
        }
        device_end(handle);
    }
}

/* ---- Prepacking by plans ---- */

enum { PACK_N = 21, PACK_K = 77, PACKED_BYTES = 2 * 16 * 2 * 64 };

typedef struct pack_scene {
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t w;
    qdnnQuantDescriptor_t quant;
    void *codes, *packed; /* of the device */
} pack_scene;

static void pack_begin(pack_scene *s, qdnnHandle_t handle, qdnnDataType_t type)
{
    CHECK_QDNN(qdnnCreateMatmulDescriptor(&s->matmul));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&s->w));
    CHECK_QDNN(qdnnCreateQuantDescriptor(&s->quant));
    CHECK_QDNN(qdnnSetTensorDescriptor(s->w, type, 2, (const int64_t[]){PACK_N, PACK_K}, NULL));
    CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_STORAGE, QDNN_DATA_F8E4M3));
    CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_NONE));
    CHECK_QDNN(qdnnMalloc(handle, &s->codes, PACK_N * PACK_K));
    CHECK_QDNN(qdnnMalloc(handle, &s->packed, PACKED_BYTES));
}

static void pack_end(pack_scene *s, qdnnHandle_t handle)
{
    qdnnFree(handle, s->codes);
    qdnnFree(handle, s->packed);
    qdnnDestroyQuantDescriptor(s->quant);
    qdnnDestroyTensorDescriptor(s->w);
    qdnnDestroyMatmulDescriptor(s->matmul);
}

/* There, or back. */
static void pack_run(const pack_scene *s, qdnnHandle_t handle, bool back)
{
    const qdnnBinding_t both[] = {
        {.operand = QDNN_OPERAND_CODES, .pointer = s->codes, .bytes = PACK_N * PACK_K},
        {.operand = QDNN_OPERAND_REPACKED, .pointer = s->packed, .bytes = PACKED_BYTES}};
    qdnnPlan_t plan = NULL;
    if (CHECK_QDNN(
            (back ? qdnnCreateUnpackPlan : qdnnCreatePrepackPlan)(handle, s->matmul, s->w, s->quant, &plan)))
        CHECK_QDNN(qdnnExecute(handle, plan, both, 2, NULL, 0));
    qdnnDestroyPlan(plan);
}

/* The shape of the weights may be given as that of FP8, as products with x in FP8 take it. */
DEVICE_CASE(TensorFp8, PrepackedByAPlan)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_F8E4M3, QDNN_DATA_F16};
    const ref_quant_spec spec = {
        .storage = QDNN_DATA_F8E4M3, .data = QDNN_DATA_F16, .no_scale = true, .group_size = 1};
    uint8_t codes[PACK_N * PACK_K], packed[PACKED_BYTES], actual[PACKED_BYTES];
    fill_bytes(5, codes, sizeof codes);
    ref_prepack(&spec, PACK_N, PACK_K, false, codes, packed);
    qdnnHandle_t handle = device_begin("sm_120", 0, "all");
    for (int i = 0; i < LENGTH(types) && handle; i++) {
        pack_scene s = {0};
        pack_begin(&s, handle, types[i]);
        CHECK_QDNN(qdnnCopyToDevice(handle, s.codes, codes, sizeof codes));
        pack_run(&s, handle, false);
        CHECK_QDNN(qdnnCopyToHost(handle, actual, s.packed, sizeof packed));
        CHECK_EQ_MEM(actual, packed, sizeof packed);
        memset(actual, 0xA5, sizeof actual);
        CHECK_QDNN(qdnnCopyToDevice(handle, s.codes, actual, sizeof codes));
        pack_run(&s, handle, true);
        CHECK_QDNN(qdnnCopyToHost(handle, actual, s.codes, sizeof codes));
        CHECK_EQ_MEM(actual, codes, sizeof codes);
        pack_end(&s, handle);
    }
    device_end(handle);
}

/* Every batch of 1 to 70 rows: host_ref takes row by row. */
DEVICE_CASE(TensorFp8, RowsDoNotDependOnTheBatch)
{
    static const char *const sms[] = {"sm_89", "sm_80"};
    for (int i = 0; i < LENGTH(sms); i++) {
        qdnnHandle_t handle = device_begin(sms[i], i, "none");
        bool alive = handle != NULL;
        for (int m = 1; m <= 70 && alive; m += i ? 9 : 1) {
            product_case c = case_at(0, QDNN_DATA_F8E4M3, QDNN_DATA_F8E4M3, sms[i]);
            c.m = m;
            c.weights.dims[0] = 9;
            c.weights.dims[1] = 144;
            c.prepacked = m % 2;
            alive = product_run(handle, &c, BUFFER_EXACT);
        }
        device_end(handle);
    }
}

/* Experts, and x quantized per token in the same plan: packed rows of any length, of every type. */
static const qdnnDataType_t plain[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};

DEVICE_CASE(TensorFp8, ExpertsAndQuantizedRows)
{
    for (int i = 0; i < LENGTH(families); i++) {
        qdnnHandle_t handle = device_begin(families[i].sm, i, "all");
        bool alive = handle != NULL;
        for (int trial = 0; trial < 3 && alive; trial++) {
            product_case c = case_at(trial ? 3 : 0, fp8[(i + trial) % 2], fp8[trial % 2], families[i].sm);
            c.m = 37;
            c.experts = trial < 2 ? 3 : 0;
            if (c.experts && i % 2 == trial)
                c.m = 36, c.slots = 4;
            c.one_expert = trial == 1 && i % 2;
            c.row_weight = i % 2;
            c.prepacked = (i + trial) % 2;
            if (trial > 0) {
                c.quantize_x = c.x;
                c.x = plain[(i + trial) % 3];
                c.x_scale = false;
                c.x_gap = 0;
                c.weights.dims[!c.k_rows] = trial == 1 ? 64 : 77;
            }
            alive = product_run(handle, &c, trial % 2 ? BUFFER_EXACT : BUFFER_BANDS);
        }
        device_end(handle);
    }
}

/* ---- What is chosen, and what is refused ---- */

typedef struct attempt {
    qdnnDataType_t x, w; /* of tensors; of codes */
    qdnnGranularity_t granularity;
    int64_t k, x_stride;
    struct {
        qdnnMatmulAttribute_t attribute;
        int64_t value;
    } set[3];
    qdnnStatus_t status;
    const char *part; /* of the error, or of what was chosen */
} attempt;

static bool is_plain(qdnnDataType_t type)
{
    return type != QDNN_DATA_F8E4M3 && type != QDNN_DATA_F8E5M2;
}

/* Rows that are quantized in the plan are all of them: none can be left out. */
static void try(qdnnHandle_t handle, const attempt *a)
{
    qdnnMatmulDescriptor_t matmul = NULL;
    qdnnTensorDescriptor_t x = NULL, w = NULL, y = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    char text[512];
    CHECK_QDNN(qdnnCreateMatmulDescriptor(&matmul));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&x));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&w));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&y));
    CHECK_QDNN(qdnnCreateQuantDescriptor(&quant));
    CHECK_QDNN(
        qdnnSetTensorDescriptor(x, a->x, 2, (const int64_t[]){3, a->k}, (const int64_t[]){a->x_stride, 1}));
    CHECK_QDNN(qdnnSetTensorDescriptor(w, a->w == QDNN_DATA_I4 ? QDNN_DATA_F16 : a->w, 2,
                                       (const int64_t[]){8, a->k}, NULL));
    CHECK_QDNN(qdnnSetTensorDescriptor(y, QDNN_DATA_F16, 2, (const int64_t[]){3, 8}, NULL));
    CHECK_QDNN(qdnnSetQuantAttribute(quant, QDNN_QUANT_STORAGE, a->w));
    CHECK_QDNN(qdnnSetQuantAttribute(quant, QDNN_QUANT_GRANULARITY, a->granularity));
    CHECK_QDNN(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_TENSOR));
    for (int i = 0; i < LENGTH(a->set) && a->set[i].value >= 0; i++)
        CHECK_QDNN(qdnnSetMatmulAttribute(matmul, a->set[i].attribute, a->set[i].value));
    CHECK_EQ_STR(qdnnGetErrorString(qdnnCreateMatmulPlan(handle, matmul, x, w, quant, y, &plan)),
                 qdnnGetErrorString(a->status));
    qdnnGetLastErrorString(text, sizeof text);
    if (plan) {
        CHECK_QDNN(qdnnGetPlanInfo(plan, &info));
        CHECK_EQ_STR(
            qdnnGetErrorString(qdnnExecuteRows(handle, plan, 4, NULL, 0, NULL, 0)),
            qdnnGetErrorString(is_plain(a->x) ? QDNN_STATUS_BAD_PARAM : QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND));
    }
    CHECK_HAS(plan ? info.choice : text, a->part);
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(quant);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(w);
    qdnnDestroyTensorDescriptor(y);
    qdnnDestroyMatmulDescriptor(matmul);
}

#define E4M3 QDNN_DATA_F8E4M3
#define E5M2 QDNN_DATA_F8E5M2
#define NONE QDNN_GRANULARITY_NONE
#define END                                                                                                  \
    {                                                                                                        \
        QDNN_MATMUL_ALGORITHM, -1                                                                            \
    }

DEVICE_CASE(TensorFp8, PlansSayWhatTheyDo)
{
    /* clang-format off */
    static const attempt attempts[] = {
        {E4M3, E5M2, NONE, 16, 16, {END}, QDNN_STATUS_SUCCESS,
         "on sm_89, by its instructions for FP8; the model is measured; as asked for; kernel tile"},
        {E5M2, E4M3, NONE, 16, 20, {{QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_AUTO}, END},
         QDNN_STATUS_SUCCESS, "the model is measured; AUTO; kernel tile"},
        {E4M3, E4M3, NONE, 0, 16, {{QDNN_MATMUL_X_SCALE, 1}, END}, QDNN_STATUS_SUCCESS, "sm_89"},
        {QDNN_DATA_F32, E4M3, NONE, 16, 16, {{QDNN_MATMUL_QUANTIZE_X, E5M2}, END}, QDNN_STATUS_SUCCESS, "sm_89"},
        {E4M3, E4M3, NONE, 16, 16, {{QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT}, END}, QDNN_STATUS_NOT_SUPPORTED,
         "x is f8e4m3; fix: set QDNN_MATMUL_ALGORITHM to QDNN_MATMUL_TENSOR or QDNN_MATMUL_AUTO"},
        {QDNN_DATA_F32, E4M3, NONE, 16, 16, {{QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT}, {QDNN_MATMUL_QUANTIZE_X, E4M3}, END},
         QDNN_STATUS_NOT_SUPPORTED, "x is to be quantized to f8e4m3; fix: set"},
        {E4M3, QDNN_DATA_I4, NONE, 16, 16, {END}, QDNN_STATUS_NOT_SUPPORTED, "the weights must be e4m3 or e5m2"},
        {E4M3, E4M3, QDNN_GRANULARITY_TENSOR, 16, 16, {END}, QDNN_STATUS_NOT_SUPPORTED,
         "the weights must have no scales"},
        {E4M3, E4M3, NONE, 16, 16, {{QDNN_MATMUL_PREPACKED, 1}, END}, QDNN_STATUS_SUCCESS,
         "on sm_89, by its instructions for FP8; the model is measured; as asked for; kernel stream with tiles of 4 rows"},
        {E4M3, E4M3, NONE, 16, 16, {{QDNN_MATMUL_LORA_RANK, 4}, END}, QDNN_STATUS_NOT_SUPPORTED,
         "fix: LoRA takes x in f16 or bf16"},
        {QDNN_DATA_F16, E4M3, NONE, 16, 16, {{QDNN_MATMUL_X_SCALE, 1}, END}, QDNN_STATUS_NOT_SUPPORTED,
         "QDNN_MATMUL_X_SCALE is 1, and x is f16"},
        {E4M3, E4M3, NONE, 16, 16, {{QDNN_MATMUL_QUANTIZE_X, E4M3}, END}, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
         "x is f8e4m3 already"},
        {QDNN_DATA_F16, E4M3, NONE, 16, 16, {{QDNN_MATMUL_QUANTIZE_X, E4M3}, {QDNN_MATMUL_X_SCALE, 1}, END},
         QDNN_STATUS_BAD_PARAM, "which makes its scales; fix: set it to 0"},
        {QDNN_DATA_F16, E4M3, NONE, 0, 16, {{QDNN_MATMUL_QUANTIZE_X, E4M3}, END}, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
         "K is 0; where x is quantized it must be at least 1"},
        {QDNN_DATA_F16, E4M3, NONE, 16, 24, {{QDNN_MATMUL_QUANTIZE_X, E4M3}, END}, QDNN_STATUS_NOT_SUPPORTED,
         "its strides must be packed"},
    };
    /* clang-format on */
    NEED_SM("sm_89");
    device_launches_nothing();
    qdnnHandle_t handle = device_begin("sm_89", 0, "all");
    for (int i = 0; i < LENGTH(attempts) && handle; i++) {
        test_push_note("attempt %d", i);
        try(handle, &attempts[i]);
        test_pop_note();
    }
    device_end(handle);
}
