/* A kernel's specification in host_ref's terms. */
#ifndef QDNN_TEST_REF_SPEC_H
#define QDNN_TEST_REF_SPEC_H

#include "host_ref/host_ref.h"
#include "kernels/kernels.h"

ref_quant_spec ref_spec_of(const kernel_row *row, const kernel_spec *spec);

/* The bytes of an operand, and of one element of it, by host_ref. */
int64_t ref_operand_bytes(const ref_quant_spec *spec, int64_t rows, int64_t columns, int operand);
size_t ref_element_bytes(const ref_quant_spec *spec, int operand);

/* The arrays of a quantized tensor among its operands. */
ref_arrays ref_arrays_of(uint8_t *const operands[QDNN_OPERAND_COUNT]);

/* Data and blocks of a format in blocks, either from the other by host_ref. Blocks that are read are made of x; of
 * random bytes where they are to have any numbers, or any of moderate size, as the format needs that cannot be quantized. */
typedef enum { BLOCKS_OF_DATA, BLOCKS_MODERATE, BLOCKS_ANY } blocks_kind;
void ref_fill_blocks(const kernel_row *row, const ref_quant_spec *spec, int64_t n, uint32_t seed,
                     blocks_kind kind, void *data, uint8_t *blocks);

#endif
