/* Weighted sums of values in mode tensor. All rows of a warp multiply the same values, also those that do not see their key: their
 * weight is -0, which adds nothing to a sum, unless the value is infinite or NaN. Where that may be and is, each row takes the values
 * with zeros in place of those that it does not see. */
#include "kernels/attention/tensor.h"

static void load_values(ptx_builder *b, const tensor *t, ptx_val at, unsigned group, unsigned step,
                        ptx_val values[2][2])
{
    const bool both = group + 1 < t->groups;
    ptx_val out[4];
    ptx_ldmatrix_trans(b, at, (int)(step * 16 * t->value_pitch + 16 * group), out, both ? 4 : 2);
    for (unsigned i = 0; i < (both ? 4u : 2u); i++)
        values[i / 2][i % 2] = out[i];
}

/* The weights of 16 keys as operand A. */
static void weights_of(const tensor_tile *tile, unsigned first, ptx_val a[4])
{
    for (unsigned i = 0; i < 4; i++)
        a[i] = tile->weights[first + i / 2][i % 2];
}

static void add_all(ptx_builder *b, const tensor *t, const tensor_tile *tile, ptx_val at, unsigned first,
                    const tensor_state *s)
{
    for (unsigned step = 0; step < t->shape.chunk / 16; step++) {
        ptx_val a[4], values[2][2];
        weights_of(tile, first + 2 * step, a);
        for (unsigned g = 0; g < t->groups; g += 2) {
            load_values(b, t, at, g, step, values);
            for (unsigned i = 0; i < 2 && g + i < t->groups; i++)
                attend_multiply(b, t, s->o[g + i], a, values[i], s->o[g + i], false);
        }
    }
}

/* Where weights (a pair) are -0, the values of a pair become +0. */
static ptx_val hidden_to_zero(ptx_builder *b, ptx_val values, ptx_val weights)
{
    enum { SIGNS = 0xBB99 };
    return ptx_and(b, values, ptx_not(b, ptx_prmt(b, weights, weights, SIGNS)));
}

static void add_row_by_row(ptx_builder *b, const tensor *t, const tensor_tile *tile, ptx_val at,
                           unsigned first, const tensor_state *s)
{
    ptx_rolled(b);
    ptx_val row = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, WARP_ROWS / HALVES * t->halves), ptx_u32(b, 1));
    ptx_val of_half = ptx_and(b, row, 7), upper = ptx_setp(b, PTX_GE, row, 8);
    ptx_val source = ptx_add(b, ptx_shl(b, of_half, 2), ptx_and(b, t->lane, 3));
    ptx_val has = ptx_setp(b, PTX_EQ, ptx_shr(b, t->lane, 2), of_half);
    const ptx_val mine[HALVES] = {ptx_and(b, has, ptx_not(b, upper)), ptx_and(b, has, upper)};
    for (unsigned step = 0; step < t->shape.chunk / 16; step++) {
        ptx_val a[4], values[2][2], weights[2];
        weights_of(tile, first + 2 * step, a);
        for (unsigned i = 0; i < 2; i++)
            weights[i] = ptx_shfl_idx(b, ptx_selp(b, a[2 * i + 1], a[2 * i], upper), source);
        for (unsigned g = 0; g < t->groups; g++) {
            if (g % 2 == 0)
                load_values(b, t, at, g, step, values);
            ptx_val d[4];
            for (unsigned i = 0; i < 4; i++)
                d[i] = ptx_var_of(b, PTX_F32);
            for (unsigned i = 0; i < 2; i++)
                values[g % 2][i] = hidden_to_zero(b, values[g % 2][i], weights[i]);
            attend_multiply(b, t, d, a, values[g % 2], s->o[g], false);
            for (unsigned i = 0; i < 2 * t->halves; i++)
                ptx_assign(b, s->o[g][i], ptx_selp(b, d[i], s->o[g][i], mine[i / 2]));
        }
    }
    ptx_end_for(b);
}

/* Whether the warp's columns of a chunk have an infinite or NaN value. Uniform. */
static ptx_val has_unusual(ptx_builder *b, const tensor *t, ptx_val slot)
{
    const uint32_t least =
        t->type == QDNN_DATA_F16 ? 0x04000400 : 0x00800080; /* carries an exponent of ones into the sign */
    ptx_val seen = ptx_var(b, ptx_u32(b, 0));
    ptx_val start = ptx_mad(b, t->column_group, LOAD_BYTES, slot);
    ptx_rolled(b);
    ptx_val i = ptx_for(b, t->lane, ptx_u32(b, t->shape.chunk * t->groups), ptx_u32(b, WARP));
    ptx_val key = ptx_div(b, i, (int)t->groups), group = ptx_sub(b, i, ptx_mul(b, key, (int)t->groups)),
            words[4];
    ptx_val at = ptx_mad(b, group, LOAD_BYTES, ptx_mad(b, key, (int)t->value_pitch, start));
    ptx_ld_vec(b, PTX_SHARED, 0, PTX_U32, at, 0, words, 4);
    for (unsigned w = 0; w < 4; w++) {
        ptx_val sum = ptx_add(b, ptx_and(b, words[w], ptx_u32(b, 0x7FFF7FFF)), ptx_u32(b, least));
        ptx_assign(b, seen, ptx_or(b, seen, sum));
    }
    ptx_end_for(b);
    return ptx_vote_any(b, ptx_setp(b, PTX_NE, ptx_and(b, seen, ptx_u32(b, 0x80008000)), 0));
}

void attend_add_values(ptx_builder *b, const tensor *t, const tensor_tile *tile, unsigned chunk,
                       const tensor_state *strip)
{
    const unsigned first = chunk * t->shape.chunk / GROUP_KEYS;
    ptx_val slot = attend_slot(b, t, t->reading), at = ptx_add(b, slot, t->value_lane);
    ptx_val apart = ptx_var(b, tile->checked);
    ptx_uniform(b);
    ptx_if(b, tile->checked);
    ptx_assign(b, apart, has_unusual(b, t, slot));
    ptx_end_if(b);
    ptx_uniform(b);
    ptx_if(b, apart);
    add_row_by_row(b, t, tile, at, first, strip);
    ptx_else(b);
    add_all(b, t, tile, at, first, strip);
    ptx_end_if(b);
}
