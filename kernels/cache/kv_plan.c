/* KV caches: specifications, and the sizes of their operands. */
#include "kernels/cache/cache.h"

#include <stdio.h>

static bool is_plain(const kernel_spec *spec)
{
    return spec->kv.type != 0;
}

uint64_t kv_head_size(const kernel_spec *spec, kv_which which)
{
    return spec->kv.heads == 0 ? 0 : which == KV_KEYS ? spec->kv.key_size : spec->kv.value_size;
}

/* Whether there is an operand of scales. */
static bool has_scales(const kernel_row *row, const kernel_spec *spec)
{
    return spec->kv.heads && !is_plain(spec) && !format_is_blocks(row->format);
}

static bool is_static(const kernel_spec *spec)
{
    return spec->kv.scales == KERNEL_KV_BY_HEAD || spec->kv.scales == KERNEL_KV_BY_CACHE;
}

uint64_t kv_groups(const kernel_row *row, const kernel_spec *spec, kv_which which)
{
    if (!has_scales(row, spec) || is_static(spec))
        return 0;
    return spec->kv.scales == KERNEL_KV_BY_TOKEN ? 1 : kv_head_size(spec, which) / spec->stored.group_size;
}

kernel_spec kv_array_spec(const kernel_row *row, const kernel_spec *spec, kv_which which)
{
    kernel_spec array = *spec;
    array.rows = (kernel_row_extent){.columns = kv_head_size(spec, which), .heads = 1};
    array.stored.groups = has_scales(row, spec) ? QDNN_GROUPS_FLAT : QDNN_GROUPS_DEFAULT;
    if (!has_scales(row, spec) || is_static(spec) || spec->kv.scales == KERNEL_KV_BY_TOKEN)
        array.stored.group_size = array.rows.columns;
    return array;
}

/* ---- What is possible ---- */

void kv_fix(kernel_spec *spec)
{
    kernel_kv *kv = &spec->kv;
    if (kv->heads == 0 || (kv->key_size == 0 && kv->value_size == 0))
        *kv = (kernel_kv){0};
    if (is_plain(spec) || kv->heads == 0) {
        kv->scales = KERNEL_KV_BY_TOKEN;
        kv->by_head = 0;
    }
    if (is_static(spec))
        kv->by_head = 0;
    if (kv->scales != KERNEL_KV_BY_GROUP)
        spec->stored.group_size = 1;
}

static bool head_is_allowed(const kernel_row *row, const kernel_spec *spec, kv_which which, char *error,
                            size_t error_size)
{
    const char *name = which == KV_KEYS ? "key_size" : "value_size";
    const block_layout *blocks = block_layout_of(row->format);
    const uint64_t size = kv_head_size(spec, which), group = spec->stored.group_size;
    if (size % 8 != 0)
        return kernel_refuse(error, error_size, "%s is %llu; it must be a multiple of 8", name,
                             (unsigned long long)size);
    if (blocks && size % blocks->elements != 0)
        return kernel_refuse(error, error_size, "%s is %llu; it must be a multiple of the block, %u", name,
                             (unsigned long long)size, blocks->elements);
    if (has_scales(row, spec) && spec->kv.scales == KERNEL_KV_BY_GROUP &&
        ((group != 32 && group != 64) || size % group != 0))
        return kernel_refuse(error, error_size,
                             "%s is %llu, and group_size %llu; groups of 32 or 64 must divide the head", name,
                             (unsigned long long)size, (unsigned long long)group);
    return true;
}

bool kv_is_allowed(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    if (spec->kv.heads == 0)
        return true;
    if (is_plain(spec) != (row->format == &format_none))
        return kernel_refuse(error, error_size, "%s has %s cache", row->name,
                             is_plain(spec) ? "a quantized" : "a plain");
    return head_is_allowed(row, spec, KV_KEYS, error, error_size) &&
           head_is_allowed(row, spec, KV_VALUES, error, error_size);
}

