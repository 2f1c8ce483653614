/* Products of few rows with TQ1_0 blocks: 256 weights in 54 bytes, five digits of base 3 per byte. A round
 * is a block. Seven threads of a team of eight have eight bytes of it each, and so one chunk of eight
 * neighbours per digit:
 *
 *   thread          0 to 3          4, 5                6
 *   bytes           0 to 31         32 to 47            48 to 51 (the bytes after them are not used)
 *   chunk of digit  4 digit + j     20 + 2 digit + j-4  30 of digits 0 and 1, 31 of digits 2 and 3
 *
 * The chunks of thread 6 are four bytes with two digits each: its upper four bytes are copies of the lower
 * ones, one digit further.
 *
 * A byte is a fraction in units of 1/256; multiplying by 3 lifts its next digit above the point. Two bytes
 * are processed at a time: one at bit 3 and one at bit 13 of a word, so that their digits come to lie at
 * bits 11 and 21. Under the exponent of 2^(23 - b), a digit at bit b is the f32 2^(23 - b) + digit, and
 * fma.rn with d and -(2^(23 - b) + 1) * d gives (digit - 1) * d: all of it is exact, as d is an f16. If
 * any d is not finite, the product is computed again the long way. */
#include "kernels/formats/blocks.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/lanes.h"
#include "kernels/gemm/stretches.h"
#include "kernels/gemm/teams.h"
#include "kernels/gemm/window.h"

#include <stdio.h>

enum {
    BLOCK_BYTES = 54,
    SCALE_AT = 52,
    DIGITS = 5,
    PAIRS = CHUNK / 2,     /* pairs of a thread's bytes */
    OF_WARP = WARP / TEAM, /* teams */
    WARPS = 4,
    THREADS = WARPS * WARP,
    TEAMS = WARPS * OF_WARP,
    OUTPUTS_MAX = 2,
    ROWS_MAX = 16,
    WINDOW = 8,  /* rounds of x in shared memory, times rows of x */
    STRETCH = 8, /* rounds per stretch: whole vectors */
    /* Per stretch; up to 14 bytes before it, and 14 after its last block, may be touched. */
    VECTORS = 29,
    X_DIGIT_BYTES = TEAM * CHUNK * 4,
    X_ROUND_BYTES = DIGITS * X_DIGIT_BYTES,
    SUM_PITCH = (SUM_LANES + 1) * 4 /* bytes between the lanes of neighbouring sums */
};

typedef struct ternary {
    const kernel_spec *spec;
    gemm_args args;
    unsigned rows, outputs; /* rows of x; outputs per team */
    ptx_val thread, team;   /* u32: thread in its team; team in the thread block */
    ptx_val rounds;         /* u32 */
    ptx_val shared;         /* u32: x, then stretches; at the end, the lanes of sums */
    row_tile at;            /* the rows of x */
    ptx_val n;              /* u64: the first column of y, of the team */
    x_window x;
    stretches blocks;
    ptx_val first[OUTPUTS_MAX];                  /* u32: address of the first block of a stretch */
    ptx_val guard;                               /* variable f32: NaN once a scale was not finite */
    ptx_val sums[ROWS_MAX][OUTPUTS_MAX][DIGITS]; /* variables */
} ternary;

/* ---- Shape ---- */

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return TEAMS * team_outputs(spec) / (spec->epilogue.gated ? 2 : 1);
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const block_layout *layout = block_layout_of(row->format);
    (void)spec;
    if (layout && layout->codes->is_ternary)
        return true;
    snprintf(error, error_size, "product ternary takes TQ1_0 blocks");
    return false;
}

static unsigned window_of(const ternary *s)
{
    return s->rows < WINDOW ? WINDOW / s->rows : 1;
}

static unsigned x_bytes(const ternary *s)
{
    return window_of(s) * s->rows * X_ROUND_BYTES;
}

static unsigned shared_bytes(const ternary *s)
{
    const unsigned inputs = x_bytes(s) + TEAMS * s->outputs * VECTORS * LOAD_BYTES;
    return inputs > THREADS * SUM_PITCH ? inputs : THREADS * SUM_PITCH;
}

/* ---- x ---- */

/* Each lane of a warp stages the chunk with its number, at the place for thread j and digit a of a team.
 * Places without a chunk stay 0. */
