/* Attention through the public API against host_ref: every type and format of caches, pages, masks, windows, sinks, groups of
 * heads, several sequences, and rows divided among thread blocks or not. What no query sees is NaN in the cache. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/kv_case.h"
#include "device/row_case.h"
#include "device/under_test.h"

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

enum { SEQUENCES = 3 };

typedef struct attention_case {
    const char *name;
    qdnnDataType_t x, y;
    int64_t tokens, queries, heads, key, value;
    kv_format format;
    int64_t room;       /* keys of a sequence */
    int64_t page_slots; /* 0: contiguous */
    kv_order order;
    qdnnAttentionSees_t sees;
    int64_t window;
    qdnnAttentionBias_t bias;
    qdnnDataType_t mask;
    int64_t mask_less; /* keys that the mask has no column for */
    float cap, scale;
    bool mask_heads, sinks, one_sequence, by_head, in_keys, special, holes, wild;
    int64_t gap;  /* elements between tokens */
    size_t shift; /* bytes from an aligned address */
    bool prompt;  /* tokens are neighbours of one sequence */
    bool counted; /* keys are divided, and joined in one launch */
    bool tensor;  /* in mode tensor of */
    int sm;
} attention_case;

static const attention_case cases[] = {
    {"OneKey", F32, F32, 1, 1, 1, 64, 64, KV_F32, 1, .page_slots = 0},
    {"Decode", F16, F16, 3, 8, 2, 128, 128, KV_F16, 700, .page_slots = 16},
    {"DecodeOfLong", F16, F32, 2, 4, 1, 64, 64, KV_F16, 2600, .page_slots = 64},
    {"DecodeBf16", BF16, BF16, 3, 4, 2, 64, 64, KV_BF16, 300, .page_slots = 1},
    {"Prompt", F32, F32, 21, 2, 2, 64, 64, KV_F32, 90, .prompt = true},
    {"PromptOfGroups", F16, F16, 19, 6, 2, 32, 32, KV_F16, 150, .page_slots = 8, .prompt = true},
    {"Mixed", F16, F16, 18, 2, 2, 64, 64, KV_F16, 200, .page_slots = 4},
    {"ManyHeads", F16, F16, 2, 14, 2, 40, 24, KV_F16, 130, .page_slots = 256},
    {"Three", F32, F16, 3, 9, 3, 64, 64, KV_F16, 200, .page_slots = 32, .order = KV_GAPS, .gap = 24},
    {"Small", F32, F32, 5, 3, 1, 8, 8, KV_F32, 100, .page_slots = 2, .order = KV_HEADS_FIRST},
    {"Sixteen", F16, F16, 5, 2, 1, 16, 16, KV_BF16, 129, .page_slots = 4},
    {"Wide", F32, F32, 2, 4, 2, 256, 256, KV_F16, 300, .page_slots = 16},
    {"Odd", BF16, F32, 4, 5, 1, 72, 136, KV_F16, 260, .page_slots = 16},
    {"Mla", F16, F16, 2, 6, 1, 576, 512, KV_F16, 200, .page_slots = 64, .in_keys = true},
    {"MlaInt8", BF16, BF16, 2, 3, 1, 576, 512, KV_INT8_GROUPS, 130, .page_slots = 16, .in_keys = true},
    {"Shifted", F16, F16, 3, 4, 2, 64, 64, KV_F16, 150, .page_slots = 16, .shift = 2},
    {"ShiftedInt8", F16, F16, 3, 4, 2, 64, 64, KV_INT8, 150, .page_slots = 16, .shift = 1},
    {"ShiftedInt4", F32, F32, 3, 4, 2, 64, 64, KV_INT4_HEADS, 150, .shift = 1},
    {"Length", F32, F32, 7, 2, 2, 64, 64, KV_F32, 200, .page_slots = 16, .sees = QDNN_SEES_LENGTH},
    {"Range", F32, F32, 7, 2, 2, 64, 64, KV_F32, 200, .page_slots = 16, .sees = QDNN_SEES_RANGE},
    {"All", F16, F32, 7, 2, 1, 64, 64, KV_F16, 130, .sees = QDNN_SEES_ALL, .one_sequence = true},
    {"Window", F16, F16, 18, 2, 2, 64, 64, KV_F16, 1500, .page_slots = 16, .window = 70, .prompt = true},
    {"WindowOfStrips", F16, F16, 2, 2, 2, 64, 64, KV_F16, 2500, .page_slots = 16, .window = 1100},
    {"Mask", F16, F16, 6, 4, 2, 64, 64, KV_F16, 200, .bias = QDNN_BIAS_MASK, .mask = F16},
    {"MaskOfHeads", F32, F32, 6, 4, 2, 64, 64, KV_F32, 200, .bias = QDNN_BIAS_MASK, .mask = F32,
     .mask_heads = true, .mask_less = 3, .sees = QDNN_SEES_ALL, .one_sequence = true},
    {"SlopedMask", F32, F32, 6, 4, 2, 64, 64, KV_F32, 200, .page_slots = 16, .bias = QDNN_BIAS_SLOPED_MASK,
     .mask = BF16, .sinks = true},
    {"Alibi", F16, F16, 18, 3, 3, 64, 64, KV_F16, 300, .page_slots = 16, .bias = QDNN_BIAS_ALIBI},
    {"Cap", F16, F16, 4, 4, 2, 64, 64, KV_F16, 200, .page_slots = 16, .cap = 2.5f, .scale = 0.3f},
    {"Sinks", BF16, BF16, 4, 8, 1, 64, 64, KV_BF16, 200, .page_slots = 16, .sinks = true, .window = 20},
    {"Everything", F16, F16, 17, 6, 2, 64, 64, KV_F16, 1200, .page_slots = 16, .sinks = true, .window = 300,
     .cap = 20, .bias = QDNN_BIAS_SLOPED_MASK, .mask = F16, .mask_heads = true, .holes = true,
     .special = true},
    {"Special", F32, F32, 6, 4, 2, 64, 64, KV_F32, 300, .page_slots = 16, .special = true, .holes = true},
    {"SpecialOfLong", F16, F16, 2, 4, 2, 64, 64, KV_F16, 2100, .page_slots = 16, .special = true,
     .holes = true},
    {"SpecialPrompt", F16, F16, 40, 2, 2, 64, 64, KV_F16, 300, .page_slots = 16, .special = true,
     .prompt = true},
    {"SpecialOfGroups", BF16, F32, 24, 6, 2, 32, 40, KV_F32, 400, .page_slots = 8, .special = true,
     .window = 90, .prompt = true},
    {"SpecialMask", F16, F16, 20, 4, 2, 24, 136, KV_INT8, 200, .page_slots = 16, .special = true,
     .bias = QDNN_BIAS_MASK, .mask = BF16, .prompt = true},
    {"WildPrompt", F16, F16, 40, 4, 2, 64, 64, KV_F16, 300, .page_slots = 16, .wild = true, .prompt = true},
    {"WildDecode", BF16, F16, 3, 4, 2, 32, 32, KV_E4M3, 300, .page_slots = 16, .wild = true, .window = 50},
    {"LongPrompt", F16, F16, 20, 4, 1, 32, 32, KV_F16, 1300, .page_slots = 16, .prompt = true},
    {"LongPromptOfMany", F16, F16, 20, 60, 60, 8, 8, KV_F16, 1300, .page_slots = 16, .prompt = true},
    {"ManyTokens", F16, F16, 80, 1, 1, 16, 16, KV_F16, 600, .page_slots = 16},
    {"DecodeOfMany", F16, F16, 15, 8, 8, 32, 32, KV_INT8, 1500, .page_slots = 16},
    {"Int8", F16, F16, 3, 8, 2, 128, 128, KV_INT8, 300, .page_slots = 16},
    {"Int8ByHead", F16, F16, 3, 8, 2, 128, 128, KV_INT8, 300, .page_slots = 16, .order = KV_HEADS_FIRST,
     .by_head = true},
    {"Int4", F16, F16, 3, 8, 2, 128, 128, KV_INT4, 300, .page_slots = 16},
    {"Int4Of80", F16, F16, 3, 4, 2, 80, 80, KV_INT4, 150, .page_slots = 16},
    {"E4m3", F16, F16, 3, 8, 2, 128, 128, KV_E4M3, 300, .page_slots = 16},
    {"E5m2", BF16, BF16, 3, 4, 2, 64, 64, KV_E5M2, 150, .page_slots = 16},
    {"Int8Groups", F16, F16, 3, 4, 2, 128, 64, KV_INT8_GROUPS, 150, .page_slots = 16, .by_head = true},
    {"Int4Groups", F32, F32, 3, 4, 2, 128, 64, KV_INT4_GROUPS, 150, .page_slots = 16},
    {"E4m3Groups", BF16, F32, 3, 4, 2, 96, 96, KV_E4M3_GROUPS, 150, .page_slots = 16},
    {"Int8Heads", F16, F16, 3, 4, 2, 128, 128, KV_INT8_HEADS, 150, .page_slots = 0},
    {"E4m3Cache", F16, F16, 3, 4, 2, 128, 128, KV_E4M3_CACHE, 150, .page_slots = 16},
    {"Int8Cache", F16, F16, 3, 4, 2, 64, 64, KV_INT8_CACHE, 150, .page_slots = 16},
    {"Q80", F16, F16, 3, 4, 2, 128, 128, KV_Q8_0, 150, .page_slots = 16},
    {"Q40", F16, F16, 3, 4, 2, 128, 128, KV_Q4_0, 150, .page_slots = 16},
    {"Q41", F32, F32, 3, 4, 2, 64, 64, KV_Q4_1, 150, .page_slots = 16},
    {"Q50", F16, F16, 3, 4, 2, 64, 32, KV_Q5_0, 150, .page_slots = 0},
    {"Q51", F16, F16, 3, 4, 2, 96, 96, KV_Q5_1, 150, .page_slots = 16},
    {"Iq4Nl", F16, F16, 3, 4, 2, 128, 256, KV_IQ4_NL, 150, .page_slots = 16},
    {"Counted", F16, F16, 2, 8, 2, 128, 128, KV_F16, 2600, .page_slots = 16, .counted = true},
    {"CountedOfMany", F16, F32, 5, 12, 2, 64, 40, KV_INT8, 1500, .page_slots = 16, .counted = true,
     .sinks = true, .window = 1100},
    {"CountedMla", F16, F16, 2, 20, 1, 576, 512, KV_F16, 1100, .page_slots = 64, .in_keys = true,
     .counted = true},
    {"CountedWide", F16, BF16, 3, 5, 1, 256, 256, KV_F16, 1300, .page_slots = 16, .counted = true,
     .holes = true, .special = true},
    {"CountedPrompt", F16, F16, 20, 4, 1, 32, 32, KV_F16, 1300, .page_slots = 16, .prompt = true,
     .counted = true},
    {"CountedOfFew", F16, F16, 3, 4, 2, 64, 64, KV_F16, 100, .page_slots = 16, .counted = true},
    {"NoTokens", F16, F16, 0, 4, 2, 64, 64, KV_F16, 150, .page_slots = 16},
};

