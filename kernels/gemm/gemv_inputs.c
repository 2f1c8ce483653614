/* Brings x and the numbers of groups into shared memory, one tile of k at a time.
 *
 * In a round, vector i (four f32) of thread t of a team lies at byte (i * team + t) * 16, so the threads
 * of a team read neighbouring vectors. */
#include "kernels/gemm/gemv.h"

#include "kernels/maps/map.h"

/* ---- x ---- */

ptx_val gemv_x_place(ptx_builder *b, const gemv *g, ptx_val offset)
{
    if (g->stretch == 1)
        return offset;
    ptx_val run = ptx_shr(b, offset, ceil_log2(BYTE_TABLE_RUN)),
            inside = ptx_and(b, offset, BYTE_TABLE_RUN - 1);
    return ptx_mad(b, run, BYTE_TABLE_PITCH, inside);
}

/* From this limit on, x times 2^x_exponent may be infinite. */
static float x_limit(const gemv *g)
{
    float limit = 0x1p127f;
    for (int i = 0; i < g->codec->x_exponent; i++)
        limit /= 2;
    return limit;
}

static bool x_may_be_large(const gemv *g)
{
    return g->codec->x_exponent && g->spec->data != QDNN_DATA_F16;
}

static x_loader x_begin(ptx_builder *b, const gemv *g)
{
    const gemv_shape *s = &g->shape;
    const unsigned rows = s->rows < s->warps ? s->rows : s->warps;
    x_loader l = {.step = s->warps / rows, .rounds = s->tile / ROUND / (s->warps / rows)};
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5), round = ptx_shr(b, warp, ceil_log2(rows));
    ptx_val chunk = ptx_shr(b, ptx_laneid(b), ceil_log2(s->team));
    ptx_val place = ptx_mad(b, chunk, (int)(2 * s->team), g->thread);
    ptx_val number = ptx_mad(b, g->thread, (int)s->chunks, g->in_pairs ? ptx_shr(b, chunk, 1) : chunk);
    ptx_val bytes = ptx_mul(b, g->args.x_stride, ptx_u64(b, element_bytes(g->spec->data)));
    l.row = ptx_and(b, warp, (int)rows - 1);
    l.at = ptx_mad(b, round, ROUND, ptx_mul(b, number, CHUNK));
    if (g->in_pairs) /* half of two chunks instead of a whole one */
        l.at = ptx_add(b, l.at, ptx_shl(b, ptx_and(b, chunk, 1), 2));
    l.to = ptx_add(
        b, ptx_mad(b, round, (int)(g->stretch * ROUND_BYTES), gemv_x_place(b, g, ptx_shl(b, place, 4))),
        g->x_shared);
    l.aligned = emit_aligned(b, ptx_or(b, bytes, g->args.all.operand[QDNN_OPERAND_X]), LOAD_BYTES);
    return l;
}

/* Sets `too_large` (u32) where x is too large for the codec. */
static void note_large(ptx_builder *b, const gemv *g, ptx_val too_large, const ptx_val *x)
{
    ptx_val largest = ptx_abs(b, x[0]);
    for (unsigned i = 1; i < CHUNK; i++)
        largest = ptx_max(b, largest, ptx_abs(b, x[i]));
    ptx_val over = ptx_setp(b, PTX_GE, largest, ptx_f32(b, x_limit(g)));
    ptx_when(b, over);
    ptx_assign(b, too_large, ptx_u32(b, 1));
}

typedef struct x_target {
    bool is_scaled;
    ptx_val too_large; /* variable */
} x_target;

static void store_x(ptx_builder *b, const gemv *g, const x_target *t, ptx_val to, int offset,
                    const ptx_val *x)
{
    const int exponent = t->is_scaled ? g->codec->x_exponent : 0;
    ptx_val scaled[CHUNK], factor = ptx_bits(b, PTX_F32, (uint64_t)(exponent + 127) << 23);
    if (exponent && x_may_be_large(g))
        note_large(b, g, t->too_large, x);
    for (unsigned i = 0; i < CHUNK; i++) {
        ptx_val from = x[g->in_pairs ? i / 2 + i % 2 * (CHUNK / 2) : i];
        scaled[i] = exponent ? ptx_mul(b, from, factor) : from;
    }
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, offset, scaled, 4);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, offset + (int)(g->stretch * g->shape.team * LOAD_BYTES),
               scaled + 4, 4);
}

