/* Products of few rows; gemv.h explains the plan. */
#include "kernels/gemm/gemv.h"

/* ---- Loads ahead ---- */

static unsigned round_bytes(const gemv_shape *s)
{
    return s->team * s->words * 4;
}

/* Loads the codes of a round into its slot of the ring; `from` are the addresses of round 0. */
static void load_round(ptx_builder *b, const gemv *g, const ptx_val *from, unsigned round, ptx_val wanted)
{
    const unsigned slot = round % g->shape.depth;
    const unsigned vector = g->shape.words < 4 ? g->shape.words : 4;
    for (unsigned i = 0; i < g->shape.outputs; i++)
        for (unsigned w = 0; w < g->shape.words; w += vector) {
            if (wanted.kind != PTX_NOTHING)
                ptx_when(b, wanted);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, from[i],
                            (int)(round * round_bytes(&g->shape) + 4 * w), &g->ring[slot][i][w], (int)vector);
        }
}

static void ring_addresses(ptx_builder *b, const gemv *g, ptx_val *from)
{
    for (unsigned i = 0; i < g->shape.outputs; i++)
        from[i] = ptx_add(b, g->codes[i], ptx_cvt(b, PTX_U64, g->at));
}

/* Whether the thread has k in that round, counted from the ring's first. */
static ptx_val has_round(ptx_builder *b, const gemv *g, unsigned round)
{
    return ptx_setp(b, PTX_GT, g->left, (int)(round * ROUND));
}

/* Begins the tile at k (u32). */
static void fill_ring(ptx_builder *b, const gemv *g, ptx_val k)
{
    const gemv_shape *s = &g->shape;
    ptx_val from[GEMV_OUTPUTS_MAX], here = ptx_min(b, ptx_sub(b, g->k, k), (int)s->tile);
    ptx_val left = ptx_as(b, PTX_S32, ptx_sub(b, here, ptx_mul(b, g->thread, (int)gemv_unit(s))));
    ptx_assign(b, g->at, ptx_mul(b, ptx_shr(b, k, ceil_log2(ROUND)), round_bytes(s)));
    ptx_assign(b, g->left, ptx_selp(b, left, ptx_s32(b, INT32_MIN / 2), g->aligned));
    ring_addresses(b, g, from);
    for (unsigned i = 0; i < s->depth; i++)
        load_round(b, g, from, i, has_round(b, g, i));
}

static void advance(ptx_builder *b, const gemv *g, unsigned rounds)
{
    ptx_into(b, g->at);
    ptx_add(b, g->at, (int)(rounds * round_bytes(&g->shape)));
    ptx_into(b, g->left);
    ptx_sub(b, g->left, (int)(rounds * ROUND));
}

/* ---- One round ---- */

gemv_reading gemv_reading_begin(ptx_builder *b, const gemv *g)
{
    const gemv_shape *s = &g->shape;
    ptx_val mine = ptx_shl(b, g->thread, ceil_log2(LOAD_BYTES));
    if (s->team * LOAD_BYTES > BYTE_TABLE_RUN)
        mine = gemv_x_place(b, g, mine);
    gemv_reading r = {.x = ptx_var(b, ptx_add(b, mine, g->x_shared))};
    if (!s->span)
        return r;
    ptx_val slot = gemv_unit(s) < s->span ? ptx_shr(b, g->thread, ceil_log2(s->span / gemv_unit(s)))
                                          : ptx_mul(b, g->thread, (int)(gemv_unit(s) / s->span));
    r.numbers = ptx_var(b, gemv_numbers_at(b, g, g->output, slot));
    return r;
}

void gemv_reading_advance(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned rounds)
{
    ptx_into(b, r->x);
    ptx_add(b, r->x, (int)(rounds * g->stretch * ROUND_BYTES));
    if (!g->shape.span)
        return;
    ptx_into(b, r->numbers);
    ptx_add(b, r->numbers, (int)gemv_slot_offset(&g->shape, g->codec, rounds * (ROUND / g->shape.span)));
}

/* The numbers of an output for the chunks of a round: span after span. */
typedef struct round_numbers {
    ptx_val at[GEMV_CHUNKS_MAX * GEMV_NUMBERS_MAX];
} round_numbers;

