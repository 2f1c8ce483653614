/* States of softmax. A state without keys has m = -Inf, l = 0 and o = 0, and joins as if it were not there: exp(-Inf) = 0 and exp(0) = 1
 * are exact, and a sum with 0 differs at most in the sign of a zero, which the last addition of +0 removes. */
#include "kernels/attention/attention.h"
#include "kernels/functions.h"

static ptx_val minus_infinity(ptx_builder *b)
{
    return ptx_bits(b, PTX_F32, 0xFF800000);
}

row_state state_begin(ptx_builder *b, unsigned columns)
{
    row_state s = {.columns = columns};
    s.m = ptx_var(b, minus_infinity(b));
    s.l = ptx_var(b, ptx_f32(b, 0));
    for (unsigned i = 0; i < columns; i++)
        s.o[i] = ptx_var(b, ptx_f32(b, 0));
    return s;
}

void state_clear(ptx_builder *b, const row_state *s)
{
    ptx_assign(b, s->m, minus_infinity(b));
    ptx_assign(b, s->l, ptx_f32(b, 0));
    for (unsigned i = 0; i < s->columns; i++)
        ptx_assign(b, s->o[i], ptx_f32(b, 0));
}

/* -Inf less -Inf: neither has keys, or all of their scores are NaN, and so are their sums. */
ptx_val state_factor(ptx_builder *b, ptx_val m, ptx_val larger)
{
    ptx_val difference = ptx_sub(b, m, larger);
    ptx_val none = ptx_setp(b, PTX_EQ, larger, minus_infinity(b));
    return emit_exp(b, ptx_selp(b, ptx_f32(b, 0), difference, none));
}

void state_join(ptx_builder *b, const row_state *s, ptx_val m, ptx_val l, const ptx_val *o)
{
    ptx_val larger = ptx_max(b, m, s->m), a = state_factor(b, s->m, larger), c = state_factor(b, m, larger);
    ptx_assign(b, s->l, ptx_fma(b, s->l, a, ptx_mul(b, l, c)));
    for (unsigned i = 0; i < s->columns; i++) {
        ptx_val term = o ? ptx_mul(b, o[i], c) : ptx_mul(b, c, ptx_f32(b, 0));
        ptx_assign(b, s->o[i], ptx_fma(b, s->o[i], a, term));
    }
    ptx_assign(b, s->m, larger);
}

/* The largest of all up to each lane, and of `before`. */
static ptx_val largest_so_far(ptx_builder *b, ptx_val before, ptx_val m, unsigned count)
{
    ptx_val largest = m;
    for (unsigned distance = 1; distance < count; distance *= 2)
        largest =
            ptx_max(b, largest, ptx_shfl_up(b, largest, distance)); /* its own, where there is no lane */
    return ptx_max(b, largest, before);
}

void state_join_all(ptx_builder *b, const row_state *s, ptx_val m, ptx_val l, unsigned count,
                    state_column *column, const void *user)
{
    ptx_val largest = largest_so_far(b, s->m, m, count);
    ptx_val before = ptx_selp(b, s->m, ptx_shfl_up(b, largest, 1), ptx_setp(b, PTX_EQ, ptx_laneid(b), 0));
    ptx_val a = state_factor(b, before, largest), c = state_factor(b, m, largest), part = ptx_mul(b, l, c);
    for (unsigned i = 0; i < count; i++) {
        ptx_val ai = ptx_shfl_idx(b, a, i), ci = ptx_shfl_idx(b, c, i);
        ptx_assign(b, s->l, ptx_fma(b, s->l, ai, ptx_shfl_idx(b, part, i)));
        for (unsigned k = 0; k < s->columns; k++)
            ptx_assign(b, s->o[k], ptx_fma(b, s->o[k], ai, ptx_mul(b, column(b, user, i, k), ci)));
    }
    ptx_assign(b, s->m, ptx_shfl_idx(b, largest, count - 1));
}

/* Without keys, l is 0, and the result +0 whatever the sink is. */
void state_finish(ptx_builder *b, const row_state *s, ptx_val sink, ptx_val *y)
{
    ptx_val zero = ptx_f32(b, 0), none = ptx_setp(b, PTX_EQ, s->l, zero);
    if (sink.kind != PTX_NOTHING)
        state_join(b, s, sink, ptx_f32(b, 1), NULL);
    for (unsigned i = 0; i < s->columns; i++) {
        ptx_val quotient = ptx_div(b, ptx_add(b, s->o[i], zero), s->l);
        y[i] = ptx_selp(b, zero, quotient, none);
    }
}

/* ---- In the workspace ---- */

/* States of a sequence, as far as there is room for keys: u64. */
static ptx_val states_of(ptx_builder *b, const kernel_spec *spec, const kernel_args *args)
{
    ptx_val keys = args->number[NUMBER_PAGE_SLOTS];
    if (spec->kv.slots == KERNEL_KV_PAGED)
        keys = ptx_mul(b, keys, args->number[NUMBER_TABLE_PAGES]);
    return emit_divide_up(b, ptx_min(b, keys, ptx_u64(b, INT32_MAX)), state_keys(spec));
}

state_place state_place_of(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val token,
                           ptx_val head, ptx_val number)
{
    ptx_val states = states_of(b, spec, args);
    ptx_val row = ptx_add(b, emit_multiply(b, token, spec->rope.queries), head);
    ptx_val all = ptx_mul(b, emit_multiply(b, args->number[NUMBER_M], spec->rope.queries), states);
    ptx_val at = ptx_mad(b, row, states, number);
    ptx_val start = ptx_at(b, args->partials, emit_multiply(b, all, spec->kv.value_size), 4);
    return (state_place){ptx_at(b, args->partials, emit_multiply(b, at, spec->kv.value_size), 4),
                         ptx_at(b, start, at, 8)};
}
