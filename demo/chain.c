/* A chain of products as in a transformer: an attention output with its residual, a SwiGLU, its down
 * projection, and a mixture of experts, all with quantized weights. It runs for one token and for a batch,
 * each time by one call of a schedule, and every byte is compared with host_ref. */
#include "demo/demo.h"

#include <qdnn/qdnn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 256, INNER = 512, BATCH = 16, EXPERTS = 8, STAGES = 4, OPERANDS = 10 };

/* One product of the chain. The x of the first is the input; that of the others is the previous result. */
typedef struct stage_facts {
    const char *name, *format;
    qdnnDataType_t storage;
    int64_t group_size;
    int64_t n, k, experts;
    bool gated, residual; /* the residual is x itself */
} stage_facts;

/* clang-format off */
static const stage_facts facts[STAGES] = {
    {"attention output + residual", "INT4, groups of 64", QDNN_DATA_I4,     64, HIDDEN, HIDDEN, 0,       false, true},
    {"SwiGLU, gate and up",         "NF4, groups of 64",  QDNN_DATA_NF4,    64, INNER,  HIDDEN, 0,       true,  false},
    {"down",                        "FP8, groups of 128", QDNN_DATA_F8E4M3, 128, HIDDEN, INNER, 0,       false, false},
    {"8 experts, router weights",   "INT4, groups of 64", QDNN_DATA_I4,     64, HIDDEN, HIDDEN, EXPERTS, false, false},
};
/* clang-format on */

/* The weights, before and after quantization, on the host and on the device. */
typedef struct stage {
    const stage_facts *f;
    int64_t outputs, count;         /* rows of one expert's matrix; number of experts */
    size_t code_bytes, scale_bytes; /* of one expert */
    float *w, *scale;
    uint8_t *codes;
    void *device_codes, *device_scale;
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan;
    float y[BATCH * INNER], token[INNER]; /* the results of the batch, and of its first row alone */
    void *device_y;
} stage;

typedef struct chain {
    qdnnHandle_t handle;
    stage stages[STAGES];
    float x[BATCH * HIDDEN], router[BATCH];
    int32_t expert[BATCH];
    void *device_x, *device_router, *device_expert;
} chain;

static ref_quant_spec spec_of(const stage_facts *f)
{
    return (ref_quant_spec){.data = QDNN_DATA_F32,
                            .storage = f->storage,
                            .group_size = f->group_size,
                            .floor = REF_DEFAULT_FLOOR};
}

/* ---- Weights ---- */

/* Each expert's matrix is quantized by itself; its arrays follow those of the previous expert. */
static bool quantize(chain *c, stage *s, qdnnTensorDescriptor_t matrix, void *device_w)
{
    const int64_t elements = s->outputs * s->f->k;
    for (int64_t e = 0; e < s->count; e++) {
        char *codes = (char *)s->device_codes + (size_t)e * s->code_bytes;
        char *scale = (char *)s->device_scale + (size_t)e * s->scale_bytes;
        if (!ok(qdnnCopyToDevice(c->handle, device_w, s->w + e * elements, (size_t)elements * 4)) ||
            !ok(qdnnComputeScales(c->handle, matrix, device_w, s->quant, scale, NULL)) ||
            !ok(qdnnQuantize(c->handle, matrix, device_w, s->quant, scale, NULL, codes)))
            return false;
    }
    return ok(qdnnCopyToHost(c->handle, s->codes, s->device_codes, (size_t)s->count * s->code_bytes)) &&
           ok(qdnnCopyToHost(c->handle, s->scale, s->device_scale, (size_t)s->count * s->scale_bytes));
}

static bool make_buffers(chain *c, stage *s)
{
    const size_t count = (size_t)s->count, elements = (size_t)(s->outputs * s->f->k);
    s->w = malloc(count * elements * sizeof(float));
    s->codes = malloc(count * s->code_bytes);
    s->scale = malloc(count * s->scale_bytes);
    if (!s->w || !s->codes || !s->scale) {
        fprintf(stderr, "demo: out of memory\n");
        return false;
    }
    fill_bell(s->w, (int64_t)(count * elements), (uint32_t)(s - c->stages) + 1, 0.25f);
    return ok(qdnnMalloc(c->handle, &s->device_codes, count * s->code_bytes)) &&
           ok(qdnnMalloc(c->handle, &s->device_scale, count * s->scale_bytes)) &&
           ok(qdnnMalloc(c->handle, &s->device_y, (size_t)(BATCH * s->f->n) * sizeof(float)));
}

