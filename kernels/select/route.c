/* Routing: the experts of each token, and their weights. A token is a warp's, which has the scores in registers: chunk c of 8
 * experts is lane c mod 32's, as in the long sum of softmax. Each slot takes two reductions over the warp: the best key,
 * then the lowest expert that has it. */
#include "kernels/select/select.h"

#include "kernels/functions.h"

enum {
    ROUND = 32 * SELECT_CHUNK, /* experts that a warp has at a time */
    ROUNDS_MAX = ROUTE_EXPERTS_MAX / ROUND,
    PAD = 4 /* words between the keys of neighbouring groups, against bank conflicts */
};

/* What a warp knows of its token. Keys are u32 in the order of selection: KEY_NONE is no expert or one that is out,
 * KEY_NAN a NaN, the others are numbers. */
enum { KEY_NONE = 0, KEY_NAN = 1 };
typedef struct token {
    const kernel_spec *spec;
    const kernel_args *args;
    unsigned rounds;
    ptx_val row, lane;
    ptx_val number[ROUNDS_MAX]; /* u32: the first expert of the lane's chunk */
    ptx_val score[ROUNDS_MAX][SELECT_CHUNK];
    ptx_val key[ROUNDS_MAX][SELECT_CHUNK]; /* u32 variables */
} token;

/* ---- Keys ---- */

/* The addition makes every NaN 7FFFFFFF. A selection is never -0: scores are not, and a sum is only if both terms are. */
static ptx_val key_of_number(ptx_builder *b, ptx_val x)
{
    ptx_val bits = ptx_as(b, PTX_U32, ptx_add(b, x, ptx_f32(b, 0)));
    ptx_val sign = ptx_as(b, PTX_U32, ptx_shr(b, ptx_as(b, PTX_S32, bits), 31));
    return ptx_add(b, ptx_xor(b, bits, ptx_or(b, sign, 0x80000000u)), 1 + KEY_NAN);
}

static ptx_val number_of_key(ptx_builder *b, ptx_val key)
{
    ptx_val ordered = ptx_sub(b, key, 1 + KEY_NAN);
    ptx_val sign = ptx_as(b, PTX_U32, ptx_shr(b, ptx_as(b, PTX_S32, ordered), 31));
    return ptx_as(b, PTX_F32, ptx_xor(b, ordered, ptx_or(b, ptx_not(b, sign), 0x80000000u)));
}

/* The largest or the smallest u32 of the warp. */
static ptx_val of_warp(ptx_builder *b, ptx_redux_op op, ptx_val x)
{
    if (ptx_target(b)->number >= 80)
        return ptx_redux(b, op, x);
    for (unsigned distance = 16; distance > 0; distance /= 2) {
        ptx_val other = ptx_shfl_bfly(b, x, distance);
        x = op == PTX_REDUX_MAX ? ptx_max(b, x, other) : ptx_min(b, x, other);
    }
    return x;
}

/* ---- Scores ---- */

static bool is_ragged(const token *t)
{
    return t->spec->route.experts % ROUND != 0;
}

static ptx_val exists(ptx_builder *b, const token *t, unsigned round, unsigned i)
{
    ptx_val expert = i ? ptx_add(b, t->number[round], i) : t->number[round];
    return ptx_setp(b, PTX_LT, expert, (uint32_t)t->spec->route.experts);
}

static void load_rows(ptx_builder *b, const token *t, qdnnDataType_t type, ptx_val row, float fill,
                      ptx_val x[ROUNDS_MAX][SELECT_CHUNK])
{
    ptx_val count = ptx_u32(b, (uint32_t)t->spec->route.experts), aligned = emit_aligned(b, row, LOAD_BYTES);
    for (unsigned r = 0; r < t->rounds; r++)
        select_chunk(b, type, row, t->number[r], count, aligned, fill, x[r]);
}

