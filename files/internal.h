/* An open file, as filled in by the readers.
 *
 * A reader returns a status; files_error reports what is wrong, once, with the file and the place. All memory
 * of a file is allocated by file_alloc and freed with the file. */
#ifndef QDNN_FILES_INTERNAL_H
#define QDNN_FILES_INTERNAL_H

#include <qdnn/files.h>

#include "base/json.h"

/* Limits of untrusted files; docs/limits.md lists them all. */
enum {
    FILES_NAME_MAX = 4096,       /* bytes of a tensor's name */
    FILES_TENSORS_MAX = 1 << 20, /* of all files of a checkpoint */
    FILES_MEMBER_VALUES_MAX =
        1 << 17 /* JSON values of one member of a safetensors header: metadata has many */
};

typedef struct shard {
    const char *path; /* as it was opened */
    const char *name; /* its last part, for messages */
    const uint8_t *data;
    uint64_t bytes;
} shard;

/* Memory that is freed with the file. */
typedef struct piece {
    struct piece *before;
} piece;

typedef enum quant_method {
    METHOD_NONE, /* no configuration: everything must follow from the tensors */
    METHOD_GPTQ,
    METHOD_AWQ,
    METHOD_COMPRESSED_TENSORS,
    METHOD_MODELOPT,
    METHOD_BITSANDBYTES,
    METHOD_FP8,
    METHOD_MXFP4,
    METHOD_OTHER
} quant_method;

/* The quantization described by a checkpoint's configuration; missing numbers are 0. */
typedef struct quant_config {
    quant_method method;
    const char *name; /* the name of the method, as written */
    int bits;
    int64_t group_size; /* -1: the whole of K */
    bool is_v2;         /* GPTQ: zeros are stored directly, not minus one */
    bool is_symmetric;
    bool is_gemv; /* AWQ in a layout other than GEMM */
} quant_config;

struct qdnnFile {
    qdnnFileKind_t kind;
    int version;
    piece *pieces;
    shard *shards;
    int n_shards, shards_room;
    qdnnFileTensor_t *tensors;
    int n_tensors, tensors_room;
    int *by_name; /* indices of the tensors, sorted by name */
    qdnnFileWeight_t *weights;
    int n_weights, weights_room;
    qdnnFileMetadata_t *metadata;
    int n_metadata, metadata_room;
    uint64_t alignment;                                /* of GGUF */
    uint64_t split_number, split_count, split_tensors; /* of split GGUF files */
    quant_config config;
};

/* ---- error.c ---- */

/* Keeps the message for qdnnGetLastFileErrorString; returns the status. */
qdnnStatus_t files_error(qdnnStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));
void files_clear_error(void);
/* Reports a damaged file: "model.gguf: offset 24: ...". */
qdnnStatus_t files_damaged(const shard *s, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
qdnnStatus_t files_no_memory(void);

#define FILES_TRY(call)                                                                                      \
    do {                                                                                                     \
        qdnnStatus_t status_ = (call);                                                                       \
        if (status_ != QDNN_STATUS_SUCCESS)                                                                  \
            return status_;                                                                                  \
    } while (0)

/* ---- memory.c ---- */

/* Zeroed, or null. */
void *file_alloc(struct qdnnFile *f, size_t bytes);
/* A zero-terminated copy, or null. */
char *file_copy(struct qdnnFile *f, const char *text, size_t bytes);
char *file_print(struct qdnnFile *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void file_free_pieces(struct qdnnFile *f);
/* Appends an element to a growing list, zeroed; null if there is no memory. */
qdnnFileTensor_t *file_add_tensor(struct qdnnFile *f);
qdnnFileWeight_t *file_add_weight(struct qdnnFile *f);
qdnnFileMetadata_t *file_add_metadata(struct qdnnFile *f);

/* ---- map.c ---- */

/* Maps a whole file and adds it to the shards. */
qdnnStatus_t file_map(struct qdnnFile *f, const char *path, int *number);
void file_unmap_all(struct qdnnFile *f);
/* Parses a small JSON file; *doc is null if it does not exist. */
qdnnStatus_t files_read_json(const char *path, json **doc);
/* Whether there is a regular file; a failure to find out is an error. */
qdnnStatus_t files_exists(const char *path, bool *exists);

/* ---- layout.c ---- */

/* Multiplies sizes; returns false if the product is 2^60 or more. */
bool files_elements(int rank, const int64_t *dims, uint64_t *elements);
/* Sorts the names, and rejects two tensors of the same name and tensors that overlap. */
qdnnStatus_t file_check_tensors(struct qdnnFile *f);
int file_find(const struct qdnnFile *f, const char *name); /* -1: not found */
/* The tensor named like `name`, with `suffix` instead of its last `cut` characters; -1: there is none. */
int file_find_beside(const struct qdnnFile *f, const char *name, size_t cut, const char *suffix);
bool files_ends_with(const char *text, const char *end);
/* The bytes of a text that are shown: at most 200, in whole UTF-8 characters. */
size_t files_cut(const char *text, size_t bytes);
/* Rejects metadata of a shard, from entry `first` on, that have the same key. */
qdnnStatus_t file_check_keys(struct qdnnFile *f, const shard *s, int first);
/* Removes metadata whose key an earlier shard has. */
qdnnStatus_t file_merge_keys(struct qdnnFile *f);

/* ---- gguf.c, safetensors.c, checkpoint.c: the readers ---- */

qdnnStatus_t gguf_read(struct qdnnFile *f, int shard);
qdnnStatus_t gguf_read_splits(struct qdnnFile *f, const char *path);
qdnnStatus_t safetensors_read(struct qdnnFile *f, int shard);
bool safetensors_begins(const shard *s);
qdnnStatus_t checkpoint_read_index(struct qdnnFile *f, const char *path);
/* Reads the configuration from the folder of the file, or from its own metadata. */
qdnnStatus_t checkpoint_read_config(struct qdnnFile *f, const char *path);

/* ---- weights.c: from tensors to weights ---- */

qdnnStatus_t file_find_weights(struct qdnnFile *f);

#endif
