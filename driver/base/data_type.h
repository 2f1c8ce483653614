/* Properties of data types. */
#ifndef QDNN_DRIVER_DATA_TYPE_H
#define QDNN_DRIVER_DATA_TYPE_H

#include <qdnn/tensor.h>

/* Bits of an element; 0 for types without a fixed size, -1 for an unknown type. */
int data_type_bits(qdnnDataType_t type);

#endif
