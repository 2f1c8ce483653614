/* A small model of random weights as a GGUF file, and its logits by plain arithmetic in f64: nothing of the example, and nothing
 * of the library, is in it. */
#ifndef QDNN_TEST_CHAT_RANDOM_MODEL_H
#define QDNN_TEST_CHAT_RANDOM_MODEL_H

#include "files/maker.h"

#include <stdbool.h>

enum {
    RM_WIDTH = 64,
    RM_INNER = 96,
    RM_HEADS = 4,
    RM_KV_HEADS = 2,
    RM_HEAD = 32,
    RM_LAYERS = 3,
    RM_CONTEXT = 4096, /* which the example takes unless it is told otherwise */
    RM_WEIGHTS_MAX = 80,
    RM_EXPERTS_MAX = 8
};

/* Formats of the matrices. */
typedef enum rm_formats {
    RM_F32 = 0,
    RM_Q8 = 1,   /* Q8_0, all of them */
    RM_MIXED = 2 /* Q8_0, F16 and F32, also within queries, keys and values, gate and up */
} rm_formats;

/* What a model is like. Numbers that are 0 are not in the file. */
typedef struct rm_kind {
    const char *name; /* of the case */
    const char *architecture;
    rm_formats formats;
    bool neighbours; /* pairs of rope */
    bool gelu, scaled_embedding;
    bool untied, biases, head_norms, post_norms,
        whole;  /* whole: queries, keys and values, gate and up in one matrix */
    int rotary; /* 0: whole heads */
    int window, window_period;
    float attention_cap, logit_cap, attention_scale, residual_scale, embedding_scale, logit_scale,
        rope_factor;
    bool divisors;        /* of the frequencies of rope */
    bool yarn;            /* with rope_factor and original */
    bool longrope;        /* divisors of long contexts, and of short ones */
    int original;         /* context before it was extended */
    float rope_attention; /* factor of cosines and sines, in the file */
    int experts, used;    /* of a mixture; 0: none */
} rm_kind;

typedef struct rm_weight {
    char name[64];
    int64_t rows, columns;
    double *values;
} rm_weight;

typedef struct random_model {
    rm_kind kind;
    rm_weight weights[RM_WEIGHTS_MAX];
    int count;
    int vocabulary;
    uint64_t seed;
} random_model;

/* Makes the weights, and writes DIR/NAME. */
void random_model_make(random_model *m, rm_kind kind, uint64_t seed, const char *dir, const char *name);
void random_model_free(random_model *m);
/* The logits of each token: [count, vocabulary]. */
void random_model_logits(const random_model *m, const int32_t *tokens, int count, double *logits);

#endif
