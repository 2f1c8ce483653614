/* Weight files: GGUF, safetensors, and quantized checkpoints that consist of them. docs/files.md describes
 * the formats and the errors.
 *
 * A file is a list of tensors as they are stored, and a list of weights: tensors with what belongs to them (codes, scales,
 * zeros, ...) and the quantization descriptor that reads them. This part is a separate library,
 * libqdnn_files (.a, .so), which does not need libqdnn; the functions at the end, which set descriptors and copy weights to a
 * device, are inline, and need it.
 *
 * Files are mapped, never read whole. Pointers returned by the functions below point into the mapping or
 * belong to the file: they are valid until qdnnCloseFile. A file must not be truncated while it is open. Any
 * number of threads may read an open file. */
#ifndef QDNN_FILES_H
#define QDNN_FILES_H

#include <string.h>

#include <qdnn/handle.h>
#include <qdnn/memory.h>
#include <qdnn/plan.h>
#include <qdnn/quant.h>
#include <qdnn/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnFile *qdnnFile_t;

/* The kind of a file. The numbers never change. */
typedef enum { QDNN_FILE_GGUF = 0, QDNN_FILE_SAFETENSORS = 1 } qdnnFileKind_t;

typedef struct {
    qdnnFileKind_t kind;
    int version;             /* GGUF: 2 or 3; safetensors has none: 0 */
    const char *quantMethod; /* as the checkpoint's configuration names it: "gptq"; "" if there is none */
    int shards;              /* files that hold tensors */
    int tensors;
    int weights;
    int metadata;   /* entries */
    uint64_t bytes; /* of all shards */
} qdnnFileInfo_t;

/* A tensor as it is stored. */
typedef struct {
    const char *name;
    const char *typeName;    /* as the format writes it: "BF16", "Q4_K" */
    qdnnDataType_t type;     /* of an element; QDNN_DATA_OPAQUE for blocks and unknown types */
    qdnnBlockFormat_t block; /* of GGUF blocks that the library knows */
    int rank;
    int64_t dims[QDNN_DIMS_MAX]; /* slowest first, also for GGUF, which stores them in reverse */
    const void *data;
    uint64_t bytes;
    uint64_t offset; /* of the data in its shard */
    int shard;
    int weight; /* the weight it belongs to; -1: none, such as integers that are not codes */
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
    int tensor; /* the tensor with its data; -1: a number stored as text (bitsandbytes' nested offset) */
} qdnnFileOperand_t;

/* A weight: one plain tensor, or several that form a quantized one. Every tensor of floating-point numbers or blocks
 * belongs to exactly one weight. The operand CODES comes first. */
typedef struct {
    const char *name;   /* of the plain tensor: "model.layers.0.mlp.up_proj.weight" */
    const char *format; /* for display: "gptq 4-bit g128 v2" */
    /* Why no descriptor can read it, and what would help; null if one can. If not null, only the operands
     * below are set. */
    const char *problem;
    bool quantized;        /* false: plain numbers */
    qdnnWeights_t weights; /* pass these two to qdnnSetQuantWeights, */
    int64_t extent;
    int settings; /* and then each of these to qdnnSetQuantAttribute */
    qdnnFileSetting_t setting[QDNN_FILE_SETTINGS_MAX];
    int rank; /* of the described tensor: [K, N] for GPTQ and AWQ, else [..., N, K] */
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
        *text; /* for display: the value as text, cut at 200 bytes; for an array, its length and type */
    const void
        *data;      /* all of it. GGUF: the raw entry (key, type, value) in the file; safetensors: the text */
    uint64_t bytes; /* of data; the text of safetensors is followed by a zero */
} qdnnFileMetadata_t;

/* Opens a file and checks everything except the numbers in its tensors.
 *   path   a GGUF file (if split: any of its parts), a safetensors file, the index of a sharded checkpoint
 *          (model.safetensors.index.json), or the folder of a checkpoint. Beside safetensors, config.json,
 *          hf_quant_config.json, quantize_config.json and quant_config.json are looked for
 *   file   receives it; qdnnCloseFile closes it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for a file that cannot be read or is damaged;
 * _NOT_SUPPORTED for a valid file of an unsupported kind, version or type; _INTERNAL_ERROR_ALLOCATION_FAILED.
 * qdnnGetLastFileErrorString names the file, the place and the problem. Thread-safe. */
QDNN_API qdnnStatus_t qdnnOpenFile(const char *path, qdnnFile_t *file);

/* Closes a file and unmaps it.
 *   file   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnCloseFile(qdnnFile_t file);

/* Describes the last failed call of this header in this thread: "model.gguf: offset 24: ..."; "" if none has
 * failed.
 *   message   receives the text, truncated to size - 1 characters; may be null
 *   size      of message in bytes */
QDNN_API void qdnnGetLastFileErrorString(char *message, size_t size);