static void begin_x(ptx_builder *b, ternary *s)
{
    ptx_val lane = ptx_laneid(b), more = ptx_sub(b, lane, 20), upper = ptx_setp(b, PTX_GE, lane, 20),
            last = ptx_setp(b, PTX_GE, lane, 30);
    ptx_val j = ptx_selp(b, ptx_add(b, ptx_and(b, more, 1), 4), ptx_and(b, lane, 3), upper);
    ptx_val a = ptx_selp(b, ptx_shr(b, more, 1), ptx_shr(b, lane, 2), upper);
    j = ptx_selp(b, ptx_u32(b, 6), j, last);
    a = ptx_selp(b, ptx_shl(b, ptx_and(b, lane, 1), 1), a, last);
    s->x = (x_window){.spec = s->spec,
                      .args = &s->args,
                      .rows = s->rows,
                      .rounds = window_of(s),
                      .warps = WARPS,
                      .round_bytes = X_ROUND_BYTES,
                      .copies = 1,
                      .whole_chunks = true,
                      .shared = s->shared,
                      .chunk = ptx_cvt(b, PTX_U64, ptx_shl(b, lane, 3)),
                      .slot = ptx_mad(b, a, X_DIGIT_BYTES, ptx_mad(b, j, LOAD_BYTES, s->shared))};
    for (unsigned e = 0; e < CHUNK; e++)
        s->x.offsets[e] = e / 4 * TEAM * LOAD_BYTES + e % 4 * 4;
}

static void clear_x(ptx_builder *b, const ternary *s)
{
    ptx_val zero[4];
    for (unsigned i = 0; i < 4; i++)
        zero[i] = ptx_f32(b, 0);
    ptx_val at = ptx_for(b, ptx_mul(b, ptx_tid_x(b), LOAD_BYTES), (int)x_bytes(s), THREADS * LOAD_BYTES);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, ptx_add(b, s->shared, at), 0, zero, 4);
    ptx_end_for(b);
}

/* ---- Digits ---- */

typedef struct fractions {
    ptx_val pairs[PAIRS]; /* u32: two bytes each */
    ptx_val d, offset[2]; /* f32: the scale; what removes the exponent, per position */
} fractions;

static const unsigned places[2] = {11, 21}; /* of digits; their bytes are 8 bits below */

static uint32_t byte_masks(void)
{
    return 0xFFu << (places[0] - 8) | 0xFFu << (places[1] - 8);
}

/* Bytes 2 i and 2 i + 1 of two words. */
static ptx_val pair_of_bytes(ptx_builder *b, const ptx_val words[2], unsigned i)
{
    const int from = i % 2 ? 16 : 0, low = (int)places[0] - 8 - from, high = (int)places[1] - 16 - from;
    ptx_val word = words[i / 2];
    ptx_val first = low > 0 ? ptx_shl(b, word, low) : ptx_shr(b, word, -low);
    ptx_val second = high > 0 ? ptx_shl(b, word, high) : ptx_shr(b, word, -high);
    ptx_val both = ptx_lop3(b, first, second, ptx_u32(b, 0xFFu << (places[0] - 8)),
                            (PTX_LOP_A & PTX_LOP_C) | (PTX_LOP_B & (~PTX_LOP_C & 0xFF)));
    return ptx_and(b, both, ptx_u32(b, byte_masks()));
}

/* What is left of the fractions after their next digits have been taken. */
static ptx_val without_digits(ptx_builder *b, ptx_val tripled)
{
    return ptx_and(b, tripled, ptx_u32(b, byte_masks()));
}

/* Begins the block `more` (u32) bytes after the stretch's first. */
static fractions block_begin(ptx_builder *b, const ternary *s, unsigned o, ptx_val more)
{
    ptx_val block = ptx_add(b, s->first[o], more), words[2], raw[3];
    ptx_val at = ptx_mad(b, s->thread, CHUNK, block), aligned = ptx_and(b, at, ptx_u32(b, ~3u));
    ptx_val shift = ptx_shl(b, ptx_and(b, at, 2), 3), upper = ptx_setp(b, PTX_EQ, s->thread, 6);
    fractions f = {.d = ptx_cvt(b, PTX_F32, ptx_ld_shared(b, PTX_F16, block, SCALE_AT))};
    for (int i = 0; i < 3; i++)
        raw[i] = ptx_ld_shared(b, PTX_U32, aligned, 4 * i);
    for (int i = 0; i < 2; i++) {
        words[i] = ptx_shf_r(b, raw[i], raw[i + 1], shift);
        f.offset[i] = ptx_mul(b, f.d, ptx_f32(b, -(float)((1u << (23 - places[i])) + 1)));
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        f.pairs[i] = pair_of_bytes(b, words, i);
        if (i >= PAIRS / 2)
            f.pairs[i] =
                ptx_selp(b, without_digits(b, ptx_mul(b, f.pairs[i - PAIRS / 2], 3)), f.pairs[i], upper);
    }
    ptx_assign(b, s->guard, ptx_fma(b, f.d, ptx_f32(b, 0), s->guard));
    return f;
}

