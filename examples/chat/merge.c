/* Pieces of a word become tokens: of all neighbouring pairs that may be merged, the one with the lowest rank is, until none is
 * left. */
#include "text.h"

#include <math.h>
#include <stdlib.h>

/* What merging piece i with the next one would give. */
typedef struct offer {
    double rank; /* INFINITY: it may not be merged */
    int32_t id;
} offer;

static offer offer_of(const piece *pieces, size_t count, size_t i, merge_rank rank, const void *context)
{
    offer o = {INFINITY, -1};
    if (i + 1 >= count || !rank(context, &pieces[i], &pieces[i + 1], &o.rank, &o.id))
        o.rank = INFINITY;
    return o;
}

static size_t best_of(const offer *offers, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (offers[i].rank < offers[best].rank)
            best = i;
    return best;
}

size_t merge_pieces(piece *pieces, size_t count, merge_rank rank, const void *context)
{
    if (count < 2)
        return count;
    offer *offers = take(count * sizeof *offers);
    for (size_t i = 0; i < count; i++)
        offers[i] = offer_of(pieces, count, i, rank, context);
    for (;;) {
        size_t at = best_of(offers, count);
        if (offers[at].rank == INFINITY)
            break;
        pieces[at].size += pieces[at + 1].size;
        pieces[at].id = offers[at].id;
        count--;
        for (size_t i = at + 1; i < count; i++) {
            pieces[i] = pieces[i + 1];
            offers[i] = offers[i + 1];
        }
        offers[at] = offer_of(pieces, count, at, rank, context);
        if (at > 0)
            offers[at - 1] = offer_of(pieces, count, at - 1, rank, context);
    }
    free(offers);
    return count;
}
