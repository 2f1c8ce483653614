/* Attention in mode tensor: the loop over tiles and strips, and the sequences of a block's tokens. */
#include "kernels/attention/tensor.h"

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* ---- Opening ---- */

static bool is_whole(const tensor *t)
{
    return t->spec->select.phase == KERNEL_PHASE_WHOLE;
}

static void find_warp(ptx_builder *b, tensor *t)
{
    const attention_shape *s = &t->shape;
    ptx_val zero = ptx_mov(b, ptx_u32(b, 0));
    t->warp = ptx_shr(b, ptx_tid_x(b), 5);
    t->lane = ptx_laneid(b);
    t->part = s->column_parts > 1 ? ptx_shr(b, t->warp, ceil_log2(s->row_tiles)) : zero;
    t->row_tile = s->row_tiles > 1 ? ptx_and(b, t->warp, (int)s->row_tiles - 1) : zero;
    const unsigned all = (unsigned)t->spec->kv.value_size / 8;
    t->groups = (unsigned)ceil_div(all, s->column_parts);
    t->column_group = ptx_min(b, ptx_mul(b, t->part, (int)t->groups), ptx_u32(b, all - t->groups));
}

static void find_heads(ptx_builder *b, tensor *t)
{
    const unsigned heads = (unsigned)(t->spec->rope.queries / t->spec->kv.heads),
                   blocks = t->shape.head_blocks;
    ptx_val y = ptx_ctaid_y(b), last = ptx_sub(b, ptx_nctaid_x(b), 1), head = y,
            part = ptx_mov(b, ptx_u32(b, 0));
    if (blocks > 1) {
        head = ptx_div(b, y, (int)blocks);
        part = ptx_sub(b, y, ptx_mul(b, head, (int)blocks));
    }
    t->kv_head = ptx_cvt(b, PTX_U64, head);
    t->head = ptx_mad(b, part, (int)t->shape.heads, ptx_mul(b, head, (int)heads));
    t->head_end = ptx_mul(b, ptx_add(b, head, 1), (int)heads);
    /* the last tokens first: they see the most */
    t->token = emit_multiply(b, ptx_cvt(b, PTX_U64, ptx_sub(b, last, ptx_ctaid_x(b))), t->shape.tokens);
}

/* The queries of all rows, the ring and the places. */
static void open_memory(ptx_builder *b, tensor *t)
{
    const attention_shape *s = &t->shape;
    const unsigned queries = s->row_tiles * WARP_ROWS * t->key_pitch,
                   ring = s->slots * attend_slot_bytes(t->spec, s->chunk);
    t->queries = ptx_shared_dynamic(b, LOAD_BYTES);
    t->ring = ptx_add(b, t->queries, (int)queries);
    t->places = ptx_add(b, t->ring, (int)ring);
    t->reading = ptx_var(b, ptx_u32(b, 0));
    t->writing = ptx_var(b, ptx_u32(b, 0));
    ptx_val low = ptx_and(b, t->lane, 7), upper = ptx_shr(b, t->lane, 4), line = ptx_and(b, t->lane, 15);
    ptx_val middle = ptx_and(b, ptx_shr(b, t->lane, 3), 1), row = ptx_mad(b, t->row_tile, WARP_ROWS, line);
    t->query_lane = ptx_mad(b, upper, LOAD_BYTES, ptx_mad(b, row, (int)t->key_pitch, t->queries));
    ptx_val key = ptx_mul(b, ptx_mad(b, upper, GROUP_KEYS, low), (int)t->key_pitch);
    t->key_lane = ptx_mad(b, middle, LOAD_BYTES, key);
    t->key_lane_short = ptx_mul(b, line, (int)t->key_pitch);
    ptx_val value = ptx_mul(b, line, (int)t->value_pitch);
    t->value_lane = ptx_mad(b, ptx_add(b, upper, t->column_group), LOAD_BYTES, value);
}

static void keep_queries(ptx_builder *b, tensor *t)
{
    const unsigned steps = (unsigned)(t->spec->kv.key_size / 16);
    t->keeps_queries =
        t->shape.row_tiles == 1 && t->spec->kv.key_size % 16 == 0 && t->spec->kv.key_size <= WARP_COLUMNS;
    for (unsigned i = 0; i < steps && t->keeps_queries; i++)
        ptx_ldmatrix(b, t->query_lane, (int)(32 * i), t->kept[i], 4);
}

