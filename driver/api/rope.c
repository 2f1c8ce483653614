/* Plans of rope, and of what it writes into a KV cache. */
#include <qdnn/rope.h>

#include "driver/api/cache.h"
#include "driver/api/plan.h"
#include "driver/api/rows.h"
#include "driver/base/check.h"

static qdnnStatus_t check_choice(const char *name, int value, int most)
{
    if (value >= 0 && value <= most)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "rope->%s is %d; it must be 0 to %d", name, value,
                      most);
}

static qdnnStatus_t check_number(const char *name, int64_t value, int64_t most)
{
    if (value >= 0 && value <= most)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "rope->%s is %lld; it must be 0 to %lld", name,
                      (long long)value, (long long)most);
}

static qdnnStatus_t check_settings(const qdnnRope_t *rope)
{
    CHECK_STATUS(check_number("rotary", rope->rotary, 1024));
    CHECK_STATUS(check_number("first", rope->first, 1024));
    CHECK_STATUS(check_number("positions", rope->positions, INT32_MAX));
    CHECK_STATUS(check_number("sectionStride", rope->sectionStride, INT64_C(1) << 40));
    for (int i = 0; i < 4; i++)
        CHECK_STATUS(check_number("section", rope->section[i], 512));
    CHECK_STATUS(check_choice("pairs", (int)rope->pairs, QDNN_ROPE_NEIGHBOURS));
    CHECK_STATUS(check_choice("sections", (int)rope->sections, QDNN_ROPE_INTERLEAVED));
    return check_choice("slots", (int)rope->slots, QDNN_KV_SLOTS_BY_SEQUENCE);
}

static void set_rope(const qdnnRope_t *rope, kernel_rope *to)
{
    static const kernel_rope_sections sections[] = {KERNEL_ROPE_ONE, KERNEL_ROPE_CONTIGUOUS,
                                                    KERNEL_ROPE_INTERLEAVED};
    to->first = (uint64_t)rope->first;
    to->size = (uint64_t)rope->rotary;
    to->neighbours = rope->pairs == QDNN_ROPE_NEIGHBOURS;
    to->sections = sections[rope->sections];
    to->by_section = rope->sectionStride != 0;
    for (int i = 0; i < KERNEL_ROPE_SECTIONS; i++)
        to->section[i] = (uint64_t)rope->section[i];
}

/* y as heads: its dimensions are tokens, heads and elements, or tokens and elements. */
static qdnnStatus_t take_queries(const struct qdnnTensorDescriptor *y, row_extent x, request *r)
{
    row_extent out;
    CHECK_STATUS(rows_of("y", y, &out));
    if (out.tokens != x.tokens && x.tokens && out.tokens)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "x has %llu tokens, and y %llu; they must be the same",
                          (unsigned long long)x.tokens, (unsigned long long)out.tokens);
    if (out.heads > 1 << 16)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "y has %llu heads; it may have up to 65536",
                          (unsigned long long)out.heads);
    r->spec.epilogue.output = y->type;
    r->spec.rope.queries = out.heads;
    r->spec.rope.head = out.columns;
    r->problem.y_stride = out.stride;
    if (out.tokens == 0)
        r->problem.m = 0;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_token(const request *r, row_extent x)
{
    const kernel_kv *kv = &r->spec.kv;
    const uint64_t token =
        r->spec.rope.queries * r->spec.rope.head + kv->heads * (kv->key_size + kv->value_size);
    if (r->problem.m == 0 || x.heads * x.columns == token)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
        "a token of x has %llu elements; %llu queries of %llu, and %llu keys of %llu and values "
        "of %llu have %llu; fix: x of that many, in this order",
        (unsigned long long)(x.heads * x.columns), (unsigned long long)r->spec.rope.queries,
        (unsigned long long)r->spec.rope.head, (unsigned long long)kv->heads,
        (unsigned long long)kv->key_size, (unsigned long long)kv->value_size, (unsigned long long)token);
}

static qdnnStatus_t make_request(const qdnnRope_t *rope, const struct qdnnTensorDescriptor *x,
                                 const struct qdnnTensorDescriptor *y, const qdnnKvCache_t *keys,
                                 const qdnnKvCache_t *values, request *r)
{
    row_extent in;
    const format_row *format = NULL;
    *r = (request){.spec = kernel_spec_default()};
    CHECK_STATUS(check_settings(rope));
    CHECK_STATUS(rows_of("x", x, &in));
    r->spec.data = r->spec.epilogue.output = x->type;
    r->spec.kv = (kernel_kv){0};
    r->spec.rope = (kernel_rope){0};
    r->problem.m = in.tokens;
    r->problem.x_stride = in.stride;
    r->problem.b_stride = (uint64_t)rope->sectionStride;
    r->problem.positions = (uint64_t)rope->positions;
    set_rope(rope, &r->spec.rope);
    if (keys || values)
        CHECK_STATUS(cache_take(keys, values, r, &format));
    if (rope->slots == QDNN_KV_SLOTS_LISTED)
        r->spec.kv.slots = KERNEL_KV_LISTED;
    r->spec.rope.head = r->spec.kv.key_size ? r->spec.kv.key_size : 1;
    if (y)
        CHECK_STATUS(take_queries(y, in, r));
    if (rope->rotary && rope->positions == 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "rope->positions is 0; set it to the rows of the tables");
    CHECK_STATUS(check_token(r, in));
    r->row = kernel_find_operation(format ? KERNEL_ROPE_QUANTIZED : KERNEL_ROPE,
                                   format ? format : kernel_find("rope")->format);
    if (!r->row)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s is not among the formats of KV caches that rope writes: int8, int4, e4m3, "
                          "e5m2; fix: one of these, "
                          "or qdnnCreateQuantizeRowsPlan behind rope",
                          format_facts_of(format)->name);
    return rows_finish(r);
}

qdnnStatus_t qdnnCreateRopePlan(qdnnHandle_t handle, const qdnnRope_t *rope, qdnnTensorDescriptor_t x,
                                qdnnTensorDescriptor_t y, const qdnnKvCache_t *keys,
                                const qdnnKvCache_t *values, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, rope, x, y, keys, values, plan);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(rope);
    CHECK_TENSOR(x);
    if (y)
        CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    qdnnRope_t settings;
    request r;
    CHECK_STATUS(rows_take_settings("rope", rope, &settings, sizeof settings));
    if (!y && !keys && !values)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_NULL_POINTER,
            "y is null, and so are keys and values: nothing would be written; fix: pass one of them");
    CHECK_STATUS(make_request(&settings, x, y, keys, values, &r));
    CHECK_STATUS(plan_create(handle, &r, plan));
    static const qdnnOperand_t numbers[] = {QDNN_OPERAND_POSITION, QDNN_OPERAND_SEQUENCE,
                                            QDNN_OPERAND_KEY_INDEX, QDNN_OPERAND_PAGE_TABLE};
    plan_typed(*plan, QDNN_OPERAND_X, x->type);
    if (y)
        plan_typed(*plan, QDNN_OPERAND_Y, y->type);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        plan_typed(*plan, numbers[i], QDNN_DATA_I32);
    return QDNN_STATUS_SUCCESS;
}
