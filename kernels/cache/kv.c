/* Where the heads of a slot and their scales are. */
#include "kernels/cache/cache.h"

kv_array kv_array_of(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, const kernel_args *args,
                     kv_which which)
{
    const bool keys = which == KV_KEYS;
    kv_array a = {.row = row,
                  .spec = kv_array_spec(row, spec, which),
                  .args = *args,
                  .groups = kv_groups(row, spec, which),
                  .by_head = spec->kv.by_head,
                  .heads = spec->kv.heads};
    a.start = args->operand[keys ? QDNN_OPERAND_KEYS : QDNN_OPERAND_VALUES];
    a.args.operand[QDNN_OPERAND_CODES] = a.start;
    a.args.operand[QDNN_OPERAND_SCALE] =
        args->operand[keys ? QDNN_OPERAND_KEY_SCALE : QDNN_OPERAND_VALUE_SCALE];
    a.slots = ptx_mul(b, args->number[NUMBER_PAGES], args->number[NUMBER_PAGE_SLOTS]);
    a.page_stride = args->number[keys ? NUMBER_PAGE_STRIDE : NUMBER_VALUE_PAGE_STRIDE];
    a.slot_stride = args->number[keys ? NUMBER_SLOT_STRIDE : NUMBER_VALUE_SLOT_STRIDE];
    a.head_stride = args->number[keys ? NUMBER_HEAD_STRIDE : NUMBER_VALUE_HEAD_STRIDE];
    return a;
}

/* ---- Slots ---- */

static ptx_val load_i32(ptx_builder *b, ptx_val array, ptx_val index)
{
    return ptx_ld(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_at(b, array, index, 4), 0);
}

/* The quotient of two numbers below 2^31: 32 bits are divided in half the instructions. */
static ptx_val quotient(ptx_builder *b, ptx_val number, ptx_val divisor)
{
    return ptx_div(b, number, ptx_cvt(b, PTX_U32, divisor));
}

static kv_slot slot_of_number(ptx_builder *b, const kernel_args *args, ptx_val number)
{
    ptx_val slots = ptx_mul(b, args->number[NUMBER_PAGES], args->number[NUMBER_PAGE_SLOTS]);
    kv_slot s = {.number = ptx_cvt(b, PTX_U64, number)};
    s.page = ptx_cvt(b, PTX_U64, quotient(b, number, args->number[NUMBER_PAGE_SLOTS]));
    s.place = ptx_sub(b, s.number, ptx_mul(b, s.page, args->number[NUMBER_PAGE_SLOTS]));
    s.exists = ptx_setp(b, PTX_LT, s.number, slots);
    return s;
}

kv_slot kv_slot_in_sequence(ptx_builder *b, bool is_paged, const kernel_args *args, ptx_val sequence,
                            ptx_val index)
{
    ptx_val each = args->number[NUMBER_PAGE_SLOTS], none = ptx_u32(b, UINT32_MAX);
    kv_slot s;
    ptx_val page = sequence, place = ptx_cvt(b, PTX_U64, index);
    s.exists = ptx_setp(b, PTX_LE, sequence, ptx_u32(b, INT32_MAX));
    if (is_paged) {
        ptx_val entry = ptx_cvt(b, PTX_U64, quotient(b, index, each));
        place = ptx_sub(b, place, ptx_mul(b, entry, each));
        s.exists = ptx_setp_and(b, PTX_LT, entry, args->number[NUMBER_TABLE_PAGES], s.exists);
        ptx_val at = ptx_mad(b, ptx_cvt(b, PTX_U64, sequence), args->number[NUMBER_TABLE_PAGES], entry);
        page = ptx_ld_if(b, s.exists, PTX_GLOBAL, PTX_NC, PTX_U32,
                         ptx_at(b, args->operand[QDNN_OPERAND_PAGE_TABLE], at, 4), 0, none);
    }
    s.page = ptx_cvt(b, PTX_U64, page);
    s.place = place;
    s.exists = ptx_setp_and(b, PTX_LT, s.page, args->number[NUMBER_PAGES], s.exists);
    s.exists = ptx_setp_and(b, PTX_LT, s.place, each, s.exists);
    s.number = ptx_mad(b, s.page, each, s.place);
    return s;
}

kv_slot kv_slot_of_token(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val token)
{
    if (spec->kv.slots == KERNEL_KV_LISTED)
        return slot_of_number(b, args, load_i32(b, args->operand[QDNN_OPERAND_ROW_INDEX], token));
    return kv_slot_in_sequence(b, spec->kv.slots == KERNEL_KV_PAGED, args,
                               load_i32(b, args->operand[QDNN_OPERAND_SEQUENCE], token),
                               load_i32(b, args->operand[QDNN_OPERAND_KEY_INDEX], token));
}

/* ---- Heads ---- */

ptx_val kv_element(ptx_builder *b, const kv_array *a, const kv_slot *slot, ptx_val head)
{
    ptx_val at = ptx_mad(b, slot->place, a->slot_stride, ptx_mul(b, slot->page, a->page_stride));
    return ptx_mad(b, head, a->head_stride, at);
}

ptx_val kv_address(ptx_builder *b, const kv_array *a, ptx_val element)
{
    const block_layout *blocks = block_layout_of(a->row->format);
    if (a->spec.kv.type)
        return ptx_at(b, a->start, element, element_bytes((qdnnDataType_t)a->spec.kv.type));
    if (blocks)
        return ptx_add(b, a->start,
                       emit_multiply(b, emit_divide(b, element, blocks->elements), blocks->bytes));
    return ptx_add(b, a->start, ptx_shr(b, emit_multiply(b, element, a->row->format->facts.bits), 3));
}

ptx_val kv_scale_index(ptx_builder *b, const kv_array *a, const kv_slot *slot, ptx_val head)
{
    if (a->spec.kv.scales == KERNEL_KV_BY_HEAD)
        return head;
    if (a->spec.kv.scales == KERNEL_KV_BY_CACHE)
        return ptx_u64(b, 0);
    ptx_val number = a->by_head ? ptx_mad(b, head, a->slots, slot->number)
                                : ptx_add(b, emit_multiply(b, slot->number, a->heads), head);
    return emit_multiply(b, number, a->groups);
}
