/* FLASH_ATTN_EXT: the library's attention over keys and values where ggml's cache has them. Mode tensor rounds queries to f16. */
#include <math.h>
#include <string.h>

#include "engine.h"

enum {
    A_TOKENS,
    A_HEADS,
    A_KEY_HEADS,
    A_SIZE,
    A_VALUE_SIZE,
    A_KEYS,
    A_TYPE,
    A_KEY_SLOT,
    A_KEY_HEAD,
    A_VALUE_SLOT,
    A_VALUE_HEAD,
    A_X_TYPE,
    A_X_STRIDE,
    A_SCALE,
    A_CAP,
    A_BIAS,
    A_MASK_TYPE,
    A_MASK_STRIDE,
    A_MASK_HEAD,
    A_MASK_HEADS,
    A_SINKS,
    A_MODE,
    A_SHARED
};

static float as_float(int64_t number)
{
    const uint32_t bits = (uint32_t)number;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* All keys of one sequence, which lie where ggml's strides say. */
static qdnnKvCache_t cache_of(const int64_t *number, int64_t size, int64_t slot, int64_t head, shapes *s)
{
    qdnnKvCache_t cache = {.size = sizeof cache,
                           .pages = 1,
                           .pageSlots = number[A_KEYS],
                           .heads = number[A_KEY_HEADS],
                           .headSize = size,
                           .slotStride = slot,
                           .headStride = head};
    if (number[A_TYPE] == QDNN_WEIGHTS_F32 || number[A_TYPE] == QDNN_WEIGHTS_F16 ||
        number[A_TYPE] == QDNN_WEIGHTS_BF16)
        cache.type = number[A_TYPE] == QDNN_WEIGHTS_F32   ? QDNN_DATA_F32
                     : number[A_TYPE] == QDNN_WEIGHTS_F16 ? QDNN_DATA_F16
                                                          : QDNN_DATA_BF16;
    else
        cache.quant = s->quant ? s->quant : shapes_weights(s, (qdnnWeights_t)number[A_TYPE]);
    return cache;
}

static qdnnStatus_t make_attention(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const qdnnAttention_t attention = {.size = sizeof attention,
                                       .mode = (qdnnAttentionMode_t)number[A_MODE],
                                       .scale = as_float(number[A_SCALE]),
                                       .cap = as_float(number[A_CAP]),
                                       .sees = QDNN_SEES_ALL,
                                       .oneSequence = 1,
                                       .sinks = (int)number[A_SINKS],
                                       .bias = (qdnnAttentionBias_t)number[A_BIAS],
                                       .maskType = (qdnnDataType_t)number[A_MASK_TYPE],
                                       .maskKeys = number[A_MASK_TYPE] ? number[A_KEYS] : 0,
                                       .maskHeads = (int)number[A_MASK_HEADS],
                                       .maskTokenStride = number[A_MASK_STRIDE],
                                       .maskHeadStride = number[A_MASK_HEAD],
                                       .valueSize = number[A_SHARED] ? number[A_VALUE_SIZE] : 0};
    const int64_t tokens = number[A_TOKENS], heads = number[A_HEADS], size = number[A_SIZE],
                  value_size = number[A_VALUE_SIZE];
    qdnnTensorDescriptor_t x = shapes_add(&s, (qdnnDataType_t)number[A_X_TYPE], 3,
                                          (int64_t[]){tokens, heads, size},
                                          (int64_t[]){number[A_X_STRIDE], size, 1}),
                           y = shapes_add(&s, QDNN_DATA_F32, 3, (int64_t[]){tokens, heads, value_size}, NULL);
    const qdnnKvCache_t keys = cache_of(number, size, number[A_KEY_SLOT], number[A_KEY_HEAD], &s);
    qdnnKvCache_t values;
    if (!number[A_SHARED])
        values = cache_of(number, value_size, number[A_VALUE_SLOT], number[A_VALUE_HEAD], &s);
    return shapes_free(&s, s.status ? s.status
                                    : qdnnCreateAttentionPlan(handle, &attention, x, &keys,
                                                              number[A_SHARED] ? NULL : &values, y, plan));
}

/* ---- Keys and values ---- */

/* Elements from one key, or head, to the next; false: not whole heads. */
static bool strides_of(const place *p, int64_t *slot, int64_t *head)
{
    const size_t bytes = ggml_type_size(p->type);
    const int64_t in_block = ggml_blck_size(p->type);
    if (p->nb[0] != bytes || p->nb[1] % bytes || p->nb[2] % bytes)
        return false;
    *slot = (int64_t)(p->nb[1] / bytes) * in_block;
    *head = (int64_t)(p->nb[2] / bytes) * in_block;
    return *slot % p->ne[0] == 0 && *head % p->ne[0] == 0;
}

/* Keys or values where they are, or copied where their strides are not whole heads. */
static bool take_cache(run *r, const struct ggml_tensor *t, int slot, place *out, int64_t strides[2])
{
    *out = place_of(t);
    if (strides_of(out, &strides[0], &strides[1]))
        return true;
    place packed = place_packed(out, out->type, NULL);
    if (ggml_blck_size(t->type) > 1 || place_is_packed(out))
        return run_declines(r, "keys or values whose strides are not whole heads");
    packed.data = run_scratch(r, slot, ggml_row_size(t->type, t->ne[0]) * (size_t)ggml_nrows(t));
    if (!copy_place(r, &packed, out))
        return false;
    *out = packed;
    return strides_of(out, &strides[0], &strides[1]);
}

/* Decoded to f32, which is what attention does to each of them: for keys and values of different types. */
static bool decoded_cache(run *r, const struct ggml_tensor *t, int slot, place *out, int64_t strides[2])
{
    const place from = place_of(t);
    *out = place_packed(&from, GGML_TYPE_F32, NULL);
    out->data = run_scratch(r, slot, (size_t)ggml_nelements(t) * sizeof(float));
    return convert_place(r, out, t) && strides_of(out, &strides[0], &strides[1]);
}

static const struct ggml_tensor *owner_of(const struct ggml_tensor *t)
{
    return t->view_src ? t->view_src : t;
}

/* Values that are the first elements of the keys (MLA). */
static bool are_shared(const struct ggml_tensor *k, const struct ggml_tensor *v)
{
    return owner_of(k) == owner_of(v) && k->view_offs == v->view_offs && v->ne[0] <= k->ne[0] &&
           memcmp(k->ne + 1, v->ne + 1, sizeof k->ne - sizeof k->ne[0]) == 0 &&
           memcmp(k->nb, v->nb, sizeof k->nb) == 0;
}

static bool take_keys_and_values(run *r, const struct ggml_tensor *k, const struct ggml_tensor *v,
                                 place places[2], int64_t strides[2][2])
{
    bool (*take)(run *, const struct ggml_tensor *, int, place *, int64_t *) =
        k->type == v->type ? take_cache : decoded_cache;
    if (are_shared(k, v)) {
        memset(strides[1], 0, sizeof strides[1]);
        return take(r, k, SCRATCH_K, &places[0], strides[0]);
    }
    return take(r, k, SCRATCH_K, &places[0], strides[0]) && take(r, v, SCRATCH_V, &places[1], strides[1]);
}

/* ---- Queries: [size, tokens, heads] of ggml, where tokens lie apart and heads follow one another ---- */

static bool take_queries(run *r, const struct ggml_tensor *q, enum ggml_type type, place *out)
{
    place swapped = place_of(q);
    swapped.ne[1] = q->ne[2], swapped.ne[2] = q->ne[1];
    swapped.nb[1] = q->nb[2], swapped.nb[2] = q->nb[1];
    *out = swapped;
    const size_t bytes = ggml_type_size(q->type), head = (size_t)q->ne[0] * bytes;
    if (q->type == type && q->nb[0] == bytes && (q->ne[2] == 1 || q->nb[2] == head) &&
        q->nb[1] % bytes == 0 && (q->ne[1] == 1 || q->nb[1] >= head * (size_t)q->ne[2]))
        return true;
    *out = place_packed(&swapped, type, NULL);
    out->data = run_scratch(r, SCRATCH_X, (size_t)ggml_nelements(q) * ggml_type_size(type));
    return copy_place(r, out, &swapped);
}

/* ---- Masks ---- */

/* ALiBi: the factor of the mask, by head. */
static const void *slopes_of(run *r, float most, int64_t heads)
{
    float slopes[1024];
    int64_t power = 1;
    while (2 * power <= heads)
        power *= 2;
    const float m0 = powf(2.0f, -most / (float)power), m1 = powf(2.0f, -(most / 2.0f) / (float)power);
    for (int64_t h = 0; h < heads; h++)
        slopes[h] = h < power ? powf(m0, (float)(h + 1)) : powf(m1, (float)(2 * (h - power) + 1));
    return run_constant(r, slopes, (size_t)heads * sizeof slopes[0]);
}

const void *run_slopes(run *r, float most, int64_t heads)
{
    return heads > 1024 || r->dry ? NULL : slopes_of(r, most, heads);
}

static bool add_mask(run *r, const struct ggml_tensor *q, const struct ggml_tensor *mask, float most,
                     plan_request *request)
{
    qdnnDataType_t type;
    if (!mask)
        return true;
    if (!plain_type(mask->type, &type) || !is_packed_row(mask))
        return run_declines(r, "a mask of type %s, or whose elements are not neighbours",
                            ggml_type_name(mask->type));
    if (mask->ne[2] != 1 && mask->ne[2] != q->ne[2])
        return run_declines(r, "a mask for some of the heads");
    if (most > 0 && q->ne[2] > 1024)
        return run_declines(r, "ALiBi for more than 1024 heads");
    const size_t bytes = ggml_type_size(mask->type);
    request->number[A_BIAS] = most > 0 ? QDNN_BIAS_SLOPED_MASK : QDNN_BIAS_MASK;
    request->number[A_MASK_TYPE] = type;
    request->number[A_MASK_STRIDE] = (int64_t)(mask->nb[1] / bytes);
    request->number[A_MASK_HEADS] = mask->ne[2] != 1;
    request->number[A_MASK_HEAD] = mask->ne[2] != 1 ? (int64_t)(mask->nb[2] / bytes) : 0;
    return true;
}

/* ---- The operation ---- */

static void *at_3(const place *p, int64_t i3)
{
    return p->data + (size_t)i3 * p->nb[3];
}

/* One sequence after another. */
static bool attend(run *r, const struct ggml_tensor *t, const plan_request *request, const place *x,
                   const place *kv)
{
    const struct ggml_tensor *mask = t->src[3], *sinks = t->src[4];
    const float most = as_float((uint32_t)t->op_params[1]);
    const void *slopes = mask && most > 0 ? run_slopes(r, most, x->ne[1]) : NULL;
    for (int64_t i3 = 0; i3 < x->ne[3]; i3++) {
        if (r->dry)
            return run_plan(r, request, x->ne[2], NULL, 0);
        qdnnBinding_t bindings[7] = {{QDNN_OPERAND_X, at_3(x, i3), 0},
                                     {QDNN_OPERAND_KEYS, at_3(&kv[0], i3 / (x->ne[3] / kv[0].ne[3])), 0},
                                     {QDNN_OPERAND_Y, row_at(t, 0, 0, i3), 0}};
        int n = 3;
        if (!request->number[A_SHARED])
            bindings[n++] =
                (qdnnBinding_t){QDNN_OPERAND_VALUES, at_3(&kv[1], i3 / (x->ne[3] / kv[1].ne[3])), 0};
        if (mask)
            bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_MASK, row_at(mask, 0, 0, i3 % mask->ne[3]), 0};
        if (slopes)
            bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_SLOPE, slopes, 0};
        if (sinks)
            bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_SINK, sinks->data, 0};
        if (!run_plan(r, request, x->ne[2], bindings, n))
            return false;
    }
    return true;
}

