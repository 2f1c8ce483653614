/* Rope, and what it writes into KV caches, through the public API against host_ref: pairs, ranges, sections, every type and
 * format, every order of slots, fewer rows. The reference of the fused operation is rope, and then the quantization of each head. */
#include <stdlib.h>
#include <string.h>

#include "device/kv_case.h"
#include "device/row_case.h"
#include "device/under_test.h"

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

typedef struct rope_case {
    const char *name;
    qdnnDataType_t x, y;
    int64_t rows, queries, heads, head,
        value; /* heads: of keys and values; head: of queries and keys, 0: no keys */
    int64_t rotary, first;
    qdnnRopePairs_t pairs;
    qdnnRopeSections_t sections;
    int64_t section[4];
    bool by_section;
    int64_t gap; /* elements between the tokens of x */
    kv_format format;
    kv_order order;
    int64_t page_slots;
    bool is_paged, by_sequence, by_head, special;
    size_t shift; /* bytes from an aligned address */
} rope_case;

enum { POSITIONS = 23, SEQUENCES = 2 };

static const rope_case ropes[] = {
    {"Halves", F16, F16, 5, 3, 0, 64, 0, .rotary = 64},
    {"Neighbours", F16, F16, 5, 3, 0, 64, 0, 64, .pairs = QDNN_ROPE_NEIGHBOURS},
    {"HalvesOf128", BF16, BF16, 3, 32, 0, 128, 0, .rotary = 128},
    {"F32", F32, F32, 4, 5, 0, 128, 0, 128, .special = true},
    {"F32Neighbours", F32, F16, 4, 5, 0, 128, 0, 128, .pairs = QDNN_ROPE_NEIGHBOURS, .special = true},
    {"Partial", F16, F32, 4, 2, 0, 80, 0, .rotary = 32},
    {"PartialLast", BF16, BF16, 4, 4, 0, 192, 0, 64, .first = 128},
    {"PartialNeighbours", F32, BF16, 4, 4, 0, 192, 0, 64, .first = 128, .pairs = QDNN_ROPE_NEIGHBOURS},
    {"Odd", F16, F16, 4, 3, 0, 80, 0, 20, .first = 6},
    {"OddNeighbours", F32, F32, 4, 3, 0, 76, 0, 22, .first = 2, .pairs = QDNN_ROPE_NEIGHBOURS},
    {"Ragged", BF16, F16, 3, 2, 0, 42, 0, 42, .special = true},
    {"Halves96", F16, F16, 3, 4, 0, 96, 0, .rotary = 96},
    {"Two", F32, F32, 2, 1, 0, 2, 0, .rotary = 2},
    {"Long", F32, F32, 2, 3, 0, 1024, 0, .rotary = 1024},
    {"Long576", F16, F16, 2, 3, 0, 576, 0, 64, .first = 512},
    {"Gap", F16, F16, 5, 3, 0, 64, 0, 64, .gap = 24},
    {"Shifted", F16, F16, 5, 3, 0, 64, 0, 64, .shift = 4},
    {"Contiguous", BF16, BF16, 4, 3, 0, 128, 0, 128, .sections = QDNN_ROPE_CONTIGUOUS,
     .section = {16, 24, 24}},
    {"Interleaved", F16, F16, 4, 3, 0, 128, 0, 128, .sections = QDNN_ROPE_INTERLEAVED,
     .section = {24, 20, 20}},
    {"BySection", F32, F16, 4, 2, 0, 64, 0, 64, .sections = QDNN_ROPE_CONTIGUOUS, .section = {11, 21},
     .by_section = true},
    {"FourSections", F16, F16, 4, 2, 0, 64, 0, 64, .sections = QDNN_ROPE_INTERLEAVED, .section = {8, 8, 8, 8},
     .by_section = true, .pairs = QDNN_ROPE_NEIGHBOURS},
    {"NoRows", F16, F16, 0, 2, 0, 64, 0, .rotary = 64},
    {"Plain", F16, F16, 9, 9, 3, 64, 64, 64, .format = KV_F16, .page_slots = 4},
    {"PlainPaged", BF16, BF16, 9, 32, 8, 128, 128, 128, .format = KV_BF16, .page_slots = 4, .is_paged = true,
     .by_sequence = true},
    {"PlainContiguous", F32, F32, 9, 4, 2, 64, 64, 64, .format = KV_F32, .page_slots = 11,
     .by_sequence = true, .special = true},
    {"F16OfF32", F32, F32, 7, 4, 2, 64, 64, 32, .format = KV_F16, .page_slots = 16, .order = KV_HEADS_FIRST},
    {"Gaps", F16, F32, 7, 4, 2, 72, 40, 24, .format = KV_BF16, .page_slots = 2, .order = KV_GAPS, .gap = 8},
    {"KeysAlone", F16, F16, 7, 0, 3, 64, 0, 64, .format = KV_F16, .page_slots = 1},
    {"ValuesAlone", BF16, BF16, 7, 0, 3, 0, 64, 0, .format = KV_F16, .page_slots = 8},
    {"WithoutQueries", F16, F16, 7, 0, 3, 64, 128, 64, .format = KV_F32, .page_slots = 8},
    {"NoRotation", F16, F16, 7, 2, 3, 64, 64, 0, .format = KV_BF16, .page_slots = 8},
    {"ShiftedCache", F16, F16, 7, 2, 3, 64, 64, 64, .format = KV_F16, .page_slots = 8, .shift = 4},
    {"Int8", F16, F16, 9, 32, 8, 128, 128, 128, .format = KV_INT8, .page_slots = 16},
    {"Int8ByHead", F32, F32, 9, 4, 2, 64, 64, 64, .format = KV_INT8, .page_slots = 16, .by_head = true,
     .order = KV_HEADS_FIRST, .special = true},
    {"Int4", BF16, BF16, 9, 4, 2, 64, 128, 64, .format = KV_INT4, .page_slots = 4, .is_paged = true,
     .by_sequence = true},
    {"E4m3", F16, BF16, 9, 4, 2, 128, 128, 128, .format = KV_E4M3, .page_slots = 4, .special = true},
    {"E5m2", BF16, BF16, 9, 4, 2, 80, 80, 32, .format = KV_E5M2, .page_slots = 4, .order = KV_GAPS},
    {"Int8Groups", F16, F16, 9, 4, 2, 128, 64, 128, .format = KV_INT8_GROUPS, .page_slots = 4,
     .by_head = true},
    {"Int4Groups", F32, F16, 9, 4, 2, 128, 64, 64, .format = KV_INT4_GROUPS, .page_slots = 4, .shift = 4},
    {"E4m3Groups", BF16, BF16, 9, 3, 1, 96, 96, 96, .format = KV_E4M3_GROUPS, .page_slots = 4},
    {"Int8Heads", F16, F16, 9, 4, 2, 128, 128, 128, .format = KV_INT8_HEADS, .page_slots = 4,
     .special = true},
    {"Int4Heads", F16, F16, 9, 4, 2, 64, 64, 64, .format = KV_INT4_HEADS, .page_slots = 4},
    {"E4m3Cache", BF16, BF16, 9, 4, 2, 128, 128, 128, .format = KV_E4M3_CACHE, .page_slots = 4,
     .special = true},
    {"Int8Cache", F32, F32, 9, 4, 2, 576, 512, 64, .first = 512, .format = KV_INT8_CACHE, .page_slots = 4},
};

