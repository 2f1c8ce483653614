/* w4a8 on tensor cores: a stage has 128 k, that is, two parts of 64 bytes of x, and 64 bytes of w, which are
 * 128 nibbles.
 *
 * A word of w has the nibbles of eight adjacent k: the even ones become one register of mma's B, the odd ones
 * another, both 16 times as large. x is arranged accordingly: a thread reads the eight bytes for the same k,
 * and takes the even and the odd ones for A.
 *
 * A group ends at a multiple of 32 k within a stage, or at the end of a stage. Its sums are then multiplied
 * by the group's scale and added to those of the strip; a strip ends with a stage. */
#include "kernels/integer/tile.h"

#include "kernels/formats/format.h"

enum { STAGE_K = 128, STEP_K = 32, HALF_STEPS = 2 };

bool int_fits_tiles(const kernel_spec *spec)
{
    const uint64_t g = spec->stored.group_size;
    if (!int_is_grouped(spec))
        return true;
    return g % STAGE_K == 0 ? g < 1 << 17 : g % STEP_K == 0 && STAGE_K % g == 0;
}

/* Groups that begin and end within a stage: their first mma adds to zero. The sums of others are set to 0
 * where a group ends. */
static bool is_short(const kernel_spec *spec)
{
    return spec->stored.group_size <= STAGE_K;
}

/* ---- Beginning ---- */

/* x is read in pieces of eight bytes: lane l reads piece l % 4 of row l / 4. */
static void addresses_begin(ptx_builder *b, tile *t, ptx_val warp_row, ptx_val warp_column)
{
    ptx_val lane = ptx_laneid(b), row = ptx_shr(b, lane, 2), piece = ptx_and(b, lane, 3);
    ptx_val x_row = ptx_add(b, warp_row, row), exchanged = fill_exchange(b, &t->fill, FILL_X, row);
    for (int step = 0; step < HALF_STEPS; step++) {
        ptx_val chunk = ptx_add(b, ptx_shr(b, piece, 1), 2 * step);
        ptx_val place =
            ptx_mad(b, ptx_xor(b, chunk, exchanged), INT_CHUNK, ptx_shl(b, ptx_and(b, piece, 1), 3));
        t->x_at[step] = ptx_add(b, t->shared, ptx_mad(b, x_row, FILL_ROW, place));
    }
    /* ldmatrix reads one chunk of 32 rows of w: lane l addresses row l. */
    ptx_val w_row = ptx_add(b, warp_column, lane), w_exchanged = fill_exchange(b, &t->fill, FILL_W, lane);
    t->w_at[0] = ptx_add(b, t->shared, ptx_mad(b, w_row, FILL_ROW, ptx_shl(b, w_exchanged, 4)));
}

static void scales_begin(ptx_builder *b, tile *t, ptx_val warp_column)
{
    const unsigned bytes = scale_bytes(t->spec->stored.scale);
    ptx_val pair = ptx_shl(b, ptx_and(b, ptx_laneid(b), 3), 1), first = ptx_add(b, warp_column, pair);
    ptx_val groups = ptx_cvt(b, PTX_U64, t->group_count);
    for (unsigned j = 0; j < t->n_blocks; j++)
        for (unsigned e = 0; e < 2; e++) {
            ptx_val i = j || e ? ptx_add(b, first, j * 8 + e) : first;
            ptx_val n = int_output_of_stack(b, &t->args, &t->fill.rows, fill_output(b, &t->fill, i));
            t->scales[j][e] =
                ptx_at(b, t->args.all.operand[QDNN_OPERAND_SCALE], ptx_mul(b, n, groups), bytes);
        }
}

void tile_groups_begin(ptx_builder *b, tile *t, ptx_val warp_row, ptx_val warp_column)
{
    const uint64_t g = t->spec->stored.group_size;
    ptx_val groups = ptx_div(b, ptx_add(b, t->args.k, ptx_u64(b, g - 1)), ptx_u64(b, g));
    t->group_count = ptx_cvt(b, PTX_U32, groups);
    t->group = ptx_var(b, ptx_u32(b, 0));
    for (int i = 0; i < 4; i++)
        t->none[i] = ptx_var(b, ptx_s32(b, 0));
    t->k_left = ptx_var(b, ptx_u32(b, int_strip(t->spec)));
    addresses_begin(b, t, warp_row, warp_column);
    scales_begin(b, t, warp_column);
    for (unsigned i = 0; i < t->m_blocks; i++)
        for (unsigned j = 0; j < t->n_blocks * 4; j++) {
            t->parts[i][j / 4][j % 4] = ptx_var(b, ptx_f32(b, 0));
            t->totals[i][j / 4][j % 4] = ptx_var(b, ptx_f32(b, 0));
        }
}

/* ---- The ends of groups and strips ---- */

