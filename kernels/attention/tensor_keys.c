/* Keys and values on their way from the cache to shared memory. */
#include "kernels/attention/tensor.h"

/* Of a tile: two addresses of each key, which keys exist, and two scales of each (f32, or addresses). */
enum {
    PLACE_KEY = 0,
    PLACE_VALUE = 8 * TILE_KEYS,
    PLACE_EXISTS = 16 * TILE_KEYS,
    PLACE_SCALES = PLACE_EXISTS + LOAD_BYTES
};

/* ---- Shared memory ---- */

unsigned attend_slot_bytes(const kernel_spec *spec, unsigned chunk)
{
    const unsigned keys = matrix_pitch(spec->kv.key_size), values = matrix_pitch(spec->kv.value_size);
    return chunk * (keys > values ? keys : values);
}

static unsigned scale_bytes_of(const kernel_spec *spec)
{
    return spec->kv.type                           ? 0
           : spec->kv.scales == KERNEL_KV_BY_TOKEN ? 4
           : spec->kv.scales == KERNEL_KV_BY_GROUP ? 8
                                                   : 0;
}

unsigned attend_places_bytes(const kernel_spec *spec)
{
    return PLACE_SCALES + 2 * TILE_KEYS * scale_bytes_of(spec);
}

static ptx_val places_of(ptx_builder *b, const tensor *t, ptx_val tile)
{
    ptx_val odd = ptx_and(b, ptx_as(b, PTX_U32, tile), 1);
    return ptx_mad(b, odd, (int)attend_places_bytes(t->spec), t->places);
}

/* ---- Places ---- */

static bool has_scales_by_token(const tensor *t)
{
    return t->keys.groups && t->spec->kv.scales == KERNEL_KV_BY_TOKEN;
}

static void put_scale(ptx_builder *b, const tensor *t, ptx_val places, ptx_val key, ptx_val scale,
                      bool is_key)
{
    const unsigned bytes = scale_bytes_of(t->spec);
    ptx_st_shared(b, ptx_at(b, places, key, bytes), (int)(PLACE_SCALES + (is_key ? 0 : TILE_KEYS * bytes)),
                  scale);
}

/* Key `half` of the lane's two. */
static void put_place(ptx_builder *b, const tensor *t, const kv_reader *r, const kv_slot *slot,
                      ptx_val places, ptx_val key, unsigned half, bool is_key)
{
    const kv_head head = kv_head_of(b, r, slot, t->kv_head);
    ptx_st_shared(b, ptx_at(b, places, key, 8), is_key ? PLACE_KEY : PLACE_VALUE, head.at);
    if (has_scales_by_token(t))
        ptx_assign(b, t->scales[half][is_key ? 0 : 1], head.scale);
    else if (r->array->groups)
        put_scale(b, t, places, key, head.scale, is_key);
}

/* Begins what only the first warp does, which knows the places. */
static void begin_first_warp(ptx_builder *b, const tensor *t)
{
    if (t->shape.block == WARP)
        return;
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LT, ptx_tid_x(b), WARP));
}

static void end_first_warp(ptx_builder *b, const tensor *t)
{
    if (t->shape.block != WARP)
        ptx_end_if(b);
}

void attend_place_scales(ptx_builder *b, const tensor *t, ptx_val tile)
{
    if (!has_scales_by_token(t))
        return;
    begin_first_warp(b, t);
    ptx_val places = places_of(b, t, tile);
    for (unsigned h = 0; h < 2; h++)
        for (unsigned i = 0; i < 2; i++)
            put_scale(b, t, places, h ? ptx_add(b, t->lane, WARP) : t->lane, t->scales[h][i], i == 0);
    end_first_warp(b, t);
}

