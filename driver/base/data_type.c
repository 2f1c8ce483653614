/* Data types by their tags. */
#include "driver/base/data_type.h"

#include "driver/base/check.h"

typedef struct data_type {
    const char *name;
    int bits;
} data_type;

static const data_type types[] = {
#define TYPE(constant, tag, name, bits) [tag] = {name, bits},
#include "driver/base/data_types.def"
#undef TYPE
};

#define TYPE(constant, tag, name, bits)                                                                      \
    _Static_assert(QDNN_DATA_##constant == (tag), "the header and the table differ");
#include "driver/base/data_types.def"
#undef TYPE

static const data_type *find(qdnnDataType_t type)
{
    size_t tag = (size_t)type;
    return tag < sizeof types / sizeof types[0] && types[tag].name ? &types[tag] : NULL;
}

int data_type_bits(qdnnDataType_t type)
{
    const data_type *found = find(type);
    return found ? found->bits : -1;
}

const char *qdnnGetDataTypeName(qdnnDataType_t type)
{
    const data_type *found = find(type);
    return found ? found->name : "unknown";
}

qdnnStatus_t qdnnGetDataTypeBits(qdnnDataType_t type, int *bits)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(bits);
    const data_type *found = find(type);
    if (!found)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "type is %d, which is no data type; the QDNN_DATA_ constants are", (int)type);
    *bits = found->bits;
    return QDNN_STATUS_SUCCESS;
}
