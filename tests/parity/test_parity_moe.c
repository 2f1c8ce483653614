/* A mixture of experts from hidden states to results as one program, against host_ref: router, routing, gated product,
 * product, combining with a residual. Tokens are never duplicated: the first product takes the row of x of each slot. Every
 * number of rows gives the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/product_case.h"
#include "device/under_test.h"
#include "support/random.h"
#include "test.h"

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16
enum { TOKENS = 7, TENSORS_MAX = 24, BOUND_MAX = 12 };

typedef struct moe_case {
    const char *name, *sm, *format; /* a dequantize row */
    qdnnDataType_t x;
    bool tensor, prepacked;
    int64_t experts, slots, hidden, inner;
    qdnnScores_t scores;
    int64_t groups, kept;
    int64_t extent; /* of the groups of weights; 0: the format has none */
} moe_case;

static const moe_case moe_cases[] = {
    {"int4_exact", "sm_75", "dequantize_int4", F16, false, false, 8, 2, 64, 48, QDNN_SCORES_SOFTMAX, 1, 1,
     32},
    {"int4_tensor", "sm_80", "dequantize_int4", F16, true, false, 8, 2, 64, 48, QDNN_SCORES_SOFTMAX, 1, 1,
     32},
    {"int4_prepacked", "sm_90", "dequantize_int4", BF16, true, true, 6, 3, 64, 64, QDNN_SCORES_SIGMOID, 3, 2,
     32},
    {"q4_k_tensor", "sm_89", "dequantize_gguf_q4_k", BF16, true, false, 4, 2, 256, 256, QDNN_SCORES_SOFTMAX,
     1, 1, 0},
    {"q4_k_exact", "sm_100", "dequantize_gguf_q4_k", F32, false, false, 5, 4, 256, 256, QDNN_SCORES_SOFTMAX,
     1, 1, 0},
    {"mxfp4_exact", "sm_120", "dequantize_gguf_mxfp4", BF16, false, false, 8, 4, 96, 32, QDNN_SCORES_SOFTMAX,
     1, 1, 0},
    {"mxfp4_tensor", "sm_120", "dequantize_gguf_mxfp4", BF16, true, false, 8, 4, 96, 32, QDNN_SCORES_SOFTMAX,
     1, 1, 0},
    {"nf4_exact", "sm_80", "dequantize_nf4", F32, false, false, 12, 5, 40, 24, QDNN_SCORES_SIGMOID, 4, 3, 8},
};

/* One of the two products of experts: its weights and its plan. */
typedef struct product {
    product_case c;
    product_operands o;
    qdnnPlan_t plan;
} product;

typedef struct layer {
    const moe_case *c;
    qdnnHandle_t handle;
    product up, down;
    uint8_t *x;    /* [tokens, hidden] */
    float *router; /* [experts, hidden] */
    qdnnPlan_t logits, route, combine;
    ref_route_spec spec;
} layer;

/* ---- Plans ---- */

static qdnnTensorDescriptor_t describe(qdnnDataType_t type, int rank, const int64_t *dims)
{
    qdnnTensorDescriptor_t made = NULL;
    CHECK_QDNN(qdnnCreateTensorDescriptor(&made));
    CHECK_QDNN(qdnnSetTensorDescriptor(made, type, rank, dims, NULL));
    return made;
}

static qdnnTensorDescriptor_t matrix(qdnnDataType_t type, int64_t rows, int64_t columns)
{
    return describe(type, 2, (const int64_t[]){rows, columns});
}

static void destroy(qdnnTensorDescriptor_t *tensors, int count)
{
    for (int i = 0; i < count; i++)
        qdnnDestroyTensorDescriptor(tensors[i]);
}

