/* Attributes of descriptors, as tables: an attribute has a name, a default and its valid values. A descriptor
 * keeps its values in an array in the order of its table. */
#ifndef QDNN_DRIVER_ATTRIBUTES_H
#define QDNN_DRIVER_ATTRIBUTES_H

#include <qdnn/types.h>

/* A named value. */
typedef struct attribute_choice {
    int64_t value;
    const char *name; /* the constant in the header; null ends a list */
} attribute_choice;

typedef struct attribute {
    const char *name; /* the constant in the header; null: the number is reserved */
    int64_t preset;
    const attribute_choice *choices; /* the valid values; or null, and then: */
    int64_t least, largest;
    const char *range; /* for messages */
} attribute;

/* For the rows of a table: a range and its text for messages, or a list of constants; C(X) is QDNN_X. */
#define FROM_TO(from, to, in_words) .least = (from), .largest = (to), .range = (in_words)
#define C(constant)                                                                                          \
    {                                                                                                        \
        QDNN_##constant, "QDNN_" #constant                                                                   \
    }
#define ONE_OF(...)                                                                                          \
    .choices = (const attribute_choice[])                                                                    \
    {                                                                                                        \
        __VA_ARGS__,                                                                                         \
        {                                                                                                    \
            0, NULL                                                                                          \
        }                                                                                                    \
    }

typedef struct attribute_table {
    const attribute *rows;
    int count;
} attribute_table;

void attributes_preset(const attribute_table *table, int64_t *values);

/* Both check the attribute's number; setting also checks the value, and changes nothing if it is invalid. */
qdnnStatus_t attribute_set(const attribute_table *table, int64_t *values, int which, int64_t value);
qdnnStatus_t attribute_get(const attribute_table *table, const int64_t *values, int which, int64_t *value);

/* The name of a value in the list; null if it is not in the list. */
const char *attribute_value_name(const attribute *a, int64_t value);

#endif