/* The numbers of a chunk: loaded on first use, together with those of the next spans if they fill a
 * vector. */
static const ptx_val *chunk_numbers(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned round,
                                    unsigned output, unsigned chunk, round_numbers *all)
{
    const gemv_shape *s = &g->shape;
    const unsigned n = g->codec->numbers;
    if (!s->span)
        return g->only;
    const unsigned spans = gemv_spans_together(s, g->codec), slot = CHUNK * chunk / s->span;
    const unsigned first = slot / spans * spans, row = output * (s->of_block / s->outputs);
    ptx_val *numbers = &all->at[n * first];
    if (n && numbers[0].kind == PTX_NOTHING)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, r->numbers,
                   (int)(gemv_output_offset(s, g->codec, row) +
                         gemv_slot_offset(s, g->codec, round * (ROUND / s->span) + first)),
                   numbers, (int)(n * spans));
    return &all->at[n * slot];
}

/* Vector `number` of x: half a chunk or, in pairs, a quarter of two chunks. */
enum { HALF = CHUNK / 2 };
static void load_x(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned round, unsigned row,
                   unsigned number, ptx_val x[HALF])
{
    const unsigned vector = g->shape.team * LOAD_BYTES;
    const unsigned at = row * g->shape.tile * 4 + round * ROUND_BYTES + number * vector;
    ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, r->x, (int)(g->stretch * at), x, HALF);
}

/* Packs the weights of two chunks of an output into pairs. */
static void pair_weights(ptx_builder *b, ptx_val w[2 * CHUNK])
{
    for (unsigned i = 0; i < CHUNK; i++)
        w[i] = ptx_pack2(b, PTX_F32X2, w[i], w[CHUNK + i]);
}

static void scale_pairs(ptx_builder *b, const gemv *g, ptx_val w[CHUNK], const ptx_val scales[2])
{
    ptx_val global = g->w.matrix.q.side.global_scale;
    for (unsigned i = 0; i < CHUNK; i++) {
        w[i] = ptx_mul(b, w[i], ptx_pack2(b, PTX_F32X2, scales[0], scales[1]));
        if (global.kind != PTX_NOTHING)
            w[i] = ptx_mul(b, w[i], ptx_pack2(b, PTX_F32X2, global, global));
    }
}

/* Adds the products of a chunk, or a pair of chunks, for some outputs and all rows; one vector of x at a
 * time, to save registers. */
static void add_chunk(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned round, unsigned chunk,
                      unsigned first, unsigned outputs, ptx_val w[GEMV_OUTPUTS_MAX][2 * CHUNK])
{
    const unsigned of_vector = g->in_pairs ? HALF / 2 : HALF;
    for (unsigned v = 0; v < CHUNK / of_vector; v++)
        for (unsigned row = 0; row < g->shape.rows; row++) {
            ptx_val x[HALF];
            load_x(b, g, r, round, row, CHUNK / of_vector * chunk + v, x);
            for (unsigned j = 0; j < of_vector && g->in_pairs; j++)
                x[j] = ptx_pack2(b, PTX_F32X2, x[2 * j], x[2 * j + 1]);
            for (unsigned i = first; i < first + outputs; i++)
                for (unsigned j = 0; j < of_vector; j++) {
                    ptx_into(b, g->sums[i][row][chunk]);
                    ptx_fma(b, x[j], w[i][of_vector * v + j], g->sums[i][row][chunk]);
                }
        }
}

/* The weights of a chunk of output i, or of a pair of chunks, as add_chunk takes them. */
static void decode_chunk(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned round, unsigned chunk,
                         unsigned i, const ptx_val *words, round_numbers *all, ptx_val w[2 * CHUNK])
{
    const bool at_once = g->in_pairs && g->codec->decode_pair && gemv_has_nibbles(g);
    ptx_val scales[2];
    for (unsigned j = 0; j < gemv_chunks_together(g); j++) {
        const unsigned this = chunk + j * gemv_sums_of(g);
        const ptx_val *numbers = chunk_numbers(b, g, r, round, i, this, all);
        scales[j] = numbers[0];
        if (!at_once)
            g->codec->decode(b, g, words, this, numbers, w + CHUNK * j);
    }
    if (at_once)
        g->codec->decode_pair(b, g, words, chunk, chunk + gemv_sums_of(g), w);
    else if (g->in_pairs)
        pair_weights(b, w);
    if (gemv_scales_last(g))
        scale_pairs(b, g, w, scales);
}

