/* Keys and values into a cache through the public API against host_ref: slots in no order, slots without a
 * token, numbers that are not slots, tokens without a cache; pages with strides, and keys that lie between
 * queries and values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_buffer.h"
#include "formats/edges.h"
#include "formats/kernel_data.h"
#include "formats/sample.h"
#include "host_ref/host_ref.h"
#include "device/under_test.h"
#include "test.h"

enum { TOKENS = 23, SLOTS = 31, HEADS = 3, PAGES = 8, PAGE_SLOTS = 4 };

/* PACKED: [slots, heads, head]. Others are pages that keys and values have in turns, heads in slots or slots in heads; in
 * SLICED x is a third of each row of a wider matrix. */
typedef enum { PACKED, SLOTS_FIRST, HEADS_FIRST, SLICED } kv_layout;

/* What the cache holds, and how long a head is: more than one kind of team of lanes. */
static const struct kv_case {
    const char *name;
    qdnnDataType_t storage, data;
    int bits;
    int64_t head;
    qdnnZeroKind_t zero;
    qdnnScaleType_t scale;
    const char *sm;
    size_t shift; /* of the codes, in bytes: not aligned */
    bool is_listed;
    kv_layout layout;
} cases[] = {
    {"int8_f16_head_128", QDNN_DATA_I8, QDNN_DATA_F16, 8, 128, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_80", 0,
     true, PACKED},
    {"int8_bf16_head_64", QDNN_DATA_I8, QDNN_DATA_BF16, 8, 64, QDNN_ZERO_NONE, QDNN_SCALE_BF16, "sm_90", 0,
     true, PACKED},
    {"int8_zp_f32_head_80", QDNN_DATA_I8, QDNN_DATA_F32, 8, 80, QDNN_ZERO_POINT, QDNN_SCALE_F32, "sm_75", 0,
     true, PACKED},
    {"int4_f16_head_128", QDNN_DATA_I4, QDNN_DATA_F16, 4, 128, QDNN_ZERO_NONE, QDNN_SCALE_F16, "sm_89", 0,
     true, PACKED},
    {"int4_zp_bf16_head_96", QDNN_DATA_I4, QDNN_DATA_BF16, 4, 96, QDNN_ZERO_POINT, QDNN_SCALE_F16, "sm_120",
     0, true, PACKED},
    {"int3_f16_head_256", QDNN_DATA_I8, QDNN_DATA_F16, 3, 256, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_80", 0,
     true, PACKED},
    {"e4m3_f16_head_128", QDNN_DATA_F8E4M3, QDNN_DATA_F16, 8, 128, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_89", 0,
     true, PACKED},
    {"e4m3_f16_head_8", QDNN_DATA_F8E4M3, QDNN_DATA_F16, 8, 8, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_80", 0,
     true, PACKED},
    {"e5m2_f32_head_576", QDNN_DATA_F8E5M2, QDNN_DATA_F32, 8, 576, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_100",
     0, true, PACKED},
    {"int8_f16_not_aligned", QDNN_DATA_I8, QDNN_DATA_F16, 8, 128, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_80", 1,
     true, PACKED},
    {"int4_f32_not_aligned", QDNN_DATA_I4, QDNN_DATA_F32, 4, 64, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_80", 1,
     true, PACKED},
    {"int8_f16_without_cache", QDNN_DATA_I8, QDNN_DATA_F16, 8, 128, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_80",
     0, false, PACKED},
    {"int8_f16_pages", QDNN_DATA_I8, QDNN_DATA_F16, 8, 128, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_80", 0, true,
     SLOTS_FIRST},
    {"int4_zp_bf16_heads_first", QDNN_DATA_I4, QDNN_DATA_BF16, 4, 64, QDNN_ZERO_POINT, QDNN_SCALE_F16,
     "sm_90", 0, true, HEADS_FIRST},
    {"e4m3_f32_sliced", QDNN_DATA_F8E4M3, QDNN_DATA_F32, 8, 80, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_75", 0,
     true, SLICED},
    {"int3_f64_heads_first", QDNN_DATA_I8, QDNN_DATA_F64, 3, 96, QDNN_ZERO_NONE, QDNN_SCALE_F32, "sm_120", 0,
     true, HEADS_FIRST},
    {"int8_f64_sliced_not_aligned", QDNN_DATA_I8, QDNN_DATA_F64, 8, 128, QDNN_ZERO_NONE, QDNN_SCALE_F32,
     "sm_100", 1, true, SLICED},
};
typedef struct kv_case kv_case;