static bool plan_product(const layer *l, product *p)
{
    const product_case *c = &p->c;
    const ref_product *r = &p->o.product;
    const int64_t stack[] = {c->experts, c->weights.dims[0], c->weights.dims[1]};
    qdnnTensorDescriptor_t t[] = {matrix(c->x, c->m / c->slots, r->k), describe(F32, 3, stack),
                                  matrix(c->y, c->m, c->gated ? r->outputs / 2 : r->outputs)};
    quant_descriptors weights = {0};
    qdnnMatmulDescriptor_t matmul = NULL;
    const struct {
        qdnnMatmulAttribute_t attribute;
        int64_t value;
    } values[] = {{QDNN_MATMUL_ALGORITHM, c->algorithm},   {QDNN_MATMUL_EXPERTS, c->experts},
                  {QDNN_MATMUL_SLOTS, c->slots},           {QDNN_MATMUL_GATED, c->gated},
                  {QDNN_MATMUL_ACTIVATION, c->activation}, {QDNN_MATMUL_PREPACKED, c->prepacked}};
    bool ok =
        CHECK_QDNN(qdnnCreateMatmulDescriptor(&matmul)) && quant_descriptors_make(&c->weights, &weights);
    for (size_t i = 0; i < sizeof values / sizeof values[0] && ok; i++)
        ok = CHECK_QDNN(qdnnSetMatmulAttribute(matmul, values[i].attribute, values[i].value));
    ok = ok && CHECK_QDNN(qdnnCreateMatmulPlan(l->handle, matmul, t[0], t[1], weights.quant, t[2], &p->plan));
    qdnnDestroyMatmulDescriptor(matmul);
    quant_descriptors_free(&weights);
    destroy(t, 3);
    return ok;
}

/* Weights of a stack, made by product_case with data of its own; K is the columns. */
static bool make_product(const layer *l, bool is_up, product *p)
{
    const moe_case *c = l->c;
    const int64_t n = is_up ? 2 * c->inner : c->hidden, k = is_up ? c->hidden : c->inner;
    p->c = (product_case){
        .weights = {.row = kernel_find(c->format),
                    .spec = kernel_spec_default(),
                    .granularity = c->extent ? QDNN_GRANULARITY_GROUP : QDNN_GRANULARITY_TENSOR,
                    .extent = c->extent,
                    .rank = 2,
                    .dims = {n, k},
                    .seed = is_up ? 3 : 11},
        .m = TOKENS * c->slots,
        .rows = -1,
        .x = c->x,
        .y = c->x,
        .activation = is_up ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE,
        .gated = is_up,
        .seed = 5,
        .algorithm = c->tensor ? QDNN_MATMUL_TENSOR : QDNN_MATMUL_EXACT,
        .sm = device_sm_number(c->sm),
        .experts = c->experts,
        .slots = is_up ? c->slots : 1};
    return product_operands_make(&p->c, &p->o);
}

static bool plan_router(layer *l)
{
    qdnnTensorDescriptor_t t[] = {matrix(l->c->x, TOKENS, l->c->hidden),
                                  matrix(F32, l->c->experts, l->c->hidden),
                                  matrix(F32, TOKENS, l->c->experts)};
    qdnnQuantDescriptor_t quant = NULL;
    qdnnMatmulDescriptor_t matmul = NULL;
    bool ok = CHECK_QDNN(qdnnCreateMatmulDescriptor(&matmul)) &&
              CHECK_QDNN(qdnnCreateQuantDescriptor(&quant)) &&
              CHECK_QDNN(qdnnSetQuantWeights(quant, QDNN_WEIGHTS_F32, 0)) &&
              CHECK_QDNN(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT)) &&
              CHECK_QDNN(qdnnCreateMatmulPlan(l->handle, matmul, t[0], t[1], quant, t[2], &l->logits));
    qdnnDestroyMatmulDescriptor(matmul);
    qdnnDestroyQuantDescriptor(quant);
    destroy(t, 3);
    return ok;
}

