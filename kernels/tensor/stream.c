/* The stream kernel of products in mode tensor, for few rows: prepacked weights go from memory straight into registers, where
 * they are decoded to operand A of mma; x is operand B, so that eight rows take one instruction for 256 weights.
 *
 * A warp has one strip of 512 k of 32 columns; the eight warps of a block stand side by side and share that strip of x in
 * shared memory. Loads run four units ahead. The sum of each strip goes to the workspace, [strip][m][n], by itself; a second
 * kernel joins them in order and completes y. */
#include "kernels/formats/pairs.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/tensor/groups.h"
#include "kernels/tensor/prepack.h"

#include <stdio.h>

enum {
    WARPS = 8,
    THREADS = WARPS * WARP,
    STRIP = 512,
    UNITS = STRIP / UNIT_K,
    AHEAD = 4, /* units */
    TILES = 2, /* of 16 columns, a warp */
    WARP_N = TILES * UNIT_N,
    BLOCK_N = WARPS * WARP_N,
    ROWS_MAX = 64,
    LINE_BYTES = 2 * STRIP, /* of a row of x in shared memory */
    BITS_MAX = 8
};

typedef struct stream {
    const kernel_spec *spec;
    gemm_args args;
    matrix m;
    unsigned bits, rows, m_tiles;
    bool k_in_columns;
    ptx_val n, k, rows_x; /* u32: outputs, k, rows of x */
    ptx_val lane, g, t;   /* u32: the lane, lane / 4, lane % 4 */
    ptx_val n0, m0, k0;   /* u32: of the warp, of the block, of the strip */
    ptx_val my_n;         /* u32: the column whose group this lane loads */
    ptx_val units[TILES]; /* pointers to this lane's words of the strip's first unit */
    ptx_val x_shared;
    ptx_val x_lane[2]; /* u32: where ldmatrix reads, for steps 0 and 1, and 2 and 3 of a unit */
    ptx_val sums[TILES][ROWS_MAX / 8][4];
    column_groups groups;        /* of my_n, from the strip's first on */
    pair_group group[2 * TILES]; /* of rows g, g + 8, g + 16, g + 24 */
} stream;

/* ---- Groups ---- */

/* Whether the groups change at a step of a strip, as far as is known now. */
static bool group_begins(const kernel_spec *spec, unsigned step)
{
    const uint64_t extent = group_extent(spec);
    if (extent == 0)
        return false;
    if (extent % STRIP == 0)
        return step == 0;
    return STRIP % extent == 0 ? step * 16 % extent == 0 : true;
}

static ptx_val from_lane(ptx_builder *b, ptx_val x, ptx_val lane)
{
    if (x.kind == PTX_NOTHING || x.kind == PTX_NUMBER)
        return x;
    return ptx_as(b, (ptx_type)x.type, ptx_shfl_idx(b, ptx_as(b, PTX_U32, x), lane));
}

/* Those of a strip are counted from its first, where strips begin with groups. */
static bool groups_are_counted(const kernel_spec *spec)
{
    const uint64_t extent = group_extent(spec);
    return groups_are_regular(spec) && (extent % STRIP == 0 || STRIP % extent == 0);
}

static void begin_groups(ptx_builder *b, stream *s)
{
    if (!groups_are_counted(s->spec))
        return;
    s->groups = column_groups_of(b, &s->m, ptx_cvt(b, PTX_U64, s->my_n));
    ptx_val before = emit_divide(b, ptx_cvt(b, PTX_U64, s->k0), group_extent(s->spec));
    s->groups.first = ptx_mad(b, before, s->groups.step, s->groups.first);
}

/* The numbers of this lane's column at a step of the strip. */
static group_values group_at_step(ptx_builder *b, const stream *s, unsigned step)
{
    if (groups_are_counted(s->spec))
        return column_group(b, &s->m, &s->groups, ptx_u64(b, 16 * step / group_extent(s->spec)));
    ptx_val n = ptx_cvt(b, PTX_U64, s->my_n), k = ptx_cvt(b, PTX_U64, ptx_add(b, s->k0, (int)(16 * step)));
    return s->k_in_columns ? matrix_group(b, &s->m, n, k) : matrix_group(b, &s->m, k, n);
}

