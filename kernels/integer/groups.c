/* w4a8 by dp4a: a warp computes four columns of w with a few rows of x. Each of the eight threads of a column
 * takes one strip of groups at a time (docs/numerics.md); the strips are joined in order. */
#include "kernels/integer/integer.h"

#include "kernels/formats/format.h"

enum { LINES_MAX = 4, TEAM = 8, CHUNK_K = 32, WAYS = 3 };

typedef struct grouped {
    const kernel_spec *spec;
    gemm_args args;
    int_matrix x, w;
    int rows;
    row_tile of_y;                               /* the rows of y that the block computes */
    ptx_val column;                              /* u64 */
    ptx_val k, group_count;                      /* u32 */
    ptx_val x_rows[LINES_MAX], w_row;            /* u64 */
    ptx_val may_take[WAYS];                      /* predicates: the alignment allows a way of reading */
    ptx_val parts[LINES_MAX], totals[LINES_MAX]; /* f32 variables: for the strip, and for all strips */
} grouped;

static ptx_val sum_of(ptx_builder *b, ptx_val x, ptx_val w, ptx_val sum)
{
    return ptx_dp4a(b, ptx_as(b, PTX_S32, x), ptx_as(b, PTX_S32, w), sum);
}

/* 32 k at once: words of x hold four adjacent codes, while w's nibbles are separated into even and odd
 * ones, 16 times as large. */
static void add_chunk(ptx_builder *b, const grouped *g, ptx_val k, const ptx_val *sums)
{
    ptx_val w[4], x[8], even[4], odd[4];
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_add(b, g->w_row, ptx_cvt(b, PTX_U64, ptx_shr(b, k, 1))), 0,
               w, 4);
    for (int j = 0; j < 4; j++)
        int_spread(b, w[j], &even[j], &odd[j]);
    for (int i = 0; i < g->rows; i++) {
        ptx_val part = ptx_s32(b, 0), from = ptx_add(b, g->x_rows[i], ptx_cvt(b, PTX_U64, k));
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, from, 0, x, 4);
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, from, INT_CHUNK, x + 4, 4);
        for (int j = 0; j < 4; j++) {
            part = sum_of(b, ptx_prmt(b, x[2 * j], x[2 * j + 1], 0x6420), even[j], part);
            part = sum_of(b, ptx_prmt(b, x[2 * j], x[2 * j + 1], 0x7531), odd[j], part);
        }
        ptx_assign(b, sums[i], ptx_add(b, sums[i], ptx_shr(b, part, 4)));
    }
}

/* 4 k at once: a word of x, and half a word of w. */
static void add_four(ptx_builder *b, const grouped *g, ptx_val k, const ptx_val *sums)
{
    ptx_val from = ptx_add(b, g->w_row, ptx_cvt(b, PTX_U64, ptx_shr(b, k, 1))), even, odd;
    int_spread(b, ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U16, from, 0)), &even, &odd);
    ptx_val w = ptx_prmt(b, even, odd, 0x5140);
    for (int i = 0; i < g->rows; i++) {
        ptx_val x = ptx_ld_global_nc(b, PTX_U32, ptx_add(b, g->x_rows[i], ptx_cvt(b, PTX_U64, k)), 0);
        ptx_assign(b, sums[i], ptx_add(b, sums[i], ptx_shr(b, sum_of(b, x, w, ptx_s32(b, 0)), 4)));
    }
}

/* One k at a time, for rows of any length and alignment. */
static void add_one(ptx_builder *b, const grouped *g, ptx_val k, const ptx_val *sums)
{
    ptx_val byte =
        ptx_ld_global_nc(b, PTX_S8, ptx_add(b, g->w_row, ptx_cvt(b, PTX_U64, ptx_shr(b, k, 1))), 0);
    ptx_val shift = ptx_shl(b, ptx_xor(b, ptx_and(b, k, 1), 1), 2);
    ptx_val code = ptx_shr(b, ptx_shl(b, byte, ptx_add(b, shift, 24)), 28);
    for (int i = 0; i < g->rows; i++) {
        ptx_val x = ptx_ld_global_nc(b, PTX_S8, ptx_add(b, g->x_rows[i], ptx_cvt(b, PTX_U64, k)), 0);
        ptx_assign(b, sums[i], ptx_mad(b, x, code, sums[i]));
    }
}