static size_t size_of(qdnnDataType_t type)
{
    return (size_t)ref_scalar_size(type);
}

static int64_t sections_of(const rope_case *c)
{
    int64_t n = 0;
    while (n < 4 && c->section[n])
        n++;
    return n ? n : 1;
}

/* Elements of a token in front of its values, and of all of it. */
static int64_t before_values(const rope_case *c)
{
    return (c->queries + (c->head ? c->heads : 0)) * c->head;
}

static int64_t token_of(const rope_case *c)
{
    return before_values(c) + c->heads * c->value;
}

static kv_layout layout_of(const rope_case *c)
{
    kv_layout l = {.format = c->format,
                   .order = c->order,
                   .page_slots = c->page_slots,
                   .heads = c->heads,
                   .by_head = c->by_head};
    if (!c->heads)
        return l;
    l.table_pages = c->is_paged ? (c->rows + c->page_slots - 1) / c->page_slots : 0;
    l.pages = c->by_sequence ? SEQUENCES * (c->is_paged ? l.table_pages : 1)
                             : (c->rows + c->page_slots) / c->page_slots + 1;
    return l;
}

/* ---- Operands ---- */

/* Angles that are no special ones. */
static void add_tables(const rope_case *c, row_operands *all, uint64_t seed, const float **cos,
                       const float **sin)
{
    const int64_t elements = POSITIONS * (c->rotary / 2);
    float *tables[2];
    for (int i = 0; i < 2; i++) {
        tables[i] =
            (float *)row_operands_add(all, i ? QDNN_OPERAND_SIN : QDNN_OPERAND_COS, (size_t)elements * 4);
        row_fill(F32, tables[i], elements, seed + 11 + (uint64_t)i, false);
    }
    *cos = tables[0];
    *sin = tables[1];
}

