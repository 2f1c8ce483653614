/* Tiles of blocks, shared by quantize and dequantize. */
#include "kernels/quant/block_tile.h"

#include "kernels/formats/search.h"
#include "kernels/quant/quant.h"

unsigned block_quantize_threads(const block_layout *layout)
{
    return layout->search ? BLOCK_TILE / layout->search->elements : BLOCK_QUANTIZE_THREADS;
}

static bool makes_codes(const kernel_row *row)
{
    const kernel_operation operation = kernel_operation_of(row);
    return operation == KERNEL_QUANTIZE || operation == KERNEL_QUANTIZE_ROWS;
}

kernel_geometry block_geometry(const kernel_row *row)
{
    bool to_codes = makes_codes(row);
    return (kernel_geometry){.block = to_codes ? block_quantize_threads(block_layout_of(row->format))
                                               : BLOCK_DEQUANTIZE_THREADS,
                             .elements_per_block = BLOCK_TILE};
}

block_tile block_tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, unsigned threads)
{
    kernel_args args = kernel_declare(b, row, spec);
    bool to_codes = makes_codes(row);
    block_tile t = {
        .layout = block_layout_of(row->format), .data = spec->data, .threads = threads, .packs = to_codes};
    const unsigned bytes = BLOCK_TILE / t.layout->elements * t.layout->bytes;
    ptx_val n = args.number[NUMBER_N], index = ptx_ctaid_x(b);
    if (spec->row_index)
        n = ptx_mul(b, args.number[NUMBER_ROWS], args.number[NUMBER_COLUMNS]);
    ptx_val first = ptx_mul_wide(b, index, ptx_u32(b, BLOCK_TILE));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, first, n));
    t.elements = ptx_cvt(b, PTX_U32, ptx_min(b, ptx_sub(b, n, first), ptx_u64(b, BLOCK_TILE)));
    t.count = ptx_shr(b, t.elements, ceil_log2(t.layout->elements));
    t.plain =
        ptx_at(b, args.operand[to_codes ? QDNN_OPERAND_X : QDNN_OPERAND_Y], first, element_bytes(t.data));
    t.blocks = ptx_at(b, args.operand[QDNN_OPERAND_CODES], index, bytes);
    t.is_aligned = emit_aligned(b, t.plain, LOAD_BYTES);
    t.whole = ptx_setp_and(b, PTX_EQ, t.elements, BLOCK_TILE, emit_aligned(b, t.blocks, LOAD_BYTES));
    t.stage = stage_of_bytes(b, "blocks", bytes, threads);
    if (spec->row_index)
        t.rows = (block_rows){.index = args.operand[QDNN_OPERAND_ROW_INDEX],
                              .type = spec->index_type,
                              .table = args.operand[QDNN_OPERAND_CODES],
                              .table_rows = args.number[NUMBER_TABLE_ROWS],
                              .columns = args.number[NUMBER_COLUMNS],
                              .first = first};
    return t;
}

/* ---- Turns ---- */

block_turns block_tile_turns(const block_tile *t, unsigned most, unsigned width, bool may_exceed)
{
    const unsigned turn = t->threads * width;
    return most > turn ? BLOCK_TURNS_MANY : most == turn && may_exceed ? BLOCK_TURNS_ALL : BLOCK_TURNS_ONE;
}

ptx_val block_tile_for(ptx_builder *b, const block_tile *t, block_turns turns, ptx_val first, ptx_val end,
                       unsigned width)
{
    if (turns == BLOCK_TURNS_MANY)
        return ptx_for(b, first, end, (int)(t->threads * width));
    if (turns == BLOCK_TURNS_ONE)
        ptx_if(b, ptx_setp(b, PTX_LT, first, end));
    return first;
}

void block_tile_end_for(ptx_builder *b, block_turns turns)
{
    if (turns == BLOCK_TURNS_MANY)
        ptx_end_for(b);
    else if (turns == BLOCK_TURNS_ONE)
        ptx_end_if(b);
}

static unsigned tile_bytes(const block_layout *layout)
{
    return BLOCK_TILE / layout->elements * layout->bytes;
}

/* ---- Elements ---- */

static ptx_val finite(ptx_builder *b, ptx_val x)
{
    const float largest = element_largest(QDNN_DATA_F32);
    return ptx_clamp(b, nan_to_zero(b, x), ptx_f32(b, -largest), ptx_f32(b, largest));
}

