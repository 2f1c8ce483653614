/* A file that is written tensor by tensor, under a temporary name until it is complete and has been read back;
 * or the folder of a checkpoint, with such a file and its configuration. */
#ifndef TOOLS_QDNN_OUTPUT_H
#define TOOLS_QDNN_OUTPUT_H

#include "tools/qdnn/tool.h"
#include "tools/unfinished.h"

typedef struct output_tensor {
    char *name;
    const char *type; /* as the format writes it: "BF16", "Q4_0" */
    int rank;
    int64_t dims[QDNN_DIMS_MAX]; /* slowest first */
    uint64_t bytes, offset;      /* in the data */
    bool is_written;
    uint64_t sum; /* of the bytes that were written */
} output_tensor;

typedef struct output_entry {
    char *key;
    char *data; /* GGUF: the raw entry; safetensors: the text */
    size_t bytes;
} output_entry;

/* How the quantization of the output is described. */
typedef enum {
    CONFIG_NONE,      /* nothing is quantized, or no loader has a name for it */
    CONFIG_OF_SOURCE, /* the weights are quantized as in the source */
    CONFIG_NEW        /* quant_config */
} config_kind;

typedef struct output {
    qdnnFileKind_t kind;
    const char *path;
    bool is_folder;
    output_tensor *tensors;
    int n_tensors, room;
    output_entry *entries;
    int n_entries;
    qdnnFile_t source; /* its metadata are copied */
    config_kind config;
    char *quant_config; /* of safetensors: JSON, or null */
    const char *dtype;  /* in which loaders must compute; null: as in the source */
    uint64_t data_bytes, header_bytes;
    int file;                        /* -1: none */
    char temporary[UNFINISHED_PATH]; /* the file, */
    char folder[UNFINISHED_PATH];    /* and the folder it is in, if one is written */
} output;

/* The kind of file follows from the path's suffix; a path that ends in '/', or an empty folder, becomes the
 * folder of a checkpoint. A path that is a file of the source is refused unless in_place is set. */
int output_open(output *out, const char *path, qdnnFile_t source, bool in_place);
/* Adds a tensor; *index receives its number. */
int output_add(output *out, const char *name, const char *type, int rank, const int64_t *dims, uint64_t bytes,
               int *index);
/* Writes the header, once all tensors are known. */
int output_begin(output *out);
int output_put(output *out, int index, const void *data);
/* Syncs the file, reads it back and compares it with what was planned. */
int output_check(output *out);
/* Adds a small file to the folder of a checkpoint. */
int output_put_file(output *out, const char *name, const void *data, size_t bytes);
/* Renames the file or folder to its final name. */
int output_finish(output *out);
/* Frees everything; removes what is not finished. */
void output_close(output *out);

/* Whether the kind of file supports that tensor type. */
bool output_has_type(qdnnFileKind_t kind, const char *type);
/* Refuses figures (--json) that would replace the input or the output. */
int output_check_json(const options *o, qdnnFile_t source);

/* metadata.c: the entries of the output. */
int metadata_plan(output *out);

/* The headers, and the offsets of the tensors in the data: write_gguf.c, write_safetensors.c. */
int gguf_header(output *out, tool_text *text);
void gguf_put(tool_text *text, uint64_t n, int bytes);
void gguf_put_string(tool_text *text, const char *string, size_t bytes);
int safetensors_header(output *out, tool_text *text);
bool gguf_has_type(const char *type);
bool safetensors_has_type(const char *type);

#endif
