/* Rows in registers: who holds which elements, loading and storing them, sums over rows, quantized results. */
#include "kernels/rows/rows.h"

#include "kernels/quant/ranges.h"

enum {
    SEGMENT_CHUNKS = 512, /* of the long sum */
    SEGMENTS_MAX = ROW_LANES_MAX * ROW_CHUNKS_MAX / SEGMENT_CHUNKS,
    SEGMENTS_AT_ONCE = 2, /* in shared memory: 32 KiB */
    UNROLLED = 4          /* chunks of a step of a lane's sum */
};

/* ---- Who holds what ---- */

bool rows_are_quantized(const kernel_spec *spec)
{
    return spec->stored.groups != QDNN_GROUPS_DEFAULT;
}

bool rows_have_one_scale(const kernel_spec *spec)
{
    return rows_are_quantized(spec) && spec->stored.group_size == spec->rows.columns;
}

static unsigned power_of_two(uint64_t least)
{
    return 1u << ceil_log2(least);
}

row_shape row_shape_of(const kernel_spec *spec, bool is_whole)
{
    enum { BLOCK = 256, WARP_CHUNKS = 4, PART_CHUNKS = 2 };
    const uint64_t chunks = ceil_div(spec->rows.columns, ROW_CHUNK);
    row_shape s = {.block = BLOCK, .lanes = BLOCK, .parts = 1};
    if (chunks <= WARP * WARP_CHUNKS)
        s.lanes = power_of_two(chunks < WARP ? chunks : WARP);
    else if (chunks > (uint64_t)BLOCK * WARP_CHUNKS && is_whole)
        s.block = s.lanes = ROW_LANES_MAX;
    const uint64_t each = ceil_div(chunks, s.lanes);
    s.chunks = (unsigned)(is_whole || each <= PART_CHUNKS ? each : PART_CHUNKS);
    s.parts = ceil_div(each, s.chunks);
    return s;
}

static bool is_ragged(const kernel_spec *spec)
{
    return spec->rows.columns % ROW_CHUNK != 0;
}

void rows_begin(ptx_builder *b, rows *r, const kernel_row *row, const kernel_spec *spec,
                const kernel_args *args, bool is_whole)
{
    *r = (rows){.spec = spec, .args = args, .shape = row_shape_of(spec, is_whole), .put = *spec};
    ptx_val tid = ptx_tid_x(b);
    r->lane = ptx_and(b, tid, r->shape.lanes - 1);
    r->team = ptx_cvt(b, PTX_U64, ptx_shr(b, tid, ceil_log2(r->shape.lanes)));
    r->first = ptx_mul(b, r->lane, ROW_CHUNK);
    r->put.data = spec->epilogue.output;
    if (rows_are_quantized(spec)) {
        r->q = quantized_begin(b, row, &r->put, args);
        quantized_open(b, &r->q);
        rows_need_aligned(b, r, r->q.codes);
    }
}

void rows_need_aligned(ptx_builder *b, rows *r, ptx_val pointer)
{
    if (is_ragged(r->spec))
        return;
    r->whole = r->whole.kind == PTX_NOTHING ? emit_aligned(b, pointer, LOAD_BYTES)
                                            : emit_aligned_and(b, r->whole, pointer, LOAD_BYTES);
}

void rows_need_stride(ptx_builder *b, rows *r, ptx_val stride, qdnnDataType_t type)
{
    rows_need_aligned(b, r, ptx_mul(b, stride, ptx_u64(b, element_bytes(type))));
}

