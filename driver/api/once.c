/* One call in place of several: descriptors created and set at once, one-shot calls of products, norms, attention and LSQ. */
#include <qdnn/once.h>

#include <assert.h>

#include "driver/api/integer.h"
#include "driver/api/oneshot.h"
#include "driver/api/rows.h"
#include "driver/base/check.h"

/* ---- Descriptors ---- */

/* The log names the public call, also after those within it. */
#define WITHIN_THIS_CALL(status, call)                                                                       \
    do {                                                                                                     \
        (status) = (call);                                                                                   \
        log_call = __func__;                                                                                 \
    } while (0)

/* Creates a descriptor and sets it, or frees it again. */
#define CREATE_AND_SET(kind, descriptor, set)                                                                \
    do {                                                                                                     \
        qdnnStatus_t status_;                                                                                \
        qdnn##kind##Descriptor_t made_ = NULL;                                                               \
        CHECK_NOT_NULL(descriptor);                                                                          \
        WITHIN_THIS_CALL(status_, qdnnCreate##kind##Descriptor(&made_));                                     \
        if (!status_)                                                                                        \
            WITHIN_THIS_CALL(status_, set);                                                                  \
        if (status_)                                                                                         \
            object_destroy(made_);                                                                           \
        else                                                                                                 \
            *(descriptor) = made_;                                                                           \
        return status_;                                                                                      \
    } while (0)

qdnnStatus_t qdnnCreateTensorDescriptorOf(qdnnTensorDescriptor_t *tensor, qdnnDataType_t type, int rank,
                                          const int64_t *dims, const int64_t *strides)
{
    CALL_BEGIN_WITH(tensor, type, rank, dims, strides);
    CREATE_AND_SET(Tensor, tensor, qdnnSetTensorDescriptor(made_, type, rank, dims, strides));
}

qdnnStatus_t qdnnCreateQuantDescriptorOf(qdnnQuantDescriptor_t *quant, qdnnDataType_t storage,
                                         qdnnGranularity_t granularity, int64_t extent)
{
    CALL_BEGIN_WITH(quant, storage, granularity, extent);
    CREATE_AND_SET(Quant, quant, qdnnSetQuantDescriptor(made_, storage, granularity, extent));
}

qdnnStatus_t qdnnCreateQuantDescriptorOfWeights(qdnnQuantDescriptor_t *quant, qdnnWeights_t weights,
                                                int64_t extent)
{
    CALL_BEGIN_WITH(quant, weights, extent);
    CREATE_AND_SET(Quant, quant, qdnnSetQuantWeights(made_, weights, extent));
}

static qdnnStatus_t check_settings(const qdnnSetting_t *settings, int count)
{
    if (count < 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is %d; it must not be negative", count);
    CHECK_BUFFER(settings, count);
    return QDNN_STATUS_SUCCESS;
}

#define SET_ALL(kind)                                                                                        \
    static qdnnStatus_t set_all_##kind(qdnn##kind##Descriptor_t made, const qdnnSetting_t *settings,         \
                                       int count)                                                            \
    {                                                                                                        \
        CHECK_STATUS(check_settings(settings, count));                                                       \
        for (int i = 0; i < count; i++)                                                                      \
            CHECK_STATUS(qdnnSet##kind##Attribute(made, (qdnn##kind##Attribute_t)settings[i].attribute,      \
                                                  settings[i].value));                                       \
        return QDNN_STATUS_SUCCESS;                                                                          \
    }
SET_ALL(Matmul)
SET_ALL(Integer)
SET_ALL(Train)

qdnnStatus_t qdnnCreateMatmulDescriptorOf(qdnnMatmulDescriptor_t *matmul, const qdnnSetting_t *settings,
                                          int count)
{
    CALL_BEGIN_WITH(matmul, settings, count);
    CREATE_AND_SET(Matmul, matmul, set_all_Matmul(made_, settings, count));
}