/* Logits become their softmax; experts that do not exist come in as -Inf. */
static void softmax(ptx_builder *b, token *t)
{
    ptx_val largest = ptx_var(b, ptx_f32(b, SELECT_NONE)), sum = ptx_f32(b, 0), nan = {0};
    for (unsigned r = 0; r < t->rounds; r++)
        for (unsigned i = 0; i < SELECT_CHUNK; i++) {
            ptx_val x = t->score[r][i];
            nan = r || i ? ptx_setp_or(b, PTX_NAN, x, x, nan) : ptx_setp(b, PTX_NAN, x, x);
            ptx_assign(b, largest, ptx_max(b, largest, x));
        }
    for (unsigned distance = 16; distance > 0; distance /= 2)
        ptx_assign(b, largest, ptx_max(b, largest, ptx_shfl_bfly(b, largest, distance)));
    ptx_val bad = ptx_setp_or(b, PTX_EQ, largest, ptx_f32(b, INFINITY), ptx_vote_any(b, nan));
    ptx_val none = ptx_setp(b, PTX_EQ, largest, ptx_f32(b, SELECT_NONE));
    for (unsigned r = 0; r < t->rounds; r++)
        for (unsigned i = 0; i < SELECT_CHUNK; i++) {
            t->score[r][i] = emit_exp(b, ptx_sub(b, t->score[r][i], largest));
            sum = ptx_add(b, sum, t->score[r][i]);
        }
    sum = select_tree(b, sum);
    for (unsigned r = 0; r < t->rounds; r++)
        for (unsigned i = 0; i < SELECT_CHUNK; i++) {
            ptx_val share = ptx_selp(b, ptx_f32(b, 0), ptx_div(b, t->score[r][i], sum), none);
            t->score[r][i] = ptx_selp(b, ptx_bits(b, PTX_F32, 0x7FFFFFFF), share, bad);
        }
}

static void score(ptx_builder *b, token *t)
{
    ptx_val first = ptx_mul(b, t->row, t->spec->route.experts), bias[ROUNDS_MAX][SELECT_CHUNK];
    ptx_val logits = ptx_at(b, t->args->operand[QDNN_OPERAND_LOGITS], first, element_bytes(t->spec->data));
    load_rows(b, t, t->spec->data, logits, SELECT_NONE, t->score);
    if (t->spec->route.bias)
        load_rows(b, t, QDNN_DATA_F32, t->args->operand[QDNN_OPERAND_EXPERT_BIAS], 0, bias);
    if (t->spec->route.scores == QDNN_SCORES_SOFTMAX)
        softmax(b, t);
    for (unsigned r = 0; r < t->rounds; r++)
        for (unsigned i = 0; i < SELECT_CHUNK; i++) {
            if (t->spec->route.scores == QDNN_SCORES_SIGMOID)
                t->score[r][i] = emit_sigmoid(b, t->score[r][i]);
            ptx_val selection = t->spec->route.bias ? ptx_add(b, t->score[r][i], bias[r][i]) : t->score[r][i];
            ptx_val key = key_of_number(b, selection);
            if (is_ragged(t) && r + 1 == t->rounds)
                key = ptx_selp(b, key, ptx_u32(b, KEY_NONE), exists(b, t, r, i));
            t->key[r][i] = ptx_var(b, key);
        }
}

/* ---- Groups of experts ---- */

/* Lanes that share a group, and how its keys lie in shared memory. Whole chunks keep their alignment if groups are
 * made of them. */
typedef struct grouping {
    unsigned count, size, lanes, pad;
} grouping;

static grouping grouping_of(const kernel_spec *spec)
{
    grouping g = {.count = (unsigned)spec->route.groups, .lanes = 1};
    g.size = (unsigned)spec->route.experts / g.count;
    while (2 * g.lanes * g.count <= 32)
        g.lanes *= 2;
    g.pad = g.size % SELECT_CHUNK == 0 ? PAD : 0;
    return g;
}

static unsigned grouping_words(const grouping *g)
{
    return (g->count * (g->size + g->pad) + SELECT_CHUNK - 1) / SELECT_CHUNK * SELECT_CHUNK;
}

/* The group of an expert, u32. */
static ptx_val group_of(ptx_builder *b, const grouping *g, ptx_val expert)
{
    return ptx_div(b, expert, g->size);
}

static void share_keys(ptx_builder *b, const token *t, const grouping *g, ptx_val keys)
{
    for (unsigned r = 0; r < t->rounds; r++) {
        ptx_val place = t->number[r];
        if (g->pad)
            place = ptx_add(b, place, ptx_mul(b, group_of(b, g, place), g->pad));
        ptx_if(b, exists(b, t, r, 0));
        for (unsigned half = 0; half < 2; half++)
            ptx_st_vec(b, PTX_SHARED, 0, ptx_at(b, keys, place, 4), (int)(16 * half), t->key[r] + 4 * half,
                       4);
        ptx_end_if(b);
    }
    ptx_syncwarp(b);
}

