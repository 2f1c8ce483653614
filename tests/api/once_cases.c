#include "once_cases.h"

static const int64_t row8[] = {1, 8}, one[] = {1, 1}, vector8[] = {8}, single[] = {1},
                     square[] = {1, 1, 2, 2}, pixel[] = {1, 1, 1, 1}, heads[] = {1, 1, 8};

/* The tensors of a call, and what is created for it; freed together. */
typedef struct parts {
    qdnnTensorDescriptor_t t[4];
    qdnnMatmulDescriptor_t matmul;
    qdnnIntegerDescriptor_t integer;
    qdnnTrainDescriptor_t train;
    qdnnQuantDescriptor_t quant;
    qdnnStatus_t status;
} parts;

static void add_tensor(parts *p, int i, qdnnDataType_t type, int rank, const int64_t *dims)
{
    if (!p->status)
        p->status = qdnnCreateTensorDescriptorOf(&p->t[i], type, rank, dims, NULL);
}

static qdnnStatus_t finish(parts *p, qdnnStatus_t status)
{
    for (int i = 0; i < 4; i++)
        qdnnDestroyTensorDescriptor(p->t[i]);
    qdnnDestroyMatmulDescriptor(p->matmul);
    qdnnDestroyIntegerDescriptor(p->integer);
    qdnnDestroyTrainDescriptor(p->train);
    qdnnDestroyQuantDescriptor(p->quant);
    return status;
}

static qdnnStatus_t matmul(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    const qdnnSetting_t settings[] = {{QDNN_MATMUL_BIAS_TYPE, QDNN_DATA_F32},
                                      {QDNN_MATMUL_ACTIVATION, QDNN_ACTIVATION_RELU}};
    parts p = {0};
    p.status = qdnnCreateQuantDescriptorOfWeights(&p.quant, QDNN_WEIGHTS_F32, 0);
    if (!p.status)
        p.status = qdnnCreateMatmulDescriptorOf(&p.matmul, settings, 2);
    add_tensor(&p, 0, QDNN_DATA_F32, 2, row8);
    add_tensor(&p, 1, QDNN_DATA_F32, 2, one);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateMatmulPlan(h, p.matmul, p.t[0], p.t[0], p.quant, p.t[1], plan)
                           : qdnnMatmulWith(h, p.matmul, p.t[0], p.t[0], p.quant, p.t[1], b, n));
}

static qdnnStatus_t typed(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    const qdnnQuantizedType_t type = {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 0, QDNN_GRANULARITY_NONE, 0};
    parts p = {0};
    p.status = qdnnCreateMatmulDescriptorOf(&p.matmul, NULL, 0);
    add_tensor(&p, 0, QDNN_DATA_F32, 2, row8);
    add_tensor(&p, 1, QDNN_DATA_F32, 2, one);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateTypedMatmulPlan(h, p.matmul, p.t[0], &type, 1, p.t[1], plan)
                           : qdnnTypedMatmulWith(h, p.matmul, p.t[0], &type, 1, p.t[1], b, n));
}

static qdnnStatus_t integer(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    const qdnnSetting_t setting = {QDNN_INTEGER_X_ZERO, 1};
    parts p = {0};
    p.status = qdnnCreateIntegerDescriptorOf(&p.integer, &setting, 1);
    add_tensor(&p, 0, QDNN_DATA_I8, 2, row8);
    add_tensor(&p, 1, QDNN_DATA_I32, 2, one);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateIntegerMatmulPlan(h, p.integer, p.t[0], p.t[0], p.t[1], plan)
                           : qdnnIntegerMatmulWith(h, p.integer, p.t[0], p.t[0], p.t[1], b, n));
}

static qdnnStatus_t dot(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    parts p = {0};
    add_tensor(&p, 0, QDNN_DATA_I4, 1, vector8);
    add_tensor(&p, 1, QDNN_DATA_I32, 1, single);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateIntegerDotPlan(h, p.t[0], p.t[0], p.t[1], plan)
                           : qdnnIntegerDotWith(h, p.t[0], p.t[0], p.t[1], b, n));
}