/* The first token of several has a position that the tables do not have. */
static const int32_t *add_positions(const rope_case *c, row_operands *all)
{
    const int64_t n = sections_of(c), count = c->rows * n;
    int32_t *position = (int32_t *)row_operands_add(all, QDNN_OPERAND_POSITION, (size_t)count * 4);
    for (int64_t i = 0; i < count; i++)
        position[i] = (int32_t)((i * 7 + 3) % POSITIONS);
    if (c->special && count)
        position[0] = POSITIONS;
    if (c->special && count > 1)
        position[1] = -1;
    return position;
}

/* The slots of the tokens: all different, in no order; every fifth token has none. */
static void add_slots(const rope_case *c, const kv_layout *l, row_operands *all, int64_t *slots)
{
    const ref_kv_spec spec = kv_reference(l, 8, F32);
    const int64_t count = l->pages * l->page_slots;
    if (!c->by_sequence) {
        int32_t *list = (int32_t *)row_operands_add(all, QDNN_OPERAND_ROW_INDEX, (size_t)c->rows * 4);
        for (int64_t t = 0; t < c->rows; t++) {
            list[t] = (int32_t)(t % 5 == 4 ? t % 2 ? -1 : count : count - 1 - t);
            slots[t] = t % 5 == 4 ? -1 : list[t];
        }
        return;
    }
    int32_t *table = NULL;
    if (c->is_paged) {
        const int64_t entries = SEQUENCES * l->table_pages;
        table = (int32_t *)row_operands_add(all, QDNN_OPERAND_PAGE_TABLE, (size_t)entries * 4);
        for (int64_t i = 0; i < entries; i++)
            table[i] = i == entries - 1 ? -1 : (int32_t)(l->pages - 1 - i);
    }
    int32_t *sequence = (int32_t *)row_operands_add(all, QDNN_OPERAND_SEQUENCE, (size_t)c->rows * 4),
            *index = (int32_t *)row_operands_add(all, QDNN_OPERAND_KEY_INDEX, (size_t)c->rows * 4);
    for (int64_t t = 0; t < c->rows; t++) {
        sequence[t] = t % 5 == 4 && t % 2 ? -1 : (int32_t)(t % SEQUENCES);
        index[t] = (int32_t)(t % 5 == 4 ? l->page_slots * (c->is_paged ? l->table_pages : 1)
                                        : c->rows - 1 - t / SEQUENCES);
        slots[t] = ref_kv_slot(&spec, table, l->table_pages, sequence[t], index[t]);
    }
}