number_set kv_numbers(const kernel_spec *spec)
{
    number_set numbers = 0;
    if (kv_head_size(spec, KV_KEYS))
        numbers |= A_NUMBER(PAGE_STRIDE) | A_NUMBER(SLOT_STRIDE) | A_NUMBER(HEAD_STRIDE);
    if (kv_head_size(spec, KV_VALUES))
        numbers |= A_NUMBER(VALUE_PAGE_STRIDE) | A_NUMBER(VALUE_SLOT_STRIDE) | A_NUMBER(VALUE_HEAD_STRIDE);
    if (numbers)
        numbers |= A_NUMBER(PAGES) | A_NUMBER(PAGE_SLOTS);
    if (numbers && spec->kv.slots == KERNEL_KV_PAGED)
        numbers |= A_NUMBER(TABLE_PAGES);
    return numbers;
}

static void complete_strides(const kernel_spec *spec, uint64_t head_size, uint64_t page_slots,
                             kernel_cache *c)
{
    c->page_slots = page_slots;
    c->head_stride = c->head_stride ? c->head_stride : head_size;
    c->slot_stride = c->slot_stride ? c->slot_stride : spec->kv.heads * head_size;
    c->page_stride = c->page_stride ? c->page_stride : page_slots * c->slot_stride;
}

void kv_complete(const kernel_spec *spec, kernel_problem *p)
{
    enum { USUAL = 16 };
    const uint64_t slots = p->cache.page_slots ? p->cache.page_slots : USUAL;
    complete_strides(spec, kv_head_size(spec, KV_KEYS), slots, &p->cache);
    complete_strides(spec, kv_head_size(spec, KV_VALUES), slots, &p->values);
    p->pages = p->pages ? p->pages : ceil_div(p->m ? p->m : 1, slots);
    p->table_pages = p->table_pages ? p->table_pages : p->pages;
}

/* ---- Operands ---- */

/* From the first element of a cache to the end of the last, in bytes. */
static uint64_t array_bytes(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                            kv_which which)
{
    const kernel_cache *c = which == KV_KEYS ? &p->cache : &p->values;
    const block_layout *blocks = block_layout_of(row->format);
    if (p->pages == 0 || p->cache.page_slots == 0)
        return 0;
    const uint64_t elements = (p->pages - 1) * c->page_stride + (p->cache.page_slots - 1) * c->slot_stride +
                              (spec->kv.heads - 1) * c->head_stride + kv_head_size(spec, which);
    if (is_plain(spec))
        return elements * element_bytes((qdnnDataType_t)spec->kv.type);
    return blocks ? elements / blocks->elements * blocks->bytes : elements * row->format->facts.bits / 8;
}

static unsigned array_align(const kernel_row *row, const kernel_spec *spec)
{
    if (is_plain(spec))
        return element_bytes((qdnnDataType_t)spec->kv.type);
    return format_is_blocks(row->format) ? block_align(block_layout_of(row->format)) : 1;
}

static kernel_operand array_operand(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                                    kv_which which)
{
    if (!kv_head_size(spec, which))
        return (kernel_operand){0};
    return (kernel_operand){
        .writes = true, .align = array_align(row, spec), .bytes = array_bytes(row, spec, p, which)};
}

static kernel_operand scale_operand(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                                    kv_which which)
{
    if (!kv_head_size(spec, which) || !has_scales(row, spec))
        return (kernel_operand){0};
    const unsigned bytes = scale_bytes(spec->stored.scale);
    uint64_t count = p->pages * p->cache.page_slots * spec->kv.heads * kv_groups(row, spec, which);
    if (is_static(spec))
        count = spec->kv.scales == KERNEL_KV_BY_HEAD ? spec->kv.heads : 1;
    return (kernel_operand){
        .reads = is_static(spec), .writes = !is_static(spec), .align = bytes, .bytes = count * bytes};
}

static kernel_operand list_operand(bool has_it, uint64_t count)
{
    return has_it ? (kernel_operand){.reads = true, .align = 4, .bytes = count * 4} : (kernel_operand){0};
}

