/* The product for every format and shape. A block computes OUTPUTS columns of a few rows: in rounds of 256
 * k it decodes the weights of its columns, and its rows of x, into shared memory as f32; then thread i of
 * each warp adds chunk i of the round to lane i of the warp's columns. In a grouped product, the rows of a
 * block belong to one expert. */
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/lanes.h"
#include "kernels/gemm/routes.h"
#include "kernels/gemm/weights.h"
#include "kernels/gemm/window.h"

enum {
    WARPS = 8,
    THREADS = WARPS * WARP,
    OF_WARP = 2, /* outputs of the weights per warp; of a gated pair, both */
    OUTPUTS = WARPS * OF_WARP,
    ROWS_MAX = 16
};

typedef struct staged {
    const kernel_spec *spec;
    gemm_args args;
    weights w;
    weight_tile tile;
    unsigned rows;  /* rows of x at a time */
    ptx_val column; /* u64: the first of the block */
    row_tile at;
    x_window x;
    ptx_val sums[ROWS_MAX][OF_WARP]; /* variables: one lane of each */
} staged;

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return spec->epilogue.gated ? OUTPUTS / 2 : OUTPUTS;
}

/* A round of x, in the order of round_offset. */
static void begin_x(ptx_builder *b, staged *s)
{
    const unsigned room = s->rows > WARPS ? 2 * WARPS : s->rows; /* all warps stage a row at a time */
    ptx_val lane = ptx_laneid(b), shared = ptx_shared(b, "x_round", PTX_F32, room * ROUND, LOAD_BYTES);
    s->x = (x_window){.spec = s->spec,
                      .args = &s->args,
                      .rows = s->rows,
                      .rounds = 1,
                      .warps = WARPS,
                      .round_bytes = ROUND_BYTES,
                      .copies = 1,
                      .shared = shared,
                      .chunk = ptx_cvt(b, PTX_U64, ptx_shl(b, lane, 3)),
                      .slot = ptx_mad(b, lane, LOAD_BYTES, shared)};
    for (unsigned e = 0; e < CHUNK; e++)
        s->x.offsets[e] = e / 4 * (ROUND_BYTES / 2) + e % 4 * 4;
}

static void load_chunk(ptx_builder *b, ptx_val address, int offset, ptx_val *out)
{
    ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, address, offset, out, 4);
    ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, address, offset + ROUND_BYTES / 2, out + 4, 4);
}

/* Warp w has outputs w and w + WARPS of the tile: of gated pairs, a and b. */
static void add_round(ptx_builder *b, const staged *s)
{
    ptx_val lane = ptx_shl(b, ptx_laneid(b), 4), warp = ptx_shr(b, ptx_tid_x(b), 5);
    ptx_val w_at = ptx_add(b, ptx_mad(b, warp, TILE_PITCH, s->tile.shared), lane);
    ptx_val x_at = ptx_add(b, s->x.shared, lane), w[OF_WARP][CHUNK], x[CHUNK];
    for (unsigned j = 0; j < OF_WARP; j++)
        load_chunk(b, w_at, (int)(j * WARPS * TILE_PITCH), w[j]);
    for (unsigned i = 0; i < s->rows; i++) {
        load_chunk(b, x_at, (int)(i * ROUND_BYTES), x);
        for (unsigned j = 0; j < OF_WARP; j++)
            for (unsigned k = 0; k < CHUNK; k++)
                ptx_assign(b, s->sums[i][j], ptx_fma(b, x[k], w[j][k], s->sums[i][j]));
    }
}

/* Thread i of the warp completes row i. */
static void finish(ptx_builder *b, const staged *s)
{
    epilogue e = epilogue_begin(b, s->spec, &s->args);
    ptx_val lane = ptx_laneid(b), mine[OF_WARP];
    for (unsigned j = 0; j < OF_WARP; j++) {
        for (unsigned i = 0; i < s->rows; i++) {
            ptx_val sum = lanes_join_warp(b, s->sums[i][j]);
            mine[j] = i ? ptx_selp(b, sum, mine[j], ptx_setp(b, PTX_EQ, lane, (int)i)) : sum;
        }
        mine[j] = row_tile_sum(b, &s->at, mine[j]);
    }
    ptx_val wide = ptx_cvt(b, PTX_U64, lane), has = row_tile_has(b, &s->at, wide);
    ptx_val has_row = ptx_setp_and(b, PTX_LT, lane, (int)s->rows, has);
    ptx_val row = row_tile_row(b, &s->at, wide, has_row);
    ptx_val column = ptx_add(b, s->column, ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_tid_x(b), 5)));
    for (unsigned j = 0; j < (s->spec->epilogue.gated ? 1 : OF_WARP); j++) {
        ptx_val n = j ? ptx_add(b, column, j * WARPS) : column;
        ptx_if(b, ptx_setp_and(b, PTX_LT, n, s->args.n, has_row));
        epilogue_store(b, &e, row, n, &mine[j], s->at.expert);
        ptx_end_if(b);
    }
}

/* The rows of one tile. */
static void multiply(ptx_builder *b, staged *s)
{
    for (unsigned i = 0; i < s->rows; i++)
        for (unsigned j = 0; j < OF_WARP; j++)
            s->sums[i][j] = ptx_var(b, ptx_f32(b, 0));
    ptx_val second = s->spec->epilogue.gated ? ptx_add(b, s->column, s->args.n) : (ptx_val){0};
    ptx_val k = ptx_for(b, ptx_u64(b, 0), row_tile_size(b, &s->at, s->args.k), ptx_u64(b, ROUND));
    weights_stage(b, &s->w, &s->tile, s->column, second, k);
    x_window_stage(b, &s->x, &s->at, ptx_cvt(b, PTX_U32, ptx_shr(b, k, ceil_log2(ROUND))), false);
    ptx_syncthreads(b);
    add_round(b, s);
    ptx_syncthreads(b);
    ptx_end_for(b);
    finish(b, s);
}

static void emit_staged(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    /* Up to 128 registers; sorted rows of a full tile take more on some targets. */
    ptx_minnctapersm(b, spec->product.grouped && spec->product.tile_rows > 8 ? 1 : 2);
    staged s = {.spec = spec, .rows = (unsigned)spec->product.tile_rows, .args = gemm_declare(b, row, spec)};
    if (!spec->product.grouped)
        s.w = weights_begin(b, row, spec, &s.args);
    s.tile = (weight_tile){.shared = ptx_shared(b, "weights", PTX_F32, OUTPUTS * TILE_PITCH / 4, LOAD_BYTES),
                           .outputs = OUTPUTS,
                           .threads = THREADS};
    begin_x(b, &s);
    s.column = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, columns_of(row, spec)));
    s.at = row_tiles_begin(b, spec, &s.args);
    if (spec->product.grouped) {
        gemm_args of_expert = row_tile_args(b, &s.at, &s.args);
        s.w = weights_begin(b, row, spec, &of_expert);
    }
    multiply(b, &s);
    row_tiles_end(b);
}

const gemm_kernel gemm_staged = {.block = THREADS,
                                 .outputs = columns_of,
                                 .emit = emit_staged,
                                 .rows = 1,
                                 .rows_most = ROWS_MAX,
                                 .any_rows = true,
                                 .takes_experts = true};
