/* Rows of mode tensor: queries, what they see, their states and results. */
#include "kernels/attention/tensor.h"
#include "kernels/functions.h"

static unsigned rows_used(const tensor *t)
{
    return t->shape.heads * t->shape.tokens;
}

/* Row `row` (u32) of the block. */
static tensor_row row_of(ptx_builder *b, const tensor *t, ptx_val row)
{
    const bool many = t->shape.tokens > 1;
    ptx_val token = many ? ptx_div(b, row, (int)t->shape.heads) : ptx_u32(b, 0);
    ptx_val head = many ? ptx_sub(b, row, ptx_mul(b, token, (int)t->shape.heads)) : row;
    tensor_row r = {.token = ptx_add(b, t->token, ptx_cvt(b, PTX_U64, token)),
                    .head = ptx_add(b, t->head, head)};
    r.exists = ptx_setp(b, PTX_LT, r.token, t->args->number[NUMBER_M]);
    r.exists = ptx_setp_and(b, PTX_LT, r.head, t->head_end, r.exists);
    r.exists = ptx_setp_and(b, PTX_LT, row, ptx_u32(b, rows_used(t)), r.exists);
    return r;
}

void attend_rows_begin(ptx_builder *b, tensor *t)
{
    const bool has_slope = t->args->operand[QDNN_OPERAND_SLOPE].kind != PTX_NOTHING;
    ptx_val first = ptx_mad(b, t->row_tile, WARP_ROWS, ptx_shr(b, t->lane, 2));
    seen_keys of_token = {0};
    if (t->shape.tokens == 1)
        of_token = seen_by_token(b, t->spec, t->args, t->token);
    for (unsigned h = 0; h < t->halves; h++) {
        tensor_row *r = &t->rows[h];
        *r = row_of(b, t, h ? ptx_add(b, first, WARP_ROWS / 2) : first);
        r->seen = t->shape.tokens == 1 ? of_token : seen_by_token(b, t->spec, t->args, r->token);
        r->active = ptx_var(b, r->exists);
        if (has_slope)
            r->slope = ptx_ld_if(b, r->exists, PTX_GLOBAL, PTX_NC, PTX_F32,
                                 ptx_at(b, t->args->operand[QDNN_OPERAND_SLOPE], r->head, 4), 0, t->zero);
    }
}

/* Zeros in rows that the block does not have. */
static void clear_rows(ptx_builder *b, const tensor *t)
{
    const unsigned first = rows_used(t) * t->key_pitch, end = t->shape.row_tiles * WARP_ROWS * t->key_pitch;
    ptx_val zeros[4];
    for (unsigned i = 0; i < 4; i++)
        zeros[i] = ptx_mov(b, ptx_u32(b, 0));
    ptx_val start = ptx_mad(b, ptx_tid_x(b), LOAD_BYTES, ptx_u32(b, first));
    ptx_rolled(b);
    ptx_val at = ptx_for(b, start, ptx_u32(b, end), ptx_u32(b, LOAD_BYTES * t->shape.block));
    ptx_st_vec(b, PTX_SHARED, 0, ptx_add(b, t->queries, at), 0, zeros, 4);
    ptx_end_for(b);
}