/* Keys that do not exist get the place of one that does, so that loads need no conditions; where none does, the first slot. */
void attend_place_keys(ptx_builder *b, const tensor *t, ptx_val tile)
{
    kv_slot slots[2];
    ptx_val exists[2], ballots[2], none = ptx_u32(b, UINT32_MAX), zero = ptx_u64(b, 0);
    begin_first_warp(b, t);
    ptx_val places = places_of(b, t, tile);
    for (unsigned h = 0; h < 2; h++) {
        ptx_val number =
            ptx_as(b, PTX_S32,
                   ptx_mad(b, ptx_as(b, PTX_U32, tile), TILE_KEYS, h ? ptx_add(b, t->lane, WARP) : t->lane));
        ptx_val seen = ptx_setp_and(b, PTX_GE, number, t->lo, ptx_setp(b, PTX_LE, number, t->hi));
        ptx_val index = ptx_selp(b, ptx_as(b, PTX_U32, number), none, seen);
        slots[h] = kv_slot_in_sequence(b, t->spec->kv.slots == KERNEL_KV_PAGED, t->args, t->sequence, index);
        exists[h] = ptx_and(b, slots[h].exists, seen);
        ballots[h] = ptx_ballot(b, exists[h]);
    }
    ptx_val in_first = ptx_setp(b, PTX_NE, ballots[0], 0);
    ptx_val any = ptx_setp(b, PTX_NE, ptx_or(b, ballots[0], ballots[1]), 0);
    ptx_val source = ptx_and(b, ptx_bfind(b, ptx_selp(b, ballots[0], ballots[1], in_first)), WARP - 1);
    kv_slot other = {0};
    ptx_val page = ptx_cvt(b, PTX_U32, ptx_selp(b, slots[0].page, slots[1].page, in_first));
    ptx_val place = ptx_cvt(b, PTX_U32, ptx_selp(b, slots[0].place, slots[1].place, in_first));
    other.page = ptx_selp(b, ptx_cvt(b, PTX_U64, ptx_shfl_idx(b, page, source)), zero, any);
    other.place = ptx_selp(b, ptx_cvt(b, PTX_U64, ptx_shfl_idx(b, place, source)), zero, any);
    for (unsigned h = 0; h < 2; h++) {
        kv_slot slot = {.page = ptx_selp(b, slots[h].page, other.page, exists[h]),
                        .place = ptx_selp(b, slots[h].place, other.place, exists[h])};
        slot.number = ptx_mad(b, slot.page, t->args->number[NUMBER_PAGE_SLOTS], slot.place);
        ptx_val key = h ? ptx_add(b, t->lane, WARP) : t->lane;
        put_place(b, t, &t->key_reader, &slot, places, key, h, true);
        put_place(b, t, &t->value_reader, &slot, places, key, h, false);
    }
    ptx_if(b, ptx_setp(b, PTX_EQ, t->lane, 0));
    ptx_st_vec(b, PTX_SHARED, 0, places, PLACE_EXISTS, ballots, 2);
    ptx_end_if(b);
    end_first_warp(b, t);
}

ptx_val attend_existing(ptx_builder *b, const tensor *t, ptx_val tile)
{
    return ptx_ld_shared(b, PTX_U64, places_of(b, t, tile), PLACE_EXISTS);
}

static kv_head take_place(ptx_builder *b, const tensor *t, const kv_reader *r, ptx_val places, ptx_val key,
                          unsigned more, bool is_key)
{
    const unsigned bytes = scale_bytes_of(t->spec);
    kv_head head = {.at = ptx_ld_shared(b, PTX_U64, ptx_at(b, places, key, 8),
                                        (int)((is_key ? PLACE_KEY : PLACE_VALUE) + 8 * more))};
    if (r->array->groups)
        head.scale = ptx_ld_shared(b, bytes == 4 ? PTX_F32 : PTX_U64, ptx_at(b, places, key, bytes),
                                   (int)(PLACE_SCALES + (is_key ? 0 : TILE_KEYS * bytes) + bytes * more));
    return head;
}

/* ---- The ring ---- */

void attend_sync(ptx_builder *b, const tensor *t)
{
    if (t->shape.block == WARP)
        ptx_syncwarp(b);
    else
        ptx_syncthreads(b);
}