static bool plan_selection(layer *l)
{
    const moe_case *c = l->c;
    qdnnTensorDescriptor_t t[] = {matrix(F32, TOKENS, c->experts), matrix(c->x, TOKENS * c->slots, c->hidden),
                                  matrix(c->x, TOKENS, c->hidden)};
    qdnnSelectDescriptor_t select = NULL;
    const struct {
        qdnnSelectAttribute_t attribute;
        int64_t value;
    } values[] = {{QDNN_SELECT_TOP, c->slots},
                  {QDNN_SELECT_SCORES, c->scores},
                  {QDNN_SELECT_EXPERT_GROUPS, c->groups},
                  {QDNN_SELECT_KEPT_GROUPS, c->kept},
                  {QDNN_SELECT_RENORMALIZE, 1},
                  {QDNN_SELECT_RESIDUAL, 1}};
    bool ok = CHECK_QDNN(qdnnCreateSelectDescriptor(&select));
    for (size_t i = 0; i < sizeof values / sizeof values[0] && ok; i++)
        ok = CHECK_QDNN(qdnnSetSelectAttribute(select, values[i].attribute, values[i].value));
    ok = ok && CHECK_QDNN(qdnnSetSelectFactor(select, 2.5f)) &&
         CHECK_QDNN(qdnnCreateRoutePlan(l->handle, t[0], select, &l->route)) &&
         CHECK_QDNN(qdnnCreateCombinePlan(l->handle, t[1], select, t[2], &l->combine));
    qdnnDestroySelectDescriptor(select);
    destroy(t, 3);
    return ok;
}

/* In [-most, most). */
static float random_number(uint64_t *state, float most)
{
    return ((float)(random_next(state) >> 40) * 0x1p-23f - 1.0f) * most;
}

static bool make_layer(qdnnHandle_t handle, const moe_case *c, layer *l)
{
    uint64_t state = 17;
    *l = (layer){.c = c,
                 .handle = handle,
                 .x = calloc(TOKENS * (size_t)c->hidden, ref_scalar_size(c->x)),
                 .router = calloc((size_t)(c->experts * c->hidden), sizeof(float)),
                 .spec = {F32, c->experts, c->slots, c->scores, c->groups, c->kept, QDNN_GROUP_SCORE_LARGEST,
                          true, 0, 2.5f}};
    if (!CHECK(l->x && l->router))
        return false;
    for (int64_t i = 0; i < TOKENS * c->hidden; i++)
        ref_scalar_store(c->x, l->x, i, random_number(&state, 1));
    for (int64_t i = 0; i < c->experts * c->hidden; i++)
        l->router[i] = random_number(&state, 0.5f);
    return make_product(l, true, &l->up) && make_product(l, false, &l->down) && plan_router(l) &&
           plan_selection(l);
}

static void free_layer(layer *l)
{
    qdnnPlan_t plans[] = {l->up.plan, l->down.plan, l->logits, l->route, l->combine};
    for (int i = 0; i < 5; i++)
        qdnnDestroyPlan(plans[i]);
    product_operands_free(&l->up.o);
    product_operands_free(&l->down.o);
    free(l->x);
    free(l->router);
}

/* ---- By host_ref, one step after another ---- */

static void run_product(const product *p, const void *x, const int32_t *expert, void *y)
{
    ref_product_arrays a = product_arrays(&p->o, y);
    a.x = x;
    a.expert_index = expert;
    if (p->c.algorithm == QDNN_MATMUL_TENSOR)
        ref_product_tensor_on(&p->o.product, &a, p->c.sm);
    else
        ref_product_exact(&p->o.product, &a);
}

static void logits_of(const layer *l, float *logits)
{
    const ref_product p = {.m = TOKENS,
                           .k = l->c->hidden,
                           .outputs = l->c->experts,
                           .weights = {.data = F32, .storage = F32, .group_size = 1, .no_scale = true},
                           .x = l->c->x,
                           .y = F32,
                           .x_stride = l->c->hidden,
                           .y_stride = l->c->experts};
    const ref_product_arrays a = {.x = l->x, .weights = {.codes = l->router}, .y = logits};
    ref_product_exact(&p, &a);
}

