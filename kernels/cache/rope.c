/* Rope, and what it writes into a KV cache: queries are rotated and written, keys are rotated and put into their slots,
 * values put there as they are. A thread block takes heads of one token: some that may be rotated, or values. A head is held
 * by a team of lanes (rows.h), chunk c by lane c mod (lanes). */
#include "kernels/cache/cache.h"
#include "kernels/rows/rows.h"

enum { VALUES_MAX = ROW_CHUNKS_MAX * ROW_CHUNK, WORDS_MAX = ROW_CHUNKS_MAX * ROW_WORDS_MAX };

typedef struct rope {
    const kernel_row *row;
    const kernel_spec *spec;
    const kernel_args *args;
    rope_shape shape;
    ptx_val token;    /* u64 */
    ptx_val cos, sin; /* shared: the tables' row of the token, one f32 for each pair */
    ptx_val chunks;   /* shared: chunks of the block as they were loaded, where partners are in others */
} rope;

/* ---- The tables' row of a token ---- */

/* Which section a pair (u32) has its position from: u32. */
static ptx_val section_of(ptx_builder *b, const kernel_rope *rope, ptx_val pair)
{
    ptx_val section = ptx_u32(b, 0);
    uint64_t end = 0, n = 0;
    while (n < KERNEL_ROPE_SECTIONS && rope->section[n])
        n++;
    if (rope->sections == KERNEL_ROPE_CONTIGUOUS) {
        for (uint64_t i = 0; i + 1 < n; i++) {
            end += rope->section[i];
            ptx_val is_later = ptx_setp(b, PTX_GE, pair, ptx_u32(b, (uint32_t)end));
            section = ptx_selp(b, ptx_u32(b, (uint32_t)i + 1), section, is_later);
        }
        return section;
    }
    ptx_val rest = ptx_sub(b, pair, ptx_mul(b, ptx_div(b, pair, (int)n), (int)n));
    for (uint64_t i = 1; i < n; i++) {
        ptx_val is_its = ptx_setp(b, PTX_EQ, rest, ptx_u32(b, (uint32_t)i));
        is_its = ptx_setp_and(b, PTX_LT, pair, ptx_u32(b, (uint32_t)(n * rope->section[i])), is_its);
        section = ptx_selp(b, ptx_u32(b, (uint32_t)i), section, is_its);
    }
    return section;
}

/* The position (u32) that a pair is rotated by. */
static ptx_val position_of(ptx_builder *b, const rope *r, ptx_val pair)
{
    const kernel_rope *spec = &r->spec->rope;
    ptx_val at = r->token, base = r->args->operand[QDNN_OPERAND_POSITION];
    if (spec->sections != KERNEL_ROPE_ONE) {
        uint64_t n = 0;
        while (n < KERNEL_ROPE_SECTIONS && spec->section[n])
            n++;
        ptx_val section = ptx_cvt(b, PTX_U64, section_of(b, spec, pair));
        at = spec->by_section ? ptx_mad(b, section, r->args->number[NUMBER_B_STRIDE], r->token)
                              : ptx_add(b, emit_multiply(b, r->token, n), section);
    }
    return ptx_ld(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_at(b, base, at, 4), 0);
}

/* Copies the row to shared memory. A position without a row gives NaN. */
static void load_tables(ptx_builder *b, const rope *r)
{
    const uint32_t pairs = (uint32_t)(r->spec->rope.size / 2);
    ptx_val nan = ptx_bits(b, PTX_F32, 0x7FFFFFFF);
    ptx_val pair = ptx_for(b, ptx_tid_x(b), ptx_u32(b, pairs), ptx_u32(b, r->shape.block));
    ptx_val position = ptx_cvt(b, PTX_U64, position_of(b, r, pair));
    ptx_val is_known = ptx_setp(b, PTX_LT, position, r->args->number[NUMBER_POSITIONS]);
    ptx_val at = ptx_add(b, emit_multiply(b, position, pairs), ptx_cvt(b, PTX_U64, pair));
    static const qdnnOperand_t tables[] = {QDNN_OPERAND_COS, QDNN_OPERAND_SIN};
    for (int i = 0; i < 2; i++) {
        ptx_val from = ptx_at(b, r->args->operand[tables[i]], at, 4);
        ptx_val x = ptx_ld_if(b, is_known, PTX_GLOBAL, PTX_NC, PTX_F32, from, 0, nan);
        ptx_st_shared(b, ptx_at(b, i ? r->sin : r->cos, pair, 4), 0, x);
    }
    ptx_end_for(b);
}