/* ---- A pass: the tokens of one sequence ---- */

static ptx_val tile_of(ptx_builder *b, ptx_val key)
{
    return ptx_shr(b, key, ceil_log2(TILE_KEYS));
}

static ptx_val strip_of(ptx_builder *b, ptx_val tile)
{
    return ptx_shr(b, tile, ceil_log2(TENSOR_TILES));
}

/* Strips from one of the block to its next: s32. */
static ptx_val strip_step(ptx_builder *b, const tensor *t)
{
    if (is_whole(t))
        return ptx_s32(b, 1);
    return ptx_as(b, PTX_S32, ptx_cvt(b, PTX_U32, t->args->number[NUMBER_PARTS]));
}

static ptx_val first_tile(ptx_builder *b, const tensor *t)
{
    ptx_val tile = tile_of(b, t->lo);
    if (is_whole(t))
        return tile;
    ptx_val strip = ptx_add(b, strip_of(b, tile), ptx_as(b, PTX_S32, ptx_ctaid_z(b)));
    return ptx_max(b, tile, ptx_shl(b, strip, ceil_log2(TENSOR_TILES)));
}

static ptx_val tile_after(ptx_builder *b, const tensor *t, ptx_val tile, ptx_val step)
{
    ptx_val next = ptx_add(b, tile, 1);
    if (is_whole(t))
        return next;
    ptx_val skipped = ptx_shl(b, ptx_sub(b, step, 1), ceil_log2(TENSOR_TILES));
    ptx_val ends = ptx_setp(b, PTX_EQ, ptx_and(b, next, TENSOR_TILES - 1), 0);
    return ptx_add(b, next, ptx_selp(b, skipped, ptx_s32(b, 0), ends));
}

static void end_strip(ptx_builder *b, const tensor *t, ptx_val tile, ptx_val next, ptx_val last,
                      const tensor_state *strip, const tensor_state *all)
{
    ptx_val ends = ptx_setp(b, PTX_NE, strip_of(b, tile), strip_of(b, next));
    ptx_uniform(b);
    ptx_if(b, ptx_setp_or(b, PTX_GT, next, last, ends));
    if (is_whole(t))
        attend_state_join(b, t, all, strip);
    else
        attend_state_store(b, t, strip, strip_of(b, tile));
    attend_state_clear(b, t, strip);
    ptx_end_if(b);
}

/* A step of a tile: a chunk of its keys, or of its values. */
static void do_step(ptx_builder *b, const tensor *t, const tensor_tile *tile, unsigned chunk,
                    const tensor_state *strip)
{
    const unsigned chunks = TILE_KEYS / t->shape.chunk;
    ptx_uniform(b);
    ptx_if(b, tile->sees);
    if (chunk < chunks)
        attend_scores(b, t, tile, chunk);
    if (chunk + 1 == chunks)
        attend_weights(b, t, tile, strip);
    if (chunk >= chunks)
        attend_add_values(b, t, tile, chunk - chunks, strip);
    ptx_end_if(b);
    attend_advance(b, t, t->reading);
}

/* While a chunk is used, those `ahead` of it are loaded. After the last tile, its first chunks are loaded again, and not used. */
static void do_tile(ptx_builder *b, const tensor *t, ptx_val number, ptx_val next, ptx_val has_next,
                    const tensor_state *strip)
{
    const unsigned chunks = 2 * TILE_KEYS / t->shape.chunk;
    const tensor_tile tile = attend_tile_begin(b, t, number);
    ptx_val after = ptx_selp(b, next, number, has_next);
    for (unsigned i = 0; i < chunks; i++) {
        tensor_chunk chunk;
        if (i == chunks - 1) {
            ptx_uniform(b);
            ptx_if(b, has_next);
            attend_place_scales(b, t, next);
            ptx_end_if(b);
        }
        attend_arrive(b, t);
        if (i == 0) {
            ptx_uniform(b);
            ptx_if(b, has_next);
            attend_place_keys(b, t, next);
            ptx_end_if(b);
        }
        const unsigned ahead = t->codes_ahead ? t->codes_ahead : t->ahead, wanted = i + ahead;
        ptx_val of_wanted = wanted < chunks ? number : after;
        if (t->codes_ahead)
            attend_copy_codes(b, t, of_wanted, wanted % chunks);
        else
            attend_fetch(b, t, of_wanted, wanted % chunks, &chunk);
        do_step(b, t, &tile, i, strip);
        if (t->codes_ahead)
            attend_decode_codes(b, t, i + 1 < chunks ? number : after, (i + 1) % chunks);
        else
            attend_put(b, t, &chunk);
    }
}