static size_t size_of(qdnnDataType_t type)
{
    return (size_t)ref_scalar_size(type);
}

static kv_layout layout_of(const attention_case *c)
{
    kv_layout l = {.format = c->format, .order = c->order, .heads = c->heads, .by_head = c->by_head};
    l.page_slots = c->page_slots ? c->page_slots : c->room;
    l.table_pages = c->page_slots ? (c->room + c->page_slots - 1) / c->page_slots : 0;
    l.pages = SEQUENCES * (c->page_slots ? l.table_pages : 1);
    return l;
}

/* ---- What is seen ---- */

/* Everything that a case is made of, in host memory. */
typedef struct scene {
    const attention_case *c;
    kv_layout layout;
    int64_t lengths[SEQUENCES];
    int32_t *sequence, *key_index, *visible, *length,
        *pages; /* those that the plan does not take are kept here */
    uint8_t *x, *keys, *values, *key_scale, *value_scale, *mask;
    float *slope, *sink;
    uint8_t *counters; /* zeros, which they are afterwards */
    void *owned[16];
    int owned_count;
    uint64_t value_seed;
} scene;

static void *own(scene *s, size_t bytes)
{
    return s->owned[s->owned_count++] = calloc(bytes + 1, 1);
}

/* Tokens of a prompt are the last of sequence 1; others belong to all sequences in turn, and to one that does not exist. */
static void place_tokens(scene *s)
{
    const attention_case *c = s->c;
    for (int64_t q = 0; q < SEQUENCES; q++)
        s->lengths[q] = q == 1 || c->room < 3 ? c->room : q == 0 ? c->room - c->room / 3 : c->room / 2;
    for (int64_t t = 0; t < c->tokens; t++) {
        s->sequence[t] = c->one_sequence || c->tokens == 1 ? 0
                         : c->prompt                       ? 1
                         : t == 5                          ? -1
                                                           : (int32_t)(t % 3);
        const int64_t length = s->sequence[t] < 0 ? 1 : s->lengths[s->sequence[t]];
        s->key_index[t] = (int32_t)(c->prompt ? length - c->tokens + t : length - 1 - t / SEQUENCES * 9);
        if (t == 4 && !c->prompt)
            s->key_index[t] = -1;
        s->visible[2 * t] = (int32_t)(t * 13 % 70) - 3;
        s->visible[2 * t + 1] = (int32_t)(t == 2 ? 0 : length - 1 - t);
    }
    for (int64_t q = 0; q < SEQUENCES; q++)
        s->length[q] = (int32_t)s->lengths[q];
}

