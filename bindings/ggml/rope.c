/* ROPE: cosines and sines of the tokens of a graph, made on the device as ggml's formula has them, and the library's rope, which
 * takes them as tables with one position per token. */
#include <math.h>
#include <string.h>

#include "bodies.h"
#include "engine.h"

/* The parameters of the operation. */
typedef struct rope {
    int dims, mode, original_positions, first, sections[4];
    float base, scale, extrapolation, attention, beta_fast, beta_slow;
    bool is_back;
} rope;

static rope rope_of(const struct ggml_tensor *t)
{
    const int32_t *p = t->op_params;
    rope o = {.dims = p[1], .mode = p[2], .original_positions = p[4], .first = p[15]};
    float *const floats[] = {&o.base, &o.scale, &o.extrapolation, &o.attention, &o.beta_fast, &o.beta_slow};
    for (int i = 0; i < 6; i++)
        memcpy(floats[i], &p[5 + i], sizeof(float));
    memcpy(o.sections, &p[11], sizeof o.sections);
    o.is_back = t->op == GGML_OP_ROPE_BACK;
    return o;
}

static bool is_vision(const rope *o)
{
    return o->mode == GGML_ROPE_TYPE_VISION;
}

static int pairs_of(const rope *o)
{
    return is_vision(o) ? o->dims : o->dims / 2;
}

/* ---- What pairs have, for all tokens ---- */

/* Which of a token's positions a pair is turned by, and how often the base's power is taken: with several positions, pairs belong
 * to sections, and those of vision models count anew in each. */
static void section_of(const rope *o, int pair, int *section, int *power)
{
    const int *size = o->sections, all = size[0] + size[1] + size[2] + size[3];
    *section = 0;
    *power = pair;
    if (!(o->mode & GGML_ROPE_TYPE_MROPE))
        return;
    const int place = pair % all;
    if (o->mode == GGML_ROPE_TYPE_IMROPE) {
        *section = place % 3;
        if (place >= 3 * size[*section])
            *section = 3;
        return;
    }
    int begin = 0;
    while (*section < 3 && place >= begin + size[*section])
        begin += size[(*section)++];
    if (is_vision(o))
        *power = place - begin;
}

/* The pair at which angles turn `rotations` times within the original positions. */
static float pair_of_rotations(const rope *o, float rotations)
{
    const float pi = 3.14159265358979323846f;
    return (float)o->dims * logf((float)o->original_positions / (rotations * 2 * pi)) / (2 * logf(o->base));
}

/* YaRN: how far a pair keeps the angles of the original positions, 0 to 1. */
static float kept_of(const rope *o, int pair)
{
    if (o->extrapolation == 0)
        return 0;
    const float low = fmaxf(0, floorf(pair_of_rotations(o, o->beta_fast))),
                high = fminf((float)o->dims - 1, ceilf(pair_of_rotations(o, o->beta_slow)));
    const float ramp = ((float)pair - low) / fmaxf(0.001f, high - low);
    return (1 - fminf(1, fmaxf(0, ramp))) * o->extrapolation;
}

static float factor_of(const rope *o)
{
    return o->extrapolation == 0 ? o->attention : o->attention * (1 + 0.1f * logf(1 / o->scale));
}

enum { PAIRS_MAX = 1024, PAIR_WORDS = 3 };

/* [pairs]: section, power of the base, kept. */
static const void *pair_table(run *r, const rope *o)
{
    static uint32_t table[PAIRS_MAX * PAIR_WORDS]; /* behind the engine's lock */
    const double ratio = powf(o->base, -2.0f / (float)o->dims);
    for (int i = 0; i < pairs_of(o); i++) {
        int section, power;
        section_of(o, i, &section, &power);
        table[PAIR_WORDS * i] = (uint32_t)section;
        table[PAIR_WORDS * i + 1] = float_bits((float)pow(ratio, power));
        table[PAIR_WORDS * i + 2] = float_bits(kept_of(o, i));
    }
    return run_constant(r, table, (size_t)pairs_of(o) * PAIR_WORDS * sizeof table[0]);
}

/* ---- Cosines and sines: a thread computes those of one pair of one token ---- */

enum { S_DIVISORS };