static bool make_weights(chain *c, stage *s, const stage_facts *f)
{
    qdnnTensorDescriptor_t matrix = NULL;
    void *device_w = NULL;
    s->f = f;
    s->outputs = f->gated ? 2 * f->n : f->n;
    s->count = f->experts ? f->experts : 1;
    bool done =
        ok(qdnnCreateTensorDescriptor(&matrix)) && ok(qdnnCreateQuantDescriptor(&s->quant)) &&
        ok(qdnnSetTensorDescriptor(matrix, QDNN_DATA_F32, 2, (const int64_t[]){s->outputs, f->k}, NULL)) &&
        ok(qdnnSetQuantDescriptor(s->quant, f->storage, QDNN_GRANULARITY_GROUP, f->group_size)) &&
        ok(qdnnGetQuantizedSizes(s->quant, matrix, &s->code_bytes, &s->scale_bytes, NULL)) &&
        make_buffers(c, s) && ok(qdnnMalloc(c->handle, &device_w, (size_t)(s->outputs * f->k) * 4)) &&
        quantize(c, s, matrix, device_w);
    qdnnDestroyTensorDescriptor(matrix);
    return (!device_w || ok(qdnnFree(c->handle, device_w))) && done;
}

/* ---- Products ---- */

static bool set_attributes(const stage_facts *f, qdnnMatmulDescriptor_t matmul)
{
    return ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_GATED, f->gated)) &&
           ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ACTIVATION,
                                     f->gated ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE)) &&
           ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_RESIDUAL, f->residual)) &&
           ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_EXPERTS, f->experts)) &&
           ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ROW_WEIGHT, f->experts > 0));
}

static bool make_plan(chain *c, stage *s, int64_t m)
{
    const stage_facts *f = s->f;
    const int64_t w_dims[] = {f->experts, s->outputs, f->k};
    qdnnMatmulDescriptor_t matmul = NULL;
    qdnnTensorDescriptor_t x = NULL, w = NULL, y = NULL;
    bool done = ok(qdnnCreateMatmulDescriptor(&matmul)) && ok(qdnnCreateTensorDescriptor(&x)) &&
                ok(qdnnCreateTensorDescriptor(&w)) && ok(qdnnCreateTensorDescriptor(&y)) &&
                set_attributes(f, matmul) &&
                ok(qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 2, (const int64_t[]){m, f->k}, NULL)) &&
                ok(qdnnSetTensorDescriptor(w, QDNN_DATA_F32, f->experts ? 3 : 2,
                                           f->experts ? w_dims : w_dims + 1, NULL)) &&
                ok(qdnnSetTensorDescriptor(y, QDNN_DATA_F32, 2, (const int64_t[]){m, f->n}, NULL)) &&
                ok(qdnnCreateMatmulPlan(c->handle, matmul, x, w, s->quant, y, &s->plan));
    qdnnDestroyMatmulDescriptor(matmul);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(w);
    qdnnDestroyTensorDescriptor(y);
    return done;
}

static bool add_stage(chain *c, qdnnSchedule_t schedule, int i)
{
    const stage *s = &c->stages[i];
    void *x = i ? c->stages[i - 1].device_y : c->device_x;
    qdnnBinding_t bindings[OPERANDS] = {{QDNN_OPERAND_X, x, 0},
                                        {QDNN_OPERAND_CODES, s->device_codes, 0},
                                        {QDNN_OPERAND_SCALE, s->device_scale, 0},
                                        {QDNN_OPERAND_Y, s->device_y, 0}};
    int count = 4;
    if (s->f->residual)
        bindings[count++] = (qdnnBinding_t){QDNN_OPERAND_RESIDUAL, x, 0};
    if (s->f->experts) {
        bindings[count++] = (qdnnBinding_t){QDNN_OPERAND_EXPERT_INDEX, c->device_expert, 0};
        bindings[count++] = (qdnnBinding_t){QDNN_OPERAND_ROW_WEIGHT, c->device_router, 0};
    }
    return ok(qdnnAddToSchedule(schedule, s->plan, bindings, count));
}