static qdnnStatus_t top(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    parts p = {0};
    add_tensor(&p, 0, QDNN_DATA_I4, 2, row8);
    add_tensor(&p, 1, QDNN_DATA_I4, 2, (const int64_t[]){2, 8});
    add_tensor(&p, 2, QDNN_DATA_F32, 2, one);
    add_tensor(&p, 3, QDNN_DATA_I32, 2, one);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateIntegerTopPlan(h, p.t[0], p.t[1], p.t[2], p.t[3], plan)
                           : qdnnIntegerTopWith(h, p.t[0], p.t[1], p.t[2], p.t[3], b, n));
}

static qdnnStatus_t conv(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    parts p = {0};
    p.status = qdnnCreateIntegerDescriptorOf(&p.integer, NULL, 0);
    add_tensor(&p, 0, QDNN_DATA_I8, 4, square);
    add_tensor(&p, 1, QDNN_DATA_I32, 4, pixel);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateIntegerConvPlan(h, p.integer, p.t[0], p.t[0], p.t[1], plan)
                           : qdnnIntegerConvWith(h, p.integer, p.t[0], p.t[0], p.t[1], b, n));
}

static qdnnStatus_t norm(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    const qdnnNorm_t layer = {.size = sizeof layer, .kind = QDNN_NORM_LAYER};
    parts p = {0};
    add_tensor(&p, 0, QDNN_DATA_F32, 2, row8);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateNormPlan(h, &layer, p.t[0], p.t[0], NULL, plan)
                           : qdnnNormWith(h, &layer, p.t[0], p.t[0], NULL, b, n));
}

/* One query, two keys. */
static qdnnStatus_t attention(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    const qdnnAttention_t all = {.size = sizeof all, .sees = QDNN_SEES_ALL, .oneSequence = 1};
    const qdnnKvCache_t cache = {
        .size = sizeof cache, .pages = 1, .pageSlots = 2, .heads = 1, .headSize = 8, .type = QDNN_DATA_F32};
    parts p = {0};
    add_tensor(&p, 0, QDNN_DATA_F32, 3, heads);
    if (p.status)
        return finish(&p, p.status);
    return finish(&p, plan ? qdnnCreateAttentionPlan(h, &all, p.t[0], &cache, &cache, p.t[0], plan)
                           : qdnnAttentionWith(h, &all, p.t[0], &cache, &cache, p.t[0], b, n));
}

static qdnnStatus_t lsq_of(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n, int backward)
{
    const qdnnSetting_t setting = {QDNN_TRAIN_BITS, 2};
    parts p = {0};
    p.status = qdnnCreateTrainDescriptorOf(&p.train, &setting, 1);
    add_tensor(&p, 0, QDNN_DATA_F32, 1, vector8);
    if (p.status)
        return finish(&p, p.status);
    if (plan)
        return finish(&p, backward ? qdnnCreateLsqBackwardPlan(h, p.t[0], p.train, plan)
                                   : qdnnCreateLsqPlan(h, p.t[0], p.train, plan));
    return finish(&p, backward ? qdnnLsqBackwardWith(h, p.t[0], p.train, b, n)
                               : qdnnLsqWith(h, p.t[0], p.train, b, n));
}

static qdnnStatus_t lsq(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    return lsq_of(h, plan, b, n, 0);
}

static qdnnStatus_t lsq_backward(qdnnHandle_t h, qdnnPlan_t *plan, const qdnnBinding_t *b, int n)
{
    return lsq_of(h, plan, b, n, 1);
}