static void write_angles(ptx_builder *b, const int64_t *spec)
{
    ptx_val cos_at = ptx_param_ptr(b, "cosines", 4), sin_at = ptx_param_ptr(b, "sines", 4),
            positions = ptx_param_ptr(b, "positions", 4), table = ptx_param_ptr(b, "table", 4),
            divisors = {0};
    if (spec[S_DIVISORS])
        divisors = ptx_param_ptr(b, "divisors", 4);
    ptx_val n = ptx_param(b, PTX_U32, "n"), pairs = ptx_param(b, PTX_U32, "pairs"),
            tokens = ptx_param(b, PTX_U32, "tokens"), scale = ptx_param(b, PTX_F32, "scale"),
            cos_factor = ptx_param(b, PTX_F32, "cos_factor"),
            sin_factor = ptx_param(b, PTX_F32, "sin_factor");
    ptx_val i = ptx_global_index(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, n));
    ptx_val token = ptx_div(b, i, pairs), pair = ptx_sub(b, i, ptx_mul(b, token, pairs));
    ptx_val of_pair = ptx_at(b, table, pair, 4 * PAIR_WORDS);
    ptx_val section = ptx_ld_global(b, PTX_U32, of_pair, 0), power = ptx_ld_global(b, PTX_F32, of_pair, 4),
            kept = ptx_ld_global(b, PTX_F32, of_pair, 8);
    ptx_val position =
        ptx_ld_global(b, PTX_S32, ptx_at(b, positions, ptx_mad(b, section, tokens, token), 4), 0);
    ptx_val angle = ptx_mul(b, ptx_cvt_rn(b, PTX_F32, position), power);
    if (spec[S_DIVISORS])
        angle = ptx_div(b, angle, ptx_ld_global(b, PTX_F32, ptx_at(b, divisors, pair, 4), 0));
    ptx_val scaled = ptx_mul(b, ptx_mul(b, angle, scale), ptx_sub(b, ptx_f32(b, 1.0f), kept));
    angle = ptx_add(b, scaled, ptx_mul(b, angle, kept));
    ptx_val cosine, sine;
    emit_cos_sin(b, angle, &cosine, &sine);
    ptx_st_global(b, ptx_at(b, cos_at, i, 4), 0, ptx_mul(b, cosine, cos_factor));
    ptx_st_global(b, ptx_at(b, sin_at, i, 4), 0, ptx_mul(b, sine, sin_factor));
}

/* The layers of a model ask for the same angles: those of the last operation are kept as long as the graph runs. */
typedef struct angles {
    uint64_t graph;
    const struct ggml_tensor *positions, *divisors;
    int32_t parameters[16];
} angles;

static bool are_there(const run *r, const struct ggml_tensor *t, angles *last)
{
    angles now = {.graph = r->graph, .positions = t->src[1], .divisors = t->src[2]};
    memcpy(now.parameters, t->op_params, sizeof now.parameters);
    now.parameters[0] = t->op;
    const bool same = r->graph && memcmp(&now, last, sizeof now) == 0;
    *last = now;
    return same;
}

static bool make_angles(run *r, const struct ggml_tensor *t, const rope *o, void *cosines, void *sines)
{
    static angles last; /* behind the engine's lock */
    const struct ggml_tensor *positions = t->src[1], *divisors = t->src[2];
    const int64_t tokens = t->ne[2], n = tokens * pairs_of(o);
    const float factor = factor_of(o);
    if (!r->dry && are_there(r, t, &last))
        return true;
    if (n > UINT32_MAX - KERNEL_BLOCK)
        return run_declines(r, "too many angles");
    kernel_request request = {.write = write_angles,
                              .spec = {[S_DIVISORS] = divisors != NULL},
                              .number = {(uint32_t)n, (uint32_t)pairs_of(o), (uint32_t)tokens,
                                         float_bits(o->scale), float_bits(factor),
                                         float_bits(o->is_back ? -factor : factor)},
                              .numbers = 6,
                              .pointers = divisors ? 5 : 4,
                              .blocks = (n + KERNEL_BLOCK - 1) / KERNEL_BLOCK};
    const void *table = r->dry ? NULL : pair_table(r, o);
    if (!table && !r->dry)
        return run_declines(r, "no device memory for the table of pairs");
    return run_kernel(
        r, &request,
        (const void *const[]){cosines, sines, positions->data, table, divisors ? divisors->data : NULL});
}

/* ---- Rotation ---- */

enum { R_X, R_TOKENS, R_HEADS, R_SIZE, R_X_STRIDE, R_Y_STRIDE, R_ROTARY, R_FIRST, R_PAIRS };