static int64_t last_seen(const scene *s, int64_t t)
{
    const attention_case *c = s->c;
    switch (c->sees) {
    case QDNN_SEES_KEY_INDEX:
        return s->key_index[t];
    case QDNN_SEES_LENGTH:
        return s->sequence[t] < 0 ? -1 : s->lengths[s->sequence[t]] - 1;
    case QDNN_SEES_RANGE:
        return s->visible[2 * t + 1];
    default:
        return (c->page_slots ? s->layout.table_pages * c->page_slots : c->room) - 1;
    }
}

static int64_t first_seen(const scene *s, int64_t t)
{
    int64_t first = s->c->sees == QDNN_SEES_RANGE && s->visible[2 * t] > 0 ? s->visible[2 * t] : 0;
    if (s->c->window && last_seen(s, t) - s->c->window + 1 > first)
        first = last_seen(s, t) - s->c->window + 1;
    return first;
}

/* ---- The cache ---- */

static uint64_t mixed(uint64_t x)
{
    x = (x + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    return (x ^ x >> 27) * 0x94D049BB133111EBu;
}

/* Between -2 and 2; now and then infinite or NaN, if the case has such; in a wild one often, but only in values. */
static float element_of(const scene *s, int64_t q, int64_t j, int64_t h, int64_t i, uint64_t seed)
{
    const uint64_t r = mixed(mixed((uint64_t)(((q * 4096 + j) * 64 + h) * 1024 + i)) ^ seed);
    if (s->c->special && r % 40009 == 3)
        return r >> 32 & 1 ? INFINITY : -INFINITY;
    if (s->c->special && r % 60013 == 5)
        return NAN;
    if (s->c->wild && seed == s->value_seed && r % 499 == 3)
        return r >> 32 & 1 ? INFINITY : r >> 33 & 1 ? -INFINITY : NAN;
    return (float)((double)(r >> 40) / (1 << 22) - 2.0);
}

static bool page_is_missing(const scene *s, int64_t q, int64_t entry)
{
    return s->c->holes && (q * 7 + entry) % 11 == 4;
}

/* Blocks that are only read, in a packed cache: f16 scales, and codes of 4 bits. */
static void fill_iq4_nl(uint8_t *array, int64_t head, int64_t size, uint64_t seed)
{
    enum { BLOCK = 32, BYTES = 18 };
    for (int64_t i = 0; i < size / BLOCK && head >= 0; i++) {
        uint8_t *block = array + (head * (size / BLOCK) + i) * BYTES;
        ref_scalar_store(F16, block, 0, 0.01f + (float)(i % 3) * 0.002f);
        for (int byte = 2; byte < BYTES; byte++)
            block[byte] = (uint8_t)(mixed((uint64_t)((head * 64 + i) * BYTES + byte) ^ seed) >> 20);
    }
}

static void fill_array(scene *s, bool is_keys, uint8_t *array, uint8_t *scale, uint64_t seed)
{
    const attention_case *c = s->c;
    const int64_t size = is_keys ? c->key : c->value;
    const ref_kv_spec spec = kv_reference(&s->layout, size, F32);
    float head[1024];
    memset(array, 0xFF, (size_t)ref_kv_bytes(&spec));
    const size_t scales = (size_t)ref_kv_scale_bytes(&spec);
    if (scale)
        memset(scale, 0xFF, scales);
    if (kv_is_static(c->format)) {
        const qdnnDataType_t types[] = {F32, F16, BF16};
        const qdnnDataType_t type = types[spec.quant.scale];
        for (size_t i = 0; i < scales / size_of(type); i++)
            ref_scalar_store(type, scale, (int64_t)i, 0.02f * (float)(i + 1));
    }
    for (int64_t q = 0; q < SEQUENCES; q++)
        for (int64_t j = 0; j < s->lengths[q]; j++)
            for (int64_t h = 0; h < c->heads; h++) {
                const int64_t slot = ref_kv_slot(&spec, s->pages, s->layout.table_pages, q, j);
                if (c->format == KV_IQ4_NL) {
                    fill_iq4_nl(array, slot * c->heads + h, size, seed);
                    continue;
                }
                for (int64_t i = 0; i < size; i++)
                    head[i] = element_of(s, q, j, h, i, seed);
                ref_kv_write(&spec, slot, h, head, array, scale);
            }
}

static void fill_pages(scene *s)
{
    const int64_t entries = s->layout.table_pages;
    for (int64_t q = 0; q < SEQUENCES; q++)
        for (int64_t e = 0; e < entries; e++)
            s->pages[q * entries + e] = page_is_missing(s, q, e)
                                            ? (int32_t)(e % 2 ? -1 : s->layout.pages)
                                            : (int32_t)(s->layout.pages - 1 - (e * SEQUENCES + q));
}

/* A contiguous cache whose room is all seen has keys everywhere. */
static void fill_rest(scene *s)
{
    if (s->c->sees == QDNN_SEES_ALL)
        for (int64_t q = 0; q < SEQUENCES; q++)
            s->lengths[q] = s->c->room;
}

static void *operand(scene *s, row_operands *all, bool has, qdnnOperand_t name, size_t bytes)
{
    return has ? row_operands_add(all, name, bytes) : own(s, bytes);
}

static void fill_mask(scene *s, uint64_t seed)
{
    const attention_case *c = s->c;
    const int64_t columns = c->room - c->mask_less, rows = c->tokens * (c->mask_heads ? c->queries : 1);
    for (int64_t i = 0; i < rows * columns; i++) {
        const uint64_t r = mixed((uint64_t)i ^ seed);
        const bool is_hidden = r % 5 == 0 || i % columns / 64 == 1;
        ref_scalar_store(c->mask, s->mask, i, is_hidden ? -INFINITY : (float)(r % 97) / 32 - 1);
    }
}

static void build(scene *s, row_operands *all, uint64_t seed)
{
    const attention_case *c = s->c;
    const bool has_scales = kv_has_scales(c->format), has_mask = c->mask != 0,
               has_slope = c->bias == QDNN_BIAS_SLOPED_MASK || c->bias == QDNN_BIAS_ALIBI;
    s->layout = layout_of(c);
    s->value_seed = seed + 1;
    const ref_kv_spec keys = kv_reference(&s->layout, c->key, F32),
                      values = kv_reference(&s->layout, c->value, F32);
    const int64_t row = c->queries * c->key,
                  elements = c->tokens ? (c->tokens - 1) * (row + c->gap) + row : 0;
    s->x = row_operands_add(all, QDNN_OPERAND_X, (size_t)elements * size_of(c->x));
    row_fill(c->x, s->x, elements, seed, false);
    s->sequence = operand(s, all, !c->one_sequence, QDNN_OPERAND_SEQUENCE, (size_t)c->tokens * 4);
    s->key_index =
        operand(s, all, c->sees == QDNN_SEES_KEY_INDEX, QDNN_OPERAND_KEY_INDEX, (size_t)c->tokens * 4);
    s->visible = operand(s, all, c->sees == QDNN_SEES_RANGE, QDNN_OPERAND_VISIBLE, (size_t)c->tokens * 8);
    s->length = operand(s, all, c->sees == QDNN_SEES_LENGTH, QDNN_OPERAND_SEQUENCE_LENGTH, SEQUENCES * 4);
    s->pages = operand(s, all, c->page_slots != 0, QDNN_OPERAND_PAGE_TABLE,
                       (size_t)(SEQUENCES * s->layout.table_pages) * 4);
    place_tokens(s);
    fill_rest(s);
    fill_pages(s);
    s->keys = row_operands_add(all, QDNN_OPERAND_KEYS, (size_t)ref_kv_bytes(&keys));
    if (has_scales)
        s->key_scale = row_operands_add(all, QDNN_OPERAND_KEY_SCALE, (size_t)ref_kv_scale_bytes(&keys));
    fill_array(s, true, s->keys, s->key_scale, seed);
    if (!c->in_keys) {
        s->values = row_operands_add(all, QDNN_OPERAND_VALUES, (size_t)ref_kv_bytes(&values));
        if (has_scales)
            s->value_scale =
                row_operands_add(all, QDNN_OPERAND_VALUE_SCALE, (size_t)ref_kv_scale_bytes(&values));
        fill_array(s, false, s->values, s->value_scale, seed + 1);
    }
    if (has_mask) {
        const int64_t cells = c->tokens * (c->mask_heads ? c->queries : 1) * (c->room - c->mask_less);
        s->mask = row_operands_add(all, QDNN_OPERAND_MASK, (size_t)cells * size_of(c->mask));
        fill_mask(s, seed + 2);
    }
    s->counters = operand(s, all, c->counted, QDNN_OPERAND_COUNTERS, (size_t)(c->tokens * c->queries) * 4);
    s->slope = operand(s, all, has_slope, QDNN_OPERAND_SLOPE, (size_t)c->queries * 4);
    s->sink = operand(s, all, c->sinks, QDNN_OPERAND_SINK, (size_t)c->queries * 4);
    for (int64_t h = 0; h < c->queries; h++) {
        s->slope[h] = 0.5f / (float)(h + 1);
        s->sink[h] = h % 4 == 3 ? -INFINITY : (float)h - 1;
    }
}

/* ---- The reference ---- */

/* One head of one token. */
static void attend(const scene *s, int64_t t, int64_t h, void *y)
{
    const attention_case *c = s->c;
    const int64_t size = c->value > c->key ? c->value : c->key, group = c->queries / c->heads,
                  columns = c->room - c->mask_less;
    const ref_kv_spec keys = kv_reference(&s->layout, c->key, F32),
                      values = kv_reference(&s->layout, c->value, F32);
    const float scale = c->scale != 0 ? c->scale : (float)(1.0 / sqrt((double)c->key));
    const ref_attention_spec spec = {.x = c->x,
                                     .y = c->y,
                                     .d = c->key,
                                     .dv = c->value,
                                     .scale = scale,
                                     .cap = c->cap,
                                     .mask = c->mask,
                                     .alibi = c->bias == QDNN_BIAS_ALIBI};
    ref_attention_row row = {
        .first = first_seen(s, t), .last = last_seen(s, t), .key_stride = size, .value_stride = size};
    if (s->sequence[t] < 0)
        row.last = -1;
    const int64_t all = row.last + 1;
    float *k = calloc((size_t)(all * size) + 1, sizeof *k), *v = calloc((size_t)(all * size) + 1, sizeof *v);
    bool *absent = calloc((size_t)all + 1, 1);
    for (int64_t j = 0; j < all; j++) {
        const int64_t slot = ref_kv_slot(&keys, s->pages, s->layout.table_pages, s->sequence[t], j);
        absent[j] = slot < 0 || (c->mask && j >= columns);
        if (absent[j])
            continue;
        ref_kv_read(&keys, slot, h / group, s->keys, s->key_scale, k + j * size);
        if (!c->in_keys)
            ref_kv_read(&values, slot, h / group, s->values, s->value_scale, v + j * size);
    }
    row.q = s->x + (size_t)(t * (c->queries * c->key + c->gap) + h * c->key) * size_of(c->x);
    row.keys = k;
    row.values = c->in_keys ? k : v;
    row.absent = absent;
    if (c->mask)
        row.mask = s->mask + (size_t)(((c->mask_heads ? h * c->tokens : 0) + t) * columns) * size_of(c->mask);
    row.slope = c->bias == QDNN_BIAS_SLOPED_MASK || c->bias == QDNN_BIAS_ALIBI ? &s->slope[h] : NULL;
    row.sink = c->sinks ? &s->sink[h] : NULL;
    if (c->tensor)
        ref_attention_tensor(&spec, &row, ref_tensor_family_of(c->sm), y);
    else
        ref_attention(&spec, &row, y);
    free(k);
    free(v);
    free(absent);
}

/* Fills the operands in, with what they hold after so many rows. */
static void fill(const attention_case *c, uint64_t seed, row_operands *all)
{
    scene s = {.c = c};
    build(&s, all, seed);
    const size_t head = (size_t)c->value * size_of(c->y);
    uint8_t *y = row_operands_result(all, QDNN_OPERAND_Y, (size_t)c->tokens, (size_t)c->queries * head);
    for (int64_t t = 0; t < c->tokens; t++)
        for (int64_t h = 0; h < c->queries; h++)
            attend(&s, t, h, y + (size_t)(t * c->queries + h) * head);
    for (int i = 0; i < all->count; i++)
        all->at[i].shift =
            all->at[i].operand == QDNN_OPERAND_KEYS || all->at[i].operand == QDNN_OPERAND_VALUES ? c->shift
                                                                                                 : 0;
    for (int i = 0; i < s.owned_count; i++)
        free(s.owned[i]);
}

/* ---- Plans ---- */

static bool make_tensors(const attention_case *c, qdnnTensorDescriptor_t *x, qdnnTensorDescriptor_t *y)
{
    const int64_t x_dims[] = {c->tokens, c->queries, c->key}, y_dims[] = {c->tokens, c->queries, c->value},
                  strides[] = {c->queries * c->key + c->gap, c->key, 1};
    return CHECK_QDNN(qdnnCreateTensorDescriptor(x)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(*x, c->x, 3, x_dims, strides)) &&
           CHECK_QDNN(qdnnCreateTensorDescriptor(y)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(*y, c->y, 3, y_dims, NULL));
}

static qdnnAttention_t settings_of(const attention_case *c)
{
    return (qdnnAttention_t){.size = sizeof(qdnnAttention_t),
                             .mode = c->tensor ? QDNN_ATTENTION_TENSOR : QDNN_ATTENTION_EXACT,
                             .scale = c->scale,
                             .cap = c->cap,
                             .sees = c->sees,
                             .window = c->window,
                             .oneSequence = c->one_sequence,
                             .sinks = c->sinks,
                             .bias = c->bias,
                             .maskType = c->mask,
                             .maskKeys = c->mask ? c->room - c->mask_less : 0,
                             .maskHeads = c->mask_heads,
                             .valueSize = c->in_keys ? c->value : 0,
                             .counters = c->counted};
}

static void run(qdnnHandle_t handle, const attention_case *c, uint64_t seed)
{
    const qdnnAttention_t attention = settings_of(c);
    const kv_layout l = layout_of(c);
    qdnnTensorDescriptor_t x = NULL, y = NULL;
    qdnnQuantDescriptor_t quants[2] = {NULL, NULL};
    qdnnKvCache_t keys, values;
    qdnnPlan_t plan = NULL;
    if (make_tensors(c, &x, &y) && kv_describe(&l, c->key, &keys, &quants[0]) &&
        (c->in_keys || kv_describe(&l, c->value, &values, &quants[1])) &&
        CHECK_QDNN(
            qdnnCreateAttentionPlan(handle, &attention, x, &keys, c->in_keys ? NULL : &values, y, &plan))) {
        row_operands all = {0};
        fill(c, seed, &all);
        row_operands_check(handle, plan, &all, c->tokens);
        row_operands_check(handle, plan, &all, c->tokens / 2);
        row_operands_free(&all);
    }
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(quants[0]);
    qdnnDestroyQuantDescriptor(quants[1]);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(y);
}

DEVICE_ROWS(ParityAttention, HostRef, cases)
{
    if (cases[index].tokens == 0)
        device_launches_nothing();
    qdnnHandle_t handle = device_begin(sms[index % 6], 1, "all");
    if (handle)
        run(handle, &cases[index], (uint64_t)index + 1);
    device_end(handle);
}

/* ---- Mode tensor: every case as every family of tensor cores ---- */

enum { SMS = (int)(sizeof sms / sizeof sms[0]), CASES = (int)(sizeof cases / sizeof cases[0]) };

static void tensor_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", cases[index / SMS].name, sms[index % SMS]);
}

static int tensor_count(void)
{
    return SMS * CASES;
}

DEVICE_EACH(ParityAttentionTensor, HostRef, tensor_count, tensor_name)
{
    const char *sm = sms[index % SMS];
    attention_case c = cases[index / SMS];
    NEED_SM(sm);
    c.tensor = true;
    c.sm = device_sm_number(sm);
    if (c.x == F32 || (c.x == BF16 && c.sm < 80))
        c.x = F16;
    if (c.tokens == 0)
        device_launches_nothing();
    qdnnHandle_t handle = device_begin(sm, 1, "all");
    if (handle)
        run(handle, &c, (uint64_t)index + 1);
    device_end(handle);
}
