/* SSM_SCAN and GATED_DELTA_NET, the recurrences of state-space models and of gated linear attention, in f32. Rows of a state do
 * not depend on each other: a warp has one in its registers, and goes through the tokens of its sequence. */
#include <math.h>

#include "bodies.h"
#include "engine.h"
#include "kernels/functions.h"

enum { ROW_PARTS = 8, ROW_MOST = 32 * ROW_PARTS }; /* elements of a lane, and of a row */
enum { S_SIZE, S_HAS_VECTOR }; /* elements of a row; whether each of them decays by itself */

/* ---- Vectors of a warp: lane i has the elements i, i + 32 ...; those beyond the end are 0 ---- */

typedef struct vector {
    ptx_val part[ROW_PARTS];
} vector;

typedef struct warp {
    ptx_builder *b;
    int size, parts;
    ptx_val lane;
} warp;

static warp warp_of(ptx_builder *b, const int64_t *spec)
{
    const int size = (int)spec[S_SIZE];
    return (warp){b, size, (size + 31) / 32, ptx_and(b, ptx_tid_x(b), 31)};
}

static bool is_ragged(const warp *w, int part)
{
    return 32 * (part + 1) > w->size;
}

static ptx_val is_inside(const warp *w, int part)
{
    return ptx_setp(w->b, PTX_LT, w->lane, w->size - 32 * part);
}

static vector load_vector(const warp *w, ptx_val from)
{
    ptx_builder *b = w->b;
    vector v = {{{0}}};
    for (int p = 0; p < w->parts; p++) {
        ptx_val lane = is_ragged(w, p) ? ptx_min(b, w->lane, w->size - 32 * p - 1) : w->lane;
        ptx_val x = ptx_ld_global(b, PTX_F32, ptx_at(b, from, lane, 4), 128 * p);
        v.part[p] = is_ragged(w, p) ? ptx_selp(b, x, ptx_f32(b, 0.0f), is_inside(w, p)) : x;
    }
    return v;
}

static void store_vector(const warp *w, ptx_val to, const vector *v)
{
    ptx_builder *b = w->b;
    ptx_val at = ptx_at(b, to, w->lane, 4);
    for (int p = 0; p < w->parts; p++) {
        if (is_ragged(w, p))
            ptx_if(b, is_inside(w, p));
        ptx_st_global(b, at, 128 * p, v->part[p]);
        if (is_ragged(w, p))
            ptx_end_if(b);
    }
}

static ptx_val dot(const warp *w, const vector *x, const vector *y)
{
    ptx_builder *b = w->b;
    ptx_val sum = ptx_mul(b, x->part[0], y->part[0]);
    for (int p = 1; p < w->parts; p++)
        sum = ptx_fma(b, x->part[p], y->part[p], sum);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum = ptx_add(b, sum, ptx_shfl_bfly(b, sum, lanes));
    return sum;
}

/* ---- Rows ---- */

/* Where a warp's row is: within a head of a sequence. */
typedef struct where {
    ptx_val row, element, head, sequence;
} where;

static ptx_val split(ptx_builder *b, ptx_val *i, ptx_val n)
{
    ptx_val whole = ptx_div(b, *i, n), from = *i;
    *i = ptx_sub(b, from, ptx_mul(b, whole, n));
    return whole;
}

static where where_of(ptx_builder *b, ptx_val rows, ptx_val of_head, ptx_val heads)
{
    where at = {.row = ptx_shr(b, ptx_global_index(b), 5)};
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, at.row, rows));
    at.element = at.row;
    at.head = split(b, &at.element, of_head);
    at.sequence = split(b, &at.head, heads);
    return at;
}

/* Pointers that go from token to token. */
static ptx_val begin_at(ptx_builder *b, ptx_val base, ptx_val sequence, ptx_val sequence_bytes, ptx_val index,
                        ptx_val bytes)
{
    return ptx_var(b, ptx_mad_wide(b, index, bytes, ptx_mad_wide(b, sequence, sequence_bytes, base)));
}

static void go_on(ptx_builder *b, ptx_val at, ptx_val bytes)
{
    ptx_assign(b, at, ptx_add(b, at, ptx_cvt(b, PTX_U64, bytes)));
}

/* y and the states lie one after another: [tokens][rows of all sequences] by sequence, then slot 0, the state after the last
 * token, slot 1, that before it ... */
typedef struct result {
    ptx_val y, states, tokens, slots, rows;
} result;

