/* Weights in files: GGUF and safetensors, and the quantized checkpoints that are made of them. docs/files.md has the
 * formats and the errors.
 *
 * A file is a list of tensors as they are stored, and a list of weights: tensors with what belongs to them (codes, scales,
 * zeros, ...) and the quantization descriptor that reads them. This part is a library of its own, libqdnn_files.a, and
 * needs nothing of libqdnn; qdnnSetFileWeight at the end, which sets descriptors, is inline.
 *
 * Files are mapped, never read whole. What the functions below hand out points into the mapping or belongs to the file:
 * it lives until qdnnCloseFile. A file must not become shorter while it is open. An open file may be read by any number
 * of threads. */
#ifndef QDNN_FILES_H
#define QDNN_FILES_H

#include <qdnn/quant.h>
#include <qdnn/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnFile *qdnnFile_t;

/* What a file is. Numbers are frozen. */
typedef enum { QDNN_FILE_GGUF = 0, QDNN_FILE_SAFETENSORS = 1 } qdnnFileKind_t;

typedef struct {
    qdnnFileKind_t kind;
    int version;             /* of GGUF: 2 or 3; of safetensors 0, it has none */
    const char *quantMethod; /* as the checkpoint's configuration names it: "gptq"; "" where there is none */
    int shards;              /* files that hold tensors */
    int tensors;
    int weights;
    int metadata;   /* entries */
    uint64_t bytes; /* of all shards */
} qdnnFileInfo_t;

/* A tensor as it is stored. */
typedef struct {
    const char *name;
    const char *typeName; /* as the format writes it: "BF16", "Q4_K" */
    qdnnDataType_t
        type; /* of an element; QDNN_DATA_OPAQUE for blocks and types that the library does not know */
    qdnnBlockFormat_t block; /* of GGUF blocks that the library knows */
    int rank;
    int64_t dims[QDNN_DIMS_MAX]; /* slowest first, also of GGUF, which writes them the other way round */
    const void *data;
    uint64_t bytes;
    uint64_t offset; /* of the data in its shard */
    int shard;
    int weight; /* that it belongs to; -1: to none, as integers that are nobody's codes */
} qdnnFileTensor_t;

enum { QDNN_FILE_SETTINGS_MAX = 12, QDNN_FILE_OPERANDS_MAX = 8 };

/* One value of a quantization descriptor. */
typedef struct {
    qdnnQuantAttribute_t attribute;
    int64_t value;
} qdnnFileSetting_t;

/* The bytes of an operand. */
typedef struct {
    qdnnOperand_t operand;
    const void *data;
    uint64_t bytes;
    int tensor; /* whose data it is; -1: a number that was written as text (bitsandbytes' nested offset) */
} qdnnFileOperand_t;

/* A weight: one plain tensor, or several that form a quantized one. Every tensor of floating-point numbers or blocks
 * belongs to exactly one weight. The operand CODES comes first. */
typedef struct {
    const char *name;   /* of the plain tensor: "model.layers.0.mlp.up_proj.weight" */
    const char *format; /* for people: "gptq 4-bit g128 v2" */
    /* Why no descriptor reads it, and what would; null where one does. Then nothing below is set but the operands. */
    const char *problem;
    bool quantized;        /* false: plain numbers */
    qdnnWeights_t weights; /* qdnnSetQuantWeights takes these two, */
    int64_t extent;
    int settings; /* and qdnnSetQuantAttribute then each of these */
    qdnnFileSetting_t setting[QDNN_FILE_SETTINGS_MAX];
    int rank; /* of the tensor that the descriptor is of: [K, N] for GPTQ and AWQ, else [..., N, K] */
    int64_t dims[QDNN_DIMS_MAX];
    bool transposed; /* it is [K, N] */
    int operands;
    qdnnFileOperand_t operand[QDNN_FILE_OPERANDS_MAX];
    uint64_t bytes; /* of all operands */
} qdnnFileWeight_t;

