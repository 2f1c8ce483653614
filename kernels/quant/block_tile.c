/* Tiles of blocks: what quantize and dequantize share. */
#include "kernels/quant/block_tile.h"

#include "kernels/quant/quant.h"

kernel_geometry block_geometry(const kernel_row *row)
{
    bool to_codes = kernel_operation_of(row) == KERNEL_QUANTIZE;
    return (kernel_geometry){.block = to_codes ? BLOCK_QUANTIZE_THREADS : BLOCK_DEQUANTIZE_THREADS,
                             .elements_per_block = BLOCK_TILE};
}

block_tile block_tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, unsigned threads)
{
    ptx_reqntid(b, threads, 1, 1);
    kernel_args args = kernel_declare(b, row, spec);
    bool to_codes = kernel_operation_of(row) == KERNEL_QUANTIZE;
    block_tile t = {.layout = block_layout_of(row->format), .data = spec->data, .threads = threads};
    const unsigned bytes = BLOCK_TILE / t.layout->elements * t.layout->bytes;
    ptx_val n = args.number[NUMBER_N], index = ptx_ctaid_x(b);
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
    return t;
}

/* ---- Tiles that are cut short, or not aligned ---- */

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

/* By 16 bytes as far as they go, then by 4, then by single ones; what the address is not aligned to is left out. */
static void copy_part(ptx_builder *b, const block_tile *t, copy_fn *copy)
{
    static const unsigned widths[] = {LOAD_BYTES, 4, 1};
    ptx_val total = ptx_mul(b, t->count, (int)t->layout->bytes), done = ptx_var(b, ptx_u32(b, 0));
    for (int i = 0; i < 3; i++) {
        ptx_val end = ptx_and(b, total, ptx_u32(b, -widths[i]));
        if (widths[i] > 1)
            end = ptx_selp(b, end, done, emit_aligned(b, t->blocks, widths[i]));
        ptx_val first = ptx_mad(b, ptx_tid_x(b), (int)widths[i], done);
        ptx_val at = ptx_for(b, first, end, (int)(t->threads * widths[i]));
        ptx_val global = ptx_at(b, t->blocks, at, 1);
        copy(b, global, ptx_add(b, t->stage.shared, at), widths[i]);
        ptx_end_for(b);
        ptx_assign(b, done, end);
    }
}

void block_tile_load(ptx_builder *b, const block_tile *t)
{
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
    ptx_val end = ptx_shl(b, t->count, ceil_log2(of_block));
    ptx_val at = ptx_for(b, ptx_tid_x(b), end, (int)t->threads);
    ptx_val block = ptx_shr(b, at, ceil_log2(of_block)), run = ptx_and(b, at, (int)of_block - 1);
    block_step step = {0};
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
