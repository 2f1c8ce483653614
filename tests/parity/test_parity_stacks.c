/* Products that are more than one kernel, against host_ref: stacks of experts and LoRA, in every format; and the law, that
 * dequantize followed by the product with plain weights gives the same bits. */
#include <stdio.h>

#include "parity/matmul.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}
#define PICK(state, list) ((list)[next(state) % LENGTH(list)])

/* The law: fused equals dequantize to f32 followed by the product on plain f32 weights, bit for bit. Both are compared with
 * the same bytes. */
DEVICE_EACH(ParityLaw, EqualsDequantizeThenPlainProduct, matmul_row_count, matmul_row_name)
{
    const kernel_row *row = matmul_row_at(index);
    qdnnHandle_t handle = device_begin(sms[(index + 1) % LENGTH(sms)], 0, "memory");
    bool alive = handle != NULL;
    for (int i = 0; i < 4 && alive; i++) {
        product_case c = matmul_case_at(row, 100 + i);
        alive = product_run(handle, &c, BUFFER_EXACT) && product_run_in_two(handle, &c, BUFFER_EXACT);
    }
    device_end(handle);
}

/* A stack of experts: each row by the product of its expert, or NaN. */
static product_case stack_at(const kernel_row *row, int trial)
{
    static const int64_t experts[] = {1, 2, 3, 8, 40}, ms[] = {1, 2, 5, 17, 40, 65};
    product_case c = matmul_case_at(row, 200 + trial);
    uint32_t state = (uint32_t)trial * 77u + c.seed;
    c.experts = PICK(&state, experts);
    c.m = trial == 0 ? 0 : PICK(&state, ms);
    c.rows = trial % 3 == 2 ? (int64_t)(next(&state) % (uint32_t)(c.m + 1)) : -1;
    c.one_expert = trial % 4 == 1;
    c.row_weight = trial % 2;
    if (c.experts == 40) /* host_ref takes its time */
        c.weights.dims[c.k_rows] = c.gated ? 6 : 3;
    return c;
}

DEVICE_EACH(ParityStacks, StacksOfExperts, matmul_row_count, matmul_row_name)
{
    const kernel_row *row = matmul_row_at(index);
    qdnnHandle_t handle = device_begin(sms[(index + 2) % LENGTH(sms)], index, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < 6 && alive; i++) {
        product_case c = stack_at(row, i);
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
    }
    device_end(handle);
}

/* Several rows of y have the same row of x: the slots of a token. */
static product_case slots_at(const kernel_row *row, int trial)
{
    static const int64_t slots[] = {2, 3, 8, 4};
    product_case c = stack_at(row, trial + 1);
    c.slots = slots[trial % LENGTH(slots)];
    c.m = (c.m + c.slots - 1) / c.slots * c.slots;
    c.rows = trial % 2 ? c.m - c.slots / 2 : -1; /* they may end within a token */
    return c;
}

DEVICE_EACH(ParityStacks, SlotsShareRowsOfX, matmul_row_count, matmul_row_name)
{
    const kernel_row *row = matmul_row_at(index);
    qdnnHandle_t handle = device_begin(sms[(index + 1) % LENGTH(sms)], index, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < 4 && alive; i++) {
        product_case c = slots_at(row, i);
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
    }
    device_end(handle);
}

/* Few rows for each expert, with weights along K: the kernel that streams them serves many formats. */
static product_case few_at(const kernel_row *row, int trial)
{
    static const int64_t ms[] = {1, 5, 16, 30, 61}, experts[] = {1, 3, 8, 5, 4};
    product_case c = matmul_case_at(row, 400 + trial);
    c.weights = (quant_case){.row = row,
                             .spec = kernel_spec_default(),
                             .granularity = QDNN_GRANULARITY_GROUP,
                             .extent = 32,
                             .rank = 2,
                             .dims = {c.gated ? 34 : 17, trial % 2 ? 512 : 768},
                             .seed = (uint32_t)trial + 1};
    if (!kernel_takes(row, "groups")) {
        c.weights.granularity = QDNN_GRANULARITY_TENSOR;
        c.weights.extent = 0;
    }
    c.k_rows = false;
    c.m = ms[trial % LENGTH(ms)];
    c.rows = trial % 3 == 2 ? c.m / 2 : -1;
    c.experts = experts[trial % LENGTH(experts)];
    c.one_expert = trial % 4 == 3;
    c.row_weight = trial % 2;
    if (c.m % 5 == 0)
        c.slots = 5;
    return c;
}

