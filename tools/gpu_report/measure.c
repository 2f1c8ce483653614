/* The cost of calls: the time of many calls on a GPU, the counters of one call on ptxvm. */
#include "tools/gpu_report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 20, ROUNDS = 5, OPERANDS_MAX = QDNN_OPERAND_COUNT };

static const struct {
    const char *name;
    qdnnWeights_t weights;
    int64_t extent;
} formats[] = {
    {"f16", QDNN_WEIGHTS_F16, 0},
    {"int4_bytes", QDNN_WEIGHTS_INT4_BYTES, 128},
    {"nf4_bytes", QDNN_WEIGHTS_NF4_BYTES, 64},
    {"gguf_q4_k", QDNN_WEIGHTS_GGUF_Q4_K, 0},
    {"gguf_q8_0", QDNN_WEIGHTS_GGUF_Q8_0, 0},
    {"fp8_e4m3", QDNN_WEIGHTS_FP8_E4M3, 0},
    {"mxfp4", QDNN_WEIGHTS_MXFP4, 0},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static const struct {
    const char *name;
    qdnnMatmulAlgorithm_t algorithm;
} ways[] = {{"exact", QDNN_MATMUL_EXACT}, {"tensor", QDNN_MATMUL_TENSOR}, {"cublas", QDNN_MATMUL_CUBLAS}};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* A measured call, with its buffers. After the first error, nothing more is done. */
typedef struct trial {
    qdnnHandle_t handle;
    qdnnPlan_t plan; /* null: a copy */
    qdnnBinding_t bindings[OPERANDS_MAX];
    int n;
    void *workspace;
    size_t workspace_bytes;
    qdnnStatus_t status;
} trial;

#define TRY(t, call)                                                                                         \
    do {                                                                                                     \
        if ((t)->status == QDNN_STATUS_SUCCESS)                                                              \
            (t)->status = (call);                                                                            \
    } while (0)

/* Filled with zeros; what is compared gets numbers later. */
static void bind(trial *t, qdnnOperand_t operand, size_t bytes)
{
    void *memory = NULL;
    if (bytes == 0)
        return;
    TRY(t, qdnnMalloc(t->handle, &memory, bytes));
    TRY(t, qdnnFill(t->handle, memory, 0, bytes));
    t->bindings[t->n++] = (qdnnBinding_t){operand, memory, bytes};
}

static void close_trial(trial *t)
{
    for (int i = 0; i < t->n; i++)
        qdnnFree(t->handle, (void *)(uintptr_t)t->bindings[i].pointer);
    if (t->workspace)
        qdnnFree(t->handle, t->workspace);
    qdnnDestroyPlan(t->plan);
}

static void run(trial *t, int times)
{
    for (int i = 0; i < times; i++)
        if (t->plan)
            TRY(t, qdnnExecute(t->handle, t->plan, t->bindings, t->n, t->workspace, t->workspace_bytes));
        else
            TRY(t, qdnnCopyOnDevice(t->handle, (void *)(uintptr_t)t->bindings[1].pointer,
                                    t->bindings[0].pointer, t->bindings[0].bytes));
    TRY(t, qdnnSynchronize(t->handle));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One call, whose y is compared with host_ref's: what is wrong is not worth measuring. */
static void compare(report *r, trial *t, result *out, int algorithm, qdnnQuantDescriptor_t quant)
{
    const bool is_product = algorithm >= 0;
    comparison c = {.n = out->n, .k = out->k, .rows = is_product ? out->rows : 0};
    const qdnnBinding_t *last = &t->bindings[t->n - 1]; /* y */
    uint16_t *y = malloc(last->bytes);
    if (!y)
        t->status = t->status ? t->status : QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED;
    TRY(t, comparison_begin(&c, r->handle, r->device.smMajor * 10 + r->device.smMinor, algorithm, quant,
                            t->bindings, t->n));
    run(t, 1);
    TRY(t, qdnnCopyToHost(r->handle, y, last->pointer, last->bytes));
    out->is_wrong = !t->status && !comparison_is_right(&c, y, out->why, sizeof out->why);
    comparison_end(&c);
    free(y);
}

/* The best of a few rounds: in the others, the GPU may have been busy or its clock low. */
static void measure(report *r, trial *t, result *out)
{
    counts before;
    vm_counters_read(&before);
    run(t, 1);
    if (r->counted)
        vm_counters_read(&out->counts);
    const int rounds = r->is_quick ? 1 : ROUNDS, repeats = r->is_quick ? 1 : REPEATS;
    for (int round = 0; !r->counted && round < rounds && !t->status; round++) {
        double begin = now();
        run(t, repeats);
        double seconds = (now() - begin) / repeats;
        out->seconds = round == 0 || seconds < out->seconds ? seconds : out->seconds;
    }
    if (t->status)
        qdnnGetLastErrorString(out->why, sizeof out->why);
}

static result *add(report *r, result made)
{
    result *out = &r->results[r->n++];
    *out = made;
    fprintf(stderr, "  %s %s %s, %lld rows\n", made.operation, made.format, made.how, (long long)made.rows);
    return out;
}

/* ---- The calls ---- */

static void measure_copy(report *r)
{
    size_t bytes = (size_t)(r->side * r->side) * 2;
    result *out = add(r, (result){.operation = "copy",
                                  .format = "f16",
                                  .how = "",
                                  .rows = 1,
                                  .n = r->side,
                                  .k = r->side,
                                  .bytes = 2.0 * (double)bytes});
    trial t = {.handle = r->handle};
    bind(&t, QDNN_OPERAND_X, bytes);
    bind(&t, QDNN_OPERAND_Y, bytes);
    measure(r, &t, out);
    if (r->counted && !out->why[0])
        snprintf(out->why, sizeof out->why, "a copy is not a kernel: nothing is counted");
    close_trial(&t);
}

/* The descriptors of a weight matrix, and the sizes of its parts. */
typedef struct weights {
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    size_t bytes[OPERANDS_MAX], total;
} weights;

static void weights_open(report *r, trial *t, int format, qdnnDataType_t type, weights *w)
{
    TRY(t, qdnnCreateTensorDescriptor(&w->tensor));
    TRY(t, qdnnCreateQuantDescriptor(&w->quant));
    TRY(t, qdnnSetTensorDescriptor(w->tensor, type, 2, (const int64_t[]){r->side, r->side}, NULL));
    TRY(t, qdnnSetQuantWeights(w->quant, formats[format].weights, formats[format].extent));
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET; i++) {
        TRY(t, qdnnGetOperandSize(w->quant, w->tensor, (qdnnOperand_t)i, &w->bytes[i]));
        w->total += w->bytes[i];
        bind(t, (qdnnOperand_t)i, w->bytes[i]);
    }
}

static void weights_close(weights *w)
{
    qdnnDestroyTensorDescriptor(w->tensor);
    qdnnDestroyQuantDescriptor(w->quant);
}

static void take_workspace(trial *t)
{
    TRY(t, qdnnGetPlanWorkspaceSize(t->plan, &t->workspace_bytes));
    if (t->workspace_bytes)
        TRY(t, qdnnMalloc(t->handle, &t->workspace, t->workspace_bytes));
}

static void measure_dequantize(report *r, int format)
{
    trial t = {.handle = r->handle};
    weights w = {0};
    size_t plain = (size_t)(r->side * r->side) * 2;
    weights_open(r, &t, format, QDNN_DATA_F16, &w);
    bind(&t, QDNN_OPERAND_Y, plain);
    result *out = add(r, (result){.operation = "dequantize",
                                  .format = formats[format].name,
                                  .how = "",
                                  .rows = 1,
                                  .n = r->side,
                                  .k = r->side,
                                  .bytes = (double)(w.total + plain)});
    TRY(&t, qdnnCreateDequantizePlan(r->handle, w.tensor, w.quant, &t.plan));
    TRY(&t, t.status ? t.status : (take_workspace(&t), t.status));
    compare(r, &t, out, -1, w.quant);
    if (!out->is_wrong)
        measure(r, &t, out);
    close_trial(&t);
    weights_close(&w);
}

static void measure_product(report *r, int format, int way, int64_t rows)
{
    trial t = {.handle = r->handle};
    weights w = {0};
    qdnnTensorDescriptor_t x = NULL, y = NULL;
    qdnnMatmulDescriptor_t matmul = NULL;
    size_t vector = (size_t)(rows * r->side) * 2;
    weights_open(r, &t, format, QDNN_DATA_F16, &w);
    bind(&t, QDNN_OPERAND_X, vector);
    bind(&t, QDNN_OPERAND_Y, vector);
    result *out = add(r, (result){.operation = "product",
                                  .format = formats[format].name,
                                  .how = ways[way].name,
                                  .rows = rows,
                                  .n = r->side,
                                  .k = r->side,
                                  .bytes = (double)(w.total + 2 * vector)});
    TRY(&t, qdnnCreateTensorDescriptor(&x));
    TRY(&t, qdnnCreateTensorDescriptor(&y));
    TRY(&t, qdnnCreateMatmulDescriptor(&matmul));
    TRY(&t, qdnnSetTensorDescriptor(x, QDNN_DATA_F16, 2, (const int64_t[]){rows, r->side}, NULL));
    TRY(&t, qdnnSetTensorDescriptor(y, QDNN_DATA_F16, 2, (const int64_t[]){rows, r->side}, NULL));
    TRY(&t, qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ALGORITHM, ways[way].algorithm));
    TRY(&t, qdnnCreateMatmulPlan(r->handle, matmul, x, w.tensor, w.quant, y, &t.plan));
    if (!t.status)
        take_workspace(&t);
    compare(r, &t, out, (int)ways[way].algorithm, w.quant);
    if (!out->is_wrong)
        measure(r, &t, out);
    close_trial(&t);
    weights_close(&w);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(y);
    qdnnDestroyMatmulDescriptor(matmul);
}

void report_measure(report *r)
{
    static const int64_t rows[] = {1, 16, 256};
    const int n_rows = r->counted || r->is_quick ? 2 : 3; /* the interpreter is slow */
    measure_copy(r);
    for (int i = 0; i < FORMATS; i++)
        measure_dequantize(r, i);
    for (int m = 0; m < n_rows; m++)
        for (int i = 0; i < FORMATS; i++)
            for (int way = 0; way < (r->counted ? WAYS - 1 : WAYS); way++)
                measure_product(r, i, way, rows[m]);
}