void attend_arrive(ptx_builder *b, const tensor *t)
{
    if (t->copies)
        ptx_cp_async_wait(b, t->ahead - 1);
    attend_sync(b, t);
}

ptx_val attend_slot(ptx_builder *b, const tensor *t, ptx_val slot)
{
    return ptx_mad(b, slot, (int)attend_slot_bytes(t->spec, t->shape.chunk), t->ring);
}

void attend_advance(ptx_builder *b, const tensor *t, ptx_val slot)
{
    ptx_val next = ptx_add(b, slot, 1);
    ptx_assign(b, slot, ptx_selp(b, ptx_u32(b, 0), next, ptx_setp(b, PTX_EQ, next, (int)t->shape.slots)));
}

/* ---- Chunks ---- */

/* Keys that are loaded at once, each thread one unit; and the key (u32) of a thread among them. */
static unsigned keys_at_once(const tensor *t, const kv_reader *r)
{
    return t->shape.block / r->lanes;
}

static ptx_val key_of_thread(ptx_builder *b, const kv_reader *r)
{
    return ptx_shr(b, ptx_tid_x(b), ceil_log2(r->lanes));
}

/* Whether the thread has a unit: false if there are more threads than units, or fewer units in the last turn. */
static ptx_val has_unit(ptx_builder *b, const tensor *t, const kv_reader *r, unsigned turn)
{
    ptx_val has = {0};
    if (keys_at_once(t, r) > t->shape.chunk)
        has = ptx_setp(b, PTX_LT, key_of_thread(b, r), ptx_u32(b, t->shape.chunk));
    if (!kv_turn_is_ragged(r, turn))
        return has;
    ptx_val in = ptx_setp(b, PTX_LT, r->lane, ptx_u32(b, r->units - turn * r->lanes));
    return has.kind == PTX_NOTHING ? in : ptx_and(b, has, in);
}

/* Where the thread's first unit goes, and how much further that of place `i` is. */
static ptx_val unit_target(ptx_builder *b, const tensor *t, const kv_reader *r, unsigned pitch)
{
    ptx_val at = ptx_mad(b, key_of_thread(b, r), (int)pitch, attend_slot(b, t, t->writing));
    return ptx_mad(b, r->lane, 2 * r->elements, at);
}

static int unit_offset(const tensor *t, const kv_reader *r, unsigned i, unsigned pitch)
{
    const unsigned turns = kv_turns(r);
    return (int)(i / turns * keys_at_once(t, r) * pitch + i % turns * r->lanes * 2 * r->elements);
}

static const kv_reader *reader_of(const tensor *t, const tensor_chunk *chunk)
{
    return chunk->is_values ? &t->value_reader : &t->key_reader;
}

static unsigned pitch_of(const tensor *t, const tensor_chunk *chunk)
{
    return chunk->is_values ? t->value_pitch : t->key_pitch;
}

static void find_units(ptx_builder *b, const tensor *t, ptx_val tile, unsigned chunk, tensor_chunk *c)
{
    const unsigned chunks = TILE_KEYS / t->shape.chunk;
    c->is_values = chunk >= chunks;
    const kv_reader *r = reader_of(t, c);
    const unsigned at_once = keys_at_once(t, r), turns = kv_turns(r), first = chunk % chunks * t->shape.chunk;
    ptx_val places = places_of(b, t, tile), key = key_of_thread(b, r);
    if (at_once > t->shape.chunk)
        key = ptx_and(b, key, (int)t->shape.chunk - 1);
    c->count = 0;
    for (unsigned k = 0; k < t->shape.chunk; k += at_once) {
        const kv_head head = take_place(b, t, r, places, key, first + k, !c->is_values);
        for (unsigned turn = 0; turn < turns; turn++)
            c->places[c->count++] = (kv_place){head, turn};
    }
}

static void begin_if(ptx_builder *b, ptx_val condition)
{
    if (condition.kind != PTX_NOTHING)
        ptx_if(b, condition);
}