/* The distance in k between the two chunks of a pair. A sector of 16-bit x holds halves of first chunks
 * only, or of second ones only, so one load uses all of it. */
static unsigned pair_distance(const gemv *g)
{
    return g->shape.chunks / 2 * CHUNK;
}

/* The k of the lane's element i, relative to its first. */
static unsigned k_of(const gemv *g, unsigned i)
{
    return g->in_pairs && i >= CHUNK / 2 ? i - CHUNK / 2 + pair_distance(g) : i;
}

/* Row j of the warp, in the tile at k (u32). */
static x_row row_of_tile(ptx_builder *b, const gemv *g, ptx_val k, unsigned j)
{
    const x_loader *l = &g->x_loader;
    ptx_val row = ptx_add(b, g->first_row, l->row);
    if (j)
        row = ptx_add(b, row, (int)j);
    x_row r = {.exists = ptx_setp(b, PTX_LT, row, g->m), .at = ptx_add(b, k, l->at)};
    ptx_val number = x_row_of(b, g->spec, gemv_row(b, g, row));
    ptx_val element = ptx_mad(b, number, g->args.x_stride, ptx_cvt(b, PTX_U64, r.at));
    r.from = ptx_at(b, g->args.all.operand[QDNN_OPERAND_X], element, element_bytes(g->spec->data));
    r.to = ptx_mad(b, ptx_add(b, l->row, (int)j), (int)(4 * g->stretch * g->shape.tile), l->to);
    return r;
}

/* Loads a row of aligned vectors, if `wanted`; what lies beyond K is 0. */
static void fetch_row(ptx_builder *b, const gemv *g, const x_row *row, ptx_val wanted, x_words words)
{
    const x_loader *l = &g->x_loader;
    const unsigned bytes = element_bytes(g->spec->data), parts = g->in_pairs ? 2 : 1,
                   of_part = CHUNK / parts * bytes / 4, vector = of_part < 4 ? of_part : 4;
    for (unsigned i = 0; i < l->rounds; i++)
        for (unsigned part = 0; part < parts; part++) {
            const unsigned k = i * l->step * ROUND + part * pair_distance(g);
            ptx_val here = ptx_setp_and(b, PTX_LT, ptx_add(b, row->at, (int)k), g->k, wanted);
            for (unsigned w = 0; w < of_part; w++)
                words[i][part * of_part + w] = ptx_var(b, ptx_u32(b, 0));
            for (unsigned w = 0; w < of_part; w += vector) {
                ptx_when(b, here);
                ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, row->from, (int)(k * bytes + 4 * w),
                                &words[i][part * of_part + w], (int)vector);
            }
        }
}

/* Puts the row into shared memory. */
static void put_row(ptx_builder *b, const gemv *g, const x_target *t, const x_row *row, const x_words words)
{
    const x_loader *l = &g->x_loader;
    const unsigned of_word = 4 / element_bytes(g->spec->data);
    for (unsigned i = 0; i < l->rounds; i++) {
        ptx_val x[CHUNK];
        for (unsigned j = 0; j < CHUNK; j += of_word)
            emit_widen_word(b, g->spec->data, words[i][j / of_word], &x[j]);
        store_x(b, g, t, row->to, (int)(i * l->step * g->stretch * ROUND_BYTES), x);
    }
}

/* Loads eight k of a row that may begin anywhere and may end among them. */
static void load_ragged(ptx_builder *b, const gemv *g, ptx_val k, ptx_val address, const ptx_val x[CHUNK])
{
    const qdnnDataType_t type = g->spec->data;
    const unsigned bytes = element_bytes(type), together = g->in_pairs ? CHUNK / 2 : CHUNK;
    const unsigned align = together * bytes < LOAD_BYTES ? together * bytes : LOAD_BYTES;
    ptx_val end = ptx_add(b, k, (int)k_of(g, CHUNK - 1) + 1), loaded[CHUNK];
    ptx_val whole = ptx_setp_and(b, PTX_LE, end, g->k, emit_aligned(b, address, align));
    ptx_if(b, whole);
    for (unsigned j = 0; j < CHUNK; j += together)
        emit_load_run(b, type, address, (int)(k_of(g, j) * bytes), together, loaded + j);
    for (unsigned j = 0; j < CHUNK; j++)
        ptx_assign(b, x[j], loaded[j]);
    ptx_else(b);
    for (unsigned j = 0; j < CHUNK; j++) {
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, k, (int)k_of(g, j)), g->k));
        ptx_assign(b, x[j], emit_load(b, type, address, (int)(k_of(g, j) * bytes)));
        ptx_end_if(b);
    }
    ptx_end_if(b);
}