static int64_t slots_of(const kv_case *c)
{
    return c->layout != PACKED ? PAGES * PAGE_SLOTS : c->is_listed ? SLOTS : TOKENS;
}

/* Elements from a token of x to the next. */
static int64_t token_stride(const kv_case *c)
{
    return HEADS * c->head * (c->layout == SLICED ? 3 : 1);
}

/* Where a head of a slot begins among the codes, in elements. */
static int64_t place_of(const kv_case *c, int64_t slot, int64_t head)
{
    const int64_t half_page = PAGE_SLOTS * HEADS * c->head, page = slot / PAGE_SLOTS * 2 * half_page,
                  at = slot % PAGE_SLOTS;
    if (c->layout == PACKED)
        return (slot * HEADS + head) * c->head;
    return page + (c->layout == HEADS_FIRST ? head * PAGE_SLOTS + at : at * HEADS + head) * c->head;
}

static ref_quant_spec spec_of(const kv_case *c)
{
    return (ref_quant_spec){.data = c->data,
                            .storage = c->storage,
                            .bits = c->bits,
                            .zero_kind = c->zero,
                            .zero = QDNN_DATA_F32,
                            .scale = c->scale,
                            .groups = QDNN_GROUPS_FLAT,
                            .group_size = c->head,
                            .floor = REF_DEFAULT_FLOOR};
}

/* Slots of each token; two tokens have none. */
static void fill_slots(int32_t slots[TOKENS], int64_t count)
{
    for (int i = 0; i < TOKENS; i++)
        slots[i] = (int32_t)((i * 7 + 3) % count);
    slots[TOKENS / 2] = -1;
    slots[TOKENS - 3] = (int32_t)count;
}

enum { X, CODES, SCALE, ZERO, INDEX, PARTS };
static const qdnnOperand_t operands[PARTS] = {QDNN_OPERAND_X, QDNN_OPERAND_CODES, QDNN_OPERAND_SCALE,
                                              QDNN_OPERAND_ZERO, QDNN_OPERAND_ROW_INDEX};

/* On the host: x, the list, and the cache before and after. */
typedef struct kv_data {
    size_t bytes[PARTS];
    uint8_t *before[PARTS], *after[PARTS];
} kv_data;

/* The expected results of one head. */
static void quantize_head(const kv_case *c, kv_data *d, int64_t token, int64_t slot, int64_t head)
{
    const ref_quant_spec spec = spec_of(c);
    const ref_sizes each = ref_sizes_of(&spec, 1, c->head);
    const size_t x = (size_t)(token * token_stride(c) + head * c->head) * ref_scalar_size(c->data),
                 group = (size_t)(slot * HEADS + head);
    const ref_arrays arrays = {.codes = d->after[CODES] + place_of(c, slot, head) * c->bits / 8,
                               .scale = d->after[SCALE] + group * (size_t)each.scale,
                               .zero = d->after[ZERO] + group * (size_t)each.zero};
    ref_scale(&spec, 1, c->head, d->before[X] + x, &arrays);
    ref_quantize(&spec, 1, c->head, d->before[X] + x, &arrays);
}

static bool data_alloc(const kv_case *c, kv_data *d)
{
    const ref_quant_spec spec = spec_of(c);
    const ref_sizes each = ref_sizes_of(&spec, 1, c->head);
    const int64_t heads = slots_of(c) * HEADS, elements = (TOKENS - 1) * token_stride(c) + HEADS * c->head;
    const size_t sizes[PARTS] = {(size_t)elements * ref_scalar_size(c->data),
                                 (size_t)((place_of(c, slots_of(c) - 1, HEADS - 1) + c->head) * c->bits / 8),
                                 (size_t)(heads * each.scale), (size_t)(heads * each.zero),
                                 TOKENS * sizeof(int32_t)};
    bool ok = true;
    *d = (kv_data){0};
    for (int i = 0; i < PARTS; i++) {
        d->bytes[i] = sizes[i];
        d->before[i] = calloc(sizes[i] + 1, 1);
        d->after[i] = calloc(sizes[i] + 1, 1);
        ok = ok && CHECK(d->before[i] && d->after[i]);
    }
    return ok;
}

static format_facts format_like(const kv_case *c)
{
    return (format_facts){.name = c->storage == QDNN_DATA_F8E4M3   ? "e4m3"
                                  : c->storage == QDNN_DATA_F8E5M2 ? "e5m2"
                                                                   : "integer",
                          .bits = (unsigned)c->bits,
                          .storage = c->storage,
                          .zero_kind = c->zero};
}