static result result_of(const warp *w, const where *at, ptx_val y, ptx_val rows, ptx_val of_sequence,
                        ptx_val tokens, ptx_val slots)
{
    ptx_builder *b = w->b;
    ptx_val states = ptx_mad_wide(b, rows, ptx_mul(b, tokens, 4), y);
    ptx_val in_sequence = ptx_sub(b, at->row, ptx_mul(b, at->sequence, of_sequence));
    ptx_val first = ptx_mad_wide(b, ptx_mul(b, at->sequence, of_sequence), ptx_mul(b, tokens, 4), y);
    return (result){.y = ptx_var(b, ptx_at(b, first, in_sequence, 4)),
                    .states = ptx_at(b, states, at->row, (uint32_t)w->size * 4),
                    .tokens = tokens,
                    .slots = slots,
                    .rows = rows};
}

static void write_result(const warp *w, const result *r, ptx_val t, ptx_val y, ptx_val token_bytes,
                         const vector *state)
{
    ptx_builder *b = w->b;
    ptx_if(b, ptx_setp(b, PTX_EQ, w->lane, 0));
    ptx_st_global(b, r->y, 0, y);
    ptx_end_if(b);
    go_on(b, r->y, token_bytes);
    ptx_val slot = ptx_sub(b, ptx_sub(b, r->tokens, 1), t);
    ptx_if(b, ptx_setp(b, PTX_LT, slot, r->slots));
    store_vector(w, ptx_mad_wide(b, slot, ptx_mul(b, r->rows, 4 * w->size), r->states), state);
    ptx_end_if(b);
}

static bool launch_rows(run *r, kernel_request *request, const struct ggml_tensor *t, int64_t rows,
                        const void *const *pointers)
{
    enum { WARPS = KERNEL_BLOCK / 32 };
    for (int i = 0; i < GGML_MAX_SRC && t->src[i]; i++)
        if (t->src[i]->nb[3] > UINT32_MAX || (i > 0 && !is_packed_row(t->src[i])))
            return run_declines(r, "inputs of more than 4 GB, or with gaps");
    if (request->spec[S_SIZE] > ROW_MOST || rows > UINT32_MAX / 4 / ROW_MOST || t->type != GGML_TYPE_F32 ||
        t->src[0]->type != GGML_TYPE_F32)
        return run_declines(r, "rows of %lld elements, too many of them, or another type than f32",
                            (long long)request->spec[S_SIZE]);
    request->number[0] = (uint32_t)rows;
    request->blocks = (rows + WARPS - 1) / WARPS;
    return run_kernel(r, request, pointers);
}

/* ---- SSM_SCAN: state = state e^(A d) + B x d, y = state C, where d = softplus(dt) ---- */

static void write_scan(ptx_builder *b, const int64_t *spec)
{
    const warp w = warp_of(b, spec);
    const bool has_vector = spec[S_HAS_VECTOR] != 0;
    ptx_val y = ptx_param_ptr(b, "y", 4), s = ptx_param_ptr(b, "s", 4), x = ptx_param_ptr(b, "x", 4),
            dt = ptx_param_ptr(b, "dt", 4), a = ptx_param_ptr(b, "a", 4), bs = ptx_param_ptr(b, "b", 4),
            cs = ptx_param_ptr(b, "c", 4), ids = ptx_param_ptr(b, "ids", 4);
    ptx_val rows = ptx_param(b, PTX_U32, "rows"), of_head = ptx_param(b, PTX_U32, "of_head"),
            heads = ptx_param(b, PTX_U32, "heads"), tokens = ptx_param(b, PTX_U32, "tokens"),
            slots = ptx_param(b, PTX_U32, "slots"), of_group = ptx_param(b, PTX_U32, "of_group"),
            s_sequence = ptx_param(b, PTX_U32, "s_sequence"), x_token = ptx_param(b, PTX_U32, "x_token"),
            x_sequence = ptx_param(b, PTX_U32, "x_sequence"), dt_token = ptx_param(b, PTX_U32, "dt_token"),
            dt_sequence = ptx_param(b, PTX_U32, "dt_sequence"), b_token = ptx_param(b, PTX_U32, "b_token"),
            b_sequence = ptx_param(b, PTX_U32, "b_sequence"), c_token = ptx_param(b, PTX_U32, "c_token"),
            c_sequence = ptx_param(b, PTX_U32, "c_sequence");
    const where at = where_of(b, rows, of_head, heads);
    ptx_val of_sequence = ptx_mul(b, of_head, heads), in_sequence = ptx_mad(b, at.head, of_head, at.element);
    ptx_val four = ptx_u32(b, 4), row_bytes = ptx_u32(b, (uint32_t)w.size * 4);
    ptx_val group = ptx_div(b, at.head, of_group);
    ptx_val id = ptx_ld_global(b, PTX_U32, ptx_at(b, ids, at.sequence, 4), 0);
    const result r = result_of(&w, &at, y, rows, of_sequence, tokens, slots);

    ptx_val x_at = begin_at(b, x, at.sequence, x_sequence, in_sequence, four),
            dt_at = begin_at(b, dt, at.sequence, dt_sequence, at.head, four),
            b_at = begin_at(b, bs, at.sequence, b_sequence, group, row_bytes),
            c_at = begin_at(b, cs, at.sequence, c_sequence, group, row_bytes);
    vector state =
        load_vector(&w, ptx_mad_wide(b, in_sequence, row_bytes, ptx_mad_wide(b, id, s_sequence, s)));
    vector rates = {{{0}}};
    ptx_val rate = rows;
    if (has_vector)
        rates = load_vector(&w, ptx_mad_wide(b, at.head, row_bytes, a));
    else
        rate = ptx_ld_global(b, PTX_F32, ptx_at(b, a, at.head, 4), 0);
    for (int p = 0; p < w.parts; p++)
        state.part[p] = ptx_var(b, state.part[p]);

    ptx_val t = ptx_for(b, ptx_u32(b, 0), tokens, ptx_u32(b, 1));
    ptx_val step = ptx_ld_global(b, PTX_F32, dt_at, 0);
    step = emit_body(b, body_of_unary(GGML_UNARY_OP_SOFTPLUS), step, step, NULL);
    ptx_val input = ptx_mul(b, ptx_ld_global(b, PTX_F32, x_at, 0), step);
    ptx_val decay = has_vector ? rows : emit_exp(b, ptx_mul(b, step, rate));
    const vector from = load_vector(&w, b_at), to = load_vector(&w, c_at);
    for (int p = 0; p < w.parts; p++) {
        ptx_val kept = has_vector ? emit_exp(b, ptx_mul(b, step, rates.part[p])) : decay;
        ptx_val added = ptx_mul(b, from.part[p], input);
        ptx_assign(b, state.part[p], ptx_add(b, ptx_mul(b, state.part[p], kept), added));
    }
    ptx_val sum = dot(&w, &state, &to);
    go_on(b, x_at, x_token);
    go_on(b, dt_at, dt_token);
    go_on(b, b_at, b_token);
    go_on(b, c_at, c_token);
    write_result(&w, &r, t, sum, ptx_mul(b, of_sequence, 4), &state);
    ptx_end_for(b);
}

