/* Descriptors of selection: attributes, defaults, and what plans refuse. */
#include <math.h>

#include "scene.h"

static void check_refused(qdnnStatus_t status, qdnnStatus_t expected, const char *words)
{
    CHECK_STATUS_IS(status, expected);
    CHECK_HAS(last_sentence(), words);
}

TEST_CASE(ApiSelect, Attributes)
{
    static const struct {
        qdnnSelectAttribute_t attribute;
        int64_t preset, good, bad;
    } cases[] = {{QDNN_SELECT_TOP, 1, 1024, 1025},
                 {QDNN_SELECT_TOP, 1, 2, 0},
                 {QDNN_SELECT_GREEDY, 0, 1, 2},
                 {QDNN_SELECT_COUNTS, 0, 1, -1},
                 {QDNN_SELECT_MASK, 0, QDNN_DATA_BF16, QDNN_DATA_F64},
                 {QDNN_SELECT_MASK_ROWS, 0, 7, -1},
                 {QDNN_SELECT_SLOPE, 0, 1, 2},
                 {QDNN_SELECT_SINK, 0, 1, 2},
                 {QDNN_SELECT_SCORES, QDNN_SCORES_SOFTMAX, QDNN_SCORES_SIGMOID, 2},
                 {QDNN_SELECT_EXPERT_GROUPS, 1, 32, 33},
                 {QDNN_SELECT_KEPT_GROUPS, 1, 4, 0},
                 {QDNN_SELECT_GROUP_SCORE, QDNN_GROUP_SCORE_LARGEST, QDNN_GROUP_SCORE_TWO_LARGEST, 2},
                 {QDNN_SELECT_EXPERT_BIAS, 0, 1, -1},
                 {QDNN_SELECT_RENORMALIZE, 0, 1, 2},
                 {QDNN_SELECT_RESIDUAL, 0, 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qdnnSelectDescriptor_t select = NULL;
        int64_t value = 99;
        REQUIRE(qdnnCreateSelectDescriptor(&select) == QDNN_STATUS_SUCCESS);
        CHECK_EQ_I64(qdnnGetSelectAttribute(select, cases[i].attribute, &value), QDNN_STATUS_SUCCESS);
        CHECK_EQ_I64(value, cases[i].preset);
        CHECK_EQ_I64(qdnnSetSelectAttribute(select, cases[i].attribute, cases[i].good), QDNN_STATUS_SUCCESS);
        CHECK_EQ_I64(qdnnSetSelectAttribute(select, cases[i].attribute, cases[i].bad),
                     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        qdnnGetSelectAttribute(select, cases[i].attribute, &value);
        CHECK_EQ_I64(value, cases[i].good);
        qdnnDestroySelectDescriptor(select);
    }
}

TEST_CASE(ApiSelect, Scale)
{
    qdnnSelectDescriptor_t select = NULL;
    float scale = 0;
    REQUIRE(qdnnCreateSelectDescriptor(&select) == QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnGetSelectScale(select, &scale), QDNN_STATUS_SUCCESS);
    CHECK_EQ_F32(scale, 1);
    CHECK_EQ_I64(qdnnSetSelectScale(select, -0.125f), QDNN_STATUS_SUCCESS);
    check_refused(qdnnSetSelectScale(select, INFINITY), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "scale is inf; it must be a finite number");
    qdnnGetSelectScale(select, &scale);
    CHECK_EQ_F32(scale, -0.125f);
    qdnnDestroySelectDescriptor(select);
}

TEST_CASE(ApiSelect, EpsilonAndFactor)
{
    qdnnSelectDescriptor_t select = NULL;
    float epsilon = 9, factor = 9;
    REQUIRE(qdnnCreateSelectDescriptor(&select) == QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnGetSelectEpsilon(select, &epsilon), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnGetSelectFactor(select, &factor), QDNN_STATUS_SUCCESS);
    CHECK_EQ_F32(epsilon, 0);
    CHECK_EQ_F32(factor, 1);
    CHECK_EQ_I64(qdnnSetSelectEpsilon(select, 1e-20f), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnSetSelectFactor(select, 2.5f), QDNN_STATUS_SUCCESS);
    check_refused(qdnnSetSelectEpsilon(select, NAN), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "epsilon is nan; it must be a finite number");
    check_refused(qdnnSetSelectFactor(select, INFINITY), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "factor is inf; it must be a finite number");
    qdnnGetSelectEpsilon(select, &epsilon);
    qdnnGetSelectFactor(select, &factor);
    CHECK_EQ_F32(epsilon, 1e-20f);
    CHECK_EQ_F32(factor, 2.5f);
    qdnnDestroySelectDescriptor(select);
}

static qdnnTensorDescriptor_t tensor(qdnnDataType_t type, int64_t m, int64_t n)
{
    qdnnTensorDescriptor_t t = NULL;
    qdnnCreateTensorDescriptor(&t);
    CHECK_EQ_I64(qdnnSetTensorDescriptor(t, type, 2, (const int64_t[]){m, n}, NULL), QDNN_STATUS_SUCCESS);
    return t;
}

TEST_CASE(ApiSelect, Refusals)
{
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    qdnnTensorDescriptor_t x = tensor(QDNN_DATA_F32, 6, 40),
                           wide = tensor(QDNN_DATA_F32, 1, INT64_C(1) << 25),
                           doubles = tensor(QDNN_DATA_F64, 6, 40), other = tensor(QDNN_DATA_F32, 6, 41);
    qdnnSelectDescriptor_t s = NULL;
    qdnnPlan_t plan = NULL;
    qdnnCreateSelectDescriptor(&s);
    check_refused(qdnnCreateSoftmaxPlan(handle, doubles, s, doubles, &plan), QDNN_STATUS_NOT_SUPPORTED,
                  "x is of type f64; it must be f32, f16 or bf16");
    check_refused(qdnnCreateSoftmaxPlan(handle, x, s, other, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "y is not of the shape of x");
    check_refused(qdnnCreateSoftmaxPlan(handle, wide, s, wide, &plan), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "softmax takes at most 16777216");
    check_refused(qdnnCreateSamplePlan(handle, wide, s, &plan), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "sample takes at most 4194304");
    qdnnSetSelectAttribute(s, QDNN_SELECT_TOP, 41);
    check_refused(qdnnCreateTopKPlan(handle, x, s, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "QDNN_SELECT_TOP is 41, and the rows of x have 40 elements");
    qdnnSetSelectAttribute(s, QDNN_SELECT_SLOPE, 1);
    check_refused(qdnnCreateSoftmaxPlan(handle, x, s, x, &plan), QDNN_STATUS_BAD_PARAM,
                  "no mask to multiply");
    qdnnSetSelectAttribute(s, QDNN_SELECT_MASK, QDNN_DATA_F32);
    qdnnSetSelectAttribute(s, QDNN_SELECT_MASK_ROWS, 4);
    check_refused(qdnnCreateSoftmaxPlan(handle, x, s, x, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "QDNN_SELECT_MASK_ROWS is 4, and x has 6 rows");
    qdnnSetSelectAttribute(s, QDNN_SELECT_GREEDY, 1);
    qdnnSetSelectAttribute(s, QDNN_SELECT_COUNTS, 1);
    check_refused(qdnnCreateSamplePlan(handle, x, s, &plan), QDNN_STATUS_BAD_PARAM,
                  "greedy rows have no penalties");
    CHECK(plan == NULL);
    qdnnDestroySelectDescriptor(s);
    qdnnTensorDescriptor_t all[] = {x, wide, doubles, other};
    for (int i = 0; i < 4; i++)
        qdnnDestroyTensorDescriptor(all[i]);
    OK(qdnnDestroy(handle));
    vm_end();
}

TEST_CASE(ApiSelect, RefusalsOfRouting)
{
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    qdnnTensorDescriptor_t x = tensor(QDNN_DATA_F32, 6, 40), wide = tensor(QDNN_DATA_F32, 6, 1025),
                           none = tensor(QDNN_DATA_F32, 6, 0), y = tensor(QDNN_DATA_F16, 2, 40),
                           other = tensor(QDNN_DATA_F16, 2, 39), codes = tensor(QDNN_DATA_I8, 6, 40);
    qdnnSelectDescriptor_t s = NULL;
    qdnnPlan_t plan = NULL;
    qdnnCreateSelectDescriptor(&s);
    check_refused(qdnnCreateRoutePlan(handle, wide, s, &plan), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "the rows of logits have 1025 elements; route takes at most 1024");
    check_refused(qdnnCreateRoutePlan(handle, none, s, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "logits has rows of no experts");
    check_refused(qdnnCreateRoutePlan(handle, codes, s, &plan), QDNN_STATUS_NOT_SUPPORTED,
                  "logits is of type i8");
    qdnnSetSelectAttribute(s, QDNN_SELECT_TOP, 33);
    check_refused(qdnnCreateRoutePlan(handle, x, s, &plan), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "QDNN_SELECT_TOP is 33; a token has at most 32 experts");
    qdnnSetSelectAttribute(s, QDNN_SELECT_TOP, 11);
    qdnnSetSelectAttribute(s, QDNN_SELECT_EXPERT_GROUPS, 7);
    check_refused(qdnnCreateRoutePlan(handle, x, s, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "QDNN_SELECT_EXPERT_GROUPS is 7, and logits has 40 experts");
    qdnnSetSelectAttribute(s, QDNN_SELECT_EXPERT_GROUPS, 4);
    check_refused(qdnnCreateRoutePlan(handle, x, s, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "QDNN_SELECT_TOP is 11, and the groups that are kept have 10 experts");
    qdnnSetSelectAttribute(s, QDNN_SELECT_KEPT_GROUPS, 5);
    check_refused(qdnnCreateRoutePlan(handle, x, s, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "QDNN_SELECT_KEPT_GROUPS is 5, and there are 4 groups");
    check_refused(qdnnCreateCombinePlan(handle, x, s, y, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "x has 240 elements; fix: rows like those of y, QDNN_SELECT_TOP = 11 for each");
    qdnnSetSelectAttribute(s, QDNN_SELECT_TOP, 3);
    check_refused(qdnnCreateCombinePlan(handle, x, s, other, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "x has 240 elements");
    check_refused(qdnnCreateCombinePlan(handle, codes, s, y, &plan), QDNN_STATUS_NOT_SUPPORTED,
                  "x is of type i8");
    CHECK(plan == NULL);
    qdnnDestroySelectDescriptor(s);
    qdnnTensorDescriptor_t all[] = {x, wide, none, y, other, codes};
    for (int i = 0; i < 6; i++)
        qdnnDestroyTensorDescriptor(all[i]);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* Nothing to do: a success that needs no pointers. */
TEST_CASE(ApiSelect, EmptyRows)
{
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    qdnnTensorDescriptor_t none = tensor(QDNN_DATA_F32, 0, 40), narrow = tensor(QDNN_DATA_F32, 6, 0);
    qdnnTensorDescriptor_t tensors[] = {none, narrow};
    qdnnSelectDescriptor_t s = NULL;
    qdnnCreateSelectDescriptor(&s);
    for (int i = 0; i < 2; i++) {
        qdnnPlan_t plans[5] = {0};
        CHECK_EQ_I64(qdnnCreateSoftmaxPlan(handle, tensors[i], s, tensors[i], &plans[0]),
                     QDNN_STATUS_SUCCESS);
        CHECK_EQ_I64(qdnnCreateTopKPlan(handle, tensors[i], s, &plans[1]), QDNN_STATUS_SUCCESS);
        CHECK_EQ_I64(qdnnCreateSamplePlan(handle, tensors[i], s, &plans[2]), QDNN_STATUS_SUCCESS);
        CHECK_EQ_I64(qdnnCreateCombinePlan(handle, tensors[i], s, tensors[i], &plans[3]),
                     QDNN_STATUS_SUCCESS);
        if (i == 0)
            CHECK_EQ_I64(qdnnCreateRoutePlan(handle, none, s, &plans[4]), QDNN_STATUS_SUCCESS);
        for (int k = 0; k < 5 - i; k++) {
            CHECK_EQ_I64(qdnnExecute(handle, plans[k], NULL, 0, NULL, 0), QDNN_STATUS_SUCCESS);
            qdnnDestroyPlan(plans[k]);
        }
        qdnnDestroyTensorDescriptor(tensors[i]);
    }
    qdnnDestroySelectDescriptor(s);
    OK(qdnnDestroy(handle));
    vm_end();
}
