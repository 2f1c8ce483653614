/* The tree of a sum. */
#include "kernels/gemm/lanes.h"

ptx_val lanes_join_warp(ptx_builder *b, ptx_val partial)
{
    for (unsigned distance = 16; distance; distance /= 2)
        partial = ptx_add(b, partial, ptx_shfl_bfly(b, partial, (int)distance));
    return partial;
}

/* Joins the lanes of one thread. */
static ptx_val join_lanes(ptx_builder *b, ptx_val *part, unsigned lanes)
{
    for (unsigned half = lanes / 2; half; half /= 2)
        for (unsigned k = 0; k < half; k++)
            part[k] = ptx_add(b, part[k], part[k + half]);
    return part[0];
}

ptx_val lanes_join_memory(ptx_builder *b, ptx_val at, unsigned offset, unsigned pitch)
{
    ptx_val part[SUM_LANES];
    for (unsigned i = 0; i < SUM_LANES; i++)
        part[i] = ptx_ld_shared(b, PTX_F32, at, (int)(offset + i * pitch));
    return join_lanes(b, part, SUM_LANES);
}

/* ---- Teams ---- */

/* Of two values, a thread keeps one, gives the other to its partner, and adds what it gets. */
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
                l->parts[i][j][k] = exchange(b, l->parts[i][j][k],
                                             by_rows ? l->parts[i][j + rows][k] : l->parts[i + outputs][j][k],
                                             upper, distance);
    ptx_val *first = by_rows ? &l->first_row : &l->first_output;
    ptx_val half = ptx_selp(b, ptx_u32(b, by_rows ? rows : outputs), ptx_u32(b, 0), upper);
    *first = ptx_add(b, *first, half);
    l->outputs = outputs;
    l->rows = rows;
}

void lanes_join_team(ptx_builder *b, lanes_share *l, ptx_val thread)
{
    unsigned same = 0; /* bits of a thread's number that do not affect which sums it has */
    l->first_output = l->first_row = ptx_u32(b, 0);
    for (unsigned distance = l->threads / 2; distance; distance /= 2) {
        if (l->rows == 1 && (l->outputs == 1 || l->keeps_outputs)) {
            join_all(b, l, distance);
            same |= distance;
        } else {
            join_and_share(b, l, distance, ptx_setp(b, PTX_NE, ptx_and(b, thread, (int)distance), 0));
        }
    }
    l->holds = ptx_setp(b, PTX_EQ, ptx_and(b, thread, (int)same), 0);
    for (unsigned i = 0; i < l->outputs; i++)
        for (unsigned j = 0; j < l->rows; j++)
            l->sums[i][j] = join_lanes(b, l->parts[i][j], l->lanes);
}

/* ---- Maps ---- */

/* What a bit of a lane's number is: a bit of the thread's number in its team, or of the chunk's, the latter flipped where
 * a bit of the thread's number is set (0: never). */
typedef struct lane_bit {
    enum { LANE_OF_THREAD, LANE_OF_CHUNK } of; /* inputs of the map */
    unsigned bit;                              /* which, as a power of two */
    unsigned flip;                             /* of the thread: a power of two */
} lane_bit;

static lane_bit bit_of(const map *map, unsigned i)
{
    lane_bit found = {0};
    for (int j = 0; j < map->count; j++) {
        const map_digit *d = &map->digit[j];
        if (1u << i < d->step || 1u << i >= d->step * d->size)
            continue;
        const unsigned bit = (1u << i) / d->step * d->below;
        if (d->flips)
            found.flip = bit;
        else
            found.of = d->from, found.bit = bit;
    }
    return found;
}

static unsigned log2_of(unsigned power)
{
    unsigned n = 0;
    while (power >> (n + 1))
        n++;
    return n;
}

/* Bit `from` (a power of two) of x, moved to place `to`. */
static ptx_val moved_bit(ptx_builder *b, ptx_val x, unsigned from, unsigned to)
{
    const unsigned at = log2_of(from);
    ptx_val bit = ptx_and(b, x, (int)from);
    return to > at ? ptx_shl(b, bit, to - at) : to < at ? ptx_shr(b, bit, at - to) : bit;
}

ptx_val lanes_lane(ptx_builder *b, const map *map, ptx_val thread, ptx_val chunk)
{
    ptx_val lane = ptx_u32(b, 0);
    for (unsigned i = 0; i < LANE_BITS; i++) {
        const lane_bit bit = bit_of(map, i);
        lane = ptx_xor(b, lane, moved_bit(b, bit.of == LANE_OF_THREAD ? thread : chunk, bit.bit, i));
        if (bit.flip)
            lane = ptx_xor(b, lane, moved_bit(b, thread, bit.flip, i));
    }
    return lane;
}

/* ---- The tree ---- */

typedef struct joining {
    ptx_val thread, *sums;
    unsigned count, accumulators;
    /* Bits of accumulators that are already joined: sums stay at the number without them. */
    unsigned merged;
} joining;

/* Threads with the bit take the upper half of the sums, the others the lower half. */
static void share_out(ptx_builder *b, joining *j, unsigned bit)
{
    ptx_val upper = ptx_setp(b, PTX_NE, ptx_and(b, j->thread, (int)bit), 0);
    const unsigned half = j->count / 2 * j->accumulators;
    j->count /= 2;
    for (unsigned i = 0; i < half; i++) {
        if (i % j->accumulators & j->merged)
            continue;
        j->sums[i] = exchange(b, j->sums[i], j->sums[half + i], upper, bit);
    }
}

static void join_bit(ptx_builder *b, joining *j, const lane_bit *bit)
{
    if (bit->of == LANE_OF_CHUNK)
        j->merged |= bit->bit;
    for (unsigned i = 0; i < j->count * j->accumulators; i++)
        if (!(i % j->accumulators & j->merged))
            j->sums[i] = ptx_add(b, j->sums[i],
                                 bit->of == LANE_OF_CHUNK ? j->sums[i + bit->bit]
                                                          : ptx_shfl_bfly(b, j->sums[i], (int)bit->bit));
}

lanes_joined lanes_join(ptx_builder *b, const map *map, ptx_val thread, ptx_val *sums, unsigned count,
                        unsigned accumulators)
{
    joining j = {thread, sums, count, accumulators, 0};
    ptx_val first = ptx_u32(b, 0);
    unsigned same = 0; /* bits of a thread's number that do not affect which sums it has */
    for (unsigned i = LANE_BITS; i-- > 0;) {
        const lane_bit bit = bit_of(map, i);
        if (bit.of == LANE_OF_THREAD && j.count > 1) {
            share_out(b, &j, bit.bit);
            first = ptx_or(b, first, moved_bit(b, thread, bit.bit, log2_of(j.count)));
            continue;
        }
        if (bit.of == LANE_OF_THREAD)
            same |= bit.bit;
        join_bit(b, &j, &bit);
    }
    for (unsigned i = 0; i < j.count; i++)
        sums[i] = sums[i * accumulators];
    lanes_joined out = {.first = first, .count = j.count};
    if (same)
        out.is_first = ptx_setp(b, PTX_EQ, ptx_and(b, thread, (int)same), 0);
    return out;
}
