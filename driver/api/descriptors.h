/* The contents of descriptors. */
#ifndef QDNN_DRIVER_DESCRIPTORS_H
#define QDNN_DRIVER_DESCRIPTORS_H

#include <qdnn/matmul.h>
#include <qdnn/quant.h>
#include <qdnn/select.h>
#include <qdnn/tensor.h>
#include <qdnn/train.h>
#include <qdnn/weights.h>

struct qdnnTensorDescriptor {
    qdnnDataType_t type;
    int rank;                                            /* 0: never set */
    int64_t dims[QDNN_DIMS_MAX], strides[QDNN_DIMS_MAX]; /* 0 from rank on */
};

struct qdnnQuantDescriptor {
    int64_t values[QDNN_QUANT_ATTRIBUTE_COUNT];
    float floor;
};

struct qdnnMatmulDescriptor {
    int64_t values[QDNN_MATMUL_ATTRIBUTE_COUNT];
    float alpha, lora_scale;
};

struct qdnnSelectDescriptor {
    int64_t values[QDNN_SELECT_ATTRIBUTE_COUNT];
    float scale, epsilon, factor;
};

struct qdnnTrainDescriptor {
    int64_t values[QDNN_TRAIN_ATTRIBUTE_COUNT];
    float decay;
};

/* The number of elements, below 2^60. */
uint64_t tensor_elements(const struct qdnnTensorDescriptor *tensor);

/* Whether the elements are contiguous, the last dimension fastest. */
bool tensor_is_packed(const struct qdnnTensorDescriptor *tensor);

/* Sets a whole descriptor, like the public call. */
qdnnStatus_t tensor_set(struct qdnnTensorDescriptor *tensor, qdnnDataType_t type, int rank,
                        const int64_t *dims, const int64_t *strides);

/* Returns from the function if the argument is not a tensor descriptor, or was never set; messages call it by `name`. */
#define CHECK_TENSOR_AS(name, argument)                                                                      \
    do {                                                                                                     \
        CHECK_NOT_NULL_AS(name, argument);                                                                   \
        if ((argument)->rank == 0)                                                                           \
            return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s was never set; fix: call qdnnSetTensorDescriptor",  \
                              (name));                                                                       \
    } while (0)
#define CHECK_TENSOR(argument) CHECK_TENSOR_AS(#argument, argument)

/* A descriptor with all defaults, and setting one value with all checks. */
struct qdnnQuantDescriptor quant_presets(void);
qdnnStatus_t quant_set(struct qdnnQuantDescriptor *quant, qdnnQuantAttribute_t attribute, int64_t value);

/* Sets a public format. */
qdnnStatus_t quant_set_weights(struct qdnnQuantDescriptor *quant, qdnnWeights_t weights, int64_t extent);

/* The name of an attribute, and of a value if its values have names. */
const char *quant_attribute_name(qdnnQuantAttribute_t attribute);
const char *quant_value_name(qdnnQuantAttribute_t attribute, int64_t value);

#endif
