/* Attention in mode exact. A warp has a tile of 64 keys and all rows of its block: scores, weights, weighted values. The 32
 * lanes of an exact sum are spread over a team of neighbouring threads, each of which has several; and each thread has
 * some columns of the values. */
#include "kernels/attention/attention.h"
#include "kernels/functions.h"

enum {
    CHUNK = 8, /* elements of a sum that follow each other in one of its lanes */
    SUM_LANES_ALL = 32,
    FETCH_WORDS = 64, /* registers for what is being loaded */
    SUMS_MAX = 16,
    COLUMNS_MAX = 64 /* accumulators of a thread */
};

/* How a warp shares scores: teams of threads, each with a few keys at once. */
typedef struct score_shape {
    unsigned lanes;  /* threads of a team */
    unsigned turns;  /* chunks of a thread, at most */
    unsigned keys;   /* of a team at once */
    unsigned passes; /* until all keys of a tile are done */
} score_shape;

/* How it shares values: columns among lanes and, if there are few columns, rows too. */
typedef struct value_shape {
    unsigned elements, lanes, turns;
    unsigned row_lanes, rows; /* parts of the rows; rows of a thread */
    unsigned keys;            /* at once */
} value_shape;

typedef struct exact {
    const kernel_row *row;
    const kernel_spec *spec;
    const kernel_args *args;
    attention_shape shape;
    score_shape score;
    value_shape value;
    kv_array keys, values;
    kv_reader key_reader, value_reader;
    ptx_val warp, lane;           /* u32 */
    ptx_val token, kv_head, head; /* u64: the first token; the head of the cache; the first head of queries */
    ptx_val head_end;             /* u64: the end of those that share the head of the cache */
    seen_keys seen[ATTENTION_TOKENS]; /* variables; of tokens that have no part in a pass, nothing is seen */
    ptx_val active[ATTENTION_TOKENS]; /* predicates: the tokens of the pass; with several tokens */
    ptx_val slope[ATTENTION_ROWS];    /* f32 */
    ptx_val q;                        /* shared f32 [rows, pitch of q] */
    ptx_val places;                   /* shared, the warp's: where its keys and values are */
    ptx_val weights;                  /* shared f32 [keys, rows], the warp's: first scores, then weights */
    ptx_val states_o, states_ml;      /* shared: [warps, rows, value size] and [warps, rows, 2] */
} exact;

static unsigned log2_of(unsigned n)
{
    return ceil_log2(n);
}

static unsigned power_of_two(unsigned n)
{
    return 1u << ceil_log2(n);
}

static unsigned rows_used(const exact *e)
{
    return e->shape.heads * e->shape.tokens;
}

/* ---- Shapes ---- */

static score_shape score_shape_of(const kernel_spec *spec)
{
    const unsigned chunks = (unsigned)(spec->kv.key_size / CHUNK);
    score_shape s = {.lanes = chunks >= SUM_LANES_ALL ? 8 : chunks >= 3 ? 4 : chunks};
    s.turns = (unsigned)ceil_div(chunks, s.lanes);
    s.keys = 2 * s.lanes < 4 ? 2 * s.lanes : 4;
    s.passes = TILE_KEYS / (WARP / s.lanes * s.keys);
    return s;
}

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static value_shape value_shape_of(const kernel_spec *spec, unsigned rows)
{
    const unsigned size = (unsigned)spec->kv.value_size;
    value_shape s = {.elements = size <= WARP * UNIT_MAX / 2 ? UNIT_MAX / 2 : UNIT_MAX};
    const unsigned units = (unsigned)ceil_div(size, s.elements);
    s.lanes = power_of_two(least_of(units, WARP));
    s.turns = (unsigned)ceil_div(units, s.lanes);
    s.row_lanes = least_of(WARP / s.lanes, rows);
    s.rows = rows / s.row_lanes;
    s.keys = s.turns * s.elements <= 4 ? 8 : s.turns * s.elements <= 8 ? 4 : 2;
    return s;
}

static unsigned q_pitch(const exact *e)
{
    return e->score.turns * e->score.lanes * CHUNK;
}

/* ---- Shared memory ---- */

/* Of a warp: two addresses of each key, and two scales (f32, or addresses). */
enum { PLACE_KEY = 0, PLACE_VALUE = 8 * TILE_KEYS, PLACE_SCALES = 16 * TILE_KEYS };

static unsigned scale_place_bytes(const exact *e)
{
    return e->keys.groups == 0 ? 0 : e->spec->kv.scales == KERNEL_KV_BY_TOKEN ? 4 : 8;
}

static unsigned places_bytes(const exact *e)
{
    return PLACE_SCALES + 2 * TILE_KEYS * scale_place_bytes(e);
}

static void open_memory(ptx_builder *b, exact *e)
{
    const attention_shape *s = &e->shape;
    const unsigned weights = TILE_KEYS * s->rows, values = (unsigned)e->spec->kv.value_size;
    e->q = ptx_shared(b, "queries", PTX_F32, s->rows * q_pitch(e), LOAD_BYTES);
    e->places = ptx_mad(b, e->warp, (int)places_bytes(e),
                        ptx_shared(b, "places", PTX_U64, s->warps * places_bytes(e) / 8, LOAD_BYTES));
    e->weights = ptx_mad(b, e->warp, (int)(4 * weights),
                         ptx_shared(b, "weights", PTX_F32, s->warps * weights, LOAD_BYTES));
    if (e->spec->select.phase != KERNEL_PHASE_WHOLE)
        return;
    e->states_o = ptx_shared(b, "sums", PTX_F32, s->warps * s->rows * values, LOAD_BYTES);
    e->states_ml = ptx_shared(b, "largest", PTX_F32, s->warps * s->rows * 2, LOAD_BYTES);
}