/* The key of the lane's group; KEY_NONE for lanes without one. */
static ptx_val group_key(ptx_builder *b, const token *t, const grouping *g, ptx_val keys)
{
    ptx_val group = ptx_shr(b, t->lane, (unsigned)__builtin_ctz(g->lanes));
    ptx_val best = ptx_var(b, ptx_u32(b, KEY_NONE)), second = ptx_var(b, ptx_u32(b, KEY_NONE));
    ptx_val has = ptx_setp(b, PTX_LT, group, g->count), first = ptx_mul(b, group, g->size + g->pad);
    ptx_val end = ptx_selp(b, ptx_u32(b, g->size), ptx_u32(b, 0), has);
    ptx_val i = ptx_for(b, ptx_and(b, t->lane, g->lanes - 1), end, g->lanes);
    ptx_val key = ptx_ld_shared(b, PTX_U32, ptx_at(b, keys, ptx_add(b, first, i), 4), 0);
    ptx_assign(b, second, ptx_max(b, second, ptx_min(b, best, key)));
    ptx_assign(b, best, ptx_max(b, best, key));
    ptx_end_for(b);
    for (unsigned distance = g->lanes / 2; distance > 0; distance /= 2) {
        ptx_val other = ptx_shfl_bfly(b, best, distance), its = ptx_shfl_bfly(b, second, distance);
        ptx_assign(b, second, ptx_max(b, ptx_min(b, best, other), ptx_max(b, second, its)));
        ptx_assign(b, best, ptx_max(b, best, other));
    }
    if (t->spec->route.group_score == QDNN_GROUP_SCORE_LARGEST || g->size == 1)
        return best;
    ptx_val sum = ptx_add(b, number_of_key(b, best), number_of_key(b, second));
    return ptx_selp(b, key_of_number(b, sum), ptx_u32(b, KEY_NONE), has);
}

/* Experts of groups that are not among the best get no key. A group stays if fewer than so many come before it. */
static void keep_groups(ptx_builder *b, const token *t)
{
    const grouping g = grouping_of(t->spec);
    const unsigned words = grouping_words(&g);
    ptx_val shared = ptx_shared(b, "keys", PTX_U32, ROUTE_WARPS * words, 16);
    ptx_val keys = ptx_at(b, shared, ptx_mul(b, ptx_shr(b, ptx_tid_x(b), 5), words), 4);
    share_keys(b, t, &g, keys);
    ptx_val mine = group_key(b, t, &g, keys), before = ptx_var(b, ptx_u32(b, 0));
    for (unsigned other = 0; other < g.count; other++) {
        ptx_val its = ptx_shfl_idx(b, mine, other * g.lanes);
        ptx_val earlier = ptx_setp(b, PTX_GT, t->lane, other * g.lanes);
        ptx_val first = ptx_setp_or(b, PTX_GT, its, mine, ptx_setp_and(b, PTX_EQ, its, mine, earlier));
        ptx_assign(b, before, ptx_add(b, before, ptx_selp(b, ptx_u32(b, 1), ptx_u32(b, 0), first)));
    }
    ptx_val kept = ptx_ballot(b, ptx_setp(b, PTX_LT, before, (uint32_t)t->spec->route.kept));
    const unsigned step = g.size % SELECT_CHUNK == 0 ? SELECT_CHUNK : 1;
    for (unsigned r = 0; r < t->rounds; r++)
        for (unsigned i = 0; i < SELECT_CHUNK; i += step) {
            ptx_val expert = ptx_min(b, ptx_add(b, t->number[r], i), (uint32_t)t->spec->route.experts - 1);
            ptx_val bit = ptx_shr(b, kept, ptx_mul(b, group_of(b, &g, expert), g.lanes));
            ptx_val stays = ptx_setp(b, PTX_NE, ptx_and(b, bit, 1), 0);
            for (unsigned k = i; k < i + step; k++)
                ptx_assign(b, t->key[r][k], ptx_selp(b, t->key[r][k], ptx_u32(b, KEY_NONE), stays));
        }
}

/* ---- Slots ---- */

static ptx_val best_key(ptx_builder *b, const token *t)
{
    ptx_val best = t->key[0][0];
    for (unsigned n = 1; n < t->rounds * SELECT_CHUNK; n++)
        best = ptx_max(b, best, t->key[n / SELECT_CHUNK][n % SELECT_CHUNK]);
    return of_warp(b, PTX_REDUX_MAX, best);
}

