/* Blocks of a multiple of 16 bytes, a header and codes (Q4_K), in a product: each thread loads its part of them from memory, some
 * rounds ahead. */
#include "kernels/gemm/blocks.h"

enum { FIELDS = 2, SLOT_WORDS = 4 * FIELDS };

bool blocks_are_direct(const block_layout *layout)
{
    return layout->bytes % LOAD_BYTES == 0 && !layout->at.high;
}

/* More rows of x leave registers for two. */
unsigned blocks_slots(const kernel_spec *spec)
{
    return spec->tile_rows == 1 ? BLOCKS_SLOTS_MAX : 2;
}

typedef struct direct {
    unsigned slots;
    ptx_val at[BLOCKS_OUTPUTS_MAX]
              [FIELDS]; /* addresses of header and codes of this thread in a row's first block */
    ptx_val more;       /* variable u64: bytes that all of them have moved on */
    ptx_val words[BLOCKS_SLOTS_MAX][BLOCKS_OUTPUTS_MAX][SLOT_WORDS]; /* variables */
} direct;

/* The first rounds; where there are fewer, the first one again, which is not used. */
static void direct_begin_slot(ptx_builder *b, const blocks *s, direct *d, unsigned slot)
{
    ptx_val more = ptx_u64(b, 0);
    if (slot)
        more = ptx_selp(b, ptx_u64(b, slot * s->share.layout->bytes), more,
                        ptx_setp(b, PTX_GT, s->rounds, (int)slot));
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned f = 0; f < FIELDS; f++) {
            ptx_val words[4];
            emit_load_words(b, slot ? ptx_add(b, d->at[o][f], more) : d->at[o][f], 0, 4, words);
            for (unsigned k = 0; k < 4; k++)
                d->words[slot][o][4 * f + k] = ptx_var(b, words[k]);
        }
}

static direct direct_begin(ptx_builder *b, const blocks *s)
{
    const block_layout *layout = s->share.layout;
    direct d = {.slots = blocks_slots(s->spec), .more = ptx_var(b, ptx_u64(b, 0))};
    ptx_val codes = ptx_add(b, ptx_shl(b, s->thread, 4), (int)layout->at.codes);
    for (unsigned o = 0; o < s->outputs; o++) {
        d.at[o][0] = s->rows_at[o];
        d.at[o][1] = ptx_at(b, s->rows_at[o], codes, 1);
    }
    for (unsigned i = 0; i < d.slots; i++)
        direct_begin_slot(b, s, &d, i);
    return d;
}

/* The round `ahead` of the pointers, where it exists. */
static void direct_fetch(ptx_builder *b, const blocks *s, const direct *d, unsigned slot, unsigned ahead,
                         ptx_val exists)
{
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned f = 0; f < FIELDS; f++) {
            ptx_val at = ptx_add(b, d->at[o][f], d->more);
            ptx_when(b, exists);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, at, (int)(ahead * s->share.layout->bytes),
                            &d->words[slot][o][4 * f], 4);
        }
}

static void direct_use(ptx_builder *b, const blocks *s, const direct *d, unsigned slot, ptx_val x_at,
                       int x_more)
{
    block_values values[BLOCKS_OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round round = {0};
        block_run *run = &round.runs[0];
        for (unsigned k = 0; k < 4; k++) {
            run->scales[k] = d->words[slot][o][k];
            run->codes[k] = d->words[slot][o][4 + k];
        }
        block_values_open(b, &s->reader, &round, BLOCK_CHEAP, &values[o]);
    }
    blocks_add_round(b, s, values, x_at, x_more);
}

/* Rounds [first, end) of a window, a few in each turn of the loop; what is loaded ahead may belong to the next window. */
static void direct_window(ptx_builder *b, const blocks *s, const direct *d, ptx_val first, ptx_val end)
{
    const unsigned turn = d->slots;
    ptx_val x_at = ptx_var(b, s->x_mine);
    ptx_val r = ptx_for(b, first, end, turn);
    for (unsigned i = 0; i < turn; i++) {
        if (i) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, r, i), end));
        }
        direct_use(b, s, d, i % d->slots, x_at, (int)(i * ROUND_BYTES));
        direct_fetch(b, s, d, i % d->slots, i + d->slots,
                     ptx_setp(b, PTX_LT, ptx_add(b, r, i + d->slots), s->rounds));
    }
    for (unsigned i = 1; i < turn; i++)
        ptx_end_if(b);
    ptx_assign(b, d->more, ptx_add(b, d->more, turn * s->share.layout->bytes));
    ptx_assign(b, x_at, ptx_add(b, x_at, turn * ROUND_BYTES));
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