bool op_scan(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *s = t->src[0], *x = t->src[1], *dt = t->src[2], *a = t->src[3], *b = t->src[4],
                             *c = t->src[5], *ids = t->src[6];
    const int64_t size = s->ne[0], of_head = s->ne[1], heads = x->ne[1], sequences = x->ne[3];
    kernel_request request = {.write = write_scan,
                              .spec = {[S_SIZE] = size, [S_HAS_VECTOR] = a->ne[0] != 1},
                              .number = {0, (uint32_t)of_head, (uint32_t)heads, (uint32_t)x->ne[2],
                                         (uint32_t)t->op_params[0], (uint32_t)(heads / b->ne[1]),
                                         (uint32_t)s->nb[3], (uint32_t)x->nb[2], (uint32_t)x->nb[3],
                                         (uint32_t)dt->nb[1], (uint32_t)dt->nb[2], (uint32_t)b->nb[2],
                                         (uint32_t)b->nb[3], (uint32_t)c->nb[2], (uint32_t)c->nb[3]},
                              .numbers = 15,
                              .pointers = 8};
    if (!ggml_is_contiguous(s) || x->nb[1] != (size_t)of_head * 4 || b->nb[1] != (size_t)size * 4 ||
        c->nb[1] != (size_t)size * 4)
        return run_declines(r, "heads or groups with gaps");
    return launch_rows(
        r, &request, t, of_head * heads * sequences,
        (const void *const[]){t->data, s->data, x->data, dt->data, a->data, b->data, c->data, ids->data});
}

/* ---- GATED_DELTA_NET: each row forgets by e^g, and learns v beta - (state k) beta in the direction of k; y = state q ---- */

