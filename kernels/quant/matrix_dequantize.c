/* The dequantize kernel for matrices: codes in any layout become rows of elements. Handles all rows, or those
 * in a list, in the order of the list; a number that is not a valid row gives a row of NaN. */
#include "kernels/quant/matrix.h"

typedef struct dequantizer {
    matrix m;
    ptx_val y, row_index;  /* pointers; row_index is empty if there is no list */
    ptx_val rows;          /* u64: rows of y */
    ptx_val band, of_lane; /* with a list: first row of the band; u32: the row number in each lane */
    matrix_groups groups;
} dequantizer;

/* The row of the table that a row of the result is read from. */
typedef struct source {
    ptx_val row;   /* u64 */
    ptx_val known; /* predicate: the row exists; empty: it always does */
} source;

static source source_at(ptx_builder *b, const dequantizer *d, ptx_val number)
{
    ptx_val index = ptx_cvt(b, PTX_U64, number), known = ptx_setp(b, PTX_LT, index, d->m.rows);
    return (source){.row = ptx_selp(b, index, ptx_u64(b, 0), known), .known = known};
}

static source source_of(ptx_builder *b, const dequantizer *d, ptx_val row)
{
    if (d->row_index.kind == PTX_NOTHING)
        return (source){.row = row};
    return source_at(b, d, ptx_ld_global_nc(b, PTX_U32, ptx_at(b, d->row_index, row, 4), 0));
}

/* The same for a row of the band; all lanes take part. */
static source source_in_band(ptx_builder *b, const dequantizer *d, ptx_val row)
{
    if (d->row_index.kind == PTX_NOTHING)
        return (source){.row = row};
    ptx_val lane = ptx_cvt(b, PTX_U32, ptx_sub(b, row, d->band));
    return source_at(b, d, ptx_shfl_idx(b, d->of_lane, lane));
}

static ptx_val value_or_nan(ptx_builder *b, const source *s, ptx_val y)
{
    return s->known.kind == PTX_NOTHING ? y : ptx_selp(b, y, ptx_bits(b, PTX_F32, 0x7FFFFFFF), s->known);
}

static void begin_tile(ptx_builder *b, void *user, ptx_val row, ptx_val column)
{
    dequantizer *d = user;
    group_stage_fill(b, &d->m, &d->groups.stage, row, column);
}

static void begin_band(ptx_builder *b, void *user, const patch *p)
{
    dequantizer *d = user;
    d->band = p->row;
    if (d->row_index.kind != PTX_NOTHING) /* the stage has loaded it already: its tile is one band high */
        d->of_lane = d->groups.stage.is_used ? d->groups.stage.of_lane
                                             : row_list_of_band(b, d->row_index, d->rows, p->row);
    groups_for_band(b, &d->m, &d->groups, p);
}

/* Stores row i of a patch: decoded in pairs, or as f32. */
static void store_pairs(ptx_builder *b, const dequantizer *d, const source *s, const patch *in, unsigned i,
                        ptx_val address)
{
    const quantized *q = &d->m.q;
    ptx_val words[CHUNK_MAX / 2];
    for (unsigned k = 0; k < in->width; k += 2) {
        code_place at[2];
        for (unsigned e = 0; e < 2; e++)
            at[e].word = patch_word(b, &d->m, in, i, k + e, &at[e].position);
        words[k / 2] = pair_decode(b, q, q->coding.spec->data, &d->groups.pairs[k / 2], at[0], at[1]);
        if (s->known.kind != PTX_NOTHING)
            words[k / 2] = ptx_selp(b, words[k / 2], ptx_u32(b, 0x7FFF7FFF), s->known);
    }
    ptx_if(b, in->active);
    emit_store_words(b, address, 0, in->width / 2, words);
    ptx_end_if(b);
}