/* ---- Partners ---- */

/* Whether ranges and pairs lie in chunks: then the factors of a chunk are adjacent, and its elements are rotated or none is. */
static bool is_in_chunks(const kernel_rope *rope)
{
    const uint64_t unit = rope->neighbours ? rope->size : rope->size / 2;
    return rope->first % ROW_CHUNK == 0 && unit % ROW_CHUNK == 0;
}

/* Vector v of chunk i of a lane is a plane of 16 bytes per thread. */
static int plane(const rope *r, const row_array *a, unsigned i, unsigned v)
{
    return (int)((i * row_words(a) / 4 + v) * r->shape.block * LOAD_BYTES);
}

static void put_chunks(ptx_builder *b, const rope *r, const rows *q, const row_array *a, const ptx_val *words)
{
    ptx_val at = ptx_at(b, r->chunks, ptx_tid_x(b), LOAD_BYTES);
    for (unsigned i = 0; i < q->shape.chunks; i++)
        for (unsigned v = 0; v < row_words(a) / 4; v++)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at, plane(r, a, i, v),
                       &words[i * row_words(a) + 4 * v], 4);
}

/* The address of a chunk (u32) of this team's head. */
static ptx_val chunk_at(ptx_builder *b, const rope *r, const rows *q, const row_array *a, ptx_val chunk)
{
    ptx_val lane = ptx_and(b, chunk, q->shape.lanes - 1), turn = ptx_shr(b, chunk, ceil_log2(q->shape.lanes));
    ptx_val thread = ptx_add(b, ptx_sub(b, ptx_tid_x(b), q->lane), lane);
    return ptx_mad(b, turn, plane(r, a, 1, 0), ptx_at(b, r->chunks, thread, LOAD_BYTES));
}

/* The partners of a chunk whose elements are all rotated. */
static void take_chunk(ptx_builder *b, const rope *r, const rows *q, const row_array *a, ptx_val chunk,
                       ptx_val *x)
{
    ptx_val words[ROW_WORDS_MAX], at = chunk_at(b, r, q, a, chunk);
    for (unsigned v = 0; v < row_words(a) / 4; v++)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, at, plane(r, a, 0, v), &words[4 * v], 4);
    row_widen(b, a, words, x);
}

/* One element (u32). */
static ptx_val take_element(ptx_builder *b, const rope *r, const rows *q, const row_array *a, ptx_val element)
{
    const unsigned bytes = element_bytes(a->type);
    ptx_val at = chunk_at(b, r, q, a, ptx_shr(b, element, 3));
    ptx_val byte = ptx_mul(b, ptx_and(b, element, ROW_CHUNK - 1), (int)bytes);
    at = ptx_mad(b, ptx_shr(b, byte, 4), plane(r, a, 0, 1), at);
    at = ptx_add(b, at, ptx_and(b, byte, LOAD_BYTES - 1));
    if (bytes == 4)
        return ptx_ld_shared(b, PTX_F32, at, 0);
    ptx_val word = ptx_cvt(b, PTX_U32, ptx_ld_shared(b, PTX_U16, at, 0)), x[2];
    emit_widen_word(b, a->type, word, x);
    return x[0];
}

/* ---- Rotation ---- */

/* (x * c) - (partner * s) for the first of a pair, (partner * s) + (x * c) for the second. */
static ptx_val rotated(ptx_builder *b, ptx_val x, ptx_val partner, ptx_val c, ptx_val s, ptx_val is_second)
{
    ptx_val other = ptx_mul(b, partner, s);
    other = ptx_selp(b, other, ptx_neg(b, other), is_second);
    return ptx_add(b, ptx_mul(b, x, c), other);
}