void gemv_compute_round(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned round,
                        const gemv_words words)
{
    ptx_val w[GEMV_OUTPUTS_MAX][2 * CHUNK];
    round_numbers all[GEMV_OUTPUTS_MAX] = {0};
    for (unsigned chunk = 0; chunk < gemv_sums_of(g); chunk++) {
        for (unsigned i = 0; i < g->shape.outputs; i++)
            decode_chunk(b, g, r, round, chunk, i, words[i], &all[i], w[i]);
        add_chunk(b, g, r, round, chunk, 0, g->shape.outputs, w);
    }
}

/* ---- A tile ---- */

/* The last rounds of the row, fewer than a turn. */
static void last_rounds(ptx_builder *b, const gemv *g, const gemv_reading *r)
{
    const gemv_shape *s = &g->shape;
    ptx_val from[GEMV_OUTPUTS_MAX];
    ring_addresses(b, g, from);
    for (unsigned i = 0; i < s->turn; i++) {
        ptx_if(b, has_round(b, g, i));
        gemv_compute_round(b, g, r, i, g->ring[i % s->depth]);
        if (i + s->depth < s->turn)
            load_round(b, g, from, i + s->depth, has_round(b, g, i + s->depth));
        ptx_end_if(b);
    }
}

/* All rounds of the tile at k; only the last tile can have a number of rounds that is not a multiple of
 * the turn. */
static void fast_tile(ptx_builder *b, const gemv *g, ptx_val k)
{
    const gemv_shape *s = &g->shape;
    if (s->is_ragged) {
        gemv_ragged_tile(b, g, k, false);
        return;
    }
    const int of_turn = (int)(s->turn * ROUND);
    gemv_reading r = gemv_reading_begin(b, g);
    ptx_val here = ptx_min(b, ptx_sub(b, g->k, k), (int)s->tile), from[GEMV_OUTPUTS_MAX];
    ptx_val rest = ptx_var(b, ptx_as(b, PTX_S32, here));
    ptx_label again = ptx_label_new(b), end = ptx_label_new(b);
    ptx_uniform(b);
    ptx_bra_if(b, ptx_setp(b, PTX_LT, rest, of_turn), end);
    ptx_label_place(b, again); /* by hand: the condition is at the end, one branch a turn */
    ring_addresses(b, g, from);
    for (unsigned i = 0; i < s->turn; i++) {
        gemv_compute_round(b, g, &r, i, g->ring[i % s->depth]);
        load_round(b, g, from, i + s->depth, has_round(b, g, i + s->depth));
    }
    advance(b, g, s->turn);
    gemv_reading_advance(b, g, &r, s->turn);
    ptx_into(b, rest);
    ptx_sub(b, rest, of_turn);
    ptx_uniform(b);
    ptx_bra_if(b, ptx_setp(b, PTX_GE, rest, of_turn), again);
    ptx_label_place(b, end);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, rest, 0));
    last_rounds(b, g, &r);
    ptx_end_if(b);
}

/* ---- The slow path: codes that are not aligned, groups that the codec cannot handle ---- */

static void load_bytes(ptx_builder *b, ptx_val address, unsigned words, ptx_val *out)
{
    for (unsigned w = 0; w < words; w++) {
        out[w] = ptx_ld_global_nc(b, PTX_U8, address, (int)(4 * w));
        for (unsigned i = 1; i < 4; i++)
            out[w] =
                ptx_bfi(b, ptx_ld_global_nc(b, PTX_U8, address, (int)(4 * w + i)), out[w], (int)(8 * i), 8);
    }
}

/* The weights of a chunk that begins at k (u64). */
static void slow_weights(ptx_builder *b, const gemv *g, unsigned output, unsigned chunk, ptx_val k,
                         const ptx_val *words, ptx_val w[CHUNK])
{
    const gemv_codec *codec = gemv_codec_plain(g->w.coding.format);
    ptx_val numbers[GEMV_NUMBERS_MAX];
    if (codec->prepare) {
        group_values group = matrix_group(b, &g->w.matrix, ptx_cvt(b, PTX_U64, g->rows[output]), k);
        codec->prepare(b, g, &group, numbers);
    }
    gemv whole = *g; /* without pairs */
    whole.in_pairs = false;
    codec->decode(b, &whole, words, chunk, numbers, w);
}