static void end_if(ptx_builder *b, ptx_val condition)
{
    if (condition.kind != PTX_NOTHING)
        ptx_end_if(b);
}

static void put_units(ptx_builder *b, const tensor *t, const tensor_chunk *c)
{
    const kv_reader *r = reader_of(t, c);
    const unsigned pitch = pitch_of(t, c);
    ptx_val to = unit_target(b, t, r, pitch);
    for (unsigned i = 0; i < c->count; i++) {
        ptx_val pairs[UNIT_MAX / 2], has = has_unit(b, t, r, i % kv_turns(r));
        kv_decode_pairs(b, r, &c->units[i], t->type, pairs);
        begin_if(b, has);
        ptx_st_vec(b, PTX_SHARED, 0, to, unit_offset(t, r, i, pitch), pairs, (int)r->elements / 2);
        end_if(b, has);
    }
}

static void copy_units(ptx_builder *b, const tensor *t, const tensor_chunk *c)
{
    const kv_reader *r = reader_of(t, c);
    const unsigned pitch = pitch_of(t, c);
    ptx_val to = unit_target(b, t, r, pitch);
    for (unsigned i = 0; i < c->count; i++) {
        int offset;
        ptx_val has = has_unit(b, t, r, i % kv_turns(r)), at = kv_unit_address(b, r, &c->places[i], &offset);
        begin_if(b, has);
        ptx_cp_async_cg(b, to, unit_offset(t, r, i, pitch), at, offset, 0);
        end_if(b, has);
    }
}

void attend_fetch(ptx_builder *b, const tensor *t, ptx_val tile, unsigned chunk, tensor_chunk *out)
{
    find_units(b, t, tile, chunk, out);
    const kv_reader *r = reader_of(t, out);
    if (!t->copies) {
        kv_fetch(b, r, out->places, out->count, out->units);
        return;
    }
    const bool may_be_odd = r->whole.kind != PTX_NOTHING;
    if (may_be_odd) {
        ptx_uniform(b);
        ptx_if(b, r->whole);
    }
    copy_units(b, t, out);
    if (may_be_odd) {
        ptx_else(b);
        kv_fetch(b, r, out->places, out->count, out->units);
        put_units(b, t, out);
        ptx_end_if(b);
    }
    ptx_cp_async_commit(b);
    attend_advance(b, t, t->writing);
}

void attend_put(ptx_builder *b, const tensor *t, const tensor_chunk *chunk)
{
    if (t->copies)
        return;
    put_units(b, t, chunk);
    attend_advance(b, t, t->writing);
}

/* ---- Chunks of codes: a thread decodes the units that it has copied itself ---- */

static unsigned units_of_chunk(const tensor *t, const kv_reader *r)
{
    return (unsigned)ceil_div(t->shape.chunk, keys_at_once(t, r)) * kv_turns(r);
}

static unsigned code_bytes(const tensor *t, const kv_reader *r)
{
    return units_of_chunk(t, r) * 4 * kv_unit_words(r) * t->shape.block;
}

/* As many as there is room for, but fewer than would need the next tile's places in the step that finds them; their number divides that of
 * the chunks of a tile. */
unsigned attend_codes_ahead(const ptx_builder *b, const tensor *t)
{
    enum { MOST = 4, LEAST = 2 };
    const unsigned chunks = TILE_KEYS / t->shape.chunk; /* of the keys, and of the values */
    const bool are_codes =
        !t->spec->kv.type && !format_is_blocks(t->row->format) && t->spec->kv.scales != KERNEL_KV_BY_GROUP;
    const unsigned keys = code_bytes(t, &t->key_reader), values = code_bytes(t, &t->value_reader),
                   room = t->shape.row_tiles * WARP_ROWS * t->key_pitch;
    unsigned ahead = chunks < MOST ? chunks : MOST;
    if (!are_codes || !t->keeps_queries || ptx_target(b)->number < 80)
        return 0;
    while (ahead * (keys > values ? keys : values) > room)
        ahead /= 2;
    return ahead < LEAST ? 0 : ahead;
}