static void load_factors(ptx_builder *b, ptx_val table, ptx_val pair, unsigned count, ptx_val *factors)
{
    ptx_val at = ptx_at(b, table, pair, 4);
    for (unsigned i = 0; i < count; i += 4)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, (int)(4 * i), &factors[i], 4);
}

/* Pairs (2i, 2i + 1) of a chunk that begins `from` elements behind the first that is rotated. */
static void rotate_neighbours(ptx_builder *b, const rope *r, ptx_val from, ptx_val *x)
{
    ptx_val c[ROW_CHUNK / 2], s[ROW_CHUNK / 2], pair = ptx_shr(b, from, 1);
    load_factors(b, r->cos, pair, ROW_CHUNK / 2, c);
    load_factors(b, r->sin, pair, ROW_CHUNK / 2, s);
    for (unsigned i = 0; i < ROW_CHUNK / 2; i++) {
        ptx_val first = x[2 * i], second = x[2 * i + 1];
        x[2 * i] = ptx_sub(b, ptx_mul(b, first, c[i]), ptx_mul(b, second, s[i]));
        x[2 * i + 1] = ptx_add(b, ptx_mul(b, first, s[i]), ptx_mul(b, second, c[i]));
    }
}

static void rotate_halves(ptx_builder *b, const rope *r, const rows *q, const row_array *a, ptx_val from,
                          ptx_val *x)
{
    const uint32_t half = (uint32_t)(r->spec->rope.size / 2), first = (uint32_t)r->spec->rope.first;
    ptx_val c[ROW_CHUNK], s[ROW_CHUNK], partners[ROW_CHUNK];
    ptx_val is_second = ptx_setp(b, PTX_GE, from, ptx_u32(b, half));
    ptx_val pair = ptx_selp(b, ptx_sub(b, from, ptx_u32(b, half)), from, is_second);
    ptx_val partner = ptx_selp(b, pair, ptx_add(b, from, ptx_u32(b, half)), is_second);
    take_chunk(b, r, q, a, ptx_shr(b, ptx_add(b, partner, ptx_u32(b, first)), 3), partners);
    load_factors(b, r->cos, pair, ROW_CHUNK, c);
    load_factors(b, r->sin, pair, ROW_CHUNK, s);
    for (unsigned e = 0; e < ROW_CHUNK; e++)
        x[e] = rotated(b, x[e], partners[e], c[e], s[e], is_second);
}

/* A chunk of which some elements may be rotated, one by one. `from` may be negative. */
static void rotate_elements(ptx_builder *b, const rope *r, const rows *q, const row_array *a, ptx_val from,
                            ptx_val *x)
{
    const kernel_rope *rope = &r->spec->rope;
    const uint32_t size = (uint32_t)rope->size, first = (uint32_t)rope->first;
    for (unsigned e = 0; e < ROW_CHUNK; e++) {
        ptx_val at = ptx_add(b, from, e), is_second, pair, partner;
        ptx_val is_rotated = ptx_setp(b, PTX_LT, at, ptx_u32(b, size));
        at = ptx_selp(b, at, ptx_u32(b, 0), is_rotated);
        if (rope->neighbours) {
            is_second = ptx_setp(b, PTX_NE, ptx_and(b, at, 1), 0);
            pair = ptx_shr(b, at, 1);
            partner = ptx_xor(b, at, ptx_u32(b, 1));
        } else {
            is_second = ptx_setp(b, PTX_GE, at, ptx_u32(b, size / 2));
            pair = ptx_selp(b, ptx_sub(b, at, ptx_u32(b, size / 2)), at, is_second);
            partner = ptx_selp(b, pair, ptx_add(b, at, ptx_u32(b, size / 2)), is_second);
        }
        ptx_val other = take_element(b, r, q, a, ptx_add(b, partner, ptx_u32(b, first)));
        ptx_val c = ptx_ld_shared(b, PTX_F32, ptx_at(b, r->cos, pair, 4), 0),
                s = ptx_ld_shared(b, PTX_F32, ptx_at(b, r->sin, pair, 4), 0);
        x[e] = ptx_selp(b, rotated(b, x[e], other, c, s, is_second), x[e], is_rotated);
    }
}