/* The same by the kernel's usual codec, from numbers in shared memory. */
static void usual_weights(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned output,
                          unsigned chunk, const ptx_val *words, round_numbers *all, ptx_val w[CHUNK])
{
    gemv whole = *g;
    whole.in_pairs = false;
    g->codec->decode(b, &whole, words, chunk, chunk_numbers(b, g, r, 0, output, chunk, all), w);
}

gemv_tail gemv_tail_begin(ptx_builder *b, const gemv *g, ptx_val first)
{
    return (gemv_tail){.first = first, .left = ptx_as(b, PTX_S32, ptx_sub(b, g->k, first))};
}

/* A number that divides K and a thread's k, so that K can only end at its multiples. Flat groups divide K. */
static unsigned tail_step(const gemv *g)
{
    const uint64_t power = g->spec->stored.group_size & -g->spec->stored.group_size;
    if (!g->shape.span || g->spec->stored.groups != QDNN_GROUPS_FLAT)
        return 1;
    return power < gemv_unit(&g->shape) ? (unsigned)power : gemv_unit(&g->shape);
}

/* Predicate: whether the thread has k at that place. */
static ptx_val tail_has(ptx_builder *b, const gemv *g, gemv_tail *t, unsigned place)
{
    const unsigned first = place / tail_step(g) * tail_step(g);
    if (t->has[first].kind == PTX_NOTHING)
        t->has[first] = ptx_setp(b, PTX_GT, t->left, (int)first);
    return t->has[first];
}

void gemv_compute_carefully(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned output,
                            gemv_tail *tail, const ptx_val *words, bool slow)
{
    ptx_val w[GEMV_OUTPUTS_MAX][2 * CHUNK];
    round_numbers all = {0};
    for (unsigned chunk = 0; chunk < gemv_sums_of(g); chunk++) {
        for (unsigned j = 0; j < gemv_chunks_together(g); j++) {
            const unsigned this = chunk + j * gemv_sums_of(g);
            ptx_val *to = w[output] + CHUNK * j;
            if (slow) {
                ptx_val k = ptx_add(b, tail->first, (int)(CHUNK * this));
                ptx_val at = ptx_min(b, k, ptx_sub(b, g->k, 1));
                slow_weights(b, g, output, this, ptx_cvt(b, PTX_U64, at), words, to);
            } else
                usual_weights(b, g, r, output, this, words, &all, to);
            for (unsigned i = 0; i < CHUNK; i++)
                to[i] = ptx_selp(b, to[i], ptx_f32(b, 0), tail_has(b, g, tail, CHUNK * this + i));
        }
        if (g->in_pairs)
            pair_weights(b, w[output]);
        add_chunk(b, g, r, 0, chunk, output, 1, w);
    }
}

/* One round at k (u64), with x from the shared tile; output by output, to save registers. */
static void slow_round(ptx_builder *b, const gemv *g, const gemv_reading *r, ptx_val k)
{
    const gemv_shape *s = &g->shape;
    const unsigned bits = g->w.coding.format->facts.bits;
    ptx_val words[GEMV_WORDS_MAX], w[GEMV_OUTPUTS_MAX][2 * CHUNK];
    for (unsigned i = 0; i < s->outputs; i++) {
        ptx_val element = ptx_mad(b, ptx_cvt(b, PTX_U64, g->rows[i]), g->args.k, k);
        ptx_val byte = ptx_shr(b, ptx_mul(b, element, ptx_u64(b, bits)), 3);
        load_bytes(b, ptx_add(b, g->w.codes, byte), s->words, words);
        for (unsigned chunk = 0; chunk < gemv_sums_of(g); chunk++) {
            for (unsigned j = 0; j < gemv_chunks_together(g); j++) {
                const unsigned this = chunk + j * gemv_sums_of(g);
                slow_weights(b, g, i, this, ptx_add(b, k, ptx_u64(b, CHUNK * this)), words, w[i] + CHUNK * j);
            }
            if (g->in_pairs)
                pair_weights(b, w[i]);
            add_chunk(b, g, r, 0, chunk, i, 1, w);
        }
    }
}

