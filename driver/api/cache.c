/* KV caches: from descriptions to specifications, sizes and strides. */
#include "driver/api/cache.h"

#include "driver/api/rows.h"
#include "driver/base/check.h"

/* One of the two arrays, as it is used. */
typedef struct array {
    const char *name;
    qdnnKvCache_t given;
    const format_row *format; /* null: plain */
    kernel_stored stored;
    kernel_quantizing quantize;
    kernel_kv_scales scales;
} array;

static qdnnStatus_t check_number(const array *a, const char *member, int64_t value, int64_t least,
                                 int64_t most)
{
    if (value >= least && value <= most)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s->%s is %lld; it must be %lld to %lld", a->name,
                      member, (long long)value, (long long)least, (long long)most);
}

static qdnnStatus_t check_pages(const array *a)
{
    const qdnnKvCache_t *c = &a->given;
    CHECK_STATUS(check_number(a, "pages", c->pages, 1, INT32_MAX));
    CHECK_STATUS(check_number(a, "tablePages", c->tablePages, 0, INT32_MAX));
    CHECK_STATUS(check_number(a, "pageSlots", c->pageSlots, 1, c->tablePages ? 256 : INT32_MAX));
    if (c->tablePages && (c->pageSlots & (c->pageSlots - 1)) != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "%s->pageSlots is %lld; a paged cache needs a power of two, 1 to 256", a->name,
                          (long long)c->pageSlots);
    if (c->pages * c->pageSlots > INT32_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "%s has %lld pages of %lld slots; numbers of slots are i32: at most %d in all",
                          a->name, (long long)c->pages, (long long)c->pageSlots, INT32_MAX);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_heads(const array *a)
{
    const qdnnKvCache_t *c = &a->given;
    CHECK_STATUS(check_number(a, "heads", c->heads, 1, 1 << 16));
    CHECK_STATUS(check_number(a, "headSize", c->headSize, 8, 1024));
    if (c->headSize % 8 != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "%s->headSize is %lld; it must be a multiple of 8", a->name,
                          (long long)c->headSize);
    if (c->scales != QDNN_KV_SCALES_BY_SLOT && c->scales != QDNN_KV_SCALES_BY_HEAD)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "%s->scales is %d; it must be QDNN_KV_SCALES_BY_SLOT or QDNN_KV_SCALES_BY_HEAD",
                          a->name, (int)c->scales);
    return QDNN_STATUS_SUCCESS;
}

/* Fills in strides that are left out. */
static qdnnStatus_t check_strides(array *a)
{
    qdnnKvCache_t *c = &a->given;
    c->headStride = c->headStride ? c->headStride : c->headSize;
    c->slotStride = c->slotStride ? c->slotStride : c->heads * c->headSize;
    CHECK_STATUS(check_number(a, "headStride", c->headStride, c->headSize, INT64_C(1) << 40));
    CHECK_STATUS(check_number(a, "slotStride", c->slotStride, c->headSize, INT64_C(1) << 40));
    const int64_t across = (c->pageSlots - 1) * c->slotStride + (c->heads - 1) * c->headStride;
    const int64_t by_slots = c->pageSlots * c->slotStride, by_heads = c->heads * c->headStride;
    c->pageStride = c->pageStride ? c->pageStride : by_slots > by_heads ? by_slots : by_heads;
    CHECK_STATUS(check_number(a, "pageStride", c->pageStride, c->headSize, INT64_C(1) << 56));
    if (c->headStride % c->headSize != 0 || c->slotStride % c->headSize != 0 ||
        c->pageStride % c->headSize != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "%s has strides of %lld, %lld and %lld; they must be multiples of the head size, "
                          "%lld",
                          a->name, (long long)c->pageStride, (long long)c->slotStride,
                          (long long)c->headStride, (long long)c->headSize);
    if (across > INT64_C(1) << 56 || (c->pages - 1) > (INT64_C(1) << 56) / c->pageStride)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s would have more than 2^56 elements",
                          a->name);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_scales(const array *a)
{
    const kernel_stored *s = &a->stored;
    if (s->nested || s->global_scale || s->layout != QDNN_LAYOUT_BYTES ||
        (s->scale != QDNN_SCALE_F32 && s->scale != QDNN_SCALE_F16 && s->scale != QDNN_SCALE_BF16))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s->quant has nested or global scales, scales of one byte, or codes that do not lie "
            "in bytes; fix: QDNN_QUANT_LAYOUT QDNN_LAYOUT_BYTES, scales in f32, f16 or bf16",
            a->name);
    return QDNN_STATUS_SUCCESS;
}