static bool needs_partners(const kernel_rope *rope)
{
    return rope->size && !(rope->neighbours && is_in_chunks(rope));
}

/* Rotates the lane's chunks. What they were loaded as is in shared memory where partners are needed. */
static void rotate(ptx_builder *b, const rope *r, const rows *q, const row_array *a, ptx_val *x)
{
    const kernel_rope *rope = &r->spec->rope;
    for (unsigned i = 0; i < q->shape.chunks; i++) {
        ptx_val *y = &x[i * ROW_CHUNK], turned[ROW_CHUNK];
        ptx_val from = ptx_add(b, q->first, i * q->shape.lanes * ROW_CHUNK);
        from = ptx_sub(b, from, ptx_u32(b, (uint32_t)rope->first));
        if (!is_in_chunks(rope)) {
            rotate_elements(b, r, q, a, from, y);
            continue;
        }
        ptx_val is_rotated = ptx_setp(b, PTX_LT, from, ptx_u32(b, (uint32_t)rope->size));
        from = ptx_selp(b, from, ptx_u32(b, 0), is_rotated);
        for (unsigned e = 0; e < ROW_CHUNK; e++)
            turned[e] = y[e];
        if (rope->neighbours)
            rotate_neighbours(b, r, from, turned);
        else
            rotate_halves(b, r, q, a, from, turned);
        for (unsigned e = 0; e < ROW_CHUNK; e++)
            y[e] = ptx_selp(b, turned[e], y[e], is_rotated);
    }
}

/* ---- Results ---- */

/* Rounded to the type of y, with one NaN. */
static void round_all(ptx_builder *b, const rope *r, const rows *q, ptx_val *x)
{
    const qdnnDataType_t type = r->spec->epilogue.output;
    for (unsigned i = 0; i < q->shape.chunks * ROW_CHUNK; i++)
        x[i] = type == QDNN_DATA_F32 ? ptx_add(b, x[i], ptx_bits(b, PTX_F32, 0x80000000))
                                     : emit_round(b, type, x[i]);
}

static void store_queries(ptx_builder *b, const rope *r, const rows *x, const ptx_val *y)
{
    const kernel_spec *spec = r->spec;
    const qdnnDataType_t type = spec->epilogue.output;
    rows q = *x;
    ptx_val base = r->args->operand[QDNN_OPERAND_Y], stride = r->args->number[NUMBER_Y_STRIDE];
    q.whole = (ptx_val){0};
    rows_need_aligned(b, &q, base);
    rows_need_stride(b, &q, stride, type);
    q.exists = ptx_setp_and(b, PTX_LT, q.head, ptx_u64(b, spec->rope.queries), q.exists);
    ptx_val at = ptx_mad(b, r->token, stride, emit_multiply(b, q.head, spec->rope.head));
    row_store(b, &q,
              &(row_array){.type = type, .start = ptx_at(b, base, at, element_bytes(type)), .spread = 1}, y);
}

/* All strides and the array must be aligned for chunks to be stored as a whole. */
static void need_array_aligned(ptx_builder *b, rows *q, const kv_array *a)
{
    const ptx_val strides[] = {a->page_stride, a->slot_stride, a->head_stride};
    q->whole = (ptx_val){0};
    rows_need_aligned(b, q, a->start);
    for (int i = 0; i < 3 && a->spec.kv.type; i++)
        rows_need_stride(b, q, strides[i], (qdnnDataType_t)a->spec.kv.type);
}

