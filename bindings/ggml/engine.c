/* The engine: a handle behind a lock, plans by what they were made from, scratch memory. */
#include "engine.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

typedef struct kept_plan {
    plan_request request;
    qdnnPlan_t plan; /* null: qdnn refused it */
    size_t workspace;
    char why[256];
    struct kept_plan *next;
} kept_plan;

typedef struct memory {
    void *at;
    size_t bytes;
} memory;

struct engine {
    pthread_mutex_t lock;
    qdnnHandle_t handle;
    bool tensor;
    kept_plan *plans[BUCKETS];
    memory workspace, scratch[SCRATCH_SLOTS];
};

static engine the_engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void last_error(char *text, size_t size, qdnnStatus_t status)
{
    char message[200];
    qdnnGetLastErrorString(message, sizeof message);
    snprintf(text, size, "%s: %s", qdnnGetErrorString(status), message);
}

engine *engine_get(const char **why)
{
    static char reason[256];
    static bool tried;
    engine *e = &the_engine;
    pthread_mutex_lock(&e->lock);
    if (!tried) {
        const char *mode = getenv("QDNN_GGML_MODE");
        tried = true;
        e->tensor = mode && strcmp(mode, "tensor") == 0;
        if (mode && !e->tensor && strcmp(mode, "exact") != 0)
            fprintf(stderr, "qdnn: QDNN_GGML_MODE is '%s'; it must be exact or tensor: using exact\n", mode);
        qdnnStatus_t status = qdnnCreate(&e->handle);
        if (status != QDNN_STATUS_SUCCESS)
            last_error(reason, sizeof reason, status);
    }
    pthread_mutex_unlock(&e->lock);
    *why = reason;
    return e->handle ? e : NULL;
}

qdnnHandle_t engine_lock(engine *e)
{
    pthread_mutex_lock(&e->lock);
    return e->handle;
}

void engine_unlock(engine *e)
{
    pthread_mutex_unlock(&e->lock);
}

bool engine_is_tensor(const engine *e)
{
    return e->tensor;
}

bool run_declines(run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
    return false;
}

/* ---- Memory ---- */

/* Grows and never shrinks. What the device still does with the old part is waited for. */
static void *at_least(engine *e, memory *m, size_t bytes)
{
    if (bytes <= m->bytes)
        return m->at;
    size_t more = bytes + bytes / 4;
    qdnnFree(e->handle, m->at);
    *m = (memory){0};
    if (qdnnMalloc(e->handle, &m->at, more) == QDNN_STATUS_SUCCESS)
        m->bytes = more;
    return m->at;
}

void *run_scratch(run *r, int slot, size_t bytes)
{
    return r->dry ? NULL : at_least(r->engine, &r->engine->scratch[slot], bytes);
}

bool run_copy(run *r, void *to, const void *from, size_t bytes)
{
    if (r->dry || bytes == 0)
        return true;
    qdnnStatus_t status = qdnnCopyOnDevice(r->engine->handle, to, from, bytes);
    if (status == QDNN_STATUS_SUCCESS)
        return true;
    last_error(r->why, sizeof r->why, status);
    return false;
}

/* ---- Plans ---- */

static size_t bucket_of(const plan_request *request)
{
    uint64_t hash = (uint64_t)(uintptr_t)request->make;
    for (int i = 0; i < PLAN_NUMBERS; i++)
        hash = (hash ^ (uint64_t)request->number[i]) * UINT64_C(0x9E3779B97F4A7C15) ^ hash >> 29;
    return hash % BUCKETS;
}

static kept_plan *make_plan(engine *e, const plan_request *request)
{
    kept_plan *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->request = *request;
    qdnnStatus_t status = request->make(e->handle, request->number, &k->plan);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnGetPlanWorkspaceSize(k->plan, &k->workspace);
    if (status != QDNN_STATUS_SUCCESS)
        last_error(k->why, sizeof k->why, status);
    return k;
}

static kept_plan *find_plan(engine *e, const plan_request *request)
{
    kept_plan **bucket = &e->plans[bucket_of(request)];
    for (kept_plan *k = *bucket; k; k = k->next)
        if (k->request.make == request->make &&
            memcmp(k->request.number, request->number, sizeof request->number) == 0)
            return k;
    kept_plan *k = make_plan(e, request);
    if (k) {
        k->next = *bucket;
        *bucket = k;
    }
    return k;
}