/* The scales that the descriptor asks for. */
static qdnnStatus_t choose_scales(array *a)
{
    const int64_t *value = a->given.quant->values, size = a->given.headSize,
                  group = value[QDNN_QUANT_GROUP_SIZE];
    switch ((qdnnGranularity_t)value[QDNN_QUANT_GRANULARITY]) {
    case QDNN_GRANULARITY_TENSOR:
        a->scales = KERNEL_KV_BY_CACHE;
        return QDNN_STATUS_SUCCESS;
    case QDNN_GRANULARITY_CHANNEL:
        a->scales = KERNEL_KV_BY_HEAD;
        if (value[QDNN_QUANT_AXIS] == 1)
            return QDNN_STATUS_SUCCESS;
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s->quant has QDNN_QUANT_AXIS %lld; the heads of [slots, heads, elements] are axis 1", a->name,
            (long long)value[QDNN_QUANT_AXIS]);
    case QDNN_GRANULARITY_GROUP:
        a->scales = group == size ? KERNEL_KV_BY_TOKEN : KERNEL_KV_BY_GROUP;
        if (group == size || ((group == 32 || group == 64) && size % group == 0))
            return QDNN_STATUS_SUCCESS;
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s->quant has groups of %lld, and a head has %lld elements; fix: groups of the "
                          "head, or of 32 or 64 that divide it",
                          a->name, (long long)group, (long long)size);
    default:
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s->quant has no scales; fix: QDNN_GRANULARITY_GROUP, _CHANNEL or _TENSOR",
                          a->name);
    }
}

/* The quantization as what it would be by itself, of heads that follow each other. */
static qdnnStatus_t read_quant(array *a)
{
    const qdnnKvCache_t *c = &a->given;
    const int64_t dims[] = {1, c->heads, c->headSize};
    struct qdnnTensorDescriptor heads;
    request alone;
    const bool has_blocks = c->quant->values[QDNN_QUANT_BLOCK_FORMAT] != QDNN_BLOCK_NONE,
               has_groups = c->quant->values[QDNN_QUANT_GRANULARITY] == QDNN_GRANULARITY_GROUP;
    CHECK_STATUS(tensor_set(&heads, QDNN_DATA_F32, 3, dims, NULL));
    if (!has_blocks)
        CHECK_STATUS(choose_scales(a));
    /* some blocks can only be read */
    CHECK_STATUS(request_make(has_blocks   ? KERNEL_DEQUANTIZE
                              : has_groups ? KERNEL_DYNAMIC
                                           : KERNEL_QUANTIZE,
                              &heads, c->quant, &alone));
    a->format = alone.row->format;
    a->stored = alone.spec.stored;
    a->quantize = alone.spec.quantize;
    return has_blocks ? QDNN_STATUS_SUCCESS : check_scales(a);
}

static qdnnStatus_t take_array(const char *name, const qdnnKvCache_t *given, array *a)
{
    *a = (array){.name = name};
    CHECK_STATUS(rows_take_settings(name, given, &a->given, sizeof a->given));
    CHECK_STATUS(rows_check_type(name, a->given.type));
    CHECK_STATUS(check_pages(a));
    CHECK_STATUS(check_heads(a));
    CHECK_STATUS(check_strides(a));
    if (a->given.type)
        return QDNN_STATUS_SUCCESS;
    if (!a->given.quant)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER,
                          "%s->quant is null, and %s->type 0; fix: set one of them", name, name);
    return read_quant(a);
}