/* The ways to sum a group, the fastest first. Rows are aligned to so many bytes of x and half as many of w, and are a
 * multiple of them, as is the group: no way reads past an end. */
static const struct {
    int k;
    void (*add)(ptx_builder *b, const grouped *g, ptx_val k, const ptx_val *sums);
} ways[WAYS] = {{CHUNK_K, add_chunk}, {4, add_four}, {1, add_one}};

/* The fastest way that fits the groups; the slower ones fit as well. */
static int fastest_way(const grouped *g)
{
    int way = 0;
    while (g->spec->stored.group_size % (uint64_t)ways[way].k)
        way++;
    return way;
}

/* w is always aligned to words. */
static void ways_begin(ptx_builder *b, grouped *g)
{
    const int fastest = fastest_way(g);
    if (fastest <= 0)
        g->may_take[0] = int_are_aligned(b, &g->x, &g->w, INT_CHUNK);
    if (fastest <= 1)
        g->may_take[1] = int_is_aligned(b, &g->x, 4);
}

/* The integer sum of a group. */
static void sum_group(ptx_builder *b, const grouped *g, ptx_val first, const ptx_val *sums)
{
    const int fastest = fastest_way(g);
    ptx_val end = ptx_min(b, g->k, ptx_add(b, first, ptx_u32(b, (uint32_t)g->spec->stored.group_size)));
    for (int i = fastest; i < WAYS; i++) {
        if (i < WAYS - 1) {
            ptx_uniform(b);
            ptx_if(b, g->may_take[i]);
        }
        if (i > fastest)
            ptx_rolled(b);
        ptx_val k = ptx_for(b, first, end, ways[i].k);
        ways[i].add(b, g, k, sums);
        ptx_end_for(b);
        if (i < WAYS - 1)
            ptx_else(b);
    }
    for (int i = fastest; i < WAYS - 1; i++)
        ptx_end_if(b);
}

/* One group: its integer sum, then one fma. */
static void add_group(ptx_builder *b, const grouped *g, ptx_val first)
{
    ptx_val sums[LINES_MAX];
    for (int i = 0; i < g->rows; i++)
        sums[i] = ptx_var(b, ptx_s32(b, 0));
    sum_group(b, g, first, sums);
    ptx_val number = ptx_div(b, first, ptx_u32(b, (uint32_t)g->spec->stored.group_size));
    ptx_val output = int_output_of_stack(b, &g->args, &g->of_y, g->column);
    ptx_val index = ptx_mad(b, output, ptx_cvt(b, PTX_U64, g->group_count), ptx_cvt(b, PTX_U64, number));
    ptx_val at =
        ptx_at(b, g->args.all.operand[QDNN_OPERAND_SCALE], index, scale_bytes(g->spec->stored.scale));
    ptx_val scale = emit_load_scale(b, g->spec->stored.scale, at, 0);
    for (int i = 0; i < g->rows; i++)
        ptx_assign(b, g->parts[i], ptx_fma(b, ptx_cvt_rn(b, PTX_F32, sums[i]), scale, g->parts[i]));
}

/* One strip for each thread of the column, starting at `first`; then the strips of the team are joined in
 * order. */
static void add_strips(ptx_builder *b, const grouped *g, ptx_val first, ptx_val member)
{
    const uint32_t strip = int_strip(g->spec);
    ptx_val mine = ptx_mad(b, member, ptx_u32(b, strip), first);
    for (int i = 0; i < g->rows; i++)
        ptx_assign(b, g->parts[i], ptx_f32(b, 0));
    ptx_val end = ptx_min(b, g->k, ptx_add(b, mine, ptx_u32(b, strip)));
    ptx_val group = ptx_for(b, mine, end, ptx_u32(b, (uint32_t)g->spec->stored.group_size));
    add_group(b, g, group);
    ptx_end_for(b);
    ptx_val team = ptx_and(b, ptx_laneid(b), 32 - TEAM);
    for (int j = 0; j < TEAM; j++) {
        ptx_val from = j ? ptx_add(b, team, j) : team;
        for (int i = 0; i < g->rows; i++)
            ptx_assign(b, g->totals[i], ptx_add(b, g->totals[i], ptx_shfl_idx(b, g->parts[i], from)));
    }
}