/* Lane l loads the numbers of column n0 + l and prepares them; the lanes that need them fetch them from there. */
static void share_groups(ptx_builder *b, stream *s, group_values mine)
{
    const quantized *q = &s->m.q;
    const bool is_short = pair_is_short(b, &q->coding, s->spec->data);
    pair_group pair = pair_group_of(b, q, s->spec->data, &mine, &mine);
    for (unsigned j = 0; j < 2 * TILES; j++) {
        ptx_val lane = j ? ptx_add(b, s->g, (int)(8 * j)) : s->g;
        pair_group *to = &s->group[j];
        *to = (pair_group){0};
        if (is_short) {
            to->scale = from_lane(b, pair.scale, lane);
            to->minus_zero = from_lane(b, pair.minus_zero, lane);
            continue;
        }
        to->first.scale = from_lane(b, mine.scale, lane);
        if (format_has_zero(q->coding.format))
            to->first.zero = from_lane(b, mine.zero, lane);
        to->second = to->first;
    }
}

static void only_group(ptx_builder *b, stream *s)
{
    pair_group pair = pair_group_of(b, &s->m.q, s->spec->data, &s->m.q.only, &s->m.q.only);
    for (unsigned j = 0; j < 2 * TILES; j++)
        s->group[j] = pair;
}

/* ---- x ---- */

static ptx_val x_place(ptx_builder *b, ptx_val row, ptx_val piece)
{
    return ptx_mad(b, row, LINE_BYTES, ptx_shl(b, ptx_xor(b, piece, ptx_and(b, row, 7)), 4));
}

static void copy_x(ptx_builder *b, const stream *s)
{
    const bool is_async = ptx_target(b)->number >= 80;
    ptx_val piece = ptx_and(b, ptx_tid_x(b), STRIP / 8 - 1), first = ptx_shr(b, ptx_tid_x(b), 6);
    ptx_val k = ptx_mad(b, piece, 8, s->k0), in_k = ptx_setp(b, PTX_LT, k, s->k);
    for (unsigned i = 0; i < s->rows / (THREADS / (STRIP / 8)); i++) {
        ptx_val row = i ? ptx_add(b, first, (int)(i * (THREADS / (STRIP / 8)))) : first,
                m = ptx_add(b, s->m0, row);
        ptx_val exists = ptx_setp_and(b, PTX_LT, m, s->rows_x, in_k);
        ptx_val index = ptx_mad(b, ptx_cvt(b, PTX_U64, m), s->args.x_stride, ptx_cvt(b, PTX_U64, k));
        ptx_val from = ptx_at(b, s->args.all.operand[QDNN_OPERAND_X], index, 2);
        ptx_val to = ptx_add(b, s->x_shared, x_place(b, row, piece)), words[4];
        if (is_async) {
            ptx_cp_async_cg_zfill(b, to, 0, from, 0, ptx_selp(b, ptx_u32(b, 16), ptx_u32(b, 0), exists), 0);
            continue;
        }
        for (unsigned c = 0; c < 4; c++)
            words[c] = ptx_var(b, ptx_u32(b, 0));
        ptx_if(b, exists);
        ptx_val loaded[4];
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, from, 0, loaded, 4);
        for (unsigned c = 0; c < 4; c++)
            ptx_assign(b, words[c], loaded[c]);
        ptx_end_if(b);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, 0, words, 4);
    }
    if (is_async)
        ptx_cp_async_wait_all(b);
}

