/* The folder of a checkpoint: config.json, and what else is in it beside the weights. */
#ifndef TOOLS_QDNN_FOLDER_H
#define TOOLS_QDNN_FOLDER_H

#include "base/json.h"
#include "tools/qdnn/output.h"

typedef struct folder {
    char path[UNFINISHED_PATH];
    json *config; /* null: there is none */
} folder;

/* The folder of a safetensors file, or of its index, or the path itself. */
int folder_open(folder *f, const char *in);
void folder_close(folder *f);

/* Whether a matrix is likely the weight of a Linear layer, which loaders look for in a quantized checkpoint. Embeddings
 * are not, nor is an output layer that shares their weights. */
bool folder_is_linear(const folder *f, const char *name);

/* The type in which loaders compute, as config.json names it ("bfloat16"); null if it does not. */
const char *folder_dtype(const folder *f);

/* Writes config.json with the quantization of the output, and copies the files that are not weights: tokenizers,
 * templates, licences. Subfolders are not copied. */
int folder_write(const folder *f, output *out);

#endif