/* Stages a row element by element; elements that do not exist are 0. */
static void stage_row_slowly(ptx_builder *b, const gemv *g, const x_target *t, const x_row *row)
{
    const x_loader *l = &g->x_loader;
    const unsigned bytes = element_bytes(g->spec->data);
    ptx_val i = ptx_for(b, ptx_u32(b, 0), (int)(l->rounds * l->step * ROUND), (int)(l->step * ROUND));
    ptx_val here = ptx_setp_and(b, PTX_LT, ptx_add(b, row->at, i), g->k, row->exists), x[CHUNK];
    ptx_val address = ptx_at(b, row->from, i, bytes);
    for (unsigned j = 0; j < CHUNK; j++)
        x[j] = ptx_var(b, ptx_f32(b, 0));
    ptx_if(b, here);
    if (g->shape.is_ragged)
        load_ragged(b, g, ptx_add(b, row->at, i), address, x);
    else
        for (unsigned j = 0; j < CHUNK; j++)
            ptx_assign(b, x[j], emit_load(b, g->spec->data, address, (int)(k_of(g, j) * bytes)));
    ptx_end_if(b);
    store_x(b, g, t, ptx_mad(b, i, (int)(4 * g->stretch), row->to), 0, x);
    ptx_end_for(b);
}

/* Predicate, uniform: rows are loaded by vectors. Where K may end within a chunk, only in tiles that are whole. */
static ptx_val x_by_vectors(ptx_builder *b, const gemv *g, ptx_val k)
{
    if (!g->shape.is_ragged)
        return g->x_loader.aligned;
    ptx_val end = ptx_add(b, k, (int)g->shape.tile), rest = ptx_and(b, g->k, CHUNK - 1);
    return ptx_and(b, g->x_loader.aligned, ptx_setp_or(b, PTX_LE, end, g->k, ptx_setp(b, PTX_EQ, rest, 0)));
}

static x_target x_target_of(ptx_builder *b, bool is_scaled)
{
    return (x_target){is_scaled, ptx_var(b, ptx_u32(b, 0))};
}

/* Predicate: some x was too large; empty: none can be. */
static ptx_val x_is_odd(ptx_builder *b, const gemv *g, const x_target *t)
{
    return x_may_be_large(g) && t->is_scaled ? ptx_setp(b, PTX_NE, t->too_large, 0) : (ptx_val){0};
}

ptx_val gemv_stage_x(ptx_builder *b, const gemv *g, ptx_val k, bool is_scaled)
{
    const x_target t = x_target_of(b, is_scaled);
    ptx_val by_vectors = x_by_vectors(b, g, k);
    for (unsigned j = 0; j < g->shape.rows; j += g->shape.warps) {
        const x_row row = row_of_tile(b, g, k, j);
        x_words words;
        ptx_uniform(b);
        ptx_if(b, by_vectors);
        fetch_row(b, g, &row, row.exists, words);
        put_row(b, g, &t, &row, words);
        ptx_else(b);
        stage_row_slowly(b, g, &t, &row);
        ptx_end_if(b);
    }
    return x_is_odd(b, g, &t);
}

/* How many rows a warp has of a tile, if a thread has registers for its x of them. */
static unsigned rows_ahead(const gemv *g)
{
    enum { WORDS = 32 };
    const unsigned rows = g->shape.rows <= g->shape.warps ? 1 : g->shape.rows / g->shape.warps;
    const unsigned words = rows * g->x_loader.rounds * CHUNK * element_bytes(g->spec->data) / 4;
    return rows <= GEMV_ROWS_AHEAD && words <= WORDS ? rows : 0;
}

void gemv_fetch_x(ptx_builder *b, const gemv *g, ptx_val k, x_ahead *x)
{
    *x = (x_ahead){.rows = rows_ahead(g)};
    if (x->rows)
        x->by_vectors = x_by_vectors(b, g, k);
    for (unsigned i = 0; i < x->rows; i++) {
        x->row[i] = row_of_tile(b, g, k, i * g->shape.warps);
        fetch_row(b, g, &x->row[i], ptx_and(b, x->by_vectors, x->row[i].exists), x->words[i]);
    }
}