static void copy_x_slowly(ptx_builder *b, const stream *s)
{
    ptx_val at = ptx_for(b, ptx_tid_x(b), ptx_u32(b, s->rows * STRIP), THREADS);
    ptx_val row = ptx_shr(b, at, 9), in_row = ptx_and(b, at, STRIP - 1), value = ptx_var(b, ptx_u16(b, 0));
    ptx_val m = ptx_add(b, s->m0, row), k = ptx_add(b, s->k0, in_row);
    ptx_if(b, ptx_setp_and(b, PTX_LT, m, s->rows_x, ptx_setp(b, PTX_LT, k, s->k)));
    ptx_val index = ptx_mad(b, ptx_cvt(b, PTX_U64, m), s->args.x_stride, ptx_cvt(b, PTX_U64, k));
    ptx_assign(b, value,
               ptx_ld_global_nc(b, PTX_U16, ptx_at(b, s->args.all.operand[QDNN_OPERAND_X], index, 2), 0));
    ptx_end_if(b);
    ptx_val place = ptx_add(b, s->x_shared, x_place(b, row, ptx_shr(b, in_row, 3)));
    ptx_st_shared(b, ptx_at(b, place, ptx_and(b, in_row, 7), 2), 0, value);
    ptx_end_for(b);
}

static void load_x(ptx_builder *b, const stream *s)
{
    ptx_val rest = ptx_and(b, ptx_or(b, s->args.x_stride, s->args.k), ptx_u64(b, 7));
    ptx_val aligned = ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0),
                                   emit_aligned(b, s->args.all.operand[QDNN_OPERAND_X], LOAD_BYTES));
    ptx_uniform(b);
    ptx_if(b, aligned);
    copy_x(b, s);
    ptx_else(b);
    copy_x_slowly(b, s);
    ptx_end_if(b);
    ptx_syncthreads(b);
}

/* ---- Weights ---- */

typedef struct unit_words {
    ptx_val at[TILES][BITS_MAX];
} unit_words;

/* `offset` bytes from the pointers to the first unit. */
static void load_unit(ptx_builder *b, const stream *s, const ptx_val *pointers, int offset, unit_words *w)
{
    const unsigned v = prepack_vector(s->bits);
    for (unsigned q = 0; q < TILES; q++)
        for (unsigned i = 0; i < s->bits; i += v)
            emit_load_words(b, pointers[q], offset + (int)(128 * i), v, &w->at[q][i]);
}

static code_place code_in(ptx_builder *b, const stream *s, const ptx_val *words, unsigned pair, unsigned h)
{
    const unsigned bits = s->bits;
    if (prepack_is_split(bits))
        return (code_place){words[pair / (16 / bits)], pair % (16 / bits) * bits + 16 * h};
    const unsigned bit = (2 * pair + h) * bits;
    if (bit % 32 + bits <= 32)
        return (code_place){words[bit / 32], bit % 32};
    return (code_place){ptx_shf_r(b, words[bit / 32], words[bit / 32 + 1], bit % 32), 0};
}

/* Operand A of one step: pair i is of row g + 8 (i % 2). */
static void decode_step(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step,
                        ptx_val a[4])
{
    for (unsigned i = 0; i < 4; i++) {
        const unsigned pair = 4 * step + i;
        code_place low = code_in(b, s, w->at[q], pair, 0), high = code_in(b, s, w->at[q], pair, 1);
        a[i] = pair_decode(b, &s->m.q, s->spec->data, &s->group[2 * q + i % 2], low, high);
    }
}

static ptx_mma_id instruction_of(ptx_builder *b, qdnnDataType_t data)
{
    if (data == QDNN_DATA_BF16)
        return PTX_MMA_m16n8k16_f32_bf16;
    return ptx_target(b)->number < 80 ? PTX_MMA_m16n8k8_f32_f16 : PTX_MMA_m16n8k16_f32_f16;
}

/* One step of 16 k for one tile of columns and eight rows of x: x has k 0-7, then k 8-15. */
static void multiply(ptx_builder *b, const stream *s, const ptx_val a[4], const ptx_val x[2],
                     const ptx_val *sums)
{
    const ptx_mma_id id = instruction_of(b, s->spec->data);
    if (ptx_mma_describe(id).k == 16) {
        ptx_mma_into(b, id, sums, a, x, sums);
        return;
    }
    ptx_mma_into(b, id, sums, a, x, sums);
    ptx_mma_into(b, id, sums, a + 2, x + 1, sums);
}