void rows_loop(ptx_builder *b, rows *r)
{
    const row_shape *s = &r->shape;
    const unsigned teams = s->block / s->lanes;
    ptx_val rows_of_all = emit_multiply(b, r->args->number[NUMBER_M], r->spec->rows.heads);
    ptx_val items = emit_multiply(b, rows_of_all, s->parts);
    ptx_val at = ptx_for(b, ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, teams)), items,
                         ptx_mul_wide(b, ptx_nctaid_x(b), ptx_u32(b, teams)));
    ptx_val item = ptx_add(b, at, r->team);
    r->exists = ptx_setp(b, PTX_LT, item, items);
    r->row = emit_divide(b, item, s->parts);
    if (s->parts > 1) {
        ptx_val part = ptx_cvt(b, PTX_U32, emit_remainder(b, item, r->row, s->parts));
        r->first = ptx_mad(b, part, s->lanes * s->chunks * ROW_CHUNK, ptx_mul(b, r->lane, ROW_CHUNK));
    }
    r->token = emit_divide(b, r->row, r->spec->rows.heads);
    r->head = emit_remainder(b, r->row, r->token, r->spec->rows.heads);
}

void rows_end(ptx_builder *b)
{
    ptx_end_for(b);
}

ptx_val row_start(ptx_builder *b, const rows *r, ptx_val base, ptx_val stride, qdnnDataType_t type)
{
    ptx_val at = ptx_mad(b, r->token, stride, emit_multiply(b, r->head, r->spec->rows.columns));
    return ptx_at(b, base, at, element_bytes(type));
}

/* The lane's first element of chunk i (u32), and whether it is in the row. */
static ptx_val chunk_first(ptx_builder *b, const rows *r, unsigned i)
{
    return ptx_add(b, r->first, i * r->shape.lanes * ROW_CHUNK);
}

static ptx_val chunk_exists(ptx_builder *b, const rows *r, unsigned i, ptx_val exists)
{
    const row_shape *s = &r->shape;
    const uint64_t all = (uint64_t)s->lanes * ROW_CHUNK * (s->parts > 1 ? s->parts * s->chunks : i + 1);
    return all <= r->spec->rows.columns ? exists
                                        : ptx_setp_and(b, PTX_LT, chunk_first(b, r, i),
                                                       ptx_u32(b, (uint32_t)r->spec->rows.columns), exists);
}

/* ---- Words ---- */

unsigned row_words(const row_array *a)
{
    return ROW_CHUNK * element_bytes(a->type) * a->spread / 4;
}

/* Chunks of 32 bytes and more are loaded and stored by two lanes together, so that requests fill their sectors: 16 bytes of
 * the first lane's chunk each, and then of the second one's. Whether that is so: both have a chunk, or neither. */
static bool is_joint(const rows *r, const row_array *a)
{
    return row_words(a) > 4 && r->shape.lanes > 1 && r->spec->rows.columns % (2 * ROW_CHUNK) == 0;
}

static ptx_val is_second(ptx_builder *b)
{
    return ptx_setp(b, PTX_NE, ptx_and(b, ptx_laneid(b), 1), 0);
}

static ptx_val joint_address(ptx_builder *b, ptx_val address, unsigned words)
{
    ptx_val back = ptx_mul(b, ptx_and(b, ptx_laneid(b), 1), 4 * words - LOAD_BYTES);
    return ptx_sub(b, address, ptx_cvt(b, PTX_U64, back));
}

/* Vector j of the first half of `from` is vector 2j of the first lane's chunk or vector 2j + 1 of it, by lane; those of the
 * second half are of the second lane's. Afterwards each lane has its own chunk. */
static void take_own(ptx_builder *b, unsigned words, const ptx_val *from, ptx_val *own)
{
    ptx_val second = is_second(b);
    for (unsigned i = 0; i < words / 2; i++) {
        ptx_val first = from[i], last = from[i + words / 2];
        ptx_val got = ptx_shfl_bfly(b, ptx_selp(b, first, last, second), ptx_u32(b, 1));
        const unsigned at = i / 4 * 8 + i % 4;
        own[at] = ptx_selp(b, got, first, second);
        own[at + 4] = ptx_selp(b, last, got, second);
    }
}