/* Taken by all threads of the block or by none. */
static void slow_tile(ptx_builder *b, const gemv *g, ptx_val k)
{
    if (g->codec->x_exponent) {
        gemv_stage_x(b, g, k, false);
        ptx_syncthreads(b);
    }
    if (g->shape.is_ragged) {
        gemv_ragged_tile(b, g, k, true);
        return;
    }
    ptx_val end = ptx_min(b, ptx_add(b, k, (int)g->shape.tile), g->k);
    ptx_val first = ptx_mad(b, g->thread, (int)gemv_unit(&g->shape), k);
    gemv_reading r = gemv_reading_begin(b, g);
    ptx_val at = ptx_for(b, first, end, ROUND);
    slow_round(b, g, &r, ptx_cvt(b, PTX_U64, at));
    gemv_reading_advance(b, g, &r, 1);
    ptx_end_for(b);
}

/* ---- The kernel ---- */

/* The row of the weights for output i of the thread, clamped to the last one. */
static ptx_val weights_row(ptx_builder *b, const gemv *g, unsigned i)
{
    const gemv_shape *s = &g->shape;
    const unsigned of_half = g->spec->epilogue.gated ? s->outputs / 2 : s->outputs,
                   step = s->of_block / s->outputs;
    ptx_val output = ptx_min(b, ptx_add(b, g->output, (int)(i % of_half * step)), g->last);
    ptx_val column = ptx_add(b, ptx_cvt(b, PTX_U32, g->column), output);
    return i < of_half ? column : ptx_add(b, column, ptx_cvt(b, PTX_U32, g->args.n));
}

static void begin_sums(ptx_builder *b, gemv *g)
{
    const gemv_shape *s = &g->shape;
    for (unsigned i = 0; i < s->outputs; i++)
        for (unsigned j = 0; j < s->rows; j++)
            for (unsigned c = 0; c < gemv_sums_of(g); c++)
                g->sums[i][j][c] = ptx_var(
                    b, g->in_pairs ? ptx_pack2(b, PTX_F32X2, ptx_f32(b, 0), ptx_f32(b, 0)) : ptx_f32(b, 0));
}

static void begin_rows(ptx_builder *b, gemv *g)
{
    const gemv_shape *s = &g->shape;
    const unsigned bits = g->w.coding.format->facts.bits;
    ptx_val row_bytes = bits < 8 ? ptx_shr(b, g->k, ceil_log2(8 / bits)) : ptx_mul(b, g->k, (int)(bits / 8));
    ptx_val mine = ptx_mad_wide(b, g->thread, ptx_u32(b, 4 * s->words), g->w.codes);
    g->at = ptx_var(b, ptx_u32(b, 0));
    g->left = ptx_var(b, ptx_s32(b, 0));
    for (unsigned i = 0; i < s->outputs; i++) {
        g->codes[i] = ptx_mad_wide(b, g->rows[i], row_bytes, mine);
        for (unsigned slot = 0; slot < s->depth; slot++)
            for (unsigned w = 0; w < s->words; w++)
                g->ring[slot][i][w] = ptx_var_of(b, PTX_U32);
    }
}

static ptx_val or_of_both(ptx_builder *b, ptx_val p, ptx_val q)
{
    return q.kind == PTX_NOTHING ? p : p.kind == PTX_NOTHING ? q : ptx_or(b, p, q);
}

/* Predicate: codes cannot be loaded by vectors; empty: they can. */
static ptx_val not_aligned(ptx_builder *b, const gemv *g)
{
    return g->shape.is_ragged ? (ptx_val){0} : ptx_not(b, g->aligned);
}