/* y of all tokens. */
static uint8_t *expected_of(const layer *l)
{
    const moe_case *c = l->c;
    const size_t bytes = ref_scalar_size(c->x), row = (size_t)c->hidden * bytes,
                 slots = TOKENS * (size_t)c->slots;
    const ref_combine_spec combine = {c->x, c->x, c->slots};
    float *logits = calloc(TOKENS * (size_t)c->experts, sizeof *logits),
          *weight = calloc(slots, sizeof *weight);
    int32_t *expert = calloc(slots, sizeof *expert);
    uint8_t *h = calloc(slots * (size_t)c->inner, bytes), *d = calloc(slots, row), *y = calloc(TOKENS, row);
    if (CHECK(logits && weight && expert && h && d && y)) {
        logits_of(l, logits);
        for (int64_t i = 0; i < TOKENS; i++)
            ref_route(&l->spec, logits + i * c->experts, NULL, expert + i * c->slots, weight + i * c->slots);
        run_product(&l->up, l->x, expert, h);
        run_product(&l->down, h, expert, d);
        for (size_t i = 0; i < TOKENS; i++)
            ref_combine(&combine, c->hidden, d + i * (size_t)c->slots * row, weight + i * (size_t)c->slots,
                        l->x + i * row, y + i * row);
    }
    free(logits);
    free(weight);
    free(expert);
    free(h);
    free(d);
    return y;
}

/* ---- As a program ---- */

typedef struct program {
    qdnnProgram_t program;
    device_buffer buffers[TENSORS_MAX];
    const void *pointers[TENSORS_MAX];
    int count;
    bool ok;
} program;

static int add_tensor(program *p, qdnnProgramPlace_t place, bool by_rows, qdnnTensorDescriptor_t shape)
{
    char name[16];
    int tensor = 0;
    snprintf(name, sizeof name, "t%d", p->count);
    p->ok = p->ok && CHECK_QDNN(qdnnAddTensorToProgram(p->program, name, place, shape, by_rows, &tensor));
    qdnnDestroyTensorDescriptor(shape);
    p->count = tensor + 1;
    return tensor;
}

/* The caller's memory, with these bytes in it. */
static int external(const layer *l, program *p, bool by_rows, qdnnTensorDescriptor_t shape, const void *host,
                    size_t bytes)
{
    const int tensor = add_tensor(p, QDNN_PROGRAM_EXTERNAL, by_rows, shape);
    p->ok = p->ok && device_buffer_make(l->handle, BUFFER_BANDS, bytes, 0, &p->buffers[tensor]) &&
            (!host || device_buffer_write(&p->buffers[tensor], host));
    p->pointers[tensor] = device_buffer_at(&p->buffers[tensor]);
    return tensor;
}

static int between(program *p, qdnnDataType_t type, int64_t rows, int64_t columns)
{
    return add_tensor(p, QDNN_PROGRAM_INTERMEDIATE, true, matrix(type, rows, columns));
}

static void add_step(program *p, const char *name, qdnnPlan_t plan, int64_t per_row,
                     const qdnnProgramBinding_t *bound, int count)
{
    p->ok = p->ok && CHECK_QDNN(qdnnAddPlanToProgram(p->program, name, plan, per_row, bound, count));
}

static void add_product(const layer *l, program *p, product *of, const char *name, int x, int expert, int y)
{
    qdnnProgramBinding_t bound[BOUND_MAX] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_EXPERT_INDEX, expert, 0}, {QDNN_OPERAND_Y, y, 0}};
    int count = 3;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (of->o.weights.reads >> i & 1 && of->o.host[i]) {
            const int64_t bytes = (int64_t)of->o.bytes[i];
            const int tensor =
                external(l, p, false, describe(QDNN_DATA_U8, 1, &bytes), of->o.host[i], (size_t)bytes);
            bound[count++] = (qdnnProgramBinding_t){(qdnnOperand_t)i, tensor, 0};
        }
    add_step(p, name, of->plan, l->c->slots, bound, count);
}