ptx_val gemv_put_x(ptx_builder *b, const gemv *g, ptx_val k, const x_ahead *x)
{
    if (!x->rows)
        return gemv_stage_x(b, g, k, true);
    const x_target t = x_target_of(b, true);
    ptx_uniform(b);
    ptx_if(b, x->by_vectors);
    for (unsigned i = 0; i < x->rows; i++)
        put_row(b, g, &t, &x->row[i], x->words[i]);
    ptx_else(b);
    for (unsigned i = 0; i < x->rows; i++)
        stage_row_slowly(b, g, &t, &x->row[i]);
    ptx_end_if(b);
    return x_is_odd(b, g, &t);
}

/* ---- Numbers of groups ---- */

enum { SLOTS_MAX = 1 << 16 /* of a tile */ };

unsigned gemv_span(const format_row *format, const kernel_spec *spec)
{
    if (format_is_plain(format) || spec->stored.groups == QDNN_GROUPS_DEFAULT || spec->stored.channels == 1)
        return 0;
    uint64_t power = spec->stored.group_size & -spec->stored.group_size;
    if (gemm_is_ragged(spec) && power < CHUNK)
        return ROUND; /* only used where one group covers the whole row */
    return power < ROUND ? (unsigned)power : ROUND;
}

unsigned gemv_spans_together(const gemv_shape *s, const gemv_codec *codec)
{
    const unsigned of_unit = gemv_unit(s) > s->span ? gemv_unit(s) / s->span : 1, most = 4 / codec->numbers;
    return of_unit < most ? of_unit : most;
}

/* The distance, in f32, between the numbers of neighbouring outputs, chosen so that the teams of a warp,
 * each at another output, read different banks. */
static unsigned numbers_pitch(const gemv_shape *s, const gemv_codec *codec)
{
    const unsigned plain = s->tile / s->span * codec->numbers;
    const unsigned together = gemv_spans_together(s, codec) * codec->numbers;
    return together < 4 ? plain + 8 * together : plain;
}

/* Between the entries of a table, an output has one number per slot. A run of 128 bytes holds the numbers of some teams of a warp
 * (of all teams where possible) for a few rounds, so everything read at once lies in different banks. (Writes do conflict: a
 * warp writes many slots of one output at once.) The number of an output in the block has as digits its team in the warp, the
 * warp, and the output of the thread. */
static map between_entries(const gemv_shape *s)
{
    const unsigned words = BYTE_TABLE_RUN / 4, teams = WARP / s->team, of_round = ROUND / s->span;
    const unsigned room = of_round > words / teams ? of_round : words / teams;
    unsigned rounds = room / of_round;
    while (s->turn % rounds) /* a turn of the loop has to begin with a run */
        rounds /= 2;
    const unsigned together = words / room, across = teams / together, slots = rounds * of_round;
    const unsigned of_output = s->tile / ROUND / rounds * across * BYTE_TABLE_PITCH;
    map m = {0};
    map_add(&m, "output", together, "byte", BYTE_TABLE_RUN / together);
    map_add(&m, "output", across, "byte", BYTE_TABLE_PITCH);
    map_add(&m, "output", s->warps, "byte", s->outputs * of_output);
    map_add(&m, "output", s->outputs, "byte", of_output);
    map_add(&m, "slot", slots, "byte", 4);
    map_add(&m, "slot", SLOTS_MAX / slots, "byte", across * BYTE_TABLE_PITCH);
    return m;
}

/* Where the numbers of an output and a slot lie. */
static map places_of_numbers(const gemv_shape *s, const gemv_codec *codec)
{
    map m = {0};
    if (s->numbers_between)
        return between_entries(s);
    map_add(&m, "output", s->of_block, "byte", 4 * numbers_pitch(s, codec));
    map_add(&m, "slot", SLOTS_MAX, "byte", 4 * codec->numbers);
    return m;
}

unsigned gemv_output_offset(const gemv_shape *s, const gemv_codec *codec, unsigned output)
{
    const map m = places_of_numbers(s, codec);
    return map_value(&m, "byte", output, 0);
}

unsigned gemv_slot_offset(const gemv_shape *s, const gemv_codec *codec, unsigned slot)
{
    const map m = places_of_numbers(s, codec);
    return map_value(&m, "byte", 0, slot);
}