qdnnStatus_t qdnnCreateIntegerDescriptorOf(qdnnIntegerDescriptor_t *integer, const qdnnSetting_t *settings,
                                           int count)
{
    CALL_BEGIN_WITH(integer, settings, count);
    CREATE_AND_SET(Integer, integer, set_all_Integer(made_, settings, count));
}

qdnnStatus_t qdnnCreateTrainDescriptorOf(qdnnTrainDescriptor_t *train, const qdnnSetting_t *settings,
                                         int count)
{
    CALL_BEGIN_WITH(train, settings, count);
    CREATE_AND_SET(Train, train, set_all_Train(made_, settings, count));
}

/* ---- One-shot calls ---- */

/* Which call a key belongs to; below every kernel_operation, which keys of the other one-shot calls begin with. */
typedef enum {
    ONCE_MATMUL = -100,
    ONCE_TYPED_MATMUL,
    ONCE_INTEGER_MATMUL,
    ONCE_INTEGER_DOT,
    ONCE_INTEGER_TOP,
    ONCE_INTEGER_CONV,
    ONCE_NORM,
    ONCE_ATTENTION,
    ONCE_LSQ,
    ONCE_LSQ_BACKWARD
} once_kind;

/* The arguments of a call, as far as it has them. */
typedef struct once {
    once_kind kind;
    qdnnMatmulDescriptor_t matmul;
    qdnnIntegerDescriptor_t integer;
    qdnnTrainDescriptor_t train;
    qdnnTensorDescriptor_t tensor[4];
    qdnnQuantDescriptor_t quant;
    const qdnnQuantizedType_t *type;
    int64_t n;
    const qdnnNorm_t *norm;
    const qdnnAttention_t *attention;
    const qdnnKvCache_t *keys, *values;
} once;

static qdnnStatus_t create_plan(qdnnHandle_t h, const once *c, qdnnPlan_t *plan)
{
    qdnnTensorDescriptor_t const *t = c->tensor;
    switch (c->kind) {
    case ONCE_MATMUL:
        return qdnnCreateMatmulPlan(h, c->matmul, t[0], t[1], c->quant, t[2], plan);
    case ONCE_TYPED_MATMUL:
        return qdnnCreateTypedMatmulPlan(h, c->matmul, t[0], c->type, c->n, t[1], plan);
    case ONCE_INTEGER_MATMUL:
        return qdnnCreateIntegerMatmulPlan(h, c->integer, t[0], t[1], t[2], plan);
    case ONCE_INTEGER_DOT:
        return qdnnCreateIntegerDotPlan(h, t[0], t[1], t[2], plan);
    case ONCE_INTEGER_TOP:
        return qdnnCreateIntegerTopPlan(h, t[0], t[1], t[2], t[3], plan);
    case ONCE_INTEGER_CONV:
        return qdnnCreateIntegerConvPlan(h, c->integer, t[0], t[1], t[2], plan);
    case ONCE_NORM:
        return qdnnCreateNormPlan(h, c->norm, t[0], t[1], c->quant, plan);
    case ONCE_ATTENTION:
        return qdnnCreateAttentionPlan(h, c->attention, t[0], c->keys, c->values, t[1], plan);
    case ONCE_LSQ:
        return qdnnCreateLsqPlan(h, t[0], c->train, plan);
    case ONCE_LSQ_BACKWARD:
        return qdnnCreateLsqBackwardPlan(h, t[0], c->train, plan);
    }
    return qdnn_error(QDNN_STATUS_INTERNAL_ERROR, "a one-shot call of kind %d", (int)c->kind);
}

/* The plan is the handle's own: the user may destroy the handle while it exists. */
static qdnnStatus_t make(qdnnHandle_t handle, const void *arguments, qdnnPlan_t *plan)
{
    const char *call = log_call;
    const qdnnStatus_t status = create_plan(handle, arguments, plan);
    log_call = call;
    if (status == QDNN_STATUS_SUCCESS)
        handle->plans--;
    return status;
}

