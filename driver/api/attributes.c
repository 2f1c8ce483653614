/* Setting and getting by the tables of attributes. */
#include "driver/api/attributes.h"

#include "driver/base/check.h"

void attributes_preset(const attribute_table *table, int64_t *values)
{
    for (int i = 0; i < table->count; i++)
        values[i] = table->rows[i].preset;
}

static bool takes(const attribute *a, int64_t value)
{
    if (!a->one_of[0])
        return value >= a->least && value <= a->largest;
    for (int i = 0; i < ATTRIBUTE_VALUES_MAX && a->one_of[i]; i++)
        if (a->one_of[i] == value)
            return true;
    return false;
}

static qdnnStatus_t check_number(const attribute_table *table, int which)
{
    if (which >= 0 && which < table->count)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute is %d; it must be 0 to %d", which,
                      table->count - 1);
}

qdnnStatus_t attribute_set(const attribute_table *table, int64_t *values, int which, int64_t value)
{
    CHECK_STATUS(check_number(table, which));
    const attribute *a = &table->rows[which];
    if (!takes(a, value))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %lld; it must be %s", a->name,
                          (long long)value, a->words);
    values[which] = value;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t attribute_get(const attribute_table *table, const int64_t *values, int which, int64_t *value)
{
    CHECK_STATUS(check_number(table, which));
    *value = values[which];
    return QDNN_STATUS_SUCCESS;
}
