/* The k largest of each row, in order. A block has a row; where rows are few and long, each of several blocks leaves the k
 * largest of a part of it in the workspace, and a second kernel finds those of the row among them. */
#include "kernels/select/select.h"

/* Keys of part `part` of the row, in the workspace: the parts of a row follow each other. */
static ptx_val part_keys(ptx_builder *b, const kernel_args *args, const row_part *p, ptx_val part)
{
    ptx_val list = ptx_mad(b, p->row, args->number[NUMBER_PARTS], ptx_cvt(b, PTX_U64, part));
    return ptx_at(b, args->partials, ptx_mul(b, list, args->number[NUMBER_TOP]), 8);
}

static void store_keys(ptx_builder *b, const kernel_args *args, const row_part *p, const pool *top)
{
    ptx_val to = part_keys(b, args, p, ptx_ctaid_y(b));
    ptx_val i = ptx_for(b, top->tid, top->k, SELECT_BLOCK);
    ptx_val key = ptx_ld_shared(b, PTX_U64, ptx_at(b, top->keys, i, 8), 0);
    ptx_st_global(b, ptx_at(b, to, ptx_cvt(b, PTX_U64, i), 8), 0, key);
    ptx_end_for(b);
}

/* Elements are read again: a key does not say whether it was -0. */
static void store_elements(ptx_builder *b, const kernel_spec *spec, const kernel_args *args,
                           const row_part *p, const pool *top)
{
    const unsigned bytes = element_bytes(spec->data);
    ptx_val i = ptx_for(b, top->tid, top->k, SELECT_BLOCK);
    ptx_val index = key_index(b, ptx_ld_shared(b, PTX_U64, ptx_at(b, top->keys, i, 8), 0));
    ptx_val x = emit_load(b, spec->data, row_part_at(b, p, args->operand[QDNN_OPERAND_X], bytes, index), 0);
    ptx_val place = ptx_mad(b, p->row, args->number[NUMBER_TOP], ptx_cvt(b, PTX_U64, i));
    emit_store(b, spec->data, ptx_at(b, args->operand[QDNN_OPERAND_Y], place, bytes), 0, x);
    ptx_st_global(b, ptx_at(b, args->operand[QDNN_OPERAND_INDEX], place, 4), 0, index);
    ptx_end_for(b);
}

void emit_top_k(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    const row_part p = row_part_of(b, spec, &args);
    const pool top = pool_begin(b, ptx_cvt(b, PTX_U32, args.number[NUMBER_TOP]));
    if (spec->select.phase == KERNEL_PHASE_JOIN) {
        ptx_val count = ptx_mul(b, args.number[NUMBER_PARTS], args.number[NUMBER_TOP]);
        pool_add_keys(b, &top, part_keys(b, &args, &p, ptx_u32(b, 0)), ptx_cvt(b, PTX_U32, count));
    } else {
        ptx_val first = row_part_at(b, &p, args.operand[QDNN_OPERAND_X], element_bytes(spec->data), p.first);
        const span s = span_of(b, spec->data, first, p.count);
        pool_add_span(b, &top, &s, p.first, NULL);
    }
    pool_reduce(b, &top);
    if (spec->select.phase == KERNEL_PHASE_PARTS) {
        store_keys(b, &args, &p, &top);
        return;
    }
    pool_sort(b, &top);
    store_elements(b, spec, &args, &p, &top);
}
