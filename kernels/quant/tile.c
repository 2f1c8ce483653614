/* Tiles and chunks, shared by quantize and dequantize. */
#include "kernels/quant/tile.h"

#include "kernels/quant/matrix.h"
#include "kernels/quant/quant.h"

kernel_geometry tile_geometry(const kernel_row *row, const kernel_spec *spec)
{
    if (format_is_blocks(row->format))
        return block_geometry(row);
    if (kernel_is_matrix(row, spec))
        return matrix_staged_geometry(&(coding){row->format, spec});
    return (kernel_geometry){.block = TILE_BLOCK, .elements_per_block = TILE_ELEMENTS};
}

/* Whether each column of a matrix is a channel: then the kernel for groups down columns is used, which keeps
 * scales for many rows; the kernel for flat groups would load them again for each row. This depends on the
 * shape, so it cannot be part of the normal form of a specification. */
static bool columns_are_channels(const kernel_row *row, const kernel_spec *spec,
                                 const kernel_problem *problem)
{
    const kernel_operation o = kernel_operation_of(row);
    return (o == KERNEL_QUANTIZE || o == KERNEL_DEQUANTIZE) && spec->stored.groups == QDNN_GROUPS_FLAT &&
           spec->stored.group_size == 1 && spec->stored.channels > 1 &&
           spec->stored.channels == problem->columns && spec->stored.channels % WARP == 0 &&
           problem->rows <= KERNEL_GROUP_MAX && !spec->stored.nested && !spec->stored.zero_packed &&
           !spec->row_index && !format_is_blocks(row->format) && !format_is_plain(row->format);
}

void tile_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps)
{
    kernel_spec own = *spec;
    if (columns_are_channels(row, spec, problem)) {
        own.stored.groups = QDNN_GROUPS_COLUMNS;
        own.stored.group_size = KERNEL_GROUP_MAX; /* all rows */
        own.stored.channels = 0;
    }
    if (kernel_is_matrix(row, &own))
        matrix_staged_steps(row, &own, problem, steps);
    else
        steps_add(steps, row, spec, problem);
}

ptx_val tile_codes_at(ptx_builder *b, const tile *t, ptx_val index)
{
    unsigned width = t->q.coding.format->facts.bits;
    return ptx_add(b, t->q.codes, ptx_shr(b, ptx_mul(b, index, ptx_u64(b, width)), 3));
}

static unsigned code_align(const coding *c)
{
    return codes_are_direct(c) ? chunk_elements(c->spec->data) * c->format->facts.bits / 8 : LOAD_BYTES;
}

tile tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    bool to_codes = kernel_operation_of(row) == KERNEL_QUANTIZE;
    tile t = {.data = args.operand[to_codes ? QDNN_OPERAND_X : QDNN_OPERAND_Y], .n = args.number[NUMBER_N]};
    t.first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, TILE_ELEMENTS));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, t.first, t.n)); /* an empty tensor may have no scales to load */
    t.q = quantized_begin(b, row, spec, &args);
    ptx_val full_end = ptx_add(b, t.first, TILE_ELEMENTS);
    t.end = ptx_min(b, full_end, t.n);
    ptx_val aligned =
        emit_aligned_and(b, emit_aligned(b, t.data, LOAD_BYTES), t.q.codes, code_align(&t.q.coding));
    aligned = chunk_groups_aligned(b, &t.q, aligned);
    t.whole = ptx_setp_and(b, PTX_LE, full_end, t.n, aligned);
    flat_group_only(b, &t.q);
    if (!codes_are_direct(&t.q.coding))
        t.stage = stage_begin(b, &t.q.coding, TILE_ELEMENTS, TILE_BLOCK);
    return t;
}

void tile_chunks(ptx_builder *b, const tile *t,
                 void (*some)(ptx_builder *b, const tile *t, ptx_val index, unsigned count))
{
    unsigned chunk = chunk_elements(t->q.coding.spec->data);
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5);
    ptx_val start = ptx_add(b, t->first, ptx_cvt(b, PTX_U64, ptx_mul(b, warp, WARP_ELEMENTS)));
    ptx_val first = ptx_add(b, start, ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_laneid(b), chunk)));
    if (chunk_has_one_group(t->q.coding.spec)) {
        some(b, t, first, THREAD_ELEMENTS / chunk);
        return;
    }
    ptx_val index = ptx_for(b, first, ptx_add(b, start, WARP_ELEMENTS), WARP * chunk);
    some(b, t, index, 1);
    ptx_end_for(b);
}