/* ---- Rows ---- */

/* Whether a row (u32) exists, its token and its head (u64). */
typedef struct row_place {
    ptx_val exists, token, head;
} row_place;

static row_place row_place_of(ptx_builder *b, const exact *e, ptx_val row)
{
    ptx_val token = e->shape.tokens > 1 ? ptx_div(b, row, (int)e->shape.heads) : ptx_u32(b, 0);
    ptx_val head = e->shape.tokens > 1 ? ptx_sub(b, row, ptx_mul(b, token, (int)e->shape.heads)) : row;
    row_place p = {.token = ptx_add(b, e->token, ptx_cvt(b, PTX_U64, token)),
                   .head = ptx_add(b, e->head, ptx_cvt(b, PTX_U64, head))};
    p.exists = ptx_setp(b, PTX_LT, p.token, e->args->number[NUMBER_M]);
    p.exists = ptx_setp_and(b, PTX_LT, p.head, e->head_end, p.exists);
    if (e->shape.rows != rows_used(e))
        p.exists = ptx_setp_and(b, PTX_LT, row, ptx_u32(b, rows_used(e)), p.exists);
    return p;
}

/* Whether a row exists, and its token takes part in the pass. */
static ptx_val row_takes_part(ptx_builder *b, const exact *e, ptx_val row, const row_place *place)
{
    if (e->shape.tokens == 1)
        return place->exists;
    ptx_val is = e->active[0];
    for (unsigned t = 1; t < e->shape.tokens; t++) {
        ptx_val later = ptx_setp(b, PTX_GE, row, ptx_u32(b, t * e->shape.heads));
        ptx_val both = ptx_and(b, later, e->active[t]);
        is = ptx_or(b, both, ptx_and(b, is, ptx_not(b, later)));
    }
    return ptx_and(b, is, place->exists);
}

/* The queries as f32 in shared memory; zeros behind the end of a head, and in rows that do not exist. */
static void load_queries(ptx_builder *b, const exact *e)
{
    const unsigned pitch = q_pitch(e), size = (unsigned)e->spec->kv.key_size,
                   bytes = element_bytes(e->spec->data);
    ptx_val i = ptx_for(b, ptx_tid_x(b), ptx_u32(b, e->shape.rows * pitch), ptx_u32(b, e->shape.block));
    ptx_val row = ptx_div(b, i, (int)pitch), element = ptx_sub(b, i, ptx_mul(b, row, (int)pitch));
    const row_place place = row_place_of(b, e, row);
    ptx_val at =
        ptx_mad(b, place.token, e->args->number[NUMBER_X_STRIDE], emit_multiply(b, place.head, size));
    at = ptx_add(b, at, ptx_cvt(b, PTX_U64, element));
    ptx_val x = ptx_var(b, ptx_f32(b, 0));
    ptx_if(b, ptx_setp_and(b, PTX_LT, element, ptx_u32(b, size), place.exists));
    ptx_assign(b, x, emit_load(b, e->spec->data, ptx_at(b, e->args->operand[QDNN_OPERAND_X], at, bytes), 0));
    ptx_end_if(b);
    ptx_st_shared(b, ptx_at(b, e->q, i, 4), 0, x);
    ptx_end_for(b);
}

/* ---- Where the keys of a tile are ---- */

/* What a lane knows of its keys, numbers lane and lane + 32 of the tile. */
typedef struct tile_keys {
    ptx_val number[2]; /* s32: in the sequence */
    ptx_val exists[2]; /* predicates */
    ptx_val any;       /* u32: not 0 if any key of the tile exists */
} tile_keys;

static void put_place(ptx_builder *b, const exact *e, const kv_reader *r, const kv_slot *slot, ptx_val key,
                      bool is_key)
{
    const unsigned bytes = scale_place_bytes(e);
    const kv_head head = kv_head_of(b, r, slot, e->kv_head);
    ptx_st_shared(b, ptx_at(b, e->places, key, 8), is_key ? PLACE_KEY : PLACE_VALUE, head.at);
    if (bytes)
        ptx_st_shared(b, ptx_at(b, e->places, key, bytes),
                      (int)(PLACE_SCALES + (is_key ? 0 : TILE_KEYS * bytes)), head.scale);
}

