/* A call of a quantization operation as data: its descriptors and the contents of its tensor. From it follow
 * the descriptors, the inputs, the results of host_ref, and the call itself through the public API. */
#ifndef QDNN_TEST_QUANT_CASE_H
#define QDNN_TEST_QUANT_CASE_H

#include <qdnn/qdnn.h>

#include "kernels/kernels.h"
#include "formats/kernel_data.h"
#include "host_ref/host_ref.h"

typedef struct quant_case {
    const kernel_row *row;
    /* types and options; for GROUP, also the direction of groups and their extent across it */
    kernel_spec spec;
    qdnnGranularity_t granularity;
    int64_t extent; /* GROUP: the group size; CHANNEL: the axis; TENSOR, NONE: 0 */
    int rank;
    int64_t dims[QDNN_DIMS_MAX];
    data_kind kind;
    uint32_t seed;
    /* scales, zeros, codes and blocks are unusual ones of a caller, not made by operations */
    bool callers;
    int64_t callers_first; /* where in the lists of such they begin */
    /* By plan: at most so many blocks, where blocks go on to further work; 0: as many as the library takes. */
    unsigned blocks_most;
} quant_case;

int64_t quant_case_elements(const quant_case *c);
/* The smallest last dimension, at least `least`, that a kernel accepts: rows consist of whole blocks. */
int64_t quant_case_columns(const kernel_row *row, int64_t least);
/* The tensor as a matrix: the last dimension forms a row. */
int64_t quant_case_rows(const quant_case *c);
int64_t quant_case_row_elements(const quant_case *c);

/* "quantize_nf4: data=f16 scale=f32 group_size=64 ..., dims 3 5 67, ties data, seed 7": for failures. */
void quant_case_text(const quant_case *c, char *text, size_t size);

/* The case as a specification for host_ref. */
ref_quant_spec quant_case_reference(const quant_case *c);

/* Sets the attributes of the case for codes and scales. */
bool quant_case_describe(const quant_case *c, qdnnQuantDescriptor_t quant);

/* The descriptors of a case. quant_descriptors_make returns false, with a failure reported, if they do not
 * select its kernel. */
typedef struct quant_descriptors {
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
} quant_descriptors;
bool quant_descriptors_make(const quant_case *c, quant_descriptors *out);
void quant_descriptors_free(quant_descriptors *d);

/* The operands of a case on the host: inputs as they are, outputs as host_ref computes them. */
typedef struct quant_operands {
    uint64_t reads, writes;           /* 1 << operand */
    size_t bytes[QDNN_OPERAND_COUNT]; /* by the formulas of docs/numerics.md, not by those of the library */
    size_t element[QDNN_OPERAND_COUNT];
    uint8_t *host[QDNN_OPERAND_COUNT];
} quant_operands;
bool quant_operands_make(const quant_case *c, quant_operands *out);
void quant_operands_free(quant_operands *o);
const char *quant_operand_name(int operand);

/* The call: a plan and qdnnExecute with its own workspace, or the one-shot call. Pointers are device
 * addresses, null for operands that the operation does not have. Waits for the device. */
qdnnStatus_t quant_call_plan(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT]);
qdnnStatus_t quant_call_once(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT]);

#endif