/* Where unit `i` of a chunk is. */
static int code_offset(const tensor *t, const kv_reader *r, unsigned chunk, unsigned i)
{
    const unsigned keys = code_bytes(t, &t->key_reader), values = code_bytes(t, &t->value_reader);
    return (int)(chunk % t->codes_ahead * (keys > values ? keys : values) +
                 i * 4 * kv_unit_words(r) * t->shape.block);
}

static ptx_val code_place_of(ptx_builder *b, const tensor *t, const kv_reader *r)
{
    return ptx_mad(b, ptx_tid_x(b), (int)(4 * kv_unit_words(r)), t->codes);
}

void attend_copy_codes(ptx_builder *b, const tensor *t, ptx_val tile, unsigned chunk)
{
    tensor_chunk c;
    find_units(b, t, tile, chunk, &c);
    const kv_reader *r = reader_of(t, &c);
    const unsigned words = kv_unit_words(r);
    ptx_val to = code_place_of(b, t, r);
    if (r->whole.kind != PTX_NOTHING) {
        ptx_uniform(b);
        ptx_if(b, r->whole);
    }
    for (unsigned i = 0; i < c.count; i++) {
        int offset;
        ptx_val at = kv_unit_address(b, r, &c.places[i], &offset);
        ptx_cp_async_ca(b, to, code_offset(t, r, chunk, i), at, offset, 4 * words, 0);
    }
    if (r->whole.kind != PTX_NOTHING) {
        ptx_else(b);
        kv_fetch(b, r, c.places, c.count, c.units);
        for (unsigned i = 0; i < c.count; i++)
            ptx_st_vec(b, PTX_SHARED, 0, to, code_offset(t, r, chunk, i), c.units[i].words, (int)words);
        ptx_end_if(b);
    }
    ptx_cp_async_commit(b);
}

void attend_decode_codes(ptx_builder *b, const tensor *t, ptx_val tile, unsigned chunk)
{
    tensor_chunk c;
    find_units(b, t, tile, chunk, &c);
    const kv_reader *r = reader_of(t, &c);
    ptx_val from = code_place_of(b, t, r);
    ptx_cp_async_wait(b, t->codes_ahead - 1);
    for (unsigned i = 0; i < c.count; i++) {
        ptx_ld_vec(b, PTX_SHARED, 0, PTX_U32, from, code_offset(t, r, chunk, i), c.units[i].words,
                   (int)kv_unit_words(r));
        c.units[i].scale = r->scale.kind != PTX_NOTHING ? r->scale : c.places[i].head.scale;
    }
    put_units(b, t, &c);
    attend_advance(b, t, t->writing);
}

/* ---- Opening ---- */

/* Threads that share a head: a power of two, of which as few as possible have nothing to load. */
static unsigned lanes_for(uint64_t size)
{
    const unsigned units = (unsigned)ceil_div(size, UNIT_MAX);
    unsigned best = 1u << ceil_log2(units < 8 ? units : 8);
    for (unsigned lanes = 8; lanes <= WARP && units > 8; lanes *= 2)
        if (ceil_div(units, lanes) * lanes <= ceil_div(units, best) * best)
            best = lanes;
    return best;
}

void attend_keys_begin(ptx_builder *b, tensor *t)
{
    const codec_state state = kv_open(b, &t->keys);
    const unsigned keys = lanes_for(t->spec->kv.key_size), values = lanes_for(t->spec->kv.value_size);
    t->key_reader = kv_reader_begin(b, &t->keys, &state, UNIT_MAX, keys,
                                    ptx_and(b, ptx_tid_x(b), (int)keys - 1), t->kv_head);
    t->value_reader = kv_reader_begin(b, &t->values, &state, UNIT_MAX, values,
                                      ptx_and(b, ptx_tid_x(b), (int)values - 1), t->kv_head);
    for (unsigned i = 0; i < 4 && has_scales_by_token(t); i++)
        t->scales[i / 2][i % 2] = ptx_var(b, ptx_f32(b, 0));
}