/* A tile that the codec cannot handle: by the second codec, or by the slow path. */
static void odd_tile(ptx_builder *b, const gemv *g, ptx_val k)
{
    if (!g->codec->second) {
        slow_tile(b, g, k);
        return;
    }
    gemv second = *g;
    second.codec = g->codec->second;
    if (!g->shape.span)
        second.serves = second.codec->prepare(b, &second, &g->w.matrix.q.only, second.only);
    ptx_val odd = or_of_both(b, not_aligned(b, g), gemv_stage_numbers(b, &second, k));
    odd = ptx_bar_red_or(b, 0, odd);
    ptx_uniform(b);
    ptx_if(b, odd);
    slow_tile(b, g, k);
    ptx_else(b);
    fast_tile(b, &second, k);
    ptx_end_if(b);
}

static void multiply_tile(ptx_builder *b, const gemv *g, ptx_val k)
{
    ptx_syncthreads(b);
    x_ahead x;
    gemv_fetch_x(b, g, k, &x);
    if (!g->shape.is_ragged)
        fill_ring(b, g, k);
    ptx_val odd = or_of_both(b, not_aligned(b, g), gemv_stage_numbers(b, g, k));
    odd = or_of_both(b, odd, gemv_put_x(b, g, k, &x));
    if (odd.kind == PTX_NOTHING) {
        ptx_syncthreads(b);
        fast_tile(b, g, k);
        return;
    }
    odd = ptx_bar_red_or(b, 0, odd);
    ptx_uniform(b);
    ptx_if(b, odd);
    odd_tile(b, g, k);
    ptx_else(b);
    fast_tile(b, g, k);
    ptx_end_if(b);
}

static void multiply(ptx_builder *b, gemv *g)
{
    begin_sums(b, g);
    (g->shape.is_ragged ? gemv_begin_ragged : begin_rows)(b, g);
    ptx_val k = ptx_for(b, ptx_u32(b, 0), g->k, (int)g->shape.tile);
    multiply_tile(b, g, k);
    ptx_end_for(b);
    gemv_finish(b, g);
}

/* Groups per row. k is below 2^28 (gemv_fits), so 32 bits suffice. */
static ptx_val groups_of_row(ptx_builder *b, const gemv *g)
{
    const uint64_t size = g->spec->stored.group_size;
    if ((size & (size - 1)) || size > ROUND)
        return ptx_cvt(b, PTX_U32, emit_divide_up(b, g->args.k, size));
    return ptx_shr(b, ptx_add(b, g->k, (int)size - 1), ceil_log2((unsigned)size));
}

static void begin_block(ptx_builder *b, gemv *g)
{
    const gemv_shape *s = &g->shape;
    const unsigned columns = g->spec->epilogue.gated ? s->of_block / 2 : s->of_block;
    ptx_val tid = ptx_tid_x(b);
    g->k = ptx_cvt(b, PTX_U32, g->args.k);
    g->m = ptx_cvt(b, PTX_U32, g->args.m);
    if (s->span)
        g->groups = groups_of_row(b, g);
    ptx_val column = ptx_mul(b, ptx_ctaid_x(b), (int)columns);
    ptx_val others = ptx_sub(b, ptx_sub(b, ptx_cvt(b, PTX_U32, g->args.n), column), 1);
    g->column = ptx_cvt(b, PTX_U64, column);
    g->last = ptx_min(b, others, (int)columns - 1);
    g->aligned = emit_aligned(b, g->w.codes, LOAD_BYTES);
    g->thread = ptx_and(b, tid, (int)s->team - 1);
    g->output = ptx_shr(b, tid, ceil_log2(s->team));
    for (unsigned i = 0; i < s->outputs; i++)
        g->rows[i] = weights_row(b, g, i);
}

/* Shared memory for x and for numbers. If the launch provides memory for a table, x lies between its entries, and so do
 * numbers if there is no room elsewhere; on targets that use no table, both take its place. */
static void place_inputs(ptx_builder *b, gemv *g, ptx_val dynamic, unsigned numbers)
{
    const bool has_table = g->codec->open, is_dynamic = dynamic.kind != PTX_NOTHING;
    const unsigned x = g->shape.rows * g->shape.tile * 4;
    g->stretch = has_table ? 2 : 1;
    if (!is_dynamic)
        g->x_shared = ptx_shared(b, "x_tile", PTX_F32, x / 4, LOAD_BYTES);
    else
        g->x_shared = has_table ? ptx_add(b, dynamic, BYTE_TABLE_RUN) : dynamic;
    if (!numbers)
        return;
    if (g->shape.numbers_between || (is_dynamic && !has_table))
        g->numbers_shared = ptx_add(b, g->x_shared, (int)(g->stretch * x));
    else
        g->numbers_shared = ptx_shared(b, "numbers", PTX_F32, numbers / 4, LOAD_BYTES);
}

