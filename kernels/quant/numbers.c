/* Stores the numbers of a block's groups together. */
#include "kernels/quant/numbers.h"

static unsigned groups_of_block(const numbers *s)
{
    return RANGE_BLOCK / s->lanes;
}

numbers numbers_begin(ptx_builder *b, const coding *c, unsigned lanes)
{
    numbers s = {.coding = c, .lanes = lanes};
    if (lanes == 1 || lanes == RANGE_BLOCK)
        return s;
    s.scales = ptx_shared(b, "group_scales", PTX_U32, groups_of_block(&s), LOAD_BYTES);
    if (format_has_zero(c->format))
        s.zeros = ptx_shared(b, "group_zeros", PTX_F32, groups_of_block(&s), LOAD_BYTES);
    return s;
}

/* The first lane of each team stores its numbers; `number` is that of the team in the block. */
static void put(ptx_builder *b, const numbers *s, const group_made *made, ptx_val number)
{
    const bool is_code = made->code.kind != PTX_NOTHING;
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_and(b, ptx_tid_x(b), s->lanes - 1), 0));
    ptx_st_shared(b, ptx_at(b, s->scales, number, 4), 0,
                  is_code ? made->code : ptx_as(b, PTX_U32, made->scale));
    if (made->zero.kind != PTX_NOTHING)
        ptx_st_shared(b, ptx_at(b, s->zeros, number, 4), 0, made->zero);
    ptx_end_if(b);
    ptx_syncthreads(b);
}

/* The numbers of group `number` of the block. */
static group_made take(ptx_builder *b, const numbers *s, const group_made *made, ptx_val number)
{
    group_made here = {.scale = ptx_ld_shared(b, PTX_F32, ptx_at(b, s->scales, number, 4), 0)};
    if (made->code.kind != PTX_NOTHING)
        here.code = ptx_as(b, PTX_U32, here.scale);
    if (made->zero.kind != PTX_NOTHING)
        here.zero = ptx_ld_shared(b, PTX_F32, ptx_at(b, s->zeros, number, 4), 0);
    return here;
}

void numbers_store(ptx_builder *b, const numbers *s, const sidecars *to, const group_made *made,
                   ptx_val block_first, ptx_val groups)
{
    const bool is_staged = s->scales.kind != PTX_NOTHING;
    ptx_val tid = ptx_tid_x(b);
    if (is_staged)
        put(b, s, made, ptx_shr(b, tid, ceil_log2(s->lanes)));
    ptx_val group = ptx_add(b, block_first, ptx_cvt(b, PTX_U64, tid));
    ptx_val exists = ptx_setp(b, PTX_LT, group, groups);
    ptx_if(b, ptx_setp_and(b, PTX_LT, tid, (int)groups_of_block(s), exists));
    group_made here = is_staged ? take(b, s, made, tid) : *made;
    group_store(b, s->coding, to, &here, group);
    ptx_end_if(b);
}
