/* Groups of a column of weights. */
#include "kernels/tensor/groups.h"

uint64_t group_extent(const kernel_spec *spec)
{
    const bool columns = spec->product.reduction == KERNEL_K_COLUMNS;
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT || spec->stored.channels == 1)
        return 0;
    if (spec->stored.groups == QDNN_GROUPS_FLAT)
        return columns ? spec->stored.group_size : 1;
    return (spec->stored.groups == QDNN_GROUPS_ROWS) == columns ? spec->stored.group_size
                                                                : spec->stored.group_rows;
}

bool groups_are_regular(const kernel_spec *spec)
{
    const bool along_k =
        spec->stored.groups ==
        (spec->product.reduction == KERNEL_K_COLUMNS ? QDNN_GROUPS_ROWS : QDNN_GROUPS_COLUMNS);
    return along_k && spec->stored.group_rows == 1 && spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE &&
           !spec->stored.nested && !spec->stored.zero_packed && !spec->stored.group_index;
}

column_groups column_groups_of(ptx_builder *b, const matrix *m, ptx_val n)
{
    group_place first = {.line = n, .group = ptx_u64(b, 0)}, second = {.line = n, .group = ptx_u64(b, 1)};
    column_groups c = {.first = matrix_group_number(b, m, &first)};
    c.step = ptx_sub(b, matrix_group_number(b, m, &second), c.first);
    return c;
}

group_values column_group(ptx_builder *b, const matrix *m, const column_groups *c, ptx_val group)
{
    return group_load(b, &m->q.coding, &m->q.side, ptx_mad(b, c->step, group, c->first));
}

ptx_val column_scale_address(ptx_builder *b, const matrix *m, const column_groups *c, unsigned group)
{
    const unsigned bytes = scale_bytes(m->q.coding.spec->stored.scale);
    ptx_val first = ptx_at(b, m->q.side.scale, c->first, bytes);
    if (!group)
        return first;
    return ptx_add(b, ptx_mul_wide(b, ptx_cvt(b, PTX_U32, c->step), ptx_u32(b, bytes * group)), first);
}

group_values column_group_known(ptx_builder *b, const matrix *m, const column_groups *c, unsigned group)
{
    const coding *coding = &m->q.coding;
    if (!format_has_zero(coding->format) && !coding->spec->stored.nested) { /* one address, one instruction */
        ptx_val scale =
            emit_load_scale(b, coding->spec->stored.scale, column_scale_address(b, m, c, group), 0);
        return group_of_numbers(b, coding, &m->q.side, scale, (ptx_val){0});
    }
    ptx_val more = ptx_mul_wide(b, ptx_cvt(b, PTX_U32, c->step), ptx_u32(b, group));
    return group_load(b, coding, &m->q.side, group ? ptx_add(b, more, c->first) : c->first);
}