/* Several elements of a thread are under way together. */
void attend_load_queries(ptx_builder *b, const tensor *t)
{
    enum { AT_ONCE = 8 };
    const unsigned size = (unsigned)t->spec->kv.key_size, all = rows_used(t) * size;
    if (rows_used(t) < t->shape.row_tiles * WARP_ROWS)
        clear_rows(b, t);
    ptx_rolled(b);
    ptx_val first = ptx_for(b, ptx_tid_x(b), ptx_u32(b, all), ptx_u32(b, AT_ONCE * t->shape.block));
    ptx_val x[AT_ONCE], to[AT_ONCE], has[AT_ONCE];
    for (unsigned k = 0; k < AT_ONCE; k++) {
        ptx_val i = k ? ptx_add(b, first, (int)(k * t->shape.block)) : first;
        ptx_val number = ptx_div(b, i, (int)size), element = ptx_sub(b, i, ptx_mul(b, number, (int)size));
        const tensor_row row = row_of(b, t, number);
        has[k] = ptx_setp(b, PTX_LT, i, ptx_u32(b, all));
        ptx_val at = ptx_mad(b, row.token, t->args->number[NUMBER_X_STRIDE],
                             ptx_mul_wide(b, row.head, ptx_u32(b, size)));
        at = ptx_at(b, t->args->operand[QDNN_OPERAND_X], ptx_add(b, at, ptx_cvt(b, PTX_U64, element)), 2);
        x[k] = ptx_ld_if(b, row.exists, PTX_GLOBAL, PTX_NC, PTX_U16, at, 0, ptx_u16(b, 0));
        to[k] = ptx_at(b, ptx_mad(b, number, (int)t->key_pitch, t->queries), element, 2);
    }
    for (unsigned k = 0; k < AT_ONCE; k++) {
        ptx_if(b, has[k]);
        ptx_st_shared(b, to[k], 0, x[k]);
        ptx_end_if(b);
    }
    ptx_end_for(b);
}

/* ---- States ---- */

tensor_state attend_state_begin(ptx_builder *b, const tensor *t)
{
    tensor_state s;
    for (unsigned h = 0; h < HALVES; h++)
        s.m[h] = ptx_var(b, ptx_bits(b, PTX_F32, 0xFF800000));
    for (unsigned i = 0; i < 4; i++)
        s.l[i] = ptx_var(b, ptx_f32(b, 0));
    for (unsigned g = 0; g < t->groups; g++)
        for (unsigned i = 0; i < 4; i++)
            s.o[g][i] = ptx_var(b, ptx_f32(b, 0));
    return s;
}

void attend_state_clear(ptx_builder *b, const tensor *t, const tensor_state *s)
{
    for (unsigned h = 0; h < HALVES; h++)
        ptx_assign(b, s->m[h], ptx_bits(b, PTX_F32, 0xFF800000));
    for (unsigned i = 0; i < 4; i++)
        ptx_assign(b, s->l[i], ptx_f32(b, 0));
    for (unsigned g = 0; g < t->groups; g++)
        for (unsigned i = 0; i < 4; i++)
            ptx_assign(b, s->o[g][i], ptx_f32(b, 0));
}

void attend_state_join(ptx_builder *b, const tensor *t, const tensor_state *all, const tensor_state *strip)
{
    for (unsigned h = 0; h < t->halves; h++) {
        ptx_val larger = ptx_max(b, strip->m[h], all->m[h]);
        ptx_val a = state_factor(b, all->m[h], larger), c = state_factor(b, strip->m[h], larger);
        ptx_assign(b, all->m[h], larger);
        ptx_val l = ptx_mul(b, strip->l[2 * h], c);
        ptx_into(b, all->l[2 * h]);
        ptx_fma(b, all->l[2 * h], a, l);
        for (unsigned g = 0; g < t->groups; g++)
            for (unsigned i = 2 * h; i < 2 * h + 2; i++) {
                ptx_val o = ptx_mul(b, strip->o[g][i], c);
                ptx_into(b, all->o[g][i]);
                ptx_fma(b, all->o[g][i], a, o);
            }
    }
}

/* ---- Results ---- */

/* Parts overlap where the columns cannot be divided evenly: whether the warp has column group `g` for itself. Empty: it has. */
static ptx_val owns_group(ptx_builder *b, const tensor *t, unsigned g)
{
    const unsigned all = (unsigned)t->spec->kv.value_size / 8, parts = t->shape.column_parts;
    if (parts * t->groups == all)
        return (ptx_val){0};
    ptx_val least = ptx_mul(b, t->part, (int)t->groups);
    return ptx_setp(b, PTX_GE, ptx_add(b, t->column_group, (int)g), least);
}