static ptx_val weight(ptx_builder *b, const fractions *f, ptx_val tripled, unsigned place, bool slow)
{
    const unsigned at = places[place];
    ptx_val number = ptx_as(b, PTX_F32,
                            ptx_lop3(b, tripled, ptx_u32(b, 3u << at), ptx_u32(b, (150u - at) << 23),
                                     (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C));
    if (!slow)
        return ptx_fma(b, number, f->d, f->offset[place]);
    return ptx_mul(b, ptx_sub(b, number, ptx_f32(b, (float)((1u << (23 - at)) + 1))), f->d);
}

/* The weights of the next digit. */
static void next_chunk(ptx_builder *b, fractions *f, bool slow, ptx_val w[CHUNK])
{
    for (unsigned i = 0; i < PAIRS; i++) {
        ptx_val tripled = ptx_mul(b, f->pairs[i], 3);
        for (unsigned k = 0; k < 2; k++)
            w[2 * i + k] = weight(b, f, tripled, k, slow);
        f->pairs[i] = without_digits(b, tripled);
    }
}

/* ---- A pass over K ---- */

/* Adds a round of all outputs, times all rows of x, whose values in shared memory begin at x_at. */
static void add_round(ptx_builder *b, const ternary *s, ptx_val more, ptx_val x_at, bool slow)
{
    fractions f[OUTPUTS_MAX];
    ptx_val w[OUTPUTS_MAX][CHUNK], x[CHUNK];
    for (unsigned o = 0; o < s->outputs; o++)
        f[o] = block_begin(b, s, o, more);
    for (unsigned a = 0; a < DIGITS; a++) {
        for (unsigned o = 0; o < s->outputs; o++)
            next_chunk(b, &f[o], slow, w[o]);
        for (unsigned m = 0; m < s->rows; m++) {
            const unsigned at = m * s->x.rounds * X_ROUND_BYTES + a * X_DIGIT_BYTES;
            for (unsigned e = 0; e < CHUNK; e += 4)
                ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, x_at, (int)(at + s->x.offsets[e]),
                           &x[e], 4);
            for (unsigned o = 0; o < s->outputs; o++)
                for (unsigned e = 0; e < CHUNK; e++)
                    ptx_assign(b, s->sums[m][o][a], ptx_fma(b, w[o][e], x[e], s->sums[m][o][a]));
        }
    }
}

static void pass(ptx_builder *b, const ternary *s, bool slow)
{
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->rounds, s->x.rounds);
    ptx_syncthreads(b);
    x_window_stage(b, &s->x, &s->at, first, false);
    ptx_syncthreads(b);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_and(b, first, STRETCH - 1), 0));
    stretches_copy(b, &s->blocks, ptx_mul_wide(b, first, ptx_u32(b, BLOCK_BYTES)), (ptx_val){0});
    ptx_end_if(b);
    ptx_val x_at = ptx_var(b, ptx_mad(b, s->thread, LOAD_BYTES, s->shared));
    ptx_val more = ptx_var(b, ptx_mul(b, ptx_and(b, first, STRETCH - 1), BLOCK_BYTES));
    ptx_for(b, first, ptx_min(b, ptx_add(b, first, s->x.rounds), s->rounds), 1);
    add_round(b, s, more, x_at, slow);
    ptx_assign(b, more, ptx_add(b, more, BLOCK_BYTES));
    ptx_assign(b, x_at, ptx_add(b, x_at, X_ROUND_BYTES));
    ptx_end_for(b);
    ptx_end_for(b);
}

/* ---- The end: lanes go through shared memory ---- */

/* Sums of a warp for one row of x. */
static unsigned sums_of_row(const ternary *s)
{
    return OF_WARP * s->outputs;
}