/* Puts heads into a slot; the first of them has number `before` among those of the token. */
static void store_heads(ptx_builder *b, const rope *r, const rows *x, kv_which which, uint64_t before,
                        const ptx_val *y)
{
    const kv_array a = kv_array_of(b, r->row, r->spec, r->args, which);
    const kv_slot slot = kv_slot_of_token(b, r->spec, r->args, r->token);
    rows q = *x;
    q.spec = &a.spec;
    q.put = a.spec;
    q.put.data = r->spec->epilogue.output;
    q.head = ptx_sub(b, x->head, ptx_u64(b, before));
    q.exists = ptx_setp_and(b, PTX_GE, x->head, ptx_u64(b, before), x->exists);
    q.exists = ptx_and(b, q.exists, slot.exists);
    q.head = ptx_selp(b, q.head, ptx_u64(b, 0), q.exists);
    need_array_aligned(b, &q, &a);
    ptx_val element = kv_element(b, &a, &slot, q.head);
    if (a.spec.kv.type) {
        const row_array to = {
            .type = (qdnnDataType_t)a.spec.kv.type, .start = kv_address(b, &a, element), .spread = 1};
        row_store(b, &q, &to, y);
        return;
    }
    q.q = quantized_begin(b, r->row, &q.put, &a.args);
    quantized_open(b, &q.q);
    q.first_code = element;
    q.first_group = kv_scale_index(b, &a, &slot, q.head);
    ptx_val values[VALUES_MAX];
    for (unsigned i = 0; i < q.shape.chunks * ROW_CHUNK; i++)
        values[i] = y[i];
    row_mask(b, &q, values);
    if (a.groups == 0) {
        const group_values group = group_load(b, &q.q.coding, &q.q.side, q.first_group);
        row_encode(b, &q, &group, values);
    } else {
        row_quantize(b, &q, values);
    }
}

/* ---- Heads of a block ---- */

/* The heads that a part of the block's threads has: those of x from element `offset` of a token, each of rows.columns. */
static rows heads_of(ptx_builder *b, const rope *r, const kernel_spec *spec, ptx_val part, uint64_t count)
{
    rows x;
    rows_begin(b, &x, r->row, spec, r->args, true);
    x.shape.block = r->shape.block;
    const unsigned teams = r->shape.block / x.shape.lanes;
    x.token = r->token;
    x.head = ptx_add(b, emit_multiply(b, part, teams), x.team);
    x.exists = ptx_setp(b, PTX_LT, x.head, ptx_u64(b, count));
    rows_need_aligned(b, &x, r->args->operand[QDNN_OPERAND_X]);
    rows_need_stride(b, &x, r->args->number[NUMBER_X_STRIDE], r->spec->data);
    return x;
}

static row_array load_heads(ptx_builder *b, const rope *r, const rows *x, uint64_t offset, ptx_val *words)
{
    ptx_val at = ptx_mad(b, r->token, r->args->number[NUMBER_X_STRIDE],
                         emit_multiply(b, x->head, x->spec->rows.columns));
    at = ptx_add(b, at, ptx_u64(b, offset));
    const row_array a = {.type = r->spec->data,
                         .start =
                             ptx_at(b, r->args->operand[QDNN_OPERAND_X], at, element_bytes(r->spec->data)),
                         .spread = 1};
    row_load(b, x, &a, x->exists, words);
    return a;
}

static void widen_all(ptx_builder *b, const rows *x, const row_array *a, const ptx_val *words, ptx_val *y)
{
    for (unsigned i = 0; i < x->shape.chunks; i++)
        row_widen(b, a, &words[i * row_words(a)], &y[i * ROW_CHUNK]);
}

/* A specification of heads of x, of which nothing is quantized. */
static kernel_spec plain_heads(const kernel_spec *spec, uint64_t columns)
{
    kernel_spec heads = *spec;
    heads.rows = (kernel_row_extent){.columns = columns, .heads = 1};
    heads.stored.groups = QDNN_GROUPS_DEFAULT;
    return heads;
}

/* Whether a head of this warp is a key. */
static ptx_val warp_has_keys(ptx_builder *b, const rope *r, const rows *x)
{
    ptx_val last = ptx_add(
        b, ptx_sub(b, x->head, ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_laneid(b), ceil_log2(x->shape.lanes)))),
        ptx_u64(b, WARP / x->shape.lanes - 1));
    return ptx_setp(b, PTX_GE, last, ptx_u64(b, r->spec->rope.queries));
}