static void fill_x(const kv_case *c, data_kind kind, uint32_t seed, kv_data *d)
{
    const int64_t n = (int64_t)(d->bytes[X] / ref_scalar_size(c->data));
    const format_facts like = format_like(c);
    if (kind == DATA_ONE_HOT)
        fill_one_hot(c->data, (uint64_t)c->head, 0, seed, d->before[X], n);
    else
        fill_data(kind, &like, c->data, seed, d->before[X], n);
}

/* The same, at the bounds between codes. Heads follow each other, also those of which only a third is x. */
static void fill_x_at_bounds(const kv_case *c, uint32_t seed, kv_data *d)
{
    const ref_quant_spec spec = spec_of(c);
    const int64_t n = (int64_t)(d->bytes[X] / ref_scalar_size(c->data));
    const ref_sizes sizes = ref_sizes_of(&spec, 1, n);
    const ref_arrays arrays = {.scale = malloc((size_t)sizes.scale + 1),
                               .zero = malloc((size_t)sizes.zero + 1)};
    const format_facts like = format_like(c);
    if (CHECK(arrays.scale && arrays.zero)) {
        fill_x(c, DATA_UNEVEN, seed, d);
        ref_scale(&spec, 1, n, d->before[X], &arrays);
        move_to_bounds(&spec, 1, n, &arrays, seed, least_peak(&like), d->before[X]);
    }
    free(arrays.scale);
    free(arrays.zero);
}

static bool data_make(const kv_case *c, data_kind kind, uint32_t seed, kv_data *d)
{
    int32_t list[TOKENS];
    if (!data_alloc(c, d))
        return false;
    fill_slots(list, slots_of(c));
    for (int i = CODES; i <= ZERO; i++)
        fill_bytes(7, d->before[i], (int64_t)d->bytes[i]);
    (kind == DATA_UNEVEN ? fill_x_at_bounds(c, seed, d) : fill_x(c, kind, seed, d));
    memcpy(d->before[INDEX], list, sizeof list);
    for (int i = 0; i < PARTS; i++)
        memcpy(d->after[i], d->before[i], d->bytes[i]);
    for (int t = 0; t < TOKENS; t++) {
        const int64_t slot = c->is_listed ? list[t] : t;
        for (int h = 0; h < HEADS && slot >= 0 && slot < slots_of(c); h++)
            quantize_head(c, d, t, slot, h);
    }
    return true;
}

static void data_free(kv_data *d)
{
    for (int i = 0; i < PARTS; i++) {
        free(d->before[i]);
        free(d->after[i]);
    }
}

/* Pages have strides, of which the one between neighbours is that of place_of. */
static bool describe_cache(const kv_case *c, qdnnTensorDescriptor_t cache)
{
    const int64_t packed[] = {SLOTS, HEADS, c->head}, pages[] = {PAGES, PAGE_SLOTS, HEADS, c->head};
    const int64_t strides[] = {place_of(c, PAGE_SLOTS, 0), place_of(c, 1, 0), place_of(c, 0, 1), 1};
    return c->layout == PACKED ? CHECK_QDNN(qdnnSetTensorDescriptor(cache, QDNN_DATA_F32, 3, packed, NULL))
                               : CHECK_QDNN(qdnnSetTensorDescriptor(cache, QDNN_DATA_F32, 4, pages, strides));
}

static bool describe(const kv_case *c, qdnnTensorDescriptor_t *x, qdnnTensorDescriptor_t *cache,
                     qdnnQuantDescriptor_t *quant)
{
    const int64_t tokens[] = {TOKENS, HEADS, c->head}, strides[] = {token_stride(c), c->head, 1};
    return CHECK_QDNN(qdnnCreateTensorDescriptor(x)) && CHECK_QDNN(qdnnCreateTensorDescriptor(cache)) &&
           CHECK_QDNN(qdnnCreateQuantDescriptor(quant)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(*x, c->data, 3, tokens, strides)) &&
           describe_cache(c, *cache) &&
           CHECK_QDNN(qdnnSetQuantDescriptor(*quant, c->storage, QDNN_GRANULARITY_GROUP, c->head)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_CODE_BITS, c->bits)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_SCALE_TYPE, c->scale)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_ZERO_KIND, c->zero)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_ZERO_TYPE, QDNN_DATA_F32));
}