/* The tensor of y. */
static int build(layer *l, program *p)
{
    const moe_case *c = l->c;
    const size_t bytes = ref_scalar_size(c->x), all = TOKENS * (size_t)c->hidden * bytes;
    p->ok = CHECK_QDNN(qdnnCreateProgram(l->handle, TOKENS, &p->program));
    const int x = external(l, p, true, matrix(c->x, TOKENS, c->hidden), l->x, all);
    const int router = external(l, p, false, matrix(F32, c->experts, c->hidden), l->router,
                                (size_t)(c->experts * c->hidden) * sizeof(float));
    const int y = external(l, p, true, matrix(c->x, TOKENS, c->hidden), NULL, all);
    const int logits = between(p, F32, TOKENS, c->experts),
              expert = between(p, QDNN_DATA_I32, TOKENS, c->slots),
              weight = between(p, F32, TOKENS, c->slots), h = between(p, c->x, TOKENS * c->slots, c->inner),
              d = between(p, c->x, TOKENS * c->slots, c->hidden);
    const qdnnProgramBinding_t of_logits[] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_CODES, router, 0}, {QDNN_OPERAND_Y, logits, 0}};
    const qdnnProgramBinding_t of_route[] = {{QDNN_OPERAND_LOGITS, logits, 0},
                                             {QDNN_OPERAND_INDEX, expert, 0},
                                             {QDNN_OPERAND_WEIGHT_OUT, weight, 0}};
    const qdnnProgramBinding_t of_combine[] = {{QDNN_OPERAND_X, d, 0},
                                               {QDNN_OPERAND_ROW_WEIGHT, weight, 0},
                                               {QDNN_OPERAND_RESIDUAL, x, 0},
                                               {QDNN_OPERAND_Y, y, 0}};
    add_step(p, "router", l->logits, 1, of_logits, 3);
    add_step(p, "route", l->route, 1, of_route, 3);
    add_product(l, p, &l->up, "gate and up", x, expert, h);
    add_product(l, p, &l->down, "down", h, expert, d);
    add_step(p, "combine", l->combine, 1, of_combine, 4);
    p->ok = p->ok && CHECK_QDNN(qdnnCompileProgram(p->program));
    return y;
}

/* Runs so many rows, and compares those of y and what must not have changed behind them. */
static void run(const layer *l, program *p, int y, int64_t rows, void *arena, size_t arena_bytes,
                const uint8_t *expected)
{
    const size_t row = (size_t)l->c->hidden * ref_scalar_size(l->c->x), all = TOKENS * row;
    uint8_t *want = malloc(all);
    if (CHECK(want != NULL)) {
        memset(want, 0x5A, all);
        test_push_note("%lld rows", (long long)rows);
        bool ok = device_buffer_write(&p->buffers[y], want) &&
                  CHECK_QDNN(qdnnRunProgram(l->handle, p->program, p->pointers, p->count, rows, arena,
                                            arena_bytes)) &&
                  CHECK_QDNN(qdnnSynchronize(l->handle));
        memcpy(want, expected, (size_t)rows * row);
        if (ok)
            device_buffer_check(&p->buffers[y], want, "y");
        test_pop_note();
    }
    free(want);
}

static void run_layer(layer *l)
{
    static const int64_t rows[] = {TOKENS, 1, 0, 4};
    program p = {0};
    qdnnProgramInfo_t info = {.size = sizeof info};
    void *arena = NULL;
    uint8_t *expected = expected_of(l);
    if (l->c->prepacked) {
        product_prepack(&l->up.c, &l->up.o);
        product_prepack(&l->down.c, &l->down.o);
        l->up.c.prepacked = l->down.c.prepacked = true;
    }
    if (expected && plan_product(l, &l->up) && plan_product(l, &l->down)) {
        const int y = build(l, &p);
        if (p.ok && CHECK_QDNN(qdnnGetProgramInfo(p.program, &info)) &&
            CHECK_QDNN(qdnnMalloc(l->handle, &arena, info.arenaBytes)))
            for (int i = 0; i < 4; i++)
                run(l, &p, y, rows[i], arena, info.arenaBytes, expected);
    }
    qdnnDestroyProgram(p.program);
    qdnnFree(l->handle, arena);
    for (int i = 0; i < TENSORS_MAX; i++)
        device_buffer_free(&p.buffers[i]);
    free(expected);
}

DEVICE_ROWS(ParityMoe, Program, moe_cases)
{
    const moe_case *c = &moe_cases[index];
    layer l = {0};
    if (c->tensor)
        NEED_SM(c->sm);
    qdnnHandle_t handle = device_begin(c->sm, index, "all");
    if (handle && make_layer(handle, c, &l))
        run_layer(&l);
    free_layer(&l);
    device_end(handle);
}