static qdnnStatus_t make_rope(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const qdnnRope_t what = {.size = sizeof what,
                             .rotary = number[R_ROTARY],
                             .first = number[R_FIRST],
                             .positions = number[R_TOKENS],
                             .pairs = (qdnnRopePairs_t)number[R_PAIRS]};
    const int64_t dims[] = {number[R_TOKENS], number[R_HEADS], number[R_SIZE]};
    qdnnTensorDescriptor_t x = shapes_add(&s, (qdnnDataType_t)number[R_X], 3, dims,
                                          (int64_t[]){number[R_X_STRIDE], number[R_SIZE], 1}),
                           y = shapes_add(&s, (qdnnDataType_t)number[R_X], 3, dims,
                                          (int64_t[]){number[R_Y_STRIDE], number[R_SIZE], 1});
    return shapes_free(&s, s.status ? s.status : qdnnCreateRopePlan(handle, &what, x, y, NULL, NULL, plan));
}

/* Heads that follow one another: a place that rope takes as it is. */
static bool heads_are_packed(const place *p)
{
    const size_t bytes = ggml_type_size(p->type), head = (size_t)p->ne[0] * bytes;
    return p->nb[0] == bytes && (p->ne[1] == 1 || p->nb[1] == head) && p->nb[2] % bytes == 0 &&
           (p->ne[2] == 1 || p->nb[2] >= head * (size_t)p->ne[1]);
}

static bool rotate(run *r, const rope *o, const place *x, const place *y, const void *cosines,
                   const void *sines)
{
    const size_t bytes = ggml_type_size(x->type);
    const int64_t tokens = x->ne[2], planned = planned_rows(tokens), packed = x->ne[0] * x->ne[1];
    plan_request request = {
        .make = make_rope,
        .number = {[R_TOKENS] = planned,
                   [R_HEADS] = x->ne[1],
                   [R_SIZE] = x->ne[0],
                   [R_X_STRIDE] = tokens == 1 ? packed : (int64_t)(x->nb[2] / bytes),
                   [R_Y_STRIDE] = tokens == 1 ? packed : (int64_t)(y->nb[2] / bytes),
                   [R_ROTARY] = 2 * pairs_of(o),
                   [R_FIRST] = o->first,
                   [R_PAIRS] = o->mode == GGML_ROPE_TYPE_NORMAL ? QDNN_ROPE_NEIGHBOURS : QDNN_ROPE_HALVES}};
    qdnnDataType_t type;
    plain_type(x->type, &type);
    request.number[R_X] = type;
    const void *iota = r->dry ? NULL : run_iota(r, planned);
    for (int64_t i3 = 0; i3 < x->ne[3]; i3++) {
        const qdnnBinding_t bindings[] = {
            {QDNN_OPERAND_X, r->dry ? NULL : x->data + (size_t)i3 * x->nb[3], 0},
            {QDNN_OPERAND_COS, cosines, 0},
            {QDNN_OPERAND_SIN, sines, 0},
            {QDNN_OPERAND_POSITION, iota, 0},
            {QDNN_OPERAND_Y, r->dry ? NULL : y->data + (size_t)i3 * y->nb[3], 0}};
        if (!run_plan(r, &request, tokens, bindings, 5))
            return false;
        if (r->dry)
            return true;
    }
    return true;
}

bool op_rope(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *positions = t->src[1];
    const rope o = rope_of(t);
    place x = place_of(t->src[0]), y = place_of(t), to = y;
    qdnnDataType_t type;
    if (!plain_type(x.type, &type) || t->type != x.type)
        return run_declines(r, "rope of type %s", ggml_type_name(x.type));
    if (positions->type != GGML_TYPE_I32 || !is_packed_row(positions) ||
        (t->src[2] && !ggml_is_contiguous(t->src[2])))
        return run_declines(r, "positions or divisors with gaps");
    if (pairs_of(&o) > PAIRS_MAX)
        return run_declines(r, "heads of more than %d pairs", PAIRS_MAX);
    const size_t bytes = (size_t)planned_rows(t->ne[2]) * (size_t)pairs_of(&o) * sizeof(float);
    void *cosines = run_scratch(r, SCRATCH_COS, bytes), *sines = run_scratch(r, SCRATCH_SIN, bytes);
    if (!heads_are_packed(&x) && !packed_place(r, t->src[0], SCRATCH_X, &x))
        return false;
    if (!heads_are_packed(&y)) {
        to = place_packed(&y, y.type, run_scratch(r, SCRATCH_Y, ggml_nbytes(t)));
    }
    if (!make_angles(r, t, &o, cosines, sines) || !rotate(r, &o, &x, &to, cosines, sines))
        return false;
    return heads_are_packed(&y) || copy_place(r, &y, &to);
}
