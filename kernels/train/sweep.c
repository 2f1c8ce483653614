/* Kernels that process a tensor element by element: a block takes a tile, a thread several chunks of it.
 * Incomplete tiles, and those with unaligned pointers, are processed one element at a time. */
#include "kernels/quant/tile.h"
#include "kernels/train/train.h"

typedef struct sweep {
    const kernel_row *row;
    const kernel_spec *spec;
    quantized q;           /* for its groups; without scales if the operation needs none */
    ptx_val x, dy, out;    /* pointers; empty if the operation has no such operand */
    ptx_val n, first, end; /* u64: number of elements; the tile is [first, end), with end limited to n */
    ptx_val whole;         /* predicate: the tile is complete and all pointers are aligned */
} sweep;

kernel_geometry sweep_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = TILE_BLOCK, .elements_per_block = TILE_ELEMENTS};
}

static bool is_there(ptx_val pointer)
{
    return pointer.kind != PTX_NOTHING;
}

static bool has_scale(const sweep *s)
{
    return is_there(s->q.side.scale);
}

static ptx_val all_aligned(ptx_builder *b, const sweep *s)
{
    ptx_val aligned = emit_aligned(b, s->out, LOAD_BYTES);
    if (is_there(s->x))
        aligned = ptx_and(b, aligned, emit_aligned(b, s->x, LOAD_BYTES));
    if (is_there(s->dy))
        aligned = ptx_and(b, aligned, emit_aligned(b, s->dy, LOAD_BYTES));
    return has_scale(s) ? chunk_groups_aligned(b, &s->q, aligned) : aligned;
}

/* A block beyond the last element has no complete tile, and none of the elements before its end. */
static sweep sweep_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    const ptx_val *at = args.operand;
    sweep s = {.row = row,
               .spec = spec,
               .x = at[QDNN_OPERAND_X],
               .dy = at[QDNN_OPERAND_DY],
               .n = args.number[NUMBER_N]};
    s.out = is_there(at[QDNN_OPERAND_Y]) ? at[QDNN_OPERAND_Y] : at[QDNN_OPERAND_DX];
    s.q.coding = (coding){row->format, spec};
    s.q.side.scale = at[kernel_operation_of(row) == KERNEL_LSQ ? QDNN_OPERAND_SCALE : QDNN_OPERAND_STATE];
    s.first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, TILE_ELEMENTS));
    ptx_val full_end = ptx_add(b, s.first, TILE_ELEMENTS);
    s.end = ptx_min(b, full_end, s.n);
    s.whole = ptx_setp_and(b, PTX_LE, full_end, s.n, all_aligned(b, &s));
    if (has_scale(&s))
        flat_group_only(b, &s.q);
    return s;
}

static train_scale_kind scale_kind(const sweep *s)
{
    if (kernel_operation_of(s->row) == KERNEL_LSQ || s->spec->train.scale_mode == QDNN_SCALE_MODE_FIXED)
        return TRAIN_SCALE_POSITIVE;
    return s->spec->train.scale_mode == QDNN_SCALE_MODE_BATCH ? TRAIN_SCALE_OF_X : TRAIN_SCALE_ANY;
}

/* Scales from the caller are limited from below; computed ones are used as they are. */
static ptx_val result_of(ptx_builder *b, const sweep *s, ptx_val stored, ptx_val x, ptx_val dy)
{
    const train_scale_kind kind = scale_kind(s);
    ptx_val scale = kind == TRAIN_SCALE_POSITIVE && has_scale(s) ? train_least_scale(b, stored) : stored;
    return is_there(s->dy) ? train_backward(b, s->spec, kind, x, scale, dy)
                           : train_forward(b, s->spec, kind, x, scale);
}

static void load_chunks(ptx_builder *b, ptx_val pointer, ptx_val index, unsigned count, ptx_val *x)
{
    const unsigned chunk = chunk_elements(QDNN_DATA_F32);
    if (!is_there(pointer))
        return;
    ptx_val at = ptx_at(b, pointer, index, sizeof(float));
    for (unsigned i = 0; i < count; i++)
        emit_load_chunk(b, QDNN_DATA_F32, at, (int)(i * TILE_BLOCK * LOAD_BYTES), &x[i * chunk]);
}

/* `count` chunks a block's width apart, starting at element `index`. All loads come first, so that their
 * latencies overlap. */
static void sweep_chunks(ptx_builder *b, const sweep *s, ptx_val index, unsigned count)
{
    const unsigned chunk = chunk_elements(QDNN_DATA_F32);
    ptx_val x[THREAD_ELEMENTS] = {{0}}, dy[THREAD_ELEMENTS] = {{0}}, y[THREAD_ELEMENTS];
    chunk_groups groups[THREAD_CHUNKS_MAX] = {0};
    for (unsigned i = 0; i < count && has_scale(s); i++)
        chunk_groups_load(b, &s->q, ptx_add(b, index, i * TILE_BLOCK * chunk), &groups[i]);
    load_chunks(b, s->x, index, count, x);
    load_chunks(b, s->dy, index, count, dy);
    ptx_val out = ptx_at(b, s->out, index, sizeof(float));
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < chunk; k++) {
            group_values group = {0};
            if (has_scale(s))
                group = chunk_group_at(b, &s->q, &groups[i], k);
            y[k] = result_of(b, s, group.scale, x[i * chunk + k], dy[i * chunk + k]);
        }
        emit_store_chunk(b, QDNN_DATA_F32, out, (int)(i * TILE_BLOCK * LOAD_BYTES), y);
    }
}

/* All chunks of a thread at once, or one at a time if each takes many registers. */
static void sweep_tile(ptx_builder *b, const sweep *s)
{
    const unsigned chunk = chunk_elements(QDNN_DATA_F32);
    ptx_val first = ptx_add(b, s->first, ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_tid_x(b), chunk)));
    bool at_once = chunk_has_one_group(s->spec) && s->spec->train.backward != QDNN_BACKWARD_TANH;
    if (at_once) {
        sweep_chunks(b, s, first, THREAD_ELEMENTS / chunk);
        return;
    }
    ptx_val inside = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, TILE_ELEMENTS), TILE_BLOCK * chunk);
    sweep_chunks(b, s, ptx_add(b, first, ptx_cvt(b, PTX_U64, inside)), 1);
    ptx_end_for(b);
}

static ptx_val load_one(ptx_builder *b, ptx_val pointer, ptx_val index)
{
    return is_there(pointer) ? emit_load(b, QDNN_DATA_F32, ptx_at(b, pointer, index, sizeof(float)), 0)
                             : pointer;
}

static void sweep_elements(ptx_builder *b, const sweep *s)
{
    ptx_val index = ptx_for(b, ptx_add(b, s->first, ptx_cvt(b, PTX_U64, ptx_tid_x(b))), s->end, TILE_BLOCK);
    group_values group = {0};
    if (has_scale(s))
        group = flat_group(b, &s->q, index);
    ptx_val x = load_one(b, s->x, index), dy = load_one(b, s->dy, index);
    ptx_val y = result_of(b, s, group.scale, x, dy);
    ptx_st_global(b, ptx_at(b, s->out, index, sizeof(float)), 0, y);
    ptx_end_for(b);
}

void emit_sweep(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 3); /* up to 80 registers, which the divisions need */
    sweep s = sweep_begin(b, row, spec);
    ptx_uniform(b);
    ptx_if(b, s.whole);
    sweep_tile(b, &s);
    ptx_else(b);
    sweep_elements(b, &s);
    ptx_end_if(b);
}