/* Keys that do not exist get the place of one that does, so that loads need no conditions. */
static tile_keys find_keys(ptx_builder *b, const exact *e, ptx_val tile, ptx_val lo, ptx_val hi)
{
    tile_keys k;
    kv_slot slots[2];
    ptx_val ballots[2];
    ptx_val none = ptx_u32(b, UINT32_MAX);
    for (unsigned h = 0; h < 2; h++) {
        k.number[h] =
            ptx_as(b, PTX_S32,
                   ptx_mad(b, ptx_as(b, PTX_U32, tile), TILE_KEYS, h ? ptx_add(b, e->lane, WARP) : e->lane));
        ptx_val seen = ptx_setp_and(b, PTX_GE, k.number[h], lo, ptx_setp(b, PTX_LE, k.number[h], hi));
        ptx_val index = ptx_selp(b, ptx_as(b, PTX_U32, k.number[h]), none, seen);
        slots[h] =
            kv_slot_in_sequence(b, e->spec->kv.slots == KERNEL_KV_PAGED, e->args, e->seen[0].sequence, index);
        k.exists[h] = ptx_and(b, slots[h].exists, seen);
        ballots[h] = ptx_ballot(b, k.exists[h]);
    }
    k.any = ptx_or(b, ballots[0], ballots[1]);
    ptx_val in_first = ptx_setp(b, PTX_NE, ballots[0], 0);
    ptx_val mask = ptx_selp(b, ballots[0], ballots[1], in_first);
    ptx_val source = ptx_bfind(b, mask);
    kv_slot other = {0};
    ptx_val page = ptx_selp(b, slots[0].page, slots[1].page, in_first);
    ptx_val place = ptx_selp(b, slots[0].place, slots[1].place, in_first);
    other.page = ptx_cvt(b, PTX_U64, ptx_shfl_idx(b, ptx_cvt(b, PTX_U32, page), source));
    other.place = ptx_cvt(b, PTX_U64, ptx_shfl_idx(b, ptx_cvt(b, PTX_U32, place), source));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_NE, k.any, 0));
    for (unsigned h = 0; h < 2; h++) {
        kv_slot slot = {.page = ptx_selp(b, slots[h].page, other.page, k.exists[h]),
                        .place = ptx_selp(b, slots[h].place, other.place, k.exists[h])};
        slot.number = ptx_mad(b, slot.page, e->args->number[NUMBER_PAGE_SLOTS], slot.place);
        ptx_val key = h ? ptx_add(b, e->lane, WARP) : e->lane;
        put_place(b, e, &e->key_reader, &slot, key, true);
        put_place(b, e, &e->value_reader, &slot, key, false);
    }
    ptx_end_if(b);
    ptx_syncwarp(b);
    return k;
}

/* The place of a key (u32, within the tile) plus `more` keys. */
static kv_head take_place(ptx_builder *b, const exact *e, ptx_val key, unsigned more, bool is_key)
{
    const unsigned bytes = scale_place_bytes(e);
    kv_head head = {.at = ptx_ld_shared(b, PTX_U64, ptx_at(b, e->places, key, 8),
                                        (int)((is_key ? PLACE_KEY : PLACE_VALUE) + 8 * more))};
    if (bytes)
        head.scale = ptx_ld_shared(b, bytes == 4 ? PTX_F32 : PTX_U64, ptx_at(b, e->places, key, bytes),
                                   (int)(PLACE_SCALES + (is_key ? 0 : TILE_KEYS * bytes) + bytes * more));
    return head;
}

/* ---- Scores ---- */

/* The products of some keys with all rows, of the turns that have been loaded so far. */
typedef struct scoring {
    const exact *e;
    kv_head heads[4];
    kv_unit units[UNITS_AT_ONCE]; /* [turn in order][key] */
    unsigned order[128];          /* of turns */
    unsigned count, at_once, next;
} scoring;

/* The turns in the order in which the tree of a sum joins them: those of a lane of the sum follow each other. */
static void order_turns(const score_shape *s, unsigned first, unsigned step, scoring *out)
{
    const unsigned all = SUM_LANES_ALL / s->lanes;
    if (step == all) {
        for (unsigned turn = first; turn < s->turns; turn += all)
            out->order[out->count++] = turn;
        return;
    }
    order_turns(s, first, 2 * step, out);
    order_turns(s, first + step, 2 * step, out);
}

/* Loads the next few turns of all keys, unless they are there. */
static void load_turns(ptx_builder *b, scoring *s)
{
    kv_place places[UNITS_AT_ONCE] = {0};
    const unsigned keys = s->e->score.keys;
    if (s->next % s->at_once != 0)
        return;
    const unsigned turns = least_of(s->at_once, s->count - s->next);
    for (unsigned i = 0; i < turns; i++)
        for (unsigned key = 0; key < keys; key++)
            places[i * keys + key] = (kv_place){s->heads[key], s->order[s->next + i]};
    kv_fetch(b, &s->e->key_reader, places, turns * keys, s->units);
}

/* Adds the products of a turn to `sums` ([keys, rows]; empty ones are 0). */
static void add_turn(ptx_builder *b, scoring *s, ptx_val *sums)
{
    const exact *e = s->e;
    const unsigned keys = e->score.keys, turn = s->order[s->next], rows = e->shape.rows;
    ptx_val k[4][CHUNK], q[CHUNK];
    load_turns(b, s);
    for (unsigned key = 0; key < keys; key++)
        kv_decode(b, &e->key_reader, &s->units[s->next % s->at_once * keys + key], turn, k[key]);
    for (unsigned row = 0; row < rows; row++) {
        ptx_val at = ptx_at(b, e->q, e->key_reader.lane, 4 * CHUNK);
        for (unsigned v = 0; v < CHUNK; v += 4)
            ptx_ld_vec(b, PTX_SHARED, 0, PTX_F32, at,
                       (int)(4 * (row * q_pitch(e) + turn * e->score.lanes * CHUNK + v)), &q[v], 4);
        for (unsigned i = 0; i < CHUNK; i++)
            for (unsigned key = 0; key < keys; key++) {
                ptx_val *sum = &sums[key * rows + row];
                *sum = ptx_fma(b, q[i], k[key][i], sum->kind == PTX_NOTHING ? ptx_f32(b, 0) : *sum);
            }
    }
    s->next++;
}

/* The sums of lanes first, first + step, ... of the thread's; false: it has none of them. */
static bool sum_of_lanes(ptx_builder *b, scoring *s, unsigned first, unsigned step, ptx_val sums[SUMS_MAX])
{
    const score_shape *shape = &s->e->score;
    const unsigned all = SUM_LANES_ALL / shape->lanes, count = shape->keys * s->e->shape.rows;
    if (first >= shape->turns)
        return false;
    if (step == all) {
        for (unsigned i = 0; i < count; i++)
            sums[i] = (ptx_val){0};
        for (unsigned turn = first; turn < shape->turns; turn += all)
            add_turn(b, s, sums);
        return true;
    }
    ptx_val others[SUMS_MAX];
    sum_of_lanes(b, s, first, 2 * step, sums);
    if (sum_of_lanes(b, s, first + step, 2 * step, others))
        for (unsigned i = 0; i < count; i++)
            sums[i] = ptx_add(b, sums[i], others[i]);
    return true;
}