static void do_tiles(ptx_builder *b, const tensor *t, const tensor_state *all)
{
    const tensor_state strip = attend_state_begin(b, t);
    ptx_val last = tile_of(b, t->hi), step = strip_step(b, t), tile = ptx_var(b, first_tile(b, t));
    ptx_assign(b, t->reading, ptx_u32(b, 0));
    ptx_assign(b, t->writing, ptx_u32(b, 0));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LE, tile, last));
    attend_sync(b, t);
    attend_place_keys(b, t, tile);
    attend_place_scales(b, t, tile);
    attend_sync(b, t);
    for (unsigned i = 0; i < t->codes_ahead; i++)
        attend_copy_codes(b, t, tile, i);
    if (t->codes_ahead)
        attend_decode_codes(b, t, tile, 0);
    for (unsigned i = 0; i < t->ahead && !t->codes_ahead; i++) {
        tensor_chunk chunk;
        attend_fetch(b, t, tile, i, &chunk);
        attend_put(b, t, &chunk);
    }
    ptx_rolled(b);
    ptx_uniform(b);
    ptx_loop(b);
    ptx_val next = tile_after(b, t, tile, step), has_next = ptx_setp(b, PTX_LE, next, last);
    do_tile(b, t, tile, next, has_next, &strip);
    end_strip(b, t, tile, next, last, &strip, all);
    ptx_assign(b, tile, next);
    ptx_break_unless(b, has_next);
    ptx_end_loop(b);
    if (t->copies || t->codes_ahead)
        ptx_cp_async_wait_all(b);
    ptx_end_if(b);
}

static void do_pass(ptx_builder *b, const tensor *t)
{
    tensor_state all = {0};
    if (is_whole(t))
        all = attend_state_begin(b, t);
    ptx_val some = ptx_setp(b, PTX_NE, t->args->number[NUMBER_PAGES], ptx_u64(b, 0));
    ptx_uniform(b);
    ptx_if(b, ptx_setp_and(b, PTX_LE, t->lo, t->hi, some));
    do_tiles(b, t, &all);
    ptx_end_if(b);
    if (is_whole(t))
        attend_results(b, t, &all);
}

/* ---- The tokens of a block ---- */

/* Tokens lane, lane + 32 ... of the block, as every warp knows them. */
typedef struct token_list {
    unsigned groups;
    seen_keys seen[TOKEN_GROUPS];
    ptx_val pending[TOKEN_GROUPS]; /* u32, variables: a bit for each token that no pass has had yet */
} token_list;

static token_list list_tokens(ptx_builder *b, const tensor *t)
{
    token_list l = {.groups = (unsigned)ceil_div(t->shape.tokens, WARP)};
    for (unsigned i = 0; i < l.groups; i++) {
        ptx_val number = i ? ptx_add(b, t->lane, (int)(WARP * i)) : t->lane;
        ptx_val token = ptx_add(b, t->token, ptx_cvt(b, PTX_U64, number));
        ptx_val exists = ptx_setp(b, PTX_LT, number, ptx_u32(b, t->shape.tokens));
        exists = ptx_setp_and(b, PTX_LT, token, t->args->number[NUMBER_M], exists);
        l.seen[i] = seen_by_token(b, t->spec, t->args, token);
        l.pending[i] = ptx_var(b, ptx_ballot(b, exists));
    }
    return l;
}

/* The sequence of some pending token. */
static ptx_val next_sequence(ptx_builder *b, const token_list *l)
{
    ptx_val sequence = {0};
    for (unsigned i = 0; i < l->groups; i++) {
        ptx_val source = ptx_and(b, ptx_bfind(b, l->pending[i]), WARP - 1);
        ptx_val of_group = ptx_shfl_idx(b, l->seen[i].sequence, source);
        sequence = i ? ptx_selp(b, of_group, sequence, ptx_setp(b, PTX_NE, l->pending[i], 0)) : of_group;
    }
    return sequence;
}

static ptx_val over_warp(ptx_builder *b, ptx_val x, bool is_least)
{
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
        ptx_val other = ptx_shfl_bfly(b, x, distance);
        x = is_least ? ptx_min(b, x, other) : ptx_max(b, x, other);
    }
    return x;
}

