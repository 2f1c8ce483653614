/* Quantization descriptors, driven by one table of attributes. */
#include "driver/base/alloc.h"
#include "driver/api/attributes.h"
#include "driver/base/check.h"
#include "driver/api/descriptors.h"

#include <float.h>

static const attribute rows[QDNN_QUANT_ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(constant, default_, ...)                                                                   \
    [QDNN_QUANT_##constant] = {.name = "QDNN_QUANT_" #constant, .preset = (default_), __VA_ARGS__},
#include "driver/api/quant_attributes.def"
#undef ATTRIBUTE
};
static const attribute_table attributes = {rows, QDNN_QUANT_ATTRIBUTE_COUNT};

const char *quant_attribute_name(qdnnQuantAttribute_t which)
{
    return rows[which].name;
}

const char *quant_value_name(qdnnQuantAttribute_t which, int64_t value)
{
    return attribute_value_name(&rows[which], value);
}

struct qdnnQuantDescriptor quant_presets(void)
{
    struct qdnnQuantDescriptor quant = {.floor = 1e-12f};
    attributes_preset(&attributes, quant.values);
    return quant;
}

qdnnStatus_t qdnnCreateQuantDescriptor(qdnnQuantDescriptor_t *quant)
{
    CALL_BEGIN_WITH(quant);
    CHECK_NOT_NULL(quant);
    qdnnQuantDescriptor_t made = object_create(OBJECT_QUANT, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    *made = quant_presets();
    *quant = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t quant_set(struct qdnnQuantDescriptor *quant, qdnnQuantAttribute_t which, int64_t value)
{
    return attribute_set(&attributes, quant->values, (int)which, value);
}

qdnnStatus_t qdnnSetQuantDescriptor(qdnnQuantDescriptor_t quant, qdnnDataType_t storage,
                                    qdnnGranularity_t granularity, int64_t extent)
{
    CALL_BEGIN_WITH(quant, storage, granularity, extent);
    CHECK_NOT_NULL(quant);
    struct qdnnQuantDescriptor made = quant_presets();
    CHECK_STATUS(quant_set(&made, QDNN_QUANT_STORAGE, (int)storage));
    CHECK_STATUS(quant_set(&made, QDNN_QUANT_GRANULARITY, (int)granularity));
    if (granularity == QDNN_GRANULARITY_GROUP)
        CHECK_STATUS(quant_set(&made, QDNN_QUANT_GROUP_SIZE, extent));
    else if (granularity == QDNN_GRANULARITY_CHANNEL)
        CHECK_STATUS(quant_set(&made, QDNN_QUANT_AXIS, extent));
    else if (extent != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "extent is %lld; with one scale for the whole tensor, or none, it must be 0",
                          (long long)extent);
    *quant = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetQuantAttribute(qdnnQuantDescriptor_t quant, qdnnQuantAttribute_t attribute, int64_t value)
{
    CALL_BEGIN_WITH(quant, attribute, value);
    CHECK_NOT_NULL(quant);
    return quant_set(quant, attribute, value);
}

qdnnStatus_t qdnnGetQuantAttribute(qdnnQuantDescriptor_t quant, qdnnQuantAttribute_t attribute,
                                   int64_t *value)
{
    CALL_BEGIN_WITH(quant, attribute, value);
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(value);
    return attribute_get(&attributes, quant->values, (int)attribute, value);
}

qdnnStatus_t qdnnSetQuantFloor(qdnnQuantDescriptor_t quant, float floor)
{
    CALL_BEGIN_WITH(quant, floor);
    CHECK_NOT_NULL(quant);
    if (!(floor >= 0 && floor <= FLT_MAX))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "floor is %g; it must be finite and not negative", (double)floor);
    quant->floor = floor;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetQuantFloor(qdnnQuantDescriptor_t quant, float *floor)
{
    CALL_BEGIN_WITH(quant, floor);
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(floor);
    *floor = quant->floor;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnDestroyQuantDescriptor(qdnnQuantDescriptor_t quant)
{
    CALL_BEGIN_WITH(quant);
    if (quant)
        CHECK_NOT_NULL(quant);
    object_destroy(quant);
    return QDNN_STATUS_SUCCESS;
}