/* The sums are 16 times too large. */
static void add_group(ptx_builder *b, const tile *t)
{
    const unsigned bytes = scale_bytes(t->spec->stored.scale);
    for (unsigned j = 0; j < t->n_blocks; j++) {
        ptx_val scale[2];
        for (int e = 0; e < 2; e++)
            scale[e] =
                emit_load_scale(b, t->spec->stored.scale, ptx_at(b, t->scales[j][e], t->group, bytes), 0);
        for (unsigned i = 0; i < t->m_blocks; i++)
            for (int e = 0; e < 4; e++) {
                ptx_val sum = ptx_cvt_rn(b, PTX_F32, ptx_shr(b, t->sums[i][j][e], 4));
                ptx_into(b, t->parts[i][j][e]);
                ptx_fma(b, sum, scale[e % 2], t->parts[i][j][e]);
            }
    }
}

/* A group that does not exist is skipped, and its scale is not read. */
static void add_group_if_any(ptx_builder *b, const tile *t)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LT, t->group, t->group_count));
    add_group(b, t);
    ptx_end_if(b);
}

static void next_group(ptx_builder *b, const tile *t)
{
    for (unsigned i = 0; i < t->m_blocks * t->n_blocks * 4 && !is_short(t->spec); i++)
        ptx_assign(b, t->sums[i / 4 / t->n_blocks][i / 4 % t->n_blocks][i % 4], ptx_s32(b, 0));
    ptx_into(b, t->group);
    ptx_add(b, t->group, 1);
}

static void end_strip(ptx_builder *b, const tile *t)
{
    for (unsigned i = 0; i < t->m_blocks; i++)
        for (unsigned j = 0; j < t->n_blocks; j++)
            for (int e = 0; e < 4; e++) {
                ptx_into(b, t->totals[i][j][e]);
                ptx_add(b, t->totals[i][j][e], t->parts[i][j][e]);
            }
}

static void next_strip(ptx_builder *b, const tile *t)
{
    for (unsigned i = 0; i < t->m_blocks * t->n_blocks * 4; i++)
        ptx_assign(b, t->parts[i / 4 / t->n_blocks][i / 4 % t->n_blocks][i % 4], ptx_f32(b, 0));
    ptx_assign(b, t->k_left, ptx_u32(b, int_strip(t->spec)));
}

/* Groups of whole stages end when the k left in the strip is a multiple of their size. */
static void end_stage(ptx_builder *b, const tile *t)
{
    const uint32_t g = (uint32_t)t->spec->stored.group_size;
    ptx_into(b, t->k_left);
    ptx_sub(b, t->k_left, STAGE_K);
    if (!is_short(t->spec)) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_EQ, ptx_rem(b, t->k_left, ptx_u32(b, g)), 0));
        add_group(b, t);
        next_group(b, t);
        ptx_end_if(b);
    }
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_EQ, t->k_left, 0));
    end_strip(b, t);
    next_strip(b, t);
    ptx_end_if(b);
}

/* Ends whatever the last stage did not complete; if it did complete everything, this adds 0. Short groups end within their stage. */
void tile_groups_end(ptx_builder *b, const tile *t)
{
    if (!is_short(t->spec))
        add_group_if_any(b, t);
    end_strip(b, t);
}

/* ---- 32 k ---- */

static void load_x(ptx_builder *b, const tile *t, int at, int step, ptx_val x[TILE_M_MAX][4])
{
    for (unsigned i = 0; i < t->m_blocks; i++)
        for (int half = 0; half < 2; half++) {
            ptx_val pair[2];
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, t->x_at[step],
                       at + (int)(i * 16 + (unsigned)half * 8) * FILL_ROW, pair, 2);
            x[i][half] = ptx_prmt(b, pair[0], pair[1], 0x6420);
            x[i][half + 2] = ptx_prmt(b, pair[0], pair[1], 0x7531);
        }
}

void tile_groups_compute(ptx_builder *b, const tile *t, unsigned stage, int half)
{
    const int first = (int)(stage * t->fill.stage_bytes), part = (int)t->side * FILL_ROW;
    for (int step = 0; step < HALF_STEPS; step++) {
        const int chunk = half * HALF_STEPS + step;
        ptx_val x[TILE_M_MAX][4], words[4], w[2];
        ptx_val w_at = chunk ? ptx_xor(b, t->w_at[0], chunk * INT_CHUNK) : t->w_at[0];
        const bool begins = is_short(t->spec) && (uint64_t)chunk * STEP_K % t->spec->stored.group_size == 0;
        load_x(b, t, first + half * part, step, x);
        ptx_ldmatrix(b, w_at, first + 2 * part, words, 4);
        for (unsigned j = 0; j < t->n_blocks; j++) {
            int_spread(b, words[j], &w[0], &w[1]);
            for (unsigned i = 0; i < t->m_blocks; i++)
                tile_multiply(b, PTX_MMA_m16n8k32_s32_s8, PTX_MMA_m8n8k16_s32_s8, t->sums[i][j], x[i], w,
                              begins ? t->none : t->sums[i][j]);
        }
        if (is_short(t->spec) && (uint64_t)(chunk + 1) * STEP_K % t->spec->stored.group_size == 0) {
            if (t->spec->stored.group_size < STAGE_K)
                add_group_if_any(b, t);
            else
                add_group(b, t); /* every stage has a k */
            next_group(b, t);
        }
    }
    if (half == 1)
        end_stage(b, t);
}
