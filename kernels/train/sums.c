/* Sums in the order of the long sum (docs/numerics.md): 32 lanes, chunks of 8, segments of 4,096. The kernel
 * here sums lists: it is applied to lists of segment sums until each is reduced to one number. */
#include "kernels/emit.h"
#include "kernels/operations.h"
#include "kernels/train/train.h"

sum_turns sum_turns_of(ptx_builder *b, const kernel_spec *spec, ptx_val n)
{
    const uint64_t run = spec->stored.group_size, turn = run * spec->stored.channels;
    sum_turns all = {.n = n};
    if (spec->stored.channels <= 1)
        return all;
    ptx_val turns = emit_divide(b, n, turn);
    all.rest = emit_remainder(b, n, turns, turn);
    all.whole = emit_multiply(b, turns, run);
    return all;
}

ptx_val sum_count(ptx_builder *b, const kernel_spec *spec, const sum_turns *all, ptx_val group)
{
    const uint64_t run = spec->stored.group_size;
    if (spec->stored.channels == 1)
        return all->n;
    ptx_val first = emit_multiply(b, group, run);
    if (spec->stored.channels == 0)
        return ptx_min(b, ptx_sub(b, all->n, first), ptx_u64(b, run));
    ptx_val last = ptx_sub(b, all->rest, ptx_min(b, all->rest, first));
    return ptx_add(b, all->whole, ptx_min(b, last, ptx_u64(b, run)));
}

ptx_val sum_most(ptx_builder *b, const kernel_spec *spec, const sum_turns *all)
{
    const ptx_val run = ptx_u64(b, spec->stored.group_size);
    if (spec->stored.channels == 1)
        return all->n;
    return spec->stored.channels ? ptx_add(b, all->whole, ptx_min(b, all->rest, run)) : run;
}

ptx_val sum_tree(ptx_builder *b, ptx_val lane_sum, unsigned lanes)
{
    for (unsigned half = lanes / 2; half > 0; half /= 2)
        lane_sum = ptx_add(b, lane_sum, ptx_shfl_bfly(b, lane_sum, half));
    return lane_sum;
}

void sum_store(ptx_builder *b, const kernel_spec *spec, ptx_val address, ptx_val sum, ptx_val count)
{
    ptx_val result = ptx_add(b, sum, ptx_f32(b, 0));
    if (spec->train.gradient_factor)
        result = ptx_mul(b, result, train_gradient_factor(b, spec, count));
    ptx_st_global(b, address, 0, result);
}

/* Each warp takes a segment of a list. */
kernel_geometry long_sum_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    const kernel_rule segments =
        rule_times(rule_number(NUMBER_ROWS), rule_parts(NUMBER_COLUMNS, SUM_SEGMENT));
    return (kernel_geometry){.block = SUM_BLOCK, .grid = {rule_ceil(segments, SUM_BLOCK / SUM_LANES)}};
}

/* Adds the lane's terms of a list at `address`, of which `left` belong to the segment. The first term of a chunk
 * exists; another that is missing counts as +0, which does not change the sum. */
static ptx_val add_terms(ptx_builder *b, ptx_val address, ptx_val lane, ptx_val left)
{
    ptx_val sum = ptx_var(b, ptx_f32(b, 0));
    ptx_val first = ptx_for(b, ptx_mul(b, lane, SUM_CHUNK), left, SUM_LANES * SUM_CHUNK);
    ptx_val at = ptx_at(b, address, first, sizeof(float));
    ptx_assign(b, sum, ptx_add(b, sum, emit_load(b, QDNN_DATA_F32, at, 0)));
    for (int i = 1; i < SUM_CHUNK; i++) {
        ptx_val exists = ptx_setp(b, PTX_LT, ptx_add(b, first, i), left);
        ptx_val term = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_F32, at, 4 * i, ptx_f32(b, 0));
        ptx_assign(b, sum, ptx_add(b, sum, term));
    }
    ptx_end_for(b);
    return sum;
}

/* x is a list of `columns` numbers for each of `rows` groups; n is the total number of elements in all
 * groups, which the gradient factor needs. */
void emit_long_sum(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    ptx_val columns = args.number[NUMBER_COLUMNS], lane = ptx_laneid(b);
    ptx_val block_first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, SUM_BLOCK / SUM_LANES));
    ptx_val item = ptx_add(b, block_first, ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_tid_x(b), 5)));
    ptx_val segments = emit_divide(b, ptx_add(b, columns, SUM_SEGMENT - 1), SUM_SEGMENT);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, item, ptx_mul(b, segments, args.number[NUMBER_ROWS])));
    ptx_val group = ptx_div(b, item, segments), segment = ptx_sub(b, item, ptx_mul(b, group, segments));
    ptx_val skipped = ptx_mul(b, segment, SUM_SEGMENT);
    ptx_val left = ptx_cvt(b, PTX_U32, ptx_min(b, ptx_sub(b, columns, skipped), SUM_SEGMENT));
    ptx_val list = ptx_at(b, args.operand[QDNN_OPERAND_X], ptx_mad(b, group, columns, skipped), 4);
    ptx_val terms = add_terms(b, list, lane, left), sum = sum_tree(b, terms, SUM_LANES);
    ptx_if(b, ptx_setp(b, PTX_EQ, lane, 0));
    ptx_val count = group; /* unused without the factor */
    if (spec->train.gradient_factor) {
        sum_turns all = sum_turns_of(b, spec, args.number[NUMBER_N]);
        count = sum_count(b, spec, &all, group);
    }
    sum_store(b, spec, ptx_at(b, args.operand[QDNN_OPERAND_DSCALE], item, 4), sum, count);
    ptx_end_if(b);
}
_Static_assert(SUM_LANES == 1 << 5, "a thread's number is shifted by it");