static bool is_streamed(const kernel_row *row, const product_case *c)
{
    const kernel_row *product = kernel_find_operation(KERNEL_MATMUL, row->format);
    kernel_spec spec = c->weights.spec;
    spec.stored.group_size = 32;
    spec.product.kernel = KERNEL_PRODUCT_GEMV;
    spec.product.grouped = 1;
    kernel_problem problem = {.rows = 17, .columns = (uint64_t)c->weights.dims[1], .m = (uint64_t)c->m};
    return kernel_product_fits(product, &spec, &problem);
}

DEVICE_EACH(ParityStacks, FewRowsOfEachExpert, matmul_row_count, matmul_row_name)
{
    const kernel_row *row = matmul_row_at(index);
    qdnnHandle_t handle = device_begin(sms[(index + 4) % LENGTH(sms)], index, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < 5 && alive; i++) {
        product_case c = few_at(row, i);
        if (is_streamed(row, &c))
            c.choice = "kernel gemv";
        alive = product_run(handle, &c, BUFFER_EXACT);
    }
    device_end(handle);
}

TEST_CASE(ParityStacks, ManyFormatsAreStreamed)
{
    int streamed = 0;
    for (int i = 0; i < matmul_row_count(); i++) {
        product_case c = few_at(matmul_row_at(i), 1);
        streamed += is_streamed(matmul_row_at(i), &c);
    }
    CHECK(streamed >= 15);
}

/* More rows than the block that sorts has threads, more experts than a warp has lanes, and warps in many orders. */
DEVICE_CASE(ParityStacks, ManyRowsAndExperts)
{
    enum { ORDERS = 12 };
    const kernel_row *row = kernel_find("dequantize_int4");
    for (int i = 0; i < ORDERS; i++) {
        product_case c = {.weights = {.row = row,
                                      .spec = kernel_spec_default(),
                                      .granularity = QDNN_GRANULARITY_GROUP,
                                      .extent = 8,
                                      .rank = 2,
                                      .dims = {3, 16},
                                      .seed = 5},
                          .rows = i % 3 == 1 ? 1029 : -1,
                          .m = 1300,
                          .x = QDNN_DATA_F32,
                          .y = QDNN_DATA_F32,
                          .seed = (uint32_t)i + 1,
                          .algorithm = QDNN_MATMUL_AUTO,
                          .experts = i % 4 == 3 ? 1 : 70,
                          .one_expert = i % 4 == 2,
                          .row_weight = true};
        qdnnHandle_t handle = device_begin(sms[i % LENGTH(sms)], i, "all");
        bool alive = handle && product_run(handle, &c, BUFFER_EXACT);
        device_end(handle);
        REQUIRE(alive);
    }
}

static product_case lora_at(const kernel_row *row, int trial)
{
    static const int64_t ranks[] = {1, 4, 16, 33};
    static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
    product_case c = matmul_case_at(row, 300 + trial);
    uint32_t state = (uint32_t)trial * 99u + c.seed;
    c.lora_rank = PICK(&state, ranks);
    c.lora_type = PICK(&state, types);
    c.row_weight = trial % 2;
    return c;
}

DEVICE_EACH(ParityLora, HostRef, matmul_row_count, matmul_row_name)
{
    const kernel_row *row = matmul_row_at(index);
    qdnnHandle_t handle = device_begin(sms[(index + 3) % LENGTH(sms)], index, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < 4 && alive; i++) {
        product_case c = lora_at(row, i);
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
    }
    device_end(handle);
}

/* Many rows with few tiles: lanes of all three products are dealt out among blocks, and their sums share the workspace; then
 * fewer rows than the plan has, which lie closer together there. */
DEVICE_CASE(ParityLora, LanesAreDealtOut)
{
    qdnnHandle_t handle = device_begin("sm_80", 3, "all");
    for (int i = 0; i < 4 && handle; i++) {
        product_case c = {.weights = {.row = kernel_find("dequantize_int4"),
                                      .spec = kernel_spec_default(),
                                      .granularity = QDNN_GRANULARITY_GROUP,
                                      .extent = 32,
                                      .rank = 2,
                                      .dims = {i == 3 ? 48 : 24, 288},
                                      .seed = 5},
                          .rows = i == 1 ? 33 : -1,
                          .m = i == 2 ? 7 : 70,
                          .x = QDNN_DATA_F16,
                          .y = QDNN_DATA_F32,
                          .bias = QDNN_DATA_F32,
                          .alpha = QDNN_ALPHA_COLUMN,
                          .gated = i == 3,
                          .activation = QDNN_ACTIVATION_SILU,
                          .residual = true,
                          .seed = (uint32_t)i + 1,
                          .algorithm = QDNN_MATMUL_EXACT,
                          .choice = i == 2 ? "kernel gemv" : "kernel lanewise",
                          .lora_rank = i == 0 ? 16 : 12,
                          .lora_type = QDNN_DATA_F16};
        REQUIRE(product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS));
    }
    device_end(handle);
}
