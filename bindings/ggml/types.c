/* Types and tensors of ggml, and descriptors of qdnn for them. */
#include "engine.h"

/* ---- Descriptors ---- */

static void note(shapes *s, qdnnStatus_t status)
{
    if (s->status == QDNN_STATUS_SUCCESS)
        s->status = status;
}

qdnnTensorDescriptor_t shapes_add(shapes *s, qdnnDataType_t type, int rank, const int64_t *dims,
                                  const int64_t *strides)
{
    qdnnTensorDescriptor_t *t = &s->tensor[s->n++];
    note(s, qdnnCreateTensorDescriptor(t));
    if (*t)
        note(s, qdnnSetTensorDescriptor(*t, type, rank, dims, strides));
    return *t;
}

qdnnTensorDescriptor_t shapes_matrix(shapes *s, qdnnDataType_t type, int64_t rows, int64_t columns,
                                     int64_t stride)
{
    return shapes_add(s, type, 2, (int64_t[]){rows, columns}, (int64_t[]){stride, 1});
}

qdnnQuantDescriptor_t shapes_weights(shapes *s, qdnnWeights_t weights)
{
    note(s, qdnnCreateQuantDescriptor(&s->quant));
    if (s->quant)
        note(s, qdnnSetQuantWeights(s->quant, weights, 0));
    return s->quant;
}

qdnnStatus_t shapes_free(shapes *s, qdnnStatus_t status)
{
    for (int i = 0; i < s->n; i++)
        qdnnDestroyTensorDescriptor(s->tensor[i]);
    qdnnDestroyQuantDescriptor(s->quant);
    return s->status == QDNN_STATUS_SUCCESS ? status : s->status;
}

/* ---- Tensors of ggml ---- */

static const struct {
    enum ggml_type type;
    qdnnWeights_t weights;
    qdnnDataType_t data; /* 0: not plain numbers */
} types[] = {
    {GGML_TYPE_F32, QDNN_WEIGHTS_F32, QDNN_DATA_F32},    {GGML_TYPE_F16, QDNN_WEIGHTS_F16, QDNN_DATA_F16},
    {GGML_TYPE_BF16, QDNN_WEIGHTS_BF16, QDNN_DATA_BF16}, {GGML_TYPE_Q4_0, QDNN_WEIGHTS_GGUF_Q4_0, 0},
    {GGML_TYPE_Q4_1, QDNN_WEIGHTS_GGUF_Q4_1, 0},         {GGML_TYPE_Q5_0, QDNN_WEIGHTS_GGUF_Q5_0, 0},
    {GGML_TYPE_Q5_1, QDNN_WEIGHTS_GGUF_Q5_1, 0},         {GGML_TYPE_Q8_0, QDNN_WEIGHTS_GGUF_Q8_0, 0},
    {GGML_TYPE_Q2_K, QDNN_WEIGHTS_GGUF_Q2_K, 0},         {GGML_TYPE_Q3_K, QDNN_WEIGHTS_GGUF_Q3_K, 0},
    {GGML_TYPE_Q4_K, QDNN_WEIGHTS_GGUF_Q4_K, 0},         {GGML_TYPE_Q5_K, QDNN_WEIGHTS_GGUF_Q5_K, 0},
    {GGML_TYPE_Q6_K, QDNN_WEIGHTS_GGUF_Q6_K, 0},         {GGML_TYPE_IQ4_NL, QDNN_WEIGHTS_GGUF_IQ4_NL, 0},
    {GGML_TYPE_IQ4_XS, QDNN_WEIGHTS_GGUF_IQ4_XS, 0},     {GGML_TYPE_TQ1_0, QDNN_WEIGHTS_GGUF_TQ1_0, 0},
    {GGML_TYPE_TQ2_0, QDNN_WEIGHTS_GGUF_TQ2_0, 0},       {GGML_TYPE_MXFP4, QDNN_WEIGHTS_GGUF_MXFP4, 0},
    {GGML_TYPE_NVFP4, QDNN_WEIGHTS_GGUF_NVFP4, 0},       {GGML_TYPE_Q1_0, QDNN_WEIGHTS_GGUF_Q1_0, 0},
    {GGML_TYPE_Q2_0, QDNN_WEIGHTS_GGUF_Q2_0, 0},         {GGML_TYPE_IQ1_S, QDNN_WEIGHTS_GGUF_IQ1_S, 0},
    {GGML_TYPE_IQ1_M, QDNN_WEIGHTS_GGUF_IQ1_M, 0},       {GGML_TYPE_IQ2_XXS, QDNN_WEIGHTS_GGUF_IQ2_XXS, 0},
    {GGML_TYPE_IQ2_XS, QDNN_WEIGHTS_GGUF_IQ2_XS, 0},     {GGML_TYPE_IQ2_S, QDNN_WEIGHTS_GGUF_IQ2_S, 0},
    {GGML_TYPE_IQ3_XXS, QDNN_WEIGHTS_GGUF_IQ3_XXS, 0},   {GGML_TYPE_IQ3_S, QDNN_WEIGHTS_GGUF_IQ3_S, 0},
};
enum { TYPES = sizeof types / sizeof types[0] };

bool plain_type(enum ggml_type type, qdnnDataType_t *out)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type && types[i].data) {
            *out = types[i].data;
            return true;
        }
    return false;
}

bool weights_type(enum ggml_type type, qdnnWeights_t *out)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type) {
            *out = types[i].weights;
            return true;
        }
    return false;
}

bool is_packed_row(const struct ggml_tensor *t)
{
    return t->nb[0] == ggml_type_size(t->type);
}

void *row_at(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3)
{
    return (char *)t->data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
}