/* The reverse. */
static void give_halves(ptx_builder *b, unsigned words, const ptx_val *own, ptx_val *to)
{
    ptx_val second = is_second(b);
    for (unsigned i = 0; i < words / 2; i++) {
        const unsigned at = i / 4 * 8 + i % 4;
        ptx_val even = own[at], odd = own[at + 4];
        ptx_val got = ptx_shfl_bfly(b, ptx_selp(b, even, odd, second), ptx_u32(b, 1));
        to[i] = ptx_selp(b, got, even, second);
        to[i + words / 2] = ptx_selp(b, odd, got, second);
    }
}

static ptx_val chunk_address(ptx_builder *b, const rows *r, const row_array *a)
{
    return ptx_at(b, a->start, ptx_cvt(b, PTX_U64, r->first), element_bytes(a->type) * a->spread);
}

static void load_vectors(ptx_builder *b, const rows *r, const row_array *a, ptx_val exists,
                         const ptx_val *words)
{
    const unsigned each = row_words(a);
    const int step = (int)(r->shape.lanes * each * 4);
    const bool joint = is_joint(r, a);
    ptx_val at = chunk_address(b, r, a);
    if (joint)
        at = joint_address(b, at, each);
    for (unsigned i = 0; i < r->shape.chunks; i++) {
        ptx_if(b, chunk_exists(b, r, i, exists));
        for (unsigned j = 0; j < each / 4; j++)
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U32, at,
                            (int)i * step + (int)(j * LOAD_BYTES * (joint ? 2 : 1)), &words[i * each + 4 * j],
                            4);
        ptx_end_if(b);
    }
    for (unsigned i = 0; i < r->shape.chunks && joint; i++) {
        ptx_val own[ROW_WORDS_MAX];
        take_own(b, each, &words[i * each], own);
        for (unsigned j = 0; j < each; j++)
            ptx_assign(b, words[i * each + j], own[j]);
    }
}

/* Element `e` of chunk i exists. */
static ptx_val element_exists(ptx_builder *b, const rows *r, const row_array *a, unsigned i, unsigned e,
                              ptx_val exists)
{
    ptx_val index = ptx_add(b, chunk_first(b, r, i), e / a->spread);
    return ptx_setp_and(b, PTX_LT, index, ptx_u32(b, (uint32_t)r->spec->rows.columns), exists);
}

static void load_elements(ptx_builder *b, const rows *r, const row_array *a, ptx_val exists,
                          const ptx_val *words)
{
    const unsigned bytes = element_bytes(a->type), each = row_words(a), elements = ROW_CHUNK * a->spread;
    ptx_val at = chunk_address(b, r, a);
    for (unsigned i = 0; i < r->shape.chunks; i++) {
        ptx_val last = {0};
        for (unsigned e = 0; e < elements; e++) {
            const int offset = (int)((i * r->shape.lanes * elements + e) * bytes);
            ptx_val here = element_exists(b, r, a, i, e, exists), x;
            if (bytes == 4) {
                x = ptx_ld_if(b, here, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U32, at, offset, ptx_u32(b, 0));
                ptx_assign(b, words[i * each + e], x);
                continue;
            }
            x = ptx_cvt(
                b, PTX_U32,
                ptx_ld_if(b, here, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U16, at, offset, ptx_u16(b, 0)));
            if (e % 2)
                ptx_assign(b, words[i * each + e / 2], ptx_bfi(b, x, last, 16, 16));
            last = x;
        }
    }
}

void row_load(ptx_builder *b, const rows *r, const row_array *a, ptx_val exists, ptx_val *words)
{
    const bool may_be_whole = !is_ragged(r->spec);
    for (unsigned i = 0; i < r->shape.chunks * row_words(a); i++)
        words[i] = ptx_var(b, ptx_u32(b, 0));
    if (may_be_whole) {
        ptx_uniform(b);
        ptx_if(b, r->whole);
        load_vectors(b, r, a, exists, words);
        ptx_else(b);
    }
    load_elements(b, r, a, exists, words);
    if (may_be_whole)
        ptx_end_if(b);
}

void row_widen(ptx_builder *b, const row_array *a, const ptx_val *words, ptx_val *x)
{
    const unsigned in_word = 4 / element_bytes(a->type);
    for (unsigned j = 0; j < row_words(a); j++)
        emit_widen_word(b, a->type, words[j], &x[j * in_word]);
}