/* x lies this many bytes after an aligned address. */
static void run(qdnnHandle_t handle, const kv_case *c, buffer_kind buffers, size_t x_shift, const kv_data *d)
{
    qdnnTensorDescriptor_t x = NULL, cache = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    device_buffer at[PARTS] = {0};
    qdnnBinding_t bindings[PARTS];
    int count = 0;
    bool ok =
        describe(c, &x, &cache, &quant) &&
        CHECK_QDNN(qdnnCreateQuantizeKvCachePlan(handle, x, quant, c->is_listed ? cache : NULL, &plan)) &&
        CHECK_QDNN(qdnnGetPlanInfo(plan, &info)) && CHECK_EQ_I64(info.kernels, 1);
    for (int i = 0; i < PARTS && ok; i++) {
        if ((i == ZERO && c->zero == QDNN_ZERO_NONE) || (i == INDEX && !c->is_listed))
            continue;
        ok = device_buffer_make(handle, buffers, d->bytes[i],
                                i == CODES ? c->shift
                                : i == X   ? x_shift
                                           : 0,
                                &at[i]) &&
             device_buffer_write(&at[i], d->before[i]);
        bindings[count++] = (qdnnBinding_t){
            .operand = operands[i], .pointer = device_buffer_at(&at[i]), .bytes = d->bytes[i]};
    }
    if (ok && CHECK_QDNN(qdnnExecute(handle, plan, bindings, count, NULL, 0)) &&
        CHECK_QDNN(qdnnSynchronize(handle)))
        for (int i = 0; i < PARTS; i++)
            if (at[i].handle)
                device_buffer_check(&at[i], d->after[i],
                                    i == CODES   ? "codes"
                                    : i == SCALE ? "scale"
                                                 : "zero");
    for (int i = 0; i < PARTS; i++)
        device_buffer_free(&at[i]);
    qdnnDestroyPlan(plan);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(cache);
    qdnnDestroyQuantDescriptor(quant);
}

DEVICE_ROWS(ParityKvCache, HostRef, cases)
{
    kv_data d;
    qdnnHandle_t handle = device_begin(cases[index].sm, 1, "all");
    if (handle && data_make(&cases[index], DATA_SPECIAL, 3, &d)) {
        run(handle, &cases[index], BUFFER_BANDS, 0, &d);
        data_free(&d);
    }
    device_end(handle);
}

/* Each text with data of every kind, so that a mistake in any line of it shows (docs/mutation.md); and with
 * buffers that end where they may. By default few of them. */
DEVICE_ROWS(ParityKvCache, Trials, cases)
{
    static const data_kind kinds[] = {
        DATA_NORMAL,        DATA_TIES,         DATA_LEAST,      DATA_ZEROS,         DATA_HUGE,
        DATA_SUBNORMAL,     DATA_CLAMP,        DATA_NANS,       DATA_INFINITE,      DATA_CONSTANT,
        DATA_SCALE_TIES,    DATA_MINUTE,       DATA_SPECIAL,    DATA_SPREAD,        DATA_SPECIAL,
        DATA_TIES,          DATA_SPREAD,       DATA_HALVES,     DATA_HALVES,        DATA_HALVES,
        DATA_HALVES,        DATA_HALVES,       DATA_HALVES,     DATA_SPREAD,        DATA_SPECIAL,
        DATA_FEW_F16,       DATA_WIDE,         DATA_SCALE_TIES, DATA_TIES,          DATA_WIDE,
        DATA_FEW_F16,       DATA_SPECIAL,      DATA_UNEVEN,     DATA_UNEVEN,        DATA_UNEVEN,
        DATA_UNEVEN,        DATA_UNEVEN,       DATA_UNEVEN,     DATA_INFINITE_TIES, DATA_INFINITE_TIES,
        DATA_INFINITE_TIES, DATA_INFINITE_TIES};
    enum { KINDS = sizeof kinds / sizeof kinds[0], ALL = KINDS + 34 };
    qdnnHandle_t handle = device_begin(cases[index].sm, 2, "all");
    for (int i = sample_is_full() ? 0 : index; i < ALL && handle; i += sample_is_full() ? 1 : 17) {
        kv_data d;
        const bool is_hot = i >= KINDS;
        if (!data_make(&cases[index], is_hot ? DATA_ONE_HOT : kinds[i],
                       (uint32_t)(is_hot ? i - KINDS : i + 1), &d))
            break;
        kv_case c = cases[index];
        c.shift = i % 5 == 4;
        test_push_note("trial %d", i);
        run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS, i % 5 == 3 ? ref_scalar_size(c.data) : 0, &d);
        test_pop_note();
        data_free(&d);
    }
    device_end(handle);
}

