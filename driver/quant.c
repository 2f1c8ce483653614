/* Descriptors of quantizations: one table of what they say. */
#include "driver/alloc.h"
#include "driver/check.h"
#include "driver/descriptors.h"

#include <float.h>
#include <string.h>

enum { VALUES_MAX = 6 };

typedef struct attribute {
    const char *name, *words;
    int64_t preset;
    int64_t least, largest;
    int64_t one_of[VALUES_MAX]; /* instead of the range, where the first is not 0; 0 ends it */
} attribute;

static const attribute attributes[QDNN_QUANT_ATTRIBUTE_COUNT] = {
#define FROM_TO(from, to) .least = (from), .largest = (to)
#define ONE_OF(...)       .one_of = {__VA_ARGS__}
#define ATTRIBUTE(constant, default_, in_words, ...)                                                         \
    [QDNN_QUANT_##constant] = {                                                                              \
        .name = "QDNN_QUANT_" #constant, .words = (in_words), .preset = (default_), __VA_ARGS__},
#include "driver/quant_attributes.def"
#undef ATTRIBUTE
#undef FROM_TO
#undef ONE_OF
};

const char *quant_attribute_name(qdnnQuantAttribute_t which)
{
    return attributes[which].name;
}

static bool takes(const attribute *a, int64_t value)
{
    if (!a->one_of[0])
        return value >= a->least && value <= a->largest;
    for (int i = 0; i < VALUES_MAX && a->one_of[i]; i++)
        if (a->one_of[i] == value)
            return true;
    return false;
}

static struct qdnnQuantDescriptor presets(void)
{
    struct qdnnQuantDescriptor quant = {.floor = 1e-12f};
    for (int i = 0; i < QDNN_QUANT_ATTRIBUTE_COUNT; i++)
        quant.values[i] = attributes[i].preset;
    return quant;
}

qdnnStatus_t qdnnCreateQuantDescriptor(qdnnQuantDescriptor_t *quant)
{
    CHECK_NOT_NULL(quant);
    qdnnQuantDescriptor_t made = alloc_new(sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    *made = presets();
    *quant = made;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_attribute(qdnnQuantAttribute_t which)
{
    if ((unsigned)which < QDNN_QUANT_ATTRIBUTE_COUNT)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute is %d; it must be 0 to %d", (int)which,
                      QDNN_QUANT_ATTRIBUTE_COUNT - 1);
}

static qdnnStatus_t set(struct qdnnQuantDescriptor *quant, qdnnQuantAttribute_t which, int64_t value)
{
    CHECK_STATUS(check_attribute(which));
    const attribute *a = &attributes[which];
    if (!takes(a, value))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %lld; it must be %s", a->name,
                          (long long)value, a->words);
    quant->values[which] = value;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetQuantDescriptor(qdnnQuantDescriptor_t quant, qdnnDataType_t storage,
                                    qdnnGranularity_t granularity, int64_t extent)
{
    CHECK_NOT_NULL(quant);
    struct qdnnQuantDescriptor made = presets();
    CHECK_STATUS(set(&made, QDNN_QUANT_STORAGE, storage));
    CHECK_STATUS(set(&made, QDNN_QUANT_GRANULARITY, granularity));
    if (granularity == QDNN_GRANULARITY_GROUP)
        CHECK_STATUS(set(&made, QDNN_QUANT_GROUP_SIZE, extent));
    else if (granularity == QDNN_GRANULARITY_CHANNEL)
        CHECK_STATUS(set(&made, QDNN_QUANT_AXIS, extent));
    else if (extent != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "extent is %lld; with one scale for the whole tensor it must be 0",
                          (long long)extent);
    *quant = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetQuantAttribute(qdnnQuantDescriptor_t quant, qdnnQuantAttribute_t attribute, int64_t value)
{
    CHECK_NOT_NULL(quant);
    return set(quant, attribute, value);
}

qdnnStatus_t qdnnGetQuantAttribute(qdnnQuantDescriptor_t quant, qdnnQuantAttribute_t attribute,
                                   int64_t *value)
{
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(value);
    CHECK_STATUS(check_attribute(attribute));
    *value = quant->values[attribute];
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetQuantFloor(qdnnQuantDescriptor_t quant, float floor)
{
    CHECK_NOT_NULL(quant);
    if (!(floor >= 0 && floor <= FLT_MAX))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "floor is %g; it must be finite and not negative", (double)floor);
    quant->floor = floor;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetQuantFloor(qdnnQuantDescriptor_t quant, float *floor)
{
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(floor);
    *floor = quant->floor;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnDestroyQuantDescriptor(qdnnQuantDescriptor_t quant)
{
    alloc_free(quant);
    return QDNN_STATUS_SUCCESS;
}