/* Stores the lanes of a few rows: output i of a team is sum (i * OF_WARP + team) of its row. */
static void put_lanes(ptx_builder *b, const ternary *s, ptx_val warp_at, unsigned first, unsigned rows)
{
    ptx_val j = s->thread, lower = ptx_setp(b, PTX_LT, j, 4), last = ptx_setp(b, PTX_EQ, j, 6);
    ptx_val lane = ptx_selp(b, j, ptx_selp(b, ptx_u32(b, 30), ptx_add(b, j, 16), last), lower);
    ptx_val step = ptx_selp(b, ptx_u32(b, 16), ptx_selp(b, ptx_u32(b, 2), ptx_u32(b, 8), last), lower);
    ptx_val to = ptx_mad(b, ptx_and(b, s->team, OF_WARP - 1), SUM_PITCH, ptx_mad(b, lane, 4, warp_at));
    for (unsigned a = 0; a < DIGITS; a++) {
        ptx_if(b, ptx_setp(b, PTX_LT, j, a == 0 || a == 2 ? 7 : 6));
        ptx_val at = ptx_mad(b, step, (int)a, to);
        for (unsigned m = 0; m < rows; m++)
            for (unsigned o = 0; o < s->outputs; o++)
                ptx_st_shared(b, at, (int)((m * sums_of_row(s) + o * OF_WARP) * SUM_PITCH),
                              s->sums[first + m][o][a]);
        ptx_end_if(b);
    }
}

static ptx_val joined(ptx_builder *b, const ternary *s, ptx_val at, unsigned behind)
{
    return row_tile_sum(b, &s->at, lanes_join_memory(b, at, behind * SUM_PITCH, 4));
}

/* Thread i of the warp completes sum i of a few rows; sums are ordered by row, then output, then team. */
static void complete(ptx_builder *b, const ternary *s, const epilogue *e, ptx_val warp_at, unsigned first,
                     unsigned rows)
{
    const bool apart = team_halves_are_apart(s->spec), gated = s->spec->epilogue.gated;
    const unsigned of_row = sums_of_row(s) / (gated ? 2 : 1);
    ptx_val lane = ptx_laneid(b), of_warp = ptx_and(b, lane, (int)of_row - 1);
    ptx_val row = ptx_cvt(b, PTX_U64, ptx_add(b, ptx_shr(b, lane, ceil_log2(of_row)), first));
    ptx_val team = ptx_and(b, of_warp, (int)(apart ? OF_WARP / 2 : OF_WARP) - 1), sums[2];
    ptx_val output = ptx_shr(b, of_warp, ceil_log2(OF_WARP));
    ptx_val warp = ptx_mad(b, ptx_ctaid_x(b), WARPS, ptx_shr(b, ptx_tid_x(b), 5));
    ptx_val n = apart || gated ? ptx_mad(b, warp, (int)of_row, team)
                               : ptx_mad(b, ptx_mad(b, warp, OF_WARP, team), (int)s->outputs, output);
    ptx_val column = ptx_cvt(b, PTX_U64, n);
    ptx_val has = ptx_setp_and(b, PTX_LT, lane, (int)(rows * of_row), row_tile_has(b, &s->at, row));
    has = ptx_setp_and(b, PTX_LT, column, s->args.n, has);
    ptx_if(b, has);
    ptx_val sum = ptx_mad(b, ptx_shr(b, lane, ceil_log2(of_row)), (int)sums_of_row(s),
                          apart ? ptx_shl(b, team, 1) : of_warp);
    ptx_val at = ptx_mad(b, sum, SUM_PITCH, warp_at);
    sums[0] = joined(b, s, at, 0);
    if (gated)
        sums[1] = joined(b, s, at, apart ? 1 : OF_WARP);
    epilogue_store(b, e, row_tile_row(b, &s->at, row, has), column, sums, s->at.expert);
    ptx_end_if(b);
}

static void finish(ptx_builder *b, const ternary *s)
{
    const unsigned together = WARP / sums_of_row(s), rows = s->rows < together ? s->rows : together;
    epilogue e = epilogue_begin(b, s->spec, &s->args);
    ptx_val warp_at = ptx_mad(b, ptx_shr(b, ptx_tid_x(b), 5), WARP * SUM_PITCH, s->shared);
    ptx_syncthreads(b);
    for (unsigned first = 0; first < s->rows; first += rows) {
        ptx_syncwarp(b);
        put_lanes(b, s, warp_at, first, rows);
        ptx_syncwarp(b);
        complete(b, s, &e, warp_at, first, rows);
    }
}