/* Joins the sums of a team's threads; while there are several, partners go on with half of them each. The thread's are then
 * `count` from number `first` (u32) on; `holds`: it is the first that has them. */
static unsigned join_team(ptx_builder *b, const exact *e, unsigned count, ptx_val *sums, ptx_val *first,
                          ptx_val *holds)
{
    *first = ptx_u32(b, 0);
    *holds = (ptx_val){0};
    for (unsigned distance = e->score.lanes / 2; distance > 0; distance /= 2) {
        ptx_val is_upper = ptx_setp(b, PTX_NE, ptx_and(b, e->lane, (int)distance), 0);
        if (count == 1) {
            sums[0] = ptx_add(b, sums[0], ptx_shfl_bfly(b, sums[0], distance));
            ptx_val is_lower = ptx_not(b, is_upper);
            *holds = holds->kind == PTX_NOTHING ? is_lower : ptx_and(b, *holds, is_lower);
            continue;
        }
        count /= 2;
        for (unsigned i = 0; i < count; i++) {
            ptx_val kept = ptx_selp(b, sums[i + count], sums[i], is_upper);
            ptx_val sent = ptx_selp(b, sums[i], sums[i + count], is_upper);
            sums[i] = ptx_add(b, kept, ptx_shfl_bfly(b, sent, distance));
        }
        *first = ptx_add(b, *first, ptx_selp(b, ptx_u32(b, count), ptx_u32(b, 0), is_upper));
    }
    return count;
}

/* Scores go to [keys, rows]; a team's keys are as many keys apart as there are teams. */
static void put_scores(ptx_builder *b, const exact *e, ptx_val key, ptx_val *sums)
{
    const unsigned rows = e->shape.rows, teams = WARP / e->score.lanes;
    ptx_val first, holds;
    const unsigned count = join_team(b, e, e->score.keys * rows, sums, &first, &holds);
    const unsigned each = least_of(count, rows);
    ptx_val which = ptx_shr(b, first, log2_of(rows)), row = ptx_and(b, first, (int)rows - 1);
    ptx_val at = ptx_mad(b, which, (int)teams, key);
    at = ptx_at(b, e->weights, ptx_mad(b, at, (int)rows, row), 4);
    if (holds.kind != PTX_NOTHING)
        ptx_if(b, holds);
    for (unsigned i = 0; i < count; i += each)
        ptx_st_vec(b, PTX_SHARED, 0, at, (int)(i * teams * 4), &sums[i], (int)each);
    if (holds.kind != PTX_NOTHING)
        ptx_end_if(b);
}

static void compute_scores(ptx_builder *b, const exact *e)
{
    const score_shape *s = &e->score;
    const unsigned teams = WARP / s->lanes, at_once = FETCH_WORDS / (kv_unit_words(&e->key_reader) * s->keys);
    ptx_val team = ptx_shr(b, e->lane, log2_of(s->lanes));
    ptx_val key = ptx_for(b, team, ptx_u32(b, TILE_KEYS), ptx_u32(b, teams * s->keys));
    scoring scores = {.e = e};
    ptx_val sums[SUMS_MAX];
    order_turns(s, 0, 1, &scores);
    scores.at_once = least_of(scores.count, at_once ? least_of(at_once, UNITS_AT_ONCE / s->keys) : 1);
    for (unsigned i = 0; i < s->keys; i++)
        scores.heads[i] = take_place(b, e, key, i * teams, true);
    sum_of_lanes(b, &scores, 0, 1, sums);
    for (unsigned i = 0; i < s->keys * e->shape.rows; i++)
        sums[i] = ptx_add(b, sums[i], ptx_f32(b, 0));
    put_scores(b, e, key, sums);
    ptx_end_for(b);
    ptx_syncwarp(b);
}

/* ---- Weights ---- */

static ptx_val mask_of(ptx_builder *b, const exact *e, unsigned row, ptx_val key, ptx_val exists)
{
    const qdnnDataType_t type = (qdnnDataType_t)e->spec->select.mask;
    ptx_val token = ptx_add(b, e->token, ptx_u64(b, row / e->shape.heads)), mask = ptx_var(b, ptx_f32(b, 0));
    ptx_val at =
        ptx_mad(b, token, e->args->number[NUMBER_MASK_STRIDE], ptx_cvt(b, PTX_U64, ptx_as(b, PTX_U32, key)));
    if (e->spec->attention.mask_heads)
        at = ptx_mad(b, ptx_add(b, e->head, ptx_u64(b, row % e->shape.heads)),
                     e->args->number[NUMBER_MASK_HEAD_STRIDE], at);
    ptx_if(b, exists);
    ptx_val address = ptx_at(b, e->args->operand[QDNN_OPERAND_MASK], at, element_bytes(type));
    ptx_assign(b, mask, emit_load(b, type, address, 0));
    ptx_end_if(b);
    return mask;
}

