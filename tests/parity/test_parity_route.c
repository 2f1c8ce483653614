/* Routing and combining through the public API against host_ref, on ptxvm: as six SMs, with every check on. */
#include <math.h>
#include <string.h>

#include "device/integer_case.h"
#include "device/under_test.h"
#include "host_ref/host_ref.h"
#include "support/random.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0] };

static qdnnTensorDescriptor_t tensor_of(qdnnDataType_t type, int64_t m, int64_t n)
{
    qdnnTensorDescriptor_t t = NULL;
    const int64_t dims[2] = {m, n};
    return integer_tensor(&t, type, 2, dims) ? t : NULL;
}

static bool set(qdnnSelectDescriptor_t select, qdnnSelectAttribute_t attribute, int64_t value)
{
    return CHECK_QDNN(qdnnSetSelectAttribute(select, attribute, value));
}

/* ---- Routing ---- */

typedef struct route_case {
    const char *name;
    qdnnDataType_t type;
    int64_t m, experts, slots;
    qdnnScores_t scores;
    int64_t groups, kept;
    qdnnGroupScore_t group_score;
    bool bias, renormalize;
    float epsilon, factor;
    size_t shift;
    int64_t rows; /* to execute; 0: all */
} route_case;

#define SOFTMAX QDNN_SCORES_SOFTMAX
#define SIGMOID QDNN_SCORES_SIGMOID
#define ONE     QDNN_GROUP_SCORE_LARGEST
#define TWO     QDNN_GROUP_SCORE_TWO_LARGEST
static const route_case route_cases[] = {
    {"one_of_one", QDNN_DATA_F32, 7, 1, 1, SOFTMAX, 1, 1, ONE, false, false, 0, 1, 0, 0},
    {"gpt_oss", QDNN_DATA_F32, 9, 32, 4, SOFTMAX, 1, 1, ONE, false, true, 0, 1, 0, 0},
    {"mixtral", QDNN_DATA_F16, 9, 8, 2, SOFTMAX, 1, 1, ONE, false, true, 0, 1, 3, 0},
    {"qwen3", QDNN_DATA_BF16, 9, 128, 8, SOFTMAX, 1, 1, ONE, false, true, 1e-20f, 1, 0, 6},
    {"deepseek_v2", QDNN_DATA_F32, 8, 160, 6, SOFTMAX, 8, 3, ONE, false, false, 0, 16, 1, 0},
    {"deepseek_v3", QDNN_DATA_F32, 9, 256, 8, SIGMOID, 8, 4, TWO, true, true, 1e-20f, 2.5f, 0, 0},
    {"deepseek_v3_halves", QDNN_DATA_BF16, 9, 256, 8, SIGMOID, 8, 4, TWO, true, true, 1e-20f, 2.5f, 0, 5},
    {"kimi", QDNN_DATA_F32, 5, 384, 8, SIGMOID, 1, 1, ONE, true, true, 1e-20f, 2.827f, 0, 0},
    {"all_of_32", QDNN_DATA_F32, 8, 32, 32, SOFTMAX, 1, 1, ONE, true, false, 0, 1, 1, 0},
    {"ragged", QDNN_DATA_F16, 9, 61, 7, SIGMOID, 1, 1, ONE, true, true, 0.5f, -1, 1, 0},
    {"ragged_groups", QDNN_DATA_F32, 8, 63, 5, SOFTMAX, 7, 3, TWO, true, true, 0, 1, 0, 0},
    {"groups_of_one", QDNN_DATA_F32, 8, 11, 4, SIGMOID, 11, 5, TWO, true, false, 0, 1, 0, 0},
    {"many_groups", QDNN_DATA_F32, 8, 1024, 32, SOFTMAX, 32, 9, TWO, false, true, 0, 1, 0, 0},
    {"three_groups_of_two", QDNN_DATA_F32, 8, 6, 2, SOFTMAX, 3, 1, TWO, true, true, 0, 1, 0, 0},
    {"two_rounds", QDNN_DATA_BF16, 8, 300, 10, SOFTMAX, 4, 2, ONE, true, false, 0, 3, 0, 0},
    {"all_groups", QDNN_DATA_F32, 8, 48, 3, SIGMOID, 6, 6, TWO, true, true, 0, 1, 0, 0},
};

/* Rows of six kinds: smooth, few values, equal, NaN in one place, all NaN, masked with -Inf; every third one has +Inf. */
static float logit(int64_t row, int64_t i, uint64_t *state)
{
    static const float few[] = {-0.0f, 0.0f, 2, 2, -3, 0.5f, -INFINITY};
    const uint64_t r = random_next(state);
    const float smooth = ((float)(r >> 40) * 0x1p-23f - 1.0f) * 6;
    switch (row % 8) {
    case 1:
        return few[r % 7];
    case 2:
        return 0.75f;
    case 3:
        return i == 3 ? NAN : smooth;
    case 4:
        return NAN;
    case 5:
        return r % 8 ? -INFINITY : smooth;
    case 6:
        return r % 16 == 0 ? INFINITY : r % 16 == 1 ? NAN : few[r % 7];
    case 7:
        return -INFINITY;
    default:
        return smooth;
    }
}

