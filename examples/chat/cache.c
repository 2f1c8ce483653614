/* Keys and values of past tokens. */
#include "chat.h"

#include <stdlib.h>
#include <string.h>

typedef struct type {
    const char *name;
    qdnnDataType_t plain;    /* 0: codes */
    qdnnDataType_t storage;  /* of codes with one scale for each head and token */
    qdnnBlockFormat_t block; /* or blocks along a head */
} type;
static const type types[] = {
    {.name = "f16", .plain = QDNN_DATA_F16},           {.name = "f32", .plain = QDNN_DATA_F32},
    {.name = "bf16", .plain = QDNN_DATA_BF16},         {.name = "int8", .storage = QDNN_DATA_I8},
    {.name = "int4", .storage = QDNN_DATA_I4},         {.name = "fp8", .storage = QDNN_DATA_F8E4M3},
    {.name = "fp8-e5m2", .storage = QDNN_DATA_F8E5M2}, {.name = "q8_0", .block = QDNN_BLOCK_Q8_0},
    {.name = "q4_0", .block = QDNN_BLOCK_Q4_0},        {.name = "q4_1", .block = QDNN_BLOCK_Q4_1},
    {.name = "q5_0", .block = QDNN_BLOCK_Q5_0},        {.name = "q5_1", .block = QDNN_BLOCK_Q5_1},
};
enum { TYPES = sizeof types / sizeof types[0] };

static const type *find_type(const char *name)
{
    text known = {0};
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    for (int i = 0; i < TYPES; i++)
        text_print(&known, "%s%s", i ? ", " : "", types[i].name);
    fail("'%s' is no type of keys and values; there are %s", name, known.data);
}

static qdnnQuantDescriptor_t make_quant(const type *t, int64_t head)
{
    qdnnQuantDescriptor_t quant;
    if (t->plain)
        return NULL;
    ok(qdnnCreateQuantDescriptor(&quant));
    if (t->block)
        ok(qdnnSetQuantAttribute(quant, QDNN_QUANT_BLOCK_FORMAT, t->block));
    else
        ok(qdnnSetQuantDescriptor(quant, t->storage, QDNN_GRANULARITY_GROUP, head));
    return quant;
}

static size_t operand_bytes(const qdnnKvCache_t *kv, qdnnOperand_t operand)
{
    const int64_t rows = kv->pages * kv->pageSlots * kv->heads, dims[] = {rows, kv->headSize};
    qdnnTensorDescriptor_t t;
    size_t bytes;
    if (!kv->quant)
        return operand == QDNN_OPERAND_CODES ? (size_t)(rows * kv->headSize) * type_bytes(kv->type) : 0;
    ok(qdnnCreateTensorDescriptor(&t));
    ok(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 2, dims, NULL));
    ok(qdnnGetOperandSize(kv->quant, t, operand, &bytes));
    ok(qdnnDestroyTensorDescriptor(t));
    return bytes;
}

/* Sequences take turns with pages, as they do when they grow together: page j of a sequence is not beside page j + 1. */
static void make_table(qdnnHandle_t handle, cache *c)
{
    const size_t bytes = (size_t)(c->sequences * c->table_pages) * sizeof *c->pages;
    c->pages = take(bytes);
    for (int64_t s = 0; s < c->sequences; s++)
        for (int64_t j = 0; j < c->table_pages; j++)
            c->pages[s * c->table_pages + j] = (int32_t)(j * c->sequences + s);
    c->table = device_copy(handle, c->pages, bytes);
}

int32_t cache_slot(const cache *c, int64_t sequence, int64_t position)
{
    const int64_t slots = c->keys.pageSlots,
                  page = c->pages ? c->pages[sequence * c->table_pages + position / slots] : sequence;
    return (int32_t)(page * slots + position % slots);
}

static void *take_part(qdnnHandle_t handle, cache *c, size_t bytes)
{
    c->bytes += bytes;
    return bytes ? device_take(handle, bytes) : NULL;
}

cache cache_make(qdnnHandle_t handle, const settings *s, const char *name, int64_t page, int64_t context,
                 int64_t sequences)
{
    const type *t = find_type(name);
    cache c = {.n_layers = s->layers, .sequences = sequences, .has_blocks = t->block != QDNN_BLOCK_NONE};
    c.table_pages = page ? (context + page - 1) / page : 0;
    c.keys = (qdnnKvCache_t){.size = sizeof c.keys,
                             .pages = page ? c.table_pages * sequences : sequences,
                             .pageSlots = page ? page : context,
                             .tablePages = c.table_pages,
                             .heads = s->kv_heads,
                             .headSize = s->key_size,
                             .type = t->plain,
                             .quant = make_quant(t, s->key_size)};
    c.values = c.keys;
    c.values.headSize = s->value_size;
    c.values.quant = make_quant(t, s->value_size);
    c.key_bytes = operand_bytes(&c.keys, QDNN_OPERAND_CODES);
    c.value_bytes = operand_bytes(&c.values, QDNN_OPERAND_CODES);
    c.key_scale_bytes = operand_bytes(&c.keys, QDNN_OPERAND_SCALE);
    c.value_scale_bytes = operand_bytes(&c.values, QDNN_OPERAND_SCALE);
    c.layers = take((size_t)c.n_layers * sizeof *c.layers);
    for (int64_t i = 0; i < c.n_layers; i++)
        c.layers[i] = (cache_layer){take_part(handle, &c, c.key_bytes), take_part(handle, &c, c.value_bytes),
                                    take_part(handle, &c, c.key_scale_bytes),
                                    take_part(handle, &c, c.value_scale_bytes)};
    if (page)
        make_table(handle, &c);
    c.counters = device_ramp(handle, 4, 0, 0, COUNTED_TOKENS * s->heads);
    return c;
}

void cache_free(qdnnHandle_t handle, cache *c)
{
    for (int64_t i = 0; i < c->n_layers; i++) {
        ok(qdnnFree(handle, c->layers[i].keys));
        ok(qdnnFree(handle, c->layers[i].values));
        ok(qdnnFree(handle, c->layers[i].key_scale));
        ok(qdnnFree(handle, c->layers[i].value_scale));
    }
    ok(qdnnFree(handle, c->table));
    ok(qdnnFree(handle, c->counters));
    ok(qdnnDestroyQuantDescriptor(c->keys.quant));
    ok(qdnnDestroyQuantDescriptor(c->values.quant));
    free(c->layers);
    free(c->pages);
}
