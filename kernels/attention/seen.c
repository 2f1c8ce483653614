/* Which keys a token sees: read from the lists, and limited to what the cache and the mask have room for. */
#include "kernels/attention/attention.h"

static ptx_val list_entry(ptx_builder *b, const kernel_args *args, qdnnOperand_t list, ptx_val index,
                          unsigned size, unsigned which, ptx_val exists)
{
    ptx_val at = ptx_at(b, args->operand[list], index, 4 * size);
    return ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_S32, at, (int)(4 * which), ptx_s32(b, -1));
}

/* The largest number of a key, for which `count` (u64) places are available. */
static ptx_val last_of(ptx_builder *b, ptx_val count)
{
    ptx_val most = ptx_min(b, count, ptx_u64(b, INT32_MAX));
    return ptx_sub(b, ptx_as(b, PTX_S32, ptx_cvt(b, PTX_U32, most)), 1);
}

static ptx_val last_in_cache(ptx_builder *b, const kernel_spec *spec, const kernel_args *args)
{
    ptx_val count = args->number[NUMBER_PAGE_SLOTS];
    if (spec->kv.slots == KERNEL_KV_PAGED)
        count = ptx_mul(b, count, args->number[NUMBER_TABLE_PAGES]);
    return last_of(b, count);
}

seen_keys seen_by_token(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val token)
{
    const kernel_attention *a = &spec->attention;
    ptx_val exists = ptx_setp(b, PTX_LT, token, args->number[NUMBER_M]), room = last_in_cache(b, spec, args);
    ptx_val sequence = ptx_s32(b, 0);
    if (!a->one_sequence) {
        sequence = list_entry(b, args, QDNN_OPERAND_SEQUENCE, token, 1, 0, exists);
        exists = ptx_setp_and(b, PTX_GE, sequence, ptx_s32(b, 0), exists);
    }
    seen_keys s = {.first = ptx_s32(b, 0)};
    s.sequence = a->one_sequence ? ptx_u32(b, 0) : ptx_as(b, PTX_U32, sequence);
    switch (a->sees) {
    case KERNEL_SEES_KEY_INDEX:
        s.end = list_entry(b, args, QDNN_OPERAND_KEY_INDEX, token, 1, 0, exists);
        break;
    case KERNEL_SEES_LENGTH:
        s.end =
            list_entry(b, args, QDNN_OPERAND_SEQUENCE_LENGTH, ptx_cvt(b, PTX_U64, s.sequence), 1, 0, exists);
        s.end = ptx_sub(b, ptx_max(b, s.end, ptx_s32(b, 0)), 1);
        break;
    case KERNEL_SEES_RANGE:
        s.first = list_entry(b, args, QDNN_OPERAND_VISIBLE, token, 2, 0, exists);
        s.first = ptx_max(b, s.first, ptx_s32(b, 0));
        s.end = list_entry(b, args, QDNN_OPERAND_VISIBLE, token, 2, 1, exists);
        break;
    case KERNEL_SEES_ALL:
        s.end = room;
        break;
    }
    if (a->window) {
        ptx_val window = ptx_as(b, PTX_S32, ptx_cvt(b, PTX_U32, args->number[NUMBER_WINDOW]));
        ptx_val before = ptx_sub(b, window, 1);
        /* the difference must not wrap: without keys there is no window either */
        s.first = ptx_max(b, s.first, ptx_sub(b, ptx_max(b, s.end, ptx_s32(b, -1)), before));
    }
    s.last = ptx_min(b, s.end, room);
    if (spec->select.mask)
        s.last = ptx_min(b, s.last, last_of(b, args->number[NUMBER_MASK_KEYS]));
    s.last = ptx_selp(b, s.last, ptx_s32(b, -1), exists);
    return s;
}
