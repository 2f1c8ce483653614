/* What the library knows of data types. */
#ifndef QDNN_DRIVER_DATA_TYPE_H
#define QDNN_DRIVER_DATA_TYPE_H

#include <qdnn/tensor.h>

/* Bits of an element; 0 for types without a size, -1 for numbers that are no type. */
int data_type_bits(qdnnDataType_t type);

#endif