/* An entry of the metadata of GGUF, or of safetensors' __metadata__. */
typedef struct {
    const char *key;
    const char
        *text; /* the value as text, cut off after some 200 characters; of an array how many of what it has */
    const void
        *data; /* GGUF: the whole entry (key, type, value) as it is in the file; null for safetensors */
    uint64_t bytes;
} qdnnFileMetadata_t;

/* Opens a file and checks everything about it but the numbers in its tensors.
 *   path   a GGUF file (of several: any of them), a safetensors file, the index of a sharded checkpoint
 *          (model.safetensors.index.json), or the folder of a checkpoint. Beside safetensors, config.json,
 *          hf_quant_config.json, quantize_config.json and quant_config.json are looked for
 *   file   receives it; qdnnCloseFile closes it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for a file that cannot be read or is damaged;
 * _NOT_SUPPORTED for a file that is in order, but not of a kind, version or type known here;
 * _INTERNAL_ERROR_ALLOCATION_FAILED. qdnnGetLastFileErrorString names the file, the place and what is wrong. Any thread. */
QDNN_API qdnnStatus_t qdnnOpenFile(const char *path, qdnnFile_t *file);

/* Closes a file and unmaps it.
 *   file   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnCloseFile(qdnnFile_t file);

/* Why the last failed call of this header in this thread failed: "model.gguf: offset 24: ..."; "" where none has.
 *   message   receives the sentence, cut off at size - 1 characters; null is fine
 *   size      of message in bytes */
QDNN_API void qdnnGetLastFileErrorString(char *message, size_t size);

/* What a file holds.
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetFileInfo(qdnnFile_t file, qdnnFileInfo_t *info);

/* The path of a shard.
 *   shard   0 to info.shards - 1
 *   path    receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileShard(qdnnFile_t file, int shard, const char **path);

/* A tensor, in the order of the file; of a sharded checkpoint, shard after shard.
 *   index    0 to info.tensors - 1
 *   tensor   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileTensor(qdnnFile_t file, int index, qdnnFileTensor_t *tensor);

/* The tensor of a name.
 *   name
 *   index   receives its index
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. */
QDNN_API qdnnStatus_t qdnnFindFileTensor(qdnnFile_t file, const char *name, int *index);

/* A weight, in the order of the tensors that hold their codes.
 *   index    0 to info.weights - 1
 *   weight   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileWeight(qdnnFile_t file, int index, qdnnFileWeight_t *weight);

/* The weight of a name.
 *   name
 *   index   receives its index
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. */
QDNN_API qdnnStatus_t qdnnFindFileWeight(qdnnFile_t file, const char *name, int *index);

/* An entry of the metadata.
 *   index      0 to info.metadata - 1
 *   metadata   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileMetadata(qdnnFile_t file, int index, qdnnFileMetadata_t *metadata);

/* Sets the descriptors that plans take for a weight.
 *   weight   one without a problem
 *   data     the type of plain numbers: that of y, where it is dequantized
 *   tensor
 *   quant
 * Returns what qdnnSetTensorDescriptor, qdnnSetQuantWeights and qdnnSetQuantAttribute do; _NOT_SUPPORTED for a weight
 * with a problem. */
static inline qdnnStatus_t qdnnSetFileWeight(const qdnnFileWeight_t *weight, qdnnDataType_t data,
                                             qdnnTensorDescriptor_t tensor, qdnnQuantDescriptor_t quant)
{
    qdnnStatus_t status = QDNN_STATUS_NOT_SUPPORTED;
    if (!weight->problem)
        status = qdnnSetTensorDescriptor(tensor, data, weight->rank, weight->dims, NULL);
    if (!status)
        status = qdnnSetQuantWeights(quant, weight->weights, weight->extent);
    for (int i = 0; i < weight->settings && !status; i++)
        status = qdnnSetQuantAttribute(quant, weight->setting[i].attribute, weight->setting[i].value);
    return status;
}

#ifdef __cplusplus
}
#endif
#endif