/* Begins the pass of a sequence: which tokens it is about, and what they see together. */
static void begin_pass(ptx_builder *b, tensor *t, const token_list *l)
{
    ptx_val nothing_first = ptx_s32(b, INT32_MAX), nothing_last = ptx_s32(b, -1);
    for (unsigned i = 0; i < l->groups; i++) {
        const seen_keys *s = &l->seen[i];
        ptx_val bit = ptx_shl(b, ptx_mov(b, ptx_u32(b, 1)), t->lane);
        ptx_val same = ptx_setp(b, PTX_NE, ptx_and(b, l->pending[i], bit), 0);
        same = ptx_setp_and(b, PTX_EQ, s->sequence, t->sequence, same);
        ptx_val sees = ptx_setp_and(b, PTX_LE, s->first, s->last, same);
        ptx_val first = ptx_selp(b, s->first, nothing_first, sees),
                last = ptx_selp(b, s->last, nothing_last, sees);
        t->lo = i ? ptx_min(b, t->lo, first) : first;
        t->hi = i ? ptx_max(b, t->hi, last) : last;
        ptx_val members = ptx_ballot(b, same);
        ptx_assign(b, l->pending[i], ptx_and(b, l->pending[i], ptx_not(b, members)));
    }
    t->lo = over_warp(b, t->lo, true);
    t->hi = over_warp(b, t->hi, false);
    for (unsigned h = 0; h < t->halves; h++) {
        const tensor_row *r = &t->rows[h];
        ptx_assign(b, r->active, ptx_setp_and(b, PTX_EQ, r->seen.sequence, t->sequence, r->exists));
    }
}

static void do_passes(ptx_builder *b, tensor *t)
{
    const token_list l = list_tokens(b, t);
    ptx_rolled(b);
    ptx_uniform(b);
    ptx_loop(b);
    ptx_val pending = l.groups > 1 ? ptx_or(b, l.pending[0], l.pending[1]) : l.pending[0];
    ptx_break_if(b, ptx_setp(b, PTX_EQ, pending, 0));
    t->sequence = next_sequence(b, &l);
    begin_pass(b, t, &l);
    do_pass(b, t);
    ptx_end_loop(b);
}

/* The only token. */
static void do_one_pass(ptx_builder *b, tensor *t)
{
    const seen_keys seen = seen_by_token(b, t->spec, t->args, t->token);
    t->sequence = seen.sequence;
    t->lo = seen.first;
    t->hi = seen.last;
    do_pass(b, t);
}

void emit_attention_tensor(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    tensor t = {
        .row = row, .spec = spec, .args = &args, .shape = attention_shape_of(spec), .type = spec->data};
    ptx_reqntid(b, t.shape.block, 1, 1);
    t.step = ptx_target(b)->number >= 80 ? 16 : 8;
    t.halves = t.shape.heads * t.shape.tokens > WARP_ROWS / HALVES ? 2 : 1;
    t.key_pitch = matrix_pitch(spec->kv.key_size);
    t.value_pitch = matrix_pitch(spec->kv.value_size);
    t.copies = ptx_target(b)->number >= 80 && spec->kv.type == (int)spec->data;
    t.ahead = t.copies ? least_of(t.shape.slots - 1, 2) : 1;
    t.keys = kv_array_of(b, row, spec, &args, KV_KEYS);
    t.values = t.keys;
    if (spec->attention.values_in_keys)
        t.values.spec.rows.columns = spec->kv.value_size;
    else
        t.values = kv_array_of(b, row, spec, &args, KV_VALUES);
    t.zero = ptx_mov(b, ptx_f32(b, 0));
    find_warp(b, &t);
    find_heads(b, &t);
    open_memory(b, &t);
    attend_keys_begin(b, &t);
    attend_load_queries(b, &t);
    attend_rows_begin(b, &t);
    ptx_syncthreads(b);
    keep_queries(b, &t);
    t.codes_ahead = attend_codes_ahead(b, &t);
    t.codes = t.queries;
    if (t.shape.tokens > 1)
        do_passes(b, &t);
    else
        do_one_pass(b, &t);
    if (spec->select.phase == KERNEL_PHASE_LAST)
        emit_join_if_last(b, spec, &args,
                          &(shared_rows){t.token, ptx_cvt(b, PTX_U64, t.head),
                                         ptx_cvt(b, PTX_U64, t.head_end), t.shape.heads, t.shape.block});
}
