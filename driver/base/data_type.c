/* Data types by tag: their properties, and their names with parameters. */
#include "driver/base/data_type.h"

#include <stdio.h>
#include <string.h>

#include "driver/base/check.h"

/* The parameters in the angle brackets of a type's name. */
typedef enum {
    PARAMS_NONE,
    PARAMS_ELEMENT,       /* sparse_csr<f32> */
    PARAMS_ELEMENT_COUNT, /* vec<u16;3> */
    PARAMS_ELEMENT_SHAPE, /* tensor<f32;2x3> */
    PARAMS_ELEMENT_BLOCK, /* sparse_bsr<f16;2x4> */
    PARAMS_ELEMENT_BYTES, /* array<7B> */
    PARAMS_SHAPE,         /* device_mesh<2x4x8> */
    PARAMS_ID             /* handle<0x0000abcd> */
} params_kind;

/* How many numbers each takes, and whether it has an element type. */
static const struct {
    bool has_element;
    int least, most;
} params_of[] = {
    [PARAMS_NONE] = {false, 0, 0},
    [PARAMS_ELEMENT] = {true, 0, 0},
    [PARAMS_ELEMENT_COUNT] = {true, 1, 1},
    [PARAMS_ELEMENT_SHAPE] = {true, 1, QDNN_DIMS_MAX},
    [PARAMS_ELEMENT_BLOCK] = {true, 2, 2},
    [PARAMS_ELEMENT_BYTES] = {false, 1, 1},
    [PARAMS_SHAPE] = {false, 1, QDNN_DIMS_MAX},
    [PARAMS_ID] = {false, 1, 1},
};

typedef struct data_type {
    qdnnDataTypeInfo_t info;
    qdnnDataType_t type;
    params_kind params;
} data_type;

#define MIB(n)   (UINT64_C(n) << 20)
#define NO_LIMIT UINT64_MAX
static const data_type types[] = {
#define TYPE(constant, tag, name, bits, is_float, least, largest, params)                                    \
    [tag] = {{0, name, bits, is_float, least, largest}, QDNN_DATA_##constant, PARAMS_##params},
#include "driver/base/data_types.def"
#undef TYPE
};

#define TYPE(constant, tag, name, bits, is_float, least, largest, params)                                    \
    _Static_assert(QDNN_DATA_##constant == (tag), "the header and the table differ");
#include "driver/base/data_types.def"
#undef TYPE

static const data_type *find(qdnnDataType_t type)
{
    size_t tag = (size_t)type;
    return tag < sizeof types / sizeof types[0] && types[tag].info.name ? &types[tag] : NULL;
}

int data_type_bits(qdnnDataType_t type)
{
    const data_type *found = find(type);
    return found ? found->info.bits : -1;
}

const char *qdnnGetDataTypeName(qdnnDataType_t type)
{
    const data_type *found = find(type);
    return found ? found->info.name : "unknown";
}

static qdnnStatus_t look_up(const char *argument, qdnnDataType_t type, const data_type **found)
{
    *found = find(type);
    if (*found)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "%s is %d, which is not a data type; use one of the QDNN_DATA_ constants", argument,
                      (int)type);
}

qdnnStatus_t qdnnGetDataTypeBits(qdnnDataType_t type, int *bits)
{
    CALL_BEGIN_WITH(type, bits);
    CHECK_NOT_NULL(bits);
    const data_type *found;
    CHECK_STATUS(look_up("type", type, &found));
    *bits = found->info.bits;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetDataTypeInfo(qdnnDataType_t type, qdnnDataTypeInfo_t *info)
{
    CALL_BEGIN_WITH(type, info);
    CHECK_NOT_NULL(info);
    const data_type *found;
    CHECK_STATUS(look_up("type", type, &found));
    GIVE_INFO(info, &found->info);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Names with parameters ---- */

enum { TEXT_MAX = 256 }; /* at most 8 numbers of 20 digits and a few words */

static int print_numbers(const data_type *t, int count, const uint64_t *numbers, char *text, size_t size)
{
    if (t->params == PARAMS_ID)
        return snprintf(text, size, "0x%08llx", (unsigned long long)numbers[0]);
    int used = 0;
    for (int i = 0; i < count; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%llu", i ? "x" : "",
                         (unsigned long long)numbers[i]);
    if (t->params == PARAMS_ELEMENT_BYTES)
        used += snprintf(text + used, size - (size_t)used, "B");
    return used;
}

/* TENSOR_SHAPED is printed as "tensor" too: only the brackets distinguish it. */
static int print_whole(const data_type *t, qdnnDataType_t element, int count, const uint64_t *numbers,
                       char *text, size_t size)
{
    if (t->params == PARAMS_NONE)
        return snprintf(text, size, "%s", t->info.name);
    char inside[TEXT_MAX] = "";
    print_numbers(t, count, numbers, inside, sizeof inside);
    const char *of = params_of[t->params].has_element ? qdnnGetDataTypeName(element) : "";
    const char *name = qdnnGetDataTypeName(t->params == PARAMS_ELEMENT_SHAPE ? QDNN_DATA_TENSOR : t->type);
    return snprintf(text, size, "%s<%s%s%s>", name, of, *of && *inside ? ";" : "", inside);
}

static qdnnStatus_t check_params(const data_type *t, qdnnDataType_t element, int count)
{
    const data_type *found;
    int least = params_of[t->params].least, most = params_of[t->params].most;
    if (params_of[t->params].has_element)
        CHECK_STATUS(look_up("element", element, &found));
    else if (element != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "element is %d, and type %d (%s) has no element type; it must be 0", (int)element,
                          (int)t->type, t->info.name);
    if (count < least || count > most)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "count is %d; type %d (%s) takes %d to %d numbers", count, (int)t->type,
                          t->info.name, least, most);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnPrintDataType(qdnnDataType_t type, qdnnDataType_t element, int count,
                               const uint64_t *numbers, char *text, size_t size)
{
    CALL_BEGIN_WITH(type, element, count, numbers, text, size);
    const data_type *t;
    CHECK_STATUS(look_up("type", type, &t));
    CHECK_STATUS(check_params(t, element, count));
    CHECK_BUFFER(numbers, count);
    CHECK_NOT_NULL(text);
    char whole[TEXT_MAX];
    int length = print_whole(t, element, count, numbers, whole, sizeof whole);
    if ((size_t)length >= size)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "size is %zu; the name and its final zero need %d", size, length + 1);
    memcpy(text, whole, (size_t)length + 1);
    return QDNN_STATUS_SUCCESS;
}