/* A structure that begins with its size: the members that the caller knows. */
static qdnnStatus_t add_settings(oneshot_key *key, const char *name, const void *given, size_t known)
{
    unsigned char settings[256];
    assert(known <= sizeof settings);
    CHECK_STATUS(rows_take_settings(name, given, settings, known));
    key_add(key, settings + sizeof(size_t), known - sizeof(size_t));
    return QDNN_STATUS_SUCCESS;
}

/* A description of keys or values: the quantization by its content, not by its address. */
static qdnnStatus_t add_cache(oneshot_key *key, const char *name, const qdnnKvCache_t *given)
{
    qdnnKvCache_t cache;
    const char is_given = given != NULL;
    key_add(key, &is_given, sizeof is_given);
    if (!given)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(rows_take_settings(name, given, &cache, sizeof cache));
    if (cache.quant)
        CHECK_NOT_NULL_AS(name, cache.quant);
    key_add_quant(key, cache.quant);
    cache.quant = NULL;
    cache.size = 0;
    key_add(key, &cache, sizeof cache);
    return QDNN_STATUS_SUCCESS;
}

static void add_descriptors(oneshot_key *key, const once *c)
{
    if (c->matmul) {
        key_add(key, c->matmul->values, sizeof c->matmul->values);
        key_add(key, &c->matmul->alpha, sizeof c->matmul->alpha);
        key_add(key, &c->matmul->lora_scale, sizeof c->matmul->lora_scale);
    }
    if (c->integer) {
        key_add(key, c->integer->values, sizeof c->integer->values);
        key_add(key, &c->integer->multiplier, sizeof c->integer->multiplier);
        key_add(key, &c->integer->alpha, sizeof c->integer->alpha);
    }
    if (c->train) {
        key_add(key, c->train->values, sizeof c->train->values);
        key_add(key, &c->train->decay, sizeof c->train->decay);
    }
}

/* What a plan depends on: the arguments, and the handle's choice of algorithms. */
static qdnnStatus_t make_key(qdnnHandle_t handle, const once *c, oneshot_key *key)
{
    key->size = 0;
    key_add(key, &c->kind, sizeof c->kind);
    key_add(key, &handle->math, sizeof handle->math);
    add_descriptors(key, c);
    for (int i = 0; i < 4 && c->tensor[i]; i++)
        key_add_tensor(key, c->tensor[i]);
    key_add_quant(key, c->quant);
    if (c->type)
        key_add(key, c->type, sizeof *c->type);
    key_add(key, &c->n, sizeof c->n);
    if (c->norm)
        CHECK_STATUS(add_settings(key, "norm", c->norm, sizeof *c->norm));
    if (!c->attention)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(add_settings(key, "attention", c->attention, sizeof *c->attention));
    CHECK_STATUS(add_cache(key, "keys", c->keys));
    return add_cache(key, "values", c->values);
}

static qdnnStatus_t run(qdnnHandle_t handle, once c, const qdnnBinding_t *bindings, int count)
{
    oneshot_key key;
    qdnnPlan_t plan;
    CHECK_STATUS(make_key(handle, &c, &key));
    CHECK_STATUS(oneshot_plan(handle, &key, make, &c, &plan));
    CHECK_STATUS(plan_check_bindings(plan, handle, bindings, count));
    return oneshot_run(plan, bindings, count, BY_BINDINGS);
}

qdnnStatus_t qdnnMatmulWith(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul, qdnnTensorDescriptor_t x,
                            qdnnTensorDescriptor_t w, qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                            const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, matmul, x, w, quant, y, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(matmul);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_NOT_NULL(quant);
    CHECK_TENSOR(y);
    const once c = {.kind = ONCE_MATMUL, .matmul = matmul, .tensor = {x, w, y}, .quant = quant};
    return run(handle, c, bindings, count);
}