/* One of the arrays of the cache, and its scales; what host_ref writes into it. `x` has the heads of all tokens, rounded. */
static void add_array(const rope_case *c, const kv_layout *l, row_operands *all, bool keys,
                      const int64_t *slots, int64_t rows, const uint8_t *x, int64_t stride, uint64_t seed)
{
    const int64_t size = keys ? c->head : c->value;
    const ref_kv_spec spec = kv_reference(l, size, c->y);
    uint8_t *array = row_operands_cache(all, keys ? QDNN_OPERAND_KEYS : QDNN_OPERAND_VALUES,
                                        (size_t)ref_kv_bytes(&spec)),
            *scale = NULL;
    const qdnnOperand_t operand = keys ? QDNN_OPERAND_KEY_SCALE : QDNN_OPERAND_VALUE_SCALE;
    const size_t bytes = (size_t)ref_kv_scale_bytes(&spec);
    if (kv_is_static(c->format)) {
        scale = row_operands_add(all, operand, bytes);
        const qdnnDataType_t types[] = {F32, F16, BF16};
        const qdnnDataType_t type = types[spec.quant.scale];
        for (size_t i = 0; i < bytes / size_of(type); i++)
            ref_scalar_store(type, scale, (int64_t)i, 0.01f * (float)(i + 1 + seed % 3));
    } else if (kv_has_scales(c->format)) {
        scale = row_operands_cache(all, operand, bytes);
    }
    for (int64_t t = 0; t < rows; t++)
        for (int64_t h = 0; h < c->heads; h++)
            ref_kv_write(&spec, slots[t], h, x + (size_t)(t * stride + h * size) * size_of(c->y), array,
                         scale);
}

/* All heads of x as y would have them, each group of heads packed: those that are rotated, then the values. */
static void reference(const rope_case *c, const uint8_t *x, const float *cos, const float *sin,
                      const int32_t *position, uint8_t *rotated, uint8_t *values)
{
    const int64_t before = before_values(c), token = token_of(c) + c->gap;
    ref_rope_spec spec = {.head = c->head,
                          .heads = c->head ? before / c->head : 0,
                          .gap = token - before,
                          .first = c->first,
                          .size = c->rotary,
                          .neighbours = c->pairs == QDNN_ROPE_NEIGHBOURS,
                          .interleaved = c->sections == QDNN_ROPE_INTERLEAVED,
                          .section_stride = c->by_section ? c->rows : 0,
                          .positions = POSITIONS,
                          .x = c->x,
                          .y = c->y};
    memcpy(spec.section, c->section, sizeof spec.section);
    if (before)
        ref_rope(&spec, c->rows, cos, sin, position, x, rotated);
    if (c->value)
        ref_rope(&(ref_rope_spec){.head = c->value,
                                  .heads = c->heads,
                                  .gap = token - c->heads * c->value,
                                  .x = c->x,
                                  .y = c->y},
                 c->rows, NULL, NULL, NULL, x + (size_t)before * size_of(c->x), values);
}

/* Fills the operands in, with what they hold after so many rows. */
static void fill(const rope_case *c, int64_t rows, uint64_t seed, row_operands *all)
{
    const int64_t token = token_of(c), before = before_values(c),
                  elements = c->rows ? (c->rows - 1) * (token + c->gap) + token : 0;
    const kv_layout l = layout_of(c);
    const float *cos = NULL, *sin = NULL;
    const int32_t *position = NULL;
    uint8_t *x = row_operands_add(all, QDNN_OPERAND_X, (size_t)elements * size_of(c->x));
    row_fill(c->x, x, elements, seed, c->special);
    if (c->rotary) {
        add_tables(c, all, seed, &cos, &sin);
        position = add_positions(c, all);
    }
    uint8_t *rotated = calloc((size_t)(c->rows * before) + 1, 4),
            *values = calloc((size_t)(c->rows * c->heads * c->value) + 1, 4);
    reference(c, x, cos, sin, position, rotated, values);
    if (c->queries) {
        const size_t row = (size_t)(c->queries * c->head) * size_of(c->y);
        uint8_t *y = row_operands_result(all, QDNN_OPERAND_Y, (size_t)c->rows, row);
        for (int64_t t = 0; t < c->rows; t++)
            memcpy(y + (size_t)t * row, rotated + (size_t)(t * before) * size_of(c->y), row);
    }
    if (c->heads) {
        int64_t *slots = calloc((size_t)c->rows + 1, sizeof *slots);
        add_slots(c, &l, all, slots);
        if (c->head)
            add_array(c, &l, all, true, slots, rows, rotated + (size_t)(c->queries * c->head) * size_of(c->y),
                      before, seed);
        if (c->value)
            add_array(c, &l, all, false, slots, rows, values, c->heads * c->value, seed + 1);
        free(slots);
    }
    for (int i = 0; i < all->count; i++)
        all->at[i].shift = c->shift;
    free(rotated);
    free(values);
}

