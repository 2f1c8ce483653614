/* A file that is written tensor by tensor and appears whole: under a temporary name until it is done. */
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
    qdnnFile_t source;  /* whose metadata are taken over */
    char *quant_config; /* of safetensors: JSON, or null */
    uint64_t data_bytes, header_bytes;
    int file; /* -1: none */
    char temporary[4096];
} output;

/* The kind by the path's ending. */
int output_open(output *out, const char *path, qdnnFile_t source);
/* Adds a tensor; *index is its number. */
int output_add(output *out, const char *name, const char *type, int rank, const int64_t *dims, uint64_t bytes,
               int *index);
/* Once all tensors are known: writes the header. */
int output_begin(output *out);
int output_put(output *out, int index, const void *data);
/* Gives the file its name. */
int output_finish(output *out);
/* Frees everything; removes what is not finished. */
void output_close(output *out);

/* Whether the kind of file has such a type of tensors. */
bool output_has_type(qdnnFileKind_t kind, const char *type);

/* The headers, and where the tensors lie in the data: write_gguf.c, write_safetensors.c. */
int gguf_header(output *out, tool_text *text);
int safetensors_header(output *out, tool_text *text);
bool gguf_has_type(const char *type);
bool safetensors_has_type(const char *type);

#endif