qdnnStatus_t qdnnTypedMatmulWith(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul, qdnnTensorDescriptor_t x,
                                 const qdnnQuantizedType_t *type, int64_t n, qdnnTensorDescriptor_t y,
                                 const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, matmul, x, type, n, y, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(matmul);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(type);
    CHECK_TENSOR(y);
    const once c = {.kind = ONCE_TYPED_MATMUL, .matmul = matmul, .tensor = {x, y}, .type = type, .n = n};
    return run(handle, c, bindings, count);
}

qdnnStatus_t qdnnIntegerMatmulWith(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                   qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                   qdnnTensorDescriptor_t y, const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, integer, x, w, y, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(integer);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_TENSOR(y);
    return run(handle, (once){.kind = ONCE_INTEGER_MATMUL, .integer = integer, .tensor = {x, w, y}}, bindings,
               count);
}

qdnnStatus_t qdnnIntegerDotWith(qdnnHandle_t handle, qdnnTensorDescriptor_t a, qdnnTensorDescriptor_t b,
                                qdnnTensorDescriptor_t y, const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, a, b, y, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(a);
    CHECK_TENSOR(b);
    CHECK_TENSOR(y);
    return run(handle, (once){.kind = ONCE_INTEGER_DOT, .tensor = {a, b, y}}, bindings, count);
}

qdnnStatus_t qdnnIntegerTopWith(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                qdnnTensorDescriptor_t scores, qdnnTensorDescriptor_t indices,
                                const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, x, w, scores, indices, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_TENSOR(scores);
    CHECK_TENSOR(indices);
    return run(handle, (once){.kind = ONCE_INTEGER_TOP, .tensor = {x, w, scores, indices}}, bindings, count);
}

qdnnStatus_t qdnnIntegerConvWith(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                 qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w, qdnnTensorDescriptor_t y,
                                 const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, integer, x, w, y, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(integer);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_TENSOR(y);
    return run(handle, (once){.kind = ONCE_INTEGER_CONV, .integer = integer, .tensor = {x, w, y}}, bindings,
               count);
}

qdnnStatus_t qdnnNormWith(qdnnHandle_t handle, const qdnnNorm_t *norm, qdnnTensorDescriptor_t x,
                          qdnnTensorDescriptor_t y, qdnnQuantDescriptor_t quant,
                          const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, norm, x, y, quant, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(norm);
    CHECK_TENSOR(x);
    CHECK_TENSOR(y);
    if (quant)
        CHECK_NOT_NULL(quant);
    return run(handle, (once){.kind = ONCE_NORM, .norm = norm, .tensor = {x, y}, .quant = quant}, bindings,
               count);
}

qdnnStatus_t qdnnAttentionWith(qdnnHandle_t handle, const qdnnAttention_t *attention,
                               qdnnTensorDescriptor_t x, const qdnnKvCache_t *keys,
                               const qdnnKvCache_t *values, qdnnTensorDescriptor_t y,
                               const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, attention, x, keys, values, y, bindings, count);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(attention);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(keys);
    CHECK_TENSOR(y);
    const once c = {
        .kind = ONCE_ATTENTION, .attention = attention, .keys = keys, .values = values, .tensor = {x, y}};
    return run(handle, c, bindings, count);
}

static qdnnStatus_t run_lsq(qdnnHandle_t handle, once_kind kind, qdnnTensorDescriptor_t x,
                            qdnnTrainDescriptor_t train, const qdnnBinding_t *bindings, int count)
{
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(train);
    return run(handle, (once){.kind = kind, .tensor = {x}, .train = train}, bindings, count);
}

qdnnStatus_t qdnnLsqWith(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnTrainDescriptor_t train,
                         const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, x, train, bindings, count);
    return run_lsq(handle, ONCE_LSQ, x, train, bindings, count);
}

qdnnStatus_t qdnnLsqBackwardWith(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnTrainDescriptor_t train,
                                 const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, x, train, bindings, count);
    return run_lsq(handle, ONCE_LSQ_BACKWARD, x, train, bindings, count);
}
