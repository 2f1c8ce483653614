/* Operations for training: their descriptors, and their plans. */
#include <qdnn/train.h>

#include "driver/api/attributes.h"
#include "driver/api/plan.h"
#include "driver/base/alloc.h"
#include "driver/base/check.h"

/* ---- Descriptors ---- */

static const attribute rows[QDNN_TRAIN_ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(constant, default_, ...)                                                                   \
    [QDNN_TRAIN_##constant] = {.name = "QDNN_TRAIN_" #constant, .preset = (default_), __VA_ARGS__},
#include "driver/api/train_attributes.def"
#undef ATTRIBUTE
};
static const attribute_table attributes = {rows, QDNN_TRAIN_ATTRIBUTE_COUNT};

qdnnStatus_t qdnnCreateTrainDescriptor(qdnnTrainDescriptor_t *train)
{
    CALL_BEGIN_WITH(train);
    CHECK_NOT_NULL(train);
    qdnnTrainDescriptor_t made = object_create(OBJECT_TRAIN, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    attributes_preset(&attributes, made->values);
    made->decay = 0.99f;
    *train = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetTrainAttribute(qdnnTrainDescriptor_t train, qdnnTrainAttribute_t attribute, int64_t value)
{
    CALL_BEGIN_WITH(train, attribute, value);
    CHECK_NOT_NULL(train);
    return attribute_set(&attributes, train->values, (int)attribute, value);
}

qdnnStatus_t qdnnGetTrainAttribute(qdnnTrainDescriptor_t train, qdnnTrainAttribute_t attribute,
                                   int64_t *value)
{
    CALL_BEGIN_WITH(train, attribute, value);
    CHECK_NOT_NULL(train);
    CHECK_NOT_NULL(value);
    return attribute_get(&attributes, train->values, (int)attribute, value);
}

qdnnStatus_t qdnnSetTrainDecay(qdnnTrainDescriptor_t train, float decay)
{
    CALL_BEGIN_WITH(train, decay);
    CHECK_NOT_NULL(train);
    if (!(decay >= 0 && decay <= 1))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "decay is %g; it must be 0 to 1",
                          (double)decay);
    train->decay = decay;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetTrainDecay(qdnnTrainDescriptor_t train, float *decay)
{
    CALL_BEGIN_WITH(train, decay);
    CHECK_NOT_NULL(train);
    CHECK_NOT_NULL(decay);
    *decay = train->decay;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnDestroyTrainDescriptor(qdnnTrainDescriptor_t train)
{
    CALL_BEGIN_WITH(train);
    if (train)
        CHECK_NOT_NULL(train);
    object_destroy(train);
    return QDNN_STATUS_SUCCESS;
}

/* ---- From a descriptor to a kernel ---- */

static qdnnStatus_t set_groups(const struct qdnnTensorDescriptor *tensor, const int64_t *value,
                               kernel_spec *spec)
{
    spec->stored.group_size = spec->stored.channels = 1;
    if (value[QDNN_TRAIN_GRANULARITY] == QDNN_GRANULARITY_CHANNEL)
        return request_set_channels(tensor, rows[QDNN_TRAIN_AXIS].name, value[QDNN_TRAIN_AXIS], spec);
    if (value[QDNN_TRAIN_GRANULARITY] == QDNN_GRANULARITY_GROUP) {
        spec->stored.group_size = (uint64_t)value[QDNN_TRAIN_GROUP_SIZE];
        spec->stored.channels = 0;
    }
    return QDNN_STATUS_SUCCESS;
}

static void set_choices(const struct qdnnTrainDescriptor *train, kernel_spec *spec)
{
    const int64_t *value = train->values;
    spec->train.bits = (int)value[QDNN_TRAIN_BITS];
    spec->train.scale_mode = (qdnnScaleMode_t)value[QDNN_TRAIN_SCALE_MODE];
    spec->train.backward = (qdnnBackward_t)value[QDNN_TRAIN_BACKWARD];
    spec->quantize.rounding = (qdnnRounding_t)value[QDNN_TRAIN_ROUNDING];
    spec->train.gradient_factor = (int)value[QDNN_TRAIN_GRADIENT_FACTOR];
    spec->train.decay = train->decay;
}

static qdnnStatus_t make_request(const char *kernel, const struct qdnnTensorDescriptor *tensor,
                                 const struct qdnnTrainDescriptor *train, request *out)
{
    *out = (request){.row = kernel_find(kernel),
                     .spec = kernel_spec_default(),
                     .problem = {.rows = 1, .columns = tensor_elements(tensor)}};
    if (tensor->type != QDNN_DATA_F32)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "the tensor is of type %s; training takes f32",
                          qdnnGetDataTypeName(tensor->type));
    CHECK_STATUS(request_check_packed(tensor));
    CHECK_STATUS(set_groups(tensor, train->values, &out->spec));
    set_choices(train, &out->spec);
    char reason[256];
    if (!kernel_spec_settle(out->row, &out->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetTrainScaleCount(qdnnTrainDescriptor_t train, qdnnTensorDescriptor_t tensor, size_t *count)
{
    CALL_BEGIN_WITH(train, tensor, count);
    CHECK_NOT_NULL(train);
    CHECK_TENSOR(tensor);
    CHECK_NOT_NULL(count);
    request r;
    CHECK_STATUS(make_request("lsq", tensor, train, &r));
    *count = r.operands[QDNN_OPERAND_SCALE].bytes / sizeof(float);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Plans ---- */

static qdnnStatus_t create(qdnnHandle_t handle, const char *kernel, qdnnTensorDescriptor_t x,
                           qdnnTrainDescriptor_t train, qdnnPlan_t *plan)
{
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(train);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(make_request(kernel, x, train, &r));
    return plan_create(handle, &r, plan);
}

qdnnStatus_t qdnnCreateFakeQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                        qdnnTrainDescriptor_t train, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, train, plan);
    return create(handle, "fake_quantize", x, train, plan);
}

qdnnStatus_t qdnnCreateFakeQuantizeBackwardPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                qdnnTrainDescriptor_t train, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, train, plan);
    return create(handle, "fake_quantize_backward", x, train, plan);
}

qdnnStatus_t qdnnCreateLsqPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnTrainDescriptor_t train,
                               qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, train, plan);
    return create(handle, "lsq", x, train, plan);
}

qdnnStatus_t qdnnCreateLsqBackwardPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                       qdnnTrainDescriptor_t train, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, train, plan);
    return create(handle, "lsq_backward", x, train, plan);
}
