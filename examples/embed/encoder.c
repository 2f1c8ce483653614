/* BERT's encoder as a program, and its run. */
#include "embed.h"

#include <math.h>
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

/* ---- the program ---- */

enum { LINEARS_MAX = 6 * 128, MEMORY_MAX = 8 * 128 };

typedef struct encoder {
    const source *s;
    const shape *shape;
    const batch *b;
    builder p;
    graph g;
    linear linears[LINEARS_MAX];
    int n_linears;
    void *memory[MEMORY_MAX]; /* everything else on the device */
    int n_memory;
    qdnnKvCache_t cache;         /* of keys, and of values: a region for each sentence */
    int x;                       /* hidden states as they are now */
    int sequence, place, length; /* of each token its sentence and place there; of each sentence its tokens */
} encoder;

static void *keep(encoder *e, void *memory)
{
    if (e->n_memory == MEMORY_MAX)
        fail("the model has more than %d layers", MEMORY_MAX / 8);
    return e->memory[e->n_memory++] = memory;
}

/* A tensor of the file in f32, of which `per` elements make a row; returns the rows. */
static int64_t add_file_tensor(encoder *e, const char *name, int64_t per, int *tensor)
{
    int64_t elements;
    float *data = keep(e, source_load(e->s, name, &elements));
    if (elements == 0 || elements % per)
        fail("%s has %lld elements, which are no rows of %lld", name, (long long)elements, (long long)per);
    *tensor = builder_fixed(&e->p, name, QDNN_DATA_F32, elements, data);
    return elements / per;
}

/* Layer norm of the hidden states. */
static void norm(encoder *e, const char *name)
{
    const qdnnNorm_t settings = {.size = sizeof settings,
                                 .kind = QDNN_NORM_LAYER,
                                 .eps = 1e-12f,
                                 .weightType = QDNN_DATA_F32,
                                 .biasType = QDNN_DATA_F32};
    const int64_t width = e->shape->width;
    char full[160];
    int weight, bias, y = builder_rows(&e->p, name, QDNN_DATA_F32, width);
    qdnnPlan_t plan;
    snprintf(full, sizeof full, "%s.weight", name);
    add_file_tensor(e, full, width, &weight);
    snprintf(full, sizeof full, "%s.bias", name);
    add_file_tensor(e, full, width, &bias);
    const qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_X, e->x, 0},
                                             {QDNN_OPERAND_WEIGHT, weight, 0},
                                             {QDNN_OPERAND_BIAS, bias, 0},
                                             {QDNN_OPERAND_Y, y, 0}};
    builder_shape(&e->p, e->p.x, QDNN_DATA_F32, 1, width, width);
    ok(qdnnCreateNormPlan(e->p.handle, &settings, e->p.x, e->p.x, NULL, &plan));
    builder_step(&e->p, name, plan, bindings, 4);
    e->x = y;
}

/* y = act(x W^T + bias) + residual, into columns of y behind `first`; residual -1: none. */
static void product(encoder *e, const char *name, qdnnActivation_t activation, int x, int residual, int y,
                    int64_t first, int64_t columns)
{
    builder *p = &e->p;
    qdnnProgramBinding_t bindings[QDNN_FILE_OPERANDS_MAX + 4];
    char part[160];
    qdnnPlan_t plan;
    int n = 0;
    if (e->n_linears == LINEARS_MAX)
        fail("the model has more than %d matrices", LINEARS_MAX);
    linear *l = &e->linears[e->n_linears++];
    *l = linear_load(e->s, name);
    if (first + l->outputs > columns)
        fail("%s has %lld outputs; config.json leaves %lld", name, (long long)l->outputs,
             (long long)(columns - first));
    snprintf(part, sizeof part, "%s.bias", name);
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_X, x, 0};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_Y, y, (size_t)first * sizeof(float)};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_BIAS,
                                           builder_fixed(p, part, QDNN_DATA_F32, l->outputs, l->bias), 0};
    if (residual >= 0)
        bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_RESIDUAL, residual, 0};
    for (int i = 0; i < l->n_parts; i++) {
        snprintf(part, sizeof part, "%s.%d", name, i);
        bindings[n++] = (qdnnProgramBinding_t){
            l->parts[i].operand,
            builder_fixed(p, part, QDNN_DATA_U8, (int64_t)l->parts[i].bytes, l->parts[i].pointer), 0};
    }
    builder_shape(p, p->x, QDNN_DATA_F32, 1, l->inputs, l->inputs);
    builder_shape(p, p->y, QDNN_DATA_F32, 1, l->outputs, columns);
    ok(qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_ALGORITHM, p->algorithm));
    ok(qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_TRANSPOSE_W, !l->transposed));
    ok(qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_BIAS_TYPE, QDNN_DATA_F32));
    ok(qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_ACTIVATION, activation));
    ok(qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_RESIDUAL, residual >= 0));
    ok(qdnnCreateMatmulPlan(p->handle, p->matmul, p->x, l->tensor, l->quant, p->y, &plan));
    builder_step(p, name, plan, bindings, n);
}