bool run_plan(run *r, const plan_request *request, int64_t rows, const qdnnBinding_t *bindings, int count)
{
    engine *e = r->engine;
    kept_plan *k = find_plan(e, request);
    if (!k)
        return run_declines(r, "no host memory for a plan");
    if (!k->plan)
        return run_declines(r, "%s", k->why);
    if (r->dry)
        return true;
    void *workspace = at_least(e, &e->workspace, k->workspace);
    qdnnStatus_t status =
        rows == ALL_ROWS
            ? qdnnExecute(e->handle, k->plan, bindings, count, workspace, e->workspace.bytes)
            : qdnnExecuteRows(e->handle, k->plan, rows, bindings, count, workspace, e->workspace.bytes);
    if (status != QDNN_STATUS_SUCCESS)
        last_error(r->why, sizeof r->why, status);
    return status == QDNN_STATUS_SUCCESS;
}

int64_t planned_rows(int64_t rows)
{
    int64_t planned = 1;
    while (planned < rows)
        planned *= 2;
    return planned;
}

/* ---- Descriptors ---- */

static void note(shapes *s, qdnnStatus_t status)
{
    if (s->status == QDNN_STATUS_SUCCESS)
        s->status = status;
}

qdnnTensorDescriptor_t shapes_add(shapes *s, qdnnDataType_t type, int rank, const int64_t *dims,
                                  const int64_t *strides)
{
    qdnnTensorDescriptor_t *t = &s->tensor[s->n++];
    note(s, qdnnCreateTensorDescriptor(t));
    if (*t)
        note(s, qdnnSetTensorDescriptor(*t, type, rank, dims, strides));
    return *t;
}

qdnnTensorDescriptor_t shapes_matrix(shapes *s, qdnnDataType_t type, int64_t rows, int64_t columns,
                                     int64_t stride)
{
    return shapes_add(s, type, 2, (int64_t[]){rows, columns}, (int64_t[]){stride, 1});
}

qdnnQuantDescriptor_t shapes_weights(shapes *s, qdnnWeights_t weights)
{
    note(s, qdnnCreateQuantDescriptor(&s->quant));
    if (s->quant)
        note(s, qdnnSetQuantWeights(s->quant, weights, 0));
    return s->quant;
}

qdnnStatus_t shapes_free(shapes *s, qdnnStatus_t status)
{
    for (int i = 0; i < s->n; i++)
        qdnnDestroyTensorDescriptor(s->tensor[i]);
    qdnnDestroyQuantDescriptor(s->quant);
    return s->status == QDNN_STATUS_SUCCESS ? status : s->status;
}

/* ---- Tensors of ggml ---- */