/* Everything that does not depend on the type of queries. */
static bool describe(run *r, const struct ggml_tensor *t, place kv[2], plan_request *request)
{
    const struct ggml_tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    qdnnWeights_t type;
    int64_t strides[2][2];
    if (!weights_type(k->type, &type) || t->type != GGML_TYPE_F32 || !ggml_is_contiguous(t))
        return run_declines(r, "keys of type %s, or a result with gaps", ggml_type_name(k->type));
    if (q->ne[2] % k->ne[2] || k->ne[2] != v->ne[2] || q->ne[3] % k->ne[3] || q->ne[3] % v->ne[3])
        return run_declines(r, "heads of keys that do not divide those of queries");
    if (!take_keys_and_values(r, k, v, kv, strides))
        return false;
    weights_type(kv[0].type, &type);
    *request = (plan_request){.make = make_attention,
                              .number = {[A_TOKENS] = planned_rows(q->ne[1]),
                                         [A_HEADS] = q->ne[2],
                                         [A_KEY_HEADS] = k->ne[2],
                                         [A_SIZE] = q->ne[0],
                                         [A_VALUE_SIZE] = v->ne[0],
                                         [A_KEYS] = k->ne[1],
                                         [A_TYPE] = type,
                                         [A_KEY_SLOT] = strides[0][0],
                                         [A_KEY_HEAD] = strides[0][1],
                                         [A_VALUE_SLOT] = strides[1][0],
                                         [A_VALUE_HEAD] = strides[1][1],
                                         [A_SCALE] = (uint32_t)t->op_params[0],
                                         [A_CAP] = (uint32_t)t->op_params[2],
                                         [A_SINKS] = t->src[4] != NULL,
                                         [A_SHARED] = are_shared(k, v)}};
    return add_mask(r, q, t->src[3], as_float((uint32_t)t->op_params[1]), request);
}