static void store_vectors(ptx_builder *b, const rows *r, const row_array *a, const ptx_val *x)
{
    const unsigned each = row_words(a);
    const bool joint = is_joint(r, a);
    ptx_val at = chunk_address(b, r, a);
    if (joint)
        at = joint_address(b, at, each);
    for (unsigned i = 0; i < r->shape.chunks; i++) {
        ptx_val words[ROW_WORDS_MAX], own[ROW_WORDS_MAX];
        for (unsigned j = 0; j < each; j++)
            own[j] = each == ROW_CHUNK ? ptx_as(b, PTX_U32, x[i * ROW_CHUNK + j])
                                       : emit_narrow_pair(b, a->type, x[i * ROW_CHUNK + 2 * j],
                                                          x[i * ROW_CHUNK + 2 * j + 1]);
        if (joint)
            give_halves(b, each, own, words);
        ptx_if(b, chunk_exists(b, r, i, r->exists));
        for (unsigned j = 0; j < each / 4; j++)
            ptx_st_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, at,
                       (int)(i * r->shape.lanes * each * 4 + j * LOAD_BYTES * (joint ? 2 : 1)),
                       joint ? &words[4 * j] : &own[4 * j], 4);
        ptx_end_if(b);
    }
}

static void store_elements(ptx_builder *b, const rows *r, const row_array *a, const ptx_val *x)
{
    const unsigned bytes = element_bytes(a->type);
    ptx_val at = chunk_address(b, r, a);
    for (unsigned i = 0; i < r->shape.chunks; i++)
        for (unsigned e = 0; e < ROW_CHUNK; e++) {
            ptx_if(b, element_exists(b, r, a, i, e, r->exists));
            emit_store(b, a->type, at, (int)((i * r->shape.lanes * ROW_CHUNK + e) * bytes),
                       x[i * ROW_CHUNK + e]);
            ptx_end_if(b);
        }
}

void row_store(ptx_builder *b, const rows *r, const row_array *a, const ptx_val *x)
{
    const bool may_be_whole = !is_ragged(r->spec);
    if (may_be_whole) {
        ptx_uniform(b);
        ptx_if(b, r->whole);
        store_vectors(b, r, a, x);
        ptx_else(b);
    }
    store_elements(b, r, a, x);
    if (may_be_whole)
        ptx_end_if(b);
}

void row_mask(ptx_builder *b, const rows *r, ptx_val *x)
{
    const row_array any = {.spread = 1};
    for (unsigned i = 0; i < r->shape.chunks; i++)
        for (unsigned e = 0; e < ROW_CHUNK; e++) {
            if (!is_ragged(r->spec) &&
                (uint64_t)(i + 1) * r->shape.lanes * ROW_CHUNK <= r->spec->rows.columns)
                continue;
            x[i * ROW_CHUNK + e] =
                ptx_selp(b, x[i * ROW_CHUNK + e], ptx_f32(b, 0), element_exists(b, r, &any, i, e, r->exists));
        }
}

/* ---- Sums ---- */

static ptx_val add_term(ptx_builder *b, ptx_val sum, ptx_val x, bool is_squared)
{
    return is_squared ? ptx_fma(b, x, x, sum) : ptx_add(b, sum, x);
}

/* The terms of a lane are those of a lane of the sum, and the row is one segment. */
static ptx_val sum_in_team(ptx_builder *b, const rows *r, const ptx_val *x, bool is_squared)
{
    ptx_val sum = ptx_f32(b, 0);
    for (unsigned i = 0; i < r->shape.chunks * ROW_CHUNK; i++)
        sum = add_term(b, sum, x[i], is_squared);
    for (unsigned half = r->shape.lanes / 2; half > 0; half /= 2)
        sum = ptx_add(b, sum, ptx_shfl_bfly(b, sum, half));
    return ptx_add(b, sum, ptx_f32(b, 0));
}

