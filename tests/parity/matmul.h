/* The products that the tests of products take turns through. */
#ifndef QDNN_TEST_PARITY_MATMUL_H
#define QDNN_TEST_PARITY_MATMUL_H

#include "device/product_case.h"

/* The formats, by the dequantize row of each; null past the end. */
const kernel_row *matmul_row_at(int index);
int matmul_row_count(void);
void matmul_row_name(int index, char *text, size_t size);

product_case matmul_case_at(const kernel_row *row, int trial);
/* In mode tensor, for an SM. */
product_case matmul_tensor_case_at(const kernel_row *row, int trial, int sm);
/* Whether the weights of such a case can be prepacked. */
bool matmul_is_prepackable(const product_case *c);

#endif
