/* A sentence encoder (BERT: all-MiniLM-L6-v2 and its like) whose matrices may have any format that qdnn supports.
 *
 *   main.c       formats and files, compared with f32       tokens.c   from words to numbers
 *   encoder.c    the layers                                 linear.c   products on the device
 *   host.c       attention, softmax, layer norm on the host
 *
 * It uses only the public interface: include/qdnn/. */
#ifndef EXAMPLES_EMBED_H
#define EXAMPLES_EMBED_H

#include <qdnn/files.h>
#include <qdnn/qdnn.h>

/* Ends the program with the library's error message unless the status is success. */
void ok(qdnnStatus_t status);
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *take(size_t bytes); /* zeroed memory; ends the program if there is none */

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

/* y = act(x W^T + bias) for up to `rows` rows. */
typedef struct linear {
    qdnnPlan_t plan;
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    int n_bindings;
    void *x, *y, *workspace;
    size_t workspace_bytes, weight_bytes;
    int64_t inputs, outputs;
} linear;

/* Where matrices come from: a file, used directly or quantized to a format while loading. */
typedef struct source {
    qdnnHandle_t handle;
    qdnnFile_t file;
    bool convert;
    qdnnWeights_t weights;
} source;

/* Reads a vector or table as f32 on the host, whatever its format; the caller frees it. */
float *source_read(const source *s, const char *name, int64_t *elements);
linear linear_make(const source *s, const char *name, int64_t rows, qdnnActivation_t activation);
void linear_run(const source *s, const linear *l, int64_t rows, const float *x, float *y);
void linear_free(const source *s, linear *l);
/* Whether the device can quantize matrices of that shape to the format. */
bool source_can(const source *s, int64_t n, int64_t k);

/* ---- host.c ---- */

void add(float *x, const float *y, int64_t n);
void layer_norm(float *x, int64_t rows, int64_t width, const float *weight, const float *bias);
/* softmax(q k^T / sqrt(head width)) v within each sentence, head by head. */
void attention(const batch *b, int width, int heads, const float *q, const float *k, const float *v,
               float *out);
/* The mean of each sentence's tokens, normalized to length 1. */
void pool(const batch *b, int width, const float *x, float *out);
double cosine(const float *a, const float *b, int64_t n);

/* ---- encoder.c ---- */

typedef struct shape {
    int width, inner, heads, layers;
} shape;
shape shape_read(const char *folder);
/* Writes embeddings [sentences, width] of length 1; returns the bytes of the matrices. */
size_t encode(const source *s, const shape *shape, const batch *b, float *out);

#endif