/* t of a score. */
static ptx_val biased(ptx_builder *b, const exact *e, unsigned row, ptx_val key, ptx_val score,
                      ptx_val exists)
{
    const kernel_attention *a = &e->spec->attention;
    const ptx_val *number = e->args->number;
    ptx_val t = a->cap
                    ? ptx_mul(b, number[NUMBER_LIMIT], emit_tanh(b, ptx_mul(b, score, number[NUMBER_FACTOR])))
                    : ptx_mul(b, score, number[NUMBER_ALPHA]),
            mask;
    switch (a->adds) {
    case KERNEL_ADDS_NONE:
        return t;
    case KERNEL_ADDS_MASK:
        return ptx_add(b, t, mask_of(b, e, row, key, exists));
    case KERNEL_ADDS_SLOPED_MASK:
        mask = mask_of(b, e, row, key, exists);
        return ptx_add(b, t, ptx_mul(b, e->slope[row], mask));
    case KERNEL_ADDS_ALIBI:
        break;
    }
    ptx_val distance = ptx_cvt_rn(b, PTX_F32, ptx_sub(b, key, e->seen[row / e->shape.heads].end));
    return ptx_add(b, t, ptx_mul(b, e->slope[row], distance));
}

static ptx_val over_warp(ptx_builder *b, ptx_val x, bool is_sum)
{
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
        ptx_val other = ptx_shfl_bfly(b, x, distance);
        x = is_sum ? ptx_add(b, x, other) : ptx_max(b, x, other);
    }
    return x;
}

/* Scores become weights; those of keys that a row does not see become -1. Gives m and l of each row, and whether every row
 * sees every key. */
static ptx_val compute_weights(ptx_builder *b, const exact *e, const tile_keys *keys, const ptx_val *m,
                               const ptx_val *l)
{
    const unsigned rows = e->shape.rows;
    ptx_val x[2][ATTENTION_ROWS], at[2], zero = ptx_f32(b, 0), lowest = ptx_bits(b, PTX_F32, 0xFF800000);
    ptx_val all = ptx_and(b, keys->exists[0], keys->exists[1]);
    for (unsigned h = 0; h < 2; h++) {
        at[h] = ptx_at(b, e->weights, h ? ptx_add(b, e->lane, WARP) : e->lane, 4 * rows);
        ptx_ld_vec(b, PTX_SHARED, 0, PTX_F32, at[h], 0, x[h], (int)rows);
    }
    for (unsigned row = 0; row < rows_used(e); row++) {
        const seen_keys *seen = &e->seen[row / e->shape.heads];
        ptx_val exists[2], p[2];
        for (unsigned h = 0; h < 2; h++) {
            exists[h] = ptx_setp_and(b, PTX_GE, keys->number[h], seen->first, keys->exists[h]);
            exists[h] = ptx_setp_and(b, PTX_LE, keys->number[h], seen->last, exists[h]);
            x[h][row] = biased(b, e, row, keys->number[h], x[h][row], exists[h]);
            exists[h] = ptx_setp_and(b, PTX_NEU, x[h][row], lowest, exists[h]);
            all = ptx_and(b, all, exists[h]);
            x[h][row] = ptx_selp(b, x[h][row], lowest, exists[h]);
        }
        ptx_assign(b, m[row], over_warp(b, ptx_max(b, x[0][row], x[1][row]), false));
        for (unsigned h = 0; h < 2; h++) {
            p[h] = emit_exp(b, ptx_sub(b, x[h][row], m[row]));
            x[h][row] = ptx_selp(b, p[h], ptx_f32(b, -1), exists[h]);
            p[h] = ptx_selp(b, p[h], zero, exists[h]);
        }
        ptx_assign(b, l[row], over_warp(b, ptx_add(b, p[0], p[1]), true));
    }
    for (unsigned row = rows_used(e); row < rows; row++)
        x[0][row] = x[1][row] = zero;
    for (unsigned h = 0; h < 2; h++)
        ptx_st_vec(b, PTX_SHARED, 0, at[h], 0, x[h], (int)rows);
    ptx_syncwarp(b);
    return ptx_vote_all(b, all);
}

/* ---- Values ---- */

static unsigned columns_of_turn(const exact *e)
{
    return e->value.rows * e->value.elements;
}

/* The lane's part of the rows: u32. */
static ptx_val row_part(ptx_builder *b, const exact *e)
{
    return ptx_and(b, ptx_shr(b, e->lane, log2_of(e->value.lanes)), (int)e->value.row_lanes - 1);
}

/* o[turn][row][element] += p * v, over the keys of the tile in their order. */
static void add_values(ptx_builder *b, const exact *e, bool is_checked, const ptx_val *o)
{
    const value_shape *s = &e->value;
    ptx_val part = ptx_mul(b, row_part(b, e), (int)(4 * s->rows));
    ptx_rolled(b);
    ptx_val key = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, TILE_KEYS), ptx_u32(b, s->keys));
    kv_place places[UNITS_AT_ONCE];
    kv_unit units[UNITS_AT_ONCE];
    ptx_val at = ptx_add(b, ptx_at(b, e->weights, key, 4 * e->shape.rows), part);
    for (unsigned i = 0; i < s->keys; i++)
        for (unsigned turn = 0; turn < s->turns; turn++)
            places[i * s->turns + turn] = (kv_place){take_place(b, e, key, i, false), turn};
    kv_fetch(b, &e->value_reader, places, s->keys * s->turns, units);
    for (unsigned i = 0; i < s->keys; i++) {
        ptx_val p[ATTENTION_ROWS], unseen[ATTENTION_ROWS], v[UNIT_MAX];
        ptx_ld_vec(b, PTX_SHARED, 0, PTX_F32, at, (int)(4 * i * e->shape.rows), p, (int)s->rows);
        for (unsigned row = 0; row < s->rows && is_checked; row++)
            unseen[row] = ptx_setp(b, PTX_LT, p[row], 0.0f);
        for (unsigned turn = 0; turn < s->turns; turn++) {
            kv_decode(b, &e->value_reader, &units[i * s->turns + turn], turn, v);
            for (unsigned row = 0; row < s->rows; row++)
                for (unsigned c = 0; c < s->elements; c++) {
                    ptx_val sum = o[turn * columns_of_turn(e) + row * s->elements + c];
                    if (is_checked)
                        ptx_unless(b, unseen[row]);
                    ptx_into(b, sum);
                    ptx_fma(b, p[row], v[c], sum);
                }
        }
    }
    ptx_end_for(b);
}