/* A head of one group, beside heads of several. */
static void take_groups_of(const array *other, array *a)
{
    if (other->scales == KERNEL_KV_BY_GROUP && a->scales == KERNEL_KV_BY_TOKEN &&
        a->stored.group_size == other->stored.group_size)
        a->scales = KERNEL_KV_BY_GROUP;
}

/* What keys and values must have in common. */
static qdnnStatus_t check_together(array *keys, array *values)
{
    take_groups_of(keys, values);
    take_groups_of(values, keys);
    const qdnnKvCache_t *k = &keys->given, *v = &values->given;
    if (k->pages != v->pages || k->pageSlots != v->pageSlots || k->tablePages != v->tablePages ||
        k->heads != v->heads)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "keys have %lld pages of %lld slots (%lld in a table) and %lld heads, values %lld of "
            "%lld (%lld) and %lld; they must be the same",
            (long long)k->pages, (long long)k->pageSlots, (long long)k->tablePages, (long long)k->heads,
            (long long)v->pages, (long long)v->pageSlots, (long long)v->tablePages, (long long)v->heads);
    const kernel_stored *a = &keys->stored, *b = &values->stored;
    const bool same_stored = a->code == b->code && a->nibble_order == b->nibble_order && a->scale == b->scale;
    const bool same_quantize = keys->quantize.rounding == values->quantize.rounding &&
                               keys->quantize.division == values->quantize.division &&
                               keys->quantize.floor == values->quantize.floor;
    if (k->type != v->type || keys->format != values->format || keys->scales != values->scales ||
        (keys->scales == KERNEL_KV_BY_GROUP && a->group_size != b->group_size) || k->scales != v->scales ||
        !same_stored || !same_quantize)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "keys and values have different types or quantizations; fix: the same for both, or "
                          "a plan for each");
    return QDNN_STATUS_SUCCESS;
}

static kernel_cache strides_of(const qdnnKvCache_t *c)
{
    return (kernel_cache){.page_slots = (uint64_t)c->pageSlots,
                          .page_stride = (uint64_t)c->pageStride,
                          .slot_stride = (uint64_t)c->slotStride,
                          .head_stride = (uint64_t)c->headStride};
}

qdnnStatus_t cache_take(const qdnnKvCache_t *keys, const qdnnKvCache_t *values, request *r,
                        const format_row **format)
{
    array k, v;
    if (keys)
        CHECK_STATUS(take_array("keys", keys, &k));
    if (values)
        CHECK_STATUS(take_array("values", values, &v));
    if (keys && values)
        CHECK_STATUS(check_together(&k, &v));
    const array *any = keys ? &k : &v;
    *format = any->format;
    if (any->format) {
        r->spec.stored = any->stored;
        r->spec.quantize = any->quantize;
        if (any->scales != KERNEL_KV_BY_GROUP)
            r->spec.stored.group_size = 1;
    }
    r->spec.kv = (kernel_kv){.type = (int)any->given.type,
                             .scales = any->scales,
                             .by_head = any->given.scales == QDNN_KV_SCALES_BY_HEAD,
                             .slots = any->given.tablePages ? KERNEL_KV_PAGED : KERNEL_KV_CONTIGUOUS,
                             .heads = (uint64_t)any->given.heads,
                             .key_size = keys ? (uint64_t)k.given.headSize : 0,
                             .value_size = values ? (uint64_t)v.given.headSize : 0};
    r->problem.pages = (uint64_t)any->given.pages;
    r->problem.table_pages = (uint64_t)any->given.tablePages;
    r->problem.cache = strides_of(&any->given);
    if (values)
        r->problem.values = strides_of(&v.given);
    return QDNN_STATUS_SUCCESS;
}
