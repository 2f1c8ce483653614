/* The tree of a sum. */
#include "kernels/gemm/lanes.h"

ptx_val lanes_join_warp(ptx_builder *b, ptx_val partial)
{
    for (unsigned distance = 16; distance; distance /= 2)
        partial = ptx_add(b, partial, ptx_shfl_bfly(b, partial, (int)distance));
    return partial;
}

/* ---- Teams ---- */

/* What a thread gives its partner, of two values one of which it keeps; what it gets is added to that. */
static ptx_val exchange(ptx_builder *b, ptx_val first, ptx_val second, ptx_val upper, unsigned distance)
{
    ptx_val keeps = ptx_selp(b, second, first, upper), gives = ptx_selp(b, first, second, upper);
    return ptx_add(b, keeps, ptx_shfl_bfly(b, gives, (int)distance));
}

static void join_all(ptx_builder *b, lanes_share *l, unsigned distance)
{
    for (unsigned i = 0; i < l->outputs; i++)
        for (unsigned j = 0; j < l->rows; j++)
            for (unsigned k = 0; k < l->lanes; k++)
                l->parts[i][j][k] =
                    ptx_add(b, l->parts[i][j][k], ptx_shfl_bfly(b, l->parts[i][j][k], (int)distance));
}

/* Halves the rows, or the outputs: the upper thread of a pair keeps the upper half. */
static void join_and_share(ptx_builder *b, lanes_share *l, unsigned distance, ptx_val upper)
{
    const bool by_rows = l->rows > 1;
    const unsigned outputs = by_rows ? l->outputs : l->outputs / 2, rows = by_rows ? l->rows / 2 : 1;
    for (unsigned i = 0; i < outputs; i++)
        for (unsigned j = 0; j < rows; j++)
            for (unsigned k = 0; k < l->lanes; k++)
                l->parts[i][j][k] =
                    exchange(b, l->parts[i][j][k],
                             by_rows ? l->parts[i][j + rows][k] : l->parts[i + outputs][j][k], upper, distance);
    ptx_val *first = by_rows ? &l->first_row : &l->first_output;
    ptx_val half = ptx_selp(b, ptx_u32(b, by_rows ? rows : outputs), ptx_u32(b, 0), upper);
    *first = ptx_add(b, *first, half);
    l->outputs = outputs;
    l->rows = rows;
}

/* The lanes of one thread. */
static ptx_val join_lanes(ptx_builder *b, ptx_val *part, unsigned lanes)
{
    for (unsigned half = lanes / 2; half; half /= 2)
        for (unsigned k = 0; k < half; k++)
            part[k] = ptx_add(b, part[k], part[k + half]);
    return part[0];
}

void lanes_join_team(ptx_builder *b, lanes_share *l, ptx_val thread)
{
    unsigned same = 0; /* bits of a thread's number by which it has no sums of its own */
    l->first_output = l->first_row = ptx_u32(b, 0);
    for (unsigned distance = l->threads / 2; distance; distance /= 2) {
        if (l->rows == 1 && (l->outputs == 1 || l->keeps_outputs)) {
            join_all(b, l, distance);
            same |= distance;
        } else {
            join_and_share(b, l, distance,
                           ptx_setp(b, PTX_NE, ptx_and(b, thread, (int)distance), 0));
        }
    }
    l->holds = ptx_setp(b, PTX_EQ, ptx_and(b, thread, (int)same), 0);
    for (unsigned i = 0; i < l->outputs; i++)
        for (unsigned j = 0; j < l->rows; j++)
            l->sums[i][j] = join_lanes(b, l->parts[i][j], l->lanes);
}
