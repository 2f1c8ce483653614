/* Plans of attention. */
#include <qdnn/attention.h>

#include <math.h>
#include <stdio.h>

#include "driver/api/cache.h"
#include "driver/api/matmul.h"
#include "driver/api/plan.h"
#include "driver/api/rows.h"
#include "driver/base/check.h"

static qdnnStatus_t check_choice(const char *name, int value, int most)
{
    if (value >= 0 && value <= most)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attention->%s is %d; it must be 0 to %d", name,
                      value, most);
}

static qdnnStatus_t check_number(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attention->%s is %lld; it must be %lld to %lld",
                      name, (long long)value, (long long)least, (long long)most);
}

static bool has_mask(const qdnnAttention_t *a)
{
    return a->bias == QDNN_BIAS_MASK || a->bias == QDNN_BIAS_SLOPED_MASK;
}

static qdnnStatus_t check_mask(const qdnnAttention_t *a)
{
    if (!has_mask(a)) {
        if (a->maskType)
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                              "attention->maskType is set, and attention->bias has no mask; fix: "
                              "QDNN_BIAS_MASK or QDNN_BIAS_SLOPED_MASK, or maskType 0");
        return QDNN_STATUS_SUCCESS;
    }
    CHECK_STATUS(rows_check_type("attention->maskType", a->maskType));
    if (!a->maskType)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "attention->maskType is 0, and attention->bias has a mask; fix: F32, F16 or BF16");
    CHECK_STATUS(check_number("maskKeys", a->maskKeys, 1, INT32_MAX));
    CHECK_STATUS(check_number("maskTokenStride", a->maskTokenStride, 0, INT64_C(1) << 40));
    return check_number("maskHeadStride", a->maskHeadStride, 0, INT64_C(1) << 40);
}

static qdnnStatus_t check_settings(const qdnnAttention_t *a)
{
    CHECK_STATUS(check_choice("mode", (int)a->mode, QDNN_ATTENTION_TENSOR));
    CHECK_STATUS(check_choice("sees", (int)a->sees, QDNN_SEES_ALL));
    CHECK_STATUS(check_choice("bias", (int)a->bias, QDNN_BIAS_ALIBI));
    CHECK_STATUS(check_choice("oneSequence", a->oneSequence, 1));
    CHECK_STATUS(check_choice("sinks", a->sinks, 1));
    CHECK_STATUS(check_choice("maskHeads", a->maskHeads, 1));
    CHECK_STATUS(check_choice("counters", a->counters, 1));
    CHECK_STATUS(check_number("window", a->window, 0, INT32_MAX));
    CHECK_STATUS(check_number("valueSize", a->valueSize, 0, 1024));
    if (!isfinite(a->scale) || !isfinite(a->cap) || a->cap < 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "attention->scale is %g and attention->cap %g; both must be finite, and cap not "
                          "negative",
                          (double)a->scale, (double)a->cap);
    return check_mask(a);
}

/* ---- Modes ---- */

/* As for products, only the type of x, the SM and the handle have a say. */
static bool is_tensor(qdnnHandle_t handle, qdnnAttentionMode_t mode, qdnnDataType_t x)
{
    return mode == QDNN_ATTENTION_TENSOR || (mode == QDNN_ATTENTION_AUTO && handle->math != QDNN_MATH_EXACT &&
                                             tensor_has_type(handle->context->target->number, x));
}

static qdnnStatus_t check_tensor(qdnnHandle_t handle, qdnnAttentionMode_t mode, qdnnDataType_t x)
{
    const ptx_sm *sm = handle->context->target;
    if (mode != QDNN_ATTENTION_TENSOR || tensor_has_type(sm->number, x))
        return QDNN_STATUS_SUCCESS;
    if (x != QDNN_DATA_F16 && x != QDNN_DATA_BF16)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "x is %s, and QDNN_ATTENTION_TENSOR takes f16 or bf16; fix: convert x, or use "
                          "QDNN_ATTENTION_EXACT",
                          qdnnGetDataTypeName(x));
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "x is %s, for which %s has no tensor cores; fix: give x in f16, or use "
                      "QDNN_ATTENTION_EXACT",
                      qdnnGetDataTypeName(x), sm->name);
}

