/* What descriptors say, as tables: an attribute has a name, a default and the values that it takes.
 * Descriptors keep their values in an array in the order of their table. */
#ifndef QDNN_DRIVER_ATTRIBUTES_H
#define QDNN_DRIVER_ATTRIBUTES_H

#include <qdnn/types.h>

enum { ATTRIBUTE_VALUES_MAX = 8 };

typedef struct attribute {
    const char *name;  /* the constant of the header */
    const char *words; /* what it takes, for sentences */
    int64_t preset;
    int64_t least, largest;
    int64_t one_of[ATTRIBUTE_VALUES_MAX]; /* instead of the range, where the first is not 0; 0 ends it */
} attribute;

typedef struct attribute_table {
    const attribute *rows;
    int count;
} attribute_table;

void attributes_preset(const attribute_table *table, int64_t *values);

/* Both check the number of the attribute; setting checks the value too, and changes nothing where it is
 * wrong. */
qdnnStatus_t attribute_set(const attribute_table *table, int64_t *values, int which, int64_t value);
qdnnStatus_t attribute_get(const attribute_table *table, const int64_t *values, int which, int64_t *value);

#endif