/* ---- attention ---- */

static int add_cache(encoder *e, const char *name)
{
    const qdnnKvCache_t *c = &e->cache;
    const int64_t elements = c->pages * c->pageSlots * c->heads * c->headSize;
    return builder_fixed(&e->p, name, QDNN_DATA_F32, elements,
                         keep(e, device_take(e->p.handle, (size_t)elements * sizeof(float))));
}

/* Rows of keys and values, or of values alone, into the cache: rope without anything to rotate. */
static void store(encoder *e, const char *name, int x, int64_t columns, int64_t row, int keys, int values)
{
    const qdnnRope_t rope = {.size = sizeof rope, .slots = QDNN_KV_SLOTS_BY_SEQUENCE};
    const qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_X, x, (size_t)(row - columns) * sizeof(float)},
                                             {QDNN_OPERAND_SEQUENCE, e->sequence, 0},
                                             {QDNN_OPERAND_KEY_INDEX, e->place, 0},
                                             {QDNN_OPERAND_VALUES, values, 0},
                                             {QDNN_OPERAND_KEYS, keys, 0}};
    qdnnPlan_t plan;
    builder_shape(&e->p, e->p.x, QDNN_DATA_F32, 1, columns, row);
    ok(qdnnCreateRopePlan(e->p.handle, &rope, e->p.x, NULL, keys < 0 ? NULL : &e->cache, &e->cache, &plan));
    builder_step(&e->p, name, plan, bindings, keys < 0 ? 4 : 5);
}

static qdnnPlan_t plan_attention(const encoder *e)
{
    const qdnnAttention_t settings = {.size = sizeof settings, .sees = QDNN_SEES_LENGTH};
    qdnnPlan_t plan;
    ok(qdnnCreateAttentionPlan(e->p.handle, &settings, e->p.x, &e->cache, &e->cache, e->p.y, &plan));
    return plan;
}

/* Each token sees all of its sentence. */
static int attention(encoder *e, const char *prefix, int keys, int values)
{
    static const char *const names[] = {"query", "key", "value"};
    const int64_t width = e->shape->width, heads = e->shape->heads;
    char name[192];
    snprintf(name, sizeof name, "%s.qkv", prefix);
    const int qkv = builder_rows(&e->p, name, QDNN_DATA_F32, 3 * width);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.self.%s", prefix, names[i]);
        product(e, name, QDNN_ACTIVATION_NONE, e->x, -1, qkv, i * width, 3 * width);
    }
    snprintf(name, sizeof name, "%s.store", prefix);
    store(e, name, qkv, 2 * width, 3 * width, keys, values);
    const int y = builder_rows(&e->p, prefix, QDNN_DATA_F32, width);
    const qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_X, qkv, 0},
                                             {QDNN_OPERAND_SEQUENCE, e->sequence, 0},
                                             {QDNN_OPERAND_SEQUENCE_LENGTH, e->length, 0},
                                             {QDNN_OPERAND_KEYS, keys, 0},
                                             {QDNN_OPERAND_VALUES, values, 0},
                                             {QDNN_OPERAND_Y, y, 0}};
    builder_shape(&e->p, e->p.x, QDNN_DATA_F32, heads, width / heads, 3 * width);
    builder_shape(&e->p, e->p.y, QDNN_DATA_F32, heads, width / heads, width);
    builder_step(&e->p, prefix, plan_attention(e), bindings, 6);
    return y;
}

/* The mean of each sentence's tokens: attention of a query of zeros, which sees all tokens alike. Then its length becomes 1: an RMS
 * norm whose weights are 1 / sqrt(width). */
