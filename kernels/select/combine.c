/* Combining: the weighted sum of the rows that a token's experts gave. A thread has eight neighbouring columns, and loads them
 * from several slots before it adds. */
#include "kernels/select/select.h"

enum { SLOTS_AT_ONCE = 8 };

typedef struct combine {
    const kernel_spec *spec;
    const kernel_args *args;
    ptx_val x, weight, residual,
        y;              /* u64: addresses; of x and y, of the token's columns from the thread's first on */
    ptx_val slot_bytes; /* u64: from one slot to the next */
} combine;

static ptx_val slot_at(ptx_builder *b, const combine *c, unsigned slot)
{
    return slot ? ptx_mad(b, c->slot_bytes, ptx_u64(b, slot), c->x) : c->x;
}

/* sum += weight * x for `count` columns; the first term is not added. */
static void add_slot(ptx_builder *b, const combine *c, unsigned slot, unsigned count, const ptx_val *x,
                     ptx_val *sum)
{
    ptx_val weight = ptx_ld_global_nc(b, PTX_F32, c->weight, (int)(4 * slot));
    for (unsigned i = 0; i < count; i++) {
        ptx_val term = ptx_mul(b, weight, x[i]);
        sum[i] = slot ? ptx_add(b, sum[i], term) : term;
    }
}

static void whole_chunk(ptx_builder *b, const combine *c)
{
    const unsigned slots = (unsigned)c->spec->route.slots;
    const qdnnDataType_t type = c->spec->epilogue.output;
    ptx_val x[SLOTS_AT_ONCE][SELECT_CHUNK], sum[SELECT_CHUNK], residual[SELECT_CHUNK];
    if (c->spec->epilogue.residual)
        emit_load_run(b, type, c->residual, 0, SELECT_CHUNK, residual);
    for (unsigned first = 0; first < slots; first += SLOTS_AT_ONCE) {
        const unsigned end = first + SLOTS_AT_ONCE < slots ? first + SLOTS_AT_ONCE : slots;
        for (unsigned slot = first; slot < end; slot++)
            emit_load_run(b, c->spec->data, slot_at(b, c, slot), 0, SELECT_CHUNK, x[slot - first]);
        for (unsigned slot = first; slot < end; slot++)
            add_slot(b, c, slot, SELECT_CHUNK, x[slot - first], sum);
    }
    for (unsigned i = 0; i < SELECT_CHUNK && c->spec->epilogue.residual; i++)
        sum[i] = ptx_add(b, sum[i], residual[i]);
    emit_store_run(b, type, c->y, 0, SELECT_CHUNK, sum);
}

/* Columns one by one, where rows are not aligned or end within the chunk. */
static void some_columns(ptx_builder *b, const combine *c, ptx_val count)
{
    const qdnnDataType_t type = c->spec->epilogue.output;
    ptx_val i = ptx_for(b, ptx_u32(b, 0), ptx_min(b, count, SELECT_CHUNK), ptx_u32(b, 1)), sum;
    combine one = *c;
    one.x = ptx_at(b, c->x, i, element_bytes(c->spec->data));
    for (unsigned slot = 0; slot < c->spec->route.slots; slot++) {
        ptx_val x = emit_load(b, c->spec->data, slot_at(b, &one, slot), 0);
        add_slot(b, &one, slot, 1, &x, &sum);
    }
    if (c->spec->epilogue.residual)
        sum = ptx_add(b, sum, emit_load(b, type, ptx_at(b, c->residual, i, element_bytes(type)), 0));
    emit_store(b, type, ptx_at(b, c->y, i, element_bytes(type)), 0, sum);
    ptx_end_for(b);
}

void emit_combine(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    const unsigned x_bytes = element_bytes(spec->data), y_bytes = element_bytes(spec->epilogue.output);
    ptx_val n = args.number[NUMBER_COLUMNS], token = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b));
    ptx_val chunk = ptx_add(b, ptx_mul(b, ptx_ctaid_y(b), COMBINE_BLOCK), ptx_tid_x(b));
    ptx_val column = ptx_cvt(b, PTX_U64, ptx_mul(b, chunk, SELECT_CHUNK));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, column, n));
    ptx_val row_of_y = ptx_mad(b, token, n, column), slot = ptx_mul(b, token, spec->route.slots);
    combine c = {.spec = spec,
                 .args = &args,
                 .x = ptx_at(b, args.operand[QDNN_OPERAND_X], ptx_mad(b, slot, n, column), x_bytes),
                 .weight = ptx_at(b, args.operand[QDNN_OPERAND_ROW_WEIGHT], slot, 4),
                 .y = ptx_at(b, args.operand[QDNN_OPERAND_Y], row_of_y, y_bytes),
                 .slot_bytes = ptx_mul(b, n, x_bytes)};
    ptx_val left = ptx_sub(b, n, column), whole = ptx_setp(b, PTX_GE, left, SELECT_CHUNK);
    /* rows are all aligned if the tensors are, and a row is a multiple of 16 bytes of either */
    whole = ptx_setp_and(b, PTX_EQ, ptx_and(b, n, SELECT_CHUNK - 1), 0, whole);
    whole = emit_aligned_and(b, whole, args.operand[QDNN_OPERAND_X], LOAD_BYTES);
    whole = emit_aligned_and(b, whole, args.operand[QDNN_OPERAND_Y], LOAD_BYTES);
    if (spec->epilogue.residual) {
        c.residual = ptx_at(b, args.operand[QDNN_OPERAND_RESIDUAL], row_of_y, y_bytes);
        whole = emit_aligned_and(b, whole, args.operand[QDNN_OPERAND_RESIDUAL], LOAD_BYTES);
    }
    ptx_if(b, whole);
    whole_chunk(b, &c);
    ptx_else(b);
    some_columns(b, &c, ptx_cvt(b, PTX_U32, left));
    ptx_end_if(b);
}

kernel_geometry combine_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){
        .block = COMBINE_BLOCK,
        .grid = {rule_number(NUMBER_M), rule_parts(NUMBER_COLUMNS, COMBINE_BLOCK * SELECT_CHUNK)}};
}