static void write_delta(ptx_builder *b, const int64_t *spec)
{
    const warp w = warp_of(b, spec);
    const bool has_vector = spec[S_HAS_VECTOR] != 0;
    const float scale = 1.0f / sqrtf((float)w.size);
    ptx_val y = ptx_param_ptr(b, "y", 4), s = ptx_param_ptr(b, "s", 4), q = ptx_param_ptr(b, "q", 4),
            k = ptx_param_ptr(b, "k", 4), v = ptx_param_ptr(b, "v", 4), g = ptx_param_ptr(b, "g", 4),
            beta = ptx_param_ptr(b, "beta", 4);
    ptx_val rows = ptx_param(b, PTX_U32, "rows"), heads = ptx_param(b, PTX_U32, "heads"),
            tokens = ptx_param(b, PTX_U32, "tokens"), slots = ptx_param(b, PTX_U32, "slots"),
            q_heads = ptx_param(b, PTX_U32, "q_heads"), k_heads = ptx_param(b, PTX_U32, "k_heads"),
            q_every = ptx_param(b, PTX_U32, "q_every"), k_every = ptx_param(b, PTX_U32, "k_every");
    static const char *const names[5][3] = {{"q_head", "q_token", "q_sequence"},
                                            {"k_head", "k_token", "k_sequence"},
                                            {"v_head", "v_token", "v_sequence"},
                                            {"g_head", "g_token", "g_sequence"},
                                            {"beta_head", "beta_token", "beta_sequence"}};
    ptx_val stride[5][3];
    for (int i = 0; i < 5; i++)
        for (int d = 0; d < 3; d++)
            stride[i][d] = ptx_param(b, PTX_U32, names[i][d]);
    const where at = where_of(b, rows, ptx_u32(b, (uint32_t)w.size), heads);
    ptx_val of_sequence = ptx_mul(b, heads, w.size);
    const result r = result_of(&w, &at, y, rows, of_sequence, tokens, slots);

    const ptx_val base[5] = {q, k, v, g, beta};
    ptx_val next[5];
    for (int i = 0; i < 5; i++) {
        ptx_val head = i == 0   ? ptx_rem(b, at.head, q_heads)
                       : i == 1 ? ptx_rem(b, at.head, k_heads)
                                : at.head;
        ptx_val sequence = i == 0   ? ptx_div(b, at.sequence, q_every)
                           : i == 1 ? ptx_div(b, at.sequence, k_every)
                                    : at.sequence;
        next[i] = begin_at(b, base[i], sequence, stride[i][2], head, stride[i][0]);
    }
    vector state = load_vector(&w, ptx_mad_wide(b, at.row, ptx_u32(b, (uint32_t)w.size * 4), s));
    for (int p = 0; p < w.parts; p++)
        state.part[p] = ptx_var(b, state.part[p]);

    ptx_val t = ptx_for(b, ptx_u32(b, 0), tokens, ptx_u32(b, 1));
    const vector query = load_vector(&w, next[0]), key = load_vector(&w, next[1]);
    ptx_val value = ptx_ld_global(b, PTX_F32, ptx_at(b, next[2], at.element, 4), 0);
    ptx_val rate = ptx_ld_global(b, PTX_F32, next[4], 0);
    vector gate = {{{0}}};
    if (has_vector)
        gate = load_vector(&w, next[3]);
    else
        gate.part[0] = ptx_ld_global(b, PTX_F32, next[3], 0);
    ptx_val kept = emit_exp(b, gate.part[0]);
    for (int p = 0; p < w.parts; p++) {
        if (has_vector && p > 0)
            kept = emit_exp(b, gate.part[p]);
        ptx_assign(b, state.part[p], ptx_mul(b, state.part[p], kept));
    }
    ptx_val delta = ptx_mul(b, ptx_sub(b, value, dot(&w, &state, &key)), rate);
    for (int p = 0; p < w.parts; p++)
        ptx_assign(b, state.part[p], ptx_fma(b, key.part[p], delta, state.part[p]));
    ptx_val sum = ptx_mul(b, dot(&w, &state, &query), scale);
    for (int i = 0; i < 5; i++)
        go_on(b, next[i], stride[i][1]);
    write_result(&w, &r, t, sum, ptx_mul(b, of_sequence, 4), &state);
    ptx_end_for(b);
}

bool op_delta(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *q = t->src[0], *k = t->src[1], *v = t->src[2], *g = t->src[3], *s = t->src[5];
    const int64_t size = v->ne[0], heads = v->ne[1], sequences = v->ne[3];
    kernel_request request = {.write = write_delta,
                              .spec = {[S_SIZE] = size, [S_HAS_VECTOR] = g->ne[0] != 1},
                              .number = {0, (uint32_t)heads, (uint32_t)v->ne[2], (uint32_t)t->op_params[0],
                                         (uint32_t)q->ne[1], (uint32_t)k->ne[1],
                                         (uint32_t)(sequences / q->ne[3]), (uint32_t)(sequences / k->ne[3])},
                              .numbers = 8,
                              .pointers = 7};
    for (int i = 0; i < 5; i++)
        for (int d = 1; d < GGML_MAX_DIMS; d++)
            request.number[request.numbers++] = (uint32_t)t->src[i]->nb[d];
    if (!ggml_is_contiguous(s))
        return run_declines(r, "states with gaps");
    return launch_rows(
        r, &request, t, size * heads * sequences,
        (const void *const[]){t->data, s->data, q->data, k->data, v->data, g->data, t->src[4]->data});
}
