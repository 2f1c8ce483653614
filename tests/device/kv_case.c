/* KV caches of tests. */
#include "device/kv_case.h"

#include "device/device_buffer.h"
#include "test.h"

static const struct {
    qdnnDataType_t plain, storage;
    qdnnBlockFormat_t block;
    qdnnGranularity_t granularity;
    int64_t group; /* 0: the head */
    qdnnScaleType_t scale;
} formats[KV_FORMATS] = {
    [KV_F32] = {.plain = QDNN_DATA_F32},
    [KV_F16] = {.plain = QDNN_DATA_F16},
    [KV_BF16] = {.plain = QDNN_DATA_BF16},
    [KV_INT8] = {0, QDNN_DATA_I8, 0, QDNN_GRANULARITY_GROUP, 0, QDNN_SCALE_F16},
    [KV_INT4] = {0, QDNN_DATA_I4, 0, QDNN_GRANULARITY_GROUP, 0, QDNN_SCALE_F32},
    [KV_E4M3] = {0, QDNN_DATA_F8E4M3, 0, QDNN_GRANULARITY_GROUP, 0, QDNN_SCALE_F32},
    [KV_E5M2] = {0, QDNN_DATA_F8E5M2, 0, QDNN_GRANULARITY_GROUP, 0, QDNN_SCALE_BF16},
    [KV_INT8_GROUPS] = {0, QDNN_DATA_I8, 0, QDNN_GRANULARITY_GROUP, 32, QDNN_SCALE_F32},
    [KV_INT4_GROUPS] = {0, QDNN_DATA_I4, 0, QDNN_GRANULARITY_GROUP, 64, QDNN_SCALE_F16},
    [KV_E4M3_GROUPS] = {0, QDNN_DATA_F8E4M3, 0, QDNN_GRANULARITY_GROUP, 32, QDNN_SCALE_F16},
    [KV_INT8_HEADS] = {0, QDNN_DATA_I8, 0, QDNN_GRANULARITY_CHANNEL, 0, QDNN_SCALE_F32},
    [KV_INT4_HEADS] = {0, QDNN_DATA_I4, 0, QDNN_GRANULARITY_CHANNEL, 0, QDNN_SCALE_BF16},
    [KV_E4M3_CACHE] = {0, QDNN_DATA_F8E4M3, 0, QDNN_GRANULARITY_TENSOR, 0, QDNN_SCALE_F32},
    [KV_INT8_CACHE] = {0, QDNN_DATA_I8, 0, QDNN_GRANULARITY_TENSOR, 0, QDNN_SCALE_F16},
    [KV_Q8_0] = {.block = QDNN_BLOCK_Q8_0},
    [KV_Q4_0] = {.block = QDNN_BLOCK_Q4_0},
    [KV_Q4_1] = {.block = QDNN_BLOCK_Q4_1},
    [KV_Q5_0] = {.block = QDNN_BLOCK_Q5_0},
    [KV_Q5_1] = {.block = QDNN_BLOCK_Q5_1},
    [KV_IQ4_NL] = {.block = QDNN_BLOCK_IQ4_NL},
};

bool kv_is_static(kv_format format)
{
    return kv_has_scales(format) && formats[format].granularity != QDNN_GRANULARITY_GROUP;
}

bool kv_has_scales(kv_format format)
{
    return !formats[format].plain && !formats[format].block;
}

/* Strides; 0 in a packed cache. */
static void strides_of(const kv_layout *layout, int64_t size, int64_t *page, int64_t *slot, int64_t *head)
{
    *page = *slot = *head = 0;
    if (layout->order == KV_HEADS_FIRST) {
        *slot = size;
        *head = layout->page_slots * size;
    } else if (layout->order == KV_GAPS) {
        *head = 2 * size;
        *slot = (2 * layout->heads + 1) * size;
        *page = layout->page_slots * *slot + 3 * size;
    }
}

bool kv_describe(const kv_layout *layout, int64_t head_size, qdnnKvCache_t *cache,
                 qdnnQuantDescriptor_t *quant)
{
    const kv_format f = layout->format;
    *cache = (qdnnKvCache_t){.size = sizeof *cache,
                             .pages = layout->pages,
                             .pageSlots = layout->page_slots,
                             .tablePages = layout->table_pages,
                             .heads = layout->heads,
                             .headSize = head_size,
                             .type = formats[f].plain,
                             .scales = layout->by_head ? QDNN_KV_SCALES_BY_HEAD : QDNN_KV_SCALES_BY_SLOT};
    strides_of(layout, head_size, &cache->pageStride, &cache->slotStride, &cache->headStride);
    *quant = NULL;
    if (formats[f].plain)
        return true;
    if (!CHECK_QDNN(qdnnCreateQuantDescriptor(quant)))
        return false;
    cache->quant = *quant;
    if (formats[f].block)
        return CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_BLOCK_FORMAT, formats[f].block));
    const int64_t extent = formats[f].granularity == QDNN_GRANULARITY_CHANNEL  ? 1
                           : formats[f].granularity == QDNN_GRANULARITY_TENSOR ? 0
                           : formats[f].group                                  ? formats[f].group
                                                                               : head_size;
    return CHECK_QDNN(qdnnSetQuantDescriptor(*quant, formats[f].storage, formats[f].granularity, extent)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_SCALE_TYPE, formats[f].scale));
}

ref_kv_spec kv_reference(const kv_layout *layout, int64_t head_size, qdnnDataType_t type)
{
    const kv_format f = layout->format;
    ref_kv_spec spec = {.pages = layout->pages,
                        .page_slots = layout->page_slots,
                        .heads = layout->heads,
                        .head_size = head_size,
                        .type = formats[f].plain,
                        .by_head = layout->by_head};
    strides_of(layout, head_size, &spec.page_stride, &spec.slot_stride, &spec.head_stride);
    if (layout->order == KV_PACKED) {
        spec.head_stride = head_size;
        spec.slot_stride = layout->heads * head_size;
    }
    if (layout->order != KV_GAPS)
        spec.page_stride = layout->page_slots * layout->heads * head_size;
    spec.quant = (ref_quant_spec){.data = type,
                                  .block = formats[f].block,
                                  .storage = formats[f].storage,
                                  .groups = QDNN_GROUPS_FLAT,
                                  .group_size = formats[f].group ? formats[f].group : head_size,
                                  .scale = formats[f].scale,
                                  .floor = 1e-12f};
    spec.scales = formats[f].granularity == QDNN_GRANULARITY_CHANNEL  ? REF_KV_BY_HEAD
                  : formats[f].granularity == QDNN_GRANULARITY_TENSOR ? REF_KV_BY_CACHE
                  : formats[f].group                                  ? REF_KV_BY_GROUP
                                                                      : REF_KV_BY_TOKEN;
    return spec;
}