/* Loads past the end of the tensor are moved to its last elements. */
void block_tile_elements(ptx_builder *b, const block_tile *t, ptx_val first, unsigned stride, unsigned count,
                         ptx_val *x)
{
    const unsigned bytes = element_bytes(t->data), vector = vector_elements(t->data);
    ptx_val last = ptx_sub(b, t->elements, (int)vector), places[BLOCK_ELEMENTS_MAX],
            loaded[BLOCK_ELEMENTS_MAX];
    for (unsigned i = 0; i < count; i++)
        x[i] = ptx_var_of(b, PTX_F32);
    for (unsigned i = 0; i < count; i += vector) {
        ptx_val element = i ? ptx_add(b, first, (int)(i / vector * stride)) : first;
        places[i] = ptx_at(b, t->plain, ptx_min(b, element, last), bytes);
    }
    ptx_uniform(b);
    ptx_if(b, t->is_aligned);
    for (unsigned i = 0; i < count; i += vector)
        emit_load_vector(b, t->data, places[i], 0, &loaded[i]);
    for (unsigned i = 0; i < count; i++)
        ptx_assign(b, x[i], loaded[i]);
    ptx_else(b);
    for (unsigned i = 0; i < count; i++)
        ptx_assign(b, x[i], emit_load(b, t->data, places[i - i % vector], (int)(i % vector * bytes)));
    ptx_end_if(b);
    for (unsigned i = 0; i < count; i++)
        x[i] = finite(b, x[i]);
}

/* ---- Tiles that are incomplete or not aligned ---- */

typedef void copy_fn(ptx_builder *b, ptx_val global, ptx_val shared, unsigned width);

static void copy_in(ptx_builder *b, ptx_val global, ptx_val shared, unsigned width)
{
    ptx_val words[4];
    if (width == LOAD_BYTES) {
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, global, 0, words, 4);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, shared, 0, words, 4);
        return;
    }
    ptx_type type = width == 4 ? PTX_U32 : PTX_U8;
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, type, shared, 0, ptx_ld_global_nc(b, type, global, 0));
}

static void copy_out(ptx_builder *b, ptx_val global, ptx_val shared, unsigned width)
{
    ptx_val words[4];
    if (width == LOAD_BYTES) {
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, shared, 0, words, 4);
        ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, global, 0, words, 4);
        return;
    }
    ptx_type type = width == 4 ? PTX_U32 : PTX_U8;
    ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, type, global, 0, ptx_ld_shared(b, type, shared, 0));
}

/* Copies as much as possible in units of 16 bytes, then of 4, then single bytes; widths that exceed the
 * alignment of the address are skipped. */
static void copy_part(ptx_builder *b, const block_tile *t, copy_fn *copy)
{
    static const unsigned widths[] = {LOAD_BYTES, 4, 1};
    ptx_val total = ptx_mul(b, t->count, (int)t->layout->bytes), done = ptx_var(b, ptx_u32(b, 0));
    for (int i = 0; i < 3; i++) {
        ptx_val end = ptx_and(b, total, ptx_u32(b, -widths[i]));
        if (widths[i] > 1)
            end = ptx_selp(b, end, done, emit_aligned(b, t->blocks, widths[i]));
        ptx_val first = ptx_mad(b, ptx_tid_x(b), (int)widths[i], done);
        block_turns turns = block_tile_turns(t, tile_bytes(t->layout), widths[i], false);
        ptx_val at = block_tile_for(b, t, turns, first, end, widths[i]);
        ptx_val global = ptx_at(b, t->blocks, at, 1);
        copy(b, global, ptx_add(b, t->stage.shared, at), widths[i]);
        block_tile_end_for(b, turns);
        ptx_assign(b, done, end);
    }
}

/* ---- Rows in a list ---- */

/* Locates units in rows of `size` units each, starting with unit `first` in row `row`. Since a tile is short,
 * the rest of that row and the size of the others can be limited to 32 bits. */
typedef struct row_walk {
    ptx_val row, offset; /* u64: those of the first unit */
    ptx_val left, size;  /* u32 */
} row_walk;

enum { WALK_MAX = 1 << 20 }; /* more than the units in a tile */

static row_walk row_walk_of(ptx_builder *b, ptx_val first, ptx_val size)
{
    ptx_val row = ptx_div(b, first, size), offset = ptx_sub(b, first, ptx_mul(b, row, size));
    ptx_val most = ptx_u64(b, WALK_MAX), left = ptx_min(b, ptx_sub(b, size, offset), most);
    return (row_walk){.row = row,
                      .offset = offset,
                      .left = ptx_cvt(b, PTX_U32, left),
                      .size = ptx_cvt(b, PTX_U32, ptx_min(b, size, most))};
}

/* The row of a unit of the tile, and its offset in the row (both u64). */
static ptx_val row_of_unit(ptx_builder *b, const row_walk *w, ptx_val unit, ptx_val *offset)
{
    ptx_val in_first = ptx_setp(b, PTX_LT, unit, w->left);
    ptx_val rest = ptx_sub(b, unit, w->left), more = ptx_div(b, rest, w->size);
    ptx_val after = ptx_add(b, ptx_add(b, w->row, ptx_cvt(b, PTX_U64, more)), 1);
    ptx_val over = ptx_sub(b, rest, ptx_mul(b, more, w->size)), wide = ptx_cvt(b, PTX_U64, unit);
    *offset = ptx_selp(b, ptx_add(b, w->offset, wide), ptx_cvt(b, PTX_U64, over), in_first);
    return ptx_selp(b, w->row, after, in_first);
}