static bool add_queries(run *r, const struct ggml_tensor *q, enum ggml_type type, place *x,
                        plan_request *request)
{
    qdnnDataType_t data;
    if (!plain_type(type, &data))
        return run_declines(r, "queries of type %s", ggml_type_name(type));
    if (!take_queries(r, q, type, x))
        return false;
    request->number[A_X_TYPE] = data;
    request->number[A_X_STRIDE] =
        q->ne[1] == 1 ? q->ne[0] * q->ne[2] : (int64_t)(x->nb[2] / ggml_type_size(type));
    return true;
}

/* Whether the library has this attention on tensor cores. */
static bool has_tensor(const run *r, const struct ggml_tensor *q, plan_request request)
{
    run dry = *r;
    place x;
    dry.dry = true;
    request.number[A_MODE] = QDNN_ATTENTION_TENSOR;
    return engine_is_tensor(r->engine) && q->type == GGML_TYPE_F32 &&
           add_queries(&dry, q, GGML_TYPE_F16, &x, &request) && run_plan(&dry, &request, ALL_ROWS, NULL, 0);
}

bool op_flash_attention(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *q = t->src[0];
    plan_request request;
    place x, kv[2];
    if (!describe(r, t, kv, &request))
        return false;
    const bool tensor = has_tensor(r, q, request);
    request.number[A_MODE] = tensor ? QDNN_ATTENTION_TENSOR : QDNN_ATTENTION_EXACT;
    return add_queries(r, q, tensor ? GGML_TYPE_F16 : q->type, &x, &request) &&
           attend(r, t, &request, &x, kv);
}