unsigned gemv_numbers_bytes(const gemv_shape *s, const gemv_codec *codec)
{
    if (!s->numbers_between)
        return 4 * s->of_block * numbers_pitch(s, codec);
    return s->warps * gemv_output_offset(s, codec, WARP / s->team); /* what lies between two warps */
}

ptx_val gemv_numbers_at(ptx_builder *b, const gemv *g, ptx_val output, ptx_val slot)
{
    const map m = places_of_numbers(&g->shape, g->codec);
    ptx_val at = g->numbers_shared;
    for (int i = 0; i < m.count; i++) {
        const map_digit *d = &m.digit[i];
        ptx_val digit = d->from == 0 ? output : slot;
        if (d->below > 1)
            digit = ptx_shr(b, digit, ceil_log2(d->below));
        if (g->shape.numbers_between)
            digit = ptx_and(b, digit, (int)d->size - 1);
        at = ptx_mad(b, digit, (int)d->step, at);
    }
    return at;
}

/* Whether scales and zeros lie in the plain order, group number = output * groups + k / group_size. */
static bool is_linear(const kernel_spec *spec)
{
    return spec->stored.channels == 0 && spec->stored.scale_order == QDNN_SCALE_ORDER_DEFAULT &&
           spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE && spec->stored.group_rows == 1 &&
           !spec->stored.nested && !spec->stored.zero_packed;
}

static ptx_val join(ptx_builder *b, ptx_val all, ptx_val one)
{
    return one.kind == PTX_NOTHING ? all : all.kind == PTX_NOTHING ? one : ptx_and(b, all, one);
}

static ptx_val run_from(ptx_builder *b, const gemv *g, const number_loader *l, ptx_val pointer, unsigned half,
                        unsigned bytes)
{
    ptx_val output = ptx_add(b, ptx_cvt(b, PTX_U32, g->column), l->first);
    if (half)
        output = ptx_add(b, output, ptx_cvt(b, PTX_U32, g->args.n));
    return ptx_at(b, pointer, ptx_mul_wide(b, output, g->groups), bytes);
}

static void runs_begin(ptx_builder *b, const gemv *g, number_loader *l)
{
    const sidecars *side = &g->w.matrix.q.side;
    const unsigned scale = scale_bytes(g->spec->stored.scale), zero = element_bytes(g->spec->stored.zero);
    const bool has_zero = format_has_zero(g->w.coding.format);
    l->scale_step = ptx_mul_wide(b, g->groups, ptx_u32(b, l->step * scale));
    if (has_zero)
        l->zero_step = ptx_mul_wide(b, g->groups, ptx_u32(b, l->step * zero));
    for (unsigned half = 0; half < (g->spec->epilogue.gated ? 2 : 1); half++) {
        l->scale_from[half] = run_from(b, g, l, side->scale, half, scale);
        if (has_zero)
            l->zero_from[half] = run_from(b, g, l, side->zero, half, zero);
    }
}

/* `together`: how many neighbouring spans a thread handles at once. */
static number_loader numbers_begin(ptx_builder *b, const gemv *g, unsigned together)
{
    const gemv_shape *s = &g->shape;
    const unsigned threads = s->warps * WARP, all = s->tile / s->span / together;
    const unsigned slots = all < threads ? all : threads,
                   of_half = s->of_block / (g->spec->epilogue.gated ? 2 : 1);
    ptx_val tid = ptx_tid_x(b), slot = ptx_and(b, tid, (int)slots - 1);
    number_loader l = {
        .step = threads / slots, .passes = all / slots, .first = ptx_shr(b, tid, ceil_log2(slots))};
    l.at = ptx_mul(b, slot, (int)(together * s->span));
    l.to = gemv_numbers_at(b, g, l.first, together > 1 ? ptx_mul(b, slot, (int)together) : slot);
    l.whole = ptx_setp(b, PTX_EQ, g->last, (int)of_half - 1);
    if (is_linear(g->spec))
        runs_begin(b, g, &l);
    return l;
}