static void store_elements(ptx_builder *b, const dequantizer *d, const source *s, patch *in, unsigned i,
                           ptx_val address)
{
    const quantized *q = &d->m.q;
    ptx_val y[CHUNK_MAX];
    patch_units(b, &d->m, in, i, y);
    for (unsigned k = 0; k < in->width; k++)
        y[k] = value_or_nan(b, s, group_decode(b, &q->coding, &q->side, &d->groups.each[k], y[k]));
    emit_joint_exchange(b, q->coding.spec->data, y);
    ptx_if(b, in->active);
    emit_store_joint(b, q->coding.spec->data, address, 0, in->width, y);
    ptx_end_if(b);
}

/* All loads come first, so that their latencies overlap. */
static void dequantize_patch(ptx_builder *b, void *user, patch *p)
{
    dequantizer *d = user;
    qdnnDataType_t data = d->m.q.coding.spec->data;
    source s = source_in_band(b, d, p->row); /* with a list, a patch has only one row */
    d->groups.stage.list_row = p->row;
    patch in = *p;
    in.row = s.row;
    patch_load(b, &d->m, &in);
    groups_for_patch(b, &d->m, &d->groups, &in);
    patch_arrive(b, &d->m, &in);
    for (unsigned i = 0; i < p->rows; i++) {
        groups_for_row(b, &d->m, &d->groups, &in, i);
        ptx_val address = patch_data(b, data, d->y, d->m.columns, p, i);
        if (d->groups.in_pairs)
            store_pairs(b, d, &s, &in, i, address);
        else
            store_elements(b, d, &s, &in, i, address);
    }
}

static void dequantize_elements(ptx_builder *b, void *user, const matrix_part *part)
{
    const dequantizer *d = user;
    qdnnDataType_t data = d->m.q.coding.spec->data;
    ptx_val lane = ptx_cvt(b, PTX_U64, ptx_laneid(b));
    ptx_val row = ptx_for(b, part->row, part->row_end, ptx_u64(b, 1));
    source s = source_of(b, d, row);
    ptx_val column = ptx_for(b, ptx_add(b, part->column, lane), part->column_end, ptx_u64(b, WARP));
    group_values group = matrix_group(b, &d->m, s.row, column);
    ptx_val y = element_decode(b, &d->m.q, &group, matrix_code(b, &d->m, s.row, column));
    emit_store(b, data, ptx_at(b, d->y, ptx_mad(b, row, d->m.columns, column), element_bytes(data)), 0,
               value_or_nan(b, &s, y));
    ptx_end_for(b);
    ptx_end_for(b);
}

void emit_matrix_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const group_stage stage = group_stage_of(&(coding){row->format, spec});
    matrix_directives(b);
    kernel_args args = kernel_declare(b, row, spec);
    quantized q = quantized_begin(b, row, spec, &args);
    quantized_open(b, &q);
    dequantizer d = {.m = matrix_begin(b, &q, &args),
                     .y = args.operand[QDNN_OPERAND_Y],
                     .row_index = args.operand[QDNN_OPERAND_ROW_INDEX],
                     .rows = args.number[NUMBER_ROWS]};
    d.groups = matrix_groups_of(&d.m);
    d.groups.stage = stage;
    d.groups.stage.list = d.row_index;
    d.groups.stage.list_rows = d.rows;
    group_stage_begin(b, &q.coding, &d.groups.stage);
    d.groups.in_pairs = element_bytes(spec->data) == 2 && pair_is_short(b, &q.coding, spec->data);
    ptx_val aligned =
        emit_aligned_and(b, emit_aligned(b, d.y, LOAD_BYTES), q.codes, patch_codes_align(&q.coding));
    matrix_walk w = matrix_walk_of(&d.m, group_stage_serves(b, &d.m, &stage, aligned));
    w.user = &d;
    w.tile = stage.is_used ? begin_tile : NULL;
    w.warps = stage.warps;
    w.rows_in_turns = stage.is_table;
    w.begin = begin_band;
    w.patch = dequantize_patch;
    w.elements = dequantize_elements;
    w.rows = d.rows;
    const bool has_many = matrix_groups_are_many(spec, w.width) || patch_numbers_are_many(&q.coding);
    if (spec->row_index || (has_many && !stage.is_used))
        matrix_walk_by_rows(&w);
    matrix_walk_run(b, &w);
}