/* Two steps at a time: ldmatrix brings x for both. */
static void multiply_unit(ptx_builder *b, stream *s, const unit_words *w, unsigned unit)
{
    for (unsigned half = 0; half < 2; half++) {
        ptx_val a[2][TILES][4];
        for (unsigned j = 0; j < 2; j++) {
            const unsigned step = 2 * half + j, of_strip = unit * UNIT_STEPS + step;
            if (group_begins(s->spec, of_strip))
                share_groups(b, s, group_at_step(b, s, of_strip));
            for (unsigned q = 0; q < TILES; q++)
                decode_step(b, s, w, q, step, a[j][q]);
        }
        for (unsigned i = 0; i < s->m_tiles; i++) {
            ptx_val x[4];
            ptx_ldmatrix(b, s->x_lane[half], (int)(i * 8 * LINE_BYTES + unit * UNIT_K * 2), x, 4);
            for (unsigned j = 0; j < 2; j++)
                for (unsigned q = 0; q < TILES; q++)
                    multiply(b, s, a[j][q], &x[2 * j], s->sums[q][i]);
        }
    }
}

static void whole_strip(ptx_builder *b, stream *s)
{
    unit_words w[UNITS];
    for (unsigned u = 0; u < AHEAD; u++)
        load_unit(b, s, s->units, (int)(u * 128 * s->bits), &w[u]);
    load_x(b, s);
    for (unsigned u = 0; u < UNITS; u++) {
        if (u + AHEAD < UNITS)
            load_unit(b, s, s->units, (int)((u + AHEAD) * 128 * s->bits), &w[u + AHEAD]);
        multiply_unit(b, s, &w[u], u);
    }
}

/* ---- A strip that is cut short: step by step, and what lies behind the last k is +0 ---- */

static void mask_step(ptx_builder *b, const stream *s, ptx_val k, ptx_val a[4])
{
    for (unsigned i = 0; i < 4; i += 2) {
        ptx_val first = ptx_add(b, ptx_mad(b, s->t, 2, k), (int)(4 * i)), second = ptx_add(b, first, 1);
        ptx_val low = ptx_selp(b, ptx_u32(b, 0xFFFF), ptx_u32(b, 0), ptx_setp(b, PTX_LT, first, s->k));
        ptx_val mask = ptx_selp(b, ptx_u32(b, 0xFFFFFFFF), low, ptx_setp(b, PTX_LT, second, s->k));
        a[i] = ptx_and(b, a[i], mask);
        a[i + 1] = ptx_and(b, a[i + 1], mask);
    }
}

static void short_step(ptx_builder *b, stream *s, const unit_words *w, unsigned step, ptx_val k)
{
    ptx_val a[TILES][4], piece = ptx_shr(b, ptx_sub(b, k, s->k0), 3);
    if (group_extent(s->spec)) {
        ptx_val n = ptx_cvt(b, PTX_U64, s->my_n), at_k = ptx_cvt(b, PTX_U64, k);
        share_groups(b, s,
                     s->k_in_columns ? matrix_group(b, &s->m, n, at_k) : matrix_group(b, &s->m, at_k, n));
    }
    for (unsigned q = 0; q < TILES; q++) {
        decode_step(b, s, w, q, step, a[q]);
        mask_step(b, s, k, a[q]);
    }
    ptx_val row = ptx_and(b, s->lane, 7), at = ptx_add(b, piece, ptx_and(b, ptx_shr(b, s->lane, 3), 1));
    ptx_val from = ptx_add(b, s->x_shared, x_place(b, row, at));
    for (unsigned i = 0; i < s->m_tiles; i++) {
        ptx_val x[2];
        ptx_ldmatrix(b, from, (int)(i * 8 * LINE_BYTES), x, 2);
        for (unsigned q = 0; q < TILES; q++)
            multiply(b, s, a[q], x, s->sums[q][i]);
    }
}

static void short_strip(ptx_builder *b, stream *s)
{
    load_x(b, s);
    ptx_val pointers[TILES];
    for (unsigned q = 0; q < TILES; q++)
        pointers[q] = ptx_var(b, s->units[q]);
    ptx_val k0 = ptx_for(b, s->k0, s->k, UNIT_K);
    unit_words w;
    load_unit(b, s, pointers, 0, &w);
    for (unsigned step = 0; step < UNIT_STEPS; step++) {
        ptx_val k = step ? ptx_add(b, k0, (int)(16 * step)) : k0;
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_LT, k, s->k));
        short_step(b, s, &w, step, k);
        ptx_end_if(b);
    }
    for (unsigned q = 0; q < TILES; q++)
        ptx_assign(b, pointers[q], ptx_add(b, pointers[q], ptx_u64(b, 128 * s->bits)));
    ptx_end_for(b);
}

