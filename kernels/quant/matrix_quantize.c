/* The quantize kernel for matrices: rows of elements become codes in any layout. */
#include "kernels/quant/matrix.h"

enum { BATCH = 16 /* elements that a lane loads before it computes */ };

typedef struct quantizer {
    matrix m;
    ptx_val x;
    matrix_groups groups;
} quantizer;

static void begin_tile(ptx_builder *b, void *user, ptx_val row, ptx_val column)
{
    quantizer *z = user;
    group_stage_fill(b, &z->m, &z->groups.stage, row, column);
}

static void begin_band(ptx_builder *b, void *user, const patch *p)
{
    quantizer *z = user;
    groups_for_band(b, &z->m, &z->groups, p);
}

static void quantize_row(ptx_builder *b, quantizer *z, patch *p, unsigned i, const ptx_val *x)
{
    groups_for_row(b, &z->m, &z->groups, p, i);
    for (unsigned k = 0; k < p->width; k++)
        patch_put(b, &z->m, p, i, k, element_encode(b, &z->m.q, &z->groups.each[k], x[k]));
    patch_row_done(b, &z->m, p, i);
}

static void quantize_patch(ptx_builder *b, void *user, patch *p)
{
    quantizer *z = user;
    qdnnDataType_t data = z->m.q.coding.spec->data;
    const unsigned batch = BATCH / p->width;
    ptx_val x[BATCH];
    groups_for_patch(b, &z->m, &z->groups, p);
    for (unsigned i = 0; i < p->rows; i += batch) {
        unsigned rows = p->rows - i < batch ? p->rows - i : batch;
        for (unsigned k = 0; k < rows; k++)
            emit_load_joint(b, data, patch_data(b, data, z->x, z->m.columns, p, i + k), 0, p->width,
                            &x[k * p->width]);
        for (unsigned k = 0; k < rows; k++)
            emit_joint_exchange(b, data, &x[k * p->width]);
        for (unsigned k = 0; k < rows; k++)
            quantize_row(b, z, p, i + k, &x[k * p->width]);
    }
    patch_store(b, &z->m, p);
}

static ptx_val code_of(ptx_builder *b, const void *user, ptx_val row, ptx_val column)
{
    const quantizer *z = user;
    qdnnDataType_t data = z->m.q.coding.spec->data;
    group_values group = matrix_group(b, &z->m, row, column);
    ptx_val at = ptx_at(b, z->x, ptx_mad(b, row, z->m.columns, column), element_bytes(data));
    return element_encode(b, &z->m.q, &group, emit_load(b, data, at, 0));
}

static void quantize_elements(ptx_builder *b, void *user, const matrix_part *part)
{
    const quantizer *z = user;
    matrix_write(b, &z->m, part, code_of, z);
}

void emit_matrix_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const group_stage stage = group_stage_of(&(coding){row->format, spec});
    matrix_directives(b);
    kernel_args args = kernel_declare(b, row, spec);
    quantized q = quantized_begin(b, row, spec, &args);
    quantizer z = {.m = matrix_begin(b, &q, &args), .x = args.operand[QDNN_OPERAND_X]};
    z.groups = matrix_groups_of(&z.m);
    z.groups.stage = stage;
    group_stage_begin(b, &q.coding, &z.groups.stage);
    ptx_val aligned =
        emit_aligned_and(b, emit_aligned(b, z.x, LOAD_BYTES), q.codes, patch_codes_align(&q.coding));
    matrix_walk w = matrix_walk_of(&z.m, group_stage_serves(b, &z.m, &stage, aligned));
    w.stage = patch_stage(b, &q.coding, stage.warps.down * stage.warps.across);
    w.user = &z;
    w.tile = stage.is_used ? begin_tile : NULL;
    w.warps = stage.warps;
    w.rows_in_turns = stage.is_table;
    w.begin = begin_band;
    w.patch = quantize_patch;
    w.elements = quantize_elements;
    if (!stage.is_used && matrix_groups_are_many(spec, w.width))
        matrix_walk_by_rows(&w);
    matrix_walk_run(b, &w);
}