static unsigned segments_of(const rows *r)
{
    return (unsigned)ceil_div(r->spec->rows.columns, SEGMENT_CHUNKS * ROW_CHUNK);
}

/* A plane has half of the terms that are in shared memory. */
static int plane_bytes(const rows *r)
{
    const unsigned segments = segments_of(r);
    return (int)(segments < SEGMENTS_AT_ONCE ? segments : SEGMENTS_AT_ONCE) * SEGMENT_CHUNKS * LOAD_BYTES;
}

/* The first four elements of each chunk, and the others, are apart, so that neighbouring lanes have neighbouring vectors. */
static void stage_terms(ptx_builder *b, const rows *r, ptx_val terms, unsigned round, const ptx_val *x)
{
    const unsigned first = round * SEGMENTS_AT_ONCE * SEGMENT_CHUNKS;
    for (unsigned i = 0; i < r->shape.chunks; i++) {
        const unsigned chunk = i * r->shape.lanes;
        if (chunk < first || chunk >= first + SEGMENTS_AT_ONCE * SEGMENT_CHUNKS)
            continue;
        ptx_val at = ptx_at(b, terms, r->lane, LOAD_BYTES);
        const int offset = (int)(chunk - first) * LOAD_BYTES;
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at, offset, &x[i * ROW_CHUNK], 4);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at, plane_bytes(r) + offset, &x[i * ROW_CHUNK + 4], 4);
    }
}

/* Warp w of those that have a segment sums segment w of the round. */
static void sum_segments(ptx_builder *b, const rows *r, ptx_val terms, ptx_val sums, unsigned round,
                         bool is_squared)
{
    const unsigned segments = segments_of(r), first = round * SEGMENTS_AT_ONCE,
                   here = segments - first < SEGMENTS_AT_ONCE ? segments - first : SEGMENTS_AT_ONCE;
    ptx_val lane = ptx_laneid(b), warp = ptx_shr(b, r->lane, 5);
    ptx_if(b, ptx_setp(b, PTX_LT, warp, here));
    ptx_val sum = ptx_var(b, ptx_f32(b, 0));
    ptx_val begin = ptx_mul(b, warp, SEGMENT_CHUNKS);
    const unsigned held = r->shape.lanes * r->shape.chunks - first * SEGMENT_CHUNKS;
    ptx_val end = ptx_min(b, ptx_add(b, begin, SEGMENT_CHUNKS), ptx_u32(b, held));
    ptx_val chunk = ptx_for(b, begin, end, UNROLLED * WARP);
    ptx_val at = ptx_at(b, terms, ptx_add(b, chunk, lane), LOAD_BYTES), x[UNROLLED][ROW_CHUNK];
    for (unsigned i = 0; i < UNROLLED; i++)
        for (unsigned half = 0; half < 2; half++)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at,
                       (int)(i * WARP * LOAD_BYTES + half * (unsigned)plane_bytes(r)), &x[i][4 * half], 4);
    for (unsigned i = 0; i < UNROLLED; i++)
        for (unsigned e = 0; e < ROW_CHUNK; e++)
            ptx_assign(b, sum, add_term(b, sum, x[i][e], is_squared));
    ptx_end_for(b);
    ptx_val all = sum;
    for (unsigned half = WARP / 2; half > 0; half /= 2)
        all = ptx_add(b, all, ptx_shfl_bfly(b, all, half));
    ptx_if(b, ptx_setp(b, PTX_EQ, lane, 0));
    ptx_st_shared(b, ptx_at(b, sums, warp, 4), (int)(4 * first), ptx_add(b, all, ptx_f32(b, 0)));
    ptx_end_if(b);
    ptx_end_if(b);
}

/* The segments of a row are at most a chunk: one lane adds them. */
_Static_assert((int)SEGMENTS_MAX <= (int)ROW_CHUNK, "the sums of segments are one chunk of their long sum");