/* ---- The kernel ---- */

static void store_sums(ptx_builder *b, const stream *s)
{
    ptx_val strip = ptx_ctaid_z(b), all = ptx_mul(b, ptx_cvt(b, PTX_U64, strip), s->args.m);
    for (unsigned i = 0; i < s->m_tiles; i++)
        for (unsigned c = 0; c < 2; c++) {
            ptx_val m = ptx_add(b, ptx_mad(b, s->t, 2, s->m0), (int)(8 * i + c)), n = ptx_add(b, s->n0, s->g);
            ptx_val row = ptx_add(b, all, ptx_cvt(b, PTX_U64, m));
            ptx_val at =
                ptx_at(b, s->args.all.workspace, ptx_mad(b, row, s->args.outputs, ptx_cvt(b, PTX_U64, n)), 4);
            ptx_val exists = ptx_setp(b, PTX_LT, m, s->rows_x);
            for (unsigned j = 0; j < 2 * TILES; j++) {
                ptx_val in_n = ptx_setp_and(b, PTX_LT, ptx_add(b, n, (int)(8 * j)), s->n, exists);
                ptx_when(b, in_n);
                ptx_st_global(b, at, (int)(32 * j), s->sums[j / 2][i][2 * (j % 2) + c]);
            }
        }
}

static void begin_places(ptx_builder *b, stream *s)
{
    const unsigned v = prepack_vector(s->bits);
    ptx_val units_k = emit_divide_up(b, s->args.k, UNIT_K),
            last = ptx_sub(b, emit_divide_up(b, s->args.outputs, UNIT_N), 1);
    ptx_val unit_k = ptx_cvt(b, PTX_U64, ptx_shr(b, s->k0, 6));
    for (unsigned q = 0; q < TILES; q++) {
        ptx_val row = ptx_min(b, ptx_cvt(b, PTX_U64, ptx_add(b, ptx_shr(b, s->n0, 4), (int)q)), last);
        ptx_val unit = ptx_at(b, s->args.all.operand[QDNN_OPERAND_CODES], ptx_mad(b, row, units_k, unit_k),
                              128 * s->bits);
        s->units[q] = ptx_at(b, unit, s->lane, 4 * v);
    }
    ptx_val row = ptx_and(b, s->lane, 7), piece = ptx_xor(b, ptx_shr(b, s->lane, 3), row);
    s->x_lane[0] = ptx_add(b, s->x_shared, ptx_mad(b, row, LINE_BYTES, ptx_shl(b, piece, 4)));
    s->x_lane[1] = ptx_xor(b, s->x_lane[0], 64);
}