/* Whether scales are E4M3 with one scale per span, so that four of them are loaded as a word. */
static bool has_quads(const gemv *g)
{
    const gemv_shape *s = &g->shape;
    const unsigned quads = s->span ? s->tile / s->span / QUAD : 0;
    return quads && !s->is_ragged && is_linear(g->spec) && g->spec->stored.scale == QDNN_SCALE_E4M3 &&
           g->codec->numbers == 1 && s->span == g->spec->stored.group_size &&
           s->of_block / (g->spec->epilogue.gated ? 2 : 1) * quads >= s->warps * WARP;
}

void gemv_begin_inputs(ptx_builder *b, gemv *g)
{
    g->x_loader = x_begin(b, g);
    if (!g->shape.span)
        return;
    if (!has_quads(g)) {
        g->number_loader = numbers_begin(b, g, 1);
        return;
    }
    g->quad_loader = numbers_begin(b, g, QUAD);
    ptx_val all = ptx_or(b, ptx_cvt(b, PTX_U32, g->w.matrix.q.side.scale), g->groups);
    g->quad_loader.whole = ptx_setp_and(b, PTX_EQ, ptx_and(b, all, QUAD - 1), 0, g->quad_loader.whole);
}

/* Converts the four E4M3 scales of a word. Below sm_89: an unsigned byte, shifted, has the fields of the
 * f32 in place, except for the exponent's bias. The top bits of the bytes of `odd` (u32) become 1 where a
 * scale is negative or NaN: 7F + 1 = 80, and only a byte with a sign carries into the next. */
static void quad_scales(ptx_builder *b, const gemv *g, ptx_val word, ptx_val odd, ptx_val out[QUAD])
{
    if (ptx_target(b) && ptx_target(b)->number >= 89) {
        codec_e4m3.units_of_bytes(b, NULL, NULL, word, out);
        return;
    }
    ptx_into(b, odd);
    ptx_lop3(b, word, ptx_add(b, word, ptx_u32(b, 0x01010101)), odd, PTX_LOP_A | PTX_LOP_B | PTX_LOP_C);
    for (unsigned i = 0; i < QUAD; i++) {
        ptx_val placed = i == QUAD - 1 ? ptx_shr(b, word, 4) : ptx_shl(b, word, 20 - 8 * i);
        out[i] = ptx_as(b, PTX_F32, ptx_and(b, placed, ptx_u32(b, 0x07F00000)));
        if (!g->scale_exponent)
            out[i] = ptx_mul(b, out[i], ptx_f32(b, 0x1p120f));
    }
}

static void stage_scale_quads(ptx_builder *b, const gemv *g, ptx_val k, ptx_val odd)
{
    const gemv_shape *s = &g->shape;
    const number_loader *l = &g->quad_loader;
    const unsigned of_half = s->of_block / (g->spec->epilogue.gated ? 2 : 1);
    ptx_val from = {0}, group = ptx_shr(b, k, ceil_log2(s->span));
    for (unsigned i = 0; i < s->of_block; i += l->step) {
        ptx_val scales[QUAD];
        from =
            i % of_half ? ptx_add(b, from, l->scale_step) : ptx_at(b, l->scale_from[i / of_half], group, 1);
        quad_scales(b, g, ptx_ld_global_nc(b, PTX_U32, from, 0), odd, scales);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, l->to, (int)gemv_output_offset(s, g->codec, i), scales,
                   QUAD);
    }
    ptx_into(b, odd);
    ptx_and(b, odd, ptx_u32(b, 0x80808080));
}

/* The addresses of a group's scale and zero, advanced from output to output. */
typedef struct number_run {
    ptx_val scale, zero; /* u64 */
} number_run;

static number_run run_begin(ptx_builder *b, const gemv *g, unsigned half, ptx_val group)
{
    const number_loader *l = &g->number_loader;
    number_run r = {.scale = ptx_at(b, l->scale_from[half], group, scale_bytes(g->spec->stored.scale))};
    if (format_has_zero(g->w.coding.format))
        r.zero = ptx_at(b, l->zero_from[half], group, element_bytes(g->spec->stored.zero));
    return r;
}

/* Loads the group and advances to the next output. */
static group_values run_next(ptx_builder *b, const gemv *g, number_run *r)
{
    group_values v = {.scale = emit_load_scale(b, g->spec->stored.scale, r->scale, 0)};
    r->scale = ptx_add(b, r->scale, g->number_loader.scale_step);
    if (!format_has_zero(g->w.coding.format))
        return v;
    v.zero = group_zero_from(b, &g->w.coding, emit_load(b, g->spec->stored.zero, r->zero, 0));
    r->zero = ptx_add(b, r->zero, g->number_loader.zero_step);
    return v;
}

