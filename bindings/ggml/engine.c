/* The engine: a handle behind a lock, plans by what they were made from, scratch memory. */
#include "engine.h"
#include "keep.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory {
    void *at;
    size_t bytes;
} memory;

struct engine {
    pthread_mutex_t lock;
    qdnnHandle_t handle;
    bool tensor;
    memory workspace, scratch[SCRATCH_SLOTS];
};

static engine the_engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

void qdnn_reason(char *text, size_t size, qdnnStatus_t status)
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
            qdnn_reason(reason, sizeof reason, status);
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

qdnnHandle_t engine_handle(engine *e)
{
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
    qdnn_reason(r->why, sizeof r->why, status);
    return false;
}

/* ---- Constants ---- */

typedef struct constant {
    const void *at; /* on the device */
    size_t bytes;
    struct constant *next;
    unsigned char content[];
} constant;

static constant *make_constant(engine *e, const void *content, size_t bytes)
{
    void *at;
    constant *c = malloc(sizeof *c + bytes);
    if (!c || qdnnMalloc(e->handle, &at, bytes) != QDNN_STATUS_SUCCESS) {
        free(c);
        return NULL;
    }
    *c = (constant){.at = at, .bytes = bytes};
    memcpy(c->content, content, bytes);
    if (qdnnCopyToDevice(e->handle, at, content, bytes) == QDNN_STATUS_SUCCESS)
        return c;
    qdnnFree(e->handle, at);
    free(c);
    return NULL;
}

const void *run_constant(run *r, const void *content, size_t bytes)
{
    static constant *constants; /* behind the lock */
    for (constant *c = constants; c; c = c->next)
        if (c->bytes == bytes && memcmp(c->content, content, bytes) == 0)
            return c->at;
    constant *c = make_constant(r->engine, content, bytes);
    if (!c)
        return NULL;
    c->next = constants;
    constants = c;
    return c->at;
}

const void *run_iota(run *r, int64_t count)
{
    static const void *at; /* behind the lock */
    static int64_t known;
    if (count <= known)
        return at;
    int64_t size = count < 4096 ? 4096 : planned_rows(count);
    int32_t *numbers = malloc((size_t)size * sizeof *numbers);
    if (!numbers)
        return NULL;
    for (int64_t i = 0; i < size; i++)
        numbers[i] = (int32_t)i;
    const void *made = run_constant(r, numbers, (size_t)size * sizeof *numbers);
    free(numbers);
    if (made)
        at = made, known = size;
    return made;
}

/* ---- Plans ---- */

static void *make_plan(qdnnHandle_t handle, const void *key, char why[WHY_BYTES])
{
    const plan_request *request = key;
    qdnnPlan_t plan = NULL;
    qdnnStatus_t status = request->make(handle, request->number, &plan);
    if (status != QDNN_STATUS_SUCCESS)
        qdnn_reason(why, WHY_BYTES, status);
    return plan;
}

static void destroy_plan(void *plan)
{
    qdnnDestroyPlan(plan);
}

static keeper plans = {.key_bytes = sizeof(plan_request), .make = make_plan, .destroy = destroy_plan};

bool run_plan(run *r, const plan_request *request, int64_t rows, const qdnnBinding_t *bindings, int count)
{
    engine *e = r->engine;
    const kept *k = keep(&plans, e->handle, request);
    size_t bytes;
    if (!k)
        return run_declines(r, "no host memory for a plan");
    if (!k->object)
        return run_declines(r, "%s", k->why);
    if (r->dry)
        return true;
    qdnnStatus_t status = qdnnGetPlanWorkspaceSize(k->object, &bytes);
    void *workspace = status == QDNN_STATUS_SUCCESS ? at_least(e, &e->workspace, bytes) : NULL;
    if (status == QDNN_STATUS_SUCCESS)
        status =
            rows == ALL_ROWS
                ? qdnnExecute(e->handle, k->object, bindings, count, workspace, e->workspace.bytes)
                : qdnnExecuteRows(e->handle, k->object, rows, bindings, count, workspace, e->workspace.bytes);
    if (status != QDNN_STATUS_SUCCESS)
        qdnn_reason(r->why, sizeof r->why, status);
    return status == QDNN_STATUS_SUCCESS;
}

int64_t planned_rows(int64_t rows)
{
    int64_t planned = 1;
    while (planned < rows)
        planned *= 2;
    return planned;
}

/* ---- Operations ---- */

static const struct {
    enum ggml_op op;
    operation *run;
} operations[] = {
    {GGML_OP_MUL_MAT, op_mul_mat},
    {GGML_OP_MUL_MAT_ID, op_mul_mat_id},
    {GGML_OP_FLASH_ATTN_EXT, op_flash_attention},
    {GGML_OP_ROPE, op_rope},
    {GGML_OP_ROPE_BACK, op_rope},
    {GGML_OP_RMS_NORM, op_norm},
    {GGML_OP_NORM, op_norm},
    {GGML_OP_GROUP_NORM, op_group_norm},
    {GGML_OP_L2_NORM, op_sums},
    {GGML_OP_SUM_ROWS, op_sums},
    {GGML_OP_MEAN, op_sums},
    {GGML_OP_SUM, op_sums},
    {GGML_OP_ADD, op_binary},
    {GGML_OP_ADD1, op_binary},
    {GGML_OP_SUB, op_binary},
    {GGML_OP_MUL, op_binary},
    {GGML_OP_DIV, op_binary},
    {GGML_OP_ADD_ID, op_add_id},
    {GGML_OP_SCALE, op_each},
    {GGML_OP_CLAMP, op_each},
    {GGML_OP_SQR, op_each},
    {GGML_OP_SQRT, op_each},
    {GGML_OP_LOG, op_each},
    {GGML_OP_SIN, op_each},
    {GGML_OP_COS, op_each},
    {GGML_OP_LEAKY_RELU, op_each},
    {GGML_OP_UNARY, op_unary},
    {GGML_OP_GLU, op_glu},
    {GGML_OP_GET_ROWS, op_get_rows},
    {GGML_OP_SET_ROWS, op_set_rows},
    {GGML_OP_CPY, op_copy},
    {GGML_OP_CONT, op_copy},
    {GGML_OP_DUP, op_copy},
    {GGML_OP_CONCAT, op_concat},
    {GGML_OP_REPEAT, op_repeat},
    {GGML_OP_SET, op_set},
    {GGML_OP_ACC, op_set},
    {GGML_OP_FILL, op_fill},
    {GGML_OP_PAD, op_pad},
    {GGML_OP_ROLL, op_roll},
    {GGML_OP_TRI, op_triangle},
    {GGML_OP_DIAG, op_triangle},
    {GGML_OP_DIAG_MASK_INF, op_triangle},
    {GGML_OP_ARANGE, op_arange},
    {GGML_OP_CUMSUM, op_running_sums},
    {GGML_OP_SSM_CONV, op_convolution},
    {GGML_OP_SSM_SCAN, op_scan},
    {GGML_OP_GATED_DELTA_NET, op_delta},
    {GGML_OP_SOFT_MAX, op_soft_max},
    {GGML_OP_TOP_K, op_top_k},
    {GGML_OP_ARGMAX, op_argmax},
    {GGML_OP_ARGSORT, op_argsort},
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
