/* A language model on the device, from tokens to tokens.
 *
 *   settings.c   what a file says about its model: sizes, factors, windows, rope
 *   weights.c    the tensors of the file on the device, as they are stored
 *   cache.c      keys and values of past tokens: their types, pages
 *   products.c   norms and products as steps of a program
 *   attention.c  the attention of a layer
 *   experts.c    a mixture of experts
 *   graph.c      the model as two programs: from tokens to hidden states, from those to the next tokens
 *   engine.c     runs the programs: prompts, answers, several tokens at once
 *   digest.c     all logits of a text: a hash, a file
 *   find.c       where a model is
 *   talk.c       turns of a conversation, and what comes out of it
 *   options.c    the command line
 *
 * It uses only the public interface: include/qdnn/. */
#ifndef EXAMPLES_CHAT_CHAT_H
#define EXAMPLES_CHAT_CHAT_H

#include <signal.h>

#include "common.h"
#include "text.h"

/* ---- options.c ---- */

typedef struct options {
    const char *model, *device, *system, *prompt; /* null: not given */
    const char *cache;                            /* type of keys and values */
    const char *type;                             /* of activations */
    bool tensor;                                  /* --mode tensor */
    bool raw;                                     /* the prompt is a text to be continued */
    bool hash, quiet;
    const char *logits; /* a file to write them to */
    int64_t context, page, batch, width, others, tokens;
    uint64_t seed;
    qdnnSampling_t sampling;
} options;
options options_read(int argc, char **argv);

/* ---- find.c ---- */

/* The file of the model: the one that is given, that of QDNN_CHAT_MODEL, or that of an installed Python package. */
const char *find_model(const char *given);

/* ---- settings.c ---- */

/* What the files of one architecture leave unsaid. */
typedef struct family {
    const char *name; /* general.architecture */
    qdnnRopePairs_t pairs;
    qdnnActivation_t gate;
    bool scales_embedding; /* by the square root of the width */
    int64_t window_period; /* where windows are not on all layers: every so many layers one has none */
} family;

typedef struct settings {
    const family *family;
    int64_t layers, width, heads, kv_heads, key_size, value_size, vocabulary;
    int64_t trained, context; /* positions that the model was made for, and those that are used */
    float eps;
    float attention_scale, attention_cap;                             /* 0: the usual one, none */
    float embedding_factor, residual_factor, logit_factor, logit_cap; /* factors of 1: none */
    qdnnRopeTables_t rope;
    float *rope_divisors;          /* null: none */
    int64_t experts, used_experts; /* of a mixture; 0: none */
    float expert_factor;
} settings;
/* A context of 0: up to 4096 positions. */
settings settings_read(qdnnFile_t file, int64_t context);
/* How many keys a layer sees; 0: all. */
int64_t settings_window(qdnnFile_t file, const settings *s, int64_t layer);

/* ---- weights.c ---- */

typedef struct vector {
    void *data; /* null: the file has none */
    qdnnDataType_t type;
    int64_t count;
} vector;

typedef struct matrix {
    void *data; /* null: the file has none */
    size_t bytes;
    qdnnFileWeight_t weight; /* its format */
    int64_t outputs, inputs;
} matrix;

enum { JOINT_MAX = 3 };

/* Products of the same x, whose results lie side by side: one matrix, if all have the same format. */
typedef struct joint {
    matrix part[JOINT_MAX];
    void *bias[JOINT_MAX]; /* f32; null: none */
    int parts;
    int64_t outputs; /* of all */
} joint;

/* A mixture of experts; data of stacks [experts, outputs, inputs]. */
typedef struct mixture {
    joint router; /* outputs 0: there is none */
    matrix gate, up,
        down; /* gate: of each expert followed by its up, if both have one format; `up` is then without data */
    int64_t inner;
} mixture;

typedef struct layer {
    vector attention_norm, query_norm, key_norm, attention_post_norm, inner_norm, inner_post_norm;
    joint qkv, out, gate_up, down;
    mixture mixture;
    int64_t window;
} layer;

typedef struct model {
    settings s;
    layer *layers;
    matrix embedding, output;
    vector output_norm;
    float *cos, *sin; /* on the device: [context, rotary / 2] */
    size_t bytes;     /* of weights */
} model;
model *model_load(qdnnHandle_t handle, qdnnFile_t file, int64_t context);
void model_free(qdnnHandle_t handle, model *m);

/* ---- cache.c ---- */

typedef struct cache_layer {
    void *keys, *values, *key_scale, *value_scale;
} cache_layer;

enum { COUNTED_TOKENS = 15 }; /* more of them in a run need no counters */

