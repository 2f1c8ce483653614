/* Setting and getting attributes by their tables. */
#include "driver/api/attributes.h"

#include <stdio.h>

#include "driver/base/check.h"

void attributes_preset(const attribute_table *table, int64_t *values)
{
    for (int i = 0; i < table->count; i++)
        values[i] = table->rows[i].preset;
}

const char *attribute_value_name(const attribute *a, int64_t value)
{
    for (const attribute_choice *c = a->choices; c && c->name; c++)
        if (c->value == value)
            return c->name;
    return NULL;
}

static bool takes(const attribute *a, int64_t value)
{
    return a->choices ? attribute_value_name(a, value) != NULL : value >= a->least && value <= a->largest;
}

/* "QDNN_ZERO_NONE, QDNN_ZERO_POINT or QDNN_ZERO_MINIMUM" */
static void list_values(const attribute *a, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", a->choices ? "" : a->range);
    for (const attribute_choice *c = a->choices; c && c->name && used < size; c++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 c == a->choices ? ""
                                 : c[1].name     ? ", "
                                                 : " or ",
                                 c->name);
}

static qdnnStatus_t check_number(const attribute_table *table, int which)
{
    if (which >= 0 && which < table->count && table->rows[which].name)
        return QDNN_STATUS_SUCCESS;
    if (which >= 0 && which < table->count)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute is %d, which is reserved", which);
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute is %d; it must be 0 to %d", which,
                      table->count - 1);
}

qdnnStatus_t attribute_set(const attribute_table *table, int64_t *values, int which, int64_t value)
{
    CHECK_STATUS(check_number(table, which));
    const attribute *a = &table->rows[which];
    if (takes(a, value)) {
        values[which] = value;
        return QDNN_STATUS_SUCCESS;
    }
    char allowed[420];
    list_values(a, allowed, sizeof allowed);
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %lld; it must be %s", a->name,
                      (long long)value, allowed);
}

qdnnStatus_t attribute_get(const attribute_table *table, const int64_t *values, int which, int64_t *value)
{
    CHECK_STATUS(check_number(table, which));
    *value = values[which];
    return QDNN_STATUS_SUCCESS;
}