static const struct {
    enum ggml_type type;
    qdnnWeights_t weights;
    qdnnDataType_t data; /* 0: not plain numbers */
} types[] = {
    {GGML_TYPE_F32, QDNN_WEIGHTS_F32, QDNN_DATA_F32},    {GGML_TYPE_F16, QDNN_WEIGHTS_F16, QDNN_DATA_F16},
    {GGML_TYPE_BF16, QDNN_WEIGHTS_BF16, QDNN_DATA_BF16}, {GGML_TYPE_Q4_0, QDNN_WEIGHTS_GGUF_Q4_0, 0},
    {GGML_TYPE_Q4_1, QDNN_WEIGHTS_GGUF_Q4_1, 0},         {GGML_TYPE_Q5_0, QDNN_WEIGHTS_GGUF_Q5_0, 0},
    {GGML_TYPE_Q5_1, QDNN_WEIGHTS_GGUF_Q5_1, 0},         {GGML_TYPE_Q8_0, QDNN_WEIGHTS_GGUF_Q8_0, 0},
    {GGML_TYPE_Q2_K, QDNN_WEIGHTS_GGUF_Q2_K, 0},         {GGML_TYPE_Q3_K, QDNN_WEIGHTS_GGUF_Q3_K, 0},
    {GGML_TYPE_Q4_K, QDNN_WEIGHTS_GGUF_Q4_K, 0},         {GGML_TYPE_Q5_K, QDNN_WEIGHTS_GGUF_Q5_K, 0},
    {GGML_TYPE_Q6_K, QDNN_WEIGHTS_GGUF_Q6_K, 0},         {GGML_TYPE_IQ4_NL, QDNN_WEIGHTS_GGUF_IQ4_NL, 0},
    {GGML_TYPE_IQ4_XS, QDNN_WEIGHTS_GGUF_IQ4_XS, 0},     {GGML_TYPE_TQ1_0, QDNN_WEIGHTS_GGUF_TQ1_0, 0},
    {GGML_TYPE_TQ2_0, QDNN_WEIGHTS_GGUF_TQ2_0, 0},       {GGML_TYPE_MXFP4, QDNN_WEIGHTS_GGUF_MXFP4, 0},
    {GGML_TYPE_NVFP4, QDNN_WEIGHTS_GGUF_NVFP4, 0},       {GGML_TYPE_Q1_0, QDNN_WEIGHTS_GGUF_Q1_0, 0},
    {GGML_TYPE_Q2_0, QDNN_WEIGHTS_GGUF_Q2_0, 0},         {GGML_TYPE_IQ1_S, QDNN_WEIGHTS_GGUF_IQ1_S, 0},
    {GGML_TYPE_IQ1_M, QDNN_WEIGHTS_GGUF_IQ1_M, 0},       {GGML_TYPE_IQ2_XXS, QDNN_WEIGHTS_GGUF_IQ2_XXS, 0},
    {GGML_TYPE_IQ2_XS, QDNN_WEIGHTS_GGUF_IQ2_XS, 0},     {GGML_TYPE_IQ2_S, QDNN_WEIGHTS_GGUF_IQ2_S, 0},
    {GGML_TYPE_IQ3_XXS, QDNN_WEIGHTS_GGUF_IQ3_XXS, 0},   {GGML_TYPE_IQ3_S, QDNN_WEIGHTS_GGUF_IQ3_S, 0},
};
enum { TYPES = sizeof types / sizeof types[0] };

bool plain_type(enum ggml_type type, qdnnDataType_t *out)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type && types[i].data) {
            *out = types[i].data;
            return true;
        }
    return false;
}

bool weights_type(enum ggml_type type, qdnnWeights_t *out)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type) {
            *out = types[i].weights;
            return true;
        }
    return false;
}

bool is_packed_row(const struct ggml_tensor *t)
{
    return t->nb[0] == ggml_type_size(t->type);
}

bool rows_are_uniform(const struct ggml_tensor *t)
{
    return (t->ne[2] == 1 || t->nb[2] == t->nb[1] * (size_t)t->ne[1]) &&
           (t->ne[3] == 1 || t->nb[3] == t->nb[2] * (size_t)t->ne[2]);
}

void *row_at(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3)
{
    return (char *)t->data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
}

/* ---- Operations ---- */

static const struct {
    enum ggml_op op;
    operation *run;
} operations[] = {
    {GGML_OP_MUL_MAT, op_mul_mat},   {GGML_OP_MUL_MAT_ID, op_mul_mat_id},
    {GGML_OP_GET_ROWS, op_get_rows}, {GGML_OP_SOFT_MAX, op_soft_max},
    {GGML_OP_TOP_K, op_top_k},       {GGML_OP_ARGMAX, op_argmax},
    {GGML_OP_ARGSORT, op_argsort},   {GGML_OP_CPY, op_copy},
    {GGML_OP_CONT, op_copy},         {GGML_OP_DUP, op_copy},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* Views of what is there already. */
static bool is_view(enum ggml_op op)
{
    return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE ||
           op == GGML_OP_TRANSPOSE;
}

bool run_node(run *r, const struct ggml_tensor *t)
{
    if (is_view(t->op) || (!r->dry && ggml_is_empty(t)))
        return true;
    for (int i = 0; i < OPERATIONS; i++)
        if (operations[i].op == t->op)
            return operations[i].run(r, t);
    return run_declines(r, "the operation is none of this backend's");
}