/* ---- A tile ---- */

/* The address of the lane's columns of row `row` of its part, at turn 0, and the row as u32. */
static void store_state(ptx_builder *b, const exact *e, ptx_val tile, const ptx_val *m, const ptx_val *l,
                        const ptx_val *o)
{
    const value_shape *s = &e->value;
    const unsigned size = (unsigned)e->spec->kv.value_size;
    const bool is_whole = e->spec->select.phase == KERNEL_PHASE_WHOLE;
    const ptx_space space = is_whole ? PTX_SHARED : PTX_GLOBAL;
    ptx_val lane = ptx_and(b, e->lane, (int)s->lanes - 1);
    ptx_val part = ptx_mul(b, row_part(b, e), (int)s->rows);
    ptx_val first = ptx_mul(b, e->warp, (int)e->shape.rows),
            column = ptx_mul(b, lane, (int)(4 * s->elements));
    for (unsigned row = 0; row < s->rows; row++) {
        ptx_val number = row ? ptx_add(b, part, (int)row) : part, at;
        ptx_val holds = ptx_setp(b, PTX_LT, e->lane, ptx_u32(b, s->lanes * s->row_lanes));
        if (is_whole) {
            at = ptx_add(b, ptx_at(b, e->states_o, ptx_add(b, first, number), 4 * size), column);
        } else {
            const row_place place = row_place_of(b, e, number);
            holds = ptx_and(b, holds, row_takes_part(b, e, number, &place));
            const state_place to = state_place_of(b, e->spec, e->args, place.token, place.head,
                                                  ptx_cvt(b, PTX_U64, ptx_as(b, PTX_U32, tile)));
            at = ptx_add(b, to.o, ptx_cvt(b, PTX_U64, column));
        }
        for (unsigned turn = 0; turn < s->turns; turn++) {
            ptx_val has = kv_turn_is_ragged(&e->value_reader, turn)
                              ? ptx_setp_and(b, PTX_LT, lane,
                                             ptx_u32(b, e->value_reader.units - turn * s->lanes), holds)
                              : holds;
            ptx_if(b, has);
            for (unsigned c = 0; c < s->elements; c += 4)
                ptx_st_vec(b, space, 0, at, (int)(4 * (turn * s->lanes * s->elements + c)),
                           &o[turn * columns_of_turn(e) + row * s->elements + c], 4);
            ptx_end_if(b);
        }
    }
    ptx_if(b, ptx_setp(b, PTX_EQ, e->lane, 0));
    for (unsigned row = 0; row < e->shape.rows; row++) {
        ptx_val pair[2] = {m[row], l[row]};
        if (is_whole) {
            ptx_st_vec(b, PTX_SHARED, 0, ptx_at(b, e->states_ml, first, 8), (int)(8 * row), pair, 2);
            continue;
        }
        ptx_val number = ptx_u32(b, row);
        const row_place place = row_place_of(b, e, number);
        const state_place to = state_place_of(b, e->spec, e->args, place.token, place.head,
                                              ptx_cvt(b, PTX_U64, ptx_as(b, PTX_U32, tile)));
        ptx_if(b, row_takes_part(b, e, number, &place));
        ptx_st_vec(b, PTX_GLOBAL, 0, to.ml, 0, pair, 2);
        ptx_end_if(b);
    }
    ptx_end_if(b);
}

static void do_tile(ptx_builder *b, const exact *e, ptx_val tile, ptx_val lo, ptx_val hi)
{
    ptx_val m[ATTENTION_ROWS], l[ATTENTION_ROWS], o[COLUMNS_MAX];
    const unsigned columns = e->value.turns * columns_of_turn(e);
    for (unsigned row = 0; row < e->shape.rows; row++) {
        m[row] = ptx_var(b, ptx_bits(b, PTX_F32, 0xFF800000));
        l[row] = ptx_var(b, ptx_f32(b, 0));
    }
    for (unsigned i = 0; i < columns; i++)
        o[i] = ptx_var(b, ptx_f32(b, 0));
    const tile_keys keys = find_keys(b, e, tile, lo, hi);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_NE, keys.any, 0));
    compute_scores(b, e);
    ptx_val all = compute_weights(b, e, &keys, m, l);
    ptx_uniform(b);
    ptx_if(b, all);
    add_values(b, e, false, o);
    ptx_else(b);
    add_values(b, e, true, o);
    ptx_end_if(b);
    ptx_end_if(b);
    store_state(b, e, tile, m, l, o);
    ptx_syncwarp(b);
}

/* ---- Rows of a block, from their states ---- */

typedef struct finisher {
    const exact *e;
    unsigned threads;    /* of a row */
    ptx_val row, column; /* u32: the thread's */
    row_state strip, all;
} finisher;

static finisher finisher_begin(ptx_builder *b, const exact *e)
{
    finisher f = {.e = e, .threads = e->shape.block / e->shape.rows};
    const unsigned columns = (unsigned)ceil_div(e->spec->kv.value_size, f.threads);
    f.row = ptx_shr(b, ptx_tid_x(b), log2_of(f.threads));
    f.column = ptx_and(b, ptx_tid_x(b), (int)f.threads - 1);
    f.strip = state_begin(b, columns);
    f.all = state_begin(b, columns);
    return f;
}

