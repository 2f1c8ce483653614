/* Modes of attention: which one AUTO means, what the plan's info says, and what is refused. */
#include "scene.h"

typedef struct mode_case {
    const char *name, *settings; /* of ptxvm */
    qdnnMath_t math;
    qdnnAttentionMode_t mode;
    qdnnDataType_t x;
    const char *choice; /* or the error */
    qdnnStatus_t status;
} mode_case;

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16
#define FREE QDNN_MATH_FAMILY
#define ONE  QDNN_MATH_EXACT

static const mode_case cases[] = {
    {"AutoF16", "PTXVM_SM=sm_80", FREE, QDNN_ATTENTION_AUTO, F16,
     "sm_80, 86, 87, 88 and 89; the model is published; AUTO", 0},
    {"AutoBf16", "PTXVM_SM=sm_90", FREE, QDNN_ATTENTION_AUTO, BF16,
     "tensor: the same bits in every batch, on sm_90", 0},
    {"AutoF32", "PTXVM_SM=sm_80", FREE, QDNN_ATTENTION_AUTO, F32,
     "exact: the same bits in every batch, on every SM; AUTO, as x is f32", 0},
    {"AutoBf16OnSm75", "PTXVM_SM=sm_75", FREE, QDNN_ATTENTION_AUTO, BF16,
     "AUTO, as the SM has no tensor cores for x", 0},
    {"AutoOfExactHandle", "PTXVM_SM=sm_80", ONE, QDNN_ATTENTION_AUTO, F16,
     "AUTO, and the handle asks for QDNN_MATH_EXACT", 0},
    {"Exact", "PTXVM_SM=sm_80", FREE, QDNN_ATTENTION_EXACT, F16,
     "exact: the same bits in every batch, on every SM; as asked for", 0},
    {"TensorOfExactHandle", "PTXVM_SM=sm_80", ONE, QDNN_ATTENTION_TENSOR, F16,
     "the model is published; as asked for", 0},
    {"TensorF32", "PTXVM_SM=sm_80", FREE, QDNN_ATTENTION_TENSOR, F32,
     "x is f32, and QDNN_ATTENTION_TENSOR takes f16 or bf16; fix: convert x, or use QDNN_ATTENTION_EXACT",
     QDNN_STATUS_NOT_SUPPORTED},
    {"TensorBf16OnSm75", "PTXVM_SM=sm_75", FREE, QDNN_ATTENTION_TENSOR, BF16,
     "x is bf16, for which sm_75 has no tensor cores; fix: give x in f16, or use QDNN_ATTENTION_EXACT",
     QDNN_STATUS_NOT_SUPPORTED},
    {"Unknown", "PTXVM_SM=sm_80", FREE, (qdnnAttentionMode_t)3, F16,
     "attention->mode is 3; it must be 0 to 2", QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND},
};

TEST_ROWS(ApiAttention, Modes, cases)
{
    NEED_PTXVM;
    const mode_case *c = &cases[index];
    const qdnnAttention_t attention = {.size = sizeof attention, .mode = c->mode};
    const qdnnKvCache_t cache = {
        .size = sizeof cache, .pages = 1, .pageSlots = 4, .heads = 1, .headSize = 8, .type = c->x};
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t x = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    vm_begin(c->settings);
    REQUIRE(qdnnCreate(&handle) == QDNN_STATUS_SUCCESS);
    CHECK_STATUS_IS(qdnnSetMath(handle, c->math), QDNN_STATUS_SUCCESS);
    REQUIRE(qdnnCreateTensorDescriptor(&x) == QDNN_STATUS_SUCCESS);
    CHECK_STATUS_IS(qdnnSetTensorDescriptor(x, c->x, 3, (const int64_t[]){2, 3, 8}, NULL),
                    QDNN_STATUS_SUCCESS);
    CHECK_STATUS_IS(qdnnCreateAttentionPlan(handle, &attention, x, &cache, &cache, x, &plan), c->status);
    if (plan)
        CHECK_STATUS_IS(qdnnGetPlanInfo(plan, &info), QDNN_STATUS_SUCCESS);
    CHECK_HAS(plan ? info.choice : last_sentence(), c->choice);
    qdnnDestroyPlan(plan);
    qdnnDestroyTensorDescriptor(x);
    CHECK_STATUS_IS(qdnnDestroy(handle), QDNN_STATUS_SUCCESS);
    vm_end();
}
