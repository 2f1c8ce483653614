/* KV caches: specifications, and the sizes of their operands. */
#include "kernels/cache/cache.h"

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

/* From the first element of an array to the end of the last. */
static kernel_rule elements_of(kernel_description *d, const kernel_spec *spec, kv_which which)
{
    const bool is_keys = which == KV_KEYS;
    const kernel_number page = is_keys ? NUMBER_PAGE_STRIDE : NUMBER_VALUE_PAGE_STRIDE,
                        slot = is_keys ? NUMBER_SLOT_STRIDE : NUMBER_VALUE_SLOT_STRIDE,
                        head = is_keys ? NUMBER_HEAD_STRIDE : NUMBER_VALUE_HEAD_STRIDE;
    kernel_rule each =
        rule_span(rule_constant(spec->kv.heads), rule_number(head), rule_constant(kv_head_size(spec, which)));
    each = rule_span(rule_number(NUMBER_PAGE_SLOTS), rule_number(slot), each);
    d->numbers |= (number_set)1 << page | (number_set)1 << slot | (number_set)1 << head | A_NUMBER(PAGES) |
                  A_NUMBER(PAGE_SLOTS);
    return rule_span(rule_number(NUMBER_PAGES), rule_number(page), each);
}

static void add_array(kernel_description *d, const kernel_row *row, const kernel_spec *spec, kv_which which,
                      bool writes)
{
    const qdnnOperand_t operand = which == KV_KEYS ? QDNN_OPERAND_KEYS : QDNN_OPERAND_VALUES;
    const block_layout *blocks = block_layout_of(row->format);
    if (!kv_head_size(spec, which))
        return;
    const kernel_rule elements = elements_of(d, spec, which);
    if (is_plain(spec))
        describe_operand(d, operand, writes, element_type_of((qdnnDataType_t)spec->kv.type), elements);
    else if (blocks)
        describe_operand(
            d, operand, writes, (element_type){"block", block_align(blocks), 1},
            rule_times(rule_over(elements, rule_constant(blocks->elements)), rule_constant(blocks->bytes)));
    else
        describe_operand(d, operand, writes, element_type_of(QDNN_DATA_U8),
                         rule_over(elements, rule_constant(8 / row->format->facts.bits)));
}

/* Static scales are read, others belong to what is written. */
static void add_scale(kernel_description *d, const kernel_row *row, const kernel_spec *spec, kv_which which,
                      bool writes)
{
    const qdnnOperand_t operand = which == KV_KEYS ? QDNN_OPERAND_KEY_SCALE : QDNN_OPERAND_VALUE_SCALE;
    const kernel_rule slots = rule_times(rule_number(NUMBER_PAGES), rule_number(NUMBER_PAGE_SLOTS));
    if (!kv_head_size(spec, which) || !has_scales(row, spec))
        return;
    describe_operand(d, operand, writes && !is_static(spec), element_type_of_scale(spec->stored.scale),
                     is_static(spec)
                         ? rule_constant(spec->kv.scales == KERNEL_KV_BY_HEAD ? spec->kv.heads : 1)
                         : rule_times(slots, rule_constant(spec->kv.heads * kv_groups(row, spec, which))));
}

void describe_kv(kernel_description *d, const kernel_row *row, const kernel_spec *spec, bool writes)
{
    add_array(d, row, spec, KV_KEYS, writes);
    add_array(d, row, spec, KV_VALUES, writes);
    add_scale(d, row, spec, KV_KEYS, writes);
    add_scale(d, row, spec, KV_VALUES, writes);
}

/* The number of sequences is not known. */
void describe_kv_pages(kernel_description *d, const kernel_spec *spec)
{
    if (spec->kv.heads == 0 || spec->kv.slots != KERNEL_KV_PAGED)
        return;
    describe_read(d, QDNN_OPERAND_PAGE_TABLE, element_type_of(QDNN_DATA_I32),
                  rule_number(NUMBER_TABLE_PAGES));
    d->numbers |= A_NUMBER(TABLE_PAGES);
}