typedef struct cache {
    qdnnKvCache_t keys, values; /* of every layer */
    size_t key_bytes, value_bytes, key_scale_bytes, value_scale_bytes;
    cache_layer *layers;
    int64_t n_layers, sequences, table_pages;
    int32_t *pages; /* [sequences, table_pages], on the host; null: contiguous */
    void *table;    /* the same on the device */
    uint32_t
        *counters; /* of attention: [COUNTED_TOKENS, heads], for all layers, which run one after another */
    bool has_blocks;
    size_t bytes;
} cache;
/* `type` is a name of --cache; `page` tokens lie in a page, 0: those of a sequence lie together. */
cache cache_make(qdnnHandle_t handle, const settings *s, const char *type, int64_t page, int64_t context,
                 int64_t sequences);
void cache_free(qdnnHandle_t handle, cache *c);
/* Where the key of a position of a sequence lies. */
int32_t cache_slot(const cache *c, int64_t sequence, int64_t position);

/* ---- products.c ---- */

void builder_norm(builder *b, const char *name, vector weight, float eps, int x, int y, int64_t heads,
                  int64_t stride, size_t offset, qdnnDataType_t from, qdnnDataType_t to);

/* y = gate(x W^T) or alpha (x W^T + bias) + residual, for each part of w. */
typedef struct product {
    const char *name;
    const joint *w;
    int x, y, residual; /* tensors; residual -1: none */
    qdnnDataType_t y_type;
    qdnnActivation_t gate; /* not NONE: of a matrix with two outputs for each column of y */
    float alpha;           /* 1: none */
} product;
void builder_product(builder *b, const product *p);

/* ---- graph.c ---- */

/* A program with the numbers of the tensors that each run gives; -1: it has none. */
typedef struct stage {
    graph g;
    int tokens, sequence, position, slot, hidden;   /* of the body */
    int logits, next, step, seed, sampling, counts; /* of the head; counts also of the body */
    bool exact_attention;                           /* though tensor cores were asked for */
} stage;
/* From tokens to hidden states, `rows` tokens of any sequences at most. `counts`: tokens are counted for penalties. */
void graph_body(stage *out, qdnnHandle_t handle, const model *m, const cache *c, const options *o,
                qdnnDataType_t type, int64_t rows, bool counts);
/* From hidden states to logits and the next tokens. */
void graph_head(stage *out, qdnnHandle_t handle, const model *m, const options *o, qdnnDataType_t type,
                int64_t rows, bool greedy, bool counts);

/* ---- engine.c ---- */

typedef struct digest digest;
enum { BODIES = 4 };

/* One conversation. Tokens are on the device from the beginning: each step reads its token there and writes the next one behind it. */
typedef struct engine {
    qdnnHandle_t handle;
    const model *m;
    cache cache;
    stage bodies[BODIES]; /* for more and more rows: kernels for many compute many, even of few */
    int n_bodies;
    stage head;
    void *arena, *hidden, *logits;
    int32_t *history, *ramp, *zeros, *slots,
        *spare; /* tokens by position; 0, 1, 2 ...; 0, 0, 0 ...; slots by position; tokens that
                                                      nobody wants */
    uint64_t *steps, *seeds;
    qdnnSampling_t *sampling;
    int32_t *counts; /* null: no penalties */
    int64_t context, width, batch;
    int64_t at;                  /* tokens in the cache */
    bool pending;                /* history[at] was made, but is not in the cache yet */
    digest *digest;              /* null: logits are not looked at */
    struct crowd *crowd;         /* null: the conversation is alone */
    volatile sig_atomic_t *stop; /* set by Ctrl-C */
} engine;
engine *engine_open(qdnnHandle_t handle, const model *m, const options *o, volatile sig_atomic_t *stop);
void engine_close(engine *e);
/* Takes tokens in; the next one is then made. False: interrupted. */
bool engine_read(engine *e, const int32_t *tokens, int64_t count);
/* Takes in the token that was made last, and `draft`, which guesses those behind it. `made` receives the tokens that follow: one, and one more
 * for each guess that was right, so they are those that would have been made one by one. Returns how many. Guesses end no text. */
int64_t engine_step(engine *e, const int32_t *draft, int64_t count, int32_t *made);
int32_t engine_next(engine *e); /* the token that was made last */

/* ---- digest.c ---- */

/* Hashes logits, row by row in the order of positions, and writes them to a file if there is a path. */
digest *digest_open(const char *path, int64_t columns);
void digest_rows(digest *d, qdnnHandle_t handle, const void *logits, int64_t rows);
/* Prints the hash. */
void digest_close(digest *d);

/* ---- talk.c ---- */

/* Answers the prompt of the options, or each line of the input. */
void talk(engine *e, qdnnFile_t file, const options *o);

#endif