static void route_reference(const route_case *c, integer_buffers *b)
{
    const ref_route_spec spec = {c->type, c->experts,     c->slots,       c->scores,  c->groups,
                                 c->kept, c->group_score, c->renormalize, c->epsilon, c->factor};
    const size_t bytes = ref_scalar_size(c->type);
    uint64_t state = 71;
    char *x = integer_buffer(b, QDNN_OPERAND_LOGITS, (size_t)(c->m * c->experts) * bytes, false);
    int32_t *index = integer_buffer(b, QDNN_OPERAND_INDEX, (size_t)(c->m * c->slots) * 4, true);
    float *weight = integer_buffer(b, QDNN_OPERAND_WEIGHT_OUT, (size_t)(c->m * c->slots) * 4, true),
          *bias = NULL;
    if (c->bias)
        bias = integer_buffer(b, QDNN_OPERAND_EXPERT_BIAS, (size_t)c->experts * 4, false);
    for (int64_t i = 0; i < c->experts && bias; i++)
        bias[i] = i % 13 == 5   ? -INFINITY
                  : i % 17 == 9 ? -0.0f
                                : (float)(random_next(&state) % 5) * 0.25f - 0.5f;
    if (bias && c->experts > 40)
        bias[37] = NAN;
    for (int64_t row = 0; row < c->m; row++) {
        for (int64_t i = 0; i < c->experts; i++)
            ref_scalar_store(c->type, x, row * c->experts + i, logit(row, i, &state));
        ref_route(&spec, x + (size_t)(row * c->experts) * bytes, bias, index + row * c->slots,
                  weight + row * c->slots);
    }
    b->shift[QDNN_OPERAND_LOGITS] = c->shift * bytes;
    b->shift[QDNN_OPERAND_EXPERT_BIAS] = c->shift * 4;
    b->written = (size_t)(c->rows * c->slots) * 4;
}

static bool set_route(qdnnSelectDescriptor_t select, const route_case *c)
{
    return set(select, QDNN_SELECT_TOP, c->slots) && set(select, QDNN_SELECT_SCORES, c->scores) &&
           set(select, QDNN_SELECT_EXPERT_GROUPS, c->groups) &&
           set(select, QDNN_SELECT_KEPT_GROUPS, c->kept) &&
           set(select, QDNN_SELECT_GROUP_SCORE, c->group_score) &&
           set(select, QDNN_SELECT_EXPERT_BIAS, c->bias) &&
           set(select, QDNN_SELECT_RENORMALIZE, c->renormalize) &&
           CHECK_QDNN(qdnnSetSelectEpsilon(select, c->epsilon)) &&
           CHECK_QDNN(qdnnSetSelectFactor(select, c->factor));
}

static void run_route(qdnnHandle_t handle, const route_case *c)
{
    integer_buffers b = {0};
    route_reference(c, &b);
    qdnnTensorDescriptor_t t = tensor_of(c->type, c->m, c->experts);
    qdnnSelectDescriptor_t select = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    if (CHECK_QDNN(qdnnCreateSelectDescriptor(&select)) && set_route(select, c) &&
        CHECK_QDNN(qdnnCreateRoutePlan(handle, t, select, &plan)) &&
        CHECK_QDNN(qdnnGetPlanInfo(plan, &info))) {
        CHECK_EQ_I64(info.kernels, 1);
        CHECK_EQ_STR(info.operation, "select.route");
        integer_execute(handle, plan, &b, c->rows ? c->rows : -1);
    }
    qdnnDestroySelectDescriptor(select);
    integer_tensors_destroy(&t, 1);
    integer_buffers_free(&b);
}

DEVICE_ROWS(ParityRoute, Route, route_cases)
{
    for (int sm = 0; sm < 2; sm++) { /* one without redux, and one with it */
        qdnnHandle_t handle = device_begin(sm ? sms[1 + index % (SMS - 1)] : sms[0], index, "all");
        if (handle)
            run_route(handle, &route_cases[index]);
        device_end(handle);
    }
}

/* ---- Combining ---- */

typedef struct combine_case {
    const char *name;
    qdnnDataType_t x, y;
    int64_t m, n, slots;
    bool residual;
    size_t shift; /* elements of y */
    int64_t rows; /* to execute; 0: all */
} combine_case;