/* ---- What is refused ---- */

static const struct refusal {
    const char *name;
    int64_t group, head, cache_heads, cache_head;
    int rank;
    qdnnStatus_t status;
    const char *error;
} refusals[] = {
    {"group_size", 32, 64, 3, 64, 3, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
     "QDNN_QUANT_GROUP_SIZE is 32, and a head has 64 elements"},
    {"odd_head", 63, 63, 3, 63, 3, QDNN_STATUS_NOT_SUPPORTED,
     "the head size is 63: one kernel takes flat groups of a multiple of 8"},
    {"heads", 64, 64, 4, 64, 3, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "cache has 4 heads, and x has 3"},
    {"head_of_cache", 64, 64, 3, 128, 3, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
     "cache has 128 elements in a head, and x has 64"},
    {"rank", 64, 64, 3, 64, 1, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
     "x has 1 dimension; it must have at least two"},
};

DEVICE_ROWS(ParityKvCache, IsRefused, refusals)
{
    const struct refusal *r = &refusals[index];
    device_launches_nothing();
    qdnnTensorDescriptor_t x = NULL, cache = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    char error[512] = "";
    const int64_t dims[] = {TOKENS, HEADS, r->head};
    qdnnHandle_t handle = device_begin("sm_80", 1, "all");
    if (handle && CHECK_QDNN(qdnnCreateTensorDescriptor(&x)) &&
        CHECK_QDNN(qdnnCreateTensorDescriptor(&cache)) && CHECK_QDNN(qdnnCreateQuantDescriptor(&quant)) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(x, QDNN_DATA_F16, r->rank, dims + 3 - r->rank, NULL)) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(cache, QDNN_DATA_F16, 3,
                                           (const int64_t[]){SLOTS, r->cache_heads, r->cache_head}, NULL)) &&
        CHECK_QDNN(qdnnSetQuantDescriptor(quant, QDNN_DATA_I8, QDNN_GRANULARITY_GROUP, r->group))) {
        CHECK_EQ_I64(qdnnCreateQuantizeKvCachePlan(handle, x, quant, cache, &plan), r->status);
        qdnnGetLastErrorString(error, sizeof error);
        CHECK_HAS(error, r->error);
    }
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(cache);
    qdnnDestroyQuantDescriptor(quant);
    device_end(handle);
}

/* Strides that no kernel takes: heads of x apart; a cache whose elements lie apart, or whose slots begin within heads. */
static const struct {
    const char *name;
    int64_t x[3], cache[3];
    const char *error;
} wrong_strides[] = {
    {"heads_of_x", {400, 128, 1}, {192, 64, 1}, "x has strides that are not packed"},
    {"tokens_of_x", {196, 64, 1}, {192, 64, 1}, "a multiple of 8"},
    {"elements", {192, 64, 1}, {384, 128, 2}, "cache has strides that are not packed"},
    {"slots", {192, 64, 1}, {200, 64, 1}, "multiples of the head size"},
};

DEVICE_ROWS(ParityKvCache, StridesAreRefused, wrong_strides)
{
    const int64_t dims[] = {TOKENS, HEADS, 64};
    qdnnTensorDescriptor_t x = NULL, cache = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    char error[512] = "";
    device_launches_nothing();
    qdnnHandle_t handle = device_begin("sm_80", 1, "all");
    if (handle && CHECK_QDNN(qdnnCreateTensorDescriptor(&x)) &&
        CHECK_QDNN(qdnnCreateTensorDescriptor(&cache)) && CHECK_QDNN(qdnnCreateQuantDescriptor(&quant)) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(x, QDNN_DATA_F16, 3, dims, wrong_strides[index].x)) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(cache, QDNN_DATA_F16, 3, dims, wrong_strides[index].cache)) &&
        CHECK_QDNN(qdnnSetQuantDescriptor(quant, QDNN_DATA_I8, QDNN_GRANULARITY_GROUP, 64))) {
        CHECK_EQ_I64(qdnnCreateQuantizeKvCachePlan(handle, x, quant, cache, &plan),
                     QDNN_STATUS_NOT_SUPPORTED);
        qdnnGetLastErrorString(error, sizeof error);
        CHECK_HAS(error, wrong_strides[index].error);
    }
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(cache);
    qdnnDestroyQuantDescriptor(quant);
    device_end(handle);
}