static void pool(encoder *e, int keys, int values, float *out)
{
    const int64_t width = e->shape->width, heads = e->shape->heads, n = e->b->sentences,
                  dims[] = {n, heads, width / heads};
    const qdnnNorm_t settings = {.size = sizeof settings, .kind = QDNN_NORM_RMS, .weightType = QDNN_DATA_F32};
    const float weight = 1 / sqrtf((float)width);
    uint32_t bits;
    qdnnPlan_t plan;
    builder *p = &e->p;
    memcpy(&bits, &weight, sizeof bits);
    const int zeros = builder_fixed(p, "zeros", QDNN_DATA_F32, n * width,
                                    keep(e, device_ramp(p->handle, 4, 0, 0, n * width))),
              weights = builder_fixed(p, "weights of the length", QDNN_DATA_F32, width,
                                      keep(e, device_ramp(p->handle, 4, bits, 0, width))),
              sentences = builder_fixed(p, "numbers of sentences", QDNN_DATA_I32, n,
                                        keep(e, device_ramp(p->handle, 4, 0, 1, n))),
              mean = builder_fixed(p, "mean", QDNN_DATA_F32, n * width,
                                   keep(e, device_take(p->handle, (size_t)(n * width) * sizeof(float)))),
              y = builder_fixed(p, "embeddings", QDNN_DATA_F32, n * width, out);
    store(e, "store hidden states", e->x, width, width, -1, values);
    const qdnnProgramBinding_t means[] = {{QDNN_OPERAND_X, zeros, 0},
                                          {QDNN_OPERAND_SEQUENCE, sentences, 0},
                                          {QDNN_OPERAND_SEQUENCE_LENGTH, e->length, 0},
                                          {QDNN_OPERAND_KEYS, keys, 0},
                                          {QDNN_OPERAND_VALUES, values, 0},
                                          {QDNN_OPERAND_Y, mean, 0}},
                               lengths[] = {{QDNN_OPERAND_X, mean, 0},
                                            {QDNN_OPERAND_WEIGHT, weights, 0},
                                            {QDNN_OPERAND_Y, y, 0}};
    ok(qdnnSetTensorDescriptor(p->x, QDNN_DATA_F32, 3, dims, NULL));
    ok(qdnnSetTensorDescriptor(p->y, QDNN_DATA_F32, 3, dims, NULL));
    builder_step_of(p, "mean", plan_attention(e), 0, means, 6);
    ok(qdnnSetTensorDescriptor(p->x, QDNN_DATA_F32, 2, (const int64_t[]){n, width}, NULL));
    ok(qdnnCreateNormPlan(p->handle, &settings, p->x, p->x, NULL, &plan));
    builder_step_of(p, "length", plan, 0, lengths, 3);
}

/* ---- from tokens ---- */

static int gather(encoder *e, const char *name, int index, int64_t *rows)
{
    const int64_t width = e->shape->width;
    int table;
    qdnnPlan_t plan;
    char part[160];
    *rows = add_file_tensor(e, name, width, &table);
    snprintf(part, sizeof part, "rows of %s", name);
    const int y = builder_rows(&e->p, part, QDNN_DATA_F32, width);
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_X, table, 0}, {QDNN_OPERAND_ROW_INDEX, index, 0}, {QDNN_OPERAND_Y, y, 0}};
    ok(qdnnSetTensorDescriptor(e->p.x, QDNN_DATA_F32, 2, (const int64_t[]){*rows, width}, NULL));
    ok(qdnnSetTensorDescriptor(e->p.y, QDNN_DATA_F32, 2, (const int64_t[]){e->g.rows, width}, NULL));
    ok(qdnnCreateGatherPlan(e->p.handle, e->p.x, QDNN_DATA_I32, e->p.y, &plan));
    builder_step(&e->p, part, plan, bindings, 3);
    return y;
}

static void add(encoder *e, const char *name, qdnnSecond_t second, int b)
{
    const qdnnPointwise_t settings = {
        .size = sizeof settings, .kind = QDNN_POINTWISE_ADD, .second = second, .secondType = QDNN_DATA_F32};
    const int y = builder_rows(&e->p, name, QDNN_DATA_F32, e->shape->width);
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_X, e->x, 0}, {QDNN_OPERAND_B, b, 0}, {QDNN_OPERAND_Y, y, 0}};
    qdnnPlan_t plan;
    builder_shape(&e->p, e->p.x, QDNN_DATA_F32, 1, e->shape->width, e->shape->width);
    ok(qdnnCreatePointwisePlan(e->p.handle, &settings, e->p.x, NULL, e->p.x, NULL, &plan));
    builder_step(&e->p, name, plan, bindings, 3);
    e->x = y;
}

static void embed(encoder *e, int tokens)
{
    int64_t words, places;
    int types;
    e->x = gather(e, "embeddings.word_embeddings.weight", tokens, &words);
    for (int i = 0; i < e->b->start[e->b->sentences]; i++)
        if (e->b->tokens[i] >= words)
            fail("vocab.txt has more words than the model");
    const int place = gather(e, "embeddings.position_embeddings.weight", e->place, &places);
    if (places < e->cache.pageSlots)
        fail("a sentence has %lld tokens; the model has %lld positions", (long long)e->cache.pageSlots,
             (long long)places);
    add(e, "words and places", QDNN_SECOND_TENSOR, place);
    add_file_tensor(e, "embeddings.token_type_embeddings.weight", e->shape->width, &types);
    add(e, "embedded", QDNN_SECOND_ROW, types); /* of type 0 */
    norm(e, "embeddings.LayerNorm");
}