static ptx_val expert_with(ptx_builder *b, const token *t, ptx_val key)
{
    ptx_val none = ptx_u32(b, UINT32_MAX), found = none;
    for (unsigned r = 0; r < t->rounds; r++)
        for (unsigned i = 0; i < SELECT_CHUNK; i++) {
            ptx_val has = ptx_setp(b, PTX_EQ, t->key[r][i], key);
            found = ptx_min(b, found, ptx_selp(b, ptx_add(b, t->number[r], i), none, has));
        }
    return of_warp(b, PTX_REDUX_MIN, found);
}

/* Takes an expert from the candidates; its score, in all lanes. */
static ptx_val take(ptx_builder *b, const token *t, ptx_val expert)
{
    ptx_val score = ptx_var(b, ptx_f32(b, 0));
    for (unsigned r = 0; r < t->rounds; r++)
        for (unsigned i = 0; i < SELECT_CHUNK; i++) {
            ptx_val is = ptx_setp(b, PTX_EQ, expert, ptx_add(b, t->number[r], i));
            ptx_assign(b, t->key[r][i], ptx_selp(b, ptx_u32(b, KEY_NONE), t->key[r][i], is));
            ptx_assign(b, score, ptx_selp(b, t->score[r][i], score, is));
        }
    return ptx_shfl_idx(b, score, ptx_and(b, ptx_shr(b, expert, 3), 31));
}
_Static_assert(SELECT_CHUNK == 1 << 3, "the lane of an expert is computed by a shift");

/* Lane j gets slot j. The sum begins at +0, which changes nothing: scores are not -0. */
static void choose(ptx_builder *b, const token *t)
{
    const kernel_routing *route = &t->spec->route;
    ptx_val sum = ptx_var(b, ptx_f32(b, 0)), expert = ptx_var(b, ptx_u32(b, 0)),
            weight = ptx_var(b, ptx_f32(b, 0));
    ptx_val slot = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, (uint32_t)route->slots), ptx_u32(b, 1));
    ptx_val found = expert_with(b, t, best_key(b, t)), score = take(b, t, found);
    ptx_val mine = ptx_setp(b, PTX_EQ, slot, t->lane);
    ptx_assign(b, sum, ptx_add(b, sum, score));
    ptx_assign(b, expert, ptx_selp(b, found, expert, mine));
    ptx_assign(b, weight, ptx_selp(b, score, weight, mine));
    ptx_end_for(b);
    ptx_val share = weight;
    if (route->renormalize)
        share = ptx_div(b, weight, ptx_add(b, sum, t->args->number[NUMBER_EPS]));
    share = ptx_mul(b, share, t->args->number[NUMBER_FACTOR]);
    ptx_val place = ptx_add(b, ptx_mul(b, t->row, route->slots), ptx_cvt(b, PTX_U64, t->lane));
    ptx_if(b, ptx_setp(b, PTX_LT, t->lane, (uint32_t)route->slots));
    ptx_st_global(b, ptx_at(b, t->args->operand[QDNN_OPERAND_INDEX], place, 4), 0, expert);
    ptx_st_global(b, ptx_at(b, t->args->operand[QDNN_OPERAND_WEIGHT_OUT], place, 4), 0, share);
    ptx_end_if(b);
}
_Static_assert(ROUTE_SLOTS_MAX <= 32, "a lane has a slot");

void emit_route(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    token t = {.spec = spec, .args = &args, .lane = ptx_laneid(b)};
    t.rounds = (unsigned)ceil_div(spec->route.experts, ROUND);
    ptx_val warp = ptx_cvt(b, PTX_U64, ptx_shr(b, ptx_tid_x(b), 5));
    t.row = ptx_add(b, ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, ROUTE_WARPS)), warp);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, t.row, args.number[NUMBER_M]));
    for (unsigned r = 0; r < t.rounds; r++)
        t.number[r] = ptx_add(b, ptx_mul(b, t.lane, SELECT_CHUNK), r * ROUND);
    score(b, &t);
    if (spec->route.groups > 1)
        keep_groups(b, &t);
    choose(b, &t);
}

kernel_geometry route_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = 32 * ROUTE_WARPS, .grid = {rule_parts(NUMBER_M, ROUTE_WARPS)}};
}