/* The group of any output; outputs that do not exist count as the last one. */
static group_values group_of(ptx_builder *b, const gemv *g, unsigned half, unsigned output, ptx_val k)
{
    ptx_val there = ptx_min(b, ptx_add(b, g->number_loader.first, (int)output), g->last);
    ptx_val row = ptx_add(b, g->column, ptx_cvt(b, PTX_U64, there));
    return matrix_group(b, &g->w.matrix, half ? ptx_add(b, row, g->args.n) : row, ptx_cvt(b, PTX_U64, k));
}

/* Stages the span at k (u32), for all outputs of the thread; by running addresses (in_runs) or one by one. */
static ptx_val stage_outputs(ptx_builder *b, const gemv *g, ptx_val k, unsigned pass, bool in_runs)
{
    const gemv_shape *s = &g->shape;
    const number_loader *l = &g->number_loader;
    const unsigned of_half = s->of_block / (g->spec->epilogue.gated ? 2 : 1);
    const unsigned more = gemv_slot_offset(s, g->codec, pass * s->warps * WARP);
    ptx_val serves = {0};
    ptx_val group = ptx_cvt(b, PTX_U32, emit_divide(b, ptx_cvt(b, PTX_U64, k), g->spec->stored.group_size));
    number_run run = {0};
    for (unsigned i = 0; i < s->of_block; i += l->step) {
        ptx_val made[GEMV_NUMBERS_MAX];
        if (in_runs && i % of_half == 0)
            run = run_begin(b, g, i / of_half, group);
        group_values v = in_runs ? run_next(b, g, &run) : group_of(b, g, i / of_half, i % of_half, k);
        serves = join(b, serves, g->codec->prepare(b, g, &v, made));
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, l->to, (int)(more + gemv_output_offset(s, g->codec, i)),
                   made, (int)g->codec->numbers);
    }
    return serves;
}

/* Sets `odd` (u32) unless the codec serves, and returns whether it may be set: some codecs serve any numbers. */
static bool note_odd(ptx_builder *b, ptx_val odd, ptx_val serves)
{
    if (serves.kind == PTX_NOTHING)
        return false;
    ptx_unless(b, serves);
    ptx_assign(b, odd, ptx_u32(b, 1));
    return true;
}

/* All spans of the tile at k (u32). */
static bool stage_spans(ptx_builder *b, const gemv *g, ptx_val k, ptx_val odd, bool in_runs)
{
    const number_loader *l = &g->number_loader;
    bool may_be_odd = false;
    for (unsigned i = 0; i < l->passes; i++) {
        ptx_val first = i ? ptx_add(b, k, (int)(i * g->shape.warps * WARP * g->shape.span)) : k;
        ptx_val at =
            ptx_min(b, ptx_add(b, first, l->at), ptx_sub(b, g->k, 1)); /* spans beyond K are not used */
        may_be_odd |= note_odd(b, odd, stage_outputs(b, g, at, i, in_runs));
    }
    return may_be_odd;
}

ptx_val gemv_stage_numbers(ptx_builder *b, const gemv *g, ptx_val k)
{
    if (!g->shape.span)
        return g->serves.kind == PTX_NOTHING ? g->serves : ptx_not(b, g->serves);
    gemv any = *g;
    ptx_val odd = ptx_var(b, ptx_u32(b, 0));
    if (has_quads(g)) {
        const int quad = (int)(QUAD * g->shape.span);
        ptx_val there = ptx_min(b, ptx_add(b, k, g->quad_loader.at), ptx_sub(b, g->k, quad));
        ptx_uniform(b);
        ptx_if(b, g->quad_loader.whole);
        stage_scale_quads(b, g, there, odd);
        ptx_else(b);
        any.number_loader = numbers_begin(b, g, 1);
    } else if (is_linear(g->spec)) {
        ptx_uniform(b);
        ptx_if(b, g->number_loader.whole);
        stage_spans(b, g, k, odd, true);
        ptx_else(b);
    }
    const bool may_be_odd = stage_spans(b, &any, k, odd, false) || has_quads(g);
    if (is_linear(g->spec))
        ptx_end_if(b);
    return may_be_odd ? ptx_setp(b, PTX_NE, odd, 0) : (ptx_val){0};
}