static void emit_stream(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_reqntid(b, THREADS, 1, 1);
    ptx_minnctapersm(b, 1); /* any number of registers: else the assembler stops at 64, and spills */
    stream s = {.spec = spec,
                .args = gemm_declare(b, row, spec),
                .bits = row->format->facts.bits,
                .rows = (unsigned)spec->tile_rows,
                .m_tiles = (unsigned)spec->tile_rows / 8,
                .k_in_columns = spec->reduction == KERNEL_K_COLUMNS};
    if (!ptx_mma_has(ptx_target(b), instruction_of(b, spec->data)))
        ptx_fail(b, "%s has no tensor cores for bf16; x must be f16", ptx_target(b)->name);
    s.n = ptx_cvt(b, PTX_U32, s.args.outputs);
    s.k = ptx_cvt(b, PTX_U32, s.args.k);
    s.rows_x = ptx_cvt(b, PTX_U32, s.args.m);
    s.lane = ptx_laneid(b);
    s.g = ptx_shr(b, s.lane, 2);
    s.t = ptx_and(b, s.lane, 3);
    s.n0 = ptx_mad(b, ptx_ctaid_x(b), BLOCK_N, ptx_shl(b, ptx_shr(b, ptx_tid_x(b), 5), 5));
    s.m0 = ptx_mul(b, ptx_ctaid_y(b), (int)s.rows);
    s.k0 = ptx_shl(b, ptx_ctaid_z(b), 9);
    s.my_n = ptx_min(b, ptx_add(b, s.n0, s.lane), ptx_sub(b, s.n, 1));
    s.x_shared = ptx_shared_dynamic(b, 1024);
    quantized q = quantized_begin(b, row, spec, &s.args.all);
    quantized_open(b, &q);
    s.m = matrix_begin(b, &q, &s.args.all);
    begin_places(b, &s);
    begin_groups(b, &s);
    if (!group_extent(spec))
        only_group(b, &s);
    for (unsigned i = 0; i < TILES; i++)
        for (unsigned j = 0; j < s.m_tiles; j++)
            for (unsigned c = 0; c < 4; c++)
                s.sums[i][j][c] = ptx_var(b, ptx_f32(b, 0));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LE, ptx_add(b, s.k0, STRIP), s.k));
    whole_strip(b, &s);
    ptx_else(b);
    short_strip(b, &s);
    ptx_end_if(b);
    store_sums(b, &s);
}

static unsigned shared_bytes(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return (unsigned)spec->tile_rows * LINE_BYTES;
}

static unsigned outputs_of(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return BLOCK_N;
}

/* x takes all of sm_75's shared memory with 64 rows; a table for decoding leaves room for half of them. */
static uint64_t rows_max(const kernel_row *row)
{
    return row->format->codec->open ? ROWS_MAX / 2 : ROWS_MAX;
}

uint64_t kernel_stream_rows(const kernel_row *row, uint64_t rows)
{
    uint64_t m = 8;
    while (m < rows && m < rows_max(row))
        m *= 2;
    return m;
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const uint64_t extent = group_extent(spec), m = spec->tile_rows;
    const char *why = NULL;
    if (format_is_blocks(row->format) || format_is_plain(row->format))
        why = "prepacked weights are codes with scales beside them, not blocks and not plain values";
    else if (spec->data != QDNN_DATA_F16 && spec->data != QDNN_DATA_BF16)
        why = "data is f32; product stream takes x in f16 or bf16";
    else if (spec->group_index)
        why = "group_index is yes; prepacked weights have groups of neighbours";
    else if (extent % 16 != 0)
        why = "prepacked weights have groups of a multiple of 16 k";
    else if (spec->grouped || spec->addend)
        why = "product stream takes neither grouped products nor an addend";
    else if (m < 8 || m > rows_max(row) || (m & (m - 1)) != 0)
        why = "product stream takes tile_rows of 8, 16, 32 and, but for tables, 64";
    if (why)
        snprintf(error, error_size, "%s", why);
    return !why;
}

/* ---- Joining strips ---- */

enum { JOIN_COLUMNS = 4 }; /* of y, a thread */

/* Adds the sums of all strips of JOIN_COLUMNS outputs from `output` (u64) on to `sums`; those that do not exist are left out. */
static void join_strips(ptx_builder *b, const gemm_args *args, ptx_val m, ptx_val output, ptx_val *sums)
{
    ptx_val at = ptx_var(b, ptx_at(b, args->all.workspace, ptx_mad(b, m, args->outputs, output), 4));
    ptx_val stride = ptx_shl(b, ptx_mul(b, args->m, args->outputs), 2), parts[JOIN_COLUMNS];
    ptx_val strips = ptx_cvt(b, PTX_U32, emit_divide_up(b, args->k, STRIP));
    ptx_val by_four = ptx_and(b, ptx_or(b, args->outputs, args->n), ptx_u64(b, JOIN_COLUMNS - 1));
    ptx_val whole = ptx_setp(b, PTX_EQ, by_four, ptx_u64(b, 0));
    for (unsigned c = 0; c < JOIN_COLUMNS; c++)
        sums[c] = ptx_var(b, ptx_f32(b, 0));
    ptx_uniform(b);
    ptx_if(b, whole);
    ptx_for(b, ptx_u32(b, 0), strips, 1);
    ptx_ld_vec(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_F32, at, 0, parts, JOIN_COLUMNS);
    for (unsigned c = 0; c < JOIN_COLUMNS; c++)
        ptx_assign(b, sums[c], ptx_add(b, sums[c], parts[c]));
    ptx_assign(b, at, ptx_add(b, at, stride));
    ptx_end_for(b);
    ptx_else(b);
    ptx_for(b, ptx_u32(b, 0), strips, 1);
    for (unsigned c = 0; c < JOIN_COLUMNS; c++) {
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, output, c), args->outputs));
        ptx_assign(b, sums[c], ptx_add(b, sums[c], ptx_ld_global(b, PTX_F32, at, (int)(4 * c))));
        ptx_end_if(b);
    }
    ptx_assign(b, at, ptx_add(b, at, stride));
    ptx_end_for(b);
    ptx_end_if(b);
}