kernel_operand kv_operand(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                          int operand)
{
    const bool has_cache = spec->kv.heads != 0;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_KEYS:
        return array_operand(row, spec, p, KV_KEYS);
    case QDNN_OPERAND_VALUES:
        return array_operand(row, spec, p, KV_VALUES);
    case QDNN_OPERAND_KEY_SCALE:
        return scale_operand(row, spec, p, KV_KEYS);
    case QDNN_OPERAND_VALUE_SCALE:
        return scale_operand(row, spec, p, KV_VALUES);
    case QDNN_OPERAND_ROW_INDEX:
        return list_operand(has_cache && spec->kv.slots == KERNEL_KV_LISTED, p->m);
    case QDNN_OPERAND_SEQUENCE:
    case QDNN_OPERAND_KEY_INDEX:
        return list_operand(has_cache && spec->kv.slots != KERNEL_KV_LISTED, p->m);
    case QDNN_OPERAND_PAGE_TABLE: /* the number of sequences is not known */
        return list_operand(has_cache && spec->kv.slots == KERNEL_KV_PAGED, p->table_pages);
    default:
        return (kernel_operand){0};
    }
}

/* ---- Texts ---- */

static void print_array(const kernel_row *row, const kernel_spec *spec, kv_which which,
                        kernel_operand_text *text)
{
    const char *prefix = which == KV_KEYS ? "" : "value_";
    const block_layout *blocks = block_layout_of(row->format);
    const char *types[] = {[QDNN_DATA_F32] = "f32", [QDNN_DATA_F16] = "f16", [QDNN_DATA_BF16] = "bf16"};
    char *count = text->count;
    const unsigned align = array_align(row, spec);
    if (is_plain(spec))
        snprintf(text->element, sizeof text->element, "%s", types[spec->kv.type]);
    else /* blocks as words of their alignment */
        snprintf(text->element, sizeof text->element, "u%u", 8 * align);
    const int used = snprintf(count, sizeof text->count,
                              "((pages - 1) * %spage_stride + (page_slots - 1) * %sslot_stride + %llu * "
                              "%shead_stride + %llu)",
                              prefix, prefix, (unsigned long long)(spec->kv.heads - 1), prefix,
                              (unsigned long long)kv_head_size(spec, which));
    if (is_plain(spec))
        return;
    const unsigned elements = blocks ? blocks->elements : 8,
                   words = blocks ? blocks->bytes / align : row->format->facts.bits;
    if (elements != words)
        snprintf(count + used, sizeof text->count - (size_t)used, " / %u * %u", elements, words);
}

static void print_scale(const kernel_row *row, const kernel_spec *spec, kv_which which,
                        kernel_operand_text *text)
{
    static const char *const types[] = {
        [QDNN_SCALE_F32] = "f32", [QDNN_SCALE_F16] = "f16", [QDNN_SCALE_BF16] = "bf16"};
    snprintf(text->element, sizeof text->element, "%s", types[spec->stored.scale]);
    if (is_static(spec))
        snprintf(text->count, sizeof text->count, "%llu",
                 (unsigned long long)(spec->kv.scales == KERNEL_KV_BY_HEAD ? spec->kv.heads : 1));
    else
        snprintf(text->count, sizeof text->count, "pages * page_slots * %llu",
                 (unsigned long long)(spec->kv.heads * kv_groups(row, spec, which)));
}

kernel_operand_text kv_text(const kernel_row *row, const kernel_spec *spec, int operand)
{
    kernel_operand_text text = {.element = "i32", .count = "m"};
    if (operand == QDNN_OPERAND_KEYS || operand == QDNN_OPERAND_VALUES)
        print_array(row, spec, operand == QDNN_OPERAND_KEYS ? KV_KEYS : KV_VALUES, &text);
    else if (operand == QDNN_OPERAND_KEY_SCALE || operand == QDNN_OPERAND_VALUE_SCALE)
        print_scale(row, spec, operand == QDNN_OPERAND_KEY_SCALE ? KV_KEYS : KV_VALUES, &text);
    else if (operand == QDNN_OPERAND_PAGE_TABLE)
        snprintf(text.count, sizeof text.count, "table_pages");
    return text;
}
