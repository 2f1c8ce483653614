/* What descriptors say, as tables: an attribute has a name, a default and the values that it takes.
 * Descriptors keep their values in an array in the order of their table. */
#ifndef QDNN_DRIVER_ATTRIBUTES_H
#define QDNN_DRIVER_ATTRIBUTES_H

#include <qdnn/types.h>

/* A value with a name of its own. */
typedef struct attribute_choice {
    int64_t value;
    const char *name; /* the constant of the header; null ends a list */
} attribute_choice;

typedef struct attribute {
    const char *name; /* the constant of the header */
    int64_t preset;
    const attribute_choice *choices; /* or null: */
    int64_t least, largest;
    const char *range; /* in words */
} attribute;

/* For the rows of a table: a range, in words, or a list of constants; C(X) is QDNN_X. */
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

/* Both check the number of the attribute; setting checks the value too, and changes nothing where it is
 * wrong. */
qdnnStatus_t attribute_set(const attribute_table *table, int64_t *values, int which, int64_t value);
qdnnStatus_t attribute_get(const attribute_table *table, const int64_t *values, int which, int64_t *value);

/* The name of a value that is one of a list; null: it is none of them. */
const char *attribute_value_name(const attribute *a, int64_t value);

#endif