static void begin_shared(ptx_builder *b, gemv *g, bool is_dynamic)
{
    const unsigned numbers = g->shape.span ? gemv_numbers_bytes(&g->shape, g->codec) : 0;
    ptx_val dynamic = is_dynamic ? ptx_shared_dynamic(b, BYTE_TABLE_RUN) : (ptx_val){0};
    place_inputs(b, g, dynamic, numbers);
    g->table.base = dynamic;
    g->scale_exponent = gemv_scale_exponent(b, g);
    if (!numbers && g->codec->prepare)
        g->serves = g->codec->prepare(b, g, &g->w.matrix.q.only, g->only);
    if (g->codec->open)
        g->codec->open(b, g);
}

/* The rows of the block: neighbours, or a tile of one expert's rows, which may have no weights. */
static void begin_tile(ptx_builder *b, gemv *g)
{
    if (!g->spec->product.grouped) {
        g->first_row = ptx_mul(b, ptx_ctaid_y(b), (int)g->shape.rows);
        return;
    }
    g->first_row = ptx_cvt(b, PTX_U32, g->experts.first);
    g->m = ptx_cvt(b, PTX_U32, ptx_add(b, g->experts.first, g->experts.count));
    g->k = row_tile_size(b, &g->experts, g->k);
}

/* Thread blocks per SM, which limits the registers of a thread: as many as leave enough. Tables leave room
 * for two or three; three blocks with plain values would spill on sm_110. */
static unsigned blocks_of_sm(const gemv *g, const format_row *format, bool has_table)
{
    const gemv_shape *s = &g->shape;
    if (s->rows > 8)
        return 1;
    if (g->spec->product.grouped || g->spec->epilogue.gated || has_table || format_is_plain(format))
        return 2;
    if (s->rows == 1 && s->outputs <= 2)
        return 4;
    return s->rows == 1 || (s->rows == 2 && s->outputs == 2) ? 3 : 2;
}

static void emit_gemv(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    gemv g = {.spec = spec,
              .shape = gemv_shape_of(row, spec, ptx_target(b)),
              .codec = gemv_codec_for(b, row->format, spec),
              .args = gemm_declare(b, row, spec)};
    g.in_pairs = has_f32x2(b) && g.shape.chunks > 1;
    g.shape.numbers_between = g.shape.numbers_between && g.codec->open;
    const bool has_table = gemv_codec_of(row->format, spec)->open; /* or just its memory */
    ptx_minnctapersm(b, blocks_of_sm(&g, row->format, has_table));
    if (spec->product.grouped) {
        g.experts = row_tile_of_block(b, &g.args);
        g.args = row_tile_args(b, &g.experts, &g.args);
    }
    g.w = weights_begin(b, row, spec, &g.args);
    begin_shared(b, &g, has_table);
    begin_block(b, &g);
    begin_tile(b, &g);
    gemv_begin_inputs(b, &g);
    multiply(b, &g);
}

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    gemv_shape s = gemv_shape_of(row, spec, NULL);
    return spec->epilogue.gated ? s.of_block / 2 : s.of_block;
}

static unsigned threads_of(const kernel_row *row, const kernel_spec *spec)
{
    return gemv_shape_of(row, spec, NULL).warps * WARP;
}

static unsigned shared_of(const kernel_row *row, const kernel_spec *spec)
{
    return gemv_codec_of(row->format, spec)->open ? BYTE_TABLE_BYTES : 0;
}

#define GEMV_KERNEL(takes)                                                                                   \
    {                                                                                                        \
        .block_of = threads_of, .shared = shared_of, .outputs = columns_of, .emit = emit_gemv,               \
        .serves = gemv_serves, .rows = 1, .rows_most = GEMV_ROWS_MAX, .fits = takes, .takes_experts = true   \
    }
const gemm_kernel gemm_gemv = GEMV_KERNEL(gemv_fits), gemm_ragged = GEMV_KERNEL(gemv_ragged_fits);
