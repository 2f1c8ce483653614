/* A file that is written tensor by tensor, under a temporary name until it is complete. */
#ifndef TOOLS_QDNN_OUTPUT_H
#define TOOLS_QDNN_OUTPUT_H

#include "tools/qdnn/tool.h"

typedef struct output_tensor {
    char *name;
    const char *type; /* as the format writes it: "BF16", "Q4_0" */
    int rank;
    int64_t dims[QDNN_DIMS_MAX]; /* slowest first */
    uint64_t bytes, offset;      /* in the data */
} output_tensor;

typedef struct output {
    qdnnFileKind_t kind;
    const char *path;
    output_tensor *tensors;
    int n_tensors, room;
    qdnnFile_t source;  /* its metadata are copied */
    char *quant_config; /* of safetensors: JSON, or null */
    uint64_t data_bytes, header_bytes;
    int file; /* -1: none */
    char temporary[4096];
} output;

/* The kind of file follows from the path's suffix. */
int output_open(output *out, const char *path, qdnnFile_t source);
/* Adds a tensor; *index receives its number. */
int output_add(output *out, const char *name, const char *type, int rank, const int64_t *dims, uint64_t bytes,
               int *index);
/* Writes the header, once all tensors are known. */
int output_begin(output *out);
int output_put(output *out, int index, const void *data);
/* Renames the file to its final name. */
int output_finish(output *out);
/* Frees everything; removes an unfinished file. */
void output_close(output *out);

/* Whether the kind of file supports that tensor type. */
bool output_has_type(qdnnFileKind_t kind, const char *type);

/* The headers, and the offsets of the tensors in the data: write_gguf.c, write_safetensors.c. */
int gguf_header(output *out, tool_text *text);
int safetensors_header(output *out, tool_text *text);
bool gguf_has_type(const char *type);
bool safetensors_has_type(const char *type);

#endif
