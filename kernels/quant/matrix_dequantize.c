/* The dequantize kernel of matrices: codes in any layout become rows of elements. */
#include "kernels/quant/matrix.h"

typedef struct dequantizer {
    matrix m;
    ptx_val y;
    matrix_groups groups;
} dequantizer;

static void begin_band(ptx_builder *b, void *user, const patch *p)
{
    dequantizer *d = user;
    groups_for_band(b, &d->m, &d->groups, p);
}

/* All loads first: they wait for memory together. */
static void dequantize_patch(ptx_builder *b, void *user, patch *p)
{
    dequantizer *d = user;
    const quantized *q = &d->m.q;
    qdnnDataType_t data = q->coding.spec->data;
    ptx_val y[CHUNK_MAX];
    patch_load(b, &d->m, p);
    groups_for_patch(b, &d->m, &d->groups, p);
    patch_arrive(b, &d->m, p);
    for (unsigned i = 0; i < p->rows; i++) {
        groups_for_row(b, &d->m, &d->groups, p, i);
        patch_units(b, &d->m, p, i, y);
        for (unsigned k = 0; k < p->width; k++)
            y[k] = group_decode(b, &q->coding, &q->side, &d->groups.each[k], y[k]);
        ptx_if(b, p->active);
        emit_store_run(b, data, patch_data(b, data, d->y, d->m.columns, p, i), 0, p->width, y);
        ptx_end_if(b);
    }
}

static void dequantize_elements(ptx_builder *b, void *user, const matrix_part *part)
{
    const dequantizer *d = user;
    qdnnDataType_t data = d->m.q.coding.spec->data;
    ptx_val lane = ptx_cvt(b, PTX_U64, ptx_laneid(b));
    ptx_val row = ptx_for(b, part->row, part->row_end, ptx_u64(b, 1));
    ptx_val column = ptx_for(b, ptx_add(b, part->column, lane), part->column_end, ptx_u64(b, WARP));
    group_values group = matrix_group(b, &d->m, row, column);
    ptx_val y = element_decode(b, &d->m.q, &group, matrix_code(b, &d->m, row, column));
    emit_store(b, data, ptx_at(b, d->y, ptx_mad(b, row, d->m.columns, column), element_bytes(data)), 0, y);
    ptx_end_for(b);
    ptx_end_for(b);
}

void emit_matrix_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_reqntid(b, MATRIX_BLOCK, 1, 1);
    ptx_minnctapersm(b, 4); /* up to 128 registers */
    kernel_args args = kernel_declare(b, row, spec);
    quantized q = quantized_begin(b, row, spec, &args);
    quantized_open(b, &q);
    dequantizer d = {.m = matrix_begin(b, &q, &args), .y = args.operand[QDNN_OPERAND_Y]};
    d.groups = matrix_groups_of(&d.m);
    ptx_val aligned =
        ptx_and(b, emit_aligned(b, d.y, LOAD_BYTES), emit_aligned(b, q.codes, patch_codes_align(&q.coding)));
    matrix_walk w = matrix_walk_of(&d.m, matrix_groups_aligned(b, &d.m, patch_width(&q.coding), aligned));
    w.user = &d;
    w.begin = begin_band;
    w.patch = dequantize_patch;
    w.elements = dequantize_elements;
    matrix_walk_run(b, &w);
}