static void describe(qdnnPlan_t plan, qdnnAttentionMode_t mode, const request *r)
{
    const bool tensor = r->spec.attention.tensor;
    const char *reason = mode != QDNN_ATTENTION_AUTO ? "as asked for"
                         : tensor                    ? "AUTO"
                         : plan->handle->math == QDNN_MATH_EXACT
                             ? "AUTO, and the handle asks for QDNN_MATH_EXACT"
                         : r->spec.data == QDNN_DATA_F32 ? "AUTO, as x is f32"
                                                         : "AUTO, as the SM has no tensor cores for x";
    snprintf(plan->choice, sizeof plan->choice, "%s; %s",
             tensor ? tensor_bits_on(plan->handle->context->target->number)
                    : "exact: the same bits in every batch, on every SM",
             reason);
    plan->info.choice = plan->choice;
}

/* ---- Requests ---- */

/* The nearest f32: the quotient in f64 is off by an ulp of f64 at most, and no 1 / sqrt(n) is that close to the middle of two f32. */
static float usual_scale(uint64_t head_size)
{
    return (float)(1.0 / sqrt((double)head_size));
}

static void set_attention(const qdnnAttention_t *a, bool tensor, request *r)
{
    static const kernel_sees sees[] = {KERNEL_SEES_KEY_INDEX, KERNEL_SEES_LENGTH, KERNEL_SEES_RANGE,
                                       KERNEL_SEES_ALL};
    static const kernel_adds adds[] = {KERNEL_ADDS_NONE, KERNEL_ADDS_MASK, KERNEL_ADDS_SLOPED_MASK,
                                       KERNEL_ADDS_ALIBI};
    const float scale = a->scale != 0 ? a->scale : usual_scale(r->spec.kv.key_size);
    r->spec.attention = (kernel_attention){.tensor = tensor,
                                           .sees = sees[a->sees],
                                           .adds = adds[a->bias],
                                           .window = a->window != 0,
                                           .one_sequence = a->oneSequence,
                                           .cap = a->cap != 0,
                                           .mask_heads = a->maskHeads,
                                           .values_in_keys = r->spec.kv.value_size == 0};
    r->spec.select.mask = (int)a->maskType;
    r->spec.select.sink = a->sinks;
    r->problem.alpha = scale;
    r->problem.limit = a->cap;
    r->problem.factor = a->cap != 0 ? scale / a->cap : 0;
    r->problem.window = (uint64_t)a->window;
    r->problem.counted = a->counters;
    r->problem.mask_keys = (uint64_t)a->maskKeys;
    r->problem.mask_stride = (uint64_t)a->maskTokenStride;
    r->problem.mask_head_stride = (uint64_t)a->maskHeadStride;
    if (r->spec.attention.values_in_keys)
        r->spec.kv.value_size = (uint64_t)a->valueSize;
}

static qdnnStatus_t take_heads(row_extent x, row_extent y, request *r)
{
    const kernel_kv *kv = &r->spec.kv;
    if (x.tokens != y.tokens || (x.tokens && (x.heads != y.heads || x.columns != kv->key_size ||
                                              y.columns != kv->value_size || x.heads % kv->heads != 0)))
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "x is [%llu, %llu, %llu] and y [%llu, %llu, %llu]; keys of %llu and values of %llu elements "
            "in %llu heads need the same tokens and heads in both, heads that are a multiple of the "
            "cache's, and these sizes",
            (unsigned long long)x.tokens, (unsigned long long)x.heads, (unsigned long long)x.columns,
            (unsigned long long)y.tokens, (unsigned long long)y.heads, (unsigned long long)y.columns,
            (unsigned long long)kv->key_size, (unsigned long long)kv->value_size,
            (unsigned long long)kv->heads);
    r->spec.rope.queries = x.tokens ? x.heads : kv->heads;
    r->problem.m = x.tokens;
    r->problem.x_stride = x.stride;
    r->problem.y_stride = y.stride;
    return QDNN_STATUS_SUCCESS;
}

