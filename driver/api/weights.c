/* Named weight formats: one table of what each name sets. */
#include <qdnn/weights.h>

#include "driver/api/descriptors.h"
#include "driver/base/check.h"

typedef enum { EXTENT_NONE, EXTENT_GROUP, EXTENT_FIXED } extent_kind;
typedef struct extent_rule {
    extent_kind kind;
    int64_t size; /* group size: the usual one, or the only one */
} extent_rule;

typedef struct setting {
    qdnnQuantAttribute_t attribute;
    int64_t value;
} setting;

enum { SETTINGS_MAX = 8 };
typedef struct weights_row {
    const char *name;
    extent_rule extent;
    float floor;
    int n_settings;
    setting settings[SETTINGS_MAX];
} weights_row;

#define NONE                                                                                                 \
    {                                                                                                        \
        EXTENT_NONE, 0                                                                                       \
    }
#define GROUP(size)                                                                                          \
    {                                                                                                        \
        EXTENT_GROUP, size                                                                                   \
    }
#define FIXED(size)                                                                                          \
    {                                                                                                        \
        EXTENT_FIXED, size                                                                                   \
    }
#define SET(attribute, constant)                                                                             \
    {                                                                                                        \
        QDNN_QUANT_##attribute, QDNN_##constant                                                              \
    }
#define NUMBER(attribute, value)                                                                             \
    {                                                                                                        \
        QDNN_QUANT_##attribute, value                                                                        \
    }
static const weights_row rows[QDNN_WEIGHTS_COUNT] = {
#define WEIGHTS(constant, name, extent, floor, ...)                                                          \
    [QDNN_WEIGHTS_##constant] = {name,                                                                       \
                                 extent,                                                                     \
                                 floor,                                                                      \
                                 (int)(sizeof((const setting[]){__VA_ARGS__}) / sizeof(setting)),            \
                                 {__VA_ARGS__}},
#include "driver/api/weights.def"
#undef WEIGHTS
};
enum {
#define WEIGHTS(constant, name, extent, floor, ...) ROW_##constant,
#include "driver/api/weights.def"
#undef WEIGHTS
    ROW_COUNT
};
_Static_assert((int)ROW_COUNT == (int)QDNN_WEIGHTS_COUNT, "a row for each name");

static const weights_row *find(qdnnWeights_t weights)
{
    return (unsigned)weights < QDNN_WEIGHTS_COUNT ? &rows[weights] : NULL;
}

const char *qdnnGetWeightsName(qdnnWeights_t weights)
{
    const weights_row *row = find(weights);
    return row ? row->name : "unknown";
}

static qdnnStatus_t set_extent(struct qdnnQuantDescriptor *quant, const weights_row *row, int64_t extent)
{
    switch (row->extent.kind) {
    case EXTENT_GROUP:
        return quant_set(quant, QDNN_QUANT_GROUP_SIZE, extent ? extent : row->extent.size);
    case EXTENT_FIXED:
        if (extent && extent != row->extent.size)
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                              "extent is %lld; %s has groups of %lld: it must be 0 or that",
                              (long long)extent, row->name, (long long)row->extent.size);
        return quant_set(quant, QDNN_QUANT_GROUP_SIZE, row->extent.size);
    case EXTENT_NONE:
        break;
    }
    if (extent)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "extent is %lld; %s has no groups: it must be 0", (long long)extent, row->name);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t quant_set_weights(struct qdnnQuantDescriptor *quant, qdnnWeights_t weights, int64_t extent)
{
    const weights_row *row = find(weights);
    if (!row)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "weights is %d; it must be 0 to %d",
                          (int)weights, QDNN_WEIGHTS_COUNT - 1);
    struct qdnnQuantDescriptor made = quant_presets();
    made.floor = row->floor;
    CHECK_STATUS(set_extent(&made, row, extent));
    for (int i = 0; i < row->n_settings; i++)
        CHECK_STATUS(quant_set(&made, row->settings[i].attribute, row->settings[i].value));
    *quant = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetQuantWeights(qdnnQuantDescriptor_t quant, qdnnWeights_t weights, int64_t extent)
{
    CALL_BEGIN_WITH(quant, weights, extent);
    CHECK_NOT_NULL(quant);
    return quant_set_weights(quant, weights, extent);
}