/* The row number in the table; 0 if there is no such row. */
static ptx_val table_row(ptx_builder *b, const block_rows *r, ptx_val row, ptx_val *known)
{
    ptx_val number = emit_row_number(b, r->type, r->index, row, (ptx_val){0});
    *known = ptx_setp(b, PTX_LT, number, r->table_rows);
    return ptx_selp(b, number, ptx_u64(b, 0), *known);
}

ptx_val block_tile_knows(ptx_builder *b, const block_tile *t, ptx_val element)
{
    ptx_val known = {0}, offset;
    if (t->rows.index.kind == PTX_NOTHING)
        return known;
    row_walk w = row_walk_of(b, t->rows.first, t->rows.columns);
    table_row(b, &t->rows, row_of_unit(b, &w, element, &offset), &known);
    return known;
}

/* In units that divide the row size and match the alignment of the table. Blocks of a row that does not exist stay where they
 * are; what is loaded in their place is not used. */
static void move_units(ptx_builder *b, const block_tile *t, const row_walk *w, ptx_val row_bytes,
                       unsigned width)
{
    ptx_val total = ptx_mul(b, t->count, (int)t->layout->bytes), known, offset;
    block_turns turns = block_tile_turns(t, tile_bytes(t->layout), width, false);
    ptx_val at = block_tile_for(b, t, turns, ptx_mul(b, ptx_tid_x(b), (int)width), total, width);
    ptx_val row = table_row(b, &t->rows, row_of_unit(b, w, at, &offset), &known);
    ptx_val global = ptx_add(b, ptx_mad(b, row, row_bytes, t->rows.table), offset);
    if (t->packs) {
        ptx_if(b, known);
        copy_out(b, global, ptx_add(b, t->stage.shared, at), width);
        ptx_end_if(b);
    } else {
        copy_in(b, global, ptx_add(b, t->stage.shared, at), width);
    }
    block_tile_end_for(b, turns);
}

/* Between the table and shared memory. */
static void move_rows(ptx_builder *b, const block_tile *t)
{
    const unsigned log = ceil_log2(t->layout->elements);
    ptx_val size = ptx_u64(b, t->layout->bytes);
    ptx_val row_bytes = ptx_mul(b, ptx_shr(b, t->rows.columns, log), size);
    row_walk w = row_walk_of(b, ptx_mul(b, ptx_shr(b, t->rows.first, log), size), row_bytes);
    ptx_val both = ptx_or(b, t->rows.table, row_bytes);
    ptx_uniform(b);
    ptx_if(b, emit_aligned(b, both, LOAD_BYTES));
    move_units(b, t, &w, row_bytes, LOAD_BYTES);
    ptx_else(b);
    ptx_uniform(b);
    ptx_if(b, emit_aligned(b, both, 4));
    move_units(b, t, &w, row_bytes, 4);
    ptx_else(b);
    move_units(b, t, &w, row_bytes, 1);
    ptx_end_if(b);
    ptx_end_if(b);
}

void block_tile_load(ptx_builder *b, const block_tile *t)
{
    if (t->rows.index.kind != PTX_NOTHING) {
        move_rows(b, t);
        ptx_syncthreads(b);
        return;
    }
    ptx_uniform(b);
    ptx_if(b, t->whole);
    stage_load(b, &t->stage, t->blocks);
    ptx_else(b);
    copy_part(b, t, copy_in);
    ptx_syncthreads(b);
    ptx_end_if(b);
}

void block_tile_store(ptx_builder *b, const block_tile *t)
{
    if (t->rows.index.kind != PTX_NOTHING) {
        ptx_syncthreads(b);
        move_rows(b, t);
        return;
    }
    ptx_uniform(b);
    ptx_if(b, t->whole);
    stage_store(b, &t->stage, t->blocks);
    ptx_else(b);
    ptx_syncthreads(b);
    copy_part(b, t, copy_out);
    ptx_end_if(b);
}

/* ---- Runs ---- */

block_step block_tile_runs(ptx_builder *b, const block_tile *t, unsigned kind, unsigned bytes, unsigned share)
{
    const block_layout *layout = t->layout;
    const block_section *section = &layout->sections[kind];
    const unsigned of_block = section->count * section->span / bytes * share;
    block_step step = {.turns = block_tile_turns(t, BLOCK_TILE / layout->elements * of_block, 1, t->packs)};
    ptx_val end = step.turns == BLOCK_TURNS_ALL ? t->count : ptx_shl(b, t->count, ceil_log2(of_block));
    ptx_val at = block_tile_for(b, t, step.turns, ptx_tid_x(b), end, 1);
    ptx_val block = ptx_shr(b, at, ceil_log2(of_block)), run = ptx_and(b, at, (int)of_block - 1);
    if (share > 1) {
        step.part = ptx_and(b, run, (int)share - 1);
        run = ptx_shr(b, run, ceil_log2(share));
    }
    step.place = block_place_of_run(b, layout, kind, run, bytes);
    step.place.space = PTX_SHARED;
    step.place.align = block_align(layout);
    step.place.block = ptx_mad(b, block, (int)layout->bytes, t->stage.shared);
    ptx_val element = block_place_element(b, layout, &step.place);
    step.element = ptx_mad(b, block, (int)layout->elements, element);
    return step;
}
