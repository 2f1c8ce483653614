/* Blocks of a multiple of 16 bytes, a header and codes (Q4_K): each thread loads its part of them straight
 * from memory, some rounds ahead. */
#include "kernels/gemm/blocks.h"

enum { HEADER, CODES, FIELDS };

bool blocks_are_direct(const block_layout *layout)
{
    return layout->bytes % LOAD_BYTES == 0 && !layout->at.high;
}

/* With more than one row of x, there are registers for two only. */
unsigned blocks_slots(const kernel_spec *spec)
{
    return spec->product.tile_rows == 1 ? BLOCKS_SLOTS_MAX : 2;
}

/* Headers have half as many slots: they lie in sectors that were loaded with the codes of their blocks. */
static unsigned slots_of(const blocks *s, unsigned field)
{
    const unsigned slots = blocks_slots(s->spec);
    return field == HEADER && slots > 2 ? slots / 2 : slots;
}

/* Words of a thread's share of a field. */
static unsigned words_of(const blocks *s, unsigned field)
{
    return (field == HEADER ? LOAD_BYTES : s->share.bytes) / 4;
}

typedef struct direct {
    unsigned turn; /* rounds per turn of the loop: as many as there are slots */
    ptx_val at[BLOCKS_OUTPUTS_MAX]
              [FIELDS]; /* variables u64: where this thread's share of the turn's first round lies */
    ptx_val left; /* variable s32: the team's size times the remaining rounds, minus the thread's number */
    ptx_val words[FIELDS][BLOCKS_SLOTS_MAX][BLOCKS_OUTPUTS_MAX][4]; /* variables */
} direct;

/* Loads the first rounds; where the row has fewer, the first one again, which is not used. */
static void direct_begin_slot(ptx_builder *b, const blocks *s, direct *d, unsigned field, unsigned slot)
{
    ptx_val more = ptx_u64(b, 0);
    if (slot)
        more = ptx_selp(b, ptx_u64(b, slot * s->share.layout->bytes), more,
                        ptx_setp(b, PTX_GT, s->rounds, (int)slot));
    for (unsigned o = 0; o < s->outputs; o++) {
        ptx_val words[4], at = d->at[o][field];
        emit_load_words(b, slot ? ptx_add(b, at, more) : at, 0, words_of(s, field), words);
        for (unsigned k = 0; k < words_of(s, field); k++)
            d->words[field][slot][o][k] = ptx_var(b, words[k]);
    }
}

static direct direct_begin(ptx_builder *b, const blocks *s)
{
    const block_layout *layout = s->share.layout;
    direct d = {.turn = blocks_slots(s->spec)};
    ptx_val run = s->share.strands == 1 ? ptx_shr(b, s->thread, 1) : s->thread;
    ptx_val codes = ptx_mad(b, run, (int)s->share.bytes, ptx_u32(b, layout->at.codes));
    for (unsigned o = 0; o < s->outputs; o++) {
        d.at[o][HEADER] = ptx_var(b, s->rows_at[o]);
        d.at[o][CODES] = ptx_var(b, ptx_at(b, s->rows_at[o], codes, 1));
    }
    for (unsigned f = 0; f < FIELDS; f++)
        for (unsigned i = 0; i < slots_of(s, f); i++)
            direct_begin_slot(b, s, &d, f, i);
    d.left = ptx_var(
        b, ptx_as(b, PTX_S32, ptx_sub(b, ptx_shl(b, s->rounds, ceil_log2(s->share.team)), s->thread)));
    return d;
}

/* Whether there is a round that far ahead. All threads agree on it; but comparing a number that depends on
 * the thread is one instruction, whereas a uniform one is compared by uniform instructions, whose results
 * have to be moved over. */
static ptx_val has_round(ptx_builder *b, const blocks *s, const direct *d, unsigned ahead)
{
    return ptx_setp(b, PTX_GT, d->left, (int)(ahead * s->share.team));
}

/* Refills the slots of a round's fields with a later round (as far ahead as the field has slots), if that
 * exists. */
static void direct_fetch(ptx_builder *b, const blocks *s, const direct *d, unsigned round)
{
    for (unsigned f = 0; f < FIELDS; f++) {
        const unsigned slots = slots_of(s, f), ahead = round + slots;
        ptx_val exists = has_round(b, s, d, ahead);
        for (unsigned o = 0; o < s->outputs; o++) {
            ptx_when(b, exists);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, d->at[o][f],
                            (int)(ahead * s->share.layout->bytes), d->words[f][round % slots][o],
                            (int)words_of(s, f));
        }
    }
}

static void direct_use(ptx_builder *b, const blocks *s, const direct *d, unsigned round, ptx_val x_at)
{
    block_values values[BLOCKS_OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round loaded = {0};
        block_run *run = &loaded.runs[0];
        run->layout = s->share.layout;
        for (unsigned k = 0; k < words_of(s, HEADER); k++)
            run->scales[k] = d->words[HEADER][round % slots_of(s, HEADER)][o][k];
        for (unsigned k = 0; k < words_of(s, CODES); k++)
            run->codes[k] = d->words[CODES][round % slots_of(s, CODES)][o][k];
        block_values_open(b, &s->reader, &loaded, BLOCK_CHEAP, &values[o]);
    }
    blocks_add_round(b, s, values, x_at, (int)(round * ROUND_BYTES));
}

/* Adds the rounds of a turn; `whole`: all of them exist. */
static void direct_turn(ptx_builder *b, const blocks *s, const direct *d, ptx_val x_at, bool whole)
{
    for (unsigned i = 0; i < d->turn; i++) {
        if (i && !whole) {
            ptx_uniform(b);
            ptx_if(b, has_round(b, s, d, i));
        }
        direct_use(b, s, d, i, x_at);
        direct_fetch(b, s, d, i);
    }
    for (unsigned i = 1; i < d->turn && !whole; i++)
        ptx_end_if(b);
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned f = 0; f < FIELDS; f++)
            ptx_assign(b, d->at[o][f], ptx_add(b, d->at[o][f], d->turn * s->share.layout->bytes));
    ptx_assign(b, d->left, ptx_sub(b, d->left, (int)(d->turn * s->share.team)));
    ptx_assign(b, x_at, ptx_add(b, x_at, d->turn * ROUND_BYTES));
}

/* Adds rounds [first, end) of a window, a few per turn of the loop; what is loaded ahead may belong to the
 * next window. All windows but the last have whole turns. With one output a round has few instructions: whole turns then have a
 * loop without branches of its own, in which ptxas can decode several rounds at once. */
static void direct_window(ptx_builder *b, const blocks *s, const direct *d, ptx_val first, ptx_val end)
{
    ptx_val x_at = ptx_var(b, s->x_mine);
    if (s->outputs == 1) {
        ptx_val rest = ptx_and(b, ptx_sub(b, end, first), (int)d->turn - 1);
        ptx_val whole = ptx_sub(b, end, rest);
        ptx_for(b, first, whole, d->turn);
        direct_turn(b, s, d, x_at, true);
        ptx_end_for(b);
        first = whole;
    }
    ptx_for(b, first, end, d->turn);
    direct_turn(b, s, d, x_at, false);
    ptx_end_for(b);
}

/* ---- The pass ---- */

static void direct_window_of(ptx_builder *b, const blocks *s, void *user, ptx_val first, ptx_val end)
{
    direct_window(b, s, user, first, end);
}

void blocks_direct_pass(ptx_builder *b, const blocks *s)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, s->rounds, 0));
    direct d = direct_begin(b, s);
    blocks_pass(b, s, BLOCK_CHEAP, direct_window_of, &d);
    ptx_end_if(b);
}