static void emit_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_reqntid(b, THREADS, 1, 1);
    gemm_args args = gemm_declare(b, row, spec);
    epilogue e = epilogue_begin(b, spec, &args);
    ptx_val n = ptx_shl(b, ptx_global_index64(b), ceil_log2(JOIN_COLUMNS)),
            m = ptx_cvt(b, PTX_U64, ptx_ctaid_y(b));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, n, args.n));
    ptx_val row_m = ptx_for(b, m, args.m, ptx_cvt(b, PTX_U64, ptx_sreg(b, "nctaid.y"))),
            sums[2][JOIN_COLUMNS];
    for (unsigned i = 0; i < (spec->gated ? 2 : 1); i++)
        join_strips(b, &args, row_m, i ? ptx_add(b, n, args.n) : n, sums[i]);
    for (unsigned c = 0; c < JOIN_COLUMNS; c++) {
        ptx_val column = c ? ptx_add(b, n, c) : n;
        const ptx_val pair[2] = {sums[0][c], spec->gated ? sums[1][c] : (ptx_val){0}};
        ptx_if(b, ptx_setp(b, PTX_LT, column, args.n));
        epilogue_store(b, &e, row_m, column, pair, (ptx_val){0});
        ptx_end_if(b);
    }
    ptx_end_for(b);
}

static unsigned join_outputs(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return THREADS * JOIN_COLUMNS;
}

/* Sums of strips, then y. What follows the sum is of no concern to the first kernel. */
static void stream_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps)
{
    gemm_shape shape = gemm_shape_of(spec, problem);
    kernel_spec first = *spec, second = *spec;
    const uint64_t strips = (shape.k + STRIP - 1) / STRIP;
    first.output = QDNN_DATA_F32;
    first.alpha = QDNN_ALPHA_NONE;
    first.bias = 0;
    first.activation = QDNN_ACTIVATION_NONE;
    first.gated = first.residual = first.row_weight = 0;
    second.product = KERNEL_PRODUCT_STRIPS;
    second.tile_rows = 1;
    if (strips > 0) {
        kernel_step *sum = steps_add(steps, row, &first, problem);
        sum->grid[0] = (shape.outputs + BLOCK_N - 1) / BLOCK_N;
        sum->grid[1] = (problem->m + spec->tile_rows - 1) / spec->tile_rows;
        sum->grid[2] = strips;
        sum->rows_per_block = (uint32_t)spec->tile_rows;
    }
    kernel_step *join = steps_add(steps, row, &second, problem);
    join->grid[0] = (shape.n + THREADS * JOIN_COLUMNS - 1) / (THREADS * JOIN_COLUMNS);
    join->grid[1] = problem->m < UINT16_MAX ? problem->m : UINT16_MAX;
    join->rows_per_block = 1;
    steps->workspace = strips * problem->m * shape.outputs * 4;
}

const gemm_kernel gemm_stream = {.block = THREADS,
                                 .outputs = outputs_of,
                                 .shared = shared_bytes,
                                 .emit = emit_stream,
                                 .serves = serves,
                                 .steps = stream_steps};
const gemm_kernel gemm_strips = {.block = THREADS, .outputs = join_outputs, .emit = emit_join};