static void emit_rotating(ptx_builder *b, const rope *r, ptx_val part)
{
    const kernel_spec *spec = r->spec, heads = plain_heads(spec, spec->rope.head);
    ptx_val words[WORDS_MAX], y[VALUES_MAX];
    const rows x = heads_of(b, r, &heads, part, r->shape.rotating);
    const row_array a = load_heads(b, r, &x, 0, words);
    if (spec->rope.size) {
        load_tables(b, r);
        if (needs_partners(&spec->rope))
            put_chunks(b, r, &x, &a, words);
        ptx_syncthreads(b);
    }
    widen_all(b, &x, &a, words, y);
    if (spec->rope.size)
        rotate(b, r, &x, &a, y);
    round_all(b, r, &x, y);
    if (spec->rope.queries)
        store_queries(b, r, &x, y);
    if (!spec->kv.key_size)
        return;
    if (spec->rope.queries) {
        ptx_uniform(b);
        ptx_if(b, warp_has_keys(b, r, &x));
    }
    store_heads(b, r, &x, KV_KEYS, spec->rope.queries, y);
    if (spec->rope.queries)
        ptx_end_if(b);
}

static void emit_values(ptx_builder *b, const rope *r, ptx_val part)
{
    const kernel_spec *spec = r->spec, heads = plain_heads(spec, spec->kv.value_size);
    ptx_val words[WORDS_MAX], y[VALUES_MAX];
    const rows x = heads_of(b, r, &heads, part, spec->kv.heads);
    const row_array a = load_heads(b, r, &x, r->shape.rotating * spec->rope.head, words);
    widen_all(b, &x, &a, words, y);
    round_all(b, r, &x, y);
    store_heads(b, r, &x, KV_VALUES, 0, y);
}

/* Shared memory for the tables, and for chunks whose partners are in others. */
static void open_tables(ptx_builder *b, rope *r)
{
    const kernel_spec *spec = r->spec;
    if (!spec->rope.size)
        return;
    const unsigned pairs = (unsigned)ceil_div(spec->rope.size / 2, 4) * 4;
    r->cos = ptx_shared(b, "cos_row", PTX_F32, pairs, LOAD_BYTES);
    r->sin = ptx_shared(b, "sin_row", PTX_F32, pairs, LOAD_BYTES);
    if (!needs_partners(&spec->rope))
        return;
    const kernel_spec heads = plain_heads(spec, spec->rope.head);
    const unsigned chunks = row_shape_of(&heads, true).chunks;
    r->chunks = ptx_shared(b, "chunks", PTX_U32,
                           chunks * r->shape.block * ROW_CHUNK * element_bytes(spec->data) / 4, LOAD_BYTES);
}

void emit_rope(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    rope r = {.row = row, .spec = spec, .args = &args, .shape = rope_shape_of(row, spec)};
    const uint64_t parts = r.shape.parts + r.shape.value_parts;
    open_tables(b, &r);
    ptx_val items = emit_multiply(b, args.number[NUMBER_M], parts);
    ptx_val item =
        ptx_for(b, ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), items, ptx_cvt(b, PTX_U64, ptx_nctaid_x(b)));
    r.token = emit_divide(b, item, parts);
    ptx_val part = emit_remainder(b, item, r.token, parts);
    const bool has_both = r.shape.parts && r.shape.value_parts;
    if (has_both) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_LT, part, ptx_u64(b, r.shape.parts)));
    }
    if (r.shape.parts)
        emit_rotating(b, &r, part);
    if (has_both)
        ptx_else(b);
    if (r.shape.value_parts)
        emit_values(b, &r, r.shape.parts ? ptx_sub(b, part, ptx_u64(b, r.shape.parts)) : part);
    if (has_both)
        ptx_end_if(b);
    if (spec->rope.size)
        ptx_syncthreads(b); /* the tables have been read */
    ptx_end_for(b);
}