static grouped grouped_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    grouped g = {.spec = spec, .rows = spec->integer.tile, .args = int_declare(b, row, spec)};
    ptx_val team = ptx_shr(b, ptx_tid_x(b), 3);
    g.column = ptx_cvt(b, PTX_U64, ptx_mad(b, ptx_ctaid_x(b), (int)int_lines_columns(spec), team));
    g.of_y = int_rows_of_block(b, spec, &g.args, (unsigned)g.rows);
    g.x = int_matrix_begin(b, spec->integer.x_codes, g.args.all.operand[QDNN_OPERAND_X], g.args.m, g.args.k);
    g.w = int_weights_begin(b, spec, &g.args, &g.of_y);
    g.k = row_tile_size(b, &g.of_y, ptx_cvt(b, PTX_U32, g.args.k));
    ptx_val groups = ptx_div(b, ptx_add(b, g.args.k, ptx_u64(b, spec->stored.group_size - 1)),
                             ptx_u64(b, spec->stored.group_size));
    g.group_count = ptx_cvt(b, PTX_U32, groups);
    for (int i = 0; i < g.rows; i++)
        g.x_rows[i] = int_x_row(b, spec, &g.x, &g.of_y, i);
    ways_begin(b, &g);
    return g;
}

/* The sums of a column, in all threads of its team: those of row i are thread i's. */
static ptx_val column_sum(ptx_builder *b, grouped *g, ptx_val column, ptx_val member)
{
    for (int i = 0; i < g->rows; i++) {
        g->totals[i] = ptx_var(b, ptx_f32(b, 0));
        g->parts[i] = ptx_var(b, ptx_f32(b, 0));
    }
    g->column = column;
    g->w_row = int_row_that_exists(b, &g->w, column);
    ptx_val first = ptx_for(b, ptx_u32(b, 0), g->k, ptx_u32(b, TEAM * int_strip(g->spec)));
    add_strips(b, g, first, member);
    ptx_end_for(b);
    ptx_val mine = ptx_mov(b, g->totals[0]);
    for (int i = 1; i < g->rows; i++)
        mine = ptx_selp(b, g->totals[i], mine, ptx_setp(b, PTX_EQ, member, i));
    return mine;
}

/* Thread i of a team completes row i. */
static void finish(ptx_builder *b, const grouped *g, ptx_val column, ptx_val member, ptx_val exists,
                   const ptx_val *sums)
{
    int_results r = int_results_of_rows(b, g->spec, &g->args, &g->of_y);
    ptx_val i = ptx_cvt(b, PTX_U64, member), has = row_tile_has(b, &g->of_y, i);
    has = ptx_setp_and(b, PTX_LT, member, g->rows, ptx_and(b, has, exists));
    ptx_val m = row_tile_row(b, &g->of_y, i, has);
    ptx_if(b, has);
    int_column c = int_column_begin(b, &r, column);
    int_store(b, &r, &c, m, sums);
    ptx_end_if(b);
}

/* A team without a column computes the last one again, because all threads of the warp must take part in the
 * exchange. */
void emit_int_groups(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 4); /* up to 128 registers */
    grouped g = grouped_begin(b, row, spec);
    ptx_val exists = ptx_setp(b, PTX_LT, g.column, g.args.n), member = ptx_and(b, ptx_laneid(b), TEAM - 1);
    ptx_val column = ptx_min(b, g.column, ptx_sub(b, g.args.n, ptx_u64(b, 1))), sums[2] = {{0}};
    sums[0] = column_sum(b, &g, column, member);
    if (spec->epilogue.gated)
        sums[1] = column_sum(b, &g, ptx_add(b, column, g.args.n), member);
    finish(b, &g, column, member, exists, sums);
}