static ptx_val sum_in_block(ptx_builder *b, rows *r, const ptx_val *x, bool is_squared)
{
    const unsigned segments = segments_of(r);
    if (r->terms.kind == PTX_NOTHING) {
        r->terms = ptx_shared(b, "terms", PTX_F32, 2 * (unsigned)plane_bytes(r) / 4, LOAD_BYTES);
        r->sums = ptx_shared(b, "sums", PTX_F32, SEGMENTS_MAX, LOAD_BYTES);
    }
    for (unsigned round = 0; round * SEGMENTS_AT_ONCE < segments; round++) {
        ptx_syncthreads(b); /* the terms before these have been read */
        stage_terms(b, r, r->terms, round, x);
        ptx_syncthreads(b);
        sum_segments(b, r, r->terms, r->sums, round, is_squared);
    }
    ptx_syncthreads(b);
    ptx_val all = ptx_ld_shared(b, PTX_F32, r->sums, 0);
    for (unsigned i = 1; i < segments; i++)
        all = ptx_add(b, all, ptx_ld_shared(b, PTX_F32, r->sums, (int)(4 * i)));
    return segments == 1 ? all : ptx_add(b, all, ptx_f32(b, 0));
}

ptx_val row_sum(ptx_builder *b, rows *r, const ptx_val *x, bool is_squared)
{
    return r->shape.lanes <= WARP ? sum_in_team(b, r, x, is_squared) : sum_in_block(b, r, x, is_squared);
}

/* ---- Quantized results ---- */

/* The largest over neighbouring lanes, whose number is a power of two; all of them get it. */
static ptx_val largest_of_lanes(ptx_builder *b, ptx_val x, unsigned lanes)
{
    for (unsigned half = lanes / 2; half > 0; half /= 2)
        x = ptx_max(b, x, ptx_shfl_bfly(b, x, half));
    return x;
}

static ptx_val largest_of_block(ptx_builder *b, rows *r, ptx_val x)
{
    const unsigned warps = r->shape.block / WARP;
    if (r->largest.kind == PTX_NOTHING)
        r->largest = ptx_shared(b, "largest", PTX_F32, ROW_LANES_MAX / WARP, LOAD_BYTES);
    ptx_val of_warp = largest_of_lanes(b, x, WARP);
    ptx_syncthreads(b); /* those of the row before have been read */
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_laneid(b), 0));
    ptx_st_shared(b, ptx_at(b, r->largest, ptx_shr(b, r->lane, 5), 4), 0, of_warp);
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val at = ptx_at(b, r->largest, ptx_and(b, ptx_laneid(b), warps - 1), 4);
    return largest_of_lanes(b, ptx_ld_shared(b, PTX_F32, at, 0), warps);
}

/* The absmax of the group that chunk i is in. */
static ptx_val absmax_of_group(ptx_builder *b, rows *r, const ptx_val *y, unsigned i, bool one_scale)
{
    const range own = range_begin(b, range_kind_of(&r->q.coding));
    const unsigned chunks = one_scale ? r->shape.chunks : 1;
    for (unsigned k = 0; k < chunks * ROW_CHUNK; k++)
        range_add(b, &own, y[(one_scale ? 0 : i * ROW_CHUNK) + k]);
    if (one_scale && r->shape.lanes > WARP)
        return largest_of_block(b, r, own.hi);
    const unsigned lanes = one_scale ? r->shape.lanes : (unsigned)r->spec->stored.group_size / ROW_CHUNK;
    return largest_of_lanes(b, own.hi, lanes);
}

static void store_code_bytes(ptx_builder *b, const coding *c, ptx_val at, const ptx_val *quads)
{
    const unsigned bytes = c->format->facts.bits / 2; /* of a quad */
    for (unsigned i = 0; i < ROW_CHUNK / QUAD; i++)
        for (unsigned k = 0; k < bytes; k++)
            ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U8, at, (int)(i * bytes + k),
                      k ? ptx_shr(b, quads[i], 8 * k) : quads[i]);
}

/* Where rows have no places of their own, they follow each other. */
static ptx_val first_code(ptx_builder *b, const rows *r)
{
    return r->first_code.kind != PTX_NOTHING ? r->first_code
                                             : emit_multiply(b, r->row, r->spec->rows.columns);
}