/* Tokens that a thread block may take together (the kernel takes fewer if it must): several save reading the keys again if they
 * belong to one sequence, but keep few tokens from filling the machine. */
static uint64_t tokens_together(uint64_t tokens, bool tensor)
{
    enum { MANY = 16, MOST = 4, MOST_TENSOR = 64 };
    return tokens < MANY ? 1 : tensor ? MOST_TENSOR : MOST;
}

static qdnnStatus_t make_request(qdnnHandle_t handle, const qdnnAttention_t *a,
                                 const struct qdnnTensorDescriptor *x, const qdnnKvCache_t *keys,
                                 const qdnnKvCache_t *values, const struct qdnnTensorDescriptor *y,
                                 request *r)
{
    row_extent in, out;
    const format_row *format = NULL;
    char reason[512];
    *r = (request){.spec = kernel_spec_default(), .problem = kernel_problem_default(), .takes_rows = true};
    CHECK_STATUS(check_settings(a));
    CHECK_STATUS(rows_of("x", x, &in));
    CHECK_STATUS(rows_of("y", y, &out));
    CHECK_STATUS(cache_take(keys, values, r, &format));
    CHECK_STATUS(check_tensor(handle, a->mode, x->type));
    set_attention(a, is_tensor(handle, a->mode, x->type), r);
    CHECK_STATUS(take_heads(in, out, r));
    r->spec.data = x->type;
    r->spec.epilogue.output = y->type;
    r->spec.product.tile_rows = tokens_together(in.tokens, r->spec.attention.tensor);
    r->problem.multiprocessors = handle->context->device.multiprocessors;
    if (!values && !a->valueSize)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER,
                          "values is null, and attention->valueSize 0; fix: set one of them");
    r->row = kernel_find_operation(format ? KERNEL_ATTENTION_QUANTIZED : KERNEL_ATTENTION,
                                   format ? format : kernel_find("attention")->format);
    if (!r->row)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s is not among the formats of KV caches: int8, int4, e4m3, e5m2, gguf_q8_0, gguf_q4_0, "
            "gguf_q4_1, gguf_q5_0, gguf_q5_1, gguf_iq4_nl; fix: one of these",
            format_facts_of(format)->name);
    if (!kernel_spec_settle_kernel(r->row, &r->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    if (!r->problem.mask_stride)
        r->problem.mask_stride = r->problem.mask_keys;
    if (!r->problem.mask_head_stride)
        r->problem.mask_head_stride = r->problem.mask_stride * r->problem.m;
    kernel_operands_of(r->row, &r->spec, &r->problem, r->operands);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateAttentionPlan(qdnnHandle_t handle, const qdnnAttention_t *attention,
                                     qdnnTensorDescriptor_t x, const qdnnKvCache_t *keys,
                                     const qdnnKvCache_t *values, qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, attention, x, keys, values, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(attention);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(keys);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    qdnnAttention_t settings;
    request r;
    CHECK_STATUS(rows_take_settings("attention", attention, &settings, sizeof settings));
    CHECK_STATUS(make_request(handle, &settings, x, keys, values, y, &r));
    CHECK_STATUS(plan_create(handle, &r, plan));
    static const qdnnOperand_t numbers[] = {QDNN_OPERAND_SEQUENCE, QDNN_OPERAND_KEY_INDEX,
                                            QDNN_OPERAND_SEQUENCE_LENGTH, QDNN_OPERAND_VISIBLE,
                                            QDNN_OPERAND_PAGE_TABLE};
    describe(*plan, settings.mode, &r);
    plan_typed(*plan, QDNN_OPERAND_X, x->type);
    plan_typed(*plan, QDNN_OPERAND_Y, y->type);
    plan_typed(*plan, QDNN_OPERAND_MASK, settings.maskType);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        plan_typed(*plan, numbers[i], QDNN_DATA_I32);
    return QDNN_STATUS_SUCCESS;
}
