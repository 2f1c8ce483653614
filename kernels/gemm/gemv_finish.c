/* The end of products of few rows: joins the lanes of each team, completes the sums and stores y. */
#include "kernels/gemm/gemv.h"

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/lanes.h"

ptx_val gemv_row(ptx_builder *b, const gemv *g, ptx_val row)
{
    if (!g->spec->product.grouped)
        return ptx_cvt(b, PTX_U64, row);
    ptx_val of_tile = ptx_sub(b, row, g->first_row), exists = ptx_setp(b, PTX_LT, row, g->m);
    return row_tile_row(b, &g->experts, ptx_cvt(b, PTX_U64, of_tile), exists);
}

static void store_sums(ptx_builder *b, const gemv *g, const lanes_share *l)
{
    const gemv_shape *s = &g->shape;
    const unsigned columns = g->spec->epilogue.gated ? l->outputs / 2 : l->outputs,
                   step = s->of_block / s->outputs;
    epilogue e = epilogue_begin(b, g->spec, &g->args);
    ptx_val output = ptx_mad(b, l->first_output, (int)step, g->output);
    ptx_val column = ptx_add(b, g->column, ptx_cvt(b, PTX_U64, output));
    ptx_val row = ptx_add(b, g->first_row, l->first_row);
    for (unsigned i = 0; i < columns; i++)
        for (unsigned j = 0; j < l->rows; j++) {
            ptx_val n = ptx_add(b, column, ptx_u64(b, i * step)), m = ptx_add(b, row, (int)j);
            ptx_val sums[2] = {row_tile_sum(b, &g->experts, l->sums[i][j])};
            sums[1] =
                g->spec->epilogue.gated ? row_tile_sum(b, &g->experts, l->sums[columns + i][j]) : sums[0];
            ptx_val exists = ptx_setp_and(b, PTX_LE, ptx_add(b, output, (int)(i * step)), g->last, l->holds);
            ptx_if(b, ptx_setp_and(b, PTX_LT, m, g->m, exists));
            epilogue_store(b, &e, gemv_row(b, g, m), n, sums, g->experts.expert);
            ptx_end_if(b);
        }
}

void gemv_finish(ptx_builder *b, const gemv *g)
{
    const gemv_shape *s = &g->shape;
    lanes_share l = {.outputs = s->outputs,
                     .rows = s->rows,
                     .lanes = s->chunks,
                     .threads = s->team,
                     .keeps_outputs = g->spec->epilogue.gated};
    for (unsigned i = 0; i < s->outputs; i++)
        for (unsigned j = 0; j < s->rows; j++)
            for (unsigned c = 0; c < gemv_sums_of(g); c++) {
                ptx_val two[2] = {g->sums[i][j][c]};
                if (g->in_pairs) {
                    ptx_unpack(b, PTX_F32, g->sums[i][j][c], two, 2);
                    l.parts[i][j][c + gemv_sums_of(g)] = two[1];
                }
                l.parts[i][j][c] = two[0];
            }
    lanes_join_team(b, &l, g->thread);
    store_sums(b, g, &l);
}