/* ---- Plans ---- */

static bool make_tensors(const rope_case *c, qdnnTensorDescriptor_t *x, qdnnTensorDescriptor_t *y)
{
    const int64_t token = token_of(c), x_dims[] = {c->rows, token}, strides[] = {token + c->gap, 1},
                  y_dims[] = {c->rows, c->queries, c->head};
    return CHECK_QDNN(qdnnCreateTensorDescriptor(x)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(*x, c->x, 2, x_dims, strides)) &&
           (c->queries == 0 || (CHECK_QDNN(qdnnCreateTensorDescriptor(y)) &&
                                CHECK_QDNN(qdnnSetTensorDescriptor(*y, c->y, 3, y_dims, NULL))));
}

static qdnnRope_t settings_of(const rope_case *c)
{
    qdnnRope_t rope = {.size = sizeof rope,
                       .rotary = c->rotary,
                       .first = c->first,
                       .positions = POSITIONS,
                       .pairs = c->pairs,
                       .sections = c->sections,
                       .sectionStride = c->by_section ? c->rows : 0,
                       .slots = c->by_sequence ? QDNN_KV_SLOTS_BY_SEQUENCE : QDNN_KV_SLOTS_LISTED};
    memcpy(rope.section, c->section, sizeof rope.section);
    return rope;
}

static void run_rows(qdnnHandle_t handle, qdnnPlan_t plan, const rope_case *c, int64_t rows, uint64_t seed)
{
    row_operands all = {0};
    fill(c, rows, seed, &all);
    row_operands_check(handle, plan, &all, rows);
    row_operands_free(&all);
}

static void run(qdnnHandle_t handle, const rope_case *c, uint64_t seed)
{
    const qdnnRope_t rope = settings_of(c);
    const kv_layout l = layout_of(c);
    qdnnTensorDescriptor_t x = NULL, y = NULL;
    qdnnQuantDescriptor_t quants[2] = {NULL, NULL};
    qdnnKvCache_t keys, values;
    qdnnPlan_t plan = NULL;
    const bool has_keys = c->heads && c->head, has_values = c->heads && c->value;
    if (make_tensors(c, &x, &y) && (!has_keys || kv_describe(&l, c->head, &keys, &quants[0])) &&
        (!has_values || kv_describe(&l, c->value, &values, &quants[1])) &&
        CHECK_QDNN(qdnnCreateRopePlan(handle, &rope, x, y, has_keys ? &keys : NULL,
                                      has_values ? &values : NULL, &plan))) {
        run_rows(handle, plan, c, c->rows, seed);
        run_rows(handle, plan, c, c->rows / 2, seed + 100);
    }
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(quants[0]);
    qdnnDestroyQuantDescriptor(quants[1]);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(y);
}

DEVICE_ROWS(ParityRope, HostRef, ropes)
{
    if (ropes[index].rows == 0)
        device_launches_nothing();
    qdnnHandle_t handle = device_begin(sms[index % 6], 1, "all");
    if (handle)
        run(handle, &ropes[index], (uint64_t)index + 1);
    device_end(handle);
}