/* The address of the thread's first column in an array of rows. */
static ptx_val first_column(ptx_builder *b, const tensor *t, ptx_val at, unsigned bytes)
{
    ptx_val column = ptx_mad(b, t->column_group, 8, ptx_shl(b, ptx_and(b, t->lane, 3), 1));
    return ptx_at(b, at, column, bytes);
}

void attend_state_store(ptx_builder *b, const tensor *t, const tensor_state *strip, ptx_val number)
{
    ptx_val wide = ptx_cvt(b, PTX_U64, ptx_as(b, PTX_U32, number));
    for (unsigned h = 0; h < t->halves; h++) {
        const tensor_row *r = &t->rows[h];
        ptx_if(b, r->active);
        const state_place to =
            state_place_of(b, t->spec, t->args, r->token, ptx_cvt(b, PTX_U64, r->head), wide);
        ptx_val at = first_column(b, t, to.o, 4);
        for (unsigned g = 0; g < t->groups; g++) {
            ptx_val owns = owns_group(b, t, g);
            if (owns.kind != PTX_NOTHING)
                ptx_if(b, owns);
            ptx_st_vec(b, PTX_GLOBAL, 0, at, (int)(32 * g), &strip->o[g][2 * h], 2);
            if (owns.kind != PTX_NOTHING)
                ptx_end_if(b);
        }
        ptx_val pair[2] = {strip->m[h], strip->l[2 * h]};
        ptx_val first = ptx_or(b, ptx_and(b, t->lane, 3), t->part);
        ptx_if(b, ptx_setp(b, PTX_EQ, first, 0));
        ptx_st_vec(b, PTX_GLOBAL, 0, to.ml, 0, pair, 2);
        ptx_end_if(b);
        ptx_end_if(b);
    }
}

/* The sink is joined to a copy of m and l, and scales o by `a`. */
static void finish_row(ptx_builder *b, const tensor *t, const tensor_state *all, unsigned h, ptx_val *a,
                       ptx_val *l)
{
    const tensor_row *r = &t->rows[h];
    *l = all->l[2 * h];
    *a = (ptx_val){0};
    if (!t->spec->select.sink)
        return;
    ptx_val z = ptx_ld_if(b, r->active, PTX_GLOBAL, PTX_NC, PTX_F32,
                          ptx_at(b, t->args->operand[QDNN_OPERAND_SINK], r->head, 4), 0, t->zero);
    ptx_val larger = ptx_max(b, z, all->m[h]), c = state_factor(b, z, larger);
    *a = state_factor(b, all->m[h], larger);
    *l = ptx_fma(b, *l, *a, c);
}

void attend_results(ptx_builder *b, const tensor *t, const tensor_state *all)
{
    const qdnnDataType_t type = t->spec->epilogue.output;
    const unsigned bytes = element_bytes(type);
    ptx_val zero = ptx_f32(b, 0);
    for (unsigned h = 0; h < t->halves; h++) {
        const tensor_row *r = &t->rows[h];
        ptx_val a, l, none = ptx_setp(b, PTX_EQ, all->l[2 * h], zero);
        finish_row(b, t, all, h, &a, &l);
        ptx_val at = ptx_mad(b, r->token, t->args->number[NUMBER_Y_STRIDE],
                             ptx_mul_wide(b, r->head, ptx_u32(b, (uint32_t)t->spec->kv.value_size)));
        at = first_column(b, t, ptx_at(b, t->args->operand[QDNN_OPERAND_Y], at, bytes), bytes);
        for (unsigned g = 0; g < t->groups; g++)
            for (unsigned i = 0; i < 2; i++) {
                ptx_val o = all->o[g][2 * h + i], owns = owns_group(b, t, g);
                if (a.kind != PTX_NOTHING)
                    o = ptx_fma(b, o, a, zero);
                ptx_val y = ptx_selp(b, zero, ptx_div(b, ptx_add(b, o, zero), l), none);
                ptx_if(b, owns.kind == PTX_NOTHING ? r->active : ptx_and(b, r->active, owns));
                emit_store(b, type, at, (int)((8 * g + i) * bytes), y);
                ptx_end_if(b);
            }
    }
}
