/* A call of a quantization operation as data: what its descriptors say and what its tensor holds. From it
 * come the descriptors, the inputs, what host_ref makes of them, and the call itself through the public API.
 */
#ifndef QDNN_TEST_QUANT_CASE_H
#define QDNN_TEST_QUANT_CASE_H

#include <qdnn/qdnn.h>

#include "kernels/kernels.h"
#include "formats/kernel_data.h"
#include "host_ref/host_ref.h"

typedef struct quant_case {
    const kernel_row *row;
    kernel_spec
        spec; /* types and options; of GROUP, also the direction of groups and how far they reach across */
    qdnnGranularity_t granularity;
    int64_t extent; /* GROUP: the group size; CHANNEL: the axis; TENSOR, NONE: 0 */
    int rank;
    int64_t dims[QDNN_DIMS_MAX];
    data_kind kind;
    uint32_t seed;
    bool callers; /* scales, zeros, codes and blocks are a caller's strange ones, not made by operations */
} quant_case;

int64_t quant_case_elements(const quant_case *c);
/* The least last dimension that a kernel takes from `least` on: rows are whole blocks. */
int64_t quant_case_columns(const kernel_row *row, int64_t least);
/* The tensor as a matrix: the last dimension is a row. */
int64_t quant_case_rows(const quant_case *c);
int64_t quant_case_row_elements(const quant_case *c);

/* "quantize_nf4: data=f16 scale=f32 group_size=64 ..., dims 3 5 67, ties data, seed 7": for failures. */
void quant_case_text(const quant_case *c, char *text, size_t size);

/* The case in host_ref's terms. */
ref_quant_spec quant_case_reference(const quant_case *c);

/* Sets what a case says of codes and scales. */
bool quant_case_describe(const quant_case *c, qdnnQuantDescriptor_t quant);

/* The descriptors of a case. False, with a failure reported, where they do not lead to its kernel. */
typedef struct quant_descriptors {
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
} quant_descriptors;
bool quant_descriptors_make(const quant_case *c, quant_descriptors *out);
void quant_descriptors_free(quant_descriptors *d);

/* The operands of a case, on the host: inputs as they are, outputs as host_ref has them. */
typedef struct quant_operands {
    unsigned reads, writes;           /* 1 << operand */
    size_t bytes[QDNN_OPERAND_COUNT]; /* by the formulas of docs/numerics.md, not by the library's own */
    size_t element[QDNN_OPERAND_COUNT];
    uint8_t *host[QDNN_OPERAND_COUNT];
} quant_operands;
bool quant_operands_make(const quant_case *c, quant_operands *out);
void quant_operands_free(quant_operands *o);
const char *quant_operand_name(int operand);

/* The call: a plan and qdnnExecute with a workspace of its own, or the one-shot call. Pointers are of the
 * device, null for operands that the operation does not have. Waits for the device. */
qdnnStatus_t quant_call_plan(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT]);
qdnnStatus_t quant_call_once(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT]);

#endif