static const float x[8] = {1, 2, 3, 4, -1, -2, -3, -4}, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, bias = -2,
                   scale = 1, scales[2] = {1, 0.5f}, sum_of_squares[] = {58}, first_codes[] = {10},
                   steps[8] = {2, 2, 2, 2, -2, -2, -2, -2}, normal[8] = {1, 1, 1, 1, -1, -1, -1, -1},
                   keys[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                   values[16] = {1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3},
                   twos[8] = {2, 2, 2, 2, 2, 2, 2, 2}, clamped[8] = {1, 1, 1, 1, -1, -1, -1, -1},
                   gradient[8] = {1, 0, 0, 0, 1, 0, 0, 0};
static const int8_t codes[8] = {1, 2, 3, 4, -1, -2, -3, -4};
static const int32_t product[] = {60}, nibble_product[] = {40}, window[] = {30};
static const uint32_t linear = 0x00004321, a = 0xCDEF4321, b = 0xFEDC1234,
                      routes[2] = {0x11111111, 0x77777777}, token = 0x11111111;
static const float best[] = {28};

/* clang-format off */
const once_case once_cases[] = {
    {"qdnnMatmulWith", matmul, {{QDNN_OPERAND_X, x, 32}, {QDNN_OPERAND_CODES, x, 32}, {QDNN_OPERAND_BIAS, &bias, 4},
                                {QDNN_OPERAND_Y, NULL, 4}}, sum_of_squares},
    {"qdnnTypedMatmulWith", typed, {{QDNN_OPERAND_X, ones, 32}, {QDNN_OPERAND_CODES, &linear, 4}, {QDNN_OPERAND_Y, NULL, 4}},
     first_codes},
    {"qdnnIntegerMatmulWith", integer, {{QDNN_OPERAND_X, codes, 8}, {QDNN_OPERAND_CODES, codes, 8}, {QDNN_OPERAND_Y, NULL, 4}},
     product},
    {"qdnnIntegerDotWith", dot, {{QDNN_OPERAND_X, &a, 4}, {QDNN_OPERAND_CODES, &b, 4}, {QDNN_OPERAND_Y, NULL, 4}}, nibble_product},
    {"qdnnIntegerTopWith", top, {{QDNN_OPERAND_X, &token, 4}, {QDNN_OPERAND_CODES, routes, 8}, {QDNN_OPERAND_X_SCALE, &scale, 4},
                                 {QDNN_OPERAND_SCALE, scales, 8}, {QDNN_OPERAND_Y, NULL, 4}, {QDNN_OPERAND_TOP_INDEX, NULL, 4}},
     best},
    {"qdnnIntegerConvWith", conv, {{QDNN_OPERAND_X, codes, 4}, {QDNN_OPERAND_CODES, codes, 4}, {QDNN_OPERAND_Y, NULL, 4}}, window},
    {"qdnnNormWith", norm, {{QDNN_OPERAND_X, steps, 32}, {QDNN_OPERAND_Y, NULL, 32}}, normal},
    {"qdnnAttentionWith", attention, {{QDNN_OPERAND_X, x, 32}, {QDNN_OPERAND_KEYS, keys, 64}, {QDNN_OPERAND_VALUES, values, 64},
                                      {QDNN_OPERAND_Y, NULL, 32}}, twos},
    {"qdnnLsqWith", lsq, {{QDNN_OPERAND_X, x, 32}, {QDNN_OPERAND_SCALE, &scale, 4}, {QDNN_OPERAND_Y, NULL, 32}}, clamped},
    {"qdnnLsqBackwardWith", lsq_backward, {{QDNN_OPERAND_X, x, 32}, {QDNN_OPERAND_SCALE, &scale, 4}, {QDNN_OPERAND_DY, ones, 32},
                                           {QDNN_OPERAND_DX, NULL, 32}, {QDNN_OPERAND_DSCALE, NULL, 4}}, gradient},
};
/* clang-format on */
const int once_case_count = sizeof once_cases / sizeof once_cases[0];

int once_operands(const once_case *c)
{
    int n = 0;
    while (n < ONCE_BINDINGS_MAX && c->operands[n].bytes)
        n++;
    return n;
}