/* ---- The kernel ---- */

/* Rows of blocks that do not exist are replaced by the last one; their results are not stored. */
static void begin_outputs(ptx_builder *b, ternary *s)
{
    const bool gated = s->spec->epilogue.gated;
    const unsigned each = gated ? 1 : s->outputs;
    ptx_val row_bytes = ptx_mul(b, ptx_shr(b, s->args.k, 8), ptx_u64(b, BLOCK_BYTES));
    ptx_val n = team_first_column(b, s->spec, s->team, TEAMS, each),
            last = ptx_sub(b, s->args.n, ptx_u64(b, 1));
    ptx_val codes = s->args.all.operand[QDNN_OPERAND_CODES], copies = ptx_add(b, s->shared, (int)x_bytes(s));
    ptx_val mine = ptx_mad(b, s->team, (int)(s->outputs * VECTORS * LOAD_BYTES), copies);
    s->blocks = (stretches){.outputs = s->outputs,
                            .team = TEAM,
                            .vectors = VECTORS,
                            .align = LOAD_BYTES,
                            .thread = s->thread,
                            .first = codes,
                            .end = ptx_mad(b, s->args.outputs, row_bytes, codes)};
    for (unsigned o = 0; o < s->outputs; o++) {
        ptx_val row = ptx_min(b, !gated && o ? ptx_add(b, n, ptx_u64(b, o)) : n, last);
        row = gated && o ? ptx_add(b, row, s->args.n) : team_weight_row(b, s->spec, s->team, s->args.n, row);
        ptx_val copy = ptx_add(b, mine, (int)(o * VECTORS * LOAD_BYTES));
        ptx_val before = stretches_begin(b, &s->blocks, o, ptx_mad(b, row, row_bytes, codes), copy);
        s->first[o] = ptx_add(b, copy, before);
    }
}

static void clear_sums(ptx_builder *b, ternary *s, bool made)
{
    for (unsigned m = 0; m < s->rows; m++)
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned a = 0; a < DIGITS; a++)
                if (made)
                    ptx_assign(b, s->sums[m][o][a], ptx_f32(b, 0));
                else
                    s->sums[m][o][a] = ptx_var(b, ptx_f32(b, 0));
}

static void multiply(ptx_builder *b, ternary *s)
{
    clear_sums(b, s, false);
    s->guard = ptx_var(b, ptx_f32(b, 0));
    ptx_syncthreads(b); /* lanes of the previous tile, which lie in the same memory, may still be joined */
    clear_x(b, s);
    pass(b, s, false);
    ptx_val wrong = ptx_bar_red_or(b, 0, ptx_setp(b, PTX_NAN, s->guard, s->guard));
    ptx_uniform(b);
    ptx_if(b, wrong);
    clear_sums(b, s, true);
    pass(b, s, true);
    ptx_end_if(b);
    finish(b, s);
}

/* Sets up the rows of a tile and the weights of their expert. */
static void begin_tile(ptx_builder *b, ternary *s)
{
    s->at = row_tiles_begin(b, s->spec, &s->args);
    s->args = row_tile_args(b, &s->at, &s->args);
    s->rounds = row_tile_size(b, &s->at, ptx_cvt(b, PTX_U32, ptx_shr(b, s->args.k, 8)));
    begin_outputs(b, s);
}

static void emit_ternary(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, spec->product.tile_rows > 1 ? 2 : 4);
    ternary s = {.spec = spec,
                 .rows = (unsigned)spec->product.tile_rows,
                 .outputs = team_outputs(spec),
                 .args = gemm_declare(b, row, spec)};
    s.shared = ptx_shared(b, "x_and_blocks", PTX_U8, shared_bytes(&s), LOAD_BYTES);
    s.thread = ptx_and(b, ptx_laneid(b), TEAM - 1);
    s.team = ptx_shr(b, ptx_tid_x(b), ceil_log2(TEAM));
    begin_x(b, &s);
    begin_tile(b, &s);
    multiply(b, &s);
    row_tiles_end(b);
}

const gemm_kernel gemm_ternary = {.block = THREADS,
                                  .outputs = columns_of,
                                  .emit = emit_ternary,
                                  .serves = serves,
                                  .rows = 1,
                                  .rows_most = ROWS_MAX,
                                  .takes_experts = true};
