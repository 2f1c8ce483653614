/* A sentence encoder (BERT: all-MiniLM-L6-v2 and its like) whose matrices may have any format that qdnn supports. It runs as one
 * program: tokens go in, embeddings come out, and nothing between them is on the host.
 *
 *   main.c       formats and files, compared with f32       tokens.c   from words to numbers
 *   encoder.c    the model as a program                     linear.c   weights on the device
 *
 * It uses only the public interface: include/qdnn/. */
#ifndef EXAMPLES_EMBED_H
#define EXAMPLES_EMBED_H

#include <qdnn/files.h>

#include "common.h"

/* ---- tokens.c ---- */

enum { TOKENS_MAX = 128, SENTENCES_MAX = 16 };

typedef struct vocabulary {
    char *text;
    char **words; /* by token number */
    int *sorted;  /* token numbers, sorted by word */
    int count;
} vocabulary;
vocabulary vocabulary_read(const char *folder);
void vocabulary_free(vocabulary *v);
/* [CLS], the pieces of the words, [SEP]; returns their number, at most TOKENS_MAX. */
int tokenize(const vocabulary *v, const char *sentence, int *tokens);

/* Sentences one after the other: token i of sentence s is at start[s] + i. */
typedef struct batch {
    int tokens[SENTENCES_MAX * TOKENS_MAX];
    int start[SENTENCES_MAX + 1], sentences;
} batch;

/* ---- linear.c ---- */

/* Where matrices come from: a file, used directly or quantized to a format while loading. */
typedef struct source {
    qdnnHandle_t handle;
    qdnnFile_t file;
    bool convert;
    qdnnWeights_t weights;
} source;

/* A vector or table in f32 on the device, whatever its format. */
float *source_load(const source *s, const char *name, int64_t *elements);
/* Whether the device can quantize matrices of that shape to the format. */
bool source_can(const source *s, int64_t n, int64_t k);

/* A matrix and its bias. */
typedef struct linear {
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnBinding_t parts[QDNN_FILE_OPERANDS_MAX]; /* codes, scales ... */
    int n_parts;
    float *bias;
    bool transposed;
    size_t bytes; /* of the parts */
    int64_t inputs, outputs;
} linear;
linear linear_load(const source *s, const char *name);
void linear_free(const source *s, linear *l);

/* ---- encoder.c ---- */

typedef struct shape {
    int width, inner, heads, layers;
} shape;
shape shape_read(const char *folder);
/* Writes embeddings [sentences, width] of length 1; returns the bytes of the matrices. */
size_t encode(const source *s, const shape *shape, const batch *b, float *out);

#endif
