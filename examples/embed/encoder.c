/* BERT's encoder, layer by layer: each layer is loaded, run and freed. */
#include "embed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- config.json ---- */

static int number(const char *text, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = strstr(text, quoted);
    long value = at && (at = strchr(at, ':')) ? strtol(at + 1, NULL, 10) : 0;
    if (value < 1 || value > 1 << 20)
        fail("config.json has no %s", key);
    return (int)value;
}

shape shape_read(const char *folder)
{
    char path[4096], text[16384];
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("%s cannot be read; give the folder of the model", path);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return (shape){.width = number(text, "hidden_size"),
                   .inner = number(text, "intermediate_size"),
                   .heads = number(text, "num_attention_heads"),
                   .layers = number(text, "num_hidden_layers")};
}

/* ---- layers ---- */

typedef struct run {
    const source *s;
    const shape *shape;
    const batch *b;
    int64_t tokens;
    size_t bytes; /* of matrices */
    float *x;     /* [tokens, width] */
} run;

static void product(run *r, int layer, const char *name, qdnnActivation_t activation, const float *x,
                    float *y)
{
    char full[128];
    snprintf(full, sizeof full, "encoder.layer.%d.%s", layer, name);
    linear l = linear_make(r->s, full, r->tokens, activation);
    linear_run(r->s, &l, r->tokens, x, y);
    r->bytes += l.weight_bytes;
    linear_free(r->s, &l);
}

static void norm(run *r, const char *name, float *x)
{
    char full[160];
    int64_t n;
    snprintf(full, sizeof full, "%s.weight", name);
    float *weight = source_read(r->s, full, &n);
    snprintf(full, sizeof full, "%s.bias", name);
    float *bias = source_read(r->s, full, &n);
    layer_norm(x, r->tokens, r->shape->width, weight, bias);
    free(weight);
    free(bias);
}

static void embed_tokens(run *r)
{
    int64_t n, width = r->shape->width;
    float *words = source_read(r->s, "embeddings.word_embeddings.weight", &n), *places, *types;
    int64_t count = n / width;
    places = source_read(r->s, "embeddings.position_embeddings.weight", &n);
    types = source_read(r->s, "embeddings.token_type_embeddings.weight", &n);
    for (int s = 0; s < r->b->sentences; s++)
        for (int t = r->b->start[s]; t < r->b->start[s + 1]; t++) {
            float *row = r->x + t * width;
            if (r->b->tokens[t] >= count)
                fail("vocab.txt has more words than the model");
            memcpy(row, words + r->b->tokens[t] * width, (size_t)width * sizeof *row);
            add(row, places + (t - r->b->start[s]) * width, width);
            add(row, types, width);
        }
    norm(r, "embeddings.LayerNorm", r->x);
    free(words);
    free(places);
    free(types);
}

static void run_attention(run *r, int layer, float *scratch)
{
    int64_t n = r->tokens * r->shape->width;
    float *q = scratch, *k = q + n, *v = k + n, *out = v + n;
    char name[128];
    product(r, layer, "attention.self.query", QDNN_ACTIVATION_NONE, r->x, q);
    product(r, layer, "attention.self.key", QDNN_ACTIVATION_NONE, r->x, k);
    product(r, layer, "attention.self.value", QDNN_ACTIVATION_NONE, r->x, v);
    attention(r->b, r->shape->width, r->shape->heads, q, k, v, out);
    product(r, layer, "attention.output.dense", QDNN_ACTIVATION_NONE, out, q);
    add(r->x, q, n);
    snprintf(name, sizeof name, "encoder.layer.%d.attention.output.LayerNorm", layer);
    norm(r, name, r->x);
}

static void run_inner(run *r, int layer, float *scratch)
{
    int64_t n = r->tokens * r->shape->width;
    float *inner = scratch, *out = inner + r->tokens * r->shape->inner;
    char name[128];
    product(r, layer, "intermediate.dense", QDNN_ACTIVATION_GELU_ERF, r->x, inner);
    product(r, layer, "output.dense", QDNN_ACTIVATION_NONE, inner, out);
    add(r->x, out, n);
    snprintf(name, sizeof name, "encoder.layer.%d.output.LayerNorm", layer);
    norm(r, name, r->x);
}

size_t encode(const source *s, const shape *shape, const batch *b, float *out)
{
    run r = {.s = s, .shape = shape, .b = b, .tokens = b->start[b->sentences]};
    r.x = take((size_t)(r.tokens * shape->width) * sizeof *r.x);
    float *scratch = take((size_t)(r.tokens * (4 * shape->width + shape->inner)) * sizeof *scratch);
    embed_tokens(&r);
    for (int layer = 0; layer < shape->layers; layer++) {
        run_attention(&r, layer, scratch);
        run_inner(&r, layer, scratch);
    }
    pool(b, shape->width, r.x, out);
    free(r.x);
    free(scratch);
    return r.bytes;
}
