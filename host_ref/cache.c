/* KV caches: where a head of a slot is, and how it is written and read. */
#include <stdlib.h>
#include <string.h>

#include "host_ref/internal.h"

static int64_t elements_to_end(const ref_kv_spec *spec)
{
    return (spec->pages - 1) * spec->page_stride + (spec->page_slots - 1) * spec->slot_stride +
           (spec->heads - 1) * spec->head_stride + spec->head_size;
}

/* Bytes of so many elements, which end at the end of a head or begin at the start of one. */
static int64_t bytes_of(const ref_kv_spec *spec, int64_t elements)
{
    if (spec->type)
        return elements * ref_scalar_size(spec->type);
    return ref_sizes_of(&spec->quant, 1, elements).codes;
}

static bool is_static(const ref_kv_spec *spec)
{
    return spec->scales == REF_KV_BY_HEAD || spec->scales == REF_KV_BY_CACHE;
}

/* A head as a tensor of one row. */
static ref_quant_spec quant_of_head(const ref_kv_spec *spec)
{
    ref_quant_spec quant = spec->quant;
    if (quant.block == QDNN_BLOCK_NONE && spec->scales != REF_KV_BY_GROUP)
        quant.group_size = spec->head_size;
    return quant;
}

static bool has_scales(const ref_kv_spec *spec)
{
    return !spec->type && spec->quant.block == QDNN_BLOCK_NONE;
}

/* Bytes of the scales of a head. */
static int64_t head_scale_bytes(const ref_kv_spec *spec)
{
    const ref_quant_spec quant = quant_of_head(spec);
    return has_scales(spec) ? ref_sizes_of(&quant, 1, spec->head_size).scale : 0;
}

int64_t ref_kv_bytes(const ref_kv_spec *spec)
{
    return bytes_of(spec, elements_to_end(spec));
}

int64_t ref_kv_scale_bytes(const ref_kv_spec *spec)
{
    const int64_t heads = spec->scales == REF_KV_BY_CACHE  ? 1
                          : spec->scales == REF_KV_BY_HEAD ? spec->heads
                                                           : spec->pages * spec->page_slots * spec->heads;
    return heads * head_scale_bytes(spec);
}

static int64_t element_of(const ref_kv_spec *spec, int64_t slot, int64_t head)
{
    return slot / spec->page_slots * spec->page_stride + slot % spec->page_slots * spec->slot_stride +
           head * spec->head_stride;
}

static int64_t scale_at(const ref_kv_spec *spec, int64_t slot, int64_t head)
{
    const int64_t number = spec->scales == REF_KV_BY_CACHE  ? 0
                           : spec->scales == REF_KV_BY_HEAD ? head
                           : spec->by_head                  ? head * spec->pages * spec->page_slots + slot
                                                            : slot * spec->heads + head;
    return number * head_scale_bytes(spec);
}

void hr_kv_write(const ref_kv_spec *spec, int64_t slot, int64_t head, const void *x, void *array, void *scale)
{
    if (slot < 0 || slot >= spec->pages * spec->page_slots)
        return;
    uint8_t *to = (uint8_t *)array + bytes_of(spec, element_of(spec, slot, head));
    if (spec->type) {
        for (int64_t i = 0; i < spec->head_size; i++)
            hr_scalar_store(spec->type, to, i, hr_canonical(hr_scalar_load(spec->quant.data, x, i)));
        return;
    }
    const ref_quant_spec quant = quant_of_head(spec);
    const ref_arrays arrays = {
        .codes = to, .scale = has_scales(spec) ? (uint8_t *)scale + scale_at(spec, slot, head) : NULL};
    if (has_scales(spec) && !is_static(spec))
        hr_scale(&quant, 1, spec->head_size, x, &arrays);
    hr_quantize(&quant, 1, spec->head_size, x, &arrays);
}

void hr_kv_read(const ref_kv_spec *spec, int64_t slot, int64_t head, const void *array, const void *scale,
                float *x)
{
    const uint8_t *from = (const uint8_t *)array + bytes_of(spec, element_of(spec, slot, head));
    if (spec->type) {
        for (int64_t i = 0; i < spec->head_size; i++)
            x[i] = hr_scalar_load(spec->type, from, i);
        return;
    }
    ref_quant_spec quant = quant_of_head(spec);
    quant.data = QDNN_DATA_F32;
    const ref_arrays arrays = {.codes = (void *)from,
                               .scale =
                                   has_scales(spec) ? (uint8_t *)scale + scale_at(spec, slot, head) : NULL};
    hr_dequantize(&quant, 1, spec->head_size, &arrays, x);
}

int64_t ref_kv_slot(const ref_kv_spec *spec, const int32_t *page_table, int64_t table_pages, int64_t sequence,
                    int64_t index)
{
    if (sequence < 0 || index < 0)
        return -1;
    if (table_pages && index / spec->page_slots >= table_pages)
        return -1;
    const int64_t page =
                      table_pages ? page_table[sequence * table_pages + index / spec->page_slots] : sequence,
                  place = table_pages ? index % spec->page_slots : index;
    if (page < 0 || page >= spec->pages || place >= spec->page_slots)
        return -1;
    return page * spec->page_slots + place;
}