static void add_layer(encoder *e, int layer, int keys, int values)
{
    const int64_t width = e->shape->width, inner = e->shape->inner;
    char name[128];
    snprintf(name, sizeof name, "encoder.layer.%d.attention", layer);
    const int y = attention(e, name, keys, values);
    snprintf(name, sizeof name, "encoder.layer.%d.attention.output.dense", layer);
    int sum = builder_rows(&e->p, name, QDNN_DATA_F32, width);
    product(e, name, QDNN_ACTIVATION_NONE, y, e->x, sum, 0, width);
    e->x = sum;
    snprintf(name, sizeof name, "encoder.layer.%d.attention.output.LayerNorm", layer);
    norm(e, name);
    snprintf(name, sizeof name, "encoder.layer.%d.intermediate.dense", layer);
    const int hidden = builder_rows(&e->p, name, QDNN_DATA_F32, inner);
    product(e, name, QDNN_ACTIVATION_GELU_ERF, e->x, -1, hidden, 0, inner);
    snprintf(name, sizeof name, "encoder.layer.%d.output.dense", layer);
    sum = builder_rows(&e->p, name, QDNN_DATA_F32, width);
    product(e, name, QDNN_ACTIVATION_NONE, hidden, e->x, sum, 0, width);
    e->x = sum;
    snprintf(name, sizeof name, "encoder.layer.%d.output.LayerNorm", layer);
    norm(e, name);
}

/* ---- a run ---- */

/* The arrays that say which tokens there are, on the device. */
static int add_tokens(encoder *e)
{
    const batch *b = e->b;
    const int64_t n = b->start[b->sentences];
    int32_t sequence[SENTENCES_MAX * TOKENS_MAX], place[SENTENCES_MAX * TOKENS_MAX], length[SENTENCES_MAX];
    for (int s = 0; s < b->sentences; s++) {
        length[s] = b->start[s + 1] - b->start[s];
        e->cache.pageSlots = length[s] > e->cache.pageSlots ? length[s] : e->cache.pageSlots;
        for (int t = b->start[s]; t < b->start[s + 1]; t++) {
            sequence[t] = s;
            place[t] = t - b->start[s];
        }
    }
    const struct {
        const char *name;
        const int32_t *data;
        int64_t count;
        int *tensor;
    } arrays[] = {{"sentences", sequence, n, &e->sequence},
                  {"places", place, n, &e->place},
                  {"lengths", length, b->sentences, &e->length}};
    for (int i = 0; i < 3; i++)
        *arrays[i].tensor = builder_fixed(
            &e->p, arrays[i].name, QDNN_DATA_I32, arrays[i].count,
            keep(e, device_copy(e->p.handle, arrays[i].data, (size_t)arrays[i].count * sizeof(int32_t))));
    return builder_fixed(&e->p, "tokens", QDNN_DATA_I32, n,
                         keep(e, device_copy(e->p.handle, b->tokens, (size_t)n * sizeof(int32_t))));
}

static size_t encoder_free(encoder *e)
{
    size_t bytes = 0;
    graph_free(&e->g);
    for (int i = 0; i < e->n_linears; i++) {
        bytes += e->linears[i].bytes;
        linear_free(e->s, &e->linears[i]);
    }
    for (int i = 0; i < e->n_memory; i++)
        ok(qdnnFree(e->p.handle, e->memory[i]));
    free(e);
    return bytes;
}

size_t encode(const source *s, const shape *shape, const batch *b, float *out)
{
    const size_t bytes = (size_t)(b->sentences * shape->width) * sizeof(float);
    encoder *e = take(sizeof *e);
    e->s = s;
    e->shape = shape;
    e->b = b;
    e->cache = (qdnnKvCache_t){.size = sizeof e->cache,
                               .pages = b->sentences,
                               .heads = shape->heads,
                               .headSize = shape->width / shape->heads,
                               .type = QDNN_DATA_F32};
    builder_begin(&e->p, s->handle, &e->g, b->start[b->sentences]);
    float *embeddings = keep(e, device_take(s->handle, bytes));
    const int tokens = add_tokens(e), keys = add_cache(e, "keys"), values = add_cache(e, "values");
    embed(e, tokens);
    for (int layer = 0; layer < shape->layers; layer++)
        add_layer(e, layer, keys, values);
    pool(e, keys, values, embeddings);
    builder_end(&e->p);
    void *arena = keep(e, device_take(s->handle, e->g.info.arenaBytes));
    graph_run(s->handle, &e->g, e->g.rows, arena);
    ok(qdnnCopyToHost(s->handle, out, embeddings, bytes));
    return encoder_free(e);
}