static ptx_val column_exists(ptx_builder *b, const finisher *f, unsigned column)
{
    return ptx_setp(b, PTX_LT, f->column,
                    ptx_u32(b, (uint32_t)f->e->spec->kv.value_size - column * f->threads));
}

static bool column_is_ragged(const finisher *f, unsigned column)
{
    return (column + 1) * f->threads > f->e->spec->kv.value_size;
}

static ptx_val shared_column(ptx_builder *b, const void *user, unsigned i, unsigned column)
{
    const finisher *f = user;
    const unsigned size = (unsigned)f->e->spec->kv.value_size, rows = f->e->shape.rows;
    ptx_val at = ptx_at(b, f->e->states_o, ptx_mad(b, f->row, (int)size, f->column), 4);
    const int offset = (int)(4 * (i * rows * size + column * f->threads));
    if (!column_is_ragged(f, column))
        return ptx_ld_shared(b, PTX_F32, at, offset);
    return ptx_ld_if(b, column_exists(b, f, column), PTX_SHARED, 0, PTX_F32, at, offset, ptx_f32(b, 0));
}

/* Joins the tiles of a round to the strip and, at its end, the strip to the others. */
static void join_round(ptx_builder *b, const finisher *f, ptx_val round, ptx_val last)
{
    const exact *e = f->e;
    const unsigned warps = e->shape.warps, rows = e->shape.rows;
    ptx_val lane = ptx_min(b, e->lane, ptx_u32(b, warps - 1)), pair[2];
    ptx_val at = ptx_at(b, e->states_ml, ptx_mad(b, lane, (int)rows, f->row), 8);
    ptx_ld_vec(b, PTX_SHARED, 0, PTX_F32, at, 0, pair, 2);
    state_join_all(b, &f->strip, pair[0], pair[1], warps, shared_column, f);
    ptx_val ends = ptx_setp(b, PTX_EQ, ptx_and(b, ptx_add(b, round, 1), (int)(STRIP_TILES / warps) - 1), 0);
    ends = ptx_setp_or(b, PTX_EQ, round, last, ends);
    ptx_uniform(b);
    ptx_if(b, ends);
    state_join(b, &f->all, f->strip.m, f->strip.l, f->strip.o);
    state_clear(b, &f->strip);
    ptx_end_if(b);
}

static void store_row(ptx_builder *b, const finisher *f)
{
    const exact *e = f->e;
    const kernel_spec *spec = e->spec;
    const qdnnDataType_t type = spec->epilogue.output;
    const row_place place = row_place_of(b, e, f->row);
    ptx_val y[STATE_COLUMNS], sink = {0}, exists = row_takes_part(b, e, f->row, &place);
    if (spec->select.sink)
        sink = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_F32,
                         ptx_at(b, e->args->operand[QDNN_OPERAND_SINK], place.head, 4), 0, ptx_f32(b, 0));
    state_finish(b, &f->all, sink, y);
    ptx_val at = ptx_mad(b, place.token, e->args->number[NUMBER_Y_STRIDE],
                         emit_multiply(b, place.head, spec->kv.value_size));
    at = ptx_add(b, at, ptx_cvt(b, PTX_U64, f->column));
    at = ptx_at(b, e->args->operand[QDNN_OPERAND_Y], at, element_bytes(type));
    for (unsigned i = 0; i < f->all.columns; i++) {
        ptx_if(b, column_is_ragged(f, i) ? ptx_and(b, exists, column_exists(b, f, i)) : exists);
        emit_store(b, type, at, (int)(i * f->threads * element_bytes(type)), y[i]);
        ptx_end_if(b);
    }
}

/* ---- A pass: the tokens of one sequence ---- */

/* The keys that any of the tokens sees. */
static void seen_by_any(ptx_builder *b, const exact *e, ptx_val *lo, ptx_val *hi)
{
    ptx_val nothing_first = ptx_s32(b, INT32_MAX), nothing_last = ptx_s32(b, -1);
    for (unsigned t = 0; t < e->shape.tokens; t++) {
        const seen_keys *s = &e->seen[t];
        ptx_val sees = ptx_setp(b, PTX_LE, s->first, s->last);
        ptx_val first = ptx_selp(b, s->first, nothing_first, sees),
                last = ptx_selp(b, s->last, nothing_last, sees);
        *lo = t ? ptx_min(b, *lo, first) : first;
        *hi = t ? ptx_max(b, *hi, last) : last;
    }
}

static void do_pass(ptx_builder *b, const exact *e)
{
    const bool is_whole = e->spec->select.phase == KERNEL_PHASE_WHOLE;
    const unsigned shift = log2_of(TILE_KEYS * e->shape.warps);
    ptx_val lo, hi;
    seen_by_any(b, e, &lo, &hi);
    finisher f = {0};
    if (is_whole)
        f = finisher_begin(b, e);
    ptx_val sees = ptx_setp(b, PTX_LE, lo, hi), last = ptx_shr(b, hi, shift);
    ptx_val end = ptx_selp(b, ptx_add(b, last, 1), ptx_s32(b, 0), sees), start = ptx_shr(b, lo, shift);
    ptx_val step = ptx_s32(b, 1);
    if (!is_whole) {
        start = ptx_add(b, start, ptx_as(b, PTX_S32, ptx_sreg(b, "ctaid.z")));
        step = ptx_as(b, PTX_S32, ptx_cvt(b, PTX_U32, e->args->number[NUMBER_PARTS]));
    }
    ptx_rolled(b);
    ptx_val round = ptx_for(b, start, end, step);
    ptx_val tile = ptx_mad(b, round, (int)e->shape.warps, ptx_as(b, PTX_S32, e->warp));
    if (is_whole) {
        do_tile(b, e, tile, lo, hi);
        ptx_syncthreads(b);
        join_round(b, &f, round, last);
        ptx_syncthreads(b);
    } else {
        ptx_val first_tile = ptx_shr(b, lo, log2_of(TILE_KEYS)),
                last_tile = ptx_shr(b, hi, log2_of(TILE_KEYS));
        ptx_val has = ptx_setp_and(b, PTX_GE, tile, first_tile, ptx_setp(b, PTX_LE, tile, last_tile));
        ptx_uniform(b);
        ptx_if(b, has);
        do_tile(b, e, tile, lo, hi);
        ptx_end_if(b);
    }
    ptx_end_for(b);
    if (is_whole)
        store_row(b, &f);
}