static bool execute(chain *c, qdnnSchedule_t schedule)
{
    size_t bytes = 0;
    void *workspace = NULL;
    bool done =
        ok(qdnnGetScheduleWorkspaceSize(schedule, &bytes)) && ok(qdnnMalloc(c->handle, &workspace, bytes)) &&
        ok(qdnnExecuteSchedule(c->handle, schedule, workspace, bytes)) && ok(qdnnSynchronize(c->handle));
    return (!workspace || ok(qdnnFree(c->handle, workspace))) && done;
}

/* Runs the whole chain for the first m rows, with plans created for that many; results go to the stages. */
static bool run(chain *c, int64_t m)
{
    qdnnSchedule_t schedule = NULL;
    bool done = ok(qdnnCreateSchedule(c->handle, &schedule));
    for (int i = 0; i < STAGES && done; i++) {
        done = make_plan(c, &c->stages[i], m) && add_stage(c, schedule, i);
        qdnnDestroyPlan(c->stages[i].plan); /* the schedule keeps a reference */
        c->stages[i].plan = NULL;
    }
    done = done && execute(c, schedule);
    for (int i = 0; i < STAGES && done; i++) {
        stage *s = &c->stages[i];
        done =
            ok(qdnnCopyToHost(c->handle, m == 1 ? s->token : s->y, s->device_y, (size_t)(m * s->f->n) * 4));
    }
    qdnnDestroySchedule(schedule);
    return done;
}

/* ---- Against host_ref, and against f32 ---- */

static const float *input_of(const chain *c, int i)
{
    return i ? c->stages[i - 1].y : c->x;
}

static void reference(const chain *c, int i, ref_quant_spec spec, void *codes, void *scale, float *y)
{
    const stage *s = &c->stages[i];
    const ref_product p = {.m = BATCH,
                           .k = s->f->k,
                           .outputs = s->outputs,
                           .weights = spec,
                           .x = QDNN_DATA_F32,
                           .y = QDNN_DATA_F32,
                           .x_stride = s->f->k,
                           .y_stride = s->f->n,
                           .activation = s->f->gated ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE,
                           .gated = s->f->gated,
                           .experts = s->f->experts};
    const ref_product_arrays a = {.x = input_of(c, i),
                                  .weights = {.codes = codes, .scale = scale},
                                  .residual = s->f->residual ? input_of(c, i) : NULL,
                                  .expert_index = s->f->experts ? c->expert : NULL,
                                  .row_weight = s->f->experts ? c->router : NULL,
                                  .y = y};
    ref_product_exact(&p, &a);
}

/* Whether scales and codes of each expert are the same bytes as from host_ref. */
static bool weights_are_same(const stage *s)
{
    const ref_quant_spec spec = spec_of(s->f);
    const int64_t elements = s->outputs * s->f->k;
    uint8_t *codes = malloc(s->code_bytes), *scale = malloc(s->scale_bytes);
    bool same = codes && scale;
    for (int64_t e = 0; e < s->count && same; e++) {
        ref_arrays a = {.codes = codes, .scale = scale};
        ref_scale(&spec, s->outputs, s->f->k, s->w + e * elements, &a);
        ref_quantize(&spec, s->outputs, s->f->k, s->w + e * elements, &a);
        same = memcmp(codes, s->codes + (size_t)e * s->code_bytes, s->code_bytes) == 0 &&
               memcmp(scale, (char *)s->scale + (size_t)e * s->scale_bytes, s->scale_bytes) == 0;
    }
    free(codes);
    free(scale);
    return same;
}

/* The error of quantized weights, relative to the product with the f32 ones. */
static double relative_error(const float *y, const float *exact, int64_t n)
{
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)y[i] - (double)exact[i]) * ((double)y[i] - (double)exact[i]);
        square += (double)exact[i] * (double)exact[i];
    }
    return sqrt(error / square);
}