static ptx_val first_group(ptx_builder *b, const rows *r)
{
    return r->first_group.kind != PTX_NOTHING
               ? r->first_group
               : emit_multiply(b, r->row, r->spec->rows.columns / r->spec->stored.group_size);
}

static void store_codes(ptx_builder *b, const rows *r, unsigned i, const ptx_val *quads)
{
    const coding *c = &r->q.coding;
    ptx_val element = ptx_add(b, first_code(b, r), ptx_cvt(b, PTX_U64, chunk_first(b, r, i)));
    ptx_val bit = emit_multiply(b, element, c->format->facts.bits),
            at = ptx_add(b, r->q.codes, ptx_shr(b, bit, 3));
    ptx_if(b, chunk_exists(b, r, i, r->exists));
    ptx_uniform(b);
    ptx_if(b, r->whole);
    codes_store(b, &r->q, at, 0, ROW_CHUNK, quads);
    ptx_else(b);
    store_code_bytes(b, c, at, quads);
    ptx_end_if(b);
    ptx_end_if(b);
}

/* The first lane of a group stores its scale. */
static void store_scale(ptx_builder *b, const rows *r, unsigned i, bool one_scale, const group_made *made)
{
    const uint64_t size = r->spec->stored.group_size;
    ptx_val first = chunk_first(b, r, i), within = ptx_and(b, first, (uint32_t)(size - 1));
    ptx_val leads = ptx_setp(b, PTX_EQ, one_scale ? r->lane : within, 0);
    ptx_val group = first_group(b, r);
    if (!one_scale)
        group = ptx_add(b, group, ptx_cvt(b, PTX_U64, ptx_shr(b, first, ceil_log2(size))));
    ptx_if(b, ptx_and(b, leads, chunk_exists(b, r, i, r->exists)));
    group_store(b, &r->q.coding, &r->q.side, made, group);
    ptx_end_if(b);
}

void row_encode(ptx_builder *b, const rows *r, const group_values *group, const ptx_val *y)
{
    const chunk_groups groups = {.first = *group};
    for (unsigned i = 0; i < r->shape.chunks; i++) {
        ptx_val quads[ROW_CHUNK / QUAD];
        chunk_encode(b, &r->q, &groups, &y[i * ROW_CHUNK], ROW_CHUNK, quads);
        store_codes(b, r, i, quads);
    }
}

void row_quantize(ptx_builder *b, rows *r, const ptx_val *y)
{
    const bool one_scale = rows_have_one_scale(r->spec);
    group_made made = {0};
    for (unsigned i = 0; i < r->shape.chunks; i++) {
        ptx_val quads[ROW_CHUNK / QUAD];
        if (i == 0 || !one_scale) {
            made = group_make(b, &r->q.coding, &r->q.side, ptx_f32(b, 0),
                              absmax_of_group(b, r, y, i, one_scale));
            store_scale(b, r, i, one_scale, &made);
        }
        const chunk_groups groups = {.first = group_of_made(b, &r->q.coding, &r->q.side, &made)};
        chunk_encode(b, &r->q, &groups, &y[i * ROW_CHUNK], ROW_CHUNK, quads);
        store_codes(b, r, i, quads);
    }
}

void row_finish(ptx_builder *b, rows *r, ptx_val *y)
{
    const qdnnDataType_t type = r->spec->epilogue.output;
    if (!rows_are_quantized(r->spec)) {
        ptx_val start =
            row_start(b, r, r->args->operand[QDNN_OPERAND_Y], r->args->number[NUMBER_Y_STRIDE], type);
        row_store(b, r, &(row_array){.type = type, .start = start, .spread = 1}, y);
        return;
    }
    row_mask(b, r, y);
    for (unsigned i = 0; i < r->shape.chunks * ROW_CHUNK; i++)
        y[i] = emit_round(b, type, y[i]);
    row_quantize(b, r, y);
}