static const combine_case combine_cases[] = {
    {"one_slot", QDNN_DATA_F32, QDNN_DATA_F32, 3, 8, 1, false, 0, 0},
    {"one_column", QDNN_DATA_F16, QDNN_DATA_F32, 3, 1, 2, true, 0, 0},
    {"whole", QDNN_DATA_BF16, QDNN_DATA_BF16, 5, 1040, 4, true, 0, 3},
    {"halves_to_floats", QDNN_DATA_F16, QDNN_DATA_F32, 2, 64, 8, true, 0, 0},
    {"floats_to_halves", QDNN_DATA_F32, QDNN_DATA_F16, 4, 2056, 6, false, 0, 0},
    {"more_than_eight", QDNN_DATA_BF16, QDNN_DATA_F32, 3, 48, 19, true, 0, 0},
    {"thirty_two", QDNN_DATA_F32, QDNN_DATA_BF16, 2, 33, 32, true, 0, 0},
    {"ragged", QDNN_DATA_F16, QDNN_DATA_F16, 3, 1027, 3, true, 0, 2},
    {"half_aligned", QDNN_DATA_F16, QDNN_DATA_BF16, 3, 36, 2, true, 0, 0},
    {"shifted", QDNN_DATA_BF16, QDNN_DATA_BF16, 3, 32, 9, true, 3, 0},
    {"shifted_floats", QDNN_DATA_F32, QDNN_DATA_F32, 3, 40, 2, false, 1, 0},
};

static float term(uint64_t *state)
{
    static const float special[] = {-0.0f, 0.0f, INFINITY, -INFINITY, NAN, 1e-40f, 3e38f, 65504};
    const uint64_t r = random_next(state);
    return r % 32 < 8 ? special[r % 8] : ((float)(r >> 40) * 0x1p-23f - 1.0f) * 3;
}

static void fill(qdnnDataType_t type, void *x, int64_t n, uint64_t *state)
{
    for (int64_t i = 0; i < n; i++)
        ref_scalar_store(type, x, i, term(state));
}

static void combine_reference(const combine_case *c, integer_buffers *b)
{
    const ref_combine_spec spec = {c->x, c->y, c->slots};
    const size_t x_row = (size_t)(c->slots * c->n) * ref_scalar_size(c->x),
                 y_row = (size_t)c->n * ref_scalar_size(c->y);
    uint64_t state = 5;
    char *x = integer_buffer(b, QDNN_OPERAND_X, (size_t)c->m * x_row, false), *residual = NULL;
    float *weight = integer_buffer(b, QDNN_OPERAND_ROW_WEIGHT, (size_t)(c->m * c->slots) * 4, false);
    char *y = integer_buffer(b, QDNN_OPERAND_Y, (size_t)c->m * y_row, true);
    fill(c->x, x, c->m * c->slots * c->n, &state);
    for (int64_t i = 0; i < c->m * c->slots; i++)
        weight[i] = (float)(random_next(&state) >> 40) * 0x1p-24f;
    if (c->residual) {
        residual = integer_buffer(b, QDNN_OPERAND_RESIDUAL, (size_t)c->m * y_row, false);
        fill(c->y, residual, c->m * c->n, &state);
    }
    b->shift[QDNN_OPERAND_Y] = c->shift * ref_scalar_size(c->y);
    b->shift[QDNN_OPERAND_X] = c->shift * ref_scalar_size(c->x);
    b->written = (size_t)c->rows * y_row;
    for (int64_t row = 0; row < c->m; row++)
        ref_combine(&spec, c->n, x + (size_t)row * x_row, weight + row * c->slots,
                    residual ? residual + (size_t)row * y_row : NULL, y + (size_t)row * y_row);
}

static void run_combine(qdnnHandle_t handle, const combine_case *c)
{
    integer_buffers b = {0};
    combine_reference(c, &b);
    qdnnTensorDescriptor_t t[2] = {tensor_of(c->x, c->m * c->slots, c->n), tensor_of(c->y, c->m, c->n)};
    qdnnSelectDescriptor_t select = NULL;
    qdnnPlan_t plan = NULL;
    if (CHECK_QDNN(qdnnCreateSelectDescriptor(&select)) && set(select, QDNN_SELECT_TOP, c->slots) &&
        set(select, QDNN_SELECT_RESIDUAL, c->residual) &&
        CHECK_QDNN(qdnnCreateCombinePlan(handle, t[0], select, t[1], &plan)))
        integer_execute(handle, plan, &b, c->rows ? c->rows : -1);
    qdnnDestroySelectDescriptor(select);
    integer_tensors_destroy(t, 2);
    integer_buffers_free(&b);
}

DEVICE_ROWS(ParityRoute, Combine, combine_cases)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    if (handle)
        run_combine(handle, &combine_cases[index]);
    device_end(handle);
}