/* The tokens of a block may be of several sequences: there is a pass for each of them. */
static void do_passes(ptx_builder *b, exact *e)
{
    const unsigned tokens = e->shape.tokens;
    seen_keys given[ATTENTION_TOKENS];
    for (unsigned t = 0; t < tokens; t++)
        given[t] = e->seen[t];
    ptx_rolled(b);
    ptx_val pass = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, tokens), 1);
    ptx_val sequence = given[0].sequence;
    for (unsigned t = 1; t < tokens; t++)
        sequence = ptx_selp(b, given[t].sequence, sequence, ptx_setp(b, PTX_EQ, pass, (int)t));
    ptx_val is_done = ptx_setp(b, PTX_NE, pass, pass);
    for (unsigned t = 0; t + 1 < tokens; t++) {
        ptx_val same = ptx_setp(b, PTX_EQ, given[t].sequence, sequence);
        is_done = ptx_or(b, is_done, ptx_setp_and(b, PTX_GT, pass, (int)t, same));
    }
    ptx_continue_if(b, is_done);
    for (unsigned t = 0; t < tokens; t++) {
        e->active[t] = ptx_setp(b, PTX_EQ, given[t].sequence, sequence);
        e->seen[t].last = ptx_selp(b, given[t].last, ptx_s32(b, -1), e->active[t]);
        e->seen[t].sequence = sequence;
    }
    do_pass(b, e);
    ptx_end_for(b);
}

void emit_attention_exact(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    exact e = {.row = row, .spec = spec, .args = &args, .shape = attention_shape_of(spec)};
    ptx_reqntid(b, e.shape.block, 1, 1);
    e.score = score_shape_of(spec);
    e.value = value_shape_of(spec, e.shape.rows);
    e.keys = kv_array_of(b, row, spec, &args, KV_KEYS);
    e.values = e.keys;
    if (spec->attention.values_in_keys)
        e.values.spec.rows.columns = spec->kv.value_size;
    else
        e.values = kv_array_of(b, row, spec, &args, KV_VALUES);
    e.warp = ptx_shr(b, ptx_tid_x(b), 5);
    e.lane = ptx_laneid(b);
    const unsigned heads = (unsigned)(spec->rope.queries / spec->kv.heads);
    ptx_val y = ptx_cvt(b, PTX_U64, ptx_ctaid_y(b)), last = ptx_sub(b, ptx_nctaid_x(b), 1);
    e.kv_head = emit_divide(b, y, e.shape.head_blocks);
    ptx_val part = emit_remainder(b, y, e.kv_head, e.shape.head_blocks);
    e.head = ptx_add(b, emit_multiply(b, e.kv_head, heads), emit_multiply(b, part, e.shape.heads));
    e.head_end = emit_multiply(b, ptx_add(b, e.kv_head, ptx_u64(b, 1)), heads);
    /* the last tokens first: they see the most */
    e.token = emit_multiply(b, ptx_cvt(b, PTX_U64, ptx_sub(b, last, ptx_ctaid_x(b))), e.shape.tokens);
    const codec_state state = kv_open(b, &e.keys);
    e.key_reader = kv_reader_begin(b, &e.keys, &state, CHUNK, e.score.lanes,
                                   ptx_and(b, e.lane, (int)e.score.lanes - 1), e.kv_head);
    e.value_reader = kv_reader_begin(b, &e.values, &state, e.value.elements, e.value.lanes,
                                     ptx_and(b, e.lane, (int)e.value.lanes - 1), e.kv_head);
    open_memory(b, &e);
    load_queries(b, &e);
    for (unsigned t = 0; t < e.shape.tokens; t++)
        e.seen[t] = seen_by_token(b, spec, &args, t ? ptx_add(b, e.token, ptx_u64(b, t)) : e.token);
    for (unsigned r = 0; r < rows_used(&e) && args.operand[QDNN_OPERAND_SLOPE].kind != PTX_NOTHING; r++) {
        const row_place place = row_place_of(b, &e, ptx_u32(b, r));
        e.slope[r] = ptx_ld_if(b, place.exists, PTX_GLOBAL, PTX_NC, PTX_F32,
                               ptx_at(b, args.operand[QDNN_OPERAND_SLOPE], place.head, 4), 0, ptx_f32(b, 0));
    }
    ptx_syncthreads(b);
    if (e.shape.tokens > 1)
        do_passes(b, &e);
    else
        do_pass(b, &e);
    if (spec->select.phase == KERNEL_PHASE_LAST)
        emit_join_if_last(b, spec, &args,
                          &(shared_rows){e.token, e.head, e.head_end, e.shape.heads, e.shape.block});
}