/* Gets a summary of a file. Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetFileInfo(qdnnFile_t file, qdnnFileInfo_t *info);

/* Gets the path of a shard.
 *   shard   0 to info.shards - 1
 *   path    receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileShard(qdnnFile_t file, int shard, const char **path);

/* Gets a tensor. Tensors are in the order of the file; in a sharded checkpoint, shard by shard.
 *   index    0 to info.tensors - 1
 *   tensor   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileTensor(qdnnFile_t file, int index, qdnnFileTensor_t *tensor);

/* Finds a tensor by name.
 *   name
 *   index   receives its index
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. */
QDNN_API qdnnStatus_t qdnnFindFileTensor(qdnnFile_t file, const char *name, int *index);

/* Gets a weight. Weights are in the order of the tensors that hold their codes.
 *   index    0 to info.weights - 1
 *   weight   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileWeight(qdnnFile_t file, int index, qdnnFileWeight_t *weight);

/* Finds a weight by name.
 *   name
 *   index   receives its index
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME. */
QDNN_API qdnnStatus_t qdnnFindFileWeight(qdnnFile_t file, const char *name, int *index);

/* Gets an entry of the metadata.
 *   index      0 to info.metadata - 1
 *   metadata   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnGetFileMetadata(qdnnFile_t file, int index, qdnnFileMetadata_t *metadata);

/* Sets the descriptors that plans take for a weight.
 *   weight   one whose problem is null
 *   data     the type of the plain numbers: that of y when dequantizing
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

/* A weight of a file on a device, as plans and one-shot calls take it. */
typedef struct {
    qdnnFileWeight_t weight;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    void *memory;                                       /* all operands, each at a multiple of 256 bytes */
    qdnnBinding_t bindings[QDNN_FILE_OPERANDS_MAX + 1]; /* weight.operands of them: CODES comes first */
} qdnnUploadedWeight_t;

/* Frees what qdnnUploadFileWeight made; all members become 0.
 *   handle     the one that it was called with
 *   uploaded   all its members may be 0
 * Returns what qdnnFree does. */
static inline qdnnStatus_t qdnnFreeUploadedWeight(qdnnHandle_t handle, qdnnUploadedWeight_t *uploaded)
{
    qdnnStatus_t status = qdnnFree(handle, uploaded->memory);
    qdnnDestroyTensorDescriptor(uploaded->tensor);
    qdnnDestroyQuantDescriptor(uploaded->quant);
    memset(uploaded, 0, sizeof *uploaded);
    return status;
}

/* Copies a weight to a device and makes its descriptors, all in one call.
 *   handle
 *   file       may be closed afterwards, unless weight.name and its like are still wanted
 *   name       of the weight
 *   data       as for qdnnSetFileWeight
 *   uploaded   receives it; qdnnFreeUploadedWeight frees it. All its members are 0 if the call fails, except
 *              for weight.problem
 * Returns what qdnnFindFileWeight, qdnnSetFileWeight, qdnnMalloc and qdnnCopyToDevice do: qdnnGetLastFileErrorString describes
 * _BAD_PARAM_UNKNOWN_NAME, uploaded->weight.problem _NOT_SUPPORTED, and qdnnGetLastErrorString the others. */
static inline qdnnStatus_t qdnnUploadFileWeight(qdnnHandle_t handle, qdnnFile_t file, const char *name,
                                                qdnnDataType_t data, qdnnUploadedWeight_t *uploaded)
{
    const size_t apart = 256;
    size_t bytes = 0;
    int index = 0;
    memset(uploaded, 0, sizeof *uploaded);
    qdnnStatus_t status = qdnnFindFileWeight(file, name, &index);
    if (!status)
        status = qdnnGetFileWeight(file, index, &uploaded->weight);
    if (status)
        return status;
    const qdnnFileWeight_t *weight = &uploaded->weight;
    for (int i = 0; i < weight->operands; i++)
        bytes += ((size_t)weight->operand[i].bytes + apart - 1) / apart * apart;
    status = qdnnCreateTensorDescriptor(&uploaded->tensor);
    if (!status)
        status = qdnnCreateQuantDescriptor(&uploaded->quant);
    if (!status)
        status = qdnnSetFileWeight(weight, data, uploaded->tensor, uploaded->quant);
    if (!status)
        status = qdnnMalloc(handle, &uploaded->memory, bytes);
    char *at = (char *)uploaded->memory;
    for (int i = 0; i < weight->operands && !status; i++) {
        const qdnnFileOperand_t *operand = &weight->operand[i];
        uploaded->bindings[i].operand = operand->operand;
        uploaded->bindings[i].pointer = at;
        uploaded->bindings[i].bytes = (size_t)operand->bytes;
        status = qdnnCopyToDevice(handle, at, operand->data, (size_t)operand->bytes);
        at += ((size_t)operand->bytes + apart - 1) / apart * apart;
    }
    if (status) {
        const char *problem = weight->problem;
        qdnnFreeUploadedWeight(handle, uploaded);
        uploaded->weight.problem = problem;
    }
    return status;
}

#ifdef __cplusplus
}
#endif
#endif