static bool compare_stage(const chain *c, int i)
{
    static float expected[BATCH * INNER], exact[BATCH * INNER];
    const stage *s = &c->stages[i];
    const stage_facts *f = s->f;
    const size_t bytes = (size_t)(BATCH * f->n) * sizeof(float);
    const ref_quant_spec plain = {
        .data = QDNN_DATA_F32, .storage = QDNN_DATA_F32, .group_size = 1, .no_scale = true};
    reference(c, i, spec_of(f), s->codes, s->scale, expected);
    reference(c, i, plain, s->w, NULL, exact);
    bool same = weights_are_same(s) && memcmp(expected, s->y, bytes) == 0;
    bool alone = memcmp(s->token, s->y, (size_t)f->n * sizeof(float)) == 0;
    double f16 = (double)(s->count * s->outputs * f->k) * 2 / 1024,
           packed = (double)((size_t)s->count * (s->code_bytes + s->scale_bytes)) / 1024;
    printf("  %-28s %-19s %4d x %3d x %3d %7.0f %7.0f %8.2f%%  %-9s %s\n", f->name, f->format, BATCH,
           (int)f->n, (int)f->k, f16, packed, 100 * relative_error(s->y, exact, BATCH * f->n),
           same ? "equal" : "DIFFER", alone ? "equal" : "DIFFER");
    return same && alone;
}

static bool print_table(const chain *c)
{
    bool same = true;
    printf("  %-28s %-19s %16s %7s %7s %9s  %-9s %s\n", "product", "weights", "rows x N x K", "f16 KiB",
           "now KiB", "error", "host_ref", "one token");
    for (int i = 0; i < STAGES; i++)
        same = compare_stage(c, i) && same;
    printf("  error: against the product with f32 weights, relative, root mean square. host_ref: every byte "
           "of codes, scales\n"
           "  and results. one token: its results, computed alone, against the first row of the batch, every "
           "bit.\n\n");
    return same;
}

/* ---- The whole demonstration ---- */

static bool make_inputs(chain *c)
{
    fill_bell(c->x, BATCH * HIDDEN, 99, 1);
    for (int i = 0; i < BATCH; i++) {
        c->expert[i] = i * 5 % 7; /* expert 7 has no token */
        c->router[i] = 0.25f + 0.0625f * (float)(i % 8);
    }
    return ok(qdnnMalloc(c->handle, &c->device_x, sizeof c->x)) &&
           ok(qdnnMalloc(c->handle, &c->device_router, sizeof c->router)) &&
           ok(qdnnMalloc(c->handle, &c->device_expert, sizeof c->expert)) &&
           ok(qdnnCopyToDevice(c->handle, c->device_x, c->x, sizeof c->x)) &&
           ok(qdnnCopyToDevice(c->handle, c->device_router, c->router, sizeof c->router)) &&
           ok(qdnnCopyToDevice(c->handle, c->device_expert, c->expert, sizeof c->expert));
}

static void free_all(chain *c)
{
    void *inputs[] = {c->device_x, c->device_router, c->device_expert};
    for (int i = 0; i < 3; i++)
        qdnnFree(c->handle, inputs[i]);
    for (int i = 0; i < STAGES; i++) {
        stage *s = &c->stages[i];
        qdnnFree(c->handle, s->device_codes);
        qdnnFree(c->handle, s->device_scale);
        qdnnFree(c->handle, s->device_y);
        qdnnDestroyQuantDescriptor(s->quant);
        free(s->w);
        free(s->codes);
        free(s->scale);
    }
}

bool show_chain(void)
{
    static chain c;
    c = (chain){0};
    progress_begin(3);
    if (!ok(qdnnCreate(&c.handle)))
        return false;
    progress_step("the chain: quantizing weights");
    bool done = make_inputs(&c);
    for (int i = 0; i < STAGES && done; i++)
        done = make_weights(&c, &c.stages[i], &facts[i]);
    progress_step("the chain: one token");
    done = done && run(&c, 1);
    progress_step("the chain: a batch");
    done = done && run(&c, BATCH);
    progress_clear();
    if (done) {
        printf(
            "\nProducts with quantized weights, as in a transformer: %d products by one call, for one token "
            "and for %d\n",
            STAGES, BATCH);
        done = print_table(&c);
    }
    free_all(&c);
    return ok(qdnnDestroy(c.handle)) && done;
}
